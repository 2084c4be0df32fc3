# SPDX-License-Identifier: Apache-2.0
"""Copies of the data: taken while the server runs, checked, and put back where there is none."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from limen.service.log import snapshots
from limen.service.log.store import Damaged, Reader, anchor, head_of, locked, renew_era
from limen.storage.files import sync_folder

__all__ = ["backup", "restore"]


def backup(folder: Path, to: Path) -> int:
    """Copy the log and the snapshots that it needs; return the last event that is in the copy."""
    if to.exists() and any(to.iterdir()):
        raise ValueError(f"{to} is not empty. Give a new directory.")
    head = head_of(folder)
    with Reader(folder) as log:
        to.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            log._db.execute("VACUUM INTO ?", (str(to / "log.db"),))
        except sqlite3.Error as error:
            raise Damaged(f"the log cannot be copied: {error}.") from None
    (to / "log.db").chmod(0o600)
    with Reader(to) as copy:
        copy.require_reached(*head[1:])
        last, chain = copy.end()
        base = copy.base()[0]
    (to / "snapshots").mkdir(mode=0o700)
    for seq, path in snapshots.stored(folder):
        if base <= seq <= last:
            shutil.copy2(path, to / "snapshots" / path.name)
    anchor(to, 0, last, chain)
    snapshots.verified(to)
    for part in (to / "log.db", to / "head", *(to / "snapshots").iterdir()):
        sync_folder(str(part))
    return last


def restore(source: Path, folder: Path) -> None:
    """Put a backup where there is no data; it is checked before and after. A new era begins."""
    if folder.exists() and any(each.name != "LOCK" for each in folder.iterdir()):
        raise ValueError(f"{folder} holds data. Move it away first.")
    snapshots.verified(source)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = locked(folder)
    try:
        (folder / "snapshots").mkdir(mode=0o700, exist_ok=True)
        for path in source.rglob("*"):
            if path.is_file() and path.name in ("log.db", "head"):
                shutil.copy2(path, folder / path.name)
            elif path.suffix == ".snapshot":
                shutil.copy2(path, folder / "snapshots" / path.name)
        snapshots.verified(folder)
        renew_era(folder)
        sync_folder(str(folder / "log.db"))
    finally:
        os.close(lock)
