# SPDX-License-Identifier: Apache-2.0
"""`limen.report`: the page of the command line out of arrays, in the user's own words."""

from __future__ import annotations

import hashlib
import html
import itertools
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from browser import needs_chromium
from test_report import WATCH, Tables, browse, figures_of, shown

import limen
from limen.cli import main
from limen.demo import load_phishing, phishing_csv

SCORES, LABELS = map(np.asarray, load_phishing())
NAMES = np.array(["ok", "fraud"])[LABELS.astype(int)]


def without_origin(page: str) -> str:
    """The page but for its title and how it was made."""
    page = re.sub(r"<h2>How this page was made.*?</main>", "", page, flags=re.S)
    return re.sub(r"<(title|h1)>.*?</\1>", "", page)


def from_file(folder: Path, rows: str, *given: str) -> str:
    (folder / "s.csv").write_text(rows)
    assert 0 == main(["report", str(folder / "s.csv"), "-o", str(folder / "r.html"), "-q", *given])
    return (folder / "r.html").read_text(encoding="utf-8")


def table_of(**columns: object) -> str:
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)])


@pytest.mark.parametrize(
    ("given", "typed"),
    [
        ({"false_negative": 5}, ["--false-negative", "5"]),
        ({"metric": "f1"}, ["--metric", "f1"]),
        ({"metric": "recall", "min_precision": 0.9}, ["--min-precision", "0.9"]),
        ({"prevalence": 0.1, "thresholds": [0.7]}, ["--prevalence", "0.1", "-t", "0.7"]),
        (
            {"false_negative": 50, "false_positive": 5, "asking": 1},
            ["--false-negative", "50", "--false-positive", "5", "--asking", "1"],
        ),
        (
            {"true_positive": -3, "false_positive": 2},
            ["--true-positive", "-3", "--false-positive", "2"],
        ),
        ({"positive": "fraud"}, ["--positive", "fraud"]),
    ],
)
def test_python_and_the_command_line_write_the_same_page(tmp_path, given, typed) -> None:
    labels = NAMES if "positive" in given else LABELS
    by_command = from_file(tmp_path, table_of(score=SCORES.tolist(), label=labels.tolist()), *typed)
    by_python = limen.report(SCORES, labels, **given).html()

    assert without_origin(by_command) == without_origin(by_python)


def test_weights_groups_and_costs_of_rows_are_those_of_the_command_line(tmp_path) -> None:
    weights, teams = np.arange(len(SCORES)) % 4, ["ab"[place % 2] for place in range(len(SCORES))]
    amounts = 1.0 + np.arange(len(SCORES)) % 50
    columns = {"score": SCORES.tolist(), "label": LABELS.tolist(), "w": weights.tolist()}
    rows = table_of(**columns, team=teams, amount=amounts.tolist())
    typed = ["--weight-column", "w", "--group-column", "team", "--false-negative-column", "amount"]
    page = limen.report(
        *(SCORES, LABELS), weights=weights, groups=teams, false_negative=amounts, group="team"
    )
    by_command = without_origin(from_file(tmp_path, rows, *typed))

    assert by_command.replace("what amount says", "") == without_origin(page.html()).replace(
        "what false_negative says", ""
    )


def test_a_word_for_label_1_needs_no_such_label() -> None:
    by_word = limen.report(SCORES, LABELS, positive="fraud").html()

    assert without_origin(limen.report(SCORES, NAMES, positive="fraud").html()) == without_origin(
        by_word
    )
    with pytest.raises(ValueError, match="positive='spam' must be one of the labels"):
        limen.report(SCORES, NAMES, positive="spam")


def test_with_a_word_the_page_never_speaks_of_0_and_1() -> None:
    groups = np.arange(len(SCORES)) % 40
    page = limen.report(SCORES, NAMES, positive="fraud", false_negative=5, groups=groups).html()
    words = page[page.index("<main>") : page.index("How this page was made")]

    assert "Call it fraud when the score is at least <strong" in words
    assert [] == re.findall(r"(?:label|labels|answer|answers|answered|answering) [01]\b", words)
    assert "calling none fraud" == Tables(page).tables[0][-1][0]
    assert "called fraud" == figures_of(page)["words"]["called"]


