# SPDX-License-Identifier: Apache-2.0
"""What makes one threshold better than another: costs, a metric, a scorer, limits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from limen import metrics
from limen.aim import Aim
from limen.arrays import as_array
from limen.batch import loss_curve
from limen.best_cut import demands_of
from limen.classifiers import require_known
from limen.metrics import BestCut, Metric, as_metric
from limen.names import DEMANDS
from limen.optimum import Optimum
from limen.reporting import Report, report
from limen.sklearn.candidates import (
    as_thresholds,
    best_asked,
    counts_at,
    cut_at,
    highest_of_best,
    require_thresholds,
    sums_below,
)
from limen.sklearn.pool import Pool, amounts_of, fine_unit
from limen.sklearn.scoring import Scoring, read_scoring
from limen.sklearn.wrapper import Pooled, Wrapper
from limen.units import Cost

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from limen.columns import Numbers

__all__ = ["Aimed"]

_SYMMETRIC = (
    metrics.accuracy,
    metrics.balanced_accuracy,
    metrics.kappa,
    metrics.mcc,
    metrics.youden,
)


class Aimed(Wrapper):
    """Base of a classifier with a threshold: what the threshold is to be best at."""

    if TYPE_CHECKING:
        metric: str | Metric | Callable[..., Any] | None
        scoring: Any
        min_precision: Cost | None
        min_recall: Cost | None
        max_false_positive_rate: Cost | None
        max_positive_rate: Cost | None
        thresholds: Any
        best_threshold_: float

    def report(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        false_positive: ArrayLike | None = None,
        false_negative: ArrayLike | None = None,
        **given: Any,
    ) -> Report:
        """Write a page about the threshold, on rows that the classifier was not fitted on.

        By the aim of the classifier, in the name of its positive class, and with the threshold in
        use among those compared. O(n log n) besides the scores.

        Parameters
        ----------
        X, y, sample_weight, false_positive, false_negative
            Rows, classes, weights and costs of each row, as for `fit`.
        **given
            More for `limen.report`, such as ``title``, ``groups`` or ``asking``.
        """
        scores = self._score(X)
        classes = as_array(y, "y")
        require_known(classes, self.classes_)
        metric = self._metric()
        if self._must_ask() or (metric is not None and not isinstance(as_metric(metric), Metric)):
            raise ValueError(
                "a report works only with costs, metrics of limen and limits, not with a scorer "
                "or a function of one's own. Write limen.report(scores, labels, metric=...)."
            )
        named = self._positive not in (0, 1)
        aims = {**self._costs(), **self._limits(), "metric": metric, "unit": self.unit}
        rows = {"false_positive": false_positive, "false_negative": false_negative}
        aims |= {name: costs for name, costs in rows.items() if costs is not None}
        usual = {
            "thresholds": [self.best_threshold_],
            "positive": self._positive if named else None,
        }
        labels = (classes == self._positive).view(np.uint8)
        return report(scores, labels, weights=sample_weight, **{**aims, **usual, **given})

    def _check_parameters(self, per_row: bool) -> None:
        super()._check_parameters(per_row)
        if self.metric is not None and self.scoring is not None:
            raise ValueError(
                f"metric={self.metric!r} and scoring={self.scoring!r} are two aims. Leave out one "
                "of the two."
            )
        metric = self._metric()
        if metric is not None:
            as_metric(metric)
        name = "metric" if self.scoring is None else "scoring"
        if getattr(self, name) is not None and tuple(self._costs().values()) != (1, 1):
            raise ValueError(
                f"{name}={getattr(self, name)!r} and costs exclude each other: the costs would "
                "have no effect. Leave out one of the two."
            )
        limited = bool(demands_of(**self._limits()))
        if limited and (self._must_ask() or self.thresholds is not None):
            what = "a scorer that limen must ask" if self._must_ask() else "thresholds"
            raise ValueError(
                f"limits such as min_precision cannot be combined with {what}. Leave out one of "
                "the two, or take a metric of limen."
            )
        if self.thresholds is not None:
            require_thresholds(self.thresholds)
        if per_row and self._measured():
            raise ValueError(
                "costs per row cannot be combined with a metric, a scorer or limits such as "
                "min_precision. Leave out one of the two."
            )

    def _require_followed(self) -> None:
        """Raise ValueError for aims that would need all rows again with every batch."""
        if self.thresholds is not None or self._must_ask():
            what = "thresholds" if self.thresholds is not None else "a scorer that it must ask"
            raise ValueError(
                f"partial_fit does not work with {what}: it holds scores, and no rows. Take costs, "
                "a metric of limen, or a scorer such as 'f1'."
            )

    def _scoring(self) -> Scoring | None:
        return None if self.scoring is None else read_scoring(self.scoring, self.pos_label)

    def _metric(self) -> str | Metric | Callable[..., Any] | None:
        """Return the metric to maximise, also that of a scorer that limen knows."""
        scoring = self._scoring()
        return self.metric if scoring is None else scoring.metric

    def _must_ask(self) -> bool:
        """Whether the scorer is one that limen does not know."""
        return self.scoring is not None and self._metric() is None

    def _limits(self) -> dict[str, Cost | None]:
        # A number of rows is no limit here: folds and batches have other numbers of them.
        return {name: getattr(self, name) for name, bound in DEMANDS.items() if not bound.counts}

    def _aim(self, costs: dict[str, Numbers] | None = None) -> Aim:
        """Return what the parameters ask for, with costs of each row where there are any."""
        given: Any = {**self._costs(), **(costs or {}), **self._limits()}
        return Aim.of(metric=self._metric(), unit=self.unit, **given)

    def _measured(self) -> bool:
        """Whether something other than the lowest cost is asked for."""
        aims = (self.metric, self.scoring, *self._limits().values())
        return any(aim is not None for aim in aims)

    def _favours(self) -> bool:
        if any(limit is not None for limit in self._limits().values()) or not self._measured():
            return self._measured() or super()._favours()
        metric = self._metric()
        # A scorer that is asked knows its own positive class.
        return metric is not None and as_metric(metric) not in _SYMMETRIC

    def _costs(self) -> dict[str, Any]:
        return {"false_positive": self.false_positive, "false_negative": self.false_negative}

    def _new_pool(self, aim: Aim, repeated: bool = False) -> Pool:
        return Pool(aim.model(), max(aim.exact[:2]), repeated)

    def _exact(self, pooled: Pooled) -> Optimum | BestCut:
        """Find the best cut of some samples, holding none of them."""
        samples, aim = pooled.samples, self._aim(pooled.costs)
        if pooled.asked is not None:
            return best_asked(pooled.asked, samples, self.unit)[0]
        unit = aim.unit
        if unit is None:
            unit = fine_unit(amounts_of(aim.columns_of(samples)), max(aim.exact[:2]))
        found: Optimum | BestCut = replace(aim, unit=unit).best(samples)
        return found

    def _thresholds_of(self, folds: list[Pooled]) -> list[float]:
        """Find the exact threshold of each fold alone; nan where there is none."""
        found = []
        for fold in folds:
            try:
                found.append(self._exact(fold).threshold)
            except ValueError:  # no cut keeps the limits, or a metric is nan at all of them
                found.append(math.nan)
        return found

    def _results(self, pooled: Pooled) -> dict[str, Any]:
        """Value thresholds on all scores and on those of each fold."""
        values, samples = None, pooled.samples
        if self.thresholds is not None:
            thresholds = as_thresholds(self.thresholds, samples.scores)
        elif pooled.asked is not None:
            _, thresholds, values = best_asked(pooled.asked, samples, self.unit)
        else:
            scores = samples.scores
            if samples.weights is not None:
                scores = scores[samples.weights > 0]
            thresholds = loss_curve(scores, np.ones(len(scores), np.uint8)).thresholds
        folds = [self._values(fold, thresholds) for fold in pooled.folds()]
        if values is None:
            values = folds[0] if len(folds) == 1 else self._values(pooled, thresholds)
        return {"thresholds": thresholds, "scores": values, "fold_scores": np.array(folds)}

    def _best_of_these(
        self, pooled: Pooled, results: dict[str, Any]
    ) -> tuple[Optimum | BestCut, float, float, list[float]]:
        """Choose among some thresholds; return the exact cut, the choice, its value, and folds'.

        Where a scorer is asked, it is not asked at other cuts than these.
        """
        thresholds, values = results["thresholds"], results["scores"]
        sign = -1 if getattr(self._metric(), "lowest", False) else 1
        if np.isnan(values).all():
            raise ValueError("scoring or metric gives nan at every one of the thresholds.")
        at = highest_of_best(thresholds, sign * values)
        threshold, value = float(thresholds[at]), float(values[at])
        folds = [
            math.nan
            if np.isnan(each).all()
            else thresholds[highest_of_best(thresholds, sign * each)]
            for each in results["fold_scores"]
        ]
        if pooled.asked is None:
            return self._exact(pooled), threshold, value, folds
        return cut_at(pooled.samples, threshold, value, self.unit), threshold, value, folds

    def _values(self, pooled: Pooled, thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Say what each threshold is worth, as `best_score_` does. O(n log n)."""
        samples, aim = pooled.samples, self._aim(pooled.costs)
        if pooled.asked is not None:
            return pooled.asked.values(samples.scores, thresholds)
        if aim.priced:
            scores, *sides = aim.columns_of(samples)
            (below, _), (spared, above) = sums_below(scores, sides, thresholds, self.unit)
            return 0.0 - (below + above - spared)
        values = np.asarray(aim.measure(*counts_at(samples, thresholds, self.unit)), np.float64)
        return 0.0 - values if aim.metric is None else values
