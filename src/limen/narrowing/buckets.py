# SPDX-License-Identifier: Apache-2.0
"""Rows counted by bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Buckets", "Counts", "in_order", "merged"]


class Counts(NamedTuple):
    """What a source counts: one entry for each bucket that holds rows, in any order.

    `n` is the number of rows; `zeros` and `ones` are the whole weights of labels 0 and 1.
    """

    number: NDArray[np.int64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]
    n: NDArray[np.int64]
    zeros: NDArray[np.int64]
    ones: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """Buckets in ascending order of score that do not overlap.

    `numbers` are those that the last map gave, and `home` is the bucket that each belongs to:
    several where buckets overlapped and were joined, none where an earlier map made the bucket.
    """

    numbers: NDArray[np.int64]
    home: NDArray[np.int64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]
    n: NDArray[np.int64]
    zeros: NDArray[np.int64]
    ones: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.n)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.n.sum())

    def take(self, mask: NDArray[np.bool_]) -> Buckets:
        """Return some of the buckets."""
        numbered = mask[self.home]
        renamed = np.cumsum(mask) - 1
        columns = (getattr(self, name)[mask] for name in ("first", "last", "n", "zeros", "ones"))
        home = renamed[self.home[numbered]]
        return Buckets(self.numbers[numbered], home, *columns)

    def sums_of(self, scores: NDArray[np.float64], *columns: Any) -> list[NDArray[np.int64]]:
        """Add up columns of rows, or of finer buckets, by the bucket that they lie in."""
        at = np.searchsorted(self.last, scores)
        sums = [np.zeros(len(self) + 1, np.int64) for _ in columns]
        for total, column in zip(sums, columns, strict=True):
            np.add.at(total, at, column)
        return sums


def in_order(counts: Counts) -> Buckets:
    """Sort the buckets by score, and join those that overlap. O(b log b)."""
    first, last = counts.first + 0.0, counts.last + 0.0  # no -0.0
    order = np.lexsort((last, first))
    first, last = first[order], last[order]
    columns = [column[order] for column in (counts.n, counts.zeros, counts.ones)]
    fresh = np.ones(len(first), bool)
    fresh[1:] = first[1:] > np.maximum.accumulate(last)[:-1]
    if not fresh.all():  # the engine's map was not monotone here
        starts = np.flatnonzero(fresh)
        columns = [np.add.reduceat(column, starts) for column in columns]
        first, last = first[starts], np.maximum.reduceat(last, starts)
    home = np.cumsum(fresh) - 1
    return Buckets(counts.number[order], home, first, last, *columns)


def merged(settled: Buckets, found: Buckets) -> tuple[Buckets, NDArray[np.bool_]]:
    """Put two sets of buckets together, in order; which of them are `found` comes with it."""
    order = np.argsort(np.concatenate([settled.first, found.first]), kind="stable")
    columns = (
        np.concatenate([getattr(settled, name), getattr(found, name)])[order]
        for name in ("first", "last", "n", "zeros", "ones")
    )
    fresh = order >= len(settled)
    home = np.flatnonzero(fresh)[found.home]  # the order among themselves stays
    return Buckets(found.numbers, home, *columns), fresh
