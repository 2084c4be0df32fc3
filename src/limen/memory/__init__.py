# SPDX-License-Identifier: Apache-2.0
"""What is held for how long: windows, samples that fade, and the ledger of late labels.

The work is done in native/memory/, where a call either happens or does not.
"""

from limen.memory.fading import Fading
from limen.memory.ledger import Ledger
from limen.memory.trial import Trial
from limen.memory.windows import LastN, LastPeriod

__all__ = ["Fading", "LastN", "LastPeriod", "Ledger", "Trial"]
