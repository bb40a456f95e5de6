"""Figures 1, 2, 3 and 5: reliability of raw scores, and the maps that are learned from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments import table
from experiments.papers.beside import positives
from experiments.papers.cells import Cell, Row, Table
from experiments.papers.zadrozny2002.picture import COLOURS, canvas, keep, tidy
from experiments.papers.zadrozny2002.scores import DRAWN, fitted, scores

#: the paper's bin widths, on scores from 0 to 1
WIDTHS = {("adult", "NB"): 0.1, ("tic", "NB"): 0.15, ("adult", "SVM"): 0.08, ("tic", "SVM"): 0.15}
#: a map is drawn at so many places
PLACES = 200
NAMES = {"adult": "Adult", "tic": "TIC"}


class Panel(NamedTuple):
    """A dataset and a model, and the map that is drawn through the points, if any."""

    dataset: str
    model: str
    method: str = ""

    @property
    def title(self) -> str:
        return f"{NAMES[self.dataset]}, {self.model}"


FIGURES = {
    "figure1": (Panel("adult", "NB"), Panel("tic", "NB")),
    "figure2": (Panel("adult", "SVM"), Panel("tic", "SVM")),
    "figure3": (Panel("adult", "SVM", "Sigmoid"), Panel("tic", "SVM", "Sigmoid")),
    "figure5": (Panel("adult", "NB", "PAV"), Panel("adult", "SVM", "PAV")),
}


def bins(panel: Panel) -> int:
    """Bins of the paper's width from 0 to 1; the last one may be narrower."""
    return math.ceil(1 / WIDTHS[panel[:2]] - 1e-9)


def in_bin(panel: Panel, place: int) -> Row:
    """The test rows of a bin: their number, mean scores, share of positives, mean of the map."""
    found = scores(panel.dataset, panel.model, DRAWN[panel[:2]])
    width = WIDTHS[panel[:2]]
    at = np.minimum((found.base_new / width + 1e-9).astype(int), bins(panel) - 1)
    inside = at == place
    if not inside.any():
        return {"rows": 0}
    row: dict[str, float | str | int] = {
        "rows": int(inside.sum()),
        "rescaled": float(found.base_new[inside].mean()),
        "score": float(found.new[inside].mean()),
        "probability": float(found.y_new[inside].mean()),
    }
    if panel.method:
        row["map"] = float(fitted(panel.method, found).calibrate(found.new[inside]).mean())
    return row


def on_map(panel: Panel, place: int) -> Row:
    """The map at a place between the lowest and highest training score."""
    found = scores(panel.dataset, panel.model, DRAWN[panel[:2]])
    low, high = found.train.min(), found.train.max()
    score = low + (high - low) * place / PLACES
    return {
        "score": float(score),
        "probability": float(fitted(panel.method, found).calibrate([score])[0]),
    }


WHAT = {"test": in_bin, "map": on_map}


def run(figure: str, dataset: str, model: str, what: str, place: int) -> Row:
    """One point of a panel."""
    panel = {panel[:2]: panel for panel in FIGURES[figure]}[dataset, model]
    return WHAT[what](panel, place)


def cells(figure: str, quick: bool) -> list[Cell]:
    found: list[Cell] = []
    for panel in FIGURES[figure]:
        places = {"test": bins(panel), "map": PLACES + 1 if panel.method else 0}
        found += [
            {"dataset": panel.dataset, "model": panel.model, "what": what, "place": place}
            for what, count in places.items()
            for place in range(count)
        ]
    return found


# --- what the points say --------------------------------------------------------------------------


