# SPDX-License-Identifier: Apache-2.0
"""The maps and the units as SQL text that Spark and DuckDB read alike.

Every expression has a value for every double: Spark evaluates expressions also for rows that a
filter drops, and in its ANSI mode a cast that does not fit ends the query. A score that is NULL or
nan gets the number `REFUSED`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from limen import _core
from limen.narrowing.maps import LARGEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limen.narrowing.maps import Root
    from limen.narrowing.search import Kept

__all__ = [
    "AUTOMATIC",
    "REFUSED",
    "Dialect",
    "finer_steps",
    "literal",
    "ranges",
    "steps_of",
    "units_of",
]

REFUSED = -1
AUTOMATIC = Fraction(1, 2**_core.finest_bits)
_MOST_EXACT = 2**26  # a product with less is exact as the sum of two doubles
_SPLITTER = 2.0**27 + 1


class Dialect(NamedTuple):
    """How an engine writes what the others write differently."""

    entry: str  # of an array, counted from 0
    nearest: str  # whole number, ties to even


def literal(number: float) -> str:
    """Write a double so that both engines read that double.

    >>> literal(0.5), literal(1e300)
    ('0.5e0', '1e+300')
    """
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"


# The magnitude of a score in two steps; both have a value for every double.
_SIZE = f"least(abs(score), {literal(LARGEST)})"
_EXPONENT = f"least(floor(log2(greatest({_SIZE}, {literal(5e-324)}))), 1023)"
_KEY = f"(limen_e + 1100e0 + {_SIZE} / power(2e0, limen_e))"
_MAGNITUDE = f"CASE WHEN score = 0 THEN 0e0 WHEN score > 0 THEN {_KEY} ELSE -{_KEY} END"


def steps_of(root: Root, base: str, size: str, dialect: Dialect) -> Iterator[tuple[str, str]]:
    """Yield the name and the expression of each step from the score to the number.

    One projection for each: of one long expression Spark makes a method that the JVM never
    compiles. `base` and `size` are the arrays of the map.
    """
    v = "score"
    if root.by_magnitude:
        yield "limen_e", _EXPONENT
        yield "limen_v", _MAGNITUDE
        v = "limen_v"
    low, high = literal(root.low), literal(root.high)
    if not len(root.base):
        place = f"CAST(floor(({v} - {low}) * {literal(root.inverse)}) AS INT) + 1"
        # In both engines nan is above every number.
        yield (
            "number",
            f"CASE WHEN {v} >= {low} THEN CASE WHEN {v} <= {high} THEN {place} "
            f"WHEN score <= {literal(LARGEST)} THEN {root.above - 1} "
            f"WHEN isnan(score) THEN {REFUSED} ELSE {root.above} END "
            f"WHEN score >= {literal(-LARGEST)} THEN 1 "
            f"WHEN score IS NULL THEN {REFUSED} ELSE {root.below} END",
        )
        return
    clipped = f"least(greatest({v}, {low}), {high})"
    yield "limen_t", f"({clipped} - {low}) * {literal(root.inverse)}"
    yield "limen_c", "CAST(floor(limen_t) AS INT)"
    start = dialect.entry.format(array=base, place="limen_c")
    width = dialect.entry.format(array=size, place="limen_c")
    inside = f"CAST(floor({start} + (limen_t - limen_c) * {width}) AS INT)"
    yield (
        "number",
        f"CASE WHEN score IS NULL OR isnan(score) THEN {REFUSED} "
        f"WHEN score > {literal(LARGEST)} THEN {root.above} "
        f"WHEN score < {literal(-LARGEST)} THEN {root.below} ELSE {inside} END",
    )


def finer_steps() -> Iterator[tuple[str, str]]:
    """Yield the same for a row that has the columns of its entry in a level."""
    yield "limen_e", f"CASE WHEN by_magnitude THEN {_EXPONENT} ELSE 0 END"
    yield "limen_v", f"CASE WHEN by_magnitude THEN {_MAGNITUDE} ELSE score END"
    beyond = "greatest(0e0, limen_v - start) * stretch * scale"
    yield "finer", f"CAST(floor(least(base + {beyond}, last + 0.5e0)) AS INT)"


def ranges(kept: Kept, most: int = 16) -> str:
    """Write whether a score lies in one of the ranges; within the outermost where they are many."""
    first, last = kept.first, kept.last
    if len(first) > most:
        first, last = first[:1], last[-1:]
    each = zip(first.tolist(), last.tolist(), strict=True)
    return " OR ".join(f"score BETWEEN {literal(low)} AND {literal(high)}" for low, high in each)


def units_of(weight: str, unit: Fraction, dialect: Dialect) -> str:
    """Write a weight, a double, as the nearest whole number of units, a double; ties to even."""
    if unit == AUTOMATIC:
        return dialect.nearest.format(f"{weight} * {literal(float(1 / AUTOMATIC))}")
    if unit.numerator != 1 or unit.denominator >= _MOST_EXACT:
        raise ValueError(
            f"unit must be one over a whole number below 2**26 here, got {unit}. Choose another, "
            "or scale the weights."
        )
    # The product as the sum of two doubles (Dekker): a tie of the rounded product may be none.
    factor = float(unit.denominator)
    product = f"({weight} * {literal(factor)})"
    high = f"({weight} * {literal(_SPLITTER)} - ({weight} * {literal(_SPLITTER)} - {weight}))"
    error = f"(({high} * {literal(factor)} - {product}) + ({weight} - {high}) * {literal(factor)})"
    whole = dialect.nearest.format(product)
    return (
        f"CASE WHEN {product} - {whole} = 0.5e0 AND {error} > 0 THEN {whole} + 1 "
        f"WHEN {product} - {whole} = -0.5e0 AND {error} < 0 THEN {whole} - 1 ELSE {whole} END"
    )
