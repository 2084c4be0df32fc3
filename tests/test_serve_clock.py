# SPDX-License-Identifier: Apache-2.0
"""A clock that is wrong deletes nothing, and whoever looks is told."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from serving import Server, compiled, folder, limen, problem, until
from test_serve_log import desk_with, labelled, scored

from limen.service.log.account import Accounts
from limen.service.log.alerts import Watch
from limen.service.log.clock import FAR
from limen.service.log.writer import Writer
from limen.service.points.definitions import Keep
from limen.service.problems import Refused
from limen.service.settings import settings_of

PATH = "/v1/points/fraud"
DAY = 86_400
SECOND = 1_000_000


# A real server under a clock that is set while it runs.


class Set:
    """The clock of the processes that are started: by how much it is wrong, in seconds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.wrong(0)

    def wrong(self, seconds: int) -> None:
        draft = self._path.with_suffix(".draft")
        draft.write_text(str(seconds))
        draft.replace(self._path)


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    return compiled("clock_shim.c", tmp_path_factory.mktemp("shim"))


@contextmanager
def under(shim: Path, monkeypatch: Any) -> Iterator[tuple[Server, Set]]:
    """A server with a point that counts 90 days, and its clock."""
    with folder() as made:
        set_to = Set(made / "shift")
        monkeypatch.setenv("LD_PRELOAD", str(shim))
        monkeypatch.setenv("CLOCK_SHIFT", str(made / "shift"))
        server = Server(made / "d", "--tick", "1s")
        try:
            define = {"memory": {"keep": "period", "length": "90d"}, "start": {"rule": "all"}}
            assert 201 == server.ask("PUT", PATH, define)[0]
            rows = [{"type": "score", "id": f"i{at}", "score": at} for at in range(5)]
            rows += [{"type": "label", "id": f"i{at}", "label": at % 2} for at in range(5)]
            assert {200} == {each["status"] for each in server.batch("fraud", rows)}
            yield server, set_to
        finally:
            if server.process is not None and server.process.poll() is None:
                server.kill()


def alerts(server: Server) -> list[str]:
    return [each["name"] for each in server.ask("GET", f"{PATH}/overview")[1]["alerts"]]


def ticks(server: Server) -> int:
    return sum(event["kind"] == "advance" for event in server.log())


def score(server: Server, id: str, when: float | None = None) -> tuple[int, Any, Any]:
    body: dict[str, Any] = {"id": id, "score": 1}
    if when is not None:
        body["time"] = datetime.fromtimestamp(when, UTC).isoformat()
    return server.ask("POST", f"{PATH}/scores", body)


@pytest.mark.parametrize("seconds", [2 * 365 * DAY, -2 * 365 * DAY])
def test_a_clock_that_is_wrong_for_seconds_deletes_nothing(shim, monkeypatch, seconds):
    with under(shim, monkeypatch) as (server, clock):
        until(lambda: ticks(server))
        clock.wrong(seconds)
        until(lambda: "clock" in alerts(server))
        assert b"limen_clock_wrong 1.0" in server.ask("GET", "/metrics")[1]
        assert any("the clock is not followed" in str(line["message"]) for line in server.lines)

        # It goes on answering, and the time goes on without the clock.
        held = ticks(server)
        assert (200, 1) == (score(server, "during")[0], score(server, "during")[1]["answer"])
        assert 200 == score(server, "with a time", time.time())[0]
        problem(score(server, "too far", time.time() + 3 * 365 * DAY), "from-the-future")
        if seconds > 0:
            assert 200 == score(server, "by the same clock", time.time() + seconds)[0]
        taken = {event.get("id"): event for event in server.log() if "id" in event}
        for id in taken.keys() & {"during", "with a time", "by the same clock"}:
            for name in ("at", "time"):
                when = datetime.fromisoformat(taken[id][name]).timestamp()
                assert abs(when - time.time()) < 60
        assert held == ticks(server)

        clock.wrong(0)
        until(lambda: "clock" not in alerts(server))
        until(lambda: ticks(server) > held)
        assert 5 == server.ask("GET", PATH)[1]["samples"]
        assert score(server, "i1")[1]["repeated"]
        assert 200 == score(server, "after", time.time())[0]


def test_a_start_long_after_the_last_event_is_held_until_it_is_confirmed(shim, monkeypatch):
    with under(shim, monkeypatch) as (server, clock):
        server.kill()
        clock.wrong(100 * DAY)
        server.start()
        assert any("the clock is not followed" in str(line["message"]) for line in server.lines)
        until(lambda: "clock" in alerts(server))
        assert 5 == server.ask("GET", PATH)[1]["samples"]
        assert 200 == score(server, "while held", time.time() + 100 * DAY)[0]
        shown = json.loads(limen("serve", "clock", "show", "--data", str(server.data)).stdout)
        assert "limen serve clock accept" in shown["wrong"]
        problem(server.ask("POST", "/v1/clock"), "not-found")  # for who owns the directory

        done = limen("serve", "clock", "accept", "--data", str(server.data))
        assert (0, None) == (done.returncode, json.loads(done.stdout)["wrong"])
        assert 0 == server.ask("GET", PATH)[1]["samples"]  # so much time has gone by
        until(lambda: "clock" not in alerts(server))
        server.kill()
        server.start()  # which finds what was confirmed
        assert 200 == score(server, "after", time.time() + 100 * DAY)[0]


