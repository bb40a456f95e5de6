"""The command that learns a calibrator."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import class_columns, jobs, method_names, options
from calibrant.cli.console import run_with_status, say_json
from calibrant.cli.paths import PAGES, PICTURES, OutputOption, check_places
from calibrant.cli.standard_output import refuse_two, words_beside
from calibrant.errors import ParameterError
from calibrant.estimators.registry import DEFAULT

__all__ = ["fit"]


MethodName = Annotated[
    str, typer.Option("--method", "-m", metavar="NAME", help="See: calibrant methods.")
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Parameter of the method; may be repeated."),
]
Shrinkage = Annotated[
    str | None,
    typer.Option(
        metavar="cv|bayes|N", help="With --segment: how far segments go their own way; cv."
    ),
]
OutputFile = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="JSON", help="Where the calibrator goes; - for standard output."
    ),
]
Period = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="The time that the rows are from, to be remembered."),
]
PlotFile = Annotated[
    Path | None, typer.Option(metavar="PNG", help="Draw the reliability before and after.")
]
ReportFile = Annotated[
    Path | None, typer.Option(metavar="HTML", help="Write a page about what improved.")
]


def fit(
    files: options.Files,
    score: options.ScoreColumn = None,
    label: options.LabelColumn = None,
    weight: options.WeightColumn = None,
    segment: options.SegmentColumn = None,
    method: MethodName = DEFAULT,
    param: Parameters = None,
    shrinkage: Shrinkage = None,
    pos_label: options.PosLabel = None,
    output: OutputFile = Path("calibrator.json"),
    cv: options.Folds = 5,
    period: Period = None,
    plot: PlotFile = None,
    report: ReportFile = None,
    decimal: options.DecimalMark = None,
    missing: options.MissingRows = "error",
    format: options.StreamFormat = None,
    cells: options.Cells = "auto",
    engine: options.EngineName = "duckdb",
    master: options.Master = None,
    json: options.Json = False,
    threads: options.Threads = None,
    memory_limit: options.MemoryLimit = None,
) -> None:
    """Learn a calibrator from scores and labels, and say what it improves.

    \b
    Examples:
      calibrant fit scores.csv
      calibrant fit scores.csv --score p --label y
      calibrant fit 'day-*.parquet' -s margin -l bought --pos-label yes -o c.json
      calibrant fit s.csv -s p -l y -m isotonic --param interpolation=centred --plot r.png
      calibrant fit 'day-*.parquet' -s p -l y --segment country
      calibrant fit s.csv --score 'p_*' --label kind
      xz -dc scores.csv.xz | calibrant fit - -o - > calibrator.json
      calibrant fit 'day-*.parquet' -s p -l y --engine spark --master spark://host:7077

    What it prints is out of fold: no row is judged by a calibrator that has seen it.
    """
    from calibrant.cli import results, segment_jobs
    from calibrant.cli.column_roles import complete_roles

    written = {"calibrator": output, "plot": plot, "report": report}
    places = {"--plot": OutputOption(plot, PICTURES), "--report": OutputOption(report, PAGES)}
    check_places({"--output": OutputOption(output, stream=True), **places}, files)
    refuse_two(output, json)
    jobs.check_folds(cv)
    if not cv and (plot or report):
        raise ParameterError("a plot or report shows out-of-fold results: cv must not be 0.")
    if shrinkage and not segment:
        raise ParameterError("shrinkage is for segments: name their column with --segment COL.")
    times = jobs.time_facts(period)
    only = class_columns.only_column(score or [""], files, (label, weight), engine)
    columns = jobs.ColumnRoles(only or "", label or "", weight, pos_label, segment)
    reading = options.read_options(decimal, missing, format)
    place = options.EngineOptions(engine, master, threads, memory_limit, reading)
    if segment and report:
        raise ParameterError("there is no report on segments yet: leave --report out.")
    result: jobs.FitResult
    if only is None:
        from calibrant.cli import class_jobs, class_reading

        class_columns.refuse_beside(segment=segment, pos_label=pos_label, cells=cells != "auto")
        calibrator = method_names.make_class_calibrator(method, param or [])
        roles = class_reading.ClassRoles(score or [], options.named_label(label), weight)
        matrix = class_reading.open_and_read(files, roles, place, json)
        title = f"fitting {method} to {matrix.facts['rows']:,} rows"
        result = run_with_status(lambda: class_jobs.fit(matrix, calibrator, folds=cv), title, json)
    elif segment:
        many = segment_jobs.make(method, param or [], shrinkage)
        with options.engine_for("reading", json, place) as opened:
            columns = complete_roles(opened, files, columns)
            tables = segment_jobs.read(opened, files, columns, options.read_cells(cells))
        title = f"fitting {len(tables.by_key):,} segments"
        result = run_with_status(lambda: segment_jobs.fit(tables, many, cv), title, json)
    else:
        make = functools.partial(method_names.make_calibrator, method, param or [])
        calibrator = run_with_status(make, f"preparing {method}", json)
        with options.engine_for("reading", json, place) as opened:
            columns = complete_roles(opened, files, columns)
            read = jobs.read_files(opened, files, columns, cells=options.read_cells(cells))
        title = (
            f"fitting {method} to {len(read.table):,} {'cells' if read.table.made else 'scores'}"
        )
        result = run_with_status(lambda: jobs.fit_read(read, calibrator, folds=cv), title, json)
    result = jobs.recorded(result, times)
    results.write_fit(result, written)
    if json:
        say_json(results.fit_document(result, written))
        return
    with words_beside(output):
        results.print_fit(result, written)
