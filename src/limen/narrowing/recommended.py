# SPDX-License-Identifier: Apache-2.0
"""The threshold for new rows, by the counts of more rows than memory holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from limen import _core, trust
from limen.aim import Aim
from limen.confidence import critical_value
from limen.narrowing.answers import represented
from limen.narrowing.rules import cheapest_cuts
from limen.narrowing.search import MOST, search
from limen.optimum import as_threshold
from limen.score_kind import require_kind
from limen.trust.recommended import Recommendation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.narrowing.buckets import Buckets
    from limen.narrowing.search import Narrowed, Source
    from limen.score_kind import BatchScoreKind
    from limen.units import Cost

__all__ = ["CountedRecommendation", "recommend"]


class CountedRecommendation(Recommendation):
    """A recommendation by counts: what needs every single row cannot be asked."""

    _has_rows = False

    def cost(self) -> NoReturn:
        """Refuse: cross-fitting needs every row, in folds."""
        raise ValueError(
            "cost() needs all rows, in folds, and only counts are held. Ask limen.recommend() "
            "about a sample of the rows."
        )

    def distance(self, threshold: float) -> NoReturn:
        """Refuse: how many rows lie below any threshold is not held."""
        raise ValueError(
            "distance() and rules_out() need all rows, and only counts are held. Give the "
            "threshold as current=..., or ask limen.recommend() about a sample of the rows."
        )


def recommend(
    source: Source,
    *,
    false_positive: Cost = 1,
    false_negative: Cost = 1,
    current: float | None = None,
    confidence: float = 0.95,
    scores_are: BatchScoreKind = "auto",
    most: int = MOST,
    **tuning: Any,
) -> Recommendation:
    """Recommend a threshold for new rows, as `limen.recommend` does by arrays.

    Up to `most` rows it is that answer, bit for bit. Of more rows the optimum is exact, and the
    recommended threshold and the interval are chosen among the cuts between buckets, a few of
    16,384 off. All rows weigh 1.

    Parameters
    ----------
    source
        The rows, without weights.
    false_positive, false_negative, current, confidence, scores_are
        As for `limen.recommend`.
    most, tuning
        As for `search`.
    """
    critical_value(confidence)  # refuses what is no confidence before it reads anything
    aim = Aim.of(false_positive=false_positive, false_negative=false_negative)
    positive, negative, scale = aim.exact

    def rule(found: Buckets) -> NDArray[np.bool_]:
        if found.rows <= most:
            return found.first < found.last
        return cheapest_cuts(found, positive, negative)

    narrowed = search(source, rule, most=most, **tuning)
    require_kind(scores_are, "scores_are", auto=True)
    given: dict[str, Any] = {"current": current, "confidence": confidence}
    samples = represented(narrowed)
    if narrowed.rows <= most:
        units: Any = samples.weights
        rows, ones = np.repeat(samples.scores, units), np.repeat(samples.labels, units)
        return trust.recommend(rows, ones, **aim.mistakes, **given, scores_are=scores_are)
    if current is not None:
        current = as_threshold(current, "current")
    optimum = aim.best(samples)
    ranked = _ranked(narrowed, positive, negative, scores_are)
    return CountedRecommendation._of(
        ranked, (positive, negative), scale, optimum, confidence, current
    )


def _ranked(narrowed: Narrowed, positive: int, negative: int, kind: str) -> _core.Ranked:
    """Rank the rows and the buckets; what lies below a cut is known where a cut is."""
    near, rest = narrowed.near, narrowed.rest
    scores = np.concatenate([near.scores, rest.last])
    order = np.argsort(scores, kind="stable")
    ones = np.concatenate([near.ones, rest.ones])[order].astype(np.int64, copy=False)
    zeros = np.concatenate([near.zeros, rest.zeros])[order].astype(np.int64, copy=False)
    return _core.Ranked.counted(scores[order], ones, zeros, positive, negative, kind, False)
