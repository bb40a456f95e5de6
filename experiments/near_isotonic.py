"""ENIR and ELiTE on the papers' datasets: ``python -m experiments.near_isotonic [--quick]``.

How to treat ENIR's bins, whether the union of near-isotonic and piecewise linear beats both of its
parents, and whether ELiTE's lines are better drawn in the score or in its logit; judged out of
sample on the scores of five kinds of model (see `experiments.study`).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd

import calibrant as cal
from experiments import RESULTS, keep, say, table
from experiments.study import (
    CASE,
    CLIP,
    ENIR_BINS,
    Array,
    Scored,
    all_tasks,
    as_table,
    losses,
    mean_ranks,
    options,
    p_value,
    standings,
)

ENIR = "ENIR {interpolation} {smoothing}".format(**ENIR_BINS)
#: ENIR's treatments of bins: steps or lines, raw or smoothed; raw steps are the paper's text
BINS: dict[str, Any] = {
    f"ENIR {kind} {smoothing}": cal.ENIR(interpolation=kind, smoothing=smoothing)
    for kind in ("step", "linear")
    for smoothing in ("none", "laplace", "jeffreys")
}
BINS["ENIR authors"] = cal.ENIR(variant="authors")
#: other weights of the models, and fewer models
WEIGHTS: dict[str, Any] = {
    f"{ENIR}, {criterion} {models}": cal.ENIR(criterion=criterion, models=models, **ENIR_BINS)
    for criterion, models in (("bic", "best"), ("bic", "elbow"), ("aic", "all"), ("aicc", "all"))
}
#: what the study calls the choices of ``falls``
MONOTONE = {"none": "free", "near": "priced", "strict": "forbidden"}
LINES: dict[str, Any] = {
    f"ELiTE {monotone} {scale}": cal.ELiTE(falls=falls, scale=scale)
    for scale in ("raw", "auto")
    for monotone, falls in MONOTONE.items()
}
#: ELiTE with other limits of p, other weights, fewer models, and parabolas in place of lines
OTHERS: dict[str, Any] = {
    "ELiTE none auto, clip paper": cal.ELiTE(scale="auto", clip="paper"),
    "ELiTE none auto, bic": cal.ELiTE(scale="auto", criterion="bic"),
    "ELiTE none auto, best": cal.ELiTE(scale="auto", models="best"),
    "ELiTE none auto, degree 2": cal.ELiTE(scale="auto", degree=2),
}
REFERENCES: dict[str, Any] = {
    "Identity": cal.Uncalibrated(),
    "Platt": cal.Platt(),
    "Isotonic": cal.Isotonic(),
    "Isotonic linear jeffreys": cal.Isotonic(interpolation="linear", smoothing="jeffreys"),
    "Isotonic centred laplace": cal.Isotonic(interpolation="centred", smoothing="laplace"),
    "BBQ": cal.BBQ(),
    "ABB": cal.ABB(),
}
METHODS: dict[str, Any] = {**BINS, **WEIGHTS, **LINES, **OTHERS, **REFERENCES}
MEASURES = ["log loss", "Brier", "ECE", "AUC"]


def compare(data: Scored) -> list[dict[str, Any]]:
    """Every method: test losses, and whether log loss without clipping would be infinite."""
    margins = data.scores.min() < 0.0 or data.scores.max() > 1.0
    p: dict[str, Array] = {}
    for name, calibrator in METHODS.items():
        raw = name.replace(" auto", " raw")
        if margins and raw in p:  # margins have no logit: both scales are one
            p[name] = p[raw]
        else:
            p[name] = calibrator.fit(data.scores, data.y).calibrate(data.new)
    return [
        {
            "method": name,
            "log loss": cal.metrics.log_loss(data.y_new, value, clip=CLIP),
            "Brier": cal.metrics.brier(data.y_new, value),
            "ECE": cal.metrics.ece(data.y_new, value),
            "AUC": cal.metrics.auc(data.y_new, value),
            "infinite": float(np.any(np.where(data.y_new == 1, value == 0.0, value == 1.0))),
        }
        for name, value in p.items()
    ]


def section(results: pd.DataFrame, methods: list[str], control: str) -> str:
    """Standings on log loss and on the Brier score."""
    parts = [
        f"On {words}:\n\n{as_table(standings(losses(results, measure, methods), control))}"
        for measure, words in (("log loss", "log loss"), ("Brier", "the Brier score"))
    ]
    return "\n\n".join(parts)


def ranks(results: pd.DataFrame, methods: list[str], by: str) -> str:
    """Mean ranks on log loss within groups of cases."""
    return mean_ranks(losses(results, "log loss", methods), by)


def infinite(results: pd.DataFrame, methods: list[str]) -> str:
    """The share of fits whose log loss would be infinite, by the number of calibration rows."""
    share = results.groupby(["method", "n"])["infinite"].mean().unstack("n").loc[methods]
    whole = results.groupby("method")["infinite"].mean()
    rows = [
        (name, *(f"{value:.3f}" for value in (*share.loc[name], whole[name]))) for name in methods
    ]
    return table(("method", *(f"n = {n}" for n in share.columns), "all"), rows)


def differences(results: pd.DataFrame, pairs: list[tuple[str, str]], by: str) -> str:
    """Pairs of methods: how often the first has the lower loss, by how much, and a p."""
    rows = []
    for first, second in pairs:
        log, brier = (losses(results, name, [first, second]) for name in ("log loss", "Brier"))
        for name in ["all", *log.index.unique(by)]:
            cells: list[str] = []
            for grid in (log, brier):
                part = grid if name == "all" else grid.xs(name, level=by, drop_level=False)
                change, p = part[first] - part[second], p_value(part, first, second)
                wins = (change < 0).mean() + (change == 0).mean() / 2
                cells += [f"{wins:.2f}", f"{change.mean():+.4f}", f"{p:.2g}".replace("nan", "–")]
            rows.append((first, second, name, *cells))
    columns = ("log loss: wins", "difference", "p", "Brier: wins", "difference", "p")
    return table(("method", "against", by, *columns), rows)


def ranking(results: pd.DataFrame, methods: list[str]) -> str:
    """Mean test AUC less that of the scores, and mean ECE, by method."""
    rows = []
    areas, errors = (losses(results, measure, methods) for measure in ("AUC", "ECE"))
    for name in methods:
        change, error = areas[name] - areas["Identity"], errors[name]
        figures = f"{change.mean():+.4f}", f"{change.quantile(0.05):+.4f}", f"{error.mean():.4f}"
        rows.append((name, *figures))
    return table(("method", "AUC above the scores'", "5 % of cases below", "ECE"), rows)


def like_table_8(results: pd.DataFrame) -> str:
    """ELiTE less ENIR: the median over tasks with Wilcoxon's p, by model."""
    first, second = "ELiTE none raw", ENIR
    rows = []
    for measure in MEASURES:
        grid = losses(results, measure, [first, second])
        cells = []
        for _, part in grid.groupby("model"):
            by_task = part.groupby("task").mean()
            median = (by_task[first] - by_task[second]).median()
            cells.append(f"{median:+.4f} ({p_value(part, first, second):.2g})")
        rows.append((measure, *cells))
    return table(("measure", *sorted(results["model"].unique())), rows)


