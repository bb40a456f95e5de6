"""ACP on the papers' datasets: ``python -m experiments.acp [--quick]``.

Which level its intervals should have, whether it beats calibrators that see the score alone, and
how many calibration rows its bins hold; on logistic regressions with the intervals of the delta
method, and on random forests with the spread of their trees.
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from sklearn.model_selection import StratifiedKFold, train_test_split

import calibrant as cal
from experiments import RESULTS, keep, say, table
from experiments.data import DataMissingError, Task, read, tasks
from experiments.near_isotonic import differences
from experiments.study import (
    CASE,
    CLIP,
    LEAST,
    MODELS,
    MOST,
    TEST,
    TRAIN,
    Array,
    encode,
    losses,
    options,
    p_value,
    sizes,
)

LOGISTIC, FOREST = "logistic regression", "random forest"
LEVELS = (0.95, 0.5, 0.2, 0.1)
#: the intervals that are tried, by name: level and scale
INTERVALS: dict[str, tuple[float, str]] = {
    **{f"ACP {level:g}": (level, "probability") for level in LEVELS},
    **{f"ACP {level:g} logit": (level, "logit") for level in (0.95, 0.1)},
}
SMOOTHING = {"": "none", " laplace": "laplace"}
CHOSEN = "ACP level by folds laplace"
NONE = "none"
OTHERS: dict[str, Any] = {
    NONE: cal.Uncalibrated(),
    "Platt": cal.Platt(),
    "Isotonic": cal.Isotonic(),
    "Isotonic laplace": cal.Isotonic(smoothing="laplace"),
    "ABB": cal.ABB(),
}
METHODS = [*OTHERS, *(f"{name}{words}" for words in SMOOTHING for name in INTERVALS), CHOSEN]
#: the level that did best with each kind of intervals: the one to look at closely
BEST = {LOGISTIC: "ACP 0.95", FOREST: "ACP 0.2"}
RIVALS = {
    "": (NONE, "Platt", "Isotonic", "ABB"),
    " laplace": (NONE, "Platt", "Isotonic laplace", "ABB"),
}
#: ACP against ACP: levels, scales, smoothing; and the level that needs no looking at test rows
AMONG = {
    LOGISTIC: [
        ("ACP 0.95", "ACP 0.5"),
        ("ACP 0.95 logit", "ACP 0.95"),
        ("ACP 0.95 laplace", "ACP 0.95"),
        (CHOSEN, "ACP 0.95 laplace"),
    ],
    FOREST: [
        ("ACP 0.2", "ACP 0.5"),
        ("ACP 0.2", "ACP 0.1"),
        (CHOSEN, "ACP 0.2 laplace"),
        (CHOSEN, "Isotonic laplace"),
        (CHOSEN, "ABB"),
    ],
}
#: groups of tasks by the model's ECE on all rows that are not for training or testing
ERRORS = (0.0, 0.02, 0.04, 1.0)


class Rows(NamedTuple):
    """Scores of a model, the ends of their intervals by name, and labels."""

    scores: Array
    ends: Mapping[str, tuple[Array, Array]]
    y: NDArray[np.intp]

    def take(self, rows: NDArray[np.intp]) -> Rows:
        ends = {name: (low[rows], high[rows]) for name, (low, high) in self.ends.items()}
        return Rows(self.scores[rows], ends, self.y[rows])

    def some(self, n: int, seed: int) -> Rows:
        """n of the rows, with the same share of positives."""
        rows = np.arange(len(self.y))
        if n < len(rows):
            rows, _ = train_test_split(rows, train_size=n, stratify=self.y, random_state=seed)
        return self.take(rows)


# --- the models and their intervals ---------------------------------------------------------------


def scored(X: pd.DataFrame, y: NDArray[np.intp], seed: int) -> Iterator[tuple[str, Rows, Rows]]:
    """Per model: rows left to calibrate on, and test rows, split as in the other studies."""
    train_rows, test_rows = min(TRAIN, int(0.3 * len(y))), min(TEST, int(0.35 * len(y)))
    index = np.arange(len(y))
    train, rest = train_test_split(index, train_size=train_rows, stratify=y, random_state=seed)
    pool, test = train_test_split(rest, test_size=test_rows, stratify=y[rest], random_state=seed)
    coder = encode(X.iloc[train])
    A, B, C = (coder.transform(X.iloc[rows]) for rows in (train, pool, test))
    for name in (LOGISTIC, FOREST):
        model = MODELS[name](seed).fit(A, y[train])
        yield name, with_ends(model, A, B, y[pool]), with_ends(model, A, C, y[test])


def with_ends(model: Any, train: Array, X: Array, y: NDArray[np.intp]) -> Rows:
    """A model's scores of X with all intervals: one call for each scale, other levels by its sd."""
    found = {
        scale: cal.prediction_interval(model, X, scale=scale, train=(train,))
        for scale in ("probability", "logit")
    }
    ends = {name: at(found[scale], level) for name, (level, scale) in INTERVALS.items()}
    return Rows(found["probability"].probability, ends, y)


