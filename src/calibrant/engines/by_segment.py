"""A plan for each segment, as one expression.

The parameters of each segment's plan are joined by segment, the pieces by segment and cell. Plans
of the same form share a column for each parameter, so thousands of segments need no more joins than
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from calibrant.engines.expressions import FramePrinter
from calibrant.engines.frame_builder import FrameBuilder
from calibrant.plan.nodes import BySegment
from calibrant.plan.segment_places import column_steps
from calibrant.plan.stacked_plans import parameter_table, stacked

__all__ = ["SegmentColumn", "by_segment", "segment_place", "usable_keys"]


class SegmentColumn(NamedTuple):
    """A column of segments as text or whole numbers.

    Parameters
    ----------
    value : its values
    kind : str or int
    spelled : gives keys as the column spells them
    """

    value: nw.Expr
    kind: type
    spelled: Callable[[tuple[str | int, ...]], Sequence[Any]]


def by_segment(
    plan: BySegment, segments: Sequence[SegmentColumn], score: str, builder: FrameBuilder
) -> nw.Expr:
    """The plan as an expression of the column ``score`` and of those of segments."""
    keys: Sequence[Any] = range(len(plan.keys))
    segment, kind, spelled = segments[0]
    if len(segments) == 1:
        keys = spelled(plan.keys)
    else:
        segment, kind = segment_place(plan.paths, segments, builder), int
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


def segment_place(
    keys: Sequence[tuple[str | int, ...]],
    columns: Sequence[SegmentColumn],
    builder: FrameBuilder,
    *,
    whole_only: bool = False,
) -> nw.Expr:
    """With several columns: the place of each row's finest segment among the keys, NULL where none
    is known; or, if asked so, NULL unless all columns of it are."""
    before = place = nw.lit(None, nw.Int64())
    steps = column_steps(keys)
    for i, (column, step) in enumerate(zip(columns, steps, strict=False)):
        spelled = column.spelled(tuple(step.values))
        usable = usable_keys(spelled, column.kind)
        if not usable:
            return nw.lit(None, nw.Int64()) if whole_only else place
        own = [spelled[i] for i in usable]
        values = own if column.kind is str else np.array(own, dtype=np.int64)
        value = builder.look_up(column.value, values, {"n": np.array(usable)})["n"]
        pair = before * len(step.values) + value if i else value
        table = {"n": np.array(step.numbers), "place": np.array(step.places)}
        joined = builder.look_up(pair, np.array(step.pairs), table)
        before, found = joined["n"], joined["place"]
        if i and not whole_only:
            found = nw.when(~found.is_null()).then(found).otherwise(place)
        place = builder.keep(found)
    return place
