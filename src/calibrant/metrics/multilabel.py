"""Measures of several yes/no labels per row: of each, of all together, and averaged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.columns import check_class_columns, to_matrix
from calibrant.data.door import Rows, check_lengths, read_probabilities, read_weight
from calibrant.data.frozen import Frozen
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, refuse_foreign_names
from calibrant.metrics.measures import LABEL_MEASURES
from calibrant.metrics.point_measures import TableFacts
from calibrant.metrics.tables import check_whole
from calibrant.result_tables import (
    PlainFields,
    PrintsAsTable,
    ResultTable,
    TableColumn,
    TableRow,
    shown_value,
)

Known = tuple[Array, Flags, Array | None]

#: how many predictions are sorted together for the AUC of all labels; this bounds the memory
MOST_SORTED = 1 << 24
#: how many cells the leading bits of a probability make; the last is that of 1
CELLS = (int(np.float32(1.0).view(np.uint32)) >> 16) + 1


@dataclass(frozen=True, eq=False, repr=False)
class MultilabelMeasures(PrintsAsTable, PlainFields, Frozen):
    """Measures of an (n, k) matrix of yes/no labels; prints as a table.

    Attributes
    ----------
    names : tuple of str
        What the columns are called.
    by_column : dict of str to tuple
        ``log_loss``, ``brier``, ``ece`` and ``auc`` of each column, None where it is undefined; the
        ``weight`` and ``positive_weight`` of its known labels; and how many are ``missing``.
    micro : dict of str to float
        The measures of all known labels thrown together: columns with many known labels count more.
    macro : dict of str to float
        The means over the columns where the measure is defined: columns count alike.
    notes : tuple of str
        What deserves a look: columns without labels or with one class, infinite log loss.
    """

    names: tuple[str, ...]
    by_column: dict[str, tuple[float | None, ...]]
    micro: dict[str, float]
    macro: dict[str, float]
    notes: tuple[str, ...] = ()

    def _table(self) -> ResultTable:
        names = [TableColumn(title, "left", may_break=False) for title in ("measure", "good is")]
        values = [TableColumn(title, may_break=False) for title in ("micro", "macro")]
        rows = []
        for name, measure in LABEL_MEASURES.items():
            both = (shown_value(means.get(name)) for means in (self.micro, self.macro))
            rows.append(TableRow((measure.label, measure.good, *both), measure.meaning))
        known, missing = (
            sum(value or 0.0 for value in self.by_column[name]) for name in ("weight", "missing")
        )
        below = (
            f"{len(self.names)} columns, known labels of weight {known:.10g}, {missing:.0f} missing"
        )
        notes = [f"note: {note}" for note in self.notes]
        return ResultTable([*names, *values], rows, [below, *notes])


@refuse_foreign_names
def multilabel_measures(
    Y: Any, P: Any, *, bins: int = 10, names: Any = None, sample_weight: Any = None
) -> MultilabelMeasures:
    """Log loss, Brier score, ECE and AUC of several yes/no labels per row.

    Parameters
    ----------
    Y : array-like of shape (n, k)
        Labels 0 and 1 (or booleans); NaN, None, or masked where a label is not known. −1 is
        refused: it is a negative label to some and a missing one to others.
    P : array-like of shape (n, k)
        The probability of each label. Rows need not sum to anything.
    bins : int, default=10
        Bins of equal width for ``ece``.
    names : array-like of k str, optional
        What the columns are called; default: the columns of a frame Y, else 0 to k − 1.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0 of the rows; a row of weight zero is as if absent.

    Returns
    -------
    MultilabelMeasures
        Frozen; prints as a table.

    Notes
    -----
    Micro: every known label is a row of one binary problem. Macro: the binary measure of each
    column, averaged over the columns where it is defined: the AUC needs both classes, the others
    one known label. Undefined ones are None in ``by_column`` and counted in a note. O(nk log n), a
    column at a time; the micro AUC sorts all predictions, a range of 16 million at a time.

    Examples
    --------
    >>> Y = [[1, 0], [0, None], [1, 0]]
    >>> P = [[0.75, 0.25], [0.5, 0.5], [0.5, 0.25]]
    >>> m = multilabel_measures(Y, P, names=["spam", "urgent"])
    >>> print(m)
    measure      good is   micro   macro
    ───────────  ───────  ──────  ──────
    log loss     smaller  0.4499  0.4228
    Brier score  smaller  0.1375  0.1250
    ECE          smaller  0.1500  0.1667
    AUC          larger   0.9167  0.7500
    2 columns, known labels of weight 5, 1 missing
    note: auc needs both classes, but 1 of 2 columns has one: 'urgent'
    >>> m.by_column["auc"]
    (0.75, None)
    """
    bins = check_whole("bins", bins, 1)
    labels, known = _read_labels(Y)
    predictions = _read_matrix(P, labels.shape)
    k = labels.shape[1]
    given = getattr(Y, "columns", range(k)) if names is None else names
    called = tuple(str(name) for name in given)
    if len(called) != k or isinstance(names, str):
        raise InputError(f"names must be {k}, one for each column, but {names!r} came.")
    check_class_columns(P, called, "P")
    weight = read_weight(sample_weight, len(labels))
    if weight is not None and not weight.all():
        kept = weight > 0
        labels, known, predictions = labels[kept], known[kept], predictions[kept]
        weight = weight[kept]

    def columns() -> Iterator[Known]:
        for j in range(labels.shape[1]):
            rows = known[:, j]
            p = np.asarray(predictions[rows, j], dtype=np.float64) + 0.0
            yield p, labels[rows, j], None if weight is None else weight[rows]

    if not known.any():
        raise InputError("Y must hold at least one known label, but all are missing.")
    each, counts = [], np.zeros(CELLS, dtype=np.int64)
    for p, hit, w in columns():
        each.append(_LabelColumn.of(p, hit, w, bins))
        counts += np.bincount(_cell_numbers(p), minlength=CELLS)
    missing = tuple(float(count) for count in (~known).sum(axis=0))
    return _micro_and_macro(
        called, LabelColumns(each, _pooled_area(columns, counts, each)), missing
    )


class _LabelColumn(NamedTuple):
    """The measures of one label, and the sums from which those of all labels are made."""

    values: dict[str, float]
    negative: float
    positive: float
    gaps: Array

    @property
    def total(self) -> float:
        return self.negative + self.positive

    @classmethod
    def of(cls, p: Array, hit: Flags, weight: Array | None, bins: int) -> _LabelColumn:
        """The measures of one label, from the rows where it is known."""
        if not len(p):
            return cls({}, 0.0, 0.0, np.zeros(bins))
        table = ScoreTable.from_rows(Rows(p, hit, weight, np.array([False, True]), True))
        facts = TableFacts(table, bins)
        found = {name: measure.value_of(facts).value for name, measure in LABEL_MEASURES.items()}
        values = {name: value for name, value in found.items() if value is not None}
        place = np.searchsorted(np.arange(1, bins) / bins, table.scores, side="right")
        gap = table.weight * table.scores - table.positive
        gaps = np.bincount(place, gap, minlength=bins).astype(np.float64)
        return cls(values, table.total_negative, table.total_positive, gaps)


class LabelColumns(NamedTuple):
    """All labels, and the AUC of all of them thrown together (``area``)."""

    each: list[_LabelColumn]
    area: float | None

    @property
    def total(self) -> float:
        return sum(column.total for column in self.each)

    def mean(self, name: str) -> float:
        """A mean loss over all known labels, from the means of the columns."""
        known = (column for column in self.each if column.values)
        return sum(column.values[name] * column.total for column in known) / self.total

    def mean_gap(self) -> float:
        """The ECE of all labels together."""
        gaps = np.sum([column.gaps for column in self.each], axis=0)
        return float(np.abs(gaps).sum() / self.total)


def _micro_and_macro(
    names: tuple[str, ...], columns: LabelColumns, missing: tuple[float, ...]
) -> MultilabelMeasures:
    """The result: measures of each column, of all labels together, and averaged over columns."""
    each = columns.each
    micro, macro = {}, {}
    for name, measure in LABEL_MEASURES.items():
        together = None if measure.of_columns is None else measure.of_columns(columns)
        if together is not None:
            micro[name] = together
        defined = [c.values[name] for c in each if name in c.values]
        if defined:
            macro[name] = float(np.mean(defined))
    by_column: dict[str, tuple[float | None, ...]] = {
        name: tuple(c.values.get(name) for c in each) for name in LABEL_MEASURES
    }
    by_column["weight"] = tuple(c.total for c in each)
    by_column["positive_weight"] = tuple(c.positive for c in each)
    by_column["missing"] = missing
    return MultilabelMeasures(names, by_column, micro, macro, tuple(_notes_on_columns(names, each)))


def _notes_on_columns(names: tuple[str, ...], each: list[_LabelColumn]) -> Iterator[str]:
    """Notes on columns without labels, with one class, or with an infinite log loss."""
    pairs = list(zip(names, each, strict=True))
    empty = [name for name, c in pairs if not c.values]
    single = [name for name, c in pairs if bool(c.positive) != bool(c.negative)]
    endless = [name for name, c in pairs if any(map(math.isinf, c.values.values()))]
    for found, before, one, more in (
        (empty, "", "has no known label", "have no known label"),
        (single, "auc needs both classes, but ", "has one", "have one"),
        (endless, "log loss is infinite: ", "gave", "gave"),
    ):
        if found:
            listed = ", ".join(map(repr, found[:5])) + (", …" if len(found) > 5 else "")
            verb = one if len(found) == 1 else more
            what = " probability 0 to what came" if found is endless else ""
            yield f"{before}{len(found)} of {len(names)} columns {verb}{what}: {listed}"


# --- the AUC of all labels together -------------------------------------------------------------


def _cell_numbers(p: Array) -> Index:
    """The number of the small range of [0, 1] that each probability is in, ascending."""
    return (p.astype(np.float32).view(np.uint32) >> 16).astype(np.intp)


def _pooled_area(
    columns: Callable[[], Iterator[Known]],
    counts: NDArray[np.int64],
    each: list[_LabelColumn],
) -> float | None:
    """The AUC of all labels thrown together; None where one class came. Ranges of predictions are
    sorted one by one, to save memory."""
    positive = sum(column.positive for column in each)
    negative = sum(column.negative for column in each)
    if not positive or not negative:
        return None
    won = below = 0.0
    for first, stop in _cell_ranges(counts):
        n1, n0 = _range_table(columns, first, stop)
        n1, n0 = n1 / positive, n0 / negative
        won += float(n1 @ (below + np.cumsum(n0) - n0 / 2))
        below += float(n0.sum())
    return min(won, 1.0)  # rounding


def _cell_ranges(counts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of cells with at most `MOST_SORTED` predictions each, from the first cell to the
    last."""
    upto = np.append(0, np.cumsum(counts))
    first = 0
    while upto[first] < upto[-1]:
        stop = int(np.searchsorted(upto, upto[first] + MOST_SORTED, side="right")) - 1
        stop = min(max(stop, first + 1), len(counts))
        yield first, stop
        first = stop


