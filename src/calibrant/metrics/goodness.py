"""Tests of calibration by one statistic: Hosmer–Lemeshow and Spiegelhalter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, erfc

from calibrant.array_types import Array, Index
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import check_word
from calibrant.data.weighing import table_in_rows
from calibrant.errors import InputError
from calibrant.metrics.arguments import check_whole, read_generator, read_table
from calibrant.metrics.binned import BINNINGS, group_starts
from calibrant.metrics.redrawn_labels import CellRows, redraw, share_as_far
from calibrant.metrics.weighted_cells import (
    check_weights,
    deviation,
    impossible,
    last_cells,
    residuals,
    squares,
    table_for_test,
)
from calibrant.other_words import in_our_words
from calibrant.result_tables import Readable


@dataclass(frozen=True, repr=False)
class HosmerLemeshow(Readable):
    """The result of `hosmer_lemeshow`.

    Attributes
    ----------
    statistic : float
        Smaller is better; infinite where something impossible happened (a positive at p = 0, a
        negative at p = 1).
    df : int
        Degrees of freedom.
    p_value : float
        The chance of at least this statistic if the probabilities are right.
    groups : int
        Groups used.
    dropped : int
        Groups left out: empty, or with nothing to test (all p exactly 0 or all 1, and right).
    replicates : int or None
        How many times the labels were redrawn for the p-value; None where it is that of χ².
    """

    statistic: float
    df: int
    p_value: float
    groups: int
    dropped: int
    replicates: int | None = None


@in_our_words
def hosmer_lemeshow(
    y: Any,
    p: Any = None,
    *,
    bins: int = 10,
    binning: str = "mass",
    fitted: bool = False,
    replicates: int | None = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> HosmerLemeshow:
    """Hosmer–Lemeshow test: are the deviations of frequencies from predictions just chance?

    A small statistic (a large p-value) is good.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    bins : int, default=10
        How many groups.
    binning : {"mass", "width"}, default="mass"
        Groups of equal weight, the authors' Ĉ (deciles of risk); or of equal width, fixed cuts, Ĥ.
    fitted : bool, default=False
        Whether p comes from a model fitted to these same rows: then df = G − 2 for G groups, else
        G, and the p-value is that of χ².
    replicates : int or None, default=1000
        How many times labels are redrawn from p for the p-value, which is at least
        1/(replicates + 1). None: the p-value of χ², as it is published.
    random_state : int, Generator or None, default=0
        The seed of the redrawing: the same seed, the same answer.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then the p-value means something only for whole weights, and
        rescaling them rescales the statistic).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    Σ_g (O_g − E_g)² / (n_g π_g (1 − π_g)) with O_g positives observed, E_g = Σ p expected,
    π_g = E_g/n_g. Labels are redrawn y*ᵢ ~ Bernoulli(pᵢ), and p-value = (1 + #{statistic* ≥
    statistic})/(R + 1), valid for every n, distribution of p and number of groups (how they are
    drawn: see `ece_test`). ``replicates=None`` compares with χ². With importance weights each part
    is divided by Σw²/Σw of its group, as the variance of a weighted sum asks. Ties are never
    divided: a border inside one moves to its end, and groups emptied that way are dropped and
    counted. O(D + G log D) after the table, without the redrawing.

    It misleads: with little data it rejects nothing, with much data everything; and it depends on
    the number of groups. Where a group expects fewer than about five positives or negatives, χ² is
    not the distribution of the statistic: with rare positives its p-values give 7 to 12 % of false
    alarms at the 5 % level, with U-shaped predictions and 50 rows 7 %. Redrawn labels give 5.

    References
    ----------
    .. [1] D. Hosmer, S. Lemeshow, "Goodness of fit tests for the multiple logistic regression
       model", 1980, doi:10.1080/03610928008827941.

    Examples
    --------
    >>> hosmer_lemeshow([0, 1, 0, 1], [0.25, 0.25, 0.5, 0.5], bins=2).statistic
    0.6666666666666666
    >>> hosmer_lemeshow([0, 1], [0.2, 0.9], binning="width").dropped
    8
    """
    bins = check_whole("bins", bins, 2)
    if replicates is not None:
        check_whole("replicates", replicates, 1)
    random = read_generator(random_state)
    check_word("binning", binning, BINNINGS)
    check_weights(weights)
    given = read_table(y, p, sample_weight, pos_label)
    table = table_in_rows(given, weights)
    groups = RiskGroups.of(table, group_starts(given, bins, binning))
    parts = groups.parts(np.add.reduceat(residuals(table), groups.starts))
    statistic = float(parts.sum())
    low, high = table.scores[groups.starts], table.scores[last_cells(groups.starts, len(table))]
    used = int(((high > 0) & (low < 1) | (parts > 0)).sum())
    df = _degrees_of_freedom(used, fitted)
    if fitted or replicates is None:
        p_value = float(chdtrc(df, statistic)) if df else 1.0
        return HosmerLemeshow(statistic, df, p_value, used, bins - used)
    p_value = 0.0
    if not impossible(table):
        drawn = redraw(CellRows.of(table), groups.starts, replicates, random)
        p_value = share_as_far(groups.parts(drawn).sum(axis=1), statistic)
    return HosmerLemeshow(statistic, df, p_value, used, bins - used, replicates)


class RiskGroups(NamedTuple):
    """The groups of `hosmer_lemeshow`: their first cells, n_g, and n_g π_g (1 − π_g)·Σw²/Σw."""

    starts: Index
    weight: Array
    variance: Array

    @classmethod
    def of(cls, table: ScoreTable, starts: Index) -> RiskGroups:
        n, square, expected0, expected1 = (
            np.add.reduceat(column, starts)
            for column in (
                table.weight,
                squares(table),
                table.weight * (1.0 - table.scores),
                table.weight * table.scores,
            )
        )
        return cls(starts, n, expected1 * (expected0 / n) * (square / n))

    def parts(self, residual: Array) -> Array:
        """Each group's part of the statistic, from Σ w(y − p) of the groups (the last axis)."""
        rounding = np.where(self.variance == 0.0, 1e-12 * self.weight, 0.0)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return np.where(np.abs(residual) <= rounding, 0.0, residual**2 / self.variance)


