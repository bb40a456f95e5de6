"""Draw the picture of docs/understand/methods/acp.md anew: python -m docs.scripts.make_acp_picture.

Adult (income above $50,000; the data are looked for as `experiments.data` says): a logistic
regression fitted on 500 rows with hardly any penalty, calibrated on 5,000 others. Left, twelve test
rows in pairs of about the same score, one of a narrow and one of a wide interval; in the middle,
what ACP makes of 4,000 test rows; right, the reliability of all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from experiments.data import read, tasks
from experiments.study import encode
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import calibrant as cal

PICTURE = Path(__file__).parent.parent / "pictures" / "acp.png"
#: the colours of Okabe and Ito, told apart by all readers
ORANGE, BLUE, RED = "#E69F00", "#0072B2", "#D55E00"
TRAIN, CALIBRATE, SHOWN = 500, 5000, 4000
LEVEL, WIDE = 0.5, 0.95
#: the scores whose pairs of rows are shown
PLACES = (0.08, 0.25, 0.42, 0.58, 0.75, 0.92)

Array = NDArray[np.float64]


class Calibrated(NamedTuple):
    """Test rows: labels, the model's probabilities, intervals, and bins at two levels."""

    y: NDArray[np.intp]
    p: Array
    lower: Array
    upper: Array
    bins: Any
    wide: Any


def calibrated() -> Calibrated:
    task = next(task for task in tasks(600) if task.name == "adult")
    X, y = read(task, most=10**6)
    order = np.random.default_rng(0).permutation(len(y))
    train, known, new = np.split(order, [TRAIN, TRAIN + CALIBRATE])
    coder = encode(X.iloc[train])
    A, B, C = (coder.transform(X.iloc[rows]) for rows in (train, known, new))
    model = LogisticRegression(C=100, max_iter=5000).fit(A, y[train])
    acp = cal.ACP(smoothing="laplace").fit(model.predict_proba(B), y[known])
    p = model.predict_proba(C)[:, 1]
    found = [cal.prediction_interval(model, C, level=level, train=(A,)) for level in (LEVEL, WIDE)]
    bins = [acp.bins(p, lower=one.lower, upper=one.upper) for one in found]
    return Calibrated(y[new], p, found[0].lower, found[0].upper, *bins)


def pairs(data: Calibrated) -> list[int]:
    """At each place the rows whose width is at the 10th and the 85th percentile of those near."""
    width, rows = data.upper - data.lower, []
    for place in PLACES:
        near = np.flatnonzero(np.abs(data.p - place) < 0.01)
        near = near[np.argsort(width[near], kind="stable")]
        rows += [int(near[int(share * len(near))]) for share in (0.1, 0.85)]
    return rows


def draw_rows(axes: Any, data: Calibrated) -> None:
    for i, row in enumerate(pairs(data)):
        height = i + 0.7 * (i // 2)
        low, high, p, q = (x[row] for x in (data.lower, data.upper, data.p, data.bins.probability))
        axes.plot([low, high], [height, height], color=ORANGE, lw=5, solid_capstyle="butt")
        axes.plot(p, height, "o", ms=6, mfc="white", mec="black", mew=1.2, zorder=3)
        axes.plot(q, height, "D", ms=5, color=BLUE, zorder=4)
        text = f"{data.bins.weight[row]:,.0f}"
        axes.text(1.13, height, text, ha="right", va="center", fontsize=8, color="0.3")
    axes.text(1.13, height + 1.3, "calibration\nrows in it", ha="right", fontsize=7, color="0.3")
    handles = (
        mpl.lines.Line2D([], [], color=ORANGE, lw=5, label="50 % interval"),
        mpl.lines.Line2D([], [], ls="", marker="o", mfc="white", mec="black", label="model"),
        mpl.lines.Line2D([], [], ls="", marker="D", color=BLUE, label="frequency in it (ACP)"),
    )
    axes.legend(handles=handles, loc="upper left", fontsize=7.5, frameon=False)
    axes.set(xlim=(-0.02, 1.14), ylim=(-1, height + 4.6), yticks=[], xlabel="probability")
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_title("Twelve rows, two at about each score", fontsize=9)


def draw_answers(figure: Any, axes: Any, data: Calibrated) -> None:
    width = (data.upper - data.lower)[:SHOWN]
    order = np.argsort(width, kind="stable")
    dots = axes.scatter(
        data.p[:SHOWN][order],
        data.bins.probability[:SHOWN][order],
        c=width[order],
        s=3,
        cmap="viridis",
        vmin=0,
        vmax=0.4,
        lw=0,
    )
    axes.plot([0, 1], [0, 1], color="0.6", lw=0.8, zorder=0)
    figure.colorbar(dots, ax=axes, label="width of the interval", shrink=0.85, extend="max")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="model", ylabel="ACP, 50 % intervals")
    axes.set_title(f"{SHOWN:,} rows: no function of the score", fontsize=9)


def draw_reliability(axes: Any, data: Calibrated) -> None:
    lines = {
        "model": (data.p, RED, "o"),
        "ACP, 95 % intervals": (data.wide.probability, ORANGE, "s"),
        "ACP, 50 % intervals": (data.bins.probability, BLUE, "D"),
    }
    axes.plot([0, 1], [0, 1], color="0.6", lw=0.8, zorder=0)
    for name, (p, colour, marker) in lines.items():
        curve = cal.diagrams.reliability_curve(data.y, p)
        label = f"{name}: ECE {cal.metrics.ece(data.y, p):.3f}"
        axes.fill_between(curve.mean_p, curve.lower, curve.upper, color=colour, alpha=0.2, lw=0)
        axes.plot(
            curve.mean_p, curve.fraction, color=colour, marker=marker, ms=4, lw=1.2, label=label
        )
    axes.legend(loc="upper left", fontsize=7.5, frameon=False)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted", ylabel="frequency")
    axes.set_title(f"Reliability on {len(data.y):,} rows", fontsize=9)


def picture() -> Figure:
    data = calibrated()
    figure = Figure(figsize=(11, 3.9), dpi=150, layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.15, 1.2, 1))
    draw_rows(left, data)
    draw_answers(figure, middle, data)
    draw_reliability(right, data)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    left.spines["left"].set_visible(False)
    return figure


def main() -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    with mpl.rc_context({"font.size": 9, "axes.linewidth": 0.7}):
        # without the version of matplotlib, an unchanged picture stays the same file
        picture().savefig(PICTURE, metadata={"Software": None})


if __name__ == "__main__":
    main()
