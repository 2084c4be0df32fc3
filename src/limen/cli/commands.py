# SPDX-License-Identifier: Apache-2.0
"""The commands that read files of samples and tell about their cuts."""

from __future__ import annotations

import csv
import io
import math
import shlex
import sys
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limen import metrics
from limen.batch import loss_curve, optimal_threshold
from limen.calibrator import OnlineCalibrator
from limen.cli.exits import BAD_INPUT, INFEASIBLE, USAGE, Failure
from limen.cli.inputs import read, read_narrowed
from limen.cli.output import Told, as_json, bold, require_writable, say, written
from limen.cli.rows import Columns
from limen.cli.samples import Samples
from limen.digits import gap, plain, within
from limen.errors import Infeasible
from limen.groups import Grouped
from limen.metrics import Confusion, Metric, cost, fbeta
from limen.online import OnlineThreshold
from limen.units import exact_costs

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

__all__ = ["compare", "curve", "demo", "fit"]

_DEMANDS = ("min_precision", "min_recall", "max_false_positive_rate", "max_positive_rate")
_LINES = 65536
_LOOKED_AT = 2**17  # rows, to see which way the scores run
_CLEAR = 2.5  # standard deviations


class _Group(NamedTuple):
    told: Told
    own: bool  # or is it the threshold of all samples


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
    costs = {name: 1 if value is None else value for name, value in given.items()}
    try:
        exact_costs(**costs)
    except OverflowError:
        shown = " and ".join(_option(name, value) for name, value in costs.items())
        raise Failure(
            f"{shown} are too far apart. Choose costs with fewer digits.", USAGE
        ) from None
    return costs


def _option(name: str, value: Any) -> str:
    """Write an option as it was typed, or could have been."""
    if isinstance(value, Fraction) and Fraction(repr(float(value))) == value:
        value = float(value)
    return f"--{name.replace('_', '-')} {value}"


def fit(options: Namespace) -> int:
    """Find the best threshold of the samples in files."""
    aim, demands = aim_of(options)
    require_writable(options.save, options.force)
    groups: dict[str, _Group] = {}
    found = _of_too_many(options) if aim is None and options.save is None else None
    if found is None:
        samples = read(options.files, options.format, columns_of(options))
        told = best_of(samples, options, aim, demands)
        groups = groups_of(samples, told, options, aim, demands)
        if options.save is not None:
            _model_of(samples, options, aim).save(options.save)
    else:
        samples, told = found
    say(*_summary(told, options, aim), quiet=options.quiet)
    say(*_remarks(samples, groups, options, aim), quiet=options.quiet)
    if options.json:
        facts = {**asked(options, aim, demands), **told.facts()}
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
        print(repr(told.threshold))
    return 0


def _of_too_many(options: Namespace) -> tuple[Samples, Told] | None:
    """Tell about the samples of files that memory does not hold; None where it does."""
    few = read_narrowed(options.files, options.format, columns_of(options), costs_of(options))
    if few is None:
        return None
    told = best_of(few, options, None, {})
    rows: Any = few.weights  # that each of the few stands for
    return few, replace(told, samples=int(rows.sum()), positives=int(few.labels @ rows))


def groups_of(
    samples: Samples,
    told: Told,
    options: Namespace,
    aim: Metric | str | None,
    demands: dict[str, Any],
) -> dict[str, _Group]:
    """Find the best cut of each group; for one that is too small, that of all samples answers."""
    groups = {}
    for name, members in samples.by_group():
        if len(members) >= options.at_least:
            groups[name] = _Group(best_of(members, options, aim, demands, name), own=True)
            continue
        right = confusion_at(members, told.threshold, options.unit)
        worth = cost(**costs_of(options)) if aim is None else _callable(aim)
        aims = {"loss" if aim is None else "value": worth(*right)}
        counts = {"samples": len(members), "positives": members.positives}
        groups[name] = _Group(replace(told, confusion=right, **aims, **counts), own=False)
    return groups


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
    return name if name == "f1" or not name[1].isdigit() else fbeta(Fraction(name[1:]))


def _callable(aim: Metric | str) -> Metric:
    metric: Metric = getattr(metrics, aim) if isinstance(aim, str) else aim
    return metric


def best_of(
    samples: Samples,
    options: Namespace,
    aim: Metric | str | None,
    demands: dict[str, Any],
    group: str | None = None,
) -> Told:
    """Find the best cut by the aim, and tell all about it."""
    counts = len(samples), samples.positives
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
        raise unmet(infeasible, "" if group is None else f"group {group}: ") from None
    except (ValueError, OverflowError) as error:
        raise Failure(str(error), BAD_INPUT) from None
    ends = found.threshold, found.lower, found.upper
    return Told(*ends, None, found.value, found.confusion, *counts)


def unmet(infeasible: Infeasible, where: str) -> Failure:
    """Tell what no cut meets, and the nearest one."""
    near = infeasible.nearest
    told = str(infeasible).split("; ask for less")[0]
    shown = within(near.threshold, near.lower, near.upper)
    return Failure(f"{where}{told.replace(repr(near.threshold), shown)}. Ask for less.", INFEASIBLE)


