"""Draw the pictures of the pages on methods and on what calibration is, from simulated data.

``python docs/scripts/make_method_pictures.py``
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import calibrant as cal

mpl.use("Agg")

PICTURES = Path(__file__).parent.parent / "pictures" / "methods"
#: Okabe and Ito's colours
BLUE, ORANGE, GREEN, RED, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9"
GRID = np.linspace(0.001, 0.999, 999)
STYLE = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}


def sigmoid(z: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(−z))."""
    return 1 / (1 + np.exp(-z))


def logit(p: np.ndarray) -> np.ndarray:
    """The logarithm of the odds."""
    return np.log(p / (1 - p))


def truth(scores: np.ndarray) -> np.ndarray:
    """What the scores of all pictures of one map mean: too bold, with a shoulder in the middle."""
    z = logit(scores)
    return sigmoid(0.35 * z - 0.7 + 1.3 * np.tanh(2 * (z - 0.6)))


def rows(n: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels of the pictures of one map."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.8, 0.9, n).clip(0.002, 0.998)
    return scores, (rng.random(n) < truth(scores)).astype(int)


def points(ax: Axes, scores: np.ndarray, y: np.ndarray, bins: int = 12) -> None:
    """Fractions of positives in bins of equal weight, with 90 % intervals, and the truth."""
    found = cal.diagrams.reliability_curve(y, scores, bins=bins, binning="mass", level=0.9)
    low, high = found.fraction - found.lower, found.upper - found.fraction
    ax.plot([0, 1], [0, 1], color="0.75", linewidth=0.8, zorder=0)
    ax.errorbar(
        found.mean_p,
        found.fraction,
        yerr=[low, high],
        fmt="o",
        color="0.45",
        markersize=3.5,
        linewidth=0.8,
        label="fractions in 12 groups, 90 %",
    )
    ax.plot(GRID, truth(GRID), "--", color="black", linewidth=0.9, label="truth")


def panel(ax: Axes, title: str = "") -> None:
    """The axes that all pictures of one map share."""
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="score", title=title)
    ax.set_aspect("equal")


def one_map(
    lines: dict[str, tuple[cal.Calibrator, str, str]], bands: str = "", n: int = 2000
) -> Figure:
    """Maps over the same rows: name → calibrator, colour, style of line; one may have a band."""
    scores, y = rows(n)
    figure = Figure(figsize=(3.6, 3.6), layout="constrained")
    ax = figure.add_subplot()
    points(ax, scores, y)
    for name, (calibrator, colour, style) in lines.items():
        fitted = calibrator.fit(scores, y)
        ax.plot(GRID, fitted.calibrate(GRID), style, color=colour, linewidth=1.6, label=name)
        if name == bands:
            low, high = fitted.map_.bounds(GRID)
            ax.fill_between(GRID, low, high, color=colour, alpha=0.25, linewidth=0)
    panel(ax)
    ax.set_ylabel("probability")
    ax.legend(frameon=False, fontsize=7, loc="upper left")
    return figure


def sigmoids() -> Figure:
    return one_map(
        {
            "Platt": (cal.Platt(), BLUE, "-"),
            "Beta": (cal.Beta(), ORANGE, "-"),
            "Quadratic": (cal.Quadratic(), GREEN, "-."),
        }
    )


def isotonic() -> Figure:
    return one_map(
        {
            "Isotonic()": (cal.Isotonic(), BLUE, "-"),
            'interpolation="centred"': (cal.Isotonic(interpolation="centred"), ORANGE, "-"),
        }
    )


def histogram() -> Figure:
    return one_map({"Histogram()": (cal.Histogram(), BLUE, "-")})


def spline() -> Figure:
    return one_map(
        {
            "Spline()": (cal.Spline(), BLUE, "-"),
            "penalty=1e10 (a line in the logit)": (cal.Spline(penalty=1e10), ORANGE, "-."),
        }
    )


def bls() -> Figure:
    return one_map(
        {"BLS(levels=(0.9,))": (cal.BLS(levels=(0.9,)), BLUE, "-")}, bands="BLS(levels=(0.9,))"
    )


def venn_abers() -> Figure:
    return one_map(
        {"VennAbers(), with p₀ and p₁": (cal.VennAbers(), BLUE, "-")},
        bands="VennAbers(), with p₀ and p₁",
        n=200,
    )


def temperature() -> Figure:
    return one_map({"Temperature()": (cal.Temperature(), BLUE, "-")})


