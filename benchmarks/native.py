# SPDX-License-Identifier: Apache-2.0
"""Run the benchmark of the trees alone and keep its result with the machine's description.

Needs nothing but the program that it is given and the standard library.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from typing import Any

from benchmarks.machine import folder_of, here


def line(found: dict[str, Any]) -> str:
    return (
        f"| {found['work']} | {found['n']:,} | {found['contender']} "
        f"| {statistics.median(found['ns']):,.0f} | {min(found['ns']):,.0f} | {found['bytes']} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.native", description=__doc__)
    parser.add_argument("program", help="the benchmark, built")
    parser.add_argument("sizes", nargs="*", help="samples held; 10000 and 1000000 by default")
    parser.add_argument("--dry", action="store_true", help="do not write benchmarks/results/")
    options = parser.parse_args()
    header = (
        "| work | n | contender | ns, median | ns, least | bytes per score |\n" + "|---" * 6 + "|"
    )
    print(header)
    found = []
    command = [options.program, *options.sizes]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        for each in run.stdout:
            found.append(json.loads(each))
            print(line(found[-1]), flush=True)
    if run.returncode:
        return run.returncode
    if not options.dry:
        described = {
            **here(),
            "command": "make bench-native",
            "clock": "thread CPU time, contenders in turns",
        }
        folder = folder_of(described)
        raw = {"machine": described, "findings": found}
        (folder / "native.json").write_text(json.dumps(raw, indent=1) + "\n")
        setup = "\n".join(f"- {key}: {value}" for key, value in described.items())
        table = "\n".join([header, *map(line, found)])
        (folder / "native.md").write_text(f"# The trees alone\n\n{setup}\n\n{table}\n")
        print(f"\nwritten to benchmarks/results/{folder.name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
