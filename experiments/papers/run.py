"""Computing the cells of tables, in processes, so that nothing finished is lost."""

from __future__ import annotations

import math
import os
import signal
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from experiments import say
from experiments.data import DataMissingError
from experiments.papers import paper as by_name
from experiments.papers.cells import SECONDS, Cell, Journal, Paper, Row, Table
from experiments.papers.made_with import record, stale

__all__ = ["Found", "Outcome", "ProgressBar", "Workers", "cost", "journal", "results", "run_table"]

#: one thread for each process: the cores are taken by processes
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Outcome(NamedTuple):
    """What became of a run: cells computed, data that are missing, cells that failed."""

    done: int
    missing: tuple[str, ...]
    failed: tuple[str, ...]


class Found(NamedTuple):
    """A cell's row and the CPU seconds it took, or why there is none."""

    row: Row | None
    seconds: float
    missing: str = ""


def journal(folder: Path, paper: Paper, table: Table) -> Journal:
    """The finished cells of a table."""
    return Journal(folder / f"{paper.name}_{table.name}.csv", table.keys)


def results(folder: Path, paper: Paper) -> dict[str, pd.DataFrame]:
    """The finished cells of each table of a paper."""
    return {t.name: journal(folder, paper, t).frame(t.cells(False)) for t in paper.tables}


def run_cell(paper: str, table: str, cell: Cell) -> Found:
    """One cell, wherever it is computed."""
    start = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):  # whatever the number of processes
        warnings.simplefilter("ignore")  # models that have not quite converged are scores too
        try:
            row = by_name(paper).table(table).run(**cell)
        except DataMissingError as error:
            return Found(None, 0.0, str(error))
    return Found(row, time.process_time() - start)


class Workers:
    """Processes that compute cells, and the wish to stop.

    The first interrupt lets the cells at work finish and be kept; a second one ends everything.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs, self.stopping = jobs, False
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        self.before = signal.signal(signal.SIGINT, self._interrupt)
        if self.jobs > 1:
            for name in THREADS:
                os.environ.setdefault(name, "1")
            self.pool = ProcessPoolExecutor(
                self.jobs, mp_context=get_context("spawn"), initializer=_deaf
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        signal.signal(signal.SIGINT, self.before)
        if self.pool is not None:
            if kind is not None:  # nobody waits for the cells at work any more
                for child in active_children():
                    child.terminate()
            self.pool.shutdown()

    def _interrupt(self, number: int, frame: object) -> None:
        if self.stopping:
            if time.monotonic() - self.asked > 1:  # some shells pass one interrupt on twice
                raise KeyboardInterrupt
            return
        self.stopping, self.asked = True, time.monotonic()
        say("interrupted: the cells at work are finished and kept (once more: stop at once)")

    def computed(
        self, work_out: Callable[[Cell], Found], cells: list[Cell]
    ) -> Iterator[tuple[Cell, Found | BaseException]]:
        """Cells with what was found, in the order in which they are done."""
        if self.pool is None:
            for cell in cells:
                if not self.stopping:
                    try:
                        yield cell, work_out(cell)
                    except Exception as error:
                        yield cell, error
            return
        ahead, work = deque(cells), {}
        while work or (ahead and not self.stopping):
            while ahead and not self.stopping and len(work) < self.jobs:  # none waits in a queue
                cell = ahead.popleft()
                work[self.pool.submit(work_out, cell)] = cell
            finished, _ = wait(work, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in finished:
                error = future.exception()
                yield work.pop(future), future.result() if error is None else error


def _deaf() -> None:
    """The parent process answers to interrupts, not the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_table(
    paper: Paper, table: Table, folder: Path, quick: bool, workers: Workers, again: bool = False
) -> Outcome:
    """The cells of a table that are not there yet, or are listed as stale; kept as they come."""
    kept = journal(folder, paper, table)
    listed = stale(folder).get((paper.name, table.name)) if again else None
    todo = kept.todo(table.cells(quick), listed.runs if listed else ())
    todo.sort(key=lambda cell: cell.get(table.repeats, 0))  # all of a repetition, then the next
    missing: dict[str, None] = {}
    failed, done = [], 0
    made_in = ""
    with ProgressBar(f"{paper.name} {table.name}", len(todo)) as progress:
        for cell, found in workers.computed(partial(run_cell, paper.name, table.name), todo):
            if isinstance(found, BaseException):
                failed.append(f"{cell}: {type(found).__name__}: {found}")
            elif found.row is None:
                missing[found.missing] = None
            else:
                made_in = made_in or record(folder)
                kept.add(cell, found.row, found.seconds, made_in)
                done += 1
            progress.step()
    kept.sort(table.cells(False))
    return Outcome(done, tuple(missing), tuple(failed))


class ProgressBar:
    """A bar on a terminal, a line now and then elsewhere."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total, self.done, self.told = name, total, 0, time.monotonic()
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self.bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
        self.alive = console.is_terminal

    def __enter__(self) -> ProgressBar:
        if self.alive:
            self.bar.start()
            self.task = self.bar.add_task(self.name, total=self.total)
        return self

    def step(self) -> None:
        self.done += 1
        if self.alive:
            self.bar.advance(self.task)
        elif time.monotonic() - self.told > 30:
            self.told = time.monotonic()
            say(f"{self.name}: {self.done} of {self.total} cells")

    def __exit__(self, *_: object) -> None:
        if self.alive:
            self.bar.stop()


def cost(folder: Path, paper: Paper) -> list[tuple[str, int, int, float, float]]:
    """Per table: cells of the full run, those that are there, hours they took, hours to go.

    A cell that is not there is taken to last as long as the mean of those that differ from it by
    repetition only, else of those that share the most of its leading keys; all of it in
    proportion to the key that tells the work.
    """
    rows = []
    for table in paper.tables:
        kept, cells = journal(folder, paper, table), table.cells(False)
        todo = kept.todo(cells)
        wanted = set(map(kept.name, cells))
        done = [row for row in kept.rows if kept.name(row) in wanted]
        alike = [key for key in table.keys if key not in {table.repeats, table.work}]
        rates: dict[tuple[str, ...], list[float]] = {}
        for row in done:
            rate = float(row[SECONDS]) / float(row.get(table.work, 1))
            for length in range(len(alike) + 1):
                rates.setdefault(tuple(row[key] for key in alike[:length]), []).append(rate)
        ahead = 0.0
        for cell in todo:
            names = [str(cell[key]) for key in alike]
            known = (rates.get(tuple(names[:length])) for length in range(len(names), -1, -1))
            like = next((found for found in known if found), [math.nan])
            ahead += sum(like) / len(like) * float(cell.get(table.work, 1))
        spent = sum(float(row[SECONDS]) for row in done)
        rows.append((table.name, len(cells), len(done), spent / 3600, ahead / 3600))
    return rows
