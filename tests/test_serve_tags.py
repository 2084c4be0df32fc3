# SPDX-License-Identifier: Apache-2.0
"""ETags: what was seen is told from what is there now, also after a restore."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from serving import Server, limen, problem, serving, until
from test_serve_log import filled

from limen import Client
from limen.service.log import snapshots
from limen.service.log.writer import Writer

PATH = "/v1/points/fraud"


def at(threshold: float) -> dict[str, Any]:
    """A deployment of one threshold."""
    return {"thresholds": {"": {"rule": "at_least", "threshold": threshold}}}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def test_after_a_restore_a_client_answers_by_the_threshold_in_effect():
    with serving() as server:
        data, other, copy = (str(server.data.parent / name) for name in ("data", "other", "copy"))
        assert 0 == limen("serve", "backup", copy, "--data", data).returncode
        assert 2 == server.ask("POST", f"{PATH}/deploy", at(0.5))[1]["version"]
        tag = server.ask("GET", f"{PATH}/thresholds")[2]["etag"]
        server.options = (*server.options, "--bind", f"127.0.0.1:{server.port}")  # the same again
        with Client(f"http://127.0.0.1:{server.port}", every=0.02, refresh=0.05) as client:
            assert 0.5 == client.threshold("fraud")
            server.kill()
            assert 0 == limen("serve", "restore", copy, "--data", other).returncode
            server.data = server.data.parent / "other"
            server.start()
            assert 2 == server.ask("POST", f"{PATH}/deploy", at(0.9))[1]["version"]
            until(lambda: client.threshold("fraud") == 0.9)
        status, _, headers = server.ask("GET", f"{PATH}/thresholds", headers={"If-None-Match": tag})
        assert 200 == status
        assert tag != headers["etag"]


def test_a_log_that_is_accepted_without_its_end_has_other_tags(tmp_path):
    """As the seqs that were lost are given again."""
    tags = []
    for _ in range(2):
        writer = filled(tmp_path / "d", 2)
        point = writer.point("fraud")
        tags.append((point.version.tag(writer.era), point.tag(writer.era)))
        writer.release()
        snapshots.verified(tmp_path / "d", accept=True)
    assert not set(tags[0]) & set(tags[1])
    writer = Writer(tmp_path / "d", lambda message: None)
    again = writer.era
    writer.release()
    snapshots.verified(tmp_path / "d")
    writer = Writer(tmp_path / "d", lambda message: None)
    assert again == writer.era  # neither a start nor a look renews it
    writer.release()


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("{tag}", 304),
        ("W/{tag}", 304),  # compared weakly
        ('"a,b", W/"other" ,, {tag}', 304),
        ("*", 304),
        ('"{tag}"', 200),
        ("{bare}", 200),
        ('"other"', 200),
        ('x{tag}, "y"', 200),
        ("", 200),
    ],
)
def test_if_none_match_is_a_list_of_tags_or_a_star(server, given, status):
    for path in (f"{PATH}/threshold", f"{PATH}/thresholds", "/"):
        tag = server.ask("GET", path)[2]["etag"]
        header = {"If-None-Match": given.format(tag=tag, bare=tag.strip('"'))}
        found = server.ask("GET", path, headers=header)
        assert (status, tag) == (found[0], found[2]["etag"]), path


def test_of_two_admins_who_saw_the_same_definition_one_is_refused(server):
    path = "/v1/points/shared"
    tag = server.ask("PUT", path, {"false_negative": 2})[2]["etag"]
    assert tag == server.ask("GET", path)[2]["etag"]
    server.ask("POST", f"{path}/scores", {"id": "a", "score": 0.5})
    anna, ben = {"false_negative": 2, "maturity": "1d"}, {"false_negative": 3}
    status, _, headers = server.ask("PUT", path, anna, {"If-Match": tag})
    assert (200, True) == (status, headers["etag"] != tag)
    problem(server.ask("PUT", path, ben, {"If-Match": tag}), "precondition-failed")
    found = server.ask("GET", path)
    assert (2, "1d") == tuple(found[1]["definition"][key] for key in ("false_negative", "maturity"))
    # The same definition once more is another one: whoever saw the first has not seen this one.
    again = server.ask("PUT", path, anna, {"If-Match": headers["etag"]})[2]["etag"]
    assert again not in (tag, headers["etag"])
    server.ask("POST", f"{path}/deploy", at(0.5))
    problem(server.ask("PUT", path, ben, {"If-Match": again}), "precondition-failed")


def test_conditions_of_a_definition_are_those_of_the_standard(server):
    path = "/v1/points/conditions"
    problem(server.ask("PUT", path, {}, {"If-Match": "*"}), "precondition-failed")
    status, _, headers = server.ask("PUT", path, {}, {"If-None-Match": "*"})
    assert 201 == status
    tag = headers["etag"]
    for wrong in (
        {"If-None-Match": "*"},
        {"If-None-Match": f"W/{tag}"},
        {"If-Match": f"W/{tag}"},  # compared strongly
        {"If-Match": tag.strip('"')},
        {"If-Match": "9" * 5000},
        {"If-Match": '"other"'},
    ):
        status, found, _ = answer = server.ask("PUT", path, {}, wrong)
        problem(answer, "precondition-failed")
        assert (412, True) == (status, "ETag" in found["detail"] or "If-None" in found["detail"])
    tag = server.ask("PUT", path, {}, {"If-Match": f'"other", {tag}'})[2]["etag"]
    assert tag == server.ask("GET", path)[2]["etag"]
    assert 200 == server.ask("PUT", path, {}, {"If-Match": "*", "If-None-Match": '"other"'})[0]
