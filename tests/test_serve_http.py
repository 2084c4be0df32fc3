# SPDX-License-Identifier: Apache-2.0
"""HTTP as strangers use it: every path, every refusal, and requests that are no requests."""

from __future__ import annotations

import json
import random
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from serving import Server, folder, limen, problem, serving, until

import limen as library
from limen.service.settings import settings_of

SEGMENTED = {"false_negative": 5, "segments": {"at_least": 2, "most": 3}}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(define={"false_negative": 5}) as made:
        made.ask("PUT", "/v1/points/shops", SEGMENTED)
        yield made


def test_a_score_a_deployment_a_label_and_what_it_cost(server):
    path = "/v1/points/fraud"
    status, found, headers = server.ask("POST", f"{path}/scores", {"id": "s1", "score": 0.75})
    assert (200, 0, "none") == (status, found["answer"], found["rule"])
    assert "nosniff" == headers["x-content-type-options"]
    rules = {"": {"rule": "at_least", "threshold": 0.5}}
    deployed = server.ask("POST", f"{path}/deploy", {"thresholds": rules, "reason": "review"})
    assert (200, 2) == (deployed[0], deployed[1]["version"])
    status, found, headers = server.ask("GET", f"{path}/threshold")
    assert ("at_least", 0.5, 2) == (found["rule"], found["threshold"], found["version"])
    known = {"If-None-Match": headers["etag"]}
    assert 304 == server.ask("GET", f"{path}/threshold", headers=known)[0]
    assert 304 == server.ask("GET", f"{path}/thresholds", headers=known)[0]
    assert 200 == server.ask("GET", f"{path}/thresholds", headers={"If-None-Match": '"1"'})[0]
    _, found, _ = server.ask("POST", f"{path}/scores", {"id": "s2", "score": "inf"})
    assert (1, 2, 0.5) == (found["answer"], found["version"], found["threshold"])
    found = server.ask("POST", f"{path}/labels", {"id": "s1", "label": 1})[1]
    assert (True, True) == (found["joined"], found["changed"])
    assert 5.0 == server.ask("GET", path)[1]["cost"]
    _, found, _ = server.ask("GET", f"{path}/decisions/s1")
    assert ["score", "label"] == [event["kind"] for event in found["events"]]
    assert [1, 2] == [each["version"] for each in server.ask("GET", f"{path}/history")[1]]
    seen = server.ask("GET", path)[1]["seq"]
    back = {"reason": "no", "seen": seen}
    assert 3 == server.ask("POST", f"{path}/rollback", back)[1]["version"]
    assert "none" == server.ask("GET", f"{path}/threshold")[1]["rule"]
    problem(server.ask("POST", f"{path}/rollback", back), "moved-on")
    problem(server.ask("POST", f"{path}/rollback", {"reason": "no"}), "invalid")
    problem(server.ask("POST", f"{path}/rollback", {**back, "reason": " "}), "invalid")
    wrong = {**back, "seen": 2**53, "version": 9}
    problem(server.ask("POST", f"{path}/rollback", wrong), "invalid")
    curve = server.ask("GET", f"{path}/curve")[1]["curve"]
    assert {"threshold": "-inf", "loss": 0.0} == curve[0]


def test_segments_answer_for_themselves_or_by_the_next_larger_one(server):
    rules = {
        "": {"rule": "none"},
        "north": {"rule": "at_least", "threshold": 0.5},
        "north/a": {"rule": "all"},
    }
    assert 200 == server.ask("POST", "/v1/points/shops/deploy", {"thresholds": rules})[0]
    found = {}
    for at, segment in enumerate(("north/a", "north/b", "south", "west", None)):
        body: dict[str, Any] = {"id": f"g{at}", "score": 0.25}
        if segment:
            body["segment"] = segment
        answer = server.ask("POST", "/v1/points/shops/scores", body)[1]
        found[segment] = (answer["answer"], answer["source"])
    assert {
        "north/a": (1, "north/a"),
        "north/b": (0, "north"),
        "south": (0, ""),
        "west": (0, ""),
        None: (0, ""),
    } == found
    state = server.ask("GET", "/v1/points/shops")[1]
    assert (3, 2) == (state["segments"], state["segments_beyond_limit"])
    shown = server.ask("GET", "/v1/points/shops/threshold?segment=north/z")[1]
    assert ("north", 0.5) == (shown["source"], shown["threshold"])
    assert "_" not in server.ask("GET", "/v1/points/shops/curve?segment=north")[1]
    wrong = {"id": "x", "score": 0.5, "segment": "a//b"}
    problem(server.ask("POST", "/v1/points/shops/scores", wrong), "invalid")
    wrong = {"id": "x", "score": 0.5, "segment": "a"}
    problem(server.ask("POST", "/v1/points/fraud/scores", wrong), "invalid")


