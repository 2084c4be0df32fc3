# SPDX-License-Identifier: Apache-2.0
"""Histogram binning: bins with equally many samples, and the share of label 1 in each.

Zadrozny and Elkan (2001). Equal scores stay in one bin.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

BINS = 10


def fit(
    scores: np.ndarray, labels: np.ndarray, bins: int = BINS
) -> Callable[[np.ndarray], np.ndarray]:
    order = np.sort(scores)
    n = len(order)
    planned = np.arange(1, bins) * n // bins
    tied = order[np.maximum(planned - 1, 0)] == order[planned]
    after = np.searchsorted(order, order[planned], "right")  # the end of a run of equal scores
    starts = np.unique(np.where(tied, after, planned))
    starts = starts[(starts > 0) & (starts < n)]
    edges = (order[starts - 1] + order[starts]) / 2
    place = np.searchsorted(edges, scores, "right")
    count = np.bincount(place, minlength=len(edges) + 1)
    share = np.bincount(place, labels, len(edges) + 1) / np.maximum(count, 1)
    return lambda new: share[np.searchsorted(edges, new, "right")]
