# SPDX-License-Identifier: Apache-2.0
"""Inductive Venn-Abers predictors, joined to one number: Vovk, Petej and Fedorova (2015).

Here limen's exact one; that of the package `venn-abers` is the same, which a test states.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import limen


def fit(scores: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    model = limen.OnlineCalibrator()
    model.update_many(scores, labels)

    def predict(new: np.ndarray) -> np.ndarray:
        low, high = model.probability_interval(new)
        return np.asarray(high / (1 - low + high))

    return predict
