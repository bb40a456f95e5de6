"""Slow, obvious twin of the test of drift. It imports nothing of ours.

Rows are (score, label 0/1, is new 0/1); every row has weight one. The common curve is one
coefficient per distinct score, so nothing is said about splines.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import chi2

#: hardly a prior: it keeps the iterations from wandering
FLAT = 1e-9


def probability(eta):
    return 1.0 / (1.0 + np.exp(-eta))


def irls(columns, offset, y, prior):
    """Logistic regression by iterated weighted least squares, rows one by one."""
    theta = np.zeros(columns.shape[1])
    for _ in range(500 if len(theta) else 0):
        p = probability(offset + columns @ theta)
        gradient = columns.T @ (y - p) - prior * theta
        hessian = np.diag(prior).astype(float)
        for row, q in zip(columns, p, strict=True):
            hessian += q * (1.0 - q) * np.outer(row, row)
        step = np.linalg.solve(hessian, gradient)
        theta = theta + step / max(1.0, float(np.abs(step).max()) / 2.0)
        if np.abs(step).max() < 1e-13:
            break
    return theta, probability(offset + columns @ theta)


def log_likelihood(y, p):
    return sum(math.log(q) if a else math.log1p(-q) for a, q in zip(y, p, strict=True))


def rao(columns, tested, y, p):
    """Rao's score statistic: U'I⁻¹U of the larger model, at the smaller one's fit."""
    both = np.column_stack((columns, tested))
    information = np.zeros((both.shape[1], both.shape[1]))
    for row, q in zip(both, p, strict=True):
        information += q * (1.0 - q) * np.outer(row, row)
    k = columns.shape[1]
    inner, cross, outer = information[:k, :k], information[:k, k:], information[k:, k:]
    inverse = np.linalg.inv(inner) if k else np.zeros((0, 0))
    left = outer - cross.T @ inverse @ cross
    score = tested.T @ (y - p) - cross.T @ inverse @ (columns.T @ (y - p))
    return float(score @ np.linalg.solve(left, score))


def bends(z, p):
    """Legendre's polynomials of degree 2 to 4 in the share of rows below, both classes alike."""
    ones, zeros = p / p.sum(), (1.0 - p) / (1.0 - p).sum()
    mass = (ones + zeros) / 2.0
    t = np.array([2.0 * (mass[z < a].sum() + mass[z == a].sum() / 2.0) - 1.0 for a in z])
    return np.column_stack(
        ((3 * t**2 - 1) / 2, (5 * t**3 - 3 * t) / 2, (35 * t**4 - 30 * t**2 + 3) / 8)
    )


def ladder(z, y, new, offset):
    """Of intercept, slope and shape: statistic, df, p-value, and the coefficients of the change.

    Without an offset (None) the common curve has a free level for each score; else there is none.
    """
    if offset is None:
        curve, offset = np.array([[float(a == b) for b in np.unique(z)] for a in z]), 0.0 * z
    else:
        curve = np.empty((len(z), 0))
    _, p = irls(curve, offset, y, np.full(curve.shape[1], FLAT))
    terms = np.column_stack((np.ones(len(z)), z, bends(z, p))) * new[:, None]
    found, columns = [], curve
    for block in ([0], [1], [2, 3, 4]):
        tested = terms[:, block]
        larger = np.column_stack((columns, tested))
        theta, q = irls(larger, offset, y, np.full(larger.shape[1], FLAT))
        statistic = rao(columns, tested, y, p)
        if len(block) == 1:
            ratio = 2.0 * (log_likelihood(y, q) - log_likelihood(y, p))
            statistic = min(statistic, ratio)
        chance = float(chi2.sf(statistic, len(block)))
        found.append((statistic, len(block), chance, theta[curve.shape[1] :]))
        columns, p = larger, q
    return found


def weighted_intercept(p, y, w):
    """The statistic of an intercept beside right probabilities, rows weighing unequally.

    Σw² of a class is to its Σw as in all rows of the class; the likelihood ratio of weighted rows
    is brought to the same variance.
    """
    size = sum(w) ** 2 / sum(a * a for a in w)
    w = [a * size / sum(w) for a in w]
    spread = [
        sum(a * a for a, b in zip(w, y, strict=True) if b == label)
        / sum(a for a, b in zip(w, y, strict=True) if b == label)
        for label in (0, 1)
    ]
    rows = list(zip(p, y, w, strict=True))
    score = sum(a * (b - q) for q, b, a in rows)
    information = sum(a * q * (1 - q) for q, _, a in rows)
    variance = sum(a * q * (1 - q) * ((1 - q) * spread[1] + q * spread[0]) for q, _, a in rows)

    def loss(delta):
        moved = [probability(math.log(q / (1 - q)) + delta) for q in p]
        return -sum(a * math.log(q if b else 1 - q) for q, b, a in zip(moved, y, w, strict=True))

    low, high = -20.0, 20.0
    for _ in range(200):  # the loss is convex: the smaller of two inner places keeps the minimum
        first, second = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (low, second) if loss(first) < loss(second) else (first, high)
    ratio = 2 * (loss(0.0) - loss(low))
    return min(score**2 / variance, ratio * information / variance)


def distance(first, second):
    """Kolmogorov and Smirnov's, over every place where something can change."""
    places = [*first, *second]
    return max(
        abs(sum(a <= t for a in first) / len(first) - sum(b <= t for b in second) / len(second))
        for t in places
    )
