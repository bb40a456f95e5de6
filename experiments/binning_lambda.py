"""How many bin boundaries to expect: ``python -m experiments.binning_lambda [--quick]``.

SBB and ABB with fixed λ, the λ of the largest evidence, and the average over λ, judged out of
sample on the scores of five kinds of model on the papers' datasets (see `experiments.data`), with
other methods for reference.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import wilcoxon
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import calibrant as cal
from experiments import RESULTS, keep, say, table
from experiments.data import DataMissingError, Task, read, tasks

Array = NDArray[np.float64]

#: rows used of a dataset, to train on and to test on, at most
MOST, TRAIN, TEST = 12_000, 2000, 3000
SIZES = (200, 1000, 5000)
CHOICES: tuple[float | str, ...] = (1, 3, 10, 30, 100, 300, "empirical", "average")
CLIP = 1e-6
#: the ends of the grid of λ that "empirical" and "average" use
ENDS = (0.1, 1e4)

MODELS: dict[str, Callable[[int], Any]] = {
    "naive Bayes": lambda seed: GaussianNB(),
    "linear SVM": lambda seed: LinearSVC(dual=False, max_iter=5000, random_state=seed),
    "logistic regression": lambda seed: LogisticRegression(max_iter=2000),
    "random forest": lambda seed: RandomForestClassifier(100, random_state=seed),
    "boosted trees": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}
FAMILIES = {
    "SBB": {f"SBB {choice}": cal.SBB(lambda_=choice) for choice in CHOICES},
    "ABB": {f"ABB {choice}": cal.ABB(lambda_=choice) for choice in CHOICES},
}
REFERENCES = {
    "Identity": cal.Identity(),
    "Platt": cal.Platt(),
    "Isotonic": cal.Isotonic(),
    "BBQ": cal.BBQ(),
}
METHODS: dict[str, Any] = {**FAMILIES["SBB"], **FAMILIES["ABB"], **REFERENCES}


class Scored(NamedTuple):
    """Scores of a model on rows to calibrate on and rows to test on."""

    scores: Array
    y: NDArray[np.intp]
    new: Array
    y_new: NDArray[np.intp]


def encode(train: pd.DataFrame) -> ColumnTransformer:
    """Numbers imputed and standardised, words one-hot; learned from the training rows."""
    numbers = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    words = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=5, sparse_output=False
    )
    is_number = [pd.api.types.is_numeric_dtype(train[name]) for name in train.columns]
    numeric = [name for name, yes in zip(train.columns, is_number, strict=True) if yes]
    nominal = [name for name in train.columns if name not in set(numeric)]
    parts = [("numbers", numbers, numeric), ("words", words, nominal)]
    return ColumnTransformer(parts).set_output(transform="default").fit(train)


def scored(X: pd.DataFrame, y: NDArray[np.intp], seed: int) -> Iterator[tuple[str, Scored]]:
    """Per model: its scores on a pool of rows to calibrate on, and on test rows."""
    train_rows, test_rows = min(TRAIN, int(0.3 * len(y))), min(TEST, int(0.35 * len(y)))
    index = np.arange(len(y))
    train, rest = train_test_split(index, train_size=train_rows, stratify=y, random_state=seed)
    pool, test = train_test_split(rest, test_size=test_rows, stratify=y[rest], random_state=seed)
    coder = encode(X.iloc[train])
    A, B, C = (coder.transform(X.iloc[rows]) for rows in (train, pool, test))
    for name, make in MODELS.items():
        model = make(seed).fit(A, y[train])
        if hasattr(model, "predict_proba"):
            scores, new = model.predict_proba(B)[:, 1], model.predict_proba(C)[:, 1]
        else:
            scores, new = model.decision_function(B), model.decision_function(C)
        yield name, Scored(scores, y[pool], new, y[test])


def sizes(pool: int) -> list[int]:
    """The numbers of calibration rows that a pool has room for."""
    return [n for n in SIZES if n <= pool]


def compare(data: Scored, n: int, seed: int) -> list[dict[str, Any]]:
    """Every method fitted to n of the rows: test losses, and where λ came to lie."""
    some = np.arange(len(data.y))
    if n < len(data.y):
        some, _ = train_test_split(some, train_size=n, stratify=data.y, random_state=seed)
    rows = []
    for name, calibrator in METHODS.items():
        p = calibrator.fit(data.scores[some], data.y[some]).calibrate(data.new)
        loss = cal.log_loss(data.y_new, p, clip=CLIP)
        row = {"method": name, "log loss": loss, "Brier": cal.brier(data.y_new, p)}
        rows.append({**row, **_where(calibrator)})
    return rows


def _where(calibrator: Any) -> dict[str, float]:
    """The weighted mean of log λ, and the weight at the lower and the upper end of the grid."""
    if not isinstance(getattr(calibrator, "lambda_", None), str):
        return {}
    value, weight = calibrator.lambdas_, calibrator.lambda_weights_
    at = weight[value <= ENDS[0] * 1.02].sum(), weight[value >= ENDS[1] / 1.02].sum()
    return {"log lambda": float(weight @ np.log10(value)), "low": at[0], "high": at[1]}


def one_task(task: Task, seeds: int) -> pd.DataFrame:
    """A row per model, number of rows, seed and method."""
    X, y = read(task, MOST)
    rows = [
        {"task": task.name, "model": model, "n": n, "seed": seed, **row}
        for seed in range(seeds)
        for model, data in scored(X, y, seed)
        for n in sizes(len(data.y))
        for row in compare(data, n, seed)
    ]
    return pd.DataFrame(rows)


CASE = ["task", "model", "n"]


def losses(results: pd.DataFrame, measure: str, methods: list[str]) -> pd.DataFrame:
    """Cases × methods, averaged over seeds."""
    mean = results.groupby([*CASE, "method"])[measure].mean()
    return mean.unstack("method")[methods]


def standings(grid: pd.DataFrame, control: str) -> pd.DataFrame:
    """Per method: mean rank, share of pairs won, loss above the best, and a test against one."""
    k = grid.shape[1]
    rank = grid.rank(axis=1)
    above = grid.sub(grid.min(axis=1), axis=0)
    by_task = grid.groupby("task").mean()
    p = {}
    for name in grid.columns:
        difference = (by_task[name] - by_task[control]).to_numpy()
        p[name] = wilcoxon(difference).pvalue if np.any(difference) else np.nan
    return pd.DataFrame(
        {
            "mean rank": rank.mean(),
            "win rate": (k - rank.mean()) / (k - 1),
            "best": (rank == 1).mean(),
            "above the best": above.mean(),
            "95 % of cases below": above.quantile(0.95),
            f"p against {control}": pd.Series(p),
        }
    )


def as_table(frame: pd.DataFrame) -> str:
    formats = ["{:.2f}", "{:.2f}", "{:.2f}", "{:.4f}", "{:.4f}", "{:.2g}"]
    rows = [
        (name, *(("–" if np.isnan(v) else f.format(v)) for f, v in zip(formats, row, strict=True)))
        for name, row in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    return table(("method", *frame.columns), rows)


def ends_of_grid(results: pd.DataFrame) -> str:
    """Where λ came to lie, per method and number of rows."""
    part = results.dropna(subset=["log lambda"])
    rows = [
        (
            name,
            n,
            f"{10 ** group['log lambda'].median():.2g}",
            f"{10 ** group['log lambda'].quantile(0.05):.2g} … "
            f"{10 ** group['log lambda'].quantile(0.95):.2g}",
            f"{(group['low'] > 0.5).mean():.3f}",
            f"{group['low'].mean():.3f}",
            f"{(group['high'] > 0.5).mean():.3f}",
            f"{group['high'].mean():.3f}",
        )
        for (name, n), group in part.groupby(["method", "n"])
    ]
    columns = ("method", "n", "median λ", "5 … 95 %", "low end wins", "weight there")
    return table((*columns, "high end wins", "weight there"), rows)


def high_end_by_model(results: pd.DataFrame) -> str:
    """Which models' scores ask for more boundaries than the grid has."""
    part = results[results["method"] == "ABB empirical"]
    rows = [
        (model, len(group), int((group["low"] > 0.5).sum()), int((group["high"] > 0.5).sum()))
        for model, group in part.groupby("model")
    ]
    return table(("model", "fits", "low end", "high end"), rows)


