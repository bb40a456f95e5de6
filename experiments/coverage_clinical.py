"""How often the intervals of the clinical measures hold the truth.

``python -m experiments.coverage_clinical [--quick] [--runs N]`` draws samples whose true
probabilities are known, judges two sets of predictions of the same rows, and writes how often the
intervals of `evaluate(measures="clinical")` and of `net_benefit` hold the values for endless data,
how often those of the change do, and how often the words better and worse are wrong.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import beta, norm

import calibrant as cal
from experiments import keep, say, table
from experiments.coverage import Tally

__all__ = ["SIZES", "WEIGHTS", "WORLDS", "coverage", "truth"]

Array = NDArray[np.float64]

SIZES = (200, 1_000, 5_000)
WEIGHTS = ("none", "importance")
LEVEL, THRESHOLD = 0.95, 0.2
#: the cells that stand for endless data
CELLS = 20_000
#: measures that are best at a target
TARGETS = {
    "observed_expected": 1.0,
    "calibration_slope": 1.0,
    "line_intercept": 0.0,
    "calibration_in_the_large": 0.0,
}


class World(NamedTuple):
    """Predictions at given shares of their distribution, and the true probability at each."""

    quantile: Callable[[Array], Array]
    true: Callable[[Array], Array]


def _common(share: Array) -> Array:
    return np.asarray(expit(-1.0 + 1.3 * norm.ppf(share)))


WORLDS = {
    "calibrated": World(_common, lambda p: p),
    "overconfident": World(_common, lambda p: expit(0.6 * logit(p) - 0.2)),
    "skewed": World(lambda share: beta.ppf(share, 1.0, 9.0), lambda p: p**0.7),
}


def before(p: Array) -> Array:
    """Other predictions of the same rows: more extreme ones."""
    return np.asarray(expit(1.5 * logit(p) + 0.3))


def weight_of(p: Array, noise: Array) -> Array:
    """Weights that depend on the prediction and on chance, some ten times others."""
    return np.asarray(100.0 * np.exp(0.5 * (p - 0.3) + 0.7 * noise))


class Truth(NamedTuple):
    """The measures of endless data, and the net benefit."""

    values: dict[str, float]
    net_benefit: float
    grid: Array
    gap: Array

    def emax(self, p: Array) -> float:
        """The largest distance between the predictions that came."""
        inside = (self.grid >= p.min()) & (self.grid <= p.max())
        return float(self.gap[inside].max())


@functools.cache
def truth(name: str, weights: str) -> tuple[Truth, Truth]:
    """The truth about the predictions, and about those before."""
    world = WORLDS[name]
    p = world.quantile((np.arange(CELLS) + 0.5) / CELLS)
    rate = world.true(p)
    each = weight_of(p, np.zeros(CELLS)) if weights == "importance" else np.ones(CELLS)
    each = each / each.sum()
    found = []
    for q in (p, before(p)):
        endless = cal.ScoreTable.from_counts(q, each * (1.0 - rate), each * rate)
        values = dict(cal.evaluate(endless, level=None, measures="clinical").after)
        curve = cal.metrics.ici(endless).curve(q)
        benefit = cal.metrics.net_benefit(endless, threshold=THRESHOLD).net_benefit
        found.append(Truth(values, benefit, q, np.abs(q - curve)))
    return found[0], found[1]


def coverage(
    name: str, weights: str, n: int, runs: int, replicates: int, seed: int = 0
) -> dict[str, dict[str, Tally]]:
    """Tallies by what is judged and measure; "words" holds how often a word was right."""
    world, (after, old) = WORLDS[name], truth(name, weights)
    random = np.random.default_rng([seed, n])
    tallies: dict[str, dict[str, Tally]] = {
        what: defaultdict(Tally) for what in ("value", "change", "words")
    }
    for _ in range(runs):
        p = world.quantile(random.random(n))
        y = random.random(n) < world.true(p)
        weight = None if weights == "none" else weight_of(p, random.normal(size=n))
        options = {"sample_weight": weight, "level": LEVEL}
        if y.sum() < 10 or n - y.sum() < 10:
            continue
        e = cal.evaluate(y, p, raw=before(p), measures="clinical", replicates=replicates, **options)
        for measure, (low, high) in e.intervals.items():
            value = after.emax(p) if measure == "emax" else after.values[measure]
            tallies["value"][measure].add(value, low, high)
        benefit = cal.metrics.net_benefit(y, p, threshold=THRESHOLD, **options)
        tallies["value"]["net_benefit"].add(after.net_benefit, *benefit.interval)
        for measure, target in TARGETS.items():
            new, was = after.values[measure], old.values[measure]
            _, low, high = e.change[measure]
            tallies["change"][measure].add(new - was, low, high)
            gain = abs(was - target) - abs(new - target)
            word = e.verdict(measure)
            wrong = word == ("worse" if gain > 0 else "better")
            tallies["words"][measure].add(0.0, 1.0 if wrong else 0.0, 2.0)
    return tallies


HEADING = """# Coverage of the clinical measures

