# SPDX-License-Identifier: Apache-2.0
"""How much Python a command runs. Calls are counted, not timed: no machine has others."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import limen
from limen.cli.options import options_of, parser

PACKAGE = str(Path(limen.__file__).parent)


def calls_of(run: Any, *arguments: str) -> Counter[str]:
    """Count the calls of functions of limen, by file, once everything is imported."""
    counts: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE):
            counts[str(Path(name).relative_to(PACKAGE))] += 1

    run(*arguments)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run(*arguments)
    finally:
        sys.setprofile(before)
    return counts


def test_fit_does_everything_once(run) -> None:
    rows = [f"{place / 64},{int(place * place % 64 < place)}\n" for place in range(64)]
    Path("scores.csv").write_text("score,label\n" + "".join(rows))
    counts = calls_of(run, "fit", "scores.csv", "--false-negative", "5")

    assert sum(counts.values()) <= 360, counts.most_common()


COMMANDS = (
    "fit a.csv b.csv --false-negative 5 --json -q",
    "fit -- -a.csv",
    "compare a.csv -t 0.5 -t -4e-05 --false-positive -2",
    "curve a.csv --metric f1 --metric mcc -o out.csv",
    "watch --definition point.toml --every 5",
    "serve",
    "serve point add fraud --false-negative 5",
    "serve clock show --data folder",
    "demo --csv",
)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_alone_is_read_as_it_is_among_all(words: str) -> None:
    assert parser().parse_args(words.split()) == options_of(words.split())
