# SPDX-License-Identifier: Apache-2.0
"""One array out of any column: NumPy, pandas, polars, Arrow or DuckDB; only NumPy is imported.

A column is recognised by its methods, not by its type: `__array__`, `fetchnumpy`,
`__arrow_c_stream__`, `__dlpack__`. It is not copied where it lies in memory in one piece, without
nulls, as numbers of one byte or more.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_array", "as_array_with_gaps", "columns_of", "frame_of", "is_single", "readable"]

_FRAMES = ("pandas", "polars")
_ARROW = ("__arrow_c_stream__", "__arrow_c_array__")


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Make an array of any type; a null is refused with its place.

    O(1) for a column in one piece, O(n) for others.

    >>> as_array([0.5, 1], "scores")
    array([0.5, 1. ])
    """
    if isinstance(values, np.ndarray):
        return _without_mask(values, name, "masked")
    if isinstance(values, list | tuple):
        return np.asarray(values)
    if hasattr(values, "fetchnumpy"):
        return _without_mask(_only_column(values.fetchnumpy(), name), name, "null")
    values = _convertible(values, name)
    array = np.asarray(values)
    at = _first_null(values) if array.ndim == 1 and array.dtype.kind in "fO" else None
    if at is not None:
        _refuse(name, at, "null")
    return array


