"""The protocol: every method calibrates what every model says, and is judged on other rows.

A match is a task, a model, a number of rows to calibrate on, and a method. Its row of figures is
kept at once, so that a broken-off run goes on where it was.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import time
import warnings
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from experiments.papers.cells import Cell, Journal
from experiments.papers.made_with import record
from experiments.papers.run import Found, ProgressBar, Workers
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.arena.methods import Method, contestant, methods
from benchmarks.arena.models import MODELS, Scored, file_of, keep, kept_models, load, train
from benchmarks.arena.tasks import MissingTaskError, Task

Array = NDArray[np.float64]

KEYS = ["task", "model", "size", "method"]
SIZES = (200, 1000)
ALL = "all"
#: log losses count no probability below this: one certain and wrong row would be infinite
CLIP = 1e-6
#: rows of probabilities may sum to 1 by this much more or less
OFF = 1e-3
MEASURES = ("log loss", "Brier")


# --- one match ------------------------------------------------------------------------------------


def log_loss(p: Array, y: NDArray[np.intp]) -> float:
    """Mean of −ln of the probability of what came, which counts as `CLIP` at least."""
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], CLIP)).mean())


def brier(p: Array, y: NDArray[np.intp]) -> float:
    """Mean squared distance; of two classes that of the second one, else summed over classes."""
    if p.shape[1] == 2:
        return float(np.square(p[:, 1] - y).mean())
    return float(np.square(p - np.eye(p.shape[1])[y]).sum(axis=1).mean())


def checked(found: Any, n: int, k: int) -> Array:
    """Probabilities of all classes; a ValueError if what a method returned is none."""
    p = np.asarray(found, dtype=np.float64)
    if k == 2 and p.size == n:
        p = np.column_stack([1.0 - p.ravel(), p.ravel()])
    if p.shape != (n, k):
        raise ValueError(f"probabilities must be of shape {(n, k)}, but {p.shape} came")
    if not np.isfinite(p).all() or p.min() < -OFF or p.max() > 1.0 + OFF:
        raise ValueError("probabilities must be from 0 to 1, but others, or NaN, came")
    if np.abs(p.sum(axis=1) - 1.0).max() > OFF:
        raise ValueError("probabilities of a row must sum to 1, but do not")
    p = np.clip(p, 0.0, 1.0)
    return p / p.sum(axis=1, keepdims=True)


def judge(one: Method, data: Scored) -> dict[str, float | str]:
    """A method's losses on the test rows, and its CPU seconds; a crash counts as doing nothing."""
    n, k = data.new.shape
    seconds: dict[str, float] = {}
    crash = ""
    p = data.new
    try:
        with quiet():
            start = time.process_time()
            predict = one.learn(data.known(one.reads), data.y.copy())
            fitted = time.process_time()
            found = predict(data.unseen(one.reads))
            seconds = {
                "fit s": fitted - start,
                "predict s": time.process_time() - fitted,
            }
        p = checked(found, n, k)
    except Exception as error:  # whatever a package may raise is a result here
        crash = f"{type(error).__name__}: {' '.join(str(error).split())}"[:120]
    return {
        "log loss": log_loss(p, data.y_new),
        "Brier": brier(p, data.y_new),
        "fit s": seconds.get("fit s", np.nan),
        "predict s": seconds.get("predict s", np.nan),
        "crash": crash,
    }


