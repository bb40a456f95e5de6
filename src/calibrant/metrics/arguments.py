"""Reads the arguments of all measures: labels and probabilities, tables, and options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from calibrant.array_types import Array, Flags, Index
from calibrant.data.columns import check_class_columns, plain, to_matrix
from calibrant.data.door import (
    Rows,
    check_distributions,
    check_lengths,
    read_class_labels,
    read_labels,
    read_probabilities,
    read_weight,
    row_blocks,
)
from calibrant.data.score_matrix import ScoreMatrix, read_score_matrix
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, ParameterError


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
    rows = read_labels(y, pos_label=pos_label, classes=classes)
    clean = read_column(p, rows, classes)
    check_lengths(y=len(rows.codes), p=len(clean))
    return replace(rows, scores=clean, weight=read_weight(sample_weight, len(clean)))


def read_column(
    given: Any,
    labels: Rows,
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


# --- Several tests at once: p-values corrected for their number -----------------------------------


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order they came.

    >>> holm_adjusted([0.02, 0.01, 0.5])
    (0.04, 0.03, 0.5)
    """
    if any(not 0.0 <= p <= 1.0 for p in p_values):
        raise InputError(f"p-values must lie in [0, 1], but {list(p_values)} came.")
    adjusted, largest, left = [0.0] * len(p_values), 0.0, len(p_values)
    for place in sorted(range(len(p_values)), key=p_values.__getitem__):
        largest = max(largest, min(1.0, left * p_values[place]))
        adjusted[place], left = largest, left - 1
    return tuple(adjusted)


# --------------------------------------------------------------------------------------------------
# Probabilities of several classes: how they are read, and the sums that measures are made of
#
# Everything goes through blocks of rows or one column at a time, so that nothing of the size of the
# whole matrix is copied.


#: what to do about rows that are not distributions
ADVICE = (
    "Divide percentages by 100; turn logits into probabilities first (scipy.special.softmax); "
    "where a row may have several labels use multilabel_measures."
)


class LabelledMatrix(NamedTuple):
    """A matrix of probabilities with the label of each of its columns."""

    matrix: ScoreMatrix
    labels: NDArray[Any]


def has_several(y: Any, p: Any) -> tuple[bool, Any]:
    """Whether p has a column for each of three classes or more; and p itself.

    It comes back as an array, but for a frame, whose names may be those of the classes.

    >>> has_several([0, 1], [[0.2, 0.8], [0.4, 0.6]])[0], has_several([0], [[0.1, 0.2, 0.7]])[0]
    (False, True)
    """
    if isinstance(y, ScoreMatrix):
        return True, p
    if p is None or isinstance(y, ScoreTable) or isinstance(p, ScoreTable):
        return False, p
    columns = to_matrix(p, "p")
    named = columns.ndim == 2 and (hasattr(p, "columns") or hasattr(p, "column_names"))
    return columns.ndim == 2 and columns.shape[1] > 2, p if named else columns


def read_classes(
    y: Any, p: Any, sample_weight: Any = None, classes: Any = None, *, name: str = "p"
) -> LabelledMatrix:
    """Labels, distributions over the classes and weights of the same rows; or a ScoreMatrix for y.

    Column j is the j-th class in sorted order, or the j-th of ``classes``.
    """
    if isinstance(y, ScoreMatrix):
        holds = "ScoreMatrix holds its probabilities, weights and labels"
        refuse_beside(holds, "matrix", p=p, sample_weight=sample_weight, classes=classes)
        if not len(y):
            raise InputError("the matrix must have at least one row, but it is empty.")
        check_distributions(y.scores, "the matrix", advice=ADVICE)
        return LabelledMatrix(y, np.arange(y.n_classes))
    if p is None:
        raise InputError(
            "p must be given beside the labels y: the predicted probabilities, one column for each "
            "class."
        )
    clean = read_score_matrix(p, name=name)  # float32 and memory maps as they are
    check_distributions(clean, name, advice=ADVICE)
    labels, codes = _columns_of(y, clean.shape[1], classes)
    check_class_columns(p, labels, name)
    check_lengths(**{"y": len(codes), name: len(clean)})
    weight = read_weight(sample_weight, len(codes))
    if weight is not None and not weight.all():
        kept = weight > 0
        clean, codes, weight = clean[kept], codes[kept], weight[kept]
    return LabelledMatrix(ScoreMatrix(clean, codes, weight), labels)


def refuse_beside(holds: str, word: str, **beside: Any) -> None:
    """Refuse what came beside a table or a matrix (the ``word``), which ``holds`` it."""
    for name, value in beside.items():
        if value is not None:
            raise InputError(
                f"a {holds}, but {name} came as well. Leave {name} out, or pass labels in place of "
                f"the {word}."
            )


def _columns_of(y: Any, columns: int, classes: Any) -> tuple[NDArray[Any], Index]:
    """The label of each column, and the column of each row's own class."""
    found, codes = read_class_labels(y, classes, columns, "p")
    if len(found) != columns:
        shown = ", ".join(repr(plain(label)) for label in found[:5])
        many = "es" if len(found) != 1 else ""
        raise InputError(
            f"y must hold as many classes as p has columns, but p has {columns} columns and y "
            f"{len(found)} class{many} ({shown}{', …' if len(found) > 5 else ''}). Name them "
            "all, in the order of the columns, with classes=[...]."
        )
    return found, codes


