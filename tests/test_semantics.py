# SPDX-License-Identifier: Apache-2.0
"""What was decided once: each row of the table of semantics, for whole arrays and online.

Every claim is made of three ways to the same answer: whole arrays, many samples at once, and one
by one. After every error the bytes of the object are what they were before.
"""

from __future__ import annotations

import math
import pickle
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
import streams
from hypothesis import example, given
from hypothesis import strategies as st
from streams import HUGE, INF, NORMAL, TINY, SmallNodeThreshold

import limen
from limen import NotHeld, OnlineCut, OnlineThreshold, loss_curve, optimal_cut, optimal_threshold

NAN = math.nan


def whole_arrays(scores, labels, weights=None, **costs):
    return optimal_threshold(scores, labels, weights=weights, **costs)


def many_at_once(scores, labels, weights=None, **costs):
    cut = OnlineThreshold(**costs)
    cut.update_many(scores, labels, weights)
    cut._check()
    return cut.optimum


def one_by_one(scores, labels, weights=None, **costs):
    cut = SmallNodeThreshold(**costs)
    for sample in zip(scores, labels, *([] if weights is None else [weights]), strict=True):
        cut.update(*sample)
    cut._check()
    return cut.optimum


WAYS = [whole_arrays, many_at_once, one_by_one]
every_way = pytest.mark.parametrize("best_of", WAYS)


def same(expected: float, actual: float) -> bool:
    return expected == actual or (math.isnan(expected) and math.isnan(actual))


# At the boundary.


@every_way
def test_a_score_equal_to_the_threshold_is_answered_1(best_of):
    upper = float(np.nextafter(0.5, 1))
    best = best_of([0.5, upper], [0, 1])

    assert upper == best.threshold
    assert [0, 1] == best.predict([0.5, upper]).tolist()
    assert (0, 1) == (best.predict(0.5), best.predict(upper))


def test_the_model_answers_as_its_optimum_does():
    cut = OnlineThreshold()
    cut.update_many([0.25, 0.75], [0, 1])

    assert 0.5 == cut.threshold
    assert [0, 1, 1] == cut.predict([np.nextafter(0.5, 0), 0.5, 0.75]).tolist()
    assert cut.optimum.predict([0.4, 0.5]).tolist() == cut.predict([0.4, 0.5]).tolist()


# Which number of the gap.


@every_way
@pytest.mark.parametrize(
    ("lower", "upper", "threshold"),
    [
        (0.25, 0.75, 0.5),
        (-1.0, 3.0, 1.0),
        (-1.0, 1.0, 0.0),
        (1.0, float(np.nextafter(1.0, 2)), float(np.nextafter(1.0, 2))),
        (float(np.nextafter(1.0, 0)), 1.0, 1.0),
        (1.0, 1.0 + 2 * 2.0**-52, 1.0 + 2.0**-52),
        (-INF, 0.5, 0.5),
        (-INF, -HUGE, -HUGE),
        (0.5, INF, INF),
        (HUGE, INF, INF),
        (-INF, INF, INF),
        (-HUGE, HUGE, 0.0),
        (HUGE / 2, HUGE, HUGE / 4 + HUGE / 2),
        (-HUGE, -HUGE / 2, -HUGE / 4 - HUGE / 2),
        (float(np.nextafter(HUGE, 0)), HUGE, HUGE),
        (0.0, TINY, TINY),
        (-TINY, 0.0, 0.0),
        (-TINY, TINY, 0.0),
        (0.0, 2 * TINY, TINY),
        (TINY, 3 * TINY, 2 * TINY),
        (TINY, 5 * TINY, 3 * TINY),
        (NORMAL - TINY, NORMAL + TINY, NORMAL),
        (NORMAL - TINY, NORMAL, NORMAL),
    ],
)
def test_the_threshold_is_the_midpoint_or_else_the_upper_end(best_of, lower, upper, threshold):
    best = best_of([upper, lower], [1, 0])

    assert (lower, upper) == (best.lower, best.upper)
    assert threshold == best.threshold
    assert [0, 1] == best.predict([lower, upper]).tolist()


@example((TINY, 5 * TINY))
@example((-HUGE, HUGE))
@given(st.tuples(streams.scores, streams.scores).filter(lambda pair: pair[0] < pair[1]))
def test_the_threshold_is_never_at_or_below_the_gap_nor_above_it(gap):
    lower, upper = gap
    thresholds = [best_of([upper, lower], [1, 0]).threshold for best_of in WAYS]
    cut = OnlineThreshold()
    cut.update_many([upper, lower], [1, 0])
    [threshold] = {*thresholds, cut.threshold, cut.curve().thresholds[1]}

    assert lower < threshold <= upper
    if math.isfinite(lower) and math.isfinite(upper):
        middle = float((Fraction(lower) + Fraction(upper)) / 2)
        assert (middle if lower < middle < upper else upper) == threshold


