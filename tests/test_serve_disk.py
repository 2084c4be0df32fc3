# SPDX-License-Identifier: Apache-2.0
"""A disk that is full, and one that fails: real ones, below a server that knows nothing of it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from serving import Server, compiled, folder, limen, problem, until

from limen.service.log.snapshots import verified
from limen.service.log.store import Log
from limen.service.points.events import Event


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    """A file system of its own, of some size."""
    with folder() as made:
        try:
            mounted = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(made)],
                capture_output=True,
                text=True,
            )
        except FileNotFoundError:
            pytest.skip("there is no mount here")
        if mounted.returncode != 0:
            pytest.skip(f"mounting is not allowed here: {mounted.stderr.strip()}")
        try:
            yield made
        finally:
            subprocess.run(["umount", "--lazy", str(made)], check=True)


def fill(path: Path) -> None:
    """Leave no byte to others."""
    with path.open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
    assert 0 == shutil.disk_usage(path.parent).free


class Sent:
    """Scores by a number, and which of them were acknowledged."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.acknowledged: dict[str, int] = {}
        self.sent = 0
        self.told = ""  # why the last one was refused

    def one(self) -> int:
        """Send the next score; a refusal must be the documented one."""
        id = f"a{self.sent}"
        self.sent += 1
        return self.again(id)

    def again(self, id: str) -> int:
        score = {"id": id, "score": int(id[1:]) % 7 / 7}
        found = self.server.ask("POST", "/v1/points/fraud/scores", score)
        if found[0] == 200:
            self.acknowledged[id] = found[1]["answer"]
        else:
            problem(found, "busy")
            assert (503, "1") == (found[0], found[2]["retry-after"])
            self.told = found[1]["detail"]
        return found[0]

    def until_refused(self, most: int) -> None:
        for _ in range(most):
            if self.one() == 503:
                return
        raise AssertionError("nothing was refused")

    def agree_with_the_log(self) -> None:
        """Assert that all that was acknowledged is there, each once, and nothing never sent."""
        scores = [event for event in self.server.log() if event["kind"] == "score"]
        held = {event["id"]: event["answer"] for event in scores}
        assert len(held) == len(scores)
        assert self.acknowledged == {id: held.get(id) for id in self.acknowledged}
        assert set(held) <= {f"a{at}" for at in range(self.sent)}
        assert len(scores) == self.server.ask("GET", "/v1/points/fraud")[1]["scores"]


def reads_go_on(server: Server, sent: Sent) -> None:
    """Assert that who asks is answered, and whoever looks is told."""
    problem(server.ask("GET", "/readyz"), "busy")
    assert 200 == server.ask("GET", "/healthz")[0]
    assert 200 == server.ask("GET", "/v1/points/fraud/threshold")[0]
    assert 200 == server.ask("GET", "/v1/points/fraud")[0]
    assert b"limen_writes_refused 1.0" in server.ask("GET", "/metrics")[1]
    found = {event.get("id") for event in server.log()}
    assert set(sent.acknowledged) <= found


def test_a_full_disk_refuses_writes_until_there_is_space():
    with small_disk("2m") as disk:
        server = Server(disk / "d")
        try:
            _full_and_not(server, disk)
        finally:
            if server.process is not None and server.process.poll() is None:
                server.kill()


