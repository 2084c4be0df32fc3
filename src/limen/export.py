# SPDX-License-Identifier: Apache-2.0
"""The rule by which a model answers, for others to run: as SQL, JSON or Python without limen.

A rule is one threshold, or one for each group and one for all others. It is what a model answers at
this moment; samples that come later do not change it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limen.groups.grouped import Grouped
from limen.groups.paths import EVERYTHING, Answers, Path
from limen.memory.ledger import Ledger
from limen.optimum import Direction
from limen.units import exact_costs

if TYPE_CHECKING:
    from limen.aim import Aim

__all__ = ["Rule"]  # what users need; the rest is for limen itself

_LARGEST = "1.7976931348623157e308"
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_RESERVED = {
    *("all", "and", "any", "array", "as", "asc", "at", "between", "both", "by", "case", "cast"),
    *("check", "column", "create", "current", "date", "default", "desc", "describe", "distinct"),
    *("do", "else", "end", "except", "false", "fetch", "for", "from", "group", "having", "in"),
    *("index", "interval", "into", "is", "join", "key", "lateral", "leading", "left", "like"),
    *("limit", "not", "null", "offset", "on", "only", "option", "or", "order", "over", "primary"),
    *("range", "rank", "references", "right", "row", "rows", "select", "set", "show", "some"),
    *("table", "then", "time", "timestamp", "to", "trailing", "true", "union", "unique", "user"),
    *("using", "value", "values", "when", "where", "window", "with"),
}


class OtherAim(ValueError):  # noqa: N818 - reads as what happened
    """A model cannot answer what was asked: it has costs of its own, or needs some."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which scores are answered 1: those from a threshold on, or up to it, by group or for all.

    Attributes
    ----------
    threshold
        That of all rows; of those in no group that has one of its own, where there are groups.
    direction
        ``">="``: 1 is the answer when ``score >= threshold``; ``"<="``: when ``score <=
        threshold``.
    groups
        The thresholds of groups, by path from the larger group to the smaller one; None where a
        model knows no groups.

    Examples
    --------
    >>> import limen
    >>> shops = limen.Grouped(limen.OnlineThreshold())
    >>> shops.update_many(["a", "a", "b", "b"], [0.25, 0.5, 0.75, 1.0], [0, 1, 0, 1])
    >>> rule = Rule.of(shops)
    >>> print(rule.as_sql(groups=["shop"]))
    CASE WHEN (score < 0 OR 0e0 - score <= 0) AND shop IS NOT NULL THEN CASE
      WHEN shop = 'a' THEN CASE WHEN score >= 3.75e-1 THEN 1 ELSE 0 END
      WHEN shop = 'b' THEN CASE WHEN score >= 8.75e-1 THEN 1 ELSE 0 END
      ELSE CASE WHEN score >= 8.75e-1 THEN 1 ELSE 0 END
    END END
    >>> answers = {}
    >>> exec(rule.as_python(), answers)
    >>> answers["predict"]("a", 0.4), answers["predict"]("c", 0.4)
    (1, 0)
    """

    threshold: float
    direction: Direction = ">="
    groups: dict[Path, float] | None = None

    @classmethod
    def of(cls, model: Any, aim: Aim | None = None) -> Rule:
        """Take the rule out of what answers: a model, a window, a ledger, groups, an optimum.

        A model that holds samples for any aim needs one. Raises TypeError for what has no
        threshold. O(groups).
        """
        grouped = groups_of(model)
        if grouped is None and isinstance(model, Answers):
            own = {path: model.threshold(path) for path in sorted(model, key=_written)}
            return cls(own.pop(EVERYTHING), model.direction, own)
        if grouped is None:
            return cls(best_of(model, aim).threshold, model.direction)
        every = best_of(grouped.model(EVERYTHING), aim).threshold
        own = {
            path: best_of(grouped.model(path), aim).threshold
            for path in sorted(grouped, key=_written)
            if path != EVERYTHING and grouped.source(path) == path
        }
        return cls(every, grouped.direction, own)

    @property
    def depth(self) -> int:
        """How many levels of groups there are; 0 where there are none."""
        return max(map(len, self.groups or ()), default=0)

    def answer(self, score: float, group: Path = EVERYTHING) -> int:
        """Answer 1 or 0 to a score that is not nan. O(depth).

        >>> Rule(0.5, "<=").answer(0.5)
        1
        """
        threshold = self.threshold
        while group:
            if self.groups and group in self.groups:
                threshold = self.groups[group]
                break
            group = group[:-1]
        return int(score >= threshold if self.direction == ">=" else score <= threshold)

    def by_text(self) -> Rule:
        """Return the rule for groups as they stand in files, where a number is text too."""
        if self.groups is None:
            return self
        found: dict[Path, float] = {}
        for path, threshold in self.groups.items():
            written = _written(path)
            if written in found:
                raise ValueError(
                    f"two groups are written alike, {written!r}; a file does not distinguish them."
                )
            found[written] = threshold
        return Rule(self.threshold, self.direction, found)

    def as_json(self) -> str:
        """Write the rule as JSON, what is not finite as text.

        >>> print(Rule(0.375).as_json())
        {
          "direction": ">=",
          "threshold": 0.375
        }
        """
        facts: dict[str, Any] = {"direction": self.direction, "threshold": _json(self.threshold)}
        if self.groups is not None:
            for path in self.groups:
                _require_written(path, "JSON", (str, int, float, bool))
            facts["groups"] = [
                {"group": list(path), "threshold": _json(each)}
                for path, each in self.groups.items()
            ]
        return json.dumps(facts, indent=2, ensure_ascii=False)

    def as_sql(self, score: str = "score", groups: Sequence[str] = ()) -> str:
        """Write the rule as a SQL expression of 0 and 1, over a column of scores.

        It is NULL where the score is NULL or nan, or a group is NULL. `groups` are the columns of
        the groups, from the larger to the smaller one.

        >>> print(Rule(float("inf")).as_sql("p"))
        CASE WHEN p < 0 OR 0e0 - p <= 0 THEN CASE WHEN p > 1.7976931348623157e308 THEN 1 ELSE 0 \
