# SPDX-License-Identifier: Apache-2.0
"""Maps from scores to numbers of buckets, cheap enough for every row of a large table.

An engine computes them in its own language. It need not do so exactly: every bucket brings its own
lowest and highest score, and buckets that overlap are joined. A map that is off costs time only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.narrowing.buckets import Buckets

__all__ = ["LARGEST", "Level", "Root", "level_of", "magnitude", "root_of"]

LARGEST = float(np.finfo(np.float64).max)
_CROWDED = 0.25  # the share of the drawn scores in one cell from which on exponents are used
_EVEN = 4.0  # times the mean number of drawn scores that a cell may have and still pass for even
_FACTOR = 16.0  # the span of a bucket from which on exponents are used
_STRETCH = 2.0**600  # between the smallest numbers, where the scale alone would be infinite


def magnitude(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a number that rises with the score: its exponent and, after the point, its mantissa.

    >>> magnitude(np.array([-2.0, 0.0, 1.0, 1.5, 2.0]))
    array([-1102. ,     0. ,  1101. ,  1101.5,  1102. ])
    """
    size = np.minimum(np.abs(scores), LARGEST)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.minimum(np.floor(np.log2(size)), 1023.0)  # log2 may round up
        key = exponent + 1100.0 + size / np.exp2(exponent)
    return np.where(scores == 0, 0.0, np.where(scores > 0, key, -key))


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """The first map: cells of equal width, each with a number of buckets of equal width.

    For a finite score, `v` being the score or its `magnitude` and clipped to [low, high]::

        t = (v - low) * inverse
        c = floor(t)
        bucket = floor(base[c] + (t - c) * size[c])

    `t - c` is exact and `base` and `size` leave half a bucket of slack, so rounding stays inside
    the cell. Where scores are spread evenly enough, `base` and `size` are empty, and the bucket is
    ``c + 1``: an engine then looks nothing up. The infinities are `below` and `above`.
    """

    by_magnitude: bool
    low: float
    high: float
    inverse: float
    base: NDArray[np.float64]
    size: NDArray[np.float64]
    above: int  # the bucket of ``inf``, and how many there are besides
    below: ClassVar[int] = 0  # the bucket of ``-inf``

    def numbers(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of the bucket of each score. O(1) each."""
        v = magnitude(scores) if self.by_magnitude else scores
        t = (np.clip(v, self.low, self.high) - self.low) * self.inverse
        c = np.floor(t).astype(np.int64)
        if len(self.base):
            numbers = np.floor(self.base[c] + (t - c) * self.size[c]).astype(np.int64)
        else:
            numbers = c + 1
        numbers[scores == -np.inf] = self.below
        numbers[scores == np.inf] = self.above
        return numbers


def root_of(drawn: NDArray[np.float64], buckets: int, cells: int) -> Root:
    """Make a map whose buckets hold about as many rows each, by some scores from anywhere."""
    scores = np.sort(drawn[np.isfinite(drawn)])
    chosen: tuple[float, bool, Any, float, Any] | None = None
    for by_magnitude in (False, True):
        v = magnitude(scores) if by_magnitude else scores
        with np.errstate(over="ignore"):
            width = float(v[-1] - v[0]) if len(v) else 0.0
        if not cells / LARGEST < width < np.inf:
            continue
        inverse = cells / width
        place = np.minimum((v - v[0]) * inverse, cells - 1).astype(np.int64)
        fresh = np.concatenate([[True], v[1:] != v[:-1]])
        distinct = np.bincount(place[fresh], minlength=cells)
        crowd = float(distinct.max() / distinct.sum())
        # Exponents take twice the time: only where they spread the scores much better.
        if chosen is None or (chosen[0] > _CROWDED and crowd < chosen[0] / 4):
            chosen = crowd, by_magnitude, v, inverse, distinct
    if chosen is None:
        return Root(False, 0.0, 1.0, 1.0, np.zeros(0), np.zeros(0), 3)
    crowd, by_magnitude, v, inverse, distinct = chosen
    ends = float(v[0]), float(v[-1])
    if crowd * cells <= _EVEN and buckets > cells:
        inverse *= buckets / cells
        if inverse < np.inf:
            # t may come out a little above the number of buckets
            return Root(by_magnitude, *ends, inverse, np.zeros(0), np.zeros(0), buckets + 3)
    share = 1 + np.floor(distinct * max(0, buckets - cells) / max(1, distinct.sum()))
    base = np.concatenate([[0], np.cumsum(share)]) + 1
    spare = np.full(2, base[-1])  # t may come out a little above the number of cells
    return Root(
        by_magnitude,
        *ends,
        inverse,
        np.concatenate([base, spare]) + 0.25,
        np.concatenate([share - 0.5, np.zeros(3)]),
        int(base[-1]) + 1,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Finer buckets inside some buckets of the pass before; one entry for each of their numbers.

    For a score in the bucket of this number, `v` being the score, or its `magnitude` where
    `by_magnitude`::

        bucket = floor(min(base + max(0, v - start) * stretch * scale, last + 0.5))

    Attributes
    ----------
    number
        The number of a bucket of the pass before, ascending.
    """

    number: NDArray[np.int64]
    by_magnitude: NDArray[np.bool_]
    start: NDArray[np.float64]
    stretch: NDArray[np.float64]
    scale: NDArray[np.float64]
    base: NDArray[np.float64]
    last: NDArray[np.float64]
    first_score: float  # of all rows that are split
    last_score: float

    def numbers(
        self, scores: NDArray[np.float64], numbers: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the finer buckets of rows of the pass before, and which rows have one."""
        at = np.minimum(np.searchsorted(self.number, numbers), len(self.number) - 1)
        inside = self.number[at] == numbers
        at, scores = at[inside], scores[inside]
        v = np.where(self.by_magnitude[at], magnitude(scores), scores)
        beyond = np.maximum(0.0, v - self.start[at]) * self.stretch[at]
        finer = self.base[at] + beyond * self.scale[at]
        return np.floor(np.minimum(finer, self.last[at] + 0.5)).astype(np.int64), inside


def level_of(kept: Buckets, buckets: int) -> Level:
    """Split each bucket, the more finely the more rows it holds. Its first and last score part."""
    first, last = kept.first, kept.last
    small = np.minimum(np.abs(first), np.abs(last))
    large = np.maximum(np.abs(first), np.abs(last))
    wide = (np.sign(first) != np.sign(last)) | (large / _FACTOR > small)
    low = np.where(wide, magnitude(first), first)
    high = np.where(wide, magnitude(last), last)
    share = 2 + np.floor(kept.n / max(1, int(kept.n.sum())) * buckets).astype(np.int64)
    base = np.concatenate([[0], np.cumsum(share)[:-1]])
    stretch = np.where(high - low < 1 / _STRETCH, _STRETCH, 1.0)
    scale = (share - 0.5) / ((high - low) * stretch)
    order = np.argsort(kept.numbers)
    home = kept.home[order]
    return Level(
        kept.numbers[order],
        wide[home],
        low[home],
        stretch[home],
        scale[home],
        base[home] + 0.25,
        (base + share - 1).astype(np.float64)[home],
        float(first.min()),
        float(last.max()),
    )
