# SPDX-License-Identifier: Apache-2.0
"""``limen`` with one fault: it kills itself in a named phase, or its disk fails for a while.

    python serve_with_fault.py PHASE[:N] serve --data FOLDER ...

The Nth time that the phase is reached, the process is gone as after kill -9.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from typing import Any

from limen.service.http import app
from limen.service.log import snapshots, store, writer

phase, _, _number = sys.argv.pop(1).partition(":")
left = [int(_number or 1)]


def reached() -> bool:
    left[0] -= 1
    return left[0] == 0


def die() -> None:
    if reached():
        os.kill(os.getpid(), signal.SIGKILL)


def before(place: Any, name: str, act: Any) -> None:
    real = getattr(place, name)

    def patched(*given: Any, **named: Any) -> Any:
        act()
        return real(*given, **named)

    setattr(place, name, patched)


def after(place: Any, name: str, act: Any) -> None:
    real = getattr(place, name)

    def patched(*given: Any, **named: Any) -> Any:
        found = real(*given, **named)
        act()
        return found

    setattr(place, name, patched)


class Connection(sqlite3.Connection):
    """Dies, or fails, between the statements of a transaction."""

    def execute(self, asked: str, *values: Any) -> Any:
        if phase == "before-commit" and asked == "COMMIT":
            die()
        if phase == "full-disk" and asked == "COMMIT":
            left[0] -= 1
            if -3 < left[0] <= 0:  # for three commits
                raise sqlite3.OperationalError("database or disk is full")
        if phase == "io-error" and asked.startswith("INSERT INTO groups") and reached():
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(asked, *values)


real_connect = sqlite3.connect
store.sqlite3.connect = lambda *a, **b: real_connect(*a, factory=Connection, **b)  # type: ignore

if phase == "before-append":
    before(store.Log, "append", die)
elif phase == "before-head":
    before(store.Log, "_sync_head", die)
elif phase == "head-fails":

    def fail() -> None:
        if reached():
            raise OSError(5, "Input/output error")

    before(store.Log, "_sync_head", fail)
elif phase == "one-label-fails":

    def surprise() -> None:
        if reached():
            raise RuntimeError("nobody expects this")

    before(writer.Writer, "label", surprise)
elif phase == "after-head":
    after(store.Log, "append", die)
elif phase == "after-publish":
    after(writer.Writer, "_published", die)
elif phase == "before-answer":
    before(app, "reply", die)
elif phase == "in-recovery":
    before(snapshots, "_folded", die)
elif phase == "in-snapshot":
    before(snapshots, "replace", die)

from limen.cli import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
