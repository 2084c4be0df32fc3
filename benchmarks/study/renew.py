# SPDX-License-Identifier: Apache-2.0
"""python -m benchmarks.study.renew: what is recommended again, the other methods as recorded.

For a rule of limen that has changed, of which the plan knows the name. Splits, costs and new rows
are those of the recorded results, so the rule must not draw random numbers. About a minute; then
`python -m benchmarks.study page` writes the pages.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

from benchmarks.study import data, measures, streams
from benchmarks.study.methods import THRESHOLDS
from benchmarks.study.new_rows import HELD, RULES
from benchmarks.study.plan import COSTS, named
from benchmarks.study.results import header, packed, rounded, stored
from benchmarks.trust_study import Sample

ON_NEW_ROWS = "limen, recommended"
ON_STREAMS = "limen, recommended, refit every 1,000"


def on_new_rows(name: str, how: str, n: int) -> dict[str, Any]:
    """What the rule costs on every split of a cell."""
    count = RULES["splits"]
    made = data.of_law(name, n, count) if how == "law" else data.of_set(name, how, n, count)
    values: dict[str, list[float]] = {}
    for split in made:
        if not split.usable():
            continue
        for costs in COSTS:
            threshold = THRESHOLDS[ON_NEW_ROWS](Sample(split.scores, split.labels, costs), None)
            paid = measures.cost(split.new >= threshold, split.truth, *costs)
            values.setdefault(named(costs), []).append(rounded(paid))
            if costs == (1, 1):
                held = measures.cost(split.scores >= threshold, split.labels.astype(float), 1, 1)
                values.setdefault(HELD, []).append(rounded(held))
    return values


def on_stream(name: str, delay: int, seed: int) -> dict[str, Any]:
    return streams.cell(name, delay, seed, only=[ON_STREAMS])["methods"][ON_STREAMS]


def renew(part: str, method: str, again: Callable[..., dict[str, Any]]) -> None:
    lines = [header(part)]
    for cell in stored(part):
        if "methods" in cell:
            old, new = cell["methods"][method], again(*cell["key"])
            assert set(old) == set(new), cell["key"]
            cell["methods"][method] = {name: new[name] for name in old}
        lines.append(cell)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    packed(part).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    renew("new_rows", ON_NEW_ROWS, on_new_rows)
    renew("streams", ON_STREAMS, on_stream)
