# SPDX-License-Identifier: Apache-2.0
"""What may be written after ``limen``: commands, options and their help, with an example each.

Nothing here imports NumPy, so that help and completion come at once.
"""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

from limen import __version__
from limen.cli.exits import USAGE

__all__ = ["METRICS", "SHELLS", "parser", "period_text"]

METRICS = (
    *("accuracy", "balanced_accuracy", "f1", "jaccard", "mcc", "precision", "recall"),
    *("specificity", "youden"),
)
SHELLS = ("bash", "zsh", "fish")
FORMATS = ("csv", "ndjson", "parquet")

_LARGEST = 300  # decimal places before or after the point
_BEYOND = f"beyond 1e-{_LARGEST} to 1e{_LARGEST}"
_NEGATIVE = re.compile(r"-((\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(e[-+]?\d+)?|inf|infinity|nan)$", re.I)

_ENDINGS = """\
exit codes:
  0  done                          4  a file does not exist
  1  failed, as the message says   5  no cut meets what was demanded
  2  wrong command or option       130  Ctrl-C
  3  malformed input, with the     141  the reader of the output went away
     file, line and column

Every option that takes a value has a variable: LIMEN_SCORE_COLUMN=p for --score-column p.
An empty one counts as not set; LIMEN_THRESHOLD may hold several numbers, with spaces between.
Data goes to standard output, talk to standard error; NO_COLOR is respected.
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
        """Say that a word is none that this command knows."""
        command = self.get_default("command")
        if not word.startswith("-"):
            self.error(f"{word} is one word too many for {command}. Name all files in one place.")
        from difflib import get_close_matches

        known = [_long(action) for action in self._actions if action.option_strings]
        near = get_close_matches(word.split("=")[0].lstrip("-"), known, 1)
        hint = f" Did you mean --{near[0]}?" if near else ""
        self.error(f"{command} has no option {word}.{hint}")


def _long(action: argparse.Action) -> str:
    """Name an option without its dashes."""
    return action.option_strings[-1].lstrip("-") if action.option_strings else ""


def number(text: str) -> Any:
    """Read a positive number as it was typed: 0.1 is a tenth, 1/3 a third.

    >>> number("5"), number("0.1"), number("1/3")
    (5, Fraction(1, 10), Fraction(1, 3))
    """
    value = _fraction(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    if not 10**-_LARGEST <= value <= 10**_LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is {_BEYOND}")
    return int(value) if value.denominator == 1 else value


def _fraction(text: str) -> Any:
    """Read a fraction, without a power of ten that would take for ever."""
    from fractions import Fraction

    try:
        exponent = re.search(r"e([-+]?\d[\d_]*)\s*$", text, re.IGNORECASE)
        if exponent and abs(int(exponent[1])) > 2 * _LARGEST:
            raise argparse.ArgumentTypeError(f"{text!r} is {_BEYOND}")
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def share(text: str) -> Any:
    """Read a share from 0 to 1 as it was typed.

    >>> share("0.9")
    Fraction(9, 10)
    """
    value = _fraction(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1")
    return value


def threshold(text: str) -> float:
    """Read a threshold; infinities are fine.

    >>> threshold("-inf")
    -inf
    """
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def metric(text: str) -> str:
    """Let the name of a metric pass, or f and a number for F-beta.

    >>> metric("f0.5")
    'f0.5'
    """
    if text in METRICS:
        return text
    if re.fullmatch(r"f\d{1,99}(\.\d{1,99})?", text) and float(text[1:]) > 0:
        return text
    raise argparse.ArgumentTypeError(
        f"{text!r} is none of {', '.join(METRICS)}, or f2, f0.5 and the like"
    )


def whole(text: str) -> int:
    """Read a whole number of at least 1.

    >>> whole("1000")
    1000
    """
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def period(text: str) -> Any:
    """Read a period: a number, or a number with s, m, h, d or w for the times of a clock.

    >>> period("1000"), period("36h")
    (1000, datetime.timedelta(days=1, seconds=43200))
    """
    from datetime import timedelta

    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", text)
    if not found or not float(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a period such as 1000, 90s, 12h or 30d")
    if found[2]:
        try:
            return timedelta(**{units[found[2]]: float(found[1])})
        except OverflowError:
            raise argparse.ArgumentTypeError(f"{text!r} is too long") from None
    return float(found[1]) if "." in found[1] else int(found[1])


def period_text(value: Any) -> str:
    """Write a period as it may be typed.

    >>> period_text(period("36h")), period_text(period("90d")), period_text(1000)
    ('36h', '90d', '1000')
    """
    from datetime import timedelta

    if not isinstance(value, timedelta):
        return str(value)
    for unit, name in (("days", "d"), ("hours", "h"), ("minutes", "m")):
        if value % timedelta(**{unit: 1}) == timedelta(0):
            return f"{value // timedelta(**{unit: 1})}{name}"
    return f"{value.total_seconds():g}s"


def delimiter(text: str) -> str:
    r"""Let one character pass, or \t for a tab.

    >>> delimiter(";")
    ';'
    """
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(text) != 1 or text in '"\r\n':
        raise argparse.ArgumentTypeError(f"{text!r} is not one character")
    return text


def _filled(text: str) -> str:
    from textwrap import fill  # argparse loads it too, but only to show help

    return fill(text, 79)


def _command(commands: Any, name: str, says: str, example: str, **given: Any) -> _Parser:
    command: _Parser = commands.add_parser(
        name,
        help=says[0].lower() + says[1:].split(".")[0],
        description=_filled(says),
        epilog="example:\n" + "".join(f"  {line}\n" for line in example.splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **given,
    )
    command.set_defaults(command=name)
    return command


def _talk(command: _Parser) -> None:
    command.add_argument("-q", "--quiet", action="store_true", help="no talk on standard error")


def _columns(command: _Parser, files: bool = True) -> None:
    group = command.add_argument_group("input")
    if files:
        group.add_argument(
            *("files",),
            metavar="FILE",
            nargs="+",
            help="CSV, NDJSON or Parquet, gzipped or not; a pattern; or - for standard input",
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
    group.add_argument(
        "--format",
        choices=FORMATS if files else FORMATS[:2],
        help="when the name of a file does not tell"
        if files
        else "when the first line does not tell",
    )
    group.add_argument(
        "--delimiter",
        metavar="CHARACTER",
        type=delimiter,
        help="between the fields of a CSV; by default what its header suggests",
    )


def _groups(command: _Parser, says: str) -> None:
    command.add_argument("--group-column", metavar="NAME", help=says)
    command.add_argument(
        "--at-least",
        metavar="N",
        type=whole,
        default=1,
        help="samples that a group needs for a threshold of its own; else that of all answers (1)",
    )


def _costs(command: _Parser, unit: bool = True) -> None:
    group = command.add_argument_group("costs")
    given: dict[str, Any] = {"type": number, "metavar": "COST"}
    group.add_argument("--false-positive", help="of answering 1 to a 0 (1)", **given)
    group.add_argument("--false-negative", help="of answering 0 to a 1 (1)", **given)
    if unit:
        group.add_argument(
            "--unit",
            type=number,
            help="the smallest weight told apart, such as 0.01; whole weights need none",
        )


def _aims(command: _Parser) -> None:
    group = command.add_argument_group(
        "aims other than cost",
        _filled(
            "With demands alone the best recall is sought, or the best precision when recall is "
            "demanded; with costs, the lowest cost among the cuts that meet them."
        ),
    )
    group.add_argument(
        "--metric",
        type=metric,
        metavar="NAME",
        help=f"{', '.join(METRICS)}, or f2, f0.5 and the like",
    )
    given: dict[str, Any] = {"type": share, "metavar": "SHARE"}
    group.add_argument("--min-precision", **given)
    group.add_argument("--min-recall", **given)
    group.add_argument("--max-false-positive-rate", **given)
    group.add_argument("--max-positive-rate", help="share of all that is answered 1", **given)


def _output(command: _Parser, needed: bool) -> None:
    command.add_argument(
        *("-o", "--output"), metavar="FILE", required=needed, help="written all at once or not"
    )
    command.add_argument("--force", action="store_true", help="replace a file that is there")


def parser() -> argparse.ArgumentParser:
    """Make the parser of everything that may be written after ``limen``.

    >>> parser().parse_args(["fit", "scores.csv", "--false-negative", "5"]).false_negative
    5
    """
    whole = _Parser(
        prog="limen",
        description="Exact decision thresholds for binary classifiers.",
        epilog="example:\n  limen fit scores.csv --false-negative 5\n\n" + _ENDINGS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"limen {__version__}")
    commands = whole.add_subparsers(metavar="COMMAND", title="commands", dest="command")
    _fit(commands)
    _curve(commands)
    _compare(commands)
    _watch(commands)
    _report(commands)
    _merge(commands)
    _show(commands)
    _demo(commands)
    _completion(commands)
    return whole


def _fit(commands: Any) -> None:
    command = _command(
        commands,
        "fit",
        "Find the best threshold for scores and labels in files. It goes to standard output: "
        "answer 1 when score >= threshold.",
        "limen fit scores.csv --false-negative 5\n"
        "limen fit 'day-*.parquet' --score-column p --label-column paid --min-precision 0.9 --json",
    )
    _columns(command)
    _groups(command, "one threshold for each group, with its counts")
    command.add_argument(
        "--save", metavar="FILE", help="the samples as a model, to be shown, merged or loaded"
    )
    command.add_argument("--force", action="store_true", help="replace a file that is there")
    _costs(command)
    _aims(command)
    command.add_argument("--json", action="store_true", help="one object with all there is to say")
    _talk(command)


def _curve(commands: Any) -> None:
    command = _command(
        commands,
        "curve",
        "Write the loss of every cut as CSV. One line for each distinct score and one more.",
        "limen curve scores.csv --false-negative 5 > curve.csv",
    )
    _columns(command)
    _costs(command)
    _output(command, needed=False)
    _talk(command)


def _compare(commands: Any) -> None:
    command = _command(
        commands,
        "compare",
        "Tell what thresholds cost against the optimum. One line of CSV for each, the optimum "
        "first.",
        "limen compare scores.csv --threshold 0.5 --false-negative 5",
    )
    _columns(command)
    command.add_argument(
        *("-t", "--threshold"),
        type=threshold,
        action="append",
        dest="thresholds",
        metavar="NUMBER",
        required=True,
        help="may be given several times",
    )
    _costs(command)
    command.add_argument("--json", action="store_true", help="one object instead of CSV")
    _talk(command)


def _watch(commands: Any) -> None:
    command = _command(
        commands,
        "watch",
        "Follow a stream of CSV or NDJSON on standard input. One line of JSON goes out for each "
        "change of the threshold. Scores and labels come in one row, or apart, joined by an id.",
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
        "Periods are numbers where times are numbers (or rows, without times), and such as 90s, "
        "\n12h or 30d where they are dates.",
    )
    memory.add_argument("--last-n", type=whole, metavar="N", help="only the last N samples count")
    lasting: dict[str, Any] = {"type": period, "metavar": "PERIOD"}
    memory.add_argument("--last-period", help="only samples of the last PERIOD count", **lasting)
    memory.add_argument(
        "--half-life", help="after PERIOD, or so many samples, one counts half", **lasting
    )
    memory.add_argument("--time-to-live", help="how long a score waits for its label", **lasting)
    memory.add_argument("--maturity", help="how old a label 0 must be to count", **lasting)
    memory.add_argument("--correctable", help="how long labels may be corrected", **lasting)
    telling = command.add_argument_group("when to tell")
    telling.add_argument("--every", type=whole, metavar="N", help="every N rows, change or not")
    telling.add_argument("--each-period", help="with the first row of each PERIOD", **lasting)
    state = command.add_argument_group("state")
    state.add_argument(
        "--state",
        metavar="FILE",
        help="kept up to date, and FILE.journal beside it; a restart goes on from there",
    )
    state.add_argument(
        "--from-start",
        action="store_true",
        help="the input begins anew: pass over the rows that the state has seen",
    )
    state.add_argument("--skip-malformed", action="store_true", help="tell of a bad row and go on")
    _talk(command)


def _merge(commands: Any) -> None:
    command = _command(
        commands,
        "merge",
        "Make one model of the samples of many saved ones. Their samples must be disjoint.",
        "limen merge monday.limen tuesday.limen -o week.limen",
    )
    command.add_argument("files", metavar="FILE", nargs="+", help="saved by limen")
    _output(command, needed=True)
    _talk(command)


def _show(commands: Any) -> None:
    command = _command(
        commands,
        "show",
        "Tell what saved models hold. One line of JSON for each. One with samples for any aim "
        "is asked with costs, a metric or demands.",
        "limen show fraud.limen\nlimen show any.limen --metric f1",
    )
    command.add_argument("files", metavar="FILE", nargs="+", help="saved by limen")
    _costs(command, unit=False)
    _aims(command)
    _talk(command)


def _report(commands: Any) -> None:
    command = _command(
        commands,
        "report",
        "Write a page about the best threshold. It needs no network: charts, tables and words "
        "for a screen, a phone or paper.",
        "limen report scores.csv -o report.html --false-negative 5 --group-column country",
    )
    _columns(command)
    _groups(command, "a table of its groups as well")
    _costs(command)
    command.add_argument(
        *("-t", "--threshold"),
        type=threshold,
        action="append",
        dest="thresholds",
        metavar="NUMBER",
        help="one to compare with, such as that in use; by default 0.5 if scores are shares",
    )
    _output(command, needed=True)
    _talk(command)


def _demo(commands: Any) -> None:
    command = _command(
        commands,
        "demo",
        "Play a small real stream. The threshold of a phishing detector, kept right.",
        "limen demo",
    )
    command.add_argument(
        "--csv", action="store_true", help="write the scores and labels instead, to try limen on"
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
