"""SegmentedCalibrator: a map for each segment, shrunk to the map of all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.auto.folds import Splits, table_cv
from calibrant.data.labels import read_classes
from calibrant.data.score_range import OnRange
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_keys import Key, segment_codes
from calibrant.data.validation import Rows, check_lengths, read_binary
from calibrant.data.weighing import table_in_rows
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.base import (
    WEIGHTS,
    Calibrator,
    Limit,
    Number,
    OneOf,
    check_parameters,
    range_of_table,
    table_facts,
)
from calibrant.estimators.registry import calibrator_of
from calibrant.estimators.score_estimator import ScoreEstimator
from calibrant.estimators.splits import FOLDS
from calibrant.maps import Segmented
from calibrant.segment.fits import Own, Residual, Way
from calibrant.segment.records import Segment, ShrinkageTrial
from calibrant.segment.segment_cells import SegmentCells, read_tables, stack_of
from calibrant.segment.shrink import between, choose, cross_validate, shares, small
from calibrant.segment.splits import MakeFolds, SegmentFold, dealt, folds_of_rows, rows_by_segment

__all__ = ["SegmentedCalibrator"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: why a segment has the map of all rows
TOO_FEW = "too few rows"
ALIKE = "segments hardly differ"
OTHER_SCORES = "scores in [0, 1], where those of others are not"


class OneScore:
    """The limits of ``calibrator``: None, or a calibrator of one score or its name."""

    def allows(self, value: Any) -> bool:
        return value is None or isinstance(calibrator_of(value), Calibrator)

    def __str__(self) -> str:
        return "None or a calibrator of one score or its name, such as Platt() or 'isotonic'"


class SegmentedCalibrator(ScoreEstimator):
    """A map for each segment, shrunk to the map of all rows.

    A row of segment g with score s gets p = λ · m_g(s) + (1 − λ) · m(s). Here m is fitted to all
    rows and m_g to those of the segment, and λ grows with their number. Segments that were never
    seen, or have too few rows, get m(s).

    Parameters
    ----------
    calibrator : Calibrator or name, such as "isotonic", default=None
        Of one score; cloned for all rows and for each segment. None takes `BLS` for all rows and
        for each segment a sigmoid of its output, with a prior at no change. Segments then share the
        shape of the map, and need fewer rows to find their own offset and slope.
    shrinkage : {"cv", "bayes"} or float ≥ 0, default="cv"
        How λ is found. ``"cv"``: λ = n/(n + κ), where n is the segment's effective number of rows,
        and κ, from 0 to infinity, is chosen on rows held out. ``"bayes"``: λ = τ²/(τ² + v), where v
        is the variance of the segment's estimated offset from m on the logit scale, and τ² the
        variance of the true offsets between segments. A number is κ itself, 0 for no shrinkage.
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
        if it has the map of all rows.
    shrinkage_ : float
        κ (infinity: no segment goes its own way), or τ² with ``shrinkage="bayes"``.
    path_ : tuple of ShrinkageTrial
        With ``shrinkage="cv"``: the log loss of each κ on rows left out; else empty.

    Notes
    -----
    κ is the largest candidate (0, powers of two, infinity) whose log loss out of fold is within one
    standard error of the least, so segments that do not differ get the map of all rows. Folds are
    dealt from the segments' tables. A wrong 0 or 1 counts as the nearest number to it.

    τ² is Paule and Mandel's estimate [1]_ from the offsets a_g and their variances v_g. Each a_g
    has the log-F(1, 1) prior [2]_, which keeps it finite without positives. If offsets differ no
    more than they would by chance on average, τ² is 0, and all segments get the map of all rows.

    Cost: O(folds · (fit of all rows + segments · fit of one)), and O(n log n) for the tables. With
    ``calibrator=None`` segments are solved together, O(cells) per step. Beyond 500,000 cells κ is
    chosen on pooled tables. Ties share a cell; neither order of rows nor names of segments matter.

    References
    ----------
    .. [1] R. Paule, J. Mandel, "Consensus values and weighting factors", 1982,
       doi:10.6028/jres.087.022.
    .. [2] S. Greenland, M. Mansournia, "Penalization, bias reduction, and default priors in
       logistic and related categorical and survival regressions", 2015, doi:10.1002/sim.6537.

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

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "calibrator": (OneScore(),),
        "shrinkage": (OneOf(("cv", "bayes")), Number(0.0)),
        "min_rows": (Number(0.0),),
        "min_events": (Number(0.0),),
        "cv": (Splits(),),
        "weights": (WEIGHTS,),
        "random_state": (Number(0, whole=True),),
    }

    map_: Segmented
    pos_label_: Any
    segments_: tuple[Segment, ...]
    shrinkage_: float
    path_: tuple[ShrinkageTrial, ...]

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
        segments : array-like of shape (n,)
            The segment of each row, strings or whole numbers (booleans are 0 and 1); none missing.
        groups : array-like of shape (n,), optional
            Rows of one group are held out together where κ is chosen.
        """
        self._check_fit(scores, y)
        rows = read_binary(scores, y, sample_weight, pos_label=self.pos_label, classes=self.classes)
        keys, codes = segment_codes(_given(segments))
        check_lengths(scores=len(rows.scores), segments=len(codes))
        make_folds = None
        if groups is not None or not table_cv(self.cv):
            options = {"cv": self.cv, "groups": groups, "seed": int(self.random_state)}
            counts = self.weights == "counts"

            def make_folds(stack: SegmentCells) -> list[SegmentFold]:
                return folds_of_rows(stack, rows, keys, codes, counts=counts, **options)

        self._learn(_tables(rows, keys, codes), rows.classes, rows.pos_label, make_folds)
        self._provenance["rows"] = rows.count
        return self

    def fit_tables(self, tables: Mapping[Any, ScoreTable]) -> Self:
        """Fit to a table for each segment; their labels are ``classes`` (default 0 and 1).

        Tables may be pooled, as a GROUP BY of segment and cell of score gives them.
        """
        check_parameters(self, self._limits)
        if not table_cv(self.cv):
            raise ParameterError(
                "cv of SegmentedCalibrator must be a number of folds for tables, which have no "
                f"rows to split, but {self.cv!r} came."
            )
        labels = read_classes(self.classes, self.pos_label)
        return self._learn(read_tables(tables), *labels)

    def _learn(
        self,
        tables: dict[Key, ScoreTable],
        classes: NDArray[Any],
        pos_label: Any,
        make_folds: MakeFolds | None = None,
    ) -> Self:
        if self.weights == "counts":
            tables = {key: table_in_rows(table, "counts") for key, table in tables.items()}
        stack = stack_of(tables)
        way = Residual() if self.calibrator is None else Own(calibrator_of(self.calibrator))
        whole = stack.whole()
        common = way.common(whole)
        few = _few(stack, self.min_rows, self.min_events)
        able = ~few & way.readable(stack)
        path: tuple[ShrinkageTrial, ...] = ()
        if self.shrinkage == "bayes":
            shrinkage, share = between(stack, common)
        else:
            shrinkage, path = self._kappa(way, tables, stack, able, make_folds)
            share = shares(stack.rows, shrinkage)
        share, keys = np.where(able, share, 0.0), stack.keys
        order = sorted(range(len(stack)), key=lambda i: _sorting(keys[i]))
        kept = np.array([i for i in order if share[i] > 0.0], dtype=np.intp)
        self.map_ = Segmented(
            common,
            tuple(keys[i] for i in kept),
            tuple(way.each(stack, kept, common)),
            share[kept],
            way.input,
            tuple(keys[i] for i in order if not share[i] > 0.0),
        )
        self.shrinkage_, self.path_ = shrinkage, path
        self.segments_ = tuple(_record(stack, i, share, few, able) for i in order)
        self.classes_, self.pos_label_ = classes, pos_label
        self.score_range_ = range_of_table(whole)
        self._provenance = {
            **table_facts(whole),
            "segments": len(stack),
            "segments_of_their_own": len(kept),
            "shrinkage": shrinkage if np.isfinite(shrinkage) else None,
        }
        return self

    def _kappa(
        self,
        way: Way,
        tables: dict[Key, ScoreTable],
        stack: SegmentCells,
        able: Flags,
        make_folds: MakeFolds | None,
    ) -> tuple[float, tuple[ShrinkageTrial, ...]]:
        if not isinstance(self.shrinkage, str):
            return float(self.shrinkage), ()
        wanted = {key for key, well in zip(stack.keys, able, strict=True) if well}
        if make_folds is None:
            stack = stack_of(small(tables))
            folds = dealt(stack, FOLDS if self.cv is None else self.cv, int(self.random_state))
        else:
            folds = make_folds(stack)
        path = cross_validate(way, stack, folds, wanted)
        return choose(path), path

    def calibrate(self, scores: Any, segments: Any = None, *, on_range: OnRange = "error") -> Any:
        """The calibrated probability of ``pos_label_`` for each score and segment, shape (n,).

        ``on_range`` is as in `Calibrator`.
        """
        return self._applied.calibrate(scores, _given(segments), on_range)

    def predict_proba(
        self, scores: Any, segments: Any = None, *, on_range: OnRange = "error"
    ) -> Array:
        """The probability of each class, shape (n, 2), columns in the order of ``classes_``."""
        return self._applied.predict_proba(scores, _given(segments), on_range)

    def predict(
        self, scores: Any, segments: Any = None, *, on_range: OnRange = "error"
    ) -> NDArray[Any]:
        """The more probable class of each row (the first in sorted order on ties)."""
        best = self._applied.predict(scores, _given(segments), on_range)
        labels: NDArray[Any] = self.classes_[best]
        return labels


def _given(segments: Any) -> Any:
    if segments is not None:
        return segments
    raise InputError(
        "this calibrator requires segments to be passed, one for each row: segments=[...]."
    )


def _tables(rows: Rows, keys: list[Key], codes: NDArray[np.intp]) -> dict[Key, ScoreTable]:
    """A table for each segment; those of which every row has weight zero are left out."""
    parts = rows_by_segment(keys, codes)
    tables = {key: ScoreTable.from_rows(rows.take(mine)) for key, mine in parts}
    return {key: table for key, table in tables.items() if table}


def _few(stack: SegmentCells, rows: float, events: float) -> Flags:
    """Which segments do not reach the minimum counts, up to rounding."""
    near = 1.0 - 1e-9
    return np.asarray((stack.rows < rows * near) | (stack.events < events * near))


def _record(stack: SegmentCells, i: int, share: Array, few: Flags, able: Flags) -> Segment:
    table = stack.table(i)
    reason = ""
    if share[i] == 0.0:
        reason = TOO_FEW if few[i] else ALIKE if able[i] else OTHER_SCORES
    return Segment(
        stack.keys[i],
        table.total,
        table.total_positive,
        table.effective_size,
        table.rarest,
        float(share[i]),
        reason,
    )


def _sorting(key: Key) -> tuple[bool, Any]:
    """Integers first, then strings."""
    return isinstance(key, str), key
