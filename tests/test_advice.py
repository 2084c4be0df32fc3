# SPDX-License-Identifier: Apache-2.0
"""What an error advises can be done where it was raised."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limen
from limen.narrowing import Chunks, optimal_threshold

SCORES = np.linspace(0, 1, 40)
LABELS = (np.arange(40) * 7 % 10 < np.arange(40) / 4).astype(int)
TINY = np.full(40, 1e-9)


def test_tiny_weights_are_to_be_multiplied_where_there_is_no_unit() -> None:
    with pytest.raises(ValueError, match=r"weights\[0\] is 1e-09.*Multiply all weights by the sam"):
        limen.recommend(SCORES, LABELS, weights=TINY)
    found = limen.recommend(SCORES, LABELS, weights=TINY * 1e9)
    assert limen.recommend(SCORES, LABELS).threshold == found.threshold


def test_chunks_take_floats_that_are_whole_and_name_the_first_that_is_not() -> None:
    pieces = [([0.1, 0.25], [0, 1], [1.0, 2.0])]
    assert 0.175 == optimal_threshold(Chunks(lambda: pieces)).threshold
    pieces = [([0.1, 0.25], [0, 1], [1.0, 2.5])]
    with pytest.raises(ValueError, match=r"must be whole numbers .* weights\[1\] is 2\.5\."):
        optimal_threshold(Chunks(lambda: pieces))


def test_a_half_life_that_is_too_short_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match=r"half_life must be at least 1e-06 samples, got 1e-308"):
        limen.Fading(limen.OnlineThreshold(), 1e-308)
    fading = limen.Fading(limen.OnlineThreshold(), 1e-6)
    assert [True, True, True] == [fading.update(0.5, 1) for _ in range(3)]


def test_by_group_takes_a_cost_of_each_row() -> None:
    groups, costs = np.array(["a", "b"])[np.arange(40) % 2], np.arange(1, 41)
    found = limen.by_group(groups, SCORES, LABELS, false_negative=costs)
    for name in "ab":
        own = groups == name
        best = limen.optimal_threshold(SCORES[own], LABELS[own], false_negative=costs[own])
        assert best == found.optimum(name)
    with pytest.raises(ValueError, match="scores has 40, false_negative has 39"):
        limen.by_group(groups, SCORES, LABELS, false_negative=costs[1:])
    with pytest.raises(ValueError, match="false_negative is an array, and shrink takes one cost"):
        limen.by_group(groups, SCORES, LABELS, false_negative=costs, shrink=True)


@pytest.mark.parametrize(
    ("function", "name", "advice"),
    [
        (limen.optimal_threshold, "weight", "Give the weights as weights."),
        (limen.report, "sample_weights", "Give the weights as weights."),
        (limen.report, "current", "or to limen.report in thresholds."),
    ],
)
def test_an_argument_of_other_functions_is_answered_by_what_to_give(
    function: Any, name: str, advice: str
) -> None:
    with pytest.raises(TypeError, match=f"there is no argument '{name}' here.*{re.escape(advice)}"):
        function(SCORES, LABELS, **{name: 0.5})


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["compare", "s.csv", "-t", "0.5", "0.02"], "one number after each -t. Write -t 0.02 for"),
        (["compare", "-t", "0.5", "0.02", "s.csv"], "give each with a -t of its own"),
        (["watch", "s.csv"], "limen watch < s.csv"),
        (["fit", "s.csv", "--score-col", "p"], "Did you mean --score-column?"),
        (["fit", "bare.csv"], "Does the file have no header? Its first line must name the columns"),
    ],
)
def test_a_wrong_command_is_answered_by_the_right_one(
    run, tmp_path, monkeypatch, arguments, advice
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text("score,label\n0.1,0\n0.9,1\n")
    Path("bare.csv").write_text("0.1,0\n0.9,1\n")
    code, out, err = run(*arguments)

    assert code > 0
    assert out == ""
    assert advice in err


@pytest.mark.parametrize("make", [limen.OnlineThreshold, limen.OnlineCalibrator])
@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: limen.LastN(model, 5)])
def test_arrays_in_the_place_of_one_sample_are_pointed_to_update_many(make, wrap) -> None:
    model = wrap(make())
    with pytest.raises(TypeError, match=r"score must be one number, got an array of shape \(40,\)"):
        model.update(SCORES, LABELS)
    with pytest.raises(TypeError, match=r"weight must be one number, got .* such as update_many"):
        model.update(0.5, 1, weight=np.ones(3))
    model.update(np.array(0.5), 1)  # which is one number

    assert 1 == len(model)


@pytest.mark.parametrize(
    ("labels", "found"), [([], "there is no sample"), ([1, 1], "all 2 labels are 1")]
)
def test_a_threshold_of_one_class_alone_is_warned_of(labels, found) -> None:
    scores = [0.25, 0.5][: len(labels)]
    with pytest.warns(UserWarning, match=f"samples of both classes, and {found}") as caught:
        limen.optimal_threshold(scores, labels)
    assert __file__ == caught[0].filename
    with pytest.warns(UserWarning, match=f"samples of both classes, and {found}"):
        limen.by_group(["a"] * len(labels), scores, labels)


def test_a_threshold_of_two_classes_is_not_warned_of(recwarn) -> None:
    limen.optimal_threshold([0.25, 0.5], [1, 0])
    limen.by_group(["a", "b"], [0.25, 0.5], [0, 1])  # each of them has one class

    assert 0 == len(recwarn)
