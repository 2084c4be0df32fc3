# SPDX-License-Identifier: Apache-2.0
"""The questions, one function each: verify the answers, time them in turns, compare."""

from __future__ import annotations

import resource
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator

import numpy as np
from sortedcontainers import SortedList

from benchmarks.timing import Finding, faster_by, in_turns, slower_by, within
from benchmarks.workloads import SHAPES, by_sorting, by_sorting_without_ties, samples
from limen import OnlineThreshold, _core, optimal_threshold

Undo = Callable[[], None]


def held(n: int) -> OnlineThreshold:
    cut = OnlineThreshold()
    scores, labels = samples("uniform", n)
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        cut.update(score, label)
    return cut


def arrivals(n: int, seed: int) -> list[tuple[float, int]]:
    scores, labels = samples("uniform", n, seed)
    return list(zip(scores.tolist(), labels.tolist(), strict=True))


def one_by_one(cut: OnlineThreshold, stream: list[tuple[float, int]]) -> Callable[[], Undo]:
    def work() -> Undo:
        for score, label in stream:
            cut.update(score, label)
            cut.threshold  # noqa: B018 - reading it is half of the job

        def undo() -> None:
            for score, label in stream:
                cut.revert(score, label)

        return undo

    return work


def sorted_list(held_scores: SortedList, stream: list[tuple[float, int]]) -> Callable[[], Undo]:
    def work() -> Undo:
        for score, _ in stream:
            held_scores.add(score)
            held_scores.bisect(0.5)

        def undo() -> None:
            for score, _ in stream:
                held_scores.remove(score)

        return undo

    return work


def verify_update(n: int, cut: OnlineThreshold, scores: SortedList) -> None:
    xs, ys = samples("uniform", n)
    assert cut.threshold == by_sorting(xs, ys)
    assert len(cut) == len(scores) == n
    assert scores.bisect_left(cut.threshold) == int((xs < cut.threshold).sum())


