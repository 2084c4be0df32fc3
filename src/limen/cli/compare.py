# SPDX-License-Identifier: Apache-2.0
"""``limen compare``: what thresholds cost on files, beside the optimum and beside each other."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING, Any

from limen.cli.aims import aim_of, columns_of
from limen.cli.checking import Candidate, checked
from limen.cli.inputs import read
from limen.cli.output import as_json, print_messages
from limen.cli.refusals import failing, require_confidence
from limen.cli.sentences import comparisons, demands_met, skipped_lines, value_comparisons
from limen.digits import difference
from limen.reporting.advice import advice_on
from limen.reporting.findings import best_of, judged_at
from limen.reporting.samples import aim_on
from limen.reporting.wording import as_typed

if TYPE_CHECKING:
    from argparse import Namespace

    from limen.aim import Aim
    from limen.cli.checking import Checked
    from limen.reporting.advice import Advice
    from limen.reporting.samples import FileRows

__all__ = ["compare"]

_ABOUT_NEW_ROWS = ("recommended", "interval", "confidence", "regret")


def compare(options: Namespace) -> int:
    """Compare the cost of thresholds with the optimum, and with the first of them."""
    aim = aim_of(options)
    require_confidence(options.confidence)
    samples = read(options.files, options.format, columns_of(options))
    print_messages(*skipped_lines(samples), quiet=options.quiet)
    with failing():
        aim = aim_on(samples, aim, options.unit)
        best = best_of(samples, aim).threshold
    rows = _compared(samples, aim, [best, *options.thresholds])
    if not aim.by_cost:
        facts = {**aim.facts(), "best": rows[0], "thresholds": rows[1:]}
        if not options.quiet:
            print_messages(*value_comparisons(rows, aim))
    elif options.json or not options.quiet:
        trust = aim, options.confidence
        advice = [advice_on(samples, *trust, threshold) for threshold in options.thresholds]
        named = [Candidate(repr(each), "", as_typed(each), each) for each in options.thresholds]
        checks = list(checked(samples, named, *trust))
        if not options.quiet:
            lowest = rows[0]["loss"]
            print_messages(*comparisons(rows[1:], lowest, len(samples), advice, checks))
        about = {name: advice[0].facts()[name] for name in _ABOUT_NEW_ROWS}
        pairs = zip(rows[1:], advice, checks, strict=True)
        facts = {"optimum": rows[0], "thresholds": [_judged(*each) for each in pairs], **about}
    if options.json:
        print(as_json(facts))
        return 0
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(rows[0])
    table.writerows([map(repr, row.values()) for row in rows])
    return 0


def _judged(row: dict[str, Any], advice: Advice, check: Checked) -> dict[str, Any]:
    """Return what is known about a threshold, ready for JSON."""
    sure = {"keep": advice.keep, "reason": advice.reason, "saving": check.saving_facts()}
    return row | sure


def _compared(samples: FileRows, aim: Aim, thresholds: list[float]) -> list[dict[str, Any]]:
    """Return what each threshold is worth, and how far it is from the first, which is the best."""
    worth_name, away_name = ("loss", "excess") if aim.by_cost else ("value", "difference")
    rows: list[dict[str, Any]] = []
    for threshold in thresholds:
        confusion, worth = judged_at(samples, threshold, aim)
        best = rows[0][worth_name] if rows else worth
        away = worth - best if aim.metric is not None else difference(worth, best)
        row = {"threshold": threshold, worth_name: worth, away_name: away}
        if aim.demands:
            row["meets"] = int(all(met for _, met, _ in demands_met(confusion, aim)))
        rows.append(row | confusion._asdict())
    return rows
