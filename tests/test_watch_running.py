# SPDX-License-Identifier: Apache-2.0
"""`limen watch` as a tool that is left running: how few samples, groups, directions, aims, bounds.

What lines say is compared with models that are given the same rows by hand, and with `limen fit`.
"""

from __future__ import annotations

import json
import math
import os
import pty
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from watching import MODEL, settled, watched

import limen
from limen.cli import main
from limen.demo import load_phishing

SCORES, LABELS = load_phishing()
PLAIN = ["score,label", *(f"{s!r},{y}" for s, y in zip(SCORES, LABELS, strict=True))]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def as_number(shown: Any) -> Any:
    return float(shown) if isinstance(shown, str) else shown


def fitted(capsys: pytest.CaptureFixture[str], rows: list[str], *arguments: str) -> dict[str, Any]:
    """What `limen fit` finds in the same rows; nothing where no cut meets the demands."""
    Path("fit.csv").write_text("\n".join(rows) + "\n")
    code = main(["fit", "fit.csv", "--json", "-q", *arguments])
    shown = capsys.readouterr().out
    return json.loads(shown) if code == 0 else {}


def split(rows: int, groups: int = 0, delay: int = 5, seed: int = 3) -> list[dict[str, Any]]:
    """Scores and labels apart: some labels never come, some are corrected, scores have a time."""
    chance, made = random.Random(seed), []
    for at in range(rows):
        row: dict[str, Any] = {"id": f"n{at}", "score": SCORES[at], "time": at}
        if groups:
            row["group"] = f"g{chance.randrange(groups)}"
        made.append(row)
        due = at - delay
        if due >= 0 and chance.random() < 0.9:
            made.append({"id": f"n{due}", "label": LABELS[due], "time": at})
        if due > 3 and chance.random() < 0.1:
            made.append({"id": f"n{due - 3}", "label": 1 - LABELS[due - 3], "time": at})
    return made


def ndjson(rows: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(row) for row in rows]


def as_csv(rows: list[dict[str, Any]]) -> list[str]:
    names = ["id", "score", "label", "time", *(["group"] if "group" in rows[0] else [])]
    return [",".join(names), *(",".join(str(row.get(n, "")) for n in names) for row in rows)]


# ---- how few samples ------------------------------------------------------------------------


@pytest.mark.parametrize("slow", [(), ("--skip-malformed",)])
def test_no_threshold_comes_from_fewer_samples_than_asked_for(slow: tuple[str, ...]) -> None:
    _, lines, _ = watched(PLAIN[:301], "--at-least", "100", *slow)
    model, told, expected = limen.OnlineThreshold(), None, []
    for rows, sample in enumerate(zip(SCORES[:300], LABELS, strict=False), start=1):
        model.update(*sample)
        if rows >= 100 and model.threshold != told:
            told = model.threshold
            expected.append((rows, told))
    assert 100 == lines[0]["rows"]
    assert [*expected, (300, told)] == [(line["rows"], line["threshold"]) for line in lines]


def test_the_last_line_of_too_few_samples_has_no_threshold() -> None:
    code, lines, _ = watched(PLAIN[:11], "--at-least", "100", "--state", "kept.limen")
    empty = dict.fromkeys(("threshold", "lower", "upper", "loss"))
    assert (0, [{"rows": 10, "samples": 10, **empty}]) == (code, lines)
    _, again, err = watched(PLAIN[:1], "--at-least", "100", "--state", "kept.limen")
    assert lines == again
    assert "continuing after row 10: 10 samples\n" == err


def test_samples_that_leave_a_window_take_the_threshold_with_them() -> None:
    rows = ["time,score,label", "1,.25,0", "2,.5,1", "3,.75,1", "50,.4,0", "51,.5,1", "52,.7,0"]
    timed = ("--time-column", "time", "--last-period", "10", "--at-least", "3")
    _, lines, _ = watched(rows, *timed)
    assert [(3, 0.375), (4, None), (6, "inf")] == [(x["rows"], x["threshold"]) for x in lines]


# ---- what does not count --------------------------------------------------------------------


