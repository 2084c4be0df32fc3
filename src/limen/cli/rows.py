# SPDX-License-Identifier: Apache-2.0
"""What a line of CSV or NDJSON means: the values that are asked for, or an error with its place.

Streams are read by this decoder, and so are the rows of files that are not plain. What the text of
a number or a label means is written once, in ``native/rows/values.hpp``.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

from limen import _core
from limen.cli.exits import BAD_INPUT, BadRow, Failure
from limen.cli.packing import without_packing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from limen.optimum import Direction

__all__ = [
    "COUNTED",
    "LONGEST_LINE",
    "MANY_LABELS",
    "SHOWN",
    "Columns",
    "Malformed",
    "Place",
    "as_cost",
    "as_number",
    "as_text",
    "as_utf8",
    "as_weight",
    "blanks_of",
    "heading_of",
    "labels_of",
    "option_of",
    "quoted",
    "refuse_column",
    "refuse_kind",
    "refuse_label",
    "refuse_long_line",
    "values_of",
    "which_labels",
]

LONGEST_LINE = 2**24
MANY_LABELS = 20
COUNTED = 10**6  # rows, to list the labels; malformed rows, to say how many
SHOWN = 3  # malformed rows
_LONGEST_QUOTE = 40
_ARRAY = re.compile(r"\s*\[\s*(\{|$)")
_COMMA = re.compile(r"\s*[-+]?\d*,\d+(e[-+]?\d+)?\s*$", re.IGNORECASE)
_AUTOMATIC_UNIT = 2**-_core.finest_bits

# How files begin that are not text but often given as such; what they are, and what to do.
_KINDS = {
    b"PAR1": ("Parquet", "It is read from its end: save it to a file, for limen fit FILE."),
    b"\x89limen": ("a model saved by limen", "See what it holds with limen show."),
    b"BZh": ("packed by bzip2", "Unpack it: bzip2 -dc FILE | limen …"),
    b"\xfd7zXZ": ("packed by xz", "Unpack it: xz -dc FILE | limen …"),
    b"\x28\xb5\x2f\xfd": ("packed by zstd", "Unpack it: zstd -dc FILE | limen …"),
    b"\x1f\x8b": ("packed by gzip", "Unpack it: gzip -dc FILE | limen …"),
    b"PK\x03\x04": (
        "a zip archive, as .npz and .xlsx are too",
        "Unpack it, or write the table as CSV or Parquet.",
    ),
    b"\x93NUMPY": ("an array of NumPy", "Write the table as CSV or Parquet."),
    b"ARROW1": ("an Arrow file", "It is read from its end: save it to a file, for limen fit FILE."),
    b"FEA1": ("Feather of version 1", "Write it again as version 2, or as Parquet."),
    b"\x89HDF": ("an HDF5 file", "Write the table as CSV or Parquet."),
    b"SQLite format 3": ("a database of SQLite", "Write the table as CSV."),
}


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that are asked for, and what their values mean."""

    score: str = "score"
    label: str | None = "label"  # None where scores alone are read
    weight: str | None = None
    group: str | None = None
    positive: str | None = None
    delimiter: str | None = None
    unit: Any = None
    id: str | None = None
    time: str | None = None
    direction: Direction = ">="
    prevalence: Any = None  # the share of label 1 that rows are weighted to
    costs: tuple[tuple[str, str], ...] = ()  # outcomes that cost what a column says, and its name
    comma: bool = False  # numbers have a decimal comma
    skip: bool = False  # leave malformed rows out

    def are_numbers(self) -> list[bool]:
        """Whether each part that is asked for is a number."""
        outcomes = dict(self.costs)
        return [part in ("score", "weight") or part in outcomes for part in self.named()]

    def named(self) -> dict[str, str]:
        """Return the name of the column of each part that is asked for."""
        parts = ("score", "label", "weight", "group", "id", "time")
        found = {part: getattr(self, part) for part in parts}
        return {part: name for part, name in found.items() if name is not None} | dict(self.costs)

    @property
    def finest(self) -> float:
        """The weight below which one would round to 0 units."""
        return float(_AUTOMATIC_UNIT if self.unit is None else self.unit) / 2


