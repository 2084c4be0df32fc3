# SPDX-License-Identifier: Apache-2.0
"""The output of ``limen watch``: when a line is due, and what is in it."""

from __future__ import annotations

import sys
from itertools import islice
from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.cli.output import as_line, print_messages
from limen.cli.watch_options import as_moment
from limen.service.points.events import as_datetime
from limen.service.points.rows import UNLABELLED, Rows
from limen.service.points.stream import Written

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from limen.cli.rows import Place
    from limen.cli.watch_alerts import Alerts
    from limen.cli.watch_model import Watched
    from limen.service.points.events import Event, Ids

__all__ = ["Output"]

_IN_TURN = 16  # groups that are looked at after a row of another one


class Output:
    """The lines about one model, collected until they are flushed.

    Attributes
    ----------
    lines
        Those that are not yet written.
    rows
        Of the latest line about all samples.
    written
        The threshold of the latest line about each group that had a row, and about all samples,
        whose name is None.
    time
        Of the latest row that has one, as it is shown.
    alerts
        The conditions of --alert; None without.
    """

    def __init__(
        self,
        options: Namespace,
        watched: Watched,
        place: Place,
        alerts: Alerts | None,
        refuse: Callable[[Exception], None],
    ) -> None:
        self.refuse = refuse  # what the memory refuses
        self._options, self._watched, self._place = options, watched, place
        self.alerts = alerts
        self.lines: list[str] = []
        # What a model without samples says: nothing is positive.
        never = inf if watched.innermost().direction == ">=" else -inf
        self.written: dict[str | None, Any] = {None: None if watched.at_least else never}
        self.rows = 0
        self._batch, self._known = _Batch(Rows(), None), None
        self._more: dict[str, Any] = {}
        self._new = True  # whether the event happens for the first time
        self.time: Any = None
        self._period: Any = None  # the number of the --each-period of the latest row
        self._turn: Iterator[str] = iter(())  # groups that are still to be looked at
        self._inner = watched.innermost()
        self._warned = False
        self._sure = options.recommended or options.current is not None
        self._in_rhythm = options.every is not None or options.each_period is not None

    # ---- between the rows of an event: see limen.service.points.stream ------------------------

    def begin(self, rows: Rows, ids: Ids, more: dict[str, Any]) -> None:
        """Look at the rows that come."""
        self._batch, self._more, self._new = _Batch(rows, ids), more, "asked" not in more

    def before(self, row: int, size: int) -> tuple[int, Any, int]:
        """Stop where a line may be due."""
        watched = self._watched
        if watched.groups is not None or self.alerts is not None:
            if self.alerts is not None and watched.ledger is not None:
                self._known = watched.ledger._known(self._batch.ids[row])
            return row + 1, None, 0
        if self._in_rhythm:
            return self._next_line(row, size), None, 0
        return size, self._inner, watched.at_least

    def after(self, begin: int, end: int, refusal: Exception | None) -> None:
        """Add the lines that are due after the last of some rows."""
        self._place.number = self._watched.point.taken
        self._watched.asking = self._new and end > begin
        time = self._batch.latest_time(begin, end)
        self.time = self.time if time is None else time
        if end > begin:
            if self.alerts is not None:
                self.alerts.take(*self._batch.row(begin), self._known)
            self._look_after(end - 1)
        if self._watched.asked:  # from the log, it is asked after the same rows
            self._more.setdefault("asked", []).append(end)
        self._watched.asking = self._watched.asked = False
        if refusal is not None:
            self.refuse(refusal)

    def _next_line(self, begin: int, size: int) -> int:
        """Return after which row a line is due by the rhythm, as far as one is there."""
        every: int | None = self._options.every
        if every is not None:
            return min(size, begin + every - self._place.number % every)
        periods = self._batch.periods(self._options.each_period)[begin:]
        new = (periods == periods) & (periods != self._period)
        return begin + int(new.argmax()) + 1 if new.any() else size

    def _look_after(self, row: int) -> None:
        """Add the lines that are due after a row."""
        watched, last = self._watched, self.written[None]
        group = watched.group_of(self._batch.group(row), self._batch.ids, row)
        if group is not None:
            self.written.setdefault(group, None)
        if not self._in_rhythm:
            few = watched.at_least and len(self._inner) < watched.at_least
            value = None if few else self._inner.threshold
            if value != last and (value == value or last == last):
                self.add()
            if group is not None:
                self.add_changed(group)
            if watched.clocked:
                for name in self._others():
                    self.add_changed(name)
        elif self.is_due() if self._options.every is not None else self._begins(row):
            self.add_all()
        if self.alerts is not None and self._place.number >= self.alerts.due:
            self._look()

    def is_due(self) -> bool:
        """Whether --every asks for a line after as many rows as there are."""
        every = self._options.every
        return every is not None and self._place.number % every == 0

    def _begins(self, row: int) -> bool:
        """Whether a row is the first one of its --each-period."""
        before, period = self._period, self._batch.periods(self._options.each_period)[row]
        if period == period:
            self._period = period
        return period == period and before is not None and period != before

    def _others(self) -> list[str]:
        """Name some groups, each in its turn: their samples leave by the clock."""
        names = list(islice(self._turn, _IN_TURN))
        if len(names) < _IN_TURN:
            self._turn = iter([name for name in self.written if name is not None])
        return names

    def add_changed(self, group: str) -> None:
        """Add a line about a group if its threshold is not the one last written."""
        value, last = self._watched.value(group), self.written.get(group)
        if value != last and (value == value or last == last):
            self.add(group)

    def add_all(self) -> None:
        """Add a line about all samples, and one about each group that changed."""
        self.add()
        for name in sorted({*self._watched.names(), *self.written} - {None}, key=str):
            self.written.setdefault(name, None)
            self.add_changed(name)  # type: ignore[arg-type]

    def add(self, group: str | None = None) -> None:
        """Add a line."""
        watched, rows = self._watched, self._place.number
        if group is None:
            if self.alerts is not None:
                self._look()
            self.rows = rows
        self.written[group] = watched.value(group)
        facts: dict[str, Any] = {} if watched.groups is None else {"group": group}
        facts |= {"rows": rows, "samples": watched.samples(group), **watched.facts(group)}
        if self._sure and facts["threshold"] is not None:
            facts |= watched.sureness(group)
        if group is None:
            facts |= watched.account()
            if self._options.skip_malformed:
                facts["skipped"] = watched.point.skipped
            if self.alerts is not None:
                facts |= self.alerts.facts()
        self.lines.append(as_line(facts | self._now()))

    def _now(self) -> dict[str, Any]:
        return {} if self.time is None else {"time": self.time}

    def add_event(self, event: Event) -> None:
        """Add a line about an alert, a proposal, a decision or a deployment of the point."""
        assert event.more is not None
        more, kind = event.more, event.kind
        facts: dict[str, Any] = {"event": kind, "rows": self._place.number}
        if kind == "alert":
            facts = {"event": "over" if more["ended"] else "alert", "alert": more["name"],
                     "rows": self._place.number, "reason": more["text"]}  # fmt: skip
        else:
            names = ("thresholds", "verdict", "reason")
            facts |= {name: more[name] for name in names if name in more}
        self.lines.append(as_line(facts | self._now()))

    def _look(self) -> None:
        """Look whether a condition of --alert began to hold or ended; add a line for each."""
        assert self.alerts is not None
        rows = self._place.number
        for name, holds, reason in self.alerts.look(rows):
            event = {"event": "alert" if holds else "over", "alert": name, "rows": rows}
            self.lines.append(as_line(event | {"reason": reason} | self._now()))

    def flush(self) -> None:
        """Write the lines."""
        self._warn()
        if self.lines:
            sys.stdout.write("".join(self.lines))
            sys.stdout.flush()
            self.lines.clear()

    def _warn(self) -> None:
        """Warn once that no sample counts, if all came too late."""
        if self._warned or self._watched.samples():
            return
        found = self._watched.account()
        for name, problem, asked in (
            ("refused", "labels came later than the window keeps their scores", "memory.length"),
            ("expired", "scores got no label, or labels no score, in time", "time_to_live"),
        ):
            if found.get(name):
                self._warned = True
                print_messages(
                    f"limen: no sample counts: {found[name]:,} {problem} ({asked}). Choose a "
                    "longer period.",
                    quiet=self._options.quiet,
                )
                return


