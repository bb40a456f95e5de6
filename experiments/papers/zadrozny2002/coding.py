"""Rows of numbers and words, made ready for naive Bayes and for a linear machine.

The text that we have does not say how numbers were treated, so there are several ways.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.preprocessing import OneHotEncoder

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

#: what the reader of the data puts where a word is missing
MISSING = "(missing)"


# --- cuts of one column ---------------------------------------------------------------------------


def equal_width(x: Array, y: Labels, bins: int) -> Array:
    """Cuts into so many intervals of the same width, from the least value to the largest."""
    return np.linspace(x.min(), x.max(), bins + 1)[1:-1]


def equal_mass(x: Array, y: Labels, bins: int) -> Array:
    """Cuts just above the quantiles; equal values stay together, so there may be fewer."""
    values, n = np.unique(x), len(x)
    ranks = [-(-k * n // bins) - 1 for k in range(1, bins)]  # in whole numbers: 0.6·10 is above 6
    place = np.searchsorted(values, np.unique(np.sort(x)[ranks]))
    place = place[place < len(values) - 1]
    return (values[place] + values[place + 1]) / 2


def entropy(counts: Array) -> Array:
    """In bits, of each row of counts."""
    total = np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    p = counts / total
    return -(p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=-1)


def least_entropy(x: Array, y: Labels, bins: int = 0) -> Array:
    """Cuts by Fayyad and Irani 1993: split where entropy falls most, while that pays for itself."""
    values, place = np.unique(x, return_inverse=True)
    counts = np.zeros((len(values) + 1, 2))
    np.add.at(counts, (place + 1, y), 1.0)
    below = counts.cumsum(axis=0)
    cuts: list[float] = []
    todo = [(0, len(values))]
    while todo:
        first, last = todo.pop()
        cut = _best_cut(below[first : last + 1] - below[first])
        if cut:
            middle = first + cut
            cuts.append((values[middle - 1] + values[middle]) / 2)
            todo += [(first, middle), (middle, last)]
    return np.sort(np.array(cuts))


def _best_cut(below: Array) -> int:
    """Where to split a run of values whose cumulative counts are given; 0: not at all."""
    if len(below) < 3:
        return 0
    whole, left = below[-1], below[1:-1]
    right, n = whole - left, whole.sum()
    after = (left.sum(axis=1) * entropy(left) + right.sum(axis=1) * entropy(right)) / n
    at = int(after.argmin())
    parts = (whole, left[at], right[at])
    k, k_left, k_right = ((part > 0).sum() for part in parts)
    h, h_left, h_right = (float(entropy(part)) for part in parts)
    price = np.log2(n - 1) + np.log2(3.0**k - 2) - (k * h - k_left * h_left - k_right * h_right)
    return at + 1 if h - after[at] > price / n else 0


#: how a column of numbers is cut, and into how many bins; None: it is not
Cuts = Callable[[Array, Labels, int], Array]
NUMBERS: dict[str, tuple[Cuts, int] | None] = {
    "normal": None,
    "width 5": (equal_width, 5),
    "width 10": (equal_width, 10),
    "width 20": (equal_width, 20),
    "width 30": (equal_width, 30),
    "width 50": (equal_width, 50),
    "mass 5": (equal_mass, 5),
    "mass 10": (equal_mass, 10),
    "mass 20": (equal_mass, 20),
    "entropy": (least_entropy, 0),
}


# --- whole frames ---------------------------------------------------------------------------------


def binned(
    train: pd.DataFrame, y: Labels, others: list[pd.DataFrame], how: str
) -> list[pd.DataFrame]:
    """Frames whose numbers have become words, the names of bins learned from the first one."""
    frames = [train.copy(), *(frame.copy() for frame in others)]
    given = NUMBERS[how]
    if given is None:
        return frames
    cut, bins = given
    for name in train.columns:
        if pd.api.types.is_numeric_dtype(train[name]):
            edges = cut(train[name].to_numpy(dtype=float), y, bins)
            for frame in frames:
                place = np.searchsorted(edges, frame[name].to_numpy(dtype=float))
                frame[name] = np.char.add("bin ", place.astype(str)).astype(object)
    return frames


def indicators(frames: list[pd.DataFrame]) -> list[csr_matrix]:
    """A 0/1 column for each word of the first frame; none for a missing or a new word."""
    words = [sorted(set(frames[0][name]) - {MISSING}) for name in frames[0].columns]
    coder = OneHotEncoder(categories=words, handle_unknown="ignore").fit(frames[0])
    return [csr_matrix(coder.transform(frame)) for frame in frames]
