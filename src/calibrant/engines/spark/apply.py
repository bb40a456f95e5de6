"""Add a column of calibrated probabilities to files, by Spark, without a function of ours there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant.data.score_range import WHAT_TO_DO, check_on_range
from calibrant.data.segment_column import NewSegments
from calibrant.engines.apply import add_probabilities
from calibrant.engines.duckdb.files import kind_of
from calibrant.engines.segment_keys import POWER, WHOLE, SegmentKeys, check_segment, segment_keys
from calibrant.engines.spark.failures import RAISED, name_of
from calibrant.engines.spark.file_frame import LINE, FileFrame, finite, not_text
from calibrant.engines.spark.json_lines import with_members
from calibrant.engines.spark.read import read_files
from calibrant.engines.spark.session import Spark
from calibrant.engines.spark.write import write_file
from calibrant.errors import InputError, ParameterError, import_extra
from calibrant.estimators.fitted import Fitted
from calibrant.maps import Segmented

__all__ = ["apply_file"]

ON_MISSING = ("error", "null")


def apply_file(
    fitted: Fitted,
    files: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    score: str,
    into: str = "probability",
    segment: str | None = None,
    on_missing: str = "error",
    on_range: str = "error",
    overwrite_column: bool = False,
    new_segments: NewSegments | None = None,
    session: Spark,
) -> int:
    """Copy files to the folder ``out`` with one more column, the probability of ``pos_label``.

    Parameters
    ----------
    fitted : Fitted
    files : paths, globs, folders or URLs; see `read_files`
    out : path or URL; see `write_file`
    score : name of the column of scores
    into : name of the new column
    segment : name of the column of segments, where the calibrator has a map for each
    on_missing : {"error", "null"}, default="error"
        What to do with rows that have no score; "null" leaves their probability empty.
    on_range : {"error", "clip", "allow"}, default="error"
        What to do with scores outside [0, 1] where the calibrator was fitted on probabilities:
        refuse them, count them as 0 or 1, or take them as they are.
    overwrite_column : bool, default=False
        Allow ``into`` to replace a column of that name, in its place.
    new_segments : NewSegments, optional
        Where rows of segments that were never seen are counted.
    session : Spark

    Returns
    -------
    rows : int
        How many were written.

    Notes
    -----
    One pass (and one before it for the types of JSON). Other columns keep their values: fields of
    CSV files are never parsed, and lines of JSON that become lines of JSON keep every byte. The
    probabilities equal ``fitted.calibrate`` to 1e-12. Infinite scores, and words where numbers
    should be, are always refused, and then nothing is written.
    """
    if on_missing not in ON_MISSING:
        raise ParameterError(f"on_missing must be one of {ON_MISSING}, but {on_missing!r} came.")
    check_on_range(on_range)
    check_segment(fitted, segment)
    if not into:
        raise ParameterError("the new column must have a name, but into is empty.")
    wanted = [score, *([segment] if segment else [])]
    as_lines = kind_of(Path(name_of(os.fspath(out))))[0] == "json"
    source = read_files(session, files, wanted, lines=as_lines)
    names: list[str] = source.frame.columns
    if into in source.names and not overwrite_column:
        raise InputError(
            f"{source.files[0]} already has a column {into!r}. Give the new one another name "
            "(into), or allow the old one to be replaced (overwrite-column)."
        )
    hidden = [f"calibrant_{what}_{secrets.token_hex(4)}" for what in ("score", "segment", "p")]
    known = fitted.expects
    inside = known is not None and known.probabilities and on_range == "error"
    columns = {hidden[0]: _checked(source, score, on_missing, inside)}
    if segment and isinstance(fitted.map, Segmented):
        keys = segment_keys(fitted.map)
        columns[hidden[1]] = _checked_segment(source, segment, on_missing, keys)
        fitted = replace(fitted, map=keys.map)
    # a dot in a column's name would be taken for a part of it
    safe = [f"calibrant_{i}" for i in range(len(names))]
    rows = source.frame.withColumns(columns).toDF(*safe, *columns)
    applied = session.call(
        lambda: add_probabilities(
            fitted,
            rows,
            score=hidden[0],
            into=hidden[2],
            segment=hidden[1] if segment else None,
            on_missing="null",  # checked on the way
            on_new_segment="allow",  # counted on the way
            on_range="clip" if on_range == "clip" else "allow",
        )
    )
    functions = import_extra("pyspark.sql.functions", extra="spark")
    chosen = {**dict(zip(names, safe, strict=True)), into: hidden[2]}
    held = {name: functions.col(column) for name, column in chosen.items()}
    counted = None
    seen = (segment and fitted.map.segments) or ()
    if seen and new_segments is not None:
        counted, applied = _counted(applied, functions.col(hidden[1]), seen)
    if source.keys is None:
        kinds = {field.name: field.dataType for field in source.frame.schema.fields}
        if as_lines:
            read = {name: kind for name, kind in kinds.items() if name != into}
            held |= {name: finite(held[name], kind, name) for name, kind in read.items()}
        result = applied.select(*(column.alias(name) for name, column in held.items()))
    else:
        new = {name: held[name] for name in dict.fromkeys((*source.folders, into))}
        result = applied.select(with_members(held[LINE], new, source.keys).alias(LINE))
    lines = source.keys is not None
    rows_written = write_file(session, result, out, expected=source.rows, lines=lines)
    if counted is not None and new_segments is not None:
        found = session.call(lambda: counted.get)
        new_segments.rows, new_segments.new = int(found["rows"]), int(found["new"])
        new_segments.example = found["example"]
    return rows_written


def _counted(frame: Any, column: Any, keys: Sequence[Any]) -> tuple[Any, Any]:
    """What will be known of segments that were never seen, once the frame has been written."""
    functions = import_extra("pyspark.sql.functions", extra="spark")
    seen = import_extra("pyspark.sql", extra="spark").Observation()
    new = column.isNotNull() & ~column.isin(*keys)
    measured = frame.observe(
        seen,
        functions.count(column).alias("rows"),
        functions.count(functions.when(new, 1)).alias("new"),
        functions.min(functions.when(new, column)).alias("example"),
    )
    return seen, measured


def _checked(source: FileFrame, score: str, on_missing: str, inside: bool) -> Any:
    """The scores; a row that must not be there makes the job fail."""
    functions = import_extra("pyspark.sql.functions", extra="spark")
    x = source.number(score, "score")
    infinite = functions.abs(x) == float("inf")
    advice = "Correct or drop those rows."
    checked = functions.when(infinite, _failure(score, "be finite", "infinite", advice))
    if source.kind == "csv":  # of any column: it would be written as it was misread
        what = source.files[0] if len(source.files) == 1 else "the files"
        checked = checked.when(source.garbled(), not_text(what).cast("double"))
    if on_missing == "error":
        advice = 'Drop or impute them first, or give them no probability: on_missing="null".'
        missing = x.isNull() | functions.isnan(x)
        checked = checked.when(missing, _failure(score, "be complete", "missing", advice))
    if inside:
        must = "be probabilities in [0, 1], as those are that the calibrator was fitted on"
        outside = ((x < 0.0) | (x > 1.0)) & ~functions.isnan(x)
        checked = checked.when(outside, _failure(score, must, "not", WHAT_TO_DO))
    return checked.otherwise(x)


def _checked_segment(source: FileFrame, segment: str, on_missing: str, keys: SegmentKeys) -> Any:
    """The segments as text; a row without one makes the job fail, unless it may."""
    functions = import_extra("pyspark.sql.functions", extra="spark")
    name = source.segment(segment).cast("string")
    if keys.trimmed:
        name = functions.trim(name)
    if keys.whole:  # booleans are 0 and 1, and numbers are told by their value
        digits = functions.regexp_replace(name, WHOLE, "$1$2")
        double = name.try_cast("double")
        power = name.rlike(POWER) & (functions.abs(double) <= 2.0**53)
        small = functions.lower(name)
        name = (
            functions.when(small == "true", "1")
            .when(small == "false", "0")
            .when(digits == "-0", "0")
            .when(power & (double == functions.floor(double)), double.cast("bigint").cast("string"))
            .otherwise(digits)
        )
    if on_missing == "null":
        return name
    advice = 'Give those rows a segment, or no probability: on_missing="null".'
    words = f"{RAISED}segment column {segment!r} must be complete, but some of it is missing. "
    return functions.when(
        name.isNull(), functions.raise_error(functions.lit(words + advice)).cast("string")
    ).otherwise(name)


def _failure(score: str, must: str, came: str, advice: str) -> Any:
    functions = import_extra("pyspark.sql.functions", extra="spark")
    words = f"{RAISED}score column {score!r} must {must}, but some of it is {came}. {advice}"
    return functions.raise_error(functions.lit(words)).cast("double")
