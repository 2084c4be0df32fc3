# SPDX-License-Identifier: Apache-2.0
"""Some thresholds of pooled scores instead of all: what each is worth, and the best of them."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.columns import as_numbers
from limen.isotonic_fit import isotonic
from limen.metrics import BestCut, Confusion
from limen.optimum import Gap
from limen.samples import Samples
from limen.sklearn.pool import fine_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.columns import Numbers
    from limen.sklearn.scoring import ScorerRequest
    from limen.units import Cost

__all__ = [
    "as_thresholds",
    "best_asked",
    "counts_at",
    "cut_at",
    "highest_of_best",
    "require_thresholds",
    "sums_below",
]

ALL_ASKED = 1_000  # cuts up to which a scorer is asked at every one
_SPREAD = 256  # cuts that are asked first where there are more, and last


def as_thresholds(given: Any, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Read thresholds: as given, or so many at even steps from the lowest score to the highest.

    >>> as_thresholds(3, np.array([0.5, 0.0, 1.0]))
    array([0. , 0.5, 1. ])
    """
    if isinstance(given, Integral):
        finite = scores[np.isfinite(scores)]
        if len(finite) == 0:
            raise ValueError("thresholds is a number, and no score is finite. Give an array.")
        return np.linspace(finite.min(), finite.max(), num=int(given))
    return as_numbers(given, "thresholds").astype(np.float64)


def require_thresholds(given: Any) -> None:
    """Raise ValueError unless these are thresholds, or a number of them."""
    if isinstance(given, Integral):
        if given < 1:
            raise ValueError(f"thresholds must be at least 1, got {given}.")
        return
    thresholds = as_numbers(given, "thresholds")
    if len(thresholds) == 0:
        raise ValueError("thresholds must hold at least one, got none.")
    if np.isnan(thresholds).any():
        at = int(np.isnan(thresholds).argmax())
        raise ValueError(f"thresholds[{at}] is nan, which has no order; drop it.")


def sums_below(
    scores: NDArray[np.float64],
    columns: list[Numbers],
    thresholds: NDArray[np.float64],
    unit: Cost | None,
) -> list[tuple[NDArray[np.float64], float]]:
    """Add up each column over the scores below each threshold, and over all. O(n log n).

    Exact, because sums are those of whole units.
    """
    if unit is None:
        unit = fine_unit(columns, 1)
    size = 1.0 if unit is None else float(unit)
    order = np.argsort(scores, kind="stable")
    places = np.searchsorted(scores[order], thresholds, "left")
    found = []
    for column in columns:
        units = np.rint(column / size).astype(np.int64)[order]
        sums = np.append(0, np.cumsum(units))
        found.append((sums[places] * size, float(sums[-1] * size)))
    return found


def counts_at(
    samples: Samples, thresholds: NDArray[np.float64], unit: Cost | None
) -> tuple[NDArray[np.float64], ...]:
    """Weigh tp, fp, fn and tn at each threshold. O(n log n).

    >>> samples = Samples(np.array([0.2, 0.4]), np.array([1, 0]))
    >>> [weight.tolist() for weight in counts_at(samples, np.array([0.3, 0.5]), None)]
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """
    both = [samples.ones, samples.zeros]
    (fn, positive), (tn, negative) = sums_below(samples.scores, both, thresholds, unit)
    return positive - fn, negative - tn, fn, tn


def highest_of_best(thresholds: NDArray[np.float64], values: NDArray[np.float64]) -> int:
    """Find the highest threshold of those with the largest value; nan has none."""
    best = np.flatnonzero(values == np.nanmax(values))
    return int(best[np.argmax(np.nan_to_num(thresholds[best], nan=np.inf))])


def best_asked(
    asked: ScorerRequest, samples: Samples, unit: Cost | None
) -> tuple[BestCut, NDArray[np.float64], NDArray[np.float64]]:
    """Find the best cut by asking a scorer; return it, the thresholds asked and their values.

    Up to `ALL_ASKED` cuts, every one is asked that could be the best by a scorer that never
    falls when an answer becomes right. Where there are more: the vertices of the ROC hull and
    some at even steps, and then those around the best of them.
    """
    held = samples if samples.weights is None else samples.rows(samples.weights > 0)
    distinct = np.unique(held.scores)
    places = _corners(distinct, held)
    first = places
    if len(places) > ALL_ASKED:
        scores, labels, weights = held.columns
        if unit is None and weights is not None:
            unit = fine_unit([weights], 1)
        hull = np.searchsorted(distinct, isotonic(scores, labels, weights=weights, unit=unit).first)
        first = np.union1d(_spread(places), np.append(hull, len(distinct)))
    values = dict(zip(first.tolist(), _ask(asked, samples.scores, distinct, first), strict=True))
    if len(first) < len(places):
        known = np.nan_to_num(list(values.values()), nan=-np.inf)
        best = int(np.flatnonzero(known == known.max())[-1])
        low, high = first[max(best - 1, 0)], first[min(best + 1, len(first) - 1)]
        around = _spread(places[(places > low) & (places < high)])
        more = np.setdiff1d(around, first)
        values |= zip(more.tolist(), _ask(asked, samples.scores, distinct, more), strict=True)
    cuts = np.array(sorted(values))
    thresholds = np.array([_gap(distinct, at).threshold for at in cuts])
    found = np.array([values[at] for at in cuts.tolist()])
    if np.isnan(found).all():
        raise ValueError("scoring gives nan at every cut; it needs a number at one of them.")
    best = int(np.flatnonzero(found == np.nanmax(found))[-1])
    return cut_at(samples, thresholds[best], float(found[best]), unit), thresholds, found


def cut_at(samples: Samples, threshold: float, value: float, unit: Cost | None) -> BestCut:
    """Describe the cut of a threshold that is worth this much. O(n log n)."""
    scores, _, weights = samples.columns
    distinct = np.unique(scores if weights is None else scores[weights > 0])
    gap = _gap(distinct, np.searchsorted(distinct, threshold, "left"))
    counts = counts_at(samples, np.array([threshold]), unit)
    return BestCut(gap.lower, gap.upper, value, Confusion(*(float(each[0]) for each in counts)))


def _corners(distinct: NDArray[np.float64], samples: Samples) -> NDArray[np.intp]:
    """Find the cuts that have a negative right below, if any score is, and a positive right above.

    From any other cut, moving to the next one makes answers right and none wrong.
    """
    with_positive = np.isin(distinct, samples.scores[samples.labels == 1])
    with_negative = np.isin(distinct, samples.scores[samples.labels == 0])
    return np.flatnonzero(np.append(True, with_negative) & np.append(with_positive, True))


def _spread(places: NDArray[np.intp]) -> NDArray[np.intp]:
    """Choose some at even steps, the first and the last among them."""
    if len(places) <= _SPREAD:
        return places
    chosen: NDArray[np.intp] = places[np.linspace(0, len(places) - 1, _SPREAD).astype(int)]
    return chosen


def _gap(distinct: NDArray[np.float64], place: Any) -> Gap:
    lower = None if place == 0 else float(distinct[place - 1])
    return Gap(lower, None if place == len(distinct) else float(distinct[place]))


def _ask(
    asked: ScorerRequest,
    scores: NDArray[np.float64],
    distinct: NDArray[np.float64],
    places: NDArray[np.intp],
) -> list[float]:
    thresholds = [_gap(distinct, at).threshold for at in places]
    return asked.values(scores, thresholds).tolist() if thresholds else []
