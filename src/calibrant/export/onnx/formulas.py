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
    return 1.0 / (1.0 + (-f).exp())


def softplus_of(f: Tensor) -> Tensor:
    """ln(1 + exp(f)) = max(f, 0) + ln(1 + exp(−|f|))."""
    tail = (-f.abs()).exp()
    return f.at_least(0.0) + (1.0 + tail).log()


def _ln(q: Tensor) -> Tensor:
    """ln of positive numbers. Subnormal ones are first multiplied by a power of two, for some
    runtimes have no logarithm of them."""
    small = q < float(np.finfo(q.graph.dtype).tiny)
    log = small.choose(q * 2.0**RAISED, q).log()
    return small.choose(log - RAISED * float(np.log(2.0)), log)


def log_of(p: Tensor, floor: float = SMALLEST, most: float = 1.0) -> Tensor:
    """ln of p clipped to [floor, most]; no number of p's type need be as small as the floor."""
    least, positive = float(np.log(floor)), p > 0.0
    log = _ln(positive.choose(p.at_most(most), 1.0))
    return positive.choose(log.at_least(least), least)


def neg_log_rest_of(p: Tensor) -> Tensor:
    """−ln(1 − p) of p clipped to [0, 1 − 2⁻⁵³], to the last place of 1."""
    below = p < 1.0
    rest = below.choose(1.0 - p.at_least(0.0), 1.0)
    return below.choose(-rest.log(), -float(np.log1p(-LARGEST)))


def logit_of(p: Tensor) -> Tensor:
    """ln p − ln(1 − p) of p clipped to [5e-324, 1 − 2⁻⁵³], as `losses.logit`."""
    inside = (p > 0.0) & (p < 1.0)
    q = inside.choose(p, 0.5)
    z = _ln(q) - (1.0 - q).log()
    return inside.choose(z, (p > 0.0).choose(HIGHEST, LOWEST))


def between_logits(f: Tensor) -> Tensor:
    """The logit of σ(f): f itself, moved between the logits of 0 and 1."""
    return f.within(LOWEST, HIGHEST)


def sum_of(terms: Sequence[Tensor]) -> Tensor:
    """The sum of tensors, added from left to right."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


# --- rows ---------------------------------------------------------------------------------------


def log_softmax(z: Tensor) -> Tensor:
    """ln softmax of each row of (n, k)."""
    below = z - z.greatest()
    return below - below.exp().total().log()


def softmax_of(z: Tensor) -> Tensor:
    """softmax of each row of (n, k), with all digits of tiny ones."""
    return shares_of((z - z.greatest()).exp())


def shares_of(p: Tensor) -> Tensor:
    """Each row of (n, k) divided by its sum, which is not zero."""
    return p / p.total()
