# SPDX-License-Identifier: Apache-2.0
"""What the reference needs beyond the source: docstrings of native methods, and drawn examples."""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

import limen

EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)


class NativeDocstrings(griffe.Extension):
    """Take docstrings from the native module, whose stubs do not repeat them."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Fill in native docstrings; let declarations that have none not hide them."""
        native = cls.path.startswith("limen._core.") and getattr(limen._core, cls.name, None)
        for name, member in list(cls.members.items()):
            if member.is_alias or member.docstring or name.startswith("_"):
                continue
            if native:
                text = inspect.getdoc(getattr(native, name, None)) or ""
                member.docstring = griffe.Docstring(text, parent=member)
            elif member.is_function or "property" in member.labels:
                del cls.members[name]

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence examples that stand without a heading: Markdown takes >>> for a quotation."""
        if obj.docstring and "\nExamples\n---" not in obj.docstring.value:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
