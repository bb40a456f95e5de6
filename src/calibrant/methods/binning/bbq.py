"""Bayesian binning into quantiles: an average over equal-frequency histograms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln

from calibrant.array_types import Array, Index
from calibrant.data.score_table import ScoreTable
from calibrant.fitting.base import WEIGHTS, Calibrator
from calibrant.fitting.limits import Limit, OneOf
from calibrant.losses import sigmoid
from calibrant.rules.base import Map
from calibrant.rules.piecewise import Piecewise
from calibrant.solvers.weights import SELECT

#: the most bins; this matters for totals beyond 1e9 only
MOST_BINS = 10_000


class BBQ(Calibrator):
    """Histograms with equal-frequency bins of many sizes, weighted by their Bayesian score.

    Parameters
    ----------
    models : {"elbow", "all", "best"}, default="elbow"
        Average over the models ranked before the weights fall off (the authors' choice), over all,
        or take the best one alone.
    weights, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    n_bins_ : ndarray of shape (m,)
        The numbers of bins B that were tried.
    log_scores_ : ndarray of shape (m,)
        The log marginal likelihood of each.
    weights_ : ndarray of shape (m,)
        Their weights in the map, of sum 1; 0 for models left out.

    Notes
    -----
    The number of bins B runs from max(1, ⌊N^⅓/10⌋) to min(⌈N/5⌉, ⌈10·N^⅓⌉), with a uniform prior.
    Bin k ends after k·⌊N/B⌋ cases, and the last takes the rest (for fractional weights of sum W:
    k·W/B). A cut inside a tie moves to its end; bins that this empties are dropped. With p the
    midpoint of a bin, clipped to [.005, .995], the score of a binning is
    Σ lnΓ(n₁+2p) + lnΓ(n₀+2(1−p)) − lnΓ(n+2) − lnΓ(2p) − lnΓ(2(1−p)). The value of a bin is
    (n₁+p₀)/(n+1) with p₀ = (Σ scores of its positives + midpoint)/(n₁+1), never 0 or 1. N is the
    effective number of rows. If any score lies outside [0, 1], all are logits: these formulas see
    their σ, but bins are cut halfway between the logits, which differ where σ rounds to 1. All B at
    once from prefix sums: O(D + N^⅔ log D) after the table.

    References
    ----------
    .. [1] M. Pakdaman Naeini, G. Cooper, M. Hauskrecht, "Obtaining well calibrated probabilities
       using Bayesian binning", 2015.
    .. [2] M. Pakdaman Naeini, G. Cooper, "Binary classifier calibration using an ensemble of
       piecewise linear regression models", 2018, doi:10.1007/s10115-017-1133-2.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> c = BBQ().fit(p, y)
    >>> c.calibrate([0.3, 0.7]).round(2).tolist()
    [0.09, 0.47]
    """

    events_needed: ClassVar[int] = 20
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "models": (OneOf(("elbow", "all", "best")),),
        "weights": (WEIGHTS,),
    }

    def __init__(
        self,
        *,
        models: str = "elbow",
        weights: str = "importance",
        pos_label: Any = None,
        classes: Any = None,
    ) -> None:
        self.models = models
        self.weights = weights
        self.pos_label = pos_label
        self.classes = classes

    def _fit(self, table: ScoreTable) -> Map:
        binnings = _Binnings(table)
        self.n_bins_, self.log_scores_ = binnings.numbers, binnings.log_scores()
        weights = np.exp(self.log_scores_ - self.log_scores_.max())
        self.weights_ = SELECT[self.models](weights / weights.sum())
        return binnings.average(self.weights_)


class _Binnings:
    """All equal-frequency binnings in one list: model m has the bins first[m] to first[m+1] − 1."""

    def __init__(self, table: ScoreTable) -> None:
        p = table.scores if table.scale.probabilities else sigmoid(table.scores)
        total = table.total
        root = total ** (1 / 3)
        low = min(max(1, int(root / 10 + 1e-9)), MOST_BINS)
        high = int(min(np.ceil(total / 5), np.ceil(10 * root - 1e-9), MOST_BINS))
        high = max(low, high)
        self.numbers = np.arange(low, high + 1)
        whole = table.is_whole
        size = total / self.numbers
        ends = _ends(np.cumsum(table.weight), self.numbers, np.floor(size) if whole else size)
        model, last = ends
        self.first = np.searchsorted(model, np.arange(len(self.numbers) + 1))
        starts = np.append(0, last[:-1])
        starts[self.first[:-1]] = 0
        above = np.where(last == len(p), 1.0, p[np.minimum(last, len(p) - 1)] / 2 + p[last - 1] / 2)
        below = np.append(0.0, above[:-1])
        below[self.first[:-1]] = 0.0
        self.middle = (below + above) / 2
        self.table, self.last = table, last
        positive = np.append(0.0, np.cumsum(table.positive))
        weight = np.append(0.0, np.cumsum(table.weight))
        moment = np.append(0.0, np.cumsum(table.positive * p))
        self.n = np.maximum(weight[last] - weight[starts], 0.0)
        self.n1 = np.clip(positive[last] - positive[starts], 0.0, self.n)  # sums are rounded
        self.moment = moment[last] - moment[starts]

    def log_scores(self) -> Array:
        p = np.clip(self.middle, 0.005, 0.995)
        terms = gammaln(self.n1 + 2 * p) + gammaln(self.n - self.n1 + 2 * (1 - p))
        terms -= gammaln(self.n + 2) + gammaln(2 * p) + gammaln(2 * (1 - p))
        return np.asarray(np.add.reduceat(terms, self.first[:-1]))

    def average(self, weights: Array) -> Piecewise:
        """Σ weight · histogram, from the jumps at all cuts."""
        prior = (self.moment + self.middle) / (self.n1 + 1)
        value = (self.n1 + prior) / (self.n + 1)
        used = np.repeat(weights, np.diff(self.first))
        final = np.zeros(len(value), dtype=bool)
        final[self.first[1:] - 1] = True
        jump = (np.append(value[1:], 0.0) - value) * used
        kept = ~final & (used > 0)
        base = float(weights @ value[self.first[:-1]])
        last, at = np.unique(self.last[kept], return_inverse=True)
        steps = base + np.cumsum(np.bincount(at, jump[kept], minlength=len(last)))
        values = np.clip(np.append(base, steps), 0.0, 1.0)
        return Piecewise.step(self.table.cuts(last - 1), values)


def _ends(mass: Array, numbers: Index, size: Array) -> tuple[Index, Index]:
    """For every bin of every model: the model, and one past its last cell. No bin is empty."""
    if len(mass) * len(numbers) < numbers.sum():
        return _ends_by_cell(mass, numbers, size)
    model = np.repeat(np.arange(len(numbers)), numbers)
    place = np.arange(len(model)) - np.repeat(np.cumsum(numbers) - numbers, numbers) + 1
    last = np.searchsorted(mass, _edge(place, np.repeat(size, numbers))) + 1
    last[np.cumsum(numbers) - 1] = len(mass)
    last = np.minimum(last, len(mass))
    # a bin that ends where the bin before it in the same model does is empty
    same = np.append(False, (last[1:] == last[:-1]) & (model[1:] == model[:-1]))
    return model[~same], last[~same]


def _ends_by_cell(mass: Array, numbers: Index, size: Array) -> tuple[Index, Index]:
    """The same, quicker where there are fewer cells than bins.

    A cell ends a bin if its cumulative weight reaches more edges than that of the cell before it.
    """
    wide = size[:, None]
    reached = np.floor(mass / _edge(1.0, wide))
    reached += _edge(reached + 1.0, wide) <= mass  # the quotient was rounded
    reached -= _edge(reached, wide) > mass
    reached = np.minimum(reached, numbers[:, None] - 1.0)
    ends = np.diff(reached, axis=1, prepend=0.0) > 0.0
    ends[:, -1] = True
    model, cell = np.nonzero(ends)
    return model, cell + 1


def _edge(place: Array | Index | float, size: Array) -> Array:
    """Where bins of a size end, a little earlier: sums of weights are rounded."""
    return np.asarray(place * size * (1 - 1e-12))
