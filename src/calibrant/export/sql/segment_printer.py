"""A plan per segment: a CASE; or, for many, a table of parameters and one of pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.export.sql.dialects import Dialect
from calibrant.export.sql.layout import case, inside, string
from calibrant.export.sql.overflow import guarded
from calibrant.export.sql.printer import SqlPrinter
from calibrant.plan.nodes import BySegment, uses
from calibrant.plan.stacked_plans import StackedPlans, parameter_table, stacked


def write_segmented(plan: BySegment, segments: Sequence[str], printer: SqlPrinter) -> str:
    """The plan of a score and of columns of segments as SQL."""
    used = np.flatnonzero(plan.shares > 0.0).tolist()
    common = guarded(plan.common.value, printer.dialect)
    if not used:
        return printer.write(common)
    columns = [_comparable(plan, i, name, printer.dialect) for i, name in enumerate(segments)]
    if printer.writer.lookup:
        return _looked_up(plan, used, columns, printer)
    dialect = printer.dialect
    own = [printer.write(guarded(plan.whole(i), dialect)) for i in used]
    if len(columns) == 1:
        keys = [_literal(plan.keys[i], dialect) for i in used]
        return case(list(zip(keys, own, strict=True)), printer.write(common), operand=columns[0])
    branches = [(plan.paths[i], text) for i, text in zip(used, own, strict=True)]
    finest_first = sorted(branches, key=lambda branch: -len(branch[0]))
    conditions = [(_condition(path, columns, dialect), text) for path, text in finest_first]
    return case(conditions, printer.write(common))


def _comparable(plan: BySegment, column: int, name: str, dialect: Dialect) -> str:
    """A column of segments as SQL that is compared with the keys."""
    is_text = plan.key_type("in a column of SQL", column) is str
    return dialect.key.format(name) if is_text else name


def _condition(path: Sequence[str | int], columns: Sequence[str], dialect: Dialect) -> str:
    pairs = zip(columns, path, strict=False)  # a coarse segment has no value in the last columns
    return " AND ".join(f"{column} = {_literal(key, dialect)}" for column, key in pairs)


def _literal(key: str | int, dialect: Dialect) -> str:
    return str(key) if isinstance(key, int) else string(key + dialect.key_end, dialect)


# --- many segments ------------------------------------------------------------------------------


def _place(
    plan: BySegment, used: list[int], columns: Sequence[str], printer: SqlPrinter
) -> tuple[Any, str]:
    """The values that tell segments apart, and the SQL that gives the value of a row.

    With several columns values are numbers: tables give that of the finest segment that is known.
    """
    if len(columns) == 1:
        keys = [plan.keys[i] for i in used]
        return np.array(keys) if isinstance(keys[0], int) else keys, columns[0]
    found: list[str] = []
    for size in range(len(columns), 0, -1):
        here = [n for n, i in enumerate(used) if len(plan.paths[i]) == size]
        if here:
            table: dict[str, Any] = {}
            for j in range(size):
                values = [plan.paths[used[n]][j] for n in here]
                whole = isinstance(values[0], int)
                table[plan.column_names[j]] = np.array(values) if whole else values
            equal = dict(zip(table, columns, strict=False))
            about = f"{len(here):,} segments of {size} column{'s' * (size > 1)}: the number of each"
            joined = printer.writer.join(about, {**table, "place": np.array(here)}, equal)
            found.append(joined["place"])
    place = found[0] if len(found) == 1 else f"COALESCE({', '.join(found)})"
    return np.arange(len(used)), place


def _looked_up(
    plan: BySegment, used: list[int], columns: Sequence[str], printer: SqlPrinter
) -> str:
    """Plans of the same form share columns. The table says which form each segment has."""
    dialect = printer.dialect
    precise = replace(printer, relative=uses(plan.members)[plan.common] > 0)
    common = precise.write(guarded(plan.common.value, dialect))
    printer = printer.given(plan.common, common, printer.reach(plan.common))
    stacks = [
        StackedPlans(members, guarded(node, dialect))
        for members, node in stacked([plan.members[i] for i in used], shared=(plan.common,))
    ]
    table, names = parameter_table(stacks, plan.shares[used])
    if len(stacks) == 1:
        del table["part"]
    if (table["share"] == 1.0).all():
        del table["share"]
    segments, place = _place(plan, used, columns, printer)
    about = f"{len(used):,} segments: the number of each, and what its map is made of"
    rows: dict[str, Any] = {"segment": segments, **table}
    joined = printer.writer.join(about, rows, {"segment": place})
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
