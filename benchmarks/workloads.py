# SPDX-License-Identifier: Apache-2.0
"""Seeded scores and labels, and the reference answer by sorting."""

from __future__ import annotations

import math

import numpy as np

SHAPES = ("uniform", "beta", "lognormal", "saturated", "pure noise")


def samples(shape: str, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores of a shape and labels that follow them, so that there is something to find."""
    rng = np.random.default_rng(seed)
    if shape in ("uniform", "pure noise"):
        scores = rng.random(n)
        chance = scores
    elif shape == "beta":
        scores = rng.beta(0.3, 0.3, n)
        chance = scores
    elif shape == "lognormal":
        scores = rng.lognormal(0, 2, n)
        chance = scores / (1 + scores)
    elif shape == "saturated":
        scores = np.clip(rng.normal(0.5, 1.0, n), 0.0, 1.0)
        chance = scores
    else:
        raise ValueError(shape)
    if shape == "pure noise":
        chance = np.full(n, 0.5)
    return scores, (rng.random(n) < chance).astype(np.int64)


def by_sorting(scores: np.ndarray, labels: np.ndarray, false_negative: int = 1) -> float:
    """The threshold by argsort, cumsum and argmax; equal scores stay together."""
    order = np.argsort(scores)
    ranked = scores[order]
    saved = np.cumsum(np.where(labels[order] == 1, -false_negative, 1))
    whole = np.append(ranked[1:] != ranked[:-1], True)
    return gap_threshold(ranked, saved[whole], np.flatnonzero(whole))


def by_sorting_without_ties(scores: np.ndarray, labels: np.ndarray) -> float:
    """The same where no two scores are equal, as people write it."""
    order = np.argsort(scores)
    saved = np.cumsum(1 - 2 * labels[order])
    return gap_threshold(scores[order], saved, None)


def gap_threshold(ranked: np.ndarray, saved: np.ndarray, ends: np.ndarray | None) -> float:
    """The midpoint of the best gap, the highest of equals."""
    best = len(saved) - 1 - int(np.argmax(saved[::-1]))
    if saved[best] < 0:
        return -math.inf
    at = best if ends is None else int(ends[best])
    return math.inf if at + 1 == len(ranked) else float(ranked[at] / 2 + ranked[at + 1] / 2)
