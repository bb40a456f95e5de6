"""How far each segment goes its own way, by cross-validation.

Segments are fitted column after column. Each is shrunk to what the coarser segment gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags, Index
from calibrant.data.door import Rows
from calibrant.data.scale import ScoreScale
from calibrant.data.score_table import CellColumns, ScoreTable
from calibrant.data.segments import SegmentKey, segment_path
from calibrant.errors import ConvergenceError, InputError
from calibrant.fitting.base import Calibrator
from calibrant.fitting.folds import TableFolds, possible_folds, split_present
from calibrant.fitting.held_out import HeldOutCells, Sample, joined, unit_losses
from calibrant.fitting.registry import bare
from calibrant.losses import LARGEST, SMALLEST, logit, sigmoid
from calibrant.methods.splines.bls import BLS
from calibrant.rules.base import Map
from calibrant.rules.sigmoids import Logistic
from calibrant.solvers.newton import is_hidden

#: the candidates for κ are 0, this number and its doubles up to so many times the rows of the
#: largest segment, and infinity
FINEST, FURTHEST = 0.5, 8.0
#: κ is chosen on pooled tables where the segments have more cells than this together
MOST_CELLS = 500_000
FEWEST_CELLS = 50

#: the maps of the segments of one column, and how much each counts
Level = dict[SegmentKey, tuple[Map, float]]


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


class FittedLevel(NamedTuple):
    """The maps of the segments of one column, which of them got one, their κ, and the trials."""

    own: Level
    wanted: set[SegmentKey]
    shrinkage: float
    path: tuple[ShrinkageTrial, ...]


# --- Maps of the segments of a column -------------------------------------------------------------


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
    asked = before if way.input == "default" else stack.scores
    p = before.copy()
    for i, key in enumerate(stack.keys):
        name = key[:size] if isinstance(key, tuple) else key
        if name in level:
            own, share = level[name]
            cells = stack.cells(i)
            p[cells] = share * own(asked[cells]) + (1.0 - share) * before[cells]
    return p


# --- Cross-validation of κ ------------------------------------------------------------------------


def cross_validate(
    way: Way,
    stack: SegmentCells,
    folds: list[SegmentFold],
    wanted: set[SegmentKey],
    coarser: Sequence[FittedLevel] = (),
) -> tuple[ShrinkageTrial, ...]:
    """The log loss of every κ on rows that neither map has seen; none where there is no fold.

    ``coarser`` are the fits of the columns before: each fold fits the same segments with their κ.
    """
    mine = np.array([key in wanted for key in stack.keys])
    if not folds or not mine.any():
        return ()
    here = np.repeat(mine, stack.sizes)
    held = held_out_of(stack, [CellColumns(*(c * here for c in held)) for _, held in folds])
    cell, positive = held.units
    if not len(cell):
        return ()
    outputs = [_fold(way, stack, rest, mine, coarser) for rest, _ in folds]
    own, common, rows = (np.concatenate(column)[cell] for column in zip(*outputs, strict=True))

    def losses(kappa: float) -> Array:
        """−ln of the probability of the label; a wrong 0 or 1 counts as the nearest number."""
        share = shares(rows, kappa)
        p = np.clip(share * own + (1.0 - share) * common, SMALLEST, LARGEST)
        return unit_losses(p, positive)[0]

    return _path(losses, held.sample, float(stack.rows[mine].max()))


def held_out_of(stack: SegmentCells, held: Sequence[CellColumns]) -> HeldOutCells:
    """What folds hold out of the cells of all segments."""
    size = len(stack.scores)
    return HeldOutCells(np.tile(stack.scores, len(held)), joined(held), [size] * len(held))


def small(tables: dict[SegmentKey, ScoreTable]) -> dict[SegmentKey, ScoreTable]:
    """The tables, pooled where they have too many cells together."""
    cells = sum(len(table) for table in tables.values())
    if cells <= MOST_CELLS:
        return tables
    most = max(FEWEST_CELLS, MOST_CELLS // len(tables))
    return {key: table.pool(most) for key, table in tables.items()}


def _fold(
    way: Way, stack: SegmentCells, rest: SegmentCells, mine: Flags, coarser: Sequence[FittedLevel]
) -> tuple[Array, Array, Array]:
    """Both maps fitted to the rest of a fold: what the segment's own and the common one give for
    each cell, and how many rows the segment learned from."""
    common = way.common(rest.whole())
    levels: list[Level] = []
    if coarser:
        tables = {key: rest.table(i) for i, key in enumerate(rest.keys)}
        for size, known in enumerate(coarser, start=1):
            part = stack_of(coarser_tables(tables, size))
            share = shares(part.rows, known.shrinkage)
            share[[key not in known.wanted for key in part.keys]] = 0.0
            levels.append(fit_level(way, part, share, values_at(way, common, levels, part)))
    of_all = values_at(way, common, levels, stack)
    own = with_level(way, of_all, stack, fit_level(way, rest, mine.astype(float), of_all))
    return own, of_all, stack.spread(rest.rows)


def _path(
    losses: Callable[[float], Array], sample: Sample, largest: float
) -> tuple[ShrinkageTrial, ...]:
    grid, kappa = [0.0], FINEST
    while kappa <= FURTHEST * largest:
        grid.append(kappa)
        kappa *= 2.0
    grid.append(float("inf"))
    means = [sample.mean(losses(kappa)) for kappa in grid]
    best = int(np.argmin(means))
    least = losses(grid[best])
    steps = []
    for i, kappa in enumerate(grid):
        error = 0.0 if i == best else sample.error(losses(kappa) - least)
        steps.append(ShrinkageTrial(kappa, means[i], means[i] - means[best], error))
    return tuple(steps)


def choose_shrinkage(path: tuple[ShrinkageTrial, ...]) -> float:
    """The largest κ that is behind the best by at most one standard error; infinity without any."""
    fit = [step.shrinkage for step in path if step.behind <= step.error]
    return max(fit, default=float("inf"))


# --- The two ways to fit segments: a calibrator for each, or a sigmoid of the map of all rows -----


#: prior standard deviations of a segment's offset (at its mean) and slope, on the logit scale
OFFSET, SLOPE = 1.0, 0.3
PRECISION = np.array([OFFSET**-2, SLOPE**-2])
#: the longest step of a segment's coefficients, in units of the largest (of 1 if both are smaller)
FURTHEST_START = 2.0


class Own:
    """The same calibrator for all rows and for each segment, each fitted to its own rows."""

    input = "score"

    def __init__(self, calibrator: Calibrator) -> None:
        self.calibrator = calibrator

    def common(self, table: ScoreTable) -> Map:
        """The map of all rows."""
        fitted: Map = bare(self.calibrator).fit_table(table).map_
        return fitted

    def each(self, stack: SegmentCells, wanted: Index, coarser: Array) -> list[Map | None]:
        """The maps of the wanted segments; None where one cannot be fitted."""
        maps: list[Map | None] = []
        for i in wanted.tolist():
            table = stack.table(i)
            maps.append(bare(self.calibrator).fit_table(table).map_ if table else None)
        return maps


class Residual:
    """BLS for all rows; in a segment a sigmoid of its logit, with a prior at no change.

    η = z + a + c·(z − z̄), z the logit of the common map (with several columns, of what the coarser
    segment gives) and z̄ its mean in the segment; a has a
    Gaussian prior of deviation `OFFSET`, c one of `SLOPE`. All segments are solved at once.
    """

    input = "default"

    def common(self, table: ScoreTable) -> Map:
        """The map of all rows."""
        return BLS().fit_table(table).map_

    def each(self, stack: SegmentCells, wanted: Index, coarser: Array) -> list[Map | None]:
        """Sigmoids of what the coarser map gives, which is known for each cell."""
        intercept, slope = solve(stack, logit(coarser))
        return [Logistic(float(intercept[i]), (("z", float(slope[i])),)) for i in wanted]


Way = Own | Residual


class _SegmentProblem:
    """The losses of all segments with their priors, as functions of all offsets and tilts."""

    def __init__(self, stack: SegmentCells, z: Array) -> None:
        # a segment counts against the prior by its effective number of rows
        unit = stack.spread(stack.unit)
        self.stack, self.z = stack, z
        self.n0, self.n1 = stack.counts.negative * unit, stack.counts.positive * unit
        self.n = self.n0 + self.n1
        self.mass = stack.total(self.n)
        self.centre = stack.total(self.n * z) / np.where(self.mass > 0.0, self.mass, 1.0)
        self.centred = z - stack.spread(self.centre)

    def eta(self, theta: Array) -> Array:
        offset, tilt = (self.stack.spread(part) for part in theta)
        return np.asarray(self.z + offset + tilt * self.centred)

    def loss(self, theta: Array) -> Array:
        eta = self.eta(theta)
        cells = self.n1 * np.logaddexp(0.0, -eta) + self.n0 * np.logaddexp(0.0, eta)
        return np.asarray(self.stack.total(cells) + 0.5 * PRECISION @ np.square(theta))

    def newton(self, theta: Array) -> tuple[Array, Array]:
        """Newton's step of every segment, and the slope by which the loss falls along it."""
        eta, total = self.eta(theta), self.stack.total
        p, q = sigmoid(eta), sigmoid(-eta)
        residual, curve = self.n1 * q - self.n0 * p, self.n * p * q
        g0 = total(residual) - PRECISION[0] * theta[0]
        g1 = total(residual * self.centred) - PRECISION[1] * theta[1]
        h00 = total(curve) + PRECISION[0]
        h01 = total(curve * self.centred)
        h11 = total(curve * self.centred * self.centred) + PRECISION[1]
        det = h00 * h11 - h01 * h01
        step = np.stack(((h11 * g0 - h01 * g1) / det, (h00 * g1 - h01 * g0) / det))
        return step, g0 * step[0] + g1 * step[1]


