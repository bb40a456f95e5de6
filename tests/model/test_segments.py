"""Segments of a model's rows: columns of X, from coarse to fine."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import calibrant as cal
from calibrant.errors import InputError, ParameterError

RNG = np.random.default_rng(0)
N = 3000
X = pd.DataFrame(
    {"x": RNG.normal(size=N), "country": RNG.integers(0, 3, N), "product": RNG.integers(0, 2, N)}
)
Z = X["x"] + np.array([0.0, 1.5, -1.5])[X["country"]] + np.array([0.7, -0.7])[X["product"]]
Y = np.where(RNG.random(N) < 1.0 / (1.0 + np.exp(-Z)), "yes", "no")
SEGMENTS = ["country", "product"]


class OfX(LogisticRegression):
    """A model that looks at the first column only."""

    def fit(self, rows, y, sample_weight=None):
        return super().fit(np.asarray(rows)[:, :1], y, sample_weight)

    def predict_proba(self, rows):
        return super().predict_proba(np.asarray(rows)[:, :1])


def test_it_is_the_calibrator_of_segments_on_the_models_scores():
    model = OfX().fit(X, Y)
    whole = cal.CalibratedClassifier(model, segments=SEGMENTS, cv="prefit").fit(X, Y)
    scores = model.predict_proba(X)[:, 1]
    alone = cal.SegmentedCalibrator().fit(scores, Y, segments=X[SEGMENTS])
    assert np.array_equal(whole.calibrate(X), alone.calibrate(scores, X[SEGMENTS]))
    assert whole.to_fitted().map == alone.to_fitted().map


@pytest.mark.parametrize("calibrator", [None, "platt", cal.SegmentedCalibrator(shrinkage=5.0)])
def test_more_columns_tell_more(calibrator):
    losses = [
        cal.metrics.log_loss(
            Y, cal.CalibratedClassifier(OfX(), *asked, segments=s).fit(X, Y).predict_proba(X)
        )
        for asked, s in (((), None), ((calibrator,), "country"), ((calibrator,), SEGMENTS))
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] - losses[1] > 0.05
    assert losses[1] - losses[2] > 0.01


@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.full
def test_rows_of_every_kind(ensemble):
    wanted = cal.CalibratedClassifier(OfX(), segments=SEGMENTS, ensemble=ensemble).fit(X, Y)
    array = clone(wanted).set_params(segments=[1, 2]).fit(X.to_numpy(), Y)
    assert np.allclose(array.predict_proba(X.to_numpy()), wanted.predict_proba(X), atol=1e-12)
    polars = pl.DataFrame(X.to_dict("list"))
    other = clone(wanted).fit(polars, Y)
    assert np.allclose(other.predict_proba(polars), wanted.predict_proba(X), atol=1e-12)
    again = pickle.loads(pickle.dumps(wanted))
    assert np.array_equal(again.predict_proba(X), wanted.predict_proba(X))


def test_what_cannot_be_is_refused():
    for wrong in ("land", ["land"], [9], 9):
        with pytest.raises(InputError, match="segments must name columns of X"):
            cal.CalibratedClassifier(OfX(), segments=wrong).fit(X, Y)
    fitted = cal.CalibratedClassifier(OfX(), segments="country").fit(X, Y)
    with pytest.raises(InputError, match="segments must name columns of X"):
        fitted.predict_proba(X[["x"]])
    with pytest.raises(ParameterError, match=r"needs the columns of X.*segments="):
        cal.CalibratedClassifier(OfX(), cal.SegmentedCalibrator()).fit(X, Y)
    with pytest.raises(ParameterError, match="one of a single score"):
        cal.CalibratedClassifier(OfX(), cal.SimilarityBinning(gate=False), segments="country").fit(
            X, Y
        )
    with pytest.raises(InputError, match="segments are for two classes, but 3 came"):
        cal.CalibratedClassifier(GaussianNB(), segments="country").fit(X, X["country"])


def test_a_list_of_one_place_is_that_column():
    rows = X.to_numpy()
    one, other = (
        cal.CalibratedClassifier(LogisticRegression(), cal.Platt(), segments=places).fit(rows, Y)
        for places in (1, [1])
    )
    assert one.predict_proba(rows).tolist() == other.predict_proba(rows).tolist()
