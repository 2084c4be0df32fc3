# SPDX-License-Identifier: Apache-2.0
"""Which cuts keep a rate above a floor on new rows, at a stated confidence.

A floor is a demand on a share: hits among trials. Everything here is about counts of samples, so
samples must weigh 1 each. Bounds are those of Clopper and Pearson, by exact binomial tails.

Two kinds of rates. Recall, and the share of labels 0 (or of all samples) that is answered 0, only
fall or only rise with the cut: their trials are the same at every cut, and one bound serves all of
them. Precision goes up and down, so cuts are tested one after the other in an order that is fixed
before labels are seen, by how many samples they answer 1; a sequence ends where a test fails. The
least that could ever pass is a bad place to begin, and so are all samples: several sequences share
the error. One that reaches the start of the next takes over its share: the fallback procedure of
Wiens, which keeps the error of all tests together.

What is proven of precision is about the rows above the highest score that is answered 0. The
threshold is the midpoint between that score and the next: it is assumed that new rows in the lower
half of this gap are no more often 1 than those above. Other rates only gain by the midpoint.
"""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = [
    "at_least",
    "binomial_tail",
    "how_many",
    "least_trials",
    "passes",
    "sequences",
    "starts",
    "times_as_many",
]

_RATIO = 2.5  # between the numbers of trials at which sequences begin, about
_STEPS = 32  # tests per unit of the root of trials
_EXACT = 2_000  # trials up to which it matters that tests of whole counts miss their level
_MOST_TIMES = 1e6
_SMALL = np.array([math.lgamma(n + 1) for n in range(1, 16)])


def binomial_tail(hits: Any, trials: Any, share: float) -> NDArray[np.float64]:
    """Return the chance of that many hits or more, each trial being a hit with this share.

    The probability of exactly so many, times the continued fraction of the incomplete
    beta function. Right to 1e-8 of its value for up to ten million trials.

    >>> binomial_tail([29, 28], 29, 0.9).round(6)
    array([0.047101, 0.198872])
    """
    hits, trials = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (hits, trials)))
    if not 0 < share < 1:
        return np.where(hits <= trials * (share > 0), 1.0, 0.0)
    tail = np.where(hits <= 0, 1.0, 0.0)
    inner = (hits > 0) & (hits <= trials)
    upper = inner & (hits > trials * share)
    tail[upper] = _upper_tail(hits[upper], trials[upper], share)
    lower = inner & ~upper
    fewer = trials[lower] - hits[lower] + 1  # misses that would leave less than so many hits
    tail[lower] = 1 - _upper_tail(fewer, trials[lower], 1 - share)
    return tail


def _upper_tail(hits: NDArray[Any], trials: NDArray[Any], share: float) -> Any:
    a, b = hits, trials - hits + 1
    # Lentz's method, as in every book; it converges fast where hits are more than expected.
    tiny, c = 1e-300, np.ones_like(a)
    d = 1 - (a + b) * share / (a + 1)
    d = 1 / np.where(np.abs(d) < tiny, tiny, d)
    fraction = d.copy()
    left: NDArray[Any] = np.arange(
        len(a)
    )  # those that have not converged; the others would begin to wander
    for m in range(1, 10_000):
        for step in (
            m * (b - m) * share / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * share / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + step * d
            d = 1 / np.where(np.abs(d) < tiny, tiny, d)
            c = 1 + step / c
            c = np.where(np.abs(c) < tiny, tiny, c)
            fraction[left] *= c * d
        far = np.abs(c * d - 1) >= 1e-15
        if not far.all():
            left, a, b, c, d = (each[far] for each in (left, a, b, c, d))
        if len(left) == 0:
            break
    return np.minimum(np.exp(_log_chance(hits, trials, share)) * (1 - share) * fraction, 1.0)


def _log_chance(hits: NDArray[Any], trials: NDArray[Any], share: float) -> Any:
    """Return the logarithm of the chance of exactly so many hits, by Loader."""
    misses = trials - hits
    with np.errstate(divide="ignore", invalid="ignore"):
        around = np.where(
            misses > 0,
            _stirling(trials)
            - _stirling(hits)
            - _stirling(misses)
            - 0.5 * np.log(2 * math.pi * hits * misses / trials),
            0.0,
        )
    return around - _divergence(hits, trials, share)


def _divergence(hits: NDArray[Any], trials: NDArray[Any], share: float) -> Any:
    """Return the trials times the divergence of their share of hits, above 0, from another."""
    misses = trials - hits
    ratio = np.maximum(misses, 1) / (trials * (1 - share))
    return hits * np.log(hits / (trials * share)) + misses * np.log(ratio)


def _stirling(n: NDArray[Any]) -> Any:
    """Return the logarithm of n! less Stirling's formula for it, for n of at least 1."""
    n = np.maximum(n, 1.0)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * n * n)) / (n * n)) / (n * n)) / n
    place = np.minimum(n, 15).astype(np.int64) - 1
    small = _SMALL[place] - ((n + 0.5) * np.log(n) - n + 0.5 * math.log(2 * math.pi))
    return np.where(n < 16, small, series)


