"""Figure 5: how much calibration data Platt's method and isotonic regression need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import calibrant as cal
from experiments import table
from experiments.papers.cells import Cell
from experiments.papers.niculescu2005.drawing import COLORS, new_figure, save
from experiments.papers.niculescu2005.figures import FITTED
from experiments.papers.niculescu2005.problems import PROBLEMS, Part, rows_of
from experiments.papers.niculescu2005.styles import boosted, steps_to

__all__ = ["BEFORE", "NAMES", "SIZES", "cells", "crossing", "curves", "draw", "mean", "page", "run"]

Array = NDArray[np.float64]

SIZES = tuple(2**k for k in range(5, 14))
TRIALS = 10
STEPS, QUICK_STEPS = 2048, 128
STYLES = ("ID3", "MML Laplace", "BAYES")
BEFORE = "uncalibrated"
#: the paper's two methods, and Platt's on the log-odds of the score, this package's default
CALIBRATORS: dict[str, Callable[[], Any]] = {**FITTED, "Platt on the logit": cal.Platt}
NAMES = (BEFORE, *CALIBRATORS)


def cells(quick: bool) -> list[Cell]:
    rounds = [(QUICK_STEPS, STYLES[:1])] if quick else [(QUICK_STEPS, STYLES[:1]), (STEPS, STYLES)]
    return [
        {"dataset": problem, "style": style, "steps": steps, "seed": 0}
        for steps, styles in rounds
        for style in styles
        for problem in PROBLEMS
    ]


def run(dataset: str, style: str, steps: int, seed: int) -> dict[str, float]:
    """Squared error at each size, draw by draw, of the numbers of steps that are the best.

    The best uncalibrated and the best calibrated model (by Platt's method) are those with the least
    squared error on the 1,000 rows to select on, which also fit the sigmoid there.
    """
    rows = rows_of(dataset, seed)
    model = boosted(rows.train, "trees", style, steps, seed)
    wanted = steps_to(steps)
    staged = list(model.staged_raw_score(rows.validation.X, steps=wanted))
    raw, fitted = least(rows.validation, staged)
    test = dict(zip(wanted, model.staged_raw_score(rows.test.X, steps=wanted), strict=True))
    before, after = (
        learning(test[wanted[best]], rows.test, seed)
        for best in (np.argmin(raw), np.argmin(fitted))
    )
    row: dict[str, float] = {
        "uncalibrated steps": wanted[int(np.argmin(raw))],
        "calibrated steps": wanted[int(np.argmin(fitted))],
        "uncalibrated validation": float(min(raw)),
        "calibrated validation": float(min(fitted)),
    }
    for m, name in enumerate(NAMES):
        values = (before if name == BEFORE else after).values[m]
        row |= {
            f"{name} {size} trial {k}": float(values[s, k])
            for s, size in enumerate(after.sizes)
            for k in range(values.shape[1])
        }
    return row


def least(part: Part, staged: list[Array]) -> tuple[list[float], list[float]]:
    """Squared errors of each stage, as it is and after Platt's method on the same rows."""
    raw = [cal.metrics.brier(part.y, f) for f in staged]
    platt = FITTED["Platt"]
    return raw, [cal.metrics.brier(part.y, platt().fit(f, part.y).calibrate(f)) for f in staged]


def learning(scores: Array, part: Part, seed: int) -> cal.diagrams.LearningCurve:
    named = {name: make() for name, make in CALIBRATORS.items()}
    return cal.learning_curve(named, scores, part.y, sizes=SIZES, repeats=TRIALS, random_state=seed)


# --- what is shown ------------------------------------------------------------------------------


def curves(frame: pd.DataFrame) -> dict[str, dict[str, Array]]:
    """Problem → method → sizes × trials, of the style and steps best on the rows to select on."""
    found = {}
    for problem, group in frame.groupby("dataset", sort=False):
        before = group.loc[group["uncalibrated validation"].idxmin()]
        after = group.loc[group["calibrated validation"].idxmin()]
        found[str(problem)] = {
            name: np.array(
                [
                    [(before if name == BEFORE else after)[f"{name} {size} trial {k}"]
                     for k in range(TRIALS)]
                    for size in SIZES
                ]
            )
            for name in NAMES
        }  # fmt: skip
    return found


def mean(found: dict[str, dict[str, Array]], name: str) -> Array:
    """Mean over problems and trials at each size."""
    return np.mean([by[name].mean(axis=1) for by in found.values()], axis=0)


def crossing(platt: Array, isotonic: Array) -> int | None:
    """The size from which on isotonic regression is better; None: not within the sizes."""
    behind = np.flatnonzero(~(isotonic < platt))
    first = int(behind[-1]) + 1 if len(behind) else 0
    return SIZES[first] if first < len(SIZES) else None


def sure_to(by: dict[str, Array]) -> int | None:
    """The largest size at which Platt's method is better by more than two standard errors."""
    gap = by["isotonic"] - by["Platt"]
    sure = gap.mean(axis=1) > 2.0 * gap.std(axis=1, ddof=1) / np.sqrt(gap.shape[1])
    return max((size for size, yes in zip(SIZES, sure, strict=True) if yes), default=None)


def page(frame: pd.DataFrame) -> str:
    """The mean curves, and where isotonic regression overtakes Platt's method."""
    found = curves(frame)
    means = {name: mean(found, name) for name in NAMES}
    rows = [(size, *(f"{means[n][s]:.4f}" for n in NAMES)) for s, size in enumerate(SIZES)]
    per = []
    for problem, by in found.items():
        at = crossing(by["Platt"].mean(axis=1), by["isotonic"].mean(axis=1))
        part = frame[frame["dataset"] == problem]
        before, after = (
            part.loc[part[f"{word} validation"].idxmin()] for word in (BEFORE, "calibrated")
        )
        per.append((
            problem, at or "never", sure_to(by) or "none",
            f"{before['style']}, {before['uncalibrated steps']:.0f}",
            f"{after['style']}, {after['calibrated steps']:.0f}",
        ))  # fmt: skip
    head = ("problem", "isotonic better from", "Platt surely better up to", "uncalibrated model",
            "calibrated model")  # fmt: skip
    return "\n\n".join((
        f"Squared error, mean over {len(found)} problems and {TRIALS} trials of calibration rows.",
        table(("calibration rows", *NAMES), rows),
        "Where isotonic regression overtakes Platt's method (surely: by more than two standard "
        "errors over the trials):",
        table(head, per),
    ))  # fmt: skip


def draw(frame: pd.DataFrame, folder: Path) -> list[str]:
    """The mean curves."""
    found = curves(frame)
    figure, axes = new_figure(1, 1, 7, 4.4)
    looks = zip(NAMES, (":", "-", "--", "-."), (" ", "o", "s", "^"), strict=True)
    colors = (COLORS["raw"], COLORS["Platt"], COLORS["isotonic"], COLORS["fourth"])
    for (name, dash, mark), color in zip(looks, colors, strict=True):
        axes[0, 0].plot(SIZES, mean(found, name), color=color, linestyle=dash, marker=mark,
                        label=name, linewidth=1.8)  # fmt: skip
    axes[0, 0].set_xscale("log", base=2)
    axes[0, 0].set_xticks(SIZES, [str(size) for size in SIZES])
    axes[0, 0].set_xlabel("calibration rows", fontsize=11)
    axes[0, 0].set_ylabel(f"squared error, mean of {len(found)} problems", fontsize=11)
    axes[0, 0].legend(fontsize=11, frameon=False)
    axes[0, 0].spines[["top", "right"]].set_visible(False)
    return [save(figure, folder, "figure5")]
