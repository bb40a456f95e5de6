"""Calibrated probabilities as one more column of a frame, wherever its rows are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import narwhals as nw
import numpy as np

from calibrant.data.doubles import as_double
from calibrant.data.engine_frames import plain_names, renamed
from calibrant.data.lazy_checks import count_rows, refuse_streams
from calibrant.data.naming import segment_names
from calibrant.data.score_range import OnRange, check_range
from calibrant.data.segment_column import NewSegments
from calibrant.data.to_numpy import is_missing
from calibrant.data.validation import check_word
from calibrant.engines.apply_classes import add_class_columns, score_columns
from calibrant.engines.apply_options import ApplyOptions, check_segment
from calibrant.engines.backends import open_frame
from calibrant.engines.by_segment import SegmentColumn, by_segment
from calibrant.engines.expressions import EXPRESSION, FramePrinter
from calibrant.engines.frame_builder import FrameBuilder
from calibrant.engines.frame_columns import Frame, as_series, check_columns, scores_in_memory
from calibrant.engines.new_segments import ON_NEW_SEGMENT, count_new, judge_new
from calibrant.engines.range_watch import RangeWatch, expected_range
from calibrant.errors import InputError, how_many
from calibrant.export.map_given import map_of
from calibrant.maps import Map, Segmented, VectorMap
from calibrant.plan.nodes import BySegment

Keys = tuple[str | int, ...]

#: whole numbers that may be too long for a 64-bit integer with a sign
LONG = (nw.UInt64, nw.Int128, nw.UInt128)


def add_probabilities(
    calibrator: Any,
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
    to a small table, and no function that the engine's workers would have to install.

    Parameters
    ----------
    calibrator : fitted calibrator, Fitted, or Map
    frame : DuckDB relation, Polars LazyFrame, PySpark DataFrame or Ibis table
        Or a pandas, Polars or Arrow table in memory.
    score : str, list of str, or dict from classes to str
        The column of scores: numbers of any type. Of several classes: the columns in the order of
        ``classes_``, or by class.
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
    map_, watch = map_of(calibrator), RangeWatch(expected_range(calibrator), on_range)
    several = map_ if isinstance(map_, VectorMap) else None
    columns: Any = score_columns(score, calibrator, several) if several is not None else score
    segments = segment_names(segment)
    options = ApplyOptions(columns, into, segments or None, on_missing, on_range)
    opened = open_frame(frame)
    check_segment(map_, segments)
    if several is not None:
        return add_class_columns(calibrator, several, opened, options, watch)
    check_columns(opened, options, [options.into])
    for name in segments:
        _kind_of(opened.collect_schema(), name)
    if isinstance(opened, nw.DataFrame):
        made = _in_memory(map_, opened, options, watch)
        _judge_segments(map_, opened, segments, on_new_segment)
        return made.to_native()
    run = on_missing == "error" or watch.refuses
    if run:
        refuse_streams(opened)
        _refuse_scores(opened, options, watch)
    if run or on_new_segment == "error":
        _judge_segments(map_, opened, segments, on_new_segment)
    return _lazily(map_, opened, options, watch)


# --- checks that need no data -------------------------------------------------------------------


def _kind_of(schema: nw.Schema, segment: str) -> type:
    """Which kind of key a segment column can hold."""
    kind = schema[segment]
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return str
    if kind.is_integer() or kind == nw.Boolean:
        return int
    raise InputError(
        f"segment column {segment!r} must be text or whole numbers, but its type is {kind}. Cast "
        "it to what the calibrator was fitted with."
    )


# --- lazy frames --------------------------------------------------------------------------------


def _refuse_scores(frame: nw.LazyFrame[Any], options: ApplyOptions, watch: RangeWatch) -> None:
    """Count the rows without a usable score or a segment, and refuse them."""
    frame, called = plain_names(frame)
    s = as_double(frame, called[options.only_score])
    missing = {
        "NULL": s.is_null(),
        "NaN": s.is_nan(),
        "infinite": ~s.is_nan() & ~s.is_finite(),
    }
    columns = f"score column {options.only_score!r} must be finite"
    for name in options.segments:
        which = f" ({name!r})" if len(options.segments) > 1 else ""
        missing[f"without a segment{which}"] = nw.col(called[name]).is_null()
        columns += f" and segment column {name!r} complete"
    counts, rows = count_rows(frame, {**missing, **watch.flags(s)}, lambda ask: ask())
    found = {word: counts[word] for word in missing}
    if any(found.values()) and options.on_missing == "error":
        raise InputError(
            f"{columns}: {how_many(found, rows)}. Filter or impute them first, or give them no "
            'probability: on_missing="null".'
        )
    watch.judge(counts, rows, options.only_score)


def _lazily(map_: Map, frame: nw.LazyFrame[Any], options: ApplyOptions, watch: RangeWatch) -> Any:
    """The frame with the new column, which the frame's own engine computes."""
    frame, called = plain_names(frame)
    builder = FrameBuilder(frame)
    number = as_double(frame, called[options.only_score])
    # NULL for all that is no number
    name = builder.add(nw.when(number.is_finite()).then(watch.moved(number)))
    # engines disagree on what the larger of NULL and a number is
    known = ~nw.col(name).is_null()
    plan = map_.plan(EXPRESSION)
    if isinstance(plan, BySegment):
        found = _segments(map_, frame, called, options.segments)
        value = by_segment(plan, found, name, builder)
        for segment in options.segments:
            known = known & ~nw.col(called[segment]).is_null()
    else:
        value = FramePrinter(builder, name).write(plan)
    made = builder.add(nw.when(known).then(value))
    result = builder.frame.select(*(nw.col(own) for own in (*called.values(), made)))
    return renamed(result, [*called, options.into]).to_native()


