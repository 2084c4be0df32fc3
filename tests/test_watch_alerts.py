# SPDX-License-Identifier: Apache-2.0
"""`limen watch --alert`: a line when a condition begins to hold, and one when it ends.

What is said is compared with what follows from the rows by the plainest means.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from watching import settled, watched

import limen
from limen.demo import load_phishing

SCORES, LABELS = load_phishing()


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def as_number(shown: Any) -> Any:
    return float(shown) if isinstance(shown, str) else shown


def events(lines: list[dict[str, Any]], of: str = "") -> list[tuple[int, str, str]]:
    """The rows after which a condition began to hold or ended."""
    found = [line for line in lines if "event" in line and line["alert"].startswith(of)]
    return [(line["rows"], line["event"], line["alert"]) for line in found]


def edges(holds: list[bool]) -> list[tuple[int, str]]:
    """After which rows something begins and ends, of whether it holds after each of them."""
    before = [False, *holds[:-1]]
    changes = enumerate(zip(before, holds, strict=True), start=1)
    return [(rows, "alert" if now else "over") for rows, (was, now) in changes if was != now]


def late_labels(count: int, seed: int = 5) -> list[dict[str, Any]]:
    """Scores each minute, labels 2 to 30 minutes later or never, corrected, repeated, before."""
    chance, start, made = random.Random(seed), datetime(2026, 3, 1), []
    for at, (score, label) in enumerate(zip(SCORES[:count], LABELS, strict=False)):
        id = f"n{at}"
        made.append((at, {"id": id, "score": score}))
        if chance.random() < 0.1:
            made.append((at + 3, {"id": id, "score": score}))  # delivered again
        when = at + (-1 if chance.random() < 0.05 else chance.randrange(2, 30))
        if chance.random() < 0.9:
            made.append((when, {"id": id, "label": label}))
        if chance.random() < 0.2:
            made.append((when + chance.randrange(1, 30), {"id": id, "label": 1 - label}))
    made.sort(key=lambda each: each[0])
    minute = timedelta(minutes=1)
    return [{**row, "time": (start + at * minute).isoformat()} for at, row in made if at >= 0]


def counted(rows: list[dict[str, Any]], age: timedelta) -> list[tuple[float, int | None]]:
    """Each sample that has reached the age by the last row, with its label as known before that."""
    seen: dict[str, list[Any]] = {}
    clock = datetime.min
    for row in rows:
        time = datetime.fromisoformat(row["time"])
        clock = max(clock, time)
        sample = seen.setdefault(row["id"], [None, None, None])
        if "score" in row and sample[0] is None:
            sample[:2] = time, row["score"]
        if "label" in row and (sample[0] is None or clock - sample[0] < age):
            sample[2] = row["label"]
    return [(s, y) for time, s, y in seen.values() if time is not None and clock - time >= age]


JOINED = ("--id-column", "id", "--time-column", "time", "--every", "60")


# ---- floors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("falling", [False, True])
def test_floors_are_judged_by_each_sample_at_one_age(falling: bool) -> None:
    rows, age, chance = late_labels(600), timedelta(minutes=12), random.Random(2)
    if not falling:  # some scores come late, some of them older than the age
        for row in rows:
            if "score" in row and chance.random() < 0.1:
                time = datetime.fromisoformat(row["time"]) - timedelta(minutes=chance.randrange(15))
                row["time"] = time.isoformat()
                if chance.random() < 0.3:
                    row["label"] = 1
    turn = -1 if falling else 1
    sent = [row | ({"score": turn * row["score"]} if "score" in row else {}) for row in rows]
    limits = {"min-precision": 0.9, "min-recall": 0.999, "max-cost": 0.5}
    options = [f"--alert={name}={limit}" for name, limit in limits.items()]
    options += ["--current", str(turn * 0.6), "--age", "12m", *["--lower-is-positive"] * falling]
    _, lines, _ = watched(list(map(json.dumps, sent)), *JOINED, *options)
    told = [line for line in lines if "event" not in line]
    assert len(told) > 10
    for line in told:
        samples = counted(rows[: line["rows"]], age)
        for name, limit in limits.items():
            alarm = limen.Alarm(0.6, **{name.replace("-", "_"): limit})
            for sample in samples:
                alarm.update(*sample)
            found = line["floors"][f"{name}={limit:g}"]
            expected = (alarm.value, alarm.missing, alarm.rate, alarm.bound)
            shown = (as_number(found[each]) for each in ("evidence", "missing", "rate", "bound"))
            for one, other in zip(expected, shown, strict=True):
                assert one == other or (math.isnan(one) and math.isnan(other))
            assert found["raised"] == (f"{name}={limit:g}" in line["alerts"])
    assert told[-1]["floors"]["min-recall=0.999"]["missing"] > 0
    assert not told[-1]["floors"]["max-cost=0.5"]["raised"]
    assert ["alert"] == [event for _, event, _ in events(lines, "min-recall")]


def test_a_floor_of_rows_with_both_is_judged_by_each_row() -> None:
    rows = ["score,label", *(f"{s!r},{y}" for s, y in zip(SCORES, LABELS, strict=True))]
    _, lines, _ = watched(
        rows, "--current", "0.3", "--alert", "min-precision=0.95", "--every", "50"
    )
    raised = 0
    for line in lines:
        alarm = limen.Alarm(0.3, min_precision=0.95)
        alarm.update_many(SCORES[: line["rows"]], LABELS[: line["rows"]])
        if "event" in line:
            assert alarm.raised
            assert alarm.reason == line["reason"]
            raised = line["rows"]
        else:
            assert alarm.value == pytest.approx(
                as_number(line["floors"]["min-precision=0.95"]["evidence"])
            )
            assert alarm.raised == (line["rows"] >= raised > 0)
    assert raised
    assert 1 == len(events(lines))


def test_a_floor_that_holds_raises_no_alarm() -> None:
    raised = 0
    for seed in range(8):
        chance = random.Random(seed)
        rows = [f"0.9,{int(chance.random() < 0.9)}" for _ in range(400)]
        options = ("--current", "0.5", "--alert", "min-precision=0.9", "--every", "400")
        _, lines, _ = watched(["score,label", *rows], *options)
        raised += len(events(lines))
    assert raised <= 1


# ---- the other conditions -------------------------------------------------------------------


def test_a_threshold_that_leaves_its_interval_is_told_and_when_it_is_back() -> None:
    chance, samples = random.Random(1), []
    for share in (0.3, 0.9, 0.3):  # what the best threshold depends on
        for _ in range(300):
            score = chance.random()
            samples.append((score, int(chance.random() < (0.1 if score < share else 0.9))))
    rows = ["score,label", *(f"{s!r},{y}" for s, y in samples)]
    given = ("--every", "1", "--last-n", "200", "--current", "0.3", "--alert", "interval")
    _, lines, _ = watched(rows, *given)
    window, holds = limen.LastN(limen.OnlineThreshold(), 200), []
    for sample in samples:
        window.update(*sample)
        holds.append(not window.keeps(0.3))
    assert edges(holds) == [(rows, event) for rows, event, _ in events(lines)]
    assert {"alert", "over"} == {event for _, event, _ in events(lines)}
    for line in lines:
        if "event" not in line:
            assert (line["alerts"] == ["interval"]) == (not line["keep"])
    # without a rhythm it is looked at with each change and each hundredth
    _, lines, _ = watched(rows, *given[2:])
    assert len(events(lines)) >= 2
    for count, event, _ in events(lines):
        assert holds[count - 1] == (event == "alert")


@pytest.mark.parametrize("limit", ["3", "7.5"])
def test_regret_above_a_limit_is_told(limit: str) -> None:
    rows = late_labels(300)
    given = ("--id-column", "id", "--time-column", "time", "--last-period", "60m", "--every", "1")
    _, lines, _ = watched(list(map(json.dumps, rows)), *given, "--alert", f"regret={limit}")
    ledger = limen.Ledger(limen.LastPeriod(limen.OnlineThreshold(), timedelta(minutes=60)))
    holds = []
    for row in rows:
        time = datetime.fromisoformat(row["time"])
        if "score" in row:
            ledger.score(row["id"], row["score"], time)
        else:
            ledger.advance(time)
            ledger.label(row["id"], row["label"])
        holds.append(ledger.regret > float(limit))
    assert edges(holds) == [(rows, event) for rows, event, _ in events(lines)]
    assert any(holds)


@pytest.mark.parametrize("written", ["ndjson", "csv"])
def test_labels_that_stop_coming_are_told_and_when_they_come_again(written: str) -> None:
    rows = [
        row
        for row in late_labels(400)
        if "label" not in row or not "T02" < row["time"][10:] < "T04"
    ]
    sent = list(map(json.dumps, rows))
    if written == "csv":
        names = ("id", "score", "label", "time")
        sent = [",".join(names)]
        sent += [",".join(str(row.get(name, "")) for name in names) for row in rows]
    given = ("--id-column", "id", "--time-column", "time", "--every", "1")
    _, lines, _ = watched(sent, *given, "--alert", "late=25m")
    heard, holds = None, []
    for row in rows:
        time = datetime.fromisoformat(row["time"])
        heard = time if "label" in row or heard is None else heard
        holds.append(time - heard > timedelta(minutes=25))
    assert edges(holds) == [(rows, event) for rows, event, _ in events(lines)]
    assert ["alert", "over"] == [event for _, event, _ in events(lines)]
    told = [line for line in lines if "event" in line]
    assert told[0]["reason"].startswith("No label has come for 26m; ")
    assert told[0]["time"] > "2026-03-01T02:2"
    assert "late=25m" == told[0]["alert"]


def test_enough_evidence_for_a_change_is_told() -> None:
    rows = []
    for at, score in enumerate(SCORES[:500]):
        rows.append(json.dumps({"id": at, "score": score}))
        if at >= 5:
            rows.append(json.dumps({"id": at - 5, "label": LABELS[at - 5]}))
    options = ("--id-column", "id", "--current", "0.9", "--age", "6", "--alert", "change")
    _, lines, _ = watched(rows, *options, "--every", "50")
    [(count, event, _)] = events(lines)
    assert "alert" == event
    assert next(line for line in lines if "event" in line)["reason"].startswith("Change 0.9 to ")
    for line in lines:
        if "event" not in line:
            assert (line["change"] is not None) == (line["rows"] >= count)


# ---- restarts -------------------------------------------------------------------------------

ALERTS = ("--alert", "late=20m", "--alert", "min-recall=0.97", "--alert", "regret=5")
JUDGED = (*JOINED, "--current", "0.6", "--age", "12m", *ALERTS, "--state", "kept.limen")


def test_alerts_go_on_after_a_restart_and_are_not_told_twice() -> None:
    rows = list(map(json.dumps, late_labels(500)))
    _, whole, _ = watched(rows, *JUDGED[:-2])
    for cut in (3, 333, 700):
        shutil.rmtree("kept.limen", ignore_errors=True)
        _, first, _ = watched(rows[:cut], *JUDGED)
        _, second, _ = watched(rows[cut:], *JUDGED)
        assert whole[-1] == second[-1]
        assert [each for each in events(whole) if each[0] <= cut] == events(
            [line for line in first if line["rows"] < cut or line["rows"] % 60 == 0]
        )
        names = [name for _, event, name in events(first + second) if event == "alert"]
        assert len(names) == len(set(names)) or "over" in {e for _, e, _ in events(whole)}


def test_a_kill_loses_no_sample_of_a_floor() -> None:
    rows = list(map(json.dumps, late_labels(500)))
    _, whole, _ = watched(rows, *JUDGED[:-2])
    command = [sys.executable, "-m", "limen", "watch", "-q", *settled(*JUDGED)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, bufsize=1) as process:
        process.stdin.write("".join(f"{row}\n" for row in rows[:450]))
        process.stdin.flush()
        while "rows" in (line := json.loads(process.stdout.readline())):
            if line["rows"] == 420 and "event" not in line:
                break
        process.send_signal(signal.SIGKILL)
    _, lines, _ = watched(rows, *JUDGED, "--from-start")
    assert 420 <= lines[0]["rows"] <= 450
    assert whole[-1] == lines[-1]


def test_another_threshold_in_use_begins_new_alarms() -> None:
    rows = list(map(json.dumps, late_labels(300)))
    watched(rows, *JUDGED)
    other = tuple("0.5" if option == "0.6" else option for option in JUDGED)
    code, lines, _ = watched([], *other)
    assert 0 == code
    assert {"evidence": 1.0, "rate": "nan", "bound": 1.0, "missing": 0, "raised": False} == lines[
        -1
    ]["floors"]["min-recall=0.97"]


@pytest.mark.parametrize("joined", [False, True])
def test_a_floor_that_is_added_later_is_judged_by_what_comes_from_then_on(joined: bool) -> None:
    rows = list(map(json.dumps, late_labels(500)))
    options = [*JOINED, "--age", "12m"] if joined else []
    if not joined:
        rows = [f'{{"score": {s!r}, "label": {y}}}' for s, y in zip(SCORES, LABELS, strict=True)]
    options += ["--current", "0.6", "--state", "kept.limen", "--alert", "min-recall=0.999"]
    _, first, _ = watched(rows[:300], *options)
    added = (*options, "--alert", "min-precision=0.9")
    _, empty, _ = watched([], *added)
    _, second, _ = watched(rows[300:400], *added)
    old, new = ([line["floors"] for line in lines if "floors" in line] for lines in (first, empty))
    assert old[-1]["min-recall=0.999"] == new[-1]["min-recall=0.999"]
    nothing = {"evidence": 1.0, "rate": "nan", "bound": 1.0, "missing": 0, "raised": False}
    assert nothing == new[-1]["min-precision=0.9"]
    assert nothing != second[-1]["floors"]["min-precision=0.9"]
