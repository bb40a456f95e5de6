"""How `multicalibration` keeps its word: ``python -m experiments.group_levels [--quick]``.

First, how often it cries wolf. Labels are drawn from the predictions themselves, so that these are
right in every group, and a false alarm is a p-value of at most 5 %. Then, how often its 95 %
intervals hold the truth of all groups at once, where predictions are wrong. Each simulation has
draws of its own, of labels and of redrawings.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import calibrant as cal
from experiments import keep, say, table
from experiments.false_positives import DEPARTURES, LEVEL, PREDICTIONS, REPLICATES, Random

Array = NDArray[np.float64]

#: rows, and how many simulations of each case; half as many of the intervals
TRIALS = {300: 2000, 2000: 1000, 20_000: 200}
KINDS = ("uniform", "rare", "weights")
GROUPS: dict[str, bool] = {"of one column": False, "crossed": True}
MIN_ROWS = 20
#: a truth is told by rows of both labels, in parts of this many
PARTS = 10**6

#: what the labels are drawn from, instead of p
WRONG: dict[str, Callable[[Array, pd.DataFrame], Array]] = {
    "too extreme": lambda p, frame: DEPARTURES["too extreme"](p),
    "too low": lambda p, frame: DEPARTURES["too low"](p),
    "one category": lambda p, frame: np.where(frame["country"] == "it", p**2, p),
}


def columns(n: int, random: Random) -> pd.DataFrame:
    """Words, whole numbers, and numbers of which a fifth is missing."""
    income = np.where(random.random(n) < 0.2, np.nan, random.lognormal(size=n))
    country, age = random.choice(["de", "fr", "it"], n), random.integers(18, 90, n)
    return pd.DataFrame({"country": country, "age": age, "income": income})


def groups_of(y: Any, p: Array, frame: pd.DataFrame, random: Random, **options: Any) -> Any:
    """The test, as it is asked in all simulations."""
    common = {"min_rows": MIN_ROWS, "replicates": REPLICATES, "classes": [False, True]}
    return cal.metrics.multicalibration(
        y, p, features=frame, random_state=random, **{**common, **options}
    )


# --- false alarms ---------------------------------------------------------------------------------


def false_alarms(n: int, kind: str, crossings: bool, trials: int) -> tuple[float, int]:
    """The share of simulations with a false alarm, and the median number of groups."""
    alarms, groups = 0, []
    for trial in range(trials):
        random = np.random.default_rng([n, KINDS.index(kind), crossings, trial])
        p, weight = PREDICTIONS[kind](n, random)
        y = random.random(n) < p
        found = groups_of(
            y, p, columns(n, random), random, sample_weight=weight, crossings=crossings
        )
        alarms += found.p_value <= LEVEL
        groups.append(found.looked_at)
    return alarms / trials, int(np.median(groups))


def alarm_rows(trials: Callable[[int], int]) -> list[tuple[str, ...]]:
    """A line for each number of rows and kind of groups."""
    lines: list[tuple[str, ...]] = []
    for n in TRIALS:
        for title, crossings in GROUPS.items():
            found = [false_alarms(n, kind, crossings, trials(n)) for kind in KINDS]
            counts = sorted({count for _, count in found})
            said = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            shares = (f"{100 * share:.1f}" for share, _ in found)
            lines.append((f"{n:,}", title, said, *shares, f"{trials(n):,}"))
            say(" · ".join(lines[-1]))
    return lines


# --- intervals ------------------------------------------------------------------------------------


def true_differences(truth: Array, p: Array, frame: pd.DataFrame, random: Random) -> dict[str, Any]:
    """Truth − prediction in each group: every row comes with both labels, as often as is true."""
    ones = np.clip(np.rint(PARTS * truth), 1, PARTS - 1)
    found = groups_of(
        np.repeat([True, False], len(p)),
        np.tile(p, 2),
        pd.concat([frame, frame]),
        random,
        sample_weight=np.concatenate([ones, PARTS - ones]),
        weights="counts",
        min_rows=2 * MIN_ROWS,  # every row is there twice
        replicates=100,
    )
    return {one.name: one.difference for one in found.groups}


def holds(n: int, kind: str, trials: int) -> float:
    """The share of simulations in which the intervals hold the truth of all groups at once."""
    held = 0
    for trial in range(trials):
        random = np.random.default_rng([n, len(KINDS) + list(WRONG).index(kind), trial])
        p, frame = random.random(n), columns(n, random)
        truth = WRONG[kind](p, frame)
        found = groups_of(random.random(n) < truth, p, frame, random)
        known = true_differences(truth, p, frame, random)
        held += all(one.low <= known[one.name] <= one.high for one in found.groups)
    return held / trials


def interval_rows(trials: Callable[[int], int]) -> list[tuple[str, ...]]:
    """A line for each number of rows."""
    lines: list[tuple[str, ...]] = []
    for n in TRIALS:
        count = max(trials(n) // 2, 1)
        shares = (f"{100 * holds(n, kind, count):.1f}" for kind in WRONG)
        lines.append((f"{n:,}", *shares, f"{count:,}"))
        say(" · ".join(lines[-1]))
    return lines


def page(trials: Callable[[int], int]) -> str:
    """All cases as a page."""
    alarms = table(("n", "groups", "how many", *KINDS, "simulations"), alarm_rows(trials))
    intervals = table(("n", *WRONG, "simulations"), interval_rows(trials))
    return HEADING + alarms + "\n\n" + INTERVALS + intervals + "\n\n" + MADE


HEADING = """# The test of many groups

## False alarms

Percentage of simulations with right predictions in which `multicalibration` names any group at the
5 % level. Labels are redrawn 199 times; groups have at least 20 rows. Chance moves a figure by ±0.5
(2,000 simulations), ±0.7 (1,000) or ±1.5 (200), one standard deviation. *Uniform*: p uniform on
[0, 1]. *Rare*: p from Beta(½, 24½), mean 2 %. *Weights*: p uniform, importance weights e^Z, Z
standard normal. Columns: three countries, ages, incomes of which a fifth is missing.

"""
INTERVALS = """## Intervals

Percentage of simulations in which the 95 % intervals hold the truth of all groups at once (crossed,
p uniform). Chance moves a figure by ±0.7 (1,000 simulations), ±1.0 (500) or ±2.2 (100).
*Too extreme*: true log-odds ¾ of those of p. *Too low*: log-odds of the truth .3 above those of p.
*One category*: truth p² in one country of three.

"""
MADE = "Made by `python -m experiments.group_levels`."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few simulations, nothing is kept")
    if parser.parse_args().quick:
        say(page(lambda n: 20))
    else:
        keep("group_levels.md", page(TRIALS.__getitem__))


if __name__ == "__main__":
    main()
