"""CalArena's published results beside ours: ``python -m benchmarks.calarena [FILE.h5]``.

Without a file: the order of the methods that both arenas have, there and here. With one of
CalArena's HDF5 files: calibrant's default on every experiment in it, in a table of win rates with
the methods that CalArena publishes for the same experiments. Its rules hold then: the Brier score
leads, and a tie is lost.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from experiments import say, table
from scipy.stats import spearmanr

from benchmarks.arena.calarena import read
from benchmarks.arena.matches import judge
from benchmarks.arena.methods import METHODS, NOTHING, OURS
from benchmarks.harness import RESULTS

ROOT = Path(__file__).resolve().parent.parent
#: the folder of the published results, and the files of what comes out
NAME, TABLE = "calarena", "arena_calarena"
#: benchmarks with a file of published results, and the kind of their tasks
PUBLISHED = {
    "tabrepo-binary": "binary",
    "tabarena-binary": "binary",
    "cv-binary": "binary",
    "tabrepo-multiclass": "several",
    "tabarena-multiclass": "several",
    "cv-multiclass": "several",
    "imagenet-multiclass": "several",
}
#: how CalArena calls our measures, the one that leads first
MEASURES = {"brier": "Brier", "logloss": "log loss"}
BASE = "Base-model"
#: methods that both have: CalArena's name, and ours
SHARED = {
    "binary": {
        BASE: NOTHING,
        "BBQ": "netcal BBQ",
        "Beta": "betacal",
        "CIR": "probcal centred isotonic",
        "ETS": "probmetrics ETS",
        "Hist-uniform": "netcal histogram",
        "Isotonic": "scikit-learn isotonic",
        "Platt-logits": "probmetrics Platt on logits",
        "Platt-probs": "scikit-learn sigmoid",
        "Quadratic": "probmetrics quadratic",
        "Spline": "splinecalib",
        "TS": "probmetrics temperature",
        "Venn-Abers": "venn-abers",
    },
    "several": {
        BASE: NOTHING,
        "BBQ": "netcal BBQ",
        "ETS": "probmetrics ETS",
        "Hist-uniform": "netcal histogram",
        "Isotonic": "scikit-learn isotonic",
        "SMS": "probmetrics SMS",
        "SVS": "probmetrics SVS",
        "Spline": "splinecalib",
        "TS": "probmetrics temperature",
        "Venn-Abers": "venn-abers",
    },
}
EXPERIMENT = ["dataset", "model"]


def folder() -> Path:
    """Where the published results are: the folder calarena of the datasets."""
    data = Path(os.environ.get("CALIBRANT_DATA") or ROOT.parent / "shared" / "data")
    return data / NAME


def published(name: str, where: Path) -> pd.DataFrame:
    """The published lines of a benchmark: dataset, model, method, and figures."""
    path = where / f"{name}.csv.gz"
    if not path.is_file():
        raise FileNotFoundError(
            f"CalArena's published results must be in {where}, but there is no {path.name}. They "
            "are in the folder results of its repository."
        )
    return pd.read_csv(path)


def win_rates(lines: pd.DataFrame, measure: str) -> pd.Series:
    """Share of the other methods that each one beats, by CalArena's rule: a tie is lost."""
    losses = lines.pivot_table(index=EXPERIMENT, columns="method", values=measure).dropna()
    values = losses.to_numpy()
    won = (values[:, :, None] < values[:, None, :]).sum(axis=2) / (values.shape[1] - 1)
    return pd.Series(won.mean(axis=0), index=losses.columns).sort_values(ascending=False)


def orders(where: Path, ours: Path = RESULTS) -> pd.DataFrame:
    """A line for each benchmark and measure: rank correlation, and what doing nothing wins."""
    rows = []
    for name, kind in PUBLISHED.items():
        here = pd.read_csv(ours / f"arena_{kind}.csv")
        lines = published(name, where)
        for measure, word in MEASURES.items():
            mine = here[here["measure"] == word].set_index("method")["win rate"]
            there = win_rates(lines, measure)
            both = {a: b for a, b in SHARED[kind].items() if a in there and b in mine}
            rows.append(
                {
                    "benchmark": name,
                    "measure": word,
                    "experiments": int(lines.groupby(EXPERIMENT).ngroups),
                    "methods": len(both),
                    "Spearman": spearmanr(
                        there[list(both)].to_numpy(), mine[list(both.values())].to_numpy()
                    ).statistic,
                    "nothing wins there": there[BASE],
                    "nothing wins here": mine[NOTHING],
                    "first there": ", ".join(there.index[:3]),
                }
            )
    return pd.DataFrame(rows)


