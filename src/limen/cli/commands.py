# SPDX-License-Identifier: Apache-2.0
"""The commands ``curve``, ``compare`` and ``demo``."""

from __future__ import annotations

import csv
import sys
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.best_cut import Cuts, demands_of, met_at
from limen.calibrator import OnlineCalibrator
from limen.cli.aims import aim_of, columns_of, metric_of
from limen.cli.checking import Candidate, checked
from limen.cli.inputs import read
from limen.cli.output import as_json, print_messages, require_writable, written
from limen.cli.progress import counting
from limen.cli.refusals import failing, require_confidence
from limen.cli.sentences import comparisons, demands_met, skipped_lines, value_comparisons
from limen.digits import difference
from limen.direction import negated
from limen.reporting.advice import advice_on
from limen.reporting.findings import best_of, confusion_at, loss_curve_of, worth_at
from limen.reporting.samples import unit_of
from limen.reporting.wording import as_typed

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from limen.reporting.aim import Aim
    from limen.reporting.findings import Finding
    from limen.reporting.samples import Samples

__all__ = ["compare", "curve", "demo"]

_LINES = 65536  # written at a time
_ABOUT_NEW_ROWS = ("recommended", "interval", "confidence", "regret")


def curve(options: Namespace) -> int:
    """Write the loss of every cut as CSV."""
    aim = aim_of(options)
    require_writable(options.output, options.force)
    samples = read(options.files, options.format, columns_of(options))
    print_messages(*skipped_lines(samples), quiet=options.quiet)
    options.unit = unit_of(samples, options.unit)
    names = list(dict.fromkeys(options.metrics or ()))
    with failing():
        columns = _columns_of_curve(samples, aim, options.unit, names)
    length = len(columns["threshold"])
    with written(options.output) as file, _progress(options.output) as tick:
        file.write(",".join(columns) + "\n")
        for start in range(0, length, _LINES):
            tick(start)
            parts = [column[start : start + _LINES].tolist() for column in columns.values()]
            lines = (",".join(map(repr, row)) + "\n" for row in zip(*parts, strict=True))
            file.write("".join(lines))
    if not options.quiet:
        asked = replace(aim, metric=metric_of(names[0]), name=names[0]) if names else aim
        with failing():
            best = best_of(samples, asked, options.unit).threshold_text
        which = "the cheapest" if asked.metric is None else f"the best by {asked.name}"
        print_messages(f"{length:,} cuts of {len(samples):,} samples; {which} at {best}")
    return 0


def _progress(output: str | None) -> AbstractContextManager[Callable[[int], None]]:
    """Count the rows written, unless they go to the same terminal."""
    if output in (None, "-") and sys.stdout.isatty():
        return nullcontext(lambda rows: None)
    return counting("standard output" if output in (None, "-") else str(output))


def _columns_of_curve(
    samples: Samples, aim: Aim, unit: Any, names: list[str]
) -> dict[str, NDArray[Any]]:
    """Return thresholds, losses unless metrics alone are asked for, and one column per metric.

    Under demands there is one more, of 1 where a cut meets them all.
    """
    columns: dict[str, NDArray[Any]] = {}
    if not names:
        losses = loss_curve_of(samples, aim, unit)
        columns = {"threshold": losses.thresholds, "loss": losses.losses}
    if not names and not aim.demands:
        return columns
    calibrator, falling = OnlineCalibrator(unit=unit), samples.direction == "<="
    scores = negated(samples.scores) if falling else samples.scores
    calibrator.update_many(scores, samples.labels, samples.weights)
    cuts, step = Cuts(*calibrator._cuts()), -1 if falling else 1
    weights = [weight[::step] for weight in cuts.in_numbers(slice(None))]
    if names:
        columns["threshold"] = 0.0 - cuts.thresholds[::-1] if falling else cuts.thresholds
    columns |= {name: metric_of(name)(*weights) for name in names}
    if aim.demands:
        met = np.logical_and.reduce(met_at(cuts, demands_of(**aim.demands)))[::step]
        columns["meets"] = met.astype(np.int64)
    return columns


def compare(options: Namespace) -> int:
    """Compare the cost of thresholds with the optimum, and with the first of them."""
    aim = aim_of(options)
    require_confidence(options.confidence)
    samples = read(options.files, options.format, columns_of(options))
    print_messages(*skipped_lines(samples), quiet=options.quiet)
    options.unit = unit_of(samples, options.unit)
    with failing():
        best = best_of(samples, aim, options.unit)
    lowest = worth_at(samples, best.threshold, aim, options.unit)
    rows: list[dict[str, Any]] = []
    for threshold in (best.threshold, *options.thresholds):
        confusion = confusion_at(samples, threshold, options.unit)
        loss = worth_at(samples, threshold, aim, options.unit)
        rows.append(
            {
                "threshold": threshold,
                "loss": loss,
                "excess": difference(loss, lowest),
                **confusion._asdict(),
            }
        )
    if aim.metric is not None:
        return _compare_values(samples, best, aim, options)
    if options.json or not options.quiet:
        trust = aim, options.unit, options.confidence
        advice = [advice_on(samples, *trust, threshold) for threshold in options.thresholds]
        named = [Candidate(repr(each), "", as_typed(each), each) for each in options.thresholds]
        checks = list(checked(samples, named, *trust))
    if not options.quiet:
        print_messages(*comparisons(rows[1:], lowest, len(samples), advice, checks))
    if options.json:
        for row, each, check in zip(rows[1:], advice, checks, strict=True):
            row |= {"keep": each.keep, "reason": each.reason, "saving": check.saving_facts()}
        about = {name: advice[0].facts()[name] for name in _ABOUT_NEW_ROWS}
        print(as_json({"optimum": rows[0], "thresholds": rows[1:], **about}))
        return 0
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(rows[0])
    table.writerows([map(repr, row.values()) for row in rows])
    return 0


def _compare_values(samples: Samples, best: Finding, aim: Aim, options: Namespace) -> int:
    """Compare thresholds with the best one by a metric, or under demands."""
    top = worth_at(samples, best.threshold, aim, options.unit)
    rows: list[dict[str, Any]] = []
    for threshold in (best.threshold, *options.thresholds):
        confusion = confusion_at(samples, threshold, options.unit)
        value = worth_at(samples, threshold, aim, options.unit)
        more = value - top if aim.measure.scale is None else difference(value, top)
        row = {"threshold": threshold, "value": value, "difference": more}
        if aim.demands:
            row["meets"] = int(all(met for _, met, _ in demands_met(confusion, aim)))
        rows.append(row | confusion._asdict())
    if not options.quiet:
        print_messages(*value_comparisons(rows, aim))
    if options.json:
        print(as_json({**aim.facts(), "best": rows[0], "thresholds": rows[1:]}))
        return 0
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(rows[0])
    table.writerows([map(repr, row.values()) for row in rows])
    return 0


def demo(options: Namespace) -> int:
    """Play a small real stream."""
    if options.csv:
        from limen.demo import phishing_csv

        print(phishing_csv(), end="")
        return 0
    from limen.demo.__main__ import main

    main()
    return 0
