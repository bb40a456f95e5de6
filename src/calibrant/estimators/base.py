"""The base of all calibrators of one score: fit is written once, here."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from calibrant.array_types import Array, Index
from calibrant.data import weighing
from calibrant.data.cells import cell_facts
from calibrant.data.labels import read_classes
from calibrant.data.score_range import OnRange, ScoreRange
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows, read_binary
from calibrant.errors import AdviceWarning, InputError, caller_level
from calibrant.estimators.limits import OneOf, check_parameters
from calibrant.estimators.score_estimator import ScoreEstimator, ScoreTransformer
from calibrant.losses import LARGEST, SMALLEST
from calibrant.maps import Map
from calibrant.maps.inverse import ScoreAt
from calibrant.version import __version__

#: how a method reads scores: as they are, by their logit, or by what they look like
SCALES: OneOf = OneOf(("auto", "logit", "raw"))
#: what a weight says; see `calibrant.data.weighing`
WEIGHTS: OneOf = OneOf(tuple(weighing.WEIGHTS))


def on_logit_scale(scale: str, table: ScoreTable) -> bool:
    """Whether a method with this ``scale`` fits against the logit of the table's scores."""
    return scale == "logit" or (scale == "auto" and table.looks_like_probabilities)


def inner_interval(table: ScoreTable) -> tuple[float, float] | None:
    """The interval that scores are clipped to before their logit is taken; None for margins.

    Forests and nearest neighbours often give 0 and 1, whose logits would be −744 and 37: a single
    wrong one would outweigh all other rows. The interval ends halfway between 0 and the smallest
    score above 0, and halfway between 1 and the largest score below 1 (at ¼ and ¾ if all scores
    are 0 or 1).
    """
    scores = table.scores
    if not table.looks_like_probabilities:
        return None
    inside = scores[np.searchsorted(scores, 0.0, "right") : np.searchsorted(scores, 1.0, "left")]
    least, most = (float(inside[0]), float(inside[-1])) if len(inside) else (0.5, 0.5)
    low, high = max(0.5 * least, SMALLEST), min(1.0 - 0.5 * (1.0 - most), LARGEST)
    return low, high


