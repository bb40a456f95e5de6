"""Logistic fits with a Gaussian prior on every coefficient, free or within a cone.

Minimise Σ t₁·ln(1+e^{−η}) + t₀·ln(1+e^{η}) + ½·Σ precision·(θ − mean)² with η = θ·u, by Newton
steps that never let the objective rise. With rows C the minimum is over Cθ ≥ 0: each step then
solves its quadratic programme exactly, through the non-negative least squares of its dual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

__all__ = ["Penalised", "Prior", "fit_in_cone", "fit_penalised", "log_determinant"]

Array = NDArray[np.float64]
#: u of a block of cells, one row per coefficient
Design = Callable[[slice], Array]

#: cells per block: the temporaries of a block fit into the cache
BLOCK = 8192
#: the longest step of a coefficient, far from the optimum where the Hessian may vanish
FURTHEST = 25.0
#: converged when twice the gain still expected is below this share of Σt
ENOUGH = 1e-14


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


class _Problem(NamedTuple):
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
            p = np.where(eta >= 0.0, share, tail * share)
            t = t0 + t1
            loss += float(
                t @ np.log1p(tail) + t0 @ np.maximum(eta, 0.0) - t1 @ np.minimum(eta, 0.0)
            )
            gradient = gradient + u @ (t * p - t1)
            hessian = hessian + (u * (t * tail * share * share)) @ u.T
        return Penalised(theta, loss + 0.5 * float(away @ pull), loss, gradient, hessian)


def fit_penalised(
    design: Design, t0: Array, t1: Array, prior: Prior, start: Array, max_steps: int = 100
) -> Penalised:
    """The free minimum, from ``start``. Each step costs O(m²·D) for m coefficients."""
    return _descend(_Problem(design, t0, t1, prior), start, _free_step, max_steps)


def fit_in_cone(
    design: Design,
    t0: Array,
    t1: Array,
    prior: Prior,
    cone: Array,
    start: Array,
    max_steps: int = 100,
) -> Penalised:
    """The minimum over cone·θ ≥ 0, from a ``start`` that is in there."""

    def step(here: Penalised) -> Array:
        return _cone_step(here, cone)

    return _descend(_Problem(design, t0, t1, prior), start, step, max_steps)


def _descend(
    problem: _Problem, start: Array, step: Callable[[Penalised], Array], max_steps: int
) -> Penalised:
    """Steps halved until the objective falls by a share of what its slope promises (Armijo)."""
    enough = ENOUGH * float(problem.t0.sum() + problem.t1.sum())
    here = problem.at(start)
    for _ in range(max_steps):
        direction = step(here)
        slope = float(here.gradient @ direction)
        if -slope <= enough:
            last = problem.at(here.theta + direction)
            return last if last.objective <= here.objective + enough else here
        longest = length = min(1.0, FURTHEST / float(np.abs(direction).max()))
        while True:
            there = problem.at(here.theta + length * direction)
            if there.objective <= here.objective + 1e-4 * length * slope:
                break
            length /= 2
            if length < 1e-10 * longest:  # rounding hides any further gain
                return here
        here = there
    return here


def _free_step(here: Penalised) -> Array:
    factor = _factor(here.hessian)
    return -np.linalg.solve(factor.T, np.linalg.solve(factor, here.gradient))


def _cone_step(here: Penalised, cone: Array) -> Array:
    """The minimum of the local parabola over the cone: least distance programming.

    With H = LLᵀ, ψ = Lᵀθ and q = L⁻¹(Hθ − g), the parabola is ½|ψ − q|², the cone is Aᵀψ ≥ 0 with
    A = L⁻¹Cᵀ, and the dual is min |Av + q| over v ≥ 0; then ψ = q + Av.
    """
    factor = _factor(here.hessian)
    a = np.linalg.solve(factor, cone.T)
    q = factor.T @ here.theta - np.linalg.solve(factor, here.gradient)
    try:
        v = nnls(a, -q, maxiter=50 * len(cone))[0]
    except RuntimeError:  # cycling among rows that rounding makes equal: stay
        return np.zeros(len(q))
    target = np.linalg.solve(factor.T, q + a @ v)
    return target - here.theta


def _factor(hessian: Array) -> Array:
    """The Cholesky factor, the Hessian shifted until it has one."""
    shift, size = 0.0, float(np.trace(hessian)) / len(hessian)
    for _ in range(60):
        try:
            return np.asarray(np.linalg.cholesky(hessian + shift * np.eye(len(hessian))), float)
        except np.linalg.LinAlgError:
            shift = max(shift * 10.0, 1e-14 * size, 1e-300)
    return np.asarray(np.sqrt(max(size, 1e-300)) * np.eye(len(hessian)))


def log_determinant(hessian: Array) -> float:
    """ln |H| of a positive definite matrix."""
    return 2.0 * float(np.log(np.diag(_factor(hessian))).sum())
