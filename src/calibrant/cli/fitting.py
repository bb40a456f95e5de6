"""The commands that learn and judge: fit, evaluate, plot, report and demo."""

from __future__ import annotations

import csv
import functools
import importlib
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from calibrant.cli import jobs, reading, sources
from calibrant.cli.console import (
    command,
    run_with_status,
    say,
    say_json,
    say_pairs,
    show,
    tell,
    tell_advice,
)
from calibrant.cli.jobs import (
    FitResult,
    draw,
    names_of,
    page_of,
    refuse_one_class,
    refuse_wrong_way,
    tell_first,
    tell_others,
)
from calibrant.cli.reading import load_map, read_matrix
from calibrant.cli.sources import (
    PAGES,
    PICTURES,
    FileSource,
    OutputOption,
    check_places,
    engine_options,
    find_source,
    refuse_two,
    words_beside,
)
from calibrant.data.columns import segment_columns_of
from calibrant.data.door import check_word
from calibrant.data.lazy import CellsOption
from calibrant.engines.apply_options import ApplyOptions
from calibrant.engines.open_engine import open_engine
from calibrant.engines.rows import FileMatrix, FileTable
from calibrant.errors import InputError, ParameterError, in_options, quoted
from calibrant.fitting.registry import DEFAULT
from calibrant.metrics.cells import Bins
from calibrant.metrics.evaluating import Records, chosen_records, in_words
from calibrant.metrics.intervals import read_interval_options
from calibrant.metrics.measures import CLASS_MEASURES, MEASURES
from calibrant.outputs import write_whole

if TYPE_CHECKING:
    from calibrant.auto.auto import AutoCalibrator
    from calibrant.cli.reading import FileFeatures
    from calibrant.reports.value import Report


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
    files: sources.FileNames,
    score: sources.ScoreColumn = None,
    label: sources.LabelColumn = None,
    weight: sources.WeightColumn = None,
    segment: sources.SegmentColumn = None,
    features: sources.FitFeatures = None,
    method: MethodName = DEFAULT,
    param: Parameters = None,
    shrinkage: Shrinkage = None,
    pos_label: sources.PosLabel = None,
    output: OutputFile = Path("calibrator.json"),
    cv: sources.Folds = 5,
    period: Period = None,
    plot: PlotFile = None,
    report: ReportFile = None,
    decimal: sources.DecimalMark = None,
    missing: sources.MissingRows = "error",
    format: sources.StreamFormat = None,
    allow_one_class: OneClass = False,
    cells: sources.Cells = "auto",
    engine: sources.EngineName = "duckdb",
    master: sources.Master = None,
    json: sources.Json = False,
    threads: sources.Threads = None,
    memory_limit: sources.MemoryLimit = None,
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
    place = engine_options(
        decimal, missing, format, threads, memory_limit, engine, master, named=files
    )
    source = find_source(files, score, label, weight, pos_label, place, json, segment=segment)
    if features:
        _check_features(segment, report, cells, asked_method=method, param=param)
    if segment and report:
        raise ParameterError("there is no report on segments yet: leave --report out.")
    asked = _Asked(source, method, param or [], cv, sources.read_cells(cells))
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
        refuse_wrong_way(result.read, result.fitted)
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

    calibrator = jobs.make_class_calibrator(asked.method, asked.param)
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
    make = functools.partial(jobs.make_calibrator, asked.method, asked.param)
    calibrator = run_with_status(make, f"preparing {asked.method}", asked.source.quiet)
    with reading.opened(asked.source) as (engine, source):
        read = reading.read_table(engine, source, asked.cells)
    what = "cells" if read.table.made else "scores"
    title = f"{asked.method} to {len(read.table):,} {what}"
    return _Work(read, title, lambda: jobs.fit_score(read, calibrator, asked.folds))


# --- The main job on a bundled example: a naive Bayes model that is far too sure of itself --------


SEED = 20
TRAIN, CALIBRATE, NEW = 2_000, 4_000, 3_000
REGIONS = ("North", "South", 'Old Town, "east"', "Île-de-France", "Port; quay")


