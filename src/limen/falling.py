# SPDX-License-Identifier: Apache-2.0
"""Models of scores of which a lower one means positive."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self

from limen.arrays import is_single
from limen.direction import negated, turned
from limen.errors import Infeasible
from limen.model import M_co
from limen.storage import Storable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limen.model import HasOptimum, HasThreshold, T
    from limen.optimum import Direction

__all__ = ["LowerIsPositive"]

# Methods that are given scores, or a threshold: first of all, or after the group or the id.
_BY_ID = ("score", "score_many")
_BY_GROUP = ("update", "revert", "update_many", "revert_many", "predict")
_AT = ("answer", "confusion", "keeps", "probability", "probability_interval")
_GIVEN = (*_BY_ID, *_BY_GROUP, *_AT)
_NAMED = ("score", "scores", "threshold")
# What is answered in terms of scores.
_CUTS = ("gap", "threshold", "thresholds", "optimum", "curve", "best", "roc_hull")
_TRIALS = ("proposal", "trial", "trials")
_ANSWERS = (*_CUTS, "near_best", "review_band", "recommended", "interval")


class LowerIsPositive(Storable, Generic[M_co], kind="LowerIsPositive"):
    """Keep any model for scores of which a lower one means more positive.

    The answer is 1 when ``score <= threshold``. Whatever goes in and comes out is in the scores as
    they are, ages or distances, say: the model inside is given the negated ones. Everything else
    is that of the model.

    Parameters
    ----------
    model
        An `OnlineThreshold`, `OnlineCut` or `OnlineCalibrator`, a `LastN`, `LastPeriod` or
        `Fading` around one, a `Grouped` or a `Ledger`. From now on use it through this object.

    Attributes
    ----------
    model
        The model inside, which knows negated scores. `blocks` of an `OnlineCalibrator` are asked
        of it: they are a function that never falls.
    direction
        Always ``"<="``.

    Notes
    -----
    The answers are exactly those of negating all scores by hand and negating the thresholds found.
    So ``inf`` says 1 to all, ``-inf`` to none, and ``nan``, where ``-inf`` was seen as a score, to
    none either. Of several cheapest cuts it is the lowest: say 1 only when it pays. A call takes
    what that of the model takes, and a microsecond or two.

    Examples
    --------
    >>> from limen import LastN, LowerIsPositive, OnlineThreshold
    >>> distance = LowerIsPositive(LastN(OnlineThreshold(), 1000))
    >>> distance.update_many([3.5, 0.5, 2.0, 0.75], [0, 1, 0, 1])
    >>> distance.threshold
    1.375
    >>> distance.predict([1.0, 3.0])
    array([1, 0])
    >>> distance.optimum
    <Optimum: threshold 1.375, lower 0.75, upper 2.0, loss 0.0, direction '<='>
    """

    __slots__ = ("model",)

    if TYPE_CHECKING:
        model: M_co

    direction: Direction = "<="

    def __init__(self, model: M_co) -> None:
        _require_model(model)
        self.model = model
        if len(self):
            raise ValueError(
                f"model must be empty, got one that holds {len(self):,} samples, whose scores "
                "were not negated. Pass a new one."
            )

    @property
    def _inner(self) -> Any:
        """The model, where it is asked for what only some models have."""
        return self.model

    # What a model must offer; `__getattr__` has the rest.

    def update(self, *sample: Any, **named: Any) -> Any:
        """Add one sample, as the model does."""
        return self._call("update", *sample, **named)

    def revert(self, *sample: Any, **named: Any) -> Any:
        """Take back one sample, as the model does."""
        return self._call("revert", *sample, **named)

    def update_many(self, *columns: Any, **named: Any) -> Any:
        """Add many samples, as the model does."""
        return self._call("update_many", *columns, **named)

    def revert_many(self, *columns: Any, **named: Any) -> Any:
        """Take back many samples, as the model does."""
        return self._call("revert_many", *columns, **named)

    @property
    def threshold(self: LowerIsPositive[HasThreshold[T]]) -> T:
        """The cheapest threshold; a method where that of the model is one."""
        threshold: T = self._asked("threshold")
        return threshold

    @property
    def optimum(self: LowerIsPositive[HasOptimum[T]]) -> T:
        """The cheapest cut; a method where that of the model is one."""
        optimum: T = self._asked("optimum")
        return optimum

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the model."""
        settings: dict[str, Any] = self._inner.settings
        return settings

    @property
    def takes_costs(self) -> bool:
        """Whether `threshold` and `optimum` are methods that take costs."""
        return bool(self._inner.takes_costs)

    def merge(self, *others: LowerIsPositive) -> None:
        """Hold what others hold, besides what is held, as the model does."""
        for other in others:
            if not isinstance(other, LowerIsPositive):
                raise TypeError(
                    f"cannot merge {type(other).__name__} into LowerIsPositive: its scores run "
                    "the other way. Nothing was changed."
                )
        self._inner.merge(*(other.model for other in others))

    def empty(self) -> Self:
        """Return an object of the same settings that holds nothing."""
        return type(self)(self._inner.empty())

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._inner)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "model":
            raise AttributeError(name)
        if name == "blocks":
            raise AttributeError(
                "blocks are those of negated scores, because a fit never falls: ask .model.blocks()"
            )
        if name in _TRIALS:
            raise AttributeError(
                f"{name} speaks of negated scores: ask .model.{name}, with current negated, or "
                'gather limen.Evidence(..., direction="<=")'
            )
        return self._asked(name)

    def _asked(self, name: str) -> Any:
        found = getattr(self.model, name)
        if callable(found):
            return partial(self._call, name)
        return _answered(name, found)

    def _call(self, name: str, *given: Any, **named: Any) -> Any:
        """Call a method of the model with negated scores, and turn its answer."""
        method: Callable[..., Any] = getattr(self.model, name)
        if name in _GIVEN:
            place = int(name in _BY_ID or (name in (*_BY_GROUP, "keeps") and self._grouped()))
            head, scores, rest = given[:place], given[place : place + 1], given[place + 1 :]
            given = (*head, *map(_turned_score, scores), *rest)
            named |= {each: _turned_score(named[each]) for each in _NAMED if each in named}
        try:
            found = method(*given, **named)
        except Infeasible as infeasible:
            raise turned(infeasible) from None
        return _answered(name, found)

    def _grouped(self) -> bool:
        """Whether samples come after their group."""
        inner = self._inner
        if getattr(type(inner), "_kind", None) == "Ledger":
            inner = inner.model
        return getattr(type(inner), "_kind", None) == "Grouped"

    def snapshot(self) -> dict[str, Any]:
        """Describe the model inside."""
        return {"model": self.model}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make an object of a `snapshot`."""
        _require_model(snapshot["model"])
        made = cls.__new__(cls)
        made.model = snapshot["model"]
        return made

    def __repr__(self) -> str:
        # Not that of the model: its scores are negated.
        held = "1 sample" if len(self) == 1 else f"{len(self):,} samples"
        return f"<LowerIsPositive({type(self.model).__name__}): {held}>"


def _require_model(model: Any) -> None:
    kind = getattr(type(model), "_kind", None)
    if kind == "LowerIsPositive":
        raise TypeError("model is turned round already; twice is not at all. Give its own model.")
    if kind is None or not hasattr(model, "threshold"):
        raise TypeError(
            f"model must be a model, window, ledger or Grouped of limen, got {model!r}."
        )


def _answered(name: str, found: Any) -> Any:
    """Turn an answer of the model; None, where nothing is known, stays None."""
    if name not in _ANSWERS or found is None:
        return found
    if name == "thresholds" and isinstance(found, tuple):  # one of each member, not two ends
        return tuple(map(turned, found))
    return turned(found)


def _turned_score(score: Any) -> Any:
    if type(score) in (float, int):
        return -score
    return negated([score]).item() if is_single(score) else negated(score)
