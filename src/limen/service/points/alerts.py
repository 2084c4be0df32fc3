# SPDX-License-Identifier: Apache-2.0
"""Which alerts begin and end, decided from a point and a time alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limen.service.points.events import Event
from limen.times import length_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limen.service.points.definitions import Alerts
    from limen.service.points.point import Note, Point

__all__ = ["alert", "due"]


def due(point: Point, at: int, answers: dict[str, int] | None = None) -> list[Event]:
    """Return the alerts of a point that begin or end.

    `answers` are those of the account of the point, for floors.
    """
    wanted = point.definition.alerts
    if wanted is None:
        found = [(name, False, "") for name in point.alerts]
    else:
        found = list(_conditions(point, wanted, at, answers))
    events = [alert(point.alerts, name, holds, text, at, point.name) for name, holds, text in found]
    return [event for event in events if event is not None]


def alert(
    going_on: dict[str, Note], name: str, holds: bool, text: str, at: int, point: str = ""
) -> Event | None:
    """Return the beginning or the end of an alert, None where nothing has changed."""
    if holds == (name in going_on):
        return None
    if not holds:
        text = f"over: {going_on[name].text}"
    return Event(
        "alert", at, point, by="limen", more={"name": name, "ended": not holds, "text": text}
    )


def _conditions(
    point: Point, wanted: Alerts, at: int, answers: dict[str, int] | None
) -> Iterator[tuple[str, bool, str]]:
    lasting = point.lasting
    if wanted.answered is not None and (shares := lasting.shares(point, at)) is not None:
        before, now = shares
        text = f"{now:.2%} of the last day's scores were answered 1, {before:.2%} before that"
        yield "answered", abs(now / before - 1) > wanted.answered, text
    if wanted.labels_late is not None:
        late = lasting.labels >= 0 and at - lasting.since >= length_of(wanted.labels_late)
        text = f"no label for {wanted.labels_late}, while scores kept coming"
        yield "labels", late and point.scores > lasting.scores, text
    if wanted.regret is not None and point.samples():
        begun, rate = lasting.regret, point.regret_rate()
        text = f"regret per 1,000 decisions is {rate:.3g}, more than {wanted.regret:g}"
        yield "regret", begun is not None and at - begun >= length_of(wanted.regret_for), text
    if answers is not None:
        floors = (("recall", "missed", wanted.recall), ("precision", "false_1", wanted.precision))
        for name, wrong, floor in floors:
            of = answers["right_1"] + answers[wrong]
            if floor is not None and of:
                value = answers["right_1"] / of
                text = f"{name} of the answers is {value:.1%}, below the floor of {floor:.1%}"
                yield name, value < floor, text
