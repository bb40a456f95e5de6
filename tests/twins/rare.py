"""Tables with few positives, and the optimum of a logistic fit by SciPy's trust region."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

SIGNALS = ("top", "steep", "flat", "reversed", "bottom", "middle", "separable")
SCORES = ("uniform", "skewed", "logits")
SLOPES = {"steep": 8.0, "flat": 0.3, "reversed": -3.0}


def settings(sizes, positives):
    """(rows, positives, signal, kind of scores)."""
    return [s for s in product(sizes, positives, SIGNALS, SCORES) if 3 * s[1] < s[0]]


def rows(size, positives, signal, kind):
    """Scores and labels with exactly so many positives."""
    rng = np.random.default_rng([size, positives, SIGNALS.index(signal), SCORES.index(kind)])
    s = {
        "uniform": lambda: rng.random(size),
        "skewed": lambda: rng.beta(0.3, 8.0, size),
        "logits": lambda: rng.normal(-3.0, 2.0, size),
    }[kind]()
    order = np.argsort(s)
    if signal in SLOPES:
        rank = np.empty(size)
        rank[order] = (np.arange(size) + 0.5) / size
        drawn = SLOPES[signal] * np.log(rank / (1 - rank)) + rng.gumbel(size=size)
        chosen = np.argsort(-drawn)[:positives]
    elif signal == "separable":
        chosen = order[-positives:]
    else:  # a random third of a stretch
        first = {"top": size - 3 * positives, "bottom": 0, "middle": size // 2 - 2 * positives}
        stretch = order[max(first[signal], 0) :][: 3 * positives]
        chosen = rng.choice(stretch, positives, replace=False)
    y = np.zeros(size, int)
    y[chosen] = 1
    return s, y


def loss_of(eta, t0, t1):
    return float(t1 @ np.logaddexp(0, -eta) + t0 @ np.logaddexp(0, eta))


def least(columns, t0, t1, ridge=0.0, intercept=True):
    """The least loss with an intercept and a ridge on the slopes of standardised columns, and
    those slopes."""
    if intercept:
        u = [np.ones(len(t0)), *((c - c.mean()) / c.std() for c in columns)]
    else:
        u = [c / np.sqrt(np.mean(c * c)) for c in columns]
    u, t = np.array(u), t0 + t1
    pull = np.full(len(u), ridge)
    start = np.zeros(len(u))
    if intercept:
        pull[0], start[0] = 0.0, np.log(t1.sum() / t0.sum())

    def value(theta):
        eta = theta @ u
        away = u @ (t * expit(eta) - t1) + pull * theta
        return loss_of(eta, t0, t1) + 0.5 * pull @ theta**2, away

    def hessian(theta):
        eta = theta @ u
        return (u * (t * expit(eta) * expit(-eta))) @ u.T + np.diag(pull)

    options = {"gtol": 1e-9, "maxiter": 3000}
    found = minimize(value, start, jac=True, hess=hessian, method="trust-exact", options=options)
    return found.fun, found.x[int(intercept) :]
