"""The pictures of docs/evidence/papers/naeini2015.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.papers.naeini2015 import adult, orders, pages, simulated
from experiments.papers.naeini2015.methods import BASE, MEASURES, METHODS, Array

#: the colours of Okabe and Ito, told apart by all readers
ORANGE, SKY, GREEN, BLUE, RED, PINK = (
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
GREY = "#666666"
SHOWN = {"IsoReg": (GREEN, "--"), "Platt": (GREY, ":"), "SBB": (ORANGE, "-"), "ABB": (BLUE, "-")}
FONT = 11
#: rows from which the true curve of a map is counted
MANY = 400_000


def _tidy(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=FONT)


def _save(figure: Figure, folder: Path, name: str) -> list[str]:
    figure.savefig(folder / name, dpi=110)
    return [name]


def truth(problem: str, model: Any, edges: Array) -> Array:
    """Share of positives between edges of the score, from a great many rows."""
    X, y = simulated.PROBLEMS[problem](MANY, np.random.default_rng(10**6))
    place = np.searchsorted(edges, model.predict_proba(X)[:, 1]) - 1
    inside = (place >= 0) & (place < len(edges) - 1)
    cells = len(edges) - 1
    rows = np.bincount(place[inside], minlength=cells)
    found: Array = np.bincount(place[inside], y[inside], minlength=cells) / np.maximum(rows, 1)
    return found


def scatter(problem: str, title: str, seed: int) -> Figure:
    """The training rows with the model's direction, and what the methods make of its score."""
    data = simulated.draw(problem, seed)
    figure = Figure(figsize=(10, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.35))
    X, y = data.train
    for label, colour, mark in ((0, SKY, "o"), (1, RED, "^")):
        rows = y == label
        words = ("negative", "positive")[label]
        left.scatter(*X[rows].T, s=14, c=colour, marker=mark, alpha=0.7, label=words, lw=0)
    way = data.model.coef_[0] / np.linalg.norm(data.model.coef_[0])
    reach = 0.8 * np.abs(X).max()
    left.annotate(
        "", reach * way, -reach * way, arrowprops={"arrowstyle": "-|>", "lw": 2, "color": "black"}
    )
    left.annotate(" score", reach * way, fontsize=FONT, xytext=(4, 4), textcoords="offset points")
    left.set_aspect("equal")
    left.legend(fontsize=FONT - 1, loc="upper left", framealpha=0.9)
    left.set_title(f"{title}: the training rows", fontsize=FONT + 1)
    scores = data.scores(data.known)
    grid = np.linspace(*np.quantile(scores, [0.002, 0.998]), 800)
    edges = np.linspace(grid[0], grid[-1], 61)
    middle = 0.5 * (edges[1:] + edges[:-1])
    right.plot(
        middle, truth(problem, data.model, edges), color="black", lw=4, alpha=0.25, label="truth"
    )
    for name, (colour, style) in SHOWN.items():
        made = METHODS[name]().fit(scores, data.known.y)
        right.plot(grid, made.calibrate(grid), style, color=colour, lw=2, label=name)
    right.set(ylim=(-0.03, 1.03))
    right.set_xlabel("score of the logistic regression", fontsize=FONT)
    right.set_ylabel("probability", fontsize=FONT)
    right.legend(
        fontsize=FONT - 1,
        ncols=5,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        frameon=False,
        columnspacing=1.2,
        handlelength=1.6,
    )
    for axes in (left, right):
        _tidy(axes)
    return figure


def draw_xor(frame: pd.DataFrame, folder: Path) -> list[str]:
    """The first draw near a diagonal."""
    seed = int(simulated.near_diagonal(frame)["seed"].iloc[0])
    return _save(scatter("XOR", "XOR", seed), folder, "naeini2015_xor.png")


def draw_circular(frame: pd.DataFrame, folder: Path) -> list[str]:
    seed = int(frame["seed"].iloc[0])
    return _save(scatter("circular", "Circular", seed), folder, "naeini2015_circular.png")


