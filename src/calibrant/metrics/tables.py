"""Tables of predictions: read from the arguments of measures, cut into bins, and summed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from calibrant.array_types import Array, Flags, Index
from calibrant.data.columns import check_class_columns, plain, to_matrix
from calibrant.data.door import (
    Rows,
    check_distributions,
    check_lengths,
    check_word,
    read_class_labels,
    read_labels,
    read_probabilities,
    read_weight,
    row_blocks,
)
from calibrant.data.frozen import read_only
from calibrant.data.score_matrix import ScoreMatrix, read_score_matrix
from calibrant.data.score_table import WEIGHTS, ScoreTable, table_in_rows
from calibrant.errors import InputError, ParameterError, did_you_mean


def read_predictions(
    y: Any, p: Any, sample_weight: Any, pos_label: Any, classes: Any
) -> ScoreTable | LabelledMatrix:
    """What y and p hold: a table for two classes, a labelled matrix for several."""
    several, p = has_several(y, p, pos_label)
    if not several:
        return read_table(y, p, sample_weight, pos_label, classes)
    return read_classes(y, p, sample_weight, classes)


def read_table(
    y: Any, p: Any, sample_weight: Any, pos_label: Any, classes: Any = None
) -> ScoreTable:
    """The table of predictions for two classes, made of y and p, or y itself if it is one."""
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


def read_rows(
    y: Any,
    p: Any,
    sample_weight: Any,
    pos_label: Any,
    classes: Any = None,
    *,
    name: str = "p",
    read: Callable[..., Array] = read_probabilities,
) -> Rows:
    """The rows of two classes: labels, weights and the probability of the positive class."""
    if p is None:
        raise InputError(
            "p must be given beside the labels y: the predicted probabilities, one per row. (Only "
            "a ScoreTable in place of y brings its own.)"
        )
    rows = read_labels(y, pos_label=pos_label, classes=classes)
    clean = read_column(p, rows, classes, name=name, read=read)
    return replace(rows, scores=clean, weight=read_weight(sample_weight, len(clean)))


def read_column(
    given: Any,
    labels: Rows,
    classes: Any = None,
    *,
    name: str = "p",
    read: Callable[..., Array] = read_probabilities,
) -> Array:
    """One number per row: the probability of the positive class, or what ``read`` makes of the
    column.

    Two columns are those of both classes, in sorted order or in that of ``classes``.
    """
    known = list(labels.classes if classes is None else classes)
    column = 0 if known[0] == labels.pos_label else 1
    numbers = read(given, positive_column=column, name=name, classes=known)
    check_lengths(**{"y": len(labels.codes), name: len(numbers)})
    return numbers


def check_flag(name: str, value: Any) -> bool:
    """The value, if it is True or False; else it is refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{name} must be True or False, but {value!r} came.")
    return bool(value)


def check_whole(name: str, value: Any, low: int) -> int:
    """The value as an int, if it is a whole number of at least ``low``; else it is refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or value < low:
        raise ParameterError(
            f"{name} must be a whole number of at least {low}, but {value!r} came."
        )
    return int(value)


def check_number(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """The value as a float, if it is above ``low`` and below ``high``; else it is refused."""
    fine = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if not fine or not low < value < high:
        limit = f"above {low:g}" if high == math.inf else f"above {low:g} and below {high:g}"
        raise ParameterError(f"{name} must be a finite number {limit}, but {value!r} came.")
    return float(value)


def read_generator(random_state: Any) -> np.random.Generator:
    """A random generator, made of a seed, a generator, or None."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as wrong:
        raise ParameterError(
            f"random_state must be a seed, a Generator or None, but {random_state!r} came."
        ) from wrong


# --- Several tests at once: p-values corrected for their number -----------------------------------


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values adjusted for their number by Holm's method, in the order they came.

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
    """A matrix of probabilities of several classes, and the label of each column."""

    matrix: ScoreMatrix
    labels: NDArray[Any]


def has_several(y: Any, p: Any, pos_label: Any = None) -> tuple[bool, Any]:
    """Whether p has a column for each of three classes or more; and p as an array, unless it is a
    frame.

    It comes back as an array, but for a frame, whose names may be those of the classes. pos_label
    is refused beside several classes: none of them is the positive one.

    >>> has_several([0, 1], [[0.2, 0.8], [0.4, 0.6]])[0], has_several([0], [[0.1, 0.2, 0.7]])[0]
    (False, True)
    """
    several = isinstance(y, ScoreMatrix)
    if not (several or p is None or isinstance(y, ScoreTable) or isinstance(p, ScoreTable)):
        columns = to_matrix(p, "p")
        named = columns.ndim == 2 and (hasattr(p, "columns") or hasattr(p, "column_names"))
        several, p = columns.ndim == 2 and columns.shape[1] > 2, p if named else columns
    if several and pos_label is not None:
        raise InputError(
            "pos_label must not be given beside a column for each of several classes, but "
            f"{pos_label!r} came. Pass that class's column alone, and y == {pos_label!r}."
        )
    return several, p


