"""The commands that measure and draw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli import jobs, options, reading, showing
from calibrant.cli.class_reading import read_matrix
from calibrant.cli.console import say, say_json, show, tell
from calibrant.cli.first_words import names_of, tell_first
from calibrant.cli.paths import PICTURES, OutputOption, check_places
from calibrant.cli.sources import FileSource, engine_options, find_source
from calibrant.data.naming import segment_names
from calibrant.data.validation import check_word
from calibrant.errors import ParameterError
from calibrant.metrics.all_measures import Records, chosen_records
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.evaluation_words import in_words
from calibrant.metrics.intervals import read_interval_options
from calibrant.metrics.registry import CLASS_MEASURES, MEASURES
from calibrant.outputs import write_whole

#: the measures that look at bins
BINNED = ("ece", "mce", "top_label_ece", "top_label_mce", "classwise_ece", "classwise_mce")


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
    place = engine_options(decimal, missing, format, threads, memory_limit, engine, master)
    others: Any = {"segment": segment, "raw": raw, "option": "--prob"}
    source = find_source(files, prob, label, weight, pos_label, place, json, **others)
    wanted, count = options.read_cells(cells), options.read_bins(bins)
    records = chosen_records(CLASS_MEASURES if source.several else MEASURES, measures)
    if bins != "10" and not any(name in records for name in BINNED):
        raise ParameterError(
            "--bins is for ECE and MCE, which are not among the measures. Leave it out, or name "
            "them in --measures, too."
        )
    beside = {"pos_label": pos_label, "cells": cells != "auto", "features": features}
    source.refuse_beside(segment=segment, **beside)
    options.check_weighing(weights, weight)
    if segment:
        usual = {"--level": level == 0.95, "--replicates": replicates == 1000}
        if found := [name for name, is_usual in usual.items() if not is_usual]:
            raise ParameterError(
                f"segments are measured without intervals, so {' and '.join(found)} would change "
                f"nothing. Leave {'it' if len(found) == 1 else 'them'} out."
            )
        if weights != "importance":
            raise ParameterError(
                "--weights is for intervals, and segments are measured without them. Leave it out."
            )
        if raw:
            raise ParameterError("segments are measured without --raw: leave one of them out.")
        if features:
            raise ParameterError("--segment goes without --features: name the column there, too.")
        _each_segment(source, wanted, count, records if measures else None)
        return
    intervals = read_interval_options(level or None, replicates, weights, 0)
    asked: Any = {"bins": count, "intervals": intervals, "records": records}
    evaluation: Any
    if source.several:
        from calibrant.cli import class_jobs

        matrix = read_matrix(source)
        evaluation = class_jobs.evaluate(matrix, **asked)
        facts = reading.file_facts(matrix)
        if source.guessed:
            facts["guessed"] = [*source.guessed, *facts.get("guessed", [])]
    else:
        with reading.opened(source, "measuring") as (opened, known):
            evaluation, facts = reading.measure(opened, known, cells=wanted, **asked)
            if features:
                rows = reading.read_features(opened, known, features)
                groups = jobs.find_groups(
                    rows, level=level or jobs.LEVEL, replicates=replicates, weights=weights
                )
                evaluation = replace(evaluation, groups=groups)
    if json:
        say_json({**evaluation.to_dict(), **facts})
        return
    _print(evaluation, names_of(facts))


def _print(evaluation: Any, names: Any) -> None:
    """The table in words, too, after what must be known first and before the groups."""
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


def _each_segment(source: FileSource, cells: Any, bins: Bins, records: Records | None) -> None:
    """Print the measures of each segment: those of the records, or the few most telling ones."""
    from calibrant.cli.results import segment_table

    with reading.opened(source, "measuring") as (engine, known):
        tables = reading.read_segments(engine, known, cells)
    found = jobs.evaluate_each(tables.by_key, bins, list(records) if records else None)
    if source.quiet:
        each = {name: one.to_dict() for name, one in found.items()}
        say_json({"segments": each, **reading.file_facts(tables.read)})
        return
    shown = dict(list(found.items())[:SHOWN])
    show(segment_table(shown, " / ".join(segment_names(source.segment)), records))
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
    check_places({"--output": OutputOption(output, PICTURES)}, files)
    check_word("--kind", kind, tuple(KINDS))
    if thresholds is not None and kind != "decision":
        raise ParameterError("--thresholds goes with --kind decision. Leave it out, or add that.")
    if bins != "10" and kind == "decision":
        raise ParameterError("a decision curve has no bins: leave --bins out.")
    ends = None if thresholds is None else showing.read_thresholds(thresholds)
    place = engine_options(decimal, missing, format, threads, memory_limit)
    source = find_source(
        files, prob, label, weight, pos_label, place, json, raw=raw, option="--prob"
    )
    asked: Any = {"format": output.suffix[1:].lower(), "title": title}
    count = options.read_bins(bins)
    source.refuse_beside(pos_label=pos_label, kind=kind == "decision")
    read: Any
    if source.several:
        read = read_matrix(source)
        picture = showing.draw_classes(read.matrix, read.raw, read.classes, bins=count, **asked)
    else:
        with reading.opened(source) as (engine, known):
            read, before = reading.read_before_and_after(engine, known)
        if kind == "decision":
            tables = {known.score: read.table}
            if known.before and before:
                tables[known.before] = before
            picture = showing.draw_decision(tables, ends, **asked)
        else:
            picture = showing.draw(read.table, before, bins=count, **asked)
    write_whole(output, picture)
    if json:
        say_json({"output": str(output), **read.facts})
    else:
        say(f"{KINDS[kind]} written to ", (str(output), "bold"))


#: what `plot` draws, and what it is called
KINDS = {"reliability": "Reliability diagram", "decision": "Decision curve"}