class Calibrator(ScoreTransformer, ScoreEstimator):
    """Turns scores and labels into a map from scores to probabilities.

    A subclass declares its parameters in ``__init__``, their limits in ``_limits``, and gives
    ``_fit(table) -> Map``. All else (labels, weights, checks, scikit-learn's contract, saving) is
    here.

    Parameters
    ----------
    weights : {"importance", "counts"}, default="importance"
        What ``sample_weight`` means. ``"importance"``: how much a row matters. A common factor of
        all weights changes nothing, and the number of rows is taken as (Σw)²/Σw². ``"counts"``: how
        many equal rows it stands for, so that a weight of 2 is two rows (at most 2⁵³ in all).
        Methods for which only the ratios of weights matter do not have this parameter.
    pos_label : label, default: the larger class
        What a high score means.
    classes : two labels, default: those found in y
        Needed only if y may hold a single class whose partner cannot be guessed.

    Attributes
    ----------
    map_ : Map
        The fitted function, a value.
    classes_ : ndarray of shape (2,)
        The labels, sorted; the columns of `predict_proba`.
    pos_label_ : label
        The class whose probability `calibrate` gives.
    score_range_ : ScoreRange
        The scores that it was fitted on: whether they are probabilities, and from where to where.
    """

    #: with fewer rows of the rarer class than this, `fit` warns
    events_needed: ClassVar[int] = 0

    weights: str | None = None
    pos_label: Any
    classes: Any
    pos_label_: Any
    #: the ends of the scores of a whole of which a fit sees a part; see `ScoreTable.part_of`
    _whole: tuple[float, float] | None = None

    def fit(self, scores: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1) or (n, 2)
            Scores of any kind, or a binary predict_proba (then pos_label's column is used).
        y : array-like of shape (n,)
            Labels: any two values. Or soft labels: floats in [0, 1], some of them fractions, are
            the probability of the class 1. A row of soft label q is q of a positive and 1 − q of a
            negative row.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        """
        rows = self._read(scores, y, sample_weight)
        table, labels = ScoreTable.from_rows(rows), (rows.classes, rows.pos_label)
        facts = rows.facts
        del rows  # the columns may be copies, and fits are to stay small
        if few := too_few(self, self._in_rows(table)):
            warnings.warn(few, AdviceWarning, stacklevel=caller_level())
        self._learn(table, *labels)
        self._provenance |= facts
        return self

    def _fit_part(
        self, ends: tuple[float, float], scores: Any, y: Any, sample_weight: Any = None
    ) -> Self:
        """`fit`, to a part of rows whose scores go between these ends: the whole decides whether
        they are probabilities."""
        self._whole = ends
        try:
            return self.fit(scores, y, sample_weight)
        finally:
            del self._whole

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> Rows:
        """The rows of a fit, checked; their labels may be soft."""
        self._check_fit(scores, y)
        names = {"pos_label": self.pos_label, "classes": self.classes}
        return read_binary(scores, y, sample_weight, **names, soft=True)

    def fit_table(self, table: ScoreTable) -> Self:
        """Fit the map to a table; its labels are ``classes`` (default 0 and 1).

        A table of counts (`ScoreTable.from_counts`) is fitted as its rows would be.
        """
        check_parameters(self, self._limits)
        if not isinstance(table, ScoreTable):
            raise InputError(f"table must be a ScoreTable, but {type(table).__name__} came.")
        if not table:
            raise InputError("table must hold at least one score, but it is empty.")
        return self._learn(table, *read_classes(self.classes, self.pos_label))

    def _learn(
        self,
        table: ScoreTable,
        classes: NDArray[Any],
        pos_label: Any,
        fit: Callable[[ScoreTable], Map] | None = None,
    ) -> Self:
        if self._whole is not None:
            table = table.part_of(*self._whole)
        self.map_ = (self._fit if fit is None else fit)(self._in_rows(table))
        self.classes_, self.pos_label_ = classes, pos_label  # after what may fail
        self.score_range_ = range_of_table(table)
        self._provenance = table_facts(table)
        return self

    def _in_rows(self, table: ScoreTable) -> ScoreTable:
        return weighing.table_in_rows(table, self.weights)

    @abstractmethod
    def _fit(self, table: ScoreTable) -> Map:
        """The map for a table that is not empty, with weights in units of rows.

        May set further ``name_`` attributes.
        """

    def calibrate(self, scores: Any, *, on_range: OnRange = "error") -> Any:
        """The calibrated probability of ``pos_label_`` for each score, shape (n,).

        A NumPy array; of a pandas or Polars series, a series with its index. Where the scores of
        the fit were probabilities, so must these be: others are refused (``on_range="error"``),
        moved to 0 or 1 (``"clip"``) or taken as they are (``"allow"``).
        """
        return self._applied.calibrate(scores, on_range=on_range)

    def score_at(self, probability: Any) -> ScoreAt:
        """Which score has this probability of ``pos_label_``? As `Fitted.score_at`.

        For maps that rise or fall throughout; others are refused. Where the map is flat the answer
        has both ends, where it jumps over the probability the first score beyond.
        """
        return self._applied.score_at(probability)


def range_of_table(table: ScoreTable) -> ScoreRange:
    """The scores of a table that is not empty."""
    least, most = float(table.scores[0]), float(table.scores[-1])
    return ScoreRange.between(least, most, probabilities=table.looks_like_probabilities)


def too_few(calibrator: Any, table: ScoreTable) -> str:
    """The warning if a class has fewer rows than the calibrator wants; else an empty text.

    Rows of unequal weight count by (Σw)²/Σw².
    """
    needed, found = calibrator.events_needed, table.rarest
    if found >= needed - 1e-9:
        return ""
    return (
        f"{type(calibrator).__name__} wants at least {needed} rows of the rarer class, but "
        f"{found:.4g} came: what it learns may be noise{_rate_of(found, table.effective_size)}. "
        "Gather more, or keep the scores as they are."
    )


def _rate_of(found: float, rows: float) -> str:
    """How far off the rate may be: Clopper and Pearson's interval, as multiples of the rate."""
    rest = max(rows - found, found)
    if found == 0.0:
        return ""
    low, high = betaincinv([found, found + 1.0], [rest + 1.0, rest], [0.05, 0.95])
    low, high = (value * (found + rest) / found for value in (low, high))
    return (
        f", and the true rate of that class may be {low:.2g} to {high:.2g} times the one seen "
        "(90 % interval)"
    )


def table_facts(table: ScoreTable) -> dict[str, Any]:
    """Facts about the data of a fit, given as a table."""
    return {
        "calibrant": __version__,
        "weight": table.total,
        "positive_weight": table.total_positive,
        "distinct_scores": len(table),
        "effective_size": table.effective_size,
        **cell_facts(table),
    }


def row_facts(weight: Array, codes: Index | None = None, classes: int = 2) -> dict[str, Any]:
    """Facts about the rows of a fit, given their weights and which of the classes each is."""
    size = weight / weight.max()  # squares of tiny weights would vanish
    facts = {
        "calibrant": __version__,
        "weight": float(weight.sum()),
        "rows": int((weight > 0).sum()),
        "effective_size": float(size.sum() ** 2 / (size**2).sum()),
    }
    if codes is not None:
        facts["class_weights"] = np.bincount(codes, weight, minlength=classes).tolist()
    return facts
