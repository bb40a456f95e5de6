"""``python -m benchmarks.arena``: calibrators of many packages on many datasets."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from pathlib import Path

from experiments import say
from experiments.papers.cells import Cell
from experiments.papers.run import Workers

from benchmarks.arena import matches, pages, tasks
from benchmarks.arena.calarena import take_in
from benchmarks.arena.methods import METHODS
from benchmarks.arena.models import MODELS
from benchmarks.harness import RESULTS

CACHE = Path(__file__).resolve().parent.parent.parent / ".arena"
QUICK_MODELS = ("naive Bayes", "logistic regression", "random forest", "LightGBM")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arena", description=__doc__)
    parser.add_argument(
        "--half", choices=tasks.HALVES, help="which tasks (default: report; all with --hdf5)"
    )
    parser.add_argument("--quick", action="store_true", help="a few small tasks: minutes")
    parser.add_argument(
        "--gates",
        action="store_true",
        help="every other method behind a gate, too, and calibrant's curve without one",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--cache", type=Path, default=CACHE, help="scores and finished matches")
    parser.add_argument("--into", type=Path, help="folder of the tables and pictures")
    parser.add_argument(
        "--hdf5", type=Path, help="a folder with CalArena's files, in place of ours"
    )
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="begin no match after so many"
    )
    parser.add_argument(
        "--from-results",
        type=Path,
        nargs="?",
        const=RESULTS / pages.MATCHES,
        help=f"play nothing: every table from a run's matches (by default {pages.MATCHES})",
    )
    parser.add_argument("--again", nargs="+", default=[], help="methods to play again")
    parser.add_argument(
        "--only", choices=["list", "cost", "tables"], help="play nothing: say what there is"
    )
    told = parser.parse_args()
    if told.jobs < 1:
        parser.error(f"--jobs must be at least 1, but {told.jobs} came")
    unknown = sorted(set(told.again) - set(METHODS))
    if unknown:
        parser.error(
            f"--again must name methods, but {', '.join(unknown)} came; there are "
            f"{', '.join(METHODS)}"
        )
    told.half = told.half or ("all" if told.hdf5 else "report")
    return told


def folder_of(told: argparse.Namespace) -> Path:
    """Where tables go: only the whole report half is what the documentation quotes."""
    if told.into is not None:
        return Path(told.into)
    if told.hdf5 or told.quick or told.half != "report":
        part = "calarena" if told.hdf5 else f"{'quick-' if told.quick else ''}{told.half}"
        return Path(told.cache) / part
    return RESULTS


def listing(wanted: list[tasks.Task]) -> str:
    """The tasks and the methods of a run."""
    lines = [
        f"{task.name:<28} {task.source:<16} {task.half:<7} family {task.family}" for task in wanted
    ]
    lines += [
        f"{one.name:<28} {one.package:<16} {'' if one.installed else 'not installed'}"
        for one in METHODS.values()
    ]
    return "\n".join(lines)


def train(told: argparse.Namespace, wanted: list[tasks.Task], workers: Workers) -> list[str]:
    """Make the scores that are missing; what could not be had, in words."""
    models = QUICK_MODELS if told.quick else tuple(MODELS)
    missing, failed = matches.train_all(told.cache, wanted, workers, models)
    for text in [*missing, *failed]:
        say(f"  left out: {text}")
    return [*missing, *failed]


def cost(told: argparse.Namespace, todo: list[Cell]) -> str:
    """Core hours of the matches, from those that are done."""
    kept = matches.journal(told.cache)
    ahead = len(kept.todo(todo))
    spent = sum(float(row["seconds"]) for row in kept.rows)
    mean = spent / max(1, len(kept.rows))
    return (
        f"{len(kept.rows):,} matches done in {spent / 3600:.2f} core hours; {ahead:,} of "
        f"{len(todo):,} to go, about {ahead * mean / 3600:.2f} core hours"
    )


def again(told: argparse.Namespace) -> int:
    """Every table and picture of a run, made from its matches."""
    try:
        results, run = pages.kept_results(told.from_results)
    except FileNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    folder = told.into or told.from_results.parent
    known = {name: run[name] for name in ("half", "absent", "left_out")}
    for path in pages.write(results, folder, **known, made_on=run["setting"]):
        say(f"wrote {path}")
    return 0


def main() -> int:
    told = arguments()
    if told.from_results is not None:
        return again(told)
    if told.cache == CACHE and told.hdf5:
        told.cache = CACHE / "hdf5"
    wanted = take_in(told.hdf5, told.cache) if told.hdf5 else tasks.tasks("all", told.quick)
    if told.half != "all":
        wanted = [task for task in wanted if task.half == told.half]
    if told.only == "list":
        say(listing(wanted))
        return 0
    absent = sorted({one.name for one in METHODS.values() if not one.installed})
    if absent:
        say(f"not installed, so not played: {', '.join(absent)}")
    left_out: list[str] = []
    failed: list[str] = []
    matches.forget(told.cache, told.again)
    until = time.monotonic() + 60 * told.minutes
    with Workers(told.jobs) as workers:
        if told.only is None and not told.hdf5:
            left_out = train(told, wanted, workers)
        todo = matches.cells(told.cache, [task.name for task in wanted], told.quick, told.gates)
        if told.only == "cost":
            say(cost(told, todo))
            return 0
        if told.only is None and not workers.stopping:
            done, failed = matches.play_all(told.cache, todo, workers, until)
            say(f"{done:,} matches played")
            for text in failed[:5]:
                say(f"  failed: {text}")
        if workers.stopping and time.monotonic() <= until:
            return 130
    by_name = {task.name: task for task in wanted}
    results = matches.results(told.cache, todo, by_name)
    if results.empty:
        say("no matches yet: run without --only tables")
        return 1
    for path in pages.write(results, folder_of(told), told.half, absent, left_out):
        say(f"wrote {path}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
