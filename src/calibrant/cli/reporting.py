"""The commands that show evidence: the leaderboard, and the page."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli import jobs, method_names, options, reading
from calibrant.cli.class_reading import read_matrix
from calibrant.cli.console import run_with_status, say, say_json, show, tell, tell_advice
from calibrant.cli.first_words import names_of, tell_first, tell_others
from calibrant.cli.paths import PAGES, OutputOption, check_places
from calibrant.cli.showing import page_of
from calibrant.cli.sources import FileSource, engine_options, find_source
from calibrant.engines.rows_of_classes import FileMatrix
from calibrant.engines.rows_of_files import FileTable
from calibrant.shell_words import in_options

if TYPE_CHECKING:
    from calibrant.auto import AutoCalibrator
    from calibrant.cli.reading import FileFeatures
    from calibrant.reports.report_value import Report


Methods = Annotated[
    list[str] | None,
    typer.Option("--method", "-m", metavar="NAME", help="May be repeated; see: calibrant methods."),
]
Held = Annotated[
    int, typer.Option(min=2, help="Folds: parts of the rows that are held out in turn.")
]


def compare(
    files: options.Files,
    score: options.ScoreColumn = None,
    label: options.LabelColumn = None,
    weight: options.WeightColumn = None,
    method: Methods = None,
    pos_label: options.PosLabel = None,
    cv: Held = 5,
    decimal: options.DecimalMark = None,
    missing: options.MissingRows = "error",
    format: options.StreamFormat = None,
    json: options.Json = False,
    threads: options.Threads = None,
    memory_limit: options.MemoryLimit = None,
) -> None:
    """Judge methods on rows that they have not seen, beside no calibration at all.

    \b
    Examples:
      calibrant compare scores.csv --score p --label y
      calibrant compare scores.csv -s p -l y -m platt -m isotonic -m venn-abers
      calibrant compare scores.csv -s 'p_*' -l kind

    BLS and the scores as they are (uncalibrated) always take part.
    """
    place = engine_options(decimal, missing, format, threads, memory_limit)
    source = find_source(files, score, label, weight, pos_label, place, json)
    source.refuse_beside(pos_label=pos_label)
    usual = method_names.COMPARED_CLASSES if source.several else method_names.COMPARED
    methods = method_names.check_methods(method or usual, several=source.several)
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
    files: options.Files,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="HTML", help="Where the page goes.")
    ],
    score: options.ScoreColumn = None,
    label: options.LabelColumn = None,
    weight: options.WeightColumn = None,
    method: Methods = None,
    pos_label: options.PosLabel = None,
    cv: Held = 5,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    measures: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Measures beside the standard ones, such as clinical; may be repeated.",
        ),
    ] = None,
    features: options.Features = None,
    save: Annotated[
        Path | None, typer.Option(metavar="JSON", help="Save the calibrator that is taken, too.")
    ] = None,
    decimal: options.DecimalMark = None,
    missing: options.MissingRows = "error",
    format: options.StreamFormat = None,
    json: options.Json = False,
    threads: options.Threads = None,
    memory_limit: options.MemoryLimit = None,
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
    place = engine_options(decimal, missing, format, threads, memory_limit)
    source = find_source(files, score, label, weight, pos_label, place, json)
    source.refuse_beside(pos_label=pos_label, measures=measures, features=features)
    usual = method_names.REPORTED_CLASSES if source.several else method_names.REPORTED
    methods = method_names.check_methods(method or usual, several=source.several)
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
    importlib.import_module("calibrant.reports.make")
    importlib.import_module("calibrant.reports.page")
    page = run_with_status(judged, f"judging {size}", json)
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
