# SPDX-License-Identifier: Apache-2.0
"""Run scikit-learn's own tests of two classes with limen's classifiers in their place.

    python tests/exchanged.py -k constant --tb=short    # options are those of pytest

The tests are those of the scikit-learn installed, and none of their code is copied: a name in
scikit-learn is bound to limen's class before the tests import it, which needs a process of its
own. Tests that do not use the class are left out.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import sys
import tempfile

import pytest

# The class, where the tests import it from, where they are, and what takes its place.
EXCHANGED = (
    (
        "TunedThresholdClassifierCV",
        "sklearn.model_selection",
        "sklearn.model_selection.tests.test_classification_threshold",
        "ThresholdClassifier",
    ),
    (
        "CalibratedClassifierCV",
        "sklearn.calibration",
        "sklearn.tests.test_calibration",
        "CalibratedClassifier",
    ),
)


class Outcomes:
    """Keeps the tests of the exchanged classes, and notes how each of them ends."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if _uses_them(item)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.found[report.nodeid.rpartition("::")[2]] = report.outcome


def _uses_them(item: pytest.Item) -> bool:
    """Whether a test uses an exchanged class, in its own code or as a parameter."""
    code = inspect.getsource(item.function)  # type: ignore[attr-defined]
    code = re.sub(r'"""(.|\n)*?"""', "", code[code.index("def ") :])
    callspec = getattr(item, "callspec", None)
    given = [] if callspec is None else callspec.params.values()
    return any(getattr(value, "__module__", "").startswith("limen.") for value in given) or any(
        f"{name}(" in code for name, *_ in EXCHANGED
    )


def main(options: list[str]) -> None:
    """Exchange the classes, run the tests, and print their outcomes, as JSON after --json."""
    import limen.sklearn

    for name, module, _, ours in EXCHANGED:
        setattr(importlib.import_module(module), name, getattr(limen.sklearn, ours))
    outcomes, out = Outcomes(), sys.stdout
    if as_json := "--json" in options:
        options.remove("--json")
        sys.stdout = sys.stderr
    tests = [tests for _, _, tests, _ in EXCHANGED]
    # Neither the settings of limen's own tests, nor files beside them.
    with tempfile.TemporaryDirectory() as place:
        alone = ["-q", "-c", os.devnull, "--rootdir", place, "-p", "no:cacheprovider"]
        pytest.main([*alone, "--pyargs", *tests, *options], plugins=[outcomes])
    sys.stdout = out
    if as_json:
        print(json.dumps(outcomes.found))
    else:
        print("\n".join(f"{how:8}{name}" for name, how in sorted(outcomes.found.items())))


if __name__ == "__main__":
    main(sys.argv[1:])
