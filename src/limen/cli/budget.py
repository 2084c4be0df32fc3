# SPDX-License-Identifier: Apache-2.0
"""``limen budget``: the threshold that flags at most so many rows, by scores alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limen.budget import Budget
from limen.cli.aims import columns_of
from limen.cli.exits import USAGE, Failure
from limen.cli.inputs import read
from limen.cli.output import as_json, bold, print_messages
from limen.cli.sentences import skipped_lines
from limen.digits import within

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["budget"]


def budget(options: Namespace) -> int:
    """Find the lowest threshold at which no more rows than allowed are flagged."""
    if (options.max_positives is None) == (options.max_positive_rate is None):
        raise Failure("give --max-positives or --max-positive-rate, one of them.", USAGE)
    samples = read(options.files, options.format, columns_of(options), one_class=True)
    model = Budget(max_positives=options.max_positives, max_positive_rate=options.max_positive_rate)
    model.update_many(samples.scores)
    gap = samples.present(model.gap)
    flagged = int(np.count_nonzero(samples.answers(gap.threshold)))
    facts: dict[str, Any] = {"threshold": gap.threshold, "lower": gap.lower, "upper": gap.upper}
    facts |= {"allowed": model.allowed, "flagged": flagged, "samples": len(samples)}
    if samples.direction == "<=":
        facts["direction"] = samples.direction
    if options.skip_malformed:
        facts["skipped"] = samples.skipped
    text = within(gap.threshold, gap.lower, gap.upper, direction=samples.direction)
    rule = bold(f"flag when score {samples.direction} {text}")
    lines = [
        f"{len(samples):,} scores, of which at most {model.allowed:,} may be flagged",
        f"{rule}: {flagged:,} rows, {flagged / len(samples):.2%} of all",
    ]
    if flagged < model.allowed:
        lines.append("  fewer than allowed, as equal scores are flagged together or not at all")
    print_messages(*lines, *skipped_lines(samples), quiet=options.quiet)
    print(as_json(facts) if options.json else repr(gap.threshold))
    return 0
