# SPDX-License-Identifier: Apache-2.0
"""The questions about choosing a threshold, against scikit-learn's TunedThresholdClassifierCV."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import confusion_matrix, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV

from benchmarks.timing import Finding, faster_by, in_turns
from benchmarks.workloads import by_sorting, samples
from limen.demo import load_phishing
from limen.sklearn import ThresholdClassifier

MISSED = 5
EXAMPLES = Path(__file__).parents[1] / "examples"


class Scored(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose score is the feature, so that nothing but the search is timed."""

    classes_ = np.array([0, 1])

    def fit(self, rows: Any, labels: Any) -> Scored:
        return self

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        return np.column_stack([1 - rows[:, 0], rows[:, 0]])


def gain(truth: np.ndarray, answers: np.ndarray) -> float:
    _, fp, fn, _ = confusion_matrix(truth, answers).ravel()
    return -float(fp + MISSED * fn)


def tuner(thresholds: int = 100) -> TunedThresholdClassifierCV:
    scorer = make_scorer(gain)
    return TunedThresholdClassifierCV(
        Scored(), scoring=scorer, cv="prefit", refit=False, thresholds=thresholds
    )


def exact() -> ThresholdClassifier:
    return ThresholdClassifier(Scored(), false_negative=MISSED, cv="prefit")


def cost_at(scores: np.ndarray, labels: np.ndarray, threshold: float) -> float:
    return -gain(labels, scores >= threshold)


def real_sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    scores, labels = load_phishing()
    yield "phishing", np.array(scores), np.array(labels)
    for name in ("out_of_fold", "new"):
        with open(EXAMPLES / f"german_credit_{name}.csv", encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        columns = [np.array([float(row[key]) for row in rows]) for key in ("score", "label")]
        yield f"German credit, {name.replace('_', ' ')}", columns[0], columns[1].astype(int)


def cost_against_tuner() -> Iterator[Finding]:
    """What do the mistakes cost at the threshold of each, on the scores it was chosen on?"""
    for name, scores, labels in real_sets():
        rows = scores[:, None]
        theirs = tuner().fit(rows, labels)
        ours = exact().fit(rows, labels)
        their_cost = cost_at(scores, labels, theirs.best_threshold_)
        our_cost = cost_at(scores, labels, ours.best_threshold_)
        assert our_cost == ours.optimum_.loss
        yield Finding(
            f"cost of the mistakes at the threshold chosen, {name}",
            f"{len(scores):,}",
            our_cost,
            their_cost,
            "cost",
            their_cost / our_cost,
            "never worse",
            our_cost <= their_cost,
        )


def search_against_tuner() -> Iterator[Finding]:
    """How long does the search for the threshold take, the scores being known?"""
    n = 100_000
    scores, labels = samples("beta", n)
    rows = scores[:, None]
    assert exact().fit(rows, labels).best_threshold_ == by_sorting(scores, labels, MISSED)

    def tune() -> None:
        tuner().fit(rows, labels)

    def search() -> None:
        exact().fit(rows, labels)

    runs = in_turns({"limen": search, "scikit-learn": tune}, rounds=5, per=n)
    yield faster_by(
        "ThresholdClassifier against TunedThresholdClassifierCV, the scores being known",
        f"{n:,}",
        runs,
        "scikit-learn",
        20,
        "ns per sample",
    )


QUESTIONS = (cost_against_tuner, search_against_tuner)
