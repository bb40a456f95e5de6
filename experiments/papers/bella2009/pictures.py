"""Two pictures: published figures against ours, and CalBin by the order of ties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from experiments.papers.bella2009.repetition import BY_LABEL, METHODS
from experiments.papers.bella2009.summaries import by_dataset, complete
from experiments.papers.bella2009.tables import AVERAGE, printed

__all__ = ["draw"]

#: the colours of Okabe and Ito, told apart by all readers, and a mark for each method
LOOKS = {
    "model": ("#000000", "x"),
    "10-NN": ("#CC79A7", "D"),
    "binning": ("#E69F00", "s"),
    "PAV": ("#56B4E9", "^"),
    "Platt": ("#009E73", "v"),
    "SBA": ("#D55E00", "o"),
}
ORDERS = {
    "CalBin": ("ties together", "#0072B2", "o"),
    "CalBin as sorted": ("ties as the rows come", "#56B4E9", "^"),
    BY_LABEL: ("ties by label", "#E69F00", "s"),
}


def draw(frame: pd.DataFrame, folder: Path) -> list[str]:
    """Both pictures into a folder."""
    full = complete(frame)
    pictures = {"bella2009_beside.png": beside(full), "bella2009_ties.png": ties(full)}
    for name, figure in pictures.items():
        figure.savefig(folder / name)
    return list(pictures)


def beside(full: pd.DataFrame) -> Figure:
    """Every published figure against ours, in setting T and V."""
    figure = Figure(figsize=(8.0, 7.6), dpi=130, layout="constrained")
    panels = figure.subplots(2, 2)
    words = {"MSE": "MSE", BY_LABEL: "CalBin, ties by label"}
    for row, (measure, title) in zip(panels, words.items(), strict=True):
        given, found = printed(measure).drop(index=AVERAGE), by_dataset(full, measure)
        most = 1.04 * max(given.max().max(), found[list(METHODS)].max().max())
        for axes, setting in zip(row, "TV", strict=True):
            for method in [m for m in METHODS if m.endswith(setting)]:
                colour, mark = LOOKS[method[:-2]]
                ours = found[method]
                shown = given[method].reindex(ours.index)
                axes.scatter(shown, ours, s=26, c=colour, marker=mark, alpha=0.8, label=method[:-2])
            for method in ("Platt", "SBA"):
                if setting == "V" and "labor" in found.index:
                    x, y = (of.loc["labor", f"{method} V"] for of in (given, found))
                    axes.annotate("Labor", (x, y), (-5, 0), textcoords="offset points", ha="right",
                                  va="center", fontsize=8)  # fmt: skip
            _square(axes, most, f"{title}, setting {setting}")
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=6,
        frameon=False,
    )
    return figure


def _square(axes: Any, most: float, title: str) -> None:
    axes.plot([0, most], [0, most], color="0.7", lw=0.8, zorder=0)
    axes.set(xlim=(0, most), ylim=(0, most), aspect="equal", xlabel="published", ylabel="ours")
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def ties(full: pd.DataFrame) -> Figure:
    """Mean CalBin of each method with three orders of ties, and as published."""
    figure = Figure(figsize=(7.2, 4.2), dpi=130, layout="constrained")
    axes = figure.subplots()
    places = {name: -i for i, name in enumerate(METHODS)}
    given = printed("CalBin").loc[AVERAGE]
    for place in places.values():
        axes.axhline(place, color="0.92", lw=0.8, zorder=0)
    for measure, (text, colour, mark) in ORDERS.items():
        mean = by_dataset(full, measure).mean()
        x = [mean[name] for name in places]
        axes.scatter(x, list(places.values()), s=44, c=colour, marker=mark, label=text, zorder=2)
    x = [given[name] for name in places]
    axes.scatter(
        x, list(places.values()), s=90, c="k", marker="|", lw=2.2, label="published", zorder=3
    )
    axes.set_yticks(list(places.values()), list(places))
    axes.set(xlabel="CalBin, mean over 20 datasets and four models", xlim=(0.06, None))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure
