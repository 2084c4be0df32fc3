# SPDX-License-Identifier: Apache-2.0
"""The exact threshold as a scikit-learn classifier: ``pip install "limen[sklearn]"``."""

try:
    import sklearn.frozen  # noqa: F401 - new in 1.6, like the tags that the classifiers declare
except ImportError as error:
    raise ImportError(
        "limen.sklearn needs scikit-learn 1.6 or later. "
        'Install it with: pip install "limen[sklearn]"'
    ) from error

from limen.sklearn.calibrated import CalibratedClassifier
from limen.sklearn.threshold import ThresholdClassifier

__all__ = ["CalibratedClassifier", "ThresholdClassifier"]


def __dir__() -> list[str]:
    return __all__
