# SPDX-License-Identifier: Apache-2.0
"""Ask every question, print the ratios, and keep the raw result with the machine's description."""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks import (
    calibrator_questions,
    cli_questions,
    ledger_questions,
    questions,
    remembering_questions,
    trust_questions,
    tuner_questions,
)
from benchmarks.machine import machine
from benchmarks.timing import Finding

QUESTIONS = (
    *questions.QUESTIONS,
    *calibrator_questions.QUESTIONS,
    *remembering_questions.QUESTIONS,
    *ledger_questions.QUESTIONS,
    *trust_questions.QUESTIONS,
    *tuner_questions.QUESTIONS,
    *cli_questions.QUESTIONS,
)
RESULTS = Path(__file__).parent / "results"


def describe(only: list[str]) -> dict[str, str]:
    return {
        **machine("sortedcontainers", "scikit-learn", "river", "duckdb"),
        "command": "make bench" + (f", then python -m benchmarks {' '.join(only)}" if only else ""),
        "clock": "thread CPU time, medians, contenders in turns",
    }


def line(finding: Finding) -> str:
    ratio = "" if finding.ratio is None else f"{finding.ratio:,.1f}x"
    peer = "" if finding.peer is None else f"{finding.peer:,.1f}"
    kept = {True: "kept", False: "MISSED", None: ""}[finding.kept]
    return (
        f"| {finding.question} | {finding.size} | {finding.limen:,.1f} | {peer} "
        f"| {finding.unit} | {ratio} | {finding.promise} | {kept} |"
    )


def joined(path: Path, findings: list[Finding]) -> list[Finding]:
    """What was found earlier on the same day, but for the questions that were asked again."""
    if not path.exists():
        return findings
    earlier = [Finding(**each) for each in json.loads(path.read_text())["findings"]]
    again = {(finding.question, finding.size) for finding in findings}
    return [each for each in earlier if (each.question, each.size) not in again] + findings


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("only", nargs="*", help="names of the questions to ask; all by default")
    parser.add_argument("--dry", action="store_true", help="do not write benchmarks/results/")
    options = parser.parse_args()
    asked = [ask for ask in QUESTIONS if not options.only or ask.__name__ in options.only]
    header = "| question | n | limen | peer | unit | ratio | promised | |\n" + "|---" * 8 + "|"
    print(header)
    findings = []
    for ask in asked:
        for finding in ask():
            findings.append(finding)
            print(line(finding), flush=True)
    if not options.dry:
        described = describe(options.only)
        name = re.sub(r"[^a-z0-9]+", "-", f"{described['date']}-{described['processor']}".lower())
        folder = RESULTS / f"{name.strip('-')}-{described['cores']}-cores"
        folder.mkdir(parents=True, exist_ok=True)
        kept = joined(folder / "raw.json", findings) if options.only else findings
        raw = {"machine": described, "findings": [asdict(finding) for finding in kept]}
        (folder / "raw.json").write_text(json.dumps(raw, indent=1) + "\n")
        setup = "\n".join(f"- {key}: {value}" for key, value in described.items())
        table = "\n".join([header, *(line(finding) for finding in kept)])
        (folder / "README.md").write_text(f"# Result\n\n{setup}\n\n{table}\n")
        print(f"\nwritten to benchmarks/results/{folder.name}", file=sys.stderr)
    missed = [finding for finding in findings if finding.kept is False]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
