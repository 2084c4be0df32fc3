# SPDX-License-Identifier: Apache-2.0
"""The questions about the command line: whole processes, in CPU time of all their threads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

import limen
import limen.duckdb
from benchmarks.timing import Finding, faster_by, slower_by, within
from benchmarks.timing import in_turns as threads_in_turns
from benchmarks.workloads import samples

ROWS = 20_000_000
LIMEN = [sys.executable, "-m", "limen"]

# What one would write without limen: read with duckdb, sort, sum up, take the lowest.
BY_SORTING = """
import sys, duckdb, numpy as np
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
columns = connection.execute("SELECT score, label FROM " + repr(sys.argv[1])).fetchnumpy()
order = np.argsort(columns["score"])
losses = np.cumsum(np.where(columns["label"][order] == 1, 5, -1))
print(float(columns["score"][order][np.argmin(losses)]))
"""


def process(command: list[str], source: Path | None = None) -> tuple[float, float, str]:
    """Seconds of CPU, peak megabytes and output of one process; input comes through a pipe."""
    with tempfile.TemporaryFile("w+") as out:
        feeding = None
        if source is not None:
            feeding = subprocess.Popen(["cat", str(source)], stdout=subprocess.PIPE)
        child = subprocess.Popen(command, stdin=feeding and feeding.stdout, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if feeding is not None:
            feeding.stdout.close()
            feeding.wait()
        assert child.returncode == 0
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, out.read()


def in_turns(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    runs: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            runs[name].append(work())
    return runs


def help_at_once() -> Iterator[Finding]:
    """How much longer than Python itself does `limen --help` take?"""
    runs = in_turns(
        {
            "limen": lambda: 1e3 * process([*LIMEN, "--help"])[0],
            "python": lambda: 1e3 * process([sys.executable, "-c", "pass"])[0],
        },
        rounds=15,
    )
    yield slower_by("limen --help against python -c pass", "", runs, "python", 5, "ms")


def large_files() -> Iterator[Finding]:
    """How long does `limen fit` take for a large file, against duckdb and sorting by NumPy?"""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            "CREATE TABLE samples AS SELECT score, CAST(random() < score * score AS INT) AS label "
            f"FROM (SELECT random() AS score FROM range({ROWS}))"
        )
        for format in ("parquet", "csv"):
            path = Path(folder) / f"samples.{format}"
            connection.execute(f"COPY samples TO '{path}' (FORMAT {format})")
        connection.execute("DROP TABLE samples")
        for format, rounds in (("parquet", 3), ("csv", 3)):
            path = Path(folder) / f"samples.{format}"
            fit = [*LIMEN, "fit", str(path), "--false-negative", "5", "-q"]
            sorting = [sys.executable, "-c", BY_SORTING, str(path)]
            found = json.loads(process([*fit, "--json"])[2])
            assert found["lower"] == float(process(sorting)[2])
            assert found["threshold"] == float(process(fit)[2])
            memory: list[float] = []

            def fitting(fit: list[str] = fit, memory: list[float] = memory) -> float:
                taken, peak, _ = process(fit)
                memory.append(peak)
                return taken

            runs = in_turns(
                {"limen": fitting, "sorting": lambda sorting=sorting: process(sorting)[0]}, rounds
            )
            name = {"parquet": "Parquet", "csv": "CSV"}[format]
            yield faster_by(
                f"limen fit of {name} against duckdb and NumPy argsort",
                f"{ROWS:,}",
                runs,
                "sorting",
                1,
                "s",
            )
            yield within(
                f"memory of limen fit of {name}", f"{ROWS:,}", {"limen": memory}, 1500, "MB"
            )


def streams() -> Iterator[Finding]:
    """How many samples a second does `limen watch` take from a pipe?"""
    n = 1_000_000
    scores, labels = (column.tolist() for column in samples("uniform", n))
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.csv"
        with rows.open("w") as file:
            file.write("score,label\n")
            file.writelines(f"{s!r},{y}\n" for s, y in zip(scores, labels, strict=True))
        events = Path(folder) / "events.csv"
        with events.open("w") as file:
            file.write("id,score,label\n")
            for place in range(200_000):
                file.write(f"{place},{scores[place]!r},\n")
                if place >= 1000:
                    file.write(f"{place - 1000},,{labels[place - 1000]}\n")
        state = Path(folder) / "state"
        recent = Path(folder) / "recent.json"
        recent.write_text('{"memory": {"keep": "last", "samples": 100000}}')
        for name, source, size, least, options in (
            ("limen watch", rows, n, 100_000, []),
            ("limen watch with a state", rows, n, 100_000, ["--state", str(state)]),
            (
                "limen watch with a state, last 100,000",
                rows,
                n,
                100_000,
                ["--state", str(state), "--definition", str(recent)],
            ),
            (
                "limen watch with a state, scores and labels apart",
                events,
                200_000,
                250_000,
                ["--state", str(state), "--id-column", "id"],
            ),
        ):
            command = [*LIMEN, "watch", "-q", *options]

            def watching(
                command: list[str] = command, source: Path = source, size: int = size
            ) -> float:
                shutil.rmtree(state, ignore_errors=True)
                taken, _, out = process(command, source)
                assert json.loads(out.splitlines()[-1])["samples"] in (size, 100_000, 199_000)
                return size / taken

            runs = in_turns({"limen": watching}, rounds=3)
            rate = sorted(runs["limen"])[1]
            yield Finding(
                name,
                f"{size:,}",
                rate,
                None,
                "samples per s of CPU",
                promise=f"at least {least:,}",
                kept=rate >= least,
                runs=runs,
            )


def groups_in_sql() -> Iterator[Finding]:
    """Is a threshold by group in SQL as fast as the columns fetched and handed to by_group?"""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")  # all its work in the thread that is timed
    limen.duckdb.register(connection)
    for groups in (10, 5_000, 100_000):
        connection.execute(
            f"CREATE OR REPLACE TABLE samples AS SELECT hash(range) % {groups} AS key, "
            "hash(range + 1) / 2**64 AS score, hash(range + 2) % 3 = 0 AS label "
            "FROM range(1_000_000)"
        )

        def in_sql() -> list[tuple[int, float]]:
            return connection.execute(
                "SELECT key, optimal_threshold(score, label, false_negative := 5).threshold "
                "FROM samples GROUP BY key"
            ).fetchall()

        def fetched() -> limen.GroupOptima:
            columns = connection.execute("SELECT * FROM samples").fetchnumpy()
            return limen.by_group(*columns.values(), false_negative=5)

        expected = fetched()
        assert all(expected.threshold(key) == threshold for key, threshold in in_sql())
        runs = threads_in_turns({"limen": in_sql, "by_group": fetched}, rounds=3, per=1_000_000)
        yield faster_by(
            "a threshold by group in DuckDB's SQL, against fetching and by_group",
            f"1,000,000 in {groups:,}",
            runs,
            "by_group",
            None,
            "ns per row",
        )


QUESTIONS = (help_at_once, large_files, streams, groups_in_sql)
