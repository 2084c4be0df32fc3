# SPDX-License-Identifier: Apache-2.0
"""Proposals over HTTP, and what those who watch are told of them: real server processes."""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from serving import Server, folder, limen, problem, serving, until
from test_serve_page import SAME, signed_in, token

QUICK = {
    "policy": "proposed", "at_least": 20, "different": 5, "least_saving": 0.0, "age": "1s",
    "shadow": "1s", "expires": "1h", "at_most_every": "1h", "most_answered": 9.0,
    "confidence": 0.8,
}  # fmt: skip
POINT = {"start": {"rule": "at_least", "threshold": 0.9}, "change": QUICK}
PATH = "/v1/points/fraud"
PARTS = {"name", "met", "what", "have", "need", "text"}  # of a demand


class Listening:
    """One who listens: reads events in a thread."""

    def __init__(self, server: Server, query: str = "", **headers: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        self.connection.request("GET", f"/v1/stream{query}", headers=headers)
        self.response = self.connection.getresponse()
        self.events: list[tuple[str, Any, int]] = []
        self.ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        name, seq, data = "", 0, ""
        try:
            for raw in self.response:
                line = raw.decode().rstrip("\n")
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "id":
                    seq = int(value)
                elif field == "data":
                    data = value
                elif not line and data:
                    self.events.append((name, json.loads(data), seq))
                    data = ""
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass
        self.ended = True

    def of(self, name: str) -> list[Any]:
        return [data for kind, data, _ in list(self.events) if kind == name]


@contextmanager
def listening(server: Server, query: str = "", **headers: str) -> Iterator[Listening]:
    made = Listening(server, query, **headers)
    try:
        yield made
    finally:
        if made.connection.sock is not None:
            made.connection.sock.close()


def samples(server: Server, prefix: str, many: int) -> None:
    """Send scores with labels, of which all from 0.5 on are 1."""
    draw, rows = random.Random(prefix), []
    for at in range(many):
        score = draw.random()
        rows.append({"type": "score", "id": f"{prefix}{at}", "score": score})
        rows.append({"type": "label", "id": f"{prefix}{at}", "label": int(score >= 0.5)})
    assert {200} == {line["status"] for line in server.batch("fraud", rows)}


def seen(server: Server) -> int:
    return int(server.ask("GET", f"{PATH}/overview")[1]["seq"])


def test_a_proposal_from_its_beginning_to_a_version_seen_by_all_who_watch():
    with serving("--tick", "1s", define=POINT) as server, listening(server) as other:
        samples(server, "a", 60)
        found = until(lambda: server.ask("GET", f"{PATH}/overview")[1]["proposal"])
        assert ("limen", "candidate", "shadow") == (found["by"], found["kind"], found["status"])
        assert [] == [each for each in found["demands"] if set(each) != PARTS]
        begun = until(lambda: other.of("proposal"))[0]
        assert ("fraud", 1, "shadow") == (begun["point"], begun["number"], begun["status"])
        early = {"reason": "now", "seen": seen(server)}
        problem(server.ask("POST", f"{PATH}/proposals/1/approve", early), "not-yet")
        samples(server, "b", 60)
        until(lambda: server.ask("GET", f"{PATH}/proposals/1")[1]["status"] == "waiting")
        assert "waiting" == server.ask("GET", "/v1/points")[1][0]["proposal"]
        body = {"reason": "<script>alert(1)</script>", "seen": seen(server)}
        answers: list[Any] = []
        both = [
            threading.Thread(
                target=lambda: answers.append(
                    server.ask("POST", f"{PATH}/proposals/1/approve", body)
                )
            )
            for _ in range(2)
        ]
        for each in both:
            each.start()
        for each in both:
            each.join()
        assert [200, 409] == sorted(status for status, *_ in answers)
        problem(next(each for each in answers if each[0] == 409), "moved-on")
        versions = [1, 2]
        until(lambda: [each["version"]["version"] for each in other.of("version")] == versions)
        assert body["reason"] == other.of("version")[-1]["version"]["reason"]
        until(lambda: len(other.of("proposal")) == 3)
        verdicts = [(each["number"], each["status"]) for each in other.of("proposal")]
        assert [(1, "shadow"), (1, "approved"), (2, "shadow")] == verdicts
        tick = until(lambda: [each for each in other.of("tick") if each["version"] == 2])[-1]
        state = server.ask("GET", f"{PATH}/overview")[1]
        assert state["tiles"] == {name: tick[name] for name in state["tiles"]}
        rows = server.ask("GET", f"{PATH}/changes")[1]["changes"]
        kinds = [(row["kind"], row["number"]) for row in rows]
        assert [("proposal", 2), ("version", 2), ("proposal", 1)] == kinds[:3]
        page = server.ask("GET", f"{PATH}/changes?limit=2")[1]
        rest = server.ask("GET", f"{PATH}/changes?before={page['before']}")[1]["changes"]
        assert rows == page["changes"] + rest
        server.kill()
        server.start()
        assert rows == server.ask("GET", f"{PATH}/changes")[1]["changes"]
        closed = server.ask("GET", f"{PATH}/proposals/1")[1]
        assert ("approved", 2) == (closed["status"], closed["closed"]["version"])
        assert all(each["met"] for each in closed["demands"])
        assert 0 == limen("serve", "verify", "--data", str(server.data)).returncode


def test_who_may_propose_and_who_may_decide():
    with folder() as made:
        data = made / "d"
        limen("serve", "point", "add", "fraud", "--data", str(data))
        limen("serve", "point", "add", "other", "--data", str(data))
        tokens = {
            "anna": token(data, "anna", "read", "propose"),
            "ben": token(data, "ben", "read", "approve"),
            "cleo": token(data, "cleo", "read"),
            "dan": token(data, "dan", "read", "propose", "approve"),
            "elsewhere": token(data, "elsewhere", "read", more=("--point", "other")),
        }
        server = Server(data)
        cookies = {name: {**signed_in(server, each), **SAME} for name, each in tokens.items()}

        def ask(who: str, path: str, body: Any = None) -> Any:
            method = "GET" if body is None else "POST"
            return server.ask(method, f"{PATH}{path}", body, cookies[who])

        rule = {"": {"rule": "at_least", "threshold": 0.5}}
        new = {"thresholds": rule, "reason": "a start", "seen": 10}
        for who in ("ben", "cleo", "elsewhere"):
            problem(ask(who, "/proposals", new), "forbidden")
        problem(ask("anna", "/proposals", {**new, "seen": 0}), "moved-on")
        problem(ask("anna", "/proposals", {**new, "reason": ""}), "invalid")
        problem(ask("anna", "/proposals", {"thresholds": rule, "reason": "x"}), "invalid")
        assert 201 == ask("anna", "/proposals", new)[0]
        after = {"reason": "why", "seen": ask("anna", "/overview")[1]["seq"]}
        for who in ("anna", "cleo"):
            problem(ask(who, "/proposals/1/approve", after), "forbidden")
            problem(ask(who, "/proposals/1/reject", after), "forbidden")
        problem(ask("dan", "/proposals/1/withdraw", after), "forbidden")
        problem(ask("elsewhere", "/proposals/1"), "forbidden")
        problem(ask("ben", "/proposals/7/approve", after), "not-found")
        assert 200 == ask("anna", "/proposals/1/withdraw", after)[0]
        after["seen"] = ask("anna", "/overview")[1]["seq"]
        assert 201 == ask("dan", "/proposals", {**new, **after})[0]
        after["seen"] = ask("anna", "/overview")[1]["seq"]
        problem(ask("dan", "/proposals/2/approve", {**after, "despite": True}), "four-eyes")
        problem(ask("ben", "/proposals/2/approve", after), "not-yet")
        done = ask("ben", "/proposals/2/approve", {**after, "despite": True})
        assert (200, 2) == (done[0], done[1]["version"])
        assert "ben" == ask("cleo", "/overview")[1]["version"]["by"]
        problem(
            server.ask("GET", "/v1/stream?point=fraud", None, cookies["elsewhere"]), "forbidden"
        )
        problem(server.ask("GET", "/v1/stream?point=fraud"), "unauthorized")
        with listening(server, **cookies["elsewhere"]) as narrow:
            until(lambda: narrow.of("tick"))
            assert {"other"} == {each["point"] for each in narrow.of("tick")}
        server.kill()


def test_what_was_missed_is_sent_again_or_the_page_is_told_to_load_anew():
    with serving(define={}) as server:
        rule = {"": {"rule": "at_least", "threshold": 0.25}}
        start = seen(server)
        with listening(server, "?point=fraud") as first:
            until(lambda: first.of("tick"))
        server.ask("POST", f"{PATH}/deploy", {"thresholds": rule, "reason": "one"})
        time.sleep(0.3)
        with listening(server, **{"Last-Event-ID": str(start)}) as again:
            assert "one" == until(lambda: again.of("version"))[0]["version"]["reason"]
            assert [] == again.of("reset")
            last = again.events[-1][2]
            begun = time.monotonic()
            server.ask("POST", f"{PATH}/scores", {"id": "live", "score": 0.5})
            until(lambda: any(each["scored"] == 1 for each in again.of("tick")))
            assert time.monotonic() - begun < 5  # below one second on a machine of its own
            server.process.terminate()
            until(lambda: again.ended)
            assert "bye" == again.events[-1][0]
            assert 0 == server.ended()
        server.start()
        with listening(server, **{"Last-Event-ID": str(last - 1)}) as late:
            until(lambda: late.of("reset"))


def test_who_does_not_read_costs_no_memory_and_there_is_a_limit():
    with folder() as made:
        config = made / "limen.toml"
        config.write_text("most_listeners = 3\n")
        server = Server(made / "d", "--config", str(config))
        server.ask("PUT", PATH, {})
        head = b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
        stalled = []
        for _ in range(3):
            each = socket.socket()
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.connect(("127.0.0.1", server.port))
            each.sendall(head)
            stalled.append(each)
        until(lambda: server.ask("GET", "/v1/stream")[0] == 503)
        for each in stalled:
            each.close()

        def free() -> bool:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
            connection.request("GET", "/v1/stream")
            status = connection.getresponse().status
            connection.sock.close()
            return status == 200

        until(free)
        server.kill()


def test_a_kill_while_a_proposal_is_approved_leaves_all_of_it_or_nothing():
    define = {"change": {**QUICK, "four_eyes": False}}
    rule = {"": {"rule": "at_least", "threshold": 0.25}}
    with serving(define=define) as server:
        version = number = 1
        for phase in ("before-commit", "before-head", "before-answer"):
            point = server.ask("GET", f"{PATH}/overview")[1]
            if point["proposal"] is None:
                body = {"thresholds": rule, "reason": phase, "seen": point["seq"]}
                number = server.ask("POST", f"{PATH}/proposals", body)[1]["number"]
            before = server.ask("GET", f"{PATH}/proposals/{number}")[1]
            assert "shadow" == before["status"]
            decision = {"reason": phase, "seen": seen(server), "despite": True}
            server.kill()
            server.start(f"{phase}:1")
            with pytest.raises((OSError, http.client.HTTPException)):
                server.ask("POST", f"{PATH}/proposals/{number}/approve", decision)
            server.ended()
            server.start()
            point = server.ask("GET", f"{PATH}/overview")[1]
            closed = server.ask("GET", f"{PATH}/proposals/{number}")[1]
            if phase == "before-commit":
                del before["demands"], closed["demands"]  # one says how long it is in shadow
                assert (version, before) == (point["version"]["version"], closed)
                continue
            version += 1
            assert (version, phase) == (point["version"]["version"], point["version"]["reason"])
            assert ("approved", version) == (closed["status"], closed["closed"]["version"])
            watch = point["proposal"]
            assert (number + 1, version - 1) == (watch["number"], watch["back_to"])
            seq = seen(server)
            rejected = server.ask(
                "POST", f"{PATH}/proposals/{number + 1}/reject", {"reason": "done", "seen": seq}
            )
            assert 200 == rejected[0]
            rule = {"": {"rule": "at_least", "threshold": 0.25 + version / 100}}
        server.stop()
        assert 0 == limen("serve", "verify", "--data", str(server.data)).returncode
