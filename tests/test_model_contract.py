# SPDX-License-Identifier: Apache-2.0
"""A model that knows nothing of limen's trees, but keeps the contract, works where they do."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import streams

import limen
from limen import Grouped, LastN, LastPeriod, OnlineCalibrator, OnlineCut, OnlineThreshold
from limen.model import Model, asked
from limen.storage import Storable


class Binned(Storable, kind="tests.Binned"):
    """Samples counted in bins of scores from 0 to 1: its memory does not grow."""

    takes_costs = False

    def __init__(self, bins: int = 8, false_negative: int = 1) -> None:
        self.settings = {"bins": bins, "false_negative": false_negative, "unit": None}
        self.counts = np.zeros((2, bins), np.int64)
        self.size = 0

    def _count(self, scores: Any, labels: Any, weights: Any, sign: int) -> None:
        bins = self.settings["bins"]
        places = np.minimum(np.asarray(scores) * bins, bins - 1).astype(int)
        amounts = np.ones(len(places), np.int64) if weights is None else np.asarray(weights)
        counts = self.counts.copy()
        np.add.at(counts, (np.asarray(labels).astype(int), places), sign * amounts)
        if (counts < 0).any():
            raise limen.NotHeld("no such sample is held. Nothing was changed.")
        self.counts = counts
        self.size += sign * int(np.count_nonzero(amounts))

    def update(self, score: float, label: int, weight: int = 1) -> None:
        self._count([score], [label], [weight], 1)

    def revert(self, score: float, label: int, weight: int = 1) -> None:
        self._count([score], [label], [weight], -1)

    def update_many(self, scores: Any, labels: Any, weights: Any = None) -> None:
        self._count(scores, labels, weights, 1)

    def revert_many(self, scores: Any, labels: Any, weights: Any = None) -> None:
        self._count(scores, labels, weights, -1)

    def __len__(self) -> int:
        return self.size

    @property
    def optimum(self) -> limen.Optimum:
        zeros, ones = self.counts
        missed = np.append(0, ones.cumsum()) * self.settings["false_negative"]
        losses = missed + zeros.sum() - np.append(0, zeros.cumsum())
        bins = len(zeros)
        cut = bins - int(losses[::-1].argmin())
        lower = (cut - 0.5) / bins if cut > 0 else None
        upper = (cut + 0.5) / bins if cut < bins else None
        return limen.Optimum(lower, upper, float(losses[cut]))

    @property
    def threshold(self) -> float:
        return self.optimum.threshold

    def empty(self) -> Binned:
        return Binned(self.settings["bins"], self.settings["false_negative"])

    def snapshot(self) -> dict[str, Any]:
        return {**self.settings, "counts": self.counts.ravel(), "size": self.size}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Binned:
        model = cls(snapshot["bins"], snapshot["false_negative"])
        model.counts = snapshot["counts"].reshape(2, snapshot["bins"]).copy()
        model.size = snapshot["size"]
        return model


SCORES, LABELS = streams.uniform(200, seed=5)
GROUPS = ["a", "b"] * 100


def filled(model: Any, *extra: Any, **named: Any) -> Any:
    model.update_many(*extra, SCORES, LABELS, **named)
    return model


@pytest.mark.parametrize("make", [OnlineThreshold, OnlineCut, OnlineCalibrator, Binned])
def test_models_keep_the_contract(make: Any) -> None:
    model = make()

    assert isinstance(model, Model)
    assert {"unit": None}.items() <= model.settings.items()
    assert callable(model.threshold) is callable(model.optimum) is model.takes_costs
    assert 0 == len(model.empty()) == len(model.copy())
    assert asked(model, "threshold", {}) == asked(model.empty(), "optimum", {}).threshold


def test_an_empty_twin_has_the_settings_and_no_samples() -> None:
    class Named(OnlineThreshold):
        def __init__(self, name: str) -> None:
            super().__init__(false_negative=5)
            self.name = name

    model = Named("fraud")
    model.update(0.5, 1)

    assert (Named, 0) == (type(model.empty()), len(model.empty()))
    assert model.settings == model.empty().settings


def test_settings_are_those_of_the_caller_to_change() -> None:
    model = OnlineThreshold()
    model.settings["unit"] = 3

    assert model.settings["unit"] is None


def test_what_lacks_something_is_no_model() -> None:
    class Mean:
        def update(self, value: float) -> None: ...

    assert not isinstance(Mean(), Model)


DUPLICATES = [
    copy.copy,
    copy.deepcopy,
    lambda model: model.copy(),
    lambda model: pickle.loads(pickle.dumps(model)),
    lambda model: limen.from_bytes(model.to_bytes()),
]


@pytest.mark.parametrize("duplicate", DUPLICATES)
@pytest.mark.parametrize(
    "make",
    [
        lambda: filled(Binned(16, false_negative=3)),
        lambda: filled(Grouped(Binned()), GROUPS),
    ],
    ids=["alone", "Grouped"],
)
def test_a_model_of_ones_own_is_copied_and_stored(make: Any, duplicate: Any) -> None:
    original = make()
    other = duplicate(original)

    assert original.to_bytes() == other.to_bytes()
    first = ("a",) if isinstance(original, Grouped) else ()
    other.update(*first, 0.99, 1)
    assert original.to_bytes() == make().to_bytes() != other.to_bytes()


def test_a_file_brings_back_a_model_of_ones_own(tmp_path: Any) -> None:
    model = filled(Binned())
    model.save(tmp_path / "binned.limen")
    back = limen.load(tmp_path / "binned.limen")

    assert (Binned, model.optimum, len(model)) == (type(back), back.optimum, len(back))


def test_groups_follow_a_model_of_ones_own() -> None:
    grouped = filled(Grouped(Binned(), at_least=10), GROUPS)
    evens = Binned()
    evens.update_many(SCORES[::2], LABELS[::2])

    assert evens.optimum == grouped.optimum("a")
    with pytest.raises(TypeError, match="has its costs already"):
        grouped.threshold("a", false_negative=5)
    with pytest.raises(limen.NotHeld):
        grouped.revert("a", 0.5, 1, weight=1000)
    assert evens.optimum == grouped.optimum("a")


@pytest.mark.parametrize(
    "memory", [lambda m: LastN(m, 3), lambda m: LastPeriod(m, 3), limen.Ledger, limen.Fading]
)
def test_windows_and_ledgers_hold_samples_in_models_of_limen_only(memory: Any) -> None:
    given = (Binned(), 3) if memory is limen.Fading else (Binned(),)
    with pytest.raises(TypeError, match="must be an OnlineThreshold, OnlineCut or OnlineCal"):
        memory(*given)


def test_river_decides_by_a_model_of_ones_own() -> None:
    pytest.importorskip("river")
    from river import datasets, linear_model, preprocessing

    from limen.river import ThresholdClassifier

    inner = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    model = ThresholdClassifier(inner, window=lambda exact: Binned(64))
    for x, y in datasets.Phishing().take(100):
        model.learn_one(x, y)

    assert (Binned, 100) == (type(model.held), len(model.held))
    assert model.threshold * 64 == round(model.threshold * 64)


def test_a_kind_of_limen_cannot_be_taken() -> None:
    with pytest.raises(TypeError, match="'Grouped' is one of limen's own"):

        class Other(Storable, kind="Grouped"):
            pass
