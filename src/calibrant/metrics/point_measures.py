"""Proper scores, ranking, and the split of a score into calibration and refinement."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import xlog1py, xlogy

from calibrant.array_types import Array, Index
from calibrant.data.columns import plain
from calibrant.data.door import check_word
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable, table_in_rows
from calibrant.errors import (
    CalibrationWarning,
    InputError,
    ParameterError,
    caller_level,
    refuse_foreign_names,
)
from calibrant.losses import LARGEST, SMALLEST
from calibrant.metrics.smooth_curve import CurveGaps, curve_gaps, smooth_curve
from calibrant.metrics.tables import (
    BINNINGS,
    Bins,
    Groups,
    check_flag,
    check_number,
    check_weights,
    check_whole,
    class_groups,
    class_tables,
    group,
    group_starts,
    last_cells,
    read_predictions,
    read_table,
    run_means,
    squares,
    to_cells,
    top_labels,
    top_table,
)
from calibrant.metrics.tests import Coefficient, CoxLine, cox_line, inner_cells, offset_intercept


class ScoringRule(NamedTuple):
    """A proper score, split into what calibration costs and what is left.

    ``divergence(r, p)``: what predicting p costs more than the true r; ``entropy(r)``: what r
    itself costs; ``change(n0, n1, p, q)``: what p costs more than q on n0 negatives and n1
    positives.
    """

    divergence: Callable[[Array, Array], Array]
    entropy: Callable[[Array], Array]
    change: Callable[[Array, Array, Array, Array], Array]


def _kullback_leibler(r: Array, p: Array) -> Array:
    """The log loss of predicting p minus that of the true probability r, in the mean."""
    apart = xlogy(r, r) - xlogy(r, p) + xlog1py(1.0 - r, -r) - xlog1py(1.0 - r, -p)
    return np.where(r == p, 0.0, np.maximum(apart, 0.0))


def _log_change(n0: Array, n1: Array, p: Array, q: Array) -> Array:
    """The log loss of p minus that of q, for n0 negatives and n1 positives."""
    q = np.clip(q, SMALLEST, LARGEST)  # a frequency may have been rounded to 0 or 1
    return np.asarray(xlogy(n1, q) - xlogy(n1, p) + xlog1py(n0, -q) - xlog1py(n0, -p))


RULES = {
    "brier": ScoringRule(
        divergence=lambda r, p: (r - p) ** 2,
        entropy=lambda r: r * (1.0 - r),
        change=lambda n0, n1, p, q: (p - q) * (n0 * (p + q) - n1 * (2.0 - p - q)),
    ),
    "log": ScoringRule(
        divergence=_kullback_leibler,
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


@refuse_foreign_names
def murphy(
    y: Any,
    p: Any = None,
    *,
    loss: str = "brier",
    bins: int | None = None,
    binning: str = "width",
    debias: bool = False,
    sample_weight: Any = None,
    weights: str = "importance",
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
    debias : bool, default=False
        Whether to take off what chance adds to reliability and resolution; for ``loss="brier"``.
    weights : {"importance", "counts"}, default="importance"
        How ``debias`` reads a weight: as how much a row matters, or as a number of equal rows.

    Notes
    -----
    With n_k cases, mean prediction p̄_k and frequency r_k in group k, and r the frequency overall:
    reliability = Σ n_k d(r_k, p̄_k)/n, resolution = Σ n_k d(r_k, r)/n, uncertainty = e(r), d and e
    as in `degroot_fienberg`. ``within`` is what grouping hides, the score of the predictions minus
    that of their group's mean [2]_; 0 without bins. O(D) after the table. Without bins reliability
    misleads as DeGroot's calibration does.

    Chance adds Var(r_k) to (r_k − p̄_k)². With ``debias=True`` [3]_, v_k = r_k(1 − r_k)/(m_k − 1)
    and v = r(1 − r)/(m − 1), m = (Σw)²/Σw² rows of equal weight: reliability falls by Σ n_k v_k/n,
    resolution by Σ n_k v_k/n − v, and uncertainty grows by v, so that their sum stays. All three
    are then unbiased for rows drawn at random, but for groups of one row, which say nothing of
    their variance. The first two may be below 0.

    References
    ----------
    .. [1] A. Murphy, "A new vector partition of the probability score", 1973,
       doi:10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2.
    .. [2] D. Stephenson, C. Coelho, I. Jolliffe, "Two extra components in the Brier score
       decomposition", 2008, doi:10.1175/2007WAF2006116.1.
    .. [3] C. Ferro, T. Fricker, "A bias-corrected decomposition of the Brier score", 2012,
       doi:10.1002/qj.1924.

    Examples
    --------
    >>> m = murphy([0, 1, 1, 1], [0.5, 0.5, 1.0, 1.0])
    >>> m.reliability, m.resolution, m.uncertainty, m.score
    (0.0, 0.0625, 0.1875, 0.125)
    >>> m = murphy([0, 1, 1, 1], [0.5, 0.5, 1.0, 1.0], debias=True)
    >>> m.reliability, m.resolution, m.uncertainty, m.score
    (-0.125, 0.0, 0.25, 0.125)
    """
    check_word("loss", loss, RULES)
    check_word("binning", binning, BINNINGS)
    check_weights(weights)
    if check_flag("debias", debias) and loss != "brier":
        raise ParameterError(
            f'loss must be "brier" beside debias=True, but {loss!r} came: what chance adds to the '
            "log loss has no unbiased estimate."
        )
    if bins is not None:
        bins = check_whole("bins", bins, 1)
    table = read_table(y, p, sample_weight, pos_label)
    starts = np.arange(len(table)) if bins is None else group_starts(table, bins, binning)
    n, n1 = np.add.reduceat(table.weight, starts), np.add.reduceat(table.positive, starts)
    low, high = table.scores[starts], table.scores[last_cells(starts, len(table))]
    mean = run_means(table, starts)  # 0 or 1 only where all predictions of the group are
    mean = np.where((mean == 0) & (high > 0), SMALLEST, mean)
    mean = np.where((mean == 1) & (low < 1), LARGEST, mean)
    rule, rate, total = RULES[loss], n1 / n, table.total
    overall = np.array(table.total_positive / total)
    of_groups, of_all = 0.0, 0.0  # what chance adds
    if debias:
        sample = table_in_rows(table, weights)
        of_groups = float(n @ _variance_of_rates(sample, starts)) / total
        of_all = float(_variance_of_rates(sample, starts[:1])[0])
    return Murphy(
        loss,
        float(n @ rule.divergence(rate, mean) / total) - of_groups,
        float(n @ rule.divergence(rate, overall) / total) - of_groups + of_all,
        float(rule.entropy(overall)) + of_all,
        mean_change(table, rule, to_cells(mean, starts, len(table))),
    )


