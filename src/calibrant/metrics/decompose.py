"""Proper scores split into calibration and what would be left if calibration were perfect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import xlog1py, xlogy

from calibrant.array_types import Array, Index
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import check_word
from calibrant.losses import LARGEST, SMALLEST
from calibrant.metrics.arguments import check_whole, read_table
from calibrant.metrics.binned import BINNINGS, group_starts
from calibrant.metrics.weighted_cells import last_cells, run_means, to_cells
from calibrant.other_words import in_our_words


class ScoringRule(NamedTuple):
    """A proper score through its parts.

    ``divergence(r, p)``: what predicting p costs more than the true r; ``entropy(r)``: what r
    itself costs; ``change(n0, n1, p, q)``: what p costs more than q on n0 negatives and n1
    positives.
    """

    divergence: Callable[[Array, Array], Array]
    entropy: Callable[[Array], Array]
    change: Callable[[Array, Array, Array, Array], Array]


def _kl(r: Array, p: Array) -> Array:
    apart = xlogy(r, r) - xlogy(r, p) + xlog1py(1.0 - r, -r) - xlog1py(1.0 - r, -p)
    return np.where(r == p, 0.0, np.maximum(apart, 0.0))


def _log_change(n0: Array, n1: Array, p: Array, q: Array) -> Array:
    q = np.clip(q, SMALLEST, LARGEST)  # a frequency may have been rounded to 0 or 1
    return np.asarray(xlogy(n1, q) - xlogy(n1, p) + xlog1py(n0, -q) - xlog1py(n0, -p))


RULES = {
    "brier": ScoringRule(
        divergence=lambda r, p: (r - p) ** 2,
        entropy=lambda r: r * (1.0 - r),
        change=lambda n0, n1, p, q: (p - q) * (n0 * (p + q) - n1 * (2.0 - p - q)),
    ),
    "log": ScoringRule(
        divergence=_kl,
        entropy=lambda r: -(xlogy(r, r) + xlog1py(1.0 - r, -r)),
        change=_log_change,
    ),
}


# --- DeGroot and Fienberg -----------------------------------------------------------------------


@dataclass(frozen=True)
class DeGrootFienberg:
    """The result of `degroot_fienberg`: ``score`` = ``calibration`` + ``refinement``."""

    loss: str
    calibration: float
    refinement: float

    @property
    def score(self) -> float:
        """The Brier score or the log loss itself."""
        return self.calibration + self.refinement


def degroot_fienberg(
    y: Any,
    p: Any = None,
    *,
    loss: str = "brier",
    sample_weight: Any = None,
    pos_label: Any = None,
) -> DeGrootFienberg:
    """Split a proper score into calibration and refinement.

    Both: smaller is better, minimum 0.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    loss : {"brier", "log"}, default="brier"
        Which score to split: mean (y − p)², or the log loss in nats.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    With n_i cases of frequency r_i at each distinct prediction p_i: calibration =
    Σ n_i d(r_i, p_i)/n and refinement = Σ n_i e(r_i)/n, where d is (r − p)² or the Kullback–Leibler
    divergence, and e is r(1 − r) or the entropy. O(D) after the table.

    It misleads where predictions are all different: every frequency is then 0 or 1, refinement 0,
    and calibration the whole score. Use `corp`, or `murphy` with bins, there.

    References
    ----------
    .. [1] M. DeGroot, S. Fienberg, "The comparison and evaluation of forecasters", 1983,
       doi:10.2307/2987588.

    Examples
    --------
    >>> degroot_fienberg([0, 1, 1, 1], [0.5, 0.5, 1.0, 1.0])
    DeGrootFienberg(loss='brier', calibration=0.0, refinement=0.125)
    """
    check_word("loss", loss, RULES)
    table = read_table(y, p, sample_weight, pos_label)
    rule, rate, total = RULES[loss], table.rate, table.total
    calibration = float(table.weight @ rule.divergence(rate, table.scores) / total)
    return DeGrootFienberg(loss, calibration, float(table.weight @ rule.entropy(rate) / total))


# --- Murphy -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Murphy:
    """The result of `murphy`: score = reliability − resolution + uncertainty + within."""

    loss: str
    reliability: float
    resolution: float
    uncertainty: float
    within: float

    @property
    def score(self) -> float:
        """The Brier score or the log loss itself."""
        return self.reliability - self.resolution + self.uncertainty + self.within


@in_our_words
def murphy(
    y: Any,
    p: Any = None,
    *,
    loss: str = "brier",
    bins: int | None = None,
    binning: str = "width",
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Murphy:
    """Split a proper score into reliability, resolution and uncertainty.

    Reliability: smaller is better. Resolution: larger is better. Uncertainty belongs to the data.

    Parameters
    ----------
    y, p, loss, sample_weight, pos_label : see `degroot_fienberg`
    bins : int, optional
        Group predictions first. Default: every distinct prediction is its own group.
    binning : {"width", "mass"}, default="width"
        Bins [a, b) of equal width on [0, 1], or groups of equal weight; ties are never divided.

    Notes
    -----
    With n_k cases, mean prediction p̄_k and frequency r_k in group k, and r the frequency overall:
    reliability = Σ n_k d(r_k, p̄_k)/n, resolution = Σ n_k d(r_k, r)/n, uncertainty = e(r), d and e
    as in `degroot_fienberg`. ``within`` is what grouping hides, the score of the predictions minus
    that of their group's mean [2]_; 0 without bins. O(D) after the table. Without bins reliability
    misleads as DeGroot's calibration does.

    References
    ----------
    .. [1] A. Murphy, "A new vector partition of the probability score", 1973,
       doi:10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2.
    .. [2] D. Stephenson, C. Coelho, I. Jolliffe, "Two extra components in the Brier score
       decomposition", 2008, doi:10.1175/2007WAF2006116.1.

    Examples
    --------
    >>> m = murphy([0, 1, 1, 1], [0.5, 0.5, 1.0, 1.0])
    >>> m.reliability, m.resolution, m.uncertainty, m.score
    (0.0, 0.0625, 0.1875, 0.125)
    """
    check_word("loss", loss, RULES)
    check_word("binning", binning, BINNINGS)
    if bins is not None:
        bins = check_whole("bins", bins, 1)
    table = read_table(y, p, sample_weight, pos_label)
    starts = np.arange(len(table)) if bins is None else group_starts(table, bins, binning)
    n, n1 = np.add.reduceat(table.weight, starts), np.add.reduceat(table.positive, starts)
    mean = _mean_prediction(table, starts)
    rule, rate, total = RULES[loss], n1 / n, table.total
    overall = np.array(table.total_positive / total)
    return Murphy(
        loss,
        float(n @ rule.divergence(rate, mean) / total),
        float(n @ rule.divergence(rate, overall) / total),
        float(rule.entropy(overall)),
        mean_change(table, rule, to_cells(mean, starts, len(table))),
    )


def _mean_prediction(table: ScoreTable, starts: Index) -> Array:
    """The mean prediction of each group; 0 or 1 only where all predictions of the group are."""
    low, high = table.scores[starts], table.scores[last_cells(starts, len(table))]
    mean = run_means(table, starts)
    mean = np.where((mean == 0) & (high > 0), SMALLEST, mean)
    return np.where((mean == 1) & (low < 1), LARGEST, mean)


def mean_change(table: ScoreTable, rule: ScoringRule, other: Array) -> float:
    """The score of the predictions minus that of others; ``other`` has one for each cell."""
    moved = np.flatnonzero(table.scores != other)
    columns = (table.negative, table.positive, table.scores, other)
    return float(rule.change(*(column[moved] for column in columns)).sum() / table.total)


# --- isotonic regression: its blocks are the segments of the ROC convex hull --------------------


@dataclass(frozen=True)
class Corp:
    """The result of `corp`: score = miscalibration − discrimination + uncertainty."""

    loss: str
    miscalibration: float
    discrimination: float
    uncertainty: float

    @property
    def score(self) -> float:
        """The Brier score or the log loss itself."""
        return self.miscalibration - self.discrimination + self.uncertainty


def corp(
    y: Any,
    p: Any = None,
    *,
    loss: str = "brier",
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Corp:
    """Split a proper score by isotonic regression: no bins to choose.

    Miscalibration: smaller is better, what the best increasing map would gain on these rows.
    Discrimination: larger is better, what is then gained over the base rate. Uncertainty: the
    score of the base rate, a fact of the data.

    Parameters
    ----------
    y, p, loss, sample_weight, pos_label : see `degroot_fienberg`

    Notes
    -----
    With S the mean score, p̂ the isotonic (PAV) fit of y on p and r the base rate: miscalibration
    = S(p) − S(p̂), discrimination = S(r) − S(p̂), uncertainty = S(r). The fit is optimal among
    increasing maps for every proper score at once, so no part is negative. Ties share a value;
    weights count as repetitions. O(D) after the table. Where something happened that was given
    probability 0, the log loss and with it miscalibration are infinite; the other parts stay
    finite.

    It misleads with little data: isotonic regression overfits, so miscalibration of perfect
    predictions is above 0 and shrinks about as n^(−2/3).

    References
    ----------
    .. [1] T. Dimitriadis, T. Gneiting, A. Jordan, "Stable reliability diagrams for probabilistic
       classifiers", 2021, doi:10.1073/pnas.2016191118.

    Examples
    --------
    >>> corp([0, 1, 1, 1], [0.5, 0.5, 0.75, 1.0])
    Corp(loss='brier', miscalibration=0.015625, discrimination=0.0625, uncertainty=0.1875)
    """
    check_word("loss", loss, RULES)
    table = read_table(y, p, sample_weight, pos_label)
    rule, total = RULES[loss], table.total
    starts, n, rate = hull_blocks(table.weight, table.positive)
    fit = to_cells(rate, starts, len(table))
    overall = np.array(table.total_positive / total)
    return Corp(
        loss,
        max(mean_change(table, rule, fit), 0.0),  # rounding
        float(n @ rule.divergence(rate, overall) / total),
        float(rule.entropy(overall)) + 0.0,  # −0.0 is 0.0
    )


@dataclass(frozen=True)
class FlachMatsubara:
    """The result of `flach_matsubara`: score = calibration + ordering + refinement."""

    calibration: float
    ordering: float
    refinement: float

    @property
    def score(self) -> float:
        """The Brier score itself."""
        return self.calibration + self.ordering + self.refinement


def flach_matsubara(
    y: Any, p: Any = None, *, sample_weight: Any = None, pos_label: Any = None
) -> FlachMatsubara:
    """Split the Brier score along the segments of the ROC convex hull.

    All three: smaller is better, minimum 0.

    Parameters
    ----------
    y, p, sample_weight, pos_label : see `degroot_fienberg`

    Notes
    -----
    A segment of the hull gathers neighbouring predictions p_i; its slope tells the frequency r of
    positives among them. calibration = Σ w (p_i − r)²/n, refinement = Σ w r(1 − r)/n, and
    ordering = 2 Σ w (p_i − r)(r − y_i)/n: what the predictions lose by ranking the cases of a
    segment the wrong way round. The segments are the blocks of isotonic regression, so calibration
    + ordering is `corp`'s miscalibration. O(D) after the table.

    On the curve itself (one segment for each distinct prediction) this is `degroot_fienberg`. It
    misleads with little data as `corp` does.

    References
    ----------
    .. [1] P. Flach, E. Matsubara, "A simple lexicographic ranker and probability estimator", 2007,
       doi:10.1007/978-3-540-74958-5_55.
    .. [2] T. Fawcett, A. Niculescu-Mizil, "PAV and the ROC convex hull", 2007,
       doi:10.1007/s10994-007-5011-0.

    Examples
    --------
    >>> flach_matsubara([0, 1, 0, 1], [0.25, 0.5, 0.75, 1.0])
    FlachMatsubara(calibration=0.03125, ordering=0.0625, refinement=0.125)
    """
    return split_on_hull(read_table(y, p, sample_weight, pos_label))


def split_on_hull(table: ScoreTable) -> FlachMatsubara:
    """`flach_matsubara` of a table."""
    starts, n, rate = hull_blocks(table.weight, table.positive)
    fit = to_cells(rate, starts, len(table))
    apart = table.scores - fit
    ordering = 2.0 * float(apart @ (table.weight * fit - table.positive)) / table.total
    return FlachMatsubara(
        float(table.weight @ apart**2 / table.total),
        max(ordering, 0.0),  # rounding
        float(n @ (rate * (1.0 - rate)) / table.total),
    )


def calibration_loss(
    y: Any, p: Any = None, *, sample_weight: Any = None, pos_label: Any = None
) -> float:
    """Calibration loss: mean squared distance of p from the frequency on its ROC hull segment.

    Smaller is better; minimum 0, maximum 1. It is the first part of `flach_matsubara`, where the
    formula is.

    Parameters
    ----------
    y, p, sample_weight, pos_label : see `degroot_fienberg`

    Examples
    --------
    >>> calibration_loss([0, 1, 0, 1], [0.25, 0.5, 0.75, 1.0])
    0.03125
    """
    return split_on_hull(read_table(y, p, sample_weight, pos_label)).calibration


def hull_blocks(weight: Array, positive: Array) -> tuple[Index, Array, Array]:
    """Blocks of isotonic regression: the first cell, the weight and the frequency of each."""
    starts = isotonic_regression(positive / weight, weights=weight).blocks[:-1]
    n = np.add.reduceat(weight, starts)
    return starts, n, np.add.reduceat(positive, starts) / n
