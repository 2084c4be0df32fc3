# SPDX-License-Identifier: Apache-2.0
"""The paper's figures, lemmas and theorems, held against the paper's own algorithms."""

from __future__ import annotations

import ast
import doctest
import json
import math
import random
import sys
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen import paper
from limen.paper import (
    EMPTY,
    Run,
    SequentialMerger,
    Summary,
    brute_force,
    every_cut,
    iterative,
    merge,
    recursive_merger,
)

EXAMPLE = json.loads((Path(__file__).parent / "working_example.json").read_text())
SAMPLES = EXAMPLE["samples"]
FIGURES = {figure["n"]: figure["tree"] for figure in EXAMPLE["figures"]}

fractions = st.fractions(min_value=-3, max_value=3, max_denominator=4)
few_scores = st.integers(-4, 4) | fractions | st.sampled_from([-math.inf, math.inf, 0.0, -0.0])
few_losses = st.integers(-3, 3) | fractions
streams = st.lists(st.tuples(few_scores, few_losses), max_size=24)
grids = st.lists(fractions, min_size=2, max_size=5, unique=True).map(sorted)

# Time limits on a shared machine fail by chance; the work is counted instead.
unhurried = settings(deadline=None)


def merged_sequentially(stream: list[tuple[Any, Any]]) -> SequentialMerger:
    merger = SequentialMerger()
    for score, z in stream:
        merger.update(score, z)
    return merger


