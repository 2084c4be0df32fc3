# SPDX-License-Identifier: Apache-2.0
"""What the page stands on: sessions of browsers, and what other sites may not do."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from serving import Server, folder, limen, problem, serving, until

import limen as library

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
        config.write_text('hosts = ["limen.example"]\n')
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
    assert {"Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=43200"} == set(cookie.split("; ")[1:])
    assert server.owner not in cookie
    given = {"Cookie": f"other=1; {cookie.partition(';')[0]}"}
    assert 200 == server.ask("GET", "/v1/points", headers=given)[0]
    shown = server.ask("GET", "/session", headers=given)[1]
    assert "owner" == shown["name"]
    assert {"read", "approve"} <= set(shown["scopes"])
    for wrong in (cookie[:40], "limen=", "limen=owner.1.x", cookie.replace("owner", "admin")):
        problem(server.ask("GET", "/v1/points", headers={"Cookie": wrong}), "unauthorized")
    problem(server.ask("POST", "/session", {"token": "limen_owner_x"}, SAME), "unauthorized")
    status, _, headers = server.ask("DELETE", "/session", headers={**given, **SAME})
    assert 204 == status
    assert "limen=; Max-Age=0" in headers["set-cookie"]


def test_a_session_that_was_signed_out_is_worth_nothing_also_after_a_restart(server):
    given, other = (signed_in(server, server.owner) for _ in range(2))
    assert 204 == server.ask("DELETE", "/session", headers={**given, **SAME})[0]
    for _ in range(2):
        problem(server.ask("GET", "/v1/points", headers=given), "unauthorized")
        assert 200 == server.ask("GET", "/v1/points", headers=other)[0]
        server.kill()
        server.start()


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
    assert "'script'" == rules["require-trusted-types-for"]
    assert "'self'" == rules["script-src"] == rules["connect-src"] == rules["style-src"]
    assert ("DENY", "nosniff") == (headers["x-frame-options"], headers["x-content-type-options"])
    again = server.ask("GET", "/", headers={"If-None-Match": headers["etag"]})
    assert (304, b"") == again[:2]
    for path in ("/page/../api.py", "/page/%2e%2e/service/api.py", "/page/", "/page/api.py"):
        problem(server.ask("GET", path), "not-found")
    assert "no-store" == server.ask("GET", "/session")[2]["cache-control"]


def test_behind_tls_the_cookie_is_of_this_host_alone_and_it_ends():
    with folder() as made:
        secret, config = token(made / "d", "anna", "read"), made / "limen.toml"
        config.write_text('session = "1s"\n')
        running = Server(made / "d", "--behind-proxy", "--config", str(config))
        cookie = running.ask("POST", "/session", {"token": secret}, SAME)[2]["set-cookie"]
        assert cookie.startswith("__Host-limen=anna.")
        assert {"Secure", "Max-Age=1"} <= set(cookie.split("; "))
        time.sleep(1.1)
        given = {"Cookie": cookie.partition(";")[0]}
        nobody = running.ask("GET", "/session", headers=given)
        assert (200, None, []) == (nobody[0], nobody[1]["name"], nobody[1]["scopes"])
        problem(running.ask("GET", "/v1/points", headers=given), "unauthorized")
        assert 200 == running.ask("GET", "/", headers=given)[0]
        running.kill()


def test_the_overview_has_the_figures_of_the_samples_one_by_one():
    draw = random.Random(5)
    define = {
        "false_positive": 0.1,  # which no double is: sums of it would be rounded
        "false_negative": 0.5,
        "start": {"rule": "at_least", "threshold": 0.5},
        "segments": {"at_least": 90},
        "words": {"zero": "let it pass", "one": "hold <b>it</b>"},
        "change": {"age": "30d"},
    }
    with serving("--tick", "1s", define=define) as server:
        today = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
        days = [today - timedelta(days=each) for each in (41, 40, 2)]
        rows, lines = [], []
        for at in range(300):
            when, score = days[at % 3], round(draw.random(), 2)
            segment = ("north", "north/shop", "south")[at // 3 % 3]
            label = int(draw.random() < score) if at % 7 else None
            late = timedelta(hours=1 + at % 10)
            rows.append((when.date().isoformat(), score, label, segment, late, at % 3 == 2))
            line = {"type": "score", "id": f"i{at}", "score": score, "segment": segment}
            lines.append({**line, "time": when.isoformat()})
            if label is not None:
                known = {"type": "label", "id": f"i{at}", "label": label}
                lines.append({**known, "as_of": (when + late).isoformat()})
        assert {200} == {line["status"] for line in server.batch("fraud", lines)}
        found = server.ask("GET", "/v1/points/fraud/overview")[1]
        assert "optimum" in found, server.lines[-2]
        best = found["optimum"].get("threshold", float("-inf"))

        def cost(row: Any, threshold: float) -> int:
            _, score, label, *_ = row
            return (
                0
                if label is None
                else 5 * label * (score < threshold) + (1 - label) * (score >= threshold)
            )

        for day in found["days"]:
            of_day = [row for row in rows if row[0] == day["day"]]
            assert len(of_day) == day["scored"]
            assert sum(row[2] is not None for row in of_day) == day["labelled"]
            paid, lowest = (sum(cost(row, at) for row in of_day) for at in (0.5, best))
            assert (paid / 10, lowest / 10) == (day["cost"], day["cheapest"])
            assert (paid - lowest) / 10 == day["regret"]
            assert any(row[5] for row in of_day) == day["young"]
        assert 3 == len(found["days"])
        tiles = found["tiles"]
        paid, lowest = (sum(cost(row, at) for row in rows) for at in (0.5, best))
        assert (paid / 10, lowest / 10) == (tiles["cost"], tiles["cheapest"])
        assert 300 == tiles["scored"] == sum(day["scored"] for day in found["days"])
        late = sorted(row[4].total_seconds() for row in rows if row[2] is not None)
        assert late[(len(late) - 1) // 2] == found["delays"]["half"]
        assert len(late) == found["delays"]["labels"]
        old = [row for row in rows if not row[5]]
        for answer in (0, 1):
            own = [row for row in old if (row[1] >= 0.5) == answer]
            labelled = sum(row[2] is not None for row in own)
            assert {"scored": len(own), "labelled": labelled} == found["coverage"][str(answer)]
        for segment in found["segments"]:
            name = segment["segment"]
            own = [row for row in rows if not name or (row[3] + "/").startswith(name + "/")]
            assert sum(row[2] is not None for row in own) == segment["samples"]
            assert sum(cost(row, 0.5) for row in own) / 10 == segment["cost"]
            assert sum(row[1] >= 0.5 for row in own) == segment["answered_1"]
            assert sum(row[2] or 0 for row in own) == segment["ones"]
            cheapest = min(sum(cost(row, at / 100) for row in own) for at in range(102))
            assert cheapest / 10 == segment["cheapest"]
        names = ["", "north", "north/shop", "south"]
        assert names == sorted(segment["segment"] for segment in found["segments"])
        assert define["words"] == found["words"]
        low, high = found["interval"]["low"], found["interval"]["high"]
        assert float(low) <= found["recommended"]["threshold"] <= float(high)
        rows = until(lambda: server.ask("GET", "/v1/points/fraud/overview")[1]["over_time"])
        assert (best, low, high) == (rows[0]["optimum"], rows[0]["low"], rows[0]["high"])
        server.kill()
        assert 0 == limen("serve", "snapshot", "--data", str(server.data)).returncode
        assert 0 == limen("serve", "verify", "--data", str(server.data)).returncode
        server.start()
        assert rows[0] == server.ask("GET", "/v1/points/fraud/overview")[1]["over_time"][0]


def test_the_columns_without_an_order_are_those_of_a_snapshot():
    draw, ledger = random.Random(8), library.Ledger(library.OnlineThreshold(), correctable=50)
    for at in range(200):
        ledger.score(f"i{at}", draw.random(), at, draw.choice([0.5, 1, 3]), answer=at % 2)
        if at % 3:
            ledger.label(f"i{at}", draw.randrange(2), as_of=at + 1)
    ledger.label("no score yet", 1)
    ledger.forget("i199")
    found, stored = ledger._scored(), ledger.snapshot()
    weights = stored["firsts"] / 2.0 ** stored["bits"]
    dated = (stored["as_of_kinds"] != 2).astype(int)
    names = ("scores", "answers", "labels", "times", "as_of")
    columns = [*(stored[name] for name in names), dated, weights]
    rows = zip(stored["states"].tolist(), *(each.tolist() for each in columns), strict=True)

    assert sorted(zip(*(each.tolist() for each in found[:-1]), strict=True)) == sorted(
        row[1:] for row in rows if row[0] != 0
    )
