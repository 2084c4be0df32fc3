# SPDX-License-Identifier: Apache-2.0
"""The commands that read files of samples and tell about their cuts."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.batch import loss_curve, optimal_threshold
from limen.calibrator import OnlineCalibrator
from limen.cli.outcome import BAD_INPUT, INFEASIBLE, USAGE, Failure
from limen.cli.reading import Samples, read, read_narrowed
from limen.cli.rows import Columns
from limen.cli.telling import Told, as_json, bold, plain, require_writable, say, written
from limen.errors import Infeasible
from limen.metrics import Confusion, Metric, cost, fbeta
from limen.online import OnlineThreshold

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

__all__ = ["compare", "curve", "demo", "fit"]

_DEMANDS = ("min_precision", "min_recall", "max_false_positive_rate", "max_positive_rate")
_LINES = 65536


def columns_of(options: Namespace) -> Columns:
    """Collect the options about columns."""
    return Columns(
        options.score_column,
        options.label_column,
        options.weight_column,
        getattr(options, "group_column", None),
        options.positive,
        options.delimiter,
        options.unit,
    )


def costs_of(options: Namespace) -> dict[str, Any]:
    """Collect the costs; 1 where none is given."""
    given = {"false_positive": options.false_positive, "false_negative": options.false_negative}
    return {name: 1 if value is None else value for name, value in given.items()}


def fit(options: Namespace) -> int:
    """Find the best threshold of the samples in files."""
    aim, demands = aim_of(options)
    require_writable(options.save, options.force)
    columns = columns_of(options)
    groups: dict[str, Told] = {}
    told = _of_too_many(options, columns) if aim is None and options.save is None else None
    if told is None:
        samples = read(options.files, options.format, columns)
        told = best_of(samples, options, aim, demands)
        for name, members in samples.by_group():
            groups[name] = best_of(members, options, aim, demands, name)
        if options.save is not None:
            _model_of(samples, options, aim).save(options.save)
    say(*_summary(told, options, aim), quiet=options.quiet)
    for name, part in groups.items():
        if part.positives in (0, part.samples):
            say(
                f"limen: every label of group {name} counts as {int(part.positives > 0)}; its "
                "threshold says no more than that.",
                quiet=options.quiet,
            )
    if options.json:
        facts = {**_asked(options, aim, demands), **told.facts()}
        if options.group_column is not None:
            facts["groups"] = [{"group": name, **part.facts()} for name, part in groups.items()]
        print(as_json(facts))
    elif options.group_column is not None:
        rows = ((name, repr(part.threshold)) for name, part in groups.items())
        csv.writer(sys.stdout, lineterminator="\n").writerows(
            [(options.group_column, "threshold"), *rows]
        )
    else:
        print(repr(told.threshold))
    return 0


def _of_too_many(options: Namespace, columns: Columns) -> Told | None:
    """Tell about the samples of files that memory does not hold; None where it does."""
    few = read_narrowed(options.files, options.format, columns, costs_of(options))
    if few is None:
        return None
    told = best_of(Samples(few.scores, few.labels, few.weights, None, []), options, None, {})
    return replace(told, samples=few.rows, positives=few.positives)


def aim_of(options: Namespace) -> tuple[Metric | str | None, dict[str, Any]]:
    """Tell what is to be made best, None for the lowest cost alone, and what is demanded."""
    demands = {name: getattr(options, name) for name in _DEMANDS}
    demands = {name: bound for name, bound in demands.items() if bound is not None}
    costs = options.false_positive is not None or options.false_negative is not None
    if options.metric is not None:
        if costs:
            raise Failure("--metric and costs are two aims. Give one of them.", USAGE)
        return _metric(options.metric), demands
    if not demands:
        return None, demands
    if costs:
        return cost(**costs_of(options)), demands
    return ("precision" if "min_recall" in demands else "recall"), demands


def _metric(name: str) -> Metric | str:
    from fractions import Fraction

    return name if name == "f1" or not name[1].isdigit() else fbeta(Fraction(name[1:]))


def best_of(
    samples: Samples,
    options: Namespace,
    aim: Metric | str | None,
    demands: dict[str, Any],
    group: str | None = None,
) -> Told:
    """Find the best cut by the aim, and tell all about it."""
    counts = len(samples), int(np.count_nonzero(samples.labels))
    try:
        if aim is None:
            costs = costs_of(options)
            best = optimal_threshold(
                samples.scores,
                samples.labels,
                weights=samples.weights,
                unit=options.unit,
                **costs,
            )
            right = confusion_at(samples, best.threshold, options.unit)
            return Told(best.threshold, best.lower, best.upper, best.loss, None, right, *counts)
        held = calibrator_of(samples, options.unit)
        found = held.best(aim, **demands)
    except Infeasible as infeasible:
        where = "" if group is None else f"group {group}: "
        nearest = str(infeasible).split("; ask for less")[0]
        raise Failure(f"{where}{nearest}. Ask for less.", INFEASIBLE) from None
    except (ValueError, OverflowError) as error:
        raise Failure(str(error), BAD_INPUT) from None
    ends = found.threshold, found.lower, found.upper
    return Told(*ends, None, found.value, found.confusion, *counts)


def _model_of(samples: Samples, options: Namespace, aim: Metric | str | None) -> Any:
    """Hold all samples, for these costs where costs are the aim, else for all."""
    if aim is not None:
        return calibrator_of(samples, options.unit)
    held = OnlineThreshold(**costs_of(options), unit=options.unit)
    held.update_many(samples.scores, samples.labels, samples.weights)
    return held


def calibrator_of(samples: Samples, unit: Any) -> OnlineCalibrator:
    """Hold all samples."""
    held = OnlineCalibrator(unit=unit)
    held.update_many(samples.scores, samples.labels, samples.weights)
    return held


def confusion_at(samples: Samples, threshold: float, unit: Any) -> Confusion:
    """Count right and wrong answers at a threshold, exactly. O(n)."""
    answers = samples.scores >= threshold
    if samples.weights is not None:
        held = OnlineCalibrator(unit=unit)
        held.update_many(answers, samples.labels, samples.weights)
        return held.confusion(0.5)
    tp = int(np.count_nonzero(answers & samples.labels.view(bool)))
    fp = int(np.count_nonzero(answers)) - tp
    positives = int(np.count_nonzero(samples.labels))
    return Confusion(*map(float, (tp, fp, positives - tp, len(samples) - positives - fp)))


def _asked(options: Namespace, aim: Metric | str | None, demands: dict[str, Any]) -> dict[str, Any]:
    """Tell what was asked for, so that the answer can be read alone."""
    asked: dict[str, Any] = {}
    if aim is None or (isinstance(aim, Metric) and aim.lowest):
        asked |= {name: float(value) for name, value in costs_of(options).items()}
    else:
        asked["metric"] = options.metric or aim
    return asked | {name: float(bound) for name, bound in demands.items()}


def _summary(told: Told, options: Namespace, aim: Metric | str | None) -> Iterator[str]:
    negatives = told.samples - told.positives
    yield (f"{told.samples:,} samples: {told.positives:,} count as 1, {negatives:,} as 0")
    yield _rule(told)
    right = told.confusion
    if aim is None:
        costs = {name: float(value) for name, value in costs_of(options).items()}
        fp, fn = costs["false_positive"], costs["false_negative"]
        none, all_ = fn * (right.tp + right.fn), fp * (right.fp + right.tn)
        yield (
            f"cost {plain(told.loss or 0.0)}: false positives {plain(right.fp)} at {plain(fp)}, "
            f"false negatives {plain(right.fn)} at {plain(fn)}; answering 0 to all costs "
            f"{plain(none)}, 1 to all {plain(all_)}"
        )
    else:
        name = options.metric or (aim if isinstance(aim, str) else "cost")
        yield f"{name} {plain(told.value or 0.0)}"
    yield (
        f"answers 1 to {right.positive_rate:.2%} of all; precision {right.precision:.2%}, "
        f"recall {right.recall:.2%}"
    )


def _rule(told: Told) -> str:
    if told.upper is None:
        return bold("answer 0 to every score")
    if told.lower is None:
        return bold("answer 1 to every score")
    return (
        f"{bold(f'answer 1 when score >= {plain(told.threshold)}')}: any threshold above "
        f"{told.lower!r} and up to {told.upper!r} answers alike"
    )


def curve(options: Namespace) -> int:
    """Write the loss of every cut as CSV."""
    require_writable(options.output, options.force)
    samples = read(options.files, options.format, columns_of(options))
    costs = costs_of(options)
    try:
        losses = loss_curve(
            samples.scores, samples.labels, weights=samples.weights, unit=options.unit, **costs
        )
    except (ValueError, OverflowError) as error:
        raise Failure(str(error), BAD_INPUT) from None
    with written(options.output) as file:
        file.write("threshold,loss\n")
        for start in range(0, len(losses), _LINES):
            thresholds = losses.thresholds[start : start + _LINES].tolist()
            each = losses.losses[start : start + _LINES].tolist()
            file.write("".join(f"{t!r},{v!r}\n" for t, v in zip(thresholds, each, strict=True)))
    say(
        f"{len(losses):,} cuts of {len(samples):,} samples; the cheapest at "
        f"{plain(float(losses.cheapest[-1]))}",
        quiet=options.quiet,
    )
    return 0


def compare(options: Namespace) -> int:
    """Tell what thresholds cost against the optimum."""
    samples = read(options.files, options.format, columns_of(options))
    best = best_of(samples, options, None, {})
    price = cost(**costs_of(options))
    rows = []
    for threshold in (best.threshold, *options.thresholds):
        right = confusion_at(samples, threshold, options.unit)
        loss = price(*right)
        rows.append({"threshold": threshold, "loss": loss, **right._asdict()})
    lowest = rows[0]["loss"]
    rows = [
        {"threshold": row.pop("threshold"), "loss": row["loss"], "excess": row.pop("loss") - lowest}
        | row
        for row in rows
    ]
    for row in rows[1:]:
        say(_verdict(row, lowest, len(samples)), quiet=options.quiet)
    if options.json:
        print(as_json({"optimum": rows[0], "thresholds": rows[1:]}))
        return 0
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(rows[0])
    table.writerows([map(repr, row.values()) for row in rows])
    print(text.getvalue(), end="")
    return 0


def _verdict(row: dict[str, Any], lowest: float, samples: int) -> str:
    at = f"{plain(row['threshold'])} costs {plain(row['loss'])}"
    if row["excess"] == 0:
        return f"{at}, as little as any threshold can"
    more = f"{row['excess'] / lowest:.1%} more" if lowest else "where the optimum costs nothing"
    above = bold(f"{plain(row['excess'])} above the optimum")
    return f"{at}, {above} ({more}; {plain(row['excess'] / samples)} per sample)"


def demo(options: Namespace) -> int:
    """Play a small real stream."""
    if options.csv:
        from limen.demo import phishing_csv

        print(phishing_csv(), end="")
        return 0
    from limen.demo.__main__ import main

    main()
    return 0
