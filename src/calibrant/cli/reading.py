"""Files with one column of scores, read for the commands: as a table, by segments, or by rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrant.cli.columns import complete_roles, likely_label, note_positive
from calibrant.cli.console import tell
from calibrant.cli.sources import (
    SHOWN,
    ColumnsByClass,
    FileSource,
    Segment,
    are_special,
    assign,
    expand,
    in_order,
    read_segment,
)
from calibrant.data.door import Rows, are_distributions, read_weight
from calibrant.data.lazy import CellsOption, LazyRows, Names
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable, cell_facts
from calibrant.engines.apply import RowFitted
from calibrant.engines.files.files import KINDS, is_calibrator
from calibrant.engines.files.spelling import classes_of
from calibrant.engines.open_engine import Engine
from calibrant.engines.rows import ColumnsRead, FileMatrix, FileTable, RowsOfFiles, read_rows
from calibrant.errors import InputError, ParameterError, quoted
from calibrant.fitting.files import load
from calibrant.fitting.fitted import Fitted, label_array
from calibrant.metrics.cells import Bins
from calibrant.metrics.evaluating import Evaluation, Records, evaluate_rows
from calibrant.metrics.facts import OutsideError
from calibrant.metrics.intervals import IntervalOptions
from calibrant.outputs import is_still, try_lock
from calibrant.rules.base import Map, VectorMap


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
        found = evaluate_rows(*rows.score_and_raw(), bins, intervals, cells, records)
        return found, rows.extent()[0] if source.weight else round(found.weight)

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


# --- One process at a time on a file that is read, changed and written again ----------------------


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Keep other processes from the same work on a file; an InputError while one is at it.

    The lock is the system's own, on a file beside the state that is removed at the end. It goes
    with its process, so that a job that was killed keeps nobody out.
    """
    beside = state.with_name(f"{state.name}.lock")
    with open(os.open(beside, os.O_CREAT | os.O_RDWR, 0o600), "rb+") as stream:
        # a file system without locks keeps nobody out
        if try_lock(stream.fileno()) is False or not is_still(beside, stream.fileno()):
            raise InputError(
                f"only one command at a time may work on {state}, but another one does now. "
                "Nothing was changed: run this one again when that one is done."
            )
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file; an old one keeps nobody out
                beside.unlink()


# --------------------------------------------------------------------------------------------------
# Calibrators that commands are given as files: what people name in their place, and the columns
#
# that they were fitted to.


def load_any(path: Path) -> Fitted:
    """A calibrator of any kind from its file; files of data are told as such."""
    if path.is_dir():
        raise InputError(f"a calibrator must be a file, but {path} is a folder.")
    if (
        path.suffix.lower() in KINDS.keys() - {".json"}
        and path.exists()
        and not is_calibrator(path)
    ):
        raise InputError(
            f"a calibrator must be the JSON file that calibrant fit writes, but {path} looks like "
            "a file of data."
        )
    return load(path)


def load_map(path: Path, *, by_row: bool = False) -> Fitted:
    """A calibrator of scores from its file; with ``by_row`` also one of trees on other columns."""
    loaded = load_any(path)
    if isinstance(loaded.rule, Map):
        return loaded
    fitted = RowFitted.of(loaded) if by_row else None
    if fitted is None:
        raise InputError(
            f"{path} holds {loaded.method}, which needs more of each row than its score. Apply it "
            "in Python: calibrant.load(...).predict_proba(scores, ...)."
        )
    return fitted


def refuse_swapped(calibrator: Path | None, files: Sequence[str], order: str) -> None:
    """Refuse a calibrator among the files of data, unless its own place is taken by another one.

    ``order`` is the command as it should be, with ``{calibrator}`` and ``{files}`` in it.
    """
    found = [name for name in files if is_calibrator(name)]
    if not found or (calibrator is not None and is_calibrator(calibrator)):
        return
    data = [name for name in files if name not in found]
    data += [] if calibrator is None else [str(calibrator)]
    came = f", and {data[0]} does not" if data else ""
    meant = order.format(
        calibrator=quoted(found[0]), files=" ".join(map(quoted, data)) if data else "FILE"
    )
    raise InputError(f"{found[0]} looks like a calibrator{came}. Did you mean: calibrant {meant}")


def score_column(fitted: Fitted, asked: Sequence[str]) -> str:
    """The one column of scores: as asked for, or as in the fit; "" where neither says it."""
    if len(asked) > 1:
        raise InputError(
            f"this calibrator reads one column of scores, but {len(asked)} were named."
        )
    known = asked[0] if asked else fitted.provenance.get("score_column")
    return known if isinstance(known, str) else ""


def segment_column(fitted: Fitted, asked: list[str] | None) -> Segment:
    """The columns of segments: as asked for, or as in the fit; None for a calibrator without."""
    if asked or fitted.map.segments is None:
        return read_segment(asked)
    known = fitted.provenance.get("segment_column")
    if isinstance(known, tuple) and all(isinstance(name, str) for name in known):
        return known
    if not isinstance(known, str):
        raise InputError(
            "the calibrator has a map for each segment, but does not know their column. Name it "
            "with --segment COL, several from coarse to fine."
        )
    return known