def test_a_batch_is_answered_line_by_line_and_may_be_sent_again(server):
    rows = [{"type": "score", "id": f"b{at}", "score": at / 600} for at in range(600)]
    rows += [{"type": "label", "id": f"b{at}", "label": at % 2} for at in range(600)]
    rows[3] = {"type": "score", "id": "", "score": 0.5}
    rows[4] = {"type": "guess"}
    first = server.batch("fraud", rows)
    again = server.batch("fraud", rows)

    assert list(range(1, 1201)) == [line["line"] for line in first]
    assert [422, 422] == [line["status"] for line in first[3:5]]
    assert {200} == {line["status"] for line in first[:3] + first[5:]}
    for one, two in zip(first[:600], again[:600], strict=True):
        assert {**one, "repeated": True} == two if one["status"] == 200 else one == two
    assert [None, False, True] == [
        line.get("joined") for line in (first[0], first[603], first[605])
    ]
    assert not any(line["changed"] for line in again[600:])


@pytest.mark.parametrize("early", ["0001-01-01T00:00:00+23:59", "1899-12-31T23:59:59Z"])
def test_times_before_1900_are_refused_and_the_lines_beside_them_stand(server, early):
    path, tag = "/v1/points/fraud", early[:4]
    label = {"id": f"{tag}a", "label": 1, "as_of": early}
    problem(server.ask("POST", f"{path}/labels", label), "invalid")
    score = {"id": f"{tag}b", "score": 1, "time": early}
    problem(server.ask("POST", f"{path}/scores", score), "invalid")
    late = {"id": f"{tag}c", "score": 1, "time": "9999-12-31T23:59:59-23:59"}
    problem(server.ask("POST", f"{path}/scores", late), "from-the-future")
    rows = [
        {"type": "score", "id": f"{tag}d", "score": 1},
        {"type": "score", **score},
        {"type": "label", **label},
        {"type": "label", "id": f"{tag}d", "label": 1},
    ]
    assert [200, 422, 422, 200] == [line["status"] for line in server.batch("fraud", rows)]
    assert 200 == server.ask("GET", f"{path}/decisions/{tag}d")[0]
    assert server.log()


@pytest.mark.parametrize("id", ["a\nb", "a\n", "\n", "a/b"])
def test_any_id_can_be_audited(server, id):
    assert 200 == server.ask("POST", "/v1/points/fraud/scores", {"id": id, "score": 1})[0]
    status, found, _ = server.ask("GET", f"/v1/points/fraud/decisions/{quote(id, safe='')}")
    assert (200, id) == (status, found["id"])


def test_a_line_that_fails_unexpectedly_fails_alone():
    with folder() as made:
        server = Server(made / "d", fault="one-label-fails:2")
        server.ask("PUT", "/v1/points/fraud", {})
        rows = [{"type": "label", "id": f"f{at}", "label": 1} for at in range(3)]
        found = server.batch("fraud", rows)
        assert [200, 500, 200] == [line["status"] for line in found]
        assert (2, "/problems/failed") == (found[1]["line"], found[1]["type"])
        assert any("RuntimeError in" in line["message"] for line in server.lines)
        assert ["f0", "f2"] == [each["id"] for each in server.log() if each["kind"] == "label"]
        server.kill()


