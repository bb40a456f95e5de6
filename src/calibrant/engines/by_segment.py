"""A plan for each segment, as one expression.

The parameters of each segment's plan are joined by segment, the pieces by segment and cell. Plans
of the same form share a column for each parameter, so thousands of segments need no more joins than
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from calibrant.engines.expressions import FramePrinter
from calibrant.engines.frame_builder import FrameBuilder
from calibrant.plan.nodes import BySegment
from calibrant.plan.stacked_plans import parameter_table, stacked

__all__ = ["by_segment", "usable_keys"]


def by_segment(
    plan: BySegment,
    keys: Sequence[Any],
    segment: nw.Expr,
    kind: type,
    score: str,
    builder: FrameBuilder,
) -> nw.Expr:
    """The plan as an expression of the columns ``score`` and ``segment``.

    ``segment`` holds values of the ``kind`` str or int. ``keys`` are the plan's segments as that
    column spells them.
    """
    common = FramePrinter(builder, score).write(plan.common)
    used = [i for i in usable_keys(keys, kind) if plan.shares[i] > 0.0]
    if not used:
        return common
    stacks = stacked([plan.members[i] for i in used], shared=(plan.common,))
    table, names = parameter_table(stacks, plan.shares[used])
    own_keys = [keys[i] for i in used]
    values = own_keys if kind is str else np.array(own_keys, dtype=np.int64)
    joined = builder.look_up(segment, values, table)
    columns = {parameter: joined[name] for parameter, name in names.items()}
    own = common
    for part, (_, node) in enumerate(stacks):
        here = joined["part"] == part
        code = nw.when(here).then(joined["code"])  # other rows look up nothing
        printer = FramePrinter(builder, score, {plan.common: common}, columns, code)
        own = nw.when(here).then(printer.write(node)).otherwise(own)
    share = joined["share"]
    mixed = share * own + (1.0 - share) * common
    return nw.when(share.is_null()).then(common).otherwise(mixed)


def usable_keys(keys: Sequence[Any], kind: type) -> list[int]:
    """The places of the keys that a column of the ``kind`` str or int (of 64 bits) can hold."""
    places = [i for i, key in enumerate(keys) if type(key) is kind]
    return [i for i in places if kind is str or -(2**63) <= keys[i] < 2**63]
