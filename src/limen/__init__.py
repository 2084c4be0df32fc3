# SPDX-License-Identifier: Apache-2.0
"""Exact decision thresholds for binary classifiers, on arrays and on streams.

Choose a threshold: `recommend`, `optimal_threshold`, `by_group`, `report`.
Keep one up to date: `OnlineThreshold`, `OnlineCalibrator`, and what they remember: `LastN`,
`LastPeriod`, `Fading`, `Ledger`, `Grouped`; `merge`, `load`.
Judge one in use: `Evidence`, `Alarm`. Serve it: `Client`, and the command ``limen serve``.
Modules: `losses`, `metrics`, `paper`; and `sklearn`, `river`, `spark`, `duckdb` and `plots`, which
need the library of that name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limen import columns as columns
    from limen import losses, metrics, paper
    from limen.batch import loss_curve as loss_curve
    from limen.batch import optimal_cut as optimal_cut
    from limen.batch import optimal_threshold
    from limen.batch import review_band as review_band
    from limen.bounded import BoundedCalibrator as BoundedCalibrator
    from limen.bounded import BoundedCut as BoundedCut
    from limen.bounded import BoundedThreshold as BoundedThreshold
    from limen.budget import Budget as Budget
    from limen.calibrator import OnlineCalibrator
    from limen.client import Client
    from limen.errors import Infeasible as Infeasible
    from limen.errors import NotHeld as NotHeld
    from limen.groups import Grouped, by_group
    from limen.groups import GroupOptima as GroupOptima
    from limen.groups import GroupThreshold as GroupThreshold
    from limen.groups import GroupThresholds as GroupThresholds
    from limen.hull import Blocks as Blocks
    from limen.hull import RocHull as RocHull
    from limen.isotonic_fit import isotonic as isotonic
    from limen.memory import Fading, LastN, LastPeriod, Ledger
    from limen.memory import Trial as Trial
    from limen.metrics import BestCut as BestCut
    from limen.metrics import Confusion as Confusion
    from limen.model import merge
    from limen.online import OnlineCut as OnlineCut
    from limen.online import OnlineThreshold
    from limen.optimum import LossCurve as LossCurve
    from limen.optimum import Optimum as Optimum
    from limen.reporting import Report as Report
    from limen.reporting import report
    from limen.review import ReviewBand as ReviewBand
    from limen.storage import from_bytes as from_bytes
    from limen.storage import load
    from limen.trust import Alarm, Evidence, recommend
    from limen.trust import Recommendation as Recommendation

__all__ = [  # noqa: RUF022 - in the order of the README
    # choose
    "recommend",
    "optimal_threshold",
    "by_group",
    "report",
    # keep
    "OnlineThreshold",
    "OnlineCalibrator",
    "LastN",
    "LastPeriod",
    "Fading",
    "Ledger",
    "Grouped",
    "merge",
    "load",
    # judge
    "Evidence",
    "Alarm",
    # serve
    "Client",
    # modules; those that need another library are in `_ADAPTERS`
    "losses",
    "metrics",
    "paper",
]

__version__ = "0.1.0"

# Not in `__all__`, so that `from limen import *` needs NumPy only; and not imported for type
# checkers, who would read scikit-learn and pyspark for it: ``import limen.sklearn`` has its types.
_ADAPTERS = ("sklearn", "river", "spark", "duckdb", "plots")

# Every name that can be imported from limen, by the module that defines it.
_NAMES = {
    "batch": ("loss_curve", "optimal_cut", "optimal_threshold", "review_band"),
    "bounded": ("BoundedCalibrator", "BoundedCut", "BoundedThreshold"),
    "budget": ("Budget",),
    "calibrator": ("OnlineCalibrator",),
    "client": ("Client",),
    "columns": (),
    "errors": ("Infeasible", "NotHeld"),
    "groups": ("GroupOptima", "GroupThreshold", "GroupThresholds", "Grouped", "by_group"),
    "hull": ("Blocks", "RocHull"),
    "isotonic_fit": ("isotonic",),
    "losses": (),
    "memory": ("Fading", "LastN", "LastPeriod", "Ledger", "Trial"),
    "metrics": ("BestCut", "Confusion"),
    "model": ("merge",),
    "online": ("OnlineCut", "OnlineThreshold"),
    "optimum": ("LossCurve", "Optimum"),
    "paper": (),
    "reporting": ("Report", "report"),
    "review": ("ReviewBand",),
    "storage": ("from_bytes", "load"),
    "trust": ("Alarm", "Evidence", "Recommendation", "recommend"),
    "units": (),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a module when the first of its names is used: ``limen --help`` needs none of them."""
    if name in _HOMES:
        globals()[name] = getattr(import_module(f"limen.{_HOMES[name]}"), name)
        return globals()[name]
    if name in _NAMES or name in _ADAPTERS or name == "_core":
        return import_module(f"limen.{name}")
    raise AttributeError(f"module 'limen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_ADAPTERS, "__version__"]
