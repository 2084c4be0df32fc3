# SPDX-License-Identifier: Apache-2.0
"""Build the documentation site into build/site: ``make docs``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

# They keep their places, so that links between them hold in the repository and on the site.
PAGES = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"),
    *("docs", "examples", "benchmarks/results"),
    *("benchmarks/data/README.md", "benchmarks/study/plan.toml"),
)
UNSHOWN = shutil.ignore_patterns("*.pyc", "build.py", "native_docstrings.py", "mkdocs.yml")


def build(place: Path) -> Path:
    """Gather the pages in a folder and make the site of them there."""
    for old in ("pages", "site"):
        shutil.rmtree(place / old, ignore_errors=True)
    for name in PAGES:
        copy = place / "pages" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy, ignore=UNSHOWN)
        else:
            shutil.copy(ROOT / name, copy)
    for name in ("mkdocs.yml", "native_docstrings.py"):
        shutil.copy(HERE / name, place / name)
    limen = find_spec("limen")
    assert limen is not None  # the reference imports it
    subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict"],
        cwd=place,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(limen.origin or "").parents[1])},
    )
    return place / "site"


if __name__ == "__main__":
    site = build(ROOT / "build")
    print(f"{site}/index.html; with search: {Path(sys.executable).name} -m http.server -d {site}")
