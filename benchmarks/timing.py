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
    contenders: dict[str, Callable[[], object]], rounds: int, per: int | dict[str, int] = 1
) -> dict[str, list[float]]:
    """Thread CPU time of each contender, every one once per round, divided by `per`.

    `per` may tell how much each of them does in a round. A contender may return a function
    that undoes its work; that is not timed. The first round warms caches up and is thrown away.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds + 1):
            for name, work in contenders.items():
                start = time.thread_time_ns()
                undo = work()
                taken = time.thread_time_ns() - start
                times[name].append(taken / (per if isinstance(per, int) else per[name]))
                if callable(undo):
                    undo()
                del undo
    finally:
        gc.enable()
    return {name: taken[1:] for name, taken in times.items()}


def faster_by(
    question: str,
    size: str,
    runs: dict[str, list[float]],
    peer: str,
    at_least: float | None,
    unit: str,
) -> Finding:
    """Median of the peer over median of limen, and whether it is as large as promised."""
    ours, theirs = statistics.median(runs["limen"]), statistics.median(runs[peer])
    ratio = theirs / ours
    promise = "" if at_least is None else f"at least {at_least:,g}x faster"
    kept = None if at_least is None else ratio >= at_least
    return Finding(question, size, ours, theirs, unit, ratio, promise, kept, runs)


def within(
    question: str, size: str, runs: dict[str, list[float]], at_most: float | None, unit: str
) -> Finding:
    """Median of limen alone, and whether it is as small as promised."""
    ours = statistics.median(runs["limen"])
    promise = "" if at_most is None else f"at most {at_most:,g} {unit}"
    kept = None if at_most is None else ours <= at_most
    return Finding(question, size, ours, None, unit, None, promise, kept, runs)


def slower_by(
    question: str,
    size: str,
    runs: dict[str, list[float]],
    peer: str,
    at_most: float | None,
    unit: str,
) -> Finding:
    """Median of limen over median of the peer, and whether it is as small as promised."""
    ours, theirs = statistics.median(runs["limen"]), statistics.median(runs[peer])
    ratio = ours / theirs
    promise = "" if at_most is None else f"at most {at_most:g}x"
    kept = None if at_most is None else ratio <= at_most
    return Finding(question, size, ours, theirs, unit, ratio, promise, kept, runs)
