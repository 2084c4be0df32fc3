# SPDX-License-Identifier: Apache-2.0
"""What libraries of others save comes back and goes on: joblib, and skops, which runs no code."""

from __future__ import annotations

import io

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("skops")

import joblib
import skops.io
from sklearn.linear_model import SGDClassifier

import limen
from limen.sklearn import CalibratedClassifier, ThresholdClassifier

RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=(120, 3))
Y = (X[:, 0] + RANDOM.normal(size=120) > 0).astype(int)


def by_skops(saved):
    stored = skops.io.dumps(saved)
    return skops.io.loads(stored, trusted=skops.io.get_untrusted_types(data=stored))


def by_joblib(saved):
    file = io.BytesIO()
    joblib.dump(saved, file)
    file.seek(0)
    return joblib.load(file)


ways = pytest.mark.parametrize("through", [by_skops, by_joblib])


@ways
@pytest.mark.parametrize(
    "wrapped",
    [
        CalibratedClassifier(SGDClassifier(random_state=0)),
        CalibratedClassifier(SGDClassifier(random_state=0), method="sigmoid"),
        CalibratedClassifier(SGDClassifier(random_state=0), method="venn-abers"),
        CalibratedClassifier(SGDClassifier(random_state=0), ensemble=True),
        ThresholdClassifier(SGDClassifier(random_state=0), false_negative=5),
        ThresholdClassifier(SGDClassifier(random_state=0), metric="f1"),
        ThresholdClassifier(SGDClassifier(random_state=0), recommended=True),
    ],
    ids=["isotonic", "sigmoid", "venn-abers", "ensemble", "costs", "metric", "recommended"],
)
def test_a_fitted_classifier_answers_alike(wrapped, through) -> None:
    model = wrapped.fit(X, Y)
    back = through(model)

    assert model.predict(X).tolist() == back.predict(X).tolist()
    if isinstance(model, CalibratedClassifier):
        assert model.predict_proba(X).tolist() == back.predict_proba(X).tolist()
        return
    assert repr(model.optimum_) == repr(back.optimum_)
    assert model.best_threshold_ == back.best_threshold_


@ways
@pytest.mark.parametrize("kind", [CalibratedClassifier, ThresholdClassifier])
def test_one_that_learns_along_a_stream_goes_on_alike(kind, through) -> None:
    model = kind(SGDClassifier(random_state=0)).partial_fit(X[:40], Y[:40], classes=[0, 1])
    model.partial_fit(X[40:80], Y[40:80])
    back = through(model)
    for each in (model, back):
        each.partial_fit(X[80:], Y[80:])

    assert model.predict(X).tolist() == back.predict(X).tolist()
    assert through(model).predict(X).tolist() == back.predict(X).tolist()


@ways
def test_objects_of_limen_inside_of_others_come_back(through) -> None:
    window = limen.LastN(limen.OnlineThreshold(unit=0.01), 3)
    window.update_many([0.3, 0.7, 0.5, 0.6], [0, 1, 0, 1])
    back = through({"window": window, "again": [window]})

    assert window.to_bytes() == back["window"].to_bytes()
    assert back["window"] is back["again"][0]
