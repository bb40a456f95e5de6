"""Several classes: is the mixture of `AutoCalibrator` the right one, and does its gate pay?

``python -m experiments.mixture [--quick] [--seeds N] [--work FOLDER]`` calibrates the cases of
`experiments.mixture_cases` on 300 rows, 1,000 rows, or all, and judges on other rows. What was
fitted is kept in FOLDER, so that a run can be taken up again.

The mixture is built here again, from public parts, so that its pieces can be changed one by one.
Whatever was chosen was chosen on every second dataset (`TUNED`), and is judged on the others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import RESULTS, keep, say, table
from experiments.data import DataMissingError
from experiments.mixture_cases import (
    FIRST,
    FLOORS,
    JUDGED,
    MEMBERS,
    OTHERS,
    SIZES,
    TUNED,
    cases,
    fits,
)

Array = NDArray[np.float64]

#: log losses count no probability below this
CLIP = 1e-6
MEASURES = ("log loss", "Brier")
CASE = ["data", "model", "seed", "size"]
#: what the study came to
LAST, LAST_PSEUDO = ("temperature", "structured ×0.01", "structured ×1", "one-vs-rest BLS"), 0.3
#: what `AutoCalibrator` does
AUTO = "gate of 1, members too"
#: the mixture's rivals: win rates are against these
RIVALS = (
    "identity",
    "temperature",
    "vector",
    "structured ×1",
    "structured, with gate",
    "matrix",
    "Dirichlet",
    "one-vs-rest Platt",
    "one-vs-rest isotonic",
)
SHOWN = (AUTO, "mixture", "first mixture", "one-vs-rest BLS", *RIVALS)


# --- mixtures, and choices among them -------------------------------------------------------------


def shares(likelihood: Array, pseudo: float) -> Array:
    """The likeliest shares with a pseudo-count for each member: Newton's steps, not too long."""
    n, m = likelihood.shape
    found = np.full(m, 1.0 / m)
    for _ in range(60):
        part = likelihood * found / (likelihood @ found)[:, None]
        slope = part.sum(axis=0) + pseudo - (n + pseudo * m) * found
        move = np.linalg.solve(part.T @ part + pseudo * np.eye(m), slope)
        found = found * (1.0 + move * min(1.0, 0.5 / np.abs(move).max(initial=0.5)))
        if np.abs(move).max() < 1e-9:
            break
    return found / found.sum()


class Mixture(NamedTuple):
    """A mixture's likelihood of each calibration row out of fold, and its test predictions."""

    held: Array
    new: Array


def mixed(
    found: dict[str, Array],
    names: tuple[str, ...] = FIRST,
    pseudo: float = 1.0,
    word: str = "",
    fold: str = "fold",
) -> Mixture:
    """Shares from rows held out; a fold is judged with those of the other folds.

    ``word`` is which fits are meant, where they were made in several ways; missing ones are as
    usual.
    """
    y = found["y"]

    def of(kind: str, name: str) -> Array:
        return np.asarray(found.get(f"{kind} {name}{word}", found[f"{kind} {name}"]), dtype=float)

    own = np.column_stack([of("held", name)[np.arange(len(y)), y] for name in names])
    own = np.maximum(own, 1e-12)  # identity may say 0
    held = np.empty(len(y))
    for f in np.unique(found[fold]):
        here = found[fold] == f
        held[here] = own[here] @ shares(own[~here], pseudo)
    whole = shares(own, pseudo)
    new = sum(share * of("new", name) for share, name in zip(whole, names, strict=True))
    return Mixture(held, np.asarray(new))


def variants(found: dict[str, Array]) -> dict[str, Mixture]:
    """The first mixture, changed in one way at a time, and the last."""
    more = [name for name in (*MEMBERS, "identity") if name not in FIRST]
    equal = np.mean([found[f"new {name}"] for name in FIRST], axis=0)
    result = {
        "mixture": mixed(found, LAST, LAST_PSEUDO),
        "first mixture": mixed(found),
        "floor only": mixed(found, word=", floor only"),
        "equal shares": Mixture(np.ones(0), equal),
    }
    result |= {f"pseudo-count {c:g}": mixed(found, pseudo=c) for c in (0.1, 0.3, 5.0)}
    result |= {f"with {name}": mixed(found, (*FIRST, name)) for name in more}
    for name in FIRST:
        result[f"without {name}"] = mixed(found, tuple(n for n in FIRST if n != name))
    if "fold of 3" in found:
        result["3 folds"] = mixed(found, word=", 3 folds", fold="fold of 3")
        for least in FLOORS:
            result[f"floor {least:g}"] = mixed(found, word=f", floor {least:g}")
    return result


