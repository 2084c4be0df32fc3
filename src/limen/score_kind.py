# SPDX-License-Identifier: Apache-2.0
"""What scores are: probabilities, numbers on a scale of their own, or ranks."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["BatchScoreKind", "ScoreKind", "kind_setting", "require_kind"]

ScoreKind: TypeAlias = Literal["probabilities", "raw", "ranks"]
BatchScoreKind: TypeAlias = Literal["auto", "probabilities", "raw", "ranks"]

_KINDS = (
    '"ranks", of which only the order counts, "probabilities" of label 1 (or of label 0 where '
    'lower scores mean positive), or "raw", numbers on a scale of their own'
)


def require_kind(kind: str, name: str, *, auto: bool = False) -> None:
    """Raise ValueError for what is no kind of scores; "auto" is one where all scores are seen.

    >>> require_kind("raw", "scores")
    >>> require_kind("auto", "scores")
    Traceback (most recent call last):
    ...
    ValueError: scores must be "ranks", of which only the order counts, "probabilities" of label 1 \
(or of label 0 where lower scores mean positive), or "raw", numbers on a scale of their own; got \
'auto'.
    """
    if kind in ("probabilities", "raw", "ranks") or (auto and kind == "auto"):
        return
    kinds = f'"auto", {_KINDS}' if auto else _KINDS
    raise ValueError(f"{name} must be {kinds}; got {kind!r}.")


def kind_setting(kind: str) -> dict[str, str]:
    """Return the kind of scores as one of the settings of a model: none where it is the usual one.

    >>> kind_setting("ranks"), kind_setting("probabilities")
    ({}, {'scores': 'probabilities'})
    """
    require_kind(kind, "scores")
    return {} if kind == "ranks" else {"scores": kind}
