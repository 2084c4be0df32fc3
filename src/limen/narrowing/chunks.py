# SPDX-License-Identifier: Apache-2.0
"""A source of arrays that come in pieces: batches of a file, partitions of a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from limen.columns import ordered_scores
from limen.narrowing.buckets import Counts
from limen.narrowing.search import DRAWN
from limen.samples import Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.narrowing.maps import Level, Root
    from limen.narrowing.search import Kept

__all__ = ["Chunks", "added", "count_rows"]

Chunk: TypeAlias = "tuple[Any, ...]"


def count_rows(number: NDArray[np.int64], rows: Samples) -> Counts:
    """Count the rows of each bucket, given the number of each row. O(n log n)."""
    order = np.argsort(number, kind="stable")
    n = np.ones(len(number), np.int64)
    scores = rows.scores[order]
    zeros, ones = (each[order].astype(np.int64, copy=False) for each in (rows.zeros, rows.ones))
    return _by_number(Counts(number[order], scores, scores, n, zeros, ones))


def added(parts: Iterable[Counts]) -> Counts:
    """Add the counts of several parts of the rows.

    >>> one = count_rows(np.array([1, 1]), Samples(np.array([0.25, 0.5]), np.array([0, 1])))
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

    def _pieces(self) -> Iterable[Samples]:
        for scores, labels, *weights in self._read():
            piece = Samples.of(ordered_scores(scores) + 0.0, labels, *weights)
            if piece.weights is not None:
                whole = replace(piece, weights=_whole(piece.weights))
                piece = whole.rows(whole.weights != 0)
            yield piece

    def draw(self) -> NDArray[np.float64]:
        """Return the first scores."""
        scores: list[NDArray[np.float64]] = []
        for piece in self._pieces():
            scores.append(piece.scores)
            if sum(map(len, scores)) >= DRAWN:
                break
        return np.concatenate([*scores, np.zeros(0)])

    def _numbered(self, rows: Samples) -> tuple[NDArray[np.int64], Samples]:
        root, *levels = self._path
        numbers = root.numbers(rows.scores)
        for level in levels:
            numbers, inside = level.numbers(rows.scores, numbers)
            rows = rows.rows(inside)
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
        empty = Samples(np.zeros(0), np.zeros(0, np.uint8))
        nothing = count_rows(np.zeros(0, np.int64), empty)
        each = (count_rows(*self._numbered(piece)) for piece in self._pieces())
        return added(chain([nothing], each))

    def collect(self, kept: Kept) -> Samples:
        """Fetch the rows to keep."""
        found: list[Any] = [(np.zeros(0), np.zeros(0, np.uint8), np.zeros(0, np.int64))]
        for piece in self._pieces():
            if kept.number is None:
                at = np.minimum(np.searchsorted(kept.last, piece.scores), len(kept.last) - 1)
                inside = (kept.first[at] <= piece.scores) & (piece.scores <= kept.last[at])
                rows = piece.rows(inside)
            else:
                numbers, piece = self._numbered(piece)
                rows = piece.rows(np.isin(numbers, kept.number))
            found.append((rows.scores, rows.labels, rows.zeros + rows.ones))
        scores, labels, weights = map(np.concatenate, zip(*found, strict=True))
        return Samples(scores, labels, weights)
