# SPDX-License-Identifier: Apache-2.0
"""Scores, labels, weights and losses out of any array, column or frame.

Each function returns a contiguous array of one known type, or raises an error that names the
argument, the place and the value. Nothing is dropped, parsed or repaired on the way.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from limen import _core
from limen.arrays import as_array, columns_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = ["Columns", "from_frame"]  # what users need; the rest is for limen itself

Numbers: TypeAlias = "NDArray[np.int64] | NDArray[np.float64]"

_EXACT = 2**53
_SEQUENCES = (list, tuple, Sequence)  # the common ones first, which are quick to know
_LABEL_TYPES = (np.int8, np.uint8, np.int32, np.int64, np.float32, np.float64)


def _one_dimensional(values: ArrayLike, name: str) -> NDArray[Any]:
    """Make an array of one dimension and any type; a single column, of shape (n, 1), is one too."""
    array = np.asarray(values) if isinstance(values, list) else as_array(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        hint = (
            " Take the column of the positive class, as in predict_proba(X)[:, 1]."
            if array.ndim == 2 and name == "scores"
            else " Pass one value per sample."
        )
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}.{hint}")
    return array


def _in_one_piece(array: NDArray[Any], dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return the array contiguous and aligned, as `_core` needs it."""
    piece = np.ascontiguousarray(array, dtype)
    return piece if piece.flags.aligned else piece.copy()


def _numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    """Make an array of one dimension that holds numbers."""
    array = _one_dimensional(values, name)
    if array.dtype.kind == "O":
        array = _from_objects(array, name)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be numbers, got an array of {array.dtype}.")
    return array


