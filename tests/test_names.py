# SPDX-License-Identifier: Apache-2.0
"""Names that people type who come from other libraries mean what they mean there."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limen
from limen.demo import load_phishing, phishing_csv
from limen.names import ALIASES, OPTION_ALIASES

SCORES, LABELS = map(np.asarray, load_phishing())
WEIGHTS = np.resize([1, 2, 3], len(SCORES))
GROUPS = np.resize(["a", "b"], len(SCORES)).tolist()
NAMED = np.where(LABELS == 1, "fraud", "ok")

FUNCTIONS: dict[str, Any] = {
    "optimal_threshold": limen.optimal_threshold,
    "metric": lambda *args, **given: limen.optimal_threshold(*args, metric="f1", **given),
    "loss_curve": lambda *args, **given: limen.loss_curve(*args, **given).losses.tolist(),
    "review_band": lambda *args, **given: limen.review_band(*args, asking=0.25, **given),
    "recommend": limen.recommend,
    "by_group": lambda *args, **given: limen.by_group(GROUPS, *args, **given).thresholds(),
    "report": lambda *args, **given: limen.report(*args, **given).threshold,
}
COSTS = [name for name in FUNCTIONS if name != "metric"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_arguments_have_the_names_of_scikit_learn_too(function: str) -> None:
    found = FUNCTIONS[function](y_true=LABELS, y_score=SCORES, sample_weight=WEIGHTS)

    assert FUNCTIONS[function](SCORES, LABELS, weights=WEIGHTS) == found


@pytest.mark.parametrize("function", COSTS)
@pytest.mark.parametrize("alias", [name for name in ALIASES if ALIASES[name] == "false_negative"])
def test_costs_have_the_names_of_other_libraries_too(function: str, alias: str) -> None:
    found = FUNCTIONS[function](SCORES, LABELS, **{alias: 5})

    assert FUNCTIONS[function](SCORES, LABELS, false_negative=5) == found


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", ["pos_label", "positive"])
def test_labels_are_any_two_values_where_the_positive_one_is_named(
    function: str, name: str
) -> None:
    expected = FUNCTIONS[function](SCORES, LABELS)
    for labels, value in ((NAMED, "fraud"), (NAMED.tolist(), "fraud"), (LABELS * 2 - 1, 1)):
        assert expected == FUNCTIONS[function](SCORES, labels, **{name: value})
    with pytest.raises(ValueError, match=r"pos_label=|must be one of the labels"):
        FUNCTIONS[function](SCORES, NAMED)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_argument_given_by_two_names_is_refused(function: str) -> None:
    with pytest.raises(TypeError, match="sample_weight and weights are two names"):
        FUNCTIONS[function](SCORES, LABELS, weights=WEIGHTS, sample_weight=WEIGHTS)


@pytest.mark.parametrize("make", [limen.OnlineThreshold, limen.BoundedThreshold])
def test_models_know_the_names_of_costs_too(make: Any) -> None:
    given: dict[str, Any] = {"capacity": 64} if make is limen.BoundedThreshold else {}
    model = make(false_negative_cost=5, fp_cost=2, **given)

    assert (2, 5) == (model.settings["false_positive"], model.settings["false_negative"])
    with pytest.raises(TypeError, match="two names"):
        make(false_negative=5, fn_cost=5, **given)


def test_a_warning_names_the_line_of_the_caller() -> None:
    for call in (
        lambda: limen.optimal_threshold([0.5], [1]),
        lambda: limen.by_group(["a"], [0.5], [1]),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
        assert [__file__] == [each.filename for each in found]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--fn 5 --score score", "--false-negative 5"),
        ("--label=label --cost-fn=5", "--false-negative 5"),
        ("--fp 2 --false-negative-cost 5", "--false-positive 2 --false-negative 5"),
        ("--fn-cost 5 --weight label --pos-label 1", "--false-negative 5 --weight-column label"),
    ],
)
def test_options_have_other_names_too(run, typed: str, meant: str) -> None:
    Path("scores.csv").write_text(phishing_csv())

    assert (
        run("fit", "scores.csv", *meant.split())[:2] == run("fit", "scores.csv", *typed.split())[:2]
    )


def test_another_name_of_an_option_that_a_command_has_not_is_refused(run) -> None:
    code, _, err = run("merge", "a", "-o", "b", "--fn", "5")

    assert (2, True) == (code, "merge has no option --fn" in err)


def test_every_name_in_the_tables_leads_to_one_that_exists() -> None:
    from limen.cli.options import options_of, parser

    (commands,) = (each.choices for each in parser()._actions if each.dest == "command")
    fit = commands["fit"]._option_string_actions
    assert {f"--{name}" for name in OPTION_ALIASES.values()} <= set(fit)
    assert not {f"--{alias}" for alias in OPTION_ALIASES} & set(fit)
    assert options_of(["fit", "a.csv", "--fn", "5"]).false_negative == 5
