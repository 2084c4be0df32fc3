# SPDX-License-Identifier: Apache-2.0
"""One threshold per group, exact, and that of the larger group where a group is too small."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import limen
from limen import (
    Grouped,
    GroupOptima,
    LastN,
    OnlineCalibrator,
    OnlineCut,
    OnlineThreshold,
    by_group,
)

RNG = np.random.default_rng(0)
N = 400
SCORES = RNG.integers(0, 50, N) / 50
LABELS = (RNG.random(N) < SCORES).astype(int)
WEIGHTS = RNG.integers(0, 4, N)
COUNTRIES = np.array(["de", "fr", "it"])[RNG.integers(0, 3, N)]
CITIES = RNG.integers(0, 4, N)
PATHS = list(zip(COUNTRIES.tolist(), CITIES.tolist(), strict=True))


def expected(rows, **costs) -> limen.Optimum:
    return limen.optimal_threshold(SCORES[rows], LABELS[rows], weights=WEIGHTS[rows], **costs)


def members() -> dict[tuple, np.ndarray]:
    rows: dict[tuple, np.ndarray] = {(): np.ones(N, dtype=bool)}
    for country in set(COUNTRIES.tolist()):
        rows[(country,)] = country == COUNTRIES
        for city in range(4):
            rows[(country, city)] = (country == COUNTRIES) & (city == CITIES)
    return rows


def filled(model, at_least: int = 1) -> Grouped:
    grouped = Grouped(model, at_least=at_least)
    grouped.update_many(PATHS, SCORES, LABELS, WEIGHTS)
    return grouped


def test_every_group_has_the_optimum_of_its_own_samples() -> None:
    whole = by_group(PATHS, SCORES, LABELS, weights=WEIGHTS, false_negative=3)
    online = filled(OnlineThreshold(false_negative=3))

    assert set(members()) == set(whole) == set(online)
    for path, rows in members().items():
        best = expected(rows, false_negative=3)
        assert best == whole.optimum(path) == online.optimum(path)
        assert best.threshold == whole.threshold(path) == online.threshold(path)
        assert (WEIGHTS[rows] > 0).sum() == whole.count(path) == online.count(path)


def test_one_by_one_is_all_at_once() -> None:
    grouped = Grouped(OnlineThreshold(), at_least=20)
    for sample in zip(PATHS, SCORES.tolist(), LABELS.tolist(), WEIGHTS.tolist(), strict=True):
        grouped.update(*sample)
    at_once = filled(OnlineThreshold(), at_least=20)

    assert at_once.thresholds() == grouped.thresholds()
    assert at_once.to_bytes() == grouped.to_bytes()


def test_a_small_group_is_answered_for_by_the_next_larger_one() -> None:
    counts = {path: int((WEIGHTS[rows] > 0).sum()) for path, rows in members().items()}
    limit = sorted(counts[path] for path in counts if len(path) == 2)[6]
    whole = by_group(PATHS, SCORES, LABELS, weights=WEIGHTS, at_least=limit)
    online = filled(OnlineThreshold(), at_least=limit)
    small = [path for path, count in counts.items() if count < limit]

    assert 0 < len(small) < 12
    for path in members():
        answering = path[:1] if path in small else path
        assert answering == whole.source(path) == online.source(path)
        assert expected(members()[answering]).threshold == whole.threshold(path)
        assert expected(members()[answering]) == online.optimum(path)


def test_what_was_never_seen_is_answered_for_by_what_contains_it() -> None:
    found = by_group(PATHS, SCORES, LABELS)

    assert ("de",) == found.source(("de", "unknown")) == found.source(("de", "unknown", 3))
    assert () == found.source("es") == found.source(())
    assert found.threshold(()) == found.threshold("es")


def test_a_single_value_is_a_path_of_one() -> None:
    by_value = by_group(COUNTRIES, SCORES, LABELS)
    by_path = by_group([(country,) for country in COUNTRIES], SCORES, LABELS)

    assert by_value.thresholds() == by_path.thresholds()
    assert by_value.threshold("de") == by_value.threshold(("de",))


NUMBERS = [np.int64(3), np.float64(0.5), np.bool_(True), np.str_("a"), np.bytes_(b"a")]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("make", [OnlineThreshold, lambda: LastN(OnlineThreshold(), 5)])
def test_numbers_of_numpy_are_those_of_python(make, number) -> None:
    plain = number.item()
    given = [number, (number,), ("de", number), ("de", (1, number))]
    same = [plain, (plain,), ("de", plain), ("de", (1, plain))]
    expected = Grouped(make())
    for group in same:
        expected.update(group, 0.5, 1)
    objects = np.empty(len(given), object)
    objects[:] = given
    single, many, array = Grouped(make()), Grouped(make()), Grouped(make())
    for group in given:
        single.update(group, 0.5, 1)
    many.update_many(given, [0.5] * 4, [1] * 4)
    array.update_many(objects, [0.5] * 4, [1] * 4)
    for grouped in (single, many, array):
        assert list(grouped) == list(expected)
        assert {type(part) for path in grouped for part in path} <= {type(plain), str, tuple}
        assert grouped.thresholds() == expected.thresholds()
        assert repr(grouped) == repr(expected)
        assert grouped.to_bytes() == expected.to_bytes()
        assert [grouped.count(group) for group in given] == [2, 2, 1, 1]
        assert grouped.source(number) == (plain,)


def test_groups_of_numpy_numbers_are_merged_taken_back_and_kept_by_a_ledger() -> None:
    here, there = Grouped(OnlineThreshold()), Grouped(OnlineThreshold())
    here.update(np.int64(3), 0.5, 1)
    there.update_many([np.int64(3), np.int64(4)], [0.25, 0.5], [0, 1])
    here.merge(there)
    assert list(here) == [(), (3,), (4,)]
    here.revert(np.int64(3), 0.5, 1)
    here.revert_many([np.int64(3)], [0.25], [0])
    assert list(here) == [(), (4,)]
    with pytest.raises(ValueError, match="names no group"):
        here.update(np.float64("nan"), 0.5, 1)
    ledger, same = (limen.Ledger(Grouped(OnlineThreshold())) for _ in range(2))
    for each, group in ((ledger, np.int64(3)), (same, 3)):
        each.score("a", 0.5, group=group)
        each.score_many(["b"], [0.25], groups=[group])
        each.label("a", 1)
        each.label("b", 0)
    assert ledger.model.thresholds() == same.model.thresholds() == {(): 0.375, (3,): 0.375}
    assert ledger.to_bytes() == same.to_bytes()


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars", "pyarrow"])
def test_groups_are_columns_of_any_library(library: str) -> None:
    module = pytest.importorskip(library)
    column = {
        "numpy": lambda: np.array(COUNTRIES, dtype=object),
        "pandas": lambda: module.Series(COUNTRIES, dtype="category"),
        "polars": lambda: module.Series(COUNTRIES.tolist()),
        "pyarrow": lambda: module.array(COUNTRIES.tolist()),
    }[library]()

    assert by_group(COUNTRIES, SCORES, LABELS).thresholds() == (
        by_group(column, SCORES, LABELS).thresholds()
    )


def test_several_columns_of_a_frame_are_paths() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"country": COUNTRIES, "city": CITIES})

    assert by_group(PATHS, SCORES, LABELS).thresholds() == (
        by_group(frame, SCORES, LABELS).thresholds()
    )


def test_each_score_is_answered_by_its_group() -> None:
    found = by_group(PATHS, SCORES, LABELS, at_least=40)
    online = Grouped(OnlineThreshold(), at_least=40)
    online.update_many(PATHS, SCORES, LABELS)
    asked = [*PATHS[:50], ("de", "new"), "es"]
    scores = np.append(SCORES[:50], [0.5, 0.5])
    answers = [int(s >= found.threshold(g)) for g, s in zip(asked, scores, strict=True)]

    assert answers == found.predict(asked, scores).tolist()
    assert answers == online.predict(asked, scores).tolist()


def test_a_calibrator_is_asked_with_costs() -> None:
    grouped = filled(OnlineCalibrator())
    for path, rows in members().items():
        for false_negative in (1, 5):
            best = expected(rows, false_negative=false_negative)
            assert best.threshold == grouped.threshold(path, false_negative=false_negative)
            assert best == grouped.optimum(path, false_negative=false_negative)
    answers = grouped.predict(["de"], [0.5], false_negative=1000)

    assert [1] == answers.tolist()
    assert grouped.model("de").probability(0.5) == grouped.model(("de", "new")).probability(0.5)


def test_a_model_with_costs_takes_no_others() -> None:
    with pytest.raises(TypeError, match="has its costs already"):
        filled(OnlineThreshold()).threshold("de", false_negative=5)


def test_any_losses_may_be_grouped() -> None:
    grouped = Grouped(OnlineCut())
    grouped.update_many(["a", "b"], [0.2, 0.6], below=[0, 2], above=[3, 0])
    grouped.update("a", 0.4, below=1, above=0)

    assert (0.30000000000000004, -math.inf) == (grouped.threshold("a"), grouped.threshold("b"))


class Diary(list):
    """A model that remembers in which order its samples came."""

    def update_many(self, scores, labels) -> None:
        self.extend(scores.tolist())


def test_samples_reach_every_group_in_their_order() -> None:
    """Larger groups too: a window over them must know which sample is the oldest."""
    grouped = Grouped(Diary())
    grouped.update_many(PATHS, np.arange(N), LABELS)

    for path, rows in members().items():
        assert np.flatnonzero(rows).tolist() == grouped.model(path)


def test_every_group_may_have_a_window_of_its_own() -> None:
    grouped = Grouped(limen.LastN(OnlineThreshold(), n=20))
    grouped.update_many(PATHS, SCORES, LABELS)
    single = Grouped(limen.LastN(OnlineThreshold(), n=20))
    for path, score, label in zip(PATHS, SCORES.tolist(), LABELS.tolist(), strict=True):
        single.update(path, score, label)

    for path, rows in members().items():
        last = np.flatnonzero(rows)[-20:]
        best = limen.optimal_threshold(SCORES[last], LABELS[last])
        assert best == grouped.optimum(path) == single.optimum(path)


def test_times_go_with_their_samples() -> None:
    grouped = Grouped(limen.LastPeriod(OnlineThreshold(), 100))
    grouped.update_many(COUNTRIES, SCORES, LABELS, times=np.arange(N))

    for country in ("de", "fr", "it"):
        at = np.flatnonzero(country == COUNTRIES)
        at = at[at > N - 1 - 100]  # by the clock of all groups
        assert limen.optimal_threshold(SCORES[at], LABELS[at]) == grouped.optimum(country)


def test_what_a_list_holds_stays_what_it_is() -> None:
    """As an array, the whole number would become a float and be rounded without a word."""
    grouped = Grouped(OnlineThreshold())
    with pytest.raises(ValueError, match="no exact float64"):
        grouped.update_many(["a", "a"], [2**53 + 1, 0.5], [0, 1])

    assert 0 == len(grouped)


def test_taking_everything_back_leaves_nothing() -> None:
    grouped = filled(OnlineThreshold())
    grouped.revert_many(PATHS[100:], SCORES[100:], LABELS[100:], WEIGHTS[100:])
    for at in range(100):
        grouped.revert(PATHS[at], SCORES[at], int(LABELS[at]), int(WEIGHTS[at]))

    assert ([()], 0) == (list(grouped), len(grouped))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda g: g.update(("de", 0), math.nan, 1), ValueError),
        (lambda g: g.update(("new", 0), 0.5, 2), ValueError),
        (lambda g: g.revert(("it", 3), -1.0, 1), limen.NotHeld),
        (lambda g: g.revert(("new", 0), 0.5, 1), limen.NotHeld),
        (lambda g: g.update_many(["new", "de"], [0.5, math.nan], [0, 1]), ValueError),
        (lambda g: g.revert_many(["de", "new"], [0.5, 0.5], [0, 1]), limen.NotHeld),
        (lambda g: g.update_many(["new"], [0.5, 0.6], [0, 1]), ValueError),
        (lambda g: g.update_many(["new", None], [0.5, 0.6], [0, 1]), ValueError),
    ],
)
def test_an_error_changes_nothing(change, error) -> None:
    grouped = filled(OnlineThreshold())
    before = grouped.to_bytes()
    with pytest.raises(error):
        change(grouped)

    assert before == grouped.to_bytes()


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        (["a", None], r"groups\[1\] is None, which names no group"),
        (["a", math.nan], r"groups\[1\] is nan"),
        ([("a", None), "b"], r"groups\[0\] is \('a', None\)"),
        (["a", ()], r"groups\[1\] is \(\)"),
        (["a"], "groups has 1, samples has 2"),
        (np.zeros((2, 2, 2)), r"one column or several, got shape \(2, 2, 2\)"),
    ],
)
def test_what_names_no_group_is_told_with_its_place(groups, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        by_group(groups, [0.1, 0.2], [0, 1])


@pytest.mark.parametrize("at_least", [-1, 0, 2.5, True, None])
def test_the_floor_is_a_number_of_samples(at_least) -> None:
    with pytest.raises(ValueError, match="at_least must be a number of samples"):
        by_group(["a"], [0.1], [0], at_least=at_least)
    with pytest.raises(ValueError, match="at_least must be a number of samples"):
        Grouped(OnlineThreshold(), at_least=at_least)


def test_a_model_that_holds_samples_is_refused() -> None:
    held = OnlineThreshold()
    held.update(0.5, 1)

    with pytest.raises(ValueError, match="must be empty, got one that holds 1 samples"):
        Grouped(held)


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_copies_answer_alike(duplicate) -> None:
    grouped = filled(OnlineThreshold(), at_least=9)

    assert grouped.thresholds() == duplicate(grouped).thresholds()


def test_the_empty_state_is_an_ordinary_state() -> None:
    assert math.inf == Grouped(OnlineThreshold()).threshold("a")
    assert math.inf == by_group([], [], []).threshold("a")


def test_the_representations_tell_groups_and_samples() -> None:
    found = by_group(["a", "a", "b"], [0.1, 0.2, 0.3], [0, 1, 1], at_least=2)
    grouped = Grouped(OnlineCut(), at_least=2)
    grouped.update("a", 0.5, 1, 0)

    assert isinstance(found, GroupOptima)
    assert "<GroupOptima(at_least=2): 3 samples, 2 groups, 1 of them too small>" == repr(found)
    assert repr(grouped).endswith("at_least=2): 1 samples, 1 groups>")


# Windows in groups.


def last_ten() -> Grouped:
    return Grouped(limen.LastPeriod(OnlineThreshold(), 10))


def test_an_idle_group_forgets_when_time_goes_by_elsewhere() -> None:
    grouped = last_ten()
    grouped.update("idle", 0.5, 1, time=0)
    grouped.update("busy", 0.5, 1, time=100)

    assert (0, 1, 1) == (grouped.count("idle"), grouped.count("busy"), len(grouped))


def test_what_is_too_old_for_all_is_too_old_for_its_group() -> None:
    grouped = last_ten()
    grouped.update("busy", 0.5, 1, time=100)
    grouped.update("new", 0.5, 1, time=0)

    assert (0, 1) == (grouped.count("new"), len(grouped))


def test_groups_can_be_told_that_time_goes_by() -> None:
    grouped: Any = last_ten()
    grouped.update("a", 0.5, 1, time=0)
    grouped.update("b", 0.5, 1, time=5)
    grouped.advance(12)

    assert (0, 1, 1) == (grouped.count("a"), grouped.count("b"), len(grouped))


def shrunk_rows() -> tuple[list[str], np.ndarray, np.ndarray]:
    """One group as all others, one whose best threshold is far higher, and two that are small."""
    rng = np.random.default_rng(5)
    groups = ["like"] * 2_000 + ["other"] * 1_000 + ["few"] * 40 + ["hardly any"] * 3
    scores = rng.random(len(groups))
    shift = np.where(np.array(groups) == "other", 0.9, 0.4)
    labels = rng.random(len(groups)) < 1 / (1 + np.exp(-12 * (scores - shift)))
    return groups, scores, labels.astype(int)


def test_a_group_keeps_the_larger_ones_threshold_unless_its_samples_rule_it_out() -> None:
    groups, scores, labels = shrunk_rows()
    found = limen.by_group(groups, scores, labels, shrink=True)
    everything = limen.recommend(scores, labels)
    named = np.array(groups)
    other = limen.recommend(scores[named == "other"], labels[named == "other"])

    assert everything.threshold == found.threshold(()) == found.threshold("never seen")
    assert found.threshold("few") == everything.threshold == found.threshold("hardly any")
    assert ((), ()) == (found.source("few"), found.source("hardly any"))
    assert found.recommendation("hardly any").interval is None
    assert other.interval[0] == found.threshold("other") > everything.threshold
    assert ("other",) == found.source("other")
    exact = limen.by_group(groups, scores, labels)
    assert exact.optimum("other") == found.recommendation("other").optimum
    assert exact.count("few") == found.count("few") == 40
    assert [0, 1] == found.predict(["other", "few"], [0.6, 0.6]).tolist()
    assert "3,043 samples, 4 groups" in repr(found)


def test_nested_groups_shrink_towards_the_next_larger_one() -> None:
    groups, scores, labels = shrunk_rows()
    under_a = ("other", "hardly any")
    paths = [("a", group) if group in under_a else ("b", group) for group in groups]
    found = limen.by_group(paths, scores, labels, shrink=True)

    assert ("a",) == found.source(("a", "hardly any"))
    assert (
        found.threshold("a")
        == found.threshold(("a", "hardly any"))
        == found.threshold(("a", "new"))
    )


def test_a_group_below_at_least_is_not_asked() -> None:
    groups, scores, labels = shrunk_rows()
    found = limen.by_group(groups, scores, labels, shrink=True, at_least=1_500)

    assert () == found.source("other")
    assert found.recommendation("other").interval is None


def test_shrinking_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="cannot be recommended from 1 sample of"):
        limen.by_group(["a", "b"], [0.1, 0.2], [0, 1], shrink=True)
    with pytest.raises(ValueError, match="shrink takes no unit"):
        limen.by_group(["a", "b"], [0.1, 0.2], [0, 1], shrink=True, unit=0.01)