def _rough_tail(hits: Any, trials: Any, share: float, low: float, high: float) -> Any:
    """Return the tail, or 0 where it is surely at most `low`, and 1 where surely above `high`."""
    hits, trials = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (hits, trials)))
    if not 0 < share < 1 or high >= 0.5:
        return binomial_tail(hits, trials, share)
    tail = np.ones(hits.shape)
    more = hits > trials * share  # up to the mean the tail is a half or more
    # The bounds of Zubkov and Serov decide nearly all: the tail is at least that of a normal law
    # at the root of twice the divergence, and at most that of one hit less.
    from statistics import NormalDist  # it loads slowly, and most programs never come here

    last, first = (NormalDist().inv_cdf(level) ** 2 / 2 for level in (low, high))
    h, n = hits[more], trials[more]
    surely = _divergence(np.maximum(h - 1, n * share), n, share) >= last
    near = ~surely & (_divergence(h, n, share) >= first)
    rough = np.where(surely, 0.0, 1.0)
    rough[near] = binomial_tail(h[near], n[near], share)
    tail[more] = rough
    return tail


def passes(hits: Any, trials: Any, floor: float, error: float) -> NDArray[np.bool_]:
    """Whether so many hits rule out a share below the floor, at this chance of error."""
    return np.asarray(_rough_tail(hits, trials, floor, error, error) <= error)


def at_least(hits: NDArray[np.int64], trials: int, floor: float, error: float) -> NDArray[np.bool_]:
    """Whether a rate that only falls or only rises with the cut keeps the floor at each cut.

    O(log n) tails. All of it holds at once, at this chance of error.
    """
    low, high = 0, trials + 1  # the least number of hits that passes; one too many if none does
    while low < high:
        middle = (low + high) // 2
        if middle > trials or passes(middle, trials, floor, error):
            high = middle
        else:
            low = middle + 1
    return hits >= low


def least_trials(floor: float, error: float) -> float:
    """Return how many hits without a miss are the least that can pass.

    >>> least_trials(0.9, 0.05)
    29
    """
    if floor <= 0:
        return 1
    return math.ceil(math.log(error) / math.log(floor) - 1e-9) if floor < 1 else math.inf


def how_many(floor: float, error: float, most: float) -> int:
    """Return how many sequences share the error where there are so many trials at most.

    >>> how_many(0.9, 0.05, 1000)
    4
    """
    least = least_trials(floor, error)
    return max(1, round(math.log(most / least, _RATIO))) if least <= most else 0


def starts(floor: float, error: float, most: int) -> NDArray[np.int64]:
    """Return the numbers of trials at which sequences begin, each with an equal part of the error.

    In even ratios from the least that can pass to half of all, and each a little later, where the
    exact test comes nearest to its level. Nothing here depends on hits.

    >>> starts(0.9, 0.05, 1000).tolist()
    [42, 110, 219, 570]
    """
    many = how_many(floor, error, most)
    if not many:
        return np.zeros(0, np.int64)
    least = least_trials(floor, error / many)
    sizes = _sizes(floor, error / many, min(most, _EXACT))
    found = []
    for start in np.geomspace(least, max(least, most / 2), many).tolist():
        begin, end = math.ceil(start - 1e-6), min(math.ceil(1.15 * start), most)
        if end < len(sizes):
            begin += int(np.argmax(sizes[begin : end + 1]))
        found.append(begin)
    return np.unique(found)


def _sizes(share: float, level: float, most: int) -> NDArray[np.float64]:
    """Return the largest tail that is at most the level, for each number of trials up to most."""
    sizes = np.zeros(most + 1)
    hits, tail, fewer = 1, 0.0, 1.0  # the least hits that pass, their tail, the chance of one less
    for trials in range(1, most + 1):
        tail += share * fewer
        fewer *= (1 - share) * trials / (trials - hits + 1)
        if tail > level:
            fewer *= share / (1 - share) * (trials - hits + 1) / hits
            tail -= fewer
            hits += 1
        sizes[trials] = tail
    return sizes


def sequences(
    hits: NDArray[np.int64], trials: NDArray[np.int64], floor: float, error: float
) -> NDArray[np.bool_]:
    """Whether a share whose trials grow from cut to cut is proven above the floor at each cut.

    Sequences of tests begin at `starts` and go on until their first failure, at every cut first
    and later at steps much smaller than the error of a count.
    """
    proven = np.zeros(len(trials), bool)
    most = int(trials[-1]) if len(trials) else 0
    begin = starts(floor, error, most)
    if len(begin) == 0:
        return proven
    roots = np.arange(_STEPS * math.isqrt(int(begin[0])), _STEPS * math.isqrt(most))
    steps = np.ceil((roots / _STEPS) ** 2)
    begins = np.searchsorted(trials, begin)
    places = np.unique(np.append(np.searchsorted(trials, steps), begins))
    places = places[places >= begins[0]]
    joined = np.diff(np.searchsorted(begins, places, "right"), prepend=0)  # starts at each place
    tails = _rough_tail(hits[places], trials[places], floor, error / len(begin), error)
    shares = 0
    for place, more, tail in zip(places.tolist(), joined.tolist(), tails.tolist(), strict=True):
        shares += more
        proven[place] = shares and tail <= error * shares / len(begin)
        if not proven[place]:
            shares = 0
    return proven


def times_as_many(met: Callable[[float], bool]) -> float | None:
    """Return how many times as many samples would be enough, roughly; None if no number is.

    `met` says whether any cut would pass if all counts were so many times as large; the more,
    the sooner.

    >>> round(times_as_many(lambda times: times > 2), 2)
    2.14
    """
    steps = range(1, math.ceil(math.log(_MOST_TIMES, 1.1)))
    first = bisect.bisect_left(steps, True, key=lambda step: met(1.1**step))
    return None if first == len(steps) else float(1.1 ** steps[first])
