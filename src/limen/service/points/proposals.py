# SPDX-License-Identifier: Apache-2.0
"""Proposals: a candidate for the thresholds in effect, and the samples scored since that judge it.

Under four eyes another definition is proposed too; no samples judge it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from limen._core import Judge
from limen.service.points.definitions import Definition, reaches
from limen.service.points.events import Event, Id
from limen.service.points.versions import Version

if TYPE_CHECKING:
    from limen.optimum import Direction

__all__ = ["Closed", "Proposal", "Shadow", "StoredShadow"]


class Closed(msgspec.Struct):
    """How a proposal ended, and what was shown of it then."""

    verdict: str
    seq: int
    at: int
    by: str = ""
    reason: str = ""
    version: int | None = None
    shown: dict[str, Any] | None = None


class Proposal(msgspec.Struct):
    """A candidate: thresholds by segment in place of those of a version, or a definition."""

    number: int
    seq: int
    at: int
    by: str
    reason: str
    version: int  # in effect when it was made
    thresholds: dict[str, float]
    age: int  # at which samples judge it
    expires: int
    confidence: float = 0.95
    back_to: int | None = None  # the version before, on watch after a deployment
    closed: Closed | None = None
    definition: Definition | None = None  # in place of that of the point, and no thresholds
    # Candidates since the last deployment share the chance to be wrong: which of those that were
    # judged it is. The version before, on watch, has its own.
    candidate: int | None = None
    judged: bool = False  # by a sample that both answer differently

    @property
    def kind(self) -> str:
        """What is proposed: thresholds, to go back, or a definition."""
        if self.definition is not None:
            return "definition"
        return "candidate" if self.back_to is None else "return"


class StoredShadow(msgspec.Struct):
    """A shadow in a snapshot."""

    seen: tuple[int, int, int]
    judge: bytes


class Shadow:
    """The samples that judge a proposal."""

    def __init__(self, proposal: Proposal, now: Version, direction: Direction) -> None:
        self.proposal, self.now, self.direction = proposal, now, direction
        self.candidate = Version(0, 0, 0, proposal.thresholds)
        self.scored = self.ones_now = self.ones_candidate = 0
        self.judge = Judge(proposal.age, proposal.at)

    def score(self, event: Event, id: Id, label: int | None) -> None:
        """Let a score wait until it is old enough. O(log n)."""
        assert event.time is not None
        if event.time < self.proposal.at:
            return
        now, then = (
            bool(reaches(event.value, version.find(event.segment)[0], self.direction))
            for version in (self.now, self.candidate)
        )
        self.scored += 1
        self.ones_now += now
        self.ones_candidate += then
        weight = 1 if event.weight is None else event.weight
        segment = (event.segment or "").partition("/")[0]
        self.judge.score(id, now, then, event.time, weight, segment, label)

    def advance(self, time: int) -> None:
        """Let samples of the age judge, each with the label that it has now."""
        self.judge.advance(time)
        self.proposal.judged = self.proposal.judged or self.judge.differing > 0

    def stored(self) -> StoredShadow:
        """Describe it for a snapshot: equal ones alike."""
        return StoredShadow((self.scored, self.ones_now, self.ones_candidate), self.judge.state())

    def restore(self, stored: StoredShadow) -> None:
        """Become what was stored."""
        self.scored, self.ones_now, self.ones_candidate = stored.seen
        self.judge = Judge.restored(stored.judge)
