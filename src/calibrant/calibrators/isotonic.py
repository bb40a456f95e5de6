"""Isotonic regression by pooling adjacent violators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.base import SMOOTHING, Calibrator, Limit, OneOf
from calibrant.data.blocks import isotonic_blocks, isotonic_cuts
from calibrant.data.table import ScoreTable
from calibrant.maps import Map, Piecewise

__all__ = ["Isotonic"]

Array = NDArray[np.float64]


class Isotonic(Calibrator):
    """The non-decreasing map with the least squared error (PAV).

    Parameters
    ----------
    kind : {"step", "linear", "centred"}, default="step"
        ``"step"``: constant on each block, as in the papers. ``"linear"``: flat across a block,
        straight lines between blocks. ``"centred"``: straight lines between the blocks' weighted
        mean scores [3]_, strictly increasing from the first block's centre to the last one's, so
        that no ties are made there.
    smoothing : {"none", "laplace", "jeffreys"}, default="none"
        Adds 1 or ½ of each class to every block, so that 0 and 1 are never returned.
    cut : {"mid", "left", "right"}, default="mid"
        Where a step map steps between the last score a of a block and the first score b of the
        next: halfway, at b (blocks closed on the left), or just above a (closed on the right, the
        (f_i, f_j] of [1]_).
    pos_label, classes : see `Calibrator`

    Attributes
    ----------
    blocks_ : ndarray of shape (m + 1,)
        Block j holds the distinct scores of indices blocks_[j] to blocks_[j+1] − 1.

    Notes
    -----
    Minimises Σ n(p − n₁/n)² over p₁ ≤ … ≤ p_D on the table; ties are never split; weights count as
    repetitions. O(N log N) for the table, then O(D). Without smoothing the end blocks are often
    exactly 0 or 1, and the log loss of a single surprise is infinite. Smoothed blocks are pooled
    again where smoothing has put them out of order.

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
    >>> smooth = Isotonic(kind="centred", smoothing="laplace").fit(s, y)
    >>> smooth.calibrate([0.35, 0.5]).round(3).tolist()
    [0.5, 0.607]
    """

    events_needed: ClassVar[int] = 100
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "kind": (OneOf(("step", "linear", "centred")),),
        "smoothing": (OneOf(tuple(SMOOTHING)),),
        "cut": (OneOf(("mid", "left", "right")),),
    }

    def __init__(
        self,
        *,
        kind: str = "step",
        smoothing: str = "none",
        cut: str = "mid",
        pos_label: Any = None,
        classes: Any = None,
    ) -> None:
        self.kind = kind
        self.smoothing = smoothing
        self.cut = cut
        self.pos_label = pos_label
        self.classes = classes

    def _fit(self, table: ScoreTable) -> Map:
        starts, values = isotonic_blocks(table, SMOOTHING[self.smoothing])
        self.blocks_ = np.append(starts, len(table))
        if len(starts) == 1:
            return Piecewise.constant(float(values[0]))
        if self.kind == "step":
            return Piecewise.step(isotonic_cuts(table, starts[1:] - 1, self.cut), values)
        if self.kind == "linear":
            ends = np.append(starts[1:], len(table)) - 1
            index = np.column_stack((starts, ends)).ravel()
            keep = np.append(True, index[1:] != index[:-1])  # a block of one score has one knot
            return Piecewise.linear(table.scores[index[keep]], np.repeat(values, 2)[keep])
        return _centred(table, starts, values)


def _centred(table: ScoreTable, starts: NDArray[np.intp], values: Array) -> Map:
    size = float(np.abs(table.scores[[0, -1]]).max()) or 1.0
    moment = np.add.reduceat(table.weight * (table.scores / size), starts)
    centres = moment / np.add.reduceat(table.weight, starts) * size
    ends = np.append(starts[1:], len(table)) - 1
    centres = np.clip(centres, table.scores[starts], table.scores[ends])  # rounding
    return Piecewise.linear(centres, values)
