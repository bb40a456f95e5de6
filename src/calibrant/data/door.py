"""Reads and checks what users pass: scores, labels, weights, and the parameters of estimators.

Lists, NumPy arrays and (through narwhals) pandas, polars and Arrow columns become clean arrays.
Nothing is cast before its dtype is known: NumPy would parse ``"0.1"`` and truncate soft labels.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.columns import (
    check_class_columns,
    object_array,
    plain,
    score_column_facts,
    to_column,
    to_matrix,
)
from calibrant.data.documents import brief
from calibrant.errors import InputError, ParameterError, caller_level, counts_in_words, did_you_mean
from calibrant.tensors import on_host

if TYPE_CHECKING:
    from calibrant.data.scale import ScoreScale


Classes = Sequence[Any] | NDArray[Any] | None
#: the largest weight must be between these, so that floats can hold the sum of squares
HEAVIEST, LIGHTEST = 1e100, 1e-150


@dataclass(frozen=True)
class Rows:
    """Scores, labels and weights of the same rows, read and checked.

    Parameters
    ----------
    scores : array of shape (n,), of more than two classes (n, k)
        Of shape (0,) as long as they are not read, or no model has scored the rows.
    codes : array of shape (n,)
        Two classes: True, or 1, where the row is positive. More: the position in ``classes``.
    weight : array of shape (n,) or None
        As the user passed it; None where all rows count once.
    classes : array of labels
    pos_label : label
        With two classes the positive one; else None.
    share : array of shape (n,), optional
        Of soft labels, each row's probability of the positive class.
    columns : mapping
        The facts about a frame's columns of scores, see `score_column_facts`.
    present : array of flags, optional
        One for each row that the user passed: whether it is kept here. The others have weight
        zero. None: all are kept.
    scale : ScoreScale, optional
        The scale of all scores, where these rows are a part of more.
    X : anything that scikit-learn can index by rows, optional
        The rows as a model takes them; not checked here.
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
    X: Any = None

    @classmethod
    def unscored(
        cls,
        X: Any,
        codes: Index,
        weight: Array | None,
        classes: NDArray[Any],
        share: Array | None = None,
    ) -> Rows:
        """Rows that no model has scored yet. Of two classes, the second is the positive one."""
        pos_label = classes[1] if len(classes) == 2 else None
        return cls(np.empty(0), codes, weight, classes, pos_label, share, X=X)

    def mirrored(self, scale: ScoreScale) -> Rows:
        """The rows with reversed scores, such as 1 − p; ``scale`` is that of the scores. See
        `ScoreScale.centre`."""
        return replace(self, scores=scale.centre - self.scores, scale=scale.mirrored)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of `unscored` rows; of soft labels, the more probable ones."""
        labels: NDArray[Any] = self.classes[self.codes]
        return labels

    def class_counts(self, some: Index | None = None) -> Index:
        """The number of rows of each class, without those of weight zero.

        A soft label between 0 and 1 is a row of both classes. ``some`` are the rows to count (None:
        all).
        """
        part = slice(None) if some is None else some
        codes, weight = self.codes[part], None if self.weight is None else self.weight[part]
        if self.share is not None:
            _, codes, weight = split_soft_labels(self.share[part], weight)
        counted = codes if weight is None else codes[weight > 0]
        return np.bincount(counted, minlength=len(self.classes))

    @property
    def positive(self) -> Flags:
        """With two classes: a flag for each row, True where it is positive."""
        flags: Flags = self.codes if self.codes.dtype == np.bool_ else self.codes == 1
        return flags

    @property
    def positive_column(self) -> int:
        """With two classes: the number of the positive class's column, 0 or 1."""
        return 0 if self.classes[0] == self.pos_label else 1

    @property
    def count(self) -> int:
        """The number of rows, without those of weight zero."""
        return len(self.codes) if self.weight is None else int(np.count_nonzero(self.weight))

    @property
    def kept(self) -> Flags:
        """A flag for each row that the user passed: True where it is one of these rows."""
        return np.ones(len(self.codes), dtype=bool) if self.present is None else self.present

    def take(self, which: NDArray[Any]) -> Rows:
        """Some of the rows, chosen by their numbers or by flags."""
        weight = None if self.weight is None else self.weight[which]
        share = None if self.share is None else self.share[which]
        picked = {"scores": self.scores[which], "codes": self.codes[which]}
        return replace(self, **picked, weight=weight, share=share)

    def without_weightless(self) -> Rows:
        """The rows whose weight is above 0."""
        if self.weight is None:
            return self
        present = self.weight > 0
        return replace(self.take(np.flatnonzero(present)), present=present)

    @property
    def facts(self) -> dict[str, Any]:
        """Facts for the provenance of a fit.

        They are the number of rows, the names of two columns of scores, and how many soft labels
        are fractions.
        """
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
    """Rows of two classes, from scores, labels and weights.

    With ``soft`` y may be probabilities of the class 1.
    """
    rows = read_labels(y, pos_label=pos_label, classes=classes, soft=soft)
    check_two_column_order(scores, classes, rows.classes)
    clean = read_scores(scores, positive_column=rows.positive_column, classes=rows.classes)
    check_lengths(scores=len(clean), y=len(rows.codes))
    if rows.share is not None and classes is None:
        check_not_swapped(clean)
    weight = read_weight(sample_weight, len(clean))
    return replace(rows, scores=clean, weight=weight, columns=score_column_facts(scores))


