"""A plan per segment as an expression: parameters are joined by segment, pieces by it and cell.

Plans of the same form share a column for each parameter, so that thousands of segments cost as many
joins as one.
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
    sheet: FrameBuilder,
) -> nw.Expr:
    """The plan of a score and a segment, a column of values of the ``kind`` str or int, in which
    the plan's segments are spelled as ``keys``."""
    common = FramePrinter(sheet, score).write(plan.common)
    used = [i for i in usable_keys(keys, kind) if plan.shares[i] > 0.0]
    if not used:
        return common
    stacks = stacked([plan.members[i] for i in used], shared=(plan.common,))
    table, names = parameter_table(stacks, plan.shares[used])
    own_keys = [keys[i] for i in used]
    values = own_keys if kind is str else np.array(own_keys, dtype=np.int64)
    joined = sheet.look_up(segment, values, table)
    columns = {parameter: joined[name] for parameter, name in names.items()}
    own = common
    for part, (_, node) in enumerate(stacks):
        here = joined["part"] == part
        code = nw.when(here).then(joined["code"])  # other rows look up nothing
        printer = FramePrinter(sheet, score, {plan.common: common}, columns, code)
        own = nw.when(here).then(printer.write(node)).otherwise(own)
    share = joined["share"]
    mixed = share * own + (1.0 - share) * common
    return nw.when(share.is_null()).then(common).otherwise(mixed)


def usable_keys(keys: Sequence[Any], kind: type) -> list[int]:
    """The places of the keys that a column of the ``kind`` str or int (of 64 bits) can hold."""
    places = [i for i, key in enumerate(keys) if type(key) is kind]
    return [i for i in places if kind is str or -(2**63) <= keys[i] < 2**63]
