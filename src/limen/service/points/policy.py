# SPDX-License-Identifier: Apache-2.0
"""The events by which thresholds change, and which of them limen makes by its policy.

All of it is decided from a point and a time alone, and happens when the events are folded. What was
decided is not decided again when the log is folded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from limen.service.points.definitions import as_rules
from limen.service.points.events import Event
from limen.service.points.judging import describe, evaluate
from limen.times import length_of

if TYPE_CHECKING:
    from limen.service.points.point import Point
    from limen.service.points.proposals import Proposal

__all__ = ["decision", "deployment", "due", "proposed"]


def deployment(
    point: Point,
    thresholds: dict[str, float],
    reason: str,
    by: str,
    at: int,
    proposal: Proposal | None = None,
    shown: dict[str, Any] | None = None,
    *,
    back_to: int | None = None,
) -> list[Event]:
    """Deploy thresholds; under a policy, the version before is then on watch.

    Not after a person has gone back to a version: that is what `back_to` names.
    """
    before = point.version
    more = _thresholds(point, thresholds, reason)
    if proposal is not None:
        more |= {"proposal": proposal.number, "shown": shown}
    if back_to is not None:
        more["back_to"] = back_to
    events = [Event("deploy", at, point.name, by=by, more=more)]
    back = back_to is not None or (proposal is not None and proposal.back_to is not None)
    if not back and before.thresholds != thresholds and point.definition.change.policy != "manual":
        why = f"version {before.number}, on watch"
        events.append(proposed(point, before.thresholds, why, "limen", at, back_to=before.number))
    return events


def proposed(
    point: Point,
    thresholds: dict[str, float],
    reason: str,
    by: str,
    at: int,
    *,
    back_to: int | None = None,
) -> Event:
    """Let a candidate run in shadow."""
    change, age = point.definition.change, point.definition.age()
    length = change.expires if back_to is None else change.at_most_every
    more = _thresholds(point, thresholds, reason) | {
        "age": age,
        "expires": at + age + length_of(length),
        "confidence": change.confidence,
        "back_to": back_to,
    }
    return Event("propose", at, point.name, by=by, more=more)


def decision(
    point: Point, proposal: Proposal, verdict: str, reason: str, by: str, at: int
) -> Event:
    """End a proposal that is not deployed."""
    more = {
        "proposal": proposal.number,
        "verdict": verdict,
        "reason": reason,
        "shown": describe(point, proposal, at),
    }
    return Event("decide", at, point.name, by=by, more=more)


def _thresholds(point: Point, thresholds: dict[str, float], reason: str) -> dict[str, Any]:
    rules = msgspec.to_builtins(as_rules(thresholds, point.direction))
    return {"thresholds": rules, "reason": reason}


def due(point: Point, at: int) -> list[Event]:
    """Propose, withdraw, let expire, deploy or go back, as the policy of a point says."""
    policy, proposal, events = point.definition.change.policy, point.proposal, []
    other = point.redefinition
    if other is not None and at >= other.expires:
        events.append(decision(point, other, "expired", "nobody decided in time", "limen", at))
    if proposal is None:
        return events if policy == "manual" else events + _candidate(point, at)
    if at >= proposal.expires:
        reason = "the samples scored since did not suffice"
        if proposal.back_to is not None:
            reason = f"version {point.version.number} stays"
        return [*events, decision(point, proposal, "expired", reason, "limen", at)]
    if policy == "automatic" and evaluate(point, proposal, at)[2] == "waiting":
        shown = describe(point, proposal, at)
        why = _reason(proposal, shown)
        return events + deployment(point, proposal.thresholds, why, "limen", at, proposal, shown)
    if policy != "manual" and proposal.by == "limen" and proposal.back_to is None:
        return events + _withdrawal(point, proposal, at)
    return events


def _candidate(point: Point, at: int) -> list[Event]:
    """Propose what would have been cheaper, where the samples rule out what is in effect."""
    change = point.definition.change
    if point.samples() < change.at_least:
        return []
    newest = point.newest()
    last = None if newest is None else newest.closed
    if last is not None and last.verdict in ("rejected", "withdrawn") and last.by != "limen":
        rested = at - last.at >= length_of(change.at_most_every)
        if not rested:
            return []
    candidate = point.candidate()
    if candidate is None:
        return []
    now, then = point.loss_under(point.version.thresholds), point.loss_under(candidate)
    if not (then < now and then <= now * (1 - change.least_saving)):
        return []
    saved, many = 1 - then / now, point.samples()
    reason = f"{saved:.1%} cheaper on {many:,} labelled samples, which chose it"
    return [proposed(point, candidate, reason, "limen", at)]


def _withdrawal(point: Point, proposal: Proposal, at: int) -> list[Event]:
    """Withdraw a candidate of limen's that the samples rule out by now."""
    for segment, threshold in proposal.thresholds.items():
        model, now = point.model(segment), point.version.find(segment)[0]
        same = now == threshold or (now != now and threshold != threshold)
        if not same and model is not None and not model.keeps(threshold):
            reason = "the samples scored since rule it out"
            return [decision(point, proposal, "withdrawn", reason, "limen", at)]
    return []


def _reason(proposal: Proposal, shown: dict[str, Any]) -> str:
    saved, many = shown["saving"]["share"], shown["samples"]
    what = "back to the version before" if proposal.back_to is not None else proposal.reason
    return f"{saved:.1%} cheaper on {many:,} samples scored since: {what}"
