# SPDX-License-Identifier: Apache-2.0
"""Write docs/study.md, its pictures, the README's table and the results' page from the results.

page.md holds the words. Where a number or a table goes it says which one: `{{cost table}}`, or
`{{less: limen, recommended; beta}}` for a difference of two methods; FACTS has them all.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path

from benchmarks.study import analysis, tables
from benchmarks.study.plan import PLAN
from benchmarks.study.results import FOLDER, header

ROOT = Path(__file__).parents[2]
PAGE, README = ROOT / "docs" / "study.md", ROOT / "README.md"
LONG = FOLDER / "README.md"
MARKS = ("<!-- cost on new rows: written by make study -->\n", "<!-- end -->")
IN_README = {
    "limen, recommended": "**limen, `recommend`**",
    "limen, exact": "**limen, `optimal_threshold`**",
    "temperature": "temperature scaling, then fp / (fp + fn)",
    "beta": "beta calibration, then fp / (fp + fn)",
    "isotonic": "isotonic regression, then fp / (fp + fn)",
    "scikit-learn's tuner, five folds": "scikit-learn `TunedThresholdClassifierCV`",
}


def less(a: str, b: str, how: str = "random") -> str:
    """Excess cost of a less that of b, with its interval over sets."""
    return tables.shown(analysis.difference(analysis.cells(how, analysis.RANKED_SIZES), a, b))


def less_at(n: str, a: str, b: str) -> str:
    return tables.shown(analysis.difference(analysis.cells("random", [int(n)]), a, b))


def less_of(measure: str, a: str, b: str) -> str:
    """The same of a measure of probabilities, in thousandths."""
    some, of = analysis.cells("random", analysis.RANKED_SIZES), analysis.measured(measure)
    return tables.shown(analysis.difference(some, a, b, lambda *at: 1_000 * of(*at)))


def errors_less(n: str, a: str, b: str) -> str:
    """Errors on new rows at costs 1:1, a less b, in points of per cent."""

    def rate(cell: analysis.Cell, name: str) -> float:
        return 100 * sum(cell["methods"][name]["1:1"]) / len(cell["best"]["1:1"]) / cell["rows"]

    return tables.shown(analysis.difference(analysis.cells("random", [int(n)]), a, b, rate))


def clear_sets(a: str, b: str) -> str:
    """On how many sets a costs less than b, and the whole interval says so."""
    some = analysis.cells("random", analysis.RANKED_SIZES)
    found = [
        analysis.within_a_set([each for each in some if each["key"][0] == name], a, b)
        for name in PLAN["sets"]
    ]
    return str(sum(each.high < 0 for each in found))


def better(a: str, b: str, how: str = "random") -> str:
    found = analysis.difference(analysis.cells(how, analysis.RANKED_SIZES), a, b)
    return f"{found.below} of {found.count}"


def ranks(what: str) -> analysis.Ranks:
    return tables.cost_ranks() if what == "cost" else tables.probability_ranks(what)


def stream(group: str, delay: str, method: str) -> str:
    return f"{analysis.stream_ratios(group, int(delay), method).mean():.2f}"


def stream_less(group: str, delay: str, a: str, b: str) -> str:
    """Cost of a less that of b in per cent of the reference, with its interval over streams."""
    one, other = (analysis.stream_ratios(group, int(delay), name) for name in (a, b))
    return tables.shown(analysis.interval(100 * (one - other)))


def work(method: str, n: str, kind: str) -> str:
    return tables.seconds(analysis.work()[int(n)][method][kind])


def times(method: str, other: str, n: str, kind: str) -> str:
    """How many times as long the other takes."""
    found = analysis.work()[int(n)]
    ratio = found[other][kind] / found[method][kind]
    return f"{float(f'{ratio:.2g}'):,.0f}"


def machine() -> str:
    found = header("new_rows")["machine"]
    versions = ", ".join(
        f"{name} {found[name]}"
        for name in ("scikit-learn", "betacal", "venn-abers", "mapie", "river")
    )
    return f"{found['processor']}, {found['cores']} cores, Python {found['python']}; {versions}"


def load() -> str:
    loads = [value for one in analysis.done("work") for value in one["load"]]
    return f"{min(loads):.1f} to {max(loads):.1f}"


def readme_table() -> str:
    """A few methods at three sizes, and what the numbers are."""
    sizes = (100, 1_000, 10_000)
    found = {name: analysis.by_size("random", name) for name in IN_README}
    order = sorted(IN_README, key=lambda name: found[name][sizes[0]][0])
    rows = [
        [IN_README[name], *(tables.number(found[name][n][0]) + " %" for n in sizes)]
        for name in order
    ]
    head = ["excess cost on new rows", *(f"chosen on {n:,} rows" for n in sizes)]
    sets = ", ".join(str(found["limen, exact"][n][1]) for n in sizes)
    return f"""{tables.table(head, rows)}

Over the cost of the best threshold, in per cent of that of the cheaper constant answer; means over
real data sets ({sets} of them) and five cost ratios from 20:1 to 1:20. [The study](docs/study.md)
has more methods, intervals and tests, and says where limen loses.
"""


FACTS: dict[str, Callable[..., object]] = {
    "cost table": tables.cost,
    "probability table": tables.probabilities,
    "time table": tables.in_time,
    "law table": tables.laws,
    "floor table": tables.floors,
    "stream table": tables.streams,
    "work table": tables.work,
    "held table": tables.held_and_new,
    "set table": tables.every_set,
    "excess": lambda name, n: tables.number(analysis.by_size("random", name)[int(n)][0]),
    "less": less,
    "less at": less_at,
    "less in time": lambda a, b: less(a, b, "time"),
    "less of": less_of,
    "better": better,
    "clear sets": clear_sets,
    "errors less": errors_less,
    "sets at": lambda n: analysis.by_size("random", "limen, exact")[int(n)][1],
    "sets in time": lambda a, b: (
        analysis.difference(analysis.cells("time", analysis.RANKED_SIZES), a, b).count
    ),
    "floor of precision": lambda: PLAN["floors"]["precision"],
    "better in time": lambda a, b: better(a, b, "time"),
    "test": lambda what: tables.tested(ranks(what)),
    "rank": lambda what, name: tables.number(ranks(what).mean[name]),
    "claim": lambda what: f"{tables.claims()[what]:,}",
    "floor": lambda name, n, what: f"{100 * analysis.floors()[name, int(n)][what]:.1f} %",
    "stream": stream,
    "stream less": stream_less,
    "work": work,
    "times": times,
    "load": load,
    "machine": machine,
    "splits": lambda: PLAN["new_rows"]["splits"],
    "sets": lambda: len(PLAN["sets"]),
}


def filled(text: str) -> str:
    def fact(found: re.Match[str]) -> str:
        name, _, arguments = found[1].partition(": ")
        return str(FACTS[name](*arguments.split("; ")) if arguments else FACTS[name]())

    return re.sub(r"\{\{(.+?)\}\}", fact, text)


def page() -> str:
    return filled(Path(__file__).with_name("page.md").read_text())


def long_page() -> str:
    return filled(Path(__file__).with_name("long_page.md").read_text())


def readme() -> str:
    """The README with its table as the results say."""
    before, _, rest = README.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n{readme_table()}\n{MARKS[1]}{after}"


def main() -> None:
    PAGE.write_text(page())
    LONG.write_text(long_page())
    README.write_text(readme())
    pictures = ROOT / "docs" / "pictures"
    runpy.run_path(str(pictures / "study.py"))["draw"](pictures)
    print("docs/study.md, its pictures, and the README's table are those of the results.")
