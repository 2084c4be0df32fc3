# SPDX-License-Identifier: Apache-2.0
"""The table of routes: every line is whole, and openapi.json says the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from limen.service import SCOPES
from limen.service.http.api import TABLE
from limen.service.http.browser import files
from limen.service.http.openapi import document
from limen.service.http.routes import IN_PATHS, Text, Whole
from limen.service.problems import TITLES, Refused

SERVICE = Path(__file__).parents[1] / "docs/service.md"


def operations():
    for path, methods in json.loads(document(TABLE))["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_every_route_says_what_it_does_and_needs_a_scope_that_there_is():
    for route in TABLE:
        assert route.act.__doc__, route.path
        assert route.scope in {None, *SCOPES}
        assert {*route.refusals} <= {status for status, _ in TITLES.values()}


def test_every_scope_is_needed_somewhere():
    assert {*SCOPES} == {route.scope for route in TABLE} - {None}


def test_no_route_stands_twice():
    given = [(route.method, route.path) for route in (*TABLE, *files())]
    assert len(given) == len(set(given))


def test_the_description_lists_every_route_but_those_of_the_owner():
    listed = {name for name, _ in operations()}
    routes = {f"{each.method} {each.path.replace(':path', '')}" for each in TABLE}
    assert {"/v1/tokens", "/v1/tokens/{name}", "/v1/clock"} == {
        name.partition(" ")[2] for name in routes - listed
    }
    assert listed <= routes
    assert len(listed) == len({operation["operationId"] for _, operation in operations()})


def test_the_description_has_scopes_bodies_statuses_and_parameters_of_the_table():
    found = dict(operations())
    score = found["POST /v1/points/{point}/scores"]
    assert [{"token": ["score"]}, {}] == score["security"]
    body = score["requestBody"]["content"]["application/json"]["schema"]
    assert {"$ref": "#/components/schemas/Score"} == body
    assert {"200", "409", "410", "413", "415"} <= score["responses"].keys()
    assert {"200", "201", "202", "412"} <= found["PUT /v1/points/{point}"]["responses"].keys()
    gone = found["DELETE /session"]
    assert "content" not in gone["responses"]["204"]
    assert "413" not in gone["responses"]
    limit = found["GET /v1/points/{point}/proposals"]["parameters"][-1]
    assert {"type": "integer", "minimum": 0, "maximum": 100} == limit["schema"]


def test_the_guide_names_every_path_of_the_description():
    text = SERVICE.read_text()
    for name, _ in operations():
        last = name.rpartition("/")[2]
        shown = last.replace("{point}", "{p}").replace("{number}", "{n}")
        assert re.search(rf"/{re.escape(shown)}[?`,/ ]", text), name


@pytest.mark.parametrize("text", ["-1", "1.0", "", " 1", "²", "101", "9" * 30])
def test_a_number_of_the_query_is_whole_and_not_above_its_most(text):
    assert 20 == Whole(20, 100).read("limit", None)
    assert 100 == Whole(20, 100).read("limit", "100")
    with pytest.raises(Refused, match="limit must be a whole number from 0 to 100"):
        Whole(20, 100).read("limit", text)


def test_a_text_of_the_query_is_not_longer_than_described():
    assert "é" * 64 == Text(64).read("segment", "é" * 64)
    with pytest.raises(Refused, match="segment must have at most 64 characters"):
        Text(64).read("segment", "a" * 65)


def test_every_parameter_of_a_path_is_described():
    names = {name for route in TABLE if route.listed for name in re.findall(r"{(\w+)", route.path)}
    assert names == IN_PATHS.keys()
