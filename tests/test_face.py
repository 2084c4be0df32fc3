# SPDX-License-Identifier: Apache-2.0
"""The public face: names, signatures, copies, pickles and what people do with classes."""

from __future__ import annotations

import ast
import copy
import importlib
import importlib.util
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import limen
from limen import OnlineCalibrator, OnlineCut, OnlineThreshold

# In the order of the README: choose, keep, judge, serve, modules.
GROUPS = (
    ("recommend", "optimal_threshold", "by_group", "report"),
    (
        *("OnlineThreshold", "OnlineCalibrator"),
        *("LastN", "LastPeriod", "Fading", "Ledger", "Grouped", "merge", "load"),
    ),
    ("Evidence", "Alarm"),
    ("Client",),
    ("losses", "metrics", "paper"),
)
ADAPTERS = ("sklearn", "river", "spark", "duckdb", "plots")

# Importable from limen as well: results, errors, and what fewer people need.
OTHERS = {
    "BestCut",
    "Blocks",
    "BoundedCalibrator",
    "BoundedCut",
    "BoundedThreshold",
    "Budget",
    "Confusion",
    "GroupOptima",
    "GroupThreshold",
    "GroupThresholds",
    "Infeasible",
    "LossCurve",
    "NotHeld",
    "OnlineCut",
    "Optimum",
    "Recommendation",
    "Report",
    "ReviewBand",
    "RocHull",
    "Trial",
    "columns",
    "from_bytes",
    "isotonic",
    "loss_curve",
    "optimal_cut",
    "review_band",
}


def filled_threshold() -> OnlineThreshold:
    cut = OnlineThreshold(false_positive=0.1, false_negative=0.3, unit=0.01)
    cut.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1], [1, 2, 0.5, 0.25])
    return cut


def filled_cut() -> OnlineCut:
    cut = OnlineCut()
    cut.update_many([0.1, 0.25, 0.5], [0, -2, 1], [0.5, 0, 3])
    return cut


def filled_calibrator() -> OnlineCalibrator:
    calibrator = OnlineCalibrator(unit=0.01)
    calibrator.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1], [1, 2, 0.5, 0.25])
    return calibrator


MODELS = [filled_threshold, filled_cut, filled_calibrator]


def test_the_public_names_are_the_promised_ones() -> None:
    assert [name for group in GROUPS for name in group] == limen.__all__


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_every_other_name_can_be_imported_from_limen(name: str) -> None:
    assert name not in limen.__all__
    assert getattr(limen, name).__name__.rpartition(".")[2] == name


