# SPDX-License-Identifier: Apache-2.0
"""The exact threshold as a river classifier: ``pip install "limen[river]"``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

try:
    from river import base
    from river.utils import dataframe
except ImportError as error:
    raise ImportError(
        'limen.river needs river 0.26.1 or later. Install it with: pip install "limen[river]"'
    ) from error

from limen.calibrator import OnlineCalibrator
from limen.hull import Between
from limen.memory.base import Window
from limen.memory.windows import in_window
from limen.online import OnlineThreshold
from limen.units import Cost

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.optimum import Optimum

__all__ = ["CalibratedClassifier", "ThresholdClassifier"]

Features = dict[Any, Any]


class _Wrapper(base.Wrapper, base.MiniBatchClassifier):
    """Base of both classifiers: each sample is scored before it is learned from."""

    if TYPE_CHECKING:
        classifier: Any
        pos_val: Hashable
        window: int | timedelta | Callable[[Any], Any] | None

    def _begin(self, model: Any) -> None:
        if isinstance(self.classifier, type):
            name = self.classifier.__name__
            raise TypeError(f"classifier must be an object, got the class {name}. Write {name}().")
        if not hasattr(self.classifier, "predict_proba_one"):
            raise TypeError(
                "classifier must give probabilities of two classes by predict_proba_one, which "
                f"{type(self.classifier).__name__} does not. Take one such as "
                "linear_model.LogisticRegression()."
            )
        self._trial = model.empty()
        self._held = in_window(model, self.window)
        # The other class is known from the start, or from its first sample on.
        self._negative: Hashable = False if self.pos_val is True else None

    @property
    def held(self) -> Any:
        """The model or window that holds the scores."""
        return self._held

    @property
    def _wrapped_model(self) -> Any:
        return self.classifier

    @property
    def _multiclass(self) -> bool:
        return False

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, naive_bayes, preprocessing

        yield {"classifier": preprocessing.StandardScaler() | linear_model.LogisticRegression()}
        yield {"classifier": naive_bayes.GaussianNB(), "false_negative": 5, "window": 50}

    def learn_one(self, x: Features, y: Hashable, **kwargs: Any) -> None:
        """Score a sample, hold the score with its label, and only then learn from it.

        O(log n) or O(log² n) beside what the classifier takes. The weight ``w`` is also passed to
        the classifier; the time ``t`` of a sample, for windows over time, is not. After an
        error nothing is held.
        """
        label, held = self._label(y), self._timed(kwargs)
        score = self._score(x)
        if score is not None and "w" in kwargs:  # a window cannot take a sample back
            self._trial.update(score, label, kwargs["w"])
            self._trial.revert(score, label, kwargs["w"])
        self.classifier.learn_one(x, y, **kwargs)
        if score is not None:
            self._held.update(score, label, kwargs.get("w", 1), **held)
        if not label:
            self._negative = y

    def _timed(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Remove the time from the arguments; raise if it is missing, or given for nothing."""
        own = isinstance(self._held, Window | type(self._trial))
        timed = isinstance(self._held, Window) and self._held._dated is not None
        if timed and "t" not in kwargs:
            raise TypeError(
                f"{type(self._held).__name__} needs the time of each sample: learn_one(x, y, "
                "t=...). Nothing was changed."
            )
        if own and not timed and "t" in kwargs:
            raise TypeError(
                f"t is {kwargs['t']!r}, but this classifier uses no time. Leave it out, or "
                "use a window over time, such as window=timedelta(days=7). Nothing was changed."
            )
        if timed:
            self._held._require_time(kwargs["t"])
        return {"time": kwargs.pop("t")} if "t" in kwargs else {}

    def learn_many(self, X: Any, y: Any, **kwargs: Any) -> None:
        """Learn from the rows of a frame one after the other, as `learn_one` does."""
        rows = dataframe.into_frame(X).iter_rows(named=True)
        for x, label in zip(rows, dataframe.into_series(y).to_list(), strict=True):
            self.learn_one(x, label, **kwargs)

    def _label(self, y: Hashable) -> int:
        if y == self.pos_val:
            return 1
        if self._negative is not None and y != self._negative:
            raise ValueError(
                f"y must be {self.pos_val!r} or {self._negative!r}, got {y!r}. A threshold divides "
                "two classes: name the positive one by pos_val, and merge the others."
            )
        return 0

    def _score(self, x: Features, **kwargs: Any) -> float | None:
        """Return the score of the positive class; None while the classifier knows no class."""
        probabilities = self.classifier.predict_proba_one(x, **kwargs)
        return float(probabilities.get(self.pos_val, 0.0)) if probabilities else None

    def _scores(self, X: Any, **kwargs: Any) -> NDArray[np.float64]:
        """Score the rows of a frame, at once where the classifier can; nan for no score."""
        try:
            given = dataframe.into_frame(self.classifier.predict_proba_many(X, **kwargs))
        except (AttributeError, NotImplementedError):
            rows = dataframe.into_frame(X).iter_rows(named=True)
            scores = (self._score(x, **kwargs) for x in rows)
            return np.array([np.nan if score is None else score for score in scores])
        # Frames other than those of pandas name their columns by text.
        names = [str(name) for name in given.columns]
        if str(self.pos_val) not in names:
            return np.zeros(len(given))
        column: NDArray[np.float64] = dataframe.to_numpy(given)[:, names.index(str(self.pos_val))]
        return column

    def _both(self, positive: float) -> dict[Hashable, float]:
        """Return the probabilities of both classes."""
        return {self._negative: 1.0 - positive, self.pos_val: positive}

    def _named(self, answer: Any) -> Hashable:
        return self.pos_val if answer else self._negative

    def _named_series(self, answers: Any, like: Any) -> Any:
        values = np.array([self._named(answer) for answer in answers])
        return dataframe.to_native_series(values, name=None, like=dataframe.into_frame(like))


