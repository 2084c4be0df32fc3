# SPDX-License-Identifier: Apache-2.0
"""The report: the figures on the page are the library's, and a real browser draws them."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest

import limen
from limen.cli import main
from limen.demo import load_phishing, phishing_csv

SCORES, LABELS = load_phishing()
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
TEAMS = ("a", "b", "<i>c</i>")


class Tables(HTMLParser):
    """The cells of all tables, row by row."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.open = False
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: object) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        self.open = tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self.open = False

    def handle_data(self, data: str) -> None:
        if self.open:
            self.tables[-1][-1][-1] += data


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    rows = phishing_csv().splitlines()
    teams = ["team", *(TEAMS[place % 3] for place in range(len(SCORES)))]
    (folder / "s.csv").write_text("\n".join(map(",".join, zip(rows, teams, strict=True))))
    given = ["--false-negative", "5", "--group-column", "team", "-o", str(folder / "report.html")]

    assert 0 == main(["report", str(folder / "s.csv"), *given])
    return (folder / "report.html").read_text(encoding="utf-8")


def figures_of(page: str) -> dict:
    return json.loads(re.search(r'id="figures">(.*?)</script>', page)[1])


def held() -> limen.OnlineCalibrator:
    calibrator = limen.OnlineCalibrator()
    calibrator.update_many(SCORES, LABELS)
    return calibrator


def test_the_shown_threshold_is_the_optimum(page) -> None:
    best = limen.optimal_threshold(SCORES, LABELS, false_negative=5)

    assert repr(best.threshold) == re.search(r'data-exact="([^"]+)"', page)[1]
    assert "280" == re.search(r"<b id=loss-now>([^<]+)</b>", page)[1]


def test_the_alternatives_cost_what_they_cost(page) -> None:
    assert [
        ["this threshold", "280", "", "0.224", "155", "25"],
        ["a threshold of 0.5", "361", "81 (28.9%)", "0.2888", "76", "57"],
        ["answering 1 to all", "702", "422 (150.7%)", "0.5616", "702", "0"],
        ["answering 0 to all", "2,740", "2,460 (878.6%)", "2.192", "0", "548"],
    ] == Tables(page).tables[0][1:]


def test_the_table_of_costs_holds_the_best_threshold_of_each(page) -> None:
    calibrator = held()
    for row in Tables(page).tables[1][1:]:
        costs = {"false_negative": Fraction(row[0])}
        right = calibrator.confusion(calibrator.threshold(**costs))

        assert [
            f"{calibrator.threshold(**costs):.6g}",
            f"{right.positive_rate:.1%}",
            f"{right.precision:.1%}",
            f"{right.recall:.1%}",
            f"{right.fp:.0f}",
            f"{right.fn:.0f}",
        ] == row[1:]


def test_each_group_has_its_own_threshold(page) -> None:
    rows = Tables(page).tables[2][1:]

    assert sorted(TEAMS) == [row[0] for row in rows]
    for row in rows:
        members = [place for place in range(1250) if TEAMS[place % 3] == row[0]]
        scores, labels = [SCORES[p] for p in members], [LABELS[p] for p in members]
        best = limen.optimal_threshold(scores, labels, false_negative=5)

        assert [f"{best.threshold:.6g}", f"{best.loss:.0f}"] == [row[3], row[4]]


def test_names_are_escaped(page) -> None:
    assert "<i>c" not in page
    assert html.escape("<i>c</i>") in page


def test_the_curves_are_those_of_the_library(page) -> None:
    figures, calibrator = figures_of(page), held()
    curve = calibrator.curve(false_negative=5)
    hull = calibrator.roc_hull()
    corners = [tpr for tpr in figures["roc"]["hull"] if tpr is not None]

    assert curve.losses.tolist() == figures["curve"]["loss"]
    assert [calibrator.confusion(threshold) for threshold in curve.thresholds.tolist()] == [
        calibrator.confusion(float(shown)) for shown in figures["curve"]["shown"]
    ]
    assert (hull.tp / 548).tolist()[::-1] == corners
    assert calibrator.blocks().probabilities.repeat(2).tolist() == figures["fit"]["p"]


def test_the_page_asks_for_nothing_else(page) -> None:
    namespace = "http://www.w3.org/2000/svg"  # a name, which nobody fetches

    assert [] == re.findall(
        r"""(?:src|href)=|@import|url\(|https?://""", page.replace(namespace, "")
    )
    assert "default-src 'none'" in page
    assert len(page) < 250_000


@pytest.mark.parametrize(
    "rows",
    [
        "0.1,0\n0.9,1\n",
        "0.5,0\n0.5,1\n",
        "-inf,0\ninf,1\n",
        "inf,0\ninf,0\n0,1\n",
        "1e308,0\n-1e308,1\n",
        "0.9,0\n0.1,1\n",
    ],
)
def test_extreme_samples_make_a_page_too(tmp_path: Path, rows: str) -> None:
    (tmp_path / "s.csv").write_text("score,label\n" + rows)
    code = main(["report", str(tmp_path / "s.csv"), "-o", str(tmp_path / "r.html"), "-q"])
    figures = figures_of((tmp_path / "r.html").read_text())

    assert 0 == code
    assert sorted(figures["curve"]["at"]) == figures["curve"]["at"]
    assert sorted(figures["fit"]["at"]) == figures["fit"]["at"]


def written(tmp_path: Path, rows: str, *given: str) -> str:
    (tmp_path / "s.csv").write_text(rows)
    path = tmp_path / "r.html"

    assert 0 == main(["report", str(tmp_path / "s.csv"), "-o", str(path), "-q", *given])
    return path.read_text(encoding="utf-8")


