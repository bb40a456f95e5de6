"""Several classes by way of binary models: one per column of a code, calibrated and combined."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted

from calibrant.array_types import Array, Index
from calibrant.data.columns import column_names, plain, reorder_columns
from calibrant.data.door import Limit, OneOf, Rows, check_lengths, check_parameters, read_weight
from calibrant.data.scale import ScoreRange
from calibrant.errors import (
    CalibrationWarning,
    InputError,
    ParameterError,
    caller_level,
    refuse_foreign_names,
)
from calibrant.fitting.base import Calibrator, KeepsRule, row_provenance
from calibrant.fitting.fitted import Fitted
from calibrant.fitting.folds import SPLITTING, cv_kind, split_rows
from calibrant.fitting.model_scores import (
    SCORE_METHODS,
    Method,
    ModelClassifier,
    ModelFits,
    ScoredPart,
    may_be_probabilities,
    model_classes,
    model_scores,
    model_to_fit,
    pooled_scores,
    preferred_method,
    refuse_array_api,
    score_method,
    warn_no_weights,
)
from calibrant.methods.codes.calibrator import (
    COMBINE,
    column_calibrator,
    combination_name,
    combine_column_maps,
    fit_column,
    one_sided_map,
    rows_per_column,
)
from calibrant.methods.codes.codes import Code, read_code
from calibrant.rules.base import Map
from calibrant.rules.sigmoids import Identity

#: the two sides of a column, as its models know them
SIDES = np.array([0, 1])


@dataclass(frozen=True)
class ColumnModel:
    """The model and the calibrator of a column. There is no model if one of the column's sides has
    no rows."""

    model: Any
    calibrator: Calibrator | None
    map: Map


@refuse_foreign_names
@dataclass(eq=False, repr=False)
class CodedClassifier(KeepsRule, ModelClassifier):
    """Any binary classifier, for several classes: one model per column of a code matrix.

    Each column asks a binary question (one class against the rest, one against another, or one
    set of classes against another). A model is trained for each, its scores are calibrated, and
    the calibrated probabilities are combined into a distribution over the classes.

    Parameters
    ----------
    estimator : classifier, default: LogisticRegression(max_iter=1000)
        Anything with ``fit`` and with ``predict_proba`` or ``decision_function``; cloned for each
        column, where it learns 0 and 1.
    code : {"one_vs_rest", "all_pairs", "ecoc"}, Code or matrix, default="one_vs_rest"
        One row per class in sorted order, one column per question; ``"ecoc"`` is a dense random
        code. See `calibrant.multiclass`.
    calibrator : Calibrator, name or None, default="isotonic"
        Of one score; cloned for each column. None takes the models' ``predict_proba`` at its word.
    combine : {"auto", "normalize", "least_squares", "coupling", "pairwise"}, default="auto"
        ``"auto"`` normalises one-vs-rest and couples any other code.
    cv : int, None (5), splitter, iterable of splits, float or "train", default=3
        Where the calibrators' scores come from, as in `CalibratedClassifier`: scores of rows left
        out of folds, with the model fitted again on all rows; of a fraction held out, whose rows
        the models never see; or of the training rows themselves. Without calibrator it plays no
        part.
    response_method : str or callable, default="auto"
        ``"auto"``, ``"raw_score"``, ``"predict_proba"``, ``"decision_function"`` or a function.
        Where a model's scores come from, as in `CalibratedClassifier`.
    random_state : int, RandomState or None, default=None
        Draws the rows held out by a float ``cv``.
    n_jobs : int or None, default=None
        How many columns are fitted at a time, as in joblib.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted; the columns of `predict_proba`.
    code_ : Code
        The code that was used.
    estimators_ : list of fitted models
        One per column; None for a column of which one side has no rows.
    calibrators_ : list of fitted calibrators
        One per column, None where there is none.
    map_ : Coded
        From the models' scores to the distribution, a value.
    n_features_in_, feature_names_in_
        As the models have them.

    Notes
    -----
    A column is trained and calibrated on the rows of its own classes. Folds are the same for all
    columns and need not hold every class: a fold whose training rows lack one side of a column is
    left out of that column, and if the rows held out by the others lack one, it is calibrated on
    its training rows, with a warning. With ``combine="coupling"`` columns count by the weight of
    their rows.

    Cost: (folds + 1) fits of a model per column, and O(n log n) for its calibrator. One-vs-rest
    has k columns of all rows, all pairs k(k−1)/2 columns of two classes' rows.

    References
    ----------
    .. [1] B. Zadrozny, C. Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", 2002, doi:10.1145/775047.775151.
    .. [2] E. Allwein, R. Schapire, Y. Singer, "Reducing multiclass to binary", 2000.

    Examples
    --------
    >>> import calibrant as cal
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CodedClassifier(GaussianNB(), code="all_pairs", calibrator=cal.Platt()).fit(X, y)
    >>> model.predict_proba(X[[0, 70, 120]]).round(2).tolist()
    [[0.94, 0.06, 0.0], [0.03, 0.43, 0.55], [0.0, 0.0, 1.0]]
    """

    estimator: Any = None
    _: KW_ONLY
    code: Any = "one_vs_rest"
    calibrator: Any = "isotonic"
    combine: str = "auto"
    cv: Any = 3
    response_method: Method = "auto"
    random_state: Any = None
    n_jobs: int | None = None

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {"combine": (OneOf(COMBINE),)}

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Train and calibrate a model for each column.

        Parameters
        ----------
        X : rows
            Whatever the estimator takes, such that rows can be picked.
        y : array-like of shape (n,)
            Labels: two or more values of any kind.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0, for the models and the calibrators.
        groups : array-like of shape (n,), optional
            Rows of one group stay on one side of every split.
        """
        check_parameters(self, self._limits)
        kind = cv_kind(self.cv, "CodedClassifier")
        if kind == "prefit":
            raise ParameterError(
                'cv="prefit" has no meaning here: models are made for each column. To calibrate '
                "scores that exist, use CodedCalibrator."
            )
        estimator = model_to_fit(self.estimator)
        calibrator = None if self.calibrator is None else column_calibrator(self.calibrator)
        refuse_array_api(X, estimator)
        classes, codes = model_classes(y)
        (X,) = indexable(X)
        check_lengths(X=_num_samples(X), y=len(codes))
        weight = read_weight(sample_weight, len(codes))
        warn_no_weights(estimator, weight)
        present = np.unique(codes if weight is None else codes[weight > 0])
        if len(present) < 2:
            raise InputError(
                "y must hold at least two classes in rows of positive weight, but only one class "
                f"came: {plain(classes[present[0]])!r}."
            )
        code = read_code(self.code, len(classes))
        combination_name(self.combine, code)  # a wrong pair is refused before any model is trained
        rows = Rows.unscored(X, codes, weight, classes)
        fits = ModelFits(estimator, self._method(estimator, calibrator))
        pairs = []
        if calibrator is not None and kind in SPLITTING:
            pairs = split_rows(self.cv, rows, groups, self.random_state, complete=False)
        columns = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_column_model)(rows, fits, code.matrix[codes, b], calibrator, pairs, kind)
            for b in range(len(code))
        )
        self._used_method = fits.method
        self._keep(rows, code, columns, calibrator)
        self._columns = column_names(X)
        return self

    def _method(self, estimator: Any, calibrator: Calibrator | None) -> Method:
        """Where the models' scores come from, checked."""
        if not callable(self.response_method):
            check_parameters(self, {"response_method": (OneOf(tuple(SCORE_METHODS)),)})
        if calibrator is not None:
            return preferred_method(self.response_method, calibrator)
        if callable(self.response_method) or self.response_method not in ("auto", "predict_proba"):
            raise ParameterError(
                "without calibrator, response_method must be 'auto' or 'predict_proba', but "
                f"{self.response_method!r} came: other scores are no probabilities."
            )
        if not hasattr(estimator, "predict_proba"):
            raise ParameterError(
                "without calibrator, estimator must have predict_proba, but "
                f"{type(estimator).__name__} has not. Give a calibrator."
            )
        return "predict_proba"

    def _keep(
        self,
        rows: Rows,
        code: Code,
        columns: list[ColumnModel],
        calibrator: Calibrator | None,
    ) -> None:
        counts = np.ones(len(rows.codes)) if rows.weight is None else rows.weight
        totals = rows_per_column(code.matrix[rows.codes], rows.weight, calibrator)
        self.map_ = combine_column_maps(
            self.combine, code, [column.map for column in columns], totals
        )
        self.classes_, self.code_ = rows.classes, code
        self.estimators_ = [column.model for column in columns]
        self.calibrators_ = [column.calibrator for column in columns]
        self.score_range_ = self._range()
        self._provenance = row_provenance(counts, rows.codes, len(rows.classes))
        first = next(column.model for column in columns if column.model is not None)
        self._keep_feature_names(first)

    def _range(self) -> ScoreRange:
        """The scores that the calibrators were fitted on; without any, probabilities."""
        ranges = [one.score_range_ for one in self.calibrators_ if one is not None]
        if not ranges:
            return ScoreRange("probability", 0.0, 1.0)
        first = next(model for model in self.estimators_ if model is not None)
        return ScoreRange.between(
            min(one.low for one in ranges),
            max(one.high for one in ranges),
            probabilities=may_be_probabilities(first, self._used_method),
        )

    def scores(self, X: Any) -> Array:
        """The models' scores of the rows, one column for each question. ``map_`` takes them.

        A frame with the columns of the fit in another order is brought into that order. As many
        columns of other names are refused.
        """
        check_is_fitted(self)
        X = reorder_columns(X, getattr(self, "_columns", ()), "X")
        refuse_array_api(X, self)
        columns = [
            None if model is None else model_scores(model, X, SIDES, 1, self._used_method)
            for model in self.estimators_
        ]
        n = next(len(column) for column in columns if column is not None)
        return np.column_stack([np.zeros(n) if column is None else column for column in columns])

    def _probabilities(self, X: Any) -> Array:
        scores = self.scores(X)  # refuses what is not fitted
        return self.map_(scores)

    def to_fitted(self) -> Fitted:
        """The calibrators and the combination as a plain value for `save`: a map of `scores`.

        The models themselves are not in it.
        """
        check_is_fitted(self)
        first = next(model for model in self.estimators_ if model is not None)
        note = {
            "input": score_method(first, self._used_method) or "function",
            "model": type(first).__name__,
            "note": "maps scores of the models, which are not saved here",
        }
        fitted = super().to_fitted()
        return replace(fitted, provenance={**fitted.provenance, **note})


