"""Who did how well: win rates, gains and harm, with intervals over datasets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import calibrant as cal
from benchmarks.arena.matches import ALL, MEASURES
from benchmarks.arena.methods import BARE, GATED, NOTHING, OURS

Array = NDArray[np.float64]

#: the same calibrator in several packages
DUPLICATES = (
    ("betacal", "probcal beta", "netcal beta"),
    ("venn-abers", "probcal Venn-Abers"),
    ("probmetrics temperature", "scikit-learn temperature"),
    ("probcal Platt", "netcal logistic", "probmetrics Platt on logits"),
    ("probmetrics SMS", "probmetrics SVS"),
    ("probcal BBQ", "netcal BBQ"),
    ("splinecalib", "probcal spline"),
)
#: base models that are the farthest from calibrated, and gain the most
FAR_OFF = ("naive Bayes", "AdaBoost")
EXPERIMENT = ["family", "task", "model", "size"]
#: draws of datasets, and what the intervals hold of them
DRAWS, LEVEL = 1000, 0.95
KINDS = {"binary": "two classes", "several": "several classes"}


def grid(results: pd.DataFrame, kind: str, measure: str) -> pd.DataFrame:
    """Experiments × methods: only experiments that every method has played.

    A method that has played less than half of the experiments is not held against the others.
    """
    rows = results[(results["kind"] == kind) & ~_beside(results["method"])]
    return _pivoted(rows, measure)


def _beside(names: pd.Series) -> pd.Series:
    """The methods that only the table of gates has."""
    found: pd.Series = names.str.endswith(GATED) | (names == BARE)
    return found


def _pivoted(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    found = rows.pivot(index=EXPERIMENT, columns="method", values=measure)
    late = found.columns[found.notna().mean() < 0.5]
    return found.drop(columns=late).dropna()


def wins(losses: pd.DataFrame, ties: str = "half") -> pd.DataFrame:
    """The share of the other methods that each one beats in each experiment.

    A tie counts half, or is lost, as in CalArena.
    """
    k = losses.shape[1]
    rank = losses.rank(axis=1, method={"half": "average", "lost": "max"}[ties])
    return (k - rank) / (k - 1)


def distinct(losses: pd.DataFrame) -> pd.DataFrame:
    """Of methods that several packages have, the one with the largest win rate alone."""
    rate = wins(losses).mean()
    late = [
        name
        for group in DUPLICATES
        for name in sorted((m for m in group if m in losses), key=lambda m: -rate[m])[1:]
    ]
    return losses.drop(columns=late)


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
    rows = rows[rows["method"].isin(losses.columns)].set_index(EXPERIMENT).loc[losses.index]
    seconds = rows["fit s"] + rows["predict s"]
    return {
        "crashes": (rows["crash"] != "").groupby(rows["method"]).sum(),
        "median ms": 1e3 * seconds.groupby(rows["method"]).median(),
    }


def strictly(results: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Calibrant's win rate counted in other ways, which a sceptic would ask for.

    A line for each measure and way: all methods or distinct ones, ties half or lost, with and
    without the base models that are the farthest from calibrated.
    """
    rows = []
    for measure in MEASURES:
        every = grid(results, kind, measure)
        model = every.index.get_level_values("model")
        near = every[~model.isin(FAR_OFF)]
        ways = {
            "all": (every, "half"),
            "ties lost": (every, "lost"),
            "distinct methods": (distinct(every), "half"),
            "distinct methods, ties lost": (distinct(every), "lost"),
            f"distinct methods, without {' and '.join(FAR_OFF)}": (distinct(near), "half"),
        }
        for way, (losses, ties) in ways.items():
            if losses.empty:
                continue
            rate = wins(losses, ties).mean().sort_values(ascending=False)
            best = rate.drop(OURS).index[0]
            rows.append(
                {
                    "measure": measure,
                    "counted": way,
                    "experiments": len(losses),
                    "methods": losses.shape[1],
                    "calibrant": rate[OURS],
                    "best other": best,
                    "its win rate": rate[best],
                    "nothing": rate.get(NOTHING, np.nan),
                }
            )
    return pd.DataFrame(rows)


