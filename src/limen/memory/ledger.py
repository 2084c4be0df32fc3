# SPDX-License-Identifier: Apache-2.0
"""Scores now, labels later, corrections ever after: joined by id.

The ledger lets a model hold exactly those samples whose label is known and to be trusted, and
keeps account of what the answers cost that were given before the labels were known.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from limen import _core
from limen.arrays import readable
from limen.columns import as_labels, as_numbers, as_scores, require_same_length
from limen.memory.base import Memory, Window, has_groups, innermost, of_all, require_plain
from limen.memory.fading import Fading
from limen.memory.windows import LastPeriod
from limen.model import Labelled, M_co
from limen.storage.packing import whole_number
from limen.times import Period, as_period, as_time_column, require_one_kind
from limen.units import exact_costs, exact_unit, unit_parts

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from limen.memory.trial import Trial
    from limen.units import Cost

__all__ = ["Ledger"]

_PERIODS = ("time_to_live", "maturity", "correctable", "horizon", "max_ahead")
_COSTS = ("false_positive", "false_negative")


class Ledger(Memory[M_co], _core.Ledger, kind="Ledger"):
    """Join scores and labels by id, whenever they come, and keep account of the answers.

    Parameters
    ----------
    model
        An empty model or window: `OnlineThreshold`, `OnlineCut`, `OnlineCalibrator`, or a
        `LastN`, `LastPeriod` or `Fading` around one. Or a `Grouped` of one of these but `LastN`
        and `Fading` by samples. From now on it belongs to the ledger.
    time_to_live
        How long a score waits for its label, and a label for its score. None: for ever.
    maturity
        How old a negative (label 0) must be before it counts. None: it counts at once. Shorter
        than the period of a `LastPeriod`, which would let no negative in otherwise.
    correctable
        How long after its score a label may be corrected; then the id is forgotten, and the
        sample stays. None: as long as the sample counts.
    horizon
        How old the score of a new id may be: an older one is answered and counted in `refused`,
        but not recorded. At most the shortest of `time_to_live`, `correctable` and the period of
        a `LastPeriod`, so that what is delivered again after it was dropped never counts twice.
        None: any age is taken.
    max_ahead
        How far after the newest time a score may be; a later one is refused likewise.
    false_positive, false_negative
        The costs, for a model that has none of its own, as `OnlineCalibrator`.

    Notes
    -----
    Time is what `score` and `advance` are given: the ledger's clock is the latest of them. Where no
    score has a time, each counts as one step, so that ``time_to_live=1000`` means a thousand
    scores. An age is reached at the very moment: of age `maturity` a negative counts, of age
    `time_to_live` a score without a label is gone.

    The model holds the samples whose label is known, except young negatives. Over a window,
    samples enter when they come to count, a `LastPeriod` looks at the time of the score, and a
    corrected sample keeps its place. What has left the window is no longer known: its id is
    forgotten, and a label for it waits for a new score as any label does.

    An id is a str, an int, bytes, a `uuid.UUID` or a tuple of these; 1, "1" and b"1" are three
    ids, and True is 1. Memory is O(ids known), about 100 bytes each. Over a window,
    `time_to_live` bounds it; over a plain model, `correctable` as well.

    Over groups, `score` takes the `group` of each sample, and answers by the threshold of that
    group, or of the next larger one where it holds fewer than `at_least` samples. There is one
    clock for all. `cost` is that of all answers, and `regret` compares it with the cheapest
    single threshold for all samples.

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

    __slots__ = ()

    _native = _core.Ledger

    _settings = (*_PERIODS, *_COSTS)

    def __init__(
        self,
        model: M_co,
        *,
        time_to_live: Period | None = None,
        maturity: Period | None = None,
        correctable: Period | None = None,
        horizon: Period | None = None,
        max_ahead: Period | None = None,
        false_positive: Cost | None = None,
        false_negative: Cost | None = None,
    ) -> None:
        if not isinstance(of_all(model), Window):
            require_plain(of_all(model))
        given = {
            "time_to_live": time_to_live,
            "maturity": maturity,
            "correctable": correctable,
            "horizon": horizon,
            "max_ahead": max_ahead,
        }
        window = of_all(model)
        periods = _checked_periods(given, window)
        if periods["maturity"] is not None:
            _require_counted_at(periods["maturity"], window)
        if periods["horizon"] is not None:
            _require_short(periods, window)
        costs = {"false_positive": false_positive, "false_negative": false_negative}
        self._begin(model, {**periods, **costs})

    def _begin(self, model: Any, settings: dict[str, Any]) -> None:
        window, groups = of_all(model), None
        periods = _checked_periods({name: settings[name] for name in _PERIODS}, window)
        costs = {name: settings[name] for name in _COSTS}
        lengths = (*periods.values(), _own_period(window))
        if has_groups(model):
            from limen.memory.grouped import LedgerGroups, require_clocked

            require_clocked(window)
            groups = LedgerGroups(model._models.empty, window)
        shown, least = (None, 0) if groups is None else (model, model.at_least)
        _core.Ledger.__init__(self, window, lengths, _whole_costs(window, costs), shown, least)
        self._given = {**periods, **costs}
        if groups is not None:
            model._models = groups

    # Groups: the native memory knows them by number.

    def _number(self, group: Hashable) -> int:
        """Return the number of a group, which is made where it is new. O(depth)."""
        held = self._inner._models.held.get(group) if type(group) is str else None
        if held is None:
            from limen.memory.grouped import join

            held = join(self, group)
        return int(innermost(held)._group)

    def _numbers(self, groups: Any, rows: int) -> NDArray[np.uint32]:
        if groups is None and not has_groups(self.model):
            return np.empty(0, np.uint32)
        if groups is None or not has_groups(self.model):
            raise TypeError(
                "groups are missing: the model has some. Give each score its own. Nothing was "
                "changed."
                if groups is None
                else "groups are given, but the model has none. Make a Ledger(Grouped(...)), or "
                "leave them out. Nothing was changed."
            )
        from limen.groups.paths import coded

        paths, places = coded(groups, rows)
        return np.array([self._number(path) for path in paths], np.uint32)[places]

    def _places_of(self, other: Any) -> NDArray[np.uint32]:
        if not has_groups(self.model):
            return super()._places_of(other)
        from limen.memory.grouped import places_in

        return places_in(self, other)

    def _empty_model(self) -> Any:
        return self._inner._models.empty if has_groups(self.model) else super()._empty_model()

    @classmethod
    def _model_of(cls, parts: dict[str, Any]) -> Any:
        if "paths" not in parts:
            return parts["model"]
        from limen.groups.grouped import Grouped

        return Grouped(parts["model"], at_least=whole_number(parts, "at_least", least=1))

    def _columns(self) -> dict[str, Any]:
        if not has_groups(self.model):
            return super()._columns()
        from limen.memory.grouped import columns_of_groups

        return {"at_least": self._inner.at_least, **columns_of_groups(self)}

    def _restore(self, columns: dict[str, Any]) -> None:
        if has_groups(self.model):
            from limen.memory.grouped import restore_groups

            restore_groups(self, columns)
        super()._restore(columns)
        if "trials" in columns:
            from limen.memory.trial import restore_trials

            restore_trials(self, columns["trials"])

    # What is asked of it; _core adds newest, cost, cost_ever, regret, expired and refused.

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._ids())

    def score_many(
        self,
        ids: Any,
        scores: ArrayLike,
        times: Any = None,
        weights: ArrayLike | None = None,
        *,
        answers: ArrayLike | None = None,
        groups: Any = None,
    ) -> NDArray[np.uint8]:
        """Record many scores and return the answers: all of them, or on an error none.

        The same as `score` one by one. Over groups, `groups` are the groups of the scores: values,
        tuples, or the rows of several columns. O(log n) each.

        >>> from limen import Ledger, OnlineThreshold
        >>> ledger = Ledger(OnlineThreshold())
        >>> ledger.score_many(["a", "b"], [0.2, 0.9], answers=[0, 1])
        array([0, 1], dtype=uint8)
        """
        names, found = as_ids(ids), as_scores(scores)
        sizes = None if weights is None else as_numbers(weights, "weights")
        given = np.empty(0, np.int8)
        if answers is not None:
            given = as_labels(answers, name="answers").view(np.int8)
        lengths = {"ids": names, "scores": found, "weights": sizes}
        require_same_length(**lengths, answers=None if answers is None else given)
        moments = self._times(times, "times", len(found))
        if sizes is not None and not isinstance(innermost(self.model), Labelled):
            raise TypeError(
                f"weights are given, but {type(innermost(self.model)).__name__} takes losses: put "
                "them into the losses. Nothing was changed."
            )
        numbers = self._numbers(groups, len(found))
        return self._score_many(names, (found, None, sizes, None), (moments,), given, numbers)

    def label_many(self, ids: Any, *outcomes: Any, as_of: Any = None) -> NDArray[np.bool_]:
        """Record many labels, or losses below and above: all of them, or on an error none.

        The same as `label` one by one. Return for each whether its id has a score. O(log n) each.

        >>> from limen import Ledger, OnlineThreshold
        >>> ledger = Ledger(OnlineThreshold())
        >>> ledger.score("a", 0.2)
        0
        >>> ledger.label_many(["a", "b"], [0, 1])
        array([ True, False])
        """
        names, labelled = as_ids(ids), isinstance(innermost(self.model), Labelled)
        if len(outcomes) != (1 if labelled else 2):
            raise TypeError(
                f"label_many() takes the ids and {'labels' if labelled else 'below and above'}, "
                f"got {len(outcomes)} columns after the ids. Nothing was changed."
            )
        columns: tuple[Any, ...]
        if labelled:
            columns = (None, as_labels(outcomes[0]), None, None)
            require_same_length(ids=names, labels=columns[1])
        else:
            columns = (
                None,
                None,
                as_numbers(outcomes[0], "below"),
                as_numbers(outcomes[1], "above"),
            )
            require_same_length(ids=names, below=columns[2], above=columns[3])
        moments = self._times(as_of, "as_of", len(names))
        return self._label_many(names, columns, (moments,)).view(np.bool_)

    def proposal(
        self,
        current: float,
        *,
        group: Hashable = None,
        age: Period | None = None,
        confidence: float = 0.95,
        largest_loss: Cost | None = None,
    ) -> Trial | None:
        """Return a threshold to change to where there is enough evidence, else None. O(log n).

        Call it as often as you like. When the samples rule the `current` threshold out (it leaves
        the `interval`), the recommended one becomes a candidate. From then on, samples that are
        scored and lie between the two judge it, as in `limen.Evidence`: each is counted when it
        has reached the `age`, in the order of scoring, with its label as known then, or as missing.
        Corrections and `forget` change the counts. The candidate is returned when the evidence is
        enough: 32.9 for the first since `current` last changed, 132 for the second that was judged,
        296 for the third, at a confidence of 0.95. The chance that any of them is returned although
        it is no better is then at most 5 %, however many there are until `current` changes.

        A trial ends when `current` or `largest_loss` is another one, or when the samples rule the
        candidate out too.
        It is stored with the ledger. `trial` shows how it stands; over groups, `trials`.

        Parameters
        ----------
        current
            The threshold in use.
        group
            Over groups: the one whose threshold it is, ``()`` for all samples. Samples of this
            group and of those inside of it choose the candidate and judge it. Each group has its
            own trial, and its own 5 %.
        age
            How old a sample is when nearly all labels are known; by default the `maturity`.
        confidence
            0.8, 0.9, 0.95 or 0.99.
        largest_loss
            Where samples do not all weigh 1: the most that a candidate may cost more on one
            sample, as for `limen.Evidence`. Weights are those of the scores, also where they fade.

        Examples
        --------
        >>> from limen import Ledger, OnlineThreshold
        >>> ledger = Ledger(OnlineThreshold(false_negative=4))
        >>> for i in range(400):
        ...     _ = ledger.score(i, i % 20 / 20, answer=1), ledger.label(i, int(i % 20 > 5))
        ...     found = ledger.proposal(0.75, age=5)
        ...     if found:
        ...         break
        >>> print(found)
        Change 0.75 to 0.175: 7 samples scored since, 5 in favour of it, evidence 40.3 of 32.9; \
candidate 1 since the last change.
        """
        from limen.memory.trial import proposal

        return proposal(self, current, group, age, confidence, largest_loss)

    @property
    def trial(self) -> Trial | None:
        """The candidate that `proposal` has on trial, and how it stands; None where there is none.

        Over groups, that of all samples.

        >>> from limen import Ledger, OnlineThreshold
        >>> Ledger(OnlineThreshold()).trial is None
        True
        """
        return self.trials.get(())

    @property
    def trials(self) -> dict[tuple[Hashable, ...], Trial]:
        """The candidates on trial by their group; ``()`` is that of all samples. O(groups).

        >>> from limen import Grouped, Ledger, OnlineThreshold
        >>> Ledger(Grouped(OnlineThreshold())).trials
        {}
        """
        if not self._trial_terms:
            return {}
        from limen.memory.trial import trials

        return trials(self)

    @property
    def candidates(self) -> int:
        """How many candidates `proposal` has tried, in all groups together."""
        return sum(int(terms["candidates"]) for terms in self._trial_terms.values())

    def snapshot(self) -> dict[str, Any]:
        """Describe the settings, all that is known in columns, and the trial. O(n log n)."""
        if not self._trial_terms:
            return super().snapshot()
        from limen.memory.trial import stored_trials

        return super().snapshot() | stored_trials(self)

    @property
    def _dated(self) -> bool | None:
        """Whether periods are timedeltas, so that times are datetimes; None without periods."""
        periods = {name: self._given[name] for name in _PERIODS}
        return require_one_kind(**periods, period=_own_period(of_all(self.model)))

    def _times(self, times: Any, name: str, rows: int) -> Any:
        if times is None:
            return None
        column, many = as_time_column(times, self._dated, name)
        require_same_length(ids=np.empty(rows), **{name: np.empty(many)})
        return column

    def __repr__(self) -> str:
        ids = "1 id" if len(self) == 1 else f"{len(self):,} ids"
        return (
            f"<{type(self).__name__}: {ids}, cost {self.cost!r}, regret {self.regret!r}, "
            f"of {self.model!r}>"
        )


