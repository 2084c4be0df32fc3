# SPDX-License-Identifier: Apache-2.0
"""Exact decision thresholds for binary classifiers, kept right one sample at a time."""

from limen import losses
from limen.batch import loss_curve, optimal_cut, optimal_threshold
from limen.errors import NotHeld
from limen.online import OnlineCut, OnlineThreshold
from limen.optimum import LossCurve, Optimum

__all__ = [
    "LossCurve",
    "NotHeld",
    "OnlineCut",
    "OnlineThreshold",
    "Optimum",
    "loss_curve",
    "losses",
    "optimal_cut",
    "optimal_threshold",
]

__version__ = "0.1.0"