def draw_lr(frame: pd.DataFrame, folder: Path) -> list[str]:
    """Adult, logistic regression: published figures beside ours in two readings of the data."""
    ways = {
        adult.ALL: ("all attributes", SKY, 0.16),
        adult.WORDS: ("nominal, as codes", BLUE, -0.16),
    }
    names = {name: "LR" if name == BASE else name for name in pages.COLUMNS}
    figure = Figure(figsize=(11, 3.9), layout="constrained")
    panels = figure.subplots(1, len(MEASURES), sharey=True)
    for axes, measure in zip(panels, MEASURES, strict=True):
        for i, name in enumerate(names):
            for reading, (words, colour, shift) in ways.items():
                cell = pages.groups("1e", frame[frame["reading"] == reading])[measure][name]
                axes.errorbar(
                    cell.mean,
                    -i + shift,
                    xerr=cell.reach_of_a_run,
                    fmt="o",
                    color=colour,
                    ms=5,
                    lw=2,
                    label=f"ours, {words}" if i == 0 else None,
                )
            axes.plot(
                cell.published,
                -i,
                "D",
                color=RED,
                ms=7,
                mec="white",
                zorder=3,
                label="published" if i == 0 else None,
            )
        axes.set_title(measure, fontsize=FONT + 1)
        axes.grid(axis="y", alpha=0.3)
        _tidy(axes)
        axes.tick_params(axis="x", labelsize=FONT - 2)
    panels[0].set_yticks([-i for i in range(len(names))], list(names.values()), fontsize=FONT)
    lines, words = panels[0].get_legend_handles_labels()
    figure.legend(lines, words, loc="outside lower center", ncols=3, fontsize=FONT, frameon=False)
    return _save(figure, folder, "naeini2015_adult_lr.png")


COLOURS = (GREY, SKY, GREEN, PINK, ORANGE, BLUE, BLUE, RED, "black", GREEN)


#: where a colour comes twice
STYLES = {orders.TEXT: "--", "ELiTE": "-."}


def draw_orders(frame: pd.DataFrame, folder: Path) -> list[str]:
    """CPU time of a fit and of a query against the number of rows."""
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    panels = figure.subplots(1, 2)
    titles = {"rows": "a fit, from rows", "query": "one query, through calibrate"}
    marks = "os^vDPXph*"
    for axes, (column, title) in zip(panels, titles.items(), strict=True):
        for i, name in enumerate(orders.METHODS):
            found = orders.times(frame, name, column)
            style = STYLES.get(name, "-")
            axes.loglog(
                found.index, found, style, marker=marks[i], color=COLOURS[i], ms=6, label=name
            )
        axes.set_title(title, fontsize=FONT + 1)
        axes.set_xlabel("rows", fontsize=FONT)
        axes.set_ylabel("CPU seconds", fontsize=FONT)
        _tidy(axes)
    _guides(panels[0], frame)
    panels[1].set_ylim(1e-6, 1e-3)
    lines, words = panels[0].get_legend_handles_labels()
    figure.legend(lines, words, loc="outside right center", fontsize=FONT - 1, frameon=False)
    return _save(figure, folder, "naeini2015_orders.png")


def _guides(axes: Any, frame: pd.DataFrame) -> None:
    """Lines of slope 1 and 2, to compare with."""
    n = np.array([frame["n"].min(), frame["n"].max()], dtype=float)
    low, high = axes.get_ylim()
    for power, start in ((1, 0.35e-3), (2, 0.5)):
        t = start * (n / n[0]) ** power
        axes.plot(n, t, color="black", lw=1, alpha=0.5, ls=":")
        end = min(n[1], n[0] * (0.5 * high / start) ** (1 / power))
        axes.annotate(
            f"N{'²' if power == 2 else ''}",
            (end, start * (end / n[0]) ** power),
            fontsize=FONT,
            alpha=0.8,
            ha="right",
            va="bottom",
        )
    axes.set_ylim(low, high)
