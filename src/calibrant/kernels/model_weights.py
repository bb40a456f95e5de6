"""How models of one family are scored, weighted and chosen before they are averaged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["CRITERIA", "SELECT", "shares"]

Array = NDArray[np.float64]


def shares(criterion: Array) -> Array:
    """Weights ∝ exp(−½·criterion), of sum 1; a model of infinite criterion has none.

    >>> shares(np.array([10.0, 10.0, np.inf])).tolist()
    [0.5, 0.5, 0.0]
    """
    weight = np.exp(-0.5 * (criterion - criterion.min()))
    return np.asarray(weight / weight.sum())


def _bic(log_likelihood: Array, df: Array, total: float) -> Array:
    return np.asarray(-2.0 * log_likelihood + df * np.log(total))


def _aic(log_likelihood: Array, df: Array, total: float) -> Array:
    return np.asarray(-2.0 * log_likelihood + 2.0 * df)


def _aicc(log_likelihood: Array, df: Array, total: float) -> Array:
    """Infinite where the model has as many parameters as the correction can bear."""
    room = total - df - 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        value = -2.0 * log_likelihood + 2.0 * df + 2.0 * df * (df + 1.0) / room
    return np.where(room > 0.0, value, np.inf)


#: (log-likelihood, degrees of freedom, total weight) → criterion, smaller is better
CRITERIA: dict[str, Callable[[Array, Array, float], Array]] = {
    "bic": _bic,
    "aic": _aic,
    "aicc": _aicc,
}


def _elbow(weights: Array) -> Array:
    """The authors' pruning: down the sorted weights (the best is 1) while the drop is steep."""
    order = np.argsort(-weights, kind="stable")
    ranked = weights[order] / weights.max()
    variance = float(np.var(ranked))
    k = 1
    while k < len(ranked) and variance > 0 and (ranked[k - 1] - ranked[k]) / variance > 0.001:
        k += 1
    kept = np.zeros(len(weights))
    chosen = order[: max(k - 1, 1)]
    kept[chosen] = weights[chosen] / weights[chosen].sum()
    return kept


def _best(weights: Array) -> Array:
    kept = np.zeros(len(weights))
    kept[int(np.argmax(weights))] = 1.0
    return kept


def _all(weights: Array) -> Array:
    return weights


#: what of the weights is kept, by name; they sum to 1 again
SELECT: dict[str, Callable[[Array], Array]] = {"elbow": _elbow, "all": _all, "best": _best}