def _variance_of_rates(sample: ScoreTable, starts: Index) -> Array:
    """The variance of the share of positives in each group, unbiased; 0 for a single row."""
    columns = (sample.weight, sample.positive, squares(sample))
    n, n1, q = (np.add.reduceat(column, starts) for column in columns)
    rate, others = n1 / n, n * (n / q) - 1.0
    return np.divide(rate * (1.0 - rate), others, out=np.zeros(len(n)), where=others > 1e-9)


def mean_change(table: ScoreTable, rule: ScoringRule, other: Array) -> float:
    """The mean score of the predictions minus that of others, given for each cell."""
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
    return TableFacts(read_table(y, p, sample_weight, pos_label)).hull


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
    return TableFacts(read_table(y, p, sample_weight, pos_label)).hull.calibration


def hull_blocks(weight: Array, positive: Array) -> tuple[Index, Array, Array]:
    """Isotonic regression as blocks: the first cell, the weight and the share of positives of
    each."""
    starts = isotonic_regression(positive / weight, weights=weight).blocks[:-1]
    n = np.add.reduceat(weight, starts)
    return starts, n, np.add.reduceat(positive, starts) / n


# --- CalBin: calibration over overlapping windows of consecutive predictions ----------------------


#: windows computed together; this bounds the memory
CHUNK = 1 << 15
#: with more cases CalBin takes longer than all other measures together; evaluate leaves it out
MOST_WINDOWS = 50_000_000


