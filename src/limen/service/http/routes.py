# SPDX-License-Identifier: Apache-2.0
"""What a line of the table of routes holds: requests are read by it, openapi.json is made of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from limen.service.problems import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from limen.service.http.app import Call

__all__ = ["IN_PATHS", "NDJSON", "POINT", "Route", "Text", "Whole"]

NDJSON = "application/x-ndjson"


@dataclass(frozen=True)
class Text:
    """A parameter that is a text."""

    longest: int
    least: int = 0
    pattern: str | None = None

    def read(self, name: str, text: str | None) -> str | None:
        """Return the text that was given, or None."""
        if text is not None and len(text) > self.longest:
            raise Refused("invalid", f"{name} must have at most {self.longest:,} characters.")
        return text

    def schema(self) -> dict[str, Any]:
        """Describe it as JSON Schema does."""
        limits = {"minLength": self.least or None, "maxLength": self.longest}
        given = {"type": "string", **limits, "pattern": self.pattern}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Whole:
    """A parameter that is a whole number."""

    default: int = 0
    most: int = 2**53
    least: int = 0

    def read(self, name: str, text: str | None) -> int:
        """Return the number that was given, or the default."""
        if text is None:
            return self.default
        if not (text.isascii() and text.isdecimal() and len(text) < 19) or int(text) > self.most:
            raise Refused("invalid", f"{name} must be a whole number from 0 to {self.most}.")
        return int(text)

    def schema(self) -> dict[str, Any]:
        """Describe it as JSON Schema does."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


POINT = re.compile(r"^(?!\.\.?$)[A-Za-z0-9_.\-]+$")

IN_PATHS: dict[str, Text | Whole] = {
    "point": Text(64, 1, POINT.pattern),
    "id": Text(128, 1),
    "number": Whole(most=10**9 - 1, least=1),
    "seq": Whole(),
}


@dataclass(frozen=True)
class Route:
    """A method of a path: who may ask, what acts, what it takes and what it gives.

    The first line of the handler's docstring says what it does, in openapi.json too.

    Attributes
    ----------
    scope
        What a token needs; None where the handler decides.
    body, answer
        A type, or a content type; None where there is none.
    statuses
        Of answers, the usual one first.
    refusals
        Statuses besides those of every route, and of every body.
    query
        The parameters of the query that are read.
    listed
        Whether openapi.json describes it: not what only the owner of the data may ask.
    """

    method: str
    path: str
    scope: str | None
    act: Callable[[Call], Awaitable[Any]]
    body: Any = None
    answer: Any = dict
    statuses: tuple[int, ...] = (200,)
    refusals: tuple[int, ...] = ()
    query: Mapping[str, Text | Whole] = field(default_factory=dict)
    listed: bool = True
