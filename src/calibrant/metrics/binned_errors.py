"""ECE and MCE, of two classes and of several: how far predictions are from frequencies in bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import erf

from calibrant.array_types import Array
from calibrant.data.door import Rows, check_word
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, ParameterError, refuse_foreign_names
from calibrant.metrics.redraws import CellRows, redraw, redrawn_p_value
from calibrant.metrics.tables import (
    BINNINGS,
    Bins,
    as_table,
    check_bins,
    check_flag,
    check_number,
    check_weights,
    check_whole,
    class_groups,
    class_tables,
    group,
    group_starts,
    has_several,
    impossible,
    mass_borders,
    read_classes,
    read_generator,
    read_rows,
    read_table,
    residuals,
    squared_residuals,
    squares,
    table_for_test,
    to_cells,
    top_rows,
)
from calibrant.result_tables import Readable


@refuse_foreign_names
def ece(
    y: Any,
    p: Any = None,
    *,
    bins: Bins = 10,
    binning: str = "width",
    ties: str = "together",
    norm: int = 1,
    debias: bool = False,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """Expected calibration error: how far predictions are from frequencies, on average over bins.

    Smaller is better; minimum 0, maximum 1.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
        Predicted probabilities of the positive class, a binary predict_proba, or one column for
        each of k ≥ 3 classes in sorted order, each row a distribution (sum within 0.001 of 1).
    bins : int or "auto", default=10
        How many bins. ``"auto"``: the largest number of bins of equal weight up to which
        frequencies rise from bin to bin [3]_; then ``binning`` plays no part, and ties are whole.
    binning : {"width", "mass"}, default="width"
        Bins [a, b) of equal width on [0, 1], the last one closed; or groups of equal weight in the
        order of the prediction.
    ties : {"together", "labels", "rows"}, default="together"
        Where a border between groups of equal mass falls inside a tie: ``"together"`` divides the
        tie in proportion, so that its order cannot matter; ``"labels"`` puts its negatives first,
        as the program behind [1]_ does (``"authors"`` is an older word for it); ``"rows"`` keeps
        the order in which the rows came, as the program behind [2]_ does, and needs rows, not a
        table. Bins of equal width never divide a tie.
    norm : {1, 2}, default=1
        The mean of the distances, or the root of the mean of their squares (RMS calibration
        error). The largest of them is `mce`.
    debias : bool, default=False
        Whether to take off what chance adds: see Notes.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How ``debias`` reads a weight: as how much a row matters, or as a number of equal rows.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels. Not with (n, k).
    classes : array-like of labels, optional
        The class of each column, where y lacks some or the columns have another order.

    Notes
    -----
    ECE = Σ_b (n_b/n)·|mean prediction in b − frequency of positives in b|, empty bins left out.
    With whole weights of total W the groups of equal mass hold ⌊W/B⌋ cases, the first W mod B of
    them one more, so that a weight counts as repeated rows; with other weights each holds W/B.
    O(D + B log D) after the table.

    ``bins="auto"`` tries B = 2, 3, … bins of equal weight, ties kept whole, until a frequency is
    below that of the bin before; at most 1,000 bins. O(D + B² log D). It looks at the labels, so
    that few rows get few bins, and many rows many.

    ``debias=True`` needs the variance v of each bin's gap g = |mean of y − p|. With norm 2 the
    error is √max(0, Σ_b (n_b/n)·(g² − v)), and the sum is unbiased: with n rows in a bin of
    variance s², v = s²/n, which is ȳ(1 − ȳ)/(n − 1) if they share a prediction [4]_ [5]_. With
    norm 1 it is max(0, Σ_b (n_b/n)·(2g − E|g + √v·Z|)), Z standard normal: the correction of [4]_,
    whose mean over simulated Z is taken by its formula. Some bias is left, since no absolute value
    has an unbiased estimate at 0; ``ece_test(...).debiased`` leaves less where predictions are
    right. A bin of one row adds nothing with norm 2.

    For k ≥ 3 classes it is `top_label_ece`, of the most probable class's probability, as papers on
    networks have it. `classwise_ece` looks at all columns. (For two classes it stays the ECE of the
    positive class, also when both columns come.)

    It misleads: it is not a proper score (predicting the base rate for everyone has ECE near 0),
    it grows as bins get finer or data fewer, and opposite errors inside a bin cancel.
    ``ties="labels"`` and ``"rows"`` give up to ten times the honest value for predictions with many
    ties, and are there only to reproduce published tables.

    References
    ----------
    .. [1] M. Pakdaman Naeini, G. Cooper, M. Hauskrecht, "Obtaining well calibrated probabilities
       using Bayesian binning", 2015.
    .. [2] M. Pakdaman Naeini, G. Cooper, "Binary classifier calibration using an ensemble of
       piecewise linear regression models", 2018, doi:10.1007/s10115-017-1133-2.
    .. [3] R. Roelofs, N. Cain, J. Shlens, M. Mozer, "Mitigating bias in calibration error
       estimation", 2022, arXiv:2012.08668.
    .. [4] A. Kumar, P. Liang, T. Ma, "Verified uncertainty calibration", 2019, arXiv:1909.10155.
    .. [5] J. Bröcker, "Estimating reliability and resolution of probability forecasts through
       decomposition of the empirical score", 2012, doi:10.1007/s00382-011-1191-1.

    Examples
    --------
    >>> ece([0, 1, 1, 1], [0.125, 0.375, 0.75, 0.75], bins=2)
    0.25
    >>> tied = [0.5] * 4
    >>> ece([0, 0, 1, 1], tied, bins=2, binning="mass")
    0.0
    >>> ece([1, 0, 0, 1], tied, bins=2, binning="mass", ties="labels")
    0.5
    >>> ece([1, 0, 0, 1], tied, bins=2, binning="mass", ties="rows")
    0.0
    >>> y, p = [0, 0, 1, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> ece(y, p, bins="auto"), ece(y, p, bins=2, norm=2)
    (0.0, 0.0)
    >>> y = [1, 1, 1, 1, 0, 1, 1, 1]
    >>> round(ece(y, p, bins=2, norm=2), 4), round(ece(y, p, bins=2, norm=2, debias=True), 4)
    (0.5303, 0.5083)
    """
    rule = ErrorRule(bins, binning, ties, norm, debias, weights).checked()
    seen = _read_two_or_top(y, p, binning, ties, sample_weight, pos_label, classes)
    return rule.root(rule.mean_power(seen))


@refuse_foreign_names
def mce(
    y: Any,
    p: Any = None,
    *,
    bins: Bins = 10,
    binning: str = "width",
    ties: str = "together",
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """Maximum calibration error: the largest distance between prediction and frequency in a bin.

    Smaller is better; minimum 0, maximum 1.

    Parameters
    ----------
    y, p, bins, binning, ties, sample_weight, pos_label, classes : see `ece`

    Notes
    -----
    MCE = max_b |mean prediction in b − frequency of positives in b| over the non-empty bins.
    O(D + B log D) after the table. For k ≥ 3 classes it is `top_label_mce`; see also
    `classwise_mce`. It misleads where a bin holds few cases: one row alone in its
    bin is wrong by up to 1. ``binning="mass"`` is steadier.

    Examples
    --------
    >>> mce([0, 1, 1, 1], [0.125, 0.25, 0.75, 0.75], bins=2)
    0.3125
    """
    check_bins(bins, binning, ties)
    seen = _read_two_or_top(y, p, binning, ties, sample_weight, pos_label, classes)
    return group(seen, bins, binning, ties).largest_gap()


def _read_two_or_top(
    y: Any, p: Any, binning: str, ties: str, sample_weight: Any, pos_label: Any, classes: Any
) -> ScoreTable | Rows:
    """The rows or the table that bins are made of: of two classes the probabilities, of several
    those of the most probable class."""
    if isinstance(y, ScoreTable) and (binning, ties) == ("mass", "rows"):
        raise InputError(
            'ties="rows" needs the rows in their order, but a ScoreTable came, which has none. '
            'Pass labels and probabilities, or take ties="together".'
        )
    several, p = has_several(y, p, pos_label)
    if several:
        return top_rows(read_classes(y, p, sample_weight, classes).matrix)
    read = read_table if isinstance(y, ScoreTable) else read_rows
    return read(y, p, sample_weight, pos_label, classes)


# --- several classes ----------------------------------------------------------------------------


@refuse_foreign_names
def top_label_ece(
    y: Any,
    p: Any = None,
    *,
    bins: Bins = 10,
    binning: str = "width",
    ties: str = "together",
    norm: int = 1,
    debias: bool = False,
    sample_weight: Any = None,
    weights: str = "importance",
    classes: Any = None,
) -> float:
    """Expected calibration error of the confidence: how often the most probable class comes.

    Smaller is better; minimum 0, maximum 1. This is what most papers on networks call ECE.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreMatrix
        Labels of any kind; or a matrix of probabilities with its labels (then p is left out).
    p : array-like of shape (n, k)
        Predicted probabilities, a distribution in each row (sums within 0.001 of 1). Column j is
        the j-th class in sorted order.
    bins, binning, ties, norm, debias, weights : see `ece`
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    classes : array-like of k labels, optional
        The class of each column, where y lacks some or the columns have another order.

    Notes
    -----
    The binary ECE of the confidence max_j p_j, with "the most probable class came" in place of the
    positive label [1]_; of classes that tie, the first column counts as predicted. All predicted
    classes share the bins; [2]_ asks for calibration within each predicted class besides.
    For two classes it is not the binary `ece`: there, confidence lies in [½, 1] and errors of
    either class may cancel. It does not look at any class but the first. O(nk + n log n).

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Weinberger, "On calibration of modern neural networks",
       2017, arXiv:1706.04599.
    .. [2] C. Gupta, A. Ramdas, "Top-label calibration and multiclass-to-binary reductions", 2022,
       arXiv:2107.08353.

    Examples
    --------
    >>> p = [[0.75, 0.25, 0.0], [0.75, 0.125, 0.125], [0.0, 0.5, 0.5], [0.25, 0.25, 0.5]]
    >>> top_label_ece(["a", "b", "b", "c"], p)
    0.375
    """
    rule = ErrorRule(bins, binning, ties, norm, debias, weights).checked()
    matrix = read_classes(y, p, sample_weight, classes).matrix
    return rule.root(rule.mean_power(top_rows(matrix)))


@refuse_foreign_names
def top_label_mce(
    y: Any,
    p: Any = None,
    *,
    bins: Bins = 10,
    binning: str = "width",
    ties: str = "together",
    sample_weight: Any = None,
    classes: Any = None,
) -> float:
    """Maximum calibration error of the confidence: the bin where it is furthest from the truth.

    Smaller is better; minimum 0, maximum 1.

    Parameters
    ----------
    y, p, bins, binning, ties, sample_weight, classes : see `top_label_ece`

    Notes
    -----
    The largest |mean confidence − share of right predictions| over the bins of `top_label_ece`.
    It misleads where a bin holds few rows. O(nk + n log n).

    Examples
    --------
    >>> p = [[0.75, 0.25, 0.0], [0.75, 0.125, 0.125], [0.0, 0.5, 0.5], [0.25, 0.25, 0.5]]
    >>> top_label_mce(["a", "b", "b", "c"], p)
    0.5
    """
    check_bins(bins, binning, ties)
    matrix = read_classes(y, p, sample_weight, classes).matrix
    return group(top_rows(matrix), bins, binning, ties).largest_gap()


@refuse_foreign_names
def classwise_ece(
    y: Any,
    p: Any = None,
    *,
    bins: Bins = 10,
    binning: str = "width",
    ties: str = "together",
    norm: int = 1,
    debias: bool = False,
    sample_weight: Any = None,
    weights: str = "importance",
    classes: Any = None,
) -> float:
    """Class-wise expected calibration error: the ECE of each class against the rest, averaged.

    Smaller is better; minimum 0, maximum 1. It looks at every column of p.

    Parameters
    ----------
    y, p, bins, binning, ties, norm, debias, sample_weight, weights, classes
        See `top_label_ece`. ``bins="auto"`` is decided class by class.

    Notes
    -----
    (1/k) Σ_j ECE_j, where ECE_j is the binary `ece` of p_j with the j-th class as positive [1]_.
    Classes count alike, however rare; one that never comes counts with its mean probability. With
    ``norm=2`` it is √((1/k) Σ_j RMS_j²), the marginal calibration error of [2]_; ``debias`` takes
    off what chance adds to each square. Papers on networks also call it static calibration error
    (SCE), and with ``binning="mass"`` adaptive calibration error (ACE) [3]_.
    It misleads where k is large: most p_j are near 0, so that the mean is small whatever the
    model. Compare it only for the same k. Bins of equal width: O(nk log B), a block of rows at a
    time; of equal mass: O(nk log n), a column at a time.

    References
    ----------
    .. [1] M. Kull, M. Perello Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach, "Beyond
       temperature scaling: obtaining well-calibrated multi-class probabilities with Dirichlet
       calibration", 2019, arXiv:1910.12656.
    .. [2] A. Kumar, P. Liang, T. Ma, "Verified uncertainty calibration", 2019, arXiv:1909.10155.
    .. [3] J. Nixon, M. Dusenberry, L. Zhang, G. Jerfel, D. Tran, "Measuring calibration in deep
       learning", 2019, arXiv:1904.01685.

    Examples
    --------
    >>> p = [[0.75, 0.25, 0.0], [0.75, 0.125, 0.125], [0.0, 0.5, 0.5], [0.25, 0.25, 0.5]]
    >>> round(classwise_ece(["a", "b", "b", "c"], p), 4)
    0.2292
    """
    rule = ErrorRule(bins, binning, ties, norm, debias, weights).checked()
    matrix = read_classes(y, p, sample_weight, classes).matrix
    if debias:
        powers = [rule.mean_power(table) for table in class_tables(matrix)]
    else:
        powers = [each.mean_power(norm) for each in class_groups(matrix, bins, binning, ties)]
    return rule.root(float(np.mean(powers)))


@refuse_foreign_names
def classwise_mce(
    y: Any,
    p: Any = None,
    *,
    bins: Bins = 10,
    binning: str = "width",
    ties: str = "together",
    sample_weight: Any = None,
    classes: Any = None,
) -> float:
    """Class-wise maximum calibration error: the worst bin of the worst class.

    Smaller is better; minimum 0, maximum 1.

    Parameters
    ----------
    y, p, bins, binning, ties, sample_weight, classes : see `top_label_ece`

    Notes
    -----
    max_j MCE_j, where MCE_j is the binary `mce` of p_j with the j-th class as positive. It misleads
    where a bin holds few rows, and with many classes some bin does: ``binning="mass"`` is steadier.
    Cost as `classwise_ece`.

    Examples
    --------
    >>> p = [[0.75, 0.25, 0.0], [0.75, 0.125, 0.125], [0.0, 0.5, 0.5], [0.25, 0.25, 0.5]]
    >>> classwise_mce(["a", "b", "b", "c"], p)
    0.875
    """
    check_bins(bins, binning, ties)
    matrix = read_classes(y, p, sample_weight, classes).matrix
    return max(each.largest_gap() for each in class_groups(matrix, bins, binning, ties))


# --------------------------------------------------------------------------------------------------
# Errors over bins and chance: which error is asked for, without what chance adds, and a test


#: equal errors may differ by this much from rounding
ROUNDING = 1e-12


class CellsInBins:
    """The bin of each cell of a table. A cell that a border divides belongs to several bins.

    ``first`` is the bin in which each cell begins. ``whole`` are the numbers of the cells that end
    in it, too, ``shared`` those of the others, and ``shares`` how much of these lies in each bin.
    """

    def __init__(self, table: ScoreTable, bins: Bins, binning: str) -> None:
        if binning == "mass" and not isinstance(bins, str):
            self.bins = bins
            self._by_mass(table)
            return
        starts = group_starts(table, bins)
        self.bins = len(starts)
        self.first = to_cells(np.arange(self.bins), starts, len(table))
        self.whole, self.shared = np.arange(len(table)), np.arange(0)
        self.shares = np.zeros((0, self.bins))

    def _by_mass(self, table: ScoreTable) -> None:
        """Cut bins of equal weight. A cell that a border divides is shared in proportion."""
        mass = np.append(0.0, np.cumsum(table.weight))
        borders = mass_borders(mass[-1], table.is_whole, self.bins)
        last = np.searchsorted(borders, mass[1:], side="left") - 1
        self.first = np.minimum(np.searchsorted(borders, mass[:-1], side="right") - 1, last)
        self.whole, self.shared = (
            np.flatnonzero(at) for at in (self.first == last, self.first < last)
        )
        low, high = mass[self.shared, None], mass[self.shared + 1, None]
        inside = np.minimum(borders[1:], high) - np.maximum(borders[:-1], low)
        self.shares = np.maximum(inside, 0.0) / (high - low)

    def sums(self, column: Array, power: int = 1) -> Array:
        """The sum of a column over the cells of each bin. A shared cell counts with its share, to
        the given power."""
        sums = np.bincount(self.first[self.whole], column[self.whole], minlength=self.bins)
        return np.asarray(sums + column[self.shared] @ self.shares**power, dtype=np.float64)

    def gaps(self, table: ScoreTable) -> Array:
        """What each bin adds to the ECE: |Σ w(y − p)| / Σw of all rows."""
        return np.asarray(np.abs(self.sums(residuals(table))) / table.total)


class ErrorRule(NamedTuple):
    """The options of `ece`: bins, ties, norm, whether to debias, and how weights are read."""

    bins: Bins
    binning: str
    ties: str
    norm: int
    debias: bool
    weights: str

    def checked(self) -> ErrorRule:
        """The rule itself; options that do not exist, or do not go together, are refused."""
        check_bins(self.bins, self.binning, self.ties)
        check_weights(self.weights)
        if isinstance(self.norm, (bool, str)) or self.norm not in (1, 2):
            largest = self.norm in ("max", "inf", math.inf, -math.inf)
            raise ParameterError(
                f"norm must be 1 (mean) or 2 (root mean square), but {self.norm!r} came."
                f"{' The largest error of a bin is mce.' if largest else ''}"
            )
        check_flag("debias", self.debias)
        if self.debias and self.ties != "together":
            raise ParameterError(
                f'ties must be "together" beside debias=True, but {self.ties!r} came: what chance '
                "adds is known only where the order inside a tie plays no part."
            )
        return self

    def mean_power(self, seen: ScoreTable | Rows) -> float:
        """The mean over all cases of |gap of the case's bin|^norm, debiased if asked for."""
        if not self.debias:
            return group(seen, self.bins, self.binning, self.ties).mean_power(self.norm)
        share, gap, variance = _bin_gaps(as_table(seen), self)
        if self.norm == 2:
            return float(share @ (gap**2 - variance))
        return float(share @ (2.0 * gap - folded_mean(gap, np.sqrt(np.maximum(variance, 0.0)))))

    def root(self, mean_power: float) -> float:
        """The error, from the mean power. A debiased value below 0 counts as 0."""
        power = max(mean_power, 0.0)
        return power if self.norm == 1 else math.sqrt(power)


def _bin_gaps(table: ScoreTable, rule: ErrorRule) -> tuple[Array, Array, Array]:
    """For each bin: its share of the weight, |mean of y − p|, and the variance of that mean.

    A row that a border divides counts in each bin with its part of the weight. With such weights a
    and d = y − p, (Σad)² − Σa²d² has the expectation ((Σa)² − Σa²)·(E d)²: from that the variance
    is unbiased (and may be below 0 where weights differ). A bin of one row tells nothing of it:
    the square of its gap is taken for chance.
    """
    cells, sample = CellsInBins(table, rule.bins, rule.binning), table_for_test(table, rule.weights)
    weight, apart = cells.sums(sample.weight), cells.sums(residuals(sample))
    square, noise = cells.sums(squares(sample), 2), cells.sums(squared_residuals(sample), 2)
    some = weight > 0.0
    weight, gap = weight[some], np.abs(apart[some]) / weight[some]
    single, noise = square[some] / weight**2, noise[some] / weight**2
    rest = 1.0 - single
    known = rest > 1e-9
    variance = np.where(known, (noise - gap**2 * single) / np.where(known, rest, 1.0), gap**2)
    return weight / weight.sum(), gap, variance


def folded_mean(mean: Array, sd: Array) -> Array:
    """The mean of |m + σZ| for standard normal Z and m ≥ 0.

    >>> folded_mean(np.array([0.0, 3.0, 2.0]), np.array([1.0, 0.0, 1.0])).round(4).tolist()
    [0.7979, 3.0, 2.017]
    """
    some = sd > 0.0
    far = np.where(some, np.minimum(mean, 100.0 * sd), 1.0) / np.where(some, sd, 1e-2)
    tail = np.exp(-0.5 * far**2)  # beyond 100 σ it adds nothing
    return np.asarray(mean * erf(far / math.sqrt(2.0)) + sd * math.sqrt(2.0 / math.pi) * tail)


def without_chance(value: float, gaps: Array, chance: Array) -> float:
    """The error without what chance adds to it: between 0 and the error itself.

    It is c·error, with the c for which true gaps of c times those seen, blurred by chance, would on
    average give the error seen. ``gaps`` and ``chance`` are each bin's part of the error, and of
    the mean error of redrawn labels. Chance is taken to be normal, with the standard deviation
    chance·√(π/2).
    """
    if value <= chance.sum() * (1.0 + ROUNDING):  # taking the root would turn 1e-16 into 1e-7
        return 0.0
    some = chance > 0.0
    fixed, g, e = gaps[~some].sum(), gaps[some], chance[some]

    def above(scale: float) -> float:
        blurred = folded_mean(scale * g, e * np.sqrt(np.pi / 2.0))
        return float(blurred.sum() + scale * fixed - value)

    return float(value * brentq(above, 0.0, 1.0)) if above(1.0) > 0.0 else value


# --- a test -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class ECETest(Readable):
    """The result of `ece_test`.

    Attributes
    ----------
    value : float
        The ECE itself, as `ece` gives it.
    expected : float
        Its mean if the predictions are right: what chance alone makes of it.
    quantile : float
        Its ``level`` quantile if the predictions are right.
    p_value : float
        The chance of at least this ECE if the predictions are right.
    debiased : float
        An estimate of the ECE without what chance adds to it, between 0 and ``value``.
    level : float
        Which quantile.
    replicates : int
        How many times the labels were redrawn.
    """

    value: float
    expected: float
    quantile: float
    p_value: float
    debiased: float
    level: float
    replicates: int


@refuse_foreign_names
def ece_test(
    y: Any,
    p: Any = None,
    *,
    bins: int = 10,
    binning: str = "width",
    replicates: int = 1000,
    level: float = 0.95,
    random_state: Any = 0,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> ECETest:
    """Is the ECE larger than chance makes it when predictions are right? With a debiased ECE.

    A small value near ``expected`` (a large p-value) is good.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    bins : int, default=10
    binning : {"width", "mass"}, default="width"
        As for `ece`.
    replicates : int, default=1000
        How many times labels are redrawn from p; the p-value is at least 1/(replicates + 1).
    level : float, default=0.95
        Which quantile of the redrawn ECE to return.
    random_state : int, Generator or None, default=0
        The seed of the redrawing: the same seed, the same answer.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then it must be whole).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    Labels are redrawn y*ᵢ ~ Bernoulli(pᵢ), which is what "the predictions are right" means, and the
    ECE of each redrawing compared with that of the data: p-value = (1 + #{ECE* ≥ ECE})/(R + 1),
    valid for every n, distribution of p and number of bins. Only the sums of the bins are needed.
    Up to 2·10⁷ single draws they are drawn cell by cell (binomial), exactly. Beyond, a bin whose
    sum has variance σ² ≥ 100 is drawn from the refined normal approximation [3]_ (with skewness,
    and rounded where weights are counts): its distribution function is within 0.0125/σ² ≤ 0.00013
    of the true one in the most skewed case, that of a Poisson variable. (For importance weights the
    condition is Σw³p(1 − p) ≤ σ³/10, of which that is a case.) Other bins are drawn exactly, by
    thinning a Poisson process. Cost O(D + R·min(D, 300·bins)): about a second for 10⁶ rows.
    Something that happened at probability 0 (or did not at 1) could never be redrawn: the p-value
    is then 0.

    ``debiased`` is c·ECE with the c ∈ [0, 1] for which gaps of c times the ones seen, blurred by
    the chance that redrawing shows in each bin, would on average give the ECE seen. It is 0 where
    the ECE is at most ``expected``, and the ECE itself where that is far above. An absolute value
    near 0 has no unbiased estimate. In simulations this one takes away two thirds of what chance
    adds to the ECE of right predictions, where the bootstrap correction of [1]_ takes 40 %; for
    predictions that are wrong nearly everywhere both are right on average to about a sixth of the
    ECE with 500 rows, this one with the larger spread; of an error in one bin of ten both keep much
    of what chance adds in the others. To subtract ``expected`` would go below the truth by half of
    it in the first case.

    Ties: as in `ece`; a tie divided between groups of equal mass is redrawn as one. Importance
    weights of tied rows are known only by Σw and Σw², and are redrawn as one row of some weight
    and others of equal weight with the same sums: exact for one or two rows.

    It misleads: a small ECE is easily had by bins that hide errors of opposite sign; and with much
    data every model is found wrong, by however little: then ``debiased`` is the answer to look at.

    References
    ----------
    .. [1] A. Kumar, P. Liang, T. Ma, "Verified uncertainty calibration", 2019, arXiv:1909.10155.
    .. [2] J. Bröcker, L. Smith, "Increasing the reliability of reliability diagrams", 2007,
       doi:10.1175/WAF993.1.
    .. [3] Y. Hong, "On computing the distribution function for the Poisson binomial distribution",
       2013, doi:10.1016/j.csda.2012.10.006.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> p = rng.random(400)
    >>> right = ece_test(rng.random(400) < p, p)
    >>> right.p_value > 0.05, right.value < right.quantile
    (True, True)
    >>> ece_test(rng.random(400) < p**2, p).p_value < 0.01
    True
    """
    check_whole("bins", bins, 1)
    check_word("binning", binning, BINNINGS)
    replicates = check_whole("replicates", replicates, 1)
    level = check_number("level", level, 0.0, 1.0)
    random = read_generator(random_state)
    table = read_table(y, p, sample_weight, pos_label)
    in_rows = table_for_test(table, weights)
    cells = CellsInBins(table, bins, binning)
    drawn = np.abs(_redrawn_bins(cells, CellRows.of(in_rows), replicates, random)) / in_rows.total
    null = drawn.sum(axis=1)
    value = group(table, bins, binning).mean_gap()
    return ECETest(
        value,
        float(null.mean()),
        float(np.quantile(null, level)),
        0.0 if impossible(table) else redrawn_p_value(null, value),
        without_chance(value, cells.gaps(table), drawn.mean(axis=0)),
        level,
        replicates,
    )


def _redrawn_bins(
    cells: CellsInBins, rows: CellRows, replicates: int, random: np.random.Generator
) -> Array:
    """Σ w(y* − p) of each bin, with redrawn labels y*: shape (replicates, bins)."""
    gaps = np.zeros((replicates, cells.bins))
    if len(cells.whole):
        inside = cells.first[cells.whole]
        starts = np.flatnonzero(np.diff(inside, prepend=-1))
        gaps[:, inside[starts]] = redraw(rows.part(cells.whole), starts, replicates, random)
    if len(cells.shared):
        each = np.arange(len(cells.shared))
        drawn = redraw(rows.part(cells.shared), each, replicates, random)
        gaps += drawn @ cells.shares
    return gaps
