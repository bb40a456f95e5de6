"""What the paper claims, judged by our results on the four of its problems that are at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd

from experiments.papers.cells import Claim
from experiments.papers.niculescu2005 import figure1, figure2, figure5, figure6
from experiments.papers.niculescu2005.drawing import read_shape
from experiments.papers.niculescu2005.figures import FITTED
from experiments.papers.niculescu2005.problems import PROBLEMS
from experiments.papers.niculescu2005.selection import (
    MEAN,
    chosen,
    mean_of_problems,
    relative_change,
)
from experiments.papers.niculescu2005.styles import LEARNERS
from experiments.papers.niculescu2005.table2_page import printed
from experiments.papers.published import figure

__all__ = ["NEAR", "as_claimed", "claims"]

PAPER = "niculescu2005"
#: a change is as claimed if it is at least this part of the claimed one, and that of it
NEAR = 0.75
WORDS = {"bits": "cross-entropy", "squared": "squared error"}
PLOTTED = "plotted only"


def claims(found: dict[str, pd.DataFrame]) -> list[Claim]:
    """Those that the results at hand can judge: a table must have all problems and learners."""
    judges: dict[str, tuple[Callable[[pd.DataFrame], list[Claim]], Sequence[str]]] = {
        "2": (_of_table2, ("stumps", "trees")),
        "figure1": (_of_figure1, ()),
        "figure2": (_of_figure2, ()),
        "figure5": (_of_figure5, ()),
        "figure6": (_of_figure6, figure6.NAMES),
    }
    return [
        claim
        for name, (judge, learners) in judges.items()
        if _is_complete(found[name], learners, ("COV_TYPE",) if name == "figure1" else PROBLEMS)
        for claim in judge(found[name])
    ]


def _is_complete(frame: pd.DataFrame, learners: Sequence[str], problems: Sequence[str]) -> bool:
    """Whether one of the splits has every problem (and each of these learners of it)."""
    words = ["dataset", "learner"] if learners else ["dataset"]
    wanted = set(product(problems, learners)) if learners else {(name,) for name in problems}
    parts = (part for _, part in frame.groupby("seed"))
    return any(wanted <= set(part[words].itertuples(index=False, name=None)) for part in parts)


def as_claimed(change: float, claimed: float) -> bool:
    """Whether a change has the claimed sign, and neither much less nor much more of its size."""
    return bool(NEAR <= change / claimed <= 1 / NEAR)


def percent(value: float) -> str:
    shown = round(100 * value)
    return f"{shown:+d} %".replace("-", "−") if shown else "0 %"


# --- Table 2 ------------------------------------------------------------------------------------


def _of_table2(frame: pd.DataFrame) -> list[Claim]:
    best = chosen(frame)
    means = mean_of_problems(best)
    found = [
        claim
        for measure in WORDS
        for claim in (
            _calibrated(means, "stumps", measure),
            _calibrated(means, "trees", measure),
            _trees_against_stumps(means, measure),
        )
    ]
    hard = mean_of_problems(chosen(frame[_votes_hard(frame)]))
    return [
        *found,
        *_orders_of_stumps(means, hard),
        _trees_need_fitting(best),
        *_two_levels(means),
    ]


def _votes_hard(frame: pd.DataFrame) -> pd.Series:
    """Whether the style of a row votes ±1, as the paper's equations have it."""
    soft = {
        (learner, name)
        for learner, kind in LEARNERS.items()
        for name, style in kind.styles.items()
        if style.options.get("votes") == "soft"
    }
    return ~pd.MultiIndex.from_frame(frame[["learner", "style"]]).isin(list(soft))


def _fitted(means: pd.DataFrame, learner: str, measure: str) -> pd.Series:
    """The mean of Platt's method and isotonic regression, seed by seed."""
    return sum(means[learner, measure, method] for method in FITTED) / len(FITTED)


def _printed(learner: str, method: str) -> float:
    return printed(learner, method, MEAN)


def _calibrated(means: pd.DataFrame, learner: str, measure: str) -> Claim:
    claimed = figure(PAPER, "claims", model=learner, measure=WORDS[measure])
    ours = relative_change(_fitted(means, learner, measure), means[learner, measure, "raw"])
    four = sum(_printed(learner, m) for m in FITTED) / len(FITTED) / _printed(learner, "raw") - 1
    return _change(
        f"Calibration changes the {WORDS[measure]} of boosted {learner} by so much.",
        claimed,
        four if measure == "bits" else None,
        ours,
        "mean of Platt's method and isotonic regression, against raw",
    )


def _change(text: str, claimed: float, four: float | None, ours: pd.Series, note: str) -> Claim:
    """A change, judged by what the published rows of the four problems give where there are any."""
    beside = "not printed" if four is None else percent(four)
    known = claimed if four is None else four
    holds = as_claimed(ours.mean(), known)
    size = "" if holds else f"; {'more' if ours.mean() / known > 1 else 'less'} than claimed"
    shown = f"{percent(claimed)} (mean of eight); these four: {beside}"
    return Claim(text, shown, percent(ours.mean()), holds, note + size)


