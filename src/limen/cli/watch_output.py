# SPDX-License-Identifier: Apache-2.0
"""The output of ``limen watch``: when a line is due, and what is in it."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

from limen.cli.exits import BAD_INPUT, Failure
from limen.cli.output import as_line, print_messages
from limen.cli.watch_options import WINDOWS, typed
from limen.memory.fading import Fading
from limen.memory.ledger import Ledger
from limen.memory.windows import LastPeriod

if TYPE_CHECKING:
    from argparse import Namespace

    from limen.cli.rows import Place

__all__ = ["Output", "sureness_of"]


def sureness_of(model: Any, options: Namespace) -> dict[str, Any]:
    """Return the recommended threshold and its interval; with --current whether to keep that.

    Where labels come later, this is a look at the evidence for a change: see `Ledger.proposal`.
    Below five samples of either label nothing is recommended, and the threshold in use is kept.
    """
    current, level = options.current, options.confidence
    low, high = model.interval(level)
    facts = {"recommended": model.recommended, "low": low, "high": high}
    if current is None:
        return facts
    facts["keep"] = model.keeps(current, confidence=level)
    if isinstance(model, Ledger):
        try:
            found = model.proposal(current, age=options.age, confidence=level)
        except ValueError as error:  # of weights
            raise Failure(str(error), BAD_INPUT) from None
        trial = model.trial
        facts |= {
            "change": None if found is None else found.candidate,
            "candidate": None if trial is None else trial.candidate,
            "evidence": None if trial is None else trial.evidence.value,
            "missing": None if trial is None else trial.evidence.missing,
            "candidates": model.candidates,
        }
    return facts


class Output:
    """The lines about one model, collected until they are flushed.

    Attributes
    ----------
    lines
        Those that are not yet written.
    threshold, rows
        Of the latest line.
    time
        Of the latest row that has one.
    samples
        How many samples count now.
    """

    def __init__(self, options: Namespace, model: Any, place: Place) -> None:
        self._options, self._model, self._place = options, model, place
        self.lines: list[str] = []
        self.threshold = float("inf")
        self.rows = 0
        self.time: Any = None
        self._period: Any = None  # the number of the --each-period of the latest row
        self._warned = False
        # Who counts what came too late, or never got its other half.
        self._uncounted = {"expired": model} if isinstance(model, Ledger) else {}
        window = model.model if isinstance(model, Ledger) else model
        fading = isinstance(window, Fading) and options.time_column is not None
        if isinstance(window, LastPeriod) or fading:
            self._uncounted["refused"] = window

    @property
    def samples(self) -> int:
        """How many samples count now."""
        return len(self._model.model if isinstance(self._model, Ledger) else self._model)

    def period_of(self, time: Any) -> Any:
        """Return the number of the --each-period in which a time lies, counted from the epoch."""
        period = self._options.each_period
        if time is None:
            return None
        if isinstance(time, datetime):
            return (time - datetime(1970, 1, 1, tzinfo=time.tzinfo)) // period
        return time // period

    def after_row(self, threshold: float, period: Any) -> None:
        """Add a line after a row, if one is due."""
        options = self._options
        if options.every is not None:
            due = (self._place.number + 1) % options.every == 0
        elif options.each_period is not None:
            due = period is not None and self._period is not None and period != self._period
            self._period = self._period if period is None else period
        else:
            last = self.threshold
            due = threshold != last and (threshold == threshold or last == last)
        if due:
            self.add(ahead=1)

    def add(self, ahead: int = 0) -> None:
        """Add a line, after so many rows more than the place counts."""
        optimum = self._model.optimum
        self.threshold, self.rows = optimum.threshold, self._place.number + ahead
        facts = {
            "rows": self.rows,
            "samples": self.samples,
            "threshold": optimum.threshold,
            "lower": optimum.lower,
            "upper": optimum.upper,
            "loss": optimum.loss,
        }
        if isinstance(self._model, Ledger):
            facts |= {"cost": self._model.cost, "regret": self._model.regret}
        if self._options.recommended or self._options.current is not None:
            facts |= sureness_of(self._model, self._options)
        for name, counter in self._uncounted.items():
            facts[name] = getattr(counter, name)
        if self.time is not None:
            facts["time"] = self.time.isoformat() if isinstance(self.time, datetime) else self.time
        self.lines.append(as_line(facts))

    def flush(self) -> None:
        """Write the lines."""
        self._warn()
        if self.lines:
            sys.stdout.write("".join(self.lines))
            sys.stdout.flush()
            self.lines.clear()

    def _warn(self) -> None:
        """Warn once that no sample counts, if all came too late."""
        if self._warned or self.samples:
            return
        found = {name: getattr(counter, name) for name, counter in self._uncounted.items()}
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