def _from_objects(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Numbers out of an array of Python objects; text and missing values are refused."""
    for at, value in enumerate(array):
        number = hasattr(value, "__float__") or hasattr(value, "__index__")
        if isinstance(value, str | bytes | np.timedelta64) or not number:
            _refuse_object(name, at, value)
    if all(isinstance(value, int | np.integer | np.bool_) for value in array):
        try:
            return array.astype(np.int64)
        except OverflowError:
            pass
    converted = np.empty(len(array))
    for at, value in enumerate(array):
        try:
            converted[at] = float(value)
        except (TypeError, ValueError):
            _refuse_object(name, at, value)
        except OverflowError:
            raise OverflowError(
                f"{name}[{at}] is too large for a float64. Use smaller numbers."
            ) from None
    return converted


def _refuse_object(name: str, at: int, value: object) -> NoReturn:
    raise TypeError(
        f"{name}[{at}] is {value!r}, which is not a number. Convert or drop it before the call."
    )


def as_scores(scores: ArrayLike, name: str = "scores") -> NDArray[np.float64]:
    """Read scores as float64; a number that has no exact float64 is refused. O(n).

    >>> as_scores([0, 1, 0.5])
    array([0. , 1. , 0.5])
    """
    array = _numbers(scores, name)
    # Look at the values as given: in an array, an integer next to a float has become a float.
    objects = isinstance(scores, np.ndarray) and scores.dtype.kind == "O"
    given: Any = scores if objects or isinstance(scores, _SEQUENCES) else array
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            converted = _in_one_piece(array, np.float64)
        suspects = np.flatnonzero((converted != array) & ~np.isnan(array))
    else:
        converted = _in_one_piece(array, np.float64)
        if given is array and array.dtype.kind not in "iu":
            return converted
        sizes = np.abs(converted)
        if not objects and not np.fmax.reduce(sizes, initial=0.0) >= _EXACT:
            return converted
        large = (sizes >= _EXACT) & np.isfinite(converted)
        suspects = np.flatnonzero(large | objects)  # a long double among objects may be small
    for at in suspects.tolist():
        if _is_rounded(given[at], converted[at]):
            raise ValueError(
                f"{name}[{at}] is {given[at]}, which has no exact float64. Scale the scores down, "
                "or convert them to float yourself."
            )
    return converted


def _is_rounded(value: object, converted: np.float64) -> bool:
    """Whether this integer or long double has no float64 of its own."""
    if isinstance(value, np.longdouble):
        return bool(value != converted)
    return isinstance(value, int | np.integer) and int(converted) != int(value)


def ordered_scores(values: ArrayLike) -> NDArray[np.float64]:
    """Read scores and refuse nan."""
    array = as_scores(values)
    unordered = np.isnan(array)
    if unordered.any():
        at = int(unordered.argmax())
        raise ValueError(f"scores[{at}] is nan, which has no order; drop or fill it.")
    return array


def as_labels(
    labels: ArrayLike,
    scores: NDArray[np.float64] | None = None,
    name: str = "labels",
    positive: object = None,
) -> NDArray[np.uint8]:
    """Read labels as bytes of 0 and 1. O(n).

    `scores`, where given, serve to recognise that the two arguments were swapped. `positive`,
    where given, is the value that becomes 1; at most one other value may occur.

    >>> as_labels([True, False, True])
    array([1, 0, 1], dtype=uint8)
    >>> as_labels(["good", "bad", "good"], positive="bad")
    array([0, 1, 0], dtype=uint8)
    """
    array = _in_one_piece(_one_dimensional(labels, name))
    if positive is not None:
        return _positive_ones(array, positive, name)
    if array.dtype.kind == "b":
        # True may be any byte that is not 0: a mask of 0 and 255 that is viewed as bool.
        found = array.view(np.uint8)
        return found if found.max(initial=0) <= 1 else (found != 0).view(np.uint8)
    if array.dtype in _LABEL_TYPES:
        found, bad = _core.labels_from(array)
    else:
        if not isinstance(labels, np.ndarray) and array.dtype.kind in "SU":
            array = np.asarray(labels, dtype=object)  # numbers next to text became text
        yes = np.array([_equals(value, 1) for value in array], dtype=bool)
        known = yes | np.array([_equals(value, 0) for value in array], dtype=bool)
        found, bad = yes.view(np.uint8), len(array) if known.all() else int(known.argmin())
    if bad < len(array):
        swapped = scores is not None and len(scores) and np.isin(scores, (0.0, 1.0)).all()
        hint = (
            "The scores are all 0 or 1: were scores and labels swapped? Scores come first."
            if swapped
            else "For other classes, name the positive one: pos_label=..., or labels == positive; "
            "for a frame, limen.columns.from_frame(..., positive=...)."
        )
        shown = array[bad] if array.dtype.kind in "biuf" else repr(array[bad])
        raise ValueError(f"{name} must be 0 or 1, got {shown} at {name}[{bad}]. {hint}")
    return found


def _equals(value: object, number: int) -> bool:
    """Whether this is the number; a timedelta64 of one day is not 1, although NumPy says so."""
    return not isinstance(value, np.timedelta64) and bool(value == number)


def _positive_ones(array: NDArray[Any], positive: object, name: str) -> NDArray[np.uint8]:
    """Write 1 where a label is the positive one; more than one other value is refused."""
    _refuse_nan(array, name, "Drop or fill missing labels.")
    yes = np.asarray(array == positive, dtype=bool)
    rest = np.flatnonzero(~yes)
    if len(rest):
        third = rest[array[rest] != array[rest[0]]]
        if len(third):
            values = ", ".join(repr(array[at : at + 1].tolist()[0]) for at in (rest[0], third[0]))
            raise ValueError(
                f"{name} must hold two values, {positive!r} and one other, got {values} at "
                f"{name}[{rest[0]}] and {name}[{third[0]}]. Give the positive one as it is "
                "written in the column, and merge or drop other classes."
            )
    return yes.view(np.uint8)


def _refuse_nan(array: NDArray[Any], name: str, advice: str) -> None:
    """Raise ValueError at the first nan or None."""
    if array.dtype.kind == "f":
        missing = np.isnan(array)
    elif array.dtype.kind == "O":
        missing = np.array([value is None or value != value for value in array], dtype=bool)
    else:
        return
    if missing.any():
        at = int(missing.argmax())
        raise ValueError(f"{name}[{at}] is {array[at]}. {advice}")


def as_numbers(values: ArrayLike, name: str) -> Numbers:
    """Read weights or losses: whole numbers as int64, others as float64. O(n).

    >>> as_numbers([1, 2], "weights").dtype, as_numbers([1, 0.5], "weights").dtype
    (dtype('int64'), dtype('float64'))
    """
    array = _numbers(values, name)
    beyond = array.dtype.kind == "u" and array.size and array.max() >= 2**63
    if array.dtype.kind == "f" or beyond:
        return _in_one_piece(array, np.float64)
    return _in_one_piece(array, np.int64)


def require_same_length(**arrays: NDArray[Any] | None) -> None:
    """Raise ValueError unless all arrays that are given have one length.

    >>> require_same_length(scores=np.zeros(2), labels=np.zeros(2), weights=None)
    """
    lengths = {name: len(array) for name, array in arrays.items() if array is not None}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"one entry per sample is needed in each argument, but {listed}.")


def samples_with_labels(
    scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None, positive: object = None
) -> tuple[NDArray[np.float64], NDArray[np.uint8], Numbers | None]:
    """Scores, labels and weights of one length. O(n). `positive` as for `as_labels`.

    >>> samples_with_labels([0.5], [1], None)
    (array([0.5]), array([1], dtype=uint8), None)
    """
    xs = as_scores(scores)
    ys = as_labels(labels, xs, positive=positive)
    ws = None if weights is None else as_numbers(weights, "weights")
    if len(xs) != len(ys) or (ws is not None and len(xs) != len(ws)):
        require_same_length(scores=xs, labels=ys, weights=ws)
    return xs, ys, ws


def samples_with_losses(
    scores: ArrayLike, below: ArrayLike, above: ArrayLike
) -> tuple[NDArray[np.float64], Numbers, Numbers]:
    """Scores and the losses on either side of the cut, of one length. O(n).

    >>> samples_with_losses([0.5], [0], [2])
    (array([0.5]), array([0]), array([2]))
    """
    xs = as_scores(scores)
    lows = as_numbers(below, "below")
    highs = as_numbers(above, "above")
    require_same_length(scores=xs, below=lows, above=highs)
    return xs, lows, highs


class Columns(NamedTuple):
    """The columns that `from_frame` read, for every function that takes arrays.

    >>> scores, labels, weights, groups = Columns([0.5], [1], None, None)
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.uint8]
    weights: Numbers | None
    groups: NDArray[Any] | None