def read_classes(
    y: Any, p: Any, sample_weight: Any = None, classes: Any = None, *, name: str = "p"
) -> LabelledMatrix:
    """The labelled matrix of y and p, checked; y may be a ScoreMatrix.

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
    columns = clean.shape[1]
    labels, codes = read_class_labels(y, classes, columns, "p")
    if len(labels) != columns:
        shown = ", ".join(repr(plain(label)) for label in labels[:5])
        many = "es" if len(labels) != 1 else ""
        raise InputError(
            f"y must hold as many classes as p has columns, but p has {columns} columns and y "
            f"{len(labels)} class{many} ({shown}{', …' if len(labels) > 5 else ''}). Name them "
            "all, in the order of the columns, with classes=[...]."
        )
    check_class_columns(p, labels, name)
    check_lengths(**{"y": len(codes), name: len(clean)})
    weight = read_weight(sample_weight, len(codes))
    if weight is not None and not weight.all():
        kept = weight > 0
        clean, codes, weight = clean[kept], codes[kept], weight[kept]
    return LabelledMatrix(ScoreMatrix(clean, codes, weight), labels)


def refuse_beside(holds: str, word: str, **beside: Any) -> None:
    """Refuse arguments beside a table or a matrix that holds such things itself."""
    for name, value in beside.items():
        if value is not None:
            raise InputError(
                f"a {holds}, but {name} came as well. Leave {name} out, or pass labels in place of "
                f"the {word}."
            )


def read_raw_classes(
    y: Any, seen: LabelledMatrix, raw: Any, sample_weight: Any, classes: Any
) -> tuple[ScoreMatrix, bool]:
    """The raw scores of several classes as distributions, and whether a softmax had to make them
    so."""
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
    """Scores in [0, 1] as they are, all others through the softmax; and whether that was so."""
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
    return _binary_rows(matrix, matrix.scores[:, column], matrix.codes == column)


def class_table(matrix: ScoreMatrix, column: int) -> ScoreTable:
    """The table of one class against the rest."""
    return ScoreTable.from_rows(class_rows(matrix, column))


def class_tables(matrix: ScoreMatrix) -> Iterator[ScoreTable]:
    """The tables of all classes, each against the rest."""
    return (class_table(matrix, column) for column in range(matrix.n_classes))


def top_rows(matrix: ScoreMatrix) -> Rows:
    """The confidence of each row, the probability of its most probable class, and whether that
    class came."""
    top, confidence = top_labels(matrix)
    return _binary_rows(matrix, confidence, matrix.codes == top)


def top_table(matrix: ScoreMatrix) -> ScoreTable:
    """The table of each row's confidence, and of whether the most probable class came."""
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


def _binary_rows(matrix: ScoreMatrix, p: NDArray[Any], hit: Flags) -> Rows:
    """Rows of two classes, made of probabilities and of what came true."""
    clean = p.astype(np.float64) + 0.0  # −0.0 joins 0.0
    return Rows(clean, hit, matrix.weight, np.array([False, True]), True)


#: predictions in order, their weights and those of positives, and whether weights are whole
Cells = tuple[Array, Array, Array, bool]


class Groups(NamedTuple):
    """Sums over each bin that is not empty: weight, weight of positives, and weight ·
    prediction."""

    weight: Array
    positive: Array
    predicted: Array

    def mean_gap(self) -> float:
        """The ECE of the bins."""
        return self.mean_power(1)

    def mean_power(self, norm: int) -> float:
        """The mean over all cases of |gap of the case's bin|^norm."""
        apart, total = np.abs(self.predicted - self.positive), self.weight.sum()
        if norm == 1:
            return float(apart.sum() / total)
        return float((apart / self.weight) ** norm @ (self.weight / total))

    def largest_gap(self) -> float:
        """The MCE of the bins."""
        return float((np.abs(self.predicted - self.positive) / self.weight).max())


def check_bins(bins: Any, binning: str, ties: str) -> None:
    """Refuse bins, a binning or a treatment of ties that does not exist."""
    count = check_bin_count(bins)
    check_word("binning", binning, BINNINGS)
    check_word("ties", ties, TIES)
    if count == AUTO and ties != "together":
        raise ParameterError(
            f'ties must be "together" where bins="auto", which keeps ties whole, but {ties!r} came.'
        )


