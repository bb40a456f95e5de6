"""How models of one family are scored, weighted and chosen before they are averaged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.array_types import Array, Index


def criterion_weights(criterion: Array) -> Array:
    """Weights of models ∝ exp(−½·criterion), of sum 1. An infinite criterion gives weight 0.

    >>> criterion_weights(np.array([10.0, 10.0, np.inf])).tolist()
    [0.5, 0.5, 0.0]
    """
    weight = np.exp(-0.5 * (criterion - criterion.min()))
    return np.asarray(weight / weight.sum())


def _aicc(log_likelihood: Array, df: Array, total: float) -> Array:
    """AICc; infinite where a model has so many parameters that the correction has no value."""
    room = total - df - 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        value = -2.0 * log_likelihood + 2.0 * df + 2.0 * df * (df + 1.0) / room
    return np.where(room > 0.0, value, np.inf)


#: (log-likelihood, degrees of freedom, total weight) → criterion, smaller is better
CRITERIA: dict[str, Callable[[Array, Array, float], Array]] = {
    "bic": lambda log, df, total: np.asarray(-2.0 * log + df * np.log(total)),
    "aic": lambda log, df, total: np.asarray(-2.0 * log + 2.0 * df),
    "aicc": _aicc,
}


def _renormalised(weights: Array, chosen: Index) -> Array:
    """The weights of the chosen models, of sum 1 again; 0 for all others."""
    kept = np.zeros(len(weights))
    kept[chosen] = weights[chosen] / weights[chosen].sum()
    return kept


def _elbow(weights: Array, variances: float = 0.001, first: int = 1, ddof: int = 0) -> Array:
    """The authors' pruning: weights are kept in descending order as long as each drop is steep.

    A drop is steep if it exceeds so many ``variances`` of the weights, relative to the largest
    weight. ``first`` is the first drop that is looked at.
    """
    order = np.argsort(-weights, kind="stable")
    ranked = weights[order] / weights.max()
    steep = variances * float(np.var(ranked, ddof=ddof)) if len(ranked) > 1 else 0.0
    k = first
    while k < len(ranked) and ranked[k - 1] - ranked[k] > steep:
        k += 1
    return _renormalised(weights, order[: max(k - 1, 1)])


#: which models keep their weight, by name; weights sum to 1 again
SELECT: dict[str, Callable[[Array], Array]] = {
    "elbow": _elbow,
    "all": lambda weights: weights,
    "best": lambda weights: _renormalised(weights, np.array([np.argmax(weights)])),
}
#: the same for ENIR, whose authors pass over the first drop
SELECT_ENIR: dict[str, Callable[[Array], Array]] = {
    **SELECT,
    "elbow": lambda weights: _elbow(weights, 0.005, 2, 1),
}


# --- The shares of a mixture that make rows likeliest ---------------------------------------------


#: added to the curvature, as a share of the weight of all rows: members that give every row the
#: same probability have no curvature between them
RIDGE = 1e-12


def mixture_weights(likelihood: Array, weight: Array, pseudo: float = 1.0) -> Array:
    """The shares of m members that make n rows likeliest, with a pseudo-count for each member.

    With c = ``pseudo`` and W = Σw, the shares s maximise Σ w·ln(L·s) + c·Σ ln s − (W + c·m)·Σ s.
    This is concave, and at its maximum the shares sum to one. Newton's method in ln s, with steps
    halved until the value rises, takes a handful of passes over the rows, where EM takes a
    thousand. Rows to which no member gives any probability are ignored. With c = 0 shares may end
    next to zero, and equal members may share in any way.

    >>> p = np.array([[0.9, 0.5], [0.9, 0.5], [0.1, 0.5]])
    >>> mixture_weights(p, np.ones(3)).round(3).tolist()
    [0.482, 0.518]
    >>> mixture_weights(p[:2], np.ones(2), 0.0).round(3).tolist()
    [1.0, 0.0]
    """
    m = int(likelihood.shape[1])
    largest = likelihood.max(axis=1, initial=0.0)
    some = largest > 0
    scaled, w = likelihood[some] / largest[some, None], weight[some]
    total = float(w.sum()) + pseudo * m

    def height(shares: Array) -> float:
        rows = float(w @ np.log(scaled @ shares))
        prior = pseudo * float(np.log(shares).sum()) if pseudo else 0.0
        return rows + prior - total * float(shares.sum())

    shares = np.full(m, 1.0 / m)
    before = height(shares)
    for _ in range(100):
        part = scaled * shares / (scaled @ shares)[:, None]
        slope = w @ part + pseudo - total * shares
        curve = (part.T * w) @ part + (pseudo + RIDGE * total) * np.eye(m)
        move = np.linalg.solve(curve, slope)
        longest = size = min(1.0, 0.9 / max(-float(move.min()), 0.9))  # shares stay positive
        while height(shares * (1.0 + size * move)) < before and size > 1e-9 * longest:
            size *= 0.5
        new = shares * (1.0 + size * move)
        if np.abs(new - shares).max() < 1e-12 or size <= 1e-9 * longest:
            break
        shares, before = new, height(new)
    return np.asarray(shares / shares.sum())
