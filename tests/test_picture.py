# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: well-formed, small, with the right numbers, nothing from elsewhere."""

from __future__ import annotations

import math
import re
import sys
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import limen
from limen.demo import load_phishing

SCORES, LABELS = map(np.asarray, load_phishing())


def held(model: Any, *columns: Any) -> Any:
    model.update_many(*(columns or (SCORES, LABELS)))
    return model


def ledger() -> Any:
    made = limen.Ledger(limen.Grouped(limen.OnlineThreshold()))
    made.score("x", 0.3, group="<script>")
    made.label("x", 1)
    return made


NAMES = np.resize(["<b>&", "b", '"c'], len(SCORES)).tolist()
SHOWN = {
    "recommendation": lambda: limen.recommend(SCORES, LABELS, false_negative=5, current=0.5),
    "mirrored": lambda: limen.recommend(-SCORES, LABELS, direction="<="),
    "open interval": lambda: limen.recommend(SCORES[:30], LABELS[:30], false_negative=40),
    "optimum": lambda: limen.optimal_threshold(SCORES, LABELS),
    "all positive": lambda: limen.optimal_threshold([0.5], [1]),
    "infinite scores": lambda: limen.optimal_threshold([-math.inf, math.inf], [1, 0]),
    "best cut": lambda: limen.optimal_threshold(SCORES, LABELS, metric="f1"),
    "curve": lambda: limen.loss_curve(SCORES, LABELS),
    "flat curve": lambda: limen.loss_curve([0.5], [1], weights=[0]),
    "wide curve": lambda: limen.loss_curve([-1.7e308, 0.0, 1.7e308], [0, 1, 1]),
    "infinite curve": lambda: limen.loss_curve([-math.inf, 0.5, math.inf], [0, 1, 1]),
    "model": lambda: held(limen.OnlineThreshold(false_negative=5)),
    "falling model": lambda: held(limen.OnlineThreshold(direction="<="), -SCORES, LABELS),
    "cut": lambda: held(limen.OnlineCut(), SCORES, LABELS, 1 - LABELS),
    "calibrator": lambda: held(limen.OnlineCalibrator()),
    "bounded": lambda: held(limen.BoundedThreshold(capacity=64)),
    "last n": lambda: held(limen.LastN(limen.OnlineThreshold(), 500)),
    "fading": lambda: held(limen.Fading(limen.OnlineThreshold(), half_life=100)),
    "window of a calibrator": lambda: held(limen.LastN(limen.OnlineCalibrator(), 500)),
    "budget": lambda: held(limen.Budget(max_positives=5), SCORES),
    "groups": lambda: held(limen.Grouped(limen.OnlineThreshold()), NAMES, SCORES, LABELS),
    "groups of arrays": lambda: limen.by_group(NAMES, SCORES, LABELS),
    "shrunk": lambda: limen.by_group(NAMES, SCORES, LABELS, shrink=True),
    "ledger of groups": ledger,
}


@pytest.mark.parametrize("kind", SHOWN)
def test_a_picture_is_well_formed_and_needs_nothing_from_elsewhere(kind: str) -> None:
    shown = SHOWN[kind]()._repr_html_()
    ElementTree.fromstring(shown)

    assert "<svg" in shown
    assert not re.search(r"https?:|<script|<style|<img|<link|@import|url\(|\bon\w+=", shown)
    drawn = re.sub(
        r"<strong>.*</strong>|aria-label=\"[^\"]*\"", "", shown
    )  # a sentence of the answer
    assert not re.search(r"\b(nan|inf|None)\b", drawn)
    assert len(shown) < 40_000


@pytest.mark.parametrize("kind", SHOWN)
def test_all_that_is_drawn_lies_inside_the_picture(kind: str) -> None:
    for svg in ElementTree.fromstring(SHOWN[kind]()._repr_html_()).iter("svg"):
        width, height = map(float, svg.attrib["viewBox"].split()[2:])
        for each in svg.iter():
            for name, limit in (("x", width), ("cx", width), ("y", height), ("cy", height)):
                assert 0 <= float(each.attrib.get(name, 0)) <= limit
            for name, value in re.findall(r"([MHV])(-?[\d.]+)", each.attrib.get("d", "")):
                assert 0 <= float(value) <= (height if name == "V" else width)


def test_numbers_and_the_interval_are_those_of_the_answer() -> None:
    found = limen.recommend(SCORES, LABELS, false_negative=5, current=0.5)
    shown = found._repr_html_()
    low, high = found.interval

    assert found.reason.split(":")[0] in shown
    assert f"{found.threshold:.6g}" in shown
    assert f"95 % interval {low:.4g} to {high:.4g}" in shown
    assert "in use 0.5" in shown
    model = held(limen.OnlineThreshold(false_negative=5))._repr_html_()
    assert f"95 % interval {low:.4g} to {high:.4g}" in model


def test_the_band_lies_where_its_ends_do() -> None:
    root = ElementTree.fromstring(limen.recommend(SCORES, LABELS)._repr_html_())
    (band,) = root.iter("rect")
    left, right = (
        float(each.attrib["x"]) for each in root.iter("text") if "∞" not in (each.text or "")
    )

    assert float(band.attrib["x"]) == left
    assert float(band.attrib["x"]) + float(band.attrib["width"]) == pytest.approx(right)


def test_names_are_escaped() -> None:
    shown = held(limen.Grouped(limen.OnlineThreshold()), NAMES, SCORES, LABELS)._repr_html_()

    assert "&lt;b&gt;&amp;" in shown
    assert "<b>" not in shown


def test_what_holds_nothing_shows_its_text() -> None:
    assert limen.OnlineThreshold()._repr_html_() is None
    assert limen.LastN(limen.OnlineThreshold(), 5)._repr_html_() is None


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_curve_becomes_a_frame_of_what_is_there(library: str, monkeypatch) -> None:
    pytest.importorskip(library)
    for other in {"pandas", "polars"} - {library}:
        monkeypatch.setitem(sys.modules, other, None)
    curve = limen.loss_curve(SCORES, LABELS)
    frame = curve.to_frame()

    assert type(frame).__module__.split(".")[0] == library
    assert curve.thresholds.tolist() == frame["threshold"].to_list()
    assert curve.losses.tolist() == frame["loss"].to_list()


def test_a_curve_without_a_library_of_frames_says_what_to_install(monkeypatch) -> None:
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(ImportError, match=r"limen\[frames\]"):
        limen.loss_curve([0.5], [1]).to_frame()
