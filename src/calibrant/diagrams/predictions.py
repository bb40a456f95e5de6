"""How diagrams take labels and predictions: rows or tables, one prediction or several by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import (
    Rows,
    check_lengths,
    read_labels,
    read_probabilities,
    read_scores,
    read_weight,
)
from calibrant.errors import InputError

__all__ = ["read_raw", "read_several", "read_table", "refuse_same_names"]

Array = NDArray[np.float64]


def read_table(y: Any, p: Any, sample_weight: Any, pos_label: Any) -> ScoreTable:
    """The table of labels and probabilities, in either form."""
    if isinstance(y, ScoreTable):
        _refuse_beside_table(p=p, sample_weight=sample_weight, pos_label=pos_label)
        _refuse_empty(y)
        read_probabilities(y.scores, name="the scores of the table")
        return y
    if p is None:
        raise InputError(
            "p must be given beside labels y. Only a ScoreTable holds labels and probabilities."
        )
    return _table(y, p, sample_weight, pos_label, read=read_probabilities, name="p")


def read_raw(y: Any, raw: Any, sample_weight: Any, pos_label: Any) -> ScoreTable:
    if isinstance(raw, ScoreTable):
        _refuse_empty(raw)
        return raw
    if isinstance(y, ScoreTable):
        raise InputError(
            "raw must be a ScoreTable where y is one, since a table has no rows to pair it with, "
            f"but {type(raw).__name__} came. Build it with ScoreTable.from_arrays(raw, labels)."
        )
    return _table(y, raw, sample_weight, pos_label, read=read_scores, name="raw")


def _table(
    y: Any,
    scores: Any,
    sample_weight: Any,
    pos_label: Any,
    *,
    read: Callable[..., Array],
    name: str,
) -> ScoreTable:
    labels = read_labels(y, pos_label=pos_label)
    column = labels.positive_column
    clean = read(scores, positive_column=column, name=name, classes=labels.classes)
    check_lengths(**{name: len(clean), "y": len(labels.positive)})
    weight = read_weight(sample_weight, len(clean))
    rows = Rows(clean, labels.positive, weight, labels.classes, labels.pos_label)
    return ScoreTable.from_rows(rows)


def _refuse_beside_table(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} must not be given where y is a ScoreTable: the table already holds "
                "predictions, labels and weights."
            )


def _refuse_empty(table: ScoreTable) -> None:
    if not table:
        raise InputError("the table must hold at least one score, but it is empty.")


# --- several, by name ---------------------------------------------------------------------------


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
    refuse_same_names(predictions)
    if y is None:
        _refuse_beside_table(sample_weight=sample_weight, pos_label=pos_label)
        return {str(name): _named_table(name, given) for name, given in predictions.items()}
    labels = read_labels(y, pos_label=pos_label)
    n = len(labels.positive)
    weight = read_weight(sample_weight, n)
    tables = {}
    for name, given in predictions.items():
        called = f"predictions[{name!r}]"
        column = labels.positive_column
        p = read_probabilities(given, positive_column=column, name=called, classes=labels.classes)
        check_lengths(**{called: len(p), "y": n})
        rows = Rows(p, labels.positive, weight, labels.classes, labels.pos_label)
        tables[str(name)] = ScoreTable.from_rows(rows)
    return tables


def refuse_same_names(predictions: Mapping[Any, Any]) -> None:
    """Names that are told apart as keys of a dict, 1 and "1", but not in a picture."""
    seen: set[str] = set()
    for name in predictions:
        if str(name) in seen:
            raise InputError(
                f"predictions must have different names, but two are called {str(name)!r}. "
                "Name one of them otherwise."
            )
        seen.add(str(name))


def _named_table(name: str, given: Any) -> ScoreTable:
    if not isinstance(given, ScoreTable):
        raise InputError(
            f"predictions[{name!r}] must be a ScoreTable where there are no labels y, but "
            f"{type(given).__name__} came. Pass y, or ScoreTable.from_arrays(p, y)."
        )
    return read_table(given, None, None, None)
