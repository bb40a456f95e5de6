"""Proper scores: they are least, in expectation, at the true probability."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from scipy.special import xlog1py, xlogy

from calibrant.data.table import ScoreTable
from calibrant.errors import CalibrationWarning
from calibrant.metrics._input import check_number, check_word, observe

__all__ = ["brier", "infinite_because", "log_loss", "mean_log_loss", "mean_square", "rmse"]

#: a multiple of mean (y − p)², by the name of the normalisation, for two classes
NORMALISE = {"binary": 1.0, "sum": 2.0, "mean_over_classes": 1.0}


def brier(
    y: Any,
    p: Any = None,
    *,
    normalise: str = "binary",
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Brier score: the mean squared error of the probability.

    Smaller is better; minimum 0, maximum 1 (2 with ``normalise="sum"``).

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    normalise : {"binary", "sum", "mean_over_classes"}, default="binary"
        ``"binary"``: mean (y − p)², scikit-learn's binary Brier score. ``"sum"``: summed over both
        classes, twice that (Brier's own). ``"mean_over_classes"``: the sum divided by the number
        of classes, which for two classes is ``"binary"`` again.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    BS = Σ w (y − p)² / Σ w. O(D) after the table; ties and order do not matter. It misleads for
    rare positives, where p = 0 for everyone scores well; compare with the base rate's
    (`corp` does).

    References
    ----------
    .. [1] G. Brier, "Verification of forecasts expressed in terms of probability", 1950,
       doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2.

    Examples
    --------
    >>> brier([0, 1], [0.5, 0.5]), brier([0, 1], [0.5, 0.5], normalise="sum")
    (0.25, 0.5)
    """
    check_word("normalise", normalise, NORMALISE)
    return NORMALISE[normalise] * mean_square(observe(y, p, sample_weight, pos_label))


def rmse(y: Any, p: Any = None, *, sample_weight: Any = None, pos_label: Any = None) -> float:
    """Root mean squared error of the probability, √mean (y − p)².

    Smaller is better; minimum 0, maximum 1.

    Parameters
    ----------
    y, p, sample_weight, pos_label : see `brier`

    Notes
    -----
    The square root of the Brier score: it orders models alike, but a mean of it over data sets is
    not the root of the mean. O(D) after the table.

    Examples
    --------
    >>> rmse([0, 1], [0.5, 0.5])
    0.5
    """
    return math.sqrt(mean_square(observe(y, p, sample_weight, pos_label)))


def log_loss(
    y: Any,
    p: Any = None,
    *,
    base: float = math.e,
    clip: float | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Log loss (cross-entropy): the mean surprise −log P(what happened).

    Smaller is better; minimum 0, no maximum.

    Parameters
    ----------
    y, p, sample_weight, pos_label : see `brier`
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
    −Σ w [y log p + (1 − y) log(1 − p)] / Σ w with 0 · log 0 = 0, so never NaN. O(D) after the
    table; ties and order do not matter. It misleads when compared across libraries, some of which
    clip silently; and a single confident mistake may outweigh all else.

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
    table = observe(y, p, sample_weight, pos_label)
    loss = mean_log_loss(table, clip)
    if math.isinf(loss):
        warnings.warn(
            f"log loss is infinite: {infinite_because(table)}. Pass clip= for a finite value, or "
            "calibrate with smoothing.",
            CalibrationWarning,
            stacklevel=2,
        )
    return loss / math.log(base)


def mean_square(table: ScoreTable) -> float:
    """Mean (y − p)² of a table."""
    p = table.scores
    return float((table.positive @ (1.0 - p) ** 2 + table.negative @ p**2) / table.total)


def mean_log_loss(table: ScoreTable, clip: float | None = None) -> float:
    """Mean −ln P(y) of a table; infinite where something impossible happened."""
    p = table.scores if clip is None else np.clip(table.scores, clip, 1.0 - clip)
    loss = -(xlogy(table.positive, p).sum() + xlog1py(table.negative, -p).sum()) / table.total
    return float(loss) + 0.0  # −0.0 is 0.0


def infinite_because(table: ScoreTable) -> str:
    """Which cases make the log loss infinite, and how many."""
    blame = []
    for column, squares, at, word in (
        (table.positive, table.positive_sq, 0.0, "positive"),
        (table.negative, table.negative_sq, 1.0, "negative"),
    ):
        there = table.scores == at
        weight = float(column[there].sum())
        if not weight:
            continue
        if weight == float(squares[there].sum()):  # unit weights: cases can be counted
            many = f"{weight:g} {word}{' was' if weight == 1 else 's were'}"
        else:
            many = f"{word}s of total weight {weight:g} were"
        blame.append(f"{many} given probability {at:g}")
    return " and ".join(blame)
