# SPDX-License-Identifier: Apache-2.0
"""The output of ``limen watch``: when a line is due, and what is in it."""

from __future__ import annotations

import sys
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any

from limen._core import add_rows
from limen.cli.output import as_line, print_messages
from limen.cli.watch_options import WINDOWS, typed

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator

    from limen.cli.rows import Place
    from limen.cli.watch_alerts import Alerts
    from limen.cli.watch_model import Watched
    from limen.cli.watch_rows import Batch

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
    skipped
        How many rows were bad.
    alerts
        The conditions of --alert; None without.
    """

    def __init__(
        self, options: Namespace, watched: Watched, place: Place, alerts: Alerts | None
    ) -> None:
        self._options, self._watched, self._place = options, watched, place
        self.alerts = alerts
        self.lines: list[str] = []
        # What a model without samples says: nothing is positive.
        never = inf if watched.innermost().direction == ">=" else -inf
        self.written: dict[str | None, Any] = {None: None if watched.at_least else never}
        self.rows = self.skipped = 0
        self.time: Any = None
        self._period: Any = None  # the number of the --each-period of the latest row
        self._turn: Iterator[str] = iter(())  # groups that are still to be looked at
        self._inner = watched.innermost()
        self._warned = False
        self._sure = options.recommended or options.current is not None
        self._in_rhythm = options.every is not None or options.each_period is not None

    def take(self, batch: Batch, refuse: Callable[[Exception], None]) -> None:
        """Update the model by rows, and add the lines that are due after each.

        `refuse` is called with what the model refuses.
        """
        watched, alerts, place, done = self._watched, self.alerts, self._place, 0
        if watched.timed:
            batch.hand_over_times()
        slowly = watched.groups is not None or alerts is not None
        looked_at = None if slowly or self._in_rhythm else self._inner
        while done < len(batch):
            begin, known = done, None
            end = begin + 1 if slowly else self._next_line(batch, begin)
            if alerts is not None and watched.ledger is not None:
                known = watched.ledger._known(batch.columns["ids"][begin])
            done, refusal = add_rows(
                watched.stored, batch.columns, begin, end, looked_at, watched.at_least
            )
            place.number += done - begin
            time = batch.latest_time(begin, done)
            self.time = self.time if time is None else time
            if refusal is not None:
                refuse(refusal)
                done += 1
                continue
            if alerts is not None:
                alerts.take(*batch.row(begin), known)
            self._after(batch, done - 1)

    def _next_line(self, batch: Batch, begin: int) -> int:
        """Return after which row a line is due by the rhythm, as far as one is there."""
        every: int | None = self._options.every
        size = len(batch)
        if every is not None:
            return min(size, begin + every - self._place.number % every)
        if self._options.each_period is not None:
            periods = batch.periods(self._options.each_period)[begin:]
            new = (periods == periods) & (periods != self._period)
            return begin + int(new.argmax()) + 1 if new.any() else size
        return size

    def _after(self, batch: Batch, row: int) -> None:
        """Add the lines that are due after a row."""
        watched, last = self._watched, self.written[None]
        group = watched.group_of(batch, row)
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
        elif self.is_due() if self._options.every is not None else self._begins(batch, row):
            self.add_all()
        if self.alerts is not None and self._place.number >= self.alerts.due:
            self._look()

    def is_due(self) -> bool:
        """Whether --every asks for a line after as many rows as there are."""
        every = self._options.every
        return every is not None and self._place.number % every == 0

    def _begins(self, batch: Batch, row: int) -> bool:
        """Whether a row is the first one of its --each-period."""
        before, period = self._period, batch.periods(self._options.each_period)[row]
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
                facts["skipped"] = self.skipped
            if self.alerts is not None:
                facts |= self.alerts.facts()
        self.lines.append(as_line(facts | self._now()))

    def _now(self) -> dict[str, Any]:
        return {} if self.time is None else {"time": self.time}

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
            ("refused", "labels came later than the window keeps their scores", WINDOWS),
            ("expired", "scores got no label, or labels no score, in time", ("time_to_live",)),
        ):
            if found.get(name):
                self._warned = True
                print_messages(
                    f"limen: no sample counts: {found[name]:,} {problem} "
                    f"({typed(self._options, asked)}). Choose a longer period.",
                    quiet=self._options.quiet,
                )
                return

    # ---- what a state keeps besides the model -------------------------------------------------

    def kept(self) -> dict[str, Any]:
        """Describe what was counted, ready for JSON."""
        alerts = {} if self.alerts is None else {"alerts": self.alerts.kept()}
        return {"skipped": self.skipped, **alerts}

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on from what `kept` described."""
        self.skipped = kept.get("skipped", 0)
        if self.alerts is not None and "alerts" in kept:
            self.alerts.restore(kept["alerts"])
