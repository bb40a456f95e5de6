"""No calibration: the baseline that every other method must beat."""

from __future__ import annotations

from typing import Any

from calibrant.data.score_table import ScoreTable
from calibrant.estimators.base import Calibrator
from calibrant.maps import Identity, Logistic, Map

__all__ = ["Uncalibrated"]


class Uncalibrated(Calibrator):
    """The scores as they are: probabilities unchanged, margins through the sigmoid.

    Parameters
    ----------
    pos_label, classes : see `Calibrator`

    Notes
    -----
    Scores that all lie in [0, 1] are kept (later ones clipped to it); if any lies outside, all are
    read as logits and pass through σ. Cost O(1).

    Examples
    --------
    >>> Uncalibrated().fit([0.2, 0.9], [0, 1]).calibrate([0.3]).tolist()
    [0.3]
    >>> Uncalibrated().fit([-4.0, 3.0], [0, 1]).calibrate([0.0]).tolist()
    [0.5]
    """

    def __init__(self, *, pos_label: Any = None, classes: Any = None) -> None:
        self.pos_label = pos_label
        self.classes = classes

    def _fit(self, table: ScoreTable) -> Map:
        if table.looks_like_probabilities:
            return Identity()
        return Logistic(0.0, (("x", 1.0),))
