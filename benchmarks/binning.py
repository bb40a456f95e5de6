"""SBB, ABB and BBQ: kernels and whole fits as multiples of np.sort, and the memory they take."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import calibrant as cal
from benchmarks.fit import data
from benchmarks.harness import cpu, setting, write
from calibrant.methods.binning._kernel import best_binning, chain_moments
from calibrant.methods.binning.bayesian import log_factorials, quadrature, unit_gaps

SIZES = (10**4, 10**5, 10**6)
LAMBDA = 10.0

#: times np.sort of the same N, at most
TARGETS = {
    ("SBB", "kernel"): {10**4: 35, 10**5: 35, 10**6: 35},
    ("ABB", "kernel"): {10**5: 40, 10**6: 100},
    ("BBQ", "fit"): {10**6: 25},
}

#: whole fits, by method and options
FITS: dict[tuple[str, str], Any] = {
    ("SBB", "fit"): cal.SBB(),
    ("SBB", "fit, λ empirical"): cal.SBB(lambda_="empirical"),
    ("SBB", "fit, λ = 10"): cal.SBB(lambda_=10),
    ("ABB", "fit"): cal.ABB(),
    ("ABB", "fit, λ = 10"): cal.ABB(lambda_=10),
    ("ABB", "fit, λ = 10, band"): cal.ABB(lambda_=10, levels=(0.9,)),
    ("BBQ", "fit"): cal.BBQ(),
    ("BBQ", "fit, all models"): cal.BBQ(models="all"),
}

CHILD = """
import gc, re, sys
from pathlib import Path
import numpy as np
import calibrant as cal

def highest():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])

s, y = np.load(sys.argv[1]), np.load(sys.argv[2])
{make}.fit(s[:1000], y[:1000])
gc.collect()
Path("/proc/self/clear_refs").write_text("5")
before = highest()
{make}.fit(s, y)
print(highest() - before)
"""


class Work(NamedTuple):
    """Something to time: whose it is, its text for the child process if it is a whole fit."""

    method: str
    part: str
    by: str
    call: Callable[[], object]
    make: str | None = None


def kernels(table: cal.ScoreTable) -> Iterator[Work]:
    """The two kernels, from the table on."""
    gaps = unit_gaps(table.scores) * LAMBDA
    log_cut = np.log(-np.expm1(-gaps))
    n0, n1, total = table.negative, table.positive, table.total
    yield Work(
        "SBB",
        "kernel",
        "calibrant",
        lambda: best_binning(n0, n1, gaps, log_cut, log_factorials(total)),
    )
    yield Work(
        "ABB",
        "kernel",
        "calibrant",
        lambda: chain_moments(n0, n1, gaps, *quadrature(total, True, 1e-10)),
    )


def fits(s: Any, y: Any) -> Iterator[Work]:
    """The whole fits, ours and the peer's."""
    for (method, part), calibrator in FITS.items():
        call = functools.partial(calibrator.fit, s, y)
        yield Work(method, part, "calibrant", call, f"cal.{calibrator!r}")
    try:
        peer = importlib.import_module("probcal").BBQCalibrator
    except (ImportError, AttributeError):
        return
    yield Work("BBQ", "fit", "probcal", lambda: peer().fit(s, y))


def resident(make: str, s: Any, y: Any) -> int:
    """Bytes that a fit adds at most to the memory of a fresh process, numba's arrays included.

    Linux only: the high-water mark of /proc is set back just before the fit. (`ru_maxrss` would
    not do: a child inherits its parent's.)
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("s.npy", "y.npy")]
        np.save(paths[0], s)
        np.save(paths[1], y)
        done = subprocess.run(
            [sys.executable, "-c", CHILD.format(make=make), *paths],
            capture_output=True,
            check=True,
            text=True,
        )
    return 1024 * int(done.stdout)


def _row(n: int, work: Work, s: Any, y: Any) -> dict[str, object]:
    work.call()  # compiles, or reads what was compiled before
    before = cpu(lambda: np.sort(s), seconds=0.5)
    taken = cpu(work.call, seconds=2.0)
    sort = median((before, cpu(lambda: np.sort(s), seconds=0.5)))
    target = TARGETS.get((work.method, work.part), {}).get(n) if work.by == "calibrant" else None
    known = work.make is not None and sys.platform == "linux"
    memory = resident(str(work.make), s, y) / s.nbytes if known and n >= 10**5 else None
    return {
        "N": f"{n:.0e}",
        "method": work.method,
        "part": work.part,
        "by": work.by,
        "ms": round(taken * 1e3, 1),
        "/ np.sort": round(taken / sort, 1),
        "target": "" if target is None else f"≤ {target}",
        "met": "" if target is None else ("yes" if taken <= target * sort else "no"),
        "peak / scores": "" if memory is None else round(memory, 1),
    }


def run(sizes: list[int]) -> None:
    """Measure and write ``results/binning.md`` and ``results/binning.csv``."""
    loads = [os.getloadavg()[0]]
    rows = []
    for n in (size for size in SIZES if size <= max(sizes)):
        s, y = data(n)
        for part in (kernels(cal.ScoreTable.from_arrays(s, y)), fits(s, y)):
            for work in part:
                rows.append(_row(n, work, s, y))
                print(rows[-1], flush=True)
        loads.append(os.getloadavg()[0])
    packages = ["calibrant", "numpy", "scipy", "numba", "probcal"]
    heading = f"""# Bayesian binning

CPU time (all threads counted), median of at least three calls after a first one, as a multiple of
`np.sort` of the same scores, measured just before and after. Kernels begin at the score table:
SBB's best binning with its table of log factorials, ABB's chain with its quadrature nodes (tol
1e-10), both at λ = 10. Whole fits begin at NumPy arrays and end with a map; without a λ they are
the defaults. Peak memory is what a fit adds at most to the resident memory of a fresh process that
has fitted 1,000 rows before, in copies of the score array.

{setting(packages)}. One-minute load average before and after each N:
{", ".join(f"{load:.1f}" for load in loads)}. Made by `python -m benchmarks binning`."""
    write("binning", rows, heading)
