"""How a thing is measured: CPU time, as a ratio to a yardstick in the same run, and peak memory."""

from __future__ import annotations

import csv
import gc
import os
import platform
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

import calibrant as cal

RESULTS = Path(__file__).parent / "results"


def cpu(work: Callable[[], object], seconds: float = 1.0, most: int = 31) -> float:
    """Median CPU seconds of a call, repeated for about ``seconds`` (at least three times)."""
    taken: list[float] = []
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while len(taken) < 3 or (time.perf_counter() - begin < seconds and len(taken) < most):
            gc.collect()
            gc.disable()
            start = time.process_time()
            work()
            taken.append(time.process_time() - start)
            gc.enable()
            if taken[-1] > 20 * seconds:
                break
    return median(taken)


def peak(work: Callable[[], object]) -> int:
    """Peak bytes allocated during a call, beyond what was held before it."""
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        work()
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return top - before


def setting(packages: Iterable[str]) -> str:
    """One line on what ran where: no names of machines."""
    found = []
    for package in packages:
        try:
            own = package == "calibrant"  # the code that runs, which need not be what is installed
            found.append(f"{package} {cal.__version__ if own else version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; "
        + ", ".join(found)
    )


def write_csv(name: str, rows: list[dict[str, object]]) -> None:
    """The rows as CSV alone, where they are too many to read."""
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{name}.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write(name: str, rows: list[dict[str, object]], heading: str) -> None:
    """The rows as CSV and as a Markdown table under its heading."""
    write_csv(name, rows)
    columns = list(rows[0])
    lines = [heading, "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(row[c]) for c in columns) + " |" for row in rows]
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def add(rows: list[dict[str, object]], line: dict[str, object]) -> None:
    """One more row, which is also printed: long work shows how far it is."""
    print(line, flush=True)
    rows.append(line)


def write_page(
    name: str,
    title: str,
    tables: dict[str, list[dict[str, object]]],
    headings: dict[str, str],
    made: str,
) -> None:
    """Several tables, each as CSV of its own, and all of them on one page of Markdown."""
    pages = []
    for own, rows in tables.items():
        write(own, rows, headings[own])
        page = RESULTS / f"{own}.md"
        pages.append(page.read_text(encoding="utf-8"))
        page.unlink()
    head = f"# {title}\n\n{made} Made by `python -m benchmarks {name}`.\n"
    (RESULTS / f"{name}.md").write_text("\n".join([head, *pages]), encoding="utf-8")
