# SPDX-License-Identifier: Apache-2.0
"""Costs and units as exact fractions: 0.1 is a tenth, not the double next to it."""

from __future__ import annotations

import math
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import TYPE_CHECKING, SupportsFloat, TypeAlias

import numpy as np

from limen import _core

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

__all__ = [
    "Cost",
    "as_weights",
    "cost_parts",
    "exact_bound",
    "exact_costs",
    "exact_number",
    "exact_positive",
    "exact_unit",
    "unequal",
    "unit_parts",
]

Cost: TypeAlias = "int | float | Fraction | Decimal"

# A decimal with more places than this was computed rather than typed.
_PLACES = 10**9
_FINEST = 2**_core.finest_bits
# More than any double has. A longer number is no real cost, and slow to compute with.
_MOST_DIGITS = 400
_LONGEST = 10**_MOST_DIGITS


def exact_positive(value: Any, name: str) -> Fraction:
    """Read a positive number exactly; a float is the decimal that it prints as."""
    number = _as_typed(value, name)
    if number is None or number <= 0:
        raise ValueError(f"{name} must be a positive, finite number, got {value!r}.")
    return number


def exact_number(value: Any, name: str) -> Fraction:
    """Read any finite number exactly; a float is the decimal that it prints as.

    >>> exact_number(-0.1, "true_positive")
    Fraction(-1, 10)
    """
    number = _as_typed(value, name)
    if number is None:
        raise ValueError(f"{name} must be a finite number, got {value!r}.")
    return number


def _as_typed(value: Any, name: str) -> Fraction | None:
    number: Fraction | None = None
    if isinstance(value, float | np.floating):  # first, because it is the common one
        real = float(value)
        if math.isfinite(real):
            number = Fraction(*Decimal(repr(real)).as_integer_ratio())
    elif isinstance(value, bool | np.bool_ | str | bytes):
        pass
    elif isinstance(value, int | Rational | Decimal):
        _refuse_endless(value, name)
        with suppress(ValueError, OverflowError):  # a Decimal may be nan or infinite
            number = Fraction(value)
    elif isinstance(value, SupportsFloat):
        with suppress(TypeError, ValueError):  # an array may be one of many numbers
            return _as_typed(float(value), name)
    return number


def _refuse_endless(value: Any, name: str) -> None:
    """Raise ValueError for a number of so many digits that it takes minutes to work with."""
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        endless = (
            isinstance(exponent, int)  # a text where it is infinite or nan
            and bool(value)
            and (value.adjusted() > _MOST_DIGITS or exponent < -_MOST_DIGITS)
        )
    else:
        endless = max(abs(int(value.numerator)), int(value.denominator)) > _LONGEST
    if endless:
        shown = f"{value:.6g}" if isinstance(value, Decimal) else f"a longer {type(value).__name__}"
        raise ValueError(
            f"{name} must be a number of at most {_MOST_DIGITS} digits before and after the "
            f"point, got {shown}. Choose one with fewer digits."
        )


def exact_costs(false_positive: Cost, false_negative: Cost) -> tuple[int, int, Fraction]:
    """Return two whole numbers in the ratio of the costs, and the cost that 1 stands for.

    A float whose decimal has more than nine places is rounded to the nearest 2**-20.

    >>> exact_costs(0.1, 0.3)
    (1, 3, Fraction(1, 10))
    >>> exact_costs(100, 500)
    (1, 5, Fraction(100, 1))
    """
    try:
        return _exact_costs(false_positive, false_negative)
    except TypeError:  # what has no hash is no number: the error is raised below
        return _exact_costs.__wrapped__(false_positive, false_negative)


