"""Files with a column of scores for each class, read for the commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant.cli.class_columns import SHOWN, ColumnsByClass, Files, are_special, assign, expand
from calibrant.cli.console import tell
from calibrant.cli.options import EngineOptions, engine_for
from calibrant.data.distributions import are_distributions
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.validation import read_weight
from calibrant.engines.rows_of_classes import ColumnsRead, FileMatrix
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.maps import VectorMap

if TYPE_CHECKING:
    from calibrant.engines.open_engine import Engine


class ClassRoles(NamedTuple):
    """The columns to read: words for those of the scores, and the names of the others.

    ``option`` is the one that the words came by. Without a name the labels are looked for.
    """

    scores: Sequence[str]
    label: str = ""
    weight: str | None = None
    raw: Sequence[str] = ()
    option: str = "--score"


# --- columns ------------------------------------------------------------------------------------


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


def read(
    engine: Engine,
    files: Files,
    roles: ClassRoles,
    *,
    probabilities: bool = False,
    fitted: tuple[Fitted, Path] | None = None,
) -> tuple[FileMatrix, ColumnsByClass]:
    """The scores of several classes from files, and which column is which.

    The classes are those of the labels, or of a calibrator, which comes with the name of its file.
    """
    role = "probability" if probabilities else "score"
    guessed = not roles.label
    if guessed:
        from calibrant.cli.column_roles import likely_label

        known = () if fitted is None else fitted[0].provenance.get("score_columns", ())
        roles = roles._replace(label=likely_label(engine, files, roles, known))
    wanted = [word for word in (*roles.scores, *roles.raw) if not are_special([word])]
    rows = engine.class_rows(files, wanted, roles.label, roles.weight, role)
    labels, taken = rows.labels(), (roles.label, roles.weight)
    asked = expand(roles.scores, rows.columns, option=roles.option, taken=taken)
    if roles.label in [one.column for one in asked]:
        raise InputError(
            f"score and label must be different columns, but both are {roles.label!r}. Name the "
            "column that holds each."
        )
    if fitted is None:
        known = assign(asked, list(labels.values()), roles.label, option=roles.option)
    else:
        known = fitted_columns(fitted[0], roles.scores, rows.columns, fitted[1])
    codes = {word: _code(one, known.classes, roles.label) for word, one in labels.items()}
    wanted = list(known.columns)
    if roles.raw:
        before = expand(roles.raw, rows.columns, option="--raw", taken=taken)
        wanted += assign(before, known.classes, roles.label, option="--raw").columns
    found = rows.read(wanted, codes)
    k = len(known.classes)
    matrix = _matrix(found, slice(0, k))
    if probabilities and not are_distributions(matrix.scores):
        rows.refuse_sums(known.columns)
    facts = rows.facts(len(found.codes)) | {"score_columns": list(known.columns)}
    facts |= {"guessed": ["label"]} if guessed else {}
    raw = _matrix(found, slice(k, 2 * k)) if roles.raw else None
    return FileMatrix(matrix, known.classes, facts, raw), known


def _code(label: Any, classes: Sequence[Any], column: str) -> int:
    """The place of a label: 1 in one file may be 1.0 in another."""
    for place, known in enumerate(classes):
        if known == label or str(known) == str(label):
            return place
    raise InputError(
        f"label column {column!r} must hold only the classes {list(classes)[:20]}, but {label!r} "
        "came. Correct those rows, or fit anew with a column for that class."
    )


def open_and_read(
    files: Files,
    roles: ClassRoles,
    place: EngineOptions,
    quiet: bool,
    *,
    probabilities: bool = False,
    fitted: tuple[Fitted, Path] | None = None,
) -> FileMatrix:
    """The same by an engine of its own; which column is which is said unless ``quiet``."""
    with engine_for("reading", quiet, place) as opened:
        found, columns = read(opened, files, roles, probabilities=probabilities, fitted=fitted)
    if not quiet:
        guessed = found.facts["label_column"] if "guessed" in found.facts else ""
        tell(columns.line(roles.option, guessed))
    return found


def _matrix(found: ColumnsRead, columns: slice) -> ScoreMatrix:
    """Some of the columns; rows of weight zero are absent."""
    scores = np.ascontiguousarray(found.numbers[:, columns])
    weight = read_weight(found.weight, len(scores))
    if weight is None or weight.all():
        return ScoreMatrix(scores, found.codes, weight)
    kept = weight > 0
    return ScoreMatrix(scores[kept], found.codes[kept], weight[kept])
