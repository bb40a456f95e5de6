"""Parquet files with types that DuckDB does not have: Arrow copies them, DuckDB adds the column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from calibrant.engines.duckdb.session import Source, folder_values
from calibrant.errors import InputError, import_extra

#: rows that are copied together
BATCH = 122_880


def changed_types(path: Path, *, lost: bool = False) -> list[str]:
    """Columns of a Parquet file that DuckDB would change, each with its type.

    It has no decimals of more than 38 digits, no durations, no time zone of a column, and no
    structs with names that differ in case or are empty. ``lost``: only those whose values would
    not be the same.
    """
    types = import_extra("pyarrow", extra="cli").types
    schema = import_extra("pyarrow.parquet", extra="cli").read_schema(path)
    return [f"{f.name!r} ({f.type})" for f in schema if _changes(types, f.type, lost)]


def _changes(types: Any, kind: Any, lost: bool) -> bool:
    if types.is_decimal256(kind):
        return True
    if types.is_duration(kind):
        return not lost
    if types.is_timestamp(kind):
        return not lost and kind.tz not in (None, "UTC")
    if types.is_dictionary(kind):
        return _changes(types, kind.value_type, lost)
    inner = [kind.field(i) for i in range(kind.num_fields)]
    if types.is_struct(kind) and len({f.name.lower() for f in inner} - {""}) < len(inner):
        return True
    return any(_changes(types, f.type, lost) for f in inner)


def copy_beside(
    sources: Sequence[Source], names: list[str], added: list[str], new: Path, out: Path
) -> None:
    """Copy Parquet files to ``out`` as Arrow has them, with the columns of the file ``new``.

    Types, time zones and what else the first file's schema tells of its columns stay. Folders'
    names give columns of text or whole numbers.
    """
    pyarrow = import_extra("pyarrow", extra="cli")
    parquet = import_extra("pyarrow.parquet", extra="cli")
    first = parquet.read_schema(sources[0].path)
    known = {f.name: f for f in first}
    known |= {name: pyarrow.field(name, pyarrow.float64()) for name in added}
    said = [folder_values(source) for source in sources]
    for name in said[0]:
        words = any(isinstance(values[name], str) for values in said)
        known[name] = pyarrow.field(name, pyarrow.string() if words else pyarrow.int64())
    schema = pyarrow.schema([known[name] for name in names], metadata=first.metadata)
    with (
        parquet.ParquetFile(new) as beside,
        parquet.ParquetWriter(out, schema, compression="zstd") as writer,
    ):
        probabilities = _rechunked(beside, pyarrow)
        for source, folders in zip(sources, said, strict=True):
            if not parquet.read_schema(source.path).equals(first):
                raise InputError(
                    f"{source.path.name} must have the same columns, types and order as "
                    f"{sources[0].path.name}, since some of its types are rare. Apply one by one."
                )
            with parquet.ParquetFile(source.path) as file:
                for batch in file.iter_batches(batch_size=BATCH):
                    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                    for name, value in folders.items():
                        one = pyarrow.scalar(value).cast(known[name].type)
                        columns[name] = pyarrow.repeat(one, batch.num_rows)
                    taken = probabilities(batch.num_rows)
                    columns |= dict(zip(added, taken, strict=True))
                    listed = [columns[name] for name in names]
                    writer.write_batch(pyarrow.RecordBatch.from_arrays(listed, schema=schema))


def _rechunked(file: Any, pyarrow: Any) -> Callable[[int], list[Any]]:
    """The next so many values of each of a file's columns."""
    batches: Iterator[Any] = file.iter_batches(batch_size=BATCH)
    held = pyarrow.RecordBatch.from_pylist([], file.schema_arrow)

    def take(count: int) -> list[Any]:
        nonlocal held
        parts = [held]
        while sum(part.num_rows for part in parts) < count:
            parts.append(next(batches))
        whole = pyarrow.Table.from_batches(parts).combine_chunks()
        joined = next(iter(whole.to_batches()), parts[0])
        held = joined.slice(count)
        return list(joined.slice(0, count).columns)

    return take
