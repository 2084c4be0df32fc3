# SPDX-License-Identifier: Apache-2.0
"""`limen watch` in a child that is forked, which is quicker than to start Python."""

from __future__ import annotations

import io
import json
import os
import sys
import zlib
from pathlib import Path
from typing import Any

from limen.cli import main, watch
from limen.names import DEMANDS, OUTCOMES

MODEL = "kept.limen/model.limen"  # in the state kept.limen
_LENGTHS = ("time-to-live", "maturity", "correctable")
_STREAM = (
    *("at-least", "metric", "age", "confidence", "true-positive", "true-negative"),
    *(f"{name}-column".replace("_", "-") for name in OUTCOMES),
    *(name.replace("_", "-") for name in DEMANDS),
)


def settled(*arguments: str) -> list[str]:
    """Move what is no option to a definition, which is written to a file.

    Tests write all settings as options are written: --last-n 5 stands for the memory of the last
    five samples, and so on.
    """
    rest: list[str] = []
    point: dict[str, Any] = {}
    stream: dict[str, Any] = {}
    words = iter(word for each in arguments for word in _parted(each))
    for word in words:
        name = word.removeprefix("--")
        if name == "lower-is-positive":
            point["direction"] = "<="
        elif name == "last-n":
            point["memory"] = {"keep": "last", "samples": int(next(words))}
        elif name == "last-period":
            point["memory"] = {"keep": "period", "length": next(words)}
        elif name == "half-life":
            length = next(words)
            by_time = "--time-column" in arguments or not length.isdigit()
            given = {"length": length} if by_time else {"samples": int(length)}
            point["memory"] = {"keep": "fading", **given}
        elif name in _LENGTHS:
            point[name.replace("-", "_")] = next(words)
        elif name in ("capacity", "unit"):
            point[name] = json.loads(next(words))
        elif name == "at-least" and "--group-column" in arguments:
            point["segments"] = {"at_least": int(next(words))}
        elif name == "alert":
            stream.setdefault("alerts", []).append(next(words))
        elif name in _STREAM:
            stream[name.replace("-", "_")] = next(words)
        else:
            rest.append(word)
    if point or stream:
        text = json.dumps({"time_to_live": None, **point, "watch": stream}, sort_keys=True)
        name = f"{zlib.crc32(text.encode()):08x}.json"
        Path(name).write_text(text)
        rest += ["--definition", name]
    return rest


def _parted(word: str) -> list[str]:
    return word.split("=", 1) if word.startswith("--alert=") else [word]


def _killed(stream: Any) -> None:
    raise SystemExit(9)


def watched(
    rows: list[str], *arguments: str, killed: bool = False
) -> tuple[int, list[dict[str, Any]], str]:
    """Run the command with these rows as its input; give its code, its lines and its messages.

    With `killed` it ends after the last row, before anything is saved but the log.
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
            code = main(["watch", *settled(*arguments)])
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            Path("out").write_text(sys.stdout.getvalue())
            Path("err").write_text(sys.stderr.getvalue())
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    lines = [json.loads(line) for line in Path("out").read_text().splitlines()]
    return status, lines, Path("err").read_text()
