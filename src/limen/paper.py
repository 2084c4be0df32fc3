# SPDX-License-Identifier: Apache-2.0
"""The paper's four algorithms as they are written there: short, slow, easy to check.

Kaan Gokcesu and Hakan Gokcesu, "Optimally Efficient Sequential Calibration of Binary Classifiers
to Minimize Classification Error".

Every other way to find a cut is tested against this module, so it imports nothing of limen. A
sample is a score and a z: it costs Q0 * z below the cut and Q1 * z above. Whole numbers and
fractions are added exactly, floats as they come. In all four algorithms equal scores are never
separated, -0.0 is 0.0, the cuts below and above all scores exist (the paper's dummy samples), and
of equally cheap cuts the highest wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

__all__ = [
    "Run",
    "SequentialMerger",
    "Summary",
    "brute_force",
    "every_cut",
    "iterative",
    "merge",
    "recursive_merger",
]

Number: TypeAlias = int | Fraction | float
Outputs: TypeAlias = tuple[Number, Number]


class Summary(NamedTuple):
    """What a run of neighbouring scores says about itself: the paper's auxiliary set B.

    Attributes
    ----------
    X0, X1
        The neighbouring scores below and above the cut; None (the paper's "--") if there is none.
    L0, L1
        The sums of z below and above the cut.
    """

    X0: Number | None
    X1: Number | None
    L0: Number
    L1: Number

    def loss(self, outputs: Outputs = (0, 1)) -> Number:
        """Return what the cut costs, Q0 * L0 + Q1 * L1, in O(1).

        Examples
        --------
        >>> Summary(4, 5, 3, -2).loss(outputs=(-1, 1))
        -5
        """
        q0, q1 = outputs
        return q0 * self.L0 + q1 * self.L1


EMPTY = Summary(None, None, 0, 0)


def every_cut(scores: Iterable[Number], z: Iterable[Number]) -> list[Summary]:
    """Describe every cut in ascending order, each summed from scratch, in O(N^2).

    There is one more cut than there are distinct scores.

    Examples
    --------
    >>> for cut in every_cut([2, 1], [-3, 1]):
    ...     print(cut, cut.loss())
    Summary(X0=None, X1=1, L0=0, L1=-2) -2
    Summary(X0=1, X1=2, L0=1, L1=-3) -3
    Summary(X0=2, X1=None, L0=-2, L1=0) 0
    """
    samples = _samples(scores, z)
    distinct = sorted({score for score, _ in samples})
    return [
        Summary(
            lower,
            upper,
            sum(z for score, z in samples if lower is not None and score <= lower),
            sum(z for score, z in samples if upper is not None and score >= upper),
        )
        for lower, upper in pairwise([None, *distinct, None])
    ]


def brute_force(
    scores: Iterable[Number], z: Iterable[Number], outputs: Outputs = (0, 1)
) -> Summary:
    """Find the cheapest cut by trying every one, in O(N^2).

    Examples
    --------
    >>> brute_force([1, 8, 5, 4], [1, -2, 3, -4])
    Summary(X0=1, X1=4, L0=1, L1=-3)
    """
    return _cheapest(every_cut(scores, z), outputs)


def iterative(scores: Iterable[Number], z: Iterable[Number], outputs: Outputs = (0, 1)) -> Summary:
    """Find the cheapest cut from running sums, in O(N log N), or O(N) when already sorted.

    Examples
    --------
    >>> iterative([1, 8, 5, 4], [1, -2, 3, -4])
    Summary(X0=1, X1=4, L0=1, L1=-3)
    """
    distinct = _distinct(scores, z)
    ends = [None, *(score for score, _ in distinct), None]
    below = accumulate((z for _, z in distinct), initial=0)
    above = reversed(list(accumulate((z for _, z in reversed(distinct)), initial=0)))
    return _cheapest(list(map(Summary, ends, ends[1:], below, above)), outputs)


def merge(left: Summary, right: Summary) -> Summary:
    """Summarise two neighbouring runs from their summaries alone, in O(1).

    This is the paper's Lemma "update": the cheapest cut of both is the cheapest cut of one.

    Notes
    -----
    The lemma leaves ``left.L1 + right.L0 == 0`` open; here the right cut wins, being the higher.
    If it lies below the whole right run, then the left one lies above the whole left run: they
    are the same gap, and its lower end is known to the left.

    Examples
    --------
    >>> merge(Summary(5, None, 3, 0), Summary(None, 8, 0, -2))
    Summary(X0=5, X1=8, L0=3, L1=-2)
    """
    if left.L1 + right.L0 < 0:
        return Summary(left.X0, left.X1, left.L0, left.L1 + right.L0 + right.L1)
    lower = left.X0 if right.X0 is None else right.X0
    return Summary(lower, right.X1, left.L0 + left.L1 + right.L0, right.L1)


def recursive_merger(scores: Iterable[Number], z: Iterable[Number]) -> Summary:
    """Find the cheapest cut by merging neighbours level by level, in O(N) after sorting.

    Examples
    --------
    >>> recursive_merger([1, 8, 5, 4], [1, -2, 3, -4])
    Summary(X0=1, X1=4, L0=1, L1=-3)
    """
    level = [_single(score, z) for score, z in _distinct(scores, z)]
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0] if level else EMPTY


@dataclass(eq=False)
class Run:
    """Neighbouring scores in a `SequentialMerger`: the paper's set A at one level.

    `children` is empty at the bottom level; it is one run if this one moved up as itself, and two
    if it was merged from them.
    """

    lowest: Number
    summary: Summary
    children: tuple[Run, ...] = ()
    parent: Run | None = field(default=None, repr=False)
    left: Run | None = field(default=None, repr=False)
    right: Run | None = field(default=None, repr=False)

    @property
    def moved_up(self) -> bool:
        """Whether the run came from the level below as itself."""
        return len(self.children) == 1

    @property
    def merged(self) -> bool:
        """Whether the run was merged from two of the level below."""
        return len(self.children) == 2


class SequentialMerger:
    """Keep the cheapest cut, one sample at a time in any order, in O(log N) per sample.

    These are the five rules of the paper's section "Sequential Update":

    1. A new sample updates only the runs it concerns.
    2. A new run between two that are merged is merged with the left one; the right one moves up.
    3. Any other new run moves up as itself.
    4. Two neighbours that would both move up as themselves are merged.
    5. Whatever changed at one level is recomputed at the next.

    Attributes
    ----------
    root
        The one run of the top level; None before the first sample.
    updated
        The runs that the last update created or recomputed, from the bottom up: its work.

    Notes
    -----
    At most one run per level is new. Either it joins a neighbour that moved up as itself, which
    ends the growth, or a new run appears at the next level and the rules apply there. So no two
    neighbours ever move up as themselves, and an update touches at most two runs per level.

    In the paper's working example these rules give the figures n = 1 to 5 exactly, and all eight
    roots. The figure n = 6 merges {4} with {5, 6} on its right, where rule 2 merges it with
    {1, 3} on its left; the figures n = 7 and 8 grow from that one.

    Examples
    --------
    >>> merger = SequentialMerger()
    >>> for score, z in [(1, 1), (8, -2), (5, 3), (4, -4)]:
    ...     merger.update(score, z)
    >>> merger.optimum
    Summary(X0=1, X1=4, L0=1, L1=-3)
    >>> print(merger.draw())
                (1,4)*
                (1,-3)
           ┌───────┴───────┐
        (1,4)*          (5,8)*
        (1,-4)          (3,-2)
       ┌───┴───┐       ┌───┴───┐
    (1,--)  (--,4)* (5,--)  (--,8)
     (1,0)  (0,-4)   (3,0)  (0,-2)
    """

    def __init__(self) -> None:
        self.root: Run | None = None
        self.updated: list[Run] = []

    @property
    def optimum(self) -> Summary:
        """The summary of all samples, in O(1)."""
        return EMPTY if self.root is None else self.root.summary

    @property
    def levels(self) -> list[list[Run]]:
        """All runs in ascending order, the bottom level first, in O(N)."""
        levels = [] if self.root is None else [[self.root]]
        while levels and levels[-1][0].children:
            levels.append([child for run in levels[-1] for child in run.children])
        return levels[::-1]

    def update(self, score: Number, z: Number) -> None:
        """Add one sample, in O(log N); a score already held adds its z to what is there."""
        score, z = _sample(score, z)
        run = Run(score, _single(score, z))
        if self.root is None:
            self.root = run
            self.updated = [run]
            return
        near = self.root
        while near.children:
            near = near.children[-1 if near.children[-1].lowest <= score else 0]
        self.updated = []
        if near.lowest == score:
            near.summary = _single(score, near.summary.L0 + near.summary.L1 + z)
            self._rise(near, new=None)
        else:
            _link(*((near, run, near.right) if near.lowest < score else (None, run, near)))
            self._rise(run, new=run)

    def _rise(self, run: Run, new: Run | None) -> None:
        """Recompute upwards from the changed run; `new` is the run that has no parent yet."""
        changed = [run]
        while changed:
            self.updated += changed
            if new is not None:
                moved = self._find_parent(new)
                new = _moving_up(moved)
                changed.append(moved)
            changed = list(dict.fromkeys(run.parent for run in changed if run.parent is not None))
            for parent in changed:  # Rule 5.
                parent.lowest = parent.children[0].lowest
                parent.summary = reduce(merge, [child.summary for child in parent.children])

    def _find_parent(self, run: Run) -> Run:
        """Give a new run its parent; return the run that moved up or joined a neighbour."""
        left, right = run.left, run.right
        if self.root is not None and self.root in (left, right):
            # The top level has two runs now. Let the old one move up, so that rule 4 merges them.
            self.root.parent = Run(self.root.lowest, self.root.summary, (self.root,))
            self.root = self.root.parent
        if left and right and left.parent and left.parent is right.parent:  # Rule 2.
            run.parent = left.parent
            run.parent.children = (left, run)
            run = right
        if parent := _moving_up(run.left):  # Rule 4.
            parent.children = (*parent.children, run)
        elif parent := _moving_up(run.right):  # Rule 4.
            parent.children = (run, *parent.children)
        else:  # Rule 3, or the right run of rule 2.
            parent = Run(run.lowest, run.summary, (run,))
            _link(run.left and run.left.parent, parent, run.right and run.right.parent)
        run.parent = parent
        return run

    def draw(self) -> str:
        """Draw the tree as text, scores ascending, the root on top, in O(N^2).

        Each run shows (X0,X1) above (L0,L1); a star marks what the last update touched. A line
        leads down to the run that moved up, a fork to the two that were merged.
        """
        levels = self.levels
        labels = {run: _label(run, run in self.updated) for level in levels for run in level}
        width = 1 + max((len(line) for label in labels.values() for line in label), default=0)
        middle: dict[Run, int] = {}
        lines: list[str] = []
        for level in levels:
            cuts = sums = forks = ""
            for i, run in enumerate(level):
                bottom = i * width + (width - 1) // 2
                middles = [middle[child] for child in run.children] or [bottom]
                start, end = middles[0], middles[-1]
                middle[run] = (start + end) // 2
                cut, sum_ = labels[run]
                cuts = cuts.ljust(middle[run] - len(cut) // 2) + cut
                sums = sums.ljust(middle[run] - len(sum_) // 2) + sum_
                forks = forks.ljust(start) + (f"┌{'┴':─^{end - start - 1}}┐" if run.merged else "│")
            lines = [cuts, sums, forks, *lines]
        return "\n".join(line.rstrip() for line in lines[:-1])


def _sample(score: Number, z: Number, name: str = "score", at: str = "") -> tuple[Number, Number]:
    """Return the sample as plain numbers, -0.0 as 0.0, or refuse it."""
    # The integers of an array have a fixed width and would overflow silently.
    score = score.item() if hasattr(score, "item") else score
    z = z.item() if hasattr(z, "item") else z
    if not score <= math.inf:
        raise ValueError(f"{name}{at} is nan. Samples are ordered by score; drop or fill it.")
    if z - z != 0:
        raise ValueError(f"z{at} is {z}. Losses are added up; give a finite number.")
    return score + 0, z


def _samples(scores: Iterable[Number], z: Iterable[Number]) -> list[tuple[Number, Number]]:
    """Return the samples in order of arrival, or refuse them."""
    scores, z = list(scores), list(z)
    if len(scores) != len(z):
        raise ValueError(
            f"len(scores) is {len(scores)} but len(z) is {len(z)}; give one z for each score."
        )
    return [_sample(scores[i], z[i], "scores", f"[{i}]") for i in range(len(scores))]


def _distinct(scores: Iterable[Number], z: Iterable[Number]) -> list[tuple[Number, Number]]:
    """Return each distinct score with the sum of its z, ascending."""
    sums: dict[Number, Number] = {}
    for score, loss in _samples(scores, z):
        sums[score] = sums.get(score, 0) + loss
    return sorted(sums.items())


def _cheapest(cuts: list[Summary], outputs: Outputs) -> Summary:
    """Return the highest of the cheapest cuts."""
    q0, q1 = outputs
    if not q0 <= q1 or q0 - q0 != 0 or q1 - q1 != 0:
        raise ValueError(
            f"outputs[0] is {q0} and outputs[1] is {q1}, the answers below and above the cut; "
            "give two finite numbers, the lower one first."
        )
    return min(reversed(cuts), key=lambda cut: cut.loss(outputs))


def _single(score: Number, z: Number) -> Summary:
    """Summarise a run of one score."""
    return Summary(None, score, 0, z) if z < 0 else Summary(score, None, z, 0)


def _link(left: Run | None, run: Run, right: Run | None) -> None:
    """Put a run between its neighbours."""
    run.left, run.right = left, right
    if left is not None:
        left.right = run
    if right is not None:
        right.left = run


def _moving_up(run: Run | None) -> Run | None:
    """Return the parent of a run that moves up as itself, or None if the run does not."""
    return run.parent if run and run.parent and run.parent.moved_up else None


def _label(run: Run, starred: bool) -> tuple[str, str]:
    """Return the cut and the sums of a run as the paper prints them."""
    lower, upper, below, above = ("--" if part is None else str(part) for part in run.summary)
    return f"({lower},{upper}){'*' if starred else ''}", f"({below},{above})"


def __dir__() -> list[str]:
    return __all__
