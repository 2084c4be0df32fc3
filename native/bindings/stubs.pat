# What nanobind cannot know of src/limen/_core.pyi, which `make stubs` makes: methods and properties
# that are bound by hand, through the slots of their type. Everything else stands in the bindings.

_core\.__prefix__$:
    # The native core, bound in native/bindings/. Made by `make stubs`: change that, not this.
    \from typing import Any, Literal

\.(?:Threshold|Calibrator|BoundedThreshold|BoundedCalibrator)\.(update|revert)$:
    def \1(self, score: float, label: float, weight: Any = 1) -> None: ...

\.(?:Cut|BoundedCut)\.(update|revert)$:
    def \1(self, score: float, below: Any, above: Any) -> None: ...

\.(threshold|loss|loss_bound)$:
    @property
    def \1(self) -> float: ...

\.__len__$:
    def __len__(self) -> int: ...

\.LastN\.update$:
    def update(self, *sample: Any, **named: Any) -> None: ...

\.LastPeriod\.update$:
    def update(self, *sample: Any, time: Any, **named: Any) -> bool: ...

\.Fading\.update$:
    def update(self, *sample: Any, time: Any = None, **named: Any) -> bool: ...

\.advance$:
    def advance(self, time: Any) -> None: ...

\.direction$:
    @property
    def direction(self) -> Literal[">=", "<="]: ...

\.Ledger\.score$:
    def score(
        self,
        id: Any,
        score: float,
        time: Any = None,
        weight: Any = 1,
        *,
        answer: Any = None,
        group: Any = None,
    ) -> int: ...

\.Ledger\.label$:
    def label(self, id: Any, *outcome: Any, as_of: Any = None, **named: Any) -> bool: ...

\.Ledger\.forget$:
    def forget(self, id: Any) -> bool: ...

\.Ledger\._known$:
    def _known(self, id: Any, /) -> tuple[float | None, int | None, int | None, Any, Any] | None: ...

\.Ledger\._group_of$:
    def _group_of(self, id: Any, /) -> int | None: ...

\.Ledger\.__contains__$:
    def __contains__(self, id: Any, /) -> bool: ...