def summary(results: pd.DataFrame, minutes: float) -> str:
    """The study as a page."""
    heading = HEADING.format(
        tasks=results["task"].nunique(),
        cases=results.groupby(CASE).ngroups,
        seeds=results["seed"].nunique(),
        enir=ENIR,
        minutes=minutes,
    )
    raw, auto = ([f"ELiTE {m} {scale}" for m in MONOTONE] for scale in ("raw", "auto"))
    bins, lines = [*BINS], [ENIR, *raw, *auto]
    final = [ENIR, raw[0], *auto, *REFERENCES]
    union = [
        (f"ELiTE {first} {scale}", second.format(scale))
        for scale in ("raw", "auto")
        for first, second in (
            ("near", ENIR),
            ("near", "ELiTE none {}"),
            ("strict", "ELiTE none {}"),
            ("strict", "ELiTE near {}"),
        )
    ]
    same_bins = [(ENIR, "Isotonic {interpolation} {smoothing}".format(**ENIR_BINS))]
    parts = {
        "Bins of ENIR": section(results, bins, ENIR),
        "Bins of ENIR: mean rank on log loss by rows": ranks(results, bins, "n"),
        "Share of fits with an infinite log loss": infinite(results, list(METHODS)),
        "Weights and models of ENIR": section(results, [ENIR, *WEIGHTS], ENIR),
        "ENIR against isotonic regression": differences(results, same_bins, "model"),
        "The union and its parents": section(results, lines, "ELiTE near auto"),
        "The union against its parents": differences(results, union, "n"),
        "Lines in the logit against lines in the score": differences(
            results, list(zip(auto, raw, strict=True)), "model"
        ),
        "Other ways to ELiTE": section(results, [auto[0], *OTHERS], auto[0]),
        "Beside other methods": section(results, final, "ELiTE near auto"),
        "Beside other methods: mean rank on log loss by model": ranks(results, final, "model"),
        "Beside other methods: mean rank on log loss by rows": ranks(results, final, "n"),
        "Ranking and calibration": ranking(results, final),
        "ELiTE less ENIR, as in the paper's Table 8": like_table_8(results),
    }
    return "\n\n".join([heading, *(f"## {title}\n\n{text}" for title, text in parts.items())])


HEADING = """# ENIR, ELiTE and their union

{tasks} binary tasks × five models (Gaussian naive Bayes, linear SVM with its margins, logistic
regression, random forest, boosted trees), calibrated on 200, 1,000 and 5,000 rows where there are
so many and judged on up to 3,000 others; losses averaged over random splits, {seeds} of them:
{cases} cases. Up to 2,000 rows to train a model. Log loss clips p to [1e-6, 1 − 1e-6].

*Win rate*: share of the other methods of the table that are beaten, over cases. *Best*: share of
cases with the lowest loss. *Above the best*: mean difference to the lowest loss of the table. *p*:
Wilcoxon's signed rank over tasks (mean loss of a task), two-sided, not corrected for the number of
comparisons. *Infinite*: a fit that gave probability 0 to something that happened on the test rows.
*Wins*: share of cases in which the first method has the lower loss (ties count half); *difference*:
its mean loss less that of the second.

"ENIR step none" is the paper's text, "ENIR authors" the authors' program, "{enir}"
the default. "ELiTE none", "near" and "strict" are the paper's, the one that also prices falls (the
union of both methods), and the isotonic one; "raw" draws lines in the score, "auto" in its logit
where scores are probabilities. Margins of the SVM have no logit: there both are the same.

Made by `python -m experiments.near_isotonic`, which took {minutes:.0f} minutes."""


def save(results: pd.DataFrame) -> None:
    """Means per task, number of rows and method: over models and seeds."""
    mean = results.groupby(["task", "n", "method"])[[*MEASURES, "infinite"]].mean().round(5)
    mean.to_csv(RESULTS / "near_isotonic.csv")


def main() -> None:
    chosen = options(__doc__, seeds=2)
    begin = time.monotonic()
    results = all_tasks(chosen.quick, chosen.seeds, compare)
    page = summary(results, (time.monotonic() - begin) / 60)
    if chosen.quick:
        say(page)
    else:
        keep("near_isotonic.md", page)
        save(results)


if __name__ == "__main__":
    main()
