"""One binary calibration per column of a code matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.array_types import Array
from calibrant.data.columns import column_facts, plain
from calibrant.data.door import check_lengths, read_weight
from calibrant.data.labels import read_in_order, read_many
from calibrant.data.scale import ScoreRange, ScoreScale
from calibrant.data.score_table import weight_in_rows
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.base import Calibrator, ScoreEstimator, ScoreTransformer, row_facts
from calibrant.fitting.base_classes import Views, count_columns
from calibrant.fitting.fitted import read_column_scores
from calibrant.fitting.limits import Limit, OneOf
from calibrant.fitting.registry import calibrator_of
from calibrant.methods.codes.codes import NEEDS, Code, read_code
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.codes import Coded
from calibrant.rules.piecewise import Piecewise

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
    scale: ScoreScale | None = None,
) -> Calibrator | None:
    """The calibrator of a column's scores, on the rows of its classes; None without any.

    ``scale`` says what the scores of all columns are, if these are of one kind.
    """
    used = signs != 0
    if weight is not None:
        used &= weight > 0
    if not used.any():
        return None
    one: Calibrator = clone(calibrator).set_params(classes=[False, True])
    scale = scale or ScoreScale(float(scores[used].min()), float(scores[used].max()))
    own = None if weight is None else weight[used]
    with one._part_of(scale):
        return one.fit(scores[used], signs[used] > 0, own)


def fit_columns(
    calibrator: Calibrator,
    scores: NDArray[Any],
    signs: NDArray[Any],
    weight: Array | None,
    *,
    alike: bool,
    scale: ScoreScale | None = None,
) -> list[Calibrator | None]:
    """The calibrators of all columns; ``alike`` says whether their scores are of one kind.

    ``scale`` says what they are, where the rows are a part of others.
    """
    if scale is None and alike and (weight is None or weight.any()):
        used = scores if weight is None or weight.all() else scores[weight > 0]
        scale = ScoreScale(float(used.min()), float(used.max()))
    columns = zip(scores.T, signs.T, strict=True)
    return [
        fit_column(calibrator, s.astype(np.float64), sign, weight, scale) for s, sign in columns
    ]


# --- Any binary calibrator, for several classes: one map per column of a code, combined -----------


#: the map of a column whose classes are all absent
UNDECIDED = Piecewise.constant(0.5)


class CodedCalibrator(ScoreTransformer, ColumnsCalibrator, Views):
    """Calibrates the scores of several binary questions and combines them into a distribution.

    Parameters
    ----------
    calibrator : Calibrator or name, such as "isotonic"
        Of one score; cloned for each column of the code.
    code : {"one_vs_rest", "all_pairs", "ecoc"}, Code or matrix, default="one_vs_rest"
        Which classes are the positives (1) and the negatives (−1) of each column of scores, rows in
        the order of the classes.
    combine : {"auto", "normalize", "least_squares", "coupling", "pairwise"}, default="auto"
        How the columns' probabilities become one distribution; see `calibrant.multiclass`.
        ``"auto"`` normalises one-vs-rest [1]_ and couples any other code.
    classes : labels, default: those found in y, sorted
        All classes, in the order of the code's rows; needed where y may lack some.

    Attributes
    ----------
    map_ : Coded
        The fitted function of the score matrix, a value.
    classes_ : ndarray of shape (k,)
        The labels, sorted or as ``classes`` names them; the columns of `predict_proba`.
    code_ : Code
        The code that was used.
    calibrators_ : list of fitted calibrators
        One per column; None for a column whose classes are all absent.

    Notes
    -----
    Column b is calibrated on the rows of its classes only, so r_b estimates the probability of its
    positives among them. Coupling weighs columns by the weight of these rows. A column without rows
    plays no part. Cost: one fit per column, O(n log n) each, and the combiner's per row.

    References
    ----------
    .. [1] B. Zadrozny, C. Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", 2002, doi:10.1145/775047.775151.

    Examples
    --------
    >>> import calibrant as cal
    >>> scores = [[0.9, 0.3, 0.1], [0.4, 0.7, 0.2], [0.2, 0.1, 0.6], [0.8, 0.6, 0.1]] * 5
    >>> c = CodedCalibrator(cal.Platt()).fit(scores, ["a", "b", "c", "b"] * 5)
    >>> c.predict_proba([[0.9, 0.3, 0.1]]).round(2).tolist()
    [[0.71, 0.26, 0.04]]
    """

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {"combine": (OneOf(COMBINE),)}

    map_: Coded
    code_: Code
    calibrators_: list[Calibrator | None]

    def __init__(
        self,
        calibrator: Calibrator | str | None = None,
        *,
        code: Any = "one_vs_rest",
        combine: str = "auto",
        classes: Any = None,
    ) -> None:
        self.calibrator = calibrator
        self.code = code
        self.combine = combine
        self.classes = classes

    def fit(self, scores: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit one map per column.

        Parameters
        ----------
        scores : array-like of shape (n, columns)
            A score for each column of the code, high for its positives; for one-vs-rest one for
            each class, in the order of ``classes_``.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        """
        self._check_fit(scores, y)
        calibrator = column_calibrator(self.calibrator)
        own = isinstance(self.code, str) and self.code == "one_vs_rest"  # a column for each class
        columns = count_columns(scores) if own else 0
        if self.classes is None:
            classes, codes = read_many(y, columns=columns)
        else:
            classes, codes = read_in_order(y, self.classes, columns or None)
        if len(classes) < 2:
            raise InputError(
                f"y must hold at least two classes, but only one class came: "
                f"{plain(classes[0])!r}. Name all of them: classes=[...]."
            )
        code = read_code(self.code, len(classes))
        combiner(self.combine, code)  # a wrong pair is refused first
        matrix = read_column_scores(scores, len(code), classes)
        check_lengths(scores=len(matrix), y=len(codes))
        weight = read_weight(sample_weight, len(codes))
        signs = code.matrix[codes]
        fitted = fit_columns(calibrator, matrix, signs, weight, alike=True, scale=self._whole)
        maps = [UNDECIDED if one is None else one.map_ for one in fitted]
        counts = np.ones(len(codes)) if weight is None else weight
        totals = column_rows(signs, weight, calibrator)
        self.map_ = weighted_code(self.combine, code, maps, totals)
        self.code_, self.calibrators_, self.classes_ = code, fitted, classes
        self.score_range_ = range_of_columns(matrix, weight)
        self._provenance = row_facts(counts, codes, len(classes)) | column_facts(scores)
        return self
