"""AutoCalibrator: the whole choice as a multiple of np.sort of the same scores; memory."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import numpy as np

import calibrant as cal
from benchmarks.fit import data
from benchmarks.harness import cpu, peak, setting, write

MAKES = {
    "AutoCalibrator()": cal.AutoCalibrator(),
    "with Platt, Beta, Isotonic, VennAbers": cal.AutoCalibrator(
        candidates=[cal.Platt(), cal.Beta(), cal.Isotonic(), cal.VennAbers()]
    ),
}


def lines(n: int) -> Iterator[dict[str, object]]:
    """All measurements of one N."""
    s, y = data(n)
    sort = cpu(functools.partial(np.sort, s))
    for name, c in MAKES.items():
        whole = cpu(functools.partial(c.fit, s, y))
        yield {
            "N": f"{n:.0e}",
            "choice": name,
            "whole fit, ms": f"{1000 * whole:.0f}",
            "× np.sort": f"{whole / sort:.1f}",
            "peak, copies of the scores": f"{peak(functools.partial(c.fit, s, y)) / s.nbytes:.1f}",
            "chosen": c.chosen_,
        }


def run(sizes: list[int]) -> None:
    """Measure and write ``results/auto.md`` and ``results/auto.csv``."""
    loads, rows = [os.getloadavg()[0]], []
    for n in sizes:
        for line in lines(n):
            rows.append(line)
            print(line, flush=True)
        loads.append(os.getloadavg()[0])
    heading = f"""# AutoCalibrator

Five folds, the fits to all rows and the advice: CPU time (all threads counted), median of at least
three calls, beside `np.sort` of the same scores. Above 200,000 distinct scores candidates are
judged on 100,000 cells.

{setting(["calibrant", "numpy", "scipy"])}. One-minute load average before and after each N:
{", ".join(f"{load:.1f}" for load in loads)}. Made by `python -m benchmarks auto`."""
    write("auto", rows, heading)
