# SPDX-License-Identifier: Apache-2.0
"""What windows and ledgers share: a model of theirs, its answers, and all they know in columns."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

import numpy as np

from limen.columns import require_same_length, samples_with_labels, samples_with_losses
from limen.model import Held_co, Labelled, M_co, ModelBase, require_distinct
from limen.picture import picture_of_model
from limen.storage import Storable
from limen.storage.format import Outdated
from limen.times import as_time, as_time_column

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from limen.hull import Blocks, RocHull
    from limen.metrics import BestCut, Confusion
    from limen.model import (
        HasLossBound,
        HasOptimum,
        HasPredict,
        HasRecommended,
        HasThreshold,
        T,
    )
    from limen.optimum import Direction, LossCurve
    from limen.review import ReviewBand

__all__ = ["Memory", "Window"]


def _answer_of_model(name: str) -> Any:
    # Without a Python function in between, reading costs next to nothing.
    return property(attrgetter(f"model.{name}"), doc=f"`{name}` of the model")


class Memory(Storable, Generic[M_co]):
    """What windows and ledgers share: a model that is theirs, and its answers.

    `direction`, `threshold`, `loss`, `optimum`, `predict` and `curve`, and of `recommended`,
    `interval`, `keeps`, `probability`, `probability_interval`, `blocks`, `roc_hull`, `confusion`
    and `best` those that the model has; `loss_bound` too.
    What would change the model is not passed on, and the model itself refuses it.
    """

    __slots__ = ()

    # The native class, whose methods the class that names it has as its own.
    _native: ClassVar[Any]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "_native" in vars(cls):
            cls._native._give_slots(cls)

    if TYPE_CHECKING:
        _given: dict[str, Any]
        _adopted: bool

        @property
        def model(self) -> M_co:
            """The model or window inside."""

        def _columns(self) -> dict[str, Any]: ...
        def _restore(self, columns: dict[str, Any]) -> None: ...
        def _merge(self, other: Any, into: NDArray[np.uint32], /) -> None: ...

    takes_costs: bool = _answer_of_model("takes_costs")
    direction: Direction = _answer_of_model("direction")
    if TYPE_CHECKING:

        @property
        def threshold(self: Memory[HasThreshold[T]]) -> T:
            """`threshold` of the model."""

        @property
        def optimum(self: Memory[HasOptimum[T]]) -> T:
            """`optimum` of the model."""

        @property
        def recommended(self: Memory[HasRecommended[T]]) -> T:
            """`recommended` of the model."""

        @property
        def loss_bound(self: Memory[HasLossBound[T]]) -> T:
            """`loss_bound` of the model."""

        @property
        def predict(self: Memory[HasPredict[T]]) -> T:
            """`predict` of the model."""

    else:
        threshold = _answer_of_model("threshold")
        optimum = _answer_of_model("optimum")
        recommended = _answer_of_model("recommended")
        loss_bound = _answer_of_model("loss_bound")
        predict = _answer_of_model("predict")
    interval: Callable[..., tuple[float, float]] = _answer_of_model("interval")
    keeps: Callable[..., bool] = _answer_of_model("keeps")
    loss: float = _answer_of_model("loss")
    curve: Callable[..., LossCurve] = _answer_of_model("curve")
    probability: Callable[..., Any] = _answer_of_model("probability")
    probability_interval: Callable[..., Any] = _answer_of_model("probability_interval")
    blocks: Callable[[], Blocks] = _answer_of_model("blocks")
    roc_hull: Callable[[], RocHull] = _answer_of_model("roc_hull")
    confusion: Callable[[float], Confusion] = _answer_of_model("confusion")
    best: Callable[..., BestCut] = _answer_of_model("best")
    review_band: Callable[..., ReviewBand] = _answer_of_model("review_band")
    near_best: Callable[..., list[tuple[float, float]]] = _answer_of_model("near_best")

    @property
    def _inner(self) -> Any:
        """The model, where it is asked for what only some models have."""
        return self.model

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments besides the model, by name."""
        return dict(self._given)

    def _repr_html_(self) -> str | None:
        """Show a small picture in a notebook. O(n)."""
        if hasattr(self.model, "thresholds"):  # it has groups
            found: str | None = self._inner._repr_html_()
            return found
        return picture_of_model(self)

    def __dir__(self) -> list[str]:
        """List every attribute, and of the model's answers only those that it has."""
        answers = {name for name in vars(Memory) if not name.startswith("_")} - {"settings"}
        return [name for name in super().__dir__() if name not in answers - {*dir(self.model)}]

    def merge(self, *others: Self) -> None:
        """Know what others know, besides what is known here: all of it, or on an error nothing.

        They must have the same settings, and ledgers no id in common. The result is that of one
        object which saw everything, by the latest clock of all. Windows by number cannot be
        merged: it is unknown which samples came before which. O(n log n) for all samples and ids;
        the others stay as they are, and so do trials of `Ledger.proposal`, here and there.

        >>> from limen import LastPeriod, OnlineThreshold
        >>> west, east = LastPeriod(OnlineThreshold(), 10), LastPeriod(OnlineThreshold(), 10)
        >>> west.update(0.25, 0, time=3), east.update(0.75, 1, time=12)
        (True, True)
        >>> west.merge(east)
        >>> len(west), west.threshold, west.newest
        (2, 0.5, 12)
        """
        require_distinct((self, *others))
        terms, twins = self._terms(), []
        for other in others:
            if type(self)._stored_as is not getattr(type(other), "_stored_as", None):
                raise TypeError(
                    f"cannot merge {type(other).__name__} into {type(self).__name__}. Nothing was "
                    "changed."
                )
            for name, value in other._terms().items():
                if value != terms.get(name):
                    raise ValueError(
                        f"cannot merge: {name} is {terms.get(name)!r} here and {value!r} there. "
                        "Nothing was changed."
                    )
            twins.append(other.copy())
        for twin in twins[1:]:
            twins[0]._merge(twin, twins[0]._places_of(twin))
        if twins:
            self._merge(twins[0], self._places_of(twins[0]))

    def _places_of(self, other: Any) -> NDArray[np.uint32]:
        """Return the numbers of the groups of another object here; without groups, none."""
        return np.empty(0, np.uint32)

    def _terms(self) -> dict[str, Any]:
        """Return what two objects must have in common to be merged."""
        inner, window = innermost(self.model), of_all(self.model)
        own = {"window": type(window)._stored_as} | dict(self._given)
        own["at_least"] = self._inner.at_least if has_groups(self.model) else None
        return {**window._terms(), **inner._terms(), "model": type(inner)._native, **own}

    # One protocol for all: the settings, an empty model, and the columns of the native memory.

    def _begin(self, model: Any, settings: dict[str, Any]) -> None:
        """Take an empty model, with settings that may come from anybody."""
        raise NotImplementedError

    def _empty_model(self) -> Any:
        """Return a model or a window like the one inside, without samples."""
        return self._inner.empty()

    def snapshot(self) -> dict[str, Any]:
        """Describe the settings, and all that is known in columns. O(n log n)."""
        if self._adopted:
            raise RuntimeError("this window belongs to a Ledger; copy or save the ledger.")
        return {"model": self._empty_model(), **self._given, **self._columns()}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make an object of a `snapshot`. O(n log n)."""
        if "calendar" not in snapshot:
            raise Outdated(cls.__name__)
        model = innermost(snapshot["model"])
        if not isinstance(model, ModelBase) or len(model):
            raise ValueError("a memory whose model holds samples of its own")
        memory = cls.__new__(cls)
        memory._fill(snapshot)
        return memory

    def _fill(self, parts: dict[str, Any]) -> None:
        self._begin(self._model_of(parts), {name: parts[name] for name in self._settings})
        self._restore(parts)

    def _take_over(self, made: Self) -> None:
        self._fill(made.snapshot())
        super()._take_over(made)

    @classmethod
    def _model_of(cls, parts: dict[str, Any]) -> Any:
        """Return the model that is described, still without samples."""
        return parts["model"]

    _settings: ClassVar[tuple[str, ...]]  # the names of the arguments besides the model


def has_groups(model: Any) -> bool:
    """Whether this is a `limen.Grouped`; where there is none, its module need not be loaded."""
    return getattr(type(model), "_kind", None) == "Grouped"


def of_all(model: Any) -> Any:
    """Return the model or window that holds all samples: of groups the largest, or itself."""
    return model.model(()) if has_groups(model) else model


def innermost(model: Any) -> Any:
    """Return the model that holds the samples: that of a window, or the model itself."""
    window = of_all(model)
    return window.model if isinstance(window, Memory) else window


def require_plain(model: Any) -> None:
    """Raise unless this is a model of limen whose `update` and `revert` are its own."""
    if isinstance(model, type):
        raise TypeError(
            f"model must be an object, got the class {model.__name__}. Write {model.__name__}()."
        )
    if isinstance(model, Memory) or not isinstance(model, ModelBase):
        raise TypeError(
            f"model must be an OnlineThreshold, OnlineCut or OnlineCalibrator, got {model!r}."
        )
    for name in ("update", "revert"):
        if getattr(type(model), name) is not getattr(model._plain, name):
            raise TypeError(
                f"{type(model).__name__} has its own {name}(), which would never be called: "
                "samples are held without it. Give a model that does not override it."
            )


class Window(Memory[Held_co]):
    """What the windows share: a model that holds exactly what is in the window."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _update_many(self, samples: tuple[Any, ...], times: tuple[Any]) -> NDArray[Any]: ...
        def __len__(self) -> int: ...

    def empty(self) -> Self:
        """Return a window of the same settings around an empty model. O(1)."""
        window = type(self).__new__(type(self))
        window._begin(self.model.empty(), self._given)
        return window

    def _add(
        self, columns: tuple[Any, ...], named: dict[str, Any], times: Any
    ) -> NDArray[np.bool_]:
        """Add many samples, with their times if they have any; return which of them count."""
        read = _labelled if isinstance(self.model, Labelled) else _with_losses
        samples = read(*columns, **named)
        if times is not None:
            times, many = as_time_column(times, self._dated)
            require_same_length(scores=samples[0], times=np.empty(many))
        return self._update_many(samples, (times,)).view(np.bool_)

    @property
    def _dated(self) -> bool | None:
        """Whether times are datetimes; None where there are no times."""
        return None

    def _require_time(self, time: Any) -> None:
        """Raise unless this is a time that can be compared with those before."""
        moment, newest = as_time(time, bool(self._dated)), getattr(self, "newest", None)
        if newest is not None and self._dated:
            moment - newest  # TypeError where one of them has no time zone


def _labelled(
    scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None
) -> tuple[Any, ...]:
    return (*samples_with_labels(scores, labels, weights), None)


def _with_losses(scores: ArrayLike, below: ArrayLike, above: ArrayLike) -> tuple[Any, ...]:
    found, low, high = samples_with_losses(scores, below, above)
    return found, None, low, high
