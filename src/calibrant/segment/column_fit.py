"""The segments of one column, fitted and shrunk to those of the columns before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_keys import SegmentKey
from calibrant.data.weighing import table_in_rows
from calibrant.estimators.splits import FOLDS
from calibrant.maps import Map
from calibrant.segment.fits import Way
from calibrant.segment.segment_cells import MakeFolds, SegmentCells, dealt, stack_of
from calibrant.segment.shrink import (
    Level,
    LevelRule,
    ShrinkageTrial,
    choose,
    cross_validate,
    fit_level,
    shares,
    small,
    values_at,
)

if TYPE_CHECKING:
    from calibrant.segment.calibrator import SegmentedCalibrator

#: why a segment has no map of its own
TOO_FEW = "too few rows"
ALONE = "the only one in its coarser segment"
ALIKE = "segments hardly differ"


@dataclass(frozen=True)
class Segment:
    """One segment: how much was known of it, and how far it went its own way.

    Parameters
    ----------
    key : str or int
        With several columns a tuple, such as ("fr",) or ("fr", "card").
    weight, positive : float
        Σw of its rows and of its positives.
    rows, events : float
        The effective number (Σw)²/Σw² of its rows, and of those of its rarer class.
    share : float
        λ, the share of its own map; 0 where it has the map of all rows (with several columns, that
        of the coarser segment).
    reason : str
        Why it has no map of its own; empty where it has one.
    """

    key: SegmentKey
    weight: float
    positive: float
    rows: float
    events: float
    share: float
    reason: str = ""


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
    asked: SegmentedCalibrator,
) -> FittedLevel:
    """The maps of the segments of one column, after those of the columns before it.

    ``asked`` has the parameters that say how shares are found.
    """
    stack = stack_of(data.tables)
    coarser = values_at(way, common, [level.own for level in done], stack)
    near = 1.0 - 1e-9  # counts are compared up to rounding
    few = (stack.rows < asked.min_rows * near) | (stack.events < asked.min_events * near)
    # the only one in its coarser segment has the same rows
    alone = (np.bincount(stack.coarser)[stack.coarser] == 1) & bool(done)
    able = ~few & ~alone
    wanted = {key for key, well in zip(stack.keys, able, strict=True) if well}
    kappa, path = _kappa(way, data, stack, wanted, [level.rule for level in done], asked)
    share = np.where(able, shares(stack.rows, kappa), 0.0)
    own = fit_level(way, stack, share, coarser)
    reasons = np.where(few, TOO_FEW, np.where(alone, ALONE, ALIKE))
    records = [_record(stack, i, share, str(reasons[i])) for i in range(len(stack))]
    return FittedLevel(own, records, kappa, path, LevelRule(wanted, kappa))


def _kappa(
    way: Way,
    data: LevelData,
    stack: SegmentCells,
    wanted: set[SegmentKey],
    coarser: Sequence[LevelRule],
    asked: SegmentedCalibrator,
) -> tuple[float, tuple[ShrinkageTrial, ...]]:
    """κ as given, or by cross-validation, and the trials."""
    if not isinstance(asked.shrinkage, str):
        return float(asked.shrinkage), ()
    if data.make_folds is None:
        stack = stack_of(small(data.tables))
        folds = dealt(stack, FOLDS if asked.cv is None else asked.cv, int(asked.random_state))
    else:
        folds = data.make_folds(stack)
    path = cross_validate(way, stack, folds, wanted, coarser)
    return choose(path), path


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
