"""The command that learns a calibrator."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from calibrant.cli import class_columns, jobs, method_names, options
from calibrant.cli.asked_columns import ColumnRoles
from calibrant.cli.console import run_with_status, say_json
from calibrant.cli.first_words import refuse_one_class, refuse_wrong_way
from calibrant.cli.fit_result import FitResult
from calibrant.cli.paths import PAGES, PICTURES, OutputOption, check_places
from calibrant.cli.standard_output import refuse_two, words_beside
from calibrant.errors import ParameterError
from calibrant.estimators.registry import DEFAULT

if TYPE_CHECKING:
    from calibrant.data.lazy_checks import CellsOption


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
        metavar="cv|bayes|N",
        help="With --segment: how much segments may differ from all rows; default: cv.",
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
    typer.Option(
        metavar="TEXT",
        help="The period that the rows are from, such as 2026-03; it is kept in the file.",
    ),
]
PlotFile = Annotated[
    Path | None, typer.Option(metavar="PNG", help="Draw the reliability before and after.")
]
ReportFile = Annotated[
    Path | None, typer.Option(metavar="HTML", help="Write a page about what improved.")
]
OneClass = Annotated[
    bool, typer.Option("--allow-one-class", help="Fit although all rows have one label.")
]


def fit(
    files: options.Files,
    score: options.ScoreColumn = None,
    label: options.LabelColumn = None,
    weight: options.WeightColumn = None,
    segment: options.SegmentColumn = None,
    features: options.FitFeatures = None,
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
    allow_one_class: OneClass = False,
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
      calibrant fit s.csv -s p -l y --segment country --segment product
      calibrant fit s.csv -s p -l y --features region,age
      calibrant fit s.csv --score 'p_*' --label kind
      xz -dc scores.csv.xz | calibrant fit - -o - > calibrator.json
      calibrant fit 'day-*.parquet' -s p -l y --engine spark --master spark://host:7077

    All figures are out of fold: no row is judged by a calibrator that has seen it.
    """
    from calibrant.cli import results

    written = {"calibrator": output, "plot": plot, "report": report}
    places = {"--plot": OutputOption(plot, PICTURES), "--report": OutputOption(report, PAGES)}
    check_places({"--output": OutputOption(output, stream=True), **places}, files)
    refuse_two(output, json)
    jobs.check_folds(cv)
    if not cv and (plot or report):
        raise ParameterError("a plot or report shows out-of-fold results: --cv must not be 0.")
    if shrinkage and not segment:
        raise ParameterError("--shrinkage is for segments: name their column with --segment COL.")
    times = jobs.time_facts(period)
    twice = files if class_columns.must_look(score) else ()
    reading = options.read_options(decimal, missing, format, twice=twice)
    place = options.EngineOptions(engine, master, threads, memory_limit, reading)
    only = class_columns.only_column(score or [""], files, (label, weight), place)
    segments = options.read_segment(segment)
    columns = ColumnRoles(only or "", label or "", weight, pos_label, segments)
    if features:
        _check_features(segment, report, asked_method=method, param=param)
    if segment and report:
        raise ParameterError("there is no report on segments yet: leave --report out.")
    asked = _Asked(method, param or [], cv, options.read_cells(cells), allow_one_class, json)
    if only is None:
        class_columns.refuse_beside(segment=segment, pos_label=pos_label, cells=cells != "auto")
        if features:
            raise ParameterError("features are for two classes: leave --features out.")
        result = _fit_classes(files, score or [], columns, place, asked)
    elif features:
        result = _fit_features(files, columns, place, asked, features)
    elif segment:
        result = _fit_segments(files, columns, place, asked, shrinkage)
    else:
        result = _fit_one(files, columns, place, asked)
    if pos_label is None:
        refuse_wrong_way(result)
    result = jobs.recorded(result, times)
    results.write_fit(result, written)
    if json:
        say_json(results.fit_document(result, written))
        return
    with words_beside(output):
        results.print_fit(result, written)