def test_the_answers_and_costs_are_those_of_the_library(server):
    draw, ledger = random.Random(4), library.Ledger(library.OnlineThreshold(false_negative=5))
    server.ask("PUT", "/v1/points/twin", {"false_negative": 5})
    rules = {"": {"rule": "at_least", "threshold": 0.3}}
    server.ask("POST", "/v1/points/twin/deploy", {"thresholds": rules})
    rows: list[dict[str, Any]] = []
    for at in range(300):
        score = round(draw.random(), 2)
        label = int(draw.random() < score * score)
        rows.append({"type": "score", "id": f"t{at}", "score": score, "weight": at % 3})
        rows.append({"type": "label", "id": f"t{at}", "label": label})
        ledger.score(f"t{at}", score, weight=at % 3, answer=int(score >= 0.3))
        ledger.label(f"t{at}", label)
    server.batch("twin", rows)
    found = server.ask("GET", "/v1/points/twin")[1]

    assert (ledger.cost, ledger.regret) == (found["cost"], found["regret"])
    assert ledger.threshold == found["optimum"][""]["threshold"]
    assert {"version", "definition", "samples", "newest"} <= set(found)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b"", "malformed"),
        (b"{", "malformed"),
        (b"[1]", "invalid"),
        (b"\xff\xfe", "malformed"),
        (b'{"id": "\xff", "score": 1}', "malformed"),
        (b'{"id": "\\ud800", "score": 1}', "malformed"),
        (b'{"id": "a", "score": NaN}', "malformed"),
        (b'{"id": "a", "score": "nan"}', "invalid"),
        (b'{"id": "a", "score": true}', "invalid"),
        (b'{"id": "a", "score": 1e999}', "invalid"),
        (b'{"id": 7, "score": 1}', "invalid"),
        (b'{"id": "", "score": 1}', "invalid"),
        (b'{"score": 1}', "invalid"),
        (b'{"id": "a", "score": 1, "wieght": 2}', "invalid"),
        (b'{"id": "a", "score": 1, "weight": -2}', "invalid"),
        (b'{"id": "a", "score": 1, "weight": 1e300}', "invalid"),
        (b'{"id": "a", "score": 1, "answer": 2}', "invalid"),
        (b'{"id": "a", "score": 1, "time": "yesterday"}', "invalid"),
        (b'{"id": "a", "score": 1, "time": "2026-01-01T00:00:00"}', "invalid"),
        (b'{"id": "a", "score": 1, "time": "9999-01-01T00:00:00Z"}', "from-the-future"),
        (b'{"id": "a", "score": 1, "time": "1900-01-01T00:00:00Z"}', "too-old"),
        (b'{"id": "%s", "score": 1}' % (b"a" * 129), "invalid"),
        ('{"id": "%s", "score": 1}'.replace("%s", "\N{SNOWMAN}" * 43).encode(), "invalid"),
        (b"[" * 5000, "invalid"),
        (b'{"id": "a", "score": 1, "x": ' + b"[" * 5000, "invalid"),
    ],
)
def test_what_is_no_score_is_refused_and_nothing_changes(server, body, name):
    server.ask("POST", "/v1/points/fraud/scores", {"id": "clock", "score": 0})
    before = server.ask("GET", "/v1/points/fraud")[1]["scores"]
    problem(server.ask("POST", "/v1/points/fraud/scores", raw=body), name)

    assert before == server.ask("GET", "/v1/points/fraud")[1]["scores"]


def test_paths_methods_and_types_that_are_not_there(server):
    ask, score = server.ask, {"id": "a", "score": 1}
    problem(ask("GET", "/nothing"), "not-found")
    problem(ask("GET", "/v1/points/../../etc/passwd"), "not-found")
    problem(ask("GET", "/v1/points/%2e%2e%2f%2e%2e/threshold"), "not-found")
    problem(ask("GET", "/v1/points/..%00/threshold"), "unknown-point")
    problem(ask("GET", "/v1/points/nobody/threshold"), "unknown-point")
    problem(ask("PUT", "/v1/points/a%20b", {}), "invalid")
    problem(ask("PUT", "/v1/points/far", {"false_negative": 1.3e274}), "invalid")
    problem(ask("PUT", "/v1/points/" + "a" * 65, {}), "invalid")
    problem(ask("DELETE", "/v1/points/fraud"), "method-not-allowed")
    problem(ask("GET", "/v1/points/fraud/decisions/nobody"), "not-found")
    problem(ask("GET", "/v1/log?after=-1"), "invalid")
    problem(ask("GET", "/v1/log?after="), "invalid")
    problem(ask("GET", "/v1/tokens"), "not-found")
    path, body = "/v1/points/fraud/scores", json.dumps(score).encode()
    problem(
        ask("POST", path, raw=body, headers={"Content-Type": "text/plain"}),
        "unsupported-media-type",
    )
    problem(
        ask("POST", path, raw=body, headers={"Content-Encoding": "gzip"}),
        "unsupported-media-type",
    )
    problem(ask("POST", path, {"id": "a", "score": 1, "x": "y" * 70_000}), "too-large")
    problem(ask("PUT", "/v1/points/new", {"memory": {"keep": "period"}}), "invalid")
    problem(ask("PUT", "/v1/points/new", {"time_to_live": "forever"}), "invalid")
    problem(ask("PUT", "/v1/points/new", {"false_positive": -1}), "invalid")
    problem(ask("PUT", "/v1/points/fraud", {}, headers={"If-Match": '"99"'}), "precondition-failed")


