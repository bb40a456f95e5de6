"""`skce_test` of several classes: ``python -m experiments.kernel_tests [--quick]``.

How often it says no at the 5 % level where predictions are right, and where they are too extreme.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from experiments import keep, say, table

__all__ = ["of_classes", "page"]

Array = NDArray[np.float64]
Random = np.random.Generator
Rates = dict[tuple[str, int, int], float]

LEVEL = 0.05
#: (replicates + 1)·5 % is whole, so that the level of a redrawing test is 5 % and not less
REPLICATES = 199
#: numbers of classes and of rows
CLASSES, CLASS_SIZES = (2, 3, 10), (50, 200, 1000)
#: distributions over k classes
SIMPLEX: dict[str, Callable[[int, int, Random], Array]] = {
    "spread": lambda n, k, r: r.dirichlet(np.ones(k), n),
    "sure": lambda n, k, r: r.dirichlet(np.full(k, 0.1), n),
    "rare": lambda n, k, r: r.dirichlet(np.r_[20.0, np.full(k - 1, 0.2)], n),
    "few": lambda n, k, r: r.dirichlet(np.ones(k), 5)[r.integers(0, 5, n)],
}
ABOUT_CLASSES = {
    "spread": "Dirichlet(1, …, 1)",
    "sure": "Dirichlet(0.1, …, 0.1): most rows give nearly all to one class",
    "rare": "Dirichlet(20, 0.2, …, 0.2): one class nearly always",
    "few": "five distinct rows of Dirichlet(1, …, 1)",
}


def of_classes(
    times: int, sizes: tuple[int, ...] = CLASS_SIZES, sharpened: float = 1.0, seed: int = 3
) -> Rates:
    """How often `skce_test` says no, per distribution, number of classes and rows.

    Labels are drawn from p^sharpened, made to sum to 1: from p itself by default.
    """
    found = {}
    for kind, draw in SIMPLEX.items():
        for k in CLASSES:
            for n in sizes:
                random = np.random.default_rng([seed, n, k])
                no = sum(_says_no(draw(n, k, random), sharpened, random) for _ in range(times))
                found[kind, k, n] = no / times
    return found


def _says_no(p: Array, sharpened: float, random: Random) -> bool:
    truth = p**sharpened
    upto = np.cumsum(truth, axis=1)
    y = (upto <= random.random((len(p), 1)) * upto[:, -1:]).sum(axis=1)
    options = {"replicates": REPLICATES, "random_state": random, "classes": range(p.shape[1])}
    return bool(cal.metrics.skce_test(y, p, **options).p_value <= LEVEL * (1 + 1e-9))


def page(times: int, minutes: float, right: Rates, sharp: Rates) -> str:
    """The study as a page."""
    about = "\n".join(f"- *{name}*: {text}" for name, text in ABOUT_CLASSES.items())
    made = f"Made by `python -m experiments.kernel_tests`, which took {minutes:.0f} minutes."
    heading = HEADING.format(times=f"{times:,}", noise=100 * (LEVEL * (1 - LEVEL) / times) ** 0.5)
    found = FOUND.format(power=SHARPENED)
    mean = f"Over all of them {100 * float(np.mean(list(right.values()))):.2f} %."
    return "\n\n".join((heading, about, _rates(right), mean, found, _rates(sharp), made))


def _rates(rates: Rates) -> str:
    sizes = sorted({n for _, _, n in rates})
    pairs = dict.fromkeys((kind, k) for kind, k, _ in rates)
    rows = [(kind, str(k), *(f"{100 * rates[kind, k, n]:.1f}" for n in sizes)) for kind, k in pairs]
    return table(("predictions", "classes", *(f"n = {n:,}" for n in sizes)), rows)


#: labels are drawn from this power of the predictions
SHARPENED = 0.8

HEADING = """# The kernel test of several classes

Percentage of {times} simulations in which `skce_test` rejects at the 5 % level although the
predictions are right; chance alone moves a figure by ±{noise:.1f} (one standard deviation). Labels
are redrawn 199 times."""

FOUND = """## What is found

The same of half as many simulations where predictions are too extreme: labels are drawn from
p^{power}, made to sum to 1."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20 simulations, nothing kept")
    parser.add_argument("--times", type=int, default=200, help="simulations (default 200)")
    chosen = parser.parse_args()
    times = 20 if chosen.quick else chosen.times
    begin = time.monotonic()
    right = of_classes(times)
    say(f"false alarms: {(time.monotonic() - begin) / 60:.1f} minutes")
    sharp = of_classes(times // 2, sharpened=SHARPENED)
    text = page(times, (time.monotonic() - begin) / 60, right, sharp)
    if chosen.quick:
        say(text)
    else:
        keep("kernel_tests.md", text)


if __name__ == "__main__":
    main()
