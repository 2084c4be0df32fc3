# SPDX-License-Identifier: Apache-2.0
"""CPU times of several contenders, taken in turns, and what they say as ratios."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Finding:
    """One line of the result: a question, two times, and what was promised."""

    question: str
    size: str
    limen: float
    peer: float | None
    unit: str
    ratio: float | None = None
    promise: str = ""
    kept: bool | None = None
    runs: dict[str, list[float]] = field(default_factory=dict)


def in_turns(
    contenders: dict[str, Callable[[], object]], rounds: int, per: int = 1
) -> dict[str, list[float]]:
    """Thread CPU time of each contender, every one once per round, divided by `per`.

    A contender may return a function that undoes its work; that is not timed. The first round
    warms caches up and is thrown away.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds + 1):
            for name, work in contenders.items():
                start = time.thread_time_ns()
                undo = work()
                times[name].append((time.thread_time_ns() - start) / per)
                if callable(undo):
                    undo()
                del undo
    finally:
        gc.enable()
    return {name: taken[1:] for name, taken in times.items()}


def faster_by(
    question: str, size: str, runs: dict[str, list[float]], peer: str, at_least: float, unit: str
) -> Finding:
    """Median of the peer over median of limen, and whether it is as large as promised."""
    ours, theirs = statistics.median(runs["limen"]), statistics.median(runs[peer])
    ratio = theirs / ours
    promise = f"at least {at_least:g}x faster"
    return Finding(question, size, ours, theirs, unit, ratio, promise, ratio >= at_least, runs)


def slower_by(
    question: str, size: str, runs: dict[str, list[float]], peer: str, at_most: float, unit: str
) -> Finding:
    """Median of limen over median of the peer, and whether it is as small as promised."""
    ours, theirs = statistics.median(runs["limen"]), statistics.median(runs[peer])
    ratio = ours / theirs
    return Finding(
        question, size, ours, theirs, unit, ratio, f"at most {at_most:g}x", ratio <= at_most, runs
    )