def test_another_host_or_another_site_is_refused(server):
    for host in ("evil.example", "127.0.0.1.evil.example", ""):
        problem(server.ask("GET", "/v1/points", headers={"Host": host}), "unknown-host")
    assert 200 == server.ask("GET", "/v1/points", headers={"Host": "localhost:1"})[0]
    site = {"Sec-Fetch-Site": "cross-site"}
    problem(server.ask("GET", "/v1/points", headers=site), "forbidden")
    assert "access-control-allow-origin" not in server.ask("GET", "/v1/points")[2]


def test_it_describes_itself(server):
    assert (200, {"status": "ok"}) == server.ask("GET", "/healthz")[:2]
    assert (200, {"status": "ready"}) == server.ask("GET", "/readyz")[:2]
    assert {"limen": library.__version__} == server.ask("GET", "/version")[1]
    assert "3.1.0" == server.ask("GET", "/openapi.json")[1]["openapi"]
    server.ask("POST", "/v1/points/fraud/scores", {"id": "clock", "score": 0})
    text = server.ask("GET", "/metrics")[1].decode()
    for name in ("limen_events_total", "limen_threshold", "limen_regret", "limen_log_seq"):
        assert f"\n{name}" in text
    assert "s1" not in text
    head = server.ask("HEAD", "/healthz")
    assert (200, b"") == (head[0], head[1] or b"")


# Requests that are no requests.


