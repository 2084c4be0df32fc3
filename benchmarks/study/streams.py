# SPDX-License-Identifier: Apache-2.0
"""Rows in order of time: each is answered with the labels of rows that are old enough.

A method takes the stream, the delay of labels and all costs, and returns its answers for each.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from river import drift, linear_model, preprocessing
from scipy.special import expit

import limen
from benchmarks.study import data, measures
from benchmarks.study.methods import beta, isotonic, platt
from benchmarks.study.plan import COSTS, PLAN, named
from benchmarks.study.results import rounded, run
from benchmarks.trust_study import Sample, exact, recommended, tuner_prefit

RULES = PLAN["streams"]
FIRST, REFIT = RULES["first"], RULES["refit"]


class Stream:
    """Scores and labels in order, and how many rows later a label is known."""

    def __init__(self, scores: np.ndarray, labels: np.ndarray, delay: int) -> None:
        self.scores, self.labels, self.delay = scores, labels, delay

    def refits(self) -> Iterable[tuple[int, slice]]:
        """Where a refit has learned from, and the rows that it answers."""
        for start in range(FIRST, len(self.scores), REFIT):
            yield start - self.delay + 1, slice(start, start + REFIT)


Answers = dict[tuple[int, int], np.ndarray]
Method = Callable[[Stream], Answers]


def follow(make: Callable[[tuple[int, int]], Any]) -> Method:
    """A model of limen that takes in each label as it comes."""

    def answers(stream: Stream) -> Answers:
        found = {}
        scores, labels = stream.scores.tolist(), stream.labels.tolist()
        for costs in COSTS:
            model = make(costs)
            cuts = np.full(len(scores), np.nan)
            for row in range(stream.delay, len(scores)):
                model.update(scores[row - stream.delay], labels[row - stream.delay])
                if row >= FIRST:
                    cuts[row] = model.threshold
            found[costs] = stream.scores >= cuts
        return found

    return answers


def refit(choose: Callable[[Sample, Any], float], once: bool = False) -> Method:
    """A threshold of all labels known, chosen again after every so many rows, or once."""

    def answers(stream: Stream) -> Answers:
        found = {costs: np.zeros(len(stream.scores), bool) for costs in COSTS}
        for known, rows in stream.refits():
            if once:
                known, rows = FIRST - stream.delay + 1, slice(FIRST, None)
            for costs in COSTS:
                sample = Sample(stream.scores[:known], stream.labels[:known], costs)
                found[costs][rows] = stream.scores[rows] >= choose(sample, None)
            if once:
                break
        return found

    return answers


def decided(chance: np.ndarray) -> Answers:
    return {costs: chance >= costs[0] / sum(costs) for costs in COSTS}


def refit_map(fit: Callable, needs_probabilities: bool = False) -> Method:
    """A map of all labels known, fitted again after every so many rows."""

    def answers(stream: Stream) -> Answers:
        chance = np.zeros(len(stream.scores))
        margins = stream.scores.min() < 0 or stream.scores.max() > 1
        for known, rows in stream.refits():
            scores, labels, new = stream.scores[:known], stream.labels[:known], stream.scores[rows]
            if needs_probabilities and margins:
                sigmoid = platt.fit(scores, labels)
                scores, new = sigmoid(scores), sigmoid(new)
            chance[rows] = fit(scores, labels)(new)
        return decided(chance)

    return answers


def online(make: Callable[[], Any]) -> Method:
    """A classifier of river over the score, one sample at a time."""

    def answers(stream: Stream) -> Answers:
        model = make()
        scores, labels = stream.scores.tolist(), stream.labels.tolist()
        waiting: collections.deque = collections.deque()
        chance = np.zeros(len(scores))
        for row, (score, label) in enumerate(zip(scores, labels, strict=True)):
            if len(waiting) == stream.delay:
                model.learn_one(*waiting.popleft())
            if row >= FIRST:
                chance[row] = model.predict_proba_one({"score": score}).get(True, 0.0)
            waiting.append(({"score": score}, bool(label)))
        return decided(chance)

    return answers


def regression() -> Any:
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def threshold(costs: tuple[int, int]) -> limen.OnlineThreshold:
    return limen.OnlineThreshold(false_positive=costs[0], false_negative=costs[1])


METHODS: dict[str, Method] = dict(
    zip(
        RULES["methods"],
        (
            follow(threshold),
            follow(lambda costs: limen.LastN(threshold(costs), RULES["window"])),
            follow(lambda costs: limen.Fading(threshold(costs), RULES["half_life"])),
            refit(recommended),
            refit(exact, once=True),
            refit(tuner_prefit),
            refit_map(platt.fit),
            refit_map(beta.fit, needs_probabilities=True),
            refit_map(isotonic.fit),
            online(regression),
            online(lambda: drift.DriftRetrainingClassifier(regression())),
        ),
        strict=True,
    )
)


def drifting(kind: str, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal scores; what they mean moves as the kind says."""
    rng = np.random.default_rng([PLAN["seed"], seed, RULES["drifts"].index(kind)])
    when, shift = np.arange(rows) / rows, RULES["drift_shift"]
    moved = {
        "none": np.zeros(rows),
        "sudden": np.where(when < 0.5, 0, shift),
        "gradual": shift * when,
        "returning": np.where((when * 4).astype(int) % 2 == 0, 0, shift),
    }[kind]
    scores = rng.standard_normal(rows)
    return scores, (rng.random(rows) < expit(2 * scores + moved)).astype(np.uint8)


def keys() -> Iterable[tuple[str, int, int]]:
    """A set or a kind of drift, the delay of labels, and a seed."""
    for delay in RULES["delays"]:
        for name in RULES["sets"]:
            yield name, delay, 0
        for name in RULES["drifts"]:
            yield from ((name, delay, seed) for seed in range(RULES["drift_seeds"]))


def cell(
    name: str, delay: int, seed: int, rows: int | None = None, only: Iterable[str] = ()
) -> dict[str, Any]:
    """What every method costs from the first answered row on, for each cost."""
    if name in PLAN["sets"]:
        scores, labels = data.read(name)
        scores, labels = scores[:rows], labels[:rows]
    else:
        scores, labels = drifting(name, rows or RULES["drift_rows"], seed)
    methods = {}
    for each in only or METHODS:
        answers = METHODS[each](Stream(scores, labels, delay))
        methods[each] = {
            named(costs): rounded(
                measures.cost(answers[costs][FIRST:], labels[FIRST:].astype(float), *costs)
            )
            for costs in COSTS
        }
    return {"rows": len(scores) - FIRST, "methods": methods}


def main() -> None:
    run("streams", keys(), cell)
