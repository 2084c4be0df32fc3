# SPDX-License-Identifier: Apache-2.0
"""Samples out of lines of CSV or NDJSON, one by one, with the place of whatever is wrong.

This reader needs nothing but Python and decides what a file means. `limen.cli.tables` is the
fast way to the same arrays; where it stumbles, this one is asked again and names the line.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

from limen.cli.outcome import BAD_INPUT, FAILED, NOT_FOUND, Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "LONGEST_LINE",
    "MANY_LABELS",
    "Collected",
    "Columns",
    "Place",
    "as_number",
    "as_text",
    "as_weight",
    "csv_header",
    "delimiter_of",
    "is_gzip",
    "labels_of",
    "opened",
    "read_text",
    "refuse_column",
    "refuse_label",
    "shown",
    "which_labels",
]

LONGEST_LINE = 2**24
MANY_LABELS = 20
_COUNTED = 10**6  # rows, to tell which labels there are
_SHOWN = 40
_GZIP = b"\x1f\x8b"
_ZERO_OR_ONE = {"0": 0, "1": 1, "false": 0, "true": 1}


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that are asked for, and what their values mean."""

    score: str = "score"
    label: str = "label"
    weight: str | None = None
    group: str | None = None
    positive: str | None = None
    delimiter: str | None = None

    def named(self) -> dict[str, str]:
        """Tell which column plays which part, for the parts that are played."""
        parts = {"score": self.score, "label": self.label}
        if self.weight is not None:
            parts["weight"] = self.weight
        if self.group is not None:
            parts["group"] = self.group
        return parts


@dataclass(slots=True)
class Collected:
    """Samples in plain columns; a group is a number, its place in `names`."""

    scores: array[float] = field(default_factory=lambda: array("d"))
    labels: bytearray = field(default_factory=bytearray)
    weights: array[float] = field(default_factory=lambda: array("d"))
    codes: array[int] = field(default_factory=lambda: array("q"))
    names: dict[str, int] = field(default_factory=dict)


def shown(value: object) -> str:
    """Show a value in a message, shortened.

    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'"
    """
    if isinstance(value, str) and len(value) > _SHOWN:
        return repr(value[:_SHOWN] + "…")
    return repr(value) if isinstance(value, str) else json.dumps(value)


def labels_of(positive: str | None) -> Callable[[str], int | None]:
    """Make the function from the text of a label to 0 or 1, or to None when it is neither.

    >>> [labels_of(None)(text) for text in ("1", "False", "1.0", "yes")]
    [1, 0, 1, None]
    >>> [labels_of("yes")(text) for text in ("yes", "no", "")]
    [1, 0, None]
    """
    wanted = None if positive is None else _float(positive)
    known: dict[str, int | None] = {}

    def label(text: str) -> int | None:
        if text not in known:
            known[text] = read(text)
        return known[text]

    def read(text: str) -> int | None:
        if positive is None:
            plain = _ZERO_OR_ONE.get(text.strip().lower())
            if plain is None and _float(text) in (0.0, 1.0):
                plain = int(float(text))
            return plain
        if text == "":
            return None
        return int(text == positive or (wanted is not None and _float(text) == wanted))

    return label


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@contextmanager
def opened(path: str) -> Iterator[io.BufferedReader]:
    """Open a file, or standard input for ``-``, unpacked when it is gzipped."""
    try:
        raw = cast("io.BufferedReader", sys.stdin.buffer) if path == "-" else open(path, "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise Failure(f"{path} is not there. Check the name.", NOT_FOUND) from None
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}.", FAILED) from None
    try:
        packed = raw.peek(2)[:2] == _GZIP
        if path.endswith(".gz") and not packed:
            raise Failure(
                f"{path} is named .gz, but it does not begin as a gzip file does. Rename it, or "
                "pack it again.",
                BAD_INPUT,
            )
        if packed:
            yield io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=raw)), 2**18)
        else:
            yield raw
    finally:
        if path != "-":
            raw.close()


def is_gzip(path: str) -> bool:
    """Tell by its first bytes whether a file is gzipped."""
    with open(path, "rb") as file:
        return file.read(2) == _GZIP


class Place:
    """Where in the input something stands, to be named when it is wrong."""

    counted = "line"

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0

    def refuse(self, problem: str, ahead: int = 0, column: str | None = None) -> NoReturn:
        """Raise a `Failure` that names the place."""
        where = f"{self.name}, {self.counted} {self.number + ahead}"
        if column is not None:
            where += f", column {column}"
        raise Failure(f"{where}: {problem}", BAD_INPUT)


