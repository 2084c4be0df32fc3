# SPDX-License-Identifier: Apache-2.0
"""The command line: what goes to standard output, what is told, and how it ends."""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import io
import json
import lzma
import math
import os
import re
import signal
import subprocess
import sys
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import EFFORT, PATIENCE

import limen
from limen.cli import duckdb_reader, inputs, line_reader, out_of_core, rows
from limen.cli import fit as fitting
from limen.cli import watch as following
from limen.cli.options import parser
from limen.cli.parsing import option_name
from limen.cli.watch_options import _EXTRA
from limen.demo import load_phishing, phishing_csv
from limen.names import DEMANDS, METRIC_NAMES, OUTCOMES

SCORES, LABELS = load_phishing()
duckdb = pytest.importorskip("duckdb")
CONNECTION = duckdb.connect()

Run = tuple[int, str, str]


@pytest.fixture
def watch(run):
    """Run `limen watch` on some bytes, as `run` does."""

    def call(content: bytes, *arguments: str) -> Run:
        Path("stream").write_bytes(content)
        before, file = os.dup(0), os.open("stream", os.O_RDONLY)
        os.dup2(file, 0)
        try:
            return run("watch", *arguments)
        finally:
            os.dup2(before, 0)
            os.close(before)
            os.close(file)

    return call


@pytest.fixture
def piped():
    """Name pipes that hold some bytes and then end."""
    files = []

    def call(content: bytes) -> str:
        reading, writing = os.pipe()
        files.append(reading)
        os.write(writing, content)
        os.close(writing)
        return f"/dev/fd/{reading}"

    yield call
    for file in files:
        os.close(file)


def limen_process(*arguments: str, **given: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "limen", *arguments]
    return subprocess.run(command, capture_output=True, timeout=PATIENCE, **given)


def write_all_formats() -> dict[str, list[Any]]:
    """The demonstration stream in every format, with a weight and a group for each row."""
    rows = [
        (score, label, 1 + place % 3, "abc"[place % 3])
        for place, (score, label) in enumerate(zip(SCORES, LABELS, strict=True))
    ]
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([("score", "label", "weight", "team"), *rows])
    names = ("score", "label", "weight", "team")
    lines = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    Path("plain.csv").write_text(table.getvalue())
    Path("plain.tsv").write_text(table.getvalue().replace(",", "\t"))
    Path("semicolon.csv").write_text(table.getvalue().replace(",", ";"))
    Path("plain.ndjson").write_text(lines)
    Path("packed.csv.gz").write_bytes(gzip.compress(table.getvalue().encode()))
    Path("packed.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    with duckdb.connect() as connection:
        connection.execute("COPY (FROM 'plain.csv') TO 'plain.parquet' (FORMAT parquet)")
    return {"weights": [row[2] for row in rows], "teams": [row[3] for row in rows]}


FILES = (
    *("plain.csv", "plain.tsv", "semicolon.csv", "plain.ndjson"),
    *("packed.csv.gz", "packed.jsonl.gz", "plain.parquet"),
)


OF_GROUPS = "threshold,samples,positives,own,recommended,low,high,basis,few"
GOOD = "score,label\n0.1,0\n0.9,1\n"
MALFORMED = {
    "missing column": (
        b"p,label\n0.1,0\n",
        3,
        ["bad.csv, line 1", "'score'", "'p'", "--score-col"],
    ),
    "column twice": (b"score,score,label\n1,2,0\n", 3, ["2 columns", "'score'"]),
    "text in a score": (b"score,label\n0.1,0\nhigh,1\n", 3, ["line 3, column score", "'high'"]),
    "nan": (b"score,label\n0.1,0\nNaN,1\n", 3, ["line 3, column score", "nan"]),
    "missing score": (b"score,label\n0.1,0\n,1\n", 3, ["line 3, column score", "missing"]),
    "missing label": (b"score,label\n0.1,0\n0.2,\n", 3, ["line 3, column label", "missing"]),
    "other label": (
        b"score,label\n0.1,0\n1,spam\n2,spam\n",
        3,
        ["line 3", "'0' (1 row), 'spam' (2 rows)", "--positive VALUE"],
    ),
    "empty file": (b"", 3, ["bad.csv is empty"]),
    "header only": (b"score,label\n", 3, ["bad.csv: no rows"]),
    "one class only": (b"score,label\n0.1,1\n0.2,1\n", 3, ["column label", "counts as 1", "both"]),
    "short row": (b"score,label\n0.1,0\n0.2\n", 3, ["line 3", "1 fields", "2"]),
    "long row": (b"score,label\n0.1,0,7\n", 3, ["line 2", "3 fields"]),
    "open quote": (b'score,label\n0.1,0\n"0.2,1\n', 3, ["line 3", "quotes"]),
    "invalid UTF-8": (b"score,label\n0.1,0\n0.2,\xff\n", 3, ["line 3", "byte 5 is 0xff", "UTF-8"]),
    "wide characters": (GOOD.encode("utf-16"), 3, ["line 1", "UTF-8"]),
}


# ---- fit ------------------------------------------------------------------------------------


def test_fit_writes_the_bare_threshold_and_talks_on_standard_error(run) -> None:
    Path("scores.csv").write_text(phishing_csv())
    code, out, err = run("fit", "scores.csv", "--false-negative", "5")
    best = limen.optimal_threshold(SCORES, LABELS, false_negative=5)

    assert (0, f"{best.threshold!r}\n") == (code, out)
    assert "cost 280" in err
    assert "1,250 rows" in err


def test_quiet_keeps_standard_error_empty(run) -> None:
    Path("scores.csv").write_text(phishing_csv())

    assert "" == run("fit", "scores.csv", "-q")[2]


def test_json_tells_what_the_library_tells(run) -> None:
    Path("scores.csv").write_text(phishing_csv())
    told = json.loads(run("fit", "scores.csv", "--false-negative", "5", "--json")[1])
    best = limen.optimal_threshold(SCORES, LABELS, false_negative=5)
    calibrator = limen.OnlineCalibrator()
    calibrator.update_many(SCORES, LABELS)
    right = calibrator.confusion(best.threshold)
    new_rows = limen.recommend(SCORES, LABELS, false_negative=5)

    assert {
        "false_positive": 1.0,
        "false_negative": 5.0,
        "threshold": best.threshold,
        "lower": best.lower,
        "upper": best.upper,
        "loss": best.loss,
        "confusion": right._asdict(),
        "precision": right.precision,
        "recall": right.recall,
        "false_positive_rate": right.false_positive_rate,
        "positive_rate": right.positive_rate,
        "samples": 1250,
        "positives": 548,
        "negatives": 702,
        "recommended": new_rows.threshold,
        "interval": list(new_rows.interval),
        "confidence": 0.95,
        "regret": new_rows.regret,
        "current": None,
        "keep": None,
        "reason": new_rows.reason,
    } == told


@pytest.mark.parametrize("by", ["lines", "blocks"])
@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_answer_by_either_reader(run, monkeypatch, name, by) -> None:
    extra = write_all_formats()
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    told = json.loads(
        run(
            *("fit", name, "--weight-column", "weight", "--group-column", "team", "--json"),
            *("--false-negative", "1/3", "--false-positive", "0.1"),
        )[1]
    )
    costs = {"false_positive": 0.1, "false_negative": Fraction(1, 3)}
    best = limen.optimal_threshold(SCORES, LABELS, weights=extra["weights"], **costs)
    groups = {}
    for team in "abc":
        rows = [place for place, each in enumerate(extra["teams"]) if each == team]
        columns = [np.asarray(each)[rows] for each in (SCORES, LABELS, extra["weights"])]
        groups[team] = limen.optimal_threshold(
            columns[0], columns[1], weights=columns[2], **costs
        ).threshold

    assert (best.threshold, best.loss) == (told["threshold"], told["loss"])
    assert groups == {part["group"]: part["threshold"] for part in told["groups"]}


@pytest.mark.parametrize("by", ["lines", "blocks"])
@pytest.mark.parametrize("positive", ["2", "two", "2.0"])
def test_any_label_may_be_the_positive_one(run, monkeypatch, by, positive) -> None:
    two = "two" if positive == "two" else "2"
    Path("classes.csv").write_text(f"score,label\n0.1,1\n0.2,{two}\n0.3,three\n0.4,{two}\n")
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    told = json.loads(run("fit", "classes.csv", "--positive", positive, "--json")[1])

    assert (2, 0.35) == (told["positives"], told["threshold"])


SAME = {
    "LF": "id,score,label\na,.1,no\nb,.6,yes\nc,.7,no\nd,.9,yes\n",
    "CRLF": "id,score,label\r\na,.1,no\r\nb,.6,yes\r\nc,.7,no\r\nd,.9,yes\r\n",
    "no last end": "id,score,label\na,.1,no\nb,.6,yes\nc,.7,no\nd,.9,yes",
    "CR at last": "id,score,label\r\na,.1,no\r\nb,.6,yes\r\nc,.7,no\r\nd,.9,yes\r",
    "byte order mark": "\ufeffscore,label\n.1,no\n.6,yes\n.7,no\n.9,yes\n",
    "mark and CRLF": "\ufeffscore,label\r\n.1,no\r\n.6,yes\r\n.7,no\r\n.9,yes\r\n",
    "quotes": '"score","label"\n".1","no"\n.6,"yes"\n.7,no\n.9,yes\n',
    "quotes, CRLF": '"score","label"\r\n".1","no"\r\n.6,"yes"\r\n.7,no\r\n.9,yes\r\n',
    "semicolons": "score;label\n.1;no\n.6;yes\n.7;no\n.9;yes\n",
    "tabs": "note\tscore\tlabel\r\n\t.1\tno\r\n\t.6\tyes\r\n\t.7\tno\r\n\t.9\tyes\r\n",
    "blank lines": "\n\nscore,label\n\n.1,no\n  \n.6,yes\n.7,no\n\r\n.9,yes\n\n",
    "mixed ends": "score,label\r\n.1,no\n.6,yes\r\n.7,no\n.9,yes\r\n",
    "other letters": "π,score,label\né,.1,no\né,.6,yes\né,.7,no\né,.9,yes\n",
    "NDJSON": "".join(
        json.dumps({"score": score, "label": label}) + "\n"
        for score, label in ((0.1, "no"), (0.6, "yes"), (0.7, "no"), (0.9, "yes"))
    ),
    "NDJSON, CRLF": '{"score":.1,"label":"no"}\r\n'.replace(":.", ":0.")
    + '\r\n{"score":0.6,"label":"yes"}\r\n{"score":"0.7","label":"no"}\r\n'
    + '{"label":"yes","score":0.9}\r\n',
    "NDJSON, mark": '\ufeff{"score":0.1,"label":"no"}\n{"score":0.6,"label":"yes"}\n'
    '{"score":0.7,"label":"no"}\n{"score":0.9,"label":"yes"}\n',
}


@pytest.mark.parametrize("by", ["lines", "blocks", "pipe", "watch", "row by row", "bit by bit"])
@pytest.mark.parametrize("case", SAME)
def test_every_text_means_the_same_to_every_reader(
    run, watch, piped, monkeypatch, case, by
) -> None:
    content = SAME[case].encode()
    name = "same.ndjson" if "NDJSON" in case else "same.csv"
    Path(name).write_bytes(content)
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    if by == "bit by bit":
        monkeypatch.setattr(following, "_CHUNK", 3)
    if by in ("lines", "blocks", "pipe"):
        if by == "pipe":
            name = piped(content)
        code, out, err = run("fit", name, "--positive", "yes", "--json", "-q")
        told = json.loads(out or "{}")
    else:
        slow = ["--skip-malformed"] if by == "row by row" else []
        code, out, err = watch(content, "--positive", "yes", *slow)
        told = json.loads((out or "{}").splitlines()[-1])

    assert (0, "") == (code, err)
    assert (4, 0.8, 1.0, 0.7, 0.9) == tuple(
        told[name] for name in ("samples", "threshold", "loss", "lower", "upper")
    )


# ---- pipes ----------------------------------------------------------------------------------


MANY = "".join(f'{{"score": {place / 7!r}, "label": {place % 3 % 2}}}\n' for place in range(5000))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["csv", "ndjson"])
@pytest.mark.parametrize("way", ["<(cat many)", "/dev/stdin", "named"])
def test_a_pipe_gives_every_row(tmp_path: Path, way: str, kind: str, packed: bool) -> None:
    rows = map(json.loads, MANY.splitlines())
    table = "score,label\n" + "".join(f"{row['score']!r},{row['label']}\n" for row in rows)
    content = (MANY if kind == "ndjson" else table).encode()
    (tmp_path / "many").write_bytes(gzip.compress(content) if packed else content)
    os.mkfifo(tmp_path / "named")
    command = f"{sys.executable} -m limen fit {way} -q --json"
    command = {"/dev/stdin": f"cat many | {command}", "named": f"cat many > named & {command}"}.get(
        way, command
    )
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, timeout=PATIENCE, cwd=tmp_path
    )

    assert (0, b"") == (done.returncode, done.stderr)
    assert 5000 == json.loads(done.stdout)["samples"]


