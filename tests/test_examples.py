# SPDX-License-Identifier: Apache-2.0
"""The examples run, and the numbers they print are right."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from limen import optimal_threshold

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_late_labels_are_played_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    example("late_labels").main()
    lines = capsys.readouterr().out.splitlines()

    assert ["236", "47", "37"] == [line.split()[-1] for line in lines if line.startswith("    2")]


def test_costs_and_regrets_are_those_of_the_true_labels() -> None:
    """Every label was corrected in the end, so the books must agree with the plain file."""
    late_labels = example("late_labels")
    games = late_labels.read_games()
    books = late_labels.play({"false_positive": 2, "false_negative": 1})
    fixed = sum(2 * (s >= 0.5) * (1 - y) + (s < 0.5) * y for s, y, _ in games)
    best = optimal_threshold([s for s, _, _ in games], [y for _, y, _ in games], false_positive=2)

    assert fixed == books["fixed 0.5"].cost
    for book in books.values():
        assert best == book.optimum
        assert book.cost - best.loss == book.regret
