# SPDX-License-Identifier: Apache-2.0
"""Nothing that was acknowledged is lost, and nothing counts twice, whatever happens."""

from __future__ import annotations

import http.client
import os
import random
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
import serving
from serving import Server, folder, problem, until

from limen.service.log.snapshots import verified

KILLS = int(os.environ.get("LIMEN_KILLS") or (500 if os.environ.get("LIMEN_THOROUGH") else 24))


@pytest.mark.parametrize(
    "phase",
    [
        "before-append:3",
        "before-commit:3",
        "before-head:3",
        "after-head:3",
        "after-publish:3",
        "before-answer:3",
    ],
)
def test_after_a_kill_in_any_phase_a_repeat_counts_once(phase):
    with folder() as made:
        server = Server(made / "d", fault=phase)
        acknowledged = _sent_until_death(server)
        server.ended()
        server.start()
        server.ask("PUT", "/v1/points/fraud", {})
        for at in range(9):  # all of them again
            id = f"a{at}"
            status, found, _ = server.ask(
                "POST", "/v1/points/fraud/scores", {"id": id, "score": at / 8}
            )
            assert 200 == status
            if id in acknowledged:
                assert {**acknowledged[id], "repeated": True} == found
        scores = [event["id"] for event in server.log() if event["kind"] == "score"]
        assert sorted(f"a{at}" for at in range(9)) == sorted(scores)
        assert 0 == server.stop()
        assert verified(server.data)


def _sent_until_death(server: Server) -> dict[str, Any]:
    acknowledged: dict[str, Any] = {}
    try:
        server.ask("PUT", "/v1/points/fraud", {})
        for at in range(9):
            body = {"id": f"a{at}", "score": at / 8}
            status, found, _ = server.ask("POST", "/v1/points/fraud/scores", body)
            assert 200 == status
            acknowledged[f"a{at}"] = found
    except (OSError, http.client.HTTPException):
        return acknowledged
    raise AssertionError("the server did not die")


class Clients(threading.Thread):
    """Sends scores and labels, and sends again what was not acknowledged, until the end."""

    def __init__(self, server: Server, number: int, done: threading.Event) -> None:
        super().__init__(daemon=True)
        self.server, self.number, self.done = server, number, done
        self.acknowledged: dict[str, int] = {}
        self.labelled: dict[str, int] = {}
        self.wrong: list[Any] = []

    def run(self) -> None:
        draw = random.Random(self.number)
        at = 0
        while not self.done.is_set():
            id = f"{self.number}-{at}"
            rows = [
                {"type": "score", "id": id, "score": draw.random(), "time": "2026-01-01T00:00:00Z"},
                {"type": "label", "id": id, "label": int(draw.random() < 0.5)},
            ]
            while not self._sent(id, rows) and not self.done.is_set():
                time.sleep(0.01)
            at += 1

    def _sent(self, id: str, rows: list[dict[str, Any]]) -> bool:
        try:
            score, label = self.server.batch("fraud", rows)
        except (OSError, http.client.HTTPException, AssertionError):
            return False
        if (score["status"], label["status"]) != (200, 200):
            self.wrong.append((score, label))
        self.acknowledged[id] = score["answer"]
        self.labelled[id] = rows[1]["label"]
        return True


def test_kills_under_load_lose_nothing_and_count_nothing_twice():
    draw = random.Random(17)
    with folder() as made:
        server = Server(made / "d")
        server.ask("PUT", "/v1/points/fraud", {"time_to_live": None})
        rules = {"": {"rule": "at_least", "threshold": 0.5}}
        server.ask("POST", "/v1/points/fraud/deploy", {"thresholds": rules})
        done = threading.Event()
        clients = [Clients(server, number, done) for number in range(3)]
        for client in clients:
            client.start()
        for _ in range(KILLS):
            time.sleep(0.05 + 0.1 * draw.random())
            server.kill()
            server.start()
        time.sleep(0.1)
        done.set()
        for client in clients:
            client.join()
        server.kill()
        server.start()
        answers = {id: a for client in clients for id, a in client.acknowledged.items()}
        labels = {id: a for client in clients for id, a in client.labelled.items()}
        events = server.log()
        _, point, _ = server.ask("GET", "/v1/points/fraud")
        server.kill()

        assert [] == [wrong for client in clients for wrong in client.wrong]
        assert len(answers) >= KILLS  # there was a load
        assert list(range(1, len(events) + 1)) == [event["seq"] for event in events]
        scores = [event for event in events if event["kind"] == "score"]
        assert len(scores) == len({event["id"] for event in scores})
        held = {event["id"]: event["answer"] for event in scores}
        assert answers == {id: held.get(id) for id in answers}
        told = {event["id"]: event["label"] for event in events if event["kind"] == "label"}
        assert labels == {id: told.get(id) for id in labels}
        assert len(told) == point["samples"]  # each once
        wrong = sum(held[id] != label for id, label in told.items() if id in held)
        assert float(wrong) == point["cost"]
        assert verified(server.data)


