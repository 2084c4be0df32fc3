# SPDX-License-Identifier: Apache-2.0
"""Recipes with libraries that may be missing: each runs where its library is installed."""

from __future__ import annotations

import re
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold

import limen
from limen.sklearn import CalibratedClassifier, ThresholdClassifier

pytestmark = pytest.mark.check

PAGE = Path(__file__).parents[1] / "docs" / "recipes_sklearn.md"
BLOCKS = [
    block
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    if not block.startswith(">>>")
]
X, Y = make_classification(400, 6, weights=[0.8], flip_y=0.1, random_state=0)
QUIET = {
    "lightgbm": {"n_estimators": 10, "verbose": -1, "n_jobs": 1},
    "xgboost": {"n_estimators": 10, "n_jobs": 1},
    "catboost": {"iterations": 10, "verbose": 0, "thread_count": 1, "allow_writing_files": False},
}
NAMES = {"lightgbm": "LGBM", "xgboost": "XGB", "catboost": "CatBoost"}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split()[1].rstrip(","))
def test_the_recipe_finds_a_threshold(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in re.findall(r"^(?:import|from) (\w+)", block, re.M):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        if "mlflow" in block:  # what it imports has warnings of its own
            warnings.simplefilter("ignore")
        exec(block, names)
    found = names["best"] if "best" in names else names["model"].optimum_

    assert 0 < found.threshold < 1


def test_there_are_recipes() -> None:
    assert 5 == len(BLOCKS)


@pytest.mark.parametrize("library", NAMES)
def test_a_boosted_classifier_works_as_any_other(library: str) -> None:
    pytest.importorskip(library)
    kind = getattr(import_module(library), f"{NAMES[library]}Classifier")
    folds = StratifiedKFold(3)
    model = ThresholdClassifier(kind(**QUIET[library]), false_negative=5, cv=folds).fit(X, Y)
    scores = np.empty(len(Y))
    for learn, score in folds.split(X, Y):
        fitted = kind(**QUIET[library]).fit(X[learn], Y[learn])
        scores[score] = fitted.predict_proba(X[score])[:, 1]
    expected = limen.optimal_threshold(scores, Y, false_negative=5)

    assert expected == model.optimum_
    answers = kind(**QUIET[library]).fit(X, Y).predict_proba(X)[:, 1] >= expected.threshold
    assert answers.astype(int).tolist() == model.predict(X).tolist()
    calibrated = CalibratedClassifier(kind(**QUIET[library]), cv=folds).fit(X, Y)
    assert ((calibrated.predict_proba(X)[:, 1] > 0.5) == calibrated.predict(X)).all()
