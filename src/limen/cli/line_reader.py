# SPDX-License-Identifier: Apache-2.0
"""The samples of a file of lines, opened once, so that it may be a pipe."""

from __future__ import annotations

import codecs
import io
import os
import stat
import sys
from array import array
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from limen.cli.exits import BAD_INPUT, FAILED, NOT_FOUND, BadRow, Failure
from limen.cli.packing import Damaged, packing_of, unpacked
from limen.cli.rows import (
    COUNTED,
    LONGEST_LINE,
    MANY_LABELS,
    Columns,
    Malformed,
    Place,
    as_cost,
    as_number,
    as_text,
    as_utf8,
    as_weight,
    blanks_of,
    heading_of,
    labels_of,
    refuse_kind,
    refuse_label,
    refuse_long_line,
    values_of,
)
from limen.reporting.samples import FileRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["csv_header", "is_regular", "name_of", "opened", "read_text"]

_BUFFER = 2**18


def is_regular(path: str) -> bool:
    """Whether a file can be read twice; a pipe, or standard input, cannot."""
    return path != "-" and stat.S_ISREG(os.stat(path).st_mode)


def name_of(path: str) -> str:
    """Name a file in a message."""
    return "standard input" if path == "-" else path


class _Rewound(io.RawIOBase):
    """A stream whose first bytes were read, and are given again."""

    def __init__(self, begin: bytes, rest: io.BufferedReader) -> None:
        self.begin, self.rest = begin, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.begin:
            return self.rest.readinto1(buffer)
        size = min(len(buffer), len(self.begin))
        buffer[:size], self.begin = self.begin[:size], self.begin[size:]
        return size


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file of text, or standard input for ``-``, unpacked where it is packed."""
    if path == "-" and sys.stdin is None:
        raise Failure("standard input is closed. Send it something, or name a file.")
    try:
        raw = cast("io.BufferedReader", sys.stdin.buffer) if path == "-" else open(path, "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise Failure(f"{path} does not exist. Check the name.", NOT_FOUND) from None
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}.", FAILED) from None
    try:
        begin = raw.read(16)  # and not peek: a pipe may give one byte at a time
        stream: IO[bytes] = io.BufferedReader(_Rewound(begin, raw), _BUFFER)
        packing = packing_of(begin)
        stream = unpacked(stream, packing, path)
        if packing is not None:
            try:
                begin = cast("io.BufferedReader", stream).peek(16)
            except Damaged:
                begin = b""  # reading the first line raises the error
        if begin.startswith(b"PAR1") and is_regular(path):
            raise Failure(f"{path} is Parquet, not text. Leave out --format.", BAD_INPUT)
        refuse_kind(begin, name_of(path))
        yield stream
    finally:
        if path != "-":
            raw.close()


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
        except Damaged as error:
            self.number += 1
            raise Failure(f"{self.at()}: {error}. Fetch the file again.", BAD_INPUT) from None
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > LONGEST_LINE:
            refuse_long_line(line, LONGEST_LINE, self)
        if self.number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        return as_utf8(line, self)

    def first(self) -> str:
        """Read the first line that is not blank."""
        for line in self:
            if not line.isspace():
                return line
        raise Failure(f"{self.name} is empty. Rows with scores and labels are needed.", BAD_INPUT)


def csv_header(path: str, columns: Columns) -> tuple[list[int], int, str]:
    """Places of the columns asked for, how many columns there are, and the delimiter."""
    with opened(path) as stream:
        lines = _Lines(stream, path)
        heading = heading_of(lines.first(), columns, "csv", lines, lines)
        header = heading["header"]
        places = [header.index(name) for name in columns.named().values()]
        return places, len(header), heading["delimiter"]


def read_text(
    path: str,
    format: str | None,
    columns: Columns,
    tick: Callable[[int], None] = lambda rows: None,
) -> FileRows:
    """Read the samples of a file; `tick` gets the count of rows now and then. O(n)."""
    with opened(path) as stream:
        lines = _Lines(stream, name_of(path))
        return _collect(_records(lines, format, columns), lines, columns, tick)


def _records(lines: _Lines, format: str | None, columns: Columns) -> Iterator[list[Any] | BadRow]:
    """Yield the values of each row, or what is wrong with it."""
    first = lines.first()
    heading = heading_of(first, columns, format, lines, lines)
    values, blanks = values_of(heading, columns, lines), blanks_of(heading)
    rows = lines if heading["format"] == "csv" else chain((first,), lines)
    while True:
        try:
            line = next(rows)
            if line.strip(blanks):
                yield values(line, lines)
        except StopIteration:
            return
        except BadRow as bad:
            yield bad


class _Collected:
    """The samples of a file, row by row."""

    def __init__(self, columns: Columns, lines: _Lines) -> None:
        self.columns, self.lines = columns, lines
        self.label_of, self.finest = labels_of(columns.positive), columns.finest
        self.weighted, self.grouped = columns.weight is not None, columns.group is not None
        self.labelled = columns.label is not None
        self.weight_at = 1 + self.labelled
        self.group_at = self.weight_at + self.weighted
        first_cost = self.group_at + self.grouped
        self.costs = [(at, *cost, array("d")) for at, cost in enumerate(columns.costs, first_cost)]
        self.scores, self.labels = array("d"), bytearray()
        self.weights, self.codes = array("d"), array("q")
        self.names: dict[str, int] = {}

    def add(self, record: list[Any], records: Iterator[list[Any] | BadRow]) -> None:
        """Add a row; raise `BadRow` and add nothing where it is malformed."""
        columns, lines = self.columns, self.lines
        score = as_number(record[0], lines, columns.score, "score")
        label: int | None = 0
        if self.labelled:
            label = self.label_of(record[1] if type(record[1]) is str else as_text(record[1]))
        if label is None:
            self._refuse_label(record, records)
        if self.weighted:
            weight = as_weight(record[self.weight_at], lines, columns, self.finest)
        if self.grouped:
            name = record[self.group_at]
            name = name if type(name) is str else as_text(name)
            if name == "":
                lines.refuse("the group is missing. Fill it or drop the row.", column=columns.group)
        prices = [as_cost(record[at], lines, name, what) for at, what, name, _ in self.costs]
        for (*_, values), price in zip(self.costs, prices, strict=True):
            values.append(price)
        if self.weighted:
            self.weights.append(weight)
        if self.grouped:
            self.codes.append(self.names.setdefault(name, len(self.names)))
        self.scores.append(score)
        self.labels.append(label)

    def _refuse_label(self, record: list[Any], records: Iterator[list[Any] | BadRow]) -> NoReturn:
        """Refuse a row without a label, or the file, which has other labels than 0 and 1."""
        if self.columns.skip or record[1] in ("", None):
            refuse_label(record[1], self.lines, self.columns)
        counts = _counted(self.labels, record, records, self.lines)
        try:
            refuse_label(record[1], self.lines, self.columns, counts)
        except BadRow as bad:
            raise Failure(str(bad), BAD_INPUT) from None

    def samples(self, malformed: Malformed) -> FileRows:
        """Return them all as arrays. O(n)."""
        codes = None
        if self.grouped:
            codes = np.array(self.codes, np.min_scalar_type(len(self.names)))  # to sort them fast
        return FileRows(
            np.frombuffer(self.scores, dtype=np.float64),
            np.frombuffer(self.labels, dtype=np.uint8),
            np.frombuffer(self.weights, dtype=np.float64) if self.weighted else None,
            codes=codes,
            names=tuple(self.names),
            costs={what: np.frombuffer(values, np.float64) for _, what, _, values in self.costs},
            skipped=malformed.count,
            examples=tuple(malformed.first),
        )


def _collect(
    records: Iterator[list[Any] | BadRow],
    lines: _Lines,
    columns: Columns,
    tick: Callable[[int], None],
) -> FileRows:
    collected, malformed = _Collected(columns, lines), Malformed()
    add = collected.add
    for count, record in enumerate(records):
        try:
            if isinstance(record, BadRow):
                raise record
            add(record, records)
        except BadRow as bad:
            malformed.add(str(bad))
        if count % 65536 == 65535:
            tick(count + 1)
    if malformed.count and not columns.skip:
        malformed.refuse()
    return collected.samples(malformed)


def _counted(
    known: bytearray, record: list[Any], records: Iterator[list[Any] | BadRow], lines: _Lines
) -> Counter[str]:
    """Count the labels before a record that has none of 0 and 1, and some after it."""
    counts = Counter({text: known.count(label) for label, text in enumerate("01")})
    line = lines.number
    with suppress(Failure):  # what is wrong further on does not matter here
        for each in chain([record], islice(records, COUNTED)):
            if isinstance(each, BadRow):
                continue
            counts[as_text(each[1])] += 1
            if len(counts) > MANY_LABELS + 3:
                break
    lines.number = line
    return counts
