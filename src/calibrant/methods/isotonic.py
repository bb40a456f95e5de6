"""Isotonic regression by pooling adjacent violators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.data.door import Limit, Number, OneOf
from calibrant.data.isotonic_blocks import SMOOTHING, isotonic_blocks, isotonic_cuts
from calibrant.data.score_table import ScoreTable
from calibrant.errors import ParameterError
from calibrant.fitting.base import DIRECTIONS, WEIGHTS, Calibrator
from calibrant.rules.base import Map
from calibrant.rules.piecewise import Piecewise, flat_runs


@dataclass(kw_only=True, eq=False, repr=False)
class Isotonic(Calibrator):
    """The non-decreasing map with the least squared error (PAV).

    Parameters
    ----------
    interpolation : {"step", "linear", "centred"}, default="step"
        ``"step"``: constant on each block, as in the papers. ``"linear"``: flat across a block,
        straight lines between blocks. ``"centred"``: straight lines between the weighted mean
        scores of the blocks [3]_. It rises strictly from the first block's centre to the last
        one's, so that it makes no ties there.
    smoothing : {"none", "laplace", "jeffreys"}, default="none"
        Adds 1 or ½ of each class to every block, so that 0 and 1 are never returned.
    cut : {"mid", "left", "right"}, default="mid"
        Where a step map jumps, between the last score a of a block and the first score b of the
        next: halfway; at b (blocks closed on the left); or just above a (closed on the right, the
        (f_i, f_j] of [1]_).
    y_min, y_max : float in [0, 1] or None, default=None
        Bounds of the probabilities: values beyond them are put on them.
    weights, direction, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    blocks_ : ndarray of shape (m + 1,)
        Block j holds the distinct scores of indices blocks_[j] to blocks_[j+1] − 1.

    Notes
    -----
    Minimises Σ n(p − n₁/n)² over p₁ ≤ … ≤ p_D on the table, between the bounds; ties are
    never split. With ``interpolation="linear"`` the map equals
    scikit-learn's IsotonicRegression(out_of_bounds="clip") of the same options. O(N log N) for the
    table, then O(D). Without smoothing the end blocks are often exactly 0 or 1, and the log loss of
    a single surprise is infinite. Blocks that smoothing puts out of order are pooled again.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.
    .. [2] B. Zadrozny, C. Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", 2002, doi:10.1145/775047.775151.
    .. [3] A. Oron, N. Flournoy, "Centered isotonic regression", 2017,
       doi:10.1080/19466315.2017.1286256.

    Examples
    --------
    >>> s, y = [0.1, 0.3, 0.4, 0.6, 0.8], [0, 1, 0, 1, 1]
    >>> Isotonic().fit(s, y).calibrate([0.0, 0.35, 0.9]).tolist()
    [0.0, 0.5, 1.0]
    >>> smooth = Isotonic(interpolation="centred", smoothing="laplace").fit(s, y)
    >>> smooth.calibrate([0.35, 0.5]).round(3).tolist()
    [0.5, 0.607]
    """

    interpolation: str = "step"
    smoothing: str = "none"
    cut: str = "mid"
    y_min: float | None = None
    y_max: float | None = None
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 100
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "interpolation": (OneOf(("step", "linear", "centred")),),
        "smoothing": (OneOf(tuple(SMOOTHING)),),
        "cut": (OneOf(("mid", "left", "right")),),
        "y_min": (OneOf((None,)), Number(0.0, 1.0)),
        "y_max": (OneOf((None,)), Number(0.0, 1.0)),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        low = 0.0 if self.y_min is None else float(self.y_min)
        high = 1.0 if self.y_max is None else float(self.y_max)
        if low > high:
            raise ParameterError(
                f"y_min of Isotonic must be at most y_max, but {low:g} and {high:g} came."
            )
        starts, values = isotonic_blocks(table, SMOOTHING[self.smoothing])
        values = np.clip(values, low, high)
        self.blocks_ = np.append(starts, len(table))
        if len(starts) == 1:
            return Piecewise.constant(float(values[0]))
        if self.interpolation == "step":
            return Piecewise.step(isotonic_cuts(table, starts[1:] - 1, self.cut), values)
        if self.interpolation == "linear":
            return flat_runs(table.scores, starts, values)
        size = float(np.abs(table.scores[[0, -1]]).max()) or 1.0
        moment = np.add.reduceat(table.weight * (table.scores / size), starts)
        centres = moment / np.add.reduceat(table.weight, starts) * size
        ends = np.append(starts[1:], len(table)) - 1
        centres = np.clip(centres, table.scores[starts], table.scores[ends])  # rounding
        return Piecewise.linear(centres, values)