def update_against_sorted_list() -> Iterator[Finding]:
    """How long does one update take, with the optimum read, against keeping a sorted list?"""
    promises = {"avx512": (9, 10, 10), "avx2": (7, 9, 9)}.get(_core.isa, (5, 8, 8))
    for n, promise in zip((1_000, 100_000, 1_000_000), promises, strict=True):
        cut = held(n)
        scores = SortedList(samples("uniform", n)[0].tolist())
        verify_update(n, cut, scores)
        stream = arrivals(min(5_000, n // 5), seed=1)
        runs = in_turns(
            {"limen": one_by_one(cut, stream), "SortedList": sorted_list(scores, stream)},
            rounds=15,
            per=len(stream),
        )
        verify_update(n, cut, scores)
        yield faster_by(
            "update + threshold against SortedList.add + bisect (finds no optimum)",
            f"{n:,}",
            runs,
            "SortedList",
            promise,
            "ns per sample",
        )


def update_against_numpy() -> Iterator[Finding]:
    """How long does one update take against NumPy insert + cumsum + argmax?"""
    n = 100_000
    cut = held(n)
    scores, labels = samples("uniform", n)
    order = np.argsort(scores)
    ranked, z = scores[order], 1 - 2 * labels[order]
    stream = arrivals(1_000, seed=2)

    def recompute(extra: list[tuple[float, int]]) -> float:
        xs, zs, threshold = ranked, z, np.nan
        for score, label in extra:
            at = bisect_left(xs, score)
            xs, zs = np.insert(xs, at, score), np.insert(zs, at, 1 - 2 * label)
            saved = np.cumsum(zs)
            best = len(saved) - 1 - int(np.argmax(saved[::-1]))
            threshold = xs[best] / 2 + xs[best + 1] / 2
        return float(threshold)

    expected = recompute(stream)
    ours = one_by_one(cut, stream)
    undo = ours()
    assert cut.threshold == expected
    undo()
    runs = in_turns(
        {"limen": ours, "NumPy": lambda: recompute(stream) and None}, rounds=5, per=len(stream)
    )
    yield faster_by(
        "update + threshold against NumPy insert + cumsum + argmax",
        f"{n:,}",
        runs,
        "NumPy",
        1_000,
        "ns per sample",
    )


def growth() -> Iterator[Finding]:
    """How does the time of one update grow with the samples held?"""
    small, large = held(10_000), held(1_000_000)
    stream = arrivals(2_000, seed=3)
    runs = in_turns(
        {"limen": one_by_one(large, stream), "limen at 10,000": one_by_one(small, stream)},
        rounds=15,
        per=len(stream),
    )
    yield slower_by(
        "one update at 1,000,000 against one at 10,000",
        "1,000,000",
        runs,
        "limen at 10,000",
        5,
        "ns per sample",
    )


def bulk() -> Iterator[Finding]:
    """How long does a large batch take?"""
    n = 1_000_000
    scores, labels = samples("uniform", n)
    filled = OnlineThreshold()
    filled.update_many(scores, labels)
    assert filled.threshold == by_sorting(scores, labels)

    def load() -> None:
        OnlineThreshold().update_many(scores, labels)

    def argsort() -> None:
        np.argsort(scores)

    runs = in_turns({"limen": load, "np.argsort": argsort}, rounds=11, per=n)
    yield slower_by(
        "update_many into an empty object against np.argsort alone",
        f"{n:,}",
        runs,
        "np.argsort",
        1,
        "ns per sample",
    )

    m = 100_000
    more, their = samples("uniform", m, seed=4)
    stream = list(zip(more.tolist(), their.tolist(), strict=True))
    other = filled.copy()

    def batch() -> Undo:
        filled.update_many(more, their)
        return lambda: filled.revert_many(more, their)

    def singly() -> Undo:
        for score, label in stream:
            other.update(score, label)
        return lambda: other.revert_many(more, their)

    undo = [batch(), singly()]
    assert filled._state() == other._state()
    for take_back in undo:
        take_back()
    runs = in_turns({"limen": batch, "one by one": singly}, rounds=7, per=m)
    yield faster_by(
        "update_many of 100,000 into 1,000,000 against update one by one",
        f"{n:,}",
        runs,
        "one by one",
        1.5,
        "ns per sample",
    )
    yield within("update_many of 100,000 into 1,000,000", f"{n:,}", runs, 60, "ns per sample")


def whole_arrays() -> Iterator[Finding]:
    """How long does the search over whole arrays take against sorting them?"""
    cases = [("uniform", 1_000_000, 10), ("uniform", 10_000_000, 25)]
    cases += [(shape, 1_000_000, 5) for shape in SHAPES if shape != "uniform"]
    for shape, n, promise in cases:
        scores, labels = samples(shape, n)
        peer = by_sorting if shape == "saturated" else by_sorting_without_ties
        assert optimal_threshold(scores, labels).threshold == peer(scores, labels)

        def search(scores: np.ndarray = scores, labels: np.ndarray = labels) -> None:
            optimal_threshold(scores, labels)

        def sort(
            scores: np.ndarray = scores, labels: np.ndarray = labels, peer: Callable = peer
        ) -> None:
            peer(scores, labels)

        rounds = 9 if n <= 1_000_000 else 5
        runs = in_turns({"limen": search, "NumPy": sort}, rounds=rounds, per=n)
        yield faster_by(
            f"optimal_threshold against NumPy argsort + cumsum + argmax, {shape} scores",
            f"{n:,}",
            runs,
            "NumPy",
            promise,
            "ns per sample",
        )


def small_arrays() -> Iterator[Finding]:
    """How long does a single call on a small array take?"""
    calls = 500
    for n, promise in ((100, 1), (1_000, 1.5)):
        scores, labels = samples("uniform", n)
        assert optimal_threshold(scores, labels).threshold == by_sorting(scores, labels)

        def search(scores: np.ndarray = scores, labels: np.ndarray = labels) -> None:
            for _ in range(calls):
                optimal_threshold(scores, labels)

        def sort(scores: np.ndarray = scores, labels: np.ndarray = labels) -> None:
            for _ in range(calls):
                by_sorting_without_ties(scores, labels)

        runs = in_turns({"limen": search, "NumPy": sort}, rounds=9, per=calls)
        yield faster_by(
            "optimal_threshold of a small array against NumPy argsort + cumsum + argmax",
            f"{n:,}",
            runs,
            "NumPy",
            promise,
            "ns per call",
        )


def memory() -> Iterator[Finding]:
    """How much memory does a distinct score take after a million random updates?"""
    n = 1_000_000
    cut = held(n)
    each = sys.getsizeof(cut) / cut._distinct()
    yield Finding(
        "memory per distinct score, added one by one",
        f"{n:,}",
        each,
        None,
        "bytes",
        promise="at most 28 bytes",
        kept=each <= 28,
    )


def start_up() -> Iterator[Finding]:
    """How much slower is the import of limen, of a part and of all, than `import numpy`?"""

    def running(program: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    # `import limen` alone loads nothing yet.
    for loaded in ("OnlineThreshold, recommend", "*"):
        runs: dict[str, list[float]] = {"limen": [], "numpy": []}
        for _ in range(15):
            runs["limen"].append(running(f"from limen import {loaded}"))
            runs["numpy"].append(running("import numpy"))
        question = f"from limen import {loaded} against import numpy"
        yield slower_by(question, "", runs, "numpy", 1.3, "ms")


QUESTIONS = (
    update_against_sorted_list,
    update_against_numpy,
    growth,
    bulk,
    whole_arrays,
    small_arrays,
    memory,
    start_up,
)
