# SPDX-License-Identifier: Apache-2.0
"""The methods of the study, one file each.

A way to calibrate has `fit(scores, labels)`, which returns a map from scores to probabilities. A
way to choose a threshold has `choose(sample, rng)`, which returns it; `Sample` knows the costs.
"""

from __future__ import annotations

from benchmarks.study.methods import (
    abb,
    acp,
    bbq,
    beta,
    enir,
    exact,
    histogram,
    isotonic,
    platt,
    recommended,
    temperature,
    tuner,
    venn_abers,
)

MAPS = {
    "Platt": platt.fit,
    "temperature": temperature.fit,
    "beta": beta.fit,
    "histogram binning": histogram.fit,
    "ACP": acp.fit,
    "BBQ": bbq.fit,
    "ABB": abb.fit,
    "isotonic": isotonic.fit,
    "ENIR": enir.fit,
    "Venn-Abers": venn_abers.fit,
}
THRESHOLDS = {
    "limen, recommended": recommended.choose,
    "limen, exact": exact.choose,
    "scikit-learn's tuner, prefit": tuner.choose_prefit,
    "scikit-learn's tuner, five folds": tuner.choose_folds,
}
