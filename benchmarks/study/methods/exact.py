# SPDX-License-Identifier: Apache-2.0
"""The exact optimum of the samples held: `limen.optimal_threshold`."""

from __future__ import annotations

from benchmarks.trust_study import exact as choose

__all__ = ["choose"]