def _trees_against_stumps(means: pd.DataFrame, measure: str) -> Claim:
    claimed = figure(PAPER, "claims", model="trees against stumps", measure=WORDS[measure])
    both = [_fitted(means, learner, measure) for learner in ("trees", "stumps")]
    ours = relative_change(*both)
    trees, stumps = (sum(_printed(learner, m) for m in FITTED) for learner in ("trees", "stumps"))
    return _change(
        f"Calibrated boosted trees change the {WORDS[measure]} of calibrated stumps by so much.",
        claimed,
        trees / stumps - 1 if measure == "bits" else None,
        ours,
        "mean of Platt's method and isotonic regression",
    )


def _orders_of_stumps(means: pd.DataFrame, hard: pd.DataFrame) -> list[Claim]:
    three = (*FITTED, "logistic correction")
    methods = (*three, "log loss")
    ours, ours_hard = ({m: by["stumps", "bits", m].mean() for m in methods} for by in (means, hard))
    theirs = {m: _printed("stumps", m) for m in methods}
    spread, published = (
        max(by[m] for m in three) / min(by[m] for m in three) - 1 for by in (ours, theirs)
    )
    worse, worse_hard, printed_worse = (
        by["log loss"] / np.mean([by[m] for m in three]) - 1 for by in (ours, ours_hard, theirs)
    )
    return [
        Claim(
            "For stumps, Platt's method, isotonic regression and logistic correction are equally "
            "good.",
            f"the worst has {100 * published:.0f} % more cross-entropy than the best",
            percent(spread),
            spread < 0.03,
            "holds: less than 3 %",
        ),
        Claim(
            "For stumps, boosting with the log loss is a few percent worse than these.",
            percent(printed_worse),
            f"{percent(worse)}; of styles that vote ±1: {percent(worse_hard)}",
            0.01 < worse < 0.1,
            "holds: 1 to 10 %",
        ),
    ]


def _trees_need_fitting(best: pd.DataFrame) -> Claim:
    """On how many problems both fitted methods beat logistic correction and the log loss."""
    part = best[(best["learner"] == "trees") & (best["measure"] == "bits")]
    grid = part.groupby(["dataset", "method"])["test"].mean().unstack()
    rows = [name for name in PROBLEMS if name in grid.index]
    theirs = sum(_fitted_win({m: printed("trees", m, name) for m in grid}) for name in rows)
    ours = sum(_fitted_win(grid.loc[name].to_dict()) for name in rows)
    return Claim(
        "For trees, logistic correction and the log loss are not competitive with the two fitted "
        "methods.",
        f"on {theirs} of {len(rows)} problems",
        f"on {ours} of {len(rows)} problems",
        ours == len(rows),
    )


def _fitted_win(by: dict[str, float]) -> bool:
    return max(by[m] for m in FITTED) < min(by["logistic correction"], by["log loss"])


def _two_levels(means: pd.DataFrame) -> list[Claim]:
    if "two levels" not in means or means["two levels"].isna().all(axis=None):
        return []
    both = {name: _fitted(means, name, "bits").mean() for name in ("stumps", "two levels", "trees")}
    words = " < ".join(f"{name} {both[name]:.3f}" for name in sorted(both, key=both.__getitem__))
    behind = relative_change(
        means["two levels", "bits", "logistic correction"], _fitted(means, "two levels", "bits")
    ).mean()
    return [
        Claim(
            "Boosted two-level trees are better than stumps and not as good as full trees.",
            "footnote 2, without figures",
            words,
            both["trees"] < both["two levels"] < both["stumps"],
            "cross-entropy, mean of the two fitted methods",
        ),
        Claim(
            "For two-level trees logistic correction is no longer as good as the fitted methods.",
            "footnote 2, without figures",
            f"{percent(behind)} cross-entropy",
            behind > 0.03,
            "holds: more than 3 % worse",
        ),
    ]


# --- figures ------------------------------------------------------------------------------------


def _of_figure1(frame: pd.DataFrame) -> list[Claim]:
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


def _of_figure2(frame: pd.DataFrame) -> list[Claim]:
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


def _of_figure5(frame: pd.DataFrame) -> list[Claim]:
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


def _means(frame: pd.DataFrame, measure: str) -> tuple[dict[str, dict[str, float]], dict]:
    """Learner → method → mean, and learner → the better of the two calibrations."""
    means = {
        name: {method: float(np.mean(v)) for method, v in by.items()}
        for name, by in figure6.means(frame, measure).items()
    }
    return means, {name: min(by[m] for m in FITTED) for name, by in means.items()}


def _of_figure6(frame: pd.DataFrame) -> list[Claim]:
    means, after = _means(frame, "squared")
    _, bits = _means(frame, "bits")
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
    ]
