"""CalBin: calibration over overlapping windows of consecutive predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError
from calibrant.metrics.arguments import check_whole, read_predictions
from calibrant.metrics.probability_matrix import class_tables

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
        if reason := not_whole(table):
            raise InputError(f"{reason}. Repeat rows, or use ece, which takes any weights.")
        errors.append(window_error(table, window))
    return float(np.mean(errors))


def not_whole(table: ScoreTable) -> str:
    """Why the table has no CalBin; empty if it has one."""
    if table.is_whole:
        return ""
    return "calbin needs whole weights (a window counts cases), but fractions came"


def too_many(cases: float) -> str:
    """Why evaluate leaves CalBin out; empty if it does not."""
    if cases <= MOST_WINDOWS:
        return ""
    return f"calbin was left out: it looks at each of {cases:.3g} cases; call calbin for it"


def window_error(table: ScoreTable, window: int | None = None) -> float:
    """CalBin of a table with whole weights."""
    ends = np.cumsum(table.weight.astype(np.int64))
    n = int(ends[-1])
    size = min(n, max(1, n // 10) if window is None else window)
    sums = _Sums(table, ends)
    windows = n - size + 1
    total = 0.0
    for first in range(0, windows, CHUNK):
        total += float(sums.errors(first, min(first + CHUNK, windows), size).sum())
    return max(total, 0.0) / windows  # rounding may go below 0


class _Sums:
    """Cumulative sums over the cases, in the order of their predictions."""

    def __init__(self, table: ScoreTable, ends: NDArray[np.int64]) -> None:
        self.scores = table.scores
        # an empty cell follows the last one
        self.p, self.rate = np.append(table.scores, 0.0), np.append(table.rate, 0.0)
        self.before = np.append(0, ends)  # cases before each cell
        self.upto_p = np.append(0.0, np.cumsum(table.weight * table.scores))
        self.upto_y = np.append(0.0, np.cumsum(table.positive))

    def errors(self, first: int, stop: int, size: int) -> Array:
        """Mean |p − f| of the windows that start after ``first``, …, ``stop`` − 1 cases."""
        p_start, y_start = self._upto(first, stop)
        p_end, y_end = self._upto(first + size, stop + size)
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

    def _upto(self, first: int, stop: int) -> tuple[Array, Array]:
        """Σp and Σ(frequency of the case's tie) over the first ``first``, …, ``stop`` − 1 cases."""
        low, high = np.searchsorted(self.before, (first, stop - 1), side="right") - 1
        borders = np.clip(np.append(self.before[low : high + 1], stop), first, stop)
        cell = np.repeat(np.arange(low, high + 1), np.diff(borders))
        inside = np.arange(first, stop) - self.before[cell]
        return (
            self.upto_p[cell] + inside * self.p[cell],
            self.upto_y[cell] + inside * self.rate[cell],
        )
