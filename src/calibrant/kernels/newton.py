"""Guarded Newton for weighted logistic fits: the objective is convex and never allowed to rise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.descent import Descent, descend, newton_step

__all__ = [
    "LogisticFit",
    "LogisticProblem",
    "fit_logistic",
    "logistic_newton",
    "platt_smoothing",
    "smoothed",
]

Array = NDArray[np.float64]


#: coefficients beyond this are cut; only scores within 1e-290 of each other would need them
STEEPEST = 1e290
#: a column of less spread than this, beside its largest value, is one value and rounding
ROUNDING = 2.0**-48
#: cells per block: the temporaries of a block fit into the cache
BLOCK = 8192


class LogisticFit(NamedTuple):
    """Coefficients, the least objective, how many steps it took, and whether it converged."""

    coefficients: Array
    loss: float
    steps: int
    converged: bool


class LogisticProblem(NamedTuple):
    """Minimise Σ t₁·ln(1+e^{−η}) + t₀·ln(1+e^{η}) + ½·ridge·|slopes|² with η = θ·u.

    u holds a 1 if there is an intercept, then every column as (f/size − mean)/spread, and the
    targets t₀ and t₁ are those of `smoothed`.
    Blocks of u and t are made on the way, so that a fit needs no memory but for its columns.
    """

    columns: Sequence[Array]
    n0: Array
    n1: Array
    intercept: bool
    ridge: float
    smoothing: tuple[float, float]
    sizes: Array
    means: Array
    spreads: Array

    def blocks(self) -> Iterator[tuple[Array, Array, Array]]:
        """(u, t₀, t₁) of one block of cells after the other."""
        for begin in range(0, len(self.n0), BLOCK):
            part = slice(begin, begin + BLOCK)
            a, b = self.n0[part], self.n1[part]
            u = np.ones((self.intercept + len(self.columns), len(a)))
            for j, column in enumerate(self.columns):
                u[self.intercept + j] = (
                    column[part] / self.sizes[j] - self.means[j]
                ) / self.spreads[j]
            yield u, *smoothed(a, b, self.smoothing)


def platt_smoothing(n0: float, n1: float) -> tuple[float, float]:
    """Platt's smoothing, for the weights of the two classes: his y₋ and 1 − y₊ of eq. 8."""
    return 1.0 / (n0 + 2.0), 1.0 / (n1 + 2.0)


def smoothed(n0: Array, n1: Array, smoothing: tuple[float, float]) -> tuple[Array, Array]:
    """Targets t₀ and t₁: a share of the weight of each class counts for the other one.

    ``smoothing`` is the share of the negatives, then that of the positives. t₀ is no difference of
    large numbers: of many rows that share is tiny, but it is all that keeps a fit finite.
    """
    low, miss = smoothing
    return (1.0 - low) * n0 + miss * n1, low * n0 + (1.0 - miss) * n1


def fit_logistic(
    columns: Sequence[Array],
    n0: Array,
    n1: Array,
    *,
    intercept: bool = True,
    ridge: float = 0.0,
    smoothing: tuple[float, float] = (0.0, 0.0),
    start: Array | None = None,
) -> LogisticFit:
    """Logistic fit on columns of any size; coefficients (intercept first) in their own units.

    Columns are centred and scaled (only scaled without an intercept) before `logistic_newton` sees
    them; the ridge acts on the slopes of that scale and not on the intercept, so that Σp = Σt₁ at
    the optimum. ``start`` is in the columns' own units, and is left aside where the best constant
    does better. Beyond the columns the memory is O(1). Raises where no optimum is found.
    """
    problem = _standardised(columns, n0, n1, intercept, ridge, smoothing)
    k, sizes, means, spreads = len(columns), problem.sizes, problem.means, problem.spreads
    constant, least = _constant(problem)
    begin = None
    if start is not None:
        warm = constant.copy()
        warm[-k:] = np.where(np.isfinite(spreads), start[-k:] * sizes * spreads, 0.0)
        if intercept:
            warm[0] = start[0] + float((warm[1:] / spreads) @ means)
        begin = _objective(problem, warm)
    if begin is None or not begin.objective <= least:
        begin = _objective(problem, constant)
    fit = _fit_of(_descent(problem, begin).required())
    slopes = fit.coefficients[-k:] / spreads
    with np.errstate(over="ignore"):
        own = np.clip(slopes / sizes, -STEEPEST, STEEPEST)
    if intercept:
        own = np.append(fit.coefficients[0] - float(slopes @ means), own)
    return fit._replace(coefficients=own)


