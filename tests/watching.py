# SPDX-License-Identifier: Apache-2.0
"""`limen watch` in a child that is forked, which is quicker than to start Python."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

from limen.cli import main, watch


def _killed(stream: Any) -> None:
    raise SystemExit(9)


def watched(
    rows: list[str], *arguments: str, killed: bool = False
) -> tuple[int, list[dict[str, Any]], str]:
    """Run the command with these rows as its input; give its code, its lines and its messages.

    With `killed` it ends after the last row, before anything is saved but the journal.
    """
    Path("in").write_text("".join(f"{row}\n" for row in rows))
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.dup2(os.open("in", os.O_RDONLY), 0)
            if killed:
                watch._Stream.finish = _killed
            sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
            code = main(["watch", *arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            Path("out").write_text(sys.stdout.getvalue())
            Path("err").write_text(sys.stderr.getvalue())
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    lines = [json.loads(line) for line in Path("out").read_text().splitlines()]
    return status, lines, Path("err").read_text()
