"""A plan per segment: a CASE; or, for many, a table of parameters and one of pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.export.sql.dialects import Dialect
from calibrant.export.sql.layout import case, inside, string
from calibrant.export.sql.overflow import guarded
from calibrant.export.sql.printer import SqlPrinter
from calibrant.plan.nodes import BySegment, uses
from calibrant.plan.stacked_plans import StackedPlans, parameter_table, stacked

__all__ = ["write_segmented"]


def write_segmented(plan: BySegment, segment: str, printer: SqlPrinter) -> str:
    """The plan of a score and of a column of segments as SQL."""
    used = np.flatnonzero(plan.shares > 0.0).tolist()
    common = guarded(plan.common.value, printer.dialect)
    if not used:
        return printer.write(common)
    is_text = plan.key_type("in a column of SQL") is str
    column = printer.dialect.key.format(segment) if is_text else segment
    if printer.writer.lookup:
        return _looked_up(plan, used, column, printer)
    dialect = printer.dialect
    own = [printer.write(guarded(plan.whole(i), dialect)) for i in used]
    branches = [(_literal(plan.keys[i], dialect), text) for i, text in zip(used, own, strict=True)]
    return case(branches, printer.write(common), operand=column)


def _literal(key: str | int, dialect: Dialect) -> str:
    return str(key) if isinstance(key, int) else string(key + dialect.key_end, dialect)


# --- many segments ------------------------------------------------------------------------------


def _looked_up(plan: BySegment, used: list[int], column: str, printer: SqlPrinter) -> str:
    """Plans of the same form share columns. The table says which form each segment has."""
    dialect = printer.dialect
    precise = replace(printer, relative=uses(plan.members)[plan.common] > 0)
    common = precise.write(guarded(plan.common.value, dialect))
    printer = printer.given(plan.common, common, printer.reach(plan.common))
    stacks = [
        StackedPlans(members, guarded(node, dialect))
        for members, node in stacked([plan.members[i] for i in used], shared=(plan.common,))
    ]
    keys = [plan.keys[i] for i in used]
    table, names = parameter_table(stacks, plan.shares[used])
    if len(stacks) == 1:
        del table["part"]
    if (table["share"] == 1.0).all():
        del table["share"]
    segments = np.array(keys) if isinstance(keys[0], int) else keys
    about = f"{len(used):,} segments: the number of each, and what its map is made of"
    columns: dict[str, Any] = {"segment": segments, **table}
    joined = printer.writer.join(about, columns, 1, {"segment": column})
    own = {parameter: joined[name] for parameter, name in names.items()}
    printer = replace(printer, columns=own, code=joined["code"])
    texts = [printer.write(node) for _, node in stacks]
    value = texts[0]
    if len(texts) > 1:
        parts = enumerate(texts[:-1])
        value = case([(f"{joined['part']} = {i}", text) for i, text in parts], texts[-1])
    if "share" in joined:
        rest = f"({dialect.number(1.0)} - {joined['share']})"
        mixed = ((joined["share"], value), (rest, common))
        value = "\n+ ".join(inside(f"{share} * (", text, ")") for share, text in mixed)
    return case([(f"{joined['code']} IS NULL", common)], value)
