# SPDX-License-Identifier: Apache-2.0
"""Stages for pipelines of pyspark.ml: the cheapest threshold, and calibrated probabilities.

Costs and units are texts, such as ``"5"``, ``"0.1"`` and ``"1/3"``, so that they are exact after
saving; so are the numbers of a model. Stages put columns together out of Spark SQL: executors start
no Python for them.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.functions import vector_to_array
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (
    HasHandleInvalid,
    HasLabelCol,
    HasPredictionCol,
    HasWeightCol,
)
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from limen import _core
from limen.hull import Blocks
from limen.optimum import Optimum
from limen.spark.answers import isotonic, optimal_threshold
from limen.spark.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "CalibratedClassifier",
    "CalibratedModel",
    "ThresholdClassifier",
    "ThresholdModel",
]

_DEFAULTS = {
    "scoreCol": "probability",
    "labelCol": "label",
    "predictionCol": "prediction",
    "falsePositive": "1",
    "falseNegative": "1",
    "handleInvalid": "error",
}


def _text(name: str, described: str) -> Any:
    return Param(Params._dummy(), name, described, TypeConverters.toString)


class _Stage(
    HasLabelCol,
    HasPredictionCol,
    HasWeightCol,
    HasHandleInvalid,
    DefaultParamsReadable,
    DefaultParamsWritable,
):
    """What all stages share: the score, the costs, and what happens without a score."""

    scoreCol = _text("scoreCol", "a column of numbers, or of vectors whose entry 1 is the score")
    falsePositive = _text("falsePositive", "cost of a false positive: '1', '0.1', '1/3'")
    falseNegative = _text("falseNegative", "cost of a false negative")
    unit = _text("unit", "unit of weights, such as '0.01'")
    calibratedCol = _text("calibratedCol", "column for the calibrated probability of label 1")

    def _given(self, name: str) -> Any:
        return self.getOrDefault(name) if self.isDefined(name) else None

    def _score(self, frame: DataFrame) -> Column:
        name = self.getOrDefault("scoreCol")
        column = F.col(quoted(name))
        number = isinstance(frame.schema[frame.columns.index(name)].dataType, T.NumericType)
        return (column if number else F.get(vector_to_array(column), F.lit(1))).cast("double")

    def _costs(self) -> dict[str, Any]:
        return {
            "false_positive": Fraction(self.getOrDefault("falsePositive")),
            "false_negative": Fraction(self.getOrDefault("falseNegative")),
        }

    def _samples(self, frame: DataFrame) -> tuple[DataFrame, dict[str, Any]]:
        """Choose the columns to fit on; without a score, a row is an error or left out."""
        named = {"label": self.getOrDefault("labelCol"), "weight": self._given("weightCol")}
        named = {role: name for role, name in named.items() if name is not None}
        columns = [F.col(quoted(name)).alias(role) for role, name in named.items()]
        chosen = frame.select(self._score(frame).alias("score"), *columns)
        if self.getOrDefault("handleInvalid") != "error":
            chosen = chosen.where("score IS NOT NULL AND NOT isnan(score)")
        unit = self._given("unit")
        given: dict[str, Any] = {"unit": None if unit is None else Fraction(unit)}
        return chosen, given | ({"weight": "weight"} if "weight" in named else {})

    def _answered(self, frame: DataFrame, columns: dict[str, str]) -> DataFrame:
        """Add columns, written in SQL for a score; in Spark nan is above all numbers."""
        how = self.getOrDefault("handleInvalid")
        frame = frame.withColumn("limen_score", self._score(frame))
        lost = "limen_score IS NULL OR isnan(limen_score)"
        instead = "CAST(NULL AS DOUBLE)"
        if how == "skip":
            frame = frame.where(f"NOT ({lost})")
        elif how == "error":
            name = self.getOrDefault("scoreCol").replace("'", "")
            text = f"{name} is null or nan in a row. Fill it, or set handleInvalid to skip or keep."
            instead = f"CAST(raise_error('{text}') AS DOUBLE)"
        elif how != "keep":
            raise ValueError(f"handleInvalid must be error, skip or keep, got {how!r}.")
        for name, answer in columns.items():
            answered = F.expr(f"CASE WHEN {lost} THEN {instead} ELSE {answer} END")
            frame = frame.withColumn(name, answered)
        return frame.drop("limen_score")


class _Settings(_Stage):
    """The constructor that both estimators have."""

    @keyword_only
    def __init__(
        self,
        *,
        scoreCol: str = "probability",
        labelCol: str = "label",
        weightCol: str | None = None,
        predictionCol: str = "prediction",
        calibratedCol: str = "calibrated",
        falsePositive: str = "1",
        falseNegative: str = "1",
        unit: str | None = None,
        handleInvalid: str = "error",
    ) -> None:
        super().__init__()
        self._setDefault(**_DEFAULTS, calibratedCol="calibrated")
        given = {name: each for name, each in self._input_kwargs.items() if each is not None}
        self._set(**given)


class ThresholdClassifier(_Settings, Estimator):
    """Finds the cheapest threshold of a column of scores, exactly, as `optimal_threshold` does.

    Parameters
    ----------
    scoreCol, labelCol, weightCol, predictionCol
        Columns; the score is a number, or the entry 1 of a vector as classifiers put out.
    falsePositive, falseNegative, unit
        Texts, such as ``"5"``, ``"0.1"`` and ``"1/3"``.
    handleInvalid
        What to do with a score that is null or nan: ``"error"``, ``"skip"`` the row, or ``"keep"``
        it with a prediction of null. It is never answered 1.
    """

    def _fit(self, dataset: DataFrame) -> ThresholdModel:
        samples, given = self._samples(dataset)
        best = optimal_threshold(samples, **self._costs(), **given)
        fitted: ThresholdModel = self._copyValues(ThresholdModel())
        texts = {name: _hex(getattr(best, name)) for name in ("lower", "upper", "loss")}
        fitted._set(**texts)
        return fitted


class ThresholdModel(_Stage, Model):
    """Answers 1.0 where the score reaches the threshold, else 0.0."""

    lower = _text("lower", "highest score answered 0")
    upper = _text("upper", "lowest score answered 1")
    loss = _text("loss", "total loss on the rows it was fitted on")

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(**_DEFAULTS)

    @property
    def optimum(self) -> Optimum:
        """The cheapest cut."""
        lower, upper, loss = (_number(self._given(name)) for name in ("lower", "upper", "loss"))
        return Optimum(lower, upper, 0.0 if loss is None else loss)

    @property
    def threshold(self) -> float:
        """The number to publish."""
        return self.optimum.threshold

    def _transform(self, dataset: DataFrame) -> DataFrame:
        return self._answered(
            dataset, {self.getOrDefault("predictionCol"): _reaches(self.threshold)}
        )


class CalibratedClassifier(_Settings, Estimator):
    """Calibrates a column of scores by the exact isotonic fit, as `isotonic` does.

    Parameters
    ----------
    calibratedCol
        Column for the calibrated probability of label 1.
    scoreCol, labelCol, weightCol, predictionCol, falsePositive, falseNegative, unit, handleInvalid
        As for `ThresholdClassifier`.
    """

    def _fit(self, dataset: DataFrame) -> CalibratedModel:
        samples, given = self._samples(dataset)
        fit = isotonic(samples, **given)
        fitted: CalibratedModel = self._copyValues(CalibratedModel())
        fitted._set(fit=_written(fit))
        return fitted


class CalibratedModel(_Stage, Model):
    """Adds the calibrated probability, and the answer that is the cheaper one by it."""

    fit = _text("fit", "the blocks of the isotonic fit")

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(**_DEFAULTS, calibratedCol="calibrated")

    @property
    def blocks(self) -> Blocks:
        """The isotonic fit."""
        return _read(self.getOrDefault("fit"))

    def _transform(self, dataset: DataFrame) -> DataFrame:
        blocks, costs = self.blocks, self._costs()
        if not len(blocks):
            raise ValueError("the model was fitted on no rows. Fit it on some.")
        share = costs["false_positive"] / sum(costs.values())
        gaps = zip(blocks.last[:-1].tolist(), blocks.first[1:].tolist(), strict=True)
        ends = [_core.threshold_of(lower, upper) for lower, upper in gaps]
        # A binary search, a column for each step; what fills the array up is never reached.
        steps = max(1, len(ends)).bit_length()
        listed = _array([*ends, *[math.nan] * (2**steps - 1 - len(ends))])
        found = dataset.withColumn("limen_at", F.lit(0))
        searched = self._score(dataset)
        for step in reversed(range(steps)):
            reached = F.get(F.expr(listed), F.col("limen_at") + F.lit(2**step - 1)) <= searched
            moved = F.col("limen_at") + F.when(reached, F.lit(2**step)).otherwise(F.lit(0))
            found = found.withColumn("limen_at", moved)
        answers = [float(each > share) for each in blocks.fractions()]
        columns = {
            self.getOrDefault("calibratedCol"): blocks.probabilities.tolist(),
            self.getOrDefault("predictionCol"): answers,
        }
        written = {name: f"get({_array(each)}, limen_at)" for name, each in columns.items()}
        return self._answered(found, written).drop("limen_at")


def _reaches(threshold: float) -> str:
    if math.isnan(threshold):
        return "0e0"
    return f"CASE WHEN limen_score >= CAST('{threshold!r}' AS DOUBLE) THEN 1e0 ELSE 0e0 END"


def _array(values: list[float]) -> str:
    return f"CAST(split('{','.join(map(repr, values))}', ',') AS ARRAY<DOUBLE>)"


def _hex(number: float | None) -> str:
    """Write a number exactly: JSON has no infinity."""
    return "none" if number is None else float(number).hex()


def _number(text: str | None) -> float | None:
    return None if text is None or text == "none" else float.fromhex(text)


def _written(fit: Blocks) -> str:
    scores = {
        name: [each.hex() for each in getattr(fit, name).tolist()] for name in ("first", "last")
    }
    whole = [column.tolist() for column in (fit.counts, fit._positive_units, fit._weight_units)]
    return json.dumps({**scores, "whole": whole, "unit": str(fit._unit)})


def _read(text: str) -> Blocks:
    found = json.loads(text)
    first, last = (
        np.array([float.fromhex(each) for each in found[end]]) for end in ("first", "last")
    )
    counts, positive, weight = (np.array(column, np.int64) for column in found["whole"])
    shares = np.array([one / all_ for one, all_ in zip(*found["whole"][1:], strict=True)])
    return Blocks(first, last, counts, shares, positive, weight, Fraction(found["unit"]))
