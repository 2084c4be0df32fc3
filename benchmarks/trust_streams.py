# SPDX-License-Identifier: Apache-2.0
"""What following a stream costs: exact, recommended, several memories, and the first threshold.

Rows come in the order of time, their labels so many rows later. Each row is answered by the
threshold of that moment, and what the answers cost is added up from row 800 on. The recommended
threshold is read again after every 50 labels; until it exists, the exact one answers. Several
memories are followed by the recipe of docs/recipes.md, run as it stands there.

    python -m benchmarks.trust_streams DATA
"""

from __future__ import annotations

import doctest
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import limen
from benchmarks.machine import write
from benchmarks.trust_study import IN_TIME, read
from limen import Fading, OnlineThreshold, recommend

RESULT = Path(__file__).parent / "results" / "trust" / "streams.json"
RECIPES = Path(__file__).parents[1] / "docs" / "recipes.md"
DELAYS = (1, 30, 300)
COSTS = ((1, 1), (1, 5), (5, 1))
HALF_LIVES = (250, 1_000, 4_000, 16_000)
FIRST = 500
MOST = 20_000


def recipe() -> Any:
    """The class `Following` of the recipe."""
    examples = doctest.DocTestParser().get_examples(RECIPES.read_text(encoding="utf-8"))
    source = next(each.source for each in examples if each.source.startswith("class Following"))
    names: dict[str, Any] = {"limen": limen}
    exec(source, names)
    return names["Following"]


def cost_of(scores: Any, labels: Any, costs: tuple[int, int], delay: int) -> dict[str, float]:
    """What the answers of each method cost."""
    fp, fn = costs
    given = {"false_positive": fp, "false_negative": fn}
    exact = OnlineThreshold(**given)
    fading = (Fading(OnlineThreshold(**given), half_life) for half_life in HALF_LIVES)
    following = recipe()(OnlineThreshold(**given), *fading)
    first = recommend(scores[:FIRST], labels[:FIRST], **given).threshold
    spent = dict.fromkeys(("exact", "recommended", "several memories", "first 500, then fixed"), 0)
    advised: float | None = None
    for at, score in enumerate(scores.tolist()):
        known = at - delay
        if known >= 0:
            exact.update(float(scores[known]), int(labels[known]))
            following.label(known, int(labels[known]))
            if known % 50 == 0:
                advised = exact.recommended
        followed = following.score(at, score)
        if at < FIRST + max(DELAYS):
            continue
        answers = {
            "exact": score >= exact.threshold,
            "recommended": score >= (exact.threshold if advised is None else advised),
            "several memories": followed,
            "first 500, then fixed": score >= first,
        }
        for name, answer in answers.items():
            if answer != labels[at]:
                spent[name] += fp if answer else fn
    return {name: float(value) for name, value in spent.items()}


def table(found: dict[str, dict[str, float]]) -> Iterator[str]:
    """The lines of the table in docs/trust.md: mean and worst of all sets and costs."""
    names = ("recommended", "several memories", "first 500, then fixed")
    shown = {
        delay: {
            name: [
                cost[name] / cost["exact"]
                for case, cost in found.items()
                if case.endswith(f"after {delay}")
            ]
            for name in names
        }
        for delay in DELAYS
    }
    yield f"| labels come after | {' | '.join(names)} |"
    yield "|---" * (1 + len(names)) + "|"
    for delay, ratios in shown.items():
        cells = []
        for name in names:
            mean = f"{np.mean(ratios[name]):.2f}"
            best = float(mean) < 1 and all(
                np.mean(ratios[name]) <= np.mean(other) for other in ratios.values()
            )
            cells.append(f"{f'**{mean}**' if best else mean}, {max(ratios[name]):.2f}")
        yield f"| {delay} {'row' if delay == 1 else 'rows'} | {' | '.join(cells)} |"


def main() -> None:
    folder = Path(sys.argv[1])
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.csv")):
        if path.stem not in IN_TIME:
            continue
        scores, labels = read(path)
        if len(scores) < 2 * FIRST + max(DELAYS):
            continue
        scores, labels = np.asarray(scores)[:MOST], np.asarray(labels)[:MOST]
        for costs in COSTS:
            for delay in DELAYS:
                name = f"{path.stem}; {costs[0]} to {costs[1]}; labels after {delay}"
                found[name] = cost_of(scores, labels, costs, delay)
                print(name, found[name], flush=True)
        write(RESULT, {"rows at most": MOST, "paid from row": FIRST + max(DELAYS), "cost": found})
    print(*table(found), sep="\n")


if __name__ == "__main__":
    main()
