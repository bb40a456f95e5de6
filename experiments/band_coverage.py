"""How often bands of reliability curves hold: ``python -m experiments.band_coverage [--sets N]``.

Labels are drawn from the predictions, so that these are calibrated. A consistency band holds if the
whole curve lies in it, a confidence band if the diagonal does, where the curve is.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import calibrant as cal
from experiments import keep, say, table

__all__ = ["PREDICTIONS", "SHOWN", "held", "page"]

Array = NDArray[np.float64]
Random = np.random.Generator
Shares = dict[tuple[str, int], dict[tuple[str, str, str], float]]

SIZES = (200, 1000, 10_000)
LEVEL, REPLICATES = 0.95, 250

PREDICTIONS: dict[str, Callable[[int, Random], Array]] = {
    "uniform": lambda n, r: r.random(n),
    "normal log-odds": lambda n, r: expit(r.normal(-0.5, 1.2, n)),
    "rare": lambda n, r: r.beta(0.5, 24.5, n),
    "U-shaped": lambda n, r: r.beta(0.2, 0.2, n).clip(1e-6, 1 - 1e-6),
    "five values": lambda n, r: r.choice([0.1, 0.3, 0.5, 0.7, 0.9], n),
}
HOLD = ("simultaneous", "pointwise")
#: curve, band, where it holds
SHOWN = [
    *((c, "consistency", w) for w in HOLD for c in ("isotonic", "binned", "smooth")),
    ("isotonic", "confidence", "simultaneous"),
    *(("binned", "confidence", where) for where in HOLD),
]


def holds(found: cal.diagrams.Curve) -> bool:
    """Whether the band holds all that it is for."""
    if found.band == "consistency":
        return not found.leaves_band
    assert found.lower is not None
    assert found.upper is not None
    return bool(((found.lower <= found.x + 1e-9) & (found.x - 1e-9 <= found.upper)).all())


def held(sets: int, sizes: tuple[int, ...] = SIZES, seed: int = 0) -> Shares:
    """Per kind of prediction and number of rows: the share of data sets that each band holds."""
    shares: Shares = {}
    for kind, draw in PREDICTIONS.items():
        for n in sizes:
            random = np.random.default_rng([seed, n])
            count: dict[tuple[str, str, str], int] = defaultdict(int)
            for _ in range(sets):
                p = draw(n, random)
                y = random.random(n) < p
                rows = cal.ScoreTable.from_arrays(p, y, classes=[False, True])
                how = {"level": LEVEL, "replicates": REPLICATES, "random_state": random}
                for curve, band, where in SHOWN:
                    found = cal.diagrams.reliability_curve(
                        rows, curve=curve, band=band, bands=where, **how
                    )
                    count[curve, band, where] += holds(found)
            shares[kind, n] = {one: count[one] / sets for one in SHOWN}
    return shares


def page(sets: int, minutes: float, shares: Shares) -> str:
    """The study as a page."""
    sizes = sorted({n for _, n in shares})
    kinds = list(dict.fromkeys(kind for kind, _ in shares))
    rows = [
        (
            f"{band}, {curve}",
            where,
            *(
                " / ".join(f"{100 * shares[kind, n][curve, band, where]:.0f}" for n in sizes)
                for kind in kinds
            ),
        )
        for curve, band, where in SHOWN
    ]
    noise = 100 * math.sqrt(LEVEL * (1 - LEVEL) / sets)
    shown = " / ".join(f"{n:,}" for n in sizes)
    return f"""# What the bands of reliability curves hold

Percentage of {sets} data sets of calibrated predictions, with {shown} rows, in which a band of
{LEVEL:.0%} holds all that it is for: a consistency band the whole curve, a confidence band the
diagonal wherever the curve is. Chance alone moves a figure near 95 by ±{noise:.1f} (one standard
deviation). {REPLICATES} draws for each band that is drawn; ten bins of equal width.

{table(("band", "bands=", *kinds), rows)}

- *normal log-odds*: mean −.5, standard deviation 1.2
- *rare*: p from Beta(½, 24½), mean 2 %
- *U-shaped*: p from Beta(.2, .2), kept in [1e-6, 1 − 1e-6]
- *five values*: .1, .3, .5, .7, .9

Made by `python -m experiments.band_coverage`, which took {minutes:.0f} minutes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5 data sets, nothing kept")
    parser.add_argument("--sets", type=int, default=100, help="data sets (default 100)")
    chosen = parser.parse_args()
    sets = 5 if chosen.quick else chosen.sets
    begin = time.monotonic()
    shares = held(sets)
    text = page(sets, (time.monotonic() - begin) / 60, shares)
    if chosen.quick:
        say(text)
    else:
        keep("band_coverage.md", text)


if __name__ == "__main__":
    main()
