"""CalibratedClassifier against hand-written computations."""

from __future__ import annotations

import html
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import calibrant as cal
from calibrant.model.calibrated import CalibratedClassifier


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tiny fits spend their time in waiting threads, if the linear algebra may start any."""
    with threadpool_limits(1):
        yield


def sample(n=240, k=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, 4)) + 0.7 * y[:, None] * [1.0, -1.0, 0.5, 0.0]
    return X, y, rng.integers(1, 4, n).astype(float)


X, Y, W = sample()
NEW = sample(60, seed=1)[0]
NAMES = np.array(["ham", "spam"])[Y]


class Recorder(ClassifierMixin, BaseEstimator):
    """A model that writes down what it was fitted on; it knows only decision_function."""

    log: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        Recorder.log.append((X, y, sample_weight))
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]


@pytest.fixture
def log():
    Recorder.log.clear()
    return Recorder.log


# --- where the calibrator's scores come from ----------------------------------------------------


@pytest.mark.parametrize("calibrator", [cal.Platt(), cal.Isotonic(), cal.Beta()], ids=repr)
@pytest.mark.parametrize("cv", [3, 5, KFold(4), ShuffleSplit(2, random_state=0)], ids=str)
def test_folds_pool_their_scores_for_one_calibrator(calibrator, cv):
    found = CalibratedClassifier(GaussianNB(), calibrator, cv=cv).fit(X, Y)
    splitter = StratifiedKFold(cv) if isinstance(cv, int) else cv
    scores, rows = [], []
    for train, test in splitter.split(X, Y):
        scores.append(GaussianNB().fit(X[train], Y[train]).predict_proba(X[test])[:, 1])
        rows.append(test)
    rows = np.concatenate(rows)
    times = np.bincount(rows)[rows]  # a row that is held out twice counts half each time
    weight = None if times.max() == 1 else 1 / times
    by_hand = clone(calibrator).set_params(weights="counts")
    by_hand.fit(np.concatenate(scores), Y[rows], weight)
    assert found.calibrator_.map_ == by_hand.map_
    whole = GaussianNB().fit(X, Y)
    assert np.array_equal(found.predict_proba(NEW), by_hand.predict_proba(whole.predict_proba(NEW)))
    assert np.array_equal(found.calibrate(NEW), by_hand.calibrate(whole.predict_proba(NEW)))


def test_pooled_scores_are_those_of_cross_val_predict():
    scores = cross_val_predict(GaussianNB(), X, Y, cv=3, method="predict_proba")
    found = CalibratedClassifier(GaussianNB(), cal.Platt(), cv=3).fit(X, Y)
    assert found.calibrator_.map_ == cal.Platt().fit(scores, Y).map_


def test_an_iterable_of_splits_may_also_be_masks():
    pairs = list(StratifiedKFold(3).split(X, Y))
    masks = [tuple(np.isin(np.arange(len(Y)), rows) for rows in pair) for pair in pairs]
    found = CalibratedClassifier(GaussianNB(), cal.Platt(), cv=masks).fit(X, Y)
    assert (
        found.calibrator_.map_
        == CalibratedClassifier(GaussianNB(), cal.Platt(), cv=3).fit(X, Y).calibrator_.map_
    )


def test_margins_are_used_where_there_are_no_probabilities():
    scores = cross_val_predict(Perceptron(), X, Y, cv=3, method="decision_function")
    found = CalibratedClassifier(Perceptron(), cal.Platt(), cv=3).fit(X, Y)
    assert found.calibrator_.map_ == cal.Platt().fit(scores, Y).map_
    assert found.calibrator_.scale_ == "raw"


def test_method_chooses_the_kind_of_score():
    model = LogisticRegression()
    kinds = {
        method: CalibratedClassifier(model, cal.Platt(), response_method=method)
        .fit(X, Y)
        .calibrator_.scale_
        for method in ("auto", "predict_proba", "decision_function")
    }
    assert kinds == {"auto": "logit", "predict_proba": "logit", "decision_function": "raw"}


def test_train_calibrates_on_the_training_rows_without_a_warning():
    found = CalibratedClassifier(GaussianNB(), cal.Isotonic(), cv="train").fit(X, Y)
    scores = GaussianNB().fit(X, Y).predict_proba(X)
    assert found.calibrator_.map_ == cal.Isotonic().fit(scores, Y).map_


@pytest.mark.parametrize("fraction", [0.25, 0.5, 0.8])
def test_fraction_holds_out_a_stratified_part(fraction, log):
    found = CalibratedClassifier(Recorder(), cal.Isotonic(), cv=fraction, random_state=7).fit(X, Y)
    train, test = next(StratifiedShuffleSplit(1, test_size=fraction, random_state=7).split(X, Y))
    assert len(log) == 1
    assert np.array_equal(log[0][0], X[train])
    assert np.array_equal(log[0][1], Y[train])
    assert abs(Y[test].mean() - Y.mean()) < 1 / len(test)
    assert found.calibrator_.map_ == cal.Isotonic().fit(X[test, 0], Y[test]).map_


@pytest.mark.parametrize("labels", [Y, NAMES, Y == 1, Y + 1], ids=["01", "names", "bool", "12"])
def test_prefit_uses_all_rows_and_leaves_the_model_alone(labels):
    model = GaussianNB().fit(X[:100], labels[:100])
    before = pickle.dumps(model)
    found = CalibratedClassifier(model, cal.Isotonic(), cv="prefit").fit(X[100:], labels[100:])
    by_hand = cal.Isotonic().fit(model.predict_proba(X[100:]), labels[100:])
    assert found.estimator_ is model
    assert pickle.dumps(model) == before
    assert found.calibrator_.map_ == by_hand.map_
    assert found.classes_.tolist() == np.unique(labels).tolist()


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: rows[:, 0],
        lambda rows: rows[:, :1],
        lambda rows: pd.Series(rows[:, 0]),
        lambda rows: pl.Series(rows[:, 0]),
        lambda rows: rows[:, 0].tolist(),
    ],
    ids=["1-d", "one column", "pandas", "polars", "list"],
)
def test_prefit_takes_a_plain_function(function):
    found = CalibratedClassifier(function, cal.Isotonic(), cv="prefit").fit(X, NAMES)
    by_hand = cal.Isotonic().fit(X[:, 0], NAMES)
    assert np.array_equal(found.predict_proba(NEW), by_hand.predict_proba(NEW[:, 0]))
    assert found.predict(NEW).tolist() == by_hand.predict(NEW[:, 0]).tolist()


def test_a_function_may_give_one_column_per_class():
    def function(rows):
        p = 1 / (1 + np.exp(-rows[:, 0]))
        return np.column_stack((1 - p, p))

    for pos_label in ("ham", "spam"):
        found = CalibratedClassifier(function, cal.Platt(pos_label=pos_label), cv="prefit")
        by_hand = cal.Platt(pos_label=pos_label).fit(function(X), NAMES)
        assert np.array_equal(found.fit(X, NAMES).calibrate(NEW), by_hand.calibrate(function(NEW)))


def test_a_function_may_give_several_classes():
    rows, y, _ = sample(k=3)
    model = GaussianNB().fit(rows[1:], y[1:])
    found = CalibratedClassifier(model.predict_proba, cal.Isotonic(), cv="prefit")
    prefit = CalibratedClassifier(model, cal.Isotonic(), cv="prefit").fit(rows, y)
    assert np.array_equal(found.fit(rows, y).predict_proba(NEW), prefit.predict_proba(NEW))
    # a class that did not come can be named
    some = y < 2
    found.set_params(calibrator=cal.Platt(classes=[0, 1, 2])).fit(rows[some], y[some])
    assert found.classes_.tolist() == [0, 1, 2]
    assert found.predict_proba(NEW)[:, 2].max() < 0.05


def test_a_function_s_high_score_means_pos_label():
    found = CalibratedClassifier(
        lambda rows: -rows[:, 0], cal.Isotonic(pos_label="ham"), cv="prefit"
    ).fit(X, NAMES)
    by_hand = cal.Isotonic(pos_label="ham").fit(-X[:, 0], NAMES)
    assert np.array_equal(found.predict_proba(NEW), by_hand.predict_proba(-NEW[:, 0]))


def test_prefit_rows_need_not_be_indexable():
    class Handle:  # as a booster's own matrix
        def __init__(self, rows):
            self.rows = rows

    found = CalibratedClassifier(lambda handle: handle.rows[:, 0], cal.Platt(), cv="prefit")
    by_hand = cal.Platt().fit(X[:, 0], Y)
    assert np.array_equal(
        found.fit(Handle(X), Y).calibrate(Handle(NEW)), by_hand.calibrate(NEW[:, 0])
    )


def test_prefit_with_one_class_goes_by_the_model_s_classes():
    model = GaussianNB().fit(X, NAMES)
    ones = NAMES == "spam"
    found = CalibratedClassifier(model, cal.Platt(), cv="prefit").fit(X[ones], NAMES[ones])
    assert found.classes_.tolist() == ["ham", "spam"]
    assert (found.calibrate(NEW) > 0.9).all()
    alone = CalibratedClassifier(lambda rows: rows[:, 0], cal.Platt(), cv="prefit")
    assert alone.fit(X[ones], Y[ones]).classes_.tolist() == [0, 1]
    assert (alone.calibrate(NEW) > 0.9).all()
    assert (alone.fit(X[~ones], Y[~ones]).calibrate(NEW) < 0.1).all()
    with pytest.raises(cal.errors.InputError, match="classes="):
        alone.fit(X[ones], NAMES[ones])


def test_a_frozen_estimator_in_folds_is_prefit():
    model = GaussianNB().fit(X[:100], Y[:100])
    frozen = CalibratedClassifier(FrozenEstimator(model), cal.Isotonic(), cv=3).fit(X, Y)
    prefit = CalibratedClassifier(model, cal.Isotonic(), cv="prefit").fit(X, Y)
    assert frozen.calibrator_.map_ == prefit.calibrator_.map_


def test_defaults_are_logistic_regression_and_the_automatic_choice():
    found = CalibratedClassifier().fit(X, Y)
    assert isinstance(found.estimator_, LogisticRegression)
    assert isinstance(found.calibrator_, cal.AutoCalibrator)


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        KNeighborsClassifier(),
        SVC(),
        DecisionTreeClassifier(max_depth=3),
        GradientBoostingClassifier(n_estimators=5),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_trained_on_the_calibration_rows_is_told(model):
    half = len(Y) // 2
    model.fit(X[:half], Y[:half])
    with pytest.warns(cal.errors.CalibrationWarning, match="was trained on the rows"):
        CalibratedClassifier(model, cal.Platt(), cv="prefit").fit(X[:half], Y[:half])
    CalibratedClassifier(model, cal.Platt(), cv="prefit").fit(X[half:], Y[half:])


# --- ensemble and labels ------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
def test_ensemble_is_the_mean_of_its_folds(k):
    rows, y, _ = sample(k=k)
    found = CalibratedClassifier(GaussianNB(), cal.Platt(), cv=3, ensemble=True).fit(rows, y)
    parts = []
    for train, test in StratifiedKFold(3).split(rows, y):
        model = GaussianNB().fit(rows[train], y[train])
        held, new = model.predict_proba(rows[test]), model.predict_proba(NEW)
        if k == 2:
            parts.append(cal.Platt().fit(held, y[test]).predict_proba(new))
            continue
        each = [cal.Platt().fit(held[:, j], y[test] == j).calibrate(new[:, j]) for j in range(k)]
        parts.append(np.column_stack(each) / np.sum(each, axis=0)[:, None])
    np.testing.assert_allclose(found.predict_proba(NEW), np.mean(parts, axis=0), rtol=1e-12)
    assert len(found.members_) == 3
    assert not hasattr(found, "estimator_")
    assert not hasattr(found, "calibrator_")


def test_ensemble_fits_no_model_on_all_rows(log):
    CalibratedClassifier(Recorder(), cal.Platt(), ensemble=True).fit(X, Y)
    assert [len(y) for _, y, _ in log] == [160, 160, 160]


def test_labels_of_the_model_or_of_the_probabilities():
    rare = np.concatenate((np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)[:12]))
    balanced = LogisticRegression(class_weight="balanced")
    found = {
        decision: CalibratedClassifier(balanced, cal.Platt(), decision=decision).fit(
            X[rare], Y[rare]
        )
        for decision in ("calibrated", "model")
    }
    own = clone(balanced).fit(X[rare], Y[rare]).predict(NEW)
    assert np.array_equal(found["model"].predict(NEW), own)
    p = found["calibrated"].calibrate(NEW)
    assert np.array_equal(found["calibrated"].predict(NEW), (p > 0.5).astype(int))
    assert own.sum() > (p > 0.5).sum()
    assert np.array_equal(found["model"].predict_proba(NEW), found["calibrated"].predict_proba(NEW))


def test_an_ensemble_s_models_vote():
    found = CalibratedClassifier(
        DecisionTreeClassifier(random_state=0), cv=3, ensemble=True, decision="model"
    ).fit(X, NAMES)
    votes = np.array([member.estimator.predict(NEW) for member in found.members_])
    expected = np.where((votes == "spam").sum(axis=0) >= 2, "spam", "ham")
    assert found.predict(NEW).tolist() == expected.tolist()
    assert len(np.unique(votes, axis=0)) > 1


# --- classes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [GaussianNB(), Perceptron()], ids=["proba", "margin"])
@pytest.mark.parametrize(
    "calibrator", [cal.Isotonic(), cal.Isotonic(smoothing="laplace")], ids=repr
)
@pytest.mark.parametrize("k", [3, 5])
def test_several_classes_one_against_the_rest(estimator, calibrator, k):
    rows, y, w = sample(k=k)
    method = "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"
    found = CalibratedClassifier(estimator, calibrator).fit(rows, y, w)
    scores = np.zeros((len(y), k))
    for train, test in StratifiedKFold(3).split(rows, y):
        model = clone(estimator).fit(rows[train], y[train], sample_weight=w[train])
        scores[test] = getattr(model, method)(rows[test])
    new = getattr(clone(estimator).fit(rows, y, sample_weight=w), method)(NEW)
    r = np.column_stack(
        [clone(calibrator).fit(scores[:, j], y == j, w).calibrate(new[:, j]) for j in range(k)]
    )
    total = r.sum(axis=1, keepdims=True)
    expected = np.divide(r, total, out=np.full_like(r, 1 / k), where=total > 0)
    p = found.predict_proba(NEW)
    np.testing.assert_allclose(p, expected, rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert np.array_equal(found.predict(NEW), np.argmax(p, axis=1))
    assert len(found.calibrators_) == k
    assert isinstance(found.calibrator_, cal.CodedCalibrator)


@pytest.mark.parametrize(
    "estimator", [GaussianNB(), LogisticRegression(), Perceptron()], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("calibrator", [cal.Platt(), cal.Beta(), cal.Isotonic()], ids=repr)
def test_pos_label_turns_scores_and_not_probabilities(estimator, calibrator):
    found = {
        pos: CalibratedClassifier(estimator, clone(calibrator).set_params(pos_label=pos)).fit(
            X, NAMES
        )
        for pos in ("ham", "spam")
    }
    assert found["ham"].pos_label_ == "ham"
    ham, spam = (found[pos].predict_proba(NEW) for pos in ("ham", "spam"))
    assert np.array_equal(found["ham"].calibrate(NEW), ham[:, 0])
    assert np.array_equal(found["spam"].calibrate(NEW), spam[:, 1])
    # PAV and a sigmoid mirror exactly; cut points between margins are the same half-way points
    np.testing.assert_allclose(ham, spam, atol=1e-6)


def test_columns_go_by_the_model_s_own_order_of_classes():
    class Backwards(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y, sample_weight)
            self.classes_ = self.classes_[::-1]
            return self

        def predict_proba(self, X):
            self.classes_ = self.classes_[::-1]
            p = super().predict_proba(X)
            self.classes_ = self.classes_[::-1]
            return p[:, ::-1]

    for k in (2, 3):
        rows, y, _ = sample(k=k)
        found = CalibratedClassifier(Backwards(), cal.Platt()).fit(rows, y).predict_proba(NEW)
        assert np.array_equal(
            found, CalibratedClassifier(GaussianNB(), cal.Platt()).fit(rows, y).predict_proba(NEW)
        )


def test_margins_go_by_the_model_s_own_order_of_classes(log):
    class Backwards(Recorder):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y)
            self.classes_ = self.classes_[::-1]
            return self

        def decision_function(self, X):
            return -np.asarray(X)[:, 0]

    found = CalibratedClassifier(Backwards(), cal.Isotonic()).fit(X, Y)
    same = CalibratedClassifier(Recorder(), cal.Isotonic()).fit(X, Y)
    assert np.array_equal(found.predict_proba(NEW), same.predict_proba(NEW))


@pytest.mark.parametrize(
    "labels",
    [
        NAMES,
        NAMES.tolist(),
        NAMES.astype(object),
        pd.Series(NAMES),
        pd.Series(NAMES, index=np.arange(len(Y))[::-1]),
        pd.Series(NAMES, dtype="category"),
        pl.Series(NAMES.tolist()),
        pd.DataFrame({"y": NAMES}),
    ],
    ids=["array", "list", "object", "pandas", "shuffled index", "category", "polars", "frame"],
)
def test_labels_of_any_container(labels):
    found = CalibratedClassifier(GaussianNB(), cal.Platt()).fit(X, labels)
    assert found.classes_.tolist() == ["ham", "spam"]
    reference = CalibratedClassifier(GaussianNB(), cal.Platt()).fit(X, Y)
    assert np.array_equal(found.predict_proba(NEW), reference.predict_proba(NEW))
    assert set(found.predict(NEW)) <= {"ham", "spam"}


# --- weights and groups -------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [3, 0.25, "train"])
@pytest.mark.parametrize(
    "container", [np.asarray, list, pd.Series, pl.Series], ids=lambda c: c.__name__
)
def test_weights_reach_the_model_and_the_calibrator(log, cv, container):
    keyed = np.column_stack((X[:, 0], np.arange(len(Y))))
    found = CalibratedClassifier(Recorder(), cal.Isotonic(), cv=cv, random_state=0)
    found.fit(keyed, Y, sample_weight=container(W))
    for rows, y, weight in log:
        index = rows[:, 1].astype(int)
        assert np.array_equal(weight, W[index])
        assert np.array_equal(y, Y[index])
    fitted_on = {int(i) for i in log[0][0][:, 1]}
    test = [i for i in range(len(Y)) if cv != 0.25 or i not in fitted_on]
    assert found.calibrator_.map_ == cal.Isotonic().fit(X[test, 0], Y[test], W[test]).map_


def test_whole_weights_are_repetitions():
    groups = np.arange(len(Y)) % 4
    splits = [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(4)]
    counting = cal.Platt(weights="counts")
    weighted = CalibratedClassifier(GaussianNB(), counting, cv=splits).fit(X, Y, W)
    times = W.astype(int)
    many = np.repeat(groups, times)
    splits = [(np.flatnonzero(many != g), np.flatnonzero(many == g)) for g in range(4)]
    repeated = CalibratedClassifier(GaussianNB(), cal.Platt(), cv=splits).fit(
        np.repeat(X, times, axis=0), np.repeat(Y, times)
    )
    np.testing.assert_allclose(weighted.calibrate(NEW), repeated.calibrate(NEW), rtol=1e-9)


def test_prefit_weights_reach_the_calibrator():
    model = GaussianNB().fit(X[1:], Y[1:])
    found = CalibratedClassifier(model, cal.Isotonic(), cv="prefit").fit(X, Y, W)
    assert found.calibrator_.map_ == cal.Isotonic().fit(model.predict_proba(X), Y, W).map_


def test_a_model_without_weights_is_named_in_a_warning():
    model = CalibratedClassifier(KNeighborsClassifier(), cal.Isotonic())
    with pytest.warns(
        cal.errors.CalibrationWarning, match="KNeighborsClassifier takes no sample_weight"
    ):
        model.fit(X, Y, sample_weight=W)
    scores = cross_val_predict(KNeighborsClassifier(), X, Y, cv=3, method="predict_proba")
    assert model.calibrator_.map_ == cal.Isotonic().fit(scores, Y, W).map_


@pytest.mark.parametrize(
    "wrapped",
    [
        make_pipeline(StandardScaler(), Recorder()),
        make_pipeline(StandardScaler(), make_pipeline(Recorder())),
        GridSearchCV(Recorder(), {}, cv=2, scoring="roc_auc"),
    ],
    ids=["pipeline", "nested", "search"],
)
def test_weights_reach_the_model_inside(log, wrapped):
    CalibratedClassifier(wrapped, cal.Platt()).fit(X, Y, sample_weight=W)
    assert all(weight is not None and len(weight) == len(y) for _, y, weight in log)
    assert np.array_equal(log[-1][2], W)


def test_a_pipeline_whose_last_step_takes_no_weights_warns():
    model = CalibratedClassifier(make_pipeline(StandardScaler(), KNeighborsClassifier()))
    with pytest.warns(cal.errors.CalibrationWarning, match="Pipeline takes no sample_weight"):
        model.fit(X, Y, sample_weight=W)


@pytest.mark.parametrize("cv", [3, GroupKFold(4), 0.25, 0.5, 0.75])
@pytest.mark.parametrize("names", [False, True])
def test_groups_never_stand_on_both_sides(log, monkeypatch, cv, names):
    groups = np.repeat(np.arange(40), 6)
    rows = np.column_stack((X[:, 0], groups))
    given = np.array([f"patient {g}" for g in groups]) if names else groups
    found = CalibratedClassifier(Recorder(), cal.Isotonic(), cv=cv, random_state=0)
    scored = []
    monkeypatch.setattr(
        Recorder, "decision_function", lambda self, X: scored.append(X[:, 1]) or X[:, 0]
    )
    found.fit(rows, Y, groups=given)
    assert scored
    for (trained, _, _), held in zip(log, scored, strict=False):
        assert not set(trained[:, 1]) & set(held)
        assert len(trained) + len(held) == len(Y)
    if isinstance(cv, float):
        assert len(scored[0]) == pytest.approx(cv * len(Y), abs=12)


def test_a_number_of_folds_with_groups_is_stratified():
    groups = np.repeat(np.arange(40), 6)
    found = CalibratedClassifier(GaussianNB(), cal.Platt(), cv=3).fit(X, Y, groups=groups)
    scores = cross_val_predict(
        GaussianNB(), X, Y, groups=groups, cv=StratifiedGroupKFold(3), method="predict_proba"
    )
    assert found.calibrator_.map_ == cal.Platt().fit(scores, Y).map_


def test_leaking_groups_would_show():
    # a model that remembers its rows is perfect on twins, so only grouped folds are honest
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
    twins, labels = np.repeat(rows, 8, axis=0), np.repeat(y, 8)
    groups = np.repeat(np.arange(100), 8)
    order = rng.permutation(800)
    twins, labels, groups = twins[order], labels[order], groups[order]
    memory = KNeighborsClassifier(1)
    leaking = CalibratedClassifier(memory, cal.Platt()).fit(twins, labels).calibrate(twins)
    honest = (
        CalibratedClassifier(memory, cal.Platt()).fit(twins, labels, groups=groups).calibrate(twins)
    )
    assert np.abs(leaking - 0.5).min() > 0.49
    assert np.abs(honest - 0.5).max() < 0.2


# --- features pass untouched --------------------------------------------------------------------


def frame():
    return pd.DataFrame(
        {
            "town": pd.Categorical(np.array(["a", "b", "c"])[np.arange(len(Y)) % 3]),
            "note": np.where(X[:, 1] > 0, "long", "short"),
            "value": X[:, 0],
        },
        index=pd.RangeIndex(1000, 1000 + len(Y)),
    )


@pytest.mark.parametrize("cv", [3, 0.25, "train", "prefit"])
def test_frames_with_strings_pass_through_a_pipeline(cv):
    pipe = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["town", "note"]), remainder="passthrough"
        ),
        LogisticRegression(),
    )
    estimator = pipe.fit(frame(), NAMES) if cv == "prefit" else pipe
    found = CalibratedClassifier(estimator, cal.Platt(), cv=cv, random_state=0).fit(frame(), NAMES)
    p = found.predict_proba(frame())
    assert p.shape == (len(Y), 2)
    assert found.score(frame(), NAMES) > 0.6
    assert found.feature_names_in_.tolist() == ["town", "note", "value"]


def test_categories_stay_categories():
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=5)
    rows = frame().assign(note=lambda f: f["note"].astype("category"))
    found = CalibratedClassifier(model, cal.Isotonic(), cv=3).fit(rows, Y)
    scores = cross_val_predict(model, rows, Y, cv=3, method="predict_proba")
    assert found.calibrator_.map_ == cal.Isotonic().fit(scores, Y).map_


def test_rows_that_need_not_be_split_are_the_very_object(log, monkeypatch):
    rows, seen = frame(), []
    CalibratedClassifier(lambda r: seen.append(r) or r["value"], cv="prefit").fit(rows, Y)
    assert seen[0] is rows
    monkeypatch.setattr(Recorder, "decision_function", lambda self, X: X["value"])
    CalibratedClassifier(Recorder(), cal.Platt(), cv="train").fit(rows, Y)
    assert log[0][0] is rows


def test_polars_frames_pass():
    rows = pl.DataFrame({"value": X[:, 0], "other": X[:, 1]})
    found = CalibratedClassifier(GaussianNB(), cal.Platt()).fit(rows, Y)
    reference = CalibratedClassifier(GaussianNB(), cal.Platt()).fit(X[:, :2], Y)
    np.testing.assert_allclose(found.calibrate(rows), reference.calibrate(X[:, :2]), rtol=1e-12)


def test_lists_of_texts_pass():
    words = np.array(["cheap pills now", "meeting at noon"])
    texts = [f"{words[1 - label]} {i % 7}" for i, label in enumerate(Y)]
    pipe = make_pipeline(TfidfVectorizer(), LogisticRegression())
    found = CalibratedClassifier(pipe, cal.Platt(), cv=3).fit(texts, NAMES, sample_weight=W)
    assert found.predict(["cheap cheap pills"]).tolist() == ["spam"]
    assert found.predict_proba(texts).shape == (len(Y), 2)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, sp.coo_array, sp.coo_matrix])
def test_sparse_rows_pass(kind):
    dense = np.where(np.abs(X) > 0.5, X, 0.0)
    found = CalibratedClassifier(LogisticRegression(), cal.Platt()).fit(kind(dense), Y)
    reference = CalibratedClassifier(LogisticRegression(), cal.Platt()).fit(dense, Y)
    np.testing.assert_allclose(
        found.calibrate(sp.csr_array(NEW)), reference.calibrate(NEW), rtol=1e-6
    )


def test_a_model_with_nothing_but_predict_proba():
    class Booster:  # no get_params, no classes_, no scikit-learn
        def fit(self, X, y):
            self.rate = np.mean(y == "spam")
            return self

        def predict_proba(self, X):
            p = np.clip(self.rate + 0.2 * np.asarray(X)[:, 0], 0.01, 0.99)
            return np.column_stack((1 - p, p)).astype(np.float32)

    found = CalibratedClassifier(Booster(), cal.Isotonic()).fit(X, NAMES)
    scores = np.zeros((len(Y), 2), dtype=np.float32)
    for train, test in StratifiedKFold(3).split(X, Y):
        scores[test] = Booster().fit(X[train], NAMES[train]).predict_proba(X[test])
    assert found.calibrator_.map_ == cal.Isotonic().fit(scores, NAMES).map_
    assert not hasattr(found, "n_features_in_")


def test_repeated_splits_do_not_multiply_the_rows():
    from sklearn.model_selection import RepeatedStratifiedKFold

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = (rng.random(120) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    splits = RepeatedStratifiedKFold(n_splits=4, n_repeats=5, random_state=0)
    model = CalibratedClassifier(GaussianNB(), cal.Platt(), cv=splits).fit(X, y)
    assert model.to_fitted().provenance["weight"] == pytest.approx(120)


# --- what came of a fit, in words and in notebooks ------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "GaussianNB (predict_proba) of rows that it had not seen, fold after fold"),
        ({"cv": 0.3}, "GaussianNB (predict_proba) of rows that were held out"),
        ({"cv": "train"}, "GaussianNB (predict_proba) of the rows that it was fitted to"),
        ({"ensemble": True}, "The probabilities of 3 models, GaussianNB with a calibrator (Platt)"),
    ],
)
def test_explain_says_what_the_calibrator_learned_from(options, said):
    model = cal.CalibratedClassifier(GaussianNB(), "platt", **options).fit(X, Y)
    assert said in model.explain()
    assert "was not measured: calibrant.evaluate says it" in model.explain()


def test_explain_has_the_verdict_of_an_automatic_choice():
    raw = GaussianNB().fit(X, Y)
    model = cal.CalibratedClassifier(FrozenEstimator(raw)).fit(X, Y)
    assert "GaussianNB (predict_proba), which was fitted before" in model.explain()
    assert model.explain().endswith(model.calibrator_.explain())
    both = cal.CalibratedClassifier(GaussianNB(), cv=2, ensemble=True).fit(X, Y)
    assert "Member 2: " in both.explain()
    assert "uncalibrated" not in both._repr_html_()  # there are three leaderboards
    with pytest.raises(NotFittedError):
        cal.CalibratedClassifier().explain()


def test_the_box_of_notebooks_has_the_verdict_and_the_leaderboard_once_it_is_fitted():
    scores = GaussianNB().fit(X, Y).predict_proba(X)[:, 1]
    pairs = [(cal.CalibratedClassifier(GaussianNB()), X), (cal.AutoCalibrator(), scores)]
    for one, rows in pairs:
        assert "uncalibrated" not in one._repr_html_()
        page = one.fit(rows, Y)._repr_html_()
        assert "sk-top-container" in page
        assert html.escape(one.explain()) in page
        assert "uncalibrated" in page
        assert one._repr_mimebundle_()["text/html"].count("uncalibrated") == page.count(
            "uncalibrated"
        )
