"""Rows of several classes with a rare one, and the optimum of a softmax fit by SciPy's trust
region."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

#: what the labels of the other classes follow: so many times the logits
FACTORS = {"top": 1.0, "steep": 5.0, "flat": 0.2, "reversed": -1.0, "separable": 1e3}


def rows(size, positives, signal):
    """Logits of four classes, and labels; the last class is rare, and stands where its logit comes
    nearest to the others (of "top" a random third of those rows)."""
    rng = np.random.default_rng([size, positives, list(FACTORS).index(signal)])
    z = 2 * rng.normal(size=(size, 4)) - [0, 0, 0, 4]
    y = np.argmax(FACTORS[signal] * z[:, :3] + rng.gumbel(size=(size, 3)), axis=1)
    order = np.argsort(z[:, :3].max(axis=1) - z[:, 3])
    near = order[: 3 * positives]
    y[rng.choice(near, positives, replace=False) if signal == "top" else near[:positives]] = 3
    return z, y


def log_softmax(z):
    return z - logsumexp(z, axis=1, keepdims=True)


def spread(x):
    """Root mean square difference of two entries of a row."""
    return np.sqrt(2 * np.mean(np.var(x, axis=1, ddof=1)))


def loss_of(matrix, bias, x, y):
    log_p = log_softmax(x @ np.asarray(matrix).T + bias)
    return -log_p[np.arange(len(y)), y].sum()


def penalty(matrix, bias, on_matrix, on_bias):
    """½·Σ strength·(parameter − identity)²."""
    away = np.asarray(matrix) - np.eye(len(matrix))
    return 0.5 * (np.sum(on_matrix * away**2) + np.sum(on_bias * np.asarray(bias) ** 2))


def least(x, y, on_matrix, on_bias, free):
    """The least of `loss_of` + `penalty` over the entries of the matrix that are free, and b."""
    n, k = x.shape
    hot = np.eye(k)[y]
    columns = np.column_stack((x, np.ones(n)))
    open_ = np.column_stack((free, np.ones(k, bool))).ravel()
    strength = np.column_stack((on_matrix, on_bias)).ravel()[open_]
    identity = np.column_stack((np.eye(k), np.zeros(k))).ravel()
    # in units of the columns, so that the optimiser sees parameters of like size
    units = np.tile(np.append(np.full(k, spread(x)), 1.0), k)[open_]

    def whole(u):
        theta = identity.copy()
        theta[open_] = u / units
        return theta.reshape(k, k + 1)

    def value(u):
        theta = whole(u)
        eta = columns @ theta.T
        log_p = log_softmax(eta)
        away = u / units - identity[open_]
        slope = ((np.exp(log_p) - hot).T @ columns).ravel()[open_] + strength * away
        return -(hot * log_p).sum() + 0.5 * strength @ away**2, slope / units

    def hessian(u):
        p = np.exp(log_softmax(columns @ whole(u).T))
        curve = np.einsum("na,ab,ni,nj->aibj", p, np.eye(k), columns, columns, optimize=True)
        curve -= np.einsum("na,nb,ni,nj->aibj", p, p, columns, columns, optimize=True)
        curve = curve.reshape(k * (k + 1), -1)[np.ix_(open_, open_)] + np.diag(strength)
        return curve / units / units[:, None]

    start = identity[open_] * units
    options = {"gtol": 1e-9 * n, "maxiter": 3000}
    found = minimize(value, start, jac=True, hess=hessian, method="trust-exact", options=options)
    return found.fun
