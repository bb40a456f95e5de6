"""Draw the picture of docs/understand/methods/binning.md anew.

A points score of 0 to 24 whose risk is high at both ends: no monotone map can follow it. Above, the
four likeliest of the 2^24 binnings with their posterior weights; below, the average over all of
them with its band, beside the truth, isotonic regression and Platt's sigmoid.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import calibrant as cal

PICTURE = Path(__file__).parent.parent / "pictures" / "binning.png"
#: the colours of Okabe and Ito, told apart by all readers
BLACK, ORANGE, SKY, GREEN, BLUE, RED = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#0072B2",
    "#D55E00",
)
POINTS, ROWS = 24, 500

Array = NDArray[np.float64]


class Binning(NamedTuple):
    """Where its bins start, and ln of prior times marginal likelihood (eq. 2.7)."""

    score: float
    starts: tuple[int, ...]


def truth(points: Array) -> Array:
    """Risk by points: falls, stays low, and rises again."""
    return 0.08 + 0.62 / (1 + np.exp(1.1 * (points - 5))) + 0.8 / (1 + np.exp(-0.9 * (points - 19)))


def simulate(seed: int) -> tuple[Array, NDArray[np.intp]]:
    rng = np.random.default_rng(seed)
    points = np.clip(np.rint(rng.normal(12, 6, ROWS)), 0, POINTS)
    return points, (rng.random(ROWS) < truth(points)).astype(np.intp)


def likeliest(table: cal.ScoreTable, lambda_: float, k: int) -> list[Binning]:
    """The k binnings of the highest score, by a dynamic programme over where the last bin starts.

    As in the paper, but with the k best in place of the best: O(D²·k).
    """
    n0, n1 = (np.append(0.0, np.cumsum(part)) for part in (table.negative, table.positive))
    h = lambda_ * np.diff(table.scores) / (table.scores[-1] - table.scores[0])
    run = np.append(0.0, np.cumsum(h))
    best: list[list[Binning]] = [[Binning(0.0, ())]]
    for u in range(1, len(table) + 1):
        found = []
        for low in range(u):
            a, b = n0[u] - n0[low], n1[u] - n1[low]
            bin_ = math.lgamma(a + 1) + math.lgamma(b + 1) - math.lgamma(a + b + 2)
            bin_ -= run[u - 1] - run[low]
            bin_ += math.log(-math.expm1(-h[low - 1])) if low else 0.0
            found += [Binning(m.score + bin_, (*m.starts, low)) for m in best[low]]
        best.append(sorted(found, reverse=True)[:k])
    return best[-1]


def step(table: cal.ScoreTable, starts: tuple[int, ...]) -> Any:
    """The map of a binning: (n₁+1)/(n+2) in each bin, cuts halfway."""
    n1, n = (np.add.reduceat(part, starts) for part in (table.positive, table.weight))
    cuts = [(table.scores[i - 1] + table.scores[i]) / 2 for i in starts[1:]]
    return cal.maps.Piecewise.step(cuts, (n1 + 1) / (n + 2))


def draw_points(axes: Any, table: cal.ScoreTable, scale: float) -> None:
    """Frequencies per point, the area by the number of rows."""
    axes.scatter(
        table.scores,
        table.positive / table.weight,
        s=scale * table.weight,
        color="0.6",
        edgecolors="white",
        linewidths=0.4,
        zorder=1,
    )


def draw_binnings(row: Any, table: cal.ScoreTable, lambda_: float, log_evidence: float) -> None:
    x = np.linspace(0, POINTS, 2001)
    for axes, binning in zip(row, likeliest(table, lambda_, len(row)), strict=True):
        weight = math.exp(binning.score - log_evidence)
        axes.plot(x, step(table, binning.starts)(x), color=ORANGE, lw=2, zorder=2)
        draw_points(axes, table, 0.7)
        axes.set_title(f"{len(binning.starts)} bins, weight {100 * weight:.1f} %", fontsize=9)


def draw_average(axes: Any, table: cal.ScoreTable, fitted: Any) -> None:
    x = np.linspace(0, POINTS, 1001)
    low, high = fitted.map_.bounds(x)
    axes.fill_between(x, low, high, color=SKY, alpha=0.45, lw=0, label="90 % band", zorder=0)
    draw_points(axes, table, 1.4)
    axes.plot(x, truth(x), color=BLACK, lw=1.2, ls=(0, (4, 2)), label="truth", zorder=2)
    axes.plot(x, fitted.calibrate(x), color=BLUE, lw=2, label="average (ABB)", zorder=3)
    axes.set_title("The average over all binnings", fontsize=9)


def draw_others(axes: Any, table: cal.ScoreTable) -> None:
    x = np.linspace(0, POINTS, 1001)
    draw_points(axes, table, 1.4)
    axes.plot(x, truth(x), color=BLACK, lw=1.2, ls=(0, (4, 2)), label="truth", zorder=2)
    for name, method, colour in (
        ("isotonic", cal.Isotonic(), RED),
        ("Platt", cal.Platt(), GREEN),
    ):
        axes.plot(x, method.fit_table(table).calibrate(x), color=colour, lw=2, label=name, zorder=3)
    axes.set_title("Monotone maps", fontsize=9)


def picture() -> Figure:
    points, y = simulate(seed=4)
    table = cal.ScoreTable.from_arrays(points, y)
    lambda_ = float(cal.SBB(lambda_="empirical").fit_table(table).lambdas_[0])
    fitted = cal.ABB(lambda_=lambda_, levels=(0.9,)).fit_table(table)
    figure = Figure(figsize=(7.2, 5.4), dpi=150, layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1, 1.5))
    small = upper.subplots(1, 4, sharex=True, sharey=True)
    large = lower.subplots(1, 2, sharex=True, sharey=True)
    draw_binnings(small, table, lambda_, fitted.log_evidence_)
    draw_average(large[0], table, fitted)
    draw_others(large[1], table)
    for axes in (*small, *large):
        axes.set(xlim=(-0.7, POINTS + 0.7), ylim=(-0.03, 1.03), xticks=range(0, POINTS + 1, 6))
        axes.set_yticks([0, 0.5, 1])
        axes.spines[["top", "right"]].set_visible(False)
    for axes in large:
        axes.legend(loc="upper center", fontsize=8, frameon=False)
        axes.set_xlabel("score (points)")
    for axes in (small[0], large[0]):
        axes.set_ylabel("probability")
    return figure


def main() -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    with mpl.rc_context({"font.size": 9, "axes.linewidth": 0.7}):
        # without the version of matplotlib, an unchanged picture stays the same file
        picture().savefig(PICTURE, metadata={"Software": None})


if __name__ == "__main__":
    main()
