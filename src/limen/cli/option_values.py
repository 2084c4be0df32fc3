# SPDX-License-Identifier: Apache-2.0
"""The values of options: from what is typed to numbers, shares, periods and names.

Nothing here imports NumPy, so that help and completion come at once.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import Any

from limen.names import METRIC_NAMES, did_you_mean

__all__ = [
    "ALERTS",
    "alert",
    "cost",
    "count",
    "delimiter",
    "level",
    "metric",
    "number",
    "period",
    "period_text",
    "share",
    "threshold",
]

_LARGEST = 300  # decimal places before or after the point
_BEYOND = f"beyond 1e-{_LARGEST} to 1e{_LARGEST}"


def number(text: str) -> Any:
    """Read a positive number as it was typed: 0.1 is a tenth, 1/3 a third.

    >>> number("5"), number("0.1"), number("1/3")
    (5, Fraction(1, 10), Fraction(1, 3))
    """
    value = _fraction(text)
    if value <= 0:
        raise ArgumentTypeError(f"{text!r} is not a positive number")
    if not 10**-_LARGEST <= value <= 10**_LARGEST:
        raise ArgumentTypeError(f"{text!r} is {_BEYOND}")
    return int(value) if value.denominator == 1 else value


def cost(text: str) -> Any:
    """Read a cost as it was typed; a negative one is a gain.

    >>> cost("-5"), cost("0.1"), cost("0")
    (-5, Fraction(1, 10), 0)
    """
    value = _fraction(text)
    return 0 if value == 0 else number(text) if value > 0 else -number(text.lstrip()[1:])


def _fraction(text: str) -> Any:
    """Read a fraction, but no power of ten that would take forever to compute."""
    from fractions import Fraction

    try:
        exponent = re.search(r"e([-+]?\d[\d_]*)\s*$", text, re.IGNORECASE)
        if exponent and abs(int(exponent[1])) > 2 * _LARGEST:
            raise ArgumentTypeError(f"{text!r} is {_BEYOND}")
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ArgumentTypeError(f"{text!r} is not a number") from None


def share(text: str) -> Any:
    """Read a share from 0 to 1 as it was typed.

    >>> share("0.9")
    Fraction(9, 10)
    """
    value = _fraction(text)
    if not 0 <= value <= 1:
        raise ArgumentTypeError(f"{text!r} is not a share from 0 to 1")
    return value


def threshold(text: str) -> float:
    """Read a threshold; infinities are fine.

    >>> threshold("-inf")
    -inf
    """
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number") from None


def level(text: str) -> float:
    """Read a level of confidence as a share.

    >>> level("0.95")
    0.95
    """
    return float(share(text))


def metric(text: str) -> str:
    """Check the name of a metric, in capitals or not; or f and a number for F-beta.

    >>> metric("f0.5"), metric("MCC"), metric("net-benefit=0.2")
    ('f0.5', 'mcc', 'net_benefit=0.2')
    """
    name = text.lower().replace("-", "_")
    if name in METRIC_NAMES:
        return name
    if re.fullmatch(r"f\d{1,99}(\.\d{1,99})?", name) and float(name[1:]) > 0:
        return name
    benefit = re.fullmatch(r"net_benefit=(0?\.\d{1,99})", name)
    if benefit and float(benefit[1]) > 0:
        return name
    raise ArgumentTypeError(
        f"{text!r} must be one of {', '.join(METRIC_NAMES)}, or f2, f0.5 and the like, or "
        f"net_benefit=0.2 for a threshold probability of 0.2.{did_you_mean(name, METRIC_NAMES)}"
    )


def alert(text: str) -> tuple[str, Any]:
    """Read a condition: its name, and the number or period that it has.

    >>> alert("interval"), alert("regret=12.5"), alert("late=7d")
    (('interval', None), ('regret', Fraction(25, 2)), ('late', datetime.timedelta(days=7)))
    """
    name, given, value = text.replace("_", "-").partition("=")
    if name not in ALERTS:
        raise ArgumentTypeError(f"{text!r} must be one of {_ALERTS_WRITTEN}")
    read = _LIMITS[ALERTS[name]]
    if (read is None) is bool(given):
        raise ArgumentTypeError(f"{text!r} is not written so: it is one of {_ALERTS_WRITTEN}")
    return name, None if read is None else read(value)


def count(text: str) -> int:
    """Read a whole number of at least 1.

    >>> count("1000")
    1000
    """
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def period(text: str) -> Any:
    """Read a period: a number, or a number with s, m, h, d or w for the times of a clock.

    >>> period("1000"), period("36h")
    (1000, datetime.timedelta(days=1, seconds=43200))
    """
    if re.fullmatch(r"[0-9]+([.][0-9]+)?", text) and float(text):
        return float(text) if "." in text else int(text)
    from datetime import timedelta

    from limen.times import length_of

    try:
        return timedelta(microseconds=length_of(text))
    except ValueError as error:
        raise ArgumentTypeError(str(error).rstrip(".")) from None


def period_text(value: Any) -> str:
    """Write a period as it may be typed.

    >>> period_text(period("36h")), period_text(1000)
    ('36h', '1000')
    """
    from datetime import timedelta

    from limen.times import length_text

    return length_text(value) if isinstance(value, timedelta) else str(value)


def delimiter(text: str) -> str:
    r"""Read one character, or \t for a tab.

    >>> delimiter(";")
    ';'
    """
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(text) != 1 or text in '"\r\n':
        raise ArgumentTypeError(f"{text!r} is not one character")
    return text


# The conditions of --alert, and what each is given.
ALERTS = {
    "interval": "",
    "change": "",
    "regret": "R",
    "late": "PERIOD",
    "min-precision": "SHARE",
    "min-recall": "SHARE",
    "max-false-positive-rate": "SHARE",
    "max-cost": "COST",
}
_LIMITS = {"": None, "R": number, "PERIOD": period, "SHARE": share, "COST": number}
_ALERTS_WRITTEN = ", ".join(f"{name}={of}" if of else name for name, of in ALERTS.items())
