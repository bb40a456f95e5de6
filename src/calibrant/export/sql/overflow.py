"""Plans for databases in which an overflow is an error, and not infinity."""

from __future__ import annotations

import numpy as np

from calibrant.array_types import Array
from calibrant.export.sql.dialects import Dialect
from calibrant.plan.borders import LARGEST_DOUBLE
from calibrant.plan.nodes import Clip, Linear, Node, Number, PlanColumn, rebuilt, values_of
from calibrant.plan.ranges import Range, ends_of, reach

#: beyond ± this a sigmoid is 0 (to 1e-260) or 1; further out some engines refuse the exp in it, or
#: its product with a weight
STEEPEST = 600.0
#: any number in this interval is as good, so a short one is taken
ROUND = (570.0, 630.0)
#: products up to here can be added without overflow
HUGE = 1e300
#: up to here, the sum of an intercept and a term keeps the digits of both
WHERE_SUMS_ARE_SURE = 1e6


def is_bounded(range_: Range) -> bool:
    """Whether the exponential of all values in a range is a number."""
    return range_[0] >= -ROUND[1] and range_[1] <= ROUND[1]


def guarded(node: Node, dialect: Dialect) -> Node:
    """The plan with factors moved to where their products do not overflow, if that is an error.

    Where a product is that large, the sigmoid around it has long been 0 or 1.
    """
    return node if dialect.infinite else rebuilt(node, _with_small_products)


def _with_small_products(node: Node) -> Node:
    if not isinstance(node, Linear) or _is_sign(node):
        return node
    large = [
        max(map(abs, ends_of(c))) * max(map(abs, reach(term))) > HUGE for c, term in node.terms
    ]
    if not any(large):
        return node
    terms = [
        (c, Clip(term, *_limits(node, i)) if large[i] else term)
        for i, (c, term) in enumerate(node.terms)
    ]
    return Linear(node.base, tuple(terms))


def _is_sign(node: Linear) -> bool:
    """Whether a sum only turns the sign of a value, or not even that."""
    return node.base == 0.0 and len(node.terms) == 1 and node.terms[0][0] in (-1.0, 1.0)


def _limits(node: Linear, i: int) -> tuple[Number, Number]:
    """The interval for factor i, at whose ends the term alone decides the sum. If it is the only
    term, the interval in which the sum lies between ± `STEEPEST`."""
    c, base = (values_of(number) for number in (node.terms[i][0], node.base))
    if len(node.terms) == 1 and np.abs(base).max() <= WHERE_SUMS_ARE_SURE:
        both = [_round_ends(level, base, c) for level in (-STEEPEST, STEEPEST)]
        low, high = np.minimum(*both), np.maximum(*both)
    else:
        others = Linear(0.0, node.terms[:i] + node.terms[i + 1 :])
        rest = max(map(abs, reach(others)))
        high = 2.0 * (STEEPEST + rest + np.abs(base)) / np.abs(c)
        # two terms of a margin have no end, but only one of them is large at a time
        high = np.minimum(high, HUGE / np.maximum(np.abs(c), HUGE / LARGEST_DOUBLE))
        low = -high
    if len(high) == 1:
        return float(low[0]), float(high[0])
    return PlanColumn(low), PlanColumn(high)


def _round_ends(level: float, base: Array, c: Array) -> Array:
    """The x at which base + c · x is ``level``, with few digits where those are as good."""
    exact = (level - base) / c
    short = np.array([float(f"{end:.1e}") for end in exact.tolist()])
    size = np.abs(base + c * short)
    return np.where((size >= ROUND[0]) & (size <= ROUND[1]), short, exact)
