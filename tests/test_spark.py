# SPDX-License-Identifier: Apache-2.0
"""Spark gives the answers of limen on the same rows, bit for bit, whatever happens on the way."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from odd_values import CLASSES
from test_narrowing import SHAPES, TINY, same_fit

import limen

pa = pytest.importorskip("pyarrow")
# pyspark 4.0 leaves a socket to the garbage collector.
pytestmark = [
    pytest.mark.check,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
THOROUGH = bool(os.environ.get("LIMEN_THOROUGH"))
N = 2_000


def rows(seed: int = 1) -> dict[str, np.ndarray]:
    """Samples with every kind of label, weight, loss and group."""
    random = np.random.default_rng(seed)
    scores = random.integers(0, 700, N) / 700
    labels = (random.random(N) < scores).astype(np.int8)
    return {
        "score": scores,
        "label": labels,
        "yes": np.where(labels == 1, "it's", "no"),
        "whole": random.integers(0, 5, N),
        "money": random.integers(1, 5_000, N) / 100,
        "fraction": random.random(N) + 0.001,
        "below": random.integers(-3, 9, N),
        "above": random.integers(-3, 9, N) / 4,
        "group": random.integers(0, 40, N),
    }


ROWS = rows()


@pytest.fixture(scope="module")
def frame(spark):
    """The samples in three partitions."""
    return spark.createDataFrame(pa.table(ROWS)).repartition(3).persist()


@pytest.fixture(scope="module")
def ls(spark):
    import limen.spark

    return limen.spark


def two_columns(spark, scores, labels):
    return spark.createDataFrame(pa.table({"score": scores, "label": labels})).repartition(3)


# ---- the same answers -----------------------------------------------------------------------


@pytest.mark.parametrize("tuning", [{}, TINY], ids=["usual", "tiny"])
def test_the_cheapest_threshold_is_that_of_limen(ls, frame, tuning) -> None:
    found = ls.optimal_threshold(frame, false_positive=0.1, false_negative=0.3, **tuning)

    assert found == limen.optimal_threshold(
        ROWS["score"], ROWS["label"], false_positive=0.1, false_negative=0.3
    )


@pytest.mark.parametrize("weight", ["whole", "money", "fraction", "decimal"])
@pytest.mark.parametrize("unit", [None, 0.01])
def test_weights_of_every_kind_count_as_in_limen(ls, frame, weight, unit) -> None:
    weights = ROWS["money" if weight == "decimal" else weight]
    if weight == "decimal":
        frame = frame.withColumn("decimal", frame["money"].cast("decimal(20, 2)"))
        weights = [Decimal(str(each)) for each in weights.tolist()]
    if weight == "fraction" and unit is not None:
        weights = np.maximum(weights, 0.005000001)
        frame = frame.selectExpr("score", "label", "greatest(fraction, 0.005000001D) AS fraction")
    found = ls.optimal_threshold(frame, weight=weight, unit=unit, most=100)
    columns = ROWS["score"], ROWS["label"]

    assert found == limen.optimal_threshold(*columns, weights=weights, unit=unit)


def test_ties_between_units_are_rounded_as_in_limen(ls, spark) -> None:
    weights = np.array([0.5, 1.5, 2.5, 0.015, 0.025, 1.005, 2.675, 1.115, 8.325, 1e9 + 0.005])
    scores, labels = np.arange(len(weights)) / 16, np.arange(len(weights)) % 2
    table = pa.table({"score": scores, "label": labels, "w": weights})
    for unit in (0.005, Fraction(1, 300), Fraction(1, 2**26 - 1)):
        found = ls.optimal_threshold(spark.createDataFrame(table), weight="w", unit=unit)

        assert found == limen.optimal_threshold(scores, labels, weights=weights, unit=unit)


@pytest.mark.parametrize("unit", [None, 0.25])
def test_the_cheapest_cut_of_any_losses_is_that_of_limen(ls, frame, unit) -> None:
    expected = limen.optimal_cut(ROWS["score"], ROWS["below"], ROWS["above"], unit=unit)

    assert expected == ls.optimal_cut(frame, unit=unit, most=100)


@pytest.mark.parametrize("weight", [None, "fraction"])
@pytest.mark.parametrize("tuning", [{}, TINY], ids=["usual", "tiny"])
def test_the_isotonic_fit_is_that_of_limen(ls, frame, tuning, weight) -> None:
    weights = None if weight is None else ROWS[weight]
    expected = limen.isotonic(ROWS["score"], ROWS["label"], weights=weights)

    assert same_fit(expected, ls.isotonic(frame, weight=weight, **tuning))


@pytest.mark.parametrize("shape", SHAPES if THOROUGH else ["saturated", "exponents", "infinite"])
def test_every_shape_of_scores_gives_the_same_answers(ls, spark, shape) -> None:
    scores = SHAPES[shape]
    labels = (np.random.default_rng(3).random(len(scores)) < 0.5).astype(np.int8)
    labels |= scores > np.median(scores)
    frame = two_columns(spark, scores, labels)

    assert ls.optimal_threshold(frame, most=500) == limen.optimal_threshold(scores, labels)
    assert same_fit(limen.isotonic(scores, labels), ls.isotonic(frame, most=500))


@pytest.mark.parametrize("of", ["score", "float", "int", "long", "decimal"])
def test_any_column_of_numbers_is_a_score(ls, frame, of) -> None:
    kinds = {"score": "DOUBLE", "float": "FLOAT", "int": "INT", "long": "BIGINT"}
    kind = kinds.get(of, "DECIMAL(10, 3)")
    some = frame.selectExpr(f"CAST(score * 100 AS {kind}) AS s", "label")
    given = some.toArrow()
    scores = given["s"].to_pylist()

    assert ls.optimal_threshold(some, score="s") == limen.optimal_threshold(
        [float(each) for each in scores], given["label"].to_numpy()
    )


@pytest.mark.parametrize(
    ("label", "positive"), [("yes", "it's"), ("label", 1), ("label = 1", None), ("label = 1", True)]
)
def test_labels_are_0_and_1_booleans_or_a_value_that_is_named(ls, frame, label, positive) -> None:
    some = frame.selectExpr("score", f"{label} AS y")
    expected = limen.optimal_threshold(ROWS["score"], ROWS["label"])

    assert expected == ls.optimal_threshold(some, label="y", positive=positive)


def test_a_text_is_the_class_that_it_is_to_every_other_reader(ls, spark) -> None:
    from limen.spark.columns import prepared

    for positive in sorted({name for name, _ in CLASSES}):
        expected = {text: value for (name, text), value in CLASSES.items() if name == positive}
        table = pa.table({"score": [0.5] * len(expected), "label": list(expected)})
        frame = spark.createDataFrame(table)
        for unchecked in (False, True):
            some = prepared(
                frame, score="score", label="label", positive=positive, unchecked=unchecked
            )
            found = some.frame.collect()
            labels = [
                None if row.score is None or row.label == 2**40 else row.label for row in found
            ]
            assert list(expected.values()) == labels, positive
        if None in expected.values():
            with pytest.raises(ValueError, match="1 where label is empty"):
                ls.optimal_threshold(frame, positive=positive)


@pytest.mark.parametrize("weight", [None, "fraction"])
def test_each_group_has_the_threshold_of_limen(ls, frame, weight) -> None:
    found = ls.by_group(frame, by="group", weight=weight, false_negative=3).toArrow().to_pylist()
    for row in found:
        mine = ROWS["group"] == row["group"]
        weights = None if weight is None else ROWS[weight][mine]
        best = limen.optimal_threshold(
            ROWS["score"][mine], ROWS["label"][mine], weights=weights, false_negative=3
        )
        expected = best.lower, best.upper, best.threshold, best.loss, mine.sum()

        assert expected == tuple(row[name] for name in ("lower", "upper", "threshold", "loss", "n"))
    assert 40 == len(found)


def test_groups_of_extreme_scores_have_the_threshold_of_limen(ls, spark) -> None:
    ends = [-np.inf, -1.7e308, -5e-324, 0.0, 5e-324, 1.0, np.nextafter(1, 2), 1.7e308, np.inf]
    pairs = [(one, two) for one in ends for two in ends]
    cases = [(pair, labels) for pair in pairs for labels in [(0, 0), (0, 1), (1, 0), (1, 1)]]
    table = {
        "a": [place // 2 for place in range(2 * len(cases))],
        "b.c": ["`x"] * (2 * len(cases)),
        "score": [score for pair, _ in cases for score in pair],
        "label": [label for _, labels in cases for label in labels],
    }
    found = ls.by_group(spark.createDataFrame(pa.table(table)), by=["a", "b.c"]).toArrow()
    order = found.sort_by("a").to_pylist()
    assert len(cases) == len(order)
    for row, (pair, labels) in zip(order, cases, strict=True):
        best = limen.optimal_threshold(pair, labels)
        threshold = row["threshold"]

        assert (best.lower, best.upper, best.loss) == (row["lower"], row["upper"], row["loss"])
        assert best.threshold == threshold or (best.threshold != best.threshold != threshold)


@pytest.mark.skipif(not DATA.exists(), reason="the shared data sets are not here")
def test_every_shared_data_set_has_the_threshold_of_limen(ls, spark) -> None:
    columns: dict[str, list] = {"name": [], "score": [], "label": []}
    for path in sorted([*DATA.glob("open/*.csv"), *DATA.glob("evaluation/*.csv")]):
        lines = list(csv.DictReader(path.read_text().splitlines()))
        if {"score", "label"} <= set(lines[0]):
            columns["name"] += [path.stem] * len(lines)
            columns["score"] += [float(line["score"]) for line in lines]
            columns["label"] += [int(float(line["label"])) for line in lines]
    frame = spark.createDataFrame(pa.table(columns)).repartition(4)
    names, scores = np.array(columns["name"]), np.array(columns["score"])
    labels = np.array(columns["label"], np.uint8)
    costs = {"false_positive": 2, "false_negative": 7}
    found = ls.by_group(frame, by="name", **costs).toArrow().to_pylist()
    assert len(found) >= 30
    for row in found:
        mine = names == row["name"]
        best = limen.optimal_threshold(
            scores[mine], labels[mine], false_positive=2, false_negative=7
        )

        assert (best.lower, best.upper, best.loss) == (row["lower"], row["upper"], row["loss"])
    for name in sorted(set(names)) if THOROUGH else ["adult_lr"]:
        mine = names == name
        one = frame.where(frame["name"] == name)

        assert ls.optimal_threshold(one, most=99) == limen.optimal_threshold(
            scores[mine], labels[mine]
        )
        assert same_fit(limen.isotonic(scores[mine], labels[mine]), ls.isotonic(one, most=99))


def test_a_model_holds_the_rows_of_a_frame(ls, frame) -> None:
    held = ls.hold(frame, limen.OnlineCalibrator(), weight="fraction")
    expected = limen.OnlineCalibrator()
    expected.update_many(ROWS["score"], ROWS["label"], ROWS["fraction"])

    assert expected.optimum(false_negative=5) == held.optimum(false_negative=5)
    assert expected.blocks().fractions() == held.blocks().fractions()
    assert N == sum(ls.hold(frame, limen.OnlineCalibrator()).blocks().weight)


def test_a_recommendation_is_that_of_limen(ls, frame) -> None:
    expected = limen.recommend(ROWS["score"], ROWS["label"], false_negative=2, current=0.9)

    assert expected == ls.recommend(frame, false_negative=2, current=0.9)


def test_a_recommendation_by_counts_has_the_optimum_of_limen(ls, frame) -> None:
    found = ls.recommend(frame, false_negative=2, most=500)

    assert limen.optimal_threshold(ROWS["score"], ROWS["label"], false_negative=2) == found.optimum
    assert N == found.samples
    with pytest.raises(ValueError, match="only counts are held"):
        found.cost()


@pytest.mark.parametrize("by", [[], ["group"]], ids=["plain", "partitioned"])
def test_the_command_line_reads_the_folder_that_spark_wrote(frame, run, tmp_path, by) -> None:
    pytest.importorskip("duckdb")
    frame.select("group", "score", "label").write.partitionBy(*by).parquet(str(tmp_path / "scored"))
    code, out, _ = run("fit", "scored", "--false-negative", "5", "--json")
    best = limen.optimal_threshold(ROWS["score"], ROWS["label"], false_negative=5)

    assert 0 == code
    assert (best.threshold, best.loss) == tuple(map(json.loads(out).get, ("threshold", "loss")))


def test_an_empty_frame_is_an_ordinary_state(ls, frame) -> None:
    empty = frame.where("score < -1")

    assert limen.optimal_threshold([], []) == ls.optimal_threshold(empty)
    assert 0 == len(ls.isotonic(empty))
    assert [] == ls.by_group(empty, by="group").collect()
    assert 0 == len(ls.hold(empty, limen.OnlineCalibrator()))
    assert limen.optimal_cut([], [], []) == ls.optimal_cut(empty)


# ---- what cannot be used --------------------------------------------------------------------


def test_rows_that_cannot_be_used_are_counted_with_reasons_and_one_of_them(ls, spark) -> None:
    columns = {
        "score": [0.1, float("nan"), None, 0.4, 0.5, 0.6],
        "label": [0.0, 1.0, 1.0, 2.0, None, 1.0],
        "w": [1.0, 1.0, 1.0, 1.0, 1.0, -1.0],
    }
    frame = spark.createDataFrame(pa.table(columns))
    told = (
        r"5 of 6 rows cannot be used: 1 where score is null, 1 where score is nan, "
        r"1 where label is null, 1 where label is not 0 or 1, 1 where w is negative\. "
        r"For example Row\(score="
    )
    asked = (
        lambda: ls.optimal_threshold(frame, weight="w"),
        lambda: ls.isotonic(frame, weight="w"),
        lambda: ls.by_group(frame, by="w", weight="w"),
        lambda: ls.hold(frame, limen.OnlineCalibrator(), weight="w"),
    )
    for ask in asked:
        with pytest.raises(ValueError, match=told):
            ask()
    with pytest.raises(ValueError, match="4 of 6 rows cannot be used: 1 where score is null, 1 wh"):
        ls.recommend(frame)
    with pytest.raises(ValueError, match=r"3 of 6 rows .* 1 where label is null"):
        ls.optimal_cut(frame, below="label", above="w")


def test_what_would_be_lost_is_refused(ls, spark) -> None:
    frame = spark.createDataFrame(pa.table({"score": [2**53 + 1, 3], "label": [0, 1]}))
    with pytest.raises(ValueError, match="1 where score has no exact double"):
        ls.optimal_threshold(frame)
    frame = frame.selectExpr("1.5 AS score", "label", "1e-9D AS w", "1e18D AS v", "1L << 61 AS u")
    with pytest.raises(ValueError, match="2 where w is not 0 but rounds to 0 units of 1/1048576"):
        ls.optimal_threshold(frame, weight="w")
    with pytest.raises(ValueError, match=r"2 where v is 2\*\*62 units of 1/1048576 or more"):
        ls.optimal_threshold(frame, weight="v")
    with pytest.raises(OverflowError):
        ls.optimal_threshold(frame, weight="u", false_negative=9)
    with pytest.raises(ValueError, match="one over a whole number"):
        ls.optimal_threshold(frame, weight="v", unit=3)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"score": "missing"}, "score='missing' is no column of the frame. It has 'score', "),
        ({"score": "yes"}, "yes must be numbers, it is string"),
        ({"label": "yes"}, "yes must be 0 and 1, it is string"),
        ({"weight": "yes"}, "yes must be numbers, it is string"),
        ({"positive": [1]}, "positive must be a text, a number or a bool"),
    ],
)
def test_a_column_that_does_not_serve_is_named(ls, frame, given, told) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        ls.optimal_threshold(frame, **given)


# ---- whatever happens on the way ------------------------------------------------------------


def test_a_frame_that_changes_when_it_is_read_again_is_noticed(ls, spark) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    @F.udf("double")
    def chance(number):
        import random
        import time

        return random.random() + time.time()  # later readings lie above all earlier ones

    changing = spark.range(0, 500, 1, 2).select(
        chance.asNondeterministic()("id").alias("score"), (F.col("id") % 2).alias("label")
    )
    with pytest.raises(RuntimeError, match="were others when they were read again"):
        ls.optimal_threshold(changing, most=20)


def test_first_attempts_that_fail_do_not_change_the_answer(ls, spark) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    @F.udf("double")
    def failing_once(number):
        from pyspark import TaskContext

        if TaskContext.get().attemptNumber() == 0:
            raise OSError("the first attempt fails")
        return (number * 7919 % 500) / 500

    failing = spark.range(0, 500, 1, 2).select(
        failing_once("id").alias("score"), (F.col("id") % 2).cast("int").alias("label")
    )
    scores = np.arange(500) * 7919 % 500 / 500

    assert ls.optimal_threshold(failing, most=50) == limen.optimal_threshold(
        scores, np.arange(500) % 2
    )


def test_many_partitions_give_the_same_answer(ls, spark) -> None:
    label = "CAST(id * 31 % 3000 < id * 7919 % 3000 AS INT) AS label"
    ids = spark.range(0, 3_000, 1, 1_000 if THOROUGH else 100)
    frame = ids.selectExpr("id * 7919 % 3000 / 3000 AS score", label)
    given = np.arange(3_000)
    scores, labels = given * 7919 % 3_000 / 3_000, given * 31 % 3_000 < given * 7919 % 3_000

    assert ls.optimal_threshold(frame) == limen.optimal_threshold(scores, labels)


def test_answers_do_not_depend_on_ansi_mode_and_compiled_code(ls, spark, frame) -> None:
    expected = limen.optimal_threshold(ROWS["score"], ROWS["label"], weights=ROWS["fraction"])
    bad = frame.selectExpr("CAST('NaN' AS DOUBLE) AS score", "label").union(
        frame.select("score", "label")
    )
    names = ("spark.sql.ansi.enabled", "spark.sql.codegen.wholeStage")
    before = [spark.conf.get(name) for name in names]
    try:
        for ansi in ("true", "false"):
            for name, value in zip(names, (ansi, "true"), strict=True):
                spark.conf.set(name, value)

            assert expected == ls.optimal_threshold(frame, weight="fraction", **TINY)
            with pytest.raises(ValueError, match=f"{N:,} where score is nan"):
                ls.optimal_threshold(bad)
            assert 40 == ls.by_group(frame, by="group", weight="money", unit=0.01).count()
    finally:
        for name, value in zip(names, before, strict=True):
            spark.conf.set(name, value)


def test_every_method_is_small_enough_to_be_compiled(ls, spark, frame) -> None:
    """Of more than 8,000 bytes, the JVM never compiles it: 100 times slower."""
    from limen.narrowing.maps import root_of
    from limen.spark.columns import prepared
    from limen.spark.source import SparkSource

    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # it plans only what it runs
    try:
        for drawn in (ROWS["score"], SHAPES["exponents"]):
            rows = prepared(frame, score="score", label="label", weight="fraction", unit=0.01)
            source = SparkSource(rows)
            source._count = lambda *given: {"number": np.zeros(0), **dict.fromkeys(NAMES)}
            source.count(root_of(drawn, 2**14, 1024))
            counted = source._numbered.groupBy("number").sum("units")
            stages = counted._jdf.queryExecution().debug().codegenToSeq()
            sizes = [stages.apply(at)._3().maxMethodCodeSize() for at in range(stages.size())]

            assert 0 < max(sizes) < 8_000
    finally:
        spark.conf.set("spark.sql.codegen.wholeStage", "false")
        spark.conf.set("spark.sql.adaptive.enabled", "true")


NAMES = ("first", "last", "n", "zeros", "ones")


def python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), **environment}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)


CONNECT = """
import warnings; warnings.simplefilter("ignore")
import pyarrow as pa, limen, limen.spark as ls
from pyspark.sql import SparkSession
from test_spark import ROWS, TINY, same_fit
spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(spark).__module__
frame = spark.createDataFrame(pa.table(ROWS)).repartition(3)
columns = ROWS["score"], ROWS["label"]
weights = ROWS["money"]
found = ls.optimal_threshold(frame, weight="money", unit=0.01, **TINY)
assert found == limen.optimal_threshold(*columns, weights=weights, unit=0.01)
assert same_fit(limen.isotonic(*columns), ls.isotonic(frame, most=100))
assert 40 == len(ls.by_group(frame, by="group").collect())
assert 2000 == sum(ls.hold(frame, limen.OnlineCalibrator()).blocks().weight)
try:
    ls.optimal_threshold(frame.selectExpr("score", "label + 1 AS label"))
