"""Table 2, and Table 7 of Naeini and Cooper (2018): how time grows with the number of rows.

CPU seconds of a fit on rows (arrays of scores and labels), of a fit on the table of distinct
scores (no sort), and of one query. Times are the only figures here that differ from run to run.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import calibrant as cal
from experiments.papers.cells import Cell
from experiments.papers.naeini2015.methods import Array, Labels

TEXT = "ABB, as the text says"
SIZES = (1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
#: the slope is over this factor of N, up to the largest: at small N the cost of a call counts
DECADE = 10.0
SEEDS = 3


class Method(NamedTuple):
    """A calibrator, what we hold its orders to be, and the most rows of a quick and a full run.

    D is the number of distinct scores, b of bins or pieces of the map, T of iterations.
    """

    make: Callable[[], Any]
    fit: str
    query: str
    quick: int = 100_000
    most: int = SIZES[-1]


METHODS: dict[str, Method] = {
    "Platt": Method(lambda: cal.Platt(scale="raw"), "O(N log N), then O(DT)", "O(1)"),
    "Hist": Method(lambda: cal.Histogram(bins=10), "O(N log N)", "O(log b)"),
    "IsoReg": Method(cal.Isotonic, "O(N log N), then O(D)", "O(log b)"),
    "ACP": Method(cal.ACP, "O(N log N)", "O(log D)"),
    "SBB": Method(
        lambda: cal.SBB(lambda_="empirical"), "O(N log N), then about O(D log D)", "O(log b)"
    ),
    "ABB": Method(cal.ABB, "O(N log N), then O(D√N)", "O(log b)"),
    TEXT: Method(lambda: cal.ABB(variant="text"), "O(D²)", "O(log b)", quick=3_162, most=10_000),
    "BBQ": Method(cal.BBQ, "O(N log N), then O(D + N^⅔ log D)", "O(log b)"),
    "ENIR": Method(cal.ENIR, "O(N log N)", "O(log b)"),
    "ELiTE": Method(cal.ELiTE, "O(N log N), then about O(D) for each λ", "O(log b)"),
}
#: fits that begin at rows only
ROWS_ONLY = frozenset({"ACP"})


def data(n: int, seed: int) -> tuple[Array, Labels]:
    """n different scores, and labels whose probability bends away from the score."""
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    return s, (rng.random(n) < 0.05 + 0.9 * s**2).astype(np.intp)


def cpu(work: Callable[[], object], least: float = 0.15, calls: int = 1) -> float:
    """Least CPU seconds of a call, of three measurements or of as many as take ``least``."""
    taken: list[float] = []
    gc.collect()
    gc.disable()
    try:
        while len(taken) < 3 or (sum(taken) < least and len(taken) < 25):
            start = time.process_time()
            for _ in range(calls):
                work()
            taken.append(time.process_time() - start)
            if taken[0] > 1.0:
                break
    finally:
        gc.enable()
    return min(taken) / calls


def one_query(name: str, fitted: Any) -> dict[str, float]:
    """CPU seconds of one score through ``calibrate``, and through the map that it calls."""
    score, ends = np.array([0.4]), {"lower": np.array([0.35]), "upper": np.array([0.45])}
    if name in ROWS_ONLY:
        return {"query": cpu(lambda: fitted.calibrate(score, **ends), calls=100)}
    made = fitted.map_
    return {
        "query": cpu(lambda: fitted.calibrate(score), calls=100),
        "map": cpu(lambda: made(score), calls=100),
        "pieces": len(getattr(made, "x", ())),
    }


def run(method: str, n: int, seed: int) -> dict[str, float]:
    """CPU seconds of fits to n rows and of a query after it."""
    made = METHODS[method]
    made.make().fit(*data(500, 0))  # what a first call compiles or loads
    s, y = data(n, seed)
    found = {"rows": cpu(lambda: made.make().fit(s, y))}
    if method not in ROWS_ONLY:
        scores = cal.ScoreTable.from_arrays(s, y)
        found["table"] = cpu(lambda: made.make().fit_table(scores))
    return {**found, **one_query(method, made.make().fit(s, y))}


def cells(quick: bool) -> list[Cell]:
    return [
        {"method": name, "n": n, "seed": seed}
        for seed in range(1 if quick else SEEDS)
        for n in SIZES
        for name, method in METHODS.items()
        if n <= (method.quick if quick else method.most)
    ]


def times(results: pd.DataFrame, method: str, column: str) -> pd.Series:
    """CPU seconds by the number of rows, median over repetitions."""
    if column not in results:
        return pd.Series(dtype=float)
    part = results[results["method"] == method].dropna(subset=[column])
    return part.groupby("n")[column].median()


def slope(results: pd.DataFrame, method: str, column: str) -> float:
    """d log(time) / d log(N), by least squares over the largest decade of N; NaN for one size."""
    found = times(results, method, column)
    found = found[found.index >= 0.999 * found.index.max() / DECADE] if len(found) else found
    if len(found) < 2:
        return math.nan
    return float(np.polyfit(np.log(found.index.to_numpy(float)), np.log(found.to_numpy()), 1)[0])
