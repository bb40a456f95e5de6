"""Least squares on the simplex for any code, as a graph: the arithmetic of `maps.simplex`.

Rows come first here: r is (n, columns), matrices are (n, k, k). The loop runs until the last row is
done; rows that are done before no longer change.
"""

from __future__ import annotations

import numpy as np

from calibrant.arrays import Array
from calibrant.export.onnx.formulas import shares_of
from calibrant.export.onnx.graph import Graph, Tensor
from calibrant.maps.simplex import PIVOT, PIVOTS, RIDGE, ZERO

#: rounds without progress after which only one wrong class is flipped at a time
PATIENCE = 3.0


def anywhere(condition: Tensor) -> Tensor:
    """Whether a condition holds anywhere: one boolean."""
    graph = condition.graph
    found = graph.op("ReduceSum", graph.number(condition), attributes={"keepdims": 0})
    return found > 0.0


def outer(left: Array, right: Array) -> Array:
    """(columns, k²): the symmetric part of left_b right_bᵀ for every column b, as a row."""
    both = left[:, :, None] * right[:, None, :]
    return ((both + both.transpose(0, 2, 1)) / 2.0).reshape(len(left), -1)


def of_columns(x: Tensor, pattern: Array) -> Tensor:
    """Σ_b x_b · pattern_b as matrices (n, k, k)."""
    k = round(pattern.shape[1] ** 0.5)
    return x.graph.op("Reshape", x @ pattern, np.array([-1, k, k]))


def times(matrices: Tensor, y: Tensor) -> Tensor:
    """The products of matrices (n, k, k) with vectors (n, k)."""
    graph = matrices.graph
    return graph.squeeze(matrices @ graph.expand(y, 2), 2)


def inverse(matrices: Tensor, k: int) -> Tensor:
    """The inverses of positive definite matrices (n, k, k), by k sweeps.

    Sweep j of a symmetric A, with d = A_jj and c its column j: A − ccᵀ/d, but c/d in row and column
    j and −1/d where they meet. After all of them A is −A⁻¹. A pivot that is not positive changes
    its sign.
    """
    graph = matrices.graph

    def sweep(inner: Graph, j: Tensor, state: list[Tensor]) -> tuple[None, list[Tensor]]:
        a = state[0]
        column = inner.gather(a, j, axis=2)
        d = inner.expand(inner.gather(column, j, axis=1), 1)
        d = inner.where(d > 0.0, d, inner.at_least(-d, PIVOT))
        scaled, deep = column / d, inner.expand(d, 2)
        rest = a - inner.expand(scaled, 2) * inner.expand(column, 1)
        here = inner.op("Equal", np.arange(k), j)
        across, down = inner.expand(here, 0), inner.expand(here, 1)
        swept = inner.where(across | down, a / deep, rest)
        return None, [inner.where(across & down, -1.0 / deep, swept)]

    return -graph.loop(k, [matrices], sweep)[0]


def least_squares(r: Tensor, code: Array, weights: Array) -> Tensor:
    """min Σ_b n_b((1−r_b)Σ_I p − r_bΣ_J p)² over p ≥ 0, Σp = 1; see `maps.simplex`."""
    graph, k = r.graph, len(code)
    plus, minus = (code.T > 0).astype(float), (code.T < 0).astype(float)
    mean, scale = float(weights.sum()) / k, weights[:, None]
    either = plus + minus
    constant = outer(scale * plus, plus).sum(axis=0).reshape(k, k) + mean
    full = of_columns(r, outer(-2.0 * scale * plus, either))
    full = full + of_columns(r * r, outer(scale * either, either)) + constant

    def pivot(inner: Graph, count: Tensor, state: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        free, fewest, patience, _ = state
        y, wrong = _solve_free(full, free, k, RIDGE * mean)
        several = inner.total(inner.number(wrong), 1)
        better = several < fewest
        fewest = inner.where(better, several, fewest)
        patience = inner.where(better, PATIENCE, patience - 1.0)
        place = np.arange(1.0, k + 1.0)
        last = inner.greatest(inner.number(wrong) * place, 1) <= place
        flip = wrong & ((patience >= 0.0) | last)
        free = inner.where(flip, 1.0 - free, free)
        return anywhere(wrong), [free, fewest, patience, y]

    nothing = graph.gather(full, np.array(0), axis=2) * 0.0
    row = graph.total(nothing, 1)
    start = [nothing + 1.0, row + (k + 1.0), row + PATIENCE, nothing]
    return shares_of(graph.at_least(graph.loop(PIVOTS, start, pivot)[3], 0.0))


def _solve_free(full: Tensor, free: Tensor, k: int, ridge: float) -> tuple[Tensor, Tensor]:
    """y with the classes that are not free at zero, and which classes are of the wrong sign."""
    graph = free.graph
    small = graph.expand(free, 2) * (ridge * np.eye(k)) + graph.expand(1.0 - free, 2) * np.eye(k)
    inverted = inverse(full * graph.expand(free, 2) * graph.expand(free, 1) + small, k)
    y = times(inverted, free)
    for _ in range(2):
        y = y + times(inverted, (free - times(full, y)) * free)
    slope = times(full, y) - 1.0
    below = y < -ZERO * graph.greatest(y, 1)
    kept = free > 0.5
    return y, (kept & below) | (~kept & (slope < -ZERO))
