"""ENIR: kernel and whole fits as multiples of np.sort, on kind and on unkind data, and memory."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import calibrant as cal
from benchmarks.binning import resident
from benchmarks.fit import data
from benchmarks.harness import cpu, setting, write

SIZES = (10**4, 10**5, 10**6, 10**7)

#: times np.sort of the same N that the kernel may take, on the usual data and on the others
USUAL, UNKIND = 2.5, 4.0
#: the largest N that a peer finishes within about a minute
PEER_SIZES = {"probcal": 10**5, "netcal": 10**4}


#: the data set with the most bins, for the memory of the worst case
WIDEST = "alternating labels"


class Rows(NamedTuple):
    """A data set: scores, labels, and weights if it has any."""

    name: str
    scores: Any
    labels: Any
    weights: Any = None


def unkind(n: int) -> Iterator[Rows]:
    """Data on which shortcuts fail: many bins meet at once or late, or no model stands out."""
    s, y = data(n)
    rng = np.random.default_rng(n + 1)
    rank = np.empty(n, dtype=np.intp)
    rank[np.argsort(s)] = np.arange(n)
    yield Rows("reversed", s, 1 - y)
    yield Rows("noise", s, (rng.random(n) < 0.5).astype(int))
    yield Rows(WIDEST, s, rank % 2)
    yield Rows("one positive in 1e4", s, (rng.random(n) < 1e-4).astype(int))
    yield Rows("separable", s, (rank >= n // 2).astype(int))
    yield Rows("separable, reversed", s, (rank < n // 2).astype(int))
    tied = np.round(s, 3)
    yield Rows("1,000 distinct scores", tied, (rng.random(n) < tied).astype(int))
    groups = rng.integers(0, n // 10, n)
    effect = rng.beta(2, 3, n // 10)[groups]
    yield Rows(
        "a rate for every ten rows", groups / (n // 10), (rng.random(n) < effect).astype(int)
    )
    waves = 0.5 + 0.5 * np.sin(1.7 * (rank // 200)) * rank / n
    yield Rows("waves of 200 rows", s, (rng.random(n) < waves).astype(int))
    # merging two blocks of ln N rows costs about what a bin costs in the BIC: hardly any slope
    log = int(np.log(n))
    ends = np.cumsum(rng.integers(log // 2, 2 * log, n))
    yield Rows("flat BIC", s, np.searchsorted(ends, rank) % 2)
    yield Rows("exponential weights", s, y, rng.exponential(size=n))
    yield Rows("weights e^z", s, y, np.exp(rng.normal(0, 1, n)))
    yield Rows("weights e^(2z)", s, y, np.exp(rng.normal(0, 2, n)))
    yield Rows("weights e^(4z)", s, y, np.exp(rng.normal(0, 4, n)))


def peers(n: int) -> Iterator[tuple[str, Callable[[Any, Any], object]]]:
    """Others' ENIR, where installed and fast enough for this N."""
    homes = {"probcal": ("probcal", "ENIRCalibrator"), "netcal": ("netcal.binning", "ENIR")}
    for who, (module, name) in homes.items():
        try:
            kind = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
        if n <= PEER_SIZES[who]:
            yield who, lambda s, y, kind=kind: kind().fit(s, y)


def measure(
    rows: Rows, part: str, by: str, call: Callable[[], object], target: float | None, make: str = ""
) -> dict[str, object]:
    """One line of the table."""
    s = rows.scores
    if by == "calibrant":
        call()  # compiles, or reads what was compiled before
    before = cpu(lambda: np.sort(s), seconds=0.5)
    taken = cpu(call, seconds=1.5)
    sort = median((before, cpu(lambda: np.sort(s), seconds=0.5)))
    known = make and sys.platform == "linux" and len(s) >= 10**5
    memory = resident(make, s, rows.labels) / s.nbytes if known else None
    return {
        "N": f"{len(s):.0e}",
        "data": rows.name,
        "part": part,
        "by": by,
        "ms": round(taken * 1e3, 2),
        "/ np.sort": round(taken / sort, 2),
        "target": "" if target is None else f"≤ {target:g}",
        "met": "" if target is None else ("yes" if taken <= target * sort else "no"),
        "models": "",
        "scored": "",
        "peak / scores": "" if memory is None else round(memory, 1),
    }


