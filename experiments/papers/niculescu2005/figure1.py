"""Figure 1: predictions of boosted trees leave 0 and 1 as boosting goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from experiments import table
from experiments.papers.cells import Cell
from experiments.papers.niculescu2005.drawing import (
    BINS,
    histogram,
    new_figure,
    read_shape,
    reliability,
    save,
    shape,
)
from experiments.papers.niculescu2005.figures import measured
from experiments.papers.niculescu2005.problems import rows_of
from experiments.papers.niculescu2005.styles import boosted

__all__ = ["STEPS", "bend", "cells", "draw", "near_ends", "page", "run"]

STEPS = (1, 4, 8, 32, 128, 1024)
SEEDS = 3
#: "Bayesian smoothed decision trees", and hard votes beside them
STYLES = ("BAYES", "ID3")


def cells(quick: bool) -> list[Cell]:
    styles, seeds = (STYLES[:1], 1) if quick else (STYLES, SEEDS)
    return [
        {"dataset": "COV_TYPE", "style": style, "steps": STEPS[-1], "seed": seed}
        for style in styles
        for seed in range(seeds)
    ]


def run(dataset: str, style: str, steps: int, seed: int) -> dict[str, float]:
    """Histogram and reliability of the raw predictions after each number of steps."""
    rows = rows_of(dataset, seed)
    model = boosted(rows.train, "trees", style, steps, seed)
    wanted = [step for step in STEPS if step <= steps]
    row: dict[str, float] = {}
    for step, f in zip(wanted, model.staged_raw_score(rows.test.X, steps=wanted), strict=True):
        row |= shape(str(step), rows.test.y, f)
        row |= measured(str(step), "test", rows.test.y, f)
    return row


def near_ends(found: dict[str, np.ndarray]) -> float:
    """The share of predictions below .1 or from .9 on."""
    n = found["n"]
    return float((n[0] + n[-1]) / n.sum())


def bend(found: dict[str, np.ndarray]) -> tuple[float, float]:
    """Fraction of positives less prediction, averaged below and above ½: −, + is S-shaped."""
    low, high = np.arange(BINS) < BINS // 2, np.arange(BINS) >= BINS // 2
    gap, n = np.nan_to_num(found["fraction"] - found["mean"]), found["n"]
    return tuple(
        float(n[part] @ gap[part] / n[part].sum()) if n[part].any() else 0.0 for part in (low, high)
    )


def page(frame: pd.DataFrame) -> str:
    """How many predictions lie near the ends, and how the reliability curve bends."""
    rows = []
    for style, group in frame.groupby("style", sort=False):
        for step in STEPS:
            found = [read_shape(row, str(step)) for row in group.to_dict("records")]
            low, high = np.mean([bend(one) for one in found], axis=0)
            losses = [group[f"{step} {measure} test"].mean() for measure in ("squared", "bits")]
            ends = np.mean([near_ends(one) for one in found])
            rows.append((style, step, f"{ends:.1%}", f"{low:+.3f}", f"{high:+.3f}",
                         *(f"{loss:.4f}" for loss in losses)))  # fmt: skip
    head = ("style", "steps", "predictions below .1 or from .9 on", "bend below ½", "bend above ½",
            "squared error", "bits")  # fmt: skip
    text = (
        "Bend: fraction of positives less mean prediction, averaged over the bins on either side "
        "of ½; negative below and positive above is the S of the paper's figure."
    )
    return f"{text}\n\n{table(head, rows)}"


def draw(frame: pd.DataFrame, folder: Path) -> list[str]:
    """Histograms above, reliability below, a column for each number of steps."""
    row = frame[frame["style"] == STYLES[0]].iloc[0]
    figure, axes = new_figure(2, len(STEPS), 11, 4)
    for column, step in enumerate(STEPS):
        found = read_shape(row, str(step))
        histogram(axes[0, column], found, f"{step} step{'s' if step > 1 else ''}")
        reliability(axes[1, column], found, None)
        if column:
            axes[1, column].set_yticklabels([])
    axes[0, 0].set_ylabel("share of rows")
    axes[1, 0].set_ylabel("fraction of positives")
    figure.supxlabel("prediction", fontsize=11)
    return [save(figure, folder, "figure1")]