class Place:
    """The place in the input that errors name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0

    def at(self) -> str:
        """Name the line at hand."""
        return f"{self.name}, line {self.number}"

    def refuse(self, problem: str, column: str | None = None) -> NoReturn:
        """Raise a `BadRow` that names the place."""
        where = self.at() + ("" if column is None else f", column {column}")
        raise BadRow(f"{where}: {problem}", BAD_INPUT)


class Malformed:
    """The malformed rows of a file: how many, and what is wrong with the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, problem: str) -> None:
        """Count one more row; stop where there are so many that the file must be another one."""
        self.count += 1
        if self.count <= SHOWN:
            self.first.append(problem)
        if self.count > COUNTED:
            self.refuse("more than")

    def refuse(self, prefix: str = "") -> NoReturn:
        """Raise a `Failure` about all of them."""
        lines = list(self.first)
        if self.count > 1:
            shown = f"; these are the first {SHOWN}" if self.count > SHOWN else ""
            counted = f"{prefix} {self.count:,}".strip()
            lines.append(
                f"{counted} rows are malformed{shown}. Correct them, or leave them out with "
                "--skip-malformed."
            )
        raise Failure("\nlimen: ".join(lines), BAD_INPUT)


def quoted(value: object) -> str:
    """Quote a value in a message, shortened.

    >>> quoted("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'"
    """
    text = value if isinstance(value, str) else json.dumps(value)
    short = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"
    return repr(short) if isinstance(value, str) else short


# ---- from bytes to lines --------------------------------------------------------------------


def refuse_kind(begin: bytes, name: str) -> None:
    """Raise a `Failure` if the input begins as something else than text does."""
    for mark, (kind, advice) in _KINDS.items():
        if begin.startswith(mark):
            raise Failure(f"{name} is {kind}, not text. {advice}", BAD_INPUT)


