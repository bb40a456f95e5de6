"""Proper scores: their expectation is smallest at the true probability."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import xlog1py, xlogy

from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import check_word
from calibrant.errors import CalibrationWarning, ParameterError, caller_level
from calibrant.metrics.arguments import check_number, read_predictions
from calibrant.metrics.probability_matrix import (
    LabelledMatrix,
    infinite_for_classes,
    mean_log_loss_of_classes,
    square_sum,
)

#: for two classes: which multiple of mean (y − p)² each normalisation is
NORMALISE = {"binary": 1.0, "sum": 2.0, "mean_over_classes": 1.0}
#: for k classes: what each normalisation divides the sum over the classes by
DIVISOR: dict[str, Callable[[int], float]] = {"sum": lambda k: 1.0, "mean_over_classes": float}


def brier(
    y: Any,
    p: Any = None,
    *,
    normalise: str | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """Brier score: the mean squared error of the probability.

    Smaller is better; minimum 0, maximum 1 (2 with ``normalise="sum"``; 2/k with
    ``normalise="mean_over_classes"``).

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
        Predicted probabilities of the positive class, a binary predict_proba, or one column for
        each of k ≥ 3 classes in sorted order, each row a distribution (sum within 0.001 of 1).
    normalise : {"binary", "sum", "mean_over_classes"}, optional
        ``"binary"``: mean (y − p)² of the positive class, only for two classes and there the
        default. ``"sum"``: summed over the classes (Brier's own), for two classes twice that; the
        default for several. ``"mean_over_classes"``: the sum divided by the number of classes,
        which for two is ``"binary"`` again. The defaults are those of scikit-learn.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels. Not with (n, k).
    classes : array-like of labels, optional
        The class of each column, where y lacks some or the columns have another order.

    Notes
    -----
    BS = Σ w (y − p)² / Σ w, or Σ w Σ_j (y_j − p_j)² / Σ w over the classes j, y_j = 1 for the class
    that came. O(D) after the table, O(nk) for several classes; ties and order do not matter. It
    misleads for rare positives, where p = 0 for everyone scores well; compare with the base
    rate's (`corp` does).

    References
    ----------
    .. [1] G. Brier, "Verification of forecasts expressed in terms of probability", 1950,
       doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2.

    Examples
    --------
    >>> brier([0, 1], [0.5, 0.5]), brier([0, 1], [0.5, 0.5], normalise="sum")
    (0.25, 0.5)
    >>> brier(["a", "c"], [[0.5, 0.25, 0.25], [0, 0, 1]], classes=["a", "b", "c"])
    0.1875
    """
    if normalise is not None:
        check_word("normalise", normalise, NORMALISE)
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    if isinstance(seen, ScoreTable):
        return NORMALISE[normalise or "binary"] * mean_square(seen)
    k = seen.matrix.n_classes
    if normalise is not None and normalise not in DIVISOR:
        raise ParameterError(
            f"normalise must be 'sum' or 'mean_over_classes' for {k} classes, but {normalise!r} "
            "came."
        )
    return square_sum(seen.matrix) / DIVISOR[normalise or "sum"](k)


def rmse(
    y: Any,
    p: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """Root mean squared error of the probability, √mean (y − p)².

    Smaller is better; minimum 0, maximum 1.

    Parameters
    ----------
    y, p, sample_weight, pos_label, classes : see `brier`

    Notes
    -----
    The square root of the Brier score (for several classes, of its mean over them): it orders
    models alike, but a mean of it over data sets is not the root of the mean. O(D) after the
    table, O(nk) for several classes.

    Examples
    --------
    >>> rmse([0, 1], [0.5, 0.5])
    0.5
    """
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    if isinstance(seen, ScoreTable):
        return math.sqrt(mean_square(seen))
    return math.sqrt(square_sum(seen.matrix) / seen.matrix.n_classes)


def log_loss(
    y: Any,
    p: Any = None,
    *,
    base: float = math.e,
    clip: float | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """Log loss (cross-entropy): the mean surprise −log P(what happened).

    Smaller is better; minimum 0, no maximum.

    Parameters
    ----------
    y, p, sample_weight, pos_label, classes : see `brier`
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
    −Σ w [y log p + (1 − y) log(1 − p)] / Σ w with 0 · log 0 = 0, so never NaN; for several classes
    −Σ w log p_c / Σ w, c the class that came (rows are not made to sum to one first, not even after
    clipping). O(D) after the table, O(n) for several classes besides checking them; ties and order
    do not matter. It misleads when compared across libraries, some of which clip silently; and a
    single confident mistake may outweigh all else.

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
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    loss, reason = _mean_of(seen, clip)
    if math.isinf(loss):
        warnings.warn(
            f"log loss is infinite: {reason}. Pass clip= for a finite value, or calibrate with "
            "smoothing.",
            CalibrationWarning,
            stacklevel=caller_level(),
        )
    return loss / math.log(base)


def _mean_of(seen: ScoreTable | LabelledMatrix, clip: float | None) -> tuple[float, str]:
    """The log loss, and why it is infinite if it is."""
    if isinstance(seen, ScoreTable):
        loss = mean_log_loss(seen, clip)
        return loss, infinite_because(seen) if math.isinf(loss) else ""
    loss = mean_log_loss_of_classes(seen.matrix, clip)
    return loss, infinite_for_classes(seen.matrix) if math.isinf(loss) else ""


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
