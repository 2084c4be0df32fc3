# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document: made of the bodies and one line for each path."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from limen import __version__
from limen.service import bodies
from limen.service.definitions import Definition, Rule
from limen.service.problems import TITLES

__all__ = ["document"]

_TYPES = (
    bodies.Score,
    bodies.Label,
    bodies.ScoreAnswer,
    bodies.LabelAnswer,
    bodies.Forgetting,
    bodies.Erasing,
    bodies.Deployment,
    bodies.Rollback,
    bodies.NewProposal,
    bodies.Decision,
    bodies.NewToken,
    bodies.SignIn,
    Definition,
    Rule,
)
_NDJSON = "application/x-ndjson"
_SEGMENT = ("segment", {"type": "string", "maxLength": 64})
_AFTER = ("after", {"type": "integer", "minimum": 0, "maximum": 2**53})
_BEFORE = ("before", {"type": "integer", "minimum": 0, "maximum": 2**53})
_NAME = r"^(?!\.\.?$)[A-Za-z0-9_.\-]+$"
_FEW = ("limit", {"type": "integer", "minimum": 0, "maximum": 100})
_LIMIT = ("limit", {"type": "integer", "minimum": 0, "maximum": 10000})

# method, path, what it does, body, status and answer, further refusals, parameters of the query
_PATHS: tuple[tuple[str, str, str, str | None, int, Any, str, tuple[Any, ...]], ...] = (
    ("post", "/v1/points/{point}/scores", "Answer a score and record it", "Score", 200,
     "ScoreAnswer", "409 410 413 415", ()),
    ("post", "/v1/points/{point}/labels", "Record a label", "Label", 200, "LabelAnswer",
     "409 410 413 415", ()),
    ("post", "/v1/points/{point}/events", "Record scores and labels, a line each", _NDJSON, 200,
     _NDJSON, "413 415", ()),
    ("post", "/v1/points/{point}/forget", "Forget ids and their samples", "Forgetting",
     202, "Erasing", "200 413 415", ()),
    ("get", "/v1/points/{point}/forget/{seq}", "Whether forgotten ids are gone from the disk",
     None, 200, "Erasing", "", ()),
    ("get", "/v1/points/{point}/threshold", "The threshold in effect", None, 200, {}, "304",
     (_SEGMENT,)),
    ("get", "/v1/points/{point}/thresholds", "The thresholds in effect, by segment", None, 200,
     {}, "304", ()),
    ("get", "/v1/points/{point}/decisions/{id}", "All events of one id", None, 200, {}, "410",
     ()),
    ("get", "/v1/points", "The points", None, 200, [], "", ()),
    ("get", "/v1/points/{point}", "A point: definition, version, counts, costs", None, 200, {},
     "", ()),
    ("put", "/v1/points/{point}", "Define a point, or redefine it", "Definition", 200, {},
     "201 202 409 412 413 415", (("reason", {"type": "string", "maxLength": 1000}),)),
    ("get", "/v1/points/{point}/overview", "All that the page shows of a point", None, 200, {}, "",
     ()),
    ("get", "/v1/points/{point}/curve", "The loss of thresholds, downsampled", None, 200, {}, "",
     (_SEGMENT,)),
    ("get", "/v1/points/{point}/history", "All versions", None, 200, [], "",
     (_AFTER,)),
    ("post", "/v1/points/{point}/deploy", "Deploy thresholds", "Deployment", 200, {},
     "409 413 415", ()),
    ("post", "/v1/points/{point}/rollback", "Go back to an earlier version", "Rollback", 200, {},
     "409 413 415", ()),
    ("get", "/v1/points/{point}/proposals", "The proposals, the newest first", None, 200, {}, "",
     (_BEFORE, _FEW)),
    ("post", "/v1/points/{point}/proposals", "Propose thresholds", "NewProposal", 201,
     {}, "409 413 415", ()),
    ("get", "/v1/points/{point}/proposals/{number}", "A proposal and what judges it", None, 200,
     {}, "", ()),
    ("post", "/v1/points/{point}/proposals/{number}/approve", "Deploy a proposal",
     "Decision", 200, {}, "409 413 415", ()),
    ("post", "/v1/points/{point}/proposals/{number}/reject", "Reject a candidate", "Decision", 200,
     {}, "409 413 415", ()),
    ("post", "/v1/points/{point}/proposals/{number}/withdraw", "Withdraw your own proposal",
     "Decision", 200, {}, "409 413 415", ()),
    ("get", "/v1/points/{point}/changes", "What changed, the newest first", None, 200, {}, "",
     (_BEFORE, _FEW)),
    ("get", "/v1/stream", "Figures and changes as server-sent events", None, 200,
     "text/event-stream", "", (("point", {"type": "string", "maxLength": 64}),)),
    ("get", "/v1/log", "Events after some seq, a page of lines", None, 200, _NDJSON, "410",
     (_AFTER, _LIMIT)),
    ("get", "/session", "The caller, and what it may do", None, 200, {}, "", ()),
    ("post", "/session", "Sign a browser in", "SignIn", 200, {}, "413 415", ()),
    ("delete", "/session", "Sign a browser out", None, 204, None, "", ()),
    ("get", "/healthz", "Whether the process runs", None, 200, {}, "", ()),
    ("get", "/readyz", "Whether writes are taken", None, 200, {}, "", ()),
    ("get", "/version", "The version of limen", None, 200, {}, "", ()),
    ("get", "/metrics", "Metrics for Prometheus", None, 200, "text/plain", "", ()),
    ("get", "/openapi.json", "This document", None, 200, {}, "", ()),
)  # fmt: skip