def test_a_pipe_among_large_files_is_read_once(run, piped, monkeypatch) -> None:
    Path("large.csv").write_text(phishing_csv())
    name = piped(phishing_csv().encode())
    monkeypatch.setattr(inputs, "_most_rows", lambda: 100)
    told = json.loads(run("fit", "large.csv", name, "--format", "csv", "--json")[1])

    assert 2500 == told["samples"]


@pytest.mark.parametrize("way", ["-", "pipe"])
def test_parquet_out_of_a_pipe_is_told_to_need_a_file(run, piped, way) -> None:
    name = piped(b"PAR1 and more PAR1")
    code, out, err = run("fit", "-" if way == "-" else name, "--format", "parquet")

    assert (2, "") == (code, out)
    assert "only once, and Parquet is read from its end. Save it to a file, and name that." in err


def test_parquet_that_is_called_text_is_told(run) -> None:
    write_all_formats()
    code, out, err = run("fit", "plain.parquet", "--format", "csv")

    assert (3, "") == (code, out)
    assert "plain.parquet is Parquet, not text. Leave out --format." in err


def test_several_files_and_patterns_count_as_one(run) -> None:
    rows = phishing_csv().splitlines(keepends=True)
    for day, start in enumerate(range(1, 1251, 250)):
        Path(f"day-{day}.csv").write_text("".join([rows[0], *rows[start : start + 250]]))
    best = limen.optimal_threshold(SCORES, LABELS)

    assert f"{best.threshold!r}\n" == run("fit", "day-0.csv", "day-[1-4].csv")[1]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("ndjson", [False, True])
def test_standard_input_may_be_either_text_packed_or_not(packed, ndjson) -> None:
    lines = phishing_csv().encode()
    if ndjson:
        rows = zip(SCORES, LABELS, strict=True)
        lines = b"".join(b'{"score": %r, "label": %d}\n' % row for row in rows)
    done = limen_process("fit", "-", input=gzip.compress(lines) if packed else lines)

    assert f"{limen.optimal_threshold(SCORES, LABELS).threshold!r}\n" == done.stdout.decode()


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (["--metric", "f1"], ("f1", {})),
        (["--metric", "f2"], (limen.metrics.fbeta(2), {})),
        (["--metric", "mcc"], ("mcc", {})),
        (["--min-precision", "0.9"], ("recall", {"min_precision": 0.9})),
        (["--min-recall", "0.9"], ("precision", {"min_recall": 0.9})),
        (["--max-positive-rate", "0.1"], ("recall", {"max_positive_rate": 0.1})),
        (
            ["--false-negative", "5", "--max-false-positive-rate", "1/20"],
            (limen.metrics.cost(false_negative=5), {"max_false_positive_rate": 0.05}),
        ),
    ],
)
def test_other_aims_and_demands_are_those_of_the_calibrator(run, given, asked) -> None:
    Path("scores.csv").write_text(phishing_csv())
    calibrator = limen.OnlineCalibrator()
    calibrator.update_many(SCORES, LABELS)
    best = calibrator.best(asked[0], **asked[1])
    told = json.loads(run("fit", "scores.csv", *given, "--json")[1])

    assert (best.threshold, best.value) == (told["threshold"], told["value"])
    assert best.confusion._asdict() == told["confusion"]


def test_a_group_of_one_class_has_its_threshold_and_a_warning(run) -> None:
    Path("scores.csv").write_text("score,label,team\n0.1,0,a\n0.9,1,a\n0.5,1,b\n")
    code, out, err = run("fit", "scores.csv", "--group-column", "team")

    table = f"team,{OF_GROUPS}\na,0.5,2,1,1,,,,,1\nb,-inf,1,1,1,,,,,1\n"

    assert (0, table) == (code, out)
    assert "every label of group b counts as 1" in err


def test_infinite_thresholds_are_text_in_json(run) -> None:
    Path("scores.csv").write_text("score,label\n0.9,0\n0.9,0\n0.1,1\n")
    told = json.loads(run("fit", "scores.csv", "--json")[1])

    assert ("inf", 0.9, None) == (told["threshold"], told["lower"], told["upper"])


# ---- groups, and what is saved ----------------------------------------------------------------


TEAMS = "score,label,team\n0.1,0,a\n0.25,0,a\n0.75,1,a\n0.9,1,a\n0.2,1,b\n"


