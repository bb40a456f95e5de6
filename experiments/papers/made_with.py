"""What a run was made with: versions, the commit, and the kernels of linear algebra.

The same cell gives the same figures where all of these are the same. Kernels matter, too: OpenBLAS
takes those of the processor, they round differently, and a model that hardly converges, or scores
that tie but for the last digit, pass that on.
"""

from __future__ import annotations

import csv
import hashlib
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from threadpoolctl import threadpool_info

import calibrant as cal
from experiments.papers.cells import RUN

__all__ = [
    "KERNELS",
    "RUNS",
    "Stale",
    "kernels",
    "known_runs",
    "made_with",
    "record",
    "stale",
    "take_kernels",
]

#: the file that says what each run was made with, and the one of what is to be computed again
RUNS, STALE = "runs.csv", "stale.csv"
#: how the latter calls the cells that were computed before runs were recorded
UNRECORDED = "unrecorded"
#: of the runs before this was recorded: with these, and no others, their figures come out again
KERNELS = "SkylakeX"
#: the flag of processors that can run these kernels
FLAG = "avx512vl"
#: what OpenBLAS reads when it is loaded
VARIABLE = "OPENBLAS_CORETYPE"
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "numba")
ROOT = Path(__file__).resolve().parent.parent.parent


def _git(*words: str) -> str:
    """What git says about this checkout; nothing where there is no git or no repository."""
    try:
        found = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def _commit() -> str:
    """The commit that cells are computed from, with a + if what computes them was changed since."""
    changed = _git("status", "--porcelain", "--", "src", "experiments/*.py", "benchmarks/*.py")
    return _git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def kernels() -> str:
    """The kernels that linear algebra runs with here."""
    found = {str(one.get("architecture", "")) for one in threadpool_info()} - {"", "None"}
    return " ".join(sorted(found))


def made_with() -> dict[str, str]:
    """Commit, kernels, Python and versions of what figures hang on."""
    return {
        "commit": _commit(),
        "kernels": kernels(),
        "machine": platform.machine(),
        "Python": platform.python_version(),
        "calibrant": cal.__version__,
        **{name: version(name) for name in PACKAGES},
    }


def known_runs(folder: Path) -> dict[str, dict[str, str]]:
    """The recorded runs of a folder of results, by name."""
    path = folder / RUNS
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row[RUN]: row for row in csv.DictReader(file)}


class Stale(NamedTuple):
    """Figures of a table that today's code would not give: whose, of which runs, and why.

    Names of these figures begin with ``figures``; the others must come out again all the same.
    """

    figures: str
    runs: frozenset[str]
    why: str


def stale(folder: Path) -> dict[tuple[str, str], Stale]:
    """What is to be computed again in a folder of results, by paper and table."""
    path = folder / STALE
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (row["paper"], row["table"]): Stale(
                row["figures"],
                frozenset("" if run == UNRECORDED else run for run in row["runs"].split()),
                row["why"],
            )
            for row in csv.DictReader(file)
        }


def record(folder: Path) -> str:
    """The name of a run made here and now, which the folder's list of runs explains."""
    found = made_with()
    text = "\n".join(f"{name}={value}" for name, value in found.items())
    name = hashlib.sha256(text.encode()).hexdigest()[:8]
    runs = known_runs(folder)
    if name not in runs:
        runs[name] = {RUN: name, **found}
        columns = list(dict.fromkeys(column for row in runs.values() for column in row))
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / RUNS).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(runs.values())
    return name


def take_kernels() -> None:
    """Start this process anew with the kernels of the committed results, where it can run them."""
    try:
        able = FLAG in Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        able = False
    if able and os.environ.get(VARIABLE) != KERNELS and kernels() != KERNELS:
        os.environ[VARIABLE] = KERNELS
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
