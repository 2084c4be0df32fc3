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

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


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


def test_probabilities_and_answers_of_a_calibrated_stage_are_those_of_limen(spark, frame) -> None:
    from limen.spark.ml import CalibratedClassifier

    given = CalibratedClassifier(scoreCol="score", falseNegative="3", handleInvalid="keep")
    model = given.fit(frame)
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


def recipe() -> dict:
    """Run the example of docs/spark.md up to its function."""
    text = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    code = text.split("## Streams", 1)[1].split("```python\n", 1)[1].split("\nframe.write", 1)[0]
    names: dict = {}
    exec(code, names)
    return names


def run_stream(spark, folder: Path, add) -> None:
    stream = spark.readStream.schema("score DOUBLE, label TINYINT")
    given = stream.option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    begun = given.writeStream.foreachBatch(add).trigger(availableNow=True)
    begun.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()


def test_a_stream_that_fails_and_starts_again_counts_every_row_once(spark, frame, tmp_path) -> None:
    frame.select("score", "label").write.parquet(str(tmp_path / "in"))
    failed: list[int] = []

    def fails_once(batch, number) -> None:
        recipe()["follow"](tmp_path / "models")(batch, number)
        if number == 1 and not failed:
            failed.append(number)
            raise OSError("after the model was saved, before Spark knew")

    with pytest.raises(Exception, match="before Spark knew"):
        run_stream(spark, tmp_path, fails_once)
    run_stream(spark, tmp_path, fails_once)
    newest = max((tmp_path / "models").glob("*.limen"), key=lambda path: int(path.stem))
    found = limen.load(newest)
    expected = limen.isotonic(ROWS["score"], ROWS["label"])

    assert [1] == failed
    assert expected.fractions() == found.blocks().fractions()
    assert N == sum(found.blocks().weight)
