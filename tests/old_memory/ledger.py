# SPDX-License-Identifier: Apache-2.0
"""Scores now, labels later, corrections ever after: joined by id.

The ledger lets a model hold exactly those samples whose label is known and to be trusted, and
keeps account of what the answers cost that were given before the labels were known.
"""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from old_memory.entries import (
    EMPTY,
    GONE,
    HELD,
    OPEN,
    WAITING,
    YOUNG,
    Entry,
    entries_of,
    entry_columns,
)
from old_memory.fading import Fading
from old_memory.prices import Prices
from old_memory.timeline import Timeline
from old_memory.wrapping import (
    Row,
    Window,
    Wrapper,
    by_position,
    parameters,
    require_empty,
)
from limen.model import Model, asked
from limen.storage.packing import id_column, ids_of, plain_number, plain_time, whole_number
from limen.times import Period, Time, as_period, as_time, require_one_kind

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limen.units import Cost

__all__ = ["Ledger"]

_PERIODS = ("time_to_live", "maturity", "correctable")
_COSTS = ("false_positive", "false_negative")


class Ledger(Wrapper):
    """Join scores and labels by id, whenever they come, and keep account of the answers.

    Parameters
    ----------
    model
        An empty model or window: `OnlineThreshold`, `OnlineCut`, `OnlineCalibrator`, or a
        `LastN`, `LastPeriod` or `Fading` around one. From now on it belongs to the ledger.
    time_to_live
        How long a score waits for its label, and a label for its score. None: for ever.
    maturity
        How old a negative (label 0) must be before it counts. None: it counts at once. Shorter
        than the period of a `LastPeriod`, which would let no negative in otherwise.
    correctable
        How long after its score a label may be corrected; then the id is forgotten, and the
        sample stays. None: as long as the sample counts.
    false_positive, false_negative
        The costs, for a model that has none of its own, as `OnlineCalibrator`.

    Notes
    -----
    Time is what `score` and `advance` tell: the ledger's clock is the latest of them. Where no
    score has a time, each counts as one step, so that ``time_to_live=1000`` means a thousand
    scores. An age is reached at the very moment: of age `maturity` a negative counts, of age
    `time_to_live` a score without a label is gone.

    The model holds the samples whose label is known, except young negatives. Over a window,
    samples enter when they come to count, a `LastPeriod` looks at the time of the score, and a
    corrected sample keeps its place. What has left the window is no longer known: its id is
    forgotten, and a label for it waits for a new score as any label does.

    Memory is O(ids known). Over a window, `time_to_live` bounds it; over a plain model,
    `correctable` as well.

    `cost`, `regret` and `cost_ever` are sums of whole units and never drift. Each call takes
    what the model takes for one update or revert, and O(1) besides, but O(log n) for a score
    that comes late. Several threads may share one ledger: calls take turns.

    Examples
    --------
    >>> from limen import Ledger, OnlineThreshold
    >>> ledger = Ledger(OnlineThreshold(false_negative=5))
    >>> ledger.score("a", 0.9), ledger.score("b", 0.2)  # nothing is known yet: answer 0
    (0, 0)
    >>> ledger.label("a", 1), ledger.label("b", 0)
    (True, True)
    >>> ledger.cost, ledger.loss, ledger.regret  # the missed "a" cost 5
    (5.0, 0.0, 5.0)
    >>> ledger.label("b", 1)  # a correction
    True
    >>> ledger.threshold, ledger.cost
    (-inf, 10.0)
    >>> ledger.forget("a")
    True
    >>> len(ledger.model), ledger.cost
    (1, 5.0)
    """

    __slots__ = (
        "_clock",
        "_cost",
        "_counts",
        "_dated",
        "_ever",
        "_expired",
        "_final",
        "_given",
        "_ids",
        "_inner",
        "_labelled",
        "_lock",
        "_names",
        "_open",
        "_prices",
        "_trial",
        "_window",
        "_young",
    )

    def __init__(
        self,
        model: Any,
        *,
        time_to_live: Period | None = None,
        maturity: Period | None = None,
        correctable: Period | None = None,
        false_positive: Cost | None = None,
        false_negative: Cost | None = None,
    ) -> None:
        window = model if isinstance(model, Window) else None
        if window is None:
            require_empty(model)
        elif len(window):
            raise ValueError(
                f"model holds {len(window):,} samples already, whose ids nobody knows. Give an "
                "empty one."
            )
        elif window._leave is not None:
            raise ValueError("model belongs to another ledger already. Give one of its own.")
        if window is not None and maturity is not None:
            age = as_period(maturity, "maturity")
            require_one_kind(maturity=age, period=window._period)
            window._require_counted_at(age)
        self._begin(
            model,
            {
                "time_to_live": time_to_live,
                "maturity": maturity,
                "correctable": correctable,
                "false_positive": false_positive,
                "false_negative": false_negative,
            },
        )

    def _begin(self, model: Any, given: dict[str, Any]) -> None:
        periods = {
            name: None if given[name] is None else as_period(given[name], name) for name in _PERIODS
        }
        self._model = model
        self._window = window = model if isinstance(model, Window) else None
        self._inner = model if window is None else window.model
        if not isinstance(self._inner, Model):
            raise TypeError(
                f"model must be one of limen, because the ledger asks for its costs and unit; got "
                f"{self._inner!r}."
            )
        self._given = {**given, **periods}
        self._dated = require_one_kind(**periods, period=None if window is None else window._period)
        self._names = parameters(self._inner.update)
        self._labelled = self._names[1] == "label"
        self._prices = Prices(self._inner.settings["unit"], self._costs())
        self._trial = self._inner.empty()
        self._lock = Lock()
        self._ids: dict[Hashable, Entry] = {}
        self._open: Timeline[Entry] = Timeline()
        self._young: Timeline[Entry] = Timeline()
        self._final: Timeline[Entry] = Timeline()
        self._clock: Any = None
        self._counts: bool | None = None  # whether scores come without times; None: who knows
        self._cost = self._ever = self._expired = 0
        if self._window is not None:
            self._window._adopt(self._leave)

    def _costs(self) -> tuple[Cost, Cost] | None:
        given, own = self._given, self._inner.settings
        theirs = (given["false_positive"], given["false_negative"])
        if not self._labelled or "false_positive" in own:
            if theirs != (None, None):
                raise ValueError(
                    "the model knows what mistakes cost; give false_positive and false_negative "
                    "to the model only."
                )
            return (own["false_positive"], own["false_negative"]) if self._labelled else None
        return tuple(1 if cost is None else cost for cost in theirs)  # type: ignore[return-value]

    # What is asked of it.

    @property
    def settings(self) -> dict[str, Any]:
        """The periods and costs, by name, as they were given."""
        return dict(self._given)

    @property
    def newest(self) -> Time | None:
        """The latest time seen; None before the first."""
        clock: Time | None = self._clock
        return clock

    @property
    def cost(self) -> float:
        """What the answers given cost, for the samples that count now. O(1)."""
        if isinstance(self._window, Fading):
            return float(self._prices.grain) * self._window._spent_now()
        return self._prices.number(self._cost)

    @property
    def cost_ever(self) -> float:
        """The same for all samples that ever came to count, also if they left a window. O(1)."""
        return self._prices.number(self._ever)

    @property
    def regret(self) -> float:
        """How much `cost` exceeds the loss of the cheapest threshold in hindsight. O(1).

        It compares on the same samples, those that count now. It is negative when thresholds
        that moved did better than any single one. Exact as long as the loss is below 2**52
        units.
        """
        with self._lock:
            if isinstance(self._window, Fading):
                return self.cost - self._loss()
            return self._prices.number(self._cost - self._prices.of(self._loss()))

    @property
    def expired(self) -> int:
        """How many scores got no label, and labels no score, in their time to live."""
        return self._expired

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: Hashable) -> bool:
        return id in self._ids

    def score(
        self,
        id: Hashable,
        score: float,
        time: Any = None,
        weight: Any = 1,
        *,
        answer: Any = None,
    ) -> int:
        """Record a score and return the answer to it by the threshold of this moment. O(log n).

        Where something else decided, say a threshold that is reviewed first, pass the `answer`
        that was given. The same score again changes nothing and returns the same answer.

        >>> from limen import Ledger, OnlineThreshold
        >>> ledger = Ledger(OnlineThreshold())
        >>> ledger.score("a", 0.9, answer=1)
        1
        >>> ledger.score("a", 0.9)
        1
        """
        value, size = self._checked_score(score, weight)  # before the lock: it may call others
        with self._lock:
            entry = self._ids.get(id)
            if entry is not None and entry.state != WAITING:
                if (entry.score, entry.weight) != (value, size):
                    raise ValueError(
                        f"id {id!r} has score {entry.score!r} and weight {entry.weight!r} "
                        f"already, got {value!r} and {size!r}. Forget it first, or use another id. "
                        "Nothing was changed."
                    )
                return entry.answer
            if answer is not None and answer not in (0, 1):
                raise ValueError(f"answer must be 0 or 1, got {answer!r}. Nothing was changed.")
            moment = self._moment(time)
            self._tick(moment)
            self._counts = time is None
            given = int(value >= self._threshold()) if answer is None else int(answer)
            self._record(id, value, size, moment, given)
            return given

    def label(self, id: Hashable, *outcome: Any, **named: Any) -> bool:
        """Tell the label of an id: ``label(id, label)``, for `OnlineCut` ``(id, below, above)``.

        Return whether the id has a score; if not, the label waits for it. The same label again
        changes nothing, another one is a correction. O(log n).

        >>> from limen import Ledger, OnlineThreshold
        >>> ledger = Ledger(OnlineThreshold())
        >>> ledger.label("a", 1)
        False
        >>> ledger.score("a", 0.9)
        0
        >>> len(ledger.model), ledger.cost
        (1, 1.0)
        """
        known = self._checked_outcome(outcome, named)
        with self._lock:
            entry = self._ids.get(id)
            if entry is None:
                entry = self._ids[id] = Entry(id)
                self._await(entry, self._clock)
            if entry.state == WAITING:
                entry.outcome = known
                return False
            if entry.outcome != known:
                self._change(entry, known)
                self._settle_one(entry)
            return True

    def forget(self, id: Hashable) -> bool:
        """Remove every trace of an id; return whether there was any. O(log n).

        >>> from limen import Ledger, OnlineThreshold
        >>> Ledger(OnlineThreshold()).forget("a")
        False
        """
        with self._lock:
            entry = self._ids.get(id)
            if entry is None:
                return False
            if entry.held:
                self._release(entry)
                self._count(entry, 0)
                self._leave_place(entry)
            self._drop(entry)
            return True

    def advance(self, time: Any) -> None:
        """Let the clock show this time, if it is the latest so far.

        O(1) for each score that has run out, and what the model takes for each sample that has
        come to count or left the window.

        >>> from limen import Ledger, OnlineThreshold
        >>> ledger = Ledger(OnlineThreshold(), time_to_live=10)
        >>> ledger.score("a", 0.9, time=5)
        0
        >>> ledger.advance(15)
        >>> len(ledger), ledger.expired
        (0, 1)
        """
        with self._lock:
            if time is None:
                raise TypeError("advance() needs a time. Nothing was changed.")
            self._tick(self._moment(time, advancing=True))

    # What comes in.

    def _checked_score(self, score: Any, weight: Any) -> tuple[float, int | float]:
        """Let an empty model look at them, because it will see them only with the label."""
        if self._labelled:
            self._trial.update(score, 0, weight)
            self._trial.revert(score, 0, weight)
        else:
            self._trial.update(score, 0, 0)
            if weight != 1:
                raise TypeError(
                    f"weight is {weight!r}, but {type(self._inner).__name__} takes losses: put the "
                    "weight into them. Nothing was changed."
                )
        return float(score) + 0.0, plain_number(weight)

    def _checked_outcome(self, outcome: Row, named: dict[str, Any]) -> Row:
        names = self._names[1:2] if self._labelled else self._names[1:]
        given = by_position(names, outcome, named) if named else outcome
        if len(given) != len(names):
            raise TypeError(
                f"label() takes the id and {' and '.join(names)}, got {len(given)} values after "
                "the id. Nothing was changed."
            )
        if self._labelled:
            self._trial.update(0.0, *given, 0)
        else:
            self._trial.update(0.0, *given)
            self._trial.revert(0.0, *given)
        return tuple(plain_number(number) for number in given)

    def _moment(self, time: Any, advancing: bool = False) -> Any:
        """Read the time of a score; without one it is the next step."""
        if time is None:
            if self._counts is False or self._dated:
                raise ValueError(
                    "time is missing: earlier scores have one, or periods are timedeltas. "
                    "Nothing was changed."
                )
            return 1 if self._clock is None else self._clock + 1
        if self._counts and not advancing:
            raise ValueError(
                f"time is {time!r}, but earlier scores have none and count as one step each. "
                "Give all of them a time, or none. Nothing was changed."
            )
        dated = isinstance(time, datetime | np.datetime64) if self._dated is None else self._dated
        moment: Any = as_time(time, dated)
        try:
            if self._clock is not None:
                moment > self._clock  # noqa: B015 - whether they can be compared
        except TypeError:
            raise TypeError(
                f"time is {time!r}, but the newest is {self._clock!r}. Give all times of one kind, "
                "datetimes all with a time zone or all without. Nothing was changed."
            ) from None
        return moment

    def _record(self, id: Hashable, score: float, weight: Any, time: Any, answer: int) -> None:
        entry = self._ids.get(id)  # anew, because a label that waited may have expired
        waiting = entry is not None
        if entry is None:
            entry = Entry(id)
        before = entry.time
        entry.score, entry.weight, entry.time, entry.answer = score, weight, time, answer
        if waiting:
            try:
                self._change(entry, entry.outcome)
            except BaseException:
                entry.time = before
                raise
        else:
            entry.state = OPEN
            self._ids[id] = entry
        if entry.state != GONE:  # it may have come too late for the window
            self._line_up(entry)
            self._settle_one(entry)

    # Samples come to count, and cease to.

    def _sample(self, entry: Entry, outcome: Any) -> Row:
        if self._labelled:
            return (entry.score, *outcome, entry.weight)
        return (entry.score, *outcome)

    def _hold(self, entry: Entry, outcome: Any) -> None:
        sample = self._sample(entry, outcome)
        if self._window is None:
            self._inner.update(*sample)
        else:
            self._window._hold_entry(entry, sample)

    def _release(self, entry: Entry) -> None:
        sample = self._sample(entry, entry.outcome)
        if self._window is None:
            self._inner.revert(*sample)
        else:
            self._window._release_entry(entry, sample)

    def _change(self, entry: Entry, outcome: Any) -> None:
        """Let an entry that has a score have this label. An error changes nothing."""
        if self._is_young(entry.time, outcome):
            if entry.held:
                self._release(entry)
                self._count(entry, 0)
                self._leave_place(entry)
            entry.state, entry.outcome = YOUNG, outcome
        elif entry.held:
            self._correct(entry, outcome)
        else:
            self._enter(entry, outcome)

    def _correct(self, entry: Entry, outcome: Row) -> None:
        self._release(entry)
        try:
            self._hold(entry, outcome)
        except BaseException:
            self._hold(entry, entry.outcome)
            raise
        losses = self._prices.losses(outcome, entry.weight)
        self._count(entry, losses[entry.answer])
        entry.outcome = outcome
        if losses == (0, 0):
            entry.state = EMPTY
            self._leave_place(entry)

    def _enter(self, entry: Entry, outcome: Row) -> None:
        losses = self._prices.losses(outcome, entry.weight)
        if self._window is not None and not self._window._admits(entry.time):
            self._ever += losses[entry.answer]
            self._drop(entry)
            return
        self._hold(entry, outcome)
        entry.outcome = outcome
        if losses == (0, 0):
            entry.state = EMPTY
            return
        entry.state = HELD
        self._count(entry, losses[entry.answer])
        if self._window is not None:
            self._window._enter(entry, entry.time)

    def _leave(self, entry: Entry) -> None:
        """Take back a sample that has left the window."""
        self._release(entry)
        self._cost -= entry.cost
        self._drop(entry)

    def _leave_place(self, entry: Entry) -> None:
        if self._window is not None:
            self._window._blank(entry)

    def _count(self, entry: Entry, cost: int) -> None:
        """Let the answer to an entry cost this much."""
        change = cost - entry.cost
        if isinstance(self._window, Fading):
            self._window._spend(change, entry)
        else:
            self._cost += change
        self._ever += change
        entry.cost = cost

    def _drop(self, entry: Entry) -> None:
        """Forget all about an entry, which may stand in timelines still."""
        if entry.known:
            self._ids.pop(entry.id, None)
        entry.id, entry.known = None, False
        entry.clear(GONE)

    # Time goes by.

    def _tick(self, moment: Any) -> None:
        """Let it be this late, unless it is later already."""
        if self._clock is None or moment > self._clock:
            if self._window is not None:
                self._window._advance(moment)  # an error comes before any change
            first, self._clock = self._clock is None, moment
            self._dated = isinstance(moment, datetime)
            if first:
                for entry in self._ids.values():  # labels that came before any time
                    self._await(entry, moment)
            self._settle()

    def _await(self, entry: Entry, since: Any) -> None:
        """Let a label wait for its score from now on; before any time, from the first on."""
        entry.time = since
        if since is not None:
            self._line_up(entry)

    def _line_up(self, entry: Entry) -> None:
        """Let an entry be looked at again when it will be old enough for something."""
        scored = entry.state != WAITING
        if self._not_yet(entry.time, "time_to_live"):
            self._open.add(entry.time, entry)
        if scored and self._not_yet(entry.time, "maturity"):
            self._young.add(entry.time, entry)
        if scored and self._not_yet(entry.time, "correctable"):
            self._final.add(entry.time, entry)

    def _edge(self, period: str) -> Any:
        """Find the time that is so long ago; None when there is none."""
        length = self._given[period]
        if length is None or self._clock is None:
            return None
        try:
            return self._clock - length
        except OverflowError:  # before the first of all days, or more than a float holds
            return None if self._dated else self._clock - Fraction(length)

    def _not_yet(self, time: Any, period: str) -> bool:
        """Tell whether there is such a period, and this time is younger."""
        if self._given[period] is None:
            return False
        edge = self._edge(period)
        return edge is None or bool(time > edge)

    def _is_young(self, time: Any, outcome: Row) -> bool:
        negative = not outcome[0] if self._labelled else outcome[0] < outcome[1]
        return negative and self._not_yet(time, "maturity")

    def _settle(self) -> None:
        """Let negatives count that are old enough, and drop what has run out."""
        edge = self._edge("maturity")
        while edge is not None and (found := self._young.first()) and found[0] <= edge:
            entry = found[1]
            if entry.state == YOUNG:
                self._enter(entry, entry.outcome)
                self._settle_one(entry)
            self._young.pop()  # only now: after an error it is still there
        edge = self._edge("time_to_live")
        if edge is not None:
            for entry in self._open.until(edge):
                self._settle_one(entry)
        edge = self._edge("correctable")
        if edge is not None:
            for entry in self._final.until(edge):
                self._settle_one(entry)

    def _settle_one(self, entry: Entry) -> None:
        """Drop an entry that has run out, or its id when it cannot be corrected any more."""
        if entry.state in (WAITING, OPEN, EMPTY):
            edge = self._edge("time_to_live")
            if edge is not None and entry.time <= edge:
                self._expired += entry.state != EMPTY
                self._drop(entry)
        if entry.state in (YOUNG, HELD, EMPTY) and entry.known:
            edge = self._edge("correctable")
            if edge is not None and entry.time <= edge:
                del self._ids[entry.id]
                entry.known, entry.id = False, None

    # The answers of the model.

    def _threshold(self) -> float:
        inner = self._inner
        return float(inner.threshold(**self._own_costs()) if inner.takes_costs else inner.threshold)

    def _loss(self) -> float:
        costs = self._own_costs() if self._inner.takes_costs else {}
        return float(asked(self._model, "optimum", costs).loss)

    def _own_costs(self) -> dict[str, Any]:
        return {name: 1 if self._given[name] is None else self._given[name] for name in _COSTS}

    # Copies, and what is stored.

    def snapshot(self) -> dict[str, Any]:
        """Describe the model, and all ids in columns, in an order that depends on the ids. O(n)."""
        with self._lock:
            known = list(self._ids.values())
            ids, order = id_column([entry.id for entry in known])
            return {**self._described([known[at] for at in order]), "ids": ids}

    def _described(self, known: list[Entry]) -> dict[str, Any]:
        """Describe all but the ids; `known` are the entries that have one, in their order."""
        window = self._window
        entries = [*known, *self._nameless()]
        places, turns = dict.fromkeys(entries, -1), dict.fromkeys(entries, -1)
        if window is not None and window._by_arrival:
            places.update({entry: at for at, entry in enumerate(window._entries())})
            aging = [entry for _, entry in self._young.in_order() if entry in turns]
            turns.update({entry: at for at, entry in enumerate(aging)})
        if window is not None and not window._refilled:
            places.update({entry: entry.place for entry in entries if entry.held})
        return {
            "model": self._inner if window is None else window._shell(),
            **self._given,
            **{name: plain_time(self._given[name]) for name in _PERIODS},
            "clock": plain_time(self._clock),
            "counts": self._counts,
            "expired": self._expired,
            "cost": self._cost,
            "ever": self._ever,
            "bits": self._prices.bits,
            **entry_columns(entries, self._labelled),
            "places": np.array(list(places.values()), np.int64),
            "turns": np.array(list(turns.values()), np.int64),
        }

    def _nameless(self) -> list[Entry]:
        """List the entries that count, or will, but have no id any more, in a fixed order."""
        window = self._window
        entries = [] if window is None else [e for e in window._entries() if not e.known]
        entries += [e for _, e in self._young.in_order() if e.state == YOUNG and not e.known]
        if window is None or not window._by_arrival:
            entries.sort(key=Entry.order)
        return entries

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make a ledger of a `snapshot`. O(n log n)."""
        for name, least in (("cost", None), ("ever", None), ("expired", 0), ("bits", 0)):
            whole_number(snapshot, name, least)
        clock = snapshot["clock"]
        if clock is not None:
            clock = as_time(clock, isinstance(clock, datetime), "clock")
        ledger = cls.__new__(cls)
        ledger._begin(snapshot["model"], {name: snapshot[name] for name in (*_PERIODS, *_COSTS)})
        ledger._resume({**snapshot, "clock": clock}, ids_of(snapshot["ids"]))
        return ledger

    def _resume(self, snapshot: dict[str, Any], ids: list[Hashable]) -> None:
        self._clock, self._expired = snapshot["clock"], snapshot["expired"]
        self._counts = None if snapshot["counts"] is None else bool(snapshot["counts"])
        self._cost, self._ever = snapshot["cost"], snapshot["ever"]
        self._prices.resume(snapshot["bits"])
        if self._clock is not None:
            if self._dated not in (None, isinstance(self._clock, datetime)):
                raise ValueError("clock is of another kind than the periods")
            self._dated = isinstance(self._clock, datetime)
        entries, places = entries_of(snapshot, ids), snapshot["places"].tolist()
        for entry, place in zip(entries, places, strict=True):
            self._check(entry)
            if self._window is not None and not self._window._refilled and entry.held:
                entry.place = place
            if entry.known:
                self._ids[entry.id] = entry
        for _, entry in sorted(zip(places, entries, strict=True), key=itemgetter(0)):
            if self._window is not None and self._window._refilled and entry.held:
                self._hold(entry, entry.outcome)
                self._window._enter(entry, entry.time)
        if self._clock is not None:
            turns = zip(snapshot["turns"].tolist(), entries, strict=True)
            for _, entry in sorted(turns, key=lambda pair: (pair[1].time, pair[0])):
                self._line_up(entry)

    def _check(self, entry: Entry) -> None:
        """Raise unless this could be an entry of this ledger."""
        entry.score, entry.weight = self._checked_score(entry.score, entry.weight)
        if entry.outcome is not None:
            outcome = entry.outcome = self._checked_outcome(entry.outcome, {})
            if entry.held:
                entry.cost = self._prices.losses(outcome, entry.weight)[entry.answer]
        if entry.time is not None and entry.time > self._clock:
            raise ValueError("an entry from the future")

    def __repr__(self) -> str:
        ids = "1 id" if len(self) == 1 else f"{len(self):,} ids"
        return (
            f"<{type(self).__name__}: {ids}, cost {self.cost!r}, regret {self.regret!r}, "
            f"of {self._model!r}>"
        )