def kernel(rows: Rows, target: float | None) -> dict[str, object]:
    """From the score table to the map."""
    table = cal.ScoreTable.from_arrays(*rows[1:], classes=[0, 1])
    c = cal.ENIR()
    line = measure(rows, "kernel", "calibrant", functools.partial(c.fit_table, table), target)
    whole = len(cal.calibrators.near_isotonic_path(table))
    return {**line, "models": whole, "scored": c.n_models_scored_}


def lines(n: int) -> Iterator[dict[str, object]]:
    """All measurements of one N."""
    usual = Rows("usual", *data(n))
    table = cal.ScoreTable.from_arrays(*usual[1:])
    yield kernel(usual, USUAL if n >= 10**5 else None)
    for part, make in {
        "fit": "cal.ENIR()",
        "fit, models='elbow'": "cal.ENIR(models='elbow')",
        "fit, criterion='aic'": "cal.ENIR(criterion='aic')",
    }.items():
        c = eval(make, {"cal": cal})
        call = functools.partial(c.fit, usual.scores, usual.labels)
        yield measure(usual, part, "calibrant", call, None, make)
    path = functools.partial(cal.calibrators.near_isotonic_path, table)
    yield measure(usual, "whole path", "calibrant", path, None)
    yield measure(usual, "whole path and BIC", "calibrant", lambda: path().bic, None)
    if n <= 10**5:
        authors = cal.ENIR(variant="authors")
        call = functools.partial(authors.fit, usual.scores, usual.labels)
        yield measure(usual, "fit, variant='authors'", "calibrant", call, None)
    for who, fit in peers(n):
        yield measure(usual, "fit", who, functools.partial(fit, *usual[1:3]), None)
    if n >= 10**5:
        for rows in unkind(n):
            yield kernel(rows, UNKIND)
            if rows.name == WIDEST:
                call = functools.partial(cal.ENIR().fit, rows.scores, rows.labels)
                yield measure(rows, "fit", "calibrant", call, None, "cal.ENIR()")


def run(sizes: list[int]) -> None:
    """Measure and write ``results/near_isotonic.md`` and ``results/near_isotonic.csv``."""
    loads, rows = [os.getloadavg()[0]], []
    for n in (size for size in SIZES if size <= max(sizes)):
        for line in lines(n):
            rows.append(line)
            print(line, flush=True)
        loads.append(os.getloadavg()[0])
    packages = ["calibrant", "numpy", "scipy", "numba", "probcal", "netcal"]
    heading = f"""# ENIR

CPU time (all threads counted), median of at least three calls after a first one, as a multiple of
`np.sort` of the same scores, measured just before and after. The kernel begins at the score table
and ends with the map; whole fits begin at NumPy arrays. `models` is the number of breakpoints of
the whole path, `scored` how many of them ENIR had to score. Peak memory is what a fit adds at most
to the resident memory of a fresh process that has fitted 1,000 rows before, in copies of the score
array. Peers are measured as far as a fit takes them less than about a minute.

The data other than the usual are chosen to be unkind. Weights with the tails of e^(2z) and beyond,
z standard normal, miss the target: the log-likelihood of a few rows then outweighs the price of a
bin so far that the best model has tens of thousands of bins, and there is little to skip.

{setting(packages)}. One-minute load average before and after each N:
{", ".join(f"{load:.1f}" for load in loads)}. Made by `python -m benchmarks near_isotonic`."""
    write("near_isotonic", rows, heading)
