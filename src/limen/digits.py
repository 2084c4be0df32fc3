# SPDX-License-Identifier: Apache-2.0
"""Numbers for people: few digits with the threshold inside its gap, and few points of a curve."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from operator import le, lt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["apart", "difference", "downsample", "gap", "plain", "within"]

_DIGITS = 6
_ALL_DIGITS = 17  # enough to distinguish all doubles


def plain(number: float, digits: int = _DIGITS) -> str:
    """Write a number with so many digits, or all that stand before the point.

    >>> plain(1250.0), plain(0.40696256872), plain(1728612.25), plain(float("inf"))
    ('1,250', '0.406963', '1,728,612', 'inf')
    """
    size = abs(number)
    if not (size == 0 or 1e-4 <= size < 1e15):
        return f"{number:.{digits}g}"
    places = 0 if number == round(number) else max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{number:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def difference(one: float, other: float) -> float:
    """Subtract two numbers as the decimals that they print as.

    >>> 0.15 - 0.1, difference(0.15, 0.1)
    (0.04999999999999999, 0.05)
    """
    if not (math.isfinite(one) and math.isfinite(other)):
        return one - other
    return float(Fraction(repr(float(one))) - Fraction(repr(float(other))))


def apart(numbers: Iterable[float], digits: int = 4) -> int:
    """Return how many digits make these numbers differ.

    >>> apart([0.25, 0.5]), apart([0.16068, 0.16073])
    (4, 5)
    """
    different = {0.0 + number for number in numbers if not math.isnan(number)}
    while digits < _ALL_DIGITS and len({f"{each:.{digits}g}" for each in different}) < len(
        different
    ):
        digits += 1
    return digits


def within(
    threshold: float,
    lower: float | None,
    upper: float | None,
    digits: int = _DIGITS,
    direction: str = ">=",
) -> str:
    """Write a threshold with as many digits as put it above `lower` and not above `upper`.

    With the direction ``"<="``, not below `lower` and below `upper`.

    >>> within(0.16068412, 0.1606840996, 0.1606841447)
    '0.1606841'
    """
    above, below = (lt, le) if direction == ">=" else (le, lt)
    for more in range(digits, _ALL_DIGITS + 1):
        text = plain(threshold, more)
        at = _read(text)
        if (lower is None or above(lower, at)) and (upper is None or below(at, upper)):
            return text
    return repr(threshold)


def gap(
    lower: float, threshold: float, upper: float, direction: str = ">="
) -> tuple[str, str, str]:
    """Write a threshold and the ends of its gap, these rounded inwards, so that all stays true.

    >>> gap(0.1606840996, 0.16068412, 0.1606841447)
    ('0.1606840996', '0.1606841', '0.16068414')
    """
    text = within(threshold, lower, upper, direction=direction)
    return _end(lower, text, ROUND_CEILING), text, _end(upper, text, ROUND_FLOOR)


def _end(end: float, text: str, rounding: str) -> str:
    """Write the end of a gap with as many digits as leave the threshold inside it."""
    if math.isinf(end):
        return plain(end)
    inside = _read(text)
    for digits in range(_DIGITS, _ALL_DIGITS + 1):
        rounded = float(Context(digits, rounding).create_decimal(Decimal(end)))
        for shown in (plain(end, digits), plain(rounded, digits)):
            at = _read(shown)
            if at == end or end <= at < inside or inside < at <= end:
                return shown
    return repr(end)


def downsample(heights: NDArray[Any], stretches: int) -> list[int]:
    """Choose the places of a curve to draw: the lowest and the highest of each stretch. O(n).

    The ends are among them, and the last of the lowest, which is the optimum of a loss curve.

    >>> import numpy as np
    >>> downsample(np.array([3, 2, 1, 2, 9, 8, 7, 6]), 2)
    [0, 2, 4, 7]
    """
    count = len(heights)
    if count <= 2 * stretches:
        return list(range(count))
    places = {0, count - 1, count - 1 - int(heights[::-1].argmin())}
    edges = [count * at // stretches for at in range(stretches + 1)]
    for start, end in pairwise(edges):
        stretch = heights[start:end]
        places |= {start + int(stretch.argmin()), start + int(stretch.argmax())}
    return sorted(places)


def _read(text: str) -> float:
    return float(text.replace(",", ""))
