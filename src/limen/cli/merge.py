# SPDX-License-Identifier: Apache-2.0
"""``limen merge``: one saved model made of many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import limen
from limen.cli.exits import BAD_INPUT, Failure
from limen.cli.output import print_messages, require_distinct, require_writable
from limen.cli.show import loaded
from limen.digits import within
from limen.export import groups_of
from limen.memory.ledger import Ledger
from limen.memory.windows import LastN

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["merge"]


def merge(options: Namespace) -> int:
    """Make one model of the samples of many."""
    require_writable(options.output, options.force)
    require_distinct(options.files)
    models = [loaded(path) for path in options.files]
    for path, model in zip(options.files, models, strict=True):
        if not hasattr(model, "merge") or isinstance(model, LastN):
            raise Failure(
                f"{path} holds a {type(model).__name__}, which cannot be merged: its samples have "
                "an order. Merge models, groups of them, windows over time, or ledgers.",
                BAD_INPUT,
            )
    try:
        merged = limen.merge(models)
    except (TypeError, ValueError, OverflowError) as error:
        raise Failure(str(error), BAD_INPUT) from None
    merged.save(options.output)
    groups = groups_of(merged)
    of_all = merged if groups is None else groups.model(())
    if isinstance(of_all, limen.Evidence):
        answer = f"evidence {of_all.value:.4g}"
    elif of_all.takes_costs:
        answer = "for any aim"
    else:
        best = of_all.optimum
        ends = best.threshold, best.lower, best.upper
        answer = f"threshold {within(*ends, direction=best.direction)}"
    samples = len(merged.model if isinstance(merged, Ledger) else merged)
    print_messages(f"{options.output}: {samples:,} samples, {answer}", quiet=options.quiet)
    return 0
