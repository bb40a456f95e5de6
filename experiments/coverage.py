"""How often intervals hold the truth: ``python -m experiments.coverage [--quick] [--runs N]``.

Labels are drawn from known probabilities; the truth is each measure of an endless sample. Two
predictions are judged on the same rows: the probabilities themselves, and ones that are too
extreme, so that the change from these to those has a known truth, too.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import calibrant as cal
from experiments import keep, say, table

__all__ = ["SIZES", "WEIGHTS", "WORLDS", "Tally", "coverage", "truth"]

Array = NDArray[np.float64]

SIZES = (200, 2_000, 20_000)
#: mean and standard deviation of the true log-odds
WORLDS = {"common": (-0.5, 1.5), "rare": (-4.5, 1.2)}
#: importance weights: around 100, some ten times others, larger for likely positives
WEIGHTS = ("none", "importance")
LEVEL, BINS = 0.95, 10


class Truth(NamedTuple):
    """The measures of endless data; |mean prediction − frequency| of each bin."""

    values: dict[str, float]
    gaps: dict[int, float]


class Tally:
    """How often the truth was held, below and above, and how wide intervals were."""

    def __init__(self) -> None:
        self.runs, self.below, self.above, self.width = 0, 0, 0, 0.0

    def add(self, truth: float, low: float, high: float) -> None:
        self.runs += 1
        self.below += truth < low - 1e-9
        self.above += truth > high + 1e-9
        self.width += high - low

    @property
    def held(self) -> float:
        return 100.0 - 100.0 * (self.below + self.above) / self.runs

    def __str__(self) -> str:
        return f"{self.held:.1f}" if self.runs else "–"


def extreme(z: Array) -> Array:
    """Predictions that are too sure of themselves."""
    return np.asarray(expit(1.6 * z + 0.3))


def weight_of(z: Array, spread: Array) -> Array:
    """Weights that depend on the log-odds and on chance."""
    return np.asarray(100.0 * np.exp(0.3 * np.tanh(z) + 0.7 * spread))


@functools.cache
def truth(world: str, weights: str) -> tuple[Truth, Truth]:
    """The truth about the too extreme predictions, and about the right ones."""
    # windows need whole weights, which a coarser grid rounds less
    fine, coarse = (_endless(world, weights, cells) for cells in (20_000, 2_000))
    found = []
    for link in (extreme, expit):
        z, mass, rate = fine
        p, each = link(z), mass / mass.sum()
        smooth = cal.ScoreTable.from_counts(p, each * (1.0 - rate), each * rate)
        values = dict(cal.evaluate(smooth, level=None, bins=BINS).after)
        values["calbin"] = _windows(link(coarse[0]), *coarse[1:])
        place = _bin(p)
        apart = np.bincount(place, each * (p - rate)) / np.maximum(np.bincount(place, each), 1e-300)
        found.append(Truth(values, dict(enumerate(np.abs(apart).tolist()))))
    return found[0], found[1]


def _endless(world: str, weights: str, cells: int) -> tuple[Array, Array, Array]:
    """Log-odds on a grid, their weight, and the chance of a positive."""
    mean, deviation = WORLDS[world]
    x = np.linspace(-6.5, 6.5, cells)
    z, mass = mean + deviation * x, np.exp(-(x**2) / 2)
    if weights == "importance":
        mass *= weight_of(z, np.zeros(cells))
    return z, mass, np.asarray(expit(z))


def _windows(p: Array, mass: Array, rate: Array) -> float:
    each = 1e6 / mass.sum() * mass
    counts = np.round(each * (1.0 - rate)), np.round(each * rate)
    return float(cal.metrics.calbin(cal.ScoreTable.from_counts(p, *counts)))


def _bin(p: Array) -> NDArray[np.intp]:
    return np.minimum(np.searchsorted(np.arange(1, BINS) / BINS, p, side="right"), BINS - 1)


def coverage(
    world: str, weights: str, n: int, runs: int, replicates: int, seed: int = 0
) -> dict[str, dict[str, Tally]]:
    """Tallies by what is judged and measure."""
    before, after = truth(world, weights)
    random = np.random.default_rng([seed, n])
    tallies: dict[str, dict[str, Tally]] = {
        what: defaultdict(Tally) for what in ("right", "too extreme", "change")
    }
    for e, z in _evaluations(world, weights, n, runs, replicates, random):
        sides = ((e.intervals, after, expit(z)), (e.intervals_before, before, extreme(z)))
        for what, (spans, known, p) in zip(("right", "too extreme"), sides, strict=True):
            # only bins that came can be judged
            largest = max(known.gaps[b] for b in np.unique(_bin(p)).tolist())
            for name, (low, high) in (spans or {}).items():
                value = largest if name == "mce" else known.values[name]
                tallies[what][name].add(value, low, high)
        for name, (_, low, high) in (e.change or {}).items():
            if low is not None and high is not None:
                change = after.values[name] - before.values[name]
                tallies["change"][name].add(change, low, high)
    return tallies


def _evaluations(
    world: str, weights: str, n: int, runs: int, replicates: int, random: np.random.Generator
) -> Iterator[tuple[cal.metrics.Evaluation, Array]]:
    mean, deviation = WORLDS[world]
    for number in range(runs):
        z = random.normal(mean, deviation, n)
        y = random.random(n) < expit(z)
        weight = weight_of(z, random.normal(size=n)) if weights == "importance" else None
        if y.all() or not y.any():
            continue
        e = cal.evaluate(
            y,
            expit(z),
            raw=extreme(z),
            sample_weight=weight,
            classes=[False, True],
            bins=BINS,
            level=LEVEL,
            replicates=replicates,
            random_state=number,  # with one seed, chance would move all samples' intervals alike
            weights="counts" if weight is None else weights,
        )
        if isinstance(e, cal.metrics.Evaluation):
            yield e, z


HEADING = """# Coverage of the intervals