def as_utf8(line: bytes, place: Place) -> str:
    """Read the bytes of a line as text, or name the first that is none."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        place.refuse(
            f"byte {error.start + 1} is {line[error.start]:#04x}, which is not UTF-8. "
            "Convert the input, for example with iconv."
        )


def refuse_long_line(line: bytes, longest: int, place: Place) -> NoReturn:
    """Refuse a line that is too long, with the likely reason."""
    if b"\r" in line:
        _refuse_return(place.at())
    raise Failure(
        f"{place.at()}: the line is longer than {longest:,} bytes. Is this really text with one "
        "sample per line?",
        BAD_INPUT,
    )


def _refuse_return(where: str) -> NoReturn:
    raise Failure(
        rf"{where}: there is a CR (\r) inside the line. If lines end so, turn each into LF: "
        r"tr '\r' '\n'",
        BAD_INPUT,
    )


# ---- from lines to values -------------------------------------------------------------------


def heading_of(
    first: str,
    columns: Columns,
    format: str | None,
    place: Place,
    more: Iterable[str] = (),
) -> dict[str, Any]:
    """Learn from the first line what the others mean. Of NDJSON, it is a row as well.

    >>> heading_of("score;label", Columns(), None, Place("scores.csv"))
    {'format': 'csv', 'header': ['score', 'label'], 'delimiter': ';'}
    """
    if _ARRAY.match(first):
        raise Failure(
            f"{place.at()}: a JSON array begins here, not an object. One object per line is "
            "needed: jq -c '.[]' makes them of an array.",
            BAD_INPUT,
        )
    if (format or ("ndjson" if first.lstrip()[:1] == "{" else "csv")) == "ndjson":
        return {"format": "ndjson"}
    delimiter = _delimiter_of(first, columns, place.name)
    where = place.at()
    header = _fields(first, delimiter, more, lambda: where)
    for part, column in columns.named().items():
        if header.count(column) != 1:
            refuse_column(part, column, header, where)
    return {"format": "csv", "header": header, "delimiter": delimiter}


def _delimiter_of(header: str, columns: Columns, name: str) -> str:
    """Find the delimiter: by the option, the name of the file, or the header."""
    if columns.delimiter is not None:
        return columns.delimiter
    if without_packing(name).endswith((".tsv", ".tab")):
        return "\t"
    outside = "".join(header.split('"')[::2])
    return max(",;\t|", key=outside.count)


def refuse_column(part: str, column: str, header: list[str], where: str) -> NoReturn:
    """Refuse a column that is missing or there twice, and list those there are."""
    problem = f"has {header.count(column)} columns" if column in header else "has no column"
    listed = ", ".join(map(quoted, header[:20])) + (", …" if len(header) > 20 else "")
    option, part = option_of(part), option_of(part).replace("-", " ")
    if all(_core.number_of(name) is not None for name in header):
        raise Failure(
            f"{where}: it {problem} {quoted(column)} for the {part}; all that "
            f"stands there are numbers: {listed}. Does the file have no header? Its first line "
            "must name the columns, as in: score,label",
            BAD_INPUT,
        )
    raise Failure(
        f"{where}: it {problem} {quoted(column)} for the {part}. There are: "
        f"{listed}. Choose with --{option}-column.",
        BAD_INPUT,
    )


def option_of(part: str) -> str:
    """Name a part as its option does; each level of groups has the same one.

    >>> option_of("false_positive"), option_of("group_1")
    ('false-positive', 'group')
    """
    return part.rstrip("_0123456789").replace("_", "-")


def blanks_of(heading: dict[str, Any]) -> str | None:
    """Return what a blank line consists of, for `str.strip`: tabs may be empty fields."""
    return " \r\n" if heading.get("delimiter") == "\t" else None


def values_of(heading: dict[str, Any], columns: Columns, place: Place) -> Callable[..., list[Any]]:
    """Make the function from a line to the values of the columns, in the order of their parts.

    It takes the lines that follow as well, where quotes may reach over several. Where scores and
    labels are joined by id, NDJSON may leave out any of them.

    >>> heading = {"format": "csv", "header": ["id", "label", "score"], "delimiter": ","}
    >>> values_of(heading, Columns(), Place("scores.csv"))("a,1,0.5")
    ['0.5', '1']
    """
    if columns.comma:
        return _with_points(
            values_of(heading, replace(columns, comma=False), place), columns, place
        )
    if heading["format"] == "ndjson":
        return _json_values(columns, place)
    header, delimiter = heading["header"], heading["delimiter"]
    width, places = len(header), [header.index(name) for name in columns.named().values()]

    def values(line: str, more: Iterable[str] = ()) -> list[Any]:
        plain = line.rstrip("\r\n")
        if '"' in plain or "\r" in plain:
            row = _fields(line, delimiter, more, place.at)
        else:
            row = plain.split(delimiter)
        if len(row) != width:
            place.refuse(
                f"{len(row)} fields, but the header has {width}. Check delimiter and quotes."
            )
        return [row[at] for at in places]

    return values


def _with_points(
    values: Callable[..., list[Any]], columns: Columns, place: Place
) -> Callable[..., list[Any]]:
    """Turn the decimal commas of numbers into points; refuse points, which may be of thousands."""
    numbers = columns.are_numbers()
    names = list(columns.named().values())

    def pointed(value: Any, column: str) -> Any:
        if not isinstance(value, str):
            return value
        if "." in value:
            place.refuse(
                f"{quoted(value)} has a point, and with --decimal-comma numbers have none. Correct "
                "it, or leave out the option.",
                column=column,
            )
        return value.replace(",", ".")

    def all_values(line: str, more: Iterable[str] = ()) -> list[Any]:
        row = values(line, more)
        each = zip(row, names, numbers, strict=True)
        return [pointed(value, name) if number else value for value, name, number in each]

    return all_values


def _fields(line: str, delimiter: str, more: Iterable[str], where: Callable[[], str]) -> list[str]:
    if '"' not in line:
        row = line.rstrip("\r\n")
        if "\r" in row:
            _refuse_return(where())
        return row.split(delimiter)
    began = where()
    csv.field_size_limit(LONGEST_LINE)
    try:
        return next(csv.reader(chain((line,), more), delimiter=delimiter, strict=True))
    except csv.Error as error:
        if "\r" in line.rstrip("\r\n"):
            _refuse_return(began)
        hint = "; in a stream a row is one line" if more == () else ""
        raise Failure(f"{began}: {error}. Check the quotes{hint}.", BAD_INPUT) from None


def _json_values(columns: Columns, place: Place) -> Callable[..., list[Any]]:
    named, sparse = columns.named(), columns.id is not None

    def values(line: str, more: Iterable[str] = ()) -> list[Any]:
        try:
            record = json.loads(line)
        except ValueError as error:
            if "\r" in line.strip():
                _refuse_return(place.at())
            place.refuse(
                f"{quoted(line.strip())} is not JSON: {error}. One object per line is needed."
            )
        except RecursionError:
            place.refuse("JSON that is nested too deep.")
        if not isinstance(record, dict):
            place.refuse(f"{quoted(line.strip())} is not an object with named values.")
        if sparse:
            return [record.get(name) for name in named.values()]
        try:
            return [record[name] for name in named.values()]
        except KeyError:
            part = next(part for part, name in named.items() if name not in record)
            place.refuse(
                f"the key is missing, and it is needed for the {part}. There are: "
                f"{', '.join(map(quoted, record)) or 'none'}.",
                column=named[part],
            )

    return values


# ---- what values mean -----------------------------------------------------------------------


def labels_of(positive: str | None) -> Callable[[str], int | None]:
    """Make the function from the text of a label to 0 or 1, or to None when it is neither.

    >>> [labels_of(None)(text) for text in ("1", "False", "1.0", "yes")]
    [1, 0, 1, None]
    >>> [labels_of("yes")(text) for text in ("yes", "no", "")]
    [1, 0, None]
    """
    return _core.LabelRule(positive)


def as_text(value: Any) -> str:
    """Write the value of a JSON field as a CSV would; null is empty."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def as_number(value: Any, place: Place, column: str, part: str) -> float:
    """Read a number that has an order, or refuse it."""
    number = _core.number_of(value) if type(value) is str else _as_float(value)
    if number is None:
        if value in ("", None):
            place.refuse(f"the {part} is missing. Fill it or drop the row.", column=column)
        advice = "Correct it or drop the row."
        if _COMMA.match(str(value)):
            advice = "Is that a decimal comma? Files are read with --decimal-comma."
        place.refuse(f"{quoted(value)} is not a number. {advice}", column=column)
    if number != number:
        place.refuse(
            f"the {part} is nan, which has no order. Fill it or drop the row.", column=column
        )
    return number


