# SPDX-License-Identifier: Apache-2.0
"""The same examples in every run, and no time limits, which fail by chance on a busy machine.

With LIMEN_THOROUGH in the environment, as in `make thorough`, ten times as many, and new ones.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Threads that wait for each other on a busy machine take ten times as long as one alone.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")  # pictures need no screen

from streams import EFFORT  # noqa: E402  NumPy reads the above when it is loaded

settings.register_profile(
    "limen",
    deadline=None,
    derandomize=EFFORT == 1,
    max_examples=100 * EFFORT,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("limen")


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run a command in an empty folder; give its exit code and what it wrote."""
    from limen.cli import main

    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        written = capsys.readouterr()
        return code, written.out, written.err

    return call
