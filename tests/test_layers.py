# SPDX-License-Identifier: Apache-2.0
"""Imports point down only, and importing limen loads NumPy and nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import limen

PACKAGE = Path(limen.__file__).parent

# From the bottom up. A module may import from its own layer and from those below it. A package
# stands for all that is in it, and a layer is one sentence:
LAYERS = (
    # numbers and bytes, which know nothing of samples
    ("_core", "digits", "names", "picture", "storage", "units"),
    # what callers hand in, and values that are handed out
    (
        "arrays",
        "best_cut",
        "classifiers",
        "columns",
        "confidence",
        "direction",
        "errors",
        "floors",
        "hull",
        "losses",
        "metrics",
        "optimum",
        "review",
        "samples",
        "score_kind",
        "times",
    ),
    # samples held, answers out
    ("aim", "batch", "bounded", "calibrator", "isotonic_fit", "model", "online"),
    # for how long they are held, how sure the answers are, for which groups and which way round,
    # of how many rows
    ("budget", "groups", "memory", "narrowing", "trust"),
    # adapters to other libraries, one each; and what people read
    ("demo", "duckdb", "export", "page", "plots", "reporting", "river", "sklearn", "spark"),
    # the log of events and its fold, served by HTTP; and who asks it
    ("client", "service"),
    # what people start
    ("cli", "__main__"),
)
ALONE = {"paper", "page"}  # import nothing of limen
ADAPTERS = {"duckdb", "plots", "river", "sklearn", "spark"}  # import nothing of one another

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names} | {"paper": 0}


def imports_of(source: str) -> set[str]:
    """The modules of limen that a source imports; "" is the package itself."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "limen":
            names = {alias.name for alias in node.names}
            found |= {name for name in names if name in LEVEL} or {""}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("limen."):
            found.add((node.module or "").removeprefix("limen."))
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.removeprefix("limen").removeprefix(".")
                for alias in node.names
                if alias.name.split(".")[0] == "limen"
            }
    return found


def room_of(path: Path) -> str:
    """The module or package right inside limen that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_rooms() -> dict[str, set[str]]:
    """What each room imports; the package itself counts as its highest public room."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        names = {name.split(".")[0] or "memory" for name in imports_of(path.read_text())}
        found.setdefault(room_of(path), set()).update(names - {room_of(path), "__version__"})
    return found


def test_every_room_has_its_layer() -> None:
    assert set(LEVEL) - {"_core"} == set(imported_rooms()) - {"__init__"}


def test_imports_point_down_only() -> None:
    upwards = {
        room: {name for name in names if LEVEL[name] > LEVEL[room]}
        for room, names in imported_rooms().items()
        if room != "__init__"
    }

    assert {} == {room: names for room, names in upwards.items() if names}


def test_what_stands_alone_imports_nothing_and_adapters_nothing_of_one_another() -> None:
    rooms = imported_rooms()

    assert [] == [room for room in ALONE if rooms[room]]
    assert [] == [room for room in ADAPTERS if rooms[room] & ADAPTERS]


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
