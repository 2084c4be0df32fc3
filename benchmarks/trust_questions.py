# SPDX-License-Identifier: Apache-2.0
"""Questions about the recommended threshold and evidence, each verified before it is timed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.timing import Finding, in_turns, slower_by, within
from limen import (
    Evidence,
    Infeasible,
    OnlineCalibrator,
    OnlineThreshold,
    optimal_threshold,
    recommend,
)
from limen.floors import binomial_tail

ROUNDS = 7
STEPS = 20_000


def recommended_threshold() -> Iterator[Finding]:
    """What it costs to know how sure a threshold is, beside a sort of the scores.

    Scores that say nothing are the slow case without weights: most cuts are near the best.
    """
    rng, n = np.random.default_rng(7), 1_000_000
    scores = rng.random(n)
    labels = (rng.random(n) < 0.5 * scores).astype(np.uint8)
    chance = (rng.random(n) < 0.3).astype(np.uint8)
    for name, ys, given in (
        ("recommend", labels, {"false_negative": 5}),
        ("recommend, weights", labels, {"false_negative": 5, "weights": rng.integers(1, 10, n)}),
        ("recommend, scores that say nothing", chance, {"false_positive": 3, "false_negative": 7}),
    ):
        found = recommend(scores, ys, **given)
        assert found.optimum == optimal_threshold(scores, ys, **given)
        assert found.interval[0] <= found.threshold <= found.interval[1]
        assert not found.rules_out(found.threshold)
        runs = in_turns(
            {
                "limen": lambda ys=ys, given=given: recommend(scores, ys, **given) and None,
                "sort": lambda: np.sort(scores) is None,
            },
            ROUNDS,
            per=n,
        )
        yield slower_by(
            f"{name}, beside np.sort of the scores", "1e6", runs, "sort", 3, "ns/sample"
        )


def sureness_of_a_stream() -> Iterator[Finding]:
    """What reads cost along a stream, and what an update costs once somebody has read."""
    rng, n = np.random.default_rng(9), 1_000_000
    scores, more = rng.random(n), rng.random(STEPS // 10).tolist()
    labels = (rng.random(n) < 0.5 * scores).astype(np.uint8)
    for name, weights in (("", None), (", weights", rng.integers(1, 10, n))):
        models = {each: OnlineThreshold(false_negative=5) for each in ("limen", "not asked")}
        asked = models["limen"]
        for model in models.values():
            model.update_many(scores, labels, weights)
        whole = recommend(scores, labels, weights=weights, false_negative=5)
        assert (asked.recommended, asked.interval()) == (whole.threshold, whole.interval)
        samples = [
            (score, int(score > 0.5), 1 if weights is None else 1 + at % 9)
            for at, score in enumerate(more)
        ]

        def update(model, asked=asked, samples=samples):
            for sample in samples:
                model.update(*sample)

            def undo():
                for sample in samples:
                    model.revert(*sample)
                if model is asked:
                    model.interval()

            return undo

        runs = in_turns(
            {each: lambda model=model: update(model) for each, model in models.items()},
            3 * ROUNDS,
            per=len(samples),
        )
        question = f"update{name} after recommended was read, beside a model that nobody asked"
        yield slower_by(question, "1e6", runs, "not asked", 1.1, "ns")
        for read, most in (("recommended", 300), ("interval", 100)):

            def ask(read=read, asked=asked, samples=samples):
                _ = asked.recommended if read == "recommended" else asked.interval()
                asked.update(*samples[0])  # so that something has changed when it is read again
                return lambda: asked.revert(*samples[0])

            runs = in_turns({"limen": ask}, 30 * ROUNDS, per=1000)
            yield within(f"{read}{name}", "1e6", runs, most, "µs")


def floor_with_confidence() -> Iterator[Finding]:
    """What it costs that new rows keep a floor too, where a cut does, and where none is found."""
    rng, n = np.random.default_rng(8), 1_000_000
    scores = rng.random(n)
    for name, share, floor in (("", scores, 0.85), (", no cut found", np.full(n, 0.3), 0.3005)):
        model = OnlineCalibrator()
        model.update_many(scores, (rng.random(n) < share).astype(np.uint8))

        def best(confidence=None, model=model, floor=floor):
            try:
                return model.best("recall", min_precision=floor, confidence=confidence).confusion
            except Infeasible as error:
                return error.more_samples

        alone, sure = best(), best(0.95)
        assert alone.precision >= floor
        if name:
            assert sure > 0
        else:
            assert binomial_tail(sure.tp, sure.tp + sure.fp, floor) <= 0.05
            assert 0.95 * alone.recall < sure.recall < alone.recall
        runs = in_turns(
            {
                "limen": lambda best=best: best(0.95) and None,
                "alone": lambda best=best: best() and None,
            },
            ROUNDS,
            per=1_000_000,
        )
        question = f"best, min_precision with confidence{name}, beside without"
        yield slower_by(question, "1e6", runs, "alone", 3, "ns/sample")


def evidence_update() -> Iterator[Finding]:
    """One sample between the two thresholds."""
    evidence = Evidence(0.5, 0.4, false_negative=5)

    def work() -> None:
        for _ in range(STEPS):
            evidence.update(0.45, 1)

    runs = in_turns({"limen": work}, ROUNDS, per=STEPS)
    assert evidence.wins == STEPS * (ROUNDS + 1)
    yield within("Evidence.update", "", runs, 1_000, "ns")


QUESTIONS = (recommended_threshold, sureness_of_a_stream, floor_with_confidence, evidence_update)