def test_every_name_that_can_be_imported_has_a_type() -> None:
    """Type checkers see the imports under TYPE_CHECKING only; `__getattr__` has no types."""
    tree = ast.parse(Path(limen.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    typed = {name.name: name.asname for node in imported for name in node.names}

    assert {*limen.__all__, *OTHERS} == set(typed)
    # Only what is in `__all__`, or named twice, may be imported from here under `mypy --strict`.
    assert {name for name, again in typed.items() if again == name} == OTHERS


def test_adapters_are_loaded_when_they_are_named() -> None:
    program = (
        "import limen; print(limen.paper.__name__, 'limen.sklearn' in __import__('sys').modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert ("limen.paper False\n", "") == (done.stdout, done.stderr)
    pytest.importorskip("sklearn")
    assert "ThresholdClassifier" in limen.sklearn.__all__


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (
            limen.optimal_threshold,
            [
                "scores",
                "labels",
                "false_positive",
                "false_negative",
                "weights",
                "unit",
                "direction",
                "prevalence",
                "pos_label",
                "metric",
                "demands",
            ],
        ),
        (limen.optimal_cut, ["scores", "below", "above", "unit", "direction"]),
        (
            limen.loss_curve,
            [
                "scores",
                "labels",
                "false_positive",
                "false_negative",
                "weights",
                "unit",
                "direction",
                "pos_label",
            ],
        ),
        (
            limen.by_group,
            [
                "groups",
                "scores",
                "labels",
                "false_positive",
                "false_negative",
                "weights",
                "unit",
                "at_least",
                "shrink",
                "direction",
                "scores_are",
                "pos_label",
            ],
        ),
        (limen.Grouped.__init__, ["self", "model", "at_least"]),
        (
            limen.recommend,
            [
                "scores",
                "labels",
                "false_positive",
                "false_negative",
                "weights",
                "current",
                "confidence",
                "direction",
                "prevalence",
                "scores_are",
                "pos_label",
            ],
        ),
        (
            limen.Evidence.__init__,
            [
                "self",
                "current",
                "candidate",
                "false_positive",
                "false_negative",
                "age",
                "confidence",
                "largest_loss",
                "direction",
                "number",
            ],
        ),
        (limen.Evidence.update, ["self", "score", "label", "weight"]),
        (limen.Evidence.revert, ["self", "score", "label", "weight"]),
        (
            limen.columns.from_frame,
            ["frame", "score", "label", "weight", "group", "positive"],
        ),
        (limen.losses.classification, ["labels", "false_positive", "false_negative", "weights"]),
        (limen.losses.linear, ["z", "outputs"]),
        (limen.losses.cost_matrix, ["labels", "tp", "fp", "fn", "tn"]),
        (
            OnlineThreshold.__init__,
            ["self", "false_positive", "false_negative", "unit", "direction", "scores", "capacity"],
        ),
        (OnlineCut.__init__, ["self", "unit", "direction", "capacity"]),
        (OnlineThreshold.update, ["self", "score", "label", "weight"]),
        (OnlineThreshold.revert, ["self", "score", "label", "weight"]),
        (OnlineThreshold.update_many, ["self", "scores", "labels", "weights"]),
        (OnlineThreshold.revert_many, ["self", "scores", "labels", "weights"]),
        (OnlineCalibrator.__init__, ["self", "unit", "direction", "scores", "capacity"]),
        (OnlineCalibrator.update, ["self", "score", "label", "weight"]),
        (OnlineCalibrator.revert, ["self", "score", "label", "weight"]),
        (OnlineCalibrator.update_many, ["self", "scores", "labels", "weights"]),
        (OnlineCalibrator.revert_many, ["self", "scores", "labels", "weights"]),
        (OnlineCalibrator.threshold, ["self", "false_positive", "false_negative"]),
        (OnlineCalibrator.optimum, ["self", "false_positive", "false_negative"]),
        (OnlineCalibrator.probability, ["self", "scores", "between"]),
        (OnlineCalibrator.probability_interval, ["self", "scores"]),
        (OnlineCalibrator.blocks, ["self"]),
        (OnlineCalibrator.roc_hull, ["self"]),
        (OnlineCalibrator.confusion, ["self", "threshold"]),
        (
            OnlineCalibrator.best,
            [
                "self",
                "metric",
                "min_precision",
                "min_recall",
                "max_false_positive_rate",
                "max_positive_rate",
                "max_positives",
                "confidence",
            ],
        ),
        (
            limen.isotonic,
            ["scores", "labels", "weights", "increasing", "y_min", "y_max", "unit"],
        ),
        (OnlineCut.update, ["self", "score", "below", "above"]),
        (OnlineCut.revert, ["self", "score", "below", "above"]),
        (OnlineCut.update_many, ["self", "scores", "below", "above"]),
        (OnlineCut.revert_many, ["self", "scores", "below", "above"]),
        (limen.LastN.__init__, ["self", "model", "n"]),
        (limen.LastN.update, ["self", "sample", "named"]),
        (limen.LastN.update_many, ["self", "columns", "named"]),
        (limen.LastPeriod.__init__, ["self", "model", "period", "max_ahead"]),
        (limen.LastPeriod.update, ["self", "sample", "time", "named"]),
        (limen.LastPeriod.update_many, ["self", "columns", "times", "named"]),
        (limen.LastPeriod.advance, ["self", "time"]),
        (
            limen.Ledger.__init__,
            [
                *("self", "model", "time_to_live", "maturity", "correctable"),
                *("horizon", "max_ahead", "false_positive", "false_negative"),
            ],
        ),
        (limen.Ledger.score, ["self", "id", "score", "time", "weight", "answer", "group"]),
        (limen.Ledger.label, ["self", "id", "outcome", "as_of", "named"]),
        (
            limen.Ledger.score_many,
            ["self", "ids", "scores", "times", "weights", "answers", "groups"],
        ),
        (limen.Ledger.label_many, ["self", "ids", "outcomes", "as_of"]),
        (limen.Ledger.forget, ["self", "id"]),
        (limen.Ledger.advance, ["self", "time"]),
        (OnlineThreshold.to_bytes, ["self"]),
        (OnlineThreshold.from_bytes, ["stored"]),
        (OnlineThreshold.save, ["self", "path"]),
        (OnlineThreshold.load, ["path"]),
        (limen.from_bytes, ["stored", "kind"]),
        (limen.load, ["path", "kind"]),
    ],
)
def test_signatures_are_the_promised_ones(function: object, parameters: list[str]) -> None:
    assert parameters == list(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    "use",
    [
        "import limen; limen.OnlineThreshold",
        "import limen; limen.columns.as_scores",
        "import limen; limen._core.isa",
        "from limen import metrics, merge",
        "from limen.columns import as_scores; import limen; limen.loss_curve",
        "import limen; assert 'Ledger' in dir(limen)",
        "from limen.storage import load; load(PATH)",
    ],
)
def test_the_library_loads_itself_when_it_is_first_used(use: str, tmp_path) -> None:
    path = str(tmp_path / "ledger.limen")
    limen.Ledger(limen.OnlineThreshold()).save(path)
    program = f"PATH = {path!r}; import sys; import limen; before = 'numpy' in sys.modules; {use}"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; print(before)"], capture_output=True, text=True
    )

    assert ("False\n", "") == (done.stdout, done.stderr)


