# SPDX-License-Identifier: Apache-2.0
"""How sure: the threshold to use on new rows, its interval, and whether a change pays.

The recommended cut is found natively (native/samples/near_cuts.hpp), of arrays as of models.
"""

from limen.trust.alarm import Alarm
from limen.trust.cross_fit import CrossFitted
from limen.trust.evidence import Evidence
from limen.trust.recommended import Recommendation, recommend

__all__ = ["Alarm", "CrossFitted", "Evidence", "Recommendation", "recommend"]


def __dir__() -> list[str]:
    return __all__
