# SPDX-License-Identifier: Apache-2.0
"""The console examples of the README and the docs show what the commands show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
def test_console_examples_show_what_they_say(page: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "limen").write_text(f'#!/bin/sh\nexec {sys.executable} -m limen "$@"\n')
    (programs / "limen").chmod(0o755)
    (tmp_path / "here").mkdir()
    place = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    for command, shown in examples_of(page):
        done = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=tmp_path / "here",
            env=place,
            text=True,
            timeout=60,
        )

        assert shown == done.stdout, command


def test_the_readme_and_the_page_have_examples() -> None:
    assert {"README.md", "command_line.md"} <= {page.name for page in PAGES}
    assert 10 <= len(examples_of(ROOT / "docs" / "command_line.md"))