def test_a_name_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'optimal_treshold'"):
        limen.optimal_treshold  # noqa: B018


def test_costs_and_units_go_by_name_only() -> None:
    with pytest.raises(TypeError):
        OnlineThreshold(1, 5)
    with pytest.raises(TypeError):
        limen.optimal_threshold([0.5], [1], 1)


SETTINGS = {"false_positive", "false_negative", "unit", "confidence", "at_least", "between"}


def public_functions() -> dict[str, Callable[..., object]]:
    """Functions and methods of limen, its modules and adapters, by their full names."""
    found: dict[str, Callable[..., object]] = {}
    needed = {"sklearn": "sklearn", "plots": "matplotlib"}
    there = [f"limen.{name}" for name, need in needed.items() if importlib.util.find_spec(need)]
    for name in ("limen", "limen.losses", "limen.metrics", *there):
        module = importlib.import_module(name)
        for each in (*module.__all__, *(OTHERS if name == "limen" else ())):
            thing = getattr(module, each)
            if inspect.isclass(thing):
                methods = inspect.getmembers(thing, inspect.isroutine)
                found |= {
                    f"{name}.{each}.{method}": function
                    for method, function in methods
                    if not method.startswith("_") or method == "__init__"
                    if (getattr(function, "__module__", "") or "").startswith("limen")
                }
            elif inspect.isfunction(thing):
                found[f"{name}.{each}"] = thing
    return found


def test_costs_units_and_other_settings_go_by_name_everywhere() -> None:
    by_position = [
        (name, parameter.name)
        for name, function in public_functions().items()
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name in SETTINGS and parameter.kind is not parameter.KEYWORD_ONLY
        if name
        not in ("limen.GroupOptima.__init__", "limen.GroupThresholds.__init__")  # of by_group
        if not name.startswith("limen.Recommendation")
        if not name.endswith(".interval")  # of which it is the only question
    ]

    assert [] == by_position


def test_columns_come_in_one_order_everywhere() -> None:
    order = ["groups", "y_true", "y_score", "scores", "labels", "below", "above", "weights"]
    for name, function in public_functions().items():
        given = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.name in order
            if parameter.name != "groups" or parameter.kind is not parameter.KEYWORD_ONLY
        ]

        assert sorted(given, key=order.index) == given, name


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("make", MODELS)
def test_a_pickle_brings_back_the_same_state(make, protocol: int) -> None:
    cut = make()
    back = pickle.loads(pickle.dumps(cut, protocol))

    assert type(cut) is type(back)
    assert cut._state() == back._state()
    assert cut._given == back._given
    assert len(cut) == len(back)
    assert list(cut.curve().losses) == list(back.curve().losses)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda cut: cut.copy()])
@pytest.mark.parametrize("make", MODELS)
def test_a_copy_goes_its_own_way(make, duplicate) -> None:
    cut = make()
    before = cut._state()
    other = duplicate(cut)
    other.update(0.9, 0, 1)

    assert before == cut._state()
    assert before != other._state()
    other.revert(0.9, 0, 1)
    assert before == other._state()


@pytest.mark.parametrize("make", MODELS)
def test_bytes_that_were_changed_are_refused_and_nothing_changes(make) -> None:
    cut = make()
    before = cut._state()
    for damaged in (b"", before[:-1], before + b"\0" * 32, b"\xff" * len(before)):
        with pytest.raises(ValueError, match="cut short or changed"):
            cut._restore(damaged)

        assert before == cut._state()


