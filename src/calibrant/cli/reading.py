"""Files with one column of scores, read for the commands: as a table, by segments, or by rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from calibrant.cli.column_roles import complete_roles, note_positive
from calibrant.cli.sources import FileSource
from calibrant.data.cells import cell_facts
from calibrant.data.lazy_checks import CellsOption, Names
from calibrant.data.lazy_rows import LazyRows
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows
from calibrant.engines.files.spelled_labels import classes_of
from calibrant.engines.open_engine import Engine
from calibrant.engines.rows_of_classes import FileMatrix
from calibrant.engines.rows_of_files import FileTable, RowsOfFiles, read_rows
from calibrant.errors import ParameterError
from calibrant.estimators.saved_labels import label_array
from calibrant.metrics import Evaluation
from calibrant.metrics.all_measures import Records
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.evaluating_lazy import evaluate_rows
from calibrant.metrics.intervals import IntervalOptions
from calibrant.metrics.lazy_sums import OutsideError


def file_facts(read: FileTable | FileMatrix) -> dict[str, Any]:
    """What is worth knowing of files and their labels, for JSON."""
    positive = {"pos_label": read.pos_label} if isinstance(read, FileTable) else {}
    return {**read.facts, "classes": list(read.classes), **positive}


class FileSegments(NamedTuple):
    """The table of each segment, and that of all rows."""

    by_key: dict[Any, ScoreTable]
    read: FileTable


class FileFeatures(NamedTuple):
    """The rows of files, their columns beside the score, and the table of the scores."""

    rows: Rows
    y: Any
    features: Any
    read: FileTable


@contextmanager
def opened(source: FileSource, title: str = "reading") -> Iterator[tuple[Engine, FileSource]]:
    """An engine for one job, and the source with guesses for the columns that were not named."""
    with source.engine(title) as engine:
        yield engine, complete_roles(engine, source)


def read_table(
    engine: Engine, source: FileSource, cells: CellsOption = "auto", raw: str | None = None
) -> FileTable:
    """The score table of files; rows must have a value in the column ``raw``, too."""
    read = read_rows(_rows(engine, source, raw), cells=cells, pos_label=source.positive)
    note_positive(engine, source, read)
    return read._replace(facts=read.facts | source.facts)


def read_before_and_after(
    engine: Engine, source: FileSource
) -> tuple[FileTable, ScoreTable | None]:
    """The table of a column of probabilities and, if asked for, that of the scores behind it."""
    read = read_table(engine, source, raw=source.before)
    if source.before is None:
        return read, None
    before = replace(source, words=source.raw, option="--score")
    return read, read_table(engine, before, raw=source.score).table


def read_segments(engine: Engine, source: FileSource, cells: CellsOption) -> FileSegments:
    """The tables of segments, by one GROUP BY."""
    rows = _rows(engine, source)
    grouped, coding = rows.ask(lambda lazy: lazy.grouped(cells), source.positive)
    tables = grouped.tables()
    whole = ScoreTable.gather(tables.values())
    read = FileTable(whole, coding.classes, coding.pos_label, {})
    note_positive(engine, source, read)
    if source.probabilities and not whole.looks_like_probabilities:
        rows.refuse_outside()
    facts = rows.facts(grouped.rows) | source.facts | cell_facts(whole)
    return FileSegments(tables, read._replace(facts=facts))


def read_features(
    engine: Engine, source: FileSource, features: Sequence[str], *, learn: bool = False
) -> FileFeatures:
    """The rows of files, in memory. To ``learn`` from, a column of another role is refused."""
    features = list(dict.fromkeys(features))
    names = Names(source.score, source.label, source.weight)
    twice = [name for name in features if learn and name in names]
    if twice:
        raise ParameterError(f"--features must be other columns, but {twice[0]!r} has a role.")
    rows = engine.feature_rows(source.files, features, names, source.role)
    spelled = rows.labels()
    coding = classes_of(spelled, source.label, source.positive)
    classes, pos_label = list(coding.classes), coding.pos_label
    if learn:
        note_positive(engine, source, coding)
    codes = {word: classes.index(label) for word, label in spelled.items()}
    found = rows.read([source.score], codes, features)
    positive = found.codes == classes.index(pos_label)
    scores, labels = found.numbers[:, 0], label_array(coding.classes)
    each = Rows(scores, positive, found.weight, labels, pos_label)
    columns = {"score_column": source.score, "feature_columns": features}
    facts = rows.facts(len(scores)) | columns | source.facts
    table = FileTable(ScoreTable.from_rows(each), coding.classes, pos_label, facts)
    return FileFeatures(each, labels[found.codes], found.features, table)


def measure(
    engine: Engine,
    source: FileSource,
    *,
    cells: CellsOption,
    bins: Bins,
    intervals: IntervalOptions | None,
    records: Records | None = None,
) -> tuple[Evaluation, dict[str, Any]]:
    """The measures of a column of probabilities, and what is worth knowing of the files."""
    asked = _rows(engine, source, source.before)

    def ask(rows: LazyRows) -> tuple[Evaluation, int]:
        found = evaluate_rows(*rows.apart(), bins, intervals, cells, records)
        return found, rows.look().rows if source.weight else round(found.weight)

    try:
        (evaluation, count), coding = asked.ask(ask, source.positive)
    except OutsideError:
        asked.refuse_outside()  # which row it is, if that can be told
        raise
    note_positive(engine, source, coding)
    labels = {"classes": list(coding.classes), "pos_label": coding.pos_label}
    return evaluation, {**asked.facts(count), **source.facts, **labels}


def _rows(engine: Engine, source: FileSource, raw: str | None = None) -> RowsOfFiles:
    """The rows of files, whose scores must be probabilities if the source says so."""
    names = Names(source.score, source.label, source.weight, source.segment, raw)
    return engine.rows(source.files, names, source.role)
