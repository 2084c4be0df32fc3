# SPDX-License-Identifier: Apache-2.0
"""The four problems of the paper and the cost matrix, as losses on either side of the cut."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen import OnlineCut, losses, optimal_cut, optimal_threshold

rows = st.lists(
    st.tuples(st.integers(-5, 5), st.integers(0, 1), st.integers(0, 4)), min_size=1, max_size=30
)


@given(rows, st.integers(1, 9), st.integers(1, 9))
def test_classification_losses_give_the_optimal_threshold(samples, positive, negative) -> None:
    scores, labels, weights = (list(column) for column in zip(*samples, strict=True))
    pair = losses.classification(
        labels, false_positive=positive, false_negative=negative, weights=weights
    )
    expected = optimal_threshold(
        scores, labels, false_positive=positive, false_negative=negative, weights=weights
    )
    cut = OnlineCut()
    cut.update_many(scores, *pair)

    assert expected == optimal_cut(scores, *pair)
    assert expected == cut.optimum


@given(rows, st.integers(1, 9))
def test_the_z_of_classification_is_that_of_the_paper(samples, alpha) -> None:
    """Problem 3: z = beta - beta (alpha + 1) y; beta = 1 is problem 2, alpha = 1 problem 1."""
    labels = np.array([label for _, label, _ in samples])
    beta = np.array([weight for _, _, weight in samples])
    below, above = losses.classification(labels, false_negative=alpha, weights=beta)

    assert (beta - beta * (alpha + 1) * labels).tolist() == (above - below).tolist()


@given(st.lists(st.integers(-9, 9)), st.integers(-3, 3), st.integers(0, 5))
def test_linear_losses_are_z_times_the_output(z, low, width) -> None:
    below, above = losses.linear(z, outputs=(low, low + width))

    assert [low * value for value in z] == below.tolist()
    assert [(low + width) * value for value in z] == above.tolist()


def test_outputs_must_ascend() -> None:
    with pytest.raises(ValueError, match=r"outputs must ascend, got \(1, 0\)"):
        losses.linear([1], outputs=(1, 0))


def test_a_cost_matrix_takes_one_cost_or_one_per_row() -> None:
    below, above = losses.cost_matrix([1, 0, 1, 0], tp=-1, fp=[0, 2, 0, 3], fn=[10, 0, 20, 0], tn=1)

    assert [10, 1, 20, 1] == below.tolist()
    assert [-1, 2, -1, 3] == above.tolist()


def test_a_plain_cost_matrix_is_classification_error() -> None:
    labels = [0, 1, 1, 0]
    for matrix, plain in zip(
        losses.cost_matrix(labels), losses.classification(labels), strict=True
    ):
        assert plain.tolist() == matrix.tolist()


def test_whole_numbers_stay_whole_and_others_become_doubles() -> None:
    whole = losses.classification([0, 1], false_negative=5)
    halves = losses.classification([0, 1], false_negative=0.5)
    fraction = losses.classification([0, 1], false_negative=Fraction(4, 2))

    assert [np.int64] * 2 == [column.dtype for column in whole]
    assert [0.0, 0.5] == halves[0].tolist()
    assert np.int64 == fraction[0].dtype


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: losses.classification([0, 2]), r"got 2 at labels\[1\]"),
        (lambda: losses.classification([0, 1], weights=[1]), "labels has 2, weights has 1"),
        (lambda: losses.cost_matrix([0, 1], fn=[1, 2, 3]), "labels has 2, fn has 3"),
    ],
)
def test_bad_columns_are_told(call, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()


def test_products_never_wrap_around() -> None:
    with pytest.raises(OverflowError, match="false_negative=1000"):
        losses.classification([1], false_negative=1000, weights=[2**60])