@contextlib.contextmanager
def quiet() -> Any:
    """Nothing is printed, and what a package does to NumPy's and Python's state is undone."""
    logging.disable(logging.CRITICAL)
    np.random.seed(0)  # noqa: NPY002  (some packages draw from the old generator)
    try:
        with (
            warnings.catch_warnings(),
            np.errstate(),
            threadpool_limits(1),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def rows_of(size: str, pool: int) -> int:
    return pool if size == ALL else int(size)


def sizes(pool: int) -> list[str]:
    """Numbers of rows to calibrate on that a pool has room for, and all of them."""
    return [*(str(n) for n in SIZES if pool >= 1.5 * n), ALL]


def play(folder: Path, cell: Cell) -> Found:
    """One match."""
    data = load(file_of(folder, str(cell["task"])))[str(cell["model"])]
    start = time.process_time()
    row = judge(contestant(str(cell["method"])), data.some(rows_of(str(cell["size"]), len(data.y))))
    return Found(row, time.process_time() - start)


# --- all of them ----------------------------------------------------------------------------------


def prepare(folder: Path, tasks: dict[str, Task], models: tuple[str, ...], cell: Cell) -> Found:
    """Train the models of a task and keep what they say."""
    start = time.process_time()
    name = str(cell["task"])
    try:
        with threadpool_limits(1):
            keep(folder, name, train(tasks[name], models))
    except MissingTaskError as error:
        return Found(None, 0.0, str(error))
    return Found({}, time.process_time() - start)


def train_all(
    folder: Path, tasks: list[Task], workers: Workers, models: tuple[str, ...] = tuple(MODELS)
) -> tuple[list[str], list[str]]:
    """Make the scores that are not there yet; what is missing, and what failed, in words."""
    todo: list[Cell] = [
        {"task": task.name}
        for task in tasks
        if not set(models) <= set(kept_models(folder, task.name))
    ]
    work = partial(prepare, folder, {task.name: task for task in tasks}, models)
    missing: list[str] = []
    failed: list[str] = []
    with ProgressBar("training models", len(todo)) as bar:
        for cell, found in workers.computed(work, todo):
            if isinstance(found, BaseException):
                failed.append(f"{cell['task']}: {type(found).__name__}: {found}")
            elif found.row is None:
                missing.append(f"{cell['task']}: {found.missing}")
            bar.step()
    return missing, failed


def cells(folder: Path, tasks: list[str], quick: bool, gates: bool = False) -> list[Cell]:
    """Every match of the tasks whose scores are there, with the methods that are installed."""
    found: list[Cell] = []
    for name in tasks:
        if not kept_models(folder, name):
            continue
        for model, data in load(file_of(folder, name)).items():
            kind = "binary" if data.p.shape[1] == 2 else "several"
            found += [
                {"task": name, "model": model, "size": size, "method": one.name}
                for size in (sizes(len(data.y))[:1] if quick else sizes(len(data.y)))
                for one in methods(kind, gates, features=data.features is not None)
                if one.installed
            ]
    return found


def journal(folder: Path) -> Journal:
    """The matches that are done."""
    return Journal(folder / "matches.csv", KEYS)


def turn(cell: Cell) -> tuple[int, str]:
    """When a match is played: models of tasks in an order that a checksum shuffles, each with all
    of its sizes and methods. So a run that was stopped has played a random part, whole."""
    pair = f"{cell['task']}/{cell['model']}"
    return zlib.crc32(pair.encode()), pair


def play_all(
    folder: Path, todo: list[Cell], workers: Workers, until: float = math.inf
) -> tuple[int, list[str]]:
    """Play what is not done yet; how many were, and what failed, in words.

    At the time ``until``, by the monotonic clock, no more matches are begun.
    """
    kept = journal(folder)
    ahead = sorted(kept.todo(todo), key=turn)
    failed, done = [], 0
    made_in = ""
    with ProgressBar("matches", len(ahead)) as bar:
        for cell, found in workers.computed(partial(play, folder), ahead):
            if isinstance(found, BaseException):
                failed.append(f"{cell}: {type(found).__name__}: {found}")
            else:
                made_in = made_in or record(folder)
                kept.add(cell, found.row or {}, found.seconds, made_in)
                done += 1
            bar.step()
            if time.monotonic() > until:
                workers.stopping = True
    kept.sort(todo)
    return done, failed


def forget(folder: Path, names: list[str]) -> None:
    """Drop the matches of methods that are to be played again."""
    kept = journal(folder)
    kept.keep(lambda row: row["method"] not in names)


def results(folder: Path, wanted: list[Cell], tasks: dict[str, Task]) -> pd.DataFrame:
    """The matches that are done, with what is known of their tasks."""
    frame = journal(folder).frame(wanted)
    if frame.empty:
        return frame
    frame["family"] = [tasks[name].family for name in frame["task"]]
    frame["kind"] = ["several" if tasks[name].several else "binary" for name in frame["task"]]
    frame["size"] = frame["size"].astype(str)
    frame["crash"] = frame["crash"].astype(object).where(frame["crash"].notna(), "")
    return frame
