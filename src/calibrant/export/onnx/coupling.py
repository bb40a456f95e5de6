"""Coupling for any code, as a graph: the descent of `maps.combiners`, all rows at once."""

from __future__ import annotations

import numpy as np

from calibrant.arrays import Array
from calibrant.export.onnx.formulas import shares_of
from calibrant.export.onnx.graph import Graph, Tensor
from calibrant.export.onnx.simplex import (
    anywhere,
    inverse,
    least_squares,
    of_columns,
    outer,
    times,
)
from calibrant.maps.combiners import (
    AGREES,
    FALL,
    FLOOR,
    GRADIENT,
    KEEP,
    MOVE,
    RIDGE,
    ROUNDS,
    SHARE,
    SHARE_PAIRS,
    SHORTER,
    TINY,
    is_pairs,
)


def couple(r: Tensor, code: Array, weights: Array) -> Tensor:
    """min −Σ_b n_b[r_b ln A_b + (1−r_b) ln B_b − ln(A_b+B_b)], from least squares on."""
    graph, k = r.graph, len(code)
    likelihood = _CouplingGraph(r, code, weights)
    begun = least_squares(r, code, weights=weights)
    open_ = ~likelihood.fits(begun)
    share = SHARE_PAIRS if likelihood.pairs else SHARE
    p = graph.where(open_, begun * (1.0 - share) + share / k, begun)
    start = [p, likelihood.value(p), graph.number(open_)]
    return shares_of(graph.loop(sum(ROUNDS), start, likelihood.round)[0])


class _CouplingGraph:
    """F(p) of the rows r, and a round of its descent; see `maps.combiners`."""

    def __init__(self, r: Tensor, code: Array, weights: Array) -> None:
        columns = code.T
        self.plus, self.minus = (columns > 0).astype(float), (columns < 0).astype(float)
        self.r, self.n, self.columns = r, weights, columns
        self.k, self.total = len(code), float(weights.sum())
        self.pairs, self.full = is_pairs(code), bool((code != 0).all())

    def sums(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """A and B."""
        return p @ self.plus.T, p @ self.minus.T

    def fits(self, p: Tensor) -> Tensor:
        """Where every column gets just the r it asks for: no p can do better."""
        graph = p.graph
        a, b = self.sums(p)
        off = graph.op("Abs", (1.0 - self.r) * a - self.r * b)
        return graph.greatest(off, 1) <= AGREES

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
            curve = curve + mutual * self.total + np.eye(self.k) * (RIDGE * self.total)
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
        small = graph.at_least(v, 0.0) + (p * p + 1e-30) * (RIDGE * self.total)
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
        new = _moved(p, inner.at_least(u + 1.0, KEEP))
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
        done = graph.greatest(graph.op("Abs", p * u), 1) <= MOVE
        if self.pairs:
            v = graph.where(p > TINY, v, 0.0)
        else:
            done = done | (graph.op("Abs", graph.total(v * u, 1)) <= FALL * self.total)
        return done & (graph.greatest(graph.op("Abs", v), 1) <= GRADIENT * self.total)

    def _careful(self, p: Tensor, u: Tensor, factors: Tensor) -> tuple[Tensor, Tensor]:
        """The best of several shorter steps and the multiplicative one, which never raises F."""
        graph = p.graph
        new = _moved(p, factors)
        after = self.value(new)
        inside = (1.0 - KEEP) / graph.at_least(graph.greatest(-u, 1), 1.0)
        width = graph.greatest(u, 1) + graph.greatest(-u, 1)
        mild = graph.op("Log", width + 1.0) / graph.where(width > 0.0, width, 1.0)
        changes = [
            graph.op("Exp", graph.within(u * mild, -30.0, 30.0)),
            graph.at_least(u * inside + 1.0, KEEP),
            *(graph.at_least(u * t + 1.0, KEEP) for t in SHORTER),
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
    known = loss > FLOOR
    return graph.where(known, gain / graph.where(known, loss, 1.0), 1.0)


def _moved(p: Tensor, change: Tensor) -> Tensor:
    return p.graph.at_least(shares_of(p * change), FLOOR)
