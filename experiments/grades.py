"""What intervals and lights of grades promise: ``python -m experiments.grades``.

Nothing is simulated: the chances of all numbers of positives are summed. The rows of a grade are
independent, and all have the probability that was predicted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

import calibrant as cal
from experiments import keep, table

__all__ = ["RATES", "SIZES", "chances", "page"]

SIZES = (100, 1000, 10_000)
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
#: numbers of positives that are less likely than this are left out
NEVER = 1e-12


def all_of(rate: float, n: int) -> tuple[NDArray[np.float64], list[Any]]:
    """The chance of each number of positives, and what the check says of such a grade."""
    scale = cal.monitor.MasterScale.of(boundaries=[0.999])
    counts = np.arange(n + 1)
    chance = binom.pmf(counts, n, rate)
    some = chance > NEVER
    tables = (
        cal.ScoreTable.from_counts([rate], [n - int(d)], [int(d)]) for d in counts[some].tolist()
    )
    return chance[some], [scale.check(one).rows[0] for one in tables]


def chances(rate: float, n: int) -> dict[str, float]:
    """How often both intervals hold the rate, and how often a right grade is not green, or red."""
    chance, found = all_of(rate, n)

    def share(which: list[bool]) -> float:
        return float(chance @ np.array(which))

    def holds(span: tuple[float, float]) -> bool:
        return span[0] <= rate <= span[1]

    return {
        "Clopper–Pearson": share([holds(row.clopper_pearson) for row in found]),
        "Jeffreys": share([holds(row.jeffreys_interval) for row in found]),
        "amber or red": share([row.light != "green" for row in found]),
        "red": share([row.light == "red" for row in found]),
    }


def page() -> str:
    rows = [
        [f"{rate:.1%}", f"{n:,}", *(f"{100 * value:.1f}" for value in chances(rate, n).values())]
        for rate in RATES
        for n in SIZES
    ]
    columns = ["rate", "rows", "Clopper–Pearson", "Jeffreys", "amber or red", "red"]
    return f"""# Intervals and lights of grades

Percentage of samples in which the 90 % interval of a grade holds its rate, and in which a grade
whose prediction is right has an amber or a red light. Exact: all numbers of positives are summed.
Made by `python -m experiments.grades`.

{table(columns, rows)}
"""


if __name__ == "__main__":
    keep("grades.md", page())