def test_a_group_that_is_too_small_is_answered_for_by_all_samples(run) -> None:
    Path("teams.csv").write_text(TEAMS)
    given = ("fit", "teams.csv", "--group-column", "team", "--at-least", "2")
    code, out, err = run(*given)
    told = json.loads(run(*given, "--json")[1])
    by_group = limen.by_group(
        list("aaaab"), [0.1, 0.25, 0.75, 0.9, 0.2], [0, 0, 1, 1, 1], at_least=2
    )

    table = f"team,{OF_GROUPS}\na,0.5,4,2,1,,,,,1\nb,0.5,1,1,0,,,,,1\n"

    assert (0, table) == (code, out)
    assert [by_group.threshold(team) for team in "ab"] == [
        part["threshold"] for part in told["groups"]
    ]
    assert "1 of 2 groups hold fewer than 2 samples" in err
    assert (False, 1.0, 1) == tuple(told["groups"][1][name] for name in ("own", "loss", "samples"))


@pytest.mark.parametrize("metric", ["f1", "recall", "f2"])
def test_a_small_group_has_the_value_of_the_metric_at_the_threshold_of_all(run, metric) -> None:
    Path("teams.csv").write_text(TEAMS)
    given = ("--group-column", "team", "--at-least", "2", "--metric", metric, "--json")
    told = json.loads(run("fit", "teams.csv", *given)[1])
    right = told["groups"][1]["confusion"]
    value = limen.metrics.fbeta(2) if metric == "f2" else getattr(limen.metrics, metric)

    assert told["threshold"] == told["groups"][1]["threshold"]
    assert value(**right) == told["groups"][1]["value"]


@pytest.mark.parametrize("aim", [[], ["--metric", "f1"]])
def test_the_groups_are_saved_too(run, aim) -> None:
    Path("teams.csv").write_text(TEAMS)
    out = run("fit", "teams.csv", "--group-column", "team", "--save", "teams.limen", *aim)[1]
    told = json.loads(run("show", "teams.limen", *aim)[1])

    assert isinstance(limen.load("teams.limen"), limen.Grouped)
    assert ("Grouped", 5, 1) == (told["kind"], told["samples"], told["at_least"])
    assert [["a", "4"], ["b", "1"]] == [[p["group"], str(p["samples"])] for p in told["groups"]]
    assert [row.split(",")[1] for row in out.splitlines()[1:]] == [
        str(part["threshold"]) for part in told["groups"]
    ]


@pytest.mark.parametrize("aim", [[], ["--metric", "f1"]])
def test_saved_groups_are_merged(run, aim) -> None:
    Path("teams.csv").write_text(TEAMS)
    for name in ("one", "two"):
        run("fit", "teams.csv", "--group-column", "team", "--save", f"{name}.limen", *aim)
    code, _, err = run("merge", "one.limen", "two.limen", "-o", "both.limen")

    assert (0, True) == (code, "both.limen: 10 samples, " in err)
    assert 8 == limen.load("both.limen").count("a")


def test_saved_evidence_is_merged(run) -> None:
    for name in ("one.limen", "two.limen"):
        evidence = limen.Evidence(0.5, 0.4)
        evidence.update(0.45, 1)
        evidence.save(name)
    code, _, err = run("merge", "one.limen", "two.limen", "-o", "both.limen")

    assert (0, True) == (code, "both.limen: 2 samples, evidence " in err)


AIMS = (
    ["--metric", "f1"],
    ["--metric", "f0.5", "--min-recall", "0.9"],
    ["--min-precision", "0.9"],
    ["--false-negative", "5", "--max-positive-rate", "1/3"],
)


@pytest.mark.parametrize("aim", AIMS, ids=" ".join)
def test_show_tells_the_threshold_that_fit_told_or_none(run, aim) -> None:
    Path("scores.csv").write_text(phishing_csv())
    _, out, err = run("fit", "scores.csv", *aim, "--save", "any.limen")
    bare = run("show", "any.limen")
    asked = json.loads(run("show", "any.limen", *aim)[1])

    assert "threshold" not in json.loads(bare[1])
    assert "any aim" in bare[2]
    assert f"limen show any.limen {' '.join(aim)}" in err
    assert out == f"{asked['threshold']!r}\n"


def test_show_answers_any_costs_of_samples_that_were_saved_for_any_aim(run) -> None:
    Path("scores.csv").write_text(phishing_csv())
    run("fit", "scores.csv", "--metric", "f1", "--save", "any.limen")
    told = json.loads(run("show", "any.limen", "--false-negative", "5")[1])
    unmet = run("show", "any.limen", "--min-precision", "0.95", "--min-recall", "0.9")

    assert (0.38526891331906543, 280.0) == (told["threshold"], told["loss"])
    assert (1.0, 5.0) == (told["false_positive"], told["false_negative"])
    assert (5, "any.limen: no cut meets" in unmet[2]) == (unmet[0], True)


def test_show_prints_what_a_window_was_made_with(run) -> None:
    limen.Fading(limen.OnlineThreshold(), timedelta(days=3)).save("fading.limen")
    limen.Ledger(limen.LastN(limen.OnlineCalibrator(), 5), maturity=7).save("ledger.limen")
    fading, ledger = (json.loads(run("show", f"{name}.limen")[1]) for name in ("fading", "ledger"))

    assert {"half_life": "3d", "by": "time", "model": "OnlineThreshold"}.items() <= fading.items()
    assert {"n": 5, "maturity": 7, "model": "OnlineCalibrator"}.items() <= ledger.items()


def test_show_does_not_answer_other_costs_than_a_model_has(run) -> None:
    Path("scores.csv").write_text(GOOD)
    run("fit", "scores.csv", "--false-negative", "5", "--save", "five.limen")
    code, out, err = run("show", "five.limen", "--false-negative", "2")

    assert (2, "") == (code, out)
    assert "five.limen holds a OnlineThreshold with costs of its own" in err
    assert 0 == run("show", "five.limen", "--false-negative", "5.0")[0]
    assert 2 == run("show", "five.limen", "--metric", "f1")[0]


def test_merge_tells_no_threshold_of_samples_for_any_aim(run) -> None:
    Path("scores.csv").write_text(GOOD)
    for name in ("one.limen", "two.limen"):
        run("fit", "scores.csv", "--metric", "f1", "--save", name)
    err = run("merge", "one.limen", "two.limen", "-o", "both.limen")[2]

    assert "both.limen: 4 samples, for any aim\n" == err


@pytest.mark.parametrize("again", ["a.limen", "./a.limen", "soft.limen", "hard.limen"])
def test_merge_refuses_to_count_a_file_twice(run, again) -> None:
    Path("scores.csv").write_text(GOOD)
    run("fit", "scores.csv", "--save", "a.limen")
    Path("soft.limen").symlink_to("a.limen")
    Path("hard.limen").hardlink_to("a.limen")
    code, out, err = run("merge", "a.limen", again, "-o", "both.limen")

    assert (2, "") == (code, out)
    assert "its samples would count twice" in err
    assert not Path("both.limen").exists()


def test_fit_refuses_to_count_a_file_twice(run) -> None:
    Path("day-1.csv").write_text(GOOD)
    code, out, err = run("fit", "day-*.csv", "day-1.csv")

    assert (2, "") == (code, out)
    assert "day-1.csv is named twice" in err


# ---- what people read ------------------------------------------------------------------------


NARROW = "score,label\n0.16068409966,0\n0.16068411830,1\n0.1,0\n0.9,1\n"


@pytest.mark.parametrize(
    "command",
    [["fit"], ["fit", "--metric", "f1"], ["curve"], ["report", "-o", "report.html"]],
    ids=" ".join,
)
def test_a_threshold_that_people_read_lies_inside_its_gap(run, command) -> None:
    """It was shown as 0.160684, below the gap that followed it."""
    Path("narrow.csv").write_text(NARROW)
    code, _, err = run(*command, "narrow.csv")
    shown = [float(number) for number in re.findall(r"0\.16\d+", err)]

    assert 0 == code
    assert [] == [number for number in shown if not 0.16068409966 <= number <= 0.16068411830]
    assert {0.1606841} <= set(shown)
    assert 17 > max(map(len, re.findall(r"0\.16\d+", err)))


def test_saved_models_show_a_threshold_inside_its_gap(run) -> None:
    Path("narrow.csv").write_text(NARROW)
    Path("other.csv").write_text("score,label\n0,0\n1,1\n")
    for name in ("narrow", "other"):
        run("fit", f"{name}.csv", "--save", f"{name}.limen")
    err = run("merge", "narrow.limen", "other.limen", "-o", "both.limen")[2]

    assert "both.limen: 6 samples, threshold 0.1606841\n" == err


def test_what_nearly_meets_a_demand_lies_inside_its_gap(run) -> None:
    Path("narrow.csv").write_text(NARROW + "0.16068411831,0\n" * 3)
    err = run("fit", "narrow.csv", "--min-precision", "0.9", "--min-recall", "0.9")[2]
    (shown,) = re.findall(r"at threshold (\S+),", err)

    assert "0.160684" != shown
    assert len(shown) < 12