def test_arguments_may_be_named() -> None:
    cut = OnlineThreshold()
    cut.update(score=0.5, label=1, weight=2)
    cut.update(0.25, label=0)
    cut.revert(weight=2, label=1, score=0.5)

    assert (1, 0.0) == (len(cut), cut.loss)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda cut: cut.update(), "needs score"),
        (lambda cut: cut.update(0.5), "needs label"),
        (lambda cut: cut.update(0.5, 1, 1, 1), "at most 3 arguments, got 4"),
        (lambda cut: cut.update(0.5, 1, w=1), "no argument 'w'"),
        (lambda cut: cut.update(0.5, 1, score=0.5), "two values for score"),
        (lambda cut: cut.revert(0.5), "needs label"),
    ],
)
def test_wrong_arguments_are_told_and_nothing_is_added(call, told: str) -> None:
    cut = OnlineThreshold()
    with pytest.raises(TypeError, match=told):
        call(cut)

    assert 0 == len(cut)


class Named(OnlineThreshold):
    """A subclass with an argument and an attribute of its own."""

    def __init__(self, name: str = "", **given: object) -> None:
        super().__init__(**given)
        self.name = name


def test_a_subclass_keeps_its_methods_and_attributes() -> None:
    cut = Named("fraud", false_negative=5)
    cut.update(0.5, 1)

    assert ("fraud", 1, 0.0) == (cut.name, len(cut), cut.loss)


class Careless(OnlineThreshold):
    """A subclass that forgets to initialise what it extends."""

    def __init__(self) -> None:
        pass


@pytest.mark.parametrize(
    "use",
    [
        lambda cut: cut.update(0.5, 1),
        lambda cut: cut.revert(0.5, 1),
        lambda cut: cut.threshold,
        lambda cut: cut.loss,
        len,
    ],
)
def test_a_subclass_that_forgets_its_base_is_told_so(use) -> None:
    with pytest.raises(RuntimeError, match=r"super\(\)\.__init__"):
        use(Careless())


def test_the_representation_tells_costs_samples_and_answer() -> None:
    cut = OnlineThreshold(false_negative=5)
    cut.update(0.5, 1)

    assert (
        "<OnlineThreshold(false_positive=1, false_negative=5, unit=None): "
        "1 sample, threshold -inf, loss 0.0>"
    ) == repr(cut)


def test_sizes_grow_with_what_is_held() -> None:
    small, large = OnlineThreshold(), OnlineThreshold()
    large.update_many([i / 1000 for i in range(1000)], [1] * 1000)

    assert 1000 * 28 <= sys.getsizeof(large) - sys.getsizeof(small) <= 1000 * 60


def test_not_held_is_a_key_error_that_reads_like_a_sentence() -> None:
    with pytest.raises(KeyError) as caught:
        OnlineThreshold().revert(0.42, 1)

    assert isinstance(caught.value, limen.NotHeld)
    assert str(caught.value).startswith("cannot revert score 0.42: no sample with this score")


PUBLIC_MODULES = [
    "columns",
    "losses",
    "metrics",
    "narrowing",
    "paper",
    "plots",
    "river",
    "sklearn",
    "spark",
    "trust",
]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.check] if name == "spark" else [])
        for name in PUBLIC_MODULES
    ],
)
def test_dir_of_a_module_lists_its_public_names_only(name: str) -> None:
    libraries = {
        "plots": "matplotlib",
        "river": "river",
        "sklearn": "sklearn",
        "spark": "pyspark",
    }
    if name in libraries:
        pytest.importorskip(libraries[name])
    module = importlib.import_module(f"limen.{name}")

    assert sorted(module.__all__) == dir(module)


def test_dir_of_limen_lists_its_public_names_only() -> None:
    assert sorted([*limen.__all__, *ADAPTERS, "__version__"]) == dir(limen)


@pytest.mark.parametrize("model", [OnlineThreshold, OnlineCut, OnlineCalibrator])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: limen.LastN(model, 3),
        lambda model: limen.LastPeriod(model, 3),
        lambda model: limen.Ledger(model),
        lambda model: limen.Ledger(limen.LastN(model, 3)),
    ],
)
def test_a_window_or_ledger_lists_only_what_its_model_can_answer(model, wrap) -> None:
    wrapped = wrap(model())
    listed = [name for name in dir(wrapped) if not name.startswith("_")]

    assert [] == [name for name in listed if not hasattr(wrapped, name)]
    for name in ("probability", "probability_interval"):
        assert (name in listed) is (model is OnlineCalibrator)
    assert ("loss" in listed) is (model is not OnlineCalibrator)
    assert {"threshold", "optimum", "predict", "curve"} <= set(listed)
