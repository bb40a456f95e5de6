"""Reads the arguments of all measures: labels and probabilities, tables, and options."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.data.labels import Labels, read_labels
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import (
    Rows,
    check_lengths,
    read_probabilities,
    read_weight,
)
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.probability_matrix import (
    LabelledMatrix,
    has_several,
    read_classes,
    refuse_beside,
)


def read_predictions(
    y: Any, p: Any, sample_weight: Any, pos_label: Any, classes: Any
) -> ScoreTable | LabelledMatrix:
    """A table for two classes; a matrix and its labels where p has three columns or more."""
    several, p = has_several(y, p)
    if not several:
        return read_table(y, p, sample_weight, pos_label, classes)
    refuse_positive(pos_label)
    return read_classes(y, p, sample_weight, classes)


def refuse_positive(pos_label: Any) -> None:
    """Refuse pos_label where there are several classes: none of them is the positive one."""
    if pos_label is not None:
        raise InputError(
            "pos_label must not be given beside a column for each of several classes, but "
            f"{pos_label!r} came. Pass that class's column alone, and y == {pos_label!r}."
        )


def read_table(
    y: Any, p: Any, sample_weight: Any, pos_label: Any, classes: Any = None
) -> ScoreTable:
    """The table of probabilities and labels, from rows or from a table in place of y."""
    if not isinstance(y, ScoreTable):
        return ScoreTable.from_rows(read_rows(y, p, sample_weight, pos_label, classes))
    beside = {"p": p, "sample_weight": sample_weight, "pos_label": pos_label, "classes": classes}
    refuse_beside("ScoreTable holds its probabilities, weights and classes", "table", **beside)
    if not y:
        raise InputError("the table must hold at least one score, but it is empty.")
    if not y.looks_like_probabilities:
        raise InputError(
            "the table's scores must be probabilities in [0, 1], but they run from "
            f"{y.scores[0]:g} to {y.scores[-1]:g}. Divide percentages by 100; calibrate margins or "
            "logits first."
        )
    return y


def read_rows(y: Any, p: Any, sample_weight: Any, pos_label: Any, classes: Any = None) -> Rows:
    """Labels, probabilities of the positive class and weights of the same rows."""
    if p is None:
        raise InputError(
            "p must be given beside the labels y: the predicted probabilities, one per row. (Only "
            "a ScoreTable in place of y brings its own.)"
        )
    labels = read_labels(y, pos_label=pos_label, classes=classes)
    clean = read_column(p, labels, classes)
    check_lengths(y=len(labels.positive), p=len(clean))
    weight = read_weight(sample_weight, len(clean))
    return Rows(clean, labels.positive, weight, labels.classes, labels.pos_label)


def read_column(
    given: Any,
    labels: Labels,
    classes: Any = None,
    *,
    name: str = "p",
    read: Callable[..., Array] = read_probabilities,
) -> Array:
    """One number for each row: a probability of the positive class, or what ``read`` reads.

    Two columns are those of both classes, in sorted order or in that of ``classes``.
    """
    known = list(labels.classes if classes is None else classes)
    column = 0 if known[0] == labels.pos_label else 1
    return read(given, positive_column=column, name=name, classes=known)


def check_flag(name: str, value: Any) -> bool:
    """The value, which must be True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{name} must be True or False, but {value!r} came.")
    return bool(value)


def check_whole(name: str, value: Any, low: int) -> int:
    """The value, which must be a whole number of at least ``low``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or value < low:
        raise ParameterError(
            f"{name} must be a whole number of at least {low}, but {value!r} came."
        )
    return int(value)


def check_number(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """The value, which must be a finite number above ``low`` and below ``high``."""
    fine = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if not fine or not low < value < high:
        limit = f"above {low:g}" if high == math.inf else f"above {low:g} and below {high:g}"
        raise ParameterError(f"{name} must be a finite number {limit}, but {value!r} came.")
    return float(value)


def read_generator(random_state: Any) -> np.random.Generator:
    """A random generator from a seed, a generator, or None."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as wrong:
        raise ParameterError(
            f"random_state must be a seed, a Generator or None, but {random_state!r} came."
        ) from wrong