def columns(stream: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return [score for score, _ in stream], [z for _, z in stream]


def scores_of(run: Run) -> list[Any]:
    if not run.children:
        return [run.lowest]
    return [score for child in run.children for score in scores_of(child)]


def tree(run: Run) -> dict[str, Any]:
    return {"set": list(run.summary), "children": [tree(child) for child in run.children]}


def drawn(figure: dict[str, Any]) -> dict[str, Any]:
    return {"set": figure["set"], "children": [drawn(child) for child in figure["children"]]}


def boxed(figure: dict[str, Any]) -> list[tuple[Any, ...]]:
    box = [tuple(figure["set"])] if figure["updated"] else []
    return box + [inner for child in figure["children"] for inner in boxed(child)]


# The working example.


@pytest.mark.parametrize("n", range(1, 9))
def test_root_is_the_one_in_the_figure(n):
    """All eight roots follow from the samples, whatever the tree looks like."""
    scores, z = columns(SAMPLES[:n])
    root = Summary(*FIGURES[n]["set"])

    assert root == merged_sequentially(SAMPLES[:n]).optimum
    assert root == brute_force(scores, z)
    assert root == iterative(scores, z)
    assert root == recursive_merger(scores, z)


@pytest.mark.parametrize("n", range(1, 6))
def test_tree_is_the_one_in_the_figure(n):
    """Up to five samples every run, its summary and its children are as the paper draws them."""
    assert drawn(FIGURES[n]) == tree(merged_sequentially(SAMPLES[:n]).root)


@pytest.mark.parametrize("n", range(2, 6))
def test_updated_runs_are_the_boxes_in_the_figure(n):
    """The paper boxes what the last sample changed (but draws no box around the first sample)."""
    updated = merged_sequentially(SAMPLES[:n]).updated

    assert sorted(boxed(FIGURES[n]), key=str) == sorted((run.summary for run in updated), key=str)


def test_figure_of_six_samples_departs_from_the_rules():
    """The figure merges {4} with {5, 6}; rule 2, biased to the left, merges it with {1, 3}."""
    root = merged_sequentially(SAMPLES[:6]).root
    by_the_rules = [[[1, 3], [4]], [[5, 6], [8]]]
    in_the_figure = [[None, 4, 0, -4], [6, None, 8, 0]]  # {4} and {5, 6}, under one parent.
    parent = FIGURES[6]["children"][0]["children"][1]

    assert by_the_rules == [[scores_of(run) for run in child.children] for child in root.children]
    assert in_the_figure == [child["set"] for child in parent["children"]]
    assert drawn(FIGURES[6]) != tree(root)


@pytest.mark.parametrize(
    ("n", "levels"),
    [
        (6, ["1 3 4 5 6 8", "13 4 56 8", "134 568", "134568"]),
        (7, ["1 3 4 5 6 7 8", "13 4 56 78", "134 5678", "1345678"]),
        (8, ["1 2 3 4 5 6 7 8", "12 34 56 78", "1234 5678", "12345678"]),
    ],
)
def test_rules_give_these_levels_after_five_samples(n, levels):
    """By hand: 3 splits {1, 4} and 4 splits the level above; 7 joins 8; 2 splits {1, 3}."""
    actual = [
        " ".join("".join(map(str, scores_of(run))) for run in level)
        for level in merged_sequentially(SAMPLES[:n]).levels
    ]

    assert levels == actual


# The four algorithms agree.


@unhurried
@given(streams)
def test_four_algorithms_agree_after_every_sample(stream):
    """Trying every cut, running sums, merging in batch and merging in sequence are one answer."""
    merger = SequentialMerger()
    for n, (score, z) in enumerate(stream, start=1):
        merger.update(score, z)
        expected = brute_force(*columns(stream[:n]))

        assert expected == iterative(*columns(stream[:n]))
        assert expected == recursive_merger(*columns(stream[:n]))
        assert expected == merger.optimum


@unhurried
@given(streams, grids)
def test_outputs_change_the_loss_but_not_the_cut(stream, grid):
    """With Q0 < Q1 the loss is Q0 * total + (Q1 - Q0) * L1, so the order of cuts stays."""
    outputs = (grid[0], grid[-1])
    optimum = brute_force(*columns(stream))

    assert optimum == brute_force(*columns(stream), outputs=outputs)
    assert optimum == iterative(*columns(stream), outputs=outputs)
    assert min(cut.loss(outputs) for cut in every_cut(*columns(stream))) == optimum.loss(outputs)


@unhurried
@given(st.permutations([*SAMPLES, [4, 1], [7, -7]]))
def test_order_of_arrival_does_not_matter(stream):
    """The tree may differ; the optimum may not."""
    assert Summary(1, 2, 1, -11) == merged_sequentially(stream).optimum


@unhurried
@given(streams)
def test_every_run_holds_the_optimum_of_its_scores(stream):
    """Not only the root: each run's summary is the brute force over the run."""
    for level in merged_sequentially(stream).levels:
        for run in level:
            held = [(score, z) for score, z in stream if score in scores_of(run)]

            assert brute_force(*columns(held)) == run.summary


# Every cut.


@unhurried
@given(streams)
def test_there_is_one_more_cut_than_distinct_scores(stream):
    """The gaps between neighbours and both ends, ascending, each dividing the whole sum."""
    scores, z = columns(stream)
    distinct = sorted(set(scores))
    cuts = every_cut(scores, z)

    assert list(pairwise([None, *distinct, None])) == [(cut.X0, cut.X1) for cut in cuts]
    assert {sum(z)} == {cut.L0 + cut.L1 for cut in cuts}


def test_every_cut_of_the_working_example():
    """By hand, for four samples."""
    cuts = [(None, 1, 0, -2), (1, 4, 1, -3), (4, 5, -3, 1), (5, 8, 0, -2), (8, None, -2, 0)]

    assert [Summary(*cut) for cut in cuts] == every_cut(*columns(SAMPLES[:4]))


# Decided semantics.


ALGORITHMS = {
    "brute_force": brute_force,
    "iterative": iterative,
    "recursive_merger": recursive_merger,
    "SequentialMerger": lambda scores, z: (
        merged_sequentially(list(zip(scores, z, strict=True))).optimum
    ),
}
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)


@every_algorithm
@pytest.mark.parametrize(
    ("scores", "z", "expected"),
    [
        ([], [], (None, None, 0, 0)),
        ([5], [2], (5, None, 2, 0)),
        ([5], [-2], (None, 5, 0, -2)),
        ([5], [0], (5, None, 0, 0)),
        ([1, 2, 3], [-1, 1, 0], (3, None, 0, 0)),
        ([1, 2, 3, 4], [-1, 1, -2, 2], (4, None, 0, 0)),
        ([1, 2, 3], [1, -1, 1], (3, None, 1, 0)),
        ([1, 2, 3, 4], [1, -1, 1, -1], (3, 4, 1, -1)),
    ],
)
def test_highest_of_equally_cheap_cuts_wins(algorithm, scores, z, expected):
    """Say 1 only when it pays; nothing held is the empty state."""
    assert Summary(*expected) == algorithm(scores, z)


