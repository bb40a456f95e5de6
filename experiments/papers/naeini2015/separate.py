"""Footnote 2: is it necessary to calibrate on other rows than those that trained the model?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments import table
from experiments.papers.beside import positives
from experiments.papers.cells import Cell
from experiments.papers.naeini2015 import adult, simulated
from experiments.papers.naeini2015.methods import METHODS, calibrated, measures

QUICK, FULL = 20, 100
#: what is looked at: each method's RMSE
MEASURE = "RMSE"
APART, SAME = "other rows", "the training rows"
PROBLEMS = (*simulated.PROBLEMS, *(f"Adult {model}" for model in adult.MODELS))


def run(problem: str, seed: int) -> dict[str, float]:
    """One draw, calibrated on other rows and on the rows that the model was trained on."""
    if problem in simulated.PROBLEMS:
        data = simulated.draw(problem, seed)
        parts = (data.train, data.known, data.test)
        old, other, new = (data.scores(part) for part in parts)
    else:
        model = problem.removeprefix("Adult ")
        scorer = adult.MODELS[model]
        parts = adult.split(adult.encoded(adult.READINGS[adult.ALL][model]), seed)
        fitted = scorer.fit(parts[0])
        old, other, new = (scorer.scores(fitted, part.X) for part in parts)
    train, known, test = parts
    # as many rows either way: only whether the model has seen them is to differ
    n = len(known.y)
    ways = {APART: (other, known.y), SAME: (old[:n], train.y[:n])}
    return {
        f"{method}, {way}": measures(test.y, p)[MEASURE]
        for way, (scores, y) in ways.items()
        for method, p in calibrated(scores, y, new, METHODS).items()
    }


def cells(quick: bool) -> list[Cell]:
    seeds = range(QUICK if quick else FULL)
    return [{"problem": problem, "seed": seed} for problem in PROBLEMS for seed in seeds]


def differences(frame: pd.DataFrame) -> pd.DataFrame:
    """Problem × method: RMSE with the training rows less that with other rows; mean and error."""
    rows = []
    for problem, part in frame.groupby("problem", sort=False):
        for method in list(METHODS)[1:]:
            gap = part[f"{method}, {SAME}"] - part[f"{method}, {APART}"]
            error = float(gap.std() / np.sqrt(len(gap)))
            rows.append((problem, method, float(gap.mean()), error, len(gap)))
    return pd.DataFrame(rows, columns=["problem", "method", "mean", "error", "draws"])


def page(frame: pd.DataFrame) -> str:
    """RMSE with the training rows less RMSE with as many others, by problem and method."""
    found = differences(frame)
    names = list(METHODS)[1:]
    rows = []
    for problem, part in found.groupby("problem", sort=False):
        cell = part.set_index("method")
        texts = [f"{cell.loc[m, 'mean']:+.4f} ± {cell.loc[m, 'error']:.4f}" for m in names]
        rows.append((problem, int(part["draws"].iloc[0]), *texts))
    return (
        "RMSE when calibrated on 600 of the rows that trained the model, less RMSE when calibrated "
        "on 600 others (mean over draws ± standard error; above 0: other rows are better). Adult "
        f"with all attributes.\n\n{table(('problem', 'draws', *names), rows)}"
        f"\n\n{positives(['adult'])}"
    )
