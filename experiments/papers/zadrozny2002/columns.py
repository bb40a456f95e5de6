"""A binary model for each column of a code, its calibration, and what combines the columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import calibrant as cal
from experiments.papers.cells import Row
from experiments.papers.zadrozny2002.coding import Array, Labels

#: where PAV's scores come from: the training rows as in the paper, or three folds
CALIBRATED_ON: dict[str, str | int] = {"train": "train", "folds": 3}
COMBINERS = {
    "Norm": cal.multiclass.normalize,
    "LS": cal.multiclass.least_squares,
    "Coup": cal.multiclass.coupling,
}
#: the fixed point of the iteration printed for coupling
PRINTED = "Coup, as printed"
EVERY = (*COMBINERS, PRINTED)


class Rows(NamedTuple):
    """Rows and labels to learn from, and others to judge on."""

    X: Any
    y: Labels
    X_new: Any
    y_new: Labels


def boosted(model: Any, rounds: int) -> cal.boosting.AdaBoost:
    """AdaBoost of naive Bayes, whose votes are its probabilities."""
    return cal.boosting.AdaBoost(model, votes="soft", n_estimators=rounds)


def score(model: Any, X: Any) -> Array:
    """What PAV calibrates: boosting's share of votes, else log-odds, which do not round to 0 or 1.

    F itself would not do: its size depends on the rounds, and folds may differ in these.
    """
    if hasattr(model, "raw_score"):
        return model.raw_score(X)
    joint = model.predict_joint_log_proba(X)
    return joint[:, 1] - joint[:, 0]


def as_printed(r: Array) -> Array:
    """Where the iteration printed for coupling ends, for one against the rest.

    It divides n_c = r_c + Σ_{b≠c}(1 − r_b) by the same sum of p and renormalises; at its fixed
    point k − 2 + 2p_c is proportional to n_c for every class that is not zero.
    """
    k = r.shape[1]
    n = k - 1 - r.sum(axis=1, keepdims=True) + 2 * r
    high = -np.sort(-n, axis=1)
    factor = (2 + np.arange(1, k + 1) * (k - 2)) / np.cumsum(high, axis=1)
    positive = (factor * high > k - 2).sum(axis=1) - 1
    p = np.maximum(factor[np.arange(len(r)), positive][:, None] * n - (k - 2), 0.0)
    return p / p.sum(axis=1, keepdims=True)


def probabilities(
    rows: Rows, estimator: Any, code: str, on: str
) -> Iterator[tuple[str, cal.multiclass.Code, Array]]:
    """The columns' probabilities of the new rows, at their word ("raw") and by PAV."""
    model = cal.CodedClassifier(
        estimator,
        code=code,
        calibrator=cal.Isotonic(),
        cv=CALIBRATED_ON[on],
        response_method=score,
    )
    scores = model.fit(rows.X, rows.y).scores(rows.X_new)
    sure = [m.predict_proba(rows.X_new)[:, 1] for m in model.estimators_]
    yield "raw", model.code_, np.column_stack(sure)
    calibrated = [c.calibrate(scores[:, b]) for b, c in enumerate(model.calibrators_)]
    yield "PAV", model.code_, np.column_stack(calibrated)


def combined(r: Array, code: cal.multiclass.Code, y: Labels) -> Iterator[tuple[str, Array]]:
    """The distributions that each combiner makes of r; y are the training labels."""
    if code == cal.multiclass.one_vs_rest(code.n_classes):
        for name, combine in COMBINERS.items():
            yield name, combine(r, code)
        yield PRINTED, as_printed(r)
        return
    yield "LS", cal.multiclass.least_squares(r, code)
    used = (code.matrix[y] != 0).sum(axis=0)
    yield "Coup", cal.multiclass.coupling(r, code, weights=used)


def figures(rows: Rows, estimator: Any, code: str, on: str, divide: int = 1) -> Row:
    """MSE (the sum over classes, divided) and error per combiner, raw and by PAV; share of ties.

    Tied: rows in which several columns say exactly 1, or all say 0.
    """
    found: dict[str, float | str | int] = {}
    for calibration, matrix, r in probabilities(rows, estimator, code, on):
        for combine, p in combined(r, matrix, rows.y):
            found[f"{calibration} {combine} MSE"] = cal.metrics.brier(rows.y_new, p) / divide
            found[f"{calibration} {combine} error"] = 1 - cal.metrics.accuracy(rows.y_new, p)
        tied = ((r == 1.0).sum(axis=1) > 1) | (r == 0.0).all(axis=1)
        found[f"{calibration} tied"] = float(tied.mean())
    return found
