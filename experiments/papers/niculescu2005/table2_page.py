"""Table 2 as a page: published figures beside ours, and what was selected."""

from __future__ import annotations

import math

import pandas as pd

from experiments import table
from experiments.papers.beside import Beside, beside, count, positives, told_within, wide
from experiments.papers.niculescu2005.figures import PAPER
from experiments.papers.niculescu2005.problems import OTHER, PROBLEMS, TASKS
from experiments.papers.niculescu2005.selection import MEAN, chosen, mean_of_problems
from experiments.papers.niculescu2005.styles import LEARNERS
from experiments.papers.niculescu2005.table2 import METHODS
from experiments.papers.published import figure

__all__ = ["beside_published", "page", "printed"]


def printed(learner: str, method: str, problem: str) -> float:
    """A figure of Table 2; the mean of the problems at hand, or of one by another reading."""
    if problem == MEAN:
        return sum(printed(learner, method, name) for name in PROBLEMS) / len(PROBLEMS)
    dataset = "COV_TYPE" if problem == OTHER else problem
    return figure(PAPER, "2", dataset=dataset, model=learner, method=method)


def _runs(best: pd.DataFrame, learner: str, measure: str) -> dict[tuple[str, str], list[float]]:
    """The test figures of all seeds by problem (and their mean) and method."""
    part = best[(best["learner"] == learner) & (best["measure"] == measure)]
    found = {
        (str(problem), str(method)): group["test"].to_list()
        for (problem, method), group in part.groupby(["dataset", "method"])
    }
    means = mean_of_problems(part)
    for _, _, method in means.columns:
        found[MEAN, method] = means[learner, measure, method].dropna().to_list()
    return found


def beside_published(best: pd.DataFrame, learner: str) -> dict[str, dict[str, Beside]]:
    """Problem (and their mean) → method → published and our cross-entropy."""
    runs = _runs(best, learner, "bits")
    return {
        problem: {
            method: beside(printed(learner, method, problem), runs[problem, method], digits=4)
            for method in METHODS
        }
        for problem in (*PROBLEMS, MEAN, OTHER)
        if runs.get((problem, "raw"))
    }


def _ours(best: pd.DataFrame, learner: str, measure: str) -> str:
    runs = _runs(best, learner, measure)
    rows = [
        (problem, *(beside(math.nan, runs[problem, m], digits=4).ours for m in METHODS))
        for problem in (*PROBLEMS, MEAN, OTHER)
        if runs.get((problem, "raw"))
    ]
    return table(("problem", *METHODS), rows)


def _selected(best: pd.DataFrame, learner: str) -> str:
    """Style and steps of each seed."""
    part = best[(best["learner"] == learner) & (best["measure"] == "bits")]
    rows = []
    for problem, group in part.groupby("dataset"):
        words = [
            "; ".join(f"{row.style}, {row.step}" for row in found.itertuples())
            for found in (group[group["method"] == m].sort_values("seed") for m in METHODS)
        ]
        rows.append((problem, *words))
    return table(("problem", *METHODS), rows)


def page(frame: pd.DataFrame) -> str:
    """Cross-entropy beside the published, squared error, the selection, and the labels."""
    best = chosen(frame)
    parts = []
    for learner in (name for name in ("stumps", "trees") if name in set(best["learner"])):
        groups = beside_published(best, learner)
        cells = [cell for name in groups if name in PROBLEMS for cell in groups[name].values()]
        parts += [
            f"### Boosted {learner}: cross-entropy in bits",
            f"Published / ours (mean ± sd over random splits); {count(cells)} published figures of "
            f"the four problems lie within, † marks the others. {told_within(cells)}",
            wide(groups, "problem"),
            "Squared error (the paper prints none):",
            _ours(best, learner, "squared"),
        ]
    if "two levels" in set(best["learner"]):
        parts += [
            "### Boosted two-level trees (footnote 2, without figures)",
            "Cross-entropy in bits:",
            _ours(best, "two levels", "bits"),
            "Squared error:",
            _ours(best, "two levels", "squared"),
        ]
    parts += ["### What was selected by cross-entropy", "Style and steps, split by split."]
    for learner in (name for name in LEARNERS if name in set(best["learner"])):
        parts += [f"Boosted {learner}:", _selected(best, learner)]
    parts.append(positives(TASKS.values()))
    return "\n\n".join(parts)