@pytest.mark.parametrize("fault", ["full-disk:4", "io-error:4", "head-fails:4"])
def test_while_the_disk_fails_writes_are_refused_and_reads_go_on(fault):
    with folder() as made:
        server = Server(made / "d", fault=fault)
        server.ask("PUT", "/v1/points/fraud", {"start": {"rule": "all"}})
        statuses: dict[str, list[int]] = {}

        def send(id: str) -> int:
            status, found, headers = server.ask(
                "POST", "/v1/points/fraud/scores", {"id": id, "score": 0.5}
            )
            statuses.setdefault(id, []).append(status)
            if status == 503:
                assert "/problems/busy" == found["type"]
                assert "1" == headers["retry-after"]
                assert 200 == server.ask("GET", "/v1/points/fraud/threshold")[0]
            return status

        for at in range(8):
            until(lambda id=f"a{at}": send(id) == 200)
        assert 200 == server.ask("GET", "/readyz")[0]
        assert any(503 in each for each in statuses.values())
        scores = [event["id"] for event in server.log() if event["kind"] == "score"]
        assert [f"a{at}" for at in range(8)] == scores
        assert 0 == server.stop()
        assert verified(server.data)


def test_a_start_that_is_killed_changes_nothing():
    with folder() as made:
        server = Server(made / "d")
        server.ask("PUT", "/v1/points/fraud", {})
        server.ask("POST", "/v1/points/fraud/scores", {"id": "a", "score": 0.5})
        server.kill()
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no server"):
                server.start("in-recovery")
        server.start()
        assert ["define", "score"] == [event["kind"] for event in server.log()]
        server.kill()


def test_sigterm_ends_in_order_and_a_second_server_is_refused():
    with serving.serving() as server:
        with pytest.raises(RuntimeError, match="in use"):
            Server(server.data)
        server.ask("POST", "/v1/points/fraud/scores", {"id": "a", "score": 0.5})
        assert 0 == server.stop()
        assert "stopped" == server.lines[-1]["message"]
        assert not (server.data / "control.sock").exists()
        wal = server.data / "log.db-wal"
        assert not wal.exists() or wal.stat().st_size == 0  # all of it is in log.db


def test_after_sigterm_a_probe_is_told_before_connections_are_refused():
    with folder() as made:
        config = made / "limen.toml"
        config.write_text("drain_seconds = 600\n")
        server = Server(made / "d", "--config", str(config))
        assert server.process is not None
        server.ask("PUT", "/v1/points/fraud", {})
        assert 200 == server.ask("GET", "/readyz")[0]
        server.process.send_signal(signal.SIGTERM)
        time.sleep(1)  # longer than it takes to refuse connections
        until(lambda: server.ask("GET", "/readyz")[0] == 503)
        answer = server.ask("POST", "/v1/points/fraud/scores", {"id": "a", "score": 0.5})
        assert 200 == answer[0]  # of those that were on their way
        assert 0 == server.stop()  # a second signal ends the grace


def test_snapshots_retention_and_forgetting_happen_by_themselves():
    with folder() as made:
        config = made / "limen.toml"
        config.write_text('snapshot_events = 20\nretention = "1s"\ntick = "1s"\n')
        server = Server(made / "d", "--config", str(config))
        server.ask("PUT", "/v1/points/fraud", {"false_negative": 3})
        for at in range(30):
            server.ask("POST", "/v1/points/fraud/scores", {"id": f"id-{at}", "score": at / 30})
        until(lambda: list((server.data / "snapshots").glob("*.snapshot")))
        forgotten = server.ask("POST", "/v1/points/fraud/forget", {"ids": ["id-7", "never"]})
        assert (202, 1) == (forgotten[0], forgotten[1]["known"])
        seq = forgotten[1]["seq"]

        def forgot_everywhere() -> bool:
            kept = [int(path.stem) for path in (server.data / "snapshots").glob("*.snapshot")]
            return bool(kept) and min(kept) >= seq

        until(forgot_everywhere)

        def grown() -> bool:  # until retention has deleted the first events
            id = f"more-{time.monotonic()}"
            server.ask("POST", "/v1/points/fraud/scores", {"id": id, "score": 0.5})
            return server.ask("GET", "/v1/log?after=0")[0] == 410

        until(grown)
        again = server.ask("POST", "/v1/points/fraud/scores", {"id": "id-3", "score": 0.1})
        problem(again, "expired")  # the ledger still knows the id, and not what was answered
        other = server.ask("PUT", "/v1/points/fraud", {"false_negative": 7})
        assert "/problems/history-deleted" == other[1]["type"]
        count = server.ask("GET", "/v1/points/fraud")[1]["scores"]
        server.kill()
        server.start()
        assert count == server.ask("GET", "/v1/points/fraud")[1]["scores"]
        assert 410 == server.ask("GET", "/v1/points/fraud/decisions/id-7")[0]
        for path in server.data.rglob("*"):
            if path.is_file():
                assert b"id-7" not in path.read_bytes()
        assert 0 == server.stop()
        assert verified(server.data)


def test_a_snapshot_that_is_killed_leaves_the_old_ones():
    with folder() as made:
        server = Server(made / "d")
        server.ask("PUT", "/v1/points/fraud", {})
        program = [sys.executable, str(serving.HERE / "serve_with_fault.py"), "in-snapshot"]
        done = subprocess.run([*program, "serve", "snapshot", "--data", str(server.data)])
        assert -9 == done.returncode
        assert [] == list((server.data / "snapshots").glob("*"))
        server.kill()
        server.start()
        assert 200 == server.ask("GET", "/v1/points/fraud")[0]
        server.kill()
