# SPDX-License-Identifier: Apache-2.0
"""What the samples say of a proposal, and which demands it meets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limen.optimum import height
from limen.service.points.definitions import as_rules
from limen.service.points.events import as_datetime
from limen.service.points.saving import bounds
from limen.service.points.ticks import once_per_tick
from limen.times import length_of
from limen.trust.evidence import Evidence

if TYPE_CHECKING:
    from limen.service.points.point import Point
    from limen.service.points.proposals import Proposal, Shadow

__all__ = ["ShadowResult", "describe", "evaluate", "judged", "shown_proposal"]

_HOUR, _DAY = 3_600_000_000, 86_400_000_000


class ShadowResult:
    """What a shadow says, in counts, costs and evidence. O(distinct weights and segments)."""

    def __init__(self, point: Point, proposal: Proposal, shadow: Shadow) -> None:
        definition = point.definition
        self.prices = float(definition.false_positive), float(definition.false_negative)
        self.most = definition.change.largest_weight
        self.confidence = proposal.confidence
        self.samples = self.missing = self.better = self.worse = 0
        self.table = [dict.fromkeys(("cost", "false_positives", "false_negatives"), 0.0)
                      | {"answered_1": 0.0} for _ in range(2)]  # fmt: skip
        self.won: dict[str, dict[float, int]] = {}
        self.lost: dict[str, dict[float, int]] = {}
        self.lacking: dict[float, int] = {}  # the most that those without a label may cost
        for (answer, label), (many, weight) in shadow.agreed.items():
            for side in (0, 1):
                self._add(side, answer, label, many, weight)
            self.samples += many
        self.missing = shadow.missing
        for segment, then, label, weight, many in shadow.differing():
            self._differ(segment, then, label, weight, many)
        self.saving = self.table[0]["cost"] - self.table[1]["cost"]
        sign = 1.0 if shadow.direction == ">=" else -1.0
        pairs = [
            [height(sign * version.find(each)[0]) for version in (shadow.now, shadow.candidate)]
            for each in {"", *shadow.now.thresholds, *shadow.candidate.thresholds}
        ]
        self.lowered = any(then < now for now, then in pairs)
        self.mixed = self.lowered and any(then > now for now, then in pairs)
        self.mixed = self.mixed or not all(self.prices)
        self.evidence = self._evidence(_added(self.won), _added(self.lost))

    def _add(self, side: int, answer: int, label: int, many: int, weight: float) -> None:
        row = self.table[side]
        row["answered_1"] += many * answer
        if answer != label:
            row["false_positives" if answer else "false_negatives"] += many
            row["cost"] += self.prices[label] * weight

    def _differ(self, segment: str, then: int, label: int, weight: float, many: int) -> None:
        if label > 1:
            self.missing += many
            cost = self.prices[1 - then] * weight
            self.lacking[cost] = self.lacking.get(cost, 0) + many
            return
        self.samples += many
        for side, answer in ((0, 1 - then), (1, then)):
            self._add(side, answer, label, many, many * weight)
        cost = self.prices[label] * weight
        sums = self.won if then == label else self.lost
        own = sums.setdefault(segment, {})
        own[cost] = own.get(cost, 0) + many
        if then == label:
            self.better += many
        else:
            self.worse += many

    def _evidence(
        self, won: dict[float, int], lost: dict[float, int], confidence: float | None = None
    ) -> Evidence:
        """Bet on the costs saved; where all answers change one way, by their odds."""
        positive, negative = self.prices
        terms: dict[str, Any] = {"confidence": confidence or self.confidence}
        if self.mixed or confidence is not None:
            terms["largest_loss"], units = max(self.prices) * self.most, (1.0, 1.0)
            ends = (1.0, 0.0)
        else:
            ends = (1.0, 0.0) if self.lowered else (0.0, 1.0)
            units = self._units()
            terms |= {"false_positive": positive, "false_negative": negative}
            terms["largest_loss"] = units[1] * self.most
        made = Evidence(*ends, **terms).snapshot()
        for name, counts, unit in (
            ("wins", won, units[0]),
            ("losses", lost, units[1]),
            ("missing", self.lacking, units[1]),
        ):
            weights = sorted(each for each in counts if each > 0)
            found = [counts[each] for each in weights]
            made[name] = np.array(weights, float) / unit, np.array(found, np.int64)
        return Evidence.from_snapshot(made)

    def interval(self) -> tuple[float | None, float | None]:
        """Return bounds of the saving that hold however often one looks; None for no bound."""
        counts = {0.0: agreed} if (agreed := self.samples - self.better - self.worse) else {}
        for sums, sign in ((self.won, 1.0), (self.lost, -1.0)):
            for cost, many in _added(sums).items():
                counts[sign * cost] = counts.get(sign * cost, 0) + many
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
        names = sorted({*self.won, *self.lost})
        if names in ([], [""]):
            return []
        sure = 1 - (1 - self.confidence) / len(names)  # each may be wrong by chance
        rows = []
        for name in names:
            won, lost = self.won.get(name, {}), self.lost.get(name, {})
            better, worse = sum(won.values()), sum(lost.values())
            against = self._evidence(lost, won, sure) if worse else None
            rows.append(
                {
                    "segment": name,
                    "different": better + worse,
                    "better": better,
                    "worse": worse,
                    "saving": _total(won) - _total(lost),
                    "clearly_worse": against is not None and against.decided,
                }
            )
        return rows


def _added(sums: dict[str, dict[float, int]]) -> dict[float, int]:
    total: dict[float, int] = {}
    for counts in sums.values():
        for cost, many in counts.items():
            total[cost] = total.get(cost, 0) + many
    return total


def _total(counts: dict[float, int]) -> float:
    return sum(cost * many for cost, many in counts.items())


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
         f"evidence that it saves anything ({_percent(found.confidence)} confidence)",
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
        "young": len(shadow.waiting),
        "different": found.better + found.worse,
        "better": found.better,
        "worse": found.worse,
        "evidence": {
            "value": min(evidence.value, 1e300),
            "worst_value": min(evidence.worst_value, 1e300),
            "enough": evidence.enough,
            "decided": evidence.decided,
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
