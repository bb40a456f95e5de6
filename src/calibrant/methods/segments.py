"""SegmentedCalibrator: a map for each segment, shrunk to the map of all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.array_types import Array, Flags, Index
from calibrant.data.door import (
    Limit,
    Number,
    OneOf,
    Rows,
    check_lengths,
    check_parameters,
    read_binary,
    read_class_pair,
)
from calibrant.data.scale import ScoreScale
from calibrant.data.score_table import CellColumns, ScoreTable, table_in_rows
from calibrant.data.segments import (
    SegmentKey,
    coarsen_segments,
    names_of_columns,
    segment_codes,
    segment_path,
)
from calibrant.errors import ConvergenceError, InputError, ParameterError
from calibrant.fitting.base import (
    WEIGHTS,
    Calibrator,
    ScoreEstimator,
    score_range_of_table,
    table_provenance,
)
from calibrant.fitting.fitted import PredictsByRule
from calibrant.fitting.folds import (
    FOLDS,
    CvLimit,
    TableFolds,
    is_fold_count,
    limit_folds,
    split_rows_with_weight,
)
from calibrant.fitting.held_out import HeldOutCells, concatenate_columns, losses_of_units
from calibrant.fitting.registry import copy_for_tables, to_calibrator
from calibrant.losses import LARGEST, SMALLEST, logit, sigmoid
from calibrant.methods.splines.bls import BLS
from calibrant.metrics.intervals import PairedCells
from calibrant.rules.base import Map
from calibrant.rules.segmented import Segmented
from calibrant.rules.sigmoids import Logistic
from calibrant.solvers.newton import is_hidden


class OneScore:
    """The limits of ``calibrator``: None, or a calibrator of one score or its name."""

    def allows(self, value: Any) -> bool:
        return value is None or isinstance(to_calibrator(value), Calibrator)

    def __str__(self) -> str:
        return "None or a calibrator of one score or its name, such as Platt() or 'isotonic'"


class SegmentedCalibrator(PredictsByRule, ScoreEstimator):
    """A map for each segment, shrunk to the map of all rows.

    A row of segment g with score s gets p = λ · m_g(s) + (1 − λ) · m(s). Here m is fitted to all
    rows and m_g to those of the segment, and λ grows with their number. Segments that were never
    seen, or have too few rows, get m(s).

    Segments may be several columns, from coarse to fine, such as country and product: a product of
    a country is shrunk to the map of its country, and that to the map of all rows. A product that
    was never seen in its country gets the country's map.

    Parameters
    ----------
    calibrator : Calibrator or name, such as "isotonic", default=None
        Of one score; cloned for all rows and for each segment. None takes `BLS` for all rows and
        for each segment a sigmoid of its output, with a prior at no change. Segments then share the
        shape of the map, and need fewer rows to find their own offset and slope.
    shrinkage : "cv" or float ≥ 0, default="cv"
        κ in λ = n/(n + κ), where n is the segment's effective number of rows. ``"cv"`` chooses it,
        from 0 to infinity, on rows held out. 0 is no shrinkage.
    min_rows, min_events : float, default=10 and 0
        Segments with fewer rows, or fewer rows of the rarer class, get the map of all rows. Rows of
        unequal weight count by (Σw)²/Σw².
    cv : int, None (5), float, splitter or iterable of (train, test) rows, default=5
        The folds on which κ is chosen; fewer where a class has fewer rows. `fit_tables` has no
        rows to split and takes only a number.
    random_state : int, default=0
        Seed of the folds.
    weights, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    map_ : Segmented
        The fitted function of score and segment, a value.
    classes_ : ndarray of shape (2,)
        The labels, sorted; the columns of `predict_proba`.
    pos_label_ : label
        The class whose probability `calibrate` gives.
    segments_ : tuple of Segment
        Each segment's key, weight, positives, effective rows and events, share λ, and the reason
        if it has no map of its own. With several columns the coarser segments are listed, too.
    shrinkage_ : float
        κ (infinity: all segments have the map of all rows). With several columns a tuple, one
        number for each.
    path_ : tuple of ShrinkageTrial
        With ``shrinkage="cv"``: the log loss of each κ on rows left out; else empty. With several
        columns a tuple of such tuples.

    Notes
    -----
    κ is the largest candidate (0, powers of two, infinity) whose log loss out of fold is within one
    standard error of the least, so segments that do not differ get the map of all rows. Folds are
    dealt from the segments' tables. A probability of 0 or 1 that is wrong costs as much as the
    nearest number between them.

    Several columns are fitted one after the other. The first is fitted as if it were the only
    one. Then κ of the next is found with what the coarser segments give in the place of m.
    A segment that is the only one in its coarser segment has the same rows and the same map.

    Cost: O(folds · (fit of all rows + segments · fit of one)), and O(n log n) for the tables. With
    ``calibrator=None`` segments are solved together, O(cells) per step. Beyond 500,000 cells κ is
    chosen on pooled tables. Ties share a cell; neither order of rows nor names of segments matter.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores, country = rng.random(3000), rng.choice(["de", "fr", "it"], 3000)
    >>> y = rng.random(3000) < np.where(country == "it", scores**3, scores)
    >>> c = SegmentedCalibrator().fit(scores, y, segments=country)
    >>> c.calibrate([0.5, 0.5, 0.5], segments=["de", "it", "es"]).round(2).tolist()
    [0.5, 0.13, 0.39]
    >>> [(s.key, round(s.share, 2)) for s in c.segments_]
    [('de', 0.98), ('fr', 0.98), ('it', 0.98)]
    """

    _takes: ClassVar[frozenset[str]] = frozenset({"segments"})
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "calibrator": (OneScore(),),
        "shrinkage": (OneOf(("cv",)), Number(0.0)),
        "min_rows": (Number(0.0),),
        "min_events": (Number(0.0),),
        "cv": (CvLimit(),),
        "weights": (WEIGHTS,),
        "random_state": (Number(0, whole=True),),
    }

    map_: Segmented
    pos_label_: Any
    segments_: tuple[Segment, ...]
    shrinkage_: float | tuple[float, ...]
    path_: tuple[Any, ...]

    def __init__(
        self,
        calibrator: Calibrator | str | None = None,
        *,
        shrinkage: str | float = "cv",
        min_rows: float = 10,
        min_events: float = 0,
        cv: int = 5,
        weights: str = "importance",
        random_state: int = 0,
        pos_label: Any = None,
        classes: Any = None,
    ) -> None:
        self.calibrator = calibrator
        self.shrinkage = shrinkage
        self.min_rows = min_rows
        self.min_events = min_events
        self.cv = cv
        self.weights = weights
        self.random_state = random_state
        self.pos_label = pos_label
        self.classes = classes

    def fit(
        self,
        scores: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        segments: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the map of all rows and that of each segment.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1) or (n, 2)
            Scores of any kind, or a binary predict_proba (then pos_label's column is used).
        y : array-like of shape (n,)
            Labels: any two values.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        segments : array-like of shape (n,), or several columns
            The segment of each row, strings or whole numbers (booleans are 0 and 1); none missing.
            Several columns, from coarse to fine, are a frame, a dict of columns, a list of columns,
            an array of shape (n, j), or a list of tuples, one for each row.
        groups : array-like of shape (n,), optional
            Rows of one group are held out together where κ is chosen.
        """
        self._check_fit(scores, y)
        rows = read_binary(scores, y, sample_weight, pos_label=self.pos_label, classes=self.classes)
        if segments is None:
            raise InputError(
                "this calibrator requires segments to be passed, one for each row: segments=[...]."
            )
        keys, codes = segment_codes(segments)
        check_lengths(scores=len(rows.scores), segments=len(codes))
        parts = [coarsen_segments(keys, codes, size) for size in range(1, 1 + _columns(keys))]
        self._learn(
            [self._data(rows, *part, groups) for part in parts], rows.classes, rows.pos_label
        )
        self._provenance |= rows.facts
        names = names_of_columns(segments)
        if len(names) == len(parts):
            self._provenance["segment_column"] = names
        return self

    def _data(self, rows: Rows, keys: list[Any], codes: Index, groups: Any) -> LevelData:
        """The tables of the segments of one column, and how folds are made of their rows."""
        parts = rows_by_segment(keys, codes)
        tables = {key: ScoreTable.from_rows(rows.take(mine)) for key, mine in parts}
        present = {key: table for key, table in tables.items() if table}
        if self._whole is not None:
            present = {key: table.part_of(self._whole) for key, table in present.items()}
        if groups is None and is_fold_count(self.cv):
            return LevelData(present)
        options: dict[str, Any] = {"cv": self.cv, "seed": int(self.random_state), "groups": groups}
        options |= {"rows": rows, "keys": keys, "codes": codes, "counts": self.weights == "counts"}
        return LevelData(present, partial(folds_of_rows, **options))

    def fit_tables(self, tables: Mapping[Any, ScoreTable]) -> Self:
        """Fit to a table for each segment; their labels are ``classes`` (default 0 and 1).

        Segments of several columns are tuples, such as ("fr", "card"). Tables may be pooled, as a
        GROUP BY of segment and cell of score gives them.
        """
        check_parameters(self, self._limits)
        if not is_fold_count(self.cv):
            raise ParameterError(
                "cv of SegmentedCalibrator must be a number of folds for tables, which have no "
                f"rows to split, but {self.cv!r} came."
            )
        labels = read_class_pair(self.classes, self.pos_label)
        fine = read_tables(tables)
        columns = _columns(list(fine))
        levels = [LevelData(coarser_tables(fine, size)) for size in range(1, columns)]
        return self._learn([*levels, LevelData(fine)], *labels)

    def _learn(self, data: list[LevelData], classes: NDArray[Any], pos_label: Any) -> Self:
        if self.weights == "counts":
            data = [
                level._replace(
                    tables={k: table_in_rows(t, "counts") for k, t in level.tables.items()}
                )
                for level in data
            ]
        method = (
            SigmoidOfCommon()
            if self.calibrator is None
            else CalibratorOfEach(to_calibrator(self.calibrator))
        )
        whole = SegmentCells.of(data[0].tables).whole()
        common = method.fit_common(whole)
        done: list[FittedLevel] = []
        segments: list[Segment] = []
        for level in data:
            fitted, records = fit_column(method, common, level, done, self)
            done.append(fitted)
            segments += records
        own = {key: pair for level in done for key, pair in level.own.items()}
        self.segments_ = tuple(sorted(segments, key=lambda one: _sort_key(one.key)))
        kept = [one.key for one in self.segments_ if one.share > 0.0]
        self.map_ = Segmented(
            common,
            tuple(kept),
            tuple(own[key][0] for key in kept),
            np.array([own[key][1] for key in kept], dtype=np.float64),
            method.input,
            tuple(one.key for one in self.segments_ if not one.share > 0.0),
        )
        kappas = tuple(level.shrinkage for level in done)
        known = [value if np.isfinite(value) else None for value in kappas]
        self.shrinkage_ = kappas if len(done) > 1 else kappas[0]
        self.path_ = tuple(level.path for level in done) if len(done) > 1 else done[0].path
        self.classes_, self.pos_label_ = classes, pos_label
        self.score_range_ = score_range_of_table(whole)
        self._provenance = {
            **table_provenance(whole),
            "segments": len(self.segments_),
            "segments_of_their_own": len(kept),
            "shrinkage": known if len(done) > 1 else known[0],
        }
        return self


