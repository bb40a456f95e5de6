"""Soft labels: a probability of the positive class for each row, in place of its class.

A row of score s, soft label q and weight w counts as two halves of one row: a positive of weight
w·q and a negative of weight w·(1 − q).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Index
from calibrant.data.to_numpy import plain, to_column
from calibrant.errors import InputError

#: what to do about soft labels outside [0, 1]
DIVIDE = "divide percentages by 100, and votes by their number"
#: what to do about fractions where labels must be classes
REFUSED = (
    "Are scores and labels swapped? If y are probabilities of the positive class: the fit of a "
    "calibrator of one score, and of CalibratedClassifier, takes them as floats. For "
    "evaluate and reports, pass ScoreTable.from_soft_labels(scores, y)."
)


def are_soft(column: NDArray[Any]) -> bool:
    """Whether a column of labels holds floats that are no whole numbers.

    >>> are_soft(np.array([0.0, 0.2])), are_soft(np.array([0.0, 1.0])), are_soft(np.array([1, 2]))
    (True, False, False)
    """
    one = column.ndim == 1 or (column.ndim == 2 and column.shape[1] == 1)
    return one and column.dtype.kind == "f" and bool((column != np.floor(column)).any())


def check_shares(labels: NDArray[Any]) -> Array:
    """Soft labels as float64; any outside [0, 1] is refused."""
    share = labels.astype(np.float64)
    outside = (share < 0.0) | (share > 1.0)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"{DIVIDE.capitalize()}, or pass labels that are classes. Unknown label type: y must "
            "be two classes, or soft labels (probabilities of the positive class, in [0, 1]), but "
            f"{int(outside.sum())} of {len(share)} are outside [0, 1], and some are fractions "
            f"(first outside at row {row}: {share[row]:g})."
        )
    return share


def check_names(pos_label: Any, classes: Any) -> None:
    """Soft labels speak of the class 1 against 0: other names would leave open which is meant."""
    named = [0, 1] if classes is None else [plain(label) for label in to_column(classes, "classes")]
    other = len(named) != 2 or 0 not in named or 1 not in named
    if other or (pos_label is not None and plain(pos_label) != 1):
        what = f"classes={named!r}" if other else f"pos_label={plain(pos_label)!r}"
        raise InputError(
            "soft labels are probabilities of the class 1, and the classes are 0 and 1, but "
            f"{what} came, which leaves open whose probability y is. Leave it out; or use "
            "fit_table(ScoreTable.from_soft_labels(scores, p)), where p is the probability of "
            "pos_label."
        )


def check_not_swapped(scores: Array) -> None:
    """Refuse scores that look like labels where the labels look like scores."""
    low, high = float(scores.min()), float(scores.max())
    ends = (scores == low) | (scores == high)
    if low.is_integer() and high.is_integer() and bool(ends.all()):
        came = f"{low:g}" if low == high else f"{low:g} and {high:g}"
        raise InputError(
            f"scores must be what a model said, but they hold only {came}, while y holds "
            "fractions: are the two swapped? The order is fit(scores, y). If y are soft labels "
            "of such scores, name the classes: classes=[0, 1]."
        )


class Halves(NamedTuple):
    """Rows with soft labels as two halves each, also where one of them weighs nothing.

    So every row counts twice for what knows no weights, such as the first steps of a pipeline.
    Rows of weight zero are left out.

    Attributes
    ----------
    rows : array of shape (m,)
        Which row each half belongs to, in the order of rows.
    codes : array of shape (m,)
        1 of a positive half, 0 of a negative one.
    weight : array of shape (m,)
        w·q of a positive half, w·(1 − q) of a negative one.

    Examples
    --------
    >>> halves = Halves.of(np.array([0.25, 1.0]), np.array([2.0, 3.0]))
    >>> halves.rows.tolist(), halves.codes.tolist(), halves.weight.tolist()
    ([0, 0, 1, 1], [0, 1, 0, 1], [1.5, 0.5, 0.0, 3.0])
    """

    rows: Index
    codes: Index
    weight: Array

    @classmethod
    def of(cls, share: Array, weight: Array | None = None) -> Halves:
        """The halves of rows with these soft labels and weights (None: all one). O(n)."""
        size = np.ones(len(share)) if weight is None else weight
        both = np.column_stack((size * (1.0 - share), size * share)).reshape(-1)
        (kept,) = np.nonzero(np.repeat(size > 0.0, 2))
        return cls(kept // 2, kept % 2, both[kept])
