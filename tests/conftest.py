# SPDX-License-Identifier: Apache-2.0
"""The same examples in every run, and no time limits, which fail by chance on a busy machine.

With LIMEN_THOROUGH in the environment, as in `make thorough`, ten times as many, and new ones.
"""

import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import left_behind
import pytest
from hypothesis import HealthCheck, settings

# Threads that wait for each other on a busy machine take ten times as long as one alone.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")  # pictures need no screen

# Spark, wherever a test or an example starts it: two threads, three attempts, little of all else.
SPARK = {
    "spark.master": "local[2,3]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",  # compiling takes longer than small frames do
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
listed = " ".join(f"--conf {name}={value}" for name, value in SPARK.items())
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"{listed} pyspark-shell")
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for Spark or for the site is for `make check`."""
    for item in items:
        if {"spark", "site"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("check")


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left_behind() -> None:
    left_behind.watch()


@pytest.fixture(scope="session")
def spark() -> Any:
    """The one session of all tests; skipped without pyspark or Java, unless they are required."""
    reason = None
    if find_spec("pyspark") is None:
        reason = 'pyspark is missing; pip install "limen[spark]" brings it'
    elif shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        reason = "Java is missing, which Spark needs"
    if reason is not None and os.environ.get("LIMEN_REQUIRE_SPARK"):
        pytest.fail(reason)
    if reason is not None:
        pytest.skip(f"Spark was not tested: {reason}")
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    yield session
    session.stop()


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
