"""The commands that measure and draw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import class_columns, decision_plot, feature_jobs, jobs, options
from calibrant.cli.asked_columns import ColumnRoles
from calibrant.cli.console import say, say_json, show, tell
from calibrant.cli.first_words import class_names, label_names, tell_first
from calibrant.cli.paths import PICTURES, OutputOption, check_places
from calibrant.data.validation import check_word
from calibrant.errors import ParameterError
from calibrant.outputs import write_whole

if TYPE_CHECKING:
    from calibrant.metrics.all_measures import Records
    from calibrant.metrics.bin_sweep import Bins


def evaluate(
    files: options.Files,
    prob: options.ProbColumn = None,
    label: options.LabelColumn = None,
    weight: options.WeightColumn = None,
    raw: options.RawColumn = None,
    segment: options.SegmentColumn = None,
    pos_label: options.PosLabel = None,
    measures: options.Measures = None,
    features: options.Features = None,
    bins: options.BinsWord = "10",
    level: options.Level = 0.95,
    replicates: options.Replicates = 1000,
    weights: options.Weighing = "importance",
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
    """Measure how good probabilities are, and how good the scores behind them were.

    \b
    Examples:
      calibrant evaluate calibrated.csv
      calibrant evaluate calibrated.csv --prob probability --label churned
      calibrant evaluate calibrated.csv -p probability -l churned --raw score --json
      calibrant evaluate c.csv -p p -l y --weight w --weights counts --level 0.9
      calibrant evaluate 'day-*.parquet' -p p -l y --segment country
      calibrant evaluate calibrated.csv -p 'probability_*' --raw 'p_*' -l kind
      calibrant evaluate calibrated.csv --measures clinical --measures auc
      calibrant evaluate calibrated.csv --features age,country
    """
    from calibrant.cli.column_roles import complete_roles
    from calibrant.metrics.all_measures import chosen_records
    from calibrant.metrics.intervals import read_interval_options
    from calibrant.metrics.registry import CLASS_MEASURES, MEASURES

    twice = files if not prob or class_columns.must_look(prob) else ()
    reading = options.read_options(decimal, missing, format, twice=twice)
    place = options.EngineOptions(engine, master, threads, memory_limit, reading)
    guessed = None if prob else _of_classes(files, place)
    prob = prob or guessed
    only = class_columns.only_column(prob or [""], files, (label, weight), place)
    segments = options.read_segment(segment)
    columns = ColumnRoles(only or "", label or "", weight, pos_label, segments)
    wanted, count = options.read_cells(cells), options.read_bins(bins)
    records = chosen_records(CLASS_MEASURES if only is None else MEASURES, measures)
    if only is None:
        from calibrant.cli import class_jobs, class_reading

        beside = {"pos_label": pos_label, "cells": cells != "auto", "features": features}
        class_columns.refuse_beside(segment=segment, **beside)
    elif segment:
        if raw:
            raise ParameterError("segments are measured without --raw: leave one of them out.")
        if features:
            raise ParameterError("--segment goes without --features: name the column there, too.")
        _each_segment(files, columns, place, wanted, count, records if measures else None, json)
        return
    intervals = read_interval_options(level or None, replicates, weights, 0)
    evaluation: Any
    names: Any
    if only is None:
        roles = class_reading.ClassRoles(prob or [], label or "", weight, raw or (), "--prob")
        matrix = class_reading.open_and_read(files, roles, place, json, probabilities=True)
        evaluation = class_jobs.evaluate(matrix, bins=count, intervals=intervals, records=records)
        read, names = jobs.file_facts(matrix), class_names(matrix)
        if guessed:
            read["guessed"] = ["score", *read.get("guessed", [])]
    else:
        before = jobs.one_raw_column(raw)
        with options.engine_for("measuring", json, place) as opened:
            columns = complete_roles(opened, files, columns, probabilities=True, besides=before)
            evaluation, read = jobs.measure_files(
                opened,
                files,
                columns,
                before,
                cells=wanted,
                bins=count,
                intervals=intervals,
                records=records,
            )
            if features:
                rows = feature_jobs.read(opened, files, columns, features, probabilities=True)
                groups = feature_jobs.find_groups(
                    rows, level=level or jobs.LEVEL, replicates=replicates, weights=weights
                )
                evaluation = replace(evaluation, groups=groups)
        names = label_names(read)
    if json:
        say_json({**evaluation.to_dict(), **read})
        return
    _print(evaluation, names)


def _of_classes(files: list[str], place: options.EngineOptions) -> list[str] | None:
    """The columns of probabilities that `apply` wrote for several classes, if there are some."""
    if place.name != "duckdb":
        return None
    from calibrant.cli.column_roles import applied_classes

    with options.first_look(place) as opened:
        return applied_classes(opened, files) or None


def _print(evaluation: Any, names: Any) -> None:
    """The table in words, too, after what must be known first and before the groups."""
    from calibrant.metrics.evaluation_words import in_words

    look, groups = evaluation.look, getattr(evaluation, "groups", None)
    first = tell_first(look, names)
    beside = {} if groups is None else {"groups": None}
    show(replace(evaluation, look=None, **beside), colour=not first)
    if (look is None or not look.useless) and (said := in_words(evaluation)):
        tell(said)
    if groups is not None:
        say()
        say(("Where is it wrong?", "bold"))
        show(groups)


#: segments that are shown; JSON has them all
SHOWN = 30


def _each_segment(
    files: list[str],
    columns: ColumnRoles,
    place: options.EngineOptions,
    cells: Any,
    bins: Bins,
    records: Records | None,
    json: bool,
) -> None:
    """Print the measures of each segment: those of the records, or the few most telling ones."""
    from calibrant.cli import segment_jobs
    from calibrant.cli.column_roles import complete_roles
    from calibrant.cli.results import segment_table
    from calibrant.data.naming import segment_names

    with options.engine_for("measuring", json, place) as opened:
        columns = complete_roles(opened, files, columns, probabilities=True)
        tables = segment_jobs.read(opened, files, columns, cells, probabilities=True)
    found = segment_jobs.evaluate_each(tables.by_key, bins, list(records) if records else None)
    if json:
        each = {name: one.to_dict() for name, one in found.items()}
        say_json({"segments": each, **jobs.file_facts(tables.read)})
        return
    show(
        segment_table(
            dict(list(found.items())[:SHOWN]), " / ".join(segment_names(columns.segment)), records
        )
    )
    if len(found) > SHOWN:
        tell(f"The {SHOWN} largest of {len(found):,} segments; --json has them all.")


def plot(
    files: options.Files,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Picture: .png, .svg or .pdf.")
    ],
    prob: options.ProbColumn = None,
    label: options.LabelColumn = None,
    weight: options.WeightColumn = None,
    raw: options.RawColumn = None,
    pos_label: options.PosLabel = None,
    kind: Annotated[
        str, typer.Option(metavar="reliability|decision", help="What to draw.")
    ] = "reliability",
    thresholds: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH", help="Of a decision curve, such as 0.05:0.5; default: 0.01:0.99."
        ),
    ] = None,
    bins: options.BinsWord = "10",
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the picture.")] = None,
    decimal: options.DecimalMark = None,
    missing: options.MissingRows = "error",
    format: options.StreamFormat = None,
    json: options.Json = False,
    threads: options.Threads = None,
    memory_limit: options.MemoryLimit = None,
) -> None:
    """Draw what was predicted against what happened, or what acting on it is worth.

    A reliability diagram or, with --kind decision, the net benefit at each threshold.

    \b
    Examples:
      calibrant plot calibrated.csv --prob probability --label churned -o r.png
      calibrant plot calibrated.csv -p probability --raw score -l churned -o r.svg
      calibrant plot calibrated.csv --kind decision --thresholds 0.05:0.4 -o d.png
      calibrant plot calibrated.csv -p 'probability_*' --raw 'p_*' -l kind -o r.png
    """
    from calibrant.cli.column_roles import complete_roles

    check_places({"--output": OutputOption(output, PICTURES)}, files)
    check_word("--kind", kind, tuple(KINDS))
    if thresholds is not None and kind != "decision":
        raise ParameterError("--thresholds goes with --kind decision. Leave it out, or add that.")
    places = None if thresholds is None else decision_plot.read_thresholds(thresholds)
    twice = files if not prob or class_columns.must_look(prob) else ()
    reading = options.read_options(decimal, missing, format, twice=twice)
    place = options.EngineOptions(threads=threads, memory_limit=memory_limit, reading=reading)
    prob = prob or _of_classes(files, place)
    only = class_columns.only_column(prob or [""], files, (label, weight), place)
    suffix, count = output.suffix[1:].lower(), options.read_bins(bins)
    read: Any
    if only is None:
        from calibrant.cli import class_jobs, class_reading

        class_columns.refuse_beside(pos_label=pos_label, kind=kind == "decision")
        roles = class_reading.ClassRoles(prob or [], label or "", weight, raw or (), "--prob")
        read = class_reading.open_and_read(files, roles, place, json, probabilities=True)
        picture = class_jobs.draw(
            read.matrix, read.classes, format=suffix, bins=count, title=title, raw=read.raw
        )
    else:
        columns, scores = (
            ColumnRoles(only, label or "", weight, pos_label),
            jobs.one_raw_column(raw),
        )
        with options.engine_for("reading", json, place) as opened:
            columns = complete_roles(opened, files, columns, probabilities=True, besides=scores)
            read, before = jobs.evaluate_files(opened, files, columns, scores)
        if kind == "decision":
            tables = {columns.score: read.table} | ({scores: before} if scores and before else {})
            picture = decision_plot.draw(tables, places, format=suffix, title=title)
        else:
            picture = jobs.draw(read.table, before, format=suffix, bins=count, title=title)
    write_whole(output, picture)
    if json:
        say_json({"output": str(output), **read.facts})
    else:
        say(f"{KINDS[kind]} written to ", (str(output), "bold"))


#: what `plot` draws, and what it is called
KINDS = {"reliability": "Reliability diagram", "decision": "Decision curve"}
