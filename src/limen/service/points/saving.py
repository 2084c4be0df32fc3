# SPDX-License-Identifier: Apache-2.0
"""Between which bounds the saving lies, for people who look every day.

Like `limen.Evidence`, bets: against a mean of m, a bettor stakes a share on every sample. If m is
the mean, the wealth of such bets ever reaches 40 in one of 40 streams at most, so those m at which
it has are ruled out, from below and from above. The order of samples leaves no trace.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from limen.trust.bets import average_log

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["bounds"]

_SHARES = 0.9 * 0.5 ** np.arange(16)  # of what can be lost on a sample
_DISTINCT = 1000
_FINER = 100  # costs beyond so many distinct ones are rounded by a hundredth, outward
_STEPS = 40


def bounds(
    counts: dict[float, int], largest_loss: float, largest_gain: float, confidence: float
) -> tuple[float | None, float | None]:
    """Return bounds of the mean of samples, given how many there are of each saving.

    A bound is None where a sample lies beyond the largest loss or gain, which were fixed before.

    >>> low, high = bounds({0.0: 900, 5.0: 60, -1.0: 40}, 1, 5, 0.95)
    >>> round(low, 2), round(high, 2)
    (0.14, 0.42)
    """
    up = {-saving: many for saving, many in counts.items()}
    low = _lower(counts, largest_loss, largest_gain, confidence)
    high = _lower(up, largest_gain, largest_loss, confidence)
    return low, None if high is None else -high


def _lower(counts: dict[float, int], loss: float, gain: float, confidence: float) -> float | None:
    if min(counts) < -loss:
        return None
    values = np.minimum(np.array(sorted(counts)), gain)  # less than it was: the bound holds
    many = np.array([counts[each] for each in sorted(counts)], np.float64)
    if len(values) > _DISTINCT:
        values, many = _coarser(values, many, loss)
    shares = _SHARES[:, None]
    enough = math.log(2 / (1 - confidence))
    low, high = -loss, gain
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if average_log(np.log1p(shares * ((values - middle) / (loss + middle))) @ many) >= enough:
            low = middle  # ruled out
        else:
            high = middle
    return low


def _coarser(
    values: NDArray[np.float64], many: NDArray[np.float64], loss: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Round savings down, by a hundredth each, and count those together that are then alike."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(values)) * _FINER
    sizes = np.exp(np.where(values > 0, np.floor(logs), np.ceil(logs)) / _FINER)
    rounded = np.maximum(np.copysign(sizes, values), -loss)
    rounded, place = np.unique(rounded, return_inverse=True)
    together: NDArray[np.float64] = np.bincount(place, many).astype(np.float64)
    return rounded, together