class _Lines(Place):
    """The lines of a stream as text; knows the number of the latest."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        super().__init__(name)
        self.stream = stream

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        try:
            line = self.stream.readline(LONGEST_LINE + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.refuse(f"the gzip data ends or is damaged ({error}). Fetch the file again.", 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > LONGEST_LINE:
            self.refuse(
                f"the line is longer than {LONGEST_LINE:,} bytes. Is this really text with one "
                "sample per line?"
            )
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            self.refuse(
                f"byte {error.start + 1} is {line[error.start]:#04x}, which is not UTF-8. "
                "Convert the file, for example with iconv."
            )


def delimiter_of(header: str, columns: Columns, name: str) -> str:
    """Tell what stands between the fields, by what was asked, the name, or the header."""
    if columns.delimiter is not None:
        return columns.delimiter
    if name.removesuffix(".gz").endswith((".tsv", ".tab")):
        return "\t"
    outside = "".join(header.split('"')[::2])
    return max(",;\t|", key=outside.count)


def _csv_rows(lines: _Lines, columns: Columns) -> tuple[Iterator[list[str]], list[str], str]:
    """Rows of a CSV, the names in its header, and its delimiter."""
    first = next(lines, None)
    while first is not None and not first.strip():
        first = next(lines, None)
    if first is None:
        raise Failure(f"{lines.name} is empty. A header and rows are needed.", BAD_INPUT)
    delimiter = delimiter_of(first, columns, lines.name)

    def all_lines() -> Iterator[str]:
        yield first
        yield from lines

    csv.field_size_limit(LONGEST_LINE)
    rows = csv.reader(all_lines(), delimiter=delimiter, strict=True)
    return rows, _next_row(rows, lines) or [], delimiter


def _next_row(rows: Iterator[list[str]], lines: _Lines) -> list[str] | None:
    try:
        return next(rows, None)
    except csv.Error as error:
        lines.refuse(f"{error}. Check the quotes.")


def _places(header: list[str], columns: Columns, name: str) -> list[int]:
    """Where the columns asked for are: score, label, then weight and group if asked for."""
    found = []
    for part, column in columns.named().items():
        if header.count(column) != 1:
            refuse_column(part, column, header, f"{name}, line 1")
        found.append(header.index(column))
    return found


def refuse_column(part: str, column: str, header: list[str], name: str) -> NoReturn:
    """Say that a column is not there, or twice, and which there are."""
    problem = f"has {header.count(column)} columns" if column in header else "has no column"
    listed = ", ".join(map(shown, header[:20])) + (", …" if len(header) > 20 else "")
    raise Failure(
        f"{name}: it {problem} {shown(column)} for the {part}. There are: {listed}. Choose "
        f"with --{part}-column.",
        BAD_INPUT,
    )


def csv_header(path: str, columns: Columns) -> tuple[list[int], int, str]:
    """Places of the columns asked for, how many columns there are, and the delimiter."""
    with opened(path) as stream:
        _, header, delimiter = _csv_rows(_Lines(stream, path), columns)
        return _places(header, columns, path), len(header), delimiter


def read_text(
    path: str,
    format: str | None,
    columns: Columns,
    into: Collected,
    tick: Callable[[int], None] = lambda rows: None,
) -> None:
    """Append the samples of a file; on an error the samples before it are there. O(n).

    `tick` is told now and then how many rows were read.
    """
    with opened(path) as stream:
        name = "standard input" if path == "-" else path
        if format is None:
            try:
                format = "ndjson" if stream.peek(64).lstrip()[:1] == b"{" else "csv"
            except (EOFError, zlib.error, gzip.BadGzipFile):
                format = "csv"  # whose first line tells what is wrong
        lines = _Lines(stream, name)
        records = _ndjson(lines, columns) if format == "ndjson" else _csv(lines, columns)
        _collect(records, lines, columns, into, tick)


def _csv(lines: _Lines, columns: Columns) -> Iterator[list[Any]]:
    rows, header, _ = _csv_rows(lines, columns)
    places = _places(header, columns, lines.name)
    width = len(header)
    while (row := _next_row(rows, lines)) is not None:
        if len(row) != width:
            if not row:
                continue  # an empty line
            lines.refuse(
                f"{len(row)} fields, but the header has {width}. Check delimiter and quotes."
            )
        yield [row[place] for place in places]


def _ndjson(lines: _Lines, columns: Columns) -> Iterator[list[Any]]:
    named = columns.named()
    for line in lines:
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            lines.refuse(f"not JSON: {error}. One object per line is needed.")
        except RecursionError:
            lines.refuse("JSON that is nested too deep.")
        if not isinstance(record, dict):
            lines.refuse(f"{shown(line.strip())} is not an object with named values.")
        for part, column in named.items():
            if column not in record:
                lines.refuse(
                    f"no value is named so, and it is needed for the {part}. There are: "
                    f"{', '.join(map(shown, record)) or 'none'}.",
                    column=column,
                )
        yield [record[column] for column in named.values()]
    if lines.number == 0:
        raise Failure(f"{lines.name} is empty. One object per line is needed.", BAD_INPUT)


def _collect(
    records: Iterator[list[Any]],
    lines: _Lines,
    columns: Columns,
    into: Collected,
    tick: Callable[[int], None],
) -> None:
    label_of = labels_of(columns.positive)
    weighted, grouped = columns.weight is not None, columns.group is not None
    add_score, add_label = into.scores.append, into.labels.append
    for count, record in enumerate(records):
        add_score(as_number(record[0], lines, columns.score, "score"))
        label = label_of(record[1] if type(record[1]) is str else as_text(record[1]))
        if label is None:
            del into.scores[-1]
            refuse_label(record[1], lines, columns, _counted(into.labels, record, records, lines))
        add_label(label)
        if weighted:
            into.weights.append(as_weight(record[2], lines, cast(str, columns.weight)))
        if grouped:
            name = record[-1] if type(record[-1]) is str else as_text(record[-1])
            if name == "":
                lines.refuse("no group is named. Fill it or drop the row.", column=columns.group)
            into.codes.append(into.names.setdefault(name, len(into.names)))
        if count % 65536 == 65535:
            tick(count + 1)


def _counted(
    known: bytearray, record: list[Any], records: Iterator[list[Any]], lines: _Lines
) -> Counter[str]:
    """Count the labels before a record that has none of 0 and 1, and some after it."""
    counts = Counter({text: known.count(label) for label, text in enumerate("01")})
    line = lines.number
    with suppress(Failure):  # what is wrong further on does not matter here
        for each in chain([record], islice(records, _COUNTED)):
            counts[as_text(each[1])] += 1
            if len(counts) > MANY_LABELS + 3:
                break
    lines.number = line
    return counts


def as_text(value: Any) -> str:
    """Write the value of a JSON field as a CSV would; null is empty."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def as_number(value: Any, place: Place, column: str, part: str) -> float:
    """Read a number that has an order, or refuse it."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        if value in ("", None):
            place.refuse(f"the {part} is missing. Fill it or drop the row.", column=column)
        place.refuse(f"{shown(value)} is not a number. Correct it or drop the row.", column=column)
    if number != number:
        place.refuse(
            f"the {part} is nan, which has no order. Fill it or drop the row.", column=column
        )
    return number


def as_weight(value: Any, place: Place, column: str) -> float:
    """Read a weight, or refuse it."""
    number = as_number(value, place, column, "weight")
    if not 0 <= number < float("inf"):
        place.refuse(
            f"the weight is {number!r}; it must be 0 or more, and finite. Correct it or drop the "
            "row.",
            column=column,
        )
    return number


def refuse_label(
    value: Any, place: Place, columns: Columns, counts: Mapping[str, int] | None = None
) -> NoReturn:
    """Say what a label must be, and how often each of them is there, if that is known."""
    if value in ("", None):
        place.refuse("the label is missing. Fill it or drop the row.", column=columns.label)
    rows = sum((counts or {}).values())
    first = "There are" if rows <= _COUNTED else f"Among the first {rows:,} rows are"
    place.refuse(
        f"the label is {shown(value)}, not 0 or 1. {which_labels(counts or {}, first)}",
        column=columns.label,
    )


def which_labels(counts: Mapping[str, int], first: str = "There are") -> str:
    """List the labels with their counts, and say how one of them is chosen; propose none.

    >>> which_labels({"ok": 4755, "fraud": 245})
    "There are 'fraud' (245 rows), 'ok' (4,755 rows). Say which one counts as 1: --positive VALUE"
    """
    there = {text: count for text, count in counts.items() if count and text}
    if len(there) > MANY_LABELS:
        listed = (
            f"{first} more than {MANY_LABELS} different ones: is this the column of labels? "
            "Choose it with --label-column. "
        )
    else:
        rows = {text: f"{count:,} row{'s' * (count > 1)}" for text, count in there.items()}
        each = [f"{shown(text)} ({rows[text]})" for text in sorted(there)]
        listed = f"{first} {', '.join(each)}. " if each else ""
    return f"{listed}Say which one counts as 1: --positive VALUE"
