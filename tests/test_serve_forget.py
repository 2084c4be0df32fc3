# SPDX-License-Identifier: Apache-2.0
"""A forgotten id is in no file of the data directory, or the service says where it still is."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from serving import Server, folder, problem, serving, until
from test_serve_log import desk_with, filled, forgotten, scored

from limen.service.log import snapshots
from limen.service.log.store import Reader

SECRET = "secret-of-the-test"
PATH = "/v1/points/fraud"


def found_in(data: Path, id: str = SECRET) -> list[str]:
    """The files of a data directory in which the bytes of an id are."""
    files = [path for path in data.rglob("*") if path.is_file()]
    return [path.name for path in files if id.encode() in path.read_bytes()]


def erased(server: Server, seq: int) -> bool:
    return "erased" == server.ask("GET", f"{PATH}/forget/{seq}")[1]["state"]


def test_a_forget_is_answered_when_the_bytes_are_gone_or_says_where_they_are():
    with serving() as server:
        for id in (SECRET, "another-secret", "stays"):
            server.ask("POST", f"{PATH}/scores", {"id": id, "score": 0.5})
        status, found, _ = server.ask("POST", f"{PATH}/forget", {"ids": [SECRET]})
        assert (200, "erased", []) == (status, found["state"], found["left_in"])
        assert [] == found_in(server.data)
        with Reader(server.data) as reader, reader.still():
            assert reader.end()[0]
            status, found, headers = server.ask(
                "POST", f"{PATH}/forget", {"ids": ["another-secret"]}
            )
            assert (202, "erasing", ["log.db"]) == (status, found["state"], found["left_in"])
            place = headers["location"]
            assert f"{PATH}/forget/{found['seq']}" == place
            assert 200 == server.ask("POST", f"{PATH}/scores", {"id": "new", "score": 0.5})[0]
            shown = server.ask("GET", place)[1]
            assert (["log.db"], "erasing") == (shown["left_in"], shown["state"])
            assert found_in(server.data, "another-secret")
        until(lambda: erased(server, found["seq"]))  # no other write is needed
        assert [] == found_in(server.data, "another-secret")
        assert found_in(server.data, "stays")
        for seq in ("99", "x", "9" * 5000):
            problem(server.ask("GET", f"{PATH}/forget/{seq}"), "not-found")


def test_a_start_deletes_what_a_reader_kept_until_a_kill():
    with folder() as made:
        server = Server(made / "d")
        server.ask("PUT", PATH, {})
        server.ask("POST", f"{PATH}/scores", {"id": SECRET, "score": 0.5})
        with Reader(server.data) as reader, reader.still():
            assert reader.end()[0]
            seq = server.ask("POST", f"{PATH}/forget", {"ids": [SECRET]})[1]["seq"]
            server.kill()
            assert found_in(server.data)
        server.start()
        assert [] == found_in(server.data)
        assert erased(server, seq)
        server.kill()


def test_a_forget_waits_for_no_reader_and_neither_do_other_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("limen.service.log.store._PATIENCE", 60_000)
    writer = desk_with(tmp_path / "d")
    scored(writer, SECRET)
    writer.commit_now()
    with Reader(tmp_path / "d") as reader, reader.still():
        assert reader.end()[0]
        begun = time.monotonic()
        forgotten(writer, SECRET)
        scored(writer, "b")
        writer.commit_now()
        assert 30 > time.monotonic() - begun
        assert ["log.db"] == writer.left_in(writer.on_disk)
    writer.log.cut()
    assert [] == writer.left_in(writer.on_disk)
    writer.release()


def test_a_snapshot_that_began_before_a_forget_does_not_outlive_the_one_after_it(
    tmp_path, monkeypatch
):
    data = tmp_path / "d"
    writer = filled(data)
    recovered = snapshots.recovered
    after = threading.Thread(target=snapshots.make, args=(data,))

    def slow(*given: Any) -> Any:
        state = recovered(*given)
        monkeypatch.setattr(snapshots, "recovered", recovered)
        forgotten(writer, "id-7")
        assert ["snapshots"] == writer.left_in(writer.on_disk)
        after.start()
        after.join(0.5)  # it waits for this one
        return state

    monkeypatch.setattr(snapshots, "recovered", slow)
    snapshots.make(data)
    after.join()
    assert [] == found_in(data, "id-7")
    assert [] == writer.left_in(writer.on_disk)
    writer.release()
