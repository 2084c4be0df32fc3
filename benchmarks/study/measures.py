# SPDX-License-Identifier: Apache-2.0
"""What a map or a decision is worth on new rows.

`truth` is the label of each row, or, where rows are drawn by a law, the chance of label 1.
"""

from __future__ import annotations

import numpy as np

CLIP = 1e-6  # log loss takes no chance below this, and none above 1 - this
GROUPS = 15


def log_loss(chance: np.ndarray, truth: np.ndarray) -> float:
    safe = np.clip(chance, CLIP, 1 - CLIP)
    return float(-(truth * np.log(safe) + (1 - truth) * np.log1p(-safe)).mean())


def brier(chance: np.ndarray, truth: np.ndarray) -> float:
    return float((truth * (1 - chance) ** 2 + (1 - truth) * chance**2).mean())


def gaps(chance: np.ndarray, truth: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far the mean chance is from the share of ones in each group of rows, and its size."""
    starts = np.append(0, ends[:-1])
    size = ends - starts
    far = np.abs(np.add.reduceat(chance, starts) - np.add.reduceat(truth, starts)) / size
    return far, size


def calibration_error(chance: np.ndarray, truth: np.ndarray, groups: int = GROUPS) -> float:
    """Expected calibration error of groups of equal size; equal chances stay in one group."""
    order = np.argsort(chance, kind="stable")
    chance, truth = chance[order], np.asarray(truth, float)[order]
    planned = np.arange(1, groups + 1) * len(chance) // groups
    planned = planned[planned > 0]
    ends = np.unique(np.searchsorted(chance, chance[planned - 1], "right"))
    far, size = gaps(chance, truth, ends)
    return float(far @ size / len(chance))


def ten_groups(chance: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Expected and maximum calibration error as in the paper on BBQ.

    Ten groups of rows in order of chance, then of truth; the first ones are larger by one row where
    ten does not divide the rows.
    """
    order = np.lexsort((truth, chance))
    n = len(chance)
    ends = np.cumsum(np.full(min(n, 10), n // 10) + (np.arange(min(n, 10)) < n % 10))
    far, size = gaps(chance[order], np.asarray(truth, float)[order], ends)
    return float(far @ size / n), float(far.max())


def cost(answers: np.ndarray, truth: np.ndarray, false_positive: int, false_negative: int) -> float:
    """What answers cost in all; expected, where truth is a chance."""
    return float(
        false_positive * (1 - truth)[answers].sum() + false_negative * truth[~answers].sum()
    )
