"""Table 4: Pendigits by binary naive Bayes, plain and boosted. Its figures are not legible."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from experiments import table
from experiments.data import read_classes, read_split
from experiments.papers.beside import Beside
from experiments.papers.cells import Cell, Row, Table
from experiments.papers.published import published
from experiments.papers.zadrozny2002.columns import COMBINERS, EVERY, Rows, boosted, figures

ROUNDS = 25
MODELS: dict[str, Any] = {
    "Gaussian": GaussianNB(),
    "ten bins": CategoricalNB(min_categories=10),
}
BOOSTED = ("NB", "boosted NB")
#: the columns taken at their word, and calibrated on the training rows or on folds
KINDS = (
    ("{}", "raw", "train"),
    ("PAV {}", "PAV", "train"),
    ("PAV {} (on folds)", "PAV", "folds"),
)
CODES = ("one_vs_rest", "all_pairs", "ecoc")


@lru_cache(maxsize=2)
def rows(numbers: str) -> Rows:
    """Sixteen numbers from 0 to 100 with the source's split, as they are or in ten equal bins."""
    frame, y = read_classes("pendigits")
    X, train = frame.to_numpy(dtype=np.float64), read_split("pendigits") == "train"
    X = X if numbers == "Gaussian" else np.minimum(X // 10, 9).astype(np.intp)
    return Rows(X[train], y[train], X[~train], y[~train])


def run(numbers: str, code: str, model: str, on: str) -> Row:
    """One model with one code, its columns calibrated on the training rows or on folds."""
    plain = MODELS[numbers]
    chosen = {"NB": plain, "boosted NB": boosted(plain, ROUNDS)}[model]
    return figures(rows(numbers), chosen, code, on)


def cells(quick: bool) -> list[Cell]:
    """Quick: one against the rest, as in the paper."""
    return [
        {"numbers": numbers, "code": code, "model": model, "on": on}
        for code in (CODES[:1] if quick else CODES)
        for numbers in MODELS
        for model in BOOSTED
        for on in ("train", "folds")
    ]


# --- the page -------------------------------------------------------------------------------------


def line(frame: pd.DataFrame, **keys: str) -> pd.Series | None:
    """The row of a cell, if it is there."""
    found = frame
    for name, value in keys.items():
        found = found[found[name] == value]
    return found.iloc[0] if len(found) else None


def ways(frame: pd.DataFrame, combiners: tuple[str, ...], **keys: str) -> list[tuple[str, ...]]:
    """A line for the raw columns, for PAV on the training rows, and for PAV on folds."""
    found = []
    for model in BOOSTED:
        for name, calibration, on in KINDS:
            row = line(frame, model=model, on=on, **keys)
            if row is not None:
                figs = [f"{calibration} {c} {m}" for m in ("MSE", "error") for c in combiners]
                found.append((name.format(model), *(f"{row[f]:.4f}" for f in figs)))
    return found


def heads(combiners: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{m} {c}" for m in ("MSE", "error") for c in combiners)


def lost(frame: pd.DataFrame) -> str:
    """The published table beside ours, which is to say: ours, since it is not legible."""
    given = published("zadrozny2002", "4").set_index(["model", "method", "measure"])["value"]
    found = []
    for (name, combine), _ in given.groupby(level=[0, 1], sort=False):
        base = name.removeprefix("PAV ")
        calibration = "PAV" if name.startswith("PAV ") else "raw"
        cells_ = []
        for measure in ("MSE", "error"):
            value = float(given[name, combine, measure])
            row = line(frame, numbers="Gaussian", code="one_vs_rest", model=base, on="train")
            ours = math.nan if row is None else float(row[f"{calibration} {combine} {measure}"])
            beside = Beside(value, ours, math.nan, 1, digits=5)
            cells_ += [beside.printed, beside.ours]
        found.append((f"{name} {combine}", *cells_))
    return table(("method", "MSE published", "ours", "error published", "ours"), found)


PAGE = """7,494 rows to train, 3,498 rows of other writers to test, one against the rest. MSE is the
sum over classes. Gaussian naive Bayes; boosted: {rounds} rounds; PAV on the training rows.

{lost}

### Gaussian naive Bayes: more ways

PAV's scores from three folds instead of the training rows, and the fixed point of the iteration
printed for coupling ("Coup, as printed").

{gaussian}

### Naive Bayes on ten equal bins per attribute

Laplace's 1 added to each count.

{bins}

### Other codes

All pairs (45 columns), and a dense random code of 34 columns (ecoc). Coupling counts columns by
their training rows.

{codes}"""


def page(frame: pd.DataFrame) -> str:
    kinds = {
        numbers: table(("", *heads(EVERY)), ways(frame, EVERY, numbers=numbers, code="one_vs_rest"))
        for numbers in MODELS
    }
    others = [
        (f"{numbers}, {code.replace('_', ' ')}: {found[0]}", *found[1:])
        for numbers in MODELS
        for code in CODES[1:]
        for found in ways(frame, ("LS", "Coup"), numbers=numbers, code=code)
    ]
    return PAGE.format(
        rounds=ROUNDS,
        lost=lost(frame),
        gaussian=kinds["Gaussian"],
        bins=kinds["ten bins"],
        codes=table(("", *heads(("LS", "Coup"))), others) if others else "*Not run yet.*",
    )


def spread(row: pd.Series, calibration: str) -> float:
    """How far the combiners' MSE lie apart."""
    return float(np.ptp([row[f"{calibration} {name} MSE"] for name in COMBINERS]))


TABLES = (Table("4", "Table 4: Pendigits, MSE and error on the test rows", cells, run, page),)