def fixed() -> Figure:
    """Margins of a boosted model under the formulas that look at no labels."""
    rng = np.random.default_rng(1)
    z = rng.normal(-0.5, 1.5, 1000)
    margins = 1.8 * z + 3
    figure = Figure(figsize=(3.6, 3.0), layout="constrained")
    ax = figure.add_subplot()
    grid = np.linspace(margins.min(), margins.max(), 300)
    y = (rng.random(1000) < sigmoid(z)).astype(int)
    for formula, colour, style in (
        ("sigmoid", BLUE, "-"),
        ("minmax", ORANGE, "-"),
        ("symmetric", GREEN, "-."),
    ):
        fitted = cal.Rescale(formula=formula).fit(margins, y)
        ax.plot(grid, fitted.calibrate(grid), style, color=colour, label=f'formula="{formula}"')
    ax.plot(grid, sigmoid((grid - 3) / 1.8), "--", color="black", linewidth=0.9, label="truth")
    ax.set(xlabel="score (a margin)", ylabel="output", ylim=(0, 1))
    ax.legend(frameon=False, fontsize=7)
    return figure


def auto() -> Figure:
    """Gains of three candidates on scores that need help, and on scores that do not."""
    scores, y = rows()
    rng = np.random.default_rng(0)
    right = truth(scores)
    given = {"too bold": (scores, y), "right": (right, (rng.random(len(y)) < right).astype(int))}
    figure = Figure(figsize=(6.2, 2.0), layout="constrained")
    for ax, (title, (s, labels)) in zip(figure.subplots(1, 2), given.items(), strict=True):
        found = cal.AutoCalibrator(candidates=[cal.Platt(), cal.Beta()]).fit(s, labels)
        board = [found.leaderboard_[name] for name in ("BLS", "Beta", "Platt")]
        for place, row in enumerate(board):
            taken = row.name == found.chosen_
            ax.errorbar(
                row.gain,
                place,
                xerr=[[row.gain - row.gain_low], [row.gain_high - row.gain]],
                fmt="o",
                color=BLUE if taken else "0.5",
            )
        ax.axvline(0, color=RED, linewidth=1)
        ax.set_yticks(range(len(board)), [row.name for row in board])
        ax.set(ylim=(-0.6, 2.6), title=f"scores are {title}; taken: {found.chosen_}")
        ax.set_xlabel("gain in log loss on rows held out, 95 %")
    return figure


def three_classes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits that are too bold, with one class that is too probable, and labels."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return 2 * z + [1.5, 0, 0], y


def scaling() -> Figure:
    """Where distributions over three classes move under three scalings."""
    logits, y = three_classes(4000, 0)
    figure = Figure(figsize=(6.6, 2.4), layout="constrained")
    corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
    start = np.array([(i, j, 9 - i - j) for i in range(1, 8) for j in range(1, 9 - i)], dtype=float)
    start /= start.sum(axis=1, keepdims=True)
    methods = (cal.Temperature(), cal.VectorScaling(), cal.StructuredScaling())
    for ax, method in zip(figure.subplots(1, 3), methods, strict=True):
        end = method.fit(logits, y).predict_proba(2 * np.log(start)) @ corners
        before = start**2 / (start**2).sum(axis=1, keepdims=True) @ corners
        ax.fill(*corners.T, facecolor="none", edgecolor="0.6", linewidth=0.8)
        move = end - before
        ax.quiver(
            *before.T, *move.T, angles="xy", scale_units="xy", scale=1, color=BLUE, width=0.008
        )
        for corner, name in zip(corners, "abc", strict=True):
            ax.text(*(corner * 1.1 - 0.05), name, ha="center", va="center")
        ax.set(title=type(method).__name__, aspect="equal", xlim=(-0.12, 1.12), ylim=(-0.1, 1.0))
        ax.axis("off")
    return figure


def top_label() -> Figure:
    """Confidence in the most probable of twenty classes, before and after."""
    rng = np.random.default_rng(2)
    z = 2 * rng.normal(size=(6000, 20))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    logits = 2 * z
    c = cal.TopLabelCalibrator().fit(logits[:3000], y[:3000])
    before = np.exp(logits[3000:] - logits[3000:].max(axis=1, keepdims=True))
    before /= before.sum(axis=1, keepdims=True)
    figure = Figure(figsize=(3.6, 3.6), layout="constrained")
    ax = figure.add_subplot()
    ax.plot([0, 1], [0, 1], color="0.75", linewidth=0.8)
    for name, p, colour, marker in (
        ("before", before, ORANGE, "s"),
        ("after", c.predict_proba(logits[3000:]), BLUE, "o"),
    ):
        found = cal.diagrams.reliability_curve(
            p.argmax(axis=1) == y[3000:], p.max(axis=1), binning="mass"
        )
        low, high = found.fraction - found.lower, found.upper - found.fraction
        ax.errorbar(
            found.mean_p,
            found.fraction,
            yerr=[low, high],
            fmt=marker + "-",
            color=colour,
            markersize=4,
            linewidth=1,
            label=name,
        )
    ax.set(ylabel="share that was right")
    panel(ax)
    ax.set_xlabel("confidence in the top class")
    ax.legend(frameon=False)
    return figure


