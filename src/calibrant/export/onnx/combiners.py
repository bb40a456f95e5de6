"""Combiners for any code that iterate, as graphs: least squares on the simplex, and coupling.

The arithmetic is that of `maps.simplex` and `maps.combiners`, all rows at once. Rows come first
here: r is (n, columns), matrices are (n, k, k). A loop runs until the last row is done; rows that
are done before no longer change.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.export.onnx.graph import Graph, Tensor, shares_of
from calibrant.rules import combiners
from calibrant.rules.combiners import is_all_pairs
from calibrant.rules.plan.map_input import Combined

#: rounds without progress after which only one wrong class is flipped at a time
PATIENCE = 3.0


def anywhere(condition: Tensor) -> Tensor:
    """Whether a condition holds anywhere: one boolean."""
    found = condition.graph.op("ReduceSum", condition.number(), attributes={"keepdims": 0})
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
    return (matrices @ y.expand(2)).squeeze(2)


def inverse(matrices: Tensor, k: int) -> Tensor:
    """The inverses of positive definite matrices (n, k, k), by k sweeps.

    Sweep j of a symmetric A, with d = A_jj and c its column j: A − ccᵀ/d, but c/d in row and column
    j and −1/d where they meet. After all of them A is −A⁻¹. A pivot that is not positive changes
    its sign.
    """

    def sweep(inner: Graph, j: Tensor, state: list[Tensor]) -> tuple[None, list[Tensor]]:
        a = state[0]
        column = inner.gather(a, j, axis=2)
        d = inner.gather(column, j, axis=1).expand(1)
        d = (d > 0.0).choose(d, (-d).at_least(combiners.PIVOT))
        scaled, deep = column / d, d.expand(2)
        rest = a - scaled.expand(2) * column.expand(1)
        here = inner.op("Equal", np.arange(k), j)
        across, down = here.expand(0), here.expand(1)
        swept = (across | down).choose(a / deep, rest)
        return None, [(across & down).choose(-1.0 / deep, swept)]

    return -matrices.graph.loop(k, [matrices], sweep)[0]


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
        y, wrong = _solve_free(full, free, k, combiners.SIMPLEX_RIDGE * mean)
        several = wrong.number().total()
        better = several < fewest
        fewest = better.choose(several, fewest)
        patience = better.choose(PATIENCE, patience - 1.0)
        place = np.arange(1.0, k + 1.0)
        last = (wrong.number() * place).greatest() <= place
        flip = wrong & ((patience >= 0.0) | last)
        free = flip.choose(1.0 - free, free)
        return anywhere(wrong), [free, fewest, patience, y]

    nothing = graph.gather(full, np.array(0), axis=2) * 0.0
    row = nothing.total()
    start = [nothing + 1.0, row + (k + 1.0), row + PATIENCE, nothing]
    return shares_of(graph.loop(combiners.PIVOTS, start, pivot)[3].at_least(0.0))


def _solve_free(full: Tensor, free: Tensor, k: int, ridge: float) -> tuple[Tensor, Tensor]:
    """y with the classes that are not free at zero, and which classes are of the wrong sign."""
    small = free.expand(2) * (ridge * np.eye(k)) + (1.0 - free).expand(2) * np.eye(k)
    inverted = inverse(full * free.expand(2) * free.expand(1) + small, k)
    y = times(inverted, free)
    for _ in range(2):
        y = y + times(inverted, (free - times(full, y)) * free)
    slope = times(full, y) - 1.0
    below = y < -combiners.ZERO * y.greatest()
    kept = free > 0.5
    return y, (kept & below) | (~kept & (slope < -combiners.ZERO))


# --- coupling -----------------------------------------------------------------------------------


def couple(r: Tensor, code: Array, weights: Array) -> Tensor:
    """min −Σ_b n_b[r_b ln A_b + (1−r_b) ln B_b − ln(A_b+B_b)], from least squares on."""
    graph, k = r.graph, len(code)
    likelihood = _CouplingGraph(r, code, weights)
    begun = least_squares(r, code, weights=weights)
    open_ = ~likelihood.fits(begun)
    share = combiners.SHARE_PAIRS if likelihood.pairs else combiners.SHARE
    p = open_.choose(begun * (1.0 - share) + share / k, begun)
    start = [p, likelihood.value(p), open_.number()]
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
        a, b = self.sums(p)
        off = ((1.0 - self.r) * a - self.r * b).abs()
        return off.greatest() <= combiners.AGREES

    def value(self, p: Tensor) -> Tensor:
        """F of every row."""
        a, b = self.sums(p)
        s = a + b
        logs = self.r * (s / a).log() + (1.0 - self.r) * (s / b).log()
        return (logs * self.n).total()

    def newton(self, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """v = p∘∇F, the step u, and the factors of the multiplicative step."""
        a, b = self.sums(p)
        s = a + b
        mutual = p.expand(2) * p.expand(1)
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
        small = v.at_least(0.0) + (p * p + 1e-30) * (combiners.RIDGE * self.total)
        curve = curve * mutual + small.expand(2) * np.eye(self.k)
        return v, -times(inverse(curve, self.k), v), _ratio(gain, loss)

    def round(
        self, inner: Graph, count: Tensor, state: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """One step of every row that is open."""
        p, before, going = state
        open_ = going > 0.5
        v, u, factors = self.newton(p)
        done = self._done(p, u, v)
        new = _moved(p, (u + 1.0).at_least(combiners.KEEP))
        after = self.value(new)
        lower = after <= before + (before + self.total) * 1e-14
        careful, less = self._careful(p, u, factors)
        new = (lower | done).choose(new, careful)
        after = (lower | done).choose(after, less)
        left = open_ & ~done
        state = [open_.choose(new, p), open_.choose(after, before), left.number()]
        return anywhere(left), state

    def _done(self, p: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Where the conditions of a minimum hold."""
        done = (p * u).abs().greatest() <= combiners.MOVE
        if self.pairs:
            v = (p > combiners.TINY).choose(v, 0.0)
        else:
            done = done | ((v * u).total().abs() <= combiners.FALL * self.total)
        return done & (v.abs().greatest() <= combiners.GRADIENT * self.total)

    def _careful(self, p: Tensor, u: Tensor, factors: Tensor) -> tuple[Tensor, Tensor]:
        """The best of several shorter steps and the multiplicative one, which never raises F."""
        new = _moved(p, factors)
        after = self.value(new)
        inside = (1.0 - combiners.KEEP) / (-u).greatest().at_least(1.0)
        width = u.greatest() + (-u).greatest()
        mild = (width + 1.0).log() / (width > 0.0).choose(width, 1.0)
        changes = [
            (u * mild).within(-30.0, 30.0).exp(),
            (u * inside + 1.0).at_least(combiners.KEEP),
            *((u * t + 1.0).at_least(combiners.KEEP) for t in combiners.SHORTER),
        ]
        for change in changes:
            trial = _moved(p, change)
            value = self.value(trial)
            better = value < after
            new, after = better.choose(trial, new), better.choose(value, after)
        return new, after


