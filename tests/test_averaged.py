# SPDX-License-Identifier: Apache-2.0
"""The averaged calibration maps, as probabilities and as a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recommended_oracle import Maps, Ranked, chance

import limen


def drawn(n: int, slope: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    logits = 2 * rng.normal(size=n)
    return chance(logits), (rng.random(n) < chance(slope * logits)).astype(np.uint8)


@pytest.mark.parametrize("kind", ["probabilities", "raw", "ranks"])
@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("n", [60, 2_000])
def test_a_held_score_has_the_chance_of_dense_gaussian_processes(
    kind: Any, falling: bool, n: int
) -> None:
    scores, labels = drawn(n)
    scores = scores.round(2) if n == 60 else scores
    given = 1 - scores if falling else scores
    model = limen.OnlineCalibrator(scores=kind, direction="<=" if falling else ">=")
    model.update_many(given, labels)
    maps = Maps(Ranked(-given if falling else given, labels), kind, falling)
    held = maps.scores

    found = model.calibrated(-held if falling else held)

    assert chance(maps.log_odds) == pytest.approx(found, abs=1e-6)
    shuffled = np.random.default_rng(1).permutation(len(held))
    assert found[shuffled] == pytest.approx(
        model.calibrated((-held if falling else held)[shuffled]), abs=1e-12
    )


def test_of_too_few_samples_no_chance_is_known() -> None:
    with pytest.raises(ValueError, match="it takes 5 of each label"):
        limen.OnlineCalibrator().calibrated([0.5])


@pytest.mark.parametrize(
    ("slope", "said"),
    [
        (1.0, "The scores are close to probabilities (weight"),
        (0.5, "overconfident (weight"),
        (1.5, "too cautious (weight"),
    ],
)
def test_the_sentence_names_the_maps_that_carry_the_weight(slope: float, said: str) -> None:
    scores, labels = drawn(3_000, slope)

    assert said in limen.recommend(scores, labels).explain()
    assert said in limen.recommend(1 - scores, labels, direction="<=").explain()
    ranks = limen.recommend(scores, labels, scores_are="ranks").explain()
    assert "rank of the score" in ranks
    assert "probabilities" not in limen.recommend(9 * scores, labels).explain()


def test_a_classifier_is_calibrated_by_the_average() -> None:
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    from limen.sklearn import CalibratedClassifier

    rng = np.random.default_rng(3)
    rows = rng.normal(size=(1_500, 4))
    rows = np.hstack([rows, rows])  # of which a naive Bayes is overconfident
    y = (rng.random(1_500) < chance(rows[:, 0] + rows[:, 1])).astype(int)
    model = CalibratedClassifier(GaussianNB(), method="average", ensemble=False)
    average = model.fit(rows[:500], y[:500]).predict_proba(rows[500:])[:, 1]
    plain = GaussianNB().fit(rows[:500], y[:500]).predict_proba(rows[500:])[:, 1]

    def loss(p: np.ndarray) -> float:
        p = np.clip(p, 1e-6, 1 - 1e-6)
        return float(-np.mean(np.where(y[500:] == 1, np.log(p), np.log(1 - p))))

    assert loss(average) < loss(plain)
    more = CalibratedClassifier(LogisticRegression(), method="average").fit(rows, y)
    assert ((more.predict_proba(rows) > 0) & (more.predict_proba(rows) < 1)).all()
