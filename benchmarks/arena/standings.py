"""Who did how well: win rates, gains and harm, with intervals over datasets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import calibrant as cal
from benchmarks.arena.matches import ALL, MEASURES
from benchmarks.arena.methods import NOTHING, OURS

Array = NDArray[np.float64]

EXPERIMENT = ["family", "task", "model", "size"]
#: draws of datasets, and what the intervals hold of them
DRAWS, LEVEL = 1000, 0.95
KINDS = {"binary": "two classes", "several": "several classes"}


def grid(results: pd.DataFrame, kind: str, measure: str) -> pd.DataFrame:
    """Experiments × methods: only experiments that every method has played.

    A method that has played less than half of the experiments is not held against the others.
    """
    rows = results[results["kind"] == kind]
    found = rows.pivot(index=EXPERIMENT, columns="method", values=measure)
    late = found.columns[found.notna().mean() < 0.5]
    return found.drop(columns=late).dropna()


def wins(losses: pd.DataFrame) -> pd.DataFrame:
    """The share of the other methods that each one beats in each experiment; ties count half."""
    k = losses.shape[1]
    return (k - losses.rank(axis=1)) / (k - 1)


def gains(losses: pd.DataFrame) -> pd.DataFrame:
    """How much smaller the loss is than that of doing nothing."""
    return -losses.sub(losses[NOTHING], axis=0)


def drawn(values: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Ends of bootstrap intervals of the means: datasets are drawn, with all of their experiments.

    Two rows, the lower and the upper end.
    """
    by = values.groupby(level="family")
    sums, counts = by.sum().to_numpy(), by.size().to_numpy()
    rng = np.random.default_rng(seed)
    times = rng.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=DRAWS)
    means = (times @ sums) / (times @ counts)[:, None]
    ends = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return pd.DataFrame(ends, columns=values.columns)


def standing(results: pd.DataFrame, kind: str, measure: str) -> pd.DataFrame:
    """A line for each method, the best win rate first."""
    losses = grid(results, kind, measure)
    won, gained = wins(losses), gains(losses)
    harmed = (gained < 0).astype(float)
    lines: dict[str, Any] = {}
    for name, values in (("win rate", won), ("made worse", harmed), ("mean gain", gained)):
        ends = drawn(values)
        lines |= {name: values.mean(), f"{name} low": ends.iloc[0], f"{name} high": ends.iloc[1]}
    lines["5 % of gains below"] = gained.quantile(0.05)
    lines["worst gain"] = gained.min()
    lines |= _costs(results[results["kind"] == kind], losses)
    frame = pd.DataFrame(lines)
    frame.index.name = "method"
    frame["experiments"] = len(losses)
    frame["datasets"] = losses.index.get_level_values("family").nunique()
    return frame.sort_values("win rate", ascending=False, kind="stable")


def _costs(rows: pd.DataFrame, losses: pd.DataFrame) -> dict[str, pd.Series]:
    rows = rows.set_index(EXPERIMENT).loc[losses.index]
    seconds = rows["fit s"] + rows["predict s"]
    return {
        "crashes": (rows["crash"] != "").groupby(rows["method"]).sum(),
        "median ms": 1e3 * seconds.groupby(rows["method"]).median(),
    }


def by_size(results: pd.DataFrame, kind: str, measure: str) -> pd.DataFrame:
    """Win rate and share made worse, per method and number of rows to calibrate on."""
    losses = grid(results, kind, measure)
    sizes = losses.index.get_level_values("size")
    order = [size for size in ("200", "1000", ALL) if size in set(sizes)]
    parts = {}
    for size in order:
        part = losses[sizes == size]
        parts[size, "win rate"] = wins(part).mean()
        parts[size, "made worse"] = (gains(part) < 0).mean()
    frame = pd.DataFrame(parts)
    return frame.loc[standing(results, kind, measure).index]


def by_model(results: pd.DataFrame, kind: str, measure: str) -> pd.DataFrame:
    """Per base model: who wins, and where ours is."""
    losses = grid(results, kind, measure)
    rows = []
    for model, part in losses.groupby(level="model", sort=False):
        rate = wins(part).mean().sort_values(ascending=False)
        gain = gains(part).mean()
        place = 1 + list(rate.index).index(OURS)
        rows.append(
            {
                "model": model,
                "best": rate.index[0],
                "its win rate": rate.iloc[0],
                "its mean gain": gain[rate.index[0]],
                "place of calibrant": f"{place} of {len(rate)}",
                "win rate of calibrant": rate[OURS],
                "mean gain of calibrant": gain[OURS],
                "most gained by": gain.idxmax(),
                "gain of that": gain.max(),
            }
        )
    return pd.DataFrame(rows)


def by_dataset(results: pd.DataFrame, kind: str, measure: str) -> pd.DataFrame:
    """Mean loss of each method on each dataset: models, sizes and tasks of a family averaged."""
    return grid(results, kind, measure).groupby(level="family").mean()


def comparison(results: pd.DataFrame, kind: str, measure: str) -> cal.compare.Comparison | None:
    """Every method held against ours over datasets (Holm); None where there are too few."""
    table = by_dataset(results, kind, measure)
    if len(table) < 3 or OURS not in table:
        return None
    return cal.compare.compare(table.round(9), larger_is_better=False, control=OURS)


def kinds(results: pd.DataFrame) -> list[str]:
    """The kinds of task that there are experiments of, in which calibrant has played."""
    grids = {kind: grid(results, kind, MEASURES[0]) for kind in KINDS}
    return [kind for kind, losses in grids.items() if len(losses) and OURS in losses]
