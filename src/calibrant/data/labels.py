"""Labels of any kind: who is positive, which classes there are, and soft labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.columns import plain, to_column
from calibrant.data.documents import shown
from calibrant.errors import InputError, caller_level

#: the other class, where one label alone tells it
PARTNERS: dict[float, tuple[int, int]] = {0: (0, 1), 1: (0, 1), -1: (-1, 1)}  # False is 0

#: what is no label, but may hold several
CONTAINERS = (list, tuple, dict, set, frozenset, np.ndarray)


@dataclass(frozen=True)
class Labels:
    """Who is positive, the two classes in sorted order, and which of them is the positive one.

    Of soft labels ``share`` is the probability of the positive class, and positive is who has at
    least ½.
    """

    positive: Flags
    classes: NDArray[Any]
    pos_label: Any
    share: Array | None = None

    @property
    def positive_column(self) -> int:
        return 0 if self.classes[0] == self.pos_label else 1


def read_labels(
    y: Any, *, pos_label: Any = None, classes: Any = None, soft: bool = False
) -> Labels:
    """Code a column of labels; ``classes`` names the two where the column may hold only one.

    With ``soft`` fractions are probabilities of the class 1; without, they are refused.
    """
    column = to_column(y, "y")
    if soft and (found := soft_labels(column, pos_label, classes)) is not None:
        return found
    array = _vector(column)
    first, second = (_label(value, "y") for value in _two_values(array))
    pair = _pair(first, second, classes)
    ordered = _sorted_pair(pair, array.dtype)
    positive = _positive_label(ordered, pos_label)
    mask = _are(array, positive)
    return Labels(mask, ordered, positive)


def soft_labels(column: NDArray[Any], pos_label: Any = None, classes: Any = None) -> Labels | None:
    """Labels that are probabilities of the class 1; None where y holds no fraction.

    >>> soft_labels(np.array([0.0, 0.3, 1.0])).share.tolist()
    [0.0, 0.3, 1.0]
    >>> soft_labels(np.array([0.0, 1.0])) is None
    True
    """
    if not are_soft(column):
        return None
    share = check_shares(_vector(column, soft=True))
    check_names(pos_label, classes)
    return Labels(share >= 0.5, np.array([0, 1]), np.int64(1), share)


def read_classes(classes: Any, pos_label: Any = None) -> tuple[NDArray[Any], Any]:
    """The two classes (default 0 and 1) of a table, which knows no labels, and the positive one."""
    pair = (0, 1) if classes is None else _given_pair(classes)
    ordered = _sorted_pair(pair, np.asarray(pair).dtype)
    return ordered, _positive_label(ordered, pos_label)


def read_many(y: Any, *, classes: Any = None, columns: int = 0) -> tuple[NDArray[Any], Index]:
    """Any number of classes, sorted, and which of them each row has; ``classes`` names them all.

    ``columns`` is the number of columns of the scores. Where y lacks some classes, whole numbers
    from 0 to columns − 1 are the places of columns. If 0 is lacking, too, they may be counted from
    1, and are refused.

    >>> read_many(["b", "c", "b"])
    (array(['b', 'c'], dtype='<U1'), array([0, 1, 0]))
    >>> read_many([2, 0, 2], columns=4)
    (array([0, 1, 2, 3]), array([2, 0, 2]))
    """
    array = _vector(to_column(y, "y"))
    found, codes = _unique(array, "y")
    if classes is None:
        places = found.dtype.kind in "iu" and found[0] >= 0 and found[-1] < columns
        if places and len(found) < columns:
            if found[0] > 0 and columns > 2:
                raise InputError(_counted_from_zero_or_one(found, columns))
            return np.arange(columns), found.astype(np.intp)[codes]
        return found, codes
    known, _ = _unique(_row(to_column(classes, "classes")), "classes")
    where = [int(np.argmax(hit)) if (hit := _are(known, value)).any() else -1 for value in found]
    if -1 in where:
        raise InputError(
            f"y must hold only the classes {[plain(c) for c in known][:20]}, but "
            f"{plain(found[where.index(-1)])!r} came. Correct y, or name all classes."
        )
    return known, np.asarray(where, dtype=np.intp)[codes]


def read_in_order(
    y: Any, classes: Any, columns: int | None = None, name: str = "the scores"
) -> tuple[NDArray[Any], Index]:
    """The classes in the order in which ``classes`` names them, and the code of each label.

    ``columns`` is how many there must be: the columns of what is called ``name``.

    >>> read_in_order(["mid", "low"], ["low", "mid", "high"])
    (array(['low', 'mid', 'high'], dtype='<U4'), array([1, 0]))
    """
    given = to_column(classes, "classes")
    ordered, places = read_many(given)
    if len(ordered) != len(given) or len(given) != (len(given) if columns is None else columns):
        of = "class" if columns is None else f"class for each of the {columns} columns of {name}"
        raise InputError(
            f"classes must name a different {of}, but {[plain(one) for one in given[:20]]} came."
        )
    _, codes = read_many(y, classes=given)
    column_of = np.empty(len(given), dtype=np.intp)
    column_of[places] = np.arange(len(given))
    return ordered[places], column_of[codes]


def _unique(array: NDArray[Any], name: str) -> tuple[NDArray[Any], Index]:
    """Distinct values in order, and which of them each row has."""
    try:
        values, codes = _few(array) if array.dtype.kind in "OUS" else (None, None)
        if values is None or codes is None:
            values, codes = np.unique(array, return_inverse=True)
    except TypeError as wrong:
        raise InputError(
            f"{name} must hold labels of one type, but some cannot be ordered: {wrong}. Convert "
            "them to strings."
        ) from wrong
    if values.dtype.kind in "fO":
        checked = [_label(value, name) for value in values]
        values = values if values.dtype.kind == "f" else _boxed(checked)
    kinds = {type(value) for value in values} if values.dtype.kind == "O" else set()
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        values = np.array(values.tolist())  # scikit-learn's models take no boxed labels
    return values, codes.astype(np.intp, copy=False)


def _few(array: NDArray[Any], most: int = 30) -> tuple[Any, Any]:
    """As np.unique, found by equality with one value after another; None if there are too many."""
    codes, rest = np.empty(len(array), dtype=np.intp), np.arange(len(array))
    found: list[int] = []
    while len(rest):
        if len(found) == most:
            return None, None
        same = _are(array[rest], array[rest[0]])
        same[0] = True  # whatever its own idea of equality
        codes[rest[same]] = len(found)
        found.append(int(rest[0]))
        rest = rest[~same]
    values, place = np.unique(array[found], return_inverse=True)
    return values, place[codes]


def _vector(array: NDArray[Any], *, soft: bool = False) -> NDArray[Any]:
    if array.ndim == 2 and array.shape[1] == 1:
        _warn_column_vector()
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"y must be 1-d, one label per row, but its shape is {array.shape}: bad input shape. "
            "Pass the column of labels; probabilities of each class are not taken as labels."
        )
    if not len(array):
        raise InputError("y must have at least one row, but none came (0 samples).")
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: y must be labels.")
    if array.dtype.kind == "f":
        _refuse_missing(array)
        if not soft:
            _refuse_soft(array)
    kinds = set(map(type, array)) if array.dtype.kind == "O" else set()
    for kind in kinds:
        if issubclass(kind, CONTAINERS):
            raise InputError(
                f"y must hold one label per row, a word or a number, but a {kind.__name__} came "
                "among them."
            )
    return array


def _are(array: NDArray[Any], value: Any) -> Flags:
    """Which entries equal a value; numbers beyond floats equal no float."""
    try:
        return np.asarray(array == value, dtype=bool)
    except (OverflowError, ArithmeticError):
        return np.array([_is(one, value) for one in array], dtype=bool)


def _is(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except (OverflowError, ArithmeticError):
        return False


def _label(value: Any, name: str) -> Any:
    """A label that is no fraction; whole decimals and fractions as integers."""
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
            f"(soft labels) came, such as {shown(plain(value))}. {REFUSED if name == 'y' else ''}"
        )
    return value if isinstance(value, (float, np.floating)) else int(value)


def _row(array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 1:
        raise InputError(f"classes must be a list of labels, but its shape is {array.shape}.")
    return array


def _warn_column_vector() -> None:
    from sklearn.exceptions import DataConversionWarning

    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
        "to (n_samples,), for example using ravel().",
        DataConversionWarning,
        stacklevel=caller_level(),
    )


def _counted_from_zero_or_one(found: NDArray[Any], columns: int) -> str:
    some = ", ".join(str(plain(label)) for label in found[:5])
    return (
        f"the classes of the {columns} columns must be told, since y lacks some: it holds {some}"
        f"{', …' if len(found) > 5 else ''}, but no 0, so that classes may count from 0 or from 1. "
        f"Say which: classes=range({columns}) or classes=range(1, {columns + 1})."
    )


def _refuse_missing(y: NDArray[Any]) -> None:
    bad = ~np.isfinite(y)
    if bad.any():
        word = "NaN" if np.isnan(y).any() else "infinity"
        raise InputError(
            f"Input y contains {word}: labels must be complete, but {int(bad.sum())} of {len(y)} "
            f"are not (first at row {int(np.argmax(bad))}). Drop those rows."
        )


def _refuse_soft(y: NDArray[Any]) -> None:
    soft = y != np.floor(y)
    if soft.any():
        row = int(np.argmax(soft))
        raise InputError(
            "Unknown label type: y must be two classes, but fractions (soft labels) came: "
            f"{int(soft.sum())} of {len(y)}, first {y[row]:g} at row {row}. {REFUSED}"
        )


def _two_values(array: NDArray[Any]) -> tuple[Any, Any]:
    """The one or two values of y (second None), found without sorting."""
    first = array[0]
    other = ~_are(array, first)
    if not other.any():
        return first, None
    second = array[int(np.argmax(other))]
    more = other & ~_are(array, second)
    if more.any():
        third = plain(array[int(np.argmax(more))])
        raise InputError(
            "y must hold two classes; Only binary classification is supported here, but at least "
            f"three came: {shown(plain(first))}, {shown(plain(second))} and {shown(third)}. For "
            "several classes use CalibratedClassifier, which calibrates one class against the rest."
            f"{f' If they are shares: {DIVIDE}.' if isinstance(third, (int, float)) else ''}"
        )
    return first, second


def _pair(first: Any, second: Any, classes: Any) -> tuple[Any, Any]:
    if classes is not None:
        pair = _given_pair(classes)
        for value in (first, second):
            if value is not None and not any(_is(value, known) for known in pair):
                raise InputError(
                    f"y must hold only the classes {[plain(c) for c in pair]}, but "
                    f"{plain(value)!r} came. Correct y or the parameter classes."
                )
        return pair
    if second is not None:
        if alike := spelled_apart([first, second]):
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


def spelled_apart(labels: Iterable[Any]) -> str:
    """What to do about two words that differ only in case or blanks; empty where there are none.

    >>> spelled_apart(["no", "yes", "Yes"])
    "'yes' and 'Yes' differ only in case: spell them alike."
    """
    seen: dict[str, str] = {}
    for word in (label for label in labels if isinstance(label, str)):
        other = seen.setdefault(" ".join(word.split()).casefold(), word)
        if other != word:
            what = "case" if other.casefold() == word.casefold() else "case or blanks"
            return f"{shown(other)} and {shown(word)} differ only in {what}: spell them alike."
    return ""


def _given_pair(classes: Any) -> tuple[Any, Any]:
    single = isinstance(classes, (str, bytes, Real))
    column = np.array([classes]) if single else _row(to_column(classes, "classes"))
    given = list(classes) if isinstance(classes, (list, tuple)) else list(column)
    values = [_label(value, "classes") for value in given]
    if len(values) != 2 or values[0] == values[1]:
        raise InputError(f"classes must be two different labels, but {values!r} came.")
    return values[0], values[1]


def _sorted_pair(pair: tuple[Any, Any], dtype: np.dtype[Any]) -> NDArray[Any]:
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
        return (
            np.array(values) if all(type(v) in (str, int, bool) for v in values) else _boxed(values)
        )
    return _of_type([low, high], dtype)


def _of_type(values: list[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The labels in the type of y where it can hold them, else in one that can."""
    if dtype.kind not in "US":
        try:
            array = np.array(values, dtype=dtype)
            if all(bool(a == b) for a, b in zip(array, values, strict=True)):
                return array
        except (OverflowError, TypeError, ValueError):
            pass
    return np.array(values)


