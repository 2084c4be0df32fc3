# SPDX-License-Identifier: Apache-2.0
"""Print the stub of limen's core, made by nanobind of the module that is installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

PATTERNS = Path(__file__).parent / "bindings/stubs.pat"


def stub() -> str:
    """Return what src/limen/_core.pyi should be, but for its layout."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "_core.pyi")
        given = ["-m", "limen._core", "-p", PATTERNS, "-o", made]
        usual = ["--include-private", "--exclude-docstrings", "--exclude-values", "--quiet"]
        subprocess.run([sys.executable, "-m", "nanobind.stubgen", *given, *usual], check=True)
        text = made.read_text()
    # Type checkers know no shapes: the type of an array is that of its numbers.
    text = re.sub(r"Annotated\[(NDArray\[[\w.]+\]), dict\(shape=\(None,\)[^)]*\)\]", r"\1", text)
    return text.replace("import Annotated, ", "import ")


if __name__ == "__main__":
    sys.stdout.write(stub())
