"""Files with the columns that the names of their folders hold, as SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from calibrant.engines.duckdb.source import Source, literal
from calibrant.engines.files.partitions import WHOLE, partitions_of
from calibrant.errors import InputError


def with_partitions(query: Callable[[str], list[tuple[Any, ...]]], source: Source) -> Source:
    """A file with the columns that its folders' names hold, where it has none of that name.

    A folder that says something else than the file's own column is an InputError: either may be
    meant. Values are text, whole numbers but for CSV files, whose columns are all text.
    """
    added: dict[str, str] = {}
    types = list(source.types)
    for name, value in partitions_of(source.path).items():
        if any(known.strip() == name.strip() for known in source.names):  # as columns are found
            _refuse_other(query, source, name, value)
            continue
        whole = value is not None and source.kind != "csv" and WHOLE.match(value)
        types.append("BIGINT" if whole else "VARCHAR")
        added[name] = f"{'NULL' if value is None else literal(value)}::{types[-1]}"
    return replace(
        source,
        names=(*source.names, *added),
        columns=(*source.columns, *added.values()),
        types=tuple(types),
        folders=len(added),
    )


def folder_values(source: Source) -> dict[str, str | int | None]:
    """The columns that only the folders' names hold, and their values."""
    own = len(source.names) - source.folders
    said = partitions_of(source.path)
    pairs = zip(source.names[own:], source.types[own:], strict=True)
    return {
        name: int(value) if kind == "BIGINT" and (value := said[name]) else said[name]
        for name, kind in pairs
    }


def _refuse_other(query: Callable[..., Any], source: Source, name: str, value: str | None) -> None:
    for place, known in enumerate(source.names):
        if known.strip() != name.strip():
            continue
        column = source.columns[place]
        found = f"({column} ->> '$')" if source.types[place] == "JSON" else f"({column})::VARCHAR"
        said = "NULL::VARCHAR" if value is None else literal(value)
        same = (
            f"coalesce({found}, '') = coalesce({said}, '') "
            f"OR coalesce(TRY_CAST({found} AS DOUBLE) = TRY_CAST({said} AS DOUBLE), false)"
        )
        first = query(f"SELECT {found} FROM {source.relation} WHERE NOT ({same}) LIMIT 1")
        if first:
            raise InputError(
                f"the column {name!r} of {source.path.name} must be what its folder says, "
                f"{name}={value}, but {str(first[0][0])[:40]!r} came: either may be meant. Rename "
                "the folder or the column."
            )
