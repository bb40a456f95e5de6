"""Calibrators that look at the columns of a row: ``python -m experiments.features [--quick]``.

The protocol, which was fixed before the study was run:

*Tasks.* One of each dataset of `experiments.data` with at least 2,000 rows and 4 columns: the first
by name. At most 30,000 rows, drawn once. Of these 30 % (at most 4,000) to train on, 35 % (at most
5,000) to test on; the others to calibrate on: 1,000 of them, and up to 10,000.

*Models.* Weak: a logistic regression on all columns. Strong: boosted trees on all columns.
Overconfident: naive Bayes on all columns. Fewer columns: boosted trees on half of the columns,
drawn by the seed. Calibrators see all columns and the score.

*Methods*, with their defaults. Segments are those of one column: the one whose groups (categories,
or fifths of a number) explain most of what BLS leaves unexplained on the calibration rows.

*Measures* on the test rows: log loss (probabilities clipped to [1e-6, 1 − 1e-6]), Brier score, and
the largest error of a group beyond chance: `cal.metrics.multicalibration`, ``largest`` less
``largest_expected``. A case is *made worse* where its log loss is above that of the score as it is,
by any amount, and *clearly* by more than two standard errors of the paired difference.

Every case that was finished is kept, so that a run that was interrupted goes on.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

import calibrant as cal
from experiments import RESULTS, keep, say, table
from experiments.data import DataMissingError, Task, read, tasks
from experiments.study import CLIP, MODELS, Array, encode, options

LEAST_ROWS, LEAST_COLUMNS = 2000, 4
MOST, TRAIN, TEST = 30_000, 4000, 5000
SIZES = (1000, 10_000)
#: groups that one column may have
MOST_GROUPS, FIFTHS = 20, 5
NONE = "none"
KEPT = RESULTS / "features_cases.csv"
CASE = ["task", "model", "n", "seed"]

Labels = NDArray[np.intp]


class Rows(NamedTuple):
    """A model's scores, the columns of the rows, and labels."""

    scores: Array
    columns: pd.DataFrame
    y: Labels

    def take(self, rows: NDArray[np.intp]) -> Rows:
        return Rows(self.scores[rows], self.columns.iloc[rows], self.y[rows])


# --- models ---------------------------------------------------------------------------------------