def test_large_costs_are_written_as_counts_are(run) -> None:
    Path("scores.csv").write_text("score,label,w\n0.1,1,1728612.25\n0.2,0,721204\n0.3,1,1.5\n")
    err = run("fit", "scores.csv", "--weight-column", "w")[2]

    assert "cost 721,204: false positives 721,204 at 1" in err
    assert "never positive costs 1,728,614" in err
    assert "e+" not in err


@pytest.mark.parametrize("rows", [10, 300_000])
def test_scores_that_run_the_other_way_are_told(run, rows) -> None:
    lines = [f"{place / rows!r},{int(place < rows / 2)}\n" for place in range(rows)]
    Path("down.csv").write_text("score,label\n" + "".join(lines))
    code, _, err = run("fit", "down.csv")

    assert (0, 1) == (code, err.count("seem to run the other way"))
    assert "only 0.0% of all pairs" in err
    assert "" == run("fit", "down.csv", "-q")[2]


@pytest.mark.parametrize("seed", range(5))
def test_scores_of_chance_are_not_told_to_run_the_other_way(run, seed) -> None:
    chance = np.random.default_rng(seed)
    rows = zip(chance.random(500).tolist(), chance.integers(0, 2, 500).tolist(), strict=True)
    Path("chance.csv").write_text("score,label\n" + "".join(f"{s!r},{y}\n" for s, y in rows))

    assert "other way" not in run("fit", "chance.csv")[2]


def test_scores_that_run_the_other_way_are_told_of_large_files_too(run, monkeypatch) -> None:
    lines = [f"{place / 1000!r},{int(place < 500)}\n" for place in range(1000)]
    Path("down.csv").write_text("score,label\n" + "".join(lines))
    monkeypatch.setattr(inputs, "_most_rows", lambda: 100)
    monkeypatch.setattr(fitting, "read", None)

    assert "seem to run the other way" in run("fit", "down.csv")[2]


# ---- labels that are not 0 and 1 -------------------------------------------------------------


def test_no_label_is_proposed_and_all_are_counted(run) -> None:
    """The first one met was proposed: the majority, and then every score was answered 1."""
    rows = ["0.1,ok\n"] * 3000 + ["0.9,fraud\n"] * 7
    Path("fraud.csv").write_text("score,label\n" + "".join(rows))
    code, out, err = run("fit", "fraud.csv")

    assert (3, "") == (code, out)
    assert "There are 'fraud' (7 rows), 'ok' (3,000 rows)." in err
    assert "--positive ok" not in err
    assert err.endswith("--positive VALUE\n")


def test_watch_proposes_no_label_either() -> None:
    done = limen_process("watch", input=b"score,label\n0.1,ok\n0.9,fraud\n")

    assert 3 == done.returncode
    assert b"'ok', not 0 or 1. Choose the positive one: --positive VALUE" in done.stderr


def test_labels_of_parquet_are_counted_too(run) -> None:
    sql = "SELECT 0.5 AS score, if(i < 9, 'ok', 'fraud') AS label FROM range(12) AS rows(i)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({sql}) TO 'fraud.parquet' (FORMAT parquet)")
    code, out, err = run("fit", "fraud.parquet")

    assert (3, "") == (code, out)
    assert "There are 'fraud' (3 rows), 'ok' (9 rows). Choose the positive one" in err


@pytest.mark.parametrize("name", ["many.csv", "many.parquet"])
def test_a_column_of_many_values_is_asked_about(run, name) -> None:
    Path("many.csv").write_text("score,label\n" + "".join(f"0.5,{n}.5\n" for n in range(50)))
    with duckdb.connect() as connection:
        connection.execute("COPY (FROM 'many.csv') TO 'many.parquet' (FORMAT parquet)")
    err = run("fit", name)[2]

    assert "more than 20 different ones: is this the column of labels?" in err
    assert "rows)" not in err


def test_counting_labels_passes_over_what_is_malformed_and_names_the_first_place(run) -> None:
    Path("bad.csv").write_text("score,label\n0.1,0\n0.2,no\n0.3,yes\n0.4\n0.5,no\n")
    err = run("fit", "bad.csv")[2]

    assert "bad.csv, line 3, column label: the label is 'no', not 0 or 1." in err
    assert "There are '0' (1 row), 'no' (2 rows), 'yes' (1 row)." in err


def test_a_long_file_is_not_counted_to_its_end(run, monkeypatch) -> None:
    monkeypatch.setattr(line_reader, "COUNTED", 10)
    monkeypatch.setattr(rows, "COUNTED", 10)
    Path("long.csv").write_text("score,label\n" + "0.1,ok\n" * 100)

    assert "Among the first 11 rows are 'ok' (11 rows)." in run("fit", "long.csv")[2]


# ---- weights of 0 ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["fit"], ["compare", "-t", "0.5"], ["curve"], ["report"]])
@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ("000", "w.csv: no rows of a w above 0"),
        ("011", "every label counts as 1 (2 rows of a w above 0)"),
        ("100", "every label counts as 0 (1 row of a w above 0)"),
    ],
)
def test_rows_of_weight_0_are_as_good_as_none(run, command, weights, told) -> None:
    """A report divided by the weight of a class, and fit answered inf."""
    rows = zip(("0.1,0", "0.2,1", "0.3,1"), weights, strict=True)
    Path("w.csv").write_text("score,label,w\n" + "".join(f"{row},{w}\n" for row, w in rows))
    output = ["-o", "report.html"] if command == ["report"] else []
    code, out, err = run(*command, "w.csv", "--weight-column", "w", *output)

    assert (3, "") == (code, out)
    assert told in err
    assert not Path("report.html").exists()


def test_a_group_whose_weights_are_all_0_is_not_there(run) -> None:
    Path("w.csv").write_text("score,label,w,g\n0.1,0,1,a\n0.3,1,2,a\n0.2,1,0,b\n0.4,0,0,a\n")
    out = run("fit", "w.csv", "--weight-column", "w", "--group-column", "g")[1]

    assert f"g,{OF_GROUPS}\na,0.2,2,1,1,,,,,1\n" == out


# ---- more than memory holds -----------------------------------------------------------------


GRID = st.integers(0, 40).map(lambda place: place / 8)
ENDS = st.sampled_from([-math.inf, math.inf, -1e308, 1e308, 1e-300, -0.0])


@settings(max_examples=60 * EFFORT)  # the search itself is tried without DuckDB in test_narrowing
@given(
    st.lists(st.tuples(GRID | GRID | GRID | ENDS, st.integers(0, 1)), min_size=1, max_size=50)
    | st.lists(st.tuples(GRID, st.integers(0, 1)), min_size=1, max_size=50),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([1, 2, 3, 5, 8, 64]),
    st.integers(0, 10),
)
def test_narrowed_rows_have_the_cheapest_cut_of_all(
    rows, positive, negative, buckets, most
) -> None:
    costs = {"false_positive": positive, "false_negative": negative}
    values = ", ".join(f"('{score!r}'::DOUBLE, {label})" for score, label in rows)
    sql = f"SELECT * FROM (VALUES {values}) AS rows(score, label)"
    few = out_of_core.narrow(CONNECTION, sql, [], **costs, most=most, buckets=buckets)
    best = limen.optimal_threshold(few.scores, few.labels, weights=few.weights, **costs)
    scores, labels = zip(*rows, strict=True)

    assert limen.optimal_threshold(scores, labels, **costs) == best
    assert (len(rows), sum(labels)) == (few.weights.sum(), few.weights @ few.labels)


@pytest.mark.parametrize("name", ["plain.csv", "plain.ndjson", "packed.csv.gz", "plain.parquet"])
def test_files_that_memory_does_not_hold_give_the_same_answer(run, monkeypatch, name) -> None:
    write_all_formats()
    given = ("fit", name, "--false-negative", "5")
    exact, expected = run(*given, "-q"), json.loads(run(*given, "--json")[1])
    monkeypatch.setattr(inputs, "_most_rows", lambda: 100)
    monkeypatch.setattr(fitting, "read", None)
    _, out, err = run(*given, "--json")
    found = json.loads(out)
    unknown = ("recommended", "interval", "regret")

    assert exact == run(*given, "-q")
    assert [None] * 3 == [found[name] for name in unknown]
    assert "memory does not hold all rows" in found["reason"]
    assert f"for new rows: {found['reason']}" in err.splitlines()
    assert {**expected, **{each: found[each] for each in (*unknown, "reason")}} == found


