"""How often `check_drift` is right: false alarms, detections and recommendations, by simulation."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from benchmarks.harness import add, cpu, setting, write_page
from calibrant import BLS, Isotonic, Platt, ScoreTable
from calibrant.errors import InputError
from calibrant.maps import Identity
from calibrant.monitor import Drift, check_drift

Array = NDArray[Any]
Rows = tuple[Array, Array, Array | None]

#: rows in either table: where nothing has changed, and where something has
SIZES, SOUGHT = (200, 1000, 5000), (500, 2000, 10000)
#: rows in either table, counted on a grid of scores
MANY = (10**5, 10**6, 10**7, 10**8)
#: simulations of each
REPLICATES, SEARCHES, GRIDS = 600, 200, 200
RECOMMENDATIONS = ("none", "intercept", "refit", "new map")
COSTS = (10**4, 10**5, 10**6)


# --- worlds -------------------------------------------------------------------------------------


def as_it_is(rng: np.random.Generator, s: Array, y: Array) -> Rows:
    return s, y, None


def importance(rng: np.random.Generator, s: Array, y: Array) -> Rows:
    return s, y, np.exp(rng.normal(size=len(s)))


def by_score(rng: np.random.Generator, s: Array, y: Array) -> Rows:
    """High scores were labelled more often, and weigh less."""
    chance = 0.1 + 0.9 * s
    kept = rng.random(len(s)) < chance
    return s[kept], y[kept], 1.0 / chance[kept]


def by_class(rng: np.random.Generator, s: Array, y: Array) -> Rows:
    """One negative in five was kept, and stands for five."""
    kept = y | (rng.random(len(s)) < 0.2)
    return s[kept], y[kept], np.where(y, 1.0, 5.0)[kept]


def coarse(z: Array) -> Array:
    return np.clip(np.round(expit(z), 1), 0.05, 0.95)


def itself(s: Array) -> Array:
    return s


def bent(s: Array) -> Array:
    return 0.02 + 0.9 * expit(0.7 * np.sinh(logit(s) / 2) - 0.5)


def timid(s: Array) -> Array:
    """Scores far too extreme, and one label in thirty wrong."""
    return 0.03 + 0.94 * expit(logit(s) / 4)


def jump(s: Array) -> Array:
    return np.where(s < 0.3, 0.1, 0.5)


class World(NamedTuple):
    """Logits of old and of new rows (mean and deviation), and what a score means."""

    old: tuple[float, float]
    new: tuple[float, float]
    truth: Callable[[Array], Array] = itself
    score: Callable[[Array], Array] = expit
    rows: Callable[[np.random.Generator, Array, Array], Rows] = as_it_is
    reference: Any = None  # a calibrator that is fitted to the old rows, or a map
    ratio: int = 1  # old rows for one new

    def table(
        self, rng: np.random.Generator, n: int, new: bool, change: Callable[[Array], Array] = itself
    ) -> ScoreTable:
        """Rows of one time, the logit of P(y | score) changed if asked for."""
        s = self.score(rng.normal(*(self.new if new else self.old), n))
        p = expit(change(logit(self.truth(s))))
        return ScoreTable.from_arrays(*self.rows(rng, s, rng.random(n) < p))

    def check(
        self, rng: np.random.Generator, n: int, change: Callable[[Array], Array] = itself
    ) -> Drift:
        """One simulation."""
        old = self.table(rng, n * self.ratio, new=False)
        new = self.table(rng, n, new=True, change=change)
        if self.reference is None:
            return check_drift(old, new)
        if isinstance(self.reference, Identity):
            return check_drift(self.reference, new)
        return check_drift(self.reference.fit_table(old), new)

    def counted(self, rng: np.random.Generator, n: int, new: bool) -> ScoreTable:
        """The same of very many rows: how many have each of 20,001 scores."""
        z = np.linspace(-9.0, 9.0, 20_001)
        mean, deviation = self.new if new else self.old
        chance = np.exp(-0.5 * ((z - mean) / deviation) ** 2)
        count = rng.multinomial(n, chance / chance.sum())
        ones = rng.binomial(count, self.truth(self.score(z)))
        return ScoreTable.from_counts(self.score(z), count - ones, ones)


LEVEL, LOW, RARE = (0.0, 1.5), (-2.0, 1.3), (-4.5, 1.3)

#: where nothing changes but, at most, the scores
WORLDS = {
    "right probabilities, half positive": World(LEVEL, LEVEL),
    "right probabilities, 18 % positive": World(LOW, LOW),
    "rare: 2.3 % positive": World(RARE, RARE),
    "bent": World(LEVEL, LEVEL, bent),
    "far too extreme": World((0.0, 6.0), (0.0, 6.0), timid),
    "scores moved": World((-1.0, 1.0), (0.5, 1.3)),
    "scores moved, bent": World((-1.0, 1.0), (0.5, 1.3), bent),
    "scores moved, rare": World((-5.0, 1.2), (-4.0, 1.5)),
    "eleven different scores": World(LEVEL, LEVEL, score=coarse),
    "margins": World(LEVEL, (0.5, 1.5), lambda s: expit(1.5 * s - 1.0), score=itself),
    "ten old rows for one new": World(LOW, LOW, ratio=10),
    "importance weights e^Z": World(LOW, LOW, rows=importance),
    "weights by score": World(LOW, LOW, rows=by_score),
    "one negative in five kept, weight 5": World(LOW, LOW, rows=by_class),
    "against the true map": World(LOW, LOW, reference=Identity()),
    "against the true map, rare": World(RARE, RARE, reference=Identity()),
    "against Platt fitted to the old": World(LOW, LOW, reference=Platt()),
    "against Platt, ten old rows for one": World(LOW, LOW, reference=Platt(), ratio=10),
    "against Isotonic fitted to the old": World(LOW, LOW, reference=Isotonic()),
    "against BLS fitted to the old": World(LOW, LOW, reference=BLS()),
}

#: where scores move and nothing else, looked at with very many rows
MOVED = {
    "right probabilities": World((-1.0, 1.0), (0.5, 1.3)),
    "bent": World((-1.0, 1.0), (0.5, 1.3), bent),
    "far too extreme": World((0.0, 3.0), (1.0, 2.5), timid),
    "rare": World((-5.0, 1.2), (-4.0, 1.5)),
    "a jump from 10 to 50 %": World((-1.0, 1.0), (0.5, 1.3), jump),
}

#: what is done to the logit, in scores with 18 % positive
CHANGES: dict[str, Callable[[Array], Array]] = {
    "intercept +0.1": lambda z: z + 0.1,
    "intercept +0.3": lambda z: z + 0.3,
    "intercept −0.6": lambda z: z - 0.6,
    "slope × 0.9": lambda z: 0.9 * z,
    "slope × 0.75": lambda z: 0.75 * z,
    "slope × 1.3, intercept +0.3": lambda z: 1.3 * z + 0.3,
    "wave, 0.4 high": lambda z: z + 0.4 * np.sin(2.0 * z),
    "high scores fail": lambda z: np.minimum(z, -0.5),
}


# --- what is measured ---------------------------------------------------------------------------


def alarms(name: str) -> dict[str, object]:
    """How often a change is found where there is none, in per cent."""
    line: dict[str, object] = {"nothing has changed": name}
    for n in SIZES:
        rng = np.random.default_rng([n, *name.encode()])  # worlds must not share their luck
        found = [_alarm(WORLDS[name], rng, n) for _ in range(REPLICATES)]
        line[f"n = {n:,}"] = f"{100 * np.mean(found):.1f}"
    return line


def _alarm(world: World, rng: np.random.Generator, n: int) -> bool:
    try:
        return world.check(rng, n).found
    except InputError:  # without a single positive there is no answer, and no alarm
        return False


def moved(name: str) -> dict[str, object]:
    """False alarms of very many rows whose scores have moved, in per cent."""
    line: dict[str, object] = {"scores moved": name}
    for n in MANY:
        rng, world = np.random.default_rng([n, *name.encode()]), MOVED[name]
        found = [
            check_drift(world.counted(rng, n, new=False), world.counted(rng, n, new=True)).found
            for _ in range(GRIDS)
        ]
        line[f"n = {n:.0e}"] = f"{100 * np.mean(found):.1f}"
    return line


def searches(name: str, world: World) -> Iterator[dict[str, object]]:
    """What is recommended when something has changed, in per cent."""
    for n in SOUGHT:
        rng = np.random.default_rng([n, *name.encode()])
        found = [world.check(rng, n, CHANGES[name]) for _ in range(SEARCHES)]
        said = Counter(one.recommendation for one in found)
        yield {
            "change": name,
            "n": f"{n:,}",
            "found": f"{100 * np.mean([one.found for one in found]):.0f}",
            **{word: f"{100 * said[word] / SEARCHES:.0f}" for word in RECOMMENDATIONS},
            "RMS change": f"{np.mean([one.change for one in found]):.3f}",
        }


def costs(n: int) -> dict[str, object]:
    """CPU seconds of a check of n distinct scores in either table."""
    rng, world = np.random.default_rng(0), WORLDS["scores moved"]
    old, new = world.table(rng, n, new=False), world.table(rng, n, new=True)
    taken = cpu(functools.partial(check_drift, old, new))
    against = cpu(functools.partial(check_drift, Identity(), new))
    return {
        "rows in either table": f"{n:,}",
        "two tables, s": f"{taken:.3f}",
        "table and map, s": f"{against:.3f}",
    }


def run(sizes: list[int]) -> None:
    """Measure and write ``results/drift*.csv`` and, all of it, ``results/drift.md``."""
    load = os.getloadavg()[0]
    tables: dict[str, list[dict[str, object]]] = {name: [] for name in HEADINGS}
    for name in WORLDS:
        add(tables["drift_alarms"], alarms(name))
    for name in MOVED:
        add(tables["drift_moved"], moved(name))
    low, by_map = World(LOW, LOW), World(LOW, LOW, reference=Identity())
    for name in CHANGES:
        for line in searches(name, low):
            add(tables["drift_found"], line)
        for line in searches(name, by_map):
            add(tables["drift_found_by_map"], line)
    for n in COSTS:
        add(tables["drift_cost"], costs(n))
    made = f"{setting(['calibrant', 'numpy', 'scipy'])}. Load average at the start: {load:.1f}."
    write_page("drift", "Drift", tables, HEADINGS, made)


HEADINGS = {
    "drift_alarms": f"""## False alarms

Percentage of {REPLICATES:,} simulations in which `check_drift` finds a change at level 5 %, with n
rows in the new table and n (or ten times n, where it says so) in the old one. Chance alone moves a
figure by ±{100 * (0.05 * 0.95 / REPLICATES) ** 0.5:.1f}.""",
    "drift_moved": f"""## False alarms with very many rows

The same where scores move and nothing else does, n rows in either table, counted on a grid of
20,001 scores; {GRIDS} simulations. Chance alone moves a figure by
±{100 * (0.05 * 0.95 / GRIDS) ** 0.5:.1f}.""",
    "drift_found": f"""## What is found between two tables

Right probabilities with 18 % positives before; n rows in either table; {SEARCHES} simulations.
Percentage in which a change is found, and of each recommendation; the mean of the estimated RMS
change.""",
    "drift_found_by_map": """## What is found against the map

The same, where the reference is the true map and not a table.""",
    "drift_cost": """## Cost

CPU seconds of one check, tables at hand, all scores different.""",
}


if __name__ == "__main__":
    run([])