def solve(stack: SegmentCells, z: Array) -> tuple[Array, Array]:
    """The most probable intercept and slope of every segment, by Newton's method on all at once.

    A ConvergenceError is raised where no optimum is found.
    """
    problem = _SegmentProblem(stack, z)
    theta = np.zeros((2, len(stack)))
    loss = problem.loss(theta)
    moving = np.ones(len(stack), dtype=bool)
    for _ in range(100):
        step, fall = problem.newton(theta)
        last = fall <= 1e-14 * (1.0 + problem.mass)
        theta = np.where(moving & last, theta + step, theta)  # the last step is taken too
        moving &= ~last
        if not moving.any():
            break
        reach = FURTHEST_START * np.maximum(1.0, np.abs(theta).max(axis=0))
        length = moving * np.minimum(1.0, reach / np.maximum(np.abs(step).max(axis=0), 1e-300))
        for _ in range(40):
            there = problem.loss(theta + length * step)
            worse = moving & (there > loss - 1e-4 * length * fall)
            if not worse.any():
                break
            length = np.where(worse, 0.5 * length, length)
        moving &= ~(worse & is_hidden(fall, loss, problem.mass))
        if (moving & worse).any():
            break
        theta = np.where(moving, theta + length * step, theta)
        loss = np.where(moving, there, loss)
    if moving.any():
        raise ConvergenceError(
            f"the fit of every segment must end at its optimum, but {int(moving.sum())} did not. "
            "Weights that differ by many orders of magnitude can do this: rescale or cut them."
        )
    offset, tilt = theta
    return offset - tilt * problem.centre, 1.0 + tilt