def test_a_word_is_escaped_wherever_it_stands() -> None:
    labels = np.where(LABELS == 1, "</script><b>&", "ok")
    page = limen.report(SCORES, labels, positive="</script><b>&").html()

    assert 4 == page.count("</script>")
    assert "<b>&" not in page
    assert "Call it &lt;/script&gt;&lt;b&gt;&amp; when" in page
    assert "label </script><b>&" == figures_of(page)["words"]["ones"]


@pytest.mark.parametrize("direction", [">=", "<="])
def test_a_threshold_that_no_score_reaches_flags_nobody(direction) -> None:
    scores = np.arange(12.0) if direction == ">=" else -np.arange(12.0)
    labels = (np.arange(12) < 2).astype(int)
    page = limen.report(scores, labels, direction=direction)
    words = page.html()[page.html().index("<main>") : page.html().index("How this page")]
    costs = {row[0]: row for row in Tables(words).tables[1][1:]}

    assert '<p class="answer"><strong>Flag nobody</strong>: answer 0 to every score.</p>' in words
    assert "<b>&ndash;</b><span>of answers 1 are right (precision): nobody is flagged" in words
    assert ["flag nobody", "0.0%", "\u2013"] == [html.unescape(cell) for cell in costs["1"][1:4]]
    assert ["flag everybody", "100.0%", "16.7%"] == costs["50"][1:4]
    assert not re.search(r"\binf\b|\bnan\b|0\.0%</b><span>of answers", words)
    assert repr(page).startswith("<Report: cheapest flag nobody, cost 2 of 12")


def test_a_score_that_is_infinite_is_not_nobody() -> None:
    page = limen.report([0.0, np.finfo(float).max, np.inf, np.inf], [0, 0, 1, 1])
    (mark,) = figures_of(page.html())["marks"]

    assert np.inf == page.threshold
    assert "cheapest on these rows: inf" == mark["text"]
    assert "lag nobody</strong>" not in page.html()


def test_the_page_says_when_by_what_and_out_of_which_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    monkeypatch.setenv("LIMEN_FALSE_NEGATIVE", "5")
    rows = phishing_csv()
    page = from_file(tmp_path, rows, "-t", "0.5")
    digest = hashlib.sha256(rows.encode()).hexdigest()
    command = html.unescape(re.search(r"<pre><code>(.*?)</code></pre>", page)[1])

    assert '<time datetime="1970-01-02T00:00:00+00:00">1970-01-02 at 00:00 UTC</time>' in page
    assert f"LIMEN_FALSE_NEGATIVE=5 limen report {tmp_path / 's.csv'} -o " in command
    assert command.endswith(" -q -t 0.5")
    assert ["s.csv", f"{len(rows):,}", f"|{digest}|"] == [
        cell if place < 2 else f"|{cell.strip('|')}|"
        for place, cell in enumerate(Tables(page).tables[-1][1])
    ]


def test_from_python_the_page_holds_the_call() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    page = limen.report(
        SCORES, LABELS, weights=[2] * len(SCORES), false_negative=5, min_recall=0.5, title="a<b"
    ).html()
    call = re.search(r"<pre><code>(.*?)</code></pre>", page)[1]
    made = datetime.fromisoformat(re.search(r'<time datetime="([^"]+)"', page)[1])

    assert before <= made <= datetime.now(UTC)
    assert (
        "limen.report(scores, labels, false_negative=5, weights=weights, title='a<b', "
        "min_recall=0.5)"
    ) == html.unescape(call)
    assert "<h1>Decision threshold of a&lt;b</h1>" in page


def test_both_thresholds_of_a_review_band_say_how_sure_they_are() -> None:
    """Each is the cheapest cut of two other costs: asking in vain, and not asking."""
    page = limen.report(SCORES, LABELS, false_positive=3, false_negative=5, asking=0.5).html()
    band = limen.review_band(SCORES, LABELS, false_positive=3, false_negative=5, asking=0.5)
    part = page[page.index('id="band-sure"') :]
    said = re.findall(r'lies in ([\d.]+) to ([\d.]+); recommended is <b data-exact="([^"]+)"', part)
    lower = {"false_positive": 0.5, "false_negative": 4.5}
    upper = {"false_positive": 2.5, "false_negative": 0.5}

    for costs, end, (low, high, recommended) in zip(
        (lower, upper), (band.low, band.high), said, strict=True
    ):
        found = limen.recommend(SCORES, LABELS, **costs)
        assert end == limen.optimal_threshold(SCORES, LABELS, **costs).threshold
        assert repr(found.threshold) == recommended
        assert found.interval == pytest.approx((float(low), float(high)), abs=1e-3)


