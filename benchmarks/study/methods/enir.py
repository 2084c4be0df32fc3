# SPDX-License-Identifier: Apache-2.0
"""An ensemble of near-isotonic regressions: all fits on the path, weighted by their BIC.

Naeini and Cooper (2016); the path is that of Tibshirani, Hoefling and Tibshirani (2011). The
details are those of the authors' published program: the fit without a penalty is left out, degrees
of freedom are groups, each group is smoothed towards its mean score, values between scores are
linear. Scores outside of [0, 1] are not smoothed towards.

A step of the path takes as long as there are groups. A heap would find the next step sooner, but
the BIC of each fit needs every group anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

NEGLIGIBLE = 80.0  # a BIC so much above the best weighs less than rounding


class Fit(NamedTuple):
    """A penalty, where its groups of distinct scores start, and their values."""

    penalty: float
    start: np.ndarray
    value: np.ndarray


def path(target: np.ndarray, count: np.ndarray) -> Iterator[Fit]:
    """Fits of half the sum of count * (target - b)² + penalty * sum of falls, at every join."""
    start = np.flatnonzero(np.append(True, target[1:] != target[:-1]))
    weight = np.add.reduceat(count.astype(float), start)
    value = target[start].astype(float)
    penalty = 0.0
    yield Fit(penalty, start, value)
    while len(value) > 1:
        falls = (value[:-1] > value[1:]).astype(float)
        if not falls.any():
            return
        speed = (np.append(0, falls) - np.append(falls, 0)) / weight
        gap, closing = value[1:] - value[:-1], speed[:-1] - speed[1:]
        meets = gap * closing > 0
        ahead = np.full(len(gap), np.inf)
        ahead[meets] = gap[meets] / closing[meets]
        step = float(ahead.min())
        penalty += step
        value = value + step * speed
        kept = np.flatnonzero(np.append(True, ahead > step * (1 + 1e-12)))
        joined = np.add.reduceat(weight, kept)
        value = np.add.reduceat(value * weight, kept) / joined
        start, weight = start[kept], joined
        yield Fit(penalty, start, value)


def fit(scores: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    distinct, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ones = np.bincount(place, labels).astype(float)
    smooth = distinct[0] >= 0 and distinct[-1] <= 1
    freedom = np.log(len(scores)) + np.log(2 * np.pi)
    best, total, mean = np.inf, 0.0, np.zeros(len(distinct))
    fits = path(ones / count, count)
    last = next(fits)  # without a penalty: left out, unless it is the only one
    for one in fits:
        last = one
        bic, value = _judged(one, distinct, count, ones, freedom, smooth)
        if bic > best + NEGLIGIBLE:
            continue
        if bic < best:
            lighter = np.exp((bic - best) / 2)
            best, total, mean = bic, total * lighter, mean * lighter
        weight = np.exp((best - bic) / 2)
        sizes = np.diff(np.append(one.start, len(distinct)))
        total, mean = total + weight, mean + weight * np.repeat(value, sizes)
    if total == 0:
        _, value = _judged(last, distinct, count, ones, freedom, smooth)
        total, mean = 1.0, np.repeat(value, np.diff(np.append(last.start, len(distinct))))
    found = mean / total
    return lambda new: np.interp(new, distinct, found)


def _judged(
    one: Fit,
    distinct: np.ndarray,
    count: np.ndarray,
    ones: np.ndarray,
    freedom: float,
    smooth: bool,
) -> tuple[float, np.ndarray]:
    """The BIC of a fit, and its values after smoothing."""
    value = np.clip(one.value, 0, 1)
    n, n1 = np.add.reduceat(count, one.start), np.add.reduceat(ones, one.start)
    with np.errstate(divide="ignore", invalid="ignore"):
        likely = np.where(n1 > 0, n1 * np.log(value), 0).sum()
        likely += np.where(n - n1 > 0, (n - n1) * np.log1p(-value), 0).sum()
    if smooth:
        expected = np.add.reduceat(distinct * count, one.start) / n
        prior = 1 - np.abs(n1 / n - expected)
        value = (value * n + expected * prior) / (n + prior)
    return float(-2 * likely + len(n) * freedom), value
