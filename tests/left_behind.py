# SPDX-License-Identifier: Apache-2.0
"""Ends what a test run has started and left behind, once the run has ended, be it by SIGKILL.

A process of its own waits for the run to end. It knows what to end by a mark in the environment,
which children give to their children: servers, browsers, and Spark with its Java.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from uuid import uuid4

MARK = "LIMEN_TEST_RUN"


def watch() -> None:
    """Mark all that this process starts from now on, and have it ended after this process."""
    if sys.platform != "linux":  # only there can the environment of others be read
        return
    os.environ[MARK] = uuid4().hex
    read, _ = os.pipe()  # nothing is ever written: it closes when this process ends
    os.set_inheritable(read, True)
    own = {name: value for name, value in os.environ.items() if name != MARK}
    command = [sys.executable, "-I", __file__, os.environ[MARK], str(read)]
    os.posix_spawn(sys.executable, command, own, setsid=True)  # out of reach of Ctrl-C
    os.close(read)


def _end(mark: str) -> None:
    """Kill every process that bears the mark."""
    sought = f"{MARK}={mark}".encode()
    for each in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it is not ours, or ended meanwhile
            if sought in each.read_bytes().split(b"\0"):
                os.kill(int(each.parent.name), signal.SIGKILL)


if __name__ == "__main__":
    os.read(int(sys.argv[2]), 1)
    _end(sys.argv[1])