def by_size(results: pd.DataFrame, family: dict[str, Any]) -> str:
    """Mean rank within the family on log loss, by the number of calibration rows."""
    grid = losses(results, "log loss", list(family))
    rank = grid.rank(axis=1).groupby("n").mean()
    rows = [(name, *(f"{rank.loc[n, name]:.2f}" for n in rank.index)) for name in family]
    return table(("method", *(f"n = {n}" for n in rank.index)), rows)


def summary(results: pd.DataFrame, minutes: float) -> str:
    """The study as a page."""
    cases = results.groupby(CASE).ngroups
    parts = [
        HEADING.format(
            tasks=results["task"].nunique(),
            cases=cases,
            seeds=results["seed"].nunique(),
            minutes=minutes,
        )
    ]
    for family, members in FAMILIES.items():
        for measure in ("log loss", "Brier"):
            grid = losses(results, measure, list(members))
            text = as_table(standings(grid, f"{family} average"))
            parts.append(f"## {family}: {measure}\n\n{text}")
        text = by_size(results, members)
        parts.append(f"## {family}: mean rank on log loss by calibration rows\n\n{text}")
    chosen = ["SBB empirical", "SBB average", "ABB empirical", "ABB average", *REFERENCES]
    for measure in ("log loss", "Brier"):
        text = as_table(standings(losses(results, measure, chosen), "ABB average"))
        parts.append(f"## Beside other methods: {measure}\n\n{text}")
    parts.append(f"## Where λ came to lie\n\n{ends_of_grid(results)}")
    text = high_end_by_model(results)
    parts.append(f"## Fits whose λ of the largest evidence is an end of the grid\n\n{text}")
    return "\n\n".join(parts)


