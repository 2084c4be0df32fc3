# SPDX-License-Identifier: Apache-2.0
"""Samples to test with: streams named by their shape, strategies, and the answer by sorting."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from limen import OnlineCut, OnlineThreshold

TINY = 5e-324  # the smallest double above 0
NORMAL = 2.2250738585072014e-308  # the smallest double with a full mantissa
HUGE = 1.7976931348623157e308  # the largest finite double
INF = math.inf

FINEST = Fraction(1, 2**20)  # where the automatic unit ends

EFFORT = 10 if os.environ.get("LIMEN_THOROUGH") else 1  # times as many examples and steps
PATIENCE = 300.0  # seconds until what must come is given up, also on a machine that is busy


class SmallNodeThreshold(OnlineThreshold):
    """With four slots per node, splits and merges happen all the time."""

    _capacities = (4, 4)


class SmallNodeCut(OnlineCut):
    """With four slots per node, splits and merges happen all the time."""

    _capacities = (4, 4)


# Streams by shape: scores and labels, n of each.


def _flipped(labels: np.ndarray, seed: int) -> np.ndarray:
    """Turn every tenth label or so, so that no cut is without mistakes."""
    return labels ^ (np.random.default_rng(seed).random(len(labels)) < 0.1)


def uniform(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    scores = random.random(n)
    return scores, (random.random(n) < scores).astype(int)


def few_distinct_scores(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    scores = random.integers(0, 11, n) / 10
    return scores, (random.random(n) < scores).astype(int)


def already_sorted(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    scores = np.arange(n) / 8
    return scores, _flipped(np.arange(n) > n / 2, seed).astype(int)


def reverse_sorted(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    scores, labels = already_sorted(n, seed)
    return scores[::-1].copy(), labels[::-1].copy()


def all_one_label(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return uniform(n, seed)[0], np.ones(n, int)


def all_the_other_label(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return uniform(n, seed)[0], np.zeros(n, int)


def alternating(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Cuts everywhere are about equally good."""
    return np.arange(n) / 4, np.arange(n) % 2