def group(
    seen: ScoreTable | Rows, bins: Bins, binning: str = "width", ties: str = "together"
) -> Groups:
    """The sums over bins of a table or of rows."""
    if binning == "mass" and not isinstance(bins, str):
        return _mass_groups(*_ordered_cells(seen, ties), bins)
    table = as_table(seen)
    starts = group_starts(table, bins)
    columns = (table.weight, table.positive, table.weight * table.scores)
    return Groups(*(np.add.reduceat(column, starts) for column in columns))


def as_table(seen: ScoreTable | Rows) -> ScoreTable:
    """The table of some rows; a table as it is."""
    return seen if isinstance(seen, ScoreTable) else ScoreTable.from_rows(seen)


def class_groups(
    matrix: ScoreMatrix, bins: Bins, binning: str = "width", ties: str = "together"
) -> list[Groups]:
    """The sums over bins, for each class against the rest."""
    k = matrix.n_classes
    if binning == "mass" or isinstance(bins, str):
        columns = range(k)
        return [group(class_rows(matrix, column), bins, binning, ties) for column in columns]
    # all classes at once, a block of rows at a time: bins of equal width need no sorting
    edges = np.arange(1, bins) / bins
    offset = bins * np.arange(k)
    sums = np.zeros((3, k * bins))
    for p, codes, weight in matrix.blocks():
        cell = np.searchsorted(edges, p.ravel(), side="right").reshape(p.shape) + offset
        own = cell[np.arange(len(codes)), codes]
        each = np.repeat(weight, k)
        size = k * bins
        sums[0] += np.bincount(cell.ravel(), each, minlength=size)
        sums[1] += np.bincount(own, weight, minlength=size)
        sums[2] += np.bincount(cell.ravel(), each * p.ravel(), minlength=size)
    classes = np.moveaxis(sums.reshape(3, k, bins), 1, 0)
    return [Groups(*columns[:, columns[0] > 0]) for columns in classes]


def _mass_groups(scores: Array, weight: Array, positive: Array, whole: bool, bins: int) -> Groups:
    """The sums over bins of equal weight. A cell that a border divides is shared in proportion."""
    mass = np.append(0.0, np.cumsum(weight))
    borders = mass_borders(mass[-1], whole, bins)
    columns = (weight, positive, weight * scores)
    upto = (np.interp(borders, mass, np.append(0.0, np.cumsum(column))) for column in columns)
    groups = Groups(*(np.diff(sums) for sums in upto))
    present = groups.weight > 0  # fewer cases than bins
    return Groups(*(sums[present] for sums in groups))


def _ordered_cells(seen: ScoreTable | Rows, ties: str) -> Cells:
    """Predictions in ascending order, with weights and weights of positives. ``ties`` says how
    equal ones are ordered."""
    if ties == "rows" and isinstance(seen, Rows):  # in the order in which they came
        order = np.argsort(seen.scores, kind="stable")
        weight = np.ones(len(order)) if seen.weight is None else seen.weight
        whole = bool((weight == np.floor(weight)).all())
        return seen.scores[order], weight[order], (weight * seen.positive)[order], whole
    table = as_table(seen)
    if ties == "together":
        return table.scores, table.weight, table.positive, table.is_whole
    # every score twice, its negatives before its positives
    weight = np.column_stack((table.negative, table.positive)).ravel()
    positive = np.column_stack((np.zeros(len(table)), table.positive)).ravel()
    present = weight > 0
    scores = np.repeat(table.scores, 2)
    return scores[present], weight[present], positive[present], table.is_whole


#: how bins may be cut
BINNINGS = ("width", "mass")
#: what may become of ties: "rows" needs rows, not a table, and "authors" is an older word for
#: "labels"
TIES = ("together", "labels", "authors", "rows")


def group_starts(table: ScoreTable, bins: Bins, binning: str = "width") -> Index:
    """The number of the first cell of each bin that is not empty. Ties are never divided."""
    if isinstance(bins, str):
        return sweep_starts(table)
    if binning == "width":
        inner = np.searchsorted(table.scores, np.arange(1, bins) / bins, side="left")
    else:
        mass = np.cumsum(table.weight)
        borders = mass_borders(mass[-1], table.is_whole, bins)[1:-1]
        # a cumulative sum that is below its border by a rounding error has reached it
        inner = np.searchsorted(mass, borders - 1e-12 * mass[-1], side="left") + 1
    return starts_at(inner, len(table))


