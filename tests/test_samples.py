# SPDX-License-Identifier: Apache-2.0
"""What is given: read once, in one orientation, and presented the way round it came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from limen.errors import Infeasible
from limen.metrics import BestCut, Confusion
from limen.optimum import Optimum
from limen.samples import Samples


def test_columns_have_the_types_of_the_core() -> None:
    samples = Samples.of([1, 2, 3], [True, False, True], [1, 2, 0])

    assert samples.scores.dtype == np.float64
    assert samples.labels.tolist() == [1, 0, 1]
    assert samples.labels.dtype == np.uint8
    assert samples.weights is not None
    assert samples.weights.dtype == np.int64
    assert [len(samples), samples.held, samples.positives] == [3, 2, 2]
    assert samples.columns[0] is samples.scores
    assert Samples.of([0.5], [1]).held == 1


def test_an_array_of_doubles_is_not_copied() -> None:
    scores = np.array([0.25, 0.5])

    assert Samples.of(scores, [0, 1]).scores is scores


def test_lower_is_positive_is_negated_inside_and_turned_back_outside() -> None:
    samples = Samples.of([70, 0, 35], [0, 0, 1], direction="<=")

    assert samples.scores.tolist() == [-70, 0, -35]
    assert not np.signbit(samples.scores[1])
    assert samples.given.tolist() == [70, 0, 35]
    found = samples.present(Optimum(-70.0, -35.0, 0.0))
    assert (found.lower, found.upper, found.direction) == (35.0, 70.0, "<=")
    assert samples.present((-2.0, -1.0)) == (1.0, 2.0)
    nearest = BestCut(-70.0, -35.0, 0.0, Confusion(0.0, 0.0, 1.0, 1.0))
    refused = samples.present(Infeasible("at threshold -52.5", nearest))
    assert (str(refused), refused.nearest.threshold) == ("at threshold 52.5", 52.5)


def test_higher_is_positive_is_presented_as_it_is() -> None:
    found = Optimum(0.25, 0.5, 0.0)

    assert Samples.of([0.25, 0.5], [0, 1]).present(found) is found


@pytest.mark.parametrize("direction", [">=", "<="])
def test_answers_are_those_of_the_rule(direction: Any) -> None:
    scores = np.array([-np.inf, -1.0, -0.0, 0.0, 2.5, np.inf])
    samples = Samples.of(scores, np.zeros(6), direction=direction)

    for threshold in (-np.inf, -1.0, 0.0, -0.0, 2.0, np.inf, np.nan):
        expected = scores >= threshold if direction == ">=" else scores <= threshold
        assert samples.answers(threshold).tolist() == expected.tolist()
    each = scores.copy()  # a threshold for each sample
    assert samples.answers(each).all()


@pytest.mark.parametrize("chosen", [np.array([2, 0]), slice(1, 3), np.array([True, False, True])])
def test_rows_are_chosen_in_every_column(chosen: Any) -> None:
    scores, labels, weights = np.array([1.0, 2.0, 3.0]), np.array([0, 1, 1]), np.array([4, 5, 6])
    samples = Samples.of(scores, labels, weights, "<=").rows(chosen)

    assert samples.given.tolist() == scores[chosen].tolist()
    assert samples.labels.tolist() == labels[chosen].tolist()
    assert samples.weights is not None
    assert samples.weights.tolist() == weights[chosen].tolist()
    assert samples.direction == "<="
    assert Samples.of(scores, labels).rows(chosen).weights is None


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (([1, 2], [0]), ValueError, "scores has 2, labels has 1"),
        (([1, 2], [0, 1], [1]), ValueError, "labels has 2, weights has 1"),
        ((["a"], [0]), TypeError, "scores must be numbers"),
        (([0.5], [2]), ValueError, r"labels must be 0 or 1, got 2 at labels\[0\]"),
        (([1, 0], [0.5, 2]), ValueError, "were scores and labels swapped"),
        (([0.5], [1], None, "<"), ValueError, 'direction must be ">="'),
    ],
)
def test_what_cannot_be_read_is_refused(given: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        Samples.of(*given)