def half(X: pd.DataFrame, seed: int) -> list[str]:
    """Half of the columns."""
    order = np.random.default_rng(seed).permutation(X.shape[1])
    return [X.columns[j] for j in sorted(order[: X.shape[1] // 2])]


#: which model, and on which columns
BASES: dict[str, tuple[str, Callable[[pd.DataFrame, int], list[str]]]] = {
    "weak": ("logistic regression", lambda X, seed: list(X.columns)),
    "strong": ("boosted trees", lambda X, seed: list(X.columns)),
    "overconfident": ("naive Bayes", lambda X, seed: list(X.columns)),
    "fewer columns": ("boosted trees", half),
}


def scored(X: pd.DataFrame, y: Labels, seed: int) -> Iterator[tuple[str, Rows, Rows]]:
    """Per model: rows to calibrate on, and rows to test on."""
    train_rows, test_rows = min(TRAIN, int(0.3 * len(y))), min(TEST, int(0.35 * len(y)))
    index = np.arange(len(y))
    train, rest = train_test_split(index, train_size=train_rows, stratify=y, random_state=seed)
    pool, test = train_test_split(rest, test_size=test_rows, stratify=y[rest], random_state=seed)
    for name, (model, chosen) in BASES.items():
        seen = X[chosen(X, seed)]
        coder = encode(seen.iloc[train])
        fitted = MODELS[model](seed).fit(coder.transform(seen.iloc[train]), y[train])
        pair = []
        for rows in (pool, test):
            p = fitted.predict_proba(coder.transform(seen.iloc[rows]))[:, 1]
            pair.append(Rows(p, X.iloc[rows].reset_index(drop=True), y[rows]))
        yield name, pair[0], pair[1]


# --- methods --------------------------------------------------------------------------------------


def groups_of(column: pd.Series, edges: Array | None) -> NDArray[Any]:
    """The group of each row: its category, or the fifth of its number."""
    if edges is None:
        return column.astype(str).to_numpy(dtype=object)
    return np.searchsorted(edges, column.to_numpy(dtype=float), side="right").astype(object)


def best_column(known: Rows) -> tuple[str, Array | None]:
    """The column whose groups explain most of what BLS leaves unexplained, and where it is cut."""
    left = known.y - cal.BLS().fit(known.scores, known.y).calibrate(known.scores)
    found: list[tuple[float, str, Array | None]] = []
    for name in known.columns.columns:
        column, edges = known.columns[name], None
        if pd.api.types.is_numeric_dtype(column):
            edges = np.unique(np.nanquantile(column, np.arange(1, FIFTHS) / FIFTHS))
        elif column.nunique() > MOST_GROUPS:
            continue
        mean = pd.Series(left).groupby(groups_of(column, edges)).transform("mean")
        found.append((float((mean**2).sum()), str(name), edges))
    return max(found, key=lambda one: one[0])[1:]


def by_segment(known: Rows, new: Rows) -> Array:
    name, edges = best_column(known)
    fitted = cal.SegmentedCalibrator().fit(
        known.scores, known.y, segments=groups_of(known.columns[name], edges)
    )
    return np.asarray(fitted.calibrate(new.scores, groups_of(new.columns[name], edges)))


def of_score(calibrator: Any) -> Callable[[Rows, Rows], Array]:
    def method(known: Rows, new: Rows) -> Array:
        return np.asarray(calibrator.fit(known.scores, known.y).calibrate(new.scores))

    return method


def of_columns(calibrator: Any) -> Callable[[Rows, Rows], Array]:
    def method(known: Rows, new: Rows) -> Array:
        calibrator.fit(known.scores, known.y, features=known.columns)
        return np.asarray(calibrator.calibrate(new.scores, features=new.columns))

    return method


def mcgrad(known: Rows, new: Rows) -> Array:
    from mcgrad.methods import MCGrad

    plain = [f"c{j}" for j in range(known.columns.shape[1])]  # LightGBM refuses some names
    given = [rows.columns.set_axis(plain, axis=1) for rows in (known, new)]
    numbers = [n for n in plain if pd.api.types.is_numeric_dtype(given[0][n])]
    words = [n for n in plain if n not in set(numbers)]
    names = {"numerical_feature_column_names": numbers, "categorical_feature_column_names": words}
    frames = [
        columns.assign(**{n: columns[n].astype(str) for n in words}).assign(
            _score=np.clip(rows.scores, CLIP, 1.0 - CLIP), _label=rows.y
        )
        for columns, rows in zip(given, (known, new), strict=True)
    ]
    model = MCGrad()
    model.fit(frames[0], prediction_column_name="_score", label_column_name="_label", **names)
    return np.asarray(model.predict(frames[1], prediction_column_name="_score", **names))


METHODS: dict[str, Callable[[Rows, Rows], Array]] = {
    NONE: of_score(cal.Uncalibrated()),
    "BLS": of_score(cal.BLS()),
    "default": of_score(cal.AutoCalibrator()),
    "default, columns": of_columns(cal.AutoCalibrator()),
    "FeatureCalibrator": of_columns(cal.FeatureCalibrator()),
    "FeatureCalibrator, no gate": of_columns(cal.FeatureCalibrator(gate=False)),
    "segments": by_segment,
    "SimilarityBinning": of_columns(cal.SimilarityBinning(gate=False)),
    "SimilarityBinning, gate": of_columns(cal.SimilarityBinning()),
    "MCGrad": mcgrad,
}


def methods() -> list[str]:
    """Those that are installed."""
    try:
        import mcgrad  # noqa: F401
    except ImportError:
        say("MCGrad is not installed and left out: pip install mcgrad")
        return [name for name in METHODS if name != "MCGrad"]
    return list(METHODS)


# --- cases ----------------------------------------------------------------------------------------


def compare(known: Rows, new: Rows, names: list[str]) -> list[dict[str, Any]]:
    """Every method, fitted on the known rows: its figures on the new ones."""
    base, found = None, []
    for name in names:
        begin, error = time.process_time(), ""
        try:
            p = METHODS[name](known, new)
        except Exception as failure:  # a method that fails is counted, and not hidden
            p, error = new.scores, f"{type(failure).__name__}: {failure}"[:200]
        row = {"method": name, "seconds": time.process_time() - begin, "failed": error}
        clipped = np.clip(p, CLIP, 1.0 - CLIP)
        loss = -np.log(np.where(new.y == 1, clipped, 1.0 - clipped))
        base = loss if base is None else base
        apart = loss - base
        row["log loss"], row["Brier"] = loss.mean(), float(np.mean((p - new.y) ** 2))
        row["se"] = float(apart.std(ddof=1) / np.sqrt(len(apart)))
        groups = cal.metrics.multicalibration(new.y, p, features=new.columns, replicates=200)
        row["worst group"] = groups.largest - groups.largest_expected
        found.append(row)
    return found


def cases(X: pd.DataFrame, y: Labels, seed: int) -> Iterator[tuple[str, Rows, Rows]]:
    for model, pool, test in scored(X, y, seed):
        random = np.random.default_rng(seed)
        order = random.permutation(len(pool.y))
        for n in sorted({min(n, len(order)) for n in SIZES}):
            yield model, pool.take(np.sort(order[:n])), test


def chosen_tasks() -> list[Task]:
    """One task of each dataset that is large enough."""
    first: dict[str, Task] = {}
    for task in tasks(LEAST_ROWS):
        if int(task.entry["n_features"]) >= LEAST_COLUMNS:
            first.setdefault(task.entry["name"], task)
    return list(first.values())


def run(seeds: int, names: list[str], most: int | None) -> pd.DataFrame:
    """All cases; those that were kept are not computed again."""
    done = pd.read_csv(KEPT) if KEPT.exists() else pd.DataFrame(columns=CASE)
    for task in chosen_tasks()[:most]:
        X, y = read(task, MOST)
        for seed in range(seeds):
            if ((done["task"] == task.name) & (done["seed"] == seed)).any():
                continue
            rows = []
            for model, known, new in cases(X, y, seed):
                case = dict(zip(CASE, (task.name, model, len(known.y), seed), strict=True))
                rows += [{**case, **row} for row in compare(known, new, names)]
            done = pd.concat([done, pd.DataFrame(rows)], ignore_index=True)
            done.to_csv(KEPT.with_suffix(".tmp"), index=False, float_format="%.6g")
            KEPT.with_suffix(".tmp").replace(KEPT)
            say(f"{task.name}, seed {seed}: {len(rows)} rows")
    return done


# --- the page -------------------------------------------------------------------------------------


def standing(part: pd.DataFrame, names: list[str]) -> list[tuple[object, ...]]:
    """Means, win rate on log loss, and shares made worse, a line for each method."""
    grid = part.pivot_table(index=CASE, columns="method", values="log loss")[names]
    wins = (len(names) - grid.rank(axis=1).mean()) / (len(names) - 1)
    worse = grid.gt(grid[NONE], axis=0).mean()
    se = part.pivot_table(index=CASE, columns="method", values="se")[names]
    clearly = grid.sub(grid[NONE], axis=0).gt(2.0 * se).mean()
    mean = part.groupby("method")[["log loss", "Brier", "worst group", "seconds"]].mean()
    failed = part["failed"].astype(object).fillna("").ne("").groupby(part["method"]).sum()
    return [
        (
            name,
            f"{mean.loc[name, 'log loss']:.4f}",
            f"{mean.loc[name, 'Brier']:.4f}",
            f"{mean.loc[name, 'worst group']:.4f}",
            f"{wins[name]:.2f}",
            f"{100 * worse[name]:.0f} %",
            f"{100 * clearly[name]:.0f} %",
            f"{mean.loc[name, 'seconds']:.1f}",
            int(failed[name]),
        )
        for name in names
    ]


HEAD = ("method", "log loss", "Brier", "worst group", "wins", "worse", "clearly", "CPU s", "failed")


def summary(results: pd.DataFrame) -> str:
    """The study as a page."""
    names = [name for name in METHODS if name in set(results["method"])]
    counted = results.drop_duplicates(CASE)
    parts = [
        HEADING.format(
            tasks=results["task"].nunique(), cases=len(counted), seeds=results["seed"].nunique()
        ),
        "## All cases\n\n" + table(HEAD, standing(results, names)),
    ]
    for model in BASES:
        part = results[results["model"] == model]
        parts.append(f"## {model.capitalize()}\n\n{table(HEAD, standing(part, names))}")
    parts.append(
        "## Log loss by task, with the most calibration rows\n\n" + by_task(results, names)
    )
    return "\n\n".join(parts)


def by_task(results: pd.DataFrame, names: list[str]) -> str:
    most = results[results["n"] == results.groupby("task")["n"].transform("max")]
    grid = most.pivot_table(index=["task", "model"], columns="method", values="log loss")[names]
    rows = [(*index, *(f"{value:.4f}" for value in row)) for index, row in grid.iterrows()]
    return table(("task", "model", *names), rows)


HEADING = """# Calibrators that look at the columns of a row

{tasks} tasks, four models, 1,000 and up to 10,000 calibration rows, random splits: {seeds}. In all
{cases} cases. The protocol stands in `experiments/features.py`; it was fixed before the study was
run.

*Worst group*: the largest error of a group of the test rows, less what chance gives. *Wins*: share
of the other methods that are beaten on log loss, over cases, ties half. *Worse*: share of cases
with a larger log loss than the score as it is; *clearly*: by more than two standard errors. *CPU
s*: to fit and to apply. A method that *failed* counts as the score as it is.

Made by `python -m experiments.features`."""


def main() -> None:
    chosen = options(__doc__, seeds=1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # models not quite converged, columns of one value
            results = run(chosen.seeds, methods(), 2 if chosen.quick else None)
    except DataMissingError as error:
        sys.exit(str(error))
    keep("features.md", summary(results))


if __name__ == "__main__":
    main()