def check_two_column_order(scores: Any, given: Any, classes: NDArray[Any]) -> None:
    """Refuse two columns of scores if the user named the two classes in descending order.

    Two columns are always read as those of the classes in ascending order.
    """
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

    ``classes`` are those of two columns; a frame whose names are in another order is refused.
    """
    matrix = to_numbers(scores, name)
    if matrix.ndim == 2 and matrix.shape[1] == 1:
        matrix = matrix[:, 0]
    if matrix.ndim == 2 and matrix.shape[1] == 2:
        if classes is not None:
            check_class_columns(scores, classes, name)
        _check_predict_proba(matrix, name, getattr(scores, "dtype", None))
        matrix = matrix[:, positive_column]
    if matrix.ndim == 0:
        raise InputError(f"{name} must be 1-d, but a single value came. Pass [{matrix!s}].")
    if matrix.ndim == 2 and matrix.shape[1] > 2:
        raise InputError(
            f"{name} must be one score per row (1-d, one column, or the two of a binary "
            f"predict_proba), but {matrix.shape[1]} columns came. For several classes use "
            "CalibratedClassifier, which calibrates one class against the rest."
        )
    if matrix.ndim != 1:
        raise InputError(
            f"{name} must be 1-d with one score per row, but their shape is {matrix.shape}."
        )
    if not len(matrix):
        raise InputError(f"{name} must have at least one row, but none came (0 samples).")
    _check_finite(matrix, name)
    clean = np.ascontiguousarray(matrix, dtype=np.float64)
    return clean + 0.0 if (clean == 0.0).any() else clean  # −0.0 joins 0.0, as in SQL


def read_probabilities(
    p: Any, *, positive_column: int = 1, name: str = "p", classes: Classes = None
) -> Array:
    """Probabilities of the positive class: scores, see `read_scores`, that must lie in [0, 1]."""
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
    """The weights of n rows as float64, checked; None where all rows count once."""
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


def read_number_column(values: Any, name: str, *, signed: bool = False) -> Array:
    """A column of finite numbers, which must not be negative unless ``signed``."""
    column = to_numbers(values, name)
    if column.ndim != 1:
        raise InputError(f"{name} must be 1-d, but its shape is {column.shape}.")
    _check_finite(column, name)
    clean = np.ascontiguousarray(column, dtype=np.float64)
    if not signed and (clean < 0).any():
        first = int(np.argmax(clean < 0))
        raise InputError(f"{name} must be at least 0, but cell {first} holds {clean[first]:g}.")
    return clean


def check_word(name: str, value: Any, words: Collection[str]) -> None:
    """Refuse a parameter that is not one of a few words."""
    if not isinstance(value, str) or value not in words:
        allowed = " or ".join(map(repr, words))
        hint = did_you_mean(value, words)
        raise ParameterError(f"{name} must be {allowed}, but {brief(value)} came.{hint}")


def check_lengths(**lengths: int) -> None:
    """Refuse columns of different lengths."""
    (first, n), (second, m) = lengths.items()
    if n != m:
        raise InputError(
            f"{first} and {second} must have one entry per row, but {first} has {n} and {second} "
            f"has {m} (inconsistent numbers of samples). Pass columns of the same rows."
        )


# --- Checks of numbers ----------------------------------------------------------------------------


#: which of scores and labels comes first
ORDER = (
    "The order is fit(scores, y) and calibration_report(scores, y), but evaluate(y, p), as in all "
    "measures and diagrams."
)


def to_numbers(values: Any, name: str) -> NDArray[Any]:
    """An array of real numbers in their own type; a frame becomes (n, columns)."""
    array = to_matrix(values, name)
    kind = array.dtype.kind
    if kind == "c":
        raise InputError(f"Complex data not supported: {name} must be real numbers.")
    if kind not in "biuf":
        example = f" (such as {plain(array.flat[0])!r})" if array.size else ""
        raise InputError(
            f"{name} must be numbers, but values of type {array.dtype} came{example}. Convert them "
            f"first, for example with astype(float). Are scores and labels swapped? {ORDER}"
        )
    return array


def finite_float(value: Any, where: str, largest: float = math.inf) -> float:
    """A finite number as a Python float."""
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float, np.number)):
        raise InputError(f"{where} must be a number, but {brief(value)} came.")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        number = math.inf
    if not math.isfinite(number) or abs(number) > largest:
        bound = "" if largest == math.inf else f" and at most {largest:g}"
        raise InputError(f"{where} must be finite{bound}, but {brief(value)} came.")
    return number


def _check_finite(array: NDArray[Any], name: str) -> None:
    """Refuse a vector that holds NaN or infinity."""
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
    what = counts_in_words({"NaN": missing, "infinite": infinite}, n)
    raise InputError(
        f"{name} must be finite: {what} (first at row {int(np.argmax(bad))}). "
        f"Drop or impute {'it' if bad.sum() == 1 else 'them'} first."
    )


def _check_predict_proba(matrix: NDArray[Any], name: str, kind: Any) -> None:
    """Refuse two columns whose rows do not sum to 1, as those of a binary predict_proba do.

    ``kind`` is the dtype that came: of 16 bits, sums are less exact.
    """
    if not len(matrix):
        return
    half = "float" in str(kind) and getattr(kind, "itemsize", 8) == 2
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


# --- Matrices of scores, checked block by block: finite rows, and rows that are distributions -----


#: float64, or float32 where float32 came: a matrix may be larger than memory
Scores = NDArray[Any]

#: numbers per block of rows: its temporaries stay in cache
BLOCK = 1 << 17
#: how far the sum of a row of probabilities may be from one: so much, half a percent for each class
#: (they may be rounded to two digits), and no more than that for twenty classes
SUM_TOLERANCE, ROUNDED, MOST_CLASSES = 1e-3, 0.005, 20
FOR_LOGITS = 'For logits use scale="raw".'


def row_blocks(n: int, k: int) -> Iterator[slice]:
    """Slices of n rows of k numbers, with about `BLOCK` numbers each."""
    step = max(1, BLOCK // max(k, 1))
    return (slice(start, start + step) for start in range(0, n, step))


def refuse_infinite(array: Any, bad: Flags, name: str = "scores") -> None:
    """Refuse rows that hold NaN or infinity; ``bad`` flags them."""
    if not bad.any():
        return
    first = int(np.argmax(bad))
    row = on_host(array[first])
    column = int(np.argmin(np.isfinite(row)))
    word = "NaN" if np.isnan(row[column]) else "infinity"
    raise InputError(
        f"{name} must be finite: {int(bad.sum())} of {len(bad)} rows hold NaN or infinity (first "
        f"at row {first}, column {column}: {word}). Drop or impute them first."
    )


def check_distributions(array: Scores, name: str = "scores", *, advice: str = FOR_LOGITS) -> None:
    """Refuse rows that are no distributions, see `are_distributions`."""
    refuse_distributions(array, flag_rows(array, _not_distributions), name, advice)


def refuse_distributions(
    array: Any, bad: Flags, name: str = "scores", advice: str = FOR_LOGITS
) -> None:
    """Refuse rows that are no distributions; ``bad`` flags them."""
    if not bad.any():
        return
    first, count = int(np.argmax(bad)), int(bad.sum())
    row = on_host(array[first])
    values = ", ".join(f"{value:g}" for value in row[:6])
    with np.errstate(over="ignore"):
        total = row.sum(dtype=np.float64)
    raise InputError(
        f"{name} must be probabilities, each row in [0, 1] with the sum 1, but {count} of "
        f"{len(bad)} rows {'is' if count == 1 else 'are'} not (first at row {first}: "
        f"[{values}{', …' if len(row) > 6 else ''}], sum {total:g}). {advice}"
    )


def are_distributions(array: Scores) -> bool:
    """Whether every row is a distribution: entries in [0, 1] whose sum is one, up to rounding.

    >>> are_distributions(np.array([[0.33, 0.33, 0.33]])), are_distributions(np.array([[0.5, 0.4]]))
    (True, False)
    """
    parts = (array[rows] for rows in row_blocks(*array.shape))
    return not any(_not_distributions(part).any() for part in parts)


def flag_rows(array: Scores, is_bad: Callable[[Scores], Any]) -> Flags:
    """Flags of the bad rows, found block by block."""
    parts = [is_bad(array[rows]) for rows in row_blocks(*array.shape)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)


def _not_distributions(part: Scores) -> Flags:
    """Flags of the rows that are no distributions."""
    outside = np.asarray((part < 0).any(axis=1) | (part > 1).any(axis=1))
    if outside.all():
        return outside
    sums = np.clip(part, 0.0, 1.0).sum(axis=1, dtype=np.float64)
    return np.asarray(outside | (np.abs(sums - 1.0) > sum_tolerance(part.shape[1])))


def sum_tolerance(classes: int) -> float:
    """The largest distance from one that the sum of a row of probabilities may have.

    >>> sum_tolerance(3), sum_tolerance(1000)
    (0.016, 0.101)
    """
    return SUM_TOLERANCE + ROUNDED * min(classes, MOST_CLASSES)


# --- Labels of any kind: the classes, and which of them each row has ------------------------------


#: the other class, where one label alone tells it
PARTNERS: dict[float, tuple[int, int]] = {0: (0, 1), 1: (0, 1), -1: (-1, 1)}  # False is 0

#: what is no label, but may hold several
CONTAINERS = (list, tuple, dict, set, frozenset, np.ndarray)


def read_labels(y: Any, *, pos_label: Any = None, classes: Any = None, soft: bool = False) -> Rows:
    """Rows without scores, from a column of labels of two classes.

    ``classes`` names both, for columns that may hold only one of them. With ``soft``, fractions are
    probabilities of the class 1; otherwise they are refused.
    """
    column = to_column(y, "y")
    if soft and (found := soft_label_rows(column, pos_label, classes)) is not None:
        return found
    array = _label_column(column)
    first, second = (_check_label(value, "y") for value in _two_labels(array))
    ordered = _sort_label_pair(_label_pair(first, second, classes), array.dtype)
    positive = _positive_label(ordered, pos_label)
    return Rows(np.empty(0), _equals_label(array, positive), None, ordered, positive)


def read_class_pair(classes: Any, pos_label: Any = None) -> tuple[NDArray[Any], Any]:
    """Two classes in ascending order (default 0 and 1), and which of them is positive.

    For tables, which hold no labels.
    """
    pair = (0, 1) if classes is None else _read_class_pair(classes)
    ordered = _sort_label_pair(pair, np.asarray(pair).dtype)
    return ordered, _positive_label(ordered, pos_label)


def read_sorted_classes(
    y: Any, *, classes: Any = None, columns: int = 0
) -> tuple[NDArray[Any], Index]:
    """The classes in ascending order, and the position of each row's label among them.

    ``classes`` names all of them where y may lack some. ``columns`` is the number of columns of the
    scores. If the labels are whole numbers from 0 to columns − 1, they are read as column numbers.
    If 0 is not among them, they may count from 1, and are refused.

    >>> read_sorted_classes(["b", "c", "b"])
    (array(['b', 'c'], dtype='<U1'), array([0, 1, 0]))
    >>> read_sorted_classes([2, 0, 2], columns=4)
    (array([0, 1, 2, 3]), array([2, 0, 2]))
    """
    array = _label_column(to_column(y, "y"))
    found, codes = _unique_labels(array, "y")
    if classes is None:
        places = found.dtype.kind in "iu" and found[0] >= 0 and found[-1] < columns
        if places and len(found) < columns:
            if found[0] > 0 and columns > 2:
                some = ", ".join(str(plain(label)) for label in found[:5])
                raise InputError(
                    f"the classes of the {columns} columns must be told, since y lacks some: it "
                    f"holds {some}{', …' if len(found) > 5 else ''}, but no 0, so that classes may "
                    f"count from 0 or from 1. Say which: classes=range({columns}) or "
                    f"classes=range(1, {columns + 1})."
                )
            return np.arange(columns), found.astype(np.intp)[codes]
        return found, codes
    known, _ = _unique_labels(_check_class_list(to_column(classes, "classes")), "classes")
    if found.dtype.kind == known.dtype.kind != "O":
        where = np.minimum(np.searchsorted(known, found), len(known) - 1)
        strange = known[where] != found
    else:
        hits = (_equals_label(known, value) for value in found)
        where = np.array([hit.argmax() if hit.any() else -1 for hit in hits], dtype=np.intp)
        strange = where < 0
    if strange.any():
        raise InputError(
            f"y must hold only the classes {[plain(c) for c in known][:20]}, but "
            f"{plain(found[strange.argmax()])!r} came. Correct y, or name all classes."
        )
    return known, where[codes]


def read_class_labels(
    y: Any, classes: Any = None, columns: int | None = None, name: str = "the scores"
) -> tuple[NDArray[Any], Index]:
    """The classes in the order of ``classes`` (default: ascending), and the position of each row's
    label among them.

    ``columns`` is the number of classes that must be named: the columns of what errors call
    ``name``.

    >>> read_class_labels(["mid", "low"], ["low", "mid", "high"])
    (array(['low', 'mid', 'high'], dtype='<U4'), array([1, 0]))
    """
    if classes is None:
        return read_sorted_classes(y, columns=columns or 0)
    given = to_column(classes, "classes")
    ordered, places = read_sorted_classes(given)
    if len(ordered) != len(given) or len(given) != (len(given) if columns is None else columns):
        of = "class" if columns is None else f"class for each of the {columns} columns of {name}"
        raise InputError(
            f"classes must name a different {of}, but {[plain(one) for one in given[:20]]} came."
        )
    _, codes = read_sorted_classes(y, classes=given)
    return ordered[places], np.argsort(places)[codes]


def _unique_labels(array: NDArray[Any], name: str) -> tuple[NDArray[Any], Index]:
    """The distinct labels in ascending order, and the position of each row's among them."""
    try:
        few = _unique_if_few(array) if array.dtype.kind in "OUS" else None
        values, codes = few or np.unique(array, return_inverse=True)
    except TypeError as wrong:
        raise InputError(
            f"{name} must hold labels of one type, but some cannot be ordered: {wrong}. Convert "
            "them to strings."
        ) from wrong
    if values.dtype.kind in "fO":
        checked = [_check_label(value, name) for value in values]
        values = values if values.dtype.kind == "f" else object_array(checked)
    kinds = {type(value) for value in values} if values.dtype.kind == "O" else set()
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        values = np.array(values.tolist())  # scikit-learn's models take no boxed labels
    return values, codes.astype(np.intp, copy=False)