Percentage of simulations in which the {level:g} % interval holds the truth, the measure of endless
data: {runs} Chance alone moves a figure by one standard deviation, {noise}.

*Calibrated*: the log-odds of the predictions are normal with mean −1 and standard deviation 1.3
(31 % positives), and they are right. *Overconfident*: the true log-odds are 0.6 times those
predicted − 0.2. *Skewed*: predictions are beta(1, 9), mean 10 %, and the true probability is
p^0.7, which bends (18 % positives). *Importance*: each row has a weight around 100, lognormal and
larger for larger predictions. The truth of ICI, E50, E90 and Emax is that of the spline fitted to
endless data, for Emax over the range of the predictions that came. *Change* is from predictions
whose log-odds are 1.5 times those + 0.3. *Words* is how often no wrong word was said: better where
the truth is further from the target, or worse where it is nearer. Net benefit is at the threshold
{threshold:g}. {replicates} curves were drawn for ICI, E50, E90 and Emax.
"""


def page(results: dict[tuple[str, str, int], dict[str, dict[str, Tally]]], text: str) -> str:
    parts = [text]
    for what in ("value", "change", "words"):
        names = list(next(iter(results.values()))[what])
        columns = ["measure"] + [f"{w}, {x}, {n:,}" for w, x, n in results]
        rows = [
            [f"`{name}`", *(str(found[what][name]) for found in results.values())] for name in names
        ]
        parts.append(f"## {what.capitalize()}\n\n{table(columns, rows)}")
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="40 simulations, nothing kept")
    parser.add_argument("--runs", type=int, default=400, help="simulations of the smaller n")
    parser.add_argument("--replicates", type=int, default=200, help="curves drawn (default 200)")
    chosen = parser.parse_args()
    share = dict(zip(SIZES, (1, 1, 2), strict=True))  # the largest take longest
    runs = {n: 40 if chosen.quick else max(chosen.runs // share[n], 20) for n in SIZES}
    begin, results = time.monotonic(), {}
    for n in SIZES:
        for weights in WEIGHTS:
            for world in WORLDS:
                results[world, weights, n] = coverage(world, weights, n, runs[n], chosen.replicates)
                say(f"{world}, {weights}, {n:,}: {time.monotonic() - begin:.0f} s")
    text = HEADING.format(
        level=100 * LEVEL,
        runs=", ".join(f"{r} simulations of {n:,} rows" for n, r in runs.items()) + ".",
        noise=", ".join(f"{100 * (LEVEL * (1 - LEVEL) / r) ** 0.5:.1f}" for r in runs.values()),
        threshold=THRESHOLD,
        replicates=chosen.replicates,
    )
    text = f"{page(results, text)}\n\nMade by `python -m experiments.coverage_clinical`."
    if chosen.quick:
        say(text)
    else:
        keep("coverage_clinical.md", text)


if __name__ == "__main__":
    main()
