"""Rows of several classes, read by DuckDB into memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.arrays import Array, Index
from calibrant.data.lazy_checks import MANY, BadRowsError, Names
from calibrant.data.validation import HEAVIEST
from calibrant.engines.duckdb.column_sql import number, spelling, text
from calibrant.engines.duckdb.diagnose_sums import SUMS_TO_MEASURE, refuse_sums
from calibrant.engines.duckdb.file_rows import FileRows, look_at
from calibrant.engines.duckdb.find_spelling import find_spelling
from calibrant.engines.duckdb.session import Session
from calibrant.engines.duckdb.source import Source
from calibrant.engines.files.number_spelling import NumberSpelling
from calibrant.engines.files.typed_features import typed_feature
from calibrant.engines.files.yes_no_words import Label
from calibrant.engines.rows_of_classes import ClassRows, ColumnsRead, refuse_many
from calibrant.errors import InputError, import_extra

#: rows that are fetched together
BATCH = 100_000


def class_rows(
    session: Session,
    files: Sequence[str | os.PathLike[str]],
    wanted: Sequence[str],
    label: str,
    weight: str | None,
    role: str,
) -> MatrixRows:
    """The rows behind names and globs; ``wanted`` are columns that are known to be read."""
    known = [*wanted, label, *([weight] if weight else [])]
    return MatrixRows(session, look_at(session, files, known), label, weight, role)


@dataclass
class MatrixRows(ClassRows):
    """The rows of files with several columns of scores, as DuckDB reads them."""

    session: Session
    sources: list[Source]
    label: str
    weight: str | None
    role: str
    written: dict[str, NumberSpelling | None] = field(default_factory=dict)
    dropped: int = 0
    read_columns: Sequence[str] = ()

    def __post_init__(self) -> None:
        for source in self.sources:
            source.find(self.label, "label")
            if self.weight:
                source.find(self.weight, "weight")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.sources[0].names

    def _one(self, column: str, columns: Sequence[str] = ()) -> FileRows:
        """The same rows with one column of scores, which knows labels and refusals.

        ``columns`` are all columns of scores of which a row must have a value.
        """
        names = Names(column, self.label, self.weight)
        one = FileRows(self.session, self.sources, names, self.role, others=columns)
        one.written |= {name: how for name, how in self.written.items() if name in one.written}
        one.dropped = self.dropped
        return one

    def labels(self) -> dict[Any, Label]:
        one = self._one(self.label)  # any column: labels are read alone
        values = one.labels(None)
        if not values:
            one.refuse_labels()
        if len(values) >= MANY:
            raise InputError(
                f"label column {self.label!r} must hold fewer than {MANY:,} classes, but more "
                "came. Is it the right column?"
            )
        return values

    def read(
        self, columns: Sequence[str], codes: Mapping[Any, int], features: Sequence[str] = ()
    ) -> ColumnsRead:
        self._drop(columns)
        self.read_columns = columns
        try:
            return self.session.call(lambda: self._read(columns, codes, features))
        except BadRowsError as wrong:
            said = wrong.__cause__ or "some labels are not among the classes"
        for column in columns:
            self._one(column, columns).refuse_numbers()
        self._one(columns[0], columns).refuse_missing_labels()
        raise InputError(f"the rows cannot be read: {said}.")

    def _read(
        self, columns: Sequence[str], codes: Mapping[Any, int], features: Sequence[str]
    ) -> ColumnsRead:
        parts = " UNION ALL ".join(self._part(source, columns, features) for source in self.sources)
        reader = self.session.relation(parts).to_arrow_reader(BATCH)
        numbers, found, weights, rows = [], [], [], 0
        others: dict[str, list[Any]] = {name: [] for name in features}
        try:
            while (batch := _next(reader)) is not None:
                last = len(batch.columns) - len(others)
                for listed, column in zip(others.values(), batch.columns[last:], strict=True):
                    listed.append(column)
                *scores, spelled = batch.columns[:last]
                weight = _numbers([scores.pop()])[:, 0] if self.weight else None
                numbers.append(_numbers(scores))
                found.append(_coded(spelled, codes))
                rows += len(spelled)
                refuse_many(rows, len(columns) + len(others))
                if weight is not None:
                    weights.append(_weights(weight))
        finally:
            reader.close()
        if not rows:
            raise BadRowsError
        weight = np.concatenate(weights) if weights else None
        frame = self._frame(others) if others else None
        return ColumnsRead(np.concatenate(numbers), np.concatenate(found), weight, frame)

    def _frame(self, others: Mapping[str, list[Any]]) -> Any:
        spelled = self.session.reading.spelling
        table = import_extra("pyarrow", extra="cli").table
        return table({name: typed_feature(parts, name, spelled) for name, parts in others.items()})

    def _part(self, source: Source, columns: Sequence[str], features: Sequence[str]) -> str:
        asked = [self._number(source, name, self.role) for name in columns]
        if self.weight:
            asked.append(self._number(source, self.weight, "weight"))
        asked.append(spelling(source, source.find(self.label, "label")))
        asked += [text(source, source.find(name, "feature")) for name in features]
        listed = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(asked))
        drop = self.session.reading.drop
        kept = f" WHERE NOT ({self._one(columns[0], columns).lacks(source)})" if drop else ""
        return f"SELECT {listed} FROM {source.relation}{kept}"

    def _number(self, source: Source, column: str, role: str) -> str:
        if column not in self.written:
            self.written[column] = find_spelling(self.session, self.sources, column, role)
        return number(source, source.find(column, role), role, self.written[column])

    def _drop(self, columns: Sequence[str]) -> None:
        """Count the rows that are left out because something is missing, if that was asked for."""
        if self.session.reading.drop:
            self.dropped = self._one(columns[0], columns).lacking()

    def refuse_sums(self, columns: Sequence[str]) -> None:
        refuse_sums(self.session, self.sources, columns, role=self.role, advice=SUMS_TO_MEASURE)

    def facts(self, rows: int) -> dict[str, Any]:
        known = self._one(self.read_columns[0], self.read_columns).facts(rows)
        del known["score_column"]
        return known


def _next(reader: Any) -> Any:
    """The next rows; None at the end."""
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except Exception as error:  # Arrow's words for what the engine says better
        raise BadRowsError from error


def _numbers(columns: Sequence[Any]) -> Array:
    """Arrow columns side by side; BadRowsError where one holds no finite number."""
    made = np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
    if not np.isfinite(made).all():
        raise BadRowsError
    return made.astype(np.float64, copy=False)


def _weights(weight: Array) -> Array:
    """Weights; BadRowsError where one is negative or too heavy."""
    if ((weight < 0.0) | (weight > HEAVIEST)).any():
        raise BadRowsError
    return weight


def _coded(spelled: Any, codes: Mapping[Any, int]) -> Index:
    """The codes of labels; BadRowsError where one is missing or not known."""
    if spelled.null_count:
        raise BadRowsError
    words = spelled.dictionary_encode()
    known = [codes.get(word, -1) for word in words.dictionary.to_pylist()]
    if -1 in known:
        raise BadRowsError
    places: Index = np.asarray(known, dtype=np.intp)[words.indices.to_numpy()]
    return places
