# SPDX-License-Identifier: Apache-2.0
"""Optional libraries stay optional: without them all else passes, and the error says what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ABSENT = ("sklearn", "river", "matplotlib", "pandas", "polars", "pyarrow", "duckdb", "pyspark")

# As if none of them were installed.
HIDE = f"import sys; sys.modules.update(dict.fromkeys({ABSENT!r}))"


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("limen.sklearn", "sklearn"),
        ("limen.river", "river"),
        ("limen.plots", "plots"),
        ("limen.spark", "spark"),
    ],
)
def test_a_missing_library_is_told_with_how_to_install_it(module: str, extra: str) -> None:
    done = python(f"{HIDE}; import {module}")

    assert 1 == done.returncode
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: {module} needs ")
    assert last.endswith(f'Install it with: pip install "limen[{extra}]"')


@pytest.mark.parametrize("absent", ["duckdb", "pyarrow"])
def test_sql_without_its_libraries_says_how_to_install_them(absent: str) -> None:
    hidden = f"import sys; sys.modules[{absent!r}] = None"
    done = python(f"{hidden}; import limen.duckdb; limen.duckdb.register(None)")

    assert 1 == done.returncode
    assert (
        "ImportError: limen.duckdb needs duckdb and pyarrow. Install them with: pip install "
        '"limen[frames]"'
    ) == done.stderr.strip().splitlines()[-1]


@pytest.mark.check
def test_everything_else_passes_without_any_extra() -> None:
    """The modules that meet other libraries are skipped as a whole, or test by test."""
    names = ("cli", "columns", "console", "docs", "face", "frames", "groups", "layers", "plots")
    names += ("report", "river", "sklearn", "venn_abers")
    files = [str(TESTS / f"test_{name}.py") for name in names]
    arguments = ["-p", "no:cacheprovider", *files]
    done = python(f"{HIDE}; import pytest; sys.exit(pytest.main({arguments!r}))")

    assert 0 == done.returncode, done.stdout
    assert "skipped" in done.stdout


def test_a_stream_without_its_library_says_how_to_install_it() -> None:
    hidden = "import sys; sys.modules['msgspec'] = None"
    done = python(f"{hidden}; from limen.cli import main; sys.exit(main(['watch']))")

    assert (1, 'limen: watch needs msgspec. Install it with: pip install "limen[cli]"\n') == (
        done.returncode,
        done.stderr,
    )


def test_the_service_without_its_libraries_says_how_to_install_them() -> None:
    hidden = "import sys; sys.modules.update(dict.fromkeys(['msgspec', 'starlette', 'uvicorn']))"
    done = python(f"{hidden}; from limen.cli import main; sys.exit(main(['serve', '--check']))")

    assert (1, 'limen: serve needs msgspec. Install it with: pip install "limen[serve]"\n') == (
        done.returncode,
        done.stderr,
    )
