"""Guarded Newton for softmax fits: a factor and an offset per class, or a full matrix.

Rows come in blocks that may be made when they are needed, so that a fit needs memory for one block
only. Every objective is convex and never allowed to rise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.kernels.blas_threads import one_thread
from calibrant.kernels.block_arrays import NUMPY, Source, ops_of, powers
from calibrant.kernels.descent import ENOUGH, descend, newton_step
from calibrant.kernels.nearly_solved import Solve, by_pairs, by_rows

#: with more parameters than this, conjugate gradients find Newton's direction: of a full matrix,
#: and of factors and offsets, whose products with the Hessian are much cheaper than the Hessian
DENSE, DENSE_VECTOR = 600, 80
#: while conjugate gradients run, up to so many probabilities are kept
SHARES_KEPT = 1 << 22
#: conjugate gradients end where what is left is below this share of what ends the descent
BELOW = 1e-3


class SoftmaxProblem(NamedTuple):
    """Minimise Σ w·(lse(η) − Σ target·η) + ½·Σ strength·(θ − centre)².

    θ is (k, k + 1) with η = W·x + b, θ = [W, b], if ``full``; else (k, 2) with η = v·x + b,
    θ = [v, b]. Targets are 1 for the row's own class and 0 else, smoothed towards 1/k.
    """

    source: Source
    strength: Array
    centre: Array
    smoothing: float
    total: float

    @property
    def full(self) -> bool:
        return bool(self.centre.shape[1] != 2)


class SoftmaxFit(NamedTuple):
    """θ, the least objective, the largest entry of its gradient, and steps."""

    theta: Array
    loss: float
    gradient: float
    steps: int


class _SoftmaxPoint(NamedTuple):
    theta: Array
    objective: float
    gradient: Array
    hessian: Array | None
    diagonal: Array
    #: of factors and offsets: the Hessian's entry between those of one class
    between: Array


def fit_softmax(problem: SoftmaxProblem, start: Array, max_steps: int = 200) -> SoftmaxFit:
    """`descend` on θ; raises where no optimum is found.

    Notes
    -----
    With p parameters of k classes a step costs O(n·p²) where the Hessian is formed (see
    `forms_hessian`), and else O(n·p) times the steps of conjugate gradients.
    """
    sizes = [(len(x) * x.shape[1], ops_of(x) is NUMPY) for x, _, _ in problem.source()]
    dense = forms_hessian(start.size, full=problem.full) and sizes[0][1]
    keeps = not dense and sum(size for size, _ in sizes) <= SHARES_KEPT
    with one_thread():
        moments = _moments(problem) if problem.full and not dense else None

    def at(theta: Array) -> _SoftmaxPoint:
        return _evaluate(problem, theta, dense)

    def step(here: _SoftmaxPoint) -> Array:
        if here.hessian is None:
            curve = here.diagonal[:, -1] - problem.strength[:, -1]
            nearly = (
                by_pairs(here.diagonal, here.between)
                if moments is None
                else by_rows(moments, problem.strength, curve)
            )
            return _conjugate(problem, here, nearly, keeps)
        return newton_step(here.hessian, here.gradient)

    with one_thread():
        found = descend(at, at(start), step, problem.total, max_steps).required()
        last = _evaluate(problem, found.theta, False)
    gradient = float(np.abs(last.gradient).max())
    return SoftmaxFit(found.theta, last.objective, gradient, found.steps)


def forms_hessian(parameters: int, *, full: bool) -> bool:
    """Whether a fit of so many parameters forms its Hessian."""
    return parameters <= (DENSE if full else min(DENSE, DENSE_VECTOR))


def _scores(theta: Array, x: Array, full: bool) -> Array:
    """η = W·x + b or v·x + b."""
    ops = ops_of(x)
    eta = x @ theta[:, :-1].T if full else x * ops.beside(theta[:, 0].copy(), x)
    eta += ops.beside(theta[:, -1].copy(), x)
    return eta  # type: ignore[no-any-return]


def _collect(share: Array, parts: Array, x: Array, full: bool) -> Array:
    """Σ share·parts·∂η/∂θ, with a share for each row; parts are written over."""
    if full:
        parts *= share[:, None]
        return np.column_stack((parts.T @ x, parts.sum(axis=0)))
    ops = ops_of(x)
    last = ops.weighted(share, parts)
    parts *= x
    return np.column_stack((ops.weighted(share, parts), last))


def _slopes(
    problem: SoftmaxProblem, e: Array, total: Array, x: Array, codes: Index, w: Array
) -> Array:
    """Σ w·(p − target)·∂η/∂θ of a block, p = e / total; e is written over."""
    k, kept, even = x.shape[1], 1.0 - problem.smoothing, problem.smoothing / x.shape[1]
    ops = ops_of(x)
    if problem.full:
        e /= total[:, None]
        e[np.arange(len(x)), codes] -= kept
        if even:
            e -= even
        return _collect(w, e, x, True)
    slopes = _collect(w / total, e, x, False)
    slopes[:, 0] -= kept * ops.by_class(codes, w * ops.own(x, codes), k)
    slopes[:, 1] -= kept * ops.by_class(codes, w, k)
    if even:
        slopes -= even * np.column_stack((ops.weighted(w, x), np.full(k, float(w.sum()))))
    return slopes


def _losses(eta: Array, codes: Index, smoothing: float) -> tuple[Array, Array, Array]:
    """The loss of each row of a block, exp(η − top) written over η, and their sums."""
    ops = ops_of(eta)
    aim = (1.0 - smoothing) * ops.own(eta, codes)
    if smoothing:
        aim += smoothing * eta.mean(axis=1)
    e, top, total = powers(eta)
    return ops.log(total) + (top - aim), e, total


def _evaluate(problem: SoftmaxProblem, theta: Array, dense: bool) -> _SoftmaxPoint:
    """Loss, gradient and (if dense) Hessian in one pass over the blocks."""
    away, full = theta - problem.centre, problem.full
    loss = 0.5 * float((problem.strength * away * away).sum())
    gradient, diagonal = problem.strength * away, problem.strength.copy()
    hessian = np.diag(problem.strength.reshape(-1)) if dense else None
    between = np.zeros(len(theta))
    for x, codes, w in problem.source():
        losses, e, total = _losses(_scores(theta, x, full), codes, problem.smoothing)
        loss += ops_of(x).total(w, losses)
        if hessian is not None:
            hessian += _curvature(e / total[:, None], x, w, full)
        else:
            own, mixed = _own_curvature(e, x, w / total, total, full)
            diagonal += own
            between += mixed
        gradient += _slopes(problem, e, total, x, codes, w)
    return _SoftmaxPoint(theta, loss, gradient, hessian, diagonal, between)


def _own_curvature(
    e: Array, x: Array, share: Array, total: Array, full: bool
) -> tuple[Array, Array | float]:
    """Σ w·p(1 − p)·(∂η/∂θ)², the diagonal of the Hessian of a block, p = e / total; and, of factors
    and offsets, what is between the two of a class."""
    if full:
        spare = e * (1.0 - e / total[:, None])
        return _collect(share, spare, x * x, full), 0.0
    ex, squared, add = e * x, share / total, ops_of(x).weighted
    first = add(share, ex * x) - add(squared, ex * ex)
    last, mixed = add(share, e) - add(squared, e * e), add(share, ex) - add(squared, ex * e)
    return np.column_stack((first, last)), mixed


def _curvature(p: Array, x: Array, w: Array, full: bool) -> Array:
    """Σ w·J(diag p − p·pᵀ)J of a block."""
    m, k = p.shape
    ones = np.ones((m, 1))
    f = (
        np.hstack((x, ones))[:, None, :]
        if full
        else np.stack((x, np.broadcast_to(ones, x.shape)), 2)
    )
    r = f.shape[2]
    z = (p[:, :, None] * f * np.sqrt(w)[:, None, None]).reshape(m, k * r)
    result = -(z.T @ z)
    weighted = p * w[:, None]
    for a in range(k):
        g = f[:, 0 if full else a, :]
        part = slice(a * r, (a + 1) * r)
        result[part, part] += (g * weighted[:, a : a + 1]).T @ g
    return np.asarray(result)


def _moments(problem: SoftmaxProblem) -> Array:
    """The weighted mean of f·fᵀ, f = (x, 1)."""
    k = len(problem.centre)
    result = np.zeros((k + 1, k + 1))
    for x, _, w in problem.source():
        f = np.column_stack((x, np.ones(len(x))))
        result += (f * w[:, None]).T @ f
    return result / problem.total


def _conjugate(problem: SoftmaxProblem, here: _SoftmaxPoint, nearly: Solve, keeps: bool) -> Array:
    """The Newton direction by conjugate gradients on Hessian products, helped by ``nearly``.

    It is the more exact the nearer the optimum is, so that the last steps are Newton's own; but
    what is far below the gain that `descend` looks for is not sought.
    """
    norm = float(np.sqrt((here.gradient * nearly(here.gradient)).sum()))
    wanted = norm * min(0.1, np.sqrt(norm / max(problem.total, 1.0)))
    wanted = max(wanted, min(BELOW * np.sqrt(ENOUGH * abs(here.objective)), 0.5 * norm))
    shares = _shares(problem, here.theta) if keeps else None
    direction, residual = np.zeros_like(here.theta), -here.gradient
    scaled = nearly(residual)
    search, size = scaled, float((residual * scaled).sum())
    for _ in range(200):
        if np.sqrt(size) <= wanted:
            break
        product = _product(problem, here.theta, search, shares)
        length = size / float((search * product).sum())
        direction = direction + length * search
        residual = residual - length * product
        scaled = nearly(residual)
        size, before = float((residual * scaled).sum()), size
        search = scaled + size / before * search
    return direction


def _shares(problem: SoftmaxProblem, theta: Array) -> list[Array]:
    """The probabilities of all blocks."""
    found = []
    for x, _, _ in problem.source():
        e, _, total = powers(_scores(theta, x, problem.full))
        e /= total[:, None]
        found.append(e)
    return found


def _product(
    problem: SoftmaxProblem, theta: Array, v: Array, shares: list[Array] | None = None
) -> Array:
    """Hessian times v; ``shares`` are the probabilities of all blocks, where they are known."""
    result = problem.strength * v
    for i, (x, _, w) in enumerate(problem.source()):
        move = _scores(v, x, problem.full)
        total: Array | float = 1.0
        if shares is None:
            p, _, total = powers(_scores(theta, x, problem.full))
        else:
            p = shares[i]
        move -= (ops_of(x).dots(p, move) / total)[:, None]
        move *= p
        result += _collect(w / total, move, x, problem.full)
    return result


def objective(problem: SoftmaxProblem, theta: Array) -> float:
    """What `fit_softmax` minimises, at θ."""
    away = theta - problem.centre
    loss = 0.5 * float((problem.strength * away * away).sum())
    for x, codes, w in problem.source():
        losses, _, _ = _losses(_scores(theta, x, problem.full), codes, problem.smoothing)
        loss += ops_of(x).total(w, losses)
    return loss


def row_losses(x: Array, codes: Index, theta: Array, full: bool) -> Array:
    """The log loss of each row of a block."""
    return ops_of(x).host(_losses(_scores(theta, x, full), codes, 0.0)[0])
