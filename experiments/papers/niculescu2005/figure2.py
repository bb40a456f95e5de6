"""Figures 2, 3 and 4: boosted trees before and after calibration, and the functions fitted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from experiments import table
from experiments.papers.cells import Cell
from experiments.papers.niculescu2005.drawing import (
    histogram,
    new_figure,
    read_shape,
    reliability,
    save,
    shape,
)
from experiments.papers.niculescu2005.figure1 import bend, near_ends
from experiments.papers.niculescu2005.figures import FITTED, MEASURES, measured
from experiments.papers.niculescu2005.problems import PROBLEMS, rows_of
from experiments.papers.niculescu2005.styles import boosted, pooled_scores

__all__ = ["KINDS", "cells", "draw", "latest", "page", "run"]

STEPS, QUICK_STEPS, SEEDS = 1024, 256, 2
#: votes of ±1, as eq. 4 has them; and votes by smoothed probability, as in Figure 1
STYLES = ("ID3", "BAYES")
KINDS = ("raw", *FITTED)
#: where the fitted functions are evaluated
GRID = np.linspace(0.0, 1.0, 101)


def cells(quick: bool) -> list[Cell]:
    rounds = [(QUICK_STEPS, STYLES, 1)]
    if not quick:
        rounds.append((STEPS, STYLES, SEEDS))
    return [
        {"dataset": problem, "style": style, "steps": steps, "seed": seed}
        for steps, styles, seeds in rounds
        for style in styles
        for problem in PROBLEMS
        for seed in range(seeds)
    ]


def run(dataset: str, style: str, steps: int, seed: int) -> dict[str, float]:
    """Shapes and figures of raw and calibrated predictions; the functions on a grid."""
    rows = rows_of(dataset, seed)
    (pooled,) = pooled_scores(rows.train, "trees", style, [steps], seed)
    raw, row = boosted(rows.train, "trees", style, steps, seed).raw_score(rows.test.X), {}
    for name in KINDS:
        p = raw
        if name in FITTED:
            fitted = FITTED[name]().fit(pooled, rows.train.y)
            p = fitted.calibrate(raw)
            values = fitted.calibrate(GRID)
            row |= {f"{name} at {x:.2f}": float(v) for x, v in zip(GRID, values, strict=True)}
        row |= shape(name, rows.test.y, p) | measured(name, "test", rows.test.y, p)
    return row


def latest(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells of the most steps that all problems have."""
    has_all = frame.groupby("steps")["dataset"].nunique() == frame["dataset"].nunique()
    return frame[frame["steps"] == has_all[has_all].index.max()]


def page(frame: pd.DataFrame) -> str:
    """Squared error, cross-entropy, share near the ends and bend, before and after."""
    part = latest(frame)
    rows = []
    for (style, problem), group in part.groupby(["style", "dataset"], sort=False):
        for name in KINDS:
            found = [read_shape(row, name) for row in group.to_dict("records")]
            low, high = np.mean([bend(one) for one in found], axis=0)
            losses = [group[f"{name} {measure} test"].mean() for measure in MEASURES]
            ends = np.mean([near_ends(one) for one in found])
            rows.append((style, problem, name, f"{ends:.1%}", f"{low:+.3f}", f"{high:+.3f}",
                         *(f"{loss:.4f}" for loss in losses)))  # fmt: skip
    head = ("style", "problem", "predictions", "below .1 or from .9 on", "bend below ½",
            "bend above ½", "bits", "squared error")  # fmt: skip
    text = f"After {part['steps'].iloc[0]:,} steps. Bend: see Figure 1; near zero is calibrated."
    return f"{text}\n\n{table(head, rows)}"


def draw(frame: pd.DataFrame, folder: Path) -> list[str]:
    """One picture for each of the three figures, a column for each problem."""
    part = latest(frame)
    part = part[(part["style"] == STYLES[0]) & (part["seed"] == part["seed"].min())]
    by = {str(row["dataset"]): row for row in part.to_dict("records")}
    return [_before(by, folder)] + [
        _after(by, name, number, folder) for number, name in ((3, "Platt"), (4, "isotonic"))
    ]


def _before(by: dict[str, dict], folder: Path) -> str:
    """Raw predictions: histogram, reliability under the sigmoid, and under the isotonic steps."""
    figure, axes = new_figure(3, len(by), 9, 6.4)
    for column, (problem, row) in enumerate(by.items()):
        found = read_shape(row, "raw")
        histogram(axes[0, column], found, problem)
        for i, name in enumerate(FITTED, start=1):
            values = np.array([row[f"{name} at {x:.2f}"] for x in GRID])
            reliability(axes[i, column], found, (GRID, values, name))
    axes[0, 0].set_ylabel("share of rows")
    for i, name in enumerate(FITTED, start=1):
        axes[i, 0].set_ylabel(f"fraction of positives,\n{name} (line)")
    figure.supxlabel("prediction of boosted trees, uncalibrated", fontsize=11)
    return save(figure, folder, "figure2")


def _after(by: dict[str, dict], name: str, number: int, folder: Path) -> str:
    figure, axes = new_figure(2, len(by), 9, 4.4)
    for column, (problem, row) in enumerate(by.items()):
        found = read_shape(row, name)
        histogram(axes[0, column], found, problem)
        reliability(axes[1, column], found, None)
    axes[0, 0].set_ylabel("share of rows")
    axes[1, 0].set_ylabel("fraction of positives")
    words = {"Platt": "Platt's method", "isotonic": "isotonic regression"}[name]
    figure.supxlabel(f"prediction after {words}", fontsize=11)
    return save(figure, folder, f"figure{number}")
