# SPDX-License-Identifier: Apache-2.0
"""Exact answers about more rows than memory holds, by any engine that can count.

The engine numbers every row by a map from scores to buckets and counts each bucket. A rule says
which buckets can hold something that matters; those are split more finely until few rows are left,
and these are fetched. The other buckets are represented by their counts. The answer is that of
`limen` on all rows, bit for bit.

An engine is a `Source` of four functions: draw, count, split, collect. `Chunks` is one for arrays
that come in pieces; `limen.spark` is one, and so is the command line.
"""

from limen.narrowing.answers import LossSource, isotonic, optimal_cut, optimal_threshold
from limen.narrowing.buckets import Counts
from limen.narrowing.chunks import Chunks, added, count_rows
from limen.narrowing.maps import Level, Root
from limen.narrowing.recommended import CountedRecommendation, recommend
from limen.narrowing.rules import cheapest_cuts, hull_vertices
from limen.narrowing.search import Kept, Narrowed, Source, search
from limen.samples import Samples as Rows

__all__ = [
    "Chunks",
    "CountedRecommendation",
    "Counts",
    "Kept",
    "Level",
    "LossSource",
    "Narrowed",
    "Root",
    "Rows",
    "Source",
    "added",
    "cheapest_cuts",
    "count_rows",
    "hull_vertices",
    "isotonic",
    "optimal_cut",
    "optimal_threshold",
    "recommend",
    "search",
]


def __dir__() -> list[str]:
    return __all__
