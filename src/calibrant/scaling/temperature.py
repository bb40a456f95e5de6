"""Temperature scaling: one positive factor on the logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.base import SCALES, Calibrator, Limit, on_logit_scale
from calibrant.data.table import ScoreTable
from calibrant.kernels.newton import STEEPEST, fit_logistic
from calibrant.losses import logit
from calibrant.maps import Logistic, Map
from calibrant.maps.base import in_blocks

__all__ = ["Temperature"]

Array = NDArray[np.float64]

#: precision of the prior on 1/T in units of the logits' size: invisible unless classes separate
RIDGE = 1e-6
#: the flattest map: 1/T times the logits' root mean square is at least this
FLATTEST = 1e-3


class Temperature(Calibrator):
    """P = σ(z / T) with one temperature T > 0, fitted by maximum likelihood.

    Parameters
    ----------
    scale : {"auto", "logit", "raw"}, default="auto"
        Whether z is the logit of the score or the score itself; ``"auto"`` takes the logit when
        all scores lie in [0, 1], and reads anything else as logits.
    pos_label, classes : see `Calibrator`

    Attributes
    ----------
    temperature_ : float
        T: above 1 softens over-confident scores, below 1 sharpens timid ones.

    Notes
    -----
    Convex in 1/T. T is always positive, so the order of scores never turns: where the data ask for
    a negative slope, T is the largest allowed, 1000 times the root mean square of z, and all
    probabilities come close to ½. A ridge of 1e-6 keeps separable data finite. A score of ½ stays
    ½: temperature cannot move the base rate. O(D) per Newton step after the table.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Weinberger, "On calibration of modern neural networks",
       2017.

    Examples
    --------
    >>> p = [0.99, 0.99, 0.99, 0.99, 0.01, 0.01, 0.01, 0.01]
    >>> c = Temperature().fit(p, [1, 1, 1, 0, 0, 0, 0, 1])
    >>> round(c.temperature_, 3), c.calibrate([0.99]).round(3).tolist()
    (4.183, [0.75])
    """

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {"scale": (SCALES,)}

    def __init__(self, *, scale: str = "auto", pos_label: Any = None, classes: Any = None) -> None:
        self.scale = scale
        self.pos_label = pos_label
        self.classes = classes

    def _fit(self, table: ScoreTable) -> Map:
        on_logit = on_logit_scale(self.scale, table)

        def fit(part: ScoreTable, start: Array | None) -> Array:
            z = in_blocks(logit, part.scores) if on_logit else part.scores
            found = fit_logistic(
                [z], part.negative, part.positive, intercept=False, ridge=RIDGE, start=start
            )
            with np.errstate(over="ignore"):
                flattest = FLATTEST / _size(z, part.weight)
            return np.clip(found.coefficients, min(flattest, STEEPEST), STEEPEST)

        slope = float(table.coarse_to_fine(fit)[0])
        self.temperature_ = 1.0 / slope
        return Logistic(0.0, (("z" if on_logit else "x", slope),))


def _size(z: Array, weight: Array) -> float:
    """Weighted root mean square, safe from overflow; 1 where all are zero."""
    largest = float(np.abs(z).max())
    if largest == 0.0:
        return 1.0
    square = z / largest
    square *= square
    return largest * float(np.sqrt(square @ weight / weight.sum()))
