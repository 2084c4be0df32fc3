# SPDX-License-Identifier: Apache-2.0
"""Alerts begin and end as events; webhooks are signed, sent again, in order, and once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from serving import Server, folder, limen, until
from test_proposals import HOUR, clock, same_after_a_restart  # noqa: F401
from test_serve_log import desk_with, labelled, scored
from test_serve_stream import PATH, listening

from limen.service.http import webhooks
from limen.service.log.account import Accounts
from limen.service.log.alerts import Watch
from limen.service.log.writer import Writer
from limen.service.points.definitions import Alerts, Rule
from limen.service.points.point import Note
from limen.service.settings import settings_of
from limen.storage.files import replace as write_file

SECRET = "a secret of the test"


@contextmanager
def receiving(statuses: list[int]) -> Iterator[tuple[str, list[Any]]]:
    """A receiver that answers with these statuses, then with 200."""
    found: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.append((dict(self.headers), body))
            status = statuses.pop(0) if statuses else 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hook?a=b", found
    finally:
        server.shutdown()
        server.server_close()


def test_an_alert_reaches_the_webhook_signed_and_once():
    with folder() as made, receiving([500, 302]) as (url, found):
        config = made / "limen.toml"
        config.write_text(
            f'tick = "1s"\ndisk_low = 0.0\n[[webhooks]]\nurl = "{url}"\nsecret = "{SECRET}"\n'
        )
        checked = limen("serve", "--check", "--config", str(config), "--data", str(made / "d"))
        assert "not shown" in checked.stdout
        assert SECRET not in checked.stdout
        server = Server(made / "d", "--config", str(config))
        server.ask("PUT", PATH, {"alerts": {"regret": 1, "regret_for": "1s"}})
        with listening(server) as other:
            rows = [{"type": "score", "id": f"i{at}", "score": at} for at in range(10)]
            rows += [{"type": "label", "id": f"i{at}", "label": int(at > 5)} for at in range(10)]
            server.batch("fraud", rows)
            until(lambda: len(found) == 3)
            assert ("regret", "begun") == tuple(
                other.of("alert")[0][name] for name in ("name", "state")
            )
        for headers, body in found:
            signed = headers["Limen-Timestamp"].encode() + b"." + body
            digest = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
            assert f"sha256={digest}" == headers["Limen-Signature"]
        assert 1 == len({body for _, body in found})
        shown = json.loads(found[0][1])
        assert ("fraud", "regret", "begun") == (shown["point"], shown["name"], shown["state"])
        assert "400, more than 1" in shown["text"]
        (alert,) = server.ask("GET", f"{PATH}/overview")[1]["alerts"]
        assert shown["seq"] == alert["seq"]
        (sent,) = (made / "d").glob("webhook-*")
        until(lambda: int(sent.read_text()) == shown["seq"])  # else it would be sent again
        server.kill()
        server.start()
        rule = {"": {"rule": "at_least", "threshold": 5.5}}
        server.ask("POST", f"{PATH}/deploy", {"thresholds": rule, "reason": "better"})
        forget = {"ids": [f"i{at}" for at in range(6, 10)]}
        server.ask("POST", f"{PATH}/forget", forget)
        until(lambda: len(found) == 4)
        assert "ended" == json.loads(found[3][1])["state"]
        assert [] == server.ask("GET", f"{PATH}/overview")[1]["alerts"]
        kinds = [row["kind"] for row in server.ask("GET", f"{PATH}/changes")[1]["changes"]]
        assert 2 == kinds.count("alert")
        server.kill()


def test_what_people_should_look_at_begins_and_ends_alerts(tmp_path, clock, monkeypatch):  # noqa: F811
    monkeypatch.setattr("limen.service.log.account._IDLE", 0)
    wanted = Alerts(answered=0.5, labels_late="2h", recall=0.9, precision=0.4)
    writer = desk_with(tmp_path / "d", start=Rule("at_least", 0.5), alerts=wanted)
    point, watch, at = writer.point("fraud"), Watch(writer, Accounts(), 0.0), 0

    def hours(many: int, share: int, label: bool = True) -> set[str]:
        """Let hours go by in which one of `share` scores is answered 1, and all are 1."""
        nonlocal at
        for _ in range(many):
            for _ in range(12):
                at += 1
                scored(writer, f"i{at}", 1.0 if at % share == 0 else 0.0)
                if label:
                    labelled(writer, f"i{at}", int(at % share == 0))
            clock[0] += HOUR
            writer.commit_now()
            asyncio.run(writer.tick())
            asyncio.run(watch.look())
        return set(point.alerts)

    assert set() == hours(30, 4)
    assert {"answered"} == hours(24, 2)
    assert set() == hours(24 * 8, 2)  # it is as it was in the week before
    assert {"labels"} == hours(4, 2, label=False)
    assert set() == hours(1, 2)
    labelled(writer, "i1", 1)
    for missed in range(3, 2003, 2):
        labelled(writer, f"i{missed}", 1)
    assert {"recall"} == hours(1, 2)
    assert "recall of the answers is" in point.alerts["recall"].text
    assert "below the floor of 90.0%" in point.alerts["recall"].text
    same_after_a_restart(writer)
    other = msgspec.structs.replace(point.definition, alerts=None)
    asyncio.run(writer.define("fraud", other, "anna", None))
    assert set() == hours(1, 2)
    writer.release()


@pytest.mark.parametrize("by", ["log", "snapshot"])
def test_a_restart_goes_on_counting_how_long_something_has_lasted(tmp_path, clock, by):  # noqa: F811
    """With a restart in the middle of each wait, alerts begin at the hour at which they would."""
    wanted = Alerts(answered=0.5, labels_late="5h", regret=100, regret_for="6h")
    begun: list[dict[str, int]] = []
    for restarts in (False, True):
        writer = desk_with(
            tmp_path / f"{by}-{restarts}", start=Rule("at_least", 0.5), alerts=wanted
        )
        watch, at = Watch(writer, Accounts(), 0.0), 0
        first: dict[str, int] = {}
        for hour in range(70):
            for _ in range(6):
                at += 1
                answer = at % (2 if hour >= 45 else 6) == 0  # of which three times as many
                scored(writer, f"i{at}", 1.0 if answer else 0.0)
                if hour < 40:  # then no label comes any more
                    labelled(writer, f"i{at}", int(answer != (hour >= 10)))  # and all are wrong
            clock[0] += HOUR
            writer.commit_now()
            asyncio.run(writer.tick())
            asyncio.run(watch.look())
            for name in writer.point("fraud").alerts:
                first.setdefault(name, hour)
            if restarts and hour in (13, 42, 55):
                same_after_a_restart(writer)
                writer.release()
                if by == "log":
                    for path in (writer.folder / "snapshots").iterdir():
                        path.unlink()
                writer = Writer(writer.folder, print)
                watch = Watch(writer, Accounts(), 0.0)
        writer.release()
        begun.append(first)
    assert begun[0] == begun[1]
    assert {"regret", "labels", "answered"} == set(begun[0])


def test_a_real_server_that_was_killed_goes_on_counting():
    """It was away for longer than the alert waits: the first look raises it, not four s later."""
    with folder() as made:
        server = Server(made / "d", "--tick", "1s")
        server.ask("PUT", PATH, {"alerts": {"regret": 1, "regret_for": "4s"}})
        rows = [{"type": "score", "id": f"i{at}", "score": at} for at in range(10)]
        rows += [{"type": "label", "id": f"i{at}", "label": int(at > 5)} for at in range(10)]
        last = server.batch("fraud", rows)[-1]["seq"]
        until(lambda: any(e["kind"] == "advance" and e["seq"] > last for e in server.log()))
        last = server.log()[-1]["seq"]
        server.kill()
        time.sleep(4)
        server.start()
        until(lambda: server.ask("GET", f"{PATH}/overview")[1]["alerts"])
        kinds = [event["kind"] for event in server.log() if event["seq"] > last]
        assert kinds.index("alert") <= 2  # one look may have come before the kill
        server.kill()


def test_a_disk_that_is_nearly_full_is_an_alert_of_the_server(tmp_path):
    writer = desk_with(tmp_path / "d")
    asyncio.run(Watch(writer, Accounts(), 1.1).look())
    assert ["disk"] == list(writer.state.alerts)
    asyncio.run(Watch(writer, Accounts(), 1.1).look())
    assert 1 == len(writer.state.notes)
    same_after_a_restart(writer)
    asyncio.run(Watch(writer, Accounts(), 0.0).look())
    assert {} == writer.state.alerts
    assert [False, True] == [note.ended for note in writer.state.notes]
    writer.release()


def test_a_webhook_goes_on_after_a_disk_that_was_full(tmp_path, monkeypatch):
    """Its place cannot be written: it says so, and tries again."""
    lines: list[Any] = []
    real = write_file

    def replace(path: Any, content: bytes) -> None:
        if len(lines) < 2:
            raise OSError(28, "No space left on device")
        real(path, content)

    async def aside(act: Any, *given: Any) -> Any:
        return act(*given)

    monkeypatch.setattr(webhooks, "replace", replace)
    state = SimpleNamespace(notes=[], points={})
    writer: Any = SimpleNamespace(folder=tmp_path, on_disk=7, aside=aside, state=state)
    hook = settings_of(None, hooks("http://a/x")).webhooks[0]
    sender = webhooks.Sender(writer, hook, lines.append)
    sender._first = 0.01
    with pytest.raises(TimeoutError):  # it runs for as long as the server does
        asyncio.run(asyncio.wait_for(sender.run(), 0.5))
    assert 2 == len(lines)
    assert all("webhook: OSError in replace" in line["message"] for line in lines)
    assert "7" == sender._path.read_text()


def test_webhooks_that_hang_hold_up_nobody_else(tmp_path, monkeypatch):
    """More of them than there are threads for those who ask."""
    hung, go_on = threading.Semaphore(0), threading.Event()

    def hang(*_: Any) -> None:
        hung.release()
        assert go_on.wait(60)

    async def run() -> str:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(2))
        tasks = [asyncio.create_task(each.run()) for each in senders]
        try:
            return await asyncio.wait_for(asked(), 20)
        finally:
            go_on.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def asked() -> str:
        while not all(each._kept == 0 for each in senders):  # they have begun
            await asyncio.sleep(0.01)
        state.notes.append(Note(1, 0, "alert", "limen", "disk", "full"))
        writer.on_disk = 1
        while hung._value < len(senders):  # and hang
            await asyncio.sleep(0.01)
        return str(await asyncio.get_running_loop().run_in_executor(None, lambda: "answered"))

    async def aside(act: Any, *given: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, act, *given)

    monkeypatch.setattr(webhooks.Sender, "_post", hang)
    state = SimpleNamespace(notes=[], points={})
    writer: Any = SimpleNamespace(
        folder=tmp_path, on_disk=0, aside=aside, state=state, now=lambda: 0
    )
    found = settings_of(None, hooks(*(f"http://a/{at}" for at in range(3)))).webhooks
    senders = [webhooks.Sender(writer, hook, lambda line: None) for hook in found]
    assert "answered" == asyncio.run(run())


def hooks(*urls: str) -> dict[str, Any]:
    """Settings with these addresses."""
    return {"webhooks": [{"url": url, "secret": SECRET} for url in urls]}


@pytest.mark.parametrize(
    ("url", "secret", "what"),
    [
        ("ftp://a", SECRET, "http or https"),
        ("https://a", "short", "at least 16"),
        ("http:///x", SECRET, "address"),
        ("http://a b/", SECRET, r"without spaces.*http://a b/"),
        ("http://a/b c", SECRET, "without spaces"),
        ("https://h\u00f6st/", SECRET, "ASCII"),
        ("http://a:abc/", SECRET, r"port from 1 to 65535.*http://a:abc/"),
        ("http://a:99999/", SECRET, "port from 1 to 65535"),
        ("http://a:0/", SECRET, "port from 1 to 65535"),
        ("http://[::1/", SECRET, r"http://\[::1/"),
    ],
)
def test_a_webhook_needs_an_address_and_a_secret(url, secret, what):
    with pytest.raises(ValueError, match=what):
        settings_of(None, {"webhooks": [{"url": url, "secret": secret}]})


def test_an_address_is_named_once():
    with pytest.raises(ValueError, match=r"'http://a/x' is there more than once"):
        settings_of(None, hooks("http://a/x", "http://b/x", "http://a/x"))
    assert 2 == len(settings_of(None, hooks("http://a/x", "http://a/y")).webhooks)
