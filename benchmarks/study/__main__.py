# SPDX-License-Identifier: Apache-2.0
"""python -m benchmarks.study [PART ...], or make study: run what is missing of each part.

Parts: new_rows, claims, floors, streams, work; page writes docs/study.md and its pictures from what
they found.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings

PARTS = ("new_rows", "claims", "floors", "streams", "work", "page")

if __name__ == "__main__":
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")  # before NumPy is loaded
    warnings.filterwarnings("ignore", module="sklearn")
    for part in sys.argv[1:] or PARTS:
        if part not in PARTS:
            sys.exit(f"There is no part {part!r}; there are {', '.join(PARTS)}.")
        importlib.import_module(f"benchmarks.study.{part}").main()