def _full_and_not(server: Server, disk: Path) -> None:
    sent, filler = Sent(server), disk / "filler"
    assert 201 == server.ask("PUT", "/v1/points/fraud", {"start": {"rule": "all"}})[0]
    for _ in range(10):
        assert 200 == sent.one()
    fill(filler)
    sent.until_refused(500)
    reads_go_on(server, sent)
    assert "database or disk is full" in sent.told
    for _ in range(3):
        assert 503 == sent.one()

    # A snapshot finds no space either, and leaves nothing behind.
    assert 0 != limen("serve", "snapshot", "--data", str(server.data)).returncode
    assert [] == [path for path in (server.data / "snapshots").glob("*") if path.stat().st_size]

    # Space comes back: the same process goes on, and what was refused may be sent again.
    filler.unlink()
    until(lambda: server.ask("GET", "/readyz")[0] == 200)
    for id in [f"a{at}" for at in range(sent.sent) if f"a{at}" not in sent.acknowledged]:
        assert 200 == sent.again(id)
    assert 200 == sent.one()
    sent.agree_with_the_log()
    assert sent.sent == len(sent.acknowledged)

    # Full again, and killed: a start needs no space to answer, and loses nothing.
    fill(filler)
    sent.until_refused(500)
    server.kill()
    server.start()
    reads_go_on(server, sent)  # and says so before anybody has tried to write
    assert 503 == sent.one()
    rows = [{"type": "label", "id": "a0", "label": 1}] * 3
    raw = "".join(json.dumps(row) + "\n" for row in rows).encode()
    kind = {"Content-Type": "application/x-ndjson"}
    problem(server.ask("POST", "/v1/points/fraud/events", headers=kind, raw=raw), "busy")
    refused = {"score": 1, "line": 3}
    for name, many in refused.items():
        counted = f'limen_events_total{{kind="{name}",outcome="refused",point="fraud"}} {many}.0'
        assert counted.encode() in server.ask("GET", "/metrics")[1]
    filler.unlink()
    until(lambda: server.ask("GET", "/readyz")[0] == 200)
    assert 200 == sent.one()
    sent.agree_with_the_log()
    assert 0 == server.stop()

    # After an orderly end there is no WAL, and a start that finds no space says so.
    fill(filler)
    with pytest.raises(RuntimeError, match="full"):
        server.start()
    filler.unlink()
    server.start()
    sent.agree_with_the_log()
    assert 0 == server.stop()
    assert verified(server.data)


def test_retention_on_a_full_disk_changes_nothing():
    with small_disk("2m") as disk:
        log = Log(disk / "d", create=True)
        for at in range(60):
            log.append([Event("token", at, more={"name": "x" * 3000, "revoked": True})], [None])
        fill(disk / "filler")
        with pytest.raises(sqlite3.OperationalError, match="full"):
            log.delete_until(60, 100)
        (disk / "filler").unlink()
        log.append([Event("token", 60, more={"name": "x", "revoked": True})], [None])
        assert list(range(1, 62)) == [seq for seq, _, _ in log.events()]
        assert 60 == log.delete_until(60, 100)
        log.close()


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    return compiled("io_error_shim.c", tmp_path_factory.mktemp("shim"))


@pytest.mark.parametrize("kind", ["sync", "write"])
def test_after_an_io_error_nothing_is_acknowledged_and_a_restart_recovers(kind, shim, monkeypatch):
    with folder() as made:
        switch = made / "switch"
        monkeypatch.setenv("LD_PRELOAD", str(shim))
        monkeypatch.setenv("IO_ERROR_FOLDER", str(made / "d"))
        monkeypatch.setenv("IO_ERROR_SWITCH", str(switch))
        server = Server(made / "d")
        try:
            _failing_and_not(server, switch, kind)
        finally:
            if server.process is not None and server.process.poll() is None:
                server.kill()


def _failing_and_not(server: Server, switch: Path, kind: str) -> None:
    sent = Sent(server)
    assert 201 == server.ask("PUT", "/v1/points/fraud", {"start": {"rule": "all"}})[0]
    for _ in range(10):
        assert 200 == sent.one()
    draft = switch.with_name("draft")
    draft.write_text(kind)
    draft.rename(switch)
    for _ in range(5):
        assert 503 == sent.one()  # from the very first on
    assert "disk I/O error" in sent.told
    reads_go_on(server, sent)

    # The disk recovers: so does the same process.
    switch.rename(draft)
    until(lambda: server.ask("GET", "/readyz")[0] == 200)
    for _ in range(5):
        assert 200 == sent.one()
    sent.agree_with_the_log()

    # It fails again, for good: what was acknowledged is what another start finds.
    draft.rename(switch)
    refused = [f"a{sent.sent + at}" for at in range(3)]
    assert [503, 503, 503] == [sent.one() for _ in refused]
    server.kill()
    switch.unlink()
    server.start()
    sent.agree_with_the_log()
    for id in refused:  # whether on disk or not, again it counts once
        assert 200 == sent.again(id)
    sent.agree_with_the_log()
    assert 0 == server.stop()
    assert verified(server.data)
