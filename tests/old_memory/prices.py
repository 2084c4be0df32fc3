# SPDX-License-Identifier: Apache-2.0
"""What answers cost, in whole numbers that add up without drift."""

from __future__ import annotations

from fractions import Fraction
from math import ldexp
from typing import TYPE_CHECKING, Any

from limen._core import finest_bits
from limen.units import exact_costs, exact_unit

if TYPE_CHECKING:
    from limen.units import Cost

__all__ = ["Prices"]


class Prices:
    """What answers cost, exactly: whole numbers of a grain that every loss is a multiple of.

    >>> prices = Prices(None, (0.1, 0.3))
    >>> prices.number(3 * prices.losses((1,), weight=2)[0])
    1.8
    """

    def __init__(self, unit_given: Cost | None, costs: tuple[Cost, Cost] | None) -> None:
        unit, scale = exact_unit(unit_given), Fraction(1)
        self.false_positive = self.false_negative = 1
        if costs is not None:
            self.false_positive, self.false_negative, scale = exact_costs(*costs)
        self.unit = unit
        self.bits = 0 if unit is None else finest_bits  # binary places that any number needed
        self.grain = scale * (Fraction(1, 2**finest_bits) if unit is None else unit)

    def resume(self, bits: int) -> None:
        """Go on with as many binary places as numbers needed before."""
        if not self.bits <= bits <= finest_bits:
            raise ValueError(f"bits is {bits!r}")
        self.bits = bits

    def grains(self, number: int | float) -> int:
        """Round a number once to the nearest unit, ties to even, as the model does."""
        if self.unit is not None:
            return round(Fraction(number) / self.unit)
        if type(number) is int:
            return number << finest_bits
        grains = round(ldexp(number, finest_bits))
        if self.bits < finest_bits and grains:
            zeros = (grains & -grains).bit_length() - 1
            self.bits = max(self.bits, finest_bits - zeros)
        return grains

    def losses(self, outcome: tuple[Any, ...], weight: int | float) -> tuple[int, int]:
        """Tell what a sample of this label, or of these losses, costs below and above the cut."""
        if len(outcome) == 2:
            return self.grains(outcome[0]), self.grains(outcome[1])
        grains = self.grains(weight)
        if outcome[0]:
            return grains * self.false_negative, 0
        return 0, grains * self.false_positive

    def of(self, loss: float) -> int:
        """Find the whole number whose nearest double is this loss."""
        finer = finest_bits - self.bits
        units: int = round(Fraction(loss) / (self.grain * 2**finer))
        return units << finer

    def number(self, grains: int) -> float:
        """Return the nearest double of so many grains."""
        return float(grains * self.grain)
