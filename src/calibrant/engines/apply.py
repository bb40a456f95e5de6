"""Calibrated probabilities as one more column of a frame, wherever its rows are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags
from calibrant.data.attributes import Attribute
from calibrant.data.columns import (
    as_double,
    check_segment_columns,
    class_column_names,
    first_row,
    is_finite,
    is_infinite,
    is_missing,
    is_nan,
    names_as_in_fit,
    object_array,
    segment_columns_of,
    series_of_doubles,
    unknown_column,
)
from calibrant.data.door import check_word, sum_tolerance
from calibrant.data.lazy import count_rows, refuse_streams, rename_columns, with_safe_names
from calibrant.data.scale import (
    FEW,
    ON_RANGE,
    OnRange,
    ScoreRange,
    check_score_range,
    outside_message,
    warn_of_far_scores,
)
from calibrant.data.segments import NewSegments, finest_example
from calibrant.engines.files import MISSING, number_in_word
from calibrant.engines.frame_printer import (
    EXPRESSION,
    FrameBuilder,
    FramePrinter,
    by_segment,
    check_keys,
    class_probabilities,
    finest_segment_number,
    kind_of_segment,
    open_frame,
    segment_columns,
    sum_of_columns,
    usable_keys,
)
from calibrant.errors import InputError, ParameterError, counts_in_words
from calibrant.fitting.fitted import Fitted, FittedCalibrator, map_of, to_fitted_map
from calibrant.methods.features.rule import TreeRounds
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.plan.nodes import BySegment
from calibrant.rules.segmented import Segmented


def add_probabilities(
    calibrator: FittedCalibrator | Map,
    frame: Any,
    *,
    score: str | Sequence[str] | Mapping[Any, str],
    into: str = "probability",
    segment: str | Sequence[str] | None = None,
    on_missing: Literal["error", "null"] = "error",
    on_new_segment: Literal["warn", "error", "allow"] = "warn",
    on_range: OnRange = "error",
) -> Any:
    """The frame with one more column: the calibrated probability of each row's score.

    A calibrator of several classes reads a column of scores for each and adds a column for each.

    Where the frame is lazy, so is the result: an expression in the frame's own engine, or a join
    to a small table, and no function that the engine's workers would have to install. Only workers
    of Dask need calibrant, whose map is called with one partition after the other.

    Parameters
    ----------
    calibrator : fitted calibrator, Fitted, or Map
    frame : DuckDB relation, Polars LazyFrame, PySpark or Dask DataFrame, or Ibis table
        Or a pandas, Polars or Arrow table in memory.
    score : str, list of str, or dict from classes to str
        The column of scores: numbers of any type. Of several classes: the columns in the order of
        ``classes_``, or by class. The names of the fit may come in any order.
    into : str, default="probability"
        The new column. It must not exist yet. Of several classes: what the names of the new columns
        begin with, followed by ``_`` and the class.
    segment : str or list of str, optional
        The column of segments, text or whole numbers; needed where the calibrator has a map per
        segment. Segments never seen get the map that is common to all. Several columns in the
        order of the fit: a row gets the map of the finest segment that was seen.
    on_missing : {"error", "null"}, default="error"
        What to do with scores that are NULL, NaN or infinite, and with segments that are NULL.
        ``"error"``: refuse them as ``calibrate`` does; one aggregate counts them before anything
        is returned. ``"null"``: such rows get NULL. Then nothing is run if ``on_range`` is not
        ``"error"``, or if the calibrator is one of margins or a bare map.
    on_new_segment : {"warn", "error", "allow"}, default="warn"
        What to say of rows whose segment the calibrator has not seen. ``"warn"``: a
        CalibrationWarning that says how many there are if they are more than half, as where a
        column is spelled in another way; one more aggregate counts them, unless the frame is lazy
        and nothing else is run (see ``on_missing``). ``"error"``: always count and refuse them.
        ``"allow"``: nothing.
    on_range : {"error", "clip", "allow"}, default="error"
        What to do with scores outside [0, 1] where the calibrator was fitted on probabilities.
        ``"error"``: refuse them as ``calibrate`` does; they are counted in the same aggregate (with
        ``on_missing="null"``, in one of their own). ``"clip"``: they count as 0 or 1. ``"allow"``:
        they are taken as they are.

    Returns
    -------
    frame of the same kind
        The same rows and columns, and ``into`` last. A Polars LazyFrame keeps its order of rows.

    Notes
    -----
    Every row gets what ``calibrate`` gives it, to 1e-12 (engines differ in the last bit of ln and
    exp), out of range too: flat ends, or the formula's own. At a jump the side is always that of
    ``calibrate``. A line so steep that it rises by more than 1e-12 within the rounding of a logit
    is the one exception. Formulas cost a scan; maps of more than a few pieces a join with a table
    of some thousand rows, held in memory by each worker.

    Examples
    --------
    >>> import calibrant as cal
    >>> import polars as pl
    >>> c = cal.Platt(scale="raw").fit([-1.0, 0.0, 1.0, 2.0], [0, 1, 0, 1])
    >>> lazy = add_probabilities(c, pl.LazyFrame({"margin": [-1.0, 2.0]}), score="margin", into="p")
    >>> lazy.collect()["p"].round(3).to_list() == c.calibrate([-1.0, 2.0]).round(3).tolist()
    True
    """
    check_word("on_new_segment", on_new_segment, ON_NEW_SEGMENT)
    known = getattr(calibrator, "score_range_", None)  # a bare map is one of any number
    expected = calibrator.expects if isinstance(calibrator, Fitted) else known
    map_, watch = map_of(calibrator), RangeWatch(expected, on_range)
    columns, new = score, [into]
    if isinstance(map_, VectorMap):
        fitted = to_fitted_map(calibrator)
        classes: Sequence[Any] = range(map_.n_classes) if fitted is None else fitted.classes
        columns, new = _score_columns(score, classes, map_), class_column_names(into, classes)
        if fitted is not None and not isinstance(score, Mapping):
            columns = names_as_in_fit(columns, fitted.provenance, classes)
    elif not isinstance(columns, str):
        raise InputError(f"score must be the name of one column, but {score!r} came.")
    segments = segment_columns_of(segment)
    options = ApplyOptions(columns, into, segments or None, on_missing, on_range)
    opened = open_frame(frame)
    check_segment(map_, segments)
    _check_columns(opened, options, new)
    for i, name in enumerate(segments):
        check_keys(map_, i, kind_of_segment(opened.collect_schema(), name), name)
    eager = opened if isinstance(opened, nw.DataFrame) else None
    run = on_missing == "error" or watch.refuses or options.takes_distributions(map_)
    if run and (eager is None or len(eager)):
        _refuse_scores(map_, opened.lazy(), options, watch, warns=eager is None)
    if run or eager is not None or on_new_segment == "error":
        judge_new_segments(map_, opened, segments, on_new_segment)
    if eager is not None:
        return _add_in_memory(map_, eager, options, watch, new).to_native()
    if opened.implementation.is_dask():
        return _add_by_partition(map_, opened.to_native(), options, watch, new)
    return _add_to_lazy_frame(map_, opened.lazy(), options, watch, new)


# --- columns --------------------------------------------------------------------------------------


def _score_columns(score: Any, classes: Sequence[Any], map_: VectorMap) -> tuple[str, ...]:
    """The names of the columns of scores, in the order of the classes."""
    if isinstance(score, Mapping):
        if set(score) != set(classes) or map_.n_columns != len(classes):
            raise InputError(
                f"score must name a column for each of the classes {list(classes)[:20]}, but "
                f"{list(score)[:20]} came."
            )
        return tuple(score[label] for label in classes)
    names = (score,) if isinstance(score, str) else tuple(score)
    if len(names) != map_.n_columns or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"this calibrator reads {map_.n_columns} columns of scores, one for each of "
            f"{list(classes)[:20]} in that order, but {len(names)} came: {list(names)[:8]}. Name "
            "them all: score=[...], or score={class: column, ...}."
        )
    if len(set(names)) != len(names):
        raise InputError(f"each column of scores must come once, but {list(names)[:20]} came.")
    return names


def _check_columns(
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any], options: ApplyOptions, new: Sequence[str]
) -> None:
    """Refuse a frame that lacks a column, has a new one already, or whose scores are no numbers."""
    schema = frame.collect_schema()
    names = schema.names()
    scores, segments = dict.fromkeys(options.scores, "score"), options.segments
    for name, role in (scores | dict.fromkeys(segments, "segment")).items():
        if name not in names:
            raise InputError(unknown_column(name, role, names, "the frame"))
    cased = frame.implementation.is_polars() or frame.implementation.is_dask()
    lazy = isinstance(frame, nw.LazyFrame) and not cased
    same = str.lower if lazy else str  # names that differ only in case are the same to these
    there = {same(name) for name in names}
    taken = [name for name in new if same(name) in there]
    if taken:
        raise InputError(
            f"the frame already has a column {taken[0]!r}. Give the new "
            f"one{'s' * (len(new) > 1)} another name with into=."
        )
    for name in scores:
        if not (schema[name].is_numeric() or schema[name] == nw.Boolean):
            raise InputError(
                f"score column {name!r} must be numbers, but its type is {schema[name]}. Pick "
                "another column or cast it."
            )


# --- rows that are refused, counted where they are ----------------------------------------------


#: what to do about rows without a score or a segment
LEFT_OUT = 'Filter or impute them first, or give them no probability: on_missing="null".'


def _refuse_scores(
    map_: Map, frame: nw.LazyFrame[Any], options: ApplyOptions, watch: RangeWatch, *, warns: bool
) -> None:
    """Count the rows that must be refused (missing, outside [0, 1], no distribution), and refuse
    them."""
    refuse_streams(frame)
    frame, called = with_safe_names(frame)
    columns = [as_double(frame, called[name]) for name in options.scores]
    if isinstance(map_, VectorMap):
        missing = {"NULL, NaN or infinite": ~all_finite(columns)}
    else:
        [s] = columns
        missing = {"NULL": s.is_null(), "NaN": is_nan(s), "infinite": is_infinite(s)}
    must = f"{options.said} must be finite"
    for name in options.segments:
        which = f" ({name!r})" if len(options.segments) > 1 else ""
        missing[f"without a segment{which}"] = nw.col(called[name]).is_null()
        must += f" and segment column {name!r} complete"
    flags = {**missing, **watch.flags(columns)}
    if options.takes_distributions(map_):
        off = (sum_of_columns([watch.inside(own) for own in columns]) - 1.0).abs()
        flags["sums"] = all_finite(columns) & (off > sum_tolerance(len(columns)))
    counts, rows = count_rows(frame, flags, lambda ask: ask())
    found = {word: counts[word] for word in missing}
    if any(found.values()) and options.on_missing == "error":
        raise InputError(f"{must}: {counts_in_words(found, rows)}. {LEFT_OUT}")
    if watch.known is not None and watch.refuses and counts["outside"]:
        raise InputError(outside_message(watch.known, options.said, counts["outside"], rows))
    if counts.get("sums"):
        raise InputError(
            f"{options.said} must be probabilities that sum to 1 in each row: "
            f"{counts['sums']:,} of {rows:,} do not. Is there a column for every class? If the "
            'rows are right: on_range="allow".'
        )
    if warns and "below" in counts:
        watch.warn(counts["below"], counts["above"], rows, options.scores[0])


# --- lazy frames --------------------------------------------------------------------------------


def _add_to_lazy_frame(
    map_: Map,
    frame: nw.LazyFrame[Any],
    options: ApplyOptions,
    watch: RangeWatch,
    new: Sequence[str],
) -> Any:
    """The lazy frame with the new columns, as expressions of its own engine."""
    frame, called = with_safe_names(frame)
    builder = FrameBuilder(frame)
    numbers = [as_double(frame, called[name]) for name in options.scores]
    inside = [watch.inside(own) for own in numbers]
    if isinstance(map_, VectorMap):
        known = builder.keep(all_finite(numbers))
        # a row that lacks a score is computed as a row of zeros, and left out in the end
        given = [nw.when(known).then(own).otherwise(nw.lit(0.0)) for own in inside]
        values = class_probabilities(map_, builder, builder.add_all(given))
    else:
        # NULL for all that is no number
        name = builder.add(nw.when(is_finite(numbers[0])).then(inside[0]))
        # engines disagree on what the larger of NULL and a number is
        known = ~nw.col(name).is_null()
        plan = map_.plan(EXPRESSION)
        if isinstance(plan, BySegment):
            columns = segment_columns(map_, frame, called, options.segments)
            values = [by_segment(plan, columns, name, builder)]
            for segment in options.segments:
                known = known & ~nw.col(called[segment]).is_null()
        else:
            values = [FramePrinter(builder, name).write(plan)]
    made = builder.add_all([nw.when(known).then(own) for own in values])
    result = builder.frame.select(*(nw.col(own) for own in (*called.values(), *made)))
    return rename_columns(result, [*called, *new]).to_native()


# --- frames in memory: the rule itself, on one block --------------------------------------------


def _add_in_memory(
    map_: Map,
    frame: nw.DataFrame[Any],
    options: ApplyOptions,
    watch: RangeWatch,
    new: Sequence[str],
) -> nw.DataFrame[Any]:
    """The frame in memory with the new columns, computed by the map."""
    columns = [series_of_doubles(frame.get_column(name)).to_numpy() for name in options.scores]
    complete, beside = np.ones(len(frame), dtype=bool), []
    for name in options.segments:
        there = ~frame.get_column(name).is_null().to_numpy()
        complete &= there
        values = frame.get_column(name)
        beside.append(values.to_numpy() if there.all() else object_array(values.to_list()))
    of_rows = map_.by_segment if map_.segments is not None else lambda scores, _: map_(scores)
    p, known = block_rule(map_, options, watch, of_rows)(columns, complete, beside)
    p[~known] = np.nan
    made = zip(new, np.atleast_2d(p.T), strict=True)
    return frame.with_columns(*(_probability_column(frame, name, own) for name, own in made))


def _add_by_partition(
    map_: Map, frame: Any, options: ApplyOptions, watch: RangeWatch, new: Sequence[str]
) -> Any:
    """The Dask frame with the new columns. Each partition is computed when Dask asks for it."""
    # what was to be refused, or warned of, has been counted over all partitions
    quiet = RangeWatch(watch.known, "clip" if watch.on_range == "clip" else "allow")

    def add(part: Any) -> Any:
        return _add_in_memory(map_, nw.from_native(part), options, quiet, new).to_native()

    return frame.map_partitions(add, meta=add(frame._meta))


def _probability_column(frame: nw.DataFrame[Any], name: str, p: Array) -> nw.Series[Any]:
    """Probabilities as a column for a frame; NaN becomes NULL."""
    made = nw.new_series(name, p, nw.Float64, backend=frame.implementation)
    if not np.isnan(p).any():
        return made
    known = nw.when(~nw.col(name).is_nan()).then(name).alias(name)
    return made.to_frame().select(known).get_column(name)


# --- What to do when probabilities are added to rows: the options, checked once -------------------


ON_MISSING = ("error", "null")


@dataclass(frozen=True)
class ApplyOptions:
    """Which columns are read and written when probabilities are added to files, and what to do with
    wrong rows.

    With a calibrator of several classes there is a new column for each class.

    Parameters
    ----------
    score : str, or tuple of str
        The column of scores; of several classes one for each, in the order of the classes.
    into : str, default="probability"
        The new column. Of several classes: what the names of the new columns begin with, followed
        by ``_`` and the class.
    segment : str or tuple of str, optional
        The column of segments, needed where the calibrator has a map for each segment; several
        from coarse to fine, as in the fit. Segments are compared as text, so 1 and ``"1"`` are the
        same. Blanks around the text do not count. If all segments of the calibrator are whole
        numbers, 01 and 1.0 are the same as 1. Segments that the calibrator has not seen get the map
        of all rows, or of the coarser segment.
    on_missing : {"error", "null"}, default="error"
        What to do with rows that have no score, or no segment where one is needed. ``"null"``
        leaves their probability empty.
    on_range : {"error", "clip", "allow"}, default="error"
        What to do with scores outside [0, 1] where the calibrator was fitted on probabilities:
        refuse them, count them as 0 or 1, or take them as they are.
    overwrite_column : bool, default=False
        Allow ``into`` to replace a column of that name, in its place.
    force : bool, default=False
        Allow Spark to replace a folder of the output's name. DuckDB replaces a file as it is.
    """

    score: str | tuple[str, ...]
    into: str = "probability"
    segment: str | tuple[str, ...] | None = None
    on_missing: str = "error"
    on_range: str = "error"
    overwrite_column: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        check_word("on_missing", self.on_missing, ON_MISSING)
        check_word("on_range", self.on_range, ON_RANGE)
        segment_columns_of(self.segment)
        if not isinstance(self.into, str) or not self.into.strip():
            raise ParameterError(
                f"into must be the name of the new column, but {self.into!r} came."
            )

    @property
    def columns(self) -> list[str]:
        """The columns that are read: scores, then segments."""
        return [*self.scores, *self.segments]

    @property
    def segments(self) -> tuple[str, ...]:
        """The columns of segments: none, one or several."""
        return segment_columns_of(self.segment)

    @property
    def scores(self) -> tuple[str, ...]:
        """The columns of scores, one or several."""
        return (self.score,) if isinstance(self.score, str) else self.score

    @property
    def said(self) -> str:
        """The columns of scores as a phrase for messages."""
        names = self.scores
        if isinstance(self.score, str):
            return f"score column {self.score!r}"
        return f"score columns {', '.join(map(repr, names[:6]))}{', …' if len(names) > 6 else ''}"

    def takes_distributions(self, map_: Map) -> bool:
        """Whether the scores of a row must be probabilities that sum to one."""
        several = isinstance(map_, VectorMap) and map_.reads == "probability"
        return several and self.on_range != "allow"

    def new_columns(self, fitted: Fitted) -> list[str]:
        """The names of the columns to add: one, or one for each of several classes."""
        if not isinstance(fitted.map, VectorMap):
            return [self.into]
        return class_column_names(self.into, fitted.classes)

    def check_fitted(self, fitted: Fitted) -> None:
        """Refuse a calibrator that these options do not fit."""
        wanted = fitted.map.n_columns if isinstance(fitted.map, VectorMap) else 1
        if len(self.scores) != wanted:
            need = "one column" if wanted == 1 else f"{wanted} columns"
            raise InputError(
                f"this calibrator reads {need} of scores, but {len(self.scores)} came: "
                f"{', '.join(map(repr, self.scores[:8]))}. Name as many as it reads."
            )
        check_segment(fitted.map, self.segments)

    def check_columns(self, new: Sequence[str], names: Sequence[str], file: str) -> None:
        """Refuse a file that has a new column already, unless it may be replaced."""
        there = [name for name in new if name in names]
        if there and not self.overwrite_column:
            raise InputError(
                f"{file} already has a column {there[0]!r}. Give the new one another name (into), "
                "or allow the old one to be replaced (overwrite-column)."
            )


def check_segment(fitted_map: Map, segments: Sequence[str]) -> None:
    """Refuse columns of segments that the calibrator cannot use, and their absence where it needs
    them."""
    if fitted_map.segments is not None and not segments:
        raise InputError(
            "the calibrator has a map for each segment: name the column of segments (segment=)."
        )
    if fitted_map.segments is None and segments:
        raise InputError(
            f"the calibrator has one map for all rows, but a column of segments came: "
            f"{', '.join(map(repr, segments))}. Leave it out."
        )
    check_segment_columns(segments, fitted_map.n_segment_columns)


# --- Scores that a calibrator is not for, counted and moved where the rows are --------------------


def all_finite(columns: Sequence[nw.Expr]) -> nw.Expr:
    """An expression: whether all of some columns hold finite numbers."""
    finite = (~own.is_null() & is_finite(own) for own in columns)
    return nw.all_horizontal(*finite, ignore_nulls=False)


class RangeWatch:
    """What to do with scores outside the range of the fit: count them, clip them, refuse them, or
    warn."""

    def __init__(self, known: ScoreRange | None, on_range: str) -> None:
        check_word("on_range", on_range, ON_RANGE)
        self.known = None if on_range == "allow" else known
        self.on_range = on_range

    @property
    def refuses(self) -> bool:
        """Whether scores outside [0, 1] are refused."""
        return self.known is not None and self.known.probabilities and self.on_range == "error"

    def flags(self, columns: Sequence[nw.Expr]) -> dict[str, nw.Expr]:
        """Conditions to be counted: scores outside [0, 1], and below and above those of the fit."""
        if self.known is None:
            return {}
        usable = all_finite(columns)
        outside = ((own < 0.0) | (own > 1.0) for own in columns)
        found = {"outside": usable & nw.any_horizontal(*outside, ignore_nulls=False)}
        if len(columns) == 1:
            found["below"] = usable & (columns[0] < self.known.low)
            found["above"] = usable & (columns[0] > self.known.high)
        return found

    def warn(self, below: int, above: int, rows: int, column: str) -> None:
        """Warn if most scores lie outside the range of the fit."""
        if self.known is not None and rows >= FEW:
            warn_of_far_scores(self.known, below, above, rows, name=f"scores of column {column!r}")

    def inside(self, score: nw.Expr) -> nw.Expr:
        """An expression: the score, clipped to [0, 1] if that was asked for."""
        if self.on_range != "clip" or self.known is None or not self.known.probabilities:
            return score
        inside = nw.when(score > 1.0).then(nw.lit(1.0)).otherwise(score)
        return nw.when(score < 0.0).then(nw.lit(0.0)).otherwise(inside)

    def of_block(self, scores: Array, name: str) -> Array:
        """The scores of a block, checked, and clipped if that was asked for."""
        return check_score_range(scores, self.known, self.on_range, name=name)


# --- The rule itself on blocks of rows: frames in memory, and files block by block ----------------


def block_rule(
    map_: Map,
    options: ApplyOptions,
    watch: RangeWatch,
    of_rows: Callable[[Array, Sequence[NDArray[Any]]], Array],
) -> Callable[[Sequence[Array], Flags, Sequence[NDArray[Any]]], tuple[Array, Flags]]:
    """A function that computes probabilities block by block. It takes columns of scores, flags of
    complete rows, and other columns.

    It returns the probabilities of rows, a column of them for each of several classes, and which
    rows have one: complete ones with finite scores. ``of_rows`` gives those of complete rows.
    """
    several = isinstance(map_, VectorMap)
    classes = (map_.n_classes,) if isinstance(map_, VectorMap) else ()

    def of_block(
        columns: Sequence[Array], complete: Flags, beside: Sequence[NDArray[Any]]
    ) -> tuple[Array, Flags]:
        scores = np.column_stack(columns) if several else columns[0]
        finite = np.isfinite(scores)
        known: Flags = complete & (finite.all(axis=1) if several else finite)
        p = np.zeros((len(known), *classes))
        if known.any():
            rows: Any = slice(None) if known.all() else known
            given = watch.of_block(scores[rows] + 0.0, options.said)
            p[rows] = of_rows(given, [own[rows] for own in beside])
        return p, known

    return of_block


# --- Calibrators of segments, applied to files, which tell segments by their text -----------------


#: a whole number as files may spell it (007, +7, 7.0), its sign and its digits being groups; and
#: one with a power of ten (1e+05)
WHOLE_NUMBER = r"^[+]?(-?)0*([0-9]+)(?:\.0*)?$"
PLAIN = r"0|-?[1-9][0-9]{0,17}"  # as a fit on text spells them
POWER = r"^[+-]?[0-9]+(?:\.[0-9]*)?[eE][+]?[0-9]+$"


class KeySpelling(NamedTuple):
    """How text in a column of segments is changed before it is looked up among the keys.

    ``whole``: all keys are whole numbers, or text that spells them plainly, so that 7, 07 and 7.0
    are the same. ``trimmed``: the keys have no blanks around them, and the column must lose its
    own. It is False where keys differ only in such blanks.
    """

    whole: bool
    trimmed: bool


def segment_keys(fitted_map: Map) -> tuple[Map, list[KeySpelling]]:
    """The map with text for keys, as files have them, and the spelling of each column of segments.

    >>> from calibrant.maps import Identity
    >>> keys = Segmented(Identity(), ("de  ", "fr"), (Identity(), Identity()))
    >>> segment_keys(keys)[0].keys, segment_keys(keys)[1]
    (('de', 'fr'), [KeySpelling(whole=False, trimmed=True)])
    >>> segment_keys(Segmented(Identity(), (7,), (Identity(),)))[0].keys
    ('7',)
    """
    spellings: list[KeySpelling] = []
    if not isinstance(fitted_map, Segmented):
        return fitted_map, spellings
    count = fitted_map.columns
    made = _respelled(fitted_map, [str] * count)
    if made is None:
        raise InputError("the calibrator has segments that files cannot tell apart, as 1 and '1'.")
    for i in range(count):
        whole = all(
            isinstance(key, int) or re.fullmatch(PLAIN, key) for key in fitted_map.values(i)
        )
        spell: list[Callable[[Any], str]] = [str] * count
        spell[i] = lambda key: key.strip(" ")
        trimmed = _respelled(made, spell)
        # else two segments would become one, or one be lost
        fine = trimmed is not None and "" not in trimmed.values(i)
        made = trimmed if trimmed is not None and fine else made
        spellings.append(KeySpelling(whole, fine))
    return made, spellings


def _respelled(fitted_map: Segmented, spell: Sequence[Callable[[Any], str]]) -> Segmented | None:
    """The map with its keys spelled otherwise; None if two keys would become one."""

    def spelled(key: Any) -> Any:
        if not isinstance(key, tuple):
            return spell[0](key)
        return tuple(own(part) for own, part in zip(spell, key, strict=False))

    keys = tuple(map(spelled, fitted_map.keys))
    common = tuple(dict.fromkeys(map(spelled, fitted_map.default_keys)))
    if len({*keys, *common}) < len(keys) + len(common):
        return None
    return replace(fitted_map, keys=keys, default_keys=common)


# --- A calibrator that looks at further columns of each row, as engines apply it ------------------


@dataclass(frozen=True, eq=False, repr=False)
class RowFitted(Fitted):
    """A fitted calibrator with trees, as engines apply it: a map of the score first, then the
    trees.

    Parameters
    ----------
    trees : TreeRounds, beside all that `Fitted` has
    """

    trees: TreeRounds | None = None

    @classmethod
    def of(cls, fitted: Fitted) -> RowFitted | None:
        """The fitted value that engines can apply; None where it has no trees."""
        rule = fitted.rule
        if not isinstance(rule, TreeRounds):
            return None
        if not rule.schema.named or not all(isinstance(a.name, str) for a in rule.used):
            raise InputError(
                "the calibrator was fitted to features whose columns have no names, so none of a "
                "file can be found. Fit it to a frame, or with calibrant fit --features."
            )
        beside = (fitted.classes, fitted.pos_label, fitted.method, fitted.params, fitted.provenance)
        return cls(rule.start, *beside, fitted.score_range, trees=rule)

    @property
    def used(self) -> tuple[Attribute, ...]:
        """The columns that trees use."""
        return () if self.trees is None else self.trees.used


class SpelledCategories:
    """Turns the text of a categorical column into the codes of the fit, and notices text of the
    wrong kind.

    It watches whether a column holds words or numbers as in the fit, over all blocks.
    """

    def __init__(self, attribute: Attribute) -> None:
        self.attribute, coded = attribute, list(enumerate(attribute.categories or ()))
        self.words = {category: code for code, category in coded if isinstance(category, str)}
        self.numbers = {category: code for code, category in coded if not isinstance(category, str)}
        self.same, self.other = False, ""  # threads set them

    def codes(self, texts: NDArray[Any]) -> Array:
        """The code of each text; NaN where it is missing or not known."""
        values = texts.tolist()
        place = {text: self._code(text) for text in dict.fromkeys(values)}
        kinds = {self._is_same_kind(text): text for text in reversed(place) if text is not None}
        self.same = self.same or True in kinds or None in kinds
        self.other = self.other or kinds.get(False, "")
        return np.array([place[text] for text in values], dtype=np.float64)

    def _code(self, text: str | None) -> float:
        """The code of one text; NaN where it is missing or not known."""
        if text is None:
            return np.nan
        found = self.words.get(text, self.words.get(text.strip()))
        if found is None and self.numbers:
            value = number_in_word(text)
            found = None if value is None else self.numbers.get(value)
        return np.nan if found is None else found

    def _is_same_kind(self, text: str) -> bool | None:
        """Whether a text is a number where the categories are numbers, or a word where they are
        words; None if unclear."""
        if not text.strip() or (self.numbers and self.words):
            return None
        if self.numbers:
            return None if text.strip().lower() in MISSING else number_in_word(text) is not None
        if number_in_word(text) is None:
            return True
        return False if all(number_in_word(word) is None for word in self.words) else None

    def refuse_other(self) -> None:
        """Refuse a column whose values are all of the wrong kind."""
        if self.other and not self.same:
            raise self.attribute.wrong_type_error(words=bool(self.words), example=self.other)


# --- Rows of segments that a calibrator has not seen: count them, refuse them, or warn of them ----


ON_NEW_SEGMENT = ("warn", "error", "allow")


def judge_new_segments(
    map_: Map,
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any],
    columns: Sequence[str],
    on_new_segment: str,
) -> None:
    """Count the rows of segments that the fit did not see; refuse them, or warn where they are most
    rows."""
    # without any, all have one map, and which were seen is not known
    if not isinstance(map_, Segmented) or not map_.seen or on_new_segment == "allow":
        return
    found = count_new_segments(map_, frame, columns)
    if not found.new:
        return
    column = " and ".join(map(repr, columns))
    what = "column" if len(columns) == 1 else "columns"
    if on_new_segment == "error":
        raise InputError(
            f"{found.words()}. Those it has seen are such as {finest_example(map_.seen)!r}. "
            f"Correct {what} {column}, or let them have {found.their_map}: "
            'on_new_segment="allow".'
        )
    advice = f"{'Is' if len(columns) == 1 else 'Are'} {what} {column} spelled as in the fit?"
    found.warn_of_most(map_.seen, f'{advice} If so, on_new_segment="allow" says nothing.')


def count_new_segments(
    map_: Map, frame: nw.DataFrame[Any] | nw.LazyFrame[Any], columns: Sequence[str]
) -> NewSegments:
    """How many rows have a segment, and how many of these have one that the fit did not see."""
    found = NewSegments()
    if not isinstance(map_, Segmented) or not map_.seen:
        return found
    if isinstance(frame, nw.DataFrame):
        lists = [frame.get_column(name).to_list() for name in columns]
        rows = [row for row in zip(*lists, strict=True) if not any(map(is_missing, row))]
        found.add([row[0] for row in rows] if len(lists) == 1 else rows, set(map_.seen))
        return found
    refuse_streams(frame)
    frame, called = with_safe_names(frame)
    segments = segment_columns(map_, frame, called, columns)
    builder = FrameBuilder(frame)
    kept = [builder.keep(column.value) for column in segments]
    given = [column._replace(value=value) for column, value in zip(segments, kept, strict=True)]
    if len(given) > 1:
        whole = [key for key in map_.seen if isinstance(key, tuple) and len(key) == map_.columns]
        known = finest_segment_number(whole, given, builder, whole_only=True)
    else:
        [(column, kind, spelled)] = given
        places, values = usable_keys(spelled(map_.values(0)), kind)
        if not places:  # the column cannot hold what was seen
            return NewSegments()
        known = builder.look_up(column, values, {"known": np.ones(len(places))})["known"]
    there = ~kept[0].is_null()
    for column in kept[1:]:
        there = there & ~column.is_null()
    flags = {"n": there & known.is_null(), "rows": there}
    marked = builder.frame.select(
        *(nw.when(flag).then(nw.lit(1)).otherwise(nw.lit(0)).alias(n) for n, flag in flags.items()),
        nw.when(flags["n"]).then(kept[0]).alias("example"),
    )
    sums = [nw.col(name).sum().cast(nw.Float64).alias(name) for name in flags]
    asked = marked.select(*sums, nw.col("example").min().alias("example"))
    row = first_row(asked.collect())
    found = NewSegments(int(row[1] or 0), int(row[0] or 0), row[2])
    if found.new and len(kept) > 1:  # the least values of two columns need not be of one row
        some = builder.frame.filter(flags["n"]).select(*kept).head(1).collect()
        found.example = first_row(some)
    return found
