"""The papers' rescalings of margins to [0, 1], by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from calibrant.data.score_table import ScoreTable
from calibrant.estimators.base import Calibrator
from calibrant.estimators.limits import Limit, OneOf
from calibrant.maps import Logistic, Map, Piecewise


class Rescale(Calibrator):
    """Squeeze scores into [0, 1] without looking at the labels.

    Parameters
    ----------
    formula : {"sigmoid", "minmax", "symmetric"}, default="sigmoid"
        ``"sigmoid"``: σ(f). ``"minmax"``: (f − min)/(max − min) [1]_. ``"symmetric"``:
        (f + a)/2a with a = max|f| [2]_.
    pos_label, classes : see `Calibrator`

    Notes
    -----
    Extremes come from the fit data, results are clipped to [0, 1]. This is a change of scale, not
    a calibration: the result need not be a probability. A constant score maps to ½ under
    ``"minmax"``. Cost O(1) after the table.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.
    .. [2] B. Zadrozny, C. Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", 2002, doi:10.1145/775047.775151.

    Examples
    --------
    >>> Rescale(formula="symmetric").fit([-2.0, 1.0], [0, 1]).calibrate([-2, 0, 1]).tolist()
    [0.0, 0.5, 0.75]
    """

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "formula": (OneOf(("sigmoid", "minmax", "symmetric")),)
    }

    def __init__(
        self, *, formula: str = "sigmoid", pos_label: Any = None, classes: Any = None
    ) -> None:
        self.formula = formula
        self.pos_label = pos_label
        self.classes = classes

    def _fit(self, table: ScoreTable) -> Map:
        return FORMULAS[self.formula](table)


def _sigmoid(table: ScoreTable) -> Map:
    return Logistic(0.0, (("x", 1.0),))


def _minmax(table: ScoreTable) -> Map:
    if len(table) == 1:
        return Piecewise.constant(0.5)
    return Piecewise.linear(table.scores[[0, -1]], [0.0, 1.0])


def _symmetric(table: ScoreTable) -> Map:
    a = float(np.abs(table.scores[[0, -1]]).max())
    return Piecewise.linear([-a, a], [0.0, 1.0]) if a else Piecewise.constant(0.5)


FORMULAS = {"sigmoid": _sigmoid, "minmax": _minmax, "symmetric": _symmetric}
