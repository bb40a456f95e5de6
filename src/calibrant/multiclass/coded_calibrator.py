"""Any binary calibrator, for several classes: one map per column of a code, combined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.data.labels import read_in_order, read_many
from calibrant.data.naming import column_facts
from calibrant.data.to_numpy import plain
from calibrant.data.validation import check_lengths, read_weight
from calibrant.errors import InputError
from calibrant.estimators.base import Calibrator, row_facts
from calibrant.estimators.fitted import read_column_scores
from calibrant.estimators.limits import Limit, OneOf
from calibrant.estimators.score_estimator import ScoreTransformer
from calibrant.maps import Coded, Piecewise
from calibrant.multiclass.code_columns import (
    COMBINE,
    ColumnsCalibrator,
    column_calibrator,
    column_rows,
    combiner,
    fit_columns,
    range_of_columns,
    weighted_code,
)
from calibrant.multiclass.codes import Code, read_code
from calibrant.scaling.base import Views, count_columns

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
        fitted = fit_columns(calibrator, matrix, signs, weight, alike=True)
        maps = [UNDECIDED if one is None else one.map_ for one in fitted]
        counts = np.ones(len(codes)) if weight is None else weight
        totals = column_rows(signs, weight, calibrator)
        self.map_ = weighted_code(self.combine, code, maps, totals)
        self.code_, self.calibrators_, self.classes_ = code, fitted, classes
        self.score_range_ = range_of_columns(matrix, weight)
        self._provenance = row_facts(counts, codes, len(classes)) | column_facts(scores)
        return self
