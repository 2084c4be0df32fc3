# SPDX-License-Identifier: Apache-2.0
"""A source of arrays that come in pieces: batches of a file, partitions of a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from limen.columns import as_labels, as_numbers, ordered_scores, require_same_length
from limen.narrowing.buckets import Counts, Rows
from limen.narrowing.search import DRAWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.narrowing.maps import Level, Root
    from limen.narrowing.search import Kept

__all__ = ["Chunks", "added", "count_rows"]

Chunk: TypeAlias = "tuple[Any, ...]"


def count_rows(number: NDArray[np.int64], rows: Rows) -> Counts:
    """Count the rows of each bucket, given the number of each row. O(n log n)."""
    order = np.argsort(number, kind="stable")
    n = np.ones(len(number), np.int64)
    scores, zeros, ones = rows.scores[order], rows.zeros[order], rows.ones[order]
    return _by_number(Counts(number[order], scores, scores, n, zeros, ones))


def added(parts: Iterable[Counts]) -> Counts:
    """Add the counts of several parts of the rows.

    >>> one = count_rows(np.array([1, 1]), Rows(np.array([0.25, 0.5]), np.array([0, 1])))
    >>> added([one, one]).n
    array([4])
    """
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return _by_number(Counts(*(column[order] for column in columns)))


def _by_number(counts: Counts) -> Counts:
    """Add entries of the same number, which are neighbours."""
    number = counts.number
    starts = np.flatnonzero(np.concatenate([[True], number[1:] != number[:-1]])[: len(number)])
    if not len(starts):
        return counts
    sums = (np.add.reduceat(each, starts) for each in (counts.n, counts.zeros, counts.ones))
    first = np.minimum.reduceat(counts.first, starts)
    return Counts(number[starts], first, np.maximum.reduceat(counts.last, starts), *sums)


def _whole(weights: Any) -> NDArray[np.int64]:
    """Read weights as whole numbers, floats such as 2.0 too."""
    wrong = np.flatnonzero(~((weights >= 0) & (weights < 2**62) & (weights % 1 == 0)))
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(
            "weights must be whole numbers of at least 0 in chunks, and "
            f"weights[{at}] is {weights[at].item()!r}. Multiply all of them by the same number."
        )
    whole: NDArray[np.int64] = weights.astype(np.int64)
    return whole


class Chunks:
    """Rows in pieces that can be read again and again.

    Parameters
    ----------
    read
        Begins to read: returns an iterable of pieces, each of them scores and labels, or scores,
        labels and whole weights.

    Examples
    --------
    >>> from limen import narrowing
    >>> pieces = [([0.1, 0.25], [0, 1]), ([0.5, 0.75], [0, 1])]
    >>> narrowing.optimal_threshold(narrowing.Chunks(lambda: pieces), false_negative=5)
    <Optimum: threshold 0.175, lower 0.1, upper 0.25, loss 1.0>
    """

    def __init__(self, read: Callable[[], Iterable[Chunk]]) -> None:
        self._read = read
        self._path: list[Any] = []  # the maps so far

    def _pieces(self) -> Iterable[Rows]:
        for scores, labels, *weights in self._read():
            xs = ordered_scores(scores) + 0.0
            ys = as_labels(labels, xs)
            units: Any = as_numbers(weights[0], "weights") if weights else None
            require_same_length(scores=xs, labels=ys, weights=units)
            if units is not None:
                units = _whole(units)
            if units is not None:
                held = units > 0
                xs, ys, units = xs[held], ys[held], units[held]
            yield Rows(xs, ys, units)

    def draw(self) -> NDArray[np.float64]:
        """Return the first scores."""
        scores: list[NDArray[np.float64]] = []
        for piece in self._pieces():
            scores.append(piece.scores)
            if sum(map(len, scores)) >= DRAWN:
                break
        return np.concatenate([*scores, np.zeros(0)])

    def _numbered(self, rows: Rows) -> tuple[NDArray[np.int64], Rows]:
        root, *levels = self._path
        numbers = root.numbers(rows.scores)
        for level in levels:
            numbers, inside = level.numbers(rows.scores, numbers)
            rows = _chosen(rows, inside)
        return numbers, rows

    def count(self, root: Root) -> Counts:
        """Count all rows by bucket."""
        self._path = [root]
        return self._count()

    def split(self, level: Level) -> Counts:
        """Count the rows of some buckets by finer ones."""
        self._path.append(level)
        return self._count()

    def _count(self) -> Counts:
        empty = Rows(np.zeros(0), np.zeros(0, np.uint8))
        nothing = count_rows(np.zeros(0, np.int64), empty)
        each = (count_rows(*self._numbered(piece)) for piece in self._pieces())
        return added(chain([nothing], each))

    def collect(self, kept: Kept) -> Rows:
        """Fetch the rows to keep."""
        found = [Rows(np.zeros(0), np.zeros(0, np.uint8), np.zeros(0, np.int64))]
        for piece in self._pieces():
            if kept.number is None:
                at = np.minimum(np.searchsorted(kept.last, piece.scores), len(kept.last) - 1)
                inside = (kept.first[at] <= piece.scores) & (piece.scores <= kept.last[at])
                rows = _chosen(piece, inside)
            else:
                numbers, piece = self._numbered(piece)
                rows = _chosen(piece, np.isin(numbers, kept.number))
            found.append(rows._replace(units=rows.zeros + rows.ones))
        return Rows(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _chosen(rows: Rows, mask: NDArray[np.bool_]) -> Rows:
    units = None if rows.units is None else rows.units[mask]
    return Rows(rows.scores[mask], rows.labels[mask], units)