def perfectly_separable(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    scores = np.random.default_rng(seed).permutation(n) / 16
    return scores, (scores >= n / 32).astype(int)


def ties_everywhere(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Each score comes with both labels, equally often: every cut costs the same."""
    scores = np.repeat(np.arange((n + 1) // 2), 2)[:n] / 2
    return scores, np.arange(n) % 2


def one_score(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return np.full(n, 0.5), np.random.default_rng(seed).integers(0, 2, n)


def neighbouring_doubles(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """No double lies between one score and the next; 1.0, where the spacing changes, is in."""
    steps = np.random.default_rng(seed).integers(-(n // 4) - 2, n // 4 + 2, n)
    scores = (np.float64(1.0).view(np.int64) + steps).view(np.float64)
    return scores, _flipped(steps > 0, seed).astype(int)


def denormals(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Both signs of zero and the doubles next to it."""
    steps = np.random.default_rng(seed).integers(-(n // 8) - 2, n // 8 + 2, n)
    scores = np.where(steps % 7 == 0, 0.0, TINY) * steps
    return scores, _flipped(steps > 1, seed).astype(int)


def infinities(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    scores = random.normal(size=n)
    scores[random.random(n) < 0.2] = -INF
    scores[random.random(n) < 0.2] = INF
    return scores, _flipped(scores > 0, seed).astype(int)


def every_magnitude(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Doubles with arbitrary bits, from denormal to the largest."""
    random = np.random.default_rng(seed)
    scores = random.integers(-(2**63), 2**63 - 1, n).view(np.float64)
    scores[np.isnan(scores)] = 0.0
    return scores, _flipped(scores > 1e-100, seed).astype(int)


def crowded_at_one_end(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A saturated classifier: most scores are 0, 1 or next to them."""
    random = np.random.default_rng(seed)
    scores = np.clip(random.lognormal(-6, 4, n), 0, 1)
    return scores, _flipped(scores > 0.01, seed).astype(int)


SHAPES: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    shape.__name__: shape
    for shape in (
        uniform,
        few_distinct_scores,
        already_sorted,
        reverse_sorted,
        all_one_label,
        all_the_other_label,
        alternating,
        perfectly_separable,
        ties_everywhere,
        one_score,
        neighbouring_doubles,
        denormals,
        infinities,
        every_magnitude,
        crowded_at_one_end,
    )
}


# The answer by sorting: independent of the package and of the paper's module.


class Best(NamedTuple):
    """The highest of the cheapest cuts, its loss in whole units, and how many are as cheap."""

    lower: float | None
    upper: float | None
    loss: int
    ties: int


def sorted_best(scores: Any, below: Any, above: Any) -> Best:
    """Sort, add up whole losses, and take the highest minimum."""
    distinct, place = np.unique(np.asarray(scores, float) + 0.0, return_inverse=True)
    z = np.zeros(len(distinct), np.int64)
    np.add.at(z, place, np.asarray(above, np.int64) - np.asarray(below, np.int64))
    losses = int(np.sum(above, dtype=np.int64)) - np.concatenate([[0], np.cumsum(z)])
    at = len(losses) - 1 - int(np.argmin(losses[::-1]))
    return Best(
        float(distinct[at - 1]) if at else None,
        float(distinct[at]) if at < len(distinct) else None,
        int(losses[at]),
        int(np.count_nonzero(losses == losses[at])),
    )


def whole_losses(labels: Any, false_positive: int, false_negative: int, weights: Any = 1) -> Any:
    """What each sample costs below and above the cut, for whole costs and weights."""
    labels = np.asarray(labels)
    return labels * false_negative * weights, (1 - labels) * false_positive * weights


# Strategies.

NEIGHBOURS = [
    float(np.nextafter(x, towards)) for x in (0.5, 1.0, -2.0, 1e300) for towards in (-INF, x, INF)
]
AWKWARD_SCORES = [
    *(-INF, INF, 0.0, -0.0, TINY, 2 * TINY, 3 * TINY, -TINY, NORMAL, -NORMAL),
    *(NORMAL - TINY, HUGE, -HUGE, HUGE / 2, 0.1, 0.3),
    *NEIGHBOURS,
]

scores = (
    st.sampled_from(AWKWARD_SCORES) | st.integers(-20, 20).map(float) | st.floats(allow_nan=False)
)
finite_scores = scores.filter(math.isfinite)
labels = st.integers(0, 1)

whole_weights = st.integers(1, 4) | st.integers(0, 40).map(lambda k: 2**k) | st.just(2**40 - 1)
dyadic_weights = st.builds(lambda k, bits: k / 2**bits, st.integers(1, 2**12), st.integers(0, 5))
fine_weights = (
    st.builds(lambda k, bits: k / 2**bits, st.integers(1, 2**20), st.integers(0, 20))
    | st.floats(2.0**-20, 2.0**20)
    | st.integers(1, 2**20)
)
zero_weights = st.sampled_from([0, 0.0, -0.0])

# Whole weights up to 2**40 with at most five binary places, or fine ones up to 2**20: the sum of
# some dozens of either stays below the limit of 2**62 units, whatever the costs below.
weights = st.one_of(whole_weights, dyadic_weights, zero_weights)
light_weights = st.one_of(fine_weights, zero_weights)

whole_losses_of_one = (
    st.integers(-5, 5) | st.integers(0, 40).map(lambda k: 2**k) | st.integers(-(2**40), 2**40)
)
losses_of_one = whole_losses_of_one | dyadic_weights | dyadic_weights.map(lambda w: -w)

costs = st.sampled_from(
    [
        (1, 1),
        (1, 5),
        (19, 1),
        (0.1, 0.3),
        (0.25, 1),
        (Fraction(1, 3), Fraction(2, 7)),
        (1, 0.7),
        (100, 500),
    ]
)


# What a number becomes at the door.


def as_typed(number: Any) -> Fraction:
    """A cost or unit as the number people typed: 0.1 is a tenth."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def at_the_door(number: Any, unit: Any = None) -> Fraction:
    """A weight or loss rounded once to the nearest unit, ties to even."""
    step = FINEST if unit is None else as_typed(unit)
    return round(Fraction(number) / step) * step
