"""Platt scaling: a sigmoid of the score, or of its logit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.estimators.base import SCALES, WEIGHTS, Calibrator, inner_interval, on_logit_scale
from calibrant.estimators.limits import Limit
from calibrant.kernels.logistic import fit_logistic, platt_smoothing
from calibrant.losses import logit
from calibrant.maps import Logistic, Map
from calibrant.maps.checks import in_blocks


class Platt(Calibrator):
    """Sigmoid with two parameters, fitted by maximum likelihood with Platt's smoothed targets.

    P = 1 / (1 + exp(A·f + B)), where f is the score or its logit. A may have either sign, so
    scores that run the wrong way are turned round.

    Parameters
    ----------
    scale : {"auto", "logit", "raw"}, default="auto"
        Fit against the logit of the score or the score itself; ``"auto"`` takes the logit when
        all scores lie in [0, 1]. The papers use ``"raw"``; on probabilities the logit is far safer.
        Scores of exactly 0 and 1, which forests and neighbours give, have no logit: they count as
        half as far from the end as the outermost score inside (0, 1).
    weights, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    a_, b_ : float
        A and B of the formula.
    scale_ : {"logit", "raw"}
        The scale that was used.

    Notes
    -----
    Targets are (N₊+1)/(N₊+2) for positives and 1/(N₋+2) for negatives [1]_, so that the optimum is
    finite even for separable data. Guarded Newton: O(D) per step after the O(N log N) table, with
    a pooled table as warm start. N₊ and N₋ are the effective numbers of rows of each class.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines", 1999.
    .. [2] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.

    Examples
    --------
    >>> c = Platt().fit([-2.0, -1.0, 0.5, 1.0, 3.0], [0, 0, 1, 0, 1])
    >>> c.calibrate([-2.0, 0.0, 3.0]).round(3).tolist()
    [0.186, 0.375, 0.719]
    >>> c.map_
    Logistic(σ(-0.511971 +0.483596·x))
    """

    events_needed: ClassVar[int] = 10
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "scale": (SCALES,),
        "weights": (WEIGHTS,),
    }

    def __init__(
        self,
        *,
        scale: str = "auto",
        weights: str = "importance",
        pos_label: Any = None,
        classes: Any = None,
    ) -> None:
        self.scale = scale
        self.weights = weights
        self.pos_label = pos_label
        self.classes = classes

    def _fit(self, table: ScoreTable) -> Map:
        on_logit = on_logit_scale(self.scale, table)
        self.scale_ = "logit" if on_logit else "raw"
        clip = inner_interval(table) if on_logit else None
        slope, intercept = _sigmoid_fit(table, on_logit, clip)
        self.a_, self.b_ = -slope, -intercept
        return Logistic(intercept, (("z" if on_logit else "x", slope),), clip)


def _sigmoid_fit(
    table: ScoreTable, on_logit: bool, clip: tuple[float, float] | None
) -> tuple[float, float]:
    """Slope and intercept for Platt's targets."""
    smoothing = platt_smoothing(table.total_negative, table.total_positive)

    def fit(part: ScoreTable, start: Array | None) -> Array:
        scores = part.scores if clip is None else np.clip(part.scores, *clip)
        f = in_blocks(logit, scores) if on_logit else scores
        return fit_logistic(
            [f], part.negative, part.positive, smoothing=smoothing, start=start
        ).coefficients

    intercept, slope = table.coarse_to_fine(fit)
    return float(slope), float(intercept)