# Typed, because 0.1 is a tenth and the Fraction that equals it is not.
@lru_cache(maxsize=1024, typed=True)
def _exact_costs(false_positive: Cost, false_negative: Cost) -> tuple[int, int, Fraction]:
    costs = []
    for name, value in (("false_positive", false_positive), ("false_negative", false_negative)):
        cost = exact_positive(value, name)
        if cost.denominator > _PLACES and not isinstance(value, Rational | Decimal):
            cost = Fraction(round(cost * _FINEST), _FINEST)
            if cost == 0:
                raise ValueError(
                    f"{name} is {value!r}, which would round to 0. Only the ratio of the two "
                    "costs moves the threshold: scale both up, or pass a Fraction."
                )
        costs.append(cost)
    below = math.lcm(costs[0].denominator, costs[1].denominator)
    whole = [cost.numerator * (below // cost.denominator) for cost in costs]
    common = math.gcd(*whole)
    positive, negative = (number // common for number in whole)
    scale = Fraction(common, below)
    if max(positive, negative) >= _core.most_units:
        raise OverflowError(
            f"the ratio of false_positive={false_positive!r} to false_negative={false_negative!r} "
            "needs whole numbers of 2**62 or more. Choose costs with fewer digits."
        )
    return positive, negative, scale


def cost_parts(
    false_positive: Cost, false_negative: Cost, unit: Cost | None
) -> tuple[int, int, int, int, int, int]:
    """Return the two whole costs, then the parts of the unit as `unit_parts` does.

    >>> cost_parts(0.1, 0.3, None)
    (1, 3, 0, 0, 1, 10)
    """
    try:
        return _cost_parts(false_positive, false_negative, unit)
    except TypeError:  # as in exact_costs
        return _cost_parts.__wrapped__(false_positive, false_negative, unit)


@lru_cache(maxsize=1024, typed=True)
def _cost_parts(
    false_positive: Cost, false_negative: Cost, unit: Cost | None
) -> tuple[int, int, int, int, int, int]:
    positive, negative, scale = exact_costs(false_positive, false_negative)
    return (positive, negative, *unit_parts(exact_unit(unit), scale))


def unequal(false_positive: Any, false_negative: Any) -> bool:
    """Return whether two costs differ, or may differ because there is one for each row.

    >>> unequal(5, 5.0), unequal(1, 5), unequal([1, 1], 1)
    (False, True, True)
    """
    if any(np.ndim(cost) for cost in (false_positive, false_negative)):
        return True
    one, other, _ = exact_costs(false_positive, false_negative)
    return one != other


def exact_bound(bound: Cost, name: str) -> Fraction:
    """Read a share from 0 to 1 as the decimal it prints as.

    >>> exact_bound(0.9, "min_precision")
    Fraction(9, 10)
    """
    share = _as_typed(bound, name)
    if share is None or not 0 <= share <= 1:
        raise ValueError(f"{name} must be a share from 0 to 1, got {bound!r}.")
    return share


def exact_unit(unit: Cost | None) -> Fraction | None:
    """Read the unit as a fraction; None stays None.

    >>> exact_unit(0.01)
    Fraction(1, 100)
    """
    if unit is None:
        return None
    fraction = exact_positive(unit, "unit")
    if max(fraction.numerator, fraction.denominator) >= _core.most_units:
        raise ValueError(
            f"unit must be a fraction of whole numbers below 2**62, got {unit!r}. "
            "Choose one with fewer digits, or scale weights and costs."
        )
    return fraction


def unit_parts(unit: Fraction | None, scale: Fraction) -> tuple[int, int, int, int]:
    """Numerator and denominator of the unit (0 for automatic) and of what one loss unit is."""
    size = scale * (1 if unit is None else unit)
    if max(size.numerator, size.denominator) >= _core.most_units:
        raise OverflowError("unit and costs together need more than 62 bits; use fewer digits.")
    parts = (0, 0) if unit is None else (unit.numerator, unit.denominator)
    return (*parts, size.numerator, size.denominator)


def as_weights(units: NDArray[np.int64], unit: Fraction) -> NDArray[np.float64]:
    """Whole units as the weights they stand for, each rounded once."""
    largest = int(np.abs(units).max(initial=0)) * unit.numerator
    if max(largest, unit.denominator) < 2**53:
        return units * unit.numerator / unit.denominator
    each = (whole * unit.numerator / unit.denominator for whole in units.tolist())
    return np.fromiter(each, dtype=np.float64, count=len(units))
