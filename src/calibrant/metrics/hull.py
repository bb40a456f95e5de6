"""Decompositions by isotonic regression, whose blocks are the segments of the ROC convex hull."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from calibrant.arrays import Array, Index
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import check_word
from calibrant.metrics.arguments import read_table
from calibrant.metrics.cell_runs import to_cells
from calibrant.metrics.decompose import RULES, mean_change


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
