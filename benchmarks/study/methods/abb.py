# SPDX-License-Identifier: Apache-2.0
"""Averaging over Bayesian binnings: all binnings of the samples at once, in quadratic time.

Naeini, Cooper and Hauskrecht (2015, SDM). A bin with a uniform prior has the likelihood
n0! n1! / (n + 1)! and the value (n1 + 1) / (n + 2). Sums from both ends give every bin its share of
all binnings. The prior of a boundary between neighbours at distance d, of D in all, is
1 - exp(-rate * d / D); that prior and its rate, 2 n^(1/3), are assumed, as the paper could not be
read. Equal scores stay in one bin; between scores the value is linear.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln

MOST = 2_000  # distinct scores


def values(distinct: np.ndarray, zeros: np.ndarray, ones: np.ndarray, rate: float) -> np.ndarray:
    """The averaged value of each distinct score."""
    m = len(distinct)
    factorial = gammaln(np.arange(int(zeros.sum() + ones.sum()) + 2) + 1.0)
    n0, n1 = np.append(0, np.cumsum(zeros)), np.append(0, np.cumsum(ones))
    distance = rate * np.diff(distinct) / (distinct[-1] - distinct[0])
    joined = np.append(0, -np.cumsum(distance))  # log of no boundary from the first score on
    parted = np.append(np.log(-np.expm1(-distance)), 0.0)
    likely = np.full((m, m), -np.inf)  # log of a bin from row to column, its end included
    for end in range(m):
        bin0, bin1 = n0[end + 1] - n0[: end + 1], n1[end + 1] - n1[: end + 1]
        likely[: end + 1, end] = (
            factorial[bin0]
            + factorial[bin1]
            - factorial[bin0 + bin1 + 1]
            + (joined[end] - joined[: end + 1])
            + parted[end]
        )
    before, after = np.zeros(m + 1), np.zeros(m + 1)
    for end in range(m):
        before[end + 1] = np.logaddexp.reduce(before[: end + 1] + likely[: end + 1, end])
    for start in reversed(range(m)):
        after[start] = np.logaddexp.reduce(likely[start, start:] + after[start + 1 :])
    change = np.zeros(m + 1)
    for end in range(m):
        at = slice(0, end + 1)
        weight = np.exp(before[at] + likely[at, end] + after[end + 1] - before[m])
        bin0, bin1 = n0[end + 1] - n0[at], n1[end + 1] - n1[at]
        value = weight * (bin1 + 1) / (bin0 + bin1 + 2)
        change[at] += value
        change[end + 1] -= value.sum()
    return np.cumsum(change)[:m]


def fit(
    scores: np.ndarray, labels: np.ndarray, rate: float | None = None
) -> Callable[[np.ndarray], np.ndarray]:
    distinct, place = np.unique(scores, return_inverse=True)
    if len(distinct) > MOST:
        raise ValueError(f"{len(distinct):,} distinct scores are too many; at most {MOST:,}.")
    count = np.bincount(place)
    ones = np.bincount(place, labels).astype(int)
    if len(distinct) == 1:
        alone = (ones[0] + 1) / (count[0] + 2)
        return lambda new: np.full(len(new), alone)
    found = values(distinct, count - ones, ones, rate or 2 * len(scores) ** (1 / 3))
    return lambda new: np.interp(new, distinct, found)
