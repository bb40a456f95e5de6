"""Table 1 (a, b) of Pakdaman Naeini and Cooper: ``python -m experiments.near_isotonic_simulated``.

A disc in a ring, and support vector machines with a linear and a quadratic kernel: the linear
one's scores rank by the wrong thing, the quadratic one's are nearly perfect. The published figures
are means of ten runs; here are ten runs as well, and many more for the spread.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import calibrant as cal
from experiments import RESULTS, keep, table
from experiments.study import ENIR_BINS

Array = NDArray[np.float64]

ROWS = 1000
#: the runs that the paper averages
PAPER_RUNS = 10
#: how many standard deviations from the mean count as within the spread
SPREAD = 2.5
#: half a unit of the last published digit
ROUNDING = 0.005


def quadratic(u: Array, v: Array) -> Array:
    """K(u, v) = d(1 + d) with d = u·v."""
    d = u @ v.T
    return np.asarray(d * (1.0 + d))


class Problem(NamedTuple):
    """The kernel and the cost C of a support vector machine, and the part of Table 1 it is for."""

    kernel: str | Callable[[Array, Array], Array]
    cost: float
    part: str


PROBLEMS = {
    "linear kernel, C = 1": Problem("linear", 1.0, "a"),
    "quadratic kernel, C = 1": Problem(quadratic, 1.0, "b"),
    "quadratic kernel, C = 0.05": Problem(quadratic, 0.05, "b"),
}
#: every method, and the column of Table 1 it stands beside
METHODS: dict[str, tuple[Callable[[], Any], str]] = {
    "SVM": (cal.Identity, "SVM"),
    "Isotonic": (cal.Isotonic, "IsoRegC"),
    "BBQ": (cal.BBQ, "BBQ"),
    "ENIR paper": (lambda: cal.ENIR(variant="paper"), "ENIR"),
    "ENIR authors": (lambda: cal.ENIR(variant="authors"), "ENIR"),
    "ENIR": (lambda: cal.ENIR(**ENIR_BINS), "ENIR"),
    "ELiTE": (lambda: cal.ELiTE(scale="auto"), ""),
    "ELiTE near": (lambda: cal.ELiTE(monotone="near", scale="auto"), ""),
}
COLUMNS = ("SVM", "IsoRegC", "BBQ", "ENIR")


def _published(text: str) -> dict[str, dict[str, float]]:
    """Measure → column → figure, from lines of a name and one figure per column."""
    rows = (line.split() for line in text.strip().splitlines())
    return {row[0]: dict(zip(COLUMNS, map(float, row[1:]), strict=True)) for row in rows}


PUBLISHED = {
    "a": _published(
        """
        AUC  .52 .65 .85 .85
        ACC  .64 .64 .78 .79
        RMSE .52 .46 .39 .38
        ECE  .28 .35 .05 .05
        MCE  .78 .60 .13 .12
        """
    ),
    "b": _published(
        """
        AUC  1.00 1.00 1.00 1.00
        ACC  .99 .99 .99 .99
        RMSE .21 .09 .10 .09
        ECE  .14 .01 .01 .00
        MCE  .36 .04 .05 .03
        """
    ),
}


def circular(rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
    """Half of the rows in a disc of radius 2 (negative), half in a ring up to 4 (positive)."""
    y = rng.permutation(np.arange(ROWS) % 2)
    radius, angle = rng.uniform(0, 2, ROWS) + 2.0 * y, rng.uniform(0, 2 * np.pi, ROWS)
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle))), y


def measures(y: NDArray[np.intp], p: Array) -> dict[str, float]:
    """The paper's measures; the last two as its authors' programs have them, and in two others."""
    area = cal.auc(y, p)
    return {
        "AUC": max(area, 1.0 - area),
        "ACC": cal.accuracy(y, p),
        "RMSE": cal.rmse(y, p),
        "ECE": cal.ece(y, p, kind="mass", ties="authors"),
        "MCE": cal.mce(y, p, kind="mass", ties="authors"),
        "ECE, ties together": cal.ece(y, p, kind="mass"),
        "MCE, ties together": cal.mce(y, p, kind="mass"),
        "ECE, equal width": cal.ece(y, p),
        "MCE, equal width": cal.mce(y, p),
    }


def one_run(problem: str, seed: int, methods: tuple[str, ...]) -> list[dict[str, Any]]:
    """1,000 rows to train and to calibrate on (the same, as in the paper), 1,000 to test on."""
    rng = np.random.default_rng(seed)
    (train, y), (test, y_test) = circular(rng), circular(rng)
    kernel, cost, _ = PROBLEMS[problem]
    model = make_pipeline(StandardScaler(), SVC(kernel=kernel, C=cost)).fit(train, y)
    scores, new = (1 / (1 + np.exp(-model.decision_function(part))) for part in (train, test))
    return [
        {
            "seed": seed,
            "method": name,
            **measures(y_test, METHODS[name][0]().fit(scores, y).calibrate(new)),
        }
        for name in methods
    ]


def runs(problem: str, seeds: int, methods: tuple[str, ...] = tuple(METHODS)) -> pd.DataFrame:
    """All runs of a problem, one row per seed and method."""
    return pd.DataFrame([row for seed in range(seeds) for row in one_run(problem, seed, methods)])


def beside_published(problem: str, results: pd.DataFrame) -> pd.DataFrame:
    """Per method and measure: mean of ten, mean and sd of all, the published figure, and verdicts.

    A published figure is a rounded mean of ten runs. It is within the spread of runs if it lies at
    most 2.5 standard deviations of a run from the mean, and it is as expected of a mean of ten
    runs if it lies at most 2.5 standard deviations of such a mean from it, both after rounding.
    """
    figures = PUBLISHED[PROBLEMS[problem].part]
    rows = []
    for method, part in results.groupby("method", sort=False):
        for name in [name for name in part.columns if name not in {"seed", "method"}]:
            ten = float(part[part["seed"] < PAPER_RUNS][name].mean())
            mean, sd = float(part[name].mean()), float(part[name].std())
            figure = figures.get(name, {}).get(METHODS[str(method)][1], math.nan)
            apart = max(abs(figure - mean) - ROUNDING, 0.0)
            within, expected = (apart <= SPREAD * s for s in (sd, sd / math.sqrt(PAPER_RUNS)))
            rows.append((method, name, ten, mean, sd, figure, within, expected))
    columns = ["method", "measure", "ten", "mean", "sd", "published", "within", "expected"]
    return pd.DataFrame(rows, columns=columns)


def as_table(summary: pd.DataFrame) -> str:
    """The summary for reading; what is not in Table 1 has nothing to stand beside."""
    words = {True: "yes", False: "no"}
    rows = []
    for row in summary.itertuples():
        ours = (row.method, row.measure, f"{row.ten:.3f}", f"{row.mean:.3f} ± {row.sd:.3f}")
        verdicts = (f"{row.published:.2f}", words[row.within], words[row.expected])
        rows.append((*ours, *(("", "", "") if math.isnan(row.published) else verdicts)))
    columns = ("method", "measure", "ten runs", "mean ± sd", "published")
    return table((*columns, "within the spread", "as a mean of ten"), rows)


HEADING = """# Simulated data of Pakdaman Naeini and Cooper (2018), Table 1 (a) and (b)

