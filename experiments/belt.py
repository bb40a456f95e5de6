"""The calibration belt: its test's false alarms, and how often it holds the truth.

``python -m experiments.belt [--quick]``. Predictions and errors are those of
`experiments.calibration_tests`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

import calibrant as cal
from experiments import keep, say, table
from experiments.calibration_tests import ABOUT, PREDICTIONS

__all__ = ["SIZES", "TRUTHS", "coverage", "false_alarms", "page"]

Array = NDArray[np.float64]

SIZES = (50, 500, 2000)
BELT_SIZES = (200, 1000)
LEVELS = (0.8, 0.95)
#: what labels of the belts are drawn from, instead of p; each is a polynomial in log-odds
TRUTHS: dict[str, Callable[[Array], Array]] = {
    "p itself": lambda p: p,
    "log-odds 0.7z + 0.2": lambda p: expit(0.7 * logit(p) + 0.2),
    "log-odds z − 0.2z²": lambda p: expit(logit(p) - 0.2 * logit(p) ** 2),
}


def false_alarms(kind: str, n: int, times: int) -> float:
    """The share of samples of right predictions that the test refuses at 5 %."""
    refused = 0
    for seed in range(times):
        random = np.random.default_rng((seed, n))
        draw = PREDICTIONS[kind](n, random)
        y = (random.random(n) < draw.p).astype(int)
        found = cal.metrics.calibration_belt(
            cal.ScoreTable.from_arrays(draw.p, y, draw.weight, classes=[0, 1])
        )
        refused += found.p_value <= 0.05
    return refused / times


def coverage(truth: Callable[[Array], Array], n: int, times: int) -> dict[float, float]:
    """The share of samples in which each belt holds the truth from the 2 % to the 98 % quantile."""
    held = dict.fromkeys(LEVELS, 0)
    for seed in range(times):
        random = np.random.default_rng((seed, n))
        p = expit(random.normal(-0.5, 1.2, n))
        y = (random.random(n) < truth(p)).astype(int)
        curve = cal.diagrams.reliability_curve(y, p, curve="belt")
        low, high = np.quantile(p, (0.02, 0.98))
        inner = (curve.x >= low) & (curve.x <= high)
        true = truth(curve.x)
        belts = (curve.inner_lower, curve.inner_upper), (curve.lower, curve.upper)
        for level, (below, above) in zip(LEVELS, belts, strict=True):
            held[level] += bool(((below <= true) & (true <= above))[inner].all())
    return {level: count / times for level, count in held.items()}


def page(times: int, sets: int) -> str:
    alarms = [
        [kind, *(f"{100 * false_alarms(kind, n, times):.1f}" for n in SIZES)]
        for kind in PREDICTIONS
    ]
    belts = []
    for name, truth in TRUTHS.items():
        found = [coverage(truth, n, sets) for n in BELT_SIZES]
        shown = [f"{100 * one[level]:.0f}" for level in LEVELS for one in found]
        belts.append([name, *shown])
    about = "\n".join(f"- *{kind}*: {words}" for kind, words in ABOUT.items())
    noise = 100 * np.sqrt(0.05 * 0.95 / times)
    columns = [f"{100 * level:.0f} %, {n:,} rows" for level in LEVELS for n in BELT_SIZES]
    return f"""# The calibration belt

## False alarms of its test

Percentage of {times:,} simulations with right predictions in which `calibration_belt` says no at
the 5 % level; chance moves a figure by ±{noise:.1f} (one standard deviation).

{about}

{table(["predictions", *(f"{n:,} rows" for n in SIZES)], alarms)}

## How often the belt holds the truth

Percentage of {sets} samples in which the belt of 80 and of 95 % holds the whole true curve, between
the 2 % and the 98 % quantile of the predictions. Log-odds of p are normal with mean −.5 and
standard deviation 1.2.

{table(["truth", *columns], belts)}

Made by `python -m experiments.belt`.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.belt", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few samples, nothing kept")
    quick = parser.parse_args().quick
    text = page(20, 4) if quick else page(1000, 100)
    if quick:
        say(text)
    else:
        keep("belt.md", text)


if __name__ == "__main__":
    main()
