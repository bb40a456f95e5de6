"""The commands that show evidence: the leaderboard, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import jobs, method_names
from calibrant.cli.console import run_with_status, say, say_json, show, tell
from calibrant.cli.options import (
    EngineOptions,
    Files,
    Json,
    LabelColumn,
    MemoryLimit,
    PosLabel,
    ScoreColumn,
    Threads,
    WeightColumn,
    engine_for,
)
from calibrant.cli.paths import PAGES, OutputOption, check_places

__all__ = ["compare", "report"]

Methods = Annotated[
    list[str] | None,
    typer.Option("--method", "-m", metavar="NAME", help="May be repeated; see: calibrant methods."),
]
Held = Annotated[int, typer.Option(min=2, help="How often rows are held out.")]


def compare(
    files: Files,
    score: ScoreColumn,
    label: LabelColumn,
    weight: WeightColumn = None,
    method: Methods = None,
    pos_label: PosLabel = None,
    cv: Held = 5,
    json: Json = False,
    threads: Threads = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Judge methods on rows that they have not seen, beside no calibration at all.

    \b
    Examples:
      calibrant compare scores.csv --score p --label y
      calibrant compare scores.csv -s p -l y -m platt -m isotonic -m venn-abers

    BLS and the scores as they are (uncalibrated) always take part.
    """
    columns = jobs.ColumnRoles(score, label, weight, pos_label)
    methods = method_names.check_methods(method or method_names.COMPARED)
    with engine_for("reading", json, EngineOptions(threads=threads, memory=memory_limit)) as opened:
        read = jobs.read_files(opened, files, columns)
    title = f"comparing {len(methods)} methods on {len(read.table):,} distinct scores"
    auto = run_with_status(lambda: jobs.compare_read(read, methods, cv), title, json)
    board = auto.leaderboard_
    if json:
        labels = {"classes": list(read.classes), "pos_label": read.pos_label}
        standings = None if board is None else board.to_dict()
        choice = {"chosen": auto.chosen_, "refused": auto.refused_, "verdict": auto.explain()}
        advice = [one.to_dict() for one in auto.advice_]
        say_json({**choice, "leaderboard": standings, "advice": advice, **read.facts, **labels})
        return
    if board is not None:
        show(board)
    tell(auto.explain())
    for one in auto.advice_:
        tell(("look: ", "bold yellow"), one.text)


def report(
    files: Files,
    score: ScoreColumn,
    label: LabelColumn,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="HTML", help="Where the page goes.")
    ],
    weight: WeightColumn = None,
    method: Methods = None,
    pos_label: PosLabel = None,
    cv: Held = 5,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="JSON", help="Save the calibrator that is taken, too.")
    ] = None,
    json: Json = False,
    threads: Threads = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Write one page: the verdict, the leaderboard, diagrams, measures, advice, how to apply.

    \b
    Examples:
      calibrant report scores.csv --score p --label y -o report.html
      calibrant report scores.csv -s p -l y -m platt -m isotonic -o report.html --save c.json

    The page needs no network and no other file.
    """
    check_places({"--output": OutputOption(output, PAGES), "--save": OutputOption(save)}, files)
    columns = jobs.ColumnRoles(score, label, weight, pos_label)
    methods = method_names.check_methods(method or ())
    with engine_for("reading", json, EngineOptions(threads=threads, memory=memory_limit)) as opened:
        read = jobs.read_files(opened, files, columns)
    what = f"judging {len(read.table):,} distinct scores"
    page = run_with_status(
        lambda: jobs.report_read(read, methods, cv, title=title, saved_as=save), what, json
    )
    page.save(output)
    if save is not None:
        jobs.save_fitted(page.fitted, read, save, jobs.time_facts(None))
    if json:
        say_json(
            {"output": str(output), "saved": None if save is None else str(save)} | page.to_dict()
        )
        return
    for sentence in page.verdict:
        tell(sentence)
    for one in page.advice:
        tell(("look: ", "bold yellow"), str(one))
    say()
    say("The page: ", (str(output), "bold"))
    if save is not None:
        say("The calibrator: ", (str(save), "bold"))
