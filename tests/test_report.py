# SPDX-License-Identifier: Apache-2.0
"""The report: the figures on the page are the library's, and a real browser draws them."""

from __future__ import annotations

import html
import json
import math
import os
import re
import subprocess
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import CHROMIUM, needs_chromium

import limen
from limen.cli import main
from limen.demo import load_phishing, phishing_csv

SCORES, LABELS = load_phishing()
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
            self.open = True
        elif self.open:
            self.tables[-1][-1][-1] += "|"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
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


def recommended(**costs: object) -> limen.Recommendation:
    return limen.recommend(SCORES, LABELS, **costs)


def shown(page: str, id: str, *names: str) -> list[str]:
    """Attributes and the text of the element with this id."""
    found = re.search(rf'<\w+[^>]* ?id="?{id}"?[^>]*>([^<]*)<', page)
    given = [re.search(rf'{name}="([^"]*)"', found[0])[1] for name in names]
    return [*given, html.unescape(found[1])]


def test_the_headline_is_the_recommended_threshold_with_its_interval(page) -> None:
    found = recommended(false_negative=5)
    low, high = found.interval

    assert [repr(found.threshold), "0.345809"] == shown(page, "threshold", "data-exact")
    assert [repr(low), repr(high), "0.1971 to 0.4909"] == shown(
        page, "interval", "data-low", "data-high"
    )
    assert page.index('id="interval"') < page.index('id="cheapest"') < page.index('class="tiles"')


def test_the_cheapest_threshold_stands_beside_the_recommended_one(page) -> None:
    best = limen.optimal_threshold(SCORES, LABELS, false_negative=5)

    assert [repr(best.threshold), "0.385269"] == shown(page, "cheapest", "data-exact")
    assert ["280"] == shown(page, "loss-now")


def test_the_cost_of_a_new_row_is_the_cross_fitted_one(page) -> None:
    cost = recommended(false_negative=5).cost()
    low, high = cost.interval

    assert [repr(cost.mean), f"{cost.mean:.4g}"] == shown(page, "new-cost", "data-exact")
    assert f"(95 % interval {low:.4g} to {high:.4g})" in page
    assert f"It rests on {cost.errors} errors." in page


def test_what_is_nearly_as_cheap_does_not_read_like_a_confidence_interval(page) -> None:
    """The loss curve over the range has a loss of at most 1 % more, which is all that it says."""
    (sentence,) = re.findall(r">([^>]*1 % more[^<]*)<", page)
    ends = [float(end) for end in re.search(r"from ([\d.]+) to ([\d.]+) costs", sentence).groups()]
    curve = held().curve(false_negative=5)
    inside = (curve.thresholds >= ends[0]) & (curve.thresholds <= ends[1])

    assert sentence.startswith("On these rows, ")
    assert "no confidence interval" in sentence
    assert curve.losses[inside].max() <= 1.01 * 280


def test_the_alternatives_cost_what_they_cost(page) -> None:
    assert [
        ["recommended for new rows", "294", "14 (5.0%)", "0.2352", "189", "21", "yes"],
        ["cheapest on these rows", "280", "", "0.224", "155", "25", "yes"],
        ["a threshold of 0.5", "361", "81 (28.9%)", "0.2888", "76", "57", "no"],
        ["always positive", "702", "422 (150.7%)", "0.5616", "702", "0", "no"],
        ["never positive", "2,740", "2,460 (878.6%)", "2.192", "0", "548", "no"],
    ] == Tables(page).tables[0][1:]
    assert limen.recommend(SCORES, LABELS, false_negative=5, current=0.5).keep is False


