# SPDX-License-Identifier: Apache-2.0
"""Questions about ledgers: one event, many, bytes, files; each verified before it is timed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.timing import Finding, faster_by, in_turns, within
from benchmarks.workloads import by_sorting, samples
from limen import Ledger, OnlineThreshold, from_bytes

KNOWN = 100_000
STEPS = 10_000
ROUNDS = 11
MANY = 1_000_000


def named(begin: int, count: int) -> list[str]:
    return [f"order {k:08}" for k in range(begin, begin + count)]


def filled(ids: int, seed: int) -> Ledger:
    """A ledger that knows so many scores and labels."""
    ledger = Ledger(OnlineThreshold())
    scores, labels = samples("uniform", ids, seed)
    names = named(0, ids)
    ledger.score_many(names, scores)
    ledger.label_many(names, labels)
    assert ledger.threshold == by_sorting(scores, labels)
    return ledger


def single_calls() -> Iterator[Finding]:
    """How long do one score and its label take, one call each?"""
    count = STEPS * (ROUNDS + 1)
    scores, labels = samples("uniform", KNOWN + count, seed=5)
    ledger = Ledger(OnlineThreshold())
    names = named(0, KNOWN + count)
    ledger.score_many(names[:KNOWN], scores[:KNOWN])
    ledger.label_many(names[:KNOWN], labels[:KNOWN])
    rows = list(zip(names, scores.tolist(), labels.tolist(), strict=True))[KNOWN:]
    rounds = iter([rows[at : at + STEPS] for at in range(0, count, STEPS)])

    def work() -> None:
        for id, score, label in next(rounds):
            ledger.score(id, score)
            ledger.label(id, label)

    runs = in_turns({"limen": work}, ROUNDS, per=STEPS)
    assert ledger.threshold == by_sorting(scores, labels)
    yield within("Ledger: score and label of an id, one call each", f"{KNOWN:,}", runs, 800, "ns")


def batches() -> Iterator[Finding]:
    """How long do a score and its label take in calls of many?"""
    count = STEPS * (ROUNDS + 1)
    scores, labels = samples("uniform", KNOWN + count, seed=6)
    names = named(0, KNOWN + count)
    ledger = Ledger(OnlineThreshold())
    ledger.score_many(names[:KNOWN], scores[:KNOWN])
    ledger.label_many(names[:KNOWN], labels[:KNOWN])
    rounds = iter(range(KNOWN, KNOWN + count, STEPS))

    def work() -> None:
        at = next(rounds)
        part = slice(at, at + STEPS)
        ledger.score_many(names[part], scores[part])
        ledger.label_many(names[part], labels[part])

    runs = in_turns({"limen": work}, ROUNDS, per=STEPS)
    assert ledger.threshold == by_sorting(scores, labels)
    question = "Ledger: score_many and label_many, per id"
    yield within(question, f"{KNOWN:,}", runs, 500, "ns")


def bytes_per_id() -> Iterator[Finding]:
    """How many bytes does a ledger take per id, the id included, without the tree?"""
    for shape, ids in (("12 characters", "named(0, n)"), ("int64", "np.arange(n)")):
        code = (
            "import os, sys, numpy as np\n"
            "from benchmarks.ledger_questions import named\n"
            "from limen import Ledger, OnlineThreshold\n"
            f"n = {MANY}\nids = {ids}\n"
            "scores = np.random.default_rng(1).random(n)\n"
            "labels = (np.random.default_rng(2).random(n) < scores).astype(int)\n"
            "page = os.sysconf('SC_PAGE_SIZE')\n"
            "taken = lambda: int(open('/proc/self/statm').read().split()[1]) * page\n"
            "ledger = Ledger(OnlineThreshold())\n"
            "before = taken()\n"
            "for at in range(0, n, 1000):\n"
            "    ledger.score_many(ids[at : at + 1000], scores[at : at + 1000])\n"
            "    ledger.label_many(ids[at : at + 1000], labels[at : at + 1000])\n"
            "print((taken() - before - sys.getsizeof(ledger.model)) / n)\n"
        )
        command = [sys.executable, "-c", code]
        taken = [float(subprocess.check_output(command, text=True)) for _ in range(3)]
        question = f"bytes of a ledger per id of {shape}, without the tree"
        yield within(question, f"{MANY:,}", {"limen": taken}, 110, "bytes")


def loading() -> Iterator[Finding]:
    """How much faster is a ledger loaded than its events are replayed, call by call?"""
    scores, labels = samples("uniform", MANY, seed=7)
    names = named(0, MANY)
    rows = list(zip(names, scores.tolist(), labels.tolist(), strict=True))
    ledger = filled(MANY, seed=7)
    stored = ledger.to_bytes()
    assert from_bytes(stored).to_bytes() == stored

    def replay() -> None:
        again = Ledger(OnlineThreshold())
        for id, score, label in rows:
            again.score(id, score)
            again.label(id, label)

    def load() -> None:
        from_bytes(stored)

    def save() -> None:
        ledger.to_bytes()

    runs = in_turns({"limen": load, "replay": replay, "save": save}, 3, per=MANY)
    yield faster_by(
        "load of a ledger against replaying its events",
        f"{MANY:,}",
        runs,
        "replay",
        10,
        "ns per id",
    )
    yield within("save of a ledger", f"{MANY:,}", {"limen": runs["save"]}, None, "ns per id")


QUESTIONS = (single_calls, batches, bytes_per_id, loading)
