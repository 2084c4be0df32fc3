# SPDX-License-Identifier: Apache-2.0
"""The command line of ``limen``: commands, options and their help, with an example each.

Nothing here imports NumPy, so that help and completion come at once. The file is long because it
is a list.
"""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

from limen import __version__
from limen.cli.exits import USAGE
from limen.cli.option_values import (
    cost,
    count,
    delimiter,
    level,
    metric,
    number,
    period,
    share,
    threshold,
)
from limen.cli.serve_options import serve_options
from limen.metric_names import METRIC_NAMES

__all__ = ["parser"]

SHELLS = ("bash", "zsh", "fish")
FORMATS = ("csv", "ndjson", "parquet", "arrow")

_NEGATIVE = re.compile(r"-((\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(e[-+]?\d+)?|inf|infinity|nan)$", re.I)

_ENDINGS = """\
exit codes:
  0  done                          4  a file does not exist
  1  failed, as the message says   5  no cut meets the demands
  2  wrong command or option       130  Ctrl-C
  3  malformed input, with the     141  the reader of the output closed it
     file, line and column

Every option with a value can be set by an environment variable: LIMEN_SCORE_COLUMN=p
stands for --score-column p. An empty variable counts as not set. LIMEN_THRESHOLD may
hold several numbers, separated by spaces.
Data goes to standard output, messages to standard error; NO_COLOR is respected.
"""