@pytest.mark.parametrize("written", [ndjson, as_csv])
def test_lines_say_what_expired_was_refused_and_waits(written: Any) -> None:
    rows = split(200)
    given = ("--id-column", "id", "--time-column", "time", "--last-period", "60")
    _, lines, _ = watched(written(rows), *given, "--time-to-live", "20", "--maturity", "8")
    window = limen.LastPeriod(limen.OnlineThreshold(), 60)
    ledger, expected, told = limen.Ledger(window, time_to_live=20, maturity=8), {}, math.inf
    for count, row in enumerate(rows, start=1):
        if "score" in row:
            ledger.score(row["id"], row["score"], row["time"])
        else:
            ledger.advance(row["time"])
            ledger.label(row["id"], row["label"])
        if ledger.threshold != told or count == len(rows):
            told = ledger.threshold
            expected[count] = (ledger.expired, ledger.refused, ledger.pending)
    names = ("expired", "refused", "pending")
    assert expected == {line["rows"]: tuple(line[name] for name in names) for line in lines}
    assert lines[-1]["expired"] > 0
    assert lines[-1]["pending"] > 0


def test_rows_that_are_skipped_are_counted_also_over_a_restart() -> None:
    rows = ["score,label", ".1,0", "oops,1", ".9,1", ".8"]
    options = ("--skip-malformed", "--state", "kept.limen")
    _, lines, _ = watched(rows, *options)
    assert (4, 2, 2) == tuple(lines[-1][name] for name in ("rows", "samples", "skipped"))
    _, lines, _ = watched(["score,label", "x,y"], *options)
    assert [2, 3] == [line["skipped"] for line in lines]


# ---- directions, gains, costs of rows, bounds -----------------------------------------------


@pytest.mark.parametrize("slow", [(), ("--skip-malformed",)])
def test_lower_scores_may_mean_positive(capsys: Any, slow: tuple[str, ...]) -> None:
    rows = [PLAIN[0], *(f"{-s!r},{y}" for s, y in zip(SCORES, LABELS, strict=True))]
    _, up, _ = watched(PLAIN, "--false-negative", "5", *slow)
    options = ("--false-negative", "5", "--lower-is-positive", *slow)
    _, down, _ = watched(rows, *options, "--state", "kept.limen")
    assert len(up) == len(down)
    for line, turned in zip(up, down, strict=True):
        assert (line["rows"], line["loss"]) == (turned["rows"], turned["loss"])
        assert as_number(line["threshold"]) == -as_number(turned["threshold"])
        assert "<=" == turned["direction"]
    found = fitted(capsys, rows, "--false-negative", "5", "--lower-is-positive")
    names = ("threshold", "lower", "upper", "loss", "direction")
    assert {name: found[name] for name in names} == {name: down[-1][name] for name in names}
    kept = limen.load(MODEL)
    assert ("<=", down[-1]["threshold"]) == (kept.direction, kept.threshold)


def test_a_ledger_of_lower_scores_makes_the_same_case_for_a_change() -> None:
    rows = split(400)
    turned = [row | ({"score": -row["score"]} if "score" in row else {}) for row in rows]
    options = ("--id-column", "id", "--age", "6", "--every", "50")
    _, up, _ = watched(ndjson(rows), *options, "--current", "0.9")
    for written in (ndjson, as_csv):
        _, down, _ = watched(written(turned), *options, "--current", "-0.9", "--lower-is-positive")
        assert len(up) == len(down)
        assert any(line["change"] is not None for line in up)
        for line, other in zip(up, down, strict=True):
            for name in ("recommended", "change", "candidate", "threshold"):
                value = as_number(line[name])
                assert as_number(other[name]) == (None if value is None else -value)
            for name, turned_name in (("low", "high"), ("high", "low")):
                assert as_number(line[name]) == -as_number(other[turned_name])
            for name in ("keep", "evidence", "missing", "cost", "regret"):
                assert line[name] == other[name]


AMOUNTS = [
    "score,label,amount,weight",
    *(
        f"{s!r},{y},{random.Random(at).randrange(1, 50)},{1 + at % 3}"
        for at, (s, y) in enumerate(zip(SCORES[:400], LABELS, strict=False))
    ),
]


