"""Guarded Newton for softmax fits: a temperature, a factor per class, or a full matrix.

Rows come in blocks that may be made when they are needed, so that a fit needs memory for one block
only. Every objective is convex and never allowed to rise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import ConvergenceError
from calibrant.kernels.blas_threads import one_thread
from calibrant.kernels.descent import ENOUGH, descend, newton_step
from calibrant.kernels.nearly_solved import Solve, by_pairs, by_rows

__all__ = [
    "SoftmaxFit",
    "SoftmaxProblem",
    "TemperatureFit",
    "fit_softmax",
    "fit_temperature",
    "forms_hessian",
    "objective",
    "row_losses",
    "spread",
]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
#: makes the blocks (x, codes, weights) anew at each call
Source = Callable[[], Iterable[tuple[Array, Index, Array]]]

#: the flattest temperature: 1/T times the spread of the logits is at least this
FLATTEST = 1e-3
#: precision of every parameter in units of the spread, per unit of weight (so that neither the
#: scale of the weights nor repeated rows matter): it has no effect unless the classes separate
RIDGE = 1e-7
#: with more parameters than this, conjugate gradients find Newton's direction: of a full matrix,
#: and of factors and offsets, whose products with the Hessian are much cheaper than the Hessian
DENSE, DENSE_VECTOR = 600, 80
#: while conjugate gradients run, up to so many probabilities are kept
SHARES_KEPT = 1 << 22
#: conjugate gradients end where what is left is below this share of what ends the descent
BELOW = 1e-3


# --- temperature --------------------------------------------------------------------------------


class TemperatureFit(NamedTuple):
    """1/T, the loss there, the slope of the objective there, and the passes over the rows."""

    factor: float
    loss: float
    slope: float
    passes: int


def spread(source: Source) -> float:
    """Root mean square difference of two entries of a row, weighted; 1 where all are equal."""
    total = weight = 0.0
    with one_thread():
        for x, _, w in source():
            centred = x - x.mean(axis=1, keepdims=True)
            total += 2.0 / (x.shape[1] - 1) * float(w @ np.vecdot(centred, centred))
            weight += float(w.sum())
    return float(np.sqrt(total / weight)) or 1.0


def fit_temperature(
    source: Source, *, smoothing: float = 0.0, start: float | None = None, max_passes: int = 60
) -> TemperatureFit:
    """The factor t = 1/T > 0 with the least Σ w·(lse(t·x) − t·Σ target·x).

    The objective is convex in t. Newton's method runs inside a bracket that shrinks with each pass;
    where a step would leave the bracket, it is halved on the scale of ln t. Converged when the step
    is below 1e-6 of t; that step is still taken, and leaves an error of about its square. Raises
    where no optimum is found.
    """
    size = spread(source)
    flattest = FLATTEST / size
    low, high = flattest, np.inf
    t = max(1.0 / size if start is None else start, flattest)
    for passes in range(1, max_passes + 1):
        with one_thread():
            loss, slope, curve = _along(source, t, size, smoothing)
        if t == flattest and slope >= 0.0:
            return TemperatureFit(t, loss, slope, passes)
        low, high = (t, high) if slope < 0.0 else (low, t)
        step = -slope / curve
        if abs(step) <= 1e-6 * t or high - low <= 1e-14 * t:
            return TemperatureFit(max(t + step, flattest), loss, slope, passes)
        new = min(t + step, 10.0 * t)
        if new <= flattest == low:
            new = flattest
        elif not low < new < high:
            new = float(np.sqrt(low * high))
        t = new
    raise ConvergenceError(
        f"the temperature must end at its optimum, but after {max_passes} passes its factor was "
        f"still between {low:.6g} and {high:.6g}. Scores or weights that differ by many orders of "
        "magnitude can do this: rescale or cut them."
    )


def _along(source: Source, t: float, size: float, smoothing: float) -> tuple[float, float, float]:
    """The objective at t with its first and second derivative, ridge included."""
    loss = slope = curve = weight = 0.0
    for x, codes, w in source():
        # differences to the own class: the loss is then ln Σ exp, with no cancellation
        u = x - x[np.arange(len(x)), codes][:, None]
        e, top, total = _powers(t * u)
        e *= u
        mean = e.sum(axis=1) / total
        square = np.vecdot(e, u) / total
        target = smoothing * u.mean(axis=1) if smoothing else 0.0
        loss += float(w @ (np.log(total) + top - t * target))
        slope += float(w @ (mean - target))
        curve += float(w @ np.maximum(square - mean * mean, 0.0))
        weight += float(w.sum())
    ridge = RIDGE * weight * size * size
    return loss + 0.5 * ridge * t * t, slope + ridge * t, curve + ridge


def _powers(eta: Array) -> tuple[Array, Array, Array]:
    """exp(η − top) of each row, written over η; top, the largest of the row; and their sum."""
    top = eta.max(axis=1)
    eta -= top[:, None]
    np.exp(eta, out=eta)
    return eta, top, eta.sum(axis=1)


# --- vector and matrix --------------------------------------------------------------------------


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
    dense = forms_hessian(start.size, full=problem.full)
    keeps = not dense and sum(x.size for x, _, _ in problem.source()) <= SHARES_KEPT
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
    eta = x @ theta[:, :-1].T if full else x * theta[:, 0].copy()
    eta += theta[:, -1].copy()
    return np.asarray(eta)


def _collect(share: Array, parts: Array, x: Array, full: bool) -> Array:
    """Σ share·parts·∂η/∂θ, with a share for each row; parts are written over."""
    if full:
        parts *= share[:, None]
        return np.column_stack((parts.T @ x, parts.sum(axis=0)))
    last = share @ parts
    parts *= x
    return np.column_stack((share @ parts, last))


def _slopes(
    problem: SoftmaxProblem, e: Array, total: Array, x: Array, codes: Index, w: Array
) -> Array:
    """Σ w·(p − target)·∂η/∂θ of a block, p = e / total; e is written over."""
    k, kept, even = x.shape[1], 1.0 - problem.smoothing, problem.smoothing / x.shape[1]
    rows = np.arange(len(x))
    if problem.full:
        e /= total[:, None]
        e[rows, codes] -= kept
        if even:
            e -= even
        return _collect(w, e, x, True)
    slopes = _collect(w / total, e, x, False)
    slopes[:, 0] -= kept * np.bincount(codes, w * x[rows, codes], minlength=k)
    slopes[:, 1] -= kept * np.bincount(codes, w, minlength=k)
    if even:
        slopes -= even * np.column_stack((w @ x, np.full(k, w.sum())))
    return slopes


def _losses(problem: SoftmaxProblem, eta: Array, codes: Index) -> tuple[Array, Array, Array]:
    """The loss of each row of a block, exp(η − top) written over η, and their sums."""
    aim = (1.0 - problem.smoothing) * eta[np.arange(len(eta)), codes]
    if problem.smoothing:
        aim += problem.smoothing * eta.mean(axis=1)
    e, top, total = _powers(eta)
    return np.log(total) + (top - aim), e, total


def _evaluate(problem: SoftmaxProblem, theta: Array, dense: bool) -> _SoftmaxPoint:
    """Loss, gradient and (if dense) Hessian in one pass over the blocks."""
    away, full = theta - problem.centre, problem.full
    loss = 0.5 * float((problem.strength * away * away).sum())
    gradient, diagonal = problem.strength * away, problem.strength.copy()
    hessian = np.diag(problem.strength.reshape(-1)) if dense else None
    between = np.zeros(len(theta))
    for x, codes, w in problem.source():
        losses, e, total = _losses(problem, _scores(theta, x, full), codes)
        loss += float(w @ losses)
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
    ex, squared = e * x, share / total
    last, mixed = share @ e - squared @ (e * e), share @ ex - squared @ (ex * e)
    return np.column_stack((share @ (ex * x) - squared @ (ex * ex), last)), mixed


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


def _conjugate(
    problem: SoftmaxProblem, here: _SoftmaxPoint, nearly: Solve, keeps: bool, max_steps: int = 200
) -> Array:
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
    for _ in range(max_steps):
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
        e, _, total = _powers(_scores(theta, x, problem.full))
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
            p, _, total = _powers(_scores(theta, x, problem.full))
        else:
            p = shares[i]
        move -= (np.vecdot(p, move) / total)[:, None]
        move *= p
        result += _collect(w / total, move, x, problem.full)
    return result


def objective(problem: SoftmaxProblem, theta: Array) -> float:
    """What `fit_softmax` minimises, at θ."""
    away = theta - problem.centre
    loss = 0.5 * float((problem.strength * away * away).sum())
    for x, codes, w in problem.source():
        loss += float(w @ _losses(problem, _scores(theta, x, problem.full), codes)[0])
    return loss


def row_losses(x: Array, codes: Index, theta: Array, full: bool) -> Array:
    """The log loss of each row of a block."""
    eta = _scores(theta, x, full)
    own = eta[np.arange(len(x)), codes]
    _, top, total = _powers(eta)
    return np.asarray(np.log(total) + (top - own))
