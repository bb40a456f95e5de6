"""Weighted logistic fits by the guarded Newton method of `calibrant.solvers.newton`.

Every fit minimises Σ t₁·ln(1+e^{−η}) + t₀·ln(1+e^{η}) + ½·Σ precision·(θ − mean)² with η = θ·u.
`LogisticProblem` takes any design u and any Gaussian prior, free or within a cone. `fit_logistic`
takes plain columns of any size, and gives coefficients in their own units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import lsq_linear, nnls

from calibrant.array_types import Array
from calibrant.solvers.newton import Descent, descend, factor, newton_step

#: u of a block of cells, one row per coefficient
Design = Callable[[slice], Array]

#: coefficients beyond this are cut; only scores within 1e-290 of each other would need them
STEEPEST = 1e290
#: a column whose spread is below this share of its largest value is one value with rounding
ROUNDING = 2.0**-48
#: cells per block: the temporaries of a block fit into the cache
BLOCK = 8192


# --- Targets --------------------------------------------------------------------------------------


def platt_smoothing(n0: float, n1: float) -> tuple[float, float]:
    """Platt's smoothing of the targets, for given weights of the classes: his y₋ and 1 − y₊ (eq.
    8)."""
    return 1.0 / (n0 + 2.0), 1.0 / (n1 + 2.0)


def smoothed_targets(n0: Array, n1: Array, smoothing: tuple[float, float]) -> tuple[Array, Array]:
    """Targets t₀ and t₁: a share of the weight of each class counts for the other one.

    ``smoothing`` is the share of the negatives, then that of the positives. t₀ is not computed as
    n₀ + n₁ − t₁: of many rows the share is tiny, but it is all that keeps a fit finite.
    """
    low, miss = smoothing
    if low == miss == 0.0:
        return n0, n1
    return (1.0 - low) * n0 + miss * n1, low * n0 + (1.0 - miss) * n1


# --- Any design, any prior ------------------------------------------------------------------------


class Prior(NamedTuple):
    """Mean and precision of each coefficient; a precision of 0 is a flat prior."""

    mean: Array
    precision: Array


class LogisticPoint(NamedTuple):
    """Coefficients, with the objective, the loss without the prior, gradient and Hessian there."""

    theta: Array
    objective: float
    loss: float
    gradient: Array
    hessian: Array

    def step(self, cone: Array | None = None) -> Array:
        """Newton's step from here; with a ``cone``, the step to the minimum of the local parabola
        over it, by least distance programming.

        With H = LLᵀ, ψ = Lᵀθ and q = L⁻¹(Hθ − g), the parabola is ½|ψ − q|², the cone is Aᵀψ ≥ 0
        with A = L⁻¹Cᵀ, and the dual is min |Av + q| over v ≥ 0; then ψ = q + Av.
        """
        if cone is None:
            return newton_step(self.hessian, self.gradient)
        lower = factor(self.hessian)
        a = solve_triangular(lower, cone.T, lower=True)
        q = lower.T @ self.theta - solve_triangular(lower, self.gradient, lower=True)
        try:
            v = nnls(a, -q, maxiter=50 * len(cone))[0]
        except RuntimeError:  # it cycles among rows that rounding makes equal: solve it another way
            v = lsq_linear(a, -q, (0.0, np.inf), tol=1e-14).x
        target = solve_triangular(lower.T, q + a @ v)
        return np.asarray(target - self.theta)

    @property
    def log_determinant(self) -> float:
        """ln |H|."""
        return 2.0 * float(np.log(np.diag(factor(self.hessian))).sum())


class LogisticProblem(NamedTuple):
    """A logistic fit: the design, the weights n₀, n₁ of the classes, the prior, the smoothing.

    The targets t₀ and t₁ are those of `smoothed_targets`. Blocks of u and t are made when they are
    needed, so that a fit needs no memory beyond what the design holds.
    """

    design: Design
    n0: Array
    n1: Array
    prior: Prior
    smoothing: tuple[float, float] = (0.0, 0.0)

    def blocks(self) -> Iterator[tuple[Array, Array, Array]]:
        """(u, t₀, t₁) of one block of cells after the other."""
        for begin in range(0, len(self.n0), BLOCK):
            part = slice(begin, begin + BLOCK)
            yield self.design(part), *smoothed_targets(self.n0[part], self.n1[part], self.smoothing)

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.n0.sum() + self.n1.sum())

    @property
    def base(self) -> float:
        """The log-odds of the base rate; 0 where a class is absent."""
        t0, t1 = smoothed_targets(self.n0.sum(), self.n1.sum(), self.smoothing)
        return float(np.log(t1) - np.log(t0)) if t0 > 0.0 and t1 > 0.0 else 0.0

    def loss_of_constant(self, level: float) -> float:
        """The loss where η is the same everywhere. O(D)."""
        t0, t1 = smoothed_targets(self.n0.sum(), self.n1.sum(), self.smoothing)
        return float(t1 * np.logaddexp(0.0, -level) + t0 * np.logaddexp(0.0, level))

    def at(self, theta: Array) -> LogisticPoint:
        """Objective, gradient and Hessian in one pass over the blocks. O(m²·D)."""
        away = theta - self.prior.mean
        pull = self.prior.precision * away
        loss, gradient, hessian = 0.0, pull, np.diag(self.prior.precision)
        for u, t0, t1 in self.blocks():
            eta = theta @ u
            tail = np.exp(-np.abs(eta))  # e^{−|η|} serves the loss, p and p(1−p)
            share = 1.0 / (1.0 + tail)
            small, above = tail * share, eta >= 0.0
            p, q = np.where(above, share, small), np.where(above, small, share)
            t = t0 + t1
            # ln(1 + e^{−|η|}) is common; the linear part goes to the class on the wrong side
            wrong = t0 @ np.maximum(eta, 0.0) - t1 @ np.minimum(eta, 0.0)
            loss += float(t @ np.log1p(tail) + wrong)
            # t·p − t₁ would be a difference of equal numbers for heavy rows that fit well
            gradient = gradient + u @ (t0 * p - t1 * q)
            hessian = hessian + (u * (t * tail * share * share)) @ u.T
        return LogisticPoint(theta, loss + 0.5 * float(away @ pull), loss, gradient, hessian)

    def descend(
        self, begin: LogisticPoint, cone: Array | None = None, max_steps: int = 200
    ) -> Descent[LogisticPoint]:
        """Newton's descent from a point. With a ``cone`` it stays where cone·θ ≥ 0."""
        return descend(self.at, begin, lambda here: here.step(cone), self.total, max_steps)

    def least(self, *starts: Array, cone: Array | None = None) -> LogisticPoint:
        """The minimum, found from the best of ``starts``, which lie in the ``cone``."""
        begin = min((self.at(start) for start in starts), key=lambda point: point.objective)
        descent = self.descend(begin, cone).required()
        last, before = self.at(descent.theta), descent.point
        return last if last.objective <= before.objective * (1.0 + 1e-12) else before


