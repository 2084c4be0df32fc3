# SPDX-License-Identifier: Apache-2.0
"""The client: answers without a call, and everything arrives once, whenever the server is there."""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf, isnan
from pathlib import Path
from typing import Any

import pytest
from serving import Server, folder, serving, until
from streams import PATIENCE

from limen import Client
from limen.cli import main
from limen.client import NotAcknowledged, Refused, Unreachable

RULES = {"": {"rule": "at_least", "threshold": 0.5}, "north": {"rule": "all"}}


def test_it_answers_as_the_server_would_and_sends_everything_once_also_after_a_kill():
    draw = random.Random(8)
    with serving("--tick", "1s", define={"segments": {"at_least": 5}}) as server:
        server.ask("POST", "/v1/points/fraud/deploy", {"thresholds": RULES})
        port = server.port
        server.options = (*server.options, "--bind", f"127.0.0.1:{port}")  # the same one again
        client = Client(f"http://127.0.0.1:{port}", every=0.05, refresh=0.2, timeout=5)
        assert (0.5, -inf, -inf) == tuple(
            client.threshold("fraud", segment) for segment in (None, "north", "north/a")
        )
        told: dict[str, tuple[int, int]] = {}
        for at in range(120):
            score = draw.choice([0.1, 0.6, inf, -inf])
            segment = draw.choice(["north", "south", None])
            answer = client.answer("fraud", f"c{at}", score, segment=segment)
            assert int(segment == "north" or score >= 0.5) == answer
            label = draw.randrange(2)
            client.label("fraud", f"c{at}", label)
            told[f"c{at}"] = answer, label
            if at == 40:
                client.flush()
            if at == 60:
                server.kill()
            if at == 100:
                assert client.waiting > 0
                server.start()
        client.flush()
        assert (0, 0, 0) == (client.waiting, client.refused, client.dropped)
        events = server.log()
        scores = {event["id"]: event["answer"] for event in events if event["kind"] == "score"}
        assert {id: answer for id, (answer, _) in told.items()} == scores
        assert 120 == sum(event["kind"] == "score" for event in events)
        state = server.ask("GET", "/v1/points/fraud")[1]
        assert 120 == state["samples"]
        assert sum(answer != label for answer, label in told.values()) == state["cost"]

        server.ask("POST", "/v1/points/fraud/deploy", {"thresholds": {"": {"rule": "none"}}})
        until(lambda: isnan(client.threshold("fraud", "north")))
        assert 0 == client.answer("fraud", "last", inf)
        client.answer("fraud", "c0", 0.7)  # another score: refused for good
        client.close()
        assert 1 == client.refused
        with pytest.raises(RuntimeError, match="closed"):
            client.label("fraud", "c0", 1)


def test_no_point_holds_up_another_one_and_what_is_refused_for_good_is_dropped():
    with folder() as made:
        config = made / "limen.toml"
        config.write_text("most_batch = 400\n")
        server = Server(made / "d", "--config", str(config))
        for point in ("fraud", "spam"):
            server.ask("PUT", f"/v1/points/{point}", {})
        with Client(f"http://127.0.0.1:{server.port}", every=0.01) as client:
            client.label("typo", "a", 1)
            for at in range(20):  # more than the server takes at once
                client.label("fraud", f"f{at}", 1)
            client.label("spam", "a" * 600, 1)  # more than it ever takes
            client.label("spam", "b", 1)
            client.flush(20)
            assert (0, 2) == (client.waiting, client.refused)
        found = [(each["point"], each["id"]) for each in server.log() if each["kind"] == "label"]
        assert [("fraud", f"f{at}") for at in range(20)] == [e for e in found if e[0] == "fraud"]
        assert [("spam", "b")] == [each for each in found if each[0] == "spam"]
        server.kill()


def test_a_line_that_fails_is_sent_again_and_the_others_are_not():
    with folder() as made:
        server = Server(made / "d", fault="one-label-fails:2")
        server.ask("PUT", "/v1/points/fraud", {})
        with Client(f"http://127.0.0.1:{server.port}", every=0.01) as client:
            for at in range(3):
                client.label("fraud", f"f{at}", 1)
            client.flush()
            assert 0 == client.refused
        found = [each["id"] for each in server.log() if each["kind"] == "label"]
        assert ["f0", "f1", "f2"] == sorted(found)
        server.kill()


def test_what_a_proxy_answers_is_no_refusal_of_the_server():
    """Events wait until the server itself has seen them."""
    answers = [(404, b"<p>not here</p>"), (502, b""), (200, b"<p>welcome</p>")]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = answers.pop(0) if answers else (200, b'{"line":1,"status":200}\n')
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        with Client(f"http://127.0.0.1:{proxy.server_address[1]}", every=0.01) as client:
            client.label("fraud", "a", 1)
            client.flush()
            assert (0, 0, []) == (client.waiting, client.refused, answers)
    finally:
        proxy.shutdown()
        proxy.server_close()


def test_without_a_server_it_says_so_and_keeps_what_waits_up_to_a_limit():
    client = Client("http://127.0.0.1:1", most_waiting=2, timeout=1, every=0.01)
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        client.answer("fraud", "a", 0.5)
    for _ in range(3):
        client.label("fraud", "a", 1, as_of=datetime.now(UTC) - timedelta(hours=1))
    assert (2, 1) == (client.waiting, client.dropped)
    with pytest.raises(NotAcknowledged, match="2 events are not acknowledged"):
        client.flush(timeout=0.3)
    with pytest.raises(ConnectionError):
        client.close(timeout=0.1)


