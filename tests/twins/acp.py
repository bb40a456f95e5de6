"""Slow, obvious twins of ACP and of the delta method. Nothing of the package is imported."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import fsum

import numpy as np

#: distances this close, relatively, tie
TIE = Fraction(1, 10**12)


def acp(scores, labels, weights, queries, lower, upper, pseudo):
    """(probability, weight, empty) of each query, row by row, with exact distances."""
    rows = [(s, y, w) for s, y, w in zip(scores, labels, weights, strict=True) if w > 0]
    found = []
    for query, low, high in zip(queries, lower, upper, strict=True):
        inside = [row for row in rows if low <= row[0] <= high]
        empty = not inside
        if empty:
            far = [abs(Fraction(row[0]) - Fraction(query)) for row in rows]
            reached = [
                r
                for r in sorted(set(far))
                if fsum(w for (_, _, w), d in zip(rows, far, strict=True) if d <= r)
                >= 10 * (1 - 1e-12)
            ]
            radius = reached[0] if reached else max(far)
            inside = [row for row, d in zip(rows, far, strict=True) if d <= radius * (1 + TIE)]
        positive = fsum(w for _, y, w in inside if y == 1)
        weight = fsum(w for _, _, w in inside)
        found.append(((positive + pseudo) / (weight + 2 * pseudo), weight, empty))
    return [np.array(column) for column in zip(*found, strict=True)]


def on_the_edge(scores, weights, queries):
    """Whether two distances differ by about the tolerance of ties, or by rounding at the query."""
    for query in queries:
        present = {float(s) for s, w in zip(scores, weights, strict=True) if w > 0}
        far = sorted(abs(Fraction(s) - Fraction(query)) for s in present)
        for a, b in pairwise(far):
            rounding = (abs(Fraction(query)) + b) / 2**50
            if a * TIE / 10 < b - a < a * TIE * 10 or 0 < b - a < rounding:
                return True
    return False


def penalised_loss(beta, X, y, weights, penalty):
    """Minus the log-likelihood plus ½Σ penalty·β², X with every column that has a coefficient."""
    eta = X @ beta
    return float(np.sum(weights * (np.logaddexp(0, eta) - y * eta)) + np.sum(penalty * beta**2) / 2)


def finite_hessian(f, beta, step=1e-4):
    """The second derivatives of f by central differences."""
    k = len(beta)
    H = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            ei, ej = step * np.eye(k)[i], step * np.eye(k)[j]
            H[i, j] = (
                f(beta + ei + ej) - f(beta + ei - ej) - f(beta - ei + ej) + f(beta - ei - ej)
            ) / (4 * step**2)
    return H


def delta_sd(X_train, eta_train, weights, penalty, X):
    """√(xᵀΣx), Σ the inverse of XᵀWX + diag(penalty), as the textbook has it."""
    p = 1 / (1 + np.exp(-eta_train))
    information = X_train.T @ np.diag(weights * p * (1 - p)) @ X_train + np.diag(penalty)
    return np.sqrt(np.einsum("ij,jk,ik->i", X, np.linalg.inv(information), X))
