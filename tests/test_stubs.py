# SPDX-License-Identifier: Apache-2.0
"""src/limen/_core.pyi is what nanobind makes of the bindings."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nanobind")

ROOT = Path(__file__).parents[1]


def parsed(source: str) -> list[str]:
    """What a stub says, without its layout; imports in any order."""
    body = [ast.dump(node) for node in ast.parse(source).body]
    return sorted(each for each in body if each.startswith("Import")) + [
        each for each in body if not each.startswith("Import")
    ]


def test_the_types_of_the_core_are_those_of_its_bindings() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "native/stubs.py"], capture_output=True, text=True, check=True
    )
    kept = (ROOT / "src/limen/_core.pyi").read_text()

    assert parsed(made.stdout) == parsed(kept), "run `make stubs`"


def test_a_change_of_the_types_is_noticed() -> None:
    kept = (ROOT / "src/limen/_core.pyi").read_text()

    assert parsed(kept) == parsed(kept.replace(" -> ", "  ->  "))
    assert parsed(kept) != parsed(kept.replace("-> bool", "-> int", 1))
