# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's own tests pass with limen's classifiers, but for the differences listed here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("sklearn")

from exchanged import EXCHANGED

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.check

# What differs on purpose: the tests that fail, all of them and no others, and the reason as
# docs/ecosystem.md has it.
DIFFERENT = {
    r"test_tuned_threshold_classifier_conflict_cv_refit\[.*refit cannot be True": (
        '`cv="prefit"` needs no `refit=False`'
    ),
    r"test_tuned_threshold_classifier_error_constant_predictor": "a constant score is not an error",
    r"test_calibration_ensemble_false\[isotonic": "a step between two blocks",
    r"test_calibration_multiclass|test_calibration_less_classes": "two classes only",
    r"temperature": "no temperature scaling",
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    missing = [tests for _, _, tests, _ in EXCHANGED if find_spec(tests) is None]
    if missing:
        pytest.skip(f"this scikit-learn comes without its tests: {', '.join(missing)}")
    run = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "exchanged.py"), "--json", "--tb=no"],
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return {n: how for n, how in json.loads(run.stdout).items() if how != "skipped"}


def test_all_tests_pass_but_for_the_differences(outcomes) -> None:
    failed = {name for name, how in outcomes.items() if how != "passed"}
    expected = {name for name in outcomes if any(re.search(each, name) for each in DIFFERENT)}

    assert expected == failed


def test_the_tests_were_really_run(outcomes) -> None:
    tuner = [name for name in outcomes if "threshold_classifier" in name]
    passed = [name for name, how in outcomes.items() if how == "passed"]

    assert len(tuner) >= 34
    assert len(passed) - len(tuner) >= 37


@pytest.mark.parametrize("reason", DIFFERENT.values())
def test_every_difference_is_documented(reason) -> None:
    assert reason in (ROOT / "docs" / "ecosystem.md").read_text(encoding="utf-8")
