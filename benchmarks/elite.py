"""ELiTE: fits with 50 λ as multiples of np.sort, their duality gaps, and memory."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import numpy as np

import calibrant as cal
from benchmarks.fit import data
from benchmarks.harness import setting, write
from benchmarks.near_isotonic import Rows, measure

SIZES = (10**4, 10**5, 10**6, 10**7)

#: times np.sort of the same N that a fit from the table on may take, by default on the usual data
TARGET = 25.0

#: options measured on the usual data
OPTIONS = {
    "kernel": "cal.ELiTE()",
    "kernel, logit": "cal.ELiTE(scale='logit')",
    "kernel, strict": "cal.ELiTE(falls='forbidden')",
    "kernel, near, one μ": "cal.ELiTE(falls='priced', mu=100.0)",
    "kernel, near (four μ)": "cal.ELiTE(falls='priced')",
    "kernel, steps": "cal.ELiTE(degree=0, criterion='bic')",
    "kernel, parabolas": "cal.ELiTE(degree=2)",
}


def others(n: int) -> Iterator[Rows]:
    """Data with more bends, none, or scores where a linear scale is too coarse."""
    rng = np.random.default_rng(n + 2)
    s = rng.random(n)
    wave = 0.5 + 0.3 * np.sin(40 * s)
    yield Rows("waves", s, (rng.random(n) < wave).astype(int))
    yield Rows("noise", s, (rng.random(n) < 0.5).astype(int))
    tails = 1 / (1 + np.exp(-rng.normal(0, 6, n)))
    yield Rows("scores near 0 and 1", tails, (rng.random(n) < tails**2).astype(int))
    yield Rows("one positive in 1e4", s, (rng.random(n) < 1e-4).astype(int))
    yield Rows("exponential weights", s, (rng.random(n) < s).astype(int), rng.exponential(size=n))


def kernel(rows: Rows, part: str, make: str, target: float | None) -> dict[str, object]:
    """From the score table to the map."""
    table = cal.ScoreTable.from_arrays(*rows[1:], classes=[0, 1])
    c = eval(make, {"cal": cal})
    line = measure(rows, part, "calibrant", functools.partial(c.fit_table, table), target)
    return _named(line, int(c.df_.max()), f"{c.gap_:.1g}")


def _named(line: dict[str, object], df: object, gap: object) -> dict[str, object]:
    """The line with our columns in place of ENIR's two."""
    names = {"models": "largest df", "scored": "largest gap"}
    line = {names.get(name, name): value for name, value in line.items()}
    return {**line, "largest df": df, "largest gap": gap}


def lines(n: int) -> Iterator[dict[str, object]]:
    """All measurements of one N."""
    usual = Rows("usual", *data(n))
    for part, make in OPTIONS.items():
        target = TARGET if part == "kernel" and n >= 10**5 else None
        if n <= 10**6 or part == "kernel":
            yield kernel(usual, part, make, target)
    fit = functools.partial(cal.ELiTE().fit, usual.scores, usual.labels)
    yield _named(measure(usual, "fit", "calibrant", fit, None, "cal.ELiTE()"), "", "")
    if 10**5 <= n <= 10**6:
        for rows in others(n):
            yield kernel(rows, "kernel", "cal.ELiTE()", None)


def run(sizes: list[int]) -> None:
    """Measure and write ``results/elite.md`` and ``results/elite.csv``."""
    loads, rows = [os.getloadavg()[0]], []
    for n in (size for size in SIZES if size <= max(sizes)):
        for line in lines(n):
            rows.append(line)
            print(line, flush=True)
        loads.append(os.getloadavg()[0])
    heading = f"""# ELiTE

Fits with 50 λ each: CPU time (all threads counted), median of at least three calls after a first
one, as a multiple of `np.sort` of the same scores, measured just before and after. The kernel
begins at the score table and ends with the map; the whole fit begins at NumPy arrays. Beside it are
the most degrees of freedom of any of the models, and the largest relative duality gap: how far a
model may be from its optimum. The target is for the usual data; the others ask for many more bends.
Peak memory is what a fit adds at most to the resident memory of a fresh process that has fitted
1,000 rows before, in copies of the score array. No peer has this method.

{setting(["calibrant", "numpy", "scipy", "numba"])}. One-minute load average before and after each
N: {", ".join(f"{load:.1f}" for load in loads)}. Made by `python -m benchmarks elite`."""
    write("elite", rows, heading)