def example(seed: int = SEED) -> tuple[str, str]:
    """Two CSV files of customers, their scores and whether they left: to fit to, and to judge by.

    Twelve noisy readings of three hidden traits are correlated, which naive Bayes does not know:
    it counts the same evidence several times and its probabilities crowd at 0 and 1.

    >>> old, new = example()
    >>> old.splitlines()[0]
    'customer,region,months,score,churned'
    >>> len(old.splitlines()), len(new.splitlines())
    (4001, 3001)
    """
    from sklearn.naive_bayes import GaussianNB

    rng = np.random.default_rng(seed)
    n = TRAIN + CALIBRATE + NEW
    traits = rng.normal(size=(n, 3))
    features = np.repeat(traits, 4, axis=1) + 0.5 * rng.normal(size=(n, 12))
    tendency = traits @ [1.1, 0.8, 0.4] - 1.5
    left = rng.random(n) < 1.0 / (1.0 + np.exp(-tendency))
    model = GaussianNB().fit(features[:TRAIN], left[:TRAIN])
    scores = np.clip(model.predict_proba(features)[:, 1], 1e-6, 1.0 - 1e-6)
    months = rng.integers(1, 120, size=n)
    regions = rng.integers(len(REGIONS), size=n)

    def text_of(rows: range) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("customer", "region", "months", "score", "churned"))
        for i in rows:
            score = f"{scores[i]:.6f}"
            answer = "yes" if left[i] else "no"
            writer.writerow((f"{i:06d}", REGIONS[regions[i]], months[i], score, answer))
        return text.getvalue()

    middle = TRAIN + CALIBRATE
    return text_of(range(TRAIN, middle)), text_of(range(middle, n))


#: the files of the demonstration, and what they are
FILES = {
    "scores.csv": "scores of a naive Bayes model, and what happened",
    "new.csv": "customers that came later",
    "calibrator.json": "the calibrator",
    "calibrated.csv": "new.csv with one more column, probability",
    "reliability.png": "reliability diagram",
    "report.html": "the verdict, the leaderboard and diagrams on one page",
}
#: the commands that make them, in their folder
BY_HAND = (
    "calibrant fit scores.csv --score score --label churned",
    "calibrant apply calibrator.json new.csv -o calibrated.csv",
    "calibrant evaluate calibrated.csv --prob probability --raw score --label churned",
    "calibrant report scores.csv --score score --label churned -o report.html",
)


def run(folder: Path, json: bool = False, force: bool = False) -> None:
    """Write the example into a folder, do the whole job there, and say what came of it."""
    paths = _make_room(folder, force)
    scores, new, saved, calibrated, picture, page = paths
    for path, text in zip((scores, new), example(), strict=True):
        write_whole(path, text)
    with open_engine() as engine:
        read = reading.read_table(engine, FileSource([scores], ["score"], "churned"))
        auto = jobs.compare(read, jobs.REPORTED, folds=5)
        jobs.save_fitted(auto.to_fitted(), read.facts, saved)
        engine.apply(load_map(saved), [new], calibrated, ApplyOptions("score"))
        made = FileSource([calibrated], ["probability"], "churned", raw=["score"], option="--prob")
        after, before = reading.read_before_and_after(engine, made)
        intervals = read_interval_options(0.95, 1000, "importance", 0)
        evaluation, _ = reading.measure(engine, made, cells="auto", bins=10, intervals=intervals)
    write_whole(picture, draw(after.table, before, fitted_map=auto))
    title = "Which customers will leave?"
    page_of(auto, read, title=title, saved_as=Path("calibrator.json")).save(page)
    if json:
        say_json(
            {
                "files": {path.name: str(path) for path in paths},
                "chosen": auto.chosen_,
                "verdict": auto.explain(),
                "evaluation": evaluation.to_dict(),
                "summary": in_words(evaluation),
            }
        )
        return
    tell(auto.explain())
    say()
    tell("Applied to new.csv, where the outcomes are known too:")
    say()
    show(evaluation)
    tell(in_words(evaluation))
    how = f"Measured on the {after.facts['rows']:,} rows of new.csv, which the fit has not seen."
    tell((how, "dim"))
    say()
    say_pairs({str(path): FILES[path.name] for path in paths})
    say()
    say("The same by hand:")
    for line in (f"cd {quoted(str(folder))}", *BY_HAND):
        say("  ", command(line))