@every_algorithm
def test_equal_scores_are_never_separated(algorithm):
    """The three at 2 would rather part, one above and two below; together they sum to -1."""
    assert Summary(1, 2, 1, -1) == algorithm([2, 1, 2, 2.0], [-4, 1, 2, Fraction(1)])


@every_algorithm
@pytest.mark.parametrize("zeros", [[-0.0, 0.0], [0.0, -0.0], [-0.0, 0], [Fraction(0), -0.0]])
def test_minus_zero_and_zero_are_one_score(algorithm, zeros):
    """And the one published carries no minus sign."""
    optimum = algorithm(zeros, [2, -3])
    plus = math.copysign(1, 0.0)

    assert Summary(None, 0, 0, -1) == optimum
    assert plus == math.copysign(1, optimum.X1)


@every_algorithm
def test_infinite_scores_are_scores(algorithm):
    """The ends of the line may be seen, and the end cuts lie beyond them."""
    assert Summary(None, -math.inf, 0, -2) == algorithm([math.inf, -math.inf], [-1, -1])
    assert Summary(-math.inf, math.inf, 1, -1) == algorithm([math.inf, -math.inf], [-1, 1])
    assert Summary(math.inf, None, 2, 0) == algorithm([math.inf, -math.inf], [1, 1])


@every_algorithm
def test_narrow_integers_of_an_array_do_not_overflow(algorithm):
    """Sums of int8 are kept in Python's own integers."""
    np = pytest.importorskip("numpy")
    scores, z = np.array([1, 2, 3], dtype=np.float32), np.array([100, 100, -100], dtype=np.int8)

    assert Summary(2.0, 3.0, 200, -100) == algorithm(scores, z)


def test_equal_outputs_leave_the_highest_cut():
    """Every cut costs the same, so nothing is answered with Q1."""
    assert Summary(8, None, -2, 0) == brute_force(*columns(SAMPLES[:4]), outputs=(1, 1))
    assert Summary(8, None, -2, 0) == iterative(*columns(SAMPLES[:4]), outputs=(1, 1))


# Lemma "update".


@unhurried
@given(streams, few_scores)
def test_merging_two_summaries_summarises_both_runs(stream, split):
    """Wherever a run is divided, its optimum follows from the optima of the two parts."""
    left = [sample for sample in stream if sample[0] < split]
    right = [sample for sample in stream if sample[0] >= split]
    merged = merge(brute_force(*columns(left)), brute_force(*columns(right)))

    assert brute_force(*columns(stream)) == merged


@unhurried
@given(st.lists(st.integers(-1, 1), min_size=3, max_size=9), st.data())
def test_merging_is_associative(z, data):
    """Which neighbours are merged first changes the tree, never the summary."""
    i, j = sorted(data.draw(st.lists(st.integers(0, len(z)), min_size=2, max_size=2)))
    a, b, c = (brute_force(range(*ends), z[slice(*ends)]) for ends in [(0, i), (i, j), (j, len(z))])

    assert merge(merge(a, b), c) == merge(a, merge(b, c))


# Lemmas "depth" and "traverse", theorem "complexity".


def check(merger: SequentialMerger) -> None:
    """Assert what the paper promises of the recursion, and that all links agree with it."""
    levels = merger.levels
    for level in levels:
        lows = [run.lowest for run in level]
        assert all(low < high for low, high in pairwise(lows))
        assert [None, *level[:-1]] == [run.left for run in level]
        assert [*level[1:], None] == [run.right for run in level]
    for level, above in pairwise(levels):
        assert all(child.parent is run for run in above for child in run.children)
        assert all(run.merged or run.moved_up for run in above)
        assert not any(left.moved_up and right.moved_up for left, right in pairwise(above))
        assert len(above) <= Fraction(2 * len(level) + 1, 3)
    if levels:
        assert [merger.root] == levels[-1]
        assert merger.root.parent is None
        assert not any(run.children for run in levels[0])
    assert len(levels) <= most_levels(len(levels[0]) if levels else 0)
    assert len(merger.updated) <= 2 * len(levels)