def _unique_if_few(array: NDArray[Any]) -> tuple[NDArray[Any], Index] | None:
    """What ``np.unique`` gives, found by comparing labels for equality and not by sorting. None for
    more than thirty labels, for which sorting is faster."""
    codes, rest = np.empty(len(array), dtype=np.intp), np.arange(len(array))
    found: list[int] = []
    while len(rest):
        if len(found) == 30:
            return None
        same = _equals_label(array[rest], array[rest[0]])
        same[0] = True  # whatever its own idea of equality
        codes[rest[same]] = len(found)
        found.append(int(rest[0]))
        rest = rest[~same]
    values, place = np.unique(array[found], return_inverse=True)
    return values, place[codes]


def _label_column(array: NDArray[Any], *, soft: bool = False) -> NDArray[Any]:
    """A column of labels, checked; fractions are allowed only if ``soft``."""
    if array.ndim == 2 and array.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of "
            "y to (n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=caller_level(),
        )
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"y must be 1-d, one label per row, but its shape is {array.shape}: bad input shape. "
            "Pass the column of labels; probabilities of each class are not taken as labels. Are "
            f"scores and labels swapped? {ORDER}"
        )
    if not len(array):
        raise InputError("y must have at least one row, but none came (0 samples).")
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: y must be labels.")
    if array.dtype.kind == "f":
        bad = ~np.isfinite(array)
        if bad.any():
            word = "NaN" if np.isnan(array).any() else "infinity"
            raise InputError(
                f"Input y contains {word}: labels must be complete, but {int(bad.sum())} of "
                f"{len(array)} are not (first at row {int(np.argmax(bad))}). Drop those rows."
            )
        fractions = array != np.floor(array)
        if not soft and fractions.any():
            row = int(np.argmax(fractions))
            raise InputError(
                "Unknown label type: y must be two classes, but fractions (soft labels) came: "
                f"{int(fractions.sum())} of {len(array)}, first {array[row]:g} at row {row}. "
                f"{REFUSED}"
            )
    for kind in set(map(type, array)) if array.dtype.kind == "O" else ():
        if issubclass(kind, CONTAINERS):
            raise InputError(
                f"y must hold one label per row, a word or a number, but a {kind.__name__} came "
                "among them."
            )
    return array


