"""How many bin boundaries to expect: ``python -m experiments.binning_lambda [--quick]``.

SBB and ABB with fixed λ, the λ of the largest evidence, and the average over λ, judged out of
sample on the scores of five kinds of model on the papers' datasets (see `experiments.data`), with
other methods for reference.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd

import calibrant as cal
from experiments import RESULTS, keep, say, table
from experiments.data import Task
from experiments.study import (
    CASE,
    CLIP,
    MODELS,
    SIZES,
    Scored,
    all_tasks,
    as_table,
    losses,
    mean_ranks,
    options,
    standings,
)
from experiments.study import one_task as study_task

__all__ = ["CASE", "METHODS", "MODELS", "SIZES", "compare", "one_task", "standings", "summary"]

CHOICES: tuple[float | str, ...] = (1, 3, 10, 30, 100, 300, "empirical", "average")
#: the ends of the grid of λ that "empirical" and "average" use
ENDS = (0.1, 1e4)

FAMILIES = {
    "SBB": {f"SBB {choice}": cal.SBB(lambda_=choice) for choice in CHOICES},
    "ABB": {f"ABB {choice}": cal.ABB(lambda_=choice) for choice in CHOICES},
}
REFERENCES = {
    "Identity": cal.Uncalibrated(),
    "Platt": cal.Platt(),
    "Isotonic": cal.Isotonic(),
    "BBQ": cal.BBQ(),
}
METHODS: dict[str, Any] = {**FAMILIES["SBB"], **FAMILIES["ABB"], **REFERENCES}


def compare(data: Scored) -> list[dict[str, Any]]:
    """Every method: test losses, and where λ came to lie."""
    rows = []
    for name, calibrator in METHODS.items():
        p = calibrator.fit(data.scores, data.y).calibrate(data.new)
        loss = cal.metrics.log_loss(data.y_new, p, clip=CLIP)
        row = {"method": name, "log loss": loss, "Brier": cal.metrics.brier(data.y_new, p)}
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
    return study_task(task, seeds, compare)


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
        text = mean_ranks(losses(results, "log loss", list(members)), "n")
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
    chosen = options(__doc__, seeds=3)
    begin = time.monotonic()
    results = all_tasks(chosen.quick, chosen.seeds, compare)
    page = summary(results, (time.monotonic() - begin) / 60)
    if chosen.quick:
        say(page)
    else:
        keep("binning_lambda.md", page)
        save(results)


if __name__ == "__main__":
    main()
