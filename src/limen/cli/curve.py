# SPDX-License-Identifier: Apache-2.0
"""``limen curve``: the loss of every cut of files, or its value by metrics."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.aim import Aim
from limen.best_cut import Cuts, met_at
from limen.calibrator import OnlineCalibrator
from limen.cli.aims import aim_of, columns_of
from limen.cli.inputs import read
from limen.cli.output import print_messages, require_writable, written
from limen.cli.progress import counting
from limen.cli.refusals import failing
from limen.cli.sentences import skipped_lines
from limen.metrics import from_text
from limen.reporting.findings import best_of, loss_curve_of
from limen.reporting.samples import aim_on

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from limen.samples import Samples

__all__ = ["curve"]

_LINES = 65536  # written at a time


def curve(options: Namespace) -> int:
    """Write the loss of every cut as CSV."""
    aim = aim_of(options)
    require_writable(options.output, options.force)
    samples = read(options.files, options.format, columns_of(options))
    print_messages(*skipped_lines(samples), quiet=options.quiet)
    names = list(dict.fromkeys(options.metrics or ()))
    with failing():
        aim = aim_on(samples, aim, options.unit)
        columns = _columns(samples, aim, names)
    length = len(columns["threshold"])
    with written(options.output) as file, _progress(options.output) as tick:
        file.write(",".join(columns) + "\n")
        for start in range(0, length, _LINES):
            tick(start)
            parts = [column[start : start + _LINES].tolist() for column in columns.values()]
            lines = (",".join(map(repr, row)) + "\n" for row in zip(*parts, strict=True))
            file.write("".join(lines))
    if not options.quiet:
        with failing():
            if names:
                aim = Aim.of(metric=from_text(names[0]), unit=aim.unit, **aim.demands)
            best = best_of(samples, aim).threshold_text
        which = "the cheapest" if aim.by_cost else f"the best by {aim.name}"
        print_messages(f"{length:,} cuts of {len(samples):,} samples; {which} at {best}")
    return 0


def _progress(output: str | None) -> AbstractContextManager[Callable[[int], None]]:
    """Count the rows written, unless they go to the same terminal."""
    if output in (None, "-") and sys.stdout.isatty():
        return nullcontext(lambda rows: None)
    return counting("standard output" if output in (None, "-") else str(output))


def _columns(samples: Samples, aim: Aim, names: list[str]) -> dict[str, NDArray[Any]]:
    """Return thresholds, losses unless metrics alone are asked for, and one column per metric.

    Under demands there is one more, of 1 where a cut meets them all.
    """
    columns: dict[str, NDArray[Any]] = {}
    if not names:
        losses = loss_curve_of(samples, aim)
        columns = {"threshold": losses.thresholds, "loss": losses.losses}
    if not names and not aim.demands:
        return columns
    calibrator, falling = OnlineCalibrator(unit=aim.unit), samples.direction == "<="
    calibrator.update_many(*samples.columns)
    cuts, step = Cuts(*calibrator._cuts()), -1 if falling else 1
    weights = [weight[::step] for weight in cuts.in_numbers(slice(None))]
    if names:
        columns["threshold"] = 0.0 - cuts.thresholds[::-1] if falling else cuts.thresholds
    columns |= {name: from_text(name)(*weights) for name in names}
    if aim.demands:
        met = np.logical_and.reduce(met_at(cuts, aim.limits))[::step]
        columns["meets"] = met.astype(np.int64)
    return columns