def choose(losses: dict[str, Array], gate: float = 1.0, benefit: float = 2.0) -> str:
    """The first unless the best is ahead by more than ``gate`` standard errors; else the second.

    Else, if the best is ahead of that by more than ``benefit``, the best.
    """
    finite = {name: loss for name, loss in losses.items() if np.isfinite(loss).all()}
    best = min(finite, key=lambda name: finite[name].mean())
    for name, errors in zip(list(losses)[:2], (gate, benefit), strict=True):
        if name in finite:
            behind = finite[name] - finite[best]
            if behind.mean() <= errors * behind.std(ddof=1) / np.sqrt(len(behind)):
                return name
    return best


def judged(case: dict[str, Any], found: dict[str, Array]) -> Iterator[dict[str, Any]]:
    """A line for each method: log loss and Brier score (sum over classes) on the test rows."""
    y, y_new = found["y"], found["y_new"]
    made = variants(found)
    new = {name: found[f"new {name}"] for name in ("identity", *OTHERS, *MEMBERS)}
    new |= {name: one.new for name, one in made.items()}
    with np.errstate(divide="ignore"):
        held = {n: -np.log(found[f"held {n}"][np.arange(len(y)), y]) for n in ("identity", *LAST)}
    line = {"identity": held.pop("identity"), "mixture": -np.log(made["mixture"].held)}
    for errors in (0.0, 0.5, 1.0, 2.0):
        new[f"gate of {errors:g}"] = new[choose(line, errors)]
    new["gate of 1, members too"] = new[choose(line | held)]
    for name, p in new.items():
        own = p[np.arange(len(y_new)), y_new].astype(float)
        brier = np.square(p, dtype=float).sum(axis=1) - 2.0 * own + 1.0
        figures = -np.log(np.maximum(own, CLIP)).mean(), brier.mean()
        yield {**case, "n": len(y), "method": name} | dict(
            zip(MEASURES, np.round(figures, 6), strict=True)
        )


# --- the page -------------------------------------------------------------------------------------