def test_a_file_that_memory_does_not_hold_is_narrowed_to_few_rows(run) -> None:
    sql = (
        "SELECT i / 100000 AS score, CAST(hash(i) % 100000 < i AS INT) AS label "
        "FROM range(100000) AS rows(i)"
    )
    costs = {"false_positive": 1, "false_negative": 5}
    few = out_of_core.narrow(CONNECTION, sql, [], **costs, most=5_000, buckets=256)

    assert len(few.scores) < 6_000
    assert 100_000 == few.weights.sum()


def test_few_rows_are_fetched_where_the_cheapest_cuts_lie_at_both_ends() -> None:
    sql = (
        "SELECT CASE WHEN i < 50000 THEN i / 1e9 ELSE 1 - (1e5 - i) / 1e9 END AS score, "
        "CAST(hash(i) % 50000 < i % 50000 AS TINYINT) AS label FROM range(100000) AS rows(i)"
    )
    costs = {"false_positive": 1, "false_negative": 1}
    few = out_of_core.narrow(CONNECTION, sql, [], **costs, most=5_000, buckets=256)

    assert len(few.scores) <= 6_000
    assert 100_000 == few.weights.sum()


def write_weighted_groups(kind: str) -> None:
    """Write 3,000 rows with weights, and groups of which one holds most rows."""
    random = np.random.default_rng(6)
    scores = random.integers(0, 500, 3_000) / 500
    labels = (random.random(3_000) < scores).astype(int)
    weights = {"whole": random.integers(0, 4, 3_000), "money": random.integers(0, 500, 3_000) / 100}
    weights["fraction"] = random.random(3_000)
    names = np.where(random.random(3_000) < 0.8, "large", random.choice(["a", "b", "zé"], 3_000))
    rows = zip(scores.tolist(), labels.tolist(), weights[kind].tolist(), names, strict=True)
    Path("w.csv").write_text(
        "score,label,w,g\n"
        + "".join(f"{score!r},{label},{weight!r},{name}\n" for score, label, weight, name in rows)
    )
    duckdb.sql("COPY (FROM 'w.csv') TO 'w.parquet'")


@pytest.mark.parametrize("name", ["w.csv", "w.parquet"])
@pytest.mark.parametrize("given", [("whole",), ("money", "--unit", "0.01"), ("fraction",)])
@pytest.mark.parametrize("grouped", [(), ("--group-column", "g", "--at-least", "200")])
def test_weights_and_groups_that_memory_does_not_hold_give_the_same_answer(
    run, monkeypatch, name, given, grouped
) -> None:
    kind, *unit = given
    write_weighted_groups(kind)
    asked = (
        "fit",
        name,
        "--weight-column",
        "w",
        *unit,
        *grouped,
        "--false-negative",
        "3",
        "--json",
    )
    expected = json.loads(run(*asked)[1])
    monkeypatch.setattr(inputs, "_most_rows", lambda: 300)
    monkeypatch.setattr(fitting, "read", None)
    code, out, _ = run(*asked)
    found = json.loads(out)
    unknown = ("recommended", "interval", "regret", "reason", "basis")
    for each in (expected, found, *expected.get("groups", ()), *found.get("groups", ())):
        for name in unknown:
            each.pop(name, None)

    assert (0, expected) == (code, found)


def test_a_folder_that_spark_wrote_is_read(run) -> None:
    write_weighted_groups("whole")
    expected = run("fit", "w.parquet", "--group-column", "g", "--weight-column", "w")
    sql = "COPY (SELECT * EXCLUDE (w), w AS w FROM 'w.csv') TO 'out' (FORMAT parquet, "
    duckdb.sql(f"{sql} PARTITION_BY (g), FILENAME_PATTERN 'part-{{i}}')")
    Path("out/_SUCCESS").write_bytes(b"")
    Path("out/_delta_log").mkdir()
    Path("out/_delta_log/0.parquet").write_bytes(b"not one")
    Path("out/.part-0.parquet.crc").write_bytes(b"crc")
    found = run("fit", "out", "--group-column", "g", "--weight-column", "w")
    Path("empty").mkdir()

    assert expected == found
    assert "is a folder without Parquet files" in run("fit", "empty")[2]


@pytest.mark.parametrize("content", [row[0] for row in MALFORMED.values()], ids=MALFORMED.keys())
def test_what_is_wrong_is_told_of_large_files_too(run, monkeypatch, content) -> None:
    Path("bad.csv").write_bytes(content)
    expected = run("fit", "bad.csv")
    monkeypatch.setattr(inputs, "_most_rows", lambda: 0)

    assert expected == run("fit", "bad.csv")


# ---- curve and compare ----------------------------------------------------------------------


def test_curve_is_the_loss_of_every_cut(run) -> None:
    Path("scores.csv").write_text(phishing_csv())
    rows = list(csv.reader(io.StringIO(run("curve", "scores.csv", "--false-negative", "5")[1])))
    curve = limen.loss_curve(SCORES, LABELS, false_negative=5)

    assert ["threshold", "loss"] == rows[0]
    assert curve.thresholds.tolist() == [float(row[0]) for row in rows[1:]]
    assert curve.losses.tolist() == [float(row[1]) for row in rows[1:]]


def test_a_file_is_replaced_only_when_asked(run) -> None:
    Path("scores.csv").write_text(phishing_csv())
    Path("curve.csv").write_text("precious")
    refused = run("curve", "scores.csv", "-o", "curve.csv")
    kept = Path("curve.csv").read_text()
    replaced = run("curve", "scores.csv", "-o", "curve.csv", "--force")

    assert ("precious", 2, 0) == (kept, refused[0], replaced[0])
    assert "--force" in refused[2]
    assert 1252 == len(Path("curve.csv").read_text().splitlines())
    assert ["curve.csv", "scores.csv"] == sorted(os.listdir())


def test_a_file_that_is_replaced_keeps_its_permissions_and_its_link(run) -> None:
    Path("scores.csv").write_text(phishing_csv())
    Path("kept.csv").write_text("")
    Path("kept.csv").chmod(0o600)
    Path("link.csv").symlink_to("kept.csv")
    run("curve", "scores.csv", "-o", "link.csv", "--force")

    assert 1252 == len(Path("kept.csv").read_text().splitlines())
    assert (True, 0o600) == (Path("link.csv").is_symlink(), os.stat("kept.csv").st_mode & 0o777)


def test_compare_tells_what_a_threshold_costs_more(run) -> None:
    Path("scores.csv").write_text(phishing_csv())
    out = run("compare", "scores.csv", "-t", "0.5", "-t", "nan", "--false-negative", "5")[1]
    rows = list(csv.DictReader(io.StringIO(out)))

    assert ["280.0", "361.0", "2740.0"] == [row["loss"] for row in rows]
    assert ["0.0", "81.0", "2460.0"] == [row["excess"] for row in rows]
    assert {"tp": "491.0", "fp": "76.0", "fn": "57.0", "tn": "626.0"}.items() <= rows[1].items()


@pytest.mark.parametrize("number", ["-4e-05", "-inf", "-.5", "-1_0", "-2.", "-5E-3", "-infinity"])
@pytest.mark.parametrize("option", ["-t", "--threshold"])
def test_compare_takes_negative_thresholds_as_fit_prints_them(run, option, number) -> None:
    Path("scores.csv").write_text("score,label\n-0.5,0\n-0.00003,1\n")
    code, out, _ = run("compare", "scores.csv", option, number, "-q")

    assert (0, repr(float(number))) == (code, out.splitlines()[2].split(",")[0])


def test_compare_says_that_no_score_reaches_nan(run) -> None:
    Path("scores.csv").write_text(GOOD)
    code, _, err = run("compare", "scores.csv", "-t", "nan", "-t", "0.12345678901", "-t", "-nan")

    assert 0 == code
    assert err.startswith("nan (which no score reaches) costs 1,")
    assert "0.12345678901 costs 0" in err


TENTHS = ["--false-positive", "0.05", "--false-negative", "0.1"]
WEIGHED = ["--weight-column", "w", "--unit", "0.1"]


@pytest.mark.parametrize(
    "given", [[], WEIGHED, ["--min-recall", "0"], ["--true-positive", "-0.1", "--unit", "0.01"]]
)
def test_fit_and_compare_add_up_costs_without_rounding(run, given) -> None:
    """Of 0.05, three false positives cost 0.15, and not 3 * 0.05."""
    rows = ["0.1,1,0.1", "0.2,0,0.3", "0.3,0,0.1", "0.4,0,0.2", "0.5,1,0.7", "0.6,1,0.1"]
    Path("tenths.csv").write_text("score,label,w\n" + "\n".join(rows) + "\n")
    fitted = json.loads(run("fit", "tenths.csv", "--json", *TENTHS, *given)[1])
    asked = [part for number in range(1, 14, 2) for part in ("-t", f"{number / 20}")]
    compared = json.loads(run("compare", "tenths.csv", *asked, "--json", *TENTHS, *given)[1])
    name, more = ("value", "difference") if "--min-recall" in given else ("loss", "excess")
    best = compared["best" if name == "value" else "optimum"]

    assert fitted[name] == best[name]
    for row in (best, *compared["thresholds"]):
        assert all(len(f"{abs(row[each])!r}") <= len("0.123") for each in (name, more)), row


