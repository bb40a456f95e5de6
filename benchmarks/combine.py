"""Combiners: time per row by code and by how sharp and contradictory the rows are, and memory."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import nnls
from scipy.special import expit

from benchmarks.harness import cpu, peak, setting, write
from calibrant.multiclass import (
    Code,
    all_pairs,
    coupling,
    ecoc,
    least_squares,
    normalize,
    one_vs_rest,
    pairwise,
)

CLASSES = 10
SIZES = (10**4, 10**5, 10**6)
#: concentration of the true distributions, and the noise on the logit of each column
ROWS = {"soft": (1.0, 0.5), "usual": (0.3, 0.5), "sharp": (0.05, 0.5), "noise only": (100.0, 3.0)}
CODES = {
    "all pairs": all_pairs(CLASSES),
    "one against all": one_vs_rest(CLASSES),
    "dense": ecoc(CLASSES, design="dense"),
    "sparse": ecoc(CLASSES, design="sparse"),
}
TAKEN = {
    "all pairs": (pairwise, least_squares, coupling),
    "one against all": (normalize, least_squares, coupling),
    "dense": (least_squares, coupling),
    "sparse": (least_squares, coupling),
}

Work = Callable[[], object]


def data(n: int, code: Code, kind: str) -> np.ndarray:
    """Columns of noisy models: true shares, their logits blurred, kept off 0 and 1 by 1e-6."""
    rng = np.random.default_rng(n)
    concentration, noise = ROWS[kind]
    p = rng.dirichlet(np.full(code.n_classes, concentration), n)
    up, down = p @ (code.matrix > 0), p @ (code.matrix < 0)
    z = np.log(up + 1e-6) - np.log(down + 1e-6)
    z += rng.normal(0.0, noise, z.shape)
    return expit(z)


def plain(r: np.ndarray, code: Code) -> tuple[np.ndarray, int]:
    """Multiplicative steps on all rows at once until none moves by 1e-10, at most 5,000."""
    plus, minus = (code.matrix > 0).astype(float), (code.matrix < 0).astype(float)
    p = np.full((len(r), code.n_classes), 1 / code.n_classes)
    steps, moved = 0, np.inf
    while moved > 1e-10 and steps < 5000:
        up, down = p @ plus, p @ minus
        new = p * ((r / up) @ plus.T + ((1 - r) / down) @ minus.T)
        new /= (1 / (up + down)) @ (plus + minus).T
        new /= new.sum(axis=1, keepdims=True)
        moved, p, steps = np.abs(new - p).max(), new, steps + 1
    return p, steps


def row_by_row(r: np.ndarray, code: Code) -> np.ndarray:
    """scipy's non-negative least squares, one row after another."""
    right = np.r_[np.zeros(len(code)), 1.0]
    plus, minus = (code.matrix > 0).T, (code.matrix < 0).T
    found = []
    for row in r:
        y, _ = nnls(
            np.vstack((plus * (1 - row)[:, None] - minus * row[:, None], np.ones(code.n_classes))),
            right,
        )
        found.append(y / y.sum())
    return np.array(found)


def line(n: int, names: tuple[str, str, str, str], work: Work, memory: str) -> dict[str, object]:
    """One line of the table."""
    taken = cpu(work, seconds=0.5)
    rows, code, method, by = names
    return {
        "N": f"{n:.0e}",
        "code": f"{code}, {len(CODES[code])} columns",
        "rows": rows,
        "combiner": method,
        "by": by,
        "seconds": round(taken, 3),
        "µs per row": round(taken / n * 1e6, 2),
        "peak / r": memory,
    }


def lines(n: int) -> Iterator[dict[str, object]]:
    """All measurements of one N."""
    for name, code in CODES.items():
        for kind in ROWS if n == 10**4 else ("usual",):
            r = data(n, code, kind)
            for combine in TAKEN[name]:
                work = functools.partial(combine, r, code)
                memory = f"{peak(work) / r.nbytes:.2f}" if n == 10**5 else ""
                yield line(n, (kind, name, combine.__name__, "calibrant"), work, memory)
            if n == 10**4:
                _, steps = plain(r[:200], code)
                by = f"plain steps ({'more than ' if steps == 5000 else ''}{steps})"
                few = r[:200]
                work = functools.partial(plain, few, code)
                yield line(200, (kind, name, "coupling", by), work, "")
                work = functools.partial(row_by_row, few, code)
                yield line(200, (kind, name, "least_squares", "scipy nnls, row by row"), work, "")


def run(sizes: list[int]) -> None:
    """Measure and write ``results/combine.md`` and ``results/combine.csv``, after each N."""
    loads, rows = [os.getloadavg()[0]], []
    for n in (size for size in SIZES if size <= max(sizes)):
        for found in lines(n):
            rows.append(found)
            print(found, flush=True)
        loads.append(os.getloadavg()[0])
        publish(rows, loads)


def publish(rows: list[dict[str, object]], loads: list[float]) -> None:
    """The table so far."""
    heading = f"""# Combiners

CPU time (all threads counted), median of up to three calls, for {CLASSES} classes. Rows are true
distributions (Dirichlet: soft 1, usual 0.3, sharp 0.05) whose columns' logits are blurred by normal
noise of 0.5; "noise only" has nearly uniform distributions and noise of 3, so that the columns
contradict each other. Peak memory is what a call allocates at most, the result included, as a
multiple of r. The plain steps are the multiplicative ones on all rows at once, until none moves a
probability by more than 1e-10, which is not yet an error of 1e-10, and at most 5,000 of them; ours
are converged to that error.

{setting(["calibrant", "numpy", "scipy"])}. One-minute load average before and after each N:
{", ".join(f"{load:.1f}" for load in loads)}. Made by `python -m benchmarks combine`."""
    write("combine", rows, heading)
