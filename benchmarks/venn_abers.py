"""Venn–Abers: whole fits as multiples of scikit-learn's isotonic fit, predicting, and memory."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from benchmarks.binning import resident
from benchmarks.fit import data
from benchmarks.harness import cpu, setting, write

SIZES = (10**3, 10**4, 10**5, 10**6)
QUERIES = 10**6
#: times scikit-learn's isotonic fit of the same N, at most
TARGET = 5.0


class Work(NamedTuple):
    """Who fits and predicts how; its text for the child process that measures memory."""

    method: str
    by: str
    fit: Callable[[Any, Any], Any]
    predict: Callable[[Any, Any], Any]
    make: str | None = None


def works() -> Iterator[Work]:
    """Ours, and the peer's where it is installed."""
    for method, calibrator in {
        "inductive": cal.VennAbers(),
        "cross, 5 folds": cal.VennAbers(cv=5),
        "Isotonic, for comparison": cal.Isotonic(),
    }.items():
        predict = functools.partial(_call, "calibrate")
        yield Work(method, "calibrant", calibrator.fit, predict, f"cal.{calibrator!r}")
    try:
        peer = importlib.import_module("venn_abers").VennAbers
    except (ImportError, AttributeError):
        return
    yield Work(
        "inductive",
        "venn-abers",
        lambda s, y: peer().fit(np.column_stack((1 - s, s)), y),
        lambda model, s: model.predict_proba(np.column_stack((1 - s, s))),
    )


def _call(name: str, model: Any, scores: Any) -> Any:
    return getattr(model, name)(scores)


def _row(work: Work, s: Any, y: Any, queries: Any) -> dict[str, object]:
    def yardstick() -> object:
        return IsotonicRegression(out_of_bounds="clip").fit(s, y)

    model = work.fit(s, y)  # compiles, or reads what was compiled before
    before = cpu(yardstick)
    taken = cpu(lambda: work.fit(s, y), seconds=2.0)
    isotonic = median((before, cpu(yardstick)))
    predict = cpu(lambda: work.predict(model, queries), seconds=2.0)
    ours = getattr(model, "map_", None)
    steps = getattr(getattr(ours, "point", ours), "x", None)
    search = None if steps is None else cpu(lambda: np.searchsorted(steps, queries))
    judged = work.by == "calibrant" and isinstance(model, cal.VennAbers)
    known = work.make is not None and sys.platform == "linux" and len(s) >= 10**5
    return {
        "N": f"{len(s):.0e}",
        "method": work.method,
        "by": work.by,
        "fit ms": round(taken * 1e3, 2),
        "fit / sklearn isotonic": round(taken / isotonic, 2),
        "target": f"≤ {TARGET:g}" if judged else "",
        "met": ("yes" if taken <= TARGET * isotonic else "no") if judged else "",
        "steps": "" if steps is None else len(steps),
        "predict 1e6 ms": round(predict * 1e3, 1),
        "predict / np.searchsorted": "" if search is None else round(predict / search, 2),
        "peak / scores": round(resident(str(work.make), s, y) / s.nbytes, 1) if known else "",
    }


def run(sizes: list[int]) -> None:
    """Measure and write ``results/venn_abers.md`` and ``results/venn_abers.csv``."""
    loads = [os.getloadavg()[0]]
    rows = []
    queries = data(QUERIES + 1)[0][:QUERIES]
    for n in (size for size in SIZES if size <= max(sizes)):
        s, y = data(n)
        for work in works():
            rows.append(_row(work, s, y, queries))
            print(rows[-1], flush=True)
        loads.append(os.getloadavg()[0])
    packages = ["calibrant", "numpy", "scikit-learn", "numba", "venn-abers"]
    heading = f"""# Venn–Abers

CPU time (all threads counted), median of at least three calls after a first one. Whole fits begin
at NumPy arrays and end with a map of p₀, p₁ and the merged probability; the yardstick is
`IsotonicRegression.fit` of scikit-learn on the same rows, measured just before and after. `steps`
is the number of steps of the merged map. One million scores are predicted, as a multiple of
`np.searchsorted` of them in those steps. Peak memory is what a fit adds at most to the resident
memory of a fresh process that has fitted 1,000 rows before, in copies of the score array.

{setting(packages)}. One-minute load average before and after each N:
{", ".join(f"{load:.1f}" for load in loads)}. Made by `python -m benchmarks venn_abers`."""
    write("venn_abers", rows, heading)
