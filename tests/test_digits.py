# SPDX-License-Identifier: Apache-2.0
"""Numbers for people: a threshold that is shown decides as the exact one does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen import Optimum
from limen.digits import downsample, gap, plain, within

DOUBLES = st.floats(allow_nan=False)
NEAR = st.tuples(DOUBLES, st.integers(1, 9)).map(lambda at: (at[0], _after(*at)))


def _after(number: float, steps: int) -> float:
    for _ in range(steps):
        number = math.nextafter(number, math.inf)
    return number


def _read(text: str) -> float:
    return float(text.replace(",", ""))


@given(st.tuples(DOUBLES, DOUBLES) | NEAR)
def test_a_shown_threshold_lies_inside_its_gap_and_the_shown_gap_inside_the_real_one(ends) -> None:
    lower, upper = sorted(ends)
    if lower == upper:
        return
    threshold = Optimum(lower, upper, 0.0).threshold
    below, shown, above = gap(lower, threshold, upper)

    assert shown == within(threshold, lower, upper)
    assert lower <= _read(below) < _read(shown) <= _read(above) <= upper


@given(DOUBLES)
def test_a_threshold_at_the_end_needs_no_other_end(score) -> None:
    assert within(-math.inf, None, score) == "-inf"
    assert within(math.inf, score, None) in ("inf", repr(math.inf))
    assert within(math.nan, math.inf, None) == "nan"


def test_wide_gaps_are_shown_with_six_digits_and_narrow_ones_with_more() -> None:
    assert gap(0.384730237633523, 0.38526891331906543, 0.38580758900460793) == (
        *("0.384731", "0.385269", "0.385807"),
    )
    assert "0.1606841" == within(0.160684109, 0.16068409966, 0.1606841183)


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (721_204.0, "721,204"),
        (1_728_612.4, "1,728,612"),
        (-1_728_612.4, "-1,728,612"),
        (999_999.96, "1,000,000"),
        (123_456.789, "123,457"),
        (0.000123456789, "0.000123457"),
        (0.0000123456789, "1.23457e-05"),
        (0.5, "0.5"),
        (0.0, "0"),
        (1e308, "1e+308"),
        (2.0**53, "9.0072e+15"),
        (math.inf, "inf"),
        (math.nan, "nan"),
    ],
)
def test_digits_before_the_point_are_all_shown(number, shown) -> None:
    assert shown == plain(number)


def test_a_long_curve_is_thinned_but_keeps_its_lowest_and_highest_points() -> None:
    losses = np.abs(np.arange(100_000) % 7919 - 3000.0) + 1
    kept = downsample(losses, 1000)

    assert len(kept) <= 2 * 1000 + 3
    assert {0, 99_999, int((losses == losses.min()).nonzero()[0][-1])} <= set(kept)
    assert (losses.min(), losses.max()) == (losses[kept].min(), losses[kept].max())
    assert list(range(2000)) == downsample(losses[:2000], 1000)
