# SPDX-License-Identifier: Apache-2.0
"""Classes and scores of a fitted classifier of any library, none of which is imported.

A classifier is known by what it has, as in scikit-learn: `classes_`, and `predict_proba` or
`decision_function`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "RESPONSES",
    "classes_of",
    "positive_of",
    "refuse_estimator",
    "require_known",
    "require_obvious_positive",
    "response_of",
    "rows_in",
    "scores_of",
]

RESPONSES = ("predict_proba", "decision_function")


def classes_of(estimator: Any) -> NDArray[Any]:
    """Return the classes of a fitted classifier."""
    if not hasattr(estimator, "classes_"):
        refuse_estimator(estimator)
    return np.asarray(estimator.classes_)


def refuse_estimator(estimator: Any) -> NoReturn:
    """Raise TypeError: this is no classifier, or it is not fitted."""
    raise TypeError(
        "estimator must be a binary classifier with predict_proba or decision_function, got "
        f"{estimator!r}, which has no classes_. Fit it first, or take a classifier such as "
        "LogisticRegression(); to cut scores that you have, use "
        "limen.optimal_threshold(scores, labels)."
    )


def response_of(estimator: Any, method: str | tuple[str, ...]) -> str:
    """Choose the method of a classifier that gives scores: the first it has of these."""
    if isinstance(method, str):
        method = RESPONSES if method == "auto" else (method,)
    names = method
    for name in names:
        if name in RESPONSES and hasattr(estimator, name):
            return name
    raise AttributeError(
        f"{type(estimator).__name__} has none of {', '.join(names)}, so it gives no scores. Take "
        "a classifier that has one, or choose another response_method."
    )


def scores_of(
    estimator: Any, rows: Any, method: str | tuple[str, ...], positive: Any
) -> NDArray[np.float64]:
    """Score rows for the positive class: larger means more positive.

    One column, which some libraries give as shape (n, 1), is that of the second class.
    """
    classes = classes_of(estimator)
    if len(classes) == 1:  # fitted on rows of one class only
        return np.full(rows_in(rows), float(classes[0] == positive))
    used = response_of(estimator, method)
    given: NDArray[np.float64] = np.asarray(getattr(estimator, used)(rows))
    if given.ndim == 2:
        if given.shape[1] > 1:
            return given[:, int(np.flatnonzero(classes == positive)[0])]
        given = given[:, 0]
    if classes[1] == positive:
        return given
    return 1 - given if used == "predict_proba" else -given


def rows_in(rows: Any) -> int:
    """Count the rows of a frame, an array or a sparse matrix, which has no length."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def require_known(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise ValueError at the first row whose class is not one of these.

    >>> require_known(np.array([0, 1, 2]), np.array([0, 1]))
    Traceback (most recent call last):
        ...
    ValueError: y[2] must be one of [0, 1], got 2.
    """
    strange = np.flatnonzero(~np.isin(y, classes))
    if len(strange):
        at = int(strange[0])
        value = y[at : at + 1].tolist()[0]
        raise ValueError(f"y[{at}] must be one of {classes.tolist()!r}, got {value!r}.")


def positive_of(
    classes: NDArray[Any], pos_label: Any, *, matters: bool, y: ArrayLike | None = None
) -> Any:
    """Return the positive class: `pos_label`, or without one the second of two classes.

    Where the answer depends on it (`matters`), the second must be the positive one by custom.

    >>> int(positive_of(np.array([0, 1]), None, matters=True))
    1
    """
    if pos_label is None:
        if matters:
            require_obvious_positive(classes, y)
        return classes[1]
    if pos_label not in classes:
        raise ValueError(f"pos_label must be one of {classes.tolist()!r}, got {pos_label!r}.")
    return pos_label


def require_obvious_positive(classes: ArrayLike, y: ArrayLike | None = None) -> None:
    """Raise ValueError unless these are False and True, 0 and 1, or -1 and 1.

    >>> require_obvious_positive([-1, 1])
    >>> require_obvious_positive(["fraud", "ok"])
    Traceback (most recent call last):
        ...
    ValueError: pos_label must be given: the answer depends on which class is the positive one, \
and y holds 'fraud' and 'ok'. Write pos_label='fraud' or pos_label='ok'.
    """
    first, second = np.asarray(classes).tolist()
    if not isinstance(first, str | bytes) and (first, second) in ((0, 1), (-1, 1)):
        return
    listed = [repr(first), repr(second)]
    if y is not None:
        counts = (np.count_nonzero(np.asarray(y) == value) for value in (first, second))
        listed = [f"{name} ({count:,} rows)" for name, count in zip(listed, counts, strict=True)]
    raise ValueError(
        "pos_label must be given: the answer depends on which class is the positive one, and y "
        f"holds {' and '.join(listed)}. Write pos_label={first!r} or pos_label={second!r}."
    )
