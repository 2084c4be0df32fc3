# SPDX-License-Identifier: Apache-2.0
"""``limen serve``: scores in, answers out, labels later; the log of events is the truth.

    state = fold(events in order of seq)

`points` is the fold: what each event does to the state. `log` lets events happen: check, fold,
append, commit, publish. `http` speaks to the world. Each knows those before it alone. Nothing here
is imported unless asked for, and it needs ``pip install "limen[serve]"``.
"""

SCOPES = ("score", "label", "read", "audit", "forget", "propose", "approve", "follow", "admin")