def calbin(
    y: Any,
    p: Any = None,
    *,
    window: int | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """CalBin: mean |p − frequency| over every window of consecutive predictions.

    Smaller is better; minimum 0, maximum 1.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
        Predicted probabilities of the positive class, a binary predict_proba, or one column for
        each of k ≥ 3 classes in sorted order, each row a distribution (sum within 0.001 of 1).
    window : int, optional
        Cases per window; default a tenth of all, max(1, ⌊n/10⌋) [1]_. Caruana and Niculescu-Mizil
        took 100. A window longer than the data is all of the data.
    sample_weight : array-like of shape (n,), optional
        Whole weights ≥ 0, which count as repeated rows. Others are refused: windows count cases.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels. Not with (n, k).
    classes : array-like of labels, optional
        The class of each column, where y lacks some or the columns have another order.

    Notes
    -----
    In the order of p, window a holds the cases a … a+s−1; f_a is the frequency of the class among
    them, and the window's error is the mean of |p_i − f_a|. CalBin is the mean over the n − s + 1
    windows and over the classes, k ≥ 3 columns one after the other. Two classes both give the
    same: the other class has 1 − p, 1 − f and the reverse order. A tied case carries its tie's
    frequency, so that the order of rows cannot matter. O(n log D) by cumulative sums, in memory
    O(D); for k ≥ 3 classes k times as long.

    It misleads: even perfect predictions score above 0, since p varies inside a window; spread
    matters as much as calibration. Read it only beside another value on the same data.

    References
    ----------
    .. [1] A. Bella, C. Ferri, J. Hernández-Orallo, M. J. Ramírez-Quintana, "Similarity-binning
       averaging: a generalisation of binning calibration", 2009,
       doi:10.1007/978-3-642-04394-9_42.
    .. [2] R. Caruana, A. Niculescu-Mizil, "Data mining in metric space", 2004,
       doi:10.1145/1014052.1014063.

    Examples
    --------
    >>> round(calbin([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], window=2), 12)
    0.2
    """
    if window is not None:
        window = check_whole("window", window, 1)
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    errors = []
    for table in (seen,) if isinstance(seen, ScoreTable) else class_tables(seen.matrix):
        if reason := why_not_whole(table):
            raise InputError(f"{reason}. Repeat rows, or use ece, which takes any weights.")
        errors.append(window_error(table, window))
    return float(np.mean(errors))


def why_not_whole(table: ScoreTable) -> str:
    """Why the table has no CalBin: weights that are no counts. Empty if it has one."""
    if table.is_whole:
        return ""
    return "calbin needs whole weights (a window counts cases), but fractions came"


def why_too_many(cases: float) -> str:
    """Why `evaluate` leaves out CalBin: too many cases. Empty if it does not."""
    if cases <= MOST_WINDOWS:
        return ""
    return f"calbin was left out: it looks at each of {cases:.3g} cases; call calbin for it"


def window_error(table: ScoreTable, window: int | None = None) -> float:
    """CalBin of a table whose weights are counts."""
    ends = np.cumsum(table.weight.astype(np.int64))
    n = int(ends[-1])
    size = min(n, max(1, n // 10) if window is None else window)
    sums = _WindowSums(table, ends)
    windows = n - size + 1
    total = 0.0
    for first in range(0, windows, CHUNK):
        total += float(sums.errors(first, min(first + CHUNK, windows), size).sum())
    return max(total, 0.0) / windows  # rounding may go below 0


class _WindowSums:
    """Sums of p and of y over the first cases, from which the sums of any window follow."""

    def __init__(self, table: ScoreTable, ends: NDArray[np.int64]) -> None:
        self.scores = table.scores
        # an empty cell follows the last one
        self.p, self.rate = np.append(table.scores, 0.0), np.append(table.rate, 0.0)
        self.before = np.append(0, ends)  # cases before each cell
        self.upto_p = np.append(0.0, np.cumsum(table.weight * table.scores))
        self.upto_y = np.append(0.0, np.cumsum(table.positive))

    def errors(self, first: int, stop: int, size: int) -> Array:
        """The mean |p − f| of windows that start after ``first``, …, ``stop`` − 1 cases, f the
        frequency in the window."""
        p_start, y_start = self._sums_of_first(first, stop)
        p_end, y_end = self._sums_of_first(first + size, stop + size)
        f = (y_end - y_start) / size
        # cases of a window with p below f come before this cell
        low, high = np.searchsorted(self.scores, (f.min(), f.max()))
        cell = low + np.searchsorted(self.scores[low:high], f)
        start = np.arange(first, stop)
        end = start + size
        crossing = self.before[cell]
        p_middle = np.clip(self.upto_p[cell], p_start, p_end)
        middle = np.clip(crossing, start, end)
        return np.asarray((f * (2 * middle - start - end) - 2 * p_middle + p_start + p_end) / size)

    def _sums_of_first(self, first: int, stop: int) -> tuple[Array, Array]:
        """Σp and Σy over the first ``first``, …, ``stop`` − 1 cases. A tied case has the frequency
        of its tie for y."""
        low, high = np.searchsorted(self.before, (first, stop - 1), side="right") - 1
        borders = np.clip(np.append(self.before[low : high + 1], stop), first, stop)
        cell = np.repeat(np.arange(low, high + 1), np.diff(borders))
        inside = np.arange(first, stop) - self.before[cell]
        return (
            self.upto_p[cell] + inside * self.p[cell],
            self.upto_y[cell] + inside * self.rate[cell],
        )


# --- Measures of ranking and of decisions, which do not see calibration ---------------------------


def auc(
    y: Any,
    p: Any = None,
    *,
    average: str = "macro",
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """Area under the ROC curve: the chance that a positive is ranked above a negative.

    Larger is better; 0.5 is a coin, 1 a perfect order, below 0.5 the order is upside down.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
        Predicted probabilities of the positive class, a binary predict_proba, or one column for
        each of k ≥ 3 classes in sorted order, each row a distribution (sum within 0.001 of 1).
    average : {"macro", "weighted"}, default="macro"
        For k ≥ 3 classes: the plain mean of each class's AUC against the rest, or weighted by the
        classes' own weights.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels. Not with (n, k).
    classes : array-like of labels, optional
        The class of each column, where y lacks some or the columns have another order.

    Raises
    ------
    InputError
        If only one class has weight, or one of k ≥ 3 has none: there is no pair to rank.

    Notes
    -----
    Σ over pairs (positive, negative) of w·w′·([p > p′] + ½[p = p′]), divided by the weight of all
    pairs: ties count half. O(D) after the table; for k ≥ 3 classes O(nk log n), a column at a time,
    the same as scikit-learn's ``roc_auc_score(multi_class="ovr")``. It does not see calibration
    (any increasing map leaves it alone), but a map with steps makes ties and so may lower it.

    References
    ----------
    .. [1] J. Hanley, B. McNeil, "The meaning and use of the area under a receiver operating
       characteristic (ROC) curve", 1982, doi:10.1148/radiology.143.1.7063747.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), auc([0, 1], [0.5, 0.5])
    (0.75, 0.5)
    """
    check_word("average", average, ("macro", "weighted"))
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    if isinstance(seen, ScoreTable):
        if missing := one_class(seen):
            raise InputError(f"{missing}. Leave it out, or evaluate on more data.")
        return area(seen)
    weight = seen.matrix.class_weight
    if not weight.all():
        absent = [plain(label) for label in seen.labels[weight == 0]]
        raise InputError(
            f"auc needs every class, but {len(absent)} of {len(weight)} did not come: "
            f"{', '.join(map(repr, absent[:10]))}{', …' if len(absent) > 10 else ''}. Evaluate on "
            "more data, or leave it out; evaluate averages over the classes that came."
        )
    areas = np.array([area(table) for table in class_tables(seen.matrix)])
    return float(np.average(areas, weights=weight if average == "weighted" else None))


def accuracy(
    y: Any,
    p: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """The share of rows whose likeliest class came true; p ≥ 0.5 predicts the positive one.

    Larger is better; between 0 and 1.

    Parameters
    ----------
    y, p, sample_weight, pos_label, classes : see `auc`

    Notes
    -----
    (Σ w over positives with p ≥ ½ and negatives with p < ½) / Σ w. O(D) after the table. For k ≥ 3
    classes Σ w over rows whose largest probability (the first of equals) is that of the class that
    came; O(nk). It sees only which side of ½ a probability is on; with rare positives, always
    saying no scores well.

    Examples
    --------
    >>> accuracy([0, 0, 1, 1], [0.1, 0.5, 0.5, 0.8])
    0.75
    """
    return read_facts(y, p, sample_weight, pos_label, classes).share_correct


def area(table: ScoreTable) -> float:
    """The AUC of a table with both classes. Scores may be of any scale."""
    n0, n1 = _scaled(table.negative), _scaled(table.positive)
    below = np.cumsum(n0) - n0 / 2
    return float(n1 @ below / n1.sum() / n0.sum())


def one_class(table: ScoreTable, name: str = "auc") -> str:
    """Why a measure that needs both classes has no value for this table; empty if it has one."""
    if table.total_positive and table.total_negative:
        return ""
    word = "positives" if table.total_positive else "negatives"
    return f"{name} needs both classes, but only {word} came"


def _scaled(weight: Array) -> Array:
    """Weights times a power of two, so that products of their sums are floats."""
    return np.ldexp(weight, -int(np.frexp(weight.max())[1]))


# --- Proper scores: their expectation is smallest at the true probability -------------------------


#: for two classes: which multiple of mean (y − p)² each normalisation is
NORMALISE = {"binary": 1.0, "sum": 2.0, "mean_over_classes": 1.0}
#: for k classes: what each normalisation divides the sum over the classes by
DIVISOR: dict[str, Callable[[int], float]] = {"sum": lambda k: 1.0, "mean_over_classes": float}


def brier(
    y: Any,
    p: Any = None,
    *,
    normalise: str | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """Brier score: the mean squared error of the probability.

    Smaller is better; minimum 0, maximum 1 (2 with ``normalise="sum"``; 2/k with
    ``normalise="mean_over_classes"``).

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
        Predicted probabilities of the positive class, a binary predict_proba, or one column for
        each of k ≥ 3 classes in sorted order, each row a distribution (sum within 0.001 of 1).
    normalise : {"binary", "sum", "mean_over_classes"}, optional
        ``"binary"``: mean (y − p)² of the positive class, only for two classes and there the
        default. ``"sum"``: summed over the classes (Brier's own), for two classes twice that; the
        default for several. ``"mean_over_classes"``: the sum divided by the number of classes,
        which for two is ``"binary"`` again. The defaults are those of scikit-learn.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels. Not with (n, k).
    classes : array-like of labels, optional
        The class of each column, where y lacks some or the columns have another order.

    Notes
    -----
    BS = Σ w (y − p)² / Σ w, or Σ w Σ_j (y_j − p_j)² / Σ w over the classes j, y_j = 1 for the class
    that came. O(D) after the table, O(nk) for several classes; ties and order do not matter. It
    misleads for rare positives, where p = 0 for everyone scores well; compare with the base
    rate's (`corp` does).

    References
    ----------
    .. [1] G. Brier, "Verification of forecasts expressed in terms of probability", 1950,
       doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2.

    Examples
    --------
    >>> brier([0, 1], [0.5, 0.5]), brier([0, 1], [0.5, 0.5], normalise="sum")
    (0.25, 0.5)
    >>> brier(["a", "c"], [[0.5, 0.25, 0.25], [0, 0, 1]], classes=["a", "b", "c"])
    0.1875
    """
    if normalise is not None:
        check_word("normalise", normalise, NORMALISE)
    facts = read_facts(y, p, sample_weight, pos_label, classes)
    if isinstance(facts, TableFacts):
        return NORMALISE[normalise or "binary"] * facts.square
    k = facts.matrix.n_classes
    if normalise is not None and normalise not in DIVISOR:
        raise ParameterError(
            f"normalise must be 'sum' or 'mean_over_classes' for {k} classes, but {normalise!r} "
            "came."
        )
    return facts.square / DIVISOR[normalise or "sum"](k)


def rmse(
    y: Any,
    p: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """Root mean squared error of the probability, √mean (y − p)².

    Smaller is better; minimum 0, maximum 1.

    Parameters
    ----------
    y, p, sample_weight, pos_label, classes : see `brier`

    Notes
    -----
    The square root of the Brier score (for several classes, of its mean over them): it orders
    models alike, but a mean of it over data sets is not the root of the mean. O(D) after the
    table, O(nk) for several classes.

    Examples
    --------
    >>> rmse([0, 1], [0.5, 0.5])
    0.5
    """
    return read_facts(y, p, sample_weight, pos_label, classes).root_of_square


def log_loss(
    y: Any,
    p: Any = None,
    *,
    base: float = math.e,
    clip: float | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """Log loss (cross-entropy): the mean surprise −log P(what happened).

    Smaller is better; minimum 0, no maximum.

    Parameters
    ----------
    y, p, sample_weight, pos_label, classes : see `brier`
    base : float, default=e
        The base of the logarithm, above 1: e gives nats, 2 gives bits.
    clip : float, optional
        Clip p to [clip, 1 − clip] first. Without it the loss is exact, and infinite as soon as
        something happens that was given probability 0.

    Warns
    -----
    CalibrationWarning
        If the result is infinite: how many cases are to blame.

    Notes
    -----
    −Σ w [y log p + (1 − y) log(1 − p)] / Σ w with 0 · log 0 = 0, so never NaN; for several classes
    −Σ w log p_c / Σ w, c the class that came (rows are not made to sum to one first, not even after
    clipping). O(D) after the table, O(n) for several classes besides checking them; ties and order
    do not matter. It misleads when compared across libraries, some of which clip silently; and a
    single confident mistake may outweigh all else.

    References
    ----------
    .. [1] I. J. Good, "Rational decisions", 1952, doi:10.1111/j.2517-6161.1952.tb00104.x.

    Examples
    --------
    >>> round(log_loss([0, 1, 1], [0.5, 0.5, 1.0], base=2), 12)
    0.666666666667
    >>> round(log_loss([1, 1], [0.0, 1.0], clip=1e-6), 3)
    6.908
    """
    base = check_number("base", base, 1.0)
    if clip is not None:
        clip = check_number("clip", clip, 0.0, 0.5)
    facts = read_facts(y, p, sample_weight, pos_label, classes)
    loss = facts.log_loss(clip)
    if math.isinf(loss):
        warnings.warn(
            f"log loss is infinite: {facts.why_infinite()}. Pass clip= for a finite value, or "
            "calibrate with smoothing.",
            CalibrationWarning,
            stacklevel=caller_level(),
        )
    return loss / math.log(base)


# --- What measures are made of: facts of a table of two classes, or of a matrix of several --------


class TableFacts:
    """What measures of two classes are made of, each part computed when it is first asked for."""

    hidden_area = 0.0

    def __init__(self, ranked: ScoreTable, bins: Bins = 10) -> None:
        self.ranked = ranked
        self.bins = bins

    @cached_property
    def table(self) -> ScoreTable:
        """The table with probabilities for scores. Points are no probabilities, and stay."""
        return self.ranked.as_probabilities() or self.ranked

    def log_loss(self, clip: float | None = None) -> float:
        """The mean log loss; infinite where something came that had probability 0."""
        table = self.table
        p = table.scores if clip is None else np.clip(table.scores, clip, 1.0 - clip)
        loss = -(xlogy(table.positive, p).sum() + xlog1py(table.negative, -p).sum()) / table.total
        return float(loss) + 0.0  # −0.0 is 0.0

    def why_infinite(self) -> str:
        """Which cases make the log loss infinite, and how many."""
        table, blame = self.table, []
        for column, squared, at, word in (
            (table.positive, table.positive_sq, 0.0, "positive"),
            (table.negative, table.negative_sq, 1.0, "negative"),
        ):
            there = table.scores == at
            weight = float(column[there].sum())
            if not weight:
                continue
            if weight == float(squared[there].sum()):  # unit weights: cases can be counted
                many = f"{weight:g} {word}{' was' if weight == 1 else 's were'}"
            else:
                many = f"{word}s of total weight {weight:g} were"
            blame.append(f"{many} given probability {at:g}")
        return " and ".join(blame)

    @cached_property
    def square(self) -> float:
        """The Brier score, mean (y − p)²."""
        table, p = self.table, self.table.scores
        return float((table.positive @ (1.0 - p) ** 2 + table.negative @ p**2) / table.total)

    @property
    def root_of_square(self) -> float:
        """The root of the Brier score."""
        return math.sqrt(self.square)

    @cached_property
    def groups(self) -> Groups:
        """The sums of each bin."""
        return group(self.table, self.bins)

    @cached_property
    def share_correct(self) -> float:
        """The accuracy: the weight of positives with p ≥ ½ and negatives with p < ½, as a share."""
        table = self.table
        first = int(np.searchsorted(table.scores, 0.5, side="left"))
        return float((table.negative[:first].sum() + table.positive[first:].sum()) / table.total)

    @cached_property
    def hull(self) -> FlachMatsubara:
        """The Brier score split along the segments of the ROC convex hull."""
        table = self.table
        starts, n, rate = hull_blocks(table.weight, table.positive)
        fit = to_cells(rate, starts, len(table))
        apart = table.scores - fit
        ordering = 2.0 * float(apart @ (table.weight * fit - table.positive)) / table.total
        return FlachMatsubara(
            float(table.weight @ apart**2 / table.total),
            max(ordering, 0.0),  # rounding
            float(n @ (rate * (1.0 - rate)) / table.total),
        )

    @property
    def base_rate(self) -> float:
        """The share of positives."""
        return self.table.total_positive / self.table.total

    @cached_property
    def line(self) -> CoxLine:
        """Cox's line, fitted to the log-odds."""
        return cox_line(self.table)

    @cached_property
    def offset(self) -> Coefficient:
        """The intercept of Cox's line if its slope is 1."""
        return offset_intercept(self.table)

    @cached_property
    def certain(self) -> float:
        """The weight of predictions of exactly 0 or 1."""
        return inner_cells(self.table)[1]

    @cached_property
    def curve_gaps(self) -> CurveGaps:
        """The distance of each prediction from the smooth calibration curve."""
        return curve_gaps(self.table, smooth_curve(self.table))


class ClassColumns(NamedTuple):
    """The AUC and the CalBin of each class against the rest.

    The AUC of a class that did not come is None. Where there is no CalBin ``no_windows`` says why.
    """

    areas: list[float | None]
    windows: list[float]
    no_windows: str


def class_columns(tables: Iterable[ScoreTable], no_windows: str) -> ClassColumns:
    """The AUC and the CalBin of each class, from its table against the rest."""
    areas: list[float | None] = []
    windows: list[float] = []
    for table in tables:
        areas.append(None if one_class(table) else area(table))
        no_windows = no_windows or why_not_whole(table)
        if not no_windows:
            windows.append(window_error(table))
    return ClassColumns(areas, windows, no_windows)


def given_zero(count: float, weight: float | None) -> str:
    """A phrase: how many rows, or what weight of them, had probability 0 for the class that
    came."""
    rows = f"{count:.0f} row{' was' if count == 1 else 's were'}"
    if weight is not None:
        rows = f"rows of total weight {weight:g} were"
    return f"{rows} given probability 0 for the class that came"


class ClassFacts:
    """What measures of several classes are made of, each part computed when it is first asked
    for."""

    def __init__(self, matrix: ScoreMatrix, bins: Bins = 10) -> None:
        self.matrix = matrix
        self.bins = bins

    def log_loss(self, clip: float | None = None) -> float:
        """The mean log loss; infinite where the class that came had probability 0."""
        return self._weighted_mean(losses_of_rows(self.matrix, "log", clip))

    def why_infinite(self) -> str:
        """How many rows make the log loss infinite."""
        there, weight = _own_probability(self.matrix) == 0.0, self.matrix.weight
        return given_zero(there.sum(), None if weight is None else float(weight[there].sum()))

    @cached_property
    def square(self) -> float:
        """The mean over rows of Σ_j (y_j − p_j)²."""
        return self._weighted_mean(losses_of_rows(self.matrix, "brier"))

    @property
    def root_of_square(self) -> float:
        """The root of the mean over rows and classes of (y_j − p_j)²."""
        return math.sqrt(self.square / self.matrix.n_classes)

    @property
    def share_correct(self) -> float:
        """The share of the weight of rows whose most probable class came."""
        return self._weighted_mean(top_labels(self.matrix)[0] == self.matrix.codes)

    def _weighted_mean(self, values: NDArray[Any]) -> float:
        """The weighted mean over rows of a value of each."""
        weight = self.matrix.weight
        return float(values.mean() if weight is None else weight @ values / self.matrix.total)

    @cached_property
    def top(self) -> Groups:
        """The bins of the confidence, the probability of each row's most probable class."""
        return group(top_table(self.matrix), self.bins)

    @cached_property
    def each(self) -> list[Groups]:
        """The bins of each class against the rest."""
        return class_groups(self.matrix, self.bins)

    @cached_property
    def columns(self) -> ClassColumns:
        """The AUC and the CalBin of each class. Each column is sorted once for both."""
        reason = why_too_many(self.matrix.total * self.matrix.n_classes)
        return class_columns(class_tables(self.matrix), reason)


def read_facts(
    y: Any, p: Any, sample_weight: Any, pos_label: Any, classes: Any
) -> TableFacts | ClassFacts:
    """The facts of the probabilities that came, of two classes or of several."""
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    return TableFacts(seen) if isinstance(seen, ScoreTable) else ClassFacts(seen.matrix)


# --- the losses of each row of several classes --------------------------------------------------


def losses_of_rows(matrix: ScoreMatrix, loss: str, clip: float | None = None) -> Array:
    """The loss of each row: the log loss, or the sum over classes of (y_j − p_j)²."""
    if loss == "log":
        own = _own_probability(matrix)
        if clip is not None:
            own = np.clip(own, clip, 1.0 - clip)
        with np.errstate(divide="ignore"):
            return -np.log(own) + 0.0  # −0.0 is 0.0
    losses = []
    for p, codes, _ in matrix.blocks():
        p[np.arange(len(codes)), codes] -= 1.0  # Σp² − 2p_c + 1 would lose small differences
        losses.append(np.einsum("ij,ij->i", p, p))
    return np.concatenate(losses)


def _own_probability(matrix: ScoreMatrix) -> Array:
    """The probability that each row gave to the class that came."""
    own = matrix.scores[np.arange(len(matrix)), matrix.codes]
    return np.asarray(own, dtype=np.float64)
