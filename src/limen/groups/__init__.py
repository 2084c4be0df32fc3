# SPDX-License-Identifier: Apache-2.0
"""One threshold for each group, and that of the larger group where a group is too small."""

from limen.groups.grouped import Grouped
from limen.groups.optima import GroupOptima, GroupThreshold, GroupThresholds, by_group

__all__ = ["GroupOptima", "GroupThreshold", "GroupThresholds", "Grouped", "by_group"]


def __dir__() -> list[str]:
    return __all__
