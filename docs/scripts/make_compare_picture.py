"""Draw the picture of docs/howto/compare.md anew and print its figures.

Run: python docs/scripts/make_compare_picture.py

The log losses are those of the study of BLS (experiments/results/bls.csv); the false alarms are
simulated: studies in which all methods are alike.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import calibrant as cal

DOCS = Path(__file__).parent.parent
sys.path.insert(0, str(DOCS.parent))  # experiments is no part of the package

from experiments import say  # noqa: E402

PICTURE = DOCS / "pictures" / "ranks.png"
STUDY = DOCS.parent / "experiments" / "results" / "bls.csv"
RUNS = 10_000


def losses() -> pd.DataFrame:
    """Mean log loss of the calibrators on the datasets that judged, with 200 calibration rows."""
    rows = pd.read_csv(STUDY)
    variants = rows["method"].str.startswith("BLS ")
    rows = rows[rows["judged"] & (rows["n"] == "200") & ~variants]
    return rows.pivot(index="task", columns="method", values="log loss")


def false_alarms(n: int, k: int, seed: int = 0) -> dict[str, float]:
    """Shares of studies without a difference in which each test finds one at 5 %."""
    rng = np.random.default_rng([seed, n, k])
    wide = cal.compare.nemenyi(rng.random((n, k)), larger_is_better=True).critical_difference
    found = dict.fromkeys(("χ²", "F_F", "Nemenyi", "Holm", "Holm, best as control"), 0)
    for _ in range(RUNS):
        ranks = cal.compare.average_ranks(rng.random((n, k)), larger_is_better=True)
        whole = cal.compare.friedman(ranks, larger_is_better=True)
        given, best = (
            any(cal.compare.holm(ranks, control=c, larger_is_better=True).rejected)
            for c in (0, ranks.order[0])
        )
        found["χ²"] += whole.p_value <= 0.05
        found["F_F"] += whole.f_p_value <= 0.05
        found["Nemenyi"] += max(ranks.mean) - min(ranks.mean) >= wide
        found["Holm"] += given
        found["Holm, best as control"] += best
    return {name: count / RUNS for name, count in found.items()}


def main() -> None:
    table = losses()
    say(str(cal.compare.compare(table, larger_is_better=False, control="BLS")))
    whole = cal.compare.compare(table, larger_is_better=False)
    say(str(whole))
    say(str(cal.compare.relative_gain(table["BLS"], table["Platt"])))
    three = table[["BLS", "Spline", "Platt"]]
    say(str(cal.compare.compare(three, larger_is_better=False, control="BLS")))
    say(str(cal.compare.wilcoxon_pairs(three, larger_is_better=False)))
    figure = cal.diagrams.critical_difference_diagram(
        whole, title="Log loss with 200 calibration rows"
    )
    # without the version of matplotlib, an unchanged picture stays the same file
    figure.savefig(PICTURE, metadata={"Software": None})
    for n in (5, 10, 40):
        for k in (3, 10):
            shares = false_alarms(n, k)
            words = ", ".join(f"{name} {100 * share:.1f}" for name, share in shares.items())
            say(f"false alarms in %, {n} datasets, {k} methods: {words}")


if __name__ == "__main__":
    main()
