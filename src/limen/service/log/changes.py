# SPDX-License-Identifier: Apache-2.0
"""How thresholds change: people deploy, propose, approve and roll back, and limen by its policy.

What is decided here is an event, with who, why and what was shown, and is not decided again when
the log is folded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from limen.service.log.commit_queue import CommitQueue
from limen.service.points.definitions import checked_segment
from limen.service.points.events import Event
from limen.service.points.judging import describe
from limen.service.points.policy import decision, deployment, due, proposed
from limen.service.problems import Refused

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
        thresholds = self._thresholds(point, item)
        events = deployment(point, thresholds, item.reason, by, self.now())
        return await self._flushed(point, self._happen(point, events))

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
        thresholds, at = found[0].thresholds, self.now()
        events = deployment(point, thresholds, item.reason, by, at, back_to=number)
        return await self._flushed(point, self._happen(point, events))

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
        self._happen(point, [proposed(point, thresholds, item.reason, by, self.now())])
        made = point.proposals[-1]
        await self.flushed()
        return made

    async def approve(self, point: Point, number: int, item: Decision, by: str) -> tuple[int, int]:
        """Deploy a candidate; return the number of the version and its seq."""
        proposal = self._open(point, number, item)
        self._require_another(point, proposal, by)
        at = self.now()
        shown = describe(point, proposal, at)
        lacking = [each["text"] for each in shown["demands"] if not each["met"]]
        if lacking and not item.despite:
            raise Refused(
                "not-yet",
                f"Not met: {'; '.join(lacking)}. Wait, or send despite: true to approve all the "
                "same, which the history will say.",
            )
        if lacking:
            shown = {**shown, "despite": lacking}
        thresholds = proposal.thresholds
        events = deployment(point, thresholds, item.reason, by, at, proposal, shown)
        return await self._flushed(point, self._happen(point, events))

    async def close_proposal(
        self, point: Point, number: int, item: Decision, by: str, verdict: str
    ) -> int:
        """Reject or withdraw a candidate; return the seq."""
        proposal = self._open(point, number, item)
        if verdict == "withdrawn" and proposal.by != by:
            raise Refused("forbidden", "Only who proposed it can withdraw it. Reject it instead.")
        event = decision(point, proposal, verdict, item.reason, by, self.now())
        seq = self._happen(point, [event])
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

    def _happen(self, point: Point, events: list[Event]) -> int:
        """Fold what was decided, and return the seq of the first event."""
        self.require_open()
        first = self.state.seq + 1
        for event in events:
            deploys = event.kind == "deploy"
            self._fold(event, None, (lambda: self._show(point.name)) if deploys else None)
        return first

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
            point = self.state.points[name]
            events = due(point, self.now())
            if events:
                self._happen(point, events)
                await self.flushed()
            await asyncio.sleep(0)
