# SPDX-License-Identifier: Apache-2.0
"""The samples of a file of lines, opened once, so that it may be a pipe."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import stat
import sys
import zlib
from array import array
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from limen.cli.exits import BAD_INPUT, FAILED, NOT_FOUND, Failure
from limen.cli.rows import (
    COUNTED,
    GZIP,
    LONGEST_LINE,
    MANY_LABELS,
    Columns,
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
from limen.reporting.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["csv_header", "is_gzip", "is_regular", "name_of", "opened", "read_text"]

_BUFFER = 2**18
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile)


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
    """Open a file of text, or standard input for ``-``, unpacked when it is gzipped."""
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
        packed = begin.startswith(GZIP)
        if path.endswith(".gz") and not packed:
            raise Failure(
                f"{path} is named .gz, but it does not begin as a gzip file does. Rename it, or "
                "pack it again.",
                BAD_INPUT,
            )
        if packed:
            unpacked = io.BufferedReader(
                cast("io.RawIOBase", gzip.GzipFile(fileobj=stream)), _BUFFER
            )
            stream = unpacked
            try:
                begin = unpacked.peek(16)
            except _BROKEN:
                begin = b""  # reading the first line raises the error
        if begin.startswith(b"PAR1") and is_regular(path):
            raise Failure(f"{path} is Parquet, not text. Leave out --format.", BAD_INPUT)
        refuse_kind(begin, name_of(path))
        yield stream
    finally:
        if path != "-":
            raw.close()


def is_gzip(path: str) -> bool:
    """Whether a file is gzipped, by its first bytes."""
    with open(path, "rb") as file:
        return file.read(2) == GZIP


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
        except _BROKEN as error:
            self.number += 1
            self.refuse(f"the gzip data ends or is damaged ({error}). Fetch the file again.")
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
) -> Samples:
    """Read the samples of a file; `tick` gets the count of rows now and then. O(n)."""
    with opened(path) as stream:
        lines = _Lines(stream, name_of(path))
        return _collect(_records(lines, format, columns), lines, columns, tick)


def _records(lines: _Lines, format: str | None, columns: Columns) -> Iterator[list[Any]]:
    first = lines.first()
    heading = heading_of(first, columns, format, lines, lines)
    values, blanks = values_of(heading, columns, lines), blanks_of(heading)
    for line in lines if heading["format"] == "csv" else chain((first,), lines):
        if line.strip(blanks):
            yield values(line, lines)


def _collect(
    records: Iterator[list[Any]], lines: _Lines, columns: Columns, tick: Callable[[int], None]
) -> Samples:
    label_of, finest = labels_of(columns.positive), columns.finest
    weighted, grouped = columns.weight is not None, columns.group is not None
    group_at, costs_at = 2 + weighted, 2 + weighted + grouped
    costs = [(*cost, array("d")) for cost in columns.costs]
    scores, labels, weights, codes = array("d"), bytearray(), array("d"), array("q")
    names: dict[str, int] = {}
    for count, record in enumerate(records):
        score = as_number(record[0], lines, columns.score, "score")
        label = label_of(record[1] if type(record[1]) is str else as_text(record[1]))
        if label is None:
            refuse_label(record[1], lines, columns, _counted(labels, record, records, lines))
        if weighted:
            weights.append(as_weight(record[2], lines, columns, finest))
        if grouped:
            name = record[group_at]
            name = name if type(name) is str else as_text(name)
            if name == "":
                lines.refuse("the group is missing. Fill it or drop the row.", column=columns.group)
            codes.append(names.setdefault(name, len(names)))
        for at, (outcome, column, values) in enumerate(costs, costs_at):
            values.append(as_cost(record[at], lines, column, outcome))
        scores.append(score)
        labels.append(label)
        if count % 65536 == 65535:
            tick(count + 1)
    return Samples(
        np.frombuffer(scores, dtype=np.float64),
        np.frombuffer(labels, dtype=np.uint8),
        np.frombuffer(weights, dtype=np.float64) if weighted else None,
        np.array(codes, np.min_scalar_type(len(names))) if grouped else None,  # to sort them fast
        tuple(names),
        costs={outcome: np.frombuffer(values, np.float64) for outcome, _, values in costs},
    )


def _counted(
    known: bytearray, record: list[Any], records: Iterator[list[Any]], lines: _Lines
) -> Counter[str]:
    """Count the labels before a record that has none of 0 and 1, and some after it."""
    counts = Counter({text: known.count(label) for label, text in enumerate("01")})
    line = lines.number
    with suppress(Failure):  # what is wrong further on does not matter here
        for each in chain([record], islice(records, COUNTED)):
            counts[as_text(each[1])] += 1
            if len(counts) > MANY_LABELS + 3:
                break
    lines.number = line
    return counts
