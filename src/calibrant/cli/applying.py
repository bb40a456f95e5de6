"""The command that applies a calibrator."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.cli import jobs, options
from calibrant.cli.console import say, say_json, tell, warn
from calibrant.cli.paths import OutputOption, check_places
from calibrant.cli.standard_output import is_standard, place_of, refuse_two, said_name, words_beside
from calibrant.data.segment_column import NewSegments
from calibrant.engines.apply_options import ApplyOptions
from calibrant.errors import InputError, ParameterError

__all__ = ["apply"]


OutputFile = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="What to write: .csv, .tsv, .jsonl, .parquet, or - for standard output.",
    ),
]
NewColumn = Annotated[str, typer.Option(metavar="COL", help="Name of the new column.")]
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
    bool, typer.Option("--overwrite-column", help="Let it replace a column of that name.")
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
    """Add a column of calibrated probabilities to files of any size.

    \b
    Examples:
      calibrant apply calibrator.json new.csv -o calibrated.csv
      calibrant apply c.json 'day-*.parquet' -o all.parquet --into p_churn
      cat new.csv | calibrant apply c.json - -o - | gzip > calibrated.csv.gz

    Rows keep their order and all other columns their values. Spark writes a folder of that name,
    and its rows have no order.
    """
    fitted = jobs.load_map(calibrator)
    column = score or fitted.provenance.get("score_column")
    if not isinstance(column, str):
        raise InputError(
            f"{calibrator} does not know the column of scores. Name it with --score COL."
        )
    target = OutputOption(output, folder=engine == "spark", stream=True)
    check_places({"--output": target}, [calibrator, *files])
    refuse_two(output, json)
    if engine == "spark" and is_standard(output):
        raise ParameterError("Spark writes a folder: name one with --output, not standard output.")
    reading = options.read_options(decimal, format=format)
    place = options.EngineOptions(engine, master, threads, memory_limit, reading)
    new = NewSegments()
    with (
        options.engine_for("applying", json, place) as opened,
        place_of(output, format) as written,
    ):
        asked = ApplyOptions(
            column,
            into,
            jobs.segment_column(fitted, segment),
            on_missing,
            on_range,
            overwrite_column,
        )
        rows = opened.apply(fitted, files, written, asked, new)
    if json:
        document = {"output": output, "rows": rows, "score": column, "column": into}
        if opened.notes:
            document["notes"] = opened.notes
        if new.rows:
            document["rows_of_new_segments"] = new.new
        say_json({**document, "pos_label": fitted.pos_label})
    with words_beside(output):
        if not json:
            say(f"{rows:,} rows written to ", (said_name(output), "bold"))
            say(f"Column {into!r} is the probability of {fitted.pos_label!r}.")
        if new.new:
            (warn if new.most or json else tell)(f"{new.words()}: they got the map of all rows.")
