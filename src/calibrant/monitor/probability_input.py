"""Rows of distributions, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.distributions import check_distributions
from calibrant.data.score_matrix import read_score_matrix

__all__ = ["read_distributions"]

Array = NDArray[np.float64]

ADVICE = "Calibrate logits first; take labels that do not exclude each other one column at a time."


def read_distributions(p: Any) -> Array:
    """Probabilities of shape (n, k) as float64, each row in [0, 1] with the sum 1, up to rounding.

    >>> read_distributions([[0.5, 0.25, 0.25]]).tolist()
    [[0.5, 0.25, 0.25]]
    """
    clean = read_score_matrix(p, name="p").astype(np.float64, copy=False)
    check_distributions(clean, "p", advice=ADVICE)
    return clean