def mass_borders(total: float, whole: bool, bins: int) -> Array:
    """The cumulative weights at which bins of equal weight begin and end."""
    if not whole:
        return np.asarray(np.linspace(0.0, total, bins + 1), dtype=np.float64)
    size, larger = divmod(total, bins)
    k = np.arange(bins + 1, dtype=np.float64)
    return k * size + np.minimum(k, larger)


# --- ``bins="auto"``: as many bins of equal mass as keep the frequencies rising -------------------


Bins = int | Literal["auto"]

AUTO: Literal["auto"] = "auto"
#: the most bins that can be asked for: beyond, their borders alone would fill the memory
MOST_ASKED = 10_000_000
#: the sweep ends here at the latest
MOST = 1000
#: sums of weights, and products of such sums, may be off by this part from rounding
ROUNDING = 1e-12


def check_bin_count(bins: Any) -> Bins:
    """The number of bins, or "auto"; anything else is refused."""
    if not isinstance(bins, str):
        if check_whole("bins", bins, 1) > MOST_ASKED:
            raise ParameterError(f"bins must be at most {MOST_ASKED:,}, but {bins:,} came.")
        return int(bins)
    if bins != AUTO:
        hint = did_you_mean(bins, (AUTO,))
        raise ParameterError(
            f'bins must be a whole number of at least 1, or "auto", but {bins!r} came.{hint}'
        )
    return AUTO


def bins_note(count: int, errors: str = "ECE and MCE are") -> str:
    """A note on how many bins ``bins="auto"`` chose."""
    return f'bins="auto": {errors} over {count} bin{"" if count == 1 else "s"} of equal weight'


def sweep_starts(table: ScoreTable) -> Index:
    """The bins of ``bins="auto"``, by the number of the first cell of each.

    B = 2, 3, … bins of equal mass are tried, ties kept whole, until the frequency of positives
    falls from some bin to the next; the bins before that are taken, at most 1,000. (R. Roelofs et
    al., "Mitigating bias in calibration error estimation", 2022, arXiv:2012.08668.) A fall that
    rounding explains does not count. O(D + B² log D) for the B bins that are found. A common
    factor of all weights changes nothing.

    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.6, 0.7], [2, 1, 2, 0], [0, 1, 1, 3])
    >>> sweep_starts(table).tolist()
    [0, 2, 3]
    """
    upto = np.cumsum(table.weight), np.cumsum(table.positive)
    cells = np.arange(len(table))
    if _frequencies_rise(*upto, cells):  # then any bins of whole cells rise
        return equal_mass_starts(upto[0], MOST)
    found = cells[:1]
    for bins in range(2, MOST + 1):
        starts = equal_mass_starts(upto[0], bins)
        if not _frequencies_rise(*upto, starts):
            break
        found = starts
    return found


def equal_mass_starts(mass: Array, bins: int) -> Index:
    """The number of the first cell of each bin of equal weight. Ties are never divided.

    ``mass`` is the weight up to the end of each cell. Bin k ends after k/bins of all weight.
    """
    wanted = mass[-1] * np.arange(1, bins) / bins
    inner = np.searchsorted(mass, wanted * (1.0 - ROUNDING)) + 1
    return starts_at(inner, len(mass))


def _frequencies_rise(mass: Array, positive: Array, starts: Index) -> bool:
    """Whether the share of positives never falls from a bin to the next."""
    ends = last_cells(starts, len(mass))
    n, hits = (np.diff(column[ends], prepend=0.0) for column in (mass, positive))
    # a/n ≤ b/m without division: exact for counts
    fall = hits[:-1] * n[1:] - hits[1:] * n[:-1]
    noise = ROUNDING * mass[-1] * np.maximum(n[:-1], n[1:])
    return bool((fall <= noise).all())


# --------------------------------------------------------------------------------------------------
# The cells of a table: weights, labels minus predictions, what chance does, and runs of cells


NOT_WHOLE = (
    'weights="counts" reads weights as numbers of rows, but they are not whole. Pass '
    'weights="importance" if each row was seen once and its weight says how much it matters.'
)


def whole_power(x: Array, power: int = 3) -> Array:
    """x to a small whole power, a hundred times as fast as NumPy's own.

    >>> whole_power(np.array([2.0, -3.0])).tolist()
    [8.0, -27.0]
    """
    return np.asarray(math.prod((x,) * power))


def check_weights(weights: str) -> None:
    """Refuse anything but "importance" and "counts" for ``weights``."""
    check_word("weights", weights, WEIGHTS)


def check_counts(weight: Array | None, weights: str) -> None:
    """Refuse weights that are not whole where they are numbers of rows."""
    if weights == "counts" and weight is not None and (weight != np.floor(weight)).any():
        raise InputError(NOT_WHOLE)