class _Parser(argparse.ArgumentParser):
    """Words errors as the rest of limen does, and takes defaults from the environment."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        # argparse takes -4e-05 and -inf for options, and fit prints such thresholds.
        self._negative_number_matcher = _NEGATIVE

    def error(self, message: str) -> Any:
        self.exit(USAGE, f"limen: {message}\nTry: {self.prog} --help\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        kept = {}
        for action in self._actions:
            name = "LIMEN_" + _long(action).upper().replace("-", "_")
            if action.option_strings and action.nargs is None and (typed := os.environ.get(name)):
                kept[action.dest] = self._from_environment(action, name, typed)
                action.default, action.required = None, False
        found, rest = super().parse_known_args(args, namespace)
        for dest, value in kept.items():
            if getattr(found, dest) is None:
                setattr(found, dest, value)
        if rest and self.get_default("command") is not None:
            self._refuse(rest[0])
        return found, rest

    def _from_environment(self, action: argparse.Action, name: str, typed: str) -> Any:
        """Read a variable as its option would be; of one that may be repeated, several values."""
        several = isinstance(action, argparse._AppendAction)
        try:
            texts = (several and typed.split()) or [typed]
            values = [self._get_value(action, text) for text in texts]
            for value in values:
                self._check_value(action, value)
        except argparse.ArgumentError as error:
            self.error(f"{name}: {error.message}")
        return values if several else values[0]

    def _refuse(self, word: str) -> None:
        """Refuse a word that this command does not know."""
        command = self.get_default("command")
        if not word.startswith("-"):
            self.error(f"{command} does not expect the word {word!r}. Name all files in one place.")
        from difflib import get_close_matches

        known = [_long(action) for action in self._actions if action.option_strings]
        near = get_close_matches(word.split("=")[0].lstrip("-"), known, 1)
        hint = f" Did you mean --{near[0]}?" if near else ""
        self.error(f"{command} has no option {word}.{hint}")


def _long(action: argparse.Action) -> str:
    """Name an option without its dashes."""
    return action.option_strings[-1].lstrip("-") if action.option_strings else ""


def _filled(text: str) -> str:
    from textwrap import fill  # argparse loads it too, but only to show help

    return fill(text, 79)


def _command(commands: Any, name: str, description: str, example: str) -> _Parser:
    command: _Parser = commands.add_parser(
        name,
        help=description[0].lower() + description[1:].split(".")[0],
        description=_filled(description),
        epilog="example:\n" + "".join(f"  {line}\n" for line in example.splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.set_defaults(command=name)
    return command


def _quiet(command: _Parser) -> None:
    command.add_argument(
        "-q", "--quiet", action="store_true", help="no messages on standard error but failures"
    )


def _columns(command: _Parser, files: bool = True) -> None:
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
    group.add_argument("--label-column", default="label", **given)
    group.add_argument("--weight-column", help="how much each row counts", **given)
    group.add_argument(
        "--positive",
        metavar="VALUE",
        help="the label that counts as 1, all others as 0; without it labels are 0 and 1",
    )
    if files:
        group.add_argument(
            "--lower-is-positive",
            action="store_true",
            help="a lower score means rather 1, as with an age, a distance or a p-value: answer 1 "
            "when score <= threshold",
        )
    if files:
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


def _groups(command: _Parser, help: str) -> None:
    command.add_argument("--group-column", metavar="NAME", help=help)
    command.add_argument(
        "--at-least",
        metavar="N",
        type=count,
        default=1,
        help="how many samples a group needs for its own threshold; smaller groups use that of "
        "all samples (default 1)",
    )


def _costs(command: _Parser, unit: bool = True, gains: bool = False) -> None:
    group = command.add_argument_group("costs")
    given: dict[str, Any] = {"type": cost if gains else number, "metavar": "COST"}
    group.add_argument("--false-positive", help="cost of answering 1 to a 0 (default 1)", **given)
    group.add_argument("--false-negative", help="cost of answering 0 to a 1 (default 1)", **given)
    if gains:
        group.add_argument(
            "--true-positive", help="cost of answering 1 to a 1; a gain is negative", **given
        )
        group.add_argument("--true-negative", help="cost of answering 0 to a 0", **given)
        for outcome in ("false-positive", "false-negative", "true-positive", "true-negative"):
            group.add_argument(
                f"--{outcome}-column",
                metavar="NAME",
                help="a cost for each row instead, in this column",
            )
    if unit:
        group.add_argument(
            "--unit",
            type=number,
            help="weights are kept in multiples of it, such as 0.01; whole numbers need none",
        )


def _review(command: _Parser) -> None:
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


def _aims(command: _Parser, several: bool = False) -> None:
    group = command.add_argument_group(
        "aims other than cost",
        _filled(
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
    given: dict[str, Any] = {"type": share, "metavar": "SHARE"}
    group.add_argument("--min-precision", **given)
    group.add_argument("--min-recall", **given)
    group.add_argument("--max-false-positive-rate", **given)
    group.add_argument(
        "--max-positive-rate", help="share of all samples that are answered 1", **given
    )
    group.add_argument(
        "--max-positives",
        type=count,
        metavar="N",
        help="how many samples may be answered 1: the 500 most suspicious",
    )


def _confidence(command: Any) -> None:
    command.add_argument(
        "--confidence",
        metavar="LEVEL",
        type=level,
        default=0.95,
        help="of what is said about new rows: 0.8, 0.9, 0.95 (default) or 0.99",
    )


def _output(command: _Parser, needed: bool) -> None:
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=needed,
        help="written completely, or not at all when something fails",
    )
    _force(command)


def _force(command: _Parser) -> None:
    command.add_argument("--force", action="store_true", help="replace a file that exists")


def _thresholds(command: _Parser, **given: Any) -> None:
    command.add_argument(
        "-t",
        "--threshold",
        type=threshold,
        action="append",
        dest="thresholds",
        metavar="NUMBER",
        **given,
    )


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command line.

    >>> parser().parse_args(["fit", "scores.csv", "--false-negative", "5"]).false_negative
    5
    """
    limen = _Parser(
        prog="limen",
        description="Exact decision thresholds for binary classifiers.",
        epilog="example:\n  limen fit scores.csv --false-negative 5\n\n" + _ENDINGS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    limen.add_argument("--version", action="version", version=f"limen {__version__}")
    commands = limen.add_subparsers(metavar="COMMAND", title="commands", dest="command")
    _fit(commands)
    _curve(commands)
    _compare(commands)
    _watch(commands)
    _report(commands)
    _merge(commands)
    _show(commands)
    _serve(commands)
    _demo(commands)
    _completion(commands)
    return limen


def _fit(commands: Any) -> None:
    command = _command(
        commands,
        "fit",
        "Find the best threshold for scores and labels in files. The exact optimum is printed on "
        "standard output: answer 1 when score >= threshold. Messages show beside it the threshold "
        "recommended for new rows, and how sure that is.",
        "limen fit scores.csv --false-negative 5\n"
        "limen fit may.csv --check june.csv --false-negative 5 --current 0.5\n"
        "limen fit day.csv --max-positives 500\n"
        "limen fit day.csv --false-negative 50 --false-positive 5 --asking 1\n"
        "limen fit people.csv --score-column age --lower-is-positive\n"
        "limen fit cases.csv --prevalence 0.02     # half of them are cases, of all people 2 %\n"
        "limen fit payments.csv --false-negative-column amount --false-positive 10 --unit 0.01\n"
        "limen fit 'day-*.parquet' --score-column p --label-column paid --min-precision 0.9 --json",
    )
    _columns(command)
    _groups(command, "a threshold for each group in this column, with counts")
    command.add_argument(
        "--save",
        metavar="FILE",
        help="keep the samples as a model for limen show, limen merge and limen.load()",
    )
    _force(command)
    _costs(command, gains=True)
    _aims(command)
    _review(command)
    new_rows = command.add_argument_group("new rows")
    new_rows.add_argument(
        "--recommended",
        action="store_true",
        help="print the threshold recommended for new rows, not the exact optimum; --json and "
        "--group-column print both",
    )
    _confidence(new_rows)
    new_rows.add_argument(
        "--current",
        metavar="NUMBER",
        type=threshold,
        help="the threshold in use; the answer says whether to keep it",
    )
    new_rows.add_argument(
        "--check",
        metavar="FILE",
        help="other rows with the same columns: what the thresholds cost there",
    )
    command.add_argument(
        "--within",
        metavar="SHARE",
        type=share,
        help="also all thresholds that are at most this share worse than the best, such as 0.01",
    )
    command.add_argument("--json", action="store_true", help="one JSON object with all results")
    _quiet(command)


def _curve(commands: Any) -> None:
    command = _command(
        commands,
        "curve",
        "Write the loss of every cut as CSV. One line for each distinct score, and one more.",
        "limen curve scores.csv --false-negative 5 > curve.csv\n"
        "limen curve scores.csv --metric f1 --metric mcc --min-recall 0.9 > curve.csv",
    )
    _columns(command)
    _costs(command, gains=True)
    _aims(command, several=True)
    _output(command, needed=False)
    _quiet(command)


def _compare(commands: Any) -> None:
    command = _command(
        commands,
        "compare",
        "Compare the cost of thresholds with the optimum. One line of CSV for each, the optimum "
        "first. Messages say whether new rows may be expected to show the same.",
        "limen compare scores.csv --threshold 0.5 --false-negative 5\n"
        "limen compare june.csv -t 0.5 -t 0.42     # what does 0.42 save against 0.5?\n"
        "limen compare scores.csv -t 0.5 --metric f1 --min-precision 0.9",
    )
    _columns(command)
    _thresholds(
        command,
        required=True,
        help="may be given several times; the others are compared with the first",
    )
    _costs(command, gains=True)
    _aims(command)
    _confidence(command)
    command.add_argument("--json", action="store_true", help="one JSON object instead of CSV")
    _quiet(command)


def _watch(commands: Any) -> None:
    command = _command(
        commands,
        "watch",
        "Follow a stream of CSV or NDJSON on standard input. One line of JSON is written for each "
        "change of the threshold. Score and label come in one row, or in rows of their own, "
        "joined by an id.",
        "tail -F scored.csv | limen watch --last-n 100000 --false-negative 5\n"
        "consume events | limen watch --id-column order --time-column at --last-period 90d \\\n"
        "    --maturity 30d --state fraud.limen",
    )
    _columns(command, files=False)
    given: dict[str, Any] = {"metavar": "NAME"}
    command.add_argument("--id-column", help="joins a score with its later labels", **given)
    command.add_argument("--time-column", help="a number, or a time in ISO 8601", **given)
    _costs(command)
    memory = command.add_argument_group(
        "memory",
        _filled(
            "A period is a number where times are numbers, or without times a number of rows; "
            "where times are dates it has a unit, as 90s, 12h or 30d."
        ),
    )
    memory.add_argument("--last-n", type=count, metavar="N", help="only the last N samples count")
    lasting: dict[str, Any] = {"type": period, "metavar": "PERIOD"}
    memory.add_argument("--last-period", help="only samples of the last PERIOD count", **lasting)
    memory.add_argument(
        "--half-life", help="a sample counts half after PERIOD, or after so many samples", **lasting
    )
    memory.add_argument("--time-to-live", help="how long a score waits for its label", **lasting)
    memory.add_argument("--maturity", help="how old a label 0 must be to count", **lasting)
    memory.add_argument("--correctable", help="how long labels may be corrected", **lasting)
    output = command.add_argument_group("when to write a line, instead of at each change")
    output.add_argument("--every", type=count, metavar="N", help="after every N rows")
    output.add_argument("--each-period", help="with the first row of each PERIOD", **lasting)
    sure = command.add_argument_group("how sure")
    sure.add_argument(
        "--recommended",
        action="store_true",
        help="write the threshold recommended for new rows and its interval too",
    )
    _confidence(sure)
    sure.add_argument(
        "--current",
        type=threshold,
        metavar="T",
        help="the threshold in use: write whether to keep it and, with --id-column, the case for "
        "a change",
    )
    sure.add_argument(
        "--age",
        help="at which age samples judge a change, known labels or not; else --maturity",
        **lasting,
    )
    state = command.add_argument_group("state")
    state.add_argument(
        "--state",
        metavar="FILE",
        help="keep the model here, and new rows in FILE.journal; a restart continues from them",
    )
    state.add_argument(
        "--from-start",
        action="store_true",
        help="the input starts from its first row: skip the rows that the state already has",
    )
    state.add_argument("--skip-malformed", action="store_true", help="report bad rows and continue")
    _quiet(command)


def _merge(commands: Any) -> None:
    command = _command(
        commands,
        "merge",
        "Merge saved models into one. No sample may be in two of them.",
        "limen merge monday.limen tuesday.limen -o week.limen",
    )
    command.add_argument("files", metavar="FILE", nargs="+", help="saved by limen")
    _output(command, needed=True)
    _quiet(command)


def _show(commands: Any) -> None:
    command = _command(
        commands,
        "show",
        "Show what saved models hold. One line of JSON for each. A model that holds samples for "
        "any aim needs costs, a metric or demands to have a threshold.",
        "limen show fraud.limen\nlimen show any.limen --metric f1",
    )
    command.add_argument("files", metavar="FILE", nargs="+", help="saved by limen")
    _costs(command, unit=False)
    _aims(command)
    _quiet(command)


def _report(commands: Any) -> None:
    command = _command(
        commands,
        "report",
        "Write a page about the best threshold. One HTML file with charts and tables, for screens, "
        "phones and paper; it needs no network.",
        "limen report scores.csv -o report.html --false-negative 5 --group-column country\n"
        "limen report scores.csv -o report.html --metric f1 --min-precision 0.8",
    )
    _columns(command)
    _groups(command, "also a table of the groups in this column")
    _costs(command, gains=True)
    _aims(command)
    _review(command)
    _thresholds(
        command,
        help="one to compare with, such as the one in use; by default 0.5 if all scores lie "
        "between 0 and 1",
    )
    _output(command, needed=True)
    _quiet(command)


def _serve(commands: Any) -> None:
    serve_options(
        _command(
            commands,
            "serve",
            "Run the service. Scores come in by HTTP and are answered, labels come later, and "
            "nothing that was acknowledged is lost.",
            "limen serve point add fraud --false-negative 5\nlimen serve",
        )
    )


def _demo(commands: Any) -> None:
    command = _command(
        commands,
        "demo",
        "Show limen at work on a small real stream. It keeps the best threshold of a phishing "
        "detector while sites come in.",
        "limen demo",
    )
    command.add_argument(
        "--csv",
        action="store_true",
        help="print its scores and labels as CSV instead, to try the other commands on",
    )


def _completion(commands: Any) -> None:
    command = _command(
        commands,
        "completion",
        "Write the script that completes commands and options in a shell.",
        "limen completion bash > ~/.local/share/bash-completion/completions/limen\n"
        "limen completion zsh > ~/.zfunc/_limen\n"
        "limen completion fish > ~/.config/fish/completions/limen.fish",
    )
    command.add_argument("shell", choices=SHELLS)
