# SPDX-License-Identifier: Apache-2.0
"""``limen apply``: rows as they were read, and the answer to each by a threshold or a model."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from limen._core import number_of
from limen.cli.aims import columns_of
from limen.cli.columnar import ordered_rows
from limen.cli.exits import BAD_INPUT, USAGE, BadRow, Failure
from limen.cli.inputs import expanded, format_of, is_columnar
from limen.cli.line_reader import Lines, name_of, opened
from limen.cli.output import print_messages, require_writable, written
from limen.cli.progress import counting
from limen.cli.rows import Columns, Malformed, as_number, as_text, blanks_of, heading_of, values_of
from limen.cli.sentences import left_out_lines
from limen.cli.show import asked_of, rule_of
from limen.columns import as_scores
from limen.export import Rule

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["apply"]

_OFTEN = 2**16  # rows, after which progress is shown


def apply(options: Namespace) -> int:
    """Write each row with the answer to it."""
    rule = _rule(options)
    require_writable(options.output, options.force)
    if options.output is not None and options.output.lower().endswith((".parquet", ".arrow")):
        raise Failure(
            f"{options.output}: answers are written as text. For Parquet, run the SQL that limen "
            "show --as sql writes, in duckdb.",
            USAGE,
        )
    columns = _Columns(**_given(options), levels=tuple(options.group_columns or ()))
    paths = expanded(options.files)
    answers = _Answers(rule, columns, options.answer_column)
    with written(options.output) as file:
        for path in paths:
            kind = options.format or format_of(path)
            rows_of = answers.of_columns if is_columnar(path, kind) else answers.of_text
            with counting(path) as tick:
                for line in rows_of(path, kind):
                    file.write(line)
                    if answers.rows % _OFTEN == 0:
                        tick(answers.rows)
        if answers.malformed.count and not columns.skip:
            answers.malformed.refuse()  # a file that was begun is not kept
    shown = f"score {rule.direction} {rule.threshold!r}"
    if rule.groups:
        several = f"{len(rule.groups):,} groups with thresholds of their own"
        own = several if len(rule.groups) > 1 else "1 group with a threshold of its own"
        shown = f"{own}, {shown} for all others"
    rows = f"{answers.rows:,} row{'s' * (answers.rows != 1)}"
    print_messages(
        f"{rows}, {answers.positives:,} predicted positive: {shown}",
        *left_out_lines(answers.malformed.count, answers.rows, answers.malformed.first),
        quiet=options.quiet,
    )
    return 0


def _given(options: Namespace) -> dict[str, Any]:
    """Return what the options say about columns, by name."""
    columns = columns_of(options)
    return {each.name: getattr(columns, each.name) for each in fields(columns)}


def _rule(options: Namespace) -> Rule:
    """Read the rule: a number is a threshold, all else is a file saved by limen."""
    direction, asked = "<=" if options.lower_is_positive else ">=", asked_of(options)
    number = number_of(options.rule)
    if number is not None:
        if asked is not None:
            raise Failure("a threshold needs no costs, metrics or demands. Leave them out.", USAGE)
        if options.group_columns:
            raise Failure(
                "one threshold has no groups. Leave out --group-column, or name a model.", USAGE
            )
        return Rule(number + 0.0, direction)  # type: ignore[arg-type]
    rule = rule_of(options.rule, asked)
    if options.lower_is_positive and rule.direction == ">=":
        raise Failure(
            f"in {options.rule} higher scores mean positive. Leave out --lower-is-positive, which "
            "a model knows of itself.",
            USAGE,
        )
    levels = len(options.group_columns or ())
    if rule.groups is None:
        if levels:
            raise Failure(f"{options.rule} has no groups. Leave out --group-column.", USAGE)
        return rule
    if levels < max(rule.depth, 1):
        needed = "" if rule.depth < 2 else f" once for each of its {rule.depth} levels"
        raise Failure(
            f"{options.rule} has groups. Name their column with --group-column{needed}.", USAGE
        )
    try:
        return rule.by_text()
    except ValueError as error:
        raise Failure(f"{options.rule}: {error}", BAD_INPUT) from None


@dataclass(frozen=True, slots=True)
class _Columns(Columns):
    """Columns of a score and of groups inside one another."""

    levels: tuple[str, ...] = ()

    def named(self) -> dict[str, str]:
        """Return the name of the column of each part that is asked for."""
        return {"score": self.score} | {f"group_{at}": name for at, name in enumerate(self.levels)}


class _Answers:
    """The rows of files with their answers, as text, and how many of both."""

    def __init__(self, rule: Rule, columns: _Columns, name: str) -> None:
        self.rule, self.columns, self.name = rule, columns, name
        self.rows, self.positives, self.malformed = 0, 0, Malformed()
        self.header: list[str] | None = None  # of the first file; that of NDJSON is empty

    def answer(self, score: float, group: tuple[str, ...]) -> int:
        """Answer one row, and count it."""
        found = self.rule.answer(score, group)
        self.rows += 1
        self.positives += found
        return found

    def of_text(self, path: str, kind: str | None) -> Iterator[str]:
        """Yield the lines of a file of text, each with its answer."""
        columns = self.columns
        with opened(path) as stream:
            lines = _KeptLines(stream, name_of(path))
            first = lines.first()
            heading = heading_of(first, columns, kind, lines, lines)
            values, blanks = values_of(heading, columns, lines), blanks_of(heading)
            if heading["format"] == "csv":
                yield from self._headed(heading["header"], lines.taken(), heading["delimiter"])
                pending = list[str]()
                answered: Callable[[str, int], str] = _as_csv(heading["delimiter"])
            else:
                yield from self._headed([], "", "")
                answered, pending = self._as_json(lines), [first]
            while True:
                try:
                    line = pending.pop() if pending else next(lines)
                    if not line.strip(blanks):
                        lines.taken()
                        continue
                    score, *groups = values(line, lines)
                    number = as_number(score, lines, columns.score, "score")
                    names = tuple(map(as_text, groups))
                    if "" in names:
                        column = columns.levels[names.index("")]
                        lines.refuse("the group is missing. Fill it or drop the row.", column)
                    row = answered(lines.taken(), self.answer(number, names))
                except StopIteration:
                    return
                except BadRow as bad:
                    lines.taken()
                    self.malformed.add(str(bad))
                    continue
                if columns.skip or not self.malformed.count:
                    yield row

    def of_columns(self, path: str, kind: str | None) -> Iterator[str]:
        """Yield the rows of a file of columns as lines of CSV, each with its answer."""
        names, batches, malformed = ordered_rows(path, str(kind), self.columns)
        self.malformed.count += malformed.count
        self.malformed.first += malformed.first
        buffer = io.StringIO()
        table = csv.writer(buffer, lineterminator="\n")
        table.writerow(names)
        yield from self._headed(names, buffer.getvalue(), ",")
        width = len(self.columns.levels)
        for rows in batches:
            try:
                scores = as_scores([row[0] for row in rows]).tolist()
            except ValueError as error:
                raise Failure(f"{path}: {error}", BAD_INPUT) from None
            buffer.seek(0)
            buffer.truncate()
            for score, row in zip(scores, rows, strict=True):
                answer = self.answer(score, row[1 : 1 + width])
                table.writerow([*row[1 + width :], answer])
            yield buffer.getvalue()

    def _headed(self, header: list[str], line: str, delimiter: str) -> Iterator[str]:
        """Yield the header, once; refuse one that differs, or that has a column of answers."""
        if self.header is not None:
            if header != self.header:
                raise Failure(
                    "the files have different columns, so that their rows cannot be written one "
                    "after the other. Apply to one at a time.",
                    USAGE,
                )
            return
        self.header = header
        if self.name in header:
            self._refuse_name()
        if header:
            yield _as_csv(delimiter)(line, self.name)

    def _as_json(self, lines: Lines) -> Callable[[str, int], str]:
        """Make the function that puts the answer at the end of an object."""
        key = json.dumps(self.name, ensure_ascii=False)

        def answered(line: str, answer: int) -> str:
            if key in line and self.name in json.loads(line):
                self._refuse_name(f"{lines.at()}: ")
            return f"{line.rstrip()[:-1].rstrip()}, {key}: {answer}}}\n"

        return answered

    def _refuse_name(self, where: str = "") -> None:
        raise Failure(
            f"{where}the rows have a column {self.name!r} already. Choose another name with "
            "--answer-column.",
            USAGE,
        )


class _KeptLines(Lines):
    """Lines that are kept as they were read, until they are taken."""

    kept: str = ""

    def __next__(self) -> str:
        line = super().__next__()
        self.kept = self.kept + line if self.kept.strip() else line
        return line

    def taken(self) -> str:
        """Return the lines since the last call."""
        kept, self.kept = self.kept, ""
        return kept


def _as_csv(delimiter: str) -> Callable[[str, object], str]:
    """Make the function that puts one more field at the end of a row."""

    def answered(line: str, value: object) -> str:
        row, text = line.rstrip("\r\n"), str(value)
        if any(each in text for each in (delimiter, '"', "\n", "\r")):
            text = '"' + text.replace('"', '""') + '"'
        end = line[len(row) :] or "\n"
        return f"{row}{delimiter}{text}{end}"

    return answered
