# SPDX-License-Identifier: Apache-2.0
"""Spark as a source of `limen.narrowing`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from limen.narrowing import Counts
from limen.narrowing.search import DRAWN
from limen.narrowing.sql import REFUSED, finer_steps, literal, ranges, steps_of
from limen.samples import Samples
from limen.spark.columns import SPARK, WRONG_LABEL

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame

    from limen.narrowing import Kept, Level, Root
    from limen.spark.columns import Prepared

__all__ = ["SparkSource"]


def _array(values: NDArray[np.float64]) -> str:
    """Write an array as one text, which Spark folds into a constant."""
    return f"CAST(split('{','.join(map(repr, values.tolist()))}', ',') AS ARRAY<DOUBLE>)"


class SparkSource:
    """The rows of a prepared frame. Nothing of the session is changed."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._columns = ["score", "label", *(["units"] if prepared.weighted else [])]
        self._rows = prepared.frame
        self._numbered = prepared.frame
        self.least = 0  # the sum of the smaller losses, where there are losses

    def draw(self) -> NDArray[np.float64]:
        """Return the first scores that can be used."""
        some = self._rows.where("score IS NOT NULL").select("score").limit(DRAWN).collect()
        return np.array([row[0] for row in some], np.float64)

    def count(self, root: Root) -> Counts:
        """Count all rows by bucket."""
        mapped = self._rows
        for name, step in steps_of(root, _array(root.base), _array(root.size), SPARK):
            mapped = mapped.withColumn(name, F.expr(step))
        extra = [F.expr("try_sum(least)").alias("least")] if "least" in self._rows.columns else []
        found = self._count(mapped, extra)
        wrong = self._prepared.unchecked and found["ones"] >= WRONG_LABEL
        if np.any((found["number"] == REFUSED) | wrong):
            self._prepared.refuse()
        if extra:
            self.least = sum(found["least"].tolist())
        self._numbered = mapped.select(*self._columns, "number")
        return Counts(**{name: found[name] for name in Counts._fields})

    def split(self, level: Level) -> Counts:
        """Count the rows of some buckets by finer ones."""
        names = ("number", "by_magnitude", "start", "stretch", "scale", "base", "last")
        table = pa.table({name: getattr(level, name) for name in names})
        table = table.set_column(0, "number", table["number"].cast(pa.int32()))
        ends = f"score BETWEEN {literal(level.first_score)} AND {literal(level.last_score)}"
        inside = self._numbered.where(ends).join(self._broadcast(table), "number")
        for name, step in finer_steps():
            inside = inside.withColumn(name, F.expr(step))
        self._numbered = inside.select(*self._columns, F.col("finer").alias("number"))
        found = self._count(self._numbered, [])
        return Counts(**{name: found[name] for name in Counts._fields})

    def _broadcast(self, table: Any) -> DataFrame:
        return F.broadcast(self._rows.sparkSession.createDataFrame(table))

    def _count(self, mapped: DataFrame, extra: list[Column]) -> dict[str, NDArray[Any]]:
        if self._prepared.weighted:
            sums = [
                F.expr("try_sum(units * (1 - label))").alias("zeros"),
                F.expr("try_sum(units * label)").alias("ones"),
            ]
        else:
            sums = [F.expr(f"coalesce(try_sum(label), {WRONG_LABEL}L)").alias("ones")]
        table = (
            mapped.groupBy("number")
            .agg(
                F.min("score").alias("first"),
                F.max("score").alias("last"),
                F.count(F.lit(1)).alias("n"),
                *sums,
                *extra,
            )
            .toArrow()
        )
        used = table.filter(pa.compute.not_equal(table["number"], REFUSED))
        if any(used[name].null_count for name in used.column_names):
            raise OverflowError("the weights add up to 2**63 units or more. Choose a larger unit.")
        filled = table if used.num_rows < table.num_rows else used
        found = {name: filled[name].to_numpy() for name in filled.column_names}
        if "zeros" not in found:
            found["zeros"] = found["n"] - found["ones"]
        return found

    def collect(self, kept: Kept) -> Samples:
        """Fetch the rows to keep."""
        rows = self._rows if kept.number is None else self._numbered
        near = rows.where(ranges(kept))
        if kept.number is not None:
            wanted = pa.table({"number": kept.number.astype(np.int32)})
            near = near.join(self._broadcast(wanted), "number", "left_semi")
        label = F.expr("CAST(label = 1 AS TINYINT)").alias("label")
        table = near.select("score", label, *self._columns[2:]).toArrow()
        columns = [table[name].to_numpy() for name in self._columns]
        return Samples(columns[0], columns[1].astype(np.uint8), *columns[2:])