_EVERYWHERE = "400 401 403 404 405 421 422 429 500 503"


@cache
def document() -> bytes:
    """Return the document as JSON."""
    schemas = msgspec.json.schema_components(_TYPES, ref_template="#/components/schemas/{name}")[1]
    for name in ("Score", "Label"):  # the type is needed in a batch only
        schemas[name]["required"].remove("type")
    schemas["Problem"] = {
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
    paths: dict[str, dict[str, Any]] = {}
    for row in _PATHS:
        paths.setdefault(row[1], {})[row[0]] = _operation(*row)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "limen serve", "version": __version__},
            "paths": paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{"token": []}, {}],
        }
    )


def _operation(
    method: str,
    path: str,
    what: str,
    body: str | None,
    status: int,
    answer: Any,
    refusals: str,
    query: tuple[Any, ...],
) -> dict[str, Any]:
    problem = {
        "description": "Refused; nothing was changed.",
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        },
    }
    responses: dict[str, Any] = {
        code: problem
        for code in f"{_EVERYWHERE} {refusals}".split()
        if code not in ("200", "201", "202", "304")
    }
    responses[str(status)] = {"description": what}
    if answer is not None:
        responses[str(status)]["content"] = _content(answer)
    for code in {"200", "201"} & set(refusals.split()):
        responses[code] = responses[str(status)]
    if "202" in refusals:
        proposed = "Under four eyes: it is proposed, and nothing has changed."
        responses["202"] = {**responses[str(status)], "description": proposed}
    if "304" in refusals:
        responses["304"] = {"description": "As named in If-None-Match."}
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    shapes: dict[str, Any] = {
        "id": {"type": "string", "minLength": 1, "maxLength": 128},
        "number": {"type": "integer", "minimum": 1, "maximum": 10**9 - 1},
        "seq": _AFTER[1],
    }
    point = {"type": "string", "minLength": 1, "maxLength": 64, "pattern": _NAME}
    named = path.strip("/").translate(str.maketrans("/", "_", "{}"))
    operation: dict[str, Any] = {
        "operationId": f"{method}_{named}",
        "summary": what,
        "responses": responses,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": shapes.get(name, point)}
            for name in names
        ]
        + [{"name": name, "in": "query", "schema": schema} for name, schema in query],
    }
    if body is not None:
        operation["requestBody"] = {"required": True, "content": _content(body)}
    return operation


def _content(shape: Any) -> dict[str, Any]:
    if isinstance(shape, str) and "/" in shape:
        return {shape: {"schema": {"type": "string"}}}
    if isinstance(shape, str):
        return {"application/json": {"schema": {"$ref": f"#/components/schemas/{shape}"}}}
    kind = "array" if isinstance(shape, list) else "object"
    return {"application/json": {"schema": {"type": kind}}}
