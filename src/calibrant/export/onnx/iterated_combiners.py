"""Combiners for any code that iterate, as graphs: least squares on the simplex, and coupling.

The arithmetic is that of `maps.simplex` and `maps.combiners`, all rows at once. Rows come first
here: r is (n, columns), matrices are (n, k, k). A loop runs until the last row is done; rows that
are done before no longer change.
"""

from __future__ import annotations

import numpy as np

from calibrant.arrays import Array
from calibrant.export.onnx.formulas import shares_of
from calibrant.export.onnx.graph import Graph, Tensor
from calibrant.maps import combiners, simplex

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
        d = inner.where(d > 0.0, d, inner.at_least(-d, simplex.PIVOT))
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
        y, wrong = _solve_free(full, free, k, simplex.RIDGE * mean)
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
    return shares_of(graph.at_least(graph.loop(simplex.PIVOTS, start, pivot)[3], 0.0))


def _solve_free(full: Tensor, free: Tensor, k: int, ridge: float) -> tuple[Tensor, Tensor]:
    """y with the classes that are not free at zero, and which classes are of the wrong sign."""
    graph = free.graph
    small = graph.expand(free, 2) * (ridge * np.eye(k)) + graph.expand(1.0 - free, 2) * np.eye(k)
    inverted = inverse(full * graph.expand(free, 2) * graph.expand(free, 1) + small, k)
    y = times(inverted, free)
    for _ in range(2):
        y = y + times(inverted, (free - times(full, y)) * free)
    slope = times(full, y) - 1.0
    below = y < -simplex.ZERO * graph.greatest(y, 1)
    kept = free > 0.5
    return y, (kept & below) | (~kept & (slope < -simplex.ZERO))


# --- coupling -----------------------------------------------------------------------------------


def couple(r: Tensor, code: Array, weights: Array) -> Tensor:
    """min −Σ_b n_b[r_b ln A_b + (1−r_b) ln B_b − ln(A_b+B_b)], from least squares on."""
    graph, k = r.graph, len(code)
    likelihood = _CouplingGraph(r, code, weights)
    begun = least_squares(r, code, weights=weights)
    open_ = ~likelihood.fits(begun)
    share = combiners.SHARE_PAIRS if likelihood.pairs else combiners.SHARE
    p = graph.where(open_, begun * (1.0 - share) + share / k, begun)
    start = [p, likelihood.value(p), graph.number(open_)]
    return shares_of(graph.loop(sum(combiners.ROUNDS), start, likelihood.round)[0])


