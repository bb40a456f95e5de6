"""The base of all calibrators: scikit-learn's contract, reading rows, and fit."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from calibrant.array_types import Array, Index
from calibrant.data import score_table
from calibrant.data.columns import plain
from calibrant.data.door import (
    Limit,
    OneOf,
    Rows,
    check_parameters,
    read_binary,
    read_class_pair,
)
from calibrant.data.scale import OnRange, ScoreRange, ScoreScale
from calibrant.data.score_table import ScoreTable, pooling_facts
from calibrant.errors import AdviceWarning, InputError, caller_level
from calibrant.fitting.fitted import BESIDE, Fitted, RuleReader
from calibrant.rules.base import Map, RowInputs, Rule, VectorMap
from calibrant.rules.piecewise import ScoreAt, score_at
from calibrant.version import __version__

# --- What every calibrator of scores shares: scikit-learn's contract and the saved value ----------


#: scikit-learn's metadata routing takes every argument but X and y for metadata; these are none
NOT_ROUTED: dict[str, Any] = {"scores": UNUSED, "on_range": UNUSED}
#: what only some calibrators take beside new scores
NOT_TAKEN: dict[str, Any] = dict.fromkeys(BESIDE, UNUSED)
#: a subclass may call them otherwise, and what a signature lacks can only be removed once it is
#: declared
DECLARED: dict[str, Any] = dict.fromkeys(NOT_ROUTED)
ALL_DECLARED: dict[str, Any] = dict.fromkeys(NOT_ROUTED | NOT_TAKEN)


class KeepsRule:
    """An estimator whose fitted state is a rule, the labels of its probabilities, and facts.

    A fit sets ``map_`` (or ``rule_``), ``classes_``, ``score_range_``, ``_provenance`` and, with
    two classes, ``pos_label_``.
    """

    #: the attribute that holds the rule
    _kept_as: ClassVar[str] = "map_"
    classes_: NDArray[Any]
    score_range_: ScoreRange
    _provenance: dict[str, Any]

    def to_fitted(self) -> Fitted:
        """The fitted state as a plain value, as `save` writes it."""
        check_is_fitted(self)
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        return Fitted(
            getattr(self, self._kept_as),
            tuple(plain(label) for label in self._class_labels),
            plain(getattr(self, "pos_label_", None)),
            type(self).__name__,
            {name: _jsonable(value) for name, value in params.items()},
            dict(self._provenance),
            self._fitted_range,
        )

    @property
    def _class_labels(self) -> Any:
        """The labels of the columns of probabilities."""
        return self.classes_

    @property
    def _fitted_range(self) -> ScoreRange | None:
        """The range of the scores of the fit; None for old pickles, which do not know it."""
        return getattr(self, "score_range_", None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._kept_as)


class ScoreEstimator(KeepsRule, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A calibrator as scikit-learn sees it: a classifier whose rows are scores.

    A subclass declares its parameters in ``__init__`` and their limits in ``_limits``, and writes
    ``fit``.
    """

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {}
    #: which scores of a model it calibrates
    score_method: ClassVar[str] = "auto"
    #: whether it takes more than two classes
    multiclass: ClassVar[bool] = False
    #: whether scores are one column, or several of which each has its own meaning
    _one_column: ClassVar[bool] = True
    #: what it takes beside new scores, even where the rule that was fitted does not look at it
    _takes: ClassVar[frozenset[str]] = frozenset()
    #: what the scores of a whole are of which a fit sees a part; see `ScoreTable.part_of`
    _whole: ScoreScale | None = None
    # read in the order of their names (before scikit-learn 1.8), or of the class
    _A__metadata_request__fit: ClassVar[dict[str, Any]] = DECLARED
    _A__metadata_request__predict: ClassVar[dict[str, Any]] = ALL_DECLARED
    _A__metadata_request__predict_proba: ClassVar[dict[str, Any]] = ALL_DECLARED
    __metadata_request__fit: ClassVar[dict[str, Any]] = NOT_ROUTED
    __metadata_request__predict: ClassVar[dict[str, Any]] = NOT_ROUTED | NOT_TAKEN
    __metadata_request__predict_proba: ClassVar[dict[str, Any]] = NOT_ROUTED | NOT_TAKEN

    def __init_subclass__(cls, **options: Any) -> None:
        for method in ("predict", "predict_proba"):  # read after what is declared above
            setattr(cls, f"_Z__metadata_request__{method}", dict.fromkeys(cls._takes))
        super().__init_subclass__(**options)

    @contextmanager
    def _part_of(self, whole: ScoreScale | None) -> Iterator[Self]:
        """Inside this block the calibrator is fitted to a part of the rows of a ``whole``, whose
        scale its scores have."""
        if whole is not None:
            self._whole = whole
        try:
            yield self
        finally:
            self.__dict__.pop("_whole", None)

    def _check_fit(self, scores: Any, y: Any) -> None:
        """Refuse parameters outside their limits, and a fit without labels."""
        check_parameters(self, self._limits)
        if isinstance(scores, ScoreTable):
            raise InputError(
                "scores must be a column, one per row, but a ScoreTable came, which holds scores "
                "and labels already. Use fit_table(table)."
            )
        if y is None:
            raise InputError("this calibrator requires y to be passed, but the target y is None.")

    @property
    def _rule_reader(self) -> RuleReader:
        """The rule, and how new scores are read for it."""
        check_is_fitted(self)
        rule: Rule = getattr(self, self._kept_as)
        known: dict[str, Any] = getattr(self, "_provenance", {})
        labels, positive = self._class_labels, getattr(self, "pos_label_", None)
        column = int(positive is None or labels[0] != positive)
        return RuleReader(rule, labels, column, self._fitted_range, known, self._takes)

    def predict_proba(self, scores: Any, *, on_range: OnRange = "error") -> Array:
        """The probability of each class, columns in the order of ``classes_``.

        Where the scores of the fit were probabilities, so must these be: others are refused
        (``on_range="error"``), moved to 0 or 1 (``"clip"``) or taken as they are (``"allow"``).
        """
        return self._rule_reader.of_classes(scores, RowInputs(), on_range)

    def predict(self, scores: Any, *, on_range: OnRange = "error") -> NDArray[Any]:
        """The most probable class of each row (of a tie the first of ``classes_``).

        For labels that do not exclude each other, (n, k) of 0 and 1: who is more probable than not.
        ``on_range`` is as in `predict_proba`.
        """
        return self._rule_reader.most_probable(scores, RowInputs(), on_range)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = self._one_column
        tags.input_tags.two_d_array = not self._one_column
        tags.classifier_tags.multi_class = not self._one_column
        return tags


