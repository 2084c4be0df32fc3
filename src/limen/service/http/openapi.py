# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document, made of the table of routes and the types that it names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from limen import __version__
from limen.service.http.routes import IN_PATHS
from limen.service.problems import TITLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limen.service.http.routes import Route

__all__ = ["document"]

_EVERYWHERE = (400, 401, 403, 404, 405, 421, 422, 429, 500, 503)
_OF_BODIES = (413, 415)
_DESCRIPTIONS = {202: "Accepted, and not done yet.", 304: "As named in If-None-Match."}
_PROBLEM = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": [f"/problems/{name}" for name in TITLES]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "request": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["type", "title", "status", "detail"],
}
_REFUSED = {
    "description": "Refused; nothing was changed.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def document(table: Iterable[Route]) -> bytes:
    """Return the document as JSON."""
    listed = [route for route in table if route.listed]
    types = {each for route in listed for each in (route.body, route.answer)} - {None}
    named = sorted((each for each in types if not isinstance(each, str)), key=str)
    shapes, schemas = msgspec.json.schema_components(
        named, ref_template="#/components/schemas/{name}"
    )
    contents = {
        each: {"application/json": {"schema": shape}}
        for each, shape in zip(named, shapes, strict=True)
    }
    for name in ("Score", "Label"):  # the type is needed in a batch only
        schemas[name]["required"].remove("type")
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        path = re.sub(r":\w+", "", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, path, contents)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "limen serve", "version": __version__},
            "paths": paths,
            "components": {
                "schemas": {**schemas, "Problem": _PROBLEM},
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{"token": []}, {}],
        }
    )


def _operation(route: Route, path: str, contents: dict[Any, Any]) -> dict[str, Any]:
    what = (route.act.__doc__ or "").partition("\n")[0].removesuffix(".")
    answered = {} if route.answer is None else {"content": _content(route.answer, contents)}
    of_bodies = () if route.body is None else _OF_BODIES
    responses: dict[str, Any] = dict.fromkeys(
        map(str, (*_EVERYWHERE, *of_bodies, *route.refusals)), _REFUSED
    )
    for status in route.statuses:
        shown = {"description": _DESCRIPTIONS.get(status, what)}
        responses[str(status)] = shown if status == 304 else {**shown, **answered}
    named = path.strip("/").translate(str.maketrans("/", "_", "{}"))
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}_{named}",
        "summary": what,
        "responses": responses,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": IN_PATHS[name].schema()}
            for name in re.findall(r"{(\w+)}", path)
        ]
        + [
            {"name": name, "in": "query", "schema": given.schema()}
            for name, given in route.query.items()
        ],
    }
    if route.scope is not None:
        operation["security"] = [{"token": [route.scope]}, {}]
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(route.body, contents)}
    return operation


def _content(shape: Any, contents: dict[Any, Any]) -> Any:
    return {shape: {"schema": {"type": "string"}}} if isinstance(shape, str) else contents[shape]
