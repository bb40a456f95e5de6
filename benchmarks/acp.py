"""ACP: rows calibrated, as multiples of np.searchsorted of the same queries, and fits."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fit import data
from benchmarks.harness import cpu, setting, write
from calibrant.errors import CalibrationWarning
from calibrant.methods.acp.acp import ACP

SIZES = (10**4, 10**5, 10**6, 10**7)
QUERIES = 10**6

#: times np.searchsorted that a row may take: two searches and two lookups
TARGET = 3.0

Array = NDArray[np.float64]


def compare(
    n: int,
    part: str,
    call: Callable[[], object],
    yard: Callable[[], object],
    rows: int,
    target: Any,
) -> dict[str, object]:
    """One line of the table: the yardstick is measured just before and after."""
    call()  # the sums are made at the first call
    before = cpu(yard, seconds=0.5)
    taken = cpu(call, seconds=1.5)
    one = median((before, cpu(yard, seconds=0.5)))
    return {
        "N": f"{n:.0e}",
        "part": part,
        "rows": f"{rows:.0e}",
        "ms": round(taken * 1e3, 1),
        "million rows / s": round(rows / taken / 1e6, 2),
        "multiple": round(taken / one, 2),
        "target": "" if target is None else f"≤ {target:g}",
        "met": "" if target is None else ("yes" if taken <= target * one else "no"),
    }


def lines(n: int) -> Iterator[dict[str, object]]:
    """All measurements of one number of calibration scores."""
    s, y = data(n)
    rng = np.random.default_rng(n)
    w = rng.exponential(size=n)
    q = rng.random(QUERIES)
    half = 1.96 * q * (1.0 - q) * rng.uniform(0.02, 0.2, QUERIES)
    searched = functools.partial(np.searchsorted, np.unique(s), q)
    yield compare(n, "fit / np.sort", lambda: ACP().fit(s, y), lambda: np.sort(s), n, None)
    whole, fractions = ACP().fit(s, y), ACP().fit(s, y, w)

    def asked(c: ACP, half: Array, size: int = QUERIES) -> Callable[[], object]:
        ends = {"lower": (q - half)[:size], "upper": (q + half)[:size]}
        return functools.partial(c.bins, q[:size], **ends)

    yield compare(n, "bins / np.searchsorted", asked(whole, half), searched, QUERIES, TARGET)
    yield compare(
        n,
        "bins, fractional weights / np.searchsorted",
        asked(fractions, half),
        searched,
        QUERIES,
        None,
    )
    few = QUERIES // 10
    some = functools.partial(np.searchsorted, np.unique(s), q[:few])
    for part, c in (("all empty", whole), ("all empty, fractional weights", fractions)):
        call = asked(c, np.zeros(QUERIES), few)
        yield compare(n, f"bins, {part} / np.searchsorted", call, some, few, None)


def run(sizes: list[int]) -> None:
    """Measure and write ``results/acp.md`` and ``results/acp.csv``."""
    loads, rows = [os.getloadavg()[0]], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        for n in (size for size in SIZES if size <= max(sizes)):
            for line in lines(n):
                rows.append(line)
                print(line, flush=True)
            loads.append(os.getloadavg()[0])
    heading = f"""# ACP

CPU time, median of at least three calls after a first one. `N` is the number of calibration scores,
all different. A row is a score with an interval as a logistic regression gives it; the yardstick is
one `np.searchsorted` of as many queries in random order among the same scores, measured just before
and after. Fractional weights are summed without cancellation, from a tree of partial sums. Where no
calibration score is inside, the nearest ten are looked for.

{setting(["calibrant", "numpy", "scikit-learn"])}. One-minute load average before and after each N:
{", ".join(f"{load:.1f}" for load in loads)}. Made by `python -m benchmarks acp`."""
    write("acp", rows, heading)
