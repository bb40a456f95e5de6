"""A plan for each segment, as one expression of the score and of the columns of segments.

The parameters of each segment's plan are joined by segment, the pieces by segment and cell. Plans
of the same form share a column for each parameter, so thousands of segments need no more joins than
one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from calibrant.data.engine_frames import Column
from calibrant.engines.expressions import FramePrinter
from calibrant.engines.frame_builder import FrameBuilder
from calibrant.errors import InputError
from calibrant.maps import Map, Segmented
from calibrant.plan.nodes import BySegment
from calibrant.plan.segment_places import column_steps
from calibrant.plan.stacked_plans import parameter_table, stacked

Keys = tuple[str | int, ...]

#: whole numbers that may be too long for a 64-bit integer with a sign
LONG = (nw.UInt64, nw.Int128, nw.UInt128)


# --- the columns of segments ----------------------------------------------------------------------


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
    spelled: Callable[[Keys], Sequence[Any]]


def segment_columns(
    map_: Map, frame: nw.LazyFrame[Any], called: Mapping[str, str], names: Sequence[str]
) -> list[SegmentColumn]:
    """The columns of segments of a frame, in which they are ``called`` by plain names."""
    schema = frame.collect_schema()
    found = []
    for i, said in enumerate(names):
        column = called[said]
        kind = kind_of_segment(schema, column)
        check_keys(map_, i, kind, said)
        spelled: Callable[[Keys], Sequence[Any]] = tuple
        if schema[column] in LONG:
            kind, spelled = str, _as_text
        value = nw.col(column).cast(nw.String() if kind is str else nw.Int64())
        found.append(SegmentColumn(value, kind, spelled))
    return found


def _as_text(keys: Keys) -> list[str | None]:
    """Whole numbers as text; other keys are in no such column."""
    return [str(key) if isinstance(key, int) else None for key in keys]


def kind_of_segment(schema: nw.Schema, segment: str) -> type:
    """Which kind of key a segment column can hold."""
    kind = schema[segment]
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return str
    if kind.is_integer() or kind == nw.Boolean:
        return int
    raise InputError(
        f"segment column {segment!r} must be text or whole numbers, but its type is {kind}. Cast "
        "it to what the calibrator was fitted with."
    )


def check_keys(map_: Map, place: int, kind: type, segment: str) -> None:
    """Refuse a column of segments that can hold none of the known segments' values."""
    seen = map_.values(place) if isinstance(map_, Segmented) else ()
    if seen and not any(type(key) is kind for key in seen):
        are, came = ("whole numbers", "text") if kind is str else ("text", "whole numbers")
        raise InputError(
            f"the calibrator's segments are {are}, but column {segment!r} is {came}, so that no "
            "row would find its own. Cast the column."
        )


# --- the plan -------------------------------------------------------------------------------------


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
    used, values = usable_keys(keys, kind, np.flatnonzero(plan.shares > 0.0).tolist())
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


def usable_keys(
    keys: Sequence[Any], kind: type, some: Sequence[int] | None = None
) -> tuple[list[int], Column]:
    """The places of the keys that a column of str or int (64 bits) can hold, and these keys as
    values of the column; of all keys, or of those at some places."""
    known = [i for i in (range(len(keys)) if some is None else some) if type(keys[i]) is kind]
    places = [i for i in known if kind is str or -(2**63) <= keys[i] < 2**63]
    values = [keys[i] for i in places]
    return places, values if kind is str else np.array(values, dtype=np.int64)


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
        codes, known = usable_keys(column.spelled(tuple(step.values)), column.kind)
        if not codes:
            return nw.lit(None, nw.Int64()) if whole_only else place
        value = builder.look_up(column.value, known, {"n": np.array(codes)})["n"]
        pair = before * len(step.values) + value if i else value
        table = {"n": np.array(step.numbers), "place": np.array(step.places)}
        joined = builder.look_up(pair, np.array(step.pairs), table)
        before, found = joined["n"], joined["place"]
        if i and not whole_only:
            found = nw.when(~found.is_null()).then(found).otherwise(place)
        place = builder.keep(found)
    return place
