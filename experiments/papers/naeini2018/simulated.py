"""Table 1 and Figure 3: a disc in a ring, and support vector machines that suit it or do not.

A linear kernel's scores rank by the wrong thing, a quadratic one's are nearly perfect.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from experiments import table
from experiments.papers.beside import Beside, beside, counted, pick, tall, told_within
from experiments.papers.cells import Cell, Table
from experiments.papers.naeini2018.methods import (
    COLUMN,
    MEASURES,
    METHODS,
    PAPERS_MEASURES,
    measures,
)
from experiments.papers.published import figure

__all__ = ["FIGURE_3", "PROBLEMS", "TABLE_1", "circular", "groups", "quadratic"]

Array = NDArray[np.float64]

ROWS = 1000
#: the runs that the paper averages, which are also those of a quick run; and all of them
PAPER_RUNS, RUNS = 10, 100


def quadratic(u: Array, v: Array) -> Array:
    """K(u, v) = d(1 + d) with d = u·v."""
    d = u @ v.T
    return np.asarray(d * (1.0 + d))


class Problem(NamedTuple):
    """The kernel and the cost C of a support vector machine, and the model of Table 1 it is for."""

    kernel: str | Callable[[Array, Array], Array]
    cost: float
    part: str
    model: str


LINEAR, SHARP, SOFT = "linear, C = 1", "quadratic, C = 1", "quadratic, C = 0.05"
PROBLEMS = {
    LINEAR: Problem("linear", 1.0, "a", "SVM linear"),
    SHARP: Problem(quadratic, 1.0, "b", "SVM quadratic"),
    SOFT: Problem(quadratic, 0.05, "b", "SVM quadratic"),
}


def circular(rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
    """Half of the rows in a disc of radius 2 (negative), half in a ring up to 4 (positive)."""
    y = rng.permutation(np.arange(ROWS) % 2)
    radius, angle = rng.uniform(0, 2, ROWS) + 2.0 * y, rng.uniform(0, 2 * np.pi, ROWS)
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle))), y


def machine(problem: str, X: Array, y: NDArray[np.intp]) -> Pipeline:
    """The support vector machine of a problem, on standardised features."""
    kernel, cost, *_ = PROBLEMS[problem]
    return make_pipeline(StandardScaler(), SVC(kernel=kernel, C=cost)).fit(X, y)


def run(problem: str, seed: int) -> dict[str, float]:
    """1,000 rows to train and to calibrate on (the same, as in the paper), 1,000 to test on."""
    rng = np.random.default_rng(seed)
    (train, y), (test, y_test) = circular(rng), circular(rng)
    model = machine(problem, train, y)
    scores, new = (expit(model.decision_function(part)) for part in (train, test))
    return {
        f"{name} {measure}": value
        for name, make in METHODS.items()
        for measure, value in measures(y_test, make().fit(scores, y).calibrate(new)).items()
    }


def cells(quick: bool) -> list[Cell]:
    seeds = range(PAPER_RUNS if quick else RUNS)
    return [{"problem": name, "seed": seed} for name in PROBLEMS for seed in seeds]


def groups(frame: pd.DataFrame, problem: str) -> dict[str, dict[str, Beside]]:
    """Measure → method → the published figure and ours; the base and the last are not printed."""
    part = frame[frame["problem"] == problem]
    model = PROBLEMS[problem].model
    return {
        measure: {
            name: beside(
                figure("naeini2018", "1", model=model, method=COLUMN[name], measure=measure),
                pick(part, name, measure),
                digits=2,
                repetitions=PAPER_RUNS,
            )
            for name in COLUMN
        }
        for measure in PAPERS_MEASURES
    }


def readings(frame: pd.DataFrame, problem: str) -> str:
    """What has nothing to stand beside: the other readings of ECE and MCE, and all of ELiTE."""
    part = frame[frame["problem"] == problem]
    others = [name for name in MEASURES if name not in PAPERS_MEASURES]
    lost = [name for name in METHODS if name not in COLUMN]
    return "\n\n".join(
        table(
            ("method", *shown),
            [
                (name, *(beside(math.nan, pick(part, name, m), digits=3).ours for m in shown))
                for name in names
            ],
        )
        for names, shown in ((list(METHODS), others), (lost, list(PAPERS_MEASURES)))
    )


def page(frame: pd.DataFrame) -> str:
    """Each problem beside its part of the table, and everything else that was measured."""
    text = []
    for problem, (_, _, part, _) in PROBLEMS.items():
        found = groups(frame, problem)
        every = [cell for row in found.values() for cell in row.values()]
        text += [
            f"### Table 1 ({part}): {problem}",
            tall(found),
            f"The published figures are means of ten runs: {counted(every)}. {told_within(every)}",
            readings(frame, problem),
        ]
    return "\n\n".join(text)


TABLE_1 = Table("1", "Table 1: simulated data", cells, run, page)


# --- figure 3 -------------------------------------------------------------------------------------


def run_3(problem: str, seed: int) -> dict[str, float]:
    """How far from the centre the boundary runs (2 would be right), and the rows it gets right."""
    rng = np.random.default_rng(seed)
    (train, y), (test, y_test) = circular(rng), circular(rng)
    model = machine(problem, train, y)
    radius = boundary(model)
    return {
        "radius, least": float(radius.min()),
        "radius, mean": float(radius.mean()),
        "radius, most": float(radius.max()),
        "ACC, training": float(np.mean(model.predict(train) == y)),
        "ACC, test": float(np.mean(model.predict(test) == y_test)),
    }


def boundary(model: Pipeline, angles: int = 360) -> Array:
    """Distance from the centre at which the decision turns positive, in every direction."""
    turn = np.linspace(0.0, 2 * np.pi, angles, endpoint=False)
    low, high = np.zeros(angles), np.full(angles, 4.0)
    for _ in range(14):  # to a thousandth
        middle = (low + high) / 2
        X = np.column_stack((middle * np.cos(turn), middle * np.sin(turn)))
        outside = model.decision_function(X) > 0
        low, high = np.where(outside, low, middle), np.where(outside, middle, high)
    return np.asarray(high)


def cells_3(quick: bool) -> list[Cell]:
    return [{"problem": name, "seed": seed} for name in (SHARP, SOFT) for seed in range(PAPER_RUNS)]


def page_3(frame: pd.DataFrame) -> str:
    """The boundary in figures; the figure itself is a picture."""
    names = [name for name in frame.columns if name not in {"problem", "seed", "seconds"}]
    rows = [
        (problem, *(beside(math.nan, part[name]).ours for name in names))
        for problem, part in frame.groupby("problem", sort=False)
    ]
    return table(("kernel", *names), rows)


def draw_3(frame: pd.DataFrame, folder: Path) -> list[str]:
    """The rows of the first run, and the boundaries of the quadratic kernel."""
    from experiments.papers.naeini2018.drawing import scatter

    X, y = circular(np.random.default_rng(0))
    curves: dict[str, Any] = {
        name: boundary(machine(name, X, y)) for name in frame["problem"].unique()
    }
    return [scatter(X, y, curves, folder / "naeini2018_figure3.png")]


FIGURE_3 = Table(
    "figure3",
    "Figure 3: the simulated data, and the boundary of the quadratic kernel",
    cells_3,
    run_3,
    page_3,
    figures=draw_3,
)