def most_levels(n: int) -> int:
    """The depth lemma solved exactly: N_k - 1 shrinks by at least a third per level."""
    levels = min(n, 1)
    while n > 1:
        n = (2 * n + 1) // 3
        levels += 1
    return levels


def already_sorted(n):
    return list(range(n))


def reverse_sorted(n):
    return list(range(n, 0, -1))


def zigzag_inwards(n):
    return [i // 2 if i % 2 == 0 else n - i // 2 for i in range(n)]


def zigzag_outwards(n):
    return zigzag_inwards(n)[::-1]


def always_beside_the_lowest(n):
    return [0, *range(n, 1, -1)]


def always_beside_the_highest(n):
    return [n, *range(n - 1)]


def bit_reversed(n):
    return [int(f"{i:016b}"[::-1], 2) for i in range(n)]


def shuffled(n):
    return random.Random(1).sample(range(n), n)


STREAMS = [
    already_sorted,
    reverse_sorted,
    zigzag_inwards,
    zigzag_outwards,
    always_beside_the_lowest,
    always_beside_the_highest,
    bit_reversed,
    shuffled,
]
every_stream = pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.__name__)


@every_stream
def test_no_two_neighbours_move_up_as_themselves(stream):
    """The depth lemma holds at every level after every update."""
    scores = stream(150)
    merger = SequentialMerger()
    for i, score in enumerate(scores):
        merger.update(score, (-1) ** i * i)

        check(merger)
    assert sorted(scores) == [run.lowest for run in merger.levels[0]]


@unhurried
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(-2, 2)), max_size=60))
def test_depth_lemma_holds_wherever_the_next_score_falls(gaps):
    """Each number chooses the gap, or the end, in which the next score arrives."""
    held: list[Fraction] = []
    merger = SequentialMerger()
    for gap, z in gaps:
        at = gap % (len(held) + 1)
        ends = [Fraction(-1) + min(held, default=0), *held, Fraction(1) + max(held, default=0)]
        held.insert(at, (ends[at] + ends[at + 1]) / 2)
        merger.update(held[at], z)

        check(merger)
    assert held == [run.lowest for level in merger.levels[:1] for run in level]


@pytest.mark.parametrize("prefer", [min, max], ids=["lowest_pair", "highest_pair"])
def test_depth_lemma_holds_when_every_score_splits_a_pair(prefer):
    """The adversary always arrives between two merged runs, so rule 2 fires at the bottom."""
    merger = merged_sequentially([(Fraction(0), 1), (Fraction(1), -1)])
    arrivals = 150
    for i in range(arrivals):
        pairs = [run.children for run in merger.levels[1] if run.merged]
        left, right = prefer(pairs, key=lambda pair: pair[0].lowest)
        merger.update((left.lowest + right.lowest) / 2, i % 5 - 2)

        check(merger)
    assert 2 + arrivals == len(merger.levels[0])


@every_stream
def test_work_per_update_is_logarithmic(stream):
    """At most two runs per level, and at most 2 + log(N - 1) / log(3/2) levels."""
    merger = SequentialMerger()
    for n, score in enumerate(stream(3000), start=1):
        merger.update(score, score % 7 - 3)

        assert len(merger.updated) <= 4 + 2 * math.log(max(n - 1, 1), 1.5)
    check(merger)


def test_no_merge_goes_uncounted(monkeypatch):
    """The lemma is applied at most once for each run that counts as updated."""
    calls = []

    def counted(*pair):
        calls.append(pair)
        return merge(*pair)

    monkeypatch.setattr(paper, "merge", counted)
    merger = SequentialMerger()
    for score in shuffled(500):
        calls.clear()
        merger.update(score % 400, score % 7 - 3)

        assert len(calls) <= len(merger.updated)


