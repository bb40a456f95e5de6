"""Histograms, reliability points and curves, drawn from rows of figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BINS", "CELLS", "COLORS", "histogram", "new_figure", "read_shape", "reliability",
           "save", "shape"]  # fmt: skip

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: bars of a histogram, and bins of a reliability diagram (the paper's ten)
CELLS, BINS = 20, 10
#: safe for the colour-blind, and of different darkness
COLORS = {"raw": "#000000", "Platt": "#0072B2", "isotonic": "#D55E00", "grey": "#9aa0a6",
          "log loss": "#009E73", "fourth": "#CC79A7"}  # fmt: skip


def shape(name: str, y: Index, p: Array) -> dict[str, float]:
    """The histogram of predictions, and mean and fraction of positives in ten bins, as columns."""
    counts = np.bincount(np.minimum((p * CELLS).astype(int), CELLS - 1), minlength=CELLS)
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    n = np.bincount(place, minlength=BINS)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(place, p, minlength=BINS) / n
        fraction = np.bincount(place, y, minlength=BINS) / n
    row = {f"{name} cell {i}": float(c) for i, c in enumerate(counts)}
    for b in np.flatnonzero(n):
        row |= {f"{name} n {b}": float(n[b]), f"{name} mean {b}": float(mean[b]),
                f"{name} fraction {b}": float(fraction[b])}  # fmt: skip
    return row


def read_shape(row: Any, name: str) -> dict[str, Array]:
    """What `shape` wrote; bins without predictions are NaN (their number is 0)."""
    found = {
        word: np.array([float(row.get(f"{name} {word} {i}", np.nan)) for i in range(size)])
        for word, size in (("cell", CELLS), ("n", BINS), ("mean", BINS), ("fraction", BINS))
    }
    return found | {"n": np.nan_to_num(found["n"])}


def new_figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """A figure without pyplot's global state, and its axes in rows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def histogram(axes: Axes, found: dict[str, Array], title: str = "") -> None:
    """Shares of the rows; the bars of all panels are on scales of their own."""
    share = found["cell"] / found["cell"].sum()
    axes.bar((np.arange(CELLS) + 0.5) / CELLS, share, 1 / CELLS, color=COLORS["grey"],
             edgecolor="white", linewidth=0.5)  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_title(title, fontsize=11)
    axes.tick_params(labelsize=9)
    axes.set_xticks([0, 0.5, 1])
    axes.set_xticklabels([])
    axes.locator_params(axis="y", nbins=3)


def reliability(axes: Axes, found: dict[str, Array], line: tuple[Array, Array, str] | None) -> None:
    """Fraction of positives against the mean prediction; over it the function of that name."""
    axes.plot([0, 1], [0, 1], color=COLORS["grey"], linewidth=1, linestyle=":")
    if line is not None:
        x, values, name = line
        style = {"isotonic": "steps-mid"}.get(name, "default")
        axes.plot(x, values, color=COLORS[name], linewidth=1.6, drawstyle=style)
    full = found["n"] > 0
    axes.plot(found["mean"][full], found["fraction"][full], "ko", markersize=4.5,
              linestyle="none" if line is not None else "-", linewidth=1)  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xticks([0, 0.5, 1])
    axes.set_yticks([0, 0.5, 1])
    axes.tick_params(labelsize=9)


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write a picture without a time stamp, and say its name."""
    file = f"niculescu2005_{name}.png"
    figure.savefig(folder / file, dpi=100, metadata={"Software": None})
    return file
