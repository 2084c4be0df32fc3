# SPDX-License-Identifier: Apache-2.0
"""What exact answers about a Spark frame cost, against reading it and against Spark ML.

    python -m benchmarks.spark [rows] [rounds] [folder]

CPU of the JVM per row, contenders in turns, the first round thrown away; the runs are listed in
order, so that the first of them is the second call. Answers are verified against limen on the same
rows first. The isotonic fit, the groups and Spark ML are asked at up to 10^7 rows: they take
minutes there.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import limen
import limen.spark
from benchmarks.machine import RESULTS, machine, write

MOST_FOR_SLOW = 10**7
MEMORY = "8g"  # IsotonicRegression of 10^7 rows does not fit in 3


def session() -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.driver.memory": MEMORY,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def written(spark: Any, rows: int, path: Path) -> Any:
    """Scores of a decent classifier and their labels, as Parquet, in a chance order."""
    if not (path / "_SUCCESS").exists():
        made = spark.range(rows).selectExpr("randn(7) AS z", "rand(8) AS u")
        made = made.selectExpr("1 / (1 + exp(-2 * z)) AS score", "u")
        made = made.selectExpr("score", "CAST(u < score AS TINYINT) AS label")
        made.write.mode("overwrite").parquet(str(path))
    return spark.read.parquet(str(path))


def cpu_of(spark: Any) -> Callable[[], float]:
    """CPU seconds of the JVM so far."""
    pid = spark.sparkContext._gateway.proc.pid
    tick = os.sysconf("SC_CLK_TCK")

    def seconds() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / tick

    return seconds


def contenders(frame: Any, rows: int) -> dict[str, Callable[[], object]]:
    from pyspark.ml.classification import LogisticRegression  # noqa: F401 - loads its Scala side
    from pyspark.ml.evaluation import BinaryClassificationEvaluator
    from pyspark.ml.regression import IsotonicRegression
    from pyspark.sql import functions as F  # noqa: N812

    read = frame.agg(F.sum("score"), F.sum("label"))
    linear = frame.groupBy(F.expr("CAST(floor(score * 16384) AS INT)"))
    grouped = linear.agg(F.min("score"), F.max("score"), F.count(F.lit(1)), F.sum("label"))
    keyed = frame.selectExpr("score", "label", "CAST(score * 1e9 AS BIGINT) % 1000 AS key")
    asked: dict[str, Callable[[], object]] = {
        "read both columns": read.collect,
        "groupBy of a linear map": grouped.toArrow,
        "optimal_threshold": lambda: limen.spark.optimal_threshold(frame, false_negative=5),
    }
    if rows <= MOST_FOR_SLOW:
        asked["isotonic"] = lambda: limen.spark.isotonic(frame)
        asked["by_group, 1,000 groups"] = lambda: limen.spark.by_group(keyed, by="key").toArrow()
        named = frame.select(F.col("score").alias("rawPrediction"), F.col("label").cast("double"))
        area = BinaryClassificationEvaluator(rawPredictionCol="rawPrediction")
        fit = IsotonicRegression(featuresCol="rawPrediction")
        asked["Spark ML areaUnderROC"] = lambda: area.evaluate(named)
        asked["Spark ML IsotonicRegression"] = lambda: fit.fit(named)
    return asked


def verify(frame: Any, path: Path, rows: int) -> None:
    """Compare with limen on the same rows, which must fit in memory."""
    table = pq.read_table(path)
    scores, labels = (table[name].to_numpy() for name in ("score", "label"))
    best = limen.optimal_threshold(scores, labels, false_negative=5)
    assert best == limen.spark.optimal_threshold(frame, false_negative=5)
    if rows > MOST_FOR_SLOW:
        return
    fit, found = limen.isotonic(scores, labels), limen.spark.isotonic(frame)
    assert fit.fractions() == found.fractions()
    assert np.array_equal(fit.first, found.first)
    assert np.array_equal(fit.last, found.last)


def main() -> None:
    given = [*sys.argv[1:], *("1000000", "3", gettempdir())[len(sys.argv) - 1 :]]
    rows, rounds, folder = int(float(given[0])), int(given[1]), Path(given[2])
    spark = session()
    path = folder / f"limen-spark-{rows}"
    frame = written(spark, rows, path)
    if rows <= 10**8:
        verify(frame, path, rows)
        print(f"{rows:,} rows: answers verified", flush=True)
    cpu, runs = cpu_of(spark), {name: list[float]() for name in contenders(frame, rows)}
    for turn in range(rounds + 1):
        asked = contenders(frame, rows)
        if not turn:  # Spark ML takes minutes: 1 % of the rows warm it up
            few = contenders(frame.sample(0.01, seed=1), rows)
            asked |= {name: ask for name, ask in few.items() if name.startswith("Spark ML")}
        for name, ask in asked.items():
            before = cpu()
            ask()
            if turn:
                runs[name].append((cpu() - before) / rows * 1e9)
    spark.stop()
    unit = statistics.median(runs["read both columns"])
    nanoseconds = {name: statistics.median(each) for name, each in runs.items()}
    for name, each in nanoseconds.items():
        print(f"{name:30} {each:10.1f} ns per row {each / unit:8.2f} x reading")
    found = {
        "machine": machine("pyspark"),
        "rows": rows,
        "unit": "CPU nanoseconds of the JVM per row, median of rounds",
        "beside other work": os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1),
        "nanoseconds": nanoseconds,
        "runs": runs,
    }
    write(RESULTS / "spark" / f"{rows}.json", found)


if __name__ == "__main__":
    main()
