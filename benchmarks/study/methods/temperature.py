# SPDX-License-Identifier: Apache-2.0
"""Temperature scaling: the log-odds of the score, divided by one number.

Guo, Pleiss, Sun and Weinberger (2017). scikit-learn's is the same, which a test states.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit


def odds(scores: np.ndarray) -> np.ndarray:
    return logit(np.clip(scores, 1e-12, 1 - 1e-12))


def fit(scores: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    given = odds(scores)

    def loss(logarithm: float) -> float:
        scaled = given * np.exp(logarithm)
        return float((np.logaddexp(0, scaled) - labels * scaled).sum())

    found = minimize_scalar(loss, bounds=(-10, 10), method="bounded", options={"xatol": 1e-9})
    factor = np.exp(found.x)
    return lambda new: expit(factor * odds(new))
