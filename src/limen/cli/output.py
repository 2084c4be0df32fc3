# SPDX-License-Identifier: Apache-2.0
"""How commands write: JSON, messages, and files that are written all at once or not at all."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from limen.cli.exits import FAILED, USAGE, Failure
from limen.storage.files import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "as_json",
    "as_line",
    "bold",
    "print_messages",
    "require_distinct",
    "require_writable",
    "written",
]


def as_json(value: Any) -> str:
    """Write JSON that every parser reads: what is not finite becomes text.

    >>> print(as_json({"threshold": float("-inf"), "lower": None}))
    {
      "threshold": "-inf",
      "lower": null
    }
    """
    return json.dumps(_finite(value), indent=2, ensure_ascii=False)


def as_line(facts: dict[str, Any]) -> str:
    r"""Write one object on one line.

    >>> as_line({"rows": 2, "threshold": float("inf")})
    '{"rows": 2, "threshold": "inf"}\n'
    """
    return json.dumps(_finite(facts), ensure_ascii=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, float) and value - value != 0:
        return repr(value)
    return value


def bold(text: str) -> str:
    """Make text stand out on a terminal, unless NO_COLOR asks not to."""
    wanted = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    return f"\x1b[1m{text}\x1b[0m" if wanted and os.environ.get("TERM") != "dumb" else text


def print_messages(*lines: str, quiet: bool = False) -> None:
    """Print lines for people on standard error."""
    if lines and not quiet:
        print(*lines, sep="\n", file=sys.stderr)


def require_distinct(
    paths: Sequence[str], why: str = "its samples would count twice. Name it once."
) -> None:
    """Refuse to read a file twice, by whatever names or links it is given."""
    known: dict[tuple[int, int], str] = {}
    for path in filter(os.path.isfile, paths):
        found = os.stat(path)
        first = known.get((found.st_dev, found.st_ino))
        if first is not None:
            same = "is named twice" if first == path else f"and {first} are the same file"
            raise Failure(f"{path} {same}; {why}", USAGE)
        known[found.st_dev, found.st_ino] = path


def require_writable(path: str | None, force: bool) -> None:
    """Refuse to replace a file, before any work is done."""
    if path is None or path == "-":
        return
    if os.path.isdir(path):
        raise Failure(f"{path} is a folder. Name a file in it.", USAGE)
    if os.path.exists(path) and not force:
        raise Failure(f"{path} already exists. Replace it with --force.", USAGE)
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise Failure(f"the folder {folder} does not exist. Make it first.", USAGE)


@contextmanager
def written(path: str | None) -> Iterator[IO[str]]:
    """Write text to a file, all or nothing, or to standard output where none is named."""
    if path is None or path == "-":
        yield sys.stdout
        return
    try:
        with (
            replacing(path) as handle,
            open(handle, "w", encoding="utf-8", newline="", closefd=False) as file,
        ):
            yield file
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror}.", FAILED) from None