def test_the_table_of_costs_holds_both_thresholds_of_each(page) -> None:
    calibrator = held()
    for row in Tables(page).tables[1][1:]:
        costs = {"false_negative": Fraction(row[0])}
        found = recommended(**costs)
        right = calibrator.confusion(found.threshold)
        ends = [f"{end:.4g}" for end in found.interval if math.isfinite(end)]

        assert ends == re.findall(r"[\d.]+", row[2])
        assert [
            f"{found.threshold:.6g}",
            f"{calibrator.threshold(**costs):.6g}",
            f"{right.positive_rate:.1%}",
            f"{right.precision:.1%}",
            f"{right.recall:.1%}",
            f"{right.fp:.0f}",
            f"{right.fn:.0f}",
        ] == [row[1], *row[3:]]


def test_each_group_has_the_shrunk_threshold_beside_the_exact_one(page) -> None:
    rows = Tables(page).tables[2][1:]
    teams = [TEAMS[place % 3] for place in range(len(SCORES))]
    found = limen.by_group(teams, SCORES, LABELS, false_negative=5, shrink=True)

    assert sorted(TEAMS) == [row[0] for row in rows]
    for row in rows:
        shrunk = found.recommendation(row[0])
        low, high = map(float, row[4].split(" to "))
        best = shrunk.optimum

        assert [f"{shrunk.threshold:.6g}", f"{best.threshold:.6g}", f"{best.loss:.0f}"] == [
            row[3],
            row[5],
            row[6],
        ]
        assert shrunk.interval == pytest.approx((low, high), abs=1e-4)


def test_a_group_whose_own_rows_rule_out_the_common_threshold_has_another(tmp_path) -> None:
    """In the group, scores are shifted, and with them its interval."""
    rows = [
        f"{score + 3 * (place % 2)},{label},{'ab'[place % 2]}"
        for place, (score, label) in enumerate(zip(SCORES, LABELS, strict=True))
    ]
    page = written(tmp_path, "score,label,g\n" + "\n".join(rows), "--group-column", "g")
    common = shown(page, "threshold", "data-exact")[1]
    a, b = Tables(page).tables[2][1:]

    assert common != b[3] or common != a[3]
    for row in (a, b):
        low, high = map(float, row[4].split(" to "))
        assert low - 1e-3 <= float(row[3]) <= high + 1e-3


def test_groups_that_rest_on_few_samples_are_grey_and_say_so(tmp_path) -> None:
    rows = ["score,label,g"]
    for place, (score, label) in enumerate(zip(SCORES, LABELS, strict=True)):
        group = "small" if place % 104 == 0 else "rare" if label or place % 2 else "large"
        rows.append(f"{score!r},{label},{group}")
    rows += [f"{place / 9},1,large" for place in range(7)]
    page = written(tmp_path, "\n".join(rows), "--group-column", "g")
    large, rare, small = Tables(page).tables[2][1:]
    classes = re.findall(r"<tr( class=\"few\")?><td>(large|rare|small)", page)

    assert [(' class="few"', "large"), ("", "rare"), (' class="few"', "small")] == classes
    assert "large|rests on 7 samples of label 1" == large[0]
    assert "rare" == rare[0]
    assert "small|rests on 13 samples" == small[0]


def test_a_group_of_too_few_samples_takes_the_common_threshold(tmp_path) -> None:
    rows = [
        f"{score!r},{label},{'tiny' if place < 4 else 'all'}"
        for place, (score, label) in enumerate(zip(SCORES, LABELS, strict=True))
    ]
    given = ["--group-column", "g", "--false-negative", "5"]
    page = written(tmp_path, "score,label,g\n" + "\n".join(rows), *given)
    _, tiny = Tables(page).tables[2][1:]

    assert [shown(page, "threshold")[0], "too few to say"] == tiny[3:5]


def test_a_group_without_a_threshold_of_its_own_saves_nothing(tmp_path) -> None:
    """Of the groups, each costs less at the cheapest threshold than at the recommended one."""
    rows = [
        f"{score!r},{label},{'abc'[place % 3]}"
        for place, (score, label) in enumerate(zip(SCORES, LABELS, strict=True))
    ]
    given = ["--group-column", "g", "--false-negative", "5", "--at-least", "1000"]
    page = written(tmp_path, "score,label,g\n" + "\n".join(rows), *given)

    for row in Tables(page).tables[2][1:]:
        assert ["0.345809", "too few to say", "too few samples"] == row[3:6]
        assert [row[7], ""] == [row[6], row[8]]


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


