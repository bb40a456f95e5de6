"""Measures of ranking and of decisions, which do not see calibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.data.to_numpy import plain
from calibrant.data.validation import check_word
from calibrant.errors import InputError
from calibrant.metrics.arguments import read_predictions
from calibrant.metrics.probability_matrix import LabelledMatrix, class_tables, share_right


def auc(
    y: Any,
    p: Any = None,
    *,
    average: str = "macro",
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """Area under the ROC curve: the chance that a positive is ranked above a negative.

    Larger is better; 0.5 is a coin, 1 a perfect order, below 0.5 the order is upside down.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
        Predicted probabilities of the positive class, a binary predict_proba, or one column for
        each of k ≥ 3 classes in sorted order, each row a distribution (sum within 0.001 of 1).
    average : {"macro", "weighted"}, default="macro"
        For k ≥ 3 classes: the plain mean of each class's AUC against the rest, or weighted by the
        classes' own weights.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels. Not with (n, k).
    classes : array-like of labels, optional
        The class of each column, where y lacks some or the columns have another order.

    Raises
    ------
    InputError
        If only one class has weight, or one of k ≥ 3 has none: there is no pair to rank.

    Notes
    -----
    Σ over pairs (positive, negative) of w·w′·([p > p′] + ½[p = p′]), divided by the weight of all
    pairs: ties count half. O(D) after the table; for k ≥ 3 classes O(nk log n), a column at a time,
    the same as scikit-learn's ``roc_auc_score(multi_class="ovr")``. It does not see calibration
    (any increasing map leaves it alone), but a map with steps makes ties and so may lower it.

    References
    ----------
    .. [1] J. Hanley, B. McNeil, "The meaning and use of the area under a receiver operating
       characteristic (ROC) curve", 1982, doi:10.1148/radiology.143.1.7063747.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), auc([0, 1], [0.5, 0.5])
    (0.75, 0.5)
    """
    check_word("average", average, ("macro", "weighted"))
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    if isinstance(seen, LabelledMatrix):
        return _one_against_rest(seen, average)
    missing = one_class(seen)
    if missing:
        raise InputError(f"{missing}. Leave it out, or evaluate on more data.")
    return area(seen)


def accuracy(
    y: Any,
    p: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """The share of rows whose likeliest class came true; p ≥ 0.5 predicts the positive one.

    Larger is better; between 0 and 1.

    Parameters
    ----------
    y, p, sample_weight, pos_label, classes : see `auc`

    Notes
    -----
    (Σ w over positives with p ≥ ½ and negatives with p < ½) / Σ w. O(D) after the table. For k ≥ 3
    classes Σ w over rows whose largest probability (the first of equals) is that of the class that
    came; O(nk). It sees only which side of ½ a probability is on; with rare positives, always
    saying no scores well.

    Examples
    --------
    >>> accuracy([0, 0, 1, 1], [0.1, 0.5, 0.5, 0.8])
    0.75
    """
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    return share_correct(seen) if isinstance(seen, ScoreTable) else share_right(seen.matrix)


def _one_against_rest(seen: LabelledMatrix, average: str) -> float:
    matrix = seen.matrix
    weight = matrix.class_weight
    if not weight.all():
        absent = [plain(label) for label in seen.labels[weight == 0]]
        raise InputError(
            f"auc needs every class, but {len(absent)} of {len(weight)} did not come: "
            f"{', '.join(map(repr, absent[:10]))}{', …' if len(absent) > 10 else ''}. Evaluate on "
            "more data, or leave it out; evaluate averages over the classes that came."
        )
    areas = np.array([area(table) for table in class_tables(matrix)])
    return float(np.average(areas, weights=weight if average == "weighted" else None))


def area(table: ScoreTable) -> float:
    """The AUC of a table with both classes; its scores may be anything that ranks."""
    n0, n1 = _scaled(table.negative), _scaled(table.positive)
    below = np.cumsum(n0) - n0 / 2
    return float(n1 @ below / n1.sum() / n0.sum())


def one_class(table: ScoreTable, name: str = "auc") -> str:
    """Why the table has no AUC, or another measure of this name; empty if it has one."""
    if table.total_positive and table.total_negative:
        return ""
    word = "positives" if table.total_positive else "negatives"
    return f"{name} needs both classes, but only {word} came"


def share_correct(table: ScoreTable) -> float:
    """The accuracy of a table of probabilities."""
    first = int(np.searchsorted(table.scores, 0.5, side="left"))
    return float((table.negative[:first].sum() + table.positive[first:].sum()) / table.total)


def _scaled(weight: Array) -> Array:
    """Weights times a power of two, so that products of sums neither overflow nor vanish."""
    return np.ldexp(weight, -int(np.frexp(weight.max())[1]))