def at(interval: Any, level: float) -> tuple[Array, Array]:
    """The ends of an interval at another level."""
    p, step = interval.probability, float(ndtri(0.5 + level / 2.0)) * interval.sd
    lower, upper = p - step, p + step
    if interval.scale == "logit":
        inner = (p > 0.0) & (p < 1.0)
        z = logit(np.where(inner, p, 0.5))
        with np.errstate(invalid="ignore"):
            lower = np.where(inner, expit(z - step), interval.lower)
            upper = np.where(inner, expit(z + step), interval.upper)
    return np.clip(lower, 0.0, p), np.clip(upper, p, 1.0)


# --- the methods ----------------------------------------------------------------------------------


def compare(known: Rows, new: Rows) -> list[dict[str, Any]]:
    """Every method, fitted on the known rows: its losses on the new ones."""
    found = []
    for name, calibrator in OTHERS.items():
        p = calibrator.fit(known.scores, known.y).calibrate(new.scores)
        found.append({"method": name, **measures(new.y, p)})
    smooth = {}
    for words, smoothing in SMOOTHING.items():
        fitted = cal.ACP(smoothing=smoothing).fit(known.scores, known.y)
        for name, (lower, upper) in new.ends.items():
            row = one_acp(fitted, new, lower, upper, len(known.y))
            smooth[name] = row
            found.append({"method": f"{name}{words}", **row})
    best = by_folds(known)
    found.append({"method": CHOSEN, "chosen": best, **smooth[best]})
    return found


def one_acp(fitted: Any, new: Rows, lower: Array, upper: Array, n: int) -> dict[str, Any]:
    """Losses of ACP, and what its bins hold."""
    bins = fitted.bins(new.scores, lower=lower, upper=upper)
    held = float(np.median(bins.weight))
    return {
        **measures(new.y, bins.probability),
        "empty": float(bins.empty.mean()),
        "under 10": float((bins.weight < 10).mean()),
        "held": held,
        "share": held / n,
        "width": float(np.mean(upper - lower)),
    }


def by_folds(known: Rows, folds: int = 5) -> str:
    """The interval (of the probability scale) with the least log loss over folds of known rows."""
    names = [name for name, (_, scale) in INTERVALS.items() if scale == "probability"]
    total = dict.fromkeys(names, 0.0)
    for train, test in StratifiedKFold(folds).split(known.scores, known.y):
        part, left = known.take(train), known.take(test)
        fitted = cal.ACP(smoothing="laplace").fit(part.scores, part.y)
        for name in names:
            lower, upper = left.ends[name]
            p = fitted.bins(left.scores, lower=lower, upper=upper).probability
            total[name] += cal.metrics.log_loss(left.y, p) * len(left.y)
    return min(total, key=lambda name: total[name])


def measures(y: NDArray[np.intp], p: Array) -> dict[str, float]:
    return {
        "Brier": cal.metrics.brier(y, p),
        "log loss": cal.metrics.log_loss(y, p, clip=CLIP),
        "ECE": cal.metrics.ece(y, p),
        "AUC": cal.metrics.auc(y, p),
        "infinite": float(np.any(np.where(y == 1, p == 0.0, p == 1.0))),
    }


def one_task(task: Task, seeds: int) -> pd.DataFrame:
    """A row per model, number of calibration rows, seed and method."""
    X, y = read(task, MOST)
    rows = []
    for seed in range(seeds):
        for model, pool, test in scored(X, y, seed):
            error = cal.metrics.ece(pool.y, pool.scores)
            for n in sizes(len(pool.y)):
                case = {"task": task.name, "model": model, "n": n, "seed": seed, "error": error}
                rows += [{**case, **row} for row in compare(pool.some(n, seed), test)]
    return pd.DataFrame(rows)


# --- the page -------------------------------------------------------------------------------------


def overview(results: pd.DataFrame) -> str:
    """Every method: mean losses, win rates among all others, and tests against doing nothing."""
    columns: list[list[str]] = []
    for measure in ("Brier", "log loss", "ECE"):
        grid = losses(results, measure, METHODS)
        wins = (len(METHODS) - grid.rank(axis=1).mean()) / (len(METHODS) - 1)
        columns += [[f"{value:.4f}" for value in grid.mean()], [f"{value:.2f}" for value in wins]]
        if measure != "ECE":
            p = [p_value(grid, name, NONE) for name in METHODS]
            columns.append([f"{value:.2g}".replace("nan", "–") for value in p])
    for measure, digits in (("AUC", 4), ("infinite", 2)):
        columns.append([f"{v:.{digits}f}" for v in losses(results, measure, METHODS).mean()])
    words = ("Brier", "wins", "p", "log loss", "wins", "p", "ECE", "wins", "AUC", "infinite")
    return table(("method", *words), zip(METHODS, *columns, strict=True))


