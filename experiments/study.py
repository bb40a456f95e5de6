"""What the studies on the papers' datasets share: models, their scores, and standings of methods.

Five kinds of model are trained on a part of each dataset; their scores on other rows are what
calibrators are fitted to and judged on.
"""

from __future__ import annotations

import argparse
import sys
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

from experiments import say, table
from experiments.data import DataMissingError, Task, read, tasks

Array = NDArray[np.float64]

#: rows used of a dataset, to train on and to test on, at most
MOST, TRAIN, TEST = 12_000, 2000, 3000
#: rows that a task must have
LEAST = 600
SIZES = (200, 1000, 5000)
CLIP = 1e-6
CASE = ["task", "model", "n"]
#: ENIR's treatment of bins that `experiments.near_isotonic` settled on: its default
ENIR_BINS = {"interpolation": "linear", "smoothing": "jeffreys"}

MODELS: dict[str, Callable[[int], Any]] = {
    "naive Bayes": lambda seed: GaussianNB(),
    "linear SVM": lambda seed: LinearSVC(dual=False, max_iter=5000, random_state=seed),
    "logistic regression": lambda seed: LogisticRegression(max_iter=2000),
    "random forest": lambda seed: RandomForestClassifier(100, random_state=seed),
    "boosted trees": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}


class Scored(NamedTuple):
    """Scores of a model on rows to calibrate on and rows to test on."""

    scores: Array
    y: NDArray[np.intp]
    new: Array
    y_new: NDArray[np.intp]

    def some(self, n: int, seed: int) -> Scored:
        """The same with n of the rows to calibrate on."""
        if n >= len(self.y):
            return self
        rows = np.arange(len(self.y))
        rows, _ = train_test_split(rows, train_size=n, stratify=self.y, random_state=seed)
        return self._replace(scores=self.scores[rows], y=self.y[rows])


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


#: what a study does with a model's scores on n calibration rows: a row of figures per method
Compare = Callable[[Scored], list[dict[str, Any]]]


def one_task(task: Task, seeds: int, compare: Compare) -> pd.DataFrame:
    """A row per model, number of rows, seed and method."""
    X, y = read(task, MOST)
    rows = [
        {"task": task.name, "model": model, "n": n, "seed": seed, **row}
        for seed in range(seeds)
        for model, data in scored(X, y, seed)
        for n in sizes(len(data.y))
        for row in compare(data.some(n, seed))
    ]
    return pd.DataFrame(rows)


def options(description: str | None, seeds: int) -> argparse.Namespace:
    """What the command line of a study says: quick or not, and how many random splits."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="five tasks, one seed, nothing kept")
    parser.add_argument("--seeds", type=int, default=seeds, help=f"random splits (default {seeds})")
    return parser.parse_args()


def all_tasks(quick: bool, seeds: int, compare: Compare) -> pd.DataFrame:
    """The study on every task (five of them if quick), with a line of progress for each."""
    try:
        chosen = tasks(LEAST)
    except DataMissingError as error:
        sys.exit(str(error))
    frames = []
    for task in chosen[:5] if quick else chosen:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # models that have not quite converged are scores too
            frames.append(one_task(task, 1 if quick else seeds, compare))
        say(f"{task.name}: {frames[-1].groupby(CASE).ngroups} cases, {task.rows} rows")
    return pd.concat(frames, ignore_index=True)


def losses(results: pd.DataFrame, measure: str, methods: list[str]) -> pd.DataFrame:
    """Cases × methods, averaged over seeds."""
    mean = results.groupby([*CASE, "method"])[measure].mean()
    return mean.unstack("method")[methods]


def p_value(grid: pd.DataFrame, method: str, control: str) -> float:
    """Wilcoxon's signed rank over tasks (means of cases), two-sided; NaN if nothing differs."""
    by_task = grid.groupby("task").mean()
    difference = (by_task[method] - by_task[control]).to_numpy()
    return float(wilcoxon(difference).pvalue) if np.any(difference) else np.nan


def standings(grid: pd.DataFrame, control: str) -> pd.DataFrame:
    """Per method: mean rank, share of pairs won, loss above the best, and a test against one."""
    k = grid.shape[1]
    rank = grid.rank(axis=1)
    p = {name: p_value(grid, name, control) for name in grid}
    above = grid.sub(grid.min(axis=1), axis=0)
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
    """Standings as a Markdown table."""
    formats = ["{:.2f}", "{:.2f}", "{:.2f}", "{:.4f}", "{:.4f}", "{:.2g}"]
    rows = [
        (name, *(("–" if np.isnan(v) else f.format(v)) for f, v in zip(formats, row, strict=True)))
        for name, row in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    return table(("method", *frame.columns), rows)


def mean_ranks(grid: pd.DataFrame, by: str) -> str:
    """Mean rank of the grid's methods, a column for each value of a part of the case."""
    rank = grid.rank(axis=1).groupby(by).mean()
    rows = [(name, *(f"{rank.loc[value, name]:.2f}" for value in rank.index)) for name in grid]
    words = {"n": "n = {}"}.get(by, "{}")
    return table(("method", *(words.format(value) for value in rank.index)), rows)
