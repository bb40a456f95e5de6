"""Linear chains of binary nodes: a conditional random field, and a max-margin Markov chain.

Both score a labelling y of a chain with features x by Σ y_t·(w·x_t + b) + u·Σ [y_t = y_{t+1}]. The
first is fitted by maximum likelihood; the second by the structured hinge loss, with a subgradient
method, and gives no probabilities of its own. Arrays are chains × nodes (× features).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

__all__ = ["Chain", "best_labels", "fit_field", "fit_margin", "marginals", "max_marginals"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

#: of the squared weights in the likelihood, and in the hinge loss; steps of the subgradient method
RIDGE, HINGE_RIDGE, STEPS = 1.0, 0.01, 400


class Chain(NamedTuple):
    """Weights of features, an intercept, and what equal neighbours are worth."""

    weights: Array
    intercept: float
    equal: float

    def nodes(self, X: Array) -> Array:
        """What state 1 is worth at each node, beside state 0."""
        found: Array = X @ self.weights + self.intercept
        return found


def _passes(theta: Array, equal: float, together: np.ufunc) -> tuple[Array, Array]:
    """Messages from the left and from the right: chains × nodes × states.

    ``together`` joins the two states of a neighbour: logaddexp for sums, maximum for the best.
    """
    ahead, back = np.zeros((*theta.shape, 2)), np.zeros((*theta.shape, 2))
    local = np.stack((np.zeros_like(theta), theta), axis=-1)
    for t in range(1, theta.shape[1]):
        ahead[:, t] = _over(ahead[:, t - 1] + local[:, t - 1], equal, together)
        back[:, -t - 1] = _over(back[:, -t] + local[:, -t], equal, together)
    return ahead, back


def _over(neighbour: Array, equal: float, together: np.ufunc) -> Array:
    """A message across an edge."""
    return np.stack(
        (
            together(neighbour[:, 0] + equal, neighbour[:, 1]),
            together(neighbour[:, 0], neighbour[:, 1] + equal),
        ),
        axis=-1,
    )


def _difference(theta: Array, equal: float, together: np.ufunc) -> Array:
    """State 1 minus state 0 at each node, over all that the others may be."""
    ahead, back = _passes(theta, equal, together)
    found: Array = theta + (ahead + back)[..., 1] - (ahead + back)[..., 0]
    return found


def marginals(theta: Array, equal: float) -> Array:
    """P(node is 1) under the log-linear model, exactly, by forward and backward sums."""
    found: Array = 1.0 / (1.0 + np.exp(-_difference(theta, equal, np.logaddexp)))
    return found


def max_marginals(theta: Array, equal: float) -> Array:
    """The best score with the node at 1 minus the best with it at 0."""
    return _difference(theta, equal, np.maximum)


def best_labels(theta: Array, equal: float) -> Labels:
    """The labelling of the highest score (where two are equal, nodes may mix them)."""
    return (max_marginals(theta, equal) > 0).astype(np.intp)


def _equal_pairs(theta: Array, equal: float) -> tuple[Array, Array]:
    """log Z of each chain, and the expected number of equal neighbours."""
    ahead, back = _passes(theta, equal, np.logaddexp)
    local = np.stack((np.zeros_like(theta), theta), axis=-1)
    total = np.logaddexp.reduce((ahead + back + local)[:, 0], axis=-1)
    left, right = (ahead + local)[:, :-1], (back + local)[:, 1:]
    same = np.logaddexp(left[..., 0] + right[..., 0], left[..., 1] + right[..., 1]) + equal
    return total, np.exp(same - total[:, None]).sum(axis=1)


def _features(X: Array, y: Labels | Array) -> Array:
    """Σ over chains and nodes of what the weights are multiplied with."""
    same = float((y[:, 1:] == y[:, :-1]).sum())
    return np.concatenate((np.tensordot(y.astype(float), X, axes=2), [float(y.sum()), same]))


def fit_field(X: Array, y: Labels) -> Chain:
    """Maximum likelihood with a ridge on all weights but the intercept."""
    seen, k = _features(X, y), X.shape[2]
    free = np.append(np.ones(k), (0.0, 1.0)) * RIDGE

    def loss(v: Array) -> tuple[float, Array]:
        theta = X @ v[:k] + v[k]
        total, same = _equal_pairs(theta, v[-1])
        p = marginals(theta, v[-1])
        expected = np.concatenate((np.tensordot(p, X, axes=2), [p.sum(), same.sum()]))
        value = total.sum() - seen @ v + 0.5 * float(free @ v**2)
        return float(value), expected - seen + free * v

    found = minimize(loss, np.zeros(k + 2), jac=True, method="L-BFGS-B").x
    return Chain(found[:k], float(found[k]), float(found[-1]))


def fit_margin(X: Array, y: Labels) -> Chain:
    """The structured hinge loss with Hamming distances, by subgradients, weights averaged."""
    seen, k = _features(X, y), X.shape[2]
    v, mean = np.zeros(k + 2), np.zeros(k + 2)
    for step in range(1, STEPS + 1):
        theta = X @ v[:k] + v[k] + (1 - 2 * y)  # a wrong state is worth one more
        slope = (_features(X, best_labels(theta, v[-1])) - seen) / len(X)
        v = v - (HINGE_RIDGE * v + slope) / (HINGE_RIDGE * (step + 10))
        if step > STEPS // 2:
            mean += v / (STEPS - STEPS // 2)
    return Chain(mean[:k], float(mean[k]), float(mean[-1]))
