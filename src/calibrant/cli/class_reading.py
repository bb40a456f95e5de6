"""Files with a column of scores for each class, read for the commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.cli.class_columns import SHOWN, ColumnsByClass, are_special, assign, expand
from calibrant.cli.column_roles import likely_label
from calibrant.cli.console import tell
from calibrant.cli.sources import FileSource
from calibrant.data.distributions import are_distributions
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.validation import read_weight
from calibrant.engines.open_engine import Engine
from calibrant.engines.rows_of_classes import ColumnsRead, FileMatrix
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.maps import VectorMap


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
    if words:
        asked = expand(words, names, option="--score")
        found = assign(asked, fitted.classes, None, option="--score", fewest=1)
        by_class = dict(zip(found.classes, found.columns, strict=True))
        if len(by_class) != k:
            raise InputError(
                f"the columns must be those of the calibrator's classes, "
                f"{list(fitted.classes)[:20]}, but {list(found.classes)[:20]} came."
            )
        return ColumnsByClass(fitted.classes, tuple(by_class[label] for label in fitted.classes))
    known = fitted.provenance.get("score_columns")
    if not isinstance(known, (tuple, list)) or len(known) != k:
        example = " ".join(f"--score '{label}=COLUMN'" for label in fitted.classes[:SHOWN])
        raise InputError(
            f"{path} does not know the columns of scores. Name one for each class: {example}"
        )
    return ColumnsByClass(fitted.classes, tuple(map(str, known)))


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