class ScoreTransformer(TransformerMixin):  # type: ignore[misc]
    """Lets a calibrator be any step of a pipeline: scores in, columns of probabilities out."""

    map_: Map
    classes_: NDArray[Any]

    def transform(self, X: Any) -> Any:
        """Calibrated probabilities as columns, in the container that ``set_output`` names.

        Parameters
        ----------
        X : scores, as `predict_proba` takes them

        Returns
        -------
        array of shape (n, 1), or a frame
            The probability of ``pos_label_``. A calibrator of all classes' scores gives (n, k), in
            the order of ``classes_``.
        """
        check_is_fitted(self)
        if isinstance(getattr(self, "map_", None), VectorMap):
            return self.predict_proba(X)
        return np.asarray(self.calibrate(X))[:, None]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns of `transform`: "probability", or one for each class."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        if not isinstance(getattr(self, "map_", None), VectorMap):
            return np.array(["probability"], dtype=object)
        return np.array([f"probability_{label}" for label in self.classes_], dtype=object)


def _jsonable(value: Any) -> Any:
    """The parameter as JSON can hold it; its repr where it cannot."""
    value = plain(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return repr(value)


# --- The base of all calibrators of one score: fit is written once, here --------------------------


#: how a method reads scores: as they are, by their logit, or by what they look like
SCALES: OneOf = OneOf(("auto", "logit", "raw"))
#: what a weight says; see `calibrant.data.score_table`
WEIGHTS: OneOf = OneOf(tuple(score_table.WEIGHTS))


def uses_logit_scale(scale: str, table: ScoreTable) -> bool:
    """Whether a method with this ``scale`` fits to the logits of the table's scores."""
    if scale == "logit" and not table.scale.probabilities:
        low, high, _ = table.scale
        raise InputError(
            'scores must be in [0, 1] for scale="logit", but they go from '
            f'{low:g} to {high:g}. Use scale="raw" for margins and logits, or scale="auto".'
        )
    return scale == "logit" or (scale == "auto" and table.scale.probabilities)


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
        if few := few_events_warning(self, self._in_rows(table)):
            warnings.warn(few, AdviceWarning, stacklevel=caller_level())
        self._learn(table, *labels)
        self._provenance |= facts
        return self

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> Rows:
        """The checked rows of a fit; their labels may be soft."""
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
        return self._learn(table, *read_class_pair(self.classes, self.pos_label))

    def _learn(
        self,
        table: ScoreTable,
        classes: NDArray[Any],
        pos_label: Any,
        fit: Callable[[ScoreTable], Map] | None = None,
    ) -> Self:
        """Fit to a table, by `_fit` or by ``fit``, and set the fitted attributes."""
        if self._whole is not None:
            table = table.part_of(self._whole)
        self.map_ = (self._fit if fit is None else fit)(self._in_rows(table))
        self.classes_, self.pos_label_ = classes, pos_label  # after what may fail
        self.score_range_ = score_range_of_table(table)
        self._provenance = table_provenance(table)
        return self

    def _in_rows(self, table: ScoreTable) -> ScoreTable:
        """The table with weights in units of rows, as ``weights`` says what they mean."""
        return score_table.table_in_rows(table, self.weights)

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
        return self._rule_reader.positive(scores, RowInputs(), on_range)

    def score_at(self, probability: Any) -> ScoreAt:
        """Which score has this probability of ``pos_label_``? As `Fitted.score_at`.

        For maps that rise or fall throughout; others are refused. Where the map is flat the answer
        has both ends, where it jumps over the probability the first score beyond.
        """
        check_is_fitted(self)
        return score_at(self.map_, probability)


def score_range_of_table(table: ScoreTable) -> ScoreRange:
    """The range of the scores of a table that is not empty."""
    least, most = float(table.scores[0]), float(table.scores[-1])
    return ScoreRange.between(least, most, probabilities=table.scale.probabilities)


def few_events_warning(calibrator: Any, table: ScoreTable) -> str:
    """The text of the warning if a class has too few rows for the calibrator; else empty.

    Rows of unequal weight count by (Σw)²/Σw².
    """
    needed, found = calibrator.events_needed, table.rarest
    if found >= needed - 1e-9:
        return ""
    return (
        f"{type(calibrator).__name__} wants at least {needed} rows of the rarer class, but "
        f"{found:.4g} came: what it learns may be noise{_rate_range(found, table.effective_size)}. "
        "Gather more, or keep the scores as they are."
    )


def _rate_range(found: float, rows: float) -> str:
    """A phrase with Clopper and Pearson's interval of a rate, in multiples of the rate."""
    rest = max(rows - found, found)
    if found == 0.0:
        return ""
    low, high = betaincinv([found, found + 1.0], [rest + 1.0, rest], [0.05, 0.95])
    low, high = (value * (found + rest) / found for value in (low, high))
    return (
        f", and the true rate of that class may be {low:.2g} to {high:.2g} times the one seen "
        "(90 % interval)"
    )


def table_provenance(table: ScoreTable) -> dict[str, Any]:
    """Facts about the table of a fit, for its provenance."""
    return {
        "calibrant": __version__,
        "weight": table.total,
        "positive_weight": table.total_positive,
        "distinct_scores": len(table),
        "effective_size": table.effective_size,
        **pooling_facts(table),
    }


def row_provenance(weight: Array, codes: Index | None = None, classes: int = 2) -> dict[str, Any]:
    """Facts about the rows of a fit, for its provenance, from their weights and class codes."""
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
