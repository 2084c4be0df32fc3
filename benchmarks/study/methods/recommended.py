# SPDX-License-Identifier: Apache-2.0
"""The threshold for new rows: `limen.recommend`."""

from __future__ import annotations

from benchmarks.trust_study import recommended as choose

__all__ = ["choose"]
