# SPDX-License-Identifier: Apache-2.0
"""The names of the metrics. It imports nothing, so that help on the command line comes at once."""

from __future__ import annotations

__all__ = ["METRIC_NAMES"]

METRIC_NAMES = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "jaccard",
    "kappa",
    "mcc",
    "odds_ratio",
    "precision",
    "recall",
    "roc01",
    "specificity",
    "youden",
)
