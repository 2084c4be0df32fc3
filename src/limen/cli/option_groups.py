# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share.

Nothing here imports NumPy, so that help and completion come at once.
"""

from __future__ import annotations

from typing import Any

from limen.cli.option_values import cost, count, delimiter, level, metric, number, share, threshold
from limen.cli.parsing import Parser, filled, option_name
from limen.names import DEMANDS, METRIC_NAMES, OUTCOMES

__all__ = [
    "aims",
    "columns",
    "confidence",
    "costs",
    "force",
    "group_columns",
    "groups",
    "output",
    "quiet",
    "review",
    "thresholds",
]

FORMATS = ("csv", "ndjson", "parquet", "arrow")


def quiet(command: Parser) -> None:
    """Add the option to be quiet."""
    command.add_argument(
        "-q", "--quiet", action="store_true", help="no messages on standard error but failures"
    )


def columns(command: Parser, files: bool = True, labels: bool = True) -> None:
    """Add what is read, and how: files or standard input, with labels or scores alone."""
    group = command.add_argument_group("input")
    if files:
        group.add_argument(
            "files",
            metavar="FILE",
            nargs="+",
            help="CSV or NDJSON, also packed by gzip, bzip2, xz or zstd; Parquet; Arrow or "
            "Feather; a pattern; or - for standard input",
        )
    given: dict[str, Any] = {"metavar": "NAME"}
    group.add_argument("--score-column", default="score", **given)
    if labels:
        group.add_argument("--label-column", default="label", **given)
        group.add_argument("--weight-column", help="how much each row counts", **given)
        group.add_argument(
            "--positive",
            metavar="VALUE",
            help="the label of the positive class, all others are negative; without it labels are "
            "0 and 1",
        )
    if files:
        group.add_argument(
            "--lower-is-positive",
            action="store_true",
            help="lower scores mean label 1, as with an age, a distance or a p-value: answer 1 "
            "when score <= threshold",
        )
    if files and labels:
        group.add_argument(
            "--prevalence",
            metavar="SHARE",
            type=share,
            help="the share of label 1 among the rows to come, where it differs from that of the "
            "file: rows are weighted to it",
        )
    group.add_argument(
        "--format",
        choices=FORMATS if files else FORMATS[:2],
        help=f"needed where the {'name of a file' if files else 'first line'} does not show it",
    )
    group.add_argument(
        "--delimiter",
        metavar="CHARACTER",
        type=delimiter,
        help="between the fields of a CSV; by default found from its header",
    )
    if files:
        group.add_argument(
            "--decimal-comma", action="store_true", help="numbers are written as 0,5 and not as 0.5"
        )
        group.add_argument(
            "--skip-malformed",
            action="store_true",
            help="leave malformed rows out, and say how many; otherwise they end the command",
        )


def groups(command: Parser, help: str) -> None:
    """Add the options about groups."""
    command.add_argument("--group-column", metavar="NAME", help=help)
    command.add_argument(
        "--at-least",
        metavar="N",
        type=count,
        default=1,
        help="how many samples a group needs for its own threshold; smaller groups use that of "
        "all samples (default 1)",
    )


def group_columns(command: Any, which: str) -> None:
    """Add the columns of groups that lie inside one another."""
    command.add_argument(
        "--group-column",
        metavar="NAME",
        action="append",
        dest="group_columns",
        help=f"the column of groups, {which}; for groups inside groups once for each level, the "
        "largest first",
    )


def costs(command: Parser, unit: bool = True, gains: bool = False) -> None:
    """Add what outcomes cost; with `gains` also right answers, and costs of rows."""
    group = command.add_argument_group("costs")
    given: dict[str, Any] = {"type": cost if gains else number, "metavar": "COST"}
    for name, outcome in OUTCOMES.items():
        if gains or outcome.cost:
            usual = f" (default {outcome.cost})" if outcome.cost else "; a gain is negative"
            group.add_argument(option_name(name), help=f"cost of {outcome.text}{usual}", **given)
    for name in OUTCOMES if gains else ():
        group.add_argument(
            f"{option_name(name)}-column",
            metavar="NAME",
            help="a cost for each row instead, in this column",
        )
    if unit:
        group.add_argument(
            "--unit",
            type=number,
            help="weights are kept in multiples of it, such as 0.01; whole numbers need none",
        )


def review(command: Parser) -> None:
    """Add the options of a review band."""
    group = command.add_argument_group("a review band: no, ask a person, yes")
    group.add_argument(
        "--asking",
        type=cost,
        metavar="COST",
        help="what a question to a person costs; finds the two thresholds that cost least",
    )
    group.add_argument(
        "--max-questions", type=count, metavar="N", help="how many questions may be asked"
    )


def aims(command: Parser, several: bool = False) -> None:
    """Add other aims than cost; `several` metrics where each becomes a column."""
    group = command.add_argument_group(
        "aims other than cost",
        filled(
            "With demands alone, the cut of the best recall is found, or of the best precision "
            "where recall is demanded; with costs, the cheapest cut that meets the demands."
        ),
    )
    names = f"{', '.join(METRIC_NAMES)}, or f2, f0.5 and the like, or net_benefit=0.2"
    if several:
        group.add_argument(
            "--metric",
            type=metric,
            metavar="NAME",
            action="append",
            dest="metrics",
            help=f"a column for it, as often as given: {names}",
        )
    else:
        group.add_argument("--metric", type=metric, metavar="NAME", help=names)
    for name, bound in DEMANDS.items():
        read, metavar = (count, "N") if bound.counts else (share, "SHARE")
        group.add_argument(option_name(name), type=read, metavar=metavar, help=bound.text)


def confidence(command: Any) -> None:
    """Add the level of confidence."""
    command.add_argument(
        "--confidence",
        metavar="LEVEL",
        type=level,
        default=0.95,
        help="of what is said about new rows: 0.8, 0.9, 0.95 (default) or 0.99",
    )


def output(command: Parser, needed: bool) -> None:
    """Add the file to write."""
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=needed,
        help="written completely, or not at all when something fails",
    )
    force(command)


def force(command: Parser) -> None:
    """Add the option to replace a file."""
    command.add_argument("--force", action="store_true", help="replace a file that exists")


def thresholds(command: Parser, **given: Any) -> None:
    """Add thresholds to compare."""
    command.add_argument(
        "-t",
        "--threshold",
        type=threshold,
        action="append",
        dest="thresholds",
        metavar="NUMBER",
        **given,
    )
