"""Logistic fits with a Gaussian prior on every coefficient, free or within a cone.

Minimise Σ t₁·ln(1+e^{−η}) + t₀·ln(1+e^{η}) + ½·Σ precision·(θ − mean)² with η = θ·u, by guarded
Newton steps. With rows C the minimum is over Cθ ≥ 0: each step then
solves its quadratic programme exactly, through the non-negative least squares of its dual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import lsq_linear, nnls

from calibrant.kernels.descent import descend, factor, newton_step

__all__ = ["Penalised", "Prior", "fit_in_cone", "fit_penalised", "log_determinant"]

Array = NDArray[np.float64]
#: u of a block of cells, one row per coefficient
Design = Callable[[slice], Array]

#: cells per block: the temporaries of a block fit into the cache
BLOCK = 8192


class Prior(NamedTuple):
    """Mean and precision of the coefficients; a precision of 0 is a flat prior."""

    mean: Array
    precision: Array


class Penalised(NamedTuple):
    """The minimum: coefficients, objective, loss without the prior, Hessian of the objective."""

    theta: Array
    objective: float
    loss: float
    gradient: Array
    hessian: Array


class _PenalisedProblem(NamedTuple):
    design: Design
    t0: Array
    t1: Array
    prior: Prior

    def at(self, theta: Array) -> Penalised:
        """Objective, gradient and Hessian in one pass over the blocks."""
        away = theta - self.prior.mean
        pull = self.prior.precision * away
        loss, gradient, hessian = 0.0, pull, np.diag(self.prior.precision)
        for begin in range(0, len(self.t0), BLOCK):
            part = slice(begin, begin + BLOCK)
            u, t0, t1 = self.design(part), self.t0[part], self.t1[part]
            eta = theta @ u
            tail = np.exp(-np.abs(eta))  # e^{−|η|} serves the loss, p and p(1−p)
            share = 1.0 / (1.0 + tail)
            p, q = np.where(eta >= 0.0, (share, tail * share), (tail * share, share))
            t = t0 + t1
            loss += float(
                t @ np.log1p(tail) + t0 @ np.maximum(eta, 0.0) - t1 @ np.minimum(eta, 0.0)
            )
            gradient = gradient + u @ (t0 * p - t1 * q)
            hessian = hessian + (u * (t * tail * share * share)) @ u.T
        return Penalised(theta, loss + 0.5 * float(away @ pull), loss, gradient, hessian)


def fit_penalised(design: Design, t0: Array, t1: Array, prior: Prior, *starts: Array) -> Penalised:
    """The free minimum, from the best of ``starts``. O(m²·D) a step for m coefficients."""

    def step(here: Penalised) -> Array:
        return newton_step(here.hessian, here.gradient)

    return _least(_PenalisedProblem(design, t0, t1, prior), starts, step)


def fit_in_cone(
    design: Design, t0: Array, t1: Array, prior: Prior, cone: Array, *starts: Array
) -> Penalised:
    """The minimum over cone·θ ≥ 0, from the best of ``starts``, which are in there."""

    def step(here: Penalised) -> Array:
        return _cone_step(here, cone)

    return _least(_PenalisedProblem(design, t0, t1, prior), starts, step)


def _least(
    problem: _PenalisedProblem, starts: Sequence[Array], step: Callable[[Penalised], Array]
) -> Penalised:
    begin = min((problem.at(start) for start in starts), key=lambda point: point.objective)
    total = float(problem.t0.sum() + problem.t1.sum())
    found = descend(problem.at, begin, step, total).required()
    last = problem.at(found.theta)
    return last if last.objective <= found.point.objective * (1.0 + 1e-12) else found.point


def _cone_step(here: Penalised, cone: Array) -> Array:
    """The minimum of the local parabola over the cone: least distance programming.

    With H = LLᵀ, ψ = Lᵀθ and q = L⁻¹(Hθ − g), the parabola is ½|ψ − q|², the cone is Aᵀψ ≥ 0 with
    A = L⁻¹Cᵀ, and the dual is min |Av + q| over v ≥ 0; then ψ = q + Av.
    """
    lower = factor(here.hessian)
    a = solve_triangular(lower, cone.T, lower=True)
    q = lower.T @ here.theta - solve_triangular(lower, here.gradient, lower=True)
    try:
        v = nnls(a, -q, maxiter=50 * len(cone))[0]
    except RuntimeError:  # cycling among rows that rounding makes equal: another way to the same
        v = lsq_linear(a, -q, (0.0, np.inf), tol=1e-14).x
    target = solve_triangular(lower.T, q + a @ v)
    return np.asarray(target - here.theta)


def log_determinant(hessian: Array) -> float:
    """ln |H| of a positive definite matrix."""
    return 2.0 * float(np.log(np.diag(factor(hessian))).sum())
