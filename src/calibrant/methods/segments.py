"""SegmentedCalibrator: a map for each segment, shrunk to the map of all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
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
    segment_codes,
    segment_column_names,
    segment_path,
)
from calibrant.errors import ConvergenceError, InputError, ParameterError
from calibrant.fitting.base import (
    WEIGHTS,
    Calibrator,
    ScoreEstimator,
    facts_of_table,
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


@dataclass(eq=False, repr=False)
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

    calibrator: Calibrator | str | None = None
    _: KW_ONLY
    shrinkage: str | float = "cv"
    min_rows: float = 10
    min_events: float = 0
    cv: int = 5
    weights: str = "importance"
    random_state: int = 0
    pos_label: Any = None
    classes: Any = None

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

    def fit(
        self,
        scores: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        segments: Any = None,
        groups: ArrayLike | None = None,
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
        parts = [coarsen_segments(keys, codes, size) for size in range(1, 1 + _count_columns(keys))]
        levels: list[tuple[Tables, Split | None]] = []
        for part in parts:
            by_key = rows_by_segment(*part)
            tables = {key: ScoreTable.from_rows(rows.take(mine)) for key, mine in by_key}
            tables = {key: table for key, table in tables.items() if table}
            if self._whole is not None:
                tables = {key: table.part_of(self._whole) for key, table in tables.items()}
            dealt = groups is None and is_fold_count(self.cv)
            split = partial(split_segment_rows, rows=rows, part=part, groups=groups, asked=self)
            levels.append((tables, None if dealt else split))
        self._learn(levels, rows.classes, rows.pos_label)
        self._provenance |= rows.facts
        names = segment_column_names(segments)
        if len(names) == len(parts):
            self._provenance["segment_column"] = names
        return self

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
        fine = read_segment_tables(tables)
        columns = _count_columns(list(fine))
        levels = [coarser_tables(fine, size) for size in range(1, columns)]
        return self._learn([(tables, None) for tables in (*levels, fine)], *labels)

    def _learn(
        self,
        levels: list[tuple[Tables, Split | None]],
        classes: NDArray[Any],
        pos_label: Any,
    ) -> Self:
        if self.weights == "counts":
            levels = [
                ({key: table_in_rows(table, "counts") for key, table in tables.items()}, split)
                for tables, split in levels
            ]
        method = SegmentMethod(None if self.calibrator is None else to_calibrator(self.calibrator))
        columns = [SegmentTables(tables) for tables, _ in levels]
        whole = ScoreTable.gather(columns[0].tables.values())
        common = method.common(whole)
        done: list[FittedLevel] = []
        for segments, (_, split) in zip(columns, levels, strict=True):
            done.append(fit_segment_column(method, common, segments, split, done, self))
        own = {key: pair for level in done for key, pair in level.own.items()}

        def order(one: Segment) -> list[tuple[bool, Any]]:
            """Integers first, then strings; coarse segments before their parts."""
            path = one.key if isinstance(one.key, tuple) else (one.key,)
            return [(isinstance(part, str), part) for part in path]

        self.segments_ = tuple(sorted((one for level in done for one in level.records), key=order))
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
        self.score_range_, facts = facts_of_table(whole)
        self._provenance = {
            **facts,
            "segments": len(self.segments_),
            "segments_of_their_own": len(kept),
            "shrinkage": known if len(done) > 1 else known[0],
        }
        return self


def _count_columns(keys: list[Any]) -> int:
    return len(keys[0]) if keys and isinstance(keys[0], tuple) else 1


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

#: the tables of the segments of one column (and those before it)
Tables = dict[SegmentKey, ScoreTable]
#: the maps of the segments of one column, and how much each counts
Level = dict[SegmentKey, tuple[Map, float]]


class FittedLevel(NamedTuple):
    """The fit of the segments of one column.

    ``own`` are their maps, ``wanted`` the segments with enough rows for one, ``shrinkage`` is κ,
    ``path`` the trials of other κ, and ``records`` the facts about each segment.
    """

    own: Level
    wanted: set[SegmentKey]
    shrinkage: float
    path: tuple[ShrinkageTrial, ...]
    records: list[Segment]


def fit_segment_column(
    method: SegmentMethod,
    common: Map,
    segments: SegmentTables,
    split: Split | None,
    done: Sequence[FittedLevel],
    asked: SegmentedCalibrator,
) -> FittedLevel:
    """Fit a map for each segment of one column, shrunk to the maps of the columns before it
    (``done``).

    κ is chosen on the folds that ``split`` makes. Without it, folds are dealt from the tables.
    """
    rows = segments.rows(segments.counts)
    near = 1.0 - 1e-9  # counts are compared up to rounding
    few = (rows < asked.min_rows * near) | (segments.events < asked.min_events * near)
    # the only one in its coarser segment has the same rows
    alone = (np.bincount(segments.coarser)[segments.coarser] == 1) & bool(done)
    able = ~few & ~alone
    wanted = {key for key, well in zip(segments.keys, able, strict=True) if well}
    path: tuple[ShrinkageTrial, ...] = ()
    if not isinstance(asked.shrinkage, str):
        kappa = float(asked.shrinkage)
    else:
        judged = segments if split else segments.pooled()
        k, seed = FOLDS if asked.cv is None else asked.cv, int(asked.random_state)
        folds = split(segments) if split else deal_segment_folds(judged, k, seed)
        path = try_shrinkages(method, judged, folds, wanted, done)
        # the largest that is behind the best by at most one standard error
        fit = [trial.shrinkage for trial in path if trial.behind <= trial.error]
        kappa = max(fit, default=float("inf"))
    share = np.where(able, segment_shares(rows, kappa), 0.0)
    coarser = method.values(common, [level.own for level in done], segments)
    own = method.fit(segments, segments.counts, share, coarser)
    reasons = np.where(few, TOO_FEW, np.where(alone, ALONE, ALIKE))
    records = []
    for i, key in enumerate(segments.keys):
        table, reason = segments.table(i, segments.counts), "" if share[i] else str(reasons[i])
        known = (table.total, table.total_positive, table.effective_size, table.rarest)
        records.append(Segment(key, *known, float(share[i]), reason))
    return FittedLevel(own, wanted, kappa, path, records)


def segment_shares(rows: Array, shrinkage: float) -> Array:
    """λ = n / (n + κ); 1 for κ = 0 wherever there are rows.

    >>> segment_shares(np.array([0.0, 10.0, 30.0]), 10.0).tolist()
    [0.0, 0.5, 0.75]
    """
    if np.isinf(shrinkage):
        return np.zeros(len(rows))
    return np.asarray(rows / np.where(rows > 0.0, rows + shrinkage, 1.0))


# --- Cross-validation of κ ------------------------------------------------------------------------


#: the candidates for κ are 0, this number and its doubles up to so many times the rows of the
#: largest segment, and infinity
FINEST, FURTHEST = 0.5, 8.0


def try_shrinkages(
    method: SegmentMethod,
    segments: SegmentTables,
    folds: list[Fold],
    wanted: set[SegmentKey],
    coarser: Sequence[FittedLevel] = (),
) -> tuple[ShrinkageTrial, ...]:
    """A trial of each κ on rows held out; none if there are no folds.

    ``coarser`` are the fits of the columns before this one: each fold fits them again with their κ.
    """
    mine = np.array([key in wanted for key in segments.keys])
    if not folds or not mine.any():
        return ()
    here = segments.spread(mine)
    held = segments.held_out([CellColumns(*(c * here for c in held)) for _, held in folds])
    cell, positive = held.units
    if not len(cell):
        return ()
    outputs = [_fit_segment_fold(method, segments, rest, mine, coarser) for rest, _ in folds]
    own, common, rows = (np.concatenate(column)[cell] for column in zip(*outputs, strict=True))

    def losses(kappa: float) -> Array:
        """−ln of the probability of the label; a wrong 0 or 1 counts as the nearest number."""
        share = segment_shares(rows, kappa)
        p = np.clip(share * own + (1.0 - share) * common, SMALLEST, LARGEST)
        return losses_of_units(p, positive)[0]

    grid, kappa = [0.0], FINEST
    while kappa <= FURTHEST * float(segments.rows(segments.counts)[mine].max()):
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


def _fit_segment_fold(
    method: SegmentMethod,
    segments: SegmentTables,
    rest: CellColumns,
    mine: Flags,
    coarser: Sequence[FittedLevel],
) -> tuple[Array, Array, Array]:
    """Fit segments to the rows that a fold learns from, and predict every cell.

    For each cell: the probability by its segment's own map, the probability by the coarser map, and
    the number of rows that its segment has in the fold.
    """
    common = method.common(segments.whole(rest))
    tables = segments.tables_of(rest) if coarser else {}
    levels: list[Level] = []
    for size, known in enumerate(coarser, start=1):
        part = SegmentTables(coarser_tables(tables, size))
        rows = part.rows(part.counts)
        able = np.array([key in known.wanted for key in part.keys])
        share = np.where(able, segment_shares(rows, known.shrinkage), 0.0)
        before = method.values(common, levels, part)
        levels.append(method.fit(part, part.counts, share, before))
    of_all = method.values(common, levels, segments)
    own = method.fit(segments, rest, mine.astype(float), of_all)
    return method.add(of_all, segments, own), of_all, segments.spread(segments.rows(rest))


# --- The two ways to fit segments: a calibrator for each, or a sigmoid of the map of all rows -----


#: prior standard deviations of a segment's offset (at its mean) and slope, on the logit scale
OFFSET, SLOPE = 1.0, 0.3
PRECISION = np.array([OFFSET**-2, SLOPE**-2])
#: the longest step of a segment's coefficients, in units of the largest (of 1 if both are smaller)
FURTHEST_START = 2.0


@dataclass(frozen=True)
class SegmentMethod:
    """How segments are fitted: by the same calibrator as all rows, each to its own rows.

    None is BLS for all rows, and in a segment a sigmoid of its logit, with a prior at no change:
    η = z + a + c·(z − z̄), z the logit of the common map (with several columns, of what the coarser
    segment gives) and z̄ its mean in the segment; a has a Gaussian prior of deviation `OFFSET`, c
    one of `SLOPE`. All segments are solved at once.
    """

    calibrator: Calibrator | None

    @property
    def input(self) -> str:
        """The input of a segment's map: what the common map gives ("default"), or the score."""
        return "default" if self.calibrator is None else "score"

    def common(self, table: ScoreTable) -> Map:
        """The map of all rows."""
        calibrator = BLS() if self.calibrator is None else self.calibrator
        fitted: Map = copy_for_tables(calibrator).fit_table(table).map_
        return fitted

    def fit(
        self, segments: SegmentTables, counts: CellColumns, share: Array, coarser: Array
    ) -> Level:
        """The map of each segment whose share is above 0. Segments that cannot be fitted are left
        out.

        ``coarser`` is the probability of each cell without these maps.
        """
        level: Level = {}
        chosen = np.flatnonzero(share > 0.0).tolist()
        if self.calibrator is None and chosen:
            intercept, slope = fit_sigmoids(segments, counts, logit(coarser))
        for i in chosen:
            if self.calibrator is None:
                own: Map = Logistic(float(intercept[i]), (("z", float(slope[i])),))
            elif table := segments.table(i, counts):
                own = copy_for_tables(self.calibrator).fit_table(table).map_
            else:
                continue
            level[segments.keys[i]] = own, float(share[i])
        return level

    def values(self, common: Map, levels: Sequence[Level], segments: SegmentTables) -> Array:
        """The probability of each cell, by the map of all rows and the segments' maps of several
        columns."""
        p = common(segments.scores)
        for size, level in enumerate(levels, start=1):
            p = self.add(p, segments, level, size)
        return p

    def add(
        self, before: Array, segments: SegmentTables, level: Level, size: int | None = None
    ) -> Array:
        """The probability of each cell with the maps of one more column; ``before`` is that without
        them.

        ``size`` is the number of columns in the keys of this level (None: all of them).
        """
        asked = before if self.input == "default" else segments.scores
        p = before.copy()
        for i, key in enumerate(segments.keys):
            name = key[:size] if isinstance(key, tuple) else key
            if name in level:
                own, share = level[name]
                cells = segments.cells(i)
                p[cells] = share * own(asked[cells]) + (1.0 - share) * before[cells]
        return p


