"""One binary calibration per column of a code matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.base import Calibrator
from calibrant.data.door import read_scores
from calibrant.data.matrix import read_score_matrix
from calibrant.errors import ParameterError
from calibrant.maps import Coded, Map, Piecewise
from calibrant.multiclass.codes import Code

__all__ = [
    "COMBINE",
    "check_calibrator",
    "combiner",
    "fit_column",
    "read_column_scores",
    "undecided",
    "weighted_code",
]

Array = NDArray[np.float64]

#: the words for ``combine``
COMBINE = ("auto", "normalize", "least_squares", "coupling", "pairwise")
#: what a column says whose classes are all absent
undecided = Piecewise.step([0.5], [0.5, 0.5])


def combiner(combine: str, code: Code) -> str:
    """The way to combine a code's columns: as told, or normalisation where each class has one."""
    k = code.n_classes
    one_each = np.array_equal(code.matrix, 2 * np.eye(k, dtype=np.int8) - 1)
    if combine == "auto":
        return "normalize" if one_each else "coupling"
    if combine == "normalize" and not one_each:
        raise ParameterError(
            'combine="normalize" must go with code="one_vs_rest", but another code came. Use '
            '"coupling" or "least_squares".'
        )
    return combine


def weighted_code(combine: str, code: Code, maps: list[Map], totals: Array) -> Coded:
    """The map of all columns; coupling counts each by the weight that it was fitted to."""
    how = combiner(combine, code)
    weights = totals if how == "coupling" and np.ptp(totals) > 0 else None
    return Coded(code.matrix.astype(np.float64), tuple(maps), how, weights)


def check_calibrator(calibrator: Any) -> None:
    """A calibrator of one score, since each column has one."""
    if not isinstance(calibrator, Calibrator):
        raise ParameterError(
            "calibrator must be a Calibrator of one score, such as Platt() or Isotonic(), but "
            f"{calibrator!r} came."
        )
    given: Mapping[str, Any] = {"pos_label": calibrator.pos_label, "classes": calibrator.classes}
    for name, value in given.items():
        if value is not None:
            raise ParameterError(
                f"{name} of the calibrator must be None, since each column has its own two sides, "
                f"but {value!r} came."
            )


def read_column_scores(scores: Any, columns: int) -> NDArray[Any]:
    """Finite scores of shape (n, columns)."""
    if columns == 1:
        return read_scores(scores)[:, None]
    return read_score_matrix(scores, columns)


def fit_column(
    calibrator: Calibrator, scores: Array, signs: NDArray[Any], weight: Array | None
) -> Calibrator | None:
    """The calibrator of a column's scores, on the rows that play a part in it; None without any."""
    used = signs != 0
    if weight is not None:
        used &= weight > 0
    if not used.any():
        return None
    one: Calibrator = clone(calibrator).set_params(classes=[False, True])
    return one.fit(scores[used], signs[used] > 0, None if weight is None else weight[used])