def test_compare_counts_weights(run) -> None:
    Path("scores.csv").write_text("score,label,w\n0.1,1,0.5\n0.2,0,2.25\n0.3,1,1\n")
    out = run("compare", "scores.csv", "-t", "0", "--weight-column", "w", "--json")[1]

    assert (0.5, 2.25, 1.75) == (
        json.loads(out)["optimum"]["loss"],
        json.loads(out)["thresholds"][0]["loss"],
        json.loads(out)["thresholds"][0]["excess"],
    )


# ---- malformed input ------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["lines", "blocks"])
@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_text_is_told_with_its_place_and_nothing_is_written(
    run, monkeypatch, case, by
) -> None:
    content, expected, told = MALFORMED[case]
    Path("bad.csv").write_bytes(content)
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    code, out, err = run("fit", "bad.csv")

    assert (expected, "") == (code, out)
    assert [] == [word for word in told if word not in err]
    assert err.startswith("limen: ")
    assert 1 == err.count("\n")


def of_a_stream(word: str, header: bool) -> str:
    """Turn the place in a file into that in a stream, which counts rows instead of lines."""
    word = word.replace("bad.csv, line 1", "standard input, first line")
    return re.sub(r"line (\d+)", lambda found: f"row {int(found[1]) - header}", word)


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_text_is_told_of_a_stream_as_of_a_file(watch, case) -> None:
    content, _, told = MALFORMED[case]
    code, _, err = watch(content)
    if case in ("empty file", "header only", "one class only"):  # of a stream, that may change
        assert 0 == code
    elif case == "wide characters":
        assert (3, True) == (code, "first line: byte 1 is 0xff, which is not UTF-8" in err)
    else:
        assert 3 == code
        told = [word for word in told if "rows)" not in word]  # a stream knows no counts yet
        assert [] == [word for word in told if of_a_stream(word, header=True) not in err]


@pytest.mark.parametrize("command", [["curve"], ["compare", "-t", "0.5"]])
def test_no_command_writes_anything_about_malformed_input(run, command) -> None:
    Path("bad.csv").write_text("score,label\n0.1,0\nhigh,1\n")
    code, out, _ = run(*command, "bad.csv")

    assert (3, "") == (code, out)


NDJSON = {
    "not JSON": ('{"score": 1, "label": 0}\n{"score": \n', ["line 2", "not JSON"]),
    "no object": ("[1, 2]\n", ["line 1", "not an object"]),
    "missing name": ('{"score": 1}\n', ["line 1, column label", "'score'"]),
    "null": ('{"score": null, "label": 1}\n', ["line 1, column score", "missing"]),
    "text": ('{"score": "high", "label": 1}\n', ["line 1, column score", "'high'"]),
    "nan": ('{"score": NaN, "label": 1}\n', ["line 1, column score", "nan"]),
    "list": ('{"score": [1], "label": 1}\n', ["line 1, column score", "[1]"]),
    "label": ('{"score": 1, "label": [1]}\n', ["line 1, column label", "[1]"]),
}


@pytest.mark.parametrize("by", ["lines", "blocks"])
@pytest.mark.parametrize("case", NDJSON)
def test_malformed_ndjson_is_told_with_its_place(run, monkeypatch, case, by) -> None:
    content, told = NDJSON[case]
    Path("bad.ndjson").write_text(content)
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    code, out, err = run("fit", "bad.ndjson")

    assert (3, "") == (code, out)
    assert [] == [word for word in told if word not in err]


@pytest.mark.parametrize("case", NDJSON)
def test_malformed_ndjson_is_told_of_a_stream_as_of_a_file(watch, case) -> None:
    content, told = NDJSON[case]
    code, _, err = watch(content.encode(), "--format", "ndjson")

    assert 3 == code
    assert [] == [word for word in told if of_a_stream(word, header=False) not in err]


OTHER_KINDS = {
    "scores.bz2": (bz2.compress(GOOD.encode()), "packed by bzip2, not text. Unpack it: bzip2 -dc"),
    "scores.xz": (lzma.compress(GOOD.encode()), "packed by xz"),
    "scores.zip": (b"PK\x03\x04 and so on", "a zip archive, as .npz and .xlsx are too"),
    "scores.npz": (b"PK\x03\x04 and so on", "Unpack it, or write the table as CSV or Parquet"),
    "scores.limen": (limen.OnlineThreshold().to_bytes(), "a model saved by limen, not text. See"),
    "array.json": (b'[{"score": 1, "label": 0}]\n', "a JSON array begins here, not an object"),
    "array": (b'\n[\n{"score": 1, "label": 0}\n]\n', "jq -c '.[]'"),
    "mac.csv": (GOOD.replace("\n", "\r").encode(), r"a CR (\r) inside the line"),
    "mac.ndjson": (b'{"score": 1, "label": 0}\r{"score": 2, "label": 1}\r', r"tr '\r' '\n'"),
    "inner.csv": (b"score,label\n0.1,0\r0.2,1\n0.3,1\n", r"a CR (\r) inside the line"),
    "parquet": (b"PAR1", "read from its end"),
    "arrow": (b"ARROW1\0\0", "an Arrow file, not text. It is read from its end: save it"),
    "old.feather": (b"FEA1", "Feather of version 1"),
}
# A file of these is read, and a stream that is watched is not unpacked.
READ = {
    "scores.bz2": ["watch"],
    "scores.xz": ["watch"],
    "parquet": ["watch", "pipe"],
    "arrow": ["watch", "pipe"],
}


@pytest.mark.parametrize(
    ("name", "by"),
    [
        (name, by)
        for name in OTHER_KINDS
        for by in ("lines", "blocks", "watch", "pipe")
        if name not in READ or by in READ[name]
    ],
)
def test_what_is_no_text_is_called_by_its_name(run, watch, piped, monkeypatch, name, by) -> None:
    content, told = OTHER_KINDS[name]
    Path(name).write_bytes(content)
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    if by == "pipe":
        name = piped(content)
    code, out, err = watch(content) if by == "watch" else run("fit", name)

    assert (3, "") == (code, out)
    assert told in err
    assert by == "watch" or name in err
    assert 1 == err.count("\n")


def test_a_line_longer_than_all_is_told_to_end_in_cr(run, monkeypatch) -> None:
    Path("mac.csv").write_bytes(b"score,label\r" + b"0.1,0\r" * 1000)
    monkeypatch.setattr(line_reader, "LONGEST_LINE", 2**10)

    assert r"line 1: there is a CR (\r) inside the line" in run("fit", "mac.csv")[2]


@pytest.mark.parametrize("by", ["lines", "blocks", "watch", "parquet"])
def test_a_weight_that_would_be_lost_is_told_with_its_place(run, watch, monkeypatch, by) -> None:
    Path("w.csv").write_text("score,label,w\n0.1,0,1\n0.2,1,0\n0.3,1,1e-10\n")
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    given = ("--weight-column", "w")
    if by == "watch":
        code, _, err = watch(Path("w.csv").read_bytes(), *given)
    elif by == "parquet":
        CONNECTION.execute("COPY (FROM 'w.csv') TO 'w.parquet' (FORMAT parquet)")
        code, _, err = run("fit", "w.parquet", *given)
    else:
        code, _, err = run("fit", "w.csv", *given)
    place = {"watch": "standard input, row 3", "parquet": "w.parquet, row 3"}

    assert 3 == code
    assert f"{place.get(by, 'w.csv, line 4')}, column w: the weight is 1e-10" in err
    assert "--unit" in err
    assert 0 == run("fit", "w.csv", *given, "--unit", "1e-10")[0]


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT 1 AS p, 0 AS label", ["'score'", "'p'"]),
        ("SELECT 'high' AS score, 0 AS label", ["column score", "VARCHAR"]),
        ("SELECT 0.5 AS score, 0 AS label UNION ALL SELECT NULL, 1", ["row 2", "missing"]),
        ("SELECT 0.5 AS score, 0 AS label UNION ALL SELECT 'nan'::DOUBLE, 1", ["row 2", "nan"]),
        ("SELECT 0.5 AS score, 0 AS label UNION ALL SELECT 1, 2", ["row 2", "label is 2"]),
        ("SELECT 0.5 AS score, 0 AS label UNION ALL SELECT 1, NULL", ["row 2", "label", "missing"]),
        ("SELECT 9007199254740993 AS score, 0 AS label", ["9007199254740993", "no exact float64"]),
        ("SELECT 0.5 AS score, 0 AS label WHERE false", ["no rows"]),
        ("SELECT 0.5 AS score, 0 AS label", ["every label counts as 0"]),
    ],
)
def test_malformed_parquet_is_told_with_its_row(run, sql, told) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({sql}) TO 'bad.parquet' (FORMAT parquet)")
    code, out, err = run("fit", "bad.parquet")

    assert (3, "") == (code, out)
    assert [] == [word for word in told if word not in err]


