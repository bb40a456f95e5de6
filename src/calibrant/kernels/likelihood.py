"""The Bernoulli likelihood of probabilities."""

from __future__ import annotations

import numpy as np

from calibrant.array_types import Array
from calibrant.kernels._jit import jit


@jit
def log_likelihood(p: Array, n0: Array, n1: Array, least: float) -> float:
    """Σ n₁ ln p + n₀ ln(1−p), p clipped to [least, 1−least].

    Factors of single rows are multiplied, so that one logarithm serves many of them.
    """
    total, product = 0.0, 1.0
    for i in range(len(p)):
        q = p[i] if p[i] > least else least
        q = q if q < 1.0 - least else 1.0 - least
        if n0[i] + n1[i] == 1.0 and n0[i] * n1[i] == 0.0:
            product *= q if n1[i] == 1.0 else 1.0 - q
            if product < 1e-200:
                total += np.log(product)
                product = 1.0
        else:
            if n1[i] > 0.0:
                total += n1[i] * np.log(q)
            if n0[i] > 0.0:
                total += n0[i] * np.log(1.0 - q)
    return float(total + np.log(product))
