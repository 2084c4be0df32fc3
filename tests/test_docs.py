# SPDX-License-Identifier: Apache-2.0
"""Every example in the README, the docs and the docstrings runs and shows what it says."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import limen

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(limen.__path__, "limen.")
    if not module.name.endswith(("._core", ".__main__"))
)

# What the examples of a module or page need beyond NumPy; without it they are skipped.
NEEDED = {
    "README.md": ("sklearn",),
    "ecosystem.md": ("duckdb", "matplotlib", "polars", "pyarrow", "river", "sklearn"),
    "recipes_sklearn.md": ("sklearn",),
    "limen.optimum": ("pandas",),
    "limen.plots": ("matplotlib",),
    "limen.duckdb": ("duckdb", "pyarrow"),
    "limen.river": ("river",),
    "limen.sklearn": ("sklearn",),
    "limen.spark": ("pyspark",),
    "spark.md": ("polars", "pyarrow", "pyspark"),
}


def marked(name: str) -> tuple[pytest.MarkDecorator, ...]:
    """The examples of Spark are for `make check`."""
    return (pytest.mark.check,) if "spark" in name else ()


def require(name: str) -> None:
    for prefix, libraries in NEEDED.items():
        if name == prefix or name.startswith(f"{prefix}."):
            for library in libraries:
                pytest.importorskip(library)


def run(examples: doctest.DocTest) -> int:
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(examples)
    result = runner.summarize(verbose=False)

    assert 0 == result.failed
    return result.attempted


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=marked(page.name), id=page.name) for page in PAGES]
)
def test_examples_of_the_page_show_what_they_say(
    page: Path, request: pytest.FixtureRequest
) -> None:
    require(page.name)
    if page.name == "spark.md":
        request.getfixturevalue("spark")
    text = page.read_text(encoding="utf-8")
    run(doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=marked(name)) for name in ("limen", *MODULES)]
)
def test_examples_of_the_module_show_what_they_say(name: str) -> None:
    require(name)
    module = importlib.import_module(name)
    for examples in doctest.DocTestFinder(exclude_empty=True).find(module):
        run(examples)


@pytest.mark.parametrize("method", ["update", "revert"])
@pytest.mark.parametrize("model", [limen.OnlineThreshold, limen.OnlineCut, limen.OnlineCalibrator])
def test_examples_of_native_methods_show_what_they_say(model: type, method: str) -> None:
    text = inspect.getdoc(getattr(model, method))

    assert text is not None
    assert run(doctest.DocTestParser().get_doctest(text, {}, method, None, 0)) > 0


def test_the_readme_has_examples() -> None:
    parsed = doctest.DocTestParser().get_examples((ROOT / "README.md").read_text(encoding="utf-8"))

    assert len(parsed) >= 6


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_demonstration_runs(capsys: pytest.CaptureFixture[str]) -> None:
    demo = importlib.import_module("limen.demo.__main__")
    demo.main()

    assert "the same to the last bit" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_installs_only_what_can_be_installed(page: Path) -> None:
    """It is not on an index yet, and is installed from its folder."""
    text = page.read_text(encoding="utf-8").replace('"', "")

    assert [] == [line for line in text.splitlines() if "pip install limen" in line]


def test_each_question_is_decided_once() -> None:
    rows = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8").splitlines()
    questions = [row.split("|")[1].strip() for row in rows if row.startswith("| ")]

    assert len(questions) == len(set(questions)) > 20


def test_pages_agree_on_what_german_credit_costs_on_new_rows() -> None:
    said = {
        "ecosystem.md": "and 141 on 250 new\nrows, where the other costs 134",
        "performance.md": "used on the 250, the threshold here costs 141, the one there\n134",
    }
    pages = {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in said}

    assert [] == [name for name, text in pages.items() if said[name] not in text]


def test_the_steps_of_the_ways_of_a_row_are_files() -> None:
    text = (ROOT / "docs" / "how_it_works.md").read_text(encoding="utf-8")
    ways = text.partition("## The way of a row")[2]
    named = set(re.findall(r"[a-z_]+(?:/[a-z_]+)*(?:\.py|/)|native/[a-z]+", ways))
    roots = (ROOT, ROOT / "src" / "limen", ROOT / "src" / "limen" / "service")

    assert len(named) > 20
    assert [] == [name for name in sorted(named) if not any((at / name).exists() for at in roots)]
