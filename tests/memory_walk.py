# SPDX-License-Identifier: Apache-2.0
"""The windows and ledgers of 0.1, in Python, beside those of the core: the same random calls.

Run `python tests/memory_walk.py STEPS [SEED]`. After every call both must have returned the same,
or raised the same kind of error, and must look the same.
"""

from __future__ import annotations

import copy
import math
import pickle
import sys
import time as clock
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

import old_memory.fading as old_fading
import old_memory.ledger as old_ledger
import old_memory.windows as old_windows
from streams import SmallNodeCut, SmallNodeThreshold

import limen

OLD = {
    "LastN": old_windows.LastN,
    "LastPeriod": old_windows.LastPeriod,
    "Fading": old_fading.Fading,
    "Ledger": old_ledger.Ledger,
}
NEW = {name: getattr(limen, name) for name in OLD}
UNITS = [None, None, None, 0.1, 1]
COSTS = [(1, 1), (1, 5), (0.1, 0.3), (Fraction(1, 3), Fraction(2, 7))]
BIG = 2**61
SELF = NEW["LastN"].__module__.startswith("old") or not hasattr(limen._core, "Ledger")
HOUR = timedelta(hours=1)
STARTS = {"naive": datetime(2026, 1, 1), "utc": datetime(2026, 1, 1, tzinfo=UTC)}


class SmallNodeCalibrator(limen.OnlineCalibrator):
    _capacities = (4, 0)


class Difference(AssertionError):
    pass


def same(one: Any, other: Any, about: bool = False) -> bool:
    if about and isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6) or one == other
    return one == other


class Torn(Exception):
    """The old ledger has met a sum that is too large, and may have changed in part."""