@every_way
@pytest.mark.parametrize("score", [0.5, -INF, -HUGE, 0.0])
def test_nothing_below_the_cut_makes_the_threshold_minus_infinity(best_of, score):
    best = best_of([score], [1])

    assert (None, score, -INF) == (best.lower, best.upper, best.threshold)
    assert [1, 1, 1] == best.predict([-INF, score, INF]).tolist()


@every_way
@pytest.mark.parametrize("score", [0.5, -INF, HUGE, 0.0])
def test_nothing_above_the_cut_makes_the_threshold_infinity(best_of, score):
    best = best_of([score], [0])

    assert (score, None, INF) == (best.lower, best.upper, best.threshold)
    assert [0, 0, 0] == best.predict([-INF, score, HUGE]).tolist()


@every_way
def test_an_infinite_score_answered_0_makes_the_threshold_nan(best_of):
    """No score reaches nan, so that every answer is 0, that to inf included."""
    best = best_of([INF, 0.5], [0, 0])

    assert (INF, None) == (best.lower, best.upper)
    assert math.isnan(best.threshold)
    assert [0, 0, 0] == best.predict([-INF, 0.5, INF]).tolist()
    assert 0 == best.predict(INF)


@every_way
def test_an_infinite_score_answered_1_is_at_the_threshold(best_of):
    best = best_of([INF, HUGE], [1, 0])

    assert (HUGE, INF, INF) == (best.lower, best.upper, best.threshold)
    assert [0, 1] == best.predict([HUGE, INF]).tolist()


@given(st.lists(st.tuples(streams.scores, streams.labels), max_size=30))
def test_predict_puts_every_sample_on_its_side_of_the_gap(rows):
    scores, labels = [score for score, _ in rows], [label for _, label in rows]
    for best_of in WAYS:
        best = best_of(scores, labels)
        sides = [int(best.upper is not None and score >= best.upper) for score in scores]
        mistakes = sum(side != label for side, label in zip(sides, labels, strict=True))

        assert sides == best.predict(scores).tolist()
        assert mistakes == best.loss


# Several cheapest cuts.


@every_way
def test_the_highest_of_equally_good_cuts_is_chosen(best_of):
    best = best_of([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])

    assert (0.5, 0.75, 1.0) == (best.lower, best.upper, best.loss)


