# SPDX-License-Identifier: Apache-2.0
"""What is asked of a frame: the cheapest cut, the isotonic fit, a model of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pyspark.sql import functions as F  # noqa: N812

from limen import narrowing
from limen.narrowing.answers import weighing
from limen.samples import Samples
from limen.spark.columns import prepared, prepared_losses
from limen.spark.source import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from limen.hull import Blocks
    from limen.optimum import Optimum
    from limen.score_kind import BatchScoreKind
    from limen.trust.recommended import Recommendation
    from limen.units import Cost

__all__ = ["hold", "isotonic", "optimal_cut", "optimal_threshold", "recommend"]

Model = TypeVar("Model")


def optimal_threshold(
    frame: DataFrame,
    *,
    score: str = "score",
    label: str = "label",
    weight: str | None = None,
    positive: Any = None,
    false_positive: Cost = 1,
    false_negative: Cost = 1,
    unit: Cost | None = None,
    **tuning: Any,
) -> Optimum:
    """Find the decision threshold with the lowest total cost of a Spark frame, exactly.

    Reads the frame two to four times; no row is shuffled. Persist what is expensive to compute.

    Parameters
    ----------
    frame
        Any frame of a classic session or of Spark Connect.
    score, label, weight
        Names of columns: numbers, 0 and 1 or booleans, numbers of at least 0.
    positive
        The label of the positive class, where labels are not 0 and 1; all others are negative.
    false_positive, false_negative
        As for `limen.optimal_threshold`.
    unit
        As for `limen.optimal_threshold`, but one over a whole number below 2**26.
    tuning
        As for `limen.narrowing.search`: `most`, the rows that may be fetched to the driver.

    Raises
    ------
    ValueError
        When rows cannot be used: how many, why, and one of them.
    RuntimeError
        When the frame gives other rows when it is read again.
    """
    given: dict[str, Any] = {"weight": weight, "unit": unit, "positive": positive}
    rows = prepared(frame, score=score, label=label, **given, unchecked=True)
    costs: dict[str, Any] = {"false_positive": false_positive, "false_negative": false_negative}
    return narrowing.optimal_threshold(SparkSource(rows), unit=rows.unit, **costs, **tuning)


def optimal_cut(
    frame: DataFrame,
    *,
    score: str = "score",
    below: str = "below",
    above: str = "above",
    unit: Cost | None = None,
    **tuning: Any,
) -> Optimum:
    """Find the cheapest cut of a Spark frame for any losses, exactly.

    Parameters
    ----------
    frame, score, unit, tuning
        As for `optimal_threshold`.
    below, above
        Names of columns: what each row costs if it is answered 0, and if it is answered 1.
    """
    rows = prepared_losses(frame, score=score, below=below, above=above, unit=unit)
    return narrowing.optimal_cut(SparkSource(rows), unit=rows.unit, **tuning)


def isotonic(
    frame: DataFrame,
    *,
    score: str = "score",
    label: str = "label",
    weight: str | None = None,
    positive: Any = None,
    unit: Cost | None = None,
    **tuning: Any,
) -> Blocks:
    """Fit labels to scores by the best non-decreasing function, exactly, of a Spark frame.

    Parameters are those of `optimal_threshold`. The fit has the best threshold of every cost:
    the cut below the first block whose probability is above
    ``false_positive / (false_positive + false_negative)``.
    """
    given: dict[str, Any] = {"weight": weight, "unit": unit, "positive": positive}
    rows = prepared(frame, score=score, label=label, **given, unchecked=True)
    return narrowing.isotonic(SparkSource(rows), unit=rows.unit, **tuning)


def recommend(
    frame: DataFrame,
    *,
    score: str = "score",
    label: str = "label",
    positive: Any = None,
    false_positive: Cost = 1,
    false_negative: Cost = 1,
    current: float | None = None,
    confidence: float = 0.95,
    scores_are: BatchScoreKind = "auto",
    **tuning: Any,
) -> Recommendation:
    """Recommend a threshold for new rows from a Spark frame, with its interval.

    Up to `most` rows, 2,000,000, it is the answer of `limen.recommend`, bit for bit. Of more rows
    the optimum is exact, and the recommended threshold and the interval are chosen among the cuts
    between buckets, a few of 16,384 off. What needs every single row, `cost()`, `distance()` and
    `rules_out()`, is then refused. All rows weigh 1.

    Parameters
    ----------
    frame, score, label, positive, tuning
        As for `optimal_threshold`.
    false_positive, false_negative, current, confidence, scores_are
        As for `limen.recommend`.
    """
    rows = prepared(frame, score=score, label=label, positive=positive, unchecked=True)
    costs: dict[str, Any] = {"false_positive": false_positive, "false_negative": false_negative}
    given: dict[str, Any] = {"current": current, "confidence": confidence, "scores_are": scores_are}
    return narrowing.recommend(SparkSource(rows), **costs, **given, **tuning)


def hold(
    frame: DataFrame,
    model: Model,
    *,
    score: str = "score",
    label: str = "label",
    weight: str | None = None,
    positive: Any = None,
    unit: Cost | None = None,
) -> Model:
    """Add the rows of a Spark frame to a model, by one aggregation over equal scores.

    For frames of few distinct scores, or few rows: all distinct scores must fit in the memory of
    the driver. The model counts the distinct scores of each label as samples, with the weight of
    all their rows; its answers are those of all rows. Returns the model.

    Parameters
    ----------
    model
        Whatever offers `update_many`, such as `limen.OnlineThreshold` or `limen.OnlineCalibrator`;
        with fractional weights, one of the same `unit`.
    frame, score, label, weight, positive, unit
        As for `optimal_threshold`.
    """
    rows = prepared(frame, score=score, label=label, weight=weight, unit=unit, positive=positive)
    units = F.expr("try_sum(units)" if rows.weighted else "count(1)").alias("units")
    label_or_none = F.expr("CASE WHEN score IS NOT NULL THEN label END").alias("label")
    table = rows.frame.select("score", label_or_none, *(["units"] if rows.weighted else []))
    found = table.groupBy("score", "label").agg(units).toArrow()
    if found["score"].null_count:
        rows.refuse()
    if found["units"].null_count:
        raise OverflowError("the weights add up to 2**63 units or more. Choose a larger unit.")
    labels = found["label"].to_numpy().astype(np.uint8)
    tied = Samples(found["score"].to_numpy(), labels, found["units"].to_numpy())
    model.update_many(*weighing(tied, rows.unit).columns)  # type: ignore[attr-defined]
    return model
