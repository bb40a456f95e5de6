"""The commands that measure and draw."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli import jobs
from calibrant.cli.console import say, say_json, show, tell
from calibrant.cli.options import (
    Bins,
    Cells,
    EngineName,
    EngineOptions,
    Files,
    Json,
    LabelColumn,
    Level,
    Master,
    MemoryLimit,
    PosLabel,
    ProbColumn,
    RawColumn,
    Replicates,
    SegmentColumn,
    Threads,
    Weighing,
    WeightColumn,
    engine_for,
    read_cells,
)
from calibrant.cli.paths import PICTURES, OutputOption, check_places
from calibrant.errors import ParameterError
from calibrant.outputs import write_whole

__all__ = ["evaluate", "plot"]


def evaluate(
    files: Files,
    prob: ProbColumn,
    label: LabelColumn,
    weight: WeightColumn = None,
    raw: RawColumn = None,
    segment: SegmentColumn = None,
    pos_label: PosLabel = None,
    bins: Bins = 10,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    weights: Weighing = "importance",
    cells: Cells = "auto",
    engine: EngineName = "duckdb",
    master: Master = None,
    json: Json = False,
    threads: Threads = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Measure how good probabilities are, and how good the scores behind them were.

    \b
    Examples:
      calibrant evaluate calibrated.csv --prob probability --label churned
      calibrant evaluate calibrated.csv -p probability -l churned --raw score --json
      calibrant evaluate c.csv -p p -l y --weight w --weights counts --level 0.9
      calibrant evaluate 'day-*.parquet' -p p -l y --segment country
    """
    from calibrant.metrics.evaluation_words import in_words
    from calibrant.metrics.intervals import read_interval_options

    columns = jobs.ColumnRoles(prob, label, weight, pos_label, segment)
    place, wanted = EngineOptions(engine, master, threads, memory_limit), read_cells(cells)
    if segment:
        if raw:
            raise ParameterError("segments are measured without --raw: leave one of them out.")
        _each_segment(files, columns, place, wanted, bins, json)
        return
    options = read_interval_options(level or None, replicates, weights, 0)
    with engine_for("measuring", json, place) as opened:
        evaluation, read = jobs.measure_files(
            opened, files, columns, raw, cells=wanted, bins=bins, options=options
        )
    if json:
        say_json({**evaluation.to_dict(), **read})
        return
    show(evaluation)
    tell(in_words(evaluation))


#: segments that are shown; JSON has them all
SHOWN = 30


def _each_segment(
    files: list[str],
    columns: jobs.ColumnRoles,
    place: EngineOptions,
    cells: Any,
    bins: int,
    json: bool,
) -> None:
    """Print the measures of each segment."""
    from calibrant.cli import segment_jobs
    from calibrant.cli.results import segment_table

    with engine_for("measuring", json, place) as opened:
        tables = segment_jobs.read(opened, files, columns, cells, probabilities=True)
    found = segment_jobs.evaluate_each(tables.by_key, bins)
    if json:
        labels = {"classes": list(tables.read.classes), "pos_label": tables.read.pos_label}
        each = {name: one.to_dict() for name, one in found.items()}
        say_json({"segments": each, **tables.read.facts, **labels})
        return
    show(segment_table(dict(list(found.items())[:SHOWN]), columns.segment or ""))
    if len(found) > SHOWN:
        tell(f"The {SHOWN} largest of {len(found):,} segments; --json has them all.")


def plot(
    files: Files,
    prob: ProbColumn,
    label: LabelColumn,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Picture: .png, .svg or .pdf.")
    ],
    weight: WeightColumn = None,
    raw: RawColumn = None,
    pos_label: PosLabel = None,
    bins: Bins = 10,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the picture.")] = None,
    json: Json = False,
    threads: Threads = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Draw a reliability diagram: what was predicted against what happened.

    \b
    Examples:
      calibrant plot calibrated.csv --prob probability --label churned -o r.png
      calibrant plot calibrated.csv -p probability --raw score -l churned -o r.svg
    """
    check_places({"--output": OutputOption(output, PICTURES)}, files)
    columns = jobs.ColumnRoles(prob, label, weight, pos_label)
    with engine_for("reading", json, EngineOptions(threads=threads, memory=memory_limit)) as opened:
        read, before = jobs.evaluate_files(opened, files, columns, raw)
    kind = output.suffix[1:].lower()
    write_whole(output, jobs.draw(read.table, before, format=kind, bins=bins, title=title))
    if json:
        say_json({"output": str(output), **read.facts})
    else:
        say("Reliability diagram written to ", (str(output), "bold"))