def _boxed(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _positive_label(ordered: NDArray[Any], pos_label: Any) -> Any:
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
    "Are scores and labels swapped? If y are probabilities of the positive class: the fit of a "
    "calibrator of one score, and of CalibratedClassifier, takes them as floats. For "
    "evaluate and reports, pass ScoreTable.from_soft_labels(scores, y)."
)


def are_soft(column: NDArray[Any]) -> bool:
    """Whether a column of labels holds floats that are no whole numbers.

    >>> are_soft(np.array([0.0, 0.2])), are_soft(np.array([0.0, 1.0])), are_soft(np.array([1, 2]))
    (True, False, False)
    """
    one = column.ndim == 1 or (column.ndim == 2 and column.shape[1] == 1)
    return one and column.dtype.kind == "f" and bool((column != np.floor(column)).any())


def check_shares(labels: NDArray[Any]) -> Array:
    """Soft labels as float64; any outside [0, 1] is refused."""
    share = labels.astype(np.float64)
    outside = (share < 0.0) | (share > 1.0)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"{DIVIDE.capitalize()}, or pass labels that are classes. Unknown label type: y must "
            "be two classes, or soft labels (probabilities of the positive class, in [0, 1]), but "
            f"{int(outside.sum())} of {len(share)} are outside [0, 1], and some are fractions "
            f"(first outside at row {row}: {share[row]:g})."
        )
    return share


