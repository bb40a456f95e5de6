"""Add a column of calibrated probabilities to files, by Spark, without a function of ours there."""

from __future__ import annotations

import functools
import operator
import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant.data.scale import WHAT_TO_DO
from calibrant.data.segments import NewSegments
from calibrant.engines.apply import (
    POWER,
    WHOLE,
    KeySpelling,
    SegmentKeys,
    add_probabilities,
    segment_keys,
)
from calibrant.engines.apply_options import AS_FITTED, ApplyOptions, RangeWatch
from calibrant.engines.files.files import output_kind
from calibrant.engines.spark import session
from calibrant.engines.spark.files import (
    LINE,
    FileFrame,
    failure,
    finite,
    not_text,
    read_files,
    with_members,
    write_file,
)
from calibrant.engines.spark.session import Spark, name_of
from calibrant.errors import import_extra
from calibrant.fitting.fitted import Fitted
from calibrant.rules.segmented import Segmented


def apply_file(
    session: Spark,
    fitted: Fitted,
    files: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    options: ApplyOptions,
    new_segments: NewSegments | None = None,
) -> int:
    """Copy files to the folder ``out`` with one more column; the number of rows written.

    Parameters
    ----------
    session : Spark
    fitted : Fitted
    files : paths, globs, folders or URLs; see `read_files`
    out : path or URL; see `write_file`
    options : ApplyOptions
    new_segments : NewSegments, optional
        Counts the rows of segments that the calibrator has not seen.

    Notes
    -----
    One pass (and one before it for the types of JSON). Other columns keep their values: fields of
    CSV files are never parsed, and lines of JSON that become lines of JSON keep every byte. The
    probabilities equal ``fitted.calibrate`` to 1e-12. Infinite scores, and words where numbers
    should be, are always refused, and then nothing is written.
    """
    as_lines = output_kind(Path(name_of(os.fspath(out))))[0] == "json"
    source = read_files(session, files, options.columns, lines=as_lines)
    options.check_columns([options.into], source.names, source.files[0])
    keys = segment_keys(fitted.map)
    applied, held, segments = _with_probability(source, fitted, options, keys)
    seen = None
    if new_segments is not None and keys and keys.map.seen:
        seen, applied = _counted(applied, segments, keys.map)
    if source.keys is None:
        if as_lines:
            kinds = {field.name: field.dataType for field in source.frame.schema.fields}
            read = {name: kind for name, kind in kinds.items() if name != options.into}
            held |= {name: finite(held[name], kind, name) for name, kind in read.items()}
        result = applied.select(*(column.alias(name) for name, column in held.items()))
    else:
        new = {name: held[name] for name in dict.fromkeys((*source.folders, options.into))}
        result = applied.select(with_members(held[LINE], new, source.keys).alias(LINE))
    lines = source.keys is not None
    rows = write_file(session, result, out, expected=source.rows, lines=lines)
    if seen is not None and new_segments is not None:
        found = session.call(lambda: seen.get)
        new_segments.rows, new_segments.new = int(found["rows"]), int(found["new"])
        example = found["example"]
        new_segments.example = tuple(example) if isinstance(example, list) else example
    return rows


def _with_probability(
    source: FileFrame, fitted: Fitted, options: ApplyOptions, keys: SegmentKeys | None
) -> tuple[Any, dict[str, Any], list[str]]:
    """The rows with checked scores, segments and their probabilities; the column for each name of
    the output; and the names of the columns of segments."""
    inside = RangeWatch(fitted.expects, options.on_range).refuses
    hidden = f"calibrant_{secrets.token_hex(4)}"  # how names begin that no file has
    score, probability, segments = f"{hidden}_score", f"{hidden}_probability", []
    columns = {score: _checked(source, options.scores[0], options.on_missing, inside)}
    if keys:
        segments = [f"{hidden}_segment_{i}" for i in range(len(keys.columns))]
        for name, segment, spelling in zip(segments, options.segments, keys.columns, strict=True):
            columns[name] = _checked_segment(source, segment, options.on_missing, spelling)
        fitted = replace(fitted, rule=keys.map)
    names: list[str] = source.frame.columns
    # a dot in a column's name would be taken for a part of it
    safe = [f"calibrant_{i}" for i in range(len(names))]
    rows = source.frame.withColumns(columns).toDF(*safe, *columns)
    applied = source.spark.call(
        lambda: add_probabilities(
            fitted,
            rows,
            score=score,
            into=probability,
            segment=segments or None,
            on_missing="null",  # checked on the way
            on_new_segment="allow",  # counted on the way
            on_range="clip" if options.on_range == "clip" else "allow",
        )
    )
    chosen = {**dict(zip(names, safe, strict=True)), options.into: probability}
    held = {name: session.col(column) for name, column in chosen.items()}
    return applied, held, segments


