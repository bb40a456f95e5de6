"""SegmentedCalibrator: a map for each segment, shrunk to the map of all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.array_types import Array, Index
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
from calibrant.data.score_table import ScoreTable, table_in_rows
from calibrant.data.segments import SegmentKey, coarsen_segments, names_of_columns, segment_codes
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.base import WEIGHTS, Calibrator, ScoreEstimator, range_of_table, table_facts
from calibrant.fitting.fitted import PredictsByRule
from calibrant.fitting.folds import FOLDS, Splits, table_cv
from calibrant.fitting.registry import calibrator_of
from calibrant.methods.segments.shrink import (
    FittedLevel,
    MakeFolds,
    Own,
    Residual,
    SegmentCells,
    ShrinkageTrial,
    Way,
    choose_shrinkage,
    coarser_tables,
    cross_validate,
    dealt,
    fit_level,
    folds_of_rows,
    held_out_of,
    read_tables,
    rows_by_segment,
    shares,
    small,
    stack_of,
    values_at,
)
from calibrant.metrics.intervals import PairedCells
from calibrant.rules.base import Map
from calibrant.rules.segmented import Segmented


class OneScore:
    """The limits of ``calibrator``: None, or a calibrator of one score or its name."""

    def allows(self, value: Any) -> bool:
        return value is None or isinstance(calibrator_of(value), Calibrator)

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
        "cv": (Splits(),),
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
        if groups is None and table_cv(self.cv):
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
        if not table_cv(self.cv):
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
        way = Residual() if self.calibrator is None else Own(calibrator_of(self.calibrator))
        whole = stack_of(data[0].tables).whole()
        common = way.common(whole)
        done: list[FittedLevel] = []
        segments: list[Segment] = []
        for level in data:
            fitted, records = fit_column(way, common, level, done, self)
            done.append(fitted)
            segments += records
        own = {key: pair for level in done for key, pair in level.own.items()}
        self.segments_ = tuple(sorted(segments, key=lambda one: _sorting(one.key)))
        kept = [one.key for one in self.segments_ if one.share > 0.0]
        self.map_ = Segmented(
            common,
            tuple(kept),
            tuple(own[key][0] for key in kept),
            np.array([own[key][1] for key in kept], dtype=np.float64),
            way.input,
            tuple(one.key for one in self.segments_ if not one.share > 0.0),
        )
        kappas = tuple(level.shrinkage for level in done)
        known = [value if np.isfinite(value) else None for value in kappas]
        self.shrinkage_ = kappas if len(done) > 1 else kappas[0]
        self.path_ = tuple(level.path for level in done) if len(done) > 1 else done[0].path
        self.classes_, self.pos_label_ = classes, pos_label
        self.score_range_ = range_of_table(whole)
        self._provenance = {
            **table_facts(whole),
            "segments": len(self.segments_),
            "segments_of_their_own": len(kept),
            "shrinkage": known if len(done) > 1 else known[0],
        }
        return self


def _columns(keys: list[Any]) -> int:
    return len(keys[0]) if keys and isinstance(keys[0], tuple) else 1


def _sorting(key: SegmentKey) -> tuple[tuple[bool, Any], ...]:
    """Integers first, then strings; coarse segments before their parts."""
    return tuple(
        (isinstance(part, str), part) for part in (key if isinstance(key, tuple) else (key,))
    )


# --- Predictions of a calibrator of segments for rows that it has not seen ------------------------


def held_out(
    calibrator: SegmentedCalibrator, tables: Mapping[Any, ScoreTable], folds: int, seed: int = 0
) -> tuple[ScoreTable, PairedCells | None, int]:
    """The table of predictions out of fold, these beside the scores of the same rows, and the
    number of folds; empty and None where none can be made.

    Rows are dealt class by class over all segments; each fold fits everything anew to the others,
    the choice of shrinkage included.

    >>> t = ScoreTable.from_counts([0.2, 0.8], [30, 10], [10, 30])
    >>> after, _, folds = held_out(SegmentedCalibrator(shrinkage=10.0), {"a": t, "b": t}, 2)
    >>> after.total, folds
    (160.0, 2)
    """
    stack = stack_of(read_tables(tables))
    names = np.empty(len(stack), dtype=object)
    for i, key in enumerate(stack.keys):  # at once, tuples would become a matrix
        names[i] = key
    segments = names[np.repeat(np.arange(len(stack)), stack.sizes)]
    parts = dealt(stack, folds, seed)
    if not parts:
        return ScoreTable.empty(), None, 0
    outputs = []
    for rest, _ in parts:
        left = {key: rest.table(i) for i, key in enumerate(stack.keys)}
        fitted = clone(calibrator).fit_tables(left)
        outputs.append(fitted.map_(stack.scores, segments))
    held = held_out_of(stack, [columns for _, columns in parts])
    trial = held.trial(np.concatenate(outputs))
    return held.predictions(trial), held.paired(trial), len(parts)


# --- The segments of one column, fitted and shrunk to those of the columns before it --------------


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


def fit_column(
    way: Way,
    common: Map,
    data: LevelData,
    done: Sequence[FittedLevel],
    asked: SegmentedCalibrator,
) -> tuple[FittedLevel, list[Segment]]:
    """The maps of the segments of one column, after those of the columns before it, and the
    segments.

    κ and the least numbers of rows are as ``asked`` says.
    """
    stack = stack_of(data.tables)
    coarser = values_at(way, common, [level.own for level in done], stack)
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
            judged = stack_of(small(data.tables))
            folds = dealt(judged, FOLDS if asked.cv is None else asked.cv, int(asked.random_state))
        else:
            judged, folds = stack, data.make_folds(stack)
        path = cross_validate(way, judged, folds, wanted, done)
        kappa = choose_shrinkage(path)
    share = np.where(able, shares(stack.rows, kappa), 0.0)
    own = fit_level(way, stack, share, coarser)
    reasons = np.where(few, TOO_FEW, np.where(alone, ALONE, ALIKE))
    records = [_record(stack, i, share, str(reasons[i])) for i in range(len(stack))]
    return FittedLevel(own, wanted, kappa, path), records


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
