"""The command that learns a calibrator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from calibrant.cli import jobs, method_names, options, reading
from calibrant.cli.class_reading import read_matrix
from calibrant.cli.console import run_with_status, say_json
from calibrant.cli.first_words import refuse_one_class, refuse_wrong_way
from calibrant.cli.fit_result import FitResult
from calibrant.cli.paths import (
    PAGES,
    PICTURES,
    OutputOption,
    check_places,
    refuse_two,
    words_beside,
)
from calibrant.cli.sources import FileSource, engine_options, find_source
from calibrant.data.lazy_checks import CellsOption
from calibrant.engines.rows_of_classes import FileMatrix
from calibrant.engines.rows_of_files import FileTable
from calibrant.errors import ParameterError
from calibrant.estimators.registry import DEFAULT

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
        metavar="cv|N",
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
    place = engine_options(decimal, missing, format, threads, memory_limit, engine, master)
    source = find_source(files, score, label, weight, pos_label, place, json, segment=segment)
    if features:
        _check_features(segment, report, cells, asked_method=method, param=param)
    if segment and report:
        raise ParameterError("there is no report on segments yet: leave --report out.")
    asked = _Asked(source, method, param or [], cv, options.read_cells(cells))
    if source.several:
        beside = {"cells": cells != "auto", "allow_one_class": allow_one_class}
        source.refuse_beside(segment=segment, pos_label=pos_label, **beside)
        if features:
            raise ParameterError("features are for two classes: leave --features out.")
        work = _of_classes(asked)
    elif features:
        work = _of_features(asked, features)
    elif segment:
        work = _of_segments(asked, shrinkage)
    else:
        work = _of_one_score(asked)
    if isinstance(work.read, FileTable) and not allow_one_class:
        refuse_one_class(work.read)
    result = run_with_status(work.fit, f"fitting {work.title}", json)
    if pos_label is None:
        refuse_wrong_way(result)
    result = jobs.recorded(result, times)
    results.write_fit(result, written)
    if json:
        say_json(results.fit_document(result, written))
        return
    with words_beside(output):
        results.print_fit(result, written)


def _check_features(
    segment: list[str] | None,
    report: Path | None,
    cells: str,
    *,
    asked_method: str,
    param: list[str] | None,
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
    if cells != "auto":
        raise ParameterError("--features reads every row as it is: leave --cells out.")


class _Asked(NamedTuple):
    """What to fit, and how."""

    source: FileSource
    method: str
    param: list[str]
    folds: int
    cells: CellsOption


class _Work(NamedTuple):
    """A fit that is ready to run: to what was read, and what it is called meanwhile."""

    read: FileTable | FileMatrix
    title: str
    fit: Callable[[], FitResult]


def _of_classes(asked: _Asked) -> _Work:
    """A calibrator of several classes."""
    from calibrant.cli import class_jobs

    calibrator = method_names.make_class_calibrator(asked.method, asked.param)
    read = read_matrix(asked.source)
    title = f"{asked.method} to {read.facts['rows']:,} rows"
    return _Work(read, title, lambda: class_jobs.fit(read, calibrator, asked.folds))


def _of_features(asked: _Asked, features: list[str]) -> _Work:
    """A calibrator that may look at further columns."""
    with reading.opened(asked.source) as (engine, source):
        given = reading.read_features(engine, source, features, learn=True)
    title = f"{len(features)} columns of {len(given.rows.scores):,} rows"
    return _Work(given.read, title, lambda: jobs.fit_features(given, asked.folds))


def _of_segments(asked: _Asked, shrinkage: str | None) -> _Work:
    """A calibrator with a map for each segment."""
    calibrator = jobs.make_segmented(asked.method, asked.param, shrinkage)
    with reading.opened(asked.source) as (engine, source):
        tables = reading.read_segments(engine, source, asked.cells)
    title = f"{len(tables.by_key):,} segments"
    return _Work(tables.read, title, lambda: jobs.fit_segments(tables, calibrator, asked.folds))


def _of_one_score(asked: _Asked) -> _Work:
    """A calibrator of one score."""
    make = functools.partial(method_names.make_calibrator, asked.method, asked.param)
    calibrator = run_with_status(make, f"preparing {asked.method}", asked.source.quiet)
    with reading.opened(asked.source) as (engine, source):
        read = reading.read_table(engine, source, asked.cells)
    what = "cells" if read.table.made else "scores"
    title = f"{asked.method} to {len(read.table):,} {what}"
    return _Work(read, title, lambda: jobs.fit_score(read, calibrator, asked.folds))