END END
        """
        column = _name(score)
        # False for nan both where it equals nothing and where it is the largest number.
        ordered = f"{column} < 0 OR 0e0 - {column} <= 0"
        if self.groups is None:
            if groups:
                raise ValueError("the rule has no groups, so that there is no column of them.")
            return f"CASE WHEN {ordered} THEN {self._case(column, self.threshold)} END"
        names = list(groups) or (["group"] if self.depth <= 1 else [])
        if len(names) < max(self.depth, 1):
            raise ValueError(
                f"the groups have {self.depth} levels. Name the column of each, from the larger "
                f"group to the smaller one; got {len(names)}."
            )
        columns = [_name(name) for name in names]
        present = " AND ".join(f"{each} IS NOT NULL" for each in columns)
        rest = self._case(column, self.threshold)
        if not self.groups:
            return f"CASE WHEN ({ordered}) AND {present} THEN {rest} END"
        lines = [f"CASE WHEN ({ordered}) AND {present} THEN CASE"]
        for path in sorted(self.groups, key=len, reverse=True):  # the smaller group first
            _require_written(path, "SQL", (str, int, float, bool))
            pairs = zip(columns, path, strict=False)
            inside = " AND ".join(f"{each} = {_literal(part)}" for each, part in pairs)
            lines.append(f"  WHEN {inside} THEN {self._case(column, self.groups[path])}")
        return "\n".join([*lines, f"  ELSE {rest}", "END END"])

    def _case(self, column: str, threshold: float) -> str:
        """Write the answer by one threshold, to a score that is a number."""
        return f"CASE WHEN {self._condition(column, threshold)} THEN 1 ELSE 0 END"

    def _condition(self, column: str, threshold: float) -> str:
        """Write when the answer is 1; infinities have no literal that all databases know."""
        if math.isnan(threshold):
            return "1 = 0"
        if math.isfinite(threshold):
            return f"{column} {self.direction} {_double(threshold)}"
        if (threshold < 0) == (self.direction == ">="):
            return "1 = 1"
        return f"{column} > {_LARGEST}" if threshold > 0 else f"{column} < -{_LARGEST}"

    def as_python(self) -> str:
        """Write the rule as a module of Python with a function `predict`, which needs no other."""
        if self.groups is None:
            return _FUNCTION.format(threshold=_python(self.threshold), direction=self.direction)
        for path in self.groups:
            _require_written(path, "Python", (str, int, float, bool, bytes))
        rows = [f"    {_python(path)}: {_python(each)},\n" for path, each in self.groups.items()]
        listed = f"{{\n{''.join(rows)}}}" if rows else "{}"
        return _FUNCTION_OF_GROUPS.format(
            threshold=_python(self.threshold), thresholds=listed, direction=self.direction
        )


def groups_of(model: Any) -> Any:
    """Return the groups of a model or ledger; None where there are none."""
    groups = model.model if isinstance(model, Ledger) else model
    return groups if isinstance(groups, Grouped) else None


def best_of(model: Any, aim: Aim | None = None) -> Any:
    """Return the cut by which a model answers: its own, or the best one by an aim."""
    takes_costs = getattr(model, "takes_costs", None)
    if takes_costs:
        if aim is None:
            raise OtherAim(
                f"{type(model).__name__} holds samples for any aim: give costs, a metric or demands"
            )
        if aim.by_cost:
            return model.optimum(**aim.mistakes)
        return model.best(aim.measure, **aim.demands)
    if takes_costs is None and not (hasattr(model, "threshold") and hasattr(model, "predict")):
        raise TypeError(f"{type(model).__name__} answers no rows: it judges thresholds.")
    if aim is not None and (takes_costs is None or not _is_own(model, aim)):
        raise OtherAim(
            f"{type(model).__name__} answers by what it was made for, and by no other aim"
        )
    if takes_costs is None:
        return getattr(model, "gap", model)
    return model.optimum


def _is_own(model: Any, aim: Aim) -> bool:
    """Whether an aim is the costs that a model was made for."""
    while (inner := getattr(model, "model", None)) is not None:
        model = inner
    costs = aim.mistakes if aim.by_cost else {}
    own = {name: value for name, value in model.settings.items() if name in costs}
    return len(own) == 2 and exact_costs(**own) == exact_costs(**costs)


# ---- values in other languages --------------------------------------------------------------


def _require_written(path: Path, language: str, kinds: tuple[type, ...]) -> None:
    """Refuse a group that cannot be written in a language."""
    for part in path:
        if type(part) not in kinds or (isinstance(part, str) and _has_no_text(part)):
            raise ValueError(f"the group {part!r} cannot be written in {language}.")


def _has_no_text(part: str) -> bool:
    """Whether a text holds what databases and files do not: a NUL, or half a character."""
    return "\0" in part or any("\ud800" <= each <= "\udfff" for each in part)


def _written(path: Path) -> tuple[str, ...]:
    """Write a group as a file has it; the order of these depends on the groups alone."""
    return tuple(map(_text, path))


def _text(part: Hashable) -> str:
    """Write a part of a group as a file has it."""
    return str(part).lower() if isinstance(part, bool) else str(part)


def _json(threshold: float) -> float | str:
    return threshold if math.isfinite(threshold) else repr(threshold)


def _double(number: float) -> str:
    """Write a number with an exponent, which databases read as a double and not as a decimal.

    >>> _double(0.1), _double(1e-07), _double(-3.0)
    ('1e-1', '1e-7', '-3e0')
    """
    digits = len(repr(number).lstrip("-").split("e")[0].replace(".", "").strip("0"))
    mantissa, exponent = f"{number:.{max(digits - 1, 0)}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _name(column: str) -> str:
    """Write the name of a column, in quotes where it needs some.

    >>> _name("score"), _name("group"), _name('a "b')
    ('score', '"group"', '"a ""b"')
    """
    if _PLAIN.fullmatch(column) and column not in _RESERVED:
        return column
    return '"' + column.replace('"', '""') + '"'


def _literal(part: Any) -> str:
    """Write a part of a group as SQL has it."""
    if isinstance(part, str):
        return "'" + part.replace("'", "''") + "'"
    if isinstance(part, bool):
        return str(part).upper()
    if isinstance(part, float):
        if not math.isfinite(part):
            raise ValueError(f"the group {part!r} cannot be written in SQL.")
        return _double(part)
    return repr(part)


def _python(value: Any) -> str:
    """Write a value as Python has it."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_python, value))}{',' * (len(value) == 1)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value!r}")'
    return repr(value)


_FUNCTION = '''\
"""A decision threshold, written by limen."""

THRESHOLD = {threshold}


def predict(score):
    """Answer 1 when score {direction} THRESHOLD, else 0."""
    score = float(score)
    if score != score:
        raise ValueError("score is nan, which has no order")
    return int(score {direction} THRESHOLD)
'''

_FUNCTION_OF_GROUPS = '''\
"""Decision thresholds by group, written by limen."""

THRESHOLD = {threshold}  # of all groups that are not listed
THRESHOLDS = {thresholds}


def threshold_of(group):
    """Return the threshold of a group, or of the next larger group that has one."""
    path = group if isinstance(group, tuple) else (group,)
    if not path or any(part is None or part != part for part in path):
        raise ValueError(f"group is {{group!r}}, which names no group")
    while path and path not in THRESHOLDS:
        path = path[:-1]
    return THRESHOLDS[path] if path else THRESHOLD


def predict(group, score):
    """Answer 1 when score {direction} the threshold of its group, else 0.

    A group inside others is a tuple, from the larger to the smaller one.
    """
    score = float(score)
    if score != score:
        raise ValueError("score is nan, which has no order")
    return int(score {direction} threshold_of(group))
'''


def __dir__() -> list[str]:
    return __all__
