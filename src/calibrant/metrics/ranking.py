"""Measures of order and of decisions: they do not see calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.table import ScoreTable
from calibrant.errors import InputError
from calibrant.metrics._input import observe

__all__ = ["accuracy", "area", "auc", "one_class", "share_correct"]

Array = NDArray[np.float64]


def auc(y: Any, p: Any = None, *, sample_weight: Any = None, pos_label: Any = None) -> float:
    """Area under the ROC curve: the chance that a positive is ranked above a negative.

    Larger is better; 0.5 is a coin, 1 a perfect order, below 0.5 the order is upside down.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Raises
    ------
    InputError
        If only one class has weight: there is no pair to rank.

    Notes
    -----
    Σ over pairs (positive, negative) of w·w′·([p > p′] + ½[p = p′]), divided by the weight of all
    pairs: ties count half. O(D) after the table. It does not see calibration (any increasing map
    leaves it alone), but a map with steps makes ties and so may lower it.

    References
    ----------
    .. [1] J. Hanley, B. McNeil, "The meaning and use of the area under a receiver operating
       characteristic (ROC) curve", 1982, doi:10.1148/radiology.143.1.7063747.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), auc([0, 1], [0.5, 0.5])
    (0.75, 0.5)
    """
    table = observe(y, p, sample_weight, pos_label)
    missing = one_class(table)
    if missing:
        raise InputError(f"{missing}. Leave it out, or evaluate on more data.")
    return area(table)


def accuracy(y: Any, p: Any = None, *, sample_weight: Any = None, pos_label: Any = None) -> float:
    """The share of rows whose likelier class came true; p ≥ 0.5 predicts the positive one.

    Larger is better; between 0 and 1.

    Parameters
    ----------
    y, p, sample_weight, pos_label : see `auc`

    Notes
    -----
    (Σ w over positives with p ≥ ½ and negatives with p < ½) / Σ w. O(D) after the table. It sees
    only which side of ½ a probability is on; with rare positives, always saying no scores well.

    Examples
    --------
    >>> accuracy([0, 0, 1, 1], [0.1, 0.5, 0.5, 0.8])
    0.75
    """
    return share_correct(observe(y, p, sample_weight, pos_label))


def area(table: ScoreTable) -> float:
    """The AUC of a table with both classes; its scores may be anything that ranks."""
    n0, n1 = _scaled(table.negative), _scaled(table.positive)
    below = np.cumsum(n0) - n0 / 2
    return float(n1 @ below / n1.sum() / n0.sum())


def one_class(table: ScoreTable) -> str:
    """Why the table has no AUC, or nothing."""
    if table.total_positive and table.total_negative:
        return ""
    word = "positives" if table.total_positive else "negatives"
    return f"auc needs both classes, but only {word} came"


def share_correct(table: ScoreTable) -> float:
    """The accuracy of a table of probabilities."""
    first = int(np.searchsorted(table.scores, 0.5, side="left"))
    return float((table.negative[:first].sum() + table.positive[first:].sum()) / table.total)


def _scaled(weight: Array) -> Array:
    """Weights times a power of two, so that products of sums neither overflow nor vanish."""
    return np.ldexp(weight, -int(np.frexp(weight.max())[1]))
