"""The Hosmer–Lemeshow tests of calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc

from calibrant.errors import InputError
from calibrant.metrics._input import check_whole, check_word, observe
from calibrant.metrics.binned import group_starts

__all__ = ["HosmerLemeshow", "hosmer_lemeshow"]

#: which groups each of the two statistics takes
KINDS = {"C": "mass", "H": "width"}


@dataclass(frozen=True)
class HosmerLemeshow:
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
    """

    statistic: float
    df: int
    p_value: float
    groups: int
    dropped: int


def hosmer_lemeshow(
    y: Any,
    p: Any = None,
    *,
    groups: int = 10,
    kind: str = "C",
    fitted: bool = False,
    sample_weight: Any = None,
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
    groups : int, default=10
    kind : {"C", "H"}, default="C"
        Ĉ: groups of equal weight (deciles of risk). Ĥ: fixed cuts, groups of equal width.
    fitted : bool, default=False
        Whether p comes from a model fitted to these same rows: then df = groups − 2, else groups.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent. They count as repetitions, so the
        p-value means something only for whole weights; rescaling them rescales the statistic.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    Σ_g (O_g − E_g)² / (n_g π_g (1 − π_g)) with O_g positives observed, E_g = Σ p expected,
    π_g = E_g/n_g; compared with χ². Ties are never divided: a border inside one moves to its end,
    and groups emptied that way are dropped and counted. O(D + G log D) after the table.

    It misleads: with little data it rejects nothing, with much data everything; and it depends on
    the number of groups.

    References
    ----------
    .. [1] D. Hosmer, S. Lemeshow, "Goodness of fit tests for the multiple logistic regression
       model", 1980, doi:10.1080/03610928008827941.

    Examples
    --------
    >>> hosmer_lemeshow([0, 1, 0, 1], [0.25, 0.25, 0.5, 0.5], groups=2).statistic
    0.6666666666666666
    >>> hosmer_lemeshow([0, 1], [0.2, 0.9], kind="H").dropped
    8
    """
    groups = check_whole("groups", groups, 2)
    check_word("kind", kind, KINDS)
    table = observe(y, p, sample_weight, pos_label)
    starts = group_starts(table, groups, KINDS[kind])
    n0, n1, expected0, expected1 = (
        np.add.reduceat(column, starts)
        for column in (
            table.negative,
            table.positive,
            table.weight * (1.0 - table.scores),
            table.weight * table.scores,
        )
    )
    # the two differences are equal, but the smaller expectation is the more precise
    residual = np.where(expected1 < expected0, n1 - expected1, expected0 - n0)
    variance = expected1 * (expected0 / (n0 + n1))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        parts = np.where(residual == 0, 0.0, residual**2 / variance)
    statistic = float(parts.sum())
    low, high = table.scores[starts], table.scores[np.append(starts[1:], len(table)) - 1]
    used = int(((high > 0) & (low < 1) | (parts > 0)).sum())
    df = _degrees_of_freedom(used, fitted)
    p_value = float(chdtrc(df, statistic)) if df else 1.0
    return HosmerLemeshow(statistic, df, p_value, used, groups - used)


def _degrees_of_freedom(used: int, fitted: bool) -> int:
    if not fitted:
        return used
    if used < 3:
        raise InputError(
            f"with fitted=True at least 3 groups with something to test are needed, but {used} "
            "came. Ask for more groups, or use kind='C'."
        )
    return used - 2
