# SPDX-License-Identifier: Apache-2.0
"""A point whose lower scores mean positive does, mirrored, what one of negated scores does."""

from __future__ import annotations

import asyncio
import math
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from serving import serving
from test_proposals import HOUR, QUICK, clock, same_after_a_restart  # noqa: F401 - a fixture
from test_serve_log import desk_with, labelled, scored

import limen
from limen.service.http.overview import _rule
from limen.service.log.writer import Writer
from limen.service.points.account import by_segment, passed
from limen.service.points.definitions import Change, Definition, Rule, Segments
from limen.service.points.judging import shown_proposal

KINDS = {">=": "at_least", "<=": "at_most"}


def followed(folder: Path, clock: list[int], direction: Any, segments: bool) -> Writer:  # noqa: F811
    """Let two days go by at a point that begins with a bad threshold and changes by itself."""
    sign, draw = 1 if direction == ">=" else -1, random.Random(3)
    writer = desk_with(
        folder,
        start=Rule(KINDS[direction], sign * 0.6),
        change=Change("automatic", **QUICK),
        segments=Segments(at_least=20) if segments else None,
        direction=direction,
    )
    for hour in range(48):
        rows = []
        for at in range(20):
            score, id = draw.randrange(64) / 64, f"{hour}-{at}"
            given: Any = {"segment": draw.choice(["a", "b/c"])} if segments else {}
            scored(writer, id, sign * score, **given)
            rows.append((id, int(draw.random() < (0.95 if score >= 0.3 else 0.05))))
        clock[0] += HOUR // 2
        for id, label in rows:
            labelled(writer, id, label)
        clock[0] += HOUR // 2
        writer.commit_now()
        asyncio.run(writer.tick())
    return writer


def mirrored(found: Any) -> Any:
    """What is said in one direction, as the other one says it."""
    if isinstance(found, list):
        return [mirrored(each) for each in found]
    if not isinstance(found, dict):
        return found
    if found.get("rule") in KINDS.values():
        return {"rule": "at_least", "threshold": -found["threshold"]}
    ends = {name: found[name] for name in ("low", "high") if name in found}
    turned = {name: mirrored(each) for name, each in found.items()}
    if len(ends) == 2:  # of an interval of thresholds
        turned |= {"low": negated(ends["high"]), "high": negated(ends["low"])}
    for name in ("optimum", "threshold"):  # in charts
        if name in found and not isinstance(found[name], dict):
            turned[name] = negated(found[name])
    return turned


def negated(end: Any) -> Any:
    texts = {"inf": "-inf", "-inf": "inf", None: None}
    return texts[end] if end in texts else 0.0 - end


def told(writer: Writer) -> dict[str, Any]:
    """All that a point says of thresholds, ready for JSON."""
    point, now = writer.point("fraud"), writer.now()
    best = float(point.of_all().threshold)
    columns, account = passed(point, best, now, point.definition.age())
    overview = _rule(point, writer.on_disk, now, writer.ticked)
    for name in ("definition", "proposal", "redefinition"):
        overview.pop(name)
    overview["version"].pop("direction")
    return msgspec.to_builtins(
        {
            "overview": overview,
            "account": account,
            "segments": by_segment(columns, point),
            "versions": [each.shown(">=") | {"thresholds": None} for each in point.versions],
            "candidate": point.candidate() is None,
            "loss": point.loss_under(point.version.thresholds),
        }
    )


@pytest.mark.parametrize("segments", [False, True], ids=["one", "segments"])
def test_it_answers_judges_and_changes_as_on_negated_scores(tmp_path, clock, segments):  # noqa: F811
    begun = clock[0]
    higher = followed(tmp_path / "higher", clock, ">=", segments)
    end, clock[0] = clock[0], begun
    lower = followed(tmp_path / "lower", clock, "<=", segments)

    assert end == clock[0]
    one, other = higher.point("fraud"), lower.point("fraud")
    assert one.version.number > 1
    assert [
        {segment: 0.0 - each for segment, each in version.thresholds.items()}
        for version in other.versions
    ] == [version.thresholds for version in one.versions]
    assert (one.ones, one.ledger.cost) == (other.ones, other.ledger.cost)
    assert told(higher) == mirrored(told(lower))
    shown = [
        [msgspec.to_builtins(shown_proposal(point, each, end)) for each in point.proposals]
        for point in (one, other)
    ]
    for ours, theirs in zip(*shown, strict=True):
        names = ("now", "thresholds")
        rules = [{name: each.pop(name) for name in names} for each in (ours, theirs)]
        assert rules[0] == mirrored(rules[1])
        assert ours == theirs
    same_after_a_restart(lower)


def test_rules_are_those_of_the_direction() -> None:
    assert Definition(direction="<=", start=Rule("at_most", 3.0)).start.number("<=") == 3.0
    with pytest.raises(ValueError, match="rules are at_most, all and none"):
        Definition(direction="<=", start=Rule("at_least", 3.0))
    with pytest.raises(ValueError, match="rules are at_least, all and none"):
        Definition(start=Rule("at_most", 3.0))
    with pytest.raises(ValueError, match="need a threshold"):
        Rule("at_most")


def test_over_http_and_in_the_client() -> None:
    with serving() as server:
        made = {"direction": "<=", "start": {"rule": "at_most", "threshold": 2.0}}
        status, shown, _ = server.ask("PUT", "/v1/points/near", made)
        assert (201, "<=") == (status, shown["definition"]["direction"])
        answers = [
            server.ask("POST", "/v1/points/near/scores", {"id": str(score), "score": score})[1]
            for score in (1.0, 2.0, 2.5)
        ]
        assert [(1, "at_most", 2.0)] * 2 + [(0, "at_most", 2.0)] == [
            (each["answer"], each["rule"], each["threshold"]) for each in answers
        ]
        seen = server.ask("GET", "/v1/points/near")[1]["seq"]
        for where in ("deploy", "proposals"):
            body = {"thresholds": {"": {"rule": "at_least", "threshold": 1.0}}, "reason": "test"}
            body["seen"] = seen
            status, problem, _ = server.ask("POST", f"/v1/points/near/{where}", body)
            assert 400 <= status < 500
            assert "rules are at_most" in problem["detail"]
        status, problem, _ = server.ask("PUT", "/v1/points/near", {})
        assert 400 <= status < 500
        assert "direction is <= and stays so" in problem["detail"]
        with limen.Client(f"http://127.0.0.1:{server.port}") as client:
            assert 2.0 == client.threshold("near")
            assert [1, 0] == [client.answer("near", f"c{at}", at) for at in (2, 3)]
        for rule, threshold, answer in (("all", math.inf, 1), ("none", math.nan, 0)):
            body = {"thresholds": {"": {"rule": rule}}, "reason": "test"}
            assert 200 == server.ask("POST", "/v1/points/near/deploy", body)[0]
            with limen.Client(f"http://127.0.0.1:{server.port}") as client:
                assert repr(threshold) == repr(client.threshold("near"))
                assert answer == client.answer("near", rule, 1e300)