def grid(results: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Cases × methods."""
    return results.pivot_table(index=CASE, columns="method", values=measure)


def won(losses: pd.DataFrame, name: str) -> float:
    """The share of pairs of a case and a rival that a method wins; ties count half."""
    others = losses[[rival for rival in RIVALS if rival != name]]
    apart = others.sub(losses[name], axis=0).to_numpy()
    return float(np.mean(0.5 + 0.5 * np.sign(apart)))


def standing(results: pd.DataFrame) -> str:
    """Per method: share of pairs won, mean losses, and how often worse than no calibration."""
    losses, squares = (grid(results, measure) for measure in MEASURES)
    rows = []
    for name in sorted(SHOWN, key=lambda one: -won(losses, one)):
        apart = losses[name] - losses["identity"]
        figures = won(losses, name), losses[name].mean(), won(squares, name), squares[name].mean()
        told = {AUTO: "**AutoCalibrator** (mixture, gate)", "mixture": "mixture, no gate"}
        rows.append(
            (
                told.get(name, name),
                *(
                    f"{value:.{digits}f}"
                    for value, digits in zip(figures, (2, 4, 2, 4), strict=True)
                ),
                f"{(apart > 1e-9).mean():.0%}",
                f"{max(apart.max(), 0.0):.4f}",
            )
        )
    columns = ("method", "win rate", "log loss", "win rate, Brier", "Brier")
    return table((*columns, "worse than identity", "by at most"), rows)


def changes(results: pd.DataFrame, base: str, names: list[str]) -> str:
    """What a change does to the log loss: mean, mean of datasets' means, by size; cases better."""
    losses = grid(results, "log loss")
    rows = []
    for name in names:
        some = losses[name].dropna().index
        apart = 1e4 * (losses.loc[some, name] - losses.loc[some, base])
        by_data = apart.groupby("data").mean()
        by_size = [apart[apart.index.get_level_values("size") == n] for n in ("300", "1000", "all")]
        rows.append(
            (
                name,
                len(some),
                f"{apart.mean():+.1f}",
                f"{by_data.mean():+.1f}",
                *("–" if part.empty else f"{part.mean():+.1f}" for part in by_size),
                f"{(apart < -0.01).mean():.0%}",
                f"{(apart > 0.01).mean():.0%}",
                f"{(losses.loc[some, name] > losses.loc[some, 'identity'] + 1e-9).mean():.0%}",
            )
        )
    head = ("", "cases", "mean", "mean of datasets", "300", "1000", "all", "better", "worse")
    return table((*head, "worse than identity"), rows)


def page(results: pd.DataFrame) -> str:
    """The study as a page."""
    halves = {"tuned": results["data"].isin(TUNED), "judged": results["data"].isin(JUDGED)}
    tuned, judged_ = (results[rows] for rows in halves.values())
    known = set(results["method"])
    first = [n for n in known if n.startswith(("with", "3 folds", "floor", "pseudo", "equal"))]
    gates = ["gate of 0", "gate of 0.5", "gate of 1", "gate of 2", "gate of 1, members too"]
    parts = [
        HEADING.format(
            tuned=", ".join(TUNED),
            judged=", ".join(JUDGED),
            cases=len(grid(results, "log loss")),
            seeds=results["seed"].nunique(),
        ),
        f"## The other half: {len(grid(judged_, 'log loss'))} cases\n\n{standing(judged_)}",
    ]
    for size in (*map(str, SIZES), "all"):
        parts.append(f"### {size} rows\n\n{standing(judged_[judged_['size'] == size])}")
    parts.append("## All cases\n\n" + standing(results))
    parts.append(CHANGES + changes(tuned, "first mixture", ["mixture", *sorted(first)]))
    last = changes(judged_, "first mixture", ["mixture", "floor only"])
    parts.append("On the other half:\n\n" + last)
    parts.append(GATES + changes(tuned, "mixture", gates))
    parts.append("On the other half:\n\n" + changes(judged_, "mixture", gates))
    return "\n\n".join(parts)


HEADING = """# Several classes: the mixture and its gate

{cases} cases: dataset, model, number of rows to calibrate on (random splits of each: {seeds}).
Constants were chosen on {tuned};
{judged} judge.
Log losses count no probability below 1e-6; the Brier score sums over classes. The win rate is the
share of pairs of a case and a rival that a method wins; rivals are the methods of the table but for
mixtures and one-vs-rest BLS. Made by `python -m experiments.mixture`."""

CHANGES = """## What was chosen, on the first half

Changes to the mixture that the study began with, one at a time: temperature, structured scaling
with ridges ×0.1 and ×1, one-vs-rest BLS; one pseudo-row each; 5 folds; rows softened, floor within
[1e-7, 1e-2]. Log loss × 10⁴ minus that of the first mixture: below 0 is better. "mixture" is what
it came to: ridges ×0.01 and ×1 and a pseudo-count of 0.3. "floor only" does not soften rows that
are over-confident before the floor is applied.

"""

GATES = """## The gate

Log loss × 10⁴ minus that of the mixture without a gate. The scores are kept unless the gain exceeds
so many standard errors; "members too": a member may be taken by itself where it is ahead of the
mixture by more than two.

"""


def lines(seeds: int, quick: bool, work: Path) -> Iterator[dict[str, Any]]:
    """All cases, each fitted once and kept."""
    for case, rows in cases(range(seeds), TUNED[:1] if quick else TUNED + JUDGED):
        path = work / ("_".join(str(value) for value in case.values()).replace(" ", "-") + ".npz")
        if not path.is_file():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = fits(case, rows)
            np.savez(path, **{name: _narrow(name, value) for name, value in found.items()})
            say(f"{', '.join(str(value) for value in case.values())}: {len(rows.y)} rows fitted")
        with np.load(path) as kept:
            yield from judged(case, dict(kept))


def _narrow(name: str, value: Array) -> Array:
    """Predictions in single precision, but for the scores as they came: a zero must stay one."""
    single = name.startswith(("held ", "new ")) and "identity" not in name
    return value.astype(np.float32) if single else value


def write(results: pd.DataFrame, path: Path) -> None:
    """A line for each case and measure, a column for each method."""
    long = results.melt([*CASE, "n", "method"], list(MEASURES), "measure")
    wide = long.pivot_table(
        index=[*CASE, "n", "measure"], columns="method", values="value", sort=False
    )
    wide.reset_index().round(5).to_csv(path, index=False)


def read(path: Path) -> pd.DataFrame:
    """What `write` wrote: a row for each case and method."""
    wide = pd.read_csv(path, dtype={"size": str})
    long = wide.melt([*CASE, "n", "measure"], var_name="method").dropna()
    keys = [*CASE, "n", "method"]
    return long.pivot_table(index=keys, columns="measure", values="value", sort=False).reset_index()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one dataset, nothing kept")
    parser.add_argument("--seeds", type=int, default=1, help="random splits (default 1)")
    parser.add_argument("--work", type=Path, default=None, help="where fits are kept")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) if chosen.work is None else chosen.work
        work.mkdir(parents=True, exist_ok=True)
        try:
            results = pd.DataFrame(lines(chosen.seeds, chosen.quick, work))
        except DataMissingError as error:
            sys.exit(str(error))
    if chosen.quick:
        say(standing(results))
        return
    write(results, RESULTS / "mixture.csv")
    keep("mixture.md", page(read(RESULTS / "mixture.csv")))


if __name__ == "__main__":
    main()
