# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/study.md, as Markdown, from the raw results alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.study import analysis
from benchmarks.study.analysis import DECIDING, MAPS, RANKED_SIZES, RAW, Interval, Ranks
from benchmarks.study.plan import COSTS, PLAN, named

SIZES = PLAN["new_rows"]["sizes"]
OURS = "limen, recommended"
MEASURES = ("log loss", "Brier", "ECE, 15 groups", "ECE, 10 groups")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def bold(name: str) -> str:
    return f"**{name}**" if name.startswith("limen") else name


def number(value: float | None, digits: int = 1) -> str:
    if value is None or math.isnan(value):
        return ""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "\N{MINUS SIGN}")


def shown(found: Interval, digits: int = 1) -> str:
    mean, low, high = (number(each, digits) for each in found[:3])
    return f"{mean} ({low} to {high})"


def tested(found: Ranks) -> str:
    """What the Friedman test says, in words."""
    p = "p < 0.0001" if found.p < 1e-4 else f"p = {found.p:.4f}"
    return (
        f"Friedman χ² = {found.statistic:.1f} over {found.sets} sets, {p}; "
        f"critical difference {found.critical:.1f} ranks"
    )


def cost_ranks() -> Ranks:
    _, values = analysis.by_set(analysis.cells("random", RANKED_SIZES), DECIDING)
    return analysis.ranks(values, DECIDING)


def probability_ranks(measure: str) -> Ranks:
    _, values = analysis.by_set(
        analysis.cells("random", RANKED_SIZES), MAPS, analysis.measured(measure)
    )
    return analysis.ranks(values, MAPS)


def sizes_head(how: str, method: str = OURS) -> list[str]:
    counts = {n: count for n, (_, count) in analysis.by_size(how, method).items()}
    return [f"n = {n:,} ({counts[n]})" for n in SIZES if n in counts]


def sizes_row(how: str, method: str, of: Callable = analysis.excess, digits: int = 1) -> list[str]:
    found = analysis.by_size(how, method, of)
    present = [n for n in SIZES if n in analysis.by_size(how, OURS)]
    return [number(found[n][0], digits) if n in found else "" for n in present]


def cost() -> str:
    """Excess cost at random splits, the best rank first; scores as they are come last."""
    found, some = cost_ranks(), analysis.cells("random", RANKED_SIZES)
    rows = []
    for name in [*sorted(found.mean, key=lambda each: found.mean[each]), RAW]:
        versus = "" if name == OURS else shown(analysis.difference(some, OURS, name))
        rank = number(found.mean[name]) if name in found.mean else ""
        rows.append([bold(name), rank, *sizes_row("random", name), versus])
    head = ["method", "mean rank", *sizes_head("random"), "recommended less this"]
    return table(head, rows)


def in_time() -> str:
    some = analysis.cells("time", RANKED_SIZES)
    names = sorted(
        DECIDING, key=lambda name: np.nanmean([analysis.excess(each, name) for each in some])
    )
    rows = []
    for name in names:
        versus = "" if name == OURS else shown(analysis.difference(some, OURS, name))
        rows.append([bold(name), *sizes_row("time", name), versus])
    return table(["method", *sizes_head("time"), "recommended less this"], rows)


def probabilities() -> str:
    found = {measure: probability_ranks(measure) for measure in MEASURES[:3]}
    loss, brier = (analysis.measured(measure) for measure in MEASURES[:2])
    rows = []
    for name in sorted(MAPS, key=lambda each: found["log loss"].mean[each]):
        losses, squares = (analysis.by_size("random", name, of) for of in (loss, brier))
        rows.append(
            [
                name,
                *(number(each.mean[name]) for each in found.values()),
                *(number(losses[n][0], 3) if n in losses else "" for n in (100, 1_000, 10_000)),
                *(number(squares[n][0], 4) if n in squares else "" for n in (100, 1_000, 10_000)),
            ]
        )
    head = [
        "map",
        "rank: log loss",
        "rank: Brier",
        "rank: ECE",
        *(f"log loss, {n:,}" for n in (100, 1_000, 10_000)),
        *(f"Brier, {n:,}" for n in (100, 1_000, 10_000)),
    ]
    return table(head, rows)


def laws() -> str:
    """Excess cost where the truth is known, mean over sizes and costs."""
    names = [OURS, "limen, exact", "Platt", "beta", "isotonic", "Venn-Abers", "BBQ"]
    rows = []
    for law in PLAN["new_rows"]["laws"]:
        some = [each for each in analysis.cells("law") if each["key"][0] == law]
        values = [float(np.mean([analysis.excess(each, name) for each in some])) for name in names]
        rows.append([law, *(f"**{number(v)}**" if v == min(values) else number(v) for v in values)])
    return table(["law", *names], rows)


