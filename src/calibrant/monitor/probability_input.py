"""Probabilities and weights of rows, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.data.distributions import check_distributions
from calibrant.data.score_matrix import read_score_matrix
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError

ADVICE = "Calibrate logits first; take labels that do not exclude each other one column at a time."


def read_distributions(p: Any) -> Array:
    """Probabilities of shape (n, k) as float64, each row in [0, 1] with the sum 1, up to rounding.

    >>> read_distributions([[0.5, 0.25, 0.25]]).tolist()
    [[0.5, 0.25, 0.25]]
    """
    clean = read_score_matrix(p, name="p").astype(np.float64, copy=False)
    check_distributions(clean, "p", advice=ADVICE)
    return clean


def effective_size(table: ScoreTable) -> float:
    """How many rows of equal weight a table is worth, (Σw)²/Σw²; refused if that is no number."""
    size = table.effective_size
    if not 0.0 < size < np.inf:
        raise InputError(
            "weights must be of a size whose squares are floats, but the sum of those that came is "
            f"{table.total:.3g}. Rescale them: their scale plays no part."
        )
    return size