def _make_room(folder: Path, force: bool) -> list[Path]:
    """The paths of the files in a folder, which is made; what is there is not lost unasked."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} must be a folder, but it is a file. Name another.")
    paths = [folder / name for name in FILES]
    there = [path.name for path in paths if os.path.lexists(path)]
    if there and not force:
        raise InputError(
            f"the folder {folder} already has {', '.join(there)}. Name another folder, or let "
            "them be replaced: --force."
        )
    check_places({path.name: OutputOption(path) for path in paths if folder.is_dir()}, [])
    folder.mkdir(parents=True, exist_ok=True)
    return paths


# --- The commands that show evidence: the leaderboard, and the page -------------------------------


Methods = Annotated[
    list[str] | None,
    typer.Option("--method", "-m", metavar="NAME", help="May be repeated; see: calibrant methods."),
]
Held = Annotated[
    int, typer.Option(min=2, help="Folds: parts of the rows that are held out in turn.")
]


def compare(
    files: sources.FileNames,
    score: sources.ScoreColumn = None,
    label: sources.LabelColumn = None,
    weight: sources.WeightColumn = None,
    method: Methods = None,
    pos_label: sources.PosLabel = None,
    cv: Held = 5,
    decimal: sources.DecimalMark = None,
    missing: sources.MissingRows = "error",
    format: sources.StreamFormat = None,
    json: sources.Json = False,
    threads: sources.Threads = None,
    memory_limit: sources.MemoryLimit = None,
) -> None:
    """Judge methods on rows that they have not seen, beside no calibration at all.

    \b
    Examples:
      calibrant compare scores.csv --score p --label y
      calibrant compare scores.csv -s p -l y -m platt -m isotonic -m venn-abers
      calibrant compare scores.csv -s 'p_*' -l kind

    BLS and the scores as they are (uncalibrated) always take part.
    """
    place = engine_options(decimal, missing, format, threads, memory_limit, named=files)
    source = find_source(files, score, label, weight, pos_label, place, json)
    source.refuse_beside(pos_label=pos_label)
    usual = jobs.COMPARED_CLASSES if source.several else jobs.COMPARED
    methods = jobs.check_methods(method or usual, several=source.several)
    read, _, size = _read(source)
    title = f"comparing {len(methods)} methods on {size}"
    auto = run_with_status(lambda: _compared(read, methods, cv), title, json)
    facts = reading.file_facts(read)
    names = names_of(facts)
    said = auto.explain(names=names)
    board = auto.leaderboard_
    if json:
        standings = None if board is None else board.to_dict()
        choice = {"chosen": auto.chosen_, "refused": auto.refused_, "verdict": said}
        advice = [one.to_dict() for one in auto.advice_]
        say_json({**choice, "leaderboard": standings, "advice": advice, **facts})
        return
    first = tell_first(getattr(auto, "look_", None), names)
    if board is not None:
        show(board)
    tell(said.removeprefix(first).strip())
    tell_others(auto.advice_, first)


def _read(
    source: FileSource, features: list[str] | None = None
) -> tuple[FileTable | FileMatrix, FileFeatures | None, str]:
    """The scores of one column or of several classes, rows with features if some are asked for, and
    how much was read, in words."""
    if source.several:
        matrix = read_matrix(source)
        return matrix, None, f"{matrix.facts['rows']:,} rows"
    with reading.opened(source) as (engine, known):
        read = reading.read_table(engine, known)
        rows = reading.read_features(engine, known, features) if features else None
    return read, rows, f"{len(read.table):,} distinct scores"


def _compared(read: FileTable | FileMatrix, methods: Sequence[str], cv: int) -> AutoCalibrator:
    """The automatic choice among methods by name, fitted and judged."""
    if isinstance(read, FileTable):
        return jobs.compare(read, methods, cv)
    from calibrant.cli import class_jobs

    return class_jobs.compare(read, methods, cv)


def report(
    files: sources.FileNames,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="HTML", help="Where the page goes.")
    ],
    score: sources.ScoreColumn = None,
    label: sources.LabelColumn = None,
    weight: sources.WeightColumn = None,
    method: Methods = None,
    pos_label: sources.PosLabel = None,
    cv: Held = 5,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    measures: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Measures beside the standard ones, such as clinical; may be repeated.",
        ),
    ] = None,
    features: sources.Features = None,
    save: Annotated[
        Path | None, typer.Option(metavar="JSON", help="Save the calibrator that is taken, too.")
    ] = None,
    decimal: sources.DecimalMark = None,
    missing: sources.MissingRows = "error",
    format: sources.StreamFormat = None,
    json: sources.Json = False,
    threads: sources.Threads = None,
    memory_limit: sources.MemoryLimit = None,
) -> None:
    """Write one page: the verdict, the leaderboard, diagrams, measures, advice, how to apply.

    \b
    Examples:
      calibrant report scores.csv --score p --label y -o report.html
      calibrant report scores.csv -s p -l y -m platt -m isotonic -o report.html --save c.json
      calibrant report scores.csv -o report.html --measures clinical
      calibrant report scores.csv -o report.html --features age,country

    The page needs no network and no other file.
    """
    check_places({"--output": OutputOption(output, PAGES), "--save": OutputOption(save)}, files)
    place = engine_options(decimal, missing, format, threads, memory_limit, named=files)
    source = find_source(files, score, label, weight, pos_label, place, json)
    source.refuse_beside(pos_label=pos_label, measures=measures, features=features)
    usual = jobs.REPORTED_CLASSES if source.several else jobs.REPORTED
    methods = jobs.check_methods(method or usual, several=source.several)
    read, rows, size = _read(source, features)

    def judged() -> Report:
        if isinstance(read, FileTable):
            auto = jobs.compare(read, methods, cv)
            page = page_of(auto, read, title=title, saved_as=save, measures=measures)
            return jobs.with_groups(page, rows)
        from calibrant.cli import class_jobs

        return class_jobs.report(read, methods, cv, title=title, saved_as=save)

    # before the thread begins: one that is left behind may be amid an import that others wait for
    importlib.import_module("calibrant.auto")
    importlib.import_module("calibrant.reports.report")
    importlib.import_module("calibrant.reports.page")
    page = run_with_status(judged, f"judging {size}", json)
    if save is not None and pos_label is None:
        refuse_wrong_way(read, page.fitted)
    page.save(output)
    if save is not None:
        jobs.save_fitted(page.fitted, read.facts | jobs.time_facts(None), save)
    if json:
        where = {"output": str(output), "saved": None if save is None else str(save)}
        say_json(reading.file_facts(read) | where | page.to_dict())
        return
    for sentence in page.verdict:
        tell(in_options(sentence, {}))
    tell_advice(page.advice)
    if page.groups is not None:
        tell(f"Where is it wrong? {page.groups.summary()}.")
    say()
    say("The page: ", (str(output), "bold"))
    if save is not None:
        say("The calibrator: ", (str(save), "bold"))


# --- The commands that measure and draw -----------------------------------------------------------


#: the measures that look at bins
BINNED = ("ece", "mce", "top_label_ece", "top_label_mce", "classwise_ece", "classwise_mce")


def evaluate(
    files: sources.FileNames,
    prob: sources.ProbColumn = None,
    label: sources.LabelColumn = None,
    weight: sources.WeightColumn = None,
    raw: sources.RawColumn = None,
    segment: sources.SegmentColumn = None,
    pos_label: sources.PosLabel = None,
    measures: sources.Measures = None,
    features: sources.Features = None,
    bins: sources.BinsWord = "10",
    level: sources.Level = 0.95,
    replicates: sources.Replicates = 1000,
    weights: sources.Weighing = "importance",
    decimal: sources.DecimalMark = None,
    missing: sources.MissingRows = "error",
    format: sources.StreamFormat = None,
    cells: sources.Cells = "auto",
    engine: sources.EngineName = "duckdb",
    master: sources.Master = None,
    json: sources.Json = False,
    threads: sources.Threads = None,
    memory_limit: sources.MemoryLimit = None,
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
    place = engine_options(
        decimal, missing, format, threads, memory_limit, engine, master, named=files
    )
    others: Any = {"segment": segment, "raw": raw, "option": "--prob"}
    source = find_source(files, prob, label, weight, pos_label, place, json, **others)
    wanted, count = sources.read_cells(cells), sources.read_bins(bins)
    records = chosen_records(CLASS_MEASURES if source.several else MEASURES, measures)
    if bins != "10" and not any(name in records for name in BINNED):
        raise ParameterError(
            "--bins is for ECE and MCE, which are not among the measures. Leave it out, or name "
            "them in --measures, too."
        )
    beside = {"pos_label": pos_label, "cells": cells != "auto", "features": features}
    source.refuse_beside(segment=segment, **beside)
    sources.check_weighing(weights, weight)
    _refuse_unused(source, records, features, level, replicates, weights)
    if segment:
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


def _refuse_unused(
    source: FileSource,
    records: Records,
    features: list[str] | None,
    level: float,
    replicates: int,
    weights: str,
) -> None:
    """Refuse the options of intervals that would change nothing."""
    given = {
        "--level": level != 0.95,
        "--replicates": replicates != 1000,
        "--weights": weights != "importance",
    }
    drawn = [one for one in records.values() if one.of_redrawn or one.of_curve]
    if source.segment:
        why = "segments are measured without intervals"
    elif features:
        return
    elif not level:
        why, given["--level"] = "--level 0 asks for no intervals", False
    elif source.several or not drawn:
        why = "none of these measures has an interval from random draws"
        given = {"--replicates": given["--replicates"]}
    else:
        return
    if found := [name for name, is_given in given.items() if is_given]:
        raise ParameterError(
            f"{why}, so {' and '.join(found)} would change nothing. Leave "
            f"{'it' if len(found) == 1 else 'them'} out."
        )


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
    show(segment_table(shown, " / ".join(segment_columns_of(source.segment)), records))
    if len(found) > SHOWN:
        tell(f"The {SHOWN} largest of {len(found):,} segments; --json has them all.")


def plot(
    files: sources.FileNames,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Picture: .png, .svg or .pdf.")
    ],
    prob: sources.ProbColumn = None,
    label: sources.LabelColumn = None,
    weight: sources.WeightColumn = None,
    raw: sources.RawColumn = None,
    pos_label: sources.PosLabel = None,
    kind: Annotated[
        str, typer.Option(metavar="reliability|decision", help="What to draw.")
    ] = "reliability",
    thresholds: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH", help="Of a decision curve, such as 0.05:0.5; default: 0.01:0.99."
        ),
    ] = None,
    bins: sources.BinsWord = "10",
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the picture.")] = None,
    decimal: sources.DecimalMark = None,
    missing: sources.MissingRows = "error",
    format: sources.StreamFormat = None,
    json: sources.Json = False,
    threads: sources.Threads = None,
    memory_limit: sources.MemoryLimit = None,
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
    ends = None if thresholds is None else jobs.read_thresholds(thresholds)
    place = engine_options(decimal, missing, format, threads, memory_limit, named=files)
    source = find_source(
        files, prob, label, weight, pos_label, place, json, raw=raw, option="--prob"
    )
    asked: Any = {"format": output.suffix[1:].lower(), "title": title}
    count = sources.read_bins(bins)
    source.refuse_beside(pos_label=pos_label, kind=kind == "decision")
    read: Any
    if source.several:
        read = read_matrix(source)
        picture = jobs.draw_classes(read.matrix, read.raw, read.classes, bins=count, **asked)
    else:
        with reading.opened(source) as (engine, known):
            read, before = reading.read_before_and_after(engine, known)
        if kind == "decision":
            tables = {known.score: read.table}
            if known.before and before:
                tables[known.before] = before
            picture = jobs.draw_decision(tables, ends, **asked)
        else:
            picture = jobs.draw(read.table, before, bins=count, **asked)
    write_whole(output, picture)
    if json:
        say_json({"output": str(output), **read.facts})
    else:
        say(f"{KINDS[kind]} written to ", (str(output), "bold"))


#: what `plot` draws, and what it is called
KINDS = {"reliability": "Reliability diagram", "decision": "Decision curve"}
