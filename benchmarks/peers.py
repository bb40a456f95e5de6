"""The arena's methods for one score: time and memory of fit and predict, first use and import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arena.matches import quiet
from benchmarks.arena.methods import METHODS, NOTHING, Rows, methods
from benchmarks.arena.pages import PACKAGES
from benchmarks.fit import data
from benchmarks.harness import add, cpu, setting, write_page

#: a method that took so many seconds is not asked for ten times as many rows; none runs longer
PATIENCE, LONGEST = 6.0, 300
#: rows to predict, at most
QUERIES = 1_000_000
REPEATS = 3
_SAY = """import time
with open("/proc/self/status") as lines:
    held = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
print(time.process_time(), int(held) / 1024)"""


# --- in a process of its own --------------------------------------------------------------------


def _megabytes() -> float:
    """The most memory that this process has had so far.

    Linux's own count: that of ``getrusage`` begins with what the parent process held.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(name: str, n: int) -> dict[str, float]:
    """First use, then fit and predict with everything loaded, and what fitting added to memory."""
    with quiet():
        few, labels = data(1000)
        start, before = time.process_time(), _megabytes()
        one = METHODS[name]
        rows = Rows(np.column_stack([1 - few, few]))
        one.learn(rows, labels)(rows)
        first, loaded = time.process_time() - start, _megabytes()
        s, y = data(n)
        rows = Rows(np.column_stack([1 - s, s]))
        new = Rows(rows.p[:QUERIES])
        held = _megabytes()
        one.learn(rows, y)(new)
        added = _megabytes() - held
        fit = cpu(lambda: one.learn(rows, y))
        predict_with = one.learn(rows, y)
        predict = cpu(lambda: predict_with(new))
    return {
        "first": first,
        "loaded": loaded - before,
        "fit": fit,
        "predict": predict,
        "added": added / (s.nbytes / 2**20),
    }


# --- the run ------------------------------------------------------------------------------------


def _child(name: str, n: int) -> dict[str, float] | str:
    """What a fresh process measures, or why it did not."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.peers", name, str(n)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return f"more than {LONGEST} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["killed"])[-1][:80]
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def line(name: str, n: int, found: dict[str, float] | str, sort: float) -> dict[str, object]:
    """A row of the table."""
    shown: dict[str, Any] = {"N": f"{n:.0e}", "method": name}
    if isinstance(found, str):
        empty = dict.fromkeys(
            ("fit ms", "fit / np.sort", "predict ms", "peak / scores", "first use, CPU s",
             "first use, MB"), "",
        )  # fmt: skip
        return {**shown, **empty, "failed": found}
    return {
        **shown,
        "fit ms": round(1e3 * found["fit"], 2),
        "fit / np.sort": round(found["fit"] / sort, 1),
        "predict ms": round(1e3 * found["predict"], 2),
        "peak / scores": round(found["added"], 1) if n >= 10**5 else "",
        "first use, CPU s": round(found["first"], 2),
        "first use, MB": round(found["loaded"]),
        "failed": "",
    }


def imports() -> list[dict[str, object]]:
    """CPU seconds and memory of a process that imports a package and ends, beside Python alone."""
    rows: list[dict[str, object]] = []
    for name in ("", *dict.fromkeys(one.module for one in METHODS.values() if one.installed)):
        code = (f"import {name}\n" if name else "") + _SAY
        found = []
        for _ in range(REPEATS):
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            )
            found.append([float(word) for word in done.stdout.split()[-2:]])
        seconds, megabytes = np.median(found, axis=0)
        shown = {"import CPU s": f"{seconds:.2f}", "MB": f"{megabytes:.0f}"}
        add(rows, {"package": name or "Python alone", **shown})
    return rows


def run(sizes: list[int]) -> None:
    """Measure and write ``results/peers.md`` and its CSV files, anew after each size."""
    rows: list[dict[str, object]] = []
    slow: set[str] = set()
    names = [
        one.name
        for one in methods("binary", features=False)
        if one.installed and one.name != NOTHING
    ]
    imported = imports()
    for n in sizes:
        s, _ = data(n)
        sort = cpu(lambda s=s: np.sort(s, kind="stable"))
        for name in names:
            if name in slow:
                continue
            found = _child(name, n)
            add(rows, line(name, n, found, sort))
            if isinstance(found, str) or max(found["fit"], found["predict"]) > PATIENCE:
                slow.add(name)
        write(rows, imported)


def write(rows: list[dict[str, object]], imported: list[dict[str, object]]) -> None:
    """The page of what was measured so far."""
    write_page(
        "peers",
        "The arena's methods: time and memory",
        {"peers_fit": rows, "peers_import": imported},
        HEADINGS,
        f"{setting(PACKAGES)}.",
    )


HEADINGS = {
    "peers_fit": f"""## Fit and predict

Each method and N in a process of its own, one thread. "first use" is what the process spends (CPU
seconds) and holds (MB) from importing the package to the first prediction of 1,000 rows; NumPy,
pandas, scikit-learn and calibrant's door are loaded before. fit and predict are CPU times after
that, the median of repeated calls; predict is of at most {QUERIES:,} rows. venn-abers fits when it
predicts. "peak / scores" is by how much a fit and a prediction raised the most memory that the
process ever held, in copies of the array of scores, from 1e5 rows on. A method that took more than
{PATIENCE:g} s is not asked for ten times as many rows.""",
    "peers_import": """## Import

A process that imports the package and ends; median of three.""",
}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
