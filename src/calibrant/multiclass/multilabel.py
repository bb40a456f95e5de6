"""Several labels that do not exclude each other: one map per column."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.data.naming import column_facts
from calibrant.data.score_range import OnRange
from calibrant.data.to_numpy import refuse_unordered, to_incomplete
from calibrant.data.validation import check_lengths, read_weight
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.base import Calibrator, row_facts
from calibrant.estimators.fitted import read_column_scores
from calibrant.maps import Columns
from calibrant.multiclass.code_columns import (
    ColumnsCalibrator,
    column_calibrator,
    fit_columns,
    range_of_columns,
)


class MultiLabelCalibrator(ColumnsCalibrator):
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

    map_: Columns
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
        columns = fit_columns(calibrator, matrix, signs, weight, alike=False)
        fitted = [one for one in columns if one is not None]  # none lacks rows
        self.map_ = Columns(tuple(one.map_ for one in fitted))
        self.calibrators_, self.labels_ = fitted, names
        self.score_range_ = range_of_columns(matrix, weight)
        known = {"known_labels": int((signs != 0).sum()), **column_facts(scores)}
        self._provenance = row_facts(counts) | known
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

    def predict(self, scores: Any, *, on_range: OnRange = "error") -> NDArray[np.int64]:
        """1 where a label is at least as probable as not, shape (n, k)."""
        return self._applied.predict(scores, on_range=on_range)

    @property
    def _class_labels(self) -> tuple[Any, ...]:
        return self.labels_


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
