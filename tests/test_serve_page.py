# SPDX-License-Identifier: Apache-2.0
"""What the page stands on: sessions of browsers, and what other sites may not do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from serving import Server, folder, limen, problem

SAME = {"Sec-Fetch-Site": "same-origin"}


def token(server_data: Any, name: str, *scopes: str, more: tuple[str, ...] = ()) -> str:
    """Make a token, by the server's socket or without a server."""
    chosen = [part for scope in scopes for part in ("--scope", scope)]
    made = limen("serve", "token", "add", name, *chosen, *more, "--data", str(server_data))
    assert 0 == made.returncode, made.stderr
    return made.stdout.strip()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with folder() as made:
        data = made / "d"
        config = made / "limen.toml"
        config.write_text('session = "2s"\nhosts = ["limen.example"]\n')
        assert 0 == limen("serve", "point", "add", "fraud", "--data", str(data)).returncode
        owner = token(data, "owner", "read", "approve", "propose", "admin", "score", "label")
        running = Server(data, "--config", str(config))
        running.owner = owner  # type: ignore[attr-defined]
        yield running
        running.kill()


def signed_in(server: Server, secret: str) -> dict[str, str]:
    """Sign in, and return the header of the cookie."""
    status, found, headers = server.ask("POST", "/session", {"token": secret}, SAME)
    assert 200 == status, found
    return {"Cookie": headers["set-cookie"].partition(";")[0]}


def test_a_token_becomes_a_cookie_that_ends(server):
    status, found, headers = server.ask("POST", "/session", {"token": server.owner}, SAME)
    assert (200, "owner", False) == (status, found["name"], found["open"])
    cookie = headers["set-cookie"]
    assert cookie.startswith("limen=owner.")
    assert {"Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=2"} == set(cookie.split("; ")[1:])
    assert server.owner not in cookie
    given = {"Cookie": f"other=1; {cookie.partition(';')[0]}"}
    assert 200 == server.ask("GET", "/v1/points", headers=given)[0]
    shown = server.ask("GET", "/session", headers=given)[1]
    assert "owner" == shown["name"]
    assert {"read", "approve"} <= set(shown["scopes"])
    for wrong in (cookie[:40], "limen=", "limen=owner.1.x", cookie.replace("owner", "admin")):
        problem(server.ask("GET", "/v1/points", headers={"Cookie": wrong}), "unauthorized")
    problem(server.ask("POST", "/session", {"token": "limen_owner_x"}, SAME), "unauthorized")
    time.sleep(2.1)
    problem(server.ask("GET", "/session", headers=given), "unauthorized")
    assert 200 == server.ask("GET", "/", headers=given)[0]
    status, _, headers = server.ask("DELETE", "/session", headers={**given, **SAME})
    assert 204 == status
    assert "limen=; Max-Age=0" in headers["set-cookie"]


def test_a_session_ends_with_its_token_and_outlives_a_restart(server):
    given = signed_in(server, token(server.data, "brief", "read"))
    server.kill()
    server.start()
    assert 200 == server.ask("GET", "/v1/points", headers=given)[0]
    assert 0 == limen("serve", "token", "revoke", "brief", "--data", str(server.data)).returncode
    problem(server.ask("GET", "/v1/points", headers=given), "unauthorized")
    token(server.data, "brief", "read")
    problem(server.ask("GET", "/v1/points", headers=given), "unauthorized")  # another secret


def test_changes_by_cookie_come_from_the_same_origin_only(server):
    given, path = signed_in(server, server.owner), "/v1/points/fraud/deploy"
    body = {"thresholds": {"": {"rule": "none"}}, "reason": "try"}
    here = f"http://127.0.0.1:{server.port}"
    for headers in (
        {},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "cross-site", "Origin": here},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ):
        problem(server.ask("POST", path, body, {**given, **headers}), "forbidden")
    problem(server.ask("POST", "/session", body, {"Origin": "http://evil.example"}), "forbidden")
    text = {**given, **SAME, "Content-Type": "text/plain"}
    problem(server.ask("POST", path, body, text), "unsupported-media-type")
    assert 200 == server.ask("POST", path, body, {**given, **SAME})[0]
    assert 200 == server.ask("POST", path, body, {**given, "Origin": here})[0]
    evil = {**given, "Host": "evil.example", "Origin": "http://evil.example"}
    problem(server.ask("POST", path, body, evil), "unknown-host")


def test_a_session_allows_what_its_token_allows(server):
    given = {**signed_in(server, token(server.data, "reader", "read")), **SAME}
    assert 200 == server.ask("GET", "/v1/points/fraud", headers=given)[0]
    body = {"thresholds": {"": {"rule": "none"}}, "reason": "try"}
    problem(server.ask("POST", "/v1/points/fraud/deploy", body, given), "forbidden")


def test_the_page_cannot_be_framed_and_runs_nothing_of_others(server):
    status, body, headers = server.ask("GET", "/")
    assert 200 == status
    assert b"<!doctype html>" in body
    assert "text/html; charset=utf-8" == headers["content-type"]
    rules = dict(each.split(" ", 1) for each in headers["content-security-policy"].split("; "))
    assert "'none'" == rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"]
    assert "'self'" == rules["script-src"] == rules["connect-src"] == rules["style-src"]
    assert ("DENY", "nosniff") == (headers["x-frame-options"], headers["x-content-type-options"])
    again = server.ask("GET", "/", headers={"If-None-Match": headers["etag"]})
    assert (304, b"") == again[:2]
    for path in ("/page/../api.py", "/page/%2e%2e/service/api.py", "/page/", "/page/api.py"):
        problem(server.ask("GET", path), "not-found")
    assert "no-store" == server.ask("GET", "/session")[2]["cache-control"]


def test_behind_tls_the_cookie_is_of_this_host_alone():
    with folder() as made:
        secret = token(made / "d", "anna", "read")
        running = Server(made / "d", "--behind-proxy")
        cookie = running.ask("POST", "/session", {"token": secret}, SAME)[2]["set-cookie"]
        assert cookie.startswith("__Host-limen=anna.")
        assert {"Secure", "Max-Age=43200"} <= set(cookie.split("; "))
        running.kill()