HEADING = """# λ of SBB and ABB

{tasks} binary tasks × five models (Gaussian naive Bayes, linear SVM with its margins, logistic
regression, random forest, boosted trees), calibrated on 200, 1,000 and 5,000 rows where there are
so many and judged on up to 3,000 others; losses averaged over random splits, {seeds} of them:
{cases} cases. Up to 2,000 rows to train a model. Log loss clips p to [1e-6, 1 − 1e-6].

*Win rate*: share of the other methods of the table that are beaten, over cases. *Best*: share of
cases with the lowest loss. *Above the best*: mean difference to the lowest loss of the table. *p*:
Wilcoxon's signed rank over tasks (mean loss of a task), two-sided, not corrected for the number of
comparisons. *Low (high) end wins*: share of fits in which the end of the grid of λ, 0.1 or 10,000,
is chosen or has more than half of the weight.

Made by `python -m experiments.binning_lambda`, which took {minutes:.0f} minutes."""


def save(results: pd.DataFrame) -> None:
    """Mean losses per task, number of rows and method: over models and seeds."""
    columns = ["log loss", "Brier", "log lambda"]
    mean = results.groupby(["task", "n", "method"])[columns].mean().round(5)
    mean.to_csv(RESULTS / "binning_lambda.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five tasks, one seed, nothing kept")
    parser.add_argument("--seeds", type=int, default=3, help="random splits (default 3)")
    options = parser.parse_args()
    begin = time.monotonic()
    try:
        chosen = tasks(600)
    except DataMissingError as error:
        sys.exit(str(error))
    chosen = chosen[:5] if options.quick else chosen
    frames = []
    for task in chosen:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # models that have not quite converged are scores too
            frames.append(one_task(task, 1 if options.quick else options.seeds))
        say(f"{task.name}: {frames[-1].groupby(CASE).ngroups} cases, {task.rows} rows")
    results = pd.concat(frames, ignore_index=True)
    page = summary(results, (time.monotonic() - begin) / 60)
    if options.quick:
        say(page)
    else:
        keep("binning_lambda.md", page)
        save(results)


if __name__ == "__main__":
    main()
