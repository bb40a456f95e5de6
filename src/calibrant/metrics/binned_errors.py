"""ECE and MCE, of two classes and of several: how far predictions are from frequencies in bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows
from calibrant.errors import InputError
from calibrant.metrics.arguments import read_rows, read_table, refuse_positive
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.binned import check_bins, class_groups, group
from calibrant.metrics.debiased import ErrorRule
from calibrant.metrics.probability_matrix import (
    class_tables,
    has_several,
    read_classes,
    top_rows,
)
from calibrant.other_words import in_our_words


@in_our_words
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
    seen = _read(y, p, binning, ties, sample_weight, pos_label, classes)
    return rule.root(rule.mean_power(seen))


@in_our_words
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
    seen = _read(y, p, binning, ties, sample_weight, pos_label, classes)
    return group(seen, bins, binning, ties).largest_gap()


def _read(
    y: Any, p: Any, binning: str, ties: str, sample_weight: Any, pos_label: Any, classes: Any
) -> ScoreTable | Rows:
    """The probabilities of two classes, or those of the most probable of several."""
    if isinstance(y, ScoreTable) and (binning, ties) == ("mass", "rows"):
        raise InputError(
            'ties="rows" needs the rows in their order, but a ScoreTable came, which has none. '
            'Pass labels and probabilities, or take ties="together".'
        )
    several, p = has_several(y, p)
    if several:
        refuse_positive(pos_label)
        return top_rows(read_classes(y, p, sample_weight, classes).matrix)
    read = read_table if isinstance(y, ScoreTable) else read_rows
    return read(y, p, sample_weight, pos_label, classes)


# --- several classes ----------------------------------------------------------------------------


@in_our_words
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


@in_our_words
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


@in_our_words
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


@in_our_words
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
