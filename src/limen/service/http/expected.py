# SPDX-License-Identifier: Apache-2.0
"""What a body should have held, in words: msgspec names its own types, and no alternatives."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

__all__ = ["expected"]

_NAMES: dict[Any, str] = {
    inspect.FloatType: "a number",
    inspect.IntType: "a whole number",
    inspect.BoolType: "true or false",
    inspect.StrType: "a text",
    inspect.NoneType: "null",
    inspect.StructType: "an object",
    inspect.DictType: "an object",
    inspect.ListType: "a list",
}


def expected(kind: Any, error: msgspec.ValidationError) -> tuple[str | None, str]:
    """Return which field of a body is wrong, and what is wrong with it.

    >>> from limen.service.bodies import Score
    >>> try:
    ...     msgspec.json.decode(b'{"id": "a", "score": "0.93"}', type=Score)
    ... except msgspec.ValidationError as error:
    ...     print(expected(Score, error)[1])
    score must be a number, "-inf" or "inf", got '0.93'
    """
    text, _, where = str(error).partition(" - at `")
    text = text.rstrip(".")
    field = where.rstrip("`").removeprefix("$").lstrip(".") or None
    found = _inside(_types(kind), field or "")
    if text.startswith("Object contains unknown field"):
        names = [name for each in found for name in _fields(each)]
        return field, f"{text}. Known here: {', '.join(dict.fromkeys(names))}"
    got = text.removeprefix("Invalid enum value ")
    if got == text:
        got = text.partition(", got ")[2].strip("`")
    words = [word for each in found for word in _words(each)]
    if not got or not words or "" in words:
        return field, text
    if "a number" in words:
        words = [word for word in words if word != "a whole number"]
    *most, last = dict.fromkeys(words)
    one_of = f"{', '.join(most)} or {last}" if most else last
    return field, f"{field or 'the body'} must be {one_of}, got {got}"


@cache
def _types(kind: Any) -> tuple[Any, ...]:
    return _flat(inspect.type_info(kind))


def _flat(found: Any) -> tuple[Any, ...]:
    """Return the alternatives of a type, without what is only said about it."""
    if isinstance(found, inspect.Metadata):
        return _flat(found.type)
    if isinstance(found, inspect.UnionType):
        return tuple(each for one in found.types for each in _flat(one))
    return (found,)


def _inside(found: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    """Return the alternatives at a place such as `thresholds[...].rule`."""
    for part in re.findall(r"\[[^]]*\]|\w+", path):
        inner: list[Any] = []
        for each in found:
            if isinstance(each, inspect.StructType):
                inner += [one.type for one in each.fields if one.encode_name == part]
            elif isinstance(each, inspect.DictType):
                inner.append(each.value_type)
            elif isinstance(each, inspect.ListType):
                inner.append(each.item_type)
        found = tuple(flat for one in inner for flat in _flat(one))
    return found


def _fields(found: Any) -> list[str]:
    if not isinstance(found, inspect.StructType):
        return []
    tag = [] if found.tag_field is None else [found.tag_field]
    return [*tag, *(each.encode_name for each in found.fields)]


def _words(found: Any) -> list[str]:
    if isinstance(found, inspect.LiteralType):
        return [json.dumps(value) for value in found.values]
    return [_NAMES.get(type(found), "")]
