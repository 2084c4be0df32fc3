# SPDX-License-Identifier: Apache-2.0
"""The page of the service in a real browser: what people read, decide and are refused."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from browser import CHROMIUM, Browser, Tab
from serving import Server, limen, serving, until

from limen.cli.html import rule
from limen.demo import load_phishing
from limen.digits import plain

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="the page was not tested: needs chromium")

SCRIPT = "<img src=x onerror=alert(1)>"
SCORES, LABELS = load_phishing()
POINT = {
    "false_negative": 5,
    "start": {"rule": "at_least", "threshold": 0.5},
    "segments": {"at_least": 100},
}
PLACES = ("north", "south", SCRIPT)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    made = Browser()
    yield made
    made.close()


@pytest.fixture
def tabs(browser: Browser) -> Iterator[Any]:
    """Open tabs; no test may leave a complaint of the browser behind that it did not take."""
    opened: list[Tab] = []

    def open_tab(server: Server, rest: str = "", **given: Any) -> Tab:
        tab = browser.tab(f"http://127.0.0.1:{server.port}/{rest}", **given)
        opened.append(tab)
        return tab

    yield open_tab
    found = [(tab.complaints, tab.elsewhere()) for tab in opened]
    for tab in opened:
        tab.close()
    assert [([], [])] * len(found) == found


def stream(server: Server, point: str = "fraud", *, rows: int = len(SCORES), tag: str = "") -> None:
    """Send scores by segment, and all their labels."""
    known = list(enumerate(zip(SCORES[:rows], LABELS[:rows], strict=True)))
    scores = [
        {
            "type": "score",
            "id": f"{tag}{at}",
            "score": score,
            "segment": PLACES[2 if at % 40 == 0 else at % 2],
        }
        for at, (score, _) in known
    ]
    server.batch(point, scores)
    server.batch(point, [{"type": "label", "id": f"{tag}{at}", "label": y} for at, (_, y) in known])


@pytest.fixture(scope="module")
def filled() -> Iterator[Server]:
    """A server that was sent a whole stream; tests only read it."""
    with serving(define=POINT) as server:
        stream(server)
        yield server


def ready(tab: Tab) -> None:
    tab.wait("document.querySelector('.tiles dd')?.textContent && document.querySelector('.chart polyline')")


def table_of(tab: Tab, title: str) -> list[list[str]]:
    """Open the table below the chart of this name, and read it."""
    return tab.js(f"""(async () => {{
      const part = [...document.querySelectorAll(".pair > section")].find((each) => each.querySelector("h2").textContent === {json.dumps(title)});
      part.querySelector("details").open = true;
      await new Promise((done) => setTimeout(done, 50));
      return [...part.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
    }})()""")


def test_the_figures_are_those_of_the_interface(filled, tabs) -> None:
    tab = tabs(filled)
    ready(tab)
    _, seen, _ = filled.ask("GET", "/v1/points/fraud/overview")
    tiles, found = seen["tiles"], tab.js("[...document.querySelectorAll('.tiles dd')].map((each) => each.textContent)")
    rate = 1000 / tiles["samples"]

    assert "Answer 1 when the score is at least 0.5." == tab.text("h1")
    assert [
        f"{rate * tiles['cost']:.1f}",
        f"{rate * tiles['cheapest']:.1f}",
        f"+{rate * tiles['regret']:.1f}",
        f"{100 * tiles['answered_1'] / tiles['scored']:.1f} %",
        f"{tiles['samples']:,}",
    ] == found
    _, curve, _ = filled.ask("GET", "/v1/points/fraud/curve")
    kept = [each for each in curve["curve"] if not isinstance(each["threshold"], str)]
    read = table_of(tab, "What every threshold costs")

    assert [float(cut) for cut, _ in read] == pytest.approx([each["threshold"] for each in kept][-500:], rel=1e-5)
    costs = [rate * each["loss"] for each in kept][-500:]
    assert [float(cost.replace(",", "")) for _, cost in read] == pytest.approx(costs, abs=0.51)
    (day,) = seen["days"]
    (row,) = table_of(tab, "Regret by day")
    assert [f"+{1000 * day['regret'] / day['labelled']:.1f}", "1,250", "1,250"] == row[1:4]


def test_segments_stand_with_their_counts_and_who_answers_for_them(filled, tabs) -> None:
    tab = tabs(filled)
    ready(tab)
    rows = tab.js("[...document.querySelectorAll('[data-fill=segments] tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
    _, seen, _ = filled.ask("GET", "/v1/points/fraud/overview")
    counts = {each["segment"]: each for each in seen["segments"]}

    assert ["all", "south", "north", SCRIPT] == [row[0] for row in rows]
    for row in rows:
        each = counts["" if row[0] == "all" else row[0]]
        assert [f"{each['samples']:,}", f"{each['ones']:,}", f"{each['answered_1']:,}"] == row[4:7]
    assert ["itself", "all", "all", "all"] == [row[7] for row in rows]
    assert "too few" == rows[3][3]
    assert tab.js("document.querySelectorAll('img').length") == 0


@pytest.mark.parametrize("width", [320, 390, 768, 1200, 1800])
def test_nothing_is_wider_than_the_screen(filled, tabs, width: int) -> None:
    tab = tabs(filled, width=width)
    ready(tab)

    assert width == tab.js("document.documentElement.scrollWidth")
    small = tab.js("""[...document.querySelectorAll("button, summary, nav a, .brand, input, .links a")]
      .filter((each) => each.checkVisibility()).map((each) => [each.textContent, each.getBoundingClientRect().height])
      .filter(([, height]) => height < 44)""")
    assert [] == small


# ---- what tools for accessibility find -------------------------------------------------------

AXE = "https://registry.npmjs.org/axe-core/-/axe-core-4.14.0.tgz"
AXE_SHA512 = (
    "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
)


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, fetched once and checked; skipped where it cannot be had."""
    kept = Path(__file__).parents[1] / "build" / "axe-core-4.14.0.tgz"
    if not kept.exists():
        try:
            with urllib.request.urlopen(AXE, timeout=20) as answer:
                found = answer.read()
        except OSError as error:
            pytest.skip(f"axe-core was not run: it cannot be fetched ({error})")
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(found)
    packed = kept.read_bytes()
    assert AXE_SHA512 == base64.b64encode(hashlib.sha512(packed).digest()).decode()
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        script = files.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


def serious(tab: Tab, axe: str) -> list[str]:
    """What axe-core finds that is serious or worse."""
    tab.send("Page.setBypassCSP", enabled=True)
    tab.js(axe + ";0")
    return tab.js("""axe.run().then(({ violations }) => violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes.map((each) => each.target).join(" ")} ${nodes[0].any[0]?.message ?? ""}`))""")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(filled, tabs, axe: str, scheme: str) -> None:
    tab = tabs(filled, width=390)
    tab.media(color_scheme=scheme)
    ready(tab)
    tab.js("document.querySelectorAll('details').forEach((each) => { each.open = true; })")

    assert [] == serious(tab, axe)


# ---- words and charts ------------------------------------------------------------------------


def test_the_page_and_the_report_write_alike(filled, tabs) -> None:
    """Rules and numbers, in the browser and in Python."""
    tab = tabs(filled)
    numbers = [0, 0.5, 0.38526891331906543, 1250, 1728612.25, -3.25, 99999.5, 12345.678]
    cuts = [0.5, 0.38526891331906543, 1250.0]
    finding = SimpleNamespace(same_answer=None, direction=">=")
    expected = [
        re.sub("<[^>]*>", "", rule(SimpleNamespace(threshold=cut, threshold_text=plain(cut), **vars(finding))))
        for cut in cuts
    ]
    expected += [re.sub("<[^>]*>", "", rule(SimpleNamespace(same_answer=answer))) for answer in (0, 1)]
    rules = [{"rule": "at_least", "threshold": cut} for cut in cuts] + [{"rule": "none"}, {"rule": "all"}]

    assert [plain(each) for each in numbers] == tab.js(f"{numbers}.map(words.number)")
    assert expected == tab.js(f"{json.dumps(rules)}.map((each) => words.sentence(each, null).join(''))")


HUGE = """(async () => {
  const { figures } = await import("/page/figures.js");
  const now = Date.parse("2026-11-16T12:00:00Z"), at = (i) => new Date(now - 26000 * (100000 - i)).toISOString();
  const level = (i) => 0.4 + 0.03 * Math.sin(i / 4000) + 0.004 * ((i * 7919 % 101) / 101);
  const each = Array.from({ length: 100000 }, (_, i) => i);
  const view = {
    at: new Date(now).toISOString(), proposal: null, interval: null, days: [], delays: null, tiles: { labels: 0 },
    version: { thresholds: { "": { rule: "none" } } },
    steps: each.map((i) => ({ at: at(i), version: i, threshold: level(i) })),
    over_time: each.map((i) => ({ at: at(i), optimum: level(i) + 0.01, low: level(i), high: level(i) + 0.02 })),
  };
  const into = document.createElement("div");
  document.querySelector("main").append(into);
  let begun = performance.now();
  const draw = figures(into, view);
  const first = performance.now() - begun;
  const place = into.querySelector(".chart"), box = place.getBoundingClientRect();
  begun = performance.now();
  for (let i = 0; i < 100; ++i) place.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + 60 + 3 * i, clientY: box.top + 9 }));
  const move = (performance.now() - begun) / 100;
  const points = [...place.querySelectorAll("polyline, polygon")].map((line) => line.getAttribute("points").split(" ").length);
  const lines = [...place.querySelectorAll("polyline")].map((line) => line.getAttribute("points").split(" ").map((pair) => Number(pair.split(",")[1])));
  const details = into.querySelector("details");
  details.open = true;
  await new Promise((done) => setTimeout(done, 100));
  return { first, move, points, wide: box.width, lowest: lines.map((ys) => Math.max(...ys)), highest: lines.map((ys) => Math.min(...ys)),
           rows: into.querySelectorAll("tbody tr").length, said: place.getAttribute("aria-valuetext") };
})()"""


def test_a_hundred_thousand_points_of_history_are_drawn_thinned(filled, tabs) -> None:
    """As few as the pixels need, with no peak lost, and a pointer finds its place at once."""
    tab = tabs(filled)
    ready(tab)
    found = tab.js(HUGE)

    assert max(found["points"]) <= 8 * found["wide"]
    assert found["move"] < 25  # milliseconds: no frame of a screen is missed for long, also here
    assert 500 == found["rows"]
    assert "cheapest in hindsight 0.4" in found["said"]
    # both lines have the same shape, 0.01 apart: their peaks and valleys are equally far apart
    spans = [low - high for low, high in zip(found["lowest"], found["highest"], strict=True)]
    assert spans[0] == pytest.approx(spans[1], abs=0.3)
