# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's `TunedThresholdClassifierCV`, on all samples and by five folds."""

from __future__ import annotations

from benchmarks.trust_study import tuner_folds as choose_folds
from benchmarks.trust_study import tuner_prefit as choose_prefit

__all__ = ["choose_folds", "choose_prefit"]
