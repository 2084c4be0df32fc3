# SPDX-License-Identifier: Apache-2.0
"""The output of ``limen watch``: when a line is due, and what is in it."""

from __future__ import annotations

import sys
from datetime import datetime
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any

from limen.cli.output import as_line, print_messages
from limen.cli.watch_options import WINDOWS, typed

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from limen.cli.rows import Place
    from limen.cli.watch_alerts import Alerts
    from limen.cli.watch_model import Watched

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
        Of the latest row that has one.
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
        self._plain = not (self._in_rhythm or watched.at_least or alerts)

    def period_of(self, time: Any) -> Any:
        """Return the number of the --each-period in which a time lies, counted from the epoch."""
        period = self._options.each_period
        if time is None:
            return None
        if isinstance(time, datetime):
            return (time - datetime(1970, 1, 1, tzinfo=time.tzinfo)) // period
        return time // period

    def after_row(self, period: Any = None, group: str | None = None) -> None:
        """Add the lines that are due after a row, which changed this group and all."""
        if not self._plain:
            return self._after_row(period, group)
        value, last = self._inner.threshold, self.written[None]
        if value != last and (value == value or last == last):
            self.add(None, ahead=1)

    def _after_row(self, period: Any, group: str | None) -> None:
        options = self._options
        if group is not None:
            self.written.setdefault(group, None)
        if not self._in_rhythm:
            few, last = self._watched.at_least, self.written[None]
            value = None if few and len(self._inner) < few else self._inner.threshold
            if value != last and (value == value or last == last):
                self.add(None, ahead=1)
            if group is not None:
                self.add_changed(group, ahead=1)
            if self._watched.clocked:
                for name in self._others():
                    self.add_changed(name, ahead=1)
        elif (
            (self._place.number + 1) % options.every == 0
            if options.every is not None
            else self._begins(period)
        ):
            self.add_all(ahead=1)
        if self.alerts is not None and self._place.number + 1 >= self.alerts.due:
            self._look(ahead=1)

    def _begins(self, period: Any) -> bool:
        """Whether a row is the first one of its --each-period."""
        before = self._period
        self._period = before if period is None else period
        return period is not None and before is not None and period != before

    def _others(self) -> list[str]:
        """Name some groups, each in its turn: their samples leave by the clock."""
        names = list(islice(self._turn, _IN_TURN))
        if len(names) < _IN_TURN:
            self._turn = iter([name for name in self.written if name is not None])
        return names

    def add_changed(self, group: str, ahead: int = 0) -> None:
        """Add a line about a group if its threshold is not the one last written."""
        value, last = self._watched.value(group), self.written.get(group)
        if value != last and (value == value or last == last):
            self.add(group, ahead)

    def add_all(self, ahead: int = 0) -> None:
        """Add a line about all samples, and one about each group that changed."""
        self.add(None, ahead)
        for name in sorted({*self._watched.names(), *self.written} - {None}, key=str):
            self.written.setdefault(name, None)
            self.add_changed(name, ahead)  # type: ignore[arg-type]

    def add(self, group: str | None = None, ahead: int = 0) -> None:
        """Add a line, after so many rows more than the place counts."""
        watched, rows = self._watched, self._place.number + ahead
        if group is None:
            if self.alerts is not None:
                self._look(ahead)
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
        if self.time is None:
            return {}
        return {"time": self.time.isoformat() if isinstance(self.time, datetime) else self.time}

    def _look(self, ahead: int) -> None:
        """Look whether a condition of --alert began to hold or ended; add a line for each."""
        assert self.alerts is not None
        rows = self._place.number + ahead
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
