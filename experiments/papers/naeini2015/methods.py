"""The calibrators and measures of Table 1, and the columns of a row of results."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import calibrant as cal

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

#: as published; MCE and ECE as the authors' programs compute them
MEASURES = ("AUC", "ACC", "RMSE", "MCE", "ECE")
#: the last two in readings that do not depend on how tied predictions are ordered
READINGS = ("MCE, ties together", "ECE, plain", "ECE, equal width")
#: measures of which more is better
MORE = frozenset({"AUC", "ACC"})
#: the model as it is: its column has the model's name in the paper
BASE = "base"

METHODS: dict[str, Callable[[], Any]] = {
    BASE: cal.Uncalibrated,
    "IsoReg": cal.Isotonic,
    "Platt": lambda: cal.Platt(scale="raw"),
    "Hist": lambda: cal.Histogram(bins=10),
    "SBB": lambda: cal.SBB(lambda_="empirical"),  # one binning, as in the paper
    "ABB": cal.ABB,
}
#: cells of the cached ABB: the paper does not say how many
CELLS = 100
#: ABB as the text has it: the highest scores of sub-binnings in place of their sums, and one λ, of
#: which the paper names no value
ABB_BY_TEXT: dict[str, Callable[[], Any]] = {
    "ABB text, λ = 1": lambda: cal.ABB(variant="text", lambda_=1.0),
    "ABB text, empirical λ": lambda: cal.ABB(variant="text", lambda_="empirical"),
    "ABB text, cached": lambda: cal.ABB(variant="text", lambda_="empirical", cache=CELLS),
}
TABLE_1 = {**METHODS, **ABB_BY_TEXT}
#: ACP by level and scale of the model's intervals; the paper says 95 %, and that it "adjusts" them
ACP: dict[str, tuple[float, str]] = {
    "ACP": (0.95, "probability"),
    "ACP logit": (0.95, "logit"),
    "ACP 10 %": (0.1, "probability"),
}


class Rows(NamedTuple):
    """Attributes and labels of some rows."""

    X: Any
    y: Labels

    def take(self, rows: NDArray[np.intp]) -> Rows:
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        return Rows(X, self.y[rows])


def calibrated(
    scores: Array, y: Labels, new: Array, methods: Mapping[str, Callable[[], Any]] = TABLE_1
) -> dict[str, Array]:
    """Each method, fitted to scores with labels: the probabilities of new scores."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.errors.CalibrationWarning)  # few rows, as in the paper
        return {name: make().fit(scores, y).calibrate(new) for name, make in methods.items()}


def by_intervals(model: Any, train: Rows, known: Rows, new: Any) -> dict[str, Array]:
    """ACP at each of its intervals, for a logistic regression that was fitted to the first rows."""
    acp = cal.ACP().fit(model.predict_proba(known.X)[:, 1], known.y)
    found = {}
    for name, (level, scale) in ACP.items():
        ends = cal.prediction_interval(
            model, new, level=level, scale=scale, train=(train.X, train.y)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.errors.CalibrationWarning)  # empty intervals
            found[name] = acp.calibrate(ends.probability, lower=ends.lower, upper=ends.upper)
    return found


def measures(y: Labels, p: Array) -> dict[str, float]:
    """The paper's five measures as published, and MCE and ECE in readings of our own."""
    return {
        "AUC": cal.metrics.auc(y, p),
        "ACC": float(np.mean((p >= 0.5) == y)),
        "RMSE": cal.metrics.rmse(y, p),
        "MCE": cal.metrics.mce(y, p, binning="mass", ties="labels"),
        "ECE": math.sqrt(cal.metrics.ece(y, p, binning="mass", ties="labels") / 10),
        "MCE, ties together": cal.metrics.mce(y, p, binning="mass"),
        "ECE, plain": cal.metrics.ece(y, p, binning="mass"),
        "ECE, equal width": cal.metrics.ece(y, p),
    }


def row(y: Labels, found: Mapping[str, Array]) -> dict[str, float]:
    """All measures of all methods, as columns "method measure"."""
    return {
        f"{method} {measure}": value
        for method, p in found.items()
        for measure, value in measures(y, p).items()
    }
