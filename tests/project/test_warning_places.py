"""Every warning points at the line of the user, whichever way the call went."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import calibrant as cal
from calibrant.boosting import AdaBoost
from calibrant.monitor import estimate_rate

RNG = np.random.default_rng(0)
P = RNG.random(300)
Y = RNG.random(300) < P
ODD = np.arange(300) % 2 == 1
COLUMN = Y[:, None]
X = RNG.normal(size=(300, 3)) + Y[:, None]
THREE = np.arange(300) % 3
#: scores of three classes between 0 and 1 whose rows do not sum to 1
LOOSE = 0.3 + 0.6 * (THREE[:, None] == np.arange(3)) * RNG.random((300, 1))
FEW = [0, 1, *[0] * 28]
WRONG = 1 - P


MARGINS = cal.Platt().fit(np.linspace(-3, 3, 300), Y)
INTERVALS = cal.ACP().fit([0.1, 0.9], [0, 1])

#: each a call that warns
CALLS = {
    # labels as a column
    "labels, fit": lambda: cal.Platt().fit(P, COLUMN),
    "labels, BLS": lambda: cal.BLS().fit(P, COLUMN),
    "labels, Spline": lambda: cal.Spline().fit(P, COLUMN),
    "labels, fit_transform": lambda: cal.Platt().fit_transform(P, COLUMN),
    "labels, set_output": lambda: (
        cal.Platt().set_output(transform="pandas").fit_transform(P, COLUMN)
    ),
    "labels, pipeline": lambda: make_pipeline(cal.Platt()).fit(P, COLUMN),
    "labels, auto": lambda: cal.AutoCalibrator().fit(P, COLUMN),
    "labels, several classes": lambda: cal.Dirichlet().fit(LOOSE, THREE[:, None]),
    "labels, segments": lambda: cal.SegmentedCalibrator("platt").fit(P, COLUMN, segments=ODD),
    "labels, classifier": lambda: cal.CalibratedClassifier(GaussianNB(), "platt").fit(X, COLUMN),
    "labels, codes": lambda: cal.CodedClassifier(GaussianNB()).fit(X, THREE[:, None]),
    "labels, boosting": lambda: AdaBoost(n_estimators=2).fit(X, COLUMN),
    "labels, neighbours": lambda: cal.SimilarityBinning().fit(P, COLUMN, features=X),
    "labels, evaluate": lambda: cal.evaluate(COLUMN, P),
    "labels, measure": lambda: cal.metrics.brier(COLUMN, P),
    "labels, ece": lambda: cal.metrics.ece(COLUMN, P),
    "labels, table": lambda: cal.ScoreTable.from_arrays(P, COLUMN),
    "labels, report": lambda: cal.calibration_report(P, COLUMN, calibrator="platt"),
    "labels, advise": lambda: cal.advise(P, COLUMN),
    # rows that do not sum to one
    "rows, fit": lambda: cal.Temperature().fit(LOOSE, THREE),
    "rows, auto": lambda: cal.AutoCalibrator().fit(LOOSE, THREE),
    "rows, top label": lambda: cal.TopLabelCalibrator("platt").fit(LOOSE, THREE),
    "rows, report": lambda: cal.calibration_report(LOOSE, THREE, calibrator="temperature"),
    # advice
    "wrong way, fit": lambda: cal.AutoCalibrator().fit(WRONG, Y),
    "wrong way, splitter": lambda: cal.AutoCalibrator().fit(WRONG, Y, groups=np.arange(300)),
    "wrong way, pipeline": lambda: make_pipeline(cal.AutoCalibrator()).fit(WRONG, Y),
    "wrong way, search": lambda: GridSearchCV(
        cal.AutoCalibrator(), {"level": [0.9]}, cv=2, scoring="neg_brier_score"
    ).fit(WRONG[:, None], Y),
    "few, fit": lambda: cal.Isotonic().fit(P[:30], FEW),
    "few, pipeline": lambda: make_pipeline(cal.Isotonic()).fit(P[:30], FEW),
    "few, cross_val_predict": lambda: cross_val_predict(
        cal.Isotonic(), P[:30], [0, 1] * 15, cv=2, method="predict_proba"
    ),
    "few, classifier": lambda: cal.CalibratedClassifier(GaussianNB(), "isotonic").fit(
        X[:40], Y[:40]
    ),
    "few, prefit": lambda: cal.CalibratedClassifier(
        GaussianNB().fit(X, Y), "isotonic", cv="prefit"
    ).fit(X[:40], Y[:40]),
    "few, codes": lambda: cal.CodedClassifier(GaussianNB(), calibrator="isotonic").fit(
        X[:60], THREE[:60]
    ),
    # single methods
    "direction": lambda: cal.Isotonic(direction="auto").fit(RNG.random(300), Y),
    "direction, auto": lambda: cal.Isotonic(direction="auto").fit_transform(RNG.random(300), Y),
    "boosting stopped": lambda: AdaBoost(on_perfect="stop").fit(Y[:, None] * 1.0, Y),
    "rare side": lambda: cal.CodedClassifier(GaussianNB()).fit(
        X[:60], np.where(np.arange(60) == 7, 5, THREE[:60])
    ),
    "intervals": lambda: INTERVALS.calibrate([0.5], lower=[0.4], upper=[0.6]),
    # measures
    "log loss": lambda: cal.metrics.log_loss([0, 1, 1], [0.5, 0.0, 1.0]),
    "rate": lambda: estimate_rate([0.2] * 10, train_rate=0.2),
    # models
    "weights": lambda: cal.CalibratedClassifier(KNeighborsClassifier(), "platt").fit(
        X, Y, np.ones(300)
    ),
    "fitted": lambda: cal.CalibratedClassifier(GaussianNB().fit(X, Y), "platt").fit(X, Y),
    "own rows": lambda: cal.CalibratedClassifier(
        KNeighborsClassifier(1).fit(X, Y), "platt", cv="prefit"
    ).fit(X, Y),
    # new scores
    "range, calibrate": lambda: MARGINS.calibrate(np.full(20, 70.0)),
    "range, saved": lambda: MARGINS.to_fitted().predict(np.full(20, 70.0)),
    "range, transform": lambda: MARGINS.transform(np.full(20, 70.0)),
    "range, pandas": lambda: pd.Series(np.full(20, 70.0)).pipe(MARGINS.calibrate),
    "range, set_output": lambda: (
        clone(MARGINS)
        .set_output(transform="pandas")
        .fit(np.linspace(-3, 3, 300), Y)
        .transform(np.full(20, 70.0))
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_warning_points_here(name):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        CALLS[name]()
    told = {one.filename for one in found}
    assert found, "this call warns"
    assert told == {__file__}, [(one.filename, one.lineno, str(one.message)[:60]) for one in found]


def test_no_warning_counts_frames_by_hand():
    package = Path(cal.__file__).parent
    counted = [
        f"{path.relative_to(package)}: {found}"
        for path in package.rglob("*.py")
        for found in re.findall(r"stacklevel=(?!caller_level\(\)).*", path.read_text("utf-8"))
    ]
    assert not counted
    silent = [
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if path.read_text("utf-8").count("warnings.warn(")
        != path.read_text("utf-8").count("stacklevel=caller_level()")
    ]
    assert not silent
