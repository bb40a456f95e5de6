"""One binary calibration per column of a code matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from calibrant.data.score_matrix import read_score_matrix
from calibrant.data.score_range import OnRange, ScoreRange, check_range
from calibrant.data.to_numpy import to_matrix
from calibrant.data.validation import read_scores
from calibrant.data.weighing import weight_in_rows
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.base import Calibrator
from calibrant.estimators.registry import calibrator_of
from calibrant.estimators.score_estimator import ScoreEstimator
from calibrant.maps import Coded, Map, Piecewise, VectorMap
from calibrant.multiclass.codes import Code
from calibrant.multiclass.combine import NEEDS

__all__ = [
    "COMBINE",
    "ColumnsCalibrator",
    "column_calibrator",
    "column_rows",
    "combiner",
    "fit_column",
    "one_sided",
    "range_of_columns",
    "read_column_scores",
    "weighted_code",
]

Array = NDArray[np.float64]

#: the words for ``combine``
COMBINE: tuple[str, ...] = ("auto", "normalize", "least_squares", "coupling", "pairwise")


class ColumnsCalibrator(ScoreEstimator):
    """A calibrator of several columns of scores, each of which has a binary calibrator."""

    multiclass: ClassVar[bool] = True
    _one_column: ClassVar[bool] = False
    #: the attribute that has the names of the columns
    _column_names: ClassVar[str] = "classes_"

    calibrator: Any
    map_: VectorMap

    def _of_one_column(self) -> Calibrator:
        """The calibrator that is cloned for each column."""
        if self.calibrator is None:
            raise ParameterError('calibrator must be given, such as Platt() or "isotonic".')
        return column_calibrator(self.calibrator)

    def predict_proba(self, scores: Any, *, on_range: OnRange = "error") -> Array:
        """The probabilities of each row, a column for each class or label.

        Where the scores of the fit were probabilities, so must these be: others are refused
        (``on_range="error"``), moved to 0 or 1 (``"clip"``) or taken as they are (``"allow"``).
        """
        check_is_fitted(self)
        names = getattr(self, self._column_names)
        clean = read_column_scores(scores, self.map_.n_columns, names)
        return self.map_(check_range(clean, self._fitted_range, on_range))


def combiner(combine: str, code: Code) -> str:
    """The way to combine a code's columns: as told, or normalisation where each class has one."""
    matrix = code.matrix.astype(np.float64)
    if combine == "auto":
        return "normalize" if NEEDS["normalize"].fits(matrix) else "coupling"
    if combine in NEEDS and not NEEDS[combine].fits(matrix):
        raise ParameterError(
            f'combine="{combine}" must go with code="{NEEDS[combine].name}", but another code '
            'came. Use "coupling" or "least_squares".'
        )
    return combine


def weighted_code(combine: str, code: Code, maps: list[Map], totals: Array) -> Coded:
    """The map of all columns; coupling counts each by the weight that it was fitted to.

    A column without any rows counts nothing, however they are combined.
    """
    how = combiner(combine, code)
    weights = None
    if how == "coupling" and np.ptp(totals) > 0:
        weights = totals
    elif how in ("least_squares", "pairwise") and not totals.all():
        weights = (totals > 0).astype(np.float64)
    return Coded(code.matrix.astype(np.float64), tuple(maps), how, weights)


def column_rows(signs: NDArray[Any], weight: Array | None, calibrator: Any) -> Array:
    """How many rows each column is fitted to, by what the calibrator takes weights for."""
    size = weight_in_rows(weight, getattr(calibrator, "weights", None) or "importance")
    counts = np.ones(len(signs)) if size is None else size
    return np.asarray(counts @ (signs != 0), dtype=np.float64)


def one_sided(signs: NDArray[Any], weight: Array | None, calibrator: Any) -> Map | None:
    """What a column says without rows of both sides: the smoothed share of the one, or ½."""
    used = signs != 0
    weight = None if weight is None else weight[used]
    positive, negative = (
        float(column_rows(side[used], weight, calibrator)) for side in (signs > 0, signs < 0)
    )
    if positive > 0 and negative > 0:
        return None
    return Piecewise.constant((positive + 1.0) / (positive + negative + 2.0))


def column_calibrator(given: Any) -> Calibrator:
    """A calibrator of one score, or the one that a name stands for, since each column has one."""
    calibrator = calibrator_of(given)
    if not isinstance(calibrator, Calibrator):
        raise ParameterError(
            "calibrator must be a Calibrator of one score, such as Platt() or Isotonic(), or its "
            f"name, but {calibrator!r} came."
        )
    told: Mapping[str, Any] = {"pos_label": calibrator.pos_label, "classes": calibrator.classes}
    for name, value in told.items():
        if value is not None:
            raise ParameterError(
                f"{name} of the calibrator must be None, since each column has its own two sides, "
                f"but {value!r} came."
            )
    return calibrator


def read_column_scores(scores: Any, columns: int, names: Any) -> NDArray[Any]:
    """Finite scores of shape (n, columns); of one column also (n,).

    Columns that bear the names of the classes or labels must be in the order of ``names``.
    """
    if columns > 1:
        return read_score_matrix(scores, columns, classes=names)
    matrix = to_matrix(scores, "scores")
    if matrix.ndim == 2 and matrix.shape[1] != 1:
        raise InputError(
            f"scores must have one column, that of the only question, but {matrix.shape[1]} came."
        )
    return read_scores(matrix)[:, None]


def range_of_columns(scores: NDArray[Any], weight: Array | None) -> ScoreRange:
    """The scores of the rows that count."""
    used = scores if weight is None or weight.all() else scores[weight > 0]
    return ScoreRange.between(float(used.min()), float(used.max()))


def fit_column(
    calibrator: Calibrator, scores: Array, signs: NDArray[Any], weight: Array | None
) -> Calibrator | None:
    """The calibrator of a column's scores, on the rows of its classes; None without any."""
    used = signs != 0
    if weight is not None:
        used &= weight > 0
    if not used.any():
        return None
    one: Calibrator = clone(calibrator).set_params(classes=[False, True])
    return one.fit(scores[used], signs[used] > 0, None if weight is None else weight[used])
