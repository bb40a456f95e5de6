"""The pictures of the paper, drawn from our results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

import calibrant as cal
from experiments.papers.naeini2018.crossval import IN_FOLDS
from experiments.papers.naeini2018.grids import LARGER, grid
from experiments.papers.naeini2018.models import MODELS

__all__ = ["critical_differences", "reliability", "scatter"]

Array = NDArray[np.float64]

#: the colours of Okabe and Ito, told apart by all readers
BLACK, ORANGE, BLUE, RED = "#000000", "#E69F00", "#0072B2", "#D55E00"
#: the models as the paper writes them
WORDS = {"LR": "logistic regression", "SVM": "linear SVM", "NB": "naive Bayes"}


def save(figure: Figure, path: Path) -> str:
    figure.savefig(path, metadata={"Software": None})
    return path.name


def bare(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9)


def reliability(frame: pd.DataFrame, kinds: Sequence[str], bins: int, path: Path) -> str:
    """Frequency against mean prediction in bins of equal frequency: every run, and their mean."""
    models = list(frame["model"].unique())
    figure = Figure(figsize=(9.0, 3.5), dpi=110, layout="constrained")
    row = figure.subplots(1, len(models), sharey=True)
    places = range(1, bins + 1)
    for axes, model in zip(row, models, strict=True):
        part = frame[frame["model"] == model]
        axes.plot([0, 1], [0, 1], color="0.6", lw=1, ls=(0, (4, 3)))
        for kind, colour, marker in zip(kinds, (BLUE, ORANGE), "os", strict=True):
            x, y = (
                part[[f"{kind} {what} {i}" for i in places]].to_numpy()
                for what in ("predicted", "frequency")
            )
            if kind == kinds[0]:
                axes.plot(x[:10].T, y[:10].T, color=colour, lw=0.6, alpha=0.35)
            label = f"{kind}, AUC {part[f'{kind} AUC'].mean():.2f}"
            axes.plot(x.mean(0), y.mean(0), color=colour, marker=marker, lw=1.8, ms=5, label=label)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="mean prediction")
        axes.set_title(WORDS[model], fontsize=11)
        axes.legend(fontsize=8.5, frameon=False, loc="upper left")
        bare(axes)
    row[0].set_ylabel("frequency of positives")
    return save(figure, path)


def scatter(X: Array, y: NDArray[np.intp], curves: Mapping[str, Array], path: Path) -> str:
    """Two classes, and boundaries given by their distance from the centre."""
    figure = Figure(figsize=(5.2, 5.0), dpi=110, layout="constrained")
    axes = figure.subplots()
    for label, colour, marker in ((1, RED, "s"), (0, BLUE, "*")):
        own = X[y == label]
        words = {1: "positive", 0: "negative"}[label]
        axes.scatter(*own.T, s=11, marker=marker, color=colour, alpha=0.55, lw=0, label=words)
    for (name, radius), style in zip(curves.items(), ("-", (0, (4, 2))), strict=False):
        turn = np.linspace(0.0, 2 * np.pi, len(radius), endpoint=False)
        ends = np.append(turn, turn[0]), np.append(radius, radius[0])
        axes.plot(
            ends[1] * np.cos(ends[0]), ends[1] * np.sin(ends[0]), c=BLACK, ls=style, label=name
        )
    axes.set(xlim=(-4.2, 4.2), ylim=(-4.2, 4.2), aspect="equal")
    figure.legend(fontsize=9, frameon=False, loc="outside lower center", ncols=2, markerscale=1.6)
    bare(axes)
    return save(figure, path)


#: what the diagrams of ranks show: the paper's methods and the library's defaults
RANKED = {
    "none": "base",
    "Isotonic": "isotonic",
    "BBQ": "BBQ",
    "ENIR paper": "ENIR paper",
    "ENIR authors": "ENIR authors",
    "ENIR": "ENIR",
    "ELiTE paper": "ELiTE paper",
    "ELiTE": "ELiTE",
}


def critical_differences(frame: pd.DataFrame, measure: str, path: Path) -> str:
    """Mean ranks of all methods for each model, with Nemenyi's critical difference."""
    figure = Figure(figsize=(6.0, 5.7), dpi=120, layout="constrained")
    for axes, model in zip(figure.subplots(len(MODELS), 1), MODELS, strict=True):
        found = grid(frame, model, list(RANKED), measure).rename(columns=RANKED)
        told = cal.compare.nemenyi(found, larger_is_better=measure in LARGER)
        title = f"{measure.replace(IN_FOLDS, ', mean over folds')}: {WORDS[model]}"
        cal.diagrams.critical_difference_diagram(told, ax=axes, title=title)
    return save(figure, path)