def _columns(keys: list[Any]) -> int:
    return len(keys[0]) if keys and isinstance(keys[0], tuple) else 1


def _sort_key(key: SegmentKey) -> tuple[tuple[bool, Any], ...]:
    """Integers first, then strings; coarse segments before their parts."""
    return tuple(
        (isinstance(part, str), part) for part in (key if isinstance(key, tuple) else (key,))
    )


# --- What a fit says of its segments and of the κ that were tried -------------------------------


@dataclass(frozen=True)
class Segment:
    """One segment: how many rows it had, and the share of its own map in its probabilities.

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


@dataclass(frozen=True)
class ShrinkageTrial:
    """A candidate for κ: its log loss on rows held out, and how far it is behind the best.

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


# --- The segments of one column, fitted and shrunk to those of the columns before it --------------


#: why a segment has no map of its own
TOO_FEW = "too few rows"
ALONE = "the only one in its coarser segment"
ALIKE = "segments hardly differ"
#: κ is chosen on pooled tables where the segments have more cells than this together
MOST_CELLS = 500_000
FEWEST_CELLS = 50

#: the maps of the segments of one column, and how much each counts
Level = dict[SegmentKey, tuple[Map, float]]


class LevelData(NamedTuple):
    """The tables of the segments of one column (and those before it), and their folds."""

    tables: dict[SegmentKey, ScoreTable]
    make_folds: MakeFolds | None = None


