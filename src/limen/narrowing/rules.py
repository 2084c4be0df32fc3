# SPDX-License-Identifier: Apache-2.0
"""Which buckets can hold something that matters. Rounding may only keep more of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limen.isotonic_fit import isotonic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.narrowing.buckets import Buckets

__all__ = ["cheapest_cuts", "hull_vertices", "losses_of"]


def losses_of(
    found: Buckets, false_positive: int, false_negative: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the loss of the cut before each bucket and above all, and the lowest inside each.

    Inside a bucket the loss falls by at most its labels 0.
    """
    costs = max(false_positive, false_negative)
    exact: Any = (
        np.int64 if (int(found.zeros.sum()) + int(found.ones.sum())) * costs < 2**62 else object
    )
    zeros, ones = found.zeros.astype(exact), found.ones.astype(exact)
    rise = false_negative * ones - false_positive * zeros
    start = false_positive * zeros.sum()
    losses = np.concatenate([np.zeros(1, exact), np.cumsum(rise)]) + start
    return losses, losses[:-1] - false_positive * zeros


def cheapest_cuts(found: Buckets, false_positive: int, false_negative: int) -> NDArray[np.bool_]:
    """Find the buckets in which a cut may be as cheap as the cheapest at their ends.

    Both neighbours of every cheapest cut are among them, or hold one score: so the counts of the
    others, all at their highest score, are enough.
    """
    if not len(found):
        return np.zeros(0, bool)
    losses, reach = losses_of(found, false_positive, false_negative)
    return np.asarray(reach <= losses.min(), dtype=bool) & (found.first < found.last)


def hull_vertices(found: Buckets) -> NDArray[np.bool_]:
    """Find the buckets in which the isotonic fit may change its value.

    In the plane of labels 0 and labels 1 so far, the fit is the lower hull of the points at all
    cuts. The hull of the points between buckets never lies below it. A point inside a bucket lies
    neither right of nor below the corner at which all its labels 0 came first; where that corner
    is not below the hull between buckets, no point inside is a vertex.
    """
    if not len(found):
        return np.zeros(0, bool)
    at = np.arange(len(found), dtype=np.float64)
    zeros, ones = found.zeros > 0, found.ones > 0
    fit = isotonic(
        np.concatenate([at[zeros], at[ones]]),
        np.repeat(np.array([0, 1], np.uint8), [zeros.sum(), ones.sum()]),
        weights=np.concatenate([found.zeros[zeros], found.ones[ones]]),
    )
    # The buckets of a block lie below one chord of the hull.
    block = np.minimum(np.searchsorted(fit.last, at), max(0, len(fit) - 1))
    ends = np.concatenate([[0], fit.last.astype(np.int64) + 1])
    x = np.concatenate([[0], np.cumsum(found.zeros)])
    y = np.concatenate([[0], np.cumsum(found.ones)])
    start, stop = ends[block], ends[block + 1]
    right = (x[1:] - x[start]).astype(np.float64) * (y[stop] - y[start])
    up = (y[:-1] - y[start]).astype(np.float64) * (x[stop] - x[start])
    below: NDArray[np.bool_] = right - up > -1e-15 * (np.abs(right) + np.abs(up))
    return below & (found.first < found.last) & zeros & ones
