"""The tables of all segments, one after the other, so that sums over segments need no loop.

Their folds are dealt from the cells, or made of rows as a splitter says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_keys import SegmentKey, segment_path
from calibrant.data.validation import Rows
from calibrant.errors import InputError
from calibrant.estimators.model_folds import ModelRows
from calibrant.estimators.splits import split_present
from calibrant.estimators.table_folds import HeldOutCells, TableFolds, possible_folds


@dataclass(frozen=True)
class SegmentCells:
    """Cells of all segments, those of a segment together and in ascending order of score.

    ``starts`` says where each segment begins and ``sizes`` how many cells it has, at least one; a
    cell may have lost all of its weight to a fold. ``ends`` are the least and the largest score of
    the fit, which say what scores are in every segment and fold.
    """

    keys: tuple[SegmentKey, ...]
    scores: Array
    counts: HeldOutCells
    starts: Index
    sizes: Index
    ends: tuple[float, float]
    error: float = 0.0
    made: str = ""

    def __len__(self) -> int:
        return len(self.keys)

    def total(self, values: Array) -> Array:
        """The sum of the cells' values in each segment."""
        return np.add.reduceat(values, self.starts)

    def spread(self, values: Array) -> Array:
        """A value of each segment, given to all of its cells."""
        return np.repeat(values, self.sizes)

    @property
    def rows(self) -> Array:
        """(Σw)² / Σw² of each segment: how many rows of equal weight it is worth."""
        n0, n1, q0, q1 = self.counts
        return _kish(self.total(n0 + n1), self.total(q0 + q1))

    @property
    def unit(self) -> Array:
        """The number of rows that a unit of weight stands for in each segment."""
        n0, n1, _, _ = self.counts
        total = self.total(n0 + n1)
        return np.asarray(self.rows / np.where(total > 0.0, total, 1.0))

    @property
    def events(self) -> Array:
        """The same, of the rarer class."""
        n0, n1, q0, q1 = (self.total(column) for column in self.counts)
        return np.minimum(_kish(n0, q0), _kish(n1, q1))

    @property
    def coarser(self) -> Index:
        """The number of the coarser segment that each segment is a part of."""
        first = [key[:-1] if isinstance(key, tuple) else () for key in self.keys]
        place = {key: i for i, key in enumerate(dict.fromkeys(first))}
        return np.array([place[key] for key in first], dtype=np.intp)

    def cells(self, i: int) -> slice:
        """Where the cells of a segment are."""
        return slice(int(self.starts[i]), int(self.starts[i] + self.sizes[i]))

    def table(self, i: int) -> ScoreTable:
        """The table of one segment."""
        part = self.cells(i)
        table = ScoreTable.from_counts(self.scores[part], *(c[part] for c in self.counts))
        return table.part_of(*self.ends)

    def whole(self) -> ScoreTable:
        """The table of all segments together; pooled cells keep the largest error."""
        table = ScoreTable.from_counts(self.scores, *self.counts).part_of(*self.ends)
        return replace(table, error=self.error, made=self.made) if self.error else table


def _kish(total: Array, squares: Array) -> Array:
    return np.asarray(total**2 / np.where(squares > 0.0, squares, 1.0))


def read_tables(tables: Any) -> dict[SegmentKey, ScoreTable]:
    """Tables by segment, keys as a file can hold them; segments without rows are left out."""
    if not isinstance(tables, Mapping):
        raise InputError(
            "tables must be a dict from segments to their ScoreTables, but "
            f"{type(tables).__name__} came."
        )
    clean: dict[SegmentKey, ScoreTable] = {}
    for name, table in tables.items():
        if not isinstance(table, ScoreTable):
            raise InputError(
                f"the table of segment {name!r} must be a ScoreTable, but {type(table).__name__} "
                "came."
            )
        key = segment_path(name)
        if table:
            clean[key] = table
    if not clean:
        raise InputError("tables must hold at least one row, but all of them are empty.")
    sizes = {len(key) if isinstance(key, tuple) else 0 for key in clean}
    if len(sizes) > 1 or sizes == {1}:
        raise InputError(
            "the segments of tables must all be plain, or all tuples of the same number of values, "
            f"two or more, but {list(clean)[:4]} came."
        )
    return clean


def coarser_tables(
    tables: Mapping[SegmentKey, ScoreTable], size: int
) -> dict[SegmentKey, ScoreTable]:
    """The tables of segments of several columns, those of the same first values together."""
    groups: dict[SegmentKey, list[ScoreTable]] = {}
    for key, table in tables.items():
        if isinstance(key, tuple) and table:
            groups.setdefault(key[:size], []).append(table)
    return {key: ScoreTable.gather(parts) for key, parts in groups.items()}