@pytest.mark.parametrize(
    "prices",
    [
        ("--true-positive", "-5", "--false-negative", "2"),
        ("--false-negative-column", "amount", "--false-positive", "3"),
        ("--true-positive-column", "amount", "--true-negative", "-1", "--false-negative", "60"),
        ("--false-negative", "2.5", "--true-positive", "-0.5", "--weight-column", "weight"),
    ],
)
@pytest.mark.parametrize("falling", [(), ("--lower-is-positive",)])
def test_gains_and_costs_of_rows_are_those_of_fit(capsys: Any, prices: Any, falling: Any) -> None:
    _, lines, _ = watched(AMOUNTS, *prices, *falling, "--every", "200")
    assert [200, 400] == [line["rows"] for line in lines]
    for line in lines:
        found = fitted(capsys, AMOUNTS[: line["rows"] + 1], *prices, *falling)
        for name in ("threshold", "lower", "upper", "loss"):
            assert found[name] == line[name], name


def test_gains_are_joined_by_id_with_the_costs_of_the_row_with_the_label(capsys: Any) -> None:
    rows = []
    for at, text in enumerate(AMOUNTS[1:]):
        score, label, amount, _ = text.split(",")
        rows.append({"id": str(at), "score": float(score)})
        rows.append({"id": str(at), "label": int(label), "amount": int(amount)})
    prices = ("--false-negative-column", "amount", "--true-positive", "-2")
    _, lines, _ = watched(ndjson(rows), "--id-column", "id", *prices)
    found = fitted(capsys, AMOUNTS, *prices)
    for name in ("threshold", "lower", "upper", "loss"):
        assert found[name] == lines[-1][name]


