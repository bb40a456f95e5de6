"""Similarity binning: n calibration rows × n rows to predict at 20 attributes, time and memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import setting, write
from calibrant import SimilarityBinning

SIZES = (10**4, 10**5)

Frame = dict[str, Any]


def numbers(rng: np.random.Generator, n: int, columns: int = 20) -> Frame:
    return {f"x{j}": rng.normal(size=n) for j in range(columns)}


def words(rng: np.random.Generator, n: int, levels: list[int]) -> Frame:
    return {
        f"c{j}": np.array([f"v{i}" for i in range(m)], dtype=object)[rng.integers(0, m, n)]
        for j, m in enumerate(levels)
    }


def with_gaps(rng: np.random.Generator, frame: Frame, share: float = 0.05) -> Frame:
    for name, column in frame.items():
        gone = rng.random(len(column)) < share
        column[gone] = None if column.dtype == object else np.nan
        frame[name] = column
    return frame


MIXED = [2, 2, 2, 3, 3, 4, 5, 6, 8, 12]


def mixed(rng: np.random.Generator, n: int) -> Frame:
    return {**numbers(rng, n, 10), **words(rng, n, MIXED)}


#: attributes and options, by name
CASES: dict[str, tuple[Callable[[np.random.Generator, int], Frame], dict[str, Any]]] = {
    "5 numbers": (lambda rng, n: numbers(rng, n, 5), {}),
    "20 numbers": (numbers, {}),
    "20 numbers, 5 % missing": (lambda rng, n: with_gaps(rng, numbers(rng, n)), {}),
    "10 numbers, 10 categories": (mixed, {}),
    "10 numbers, 10 categories, 5 % missing": (lambda rng, n: with_gaps(rng, mixed(rng, n)), {}),
    "20 categories, ties": (lambda rng, n: words(rng, n, MIXED * 2), {"use_scores": False}),
    "20 numbers, manhattan": (numbers, {"metric": "manhattan"}),
    "20 numbers, k='auto'": (numbers, {"k": "auto"}),
    "18 numbers, 2 of 1,000 categories": (
        lambda rng, n: {**numbers(rng, n, 18), **words(rng, n, [1000, 1000])},
        {},
    ),
}


def rows(name: str, n: int, seed: int) -> tuple[Any, Any, Any]:
    """Scores, labels and attributes of n rows."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(CASES[name][0](rng, n))
    p = rng.beta(2, 3, n)
    return p, (rng.random(n) < p).astype(int), frame


def highest() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1])  # type: ignore[index]


def yardstick(n: int) -> float:
    """CPU seconds of scikit-learn's 10 nearest neighbours on 20 numbers, by brute force."""
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(1)
    X, y, new = rng.normal(size=(n, 21)), rng.integers(0, 2, n), rng.normal(size=(n, 21))
    start = time.process_time()
    KNeighborsClassifier(10, algorithm="brute").fit(X, y).predict_proba(new)
    return time.process_time() - start


def child(name: str, n: int) -> dict[str, float]:
    """Fit and predict once, in this process."""
    c = SimilarityBinning(**CASES[name][1])
    p, y, frame = rows(name, 1000, 0)
    c.fit(p, y, features=frame).predict_proba(p, features=frame)
    (p, y, frame), (new, _, asked) = rows(name, n, 1), rows(name, n, 2)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before, times = highest(), []
    for work in (
        lambda: c.fit(p, y, features=frame),
        lambda: c.predict_proba(new, features=asked),
    ):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        times += [time.perf_counter() - wall, time.process_time() - cpu]
    fit, fit_cpu, predict, predict_cpu = times
    return {
        "fit": fit,
        "fit_cpu": fit_cpu,
        "predict": predict,
        "predict_cpu": predict_cpu,
        "peak": (highest() - before) / 1024,
    }


def measure(name: str, n: int, sklearn: float) -> dict[str, object]:
    """One line of the table, from a fresh process."""
    code = (
        "import json; from benchmarks.similarity import child; print(json.dumps(child({!r}, {})))"
    )
    command = [sys.executable, "-c", code.format(name, n)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return {
        "n": f"{n:.0e}",
        "attributes": name,
        "fit, s": round(found["fit"], 2),
        "predict, s": round(found["predict"], 1),
        "predict, CPU s": round(found["predict_cpu"], 1),
        "/ scikit-learn": round(found["predict_cpu"] / sklearn, 2),
        "peak, MiB": round(found["peak"]),
    }


def run(sizes: list[int]) -> None:
    """Measure and write ``results/similarity.md`` and ``results/similarity.csv``."""
    loads, lines = [os.getloadavg()[0]], []
    for n in (size for size in SIZES if size <= max(sizes)):
        sklearn = yardstick(n)
        for name in CASES:
            lines.append(measure(name, n, sklearn))
            print(lines[-1], flush=True)
        loads.append(os.getloadavg()[0])
    report(lines, loads)


def report(lines: list[dict[str, object]], loads: list[float]) -> None:
    """Write the lines under their heading."""
    heading = f"""# Similarity binning

n calibration rows and n rows to predict, as pandas frames; k = 10. Wall and CPU seconds (all
threads counted) of one call after a small one, in a fresh process; peak memory is what fit and
predict add at most to the resident memory of that process with both frames in it. The yardstick is
the CPU time of scikit-learn's `KNeighborsClassifier(10, algorithm="brute")` on 21 numbers.

{setting(["calibrant", "numpy", "scikit-learn", "pandas"])}. One-minute load average before and
after each n: {", ".join(f"{load:.1f}" for load in loads)}. Made by
`python -m benchmarks similarity`."""
    write("similarity", lines, heading)
