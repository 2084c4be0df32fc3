# SPDX-License-Identifier: Apache-2.0
"""Bayesian binning into quantiles: an average over binnings, weighted by a Bayesian score.

Naeini, Cooper and Hauskrecht (2015), with the details of the authors' published program: how many
bins are tried, a BDeu score of twice as many prior samples as bins, the prior mean in the middle
of each bin, and binnings of low weight left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln

PRIOR = 2.0  # prior samples of each bin
ELBOW = 0.001


def ends_of(order: np.ndarray, bins: int) -> np.ndarray:
    """Where bins of equal size end; the next one joins while it holds the same single score."""
    n = len(order)
    planned = [*(place * (n // bins) for place in range(1, bins)), n]
    ends: list[int] = []
    start = place = 0
    while place < bins:
        end, place = planned[place], place + 1
        while place < bins and order[planned[place] - 1] == order[start]:
            end, place = planned[place], place + 1
        ends.append(end)
        start = end
    return np.array(ends)


class Binning:
    """Edges, the value of each bin, and the score of all of it."""

    def __init__(self, order: np.ndarray, ones: np.ndarray, mass: np.ndarray, bins: int) -> None:
        """`ones` and `mass` are running sums of the labels, and of the scores of label 1."""
        end = ends_of(order, bins)
        start = np.append(0, end[:-1])
        self.edges = (order[end[:-1] - 1] + order[end[:-1]]) / 2
        middle = (np.append(0, self.edges) + np.append(self.edges, 1)) / 2
        n, n1 = end - start, ones[end] - ones[start]
        prior = (mass[end] - mass[start] + middle) / (n1 + 1)
        self.values = (n1 + prior) / (n + 1)
        one = PRIOR * np.clip(middle, 0.005, 0.995)
        zero = PRIOR - one
        self.score = float(
            (
                gammaln(PRIOR)
                - gammaln(n + PRIOR)
                + gammaln(n1 + one)
                - gammaln(one)
                + gammaln(n - n1 + zero)
                - gammaln(zero)
            ).sum()
        )

    def __call__(self, new: np.ndarray) -> np.ndarray:
        return self.values[np.searchsorted(self.edges, new, "right")]


def above_elbow(weights: np.ndarray) -> np.ndarray:
    """The places of the weights before they stop falling steeply, largest first."""
    order = np.argsort(-weights, kind="stable")
    falling, spread = weights[order], float(weights.var())
    last = 1
    while last < len(falling) and falling[last - 1] == falling[last]:
        last += 1
    while last < len(falling) and falling[last - 1] - falling[last] > ELBOW * spread:
        last += 1
    return order[: max(last - 1, 1)]


def fit(scores: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    place = np.argsort(scores, kind="stable")
    order, label = scores[place].astype(float), labels[place].astype(float)
    ones, mass = np.append(0, np.cumsum(label)), np.append(0, np.cumsum(label * order))
    root = len(order) ** (1 / 3)
    fewest = max(1, int(root / 10))
    most = min(int(np.ceil(len(order) / 5)), int(np.ceil(10 * root)))
    binnings = [Binning(order, ones, mass, bins) for bins in range(fewest, most + 1)]
    score = np.array([each.score for each in binnings])
    weights = np.exp(score - score.max())
    kept = above_elbow(weights) if len(weights) > 1 else np.array([0])
    share = weights[kept] / weights[kept].sum()

    def predict(new: np.ndarray) -> np.ndarray:
        return sum(each * binnings[at](new) for each, at in zip(share, kept, strict=True))

    return predict