def _as_float(value: Any) -> float | None:
    """Turn a value of JSON into a number; None where it is none."""
    try:
        return float(value)
    except (TypeError, OverflowError):
        return None


def as_weight(value: Any, place: Place, columns: Columns, finest: float) -> float:
    """Read a weight that is 0 or at least the `finest`, or refuse it."""
    column = columns.weight or ""
    number = as_number(value, place, column, "weight")
    if 0 < number < finest:
        unit = f"2**-{_core.finest_bits}" if columns.unit is None else columns.unit
        place.refuse(
            f"the weight is {number!r}, which rounds to 0 units of {unit} and would be lost. "
            f"Choose a finer one: --unit {number!r}",
            column=column,
        )
    if not 0 <= number < float("inf"):
        place.refuse(
            f"the weight is {number!r}; it must be 0 or more, and finite. Correct it or drop the "
            "row.",
            column=column,
        )
    return number


def as_cost(value: Any, place: Place, column: str, outcome: str) -> float:
    """Read what one outcome costs in a row, or refuse it."""
    number = as_number(value, place, column, f"cost of a {outcome.replace('_', ' ')}")
    if number - number != 0:
        place.refuse(f"the cost is {number!r}; it must be finite. Correct it.", column=column)
    return number


def refuse_label(
    value: Any, place: Place, columns: Columns, counts: Mapping[str, int] | None = None
) -> NoReturn:
    """Refuse a label, and list the labels with their counts where those are known."""
    if value in ("", None):
        place.refuse("the label is missing. Fill it or drop the row.", column=columns.label)
    rows = sum((counts or {}).values())
    first = "There are" if rows <= COUNTED else f"Among the first {rows:,} rows are"
    place.refuse(
        f"the label is {quoted(value)}, not 0 or 1. {which_labels(counts or {}, first)}",
        column=columns.label,
    )


def which_labels(counts: Mapping[str, int], first: str = "There are") -> str:
    """List the labels with their counts, and how to choose one; propose none.

    >>> which_labels({"ok": 47, "spam": 2})
    "There are 'ok' (47 rows), 'spam' (2 rows). Choose the positive one: --positive VALUE"
    """
    there = {text: count for text, count in counts.items() if count and text}
    if len(there) > MANY_LABELS:
        listed = (
            f"{first} more than {MANY_LABELS} different ones: is this the column of labels? "
            "Choose it with --label-column. "
        )
    else:
        rows = {text: f"{count:,} row{'s' * (count > 1)}" for text, count in there.items()}
        each = [f"{quoted(text)} ({rows[text]})" for text in sorted(there)]
        listed = f"{first} {', '.join(each)}. " if each else ""
    return f"{listed}Choose the positive one: --positive VALUE"
