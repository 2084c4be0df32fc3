# SPDX-License-Identifier: Apache-2.0
"""Proposals: a candidate for the thresholds in effect, and the samples scored since that judge it.

Under four eyes another definition is proposed too; no samples judge it.

Each sample enters at one and the same age, whatever its label, with the label that it has then.
Where both versions answer alike, it is only counted; where they differ, its id is kept, so that a
correction or a forget is exact.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import msgspec

from limen.service.points.definitions import Definition, reaches
from limen.service.points.events import Event, Id
from limen.service.points.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limen.memory import Ledger
    from limen.optimum import Direction

__all__ = ["Closed", "Proposal", "Shadow", "StoredShadow"]

_MISSING = 2  # in place of the label


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

    @property
    def kind(self) -> str:
        """What is proposed: thresholds, to go back, or a definition."""
        if self.definition is not None:
            return "definition"
        return "candidate" if self.back_to is None else "return"


class StoredShadow(msgspec.Struct):
    """A shadow in a snapshot: what is in it, in order."""

    seen: tuple[int, int, int]
    made: int
    waiting: list[tuple[int, int, Id, float, str, int, int]]
    agreed: list[tuple[int, int, int, float]]
    missing: int
    counted: list[tuple[Id, int, float, str, int]]


class Shadow:
    """The samples that judge a proposal."""

    def __init__(self, proposal: Proposal, now: Version, direction: Direction) -> None:
        self.proposal, self.now, self.direction = proposal, now, direction
        self.candidate = Version(0, 0, 0, proposal.thresholds)
        self.scored = self.ones_now = self.ones_candidate = 0
        self._made = 0
        # Of each: when, a running number, id, weight, segment, both answers. A heap.
        self.waiting: list[tuple[int, int, Id, float, str, int, int]] = []
        self.agreed: dict[
            tuple[int, int], tuple[int, float]
        ] = {}  # number and weight, by answer, label
        self.missing = 0  # of those that agree
        # Where they differ: the answer of the candidate, weight, segment, label or missing.
        self.counted: dict[Id, tuple[int, float, str, int]] = {}
        self.tallies: dict[tuple[str, int, int], dict[float, int]] = {}  # numbers by weight

    def score(self, event: Event, id: Id) -> None:
        """Let a score wait until it is old enough. O(log n)."""
        assert event.time is not None
        if event.time < self.proposal.at:
            return
        now, then = (
            int(reaches(event.value, version.find(event.segment)[0], self.direction))
            for version in (self.now, self.candidate)
        )
        self.scored += 1
        self.ones_now += now
        self.ones_candidate += then
        self._made += 1
        weight = 1.0 if event.weight is None else float(event.weight)
        segment = (event.segment or "").partition("/")[0]
        heapq.heappush(self.waiting, (event.time, self._made, id, weight, segment, now, then))

    def advance(self, time: int, ledger: Ledger) -> None:
        """Let samples of the age judge, each with the label that it has now."""
        edge = time - self.proposal.age
        while self.waiting and self.waiting[0][0] <= edge:
            _, _, id, weight, segment, now, then = heapq.heappop(self.waiting)
            known = ledger._known(id)
            label = _MISSING if known is None or known[2] is None else known[2]
            if now != then:
                self._count(id, (then, weight, segment, label))
            elif label == _MISSING:
                self.missing += 1
            else:
                many, sum = self.agreed.get((now, label), (0, 0.0))
                self.agreed[now, label] = many + 1, sum + weight

    def _count(self, id: Id, sample: tuple[int, float, str, int]) -> None:
        self.counted[id] = sample
        then, weight, segment, label = sample
        tally = self.tallies.setdefault((segment, then, label), {})
        tally[weight] = tally.get(weight, 0) + 1

    def label(self, id: Id, ledger: Ledger) -> None:
        """Correct a sample that judged; one that came without a label stays so."""
        sample, known = self.counted[id], ledger._known(id)
        if sample[3] != _MISSING and known is not None and known[2] not in (None, sample[3]):
            self._take_back(id)
            self._count(id, (*sample[:3], known[2]))

    def forget(self, id: Id) -> None:
        """Let a sample leave no trace. O(n)."""
        if id in self.counted:
            self._take_back(id)
        elif any(each[2] == id for each in self.waiting):
            self.waiting = [each for each in self.waiting if each[2] != id]
            heapq.heapify(self.waiting)

    def ids(self) -> Iterator[Id]:
        """Yield the ids that it knows, also those that the ledger has dropped."""
        yield from self.counted
        yield from (each[2] for each in self.waiting)

    def _take_back(self, id: Id) -> None:
        then, weight, segment, label = self.counted.pop(id)
        tally = self.tallies[segment, then, label]
        tally[weight] -= 1
        if not tally[weight]:
            del tally[weight]
            if not tally:
                del self.tallies[segment, then, label]

    def differing(self) -> Iterator[tuple[str, int, int, float, int]]:
        """Yield segment, answer of the candidate, label or 2, weight and how many, in order."""
        for (segment, then, label), tally in sorted(self.tallies.items()):
            for weight, many in sorted(tally.items()):
                yield segment, then, label, weight, many

    def stored(self) -> StoredShadow:
        """Describe it for a snapshot: equal ones alike."""
        counted = [(id, *sample) for id, sample in self.counted.items()]
        return StoredShadow(
            (self.scored, self.ones_now, self.ones_candidate),
            self._made,
            sorted(self.waiting, key=lambda each: each[:2]),
            [(*key, *found) for key, found in sorted(self.agreed.items())],
            self.missing,
            sorted(counted, key=lambda each: (type(each[0]) is int, each[0])),
        )

    def restore(self, stored: StoredShadow) -> None:
        """Become what was stored."""
        self.scored, self.ones_now, self.ones_candidate = stored.seen
        self._made, self.missing = stored.made, stored.missing
        self.waiting = list(stored.waiting)  # in order, and so a heap
        self.agreed = {(answer, label): (n, sum) for answer, label, n, sum in stored.agreed}
        for id, then, weight, segment, label in stored.counted:
            self._count(id, (then, weight, segment, label))
