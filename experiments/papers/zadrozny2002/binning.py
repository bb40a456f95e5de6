"""Histogram binning against PAV on Adult: is it "always worse"?"""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

import calibrant as cal
from experiments import table
from experiments.papers.beside import positives
from experiments.papers.cells import Cell, Row, Table
from experiments.papers.zadrozny2002.picture import COLOURS, canvas, keep, tidy
from experiments.papers.zadrozny2002.scores import DRAWN, fitted, scores
from experiments.papers.zadrozny2002.two_class import squared

MODELS = ("NB", "SVM")
SIZES = tuple(range(5, 51))
#: "bin sizes varying from 5 to 50": numbers of bins, or of training rows in each
READINGS = ("bins", "rows in a bin")


def how_many(reading: str, size: int, n: int) -> int:
    """How many bins a size means with n rows."""
    return {"bins": size, "rows in a bin": max(1, round(n / size))}[reading]


def run(model: str, reading: str, size: int) -> Row:
    """Equal-mass histogram against PAV on the test rows: MSE, and how sure the difference is."""
    found = scores("adult", model, DRAWN["adult", model])
    bins = how_many(reading, size, len(found.y))
    p = cal.Histogram(bins=bins).fit(found.train, found.y).calibrate(found.new)
    q = fitted("PAV", found).calibrate(found.new)
    gap = 2 * ((p - found.y_new) ** 2 - (q - found.y_new) ** 2)
    return {
        "MSE": squared(found.y_new, p),
        "PAV MSE": squared(found.y_new, q),
        "error": 1 - cal.metrics.accuracy(found.y_new, p),
        "PAV error": 1 - cal.metrics.accuracy(found.y_new, q),
        "above": float(gap.mean()),
        "standard error": float(gap.std(ddof=1) / math.sqrt(len(gap))),
    }


def cells(quick: bool) -> list[Cell]:
    return [
        {"model": model, "reading": reading, "size": size}
        for model in MODELS
        for reading in READINGS
        for size in SIZES
    ]


def lines(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    """Per model and reading: the best and worst size, and how often binning is worse than PAV."""
    found: list[tuple[object, ...]] = []
    for (model, reading), part in frame.groupby(["model", "reading"], sort=False):
        best, worst = part.loc[part["MSE"].idxmin()], part.loc[part["MSE"].idxmax()]
        clear = 2 * part["standard error"]
        found.append(
            (
                model,
                reading,
                f"{part['PAV MSE'].iloc[0]:.5f}",
                f"{best['MSE']:.5f} ({best['size']:.0f})",
                f"{worst['MSE']:.5f} ({worst['size']:.0f})",
                f"{int((part['above'] > 0).sum())} of {len(part)}",
                int((part["above"] > clear).sum()),
                int((part["above"] < -clear).sum()),
            )
        )
    return found


PAGE = """Equal-mass histograms of the training scores, MSE of the test rows of Adult; codings as in
the figures. "Bin sizes varying from 5 to 50" may be numbers of bins, or of training rows in each:
both are tried, with every size from 5 to 50. Clearly: by more than two standard errors of the mean
difference, row by row.

"""
HEADS = (
    "model",
    "size is",
    "PAV MSE",
    "best (size)",
    "worst (size)",
    "worse than PAV",
    "clearly worse",
    "clearly better",
)


def page(frame: pd.DataFrame) -> str:
    return f"{PAGE}{table(HEADS, lines(frame))}\n\n{positives(['adult'])}"


def draw(frame: pd.DataFrame, folder: Path) -> list[str]:
    """MSE above PAV's by size: a panel for each reading."""
    figure = canvas(7.2, 2.9)
    panels = figure.subplots(1, len(READINGS))
    for axes, reading in zip(panels, READINGS, strict=True):
        for model, colour in zip(MODELS, COLOURS, strict=False):
            part = frame[(frame["model"] == model) & (frame["reading"] == reading)]
            part = part.sort_values("size")
            low, high = (part["above"] + sign * 2 * part["standard error"] for sign in (-1.0, 1.0))
            axes.fill_between(part["size"], low, high, color=colour, alpha=0.2, lw=0)
            axes.plot(part["size"], part["above"], color=colour, label=model)
        axes.axhline(0, color="0.3", lw=0.8, ls=":")
        axes.set(xlabel=reading, xlim=(5, 50))
        tidy(axes)
    panels[0].set_ylabel("test MSE above PAV's")
    panels[0].legend(frameon=False)
    return keep(figure, folder, "zadrozny2002_binning.png")


TABLES = (Table("binning", "Adult: binning against PAV", cells, run, page, figures=draw),)
