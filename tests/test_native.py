# SPDX-License-Identifier: Apache-2.0
"""The tests of the core in C++, each a program that `make test` has built and named."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

BUILT = os.environ.get("LIMEN_NATIVE_TESTS")
PROGRAMS = sorted(Path(BUILT).glob("*_test")) if BUILT else []


@pytest.mark.skipif(not BUILT, reason="`make test` and `make native-test` run the tests in C++")
def test_the_programs_are_those_of_the_sources() -> None:
    sources = (Path(__file__).parents[1] / "native/tests").glob("*_test.cpp")

    assert sorted(source.stem for source in sources) == [program.name for program in PROGRAMS]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_core_passes(program: Path) -> None:
    done = subprocess.run([program.resolve()], capture_output=True, text=True)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert done.stdout.endswith(" passed, 0 failed\n")