# --- The tables of all segments, one after the other, so that sums over segments need no loop -----
# Their folds are dealt from the cells, or made of rows as a splitter says.


@dataclass(frozen=True)
class SegmentCells:
    """Cells of all segments, those of a segment together and in ascending order of score.

    ``starts`` says where each segment begins and ``sizes`` how many cells it has, at least one; a
    cell may have lost all of its weight to a fold. ``ends`` are the least and the largest score of
    the fit, which say what scores are in every segment and fold.
    """

    keys: tuple[SegmentKey, ...]
    scores: Array
    counts: CellColumns
    starts: Index
    sizes: Index
    scale: ScoreScale
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
        number = {key: i for i, key in enumerate(dict.fromkeys(first))}
        return np.array([number[key] for key in first], dtype=np.intp)

    def cells(self, i: int) -> slice:
        """Where the cells of a segment are."""
        return slice(int(self.starts[i]), int(self.starts[i] + self.sizes[i]))

    def table(self, i: int) -> ScoreTable:
        """The table of one segment."""
        part = self.cells(i)
        table = ScoreTable.from_counts(self.scores[part], *(c[part] for c in self.counts))
        return table.part_of(self.scale)

    def whole(self) -> ScoreTable:
        """The table of all segments together; pooled cells keep the largest error."""
        table = ScoreTable.from_counts(self.scores, *self.counts).part_of(self.scale)
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
        CellColumns(*(np.concatenate([getattr(table, c) for table in parts]) for c in columns)),
        np.cumsum(sizes) - sizes,
        sizes,
        ScoreScale.of_parts(table.scale for table in parts),
        worst.error,
        worst.made,
    )


def _rank(table: ScoreTable) -> tuple[Any, ...]:
    """A key to sort by. Leading bytes come first, so a last rounding does not change the order."""
    columns = (table.scores, table.positive, table.negative)
    return (len(table), *(column.astype(">f8").tobytes() for column in columns))


# --- Folds ----------------------------------------------------------------------------------------


#: what maps are fitted to, and what they are judged on
SegmentFold = tuple[SegmentCells, CellColumns]
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
    return [(replace(stack, counts=stack.counts.less(one)), one) for one in held]


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
    some = rows.take(np.flatnonzero(present))
    pairs, _ = split_present(cv, some, np.array([False, True]), present, groups, seed)
    square = weight if counts else weight**2

    def sums(part: Index, share: Array) -> CellColumns:
        columns = [
            np.bincount(cell[part], (values * share * side)[part], minlength=len(stack.scores))
            for values in (weight, square)
            for side in (~positive, positive)
        ]
        return CellColumns(*(column.astype(np.float64) for column in columns))

    every = np.ones(len(cell))
    times = np.bincount(np.concatenate([test for _, test in pairs]), minlength=len(cell))
    share = 1.0 / np.maximum(times, 1)
    return [(replace(stack, counts=sums(train, every)), sums(test, share)) for train, test in pairs]


def _cells(stack: SegmentCells, scores: Array, keys: list[SegmentKey], codes: Index) -> Index:
    """The cell of each row."""
    number = {key: i for i, key in enumerate(stack.keys)}
    cell = np.zeros(len(codes), dtype=np.intp)
    for key, mine in rows_by_segment(keys, codes):
        if key in number:
            part = stack.cells(number[key])
            nearest = np.searchsorted(stack.scores[part], scores[mine])
            cell[mine] = part.start + np.minimum(nearest, part.stop - part.start - 1)
    return cell


def rows_by_segment(keys: list[SegmentKey], codes: Index) -> Iterator[tuple[SegmentKey, Index]]:
    """The rows of each segment, in their order."""
    order = np.argsort(codes.astype(np.min_scalar_type(len(keys))), kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(keys)))
    return zip(keys, np.split(order, ends[:-1]), strict=True)
