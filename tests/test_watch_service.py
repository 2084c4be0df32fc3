# SPDX-License-Identifier: Apache-2.0
"""One fold: a state of ``limen watch`` is data of ``limen serve``, and back."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from watching import watched

from limen.cli import main
from limen.service.log import snapshots
from limen.service.log.store import Log

DEFINITION = """
false_negative = 5
maturity = "1h"
time_to_live = "30d"
memory = {keep = "period", length = "60d"}
segments = {at_least = 5}
[alerts]
labels_late = "2h"
"""
GIVEN = ("--id-column", "id", "--time-column", "at", "--group-column", "shop")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("point.toml").write_text(DEFINITION)


def rows(count: int, first: int = 0, seed: int = 1, sharp: bool = False) -> list[str]:
    """Scores each minute up to now, in three shops, and labels an hour later."""
    chance, now, made = random.Random(seed), datetime.now(UTC).replace(microsecond=0), []
    for number in range(first, first + count):
        at, score = now - timedelta(minutes=count - number + first + 61), chance.random()
        label = int((0.5 if sharp else chance.random()) < score)
        made.append((at, {"id": f"n{number}", "shop": f"s{number % 3}", "score": score}))
        made.append((at + timedelta(hours=1), {"id": f"n{number}", "label": label}))
    made.sort(key=lambda each: each[0])
    return [json.dumps({**row, "at": at.isoformat()}) for at, row in made]


def folded(folder: str) -> Any:
    """What is the fold of a folder, with its log checked from the beginning."""
    snapshots.verified(Path(folder))
    log = Log(Path(folder))
    try:
        return snapshots.recovered(log, Path(folder))
    finally:
        log.close()


def served(*arguments: str) -> None:
    assert 0 == main(["serve", *arguments])


def test_serve_adopts_a_state_of_watch_and_watch_goes_on_with_it(capsys: Any) -> None:
    first, rest = rows(300), rows(100, first=300, seed=2)
    given = (*GIVEN, "--definition", "point.toml", "--state", "kept")
    _, lines, _ = watched(first, *given)
    capsys.readouterr()
    served("point", "list", "--data", "kept")
    [point] = map(json.loads, capsys.readouterr().out.splitlines())
    served("token", "add", "shop", "--scope", "score", "--data", "kept")
    served("snapshot", "--data", "kept")
    _, more, _ = watched(rest, *given)
    watched([*first, *rest], *given[:-1], "whole")
    one, other = folded("kept"), folded("whole")
    mine, theirs = one.points["stream"], other.points["stream"]

    assert "stream" == point["point"]
    assert {None, "s0", "s1", "s2"} == {line["group"] for line in lines}
    assert ["shop"] == list(one.tokens)
    assert 600 == more[0]["rows"]
    assert (800, 400, 400) == (mine.taken, mine.scores, mine.labels)
    assert set(theirs.ids()) == set(mine.ids())
    assert len(theirs.ledger) == len(mine.ledger)


def test_watch_goes_on_with_a_point_of_serve(capsys: Any) -> None:
    served("point", "add", "fraud", "--definition", "point.toml", "--data", "kept")
    code, lines, err = watched(rows(200), *GIVEN, "--state", "kept")
    state = folded("kept")

    assert (0, ["fraud"]) == (code, list(state.points))
    assert "continuing after row 0" in err
    assert (400, 400) == (lines[-1]["rows"], state.points["fraud"].taken)


def test_the_case_for_a_change_is_part_of_the_fold() -> None:
    """A trial begins when the ledger is asked: from the log it is asked after the same rows."""
    Path("point.toml").write_text('time_to_live = "30d"\n[watch]\nage = "30m"\n')
    given = ("--id-column", "id", "--time-column", "at", "--definition", "point.toml")
    sent = rows(400)
    _, lines, _ = watched(sent, *given, "--current", "0.95", "--state", "kept", killed=True)
    point = folded("kept").points["stream"]
    watched(sent, *given, "--current", "0.95", "--state", "whole")
    other = folded("whole").points["stream"]

    assert point.ledger.trial is not None
    assert point.memory.to_bytes() == other.memory.to_bytes()
    assert any(line["candidate"] is not None for line in lines)


def test_what_only_watch_can_follow_is_refused_by_serve(capsys: Any) -> None:
    Path("numbers.json").write_text('{"time_to_live": "100"}')
    watched(['{"id": 1, "score": 0.5}'], "--id-column", "id", "--definition", "numbers.json",
            "--state", "kept")  # fmt: skip
    code = main(["serve", "point", "list", "--data", "kept"])

    assert 3 == code
    assert "time_to_live must be a length of time" in capsys.readouterr().err


def test_alerts_of_the_definition_are_lines_and_events() -> None:
    sent = [row for row in rows(600) if "label" not in row or int(json.loads(row)["id"][1:]) < 200]
    code, lines, _ = watched_in_turns(sent)
    events = [line for line in lines if "event" in line]

    assert 0 == code
    assert ["alert"] == [line["event"] for line in events]
    assert ("labels", "no label for 2h, while scores kept coming") == (
        events[0]["alert"],
        events[0]["reason"],
    )
    assert ["labels"] == list(folded("kept").points["stream"].alerts)


def watched_in_turns(sent: list[str]) -> tuple[int, list[dict[str, Any]], str]:
    """Send rows in pieces, so that time passes between them."""
    code, lines, err = 0, [], ""
    for begin in range(0, len(sent), 100):
        given = (*GIVEN, "--definition", "point.toml", "--state", "kept")
        code, some, err = watched(sent[begin : begin + 100], *given)
        lines += some
    return code, lines, err


def test_a_policy_proposes_and_deploys_by_itself() -> None:
    Path("point.toml").write_text(
        'maturity = "1h"\nstart = {rule = "at_least", threshold = 0.95}\n'
        'change = {policy = "automatic", age = "90m", at_least = 100, different = 20, '
        'shadow = "1s", '
        "least_saving = 0.001, most_answered = 1000.0}\n"
    )
    given = ("--id-column", "id", "--time-column", "at", "--definition", "point.toml",
             "--state", "kept")  # fmt: skip
    sent, lines = rows(500, sharp=True), []
    for begin in range(0, len(sent), 200):
        _, some, _ = watched(sent[begin : begin + 200], *given)
        lines += [line for line in some if "event" in line]
    point = folded("kept").points["stream"]

    names = [line["event"] for line in lines]
    assert "propose" == names[0]
    assert "deploy" in names
    assert point.version.number >= 2
    assert abs(point.version.thresholds[""] - 0.5) < 0.3