def orders_table(found: pd.DataFrame) -> str:
    """The order of the shared methods there and here."""
    rows = [
        [f"{value:.2f}" if isinstance(value, float) else value for value in row]
        for row in found.to_numpy().tolist()
    ]
    return table(list(found.columns), rows)


def orders_page(found: pd.DataFrame) -> str:
    """The table with how to read it."""
    return (
        "# CalArena's published results, and our arena\n\n"
        "Rank correlation of the win rates of the methods that both have. Win rates there are "
        "among all methods that are published for a benchmark, and a tie is lost; here those of "
        "`arena_binary.csv` and `arena_several.csv`, where a tie counts half.\n\n"
        f"{orders_table(found)}\n\n"
        "Made by `python -m benchmarks.calarena` from the results that CalArena publishes."
    )


# --- its own files --------------------------------------------------------------------------------


def benchmark_of(pairs: set[tuple[str, str]], where: Path) -> str:
    """The benchmark whose published experiments a file holds: the one that shares the most."""
    shared = {}
    for name in PUBLISHED:
        lines = published(name, where)
        known = set(map(tuple, lines[EXPERIMENT].drop_duplicates().astype(str).to_numpy()))
        shared[name] = len(known & pairs)
    best = max(shared, key=shared.__getitem__)
    if not shared[best]:
        example = "/".join(min(pairs))
        raise ValueError(
            f"the file must hold experiments of {', '.join(PUBLISHED)}, but none of its "
            f"{len(pairs)} (such as {example}) is published there"
        )
    return best


def score(path: Path) -> pd.DataFrame:
    """Our default, and doing nothing, on every experiment of a file."""
    rows = []
    for dataset, model, data in read(path):
        for name, method in ((OURS, METHODS[OURS]), (NOTHING, METHODS[NOTHING])):
            found = judge(method, data)
            rows.append(
                {
                    "dataset": str(dataset),
                    "model": str(model),
                    "method": name,
                    **{short: found[word] for short, word in MEASURES.items()},
                    "crash": found["crash"],
                }
            )
    return pd.DataFrame(rows)


def beside(path: Path, where: Path) -> str:
    """Our row in the table of win rates of the experiments in a file."""
    found = score(path)
    pairs = set(map(tuple, found[EXPERIMENT].drop_duplicates().to_numpy()))
    name = benchmark_of(pairs, where)
    lines = published(name, where).astype({"dataset": str, "model": str})
    index = lines.set_index(EXPERIMENT).index
    lines = lines[index.isin(list(pairs))]
    base = lines[lines["method"] == BASE].set_index(EXPERIMENT)
    nothing = found[found["method"] == NOTHING].set_index(EXPERIMENT).loc[base.index]
    apart = {m: float(np.abs(base[m] - nothing[m]).max()) for m in MEASURES}
    whole = pd.concat([lines, found[found["method"] == OURS]], ignore_index=True)
    rates = {word: win_rates(whole, measure) for measure, word in MEASURES.items()}
    order = rates["Brier"].index
    rows = [
        (f"**{m}**" if m == OURS else m, *(f"{rate[m]:.3f}" for rate in rates.values()))
        for m in order
    ]
    crashes = int((found["crash"] != "").sum())
    told = "; ".join(f"{MEASURES[m]} {gap:.2g}" for m, gap in apart.items())
    return (
        f"{name}: {len(base)} of the {len(pairs)} experiments of {path.name} are published.\n"
        f"Doing nothing differs from the published {BASE} by at most: {told}. If that is more than "
        "rounding, the measures are not the same, and the table says nothing.\n"
        f"Crashes of calibrant: {crashes}.\n\n"
        f"{table(('method', *(f'win rate, {word}' for word in rates)), rows)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calarena", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="one of CalArena's HDF5 files")
    parser.add_argument("--published", type=Path, default=folder(), help="its published results")
    told = parser.parse_args()
    try:
        if told.file is not None:
            say(beside(told.file, told.published))
            return 0
        found = orders(told.published)
    except (FileNotFoundError, ImportError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    found.to_csv(RESULTS / f"{TABLE}.csv", index=False, float_format="%.4f", lineterminator="\n")
    text = orders_page(found)
    (RESULTS / f"{TABLE}.md").write_text(text + "\n", encoding="utf-8")
    say(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
