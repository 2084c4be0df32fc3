# SPDX-License-Identifier: Apache-2.0
"""Which cuts keep a rate above a floor on new rows, at a stated confidence.

A floor is a demand on a share: hits among trials. Everything here is about counts of samples, so
samples must weigh 1 each. Bounds are those of Clopper and Pearson, by exact binomial tails.

Two kinds of rates. Recall, and the share of labels 0 (or of all samples) that is answered 0, only
fall or only rise with the cut: their trials are the same at every cut, and one bound serves all of
them. Precision goes up and down, so cuts are tested one after the other in an order that is fixed
before labels are seen, by how many samples they answer 1; a sequence ends where a test fails. The
least that could ever pass is a bad place to begin, and so are all samples: `STARTS` sequences
share the error.

What is proven of precision is about the rows above the highest score that is answered 0. The
threshold is the midpoint between that score and the next: it is assumed that new rows in the lower
half of this gap are no more often 1 than those above. Other rates only gain by the midpoint.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = [
    "STARTS",
    "at_least",
    "binomial_tail",
    "least_trials",
    "passes",
    "sequences",
    "times_as_many",
]

STARTS = 8

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
    for m in range(1, 10_000):
        for step in (
            m * (b - m) * share / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * share / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + step * d
            d = 1 / np.where(np.abs(d) < tiny, tiny, d)
            c = 1 + step / c
            c = np.where(np.abs(c) < tiny, tiny, c)
            fraction *= c * d
        if np.all(np.abs(c * d - 1) < 1e-15):
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


def passes(hits: Any, trials: Any, floor: float, error: float) -> NDArray[np.bool_]:
    """Whether so many hits rule out a share below the floor, at this chance of error."""
    hits, trials = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (hits, trials)))
    passed = np.array(hits > trials * floor if error < 0.5 else hits >= 0)
    if 0 < floor < 1 and error < 0.5:
        # Two bounds decide nearly all: Chernoff's, and Ash's from below, where not all are hits.
        # Up to the mean the tail is about a half or more.
        h, n = hits[passed], trials[passed]
        chernoff, misses = np.exp(-_divergence(h, n, floor)), n - h
        ash = np.where(misses > 0, chernoff / np.sqrt(8 * h * np.maximum(misses, 1) / n), 0)
        near = (chernoff > error) & (ash <= error)
        sure = chernoff <= error
        sure[near] = binomial_tail(h[near], n[near], floor) <= error
        passed[passed] = sure
    else:
        passed[passed] = binomial_tail(hits[passed], trials[passed], floor) <= error
    return passed


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


def sequences(
    hits: NDArray[np.int64], trials: NDArray[np.int64], floor: float, error: float
) -> NDArray[np.bool_]:
    """Whether a share whose trials grow from cut to cut is proven above the floor at each cut.

    Each of `STARTS` sequences begins at a number of trials that does not depend on hits, from the
    least that can pass to all of them in even ratios, and goes on until its first failure.
    """
    proven = np.zeros(len(trials), bool)
    least, most = least_trials(floor, error / STARTS), int(trials[-1]) if len(trials) else 0
    if least > most:
        return proven
    starts = np.unique(np.ceil(np.geomspace(least, most, STARTS) - 1e-6))
    for begin in np.searchsorted(trials, starts).tolist():
        chunk = 16
        while begin < len(trials) and not proven[begin]:  # where it is, another went on from there
            part = slice(begin, begin + chunk)
            passed = passes(hits[part], trials[part], floor, error / STARTS)
            count = len(passed) if passed.all() else int(passed.argmin())
            proven[begin : begin + count] = True
            if count < len(passed):
                break
            begin += count
            chunk *= 2
    return proven


def times_as_many(met: Callable[[float], bool]) -> float | None:
    """Return how many times as many samples would be enough, roughly; None if no number is.

    `met` tells whether any cut would pass if all counts were so many times as large.
    """
    times = 1.0
    while times < _MOST_TIMES:
        times *= 1.1
        if met(times):
            return times
    return None
