"""How models of one family are scored, weighted and chosen before they are averaged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.array_types import Array, Index


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


def _kept(weights: Array, chosen: Index) -> Array:
    """The weights of the chosen models, of sum 1 again; 0 for all others."""
    kept = np.zeros(len(weights))
    kept[chosen] = weights[chosen] / weights[chosen].sum()
    return kept


def _elbow(weights: Array) -> Array:
    """The authors' pruning of BBQ: down the sorted weights while each drop is steep.

    Steep is a drop of more than .001 variances, of weights relative to the largest.
    """
    order = np.argsort(-weights, kind="stable")
    ranked = weights[order] / weights.max()
    variance = float(np.var(ranked))
    k = 1
    while k < len(ranked) and variance > 0 and (ranked[k - 1] - ranked[k]) / variance > 0.001:
        k += 1
    return _kept(weights, order[: max(k - 1, 1)])


def _elbow_of_enir(weights: Array) -> Array:
    """The authors' pruning of ENIR: the same with .005 variances, from the second drop on."""
    order = np.argsort(-weights, kind="stable")
    ranked = weights[order] / weights.max()
    least = 0.005 * float(np.var(ranked, ddof=1)) if len(ranked) > 1 else 0.0
    k = 2
    while k < len(ranked) and ranked[k - 1] - ranked[k] > least:
        k += 1
    return _kept(weights, order[: k - 1])


def _best(weights: Array) -> Array:
    return _kept(weights, np.array([np.argmax(weights)]))


def _all(weights: Array) -> Array:
    return weights


#: which models keep their weight, by name; weights sum to 1 again
SELECT: dict[str, Callable[[Array], Array]] = {"elbow": _elbow, "all": _all, "best": _best}
#: the same for ENIR
SELECT_ENIR: dict[str, Callable[[Array], Array]] = {**SELECT, "elbow": _elbow_of_enir}
