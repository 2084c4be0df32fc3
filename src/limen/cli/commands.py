# SPDX-License-Identifier: Apache-2.0
"""The commands that read files of samples: fit, curve, compare; and demo."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from limen.batch import loss_curve
from limen.calibrator import OnlineCalibrator
from limen.cli.aims import aim_of, columns_of
from limen.cli.exits import BAD_INPUT, Failure
from limen.cli.findings import best_of, confusion_at, findings_by_group
from limen.cli.inputs import read, read_narrowed
from limen.cli.output import as_json, print_messages, require_writable, written
from limen.cli.sentences import comparison, remarks, summary
from limen.groups import Grouped
from limen.online import OnlineThreshold

if TYPE_CHECKING:
    from argparse import Namespace

    from limen.cli.aims import Aim
    from limen.cli.findings import Finding, GroupFinding
    from limen.cli.samples import Samples

__all__ = ["compare", "curve", "demo", "fit"]

_LINES = 65536  # written at a time


def fit(options: Namespace) -> int:
    """Find the best threshold of the samples in files."""
    aim = aim_of(options)
    require_writable(options.save, options.force)
    groups: dict[str, GroupFinding] = {}
    out_of_core = _fit_out_of_core(options, aim)
    if out_of_core is None:
        samples = read(options.files, options.format, columns_of(options))
        finding = best_of(samples, aim, options.unit)
        groups = findings_by_group(samples, finding, aim, options.unit, options.at_least)
        if options.save is not None:
            _model_of(samples, options, aim).save(options.save)
    else:
        samples, finding = out_of_core
    print_messages(*summary(finding, aim), quiet=options.quiet)
    print_messages(*remarks(samples, groups, options, aim), quiet=options.quiet)
    if options.json:
        facts = {**aim.facts(), **finding.facts()}
        if options.group_column is not None:
            facts["groups"] = [
                {"group": name, "own": own, **part.facts()} for name, (part, own) in groups.items()
            ]
        print(as_json(facts))
    elif options.group_column is not None:
        rows = (
            (name, repr(part.threshold), part.samples, part.positives, int(own))
            for name, (part, own) in groups.items()
        )
        csv.writer(sys.stdout, lineterminator="\n").writerows(
            [(options.group_column, "threshold", "samples", "positives", "own"), *rows]
        )
    else:
        print(repr(finding.threshold))
    return 0


def _fit_out_of_core(options: Namespace, aim: Aim) -> tuple[Samples, Finding] | None:
    """Find the cheapest cut of files that memory does not hold; None where it holds them."""
    if aim.metric is not None or options.save is not None:
        return None
    few = read_narrowed(options.files, options.format, columns_of(options), aim.costs)
    if few is None:
        return None
    finding = best_of(few, aim, options.unit)
    rows: Any = few.weights  # that each of the few stands for
    return few, replace(finding, samples=int(rows.sum()), positives=int(few.labels @ rows))


def _model_of(samples: Samples, options: Namespace, aim: Aim) -> Any:
    """Hold all samples, for these costs where costs are the aim, else for all; also by group."""
    model: Any = (
        OnlineThreshold(**aim.costs, unit=options.unit)
        if aim.metric is None
        else OnlineCalibrator(unit=options.unit)
    )
    columns = samples.scores, samples.labels, samples.weights
    if samples.codes is None:
        model.update_many(*columns)
        return model
    grouped = Grouped(model, at_least=options.at_least)
    grouped.update_many([samples.names[code] for code in samples.codes.tolist()], *columns)
    return grouped


def curve(options: Namespace) -> int:
    """Write the loss of every cut as CSV."""
    aim = aim_of(options)
    require_writable(options.output, options.force)
    samples = read(options.files, options.format, columns_of(options))
    try:
        losses = loss_curve(
            samples.scores, samples.labels, weights=samples.weights, unit=options.unit, **aim.costs
        )
    except (ValueError, OverflowError) as error:
        raise Failure(str(error), BAD_INPUT) from None
    with written(options.output) as file:
        file.write("threshold,loss\n")
        for start in range(0, len(losses), _LINES):
            thresholds = losses.thresholds[start : start + _LINES].tolist()
            each = losses.losses[start : start + _LINES].tolist()
            file.write("".join(f"{t!r},{v!r}\n" for t, v in zip(thresholds, each, strict=True)))
    print_messages(
        f"{len(losses):,} cuts of {len(samples):,} samples; the cheapest at "
        f"{best_of(samples, aim, options.unit).threshold_text}",
        quiet=options.quiet,
    )
    return 0


def compare(options: Namespace) -> int:
    """Compare the cost of thresholds with the optimum."""
    aim = aim_of(options)
    samples = read(options.files, options.format, columns_of(options))
    best = best_of(samples, aim, options.unit)
    lowest = aim.measure(*best.confusion)
    rows: list[dict[str, Any]] = []
    for threshold in (best.threshold, *options.thresholds):
        confusion = confusion_at(samples, threshold, options.unit)
        loss = aim.measure(*confusion)
        rows.append(
            {"threshold": threshold, "loss": loss, "excess": loss - lowest, **confusion._asdict()}
        )
    for row in rows[1:]:
        print_messages(comparison(row, lowest, len(samples)), quiet=options.quiet)
    if options.json:
        print(as_json({"optimum": rows[0], "thresholds": rows[1:]}))
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
