"""How often `multicalibration` cries wolf: ``python -m experiments.group_levels [--quick]``.

Labels are drawn from the predictions themselves, so that these are right in every group. A false
alarm is a p-value of at most 5 %. Each case has draws of its own, of labels and of redrawings.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import pandas as pd

import calibrant as cal
from experiments import keep, say, table
from experiments.false_positives import LEVEL, PREDICTIONS, REPLICATES, Random

#: rows, and how many simulations of each case
TRIALS = {300: 2000, 2000: 1000, 20_000: 200}
KINDS = ("uniform", "rare", "weights")
GROUPS: dict[str, bool] = {"of one column": False, "crossed": True}
MIN_ROWS = 20


def columns(n: int, random: Random) -> pd.DataFrame:
    """Words, whole numbers, and numbers of which a fifth is missing."""
    income = np.where(random.random(n) < 0.2, np.nan, random.lognormal(size=n))
    country, age = random.choice(["de", "fr", "it"], n), random.integers(18, 90, n)
    return pd.DataFrame({"country": country, "age": age, "income": income})


def false_alarms(n: int, kind: str, crossings: bool, trials: int) -> tuple[float, int]:
    """The share of simulations with a false alarm, and the median number of groups."""
    alarms, groups = 0, []
    for trial in range(trials):
        random = np.random.default_rng([n, KINDS.index(kind), crossings, trial])
        p, weight = PREDICTIONS[kind](n, random)
        found = cal.metrics.multicalibration(
            random.random(n) < p,
            p,
            features=columns(n, random),
            sample_weight=weight,
            crossings=crossings,
            min_rows=MIN_ROWS,
            replicates=REPLICATES,
            random_state=random,
            classes=[False, True],
        )
        alarms += found.p_value <= LEVEL
        groups.append(found.looked_at)
    return alarms / trials, int(np.median(groups))


def page(trials: Callable[[int], int]) -> str:
    """All cases as a page."""
    lines = []
    for n in TRIALS:
        for title, crossings in GROUPS.items():
            found = [false_alarms(n, kind, crossings, trials(n)) for kind in KINDS]
            counts = sorted({count for _, count in found})
            said = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            shares = (f"{100 * share:.1f}" for share, _ in found)
            lines.append((f"{n:,}", title, said, *shares, f"{trials(n):,}"))
            say(" · ".join(map(str, lines[-1])))
    return HEADING + table(("n", "groups", "how many", *KINDS, "simulations"), lines)


HEADING = """# False alarms of `multicalibration` at the 5 % level, in per cent

Labels drawn from the predictions; 199 redrawings; groups of at least 20 rows. Chance moves a figure
by ±1.0 (2,000 simulations), ±1.4 (1,000) or ±3.1 (200), two standard errors. *Weights*: lognormal
importance weights. Made by `python -m experiments.group_levels`.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few simulations, nothing is kept")
    if parser.parse_args().quick:
        say(page(lambda n: 20))
    else:
        keep("group_levels.md", page(TRIALS.__getitem__))


if __name__ == "__main__":
    main()