def holds(results: pd.DataFrame) -> str:
    """What bins hold, by interval and number of calibration rows."""
    rows = []
    for name in INTERVALS:
        for n, part in results[results["method"] == name].groupby("n"):
            mean = part[["width", "empty", "under 10", "held", "share"]].mean()
            cells = (f"{mean['held']:.0f}", f"{100 * mean['share']:.0f} %")
            shares = (f"{100 * mean['empty']:.1f} %", f"{100 * mean['under 10']:.1f} %")
            rows.append((name, n, f"{mean['width']:.3f}", *cells, *shares))
    words = ("mean width", "rows in the median bin", "share of n", "empty", "under 10 rows")
    return table(("intervals", "n", *words), rows)


def closely(best: str) -> list[tuple[str, str]]:
    """The pairs that are looked at closely: raw against raw, smoothed against smoothed."""
    return [(best + words, rival) for words, rivals in RIVALS.items() for rival in rivals]


def by_error(results: pd.DataFrame, pairs: list[tuple[str, str]]) -> str:
    """Differences in groups of tasks whose model is less and more in error."""
    error = results.groupby("task")["error"].transform("mean")
    names = [f"{low:g} to {high:g}" for low, high in itertools.pairwise(ERRORS)]
    group = pd.cut(error, ERRORS, labels=names, include_lowest=True).astype(str)
    # groups come in the order of their first task
    named = results.assign(model=group, task=group + " " + results["task"])
    text = differences(named, pairs, "model")
    return text.replace("| model |", "| ECE of the model |", 1)


def levels(results: pd.DataFrame) -> str:
    """How often folds chose each level."""
    part = results[results["method"] == CHOSEN]
    counts = part.groupby("n")["chosen"].value_counts().unstack(fill_value=0)
    names = [name for name in INTERVALS if name in counts]
    rows = [(n, *(int(counts.loc[n, name]) for name in names)) for n in counts.index]
    return table(("n", *names), rows)


def summary(results: pd.DataFrame, minutes: float) -> str:
    """The study as a page."""
    parts = [
        HEADING.format(
            tasks=results["task"].nunique(),
            cases=results.groupby(["task", "n"]).ngroups,
            seeds=results["seed"].nunique(),
            minutes=minutes,
        )
    ]
    for model, best in BEST.items():
        some = results[results["model"] == model]
        pairs = closely(best)
        sections = {
            "all methods": overview(some),
            "what the bins hold": holds(some),
            f"{best} by the number of calibration rows": differences(some, pairs, "n"),
            f"{best} by how wrong the model is": by_error(some, pairs),
            "levels, scales and smoothing": differences(some, AMONG[model], "n"),
            "levels that folds chose": levels(some),
        }
        title = model.capitalize()
        parts += [f"## {title}: {name}\n\n{text}" for name, text in sections.items()]
    return "\n\n".join(parts)


HEADING = """# ACP: levels, rivals, and what bins hold

{tasks} binary tasks, logistic regression (L2, C = 1; intervals by the delta method) and random
forest (100 fully grown trees; intervals from the spread of the trees), at most 2,000 rows to train
on, calibrated on 200, 1,000 and 5,000 other rows where there are so many and judged on up to 3,000
more; losses averaged over {seeds} random splits: {cases} cases for each model. Log loss clips p to
[1e-6, 1 − 1e-6].

"ACP 0.95" is the paper's: intervals of 95 % on the probability scale and bare frequencies; other
levels alike. "Laplace" adds one row of each class to every bin. "Level by folds" takes, of the four
levels, the one with the least log loss over five folds of the calibration rows. The level that is
looked at closely, for each model, is the one that did best on the test rows.

*Wins* in the first tables: share of the other methods that are beaten, over cases; in the others:
share of cases in which the first method has the lower loss (ties count half), and *difference* its
mean loss less that of the second. *p*: Wilcoxon's signed rank over tasks (mean loss of a task),
two-sided, against doing nothing or against the method named; not corrected for the number of
comparisons. *Infinite*: share of fits that gave probability 0 to something that happened on the
test rows. *Empty*: share of test rows without a calibration score in their interval. What bins hold
are means over tasks, of the tasks that have so many rows. *ECE of the model*: on all rows that are
neither for training nor for testing, mean over splits.

Made by `python -m experiments.acp`, which took {minutes:.0f} minutes."""


def save(results: pd.DataFrame) -> None:
    """Means per task, model, number of rows and method."""
    columns = ["Brier", "log loss", "ECE", "AUC", "infinite", "width", "empty", "under 10", "held"]
    mean = results.groupby([*CASE, "method"])[columns].mean().round(5)
    mean.to_csv(RESULTS / "acp.csv")


def main() -> None:
    chosen = options(__doc__, seeds=5)
    begin = time.monotonic()
    try:
        everything = tasks(LEAST)
    except DataMissingError as error:
        sys.exit(str(error))
    frames = []
    for task in everything[:5] if chosen.quick else everything:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # models not quite converged, folds with few positives
            frames.append(one_task(task, 1 if chosen.quick else chosen.seeds))
        say(f"{task.name}: {frames[-1].groupby(CASE).ngroups} cases, {task.rows} rows")
    results = pd.concat(frames, ignore_index=True)
    page = summary(results, (time.monotonic() - begin) / 60)
    if chosen.quick:
        say(page)
    else:
        keep("acp.md", page)
        save(results)


if __name__ == "__main__":
    main()