def _equals_label(array: NDArray[Any], value: Any) -> Flags:
    """Flags of the entries that equal a value. An integer too large for a float equals no float."""
    try:
        return np.asarray(array == value, dtype=bool)
    except (OverflowError, ArithmeticError):
        return np.array([_is_same_label(one, value) for one in array], dtype=bool)


def _is_same_label(one: Any, other: Any) -> bool:
    """Whether two labels are equal. An integer too large for a float equals no float."""
    try:
        return bool(one == other)
    except (OverflowError, ArithmeticError):
        return False


def _check_label(value: Any, name: str) -> Any:
    """The label, if it is no fraction. Whole numbers of other types (1.0 as a Decimal) become
    ints."""
    number = isinstance(value, (Real, Decimal))
    if not number or isinstance(value, (Integral, np.bool_)):
        return value
    try:
        whole = int(value) == value
    except (OverflowError, ValueError):  # infinity and NaN
        whole = False
    if not whole:
        raise InputError(
            f"Unknown label type: {name} must be classes, words or whole numbers, but fractions "
            f"(soft labels) came, such as {brief(plain(value))}. {REFUSED if name == 'y' else ''}"
        )
    return value if isinstance(value, (float, np.floating)) else int(value)


def _check_class_list(array: NDArray[Any]) -> NDArray[Any]:
    """The labels that name the classes, which must be a list."""
    if array.ndim != 1:
        raise InputError(f"classes must be a list of labels, but its shape is {array.shape}.")
    return array


