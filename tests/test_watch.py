# SPDX-License-Identifier: Apache-2.0
"""Following a stream: what goes out, and that a kill at any moment loses nothing that was told."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from watching import MODEL, settled

import limen
from limen.cli import main, watch, watch_state
from limen.demo import load_phishing, phishing_csv
from limen.service.log import snapshots, store

SCORES, LABELS = load_phishing()
COSTS = ("--false-negative", "5")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def forked(source: str, *arguments: str, before=lambda: None, chunk: int = 2**20) -> int:
    """Run a command in a child, with a file as its input; give its wait status."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.dup2(os.open(source, os.O_RDONLY), 0)
            os.dup2(os.open("out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
            os.dup2(os.open("err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            sys.stdout, sys.stderr = open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
            watch._CHUNK = chunk
            before()
            code = main(["watch", *settled(*arguments)])
            sys.stdout.flush()
        except SystemExit as end:
            code = end.code
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def watched(source: str, *arguments: str, **given) -> tuple[int, list[dict], str]:
    status = forked(source, *arguments, **given)
    lines = Path("out").read_text().splitlines()
    return os.waitstatus_to_exitcode(status), list(map(json.loads, lines)), Path("err").read_text()


def events() -> str:
    """Scores and labels apart, late, corrected, and some never: joined by id, with times."""
    chance = random.Random(4)
    start = datetime(2026, 3, 1)
    rows = []
    for place, (score, label) in enumerate(zip(SCORES[:400], LABELS, strict=False)):
        at = start + timedelta(minutes=30 * place)
        rows.append((at, f"site {place}", score, None))
        late = at + timedelta(hours=chance.randrange(100))
        if chance.random() < 0.9:
            rows.append((late, f"site {place}", None, label))
        if chance.random() < 0.1:
            rows.append((late + timedelta(hours=5), f"site {place}", None, 1 - label))
    rows.sort(key=lambda row: row[0])
    names = ("time", "id", "score", "label")
    known = (dict(zip(names, map(str, row), strict=True)) for row in rows)
    kept = ({name: value for name, value in row.items() if value != "None"} for row in known)
    return "".join(json.dumps(row) + "\n" for row in kept)


JOINED = (
    *("--id-column", "id", "--time-column", "time", "--last-period", "6d"),
    *("--maturity", "1d", "--time-to-live", "3d", *COSTS),
)


def ledger_of_events() -> limen.Ledger:
    day = 86_400_000_000  # microseconds, in which dates are held
    window = limen.LastPeriod(limen.OnlineThreshold(false_negative=5), 6 * day)
    ledger = limen.Ledger(window, maturity=day, time_to_live=3 * day, horizon=3 * day)
    for line in events().splitlines():
        row = json.loads(line)
        time = (datetime.fromisoformat(row["time"]) - datetime(1970, 1, 1)) // timedelta.resolution
        if "score" in row:
            ledger.score(row["id"], float(row["score"]), time)
        else:
            ledger.advance(time)
        if "label" in row:
            ledger.label(row["id"], int(row["label"]))
    return ledger


# ---- what goes out --------------------------------------------------------------------------


@pytest.mark.parametrize("slow", [(), ("--skip-malformed",)])
@pytest.mark.parametrize("chunk", [50, 2**20])
def test_each_change_of_the_threshold_is_one_line(chunk: int, slow: tuple[str, ...]) -> None:
    Path("in.csv").write_text(phishing_csv())
    code, lines, _ = watched("in.csv", *COSTS, *slow, chunk=chunk)
    cut, expected, last = limen.OnlineThreshold(false_negative=5), [], float("inf")
    for rows, sample in enumerate(zip(SCORES, LABELS, strict=True), start=1):
        cut.update(*sample)
        if cut.threshold != last:
            last = cut.threshold
            expected.append((rows, last if abs(last) < 9 else repr(last), cut.loss))

    assert 0 == code
    assert [*expected, (1250, cut.threshold, cut.loss)] == [
        (line["rows"], line["threshold"], line["loss"]) for line in lines
    ]


def test_every_n_rows_there_is_a_line() -> None:
    Path("in.csv").write_text(phishing_csv())
    _, lines, _ = watched("in.csv", "--every", "500")

    assert [500, 1000, 1250] == [line["rows"] for line in lines]


def test_a_row_that_is_skipped_may_be_the_one_to_tell_after() -> None:
    Path("in.csv").write_text("score,label\n.1,0\noops,1\n.9,1\n.8,1\n")
    _, lines, _ = watched("in.csv", "--every", "2", "--skip-malformed")

    assert [2, 4] == [line["rows"] for line in lines]


def test_each_period_begins_with_a_line() -> None:
    Path("in.csv").write_text("time,score,label\n1,.1,0\n9,.2,1\n10,.3,1\n19,.4,0\n35,.1,0\n")
    _, lines, _ = watched("in.csv", "--time-column", "time", "--each-period", "10")

    assert [(3, 10), (5, 35)] == [(line["rows"], line["time"]) for line in lines]


def test_windows_hold_the_last_samples_only() -> None:
    Path("in.csv").write_text(phishing_csv())
    _, by_number, _ = watched("in.csv", "--last-n", "100", *COSTS)
    rows = phishing_csv().splitlines()
    timed = ["at," + rows[0], *(f"{place},{row}" for place, row in enumerate(rows[1:]))]
    Path("timed.csv").write_text("\n".join(timed))
    _, by_time, _ = watched("timed.csv", "--time-column", "at", "--last-period", "100", *COSTS)
    best = limen.optimal_threshold(SCORES[-100:], LABELS[-100:], false_negative=5)

    for lines in (by_number, by_time):
        assert (100, best.threshold, best.loss) == (
            lines[-1]["samples"],
            lines[-1]["threshold"],
            lines[-1]["loss"],
        )


@pytest.mark.parametrize("timed", [False, True])
def test_samples_may_fade(timed: bool) -> None:
    rows = [(place, *sample) for place, sample in enumerate(zip(SCORES, LABELS, strict=True))]
    fading = limen.Fading(limen.OnlineThreshold(), 100, by="time" if timed else "samples")
    for time, score, label in rows:
        fading.update(score, label, **({"time": time} if timed else {}))
    Path("in.csv").write_text("at,score,label\n" + "".join(f"{t},{s!r},{y}\n" for t, s, y in rows))
    given = ["--half-life", "100", *(["--time-column", "at"] if timed else [])]
    _, lines, _ = watched("in.csv", *given, "--state", "kept.limen")

    assert (fading.threshold, fading.loss) == (lines[-1]["threshold"], lines[-1]["loss"])
    assert fading.to_bytes() == Path(MODEL).read_bytes()


def test_weights_count() -> None:
    Path("in.csv").write_text("score,label,w\n0.2,0,3\n0.4,1,2\n0.6,0,0.5\n")
    _, lines, _ = watched("in.csv", "--weight-column", "w")

    assert (0.30000000000000004, 0.5) == (lines[-1]["threshold"], lines[-1]["loss"])


def test_scores_and_labels_apart_are_joined_as_the_ledger_does() -> None:
    Path("in.ndjson").write_text(events())
    code, lines, _ = watched("in.ndjson", *JOINED, "--state", "kept.limen")
    ledger = ledger_of_events()

    assert 0 == code
    assert ledger.to_bytes() == Path(MODEL).read_bytes()
    assert (ledger.cost, ledger.regret) == (lines[-1]["cost"], lines[-1]["regret"])
    assert len(lines) >= 20


BAD_ROWS = {
    "none": "",
    "no label": "2026-03-20T00:00:00,new,0.5,maybe\n",
    "no number": "2026-03-20T00:00:00,new,high,1\n",
    "neither": "2026-03-20T00:00:00,new,,\n",
    "no id": "2026-03-20T00:00:00,,0.5,1\n",
    "nan": "2026-03-20T00:00:00,new,nan,1\n",
    "no time": "soon,new,0.5,1\n",
    "another score": "2026-03-02T00:00:00,site 1,2.5,\n",
    "both": "2026-03-20T00:00:00,new,0.5,1\n",
}


@pytest.mark.parametrize("bad", BAD_ROWS)
@pytest.mark.parametrize("arguments", [JOINED, ("--id-column", "id")])
def test_plain_rows_joined_by_id_give_the_lines_that_quoted_ones_give(bad, arguments) -> None:
    """A quote in any row sends all of them the long way, one by one."""
    names = ("time", "id", "score", "label")
    rows = [
        ",".join(json.loads(row).get(name, "") for name in names)
        for row in events().split("\n")
        if row
    ]
    plain = "\n".join([",".join(names), *rows[:500]]) + "\n" + BAD_ROWS[bad] + "\n".join(rows[500:])
    first, rest = plain.split("\n", 1)
    time, name, others = rest.split(",", 2)
    Path("plain.csv").write_text(plain)
    Path("quoted.csv").write_text(f'{first}\n{time},"{name}",{others}')

    assert watched("plain.csv", *arguments) == watched("quoted.csv", *arguments)


def test_the_state_is_a_model_that_python_loads() -> None:
    Path("in.csv").write_text(phishing_csv())
    watched("in.csv", "--state", "kept.limen", "--last-n", "100")
    window = limen.load(MODEL)

    assert (100, 100) == (len(window), window.n)


# ---- restarts -------------------------------------------------------------------------------


def test_a_restart_goes_on_where_it_stopped() -> None:
    rows = phishing_csv().splitlines(keepends=True)
    Path("in.csv").write_text("".join(rows[:501]))
    Path("rest.csv").write_text("".join([rows[0], *rows[501:]]))
    Path("all.csv").write_text("".join(rows))
    watched("in.csv", "--state", "a.limen", *COSTS)
    _, lines, told = watched("rest.csv", "--state", "a.limen", *COSTS)
    watched("all.csv", "--state", "b.limen", *COSTS)

    assert 500 == lines[0]["rows"]
    assert "continuing after row 500" in told
    assert Path("b.limen/model.limen").read_bytes() == Path("a.limen/model.limen").read_bytes()


def dies_at(step: int):
    """Make the process kill itself at its step-th touch of the disk, or half-way through it."""

    def arrange() -> None:
        steps = iter(range(10**9))
        watch_state._LEAST = 4000

        def count() -> None:
            if next(steps) == step:
                os.kill(os.getpid(), signal.SIGKILL)

        def deadly(name: str):
            real = getattr(os, name)

            def call(*given, **named):
                if step % 2 and name in ("write", "pwrite") and next(steps) == step:
                    real(given[0], bytes(given[1])[: len(given[1]) // 2], *given[2:])
                    os.kill(os.getpid(), signal.SIGKILL)
                count()
                return real(*given, **named)

            setattr(os, name, call)

        class Connection(sqlite3.Connection):
            def execute(self, *given):
                count()
                return super().execute(*given)

        for name in ("write", "pwrite", "fsync", "fdatasync", "replace", "open", "mkdir", "chmod"):
            deadly(name)
        made = functools.partial(sqlite3.connect, factory=Connection)
        store.sqlite3.connect = made  # type: ignore[attr-defined]

    return arrange


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("in.csv", ("--last-n", "30", *COSTS)), ("in.ndjson", JOINED)],
)
def test_killed_at_any_step_nothing_that_was_told_is_lost(name, arguments) -> None:
    """Every touch of the disk in turn is the last; the restart equals a run without a kill."""
    Path("in.csv").write_text("".join(phishing_csv().splitlines(keepends=True)[:400]))
    Path("in.ndjson").write_text(events())
    watched(name, "--state", "whole.limen", *arguments, "-q")
    whole, deaths, step = Path("whole.limen/model.limen").read_bytes(), 0, 0
    while True:
        shutil.rmtree("kept.limen", ignore_errors=True)
        given = {"chunk": 5000, "before": dies_at(step)}
        status = forked(name, "--state", "kept.limen", *arguments, "-q", **given)
        told = [json.loads(line) for line in Path("out").read_text().splitlines(keepends=True)]
        if not os.WIFSIGNALED(status):
            break
        deaths += 1
        step += 1 if step < 60 else 11
        code, lines, err = watched(name, "--state", "kept.limen", "--from-start", *arguments, "-q")

        assert (0, "") == (code, err)
        assert max((line["rows"] for line in told), default=0) <= lines[0]["rows"]
        assert whole == Path(MODEL).read_bytes()
    assert deaths > 20


def test_kill_9_in_the_middle_of_a_pipe_loses_nothing() -> None:
    rows = phishing_csv().splitlines(keepends=True)
    Path("all.csv").write_text("".join(rows))
    watched("all.csv", "--state", "whole.limen", *COSTS)
    command = [sys.executable, "-m", "limen", "watch", "--state", "kept.limen", *COSTS, "-q"]
    known, sent, chance = 0, 0, random.Random(9)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    while known < 1250:
        with subprocess.Popen(command, **pipes, text=True, bufsize=1) as process:
            if known or sent:
                known = json.loads(process.stdout.readline())["rows"]
            process.stdin.write(rows[0])
            for sent in range(known, min(1250, known + chance.randrange(400, 700))):
                process.stdin.write(rows[sent + 1])
            if sent == 1249:
                process.communicate()
                break
            process.stdin.flush()
            lines = [process.stdout.readline() for _ in range(2)]
            process.kill()

            assert known < json.loads(lines[-1])["rows"]

    assert Path("whole.limen/model.limen").read_bytes() == Path(MODEL).read_bytes()


@pytest.mark.parametrize(("asked", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_quietly_with_everything_saved(asked, code) -> None:
    command = [sys.executable, "-m", "limen", "watch", "--state", "kept.limen", "-q"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes, text=True) as process:
        process.stdin.write("score,label\n0.1,0\n0.9,1\n")
        process.stdin.flush()
        told = json.loads(process.stdout.readline())
        process.send_signal(asked)
        process.wait(timeout=60)  # with its input still open, so that only the signal ends it
        _, err = process.communicate(timeout=60)

    assert (code, "", 2) == (process.returncode, err, told["rows"])
    with store.Reader(Path("kept.limen")) as log:
        assert log.end()[0] == snapshots.stored(Path("kept.limen"))[0][0]
    assert 2 == len(limen.load(MODEL))


def watched_by_a_second(state: str) -> tuple[int, str]:
    """What a watch of no rows says while another, with one row, has the state kept.limen."""
    command = [sys.executable, "-m", "limen", "watch", "--state", "kept.limen"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"score,label\n0.5,1\n")
        process.stdin.flush()
        process.stdout.readline()
        Path("in.csv").write_text("score,label\n")
        code, _, told = watched("in.csv", "--state", state)
        process.stdin.close()
    return code, told


def test_two_processes_cannot_share_a_state() -> None:
    code, told = watched_by_a_second("kept.limen")

    assert (1, True) == (code, "in use by another process of limen" in told)


def test_of_two_that_start_together_on_a_new_state_one_runs() -> None:
    """Both have all the time they need, and their input stays open: one says a line."""
    command = [sys.executable, "-m", "limen", "watch", "--state", "kept.limen", "-q"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    for _ in range(2):
        shutil.rmtree("kept.limen", ignore_errors=True)
        both = [subprocess.Popen(command, **pipes, text=True) for _ in range(2)]
        for process in both:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write("score,label\n0.5,1\n")
                process.stdin.flush()
        said = [process.stdout.readline() for process in both]  # nothing, where it has ended
        for process in both:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        told = [process.stderr.read() for process in both]
        for process in both:
            process.stdout.close()
            process.stderr.close()

        assert [0, 1] == sorted(process.wait(60) for process in both)
        assert [""] == [line for line in said if "rows" not in line]
        assert [""] == [each for each in told if "in use by another process of limen" not in each]
        assert 1 == len(limen.load(MODEL))
    assert ["kept.limen"] == os.listdir()


def test_a_state_is_locked_before_it_is_there() -> None:
    """The lock is taken; no process may begin a state, and nothing else is touched."""
    Path("kept.limen").mkdir()
    lock = os.open("kept.limen/LOCK", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    Path("in.csv").write_text("score,label\n0.5,1\n")
    code, lines, told = watched("in.csv", "--state", "kept.limen")
    os.close(lock)

    assert (1, []) == (code, lines)
    assert "limen: kept.limen is in use by another process of limen. Wait until it ends" in told
    assert ["LOCK"] == os.listdir("kept.limen")
    assert 0 == watched("in.csv", "--state", "kept.limen")[0]  # a lock that nobody holds is free


def test_a_link_and_its_file_are_one_state() -> None:
    Path("data").mkdir()
    Path("kept.limen").symlink_to("data/kept.limen")
    code, told = watched_by_a_second("data/kept.limen")

    assert (1, True) == (code, "in use" in told)
    assert Path("kept.limen").is_symlink()
    assert ["kept.limen"] == os.listdir("data")
    assert 0 == watched("in.csv", "--state", "kept.limen")[0]


def test_a_state_is_private_and_keeps_its_link() -> None:
    Path("data").mkdir()
    Path("kept.limen").symlink_to("data/kept.limen")
    Path("in.csv").write_text("score,label\n0.5,1\n")
    for _ in range(2):
        assert 0 == watched("in.csv", "--state", "kept.limen")[0]
        assert 0o700 == Path("data/kept.limen").stat().st_mode & 0o777
        assert Path("kept.limen").is_symlink()


def test_a_state_where_nothing_can_be_written_is_told() -> None:
    Path("in.csv").write_text("score,label\n0.5,1\n")
    code, lines, told = watched("in.csv", "--state", "in.csv/kept")
    file = watched("in.csv", "--state", "in.csv")

    assert (1, []) == (code, lines)
    assert "limen: in.csv/kept cannot be used: Not a directory." in told
    assert (2, "limen: in.csv is a file. Name a folder for the state.\n") == (file[0], file[2])


def killed_at_the_end() -> None:
    """Kill the process when it writes a snapshot, at its end."""
    watch_state.Book.settle = lambda *given: os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (("--score-column", "p"), ("--score-column", "score"), 0),
        (("--skip-malformed",), (), 0),
        (("--time-column", "t", "--each-period", "1"), (), 0),
        (("--weight-column", "w"), (), 0),
        ((), ("--time-column", "t", "--each-period", "1d"), 2),
    ],
)
def test_what_was_told_is_kept_whatever_the_options_of_the_restart(before, after, code) -> None:
    """Rows in the log were read as they were when they came."""
    rows = "0.1,0.2,0,1,1\n" + ("oops,oops,0,1,1\n" if "--skip-malformed" in before else "")
    Path("in.csv").write_text(f"score,p,label,t,w\n{rows}0.5,0.7,1,3,2\n")
    Path("rest.csv").write_text("score,label,t\n0.9,1,9\n")
    forked("in.csv", "--state", "kept.limen", *before, before=killed_at_the_end)
    watched("in.csv", "--state", "whole.limen", *before)
    found, _, _ = watched("rest.csv", "--state", "kept.limen", *after)
    if code:
        watched("rest.csv", "--state", "kept.limen")
    watched("rest.csv", "--state", "whole.limen")

    assert code == found
    assert 3 == len(limen.load(MODEL))
    assert Path("whole.limen/model.limen").read_bytes() == Path(MODEL).read_bytes()


# ---- damage ---------------------------------------------------------------------------------


def test_a_log_that_was_changed_ends_watch_and_stays_as_it_is() -> None:
    """Every fifth byte of the events is changed in turn."""
    Path("in.csv").write_text("score,label\n0.1,0\n0.9,1\n0.4,0\n0.6,1\n0.2,0\n")
    forked("in.csv", "--state", "kept.limen", chunk=14, before=killed_at_the_end)
    with store.Reader(Path("kept.limen")) as log:
        events = next(log.groups(1)).events
    os.remove("kept.limen/log.db-wal") if Path("kept.limen/log.db-wal").stat().st_size == 0 else ()
    db = sqlite3.connect("kept.limen/log.db")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    content = Path("kept.limen/log.db").read_bytes()
    begin = content.index(events)
    for at in range(begin, begin + len(events), 5):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        Path("kept.limen/log.db").write_bytes(damaged)
        code, lines, told = watched("in.csv", "--state", "kept.limen", "--from-start")

        assert (3, []) == (code, lines)
        assert "limen: kept.limen: " in told
        assert bytes(damaged) == Path("kept.limen/log.db").read_bytes()
    Path("kept.limen/log.db").write_bytes(content)
    assert 5 == watched("in.csv", "--state", "kept.limen", "--from-start")[1][-1]["samples"]


def test_a_log_that_lost_its_end_is_refused() -> None:
    Path("in.csv").write_text("score,label\n0.1,0\n0.9,1\n")
    watched("in.csv", "--state", "kept.limen")
    before = Path("kept.limen/log.db").read_bytes()
    watched("in.csv", "--state", "kept.limen")
    Path("kept.limen/log.db").write_bytes(before)
    code, lines, told = watched("in.csv", "--state", "kept.limen")

    assert (3, []) == (code, lines)
    assert "acknowledged events are missing" in told


def test_other_costs_than_those_of_the_state_are_refused() -> None:
    Path("in.csv").write_text(phishing_csv())
    watched("in.csv", "--state", "kept.limen", *COSTS)
    code, lines, told = watched("in.csv", "--state", "kept.limen", "--false-negative", "6")

    assert (2, []) == (code, lines)
    assert "kept.limen was made with false_negative 5, not 6" in told


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"limen")])
def test_without_a_snapshot_the_log_is_folded_from_its_beginning(damage) -> None:
    rows = phishing_csv().splitlines(keepends=True)
    Path("in.csv").write_text("".join(rows))
    watched("in.csv", "--state", "kept.limen", *COSTS)
    _, kept, _ = watched("in.csv", "--state", "kept.limen", *COSTS, "--from-start")
    for path in Path("kept.limen/snapshots").iterdir():
        damage(path)
    code, lines, _ = watched("in.csv", "--state", "kept.limen", *COSTS, "--from-start")

    assert (0, kept) == (code, lines)


# ---- malformed rows -------------------------------------------------------------------------

BAD = {
    "text in a score": ("score,label\n0.1,0\nhigh,1\n0.9,1\n", "row 2, column score: 'high'"),
    "nan": ("score,label\n0.1,0\nnan,1\n0.9,1\n", "row 2, column score: the score is nan"),
    "no label": ("score,label\n0.1,0\n0.5,\n0.9,1\n", "row 2, column label: the label is missing"),
    "other label": ("score,label\n0.1,0\n0.5,2\n0.9,1\n", "row 2, column label: the label is '2'"),
    "short": ("score,label\n0.1,0\n0.5\n0.9,1\n", "row 2: 1 fields, but the header has 2"),
    "quotes": ('score,label\n0.1,0\n"0.5,1\n0.9,1\n', "row 2: unexpected end of data"),
    "not JSON": ('{"score":0.1,"label":0}\n{"score"\n{"score":0.9,"label":1}\n', "row 2: '{"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_ends_it_and_what_came_before_is_kept(case: str) -> None:
    content, problem = BAD[case]
    Path("in.csv").write_text(content)
    code, lines, told = watched("in.csv", "--state", "kept.limen")

    assert (3, 1) == (code, lines[-1]["rows"])
    assert f"limen: standard input, {problem}" in told
    assert 1 == len(limen.load(MODEL))
    Path("rest.csv").write_text("score,label\n0.9,1\n")
    assert (0, 2) == (watched("rest.csv", "--state", "kept.limen")[1][-1]["rows"] - 2, 2)


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_may_be_skipped(case: str) -> None:
    content, problem = BAD[case]
    Path("in.csv").write_text(content)
    code, lines, told = watched("in.csv", "--skip-malformed")

    assert (0, 3, 2) == (code, lines[-1]["rows"], lines[-1]["samples"])
    assert problem in told
    assert "Skipped." in told


@pytest.mark.parametrize(
    ("content", "arguments", "code", "problem"),
    [
        ("p,label\n", (), 3, "no column 'score'"),
        ("score,label\n", ("--last-period", "3"), 2, "memory.length 3 needs --time-column"),
        ("score,label\n", ("--maturity", "3"), 2, "need by_id"),
        ("score,label\n", ("--every", "0"), 2, "at least 1"),
        ("score,label,t\n1,1,soon\n", ("--time-column", "t"), 3, "row 1, column t: 'soon'"),
        ("score,label,id\n1,1,\n", ("--id-column", "id"), 3, "row 1, column id: the id is missing"),
        ("score,label,id\n,,a\n", ("--id-column", "id"), 3, "score and label are both missing"),
        ("score,label,id\n1,,a\n2,,a\n", ("--id-column", "id"), 3, "row 2: id 'a' has score 1.0"),
        ("score,label\n\udcff\n", (), 3, "row 1: byte 1 is 0xff, which is not UTF-8"),
    ],
)
def test_what_is_wrong_is_told(content, arguments, code, problem) -> None:
    Path("in.csv").write_bytes(content.encode(errors="surrogateescape"))
    found, lines, told = watched("in.csv", *arguments)

    assert code == found
    assert problem in told
    assert [] == [line for line in lines if line["rows"] > 1]


DATED = "t,score,label\n2026-01-01T00:00,0.5,1\n2026-01-01T02:00,0.1,0\n"
TIMED = ("--time-column", "t")


@pytest.mark.parametrize("skip", [(), ("--skip-malformed",)])
def test_a_row_that_is_refused_late_does_not_count(skip) -> None:
    """The period of the telling has the wrong kind, which once was seen after the update."""
    Path("in.csv").write_text(DATED)
    state = ("--state", "kept.limen", *TIMED)
    code, lines, told = watched("in.csv", *state, "--each-period", "10", *skip)

    assert 2 == code
    assert "row 1, column t: the time '2026-01-01T00:00' is a date. Write --each-period" in told
    assert [] == lines
    assert 0 == len(limen.load(MODEL))
    _, lines, _ = watched("in.csv", *state, "--each-period", "1h")
    assert [(0, 0), (2, 2)] == [(line["rows"], line["samples"]) for line in lines]


@pytest.mark.parametrize("time", ["nan", "inf", "1" + "0" * 400, "soon"])
def test_a_row_with_a_time_that_is_none_is_skipped_and_does_not_count(time: str) -> None:
    Path("in.csv").write_text(f"t,score,label\n1,.5,1\n{time},.6,1\n12,.1,0\n")
    given = (*TIMED, "--each-period", "10", "--skip-malformed")
    code, lines, told = watched("in.csv", *given)

    assert 0 == code
    assert "row 2, column t: " in told
    assert [(3, 2)] == [(line["rows"], line["samples"]) for line in lines]


def test_a_score_whose_label_cannot_count_is_not_kept() -> None:
    rows = [("a", 0.5, 1, 2**61), ("b", 0.5, 1, 2**61), ("c", 0.5, 1, 1)]
    named = (dict(zip(("id", "score", "label", "w"), row, strict=True)) for row in rows)
    Path("in.ndjson").write_text("".join(json.dumps(row) + "\n" for row in named))
    given = ("--id-column", "id", "--weight-column", "w", "--skip-malformed")
    _, lines, told = watched("in.ndjson", *given, "--state", "kept.limen")

    assert "row 2: " in told
    assert (3, 2) == (lines[-1]["rows"], lines[-1]["samples"])
    assert "b" not in limen.load(MODEL)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--last-period", "30"), "Write memory.length with a unit, such as 30d, 30h or 30s"),
        (("--half-life", "1.5"), "Write memory.length with a unit, such as 1.5d, 1.5h or 1.5s"),
        (("--id-column", "score", "--maturity", "3"), "Write maturity with a unit, such as 3d"),
        (("--last-period", "3d", "--each-period", "3"), "memory.length 3d --each-period 3: write"),
    ],
)
def test_a_period_without_a_unit_is_told_where_times_are_dates(arguments, told) -> None:
    Path("in.csv").write_text(DATED)
    code, lines, err = watched("in.csv", *TIMED, *arguments)

    assert (2, []) == (code, lines)
    assert told in err


def test_a_period_with_a_unit_is_told_where_times_are_numbers() -> None:
    Path("in.csv").write_text("t,score,label\n7,0.5,1\n")
    code, lines, told = watched("in.csv", *TIMED, "--last-period", "90d")

    assert (2, []) == (code, lines)
    assert "'7' is a number. Write memory.length as a number too, not 90d." in told


@pytest.mark.parametrize("option", ["--half-life", "--last-period", "--each-period"])
def test_a_period_of_the_clock_needs_times(option: str) -> None:
    Path("in.csv").write_text("score,label\n")
    code, lines, told = watched("in.csv", option, "3d")

    assert (2, []) == (code, lines)
    name = option if option == "--each-period" else "memory.length"
    assert f"limen: {name} 3d needs --time-column." in told


def test_a_window_that_no_label_can_enter_is_refused_with_the_names_of_the_options() -> None:
    labels_after(30)
    given = ("--id-column", "id", *TIMED, "--last-period", "20", "--maturity", "30")
    code, lines, told = watched("in.ndjson", *given)

    assert (2, []) == (code, lines)
    assert "maturity=30 must be less than period=20 of the window" in told


@pytest.mark.parametrize("unit", ["1e-200", "3e30"])
def test_a_unit_that_cannot_be_is_a_usage_failure(unit: str) -> None:
    Path("in.csv").write_text("score,label\n")
    code, lines, told = watched("in.csv", "--unit", unit)

    assert (2, []) == (code, lines)
    assert ".json: unit must be a fraction of whole numbers below 2**62" in told


def test_other_periods_than_those_of_the_state_are_told_as_they_are_typed() -> None:
    Path("in.csv").write_text(DATED)
    watched("in.csv", *TIMED, "--last-period", "90d", "--state", "kept.limen")
    _, _, told = watched("in.csv", *TIMED, "--last-period", "36h", "--state", "kept.limen")

    assert 'kept.limen was made with memory.length "90d", not "36h"' in told


def test_a_stream_is_not_offered_parquet(monkeypatch) -> None:
    Path("in.csv").write_text("score,label\n")
    code, _, told = watched("in.csv", "--format", "parquet")
    monkeypatch.setenv("LIMEN_FORMAT", "parquet")
    by_variable = watched("in.csv")

    assert (2, True) == (code, "choose from 'csv', 'ndjson'" in told)
    assert (2, True) == (by_variable[0], "choose from 'csv', 'ndjson'" in by_variable[2])


def test_rows_before_a_byte_that_is_no_text_count() -> None:
    content = b"score,label,note\n0.1,0,a\n0.9,1,\xff\n0.8,1,b\n"
    Path("in.csv").write_bytes(content)
    code, lines, told = watched("in.csv", "--state", "kept.limen")
    skipping = watched("in.csv", "--skip-malformed")

    assert (3, 1, 1) == (code, lines[-1]["rows"], len(limen.load(MODEL)))
    assert "row 2: byte 7 is 0xff, which is not UTF-8" in told
    assert (0, 3, 2) == (skipping[0], skipping[1][-1]["rows"], skipping[1][-1]["samples"])


# ---- too late -------------------------------------------------------------------------------


def labels_after(delay: int) -> None:
    rows = [{"id": place, "t": place, "score": place / 10} for place in range(10)]
    rows += [{"id": place, "t": place + delay, "label": place // 5} for place in range(10)]
    Path("in.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("arguments", "counted", "told"),
    [
        (("--last-period", "20"), ("expired", "refused"), "10 labels came later than the window"),
        (("--half-life", "0.01"), ("expired", "refused"), "10 labels came later than the window"),
        (("--time-to-live", "20"), ("expired",), "10 scores got no label, or labels no score"),
    ],
)
def test_labels_that_come_too_late_are_counted_and_warned_of(arguments, counted, told) -> None:
    labels_after(30)
    code, lines, err = watched("in.ndjson", "--id-column", "id", *TIMED, *arguments)

    assert (0, 0) == (code, lines[-1]["samples"])
    assert 10 == lines[-1][counted[-1]]
    assert [] == [line for line in lines for name in counted if name not in line]
    assert f"limen: no sample counts: {told}" in err
    assert f"({'time_to_live' if arguments[0] == '--time-to-live' else 'memory.length'})" in err
    assert 1 == err.count("\n")


def test_labels_in_time_are_not_warned_of() -> None:
    labels_after(15)
    _, lines, err = watched("in.ndjson", "--id-column", "id", *TIMED, "--last-period", "30")

    assert (10, 0, 0) == tuple(lines[-1][name] for name in ("samples", "expired", "refused"))
    assert "" == err


def test_a_window_of_time_tells_what_it_refused() -> None:
    Path("in.csv").write_text("t,score,label\n100,.5,1\n1,.6,1\n101,.1,0\n")
    _, lines, _ = watched("in.csv", *TIMED, "--last-period", "20")
    _, plain, _ = watched("in.csv", *TIMED, "--last-n", "20")

    assert (2, 1) == (lines[-1]["samples"], lines[-1]["refused"])
    assert {"refused", "expired"}.isdisjoint(plain[-1])


# ---- saved models ---------------------------------------------------------------------------


def test_saved_models_are_shown_and_merged(capsys) -> None:
    rows = phishing_csv().splitlines(keepends=True)
    for name, part in (("a", rows[1:700]), ("b", rows[700:])):
        Path(f"{name}.csv").write_text("".join([rows[0], *part]))
        assert 0 == main(["fit", f"{name}.csv", "--save", f"{name}.limen", "-q", *COSTS])
    assert 0 == main(["merge", "a.limen", "b.limen", "-o", "ab.limen", "-q"])
    capsys.readouterr()
    assert 0 == main(["show", "ab.limen"])
    told = json.loads(capsys.readouterr().out)
    best = limen.optimal_threshold(SCORES, LABELS, false_negative=5)

    assert {
        "file": "ab.limen",
        "kind": "OnlineThreshold",
        "false_positive": 1,
        "false_negative": 5,
        "samples": 1250,
        "threshold": best.threshold,
        "lower": best.lower,
        "upper": best.upper,
        "loss": best.loss,
    } == told


def test_saved_evidence_is_shown_with_its_counts(capsys) -> None:
    evidence = limen.Evidence(0.5, 0.4, false_negative=5, age=timedelta(days=30))
    evidence.update_many([0.45, 0.42, 0.47], [1, 0, None])
    evidence.save("e.limen")
    code = main(["show", "e.limen"])
    out, err = capsys.readouterr()
    found = json.loads(out)

    assert (0, "30d", 1, 1) == (code, found["age"], found["wins"], found["losses"])
    assert (1, False) == (found["missing"], found["decided"])
    assert "any aim" not in err
    assert 2 == main(["show", "e.limen", "--false-negative", "7"])


def test_the_period_of_a_saved_window_is_shown_as_it_is_typed(capsys) -> None:
    limen.LastPeriod(limen.OnlineThreshold(), timedelta(days=90)).save("kept.limen")
    main(["show", "kept.limen", "-q"])

    assert "90d" == json.loads(capsys.readouterr().out)["period"]


def test_a_metric_saves_a_model_of_every_cost() -> None:
    Path("in.csv").write_text(phishing_csv())
    main(["fit", "in.csv", "--metric", "f1", "--save", "all.limen", "-q"])

    assert limen.optimal_threshold(SCORES, LABELS).threshold == limen.load("all.limen").threshold()


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["show", "absent.limen"], 4, "absent.limen does not exist"),
        (["show", "in.csv"], 3, "in.csv: these bytes were not written by limen"),
        (["merge", "window.limen", "-o", "out.limen"], 3, "holds a LastN, which cannot be merged"),
        (["merge", "one.limen", "five.limen", "-o", "out.limen"], 3, "false_negative is 1 here"),
        (["merge", "one.limen", "-o", "five.limen"], 2, "already exists"),
    ],
)
def test_models_that_cannot_be_used_are_told(capsys, arguments, code, problem) -> None:
    Path("in.csv").write_text(phishing_csv())
    limen.OnlineThreshold().save("one.limen")
    limen.OnlineThreshold(false_negative=5).save("five.limen")
    limen.LastN(limen.OnlineThreshold(), 3).save("window.limen")

    assert code == main(arguments)
    assert problem in capsys.readouterr().err
    assert not Path("out.limen").exists()