def fit_sigmoids(segments: SegmentTables, counts: CellColumns, z: Array) -> tuple[Array, Array]:
    """The most probable intercept and slope of every segment, by Newton's method on all at once.

    A ConvergenceError is raised where no optimum is found.
    """
    total, spread = segments.total, segments.spread
    # a segment counts against the prior by its effective number of rows
    weight = segments.total(counts.negative + counts.positive)
    unit = spread(segments.rows(counts) / np.where(weight > 0.0, weight, 1.0))
    n0, n1 = counts.negative * unit, counts.positive * unit
    n = n0 + n1
    mass = total(n)
    centre = total(n * z) / np.where(mass > 0.0, mass, 1.0)
    centred = z - spread(centre)

    def log_odds(theta: Array) -> Array:
        offset, tilt = map(spread, theta)
        return np.asarray(z + offset + tilt * centred)

    def loss_at(theta: Array) -> Array:
        eta = log_odds(theta)
        cells = n1 * np.logaddexp(0.0, -eta) + n0 * np.logaddexp(0.0, eta)
        return np.asarray(total(cells) + 0.5 * PRECISION @ np.square(theta))

    def newton(theta: Array) -> tuple[Array, Array]:
        """Newton's step of every segment, and the slope by which the loss falls along it."""
        eta = log_odds(theta)
        p, q = sigmoid(eta), sigmoid(-eta)
        residual, curve = n1 * q - n0 * p, n * p * q
        g0 = total(residual) - PRECISION[0] * theta[0]
        g1 = total(residual * centred) - PRECISION[1] * theta[1]
        h00 = total(curve) + PRECISION[0]
        h01 = total(curve * centred)
        h11 = total(curve * centred * centred) + PRECISION[1]
        det = h00 * h11 - h01 * h01
        step = np.stack(((h11 * g0 - h01 * g1) / det, (h00 * g1 - h01 * g0) / det))
        return step, g0 * step[0] + g1 * step[1]

    offset, tilt = _descend_all_segments(loss_at, newton, mass)
    return offset - tilt * centre, 1.0 + tilt


