# SPDX-License-Identifier: Apache-2.0
"""Four eyes: one person alone changes neither the thresholds nor the definition of a point."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from serving import Server, folder, limen, problem
from test_proposals import HOUR, begin, clock, decision, same_after_a_restart  # noqa: F401

from limen.service.bodies import Deployment, NewProposal, Rollback
from limen.service.http.deciding import _rows
from limen.service.log.writer import Writer
from limen.service.points.definitions import Definition, Rule, Words
from limen.service.points.judging import shown_proposal
from limen.service.problems import Refused

pytestmark = pytest.mark.usefixtures("clock")


def with_change(definition: Definition, **change: Any) -> Definition:
    changed = msgspec.structs.replace(definition.change, **change)
    return msgspec.structs.replace(definition, change=changed)


def define(writer: Writer, definition: Definition, by: str, reason: str = "") -> int:
    return asyncio.run(writer.define("fraud", definition, by, None, reason))


def approve(writer: Writer, number: int, by: str, **more: Any) -> None:
    asyncio.run(writer.approve(writer.point("fraud"), number, decision(writer, **more), by))


def deploy(writer: Writer, by: str) -> None:
    rules = Deployment({"": Rule("all")})
    asyncio.run(writer.deploy(writer.point("fraud"), rules, by))


@pytest.mark.parametrize("change", [{"four_eyes": False}, {"policy": "manual"}])
def test_one_person_cannot_put_four_eyes_aside(tmp_path, change):
    writer = begin(tmp_path / "d", "proposed")
    before = writer.point("fraud").definition
    seq = define(writer, with_change(before, **change), "anna", "in my way")
    assert before == writer.point("fraud").definition
    for who in ("anna", "ben"):
        with pytest.raises(Refused, match="Propose it"):
            deploy(writer, who)
    with pytest.raises(Refused, match="another person has to approve") as refused:
        approve(writer, 1, "anna", despite=True)
    assert "four-eyes" == refused.value.name
    assert seq == writer.point("fraud").changed
    same_after_a_restart(writer)

    approve(writer, 1, "ben")
    assert with_change(before, **change) == writer.point("fraud").definition
    deploy(writer, "anna")
    rows = sorted(_rows(writer.point("fraud")), key=lambda row: row["seq"])
    told = [(row["kind"], row["by"], row["text"], row["reason"]) for row in rows[2:5]]
    assert [
        ("proposal", "anna", "proposal 1: another definition", "in my way"),
        ("definition", "ben", "the point was defined, which was proposal 1", "looked at it"),
        ("version", "anna", "version 2", ""),
    ] == told
    shown = shown_proposal(writer.point("fraud"), writer.point("fraud").proposals[0], writer.now())
    assert ("definition", "approved", "ben") == (
        shown["kind"],
        shown["status"],
        shown["closed"]["by"],
    )
    ((name, value),) = change.items()
    was = msgspec.to_builtins(before.change)[name]
    assert [{"field": f"change.{name}", "now": was, "then": value}] == shown["changes"]
    same_after_a_restart(writer)
    writer.release()


TIGHTER = [
    {"at_least": 41},
    {"different": 6, "confidence": 0.99},
    {"least_saving": 0.5},
    {"shadow": "121m"},
    {"at_most_every": "1d"},
    {"most_answered": 0.1},
    {},
]
LOOSER = [
    {"at_least": 39},
    {"at_least": 41, "different": 4},
    {"confidence": 0.5},
    {"least_saving": 0.0},
    {"shadow": "7199s"},
    {"at_most_every": "19h"},
    {"most_answered": 5.5},
    {"expires": "20h"},
    {"age": "30m"},
    {"largest_weight": 2.0},
    {"policy": "automatic"},
]


def test_one_person_may_tighten_and_nothing_else(tmp_path):
    writer = begin(tmp_path / "d", "proposed")
    point = writer.point("fraud")
    first = point.definition
    assert all(first.only_tightened_by(with_change(first, **each)) for each in TIGHTER)
    others = [with_change(first, **each) for each in LOOSER]
    others += [
        msgspec.structs.replace(first, **each)
        for each in (
            {"false_negative": 2},
            {"words": Words("pass", "hold")},
            {"start": Rule("all")},
            {"maturity": "1s"},
        )
    ]
    assert not any(first.only_tightened_by(each) for each in others)
    define(writer, others[0], "anna")
    define(writer, with_change(first, at_least=50), "ben")
    assert 50 == point.definition.change.at_least
    closed = point.proposals[0].closed  # or its approval would loosen what ben has tightened
    assert ("superseded", "ben") == (closed.verdict, closed.by)
    with pytest.raises(Refused, match="was superseded"):
        approve(writer, 1, "cleo")
    same_after_a_restart(writer)
    writer.release()


def test_a_definition_that_is_proposed_waits_beside_thresholds_until_somebody_decides(
    tmp_path,
    clock,  # noqa: F811
):
    writer = begin(tmp_path / "d", "proposed")
    point = writer.point("fraud")
    first = point.definition
    rule = NewProposal({"": Rule("at_least", 0.4)}, "a guess", writer.state.seq)
    asyncio.run(writer.propose(point, rule, "ben"))
    loose, looser = (with_change(first, at_least=many) for many in (20, 10))
    seq = define(writer, loose, "anna")
    assert seq == define(writer, loose, "anna")  # the same again is the same
    with pytest.raises(Refused, match="Proposal 2, another definition, is open") as refused:
        define(writer, looser, "ben")
    assert "one-at-a-time" == refused.value.name
    define(writer, looser, "anna")  # in the place of her first
    assert ("superseded", 3) == (point.proposals[1].closed.verdict, point.redefinition.number)
    asyncio.run(writer.close_proposal(point, 3, decision(writer), "ben", "rejected"))
    define(writer, loose, "anna")
    asyncio.run(writer.close_proposal(point, 4, decision(writer), "anna", "withdrawn"))
    define(writer, loose, "anna")
    same_after_a_restart(writer)
    clock[0] += 10 * HOUR
    asyncio.run(writer.tick())
    assert ["superseded", "rejected", "withdrawn", "expired"] == [
        each.closed.verdict for each in point.proposals[1:]
    ]
    assert first == point.definition
    assert 1 == point.proposal.number
    assert point.shadow is not None
    same_after_a_restart(writer)
    approve(writer, 1, "anna", despite=True)
    assert 2 == point.version.number
    writer.release()


def test_who_decides_while_the_history_is_folded_anew_is_the_one_who_counts(tmp_path, monkeypatch):
    writer = begin(tmp_path / "d", "proposed")
    first = writer.point("fraud").definition
    define(writer, msgspec.structs.replace(first, false_negative=3), "anna")
    aside = writer.aside

    async def late(work: Any, *given: Any) -> Any:
        await writer.close_proposal(writer.point("fraud"), 1, decision(writer), "anna", "withdrawn")
        return await aside(work, *given)

    monkeypatch.setattr(writer, "aside", late)
    with pytest.raises(Refused, match="was withdrawn by anna already"):
        approve(writer, 1, "ben")
    assert first == writer.point("fraud").definition
    same_after_a_restart(writer)
    writer.release()


def test_one_person_goes_back_to_the_version_before_and_no_further(tmp_path):
    writer = begin(tmp_path / "d", "proposed")
    point = writer.point("fraud")
    for threshold in (0.5, 0.4):
        rule = NewProposal({"": Rule("at_least", threshold)}, "a guess", writer.state.seq)
        asyncio.run(writer.propose(point, rule, "anna"))
        approve(writer, point.proposal.number, "ben", despite=True)
    with pytest.raises(Refused, match="version before, 2, and no further") as refused:
        asyncio.run(writer.rollback(point, Rollback("far", writer.state.seq, 1), "anna"))
    assert "four-eyes" == refused.value.name
    assert {"": 0.4} == point.version.thresholds
    asyncio.run(writer.rollback(point, Rollback("it went wrong", writer.state.seq, 2), "anna"))
    assert (4, {"": 0.5}, 2) == (
        point.version.number,
        point.version.thresholds,
        point.version.back_to,
    )
    row = max(_rows(point), key=lambda row: row["seq"])
    assert ("version 4, back to version 2", "anna") == (row["text"], row["by"])
    same_after_a_restart(writer)
    writer.release()


def test_a_token_that_may_do_everything_changes_nothing_alone():
    path = "/v1/points/fraud"
    with folder() as made:
        data = ("--data", str(made / "d"))
        added = limen("serve", "point", "add", "fraud", "--policy", "proposed", *data)
        assert 0 == added.returncode, added.stderr
        every = [f"--scope={each}" for each in ("read", "propose", "approve", "admin")]
        tokens = {
            name: limen("serve", "token", "add", name, *every, *data).stdout.strip()
            for name in ("anna", "ben")
        }
        server = Server(made / "d")

        def ask(who: str, method: str, rest: str, body: Any = None) -> Any:
            server.token = tokens[who]
            return server.ask(method, f"{path}{rest}", body)

        first = ask("anna", "GET", "")[1]["definition"]
        off = {**first, "change": {**first["change"], "four_eyes": False}}
        status, found, _ = ask("anna", "PUT", "?reason=in+my+way", off)
        assert (202, "definition", 1) == (status, found["kind"], found["number"])
        assert 1 == ask("anna", "PUT", "", off)[1]["number"]
        assert first == ask("anna", "GET", "")[1]["definition"]
        shown = ask("ben", "GET", "/overview")[1]
        assert ("in my way", off) == tuple(
            shown["redefinition"][key] for key in ("reason", "definition")
        )
        change = {"field": "change.four_eyes", "now": True, "then": False}
        assert [change] == ask("ben", "GET", "/proposals/1")[1]["changes"]
        decided = {"reason": "agreed", "seen": shown["seq"]}
        problem(ask("anna", "POST", "/proposals/1/approve", decided), "four-eyes")
        problem(ask("anna", "POST", "/deploy", {"thresholds": {"": {"rule": "all"}}}), "four-eyes")
        added = limen("serve", "point", "add", "fraud", *data)
        assert 3 == added.returncode, added.stderr
        assert "Proposal 1, another definition, is open" in added.stderr
        assert 200 == ask("ben", "POST", "/proposals/1/approve", decided)[0]
        assert off == ask("anna", "GET", "")[1]["definition"]
        kinds = [each["kind"] for each in ask("anna", "GET", "/changes")[1]["changes"]]
        assert ["definition", "proposal"] == kinds[:2]
        tight = {**first, "change": {**off["change"], "four_eyes": True}}
        assert 200 == ask("anna", "PUT", "", tight)[0]
        added = limen("serve", "point", "add", "fraud", *data)
        assert 0 == added.returncode
        assert "proposal 2, which another person has to approve" in added.stderr
        server.kill()
