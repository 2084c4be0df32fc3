# SPDX-License-Identifier: Apache-2.0
"""Scores, labels, weights and losses out of whatever `numpy.asarray` takes, without surprise.

Each function returns a contiguous array of one known type, or raises an error that names the
argument, the place and the value. Nothing is dropped, parsed or repaired on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from limen import _core

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "as_labels",
    "as_numbers",
    "as_scores",
    "require_same_length",
    "samples_with_labels",
    "samples_with_losses",
]

Numbers: TypeAlias = "NDArray[np.int64] | NDArray[np.float64]"

_EXACT = 2**53
_LABEL_TYPES = (np.int8, np.uint8, np.int32, np.int64, np.float32, np.float64)


def _one_dimensional(values: ArrayLike, name: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        at = int(np.flatnonzero(np.ma.getmaskarray(values))[0])
        raise ValueError(f"{name}[{at}] is masked. Drop or fill masked values before the call.")
    array = np.asarray(values)
    if array.ndim != 1:
        hint = (
            " Take the column of the positive class, as in predict_proba(X)[:, 1]."
            if array.ndim == 2 and name == "scores"
            else " Pass one value per sample."
        )
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}.{hint}")
    if array.dtype.kind == "O":
        array = _from_objects(array, name)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be numbers, got an array of {array.dtype}.")
    return array


def _from_objects(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Numbers out of an array of Python objects; text and missing values are refused."""
    for at, value in enumerate(array):
        number = hasattr(value, "__float__") or hasattr(value, "__index__")
        if isinstance(value, str | bytes) or not number:
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
        except (TypeError, ValueError, OverflowError):
            _refuse_object(name, at, value)
    return converted


def _refuse_object(name: str, at: int, value: object) -> NoReturn:
    raise TypeError(
        f"{name}[{at}] is {value!r}, which is not a number. Convert or drop it before the call."
    )


def as_scores(scores: ArrayLike, name: str = "scores") -> NDArray[np.float64]:
    """Scores as float64. Integers that no float64 can tell apart are refused. O(n).

    >>> as_scores([0, 1, 0.5])
    array([0. , 1. , 0.5])
    """
    array = _one_dimensional(scores, name)
    converted = np.ascontiguousarray(array, dtype=np.float64)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        suspects = np.flatnonzero(np.abs(converted) >= _EXACT)
        for at in suspects:
            if int(converted[at]) != int(array[at]):
                raise ValueError(
                    f"{name}[{at}] is {array[at]}, which has no exact float64. Scale the scores "
                    "down, or convert them to float yourself."
                )
    return converted


def as_labels(
    labels: ArrayLike, scores: NDArray[np.float64] | None = None, name: str = "labels"
) -> NDArray[np.uint8]:
    """Labels as bytes of 0 and 1. O(n).

    `scores`, where given, serve to recognise that the two arguments were swapped.

    >>> as_labels([True, False, True])
    array([1, 0, 1], dtype=uint8)
    """
    array = np.ascontiguousarray(_one_dimensional(labels, name))
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype in _LABEL_TYPES:
        found, bad = _core.labels_from(array)
    else:
        found, known = (array == 1).astype(np.uint8), (array == 0) | (array == 1)
        bad = len(array) if known.all() else int(known.argmin())
    if bad < len(array):
        swapped = scores is not None and len(scores) and np.isin(scores, (0.0, 1.0)).all()
        hint = (
            "The scores are all 0 or 1: were the two swapped? Scores come first."
            if swapped
            else "For other classes pass whether each is the positive one: labels == positive."
        )
        raise ValueError(f"{name} must be 0 or 1, got {array[bad]} at {name}[{bad}]. {hint}")
    return found


def as_numbers(values: ArrayLike, name: str) -> Numbers:
    """Weights or losses: whole numbers as int64, others as float64. O(n).

    >>> as_numbers([1, 2], "weights").dtype, as_numbers([1, 0.5], "weights").dtype
    (dtype('int64'), dtype('float64'))
    """
    array = _one_dimensional(values, name)
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, dtype=np.float64)
    if array.dtype.kind == "u" and array.size and array.max() >= 2**63:
        at = int(array.argmax())
        raise OverflowError(f"{name}[{at}] is {array[at]}, which is too large. Scale them down.")
    return np.ascontiguousarray(array, dtype=np.int64)


def require_same_length(**arrays: NDArray[Any] | None) -> None:
    """Raise ValueError unless all arrays that are given have one length.

    >>> require_same_length(scores=np.zeros(2), labels=np.zeros(2), weights=None)
    """
    lengths = {name: len(array) for name, array in arrays.items() if array is not None}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"one entry per sample is needed in each argument, but {listed}.")


def samples_with_labels(
    scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.uint8], Numbers | None]:
    """Scores, labels and weights of one length. O(n).

    >>> samples_with_labels([0.5], [1], None)
    (array([0.5]), array([1], dtype=uint8), None)
    """
    xs = as_scores(scores)
    ys = as_labels(labels, xs)
    ws = None if weights is None else as_numbers(weights, "weights")
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
