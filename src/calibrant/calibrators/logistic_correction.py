"""Logistic correction: boosting's own sigmoid, with nothing to fit."""

from __future__ import annotations

from typing import Any, ClassVar

from calibrant.data.score_table import ScoreTable
from calibrant.estimators.base import Calibrator
from calibrant.maps import Logistic, Map


class LogisticCorrection(Calibrator):
    """P = 1 / (1 + exp(−2F)) for F = Σ αₜhₜ of AdaBoost with hₜ ∈ {−1, 1}.

    AdaBoost drives F towards half the log odds, so this link gives the probability back. Nothing
    but the labels is learnt from the data.

    Parameters
    ----------
    pos_label, classes : see `Calibrator`

    Notes
    -----
    The score must be the unnormalised sum F. For `AdaBoost` that is its ``decision_function`` (with
    ``loss="log"`` the link is σ(F), which its ``predict_proba`` has already). Do not pass the bare
    ``decision_function`` of scikit-learn's ``AdaBoostClassifier``: it is divided by the sum of the
    learners' weights and lies in [−2, 2] however long boosting ran, so the probabilities would say
    nothing. `boosting_score` gives F back, also as ``response_method=boosting_score`` of
    `CalibratedClassifier`. Works well for weak learners such as stumps and badly for full trees,
    whose F grows without bound [1]_. Cost O(1).

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.

    Examples
    --------
    >>> c = LogisticCorrection().fit([-0.5, 0.5], [0, 1])
    >>> c.calibrate([0.0, 1.0]).round(3).tolist()
    [0.5, 0.881]
    """

    score_method: ClassVar[str] = "decision_function"

    def __init__(self, *, pos_label: Any = None, classes: Any = None) -> None:
        self.pos_label = pos_label
        self.classes = classes

    def _fit(self, table: ScoreTable) -> Map:
        return Logistic(0.0, (("x", 2.0),))
