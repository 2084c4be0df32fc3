# SPDX-License-Identifier: Apache-2.0
"""A loss of power at any moment: what was not synced may be there, missing or torn."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import serving
from streams import EFFORT

from limen.service.log import snapshots
from limen.service.log.store import Log, Reader
from limen.service.points.events import Event

HEAD = struct.Struct("<QQQQ")
SECTOR = 512

WORK = """
import os, sys
from pathlib import Path
from limen.service.points.events import Event
from limen.service.log.store import Log

folder = Path(sys.argv[1])
log = Log(folder)
acknowledged = os.open(folder / "acknowledged", os.O_WRONLY | os.O_CREAT)
for at in range(60):
    rows = range(1 + at % 5)
    more = {"name": str(at), "revoked": True}
    events = [Event("token", log.last, more=more) for row in rows]
    erased = {log.last: {"id" * 40: 1}} if at % 20 == 19 else None  # this checkpoints
    log.append(events, ["id" * 40 for _ in rows], erased)
    os.pwrite(acknowledged, log.last.to_bytes(8, "little"), 0)
    if at % 25 == 24:
        log._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
os._exit(0)
"""


def recorded(path: Path) -> list[tuple[str, str, int, bytes]]:
    """What was written, cut and synced: kind, name of the file, offset, bytes."""
    stored, at, found = path.read_bytes(), 0, []
    while at < len(stored):
        kind, length, offset, size = HEAD.unpack_from(stored, at)
        at += HEAD.size
        name = stored[at : at + length].decode()
        found.append((chr(kind), Path(name).name, offset, stored[at + length :][:size]))
        at += length + size
    return found


class Disk:
    """Files, and what was done to each since it was synced."""

    def __init__(self, folder: Path) -> None:
        self.files = {path.name: bytearray(path.read_bytes()) for path in folder.iterdir()}
        self.open: dict[str, list[tuple[str, int, bytes]]] = {}

    def do(self, kind: str, name: str, offset: int, content: bytes) -> None:
        if kind == "s":
            for each in self.open.pop(name, []):
                _apply(self.files.setdefault(name, bytearray()), *each)
        else:
            self.open.setdefault(name, []).append((kind, offset, content))

    def after_loss(self, folder: Path, draw: random.Random) -> None:
        """Write the files as they may be: of what was not synced, some sectors, in any order."""
        folder.mkdir()
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        for name, done in self.open.items():
            file = bytearray(self.files.get(name, b""))
            for kind, offset, content in done:
                if kind == "t" and draw.random() < 0.5:
                    _apply(file, kind, offset, content)
                for at in range(0, len(content), SECTOR):
                    if draw.random() < 0.5:
                        _apply(file, "w", offset + at, content[at : at + SECTOR])
            (folder / name).write_bytes(file)


def _apply(file: bytearray, kind: str, offset: int, content: bytes) -> None:
    if kind == "t":
        del file[offset:]
        file.extend(bytes(offset - len(file)))
        return
    file.extend(bytes(max(0, offset - len(file))))
    file[offset : offset + len(content)] = content


def test_after_a_loss_of_power_all_that_was_acknowledged_is_there(tmp_path):
    shim = serving.compiled("power_shim.c", tmp_path)
    folder, record = tmp_path / "data", tmp_path / "record"
    log = Log(folder, create=True)
    log.append([Event("token", 1, more={"name": "first", "revoked": True})], ["id"])
    log.close()
    disk = Disk(folder)
    given = {
        "LD_PRELOAD": str(shim),
        "POWER_FOLDER": str(folder),
        "POWER_RECORD": str(record),
    }
    subprocess.run(
        [sys.executable, "-c", WORK, str(folder)], check=True, env={**os.environ, **given}
    )
    steps, draw, tried = recorded(record), random.Random(1), 0
    assert {"log.db", "log.db-wal", "head"} <= {name for kind, name, _, _ in steps if kind == "s"}
    acknowledged = 1
    for at, step in enumerate(steps):
        if step[1] == "acknowledged":
            acknowledged = int.from_bytes(step[3], "little")
            continue
        if step[1].endswith("-shm"):
            continue
        disk.do(*step)
        if draw.random() < min(1.0, 40 * EFFORT / len(steps)):
            lost = tmp_path / f"lost{at}"
            disk.after_loss(lost, draw)
            for name in ("log.db-shm", "acknowledged"):
                (lost / name).unlink(missing_ok=True)
            Log(lost).close()  # not refused
            with Reader(lost) as reader:
                assert acknowledged <= snapshots.recovered(reader, lost).seq
            shutil.rmtree(lost)
            tried += 1
    assert tried > 10
    assert acknowledged > 100
