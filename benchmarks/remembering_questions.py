# SPDX-License-Identifier: Apache-2.0
"""Questions about windows and files, each verified before it is timed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.timing import Finding, faster_by, in_turns, slower_by
from benchmarks.workloads import by_sorting, samples
from limen import Fading, LastN, LastPeriod, OnlineThreshold, load, merge

try:
    from river.utils import Rolling
except ImportError:  # the comparison with it is left out
    Rolling = None

HELD = 100_000
STEPS = 10_000
ROUNDS = 11


def stream(n: int, seed: int) -> list[tuple[float, int]]:
    scores, labels = samples("uniform", n, seed)
    return list(zip(scores.tolist(), labels.tolist(), strict=True))


def parts(rows: list[tuple]) -> Iterator[list[tuple]]:
    """New samples for every round, so that nobody meets a score that is still in the cache."""
    return iter([rows[begin : begin + STEPS] for begin in range(HELD, len(rows), STEPS)])


def bare(rows: list[tuple[float, int]]) -> Callable[[], object]:
    """Updates alone, with as many samples held as the windows have; undone untimed."""
    cut, rounds = OnlineThreshold(), parts(rows)
    for score, label in rows[:HELD]:
        cut.update(score, label)

    def work() -> Callable[[], None]:
        more = next(rounds)
        for score, label in more:
            cut.update(score, label)
        return lambda: cut.revert_many([s for s, _ in more], [y for _, y in more])

    return work


def stepping(window: object, rows: list[tuple[float, int]]) -> Callable[[], object]:
    rounds = parts(rows)
    for score, label in rows[:HELD]:
        window.update(score, label)

    def work() -> None:
        for score, label in next(rounds):
            window.update(score, label)

    return work


def last_n_steps() -> Iterator[Finding]:
    """How long does one step of a full window take, with the oldest sample leaving?"""
    rows = stream(HELD + STEPS * (ROUNDS + 1), seed=0)
    window = LastN(OnlineThreshold(), HELD)
    contenders = {"limen": stepping(window, rows), "update": bare(rows)}
    if Rolling is not None:
        rolling = Rolling(OnlineThreshold, window_size=HELD)
        contenders["river"] = stepping(rolling, rows)
    runs = in_turns(contenders, ROUNDS, per=STEPS)
    expected = by_sorting(*(np.array(column) for column in zip(*rows[-HELD:], strict=True)))
    assert expected == window.threshold
    assert Rolling is None or expected == rolling.threshold
    yield slower_by(
        "one step of LastN (insert and expire) against a bare update",
        f"{HELD:,}",
        runs,
        "update",
        1.5,
        "ns per sample",
    )
    if Rolling is not None:
        yield faster_by(
            "one step of LastN against river's Rolling around OnlineThreshold",
            f"{HELD:,}",
            runs,
            "river",
            1,
            "ns per sample",
        )


def last_period_steps() -> Iterator[Finding]:
    """How long does one step of a period take when every tenth event comes late?"""
    random = np.random.default_rng(2)
    count = HELD + STEPS * (ROUNDS + 1)
    late = np.where(random.random(count) < 0.1, random.random(count) * 0.9 * HELD, 0)
    times = (np.arange(count) - late).tolist()
    events = stream(count, seed=3)
    rows = [(score, label, time) for (score, label), time in zip(events, times, strict=True)]
    window, rounds = LastPeriod(OnlineThreshold(), float(HELD)), parts(rows)
    for score, label, time in rows[:HELD]:
        window.update(score, label, time=time)

    def work() -> None:
        for score, label, time in next(rounds):
            window.update(score, label, time=time)

    runs = in_turns({"limen": work, "update": bare(events)}, ROUNDS, per=STEPS)
    inside = np.array(times) > max(times) - HELD
    scores, labels = (np.array(column)[inside] for column in zip(*events, strict=True))
    assert by_sorting(scores, labels) == window.threshold
    assert len(window) == len(scores)
    yield slower_by(
        "one step of LastPeriod, 10 % of the events late, against a bare update",
        f"{HELD:,}",
        runs,
        "update",
        2,
        "ns per event",
    )


def files() -> Iterator[Finding]:
    """How fast is a million samples saved and loaded? CPU time, without waiting for the disk."""
    n = 1_000_000
    cut = OnlineThreshold()
    cut.update_many(*samples("uniform", n))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.limen"
        cut.save(path)
        assert load(path)._state() == cut._state()
        size = os.path.getsize(path) / 1e6
        runs = in_turns(
            {"save": lambda: cut.save(path), "load": lambda: load(path) and None}, ROUNDS, per=1
        )
    for name, taken in runs.items():
        speed = size / (float(np.median(taken)) / 1e9)
        promise, kept = "at least 100 MB/s", speed >= 100
        yield Finding(
            f"{name} of a model", f"{n:,}", speed, None, "MB/s", promise=promise, kept=kept
        )


def fading_steps() -> Iterator[Finding]:
    """How long does one step of fading take, dividing and dropping included?"""
    rows = stream(HELD + STEPS * (ROUNDS + 1), seed=4)
    fading = Fading(OnlineThreshold(), half_life=3_000)
    runs = in_turns({"limen": stepping(fading, rows), "update": bare(rows)}, ROUNDS, per=STEPS)
    scores, labels = (np.array(column) for column in zip(*rows, strict=True))
    order = np.argsort(scores)
    weights = 2.0 ** ((np.arange(len(rows)) - len(rows) + 1) / 3_000)
    z = np.where(labels == 1, -weights, weights)[order]
    saved = np.append(0, np.cumsum(z))
    at = np.searchsorted(scores[order], fading.threshold)
    assert saved[at] >= saved.max() - len(fading) * 2.0**-29
    yield slower_by(
        f"one step of Fading, {len(fading):,} scores held, against a bare update at {HELD:,}",
        f"{len(fading):,}",
        runs,
        "update",
        2.5,
        "ns per sample",
    )


def merging() -> Iterator[Finding]:
    """How long does it take to merge two halves, or many parts, against loading all at once?"""
    n = 1_000_000
    scores, labels = samples("uniform", n)
    whole = OnlineThreshold()
    whole.update_many(scores, labels)

    def parts_of(count: int) -> list[OnlineThreshold]:
        parts = [OnlineThreshold() for _ in range(count)]
        for place, part in enumerate(parts):
            part.update_many(scores[place::count], labels[place::count])
        return parts

    def load_all() -> None:
        OnlineThreshold().update_many(scores, labels)

    for count, promise in ((2, 2), (100, None)):
        models = parts_of(count)
        assert whole._state() == merge(models)._state()

        def join(models: list[OnlineThreshold] = models) -> None:
            merge(models)

        runs = in_turns({"limen": join, "update_many": load_all}, 7, per=n)
        yield slower_by(
            f"merge of {count} parts against update_many of all samples",
            f"{n:,}",
            runs,
            "update_many",
            promise,
            "ns per sample",
        )


QUESTIONS = (last_n_steps, last_period_steps, fading_steps, merging, files)
