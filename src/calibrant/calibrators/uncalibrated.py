"""No calibration: the baseline that every other method must beat."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.score_kinds import kind_of, percent_ends
from calibrant.data.score_table import ScoreTable
from calibrant.data.weighing import table_in_rows
from calibrant.estimators.base import Calibrator
from calibrant.maps import Identity, Logistic, Map, Piecewise


class Uncalibrated(Calibrator):
    """The scores as they are: probabilities unchanged, percentages divided by 100, margins through
    the sigmoid.

    Parameters
    ----------
    pos_label, classes : see `Calibrator`

    Notes
    -----
    Scores that all lie in [0, 1] are kept (later ones clipped to it). Scores from 0 to more than 10
    and at most 100 are read as percentages, of which 0 and 100 are taken for rounded. Points (any
    score further from 0 than 100) stand for no probability: every row gets the share of positives.
    All others are read as logits and pass through σ. Cost O(1).

    Examples
    --------
    >>> Uncalibrated().fit([0.2, 0.9], [0, 1]).calibrate([0.3]).tolist()
    [0.3]
    >>> Uncalibrated().fit([-4.0, 3.0], [0, 1]).calibrate([0.0]).tolist()
    [0.5]
    >>> Uncalibrated().fit([12, 97], [0, 1]).calibrate([40]).tolist()
    [0.4]
    """

    def __init__(self, *, pos_label: Any = None, classes: Any = None) -> None:
        self.pos_label = pos_label
        self.classes = classes

    def _fit(self, table: ScoreTable) -> Map:
        kind = kind_of(table)
        if kind == "percentages":
            ends = np.array(percent_ends(table))
            return Piecewise.linear(ends, ends / 100.0)
        if kind == "points":
            # equal weights are no weights, and counts are repetitions, to the bit
            rows = table if table.is_whole else table_in_rows(table, "importance")
            return Piecewise.constant(rows.total_positive / rows.total)
        return Identity() if kind == "probabilities" else Logistic(0.0, (("x", 1.0),))