def _ratio(gain: Tensor, loss: Tensor) -> Tensor:
    """gain / loss, one for classes that no column knows."""
    known = loss > combiners.FLOOR
    return known.choose(gain / known.choose(loss, 1.0), 1.0)


def _moved(p: Tensor, change: Tensor) -> Tensor:
    return shares_of(p * change).at_least(combiners.FLOOR)


# --- Columns' probabilities r (n, columns) → class probabilities p (n, classes), as graphs --------
# The functions of the same names are in `calibrant.rules.combiners`, with their derivations.


Combiner = Callable[[Tensor, Array, Array], Tensor]

#: the most rounds of the search for the balance
ROUNDS = 120
#: stands in for a divisor of zero
TINY = {np.dtype(np.float64): 1e-300, np.dtype(np.float32): 1e-30}
#: the lightest column, as a share of the heaviest, with which float32 can compute
LIGHTEST_IN_FLOAT32 = 1e-12


def combined(node: Combined, r: Tensor) -> Tensor:
    """p by the node's rule; classes that no column knows get nothing."""
    graph = r.graph
    if graph.dtype != np.float64 and node.weights.min() < LIGHTEST_IN_FLOAT32:
        raise InputError(
            f"the weights of columns must be at least {LIGHTEST_IN_FLOAT32:g} of the largest in "
            f"float32, but {node.weights.min():g} of it came. Export with float=64."
        )
    if node.rule in ITERATED:
        _check_iterated(r, node.code)
    p = COMBINERS[node.rule](r, node.code, node.weights)
    if node.known.all():
        return p
    nothing = p.column(0) * 0.0
    padded = graph.op("Concat", p, nothing.expand(1), attributes={"axis": 1})
    place = np.where(node.known, np.cumsum(node.known) - 1, node.known.sum())
    return graph.gather(padded, place, axis=1)


