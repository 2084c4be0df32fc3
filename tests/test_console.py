# SPDX-License-Identifier: Apache-2.0
"""The console examples of the README and the docs show what the commands show."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest
from streams import PATIENCE

from limen.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [
    page
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    if "```console" in page.read_text(encoding="utf-8")
]


def examples_of(page: Path) -> list[tuple[str, str]]:
    """Commands after a dollar sign, continued after a greater-than sign, with what they show."""
    found: list[tuple[str, str]] = []
    for block in re.findall(
        r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    ):
        for line in block.splitlines(keepends=True):
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif line.startswith("> "):
                found[-1] = (found[-1][0] + line[2:], "")
            else:
                found[-1] = (found[-1][0], found[-1][1] + line)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_console_examples_show_what_they_say(page: Path, tmp_path: Path, monkeypatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "limen").write_text(f'#!/bin/sh\nexec {sys.executable} -m limen "$@"\n')
    (programs / "limen").chmod(0o755)
    (tmp_path / "here").mkdir()
    place = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    monkeypatch.chdir(tmp_path / "here")
    for command, shown in examples_of(page):
        if re.fullmatch(r"limen [^|<>;$&\\]*", command):  # a shell would add nothing but its time
            assert shown == written_here(command), command
            continue
        done = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=place,
            text=True,
            timeout=PATIENCE,
        )

        assert shown == done.stdout, command


def written_here(command: str) -> str:
    """What a command writes, run in this process; standard output at its end, as into a pipe."""
    written = io.BytesIO()
    out = io.TextIOWrapper(written, encoding="utf-8")
    err = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
    with redirect_stdout(out), redirect_stderr(err), suppress(SystemExit):
        main(shlex.split(command, comments=True)[1:])
    out.flush()
    return written.getvalue().decode()


def test_the_readme_and_the_page_have_examples() -> None:
    assert {"README.md", "command_line.md"} <= {page.name for page in PAGES}
    assert 10 <= len(examples_of(ROOT / "docs" / "command_line.md"))
