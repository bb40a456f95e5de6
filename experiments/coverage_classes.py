"""How often the intervals of several classes hold the truth.

``python -m experiments.coverage_classes [--runs N]`` draws samples of four classes whose
distributions are known; predictions are those, or too sure of themselves. The truth is the measure
on 400,000 other rows.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

import calibrant as cal
from experiments import keep, table

Array = NDArray[np.float64]

#: what predictions are: logits times this
WORLDS = {"right": 1.0, "too sure": 2.0}
SIZES = (300, 3000)
MEASURES = ("log_loss", "brier", "rmse", "top_label_ece", "classwise_ece", "auc", "accuracy")
MANY = 400_000


def rows(n: int, factor: float, seed: int) -> tuple[NDArray[np.intp], Array]:
    """Labels of n rows of four classes, and what was predicted."""
    rng = np.random.default_rng(seed)
    z = rng.normal([0.8, 0.3, 0.0, -0.6], 1.5, (n, 4))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return y, softmax(factor * z, axis=1)


def coverage(factor: float, n: int, runs: int, replicates: int = 200) -> dict[str, float]:
    """The percentage of samples whose 95 % interval holds the truth, by measure."""
    labels = list(range(4))
    truth = cal.evaluate(*rows(MANY, factor, 10**6), classes=labels, level=None).after
    held = dict.fromkeys(MEASURES, 0)
    for seed in range(runs):
        y, p = rows(n, factor, seed)
        found = cal.evaluate(y, p, classes=labels, replicates=replicates).intervals
        for name in MEASURES:
            low, high = found[name]
            held[name] += low <= truth[name] <= high
    return {name: 100.0 * count / runs for name, count in held.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.coverage_classes", description=__doc__
    )
    parser.add_argument("--runs", type=int, default=300, help="samples of each kind (default 300)")
    runs = parser.parse_args().runs
    found = {
        (world, n): coverage(factor, n, runs) for world, factor in WORLDS.items() for n in SIZES
    }
    lines = [[name, *(f"{cell[name]:.1f}" for cell in found.values())] for name in MEASURES]
    chance = 1.96 * np.sqrt(0.95 * 0.05 / runs) * 100
    keep(
        "coverage_classes.md",
        f"""# Coverage of the intervals of several classes

Percentage of {runs} samples whose 95 % interval holds the measure of {MANY:,} other rows; chance
moves a figure by ±{chance:.1f}. Four classes; predictions right, or logits times two.
Made by `python -m experiments.coverage_classes`.

{table(["measure", *(f"{world}, {n:,} rows" for world, n in found)], lines)}
""",
    )


if __name__ == "__main__":
    main()
