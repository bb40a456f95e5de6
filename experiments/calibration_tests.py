"""The tests of calibration side by side: ``python -m experiments.calibration_tests [--quick]``.

False alarms where predictions are right, also with few distinct predictions and U-shaped ones.
Then how often each test finds five kinds of error. `calibration_test` was put together by other
errors and other predictions: those of `experiments.false_positives`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

import calibrant as cal
from experiments import keep, say, table
from experiments.false_positives import REPLICATES, Draw, Random, rejections

__all__ = ["DEPARTURES", "PREDICTIONS", "STATED", "TESTS", "false_alarms", "page", "power"]

Array = NDArray[np.float64]
Rates = dict[tuple[str, int], dict[str, float]]

ALARM_SIZES = (50, 500, 2000)
POWER_SIZES = (200, 500, 2000)

PREDICTIONS: dict[str, Callable[[int, Random], Draw]] = {
    "uniform": lambda n, r: Draw(r.random(n)),
    "three values": lambda n, r: Draw(r.choice([0.2, 0.5, 0.8], n)),
    "U-shaped": lambda n, r: Draw(r.beta(0.2, 0.2, n).clip(1e-6, 1 - 1e-6)),
    "rare": lambda n, r: Draw(r.beta(0.5, 24.5, n)),
    "weights": lambda n, r: Draw(r.random(n), r.lognormal(0.0, 1.0, n)),
}
ABOUT = {
    "uniform": "p uniform on [0, 1]",
    "three values": "p is .2, .5 or .8",
    "U-shaped": "p from Beta(.2, .2), kept in [1e-6, 1 − 1e-6]",
    "rare": "p from Beta(½, 24½), mean 2 %",
    "weights": "p uniform, importance weights e^Z, Z standard normal",
}

#: what the labels are drawn from, instead of p
DEPARTURES: dict[str, Callable[[Array], Array]] = {
    "under-confident": lambda p: expit(1.4 * logit(p)),
    "over-confident": lambda p: expit(0.7 * logit(p)),
    "shifted": lambda p: expit(logit(p) + 0.3),
    "S-shaped": lambda p: np.clip(p - 0.06 * np.sin(2 * np.pi * p), 0.0, 1.0),
    "local bump": lambda p: np.clip(p + 0.2 * np.exp(-(((p - 0.3) / 0.07) ** 2)), 0.0, 1.0),
}
DEPARTED = {
    "under-confident": "true log-odds 1.4 of those of p",
    "over-confident": "true log-odds .7 of those of p",
    "shifted": "log-odds of the truth .3 above those of p",
    "S-shaped": "truth p − .06 sin 2πp",
    "local bump": "truth p + .2 exp(−((p − .3)/.07)²)",
}


def spread(n: int, random: Random) -> Draw:
    """The predictions whose errors are to be found: log-odds normal, mean −.5, deviation 1.2."""
    return Draw(expit(random.normal(-0.5, 1.2, n)))


#: the p-value of each test
TESTS: dict[str, Callable[..., float]] = {
    "calibration_test": lambda y, d, r, **o: (
        cal.metrics.calibration_test(y, d.p, replicates=REPLICATES, random_state=r, **o).p_value
    ),
    "ece_test, mass": lambda y, d, r, **o: (
        cal.metrics.ece_test(
            y, d.p, binning="mass", replicates=REPLICATES, random_state=r, **o
        ).p_value
    ),
    "cox": lambda y, d, r, **o: cal.metrics.cox(y, d.p, **o).p_value,
    "spiegelhalter": lambda y, d, r, **o: cal.metrics.spiegelhalter(y, d.p, **o).p_value,
    "ecce": lambda y, d, r, **o: (
        cal.metrics.ecce(y, d.p, replicates=REPLICATES, random_state=r, **o).p_value
    ),
    "hosmer_lemeshow": lambda y, d, r, **o: (
        cal.metrics.hosmer_lemeshow(y, d.p, replicates=REPLICATES, random_state=r, **o).p_value
    ),
    "ecce by the limit": lambda y, d, r, **o: (
        cal.metrics.ecce(y, d.p, replicates=None, **o).p_value
    ),
    "hosmer_lemeshow by χ²": lambda y, d, r, **o: (
        cal.metrics.hosmer_lemeshow(y, d.p, replicates=None, **o).p_value
    ),
}
#: between which rates the false alarms of tests by redrawing are stated to lie; ties make for
#: statistics of few values, and a test that is cautious
STATED = {
    "calibration_test": (0.035, 0.05),
    "ece_test, mass": (0.035, 0.05),
    "ecce": (0.035, 0.05),
    "hosmer_lemeshow": (0.035, 0.05),
}


def false_alarms(times: int, sizes: tuple[int, ...] = ALARM_SIZES, seed: int = 0) -> Rates:
    """Per kind of prediction and number of rows: how often each test says no to right ones."""
    return {
        (kind, n): rejections(TESTS, draw, lambda p: p, n, times, seed)
        for kind, draw in PREDICTIONS.items()
        for n in sizes
    }


def power(times: int, sizes: tuple[int, ...] = POWER_SIZES, seed: int = 1) -> Rates:
    """Per departure and number of rows: how often each test finds it."""
    tests = {name: test for name, test in TESTS.items() if " by " not in name}
    return {
        (name, n): rejections(tests, spread, truth, n, times, seed)
        for name, truth in DEPARTURES.items()
        for n in sizes
    }


def _rates(rates: Rates) -> str:
    kinds = list(dict.fromkeys(kind for kind, _ in rates))
    sizes = sorted({n for _, n in rates})
    rows = [
        (f"`{name}`", *(" / ".join(f"{100 * rates[k, n][name]:.1f}" for n in sizes) for k in kinds))
        for name in next(iter(rates.values()))
    ]
    return table(("test", *kinds), rows)


def page(times: int, fewer: int, minutes: float, wrong: Rates, found: Rates) -> str:
    """The study as a page."""
    sizes = [" / ".join(f"{n:,}" for n in sorted({n for _, n in r})) for r in (wrong, found)]
    noise = 100 * math.sqrt(0.05 * 0.95 / times)
    parts = [
        HEADING.format(times=f"{times:,}", noise=noise, sizes=sizes[0]),
        "\n".join(f"- *{name}*: {text}" for name, text in ABOUT.items()),
        _rates(wrong),
        FOUND.format(times=f"{fewer:,}", sizes=sizes[1]),
        "\n".join(f"- *{name}*: {text}" for name, text in DEPARTED.items()),
        _rates(found),
        f"Made by `python -m experiments.calibration_tests`, which took {minutes:.0f} minutes.",
    ]
    return "\n\n".join(parts)


HEADING = """# The tests of calibration side by side

## False alarms

Percentage of {times} simulations with right predictions in which a test says no at the 5 % level,
with {sizes} rows; chance alone moves a figure by ±{noise:.1f} (one standard deviation). *By the
limit* and *by χ²*: with `replicates=None`. The others redraw labels 199 times, but for `cox` and
`spiegelhalter`, which compare with χ² and the normal distribution."""

FOUND = """## What they find

Percentage of {times} simulations in which a test says no at the 5 % level, with {sizes} rows. The
log-odds of p are normal with mean −.5 and standard deviation 1.2."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 simulations, nothing kept")
    parser.add_argument("--times", type=int, default=2000, help="simulations (default 2000)")
    chosen = parser.parse_args()
    times = 100 if chosen.quick else chosen.times
    begin = time.monotonic()
    wrong = false_alarms(times)
    say(f"false alarms: {(time.monotonic() - begin) / 60:.1f} minutes")
    found = power(times // 2)
    text = page(times, times // 2, (time.monotonic() - begin) / 60, wrong, found)
    if chosen.quick:
        say(text)
    else:
        keep("calibration_tests.md", text)


if __name__ == "__main__":
    main()
