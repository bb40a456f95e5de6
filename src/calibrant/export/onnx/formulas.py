"""The few functions that maps are made of, as graphs that keep every digit they can.

ONNX's own Sigmoid and Softmax are not used: runtimes compute them to the few digits that a label
needs, and a probability of 1e-12 comes out as 1e-8.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant.export.onnx.graph import Tensor
from calibrant.losses import LARGEST, SMALLEST, logit

#: the logits of 0 and 1
LOWEST, HIGHEST = (float(end) for end in logit(np.array([0.0, 1.0])))
#: the power of two that makes subnormal numbers normal ones
RAISED = 64


def sigmoid_of(f: Tensor) -> Tensor:
    """σ(f) = 1 / (1 + exp(−f)), with all digits of tiny ones; where exp is infinite it is 0."""
    return 1.0 / (1.0 + f.graph.op("Exp", -f))


def softplus_of(f: Tensor) -> Tensor:
    """ln(1 + exp(f)) = max(f, 0) + ln(1 + exp(−|f|))."""
    graph = f.graph
    tail = graph.op("Exp", -graph.op("Abs", f))
    return graph.at_least(f, 0.0) + graph.op("Log", 1.0 + tail)


def _ln(q: Tensor) -> Tensor:
    """ln of positive numbers. Subnormal ones are first multiplied by a power of two, for some
    runtimes have no logarithm of them."""
    graph = q.graph
    small = q < float(np.finfo(graph.dtype).tiny)
    log = graph.op("Log", graph.where(small, q * 2.0**RAISED, q))
    return graph.where(small, log - RAISED * float(np.log(2.0)), log)


def log_of(p: Tensor, floor: float = SMALLEST, most: float = 1.0) -> Tensor:
    """ln of p clipped to [floor, most]; no number of p's type need be as small as the floor."""
    graph, least = p.graph, float(np.log(floor))
    positive = p > 0.0
    log = _ln(graph.where(positive, graph.at_most(p, most), 1.0))
    return graph.where(positive, graph.at_least(log, least), least)


def neg_log_rest_of(p: Tensor) -> Tensor:
    """−ln(1 − p) of p clipped to [0, 1 − 2⁻⁵³], to the last place of 1."""
    graph = p.graph
    below = p < 1.0
    rest = graph.where(below, 1.0 - graph.at_least(p, 0.0), 1.0)
    return graph.where(below, -graph.op("Log", rest), -float(np.log1p(-LARGEST)))


def logit_of(p: Tensor) -> Tensor:
    """ln p − ln(1 − p) of p clipped to [5e-324, 1 − 2⁻⁵³], as `losses.logit`."""
    graph = p.graph
    inside = (p > 0.0) & (p < 1.0)
    q = graph.where(inside, p, 0.5)
    z = _ln(q) - graph.op("Log", 1.0 - q)
    return graph.where(inside, z, graph.where(p > 0.0, HIGHEST, LOWEST))


def between_logits(f: Tensor) -> Tensor:
    """The logit of σ(f): f itself, moved between the logits of 0 and 1."""
    return f.graph.within(f, LOWEST, HIGHEST)


def sum_of(terms: Sequence[Tensor]) -> Tensor:
    """The sum of tensors, added from left to right."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


# --- rows ---------------------------------------------------------------------------------------


def log_softmax(z: Tensor) -> Tensor:
    """ln softmax of each row of (n, k)."""
    graph = z.graph
    below = z - graph.greatest(z, 1)
    return below - graph.op("Log", graph.total(graph.op("Exp", below), 1))


def softmax_of(z: Tensor) -> Tensor:
    """softmax of each row of (n, k), with all digits of tiny ones."""
    graph = z.graph
    return shares_of(graph.op("Exp", z - graph.greatest(z, 1)))


def shares_of(p: Tensor) -> Tensor:
    """Each row of (n, k) divided by its sum, which is not zero."""
    return p / p.graph.total(p, 1)
