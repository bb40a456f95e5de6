"""BLS: fits as multiples of np.sort of the same scores, beside isotonic regression; memory."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import numpy as np

import calibrant as cal
from benchmarks.fit import data
from benchmarks.harness import cpu, peak, setting, write

MAKES = {
    "BLS": cal.BLS(),
    "BLS, a band": cal.BLS(levels=(0.9,)),
    "Isotonic": cal.Isotonic(),
}


def lines(n: int) -> Iterator[dict[str, object]]:
    """All measurements of one N: the fit from the table, the whole fit, and predictions."""
    s, y = data(n)
    sort = cpu(functools.partial(np.sort, s))
    table = cal.ScoreTable.from_arrays(s, y)
    for name, c in MAKES.items():
        from_table = cpu(functools.partial(c.fit_table, table))
        whole = cpu(functools.partial(c.fit, s, y))
        predict = cpu(functools.partial(c.map_, s))
        yield {
            "N": f"{n:.0e}",
            "method": name,
            "from the table, ms": f"{1000 * from_table:.1f}",
            "whole fit, ms": f"{1000 * whole:.1f}",
            "× np.sort": f"{whole / sort:.1f}",
            "predict, ns a row": f"{1e9 * predict / n:.0f}",
            "knots": len(getattr(c.map_, "point", c.map_).x),
            "peak, copies of the scores": f"{peak(functools.partial(c.fit, s, y)) / s.nbytes:.1f}",
        }


def run(sizes: list[int]) -> None:
    """Measure and write ``results/bls.md`` and ``results/bls.csv``."""
    loads, rows = [os.getloadavg()[0]], []
    for n in sizes:
        for line in lines(n):
            rows.append(line)
            print(line, flush=True)
        loads.append(os.getloadavg()[0])
    heading = f"""# BLS

CPU time (all threads counted), median of at least three calls, beside `np.sort` of the same scores.
Above 600 distinct scores BLS fits groups of neighbours, so what grows with N is the sort and one
pass over the table.

{setting(["calibrant", "numpy", "scipy"])}. One-minute load average before and after each N:
{", ".join(f"{load:.1f}" for load in loads)}. Made by `python -m benchmarks bls`."""
    write("bls", rows, heading)
