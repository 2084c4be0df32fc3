# SPDX-License-Identifier: Apache-2.0
"""Scores, labels and weights out of a Spark frame, and which rows cannot be used.

A row that cannot be used has a score of NULL: every pass counts those, at no cost. Only where there
are some, one more query finds out why. Where all rows weigh 1 even that test of each row is left
out: a null or a nan shows in the number of its bucket, and a label that is neither 0 nor 1 in the
sum of the labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql import functions as F  # noqa: N812 - as every program of Spark calls it
from pyspark.sql import types as T  # noqa: N812

from limen import _core
from limen.narrowing.sql import AUTOMATIC, Dialect, literal, units_of
from limen.units import exact_unit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from limen.units import Cost

__all__ = ["SPARK", "WRONG_LABEL", "Prepared", "chosen", "prepared", "prepared_losses", "quoted"]

SPARK = Dialect("get({array}, {place})", "rint({})")
WRONG_LABEL = 2**40  # more than the labels of any bucket add up to
_FEW = 2.0**62


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A frame of `score`, NULL where the row cannot be used, `label` and, with weights, `units`.

    `reasons` are conditions on `raw`, the columns as they were given. Where the frame is
    `unchecked`, a score may also be nan, and a label that cannot be used is `WRONG_LABEL`.
    """

    frame: DataFrame
    raw: DataFrame
    reasons: dict[str, str]
    unit: Fraction
    weighted: bool
    unchecked: bool = False

    def refuse(self) -> NoReturn:
        """Raise ValueError with the number of rows of each reason, and one of them."""
        tests = {name: f"coalesce({test}, false)" for name, test in self.reasons.items()}
        counts = [
            F.expr(f"count_if({test})").alias(f"n{at}") for at, test in enumerate(tests.values())
        ]
        one = " OR ".join(tests.values())
        both = [F.expr(f"count_if({one})").alias("refused"), F.count(F.lit(1)).alias("rows")]
        refused, rows, *found = self.raw.agg(*both, *counts).collect()[0]
        listed = ", ".join(
            f"{count:,} where {name}" for name, count in zip(tests, found, strict=True) if count
        )
        example = self.raw.where(F.expr(one)).limit(1).collect()
        shown = f" For example {example[0]!r}." if example else ""
        raise ValueError(
            f"{refused:,} of {rows:,} rows cannot be used: {listed}.{shown} Drop or fill them "
            "before the call."
        )


def quoted(name: str) -> str:
    """Write the name of a column in SQL."""
    return "`" + name.replace("`", "``") + "`"


def chosen(frame: DataFrame, **names: str | None) -> DataFrame:
    """Take the columns that are named, or raise ValueError."""
    for role, name in names.items():
        if name is not None and name not in frame.columns:
            listed = ", ".join(map(repr, frame.columns))
            raise ValueError(f"{role}={name!r} is no column of the frame. It has {listed}.")
    wanted = [name for name in dict.fromkeys(names.values()) if name is not None]
    return frame.select(*[F.col(quoted(name)) for name in wanted])


def _kind(frame: DataFrame, name: str) -> Any:
    return frame.schema[frame.columns.index(name)].dataType


def _score(frame: DataFrame, name: str) -> tuple[str, dict[str, str]]:
    """Write the score as a double, and why it may be refused."""
    kind, column = _kind(frame, name), quoted(name)
    if not isinstance(kind, T.NumericType):
        raise TypeError(
            f"{name} must be numbers, it is {kind.simpleString()}. Of a vector take an entry: "
            "pyspark.ml.functions.vector_to_array(column)[1]."
        )
    score = f"CAST({column} AS DOUBLE)"
    reasons = {f"{name} is null": f"{column} IS NULL", f"{name} is nan": f"isnan({score})"}
    if isinstance(kind, T.LongType):
        exact = f"CAST(CAST({score} AS DECIMAL(38, 0)) AS DECIMAL(38, 0))"
        reasons[f"{name} has no exact double"] = f"{exact} != CAST({column} AS DECIMAL(38, 0))"
    return score, reasons