def _two_labels(array: NDArray[Any]) -> tuple[Any, Any]:
    """The two different labels of y, found without sorting; the second is None if there is one."""
    first = array[0]
    other = ~_equals_label(array, first)
    if not other.any():
        return first, None
    second = array[int(np.argmax(other))]
    more = other & ~_equals_label(array, second)
    if more.any():
        third = plain(array[int(np.argmax(more))])
        raise InputError(
            "y must hold two classes; Only binary classification is supported here, but at least "
            f"three came: {brief(plain(first))}, {brief(plain(second))} and {brief(third)}. For "
            "several classes use CalibratedClassifier, which calibrates one class against the rest."
            f"{f' If they are shares: {DIVIDE}.' if isinstance(third, (int, float)) else ''}"
        )
    return first, second


def _label_pair(first: Any, second: Any, classes: Any) -> tuple[Any, Any]:
    """The two classes: those that the user named, else the labels found in y."""
    if classes is not None:
        pair = _read_class_pair(classes)
        for value in (first, second):
            if value is not None and not any(_is_same_label(value, known) for known in pair):
                raise InputError(
                    f"y must hold only the classes {[plain(c) for c in pair]}, but "
                    f"{plain(value)!r} came. Correct y or the parameter classes."
                )
        return pair
    if second is not None:
        if alike := spelling_advice([first, second]):
            raise InputError(
                f"y must hold two classes, but {alike} If they are two, name them: classes=[...]."
            )
        return first, second
    value = plain(first)
    if isinstance(value, (bool, int, float)) and value in PARTNERS:
        kind = type(value)
        return kind(PARTNERS[value][0]), kind(PARTNERS[value][1])
    raise InputError(
        f"y must hold two classes, but only one class came: {value!r}. If the other is known, name "
        f"both: classes=[{value!r}, ...]."
    )