# --- Columns of any size --------------------------------------------------------------------------


class LogisticFit(NamedTuple):
    """Coefficients, the least objective, and how many steps it took."""

    coefficients: Array
    loss: float
    steps: int


class _StandardColumns(NamedTuple):
    """Columns as (f/size − mean)/spread, below a row of ones if there is an intercept."""

    columns: Sequence[Array]
    intercept: bool
    sizes: Array
    means: Array
    spreads: Array

    def design(self, part: slice) -> Array:
        cells = len(self.columns[0][part])
        u = np.ones((self.intercept + len(self.columns), cells))
        for j, column in enumerate(self.columns):
            u[self.intercept + j] = (column[part] / self.sizes[j] - self.means[j]) / self.spreads[j]
        return u

    @classmethod
    def of(
        cls, columns: Sequence[Array], n0: Array, n1: Array, intercept: bool
    ) -> _StandardColumns:
        """Every column brought to mean 0 (with an intercept only) and spread 1."""
        k, total = len(columns), float(n0.sum() + n1.sum())
        sizes = np.array([max(-float(c.min()), float(c.max())) or 1.0 for c in columns])
        plain = cls(columns, False, sizes, np.zeros(k), np.ones(k))
        parts = [slice(begin, begin + BLOCK) for begin in range(0, len(n0), BLOCK)]

        def mean_of(power: int) -> Array:
            sums = (plain.design(part) ** power @ (n0[part] + n1[part]) for part in parts)
            return sum(sums, np.zeros(k)) / total

        if intercept:
            plain = plain._replace(means=mean_of(1))
        spreads = np.sqrt(mean_of(2))
        # a column whose values differ by rounding only is a constant: it gets no slope
        spreads = np.where(spreads > ROUNDING, spreads, np.inf)
        return plain._replace(intercept=intercept, spreads=spreads)

    def from_own_units(self, own: Array) -> Array:
        """Coefficients of the standard columns, given those in the columns' own units."""
        k, intercept = len(self.columns), self.intercept
        theta = np.zeros(intercept + k)
        theta[-k:] = np.where(np.isfinite(self.spreads), own[-k:] * self.sizes * self.spreads, 0.0)
        if intercept:
            theta[0] = own[0] + float((theta[1:] / self.spreads) @ self.means)
        return theta

    def in_own_units(self, theta: Array) -> Array:
        """Coefficients in the columns' own units, given those of the standard columns."""
        slopes = theta[-len(self.columns) :] / self.spreads
        with np.errstate(over="ignore"):
            own = np.clip(slopes / self.sizes, -STEEPEST, STEEPEST)
        return np.append(theta[0] - float(slopes @ self.means), own) if self.intercept else own


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

    Columns are centred and scaled (only scaled without an intercept). The ridge acts on the slopes
    of that scale and not on the intercept, so that Σp = Σt₁ at the optimum. ``start`` is in the
    columns' own units; it is not used where the best constant does better. Beyond the columns the
    memory is O(1). Raises where no optimum is found.
    """
    standard = _StandardColumns.of(columns, n0, n1, intercept)
    constant = np.zeros(intercept + len(columns))
    precision = np.full(len(constant), ridge)
    precision[:intercept] = 0.0
    prior = Prior(np.zeros(len(constant)), precision)
    problem = LogisticProblem(standard.design, n0, n1, prior, smoothing)
    level = problem.base if intercept else 0.0
    constant[:intercept] = level
    begin = None if start is None else problem.at(standard.from_own_units(start))
    if begin is None or not begin.objective <= problem.loss_of_constant(level):
        begin = problem.at(constant)
    descent = problem.descend(begin).required()
    return LogisticFit(standard.in_own_units(descent.theta), descent.point.objective, descent.steps)
