"""Measures that compare the mean prediction with the frequency in a few bins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError
from calibrant.metrics.arguments import check_whole, check_word, read_predictions, read_rows
from calibrant.metrics.probability_matrix import has_several, top_labels, top_table
from calibrant.other_words import in_our_words

__all__ = [
    "BINNINGS",
    "Groups",
    "check_bins",
    "ece",
    "group",
    "group_starts",
    "mass_borders",
    "mce",
    "row_groups",
    "top_groups",
]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Groups(NamedTuple):
    """Per non-empty bin: its weight, the weight of its positives, and Σ weight · prediction."""

    weight: Array
    positive: Array
    predicted: Array

    def mean_gap(self) -> float:
        """Σ |predicted − positive| over the bins, divided by the total weight."""
        return float(np.abs(self.predicted - self.positive).sum() / self.weight.sum())

    def largest_gap(self) -> float:
        """The largest |mean prediction − frequency| of a bin."""
        return float((np.abs(self.predicted - self.positive) / self.weight).max())


@in_our_words
def ece(
    y: Any,
    p: Any = None,
    *,
    bins: int = 10,
    binning: str = "width",
    ties: str = "together",
    sample_weight: Any = None,
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
    bins : int, default=10
    binning : {"width", "mass"}, default="width"
        Bins [a, b) of equal width on [0, 1], the last one closed; or groups of equal weight in the
        order of the prediction.
    ties : {"together", "labels", "rows"}, default="together"
        Where a border between groups of equal mass falls inside a tie: ``"together"`` divides the
        tie in proportion, so that its order cannot matter; ``"labels"`` puts its negatives first,
        as the program behind [1]_ does (``"authors"`` is an older word for it); ``"rows"`` keeps
        the order in which the rows came, as the program behind [2]_ does, and needs rows, not a
        table. Bins of equal width never divide a tie.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
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
    """
    check_bins(bins, binning, ties)
    return _groups(y, p, bins, binning, ties, sample_weight, pos_label, classes).mean_gap()


@in_our_words
def mce(
    y: Any,
    p: Any = None,
    *,
    bins: int = 10,
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
    bins: int,
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
    if by_rows and not several:
        rows = read_rows(y, p, sample_weight, pos_label, classes)
        return row_groups(rows.scores, rows.positive, rows.weight, bins)
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    if isinstance(seen, ScoreTable):
        return group(seen, bins, binning, ties)
    return top_groups(seen.matrix, bins, binning, ties)


def top_groups(matrix: ScoreMatrix, bins: int, binning: str, ties: str) -> Groups:
    """The bins of the probability of each row's most probable class."""
    if (binning, ties) != ("mass", "rows"):
        return group(top_table(matrix), bins, binning, ties)
    top, confidence = top_labels(matrix)
    return row_groups(confidence, matrix.codes == top, matrix.weight, bins)


def check_bins(bins: int, binning: str, ties: str) -> None:
    """Refuse a number of bins, a binning or a treatment of ties that does not exist."""
    check_whole("bins", bins, 1)
    check_word("binning", binning, BINNINGS)
    check_word("ties", ties, TIES)


def group(table: ScoreTable, bins: int, binning: str = "width", ties: str = "together") -> Groups:
    """The sums of each bin, ties divided as ``ties`` says."""
    if binning == "mass":
        return _by_mass(*_CELLS[ties](table), table.is_whole, bins)
    starts = group_starts(table, bins, "width")
    columns = (table.weight, table.positive, table.weight * table.scores)
    return Groups(*(np.add.reduceat(column, starts) for column in columns))


def row_groups(
    p: NDArray[Any], positive: NDArray[np.bool_], weight: Array | None, bins: int
) -> Groups:
    """Groups of equal mass, rows of equal predictions in the order in which they came."""
    order = np.argsort(p, kind="stable")
    each = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=np.float64)
    whole = bool((each == np.floor(each)).all())
    return _by_mass(p[order].astype(np.float64), each[order], (each * positive)[order], whole, bins)


def _by_mass(scores: Array, weight: Array, positive: Array, whole: bool, bins: int) -> Groups:
    """Groups of equal mass: a cell that a border divides is divided in proportion."""
    mass = np.append(0.0, np.cumsum(weight))
    borders = mass_borders(mass[-1], whole, bins)
    columns = (weight, positive, weight * scores)
    upto = (np.interp(borders, mass, np.append(0.0, np.cumsum(column))) for column in columns)
    groups = Groups(*(np.diff(sums) for sums in upto))
    present = groups.weight > 0  # fewer cases than bins
    return Groups(*(sums[present] for sums in groups))


def _tied_cells(table: ScoreTable) -> tuple[Array, Array, Array]:
    return table.scores, table.weight, table.positive


def _split_cells(table: ScoreTable) -> tuple[Array, Array, Array]:
    """Every score twice, its negatives before its positives."""
    weight = np.column_stack((table.negative, table.positive)).ravel()
    positive = np.column_stack((np.zeros(len(table)), table.positive)).ravel()
    present = weight > 0
    return np.repeat(table.scores, 2)[present], weight[present], positive[present]


#: how bins may be cut
BINNINGS = ("width", "mass")
#: the cells of a table for each treatment of ties; "authors" is an older word for "labels"
_CELLS = {"together": _tied_cells, "labels": _split_cells, "authors": _split_cells}
#: all treatments of ties; "rows" needs rows, not a table
TIES = (*_CELLS, "rows")


def group_starts(table: ScoreTable, bins: int, binning: str) -> Index:
    """The first cell of every non-empty bin. A border inside a tie moves to the end of the tie."""
    if binning == "width":
        inner = np.searchsorted(table.scores, np.arange(1, bins) / bins, side="left")
    else:
        mass = np.cumsum(table.weight)
        borders = mass_borders(mass[-1], table.is_whole, bins)[1:-1]
        # a cumulative sum that is below its border by a rounding error has reached it
        inner = np.searchsorted(mass, borders - 1e-12 * mass[-1], side="left") + 1
    starts = np.unique(np.append(0, inner))
    return starts[starts < len(table)]


def mass_borders(total: float, whole: bool, bins: int) -> Array:
    """Where groups of equal mass begin and end, from 0 to the total weight."""
    if not whole:
        return np.asarray(np.linspace(0.0, total, bins + 1), dtype=np.float64)
    size, larger = divmod(total, bins)
    k = np.arange(bins + 1, dtype=np.float64)
    return k * size + np.minimum(k, larger)