def test_the_band_and_the_marks_are_those_of_the_library(page) -> None:
    figures, found = figures_of(page), recommended(false_negative=5)
    curve = held().curve(false_negative=5)
    low, high = found.interval
    mark, cheapest = figures["marks"]

    assert [low, high] == [figures["band"]["from"], figures["band"]["to"]]
    assert "95 % interval of the best threshold: 0.1971 to 0.4909" == figures["band"]["text"]
    assert [found.threshold, found.optimum.threshold] == [mark["at"], cheapest["at"]]
    assert [294, 280] == [mark["loss"], cheapest["loss"]]
    assert ((curve.thresholds >= low) & (curve.thresholds <= high)).tolist() == figures["curve"][
        "band"
    ]


def test_a_thinned_curve_keeps_the_recommended_threshold_and_the_interval(tmp_path) -> None:
    scores = [place / 5000 for place in range(5000)]
    labels = [int(place * 7919 % 5000 < place) for place in range(5000)]
    rows = "".join(f"{score!r},{label}\n" for score, label in zip(scores, labels, strict=True))
    figures = figures_of(written(tmp_path, "score,label\n" + rows))
    found = limen.recommend(scores, labels)

    assert len(figures["curve"]["at"]) < 2100
    assert set(found.interval) <= set(figures["curve"]["at"])
    below = [sum(score < at for score in scores) for at in figures["curve"]["at"]]
    assert sum(score < found.threshold for score in scores) in below


@pytest.mark.parametrize(
    ("rows", "given", "told"),
    [
        (
            "0.1,0,1\n0.2,0,1\n0.3,1,1\n0.4,1,1\n",
            [],
            "a threshold cannot be recommended from 2 samples of label 1: it takes 5 of each",
        ),
        (
            "".join(f"{place},{place % 2},{10 ** (place // 2)}\n" for place in range(14)),
            ["--weight-column", "w"],
            "from 7 samples of label 1, whose weights are worth 1.2: it takes 5",
        ),
    ],
)
def test_where_nothing_can_be_recommended_the_page_says_so(tmp_path, rows, given, told) -> None:
    page = written(tmp_path, "score,label,w\n" + rows, *given)

    assert told in html.unescape(page)
    assert "This is the cheapest threshold on these rows" in page
    assert 'id="interval"' not in page
    assert "95 % interval" not in page[page.index("<main>") : page.index("<footer>")]
    assert figures_of(page)["band"] is None
    assert "cheapest on these rows" == Tables(page).tables[0][1][0]


def test_the_command_says_what_the_page_says(tmp_path, capsys) -> None:
    (tmp_path / "s.csv").write_text(phishing_csv())
    (tmp_path / "few.csv").write_text("score,label\n0.1,0\n0.9,1\n")
    for name in ("s", "few"):
        main(["report", str(tmp_path / f"{name}.csv"), "-o", str(tmp_path / f"{name}.html")])
    all_rows, few, refusal = capsys.readouterr().err.splitlines()

    assert "threshold 0.506199 for new rows (95 % interval 0.445 to 0.5859); cheapest" in all_rows
    assert few.endswith("cheapest threshold 0.5, cost 0 of 2 samples")
    assert "limen: a threshold cannot be recommended" in refusal


def test_where_the_cost_of_a_new_row_cannot_be_estimated_the_page_says_so(tmp_path) -> None:
    rows = "".join(f"{place},{int(place > 6)}\n" for place in range(12))

    assert "cost on new rows cannot be estimated from 5 samples" in written(
        tmp_path, "score,label\n" + rows
    )