def _normalized(r: Tensor, code: Array, weights: Array) -> Tensor:
    total = r.total()
    some = total > 0.0
    return some.choose(r / some.choose(total, 1.0), 1.0 / len(code))


def _projected(r: Tensor, code: Array, weights: Array) -> Tensor:
    """min Σ n_c(p_c − r_c)²: p = (r − τ/n)₊ with the τ at which it sums to one, by sorting."""
    inverse = 1.0 / weights
    graph, k = r.graph, len(inverse)
    _, by_limit = graph.ops("TopK", (r / inverse, np.array([k])), 2, {"axis": 1})
    ordered = graph.op("GatherElements", r, by_limit, attributes={"axis": 1})
    steps = graph.gather(inverse, by_limit)
    one = np.array(1)
    tau = (graph.op("CumSum", ordered, one) - 1.0) / graph.op("CumSum", steps, one)
    last = (ordered > tau * steps).choose(np.arange(k), np.zeros(k, dtype=np.int64))
    chosen = graph.op("GatherElements", tau, last.greatest(), attributes={"axis": 1})
    return shares_of((r - chosen * inverse).at_least(0.0))


def _balanced(r: Tensor, code: Array, n: Array) -> Tensor:
    """n_c(p_c − r_c) = μ·p_c(1−p_c), with the μ at which Σp = 1: Newton's method in a bracket."""
    graph, k = r.graph, len(n)
    fine = float(np.finfo(graph.dtype).eps)
    above = r.total() > 1.0
    low = above.choose(-float(n.sum()), 0.0)
    high = above.choose(0.0, float(n.max()) * k / (k - 1.0))

    def body(inner: Graph, count: Tensor, state: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        mu, low, high, _ = state
        p, root = _share(r, n, mu)
        excess = p.total() - 1.0
        open_ = (excess.abs() > 2.0 * fine * k) & (high - low > 4.5 * fine * mu.abs())
        short = excess < 0.0
        low, high = short.choose(mu, low), short.choose(high, mu)
        slope = (p * (1.0 - p) / root.at_least(TINY[graph.dtype])).total()
        new = mu - excess / slope.at_least(TINY[graph.dtype])
        inside = (new > low) & (new < high)
        new = inside.choose(new, 0.5 * (low + high))
        return anywhere(open_), [open_.choose(new, mu), low, high, p]

    start = [low * 0.0, low, high, r]
    return shares_of(graph.loop(ROUNDS, start, body)[3])


def _share(r: Tensor, n_: Array, mu: Tensor) -> tuple[Tensor, Tensor]:
    """The root in [0, 1] of μp² + (n−μ)p − nr = 0, and that of its discriminant."""
    n = mu.graph.constant(n_)
    q = n - mu
    gap = (mu > 0.0).choose(
        q * q + 4.0 * mu * n * r, (n + mu) * (n + mu) - 4.0 * mu * n * (1.0 - r)
    )
    root = gap.at_least(0.0).sqrt()
    positive = q > 0.0
    upper = (root - q) / positive.choose(1.0, 2.0 * mu)
    lower = 2.0 * n * r / positive.choose(q + root, 1.0)
    return positive.choose(lower, upper).at_most(1.0), root


def _check_iterated(r: Tensor, code: Array) -> None:
    """Refuse what an iteration cannot do in the graph: its tolerances need doubles, and a unique
    answer."""
    if r.graph.dtype != np.float64:
        raise InputError(
            "a code other than one-against-all is combined by iterations that need doubles, but "
            "float=32 came. Export with float=64, or fit with the code 'one_vs_rest'."
        )
    if not _decides(code):
        raise InputError(
            "this code leaves some rows several best answers, and a runtime might give another one "
            "than predict_proba does, so it cannot be written as ONNX. Fit with all pairs, with "
            "one_vs_rest, or with a code without zeros that tells all classes apart."
        )


def _decides(code: Array) -> bool:
    """Whether the best p is unique whatever r: all pairs; or no zeros, and sums over the columns'
    positives that fix p."""
    if is_all_pairs(code):
        return True
    sums = np.vstack((code.T > 0, np.ones(len(code)))).astype(float)
    return bool((code != 0).all() and np.linalg.matrix_rank(sums) == len(code))


COMBINERS: dict[str, Combiner] = {
    "normalized": _normalized,
    "projected": _projected,
    "balanced": _balanced,
    "least_squares": least_squares,
    "coupled": couple,
}
#: those for codes other than one-against-all
ITERATED = ("least_squares", "coupled")
