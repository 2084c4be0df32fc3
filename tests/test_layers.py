# SPDX-License-Identifier: Apache-2.0
"""Imports point down only, and importing limen loads NumPy and nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import limen

PACKAGE = Path(limen.__file__).parent

# A module may import from limen only what stands in its row.
ALLOWED: dict[str, set[str]] = {
    "paper": set(),
    "digits": set(),
    "errors": {"metrics"},  # for a type alone
    "units": set(),
    "files": set(),
    "storage": {"files"},
    "times": {"arrays", "storage"},
    "arrays": set(),
    "columns": {"_core", "arrays"},
    "losses": {"arrays", "columns"},
    "optimum": {"_core", "arrays", "columns"},
    "metrics": {"_core", "errors", "optimum", "units"},
    "hull": {"_core", "arrays", "columns", "metrics"},
    "held": {"_core", "columns", "storage", "units"},
    "online": {"_core", "columns", "held", "optimum", "units"},
    "batch": {"_core", "columns", "online", "optimum", "units"},
    "calibrator": {"_core", "columns", "held", "hull", "metrics", "optimum", "units"},
    "groups": {"arrays", "batch", "columns", "optimum", "storage", "units"},
    "__init__": {
        *("batch", "calibrator", "columns", "errors", "fading", "groups"),
        *("held", "hull", "ledger", "losses", "metrics", "online"),
        *("optimum", "storage", "trust", "windows"),
    },
    "trust": {"trust.cross_fit", "trust.evidence", "trust.recommended"},
    "trust.ranked": {"_core"},
    "trust.intervals": {"trust.ranked"},
    "trust.rank_model": {"trust.intervals", "trust.ranked"},
    "trust.rule": {"trust.intervals", "trust.rank_model", "trust.ranked"},
    "trust.cross_fit": {"trust.intervals", "trust.ranked", "trust.rule"},
    "trust.recommended": {
        *("_core", "columns", "online", "optimum", "units"),
        *("trust.cross_fit", "trust.intervals", "trust.ranked", "trust.rule"),
    },
    "trust.evidence": {"columns", "errors", "storage", "times", "trust.ranked", "units"},
    "wrapping": {"arrays", "storage"},
    "windows": {"columns", "storage", "times", "wrapping"},
    "prices": {"units"},
    "fading": {"errors", "hull", "metrics", "optimum", "times", "units", "wrapping"},
    "entries": {"storage", "times"},
    "ledger": {"entries", "fading", "prices", "storage", "times", "units", "wrapping"},
    "plots": {"plots.blocks", "plots.history", "plots.loss_curve", "plots.roc_hull"},
    "plots.display": {"columns", "digits", "units"},
    "plots.blocks": {"calibrator", "hull", "plots.display", "units"},
    "plots.history": {"online", "plots.display", "times", "units", "windows"},
    "plots.loss_curve": {"batch", "plots.display", "units"},
    "plots.roc_hull": {"calibrator", "metrics", "plots.display", "units"},
    "river": {"calibrator", "hull", "online", "optimum", "units", "windows", "wrapping"},
    "sklearn": {"sklearn.calibrated", "sklearn.threshold"},
    "sklearn.wrapper": {"columns", "units"},
    "sklearn.pool": {"columns"},
    "sklearn.threshold": {
        *("batch", "calibrator", "errors", "losses", "metrics", "online"),
        *("optimum", "sklearn.pool", "sklearn.wrapper", "units"),
    },
    "sklearn.calibrated": {
        *("arrays", "calibrator", "columns", "hull", "sklearn.pool", "sklearn.wrapper", "units"),
    },
    "demo": set(),
    "page": set(),
    "demo.__main__": {"", "demo", "digits"},
    "cli.outcome": set(),
    "cli.options": {"", "cli.outcome"},
    "cli.completion": {"cli.options", "cli.outcome"},
    "cli.progress": set(),
    "cli.rows": {"cli.outcome"},
    "cli.text": {"cli.outcome", "cli.rows"},
    "cli.tables": {"cli.outcome", "cli.progress", "cli.rows", "cli.text"},
    "cli.narrowing": {"cli.progress", "cli.tables", "units"},
    "cli.reading": {
        *("cli.narrowing", "cli.outcome", "cli.progress", "cli.rows", "cli.tables", "cli.text"),
        *("cli.telling", "columns"),
    },
    "cli.telling": {"cli.outcome", "digits", "files", "metrics"},  # metrics for a type alone
    "cli.commands": {
        *("cli.outcome", "cli.reading", "cli.rows", "cli.telling"),
        *("batch", "calibrator", "demo", "demo.__main__", "digits", "errors", "metrics"),
        *("groups", "online", "units"),
    },
    "cli.journal": {"cli.outcome", "files", "storage"},  # storage for a type alone
    "cli.watch": {
        *("cli.journal", "cli.options", "cli.outcome", "cli.rows", "cli.telling"),
        *("digits", "fading", "ledger", "online", "storage", "windows"),
    },
    "cli.models": {
        *("", "cli.commands", "cli.journal", "cli.options", "cli.outcome", "cli.telling"),
        *("digits", "errors", "units"),
    },
    "cli.report": {
        *("", "cli.commands", "cli.reading", "cli.telling"),
        *("calibrator", "digits", "metrics"),
    },
    "cli": {"cli.options", "cli.outcome"},
    "__main__": {"cli"},
}


def imports_of(source: str) -> set[str]:
    """The modules of limen that a source imports; "" is the package itself."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "limen":
            names = {alias.name for alias in node.names}
            modules = {name for name in names if name in ALLOWED or name == "_core"}
            found |= modules or {""}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("limen."):
            found.add((node.module or "").removeprefix("limen."))
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.removeprefix("limen").removeprefix(".")
                for alias in node.names
                if alias.name.split(".")[0] == "limen"
            }
    return found


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def test_every_module_has_its_row() -> None:
    found = {module_name(path) for path in PACKAGE.rglob("*.py")}

    assert set(ALLOWED) == found


def test_imports_point_down_only() -> None:
    upwards = {
        module_name(path): imports_of(path.read_text()) - ALLOWED[module_name(path)]
        for path in PACKAGE.rglob("*.py")
    }

    assert {} == {name: wrong for name, wrong in upwards.items() if wrong}


def test_importing_limen_loads_numpy_and_the_standard_library_only() -> None:
    program = (
        "import sys, numpy; before = set(sys.modules); from limen import *; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    foreign = {name for name in loaded - {"limen", "numpy"} if name not in sys.stdlib_module_names}

    assert set() == {name for name in foreign if not name.startswith("_editable")}
