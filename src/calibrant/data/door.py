"""The door: rows of any common kind in, clean float64 arrays out, and every refusal worded here.

Lists, NumPy arrays and (through narwhals) pandas, polars and Arrow columns are taken. Nothing is
cast before its dtype has been looked at: NumPy would parse ``"0.1"`` and truncate soft labels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags
from calibrant.data.columns import check_class_columns, column_facts, plain, to_column, to_matrix
from calibrant.data.documents import shown
from calibrant.data.labels import check_not_swapped, read_labels
from calibrant.errors import InputError, ParameterError, did_you_mean, how_many

if TYPE_CHECKING:
    from calibrant.data.scale import ScoreScale

Classes = Sequence[Any] | NDArray[Any] | None
#: the largest weight must be between these, so that floats can hold the sum of squares
HEAVIEST, LIGHTEST = 1e100, 1e-150


@dataclass(frozen=True)
class Rows:
    """What came through the door: scores, labels and weights of the same rows.

    Parameters
    ----------
    scores : array of shape (n,), of more than two classes (n, k)
    codes : array of shape (n,)
        Two classes: True, or 1, where the row is positive. More: the place in ``classes``.
    weight : array of shape (n,) or None
        As it came; None where all rows count once.
    classes : array of labels
    pos_label : label
        With two classes the positive one; else None.
    share : array of shape (n,), optional
        Of soft labels, each row's probability of the positive class.
    columns : mapping
        The facts about a frame's columns of scores, see `column_facts`.
    present : array of flags, optional
        Which of all rows that came these are (None: all). The others have weight zero.
    scale : ScoreScale, optional
        What the scores are of the whole that these rows are a part of.
    """

    scores: Array
    codes: NDArray[Any]
    weight: Array | None
    classes: NDArray[Any]
    pos_label: Any
    share: Array | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    present: Flags | None = None
    scale: ScoreScale | None = None

    @property
    def positive(self) -> Flags:
        """With two classes: which rows are positive."""
        flags: Flags = self.codes if self.codes.dtype == np.bool_ else self.codes == 1
        return flags

    @property
    def count(self) -> int:
        """How many rows there are; those of weight zero are absent."""
        return len(self.scores) if self.weight is None else int(np.count_nonzero(self.weight))

    @property
    def kept(self) -> Flags:
        """Which of all rows that came these are."""
        return np.ones(len(self.scores), dtype=bool) if self.present is None else self.present

    def take(self, which: NDArray[Any]) -> Rows:
        """Some of the rows, by their numbers or by True and False for each."""
        weight = None if self.weight is None else self.weight[which]
        share = None if self.share is None else self.share[which]
        picked = {"scores": self.scores[which], "codes": self.codes[which]}
        return replace(self, **picked, weight=weight, share=share)

    def counting(self) -> Rows:
        """The rows of positive weight alone."""
        if self.weight is None:
            return self
        present = self.weight > 0
        return replace(self.take(np.flatnonzero(present)), present=present)

    @property
    def facts(self) -> dict[str, Any]:
        """How many rows there are, what two columns were called, and of soft labels how many of
        them are fractions."""
        known = {"rows": self.count, **self.columns}
        if self.share is None:
            return known
        present = True if self.weight is None else self.weight > 0
        inside = (self.share > 0.0) & (self.share < 1.0) & present
        return known | {"soft_labels": int(np.count_nonzero(inside))}


def read_binary(
    scores: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    pos_label: Any = None,
    classes: Any = None,
    soft: bool = False,
) -> Rows:
    """Scores, two-class labels and weights of the same rows, checked and coded.

    With ``soft`` y may be probabilities of the class 1.
    """
    labels = read_labels(y, pos_label=pos_label, classes=classes, soft=soft)
    check_pair_order(scores, classes, labels.classes)
    clean = read_scores(scores, positive_column=labels.positive_column, classes=labels.classes)
    check_lengths(scores=len(clean), y=len(labels.positive))
    if labels.share is not None and classes is None:
        check_not_swapped(clean)
    weight = read_weight(sample_weight, len(clean))
    return Rows(
        clean,
        labels.positive,
        weight,
        labels.classes,
        labels.pos_label,
        labels.share,
        column_facts(scores),
    )


def check_pair_order(scores: Any, given: Any, classes: NDArray[Any]) -> None:
    """Refuse two columns of scores beside two classes that were given in another order than the
    sorted one, in which two columns are read at all times."""
    if given is None or plain(to_column(given, "classes")[0]) == plain(classes[0]):
        return
    matrix = to_matrix(scores, "scores")
    if matrix.ndim == 2 and matrix.shape[1] == 2:
        low, high = map(plain, classes)
        raise InputError(
            f"two columns of scores are those of {low!r} and {high!r}, in this order, but classes "
            "came in the other. Pass the column of one class alone, with pos_label; or both in "
            "sorted order, with classes in that order."
        )


def read_scores(
    scores: Any, *, positive_column: int = 1, name: str = "scores", classes: Classes = None
) -> Array:
    """Finite scores as a float64 vector, from (n,), (n, 1) or the (n, 2) of a predict_proba.

    ``classes`` says what two columns are; a frame whose names say otherwise is refused.
    """
    matrix = to_numbers(scores, name)
    if matrix.ndim == 2 and matrix.shape[1] == 1:
        matrix = matrix[:, 0]
    if matrix.ndim == 2 and matrix.shape[1] == 2:
        if classes is not None:
            check_class_columns(scores, classes, name)
        _check_pairs(matrix, name, half=_of_half_precision(scores))
        matrix = matrix[:, positive_column]
    if matrix.ndim != 1:
        raise InputError(_shape_message(matrix, name))
    if not len(matrix):
        raise InputError(f"{name} must have at least one row, but none came (0 samples).")
    _check_finite(matrix, name)
    clean = np.ascontiguousarray(matrix, dtype=np.float64)
    return clean + 0.0 if (clean == 0.0).any() else clean  # −0.0 joins 0.0, as in SQL


def read_probabilities(
    p: Any, *, positive_column: int = 1, name: str = "p", classes: Classes = None
) -> Array:
    """Probabilities of the positive class: as `read_scores`, and inside [0, 1]."""
    clean = read_scores(p, positive_column=positive_column, name=name, classes=classes)
    outside = (clean < 0.0) | (clean > 1.0)
    if outside.any():
        first = int(np.argmax(outside))
        raise InputError(
            f"{name} must be probabilities in [0, 1]: {int(outside.sum())} of {len(clean)} are not "
            f"(first at row {first}: {clean[first]:g}). Divide percentages by 100; calibrate "
            "margins or logits first."
        )
    return clean


def read_weight(sample_weight: Any, n: int) -> Array | None:
    """Weights ≥ 0 of n rows as float64, or None where all rows count once."""
    if sample_weight is None:
        return None
    weight = to_numbers(sample_weight, "sample_weight")
    if weight.ndim == 2 and weight.shape[1] == 1 and n != 1:
        weight = weight[:, 0]
    if weight.ndim != 1:
        raise InputError(
            f"sample_weight must be 1-d, one weight per row, but its shape is {weight.shape}. "
            "Sample weights must be 1D array or scalar: pass one column."
        )
    check_lengths(y=n, sample_weight=len(weight))
    _check_finite(weight, "sample_weight")
    clean = np.ascontiguousarray(weight, dtype=np.float64)
    negative = clean < 0
    if negative.any():
        raise InputError(
            f"sample_weight must be at least 0: {int(negative.sum())} of {n} are negative (first "
            f"at row {int(np.argmax(negative))}). Negative values in data passed to sample_weight "
            "have no meaning here: drop those rows or correct them."
        )
    most = float(clean.max())
    if most == 0.0:
        raise InputError(
            f"sample_weight must be positive for at least one row, but all {n} are zero. A zero "
            "weight means that the row is absent."
        )
    if not LIGHTEST <= most <= HEAVIEST:  # sizes and intervals need squares that floats can hold
        raise InputError(
            f"sample_weight must have its largest value from {LIGHTEST:g} to {HEAVIEST:g}, but it "
            f"is {most:g}. Divide all weights by their mean."
        )
    return clean


def read_counts(values: Any, name: str, *, signed: bool = False) -> Array:
    """A column of grouped data: finite, and not negative unless ``signed``."""
    column = to_numbers(values, name)
    if column.ndim != 1:
        raise InputError(f"{name} must be 1-d, but its shape is {column.shape}.")
    _check_finite(column, name)
    clean = np.ascontiguousarray(column, dtype=np.float64)
    if not signed and (clean < 0).any():
        first = int(np.argmax(clean < 0))
        raise InputError(f"{name} must be at least 0, but cell {first} holds {clean[first]:g}.")
    return clean


def read_grouped(
    scores: Any, negative: Any, positive: Any, negative_sq: Any = None, positive_sq: Any = None
) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    """Grouped data: scores, and Σw and Σw² of the negatives and positives, of one length.

    Without Σw² the counts are numbers of rows, whose Σw² is Σw.
    """
    n0, n1 = read_counts(negative, "negative"), read_counts(positive, "positive")
    q0 = n0 if negative_sq is None else read_counts(negative_sq, "negative_sq")
    q1 = n1 if positive_sq is None else read_counts(positive_sq, "positive_sq")
    x = read_counts(scores, "scores", signed=True) + 0.0
    for name, column in (("negative", n0), ("positive", n1), ("Σw²", q0), ("Σw²", q1)):
        if len(column) != len(x):
            raise InputError(
                f"scores and counts must have one entry per cell: {len(x)} scores came with "
                f"{len(column)} entries of {name}. Pass arrays of one length."
            )
    return x, (n0, n1, q0, q1)


def read_soft(
    scores: Any, share: Any, sample_weight: Any = None
) -> tuple[Array, Array, Array | None]:
    """Scores, labels that are probabilities of the positive class, and weights."""
    clean = read_scores(scores)
    labels = to_numbers(share, "share")
    if labels.ndim != 1:
        raise InputError(
            "share must be 1-d, the probability of the positive class for each row, but its shape "
            f"is {labels.shape}. Pass one column."
        )
    q = read_probabilities(labels, name="share")
    check_lengths(scores=len(clean), share=len(q))
    return clean, q, read_weight(sample_weight, len(q))


def check_word(name: str, value: Any, words: Collection[str]) -> None:
    """Refuse a parameter that is not one of a few words."""
    if not isinstance(value, str) or value not in words:
        allowed = " or ".join(map(repr, words))
        hint = did_you_mean(value, words)
        raise ParameterError(f"{name} must be {allowed}, but {shown(value)} came.{hint}")


def check_lengths(**lengths: int) -> None:
    """Refuse columns of different lengths."""
    (first, n), (second, m) = lengths.items()
    if n != m:
        raise InputError(
            f"{first} and {second} must have one entry per row, but {first} has {n} and {second} "
            f"has {m} (inconsistent numbers of samples). Pass columns of the same rows."
        )


# --- the checks ---------------------------------------------------------------------------------


def to_numbers(values: Any, name: str) -> NDArray[Any]:
    """Real numbers as they are, in a NumPy array; frames as (n, columns)."""
    array = to_matrix(values, name)
    kind = array.dtype.kind
    if kind == "c":
        raise InputError(f"Complex data not supported: {name} must be real numbers.")
    if kind not in "biuf":
        came = f"{array.dtype}"
        example = array.flat[0] if array.size else None
        raise InputError(
            f"{name} must be numbers, but values of type {came} came"
            f"{f' (such as {example!r})' if example is not None else ''}. Convert them first, for "
            "example with astype(float)."
        )
    return array


def _check_finite(array: NDArray[Any], name: str) -> None:
    if array.dtype.kind != "f" or not array.size:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum(dtype=np.float64)):
            return
    bad = ~np.isfinite(array)
    if not bad.any():
        return  # the sum overflowed, its terms are fine
    missing, n = int(np.isnan(array).sum()), len(array)
    infinite = int(bad.sum()) - missing
    what = how_many({"NaN": missing, "infinite": infinite}, n)
    raise InputError(
        f"{name} must be finite: {what} (first at row {int(np.argmax(bad))}). "
        f"Drop or impute {'it' if bad.sum() == 1 else 'them'} first."
    )


def _of_half_precision(scores: Any) -> bool:
    """Whether these are floats of 16 bits, such as bfloat16, which has eight of them for digits."""
    kind = getattr(scores, "dtype", None)
    return "float" in str(kind) and getattr(kind, "itemsize", 8) == 2


def _check_pairs(matrix: NDArray[Any], name: str, *, half: bool = False) -> None:
    """Two columns must be the two probabilities of a predict_proba, or we would guess."""
    if not len(matrix):
        return
    for column in (matrix[:, 0], matrix[:, 1]):
        _check_finite(column, name)
    off = np.abs(matrix[:, 0] + matrix[:, 1] - 1.0) > (4e-3 if half else 1e-3)
    off |= (matrix < 0).any(axis=1)
    if off.any():
        row = int(np.argmax(off))
        raise InputError(
            f"{name} with two columns must be the output of a predict_proba, whose rows sum to 1, "
            f"but row {row} is {matrix[row].tolist()}. Pass the positive class's column alone; for "
            "logits pass z[:, 1] - z[:, 0]."
        )


def _shape_message(matrix: NDArray[Any], name: str) -> str:
    if matrix.ndim == 0:
        return f"{name} must be 1-d, but a single value came. Pass [{matrix!s}]."
    if matrix.ndim == 2 and matrix.shape[1] > 2:
        return (
            f"{name} must be one score per row (1-d, one column, or the two of a binary "
            f"predict_proba), but {matrix.shape[1]} columns came. For several classes use "
            "CalibratedClassifier, which calibrates one class against the rest."
        )
    return f"{name} must be 1-d with one score per row, but their shape is {matrix.shape}."


# --- Rows of numbers: blocks of them, and whether they are finite, and distributions --------------


#: float64, or float32 where float32 came: a matrix may be larger than memory
Scores = NDArray[Any]

#: numbers per block of rows: its temporaries stay in cache
BLOCK = 1 << 17
#: how far the sum of a row of probabilities may be from one: so much, half a percent for each class
#: (they may be rounded to two digits), and no more than that for twenty classes
SUM_TOLERANCE, ROUNDED, MOST_CLASSES = 1e-3, 0.005, 20
FOR_LOGITS = 'For logits use scale="raw".'


def row_blocks(n: int, k: int) -> Iterator[slice]:
    """Slices of rows with about `BLOCK` numbers each."""
    step = max(1, BLOCK // max(k, 1))
    return (slice(start, start + step) for start in range(0, n, step))


class BadRows(NamedTuple):
    """How many of all rows are bad, where the first is, and what it holds."""

    wrong: int
    first: int
    rows: int
    row: NDArray[Any]


def check_finite_rows(array: Scores, name: str) -> None:
    """Refuse rows that hold NaN or infinity."""
    if bad := _bad_rows(array, lambda part: np.asarray(~np.isfinite(part).all(axis=1))):
        refuse_infinite(bad, name)


def refuse_infinite(bad: BadRows, name: str = "scores") -> None:
    """The error of rows that hold NaN or infinity."""
    column = int(np.argmin(np.isfinite(bad.row)))
    word = "NaN" if np.isnan(bad.row[column]) else "infinity"
    raise InputError(
        f"{name} must be finite: {bad.wrong} of {bad.rows} rows hold NaN or infinity (first at "
        f"row {bad.first}, column {column}: {word}). Drop or impute them first."
    )


def check_distributions(array: Scores, name: str = "scores", *, advice: str = FOR_LOGITS) -> None:
    """Refuse rows that are not distributions, see `are_distributions`."""
    if bad := _bad_rows(array, _not_distributions):
        refuse_distributions(bad, name, advice)


def refuse_distributions(bad: BadRows, name: str = "scores", advice: str = FOR_LOGITS) -> None:
    """The error of rows that are not distributions."""
    shown = ", ".join(f"{value:g}" for value in bad.row[:6])
    with np.errstate(over="ignore"):
        total = bad.row.sum(dtype=np.float64)
    raise InputError(
        f"{name} must be probabilities, each row in [0, 1] with the sum 1, but {bad.wrong} of "
        f"{bad.rows} rows {'is' if bad.wrong == 1 else 'are'} not (first at row {bad.first}: "
        f"[{shown}{', …' if len(bad.row) > 6 else ''}], sum {total:g}). {advice}"
    )


def are_distributions(array: Scores) -> bool:
    """Whether every row is a distribution: entries in [0, 1] whose sum is one, up to rounding.

    >>> are_distributions(np.array([[0.33, 0.33, 0.33]])), are_distributions(np.array([[0.5, 0.4]]))
    (True, False)
    """
    parts = (array[rows] for rows in row_blocks(*array.shape))
    return not any(_not_distributions(part).any() for part in parts)


def _bad_rows(array: Scores, is_bad: Callable[[Scores], Flags]) -> BadRows | None:
    """The rows of which a function says that they are bad; None if there are none."""
    count, first = 0, -1
    for rows in row_blocks(*array.shape):
        bad = is_bad(array[rows])
        if count == 0 and bad.any():
            first = rows.start + int(np.argmax(bad))
        count += int(bad.sum())
    return BadRows(count, first, len(array), array[first]) if count else None


def _not_distributions(part: Scores) -> Flags:
    outside = np.asarray((part < 0).any(axis=1) | (part > 1).any(axis=1))
    if outside.all():
        return outside
    sums = np.clip(part, 0.0, 1.0).sum(axis=1, dtype=np.float64)
    return np.asarray(outside | (np.abs(sums - 1.0) > sum_tolerance(part.shape[1])))


def sum_tolerance(classes: int) -> float:
    """How far the sum of a row of probabilities may be from one.

    >>> sum_tolerance(3), sum_tolerance(1000)
    (0.016, 0.101)
    """
    return SUM_TOLERANCE + ROUNDED * min(classes, MOST_CLASSES)
