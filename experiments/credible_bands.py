"""How often credible bands hold the truth: ``python -m experiments.credible_bands [--sets N]``.

Of `BLS` and `ABB`. Scores are uniform, labels drawn from five shapes of truth; coverage is the
share of 99 places. How BLS makes its bands was chosen by other truths: s³, 0.95s + 0.025, log-odds
times 1.1 or plus 0.1, a bent line, two steps, a hump and a rising wave. (The power of the evidence
after a look at 0.98s + 0.01 as well.)
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from experiments import keep, table

__all__ = ["METHODS", "SIZES", "TRUTHS", "coverage"]

Array = NDArray[np.float64]

TRUTHS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda s: s,
    "near identity, 0.98s + 0.01": lambda s: 0.98 * s + 0.01,
    "square": lambda s: s**2,
    "U-shape, 0.1 + 3.2(s − ½)²": lambda s: 0.1 + 3.2 * (s - 0.5) ** 2,
    "four steps": lambda s: 0.1 + 0.8 * np.floor(4 * s).clip(max=3) / 3,
}
LEVEL = 0.9
METHODS: dict[str, Callable[[], cal.Calibrator]] = {
    "BLS": lambda: cal.BLS(levels=(LEVEL,), classes=[0, 1]),
    "BLS, monotone=False": lambda: cal.BLS(levels=(LEVEL,), monotone=False, classes=[0, 1]),
    "ABB": lambda: cal.ABB(levels=(LEVEL,), classes=[0, 1]),
}
SIZES = (100, 1000, 5000)


def coverage(
    method: Callable[[], cal.Calibrator], truth: Callable[[Array], Array], n: int, sets: int
) -> tuple[float, float]:
    """The share of places where the band holds the truth, and its width, over sets of n rows."""
    places = np.arange(1, 100) / 100
    found = []
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        s = rng.random(n)
        y = (rng.random(n) < truth(s)).astype(int)
        low, high = method().fit(s, y).map_.bounds(places)
        found.append((((low <= truth(places)) & (truth(places) <= high)).mean(), high - low))
    return float(np.mean([one for one, _ in found])), float(np.mean([one for _, one in found]))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.credible_bands", description=__doc__
    )
    parser.add_argument("--sets", type=int, default=20, help="data sets of each kind (default 20)")
    options = parser.parse_args()
    begin = time.monotonic()
    rows = [
        [
            name,
            method,
            *("{:.2f} ({:.3f})".format(*coverage(fit, truth, n, options.sets)) for n in SIZES),
        ]
        for name, truth in TRUTHS.items()
        for method, fit in METHODS.items()
    ]
    text = f"""# Coverage of credible bands

Share of 99 places where a band of {LEVEL:.0%} holds the truth, and in brackets its mean width;
mean of {options.sets} data sets of uniform scores. Made by `python -m experiments.credible_bands`,
which took {(time.monotonic() - begin) / 60:.0f} minutes.

{table(["truth", "method", *(f"{n:,} rows" for n in SIZES)], rows)}
"""
    keep("credible_bands.md", text)


if __name__ == "__main__":
    main()
