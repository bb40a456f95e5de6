"""One binary calibration per column of a code matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.array_types import Array
from calibrant.data.score_range import ScoreRange
from calibrant.data.weighing import weight_in_rows
from calibrant.errors import ParameterError
from calibrant.estimators.base import Calibrator
from calibrant.estimators.registry import calibrator_of
from calibrant.estimators.score_estimator import ScoreEstimator
from calibrant.maps import Coded, Map, Piecewise, VectorMap
from calibrant.multiclass.codes import Code
from calibrant.multiclass.combine import NEEDS

#: the words for ``combine``
COMBINE: tuple[str, ...] = ("auto", "normalize", "least_squares", "coupling", "pairwise")


class ColumnsCalibrator(ScoreEstimator):
    """A calibrator of several columns of scores, each of which has a binary calibrator."""

    multiclass: ClassVar[bool] = True
    _one_column: ClassVar[bool] = False

    map_: VectorMap


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
    """The number of rows that each column is fitted to, as the calibrator reads weights."""
    size = weight_in_rows(weight, getattr(calibrator, "weights", None) or "importance")
    counts = np.ones(len(signs)) if size is None else size
    return np.asarray(counts @ (signs != 0), dtype=np.float64)


def one_sided(signs: NDArray[Any], weight: Array | None, calibrator: Any) -> Map | None:
    """The constant map of a column that lacks rows of a side: (n₊ + 1)/(n + 2). Else None."""
    used = signs != 0
    weight = None if weight is None else weight[used]
    positive, negative = (
        float(column_rows(side[used], weight, calibrator)) for side in (signs > 0, signs < 0)
    )
    if positive > 0 and negative > 0:
        return None
    return Piecewise.constant((positive + 1.0) / (positive + negative + 2.0))


def column_calibrator(given: Any) -> Calibrator:
    """The calibrator of a column's scores, given as an instance or by name."""
    if given is None:
        raise ParameterError('calibrator must be given, such as Platt() or "isotonic".')
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


def range_of_columns(scores: NDArray[Any], weight: Array | None) -> ScoreRange:
    """The scores of the rows that count."""
    used = scores if weight is None or weight.all() else scores[weight > 0]
    return ScoreRange.between(float(used.min()), float(used.max()))


def fit_column(
    calibrator: Calibrator,
    scores: Array,
    signs: NDArray[Any],
    weight: Array | None,
    ends: tuple[float, float] | None = None,
) -> Calibrator | None:
    """The calibrator of a column's scores, on the rows of its classes; None without any.

    ``ends`` are the least and the largest score of all columns, if these are of one kind.
    """
    used = signs != 0
    if weight is not None:
        used &= weight > 0
    if not used.any():
        return None
    one: Calibrator = clone(calibrator).set_params(classes=[False, True])
    ends = ends or (float(scores[used].min()), float(scores[used].max()))
    own = None if weight is None else weight[used]
    return one._fit_part(ends, scores[used], signs[used] > 0, own)


def fit_columns(
    calibrator: Calibrator,
    scores: NDArray[Any],
    signs: NDArray[Any],
    weight: Array | None,
    *,
    alike: bool,
) -> list[Calibrator | None]:
    """The calibrators of all columns; ``alike`` says whether their scores are of one kind."""
    ends = None
    if alike and (weight is None or weight.any()):
        used = scores if weight is None or weight.all() else scores[weight > 0]
        ends = float(used.min()), float(used.max())
    columns = zip(scores.T, signs.T, strict=True)
    return [fit_column(calibrator, s.astype(np.float64), sign, weight, ends) for s, sign in columns]
