"""Guarded Newton for softmax fits: a factor and an offset per class, or a full matrix.

Rows come in blocks that may be made when they are needed, so that a fit needs memory for one block
only. Every objective is convex and never allowed to rise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Index
from calibrant.errors import ConvergenceError
from calibrant.solvers.block_arrays import (
    NUMPY,
    RowFacts,
    Source,
    ops_of,
    powers,
    row_powers,
    tensor_ops,
)
from calibrant.solvers.newton import ENOUGH, Descent, descend, newton_step
from calibrant.solvers.threads import one_thread

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


class SoftmaxPoint(NamedTuple):
    """θ, with the objective, its gradient, and its Hessian or the diagonal of that."""

    theta: Array
    objective: float
    gradient: Array
    hessian: Array | None
    diagonal: Array
    #: of factors and offsets: the Hessian's entry between those of one class
    between: Array


#: θ, and the steps that led to it
SoftmaxFit = Descent[SoftmaxPoint]


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
        rows = _precondition_rows(problem) if problem.full and not dense else None

    def at(theta: Array) -> SoftmaxPoint:
        return _evaluate(problem, theta, dense)

    def step(here: SoftmaxPoint) -> Array:
        if here.hessian is None:
            curve = here.diagonal[:, -1] - problem.strength[:, -1]
            nearly = (
                precondition_pairs(here.diagonal, here.between) if rows is None else rows.at(curve)
            )
            return _conjugate(problem, here, nearly, keeps)
        return newton_step(here.hessian, here.gradient)

    with one_thread():
        return descend(at, at(start), step, problem.total, max_steps).required()


def forms_hessian(parameters: int, *, full: bool) -> bool:
    """Whether a fit of so many parameters forms its Hessian."""
    return parameters <= (DENSE if full else min(DENSE, DENSE_VECTOR))


def _scores(theta: Array, x: Array, full: bool) -> Array:
    """η = W·x + b or v·x + b."""
    ops = ops_of(x)
    eta = x @ ops.beside(theta[:, :-1], x).T if full else x * ops.beside(theta[:, 0].copy(), x)
    eta += ops.beside(theta[:, -1].copy(), x)
    return eta  # type: ignore[no-any-return]


def _weighted_gradient(share: Array, parts: Array, x: Array, full: bool) -> Array:
    """Σ share·parts·∂η/∂θ, with a share for each row; parts are written over."""
    ops = ops_of(x)
    if full:
        parts *= share[:, None]
        return np.column_stack((ops.host(parts.T @ x), ops.host(parts.sum(axis=0))))
    last = ops.weighted(share, parts)
    parts *= x
    return np.column_stack((ops.weighted(share, parts), last))


def _block_gradient(
    problem: SoftmaxProblem, e: Array, total: Array, x: Array, codes: Index, w: Array
) -> Array:
    """Σ w·(p − target)·∂η/∂θ of a block, p = e / total; e is written over."""
    k, kept, even = x.shape[1], 1.0 - problem.smoothing, problem.smoothing / x.shape[1]
    ops = ops_of(x)
    if problem.full:
        e /= total[:, None]
        e[ops.beside(np.arange(len(x)), codes), codes] -= kept
        if even:
            e -= even
        return _weighted_gradient(w, e, x, True)
    slopes = _weighted_gradient(w / total, e, x, False)
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


def _evaluate(problem: SoftmaxProblem, theta: Array, dense: bool) -> SoftmaxPoint:
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
        gradient += _block_gradient(problem, e, total, x, codes, w)
    return SoftmaxPoint(theta, loss, gradient, hessian, diagonal, between)


def _own_curvature(
    e: Array, x: Array, share: Array, total: Array, full: bool
) -> tuple[Array, Array | float]:
    """The diagonal of a block's Hessian, Σ w·p(1 − p)·(∂η/∂θ)² with p = e / total.

    For factors and offsets also the entries between the factor and the offset of each class.
    """
    if full:
        spare = e * (1.0 - e / total[:, None])
        return _weighted_gradient(share, spare, x * x, full), 0.0
    ex, squared, add = e * x, share / total, ops_of(x).weighted
    first = add(share, ex * x) - add(squared, ex * ex)
    last, mixed = add(share, e) - add(squared, e * e), add(share, ex) - add(squared, ex * e)
    return np.column_stack((first, last)), mixed


def _curvature(p: Array, x: Array, w: Array, full: bool) -> Array:
    """Σ w·J(diag p − p·pᵀ)J of a block."""
    m, k = p.shape
    f = np.hstack((x, np.ones((m, 1))))[:, None, :] if full else np.stack((x, np.ones(x.shape)), 2)
    r = f.shape[2]
    z = (p[:, :, None] * f * np.sqrt(w)[:, None, None]).reshape(m, k * r)
    result = -(z.T @ z)
    weighted = p * w[:, None]
    for a in range(k):
        g = f[:, 0 if full else a, :]
        part = slice(a * r, (a + 1) * r)
        result[part, part] += (g * weighted[:, a : a + 1]).T @ g
    return np.asarray(result)


def _precondition_rows(problem: SoftmaxProblem) -> RowsPreconditioner:
    """The preconditioner of a full matrix, by the weighted mean of f·fᵀ, f = (x, 1)."""
    k = len(problem.centre)
    result = np.zeros((k + 1, k + 1))
    for x, _, w in problem.source():
        ops = ops_of(x)
        f = ops.xp.column_stack((x, ops.xp.ones_like(x[:, :1])))
        result += ops.host((f * w[:, None]).T @ f)
    return RowsPreconditioner(result / problem.total, problem.strength, x[:0])


def _conjugate(problem: SoftmaxProblem, here: SoftmaxPoint, nearly: Solve, keeps: bool) -> Array:
    """Newton's direction by conjugate gradients, with the preconditioner ``nearly``.

    It is more exact nearer the optimum, so that the last steps are Newton's own. Gains far below
    those that `descend` looks for are not sought.
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
        result += _weighted_gradient(w / total, move, x, problem.full)
    return result


