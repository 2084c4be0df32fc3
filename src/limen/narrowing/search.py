# SPDX-License-Identifier: Apache-2.0
"""The loop: draw, count, prune, split, collect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from limen.narrowing.buckets import Buckets, in_order, merged
from limen.narrowing.maps import level_of, root_of
from limen.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from limen.narrowing.buckets import Counts
    from limen.narrowing.maps import Level, Root

__all__ = ["BUCKETS", "DRAWN", "MOST", "Kept", "Narrowed", "Source", "search"]

BUCKETS = 2**14
DRAWN = 20_000  # scores that are enough to shape the first map
MOST = 2_000_000
_CELLS = 1024
_RANGES = 16  # of scores that are cheaper to compare with than the map is to compute


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The rows to fetch: by ranges of scores where they are few, else by numbers of buckets.

    Attributes
    ----------
    first, last
        Ranges of scores, both ends included, ascending. They hold all rows to fetch.
    number
        The numbers that the last map gave to the buckets to fetch; None: all rows of the ranges.
    """

    first: NDArray[np.float64]
    last: NDArray[np.float64]
    number: NDArray[np.int64] | None


class Source(Protocol):
    """What an engine must offer. A source serves one search."""

    def draw(self) -> NDArray[np.float64]:
        """Return some scores from anywhere, about 20,000. Only speed depends on them."""

    def count(self, root: Root) -> Counts:
        """Count the rows of each bucket, which the map numbers."""

    def split(self, level: Level) -> Counts:
        """Count the rows of some buckets of the pass before by finer ones; forget the others."""

    def collect(self, kept: Kept) -> Samples:
        """Fetch the rows to keep, in any order; without weights all weigh 1."""


class Narrowed(NamedTuple):
    """Few rows, and counts for all others."""

    near: Samples
    rest: Buckets
    passes: int  # how often the rows were counted

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return len(self.near.scores) + self.rest.rows


def search(
    source: Source,
    rule: Callable[[Buckets], NDArray[np.bool_]],
    *,
    most: int = MOST,
    buckets: int = BUCKETS,
    cells: int = _CELLS,
    finer: Callable[[int], int] | None = None,
) -> Narrowed:
    """Fetch at most about `most` rows, so that the rule wants to look into no others.

    Parameters
    ----------
    source
        The rows.
    rule
        Which of some buckets may hold something that matters. One of a single score never does.
    most
        How many rows may be fetched.
    buckets, cells
        How many buckets to count, and by how many cells of equal width to shape them.
    finer
        How many buckets to count from the second pass on, by the number of rows.

    Raises
    ------
    RuntimeError
        When the rows are others when they are read again.
    """
    found = in_order(source.count(root_of(source.draw(), buckets, cells)))
    later = buckets if finer is None else finer(found.rows)
    settled, passes = found.take(np.zeros(len(found), bool)), 1
    while True:
        both, fresh = merged(settled, found)
        kept = rule(both) & fresh  # what was dropped stays dropped
        chosen, settled = both.take(kept), both.take(~kept)
        if chosen.rows <= most:
            break
        found = in_order(source.split(level_of(chosen, later)))
        _require_same(chosen, found.last, found.n, found.zeros, found.ones)
        passes += 1
    if not len(chosen):
        return Narrowed(Samples(np.zeros(0), np.zeros(0, np.uint8)), settled, passes)
    kept, ranges = _ranges(both, kept, most)
    chosen, settled = both.take(kept), both.take(~kept)
    near = source.collect(Kept(*ranges, None if len(ranges[0]) <= _RANGES else chosen.numbers))
    _require_same(chosen, near.scores, 1, near.zeros, near.ones)
    return Narrowed(near, settled, passes)


def _ranges(
    both: Buckets, kept: NDArray[np.bool_], most: int
) -> tuple[NDArray[np.bool_], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Find ranges of scores that hold the kept buckets, and what is kept then.

    The smallest gaps are closed, by fetching their rows as well, where that makes the ranges few
    enough to be compared with.
    """
    edges = np.diff(np.concatenate([[0], kept.astype(np.int8), [0]]))
    starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    before = np.concatenate([[0], np.cumsum(both.n)])
    gaps = before[starts[1:]] - before[stops[:-1]]
    closed = np.zeros(len(gaps), bool)
    closed[np.argsort(gaps, kind="stable")[: max(0, len(starts) - _RANGES)]] = True
    if int(both.n[kept].sum()) + int(gaps[closed].sum()) <= most:
        starts = starts[np.concatenate([[True], ~closed])]
        stops = stops[np.concatenate([~closed, [True]])]
        kept = kept.copy()
        for start, stop in zip(starts, stops, strict=True):
            kept[start:stop] = True
    return kept, (both.first[starts], both.last[stops - 1])


def _require_same(expected: Buckets, scores: NDArray[np.float64], *columns: Any) -> None:
    sums = expected.sums_of(scores, *columns)
    wanted = (np.append(each, 0) for each in (expected.n, expected.zeros, expected.ones))
    if not all(map(np.array_equal, sums, wanted)):
        raise RuntimeError(
            "the rows were others when they were read again. Write them down, or persist them, "
            "before the call; an order or a random number may have changed."
        )
