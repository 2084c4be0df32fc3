# SPDX-License-Identifier: Apache-2.0
"""How thresholds change: people deploy, propose, approve and roll back, and limen by its policy.

What is decided here is an event, with who, why and what was shown, and is not decided again when
the log is folded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from limen.service.log.commit_queue import CommitQueue
from limen.service.points.definitions import as_rules, checked_segment
from limen.service.points.events import Event
from limen.service.points.judging import describe, evaluate
from limen.service.problems import Refused
from limen.times import length_of

if TYPE_CHECKING:
    from limen.service.bodies import Decision, Deployment, NewProposal, Rollback
    from limen.service.points.point import Point
    from limen.service.points.proposals import Proposal

__all__ = ["Changes"]


class Changes(CommitQueue):
    """What people and limen may do to the thresholds in effect."""

    def _show(self, name: str) -> None:
        point = self.state.points[name]
        point.published = max(
            (each for each in point.versions if each.seq <= self.on_disk),
            key=lambda each: each.number,
        )

    def checked_segment(self, point: Point, segment: str) -> str:
        """Return a segment that the point may have, or refuse."""
        if point.definition.segments is None:
            raise Refused("invalid", "segment is given, but the point is defined without segments.")
        try:
            return checked_segment(segment)
        except ValueError as error:
            raise Refused("invalid", f"{error}.") from None

    def _thresholds(self, point: Point, item: Deployment | NewProposal) -> dict[str, float]:
        if "" not in item.thresholds:
            raise Refused("invalid", 'thresholds need one for all: the key "".')
        for segment in item.thresholds:
            if segment:
                self.checked_segment(point, segment)
        try:
            return {
                segment: rule.number(point.direction) for segment, rule in item.thresholds.items()
            }
        except ValueError as error:
            raise Refused("invalid", f"{error}.") from None

    def _require_seen(self, point: Point, seen: int | None) -> None:
        if seen is not None and point.changed > seen:
            raise Refused(
                "moved-on",
                f"A version, proposal, decision or definition came with event {point.changed}, "
                f"after {seen}, which was seen. Version {point.version.number} is in effect. Look "
                "again, then decide.",
            )

    # What people do.

    async def deploy(self, point: Point, item: Deployment, by: str) -> tuple[int, int]:
        """Deploy thresholds; return the number of the version and its seq."""
        self._require_seen(point, item.seen)
        if point.definition.change.by_two:
            raise Refused(
                "four-eyes",
                "Propose it instead: at this point one person proposes and another approves.",
            )
        return await self._flushed(
            point, self._deploy(point, self._thresholds(point, item), item.reason, by)
        )

    async def rollback(self, point: Point, item: Rollback, by: str) -> tuple[int, int]:
        """Deploy the thresholds of an earlier version again, as a new version.

        Under four eyes those of the version before only: all others are proposed.
        """
        self._require_seen(point, item.seen)
        number = point.version.number - 1 if item.version is None else item.version
        found = [each for each in point.versions if each.number == number]
        if not found or number == point.version.number:
            raise Refused("invalid", f"There is no earlier version {number} to go back to.")
        before = point.version.number - 1
        if point.definition.change.by_two and number != before:
            raise Refused(
                "four-eyes",
                f"One person goes back to the version before, {before}, and no further. Propose "
                f"the thresholds of version {number}, and let another person approve them.",
            )
        seq = self._deploy(point, found[0].thresholds, item.reason, by, back_to=number)
        return await self._flushed(point, seq)

    async def propose(self, point: Point, item: NewProposal, by: str) -> Proposal:
        """Let a candidate run in shadow; one that only watches over a deployment gives way."""
        self._require_seen(point, item.seen)
        if point.ledger is None:
            raise Refused("invalid", "Samples judge a proposal by their ids, and by_id is false.")
        running = point.proposal
        if running is not None and running.back_to is None:
            raise Refused(
                "one-at-a-time",
                f"Proposal {running.number} is open. Approve, reject or withdraw it first.",
            )
        thresholds = self._thresholds(point, item)
        if thresholds == point.version.thresholds:
            raise Refused("invalid", "These thresholds are in effect already.")
        self._propose(point, thresholds, item.reason, by)
        made = point.proposals[-1]
        await self.flushed()
        return made

    async def approve(self, point: Point, number: int, item: Decision, by: str) -> tuple[int, int]:
        """Deploy a candidate; return the number of the version and its seq."""
        proposal = self._open(point, number, item)
        self._require_another(point, proposal, by)
        shown = describe(point, proposal, self.now())
        lacking = [each["text"] for each in shown["demands"] if not each["met"]]
        if lacking and not item.despite:
            raise Refused(
                "not-yet",
                f"Not met: {'; '.join(lacking)}. Wait, or send despite: true to approve all the "
                "same, which the history will say.",
            )
        if lacking:
            shown["despite"] = lacking
        seq = self._deploy(point, proposal.thresholds, item.reason, by, proposal, shown)
        return await self._flushed(point, seq)

    async def close_proposal(
        self, point: Point, number: int, item: Decision, by: str, verdict: str
    ) -> int:
        """Reject or withdraw a candidate; return the seq."""
        proposal = self._open(point, number, item)
        if verdict == "withdrawn" and proposal.by != by:
            raise Refused("forbidden", "Only who proposed it can withdraw it. Reject it instead.")
        seq = self._decide(point, proposal, verdict, item.reason, by)
        await self.flushed()
        return seq

    def _require_another(self, point: Point, proposal: Proposal, by: str) -> None:
        if proposal.by == by and point.definition.change.four_eyes:
            raise Refused("four-eyes", "You proposed it, so another person has to approve it.")

    def _open(self, point: Point, number: int, item: Decision) -> Proposal:
        self.require_open()
        found = next((each for each in point.proposals if each.number == number), None)
        if found is None:
            raise Refused("not-found", f"There is no proposal {number}.")
        if found.closed is not None:
            raise Refused(
                "moved-on",
                f"Proposal {number} was {found.closed.verdict} by {found.closed.by} already.",
            )
        self._require_seen(point, item.seen)
        return found

    # The events.

    async def _flushed(self, point: Point, seq: int) -> tuple[int, int]:
        number = point.version.number
        await self.flushed()
        return number, seq

    def _deploy(
        self,
        point: Point,
        thresholds: dict[str, float],
        reason: str,
        by: str,
        proposal: Proposal | None = None,
        shown: dict[str, Any] | None = None,
        *,
        back_to: int | None = None,
    ) -> int:
        """Fold a deployment; under a policy, the version before is then on watch.

        Not after a person has gone back to a version: that is what `back_to` names.
        """
        self.require_open()
        before = point.version
        more: dict[str, Any] = {
            "thresholds": msgspec.to_builtins(as_rules(thresholds, point.direction)),
            "reason": reason,
        }
        if proposal is not None:
            more |= {"proposal": proposal.number, "shown": shown}
        if back_to is not None:
            more["back_to"] = back_to
        event = Event("deploy", self.now(), point.name, by=by, more=more)
        seq = self._fold(event, None, lambda: self._show(point.name))
        back = proposal is not None and proposal.back_to is not None
        changed = before.thresholds != thresholds
        if back_to is None and not back and changed and point.definition.change.policy != "manual":
            self._propose(
                point, before.thresholds, f"version {before.number}, on watch", "limen",
                back_to=before.number,
            )  # fmt: skip
        return seq

    def _propose(
        self,
        point: Point,
        thresholds: dict[str, float],
        reason: str,
        by: str,
        *,
        back_to: int | None = None,
    ) -> int:
        self.require_open()
        change, age, at = point.definition.change, point.definition.age(), self.now()
        length = change.expires if back_to is None else change.at_most_every
        more = {
            "thresholds": msgspec.to_builtins(as_rules(thresholds, point.direction)),
            "reason": reason,
            "age": age,
            "expires": at + age + length_of(length),
            "confidence": change.confidence,
            "back_to": back_to,
        }
        return self._fold(Event("propose", at, point.name, by=by, more=more))

    def _decide(self, point: Point, proposal: Proposal, verdict: str, reason: str, by: str) -> int:
        self.require_open()
        at = self.now()
        more = {
            "proposal": proposal.number,
            "verdict": verdict,
            "reason": reason,
            "shown": describe(point, proposal, at),
        }
        return self._fold(Event("decide", at, point.name, by=by, more=more))

    # What limen does by its policy, once a minute.

    async def tick(self) -> None:
        """Advance the time of all points and run their policies; not where the clock jumped."""
        if not self.clock.look() or self.broken is not None or not self.state.points:
            return
        at = self.now()
        seen = {name: point.sample_course(at) for name, point in self.state.points.items()}
        more = {name: each for name, each in seen.items() if each is not None}
        self._fold(Event("advance", at, time=at, by="limen", more=more or None))
        await self.flushed()
        self.ticked = at
        for name in list(self.state.points):
            self._act(self.state.points[name], self.now())
            await self.flushed()
            await asyncio.sleep(0)

    def _act(self, point: Point, at: int) -> None:
        """Propose, withdraw, let expire, deploy or go back, as the policy of a point says."""
        policy, proposal = point.definition.change.policy, point.proposal
        other = point.redefinition
        if other is not None and at >= other.expires:
            self._decide(point, other, "expired", "nobody decided in time", "limen")
        if proposal is None:
            if policy != "manual":
                self._look(point, at)
        elif at >= proposal.expires:
            reason = "the samples scored since did not suffice"
            if proposal.back_to is not None:
                reason = f"version {point.version.number} stays"
            self._decide(point, proposal, "expired", reason, "limen")
        elif policy == "automatic":
            if evaluate(point, proposal, at)[2] == "waiting":
                shown = describe(point, proposal, at)
                reason = _reason(proposal, shown)
                self._deploy(point, proposal.thresholds, reason, "limen", proposal, shown)
            elif proposal.by == "limen" and proposal.back_to is None:
                self._withdraw(point, proposal)
        elif proposal.by == "limen" and proposal.back_to is None and policy == "proposed":
            self._withdraw(point, proposal)

    def _withdraw(self, point: Point, proposal: Proposal) -> None:
        """Withdraw a candidate of limen's that the samples rule out by now."""
        for segment, threshold in proposal.thresholds.items():
            model = point.model(segment)
            if model is not None and not model.keeps(threshold):
                now = point.version.find(segment)[0]
                if not _same(now, threshold):
                    reason = "the samples scored since rule it out"
                    self._decide(point, proposal, "withdrawn", reason, "limen")
                    return

    def _look(self, point: Point, at: int) -> None:
        """Propose what would have been cheaper, where the samples rule out what is in effect."""
        change = point.definition.change
        if point.samples() < change.at_least:
            return
        newest = point.newest()
        last = None if newest is None else newest.closed
        if last is not None and last.verdict in ("rejected", "withdrawn") and last.by != "limen":
            rested = at - last.at >= length_of(change.at_most_every)
            if not rested:
                return
        candidate = point.candidate()
        if candidate is None:
            return
        now, then = point.loss_under(point.version.thresholds), point.loss_under(candidate)
        if then < now and then <= now * (1 - change.least_saving):
            saved, many = 1 - then / now, point.samples()
            reason = f"{saved:.1%} cheaper on {many:,} labelled samples, which chose it"
            self._propose(point, candidate, reason, "limen")


def _same(one: float, other: float) -> bool:
    return one == other or (one != one and other != other)


def _reason(proposal: Proposal, shown: dict[str, Any]) -> str:
    saved, many = shown["saving"]["share"], shown["samples"]
    what = "back to the version before" if proposal.back_to is not None else proposal.reason
    return f"{saved:.1%} cheaper on {many:,} samples scored since: {what}"
