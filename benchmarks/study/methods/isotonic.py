# SPDX-License-Identifier: Apache-2.0
"""Isotonic regression: the best non-decreasing map, here limen's exact one, linear between scores.

Zadrozny and Elkan (2002). scikit-learn's is the same map to rounding, which a test states.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import limen


def fit(scores: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    blocks = limen.isotonic(scores, labels)
    return lambda new: np.asarray(blocks.probability(new, between="linear"))