@unhurried
@given(streams)
def test_runs_that_are_not_updated_stay_as_they_were(stream):
    """The update is incremental: all other runs keep identity, summary and children."""
    merger = SequentialMerger()
    for score, z in stream:
        before = {run: (run.summary, run.children) for level in merger.levels for run in level}
        merger.update(score, z)

        for run in (run for level in merger.levels for run in level):
            assert run in merger.updated or before[run] == (run.summary, run.children)


def test_score_already_held_updates_one_path():
    """An equal score makes no new run; its path to the root is recomputed."""
    merger = merged_sequentially(SAMPLES)
    before = merger.levels
    path = [[4], [3, 4], [1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7, 8]]
    merger.update(4, 9)

    assert before == merger.levels
    assert path == [scores_of(run) for run in merger.updated]


# Theorems "threshold": no monotone map beats the best cut.


def cheapest_monotone_map(scores, grid, loss):
    """Try all nondecreasing maps from the distinct scores to the grid."""
    distinct = sorted(set(scores))
    return min(
        loss([answers[distinct.index(score)] for score in scores])
        for answers in combinations_with_replacement(grid, len(distinct))
    )


quarters = [Fraction(i, 4) for i in range(5)]
labelled = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), max_size=7)
positive = st.fractions(min_value=Fraction(1, 4), max_value=4, max_denominator=4)


@unhurried
@given(labelled)
def test_no_monotone_map_has_a_smaller_error_than_the_best_cut(samples):
    """Problem 1, with z = 1 - 2y; answering 0 throughout costs as much as there are ones."""
    scores, labels = columns(samples)
    cut = brute_force(scores, [1 - 2 * y for y in labels])

    def error(answers):
        return sum(y * (1 - p) + (1 - y) * p for y, p in zip(labels, answers, strict=True))

    assert cheapest_monotone_map(scores, quarters, error) == sum(labels) + cut.loss()


@unhurried
@given(labelled, positive)
def test_no_monotone_map_has_a_smaller_class_weighted_error(samples, alpha):
    """Problem 2, with z = 1 - (alpha + 1) y."""
    scores, labels = columns(samples)
    cut = brute_force(scores, [1 - (alpha + 1) * y for y in labels])

    def error(answers):
        return sum(alpha * y * (1 - p) + (1 - y) * p for y, p in zip(labels, answers, strict=True))

    assert cheapest_monotone_map(scores, quarters, error) == alpha * sum(labels) + cut.loss()


@unhurried
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), positive), max_size=7), positive)
def test_no_monotone_map_has_a_smaller_sample_weighted_error(samples, alpha):
    """Problem 3, with z = beta - beta (alpha + 1) y."""
    scores = [score for score, _, _ in samples]
    cut = brute_force(scores, [beta - beta * (alpha + 1) * y for _, y, beta in samples])
    nothing_but_0 = sum(beta * alpha * y for _, y, beta in samples)

    def error(answers):
        return sum(
            beta * alpha * y * (1 - p) + beta * (1 - y) * p
            for (_, y, beta), p in zip(samples, answers, strict=True)
        )

    assert cheapest_monotone_map(scores, quarters, error) == nothing_but_0 + cut.loss()


@unhurried
@given(st.lists(st.tuples(st.integers(0, 4), few_losses), max_size=7), grids)
def test_no_monotone_map_has_a_smaller_linear_loss(samples, grid):
    """The general problem, with any z and outputs anywhere between Q0 and Q1."""
    scores, z = columns(samples)
    outputs = (grid[0], grid[-1])
    cut = brute_force(scores, z, outputs)

    def loss(answers):
        return sum(loss * answer for loss, answer in zip(z, answers, strict=True))

    assert cheapest_monotone_map(scores, grid, loss) == cut.loss(outputs)


# The drawing.


def test_drawing_of_four_samples():
    """Forks lead to merged runs; stars mark what the sample at 4 touched."""
    expected = """\
            (1,4)*
            (1,-3)
       ┌───────┴───────┐
    (1,4)*          (5,8)*
    (1,-4)          (3,-2)
   ┌───┴───┐       ┌───┴───┐
(1,--)  (--,4)* (5,--)  (--,8)
 (1,0)  (0,-4)   (3,0)  (0,-2)"""

    assert expected == merged_sequentially(SAMPLES[:4]).draw()