def sent(server: Server, *pieces: bytes, pause: float = 0.0) -> bytes:
    """Write bytes to the server, and read until it closes or is silent."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)
            connection.settimeout(3)
            found = b""
            while part := connection.recv(65536):
                found += part
        except (TimeoutError, ConnectionError):
            pass
        return found


def test_heads_that_are_too_large_or_malformed_end_the_connection():
    with serving() as server:
        line = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
        assert b" 431 " in sent(server, line + b"x: " + b"y" * 70_000)
        assert b" 431 " in sent(server, line, *[b"x: " + b"y" * 9_000 + b"\r\n"] * 5)
        assert b" 431 " in sent(server, line + b"x: " + b"y" * 40_000 + b"\r\n\r\n")
        large = b"GET /healthz?" + b"y" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert b" 431 " in sent(server, large)
        assert b" 400 " in sent(server, b"NONSENSE\r\n\r\n")
        assert b" 400 " in sent(server, b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n")
        assert b" 421 " in sent(server, b"GET /healthz HTTP/1.0\r\n\r\n")
        smuggled = (
            b"POST /v1/points/fraud/scores HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n"
        )
        assert b"200 OK" not in sent(server, smuggled)
        # A body that follows the head in one piece is no head.
        body = b'{"id": "a", "score": 1, "weight": 1' + b" " * 40_000 + b"}"
        head = (
            b"POST /v1/points/fraud/scores HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        assert b" 200 " in sent(server, head + body)
        assert b" 200 " in sent(server, head[:-1], head[-1:] + body)
        assert 200 == server.ask("GET", "/healthz")[0]


def test_slow_requests_end():
    with folder() as made:
        config = made / "limen.toml"
        config.write_text("head_seconds = 0.5\nbody_seconds = 0.5\n")
        server = Server(made / "d", "--config", str(config))
        line = b"POST /v1/points/fraud/scores HTTP/1.1\r\nHost: localhost\r\n"
        assert b" 408 " in sent(server, b"")  # nothing at all
        assert b" 408 " in sent(server, line)
        more = b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        server.ask("PUT", "/v1/points/fraud", {})
        assert b" 408 " in sent(server, line + more)
        server.kill()


def test_answers_have_names_of_their_own_or_none():
    with folder() as made:
        add = ("serve", "point", "add", "mail", "--data", str(made / "d"), "--one", "block it")
        half, both = limen(*add), limen(*add, "--zero", "let through")
        shown = json.loads(both.stdout)

    assert 2 == half.returncode
    assert "--zero and --one together" in half.stderr
    assert {"zero": "let through", "one": "block it"} == shown["words"]


# Tokens.


def test_tokens_allow_what_they_say_and_nothing_else():
    with folder() as made:
        data = str(made / "d")
        assert 0 == limen("serve", "point", "add", "fraud", "--data", data).returncode
        assert 0 == limen("serve", "point", "add", "other", "--data", data).returncode
        offline = limen("serve", "token", "add", "bot", "--scope", "score", "--data", data)
        assert 0 == offline.returncode, offline.stderr
        config = made / "limen.toml"
        config.write_text("rate = 5\n")
        server = Server(made / "d", "--config", str(config), "--access-log")
        path, score = "/v1/points/fraud/scores", {"id": "secret-id", "score": 0.123456}
        problem(server.ask("POST", path, score), "unauthorized")
        assert "Bearer" == server.ask("POST", path, score)[2]["www-authenticate"]
        server.token = "limen_bot_wrong"
        problem(server.ask("POST", path, score), "unauthorized")
        bot = server.token = offline.stdout.strip()
        assert 200 == server.ask("POST", path, score)[0]
        problem(server.ask("GET", "/v1/points"), "forbidden")
        problem(server.ask("PUT", "/v1/points/mine", {}), "forbidden")
        rows = [
            {"type": "score", "id": "z", "score": 1},
            {"type": "label", "id": "z", "label": 1},
        ]
        assert [200, 403] == [line["status"] for line in server.batch("fraud", rows)]
        until(lambda: server.ask("POST", path, score)[0] == 429)
        add = ("serve", "token", "add", "--data", data, "--scope", "read", "--point", "other")
        server.token = limen(*add, "reader").stdout.strip()
        assert ["other"] == [each["point"] for each in server.ask("GET", "/v1/points")[1]]
        problem(server.ask("GET", "/v1/points/fraud/threshold"), "forbidden")
        problem(server.ask("GET", "/metrics"), "forbidden")
        for name in ("limen", "control", "anonymous"):
            done = limen("serve", "token", "add", name, "--scope", "read", "--data", data)
            assert 3 == done.returncode
            assert "name must not be one of" in done.stderr
        server.token = limen(*add, "old", "--expires", "2026-01-01T00:00:00Z").stdout.strip()
        problem(server.ask("GET", "/v1/points"), "unauthorized")
        server.token = bot
        assert 0 == limen("serve", "token", "revoke", "bot", "--data", data).returncode
        problem(server.ask("POST", path, score), "unauthorized")
        assert 0 == server.stop()
        log = json.dumps(server.lines)
        assert '"token": "bot"' in log
        assert "secret-id" not in log
        assert "0.123456" not in log
        assert bot not in log


@pytest.mark.parametrize("running", [True, False])
def test_names_of_operators_are_taken_as_they_are(running):
    with serving() as server:
        data = ("--data", str(server.data))
        limen("serve", "token", "add", "anna", "--scope", "read", *data)
        if not running:
            server.kill()
        for name in ("fraud?x", "fraud#x", "a b", "%66raud"):
            done = limen("serve", "point", "add", name, *data)
            assert 3 == done.returncode
            assert "A point is named by" in done.stderr
        for name in ("anna?x", "an na"):
            done = limen("serve", "token", "revoke", name, *data)
            assert 3 == done.returncode
            assert f"There is no token '{name}'" in done.stderr
        assert '"anna"' in limen("serve", "token", "list", *data).stdout


def test_other_machines_need_tokens_and_tls():
    with folder() as made:
        data = str(made / "d")
        done = limen("serve", "--bind", "0.0.0.0:0", "--data", data)
        assert 3 == done.returncode
        assert "Give cert and key for TLS" in done.stderr
        done = limen("serve", "--bind", "0.0.0.0:0", "--behind-proxy", "--data", data)
        assert 3 == done.returncode
        assert "needs a token" in done.stderr
        done = limen("serve", "--check", "--bind", "127.0.0.1:99999", "--data", data)
        assert "bind must be an address and a port" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("rate", 0, "positive"),
        ("rate", -5, "positive"),
        ("head_seconds", float("nan"), "positive"),
        ("disk_low", 5.0, "a share from 0 to 1"),
        ("disk_low", float("nan"), "a share from 0 to 1"),
        ("keep_alive_seconds", -1, "0 or more"),
        ("drain_seconds", -0.5, "0 or more"),
        ("drain_seconds", float("nan"), "0 or more"),
        ("most_listeners", -1, "0 or more"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(name, value, what):
    with pytest.raises(ValueError, match=f"{name} must be {what}, got {value}"):
        settings_of(None, {name: value})


def test_a_missing_certificate_is_named_and_ipv6_is_written_in_brackets():
    with folder() as made:
        options = ("--bind", "127.0.0.1:0", "--data", str(made / "d"))
        done = limen("serve", "--cert", "/none/cert", "--key", "/none/key", *options)
        assert 3 == done.returncode
        assert "cert: there is no file '/none/cert'" in done.stderr
        if socket.has_ipv6:
            server = Server(made / "d", "--bind", "[::1]:0")
            ready = next(each for each in server.lines if each["message"] == "ready")
            assert f"http://[::1]:{server.port}" == ready["address"]
            server.kill()


def test_tls_is_spoken_where_there_is_a_certificate():
    with folder() as made:
        command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        subject = "-subj /CN=localhost -addext subjectAltName=DNS:localhost"
        files = ["-keyout", str(made / "key"), "-out", str(made / "cert")]
        try:
            subprocess.run(
                ["openssl", *command.split(), *subject.split(), *files],
                check=True, capture_output=True,
            )  # fmt: skip
        except FileNotFoundError:
            pytest.skip("openssl cannot be found")
        options = ("--cert", str(made / "cert"), "--key", str(made / "key"))
        server = Server(made / "d", *options)
        trust = ssl.create_default_context(cafile=str(made / "cert"))
        url = f"https://localhost:{server.port}/healthz"
        with urllib.request.urlopen(url, context=trust, timeout=10) as answer:
            assert b'{"status":"ok"}' == answer.read()
        server.kill()


def test_operators_copy_verify_and_snapshot_while_it_runs():
    with serving() as server:
        data = str(server.data)
        server.batch("fraud", [{"type": "score", "id": f"o{at}", "score": at} for at in range(9)])
        assert 0 == limen("serve", "snapshot", "--data", data).returncode
        to = str(server.data.parent / "backup")
        assert 0 == limen("serve", "backup", to, "--data", data).returncode
        found = json.loads(limen("serve", "verify", "--data", data).stdout)
        assert (10, [10]) == (found["last"], found["snapshots"])
        server.kill()
        other = str(server.data.parent / "other")
        assert 0 == limen("serve", "restore", to, "--data", other).returncode
        assert 10 == json.loads(limen("serve", "verify", "--data", other).stdout)["last"]
        listed = limen("serve", "point", "list", "--data", other).stdout
        assert ("fraud", 1) == (json.loads(listed)["point"], json.loads(listed)["version"])


def test_a_request_that_began_before_a_new_definition_counts_in_the_new_one():
    with serving() as server:
        server.ask("POST", "/v1/points/fraud/scores", {"id": "first", "score": 0.5})
        body = b'{"id": "slow", "score": 0.5}'
        head = (
            b"POST /v1/points/fraud/scores HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(head + body[:5])
            time.sleep(0.2)
            status, found, _ = server.ask("PUT", "/v1/points/fraud", {"false_negative": 9})
            assert (200, 9, 1) == (status, found["definition"]["false_negative"], found["ids"])
            connection.sendall(body[5:])
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        assert 2 == server.ask("GET", "/v1/points/fraud")[1]["ids"]
        server.kill()
        server.start()
        assert 2 == server.ask("GET", "/v1/points/fraud")[1]["ids"]


def test_who_may_not_send_is_refused_before_the_body_is_read():
    with folder() as made:
        data = str(made / "d")
        limen("serve", "point", "add", "fraud", "--data", data)
        limen("serve", "token", "add", "bot", "--scope", "score", "--data", data)
        server = Server(made / "d")
        for path in ("events", "scores"):
            kind = b"application/x-ndjson" if path == "events" else b"application/json"
            head = (
                b"POST /v1/points/fraud/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n"
                b"Content-Length: 60000\r\n\r\n{" % (path.encode(), kind)
            )
            assert b" 401 " in sent(server, head)
        server.kill()
