"""The segments of one column, fitted and shrunk to those of the columns before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from calibrant.arrays import Array, Flags
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_keys import SegmentKey
from calibrant.data.weighing import table_in_rows
from calibrant.estimators.splits import FOLDS
from calibrant.maps import Map
from calibrant.segment.fits import Way
from calibrant.segment.levels import Level, LevelRule, shares, values_at
from calibrant.segment.records import Segment, ShrinkageTrial
from calibrant.segment.segment_cells import SegmentCells, stack_of
from calibrant.segment.shrink import between, choose, cross_validate, small
from calibrant.segment.splits import MakeFolds, dealt

#: why a segment has no map of its own
TOO_FEW = "too few rows"
ALONE = "the only one in its coarser segment"
ALIKE = "segments hardly differ"
OTHER_SCORES = "scores in [0, 1], where those of others are not"


class ShrinkageOptions(NamedTuple):
    """How shares are found; see `SegmentedCalibrator`."""

    shrinkage: str | float
    min_rows: float
    min_events: float
    cv: Any
    seed: int


class LevelData(NamedTuple):
    """The tables of the segments of one column (and those before it), and their folds."""

    tables: dict[SegmentKey, ScoreTable]
    make_folds: MakeFolds | None = None

    def in_rows(self) -> LevelData:
        """The same where weights are numbers of rows."""
        tables = {key: table_in_rows(table, "counts") for key, table in self.tables.items()}
        return self._replace(tables=tables)


class FittedLevel(NamedTuple):
    """What came of the segments of one column, and how to fit them again to a part of the rows."""

    own: Level
    records: list[Segment]
    shrinkage: float
    path: tuple[ShrinkageTrial, ...]
    rule: LevelRule


def fit_column(
    way: Way,
    common: Map,
    data: LevelData,
    done: Sequence[FittedLevel],
    options: ShrinkageOptions,
) -> FittedLevel:
    """The maps of the segments of one column, after those of the columns before it."""
    stack = stack_of(data.tables)
    coarser = values_at(way, common, [level.own for level in done], stack)
    few = _few(stack, options.min_rows, options.min_events)
    alone = _alone(stack) if done else np.zeros(len(stack), dtype=bool)
    able = ~few & ~alone & way.readable(stack)
    wanted = {key for key, well in zip(stack.keys, able, strict=True) if well}
    path: tuple[ShrinkageTrial, ...] = ()
    if options.shrinkage == "bayes":
        shrinkage, share = between(stack, coarser)
    else:
        rules = [level.rule for level in done]
        shrinkage, path = _kappa(way, data, stack, wanted, rules, options)
        share = shares(stack.rows, shrinkage)
    share = np.where(able, share, 0.0)
    kept = np.flatnonzero(share > 0.0)
    maps = way.each(stack, kept, coarser)
    own = {
        stack.keys[i]: (fitted, float(share[i]))
        for i, fitted in zip(kept.tolist(), maps, strict=True)
        if fitted is not None
    }
    reasons = np.where(few, TOO_FEW, np.where(alone, ALONE, np.where(able, ALIKE, OTHER_SCORES)))
    records = [_record(stack, i, share, str(reasons[i])) for i in range(len(stack))]
    return FittedLevel(own, records, shrinkage, path, LevelRule(wanted, shrinkage))


def _kappa(
    way: Way,
    data: LevelData,
    stack: SegmentCells,
    wanted: set[SegmentKey],
    coarser: Sequence[LevelRule],
    options: ShrinkageOptions,
) -> tuple[float, tuple[ShrinkageTrial, ...]]:
    """κ as given, or by cross-validation, and the trials."""
    if not isinstance(options.shrinkage, str):
        return float(options.shrinkage), ()
    if data.make_folds is None:
        stack = stack_of(small(data.tables))
        folds = dealt(stack, FOLDS if options.cv is None else options.cv, options.seed)
    else:
        folds = data.make_folds(stack)
    path = cross_validate(way, stack, folds, wanted, coarser)
    return choose(path), path


def _few(stack: SegmentCells, rows: float, events: float) -> Flags:
    """Which segments do not reach the minimum counts, up to rounding."""
    near = 1.0 - 1e-9
    return np.asarray((stack.rows < rows * near) | (stack.events < events * near))


def _alone(stack: SegmentCells) -> Flags:
    """Which segments are the only one in their coarser segment, whose rows are theirs."""
    coarser = stack.coarser
    return np.asarray(np.bincount(coarser)[coarser] == 1)


def _record(stack: SegmentCells, i: int, share: Array, reason: str) -> Segment:
    table = stack.table(i)
    return Segment(
        stack.keys[i],
        table.total,
        table.total_positive,
        table.effective_size,
        table.rarest,
        float(share[i]),
        reason if share[i] == 0.0 else "",
    )
