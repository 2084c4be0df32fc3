# SPDX-License-Identifier: Apache-2.0
"""The command line of ``limen``: commands, options and their help, with an example each.

Nothing here imports NumPy, so that help and completion come at once.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from limen import __version__
from limen.cli import option_groups as add
from limen.cli.option_values import count, period, share, threshold
from limen.cli.parsing import Alone, Parser
from limen.cli.parsing import command as new_command

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["options_of", "parser"]

SHELLS = ("bash", "zsh", "fish")
LANGUAGES = ("sql", "json", "python")

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


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command line.

    >>> parser().parse_args(["fit", "scores.csv", "--false-negative", "5"]).false_negative
    5
    """
    limen = Parser(
        prog="limen",
        description="Exact decision thresholds for binary classifiers.",
        epilog="example:\n  limen fit scores.csv --false-negative 5\n\n" + _ENDINGS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    limen.add_argument("--version", action="version", version=f"limen {__version__}")
    commands = limen.add_subparsers(metavar="COMMAND", title="commands", dest="command")
    for add_command in _COMMANDS.values():
        add_command(commands)
    return limen


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the words after ``limen``; the options of other commands are not even made.

    >>> options_of(["fit", "scores.csv", "--false-negative", "5"]).false_negative
    5
    """
    add_command = _COMMANDS.get(arguments[0]) if arguments else None
    if add_command is None:
        limen = parser()
        options = limen.parse_args(arguments)
        if options.command is None:
            limen.print_help()
        return options
    alone = Alone("limen")
    add_command(alone)
    return alone.made.parse_args(arguments[1:])


def _fit(commands: Any) -> None:
    command = new_command(
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
    add.columns(command)
    add.groups(command, "a threshold for each group in this column, with counts")
    command.add_argument(
        "--save",
        metavar="FILE",
        help="keep the samples as a model for limen show, limen merge and limen.load()",
    )
    add.force(command)
    add.costs(command, gains=True)
    add.aims(command)
    add.review(command)
    new_rows = command.add_argument_group("new rows")
    new_rows.add_argument(
        "--recommended",
        action="store_true",
        help="print the threshold recommended for new rows, not the exact optimum; --json and "
        "--group-column print both",
    )
    add.confidence(new_rows)
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
    add.quiet(command)


def _curve(commands: Any) -> None:
    command = new_command(
        commands,
        "curve",
        "Write the loss of every cut as CSV. One line for each distinct score, and one more.",
        "limen curve scores.csv --false-negative 5 > curve.csv\n"
        "limen curve scores.csv --metric f1 --metric mcc --min-recall 0.9 > curve.csv",
    )
    add.columns(command)
    add.costs(command, gains=True)
    add.aims(command, several=True)
    add.output(command, needed=False)
    add.quiet(command)


def _compare(commands: Any) -> None:
    command = new_command(
        commands,
        "compare",
        "Compare the cost of thresholds with the optimum. One line of CSV for each, the optimum "
        "first. Messages say whether new rows may be expected to show the same.",
        "limen compare scores.csv --threshold 0.5 --false-negative 5\n"
        "limen compare june.csv -t 0.5 -t 0.42     # what does 0.42 save against 0.5?\n"
        "limen compare scores.csv -t 0.5 --metric f1 --min-precision 0.9",
    )
    add.columns(command)
    add.thresholds(
        command,
        required=True,
        help="may be given several times; the others are compared with the first",
    )
    add.costs(command, gains=True)
    add.aims(command)
    add.confidence(command)
    command.add_argument("--json", action="store_true", help="one JSON object instead of CSV")
    add.quiet(command)


def _budget(commands: Any) -> None:
    command = new_command(
        commands,
        "budget",
        "Find the lowest threshold that flags at most so many rows. Scores alone are needed, no "
        "labels. With labels, limen fit --max-positives finds the best cut within the budget.",
        "limen budget today.csv --max-positives 500\n"
        "limen budget 'day-*.parquet' --score-column p --max-positive-rate 0.01 --json",
    )
    add.columns(command, labels=False)
    command.add_argument(
        "--max-positives", type=count, metavar="N", help="how many rows may be flagged"
    )
    command.add_argument(
        "--max-positive-rate", type=share, metavar="SHARE", help="which share of them, instead"
    )
    command.add_argument("--json", action="store_true", help="one JSON object with all results")
    add.quiet(command)


def _watch(commands: Any) -> None:
    command = new_command(
        commands,
        "watch",
        "Follow a stream of CSV or NDJSON on standard input. One line of JSON is written for each "
        "change of the threshold, and one for each alert. Score and label come in one row, or in "
        "rows of their own, joined by an id.",
        "tail -F scored.csv | limen watch --false-negative 5 --every 1000\n"
        "consume events | limen watch --id-column order --time-column at --current 0.62 \\\n"
        "    --definition fraud.toml --state fraud",
    )
    add.columns(command, files=False)
    given: dict[str, Any] = {"metavar": "NAME"}
    command.add_argument("--id-column", help="joins a score with its later labels", **given)
    command.add_argument("--time-column", help="a number, or a time in ISO 8601", **given)
    command.add_argument(
        "--group-column", help="a threshold for each group in this column, too", **given
    )
    add.costs(command, unit=False)
    point = command.add_argument_group("more settings")
    point.add_argument(
        "--definition",
        metavar="FILE",
        help="which samples count, gains, metrics, alerts and all else, as for limen serve point "
        "add: TOML or JSON",
    )
    output = command.add_argument_group("when to write a line, instead of at each change")
    output.add_argument("--every", type=count, metavar="N", help="after every N rows")
    output.add_argument(
        "--each-period",
        type=period,
        metavar="PERIOD",
        help="with the first row of each PERIOD: a number where times are numbers, and with a "
        "unit, as 90s, 12h or 30d, where they are dates",
    )
    sure = command.add_argument_group("how sure")
    sure.add_argument(
        "--recommended",
        action="store_true",
        help="write the threshold recommended for new rows and its interval too",
    )
    sure.add_argument(
        "--current",
        type=threshold,
        metavar="T",
        help="the threshold in use: write whether to keep it and, with --id-column, the case for "
        "a change",
    )
    state = command.add_argument_group("state")
    state.add_argument(
        "--state",
        metavar="FOLDER",
        help="keep the rows and the model here, as limen serve does; a restart continues from them",
    )
    state.add_argument(
        "--from-start",
        action="store_true",
        help="the input starts from its first row: skip the rows that the state already has",
    )
    state.add_argument("--skip-malformed", action="store_true", help="report bad rows and continue")
    add.quiet(command)


def _merge(commands: Any) -> None:
    command = new_command(
        commands,
        "merge",
        "Merge saved models into one. No sample may be in two of them.",
        "limen merge monday.limen tuesday.limen -o week.limen",
    )
    command.add_argument("files", metavar="FILE", nargs="+", help="saved by limen")
    add.output(command, needed=True)
    add.quiet(command)


def _show(commands: Any) -> None:
    command = new_command(
        commands,
        "show",
        "Show what saved models hold. One line of JSON for each. A model that holds samples for "
        "any aim needs costs, a metric or demands to have a threshold. With --as, write the "
        "rule of one model for others to run.",
        "limen show fraud.limen\n"
        "limen show any.limen --metric f1\n"
        "limen show fraud.limen --as sql --score-column p --group-column country\n"
        "limen show fraud.limen --as python > fraud_rule.py",
    )
    command.add_argument("files", metavar="FILE", nargs="+", help="saved by limen")
    rule = command.add_argument_group("the rule, for others to run")
    rule.add_argument(
        "--as",
        choices=LANGUAGES,
        dest="language",
        help="write it as a CASE expression of SQL, as JSON, or as Python that needs no limen",
    )
    rule.add_argument("--score-column", metavar="NAME", help="in SQL; score if not given")
    add.group_columns(rule, "in SQL; group if not given")
    add.costs(command, unit=False)
    add.aims(command)
    add.quiet(command)


def _apply(commands: Any) -> None:
    command = new_command(
        commands,
        "apply",
        "Answer rows by a threshold or a saved model. Each row is written as it was read, with one "
        "more column: 1 where it is predicted positive, else 0. CSV stays CSV and NDJSON stays "
        "NDJSON; Parquet and Arrow become CSV.",
        "limen apply 0.3286 scores.csv > answers.csv\n"
        "limen apply fraud.limen today.csv.gz --group-column country -o answers.csv\n"
        "limen apply any.limen 'day-*.parquet' --score-column p --false-negative 5",
    )
    command.add_argument("rule", metavar="MODEL", help="a threshold, or a file saved by limen")
    add.columns(command, labels=False)
    add.group_columns(command, "of a model with groups")
    command.add_argument(
        "--answer-column", metavar="NAME", default="answer", help="of the answers (default answer)"
    )
    add.costs(command, unit=False)
    add.aims(command)
    add.output(command, needed=False)
    add.quiet(command)


def _report(commands: Any) -> None:
    command = new_command(
        commands,
        "report",
        "Write a page about the best threshold. One HTML file with charts and tables, for screens, "
        "phones and paper; it needs no network.",
        "limen report scores.csv -o report.html --false-negative 5 --group-column country\n"
        "limen report scores.csv -o report.html --metric f1 --min-precision 0.8",
    )
    add.columns(command)
    add.groups(command, "also a table of the groups in this column")
    add.costs(command, gains=True)
    add.aims(command)
    add.review(command)
    add.thresholds(
        command,
        help="one to compare with, such as the one in use; by default 0.5 if all scores lie "
        "between 0 and 1",
    )
    add.output(command, needed=True)
    add.quiet(command)


def _serve(commands: Any) -> None:
    from limen.cli.serve_options import serve_options

    serve_options(
        new_command(
            commands,
            "serve",
            "Run the service. Scores come in by HTTP and are answered, labels come later, and "
            "nothing that was acknowledged is lost.",
            "limen serve point add fraud --false-negative 5\nlimen serve",
        )
    )


def _demo(commands: Any) -> None:
    command = new_command(
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
    command = new_command(
        commands,
        "completion",
        "Write the script that completes commands and options in a shell.",
        "limen completion bash > ~/.local/share/bash-completion/completions/limen\n"
        "limen completion zsh > ~/.zfunc/_limen\n"
        "limen completion fish > ~/.config/fish/completions/limen.fish",
    )
    command.add_argument("shell", choices=SHELLS)


_COMMANDS = {
    "fit": _fit,
    "curve": _curve,
    "compare": _compare,
    "budget": _budget,
    "watch": _watch,
    "report": _report,
    "merge": _merge,
    "show": _show,
    "apply": _apply,
    "serve": _serve,
    "demo": _demo,
    "completion": _completion,
}