def _model_of(samples: Samples, options: Namespace, aim: Metric | str | None) -> Any:
    """Hold all samples, for these costs where costs are the aim, else for all; also by group."""
    model: Any = (
        OnlineThreshold(**costs_of(options), unit=options.unit)
        if aim is None
        else OnlineCalibrator(unit=options.unit)
    )
    columns = samples.scores, samples.labels, samples.weights
    if samples.codes is None:
        model.update_many(*columns)
        return model
    grouped = Grouped(model, at_least=options.at_least)
    grouped.update_many([samples.names[code] for code in samples.codes.tolist()], *columns)
    return grouped


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
    positives = samples.positives
    return Confusion(*map(float, (tp, fp, positives - tp, len(samples) - positives - fp)))


def asked(options: Namespace, aim: Metric | str | None, demands: dict[str, Any]) -> dict[str, Any]:
    """Tell what was asked for, so that the answer can be read alone."""
    told: dict[str, Any] = {}
    if aim is None or (isinstance(aim, Metric) and aim.lowest):
        told |= {name: float(value) for name, value in costs_of(options).items()}
    else:
        told["metric"] = options.metric or aim
    return told | {name: float(bound) for name, bound in demands.items()}


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
    lower, shown, upper = gap(told.lower, told.threshold, told.upper)
    return (
        f"{bold(f'answer 1 when score >= {shown}')}: any threshold above {lower} and up to {upper} "
        "answers alike"
    )


def _remarks(
    samples: Samples, groups: dict[str, _Group], options: Namespace, aim: Metric | str | None
) -> Iterator[str]:
    """Tell what the answer alone would hide."""
    if (remark := upside_down(samples)) is not None:
        yield f"limen: {remark}"
    for name, (part, own) in groups.items():
        if own and part.positives in (0, part.samples):
            yield (
                f"limen: every label of group {name} counts as {int(part.positives > 0)}; its "
                "threshold says no more than that."
            )
    small = sum(not own for _, own in groups.values())
    if small:
        yield (
            f"limen: {small:,} of {len(groups):,} groups hold fewer than {options.at_least:,} "
            "samples; the threshold of all samples answers for them."
        )
    if options.save is not None and aim is not None:
        given = [
            _option(name, value)
            for name in ("metric", "false_positive", "false_negative", *_DEMANDS)
            if (value := getattr(options, name)) is not None
        ]
        yield (
            f"limen: {options.save} holds the samples, for any aim. Show them by this one with: "
            f"limen show {shlex.quote(options.save)} {' '.join(given)}"
        )


def upside_down(samples: Samples) -> str | None:
    """Tell that labels 1 have the lower scores, where that is clear; None where it is not.

    Looks at some rows where there are many. O(n log n) of those.
    """
    rows = slice(None, None, max(1, len(samples) // _LOOKED_AT))
    scores, ones = samples.scores[rows], samples.labels[rows] == 1
    weights = np.ones(len(scores)) if samples.weights is None else samples.weights[rows]
    positives, negatives = int(np.count_nonzero(ones)), int(np.count_nonzero(~ones))
    if not weights[ones].sum() or not weights[~ones].sum():
        return None
    order = np.argsort(scores[~ones])
    low = scores[~ones][order]
    below = np.concatenate([[0.0], np.cumsum(weights[~ones][order], dtype=np.float64)])
    beaten = sum(below[np.searchsorted(low, scores[ones], side)] for side in ("left", "right")) / 2
    higher = float(np.average(beaten, weights=weights[ones]) / below[-1])
    spread = math.sqrt((positives + negatives + 1) / (12 * positives * negatives))
    if higher >= 0.5 - _CLEAR * spread:
        return None
    return (
        "the scores seem to run the other way: of two samples with different labels, the label 1 "
        f"has the higher score in only {higher:.1%} of all pairs. If a low score means 1, turn "
        "them round (such as 1 - score); if the other label should count as 1, name it with "
        "--positive."
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
        f"{best_of(samples, options, None, {}).shown()}",
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
    at = f"{typed(row['threshold'])} costs {plain(row['loss'])}"
    if row["excess"] == 0:
        return f"{at}, as little as any threshold can"
    more = f"{row['excess'] / lowest:.1%} more" if lowest else "where the optimum costs nothing"
    above = bold(f"{plain(row['excess'])} above the optimum")
    return f"{at}, {above} ({more}; {plain(row['excess'] / samples)} per sample)"


def typed(threshold: float) -> str:
    """Write a threshold that somebody gave, in all its digits.

    >>> typed(0.5), typed(3.0), typed(float("nan"))
    ('0.5', '3', 'nan (which no score reaches)')
    """
    if math.isnan(threshold):
        return "nan (which no score reaches)"
    return repr(threshold).removesuffix(".0")


def demo(options: Namespace) -> int:
    """Play a small real stream."""
    if options.csv:
        from limen.demo import phishing_csv

        print(phishing_csv(), end="")
        return 0
    from limen.demo.__main__ import main

    main()
    return 0