def test_a_cost_that_rests_on_few_errors_says_so(tmp_path) -> None:
    rows = "".join(f"{place},{int(place > 29)}\n" for place in range(60))
    page = written(tmp_path, "score,label\n" + rows)

    assert re.search(r"It rests on \d errors?, too few to trust the interval", page)


def test_weights_that_need_a_unit_are_recommended_from_in_that_unit(tmp_path) -> None:
    """Weights of 36 bits and a tenth add up to too many units, unless the unit is given."""
    weights = [(place % 3 + 1) * 10**11 + 1 for place in range(len(SCORES))]
    rows = "".join(
        f"{score!r},{label},{weight // 10}.1\n"
        for score, label, weight in zip(SCORES, LABELS, weights, strict=True)
    )
    given = ["--weight-column", "w", "--unit", "0.1"]
    page = written(tmp_path, "score,label,w\n" + rows, *given)
    found = limen.recommend(SCORES, LABELS, weights=weights)

    assert repr(found.threshold) == shown(page, "threshold", "data-exact")[0]
    assert "A new row of weight 1 is expected to cost" in page
    assert f"{found.cost().mean:.4g}" == shown(page, "new-cost")[0]


def test_one_threshold_that_is_both_is_marked_once(tmp_path) -> None:
    rows = "".join(f"{place},{int(place > 29)}\n" for place in range(60))
    page = written(tmp_path, "score,label\n" + rows)

    assert 1 == len(figures_of(page)["marks"])
    assert "recommended, and cheapest on these rows" == Tables(page).tables[0][1][0]
    assert "No threshold costs less on these rows (cost <b id=loss-now>0</b>)" in page


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
    assert "Infinity" not in json.dumps(figures)  # which JSON.parse would refuse
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

    exact, short = limen.recommend(scores, labels).threshold, shown(words, "threshold")[0]
    assert calibrator.confusion(exact) == calibrator.confusion(float(short))
    assert figures["curve"]["loss"] == [
        price(*calibrator.confusion(float(shown))) for shown in figures["curve"]["shown"]
    ]
    for row in Tables(page).tables[1][1:]:
        best = calibrator.optimum(false_negative=Fraction(row[0]))
        cost = limen.metrics.cost(false_negative=Fraction(row[0]))
        assert best.loss == pytest.approx(cost(*calibrator.confusion(float(row[3]))))
    read = re.sub(r'data-\w+="[^"]*"', "", words)
    assert [] == re.findall(r"\d\.\d{15,}", read)


def test_the_page_says_that_scores_run_the_other_way(tmp_path, page) -> None:
    rows = "".join(f"{place},{int(place < 20)}\n" for place in range(40))
    turned = written(tmp_path, "score,label\n" + rows)

    assert 'class="remark">The scores seem to run the other way' in turned
    assert 'class="remark"' not in page


def test_a_small_group_has_no_threshold_of_its_own_on_the_page(tmp_path) -> None:
    rows = "score,label,g\n0.1,0,a\n0.2,1,a\n0.3,1,a\n0.4,0,b\n"
    page = written(tmp_path, rows, "--group-column", "g", "--at-least", "2")

    assert [
        ["a|rests on 3 samples", "3", "2", "0.15", "0", "0", ""],
        ["b|rests on 1 sample", "1", "0", "too few samples", "1", "1", ""],
    ] == Tables(page).tables[2][1:]


@needs_chromium
def test_large_costs_are_read_from_the_charts_digit_by_digit(tmp_path) -> None:
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


def browse(page: str, folder: Path, *flags: str, name: str = "page.html") -> tuple[str, str]:
    """The page as a browser leaves it, and what its console says."""
    (folder / name).write_text(page, encoding="utf-8")
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
        *(f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000", *flags),
        *("--dump-dom", (folder / name).as_uri()),
    ]
    own = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=own)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, "\n".join(console)


