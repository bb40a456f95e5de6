"""Guarded Newton for weighted logistic fits: the objective is convex and never allowed to rise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["LogisticFit", "fit_logistic", "logistic_newton"]

Array = NDArray[np.float64]


#: coefficients beyond this are cut; only scores within 1e-290 of each other would need them
STEEPEST = 1e290
#: the longest step of a coefficient on the standardised scale
FURTHEST = 25.0
#: cells per block: the temporaries of a block fit into the cache
BLOCK = 8192


class LogisticFit(NamedTuple):
    """Coefficients, the least objective, how many steps it took, and whether it converged."""

    coefficients: Array
    loss: float
    steps: int
    converged: bool


def fit_logistic(
    columns: Sequence[Array],
    n0: Array,
    n1: Array,
    intercept: bool = True,
    ridge: float = 0.0,
    start: Array | None = None,
) -> LogisticFit:
    """Logistic fit on columns of any size; coefficients (intercept first) in their own units.

    Columns are centred and scaled (only scaled without an intercept) before `logistic_newton` sees
    them, and the ridge acts on that scale. ``start`` is in the columns' own units.
    """
    n = n0 + n1
    sizes = [float(np.abs(column).max()) or 1.0 for column in columns]  # f / size cannot overflow
    scaled = [column / size for column, size in zip(columns, sizes, strict=True)]
    means = np.array([np.average(u, weights=n) if intercept else 0.0 for u in scaled])
    centred = [u - mean for u, mean in zip(scaled, means, strict=True)]
    spreads = np.array([float(np.sqrt(np.average(u * u, weights=n))) or 1.0 for u in centred])
    rows = [u / spread for u, spread in zip(centred, spreads, strict=True)]
    features = np.stack(([np.ones(len(n))] if intercept else []) + rows)
    begin = np.zeros(len(features))
    if start is not None:
        begin[-len(rows) :] = start[-len(rows) :] * np.array(sizes) * spreads
        if intercept:
            begin[0] = start[0] + float((begin[1:] / spreads) @ means)
    elif intercept and n0.sum() > 0 and n1.sum() > 0:
        begin[0] = np.log(n1.sum() / n0.sum())
    fit = logistic_newton(features, n0, n1, begin, ridge)
    slopes = fit.coefficients[-len(rows) :] / spreads
    with np.errstate(over="ignore"):
        own = np.clip(slopes / np.array(sizes), -STEEPEST, STEEPEST)
    if intercept:
        own = np.append(fit.coefficients[0] - float(slopes @ means), own)
    return fit._replace(coefficients=own)


def logistic_newton(
    features: Array,
    n0: Array,
    n1: Array,
    start: Array,
    ridge: float = 0.0,
    max_steps: int = 100,
) -> LogisticFit:
    """Minimise Σ n₁·ln(1+e^{−η}) + n₀·ln(1+e^{η}) + ½·ridge·|θ|², η = features.T @ θ.

    Parameters
    ----------
    features : array of shape (m, D)
        One row per parameter, of moderate size (standardised): the ridge is on this scale.
    n0, n1 : arrays of shape (D,)
        Weight of the negative and of the positive target at each cell.
    start : array of shape (m,)

    Notes
    -----
    Each step costs O(m²·D). The step is halved until the objective falls by a share of what its
    slope promises (Armijo); the Hessian is shifted where it is not numerically positive definite.
    Converged when the Newton decrement, twice the gain still expected, is below 1e-14 of Σn; that
    last step is then taken too.
    """
    scale = float(n0.sum() + n1.sum())
    theta = start.astype(np.float64)
    here = _objective(features, n0, n1, theta, ridge)
    for step in range(1, max_steps + 1):
        direction = -_solve(here.hessian, here.gradient)
        slope = float(here.gradient @ direction)
        if -slope <= 1e-14 * scale:
            return LogisticFit(theta + direction, here.loss, step, True)
        # far from the optimum the Hessian may vanish: no step moves a coefficient by more than this
        longest = length = min(1.0, FURTHEST / float(np.abs(direction).max()))
        while True:
            trial = theta + length * direction
            there = _objective(features, n0, n1, trial, ridge)
            if there.loss <= here.loss + 1e-4 * length * slope:
                break
            length /= 2
            if length < 1e-10 * longest:  # rounding hides any further gain
                return LogisticFit(theta, here.loss, step, -slope <= 1e-9 * scale)
        theta, here = trial, there
    return LogisticFit(theta, here.loss, max_steps, False)


class _Objective(NamedTuple):
    loss: float
    gradient: Array
    hessian: Array


def _objective(features: Array, n0: Array, n1: Array, theta: Array, ridge: float) -> _Objective:
    """Loss, gradient and Hessian in one pass, block by block so that temporaries stay in cache."""
    m = len(theta)
    loss, gradient, hessian = 0.5 * ridge * float(theta @ theta), ridge * theta, ridge * np.eye(m)
    for begin in range(0, len(n0), BLOCK):
        part = slice(begin, begin + BLOCK)
        x, a, b = features[:, part], n0[part], n1[part]
        eta = theta @ x
        tail = np.exp(-np.abs(eta))  # e^{−|η|} serves the loss, p and p(1−p)
        share = 1.0 / (1.0 + tail)
        p = np.where(eta >= 0.0, share, tail * share)
        n = a + b
        # ln(1 + e^{−|η|}) is common; the linear part goes to the class on the wrong side
        loss += float(n @ np.log1p(tail) + a @ np.maximum(eta, 0.0) + b @ np.maximum(-eta, 0.0))
        gradient = gradient + x @ (n * p - b)
        hessian = hessian + (x * (n * tail * share * share)) @ x.T
    return _Objective(loss, gradient, hessian)


def _solve(hessian: Array, gradient: Array) -> Array:
    """The Newton direction, with the Hessian shifted until a Cholesky factor exists."""
    shift, size = 0.0, float(np.trace(hessian)) / len(hessian)
    for _ in range(60):
        try:
            factor = np.linalg.cholesky(hessian + shift * np.eye(len(hessian)))
            return np.linalg.solve(factor.T, np.linalg.solve(factor, gradient))
        except np.linalg.LinAlgError:
            shift = max(shift * 10.0, 1e-12 * size, 1e-300)
    return gradient / max(size, 1e-300)
