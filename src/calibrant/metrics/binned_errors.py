"""ECE and MCE: how far mean predictions are from frequencies, over bins."""

from __future__ import annotations

from typing import Any

from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError
from calibrant.metrics.arguments import read_predictions, read_rows
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.binned import Groups, check_bins, group, row_groups, top_groups
from calibrant.metrics.debiased import ErrorRule
from calibrant.metrics.probability_matrix import has_several, top_table
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
    if not debias:
        groups = _groups(y, p, bins, binning, ties, sample_weight, pos_label, classes)
        return rule.root(groups.mean_power(norm))
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    table = seen if isinstance(seen, ScoreTable) else top_table(seen.matrix)
    return rule.root(rule.debiased_power(table))


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
    return _groups(y, p, bins, binning, ties, sample_weight, pos_label, classes).largest_gap()


def _groups(
    y: Any,
    p: Any,
    bins: Bins,
    binning: str,
    ties: str,
    sample_weight: Any,
    pos_label: Any,
    classes: Any,
) -> Groups:
    """The bins of probabilities of two classes, or of the most probable of several."""
    by_rows = (binning, ties) == ("mass", "rows")
    if by_rows and isinstance(y, ScoreTable):
        raise InputError(
            'ties="rows" needs the rows in their order, but a ScoreTable came, which has none. '
            'Pass labels and probabilities, or take ties="together".'
        )
    several, p = has_several(y, p)
    if by_rows and not several and not isinstance(bins, str):
        rows = read_rows(y, p, sample_weight, pos_label, classes)
        return row_groups(rows.scores, rows.positive, rows.weight, bins)
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    if isinstance(seen, ScoreTable):
        return group(seen, bins, binning, ties)
    return top_groups(seen.matrix, bins, binning, ties)
