"""The bases of all calibrators: of one score, of all classes' scores, and of more than scores.

scikit-learn's contract, reading rows and predicting are written once, here; so is `fit`, but for
calibrators that need more of a row than its scores.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from calibrant.array_types import Array, Index
from calibrant.data import score_table
from calibrant.data.attributes import AttributeTable, Schema, read_attributes
from calibrant.data.columns import plain, score_column_facts, to_matrix
from calibrant.data.door import (
    Limit,
    Number,
    OneOf,
    Rows,
    check_lengths,
    check_parameters,
    check_two_column_order,
    read_binary,
    read_class_labels,
    read_class_pair,
    read_labels,
    read_scores,
    read_sorted_classes,
    read_weight,
)
from calibrant.data.scale import OnRange, ScoreRange, ScoreScale
from calibrant.data.score_matrix import ScoreMatrix, read_matrix, read_score_matrix
from calibrant.data.score_table import ScoreTable, pooling_facts, weight_in_rows
from calibrant.errors import AdviceWarning, CalibrationWarning, InputError, caller_level
from calibrant.fitting.fitted import BESIDE, Fitted, PredictsByRule, RuleReader
from calibrant.losses import SMALLEST
from calibrant.rules.base import Map, RowInputs, Rule, VectorMap
from calibrant.rules.piecewise import ScoreAt, score_at
from calibrant.rules.softmax import Softmax
from calibrant.solvers.softmax import BlockSums, TemperatureSums, fit_temperature
from calibrant.tensors import as_came, on_host
from calibrant.version import __version__

if TYPE_CHECKING:
    from calibrant.fitting.model_scores import Method

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
            self.score_range_,
        )

    @property
    def _class_labels(self) -> Any:
        """The labels of the columns of probabilities."""
        return self.classes_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._kept_as)


class ScoreEstimator(KeepsRule, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A calibrator as scikit-learn sees it: a classifier whose rows are scores.

    A subclass is a dataclass whose fields are its parameters. It declares their limits in
    ``_limits``, and writes ``fit``.
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
    #: the scale of all scores, where a fit sees only a part of them; see `ScoreTable.part_of`
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
        """Inside this block, a fit reads its scores on the scale of a ``whole`` of which its rows
        are a part."""
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
        """The fitted rule, with what it takes to read new scores for it."""
        check_is_fitted(self)
        rule: Rule = getattr(self, self._kept_as)
        labels, positive = self._class_labels, getattr(self, "pos_label_", None)
        column = int(positive is None or labels[0] != positive)
        facts = self._provenance
        return RuleReader(rule, labels, column, self.score_range_, facts, self._takes)

    def predict_proba(self, scores: ArrayLike, *, on_range: OnRange = "error") -> Array:
        """The probability of each class, columns in the order of ``classes_``.

        Where the scores of the fit were probabilities, so must these be: others are refused
        (``on_range="error"``), moved to 0 or 1 (``"clip"``) or taken as they are (``"allow"``).
        """
        return self._rule_reader.of_classes(scores, RowInputs(), on_range)

    def predict(self, scores: ArrayLike, *, on_range: OnRange = "error") -> NDArray[Any]:
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
        return as_came(X, np.asarray(on_host(self.calibrate(X)))[:, None])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns of `transform`: "probability", or one for each class."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        if not isinstance(getattr(self, "map_", None), VectorMap):
            return np.array(["probability"], dtype=object)
        return np.array([f"probability_{label}" for label in self.classes_], dtype=object)


def _jsonable(value: Any) -> Any:
    """A parameter as JSON can hold it: as it is, or else its repr."""
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
#: whether a high score means the positive label, or a low one; "auto": as the labels say
DIRECTIONS: OneOf = OneOf(("rising", "falling", "auto"))


def uses_logit_scale(scale: str, table: ScoreTable) -> bool:
    """Whether a method with this ``scale`` reads the scores of a table by their logits."""
    if scale == "logit" and not table.scale.probabilities:
        low, high, _ = table.scale
        raise InputError(
            'scores must be in [0, 1] for scale="logit", but they go from '
            f'{low:g} to {high:g}. Use scale="raw" for margins and logits, or scale="auto".'
        )
    return scale == "logit" or (scale == "auto" and table.scale.probabilities)


class Calibrator(ScoreTransformer, ScoreEstimator):
    """Turns scores and labels into a map from scores to probabilities.

    A subclass is a dataclass whose fields are its parameters. It declares their limits in
    ``_limits``, and gives ``_fit(table) -> Map``. All else (labels, weights, checks, scikit-learn's
    contract, saving) is here.

    Parameters
    ----------
    weights : {"importance", "counts"}, default="importance"
        What ``sample_weight`` means. ``"importance"``: how much a row matters. A common factor of
        all weights changes nothing, and the number of rows is taken as (Σw)²/Σw². ``"counts"``: how
        many equal rows it stands for, so that a weight of 2 is two rows (at most 2⁵³ in all).
        Methods for which only the ratios of weights matter do not have this parameter.
    direction : {"rising", "falling", "auto"}, default="rising"
        Whether a high score means ``pos_label``, or a low one, as of credit scores. ``"falling"``
        reads probabilities s as 1 − s, percentages as 100 − s and all other scores as −s. The map
        takes scores as they came. ``"auto"`` takes the side that the labels show, by the sign of
        Spearman's ρ. Of scores that are the probability of the other class, name that class in
        ``pos_label`` instead.
    pos_label : label, default: the larger class
        The class whose probability is wanted: what a high score means, unless scores fall.
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
    direction_ : {"rising", "falling"}
        How the scores were read. Other attributes of a fit are those of the scores as read.
    score_range_ : ScoreRange
        The scores that it was fitted on: whether they are probabilities, and from where to where.
    """

    #: with fewer rows of the rarer class than this, `fit` warns
    events_needed: ClassVar[int] = 0

    weights: str | None = None
    direction: str = "rising"
    pos_label: Any
    classes: Any
    pos_label_: Any
    direction_: str

    def fit(
        self, scores: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
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
        direction = direction_of(table, self.direction)
        read = table.mirrored() if direction == "falling" else table
        fitted = (self._fit if fit is None else fit)(self._in_rows(read))
        self.map_ = fitted.mirrored(table.scale.centre) if direction == "falling" else fitted
        self.direction_ = direction
        self.classes_, self.pos_label_ = classes, pos_label  # after what may fail
        self.score_range_, self._provenance = facts_of_table(table)
        return self

    def _in_rows(self, table: ScoreTable) -> ScoreTable:
        """The table with its weights in units of rows. The parameter ``weights`` says what they
        mean."""
        return score_table.table_in_rows(table, self.weights)

    @abstractmethod
    def _fit(self, table: ScoreTable) -> Map:
        """The map for a table that is not empty, with weights in units of rows.

        May set further ``name_`` attributes.
        """

    def calibrate(self, scores: ArrayLike, *, on_range: OnRange = "error") -> Any:
        """The calibrated probability of ``pos_label_`` for each score, shape (n,).

        A NumPy array; of a pandas or Polars series, a series with its index. Where the scores of
        the fit were probabilities, so must these be: others are refused (``on_range="error"``),
        moved to 0 or 1 (``"clip"``) or taken as they are (``"allow"``).
        """
        return self._rule_reader.positive(scores, RowInputs(), on_range)

    def score_at(self, probability: Any) -> ScoreAt:
        """The score that has this probability of ``pos_label_``; as `Fitted.score_at`.

        The map must rise or fall throughout. Where it is flat the answer has both ends. Where it
        jumps over the probability, it is the first score beyond the jump.
        """
        check_is_fitted(self)
        return score_at(self.map_, probability)


def direction_of(table: ScoreTable, asked: str) -> str:
    """Whether the map of a table rises or falls. For "auto" the labels decide."""
    if asked != "auto":
        return asked
    return "rising" if rises_with_labels(table) else "falling"


def rises_with_labels(table: ScoreTable) -> bool:
    """Whether Spearman's ρ of scores and labels, weighted, is ≥ 0.

    Warns where the 95 % interval of ρ (Fisher's z) contains 0, since either may be true then.
    """
    n0, n1 = table.negative / table.total, table.positive / table.total
    n = n0 + n1
    rank = np.cumsum(n) - n / 2.0 - 0.5
    share = float(n1.sum())
    with_label = float(rank @ n1)  # the covariance of ranks and labels
    spread = math.sqrt(float(n @ rank**2) * share * (1.0 - share))
    if spread == 0.0:
        return True
    rho, size = min(max(with_label / spread, -1.0), 1.0), table.effective_size
    if size > 3.0 and abs(rho) < 1.0 and abs(math.atanh(rho)) * math.sqrt(size - 3.0) <= 1.96:
        warnings.warn(
            f"whether the map should rise or fall is not sure: Spearman's ρ of scores and labels "
            f"is {rho:.3g}, no more than chance allows with {size:.4g} rows. Say it: "
            'direction="rising" or "falling".',
            CalibrationWarning,
            stacklevel=caller_level(),
        )
    return rho >= 0.0


def few_events_warning(calibrator: Any, table: ScoreTable) -> str:
    """The text of a warning if a class has too few rows for the calibrator; otherwise empty.

    Rows of unequal weight count by (Σw)²/Σw².
    """
    needed, found = calibrator.events_needed, table.rarest
    if found >= needed - 1e-9:
        return ""
    interval = ""
    if found > 0.0:  # Clopper and Pearson's, of the rate of that class
        rest = max(table.effective_size - found, found)
        ends = betaincinv([found, found + 1.0], [rest + 1.0, rest], [0.05, 0.95])
        low, high = (value * (found + rest) / found for value in ends)
        interval = (
            f", and the true rate of that class may be {low:.2g} to {high:.2g} times the one seen "
            "(90 % interval)"
        )
    return (
        f"{type(calibrator).__name__} wants at least {needed} rows of the rarer class, but "
        f"{found:.4g} came: what it learns may be noise{interval}. Gather more, or keep the scores "
        "as they are."
    )


def facts_of_table(table: ScoreTable) -> tuple[ScoreRange, dict[str, Any]]:
    """The range of a table's scores, and facts for the provenance of a fit. The table must not be
    empty."""
    least, most = float(table.scores[0]), float(table.scores[-1])
    return ScoreRange.between(least, most, probabilities=table.scale.probabilities), {
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


# --- The base of calibrators of all classes' scores at once ---------------------------------------


#: limits of ``label_smoothing``
LABEL_SMOOTHING: Number = Number(0.0, 0.999)
#: features of up to so many numbers are kept between the passes of a fit; more are made anew
KEPT = 1 << 22
#: a matrix of more numbers than this gets a first, rough temperature from some of its rows
ROUGH = 1 << 20


class ReadsClassScores:
    """A calibrator whose map takes one column of scores for each class."""

    map_: Any
    classes_: NDArray[Any]
    predict_proba: Callable[..., Array]

    def _learn_rows(
        self, fitted: VectorMap, matrix: ScoreMatrix, classes: NDArray[Any], scores: Any
    ) -> None:
        """Set the fitted attributes: the map, the classes, and facts about the scores."""
        self.map_, self.classes_ = fitted, classes
        self.score_range_, facts = facts_of_matrix(matrix, fitted)
        self._provenance = facts | score_column_facts(scores)

    def top_label(
        self, scores: ArrayLike, *, on_range: OnRange = "error"
    ) -> tuple[NDArray[Any], Array]:
        """The most probable class of each row, and its probability: the confidence."""
        p = self.predict_proba(scores, on_range=on_range)
        best = np.argmax(p, axis=1)
        return self.classes_[best], p[np.arange(len(p)), best]

    def class_wise(self, scores: ArrayLike, label: Any, *, on_range: OnRange = "error") -> Array:
        """The probability of one class, shape (n,)."""
        known = [plain(c) for c in self.classes_]
        if label not in known:
            raise InputError(f"label must be one of the classes {known[:20]}, but {label!r} came.")
        return self.predict_proba(scores, on_range=on_range)[:, known.index(label)]


class VectorCalibrator(ScoreTransformer, ScoreEstimator, ReadsClassScores):
    """Turns (n, k) scores and labels of k classes into a map to distributions.

    A subclass is a dataclass whose fields are its parameters. It declares their limits in
    ``_limits``, and gives ``_fit(matrix) -> VectorMap``. All else (labels, weights, checks,
    scikit-learn's contract, saving) is here.

    Parameters
    ----------
    weights : {"importance", "counts"}, default="importance"
        See `Calibrator`.
    classes : k labels, default: those found in y, sorted
        Column j of the scores is the j-th class. Needed where columns have another order, or where
        y may lack some classes, unless labels are whole numbers from 0 to k − 1.

    Attributes
    ----------
    map_ : VectorMap
        The fitted function, a value.
    classes_ : ndarray of shape (k,)
        The labels, sorted or as ``classes`` names them; the columns of the scores and of
        `predict_proba`.
    score_range_ : ScoreRange
        The scores that it was fitted on: whether they are probabilities, and from where to where.
    """

    multiclass: ClassVar[bool] = True
    _one_column: ClassVar[bool] = False

    weights: str | None = None
    classes: Any
    map_: VectorMap

    def fit(
        self, scores: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the map.

        Parameters
        ----------
        scores : array-like of shape (n, k)
            A score of each row for each of two or more classes, such as the logits of a network or
            a predict_proba; column j belongs to the j-th of ``classes_``.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        """
        self._check_fit(scores, y)
        matrix, classes = self._read(scores, y, sample_weight)
        if self._whole is not None:
            matrix = replace(matrix, whole=self._whole)
        weight = weight_in_rows(matrix.weight, self.weights)
        fitted = self._fit(replace(matrix, weight=weight))
        self._learn_rows(fitted, matrix, classes, scores)
        self.n_features_in_ = matrix.n_classes
        return self

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> tuple[ScoreMatrix, NDArray[Any]]:
        """The matrix of the rows, and the classes; a subclass may leave tensors on their device."""
        return read_matrix(scores, y, sample_weight, self.classes)

    @abstractmethod
    def _fit(self, matrix: ScoreMatrix) -> VectorMap:
        """The map for a matrix whose weights are in units of rows.

        May set further ``name_`` attributes.
        """


class OneScoreOrMany(Calibrator, ReadsClassScores):
    """A calibrator of one score, or of a column for each of three or more classes."""

    multiclass: ClassVar[bool] = True

    def _learn_rows(
        self, fitted: VectorMap, matrix: ScoreMatrix, classes: NDArray[Any], scores: Any
    ) -> None:
        super()._learn_rows(fitted, matrix, classes, scores)
        self.pos_label_ = None

    def _refuse_pos_label(self) -> None:
        """Refuse ``pos_label`` and another direction beside several classes."""
        if self.direction != "rising":
            raise InputError(
                'direction must be "rising" for scores of several classes, but '
                f"{self.direction!r} came."
            )
        if self.pos_label is not None:
            raise InputError(
                "pos_label must be None for scores of several classes, but "
                f"{self.pos_label!r} came."
            )


def count_columns(scores: Any) -> int:
    """The number of columns of scores; 1 for scores in one dimension."""
    shape = getattr(scores, "shape", None)
    if not isinstance(shape, tuple):
        shape = to_matrix(scores, "scores").shape
    return int(shape[1]) if len(shape) == 2 else 1


def facts_of_matrix(matrix: ScoreMatrix, fitted: VectorMap) -> tuple[ScoreRange, dict[str, Any]]:
    """The range of a matrix's scores, and facts for the provenance of a fit. Logits never count as
    probabilities."""
    return ScoreRange.between(*matrix.ends, probabilities=fitted.reads != "logit"), {
        "calibrant": __version__,
        "weight": matrix.total,
        "class_weights": matrix.class_weight.tolist(),
        "rows": len(matrix),
        "effective_size": matrix.effective_size,
    }


@dataclass(frozen=True)
class RowReading:
    """The rows of a matrix, and whether they are logits or probabilities.

    ``input`` is "logit" or "probability". Probabilities are raised to at least ``floor``.
    `calibrant.maps.Softmax` reads new rows the same way, and explains ``inner``.
    """

    matrix: ScoreMatrix
    input: str
    floor: float

    def map(self, matrix: Any, bias: Any, inner: float | None = None) -> Softmax:
        """The map softmax(matrix·x + bias) that reads rows x this way."""
        return Softmax(matrix, bias, self.input, self.floor, inner)

    def source(
        self, *, inner: float | None = None, size: float = 1.0
    ) -> Callable[[], Iterator[tuple[Array, Index, Array]]]:
        """A function that yields (features / size, codes, weights) of each block of rows."""
        reader = self.map(1.0, np.zeros(self.matrix.n_classes), inner)
        matrix, totals = self.matrix, None
        small = matrix.size <= KEPT
        if inner is not None and not small:  # found once, and not again in each pass
            totals = np.concatenate([reader.log_totals(x) for x, _, _ in matrix.blocks()])

        def blocks() -> Iterator[tuple[Array, Index, Array]]:
            start = 0
            for scores, codes, weight in matrix.blocks():
                stop = start + len(codes)
                x = reader.features(scores, None if totals is None else totals[start:stop])
                if size != 1.0:
                    x /= size
                start = stop
                yield x, codes, weight

        if not small:
            return blocks
        kept = list(blocks())
        return lambda: iter(kept)

    def temperature(self, *, smoothing: float = 0.0) -> float:
        """The factor 1/T for the best temperature T."""
        step, start = -(-self.matrix.size // ROUGH), None
        if step > 1:  # a pass over all rows takes long: begin near the optimum
            some = replace(self, matrix=self.matrix.every(step))
            start = fit_temperature(some.sums(), smoothing=smoothing)
        return fit_temperature(self.sums(), smoothing=smoothing, start=start)

    def sums(self) -> TemperatureSums:
        """The sums over rows that a fit of a temperature needs."""
        fused = self.matrix.temperature_sums() if self.input == "logit" else None
        return BlockSums(self.source()) if fused is None else fused


def read_as(matrix: ScoreMatrix, scale: str) -> RowReading:
    """The rows of a matrix, read on the ``scale`` of a calibrator.

    ``"logit"``: they are probabilities, whose logarithm is taken. ``"raw"``: they are logits.
    ``"auto"``: the scores themselves decide. Probabilities are raised to at least half the smallest
    positive one. So a zero, which a model may have rounded, costs no more than the finest step that
    the model can make.
    """
    if scale == "logit":
        matrix.check_distributions()
    if scale == "raw" or (scale == "auto" and matrix.kind() == "logit"):
        return RowReading(matrix, "logit", SMALLEST)
    return RowReading(matrix, "probability", max(0.5 * matrix.smallest_positive, SMALLEST))


# --- The base of calibrators that need more than a score ------------------------------------------


class LocalCalibrator(PredictsByRule, ScoreEstimator):
    """Turns scores, labels and what else is known of each row into a rule.

    A subclass is a dataclass whose fields are its parameters. It declares their limits, and what it
    needs beside new scores (``_takes``). It writes ``fit`` with the arguments that it needs, by
    means of `_read` and `_keep`.

    Attributes
    ----------
    rule_ : Rule
        The fitted function, a value.
    classes_ : ndarray of shape (k,)
        The labels, sorted (more than two as ``classes`` names them); the columns of
        `predict_proba`.
    pos_label_ : label
        With two classes: the one whose probability `calibrate` gives; else None.
    """

    _kept_as: ClassVar[str] = "rule_"

    weights: str
    pos_label: Any
    classes: Any
    rule_: Rule
    pos_label_: Any

    @abstractmethod
    def fit_rows(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        X: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        inputs: RowInputs | None = None,
    ) -> Self:
        """Fit to a model's scores of the rows X.

        Rows of one group are a single row that was scored several times. ``inputs`` are what the
        models' `companion` functions give for these rows, if the calibrator `judges_inputs`.
        """

    @property
    def judges_inputs(self) -> bool:
        """Whether `fit_rows` needs the argument ``inputs``."""
        return False

    def companion(
        self, model: Any, train: Rows | None, rows: Index | None, method: Method = "auto"
    ) -> Callable[[Any], RowInputs]:
        """A function from new rows of a model to the inputs that `predict_rows` needs beside
        scores.

        By default the rows themselves are the features. The model was fitted to the ``rows`` of
        ``train`` (None: all of them). ``train`` is None if nobody knows its training rows.
        ``method`` says how the model is asked for scores.
        """
        return RowInputs

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> Rows:
        """The rows of a fit, checked, without those of weight zero."""
        self._check_fit(scores, y)
        rows = self._read_labels(y)
        classes, k = rows.classes, len(rows.classes)
        given = count_columns(scores) if self.multiclass else k
        if given not in ((1, 2) if k == 2 else (k,)):
            raise InputError(
                f"scores must have one column for each class, but {given} columns came, and "
                f"{'only ' if given > k else ''}{[plain(c) for c in classes][:20]} are known. If y "
                "lacks some of the classes, name them all: classes=[...]."
            )
        if k == 2:
            check_two_column_order(scores, self.classes, classes)
            clean = read_scores(scores, positive_column=rows.positive_column, classes=classes)
        else:
            clean = read_score_matrix(scores, k, classes=classes).astype(np.float64) + 0.0
        check_lengths(scores=len(clean), y=len(rows.codes))
        weight, columns = read_weight(sample_weight, len(clean)), score_column_facts(scores)
        rows = replace(rows, scores=clean, weight=weight, columns=columns, scale=self._whole)
        return rows.without_weightless()

    def _read_labels(self, y: Any) -> Rows:
        """Rows without scores, of two classes. If the calibrator takes more classes, there may be
        more."""
        if self.multiclass:
            many, codes = read_class_labels(y, self.classes)
            if len(many) > 2:
                if self.pos_label is not None:
                    raise InputError(
                        f"pos_label must be None with {len(many)} classes, but "
                        f"{self.pos_label!r} came."
                    )
                return Rows(np.empty(0), codes, None, many, None)
        try:
            two = read_labels(y, pos_label=self.pos_label, classes=self.classes)
        except InputError:
            many = read_sorted_classes(y)[0]
            if len(many) < 3:
                raise
            raise InputError(
                f"{type(self).__name__} is for two classes (Only binary classification is "
                f"supported), but y holds {len(many)}: {[plain(c) for c in many][:20]}. Calibrate "
                "one class against the rest, or all of them at once with SimilarityBinning."
            ) from None
        return replace(two, codes=two.positive.astype(np.intp))

    def _keep(self, rule: Rule, rows: Rows) -> Self:
        """Set the fitted attributes: the rule, the labels, and facts about the rows."""
        self.rule_ = rule
        self.classes_, self.pos_label_ = rows.classes, rows.pos_label
        self.score_range_ = ScoreRange.between(float(rows.scores.min()), float(rows.scores.max()))
        weight = np.ones(len(rows.codes)) if rows.weight is None else rows.weight
        self._provenance = row_provenance(weight, rows.codes, len(rows.classes))
        if len(rows.classes) == 2:
            self._provenance["positive_weight"] = self._provenance.pop("class_weights")[1]
        self._provenance |= rows.columns
        if unused := self._takes - rule.needs:  # a gate kept a map of the score
            self._provenance["unused"] = sorted(unused)
        return self

    def predict_rows(self, scores: ArrayLike, rows: RowInputs) -> Array:
        """The probability of each class. Scores may lie outside the range of the fit.

        ``rows`` are the inputs that the function of `companion` gives.
        """
        return self._rule_reader.of_classes(scores, rows, "allow")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.multiclass
        return tags


class ReadsFeatures:
    """A local calibrator that reads the features of each row."""

    _takes: ClassVar[frozenset[str]] = frozenset({"features"})
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def _read_features(
        self, features: Any, rows: Rows, nominal: Any
    ) -> tuple[AttributeTable, Schema]:
        """The features of the rows that count, and the schema of their columns."""
        table = read_attributes(features)
        check_lengths(scores=len(rows.kept), features=len(table))
        table = table.take(rows.kept)
        return table, Schema.learn(table, nominal)

    def _keep_names(self, schema: Schema) -> None:
        """Set the number of features, and their names where all of them are text."""
        self.n_features_in_ = len(schema)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if schema.named and all(isinstance(a.name, str) for a in schema.attributes):
            self.feature_names_in_ = np.array([a.name for a in schema.attributes], dtype=object)
