"""Isotonic regression by pooling adjacent violators."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.data.door import Limit, Number, OneOf
from calibrant.data.isotonic_blocks import SMOOTHING, isotonic_blocks, isotonic_cuts
from calibrant.data.score_table import ScoreTable
from calibrant.errors import CalibrationWarning, ParameterError, caller_level
from calibrant.fitting.base import WEIGHTS, Calibrator
from calibrant.rules.base import Map
from calibrant.rules.piecewise import Piecewise, flat_runs


@dataclass(kw_only=True, eq=False, repr=False)
class Isotonic(Calibrator):
    """The non-decreasing (or non-increasing) map with the least squared error (PAV).

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
    increasing : bool or "auto", default=True
        Whether the map rises or falls with the score. ``"auto"``: it follows the sign of
        Spearman's ρ of scores and labels.
    y_min, y_max : float in [0, 1] or None, default=None
        Bounds of the probabilities: values beyond them are put on them.
    weights, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    increasing_ : bool
        Whether the map rises.
    blocks_ : ndarray of shape (m + 1,)
        Block j holds the distinct scores of indices blocks_[j] to blocks_[j+1] − 1.

    Notes
    -----
    Minimises Σ n(p − n₁/n)² over p₁ ≤ … ≤ p_D (or ≥) on the table, between the bounds; ties are
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
    increasing: bool | str = True
    y_min: float | None = None
    y_max: float | None = None
    weights: str = "importance"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 100
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "interpolation": (OneOf(("step", "linear", "centred")),),
        "smoothing": (OneOf(tuple(SMOOTHING)),),
        "cut": (OneOf(("mid", "left", "right")),),
        "increasing": (OneOf((True, False, "auto")),),
        "y_min": (OneOf((None,)), Number(0.0, 1.0)),
        "y_max": (OneOf((None,)), Number(0.0, 1.0)),
        "weights": (WEIGHTS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        low = 0.0 if self.y_min is None else float(self.y_min)
        high = 1.0 if self.y_max is None else float(self.y_max)
        if low > high:
            raise ParameterError(
                f"y_min of Isotonic must be at most y_max, but {low:g} and {high:g} came."
            )
        self.increasing_ = (
            rises_with_labels(table) if isinstance(self.increasing, str) else bool(self.increasing)
        )
        pseudo = SMOOTHING[self.smoothing]
        starts, values = isotonic_blocks(table, pseudo, falling=not self.increasing_)
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


def rises_with_labels(table: ScoreTable) -> bool:
    """Whether Spearman's ρ of scores and labels, weighted, is ≥ 0.

    Warns where the 95 % interval of ρ (Fisher's z) contains 0, since either may be true then.
    """
    n0, n1 = table.negative / table.total, table.positive / table.total
    n = n0 + n1
    rank = np.cumsum(n) - n / 2.0 - 0.5
    share = float(n1.sum())
    with_label = float(rank @ n1)  # the covariance of ranks and labels
    spread = math.sqrt(float(n @ rank**2) * share * (1.0 - share))
    if spread == 0.0:
        return True
    rho, size = min(max(with_label / spread, -1.0), 1.0), table.effective_size
    if size > 3.0 and abs(rho) < 1.0 and abs(math.atanh(rho)) * math.sqrt(size - 3.0) <= 1.96:
        warnings.warn(
            f"whether the map should rise or fall is not sure: Spearman's ρ of scores and labels "
            f"is {rho:.3g}, no more than chance allows with {size:.4g} rows. Say it: "
            "increasing=True or False.",
            CalibrationWarning,
            stacklevel=caller_level(),
        )
    return rho >= 0.0
