"""What the paper claims, judged by our results on the four of its problems that are at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd

from experiments.papers.beside import MOST, count, is_repeated
from experiments.papers.cells import Claim
from experiments.papers.niculescu2005 import figure6
from experiments.papers.niculescu2005.figure_claims import (
    of_figure1,
    of_figure2,
    of_figure5,
    of_figure6,
)
from experiments.papers.niculescu2005.figures import FITTED, PAPER, WORDS, percent
from experiments.papers.niculescu2005.problems import PROBLEMS
from experiments.papers.niculescu2005.selection import (
    MEAN,
    chosen,
    mean_of_problems,
    relative_change,
)
from experiments.papers.niculescu2005.styles import LEARNERS
from experiments.papers.niculescu2005.table2_page import beside_published, printed
from experiments.papers.published import figure

__all__ = ["NEAR", "as_claimed", "claims"]

#: a change is as claimed if it is at least this part of the claimed one, and that of it
NEAR = 0.75
#: cross-entropies less far apart than this are alike
ALIKE = 0.1
#: the problems of Table 2 that nobody can run again
NOT_AT_HAND = ("HS", "MEDIS", "MG", "SLAC")


def claims(found: dict[str, pd.DataFrame]) -> list[Claim]:
    """Those that the results at hand can judge: a table must have all problems and learners."""
    judges: dict[str, tuple[Callable[[pd.DataFrame], list[Claim]], Sequence[str]]] = {
        "2": (_of_table2, ("stumps", "trees")),
        "figure1": (of_figure1, ()),
        "figure2": (of_figure2, ()),
        "figure5": (of_figure5, ()),
        "figure6": (of_figure6, figure6.NAMES),
    }
    return [
        claim.resting_on(name)
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
        *(_figures(best, learner) for learner in ("stumps", "trees")),
        *found,
        _trees_win(best),
        *_orders_of_stumps(means, hard),
        *(_behave_alike(means, learner) for learner in ("stumps", "trees")),
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


def _figures(best: pd.DataFrame, learner: str) -> Claim:
    """Whether the table itself comes back, on the four problems at hand."""
    groups = beside_published(best, learner)
    cells = [cell for name in groups if name in PROBLEMS for cell in groups[name].values()]
    return Claim(
        f"The figures of Table 2, boosted {learner}.",
        f"{len(cells)} figures of four problems, one run each",
        f"{count(cells)} within the spread of a run",
        is_repeated(cells),
        f"holds: at least {MOST:.0%} within the spread",
    )


def _trees_win(best: pd.DataFrame) -> Claim:
    """On which problems calibrated trees have less cross-entropy than calibrated stumps."""
    part = best[(best["measure"] == "bits") & best["method"].isin(FITTED)]
    ours = part.groupby(["learner", "dataset"])["test"].mean()
    theirs = {
        (learner, name): sum(printed(learner, m, name) for m in FITTED) / len(FITTED)
        for learner in ("trees", "stumps")
        for name in (*PROBLEMS, *NOT_AT_HAND)
    }
    every = [n for n in (*PROBLEMS, *NOT_AT_HAND) if theirs["trees", n] < theirs["stumps", n]]
    told, found = (
        [name for name in PROBLEMS if by["trees", name] < by["stumps", name]]
        for by in (theirs, ours)
    )
    return Claim(
        "Boosted trees outperform boosted stumps on five of the eight problems.",
        f"on {len(every)} of {len(PROBLEMS) + len(NOT_AT_HAND)}; of these four on "
        f"{', '.join(told)}",
        f"of these four on {', '.join(found) or 'none'}",
        told == found,
        "cross-entropy, mean of the two fitted methods; holds: on the same of the four",
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
            bool(spread < 0.03),
            "holds: less than 3 %",
        ),
        Claim(
            "For stumps, boosting with the log loss is a few percent worse than these.",
            percent(printed_worse),
            f"{percent(worse)}; of styles that vote ±1: {percent(worse_hard)}",
            bool(0.01 < worse < 0.1),
            "holds: 1 to 10 %",
        ),
    ]


def _behave_alike(means: pd.DataFrame, learner: str) -> Claim:
    """Lebanon and Lafferty's finding, which the paper confirms."""
    names = ("logistic correction", "log loss")
    ours, theirs = (
        [means[learner, "bits", m].mean() for m in names],
        [_printed(learner, m) for m in names],
    )
    apart, there = (max(a, b) / min(a, b) - 1 for a, b in (ours, theirs))
    published, mine = (
        f"{a:.3f} and {b:.3f} bits ({100 * gap:.0f} % apart)"
        for (a, b), gap in ((theirs, there), (ours, apart))
    )
    return Claim(
        f"For {learner}, logistic correction behaves like boosting with the log loss.",
        published,
        mine,
        bool(apart < ALIKE),
        f"holds: less than {ALIKE:.0%} apart"
        + ("" if there < ALIKE else "; the published figures do not meet it either"),
    )


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
            bool(both["trees"] < both["two levels"] < both["stumps"]),
            "cross-entropy, mean of the two fitted methods",
        ),
        Claim(
            "For two-level trees logistic correction is no longer as good as the fitted methods.",
            "footnote 2, without figures",
            f"{percent(behind)} cross-entropy",
            bool(behind > 0.03),
            "holds: more than 3 % worse",
        ),
    ]
