"""Rows of several classes, read by DuckDB into memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.lazy_checks import MANY, BadRowsError, Names
from calibrant.data.validation import HEAVIEST
from calibrant.engines.duckdb.column_sql import text
from calibrant.engines.duckdb.diagnose import SUMS_TO_MEASURE, refuse_sums
from calibrant.engines.duckdb.file_rows import FileRows, look_at
from calibrant.engines.duckdb.session import Session
from calibrant.engines.duckdb.source import Source
from calibrant.engines.files.typed_features import typed_feature
from calibrant.engines.files.yes_no_words import Label
from calibrant.engines.rows_of_classes import ColumnsRead, refuse_many
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
) -> ClassRows:
    """The rows behind names and globs; ``wanted`` are columns that are known to be read."""
    known = [*wanted, label, *([weight] if weight else [])]
    return ClassRows(session, look_at(session, files, known), label, weight, role)


class ClassRows:
    """The rows of files where there are several classes, and what is asked of them.

    They have a column of scores for each class, or one of them and further columns.
    """

    def __init__(
        self, session: Session, sources: list[Source], label: str, weight: str | None, role: str
    ) -> None:
        self.session, self.sources = session, sources
        self.label, self.weight, self.role = label, weight, role
        for source in self.sources:
            source.find(self.label, "label")
            if self.weight:
                source.find(self.weight, "weight")
        self.rows = self._rows([label])  # any column: at first, labels are read alone

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the files' columns."""
        return self.sources[0].names

    def _rows(self, columns: Sequence[str]) -> FileRows:
        """The rows with some columns of scores, of all of which a row must have a value."""
        names = Names(columns[0], self.label, self.weight)
        return FileRows(self.session, self.sources, names, self.role, others=columns)

    def labels(self) -> dict[Any, Label]:
        """The different labels of all rows, by their spellings."""
        values = self.rows.labels(None)
        if not values:
            self.rows.refuse_labels()
        if len(values) >= MANY:
            raise InputError(
                f"label column {self.label!r} must hold fewer than {MANY:,} classes, but more "
                "came. Is it the right column?"
            )
        return values

    def read(
        self, columns: Sequence[str], codes: Mapping[Any, int], features: Sequence[str] = ()
    ) -> ColumnsRead:
        """Some columns of numbers, the codes of the labels by their spellings, and other columns as
        they are; an InputError that says what is wrong with which rows."""
        self.rows = self._rows(columns)
        self.rows.respell()
        try:
            return self.session.call(lambda: self._read(columns, codes, features))
        except BadRowsError as wrong:
            said = wrong.__cause__ or "some labels are not among the classes"
        self.rows.refuse_numbers()
        self.rows.refuse_missing_labels()
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
        numbers = (*columns, self.weight) if self.weight else columns
        asked = [self.rows.numbers.sql(source, name) for name in numbers]
        asked.append(self.rows.label(source))
        asked += [text(source, source.find(name, "feature")) for name in features]
        return self.rows.selected(source, {f"c{i}": sql for i, sql in enumerate(asked)})

    def refuse_sums(self, columns: Sequence[str]) -> None:
        """An InputError for rows that are no distributions, when there are some."""
        refuse_sums(self.session, self.sources, columns, role=self.role, advice=SUMS_TO_MEASURE)

    def facts(self, rows: int) -> dict[str, Any]:
        """What is worth remembering of the files."""
        known = self.rows.facts(rows)
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
