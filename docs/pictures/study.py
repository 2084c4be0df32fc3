# SPDX-License-Identifier: Apache-2.0
"""Draw the three pictures of docs/study.md from the raw results.

python docs/pictures/study.py, with matplotlib and the extra `study` installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.study import analysis, tables

COLOURS = {
    "limen, recommended": ("#000000", "o"),
    "limen, exact": ("#0072B2", "s"),
    "scikit-learn's tuner, five folds": ("#D55E00", "^"),
    "temperature": ("#7F3C8D", "d"),
    "Platt": ("#999999", "v"),
    "beta": ("#CC79A7", "D"),
    "isotonic": ("#009E73", "P"),
    "Venn-Abers": ("#E69F00", "X"),
    "BBQ": ("#56B4E9", "*"),
}
CAP = 0.055  # of excess log loss: higher values are written down


def sized(axes: plt.Axes, sizes: list[int]) -> None:
    """Numbers of samples below, evenly spread by their logarithm."""
    axes.set(xscale="log")
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)


def by_size(target: Path) -> None:
    """Excess cost and excess log loss over the number of samples."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for name, (colour, marker) in COLOURS.items():
        found = analysis.by_size("random", name)
        means = [mean for mean, _ in found.values()]
        left.plot(list(found), means, color=colour, marker=marker, label=name)
    loss = analysis.measured("log loss")
    lowest = {
        n: min(
            analysis.by_size("random", name, loss)[n][0]
            for name in analysis.MAPS
            if n in analysis.by_size("random", name, loss)
        )
        for n in tables.SIZES
    }
    for name, (colour, marker) in COLOURS.items():
        if name in analysis.MAPS:
            found = analysis.by_size("random", name, loss)
            above = [mean - lowest[n] for n, (mean, _) in found.items()]
            right.plot(list(found), above, color=colour, marker=marker)
            if above[0] > CAP:
                told = f"   {name} at {next(iter(found))}: {above[0]:.2f}"
                right.text(list(found)[1], 0.97 * CAP, told, color=colour, fontsize=9)
    for axes in (left, right):
        sized(axes, tables.SIZES)
        axes.set_xlabel("samples to fit on")
    left.set_yscale("log")
    left.set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
    left.minorticks_off()
    right.set_ylim(-0.001, CAP)
    left.set_ylabel("cost on new rows over the best, % of the trivial cost")
    right.set_ylabel("log loss on new rows over the best map")
    left.set_title("decisions, five cost ratios", fontsize=11)
    right.set_title("probabilities", fontsize=11)
    left.legend(frameon=False, fontsize=8, loc="lower left")
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)


def critical(axes: plt.Axes, found: analysis.Ranks, title: str) -> None:
    """Mean ranks on a line, and bars over methods that the test cannot tell apart."""
    names = sorted(found.mean, key=lambda name: found.mean[name])
    ranks = [found.mean[name] for name in names]
    low, high = 1, len(names)
    rows = (len(names) + 1) // 2
    axes.set(xlim=(low - 4.5, high + 4.5))
    axes.axis("off")
    axes.plot([low, high], [0, 0], color="black", lw=1)
    for each in range(low, high + 1):
        axes.plot([each, each], [0, 0.15], color="black", lw=1)
        axes.text(each, 0.3, str(each), ha="center", fontsize=8)
    level, drawn = -0.35, 0
    reached = 0.0
    for place, rank in enumerate(ranks):
        end = max(each for each in ranks if each - rank <= found.critical)
        if end > max(reached, rank) and place < len(ranks) - 1:
            axes.plot([rank - 0.05, end + 0.05], [level - 0.2 * drawn] * 2, color="#0072B2", lw=3)
            drawn, reached = drawn + 1, end
    top = level - 0.2 * drawn - 0.4
    for place, (name, rank) in enumerate(zip(names, ranks, strict=True)):
        left = place < rows
        height = top - 0.75 * (place if left else len(names) - 1 - place)
        edge = low - 0.3 if left else high + 0.3
        axes.plot([rank, rank, edge], [0, height, height], color="#777777", lw=0.8)
        axes.text(
            edge - 0.1 if left else edge + 0.1,
            height,
            f"{name}  {rank:.1f}" if left else f"{rank:.1f}  {name}",
            ha="right" if left else "left",
            va="center",
            fontsize=9,
            fontweight="bold" if name.startswith("limen") else "normal",
        )
    axes.plot([low, low + found.critical], [1.1, 1.1], color="black", lw=2)
    axes.text(low + found.critical + 0.2, 1.1, "critical difference", va="center", fontsize=8)
    axes.set_ylim(top - 0.75 * rows, 1.6)
    axes.set_title(title, fontsize=11)


def ranked(target: Path) -> None:
    """Two critical-difference diagrams: costs of all methods, log loss of maps."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 7.4), layout="constrained")
    critical(top, tables.cost_ranks(), "cost on new rows: mean rank over sets, 1 is best")
    critical(bottom, tables.probability_ranks("log loss"), "log loss on new rows")
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)


def one_more(target: Path) -> None:
    """CPU time to take in one more sample, over the number of samples held."""
    found = analysis.work()
    figure, axes = plt.subplots(figsize=(9, 5.4), layout="constrained")
    ends = []
    for name in found[min(found)]:
        values = {n: each[name]["one more"] for n, each in found.items() if name in each}
        update = not found[min(found)][name]["refit"]
        ours = name.startswith("limen")
        colour = "#000000" if ours and update else "#0072B2" if update else "#999999"
        axes.plot(
            list(values), list(values.values()), color=colour, marker=".", lw=2 if ours else 1
        )
        ends.append((max(values), values[max(values)], name, colour))
    written = 0.0
    for n, value, name, colour in sorted(ends, key=lambda end: end[1]):
        height = max(value, written * 1.75)
        written = height
        axes.annotate(
            name,
            (n, value),
            (2.2e6, height),
            color=colour,
            fontsize=8,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": "#cccccc",
                "lw": 0.6,
                "shrinkB": 3,
                "relpos": (0, 0.5),
            },
        )
    axes.set(yscale="log", xlabel="samples held", ylabel="seconds of CPU for one more sample")
    sized(axes, list(found))
    axes.set_xlim(80, 2e6)
    axes.set_title("black and blue: updates; grey: refits", fontsize=11)
    figure.savefig(target, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def draw(folder: Path) -> None:
    """Draw all three, the same bytes every time."""
    plt.switch_backend("svg")
    plt.rcParams.update({"svg.hashsalt": "limen", "svg.fonttype": "path", "font.size": 10})
    by_size(folder / "study_sizes.svg")
    ranked(folder / "study_ranks.svg")
    one_more(folder / "study_work.svg")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
