# SPDX-License-Identifier: Apache-2.0
"""The pictures show what they say: the optimum, every tie, the hull, the line that touches it."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import matplotlib.pyplot as plt

import limen
from limen.demo import load_phishing
from limen.plots import (
    CalibrationBlocksDisplay,
    LossCurveDisplay,
    RocHullDisplay,
    ThresholdDisplay,
    ThresholdHistoryDisplay,
)
from limen.plots.display import MINUS, visible

LABELS = [0, 1, 0, 1, 1, 0]
SCORES = [0.1, 0.25, 0.5, 0.75, 0.8, 0.9]
STREAM_SCORES, STREAM_LABELS = load_phishing()
ALL: list[Any] = [
    LossCurveDisplay,
    RocHullDisplay,
    CalibrationBlocksDisplay,
    ThresholdHistoryDisplay,
]


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def labelled(ax) -> dict[str, Any]:
    handles, labels = ax.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def points(line) -> list[tuple[float, float | None]]:
    return [(float(x), None if y != y else float(y)) for x, y in line.get_xydata()]


def test_the_optimum_and_every_tie_are_marked() -> None:
    display = LossCurveDisplay.from_predictions(LABELS, SCORES)
    curve = limen.loss_curve(SCORES, LABELS)
    shown = labelled(display.ax_)

    assert [(0.625, 2.0)] == points(shown["cheapest: 2 at 0.625"])
    assert [(0.175, 2.0)] == points(shown["as cheap: 1 more"])
    assert curve.cheapest.tolist() == [0.175, 0.625]


def ends(band) -> tuple[float, float]:
    """From where to where a band lies on the axis."""
    box = band.get_extents().transformed(band.axes.transData.inverted())
    return box.x0, box.x1


@pytest.mark.parametrize("weights", [None, [place % 3 for place in range(1250)]])
def test_the_band_is_the_interval_of_the_best_threshold(weights) -> None:
    display = LossCurveDisplay.from_predictions(
        STREAM_LABELS, STREAM_SCORES, false_negative=5, sample_weight=weights
    )
    found = limen.recommend(STREAM_SCORES, STREAM_LABELS, false_negative=5, weights=weights)
    curve = limen.loss_curve(STREAM_SCORES, STREAM_LABELS, false_negative=5, weights=weights)
    (label,) = [text for text in labelled(display.ax_) if text.startswith("recommended: ")]
    held = np.asarray(STREAM_SCORES)[
        np.broadcast_to(1 if weights is None else weights, len(STREAM_SCORES)) > 0
    ]
    loss = [curve.losses[np.count_nonzero(np.unique(held) < found.threshold)]]

    assert found == display.recommendation
    assert found.interval == pytest.approx(ends(display.band_))
    assert [(found.threshold, *loss)] == points(labelled(display.ax_)[label])


def test_the_legend_names_the_interval_and_the_recommended_threshold() -> None:
    display = LossCurveDisplay.from_predictions(STREAM_LABELS, STREAM_SCORES, false_negative=5)

    assert [
        "loss",
        "recommended: 294 at 0.3458",
        "95 % interval: 0.1971 to 0.4909",
        "cheapest: 280 at 0.3853",
        "as cheap: 1 more",
    ] == list(labelled(display.ax_))


def test_an_interval_that_ends_at_infinity_is_drawn_to_the_end_of_the_axis() -> None:
    display = LossCurveDisplay.from_predictions(
        STREAM_LABELS[:60], STREAM_SCORES[:60], false_negative=50
    )

    assert -math.inf == display.recommendation.interval[0]
    assert display.line_.get_xdata()[0] == pytest.approx(ends(display.band_)[0])
    assert f"95 % interval: {MINUS}∞ to 0.4958" in labelled(display.ax_)


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_the_band_has_the_confidence_asked_for(confidence: float) -> None:
    display = LossCurveDisplay.from_predictions(STREAM_LABELS, STREAM_SCORES, confidence=confidence)
    found = limen.recommend(STREAM_SCORES, STREAM_LABELS, confidence=confidence)

    assert found.interval == pytest.approx(ends(display.band_))
    assert any(text.startswith(f"{confidence:.0%}"[:-1]) for text in labelled(display.ax_))
    with pytest.raises(
        ValueError, match=r"confidence must be one of 0.8, 0.9, 0.95, 0.99, got 0.5"
    ):
        LossCurveDisplay.from_predictions(STREAM_LABELS, STREAM_SCORES, confidence=0.5)


def test_without_a_confidence_there_is_no_band() -> None:
    display = LossCurveDisplay.from_predictions(STREAM_LABELS, STREAM_SCORES, confidence=None)

    assert display.band_ is None
    assert ["loss", "cheapest: 132 at 0.5021", "as cheap: 2 more"] == list(labelled(display.ax_))


def test_too_few_samples_for_a_recommendation_are_named_in_the_legend() -> None:
    display = LossCurveDisplay.from_predictions(LABELS, SCORES)

    assert display.recommendation is None
    assert display.band_ is None
    for drawn in (display, display.plot()):
        assert "too few samples to recommend a threshold" in labelled(drawn.ax_)


def test_a_recommendation_may_be_given_to_a_curve() -> None:
    found = limen.recommend(STREAM_SCORES, STREAM_LABELS)
    curve = limen.loss_curve(STREAM_SCORES, STREAM_LABELS)
    display = LossCurveDisplay(
        thresholds=curve.thresholds, losses=curve.losses, recommendation=found
    ).plot()

    assert found.interval == pytest.approx(ends(display.band_))


def test_the_loss_changes_where_the_scores_are() -> None:
    display = LossCurveDisplay.from_predictions(LABELS, SCORES, sample_weight=[1, 1, 0, 1, 1, 1])
    xs, ys = display.line_.get_data()

    assert [0.1, 0.25, 0.75, 0.8, 0.9] == xs[1:-1].tolist()
    curve = limen.loss_curve(SCORES, LABELS, weights=[1, 1, 0, 1, 1, 1])
    assert [*curve.losses, curve.losses[-1]] == ys.tolist()
    assert "steps-post" == display.line_.get_drawstyle()


def test_a_curve_without_scores_turns_between_thresholds() -> None:
    curve = limen.loss_curve(SCORES, LABELS)
    display = LossCurveDisplay(thresholds=curve.thresholds, losses=curve.losses).plot()

    assert 0.275 == pytest.approx(display.line_.get_xdata()[2])


@pytest.mark.parametrize(("label", "told"), [(0, "0 at ∞"), (1, "0 at \N{MINUS SIGN}∞")])
def test_an_optimum_at_infinity_stands_beyond_the_scores(label: int, told: str) -> None:
    display = LossCurveDisplay.from_predictions([label] * 6, SCORES)
    ((x, _),) = points(labelled(display.ax_)[f"cheapest: {told}"])

    assert x > 0.9 if label == 0 else x < 0.1
    low, high = display.ax_.get_xlim()
    assert low < x < high
    texts = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert ("\N{MINUS SIGN}∞", "∞") == (texts[0], texts[-1])


@pytest.mark.parametrize("scores", [[math.inf, 0.5, 0.7], [-math.inf, math.inf, 0.5], [0.5] * 3])
def test_infinite_and_equal_scores_are_drawn(scores: list[float]) -> None:
    for display in ALL:
        drawn = display.from_predictions([0, 1, 0], scores)
        drawn.figure_.canvas.draw()

        assert np.isfinite(drawn.ax_.get_xlim()).all()


def test_the_hull_lies_above_the_curve_and_the_line_touches_it() -> None:
    display = RocHullDisplay.from_predictions(STREAM_LABELS, STREAM_SCORES, false_negative=5)
    threshold, x, y = display.best
    best = limen.optimal_threshold(STREAM_SCORES, STREAM_LABELS, false_negative=5)

    assert best.threshold == threshold
    above = np.interp(display.fpr, display.hull_fpr[::-1], display.hull_tpr[::-1])
    assert (above >= display.tpr - 1e-12).all()
    assert (display.hull_tpr <= y + display.slope * (display.hull_fpr - x) + 1e-12).all()
    positives = sum(STREAM_LABELS)
    negatives = len(STREAM_LABELS) - positives
    loss = negatives * x + 5 * positives * (1 - y)
    assert best.loss == pytest.approx(loss)
    assert (0.0, 1.0) == (display.fpr.min(), display.tpr.max())
    assert "equal cost, 1 : 5" in labelled(display.ax_)
    assert [(x, y)] == points(labelled(display.ax_)[f"best threshold: {threshold:.4g}"])


@pytest.mark.parametrize("display", [LossCurveDisplay, RocHullDisplay])
@pytest.mark.parametrize("weights", [None, [1, 1, 0, 1, 1]])
def test_the_threshold_in_a_legend_lies_inside_its_gap(display, weights) -> None:
    """With four digits it was 0.1607, above the whole gap."""
    scores = [0.1, 0.16068409966, 0.160684103, 0.16068411830, 0.9]
    drawn = display.from_predictions([0, 0, 0, 1, 1], scores, sample_weight=weights)
    (legend,) = [text for text in labelled(drawn.ax_) if "0.16" in text]
    lower = scores[2] if weights is None else scores[1]

    assert lower < float(legend.split()[-1]) <= 0.16068411830


def test_a_loss_curve_without_its_scores_takes_the_middle_between_thresholds() -> None:
    drawn = LossCurveDisplay(
        thresholds=[-math.inf, 0.12344, 0.12346, 0.12348, math.inf], losses=[3, 2, 1, 2, 3]
    ).plot()

    assert "cheapest: 1 at 0.12346" in labelled(drawn.ax_)


def test_a_roc_curve_of_one_label_is_told() -> None:
    with pytest.raises(ValueError, match="samples of both labels, got weights of 0 for label 0"):
        RocHullDisplay.from_predictions([1, 1], [0.1, 0.2])


def test_blocks_are_drawn_over_their_scores() -> None:
    display = CalibrationBlocksDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.25, 0.5, 0.75])

    expected = [(0.1, 0.0), (0.175, 0.0), (0.175, 0.5), (0.625, 0.5), (0.625, 1.0), (0.75, 1.0)]
    assert expected == points(display.line_)
    assert [0.1, 0.375, 0.75] == display.points_.get_offsets()[:, 0].tolist()
    areas = display.points_.get_sizes()
    assert (areas[1] - 10) == 2 * (areas[0] - 10) == 2 * (areas[2] - 10)
    assert display.level is None


def test_a_block_with_an_infinite_score_is_drawn_up_to_the_outermost_finite_one() -> None:
    scores = [-math.inf, 0.2, 0.6, math.inf]
    display = CalibrationBlocksDisplay.from_predictions([1, 0, 1, 1], scores)

    assert [(0.2, 0.5), (0.4, 0.5), (0.4, 1.0), (0.6, 1.0)] == points(display.line_)


def test_costs_mark_the_level_above_which_it_pays_to_answer_1() -> None:
    display = CalibrationBlocksDisplay.from_predictions(LABELS, SCORES, false_negative=5)

    assert 1 / 6 == display.level
    assert "answer 1 above 0.1667" in labelled(display.ax_)


def test_the_history_is_the_threshold_after_each_sample() -> None:
    display = ThresholdHistoryDisplay.from_predictions(
        STREAM_LABELS, STREAM_SCORES, false_negative=5
    )
    cut, expected = limen.OnlineThreshold(false_negative=5), []
    for score, label in zip(STREAM_SCORES, STREAM_LABELS, strict=True):
        cut.update(score, label)
        expected.append(cut.threshold)

    assert expected == display.thresholds.tolist()
    xs, ys = display.line_.get_data()
    assert list(range(1, 1251)) == xs.tolist()
    assert [t for t in expected if math.isfinite(t)] == ys[~np.isnan(ys)].tolist()


def test_infinite_thresholds_are_marked_at_the_edges() -> None:
    display = ThresholdHistoryDisplay(thresholds=[math.inf, 0.5, -math.inf, math.nan])
    display.plot()
    shown = labelled(display.ax_)

    assert [1, 4] == shown["none predicted positive"].get_xdata().tolist()
    assert [3] == shown["all predicted positive"].get_xdata().tolist()


def test_a_window_and_times_may_be_given() -> None:
    class Forgetful:
        def __init__(self, model) -> None:
            self.model = model

        def update(self, score, label) -> None:
            self.threshold = score

    times = np.array(["2026-01-01", "2026-01-02"], dtype="M8[D]")
    display = ThresholdHistoryDisplay.from_predictions(
        [0, 1], [0.1, 0.9], window=Forgetful, positions=times
    )

    assert [0.1, 0.9] == display.thresholds.tolist()
    assert times.tolist() == display.positions.tolist()


@pytest.mark.parametrize("window", [2, timedelta(days=2)])
def test_a_number_and_a_period_are_windows(window) -> None:
    times = np.arange("2026-01-01", "2026-01-07", dtype="M8[D]")
    display = ThresholdHistoryDisplay.from_predictions(
        LABELS, SCORES, window=window, positions=times
    )
    expected = [
        limen.optimal_threshold(SCORES[max(0, at - 1) : at + 1], LABELS[max(0, at - 1) : at + 1])
        for at in range(6)
    ]

    assert [best.threshold for best in expected] == display.thresholds.tolist()


def test_a_period_without_times_is_told() -> None:
    with pytest.raises(ValueError, match="needs the times: pass them as positions"):
        ThresholdHistoryDisplay.from_predictions(LABELS, SCORES, window=timedelta(days=1))


class Fitted:
    """A classifier of no library, with costs of its own."""

    classes_ = np.array(["bad", "good"])
    false_negative = 5

    def decision_function(self, X):
        return np.asarray(X)[:, 0]


@pytest.mark.parametrize("display", ALL)
@pytest.mark.parametrize("positive", ["good", "bad"])
def test_an_estimator_is_drawn_by_its_scores_and_costs(display, positive: str) -> None:
    rows = np.array(SCORES)[:, None]
    y = np.where(LABELS, "good", "bad")
    sign = 1 if positive == "good" else -1
    drawn = display.from_estimator(Fitted(), rows, y, pos_label=positive)
    expected = display.from_predictions(
        y == positive, sign * np.array(SCORES), false_negative=5, name="Fitted"
    )

    assert points(expected.line_) == points(drawn.line_)
    assert "Fitted" in labelled(drawn.ax_)
    assert list(labelled(expected.ax_)) == list(labelled(drawn.ax_))
    other = display.from_estimator(Fitted(), rows, y, false_negative=1, name="named")
    assert "named" in labelled(other.ax_)


def test_an_estimator_with_probabilities_is_drawn_by_them() -> None:
    class Sure(Fitted):
        def predict_proba(self, X):
            scores = np.asarray(X)[:, 0]
            return np.column_stack([1 - scores, scores])

    rows, y = np.array(SCORES)[:, None], np.where(LABELS, "good", "bad")
    drawn = LossCurveDisplay.from_estimator(Sure(), rows, y, pos_label="bad")

    assert (1 - np.array(SCORES))[::-1].tolist() == drawn.scores.tolist()
    with pytest.raises(AttributeError, match="Fitted has none of predict_proba"):
        LossCurveDisplay.from_estimator(
            Fitted(), rows, y, pos_label="bad", response_method="predict_proba"
        )


@pytest.mark.parametrize("display", ALL)
def test_an_axes_is_drawn_on_where_given(display) -> None:
    figure, ax = plt.subplots()
    drawn = display.from_predictions(LABELS, SCORES, ax=ax, curve_kwargs={"linewidth": 3})

    assert ax is drawn.ax_
    assert figure is drawn.figure_
    assert 3 == drawn.line_.get_linewidth()
    again = drawn.plot(name="again")
    assert again is drawn
    assert ax is not drawn.ax_
    assert "again" in labelled(drawn.ax_)


@pytest.mark.parametrize("display", ALL)
def test_nothing_is_clipped_and_no_words_lie_over_each_other(display) -> None:
    drawn = display.from_predictions(STREAM_LABELS, STREAM_SCORES, false_negative=5)
    drawn.figure_.canvas.draw()
    whole = drawn.figure_.bbox
    ax = drawn.ax_
    low, high = ax.get_xlim()
    ticks = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    seen = [text for at, text in ticks if low <= at <= high]
    words = [ax.xaxis.label, ax.yaxis.label, *seen, *ax.get_legend().get_texts()]
    boxes = [text.get_window_extent() for text in words if text.get_text()]

    for box in boxes:
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1
    for at, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[at + 1 :])


@pytest.mark.parametrize("display", ALL)
def test_labels_of_any_two_values_may_be_drawn(display) -> None:
    named = ["bad" if label else "good" for label in LABELS]
    drawn = display.from_predictions(named, SCORES, pos_label="bad")

    assert points(display.from_predictions(LABELS, SCORES).line_) == points(drawn.line_)
    with pytest.raises(ValueError, match="Write pos_label='bad' or pos_label='good'"):
        display.from_predictions(named, SCORES)


def test_a_long_line_keeps_its_lowest_and_highest_points() -> None:
    rng = np.random.default_rng(0)
    xs, ys = np.arange(1_000_000), rng.normal(size=1_000_000)
    shown, heights = visible(xs, ys)

    assert len(shown) < 10_000
    assert (0, 999_999) == (shown[0], shown[-1])
    assert (ys.min(), ys.max()) == (heights.min(), heights.max())
    assert ys[shown].tolist() == heights.tolist()
    assert (np.diff(shown) > 0).all()


NAMED = ["ok", "fraud", "ok", "fraud", "fraud", "ok"]


class FraudOrOk:
    """What a display asks of a fitted classifier; the score of the second class is the row."""

    classes_ = np.array(["fraud", "ok"])
    false_negative = 1
    pos_label: str | None = None

    def decision_function(self, X):
        return np.asarray(X)


@pytest.mark.parametrize("display", ALL)
def test_text_labels_ask_for_the_positive_one(display) -> None:
    asked = r"y holds 'fraud' \(3 rows\) and 'ok' \(3 rows\). Write pos_label='fraud' or pos_l"
    with pytest.raises(ValueError, match=asked):
        display.from_predictions(NAMED, SCORES)
    with pytest.raises(ValueError, match=asked):
        display.from_estimator(FraudOrOk(), SCORES, NAMED, false_negative=25)

    for given in ({"pos_label": "fraud", "false_negative": 25}, {"false_negative": 1}):
        display.from_estimator(FraudOrOk(), SCORES, NAMED, **given)


def test_the_costs_of_the_classifier_ask_for_the_positive_class_as_well() -> None:
    model = FraudOrOk()
    model.false_negative = 5
    with pytest.raises(ValueError, match="pos_label must be given"):
        LossCurveDisplay.from_estimator(model, SCORES, NAMED)
    model.pos_label = "fraud"
    display = LossCurveDisplay.from_estimator(model, SCORES, NAMED)
    expected = limen.loss_curve(
        [-x for x in SCORES], [n == "fraud" for n in NAMED], false_negative=5
    )

    assert expected.losses.tolist() == display.losses.tolist()


@pytest.mark.parametrize("display", ALL)
def test_minus_one_and_one_are_labels(display) -> None:
    drawn = display.from_predictions([2 * label - 1 for label in LABELS], SCORES)

    assert drawn.ax_.get_legend() is not None


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([0, 1, 2, 0, 1, 2], r"y_true must be 0 or 1, got 2 at y_true\[2\]"),
        ([0, 1, None, 0, 1, 1], r"y_true must be 0 or 1, got None at y_true\[2\]"),
    ],
)
def test_labels_that_are_none_are_told(labels, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        LossCurveDisplay.from_predictions(labels, SCORES)


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (
            lambda: (FraudOrOk(), NAMED, "good"),
            ValueError,
            r"pos_label must be one of \['fraud', 'ok'\], got 'good'",
        ),
        (
            lambda: (FraudOrOk(), LABELS, None),
            ValueError,
            r"y\[0\] must be one of \['fraud', 'ok'\], got 0",
        ),
        (
            lambda: (object(), LABELS, None),
            TypeError,
            r"must be a binary classifier.* got <object .*Fit it first",
        ),
    ],
)
def test_an_estimator_that_does_not_fit_is_told(call, error, told: str) -> None:
    estimator, labels, positive = call()
    with pytest.raises(error, match=told):
        LossCurveDisplay.from_estimator(estimator, SCORES, labels, pos_label=positive)


def test_lower_scores_that_mean_positive_give_the_pictures_turned_round() -> None:
    """Each is the mirror image of that of negated scores, ties and recommended cut included."""
    scores = [7 * score for score in STREAM_SCORES]  # which are no probabilities
    ages = [-score for score in scores]
    costs = {"false_negative": 5}
    rising = LossCurveDisplay.from_predictions(STREAM_LABELS, scores, **costs)
    falling = LossCurveDisplay.from_predictions(STREAM_LABELS, ages, direction="<=", **costs)
    best = limen.optimal_threshold(ages, STREAM_LABELS, direction="<=", **costs)
    marks = [
        next(points(line)[0] for text, line in labelled(each.ax_).items() if name in text)
        for name in ("cheapest", "recommended")
        for each in (rising, falling)
    ]

    assert [(-x, y) for x, y in marks[::2]] == marks[1::2]
    assert marks[1] == pytest.approx((best.threshold, best.loss))
    assert sorted(-end for end in ends(rising.band_)) == pytest.approx(ends(falling.band_))
    assert rising.losses[::-1].tolist() == falling.losses.tolist()


def test_of_equally_cheap_cuts_of_falling_scores_the_lowest_is_marked() -> None:
    display = LossCurveDisplay.from_predictions(
        LABELS, [-score for score in SCORES], direction="<="
    )

    assert [(-0.625, 2.0)] == points(labelled(display.ax_)[f"cheapest: 2 at {MINUS}0.625"])
    assert [(-0.175, 2.0)] == points(labelled(display.ax_)["as cheap: 1 more"])


def test_the_roc_curve_and_the_fit_of_falling_scores_are_those_of_rising_ones() -> None:
    ages = [-score for score in STREAM_SCORES]
    rising = RocHullDisplay.from_predictions(STREAM_LABELS, STREAM_SCORES, false_negative=5)
    falling = RocHullDisplay.from_predictions(STREAM_LABELS, ages, false_negative=5, direction="<=")
    fit = CalibrationBlocksDisplay.from_predictions(STREAM_LABELS, STREAM_SCORES)
    turned = CalibrationBlocksDisplay.from_predictions(STREAM_LABELS, ages, direction="<=")

    assert points(rising.line_) == points(falling.line_)
    assert points(rising.hull_) == points(falling.hull_)[::-1]
    assert (-rising.best[0], *rising.best[1:]) == falling.best
    assert f"best threshold: {MINUS}0.3853" in labelled(falling.ax_)
    assert [(-x, y) for x, y in points(fit.line_)][::-1] == points(turned.line_)
    assert "score itself" not in labelled(turned.ax_)
    for display in (LossCurveDisplay, RocHullDisplay, CalibrationBlocksDisplay):
        with pytest.raises(ValueError, match="direction must be"):
            display.from_predictions(LABELS, SCORES, direction="up")


@pytest.mark.parametrize("direction", [">=", "<="])
def test_every_metric_is_drawn_at_every_threshold(direction: Any) -> None:
    sign = 1 if direction == ">=" else -1
    scores = sign * np.asarray(STREAM_SCORES)
    given: dict[str, Any] = {"false_negative": 5, "direction": direction}
    names = ["precision", "recall", "mcc"]
    display = ThresholdDisplay.from_predictions(STREAM_LABELS, scores, metrics=names, **given)
    found = limen.recommend(scores, STREAM_LABELS, **given)

    assert names == list(display.values) == [line.get_label() for line in display.lines_]
    assert display.recommendation == found
    for place in range(0, len(display.thresholds), 97):
        answers = limen.optimum.answer(scores, display.thresholds[place], direction)
        right = np.sum((answers == 1) & (np.asarray(STREAM_LABELS) == 1))
        assert display.values["recall"][place] == right / np.sum(STREAM_LABELS)
        if np.sum(answers):
            assert display.values["precision"][place] == right / np.sum(answers)
    assert display.band_ is not None
    assert any(label.startswith("recommended: ") for label in labelled(display.ax_))
    with pytest.raises(ValueError, match="list of names"):
        ThresholdDisplay.from_predictions(STREAM_LABELS, scores, metrics="recall")


def test_metrics_of_a_classifier_are_drawn_at_its_costs() -> None:
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression

    from limen.sklearn import ThresholdClassifier

    rows = np.asarray(STREAM_SCORES).reshape(-1, 1)
    model = ThresholdClassifier(LogisticRegression(), false_negative=5).fit(rows, STREAM_LABELS)
    display = ThresholdDisplay.from_estimator(model, rows, STREAM_LABELS)
    scores = model.predict_proba(rows)[:, 1]

    assert limen.recommend(scores, STREAM_LABELS, false_negative=5) == display.recommendation
    assert "recall, ThresholdClassifier" in labelled(display.ax_)


def test_metrics_are_drawn_on_an_axes_and_for_named_labels() -> None:
    figure, ax = plt.subplots()
    named = ["bad" if label else "good" for label in LABELS]
    drawn = ThresholdDisplay.from_predictions(
        named, SCORES, pos_label="bad", ax=ax, curve_kwargs={"linewidth": 3}
    )

    assert (ax, figure) == (drawn.ax_, drawn.figure_)
    assert [3, 3, 3] == [line.get_linewidth() for line in drawn.lines_]
    plain = ThresholdDisplay.from_predictions(LABELS, SCORES)
    assert points(plain.line_) == points(drawn.line_)
    assert "too few samples to recommend a threshold" in labelled(plain.ax_)