class FittedLevel(NamedTuple):
    """The maps of the segments of one column, the segments with rows enough for one, κ, and the
    trials that chose it."""

    own: Level
    wanted: set[SegmentKey]
    shrinkage: float
    path: tuple[ShrinkageTrial, ...]


def fit_column(
    method: SegmentMethod,
    common: Map,
    data: LevelData,
    done: Sequence[FittedLevel],
    asked: SegmentedCalibrator,
) -> tuple[FittedLevel, list[Segment]]:
    """The maps of the segments of one column, shrunk to what the columns before it give (``done``),
    and a record of each segment.

    ``asked`` is the calibrator, whose parameters say κ and the least numbers of rows.
    """
    stack = SegmentCells.of(data.tables)
    coarser = level_values(method, common, [level.own for level in done], stack)
    near = 1.0 - 1e-9  # counts are compared up to rounding
    few = (stack.rows < asked.min_rows * near) | (stack.events < asked.min_events * near)
    # the only one in its coarser segment has the same rows
    alone = (np.bincount(stack.coarser)[stack.coarser] == 1) & bool(done)
    able = ~few & ~alone
    wanted = {key for key, well in zip(stack.keys, able, strict=True) if well}
    path: tuple[ShrinkageTrial, ...] = ()
    if not isinstance(asked.shrinkage, str):
        kappa = float(asked.shrinkage)
    else:
        if data.make_folds is None:
            judged = SegmentCells.of(pooled_tables(data.tables))
            folds = folds_of_tables(
                judged, FOLDS if asked.cv is None else asked.cv, int(asked.random_state)
            )
        else:
            judged, folds = stack, data.make_folds(stack)
        path = cross_validate(method, judged, folds, wanted, done)
        kappa = choose_shrinkage(path)
    share = np.where(able, shares(stack.rows, kappa), 0.0)
    own = fit_level(method, stack, share, coarser)
    reasons = np.where(few, TOO_FEW, np.where(alone, ALONE, ALIKE))
    records = []
    for i, key in enumerate(stack.keys):
        table, reason = stack.table(i), "" if share[i] else str(reasons[i])
        known = (table.total, table.total_positive, table.effective_size, table.rarest)
        records.append(Segment(key, *known, float(share[i]), reason))
    return FittedLevel(own, wanted, kappa, path), records


