"""Calibrated probabilities of several classes as further columns of a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from calibrant.data.distributions import check_distributions, sum_tolerance
from calibrant.data.doubles import as_double
from calibrant.data.engine_frames import plain_names, renamed
from calibrant.data.lazy_checks import count_rows, refuse_streams
from calibrant.data.naming import class_column_names
from calibrant.data.score_range import check_range, outside_words
from calibrant.engines.apply_options import ApplyOptions
from calibrant.engines.class_blocks import MOST_BY_EXPRESSIONS, add_by_blocks, takes_blocks
from calibrant.engines.expressions import EXPRESSION
from calibrant.engines.frame_builder import FrameBuilder
from calibrant.engines.frame_columns import Frame, as_series, check_columns, scores_in_memory
from calibrant.engines.range_watch import RangeWatch
from calibrant.engines.row_expressions import RowFramePrinter, total
from calibrant.errors import InputError, how_many
from calibrant.export.map_given import fitted_of
from calibrant.maps import VectorMap


def score_columns(score: Any, calibrator: Any, map_: VectorMap) -> tuple[str, ...]:
    """The columns of scores in the order of the classes, given so or as a dict by class."""
    labels = _labels(calibrator, map_)
    if isinstance(score, Mapping):
        if set(score) != set(labels) or map_.n_columns != len(labels):
            raise InputError(
                f"score must name a column for each of the classes {list(labels)[:20]}, but "
                f"{list(score)[:20]} came."
            )
        return tuple(score[label] for label in labels)
    names = (score,) if isinstance(score, str) else tuple(score)
    if len(names) != map_.n_columns or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"this calibrator reads {map_.n_columns} columns of scores, one for each of "
            f"{list(labels)[:20]} in that order, but {len(names)} came: {list(names)[:8]}. Name "
            "them all: score=[...], or score={class: column, ...}."
        )
    if len(set(names)) != len(names):
        raise InputError(f"each column of scores must come once, but {list(names)[:20]} came.")
    return names


def _labels(calibrator: Any, map_: VectorMap) -> Sequence[Any]:
    fitted = fitted_of(calibrator)
    return tuple(range(map_.n_classes)) if fitted is None else fitted.classes


def add_class_columns(
    calibrator: Any, map_: VectorMap, frame: Frame, options: ApplyOptions, watch: RangeWatch
) -> Any:
    """The frame with a new column for each class, ``into`` and the class in its name."""
    new = class_column_names(options.into, _labels(calibrator, map_))
    check_columns(frame, options, new)
    sums = map_.reads == "probability" and options.on_range != "allow"
    if isinstance(frame, nw.DataFrame):
        return _in_memory(map_, frame, options, watch, new, sums).to_native()
    if options.on_missing == "error" or watch.refuses or sums:
        refuse_streams(frame)
        _refuse_scores(frame, options, watch, sums)
    return _lazily(map_, frame, options, watch, new)


def _named(options: ApplyOptions) -> str:
    names = options.scores
    return ", ".join(map(repr, names[:6])) + (", …" if len(names) > 6 else "")


# --- lazy frames ----------------------------------------------------------------------------------


def _refuse_scores(
    frame: nw.LazyFrame[Any], options: ApplyOptions, watch: RangeWatch, sums: bool
) -> None:
    """Count the rows without usable scores, and those that are no distributions; refuse them."""
    frame, called = plain_names(frame)
    columns = [as_double(frame, called[name]) for name in options.scores]
    usable = _all_finite(columns)
    flags = {"missing": ~usable}
    moved = [watch.moved(own) for own in columns]
    if watch.refuses:
        outside = [(own < 0.0) | (own > 1.0) for own in columns]
        flags["outside"] = usable & nw.any_horizontal(*outside, ignore_nulls=False)
    if sums:
        flags["sums"] = usable & ((total(moved) - 1.0).abs() > sum_tolerance(len(moved)))
    counts, rows = count_rows(frame, flags, lambda ask: ask())
    if counts["missing"] and options.on_missing == "error":
        found = how_many({"NULL, NaN or infinite": counts["missing"]}, rows)
        raise InputError(
            f"score columns {_named(options)} must be finite: {found}. Filter or impute them "
            'first, or give them no probability: on_missing="null".'
        )
    if watch.known is not None and counts.get("outside"):
        name = f"score columns {_named(options)}"
        raise InputError(outside_words(watch.known, name, counts["outside"], rows))
    if counts.get("sums"):
        raise InputError(
            f"score columns {_named(options)} must be probabilities that sum to 1 in each row: "
            f"{counts['sums']:,} of {rows:,} do not. Is there a column for every class? If the "
            'rows are right: on_range="allow".'
        )


def _lazily(
    map_: VectorMap,
    frame: nw.LazyFrame[Any],
    options: ApplyOptions,
    watch: RangeWatch,
    new: Sequence[str],
) -> Any:
    """The frame with the new columns, which the frame's own engine computes."""
    frame, called = plain_names(frame)
    builder = FrameBuilder(frame)
    numbers = [as_double(frame, called[name]) for name in options.scores]
    known = builder.keep(_all_finite(numbers))
    # a row that lacks a score is computed as a row of zeros, and left out in the end
    given = [nw.when(known).then(watch.moved(own)).otherwise(nw.lit(0.0)) for own in numbers]
    scores = builder.add_all(given)
    if map_.n_classes > MOST_BY_EXPRESSIONS and takes_blocks(frame, map_):
        values = builder.compute(partial(add_by_blocks, map_=map_, scores=scores), map_.n_classes)
    else:
        values = RowFramePrinter(builder, scores).write(map_.plan(EXPRESSION))
    made = builder.add_all([nw.when(known).then(own) for own in values])
    result = builder.frame.select(*(nw.col(own) for own in (*called.values(), *made)))
    return renamed(result, [*called, *new]).to_native()


def _all_finite(columns: Sequence[nw.Expr]) -> nw.Expr:
    """Whether a row has a finite number in all of the columns."""
    finite = (~own.is_null() & own.is_finite() for own in columns)
    return nw.all_horizontal(*finite, ignore_nulls=False)


# --- frames in memory -----------------------------------------------------------------------------


def _in_memory(
    map_: VectorMap,
    frame: nw.DataFrame[Any],
    options: ApplyOptions,
    watch: RangeWatch,
    new: Sequence[str],
    sums: bool,
) -> nw.DataFrame[Any]:
    """The frame with the new columns, computed by the map itself."""
    columns = (scores_in_memory(frame, name, options.on_missing) for name in options.scores)
    rows = np.column_stack(list(columns))
    good = np.isfinite(rows).all(axis=1)
    p = np.full((len(rows), map_.n_classes), np.nan)
    if good.any():
        name = f"score columns {_named(options)}"
        clean = check_range(rows[good], watch.known, watch.on_range, name=name)
        if sums:
            check_distributions(clean, name)
        p[good] = map_(clean)
    made = (as_series(frame, name, p[:, j]) for j, name in enumerate(new))
    return frame.with_columns(*made)
