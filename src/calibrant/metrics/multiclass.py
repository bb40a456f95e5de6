"""ECE and MCE of several classes: of the most probable class, and of each against the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.score_matrix import ScoreMatrix
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.binned import Groups, check_bins, group, row_groups, top_groups
from calibrant.metrics.debiased import ErrorRule
from calibrant.metrics.probability_matrix import class_tables, read_classes, top_table
from calibrant.other_words import in_our_words


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
    if debias:
        return rule.root(rule.debiased_power(top_table(matrix)))
    return rule.root(top_groups(matrix, bins, binning, ties).mean_power(norm))


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
    return top_groups(matrix, bins, binning, ties).largest_gap()


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
        powers = [rule.debiased_power(table) for table in class_tables(matrix)]
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


def class_groups(
    matrix: ScoreMatrix, bins: Bins, binning: str = "width", ties: str = "together"
) -> list[Groups]:
    """The sums of each bin, for each class against the rest."""
    if isinstance(bins, str):
        return [group(table, bins) for table in class_tables(matrix)]
    if binning == "width":
        return _equal_width(matrix, bins)
    if ties != "rows":
        return [group(table, bins, "mass", ties) for table in class_tables(matrix)]
    return [
        row_groups(matrix.scores[:, j], matrix.codes == j, matrix.weight, bins)
        for j in range(matrix.n_classes)
    ]


def _equal_width(matrix: ScoreMatrix, bins: int) -> list[Groups]:
    """All classes at once, a block of rows at a time: bins of equal width need no sorting."""
    k = matrix.n_classes
    edges = np.arange(1, bins) / bins
    offset = bins * np.arange(k)
    sums = np.zeros((3, k * bins))
    for p, codes, weight in matrix.blocks():
        cell = np.searchsorted(edges, p.ravel(), side="right").reshape(p.shape) + offset
        own = cell[np.arange(len(codes)), codes]
        each = np.repeat(weight, k)
        size = k * bins
        sums[0] += np.bincount(cell.ravel(), each, minlength=size)
        sums[1] += np.bincount(own, weight, minlength=size)
        sums[2] += np.bincount(cell.ravel(), each * p.ravel(), minlength=size)
    classes = np.moveaxis(sums.reshape(3, k, bins), 1, 0)
    return [Groups(*columns[:, columns[0] > 0]) for columns in classes]