@every_way
@pytest.mark.parametrize("n", [2, 64, 65, 600, 5_000])
def test_saying_1_must_pay_even_at_the_very_top(best_of, n):
    """All cuts cost the same, so nobody is answered 1."""
    scores, labels = streams.ties_everywhere(n - n % 2)
    best = best_of(scores, labels)

    assert (scores.max(), None, n // 2) == (best.lower, best.upper, best.loss)


@pytest.mark.parametrize("curve_of", [loss_curve, None])
def test_the_curve_shows_all_equally_good_cuts(curve_of):
    scores, labels = [0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1]
    cut = OnlineThreshold()
    cut.update_many(scores, labels)
    curve = curve_of(scores, labels) if curve_of else cut.curve()

    assert [0.175, 0.625] == curve.cheapest.tolist()
    assert cut.threshold == curve.cheapest[-1]


# Equal scores.


@given(st.lists(st.tuples(st.integers(0, 3), streams.labels), max_size=30))
def test_equal_scores_are_never_split(rows):
    for best_of in WAYS:
        best = best_of([score for score, _ in rows], [label for _, label in rows])
        held = {None, *(score for score, _ in rows)}

        assert {best.lower, best.upper} <= held
        assert best.lower is None or best.upper is None or best.lower < best.upper


@every_way
def test_only_exactly_equal_doubles_are_equal(best_of):
    """There is no tolerance: neighbouring doubles are told apart."""
    close = [0.5, float(np.nextafter(0.5, 1)), float(np.nextafter(0.5, 0))]
    best = best_of(close, [1, 1, 0])

    assert (close[2], close[0], 0.0) == (best.lower, best.upper, best.loss)
    assert 4 == len(loss_curve(close, [1, 1, 0]))


@every_way
def test_minus_zero_and_zero_are_one_score(best_of):
    best = best_of([-0.0, 0.0, 0.0, -0.0], [0, 1, 1, 0])

    assert (0.0, None, 2.0) == (best.lower, best.upper, best.loss)
    assert "0.0" == repr(best.lower)
    assert "0.0" == repr(best_of([-0.0], [1]).upper)


def test_minus_zero_and_zero_leave_the_same_bytes():
    cuts = [OnlineThreshold() for _ in range(4)]
    cuts[0].update(0.0, 1)
    cuts[1].update(-0.0, 1)
    cuts[2].update_many([0.0], [1])
    cuts[3].update_many([-0.0], [1])

    assert 1 == len({cut._state() for cut in cuts})
    cuts[0].revert(-0.0, 1)
    cuts[3].revert_many([0.0], [1])
    assert OnlineThreshold()._state() == cuts[0]._state() == cuts[3]._state()
    assert 2 == len(loss_curve([-0.0, 0.0], [0, 1]))


# Empty.


@every_way
def test_no_samples_are_an_ordinary_state(best_of):
    best = best_of([], [])

    assert (None, None, 0.0, INF) == (best.lower, best.upper, best.loss, best.threshold)
    assert [0, 0] == best.predict([0.5, -INF]).tolist()
    assert [] == best.predict([]).tolist()


@pytest.mark.parametrize("model", [OnlineThreshold, OnlineCut])
def test_a_new_object_answers_everything(model):
    cut = model()

    assert (0, INF, 0.0) == (len(cut), cut.threshold, cut.loss)
    assert ([INF], [0.0]) == (cut.curve().thresholds.tolist(), cut.curve().losses.tolist())
    assert [0] == cut.predict([0.5]).tolist()
    assert cut._state() == cut.copy()._state() == pickle.loads(pickle.dumps(cut))._state()
    cut.update_many([], [], [])
    cut.revert_many([], [], [])
    assert model()._state() == cut._state()


def test_the_empty_curve_has_the_one_cut():
    curve = loss_curve([], [])

    assert ([INF], [0.0], 1) == (curve.thresholds.tolist(), curve.losses.tolist(), len(curve))


# What is refused.


@pytest.fixture
def cut():
    """Some samples, among them fine weights, so that there is something to be damaged."""
    cut = SmallNodeThreshold(false_negative=3)
    cut.update_many(*streams.uniform(50), np.arange(50) / 4)
    return cut


@pytest.fixture
def any_cut():
    cut = streams.SmallNodeCut()
    cut.update_many(streams.uniform(50)[0], np.arange(50) - 25, np.arange(50) / 4)
    return cut


def refused(model, error, words, call, *given):
    """The call raises an error of exactly this kind with these words; the bytes stay."""
    before = pickle.dumps(model), model._state(), model.optimum, len(model)
    with pytest.raises(error) as caught:
        call(*given)
    model._check()

    assert error is caught.type
    for word in words:
        assert word in str(caught.value)
    assert before == (pickle.dumps(model), model._state(), model.optimum, len(model))
    return str(caught.value)


@pytest.mark.parametrize("nan", [NAN, -NAN, np.float32("nan"), np.float64("nan")])
def test_a_nan_score_is_refused(cut, any_cut, nan):
    for change in (cut.update, cut.revert, any_cut.update, any_cut.revert):
        model = cut if change.__self__ is cut else any_cut
        refused(model, ValueError, ["score", "nan", "order"], change, nan, 1, 1)
    rows = [0.1, 0.2, 0.3, nan, nan]
    ones = [1, 1, 1, 1, 1]
    for change in (cut.update_many, cut.revert_many, any_cut.update_many, any_cut.revert_many):
        model = cut if change.__self__ is cut else any_cut
        refused(model, ValueError, ["scores[3]", "nan"], change, rows, ones, ones)
    for whole in (optimal_threshold, loss_curve):
        with pytest.raises(ValueError, match=r"scores\[3\] is nan"):
            whole(rows, ones)
    with pytest.raises(ValueError, match=r"scores\[3\] is nan"):
        optimal_cut(rows, ones, ones)


@pytest.mark.parametrize("n", [600, 5_000])
@pytest.mark.parametrize("at", [0, 255, 256, 599])
def test_the_first_nan_of_a_long_array_is_named(n, at):
    scores, labels = streams.uniform(n)
    scores[at] = scores[-1] = NAN
    for whole in (whole_arrays, many_at_once, loss_curve):
        with pytest.raises(ValueError, match=rf"scores\[{at}\] is nan"):
            whole(scores, labels)


def test_a_nan_score_is_refused_by_predict(cut):
    for predict in (cut.predict, cut.optimum.predict):
        with pytest.raises(ValueError, match=r"scores\[1\] is nan"):
            predict([0.5, NAN])
        with pytest.raises(ValueError, match="nan"):
            predict(NAN)


BAD_LABELS = [2, -1, 0.5, NAN, INF, "spam", None, "1", np.int64(7), 10**400]


@pytest.mark.parametrize("label", BAD_LABELS, ids=lambda label: f"{label!r:.20}")
def test_a_label_other_than_0_and_1_is_refused(cut, label):
    """One error for all of them: it names the argument, the place, the value and the way out."""
    shown = str(label)[:12]
    for change in (cut.update, cut.revert):
        refused(cut, ValueError, ["label must be 0 or 1", shown], change, 0.5, label)
        refused(cut, ValueError, ["label must be 0 or 1", shown], change, 0.5, label, 2.5)
    rows = [0.25, 0.5, 0.75], [0, 1, label]
    words = ["labels must be 0 or 1", "labels[2]", shown]
    for change in (cut.update_many, cut.revert_many):
        refused(cut, ValueError, words, change, *rows)
    for whole in (optimal_threshold, loss_curve, limen.losses.classification):
        given = rows if whole is not limen.losses.classification else rows[1:]
        with pytest.raises(ValueError, match=r"labels must be 0 or 1.*labels\[2\]") as caught:
            whole(*given)
        assert shown in str(caught.value)


def test_labels_in_words_are_refused_with_the_way_out(cut):
    rows = [0.2, 0.8], ["ham", "spam"]
    for change in (cut.update_many, cut.revert_many):
        refused(cut, ValueError, ["labels[0]", "ham", "positive"], change, *rows)
    refused(cut, ValueError, ["'spam'", "positive"], cut.update, 0.8, "spam")


@pytest.mark.parametrize(
    "one", [True, 1, 1.0, np.True_, np.int8(1), np.uint64(1), np.float32(1), Fraction(1)]
)
def test_every_kind_of_0_and_1_is_a_label(one):
    zero = type(one)(0)
    expected = OnlineThreshold()
    expected.update_many([0.3, 0.7], [0, 1])
    single, many = OnlineThreshold(), OnlineThreshold()
    single.update(0.3, zero)
    single.update(0.7, one)
    many.update_many([0.3, 0.7], [zero, one])

    assert expected._state() == single._state() == many._state()


BAD_WEIGHTS = [-1, -0.5, NAN, INF, -INF, -(2**70), np.float32(-1)]


@pytest.mark.parametrize("weight", BAD_WEIGHTS, ids=repr)
def test_a_weight_that_is_negative_or_not_finite_is_refused(cut, weight):
    shown = "nan" if weight != weight else "-" if weight < 0 else "inf"
    for change in (cut.update, cut.revert):
        refused(cut, ValueError, ["weight must be", shown], change, 0.5, 1, weight)
    rows = [0.25, 0.5, 0.75], [0, 1, 1], [1, 0, weight]
    for change in (cut.update_many, cut.revert_many):
        refused(cut, ValueError, ["weights[2]", shown], change, *rows)
    for whole in (optimal_threshold, loss_curve):
        with pytest.raises(ValueError, match=r"weights\[2\]"):
            whole(*rows[:2], weights=rows[2])


@pytest.mark.parametrize("weight", ["2", "heavy", None, b"1", 1j, [1]])
def test_a_weight_that_is_not_a_number_is_refused(cut, weight):
    for change in (cut.update, cut.revert):
        refused(cut, TypeError, ["weight", repr(weight)], change, 0.5, 1, weight)
    if weight == [1]:
        return
    for change in (cut.update_many, cut.revert_many):
        refused(cut, TypeError, ["weights"], change, [0.25, 0.5], [0, 1], [1, weight])
    with pytest.raises(TypeError, match="weights"):
        optimal_threshold([0.25, 0.5], [0, 1], weights=[1, weight])


@pytest.mark.parametrize("loss", [NAN, INF, -INF])
def test_a_loss_that_is_not_finite_is_refused(any_cut, loss):
    for change in (any_cut.update, any_cut.revert):
        refused(any_cut, ValueError, ["below must be", repr(loss)], change, 0.5, loss, 1)
        refused(any_cut, ValueError, ["above must be", repr(loss)], change, 0.5, 1, loss)
    for change in (any_cut.update_many, any_cut.revert_many):
        rows = [0.25, 0.5], [0, loss], [1, 2]
        refused(any_cut, ValueError, ["below[1]", repr(loss)], change, *rows)
        rows = [0.25, 0.5], [1, 2], [loss, 1]
        refused(any_cut, ValueError, ["above[0]", repr(loss)], change, *rows)
    with pytest.raises(ValueError, match=r"above\[0\]"):
        optimal_cut([0.25, 0.5], [1, 2], [loss, 1])


@pytest.mark.parametrize("score", ["0.5", None, 1j, b"0", [0.5]])
def test_a_score_that_is_not_a_number_is_refused(cut, score):
    for change in (cut.update, cut.revert):
        refused(cut, TypeError, ["score", repr(score)], change, score, 1)


def test_lengths_that_differ_are_refused(cut, any_cut):
    lengths = ["scores has 2", "labels has 3"]
    for change in (cut.update_many, cut.revert_many):
        refused(cut, ValueError, lengths, change, [0.1, 0.2], [0, 1, 1])
        words = ["weights has 1", "scores has 2"]
        refused(cut, ValueError, words, change, [0.1, 0.2], [0, 1], [3])
    for change in (any_cut.update_many, any_cut.revert_many):
        words = ["scores has 2", "below has 2", "above has 1"]
        refused(any_cut, ValueError, words, change, [0.1, 0.2], [0, 1], [3])
    for whole in (optimal_threshold, loss_curve):
        with pytest.raises(ValueError, match="scores has 2, labels has 3"):
            whole([0.1, 0.2], [0, 1, 1])
    with pytest.raises(ValueError, match="scores has 1"):
        optimal_cut([0.1], [0, 1], [0, 1])
    with pytest.raises(ValueError, match="labels has 2, weights has 1"):
        limen.losses.classification([0, 1], weights=[3])


def test_swapped_scores_and_labels_are_recognised(cut):
    for change in (cut.update_many, cut.revert_many):
        refused(
            cut, ValueError, ["labels[0]", "cores come first"], change, [0, 1, 1], [0.2, 0.7, 1]
        )
    for whole in (optimal_threshold, loss_curve):
        with pytest.raises(ValueError, match=r"labels\[1\].*cores come first"):
            whole([0, 1, 1], [0.0, 0.7, 0.9])
    for change in (cut.update, cut.revert):
        refused(cut, ValueError, ["label", "0.7", "cores come first"], change, 1, 0.7)


def test_a_wrong_label_alone_is_not_taken_for_swapped_arguments(cut):
    told = refused(cut, ValueError, ["labels[1]"], cut.update_many, [0.3, 0.6], [1, 2])
    assert "come first" not in told
    told = refused(cut, ValueError, ["label"], cut.update, 0.3, 2)
    assert "come first" not in told


def test_nothing_is_added_when_the_last_of_many_samples_is_refused(cut, any_cut):
    scores, labels = streams.uniform(2_000)
    bad = np.append(scores, NAN), np.append(labels, 1)
    refused(cut, ValueError, ["scores[2000]"], cut.update_many, *bad)
    weights = np.append(np.ones(2_000), -1)
    refused(
        cut, ValueError, ["weights[2000]"], cut.update_many, np.append(scores, 0), bad[1], weights
    )
    losses = np.append(np.ones(2_000), INF)
    refused(
        any_cut,
        ValueError,
        ["above[2000]"],
        any_cut.update_many,
        np.append(scores, 0),
        weights,
        losses,
    )


# Weight 0.


@every_way
@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_weight_0_is_the_same_as_leaving_the_row_out(best_of, zero):
    """Even a score next to the gap does not narrow it, and an infinite one does not move it."""
    best = best_of([0.2, 0.4, 0.8, INF, -INF], [0, 1, 1, 0, 1], [1, zero, 2, zero, zero])

    assert (0.2, 0.8, 0.0) == (best.lower, best.upper, best.loss)


@given(st.lists(st.tuples(streams.scores, streams.labels, streams.weights), max_size=30))
def test_rows_of_weight_0_may_be_left_out(rows):
    heard = [row for row in rows if row[2] != 0]
    for best_of in WAYS:
        all_rows, some = (
            best_of(*([row[column] for row in part] for column in range(3)))
            for part in (rows, heard)
        )

        assert some == all_rows


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, np.float32(0), Fraction(0)])
def test_weight_0_changes_nothing_online(cut, zero):
    before = cut._state(), len(cut)
    for score in (0.5, INF, 123.0, float(streams.uniform(50)[0][0])):
        for label in (0, 1):
            cut.update(score, label, zero)
            cut.revert(score, label, zero)
            cut.update_many([score], [label], [zero])
            cut.revert_many([score], [label], [zero])

    assert before == (cut._state(), len(cut))


