# SPDX-License-Identifier: Apache-2.0
"""Forgetting little by little: what is older counts less, by a half-life.

The cheapest cut does not change when all losses are multiplied alike. So nothing old is touched
as it ages; newer samples are added with larger weights instead, and when these have become large
everything held is divided by a power of two.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from limen import _core
from limen.errors import Infeasible
from limen.hull import Blocks, RocHull
from limen.memory.base import Window, require_plain
from limen.metrics import BestCut, Confusion, Metric
from limen.model import Held_co
from limen.optimum import LossCurve, Optimum
from limen.review import ReviewBand
from limen.times import Period, as_period, require_one_kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from limen.memory.base import Memory
    from limen.model import HasOptimum, T

__all__ = ["Fading"]

_SHORTEST = 1e-6  # of which 2**53 can be counted: enough for 9 * 10**9 samples


class Fading(Window[Held_co], _core.Fading, kind="Fading"):
    """Keep a model exact for samples that count half as much after each half-life.

    Parameters
    ----------
    model
        An empty model, as for `LastN`.
    half_life
        After how many samples, or after how much time, a sample counts half: a number, or a
        timedelta for datetimes.
    by
        ``"samples"`` or ``"time"``; None for time where the half-life is a timedelta, and for
        samples otherwise.
    max_ahead
        Where samples fade by time: how far after the newest time a sample may be; one that is
        later is refused. None: any time is taken.

    Notes
    -----
    The newest sample, or one of the newest time, counts its own weight; `loss` and all other
    sums are in these terms. Every other weight is held to within 2**-30 of that of a new sample
    of weight 1 (with ``unit=None``), and what has faded below that, after some thirty
    half-lives, is dropped: memory is O(samples in thirty to forty half-lives). So the cut is
    worse than the best by at most 2**-29 per distinct score held, times the larger cost. A
    sample may come late and counts by its own time; one that would count nothing is refused.

    `update` takes what one update of the model takes, and O(n) every ten half-lives. There is
    no `revert`; a `Ledger` around it can correct labels and forget. Several threads may share
    one object: calls take turns.

    Examples
    --------
    >>> from limen import Fading, OnlineThreshold
    >>> fading = Fading(OnlineThreshold(), half_life=2)
    >>> fading.update_many([0.9, 0.9, 0.2, 0.9, 0.2, 0.9], [0, 0, 0, 1, 0, 1])
    [True, True, True, True, True, True]
    >>> fading.threshold, round(fading.loss, 6)  # the old errors at 0.9 have faded
    (0.55, 0.426777)
    """

    __slots__ = ()

    _native = _core.Fading

    _settings = ("half_life", "by", "max_ahead")

    def __init__(
        self,
        model: Held_co,
        half_life: Period,
        *,
        by: Literal["samples", "time"] | None = None,
        max_ahead: Period | None = None,
    ) -> None:
        dated = isinstance(as_period(half_life, "half_life"), timedelta)
        settings = {
            "half_life": half_life,
            "by": by if by is not None else "time" if dated else "samples",
            "max_ahead": max_ahead,
        }
        _require_by(settings["by"], dated, half_life)
        require_plain(model)
        self._begin(model, settings)

    def _begin(self, model: Any, settings: dict[str, Any]) -> None:
        by, ahead = settings["by"], settings["max_ahead"]
        length = as_period(settings["half_life"], "half_life")
        if ahead is not None:
            ahead = as_period(ahead, "max_ahead")
            require_one_kind(half_life=length, max_ahead=ahead)
            if by != "time":
                raise ValueError("max_ahead is a time, but samples fade by their number here.")
        _require_by(by, isinstance(length, timedelta), length)
        if by != "time" and not isinstance(length, timedelta) and length < _SHORTEST:
            raise ValueError(
                f"half_life must be at least {_SHORTEST!r} samples, got {length!r}: after one more "
                "sample nothing would be left in any case. Choose a longer one."
            )
        _core.Fading.__init__(self, model, (length, ahead), by == "time")
        self._given = {"half_life": length, "by": by, "max_ahead": ahead}

    @property
    def half_life(self) -> Period:
        """After how many samples, or how much time, a sample counts half."""
        half_life: Period = self._given["half_life"]
        return half_life

    @property
    def _dated(self) -> bool | None:
        return isinstance(self.half_life, timedelta) if self._given["by"] == "time" else None

    def update_many(self, *columns: Any, times: Any = None, **named: Any) -> list[bool]:
        """Add many samples, as `update` one by one: all of them, or on an error none.

        Return for each whether it counts. O(n) besides the updates.

        >>> from limen import Fading, OnlineThreshold
        >>> fading = Fading(OnlineThreshold(), half_life=100)
        >>> fading.update_many([0.3, 0.7], [0, 1])
        [True, True]
        """
        if times is not None and self._dated is None:
            raise ValueError(
                'times are given, but samples fade by their number here. Say by="time" when making '
                "this object. Nothing was changed."
            )
        if times is None and self._dated is not None:
            raise TypeError("times are missing: samples fade by them here. Nothing was changed.")
        return self._add(columns, named, times).tolist()  # type: ignore[no-any-return]

    # What is asked of it: sums in terms of the newest sample.

    def _lighter(
        self, ask: Callable[[float], Any], lighten: Callable[[Any, float], Any], short: bool = False
    ) -> Any:
        """Ask the model, and lighten its answer by the scale that its sums have.

        Another thread may let everything be divided between the two: then the base has moved, and
        the model is asked again. A `short` question is asked again after any other change too; a
        long one would find no end beside a thread that adds samples all the time.
        """
        while True:
            base, scale = self._base(), self._scale()
            found = ask(scale)
            if self._base() == base and not (short and self._scale() != scale):
                return lighten(found, scale)

    @property
    def loss(self) -> float:  # type: ignore[override]
        """The loss of the cheapest cut, by weights that have faded. O(1)."""
        loss: float = self._lighter(
            lambda _: self._inner.loss, lambda loss, scale: loss / scale, short=True
        )
        return loss

    @property
    def loss_bound(self) -> float:  # type: ignore[override]
        """By how much `loss` can at most be above the least, where the model has a capacity."""
        bound: float = self._lighter(
            lambda _: self._inner.loss_bound, lambda bound, scale: bound / scale, short=True
        )
        return bound

    @property
    def optimum(self: Memory[HasOptimum[T]]) -> T:
        """The optimum of the model, by weights that have faded."""
        return self._faded_optimum()  # type: ignore[attr-defined, no-any-return]

    def _faded_optimum(self) -> Any:
        if self._inner.takes_costs:
            return lambda **costs: self._lighter(
                lambda _: self._inner.optimum(**costs), _lighter_loss, short=True
            )
        return self._lighter(lambda _: self._inner.optimum, _lighter_loss, short=True)

    def curve(self, **costs: Any) -> LossCurve:
        """Compute the loss of every cut, by weights that have faded. O(n)."""
        curve: LossCurve = self._lighter(
            lambda _: self._inner.curve(**costs),
            lambda found, scale: LossCurve(found.thresholds, found.losses / scale),
        )
        return curve

    @property
    def confusion(self) -> Callable[[float], Confusion]:  # type: ignore[override]
        """The `confusion` of the model, by weights that have faded."""
        ask = self._inner.confusion
        return lambda threshold: self._lighter(lambda _: ask(threshold), _lighter_weights)

    @property
    def roc_hull(self) -> Callable[[], RocHull]:  # type: ignore[override]
        """The `roc_hull` of the model, by weights that have faded."""
        ask = self._inner.roc_hull

        def lighten(hull: RocHull, scale: float) -> RocHull:
            weights = (getattr(hull, name) / scale for name in ("tp", "fp", "fn", "tn"))
            return RocHull(hull.thresholds, *weights)

        return lambda: self._lighter(lambda _: ask(), lighten)

    @property
    def probability_interval(self) -> Callable[..., Any]:  # type: ignore[override]
        """The `probability_interval` of the model: the new sample is the next one, and weighs 1.

        It is a sample of the newest time where samples fade by time.
        """
        if len(self) == 0:
            return self._inner.probability_interval  # type: ignore[no-any-return]
        ask, length = self._inner._probability_interval, self.half_life
        ahead = 1.0 if self._given["by"] == "time" else 2.0 ** (1 / length)  # type: ignore[operator]
        return lambda scores: self._lighter(
            lambda scale: ask(scores, scale * ahead), lambda found, _: found
        )

    @property
    def blocks(self) -> Callable[[], Blocks]:  # type: ignore[override]
        """The `blocks` of the model, by weights that have faded."""
        ask = self._inner.blocks

        def lighten(blocks: Blocks, scale: float) -> Blocks:
            return replace(blocks, _unit=blocks._unit / Fraction(scale))

        return lambda: self._lighter(lambda _: ask(), lighten)

    @property
    def best(self) -> Callable[..., BestCut]:  # type: ignore[override]
        """The `best` of the model, by weights that have faded."""
        ask = self._inner.best

        def lighter(metric: Any, **demands: Any) -> BestCut:
            counts = isinstance(metric, Metric) and metric.scale is not None
            own = not isinstance(metric, str | Metric) and callable(metric)

            def find(scale: float) -> BestCut | Infeasible:
                def weighed(*weights: Any) -> Any:
                    return metric(*(weight / scale for weight in weights))

                try:
                    found: BestCut = ask(weighed if own else metric, **demands)
                except Infeasible as infeasible:
                    return infeasible
                return found

            def lighten(found: BestCut | Infeasible, scale: float) -> BestCut:
                if isinstance(found, Infeasible):
                    lighter = lighten(found.nearest, scale)
                    raise Infeasible(found.problem, lighter, found.rates) from None
                value = found.value / scale if counts else found.value
                confusion = _lighter_weights(found.confusion, scale)
                return replace(found, value=value, confusion=confusion)

            best: BestCut = self._lighter(find, lighten)
            return best

        return lighter

    @property
    def review_band(self) -> Callable[..., ReviewBand]:  # type: ignore[override]
        """The `review_band` of the model, by weights that have faded; no `max_questions`."""
        ask = self._inner.review_band

        def lighten(band: ReviewBand, scale: float) -> ReviewBand:
            sums = {name: getattr(band, name) / scale for name in ("loss", "no", "ask", "yes")}
            return replace(band, confusion=_lighter_weights(band.confusion, scale), **sums)

        return lambda *, asking, **costs: self._lighter(
            lambda _: ask(asking=asking, **costs, max_questions=None), lighten
        )

    def __repr__(self) -> str:
        # Not the model's own: its sums are in other terms.
        samples = "1 sample" if len(self) == 1 else f"{len(self):,} samples"
        return (
            f"<{type(self).__name__}(half_life={self.half_life!r}, by={self._given['by']!r}) of "
            f"{type(self.model).__name__}: {samples}>"
        )


def _lighter_loss(optimum: Optimum, scale: float) -> Optimum:
    return replace(optimum, loss=optimum.loss / scale)


def _lighter_weights(confusion: Confusion, scale: float) -> Confusion:
    return Confusion(*(weight / scale for weight in confusion))


def _require_by(by: Any, dated: bool, half_life: Any) -> None:
    if by not in ("samples", "time") or (dated and by == "samples"):
        raise ValueError(
            f'by must be "samples" or "time", and "time" for a timedelta; got {by!r} with '
            f"half_life={half_life!r}."
        )
