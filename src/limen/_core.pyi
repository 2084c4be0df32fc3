# The native core, bound in native/bindings/; compared with the built module by stubtest.

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

isa: str
finest_bits: int  # binary places of the finest automatic unit
most_units: int  # sums of absolute losses stay below this
leaf_slots: int
node_slots: int
hull_leaf_slots: int

class Threshold:
    def __init__(
        self,
        false_positive: int,
        false_negative: int,
        unit_numerator: int,
        unit_denominator: int,
        loss_numerator: int,
        loss_denominator: int,
        leaf_capacity: int,
        node_capacity: int,
        /,
    ) -> None: ...
    @property
    def _given(self) -> dict[str, Any]: ...
    @_given.setter
    def _given(self, given: dict[str, Any], /) -> None: ...
    @property
    def threshold(self) -> float: ...
    @property
    def loss(self) -> float: ...
    def update(self, score: float, label: float, weight: Any = 1) -> None: ...
    def revert(self, score: float, label: float, weight: Any = 1) -> None: ...
    def _many(
        self,
        scores: NDArray[np.float64],
        labels: NDArray[np.uint8],
        weights: NDArray[np.int64] | NDArray[np.float64] | None,
        adding: bool,
        /,
    ) -> None: ...
    def _optimum(self) -> tuple[float | None, float | None, float]: ...
    def _curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def _state(self) -> bytes: ...
    def _merge(self, others: list[Threshold], /) -> None: ...
    def _withdraw(self, score: float, label: bool, weight: float, /) -> bool: ...
    def _fade(self, bits: int, /) -> None: ...
    def _restore(self, state: bytes, /) -> None: ...
    def _check(self) -> None: ...
    def _memory(self) -> int: ...
    def _distinct(self) -> int: ...
    def __len__(self) -> int: ...

class Cut:
    def __init__(
        self,
        unit_numerator: int,
        unit_denominator: int,
        loss_numerator: int,
        loss_denominator: int,
        leaf_capacity: int,
        node_capacity: int,
        /,
    ) -> None: ...
    @property
    def _given(self) -> dict[str, Any]: ...
    @_given.setter
    def _given(self, given: dict[str, Any], /) -> None: ...
    @property
    def threshold(self) -> float: ...
    @property
    def loss(self) -> float: ...
    def update(self, score: float, below: Any, above: Any) -> None: ...
    def revert(self, score: float, below: Any, above: Any) -> None: ...
    def _many(
        self,
        scores: NDArray[np.float64],
        below: NDArray[np.int64] | NDArray[np.float64],
        above: NDArray[np.int64] | NDArray[np.float64],
        adding: bool,
        /,
    ) -> None: ...
    def _optimum(self) -> tuple[float | None, float | None, float]: ...
    def _curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def _state(self) -> bytes: ...
    def _merge(self, others: list[Cut], /) -> None: ...
    def _withdraw(self, score: float, below: float, above: float, /) -> bool: ...
    def _fade(self, bits: int, /) -> None: ...
    def _restore(self, state: bytes, /) -> None: ...
    def _check(self) -> None: ...
    def _memory(self) -> int: ...
    def _distinct(self) -> int: ...
    def __len__(self) -> int: ...

class Calibrator:
    def __init__(
        self,
        unit_numerator: int,
        unit_denominator: int,
        weight_numerator: int,
        weight_denominator: int,
        leaf_capacity: int,
        /,
    ) -> None: ...
    @property
    def _given(self) -> dict[str, Any]: ...
    @_given.setter
    def _given(self, given: dict[str, Any], /) -> None: ...
    def update(self, score: float, label: float, weight: Any = 1) -> None: ...
    def revert(self, score: float, label: float, weight: Any = 1) -> None: ...
    def _many(
        self,
        scores: NDArray[np.float64],
        labels: NDArray[np.uint8],
        weights: NDArray[np.int64] | NDArray[np.float64] | None,
        adding: bool,
        /,
    ) -> None: ...
    def _threshold(self, false_positive: int, false_negative: int, /) -> float: ...
    def _optimum(
        self,
        false_positive: int,
        false_negative: int,
        loss_numerator: int,
        loss_denominator: int,
        /,
    ) -> tuple[float | None, float | None, float]: ...
    def _curve(
        self,
        false_positive: int,
        false_negative: int,
        loss_numerator: int,
        loss_denominator: int,
        /,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def _probability(self, score: float, linear: bool, /) -> float: ...
    def _probabilities(
        self, scores: NDArray[np.float64], linear: bool, /
    ) -> NDArray[np.float64]: ...
    def _blocks(self) -> _Blocks: ...
    def _hull(self) -> _Cuts: ...
    def _cuts(self) -> _Cuts: ...
    def _confusion(self, threshold: float, /) -> tuple[float, float, float, float]: ...
    def _state(self) -> bytes: ...
    def _merge(self, others: list[Calibrator], /) -> None: ...
    def _withdraw(self, score: float, label: bool, weight: float, /) -> bool: ...
    def _fade(self, bits: int, /) -> None: ...
    def _restore(self, state: bytes, /) -> None: ...
    def _check(self) -> None: ...
    def _memory(self) -> int: ...
    def _distinct(self) -> int: ...
    def __len__(self) -> int: ...

# First and last scores, weights of label 1 and of both, counts, values; the unit of weights.
_Blocks: TypeAlias = tuple[
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.float64],
    tuple[int, int],
]
# Lower and upper scores, thresholds, weights of label 1 and 0 below; the unit of weights.
_Cuts: TypeAlias = tuple[
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.int64],
    NDArray[np.int64],
    tuple[int, int],
]

def isotonic_blocks(
    scores: NDArray[np.float64],
    labels: NDArray[np.uint8],
    weights: NDArray[np.int64] | NDArray[np.float64] | None,
    unit_numerator: int,
    unit_denominator: int,
    weight_numerator: int,
    weight_denominator: int,
    /,
) -> _Blocks: ...
def probabilities_in(
    first: NDArray[np.float64],
    last: NDArray[np.float64],
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
    linear: bool,
    /,
) -> NDArray[np.float64]: ...
def select_threshold(
    scores: NDArray[np.float64],
    labels: NDArray[np.uint8],
    weights: NDArray[np.int64] | NDArray[np.float64] | None,
    false_positive: int,
    false_negative: int,
    unit_numerator: int,
    unit_denominator: int,
    loss_numerator: int,
    loss_denominator: int,
    /,
) -> tuple[float | None, float | None, float]: ...
def select_arrays(
    scores: NDArray[Any],
    labels: NDArray[Any],
    false_positive: int,
    false_negative: int,
    unit_numerator: int,
    unit_denominator: int,
    loss_numerator: int,
    loss_denominator: int,
    /,
) -> tuple[float | None, float | None, float] | None: ...
def select_losses(
    scores: NDArray[np.float64],
    below: NDArray[np.int64] | NDArray[np.float64],
    above: NDArray[np.int64] | NDArray[np.float64],
    unit_numerator: int,
    unit_denominator: int,
    loss_numerator: int,
    loss_denominator: int,
    /,
) -> tuple[float | None, float | None, float]: ...
def threshold_of(lower: float | None, upper: float | None, /) -> float: ...
def labels_from(labels: NDArray[Any], /) -> tuple[NDArray[np.uint8], int]: ...
