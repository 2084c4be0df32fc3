# SPDX-License-Identifier: Apache-2.0
"""A model with pooled scores, whose unit is chosen to fit their weights."""

from __future__ import annotations

import math
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.columns import Numbers
from limen.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Pool", "amounts_of", "fine_unit"]


def fine_unit(columns: Sequence[Numbers], times: int) -> Fraction | None:
    """Find a power of two as unit, fine beside the sum of the columns; None for whole numbers.

    The sum `times` over stays below 2**52 units, so that all sums are exact in doubles too.

    >>> fine_unit([np.array([0.25, 0.5])], 5) == Fraction(1, 2**49)
    True
    """
    if all(column.dtype == np.int64 or (column == np.rint(column)).all() for column in columns):
        return None
    total = sum(float(np.abs(column).sum()) for column in columns)
    if not 0 < total < math.inf:
        return None
    return Fraction(2) ** min(61, max(-61, math.frexp(total)[1] + times.bit_length() - 52))


class Pool:
    """Samples in a model. Unless the user gave a unit, it is the one of `fine_unit`.

    Batches may weigh more or less than all before; then the model is rebuilt, which takes
    O(n) a few times on the way from the smallest numbers to the largest.

    >>> from limen import OnlineThreshold
    >>> pool = Pool(OnlineThreshold())
    >>> for weight in (0.1, 1e9):
    ...     with pool.holding((np.array([0.5]), np.array([1]), np.array([weight]))):
    ...         pass
    >>> len(pool.model)
    2
    """

    def __init__(self, empty: Any, times: int = 1, repeated: bool = False) -> None:
        self.model = empty
        self.repeated = repeated  # whether rows were scored more than once
        self._times = times  # what a weight is multiplied by at most
        self._follows = empty.settings["unit"] is None
        self._parts: list[tuple[Any, ...]] = []

    @contextmanager
    def holding(self, columns: tuple[Any, ...]) -> Iterator[Any]:
        """Yield the model with these samples added; they are taken back if the body fails."""
        # Copies, because weights may be the caller's own array.
        kept = tuple(None if column is None else column.copy() for column in columns)
        model = self._joined(columns)
        try:
            yield model
        except BaseException:
            if model is self.model:
                model.revert_many(*columns)
            raise
        self.model = model
        self._parts.append(kept)

    def samples(self, *more: tuple[Any, ...]) -> Samples:
        """Return all samples held, and some more, where they have labels and no losses. O(n)."""
        parts = [*self._parts, *more]
        if not parts:
            return Samples(np.empty(0), np.empty(0, np.uint8))
        scores, labels, weights = zip(*parts, strict=True)
        weighing = None
        if any(each is not None for each in weights):
            pairs = zip(weights, scores, strict=True)
            weighing = np.concatenate([_or_ones(each, len(xs)) for each, xs in pairs])
        return Samples(np.concatenate(scores), np.concatenate(labels), weighing)

    def _joined(self, columns: tuple[Any, ...]) -> Any:
        """Add samples to the model, or to a new one that has another unit."""
        plain = self._follows and self.model.settings["unit"] is None
        if not (plain and fine_unit(amounts_of(columns), 1)):
            try:
                self.model.update_many(*columns)
                return self.model
            except OverflowError:
                if plain or not self._follows:
                    raise
        parts = [*self._parts, columns]
        unit = fine_unit([column for part in parts for column in amounts_of(part)], self._times)
        model = type(self.model)(**{**self.model.settings, "unit": unit})
        try:
            for part in parts:
                model.update_many(*part)
        except ValueError as error:
            raise ValueError(
                "the largest weights or costs of all batches are so large that the smallest "
                f"would round to 0 in units of {unit}. Scale all batches to one magnitude, or "
                "start with a new classifier. Nothing was changed."
            ) from error
        return model


def amounts_of(columns: tuple[Any, ...]) -> list[Numbers]:
    """Weights, or losses below and above; without weights each sample counts 1."""
    scores, *amounts = columns
    if len(amounts) == 2 and amounts[0].dtype == np.uint8:  # labels and weights
        amounts = amounts[1:]
    return [_or_ones(column, len(scores)) for column in amounts]


def _or_ones(column: Numbers | None, rows: int) -> Numbers:
    return np.ones(rows, np.int64) if column is None else column
