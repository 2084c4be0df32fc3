# SPDX-License-Identifier: Apache-2.0
"""What a maintainer relies on: one version, and workflows that run what .ci/run runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from streams import PATIENCE

import limen

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_version_is_written_once() -> None:
    assert version("limen") == limen.__version__
    assert "version" not in PROJECT["project"]
    (source,) = PROJECT["tool"]["dynamic-metadata"]

    assert "version" == source["field"]
    assert f'\n__version__ = "{limen.__version__}"\n' in (ROOT / source["input"]).read_text()


def test_every_extra_of_the_makefile_exists() -> None:
    lines = re.findall(r"^\w+_EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = {extra for line in lines for extra in line.split() if "$" not in extra}

    assert named <= set(PROJECT["project"]["optional-dependencies"])
    assert {"test", "check", "docs"} <= named


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_only_and_pins_its_actions_by_hash(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    actions = re.findall(r"uses: (.+)", text)

    assert "\npermissions: {}\n" in text
    assert {"contents: read"} == set(re.findall(r"permissions:\n +(\S.*)", text))
    assert actions
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+(\.\d+)*")
    assert all(pinned.fullmatch(action) for action in actions), actions


def test_workflows_run_the_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    run = set(re.findall(r"run: make (?:--[\w-]+(?:=\d+)? )*([a-z][\w-]*)", text))

    assert run <= targets
    assert {"test", "demo", "check", "lowest"} == run


def test_the_coverage_that_is_told_is_the_one_that_was_measured() -> None:
    told = re.findall(r"about (\d+)%", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    report = (ROOT / "docs" / "coverage.txt").read_text(encoding="utf-8")

    assert told == re.findall(r"^TOTAL.* (\d+)%$", report, re.MULTILINE)


def test_every_test_has_the_same_name_in_the_next_run(request: pytest.FixtureRequest) -> None:
    """An address in a name is another one in each run, and tests cannot run side by side."""
    assert not [each for each in request.session.items if re.search(r" at 0x", each.nodeid)]


KILLED = """
import os, signal, subprocess, sys
def test_that_is_killed():
    server = [sys.executable, "-c", "import os, time; os.write(1, b'started'); time.sleep(1e6)"]
    child = [sys.executable, "-c", f"import subprocess; subprocess.run({server!r})"]
    read, write = os.pipe()
    subprocess.Popen(child, stdout=write, stderr=2)
    assert b"started" in os.read(read, 100)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is known of processes left behind")
def test_a_test_run_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    (tmp_path / "test_killed.py").write_text(KILLED)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-s", str(tmp_path)]
    # Its errors are read to the end, which comes when the last process that may write them ends.
    done = subprocess.run(command, stderr=subprocess.PIPE, env=env, timeout=PATIENCE)

    assert (-9, b"") == (done.returncode, done.stderr)
