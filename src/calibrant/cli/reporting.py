"""The commands that show evidence: the leaderboard, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli import class_columns, feature_jobs, jobs, method_names, options
from calibrant.cli.asked_columns import ColumnRoles
from calibrant.cli.console import run_with_status, say, say_json, show, tell, tell_advice
from calibrant.cli.first_words import class_names, names_of, tell_first, tell_others
from calibrant.cli.paths import PAGES, OutputOption, check_places
from calibrant.shell_words import in_options

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
    from calibrant.cli.column_roles import complete_roles

    twice = files if class_columns.must_look(score) else ()
    reading = options.read_options(decimal, missing, format, twice=twice)
    place = options.EngineOptions(threads=threads, memory_limit=memory_limit, reading=reading)
    only = class_columns.only_column(score or [""], files, (label, weight), place)
    read: Any
    names: Any
    if only is None:
        from calibrant.cli import class_jobs, class_reading

        class_columns.refuse_beside(pos_label=pos_label)
        chosen = method or method_names.COMPARED_CLASSES
        methods = method_names.check_methods(chosen, several=True)
        roles = class_reading.ClassRoles(score or [], label or "", weight)
        read = class_reading.open_and_read(files, roles, place, json)
        title = f"comparing {len(methods)} methods on {read.facts['rows']:,} rows"
        auto = run_with_status(lambda: class_jobs.compare(read, methods, cv), title, json)
        names = class_names(read)
        said = auto.explain(names=names)
    else:
        columns = ColumnRoles(only, label or "", weight, pos_label)
        methods = method_names.check_methods(method or method_names.COMPARED)
        with options.engine_for("reading", json, place) as opened:
            columns = complete_roles(opened, files, columns)
            read = jobs.read_files(opened, files, columns)
        title = f"comparing {len(methods)} methods on {len(read.table):,} distinct scores"
        auto = run_with_status(lambda: jobs.compare_read(read, methods, cv), title, json)
        names = names_of(read)
        said = auto.explain(names=names)
    board = auto.leaderboard_
    if json:
        standings = None if board is None else board.to_dict()
        choice = {"chosen": auto.chosen_, "refused": auto.refused_, "verdict": said}
        advice = [one.to_dict() for one in auto.advice_]
        say_json({**choice, "leaderboard": standings, "advice": advice, **jobs.file_facts(read)})
        return
    first = tell_first(getattr(auto, "look_", None), names)
    if board is not None:
        show(board)
    tell(said.removeprefix(first).strip())
    tell_others(auto.advice_, first)


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
    from calibrant.cli.column_roles import complete_roles

    check_places({"--output": OutputOption(output, PAGES), "--save": OutputOption(save)}, files)
    twice = files if class_columns.must_look(score) else ()
    reading = options.read_options(decimal, missing, format, twice=twice)
    place = options.EngineOptions(threads=threads, memory_limit=memory_limit, reading=reading)
    only = class_columns.only_column(score or [""], files, (label, weight), place)
    read: Any
    if only is None:
        from calibrant.cli import class_jobs, class_reading

        class_columns.refuse_beside(pos_label=pos_label, measures=measures, features=features)
        chosen = method or method_names.REPORTED_CLASSES
        methods = method_names.check_methods(chosen, several=True)
        roles = class_reading.ClassRoles(score or [], label or "", weight)
        read = class_reading.open_and_read(files, roles, place, json)
        auto = class_jobs.automatic(read, methods, cv)
        what = f"judging {read.facts['rows']:,} rows"
        page = run_with_status(
            lambda: class_jobs.page(read, auto, title=title, saved_as=save), what, json
        )
    else:
        columns = ColumnRoles(only, label or "", weight, pos_label)
        methods = method_names.check_methods(method or ())
        with options.engine_for("reading", json, place) as opened:
            columns = complete_roles(opened, files, columns)
            read = jobs.read_files(opened, files, columns)
            rows = feature_jobs.read(opened, files, columns, features) if features else None
        what = f"judging {len(read.table):,} distinct scores"
        page = run_with_status(
            lambda: feature_jobs.with_groups(
                jobs.report_read(read, methods, cv, title=title, saved_as=save, measures=measures),
                rows,
            ),
            what,
            json,
        )
    page.save(output)
    if save is not None:
        jobs.save_fitted(page.fitted, read, save, jobs.time_facts(None))
    if json:
        where = {"output": str(output), "saved": None if save is None else str(save)}
        say_json(jobs.file_facts(read) | where | page.to_dict())
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
