"""Draw the picture of docs/understand/methods/similarity_binning.md anew.

Mails of the Spambase data (not part of the project, see ``experiments.data``), scored by naive
Bayes. Left, what isotonic regression and similarity binning make of the same scores; then the
reliability of both for mails with and without a dollar sign.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import calibrant as cal

DOCS = Path(__file__).parent.parent
sys.path.insert(0, str(DOCS.parent))  # experiments is no part of the package

from experiments import say  # noqa: E402
from experiments.data import read, tasks  # noqa: E402
from experiments.naive_bayes import MixedNaiveBayes  # noqa: E402

PICTURE = DOCS / "pictures" / "similarity.png"
#: the colours of Okabe and Ito, told apart by all readers
BLACK, ORANGE, BLUE = "#000000", "#E69F00", "#0072B2"
TRAIN = CALIBRATION = 1500
MARK = "char_freq_$"

Array = NDArray[np.float64]
Rows = NDArray[np.bool_]


class Mails(NamedTuple):
    """What the picture shows of the test mails."""

    y: NDArray[np.intp]
    scores: Array
    marked: Rows
    p: dict[str, Array]


def mails(seed: int) -> Mails:
    """Naive Bayes and its calibrators, each on mails of their own, and the test mails."""
    (task,) = (task for task in tasks(0) if task.name == "spambase")
    X, y = read(task, most=10_000)
    rows = np.random.default_rng(seed).permutation(len(y))
    train, known, test = np.split(rows, [TRAIN, TRAIN + CALIBRATION])
    model = MixedNaiveBayes().fit(X.iloc[train], y[train])
    s, new = (model.predict_proba(X.iloc[part])[:, 1] for part in (known, test))
    isotonic = cal.Isotonic().fit(s, y[known])
    similar = cal.SimilarityBinning(gate=False).fit(s, y[known], features=X.iloc[known])
    p = {
        "isotonic regression": isotonic.calibrate(new),
        "similarity binning": similar.calibrate(new, features=X.iloc[test]),
    }
    return Mails(y[test], new, (X.iloc[test][MARK] > 0).to_numpy(), p)


def groups(data: Mails) -> list[tuple[str, str, Rows]]:
    return [
        ("mails with a $", ORANGE, data.marked),
        ("mails without", BLUE, ~data.marked),
    ]


def draw_scores(axes: Any, data: Mails) -> None:
    """Both calibrators' probabilities along the ranks of the scores."""
    rank = (np.argsort(np.argsort(data.scores, kind="stable")) + 0.5) / len(data.y) * 100
    jitter = np.random.default_rng(0).uniform(-0.018, 0.018, len(rank))
    for name, colour, rows in reversed(groups(data)):
        p = data.p["similarity binning"][rows] + jitter[rows]
        axes.scatter(rank[rows], p, s=5, color=colour, lw=0, alpha=0.6, label=name)
    order = np.argsort(rank)
    line = data.p["isotonic regression"][order]
    axes.plot(rank[order], line, color=BLACK, lw=1.6, label="isotonic regression")
    axes.set(xlabel="naive Bayes score, percentile", ylabel="calibrated probability of spam")
    axes.set(xlim=(-2, 102), xticks=[0, 50, 100])
    axes.set_title("One score, and what becomes of it", fontsize=9)


def draw_reliability(axes: Any, data: Mails, method: str) -> None:
    """Frequencies of spam in fifths of the unit interval, by group; areas by mails."""
    p = data.p[method]
    axes.plot([0, 1], [0, 1], color="0.75", lw=0.8, zorder=0)
    place = np.minimum((p * 5).astype(int), 4)
    for _, colour, rows in groups(data):
        bins = [rows & (place == b) for b in range(5)]
        filled = [b for b in bins if b.sum() >= 10]
        x, f = ([a[b].mean() for b in filled] for a in (p, data.y))
        size = np.array([b.sum() for b in filled])
        sd = np.sqrt(np.array(f) * (1 - np.array(f)) / size)
        axes.errorbar(x, f, yerr=1.645 * sd, color=colour, lw=1.2, elinewidth=0.8, zorder=2)
        axes.scatter(x, f, s=8 + 0.12 * size, color=colour, zorder=3)
    axes.set(xlabel="calibrated probability", xlim=(-0.04, 1.04), xticks=[0, 0.5, 1])
    axes.set_title(method[0].upper() + method[1:], fontsize=9)


def picture(data: Mails) -> Figure:
    figure = Figure(figsize=(7.2, 3.1), dpi=150, layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    draw_scores(panels[0], data)
    for axes, method in zip(panels[1:], data.p, strict=True):
        draw_reliability(axes, data, method)
    for axes in panels:
        axes.set(ylim=(-0.05, 1.05), yticks=[0, 0.5, 1])
        axes.spines[["top", "right"]].set_visible(False)
    panels[1].set_ylabel("frequency of spam")
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        fontsize=8,
        frameon=False,
        markerscale=3,
    )
    return figure


def main() -> None:
    data = mails(seed=0)
    for name, p in data.p.items():
        say(
            f"{name}: Brier {cal.metrics.brier(data.y, p):.4f}, "
            f"AUC {cal.metrics.auc(data.y, p):.3f}"
        )
        for group, _, rows in groups(data):
            means = f"says {p[rows].mean():.2f}, is {data.y[rows].mean():.2f}"
            say(
                f"  {rows.sum()} {group}: {means}, ECE {cal.metrics.ece(data.y[rows], p[rows]):.3f}"
            )
    top = data.scores == 1
    for name, p in data.p.items():
        means = ", ".join(f"{group} {p[rows & top].mean():.2f}" for group, _, rows in groups(data))
        say(f"mails of score 1, {name}: {means}")
    truth = ", ".join(f"{group} {data.y[rows & top].mean():.2f}" for group, _, rows in groups(data))
    say(f"mails of score 1, {top.mean():.0%} of all, frequency: {truth}")
    PICTURE.parent.mkdir(exist_ok=True)
    with mpl.rc_context({"font.size": 9, "axes.linewidth": 0.7}):
        # without the version of matplotlib, an unchanged picture stays the same file
        picture(data).savefig(PICTURE, metadata={"Software": None})


if __name__ == "__main__":
    main()
