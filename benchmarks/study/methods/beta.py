# SPDX-License-Identifier: Apache-2.0
"""Beta calibration with three parameters: Kull, Silva Filho and Flach (2017), by their package."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from betacal import BetaCalibration


def fit(scores: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn, about arguments the package gives it
        found = BetaCalibration(parameters="abm").fit(scores, labels)
    return lambda new: np.asarray(found.predict(new))
