"""Coverage in this checkout and in another: ``python -m experiments.coverage_before_after FOLDER``.

For changes of how intervals are computed. Both judge the same samples, drawn by
`experiments.coverage`, which says what *right* and *too extreme* predictions are. Only measures
whose intervals come from tables drawn again are shown.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from experiments import keep, say, table

SIZES = (200, 1_000, 20_000)
WORLDS = (("common", "none"), ("rare", "none"), ("common", "importance"))
JUDGED = ("right", "too extreme")
MEASURES = ("calbin", "calibration_loss", "miscalibration", "discrimination")
#: what a process of either checkout prints: how often intervals held the truth, and their width
PROGRAM = """
import json, sys
folder, study = sys.argv[2:]
sys.path[:0] = [folder + "/src", study]
import calibrant
from experiments.coverage import coverage
if not calibrant.__file__.startswith(folder + "/src/"):
    raise SystemExit(f"{calibrant.__file__} is not the code of {folder}")
world, weights, n, runs, replicates = json.loads(sys.argv[1])
found = coverage(world, weights, n, runs, replicates)
print(json.dumps({what: {name: [tally.held, tally.width / tally.runs, tally.runs]
                         for name, tally in measures.items() if tally.runs}
                  for what, measures in found.items()}))
"""
HEADING = """# Coverage before and after a change of the intervals

Percentage of samples in which the 95 % interval of `evaluate` holds the truth, and the mean width
of the interval after as a multiple of that before. Both judge the same samples: {runs}. For each,
{replicates} tables were drawn. The worlds are those of [the other page](coverage.md).

Before: tables of up to 2,000 cells, drawn with a fixed number of cases; 256 windows. After: a
Poisson number of cases in each cell, 46 windows, and 20·∛n cells where the spread is drawn.
"""


def judged(folder: Path, *question: Any) -> dict[str, dict[str, list[float]]]:
    """The tallies of one world and size: the intervals of a checkout, the study of this one."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(question), str(folder), str(Path.cwd())]
    threads = {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | threads, check=True, capture_output=True, text=True
    )
    found: dict[str, dict[str, list[float]]] = json.loads(done.stdout)
    return found


def lines(other: Path, n: int, runs: int, replicates: int) -> list[list[str]]:
    """A line for each world, kind of predictions and measure."""
    shown = []
    for world, weights in WORLDS:
        question = world, weights, n, runs, replicates
        before, after = (judged(folder, *question) for folder in (other, Path.cwd()))
        say(f"{world}, {weights}, {n:,} rows are judged")
        for what in JUDGED:
            for name in MEASURES:
                if name not in before[what]:
                    continue
                old, new = before[what][name], after[what][name]
                held = [f"{old[0]:.1f}", f"{new[0]:.1f}", f"{new[1] / old[1]:.2f}"]
                shown.append([f"{world}, {weights}", f"{n:,}", what, f"`{name}`", *held])
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the checkout to compare with")
    parser.add_argument("--runs", type=int, default=400, help="samples of each world and size")
    parser.add_argument("--replicates", type=int, default=200, help="tables drawn (default 200)")
    chosen = parser.parse_args()
    runs = {n: chosen.runs // (2 if n == SIZES[-1] else 1) for n in SIZES}
    found = [
        line
        for n in SIZES
        for line in lines(chosen.folder.resolve(), n, runs[n], chosen.replicates)
    ]
    columns = ["world, weights", "rows", "predictions", "measure", "before", "after", "width"]
    sizes = ", ".join(f"{r} of {n:,} rows" for n, r in runs.items())
    text = HEADING.format(runs=sizes, replicates=chosen.replicates) + "\n" + table(columns, found)
    made = "Made by `python -m experiments.coverage_before_after`."
    keep("coverage_before_after.md", f"{text}\n\n{made}")


if __name__ == "__main__":
    main()