{seeds} runs of 1,000 rows to train a support vector machine and to calibrate it (the same rows, as
in the paper), and 1,000 to test on; features standardised, scores σ(decision). "Ten runs": the mean
of the first ten, as many as the paper has. "Within the spread": the published figure, allowing for
its rounding to two digits, is at most {spread} standard deviations of a run from our mean; "as a
mean of ten": at most {spread} standard deviations of a mean of ten runs.

AUC is max(AUC, 1 − AUC). ECE and MCE are as the authors' programs compute them: ten groups of equal
size, tied predictions ordered by label. "Ties together" are the same groups with ties kept whole;
"equal width" is what the paper's text describes. ELiTE has no figures in Table 1. The paper does
not say which C its quadratic kernel had.

Made by `python -m experiments.near_isotonic_simulated`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many runs (default 100)")
    seeds = parser.parse_args().seeds
    text = [HEADING.format(seeds=seeds, spread=SPREAD)]
    frames = []
    for problem, (_, _, part) in PROBLEMS.items():
        summary = beside_published(problem, runs(problem, seeds))
        text.append(f"## Table 1 ({part}): {problem}\n\n{as_table(summary)}")
        frames.append(summary.assign(problem=problem))
    keep("near_isotonic_simulated.md", "\n\n".join(text))
    pd.concat(frames).round(4).to_csv(RESULTS / "near_isotonic_simulated.csv", index=False)


if __name__ == "__main__":
    main()
