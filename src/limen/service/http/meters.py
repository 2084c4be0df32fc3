# SPDX-License-Identifier: Apache-2.0
"""What Prometheus reads: counts and sizes, never ids and never scores."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from limen.service.bodies import ScoreAnswer
from limen.service.log import snapshots
from limen.service.log.histograms import Histogram
from limen.service.problems import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limen.service.log.writer import Writer

__all__ = ["Meters"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Meters:
    """Counts of requests and events; the rest is read from the state when it is asked for."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self._requests = Histogram(_BOUNDS)
        self._events: dict[tuple[str, str, str], int] = {}
        self._answers: dict[tuple[str, int], int] = {}

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.add((route, status), seconds)

    def event(self, point: str, kind: str, repeated: bool, many: int = 1) -> None:
        """Count events by what became of them."""
        self._count(point, kind, "repeated" if repeated else "taken", many)

    @contextmanager
    def taking(self, point: str, kind: str, many: int = 1) -> Iterator[None]:
        """Count as refused what is refused inside: invalid, or while the disk takes no writes."""
        try:
            yield
        except Refused:
            self._count(point, kind, "refused", many)
            raise

    def _count(self, point: str, kind: str, outcome: str, many: int) -> None:
        key = (point, kind, outcome)
        self._events[key] = self._events.get(key, 0) + many

    def score(self, point: str, answer: ScoreAnswer) -> None:
        """Count a score."""
        self.event(point, "score", answer.repeated)
        if not answer.repeated:
            self._answered(point, answer.answer, 1)

    def _answered(self, point: str, answer: int, many: int) -> None:
        self._answers[point, answer] = self._answers.get((point, answer), 0) + many

    def events(self, point: str, answers: list[Any]) -> None:
        """Count the lines of a batch."""
        refused = sum(type(each) is dict for each in answers)
        scores = [each for each in answers if type(each) is ScoreAnswer]
        repeated = sum(each.repeated for each in scores)
        ones = sum(each.answer for each in scores if not each.repeated)
        self._answered(point, 1, ones)
        self._answered(point, 0, len(scores) - repeated - ones)
        self.event(point, "score", False, len(scores) - repeated)
        self.event(point, "score", True, repeated)
        self.event(point, "label", False, len(answers) - len(scores) - refused)
        self._count(point, "line", "refused", refused)

    def scraped(self, writer: Writer) -> tuple[bytes, bytes]:
        """Return all of it as text, and the type of that text."""
        registry = CollectorRegistry()
        registry.register(_Collected(self, writer))
        return generate_latest(registry), CONTENT_TYPE_LATEST.encode()


class _Collected:
    def __init__(self, meters: Meters, writer: Writer) -> None:
        self._meters, self._writer = meters, writer

    def collect(self) -> Iterator[Any]:
        writer, meters = self._writer, self._meters
        events = CounterMetricFamily(
            "limen_events", "Events by outcome.", labels=("point", "kind", "outcome")
        )
        for key, many in meters._events.items():
            events.add_metric(key, many)
        yield events
        answers = CounterMetricFamily(
            "limen_answers", "Scores by answer.", labels=("point", "answer")
        )
        for (point_name, answer), many in meters._answers.items():
            answers.add_metric((point_name, str(answer)), many)
        yield answers
        yield _histogram(
            "limen_request_seconds",
            "How long requests took.",
            ("route", "status"),
            meters._requests,
        )
        yield _histogram(
            "limen_label_delay_seconds",
            "From a score to its first label.",
            ("point", "answer"),
            writer.delays,
        )
        for name, text, read in (
            ("limen_threshold", "The threshold in effect.", _threshold),
            ("limen_cost", "Cost of the answers, over the samples that count.", _cost),
            ("limen_regret", "Cost minus that of the best threshold.", _regret),
            ("limen_samples", "Labelled samples that count.", _samples),
            ("limen_waiting_ids", "Ids without a label, or without a score.", _waiting),
        ):
            gauge = GaugeMetricFamily(name, text, labels=("point",))
            for point in writer.state.points.values():
                gauge.add_metric((point.name,), read(point))
            yield gauge
        newest = snapshots.stored(writer.folder)
        yield CounterMetricFamily("limen_commits", "Commits.", writer.commits)
        yield CounterMetricFamily("limen_commit_seconds", "In commits.", writer.commit_seconds)
        yield GaugeMetricFamily("limen_pending_events", "Not on disk yet.", writer.pending)
        yield GaugeMetricFamily("limen_log_seq", "The last event on disk.", writer.on_disk)
        yield GaugeMetricFamily(
            "limen_snapshot_seq", "The last event in a snapshot.", newest[0][0] if newest else 0
        )
        yield GaugeMetricFamily(
            "limen_snapshot_age_seconds",
            "Since the newest snapshot was made, or since the start where there is none.",
            snapshots.age(newest[0][1]) if newest else time.monotonic() - self._meters.begun,
        )
        yield GaugeMetricFamily(
            "limen_clock_wrong",
            "1 while the clock is not followed, or far behind the last event.",
            writer.clock.trouble(writer.state.at) is not None,
        )
        yield GaugeMetricFamily(
            "limen_writes_refused", "1 while they are.", writer.broken is not None
        )


def _histogram(name: str, text: str, labels: tuple[str, str], held: Histogram) -> Any:
    shown = HistogramMetricFamily(name, text, labels=labels)
    for (first, second), buckets, total in held.shown():
        shown.add_metric((first, str(second)), buckets, total)
    return shown


def _threshold(point: Any) -> float:
    return float((point.published or point.version).thresholds[""])


def _cost(point: Any) -> float:
    return float(point.cost())


def _regret(point: Any) -> float:
    return float(point.regret())


def _samples(point: Any) -> float:
    return float(point.samples())


def _waiting(point: Any) -> float:
    return float(max(0, len(point.memory) - point.samples()))