def _descend_all_segments(
    loss_at: Callable[[Array], Array], newton: Callable[[Array], tuple[Array, Array]], mass: Array
) -> Array:
    """The parameters of least loss of every segment. Each segment takes steps of its own length."""
    theta = np.zeros((2, len(mass)))
    loss = loss_at(theta)
    moving = np.ones(len(mass), dtype=bool)
    for _ in range(100):
        step, fall = newton(theta)
        last = fall <= 1e-14 * (1.0 + mass)
        theta = np.where(moving & last, theta + step, theta)  # the last step is taken too
        moving &= ~last
        if not moving.any():
            break
        reach = FURTHEST_START * np.maximum(1.0, np.abs(theta).max(axis=0))
        length = moving * np.minimum(1.0, reach / np.maximum(np.abs(step).max(axis=0), 1e-300))
        for _ in range(40):
            there = loss_at(theta + length * step)
            worse = moving & (there > loss - 1e-4 * length * fall)
            if not worse.any():
                break
            length = np.where(worse, 0.5 * length, length)
        moving &= ~(worse & is_hidden(fall, loss, mass))
        if (moving & worse).any():
            break
        theta = np.where(moving, theta + length * step, theta)
        loss = np.where(moving, there, loss)
    if moving.any():
        raise ConvergenceError(
            f"the fit of every segment must end at its optimum, but {int(moving.sum())} did not. "
            "Weights that differ by many orders of magnitude can do this: rescale or cut them."
        )
    return theta


