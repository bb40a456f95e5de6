"""Draw the pictures of docs/understand/methods/near_isotonic.md anew.

The near-isotonic path of one data set with its weights; and step and piecewise linear maps beside
the truth, on scores that mislead in one place and on scores that crowd near 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import calibrant as cal

DOCS = Path(__file__).parent.parent
PICTURES = DOCS / "pictures"
#: the colours of Okabe and Ito, told apart by all readers
BLACK, ORANGE, SKY, GREEN, BLUE, RED, PINK = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)

Array = NDArray[np.float64]


class Example(NamedTuple):
    """Scores, labels, and the probability of a positive at any score."""

    scores: Array
    y: NDArray[np.intp]
    truth: Callable[[Array], Array]

    @property
    def table(self) -> cal.ScoreTable:
        return cal.ScoreTable.from_arrays(self.scores, self.y)


def dip(scores: Array) -> Array:
    """Rises on the whole, but falls between 0.35 and 0.6."""
    return np.interp(scores, [0, 0.1, 0.35, 0.6, 0.85, 1], [0.05, 0.1, 0.6, 0.3, 0.9, 0.95])


def misleading(rows: int, seed: int) -> Example:
    """A score that ranks wrongly in the middle."""
    rng = np.random.default_rng(seed)
    scores = rng.random(rows)
    return Example(scores, (rng.random(rows) < dip(scores)).astype(np.intp), dip)


def softened(scores: Array) -> Array:
    """What a probability is worth whose log odds are three times too large."""
    odds = (scores / (1 - scores)) ** (1 / 3)
    return np.asarray(odds / (1 + odds))


def crowded(rows: int, seed: int) -> Example:
    """Overconfident probabilities, most of them near 0 and 1."""
    rng = np.random.default_rng(seed)
    scores = 1 / (1 + np.exp(-rng.normal(0.0, 6.0, rows)))
    return Example(scores, (rng.random(rows) < softened(scores)).astype(np.intp), softened)


def groups(example: Example, count: int) -> tuple[Array, Array]:
    """Mean score and frequency in so many groups of equal size."""
    order = np.argsort(example.scores)
    parts = np.array_split(order, count)
    x, y = example.scores, example.y
    return np.array([np.median(x[part]) for part in parts]), np.array([y[p].mean() for p in parts])


def bare(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def title(axes: Any, text: str) -> None:
    axes.set_title(text, fontsize=8.5)


# --- the path -------------------------------------------------------------------------------------


def draw_fit(axes: Any, example: Example, fit: Array, colour: str) -> None:
    """A fit at the scores, with the rows along the edges and the truth."""
    table = example.table
    for label, height in ((0, -0.035), (1, 1.035)):
        at = example.scores[example.y == label]
        axes.plot(at, np.full(len(at), height), "|", color="0.55", ms=3, mew=0.4)
    x = np.linspace(0, 1, 501)
    axes.plot(x, example.truth(x), color=BLACK, lw=1, ls=(0, (4, 2)))
    axes.step(table.scores, fit, where="mid", color=colour, lw=1.3)
    axes.set(xlim=(0, 1), ylim=(-0.07, 1.07), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    bare(axes)


def draw_along(row: Any, path: Any, weights: Array, marks: dict[str, tuple[float, str]]) -> None:
    """Bins, BIC and weights along λ, with the fits of the row above marked."""
    for axes, values in ((row[0], path.df), (row[1], path.bic)):
        axes.plot(path.lambdas, values, drawstyle="steps-post", color="0.3", lw=1.2)
    row[2].vlines(path.lambdas, 0, weights, color="0.3", lw=1.6)
    row[2].set_ylim(0, None)
    for axes, name in zip(row, ("number of bins", "BIC", "weight in the average"), strict=True):
        for value, colour in marks.values():
            axes.axvline(value, color=colour, lw=3, alpha=0.5, zorder=0)
        axes.set(xscale="log", xlabel="λ")
        axes.set_xticks([1, 10], ["1", "10"])
        title(axes, name)
        bare(axes)
    row[0].set_yscale("log")
    row[0].set_yticks([10, 20, 50, 100], ["10", "20", "50", "100"])
    row[0].set_yticks([], minor=True)


def draw_path() -> Figure:
    example = misleading(400, seed=7)
    table = example.table
    path = cal.calibrators.near_isotonic_path(table)
    average = cal.ENIR(variant="paper").fit_table(table)
    weights = np.zeros(len(path))
    weights[np.searchsorted(path.lambdas, average.path_.lambdas)] = average.weights_
    best, last = float(path.lambdas[np.argmin(path.bic)]), float(path.lambdas[-1])
    marks = {
        "small": (0.1 * best, ORANGE),
        "least BIC": (best, BLUE),
        "isotonic": (last, RED),
    }
    figure = Figure(figsize=(7.2, 4.3), dpi=150, layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.25, 1))
    fits = upper.subplots(1, 4, sharex=True, sharey=True)
    for axes, (name, (value, colour)) in zip(fits[:3], marks.items(), strict=True):
        fit = path.at(value)
        draw_fit(axes, example, fit, colour)
        title(axes, f"λ = {value:.2g}: {name}\n{1 + np.count_nonzero(np.diff(fit))} bins")
    draw_fit(fits[3], example, average.calibrate(table.scores), GREEN)
    title(fits[3], f"ENIR: average of\n{len(path)} fits")
    fits[0].set_ylabel("probability")
    for axes in fits:
        axes.set_xlabel("score")
    draw_along(lower.subplots(1, 3), path, weights, marks)
    return figure


# --- steps and lines ------------------------------------------------------------------------------


def draw_maps(axes: Any, example: Example, methods: dict[str, tuple[Any, str]], x: Array) -> None:
    """Fitted maps beside the truth and the frequencies in 25 groups."""
    axes.plot(*groups(example, 25), "o", color="0.7", ms=3.5, mew=0, zorder=1)
    axes.plot(x, example.truth(x), color=BLACK, lw=1.1, ls=(0, (4, 2)), label="truth", zorder=2)
    for name, (method, colour) in methods.items():
        p = method.fit(example.scores, example.y).calibrate(x)
        axes.plot(x, p, color=colour, lw=1.5, label=name, zorder=3)
    axes.set(ylim=(-0.03, 1.03), yticks=[0, 0.5, 1])
    axes.legend(fontsize=7, frameon=False, loc="upper left", handlelength=1.6)
    bare(axes)


def draw_steps_and_lines() -> Figure:
    enir = cal.ENIR(interpolation="step", smoothing="jeffreys")
    steps = {"isotonic": (cal.Isotonic(), RED), "ENIR, steps": (enir, GREEN)}
    lines = {
        "ELiTE": (cal.ELiTE(scale="raw"), ORANGE),
        "ELiTE near": (cal.ELiTE(falls="priced", scale="raw"), BLUE),
    }
    logits = {"ELiTE near, logit": (cal.ELiTE(falls="priced", scale="logit"), PINK)}
    figure = Figure(figsize=(7.2, 5.6), dpi=150, layout="constrained")
    axes = figure.subplots(2, 2, sharey=True)
    example, x = misleading(1000, seed=3), np.linspace(0, 1, 2001)
    draw_maps(axes[0, 0], example, steps, x)
    draw_maps(axes[1, 0], example, lines, x)
    example, z = crowded(1000, seed=5), np.linspace(-12, 12, 2001)
    x = 1 / (1 + np.exp(-z))
    draw_maps(axes[0, 1], example, steps, x)
    draw_maps(axes[1, 1], example, {**lines, **logits}, x)
    title(axes[0, 0], "A score that misleads in the middle: steps")
    title(axes[1, 0], "… and lines")
    title(axes[0, 1], "Scores that crowd near 0 and 1: steps")
    title(axes[1, 1], "… and lines, in the score and in its logit")
    for one in axes[:, 1]:
        ticks = [0.0001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.9999]
        one.set_xscale("logit")
        one.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        one.set_xticks([], minor=True)
        one.set_xlim(1e-5, 1 - 1e-5)
    for one in axes[:, 0]:
        one.set(xlim=(0, 1), xticks=[0, 0.25, 0.5, 0.75, 1], ylabel="probability")
    for one in axes[1]:
        one.set_xlabel("score")
    return figure


# --- along λ --------------------------------------------------------------------------------------


DRAWINGS = {
    "near_isotonic_path.png": draw_path,
    "near_isotonic_maps.png": draw_steps_and_lines,
}


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with mpl.rc_context({"font.size": 9, "axes.linewidth": 0.7}):
        for name, draw in DRAWINGS.items():
            # without the version of matplotlib, an unchanged picture stays the same file
            draw().savefig(PICTURES / name, metadata={"Software": None})


if __name__ == "__main__":
    main()
