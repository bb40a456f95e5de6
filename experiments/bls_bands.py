"""How often BLS's credible bands hold the truth: ``python -m experiments.bls_bands [--sets N]``.

Scores are uniform, labels drawn from five shapes of truth; coverage is the share of 99 places.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from experiments import keep, table

Array = NDArray[np.float64]

TRUTHS: dict[str, Callable[[Array], Array]] = {
    "square": lambda s: s**2,
    "identity": lambda s: s,
    "bent": lambda s: np.where(s < 0.5, 0.4 * s, 0.2 + 1.4 * (s - 0.5)),
    "steps": lambda s: 0.1 + 0.8 * np.floor(4 * s).clip(max=3) / 3,
    "rising wave": lambda s: 0.1 + 0.8 * s + 0.05 * np.sin(4 * np.pi * s),
}
SIZES = (100, 1000, 10_000)
LEVEL = 0.9


def coverage(truth: Callable[[Array], Array], n: int, sets: int) -> float:
    """The share of places where the band holds the truth, over so many sets of n rows."""
    places = np.arange(1, 100) / 100
    held = []
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        s = rng.random(n)
        y = (rng.random(n) < truth(s)).astype(int)
        low, high = cal.BLS(levels=(LEVEL,), classes=[0, 1]).fit(s, y).map_.bounds(places)
        held.append(((low <= truth(places)) & (truth(places) <= high)).mean())
    return float(np.mean(held))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.bls_bands", description=__doc__)
    parser.add_argument("--sets", type=int, default=40, help="data sets of each kind (default 40)")
    options = parser.parse_args()
    rows = [
        [name, *(f"{coverage(truth, n, options.sets):.2f}" for n in SIZES)]
        for name, truth in TRUTHS.items()
    ]
    text = f"""# Coverage of BLS's bands

Share of 99 places where a band of {LEVEL:.0%} holds the truth, mean of {options.sets} data sets of
uniform scores. Made by `python -m experiments.bls_bands`.

{table(["truth", *(f"{n:,} rows" for n in SIZES)], rows)}
"""
    keep("bls_bands.md", text)


if __name__ == "__main__":
    main()