# --- The tables of all segments, one after the other, so that sums over segments need no loop -----
# Their folds are dealt from the cells, or made of rows as a splitter says.


class SegmentTables:
    """The tables of all segments, in an order that depends on their cells and not on their names.

    Cells are numbered through, segment after segment. A fold has other ``counts`` of the same
    cells, which may be 0. The scale of all scores says what they are in every segment and fold.
    """

    def __init__(self, tables: Tables) -> None:
        def content(key: SegmentKey) -> tuple[Any, ...]:
            """Leading bytes come first, so that a last rounding does not change the order."""
            table = tables[key]
            columns = (table.scores, table.positive, table.negative)
            return (len(table), *(column.astype(">f8").tobytes() for column in columns))

        self.keys = tuple(sorted(tables, key=content))
        self.tables = {key: tables[key] for key in self.keys}
        parts = list(self.tables.values())
        self.scores = np.concatenate([table.scores for table in parts])
        self.counts = concatenate_columns([table.columns for table in parts])
        self.sizes = np.array([len(table) for table in parts], dtype=np.intp)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.scale = ScoreScale.of_parts(table.scale for table in parts)

    def total(self, values: Array) -> Array:
        """The sum of the cells' values in each segment."""
        return np.add.reduceat(values, self.starts)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """A value of each segment, repeated for all of its cells."""
        return np.repeat(values, self.sizes)

    def rows(self, counts: CellColumns) -> Array:
        """The effective number of rows in each segment: (Σw)² / Σw²."""
        n0, n1, q0, q1 = counts
        return _effective_rows(self.total(n0 + n1), self.total(q0 + q1))

    @property
    def events(self) -> Array:
        """The effective number of rows of the rarer class in each segment."""
        n0, n1, q0, q1 = map(self.total, self.counts)
        return np.minimum(_effective_rows(n0, q0), _effective_rows(n1, q1))

    @property
    def coarser(self) -> Index:
        """For each segment the number of the coarser segment that contains it."""
        first = [key[:-1] if isinstance(key, tuple) else () for key in self.keys]
        number = {key: i for i, key in enumerate(dict.fromkeys(first))}
        return np.array([number[key] for key in first], dtype=np.intp)

    def cells(self, i: int) -> slice:
        """The places of a segment's cells, as a slice."""
        return slice(int(self.starts[i]), int(self.starts[i] + self.sizes[i]))

    def table(self, i: int, counts: CellColumns) -> ScoreTable:
        """The table of one segment."""
        return self._table(self.cells(i), counts)

    def whole(self, counts: CellColumns) -> ScoreTable:
        """The table of all segments together."""
        return self._table(slice(None), counts)

    def _table(self, cells: slice, counts: CellColumns) -> ScoreTable:
        table = ScoreTable.from_counts(self.scores[cells], *counts.take(cells))
        return table.part_of(self.scale)

    def tables_of(self, counts: CellColumns) -> Tables:
        """The tables of all segments."""
        return {key: self.table(i, counts) for i, key in enumerate(self.keys)}

    def pooled(self) -> SegmentTables:
        """The segments with their tables pooled, if these have more than `MOST_CELLS` together."""
        if len(self.scores) <= MOST_CELLS:
            return self
        most = max(FEWEST_CELLS, MOST_CELLS // len(self.keys))
        return SegmentTables({key: table.pool(most) for key, table in self.tables.items()})

    def held_out(self, held: Sequence[CellColumns]) -> HeldOutCells:
        """The cells of all segments, repeated for each fold, with the rows that the fold holds
        out."""
        scores = np.tile(self.scores, len(held))
        return HeldOutCells(scores, concatenate_columns(held), [len(self.scores)] * len(held))


def _effective_rows(total: Array, squares: Array) -> Array:
    return np.asarray(total**2 / np.where(squares > 0.0, squares, 1.0))


def read_segment_tables(tables: Any) -> dict[SegmentKey, ScoreTable]:
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
    """The tables of coarser segments: tables whose keys begin with the same ``size`` values are
    added."""
    groups: dict[SegmentKey, list[ScoreTable]] = {}
    for key, table in tables.items():
        if isinstance(key, tuple) and table:
            groups.setdefault(key[:size], []).append(table)
    return {key: ScoreTable.gather(parts) for key, parts in groups.items()}


# --- Folds ----------------------------------------------------------------------------------------


#: what maps are fitted to in each cell, and what they are judged on
Fold = tuple[CellColumns, CellColumns]
#: makes the folds of the segments' cells
Split = Callable[["SegmentTables"], list[Fold]]


def deal_segment_folds(segments: SegmentTables, k: int, seed: int) -> list[Fold]:
    """k folds, to which rows are dealt class by class. Fewer if a class has fewer rows; none below
    two."""
    k = limit_folds(k, segments.whole(segments.counts).rarest)
    if not k:
        return []
    numbers = np.arange(len(segments.scores), dtype=np.float64)  # a cell stands for a score
    deal = TableFolds(ScoreTable(numbers, *segments.counts), k, seed=seed)
    return [(segments.counts.minus(held), held) for held in map(deal.held, range(k))]


def split_segment_rows(
    segments: SegmentTables,
    *,
    rows: Rows,
    part: tuple[list[SegmentKey], Index],
    groups: Any,
    asked: SegmentedCalibrator,
) -> list[Fold]:
    """The folds that a splitter, groups or a fraction give, in the cells of the segments' tables.

    ``part`` holds the segments, and for each row the number of its segment. A row that is held out
    r times counts 1/r each time.
    """
    cell = np.zeros(len(rows.scores), dtype=np.intp)
    number = {key: i for i, key in enumerate(segments.keys)}
    for key, mine in rows_by_segment(*part):
        if key in number:
            cells = segments.cells(number[key])
            nearest = np.searchsorted(segments.scores[cells], rows.scores[mine])
            cell[mine] = cells.start + np.minimum(nearest, cells.stop - cells.start - 1)
    weight = np.ones(len(cell)) if rows.weight is None else rows.weight
    present = weight > 0.0
    cell, weight, positive = cell[present], weight[present], rows.positive[present]
    some = replace(rows.without_weightless(), classes=np.array([False, True]))
    pairs, _ = split_rows_with_weight(asked.cv, some, groups, int(asked.random_state))
    square = weight if asked.weights == "counts" else weight**2

    def sums(part: Index, share: Array) -> CellColumns:
        columns = [
            np.bincount(cell[part], (values * share * side)[part], minlength=len(segments.scores))
            for values in (weight, square)
            for side in (~positive, positive)
        ]
        return CellColumns(*(column.astype(np.float64) for column in columns))

    every = np.ones(len(cell))
    times = np.bincount(np.concatenate([test for _, test in pairs]), minlength=len(cell))
    share = 1.0 / np.maximum(times, 1)
    return [(sums(train, every), sums(test, share)) for train, test in pairs]


def rows_by_segment(keys: list[SegmentKey], codes: Index) -> Iterator[tuple[SegmentKey, Index]]:
    """Each segment with the numbers of its rows."""
    order = np.argsort(codes.astype(np.min_scalar_type(len(keys))), kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(keys)))
    return zip(keys, np.split(order, ends[:-1]), strict=True)