def shares(rows: Array, shrinkage: float) -> Array:
    """λ = n / (n + κ); 1 for κ = 0 wherever there are rows.

    >>> shares(np.array([0.0, 10.0, 30.0]), 10.0).tolist()
    [0.0, 0.5, 0.75]
    """
    if np.isinf(shrinkage):
        return np.zeros(len(rows))
    return np.asarray(rows / np.where(rows > 0.0, rows + shrinkage, 1.0))


def fit_level(method: SegmentMethod, stack: SegmentCells, share: Array, coarser: Array) -> Level:
    """The maps of the segments of one column. ``coarser`` is what each cell gets without them.

    Segments without a share, and those that cannot be fitted, have none.
    """
    chosen = np.flatnonzero(share > 0.0)
    maps = method.fit_segments(stack, chosen, coarser) if len(chosen) else []
    return {
        stack.keys[i]: (own, float(share[i]))
        for i, own in zip(chosen.tolist(), maps, strict=True)
        if own is not None
    }


def level_values(
    method: SegmentMethod, common: Map, levels: Sequence[Level], stack: SegmentCells
) -> Array:
    """The probability of each cell by the map of all rows and the maps of these columns."""
    p = common(stack.scores)
    for size, level in enumerate(levels, start=1):
        p = add_level(method, p, stack, level, size)
    return p