def far_off(results: pd.DataFrame, kind: str) -> tuple[dict[str, float], float, float]:
    """How much of our gain in log loss the models of `FAR_OFF` make, and our win rate without them.

    Their shares of the sum of gains; our win rate among all methods, and without these models.
    """
    every = grid(results, kind, MEASURES[0])
    model = every.index.get_level_values("model")
    gained = gains(every)[OURS]
    parts = gained.groupby(level="model").sum() / gained.sum()
    shares = {name: float(parts.get(name, 0.0)) for name in FAR_OFF}
    near = every[~model.isin(FAR_OFF)]
    rates = [float(wins(part)[OURS].mean()) if len(part) else np.nan for part in (every, near)]
    return shares, rates[0], rates[1]


def paired(losses: pd.DataFrame) -> pd.DataFrame:
    """Wilcoxon's signed ranks of calibrant against each method over families of datasets.

    ``losses`` is families × methods; Holm's correction over all methods.
    """
    rows = []
    for name in losses.columns.drop(OURS):
        told = cal.compare.wilcoxon(losses[OURS], losses[name])
        rows.append(
            {
                "method": name,
                "calibrant better on": int((losses[OURS] < losses[name]).sum()),
                "of": len(losses),
                "median difference": float((losses[OURS] - losses[name]).median()),
                "p": told.p_value,
            }
        )
    frame = pd.DataFrame(rows).sort_values("p", ascending=False, kind="stable", ignore_index=True)
    # Holm: the smallest p by the number of tests, the next by one less, …, and never falling
    scaled = frame["p"].iloc[::-1] * np.arange(len(frame), 0, -1)
    frame["Holm p"] = scaled.cummax().clip(upper=1.0).iloc[::-1]
    return frame


def gates(results: pd.DataFrame, kind: str, measure: str) -> pd.DataFrame:
    """Every method bare, calibrant's curve among them, and behind one gate beside our default.

    Win rates are among the bare methods, and among those behind a gate, in the experiments that
    have been played behind one. Empty where none has. ``attrs["duels"]`` says for both ways which
    other method is the best, and in which shares of experiments ours has less and more loss.
    """
    rows = results[results["kind"] == kind].set_index(EXPERIMENT)
    behind_one = rows.index[rows["method"].str.endswith(GATED)]
    if behind_one.empty:
        return pd.DataFrame()
    every = _pivoted(rows[rows.index.isin(behind_one)].reset_index(), measure)
    behind = [name for name in every if name.endswith(GATED)]
    bare = [name.removesuffix(GATED) for name in behind]
    ours = [BARE] if BARE in every else []
    parts = {"bare": [*ours, *bare, NOTHING], "behind the gate": [OURS, *behind, NOTHING]}
    columns, duels = {}, []
    for way, names in parts.items():
        losses = every[names]
        rate, harmed = wins(losses).mean(), (gains(losses) < 0).mean()
        mine = [name for name in (BARE, OURS) if name in names]
        if mine:
            best = rate.drop([*mine, NOTHING]).idxmax()
            less, more = losses[mine[0]] < losses[best], losses[mine[0]] > losses[best]
            duels.append((way, best.removesuffix(GATED), less.mean(), more.mean()))
        labels = [name.removesuffix(GATED).replace(BARE, OURS) for name in names]
        columns[way, "win rate"] = rate.set_axis(labels)
        columns[way, "made worse"] = harmed.set_axis(labels)
    frame = pd.DataFrame(columns)
    frame.index.name = "method"
    frame.attrs |= {"experiments": len(every), "duels": duels}
    return frame.sort_values(("behind the gate", "win rate"), ascending=False, kind="stable")


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
