"""Several labels that do not exclude each other: one map per column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from calibrant.data.score_range import OnRange, ScoreRange, check_range
from calibrant.data.to_numpy import refuse_unordered, to_incomplete
from calibrant.data.validation import check_lengths, read_weight
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.base import NOT_ROUTED, Calibrator, jsonable, known_range, row_facts
from calibrant.estimators.fitted import Fitted
from calibrant.maps import Columns
from calibrant.multiclass.code_columns import (
    column_calibrator,
    fit_column,
    range_of_columns,
    read_column_scores,
)

__all__ = ["MultiLabelCalibrator"]

Array = NDArray[np.float64]


class MultiLabelCalibrator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """One calibrator per label, where a row may have any number of labels.

    Parameters
    ----------
    calibrator : Calibrator or name, such as "isotonic"
        Of one score; cloned for each column.
    labels : names, default: those of the target's columns, else 0, 1, …
        What the columns are called.

    Attributes
    ----------
    map_ : Columns
        The fitted function of the score matrix, a value.
    labels_ : tuple
        What the columns are called.
    calibrators_ : list of fitted calibrators, one per column

    Notes
    -----
    Columns are calibrated one by one and never normalised: their probabilities need not sum to one.
    A label that is not known (NaN or None) is left out of its own column only, so rows may be
    partly labelled. A column needs at least one known label. Cost: one fit per column, O(n log n)
    each.

    Examples
    --------
    >>> import calibrant as cal, numpy as np
    >>> scores = np.array([[0.9, 0.2], [0.8, 0.7], [0.3, 0.6], [0.1, 0.1]] * 5)
    >>> Y = np.array([[1, 0], [0, 1], [0, np.nan], [0, 0]] * 5)
    >>> c = MultiLabelCalibrator(cal.Platt()).fit(scores, Y)
    >>> c.predict_proba([[0.9, 0.6]]).round(2).tolist()
    [[0.6, 0.73]]
    """

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"scores": UNUSED}
    __metadata_request__predict: ClassVar[dict[str, Any]] = NOT_ROUTED
    __metadata_request__predict_proba: ClassVar[dict[str, Any]] = NOT_ROUTED

    map_: Columns
    score_range_: ScoreRange
    labels_: tuple[Any, ...]
    calibrators_: list[Calibrator]

    def __init__(self, calibrator: Calibrator | str | None = None, *, labels: Any = None) -> None:
        self.calibrator = calibrator
        self.labels = labels

    def fit(self, scores: Any, Y: Any = None, sample_weight: Any = None) -> Self:
        """Fit one map per column.

        Parameters
        ----------
        scores : array-like of shape (n, k)
            A score for each label, high where the row has it.
        Y : array-like of shape (n, k)
            1 or True where the row has the label, 0 or False where not, NaN or None where unknown.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        """
        if self.calibrator is None:
            raise ParameterError('calibrator must be given, such as Platt() or "isotonic".')
        calibrator = column_calibrator(self.calibrator)
        if Y is None:
            raise InputError(
                "this calibrator requires y to be passed, but the target y is None. Here it is Y, "
                "with a column for each label."
            )
        signs, found = read_targets(Y)
        names = self._names(found, signs.shape[1])
        matrix = read_column_scores(scores, signs.shape[1], names)
        check_lengths(scores=len(matrix), Y=len(signs))
        weight = read_weight(sample_weight, len(signs))
        counts = np.ones(len(signs)) if weight is None else weight
        unknown = np.flatnonzero(counts @ (signs != 0) == 0)
        if len(unknown):
            raise InputError(
                "every label must be known for some row of positive weight, but "
                f"{names[unknown[0]]!r} (column {unknown[0]}) is known for none. Drop the column."
            )
        fitted = []
        for j in range(len(names)):
            one = fit_column(calibrator, matrix[:, j].astype(float), signs[:, j], weight)
            if one is not None:
                fitted.append(one)
        self.map_ = Columns(tuple(one.map_ for one in fitted))
        self.calibrators_, self.labels_ = fitted, names
        self.score_range_ = range_of_columns(matrix, weight)
        self._provenance = {**row_facts(counts), "known_labels": int((signs != 0).sum())}
        return self

    def _names(self, found: list[str] | None, k: int) -> tuple[Any, ...]:
        refuse_unordered(self.labels, "labels")
        names = found if self.labels is None else list(self.labels)
        if names is None:
            return tuple(range(k))
        if len(names) != k or len(set(names)) != k:
            raise ParameterError(
                f"labels must be {k} different names, one per column of the target, but {names!r} "
                "came."
            )
        return tuple(names)

    def predict_proba(self, scores: Any, *, on_range: OnRange = "error") -> Array:
        """The probability of each label, shape (n, k); rows need not sum to one.

        Where the scores of the fit were probabilities, so must these be: others are refused
        (``on_range="error"``), moved to 0 or 1 (``"clip"``) or taken as they are (``"allow"``).
        """
        check_is_fitted(self, "map_")
        clean = read_column_scores(scores, len(self.labels_), self.labels_)
        return self.map_(check_range(clean, known_range(self), on_range))

    def predict(self, scores: Any, *, on_range: OnRange = "error") -> NDArray[np.int64]:
        """1 where a label is at least as probable as not, shape (n, k)."""
        return (self.predict_proba(scores, on_range=on_range) >= 0.5).astype(np.int64)

    def to_fitted(self) -> Fitted:
        """The fitted state as a plain value, as `save` writes it."""
        check_is_fitted(self, "map_")
        params: Mapping[str, Any] = {
            name: jsonable(value) for name, value in self.get_params(deep=False).items()
        }
        kind = type(self).__name__
        facts, known = dict(self._provenance), known_range(self)
        return Fitted(self.map_, self.labels_, None, kind, params, facts, known)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "map_")


def read_targets(Y: Any) -> tuple[NDArray[np.int8], list[str] | None]:
    """1 for a label, −1 for none, 0 for unknown, shape (n, k); and a frame's names of columns."""
    values, names = to_incomplete(Y, "Y")
    if values.ndim != 2 or not values.size:
        raise InputError(
            "Y must have rows, and a column of 0 and 1 for each label, but its shape is "
            f"{values.shape}."
        )
    known = ~np.isnan(values)
    wrong = known & (values != 0.0) & (values != 1.0)
    if wrong.any():
        row, column = (int(v[0]) for v in np.nonzero(wrong))
        raise InputError(
            f"Y must hold 0, 1 and missing values (NaN), but {int(wrong.sum())} entries are others "
            f"(first at row {row}, column {column}: {values[row, column]:g})."
        )
    return np.where(known, np.where(values == 1.0, 1, -1), 0).astype(np.int8), names
