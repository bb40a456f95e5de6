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

from calibrant.data.engine_frames import Column
from calibrant.engines.expressions import FramePrinter
from calibrant.engines.frame_builder import FrameBuilder
from calibrant.plan.nodes import BySegment
from calibrant.plan.segment_places import column_steps
from calibrant.plan.stacked_plans import parameter_table, stacked


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
    used, values = UsableKeys.of(keys, kind, np.flatnonzero(plan.shares > 0.0).tolist())
    if not used:
        return common
    stacks = stacked([plan.members[i] for i in used], shared=(plan.common,))
    table, names = parameter_table(stacks, plan.shares[used])
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


class UsableKeys(NamedTuple):
    """The places of the keys that a column can hold, and these keys as values of the column."""

    places: list[int]
    values: Column

    @classmethod
    def of(cls, keys: Sequence[Any], kind: type, some: Sequence[int] | None = None) -> UsableKeys:
        """Of all keys, or of those at some places; the column is of str, or of int (64 bits)."""
        known = [i for i in (range(len(keys)) if some is None else some) if type(keys[i]) is kind]
        places = [i for i in known if kind is str or -(2**63) <= keys[i] < 2**63]
        values = [keys[i] for i in places]
        return cls(places, values if kind is str else np.array(values, dtype=np.int64))


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
        usable = UsableKeys.of(column.spelled(tuple(step.values)), column.kind)
        if not usable.places:
            return nw.lit(None, nw.Int64()) if whole_only else place
        codes = {"n": np.array(usable.places)}
        value = builder.look_up(column.value, usable.values, codes)["n"]
        pair = before * len(step.values) + value if i else value
        table = {"n": np.array(step.numbers), "place": np.array(step.places)}
        joined = builder.look_up(pair, np.array(step.pairs), table)
        before, found = joined["n"], joined["place"]
        if i and not whole_only:
            found = nw.when(~found.is_null()).then(found).otherwise(place)
        place = builder.keep(found)
    return place
