# SPDX-License-Identifier: Apache-2.0
"""Spark's pipelines and streams: stages that are saved and loaded, batches that are repeated."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from test_narrowing import same_fit
from test_spark import ROOT, ROWS, N, pa

import limen

pytestmark = [
    pytest.mark.check,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(pa.table(ROWS)).repartition(3).persist()


# ---- pipelines ------------------------------------------------------------------------------


def test_a_threshold_is_a_stage_of_a_pipeline_that_is_saved_and_loaded(
    spark, frame, tmp_path
) -> None:
    from pyspark.ml import Pipeline, PipelineModel

    from limen.spark.ml import ThresholdClassifier

    stage = ThresholdClassifier(
        scoreCol="score", weightCol="money", falseNegative="1/3", unit="0.01"
    )
    model = Pipeline(stages=[stage]).fit(frame)
    model.save(str(tmp_path / "model"))
    loaded = PipelineModel.load(str(tmp_path / "model"))
    expected = limen.optimal_threshold(
        *(ROWS["score"], ROWS["label"]),
        weights=ROWS["money"],
        false_negative=Fraction(1, 3),
        unit=0.01,
    )
    answered = loaded.transform(frame).select("score", "prediction").toArrow()

    assert expected == model.stages[0].optimum == loaded.stages[0].optimum
    assert np.array_equal(
        expected.predict(answered["score"].to_numpy()), answered["prediction"].to_numpy()
    )


def test_probabilities_and_answers_of_a_calibrated_stage_are_those_of_limen(
    spark, frame, tmp_path
) -> None:
    from limen.spark.ml import CalibratedClassifier, CalibratedModel

    given = CalibratedClassifier(scoreCol="score", falseNegative="3", handleInvalid="keep")
    given.fit(frame).save(str(tmp_path / "model"))
    model = CalibratedModel.load(str(tmp_path / "model"))
    fit = limen.isotonic(ROWS["score"], ROWS["label"])
    best = limen.optimal_threshold(ROWS["score"], ROWS["label"], false_negative=3)
    asked = [*np.linspace(-0.1, 1.1, 997).tolist(), *ROWS["score"][:99].tolist(), np.inf, -np.inf]
    asked += [np.nan, None]
    answered = model.transform(spark.createDataFrame(pa.table({"score": asked}))).toArrow()
    scores, found = np.array(asked[:-2]), answered.slice(0, len(asked) - 2)

    assert same_fit(fit, model.blocks)
    assert np.array_equal(fit.probability(scores), found["calibrated"].to_numpy())
    assert np.array_equal(best.predict(scores), found["prediction"].to_numpy())
    assert [None] * 4 == [
        each for name in ("calibrated", "prediction") for each in answered[name].to_pylist()[-2:]
    ]


def test_costs_are_chosen_by_cross_validation(spark, frame) -> None:
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    from limen.spark.ml import ThresholdClassifier

    stage = ThresholdClassifier(scoreCol="score")
    grid = ParamGridBuilder().addGrid(stage.falseNegative, ["1", "40"]).build()
    found = CrossValidator(
        estimator=stage,
        estimatorParamMaps=grid,
        evaluator=MulticlassClassificationEvaluator(metricName="accuracy"),
        numFolds=2,
        seed=1,
    ).fit(frame)
    best = limen.optimal_threshold(ROWS["score"], ROWS["label"])

    assert found.avgMetrics[0] > found.avgMetrics[1]
    assert best == found.bestModel.optimum


def test_a_score_without_an_order_is_never_answered_1(spark) -> None:
    from pyspark.ml.linalg import Vectors

    from limen.spark.ml import ThresholdClassifier

    rows = [(Vectors.dense(1 - p, p), y) for p, y in [(0.2, 0), (0.7, 1), (float("nan"), 1)]]
    frame = spark.createDataFrame(rows, ["probability", "label"])
    answers = {}
    for how in ("keep", "skip"):
        model = ThresholdClassifier(handleInvalid=how).fit(frame)
        answers[how] = [row.prediction for row in model.transform(frame).collect()]
    strict = model._set(handleInvalid="error")
    with pytest.raises(Exception, match="probability is null or nan in a row"):
        strict.transform(frame).collect()
    with pytest.raises(ValueError, match="1 where score is nan"):
        ThresholdClassifier().fit(frame)

    assert {"keep": [0.0, 1.0, None], "skip": [0.0, 1.0]} == answers


# ---- streams --------------------------------------------------------------------------------


def recipe(heading: str, until: str = "```") -> dict:
    """Run the example of docs/spark.md under a heading, up to a text."""
    text = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    code = text.split(f"# {heading}\n", 1)[1].split("```python\n", 1)[1].split(until, 1)[0]
    names: dict = {"__name__": "__main__"}  # what is of __main__ travels to workers by value
    exec(code, names)
    return names


def files(spark, folder: Path, schema: str):
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(stream, folder: Path, add) -> None:
    begun = stream.writeStream.foreachBatch(add).trigger(availableNow=True)
    begun.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()


def newest(folder: Path):
    return limen.load(max(folder.glob("*.limen"), key=lambda path: int(path.stem)))


def test_a_stream_that_fails_and_starts_again_counts_every_row_once(spark, frame, tmp_path) -> None:
    frame.select("score", "label").write.parquet(str(tmp_path / "in"))
    stream = files(spark, tmp_path / "in", "score DOUBLE, label TINYINT")
    follow, failed = recipe("Streams", "\nframe.write")["follow"], list[int]()

    def fails_once(batch, number) -> None:
        follow(tmp_path / "models")(batch, number)
        if number == 1 and not failed:
            failed.append(number)
            raise OSError("after the model was saved, before Spark knew")

    with pytest.raises(Exception, match="before Spark knew"):
        run(stream, tmp_path, fails_once)
    run(stream, tmp_path, fails_once)
    found = newest(tmp_path / "models")
    expected = limen.isotonic(ROWS["score"], ROWS["label"])

    assert [1] == failed
    assert expected.fractions() == found.blocks().fractions()
    assert N == sum(found.blocks().weight)


def written(spark, folder: Path, columns: dict) -> None:
    spark.createDataFrame(pa.table(columns)).coalesce(1).write.mode("append").parquet(str(folder))


def test_labels_that_come_after_a_restart_find_their_scores(spark, tmp_path) -> None:
    ids, day = np.arange(N), np.datetime64("2026-01-01T00:00:00", "us")
    scored = day + ids.astype("timedelta64[s]")
    late = scored + np.timedelta64(5, "D")
    scores, labels = tmp_path / "scores", tmp_path / "labels"
    written(spark, scores, {"id": ids, "scored": scored, "score": ROWS["score"]})
    written(spark, labels, {"id": ids[:1], "labelled": late[:1], "label": ROWS["label"][:1]})
    follow = recipe("Streams", "\nframe.write")["follow"](tmp_path / "models")
    joined = recipe("Late labels")["labelled"](
        files(spark, scores, "id BIGINT, scored TIMESTAMP, score DOUBLE"),
        files(spark, labels, "id BIGINT, labelled TIMESTAMP, label TINYINT"),
    )
    run(joined, tmp_path, follow)
    before = len(newest(tmp_path / "models"))
    written(spark, labels, {"id": ids[1:], "labelled": late[1:], "label": ROWS["label"][1:]})
    run(joined, tmp_path, follow)
    after = newest(tmp_path / "models")

    assert 1 == before
    assert limen.isotonic(ROWS["score"], ROWS["label"]).fractions() == after.blocks().fractions()


def test_each_key_has_a_window_of_its_own_in_the_state_of_a_stream(spark, tmp_path) -> None:
    pytest.importorskip("pandas")
    key, half = (ROWS["group"] % 3).astype(np.int32), N // 2
    columns = {"key": key, "score": ROWS["score"], "label": ROWS["label"]}
    follow = recipe("One model for each of many keys", "\n\nthresholds =")["Follow"]
    name = "spark.sql.streaming.stateStore.providerClass"
    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    before, found = spark.conf.get(name), dict[int, float]()

    def keep(batch, number) -> None:
        found.update((row.key, row.threshold) for row in batch.collect())

    spark.conf.set(name, store)
    try:
        for rows in (slice(None, half), slice(half, None)):
            written(spark, tmp_path / "in", {name: each[rows] for name, each in columns.items()})
            stream = files(spark, tmp_path / "in", "key INT, score DOUBLE, label TINYINT")
            thresholds = stream.groupBy("key").transformWithStateInPandas(
                statefulProcessor=follow(),
                outputStructType="key INT, threshold DOUBLE",
                outputMode="update",
                timeMode="none",
            )
            run(thresholds, tmp_path, keep)
    finally:
        spark.conf.set(name, before)
    expected = {}
    for each in range(3):
        model = limen.LastN(limen.OnlineThreshold(), 1_000)
        model.update_many(ROWS["score"][key == each], ROWS["label"][key == each])
        expected[each] = model.threshold

    assert expected == found