class _CouplingGraph:
    """F(p) of the rows r, and a round of its descent; see `maps.combiners`."""

    def __init__(self, r: Tensor, code: Array, weights: Array) -> None:
        columns = code.T
        self.plus, self.minus = (columns > 0).astype(float), (columns < 0).astype(float)
        self.r, self.n, self.columns = r, weights, columns
        self.k, self.total = len(code), float(weights.sum())
        self.pairs, self.full = combiners.is_pairs(code), bool((code != 0).all())

    def sums(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """A and B."""
        return p @ self.plus.T, p @ self.minus.T

    def fits(self, p: Tensor) -> Tensor:
        """Where every column gets just the r it asks for: no p can do better."""
        graph = p.graph
        a, b = self.sums(p)
        off = graph.op("Abs", (1.0 - self.r) * a - self.r * b)
        return graph.greatest(off, 1) <= combiners.AGREES

    def value(self, p: Tensor) -> Tensor:
        """F of every row."""
        graph = p.graph
        a, b = self.sums(p)
        s = a + b
        logs = self.r * graph.op("Log", s / a) + (1.0 - self.r) * graph.op("Log", s / b)
        return graph.total(logs * self.n, 1)

    def newton(self, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """v = p∘∇F, the step u, and the factors of the multiplicative step."""
        graph = p.graph
        a, b = self.sums(p)
        s = a + b
        mutual = graph.expand(p, 2) * graph.expand(p, 1)
        if self.pairs:
            share = a / s
            v = ((share - self.r) * self.n) @ self.columns
            curve = of_columns(share * (b / s) * self.n, outer(self.columns, self.columns))
            curve = curve + mutual * self.total + np.eye(self.k) * (combiners.RIDGE * self.total)
            gain = (self.r * self.n) @ self.plus + ((1.0 - self.r) * self.n) @ self.minus
            return v, -times(inverse(curve, self.k), v), _ratio(gain, gain + v)
        from_a, from_b = self.r * self.n / a, (1.0 - self.r) * self.n / b
        either = self.plus + self.minus
        gain, loss = from_a @ self.plus + from_b @ self.minus, (self.n / s) @ either
        v = p * (loss - gain)
        curve = of_columns(from_a / a, outer(self.plus, self.plus))
        curve = curve + of_columns(from_b / b, outer(self.minus, self.minus))
        if not self.full:  # else it is just what fixes the scale
            curve = curve + self.total - of_columns(self.n / (s * s), outer(either, either))
        small = graph.at_least(v, 0.0) + (p * p + 1e-30) * (combiners.RIDGE * self.total)
        curve = curve * mutual + graph.expand(small, 2) * np.eye(self.k)
        return v, -times(inverse(curve, self.k), v), _ratio(gain, loss)

    def round(
        self, inner: Graph, count: Tensor, state: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """One step of every row that is open."""
        p, before, going = state
        open_ = going > 0.5
        v, u, factors = self.newton(p)
        done = self._done(p, u, v)
        new = _moved(p, inner.at_least(u + 1.0, combiners.KEEP))
        after = self.value(new)
        lower = after <= before + (before + self.total) * 1e-14
        careful, less = self._careful(p, u, factors)
        new = inner.where(lower | done, new, careful)
        after = inner.where(lower | done, after, less)
        left = open_ & ~done
        state = [inner.where(open_, new, p), inner.where(open_, after, before), inner.number(left)]
        return anywhere(left), state

    def _done(self, p: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Where the conditions of a minimum hold."""
        graph = p.graph
        done = graph.greatest(graph.op("Abs", p * u), 1) <= combiners.MOVE
        if self.pairs:
            v = graph.where(p > combiners.TINY, v, 0.0)
        else:
            done = done | (graph.op("Abs", graph.total(v * u, 1)) <= combiners.FALL * self.total)
        return done & (graph.greatest(graph.op("Abs", v), 1) <= combiners.GRADIENT * self.total)

    def _careful(self, p: Tensor, u: Tensor, factors: Tensor) -> tuple[Tensor, Tensor]:
        """The best of several shorter steps and the multiplicative one, which never raises F."""
        graph = p.graph
        new = _moved(p, factors)
        after = self.value(new)
        inside = (1.0 - combiners.KEEP) / graph.at_least(graph.greatest(-u, 1), 1.0)
        width = graph.greatest(u, 1) + graph.greatest(-u, 1)
        mild = graph.op("Log", width + 1.0) / graph.where(width > 0.0, width, 1.0)
        changes = [
            graph.op("Exp", graph.within(u * mild, -30.0, 30.0)),
            graph.at_least(u * inside + 1.0, combiners.KEEP),
            *(graph.at_least(u * t + 1.0, combiners.KEEP) for t in combiners.SHORTER),
        ]
        for change in changes:
            trial = _moved(p, change)
            value = self.value(trial)
            better = value < after
            new, after = graph.where(better, trial, new), graph.where(better, value, after)
        return new, after


def _ratio(gain: Tensor, loss: Tensor) -> Tensor:
    """gain / loss, one for classes that no column knows."""
    graph = gain.graph
    known = loss > combiners.FLOOR
    return graph.where(known, gain / graph.where(known, loss, 1.0), 1.0)


def _moved(p: Tensor, change: Tensor) -> Tensor:
    return p.graph.at_least(shares_of(p * change), combiners.FLOOR)
