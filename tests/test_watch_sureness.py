# SPDX-License-Identifier: Apache-2.0
"""What ``limen watch`` says about sureness: the interval, keep or change, and the evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from watching import watched

import limen
from limen.demo import load_phishing

SCORES, LABELS = load_phishing()


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_line_says_what_whole_arrays_say() -> None:
    rows = ["score,label", *(f"{s!r},{y}" for s, y in zip(SCORES[:300], LABELS, strict=False))]
    code, lines, _ = watched(rows, "--current", "0.9", "--every", "100", "--false-negative", "5")
    assert code == 0
    for line in lines:
        n = line["rows"]
        given = {"false_negative": 5, "current": 0.9, "scores_are": "ranks"}
        told = limen.recommend(SCORES[:n], LABELS[:n], **given)
        assert line["recommended"] == told.threshold
        assert line["keep"] == told.keep
        assert [float(line["low"]), float(line["high"])] == list(told.interval)
    assert [line["rows"] for line in lines] == [100, 200, 300]
    _, few, _ = watched(rows[:4], "--recommended")
    assert few[-1]["recommended"] is None
    assert "keep" not in few[-1]


def test_a_ledger_makes_the_case_for_a_change_also_after_a_restart() -> None:
    rows = []
    for at, score in enumerate(SCORES[:500]):
        rows.append(json.dumps({"id": at, "score": score}))
        if at >= 5:
            rows.append(json.dumps({"id": at - 5, "label": LABELS[at - 5]}))
    options = ("--id-column", "id", "--current", "0.9", "--age", "6", "--every", "50")
    code, lines, _ = watched(rows, *options)
    assert code == 0
    changes = [line for line in lines if line["change"] is not None]
    assert changes
    assert changes[0]["evidence"] >= 20
    assert changes[0]["change"] == changes[0]["candidate"]
    assert changes[0]["candidates"] == 1
    assert lines[0]["change"] is None
    parts = []
    for part in (rows[:400], rows[400:]):
        code, more, _ = watched(part, *options, "--state", "kept.limen")
        assert code == 0
        parts += more
    assert parts[-1] == lines[-1]


def test_options_that_do_not_fit_are_refused() -> None:
    code, _, err = watched(["score,label"], "--current", "0.5", "--id-column", "id")
    assert code == 2
    assert "needs watch.age" in err
    code, _, err = watched(["score,label"], "--current", "0.5", "--age", "3")
    assert code == 2
    assert "watch.age needs --id-column" in err