def test_what_is_wrong_is_refused_at_once():
    with pytest.raises(ValueError, match="url must begin with"):
        Client("localhost:8787")
    client = Client("http://127.0.0.1:1")
    with pytest.raises(ValueError, match="label must be 0 or 1"):
        client.label("fraud", "a", 2)
    with pytest.raises(ValueError, match="time zone"):
        client.label("fraud", "a", 1, as_of=datetime(2026, 1, 1))
    with pytest.raises(
        TypeError, match=r"id .* got 0\.93\. The order is answer\(point, id, score\)"
    ):
        client.answer("fraud", 0.93, "order 1")
    with pytest.raises(TypeError, match=r"id .* got 1\. The order is label\(point, id, label\)"):
        client.label("fraud", 1, "order 1")
    for wrong in ("order 1", "0.93", None, float("nan")):
        with pytest.raises(ValueError, match=r"score must be a number, got .* The order is answer"):
            client.answer("fraud", "order 1", wrong)
    client.close()


def test_threads_share_one_client():
    with serving() as server, Client(f"http://127.0.0.1:{server.port}", every=0.01) as client:

        def work(number: int) -> None:
            for at in range(50):
                client.answer("fraud", f"{number}-{at}", 0.5)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.flush()
        begun = time.monotonic()
        client.flush()  # nothing waits
        assert time.monotonic() - begun < 5
        assert 200 == server.ask("GET", "/v1/points/fraud")[1]["scores"]


def test_what_the_server_refuses_is_told_with_its_status():
    with serving() as server, Client(f"http://127.0.0.1:{server.port}") as client:
        with pytest.raises(Refused, match="typo") as told:
            client.threshold("typo")
        assert 404 == told.value.status


def forked(work: Callable[[], Any]) -> None:
    """Call in a forked child, and wait for it to end well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # for there are other threads
        child = os.fork()
    if child == 0:
        signal.alarm(int(PATIENCE))  # so that one that waits for ever fails
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(code)
    assert 0 == os.waitpid(child, 0)[1]


def at_least(threshold: float) -> dict[str, Any]:
    return {"thresholds": {"": {"rule": "at_least", "threshold": threshold}}}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_sends_what_is_its_own_once_and_sees_new_thresholds():
    with serving() as server:
        url = f"http://127.0.0.1:{server.port}"
        server.ask("POST", "/v1/points/fraud/deploy", at_least(0.5))
        client, patient = Client(url, every=0.05, refresh=0.05), Client(url, every=1000)
        client.answer("fraud", "sent", 0.6)
        client.flush()
        patient.answer("fraud", "waits", 0.6)  # for the parent to send it

        def grandchild() -> None:
            client.answer("fraud", "of a grandchild", 0.7)
            client.close()

        def work() -> None:
            assert (0, 0.5) == (patient.waiting, client.threshold("fraud"))
            forked(grandchild)
            for at in range(50):
                assert 1 == client.answer("fraud", f"child {at}", 0.6)
                client.label("fraud", f"child {at}", 1)
            client.flush()
            server.ask("POST", "/v1/points/fraud/deploy", at_least(0.7))
            until(lambda: client.threshold("fraud") == 0.7)
            client.close()
            patient.close()

        forked(work)
        assert 1 == patient.waiting
        patient.close()
        until(lambda: client.threshold("fraud") == 0.7)  # by a connection that is still its own
        client.close()
        ids = [each["id"] for each in server.log() if each["kind"] == "score"]
        children = [f"child {at}" for at in range(50)]
        assert ["sent", "of a grandchild", *children, "waits"] == ids


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_forked_while_the_parent_sends_and_holds_its_locks_can_use_the_client():
    with serving() as server, Client(f"http://127.0.0.1:{server.port}", every=0.001) as client:
        client.answer("fraud", "first", 0.6)
        client.flush()
        with client._changed, client._wire:

            def work() -> None:
                client.answer("fraud", "child", 0.6)
                client.close()

            thread = threading.Thread(target=forked, args=(work,))
            thread.start()  # the thread that forks holds none of them
            thread.join()
        client.answer("fraud", "last", 0.6)
        client.flush()
        ids = [each["id"] for each in server.log() if each["kind"] == "score"]
        assert ["first", "child", "last"] == ids


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_answers_by_what_was_held_while_the_server_is_away():
    with serving() as server:
        server.ask("POST", "/v1/points/fraud/deploy", at_least(0.5))
        client = Client(f"http://127.0.0.1:{server.port}", timeout=1)
        assert 0.5 == client.threshold("fraud")
        server.kill()

        def work() -> None:
            assert (1, 0) == (client.answer("fraud", "a", 0.6), client.answer("fraud", "b", 0.4))
            assert 2 == client.waiting

        forked(work)
        client.close()


def test_the_example_of_the_readme_records_a_score_and_its_label(monkeypatch, capsys) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"^```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    add, serve = commands.splitlines()
    (example,) = re.findall(r"^```python\n(from limen import Client.*?)^```", readme, re.S | re.M)
    assert "limen serve" == serve.partition("#")[0].strip()
    with folder() as place:
        monkeypatch.chdir(place)
        main(shlex.split(add, comments=True)[1:])
        server = Server(place / "limen-data")
        try:
            exec(example.replace("8787", str(server.port)), {})
            events = server.log()
        finally:
            server.stop()

    kinds = [event["kind"] for event in events if event["kind"] in ("score", "label")]
    assert ["score", "label"] == kinds
    said = capsys.readouterr().out.replace("threshold", "")
    assert "hold" not in said  # the first version answers 0 to every score
