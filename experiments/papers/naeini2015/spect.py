"""Table 1 (f), (g), (h): SPECT, 80 rows that serve to train and to calibrate, and 187 to test.

The paper's rows are known, so the models and maps are those of its own data. Only the 15 positives
among the test rows leave room for chance: runs after the first draw test rows anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import calibrant as cal
from experiments.data import read, task
from experiments.papers.cells import Cell
from experiments.papers.naeini2015.adult import Scorer, probability, sigmoid
from experiments.papers.naeini2015.methods import Array, Rows, by_intervals, calibrated, row

QUICK, FULL = 40, 200
#: the class that has 15 rows among the test rows
POSITIVE = "0"


@lru_cache(maxsize=2)
def part(split: str) -> Rows:
    """The rows of a part of the dataset as numbers 0 and 1."""
    known = task("spect")
    rule = {"name": "spect", "positive": [POSITIVE], "only_split": split}
    X, y = read(known._replace(rule=rule), most=10**9)
    return Rows(X.astype(float).to_numpy(), y)


def quadratic(u: Array, v: Array) -> Array:
    """d(1 + d) with d = u·v, the quadratic kernel of the authors' SVM program."""
    d = u @ v.T
    found: Array = d * (1.0 + d)
    return found


def square(u: Array, v: Array) -> Array:
    """(1 + d)², the usual quadratic kernel."""
    found: Array = (1.0 + u @ v.T) ** 2
    return found


def _fitted(model: Callable[[], Any]) -> Callable[[Rows], Any]:
    return lambda train: model().fit(train.X, train.y)


def _bayes(**options: float) -> Scorer:
    return Scorer(_fitted(lambda: BernoulliNB(**options)), probability)


def _svm(kernel: Callable[[Array, Array], Array], C: float = 1.0, scaled: bool = True) -> Scorer:
    steps = [StandardScaler()] if scaled else []
    return Scorer(_fitted(lambda: make_pipeline(*steps, SVC(kernel=kernel, C=C))), sigmoid)


def _moved(slope: float, shift: float) -> Scorer:
    """The SVM of Table 1 with its margin scaled and shifted before the sigmoid."""
    fit = _svm(quadratic).fit

    def scores(model: Any, X: Any) -> Array:
        found: Array = expit(slope * model.decision_function(X) + shift)
        return found

    return Scorer(fit, scores)


def _logistic(C: float) -> Scorer:
    """The rows are all but separable: without a penalty, as far as Newton's method goes."""
    options = {"solver": "newton-cholesky", "tol": 1e-8, "max_iter": 1000}
    return Scorer(_fitted(lambda: LogisticRegression(C=C, **options)), probability)


#: model → setting → how it is made; the first setting is that of Table 1
VARIANTS: dict[str, dict[str, Scorer]] = {
    "NB": {
        "Laplace's smoothing": _bayes(),
        "half of it": _bayes(alpha=0.5),
        "a tenth of it": _bayes(alpha=0.1),
        "normal densities": Scorer(_fitted(GaussianNB), probability),
    },
    "SVM": {
        "d(1 + d), z-scored, C = 1": _svm(quadratic),
        "d(1 + d), as they are, C = 1": _svm(quadratic, scaled=False),
        "d(1 + d), as they are, C = 0.05": _svm(quadratic, 0.05, scaled=False),
        "(1 + d)², z-scored, C = 1": _svm(square),
        "(1 + d)², as they are, C = 1": _svm(square, scaled=False),
        "the first, σ(f + 0.9)": _moved(1.0, 0.9),
        "the first, σ(f/2 + 0.75)": _moved(0.5, 0.75),
    },
    "LR": {
        "no penalty": _logistic(np.inf),
        "C = 10⁶": _logistic(1e6),
        "C = 100": _logistic(100.0),
        "C = 1": _logistic(1.0),
    },
}
FIRST = {model: next(iter(variants)) for model, variants in VARIANTS.items()}


class Scores(NamedTuple):
    """A model and its scores of the training and of the test rows."""

    model: Any
    known: Array
    new: Array


@lru_cache(maxsize=20)
def scored(model: str, variant: str) -> Scores:
    train, test = part("train"), part("test")
    scorer = VARIANTS[model][variant]
    fitted = scorer.fit(train)
    return Scores(fitted, scorer.scores(fitted, train.X), scorer.scores(fitted, test.X))


@lru_cache(maxsize=20)
def predictions(model: str, variant: str) -> dict[str, Array]:
    """The probabilities that each method gives to the test rows."""
    train, found = part("train"), scored(model, variant)
    made = calibrated(found.known, train.y, found.new)
    if model == "LR":
        made.update(by_intervals(found.model, train, train, part("test").X))
    return made


def draw(rows: int, seed: int) -> np.ndarray:
    """The test rows of a run: as they are in the first, drawn with replacement in the others."""
    if seed == 0:
        return np.arange(rows)
    return np.random.default_rng(seed).integers(rows, size=rows)


def run(model: str, seed: int) -> dict[str, float]:
    """All measures of all methods on the test rows, or on a resample of them."""
    y = part("test").y
    rows = draw(len(y), seed)
    return row(y[rows], {name: p[rows] for name, p in predictions(model, FIRST[model]).items()})


def run_nb(seed: int) -> dict[str, float]:
    return run("NB", seed)


def run_svm(seed: int) -> dict[str, float]:
    return run("SVM", seed)


def run_lr(seed: int) -> dict[str, float]:
    return run("LR", seed)


def cells(quick: bool) -> list[Cell]:
    return [{"seed": seed} for seed in range(QUICK if quick else FULL)]


#: where a step sits between two scores
CUTS = ("left", "mid", "right")


def widest_gap(known: Array, new: Array) -> tuple[float, float]:
    """The widest gap between neighbouring scores, and the share of new scores that lie in it."""
    x = np.unique(known)
    i = int(np.argmax(np.diff(x)))
    return float(x[i + 1] - x[i]), float(np.mean((new > x[i]) & (new < x[i + 1])))


def run_variants(model: str, variant: str) -> dict[str, float]:
    """Another setting of a model, on the paper's own rows; isotonic steps at either end of gaps."""
    known, new = scored(model, variant)[1:]
    y = part("train").y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.errors.CalibrationWarning)  # few rows, as in the paper
        cuts = {f"IsoReg {cut}": cal.Isotonic(cut=cut).fit(known, y).calibrate(new) for cut in CUTS}
    gap, inside = widest_gap(known, new)
    found = row(part("test").y, {**predictions(model, variant), **cuts})
    return {"gap": gap, "in the gap": inside, **found}


def cells_variants(quick: bool) -> list[Cell]:
    return [
        {"model": model, "variant": variant}
        for model, variants in VARIANTS.items()
        for variant in variants
    ]