Percentage of simulations in which the {level:g} % interval of `evaluate` holds the truth, the
measure of endless data: {runs} Chance alone moves a figure by one standard deviation,
{noise}.

True log-odds are normal: *common* with mean −0.5 and standard deviation 1.5 (41 % positives),
*rare* with −4.5 and 1.2 (2 %). *Right*: the predictions are the true probabilities. *Too extreme*:
their log-odds are 1.6 times the true ones + 0.3. *Change*: from the latter to the former, on the
same rows. *Importance*: each row has a weight around 100, lognormal and larger for likely
positives, and `weights="importance"`. The truth of the MCE is over the bins that came. – : no
interval is given, or not to most samples (fewer than ten cases of a class). {replicates}
tables were drawn for `calbin`, `calibration_loss`, `miscalibration` and `discrimination`.

Figures well above {level:g} % belong to measures that chance makes larger: their lower end is for
the worst case, so that the interval is wider than it had to be.
"""


def _shown(tallies: dict[str, Tally], name: str) -> str:
    """A share, unless so few samples have the interval that they are a special kind."""
    return str(tallies[name]) if tallies[name].runs > tallies["brier"].runs / 2 else "–"


def page(results: dict[tuple[str, str, int], dict[str, dict[str, Tally]]], text: str) -> str:
    parts = [text]
    names = list(next(iter(results.values()))["right"])
    for what in ("right", "too extreme", "change"):
        columns = ["measure"] + [f"{w}, {x}, {n:,}" for w, x, n in results]
        rows = [
            [f"`{name}`", *(_shown(tallies[what], name) for tallies in results.values())]
            for name in names
        ]
        parts.append(f"## {what.capitalize()}\n\n{table(columns, rows)}")
    return "\n\n".join(parts)


def heading(runs: dict[int, int], replicates: int) -> str:
    noise = ", ".join(f"{100 * (LEVEL * (1 - LEVEL) / r) ** 0.5:.1f}" for r in runs.values())
    return HEADING.format(
        runs=", ".join(f"{r} simulations of {n:,} rows" for n, r in runs.items()) + ".",
        level=100 * LEVEL,
        replicates=replicates,
        noise=noise,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20 simulations, nothing kept")
    parser.add_argument("--runs", type=int, default=500, help="simulations of the smallest n")
    parser.add_argument("--replicates", type=int, default=100, help="tables drawn (default 100)")
    chosen = parser.parse_args()
    # the largest take longest
    share = dict(zip(SIZES, (1, 1, 2), strict=True))
    runs = {n: 20 if chosen.quick else max(chosen.runs // share[n], 20) for n in SIZES}
    begin, results = time.monotonic(), {}
    for n in SIZES:
        for weights in WEIGHTS:
            for world in WORLDS:
                tallies = coverage(world, weights, n, runs[n], chosen.replicates)
                results[world, weights, n] = tallies
                say(f"{world}, {weights}, {n:,}: {time.monotonic() - begin:.0f} s")
    text = page(results, heading(runs, chosen.replicates))
    text += "\n\nMade by `python -m experiments.coverage`."
    if chosen.quick:
        say(text)
    else:
        keep("coverage.md", text)


if __name__ == "__main__":
    main()