def _segments(
    map_: Map, frame: nw.LazyFrame[Any], called: Mapping[str, str], names: Sequence[str]
) -> list[SegmentColumn]:
    """The columns of segments as text or as whole numbers, and how they spell keys."""
    schema = frame.collect_schema()
    found = []
    for i, said in enumerate(names):
        column = called[said]
        kind = _kind_of(schema, column)
        _check_keys(_values(map_, i), kind, said)
        spelled: Callable[[Keys], Sequence[Any]] = tuple
        if schema[column] in LONG:
            kind, spelled = str, _as_text
        value = nw.col(column).cast(nw.String() if kind is str else nw.Int64())
        found.append(SegmentColumn(value, kind, spelled))
    return found


def _values(map_: Map, column: int) -> Keys:
    """The known segments' values in one of their columns."""
    return map_.values(column) if isinstance(map_, Segmented) else ()


def _as_text(keys: Keys) -> list[str | None]:
    """Whole numbers as text; other keys are in no such column."""
    return [str(key) if isinstance(key, int) else None for key in keys]


def _judge_segments(map_: Map, frame: Frame, segments: Sequence[str], on_new_segment: str) -> None:
    """Count the rows of segments that were not seen, and say what is to be said of them."""
    # without any, all have one map, and which were seen is not known
    if not isinstance(map_, Segmented) or not map_.seen or on_new_segment == "allow":
        return
    if isinstance(frame, nw.DataFrame):
        found = NewSegments()
        found.look(_complete(frame, segments), set(map_.seen))
    else:
        refuse_streams(frame)
        frame, called = plain_names(frame)
        found = count_new(frame, _segments(map_, frame, called, segments), map_)
    judge_new(found, map_.seen, segments, on_new_segment)


def _complete(frame: nw.DataFrame[Any], segments: Sequence[str]) -> list[Any]:
    """The segments of rows that have one; of several columns as tuples."""
    columns = [frame.get_column(name).to_list() for name in segments]
    if len(columns) == 1:
        return [value for value in columns[0] if not is_missing(value)]
    rows = zip(*columns, strict=True)
    return [row for row in rows if not any(map(is_missing, row))]


def _check_keys(seen: Keys, kind: type, segment: str) -> None:
    if seen and not any(type(key) is kind for key in seen):
        are, came = ("whole numbers", "text") if kind is str else ("text", "whole numbers")
        raise InputError(
            f"the calibrator's segments are {are}, but column {segment!r} is {came}, so that no "
            "row would find its own. Cast the column."
        )


# --- frames in memory ---------------------------------------------------------------------------


def _in_memory(
    map_: Map, frame: nw.DataFrame[Any], options: ApplyOptions, watch: RangeWatch
) -> nw.DataFrame[Any]:
    """The frame with the new column, computed by the map itself."""
    score, segments, on_missing = options.only_score, options.segments, options.on_missing
    scores = scores_in_memory(frame, score, on_missing)
    good = np.isfinite(scores)
    seen = scores if good.all() else scores[good]
    clean = check_range(seen, watch.known, watch.on_range, name=f"score column {score!r}")
    if clean is not seen:  # moved into [0, 1]
        scores = np.full(len(scores), np.nan)
        scores[good] = clean
    p = np.full(len(scores), np.nan)
    if map_.segments is not None:
        for i, segment in enumerate(segments):
            _check_keys(_values(map_, i), _kind_of(frame.collect_schema(), segment), segment)
            named = ~frame.get_column(segment).is_null().to_numpy()
            if on_missing == "error" and not named.all():
                raise InputError(
                    f"segment column {segment!r} must be complete: {int((~named).sum()):,} of "
                    f"{len(named):,} are NULL. Give those rows a segment of their own, or no "
                    'probability: on_missing="null".'
                )
            good &= named
        kept = frame.filter(good.tolist())
        theirs = [kept.get_column(segment).to_native() for segment in segments]
        p[good] = map_.by_segment(scores[good], theirs)
    else:
        p[good] = map_(scores[good])
    return frame.with_columns(as_series(frame, options.into, p))
