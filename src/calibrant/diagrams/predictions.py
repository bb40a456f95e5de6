"""How diagrams take labels and predictions: rows or tables, one prediction or several by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.data.labels import read_labels
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows, check_lengths, read_scores, read_weight
from calibrant.errors import InputError
from calibrant.metrics.arguments import read_column, read_table

#: the name of predictions that came without one
ONLY = "predictions"


def read_raw(y: Any, raw: Any, sample_weight: Any, pos_label: Any) -> ScoreTable:
    """The table of the scores before calibration, of any kind."""
    if isinstance(raw, ScoreTable):
        if not raw:
            raise InputError("the table must hold at least one score, but it is empty.")
        return raw
    if isinstance(y, ScoreTable):
        raise InputError(
            "raw must be a ScoreTable where y is one, since a table has no rows to pair it with, "
            f"but {type(raw).__name__} came. Build it with ScoreTable.from_arrays(raw, labels)."
        )
    labels = read_labels(y, pos_label=pos_label)
    scores = read_column(raw, labels, name="raw", read=read_scores)
    check_lengths(raw=len(scores), y=len(labels.positive))
    weight = read_weight(sample_weight, len(scores))
    rows = Rows(scores, labels.positive, weight, labels.classes, labels.pos_label)
    return ScoreTable.from_rows(rows)


def read_several(
    y: Any, predictions: Mapping[str, Any], sample_weight: Any = None, pos_label: Any = None
) -> dict[str, ScoreTable]:
    """The table of each prediction of the same rows; with y None, of tables that came by name."""
    if not isinstance(predictions, Mapping) or not predictions:
        came = "none" if isinstance(predictions, Mapping) else type(predictions).__name__
        raise InputError(
            "predictions must be a dict of names to probabilities, with one entry or more, but "
            f"{came} came."
        )
    if y is not None:
        rows = rows_by_name(y, predictions, sample_weight, pos_label)
        return {name: ScoreTable.from_rows(one) for name, one in rows.items()}
    _refuse_same_names(predictions)
    for name, given in predictions.items():
        if not isinstance(given, ScoreTable):
            raise InputError(
                f"predictions[{name!r}] must be a ScoreTable where there are no labels y, but "
                f"{type(given).__name__} came. Pass y, or ScoreTable.from_arrays(p, y)."
            )
    return {
        str(name): read_table(given, None, sample_weight, pos_label)
        for name, given in predictions.items()
    }


def rows_by_name(y: Any, p: Any, sample_weight: Any, pos_label: Any) -> dict[str, Rows]:
    """The rows of each prediction: of a dict, or of one that has no name."""
    predictions = p if isinstance(p, Mapping) else {ONLY: p}
    _refuse_same_names(predictions)
    labels = read_labels(y, pos_label=pos_label)
    weight = read_weight(sample_weight, len(labels.positive))
    found = {}
    for name, given in predictions.items():
        called = f"predictions[{name!r}]" if isinstance(p, Mapping) else "p"
        clean = read_column(given, labels, name=called)
        check_lengths(**{called: len(clean), "y": len(labels.positive)})
        found[str(name)] = Rows(clean, labels.positive, weight, labels.classes, labels.pos_label)
    return found


def _refuse_same_names(predictions: Mapping[Any, Any]) -> None:
    """Refuse names that differ as keys of a dict, such as 1 and "1", but not in a picture."""
    seen: set[str] = set()
    for name in predictions:
        if str(name) in seen:
            raise InputError(
                f"predictions must have different names, but two are called {str(name)!r}. "
                "Name one of them otherwise."
            )
        seen.add(str(name))