def from_frame(
    frame: Any,
    *,
    score: Hashable = "score",
    label: Hashable = "label",
    weight: Hashable | None = None,
    group: Hashable | None = None,
    positive: object = None,
) -> Columns:
    """Take scores, labels, weights and groups out of a frame. O(n).

    A column of float64 scores in one piece is not copied.

    Parameters
    ----------
    frame
        A pandas or polars frame (also a lazy one), an Arrow table, batch or stream, a DuckDB
        relation or result, a structured array, or a mapping from names to columns.
    score, label, weight, group
        Names of the columns; without a name, weights and groups are None.
    positive
        The label that becomes 1, where labels are not 0 and 1 already. At most one other
        value may occur.

    Notes
    -----
    A null or nan in any of these columns is refused with its row, counted from 0. No row is
    dropped.

    Examples
    --------
    >>> from limen import columns, optimal_threshold
    >>> loans = {"p": [0.2, 0.6, 0.9], "paid": ["yes", "no", "no"], "euro": [100, 50, 70]}
    >>> taken = columns.from_frame(loans, score="p", label="paid", weight="euro", positive="no")
    >>> taken.labels
    array([0, 1, 1], dtype=uint8)
    >>> optimal_threshold(taken.scores, taken.labels, weights=taken.weights)
    <Optimum: threshold 0.4, lower 0.2, upper 0.6, loss 0.0>
    """
    wanted = {"score": score, "label": label, "weight": weight, "group": group}
    names = {role: name for role, name in wanted.items() if name is not None}
    for role in ("score", "label"):
        if role not in names:
            raise ValueError(f"{role} must name a column of the frame, got None.")
    found = dict(zip(names, columns_of(frame, list(names.values())), strict=True))
    called = {role: f"frame[{name!r}]" for role, name in names.items()}

    xs = as_scores(found["score"], called["score"])
    _refuse_nan(xs, called["score"], "Samples are ordered by score and nan has no order.")
    ys = as_labels(found["label"], xs, called["label"], positive)
    ws = as_numbers(found["weight"], called["weight"]) if "weight" in found else None
    if ws is not None:
        _refuse_nan(ws, called["weight"], "A weight is a number of at least 0; drop or fill it.")
    keys = _one_dimensional(found["group"], called["group"]) if "group" in found else None
    if keys is not None:
        _refuse_nan(keys, called["group"], "A group needs a key; drop or fill it.")
    require_same_length(scores=xs, labels=ys, weights=ws, groups=keys)
    return Columns(xs, ys, ws, keys)


def __dir__() -> list[str]:
    return __all__
