"""`evaluate` with 1,000 replicates beside scikit-learn's measures and a bootstrap of rows."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as peers
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from benchmarks.fit import data
from benchmarks.harness import cpu, peak, setting, write

Array = NDArray[Any]

SIZES = (10**4, 10**5, 10**6)
REPLICATES = 1000
#: row bootstraps are far too slow to run in full: so many replicates are timed
TIMED = 3


def by_hand(y: Array, p: Array) -> tuple[float, ...]:
    """Seven measures as people write them: scikit-learn's, and ECE and CORP by hand."""
    place = np.minimum((p * 10).astype(int), 9)
    gaps = np.abs(np.bincount(place, p - y, minlength=10))
    fit = IsotonicRegression().fit(p, y).predict(p)
    square = peers.brier_score_loss(y, p)
    return (
        peers.log_loss(y, p),
        square,
        peers.roc_auc_score(y, p),
        peers.accuracy_score(y, p >= 0.5),
        gaps.sum() / len(y),
        square - np.mean((fit - y) ** 2),
        np.var(y) - np.mean((fit - y) ** 2),
    )


def drawn_rows(y: Array, p: Array, replicates: int) -> list[tuple[float, ...]]:
    """The bootstrap that people write: rows drawn again, all measures again."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(replicates):
        rows = rng.integers(len(y), size=len(y))
        found.append(by_hand(y[rows], p[rows]))
    return found


def lines(n: int) -> list[dict[str, object]]:
    """All measurements of one N."""
    p, y = data(n)
    raw = p**0.7
    table = cal.ScoreTable.from_arrays(p, y)
    sort = cpu(functools.partial(np.sort, p))
    works = {
        "evaluate, no intervals (11 measures)": (lambda: cal.evaluate(y, p, level=None), 1.0),
        "evaluate, 1,000 replicates": (lambda: cal.evaluate(y, p), 1.0),
        "evaluate of a table, 1,000 replicates": (lambda: cal.evaluate(table), 1.0),
        "evaluate with raw, 1,000 replicates": (lambda: cal.evaluate(y, p, raw=raw), 1.0),
        "scikit-learn and by hand, no intervals (7 measures)": (lambda: by_hand(y, p), 1.0),
        f"the same with 1,000 draws of rows ({TIMED} timed, scaled)": (
            lambda: drawn_rows(y, p, TIMED),
            REPLICATES / TIMED,
        ),
    }
    found: list[dict[str, object]] = []
    for what, (work, scale) in works.items():
        seconds = cpu(work) * scale
        line = {
            "N": f"{n:,}",
            "what": what,
            "CPU seconds": f"{seconds:.3g}",
            "× np.sort": f"{seconds / sort:.3g}",
            "peak memory / array of scores": f"{peak(work) / p.nbytes:.1f}",
        }
        print(line, flush=True)
        found.append(line)
    return found


def run(sizes: list[int]) -> None:
    """Measure and write ``results/evaluate.md`` and ``results/evaluate.csv``."""
    loads, rows = [os.getloadavg()[0]], []
    for n in (size for size in SIZES if size <= max(sizes)):
        rows += lines(n)
        loads.append(os.getloadavg()[0])
    heading = f"""# Measures with intervals

`evaluate` on distinct scores: CPU time, median of at least three calls, beside what people write
with scikit-learn. Our time begins at NumPy arrays and includes the sort. The bootstrap of rows is
timed with {TIMED} replicates and scaled to 1,000: its figures are estimates. Memory is what a call
allocates at most beyond its input.

{setting(["calibrant", "numpy", "scipy", "scikit-learn"])}. One-minute load average before and after
each N: {", ".join(f"{load:.1f}" for load in loads)}. Made by `python -m benchmarks evaluate`."""
    write("evaluate", rows, heading)


if __name__ == "__main__":
    run(list(SIZES))
