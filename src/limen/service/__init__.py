# SPDX-License-Identifier: Apache-2.0
"""``limen serve``: scores in, answers out, labels later; the log of events is the truth.

    state = fold(events in order of seq)

Events are appended to `log`, `state` is their fold, `writer` takes turns of check, fold, append,
commit, publish and answer; `http` speaks to the world. Nothing here is imported unless asked for,
and it needs ``pip install "limen[serve]"``.
"""

SCOPES = ("score", "label", "read", "audit", "forget", "propose", "approve", "follow", "admin")