def points(frame: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """The bins of a panel that have rows, with how far they are from the line they should be on."""
    keys = (frame["dataset"] == panel.dataset) & (frame["model"] == panel.model)
    part = frame[keys & (frame["what"] == "test")].sort_values("place")
    if part.empty:
        return part
    part = part[part["rows"] > 0].copy()
    line = part["map"] if panel.method else part["rescaled"]
    part["gap"] = part["probability"] - line
    part["error"] = np.sqrt(np.maximum(line * (1 - line), 1e-12) / part["rows"])
    part["off"] = part["gap"].abs() > 2 * part["error"]
    return part


def curve(frame: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """The map of a panel."""
    keys = (frame["dataset"] == panel.dataset) & (frame["model"] == panel.model)
    return frame[keys & (frame["what"] == "map")].sort_values("place")


def rising(part: pd.DataFrame) -> tuple[int, int]:
    """Neighbouring bins that rise, or fall by no more than two standard errors; of how many."""
    p, n = part["probability"].to_numpy(), part["rows"].to_numpy()
    q = np.clip((p * n + 1) / (n + 2), 0, 1)
    error = np.sqrt(q * (1 - q) / n)
    steps, slack = np.diff(p), 2 * np.hypot(error[1:], error[:-1])
    return int((steps > -slack).sum()), len(steps)


def mean_gap(part: pd.DataFrame) -> float:
    """Distance from the line in a bin, averaged over test rows."""
    return float((part["gap"].abs() * part["rows"]).sum() / part["rows"].sum())


ABOUT = {
    "figure1": "Scores of naive Bayes, in bins of the paper's width, against the share of positives"
    " among the test rows.",
    "figure2": "Margins of the linear machine rescaled to (f + a)/2a, in bins of the paper's width,"
    " against the share of positives among the test rows.",
    "figure3": "The sigmoid learned from the training rows, and the share of positives among the"
    " test rows in bins of the paper's width.",
    "figure5": "PAV's map of the training rows, and the share of positives among the test rows in"
    " bins of the paper's width.",
}


def page(figure: str, frame: pd.DataFrame) -> str:
    """The bins in figures, and how many are off the line."""
    parts = [
        ABOUT[figure] + " The published points are drawn, not printed, and the drawing is not in"
        " our copy. Off: by more than two standard errors."
    ]
    for panel in FIGURES[figure]:
        part = points(frame, panel)
        if part.empty:
            continue
        up, steps = rising(part)
        line = "map" if panel.method else "score"
        names = ["score" if panel.method else "rescaled", "probability", "rows"]
        names = [*names[:1], *(["map"] if panel.method else []), *names[1:], "off"]
        heads = {"rescaled": "score", "probability": "share of positives", "off": f"off the {line}"}
        shown = [[_cell(name, row[name]) for name in names] for _, row in part.iterrows()]
        text = (
            f"### {panel.title}\n\nWidth {WIDTHS[panel[:2]]:g}. Off the {line}: "
            f"{int(part['off'].sum())} of {len(part)} bins, mean distance {mean_gap(part):.4f} over"
            f" test rows; {steps - up} of {steps} steps fall by more than two standard errors.\n\n"
        )
        parts.append(text + table([heads.get(name, name) for name in names], shown))
    tasks = dict.fromkeys(panel.dataset for panel in FIGURES[figure])
    return "\n\n".join([*parts, positives(tasks)])


def _cell(name: str, value: Any) -> str:
    if name == "off":
        return "yes" if value else ""
    return f"{value:,.0f}" if name == "rows" else f"{value:.3f}"


# --- drawn ----------------------------------------------------------------------------------------


def draw(figure: str, frame: pd.DataFrame, folder: Path) -> list[str]:
    """The panels side by side; bars are two standard errors of a bin's share."""
    sheet = canvas(7.2, 3.3)
    panels: Sequence[Any] = sheet.subplots(1, 2)
    for axes, panel in zip(panels, FIGURES[figure], strict=True):
        part = points(frame, panel)
        x = part["score" if panel.method else "rescaled"]
        if panel.method:
            line = curve(frame, panel)
            axes.plot(line["score"], line["probability"], color=COLOURS[1], label=panel.method)
            axes.set_xlabel({"NB": "score", "SVM": "margin"}[panel.model])
        else:
            axes.plot([0, 1], [0, 1], color="0.5", lw=0.9, ls="--", label="calibrated")
            axes.set(xlabel={"NB": "score", "SVM": "rescaled margin"}[panel.model], xlim=(0, 1))
        bars = 2 * np.sqrt(part["probability"] * (1 - part["probability"]) / part["rows"])
        axes.errorbar(
            x, part["probability"], bars, fmt="*", ms=8, color=COLOURS[0], lw=1, label="test rows"
        )
        axes.set(ylim=(-0.03, 1.03), title=panel.title)
        tidy(axes)
    panels[0].set_ylabel("share of positives")
    panels[0].legend(frameon=False, fontsize=9, loc="upper left")
    return keep(sheet, folder, f"zadrozny2002_{figure}.png")


TITLES = {
    "figure1": "Figure 1: reliability of naive Bayes",
    "figure2": "Figure 2: reliability of the rescaled margins",
    "figure3": "Figure 3: the sigmoid learned, and the test rows",
    "figure5": "Figure 5: PAV's map, and the test rows",
}

TABLES = tuple(
    Table(
        name,
        title,
        partial(cells, name),
        partial(run, name),
        partial(page, name),
        figures=partial(draw, name),
    )
    for name, title in TITLES.items()
)
