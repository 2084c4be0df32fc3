# SPDX-License-Identifier: Apache-2.0
"""Odd requests and states: none of them is a failure of the server, and each is told in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from serving import Server, folder, limen, problem, serving, until
from test_serve_http import sent
from test_serve_log import filled

from limen.service.log.backup import backup
from limen.service.log.snapshots import verified
from limen.service.log.store import Damaged, Log

PATH = "/v1/points/fraud"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def test_a_length_of_thousands_of_digits_is_what_it_says(server):
    head = (
        b"POST /v1/points/fraud/scores HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Content-Type: application/json\r\nContent-Length: %b\r\n\r\n"
    )
    body = b'{"id": "zeros", "score": 1}'
    padded = str(len(body)).zfill(4402).encode()
    assert b" 200 " in sent(server, head % padded + body)  # as it says
    assert b" 500 " not in sent(server, head % (b"9" * 4402) + body)


def test_a_tag_of_thousands_of_digits_is_another_one(server):
    status = server.ask("PUT", PATH, {}, {"If-Match": '"' + "9" * 5000 + '"'})[0]
    assert status in (409, 412)


def test_a_request_has_one_host(server):
    ask = b"GET /v1/points HTTP/1.1\r\n%bConnection: close\r\n\r\n"
    mine, other = b"Host: localhost\r\n", b"Host: evil.example\r\n"
    assert b" 200 " in sent(server, ask % mine)
    for hosts in (mine + other, other + mine, mine + mine):
        assert b" 400 " in sent(server, ask % hosts)


@pytest.mark.parametrize("name", [".", ".."])
def test_a_point_is_not_named_by_what_addresses_leave_out(server, name):
    done = limen("serve", "point", "add", name, "--data", str(server.data))
    assert (3, "") == (done.returncode, done.stdout)
    assert "not by . or .." in done.stderr


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        ("scores", {"id": "a", "score": "0.93"}, "score must be a number"),
        ("scores", {"id": "a", "score": True}, "score must be a number"),
        ("scores", {"id": "a", "score": 1, "weight": "2"}, "weight must be a number"),
        ("scores", {"id": "a", "score": 1, "wieght": 2}, "`wieght`. Known here: type, id, score"),
        ("labels", {"id": "a", "label": 2}, "label must be 0 or 1, got 2"),
        ("labels", {"id": "a", "label": "1"}, "label must be 0 or 1, got str"),
        ("labels", {"id": "a", "label": 1, "at": 1}, "`at`. Known here: type, id, label"),
        ("forget", {"ids": ["a"], "why": ""}, "Known here: ids, reason"),
        (
            "deploy",
            {"thresholds": {"": {"rule": "most"}}},
            'rule must be "all", "at_least", "at_most" or "none"',
        ),
    ],
)
def test_a_refusal_says_what_was_expected(server, path, body, detail):
    found = server.ask("POST", f"{PATH}/{path}", body)
    problem(found, "invalid")
    assert detail in found[1]["detail"]
    assert found[1]["errors"][0]["detail"] in found[1]["detail"]


def test_an_unknown_field_of_a_definition_is_answered_with_those_of_its_place(server):
    found = server.ask("PUT", PATH, {"change": {"polcy": "manual"}})
    assert "`polcy`. Known here: policy, at_least, different" in found[1]["detail"]
    assert "change" == found[1]["errors"][0]["field"]


def test_the_description_says_how_lengths_of_time_and_points_are_written(server):
    document = server.ask("GET", "/openapi.json")[1]
    schemas = document["components"]["schemas"]
    for kind, names in {
        "Definition": ("time_to_live", "maturity", "correctable"),
        "Keep": ("length",),
        "Change": ("age", "shadow", "expires", "at_most_every"),
        "Alerts": ("regret_for", "labels_late"),
    }.items():
        for name in names:
            shown = schemas[kind]["properties"][name]
            (text,) = [each for each in shown.get("anyOf", [shown]) if each["type"] == "string"]
            assert re.search(text["pattern"], "90d")
            assert re.search(text["pattern"], "1w")
            for wrong in ("90 days", "1y", "0d", "", "90d!"):
                assert not re.search(text["pattern"], wrong)
    problem(server.ask("PUT", "/v1/points/new", {"time_to_live": "90 days"}), "invalid")
    (point,) = document["paths"]["/v1/points/{point}"]["get"]["parameters"]
    for name, good in {"a.b-c_1": True, "...": True, ".": False, "..": False, "a/b": False}.items():
        assert good == bool(re.search(point["schema"]["pattern"], name))


@pytest.mark.parametrize("act", [Log, verified, lambda folder: backup(folder, folder / "to")])
def test_a_missing_head_is_said_with_what_to_do(tmp_path, act):
    filled(tmp_path / "d").release()
    (tmp_path / "d" / "head").unlink()
    with pytest.raises(Damaged, match=r"the file head is missing.*verify --accept"):
        act(tmp_path / "d")
    verified(tmp_path / "d", accept=True)
    Log(tmp_path / "d").close()


def test_whoever_adds_a_point_is_told_that_nothing_is_deployed():
    with folder() as made:
        config = made / "limen.toml"
        config.write_text('tick = "1s"\n')
        add = ("serve", "point", "add", "fraud", "--data", str(made / "d"))
        done = limen(*add)
        assert {"rule": "none"} == json.loads(done.stdout)["start"]
        assert "every score is answered 0" in done.stderr
        server = Server(made / "d", "--config", str(config))
        assert "every score is answered 0" in server.ask("GET", PATH)[1]["warning"]
        server.ask("POST", f"{PATH}/scores", {"id": "a", "score": 0.9})

        def warnings() -> list[str]:
            said = [line["message"] for line in server.lines if line.get("level") == "warning"]
            return [line for line in said if "every score is answered 0" in line]

        assert "point 'fraud'" in until(warnings)[0]
        rule = {"": {"rule": "at_least", "threshold": 0.5}}
        server.ask("POST", f"{PATH}/deploy", {"thresholds": rule})
        assert server.ask("GET", PATH)[1]["warning"] is None
        server.kill()
        assert 1 == len(warnings())
