# SPDX-License-Identifier: Apache-2.0
"""Groups of few samples, kept as bytes instead of a model, which takes a hundred times as many.

Most samples weigh 1. Where all of a group do, its bytes are the number of samples of label 0, then
their scores, then those of label 1. Any others are marked so, and are the state of their model as
docs/format.md describes it. Nothing is lost in either form: a model that is made of the bytes
equals one that was given the samples.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from limen.columns import samples_with_labels, samples_with_losses
from limen.groups.models import Models, key_of
from limen.groups.paths import EVERYTHING, Path, by_depth
from limen.groups.steps import Call
from limen.model import Labelled, asked
from limen.storage.format import Outdated
from limen.storage.packing import id_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FewModels", "Packing"]

MOST = 32  # samples that bytes hold; a group that has more becomes a model
NOTHING = b"\x00"

_SPARE = 4  # models that are kept for others
_STATE = 255  # marks bytes that are the state of a model
_HEAD = [bytes([zeros]) for zeros in range(MOST + 1)]
_HEADER = struct.Struct("<4q")  # binary places, samples, sum of losses, distinct scores
_ROW = struct.Struct("<d3q")  # score, losses below and above, samples
_SCORE = struct.Struct("<d")

Held: TypeAlias = Any  # bytes, or a model of limen


class Packing:
    """The samples of a group as bytes, and the models that are made of them.

    Parameters
    ----------
    empty
        A model of limen that holds nothing: what the samples are measured by.
    """

    __slots__ = ("_empty", "_nothing", "_one", "_spare", "_turned", "_zero")

    def __init__(self, empty: Any) -> None:
        self._empty = empty
        self._nothing: bytes = empty._state()
        self._spare: list[Any] = []
        self._turned = empty.direction == "<="  # bytes hold scores as the core has them
        self._one, self._zero = self._of_weight_one()

    def _of_weight_one(self) -> tuple[int, int]:
        """Find the losses, in units, of a sample of label 1 below the cut, and of 0 above it.

        Zeros where samples of weight 1 are not kept by their scores alone.
        """
        if not isinstance(self._empty, Labelled):
            return 0, 0
        losses = []
        for label in (1, 0):
            model: Any = self._empty.empty()
            try:
                model.update(0.0, label)
            except (ValueError, OverflowError):  # it rounds to no unit, or to too many
                return 0, 0
            bits, _, total, _ = _HEADER.unpack_from(model._state())
            losses.append(0 if bits else total)
        return (losses[0], losses[1]) if all(losses) else (0, 0)

    @property
    def plain(self) -> bool:
        """Whether samples of weight 1 are kept by their scores alone."""
        return self._one > 0

    @staticmethod
    def count(held: bytes) -> int:
        """Return how many samples bytes hold."""
        return _HEADER.unpack_from(held, 1)[1] if held[0] == _STATE else len(held) // 8

    def state(self, held: Held) -> bytes:
        """Return the state of the model that holds these samples."""
        if type(held) is not bytes:
            return held._state()  # type: ignore[no-any-return]
        if held[0] == _STATE:
            return held[1:]
        zeros, samples = held[0], len(held) // 8
        scores = struct.unpack_from(f"<{samples}d", held, 1)
        rows: dict[float, list[int]] = {}
        for at, score in enumerate(scores):
            rows.setdefault(score, [0, 0])[at >= zeros] += 1
        one, zero = self._one, self._zero
        total = (samples - zeros) * one + zeros * zero
        return _HEADER.pack(0, samples, total, len(rows)) + b"".join(
            [
                _ROW.pack(score, ones * one, nones * zero, ones + nones)
                for score, (nones, ones) in sorted(rows.items())
            ]
        )

    def packed(self, state: bytes) -> bytes | None:
        """Return the bytes of a state; None when it holds too many samples for that."""
        bits, samples, _, distinct = _HEADER.unpack_from(state)
        if samples > MOST:
            return None
        one, zero = self._one, self._zero
        more_than_sums = len(state) > _HEADER.size + distinct * _ROW.size
        if bits or more_than_sums or not one:
            return bytes([_STATE]) + state if samples else NOTHING
        zeros: list[float] = []
        ones: list[float] = []
        for score, below, above, count in _ROW.iter_unpack(state[_HEADER.size :]):
            if below % one or above % zero or below // one + above // zero != count:
                return bytes([_STATE]) + state
            zeros += [score] * (above // zero)
            ones += [score] * (below // one)
        return _HEAD[len(zeros)] + struct.pack(f"<{samples}d", *zeros, *ones)

    def model(self, held: Held) -> Any:
        """Return a model of its own that holds the same samples. O(1)."""
        if type(held) is not bytes or held[0] == _STATE:
            return self._restored(self.state(held))
        model = self._restored(self._nothing)
        scores = struct.unpack_from(f"<{len(held) // 8}d", held, 1)
        if self._turned:
            scores = tuple(0.0 - score for score in scores)
        for score in scores[: held[0]]:
            model.update(score, 0)
        for score in scores[held[0] :]:
            model.update(score, 1)
        return model

    def read(self, state: bytes) -> Held:
        """Return what holds the samples of a state; raise ValueError when it describes none."""
        return self.kept(self._restored(state))

    def kept(self, model: Any) -> Held:
        """Return the bytes of a model, which may serve others then, or the model itself."""
        held = self.packed(model._state()) if len(model) <= MOST else None
        if held is None:
            return model
        self.spare(model)
        return held

    def spare(self, model: Any) -> None:
        """Take a model that nobody uses any more, for others: making one takes longer."""
        if len(self._spare) < _SPARE:
            self._spare.append(model)

    def _restored(self, state: bytes) -> Any:
        try:
            model = self._spare.pop()
        except IndexError:
            model = self._empty.empty()
            model._given = self._empty._given  # one dictionary for all
        model._restore(state)
        return model

    def changed(self, held: Held, method: str, *given: Any, **named: Any) -> Held:
        """Return what holds the samples after a method of the model was called. O(1).

        What was held stays as it is, also on an error, which is that of the model.
        """
        if self._one and len(given) == 2 and not named:
            changed = self._changed(held, method == "update", *given)
            if changed is not None:
                return changed
        model = self.model(held)
        getattr(model, method)(*given, **named)
        return self.kept(model)

    def packed_scores(self, scores: NDArray[np.float64]) -> bytes:
        """Return scores as bytes hold them."""
        turned = 0.0 - scores if self._turned else scores + 0.0
        return turned.astype("<f8").tobytes()

    def _changed(self, held: bytes, adding: bool, score: Any, label: Any) -> bytes | None:
        """Add or take back a sample of weight 1; None where that needs a model."""
        if held[0] == _STATE or not isinstance(score, float) or score != score:
            return None
        if not isinstance(label, int | np.integer | np.bool_) or label not in (0, 1):
            return None
        number = _SCORE.pack(0.0 - score if self._turned else score + 0.0)
        zeros = held[0]
        if adding:
            if len(held) // 8 >= MOST:
                return None
            return held + number if label else _HEAD[zeros + 1] + number + held[1:]
        begin, end = (8 * zeros + 1, len(held)) if label else (1, 8 * zeros + 1)
        for at in range(begin, end, 8):
            if held[at : at + 8] == number:
                return _HEAD[zeros - (not label)] + held[1:at] + held[at + 8 :]
        return None


class FewModels(Models):
    """One model of limen for each group, by key, and bytes instead of it where samples are few."""

    __slots__ = ("packing",)

    nothing = NOTHING

    def __init__(self, empty: Any) -> None:
        super().__init__(empty)
        self.packing = Packing(empty)

    def count(self, key: Hashable) -> int:
        """Return how many samples a group holds. O(1)."""
        held = self.held.get(key, NOTHING)
        return self.packing.count(held) if type(held) is bytes else len(held)

    def model(self, key: Hashable) -> Any:
        """Return the model of a group that holds something; it stays the one of that group."""
        held = self.held[key]
        if type(held) is bytes:
            held = self.held[key] = self.packing.model(held)
        return held

    def seen(self, key: Hashable) -> Any:
        """Return a model that holds what a group holds; bytes stay bytes."""
        held = self.held[key]
        return self.packing.model(held) if type(held) is bytes else held

    def ask(self, key: Hashable, question: str, costs: dict[str, Any]) -> Any:
        """Read `threshold` or `optimum` of a group that holds something; bytes stay bytes."""
        held = self.held[key]
        if type(held) is not bytes:
            return asked(held, question, costs)
        model = self.packing.model(held)
        found = asked(model, question, costs)
        self.packing.spare(model)
        return found

    def one(
        self, do: str, undo: str, path: Path, sample: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """Add or take back a sample in all groups that contain it, or on an error in none."""
        changes: list[Call] = []
        reversals: list[Call] = []
        after: dict[Hashable, Held] = {}
        touched: list[Hashable] = []
        depths = range(len(path) + 1)
        for depth in depths if do == "update" else reversed(depths):  # as for any models
            key = key_of(path[:depth])
            held = self.held.get(key, NOTHING)
            if type(held) is bytes:
                after[key] = self.packing.changed(held, do, *sample, **named)
            else:
                changes.append(partial(getattr(held, do), *sample, **named))
                reversals.append(partial(getattr(held, undo), *sample, **named))
            touched.append(key)
        emptied = touched if named or do == "revert" or len(sample) > 2 else []
        return self.commit(changes, reversals, after, emptied)

    def many(
        self,
        do: str,
        undo: str,
        groups: tuple[list[Path], NDArray[np.int64]],
        columns: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        """Add or take back many samples in all groups that contain them, or on an error in none."""
        read = _labelled if isinstance(self.empty, Labelled) else samples_with_losses
        adding, samples = do == "update_many", read(*columns, **named)
        large = [(self.held[EVERYTHING], samples)]
        after: dict[Hashable, Held] = {}
        touched: list[Path] = []
        try:
            for depth in by_depth(*groups):
                self._plan(depth, samples, adding, after, large)
                touched += depth[0]
        except (ValueError, OverflowError):
            if adding:
                self.empty.empty()._many(*samples, True)  # which names the row among all rows
            raise
        if not adding:
            self._rehearse(large)
        changes: list[Call] = [partial(model._many, *part, adding) for model, part in large]
        back: list[Call] = [partial(model._many, *part, not adding) for model, part in large]
        emptied = [] if adding and samples[2] is None else [key_of(path) for path in touched]
        return self.commit(changes, back, after, emptied)

    @staticmethod
    def _rehearse(large: list[tuple[Any, Any]]) -> None:
        """Raise what taking samples back will raise, before any model is changed. O(n).

        A model may accept what it never held, where its sums are large enough, and adding that
        again does not bring back all it knew. So no model may be asked before another that might
        refuse. The first one is that of all samples, and refuses nothing that others accept.
        """
        large.append(large.pop(0))
        if len(large) > 2:
            for model, part in large[:-1]:
                model.copy()._many(*part, False)

    def _plan(
        self,
        depth: tuple[list[Path], NDArray[np.int64], NDArray[np.int64]],
        samples: tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None],
        adding: bool,
        after: dict[Hashable, Held],
        large: list[tuple[Any, Any]],
    ) -> None:
        """Find what the groups of one depth hold after many samples: O(m), nothing is changed.

        What is bytes before goes to `after`; the models of others, with their rows, to `large`.
        """
        paths, rows, members = depth
        scores, labels, weights = samples
        plain = adding and weights is None and self.packing.plain
        order = rows[np.argsort(members * 2 + labels[rows] if plain else members, kind="stable")]
        ends = np.cumsum(np.bincount(members, minlength=len(paths))).tolist()
        zeros, data = ends, b""
        if plain:
            zeros = np.bincount(members[labels[rows] == 0], minlength=len(paths)).tolist()
            data = self.packing.packed_scores(scores[order])
        begin = 0
        for path, end, nones in zip(paths, ends, zeros, strict=True):
            key = key_of(path)
            before = self.held.get(key, NOTHING)
            joined = None
            if plain and type(before) is bytes and end - begin <= MOST:
                joined = _joined(before, data[8 * begin : 8 * end], nones)
            if joined is None:
                part = order[begin:end]
                taken: Any = (None if column is None else column[part] for column in samples)
                if type(before) is bytes:
                    joined = self.packing.changed(before, "_many", *taken, adding)
                else:
                    large.append((before, tuple(taken)))
            if joined is not None:
                after[key] = joined
            begin = end

    def merged(self, key: Hashable, parts: list[Any]) -> Any:
        """Return what holds all samples of a group, here and there."""
        if key == EVERYTHING:
            return super().merged(key, parts)
        mine = self.held.get(key, NOTHING)
        if mine == NOTHING and len(parts) == 1 and type(parts[0]) is bytes:
            return parts[0]
        packing = self.packing
        model = packing.model(mine)
        model.merge(*(packing.model(part) if type(part) is bytes else part for part in parts))
        return packing.kept(model)

    def described(self) -> dict[str, Any]:
        """Describe the groups but that of all samples, in an order that depends on them alone."""
        keys = self.occupied()[1:]
        groups, order = id_column(keys)
        states = [self.packing.state(self.held[keys[at]]) for at in order]
        sizes = np.fromiter(map(len, states), np.int64, len(states))
        return {"groups": groups, "sizes": sizes, "states": b"".join(states)}

    def restored(self, snapshot: dict[str, Any]) -> list[Any]:
        """Return what holds the samples of the groups that `described` described, in order."""
        if "models" in snapshot:
            raise Outdated("Grouped")
        sizes, states = snapshot["sizes"], snapshot["states"]
        ends = np.cumsum(sizes).tolist()
        if (sizes < 0).any() or (ends or [0])[-1] != len(states):
            raise ValueError("states that do not fill their place")
        places = pairwise([0, *ends])
        return [self.packing.read(states[begin:end]) for begin, end in places]


def _joined(held: bytes, scores: bytes, zeros: int) -> bytes | None:
    """Add samples of weight 1, those of label 0 first; None where that needs a model."""
    if held[0] == _STATE or (len(held) + len(scores)) // 8 > MOST:
        return None
    if held == NOTHING:
        return _HEAD[zeros] + scores
    middle, after = 8 * zeros, 8 * held[0] + 1
    head = _HEAD[held[0] + zeros]
    return b"".join([head, held[1:after], scores[:middle], held[after:], scores[middle:]])


def _labelled(scores: Any, labels: Any, weights: Any = None) -> tuple[Any, Any, Any]:
    return samples_with_labels(scores, labels, weights)
