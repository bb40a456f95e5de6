"""Slow, obvious twins of the scalings of several classes. Imports nothing of the library."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize, minimize_scalar


def log_softmax(z):
    """Row by row."""
    return np.array([[v - np.logaddexp.reduce(row) for v in row] for row in np.asarray(z, float)])


def loss(log_p, y, w, smoothing=0.0):
    """Σ w·Σ target·(−ln p), one row after the other."""
    k, total = log_p.shape[1], 0.0
    for row, label, weight in zip(log_p, y, w, strict=True):
        for j in range(k):
            target = (1.0 - smoothing) * (j == label) + smoothing / k
            total -= weight * target * row[j]
    return total


def scaled(x, matrix, bias):
    """ln softmax(W·x + b)."""
    return log_softmax(np.array([np.asarray(matrix) @ row + np.asarray(bias) for row in x]))


def mean_square_difference(x, w):
    """Of two different entries of a row."""
    k, total = x.shape[1], 0.0
    for row, weight in zip(x, w, strict=True):
        for i in range(k):
            for j in range(k):
                total += weight * (row[i] - row[j]) ** 2 / (k * (k - 1))
    return total / np.sum(w)


def temperature(x, y, w, smoothing=0.0):
    """1/T by a bounded search on ln(1/T), with the tiny ridge that keeps it finite."""
    size = np.sqrt(mean_square_difference(x, w)) or 1.0

    def objective(u):
        t = np.exp(u) / size
        return loss(log_softmax(t * x), y, w, smoothing) + 0.5e-6 * (t * size) ** 2

    found = minimize_scalar(
        objective, bounds=(np.log(1e-3), np.log(1e5)), method="bounded", options={"xatol": 1e-12}
    )
    return float(np.exp(found.x) / size)


def vector_objective(theta, x, y, w, smoothing=0.0):
    """Mean log loss of v·x + b, θ = (v, b)."""
    v, b = np.split(np.asarray(theta), 2)
    return loss(scaled(x, np.diag(v), b), y, w, smoothing) / np.sum(w)


def ridge_objective(theta, x, y, w, lam, mu, smoothing=0.0):
    """Mean log loss of W·x + b, with ridges on the off-diagonal of W and on b (ODIR)."""
    k = x.shape[1]
    matrix, b = np.asarray(theta)[: k * k].reshape(k, k), np.asarray(theta)[k * k :]
    penalty = mu / k * sum(b**2)
    for i in range(k):
        for j in range(k):
            penalty += lam / (k * (k - 1)) * matrix[i, j] ** 2 * (i != j)
    return loss(scaled(x, matrix, b), y, w, smoothing) / np.sum(w) + penalty


def structured_objective(theta, x, y, w, on_b, on_v, on_m):
    """Mean log loss of (I + diag v + M)·x + b with the published ridges; θ = (matrix, b)."""
    k, n = x.shape[1], np.sum(w)
    matrix, b = np.asarray(theta)[: k * k].reshape(k, k), np.asarray(theta)[k * k :]
    penalty = on_b * k / n * sum(b**2)
    for i in range(k):
        for j in range(k):
            away = matrix[i, j] - (i == j)
            penalty += (on_v * k if i == j else on_m * k * (k - 1)) / n * away**2
    return loss(scaled(x, matrix, b), y, w) / n + penalty


def least(objective, start):
    """The least value that a general optimiser finds."""
    found = minimize(objective, start, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})
    return float(found.fun), found.x


def slope(objective, theta, step=1e-5):
    """The gradient by central differences."""
    theta = np.asarray(theta, dtype=float)
    result = np.zeros(len(theta))
    for j in range(len(theta)):
        away = np.zeros(len(theta))
        away[j] = step
        result[j] = (objective(theta + away) - objective(theta - away)) / (2 * step)
    return result


def ensemble_shares(likelihood, w, steps=20_000):
    """The shares of least Σ −w·ln(likelihood·share), by EM: slow, and never wrong."""
    shares = np.full(likelihood.shape[1], 1.0 / likelihood.shape[1])
    for _ in range(steps):
        part = likelihood * shares
        part /= part.sum(axis=1, keepdims=True)
        shares = w @ part / w.sum()
    return shares


def top_label(p, q):
    """One distribution whose largest entries get q, and the others the rest in proportion."""
    top = max(p)
    tied = [j for j, v in enumerate(p) if v == top]
    rest = {j: v for j, v in enumerate(p) if v != top}
    total = sum(rest.values())
    if rest and total == 0.0:
        rest, total = dict.fromkeys(rest, 1.0), float(len(rest))
    # where the second would be as large as the tops: q = second·(1 − m·q)/total
    if rest:
        second = max(rest.values())
        q = max(q, (1.0 + 1e-6) * second / (total + len(tied) * second))
    else:
        q = 1.0 / len(p)
    q = min(q, 1.0 / len(tied))
    left = 1.0 - len(tied) * q
    return [q if j in tied else rest[j] / total * left for j in range(len(p))]
