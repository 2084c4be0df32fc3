# SPDX-License-Identifier: Apache-2.0
"""The conditions of ``limen watch``: whether they hold, and what they are given to judge.

They are looked at with every line about all samples, and when a hundredth more rows have come than
samples count: often enough, as nothing moves much by fewer.
"""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from limen._core import Judge
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
_Table: TypeAlias = dict[tuple[int, Any], int]  # how many samples, by answer and label


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
            self._floors.add(score, label)
            return
        clock = self._watched.ledger.newest
        if label is not None or self.heard is None:
            self.heard = clock
        if self._floors.limits:
            judge = self._floors.judge
            judge.advance(clock)
            if score is not None and (known is None or known[0] is None):
                moment, answer = clock if time is None else time, self._floors.answer(score)
                judge.score(id, answer, answer, moment, label=None if known is None else known[2])
                judge.advance(clock)  # a score that came late may be old enough
            if label is not None:
                judge.label(id, label)

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
        if self._floors.limits:
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
                if name not in self._floors.limits
            }


class _Floors:
    """An alarm for each floor, made of the samples counted since: each once, at one age."""

    def __init__(self, options: Namespace, watched: Watched) -> None:
        age = options.age if options.age is not None else options.maturity
        costs = watched.aim.mistakes
        self._turned = watched.innermost()._turned  # an alarm knows one direction
        self._terms = [options.current, period_text(age), options.confidence]
        self._terms += [str(cost) for cost in costs.values()]
        self._threshold = options.current
        self.limits = {
            _written(name, limit): {
                "threshold": self._turned(options.current),
                name.replace("-", "_"): _as_typed(limit),
                **costs,
                "age": age,
                "confidence": options.confidence,
            }
            for name, limit in floors_of(options).items()
        }
        for terms in self.limits.values():
            Alarm(**terms)  # raises where there is no such alarm
        self._raised: set[str] = set()
        self.judge = Judge(as_moment(age) or 0)  # of rows that are joined by id
        self._both: _Table = {}  # of rows that have both
        self._before: dict[str, _Table] = {}  # what had been counted when a floor was added

    def answer(self, score: float) -> bool:
        """Return what the threshold in use answers."""
        return bool(self._turned(score) >= self._turned(self._threshold))

    def add(self, score: Any, label: Any) -> None:
        """Count a row that has both."""
        if self.limits:
            place = int(self.answer(score)), label
            self._both[place] = self._both.get(place, 0) + 1

    def _counted(self) -> _Table:
        entered = {(now, label): many for _, now, _, label, _, many in self.judge.counts()}
        return entered or dict(self._both)

    def _alarm(self, name: str) -> Alarm:
        before = self._before.get(name, {})
        rows = [
            ("", answer, answer, label, 1, many - before.get((answer, label), 0))
            for (answer, label), many in self._counted().items()
        ]
        return Alarm.from_counts(rows, **self.limits[name])

    def broken(self, name: str) -> tuple[bool, Callable[[], str]]:
        """Whether an alarm is or was raised, and how it stands."""
        alarm = self._alarm(name)
        if name not in self._raised and alarm.raised:
            self._raised.add(name)
        return name in self._raised, lambda: alarm.reason

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
            for name in self.limits
            for alarm in [self._alarm(name)]
        }

    def kept(self) -> dict[str, Any]:
        """Describe all this, ready for JSON."""
        before = {name: self._before.get(name, {}) for name in self.limits}
        return {
            "terms": self._terms,
            "judge": self.judge.state().hex(),
            "both": [[*place, many] for place, many in self._both.items()],
            "before": {
                name: [[*place, many] for place, many in table.items()]
                for name, table in before.items()
            },
            "raised": sorted(self._raised),
        }

    def restore(self, kept: dict[str, Any]) -> bool:
        """Go on from what `kept` described; False where another threshold was in use then."""
        if kept["terms"] != self._terms:
            return False
        self.judge = Judge.restored(bytes.fromhex(kept["judge"]))
        self._both = {(answer, label): many for answer, label, many in kept["both"]}
        for name in self.limits:
            rows = kept["before"].get(name)
            self._before[name] = (
                self._counted()
                if rows is None
                else {(answer, label): many for answer, label, many in rows}
            )
        self._raised = {name for name in kept["raised"] if name in self.limits}
        return True


def _written(name: str, value: Any) -> str:
    """Write a condition as it is typed."""
    return name if value is None else f"{name}={period_text(_as_typed(value))}"


def _as_typed(value: Any) -> Any:
    """Return a fraction as a float where that reads as the same number, so 0.9 and not 9/10."""
    same = isinstance(value, Fraction) and Fraction(repr(float(value))) == value
    return float(value) if same else value
