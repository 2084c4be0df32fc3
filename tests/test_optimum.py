# SPDX-License-Identifier: Apache-2.0
"""Values: the optimum as sigmoid and as bins, and the curve of all cuts."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen import LossCurve, OnlineCalibrator, Optimum, loss_curve, optimal_threshold

samples = st.lists(
    st.tuples(st.floats(-1e6, 1e6, allow_subnormal=False), st.integers(0, 1)),
    min_size=2,
    max_size=40,
)


def sigmoid(slope: float, offset: float, score: float) -> float:
    power = -(slope * score + offset)
    return 0.0 if power > 700 else 1 / (1 + math.exp(power))


@given(samples)
def test_the_sigmoid_decides_like_the_threshold(stream) -> None:
    """Where the slope can be told in doubles, held scores are sent to 0 and 1."""
    scores, labels = zip(*stream, strict=True)
    best = optimal_threshold(scores, labels)
    if best.lower is None or best.upper is None or best.upper - best.lower < 1e-3:
        return
    slope, offset = best.as_sigmoid()

    assert best.predict(scores).tolist() == [
        round(sigmoid(slope, offset, score)) for score in scores
    ]


def test_the_sigmoid_is_saturated_on_both_sides_of_the_gap() -> None:
    slope, offset = Optimum(lower=0.5, upper=0.75, loss=0.0).as_sigmoid()

    assert (0.0, 1.0) == (sigmoid(slope, offset, 0.5), sigmoid(slope, offset, 0.75))


@pytest.mark.parametrize(
    ("lower", "upper"), [(None, 1.0), (1.0, None), (-math.inf, 1.0), (1.0, math.inf), (None, None)]
)
def test_a_sigmoid_needs_two_finite_sides(lower, upper) -> None:
    with pytest.raises(ValueError, match="either side"):
        Optimum(lower, upper, 0.0).as_sigmoid()


@given(samples)
def test_the_bins_decide_like_the_threshold(stream) -> None:
    scores, labels = zip(*stream, strict=True)
    best = optimal_threshold(scores, labels)
    edges, probabilities = best.as_bins()
    places = np.searchsorted(edges[1:2], scores, side="right")

    assert best.predict(scores).tolist() == [int(probabilities[place]) for place in places]


def test_an_optimum_is_a_value() -> None:
    one, same = Optimum(0.5, 0.75, 1.0), Optimum(0.5, 0.75, 1.0)

    assert one == same
    assert hash(one) == hash(same)
    with pytest.raises(AttributeError):
        one.loss = 0.0


def test_the_curve_has_one_cut_more_than_distinct_scores_and_starts_at_all() -> None:
    curve = loss_curve([0.5, 0.25, 0.5, 0.75], [1, 0, 0, 1], false_negative=5)

    assert isinstance(curve, LossCurve)
    assert [-math.inf, 0.375, 0.625, math.inf] == curve.thresholds.tolist()
    assert [2.0, 1.0, 5.0, 10.0] == curve.losses.tolist()
    assert 4 == len(curve)


def test_the_last_of_the_cheapest_cuts_is_the_optimum() -> None:
    scores, labels = [1, 2, 3, 4], [1, 0, 1, 0]
    curve = loss_curve(scores, labels)

    assert [-math.inf, 2.5, math.inf] == curve.cheapest.tolist()
    assert curve.cheapest[-1] == optimal_threshold(scores, labels).threshold


def test_the_curve_of_nothing_is_one_free_cut() -> None:
    curve = loss_curve([], [])

    assert ([math.inf], [0.0]) == (curve.thresholds.tolist(), curve.losses.tolist())


@pytest.mark.parametrize(("score", "expected"), [(0.7, 1), (0.6, 0), (0.625, 1)])
def test_one_score_gets_one_answer(score: float, expected: int) -> None:
    answer = Optimum(lower=0.5, upper=0.75, loss=0.0).predict(score)

    assert (int, expected) == (type(answer), answer)


def test_a_nan_score_gets_no_answer() -> None:
    with pytest.raises(ValueError, match=r"scores\[1\] is nan"):
        Optimum(lower=0.5, upper=0.75, loss=0.0).predict([0.5, math.nan])


def test_an_optimum_prints_its_threshold_and_is_no_call() -> None:
    assert "<Optimum: threshold 0.625, lower 0.5, upper 0.75, loss 1.0>" == repr(
        Optimum(0.5, 0.75, 1.0)
    )
    assert "<Optimum: threshold inf, lower None, upper None, loss 0.0>" == repr(
        optimal_threshold([], [])
    )


def test_a_best_cut_prints_its_threshold() -> None:
    calibrator = OnlineCalibrator()
    calibrator.update_many([0.25, 0.75], [0, 1])

    assert repr(calibrator.best("f1")) == (
        "<BestCut: threshold 0.5, lower 0.25, upper 0.75, value 1.0, "
        "confusion Confusion(tp=1.0, fp=0.0, fn=0.0, tn=1.0)>"
    )


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_an_optimum_can_be_copied(copied) -> None:
    best = Optimum(0.5, 0.75, 1.0)

    assert (best, hash(best)) == (copied(best), hash(copied(best)))