def test_losses_of_0_change_nothing_online(any_cut):
    before = any_cut._state()
    any_cut.update(0.5, 0, 0.0)
    any_cut.revert(123.0, 0, -0.0)
    any_cut.update_many([0.5, INF], [0, 0], [0.0, 0.0])
    any_cut.revert_many([0.5, 7.0], [0, 0], [0, 0])

    assert before == any_cut._state()
    best = optimal_cut([0.2, 0.4, 0.8], [0, 0, 1], [1, 0, 0])
    assert (0.2, 0.8) == (best.lower, best.upper)


def test_a_row_of_weight_0_is_still_checked(cut):
    """Leaving a row out does not make nonsense welcome."""
    refused(cut, ValueError, ["nan"], cut.update, NAN, 1, 0)
    refused(cut, ValueError, ["label"], cut.update, 0.5, 2, 0)


# Revert of what is not held.


def test_not_held_is_a_key_error_with_a_readable_message(cut):
    with pytest.raises(KeyError) as caught:
        cut.revert(123.0, 1)

    assert isinstance(caught.value, NotHeld)
    assert str(caught.value).startswith("cannot revert score 123.0: ")
    assert "49 samples, 49 distinct scores" in str(caught.value)


def test_reverting_what_is_not_held_is_refused():
    cut = SmallNodeThreshold(false_positive=2)
    cut.update_many([0.25, 0.25, 0.5, 0.75], [0, 1, 1, 0], [1, 2, 0.5, 2**40])
    for sample in [
        (0.3, 1),
        (0.25, 1, 3),
        (0.25, 1, 2.25),
        (0.25, 0, 2),
        (0.5, 0, 0.5),
        (0.5, 1, 0.25),
        (0.5, 1, 1),
        (0.75, 0, 2**40 + 1),
        (0.75, 0, 2**39),
        (0.75, 1, 2**40),
        (INF, 1),
        (-INF, 0),
        (0.5, 1, 2.0**-20),
    ]:
        refused(cut, NotHeld, ["cannot revert", repr(sample[0])], cut.revert, *sample)
        rows = [[value] for value in sample]
        refused(cut, NotHeld, ["cannot revert", repr(sample[0])], cut.revert_many, *rows)


