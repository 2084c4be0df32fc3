# SPDX-License-Identifier: Apache-2.0
"""Draw docs/pictures/new_rows.svg: what thresholds cost on new rows, by method and samples.

python docs/pictures/new_rows.py, with matplotlib installed. The numbers are those of
benchmarks/results/trust/study.jsonl.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).parents[2]
SHOWN = {
    "scikit-learn's tuner, five folds": ("#D55E00", "^"),
    "exact": ("#0072B2", "s"),
    "beta calibration, then fp / (fp + fn)": ("#CC79A7", "D"),
    "recommended": ("#000000", "o"),
}


def draw(target: Path) -> None:
    """Draw the mean excess over the number of samples, the same bytes every time."""
    plt.switch_backend("svg")
    plt.rcParams.update({"svg.hashsalt": "limen", "svg.fonttype": "path", "font.size": 10})
    lines = (ROOT / "benchmarks/results/trust/study.jsonl").read_text().splitlines()[1:]
    cells = [each for each in map(json.loads, lines) if each.get("best")]
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axes, how in zip(panels, ("random", "time"), strict=True):
        some = [each for each in cells if each["split"] == how]
        sizes = sorted({each["n"] for each in some})
        for name, (colour, marker) in SHOWN.items():
            means = [
                100
                * np.mean(
                    [
                        (each["costs"][name] - each["best"]) / each["trivial"]
                        for each in some
                        if each["n"] == n
                    ]
                )
                for n in sizes
            ]
            axes.plot(sizes, means, color=colour, marker=marker, label=name)
        axes.set(xscale="log", ylim=(0, None), xlabel="samples to choose on")
        axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("excess on new rows, % of the trivial cost")
    panels[0].set_title("rows drawn at random", fontsize=11)
    panels[1].set_title("blocks of time", fontsize=11)
    panels[0].legend(frameon=False)
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg"))
