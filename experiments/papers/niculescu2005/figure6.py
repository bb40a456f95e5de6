"""Figure 6: ten learning methods, calibrated and selected on one set of 1,000 rows."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import calibrant as cal
from experiments import table
from experiments.papers.beside import beside
from experiments.papers.cells import Cell
from experiments.papers.niculescu2005.drawing import COLORS, new_figure, save
from experiments.papers.niculescu2005.figures import FITTED, measured
from experiments.papers.niculescu2005.others import OTHERS, QUICK, scores_of
from experiments.papers.niculescu2005.problems import PROBLEMS, Rows, rows_of
from experiments.papers.niculescu2005.selection import chosen, mean_of_problems
from experiments.papers.niculescu2005.styles import LEARNERS, boosted, steps_to

__all__ = ["BOOSTED", "NAMES", "cells", "draw", "means", "page", "run"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: by the paper's names
BOOSTED = {"BST-STMP": "stumps", "BST-DT": "trees"}
#: the order of the paper's text
NAMES = ("BST-DT", "SVM", "RF", "BAG-DT", "ANN", "KNN", "BST-STMP", "DT", "LOGREG", "NB")
METHODS = ("raw", *FITTED, "log loss")
#: the third split comes after all settings have two
SEEDS = ((0, 1), (2,))
QUICK_STEPS, STEPS = {"BST-DT": 128, "BST-STMP": 512}, {"BST-DT": 2048, "BST-STMP": 8192}
QUICK_STYLES = {"BST-DT": ("ID3",), "BST-STMP": ("gini",)}


def _settings(name: str, quick: bool) -> list[tuple[str, int]]:
    """Style or setting, and the number of steps (1: not boosted)."""
    if name not in BOOSTED:
        settings = list(OTHERS[name])
        return [(setting, 1) for setting in (settings[: QUICK[name]] if quick else settings)]
    few = [(style, QUICK_STEPS[name]) for style in QUICK_STYLES[name]]
    many = [(style, STEPS[name]) for style in LEARNERS[BOOSTED[name]].styles]
    return few if quick else few + many


def cells(quick: bool) -> list[Cell]:
    """The learners that take longest come last."""
    plain = [name for name in NAMES if name not in BOOSTED]
    return [
        {"dataset": problem, "learner": name, "style": style, "steps": steps, "seed": seed}
        for names in (plain, *([name] for name in BOOSTED))
        for seeds in (SEEDS[:1] if quick else SEEDS)
        for name in names
        for style, steps in _settings(name, quick)
        for problem in PROBLEMS
        for seed in seeds
    ]


def run(dataset: str, learner: str, style: str, steps: int, seed: int) -> dict[str, float]:
    """Figures on the rows to select (and calibrate) on and to test on, after each step."""
    rows = rows_of(dataset, seed)
    if learner in BOOSTED:
        return boosted_figures(rows, BOOSTED[learner], style, steps, seed)
    found = scores_of(learner, style, rows, seed)
    return calibrated(rows, (found.validation, found.test), 1, found.margins)


def calibrated(
    rows: Rows, scores: tuple[Array, Array], step: int, margins: bool = False
) -> dict[str, float]:
    """Raw (margins: scaled by their extremes), and by maps fitted on the rows to select on."""
    parts = (("validation", rows.validation), ("test", rows.test))
    y = rows.validation.y
    before = cal.Rescale(formula="minmax") if margins else cal.Uncalibrated()
    maps = {"raw": before, **{name: make() for name, make in FITTED.items()}}
    row: dict[str, float] = {}
    for name, map_ in maps.items():
        map_.fit(scores[0], y)
        for (part, known), f in zip(parts, scores, strict=True):
            row |= measured(f"{name} {step}", part, known.y, map_.calibrate(f))
    return row


def boosted_figures(
    rows: Rows, learner: str, style: str, steps: int, seed: int
) -> dict[str, float]:
    """The exponential loss, raw and calibrated; and the log loss, by its own link."""
    wanted, row = steps_to(steps), {}
    plain, direct = (
        boosted(rows.train, learner, style, steps, seed, loss) for loss in ("exponential", "log")
    )
    staged = [plain.staged_raw_score(part.X, steps=wanted) for part in rows[1:]]
    for step, *scores in zip(wanted, *staged, strict=True):
        row |= calibrated(rows, tuple(scores), step)
    for name, part in (("validation", rows.validation), ("test", rows.test)):
        stages = direct.staged_predict_proba(part.X, steps=wanted)
        for step, p in zip(wanted, stages, strict=True):
            row |= measured(f"log loss {step}", name, part.y, p[:, 1])
    return row


# --- what is shown ------------------------------------------------------------------------------


def means(frame: pd.DataFrame, measure: str) -> dict[str, dict[str, list[float]]]:
    """Learner → method → the mean over problems, seed by seed."""
    grid = mean_of_problems(chosen(frame))
    return {
        name: {
            method: grid[name, measure, method].dropna().to_list()
            for method in METHODS
            if (name, measure, method) in grid
        }
        for name in NAMES
        if name in set(frame["learner"])
    }


def _means_table(frame: pd.DataFrame, measure: str) -> str:
    found = means(frame, measure)
    ranked = sorted(found, key=lambda name: min(np.mean(found[name][m]) for m in FITTED))
    rows = [
        (name, *(beside(math.nan, found[name][m], digits=4).ours if m in found[name] else ""
                 for m in METHODS))
        for name in ranked
    ]  # fmt: skip
    return table(("learner", *METHODS), rows)


def _per_problem(frame: pd.DataFrame) -> str:
    """Squared error after the better of the two calibrations, and what was selected."""
    best = chosen(frame)
    best = best[(best["measure"] == "squared") & best["method"].isin(FITTED)]
    rows = []
    for name in NAMES:
        words = []
        for problem in PROBLEMS:
            part = best[(best["learner"] == name) & (best["dataset"] == problem)]
            if part.empty:
                words.append("")
                continue
            loss = part.groupby("method")["test"].mean()
            one = part[part["method"] == loss.idxmin()].iloc[0]
            steps = f", {one['step']} steps" if name in BOOSTED else ""
            words.append(f"{loss.min():.4f} ({loss.idxmin()}: {one['style']}{steps})")
        rows.append((name, *words))
    return table(("learner", *PROBLEMS), rows)


def page(frame: pd.DataFrame) -> str:
    return "\n\n".join((
        "Squared error on the test rows, mean over the four problems (± sd over random splits), "
        "the best after calibration first. Each figure is of the setting (and number of steps) "
        "that is best on the rows it was calibrated on.",
        _means_table(frame, "squared"),
        "Cross-entropy in bits:",
        _means_table(frame, "bits"),
        "Squared error after the better of the two calibrations, and the setting selected (of the "
        "first split):",
        _per_problem(frame),
    ))  # fmt: skip


def draw(frame: pd.DataFrame, folder: Path) -> list[str]:
    """A line per learner, a mark per method."""
    found = means(frame, "squared")
    ranked = sorted(found, key=lambda name: -min(np.mean(found[name][m]) for m in FITTED))
    figure, axes = new_figure(1, 1, 8, 4.6)
    marks = dict(zip(METHODS, ("o", "o", "s", "^"), strict=True))
    for method, mark in marks.items():
        have = [(i, np.mean(found[n][method])) for i, n in enumerate(ranked) if method in found[n]]
        places, values = zip(*have, strict=True)
        before = method == "raw"  # a wide open ring, so that nothing is hidden
        axes[0, 0].plot(values, places, mark, color=COLORS[method], label=method,
                        markersize=14 if before else 7, fillstyle="none" if before else "full",
                        zorder=3 if before else 2)  # fmt: skip
    axes[0, 0].set_yticks(range(len(ranked)), ranked, fontsize=11)
    axes[0, 0].grid(axis="y", color="#dddddd", linewidth=0.8)
    axes[0, 0].set_xlabel("squared error, mean of the four problems", fontsize=11)
    axes[0, 0].legend(fontsize=11, frameon=False, loc="upper right")
    axes[0, 0].spines[["top", "right"]].set_visible(False)
    return [save(figure, folder, "figure6")]
