# SPDX-License-Identifier: Apache-2.0
"""The examples run, and the numbers they print are right."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from itertools import takewhile
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from streams import PATIENCE

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


def test_german_credit_costs_431_by_a_grid_and_417_exactly(
    capsys: pytest.CaptureFixture[str],
) -> None:
    example("german_credit").main()
    lines = capsys.readouterr().out.splitlines()
    costs = {line[:38].strip(): line[38:].split()[1:] for line in lines[3:7]}

    assert ["652", "232"] == costs["0.5, the default"]
    assert ["431", "134"] == costs["best of 100, as scikit-learn tunes"]
    assert ["417", "141"] == costs["exact"]
    assert any("need not be better on new rows" in line for line in lines)


def test_a_hundred_thresholds_are_what_scikit_learn_takes() -> None:
    german = example("german_credit")
    model_selection = pytest.importorskip("sklearn.model_selection")
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.metrics import confusion_matrix, make_scorer

    class Scored(ClassifierMixin, BaseEstimator):
        """A classifier whose score is the feature."""

        def fit(self, rows, labels):
            self.classes_ = np.array([0, 1])
            return self

        def predict_proba(self, rows):
            return np.column_stack([1 - rows[:, 0], rows[:, 0]])

    def gain(truth, answers) -> float:
        _, fp, fn, _ = confusion_matrix(truth, answers).ravel()
        return -(fp + german.MISSED * fn)

    known = german.load("out_of_fold")
    rows = known.scores[:, None]
    tuner = model_selection.TunedThresholdClassifierCV(
        Scored().fit(rows, known.labels), scoring=make_scorer(gain), cv="prefit", refit=False
    ).fit(rows, known.labels)

    assert -431 == tuner.best_score_
    assert german.best_of_a_hundred(known) == pytest.approx(tuner.best_threshold_)


def test_the_service_proposes_a_threshold_that_can_be_approved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten times as fast as people see it, and with less time in shadow."""
    for need in ("starlette", "uvicorn", "msgspec", "prometheus_client"):
        pytest.importorskip(need)
    demo, seen_enough = example("serve_demo"), threading.Event()
    monkeypatch.setattr(demo, "RATE", 400)
    monkeypatch.setitem(demo.POINT["change"], "shadow", "1s")
    sites = demo.sites
    monkeypatch.setattr(
        demo, "sites", lambda *shares: takewhile(lambda _: not seen_enough.is_set(), sites(*shares))
    )
    with demo.server("127.0.0.1:0") as url, demo.Client(url, every=0.05) as client:
        demo.fill(client, datetime.now(UTC))
        player = threading.Thread(target=demo.play, args=(client, inf))
        player.start()
        try:
            here, end = f"{url}/v1/points/{demo.NAME}", time.monotonic() + PATIENCE
            seen = demo.asked(f"{here}/overview")
            while (seen["proposal"] or {}).get("status") != "waiting" and time.monotonic() < end:
                time.sleep(0.2)
                seen = demo.asked(f"{here}/overview")
            proposal = seen["proposal"]
            assert proposal is not None
            assert "waiting" == proposal["status"], proposal["demands"]
            assert proposal["table"]["candidate"]["cost"] < proposal["table"]["now"]["cost"]
            body = {"reason": "phishing has become more frequent", "seen": seen["seq"]}
            demo.asked(f"{here}/proposals/{proposal['number']}/approve", body)
            after = demo.asked(f"{here}/threshold")
        finally:
            seen_enough.set()
            player.join()

    assert (2, proposal["thresholds"][""]["threshold"]) == (after["version"], after["threshold"])
    assert 0.3 < after["threshold"] < 0.45


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM")
def test_the_service_ends_its_server_and_removes_its_folder_when_it_is_told_to_end() -> None:
    for need in ("starlette", "uvicorn", "msgspec", "prometheus_client"):
        pytest.importorskip(need)
    with TemporaryDirectory(prefix="limen-") as name:  # a short path: that of a socket must be
        _ends_when_it_is_told_to(Path(name))


def _ends_when_it_is_told_to(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "serve_demo.py")]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        assert "Open http://" in process.stdout.readline()
        assert [True] == [(each / "data").is_dir() for each in tmp_path.iterdir()]
        process.terminate()

        assert 143 == process.wait(PATIENCE)
        assert [] == list(tmp_path.iterdir())
        process.stdout.read()  # to its end, which comes when the server has ended too