def _fit_column_model(
    rows: Rows,
    fits: ModelFits,
    signs: NDArray[np.int8],
    calibrator: Calibrator | None,
    pairs: list[Any],
    kind: str,
) -> ColumnModel:
    """The model and the calibrator of one column, from the rows that play a part in it."""
    always = one_sided_map(signs, rows.weight, calibrator)
    if always is not None:
        return ColumnModel(None, None, always)
    data = Rows.unscored(rows.X, (signs > 0).astype(np.intp), rows.weight, SIDES)
    used = np.flatnonzero(signs != 0)
    everyone = used if len(used) < len(signs) else None
    if calibrator is None:
        return ColumnModel(fits.fit(data, everyone), None, Identity())
    whole = []
    for train, test in pairs:
        inside = train[signs[train] != 0], test[signs[test] != 0]
        if _has_both_sides(data, inside[0]) and len(inside[1]):
            whole.append(inside)
    if whole and not _has_both_sides(data, np.concatenate([test for _, test in whole])):
        whole = []
    if kind in SPLITTING and not whole:
        warnings.warn(
            "a column of the code has too few rows of one side to be held out: it is calibrated on "
            "the rows that its model was trained on, and its probabilities may be too sure.",
            CalibrationWarning,
            stacklevel=caller_level(),
        )
    if not whole:
        model, scores = fits.fit_and_score(data, everyone, everyone)
        parts: list[ScoredPart] = [(scores, used)]
    else:
        scored = [fits.fit_and_score(data, train, test) for train, test in whole]
        parts = [(part, test) for (_, part), (_, test) in zip(scored, whole, strict=True)]
        model = scored[0][0] if kind == "fraction" else fits.fit(data, everyone)
    one = clone(calibrator)
    with pooled_scores(one, data, parts) as (scores, tested, weight):
        fitted = fit_column(one, scores, signs[tested], weight)
    return ColumnModel(model, fitted, Identity() if fitted is None else fitted.map_)


def _has_both_sides(data: Rows, rows: Index) -> bool:
    """Whether some of these rows are positive in a column, and some negative."""
    return len(rows) > 0 and bool((data.class_counts(rows) > 0).all())
