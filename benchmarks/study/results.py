# SPDX-License-Identifier: Apache-2.0
"""Raw results: one line of JSON for every finished cell, so that a second start goes on.

Lines gather in build/study; when a part is finished they are packed into benchmarks/results/study.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.machine import RESULTS, machine
from benchmarks.study.plan import fingerprint

FOLDER = RESULTS / "study"
WORKING = Path(__file__).parents[2] / "build" / "study"
PACKAGES = ("scipy", "scikit-learn", "betacal", "venn-abers", "mapie", "river")


def rounded(value: float) -> float:
    """Six digits, and whole numbers without a point."""
    return int(value) if value == int(value) else float(f"{value:.6g}")


def packed(part: str) -> Path:
    return FOLDER / f"{part}.jsonl.gz"


def lines_of(part: str) -> list[str]:
    """The lines written so far, without one that was cut off."""
    working = WORKING / f"{part}.jsonl"
    if working.exists():
        return [line for line in working.read_text().splitlines(keepends=True) if line[-1] == "\n"]
    if packed(part).exists():
        return gzip.decompress(packed(part).read_bytes()).decode().splitlines(keepends=True)
    return []


def stored(part: str) -> list[dict[str, Any]]:
    """The cells of a finished part, without its header."""
    text = gzip.decompress(packed(part).read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()[1:]]


def header(part: str) -> dict[str, Any]:
    with gzip.open(packed(part), "rt") as lines:
        return dict(json.loads(lines.readline()))


def run(part: str, keys: Iterable[tuple], cell: Callable[..., dict[str, Any] | None]) -> None:
    """Run what is missing of a part: `cell(*key)` for every key; None where there is nothing."""
    lines = lines_of(part)
    if lines and json.loads(lines[0])["plan"] != fingerprint(part):
        raise SystemExit(
            f"The results of {part} are those of another plan. Delete build/study/{part}.jsonl and "
            f"{packed(part).name}, or take back the change to plan.toml."
        )
    WORKING.mkdir(parents=True, exist_ok=True)
    with (WORKING / f"{part}.jsonl").open("w") as out:
        out.writelines(lines)
        if not lines:
            out.write(json.dumps({"plan": fingerprint(part), "machine": machine(*PACKAGES)}) + "\n")
        done = {tuple(json.loads(line)["key"]) for line in lines[1:]}
        keys = list(keys)
        shown = 0.0
        for place, key in enumerate(keys):
            if sys.stderr.isatty() or time.monotonic() - shown > 30:
                shown = time.monotonic()
                told = f"{part}, {place + 1} of {len(keys)}: {', '.join(map(str, key))}"
                print(f"\r\033[K{told}" if sys.stderr.isatty() else told, end="", file=sys.stderr)
                print("" if sys.stderr.isatty() else "\n", end="", file=sys.stderr, flush=True)
            if key not in done:
                out.write(json.dumps({"key": key, **(cell(*key) or {})}) + "\n")
                out.flush()
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = (WORKING / f"{part}.jsonl").read_bytes()
    packed(part).write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"\n{part}: {packed(part).name}, {packed(part).stat().st_size / 1e3:.0f} kB")
