"""The first use of methods with compiled kernels: CPU seconds before any kernel is in the cache."""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.fit import data
from benchmarks.harness import cpu, setting, write

ROWS = 2000
#: each first use is measured so often, in processes of their own
REPEATS = 3
#: CPU seconds that compiling may take for a method, and the whole command with all of them
LIMIT, LIMIT_OF_COMPARE = 3.0, 10.0
#: numba alone, and methods with compiled kernels, each as Python writes it
USES = {
    "numba with a kernel of one line": "",
    "VennAbers": "cal.VennAbers()",
    "SBB": "cal.SBB()",
    "ABB": "cal.ABB()",
    "ABB, bands": "cal.ABB(levels=(0.9,))",
    "ENIR": "cal.ENIR()",
    "ELiTE": "cal.ELiTE()",
    "ELiTE, falls priced": "cal.ELiTE(falls='priced')",
    "ELiTE, steps": "cal.ELiTE(degree=0, criterion='bic')",
    "ELiTE, parabolas": "cal.ELiTE(degree=2)",
}
COMPARE = "calibrant compare"


# --- in a process of its own --------------------------------------------------------------------


def use(make: str) -> Callable[[], Any]:
    """Fit a method and apply it; without a method, compile a kernel of one line."""
    if not make:
        return _one_line
    import calibrant as cal

    s, y = data(ROWS)
    return lambda: eval(make, {"cal": cal}).fit(s, y).calibrate(s[:10])


def _one_line() -> Any:
    from calibrant.solvers._jit import jit

    return jit(_plus_one)(1.0)


def _plus_one(x: float) -> float:
    return x + 1.0


def measure(make: str) -> dict[str, Any]:
    """CPU seconds of this process up to and with the first use, and what was compiled in it."""
    from numba.core import event

    kernels: dict[str, list[float]] = {}

    class Clock(event.Listener):  # type: ignore[misc]
        """Seconds of each kernel, without those of the kernels that it calls."""

        def __init__(self) -> None:
            self.open: list[tuple[float, float]] = []

        def on_start(self, event: Any) -> None:
            self.open.append((time.process_time(), 0.0))

        def on_end(self, event: Any) -> None:
            begin, inner = self.open.pop()
            taken = time.process_time() - begin
            if self.open:
                outer, others = self.open.pop()
                self.open.append((outer, others + taken))
            function = event.data["dispatcher"].py_func
            name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
            kernels.setdefault(name, []).append(taken - inner)

    with event.install_listener("numba:compile", Clock()):
        work = use(make)
        work()
    first = time.process_time()  # of the whole process: Python, NumPy, SciPy and numba included
    return {"first": first, "kernels": kernels, "warm": cpu(work) if make else 0.0}


# --- the run ------------------------------------------------------------------------------------


def _child(make: str, cache: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.cold_start", make]
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{make}:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _compare(file: Path, cache: str) -> dict[str, Any]:
    """CPU seconds of a command and its threads."""
    command = [sys.executable, "-m", "calibrant.cli", "compare", str(file), "-s", "p", "-l", "y"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"first": taken, "kernels": {}, "warm": 0.0}


def line(name: str, limit: float, of_cache: Callable[[str], dict[str, Any]]) -> dict[str, object]:
    """A first use with an empty cache, and then one more process with what it left there."""
    cold, kept = [], []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory(prefix="calibrant-benchmark-") as cache:
            cold.append(of_cache(cache))
            kept.append(of_cache(cache))
    kernels = cold[0]["kernels"]
    more = [one["first"] - other["first"] for one, other in zip(cold, kept, strict=True)]
    slowest = sorted(((median(k["kernels"][n][0] for k in cold), n) for n in kernels), reverse=True)
    return {
        "what": name,
        "first use, CPU s": f"{median(one['first'] for one in cold):.2f}",
        "compiling, CPU s": f"{median(more):.2f}",
        "at most": f"{limit:g}" if limit else "",
        "later processes, CPU s": f"{median(one['first'] for one in kept):.2f}",
        "warm fit, ms": f"{1e3 * median(o['warm'] for o in cold):.1f}" if cold[0]["warm"] else "",
        "compiled": f"{sum(map(len, kernels.values()))}" if kernels else "",
        "compiled more than once": ", ".join(name for name in kernels if len(kernels[name]) > 1),
        "slowest to compile, CPU s": ", ".join(f"{name} {t:.2f}" for t, name in slowest[:4]),
    }


def run(sizes: list[int]) -> None:
    """Measure and write ``results/cold_start.md`` and ``results/cold_start.csv``."""
    loads, rows = [os.getloadavg()[0]], []
    for name, make in USES.items():
        limit = LIMIT if make else 0.0
        rows.append(line(name, limit, lambda cache, make=make: _child(make, cache)))
        print(rows[-1], flush=True)
    with tempfile.TemporaryDirectory(prefix="calibrant-benchmark-") as folder:
        file = Path(folder) / "scores.csv"
        with file.open("w", newline="") as stream:
            csv.writer(stream).writerows([("p", "y"), *zip(*data(ROWS), strict=True)])
        rows.append(line(COMPARE, LIMIT_OF_COMPARE, lambda cache: _compare(file, cache)))
        print(rows[-1], flush=True)
    loads.append(os.getloadavg()[0])
    heading = f"""# First use

The kernels of some methods are compiled when they are first called, and kept on disk. Here are CPU
seconds (user and system, all threads) of whole processes that start, fit a method to {ROWS:,} rows
and end: the first one with an empty cache, a later one with what the first has left there (median
of {REPEATS}). The difference is the price of compiling. The first line has nothing to compile but
x + 1: it is the price of Python, NumPy, SciPy, scikit-learn and numba. The warm fit is one more fit
in the same process. "at most" is meant for compiling (for the command: for all of the first use).
"compiled" counts kernels and their parts. {COMPARE} is the command with its
default methods, on a CSV file.

{setting(["calibrant", "numpy", "scipy", "numba", "llvmlite"])}.
One-minute load average before and after: {", ".join(f"{load:.1f}" for load in loads)}. Other work
on the cores makes CPU seconds longer, too. Made by `python -m benchmarks cold_start`."""
    write("cold_start", rows, heading)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
