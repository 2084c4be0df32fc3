# SPDX-License-Identifier: Apache-2.0
"""A floor of precision on new rows: met on the samples held, or with confidence."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from mapie.risk_control import BinaryClassificationController

import limen
from benchmarks.study import data
from benchmarks.study.plan import PLAN
from benchmarks.study.results import rounded, run

RULES = PLAN["floors"]


def limens(split: data.Split, **confidence: float) -> float | None:
    model = limen.OnlineCalibrator()
    model.update_many(split.scores, split.labels)
    try:
        return model.best("recall", min_precision=RULES["precision"], **confidence).threshold
    except limen.Infeasible:
        return None


def met_on_the_samples(split: data.Split) -> float | None:
    return limens(split)


def with_confidence(split: data.Split) -> float | None:
    return limens(split, confidence=RULES["confidence"])


def controller(split: data.Split) -> float | None:
    """MAPIE's, with its own grid of thresholds."""
    found = BinaryClassificationController(
        lambda rows: np.stack([1 - rows[:, 0], rows[:, 0]], axis=1),
        risk="precision",
        target_level=RULES["precision"],
        confidence_level=RULES["confidence"],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no threshold was found: None says so
        found.calibrate(split.scores[:, None], split.labels)
    return found.best_predict_param


METHODS: dict[str, Callable[[data.Split], float | None]] = dict(
    zip(RULES["methods"], (met_on_the_samples, with_confidence, controller), strict=True)
)


def keys() -> Iterable[tuple[str, int]]:
    for name in PLAN["sets"]:
        scores, labels = data.read(name)
        if scores.min() >= 0 and scores.max() <= 1 and labels.mean() < RULES["precision"]:
            yield from ((name, n) for n in RULES["sizes"])


def cell(name: str, n: int, count: int = RULES["splits"]) -> dict[str, Any] | None:
    """Precision and recall of every method on every split; null without a threshold."""
    used = [split for split in data.of_set(name, "random", n, count) if split.usable()]
    methods: dict[str, dict[str, list[float | None]]] = {}
    for split in used:
        for each, choose in METHODS.items():
            threshold = choose(split)
            values = methods.setdefault(each, {"precision": [], "recall": []})
            flagged = split.new >= (np.inf if threshold is None else threshold)
            hits = split.truth[flagged].sum()
            some = flagged.any()
            values["precision"].append(rounded(hits / flagged.sum()) if some else None)
            values["recall"].append(rounded(hits / split.truth.sum()))
    return {"methods": methods} if used else None


def main() -> None:
    run("floors", keys(), cell)