def segments() -> Figure:
    """The maps of a large and a small segment, shrunk to the map of all rows."""
    rng = np.random.default_rng(3)
    sizes = {"de": 3000, "it": 900, "lu": 60}
    shift = {"de": 0.0, "it": -1.3, "lu": 1.3}
    place = np.repeat(list(sizes), list(sizes.values()))
    scores = rng.beta(0.8, 0.9, len(place)).clip(0.002, 0.998)
    z = logit(truth(scores)) + np.array([shift[name] for name in place])
    y = (rng.random(len(place)) < sigmoid(z)).astype(int)
    c = cal.SegmentedCalibrator().fit(scores, y, segments=place)
    figure = Figure(figsize=(3.6, 3.6), layout="constrained")
    ax = figure.add_subplot()
    ax.plot([0, 1], [0, 1], color="0.75", linewidth=0.8)
    ax.plot(GRID, c.map_.default(GRID), color="black", linewidth=1.2, label="all rows")
    for (name, n), colour in zip(sizes.items(), (BLUE, ORANGE, GREEN), strict=True):
        ax.plot(
            GRID,
            c.calibrate(GRID, segments=np.full(len(GRID), name)),
            color=colour,
            linewidth=1.6,
            label=f"{name}, {n:,} rows",
        )
        true = sigmoid(logit(truth(GRID)) + shift[name])
        ax.plot(GRID, true, "--", color=colour, linewidth=0.9)
    panel(ax)
    ax.set_ylabel("probability (dashed: truth)")
    ax.legend(frameon=False, fontsize=7, loc="upper left")
    return figure


def features() -> Figure:
    """Probabilities of rows by score: one group of rows has another truth."""
    rng = np.random.default_rng(4)
    n = 6000
    scores = rng.beta(2, 3, n)
    X = np.column_stack([rng.integers(0, 2, n), rng.integers(18, 90, n)])
    group = (X[:, 0] == 1) & (X[:, 1] > 60)
    y = (rng.random(n) < np.where(group, scores**2, scores)).astype(int)
    c = cal.FeatureCalibrator().fit(scores[:5000], y[:5000], features=X[:5000])
    p, late = c.calibrate(scores[5000:], features=X[5000:]), group[5000:]
    figure = Figure(figsize=(3.6, 3.6), layout="constrained")
    ax = figure.add_subplot()
    for name, part, colour in (("other rows", ~late, BLUE), ("south, over 60", late, ORANGE)):
        ax.plot(scores[5000:][part], p[part], ".", color=colour, markersize=3, label=name)
    ax.plot(GRID, GRID, "--", color=BLUE, linewidth=0.9)
    ax.plot(GRID, GRID**2, "--", color=ORANGE, linewidth=0.9)
    panel(ax)
    ax.set_ylabel("probability (dashed: truth)")
    ax.legend(frameon=False, fontsize=7, loc="upper left")
    return figure


def forecasters() -> Figure:
    """Three forecasts of the same days: sharp and right, right and dull, and sharp and wrong."""
    rng = np.random.default_rng(5)
    p = sigmoid(rng.normal(-0.4, 1.6, 4000))
    y = (rng.random(4000) < p).astype(int)
    high = p > np.median(p)
    shown = {
        "calibrated and sharp": p,
        "calibrated, not sharp": np.where(high, p[high].mean(), p[~high].mean()),
        "sharp, too bold": sigmoid(2.5 * logit(p)),
    }
    figure = Figure(figsize=(6.8, 3.1), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, height_ratios=[4, 1])
    for (above, below), (name, q) in zip(axes.T, shown.items(), strict=True):
        found = cal.diagrams.reliability_curve(y, q)
        low, high = found.fraction - found.lower, found.upper - found.fraction
        above.plot([0, 1], [0, 1], color="0.75", linewidth=0.8)
        above.errorbar(
            found.mean_p, found.fraction, yerr=[low, high], fmt="o", color=BLUE, markersize=4
        )
        auc, brier = cal.metrics.auc(y, q), cal.metrics.brier(y, q)
        above.set(ylim=(0, 1), title=f"{name}\nAUC {auc:.2f}, Brier {brier:.3f}")
        above.set_aspect("equal")
        below.hist(q, bins=20, range=(0, 1), color=SKY)
        below.set(xlim=(0, 1), yticks=[], xlabel="forecast")
    axes[0, 0].set_ylabel("share that happened")
    return figure


DRAWN: dict[str, Callable[[], Figure]] = {
    "sigmoids": sigmoids,
    "isotonic": isotonic,
    "histogram": histogram,
    "spline": spline,
    "bls": bls,
    "venn_abers": venn_abers,
    "temperature": temperature,
    "fixed": fixed,
    "auto": auto,
    "scaling": scaling,
    "top_label": top_label,
    "segments": segments,
    "features": features,
    "forecasters": forecasters,
}


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    warnings.simplefilter("ignore", cal.errors.AdviceWarning)  # the scores are meant to be wrong
    with mpl.rc_context(STYLE):
        for name, draw in DRAWN.items():
            draw().savefig(PICTURES / f"{name}.png", dpi=120)


if __name__ == "__main__":
    main()
