# SPDX-License-Identifier: Apache-2.0
# pyright: strict
"""What users write, for type checkers: `make types` runs it, and mypy, pyright, ty and pyrefly.

None of them may find an error here, and `assert_type` says which type each of them must see.
"""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import limen
from limen import (
    Alarm,
    BestCut,
    BoundedCalibrator,
    BoundedCut,
    BoundedThreshold,
    Budget,
    Evidence,
    Fading,
    Grouped,
    GroupThresholds,
    LastN,
    LastPeriod,
    Ledger,
    LossCurve,
    OnlineCalibrator,
    OnlineCut,
    OnlineThreshold,
    Optimum,
    Recommendation,
    by_group,
    columns,
    isotonic,
    loss_curve,
    losses,
    merge,
    metrics,
    optimal_cut,
    optimal_threshold,
    recommend,
    report,
)

SCORES = [place / 64 for place in range(64)]
LABELS = [int(place * place % 64 < place) for place in range(64)]


def models() -> None:
    cut = OnlineThreshold(false_negative=5)
    cut.update(0.1, 0)
    cut.update_many(SCORES, LABELS)
    cut.revert(0.1, 0)
    assert_type(cut, OnlineThreshold)
    assert_type(cut.threshold, float)
    assert_type(cut.loss, float)
    assert_type(cut.optimum, Optimum)
    assert_type(cut.recommended, float | None)
    assert_type(cut.interval(), tuple[float, float])
    assert_type(cut.predict(0.5), int)
    assert_type(cut.predict([0.5, 0.7]), NDArray[np.int64])
    assert_type(cut.curve(), LossCurve)
    assert_type(cut.copy(), OnlineThreshold)
    assert_type(merge([cut, cut.copy()]), OnlineThreshold)

    priced = OnlineCut(unit=0.01)
    priced.update(0.2, below=0, above=3)
    priced.update_many([0.2, 0.6], *losses.linear([3, -2]))
    assert_type(priced.threshold, float)

    calibrator = OnlineCalibrator()
    calibrator.update_many(SCORES, LABELS)
    assert_type(calibrator.threshold(false_negative=5), float)
    assert_type(calibrator.optimum(), Optimum)
    assert_type(calibrator.best("recall", min_precision=0.1), BestCut)
    assert_type(calibrator.best(metrics.fbeta(2)), BestCut)
    assert_type(calibrator.probability(0.5), float)
    assert_type(calibrator.probability([0.2, 0.3]), NDArray[np.float64])

    assert_type(OnlineThreshold(capacity=64), BoundedThreshold)
    assert_type(OnlineCut(capacity=64), BoundedCut)
    assert_type(OnlineCalibrator(capacity=64), BoundedCalibrator)
    assert_type(OnlineThreshold(false_negative=5, capacity=64).loss_bound, float)


def memories() -> None:
    window = LastN(OnlineThreshold(), 5)
    window.update(0.3, 1)
    window.update_many(SCORES, LABELS)
    assert_type(window, LastN[OnlineThreshold])
    assert_type(window.model, OnlineThreshold)
    assert_type(window.threshold, float)
    assert_type(window.loss, float)
    assert_type(window.optimum, Optimum)
    assert_type(window.predict(0.5), int)

    recent = LastPeriod(OnlineCalibrator(), timedelta(days=30))
    assert_type(recent.update(0.3, 1, time=datetime(2026, 1, 1)), bool)
    assert_type(recent.model, OnlineCalibrator)
    assert_type(recent.threshold(false_negative=5), float)
    assert_type(recent.predict([0.3]), NDArray[np.int64])

    fading = Fading(OnlineThreshold(), half_life=100)
    fading.update(0.3, 1)
    assert_type(fading.threshold, float)
    assert_type(fading.optimum, Optimum)
    assert_type(Fading(OnlineThreshold(capacity=8), half_life=5).loss_bound, float)

    ledger = Ledger(LastPeriod(OnlineThreshold(false_negative=5), 10), maturity=3)
    assert_type(ledger.score("a", 0.9, time=1), int)
    assert_type(ledger.label("a", 1), bool)
    assert_type(ledger.model.model, OnlineThreshold)
    assert_type(ledger.threshold, float)
    assert_type(ledger.cost, float)

    grouped = Grouped(OnlineThreshold(), at_least=2)
    grouped.update("a", 0.5, 1)
    assert_type(grouped.threshold("a"), float)
    assert_type(grouped.model("a"), OnlineThreshold)
    assert_type(grouped.optimum("a"), Optimum)

    distance = LastN(OnlineThreshold(direction="<="), 1000)
    distance.update(0.5, 1)
    assert_type(distance.threshold, float)
    assert_type(distance.model, OnlineThreshold)

    budget = Budget(max_positives=5, last_n=100)
    assert_type(budget.answer(0.5), int)


def costs_of(ledger: Ledger) -> float:
    """A memory of any model needs no brackets."""
    return ledger.cost


def threshold_of(window: LastN[OnlineThreshold]) -> float:
    return window.threshold


def whole_arrays() -> None:
    assert_type(optimal_threshold(SCORES, LABELS, false_negative=5), Optimum)
    assert_type(optimal_cut([0.2, 0.6], *losses.linear([3, -2])), Optimum)
    assert_type(loss_curve(SCORES, LABELS), LossCurve)
    assert_type(isotonic(SCORES, LABELS).probability(0.5), float)

    found = recommend(np.array(SCORES), np.array(LABELS), false_negative=5, current=0.5)
    assert_type(found, Recommendation)
    assert_type(found.threshold, float)
    assert_type(found.interval, tuple[float, float])
    assert_type(found.predict(0.5), int)
    assert_type(found.predict(SCORES), NDArray[np.int64])

    assert_type(by_group(["a", "b"] * 32, SCORES, LABELS, shrink=True), GroupThresholds)
    assert_type(by_group(["a", "b"] * 32, SCORES, LABELS).threshold("a"), float)
    assert_type(report(SCORES, LABELS, false_negative=5).html(), str)
    taken = columns.from_frame({"score": SCORES, "label": LABELS})
    assert_type(taken.scores, NDArray[np.float64])


def judges() -> None:
    evidence = Evidence(0.5, 0.4, false_negative=5)
    evidence.update(0.45, 1)
    assert_type(evidence.decided, bool)
    alarm = Alarm(0.5, min_recall=0.9)
    alarm.update(0.45, 1)
    assert_type(alarm.raised, bool)


def files(path: Path) -> None:
    OnlineThreshold(false_negative=5).save(path)
    assert_type(limen.load(path, OnlineThreshold), OnlineThreshold)
    assert_type(OnlineThreshold.load(path), OnlineThreshold)
    stored = OnlineThreshold().to_bytes()
    assert_type(limen.from_bytes(stored, OnlineThreshold).threshold, float)
    unknown: Any = limen.load(path)
    print(unknown.threshold)


if __name__ == "__main__":
    models()
    memories()
    whole_arrays()
    judges()
    files(Path(tempfile.mkdtemp(), "cut.limen"))
    print(costs_of(Ledger(OnlineThreshold())), threshold_of(LastN(OnlineThreshold(), 3)))
