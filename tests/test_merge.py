# SPDX-License-Identifier: Apache-2.0
"""Models over disjoint samples become what one model over all of them would be."""

from __future__ import annotations

import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen import OnlineCalibrator, OnlineCut, OnlineThreshold, merge

samples = st.lists(
    st.tuples(
        st.sampled_from([-np.inf, 0.0, 0.25, 0.5, np.nextafter(0.5, 1), 1e300, np.inf]),
        st.booleans(),
        st.sampled_from([1, 2, 0.5, 0.125, 3, 0.1]),
    ),
    max_size=30,
)
MODELS = [
    lambda: OnlineThreshold(false_negative=5),
    lambda: OnlineThreshold(false_positive=0.1, unit=0.01),
    OnlineCut,
    OnlineCalibrator,
    lambda: OnlineCalibrator(unit=Fraction(1, 7)),
]


def held(make, rows):
    model = make()
    for row in rows:
        model.update(*row)
    return model


@pytest.mark.parametrize("make", MODELS)
@given(parts=st.lists(samples, min_size=1, max_size=5))
def test_merged_parts_are_one_object_over_all_samples(make, parts) -> None:
    whole = held(make, [row for part in parts for row in part])
    models = [held(make, part) for part in parts]
    before = [model._state() for model in models]
    merged = merge(models)
    merged._check()

    assert whole._state() == merged._state()
    assert before == [model._state() for model in models]
    models[0].merge(*models[1:])
    assert whole._state() == models[0]._state()


def test_different_costs_and_units_are_refused_and_nothing_changes() -> None:
    cut = held(lambda: OnlineThreshold(false_negative=5), [(0.5, 1, 1)])
    before = cut._state()
    for other, told in (
        (OnlineThreshold(false_negative=2), "false_negative is 5 here and 2 there"),
        (OnlineThreshold(false_negative=5, unit=1), "unit is None here and 1 there"),
    ):
        other.update(0.5, 1)
        with pytest.raises(ValueError, match=told):
            cut.merge(other)

        assert before == cut._state()


def test_costs_written_differently_are_the_same_costs() -> None:
    cut = held(lambda: OnlineThreshold(false_negative=0.5), [(0.5, 1, 1)])
    cut.merge(held(lambda: OnlineThreshold(false_negative=Fraction(1, 2)), [(0.25, 0, 1)]))

    assert 2 == len(cut)


def test_models_of_another_kind_are_refused() -> None:
    with pytest.raises(TypeError, match="cannot merge OnlineCalibrator into OnlineThreshold"):
        OnlineThreshold().merge(OnlineCalibrator())
    with pytest.raises(TypeError, match="cannot merge int"):
        OnlineThreshold().merge(7)


def test_an_object_is_not_merged_with_itself_or_twice() -> None:
    cut, other = OnlineThreshold(), OnlineThreshold()
    for others in ((cut,), (other, other)):
        with pytest.raises(ValueError, match="the same object twice"):
            cut.merge(*others)
    with pytest.raises(ValueError, match="the same object twice"):
        merge([cut, cut])


def test_nothing_to_merge_changes_nothing() -> None:
    cut = held(OnlineThreshold, [(0.5, 1, 1)])
    before = cut._state()
    cut.merge()
    cut.merge(OnlineThreshold())

    assert before == cut._state()
    with pytest.raises(ValueError, match="at least one"):
        merge([])


def test_sums_that_do_not_fit_together_are_refused_and_nothing_changes() -> None:
    cut, other = OnlineThreshold(), OnlineThreshold()
    cut.update(0.5, 1, 2**61)
    other.update(0.25, 0, 2**61)
    before = cut._state()
    with pytest.raises(OverflowError, match=r"2\*\*62 units of 1 or more.*Nothing was added"):
        cut.merge(other)

    assert before == cut._state()


def test_two_threads_may_merge_two_objects_into_each_other() -> None:
    left, right = OnlineThreshold(), OnlineThreshold()
    for model, start in ((left, 0), (right, 1)):
        scores = np.arange(start, 4000, 2) / 8
        model.update_many(scores, np.arange(len(scores)) % 2)

    def back_and_forth(one, other) -> None:
        for _ in range(3):
            one.copy().merge(other)
            other.copy().merge(one)

    threads = [
        threading.Thread(target=back_and_forth, args=pair)
        for pair in ((left, right), (right, left))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert not any(thread.is_alive() for thread in threads)
