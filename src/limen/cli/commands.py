# SPDX-License-Identifier: Apache-2.0
"""The commands ``curve``, ``compare`` and ``demo``."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING, Any

from limen.batch import loss_curve
from limen.cli.aims import aim_of, columns_of
from limen.cli.checking import Candidate, checked
from limen.cli.exits import BAD_INPUT, Failure
from limen.cli.findings import best_of, confusion_at, losses_of, worth_at
from limen.cli.inputs import read
from limen.cli.new_rows import advice_on, require_confidence
from limen.cli.output import as_json, print_messages, require_writable, written
from limen.cli.sentences import as_typed, comparisons
from limen.falling import LowerIsPositive
from limen.online import OnlineCut

if TYPE_CHECKING:
    from argparse import Namespace

    from limen.cli.aims import Aim
    from limen.cli.samples import Samples
    from limen.optimum import LossCurve

__all__ = ["compare", "curve", "demo"]

_LINES = 65536  # written at a time
_ABOUT_NEW_ROWS = ("recommended", "interval", "confidence", "regret")


def curve(options: Namespace) -> int:
    """Write the loss of every cut as CSV."""
    aim = aim_of(options)
    require_writable(options.output, options.force)
    samples = read(options.files, options.format, columns_of(options))
    try:
        losses = _loss_curve(samples, aim, options.unit)
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


def _loss_curve(samples: Samples, aim: Aim, unit: Any) -> LossCurve:
    if not aim.prices:
        given: Any = {"weights": samples.weights, "direction": samples.direction, **aim.costs}
        return loss_curve(samples.scores, samples.labels, unit=unit, **given)
    cut: Any = OnlineCut(unit=unit)
    if samples.direction == "<=":
        cut = LowerIsPositive(cut)
    cut.update_many(samples.scores, *losses_of(samples, aim))
    curve: LossCurve = cut.curve()
    return curve


def compare(options: Namespace) -> int:
    """Compare the cost of thresholds with the optimum, and with the first of them."""
    aim = aim_of(options)
    require_confidence(options.confidence)
    samples = read(options.files, options.format, columns_of(options))
    best = best_of(samples, aim, options.unit)
    lowest = worth_at(samples, best.threshold, aim, options.unit)
    rows: list[dict[str, Any]] = []
    for threshold in (best.threshold, *options.thresholds):
        confusion = confusion_at(samples, threshold, options.unit)
        loss = worth_at(samples, threshold, aim, options.unit)
        rows.append(
            {"threshold": threshold, "loss": loss, "excess": loss - lowest, **confusion._asdict()}
        )
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


def demo(options: Namespace) -> int:
    """Play a small real stream."""
    if options.csv:
        from limen.demo import phishing_csv

        print(phishing_csv(), end="")
        return 0
    from limen.demo.__main__ import main

    main()
    return 0