# --- Files with a column of scores for each class, read for the commands --------------------------


def fitted_columns(
    fitted: Fitted, words: Sequence[str], names: Sequence[str], path: Path
) -> ColumnsByClass:
    """The columns that a calibrator of several classes reads: as asked for, or as in the fit."""
    k = fitted.map.n_columns if isinstance(fitted.map, VectorMap) else 1
    if k != len(fitted.classes):
        raise InputError(
            f"{path} reads {k} columns, which are no scores of its {len(fitted.classes)} classes. "
            "Apply it in Python: calibrant.load(...).predict_proba(scores)."
        )
    kept = fitted.provenance.get("score_columns")
    known = tuple(map(str, kept)) if isinstance(kept, (tuple, list)) and len(kept) == k else ()
    asked = expand(words, names, option="--score")
    plain = [one.column for one in asked if one.said is None]
    as_in_fit = sorted(plain) == sorted(known) and in_order(plain, fitted.classes) is None
    if words and not as_in_fit:
        found = assign(asked, fitted.classes, None, option="--score", fewest=1)
        by_class = dict(zip(found.classes, found.columns, strict=True))
        if len(by_class) != k:
            raise InputError(
                f"the columns must be those of the calibrator's classes, "
                f"{list(fitted.classes)[:20]}, but {list(found.classes)[:20]} came."
            )
        return ColumnsByClass(fitted.classes, tuple(by_class[label] for label in fitted.classes))
    if not known:
        example = " ".join(f"--score '{label}=COLUMN'" for label in fitted.classes[:SHOWN])
        raise InputError(
            f"{path} does not know the columns of scores. Name one for each class: {example}"
        )
    return ColumnsByClass(fitted.classes, known)


def read_matrix(source: FileSource, fitted: tuple[Fitted, Path] | None = None) -> FileMatrix:
    """The scores of several classes from files; which column is which is said, unless all is quiet.

    The classes are those of the labels, or of a calibrator, which comes with the name of its file.
    """
    with source.engine() as engine:
        found = _read(engine, source, fitted)
    if not source.quiet:
        columns = ColumnsByClass(found.classes, tuple(found.facts["score_columns"]))
        guessed = "" if source.label else found.facts["label_column"]
        tell(columns.line(source.option, guessed))
    return found


def _read(engine: Engine, source: FileSource, fitted: tuple[Fitted, Path] | None) -> FileMatrix:
    known = () if fitted is None else fitted[0].provenance.get("score_columns", ())
    label = source.label or likely_label(engine, source, known)
    wanted = [word for word in (*source.words, *source.raw) if not are_special([word])]
    rows = engine.class_rows(source.files, wanted, label, source.weight, source.role)
    labels, taken = rows.labels(), (label, source.weight)
    asked = expand(source.words, rows.columns, option=source.option, taken=taken)
    if label in [one.column for one in asked]:
        raise InputError(
            f"score and label must be different columns, but both are {label!r}. Name the "
            "column that holds each."
        )
    if fitted is None:
        found = assign(asked, list(labels.values()), label, option=source.option)
    else:
        found = fitted_columns(fitted[0], source.words, rows.columns, fitted[1])
    classes, k = found.classes, len(found.classes)
    codes = {word: _code(one, classes, label) for word, one in labels.items()}
    wanted = list(found.columns)
    if source.raw:
        before = expand(source.raw, rows.columns, option="--raw", taken=taken)
        wanted += assign(before, classes, label, option="--raw").columns
    read = rows.read(wanted, codes)
    matrix = _matrix(read, slice(0, k))
    if source.probabilities and not are_distributions(matrix.scores):
        rows.refuse_sums(found.columns)
    facts = rows.facts(len(read.codes)) | {"score_columns": list(found.columns)}
    facts |= {} if source.label else {"guessed": ["label"]}
    raw = _matrix(read, slice(k, 2 * k)) if source.raw else None
    return FileMatrix(matrix, classes, facts, raw)


def _code(label: Any, classes: Sequence[Any], column: str) -> int:
    """The place of a label: 1 in one file may be 1.0 in another."""
    for place, known in enumerate(classes):
        if known == label or str(known) == str(label):
            return place
    raise InputError(
        f"label column {column!r} must hold only the classes {list(classes)[:20]}, but {label!r} "
        "came. Correct those rows, or fit anew with a column for that class."
    )


def _matrix(found: ColumnsRead, columns: slice) -> ScoreMatrix:
    """Some of the columns; rows of weight zero are absent."""
    scores = np.ascontiguousarray(found.numbers[:, columns])
    weight = read_weight(found.weight, len(scores))
    if weight is None or weight.all():
        return ScoreMatrix(scores, found.codes, weight)
    kept = weight > 0
    return ScoreMatrix(scores[kept], found.codes[kept], weight[kept])