def check_names(pos_label: Any, classes: Any) -> None:
    """Soft labels speak of the class 1 against 0: other names would leave open which is meant."""
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


def check_not_swapped(scores: Array) -> None:
    """Refuse scores that look like labels where the labels look like scores."""
    low, high = float(scores.min()), float(scores.max())
    ends = (scores == low) | (scores == high)
    if low.is_integer() and high.is_integer() and bool(ends.all()):
        came = f"{low:g}" if low == high else f"{low:g} and {high:g}"
        raise InputError(
            f"scores must be what a model said, but they hold only {came}, while y holds "
            "fractions: are the two swapped? The order is fit(scores, y). If y are soft labels "
            "of such scores, name the classes: classes=[0, 1]."
        )


class Halves(NamedTuple):
    """Rows with soft labels as two halves each, also where one of them weighs nothing.

    So every row counts twice for what knows no weights, such as the first steps of a pipeline.
    Rows of weight zero are left out.

    Attributes
    ----------
    rows : array of shape (m,)
        Which row each half belongs to, in the order of rows.
    codes : array of shape (m,)
        1 of a positive half, 0 of a negative one.
    weight : array of shape (m,)
        w·q of a positive half, w·(1 − q) of a negative one.

    Examples
    --------
    >>> halves = Halves.of(np.array([0.25, 1.0]), np.array([2.0, 3.0]))
    >>> halves.rows.tolist(), halves.codes.tolist(), halves.weight.tolist()
    ([0, 0, 1, 1], [0, 1, 0, 1], [1.5, 0.5, 0.0, 3.0])
    """

    rows: Index
    codes: Index
    weight: Array

    @classmethod
    def of(cls, share: Array, weight: Array | None = None) -> Halves:
        """The halves of rows with these soft labels and weights (None: all one). O(n)."""
        size = np.ones(len(share)) if weight is None else weight
        both = np.column_stack((size * (1.0 - share), size * share)).reshape(-1)
        (kept,) = np.nonzero(np.repeat(size > 0.0, 2))
        return cls(kept // 2, kept % 2, both[kept])
