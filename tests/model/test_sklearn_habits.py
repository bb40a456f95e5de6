"""CalibratedClassifier as a scikit-learn user types it: frozen models, searches, routing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import calibrant as cal


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def sample(n=300, k=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return rng.normal(size=(n, 4)) + 0.7 * y[:, None] * [1.0, -1.0, 0.5, 0.0], y


X, Y = sample()
NEW = sample(60, seed=1)[0]
W = np.random.default_rng(2).integers(1, 4, len(Y)).astype(float)
GROUPS = np.arange(len(Y)) // 3


class Counted(ClassifierMixin, BaseEstimator):
    """A Gaussian model that counts how often it is fitted."""

    fits = 0

    def fit(self, X, y):
        type(self).fits += 1
        self.model_ = GaussianNB().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


# --- as CalibratedClassifierCV ------------------------------------------------------------------


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_the_same_call_gives_the_numbers_of_scikit_learn(ensemble, k):
    rows, y = sample(k=k)
    theirs = CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=5, ensemble=ensemble)
    linear = cal.Isotonic(interpolation="linear")
    ours = cal.CalibratedClassifier(GaussianNB(), linear, cv=5, ensemble=ensemble)
    np.testing.assert_allclose(
        ours.fit(rows, y).predict_proba(NEW), theirs.fit(rows, y).predict_proba(NEW), atol=1e-9
    )


@pytest.mark.full
@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_any_number_of_jobs_gives_the_same_bits(ensemble, k):
    rows, y = sample(k=k)
    tree = DecisionTreeClassifier(max_depth=3, max_features=1, random_state=5)
    found = [
        cal.CalibratedClassifier(tree, "platt", cv=5, ensemble=ensemble, n_jobs=jobs)
        .fit(rows, y)
        .predict_proba(NEW)
        for jobs in (None, 1, 2, -1)
    ]
    assert all(np.array_equal(found[0], other) for other in found[1:])


# --- frozen and fitted models -------------------------------------------------------------------


@pytest.mark.parametrize("cv", [3, 0.25, None, "train", "prefit", GroupKFold(2)], ids=str)
def test_a_frozen_model_is_prefit_whatever_cv_is(cv):
    model = Counted().fit(X[:100], Y[:100])
    Counted.fits = 0
    wrapped = cal.CalibratedClassifier(FrozenEstimator(model), "isotonic", cv=cv)
    prefit = cal.CalibratedClassifier(model, "isotonic", cv="prefit")
    for classifier in (wrapped, clone(wrapped), prefit):
        classifier.fit(X[100:], Y[100:], sample_weight=W[100:])
    assert Counted.fits == 0
    assert wrapped.calibrator_.map_ == prefit.calibrator_.map_
    assert wrapped.estimator_.estimator is model
    assert clone(wrapped).estimator.estimator is model


@pytest.mark.parametrize("ensemble", [True, False])
def test_a_frozen_model_is_calibrated_as_in_scikit_learn(ensemble):
    frozen = FrozenEstimator(GaussianNB().fit(X[:100], Y[:100]))
    theirs = CalibratedClassifierCV(frozen, method="isotonic", cv=4, ensemble=ensemble)
    linear = cal.Isotonic(interpolation="linear")
    ours = cal.CalibratedClassifier(frozen, linear, cv=4, ensemble=ensemble)
    with warnings.catch_warnings():
        warnings.simplefilter("error", cal.errors.CalibrationWarning)
        warnings.filterwarnings("ignore", ".*rows of the rarer class")
        ours.fit(X[100:], Y[100:], sample_weight=np.ones(len(Y) - 100))
    theirs.fit(X[100:], Y[100:])
    np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), atol=1e-9)
    assert len(ours.members_) == (4 if ensemble else 1)


def test_a_frozen_model_that_is_not_fitted_is_refused():
    with pytest.raises(sklearn.exceptions.NotFittedError):
        cal.CalibratedClassifier(FrozenEstimator(GaussianNB()), "platt").fit(X, Y)


def advice(classifier):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        classifier.fit(X, Y)
    return [one for one in found if "fitted already" in str(one.message)]


@pytest.mark.parametrize("cv", [3, 0.25])
@pytest.mark.parametrize(
    "model", [GaussianNB(), make_pipeline(StandardScaler(), GaussianNB())], ids=["model", "pipe"]
)
def test_a_fitted_model_that_is_fitted_anew_is_told_once(model, cv):
    fitted = clone(model).fit(X[:50], Y[:50])
    (one,) = advice(cal.CalibratedClassifier(fitted, "platt", cv=cv, n_jobs=2))
    assert one.category is cal.errors.AdviceWarning
    assert 'cv="prefit"' in str(one.message)
    assert "FrozenEstimator(model)" in str(one.message)
    assert one.filename == __file__


def test_what_is_meant_is_not_told():
    fitted = GaussianNB().fit(X[:50], Y[:50])
    for estimator, cv in [
        (GaussianNB(), 3),
        (clone(fitted), 3),
        (fitted, "prefit"),
        (fitted, "train"),
        (FrozenEstimator(fitted), 3),
        (None, 3),
    ]:
        assert not advice(cal.CalibratedClassifier(estimator, "platt", cv=cv))


# --- clones and searches ------------------------------------------------------------------------


@pytest.mark.parametrize("calibrator", [cal.Isotonic(), "isotonic"], ids=str)
def test_parameters_of_both_parts_are_searched(calibrator):
    grid = {
        "calibrator__interpolation": ["step", "linear"],
        "estimator__var_smoothing": [1e-9, 1e-1],
    }
    model = cal.CalibratedClassifier(GaussianNB(), calibrator)
    search = GridSearchCV(model, grid, scoring="neg_brier_score", cv=3).fit(X, Y)
    best = search.best_params_
    by_hand = cal.CalibratedClassifier(
        GaussianNB(var_smoothing=best["estimator__var_smoothing"]),
        cal.Isotonic(interpolation=best["calibrator__interpolation"]),
    ).fit(X, Y)
    assert np.array_equal(search.predict_proba(NEW), by_hand.predict_proba(NEW))
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert calibrator == "isotonic" or calibrator.interpolation == "step"


def test_parameters_of_the_defaults_can_be_set():
    model = cal.CalibratedClassifier().set_params(
        estimator__C=0.5, calibrator="isotonic", calibrator__interpolation="linear"
    )
    assert isinstance(model.estimator, LogisticRegression)
    assert model.estimator.C == 0.5
    assert model.calibrator.interpolation == "linear"
    with pytest.raises(ValueError, match="Invalid parameter 'bins'"):
        model.set_params(calibrator__bins=3)


def test_cross_val_predict_and_pipelines_are_a_loop():
    model = make_pipeline(StandardScaler(), cal.CalibratedClassifier(GaussianNB(), "platt"))
    folds = GroupKFold(3)
    found = cross_val_predict(model, X, Y, groups=GROUPS, cv=folds, method="predict_proba")
    for train, test in folds.split(X, Y, GROUPS):
        alone = clone(model).fit(X[train], Y[train])
        assert np.array_equal(found[test], alone.predict_proba(X[test]))


# --- metadata routing ---------------------------------------------------------------------------


def weighted():
    """Asks for weights and groups when it is fitted."""
    model = cal.CalibratedClassifier(GaussianNB(), "platt")
    model.set_fit_request(sample_weight=True, groups=True)
    return model.set_score_request(sample_weight=False)


def test_weights_and_groups_reach_the_last_step_with_and_without_routing():
    rows = StandardScaler().fit_transform(X)
    plain = cal.CalibratedClassifier(GaussianNB(), "platt")
    direct = clone(plain).fit(rows, Y, W, groups=GROUPS).calibrator_.map_
    legacy = make_pipeline(StandardScaler(), plain).fit(
        X, Y, calibratedclassifier__sample_weight=W, calibratedclassifier__groups=GROUPS
    )
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        routed = make_pipeline(scaler, weighted()).fit(X, Y, sample_weight=W, groups=GROUPS)
    assert legacy[-1].calibrator_.map_ == direct
    assert routed[-1].calibrator_.map_ == direct
    assert clone(plain).fit(rows, Y, W).calibrator_.map_ != direct
    assert clone(plain).fit(rows, Y, groups=GROUPS).calibrator_.map_ != direct


def test_weights_and_groups_are_routed_by_cross_validation():
    folds = GroupKFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            weighted(),
            X,
            Y,
            cv=folds,
            params={"sample_weight": W, "groups": GROUPS},
            return_estimator=True,
        )
    for (train, _), model in zip(folds.split(X, Y, GROUPS), found["estimator"], strict=True):
        alone = cal.CalibratedClassifier(GaussianNB(), "platt")
        alone.fit(X[train], Y[train], W[train], groups=GROUPS[train])
        assert model.calibrator_.map_ == alone.calibrator_.map_
