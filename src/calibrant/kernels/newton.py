"""Guarded Newton for weighted logistic fits: the objective is convex and never allowed to rise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["LogisticFit", "Problem", "fit_logistic", "logistic_newton"]

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


class Problem(NamedTuple):
    """Minimise Σ t₁·ln(1+e^{−η}) + t₀·ln(1+e^{η}) + ½·ridge·|θ|² with η = θ·u.

    u holds a 1 if there is an intercept, then every column as (f/size − mean)/spread, and the
    targets are t₁ = high·n₁ + low·n₀ and t₀ = n₁ + n₀ − t₁ (Platt's smoothing; 0 and 1 for none).
    Blocks of u and t are made on the way, so that a fit needs no memory but for its columns.
    """

    columns: Sequence[Array]
    n0: Array
    n1: Array
    intercept: bool
    ridge: float
    targets: tuple[float, float]
    sizes: Array
    means: Array
    spreads: Array

    def blocks(self) -> Iterator[tuple[Array, Array, Array]]:
        """(u, t₀, t₁) of one block of cells after the other."""
        low, high = self.targets
        for begin in range(0, len(self.n0), BLOCK):
            part = slice(begin, begin + BLOCK)
            a, b = self.n0[part], self.n1[part]
            u = np.ones((self.intercept + len(self.columns), len(a)))
            for j, column in enumerate(self.columns):
                u[self.intercept + j] = (
                    column[part] / self.sizes[j] - self.means[j]
                ) / self.spreads[j]
            t1 = high * b + low * a
            yield u, a + b - t1, t1


def fit_logistic(
    columns: Sequence[Array],
    n0: Array,
    n1: Array,
    *,
    intercept: bool = True,
    ridge: float = 0.0,
    targets: tuple[float, float] = (0.0, 1.0),
    start: Array | None = None,
) -> LogisticFit:
    """Logistic fit on columns of any size; coefficients (intercept first) in their own units.

    Columns are centred and scaled (only scaled without an intercept) before `logistic_newton` sees
    them, and the ridge acts on that scale. ``start`` is in the columns' own units. Beyond the
    columns the memory is O(1).
    """
    problem = _standardised(columns, n0, n1, intercept, ridge, targets)
    k, sizes, means, spreads = len(columns), problem.sizes, problem.means, problem.spreads
    begin = np.zeros(intercept + k)
    if start is not None:
        begin[-k:] = start[-k:] * sizes * spreads
        if intercept:
            begin[0] = start[0] + float((begin[1:] / spreads) @ means)
    elif intercept and n0.any() and n1.any():
        begin[0] = np.log(n1.sum() / n0.sum())
    fit = logistic_newton(problem, begin)
    slopes = fit.coefficients[-k:] / spreads
    with np.errstate(over="ignore"):
        own = np.clip(slopes / sizes, -STEEPEST, STEEPEST)
    if intercept:
        own = np.append(fit.coefficients[0] - float(slopes @ means), own)
    return fit._replace(coefficients=own)


def _standardised(
    columns: Sequence[Array],
    n0: Array,
    n1: Array,
    intercept: bool,
    ridge: float,
    targets: tuple[float, float],
) -> Problem:
    """The problem with every column brought to mean 0 (with an intercept) and size 1."""
    k = len(columns)
    sizes = np.array([max(-float(c.min()), float(c.max())) or 1.0 for c in columns])
    plain = Problem(columns, n0, n1, False, ridge, targets, sizes, np.zeros(k), np.ones(k))
    total = float(n0.sum() + n1.sum())
    if intercept:
        means = sum((u @ (t0 + t1) for u, t0, t1 in plain.blocks()), np.zeros(k)) / total
        plain = plain._replace(means=means)
    square = sum(((u * u) @ (t0 + t1) for u, t0, t1 in plain.blocks()), np.zeros(k)) / total
    spreads = np.sqrt(square)
    return plain._replace(intercept=intercept, spreads=np.where(spreads > 0, spreads, 1.0))


def logistic_newton(problem: Problem, start: Array, max_steps: int = 100) -> LogisticFit:
    """Guarded Newton on the standardised problem.

    Notes
    -----
    Each step costs O(m²·D) for m parameters. The step is halved until the objective falls by a
    share of what its slope promises (Armijo); the Hessian is shifted where it is not numerically
    positive definite. Converged when the Newton decrement, twice the gain still expected, is below
    1e-14 of Σn; that last step is then taken too.
    """
    scale = float(problem.n0.sum() + problem.n1.sum())
    theta = start.astype(np.float64)
    here = _objective(problem, theta)
    for step in range(1, max_steps + 1):
        direction = -_solve(here.hessian, here.gradient)
        slope = float(here.gradient @ direction)
        if -slope <= 1e-14 * scale:
            return LogisticFit(theta + direction, here.loss, step, True)
        # far from the optimum the Hessian may vanish: no step moves a coefficient by more than this
        longest = length = min(1.0, FURTHEST / float(np.abs(direction).max()))
        while True:
            trial = theta + length * direction
            there = _objective(problem, trial)
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


def _objective(problem: Problem, theta: Array) -> _Objective:
    """Loss, gradient and Hessian in one pass over the blocks."""
    ridge, m = problem.ridge, len(theta)
    loss, gradient, hessian = 0.5 * ridge * float(theta @ theta), ridge * theta, ridge * np.eye(m)
    for u, t0, t1 in problem.blocks():
        eta = theta @ u
        tail = np.exp(-np.abs(eta))  # e^{−|η|} serves the loss, p and p(1−p)
        share = 1.0 / (1.0 + tail)
        p = np.where(eta >= 0.0, share, tail * share)
        t = t0 + t1
        # ln(1 + e^{−|η|}) is common; the linear part goes to the class on the wrong side
        loss += float(t @ np.log1p(tail) + t0 @ np.maximum(eta, 0.0) + t1 @ np.maximum(-eta, 0.0))
        gradient = gradient + u @ (t * p - t1)
        hessian = hessian + (u * (t * tail * share * share)) @ u.T
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
