"""Ranking and calibration along the path: ``python -m experiments.near_isotonic_path [--quick]``.

A near-isotonic fit p(λ) follows the data at small λ and is the isotonic fit in the end. On the
calibration rows its AUC falls all the way, from that of the data to that of the convex hull of the
scores' ROC curve; here is what becomes of AUC, ECE and Brier score on other rows.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import calibrant as cal
from experiments import RESULTS, keep, say, table
from experiments.data import DataMissingError, tasks
from experiments.study import LEAST, Array, Scored, one_task, options

#: a handful of tasks with room for 1,000 rows: common and rare positives, easy and hard
TASKS = ("adult", "cod_rna", "covtype_class1", "mammography", "spambase", "tic")
ROWS = 1000
#: λ as a share of the last breakpoint, where the fit becomes isotonic
SHARES = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
MEASURES = ("AUC in sample", "AUC", "ECE", "Brier")


def step(known: cal.ScoreTable, values: Array) -> Callable[[Array], Array]:
    """A fit as a map: steps halfway between scores."""
    new = np.flatnonzero(np.diff(values) != 0.0)
    return cal.maps.Piecewise.step(known.cuts(new), values[np.append(0, new + 1)])


def judge(data: Scored, fit: Callable[[Array], Array]) -> dict[str, float]:
    """AUC on the calibration rows, and AUC, ECE and Brier score on the test rows."""
    p = fit(data.new)
    figures = (
        cal.metrics.auc(data.y_new, p),
        cal.metrics.ece(data.y_new, p),
        cal.metrics.brier(data.y_new, p),
    )
    return dict(zip(MEASURES, (cal.metrics.auc(data.y, fit(data.scores)), *figures), strict=True))


def along(data: Scored) -> list[dict[str, Any]]:
    """The fits along the path of 1,000 rows, and the scores and averages to compare them with."""
    if len(data.y) != ROWS:
        return []
    known = cal.ScoreTable.from_arrays(data.scores, data.y)
    path = cal.calibrators.near_isotonic_path(known)
    places = {f"{share:g}": share * float(path.lambdas[-1]) for share in SHARES}
    places["least BIC"] = float(path.lambdas[np.argmin(path.bic)])
    rows = []
    for name, lambda_ in places.items():
        values = path.at(lambda_)
        bins = 1 + int(np.count_nonzero(np.diff(values)))
        rows.append({"fit": name, "bins": bins, **judge(data, step(known, values))})
    for name, method in {"scores": cal.Uncalibrated(), "ENIR": cal.ENIR(variant="paper")}.items():
        rows.append({"fit": name, **judge(data, method.fit_table(known).calibrate)})
    return rows


def summary(results: pd.DataFrame, minutes: float) -> str:
    """The study as a page."""
    text = HEADING.format(
        tasks=", ".join(results["task"].unique()),
        cases=results.groupby(["task", "model", "seed"]).ngroups,
        minutes=minutes,
    )
    order = list(dict.fromkeys(results["fit"]))
    mean = results.groupby("fit")[["bins", *MEASURES]].mean().loc[order]
    parts = [text, f"## Mean of all cases\n\n{as_table(mean)}"]
    for task, part in results.groupby("task"):
        mean = part.groupby("fit")[["bins", *MEASURES]].mean().loc[order]
        parts.append(f"## {task}\n\n{as_table(mean)}")
    return "\n\n".join(parts)


def as_table(mean: pd.DataFrame) -> str:
    """The means for reading."""
    formats = ("{:.0f}", "{:.4f}", "{:.4f}", "{:.4f}", "{:.4f}")
    rows = [
        (name, *("" if np.isnan(v) else f.format(v) for f, v in zip(formats, row, strict=True)))
        for name, row in zip(mean.index, mean.to_numpy(), strict=True)
    ]
    return table(("λ / last λ", *mean.columns), rows)


HEADING = """# AUC and calibration along the near-isotonic path

Tasks: {tasks}.

The fits p(λ) to 1,000 rows of the scores of five models on each; {cases} cases in all, judged on up
to 3,000 other rows. λ as a share of the last breakpoint: at 0 the fit is the data themselves, at 1
it is isotonic. "Least BIC" is one fit of the path, ENIR (variant="paper") the average over all of
it, "scores" the scores unchanged (margins through σ). Fits are steps of raw bin values. "AUC in
sample" is that of the calibration rows, the other measures are those of the test rows; ECE has ten
bins of equal width.

Made by `python -m experiments.near_isotonic_path`, which took {minutes:.1f} minutes."""


def main() -> None:
    chosen = options(__doc__, seeds=5)
    begin = time.monotonic()
    try:
        wanted = [task for task in tasks(LEAST) if task.name in TASKS]
    except DataMissingError as error:
        sys.exit(str(error))
    frames = []
    for task in wanted[: 1 if chosen.quick else None]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # models that have not quite converged are scores too
            frames.append(one_task(task, 1 if chosen.quick else chosen.seeds, along))
        say(f"{task.name}: {task.rows} rows")
    results = pd.concat(frames, ignore_index=True)
    page = summary(results, (time.monotonic() - begin) / 60)
    if chosen.quick:
        say(page)
        return
    keep("near_isotonic_path.md", page)
    mean = results.groupby(["task", "model", "fit"], sort=False)[["bins", *MEASURES]].mean()
    mean.round(5).to_csv(RESULTS / "near_isotonic_path.csv")


if __name__ == "__main__":
    main()