class _Batch:
    """The rows of one event, as lines need them."""

    def __init__(self, rows: Rows, ids: Ids) -> None:
        self.ids: Any = ids
        self._rows, self._groups = rows, rows.named_segments()
        self._scores, self._labels = rows.column("scores"), rows.column("labels")
        self._times, self._kinds = rows.column("times"), rows.column("kinds")

    def group(self, row: int) -> str | None:
        """Return the group of a row; None where it has none."""
        return None if self._groups is None else self._groups[row]

    def row(self, row: int) -> tuple[Any, float | None, int | None, Any]:
        """Return the id, score, label and time of a row; None for what it lacks."""
        assert self._scores is not None
        assert self._labels is not None
        score, label = float(self._scores[row]), int(self._labels[row])
        return (
            None if self.ids is None else self.ids[row],
            None if score != score else score,
            None if label == UNLABELLED else label,
            self._moment(row),
        )

    def _moment(self, row: int) -> Any:
        """Return the time of a row as a number; None where it has none."""
        if self._times is None or self._kinds is None or self._kinds[row] == Written.MISSING:
            return None
        word = self._times[row]
        return float(word.view(np.float64)) if self._kinds[row] == Written.REAL else int(word)

    def latest_time(self, begin: int, end: int) -> Any:
        """Return the time of the last of some rows that has one, as it is shown; None without."""
        row = end - 1
        while row >= begin and self._moment(row) is None and self._kinds is not None:
            row -= 1
        if row < begin or self._kinds is None:
            return None
        kind, moment = self._kinds[row], self._moment(row)
        if kind < Written.LOCAL:
            return moment
        found = as_datetime(moment)
        return (found if kind == Written.ZONED else found.replace(tzinfo=None)).isoformat()

    def periods(self, period: Any) -> NDArray[np.float64]:
        """Return the number of the period in which each row lies; nan where it has no time."""
        if self._times is None or self._kinds is None:
            return np.full(len(self._rows), nan)
        real = self._kinds == Written.REAL
        found = np.where(real, self._times.view(np.float64), self._times) // as_moment(period)
        return np.where(self._kinds == Written.MISSING, nan, found)