def test_no_threshold_on_the_page_lies_outside_its_gap_or_has_eighteen_digits(tmp_path) -> None:
    rows = [f"{0.16068409 + place * 1.37e-9!r},{int(place % 3 > 1)}" for place in range(60)]
    page = written(tmp_path, "score,label\n0,0\n1,1\n" + "\n".join(rows))
    words, figures = page[page.index("<main>") : page.index("<footer>")], figures_of(page)
    scores = [0.0, 1.0, *(float(row.split(",")[0]) for row in rows)]
    labels = [0, 1, *(int(row.split(",")[1]) for row in rows)]
    calibrator = limen.OnlineCalibrator()
    calibrator.update_many(scores, labels)
    price = limen.metrics.cost()

    assert limen.optimal_threshold(scores, labels).loss == price(
        *calibrator.confusion(float(re.search(r"data-exact=[^>]*>([^<]+)<", words)[1]))
    )
    assert figures["curve"]["loss"] == [
        price(*calibrator.confusion(float(shown))) for shown in figures["curve"]["shown"]
    ]
    for row in Tables(page).tables[1][1:]:
        best = calibrator.optimum(false_negative=Fraction(row[0]))
        cost = limen.metrics.cost(false_negative=Fraction(row[0]))
        assert best.loss == pytest.approx(cost(*calibrator.confusion(float(row[1]))))
    shown = re.sub(r'data-exact="[^"]*"', "", words)
    assert [] == re.findall(r"\d\.\d{15,}", shown)


def test_the_page_says_that_scores_run_the_other_way(tmp_path, page) -> None:
    rows = "".join(f"{place},{int(place < 20)}\n" for place in range(40))
    turned = written(tmp_path, "score,label\n" + rows)

    assert 'class="remark">The scores seem to run the other way' in turned
    assert 'class="remark"' not in page


def test_a_small_group_has_no_threshold_of_its_own_on_the_page(tmp_path) -> None:
    rows = "score,label,g\n0.1,0,a\n0.2,1,a\n0.3,1,a\n0.4,0,b\n"
    page = written(tmp_path, rows, "--group-column", "g", "--at-least", "2")

    assert [
        ["a", "3", "2", "0.15", "0", "0", ""],
        ["b", "1", "0", "too few samples", "1", "1", ""],
    ] == Tables(page).tables[2][1:]


def test_large_costs_are_read_from_the_charts_digit_by_digit(tmp_path) -> None:
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    rows = "score,label,w\n0.1,1,1728613.25\n0.2,0,7212048\n0.3,1,1234567\n"
    page = written(tmp_path, rows, "--weight-column", "w")
    dom, _ = browse(page + HOVER, tmp_path, "--window-size=1200,900")
    said = re.search(r'class="readout">[^<]* costs ([\d,]+), ', dom)[1]
    figures = figures_of(page)

    assert said in {f"{loss:,.0f}" for loss in figures["curve"]["loss"]}


WATCH = """<script>
addEventListener("error", (e) => { document.documentElement.dataset.wrong = e.message; });
addEventListener("securitypolicyviolation", (e) => {
  document.documentElement.dataset.wrong = e.violatedDirective;
});
</script>"""
HOVER = """<script>
for (const id of ["loss", "roc", "fit"]) {
  const place = document.getElementById(id), box = place.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + 5, bubbles: true };
  place.dispatchEvent(new PointerEvent("pointermove", at));
}
</script>"""
KEYS = """<script>
const press = (id, ...keys) => {
  for (const key of keys) {
    document.getElementById(id).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  }
};
press("loss", "ArrowRight");
press("roc", "ArrowRight", "Home");
press("fit", "ArrowRight", "Escape");
</script>"""


def browse(page: str, folder: Path, *flags: str) -> tuple[str, str]:
    """The page as a browser leaves it, and what its console says."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
        *(f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000", *flags),
        *("--dump-dom", (folder / "page.html").as_uri()),
    ]
    own = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=own)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, "\n".join(console)


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("flags", [("--window-size=1200,900",), ("--window-size=500,900",)])
def test_a_browser_draws_it_without_complaint_and_reads_the_curves(page, tmp_path, flags) -> None:
    dom, console = browse(page.replace("<head>", "<head>" + WATCH) + HOVER, tmp_path, *flags)
    found = re.search(r'class="readout">Threshold ([\d.]+) costs ([\d,]+),', dom)
    said = [float(number.replace(",", "")) for number in found.groups()]
    price = limen.metrics.cost(false_negative=5)

    assert "" == console
    assert "data-wrong" not in dom
    assert 3 == dom.count("<svg")
    assert price(*held().confusion(said[0])) == said[1]
    assert re.search(r'class="readout">At threshold .* of labels 1 and', dom)
    assert re.search(r'class="readout">Scores around .* have label 1\.', dom)


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_keys_read_the_charts_too(page, tmp_path) -> None:
    """The first key goes to the cheapest threshold; Escape brings the caption back."""
    dom, console = browse(page.replace("<head>", "<head>" + WATCH) + KEYS, tmp_path)

    assert "" == console
    assert re.search(r'aria-valuetext="Threshold 0.38526\d* costs 280, 0 above the lowest', dom)
    assert re.search(r'aria-valuetext="At threshold [^"]*: 0.00 % of labels 1', dom)
    assert re.search(r'class="readout">How many of the samples', dom)
    assert 3 == dom.count('role="slider"')


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_browser_would_tell_if_something_were_wrong(page, tmp_path) -> None:
    broken = page.replace("<head>", "<head>" + WATCH).replace('"curve":', '"curse":')
    dom, console = browse(broken, tmp_path)

    assert "data-wrong" in dom
    assert "" != console
