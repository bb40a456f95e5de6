"""Rows of distributions, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_matrix import SUM_TOLERANCE, read_score_matrix
from calibrant.errors import InputError

__all__ = ["read_distributions"]

Array = NDArray[np.float64]


def read_distributions(p: Any) -> Array:
    """Probabilities of shape (n, k) as float64, each row in [0, 1] with the sum 1 (± 0.001).

    >>> read_distributions([[0.5, 0.25, 0.25]]).tolist()
    [[0.5, 0.25, 0.25]]
    """
    clean = read_score_matrix(p, name="p").astype(np.float64, copy=False)
    off = (clean < 0.0).any(axis=1) | (clean > 1.0).any(axis=1)
    off |= np.abs(clean.sum(axis=1) - 1.0) > SUM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise InputError(
            f"p must be probabilities of all classes, each row in [0, 1] with the sum 1, but "
            f"{int(off.sum())} of {len(clean)} rows are not (first at row {row}: "
            f"{clean[row].tolist()[:6]}). Calibrate logits first; take labels that do not exclude "
            "each other one column at a time."
        )
    return clean