def as_array_with_gaps(values: Any, name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Make an array of any type, and find where it has a null, None or nan. O(n).

    Masked values are refused, as everywhere: what lies below a mask is not known to be missing.

    >>> as_array_with_gaps([1, None, 0], "labels")
    (array([1, None, 0], dtype=object), array([False,  True, False]))
    """
    if hasattr(values, "fetchnumpy"):
        column = _only_column(values.fetchnumpy(), name)
        array, nulls = np.asarray(column), np.ma.getmaskarray(column)
    else:
        if isinstance(values, np.ndarray):
            array = _without_mask(values, name, "masked")
        else:
            array = np.asarray(_convertible(values, name))
        nulls = np.zeros(array.shape, bool)
    if array.dtype.kind == "f":
        return array, nulls | np.isnan(array)
    if array.dtype.kind == "O":
        missing = [_is_missing(value) for value in array.ravel()]
        return array, nulls | np.array(missing, bool).reshape(array.shape)
    return array, nulls


def _is_missing(value: Any) -> bool:
    """Whether this is None, nan, or a missing value that does not compare, as that of pandas."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def readable(values: Any, name: str) -> Any:
    """Make a column that can be read more than once: lists stay, others become arrays.

    >>> readable([0.5, 1], "scores"), readable(None, "weights")
    ([0.5, 1], None)
    """
    if values is None or isinstance(values, list | tuple | np.ndarray):
        return values
    return as_array(values, name)


def is_single(values: Any) -> bool:
    """Whether this is one value rather than a column of them. O(1).

    >>> is_single(0.5), is_single([0.5])
    (True, False)
    """
    if hasattr(values, "fetchnumpy") or any(hasattr(values, method) for method in _ARROW):
        return False
    if _has_only_dlpack(values):
        return getattr(values, "ndim", 1) == 0
    return np.ndim(values) == 0


def columns_of(frame: Any, names: list[Any]) -> list[Any]:
    """Read columns of a frame by name, in one query, so that their rows belong together.

    >>> columns_of({"score": [0.5], "label": [1]}, ["label", "score"])
    [[1], [0.5]]
    """
    if not hasattr(frame, "__getitem__") and hasattr(frame, _ARROW[0]):
        frame = _through_arrow(frame, "frame", pyarrow="table", polars="DataFrame")
    known = _names_in(frame)
    for name in names:
        if known is not None and name not in known:
            listed = ", ".join(repr(column) for column in known)
            raise ValueError(f"frame has no column {name!r}. It has {listed or 'none'}.")
    if hasattr(frame, "fetchnumpy"):
        # A second run of the query might bring the rows in another order.
        if hasattr(frame, "project"):
            quoted = ['"' + str(name).replace('"', '""') + '"' for name in names]
            frame = frame.project(", ".join(dict.fromkeys(quoted)))
            given = dict(zip(dict.fromkeys(names), frame.fetchnumpy().values(), strict=True))
        else:
            given = frame.fetchnumpy()
        return [_Fetched(given[name]) for name in names]
    if hasattr(frame, "collect") and hasattr(frame, "collect_schema"):
        frame = frame.select(list(dict.fromkeys(names))).collect()
    return [frame[name] for name in names]


class _Fetched:
    """A column already fetched from DuckDB; a masked value in it is a null."""

    def __init__(self, column: NDArray[Any]) -> None:
        self.column = column

    def fetchnumpy(self) -> dict[str, NDArray[Any]]:
        return {"": self.column}


def _names_in(frame: Any) -> list[Any] | None:
    """List the names of the columns; None where the frame cannot say."""
    if hasattr(frame, "collect_schema"):
        return list(frame.collect_schema().names())
    if hasattr(frame, "fetchnumpy") and hasattr(frame, "description"):
        return [column[0] for column in frame.description or ()]
    for attribute in ("column_names", "columns", "keys"):
        names = getattr(frame, attribute, None)
        if names is not None:
            return list(names() if callable(names) else names)
    names = getattr(getattr(frame, "dtype", None), "names", None)
    return None if names is None else list(names)


def _without_mask(array: NDArray[Any], name: str, word: str) -> NDArray[Any]:
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        _refuse(name, int(np.flatnonzero(np.ma.getmaskarray(array))[0]), word)
    return np.asarray(array)


def _only_column(columns: dict[str, Any], name: str) -> NDArray[Any]:
    if len(columns) != 1:
        listed = ", ".join(repr(column) for column in columns)
        raise ValueError(
            f"{name} must be one column, got {len(columns)}: {listed}. Select one, as in "
            "relation['score'], or pass all to limen.columns.from_frame()."
        )
    column: NDArray[Any] = next(iter(columns.values()))
    return column


def _convertible(values: Any, name: str) -> Any:
    """Return a column that NumPy can read."""
    if not hasattr(values, "__array__") and any(hasattr(values, method) for method in _ARROW):
        return _through_arrow(values, name, pyarrow="chunked_array", polars="Series")
    return _through_dlpack(values, name) if _has_only_dlpack(values) else values


def _through_arrow(values: Any, name: str, **makers: str) -> Any:
    """Convert what has only the Arrow interface, by a library that is already imported."""
    for library, maker in makers.items():
        if library in sys.modules:
            return getattr(sys.modules[library], maker)(values)
    raise TypeError(
        f"{name} is {type(values).__name__}, which has only the Arrow interface. "
        "Import pyarrow or polars before the call, or convert it to a NumPy array."
    )


def _has_only_dlpack(values: Any) -> bool:
    return hasattr(values, "__dlpack__") and not hasattr(values, "__array__")


def _through_dlpack(values: Any, name: str) -> NDArray[Any]:
    try:
        return np.from_dlpack(values)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(
            f"{name} is {type(values).__name__}, which has only the DLPack interface, and NumPy "
            f"cannot read it: {error}. Move it to the memory of the CPU, or convert it to a NumPy "
            "array."
        ) from error


def _first_null(values: Any) -> int | None:
    """Return the place of the first null, by the column's own methods; None if it has none."""
    count = getattr(values, "null_count", None)
    if count is not None:
        number = count() if callable(count) else count
        nulls = np.asarray(values.is_null()) if number else None
    elif hasattr(values, "isna") and not isinstance(getattr(values, "dtype", None), np.dtype):
        nulls = np.asarray(values.isna())
    else:
        nulls = None
    return int(nulls.argmax()) if nulls is not None and nulls.any() else None


def _refuse(name: str, at: int, word: str) -> NoReturn:
    what = "masked values" if word == "masked" else "nulls"
    raise ValueError(f"{name}[{at}] is {word}. Drop or fill {what} before the call.")


def frame_of(columns: dict[str, NDArray[Any]]) -> Any:
    """Make a frame: of pandas or polars, whichever is imported already, or else is installed."""
    for name in sorted(_FRAMES, key=lambda name: name not in sys.modules):
        try:
            return import_module(name).DataFrame(columns)
        except ImportError:
            continue
    raise ImportError(
        'to_frame needs pandas or polars. Install them with: pip install "limen[frames]"'
    )