def test_a_log_in_the_future_is_refused_with_the_next_step(shim, monkeypatch):
    with under(shim, monkeypatch) as (server, clock):
        server.kill()
        clock.wrong(-DAY)
        with pytest.raises(RuntimeError, match=r"lies in the future.*limen serve clock accept"):
            server.start()
        done = limen("serve", "clock", "accept", "--data", str(server.data))
        assert 0 == done.returncode, done.stderr
        assert "time stands still until then" in json.loads(done.stdout)["wrong"]
        assert 0 == limen("serve", "point", "list", "--data", str(server.data)).returncode
        for _ in range(2):
            server.start()
            until(lambda: "clock" in alerts(server))
            assert 200 == score(server, "after")[0]
            assert 5 == server.ask("GET", PATH)[1]["samples"]
            server.kill()


# The same by the desk alone: how far is far.


@pytest.fixture
def hands(monkeypatch):
    """What the clock shows and what is counted, in microseconds."""
    found = {"shown": 1_800_000_000 * SECOND, "counted": 0}
    monkeypatch.setattr("limen.service.log.clock.shown", lambda: found["shown"])
    monkeypatch.setattr("limen.service.log.clock.counted", lambda: found["counted"])
    return found


def passed(hands: dict[str, int], seconds: int, jump: int = 0) -> None:
    hands["counted"] += seconds * SECOND
    hands["shown"] += (seconds + jump) * SECOND


def filled(place: Path) -> Writer:
    writer = desk_with(place, memory=Keep("period", "30d"))
    for at in range(3):
        scored(writer, f"i{at}", at)
        labelled(writer, f"i{at}", at % 2)
    writer.commit_now()
    return writer


def test_only_far_more_than_has_passed_is_a_jump(tmp_path, hands):
    writer = filled(tmp_path / "d")
    for seconds, jump in ((60, 0), (60, -14 * 60), (60, 14 * 60), (5 * DAY, 0)):
        passed(hands, seconds, jump)
        at = writer.now()
        asyncio.run(writer.tick())
        assert at == writer.ticked == max(hands["shown"], writer.state.at)
    before = writer.state.at, hands["shown"]
    passed(hands, 60, 16 * 60)
    asyncio.run(writer.tick())
    assert before[0] == writer.state.at  # held
    assert before[1] + 60 * SECOND == writer.now()
    passed(hands, 60, -2 * 60)  # by now 14 minutes too much since the last tick that counted
    asyncio.run(writer.tick())
    assert hands["shown"] == writer.state.at
    writer.release()


def test_a_clock_that_was_set_back_can_be_confirmed(tmp_path, hands):
    writer = filled(tmp_path / "d")
    passed(hands, 60, -3600)
    scored(writer, "b")
    assert hands["shown"] + 3600 * SECOND == writer.state.at
    with pytest.raises(Refused, match="clock show"):
        scored(writer, "c", time=datetime.fromtimestamp(1_800_000_000, UTC) + timedelta(hours=1))
    asyncio.run(writer.accept_clock("control"))
    at = writer.state.at
    passed(hands, 60)
    asyncio.run(writer.tick())
    assert at == writer.state.at  # never back
    watch = Watch(writer, Accounts(), 0.0)
    asyncio.run(watch.look())
    assert "time stands still" in writer.state.alerts["clock"].text
    passed(hands, 3600)
    asyncio.run(writer.tick())
    asyncio.run(watch.look())
    assert {} == writer.state.alerts
    assert hands["shown"] == writer.state.at
    writer.release()


@pytest.mark.parametrize(
    ("days", "ahead", "held"), [(6, "7d", False), (8, "7d", True), (29, "30d", False)]
)
def test_how_long_a_service_may_have_been_away_is_a_setting(tmp_path, hands, days, ahead, held):
    filled(tmp_path / "d").release()
    passed(hands, days * DAY)
    told: list[str] = []
    writer = Writer(tmp_path / "d", told.append, ahead)
    assert held == bool(told)
    asyncio.run(writer.tick())
    assert held == (writer.state.at < hands["shown"] - FAR)
    if held:  # the clock is set, to what may be right after a start
        passed(hands, 60, -2 * DAY)
        asyncio.run(writer.tick())
        assert hands["shown"] == writer.state.at
    assert 3 == writer.point("fraud").samples()
    writer.release()
    with pytest.raises(ValueError, match="clock_ahead must be a length of time"):
        settings_of(None, {"clock_ahead": "soon"})