class Walk:
    """One pair of objects, and random calls to both."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.seed = seed
        self.log: list[str] = []
        self.steps = 0
        self.kind = random.choice(["threshold", "threshold", "cut", "calibrator"])
        self.times = random.choice(["none", "whole", "real", "mixed", "naive", "utc"])
        self.memory = random.choice(["all", "LastN", "LastPeriod", "Fading samples", "Fading time"])
        self.with_ids = self.memory == "all" or random.random() < 0.6
        if self.times == "none" and (
            self.memory == "Fading time" or (self.memory == "LastPeriod" and not self.with_ids)
        ):
            self.times = "whole"
        self.fades = self.memory.startswith("Fading")
        self.heavy = random.random() < 0.1 and not self.fades
        self.now = 0
        unit, costs = random.choice(UNITS), random.choice(COSTS)
        if self.heavy:
            unit, costs = None, (1, 1)
        self.unit = unit
        self.ids = [f"id{k}" for k in range(random.choice([3, 8, 30]))]
        if random.random() < 0.3:
            self.ids = list(range(-3, len(self.ids) - 3))
        size = random.choice([1, 2, 3, 5, 8, 13])
        periods = self.periods()

        def make(classes: dict[str, Any]) -> Any:
            if self.kind == "threshold":
                model: Any = SmallNodeThreshold(
                    false_positive=costs[0], false_negative=costs[1], unit=unit
                )
            elif self.kind == "cut":
                model = SmallNodeCut(unit=unit)
            else:
                model = SmallNodeCalibrator(unit=unit)
            if self.memory == "LastN":
                model = classes["LastN"](model, size)
            elif self.memory == "LastPeriod":
                model = classes["LastPeriod"](model, self.length(size))
            elif self.memory == "Fading samples":
                model = classes["Fading"](model, size, by="samples")
            elif self.memory == "Fading time":
                model = classes["Fading"](model, self.length(size), by="time")
            if not self.with_ids:
                return model
            given = dict(periods)
            if self.kind == "calibrator":
                given["false_positive"], given["false_negative"] = costs
            return classes["Ledger"](model, **given)

        self.broken = False
        old, new = self.both(lambda: make(OLD), lambda: make(NEW))
        if old is None:
            self.broken = True
            return
        self.old, self.new = old, new

    def length(self, steps: int) -> Any:
        return steps * HOUR if self.times in STARTS else steps

    def periods(self) -> dict[str, Any]:
        choices = [None, None, 1, 2, 4, 7]
        return {
            name: None if (steps := self.random.choice(choices)) is None else self.length(steps)
            for name in ("time_to_live", "maturity", "correctable")
        }

    def moment(self) -> Any:
        """A time near the newest; time goes by."""
        random = self.random
        late = random.random() < 0.3
        at = self.now - random.randint(0, 9) if late else self.now + random.choice([0, 0, 1, 1, 3])
        self.now = max(self.now, at)
        if self.times in STARTS:
            return STARTS[self.times] + at * HOUR
        if self.times == "real" or (self.times == "mixed" and random.random() < 0.5):
            return at + random.choice([0.0, 0.5, 0.125, -0.25])
        return at

    def both(self, one: Any, other: Any, about: bool = False) -> tuple[Any, Any]:
        """Call both; they must return the same, or raise the same kind of error."""
        results: list[Any] = []
        for call in (one, other):
            try:
                results.append((None, call()))
            except Exception as error:
                results.append((error, None))
        (error, found), (problem, value) = results
        if self.heavy and OverflowError in (type(error), type(problem)):
            raise Torn  # the old one is no oracle any more
        if type(error) is not type(problem):
            raise Difference(f"old: {error!r}, new: {problem!r}; {found!r}, {value!r}")
        if error is not None:
            return None, None
        return found, value

    def call(self, name: str, *given: Any, **named: Any) -> None:
        self.log.append(f"{name}{given} {named}")
        old, new = self.both(
            lambda: getattr(self.old, name)(*given, **named),
            lambda: getattr(self.new, name)(*given, **named),
        )
        as_list = [value.tolist() if hasattr(value, "tolist") else value for value in (old, new)]
        if as_list[0] != as_list[1]:
            raise Difference(f"returned {old!r} and {new!r}")

    def weight(self) -> Any:
        if self.heavy:
            return self.random.choice([1, BIG, BIG, 2**60, 0.5])
        return self.random.choice([1, 1, 1, 1, 2, 0.5, 0.1, 0, 3, 1e-9])

    def outcome(self) -> tuple[Any, ...]:
        random = self.random
        if self.kind != "cut":
            return (random.choice([0, 0, 1, True]),)
        if self.heavy:
            return random.choice([BIG, 1, 0, -BIG]), random.choice([BIG, 1, 0])
        return random.choice([0, 1, -1, 2, 0.5]), random.choice([0, 1, 2, 0.25, -1])

    def score(self) -> float:
        random = self.random
        return random.choice([random.randint(0, 9) / 8, random.random(), -0.0, math.inf, -math.inf])

    def step(self) -> None:
        (self.step_with_ids if self.with_ids else self.step_of_window)()
        self.look()
        self.steps += 1

    def timed(self, name: str = "time") -> dict[str, Any]:
        if self.times == "none" or self.memory in ("LastN", "Fading samples"):
            return {}
        return {name: self.moment()}

    def sample(self) -> tuple[Any, ...]:
        weight = () if self.kind == "cut" or self.random.random() < 0.5 else (self.weight(),)
        return (self.score(), *self.outcome(), *weight)

    def step_of_window(self) -> None:
        random = self.random
        chance = random.random()
        if chance < 0.75:
            self.call("update", *self.sample(), **self.timed())
        elif chance < 0.9:
            rows = [self.sample()[: 2 + (self.kind == "cut")] for _ in range(random.randint(0, 6))]
            columns: Any = [list(column) for column in zip(*rows, strict=True)] or (
                [[], [], []] if self.kind == "cut" else [[], []]
            )
            named: dict[str, Any] = {}
            if self.kind != "cut" and random.random() < 0.5:
                named["weights"] = [self.weight() for _ in rows]
            if self.timed():
                named["times"] = [self.moment() for _ in rows]
            self.call("update_many", *columns, **named)
        elif self.memory in ("LastPeriod", "Fading time"):
            self.call("advance", self.moment())

    def step_with_ids(self) -> None:
        random = self.random
        id, chance = random.choice(self.ids), random.random()
        if chance < 0.4:
            named: dict[str, Any] = {}
            if self.times != "none" and random.random() < 0.97:
                named["time"] = self.moment()
            if self.kind != "cut" and random.random() < 0.4:
                named["weight"] = self.weight()
            if random.random() < 0.3:
                named["answer"] = random.choice([0, 1])
            self.call("score", id, self.score(), **named)
        elif chance < 0.85:
            self.call("label", id, *self.outcome())
        elif chance < 0.93:
            self.call("forget", id)
        elif self.times != "none" or random.random() < 0.3:
            if self.times == "none":
                newest = self.old.newest
                self.call("advance", (newest or 0) + random.randint(-1, 3))
            else:
                self.call("advance", self.moment())

    def look(self) -> None:
        old, new = self.old, self.new
        for name in ("newest", "refused", "expired", "cost", "cost_ever", "regret"):
            if hasattr(old, name) or hasattr(new, name):
                about = self.fades and name in ("cost", "regret")
                self.agree(name, getattr(old, name), getattr(new, name), about)
        self.agree("len", len(old), len(new))
        if self.with_ids:
            if self.memory in ("LastPeriod", "Fading time"):
                self.agree("refused", old.model.refused, new.model.refused)
            self.agree("held", len(old.model), len(new.model))
            for id in self.ids:
                self.agree("in", id in old, id in new)
            old, new = old.model, new.model
        costs = {"false_negative": 3} if self.kind == "calibrator" else None
        one = old.optimum if costs is None else old.optimum(**costs)
        other = new.optimum if costs is None else new.optimum(**costs)
        if not self.fades:
            self.agree("optimum", one, other)
        else:
            self.agree("loss", one.loss, other.loss, about=True)
        if self.random.random() < 0.02 and not (SELF and self.memory == "Fading samples"):
            self.come_back()

    def agree(self, name: str, one: Any, other: Any, about: bool = False) -> None:
        if not same(one, other, about):
            raise Difference(f"{name}: old {one!r}, new {other!r}")

    def come_back(self) -> None:
        way = self.random.choice(["bytes", "copy", "pickle"])
        self.log.append(way)
        inner = self.new
        while hasattr(inner, "model"):
            inner = inner.model
        inner._check()
        if way == "bytes":
            stored = self.new.to_bytes()
            self.new = limen.from_bytes(stored)
            if self.new.to_bytes() != stored:
                raise Difference("other bytes after a round trip")
        else:
            self.new = (
                copy.copy(self.new) if way == "copy" else pickle.loads(pickle.dumps(self.new))
            )


def walk(seed: int, steps: int) -> int:
    pair = Walk(seed)
    if pair.broken:
        return 0
    try:
        for _ in range(steps):
            pair.step()
    except Torn:
        return pair.steps
    except Exception as error:
        setting = (pair.kind, pair.times, pair.memory, pair.with_ids, pair.heavy, pair.unit)
        print(f"seed {seed}: {setting} {getattr(pair, 'old', None)!r}", file=sys.stderr)
        for line in pair.log[-25:]:
            print("   ", line, file=sys.stderr)
        print(f"    {error!r}", file=sys.stderr)
        raise
    return steps


def main() -> None:
    wanted, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    done, failed, begun = 0, 0, clock.monotonic()
    while done < wanted:
        seed += 1
        try:
            done += walk(seed, 400)
        except Exception:
            failed += 1
            if failed >= 10:
                break
    print(
        f"{done:,} steps, last seed {seed}, {failed} walks failed, {clock.monotonic() - begun:.0f} s"
    )
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
