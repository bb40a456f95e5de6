"""Histogram binning: one probability per bin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.door import Limit, Number, OneOf
from calibrant.data.isotonic_blocks import SMOOTHING
from calibrant.data.score_table import CellColumns, ScoreTable
from calibrant.errors import InputError, refuse_foreign_names
from calibrant.fitting.base import DIRECTIONS, WEIGHTS, Calibrator
from calibrant.fitting.held_out import held_out_path_losses
from calibrant.losses import sigmoid
from calibrant.rules.base import Map
from calibrant.rules.chain import after_sigmoid
from calibrant.rules.piecewise import Piecewise

#: the largest total weight for which a number of bins is searched
HEAVIEST = 1e9


@refuse_foreign_names
@dataclass(kw_only=True, eq=False, repr=False)
class Histogram(Calibrator):
    """The fraction of positives in each of a few bins of the score.

    Parameters
    ----------
    bins : int or "auto", default=10
        How many bins. ``"auto"``: the number from 2 to ⌈2N^⅓⌉ with the best five-fold out-of-fold
        log loss.
    binning : {"mass", "width"}, default="mass"
        Bins of equal weight (the papers'), or of equal width on [0, 1].
    smoothing : {"none", "laplace", "jeffreys"}, default="none"
        Adds 1 or ½ of each class to every bin, so that 0 and 1 are never returned.
    weights, direction, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    bins_ : int
        The number of bins asked for or chosen; ties may leave fewer in the map.
    bin_losses_ : dict of int to float, or None
        With ``"auto"``: the out-of-fold log loss of every number of bins tried.

    Notes
    -----
    Bin k of equal mass ends after k·W/B of the total weight W. A cut inside a tie moves to its end,
    so equal scores are never split; bins that this empties are dropped. Cuts of equal mass lie
    halfway between neighbouring scores. Empty bins of equal width go half to each neighbour. Under
    ``"width"``, scores outside [0, 1] are read as logits and pass through σ. O(D) after the table.
    ``"auto"`` adds O(D) per fold and O(B² log D); its bins are smoothed (Laplace) while they are
    compared, since an unsmoothed bin of one class has infinite loss. N is the effective number of
    rows.

    References
    ----------
    .. [1] B. Zadrozny, C. Elkan, "Obtaining calibrated probability estimates from decision trees
       and naive Bayesian classifiers", 2001.

    Examples
    --------
    >>> s = [0.1, 0.2, 0.3, 0.6, 0.7, 0.8]
    >>> Histogram(bins=2).fit(s, [0, 0, 1, 1, 1, 1]).calibrate([0.2, 0.7]).round(3).tolist()
    [0.333, 1.0]
    """

    bins: int | str = 10
    binning: str = "mass"
    smoothing: str = "none"
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 100
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "bins": (Number(1, 1e7, whole=True), OneOf(("auto",))),
        "binning": (OneOf(("mass", "width")),),
        "smoothing": (OneOf(tuple(SMOOTHING)),),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        link = self.binning == "width" and not table.looks_like_probabilities
        scores = sigmoid(table.scores) if link else table.scores
        self.bin_losses_ = None
        if self.bins == "auto":
            self.bin_losses_ = _out_of_fold_losses(table, scores, self.binning)
            self.bins_ = min(self.bin_losses_, key=self.bin_losses_.__getitem__)
        else:
            self.bins_ = int(self.bins)
        ends = _bin_ends(np.cumsum(table.weight), scores, self.bins_, self.binning)
        pseudo = SMOOTHING[self.smoothing]
        starts = np.append(0, ends[:-1])
        n1 = np.add.reduceat(table.positive, starts) + pseudo
        n = np.add.reduceat(table.weight, starts) + 2 * pseudo
        if self.binning == "mass":
            return Piecewise.step(table.cuts(ends[:-1] - 1), n1 / n)
        # cuts between occupied bins: their common edge, or the middle of empty bins between them
        edges = np.arange(self.bins_ + 1) / self.bins_
        bin_of = np.clip(np.searchsorted(edges, scores, side="right") - 1, 0, self.bins_ - 1)
        last, first = bin_of[ends[:-1] - 1], bin_of[ends[:-1]]
        step = Piecewise.step((edges[last + 1] + edges[first]) / 2, n1 / n)
        return after_sigmoid(step) if link else step


def _bin_ends(mass: Array, scores: Array, bins: int, binning: str) -> Index:
    """For every bin one past the index of its last cell, from cumulative weights. No bin is empty.

    Bins of equal width are [k/B, (k+1)/B), and the last one is closed.
    """
    if binning == "mass":
        wanted = mass[-1] * np.arange(1, bins) / bins
        inner = np.searchsorted(mass, wanted * (1 - 1e-12)) + 1  # sums of weights are rounded
        return np.unique(np.minimum(np.append(inner, len(mass)), len(mass)))
    inner = np.searchsorted(scores, np.arange(1, bins) / bins, side="left")
    ends = np.append(inner, len(scores))
    return np.unique(ends[ends > 0])


def _out_of_fold_losses(table: ScoreTable, scores: Array, binning: str) -> dict[int, float]:
    """Five-fold out-of-fold log loss of Laplace-smoothed bins, by the number of bins."""
    if table.total > HEAVIEST:
        raise InputError(
            f'bins="auto" tries up to 2·N^⅓ bins, so the number N of rows must be at most '
            f"{HEAVIEST:g}, but it is {table.total:g}. Give a "
            "number of bins."
        )
    most = max(2, int(np.ceil(2 * table.total ** (1 / 3) - 1e-9)))
    candidates = range(2, most + 1)

    def path(rest: CellColumns, held: CellColumns) -> Array:
        held0, held1 = np.cumsum(held.negative), np.cumsum(held.positive)
        train0, train1 = np.cumsum(rest.negative), np.cumsum(rest.positive)
        mass, losses = train0 + train1, np.zeros(len(candidates))
        for j, bins in enumerate(candidates):
            ends = _bin_ends(mass, scores, bins, binning) - 1
            n0, n1 = np.diff(train0[ends], prepend=0.0), np.diff(train1[ends], prepend=0.0)
            p = (n1 + 1.0) / (n0 + n1 + 2.0)
            loss = np.diff(held1[ends], prepend=0.0) @ np.log(p)
            loss += np.diff(held0[ends], prepend=0.0) @ np.log1p(-p)
            losses[j] -= float(loss) / table.total
        return losses

    return dict(zip(candidates, held_out_path_losses(table, 5, path).tolist(), strict=True))