class ThresholdClassifier(_Wrapper):
    """A classifier that decides at the cheapest threshold of the samples seen so far.

    Each sample is scored before it is learned from, so the threshold is that of an honest
    test-then-train run, exact at every moment.

    Parameters
    ----------
    classifier
        A binary classifier with `predict_proba_one`, or a pipeline that ends in one.
    false_positive, false_negative
        Cost of answering `pos_val` to a sample of the other class, and the reverse.
    pos_val
        The positive class.
    window
        Which samples to hold: a number n for the last n samples, a timedelta for the last
        period (each sample then needs its time, ``learn_one(x, y, t=...)``), or a function that
        wraps the empty `limen.OnlineThreshold` in a window and returns the window. None holds
        all samples.
    unit
        Each weight is held as a whole number of units, as in `limen.OnlineThreshold`.

    Notes
    -----
    `learn_one` takes O(log n) beside what the classifier takes. Until the first sample is
    scored, answers are those of the classifier. Probabilities are those of the classifier.

    Examples
    --------
    >>> from limen.river import ThresholdClassifier
    >>> from river import datasets, linear_model, preprocessing
    >>> model = preprocessing.StandardScaler() | ThresholdClassifier(
    ...     linear_model.LogisticRegression(), false_negative=5
    ... )
    >>> for x, y in datasets.Phishing():
    ...     model.learn_one(x, y)
    >>> len(model["ThresholdClassifier"].held), round(model["ThresholdClassifier"].threshold, 3)
    (1250, 0.385)
    """

    def __init__(
        self,
        classifier: Any,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        pos_val: Hashable = True,
        window: int | timedelta | Callable[[Any], Any] | None = None,
        unit: Cost | None = None,
    ) -> None:
        self.classifier = classifier
        self.false_positive = false_positive
        self.false_negative = false_negative
        self.pos_val = pos_val
        self.window = window
        self.unit = unit
        self._begin(
            OnlineThreshold(false_positive=false_positive, false_negative=false_negative, unit=unit)
        )

    @property
    def threshold(self) -> float:
        """The current threshold. O(log n) after a change, else O(1)."""
        return float(self._held.threshold)

    @property
    def optimum(self) -> Optimum:
        """The current cheapest cut. O(log n) after a change, else O(1)."""
        optimum: Optimum = self._held.optimum
        return optimum

    @property
    def recommended(self) -> float | None:
        """The threshold for new samples, as `limen.recommend` finds it; see `OnlineThreshold`."""
        found: float | None = self._held.recommended
        return found

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return between which thresholds the best one lies; see `OnlineThreshold.interval`."""
        found: tuple[float, float] = self._held.interval(confidence)
        return found

    def keeps(self, threshold: float, *, confidence: float = 0.95) -> bool:
        """Whether to keep a threshold: it lies in the `interval`, or answers as one inside."""
        found: bool = self._held.keeps(threshold, confidence=confidence)
        return found

    def predict_one(self, x: Features, **kwargs: Any) -> Hashable:
        """Answer a sample with a class; None while nothing is known."""
        score = self._score(x, **kwargs) if len(self._held) else None
        if score is None:
            answer: Hashable = self.classifier.predict_one(x, **kwargs)
            return answer
        return self._named(score >= self.threshold)

    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Hashable, float]:
        """Return the probabilities of the classifier, one half while it knows nothing."""
        score = self._score(x, **kwargs)
        return self._both(0.5 if score is None else score)

    def predict_many(self, X: Any, **kwargs: Any) -> Any:
        """Answer each row of a frame; a series of the same library."""
        if len(self._held) == 0:
            return self.classifier.predict_many(X, **kwargs)
        return self._named_series(self._scores(X, **kwargs) >= self.threshold, X)

    def predict_proba_many(self, X: Any, **kwargs: Any) -> Any:
        """Return the probabilities of the classifier for each row of a frame."""
        return self.classifier.predict_proba_many(X, **kwargs)


class CalibratedClassifier(_Wrapper):
    """A classifier with exactly calibrated probabilities, kept exact sample by sample.

    Each sample is scored before it is learned from; probabilities are those of the isotonic
    regression on these scores. Deciding by them is deciding at the cheapest threshold, for all
    costs at once.

    Parameters
    ----------
    classifier, pos_val, window, unit
        As for `ThresholdClassifier`; a window wraps the empty `limen.OnlineCalibrator`.
    false_positive, false_negative
        The costs at which `predict_one` decides unless it is given others.
    between
        The probability between two blocks of the fit, as for
        `limen.OnlineCalibrator.probability`.

    Notes
    -----
    `learn_one` takes O(log² n) beside what the classifier takes. Until the first sample is scored,
    answers and probabilities are those of the classifier, one half while it knows nothing.

    Examples
    --------
    >>> from limen.river import CalibratedClassifier
    >>> from river import datasets, linear_model, preprocessing
    >>> model = preprocessing.StandardScaler() | CalibratedClassifier(
    ...     linear_model.LogisticRegression()
    ... )
    >>> for x, y in datasets.Phishing():
    ...     model.learn_one(x, y)
    >>> site, _ = list(datasets.Phishing().take(5))[-1]
    >>> round(model.predict_proba_one(site)[True], 2)
    0.21
    >>> model.predict_one(site), model.predict_one(site, false_negative=5)
    (False, True)
    """

    def __init__(
        self,
        classifier: Any,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        pos_val: Hashable = True,
        window: int | timedelta | Callable[[Any], Any] | None = None,
        between: Between = "step",
        unit: Cost | None = None,
    ) -> None:
        self.classifier = classifier
        self.false_positive = false_positive
        self.false_negative = false_negative
        self.pos_val = pos_val
        self.window = window
        self.between = between
        self.unit = unit
        self._begin(OnlineCalibrator(unit=unit))

    def threshold(
        self, *, false_positive: Cost | None = None, false_negative: Cost | None = None
    ) -> float:
        """Return the current threshold, at the costs of the constructor or others. O(log n)."""
        return float(self._held.threshold(**self._costs(false_positive, false_negative)))

    def recommended(
        self, *, false_positive: Cost | None = None, false_negative: Cost | None = None
    ) -> float | None:
        """Return the threshold for new samples, as `limen.recommend` finds it.

        See `OnlineCalibrator.recommended`.
        """
        costs = self._costs(false_positive, false_negative)
        found: float | None = self._held.recommended(**costs)
        return found

    def interval(
        self,
        confidence: float = 0.95,
        *,
        false_positive: Cost | None = None,
        false_negative: Cost | None = None,
    ) -> tuple[float, float]:
        """Return between which thresholds the best one lies; see `OnlineCalibrator.interval`."""
        costs = self._costs(false_positive, false_negative)
        found: tuple[float, float] = self._held.interval(confidence, **costs)
        return found

    def keeps(
        self,
        threshold: float,
        *,
        confidence: float = 0.95,
        false_positive: Cost | None = None,
        false_negative: Cost | None = None,
    ) -> bool:
        """Whether to keep a threshold: it lies in the `interval`, or answers as one inside."""
        costs = self._costs(false_positive, false_negative)
        found: bool = self._held.keeps(threshold, confidence=confidence, **costs)
        return found

    def _costs(self, false_positive: Cost | None, false_negative: Cost | None) -> dict[str, Cost]:
        """Return the costs given, or those of the constructor."""
        return {
            "false_positive": self.false_positive if false_positive is None else false_positive,
            "false_negative": self.false_negative if false_negative is None else false_negative,
        }

    def predict_one(
        self,
        x: Features,
        *,
        false_positive: Cost | None = None,
        false_negative: Cost | None = None,
        **kwargs: Any,
    ) -> Hashable:
        """Answer a sample with a class, at the costs of the constructor or its own.

        None while nothing is known.
        """
        score = self._score(x, **kwargs) if len(self._held) else None
        if score is None:
            answer: Hashable = self.classifier.predict_one(x, **kwargs)
            return answer
        threshold = self.threshold(false_positive=false_positive, false_negative=false_negative)
        return self._named(score >= threshold)

    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Hashable, float]:
        """Return the calibrated probabilities. O(log n)."""
        score = self._score(x, **kwargs)
        if score is not None and len(self._held):
            score = float(self._held.probability(score, between=self.between))
        return self._both(0.5 if score is None else score)

    def predict_many(self, X: Any, **kwargs: Any) -> Any:
        """Answer each row of a frame; a series of the same library."""
        if len(self._held) == 0:
            return self.classifier.predict_many(X, **kwargs)
        return self._named_series(self._scores(X, **kwargs) >= self.threshold(), X)

    def predict_proba_many(self, X: Any, **kwargs: Any) -> Any:
        """Return the calibrated probabilities for each row of a frame."""
        if len(self._held) == 0:
            return self.classifier.predict_proba_many(X, **kwargs)
        positive = self._held.probability(self._scores(X, **kwargs), between=self.between)
        columns = {self._negative: 1.0 - positive, self.pos_val: positive}
        return dataframe.to_native_frame(columns, like=dataframe.into_frame(X))


def __dir__() -> list[str]:
    return __all__
