# SPDX-License-Identifier: Apache-2.0
"""The errors that a caller may want to catch apart."""

__all__ = ["NotHeld"]


class NotHeld(KeyError):  # noqa: N818 - reads as what happened
    """A sample to be reverted is not held; nothing was changed."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put a sentence into quotes.
        return str(self.args[0]) if self.args else ""
