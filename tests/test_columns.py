# SPDX-License-Identifier: Apache-2.0
"""Whatever `numpy.asarray` takes is taken without surprise, or refused with its place."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import limen
from limen import OnlineThreshold, optimal_threshold
from limen.columns import as_labels, as_numbers, as_scores, require_same_length

SCORES = [0.0, 1.0, 2.0, 3.0]


def at_an_odd_address(values, dtype) -> np.ndarray:
    """As arrays out of files and messages often are."""
    array = np.array(values, dtype)
    return np.frombuffer(b"x" + array.tobytes(), dtype, offset=1)


@pytest.mark.parametrize(
    "given",
    [
        [0, 1, 2, 3],
        (0.0, 1.0, 2.0, 3.0),
        range(4),
        np.arange(4, dtype=np.int8),
        np.arange(4, dtype=np.uint64),
        np.arange(4, dtype=np.float16),
        np.arange(4, dtype=np.float32),
        np.arange(4, dtype=">f8"),
        np.arange(8.0)[::2] / 2,
        np.asfortranarray(np.arange(4.0)),
        np.array([0, 1.0, Fraction(2), Decimal(3)], dtype=object),
        [np.float64(0), np.int64(1), True + 1, 3],
    ],
)
def test_scores_of_any_kind_of_number_are_the_same_scores(given) -> None:
    found = as_scores(given)

    assert (np.float64, SCORES) == (found.dtype, found.tolist())
    assert found.flags.c_contiguous


def test_read_only_arrays_are_read() -> None:
    scores, labels = np.arange(4.0), np.array([0, 0, 1, 1])
    for array in (scores, labels):
        array.setflags(write=False)

    assert 1.5 == optimal_threshold(scores, labels).threshold


def test_a_float32_score_is_the_double_of_the_same_value() -> None:
    """Not the double that was rounded to it: 0.1 as float32 lies above 0.1."""
    scores = np.array([0.1, 0.3], dtype=np.float32)

    assert [float(np.float32(0.1)), float(np.float32(0.3))] == as_scores(scores).tolist()
    best = optimal_threshold(np.append(scores, 0.1), [1, 1, 0])
    assert (0.1, float(np.float32(0.1))) == (best.lower, best.upper)


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_whole_scores_that_no_double_can_hold_are_refused(value: int) -> None:
    with pytest.raises(ValueError, match=rf"scores\[1\] is {value}, which has no exact float64"):
        as_scores([0, value])
    with pytest.raises(ValueError, match="no exact float64"):
        OnlineThreshold().update(value, 1)


def test_whole_scores_that_a_double_can_hold_are_taken() -> None:
    assert [2.0**53, 2.0**60] == as_scores([2**53, 2**60]).tolist()


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        (["0.5", "0.6"], TypeError, "scores must be numbers"),
        ([0.5, None], TypeError, r"scores\[1\] is None"),
        (np.array([0.5, "0.6"], dtype=object), TypeError, r"scores\[1\] is '0.6'"),
        ([1 + 2j], TypeError, "scores must be numbers"),
        (np.array(["2020-01-01"], dtype="M8[D]"), TypeError, "scores must be numbers"),
        ([[0.1, 0.9], [0.2, 0.8]], ValueError, r"shape \(2, 2\).*predict_proba\(X\)\[:, 1\]"),
        (0.5, ValueError, r"one-dimensional, got shape \(\)"),
        (np.ma.masked_array([0.1, 0.2], mask=[False, True]), ValueError, r"scores\[1\] is masked"),
    ],
)
def test_what_is_no_column_of_scores_is_refused_with_its_place(given, error, told: str) -> None:
    with pytest.raises(error, match=told):
        as_scores(given)


@pytest.mark.parametrize("read", [as_scores, as_labels, lambda given: as_numbers(given, "weights")])
def test_a_single_column_of_a_table_is_a_column(read) -> None:
    assert read(np.array([0, 1, 1])).tolist() == read(np.array([[0], [1], [1]])).tolist()


def test_a_generator_is_refused() -> None:
    with pytest.raises(ValueError, match="one-dimensional"):
        as_scores(score for score in SCORES)


def test_a_masked_array_without_masked_values_is_taken() -> None:
    assert [0.1, 0.2] == as_scores(np.ma.masked_array([0.1, 0.2])).tolist()


@pytest.mark.parametrize(
    "given",
    [
        [0, 1, 1],
        [False, True, True],
        [0.0, 1.0, 1.0],
        *(np.array([0, 1, 1], dtype=kind) for kind in "?bBhHiIlLqQefdg"),
        np.array([0, 1, True], dtype=object),
        [np.bool_(False), np.int64(1), 1],
    ],
)
def test_labels_of_any_kind_of_number_are_the_same_labels(given) -> None:
    found = as_labels(given)

    assert (np.uint8, [0, 1, 1]) == (found.dtype, found.tolist())


@pytest.mark.parametrize(
    "given", [[0, 2], [0, -1], [0, 0.5], [0, math.nan], [0, math.inf], [0, 2**40], [0, 1 + 2**-40]]
)
def test_labels_other_than_0_and_1_are_refused_with_place_and_value(given) -> None:
    with pytest.raises(ValueError, match=r"labels must be 0 or 1, got .* at labels\[1\]"):
        as_labels(given)


@pytest.mark.parametrize("given", [["yes", "no"], [b"1", b"0"]])
def test_labels_of_text_are_refused(given) -> None:
    with pytest.raises(ValueError, match=r"labels must be 0 or 1, got b?'.*' at labels\[0\]"):
        as_labels(given)


def test_swapped_arguments_are_recognised() -> None:
    with pytest.raises(ValueError, match=r"got 0.3 at labels\[0\].*Scores come first"):
        as_labels([0.3, 0.7], np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="labels == positive"):
        as_labels([3, 7], np.array([0.2, 1.0]))


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ([1, 2], np.int64),
        ([True, False], np.int64),
        (np.array([1, 2], dtype=np.uint8), np.int64),
        ([1.0, 2.5], np.float64),
        (np.array([1, 2], dtype=np.float32), np.float64),
        ([Fraction(1, 2), Decimal("0.25")], np.float64),
        ([2**62, 1], np.int64),
    ],
)
def test_whole_numbers_stay_whole(given, kind) -> None:
    found = as_numbers(given, "weights")

    assert (kind, [float(value) for value in given]) == (found.dtype, found.astype(float).tolist())


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ([1, 10**400], OverflowError, r"weights\[1\] is too large"),
        (["1"], TypeError, "weights must be numbers"),
        ([[1.0, 2.0]], ValueError, "one-dimensional"),
    ],
)
def test_what_is_no_column_of_numbers_is_refused(given, error, told: str) -> None:
    with pytest.raises(error, match=told):
        as_numbers(given, "weights")


def test_lengths_that_differ_are_told_by_name() -> None:
    with pytest.raises(ValueError, match="scores has 2, labels has 3"):
        require_same_length(scores=np.zeros(2), labels=np.zeros(3), weights=None)


# Bytes, long doubles and periods.


MASK = np.array([0, 255, 2, 0, 1, 0, 128, 0] * 100, np.uint8)


def test_true_may_be_any_byte_that_is_not_0():
    scores = np.arange(800) % 37
    odd, plain = MASK.view(bool), MASK != 0
    expected = optimal_threshold(scores, plain, false_negative=3)
    assert optimal_threshold(scores, odd, false_negative=3) == expected
    weights = np.ones(800)
    assert optimal_threshold(scores, odd, false_negative=3, weights=weights) == expected
    np.testing.assert_array_equal(as_labels(odd), plain.astype(np.uint8))
    np.testing.assert_array_equal(as_labels(odd, positive=True), plain.astype(np.uint8))
    for strided in (odd[::2], odd[::-1]):
        assert set(as_labels(strided).tolist()) == {0, 1}


def test_true_of_any_byte_is_one_label_everywhere():
    scores = np.arange(800) % 37
    odd, plain = MASK.view(bool), MASK != 0
    for model in (limen.OnlineThreshold, limen.OnlineCalibrator):
        one, other = model(), model()
        one.update_many(scores, odd)
        other.update_many(scores, plain)
        assert one.to_bytes() == other.to_bytes()
    for given in (odd, plain):
        below, above = limen.losses.classification(given)
        assert set(np.asarray(below).tolist()) == set(np.asarray(above).tolist()) == {0, 1}
    fits = [limen.isotonic(scores, given).probabilities for given in (odd, plain)]
    np.testing.assert_array_equal(*fits)
    groups = [limen.by_group(scores % 3, scores, given).thresholds() for given in (odd, plain)]
    assert groups[0] == groups[1]
    # As scores, weights and losses, where NumPy itself reads the bytes.
    assert limen.optimal_threshold(odd, odd).loss == 0
    assert (
        limen.optimal_threshold(scores, plain, weights=odd).loss
        == limen.optimal_threshold(scores, plain, weights=plain).loss
    )


@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="long doubles are doubles here")
def test_long_doubles_that_a_float64_cannot_tell_apart_are_refused():
    near = np.nextafter(np.longdouble(1), np.longdouble(2))
    for scores in (np.array([1, near]), [1.0, near], np.array([1.0, near], dtype=object)):
        with pytest.raises(ValueError, match=r"scores\[1\] is 1\.0.*no exact float64"):
            optimal_threshold(scores, [0, 1])
    with pytest.raises(ValueError, match="no exact float64"):
        as_scores(np.array([np.finfo(np.longdouble).max]))
    with pytest.raises(ValueError, match=r"score 1\.0.*no exact float64"):
        limen.OnlineThreshold().update(near, 1)
    fine = np.array([0.1, np.inf, -np.inf, 2.0**60], np.longdouble)
    np.testing.assert_array_equal(as_scores(fine), fine.astype(np.float64))
    model = limen.OnlineThreshold()
    model.update(np.longdouble(0.1), 1)
    model.revert(0.1, 1)


def test_an_integer_next_to_a_float_in_an_array_of_objects_is_not_rounded():
    with pytest.raises(ValueError, match=r"scores\[0\] is 9007199254740993"):
        as_scores(np.array([2**53 + 1, 0.5], dtype=object))


@pytest.mark.parametrize("unit", ["ns", "D"])
def test_a_period_is_no_label_score_or_weight(unit):
    periods = np.array([1, 0], f"m8[{unit}]")
    objects = np.array([periods[0], periods[1]], dtype=object)
    for labels in (periods, list(periods), objects):
        with pytest.raises(ValueError, match=r"labels must be 0 or 1, got .*at labels\[0\]"):
            as_labels(labels)
    for values in (periods, list(periods), objects):
        for read in (as_scores, lambda given: as_numbers(given, "weights")):
            with pytest.raises(TypeError, match="number"):
                read(values)


@pytest.mark.parametrize("unit", [2, 1e18, Fraction(1, 2**61)])
def test_nothing_can_be_added_in_any_unit(unit):
    for model in (limen.OnlineThreshold(unit=unit), limen.OnlineCalibrator(unit=unit)):
        model.update_many([], [])
        model.revert_many([], [])
        assert len(model) == 0
    assert optimal_threshold([], [], unit=unit).loss == 0
    assert len(limen.isotonic([], [], unit=unit)) == 0
    cut = limen.OnlineCut(unit=unit)
    cut.update_many([], [], [])
    cut.revert_many([], [], [])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_arrays_at_odd_addresses_are_moved_before_they_are_read(dtype) -> None:
    """The core reads whole numbers of 8 bytes at a time, which it may not do at any address."""
    given = at_an_odd_address([0, 1, 1], dtype)
    model = OnlineThreshold()
    model.update_many(given, given, given)

    assert not given.flags.aligned
    for found in (as_scores(given), as_numbers(given, "weights"), as_labels(given)):
        assert [0, 1, 1] == found.tolist()
        assert found.flags.aligned
    assert optimal_threshold(given, given).loss == model.loss == 0
