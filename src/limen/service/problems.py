# SPDX-License-Identifier: Apache-2.0
"""Refusals: each has a name, a status, and a sentence that says what to do next."""

from __future__ import annotations

from typing import Any

__all__ = ["TITLES", "Refused"]

# name: status, title
TITLES = {
    "malformed": (400, "The request cannot be read"),
    "unauthorized": (401, "A valid token is needed"),
    "forbidden": (403, "The token does not allow this"),
    "four-eyes": (403, "Another person has to approve this"),
    "unknown-point": (404, "There is no such point"),
    "not-found": (404, "There is nothing at this path"),
    "method-not-allowed": (405, "The method is not allowed for this path"),
    "other-score": (409, "The id already has another score"),
    "other-label": (409, "The id already has another label as of the same time"),
    "moved-on": (409, "The state has changed since it was read"),
    "not-yet": (409, "The proposal does not meet all demands yet"),
    "one-at-a-time": (409, "A proposal is open already"),
    "history-deleted": (409, "Events that this needs were deleted"),
    "forgotten": (410, "The id was forgotten"),
    "expired": (410, "The event of this id was deleted"),
    "no-longer-kept": (410, "These events were deleted"),
    "precondition-failed": (412, "The point has changed since it was read"),
    "too-large": (413, "The body is too large"),
    "unsupported-media-type": (415, "The content type of the body is not supported"),
    "unknown-host": (421, "The host is not a name of this server"),
    "invalid": (422, "A value is not allowed"),
    "from-the-future": (422, "The time is in the future"),
    "too-old": (422, "The score is too old: it may be a repeat of one that was dropped"),
    "too-many": (429, "The token has used up its rate"),
    "damaged": (500, "The data on disk is damaged"),
    "failed": (500, "The server failed"),
    "busy": (503, "The server cannot take writes at the moment"),
    "not-ready": (503, "The server is not ready"),
}


class Refused(Exception):  # noqa: N818 - reads as what happened
    """A request that changed nothing, and why."""

    def __init__(self, name: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.name, self.detail, self.more = name, detail, more
        self.status, self.title = TITLES[name]

    def shown(self, request: str | None = None) -> dict[str, Any]:
        """Describe it as problem+json (RFC 9457)."""
        problem = {
            "type": f"/problems/{self.name}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }
        return problem if request is None else {**problem, "request": request}