@pytest.mark.parametrize("given", [{"max_questions": 50, "asking": 0.3}, {"asking": 5}])
def test_a_review_band_that_nothing_is_known_about_says_so(given) -> None:
    page = limen.report(SCORES, LABELS, false_negative=5, **given).html()

    assert 'id="band-sure">Both thresholds are the cheapest on these rows only.' in page


def test_the_bands_of_falling_scores_are_those_of_rising_ones_turned_round() -> None:
    given = {"false_positive": 3, "false_negative": 5, "asking": 0.5}
    raw = 7 * np.asarray(SCORES)  # which are no probabilities
    rising = limen.report(raw, LABELS, **given).html()
    falling = limen.report(-raw, LABELS, direction="<=", **given).html()
    exact = [
        [float(end) for end in re.findall(r'recommended is <b data-exact="([^"]+)"', page)]
        for page in (rising, falling)
    ]

    assert [-end for end in reversed(exact[0])] == exact[1]


def test_the_costs_of_rows_are_added_up_row_by_row() -> None:
    """Against a sum over all rows at every threshold in the table, and in the chart."""
    amounts = np.random.default_rng(5).integers(1, 90, len(SCORES)).astype(float)
    given = {"false_positive": 10, "false_negative": amounts, "true_positive": -2}
    page = limen.report(SCORES, LABELS, **given)

    def cost(threshold: float) -> float:
        answers = threshold <= SCORES
        each = np.where(answers, np.where(LABELS == 1, -2, 10), np.where(LABELS == 1, amounts, 0))
        return float(each.sum())

    text = page.html()
    figures, rows = figures_of(text), {row[0]: row for row in Tables(text).tables[0][1:]}
    best = min(map(cost, [*SCORES.tolist(), np.inf]))
    assert best == min(figures["curve"]["loss"])
    assert cost(0.5) == float(rows["a threshold of 0.5"][1].replace(",", ""))
    assert cost(-np.inf) == float(rows["always positive"][1].replace(",", ""))
    for at, loss in zip(figures["curve"]["at"][::97], figures["curve"]["loss"][::97], strict=True):
        assert cost(at) == loss


def test_a_gain_is_a_negative_cost_on_the_page() -> None:
    page = limen.report(SCORES, LABELS, true_positive=-5)
    confusion = limen.OnlineCalibrator()
    confusion.update_many(SCORES, LABELS)
    right = confusion.confusion(page.threshold)
    row = Tables(page.html()).tables[0][1]

    assert right.fp + right.fn - 5 * right.tp == float(row[1].replace(",", ""))
    assert "%" not in row[2]


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"false_negative": 0}, ValueError, "false_negative"),
        ({"true_positive": 2}, ValueError, "false_negative"),
        ({"metric": "f1", "false_negative": 5}, ValueError, "two aims"),
        ({"metric": "f1", "true_positive": -1}, ValueError, "two aims"),
        ({"metric": lambda tp, fp, fn, tn: tp}, TypeError, "metric must be a name or"),
        ({"weights": [1]}, ValueError, "weights"),
        ({"groups": [1]}, ValueError, "groups"),
        ({"false_negative": [1, 2]}, ValueError, "false_negative"),
        ({"false_negative": [np.nan] * len(SCORES)}, ValueError, "nan"),
        ({"direction": "up"}, ValueError, "direction"),
        ({"metric": "f1", "asking": 1}, ValueError, "asking and max_questions go with"),
        ({"min_precision": 1.0, "min_recall": 1.0}, limen.Infeasible, "no cut"),
    ],
)
def test_what_a_report_cannot_be_made_of_is_refused(given, error, told) -> None:
    with pytest.raises(error, match=told):
        limen.report(SCORES, LABELS, **given)


def test_a_report_needs_both_labels() -> None:
    with pytest.raises(ValueError, match="every label counts as 1"):
        limen.report([0.1, 0.2], [1, 1])


