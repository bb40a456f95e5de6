"""Noise on one attribute of the test rows: how much predictions move, and what it costs."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import calibrant as cal
from experiments import table
from experiments.papers.bella2009.models import MODELS, Model, Rows
from experiments.papers.bella2009.repetition import DATASETS, calibrators, rows_of, splits
from experiments.papers.bella2009.summaries import by_dataset, differs
from experiments.papers.cells import Cell, Claim, repeated

__all__ = ["METHODS", "cells", "claim", "page", "run"]

Array = NDArray[np.float64]

#: repetitions; there are no published figures to come near to
SEEDS, QUICK = 5, 1
METHODS = ("model", "binning", "PAV", "Platt", "SBA")
#: how far predictions move on average; and how much larger the MSE becomes
MOVED, RISE = "moved", "rise of MSE"
#: test rows that are looked at to find the attribute that matters most
LOOKED_AT = 200


def noisy(X: Rows, j: int, seed: int) -> Rows:
    """The rows with the values of a column dealt out anew."""
    order = np.random.default_rng(seed).permutation(len(X.coded))
    values, frame = X.coded.copy(), X.frame.copy()
    values[:, j] = values[order, j]
    frame.isetitem(j, frame.iloc[order, j].array)
    return Rows(frame, values, X.nominal)


def telling(model: Model, X: Rows, seed: int) -> int:
    """The attribute whose noise moves the model most."""
    few = X.take(np.arange(min(len(X.coded), LOOKED_AT)))
    plain = model.predict_proba(few)[:, 1]
    moves = [
        np.abs(model.predict_proba(noisy(few, j, seed))[:, 1] - plain).mean()
        for j in range(X.coded.shape[1])
    ]
    return int(np.argmax(moves))


def run(dataset: str, model: str, seed: int) -> dict[str, float]:
    """A model on one draw, in both settings: each method with and without noise."""
    X, y = rows_of(dataset)
    row = {}
    for setting, (train, hold, test) in splits(y, seed).items():
        fitted = MODELS[model]()
        fitted.fit(X.take(train), y[train])
        known, new = X.take(hold), X.take(test)
        changed = noisy(new, telling(fitted, new, seed), seed)
        scores = [fitted.predict_proba(part)[:, 1] for part in (known, new, changed)]
        for method, predict in calibrators(scores[0], known, y[hold]):
            plain, other = predict(scores[1], new), predict(scores[2], changed)
            rise = cal.metrics.brier(y[test], other) - cal.metrics.brier(y[test], plain)
            row[f"{method} {setting} {MOVED}"] = round(float(np.abs(other - plain).mean()), 5)
            row[f"{method} {setting} {RISE}"] = round(rise, 5)
    return row


def cells(quick: bool) -> list[Cell]:
    return repeated(QUICK if quick else SEEDS, dataset=DATASETS, model=MODELS)


TEXT = """The attribute whose noise moves the model most has its values dealt out anew among the
test rows. Means over datasets, models and repetitions of how far predictions move, and of how much
larger the MSE becomes; in brackets, on how many datasets it is less for SBA, and Wilcoxon's
two-sided p over datasets."""


def page(frame: pd.DataFrame) -> str:
    """Each method beside SBA, in both settings; and the movement by kind of model."""
    columns = [(measure, setting) for setting in "TV" for measure in (MOVED, RISE)]
    rows = []
    for name in METHODS:
        texts = []
        for measure, setting in columns:
            found = by_dataset(frame, measure)
            sba, other = found[f"SBA {setting}"], found[f"{name} {setting}"]
            beside = "" if name == "SBA" else f" ({differs(sba, other)})"
            texts.append(f"{other.mean():.4f}{beside}")
        rows.append((name, *texts))
    head = ("method", *(f"{measure} {setting}" for measure, setting in columns))
    kinds = [
        (
            model,
            *(
                f"{by_dataset(part, MOVED)[f'{name} {setting}'].mean():.4f}"
                for setting in "TV"
                for name in METHODS
            ),
        )
        for model, part in frame.groupby("model", sort=False)
    ]
    kinds_head = ("model", *(f"{name} {setting}" for setting in "TV" for name in METHODS))
    return f"{TEXT}\n\n{table(head, rows)}\n\nMoved, by model:\n\n{table(kinds_head, kinds)}"


def claim(frame: pd.DataFrame) -> Claim:
    """Whether SBA moves less than the model under noise, and loses less."""
    text = (
        "If noise on an attribute moves the output of the model a lot, SBA smooths it: it is more "
        "noise-tolerant."
    )
    if set(frame.get("dataset", ())) != set(DATASETS):
        return Claim(text, "argued, no figures", "not run yet", None).resting_on("noise")
    words, holds = [], True
    for setting in "TV":
        for measure in (MOVED, RISE):
            found = by_dataset(frame, measure)
            sba, model = found[f"SBA {setting}"], found[f"model {setting}"]
            holds &= bool(sba.mean() < model.mean())
            words.append(
                f"{measure} {setting}: {sba.mean():.4f} against {model.mean():.4f} of the model "
                f"({differs(sba, model)})"
            )
    return Claim(
        text,
        "argued, no figures",
        "; ".join(words),
        holds,
        "the attribute that moves the model most is dealt out anew among the test rows; holds if "
        "predictions move less and the MSE rises less than the model's, in both settings",
    ).resting_on("noise")