def _text(text: str) -> str:
    """Write a text in SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _same_class(column: str, positive: str) -> str:
    """Write whether a text is a class, or the same number, as ``values.hpp`` reads it."""
    same = f"{column} = {_text(positive)}"
    number = _core.number_of(positive)
    if number is None or number != number:
        return same
    digits = "".join(chr(zero + digit) for zero in _core.digit_zeros for digit in range(10))
    others = digits + "".join(map(chr, _core.blanks))
    ascii = "0123456789" * len(_core.digit_zeros) + " " * len(_core.blanks)
    plain = f"trim(translate({column}, {_text(others)}, {_text(ascii)}))"
    plain = f"regexp_replace({plain}, '(?<=[0-9])_(?=[0-9])', '')"
    decimal = "([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
    numeric = f"{plain} RLIKE '^[+-]?({decimal}|(?i:inf(inity)?))$'"
    test = f"CASE WHEN {numeric} THEN try_cast({plain} AS DOUBLE) = double('{number!r}') END"
    return f"{same} OR coalesce({test}, false)"


def _label(frame: DataFrame, name: str, positive: Any) -> tuple[str, dict[str, str]]:
    """Write the label as 0 or 1, and why it may be refused."""
    kind, column = _kind(frame, name), quoted(name)
    null = {f"{name} is null": f"{column} IS NULL"}
    if positive is not None:
        if isinstance(positive, bool):
            return f"CASE WHEN {column} = {str(positive).lower()} THEN 1 ELSE 0 END", null
        if isinstance(kind, T.StringType) and isinstance(positive, str | int | float):
            null[f"{name} is empty"] = f"{column} = ''"
            return f"CASE WHEN {_same_class(column, str(positive))} THEN 1 ELSE 0 END", null
        if isinstance(positive, str):
            return f"CASE WHEN {column} = {_text(positive)} THEN 1 ELSE 0 END", null
        if isinstance(positive, int | float):
            return f"CASE WHEN {column} = {positive!r} THEN 1 ELSE 0 END", null
        raise TypeError(f"positive must be a text, a number or a bool, got {positive!r}.")
    if isinstance(kind, T.BooleanType):
        return f"CAST({column} AS INT)", null
    if not isinstance(kind, T.NumericType):
        raise TypeError(
            f"{name} must be 0 and 1, it is {kind.simpleString()}. Name the value of the "
            "positive class: positive=..."
        )
    return (
        f"CASE WHEN {column} = 1 THEN 1 ELSE 0 END",
        null | {f"{name} is not 0 or 1": f"{column} NOT IN (0, 1)"},
    )


def _number(frame: DataFrame, name: str) -> Any:
    kind = _kind(frame, name)
    if not isinstance(kind, T.NumericType):
        raise TypeError(f"{name} must be numbers, it is {kind.simpleString()}.")
    return kind


def _units(
    frame: DataFrame, name: str, unit: Fraction | None, *, least: float = 0.0
) -> tuple[str, Fraction, dict[str, str]]:
    """Write a weight or a loss as whole units, their size, and why it may be refused."""
    kind, column = _number(frame, name), quoted(name)
    if isinstance(kind, T.IntegralType) and unit is None:
        reasons = {f"{name} is null": f"{column} IS NULL"}
        if least == 0:
            reasons[f"{name} is negative"] = f"{column} < 0"
        return f"CAST({column} AS BIGINT)", Fraction(1), reasons
    step = AUTOMATIC if unit is None else unit
    number = f"CAST({column} AS DOUBLE)"
    units = units_of(number, step, SPARK)
    reasons = {
        f"{name} is null": f"{column} IS NULL",
        f"{name} is not finite": f"isnan({number}) OR abs({number}) > 1.7976931348623157e308",
        f"{name} is negative": f"{number} < 0",
        f"{name} is not 0 but rounds to 0 units of {step}": f"{number} != 0 AND {units} = 0",
        f"{name} is 2**62 units of {step} or more": f"abs({units}) >= {literal(_FEW)}",
    }
    if least < 0:
        del reasons[f"{name} is negative"]
    small = f"abs({units}) < {literal(_FEW)}"
    return f"CASE WHEN {small} THEN CAST({units} AS BIGINT) END", step, reasons


def _total(reasons: dict[str, str]) -> str:
    """Write whether a row can be used."""
    return " AND ".join(f"NOT coalesce({test}, false)" for test in reasons.values())


def prepared(
    frame: DataFrame,
    *,
    score: str,
    label: str,
    weight: str | None = None,
    unit: Cost | None = None,
    positive: Any = None,
    by: tuple[str, ...] = (),
    unchecked: bool = False,
) -> Prepared:
    """Prepare a frame of samples with labels; columns `by` stay as they are.

    It is `unchecked` only if that was asked for and all rows weigh 1.
    """
    raw = chosen(
        frame, score=score, label=label, weight=weight, **{f"by {name}": name for name in by}
    )
    score_sql, reasons = _score(frame, score)
    label_sql, why = _label(frame, label, positive)
    reasons |= why
    step, kept = exact_unit(unit), list[Any]()
    size = Fraction(1)
    whole = isinstance(_kind(frame, score), T.LongType)  # may have no exact double
    if unchecked and weight is None and step is None and not whole:
        null = " OR ".join(why.values())
        label_or_wrong = f"CASE WHEN {null} THEN {WRONG_LABEL}L ELSE {label_sql} END"
        taken = raw.select(F.expr(score_sql).alias("score"), F.expr(label_or_wrong).alias("label"))
        return Prepared(taken, raw, reasons, size, weighted=False, unchecked=True)
    if weight is not None:
        units, size, why = _units(frame, weight, step)
        reasons |= why
        kept = [F.expr(units).alias("units")]
    elif step is not None:
        one = F.expr(f"CAST({units_of('1e0', step, SPARK)} AS BIGINT)")
        kept, size = [one.alias("units")], step
    for name in by:
        reasons[f"{name} is null"] = f"{quoted(name)} IS NULL"
    taken = raw.select(
        *[F.col(quoted(name)).alias(f"limen_by_{at}") for at, name in enumerate(by)],
        F.expr(f"CASE WHEN {_total(reasons)} THEN {score_sql} + 0e0 END").alias("score"),
        F.expr(label_sql).alias("label"),
        *kept,
    )
    if kept:
        taken = taken.where("score IS NULL OR units != 0")
    return Prepared(taken, raw, reasons, size, bool(kept))


def prepared_losses(
    frame: DataFrame, *, score: str, below: str, above: str, unit: Cost | None
) -> Prepared:
    """Prepare a frame of samples with losses.

    The label is 0 where the loss below a cut is the smaller one, `units` by how much, and `least`
    the smaller loss.
    """
    raw = chosen(frame, score=score, below=below, above=above)
    score_sql, reasons = _score(frame, score)
    step = exact_unit(unit)
    whole = all(isinstance(_number(frame, name), T.IntegralType) for name in (below, above))
    if step is None and not whole:
        step = AUTOMATIC
    lows, size, why = _units(frame, below, step, least=-1)
    highs, size, more = _units(frame, above, step, least=-1)
    reasons |= why | more
    taken = raw.select(
        F.expr(f"CASE WHEN {_total(reasons)} THEN {score_sql} + 0e0 END").alias("score"),
        F.expr(lows).alias("limen_below"),
        F.expr(highs).alias("limen_above"),
    ).select(
        "score",
        F.expr("CASE WHEN limen_above < limen_below THEN 1 ELSE 0 END").alias("label"),
        F.expr("abs(try_subtract(limen_above, limen_below))").alias("units"),
        F.expr("least(limen_above, limen_below)").alias("least"),
    )
    return Prepared(taken, raw, reasons, size, True)