def _degrees_of_freedom(used: int, fitted: bool) -> int:
    if not fitted:
        return used
    if used < 3:
        raise InputError(
            f"with fitted=True at least 3 groups with something to test are needed, but {used} "
            "came. Ask for more bins, or use binning='mass'."
        )
    return used - 2


@dataclass(frozen=True, repr=False)
class Spiegelhalter(Readable):
    """The result of `spiegelhalter`.

    Attributes
    ----------
    statistic : float
        Z: 0 is best; above 0 the Brier score is worse than the predictions promise (they are too
        extreme), below 0 better (too timid). Infinite where something impossible happened.
    p_value : float
        The chance of at least this |Z| if the predictions are right.
    brier : float
        The Brier score.
    expected : float
        What the predictions say it should be, Σw p(1 − p)/Σw.
    """

    statistic: float
    p_value: float
    brier: float
    expected: float


def spiegelhalter(
    y: Any,
    p: Any = None,
    *,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> Spiegelhalter:
    """Spiegelhalter's test: is the Brier score what the predictions themselves promise?

    Z near 0 (a large p-value) is good.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then it must be whole).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    Z = Σ w(y − p)(1 − 2p) / √Σ w²(1 − 2p)² p(1 − p), compared with the normal distribution, two
    sides. The numerator is Σw times the Brier score minus its expectation Σw p(1 − p)/Σw. Ties
    and order do not matter. O(D) after the table. With nothing to test (all p are ½, or
    certain and right) Z = 0 and the p-value is 1.

    It misleads: it is blind to errors that cancel in the sum, above all to a wrong base rate where
    predictions lie on both sides of ½, and to anything at p = ½; and it is normal only where
    many rows have something to say (not with rare positives and few rows).

    References
    ----------
    .. [1] D. Spiegelhalter, "Probabilistic prediction in patient management and clinical trials",
       1986, doi:10.1002/sim.4780050506.

    Examples
    --------
    >>> spiegelhalter([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9])
    Spiegelhalter(statistic=-0.3273, p_value=0.7434, brier=0.135, expected=0.165)
    >>> spiegelhalter([1, 0] * 50, [0.1, 0.9] * 50).p_value < 1e-9
    True
    """
    table = table_for_test(read_table(y, p, sample_weight, pos_label), weights)
    tilt, total = 1.0 - 2.0 * table.scores, table.total
    excess, spread = float(residuals(table) @ tilt), deviation(table, tilt)
    promised = float(table.weight @ (table.scores * (1.0 - table.scores))) / total
    z = excess / spread if spread > 0.0 else 0.0
    if impossible(table):
        z = math.inf
    return Spiegelhalter(
        z, float(erfc(abs(z) / math.sqrt(2.0))), promised + excess / total, promised
    )