@pytest.mark.parametrize("weight", [2**61, 2**62, 2**70, 1e30, 1e300])
def test_reverting_more_than_could_ever_be_held_is_not_held(cut, weight):
    """Nothing is added by a revert, so nothing overflows."""
    score = float(streams.uniform(50)[0][1])
    refused(cut, NotHeld, ["cannot revert"], cut.revert, score, 1, weight)
    refused(cut, NotHeld, ["cannot revert"], cut.revert_many, [score], [1], [weight])


def test_reverting_more_often_than_added_is_refused():
    cut = OnlineThreshold()
    cut.update(0.5, 1)
    cut.update(0.5, 1)
    refused(cut, NotHeld, ["0.5"], cut.revert_many, [0.5] * 3, [1] * 3)
    cut.revert(0.5, 1)
    cut.revert(0.5, 1)
    refused(cut, NotHeld, ["0.5", "0 samples"], cut.revert, 0.5, 1)
    refused(cut, NotHeld, ["0.5"], cut.revert_many, [0.5], [1])


def test_reverting_all_the_weight_of_a_score_but_not_all_its_samples_is_refused():
    """A sample would be left that costs nothing, and such a sample was never added."""
    cut = OnlineThreshold()
    cut.update_many([0.5, 0.5, 0.75], [1, 1, 0])
    refused(cut, NotHeld, ["0.5"], cut.revert, 0.5, 1, 2)
    refused(cut, NotHeld, ["0.5"], cut.revert_many, [0.5], [1], [2])
    cut.revert_many([0.5, 0.5], [1, 1])

    assert (1, INF) == (len(cut), cut.threshold)