def test_the_report_knows_its_threshold_and_is_saved_whole(tmp_path) -> None:
    page, found = limen.report(SCORES, LABELS), limen.recommend(SCORES, LABELS)
    page.save(tmp_path / "r.html")

    assert (found.threshold, found.interval) == (page.threshold, page.interval)
    assert page.html() == (tmp_path / "r.html").read_text(encoding="utf-8")
    assert limen.report([1, 2], [0, 1]).interval is None


@needs_chromium
def test_a_notebook_shows_the_page_in_a_frame_of_its_own(tmp_path) -> None:
    """Two of them in one notebook, whose own styles and ids stay outside."""
    page = limen.report(SCORES, LABELS, positive="fraud")
    shown = page._repr_html_()
    inside = html.unescape(re.fullmatch(r'<iframe [^>]*srcdoc="([^"]*)"></iframe>', shown)[1])
    assert page.html() == inside

    notebook = f"<!doctype html><html><head>{WATCH}</head><body>{shown}{shown}</body></html>"
    dom, console = browse(notebook, tmp_path, "--window-size=900,900")

    assert "" == console
    assert "data-wrong" not in dom


WIDTH = """<body><iframe src="page.html" width="{width}" height="4000"></iframe><script>
addEventListener("load", () => setTimeout(() => {{
  const all = [...document.querySelector("iframe").contentDocument.querySelectorAll(".scroll")];
  const said = (scroll) => {{
    const wide = scroll.scrollWidth > scroll.clientWidth + 1, more = scroll.nextElementSibling;
    const first = wide === !more.hidden && wide === (scroll.tabIndex === 0);
    scroll.scrollLeft = 10000;
    scroll.dispatchEvent(new Event("scroll"));
    return first && more.hidden ? Number(wide) : 9;
  }};
  document.body.dataset.wide = all.map(said).join("");
}}, 300));
</script>"""


@needs_chromium
@pytest.mark.parametrize(("width", "wide"), [(390, "1110"), (1000, "0000")])
def test_a_table_that_goes_on_at_the_side_says_so(tmp_path, width, wide) -> None:
    """1 where it does, 0 where it fits, 9 where it says the wrong thing."""
    page = from_file(tmp_path, phishing_csv(), "--asking", "0.2")
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    flags = "--allow-file-access-from-files", "--hide-scrollbars"
    dom, _ = browse(WIDTH.format(width=width), tmp_path, *flags, name="frame.html")

    assert wide == re.search(r'data-wide="([^"]*)"', dom)[1]


def test_a_fitted_classifier_reports_by_its_own_aim() -> None:
    pytest.importorskip("sklearn")
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    from limen.sklearn import ThresholdClassifier

    rows, y = make_classification(900, weights=[0.8], flip_y=0.1, random_state=0)
    names = np.array(["ok", "fraud"])[y]
    model = ThresholdClassifier(LogisticRegression(), false_negative=5, pos_label="fraud")
    model.fit(rows[:600], names[:600])
    page = model.report(rows[600:], names[600:], title="held out")
    scores = model.predict_proba(rows[600:])[:, list(model.classes_).index("fraud")]
    by_hand = limen.report(
        *(scores, y[600:]), false_negative=5, positive="fraud", thresholds=[model.best_threshold_]
    )

    assert without_origin(by_hand.html()) == without_origin(page.html())
    assert "Call it fraud when" in page.html()
    assert any(repr(model.best_threshold_) in row[0] for row in Tables(page.html()).tables[0])
    best = ThresholdClassifier(LogisticRegression(), metric="f1").fit(rows[:600], y[:600])
    assert "The aim is the highest f1." in best.report(rows[600:], y[600:]).html()
    with pytest.raises(ValueError, match=r"y\[0\] must be one of .*, got 'no'"):
        model.report(rows[:1], ["no"])
    asked = ThresholdClassifier(LogisticRegression(), scoring="f1_macro").fit(rows[:600], y[:600])
    with pytest.raises(ValueError, match="not with a scorer"):
        asked.report(rows[600:], y[600:])


def test_no_group_is_lost_and_their_names_stay_apart() -> None:
    groups = [f"g{place % 7}" for place in range(len(SCORES))]
    rows = Tables(limen.report(SCORES, LABELS, groups=groups).html()).tables[-1][1:]
    counted = {name: len(list(each)) for name, each in itertools.groupby(sorted(groups))}

    assert counted == {row[0].split("|")[0]: int(row[1]) for row in rows}
    assert shown(limen.report(SCORES, LABELS).html(), "threshold")
