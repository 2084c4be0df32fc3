# SPDX-License-Identifier: Apache-2.0
"""What the samples say of a proposal, and which demands it meets."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from limen.optimum import height
from limen.service.points.definitions import as_rules
from limen.service.points.events import as_datetime
from limen.service.points.saving import bounds
from limen.service.points.ticks import once_per_tick
from limen.times import length_of
from limen.trust.evidence import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limen.service.points.point import Point
    from limen.service.points.proposals import Proposal, Shadow
    from limen.trust.bets import JudgedRow

__all__ = ["ShadowResult", "describe", "evaluate", "judged", "shown_proposal"]

_HOUR, _DAY = 3_600_000_000, 86_400_000_000


class ShadowResult:
    """What a shadow says, in counts, costs and evidence. O(distinct weights and segments)."""

    def __init__(self, point: Point, proposal: Proposal, shadow: Shadow) -> None:
        definition = point.definition
        self.prices = float(definition.false_positive), float(definition.false_negative)
        self.most = definition.change.largest_weight
        self.confidence = proposal.confidence
        self.samples = self.missing = 0
        self.table = [dict.fromkeys(("cost", "false_positives", "false_negatives"), 0.0)
                      | {"answered_1": 0.0} for _ in range(2)]  # fmt: skip
        # Of samples that both answer differently: how many there are by what they save, and what
        # each segment says.
        self.savings: dict[float, int] = {}
        self.parts: dict[str, dict[str, Any]] = {}
        self.rows = shadow.judge.counts()
        for row in self.rows:
            self._add(*row)
        self.better = sum(part["better"] for part in self.parts.values())
        self.worse = sum(part["worse"] for part in self.parts.values())
        self.saving = self.table[0]["cost"] - self.table[1]["cost"]
        sign = 1.0 if shadow.direction == ">=" else -1.0
        pairs = [
            [height(sign * version.find(each)[0]) for version in (shadow.now, shadow.candidate)]
            for each in {"", *shadow.now.thresholds, *shadow.candidate.thresholds}
        ]
        self.lowered = any(then < now for now, then in pairs)
        self.mixed = self.lowered and any(then > now for now, then in pairs)
        self.evidence = self._evidence(proposal.candidate)

    def _add(
        self, segment: str, now: int, then: int, label: int | None, weight: float, many: int
    ) -> None:
        if label not in (0, 1):
            self.missing += many
            return
        self.samples += many
        cost = self.prices[label] * weight
        for row, answer in zip(self.table, (now, then), strict=True):
            row["answered_1"] += many * answer
            if answer != label:
                row["false_positives" if answer else "false_negatives"] += many
                row["cost"] += many * cost
        if now != then:
            saving = cost if then == label else -cost
            self.savings[saving] = self.savings.get(saving, 0) + many
            none = {"segment": segment, "different": 0, "better": 0, "worse": 0, "saving": 0.0}
            part = self.parts.setdefault(segment, none)
            part["different"] += many
            part["better" if then == label else "worse"] += many
            part["saving"] += saving * many

    def _evidence(self, number: int | None) -> Evidence:
        """Bet on the costs saved; where all answers change one way, by their odds."""
        if self.mixed:
            return self._priced(self.rows, self.confidence, number)
        current, candidate = (1.0, 0.0) if self.lowered else (0.0, 1.0)
        return Evidence.from_counts(
            self.rows,
            current=current,
            candidate=candidate,
            false_positive=self.prices[0],
            false_negative=self.prices[1],
            confidence=self.confidence,
            largest_loss=self._units()[1] * self.most,
            number=number,
        )

    def _priced(
        self, rows: Iterable[JudgedRow], confidence: float, number: int | None = None
    ) -> Evidence:
        """Bet on costs in the place of weights, whichever way answers change."""
        priced = (
            (name, now, then, label, weight * self.prices[label if label in (0, 1) else now], many)
            for name, now, then, label, weight, many in rows
        )
        largest = max(self.prices) * self.most
        return Evidence.from_counts(
            priced, current=1.0, candidate=0.0, confidence=confidence, largest_loss=largest,
            number=number,
        )  # fmt: skip

    def interval(self) -> tuple[float | None, float | None]:
        """Return bounds of the saving that hold however often one looks; None for no bound."""
        counts = dict(self.savings)
        if agreed := self.samples - self.better - self.worse:
            counts[0.0] = counts.get(0.0, 0) + agreed
        gain, loss = self._units()
        low, high = bounds(counts, loss * self.most, gain * self.most, self.confidence)
        many = self.samples
        return None if low is None else many * low, None if high is None else many * high

    def _units(self) -> tuple[float, float]:
        """Return what a sample of weight 1 can save, and what it can cost more."""
        positive, negative = self.prices
        if self.mixed:
            return max(self.prices), max(self.prices)
        return (negative, positive) if self.lowered else (positive, negative)

    def segments(self) -> list[dict[str, Any]]:
        """Return what each segment says, if there is more than one."""
        if not self.parts or list(self.parts) == [""]:
            return []
        sure = 1 - (1 - self.confidence) / len(self.parts)  # each may be wrong by chance
        shown = []
        for name, rows in groupby(self.rows, key=itemgetter(0)):
            if name in self.parts:
                # The two change places: evidence that what is in effect is cheaper.
                other = ((name, then, now, *rest) for _, now, then, *rest in rows)
                worse = self._priced(other, sure).decided
                shown.append(self.parts[name] | {"clearly_worse": worse})
        return shown


def judged(point: Point) -> ShadowResult | None:
    """Return what the samples say of the proposal that is open."""
    if point.proposal is None or point.shadow is None:
        return None
    return ShadowResult(point, point.proposal, point.shadow)


def demands(
    point: Point, proposal: Proposal, found: ShadowResult, shadow: Shadow, now: int
) -> list[dict[str, Any]]:
    """Return what is demanded of a proposal before it is deployed, and whether it is met."""
    change, evidence = point.definition.change, found.evidence
    cost = found.table[0]["cost"]
    saved = found.saving / cost if cost else 0.0
    share = shadow.ones_now or shadow.scored  # from none: of all
    moved = (shadow.ones_candidate - shadow.ones_now) / share if share else 0.0
    different, shown = found.better + found.worse, now - proposal.at
    words = point.definition.words
    flagged = "flagged" if words is None else f"answered “{words.one}”"
    rows: list[tuple[str, bool, str, str, str]] = [
        ("at_least", found.samples >= change.at_least, "labelled samples",
         f"{found.samples:,}", f"at least {change.at_least:,}"),
        ("different", different >= change.different,
         f"answered differently ({found.better:,} better, {found.worse:,} worse)",
         f"{different:,}", f"at least {change.different:,}"),
        ("confidence", evidence.decided,
         f"evidence that it saves anything ({_sureness(proposal)})",
         _short(evidence.value), f"at least {_short(evidence.enough)}"),
        ("least_saving", cost > 0 and saved >= change.least_saving, "saving, of the cost now",
         _percent(saved), f"at least {_percent(change.least_saving)}"),
        ("shadow", shown >= length_of(change.shadow), "time in shadow",
         _length(shown), f"at least {_length(length_of(change.shadow))}"),
        ("most_answered", abs(moved) <= change.most_answered, f"number {flagged}, against today",
         _percent(moved, "+"), f"at most {_percent(change.most_answered)}"),
    ]  # fmt: skip
    last = point.version
    if proposal.back_to is None and last.number > 1:
        rows.append(
            ("at_most_every", now - last.at >= length_of(change.at_most_every),
             "time since the last change",
             _length(now - last.at), f"at least {_length(length_of(change.at_most_every))}")
        )  # fmt: skip
    worse = [each["segment"] or "all others" for each in found.segments() if each["clearly_worse"]]
    named = f" ({', '.join(worse[:5])})" if worse else ""
    rows.append(
        ("segments", not worse, f"segments that are clearly worse{named}", str(len(worse)), "none")
    )
    return [
        {"name": name, "met": met, "what": what, "have": have, "need": need,
         "text": f"{what}: {have} ({need})"}
        for name, met, what, have, need in rows
    ]  # fmt: skip


def _sureness(proposal: Proposal) -> str:
    """Say how sure it must be, and why a later candidate needs more evidence."""
    sure = f"{_percent(proposal.confidence)} confidence"
    if proposal.candidate is None:
        return sure
    return (
        f"{sure}; candidate {proposal.candidate} since the last change: each one needs more, as "
        "each is one more chance to be wrong"
    )


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else "more than 1,000"


def _percent(share: float, sign: str = "") -> str:
    return f"{100 * share:{sign}.3g} %"


def _length(microseconds: int) -> str:
    """Say a length of time in words.

    >>> _length(172_800_000_000), _length(3_000_000)
    ('2 days', '3 seconds')
    """
    units = ((_DAY, "day"), (_HOUR, "hour"), (60_000_000, "minute"), (1_000_000, "second"))
    unit, name = next((each for each in units if microseconds >= 2 * each[0]), units[-1])
    many = microseconds // unit
    return f"{many} {name}{'' if many == 1 else 's'}"


def shown_proposal(point: Point, proposal: Proposal, now: int) -> dict[str, Any]:
    """Describe a proposal for JSON; one that is closed as it was shown then."""
    shown: dict[str, Any] = {
        "number": proposal.number,
        "seq": proposal.seq,
        "at": as_datetime(proposal.at),
        "by": proposal.by,
        "reason": proposal.reason,
        "kind": proposal.kind,
        "version": proposal.version,
        "back_to": proposal.back_to,
        "expires": as_datetime(proposal.expires),
        "closed": None,
    }
    if proposal.definition is not None:
        shown["definition"] = proposal.definition
    else:
        before = next(each for each in point.versions if each.number == proposal.version)
        shown |= {
            "now": as_rules(before.thresholds, point.direction),
            "thresholds": as_rules(proposal.thresholds, point.direction),
            "age_seconds": proposal.age / 1e6,
            "first": as_datetime(proposal.at + proposal.age),
        }
    closed = proposal.closed
    if closed is None:
        return shown | describe(point, proposal, now)
    ended = {
        "at": as_datetime(closed.at),
        "by": closed.by,
        "reason": closed.reason,
        "seq": closed.seq,
        "version": closed.version,
    }
    return shown | (closed.shown or {}) | {"status": closed.verdict, "closed": ended}


@once_per_tick
def evaluate(
    point: Point, proposal: Proposal, now: int
) -> tuple[ShadowResult, list[dict[str, Any]], str]:
    """Return what the samples say, the demands, and whether it waits or is in shadow."""
    assert point.shadow is not None
    found = ShadowResult(point, proposal, point.shadow)
    asked = demands(point, proposal, found, point.shadow, now)
    return found, asked, "waiting" if all(each["met"] for each in asked) else "shadow"


@once_per_tick
def describe(point: Point, proposal: Proposal, now: int) -> dict[str, Any]:
    """Describe what the samples say: kept with a decision as what was shown."""
    if proposal.definition is not None:  # no samples judge it
        return {"status": "waiting", "changes": point.definition.differences(proposal.definition)}
    shadow = point.shadow
    assert shadow is not None
    found, asked, status = evaluate(point, proposal, now)
    low, high = found.interval() if found.samples else (None, None)
    cost, evidence = found.table[0]["cost"], found.evidence
    return {
        "status": status,
        "samples": found.samples,
        "missing": found.missing,
        "young": shadow.judge.waiting,
        "different": found.better + found.worse,
        "better": found.better,
        "worse": found.worse,
        "evidence": {
            "value": min(evidence.value, 1e300),
            "worst_value": min(evidence.worst_value, 1e300),
            "enough": evidence.enough,
            "decided": evidence.decided,
            "candidate": proposal.candidate,
        },
        "table": {"now": found.table[0], "candidate": found.table[1]},
        "saving": None
        if not found.samples
        else {
            "total": found.saving,
            "low": low,
            "high": high,
            "share": found.saving / cost if cost else 0.0,
            "confidence": found.confidence,
        },
        "segments": found.segments(),
        "demands": asked,
    }
