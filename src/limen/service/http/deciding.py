# SPDX-License-Identifier: Apache-2.0
"""What people decide by HTTP: versions, proposals, and the history of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from limen.service.bodies import Decision, Deployment, NewProposal, Rollback
from limen.service.http.app import Answer, Call, encode
from limen.service.http.routes import Route, Whole
from limen.service.points.definitions import as_rules
from limen.service.points.events import as_datetime
from limen.service.points.judging import evaluate, shown_proposal
from limen.service.problems import Refused

if TYPE_CHECKING:
    from limen.service.points.point import Point
    from limen.service.points.proposals import Proposal

__all__ = ["DECIDING", "open_proposal", "status_of"]


def open_proposal(point: Point, on_disk: int, *, definition: bool = False) -> Proposal | None:
    """Return the proposal of thresholds that is open, or of a definition, if it is on disk."""
    found = point.redefinition if definition else point.proposal
    return found if found is not None and found.seq <= on_disk else None


def status_of(point: Point, now: int, on_disk: int) -> str | None:
    """Say whether a proposal is in shadow or waits for approval."""
    if open_proposal(point, on_disk, definition=True) is not None:
        return "waiting"
    found = open_proposal(point, on_disk)
    return None if found is None else evaluate(point, found, now)[2]


async def deploy(call: Call) -> Answer:
    """Deploy thresholds."""
    item = await call.read()
    return _version(*await call.writer.deploy(call.point(), item, call.by))


async def rollback(call: Call) -> Answer:
    """Deploy the thresholds of an earlier version again."""
    item = await call.read()
    return _version(*await call.writer.rollback(call.point(), item, call.by))


def _version(number: int, seq: int) -> Answer:
    return Answer(encode({"version": number, "seq": seq}))


async def propose(call: Call) -> Answer:
    """Propose thresholds, which run in shadow."""
    item = await call.read()
    point = call.point()
    made = await call.writer.propose(point, item, call.by)
    return Answer(encode(shown_proposal(point, made, call.writer.now())), 201)


async def approve(call: Call) -> Answer:
    """Deploy a candidate."""
    item = await call.read()
    return _version(*await call.writer.approve(call.point(), _number(call), item, call.by))


async def reject(call: Call) -> Answer:
    """Reject a candidate."""
    return await _closed(call, "rejected")


async def withdraw(call: Call) -> Answer:
    """Withdraw what one proposed."""
    return await _closed(call, "withdrawn")


async def _closed(call: Call, verdict: str) -> Answer:
    item = await call.read()
    seq = await call.writer.close_proposal(call.point(), _number(call), item, call.by, verdict)
    return Answer(encode({"seq": seq}))


def _number(call: Call) -> int:
    text = call.path["number"]
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise Refused("invalid", "A proposal is named by its number.")
    return int(text)


async def proposals(call: Call) -> Answer:
    """List the proposals, the newest first."""
    point, before, most = call.point(), call.asked("before"), call.asked("limit")
    found = [each for each in point.proposals if each.number < before][::-1]
    rows = [
        shown_proposal(point, each, call.writer.now())
        for each in found
        if each.seq <= call.writer.on_disk
    ]
    return Answer(encode({"proposals": rows[:most]}))


async def proposal(call: Call) -> Answer:
    """Return a proposal and what judges it."""
    point, number = call.point(), _number(call)
    for each in point.proposals:
        if each.number == number and each.seq <= call.writer.on_disk:
            return Answer(encode(shown_proposal(point, each, call.writer.now())))
    raise Refused("not-found", f"There is no proposal {number}.")


async def changes(call: Call) -> Answer:
    """List what changed, the newest first: versions, proposals, decisions, alerts, definitions."""
    before, most = call.asked("before"), call.asked("limit")
    last = min(before - 1, call.writer.on_disk)
    rows = [row for row in _rows(call.point()) if row["seq"] <= last]
    rows.sort(key=lambda row: row["seq"], reverse=True)
    more = rows[most - 1]["seq"] if 0 < most < len(rows) else None
    return Answer(encode({"changes": rows[:most], "before": more}))


def _rows(point: Point) -> list[dict[str, Any]]:
    rows = []
    known = {each.number: as_rules(each.thresholds, point.direction) for each in point.versions}
    for version in point.versions:
        text = f"version {version.number}"
        if version.proposal is not None:
            text += f", which was proposal {version.proposal}"
        if version.back_to is not None:
            text += f", back to version {version.back_to}"
        rows.append(_row(version, "version", text, number=version.number,
                         before=known.get(version.number - 1),
                         thresholds=known[version.number]))  # fmt: skip
    for each in point.proposals:
        text = f"proposal {each.number}, in shadow"
        if each.back_to is not None:
            text = f"proposal {each.number}: version {each.back_to} is on watch"
        after = as_rules(each.thresholds, point.direction)
        cuts: dict[str, Any] = {"before": known.get(each.version), "thresholds": after}
        if each.definition is not None:
            text, cuts = f"proposal {each.number}: another definition", {}
        rows.append(_row(each, "proposal", text, number=each.number, **cuts))
        end = each.closed
        if end is not None and end.verdict not in ("approved", "superseded"):
            text = f"proposal {each.number} {end.verdict}"
            rows.append(_row(end, "decision", text, number=each.number, verdict=end.verdict))
    for note in point.notes:
        text = note.text or "the point was defined"
        rows.append(_row(note, note.kind, text, name=note.name or None))
    return rows


def _row(of: Any, kind: str, text: str, **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("number", "verdict", "before", "thresholds", "name"))
    return {
        "seq": of.seq,
        "at": as_datetime(of.at),
        "kind": kind,
        "by": of.by,
        "reason": getattr(of, "reason", ""),
        **empty,
        **more,
        "text": text,
    }


_POINT = "/v1/points/{point}"
_ONE = f"{_POINT}/proposals/{{number}}"
_BEFORE = Whole(2**53)

DECIDING = (
    Route("POST", f"{_POINT}/deploy", "approve", deploy, body=Deployment, refusals=(409,)),
    Route("POST", f"{_POINT}/rollback", "approve", rollback, body=Rollback, refusals=(409,)),
    Route("GET", f"{_POINT}/proposals", "read", proposals,
          query={"before": _BEFORE, "limit": Whole(20, 100)}),
    Route("POST", f"{_POINT}/proposals", "propose", propose,
          body=NewProposal, statuses=(201,), refusals=(409,)),
    Route("GET", _ONE, "read", proposal),
    Route("POST", f"{_ONE}/approve", "approve", approve, body=Decision, refusals=(409,)),
    Route("POST", f"{_ONE}/reject", "approve", reject, body=Decision, refusals=(409,)),
    Route("POST", f"{_ONE}/withdraw", "propose", withdraw, body=Decision, refusals=(409,)),
    Route("GET", f"{_POINT}/changes", "read", changes,
          query={"before": _BEFORE, "limit": Whole(50, 100)}),
)  # fmt: skip
