# SPDX-License-Identifier: Apache-2.0
"""What windows and ledgers share: a model inside, its answers, and its samples in columns."""

from __future__ import annotations

from inspect import signature
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeAlias

import numpy as np

from limen.arrays import readable
from limen.storage import Storable
from limen.storage.packing import number_column, plain_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from limen.hull import Blocks, RocHull
    from limen.metrics import BestCut, Confusion
    from limen.optimum import LossCurve

__all__ = ["Window", "Wrapper"]

Row: TypeAlias = tuple[Any, ...]


def _answer_of_model(name: str) -> Any:
    # Without a Python function in between, reading costs next to nothing.
    return property(attrgetter(f"_model.{name}"), doc=f"`{name}` of the model")


class Wrapper(Storable):
    """What windows and ledgers share: a model that is theirs, and its answers.

    `threshold`, `loss`, `optimum`, `predict` and `curve`, and of `probability`, `blocks`,
    `roc_hull`, `confusion` and `best` those that the model has. What would change the model is
    not passed on.
    """

    __slots__ = ("_model",)

    _model: Any

    takes_costs: bool = _answer_of_model("takes_costs")
    # Numbers, or methods where the model takes costs.
    threshold: Any = _answer_of_model("threshold")
    optimum: Any = _answer_of_model("optimum")
    loss: float = _answer_of_model("loss")
    predict: Callable[..., Any] = _answer_of_model("predict")
    curve: Callable[..., LossCurve] = _answer_of_model("curve")
    probability: Callable[..., Any] = _answer_of_model("probability")
    blocks: Callable[[], Blocks] = _answer_of_model("blocks")
    roc_hull: Callable[[], RocHull] = _answer_of_model("roc_hull")
    confusion: Callable[[float], Confusion] = _answer_of_model("confusion")
    best: Callable[..., BestCut] = _answer_of_model("best")

    @property
    def model(self) -> Any:
        """What holds the samples: read from it, but leave it as it is."""
        return self._model

    def __dir__(self) -> list[str]:
        """List every attribute, and of the model's answers only those that it has."""
        answers = {name for name in vars(Wrapper) if not name.startswith("_")} - {"model"}
        return [name for name in super().__dir__() if name not in answers - {*dir(self._model)}]


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """List the names of the arguments, in order."""
    return tuple(signature(function).parameters)


def by_position(names: tuple[str, ...], given: Row, named: dict[str, Any]) -> Row:
    """Bring all arguments into the order of their names."""
    rest = names[len(given) : len(given) + len(named)]
    if set(rest) != set(named):
        raise TypeError(
            f"the arguments are {', '.join(names)}; got {len(given)} by position and "
            f"{', '.join(named)} by name. Nothing was added."
        )
    return (*given, *(named[name] for name in rest))


def rows_of(columns: Iterable[Any]) -> list[Row]:
    """Make one tuple per sample; a column that was not given is left out. O(n)."""
    lists = (np.asarray(column).tolist() for column in columns if column is not None)
    return list(zip(*lists, strict=True))


def columns_of(rows: list[Row]) -> list[list[Any]]:
    """Make one list per argument, out of tuples of one length. O(n)."""
    return [list(map(itemgetter(at), rows)) for at in range(len(rows[0]))]


def _fits_an_array(numbers: list[Any]) -> bool:
    """Whether an array of one type holds these numbers as they are."""
    return len(set(map(type, numbers))) == 1 or max(map(abs, numbers)) <= 2**53


def require_empty(model: Any) -> None:
    """Raise unless this is a model that holds nothing."""
    if isinstance(model, type):
        raise TypeError(
            f"model must be an object, got the class {model.__name__}. Write {model.__name__}()."
        )
    lacking = [name for name in ("update", "revert", "__len__") if not hasattr(model, name)]
    if lacking:
        raise TypeError(
            f"model must have update, revert and a length, as OnlineThreshold has; got {model!r}, "
            f"which lacks {', '.join(lacking)}."
        )
    if len(model):
        raise ValueError(
            f"model holds {len(model):,} samples already, and nobody knows when they came. Give "
            "an empty one, and add them through update_many()."
        )


def emptied(model: Any) -> Any:
    """Return a model like this one that holds nothing; raise unless it can be stored."""
    if not isinstance(model, Storable):
        raise TypeError(f"{model!r} cannot be stored; only models that are Storable can.")
    return model.empty()  # type: ignore[attr-defined]


def refuse_use(*_: Any, **__: Any) -> NoReturn:
    """Stand in for the update of a window that a ledger fills."""
    raise RuntimeError(
        "this window belongs to a Ledger; add samples through it. Nothing was added."
    )