def softmax_objective(problem: SoftmaxProblem, theta: Array) -> float:
    """The value that `fit_softmax` minimises, at θ."""
    away = theta - problem.centre
    loss = 0.5 * float((problem.strength * away * away).sum())
    for x, codes, w in problem.source():
        losses, _, _ = _losses(_scores(theta, x, problem.full), codes, problem.smoothing)
        loss += ops_of(x).total(w, losses)
    return loss


def softmax_row_losses(x: Array, codes: Index, theta: Array, full: bool) -> Array:
    """The log loss of each row of a block."""
    return ops_of(x).host(_losses(_scores(theta, x, full), codes, 0.0)[0])


# --- Preconditioners for conjugate gradients ------------------------------------------------------
# They nearly solve H·u = r. The closer they come, the fewer steps are needed.


Solve = Callable[[Array], Array]

#: where the determinant of a pair is a smaller share of its diagonal's than this, only the diagonal
#: is taken
FLAT = 1e-12


def precondition_pairs(diagonal: Array, between: Array) -> Solve:
    """The preconditioner for a factor and an offset per class. It solves both of a class at once.

    >>> solve = precondition_pairs(np.array([[2.0, 2.0]]), np.array([1.0]))
    >>> solve(np.array([[3.0, 3.0]])).round(9).tolist()
    [[1.0, 1.0]]
    """
    first, last = diagonal.T
    size = first * last - between**2
    good = size > FLAT * first * last
    size = np.where(good, size, first * last)
    mixed = np.where(good, between, 0.0) / size
    own, other = last / size, first / size

    def solve(r: Array) -> Array:
        a, b = r.T
        return np.column_stack((own * a - mixed * b, other * b - mixed * a))

    return solve


class RowsPreconditioner:
    """The preconditioner of a full matrix: row j of H is taken for S_j + c_j·E[f·fᵀ], f = (x, 1).

    The products run where the rows of ``block`` are.

    Parameters
    ----------
    moments : array of shape (k + 1, k + 1)
        E[f·fᵀ].
    strength : array of shape (k, k + 1)
        The ridges S. They are the same for all rows but on the diagonal, so that one decomposition
        serves all; that one entry is put right by the formula of Sherman and Morrison.
    block : array
        Some rows x.

    >>> strength = np.array([[1.0, 3.0, 2.0], [3.0, 1.0, 2.0]])
    >>> solve = RowsPreconditioner(np.eye(3), strength, np.empty((0, 2))).at(np.array([0.5, 1.0]))
    >>> solve(np.array([[1.5, 3.5, 2.5], [4.0, 2.0, 3.0]])).round(9).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """

    def __init__(self, moments: Array, strength: Array, block: Any) -> None:
        self.block, self.ops, k = block, ops_of(block), len(strength)
        each = np.arange(k)
        ridge = np.append(strength[(each + 1) % k, each], strength[0, k])
        unit = 1.0 / np.sqrt(ridge)
        values, vectors = np.linalg.eigh(moments * unit * unit[:, None])
        self.values = np.maximum(values, 0.0)
        self.basis = self._there(unit[:, None] * vectors)
        self.each = self._there(each)
        self.excess = self._there(ridge[:k] - strength[each, each])

    def _there(self, values: NDArray[Any]) -> Any:
        return self.ops.beside(values, self.block)

    def at(self, curve: Array) -> Solve:
        """The preconditioner where c_j = Σ w·p_j(1 − p_j) are given, of shape (k,)."""
        basis, each, k = self.basis, self.each, len(curve)
        shrunk = self._there(1.0 / (1.0 + curve[:, None] * self.values))
        column = (basis[:k] * shrunk) @ basis.T
        share = self.excess / (1.0 - self.excess * column[each, each])

        def solve(r: Array) -> Array:
            u = ((self._there(r) @ basis) * shrunk) @ basis.T
            return self.ops.host(u + (share * u[each, each])[:, None] * column)

        return solve


# --- Guarded Newton for one temperature: sums over rows, and the descent in 1/T -------------------


