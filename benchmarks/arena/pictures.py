"""The arena's pictures: win rates and harm, cost against quality, and critical differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import calibrant as cal
from benchmarks.arena import standings
from benchmarks.arena.matches import MEASURES
from benchmarks.arena.methods import NOTHING, OURS

DARK, LIGHT, FIRST = "#333333", "#9aa5b1", "#c0392b"


def draw(results: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw all pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    found = standings.kinds(results)
    frames = {kind: standings.standing(results, kind, MEASURES[0]) for kind in found}
    drawn = [
        _save(win_figure(frames), folder / "arena.png"),
        _save(cost_figure(frames), folder / "arena_cost.png"),
    ]
    for kind in found:
        table = standings.by_dataset(results, kind, MEASURES[0])
        if len(table) >= 3:
            whole = cal.compare.compare(table.round(9), larger_is_better=False)
            figure = cal.diagrams.critical_difference_diagram(
                whole, title=f"Log loss, {standings.KINDS[kind]}: mean ranks over datasets"
            )
            drawn.append(_save(figure, folder / f"arena_ranks_{kind}.png"))
    return drawn


def _save(figure: Figure, path: Path) -> Path:
    # without the version of matplotlib, an unchanged picture stays the same file
    figure.savefig(path, metadata={"Software": None}, dpi=130)
    return path


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _colour(name: Any) -> str:
    return FIRST if name == OURS else DARK


def win_figure(frames: dict[str, pd.DataFrame]) -> Figure:
    """Win rate and share made worse, a row for each method, with intervals over datasets."""
    lines = [len(frame) for frame in frames.values()]
    figure = _figure(9, 1.1 + 0.24 * sum(lines) + 0.6 * len(lines))
    axes = figure.subplots(len(frames), 2, squeeze=False, height_ratios=lines)
    for row, (kind, best_first) in enumerate(frames.items()):
        frame = best_first.iloc[::-1]
        place = np.arange(len(frame))
        for column, (value, scale) in enumerate((("win rate", 1.0), ("made worse", 100.0))):
            axis = axes[row, column]
            for at, (name, line) in zip(place, frame.iterrows(), strict=True):
                if name == NOTHING and column:
                    continue
                ends = [scale * line[f"{value} low"], scale * line[f"{value} high"]]
                axis.plot(ends, [at, at], color=_colour(name), alpha=0.45, linewidth=2.5)
                axis.plot(scale * line[value], at, "o", color=_colour(name), markersize=5)
            axis.set_ylim(-0.7, len(frame) - 0.3)
            axis.set_yticks(place, list(frame.index) if column == 0 else [""] * len(frame))
            axis.grid(axis="x", color="#e5e5e5")
            axis.set_axisbelow(True)
            axis.spines[["top", "right", "left"]].set_visible(False)
            axis.tick_params(axis="y", length=0)
            for label in axis.get_yticklabels():
                if label.get_text() == OURS:
                    label.set(color=FIRST, fontweight="bold")
        words = f"{standings.KINDS[kind]}: {frame['datasets'].iloc[0]:.0f} datasets"
        axes[row, 0].set_title(f"{words}, log loss", loc="left", fontsize=10, fontweight="bold")
        axes[row, 0].set_xlabel("pairwise win rate (more is better)")
        axes[row, 1].set_xlabel("made worse than doing nothing, % (less is better)")
        axes[row, 1].set_xlim(left=0)
    return figure


def cost_figure(frames: dict[str, pd.DataFrame]) -> Figure:
    """Win rate against the median CPU time of fitting and applying, which has a log axis."""
    figure = _figure(6.2 * max(1, len(frames)), 5.4)
    axes = figure.subplots(1, max(1, len(frames)), squeeze=False)[0]
    for axis, (kind, everyone) in zip(axes, frames.items(), strict=False):
        frame = everyone.drop(NOTHING)
        axis.set_xscale("log")
        for name, line in frame.iterrows():
            axis.plot(line["median ms"], line["win rate"], "o", color=_colour(name))
        _label(axis, frame)
        axis.set_xlabel("fit and predict, median CPU ms")
        axis.set_ylabel("pairwise win rate, log loss")
        axis.set_title(standings.KINDS[kind], loc="left", fontweight="bold")
        axis.grid(color="#e5e5e5")
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def _label(axis: Any, frame: pd.DataFrame) -> None:
    """Names beside the points, moved up or down where they would lie on something else."""
    frame = frame[frame["median ms"].notna()]
    step = max(frame["win rate"].max() - frame["win rate"].min(), 0.1) / 30
    left, right = frame["median ms"].min() / 1.5, frame["median ms"].max() * 12
    axis.set_xlim(left, right)
    letter = np.log(right / left) / 100  # the width of a letter on the log axis
    taken = [
        (np.log(x), y, 1.0) for x, y in zip(frame["median ms"], frame["win rate"], strict=True)
    ]

    def is_free(x: float, y: float, letters: int) -> bool:
        return not any(
            abs(y - other) < step and x - letter * more < at < x + letter * letters
            for at, other, more in taken
        )

    for name, line in frame.iterrows():
        x, y = np.log(line["median ms"]) + letter, float(line["win rate"])
        steps = sorted(range(-40, 41), key=abs)
        up = next((i for i in steps if is_free(x, y + i * step / 2, len(str(name)))), 0)
        at = y + up * step / 2
        taken.append((x, at, float(len(str(name)))))
        axis.annotate(
            str(name),
            (line["median ms"], y),
            (np.exp(x), at),
            fontsize=7.5,
            color=_colour(name),
            va="center",
            fontweight="bold" if name == OURS else "normal",
            arrowprops={"arrowstyle": "-", "color": LIGHT, "linewidth": 0.6} if up else None,
        )