def spelling_advice(labels: Iterable[Any]) -> str:
    """Advice if two labels differ only in case or blanks; otherwise empty.

    >>> spelling_advice(["no", "yes", "Yes"])
    "'yes' and 'Yes' differ only in case: spell them alike."
    """
    seen: dict[str, str] = {}
    for word in (label for label in labels if isinstance(label, str)):
        other = seen.setdefault(" ".join(word.split()).casefold(), word)
        if other != word:
            what = "case" if other.casefold() == word.casefold() else "case or blanks"
            return f"{brief(other)} and {brief(word)} differ only in {what}: spell them alike."
    return ""


def _read_class_pair(classes: Any) -> tuple[Any, Any]:
    """The two labels that name the classes."""
    single = isinstance(classes, (str, bytes, Real))
    column = np.array([classes]) if single else _check_class_list(to_column(classes, "classes"))
    given = list(classes) if isinstance(classes, (list, tuple)) else list(column)
    values = [_check_label(value, "classes") for value in given]
    if len(values) != 2 or values[0] == values[1]:
        raise InputError(f"classes must be two different labels, but {values!r} came.")
    return values[0], values[1]


def _sort_label_pair(pair: tuple[Any, Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The two labels in ascending order, as an array. It has the type of y if that can hold
    both."""
    a, b = pair
    try:
        low, high = (a, b) if a < b else (b, a)
    except TypeError as wrong:
        raise InputError(
            f"y must hold labels of one type, but {plain(a)!r} and {plain(b)!r} cannot be ordered. "
            "Convert them to strings."
        ) from wrong
    if dtype.kind == "O":
        values = [plain(low), plain(high)]
        simple = all(type(value) in (str, int, bool) for value in values)
        return np.array(values) if simple else object_array(values)
    if dtype.kind not in "US":
        with suppress(OverflowError, TypeError, ValueError):
            array = np.array([low, high], dtype=dtype)
            if array[0] == low and array[1] == high:
                return array
    return np.array([low, high])


def _positive_label(ordered: NDArray[Any], pos_label: Any) -> Any:
    """The positive one of two classes: ``pos_label``, by default the second."""
    if pos_label is None:
        return ordered[1]
    for value in ordered:
        if value == pos_label and isinstance(plain(value), str) == isinstance(pos_label, str):
            return value
    raise InputError(
        f"pos_label must be one of the classes {[plain(c) for c in ordered]}, but "
        f"{plain(pos_label)!r} came."
    )


# --- Soft labels: a probability of the positive class for each row, in place of its class ---------
# A row of score s, soft label q and weight w counts as two halves of one row: a positive of weight
# w·q and a negative of weight w·(1 − q).


#: what to do about soft labels outside [0, 1]
DIVIDE = "divide percentages by 100, and votes by their number"
#: what to do about fractions where labels must be classes
REFUSED = (
    f"Are scores and labels swapped? {ORDER} If y are probabilities of the positive class: the fit "
    "of a calibrator of one score, and of CalibratedClassifier, takes them as floats. For "
    "evaluate and reports, pass ScoreTable.from_soft_labels(scores, y)."
)


def soft_label_rows(
    column: NDArray[Any], pos_label: Any = None, classes: Any = None
) -> Rows | None:
    """Rows without scores, from soft labels: probabilities of the class 1.

    The result is None if no label is a fraction. A row counts as positive from ½ on. Classes other
    than 0 and 1 are refused, because they leave open which class the probability belongs to.

    >>> soft_label_rows(np.array([0.0, 0.3, 1.0])).share.tolist()
    [0.0, 0.3, 1.0]
    >>> soft_label_rows(np.array([0.0, 1.0])) is None, soft_label_rows(np.array([1, 2])) is None
    (True, True)
    """
    one = column.ndim == 1 or (column.ndim == 2 and column.shape[1] == 1)
    if not one or column.dtype.kind != "f" or not bool((column != np.floor(column)).any()):
        return None
    share = _label_column(column, soft=True).astype(np.float64)
    outside = (share < 0.0) | (share > 1.0)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"{DIVIDE.capitalize()}, or pass labels that are classes. Unknown label type: y must "
            "be two classes, or soft labels (probabilities of the positive class, in [0, 1]), but "
            f"{int(outside.sum())} of {len(share)} are outside [0, 1], and some are fractions "
            f"(first outside at row {row}: {share[row]:g})."
        )
    named = [0, 1] if classes is None else [plain(label) for label in to_column(classes, "classes")]
    other = len(named) != 2 or 0 not in named or 1 not in named
    if other or (pos_label is not None and plain(pos_label) != 1):
        what = f"classes={named!r}" if other else f"pos_label={plain(pos_label)!r}"
        raise InputError(
            "soft labels are probabilities of the class 1, and the classes are 0 and 1, but "
            f"{what} came, which leaves open whose probability y is. Leave it out; or use "
            "fit_table(ScoreTable.from_soft_labels(scores, p)), where p is the probability of "
            "pos_label."
        )
    return Rows(np.empty(0), share >= 0.5, None, np.array([0, 1]), np.int64(1), share)


def check_not_swapped(scores: Array) -> None:
    """Refuse scores that hold at most two different whole numbers: they may be the labels."""
    low, high = float(scores.min()), float(scores.max())
    ends = (scores == low) | (scores == high)
    if low.is_integer() and high.is_integer() and bool(ends.all()):
        came = f"{low:g}" if low == high else f"{low:g} and {high:g}"
        raise InputError(
            f"scores must be what a model said, but they hold only {came}, while y holds "
            f"fractions: are the two swapped? {ORDER} If y are soft labels of such scores, name "
            "the classes: classes=[0, 1]."
        )


def split_soft_labels(share: Array, weight: Array | None) -> tuple[Index, Index, Array]:
    """Two half rows, a negative and a positive one, for each row with a soft label: their rows,
    codes and weights.

    The halves come in the order of the rows, the negative half first. Of a row with weight w and
    soft label q, the negative half (code 0) weighs w·(1 − q), and the positive half (code 1) weighs
    w·q. A half of weight zero is kept, so that every row counts twice also for methods that ignore
    weights. Rows of weight zero are left out. O(n).

    >>> rows, codes, weight = split_soft_labels(np.array([0.25, 1.0]), np.array([2.0, 3.0]))
    >>> rows.tolist(), codes.tolist(), weight.tolist()
    ([0, 0, 1, 1], [0, 1, 0, 1], [1.5, 0.5, 0.0, 3.0])
    """
    size = np.ones(len(share)) if weight is None else weight
    both = np.column_stack((size * (1.0 - share), size * share)).reshape(-1)
    (kept,) = np.nonzero(np.repeat(size > 0.0, 2))
    return kept // 2, kept % 2, both[kept]


# --- Limits of parameters: declared once, checked once, and used to word the errors ---------------


@dataclass(frozen=True)
class OneOf:
    """The limits of a parameter that is a word from a short list."""

    words: tuple[Any, ...]

    def allows(self, value: Any) -> bool:
        """Whether the value is one of the words, and of the same type."""
        value = plain(value)
        return any(type(value) is type(word) and value == word for word in self.words)

    def __str__(self) -> str:
        return " or ".join(repr(word) for word in self.words)


@dataclass(frozen=True)
class Number:
    """The limits of a number: at least ``low`` (above it if ``open``), at most ``high``."""

    low: float
    high: float = float("inf")
    whole: bool = False
    open: bool = False

    def allows(self, value: Any) -> bool:
        """Whether the value is a finite number between the limits."""
        kind = Integral if self.whole else Real
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
            return False
        number = float(value)
        above = number > self.low if self.open else number >= self.low
        return above and number <= self.high and abs(number) != float("inf")

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        bound = f"{kind} {'above' if self.open else 'of at least'} {self.low:g}"
        return bound if self.high == float("inf") else f"{bound} and at most {self.high:g}"


@dataclass(frozen=True)
class Each:
    """The limits of a parameter that is a tuple or list, possibly empty, of such values."""

    limit: Number

    def allows(self, value: Any) -> bool:
        """Whether the value is a tuple or list whose items are all within the limit."""
        return isinstance(value, (tuple, list)) and all(self.limit.allows(v) for v in value)

    def __str__(self) -> str:
        return f"a tuple, each of its entries {self.limit}"


class Limit(Protocol):
    """What `check_parameters` needs of a limit: a test of values, and words for errors."""

    def allows(self, value: Any) -> bool:
        """Whether the parameter may have this value."""

    def __str__(self) -> str:
        """What the parameter must be, in the words of an error."""


def check_parameters(estimator: Any, limits: Mapping[str, tuple[Limit, ...]]) -> None:
    """Check each parameter of an estimator against its limits; the first wrong one is a
    ParameterError."""
    for name, allowed in limits.items():
        value = getattr(estimator, name)
        if not any(limit.allows(value) for limit in allowed):
            words = [w for limit in allowed if isinstance(limit, OneOf) for w in limit.words]
            raise ParameterError(
                f"{name} of {type(estimator).__name__} must be "
                f"{', or '.join(str(limit) for limit in allowed)}, but {value!r} came."
                f"{did_you_mean(value, words)}"
            )
