# SPDX-License-Identifier: Apache-2.0
"""One threshold for each group of a frame, for millions of groups: one shuffle, no Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from limen.narrowing.sql import literal
from limen.spark.columns import prepared
from limen.units import exact_costs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from limen.units import Cost

__all__ = ["by_group"]

_TOO_MUCH = (
    "raise_error('the losses of a group add up to 2**63 units or more: choose a larger unit')"
)


def by_group(
    frame: DataFrame,
    *,
    by: str | Sequence[str],
    score: str = "score",
    label: str = "label",
    weight: str | None = None,
    positive: Any = None,
    false_positive: Cost = 1,
    false_negative: Cost = 1,
    unit: Cost | None = None,
) -> DataFrame:
    """Find the cheapest threshold of every group of a Spark frame, exactly.

    Returns a frame with one row for each group: the columns `by`, then `lower`, `upper`,
    `threshold`, `loss` and `n`, the number of rows. It is computed when it is used; rows that
    cannot be used are found, by one reading of the frame, at the call.

    Parameters
    ----------
    by
        One or several names of columns; a null is refused.
    frame, score, label, weight, positive, false_positive, false_negative, unit
        As for `limen.spark.optimal_threshold`.

    Notes
    -----
    The distinct scores of a group are sorted in one task. A group of more than 10^8 of them is
    better searched alone, by `limen.spark.optimal_threshold`.
    """
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names:
        raise ValueError("by must name at least one column; for all rows: optimal_threshold().")
    negative_cost, positive_cost, scale = exact_costs(false_positive, false_negative)
    rows = prepared(
        frame, score=score, label=label, weight=weight, unit=unit, positive=positive, by=names
    )
    if rows.frame.agg(F.expr("count_if(score IS NULL)")).collect()[0][0]:
        rows.refuse()
    keys = [f"limen_by_{at}" for at in range(len(names))]
    units = "units" if rows.weighted else "1L"
    tied = rows.frame.groupBy(*keys, "score").agg(
        F.expr(f"try_sum({units} * (1 - label))").alias("zeros"),
        F.expr(f"try_sum({units} * label)").alias("ones"),
        F.count(F.lit(1)).alias("n"),
    )
    fall = f"try_multiply(zeros, CAST({negative_cost} AS BIGINT))"
    rise = f"try_multiply(ones, CAST({positive_cost} AS BIGINT))"
    priced = tied.select(
        *keys, "score", "n", F.expr(fall).alias("fall"), F.expr(rise).alias("rise")
    )
    window = Window.partitionBy(*keys).orderBy("score")
    cuts = priced.select(
        *keys,
        "score",
        "n",
        "fall",
        "rise",
        F.expr("try_subtract(fall, rise)").alias("gain"),
        F.lead("score").over(window).alias("next"),
    ).withColumn(
        "gain", F.expr("try_sum(gain)").over(window.rowsBetween(Window.unboundedPreceding, 0))
    )
    best = cuts.groupBy(*keys).agg(
        F.expr("max(struct(gain, score, next))").alias("cut"),
        F.min("score").alias("lowest"),
        F.expr(f"coalesce(try_sum(fall), {_TOO_MUCH})").alias("all_answered_1"),
        F.expr(f"coalesce(try_sum(rise), {_TOO_MUCH})").alias("all_answered_0"),
        F.expr("count_if(fall IS NULL OR rise IS NULL)").alias("lost"),
        F.sum("n").alias("n"),
    )
    return _described(best, keys, names, scale * rows.unit)


def _described(best: DataFrame, keys: list[str], names: tuple[str, ...], size: Any) -> DataFrame:
    """Turn the best cut of each group into its columns. To predict all positive gains nothing."""
    none = "cut.gain < 0"
    lost = f"CASE WHEN lost > 0 THEN {_TOO_MUCH} ELSE all_answered_1 - greatest(cut.gain, 0L) END"
    found = best.select(
        *keys,
        F.expr(f"CASE WHEN NOT ({none}) THEN cut.score END").alias("lower"),
        F.expr(f"CASE WHEN {none} THEN lowest ELSE cut.next END").alias("upper"),
        F.expr(lost).alias("lost"),
        "n",
    )
    loss = F.col("lost").cast("double")
    if size.numerator != 1:
        loss = loss * F.expr(literal(float(size.numerator)))
    if size.denominator != 1:
        loss = loss / F.expr(literal(float(size.denominator)))
    renamed = [F.col(key).alias(name) for key, name in zip(keys, names, strict=True)]
    return found.select(
        *renamed, "lower", "upper", _threshold().alias("threshold"), loss.alias("loss"), "n"
    )


def _threshold() -> Column:
    """Write the number to publish, as `limen.Optimum.threshold` finds it."""
    infinite, nan = "CAST('Infinity' AS DOUBLE)", "CAST('NaN' AS DOUBLE)"
    even = "(lower + upper) / 2"
    middle = f"CASE WHEN abs({even}) = {infinite} THEN lower / 2 + upper / 2 ELSE {even} END"
    inside = f"NOT isnan({middle}) AND {middle} > lower AND {middle} < upper"
    return F.expr(
        f"CASE WHEN upper IS NULL AND lower = {infinite} THEN {nan} "
        f"WHEN upper IS NULL THEN {infinite} WHEN lower IS NULL THEN -{infinite} "
        f"WHEN {inside} THEN {middle} ELSE upper END"
    )
