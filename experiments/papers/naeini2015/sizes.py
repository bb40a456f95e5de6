"""How many rows it takes to train a model, and how many to calibrate it, on Adult."""

from __future__ import annotations

import pandas as pd

from experiments import table
from experiments.papers.beside import positives
from experiments.papers.cells import Cell, Claim
from experiments.papers.naeini2015 import adult
from experiments.papers.naeini2015.methods import METHODS, calibrated, measures

__all__ = ["CALIBRATE", "TRAIN", "cells", "claim", "needed", "page", "run"]

QUICK, FULL = 20, 50
#: rows to train on, with all rows to calibrate on; and rows to calibrate on, with all to train on
TRAIN = (50, 100, 200, 400, 800, 2000)
CALIBRATE = (25, 50, 100, 200, 400, 600)
MEASURE = "RMSE"
#: what is varied
TRAINED, CALIBRATED = "trained on", "calibrated on"
NAMES = ("IsoReg", "Platt", "SBB", "ABB")
#: so much more RMSE than with all rows counts as none; "much less": at most this share
NEAR, MUCH_LESS = 0.005, 0.5


def run(model: str, seed: int) -> dict[str, float]:
    """One draw of Adult, all attributes: RMSE of calibrated predictions by numbers of rows."""
    encoding = adult.encoded(adult.READINGS[adult.ALL][model])
    train, known, test = adult.split(encoding, seed)
    scorer = adult.MODELS[model]
    methods = {name: METHODS[name] for name in NAMES}
    found: dict[str, float] = {}
    for n in TRAIN:
        fitted = scorer.fit(train.take(slice(0, n)))
        scores, new = scorer.scores(fitted, known.X), scorer.scores(fitted, test.X)
        for m in CALIBRATE if n == TRAIN[-1] else CALIBRATE[-1:]:
            for name, p in calibrated(scores[:m], known.y[:m], new, methods).items():
                value = measures(test.y, p)[MEASURE]
                if m == CALIBRATE[-1]:
                    found[f"{name}, {TRAINED} {n}"] = value
                if n == TRAIN[-1]:
                    found[f"{name}, {CALIBRATED} {m}"] = value
    return found


def cells(quick: bool) -> list[Cell]:
    seeds = range(QUICK if quick else FULL)
    return [{"model": model, "seed": seed} for model in adult.MODELS for seed in seeds]


def needed(frame: pd.DataFrame, name: str, what: str) -> int:
    """The fewest rows from which on the mean RMSE is near that with all rows."""
    sizes = TRAIN if what == TRAINED else CALIBRATE
    means = [frame[f"{name}, {what} {n}"].mean() for n in sizes]
    near = [mean <= means[-1] + NEAR for mean in means]
    return next(n for i, n in enumerate(sizes) if all(near[i:]))


def page(frame: pd.DataFrame) -> str:
    """Mean RMSE by rows to train on and by rows to calibrate on."""
    parts = []
    for what, sizes, rest in (
        (TRAINED, TRAIN, f"calibrated on {CALIBRATE[-1]} rows"),
        (CALIBRATED, CALIBRATE, f"trained on {TRAIN[-1]:,} rows"),
    ):
        rows = [
            (
                model,
                name,
                *(f"{part[f'{name}, {what} {n}'].mean():.4f}" for n in sizes),
                needed(part, name, what),
            )
            for model, part in frame.groupby("model", sort=False)
            for name in NAMES
        ]
        head = ("model", "method", *(f"{what} {n:,}" for n in sizes), "enough")
        parts += [f"RMSE, {rest}:", table(head, rows)]
    return (
        f'Mean {MEASURE} over {frame["seed"].nunique()} draws. "Enough": the fewest rows from '
        f"which on it is at most {NEAR:g} above that with all rows.\n\n"
        + "\n\n".join(parts)
        + f"\n\n{positives(['adult'])}"
    )


def claim(frame: pd.DataFrame) -> Claim:
    """Whether fewer rows are enough to calibrate than to train."""
    text = "The data needed to calibrate are much less than those needed to train"
    if not len(frame):
        return Claim(text, "–", "not run yet", None).resting_on("sizes")
    words, holds = [], True
    for model, part in frame.groupby("model", sort=False):
        pairs = {n: (needed(part, n, CALIBRATED), needed(part, n, TRAINED)) for n in NAMES}
        holds &= all(few <= MUCH_LESS * many for few, many in pairs.values())
        said = ", ".join(f"{name} {few} and {many}" for name, (few, many) in pairs.items())
        words.append(f"{model}: {said}")
    return Claim(
        text,
        "stated, no figures",
        f"rows that are enough to calibrate and to train, {'; '.join(words)}",
        holds,
        f"Adult; enough: RMSE within {NEAR:g} of that with all rows ({TRAIN[-1]:,} to train on, "
        f"{CALIBRATE[-1]} to calibrate on); much less: at most {MUCH_LESS:.0%}, for each model and "
        "method; for boosted trees see Figure 5 of Niculescu-Mizil 2005",
    ).resting_on("sizes")