def stack_of(tables: Mapping[SegmentKey, ScoreTable]) -> SegmentCells:
    """The tables, in an order that depends on their cells alone and not on their names."""
    ordered = sorted(tables.items(), key=lambda item: _rank(item[1]))
    parts = [table for _, table in ordered]
    columns = ("negative", "positive", "negative_sq", "positive_sq")
    worst = max(parts, key=lambda table: table.error)
    sizes = np.array([len(table) for table in parts], dtype=np.intp)
    return SegmentCells(
        tuple(key for key, _ in ordered),
        np.concatenate([table.scores for table in parts]),
        HeldOutCells(*(np.concatenate([getattr(table, c) for table in parts]) for c in columns)),
        np.cumsum(sizes) - sizes,
        sizes,
        (min(table.ends[0] for table in parts), max(table.ends[1] for table in parts)),
        worst.error,
        worst.made,
    )


def _rank(table: ScoreTable) -> tuple[Any, ...]:
    """A key to sort by. Leading bytes come first, so a last rounding does not change the order."""
    columns = (table.scores, table.positive, table.negative)
    return (len(table), *(column.astype(">f8").tobytes() for column in columns))


# --- folds --------------------------------------------------------------------------------------


class SegmentFold(NamedTuple):
    """What maps are fitted to, and what they are judged on."""

    rest: SegmentCells
    held: HeldOutCells


#: makes the folds of the segments' cells
MakeFolds = Callable[[SegmentCells], list[SegmentFold]]


def dealt(stack: SegmentCells, k: int, seed: int) -> list[SegmentFold]:
    """k folds, rows dealt class by class; fewer where a class has fewer rows, none below two."""
    k = possible_folds(k, stack.whole().rarest)
    if not k:
        return []
    numbers = np.arange(len(stack.scores), dtype=np.float64)
    deal = TableFolds(ScoreTable(numbers, *stack.counts), k, seed=seed)  # a cell stands for a score
    held = [deal.held(fold) for fold in range(k)]
    return [SegmentFold(replace(stack, counts=h.rest_of(stack.counts)), h) for h in held]


def folds_of_rows(
    stack: SegmentCells,
    rows: Rows,
    keys: list[SegmentKey],
    codes: Index,
    *,
    cv: Any,
    groups: Any,
    seed: int,
    counts: bool,
) -> list[SegmentFold]:
    """Folds as a splitter, groups or a fraction ask for, in the cells of the segments' tables.

    ``codes`` says which of the segments ``keys`` each row is in; with ``counts`` weights are
    numbers of rows. A row that is held out r times counts 1/r each time.
    """
    weight = np.ones(len(rows.scores)) if rows.weight is None else rows.weight
    present = weight > 0.0
    cell = _cells(stack, rows.scores, keys, codes)[present]
    weight, positive = weight[present], rows.positive[present]
    labels = positive.astype(np.intp)
    data = ModelRows(rows.scores[present], labels, weight, np.array([False, True]), 1, "auto")
    splits = split_present(cv, data, present, groups, seed)
    square = weight if counts else weight**2

    def sums(part: Index, share: Array) -> HeldOutCells:
        columns = [
            np.bincount(cell[part], (values * share * side)[part], minlength=len(stack.scores))
            for values in (weight, square)
            for side in (~positive, positive)
        ]
        return HeldOutCells(*(column.astype(np.float64) for column in columns))

    every = np.ones(len(cell))
    return [
        SegmentFold(replace(stack, counts=sums(train, every)), sums(test, splits.share))
        for train, test in splits.pairs
    ]


def _cells(stack: SegmentCells, scores: Array, keys: list[SegmentKey], codes: Index) -> Index:
    """The cell of each row."""
    place = {key: i for i, key in enumerate(stack.keys)}
    cell = np.zeros(len(codes), dtype=np.intp)
    for key, mine in rows_by_segment(keys, codes):
        if key in place:
            part = stack.cells(place[key])
            found = np.searchsorted(stack.scores[part], scores[mine])
            cell[mine] = part.start + np.minimum(found, part.stop - part.start - 1)
    return cell


def rows_by_segment(keys: list[SegmentKey], codes: Index) -> Iterator[tuple[SegmentKey, Index]]:
    """The rows of each segment, in their order."""
    order = np.argsort(codes.astype(np.min_scalar_type(len(keys))), kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(keys)))
    return zip(keys, np.split(order, ends[:-1]), strict=True)