def add_level(
    method: SegmentMethod, before: Array, stack: SegmentCells, level: Level, size: int | None = None
) -> Array:
    """The probability of each cell by the maps of one more column, given that ``before`` it.

    ``size`` is the number of columns that the keys of the level have (None: all of them).
    """
    asked = before if method.input == "default" else stack.scores
    p = before.copy()
    for i, key in enumerate(stack.keys):
        name = key[:size] if isinstance(key, tuple) else key
        if name in level:
            own, share = level[name]
            cells = stack.cells(i)
            p[cells] = share * own(asked[cells]) + (1.0 - share) * before[cells]
    return p


# --- Cross-validation of κ ------------------------------------------------------------------------


#: the candidates for κ are 0, this number and its doubles up to so many times the rows of the
#: largest segment, and infinity
FINEST, FURTHEST = 0.5, 8.0


def cross_validate(
    method: SegmentMethod,
    stack: SegmentCells,
    folds: list[SegmentFold],
    wanted: set[SegmentKey],
    coarser: Sequence[FittedLevel] = (),
) -> tuple[ShrinkageTrial, ...]:
    """A trial of every κ on rows held out; none where there is no fold.

    ``coarser`` are the fits of the columns before: each fold fits the same segments with their κ.
    """
    mine = np.array([key in wanted for key in stack.keys])
    if not folds or not mine.any():
        return ()
    here = np.repeat(mine, stack.sizes)
    held = _held_out_cells(stack, [CellColumns(*(c * here for c in held)) for _, held in folds])
    cell, positive = held.units
    if not len(cell):
        return ()
    outputs = [_fit_fold(method, stack, rest, mine, coarser) for rest, _ in folds]
    own, common, rows = (np.concatenate(column)[cell] for column in zip(*outputs, strict=True))

    def losses(kappa: float) -> Array:
        """−ln of the probability of the label; a wrong 0 or 1 counts as the nearest number."""
        share = shares(rows, kappa)
        p = np.clip(share * own + (1.0 - share) * common, SMALLEST, LARGEST)
        return losses_of_units(p, positive)[0]

    grid, kappa = [0.0], FINEST
    while kappa <= FURTHEST * float(stack.rows[mine].max()):
        grid.append(kappa)
        kappa *= 2.0
    grid.append(float("inf"))
    means = [held.sample.mean(losses(kappa)) for kappa in grid]
    best = int(np.argmin(means))
    least = losses(grid[best])
    trials = []
    for i, kappa in enumerate(grid):
        error = 0.0 if i == best else held.sample.error(losses(kappa) - least)
        trials.append(ShrinkageTrial(kappa, means[i], means[i] - means[best], error))
    return tuple(trials)


def _held_out_cells(stack: SegmentCells, held: Sequence[CellColumns]) -> HeldOutCells:
    """The cells of all segments, once for each fold, with what the fold holds out of them."""
    size = len(stack.scores)
    return HeldOutCells(
        np.tile(stack.scores, len(held)), concatenate_columns(held), [size] * len(held)
    )