def table_for_test(table: ScoreTable, weights: str) -> ScoreTable:
    """The table with weights in units of rows; refused if they are counts and not whole."""
    check_weights(weights)
    if weights == "counts" and not table.is_whole:
        raise InputError(NOT_WHOLE)
    return table_in_rows(table, weights)


def take_cells(table: ScoreTable, which: Flags) -> ScoreTable:
    """The table of some cells.

    >>> table = ScoreTable.from_counts([0.1, 0.5, 1.0], [1, 0, 2], [0, 1, 3])
    >>> take_cells(table, table.scores < 1.0)
    ScoreTable(2 scores from 0.1 to 0.5, weight 2: 1 positive, 1 negative)
    """
    if which.all():
        return table
    n0, n1, q0, q1 = (read_only(column[which]) for column in table.columns)
    return ScoreTable(read_only(table.scores[which]), n0, n1, q0, q1)


def class_sizes(table: ScoreTable) -> tuple[float, float]:
    """How many rows of equal weight the negatives, and the positives, are worth.

    >>> class_sizes(ScoreTable.from_arrays([0.1, 0.2, 0.2, 0.3], [1, 0, 0, 0], [2, 3, 1, 2]))
    (2.5714285714285716, 1.0)
    """
    n0, n1, q0, q1 = (float(column.sum()) for column in table.columns)
    return n0**2 / (q0 or 1.0), n1**2 / (q1 or 1.0)


def squares(table: ScoreTable) -> Array:
    """Σw² of each cell."""
    return table.negative_sq + table.positive_sq


def effective_rows(weight: Array, square: Array) -> Array:
    """How many rows of equal weight each cell is worth, (Σw)²/Σw²."""
    some = square > 0.0
    return np.where(some, weight * (weight / np.where(some, square, 1.0)), 1.0)


def residuals(table: ScoreTable) -> Array:
    """Σw(y − p) of each cell, by the smaller of the two expectations, which is the more precise."""
    p, weight = table.scores, table.weight
    return np.where(p < 0.5, table.positive - weight * p, weight * (1.0 - p) - table.negative)


def squared_residuals(table: ScoreTable) -> Array:
    """Σ w²(y − p)² of each cell."""
    p = table.scores
    return table.negative_sq * p**2 + table.positive_sq * (1.0 - p) ** 2


def chance_variance(table: ScoreTable) -> Array:
    """The variance of Σwy in each cell, if the predictions are right."""
    return squares(table) * table.scores * (1.0 - table.scores)


def deviation(table: ScoreTable, tilt: Array | float = 1.0) -> float:
    """The standard deviation of Σ tilt·wy over all cells, if the predictions are right.

    Roots come first: 10⁻³⁰⁰ squared is 0.
    """
    p = table.scores
    each = np.sqrt(squares(table)) * np.sqrt(p) * np.sqrt(1.0 - p) * np.abs(tilt)
    largest = float(each.max())
    return largest * float(np.linalg.norm(each / largest)) if largest > 0.0 else 0.0


def impossible(table: ScoreTable) -> bool:
    """Whether a positive came at p = 0, or a negative at p = 1."""
    never, always = table.scores == 0.0, table.scores == 1.0
    return bool(table.positive[never].any() or table.negative[always].any())


# --- runs of neighbouring cells: bins, groups and blocks ---------------------------------------
#
# A run is given by the number of its first cell, and ends where the next one begins.


def starts_at(cells: NDArray[Any], size: int) -> Index:
    """The first cell of each run, from the cells at which runs begin.

    >>> starts_at(np.array([2, 2, 5]), 5).tolist()
    [0, 2]
    """
    starts = np.unique(np.append(0, cells))
    return starts[starts < size]


def last_cells(starts: Index, size: int) -> Index:
    """The last cell of each run.

    >>> last_cells(np.array([0, 2]), 5).tolist()
    [1, 4]
    """
    return np.append(starts[1:], size) - 1


def to_cells(values: NDArray[Any], starts: Index, size: int) -> NDArray[Any]:
    """A column for all cells, in which each has the value of its run.

    >>> to_cells(np.array([0.1, 0.7]), np.array([0, 2]), 5).tolist()
    [0.1, 0.1, 0.7, 0.7, 0.7]
    """
    return np.repeat(values, np.diff(np.append(starts, size)))


def run_means(table: ScoreTable, starts: Index) -> Array:
    """The weighted mean score of each run."""
    mean = np.add.reduceat(table.weight * table.scores, starts)
    mean = mean / np.add.reduceat(table.weight, starts)
    return np.clip(mean, table.scores[starts], table.scores[last_cells(starts, len(table))])
