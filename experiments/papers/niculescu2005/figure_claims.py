"""What the paper claims of its figures, judged by our results on four of its problems."""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.papers.cells import Claim
from experiments.papers.niculescu2005 import figure1, figure2, figure5, figure6
from experiments.papers.niculescu2005.drawing import read_shape
from experiments.papers.niculescu2005.figures import FITTED, PAPER, WORDS, percent
from experiments.papers.published import figure

__all__ = ["of_figure1", "of_figure2", "of_figure5", "of_figure6"]

PLOTTED = "plotted only"
#: the learners for which a sigmoid "is not the correct function"
NOT_SIGMOID = ("BAG-DT", "ANN", "KNN", "DT", "LOGREG", "NB")


def of_figure1(frame: pd.DataFrame) -> list[Claim]:
    row = frame.iloc[0]
    shapes = [read_shape(row, str(step)) for step in figure1.STEPS]
    ends = [figure1.near_ends(one) for one in shapes]
    low, high = figure1.bend(shapes[-1])
    return [
        Claim(
            "With more steps predictions move away from 0 and 1, and the reliability diagram "
            "becomes S-shaped (COV_TYPE).",
            PLOTTED,
            f"below .1 or from .9 on: {ends[0]:.0%} after 1 step, {ends[-1]:.1%} after "
            f"{figure1.STEPS[-1]}; bend {low:+.2f} below ½, {high:+.2f} above",
            bool(np.all(np.diff(ends) <= 0) and low < 0 < high),
        )
    ]


def of_figure2(frame: pd.DataFrame) -> list[Claim]:
    rows = figure2.latest(frame).to_dict("records")
    shapes = [{kind: read_shape(row, kind) for kind in figure2.KINDS} for row in rows]
    bends = [{kind: figure1.bend(one[kind]) for kind in one} for one in shapes]
    bent = sum(low < 0 < high for low, high in (one["raw"] for one in bends))
    size = {k: np.mean([np.abs(one[k]).mean() for one in bends]) for k in figure2.KINDS}
    better = {
        measure: sum(
            all(row[f"{kind} {measure} test"] < row[f"raw {measure} test"] for kind in FITTED)
            for row in rows
        )
        for measure in WORDS
    }
    ends = {k: np.mean([figure1.near_ends(one[k]) for one in shapes]) for k in figure2.KINDS}
    return [
        Claim(
            "All reliability diagrams of boosted trees are S-shaped.",
            "on all eight problems, plotted only",
            f"on {bent} of {len(rows)} (four problems, every style and split)",
            bent == len(rows),
        ),
        Claim(
            "Calibration undoes the shift: many more predictions are near 0 and 1, and the S is "
            "gone.",
            PLOTTED,
            "; ".join(f"{k}: {ends[k]:.0%} near the ends, bend {size[k]:.3f}" for k in ends),
            all(ends[k] > ends["raw"] and size[k] < 0.25 * size["raw"] for k in FITTED),
            "holds: more near the ends, and less than a quarter of the bend",
        ),
        Claim(
            "On each problem both calibrations give lower cross-entropy and squared error.",
            PLOTTED,
            "; ".join(f"{WORDS[m]}: {n} of {len(rows)}" for m, n in better.items()),
            all(n == len(rows) for n in better.values()),
        ),
    ]


def of_figure5(frame: pd.DataFrame) -> list[Claim]:
    found = figure5.curves(frame)
    means = {name: figure5.mean(found, name) for name in figure5.NAMES}
    at = figure5.crossing(means["Platt"], means["isotonic"])
    claimed = figure(PAPER, "claims", measure="calibration rows")
    about = f"about {claimed:.0f}"
    pairs = zip(figure5.SIZES, means["Platt"], means["isotonic"], strict=True)
    helps = {name: _first_below(means[name], means[figure5.BEFORE]) for name in FITTED}
    return [
        Claim(
            "With few calibration rows Platt's method is better than isotonic regression.",
            f"below {about}",
            f"isotonic is better from {at} on" if at else f"at all sizes up to {figure5.SIZES[-1]}",
            all(size >= claimed / 2 or a < b for size, a, b in pairs),
            "holds: better at every size below half of that",
        ),
        Claim(
            "With more of them isotonic regression catches up.",
            f"from {about} on",
            f"from {at} on" if at else f"not up to {figure5.SIZES[-1]}",
            at is not None and at <= 2.1 * claimed,
            "holds: from about twice that on, or earlier",
        ),
        Claim(
            "Calibration helps even with very small calibration sets.",
            PLOTTED,
            "; ".join(f"{name} from {size} rows on" for name, size in helps.items()),
            all(size == figure5.SIZES[0] for size in helps.values()),
            "holds: both from 32 rows on, against the best uncalibrated model",
        ),
    ]


