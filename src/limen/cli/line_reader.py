# SPDX-License-Identifier: Apache-2.0
"""The samples of a file of lines, opened once, so that it may be a pipe.

Plain rows are read natively, a block at once; each other row by `limen.cli.rows`, which reads the
same values out of it or says what is wrong.
"""

from __future__ import annotations

import codecs
import io
import os
import stat
import sys
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from limen import _core
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

__all__ = ["Lines", "is_regular", "name_of", "native_rows", "opened", "read_text", "text_pieces"]

_BUFFER = 2**18
_BLOCK = 2**20  # bytes that are read at once
_PIECE = 2**20  # rows
_OFTEN = 2**16  # rows, after which progress is shown


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


class Lines(Place):
    """The lines of a stream as text; knows the number of the latest, and the block it is in."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        super().__init__(name)
        self.stream = cast("io.BufferedReader", stream)
        self.block, self.begin = b"", 0  # what was read, and how much of it is done

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        end, known = self.block.find(b"\n", self.begin) + 1, len(self.block) - self.begin
        while not end and known <= LONGEST_LINE and self._fill():
            end, known = self.block.find(b"\n", known) + 1, len(self.block)
        line = self.block[self.begin : end or len(self.block)]
        if not line:
            raise StopIteration
        self.done(len(line), 1)
        if len(line) > LONGEST_LINE:
            refuse_long_line(line, LONGEST_LINE, self)
        if self.number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        return as_utf8(line, self)

    def _fill(self) -> bool:
        """Read more after what is not done yet; False at the end."""
        try:
            more = self.stream.read1(_BLOCK)
        except Damaged as error:
            self.number += 1
            raise Failure(f"{self.at()}: {error}. Fetch the file again.", BAD_INPUT) from None
        self.block, self.begin = self.block[self.begin :] + more, 0
        return bool(more)

    def done(self, size: int, lines: int) -> None:
        """Go on after some bytes and lines."""
        self.begin += size
        self.number += lines

    def first(self) -> str:
        """Read the first line that is not blank."""
        for line in self:
            if not line.isspace():
                return line
        raise Failure(f"{self.name} is empty. Rows with scores and labels are needed.", BAD_INPUT)


def read_text(
    path: str,
    format: str | None,
    columns: Columns,
    tick: Callable[[int], None] = lambda rows: None,
) -> FileRows:
    """Read the samples of a file; `tick` gets the count of rows now and then. O(n)."""
    shown = 0
    with opened(path) as stream:
        rows = _Rows(Lines(stream, name_of(path)), format, columns)
        for count in rows.collect():
            if count >= shown + _OFTEN:
                shown = count
                tick(count)
    if rows.malformed.count and not columns.skip:
        rows.malformed.refuse()
    return rows.samples()


def text_pieces(path: str, format: str | None, columns: Columns) -> Iterator[FileRows]:
    """Yield the samples of a file in pieces; refuse one with malformed rows at its end. O(n)."""
    with opened(path) as stream:
        rows = _Rows(Lines(stream, name_of(path)), format, columns)
        for count in rows.collect():
            if count >= _PIECE:
                yield rows.samples()
    if rows.malformed.count:
        rows.malformed.refuse()
    yield rows.samples()


def native_rows(
    heading: dict[str, Any], columns: Columns, dated: bool | None = None
) -> _core.TextRows:
    """Make the native reader of plain rows, which also holds the values of all others.

    `dated` says whether times are dates or numbers; None: either, as they come.
    """
    named = list(columns.named().values())
    keys, places, delimiter, width = named, list[int](), ",", 0
    if heading["format"] == "csv":
        keys = []
        if heading["delimiter"].isascii():  # else no row is plain, as none has 0 fields
            delimiter, width = heading["delimiter"], len(heading["header"])
            places = [heading["header"].index(name) for name in named]
    return _core.TextRows(
        keys,
        places,
        delimiter,
        width,
        columns.label is not None,
        columns.weight is not None,
        columns.group is not None,
        columns.id is not None,
        columns.time is not None,
        len(columns.costs),
        columns.positive,
        columns.finest,
        columns.comma,
        dated,
    )


class _Rows:
    """The rows of a file: plain ones are read natively, the others one by one."""

    def __init__(self, lines: Lines, format: str | None, columns: Columns) -> None:
        self.lines, self.columns, self.malformed = lines, columns, Malformed()
        first = lines.first()
        heading = heading_of(first, columns, format, lines, lines)
        self.header = [] if heading["format"] == "csv" else [first]  # NDJSON has none
        self.values_of, self.blanks = values_of(heading, columns, lines), blanks_of(heading)
        self.label_of, self.finest = labels_of(columns.positive), columns.finest
        self.native = native_rows(heading, columns)

    def collect(self) -> Iterator[int]:
        """Read all rows; yield how many are held, often."""
        for record in self._records():
            try:
                if isinstance(record, BadRow):
                    raise record
                self._add(record)
            except BadRow as bad:
                self.malformed.add(str(bad))
            yield len(self.native)

    def _records(self, *, natively: bool = True) -> Iterator[list[Any] | BadRow]:
        """Yield the values of each row, or what is wrong with it; not of those read natively."""
        lines = self.lines
        while True:
            try:
                line = self.header.pop() if self.header else next(lines)
                if line.strip(self.blanks):
                    yield self.values_of(line, lines)
            except StopIteration:
                return
            except BadRow as bad:
                yield bad
            if natively:
                lines.done(*self.native.read(lines.block, lines.begin))

    def _add(self, record: list[Any]) -> None:
        """Add a row; raise `BadRow` and add nothing where it is malformed."""
        columns, lines, values = self.columns, self.lines, iter(record)
        score = as_number(next(values), lines, columns.score, "score")
        label: int | None = 0
        weight, group = 1.0, ""
        if columns.label is not None:
            label = self.label_of(as_text(next(values)))
        if label is None:
            self._refuse_label(record)
        if columns.weight is not None:
            weight = as_weight(next(values), lines, columns, self.finest)
        if columns.group is not None:
            group = as_text(next(values))
            if group == "":
                lines.refuse("the group is missing. Fill it or drop the row.", column=columns.group)
        costs = [as_cost(next(values), lines, name, what) for what, name in columns.costs]
        name = group.encode(errors="surrogatepass")
        self.native.add(score, label, weight, name, b"", (0, 0), costs)

    def _refuse_label(self, record: list[Any]) -> NoReturn:
        """Refuse a row without a label, or the file, which has other labels than 0 and 1."""
        if self.columns.skip or record[1] in ("", None):
            refuse_label(record[1], self.lines, self.columns)
        counts = self._counted(record)
        try:
            refuse_label(record[1], self.lines, self.columns, counts)
        except BadRow as bad:
            raise Failure(str(bad), BAD_INPUT) from None

    def _counted(self, record: list[Any]) -> Counter[str]:
        """Count the labels before a record that has none of 0 and 1, and some after it."""
        known = self.samples().labels.tobytes()
        counts = Counter({text: known.count(label) for label, text in enumerate("01")})
        line = self.lines.number
        with suppress(Failure):  # what is wrong further on does not matter here
            for each in chain([record], islice(self._records(natively=False), COUNTED)):
                if isinstance(each, BadRow):
                    continue
                counts[as_text(each[1])] += 1
                if len(counts) > MANY_LABELS + 3:
                    break
        self.lines.number = line
        return counts

    def samples(self) -> FileRows:
        """Return those since the last call as arrays. O(n)."""
        scores, labels, weights, codes, *_, costs = self.native.take()
        names = tuple(name.decode(errors="surrogatepass") for name in self.native.names)
        if codes is not None:
            codes = codes.astype(np.min_scalar_type(len(names)))  # small ones are sorted faster
        return FileRows(
            *(scores, labels, weights),
            codes=codes,
            names=names,
            costs={what: each for (what, _), each in zip(self.columns.costs, costs, strict=True)},
            skipped=self.malformed.count,
            examples=tuple(self.malformed.first),
        )