def test_a_parquet_file_that_is_cut_short_is_told(run) -> None:
    Path("bad.parquet").write_bytes(b"PAR1 and then nothing")
    code, out, err = run("fit", "bad.parquet")

    assert (3, "") == (code, out)
    assert "bad.parquet" in err


@pytest.mark.parametrize("by", ["lines", "blocks"])
@pytest.mark.parametrize("wrong", ["not gzip", "cut short", "damaged"])
def test_wrong_gzip_is_told(run, monkeypatch, wrong, by) -> None:
    packed = gzip.compress(phishing_csv().encode(), mtime=0)
    content = {
        "not gzip": GOOD.encode(),
        "cut short": packed[:-20],
        "damaged": packed[:40] + b"\xff" * 40 + packed[80:],
    }[wrong]
    Path("bad.csv.gz").write_bytes(content)
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    code, out, err = run("fit", "bad.csv.gz")

    assert (3, "") == (code, out)
    assert "bad.csv.gz" in err
    assert "gzip" in err


@pytest.mark.parametrize("by", ["lines", "blocks"])
def test_a_very_long_line_is_refused_without_holding_it(run, monkeypatch, by) -> None:
    """A gigabyte of zeros, in a file with a hole: no more than the longest line is read."""
    with open("bad.csv", "wb") as file:
        file.write(b"score,label\n0.1,0\n")
        file.truncate(2**30)
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    monkeypatch.setattr(line_reader, "LONGEST_LINE", 2**20)
    code, out, err = run("fit", "bad.csv")

    assert (3, "") == (code, out)
    assert "bad.csv, line 3: the line is longer than 1,048,576 bytes" in err


@pytest.mark.parametrize(("name", "code"), [("plain.csv", 0), ("plain.parquet", 1)])
def test_without_duckdb_text_is_read_and_parquet_tells_what_it_needs(
    run, monkeypatch, name: str, code: int
) -> None:
    write_all_formats()
    monkeypatch.setitem(sys.modules, "duckdb", None)
    found, _, err = run("fit", name)

    assert code == found
    assert (code == 1) == ('pip install "limen[cli]"' in err)


# ---- how it ends ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["fit", "absent.csv"], 4, "absent.csv does not exist"),
        (["fit", "absent-*.csv"], 4, "no file matches absent-*.csv"),
        (["fit", "."], 4, "is a folder"),
        (["fit"], 2, "FILE"),
        (["fly"], 2, "fly"),
        (["fit", "good.csv", "--false-negative", "-1"], 2, "not a positive number"),
        (["fit", "good.csv", "--min-precision", "90"], 2, "not a share from 0 to 1"),
        (["fit", "good.csv", "--metric", "f"], 2, "balanced_accuracy"),
        (["fit", "good.csv", "--metric", "f1", "--false-negative", "2"], 2, "two aims"),
        (["fit", "good.csv", "--metr", "f1"], 2, "--metr"),
        (["fit", "-", "-"], 2, "only once"),
        (["compare", "good.csv"], 2, "--threshold"),
        (["fit", "ties.csv", "--min-precision", "0.9"], 5, "no cut meets min_precision=0.9"),
        (["curve", "good.csv", "-o", "nowhere/curve.csv"], 2, "nowhere does not exist"),
    ],
)
def test_each_way_to_fail_has_its_exit_code(run, arguments, code, told) -> None:
    Path("good.csv").write_text(GOOD)
    Path("ties.csv").write_text("score,label\n0.5,0\n0.5,1\n")
    found, out, err = run(*arguments)

    assert (code, "") == (found, out)
    assert told in err


def test_a_pipe_that_closes_early_is_no_error_message(tmp_path: Path) -> None:
    """More than a pipe holds is written, and nobody reads beyond the first line."""
    rows = "".join(f"{place / 7!r},{place % 2}\n" for place in range(10_000))
    (tmp_path / "many.csv").write_text("score,label\n" + rows)
    command = f"{sys.executable} -m limen curve many.csv -q | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, timeout=PATIENCE, cwd=tmp_path
    )

    assert (b"threshold,loss\n141\n", b"") == (done.stdout, done.stderr)


