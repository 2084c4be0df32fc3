# SPDX-License-Identifier: Apache-2.0
"""The model of ``limen watch``: one object for what is saved, what rows change, what lines read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from limen.cli.aims import aim_of
from limen.cli.exits import BAD_INPUT, Failure
from limen.cli.watch_options import as_moment
from limen.direction import setting
from limen.errors import Infeasible
from limen.memory.base import has_groups, innermost, of_all
from limen.memory.windows import LastPeriod

if TYPE_CHECKING:
    from argparse import Namespace

    from limen.memory.ledger import Ledger
    from limen.service.points.point import Point

__all__ = ["Watched"]


class Watched:
    """The model that is followed, for all its groups.

    A group is named by the text of its column; None stands for all samples.

    Attributes
    ----------
    point
        What rows change.
    ledger, groups
        The part of it that joins by id, and that which has groups; None without.
    aim
        What makes a cut the best one.
    at_least
        How many samples a threshold needs; 0: none.
    clocked
        Whether samples of one group may come to count, or leave, by the rows of another.
    """

    def __init__(self, point: Point, options: Namespace) -> None:
        self.point, self._options = point, options
        self.ledger, held = point.ledger, point.held
        self.groups = held if has_groups(held) else None
        self._groups: dict[int, str] = {}  # by their number in a ledger
        self._all = of_all(held)
        self.aim = aim_of(options)
        self.at_least: int = options.at_least or int(self.groups is not None)
        matures = self.ledger is not None and self.ledger.settings["maturity"] is not None
        self.clocked = self.groups is not None and (matures or isinstance(self._all, LastPeriod))
        self._refuses = point.timed
        self.asking = self.asked = False  # whether it may be asked for a change, and whether it was

    def group_of(self, group: str | None, ids: Any, row: int) -> str | None:
        """Name the group that a row changed, which says `group`; None where there are none."""
        if self.groups is None or self.ledger is None:
            return group
        number = self.ledger._group_of(ids[row])
        if number is None:
            return None
        if group is not None:
            self._groups[number] = group
        elif number not in self._groups:
            paths = [path for path in self.groups if path]
            numbers = (self.ledger._number(path if path[1:] else path[0]) for path in paths)
            self._groups = dict(zip(numbers, map("/".join, paths), strict=True))
        return self._groups.get(number)

    def innermost(self) -> Any:
        """Return the model of all samples, without window and ledger."""
        return innermost(self._all)

    def model(self, group: str | None) -> Any:
        """Return the model or window of a group that has enough samples, or of all."""
        if self.groups is None:
            return self._all
        return self.groups.model(_path(group))

    def samples(self, group: str | None = None) -> int:
        """How many samples count now."""
        if group is not None and self.groups is not None:
            return int(self.groups.count(_path(group)))
        return len(self._all)

    def names(self) -> list[str]:
        """Name the groups, also those of which no sample counts yet."""
        return sorted(self.point.segments)

    def value(self, group: str | None) -> Any:
        """Return the threshold to write; None where samples are too few."""
        if self.at_least and self.samples(group) < self.at_least:
            return None
        if self.aim.by_cost:
            return self.model(group).threshold
        best = self.best(group)
        return None if isinstance(best, Infeasible | None) else best.threshold

    def best(self, group: str | None) -> Any:
        """Return the best cut, or why no cut meets the demands; None where samples are too few."""
        if self.at_least and self.samples(group) < self.at_least:
            return None
        model, aim = self.model(group), self.aim
        try:
            return aim.best_of(model)
        except Infeasible as infeasible:
            return infeasible

    def facts(self, group: str | None) -> dict[str, Any]:
        """Return what a line says about the best cut of a group, or of all samples."""
        best = self.best(group)
        worth = "loss" if self.aim.by_cost else "value"
        if isinstance(best, Infeasible):
            return {**dict.fromkeys(("threshold", "lower", "upper", worth)), "reason": str(best)}
        facts = {name: getattr(best, name, None) for name in ("threshold", "lower", "upper")}
        facts |= setting(self.point.direction)
        facts[worth] = getattr(best, worth, None)
        if self.point.definition.capacity is not None:
            facts["loss_bound"] = None if best is None else self.model(group).loss_bound
        return facts

    def account(self) -> dict[str, Any]:
        """Return what a line says about answers, and about rows that do not count."""
        ledger = self.ledger
        if ledger is None:
            return {"refused": self._all.refused} if self._refuses else {}
        facts: dict[str, Any] = {}
        if self.aim.by_cost:
            facts = {"cost": ledger.cost, "regret": ledger.regret}
        return facts | {name: getattr(ledger, name) for name in ("expired", "refused", "pending")}

    # ---- how sure -----------------------------------------------------------------------------

    def interval(self, group: str | None) -> tuple[float, float]:
        """Return between which thresholds the best one lies."""
        interval: tuple[float, float] = self.model(group).interval(self._options.confidence)
        return interval

    def sureness(self, group: str | None) -> dict[str, Any]:
        """Return the recommended threshold and its interval; with --current whether to keep that.

        Below five samples of either label nothing is recommended, and the one in use is kept.
        """
        options, model = self._options, self.model(group)
        low, high = self.interval(group)
        facts = {"recommended": model.recommended, "low": low, "high": high}
        if options.current is None:
            return facts
        facts["keep"] = model.keeps(options.current, confidence=options.confidence)
        if self.ledger is not None and self.groups is None:
            facts |= self._case(self.ledger)
        return facts

    def _case(self, ledger: Ledger) -> dict[str, Any]:
        """Look at the case for a change, as `Ledger.proposal` does."""
        found, trial = self.proposal(), ledger.trial
        return {
            "change": None if found is None else found.candidate,
            "candidate": None if trial is None else trial.candidate,
            "evidence": None if trial is None else trial.evidence.value,
            "missing": None if trial is None else trial.evidence.missing,
            "candidates": ledger.candidates,
        }

    def proposal(self) -> Any:
        """Return the trial of a threshold to change to, once there is enough evidence.

        Only between rows a new candidate comes on trial, as that changes the ledger.
        """
        options = self._options
        assert self.ledger is not None
        if not self.asking:
            trial = self.ledger.trial
            return trial if trial is not None and trial.evidence.decided else None
        self.asked = True
        try:
            return self.ledger.proposal(
                options.current, age=as_moment(options.age), confidence=options.confidence
            )
        except ValueError as error:  # of weights
            raise Failure(str(error), BAD_INPUT) from None


def _path(group: str | None) -> tuple[str, ...]:
    """Return the path of a group by its name; None stands for all samples."""
    return () if group is None else tuple(group.split("/"))