class Window(Wrapper):
    """What the windows share: a model that holds exactly what is in the window."""

    __slots__ = ("_leave", "_names", "_revert", "_update")

    _leave: Any  # None unless a ledger fills the window
    _period: Any  # None where samples do not leave by their time
    _by_arrival: ClassVar[bool] = False  # whether samples leave in the order in which they came
    _refilled: ClassVar[bool] = True  # whether what is held is stored by its samples alone

    def _feed(self, model: Any) -> None:
        self._model = model
        self._update = model.update  # kept, because looking them up takes time in each step
        self._revert = model.revert
        self._names = parameters(model.update)
        self._leave = None

    def __len__(self) -> int:
        return len(self._model)

    # Many samples at once.

    def _columns(self, columns: Row, named: dict[str, Any]) -> Row:
        if self._leave is not None:
            refuse_use()
        names = parameters(self._model.update_many)
        ordered = by_position(names, columns, named)
        return (*map(readable, ordered, names), *ordered[len(names) :])

    def _counted(self, rows: list[Row], before: int) -> list[Row]:
        """Leave out the rows that the model has left out, because they have no loss."""
        if len(self._model) - before == len(rows):
            return rows
        if self._names[1:2] == ("label",):
            return [row for row in rows if len(row) < 3 or row[2] != 0]
        return [row for row in rows if any(row[1:])]

    def _take_back(self, rows: list[Row]) -> None:
        if len(rows) < 16:  # columns take longer to make than this
            self._take_back_each(rows)
            return
        for length in {len(row) for row in rows}:  # with and without a weight
            alike = [row for row in rows if len(row) == length]
            columns = columns_of(alike)
            if all(map(_fits_an_array, columns[1:])):
                self._model.revert_many(*columns)
            else:
                self._take_back_each(alike)

    def _take_back_each(self, rows: list[Row]) -> None:
        for row in rows:
            self._revert(*row)

    def _go_back(self, rows: list[Row], before: list[Row]) -> None:
        """Let the model hold the samples of before instead of these. O(n)."""
        self._take_back(rows)
        for row in before:
            self._update(*row)

    def snapshot(self) -> dict[str, Any]:
        """Describe the window, its samples in columns. O(n)."""
        if self._leave is not None:
            raise RuntimeError("this window belongs to a Ledger; copy or save the ledger.")
        return self._described()

    def _described(self) -> dict[str, Any]:
        """Describe the window; without its samples where a ledger fills it."""
        raise NotImplementedError

    def _shell(self) -> Self:
        """Return a window that no ledger fills, of the same length and without entries."""
        return self.from_snapshot(self._described())

    # A ledger fills a window with entries instead of samples, and may take any of them out.

    def _adopt(self, leave: Callable[[Any], None]) -> None:
        """Hold entries from now on, and hand those that leave to `leave`."""
        self._leave = leave
        self._update = refuse_use

    def _require_counted_at(self, age: Any) -> None:
        """Raise unless a sample that enters at this age may count."""

    def _advance(self, time: Any) -> None:
        """Let go what is too old at this time."""

    def _admits(self, time: Any) -> bool:
        """Tell whether an entry of this time may enter; count it as refused if not."""
        return True

    def _hold_entry(self, entry: Any, sample: Row) -> None:
        """Let the model hold the sample of an entry."""
        self._model.update(*sample)

    def _release_entry(self, entry: Any, sample: Row) -> None:
        """Take the sample of an entry back."""
        self._model.revert(*sample)

    def _enter(self, entry: Any, time: Any) -> None:
        """Hold an entry, and let go what it sends away."""
        raise NotImplementedError

    def _blank(self, entry: Any) -> None:
        """Know that an entry is held no longer; it may enter again."""

    def _entries(self) -> list[Any]:
        """List what is held, in the order in which it leaves."""
        raise NotImplementedError


# Samples in columns, to be stored.


def sample_columns(rows: list[Row], labelled: bool) -> tuple[Any, ...]:
    """Make columns that are the same for the same samples, however these were written. O(n)."""
    scores = np.fromiter(map(itemgetter(0), rows), np.float64, len(rows)) + 0.0
    if not labelled:
        return (scores, *(number_column(map(itemgetter(at), rows)) for at in (1, 2)))
    labels = np.fromiter(map(itemgetter(1), rows), np.float64, len(rows)).astype(np.uint8)
    weights = None
    if max(map(len, rows), default=0) > 2:
        weights = number_column([row[2] if len(row) > 2 else 1 for row in rows])
        if isinstance(weights, np.ndarray) and (weights == 1).all():
            weights = None
    return scores, labels, weights


def samples_of(columns: tuple[Any, ...], model: Any) -> list[Row]:
    """Read the rows of such columns, and let the model hold them all. O(n)."""
    given = [column for column in columns if column is not None]
    rows = list(zip(*(plain_list(column) for column in given), strict=True))
    if len(model):
        raise ValueError("a window whose model holds samples of its own")
    if all(isinstance(column, np.ndarray) for column in given):
        model.update_many(*columns)
    else:
        for row in rows:
            model.update(*row)
    if len(model) != len(rows):
        raise ValueError("a sample without any loss")
    return rows


def sorted_columns(columns: tuple[Any, ...]) -> tuple[Any, ...]:
    """Bring the rows into ascending order. O(n log n)."""
    given = [column for column in columns if column is not None]
    if all(isinstance(column, np.ndarray) for column in given):
        if (given[0][1:] > given[0][:-1]).all():
            return columns
        order = np.lexsort(given[::-1])
        return tuple(None if column is None else column[order] for column in columns)
    rows = sorted(zip(*(plain_list(column) for column in given), strict=True))
    lists = iter(columns_of(rows))
    return tuple(None if column is None else number_column(next(lists)) for column in columns)