def _constant(problem: LogisticProblem) -> tuple[Array, float]:
    """The best constant (0 where there is no intercept, or but one class), and its objective."""
    theta = np.zeros(problem.intercept + len(problem.columns))
    t0, t1 = map(float, smoothed(problem.n0.sum(), problem.n1.sum(), problem.smoothing))
    if problem.intercept and t0 > 0.0 and t1 > 0.0:
        theta[0] = np.log(t1) - np.log(t0)
    level = float(theta[0]) if problem.intercept else 0.0
    return theta, float(t1 * np.logaddexp(0.0, -level) + t0 * np.logaddexp(0.0, level))


def _standardised(
    columns: Sequence[Array],
    n0: Array,
    n1: Array,
    intercept: bool,
    ridge: float,
    smoothing: tuple[float, float],
) -> LogisticProblem:
    """The problem with every column brought to mean 0 (with an intercept) and size 1."""
    k = len(columns)
    sizes = np.array([max(-float(c.min()), float(c.max())) or 1.0 for c in columns])
    plain = LogisticProblem(
        columns, n0, n1, False, ridge, smoothing, sizes, np.zeros(k), np.ones(k)
    )
    total = float(n0.sum() + n1.sum())
    if intercept:
        means = sum((u @ (t0 + t1) for u, t0, t1 in plain.blocks()), np.zeros(k)) / total
        plain = plain._replace(means=means)
    square = sum(((u * u) @ (t0 + t1) for u, t0, t1 in plain.blocks()), np.zeros(k)) / total
    spreads = np.sqrt(square)
    # a column whose values differ by rounding is a constant: it gets no slope
    return plain._replace(
        intercept=intercept, spreads=np.where(spreads > ROUNDING, spreads, np.inf)
    )


def logistic_newton(problem: LogisticProblem, start: Array, max_steps: int = 200) -> LogisticFit:
    """`descend` on the standardised problem: each step costs O(m²·D) for m parameters."""
    return _fit_of(_descent(problem, _objective(problem, start.astype(np.float64)), max_steps))


def _descent(
    problem: LogisticProblem, begin: _Objective, max_steps: int = 200
) -> Descent[_Objective]:
    def at(theta: Array) -> _Objective:
        return _objective(problem, theta)

    def step(here: _Objective) -> Array:
        return newton_step(here.hessian, here.gradient)

    return descend(at, begin, step, float(problem.n0.sum() + problem.n1.sum()), max_steps)


def _fit_of(found: Descent[_Objective]) -> LogisticFit:
    return LogisticFit(found.theta, found.point.objective, found.steps, found.converged)


class _Objective(NamedTuple):
    theta: Array
    objective: float
    gradient: Array
    hessian: Array


def _objective(problem: LogisticProblem, theta: Array) -> _Objective:
    """Loss, gradient and Hessian in one pass over the blocks."""
    ridge = np.full(len(theta), problem.ridge)
    ridge[: problem.intercept] = 0.0
    pull, hessian = ridge * theta, np.diag(ridge)
    loss, gradient = 0.5 * float(theta @ pull), pull
    for u, t0, t1 in problem.blocks():
        eta = theta @ u
        tail = np.exp(-np.abs(eta))  # e^{−|η|} serves the loss, p and p(1−p)
        share = 1.0 / (1.0 + tail)
        p, q = np.where(eta >= 0.0, (share, tail * share), (tail * share, share))
        t = t0 + t1
        # ln(1 + e^{−|η|}) is common; the linear part goes to the class on the wrong side
        loss += float(t @ np.log1p(tail) + t0 @ np.maximum(eta, 0.0) + t1 @ np.maximum(-eta, 0.0))
        # of heavy rows that fit well, t·p − t₁ would be a difference of equal numbers
        gradient = gradient + u @ (t0 * p - t1 * q)
        hessian = hessian + (u * (t * tail * share * share)) @ u.T
    return _Objective(theta, loss, gradient, hessian)
