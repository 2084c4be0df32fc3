# SPDX-License-Identifier: Apache-2.0
"""The conditions of ``limen watch``: whether they hold, and what they are given to judge.

They are looked at with every line about all samples, and when a hundredth more rows have come than
samples count: often enough, as nothing moves much by fewer.
"""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, TypeAlias

from limen.cli.option_values import period_text
from limen.cli.watch_options import alert_value, as_moment, floors_of
from limen.digits import plain
from limen.trust.alarm import Alarm

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator

    from limen.cli.watch_model import Watched

__all__ = ["Alerts"]

# Whether it holds, and the function that says why, which takes longer.
Condition: TypeAlias = "Callable[[], tuple[bool, Callable[[], str]]]"


class Alerts:
    """All conditions of one stream, and which of them hold.

    Attributes
    ----------
    due
        The number of rows at which to look next.
    heard
        What the clock of the ledger showed when the latest label came.
    """

    def __init__(self, options: Namespace, watched: Watched) -> None:
        self._options, self._watched = options, watched
        self.due, self.heard = 1, None
        self._holding: dict[str, bool] = {}
        self._floors = _Floors(options, watched)
        known: dict[str, Condition] = {
            "interval": self._interval,
            "change": self._change,
            "regret": self._regret,
            "late": self._late,
        }
        written = {_written(name, value): name for name, value in options.alerts}
        self._conditions: dict[str, Condition] = {
            text: known.get(name) or partial(self._floors.broken, text)
            for text, name in written.items()
        }

    # ---- what comes in ------------------------------------------------------------------------

    def take(
        self, id: str | None, score: float | None, label: int | None, time: Any, known: Any
    ) -> None:
        """Add a row that the model has taken; `known` is what a ledger knew of its id before.

        The score is None where the row has none, and so is the label.
        """
        if id is None or self._watched.ledger is None:
            for alarm in self._floors.alarms.values():
                alarm.update(self._floors.turned(score), label)
            return
        clock = self._watched.ledger.newest
        if label is not None or self.heard is None:
            self.heard = clock
        if self._floors.alarms:
            self._floors.enter(clock)
            if score is not None and (known is None or known[0] is None):
                moment = clock if time is None else time
                self._floors.wait(id, moment, score, None if known is None else known[2])
            if label is not None:
                self._floors.learn(id, label, clock)
            self._floors.enter(clock)  # a score that came late may be old enough

    # ---- what is asked ------------------------------------------------------------------------

    def look(self, rows: int) -> Iterator[tuple[str, bool, str]]:
        """Yield the conditions that began to hold, or ended, and why."""
        self.due = rows + max(1, self._watched.samples() // 100)
        for name, condition in self._conditions.items():
            holds, reason = condition()
            if holds is not self._holding.get(name, False):
                self._holding[name] = holds
                yield name, holds, reason()

    def facts(self) -> dict[str, Any]:
        """Return what a line says: which conditions hold, and how floors stand."""
        facts: dict[str, Any] = {"alerts": [name for name, held in self._holding.items() if held]}
        if self._floors.alarms:
            facts["floors"] = self._floors.facts()
        return facts

    def _interval(self) -> tuple[bool, Callable[[], str]]:
        watched, options = self._watched, self._options
        keeps = watched.model(None).keeps(options.current, confidence=options.confidence)

        def reason() -> str:
            low, high = map(plain, watched.interval(None))
            side = "lies in" if keeps else "lies outside of"
            level = f"{options.confidence * 100:g} %"
            return f"{options.current:.6g} {side} the {level} interval, {low} to {high}."

        return not keeps, reason

    def _change(self) -> tuple[bool, Callable[[], str]]:
        found = self._watched.proposal()
        if found is None:
            return False, lambda: "No change is proposed any more."
        return True, lambda: found.reason

    def _regret(self) -> tuple[bool, Callable[[], str]]:
        assert self._watched.ledger is not None
        limit, regret = alert_value(self._options, "regret"), self._watched.ledger.regret
        return regret > limit, lambda: f"Regret is {regret:g}, the limit {float(limit):g}."

    def _late(self) -> tuple[bool, Callable[[], str]]:
        ledger, period = self._watched.ledger, alert_value(self._options, "late")
        assert ledger is not None
        clock = ledger.newest
        if clock is None or self.heard is None:
            return False, str
        silent = clock - self.heard
        waiting = f"{ledger.pending:,} ids wait"
        if silent > as_moment(period) and ledger.pending:
            dated = isinstance(period, timedelta)
            length = timedelta(microseconds=silent) if dated else silent
            return True, lambda: f"No label has come for {period_text(length)}; {waiting}."
        return False, lambda: f"Labels come again; {waiting}."

    # ---- what a state keeps -------------------------------------------------------------------

    def kept(self) -> dict[str, Any]:
        """Describe all this, ready for JSON."""
        holding = [name for name, held in self._holding.items() if held]
        return {"holding": holding, "heard": self.heard, "floors": self._floors.kept()}

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on from what `kept` described, as far as the conditions are the same."""
        self._holding = {name: True for name in kept["holding"] if name in self._conditions}
        self.heard = kept["heard"]
        if not self._floors.restore(kept["floors"]):
            self._holding = {
                name: held
                for name, held in self._holding.items()
                if name not in self._floors.alarms
            }


class _Floors:
    """An alarm for each floor, given every sample once, at one age where labels come later.

    Where they are joined by id, a sample waits here until it is old enough, with the label as known
    by then. It takes about 300 bytes while it waits.
    """

    def __init__(self, options: Namespace, watched: Watched) -> None:
        age = options.age if options.age is not None else options.maturity
        self._age = as_moment(age)
        costs = watched.aim.mistakes
        self.turned = watched.innermost()._turned  # an alarm knows one direction
        self._terms = [options.current, period_text(age), options.confidence]
        self._terms += [str(cost) for cost in costs.values()]
        self.alarms = {
            _written(name, limit): Alarm(
                self.turned(options.current),
                **{name.replace("-", "_"): _as_typed(limit)},
                **costs,
                age=self._age,
                confidence=options.confidence,
            )
            for name, limit in floors_of(options).items()
        }
        self._raised: set[str] = set()
        self._young: dict[str, list[Any]] = {}  # id: time, score, label
        self._line: list[tuple[Any, int, str]] = []  # the same ids by time, a heap
        self._scored = 0

    def broken(self, name: str) -> tuple[bool, Callable[[], str]]:
        """Whether an alarm is or was raised, and how it stands."""
        alarm = self.alarms[name]
        if name not in self._raised and alarm.raised:
            self._raised.add(name)
        return name in self._raised, lambda: alarm.reason

    def enter(self, now: Any) -> None:
        """Let samples in that are old enough, in the order of their times."""
        line = self._line
        while line and now - line[0][0] >= self._age:
            _, score, label = self._young.pop(heappop(line)[2])
            for alarm in self.alarms.values():
                alarm.update(self.turned(score), label)

    def wait(self, id: str, time: Any, score: float, label: int | None) -> None:
        """Let a new score wait until it is old enough."""
        if id not in self._young:  # else the ledger forgot it, and it comes again
            self._young[id] = [time, score, label]
            self._scored += 1
            heappush(self._line, (time, self._scored, id))

    def learn(self, id: str, label: int, now: Any) -> None:
        """Note the label of a sample, unless it was too old when the label came."""
        found = self._young.get(id)
        if found is not None and now - found[0] < self._age:
            found[2] = label

    def facts(self) -> dict[str, Any]:
        """Return how each floor stands."""
        return {
            name: {
                "evidence": alarm.value,
                "rate": alarm.rate,
                "bound": alarm.bound,
                "missing": alarm.missing,
                "raised": name in self._raised,
            }
            for name, alarm in self.alarms.items()
        }

    def kept(self) -> dict[str, Any]:
        """Describe all this, ready for JSON."""
        return {
            "terms": self._terms,
            "counts": {
                name: alarm.snapshot()["counts"].tolist() for name, alarm in self.alarms.items()
            },
            "raised": sorted(self._raised),
            "young": [[id, *found] for id, found in self._young.items()],
        }

    def restore(self, kept: dict[str, Any]) -> bool:
        """Go on from what `kept` described; False where another threshold was in use then."""
        if kept["terms"] != self._terms:
            return False
        for name, counts in kept["counts"].items():
            if name in self.alarms:
                self.alarms[name] = Alarm.from_snapshot(
                    {**self.alarms[name].settings, "counts": counts}
                )
        self._raised = {name for name in kept["raised"] if name in self.alarms}
        for id, time, score, label in kept["young"]:
            self.wait(id, time, score, label)
        return True


def _written(name: str, value: Any) -> str:
    """Write a condition as it is typed."""
    return name if value is None else f"{name}={period_text(_as_typed(value))}"


def _as_typed(value: Any) -> Any:
    """Return a fraction as a float where that reads as the same number, so 0.9 and not 9/10."""
    same = isinstance(value, Fraction) and Fraction(repr(float(value))) == value
    return float(value) if same else value