def test_reverting_many_changes_nothing_when_one_is_not_held(cut):
    scores, labels = streams.uniform(50)
    rows = scores[1:30].copy(), labels[1:30], np.arange(1, 30) / 4
    rows[0][17] = 0.123
    refused(cut, NotHeld, ["cannot revert score 0.123"], cut.revert_many, *rows)
    rows[0][17] = scores[18]
    cut.revert_many(*rows)
    cut._check()
    other = SmallNodeThreshold(false_negative=3)
    other.update_many(scores[30:], labels[30:], np.arange(30, 50) / 4)

    assert other._state() == cut._state()


def test_reverting_losses_that_are_not_held_is_refused():
    cut = streams.SmallNodeCut()
    cut.update(0.5, -1, 2)
    for sample in [(0.4, -1, 2), (0.5, 2, -1), (0.5, -1, 1), (0.5, -1, 2.5), (0.5, -2, 4)]:
        refused(cut, NotHeld, [repr(sample[0])], cut.revert, *sample)
        refused(cut, NotHeld, [repr(sample[0])], cut.revert_many, *([x] for x in sample))
    cut.update(0.6, 1, 1)
    refused(cut, NotHeld, ["0.5"], cut.revert_many, [0.6, 0.5, 0.5], [1, -1, -1], [1, 2, 2])
    cut.revert(0.5, -1, 2)
    cut.revert(0.6, 1, 1)

    assert streams.SmallNodeCut()._state() == cut._state()


# Losses that would overflow, or vanish.


def named_unit(message):
    """The unit that an error proposes."""
    return float(re.search(r"unit=([0-9.e+-]*[0-9])", message).group(1))


TOO_LARGE = [2**62, 2**62 + 2**20, 2**63, 2**64, 2**70, 1e19, 1e20, 1e25, 1e30]


