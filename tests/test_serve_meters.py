# SPDX-License-Identifier: Apache-2.0
"""What Prometheus reads of labels: how late they come, and how many scores have one."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from serving import Server, limen, serving

NOW = datetime.now(UTC).replace(microsecond=0)


def read(server: Server) -> dict[tuple[str, ...], float]:
    """The samples of labels and answers: name, answer and bound, with their value."""
    from prometheus_client.parser import text_string_to_metric_families

    text = server.ask("GET", "/metrics")[1].decode()
    return {
        (each.name, each.labels["answer"], each.labels.get("le", "")): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
        if family.name in ("limen_label_delay_seconds", "limen_answers")
        if each.labels["point"] == "fraud"
    }


def rows_of(
    draw: random.Random,
) -> tuple[list[dict[str, Any]], list[tuple[int, float]], Counter[str]]:
    """Scores and labels in any order; with answer and delay of each labelled score."""
    rows: list[dict[str, Any]] = []
    late: list[tuple[int, float]] = []
    answers: Counter[str] = Counter()
    for at in range(300):
        score, days = draw.random(), draw.choice([0.0, 0.001, 0.5, 3.0, 20.0])
        answer = int(score >= 0.5)
        answers[str(answer)] += 1
        time = NOW - timedelta(days=30)
        sent: list[dict[str, Any]] = [
            {"type": "score", "id": str(at), "score": score, "time": time.isoformat()}
        ]
        if draw.random() < (0.2 if answer else 0.9):
            known = (time + timedelta(days=days)).isoformat()
            sent.append({"type": "label", "id": str(at), "label": 1, "as_of": known})
            first = draw.random() < 0.2  # then it does not let anybody wait
            late.append((answer, 0.0 if first else 86400 * days))
            if first:
                sent.reverse()
            if draw.random() < 0.3:  # again, and a correction: both of one that is known
                sent.append(sent[1])
                sent.append({**sent[0 if first else 1], "label": 0, "as_of": NOW.isoformat()})
        rows += sent
    return rows, late, answers


def test_delays_and_coverage_are_those_of_the_labels_sent():
    with serving(define={"start": {"rule": "at_least", "threshold": 0.5}}) as server:
        rows, late, answers = rows_of(random.Random(5))
        assert {200} == {each["status"] for each in server.batch("fraud", rows)}
        one = {"id": "now", "score": 0.75}
        for _ in range(2):
            assert 200 == server.ask("POST", "/v1/points/fraud/scores", one)[0]
            label = {"id": "now", "label": 1}
            assert 200 == server.ask("POST", "/v1/points/fraud/labels", label)[0]
        answers["1"] += 1
        found = read(server)
        for answer in ("0", "1"):
            own = [delay for of, delay in late if str(of) == answer]
            more = int(answer == "1")  # the one of just now
            assert answers[answer] == found["limen_answers_total", answer, ""]
            name = "limen_label_delay_seconds"
            assert len(own) + more == found[f"{name}_count", answer, ""]
            assert sum(own) == pytest.approx(found[f"{name}_sum", answer, ""], abs=60)
            for bound in ("60.0", "600.0", "86400.0", "604800.0", "+Inf"):
                some = sum(delay <= float(bound) for delay in own) + more
                assert some == found[f"{name}_bucket", answer, bound]


def test_the_age_of_the_newest_snapshot_is_a_meter():
    """Without one since the start; with one since it was made; nothing else is aged."""

    def age(server: Server) -> float:
        lines = server.ask("GET", "/metrics")[1].decode().splitlines()
        (found,) = [each for each in lines if each.startswith("limen_snapshot_age_seconds ")]
        return float(found.split()[1])

    with serving() as server:
        first = age(server)
        assert 0 < first < 60
        assert age(server) > first
        made = limen("serve", "snapshot", "--data", str(server.data))
        assert 0 == made.returncode, made.stderr
        assert 0 <= age(server) < 30
        (path,) = (server.data / "snapshots").iterdir()
        os.utime(path, (time.time() - 5000,) * 2)
        assert 4990 < age(server) < 5100
