"""Table 2: boosted stumps and trees, raw and corrected in four ways."""

from __future__ import annotations

from experiments.papers.cells import Cell
from experiments.papers.niculescu2005.figures import FITTED, measured
from experiments.papers.niculescu2005.problems import OTHER, TASKS, Rows, rows_of
from experiments.papers.niculescu2005.styles import LEARNERS, boosted, pooled_scores, steps_to

__all__ = ["METHODS", "cells", "run", "staged_figures"]

METHODS = ("raw", "Platt", "isotonic", "logistic correction", "log loss")
#: the third split comes after all styles have two
SEEDS = ((0, 1), (2,))


def cells(quick: bool) -> list[Cell]:
    """Whole styles after one another, so that an unfinished run has the same for both seeds."""
    return [
        {"dataset": problem, "learner": learner, "style": style, "steps": steps, "seed": seed}
        for few, seeds in ((True, SEEDS[0]), *(() if quick else ((False, s) for s in SEEDS)))
        for learner, kind in LEARNERS.items()
        for style in (kind.quick_styles if few else kind.styles)
        for steps in [kind.quick_most if few else kind.most]
        for problem in TASKS
        for seed in seeds
        if not (few and problem == OTHER and not _first(learner, style))
    ]


def _first(learner: str, style: str) -> bool:
    """The other reading of COV_TYPE has one style of stumps and one of trees in a quick run."""
    return learner != "two levels" and style == LEARNERS[learner].quick_styles[0]


def run(dataset: str, learner: str, style: str, steps: int, seed: int) -> dict[str, float]:
    """Figures of all methods after 2, 4, 8, … steps, on the rows to select on and to test on."""
    return staged_figures(rows_of(dataset, seed), learner, style, steps, seed)


def staged_figures(rows: Rows, learner: str, style: str, steps: int, seed: int) -> dict[str, float]:
    """One booster per loss and one per fold, each gone through once."""
    wanted = steps_to(steps)
    found: dict[str, float] = {}
    pooled = pooled_scores(rows.train, learner, style, wanted, seed)
    maps = [{m: make().fit(f, rows.train.y) for m, make in FITTED.items()} for f in pooled]
    plain, direct = (
        boosted(rows.train, learner, style, steps, seed, loss) for loss in ("exponential", "log")
    )
    for name, part in (("validation", rows.validation), ("test", rows.test)):
        stages = zip(
            wanted,
            maps,
            plain.staged_raw_score(part.X, steps=wanted),
            plain.staged_predict_proba(part.X, steps=wanted),
            direct.staged_predict_proba(part.X, steps=wanted),
            strict=True,
        )
        for step, fitted, raw, corrected, log in stages:
            predictions = {
                "raw": raw,
                **{method: map_.calibrate(raw) for method, map_ in fitted.items()},
                "logistic correction": corrected[:, 1],
                "log loss": log[:, 1],
            }
            for method, p in predictions.items():
                found |= measured(f"{method} {step}", name, part.y, p)
    return found