def read_raw_classes(
    y: Any, seen: LabelledMatrix, raw: Any, sample_weight: Any, classes: Any
) -> tuple[ScoreMatrix, bool]:
    """The raw scores as distributions, and whether they had to be made into such."""
    if isinstance(y, ScoreMatrix):
        if not isinstance(raw, ScoreMatrix):
            raise InputError(
                f"raw must be a ScoreMatrix beside a matrix, but {type(raw).__name__} came."
            )
        same = np.array_equal(raw.codes, y.codes) and raw.total == y.total
        if not same:
            raise InputError("raw must be the matrix of the same rows, but its labels differ.")
        scores, linked = _as_distributions(raw.scores)
        return ScoreMatrix(scores, y.codes, y.weight), linked
    scores = read_score_matrix(raw, seen.matrix.n_classes, name="raw", classes=seen.labels)
    scores, linked = _as_distributions(scores)
    return read_classes(y, scores, sample_weight, classes, name="raw").matrix, linked


def _as_distributions(raw: NDArray[Any]) -> tuple[NDArray[Any], bool]:
    blocks = list(row_blocks(*raw.shape))
    if all(raw[rows].min() >= 0.0 and raw[rows].max() <= 1.0 for rows in blocks):
        return raw, False
    p = np.empty_like(raw)
    for rows in blocks:
        p[rows] = softmax(raw[rows].astype(np.float64), axis=1)
    return p, True


# --- one column, and the largest of each row ----------------------------------------------------


def class_rows(matrix: ScoreMatrix, column: int) -> Rows:
    """The rows of one class against the rest."""
    return _rows(matrix, matrix.scores[:, column], matrix.codes == column)


def class_table(matrix: ScoreMatrix, column: int) -> ScoreTable:
    """One class against the rest."""
    return ScoreTable.from_rows(class_rows(matrix, column))


def class_tables(matrix: ScoreMatrix) -> Iterator[ScoreTable]:
    """Each class against the rest, one after the other."""
    return (class_table(matrix, column) for column in range(matrix.n_classes))


def top_rows(matrix: ScoreMatrix) -> Rows:
    """The probability of each row's most probable class, and whether that class came."""
    top, confidence = top_labels(matrix)
    return _rows(matrix, confidence, matrix.codes == top)


def top_table(matrix: ScoreMatrix) -> ScoreTable:
    """The table of `top_rows`."""
    return ScoreTable.from_rows(top_rows(matrix))


def top_labels(matrix: ScoreMatrix) -> tuple[Index, Array]:
    """The most probable class of each row (the first of equals), and its probability."""
    scores = matrix.scores
    top, confidence = np.empty(len(scores), dtype=np.intp), np.empty(len(scores))
    for rows in row_blocks(*scores.shape):
        part = scores[rows]
        top[rows] = part.argmax(axis=1)
        confidence[rows] = part[np.arange(len(part)), top[rows]]
    return top, confidence


def _rows(matrix: ScoreMatrix, p: NDArray[Any], hit: Flags) -> Rows:
    clean = p.astype(np.float64) + 0.0  # −0.0 joins 0.0
    return Rows(clean, hit, matrix.weight, np.array([False, True]), True)


# --- losses -------------------------------------------------------------------------------------


def log_losses_of_rows(matrix: ScoreMatrix, clip: float | None = None) -> Array:
    """−ln p of the class that came, row by row; infinite where p is 0."""
    own = _own_probability(matrix)
    if clip is not None:
        own = np.clip(own, clip, 1.0 - clip)
    with np.errstate(divide="ignore"):
        return -np.log(own) + 0.0  # −0.0 is 0.0


def square_losses_of_rows(matrix: ScoreMatrix) -> Array:
    """Σ_j (y_j − p_j)², row by row."""
    losses = []
    for p, codes, _ in matrix.blocks():
        p[np.arange(len(codes)), codes] -= 1.0  # Σp² − 2p_c + 1 would lose small differences
        losses.append(np.einsum("ij,ij->i", p, p))
    return np.concatenate(losses)


def mean_log_loss_of_classes(matrix: ScoreMatrix, clip: float | None = None) -> float:
    """Mean −ln p of the class that came; infinite where p is 0."""
    return _mean(matrix, log_losses_of_rows(matrix, clip))


def square_sum(matrix: ScoreMatrix) -> float:
    """The mean over rows of Σ_j (y_j − p_j)²."""
    return _mean(matrix, square_losses_of_rows(matrix))


def share_right(matrix: ScoreMatrix) -> float:
    """The accuracy of a matrix of probabilities."""
    return _mean(matrix, top_labels(matrix)[0] == matrix.codes)


def _mean(matrix: ScoreMatrix, values: NDArray[Any]) -> float:
    weight = matrix.weight
    return float(values.mean() if weight is None else weight @ values / matrix.total)


def _own_probability(matrix: ScoreMatrix) -> Array:
    """What each row gave to the class that came."""
    own = matrix.scores[np.arange(len(matrix)), matrix.codes]
    return np.asarray(own, dtype=np.float64)


def infinite_for_classes(matrix: ScoreMatrix) -> str:
    """How many rows make the log loss of several classes infinite."""
    there = _own_probability(matrix) == 0.0
    count = int(there.sum())
    if matrix.weight is None:
        rows = f"{count} row{' was' if count == 1 else 's were'}"
    else:
        rows = f"rows of total weight {float(matrix.weight[there].sum()):g} were"
    return f"{rows} given probability 0 for the class that came"