#: the flattest temperature: 1/T times the spread of the logits is at least this
FLATTEST = 1e-3
#: precision of every parameter in units of the spread, per unit of weight (so that neither the
#: scale of the weights nor repeated rows matter): it has no effect unless the classes separate
RIDGE = 1e-7


class BlockSums(NamedTuple):
    """Sums over rows for `fit_temperature`, made block by block."""

    source: Source

    def spread(self) -> float:
        """Root mean square difference of two entries of a row, weighted; 1 where all are equal."""
        total = weight = 0.0
        with one_thread():
            for x, _, w in self.source():
                ops, centred = ops_of(x), x - x.mean(axis=1)[:, None]
                total += 2.0 / (x.shape[1] - 1) * ops.total(w, ops.dots(centred, centred))
                weight += float(w.sum())
        return float(np.sqrt(total / weight)) or 1.0

    def along(self, t: float, smoothing: float) -> tuple[float, float, float, float]:
        """Σ w·(lse(t·u) − t·Σ target·u), its first and second derivative, and Σw.

        u are the differences to the own class.
        """
        loss = slope = curve = weight = 0.0
        for x, codes, w in self.source():
            ops = ops_of(x)
            u = x - ops.own(x, codes)[:, None]  # the loss is then ln Σ exp, with no cancellation
            e, top, total = powers(t * u)
            e *= u
            mean = e.sum(axis=1) / total
            variance = ops.dots(e, u) / total - mean * mean
            target = smoothing * u.mean(axis=1) if smoothing else 0.0 * mean
            loss += ops.total(w, ops.log(total) + top - t * target)
            slope += ops.total(w, mean - target)
            curve += ops.total(w, ops.clip(variance, 0.0, np.inf))  # rounding
            weight += float(w.sum())
        return loss, slope, curve, weight

    def own_losses(self, t: float) -> Array:
        """For each row −ln of the probability of its own class, scores multiplied by t."""
        parts = []
        for x, codes, _ in self.source():
            ops = ops_of(x)
            _, top, total = powers(t * (x - ops.own(x, codes)[:, None]))
            parts.append(ops.host(ops.log(total) + top))
        return np.concatenate(parts)


class FusedSums:
    """The sums of `BlockSums` for a tensor that a kernel can read.

    All that has a number for each row stays on the tensor's device, in float64.
    """

    def __init__(self, x: Any, facts: RowFacts, codes: Any, weight: Array) -> None:
        ops = tensor_ops(x)
        self.x, self.facts, self.host_weight = x, facts, weight
        wide = ops.wide(x[:0])
        high, mean, self.weight = (ops.beside(v, wide) for v in (facts.high, facts.mean, weight))
        own = ops.wide(ops.own(x, ops.beside(codes, x)))
        self.top, self.away, self.even = high.float(), high - own, mean - own  # v + away = u

    def spread(self) -> float:
        k, w = self.x.shape[1], self.host_weight
        mean = float(w @ self.facts.square) / float(w.sum())
        return float(np.sqrt(2.0 * k / (k - 1) * mean)) or 1.0

    def along(self, t: float, smoothing: float) -> tuple[float, float, float, float]:
        lse, mean, variance = row_powers(self.x, t, self.top)
        away = self.away - smoothing * self.even
        parts = (lse + t * away, mean + away, variance)
        loss, slope, curve = ((self.weight * rows).sum() for rows in parts)
        return float(loss), float(slope), float(curve), float(self.host_weight.sum())

    def own_losses(self, t: float) -> Array:
        """For each row −ln of the probability of its own class, scores multiplied by t."""
        return tensor_ops(self.x).host(row_powers(self.x, t, self.top)[0] + t * self.away)


#: what `fit_temperature` asks of rows
TemperatureSums = BlockSums | FusedSums


def fit_temperature(
    sums: TemperatureSums,
    *,
    smoothing: float = 0.0,
    start: float | None = None,
    max_passes: int = 60,
) -> float:
    """The factor t = 1/T > 0 with the least Σ w·(lse(t·x) − t·Σ target·x).

    The objective is convex in t. Newton's method runs inside a bracket that shrinks with each pass;
    where a step would leave the bracket, it is halved on the scale of ln t. Converged when the step
    is below 1e-6 of t; that step is still taken, and leaves an error of about its square. Raises
    where no optimum is found.
    """
    size = sums.spread()
    flattest = FLATTEST / size
    low, high = flattest, np.inf
    t = max(1.0 / size if start is None else start, flattest)
    for _ in range(max_passes):
        with one_thread():
            loss, slope, curve, weight = sums.along(t, smoothing)
        ridge = RIDGE * weight * size * size
        loss, slope, curve = loss + 0.5 * ridge * t * t, slope + ridge * t, curve + ridge
        if t == flattest and slope >= 0.0:
            return t
        low, high = (t, high) if slope < 0.0 else (low, t)
        step = -slope / curve
        if abs(step) <= 1e-6 * t or high - low <= 1e-14 * t:
            return max(t + step, flattest)
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