@needs_chromium
@pytest.mark.parametrize("flags", [("--window-size=1200,900",), ("--window-size=500,900",)])
def test_a_browser_draws_it_without_complaint_and_reads_the_curves(page, tmp_path, flags) -> None:
    dom, console = browse(page.replace("<head>", "<head>" + WATCH) + HOVER, tmp_path, *flags)
    found = re.search(r'class="readout">Threshold ([\d.]+) costs ([\d,]+),', dom)
    said = [float(number.replace(",", "")) for number in found.groups()]
    price = limen.metrics.cost(false_negative=5)

    assert "" == console
    assert "data-wrong" not in dom
    assert 3 == dom.count('<svg viewBox="0 0 ') - dom.count('<svg viewBox="0 0 28 14"')
    assert price(*held().confusion(said[0])) == said[1]
    assert re.search(r'class="readout">At threshold .* of labels 1 and', dom)
    assert re.search(r'class="readout">Scores around .* have label 1\.', dom)


@needs_chromium
def test_keys_read_the_charts_too(page, tmp_path) -> None:
    """The first key goes to the recommended threshold; Escape brings the caption back."""
    dom, console = browse(page.replace("<head>", "<head>" + WATCH) + KEYS, tmp_path)

    assert "" == console
    said = re.search(r'aria-valuetext="(Threshold 0.345809 costs 294, 14 above the [^"]*)"', dom)
    assert said[1].endswith("answered 1. Inside the 95 % interval.")
    assert re.search(r'aria-valuetext="Flag nobody: 0.00 % of labels 1', dom)
    assert re.search(r'class="readout">How many of the samples', dom)
    assert 3 == dom.count('role="slider"')


@needs_chromium
def test_a_browser_draws_the_band_where_the_interval_is(page, tmp_path) -> None:
    dom, _ = browse(page, tmp_path, "--window-size=1200,900")
    band = re.search(r'<rect class="band" x="([\d.]+)" width="([\d.]+)" y="10"', dom)
    start, width = map(float, band.groups())
    mark, cheapest = (
        float(re.search(rf'<line class="{name}" x1="([\d.]+)"[^>]* y1="10"', dom)[1])
        for name in ("mark", "cheapest")
    )
    found = recommended(false_negative=5)
    low, high = found.interval
    pixels = width / (high - low)
    legends = re.findall(r'<ul class="legend">(.*?)</ul>', dom)
    label = re.search(r'id="loss"[^>]*aria-label="([^"]*)"', dom)[1]

    assert start + pixels * (found.threshold - low) == pytest.approx(mark)
    assert start + pixels * (found.optimum.threshold - low) == pytest.approx(cheapest)
    assert 2 == len(legends)
    for text in (
        "recommended for new rows: 0.345809",
        "cheapest on these rows: 0.385269",
        "95 % interval of the best threshold: 0.1971 to 0.4909",
    ):
        assert f"</svg>{text}</li>" in legends[0]
        assert text in label


FRAME = """<body><iframe src="page.html" width="{width}" height="4000"></iframe><script>
addEventListener("load", () => {{
  const inside = document.querySelector("iframe").contentDocument.documentElement;
  document.body.dataset.wide = `${{inside.clientWidth}} ${{inside.scrollWidth}}`;
}});
</script>"""


@needs_chromium
@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_is_wider_than_the_screen(page, tmp_path, width: int) -> None:
    """In a frame, because a window is never narrower than 500 pixels."""
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    flags = "--allow-file-access-from-files", "--hide-scrollbars"
    dom, _ = browse(FRAME.format(width=width), tmp_path, *flags, name="frame.html")

    assert f"{width} {width}" == re.search(r'data-wide="([^"]+)"', dom)[1]


@needs_chromium
def test_a_browser_would_tell_if_something_were_wrong(page, tmp_path) -> None:
    broken = page.replace("<head>", "<head>" + WATCH).replace('"curve":', '"curse":')
    dom, console = browse(broken, tmp_path)

    assert "data-wrong" in dom
    assert "" != console