class _Asked(NamedTuple):
    """How to fit."""

    method: str
    param: list[str]
    folds: int
    cells: CellsOption
    allow_one_class: bool
    json: bool


def _fit_classes(
    files: list[str],
    score: list[str],
    columns: ColumnRoles,
    place: options.EngineOptions,
    asked: _Asked,
) -> FitResult:
    """A calibrator of several classes."""
    from calibrant.cli import class_jobs, class_reading

    calibrator = method_names.make_class_calibrator(asked.method, asked.param)
    roles = class_reading.ClassRoles(score, columns.label, columns.weight)
    matrix = class_reading.open_and_read(files, roles, place, asked.json)
    title = f"fitting {asked.method} to {matrix.facts['rows']:,} rows"
    return run_with_status(
        lambda: class_jobs.fit(matrix, calibrator, folds=asked.folds), title, asked.json
    )


def _check_features(
    segment: list[str] | None, report: Path | None, *, asked_method: str, param: list[str] | None
) -> None:
    """Refuse what does not go with --features."""
    if segment:
        raise ParameterError(
            "--features and --segment do not go together: name the column of segments among the "
            "features."
        )
    if asked_method != DEFAULT or param:
        raise ParameterError(
            f"--features come with the method {DEFAULT}, which uses them where they help: leave "
            "--method and --param out."
        )
    if report:
        raise ParameterError("there is no report on features yet: leave --report out.")


def _fit_features(
    files: list[str],
    columns: ColumnRoles,
    place: options.EngineOptions,
    asked: _Asked,
    features: list[str],
) -> FitResult:
    """A calibrator that may look at further columns."""
    from calibrant.cli import feature_jobs
    from calibrant.cli.column_roles import complete_roles

    with options.engine_for("reading", asked.json, place) as opened:
        columns = complete_roles(opened, files, columns)
        given = feature_jobs.read(opened, files, columns, features, learn=True)
    if not asked.allow_one_class:
        refuse_one_class(given.table)
    title = f"fitting {len(features)} columns of {len(given.rows.scores):,} rows"
    return run_with_status(lambda: feature_jobs.fit(given, asked.folds), title, asked.json)


def _fit_segments(
    files: list[str],
    columns: ColumnRoles,
    place: options.EngineOptions,
    asked: _Asked,
    shrinkage: str | None,
) -> FitResult:
    """A calibrator with a map for each segment."""
    from calibrant.cli import segment_jobs
    from calibrant.cli.column_roles import complete_roles

    many = segment_jobs.make(asked.method, asked.param, shrinkage)
    with options.engine_for("reading", asked.json, place) as opened:
        columns = complete_roles(opened, files, columns)
        tables = segment_jobs.read(opened, files, columns, asked.cells)
    if not asked.allow_one_class:
        refuse_one_class(tables.read)
    title = f"fitting {len(tables.by_key):,} segments"
    return run_with_status(lambda: segment_jobs.fit(tables, many, asked.folds), title, asked.json)


def _fit_one(
    files: list[str], columns: ColumnRoles, place: options.EngineOptions, asked: _Asked
) -> FitResult:
    """A calibrator of one score."""
    from calibrant.cli.column_roles import complete_roles

    make = functools.partial(method_names.make_calibrator, asked.method, asked.param)
    calibrator = run_with_status(make, f"preparing {asked.method}", asked.json)
    with options.engine_for("reading", asked.json, place) as opened:
        columns = complete_roles(opened, files, columns)
        read = jobs.read_files(opened, files, columns, cells=asked.cells)
    if not asked.allow_one_class:
        refuse_one_class(read)
    what = "cells" if read.table.made else "scores"
    title = f"fitting {asked.method} to {len(read.table):,} {what}"
    return run_with_status(
        lambda: jobs.fit_read(read, calibrator, folds=asked.folds), title, asked.json
    )