def pooled_tables(tables: dict[SegmentKey, ScoreTable]) -> dict[SegmentKey, ScoreTable]:
    """The tables, pooled if they have more than `MOST_CELLS` together."""
    cells = sum(len(table) for table in tables.values())
    if cells <= MOST_CELLS:
        return tables
    most = max(FEWEST_CELLS, MOST_CELLS // len(tables))
    return {key: table.pool(most) for key, table in tables.items()}


def _fit_fold(
    method: SegmentMethod,
    stack: SegmentCells,
    rest: SegmentCells,
    mine: Flags,
    coarser: Sequence[FittedLevel],
) -> tuple[Array, Array, Array]:
    """Fits to the rest of a fold: for each cell the probability by its segment's own map, that by
    the coarser one, and how many rows its segment has there."""
    common = method.fit_common(rest.whole())
    levels: list[Level] = []
    if coarser:
        tables = {key: rest.table(i) for i, key in enumerate(rest.keys)}
        for size, known in enumerate(coarser, start=1):
            part = SegmentCells.of(coarser_tables(tables, size))
            share = shares(part.rows, known.shrinkage)
            share[[key not in known.wanted for key in part.keys]] = 0.0
            levels.append(
                fit_level(method, part, share, level_values(method, common, levels, part))
            )
    of_all = level_values(method, common, levels, stack)
    own = add_level(method, of_all, stack, fit_level(method, rest, mine.astype(float), of_all))
    return own, of_all, stack.spread(rest.rows)


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


class CalibratorOfEach:
    """The same calibrator for all rows and for each segment, each fitted to its own rows."""

    input = "score"

    def __init__(self, calibrator: Calibrator) -> None:
        self.calibrator = calibrator

    def fit_common(self, table: ScoreTable) -> Map:
        """The map of all rows."""
        fitted: Map = copy_for_tables(self.calibrator).fit_table(table).map_
        return fitted

    def fit_segments(self, stack: SegmentCells, wanted: Index, coarser: Array) -> list[Map | None]:
        """The maps of the wanted segments; None where one cannot be fitted."""
        maps: list[Map | None] = []
        for i in wanted.tolist():
            table = stack.table(i)
            maps.append(copy_for_tables(self.calibrator).fit_table(table).map_ if table else None)
        return maps


class SigmoidOfCommon:
    """BLS for all rows; in a segment a sigmoid of its logit, with a prior at no change.

    η = z + a + c·(z − z̄), z the logit of the common map (with several columns, of what the coarser
    segment gives) and z̄ its mean in the segment; a has a
    Gaussian prior of deviation `OFFSET`, c one of `SLOPE`. All segments are solved at once.
    """

    input = "default"

    def fit_common(self, table: ScoreTable) -> Map:
        """The map of all rows."""
        return BLS().fit_table(table).map_

    def fit_segments(self, stack: SegmentCells, wanted: Index, coarser: Array) -> list[Map | None]:
        """A sigmoid of the coarser map for each wanted segment; ``coarser`` is that map's value."""
        intercept, slope = fit_sigmoids(stack, logit(coarser))
        return [Logistic(float(intercept[i]), (("z", float(slope[i])),)) for i in wanted]


SegmentMethod = CalibratorOfEach | SigmoidOfCommon


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


def fit_sigmoids(stack: SegmentCells, z: Array) -> tuple[Array, Array]:
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

    @classmethod
    def of(cls, tables: Mapping[SegmentKey, ScoreTable]) -> SegmentCells:
        """The tables, in an order that depends on their cells alone and not on their names."""

        def content(item: tuple[SegmentKey, ScoreTable]) -> tuple[Any, ...]:
            """Leading bytes come first, so that a last rounding does not change the order."""
            columns = (item[1].scores, item[1].positive, item[1].negative)
            return (len(item[1]), *(column.astype(">f8").tobytes() for column in columns))

        ordered = sorted(tables.items(), key=content)
        parts = [table for _, table in ordered]
        columns = zip(*(table.columns for table in parts), strict=True)
        worst = max(parts, key=lambda table: table.error)
        sizes = np.array([len(table) for table in parts], dtype=np.intp)
        return cls(
            tuple(key for key, _ in ordered),
            np.concatenate([table.scores for table in parts]),
            CellColumns(*(np.concatenate(column) for column in columns)),
            np.cumsum(sizes) - sizes,
            sizes,
            ScoreScale.of_parts(table.scale for table in parts),
            worst.error,
            worst.made,
        )

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
        return _effective_rows(self.total(n0 + n1), self.total(q0 + q1))

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
        return np.minimum(_effective_rows(n0, q0), _effective_rows(n1, q1))

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


def _effective_rows(total: Array, squares: Array) -> Array:
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


# --- Folds ----------------------------------------------------------------------------------------


#: what maps are fitted to, and what they are judged on
SegmentFold = tuple[SegmentCells, CellColumns]
#: makes the folds of the segments' cells
MakeFolds = Callable[[SegmentCells], list[SegmentFold]]


def folds_of_tables(stack: SegmentCells, k: int, seed: int) -> list[SegmentFold]:
    """k folds, rows dealt class by class; fewer where a class has fewer rows, none below two."""
    k = limit_folds(k, stack.whole().rarest)
    if not k:
        return []
    numbers = np.arange(len(stack.scores), dtype=np.float64)
    deal = TableFolds(ScoreTable(numbers, *stack.counts), k, seed=seed)  # a cell stands for a score
    held = [deal.held(fold) for fold in range(k)]
    return [(replace(stack, counts=stack.counts.minus(one)), one) for one in held]


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
    cell = _cells_of_rows(stack, rows.scores, keys, codes)[present]
    weight, positive = weight[present], rows.positive[present]
    some = rows.take(np.flatnonzero(present))
    pairs, _ = split_rows_with_weight(cv, some, np.array([False, True]), present, groups, seed)
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


def _cells_of_rows(
    stack: SegmentCells, scores: Array, keys: list[SegmentKey], codes: Index
) -> Index:
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


# --- Predictions of a calibrator of segments for rows that it has not seen ------------------------


def predict_held_out(
    calibrator: SegmentedCalibrator, tables: Mapping[Any, ScoreTable], folds: int, seed: int = 0
) -> tuple[ScoreTable, PairedCells | None, int]:
    """The table of predictions out of fold, these beside the scores of the same rows, and the
    number of folds; empty and None where none can be made.

    Rows are dealt class by class over all segments; each fold fits everything anew to the others,
    the choice of shrinkage included.

    >>> t = ScoreTable.from_counts([0.2, 0.8], [30, 10], [10, 30])
    >>> after, _, folds = predict_held_out(SegmentedCalibrator(shrinkage=10.0), {"a": t, "b": t}, 2)
    >>> after.total, folds
    (160.0, 2)
    """
    stack = SegmentCells.of(read_tables(tables))
    names = np.empty(len(stack), dtype=object)
    for i, key in enumerate(stack.keys):  # at once, tuples would become a matrix
        names[i] = key
    segments = names[np.repeat(np.arange(len(stack)), stack.sizes)]
    parts = folds_of_tables(stack, folds, seed)
    if not parts:
        return ScoreTable.empty(), None, 0
    outputs = []
    for rest, _ in parts:
        left = {key: rest.table(i) for i, key in enumerate(stack.keys)}
        fitted = clone(calibrator).fit_tables(left)
        outputs.append(fitted.map_(stack.scores, segments))
    held = _held_out_cells(stack, [columns for _, columns in parts])
    trial = held.trial(np.concatenate(outputs))
    return held.predictions(trial), held.paired(trial), len(parts)