def as_ids(ids: Any) -> Any:
    """Make a list of ids, or an array of whole numbers. O(n).

    >>> as_ids(("a", "b")), as_ids(np.array([3, 4], np.int32))
    (['a', 'b'], array([3, 4]))
    """
    column = readable(ids, "ids")
    if not isinstance(column, np.ndarray):
        return list(column)
    if column.ndim != 1:
        raise ValueError(f"ids must be one-dimensional, got shape {column.shape}.")
    if column.dtype.kind == "i":
        return np.ascontiguousarray(column, np.int64)
    return column.tolist()


def _own_period(model: Any) -> Any:
    """Return the period or half-life of a window over time; None where there is none."""
    if isinstance(model, LastPeriod):
        return model.period
    return model.half_life if isinstance(model, Fading) and model._dated is not None else None


def _checked_periods(given: dict[str, Any], model: Any) -> dict[str, Any]:
    periods = {name: None if p is None else as_period(p, name) for name, p in given.items()}
    require_one_kind(**periods, period=_own_period(model))
    return periods


def _require_counted_at(age: Any, model: Any) -> None:
    """Raise unless a negative that enters at this age may count."""
    own = _own_period(model)
    if isinstance(model, LastPeriod) and age >= own:
        raise ValueError(
            f"maturity={age!r} must be less than period={own!r} of the window: a negative would "
            "be too old for the window by the time it counts, and only positives would ever "
            "count. Give a longer period or a shorter maturity."
        )
    if isinstance(model, Fading) and own is not None:
        unit = exact_unit(model.model.settings["unit"]) or Fraction(1, 2**_core.finest_bits)
        if 2.0 ** (_core.fading_high - age / own) <= unit / 2:
            raise ValueError(
                f"maturity={age!r} is too long for half_life={own!r}: a negative would have "
                "faded to nothing by the time it counts, and only positives would ever count. "
                "Give a longer half-life or a shorter maturity."
            )


def _require_short(periods: dict[str, Any], model: Any) -> None:
    """Raise unless no id can be dropped before the horizon."""
    bounds = {name: periods[name] for name in ("time_to_live", "correctable")}
    bounds["period of the window"] = _own_period(model) if isinstance(model, LastPeriod) else None
    for name, bound in bounds.items():
        if bound is not None and periods["horizon"] > bound:
            raise ValueError(
                f"horizon={periods['horizon']!r} must not be longer than {name}={bound!r}: an id "
                "that was dropped by then could count twice. Give a shorter horizon."
            )


def _whole_costs(model: Any, costs: dict[str, Any]) -> tuple[int, ...]:
    """Return the costs of a model that has none, as two whole numbers and their unit."""
    inner = innermost(model)
    if not isinstance(inner, Labelled) or "false_positive" in inner.settings:
        if set(costs.values()) != {None}:
            raise ValueError(
                "the model knows what mistakes cost; give false_positive and false_negative to the "
                "model only."
            )
        return ()
    false_positive, false_negative = (1 if costs[name] is None else costs[name] for name in _COSTS)
    positive, negative, scale = exact_costs(false_positive, false_negative)
    return positive, negative, *unit_parts(exact_unit(inner.settings["unit"]), scale)[2:]