@pytest.mark.parametrize("weight", TOO_LARGE, ids=repr)
@pytest.mark.parametrize("cost", [1, 7, 1000])
def test_losses_that_would_overflow_name_a_unit_that_fits(weight, cost):
    cut = OnlineThreshold(false_negative=cost)
    cut.update(0.25, 0, 3)
    told = refused(cut, OverflowError, ["2**62", "unit="], cut.update, 0.5, 1, weight)
    again = refused(cut, OverflowError, ["unit="], cut.update_many, [0.5, 1], [1, 1], [weight, 1])
    with pytest.raises(OverflowError) as caught:
        optimal_threshold([0.5], [1], weights=[weight], false_negative=cost)
    for message in (told, again, str(caught.value)):
        unit = named_unit(message)
        coarse = OnlineThreshold(false_negative=cost, unit=unit)
        coarse.update(0.5, 1, weight)
        coarse.update_many([0.75], [0], [weight])
        best = optimal_threshold(
            [0.75, 0.5], [0, 1], weights=[weight, weight], false_negative=cost, unit=unit
        )

        assert coarse.optimum == best
        assert math.isclose(float(weight), best.loss, rel_tol=1e-9)


@pytest.mark.parametrize("weight", TOO_LARGE, ids=repr)
def test_any_losses_that_would_overflow_name_a_unit_that_fits(weight):
    cut = OnlineCut()
    cut.update(0.25, 0, 3)
    for losses in ([weight, 1], [1, -weight], [weight, weight]):
        told = refused(cut, OverflowError, ["2**62", "unit="], cut.update, 0.5, *losses)
        rows = [0.5], losses[:1], losses[1:]
        again = refused(cut, OverflowError, ["unit="], cut.update_many, *rows)
        with pytest.raises(OverflowError) as caught:
            optimal_cut(*rows)
        for message in (told, again, str(caught.value)):
            coarse = OnlineCut(unit=named_unit(message))
            # A loss of 1 is nothing in this unit, and would be refused as well.
            coarse.update(0.5, *(0 if loss == 1 else loss for loss in losses))

            assert 1 == len(coarse)


@pytest.mark.parametrize("weight", [1e40, 1e300, 2**200])
def test_losses_that_no_unit_can_hold_are_not_told_to_choose_one(cut, weight):
    told = refused(cut, OverflowError, ["smaller"], cut.update, 0.5, 1, weight)
    again = refused(cut, OverflowError, ["smaller"], cut.update_many, [0.5], [1], [weight])
    with pytest.raises(OverflowError, match="smaller") as caught:
        optimal_threshold([0.5], [1], weights=[weight])
    for message in (told, again, str(caught.value)):
        assert "unit=" not in message


def test_many_losses_that_overflow_together_name_a_unit_that_fits():
    scores, labels = streams.uniform(3_000)
    weights = np.full(3_000, 2**52)
    cut = OnlineThreshold()
    cut.update(0.5, 1)
    told = refused(cut, OverflowError, ["2**62"], cut.update_many, scores, labels, weights)
    with pytest.raises(OverflowError, match=r"2\*\*62") as caught:
        optimal_threshold(scores, labels, weights=weights)
    for message in (told, str(caught.value)):
        coarse = OnlineThreshold(unit=named_unit(message))
        coarse.update_many(scores, labels, weights)
        assert 3_000 == len(coarse)


def test_a_sum_that_overflows_at_last_leaves_what_was_held():
    cut = OnlineThreshold()
    cut.update_many([0.1, 0.2, 0.3], [0, 1, 0], [2**60, 2**60, 2**61 - 1])
    told = refused(cut, OverflowError, ["2**62", "Nothing was added"], cut.update, 0.4, 1)
    refused(cut, OverflowError, ["2**62"], cut.update_many, [0.4], [1])
    coarse = OnlineThreshold(unit=named_unit(told))
    coarse.update_many([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], [2**60, 2**60, 2**61 - 1, 10**9])

    assert 4 == len(coarse)


def test_a_finer_weight_that_would_make_the_rest_overflow_is_refused():
    """Measured in 2**-20, what is held already is a million times as many units."""
    cut = OnlineThreshold()
    cut.update(0.1, 0, 2**50)
    refused(cut, OverflowError, ["2**62", "unit="], cut.update, 0.2, 1, 2.0**-20)
    refused(cut, OverflowError, ["2**62"], cut.update_many, [0.2], [1], [2.0**-20])
    cut.update(0.2, 1, 2.0**-11)

    assert 2 == len(cut)


@pytest.mark.parametrize("weight", [2.0**-22, 1e-7, 3.7e-8, 1e-9, 1e-12, 1e-15, 2e-17])
def test_a_weight_that_would_be_lost_names_a_finer_unit(cut, weight):
    told = refused(cut, ValueError, ["weight", repr(weight), "unit="], cut.update, 0.5, 1, weight)
    rows = [0.25, 0.5], [0, 1], [0, weight]
    again = refused(cut, ValueError, ["weights[1]", repr(weight)], cut.update_many, *rows)
    with pytest.raises(ValueError, match=r"weights\[1\].*unit=") as caught:
        optimal_threshold(*rows[:2], weights=rows[2])
    for message in (told, again, str(caught.value)):
        unit = named_unit(message)
        finer = OnlineThreshold(unit=unit)
        finer.update(0.5, 1, weight)
        finer.update_many(*rows)
        finer.update(0.75, 0, weight)

        assert 3 == len(finer)
        assert 0 < finer.loss < 2 * weight