def _first_below(curve: np.ndarray, other: np.ndarray) -> int | None:
    """The least size at which a curve is below another one."""
    pairs = zip(figure5.SIZES, curve, other, strict=True)
    return next((size for size, a, b in pairs if a < b), None)


#: learner → method → mean
Means = dict[str, dict[str, float]]


def _means(frame: pd.DataFrame, measure: str) -> tuple[Means, dict[str, float]]:
    """Learner → method → mean, and learner → the better of the two calibrations."""
    means = {
        name: {method: float(np.mean(v)) for method, v in by.items()}
        for name, by in figure6.means(frame, measure).items()
    }
    return means, {name: min(by[m] for m in FITTED) for name, by in means.items()}


def of_figure6(frame: pd.DataFrame) -> list[Claim]:
    means, after = _means(frame, "squared")
    means_of_bits, bits = _means(frame, "bits")
    gain = {name: after[name] / by["raw"] - 1 for name, by in means.items()}
    rank, by_bits = (sorted(by, key=by.__getitem__) for by in (after, bits))
    before = sorted(means, key=lambda name: means[name]["raw"])
    most = sorted(gain, key=gain.__getitem__)[:4]
    little = {name: gain[name] for name in ("BAG-DT", "ANN")}
    direct = {name: means[name]["log loss"] / after[name] - 1 for name in figure6.BOOSTED}
    near = ("SVM", "RF", "ANN", "BAG-DT")
    return [
        Claim(
            "After calibration boosted trees are the best of the ten methods.",
            PLOTTED,
            f"the order is {', '.join(rank)}; {by_bits[0]} has the least cross-entropy",
            rank[0] == by_bits[0] == "BST-DT",
            "order by squared error, the better of the two calibrations; holds: first in both",
        ),
        Claim(
            "Next are SVMs, random forests, neural nets and bagged trees.",
            PLOTTED,
            ", ".join(rank[1:5]),
            set(rank[1:5]) == set(near),
        ),
        Claim(
            "Before calibration random forests, neural nets and bagged trees are the best.",
            PLOTTED,
            ", ".join(before[:3]),
            set(before[:3]) == {"RF", "ANN", "BAG-DT"},
        ),
        Claim(
            "Boosted trees, SVMs, boosted stumps and naive Bayes gain the most by calibration.",
            PLOTTED,
            ", ".join(f"{name} {percent(gain[name])}" for name in most),
            set(most) == {"BST-DT", "SVM", "BST-STMP", "NB"},
        ),
        Claim(
            "Calibration has little effect on bagged trees and neural nets.",
            PLOTTED,
            ", ".join(f"{name} {percent(g)}" for name, g in little.items()),
            all(abs(g) < 0.05 for g in little.values()),
            "holds: less than 5 %",
        ),
        Claim(
            "The log loss is nearly as good as calibration for stumps, and far from it for trees.",
            PLOTTED,
            ", ".join(f"{name} {percent(g)}" for name, g in direct.items()),
            direct["BST-STMP"] < 0.05 < direct["BST-DT"],
            "squared error against the calibrated; holds: less than 5 % for stumps, more for trees",
        ),
        _isotonic_first(means, means_of_bits),
    ]


def _isotonic_first(squared: Means, bits: Means) -> Claim:
    """Platt against isotonic regression where the paper finds it slightly less effective."""
    more = {
        word: {name: by[name]["Platt"] / by[name]["isotonic"] - 1 for name in NOT_SIGMOID}
        for word, by in (("squared error", squared), ("cross-entropy", bits))
    }
    won = {word: sum(gap > 0 for gap in by.values()) for word, by in more.items()}
    signed = {
        name: f"{100 * gap:+.1f} %".replace("-", "−") for name, gap in more["squared error"].items()
    }
    shown = ", ".join(f"{name} {gap}" for name, gap in signed.items())
    counts = "; ".join(
        f"{word}: isotonic ahead for {n} of {len(NOT_SIGMOID)}" for word, n in won.items()
    )
    return Claim(
        f"Platt's method may be slightly less effective than isotonic regression for "
        f"{', '.join(NOT_SIGMOID)}.",
        PLOTTED,
        f"{counts}; Platt's squared error above isotonic's: {shown}",
        all(n == len(NOT_SIGMOID) for n in won.values()),
        "holds: isotonic regression ahead for all six, in both measures",
    )
