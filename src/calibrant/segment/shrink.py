"""How far each segment goes its own way, by cross-validation.

Segments are fitted column after column. Each is shrunk to what the coarser segment gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_keys import SegmentKey
from calibrant.estimators.held_out_means import Sample
from calibrant.losses import LARGEST, SMALLEST
from calibrant.maps import Map
from calibrant.segment.fits import Way
from calibrant.segment.segment_cells import SegmentCells, SegmentFold, coarser_tables, stack_of

#: the candidates for κ are 0, this number and its doubles up to so many times the rows of the
#: largest segment, and infinity
FINEST, FURTHEST = 0.5, 8.0
#: κ is chosen on pooled tables where the segments have more cells than this together
MOST_CELLS = 500_000
FEWEST_CELLS = 50

#: the maps of the segments of one column, and how much each counts
Level = dict[SegmentKey, tuple[Map, float]]


class LevelRule(NamedTuple):
    """How the segments of a column are fitted: which of them, and with which κ."""

    wanted: set[SegmentKey]
    kappa: float


@dataclass(frozen=True)
class ShrinkageTrial:
    """A candidate for κ: its log loss on rows left out, and how sure its lag behind the best is.

    Parameters
    ----------
    shrinkage : float
        κ, from 0 (each segment by itself) to infinity (the map of all rows for everyone).
    log_loss : float
    behind, error : float
        By how much more than the best, and the standard error of that difference.
    """

    shrinkage: float
    log_loss: float
    behind: float
    error: float


# --- maps of the segments of a column -----------------------------------------------------------


def shares(rows: Array, shrinkage: float) -> Array:
    """λ = n / (n + κ); 1 for κ = 0 wherever there are rows.

    >>> shares(np.array([0.0, 10.0, 30.0]), 10.0).tolist()
    [0.0, 0.5, 0.75]
    """
    if np.isinf(shrinkage):
        return np.zeros(len(rows))
    return np.asarray(rows / np.where(rows > 0.0, rows + shrinkage, 1.0))


def fit_level(way: Way, stack: SegmentCells, share: Array, coarser: Array) -> Level:
    """The maps of the segments of one column, by what the coarser ones give for each cell.

    Segments without a share, and those that cannot be fitted, have none.
    """
    chosen = np.flatnonzero(share > 0.0)
    maps = way.each(stack, chosen, coarser) if len(chosen) else []
    return {
        stack.keys[i]: (own, float(share[i]))
        for i, own in zip(chosen.tolist(), maps, strict=True)
        if own is not None
    }


def values_at(way: Way, common: Map, levels: Sequence[Level], stack: SegmentCells) -> Array:
    """What the map of all rows gives for each cell, and after it the maps of coarser segments."""
    p = common(stack.scores)
    for size, level in enumerate(levels, start=1):
        p = with_level(way, p, stack, level, size)
    return p


def with_level(
    way: Way, before: Array, stack: SegmentCells, level: Level, size: int | None = None
) -> Array:
    """What each cell gets by the maps of one more column, given what it got before.

    ``size`` is the number of columns that the keys of the level have (None: all of them).
    """
    taken = before if way.input == "default" else stack.scores
    p = before.copy()
    for i, key in enumerate(stack.keys):
        found = level.get(key[:size] if isinstance(key, tuple) else key)
        if found is not None:
            own, share = found
            cells = stack.cells(i)
            p[cells] = share * own(taken[cells]) + (1.0 - share) * before[cells]
    return p


# --- cross-validation ---------------------------------------------------------------------------


class _Rows(NamedTuple):
    """Rows held out: their label, the output of both maps, and the rows their segment learned from.

    The common map is that of the coarser segment, or of all rows.

    Cells of equal rows stand for them.
    """

    positive: Flags
    own: Array
    common: Array
    rows: Array
    weight: Array
    square: Array


def cross_validate(
    way: Way,
    stack: SegmentCells,
    folds: list[SegmentFold],
    wanted: set[SegmentKey],
    coarser: Sequence[LevelRule] = (),
) -> tuple[ShrinkageTrial, ...]:
    """The log loss of every κ on rows that neither map has seen; none where there is no fold.

    ``coarser`` says how the segments of the columns before are fitted.
    """
    mine = np.array([key in wanted for key in stack.keys])
    if not folds or not mine.any():
        return ()
    parts = [_fold(way, stack, fold, mine, coarser) for fold in folds]
    joined = _Rows(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    if not len(joined.weight):
        return ()
    return _path(joined, float(stack.rows[mine].max()))


def small(tables: dict[SegmentKey, ScoreTable]) -> dict[SegmentKey, ScoreTable]:
    """The tables, pooled where they have too many cells together."""
    cells = sum(len(table) for table in tables.values())
    if cells <= MOST_CELLS:
        return tables
    most = max(FEWEST_CELLS, MOST_CELLS // len(tables))
    return {key: table.pool(most) for key, table in tables.items()}


def _fold(
    way: Way, stack: SegmentCells, fold: SegmentFold, mine: Flags, coarser: Sequence[LevelRule]
) -> _Rows:
    """Both maps fitted to the rest of a fold, and their output for what it holds out."""
    rest, held = fold
    common = way.common(rest.whole())
    levels: list[Level] = []
    if coarser:
        tables = {key: rest.table(i) for i, key in enumerate(rest.keys)}
        for size, rule in enumerate(coarser, start=1):
            part = stack_of(coarser_tables(tables, size))
            share = shares(part.rows, rule.kappa)
            share[[key not in rule.wanted for key in part.keys]] = 0.0
            levels.append(fit_level(way, part, share, values_at(way, common, levels, part)))
    of_all = values_at(way, common, levels, stack)
    own = with_level(way, of_all, stack, fit_level(way, rest, mine.astype(float), of_all))
    here, rows = np.repeat(mine, stack.sizes), stack.spread(rest.rows)
    n0, n1, q0, q1 = held
    classes = []
    for weight, square, label in ((n0, q0, False), (n1, q1, True)):
        some = here & (weight > 0.0)
        columns = (own, of_all, rows, weight, square)
        classes.append((np.full(int(some.sum()), label), *(c[some] for c in columns)))
    return _Rows(*(np.concatenate(pair) for pair in zip(*classes, strict=True)))


def _path(held: _Rows, largest: float) -> tuple[ShrinkageTrial, ...]:
    grid = [0.0]
    kappa = FINEST
    while kappa <= FURTHEST * largest:
        grid.append(kappa)
        kappa *= 2.0
    grid.append(float("inf"))
    sample = Sample(held.weight, held.square)
    losses = [sample.mean(_loss(held, kappa)) for kappa in grid]
    best = int(np.argmin(losses))
    least = _loss(held, grid[best])
    steps = []
    for i, kappa in enumerate(grid):
        apart = losses[i] - losses[best]
        error = 0.0 if i == best else sample.error(_loss(held, kappa) - least)
        steps.append(ShrinkageTrial(kappa, losses[i], apart, error))
    return tuple(steps)


def _loss(held: _Rows, shrinkage: float) -> Array:
    """−ln of the probability of the label; a wrong 0 or 1 counts as the nearest number to it."""
    share = shares(held.rows, shrinkage)
    p = np.clip(share * held.own + (1.0 - share) * held.common, SMALLEST, LARGEST)
    return np.asarray(-np.where(held.positive, np.log(p), np.log1p(-p)))


def choose(path: tuple[ShrinkageTrial, ...]) -> float:
    """The largest κ that is behind the best by at most one standard error; infinity without any."""
    fit = [step.shrinkage for step in path if step.behind <= step.error]
    return max(fit, default=float("inf"))