def _counted(frame: Any, names: Sequence[str], map_: Segmented) -> tuple[Any, Any]:
    """An observation of segments that were never seen, known once the frame is written; the
    frame."""
    seen = import_extra("pyspark.sql", extra="spark").Observation()
    columns = [session.col(name) for name in names]
    there = functools.reduce(operator.and_, (column.isNotNull() for column in columns))
    segment, known = columns[0], list(map_.seen)
    if len(columns) > 1:
        whole = [key for key in known if isinstance(key, tuple) and len(key) == len(columns)]
        segment = session.array(*columns)
        known = [session.array(*map(session.lit, key)) for key in whole]
    new = there & ~segment.isin(*known) if known else there
    measured = frame.observe(
        seen,
        session.count(session.when(there, 1)).alias("rows"),
        session.count(session.when(new, 1)).alias("new"),
        session.min(session.when(new, segment)).alias("example"),
    )
    return seen, measured


def _checked(source: FileFrame, score: str, on_missing: str, inside: bool) -> Any:
    """The scores; a row that must not be there makes the job fail."""
    x = source.number(score, "score")
    infinite = session.abs(x) == float("inf")
    advice = "Correct or drop those rows."
    checked = session.when(infinite, _failure(score, "be finite", "infinite", advice))
    if source.kind == "csv":  # of any column: it would be written as it was misread
        what = source.files[0] if len(source.files) == 1 else "the files"
        checked = checked.when(source.garbled(), not_text(what, "double"))
    if on_missing == "error":
        advice = 'Drop or impute them first, or give them no probability: on_missing="null".'
        missing = x.isNull() | session.isnan(x)
        checked = checked.when(missing, _failure(score, "be complete", "missing", advice))
    if inside:
        outside = ((x < 0.0) | (x > 1.0)) & ~session.isnan(x)
        checked = checked.when(outside, _failure(score, AS_FITTED, "not", WHAT_TO_DO))
    return checked.otherwise(x)


def _checked_segment(source: FileFrame, segment: str, on_missing: str, keys: KeySpelling) -> Any:
    """The segments as text; a row without one makes the job fail, unless it may."""
    name = source.segment(segment).cast("string")
    if keys.trimmed:
        name = session.trim(name)
    if keys.whole:  # booleans are 0 and 1, and numbers are told by their value
        digits = session.regexp_replace(name, WHOLE, "$1$2")
        double = name.try_cast("double")
        power = name.rlike(POWER) & (session.abs(double) <= 2.0**53)
        small = session.lower(name)
        name = (
            session.when(small == "true", "1")
            .when(small == "false", "0")
            .when(digits == "-0", "0")
            .when(power & (double == session.floor(double)), double.cast("bigint").cast("string"))
            .otherwise(digits)
        )
    if on_missing == "null":
        return name
    absent = failure(
        "string",
        f"segment column {segment!r} must be complete, but some of it is missing. Give those rows "
        'a segment, or no probability: on_missing="null".',
    )
    return session.when(name.isNull(), absent).otherwise(name)


def _failure(score: str, must: str, came: str, advice: str) -> Any:
    words = f"score column {score!r} must {must}, but some of it is {came}. {advice}"
    return failure("double", words)