except ValueError as error:
    assert "where label is not 0 or 1" in str(error)
spark.stop()
print("the same")
"""


def test_spark_connect_gives_the_same_answers(spark) -> None:
    for library in ("grpc", "grpc_status", "zstandard"):
        pytest.importorskip(library)
    done = python(CONNECT)

    assert "the same\n" == done.stdout, done.stderr


CLUSTER = """
import warnings; warnings.simplefilter("ignore")
import limen, limen.spark as ls, numpy as np
from pyspark.sql import SparkSession, functions as F
builder = SparkSession.builder.master("local-cluster[2,1,1024]")
spark = builder.config("spark.executor.memory", "512m").getOrCreate()

@F.udf("double")
def deadly(number):
    import os, pathlib, signal
    mark = pathlib.Path(MARK)
    if number == 250 and not mark.exists():
        mark.write_text("once")
        daemon = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(daemon.split()[3]), signal.SIGKILL)  # the JVM that started it
    return (number * 7919 % 500) / 500

label = (F.col("id") % 2).cast("int").alias("label")
frame = spark.range(0, 500, 1, 4).select(deadly("id").alias("score"), label)
scores = np.arange(500) * 7919 % 500 / 500
assert ls.optimal_threshold(frame, most=50) == limen.optimal_threshold(scores, np.arange(500) % 2)
spark.stop()
print("the same")
"""


@pytest.mark.skipif(not THOROUGH, reason="a cluster takes a minute: LIMEN_THOROUGH=1")
def test_an_executor_that_is_killed_does_not_change_the_answer(spark, tmp_path) -> None:
    done = python(
        f"MARK = {str(tmp_path / 'once')!r}\n{CLUSTER}", PYSPARK_SUBMIT_ARGS="pyspark-shell"
    )

    assert "the same\n" == done.stdout, done.stderr
    assert (tmp_path / "once").exists()


def test_nothing_of_the_session_is_changed(ls, spark, frame) -> None:
    before = {row["key"]: row["value"] for row in spark.sql("SET").collect()}
    ls.optimal_threshold(frame, most=100)
    after = {row["key"]: row["value"] for row in spark.sql("SET").collect()}

    assert before == after