def test_drawing_of_three_samples_shows_the_run_that_moved_up():
    """A straight line leads to the one child."""
    expected = """\
          (5,8)*
          (4,-2)
       ┌─────┴─────┐
    (5,--)*     (--,8)*
     (4,0)      (0,-2)
   ┌───┴───┐       │
(1,--)  (5,--)* (--,8)
 (1,0)   (3,0)  (0,-2)"""

    assert expected == merged_sequentially(SAMPLES[:3]).draw()


@unhurried
@given(streams)
def test_drawing_holds_every_run_of_every_level(stream):
    """Three lines per level, the root first; one mark per run, none run together."""
    merger = merged_sequentially(stream)
    lines = merger.draw().splitlines()

    def text(*parts):
        return "({},{})".format(*("--" if part is None else part for part in parts))

    for level, cuts, sums in zip(merger.levels[::-1], lines[::3], lines[1::3], strict=True):
        assert [text(*run.summary[:2]) for run in level] == cuts.replace("*", "").split()
        assert [text(*run.summary[2:]) for run in level] == sums.split()
        assert sum(run in merger.updated for run in level) == cuts.count("*")
    for level, forks in zip(merger.levels[:0:-1], lines[2::3], strict=True):
        assert sum(run.merged for run in level) == forks.count("┴")
        assert sum(run.moved_up for run in level) == forks.count("│")


def test_drawing_of_nothing_is_empty():
    """Before the first sample there is no level, no run and no line."""
    merger = SequentialMerger()

    assert merger.draw() == ""
    assert merger.levels == merger.updated == []
    assert merger.root is None
    assert merger.optimum == EMPTY


# What is refused.


whole_arrays = pytest.mark.parametrize(
    "function", [brute_force, iterative, recursive_merger, every_cut]
)


@whole_arrays
def test_nan_score_is_refused_by_its_place(function):
    """An order needs comparable scores."""
    with pytest.raises(ValueError, match=r"scores\[2\] is nan.*ordered by score"):
        function([1, 2, math.nan], [1, 1, 1])


@whole_arrays
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_loss_that_is_not_finite_is_refused_by_its_place(function, bad):
    """A sum with an infinite term compares nothing."""
    with pytest.raises(ValueError, match=rf"z\[1\] is {bad}.*finite"):
        function([1, 2, 3], [1, bad, 1])


@whole_arrays
def test_lengths_that_differ_are_refused(function):
    """One z for each score."""
    with pytest.raises(ValueError, match=r"len\(scores\) is 3 but len\(z\) is 2"):
        function([1, 2, 3], [1, 1])


@pytest.mark.parametrize("function", [brute_force, iterative])
@pytest.mark.parametrize("outputs", [(1, 0), (math.nan, 1), (0, math.inf), (-math.inf, 0)])
def test_outputs_that_are_no_interval_are_refused(function, outputs):
    """Q0 lies below the cut and must not exceed Q1; both are finite."""
    q0, q1 = outputs
    with pytest.raises(ValueError, match=rf"outputs\[0\] is {q0} and outputs\[1\] is {q1}.*lower"):
        function([1], [1], outputs=outputs)


@pytest.mark.parametrize(
    ("sample", "message"),
    [((math.nan, 1), "score is nan"), ((1, math.nan), "z is nan"), ((1, math.inf), "z is inf")],
)
def test_refused_sample_changes_nothing(sample, message):
    """The merger is as it was before the bad sample."""
    merger = merged_sequentially(SAMPLES)
    drawing = merger.draw()
    with pytest.raises(ValueError, match=message):
        merger.update(*sample)

    assert drawing == merger.draw()


# The module itself.


def test_oracle_imports_the_standard_library_alone():
    """It can judge the rest of limen because it uses none of it."""
    nodes = list(ast.walk(ast.parse(Path(paper.__file__).read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}

    assert set() == {name.split(".")[0] for name in names} - sys.stdlib_module_names


def test_examples_in_the_docstrings_run():
    """Every example prints what it says."""
    failed, attempted = doctest.testmod(paper)

    assert not failed
    assert attempted