@pytest.mark.parametrize("loss", [1e-7, -3.7e-8, 1e-12])
def test_a_loss_that_would_be_lost_names_a_finer_unit(any_cut, loss):
    told = refused(any_cut, ValueError, ["below", "unit="], any_cut.update, 0.5, loss, 1)
    rows = [0.25, 0.5], [0, 0], [1, loss]
    again = refused(any_cut, ValueError, ["above[1]", "unit="], any_cut.update_many, *rows)
    for message in (told, again):
        finer = OnlineCut(unit=named_unit(message))
        finer.update(0.5, loss, 0)
        assert 1 == len(finer)


@pytest.mark.parametrize("weight", [0.004, 0.005, 0.00499999])
def test_less_than_half_a_unit_is_an_error_and_never_a_silent_loss(weight):
    cents = OnlineThreshold(unit=0.01)
    if Fraction(weight) > Fraction(1, 200):
        cents.update(0.5, 0, weight)
        assert 1 == len(cents)
        return
    told = refused(cents, ValueError, ["1/100", "lost"], cents.update, 0.5, 0, weight)
    finer = OnlineThreshold(unit=named_unit(told))
    finer.update(0.5, 0, weight)

    assert 1 == len(finer)


# Several threads.


def in_threads(jobs):
    """Start all jobs at the same moment and switch between them as often as possible."""
    ready = threading.Barrier(len(jobs))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(jobs)) as pool:
            futures = [pool.submit(lambda job=job: (ready.wait(), job())) for job in jobs]
            for future in futures:
                future.result()
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("model", [OnlineThreshold, SmallNodeThreshold])
def test_threads_sharing_one_object_leave_what_one_thread_would(model):
    scores, labels = streams.few_distinct_scores(24_000)
    scores = scores + np.repeat(np.arange(100), 240)
    weights = np.random.default_rng(9).integers(1, 64, 24_000) / 8
    shared = model(false_negative=2)

    def many(part):
        for piece in np.array_split(part, 20):
            shared.update_many(scores[piece], labels[piece], weights[piece])
            shared.revert_many(scores[piece[::2]], labels[piece[::2]], weights[piece[::2]])

    def single(part):
        for n in part[:3_000].tolist():
            shared.update(scores[n], labels[n], weights[n])
            if n % 2:
                shared.revert(scores[n], labels[n], weights[n])

    def read():
        for _ in range(60):
            best = shared.optimum
            assert best.loss >= 0
            assert len(shared.curve()) >= 1
            pickle.loads(pickle.dumps(shared))._check()
            shared._check()

    parts = np.array_split(np.arange(24_000), 4)
    in_threads(
        [
            lambda: many(parts[0]),
            lambda: many(parts[1]),
            lambda: single(parts[2]),
            lambda: single(parts[3]),
            read,
            read,
        ]
    )
    shared._check()
    sequential = model(false_negative=2)
    left = [piece[1::2] for part in parts[:2] for piece in np.array_split(part, 20)]
    left += [part[:3_000][part[:3_000] % 2 == 0] for part in parts[2:]]
    for piece in left:
        sequential.update_many(scores[piece], labels[piece], weights[piece])

    assert sequential._state() == shared._state()
    assert sequential.optimum == shared.optimum


def test_errors_in_one_thread_do_not_disturb_another():
    shared = OnlineThreshold()

    def add():
        for n in range(2_000):
            shared.update(n % 50, n % 2)

    def fail():
        for _ in range(500):
            with pytest.raises(NotHeld):
                shared.revert(-1.0, 1)
            with pytest.raises(ValueError, match="nan"):
                shared.update_many([0.5, NAN], [1, 1])
            with pytest.raises(OverflowError):
                shared.update(0.5, 1, 2**62)

    in_threads([add, fail, add, fail])
    shared._check()
    sequential = OnlineThreshold()
    sequential.update_many(np.tile(np.arange(2_000) % 50, 2), np.tile(np.arange(2_000) % 2, 2))

    assert sequential._state() == shared._state()


def test_a_weight_that_calls_back_finds_the_object_usable():
    """What a number does when it is read happens before the object is taken."""
    cut = OnlineThreshold()

    class Busy(float):
        def __float__(self):
            cut.update(0.1, 0)
            return 2.0

    class Index:
        def __index__(self):
            cut.update(0.2, 0)
            return 3

    cut.update(0.5, 1, Index())
    cut.update(Busy(0.5), 1)
    cut._check()

    assert same(0.35, cut.threshold)
    assert 3 == len(cut)