def test_with_a_capacity_each_line_says_how_much_the_threshold_may_be_missed() -> None:
    _, lines, _ = watched(PLAIN, "--capacity", "16", "--every", "50", "--state", "kept.limen")
    bounded, exact = limen.BoundedThreshold(capacity=16), limen.OnlineThreshold()
    for rows, sample in enumerate(zip(SCORES, LABELS, strict=True), start=1):
        bounded.update(*sample)
        exact.update(*sample)
        if rows % 50 == 0:
            line = lines[rows // 50 - 1]
            assert (bounded.threshold, bounded.loss, bounded.loss_bound) == tuple(
                line[name] for name in ("threshold", "loss", "loss_bound")
            )
            answers = [score >= line["threshold"] for score in SCORES[:rows]]
            loss = sum(a != bool(y) for a, y in zip(answers, LABELS, strict=False))
            assert exact.loss <= loss <= exact.loss + line["loss_bound"]
    assert any(line["loss_bound"] > 0 for line in lines)
    assert limen.load(MODEL).capacity == 16


def test_a_bound_fades_with_the_samples() -> None:
    _, lines, _ = watched(PLAIN, "--capacity", "16", "--half-life", "20", "--every", "50")
    faded = limen.Fading(limen.OnlineThreshold(capacity=16), 20)
    for rows, sample in enumerate(zip(SCORES, LABELS, strict=True), start=1):
        faded.update(*sample)
        if rows % 50 == 0:
            line = lines[rows // 50 - 1]
            assert (faded.loss, faded.loss_bound) == (line["loss"], line["loss_bound"])
    assert any(line["loss_bound"] > 0 for line in lines)


# ---- other aims -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "aim",
    [
        ("--metric", "f1"),
        ("--metric", "MCC"),
        ("--min-precision", "0.95"),
        ("--max-positive-rate", "0.2"),
        ("--min-recall", "0.9", "--false-negative", "3"),
    ],
)
@pytest.mark.parametrize("falling", [(), ("--lower-is-positive",)])
def test_metrics_and_demands_are_followed_at_a_rhythm(capsys: Any, aim: Any, falling: Any) -> None:
    _, lines, _ = watched(PLAIN[:501], *aim, *falling, "--every", "250")
    for line in lines:
        found = fitted(capsys, PLAIN[: line["rows"] + 1], *aim, *falling)
        for name in ("threshold", "lower", "upper", "value"):
            assert found.get(name) == line[name], name
        assert ("reason" in line) == (not found)


def test_demands_that_no_cut_meets_are_said_in_the_line() -> None:
    rows = ["score,label", ".9,0", ".8,0", ".7,1"]
    _, lines, _ = watched(rows, "--min-precision", "0.9", "--every", "1")
    assert [None] * 3 == [line["threshold"] for line in lines]
    assert "no cut meets min_precision=0.9" in lines[-1]["reason"]


# ---- groups ---------------------------------------------------------------------------------


def groups_told(lines: list[dict[str, Any]]) -> dict[Any, Any]:
    """The threshold that somebody knows of each group who reads all lines."""
    return {line["group"]: as_number(line["threshold"]) for line in lines}


@pytest.mark.parametrize("written", [ndjson, as_csv])
def test_each_change_of_a_group_is_one_line(written: Any) -> None:
    rows = split(300, groups=4)
    given = ("--id-column", "id", "--group-column", "group", "--at-least", "5")
    _, lines, _ = watched(written(rows), *given)
    ledger = limen.Ledger(limen.Grouped(limen.OnlineThreshold(), at_least=5))
    names = sorted({row["group"] for row in rows if "group" in row})
    told: dict[Any, Any] = {}
    expected = []
    for count, row in enumerate(rows, start=1):
        if "score" in row:
            ledger.score(row["id"], row["score"], group=row["group"])
        else:
            ledger.label(row["id"], row["label"])
        groups = ledger.model
        for name in (None, *names):
            path = () if name is None else name
            value = groups.threshold(path) if groups.count(path) >= 5 else None
            if value != told.get(name):
                told[name] = value
                expected.append((count, name, value, groups.count(path)))
    found = [(x["rows"], x["group"], as_number(x["threshold"]), x["samples"]) for x in lines]
    assert expected == found[: len(expected)]
    assert all(line["rows"] == len(rows) for line in lines[len(expected) :])
    assert told == groups_told(lines)
    assert "regret" in lines[-1] or lines[-1]["group"] is not None


@pytest.mark.parametrize("joined", [True, False])
def test_groups_whose_samples_leave_by_the_clock_are_told_soon(joined: bool) -> None:
    chance, rows = random.Random(8), []
    for at in range(300):
        name = f"g{chance.randrange(6)}" if at < 150 else "g0"  # later, nothing but the clock
        row = {"score": SCORES[at], "label": LABELS[at], "time": at, "group": name}
        rows.append(row | ({"id": at} if joined else {}))
    given = ("--time-column", "time", "--group-column", "group", "--last-period", "40")
    _, lines, _ = watched(ndjson(rows), *given, *(("--id-column", "id") if joined else ()))
    gone = {x["group"]: (x["rows"], x["samples"]) for x in lines if x["threshold"] is None}
    assert {"g1", "g2", "g3", "g4", "g5"} == gone.keys()
    for name, (count, samples) in gone.items():
        last = max(row["time"] for row in rows if row["group"] == name)
        assert 0 <= count - 1 - (last + 40) <= 1  # in the row after which it is empty, or the next
        assert 0 == samples


def test_a_group_that_comes_to_count_by_the_clock_is_told() -> None:
    rows = [{"id": "a", "score": 0.5, "group": "early", "time": 0}]
    rows += [{"id": "a", "label": 0, "time": 1}]
    rows += [{"id": at, "score": 0.5, "group": "late", "time": at} for at in range(2, 40)]
    given = ("--id-column", "id", "--group-column", "group", "--time-column", "time")
    _, lines, _ = watched(ndjson(rows), *given, "--maturity", "10")
    told = [(line["group"], line["rows"]) for line in lines if line["group"] is not None]
    assert "early" == told[0][0]
    assert 11 <= told[0][1] <= 12  # the row of time 10, or the next


@pytest.mark.parametrize("killed", [False, True])
def test_each_line_about_a_group_is_the_same_after_a_restart(killed: bool) -> None:
    rows = ndjson(split(300, groups=4))
    given = ("--id-column", "id", "--group-column", "group", "--at-least", "3")
    _, whole, _ = watched(rows, *given)
    _, first, _ = watched(rows[:250], *given, "--state", "kept.limen", killed=killed)
    _, second, _ = watched(rows[250:], *given, "--state", "kept.limen")
    assert [x for x in whole if x["rows"] > 250] == [x for x in second if x["rows"] > 250]
    known = {group: told for group, told in groups_told(first).items() if told is not None}
    assert known == groups_told([line for line in second if line["rows"] == 250])


def test_groups_go_on_after_a_restart_and_are_all_told_again(capsys: Any) -> None:
    rows = split(300, groups=5)
    given = ("--id-column", "id", "--group-column", "group", "--time-column", "time")
    given += ("--last-period", "100", "--maturity", "10", "--at-least", "3")
    _, whole, _ = watched(ndjson(rows), *given)
    _, first, _ = watched(ndjson(rows[:250]), *given, "--state", "kept.limen")
    _, second, _ = watched(ndjson(rows[250:]), *given, "--state", "kept.limen")
    begun = {line["group"]: line["threshold"] for line in second if line["rows"] == 250}
    known = {g: t for g, t in groups_told(first).items() if t is not None}
    assert known == {group: as_number(told) for group, told in begun.items()}
    assert groups_told(whole) == groups_told(first + second)
    capsys.readouterr()
    assert 0 == main(["show", MODEL, "-q"])
    shown = json.loads(capsys.readouterr().out)
    assert {g["group"]: as_number(g["threshold"]) for g in shown["groups"] if g["own"]} == {
        group: told for group, told in groups_told(whole).items() if group and told is not None
    }
    code, _, err = watched([], *given[:-2], "--at-least", "4", "--state", "kept.limen")
    assert (2, True) == (code, "segments.at_least 3, not 4" in err)


def test_each_group_has_its_own_interval() -> None:
    rows = ["group,score,label"]
    rows += [f"g{at % 2},{s!r},{y}" for at, (s, y) in enumerate(zip(SCORES, LABELS, strict=True))]
    _, lines, _ = watched(rows, "--group-column", "group", "--every", "625", "--current", "0.9")
    for line in lines:
        n, start = (
            line["rows"],
            {None: slice(0, None), "g0": slice(0, None, 2)}.get(line["group"], slice(1, None, 2)),
        )
        told = limen.recommend(
            SCORES[:n][start], LABELS[:n][start], current=0.9, scores_are="ranks"
        )
        assert (told.threshold, told.keep) == (line["recommended"], line["keep"])
        assert told.interval == tuple(as_number(line[name]) for name in ("low", "high"))


# ---- people and processes -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--metric", "f1"), "--every 1000"),
        (("--metric", "f1", "--every", "9", "--current", "1"), "works only with costs"),
        (("--capacity", "8", "--last-n", "5"), "memory all or fading"),
        (("--capacity", "8", "--recommended"), "needs all samples"),
        (("--recommended", "--true-positive", "-2", "--false-negative", "3"), "--false-negative 5"),
        (("--current", "1", "--false-negative-column", "amount"), "costs in columns"),
        (("--alert", "interval"), "needs --current"),
        (("--alert", "late=3"), "needs --id-column"),
        (("--alert", "late=3d", "--id-column", "id"), "alert late 3d needs --time-column"),
        (("--alert", "sleepy"), "one of interval, change, regret=R"),
        (("--alert", "regret"), "not written so"),
        (("--alert", "min-recall=2"), "not a share"),
        (("--group-column", "score", "--last-n", "5", "--id-column", "label"), "by their number"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(arguments: Any, problem: str) -> None:
    code, lines, err = watched(["score,label"], *arguments)
    assert (2, []) == (code, lines)
    assert problem in err


def seen_on_a_terminal(*arguments: str, stdin: Any) -> str:
    """What is seen first on a terminal for messages; then a signal ends the command."""
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "limen", "watch", *settled(*arguments)]
    streams = {"stdin": stdin or inner, "stdout": subprocess.DEVNULL, "stderr": inner}
    with subprocess.Popen(command, **streams) as process:
        os.close(inner)
        seen = os.read(outer, 1000).decode()
        process.send_signal(signal.SIGTERM)
        assert 143 == process.wait(timeout=60)
    os.close(outer)
    return seen


@pytest.mark.parametrize("stdin", [None, subprocess.PIPE])
def test_on_a_terminal_it_says_that_it_waits_for_rows(stdin: Any) -> None:
    seen = seen_on_a_terminal("--id-column", "order", stdin=stdin)
    assert "waiting for rows of CSV or NDJSON on standard input, with score, label, order" in seen


def test_a_stream_that_is_slow_is_answered_row_by_row_until_a_signal() -> None:
    command = [sys.executable, "-m", "limen", "watch"]
    command += settled("--at-least", "2", "--state", "kept.limen")
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes, text=True, bufsize=1) as process:
        for row in ("score,label", "0.1,0", "0.9,1"):
            process.stdin.write(f"{row}\n")
            process.stdin.flush()
        assert 0.5 == json.loads(process.stdout.readline())["threshold"]
        process.stdin.write("0.8,1\n0.7,")  # the last row has not come entirely
        process.stdin.flush()
        assert 3 == json.loads(process.stdout.readline())["rows"]
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert 130 == process.wait(timeout=60)
        assert time.monotonic() - began < 30
        assert "" == process.stderr.read()
    assert 3 == len(limen.load(MODEL))