# --- Predictions of a calibrator of segments for rows that it has not seen ------------------------


def predict_segments(
    calibrator: SegmentedCalibrator, tables: Mapping[Any, ScoreTable], folds: int, seed: int = 0
) -> tuple[ScoreTable, PairedCells | None, int]:
    """Predictions of a calibrator of segments out of fold, from tables.

    The result: the table of predictions, the same paired with the scores, and the number of folds.
    If there can be no folds, the table is empty and the pairs are None.

    Rows are dealt class by class over all segments. Each fold fits everything anew, the choice of
    shrinkage included.

    >>> t = ScoreTable.from_counts([0.2, 0.8], [30, 10], [10, 30])
    >>> after, _, folds = predict_segments(SegmentedCalibrator(shrinkage=10.0), {"a": t, "b": t}, 2)
    >>> after.total, folds
    (160.0, 2)
    """
    parts = SegmentTables(read_segment_tables(tables))
    names = np.empty(len(parts.keys), dtype=object)
    for i, key in enumerate(parts.keys):  # at once, tuples would become a matrix
        names[i] = key
    pairs = deal_segment_folds(parts, folds, seed)
    if not pairs:
        return ScoreTable.empty(), None, 0
    outputs = []
    for rest, _ in pairs:
        fitted = clone(calibrator).fit_tables(parts.tables_of(rest))
        outputs.append(fitted.map_(parts.scores, parts.spread(names)))
    held = parts.held_out([columns for _, columns in pairs])
    trial = held.trial(np.concatenate(outputs))
    return held.predictions(trial), held.paired(trial), len(pairs)