def _range_table(
    columns: Callable[[], Iterator[Known]], first: int, stop: int
) -> tuple[Array, Array]:
    """The weight of positives and of negatives at each distinct prediction in a range."""
    parts = []
    for p, hit, weight in columns():
        cell = _cell_numbers(p)
        inside = (cell >= first) & (cell < stop)
        each = np.ones(len(p)) if weight is None else weight
        parts.append((p[inside], hit[inside], each[inside]))
    scores, hits, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    table = ScoreTable.from_rows(Rows(scores, hits, weights, np.array([False, True]), True))
    return table.positive, table.negative


# --- reading ------------------------------------------------------------------------------------


def _read_labels(Y: Any) -> tuple[Flags, Flags]:
    """Whether each row has each label, and whether that is known; two matrices."""
    if np.ma.isMaskedArray(Y):
        Y = np.ma.filled(Y.astype(np.float64), np.nan)
    array = np.asarray(Y.to_numpy() if hasattr(Y, "to_numpy") else Y)
    if array.dtype.kind == "O":
        flat = (_label_as_number(value) for value in array.flat)
        array = np.fromiter(flat, dtype=np.float64, count=array.size).reshape(array.shape)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "biuf":
        raise InputError(
            "Y must be a matrix (n, k) of labels 0 and 1, one column per label and one row or "
            f"more, but {array.dtype} of shape {array.shape} came."
        )
    known = ~np.isnan(array) if array.dtype.kind == "f" else np.ones(array.shape, dtype=bool)
    wrong = known & (array != 0) & (array != 1)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"Y must hold 0 and 1, and NaN where a label is not known, but {int(wrong.sum())} of "
            f"{array.size} are neither (first {array[row, column]:g} at row {row}, column "
            f"{column}). Replace them first."
        )
    return array == 1, known


def _label_as_number(value: Any) -> float:
    """A label of any type as a number; NaN where it is missing."""
    if isinstance(value, (Real, np.bool_)):
        return float(value)
    if value is None or type(value).__name__ == "NAType":  # pandas.NA, without pandas
        return math.nan
    raise InputError(
        f"Y must hold 0 and 1, and NaN where a label is not known, but {value!r} came."
    )


def _read_matrix(P: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """The matrix of probabilities, which must have the shape of the labels."""
    array = to_matrix(P, "P")
    if array.ndim != 2 or array.shape[1] != shape[1]:
        raise InputError(
            f"P must have a column for each of the {shape[1]} labels of Y, but its shape is "
            f"{array.shape}."
        )
    check_lengths(Y=shape[0], P=len(array))
    for j in range(shape[1]):
        read_probabilities(array[:, j], name=f"column {j} of P")
    return array