def floors() -> str:
    rows = []
    for (name, n), found in analysis.floors().items():
        rows.append(
            [
                bold(name),
                f"{n:,}",
                f"{found['sets']:.0f}, {found['runs']:.0f}",
                *(f"{100 * found[each]:.1f} %" for each in ("broken", "none", "recall")),
            ]
        )
    head = [
        "method",
        "n",
        "sets, splits",
        "broken on new rows",
        "no threshold found",
        "mean recall",
    ]
    return table(head, rows)


def streams() -> str:
    """Cost against exact on all samples, by kind of stream and delay of labels."""
    columns = [(group, delay) for group in analysis.STREAMS for delay in (1, 300)]
    rows = []
    for method in PLAN["streams"]["methods"]:
        values = [analysis.stream_ratios(*column, method).mean() for column in columns]
        rows.append([bold(method), *(f"{value:.2f}" for value in values)])
    return table(["method", *(f"{group}, delay {delay}" for group, delay in columns)], rows)


def seconds(value: float | None) -> str:
    if value is None:
        return ""
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size or unit == "µs":
            amount = value / size
            return f"{amount:.0f} {unit}" if amount >= 9.95 else f"{amount:.1f} {unit}"
    return ""


def work() -> str:
    found = analysis.work()
    largest = found[max(found)]
    names = list(found[min(found)])
    last = {name: max(n for n in found if name in found[n]) for name in names}
    names.sort(key=lambda name: (-last[name], found[last[name]][name]["one more"]))
    shown_sizes = [100, 10_000, 1_000_000]
    rows = []
    for name in names:
        at = [found[n].get(name, {}) for n in shown_sizes]
        size = largest.get(name, {}).get("bytes")
        rows.append(
            [
                bold(name),
                *(seconds(each.get("fit")) for each in at),
                *(seconds(each.get("one more")) for each in at),
                "refit" if at[0]["refit"] else "update",
                "" if size is None else f"{size / 1e6:.0f} MB",
            ]
        )
    head = [
        "method",
        *(f"fit, {n:,}" for n in shown_sizes),
        *(f"one more, {n:,}" for n in shown_sizes),
        "by",
        f"memory, {max(found):,}",
    ]
    return table(head, rows)


def held_and_new() -> str:
    """Errors at 1:1 in per cent, on the samples that were fitted on and on new rows."""
    names = ["limen, exact", OURS, "isotonic", "ENIR", "histogram binning", "Platt", "beta"]
    rows = []
    for name in names:
        row = [bold(name)]
        for n in (100, 1_000, 10_000):
            some = analysis.cells("random", [n])
            held = np.mean(
                [np.mean(each["methods"][name]["errors on the samples"]) / n for each in some]
            )
            new = np.mean([np.mean(each["methods"][name]["1:1"]) / each["rows"] for each in some])
            row += [f"{100 * held:.1f}", f"{100 * new:.1f}"]
        rows.append(row)
    head = [
        "method",
        *(f"{kind}, {n:,}" for n in (100, 1_000, 10_000) for kind in ("held", "new")),
    ]
    return table(head, rows)


def claims() -> dict[str, Any]:
    """How often the sigmoid and the bins of the exact threshold cost what it does, and so on."""
    cases = [
        (each["costs"][costs], each["monotone"])
        for each in analysis.done("claims")
        for costs in map(named, COSTS)
    ]
    sigmoids = [one["its sigmoid"] for one, _ in cases]
    monotone = [
        (one[name], one["exact"]) for one, kinds in cases for name, yes in kinds.items() if yes
    ]
    other = [
        (one[name], one["exact"]) for one, kinds in cases for name, yes in kinds.items() if not yes
    ]
    return {
        "cases": len(cases),
        "sigmoids": sum(each is not None for each in sigmoids),
        "sigmoids equal": sum(one["its sigmoid"] == one["exact"] for one, _ in cases),
        "bins equal": sum(one["its bins"] == one["exact"] for one, _ in cases),
        "monotone": len(monotone),
        "monotone cheaper": sum(paid < exact for paid, exact in monotone),
        "monotone equal": sum(paid == exact for paid, exact in monotone),
        "others": len(other),
        "others cheaper": sum(paid < exact for paid, exact in other),
    }


def every_set() -> str:
    """Paired differences on each set, over its splits."""
    others = ["limen, exact", "scikit-learn's tuner, five folds", "beta", "isotonic", "Venn-Abers"]
    rows = []
    for name in PLAN["sets"]:
        some = [each for each in analysis.cells("random", RANKED_SIZES) if each["key"][0] == name]
        rows.append([name, *(shown(analysis.within_a_set(some, OURS, each)) for each in others)])
    return table(["set", *(f"less {each}" for each in others)], rows)
