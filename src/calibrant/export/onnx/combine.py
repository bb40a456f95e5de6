"""Columns' probabilities r (n, columns) → class probabilities p (n, classes), as graphs.

The functions of the same names are in `calibrant.maps.combiners`, with their derivations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.export.onnx.formulas import shares_of
from calibrant.export.onnx.graph import Graph, Tensor
from calibrant.export.onnx.iterated_combiners import anywhere, couple, least_squares
from calibrant.maps.combiners import is_all_pairs
from calibrant.plan.row_nodes import Combined

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
