"""``python -m experiments PAPER``: a paper's tables, computed again and set beside its own."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from experiments import RESULTS, say, table
from experiments.papers import NAMES, paper
from experiments.papers.cells import Paper
from experiments.papers.check import check, stale_words, tolerances_table
from experiments.papers.made_with import stale, take_kernels
from experiments.papers.render import (
    Judged,
    blocks,
    fill_docs,
    fill_shares,
    judged,
    pictures,
    render,
)
from experiments.papers.run import Outcome, Workers, cost, run_table
from experiments.papers.summary import NAME, summary

OWN_KERNELS = "--own-kernels"
DOCS = Path(__file__).resolve().parent.parent / "docs"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("paper", nargs="?", choices=[*NAMES, "all"], help="which paper, or all")
    parser.add_argument("--table", help="only this table")
    parser.add_argument("--quick", action="store_true", help="every table, fewer repetitions")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--into", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--only", choices=["pages", "pictures", "cost"], help="compute no cells")
    parser.add_argument(
        "--stale", action="store_true", help="also compute again what stale.csv lists"
    )
    parser.add_argument(
        "--check", action="store_true", help="compute some committed cells again, and compare"
    )
    parser.add_argument("--share", type=float, default=0.01, help="of each table, to check")
    parser.add_argument(
        "--longest", type=float, default=60.0, help="check no cell that took more CPU seconds"
    )
    parser.add_argument("--seed", type=int, default=0, help="which cells are checked")
    parser.add_argument(
        OWN_KERNELS,
        action="store_true",
        help="of linear algebra, not those that the committed results were made with",
    )
    told = parser.parse_args()
    if told.jobs < 1:
        parser.error(f"--jobs must be at least 1, but {told.jobs} came")
    if not 0.0 < told.share <= 1.0:
        parser.error(f"--share must be above 0 and at most 1, but {told.share:g} came")
    if told.table is not None:
        if told.paper in (None, "all"):
            parser.error("--table needs the paper that the table is in")
        names = [part.name for part in paper(told.paper).tables]
        if told.table not in names:
            parser.error(
                f"--table must be one of {', '.join(names)} for {told.paper}, but "
                f"{told.table!r} came"
            )
    return told


def unwritable(folder: Path) -> str:
    """Why results cannot be kept in a folder; nothing if they can. Hours may hang on it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        why = error.strerror or str(error)
        return f"results cannot be written to {folder} ({why}): name another folder by --into"


def is_ours(folder: Path) -> bool:
    """Whether these are the results that the documentation quotes."""
    return folder.resolve() == RESULTS.resolve()


def contents() -> str:
    """The papers and their tables."""
    lines = ["Name a paper, or all:"]
    for name in NAMES:
        found = paper(name)
        lines.append(f"\n{name}: {found.title}")
        lines += [f"  {part.name:<12} {part.title}" for part in found.tables]
    return "\n".join(lines)


def compute(found: Paper, told: argparse.Namespace, workers: Workers) -> list[Outcome]:
    """The cells that a run asks for, table by table."""
    wanted = found.tables if told.table is None else (found.table(told.table),)
    outcomes = []
    for part in wanted:
        if workers.stopping:
            break
        start = time.monotonic()
        outcome = run_table(found, part, told.into, told.quick, workers, told.stale)
        spent = time.monotonic() - start
        say(f"{found.name} {part.name}: {outcome.done} cells in {spent:.0f} s")
        for text in outcome.missing:
            say(f"  left out: {text}")
        for text in outcome.failed[:5]:
            say(f"  failed: {text}")
        outcomes.append(outcome)
    return outcomes


def show(found: Paper, told: argparse.Namespace) -> Judged:
    """The pages of a paper, from what there is."""
    told_of = judged(found, told.into)
    parts = blocks(told_of)
    say(f"wrote {render(found, told.into, parts)}")
    return told_of


def sum_up(shown: dict[str, Judged], folder: Path) -> None:
    """The page of all claims, and the shares of cells that pages tell in their sentences."""
    if not is_ours(folder):
        return
    every = {name: shown.get(name) or judged(paper(name), folder) for name in NAMES}
    fill_docs(NAME, {"summary": summary(list(every.values()))}, DOCS)
    words = {"tolerances": tolerances_table(), "stale": stale_words(stale(folder))}
    fill_docs("README", words, DOCS)
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        filled = fill_shares(text, every)
        if filled != text:
            path.write_text(filled, encoding="utf-8")


def costs(papers: list[Paper], folder: Path) -> str:
    """What the full run takes, from the seconds of the cells that are there."""
    rows, total = [], 0.0
    for found in papers:
        for name, cells, done, spent, ahead in cost(folder, found):
            rows.append((found.name, name, cells, done, f"{spent:.2f}", f"{ahead:.2f}"))
            total += ahead
    head = ("paper", "table", "cells", "done", "hours spent", "hours to go")
    return table(head, rows) + f"\n\n{total:.1f} hours of one core to go.\n"


def main() -> int:
    told = arguments()
    if told.paper is None:
        say(contents())
        return 0
    papers = [paper(name) for name in (NAMES if told.paper == "all" else (told.paper,))]
    if told.only == "cost":
        say(costs(papers, told.into))
        return 0
    problem = unwritable(told.into)
    if problem:
        sys.stderr.write(problem + "\n")
        return 2
    if told.only == "pictures":
        drawn = (DOCS / "evidence" / "papers" if is_ours(told.into) else told.into) / "pictures"
        for found in papers:
            for name in pictures(found, told.into, drawn):
                say(f"drew {name}")
        return 0
    if told.check:
        return check(papers, told)
    outcomes: list[Outcome] = []
    shown: dict[str, Judged] = {}
    with Workers(told.jobs) as workers:
        for found in papers:
            if told.only is None:
                outcomes += compute(found, told, workers)
            shown[found.name] = show(found, told)
            if workers.stopping:
                return 130
    sum_up(shown, told.into)
    return 1 if any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    if OWN_KERNELS not in sys.argv:
        take_kernels()
    sys.exit(main())