def test_a_pipe_without_a_reader_is_no_error_message() -> None:
    """What is left in the buffer must not be complained about at the end either."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "limen", "--help"]
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}
    given = {"stdout": writing, "stderr": subprocess.PIPE, "env": buffered}
    done = subprocess.run(command, **given, timeout=PATIENCE)
    os.close(writing)

    assert (141, b"") == (done.returncode, done.stderr)


CLOSED = {
    "fit - <&-": (1, "", "standard input is closed. Send it something, or name a file."),
    "watch <&-": (1, "", "standard input is closed. Send rows to it."),
    "watch --state kept.limen <&-": (1, "", "standard input is closed. Send rows to it."),
    "fit good.csv -q >&-": (1, "", "standard output is closed."),
    "watch >&- < good.csv": (1, "", "standard output is closed."),
    "--help >&-": (1, "", "standard output is closed."),
    "show absent.limen >&-": (4, "", "absent.limen does not exist."),
    "fit good.csv 2>&-": (0, "0.5\n", ""),
    "fit absent.csv 2>&-": (4, "", ""),
    "watch <&- >&- 2>&-": (1, "", ""),
    "fit good.csv -q > /dev/full": (1, "", "limen: No space left on device."),
}


@pytest.mark.parametrize("case", CLOSED)
def test_a_closed_stream_is_told_in_one_sentence(tmp_path: Path, case: str) -> None:
    code, out, err = CLOSED[case]
    (tmp_path / "good.csv").write_text(GOOD)
    command = ["bash", "-c", f"{sys.executable} -m limen {case}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path)

    assert (code, out) == (done.returncode, done.stdout)
    assert err in done.stderr
    assert done.stderr.count("\n") <= 1
    assert ["good.csv"] == os.listdir(tmp_path)


def test_ctrl_c_ends_quietly_with_130(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "limen", "fit", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # A shell that starts its work in the background lets it ignore Ctrl-C.
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, **pipes, **heard) as process:
        process.stdin.write(b"score,label\n" + b"0.5,1\n" * 100_000)
        process.stdin.flush()  # more than a pipe holds, so that it is being read by now
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)

    assert (130, b"", b"") == (process.returncode, out, err)


def test_help_loads_no_numpy() -> None:
    program = (
        "import sys\nfrom limen.cli import main\n"
        "try: main(['fit', '--help'])\n"
        "except SystemExit: print('numpy' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert "False\n" == done.stderr


def command_names() -> list[str]:
    return list(parser()._subparsers._group_actions[0].choices)


@pytest.mark.parametrize("name", command_names())
def test_every_help_has_an_example(run, name) -> None:
    code, out, err = run(name, "--help")

    assert (0, "") == (code, err)
    assert f"limen {name}" in out.split("example:\n")[1].splitlines()[0]


WITH_AIMS = ("fit", "curve", "compare", "report", "show")


def test_a_stream_has_20_options_and_the_rest_in_its_definition() -> None:
    actions = parser()._subparsers._group_actions[0].choices["watch"]._actions
    costs = {name for name, outcome in OUTCOMES.items() if not outcome.cost}

    assert 20 == len([action for action in actions if action.dest != "help"])
    assert {*costs, *(f"{name}_column" for name in OUTCOMES), *DEMANDS} <= _EXTRA.keys()


@pytest.mark.parametrize("command", WITH_AIMS)
def test_costs_and_demands_are_those_of_the_one_table(command: str) -> None:
    actions = parser()._subparsers._group_actions[0].choices[command]._option_string_actions
    gains = command != "show"  # which asks a model that holds no costs of right answers
    costs = [name for name, outcome in OUTCOMES.items() if gains or outcome.cost]
    written = {option[2:].replace("-", "_") for option in actions}

    assert [] == [name for name in (*costs, *DEMANDS) if name not in written]
    assert [] == [
        name
        for name in written
        if name[:4] in ("min_", "max_") and name not in DEMANDS
        if name != "max_questions"
    ]
    for name in DEMANDS:
        assert DEMANDS[name].text == actions[option_name(name)].help


def test_the_docs_name_every_cost_demand_and_metric() -> None:
    docs = Path(__file__).parents[1] / "docs"
    options = [option_name(name) for name in (*OUTCOMES, *DEMANDS)]
    named = {"command_line.md": options, "every_cost.md": [f"`{name}`" for name in METRIC_NAMES]}
    for page, words in named.items():
        text = (docs / page).read_text(encoding="utf-8")

        assert [] == [word for word in words if word not in text]


def test_options_may_come_from_the_environment(run, monkeypatch) -> None:
    Path("scores.csv").write_text("p,truth\n0.1,0\n0.9,1\n")
    monkeypatch.setenv("LIMEN_SCORE_COLUMN", "p")
    monkeypatch.setenv("LIMEN_LABEL_COLUMN", "truth")
    monkeypatch.setenv("LIMEN_FALSE_NEGATIVE", "many")
    told = run("fit", "scores.csv")
    monkeypatch.setenv("LIMEN_FALSE_NEGATIVE", "5")

    assert (2, True) == (told[0], "'many' is not a number" in told[2])
    assert (0, "0.5\n") == run("fit", "scores.csv")[:2]


def test_every_option_with_a_value_has_a_variable_of_its_name(run, monkeypatch) -> None:
    """--threshold had LIMEN_THRESHOLDS, which ended in a traceback."""
    Path("scores.csv").write_text(GOOD)
    monkeypatch.setenv("LIMEN_THRESHOLD", "0.5 -inf")
    monkeypatch.setenv("LIMEN_THRESHOLDS", "0.25")
    both = run("compare", "scores.csv")
    one = run("compare", "scores.csv", "-t", "0.75")

    assert (0, ["0.5", "0.5", "-inf"]) == (both[0], thresholds_of(both[1]))
    assert (0, ["0.5", "0.75"]) == (one[0], thresholds_of(one[1]))


def thresholds_of(out: str) -> list[str]:
    return [line.split(",")[0] for line in out.splitlines()[1:]]


def values_of(action) -> str:
    if action.choices:
        return str(next(iter(action.choices)))
    known = {"delimiter": ";", "metric": "f1", "metrics": "f1", "alerts": "interval"}
    return known.get(action.dest, "1")


@pytest.mark.parametrize("name", command_names())
def test_no_variable_ends_in_anything_but_its_value(monkeypatch, name) -> None:
    command = parser()._subparsers._group_actions[0].choices[name]
    options = [action for action in command._actions if action.option_strings and action.metavar]
    further = argparse._SubParsersAction  # what serve does besides serving
    words = [
        action
        for action in command._actions
        if not action.option_strings and not isinstance(action, further)
    ]
    needed = [name, *({"shell": "bash"}.get(action.dest, "x") for action in words)]
    for action in options:
        monkeypatch.setenv("LIMEN_" + action.option_strings[-1][2:].upper().replace("-", "_"), "")
    for action in options:
        variable = "LIMEN_" + action.option_strings[-1][2:].upper().replace("-", "_")
        typed = [action.option_strings[-1], values_of(action)]
        rest = [
            word
            for other in options
            if other.required and other is not action
            for word in (other.option_strings[-1], values_of(other))
        ]
        said = parser().parse_args([*needed, *rest, *typed])
        monkeypatch.setenv(variable, typed[1])
        found = parser().parse_args([*needed, *rest])
        monkeypatch.setenv(variable, "")

        assert vars(said) == vars(found), variable


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("LIMEN_FORMAT", "excel", "LIMEN_FORMAT: invalid choice: 'excel'"),
        ("LIMEN_THRESHOLD", "0.5 half", "LIMEN_THRESHOLD: 'half' is not a number"),
        ("LIMEN_THRESHOLD", " ", "LIMEN_THRESHOLD: ' ' is not a number"),
        ("LIMEN_UNIT", "0", "LIMEN_UNIT: '0' is not a positive number"),
    ],
)
def test_a_variable_is_checked_as_its_option_is(run, monkeypatch, variable, value, told) -> None:
    Path("scores.csv").write_text(GOOD)
    monkeypatch.setenv(variable, value)
    code, out, err = run("compare", "scores.csv")

    assert (2, "") == (code, out)
    assert told in err


HUGE = ("1e99999999", "1e-99999999", "1e301", "1E+9_999_999", "1e" + "9" * 5000, "9" * 5000)


@pytest.mark.parametrize("number", HUGE, ids=lambda text: text[:12])
@pytest.mark.parametrize("option", ["--false-negative", "--unit", "--min-precision"])
def test_a_number_beyond_all_use_is_refused_at_once(run, option, number) -> None:
    Path("scores.csv").write_text(GOOD)
    code, out, err = run("fit", "scores.csv", option, number)

    assert (2, "") == (code, out)
    assert option in err


@pytest.mark.parametrize("more", [[], ["--min-recall", "0.5"], ["--save", "model.limen"]])
@pytest.mark.parametrize("costs", [["1e30", "1"], ["1/3", "1e-250"]])
def test_costs_too_far_apart_are_told(run, costs, more) -> None:
    Path("scores.csv").write_text(GOOD)
    given = ["--false-positive", costs[0], "--false-negative", costs[1]]
    code, out, err = run("fit", "scores.csv", *given, *more)

    assert (2, "") == (code, out)
    assert "too far apart" in err


@pytest.mark.parametrize("given", [["--false-negative", "1e30"], ["--unit", "1e-30"]])
def test_watch_tells_of_costs_and_units_it_cannot_hold(run, given) -> None:
    code, out, err = run("watch", *given)

    assert (2, "") == (code, out)
    assert err.startswith("limen: ")


@pytest.mark.parametrize("metric", ["f0", "f0.0", "f" + "9" * 5000])
def test_an_f_score_of_no_use_is_refused(run, metric) -> None:
    Path("scores.csv").write_text(GOOD)

    assert (2, "") == run("fit", "scores.csv", "--metric", metric)[:2]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["fit", "good.csv", "--metrik", "f1"],
            "no option --metrik. Did you mean --metric?",
        ),
        (["fit", "good.csv", "--xyzzy"], "fit has no option --xyzzy.\n"),
        (["fit", "good.csv", "--false-positives=2"], "Did you mean --false-positive?"),
        (["fit", "good.csv", "--json", "more.csv"], "Name all files in one place."),
        (["demo", "now"], "demo does not expect the word 'now'"),
    ],
)
def test_an_unknown_option_is_told_with_the_help_of_its_command(run, arguments, told) -> None:
    code, out, err = run(*arguments)

    assert (2, "") == (code, out)
    assert told in err
    assert err.endswith(f"\nTry: limen {arguments[0]} --help\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("variable", "bold"), [("", True), ("1", False)])
def test_no_color_is_respected(run, monkeypatch, variable, bold) -> None:
    Path("scores.csv").write_text(GOOD)
    monkeypatch.setenv("NO_COLOR", variable)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    run("fit", "scores.csv")

    assert bold == ("\x1b[1m" in sys.stderr.getvalue())


@pytest.mark.parametrize("watched", [True, False])
def test_progress_is_shown_on_a_terminal_only(run, monkeypatch, watched) -> None:
    Path("many.csv").write_text("score,label\n0.1,0\n" + "0.5,1\n" * 200_000)
    monkeypatch.setattr(sys, "stderr", Terminal() if watched else io.StringIO())
    run("fit", "many.csv", "-q")

    assert watched == bool(re.search(r"many\.csv: 1\d\d,\d\d\d rows", sys.stderr.getvalue()))


@pytest.mark.parametrize("watched", [True, False])
def test_duckdb_draws_no_bar_of_its_own(monkeypatch, watched) -> None:
    """It would draw it on standard output, into the data."""
    monkeypatch.setattr(sys, "stderr", Terminal() if watched else io.StringIO())
    settings = (
        "current_setting('enable_progress_bar'), current_setting('enable_progress_bar_print')"
    )

    assert [(watched, False)] == duckdb_reader.connected().execute(f"SELECT {settings}").fetchall()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["limen", "co"], ["compare", "completion"]),
        (["limen", "fit", "--min"], ["--min-precision", "--min-recall"]),
        (["limen", "fit", "--metric", "f"], ["f1"]),
        (["limen", "completion", "z"], ["zsh"]),
    ],
)
def test_bash_completes_commands_options_and_values(run, words, expected) -> None:
    script = run("completion", "bash")[1]
    ask = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
    ask += "$(complete -p limen | sed 's/.*-F //; s/ .*//')"  # as bash would call it
    done = subprocess.run(
        ["bash", "-c", f'{script}\n{ask}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True,
        text=True,
    )

    assert ("", expected) == (done.stderr, done.stdout.split())


def test_without_shtab_the_way_to_it_is_told(run, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    code, out, err = run("completion", "bash")

    assert (1, "") == (code, out)
    assert 'pip install "limen[cli]"' in err


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_every_command_and_option(run, shell) -> None:
    script = run("completion", shell)[1]
    options = parser()._subparsers._group_actions[0].choices["fit"]._actions
    names = [action.option_strings[-1].lstrip("-") for action in options if action.option_strings]

    assert [] == [word for word in [*command_names(), *names] if word not in script]
