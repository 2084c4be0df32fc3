# SPDX-License-Identifier: Apache-2.0
"""Pictures in the manner of scikit-learn's displays: ``pip install "limen[plots]"``.

Each display holds its numbers, draws them with `plot`, and has `ax_` and `figure_` for further
work. `from_predictions` takes labels first and scores second, as scikit-learn does.
Colours differ for colour-blind readers too, and nothing depends on colour alone.
"""

try:
    import matplotlib  # noqa: F401 - an error here, not at the first picture
except ImportError as error:
    raise ImportError(
        'limen.plots needs matplotlib. Install it with: pip install "limen[plots]"'
    ) from error

from limen.plots.blocks import CalibrationBlocksDisplay
from limen.plots.history import ThresholdHistoryDisplay
from limen.plots.loss_curve import LossCurveDisplay
from limen.plots.roc_hull import RocHullDisplay
from limen.plots.thresholds import ThresholdDisplay

__all__ = [
    "CalibrationBlocksDisplay",
    "LossCurveDisplay",
    "RocHullDisplay",
    "ThresholdDisplay",
    "ThresholdHistoryDisplay",
]


def __dir__() -> list[str]:
    return __all__
