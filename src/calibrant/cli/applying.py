"""The command that applies a calibrator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli import options
from calibrant.cli.calibrator_files import (
    load_map,
    refuse_swapped,
    score_column,
    segment_column,
)
from calibrant.cli.class_columns import SHOWN, some_of
from calibrant.cli.console import say, say_json, tell, warn
from calibrant.cli.paths import (
    OutputOption,
    check_places,
    is_standard,
    place_of,
    refuse_two,
    said_name,
    words_beside,
)
from calibrant.cli.sources import FileSource, engine_options
from calibrant.data.segment_column import NewSegments
from calibrant.engines.apply_options import ApplyOptions
from calibrant.engines.open_engine import Engine
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.maps import VectorMap
from calibrant.shell_words import quoted

#: scores that all lie in [0, 1] are of another scale than those of a fit that were so wide apart,
#: and not fewer
WIDE, FEW = 3.0, 10

OutputFile = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="What to write: .csv, .tsv, .jsonl, .parquet, or - for standard output.",
    ),
]
NewColumn = Annotated[
    str,
    typer.Option(
        metavar="COL", help="Name of the new column; of several classes: how their names begin."
    ),
]
OnMissing = Annotated[
    str, typer.Option(metavar="error|null", help="What to do with rows without a score.")
]
OnRange = Annotated[
    str,
    typer.Option(
        metavar="error|clip|allow",
        help="What to do with scores outside [0, 1], for a calibrator of probabilities.",
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite-column", help="Replace a column that has the name of the new one."),
]


def apply(
    calibrator: options.CalibratorFile,
    files: options.Files,
    output: OutputFile,
    score: options.FittedScore = None,
    into: NewColumn = "probability",
    segment: options.FittedSegment = None,
    on_missing: OnMissing = "error",
    on_range: OnRange = "error",
    overwrite_column: Overwrite = False,
    decimal: options.DecimalMark = None,
    format: options.StreamFormat = None,
    engine: options.EngineName = "duckdb",
    master: options.Master = None,
    json: options.Json = False,
    threads: options.Threads = None,
    memory_limit: options.MemoryLimit = None,
) -> None:
    """Add a column of calibrated probabilities, or one for each class, to files of any size.

    \b
    Examples:
      calibrant apply calibrator.json new.csv -o calibrated.csv
      calibrant apply c.json 'day-*.parquet' -o all.parquet --into p_churn
      calibrant apply c.json new.csv -o all.csv --score ape=p_ape --score bee=p_bee …
      cat new.csv | calibrant apply c.json - -o - | gzip > calibrated.csv.gz

    Rows keep their order and all other columns their values. Spark writes a folder of that name,
    and its rows have no order.
    """
    refuse_swapped(calibrator, files, f"apply {{calibrator}} {{files}} -o {quoted(output)}")
    fitted = load_map(calibrator, by_row=True)
    target = OutputOption(output, folder=engine == "spark", stream=True)
    check_places({"--output": target}, [calibrator, *files])
    refuse_two(output, json)
    if engine == "spark" and is_standard(output):
        raise ParameterError("Spark writes a folder: name one with --output, not standard output.")
    place = engine_options(decimal, "error", format, threads, memory_limit, engine, master)
    source = FileSource(files, place=place, quiet=json)
    new = NewSegments()
    with source.engine("applying") as opened, place_of(output, format) as written:
        columns = _columns(fitted, score or [], opened, files, calibrator)
        asked = ApplyOptions(
            columns,
            into,
            segment_column(fitted, segment),
            on_missing,
            on_range,
            overwrite_column,
        )
        other = _other_scale(fitted, asked, opened, files)
        rows = opened.apply(fitted, files, written, asked, new)
    if json:
        document: dict[str, Any] = {"output": output, "rows": rows}
        if opened.notes:
            document["notes"] = opened.notes
        if new.rows:
            document["rows_of_new_segments"] = new.new
        say_json(document | _facts(fitted, asked))
    with words_beside(output):
        if not json:
            say(f"{rows:,} rows written to ", (said_name(output), "bold"))
            tell(_in_words(fitted, asked))
        if other:
            warn(other)
        if new.new:
            (warn if new.most or json else tell)(f"{new.words()}: they got {new.their_map}.")


def _other_scale(
    fitted: Fitted, asked: ApplyOptions, engine: Engine, files: list[str]
) -> str | None:
    """What to say of scores that look like probabilities to a calibrator of points, percentages or
    margins. Where most lie beyond those of the fit, the engine warns."""
    from calibrant.cli.column_roles import first_numbers

    known = fitted.expects
    if known is None or known.probabilities or asked.on_range == "allow":
        return None
    if known.high - known.low < WIDE or known.low > 1.0 or known.high < 0.0:
        return None
    numbers = first_numbers(engine, files, asked.scores)
    if len(numbers) < FEW or not all(0.0 <= value <= 1.0 for value in numbers):
        return None
    if 2 * sum(known.low <= value <= known.high for value in numbers) < len(numbers):
        return None
    names = ", ".join(map(repr, asked.scores[:SHOWN]))
    return (
        f"the scores of column {names} look like probabilities: the first {len(numbers):,} lie in "
        f"[0, 1]. The calibrator was fitted on numbers from {known.low:.6g} to {known.high:.6g}, "
        "so that the new probabilities hardly differ and are probably wrong. Give it scores of the "
        "same scale; if they are, say --on-range allow."
    )


def _columns(
    fitted: Fitted, words: list[str], engine: Engine, files: list[str], path: Path
) -> str | tuple[str, ...]:
    """The columns of scores: as asked for, or as in the fit."""
    if isinstance(fitted.map, VectorMap):
        from calibrant.cli import class_reading

        names = engine.columns(files) if words else ()
        return class_reading.fitted_columns(fitted, words, names, path).columns
    known = score_column(fitted, words)
    if not known:
        raise InputError(f"{path} does not know the column of scores. Name it with --score COL.")
    return known


def _facts(fitted: Fitted, asked: ApplyOptions) -> dict[str, Any]:
    """The columns, for JSON."""
    if isinstance(asked.score, str):
        return {"score": asked.score, "column": asked.into, "pos_label": fitted.pos_label}
    return {
        "scores": list(asked.scores),
        "columns": asked.new_columns(fitted),
        "classes": list(fitted.classes),
    }


def _in_words(fitted: Fitted, asked: ApplyOptions) -> str:
    labels = [fitted.pos_label] if isinstance(asked.score, str) else fitted.classes
    pairs = zip(asked.new_columns(fitted), labels, strict=True)
    each = [f"{column!r} is the probability of {label!r}" for column, label in pairs]
    return f"Column {some_of(each, f' ({len(each)} classes)')}."
