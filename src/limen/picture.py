# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows: a small picture as inline SVG, which needs no file, script or network.

Lines and words have the colour of the text around them, so that it reads on light and on dark.
"""

from __future__ import annotations

import math
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limen.digits import apart, downsample, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = [
    "Mark",
    "exact_mark",
    "picture_of_curve",
    "picture_of_groups",
    "picture_of_model",
    "picture_of_range",
]

_WIDTH, _MARGIN, _STRETCHES = 480.0, 14.0, 300
_DRAWN = 10**6  # samples, up to which every cut of a model is drawn
_COLOURS = {"use": "#009e73", "exact": "#d55e00", "current": "currentColor"}
_SIGNS = {"use": "◆", "exact": "●", "current": "▲"}


class Mark(NamedTuple):
    """A threshold in a picture: of a kind that has its own sign and colour."""

    at: float
    text: str
    kind: str
    detail: str = ""


def picture_of_range(
    title: str, marks: Sequence[Mark], interval: tuple[float, float] | None, confidence: float
) -> str:
    """Draw thresholds and an interval on a line of scores."""
    return _card(title, _Axis(_places(marks, interval)), marks, interval, confidence, None)


def picture_of_curve(
    title: str,
    curve: tuple[NDArray[np.float64], NDArray[np.float64]],
    marks: Sequence[Mark] = (),
    interval: tuple[float, float] | None = None,
    confidence: float = 0.95,
    name: str = "loss by threshold",
) -> str:
    """Draw a curve over thresholds, with those that are marked and an interval. O(n)."""
    axis = _Axis([*curve[0].tolist(), *_places(marks, interval)])
    return _card(title, axis, marks, interval, confidence, (*curve, name))


def picture_of_model(model: Any) -> str | None:
    """Draw what a model knows; None where it holds nothing, so that its text is shown. O(n)."""
    inner = getattr(model, "model", model)
    samples = len(inner) if hasattr(inner, "__len__") else 0
    if samples == 0 or hasattr(inner, "thresholds"):
        return None
    title = f"{type(model).__name__}: {samples:,} sample{'s' * (samples > 1)}"
    if getattr(model, "takes_costs", False):
        if not hasattr(inner, "blocks"):
            return None
        blocks = model.blocks()
        curve = (blocks.first, blocks.probabilities)
        return picture_of_curve(title, curve, name="calibrated probability by score")
    best = model.optimum if hasattr(model, "optimum") else model.gap
    text = "exact optimum" if hasattr(best, "loss") else "threshold"
    marks, interval = [exact_mark(best, text)], None
    recommended = getattr(model, "recommended", None)
    if isinstance(recommended, float):
        marks.insert(0, Mark(recommended, "recommended", "use"))
        interval = model.interval(0.95)
    if samples <= _DRAWN and hasattr(inner, "curve"):
        found = model.curve()
        return picture_of_curve(title, (found.thresholds, found.losses), marks, interval)
    return picture_of_range(title, marks, interval, 0.95)


def exact_mark(best: Any, text: str = "exact optimum") -> Mark:
    """Mark the best cut of samples."""
    cost = f"loss {plain(best.loss)}" if hasattr(best, "loss") else ""
    return Mark(best.threshold, text, "exact", cost)


def picture_of_groups(title: str, rows: Iterable[tuple[str, int, float]], more: int) -> str:
    """List groups with their samples, and draw the threshold of each on one line of scores."""
    listed = list(rows)
    axis = _Axis([threshold for _, _, threshold in listed], 160.0)
    head = "".join(f"<th>{name}</th>" for name in ("group", "samples", "threshold", ""))
    body = ""
    for name, samples, threshold in listed:
        place = axis.place(threshold)
        line = f'<path d="M4 8H156" {_stroke(0.35)}/>'
        dot = f'<circle cx="{place:.1f}" cy="8" r="4" fill="{_COLOURS["exact"]}"/>'
        drawn = f'<svg width="160" height="16" viewBox="0 0 160 16">{line}{dot}</svg>'
        cells = (escape(name), f"{samples:,}", escape(_shown(threshold)), drawn)
        body += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    rest = f"<div>and {more:,} more</div>" if more > 0 else ""
    return (
        f'<div style="font-family:sans-serif"><strong>{escape(title)}</strong>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}</div>"
    )


def _places(marks: Sequence[Mark], interval: tuple[float, float] | None) -> list[float]:
    return [*(mark.at for mark in marks), *(interval or ())]


class _Axis:
    """Where thresholds stand: infinite ones and nan at the ends, beyond all others."""

    def __init__(self, values: Sequence[float], width: float = _WIDTH) -> None:
        finite = [value for value in values if math.isfinite(value)]
        self.ticks = [min(finite), max(finite)] if finite else []
        self.low, self.high = self.ticks or (0.0, 1.0)
        self.infinite = len(finite) < len(values)
        self.width = width - 2 * _MARGIN
        self.room = 0.1 * self.width if self.infinite else 0.05 * self.width

    def place(self, value: float) -> float:
        """Return the distance from the left."""
        if math.isnan(value) or value == math.inf:
            return _MARGIN + self.width
        if value == -math.inf:
            return _MARGIN
        span = self.high / 2 - self.low / 2  # halved, so that it is finite
        share = (value / 2 - self.low / 2) / span if span > 0 else 0.5
        return _MARGIN + self.room + share * (self.width - 2 * self.room)


def _shown(value: float, digits: int = 6) -> str:
    if math.isnan(value):
        return "none"
    return plain(value, digits).replace("inf", "∞").replace("-", "−")  # noqa: RUF001


def _stroke(opacity: float, width: float = 1, colour: str = "currentColor") -> str:
    return f'fill="none" stroke="{colour}" stroke-opacity="{opacity}" stroke-width="{width}"'


def _card(
    title: str,
    axis: _Axis,
    marks: Sequence[Mark],
    interval: tuple[float, float] | None,
    confidence: float,
    curve: tuple[NDArray[np.float64], NDArray[np.float64], str] | None,
) -> str:
    """Write the title, the picture, and below it what its signs mean."""
    top, bottom = 10.0, 44.0 if curve is None else 130.0
    parts, legend = [], []
    if interval is not None:
        left, right = sorted(map(axis.place, interval))
        parts.append(
            f'<rect x="{left:.1f}" y="{top}" width="{max(right - left, 1):.1f}" '
            f'height="{bottom - top}" fill="{_COLOURS["use"]}" fill-opacity="0.22"/>'
        )
    parts.append(f'<path d="M{_MARGIN} {bottom}H{_WIDTH - _MARGIN}" {_stroke(0.5)}/>')
    heights = None
    if curve is not None:
        drawn, heights = _steps(axis, *curve[:2], top, bottom)
        parts.append(f'<path d="{drawn}" {_stroke(0.85, 1.5)}/>')
        legend.append(f"— {escape(curve[2])}")
    for mark in marks:
        at, colour = axis.place(mark.at), _COLOURS[mark.kind]
        high = bottom - 17 if heights is None else heights(mark.at)
        dashes = ' stroke-dasharray="4 3"' if mark.kind != "use" else ""
        parts.append(f'<path d="M{at:.1f} {top}V{bottom}" {_stroke(0.9, 1, colour)}{dashes}/>')
        parts.append(_sign(mark.kind, at, high, colour))
        sign = f'<span style="color:{colour}">{_SIGNS[mark.kind]}</span>'
        detail = f" ({mark.detail})" if mark.detail else ""
        legend.append(f"{sign} {escape(f'{mark.text} {_shown(mark.at)}{detail}')}")
    if interval is not None:
        digits = apart([each for each in interval if math.isfinite(each)] or [0.0])
        ends = " to ".join(_shown(each, digits) for each in interval)
        block = f'<span style="color:{_COLOURS["use"]};opacity:.6">▮</span>'
        legend.append(f"{block} {confidence * 100:g} % interval {escape(ends)}")
    parts.append(_ticks(axis, bottom))
    size = f'viewBox="0 0 {_WIDTH:g} {bottom + 20:g}" width="{_WIDTH:g}"'
    label = escape(title, quote=True)
    listed = "".join(
        f'<span style="display:inline-block;margin-right:1.2em">{each}</span>' for each in legend
    )
    return (
        f'<div style="font-family:sans-serif;max-width:{_WIDTH:g}px">'
        f"<strong>{escape(title)}</strong>"
        f'<svg {size} role="img" aria-label="{label}" style="display:block;max-width:100%;'
        f'height:auto">{"".join(parts)}</svg>'
        f'<div style="font-size:.85em">{listed}</div></div>'
    )


def _steps(
    axis: _Axis,
    thresholds: NDArray[np.float64],
    heights: NDArray[np.float64],
    top: float,
    bottom: float,
) -> tuple[str, Any]:
    """Write the path of a curve, and give the function from a threshold to its height."""
    lowest, highest = float(heights.min()), float(heights.max())
    span = highest / 2 - lowest / 2

    def height(value: float) -> float:
        share = (value / 2 - lowest / 2) / span if span > 0 else 0.5
        return bottom - 6 - share * (bottom - top - 12)

    kept = downsample(heights, _STRETCHES)
    places = [axis.place(each) for each in thresholds[kept].tolist()]
    ends = [(left + right) / 2 for left, right in pairwise(places)]
    path = f"M{places[0]:.1f} {height(float(heights[kept[0]])):.1f}"
    for end, at in zip(ends, kept[1:], strict=True):
        path += f"H{end:.1f}V{height(float(heights[at])):.1f}"
    path += f"H{places[-1]:.1f}"

    def height_at(threshold: float) -> float:
        if math.isnan(threshold):
            return height(float(heights[-1]))
        at = min(int(np.searchsorted(thresholds, threshold)), len(heights) - 1)
        return height(float(heights[at]))

    return path, height_at


def _sign(kind: str, x: float, y: float, colour: str) -> str:
    shapes = {
        "use": f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z",
        "current": f"M{x:.1f} {y - 5:.1f}l6 10h-12z",
    }
    if kind in shapes:
        return f'<path d="{shapes[kind]}" fill="{colour}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>'


def _ticks(axis: _Axis, bottom: float) -> str:
    """Write the lowest and the highest number below the axis, and the infinities at its ends."""
    digits = apart(axis.ticks)
    words = [(axis.place(each), _shown(each, digits)) for each in dict.fromkeys(axis.ticks)]
    if axis.infinite:
        words += [(_MARGIN, "−∞"), (_WIDTH - _MARGIN, "∞")]  # noqa: RUF001
    return "".join(
        f'<text x="{at:.1f}" y="{bottom + 15:g}" text-anchor="middle" font-size="11" '
        f'fill="currentColor">{escape(text)}</text>'
        for at, text in words
    )
