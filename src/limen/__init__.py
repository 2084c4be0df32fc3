# SPDX-License-Identifier: Apache-2.0
"""Exact decision thresholds for binary classifiers, kept exact one sample at a time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limen import columns, losses, metrics
    from limen.batch import loss_curve, optimal_cut, optimal_threshold, review_band
    from limen.bounded import BoundedCalibrator, BoundedCut, BoundedThreshold
    from limen.budget import Budget
    from limen.calibrator import OnlineCalibrator
    from limen.client import Client
    from limen.errors import Infeasible, NotHeld
    from limen.groups import Grouped, GroupOptima, GroupThreshold, GroupThresholds, by_group
    from limen.hull import Blocks, RocHull
    from limen.isotonic_fit import isotonic
    from limen.memory.fading import Fading
    from limen.memory.ledger import Ledger
    from limen.memory.trial import Trial
    from limen.memory.windows import LastN, LastPeriod
    from limen.metrics import BestCut, Confusion
    from limen.model import merge
    from limen.online import OnlineCut, OnlineThreshold
    from limen.optimum import LossCurve, Optimum
    from limen.reporting import Report, report
    from limen.review import ReviewBand
    from limen.storage import from_bytes, load
    from limen.trust import Alarm, Evidence, Recommendation, recommend

__all__ = [
    "Alarm",
    "BestCut",
    "Blocks",
    "BoundedCalibrator",
    "BoundedCut",
    "BoundedThreshold",
    "Budget",
    "Client",
    "Confusion",
    "Evidence",
    "Fading",
    "GroupOptima",
    "GroupThreshold",
    "GroupThresholds",
    "Grouped",
    "Infeasible",
    "LastN",
    "LastPeriod",
    "Ledger",
    "LossCurve",
    "NotHeld",
    "OnlineCalibrator",
    "OnlineCut",
    "OnlineThreshold",
    "Optimum",
    "Recommendation",
    "Report",
    "ReviewBand",
    "RocHull",
    "Trial",
    "by_group",
    "columns",
    "from_bytes",
    "isotonic",
    "load",
    "loss_curve",
    "losses",
    "merge",
    "metrics",
    "optimal_cut",
    "optimal_threshold",
    "recommend",
    "report",
    "review_band",
]

__version__ = "0.1.0"

_MODULES = (
    "batch",
    "bounded",
    "budget",
    "calibrator",
    "columns",
    "errors",
    "groups",
    "hull",
    "isotonic_fit",
    "losses",
    "memory",
    "metrics",
    "model",
    "online",
    "optimum",
    "review",
    "storage",
    "trust",
    "units",
)


# Which few programs need.
_LATE = {"Client": "limen.client", "Report": "limen.reporting", "report": "limen.reporting"}


def __getattr__(name: str) -> Any:
    """Load the library when its first name is asked for: ``limen --help`` needs none of it."""
    if name in (*_MODULES, "_core", "client"):
        return import_module(f"limen.{name}")
    if name in _LATE:
        globals()[name] = getattr(import_module(_LATE[name]), name)
        return globals()[name]
    if name not in __all__:
        raise AttributeError(f"module 'limen' has no attribute {name!r}")
    for module in [import_module(f"limen.{module}") for module in _MODULES]:
        globals().update(
            {each: getattr(module, each) for each in module.__all__ if each in __all__}
        )
    return globals()[name]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
