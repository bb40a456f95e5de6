"""Boosting: against its slow twin, against scikit-learn's, and what it says when it must stop."""

from __future__ import annotations

import inspect
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import calibrant as cal
from calibrant.methods.boosting import (
    AdaBoost,
    boosting_score,
    hard_weight,
    rounded_weights,
    row_weights,
    soft_weight,
)
from twins import boosting as naive

LOSSES = ("exponential", "log")
VOTES = ("hard", "soft")
STEPS = (2, 4, 8, 16, 32)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tiny fits spend their time in waiting threads, if the linear algebra may start any."""
    with threadpool_limits(1):
        yield


def sample(n=300, seed=0, flip=0.1):
    X, y = make_classification(n, 6, n_informative=4, flip_y=flip, random_state=seed)
    return X, y


X, Y = sample()
NEW = sample(80, seed=1)[0]


class Recorder(DecisionTreeClassifier):
    """A tree that remembers the weights it was fitted with."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = np.array(sample_weight)
        return super().fit(X, y, sample_weight)


class Contrary(ClassifierMixin, BaseEstimator):
    """Always wrong on the rows it was fitted on."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.answers_ = {tuple(row): label for row, label in zip(X.tolist(), y, strict=True)}
        return self

    def predict(self, X):
        wrong = dict(zip(self.classes_, self.classes_[::-1], strict=True))
        return np.array([wrong[self.answers_[tuple(row)]] for row in X.tolist()])


class Counter(ClassifierMixin, BaseEstimator):
    """A stump that counts how often any of its kind predicts."""

    calls = 0

    def fit(self, X, y, sample_weight=None):
        self.tree_ = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y, sample_weight)
        self.classes_ = self.tree_.classes_
        return self

    def predict(self, X):
        Counter.calls += 1
        return self.tree_.predict(X)


# --- scikit-learn's contract --------------------------------------------------------------------

#: min_samples_leaf counts rows, and draws are not repeated by weights
REPETITION = {
    f"check_sample_weight_equivalence_on_{kind}_data": "rows are counted, or drawn"
    for kind in ("dense", "sparse")
}


def expected_to_fail(model):
    return REPETITION if model.estimator == "tree" or model.resample else {}


@pytest.mark.filterwarnings("ignore:boosting stopped:calibrant.errors.CalibrationWarning")
@parametrize_with_checks(
    [
        AdaBoost(n_estimators=20, weights="counts"),
        AdaBoost(
            votes="soft", leaf_smoothing="laplace", loss="log", n_estimators=10, weights="counts"
        ),
        AdaBoost("tree", n_estimators=10),
        AdaBoost("tree", max_depth=2, votes="soft", leaf_smoothing="m-estimate", n_estimators=5),
        AdaBoost(resample=True, n_estimators=10),
        AdaBoost(GaussianNB(), n_estimators=5, weights="counts"),
        AdaBoost(LogisticRegression(), votes="soft", n_estimators=3, weights="counts"),
    ],
    expected_failed_checks=expected_to_fail,
)
@pytest.mark.full
def test_passes_every_check(estimator, check):
    check(estimator)


def test_stumps_pass_every_check_even_that_weights_are_repetitions():
    assert not expected_to_fail(AdaBoost(weights="counts"))


def test_clone_and_pickle():
    model = AdaBoost("tree", max_depth=2, n_estimators=5, random_state=0).fit(X, Y)
    twin = pickle.loads(pickle.dumps(model))
    assert np.array_equal(twin.decision_function(NEW), model.decision_function(NEW))
    bare = clone(model)
    assert bare.get_params() == model.get_params()
    assert not hasattr(bare, "alphas_")
    with pytest.raises(NotFittedError):
        bare.raw_score(NEW)
    with pytest.raises(NotFittedError):
        bare.staged_raw_score(NEW)


def test_later_parameters_do_not_change_what_was_fitted():
    model = AdaBoost(n_estimators=8, votes="soft", leaf_smoothing="laplace", random_state=0)
    before = model.fit(X, Y).predict_proba(NEW)
    model.set_params(loss="log", leaf_smoothing="none", votes="hard", n_estimators=2)
    assert np.array_equal(model.predict_proba(NEW), before)
    assert len(list(model.staged_raw_score(NEW, steps=[1, 8]))) == 2


def test_every_parameter_and_attribute_is_documented():
    doc = inspect.getdoc(AdaBoost)
    model = AdaBoost(n_estimators=2).fit(pd.DataFrame(X, columns=list("abcdef")), Y)
    names = [*inspect.signature(AdaBoost).parameters, *(n for n in vars(model) if n[-1] == "_")]
    for name in names:
        assert re.search(rf"\b{name}\b", doc), name


# --- the twin -----------------------------------------------------------------------------------


@st.composite
def small_data(draw, weight):
    n = draw(st.integers(4, 14))
    column = st.lists(st.integers(0, 4), min_size=n, max_size=n)
    rows = np.array([draw(column), draw(column)], dtype=float).T
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    y[:2] = 0, 1
    return rows, y, np.array(draw(st.lists(weight, min_size=n, max_size=n)))


@pytest.mark.filterwarnings("ignore:boosting stopped:calibrant.errors.CalibrationWarning")
@pytest.mark.parametrize("votes", VOTES)
@pytest.mark.parametrize("loss", LOSSES)
@given(data=small_data(st.sampled_from([0.25, 1.0, 1.5, 3.0])), depth=st.integers(1, 2))
def test_weights_alphas_and_scores_are_the_twins(loss, votes, data, depth):
    rows, y, s = data
    base = Recorder(max_depth=depth)
    model = AdaBoost(base, loss=loss, votes=votes, n_estimators=6, random_state=0, weights="counts")
    model.fit(rows, y, s)
    votes_cast = [
        2 * e.predict_proba(rows)[:, 1] - 1 if votes == "soft" else 2.0 * e.predict(rows) - 1
        for e in model.estimators_
    ]
    sign = 2 * y - 1
    seen, alphas, F = naive.boost(sign.tolist(), [h.tolist() for h in votes_cast], s.tolist(), loss)
    for learner, expected in zip(model.estimators_, seen, strict=True):
        np.testing.assert_allclose(learner.seen_, expected, rtol=1e-8, atol=3 * 2.0**-30)
    np.testing.assert_allclose(model.alphas_, alphas, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.decision_function(rows), F, rtol=1e-7, atol=1e-8)
    if not alphas:
        return
    raw = [naive.raw_score(votes_cast, alphas, i) for i in range(len(y))]
    np.testing.assert_allclose(model.raw_score(rows), raw, rtol=1e-7, atol=1e-8)
    p = [naive.probability(score, loss) for score in F]
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1], p, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("estimator", ["stump", "tree"])
@pytest.mark.parametrize("loss", LOSSES)
def test_each_tree_is_scikit_learns_for_the_twins_weights(estimator, loss):
    # of large nodes only: in small ones different splits can be equally good
    options = {} if estimator == "stump" else {"max_depth": 4, "min_samples_leaf": 20}
    model = AdaBoost(estimator, **options, loss=loss, n_estimators=12, random_state=3).fit(X, Y)
    fixed = {"max_depth": 1} if estimator == "stump" else {"criterion": "entropy", **options}
    rows = X.astype(np.float32)
    votes = [2.0 * tree.predict(rows) - 1 for tree in model.estimators_]
    seen, _, _ = naive.boost((2 * Y - 1).tolist(), [h.tolist() for h in votes], [1.0] * 300, loss)
    for tree, weights in zip(model.estimators_, seen, strict=True):
        twin = DecisionTreeClassifier(**fixed, random_state=tree.random_state)
        twin.fit(X, Y, weights)
        assert np.array_equal(twin.tree_.feature, tree.tree_.feature)
        assert np.array_equal(twin.tree_.threshold, tree.tree_.threshold)


@given(
    agree=st.lists(st.sampled_from([-1.0, 1.0]), min_size=2, max_size=12),
    seed=st.integers(0, 99),
)
def test_soft_votes_of_one_are_hard_votes(agree, seed):
    w = np.random.default_rng(seed).dirichlet(np.ones(len(agree)))
    hard, soft = (vote(w, np.array(agree), 0.05) for vote in (hard_weight, soft_weight))
    assert soft.perfect == hard.perfect
    assert soft.alpha == pytest.approx(hard.alpha, rel=1e-11, abs=1e-11)


@given(
    agree=st.lists(
        st.floats(-1, 1).map(lambda v: round(v, 3)) | st.sampled_from([1e-9, -1e-9]),
        min_size=2,
        max_size=12,
    ),
    seed=st.integers(0, 99),
)
def test_soft_alpha_is_where_the_bound_is_least(agree, seed):
    w = np.random.default_rng(seed).dirichlet(np.ones(len(agree)))
    found = soft_weight(w, np.array(agree), 0.05)
    assert (found.alpha > 0) == (w @ agree > 2.0**-40)
    assume(found.alpha > 0)
    size = max(map(abs, agree))
    assert found.alpha * size <= 373
    assume(found.alpha * size < 300)
    expected = naive.alpha([1] * len(agree), agree, w.tolist(), 10)
    assert found.alpha == pytest.approx(expected, rel=1e-7)


def test_a_soft_vote_of_a_half_up_to_rounding_is_neither_right_nor_wrong():
    w = np.array([0.25, 0.25, 0.25, 0.25])
    exact, noisy = (soft_weight(w, np.array([1.0, 1.0, e, -e]), 0.05) for e in (0.0, 2e-16))
    assert exact.perfect
    assert noisy == exact


# --- scikit-learn's AdaBoost --------------------------------------------------------------------

TREES = {
    "stump": DecisionTreeClassifier(max_depth=1),
    "tree": DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2),
}


@pytest.mark.parametrize("depth", [1, 2])
def test_same_as_scikit_learns_while_no_learner_is_perfect(depth):
    X, y = sample(600, seed=2)
    theirs = AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=depth, criterion="entropy", min_samples_leaf=2),
        n_estimators=60,
        random_state=5,
    ).fit(X, y)
    ours = AdaBoost("tree", max_depth=depth, n_estimators=60, random_state=5).fit(X, y)
    np.testing.assert_allclose(2 * ours.alphas_, theirs.estimator_weights_, rtol=1e-9)
    assert np.array_equal(ours.predict(NEW), theirs.predict(NEW))
    np.testing.assert_allclose(boosting_score(theirs, NEW), ours.decision_function(NEW), rtol=1e-9)


@pytest.mark.parametrize("base", [DecisionTreeClassifier(max_depth=2), GaussianNB()], ids=str)
def test_an_instance_is_boosted_as_scikit_learn_boosts_it(base):
    theirs = AdaBoostClassifier(base, n_estimators=3, random_state=0).fit(X, Y)
    ours = AdaBoost(base, n_estimators=3, random_state=0).fit(X, Y)
    np.testing.assert_allclose(2 * ours.alphas_, theirs.estimator_weights_, rtol=1e-9)
    assert np.array_equal(ours.predict(NEW), theirs.predict(NEW))


@pytest.mark.parametrize("labels", [(0, 1), ("a", "b"), (1, 2)], ids=str)
@pytest.mark.parametrize("base", ["stump", "tree"])
def test_boosting_score_is_the_sum_of_votes(base, labels):
    y = np.array(labels)[Y]
    model = AdaBoostClassifier(TREES[base], n_estimators=15, learning_rate=0.7, random_state=0)
    model.fit(X, y)
    votes = [np.where(e.predict(NEW) == labels[1], 1.0, -1.0) for e in model.estimators_]
    F = 0.5 * model.estimator_weights_[: len(votes)] @ np.array(votes)
    np.testing.assert_allclose(boosting_score(model, NEW), F, rtol=1e-11, atol=1e-12)
    p = cal.LogisticCorrection().fit(boosting_score(model, X), y).calibrate(F)
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-2 * F)), rtol=1e-12)


def test_boosting_score_undoes_the_normalisation_after_an_early_stop():
    rows, y = np.arange(8.0)[:, None], np.arange(8) // 4
    model = AdaBoostClassifier(n_estimators=50).fit(rows, y)  # stops at its perfect first stump
    assert boosting_score(model, rows).tolist() == [-0.5] * 4 + [0.5] * 4


def test_boosting_score_inside_pipelines_and_searches():
    pipe = make_pipeline(StandardScaler(), AdaBoostClassifier(n_estimators=5, random_state=0))
    model = pipe.fit(X, Y)[-1]
    expected = boosting_score(model, pipe[:-1].transform(NEW))
    assert np.array_equal(boosting_score(pipe, NEW), expected)
    search = GridSearchCV(pipe, {"adaboostclassifier__n_estimators": [3, 6]}, cv=2).fit(X, Y)
    assert np.array_equal(boosting_score(search, NEW), boosting_score(search.best_estimator_, NEW))
    ours = make_pipeline(StandardScaler(), AdaBoost(n_estimators=5)).fit(X, Y)
    assert np.array_equal(boosting_score(ours, NEW), ours.decision_function(NEW))


def test_boosting_score_refuses_what_has_no_such_score():
    for wrong in (GradientBoostingClassifier().fit(X, Y), object(), make_pipeline(GaussianNB())):
        with pytest.raises(cal.errors.InputError, match="must be a fitted AdaBoost"):
            boosting_score(wrong, NEW)
    three = AdaBoostClassifier(n_estimators=3).fit(X, np.arange(300) % 3)
    with pytest.raises(cal.errors.InputError, match="must know two classes, but it knows 3"):
        boosting_score(three, NEW)
    with pytest.raises(NotFittedError):
        boosting_score(AdaBoostClassifier(), NEW)


# --- perfect learners, and learners no better than chance ----------------------------------------

SPLIT = np.arange(10.0)[:, None], np.arange(10) // 5


@pytest.mark.parametrize("votes", VOTES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_perfect_learner_has_a_finite_alpha_and_boosting_continues(loss, votes):
    model = AdaBoost(loss=loss, votes=votes, n_estimators=500).fit(*SPLIT)
    assert model.n_steps_ == 500
    assert model.stopped_ is None
    np.testing.assert_allclose(model.alphas_, 0.5 * np.log(21), rtol=1e-9)  # ε = 1/20
    assert np.array_equal(model.raw_score(SPLIT[0]), SPLIT[1])
    assert np.array_equal(model.predict_proba(SPLIT[0])[:, 1], SPLIT[1])


@pytest.mark.parametrize("votes", VOTES)
def test_on_perfect_stop_keeps_the_perfect_learner_and_says_so(votes):
    model = AdaBoost(votes=votes, on_perfect="stop", n_estimators=7)
    with pytest.warns(
        cal.errors.CalibrationWarning, match="after 1 of 7 rounds: the last learner was"
    ):
        model.fit(*SPLIT)
    assert model.n_steps_ == 1
    assert "never wrong" in model.stopped_
    assert model.alphas_ == pytest.approx([0.5 * np.log(21)])
    last = AdaBoost(votes=votes, on_perfect="stop", n_estimators=1).fit(*SPLIT)
    assert last.stopped_ is None


def test_epsilon_counts_the_sum_of_the_weights_but_at_least_one():
    rows, y = SPLIT
    for scale, n in ((3.0, 30.0), (0.01, 1.0), (1e-140, 1.0), (1e14, 1e15)):
        model = AdaBoost(n_estimators=1, weights="counts").fit(rows, y, np.full(10, scale))
        assert model.alphas_[0] == pytest.approx(0.5 * np.log1p(2 * n), rel=1e-9)
        plain = AdaBoost(n_estimators=1).fit(rows, y, np.full(10, scale))
        assert plain.alphas_[0] == pytest.approx(0.5 * np.log1p(20), rel=1e-9)


def test_a_learner_worse_than_chance_stops_at_once():
    model = AdaBoost(Contrary(), n_estimators=4)
    with pytest.warns(
        cal.errors.CalibrationWarning, match="after 0 of 4 rounds.*Nothing was learnt"
    ):
        model.fit(*SPLIT)
    assert model.n_steps_ == 0
    assert "no better than chance" in model.stopped_
    assert model.decision_function(SPLIT[0]).tolist() == [0.0] * 10
    assert model.raw_score(SPLIT[0]).tolist() == [0.5] * 10
    assert model.predict_proba(SPLIT[0]).tolist() == [[0.5, 0.5]] * 10
    assert list(model.staged_raw_score(SPLIT[0])) == []
    assert [f.tolist() for f in model.staged_raw_score(SPLIT[0], steps=[2])] == [[0.5] * 10]


@pytest.mark.parametrize("votes", VOTES)
@pytest.mark.parametrize("loss", LOSSES)
def test_without_features_to_split_by_the_base_rate_is_learnt(loss, votes):
    rows, y = np.zeros((10, 1)), np.array([0] * 7 + [1] * 3)
    model = AdaBoost(loss=loss, votes=votes, n_estimators=400)
    with pytest.warns(cal.errors.CalibrationWarning, match=r"right on 0\.5 of the weight"):
        model.fit(rows, y)
    # with the log loss α minimises a bound: steps are short, and soft votes fade with them
    assert (model.n_steps_ == 1) == (loss == "exponential")
    within = 1e-5 if (loss, votes) == ("log", "soft") else 1e-10
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1], 0.3, rtol=within)


def test_after_an_early_stop_later_steps_give_the_last_state():
    with pytest.warns(cal.errors.CalibrationWarning, match="boosting stopped"):
        model = AdaBoost(GaussianNB(), n_estimators=4096).fit(X, Y)
    assert 1 < model.n_steps_ < 4096
    *_, before, last = model.staged_decision_function(NEW, steps=[1, model.n_steps_, 4096])
    assert np.array_equal(before, last)
    assert np.array_equal(last, model.decision_function(NEW))


# --- staged scores ------------------------------------------------------------------------------


@pytest.mark.parametrize("votes", VOTES)
@pytest.mark.parametrize("loss", LOSSES)
def test_stages_are_the_models_of_fewer_rounds_bit_for_bit(loss, votes):
    options = {"loss": loss, "votes": votes, "random_state": 1}
    model = AdaBoost("tree", max_depth=3, n_estimators=32, **options).fit(X, Y)
    stages = zip(
        STEPS,
        model.staged_decision_function(NEW, steps=STEPS),
        model.staged_raw_score(NEW, steps=STEPS),
        model.staged_predict_proba(NEW, steps=STEPS),
        strict=True,
    )
    for step, F, raw, p in stages:
        short = AdaBoost("tree", max_depth=3, n_estimators=step, **options).fit(X, Y)
        assert np.array_equal(F, short.decision_function(NEW))
        assert np.array_equal(raw, short.raw_score(NEW))
        assert np.array_equal(p, short.predict_proba(NEW))
    everything = list(model.staged_decision_function(NEW))
    assert len(everything) == 32
    assert np.array_equal(everything[-1], model.decision_function(NEW))
    assert len({F.tobytes() for F in everything}) == 32  # none was overwritten by a later step


def test_staged_scores_run_every_learner_once():
    model = AdaBoost(Counter(), n_estimators=32).fit(X, Y)
    Counter.calls = 0
    list(model.staged_raw_score(NEW, steps=STEPS))
    assert Counter.calls == 32
    Counter.calls = 0
    next(model.staged_raw_score(NEW, steps=STEPS))
    assert Counter.calls == 2


@pytest.mark.parametrize("steps", [[0, 1], [2, 1], [1, 1], [1.5], [True], [33], "12", 5.0, [None]])
def test_steps_are_checked_before_anything_runs(steps):
    model = AdaBoost(n_estimators=32, random_state=0).fit(X, Y)
    for staged in (
        model.staged_decision_function,
        model.staged_raw_score,
        model.staged_predict_proba,
    ):
        with pytest.raises(
            cal.errors.ParameterError, match=r"ascending whole numbers from 1 to n_est.* 32"
        ):
            staged(NEW, steps=steps)


def test_links():
    for loss, factor in (("exponential", 2.0), ("log", 1.0)):
        model = AdaBoost(loss=loss, n_estimators=20, random_state=0).fit(X, Y)
        F = model.decision_function(NEW)
        np.testing.assert_allclose(
            model.predict_proba(NEW), 1 / (1 + np.exp(factor * np.outer(F, [1, -1]))), rtol=1e-12
        )
        assert np.array_equal(model.predict(NEW), (F > 0).astype(int))
        np.testing.assert_allclose(
            model.raw_score(NEW), 0.5 + 0.5 * F / model.alphas_.sum(), rtol=1e-12
        )
    # small probabilities are not lost to 1 − p
    p = AdaBoost(n_estimators=40).fit(*SPLIT).predict_proba(SPLIT[0])
    assert 0 < p[0, 1] < 1e-50
    assert 0 < p[-1, 0] < 1e-50


# --- weights ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:boosting stopped:calibrant.errors.CalibrationWarning")
@pytest.mark.parametrize("votes", VOTES)
@given(data=small_data(st.integers(0, 3).map(float)), order=st.randoms(use_true_random=False))
def test_integer_weights_are_repetitions_and_zero_is_absent(votes, data, order):
    rows, y, w = data
    w[:2] = np.maximum(w[:2], 1)
    model = AdaBoost(votes=votes, n_estimators=5, random_state=0, weights="counts")
    model.fit(rows, y, w)
    again = np.repeat(np.arange(len(y)), w.astype(int))
    order.shuffle(again)
    repeated = AdaBoost(votes=votes, n_estimators=5, random_state=0).fit(rows[again], y[again])
    np.testing.assert_allclose(model.alphas_, repeated.alphas_, rtol=1e-9)
    F = repeated.decision_function(rows)
    np.testing.assert_allclose(model.decision_function(rows), F, rtol=1e-9, atol=1e-12)


def test_rows_of_weight_zero_are_absent_from_the_leaves_of_trees():
    w = np.where(np.arange(300) % 3 == 0, 0.0, 1.0)
    some = w > 0
    model = AdaBoost("tree", n_estimators=10, random_state=0).fit(X, Y, w)
    without = AdaBoost("tree", n_estimators=10, random_state=0).fit(X[some], Y[some])
    assert np.array_equal(model.decision_function(NEW), without.decision_function(NEW))


def test_the_scale_of_weights_does_not_matter():
    w = np.random.default_rng(0).uniform(0.5, 2, 300)
    scores = [
        AdaBoost(n_estimators=30, random_state=0).fit(X, Y, c * w).decision_function(NEW)
        for c in (1.0, 1e-150, 1e90)
    ]
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], rtol=1e-9)


def test_weights_of_any_size_are_finite_for_the_learner():
    w = np.where(np.arange(300) % 2, 1e99, 5e-324)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        model = AdaBoost(Recorder(max_depth=2), n_estimators=3, random_state=0).fit(X, Y, w)
    half = AdaBoost("tree", max_depth=2, criterion="gini", min_samples_leaf=1, n_estimators=3)
    half.set_params(random_state=0).fit(X[1::2], Y[1::2])
    for learner in model.estimators_:
        assert np.isfinite(learner.seen_).all()
        assert (learner.seen_ > 0).all()
    assert model.alphas_[0] == pytest.approx(half.alphas_[0], rel=1e-9)


def test_a_learner_sees_weights_that_sum_to_the_sample_weights():
    w = np.random.default_rng(0).integers(1, 5, 300).astype(float)
    model = AdaBoost(Recorder(max_depth=1), n_estimators=5, random_state=0, weights="counts")
    model.fit(X, Y, w)
    assert np.array_equal(model.estimators_[0].seen_, w)
    for learner in model.estimators_:
        assert learner.seen_.sum() == pytest.approx(w.sum(), rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_cannot_all_underflow(loss):
    margin = np.array([1e6, 2e6, 1e6])
    assert row_weights(margin, np.ones(3), loss).tolist() == [0.5, 0.0, 0.5]
    with np.errstate(all="raise", under="ignore"):
        w = row_weights(np.array([-1e6, 0.0, 1e6]), np.array([1.0, 2.0, 3.0]), loss)
    assert w.sum() == 1
    assert np.all(w >= 0)
    seen = rounded_weights(w, np.array([1.0, 2.0, 3.0]))
    assert np.all(seen > 0)
    assert seen.sum() == pytest.approx(6, rel=1e-8)


@pytest.mark.parametrize(
    ("loss", "votes", "rounds"), [("exponential", "hard", 8192), ("log", "soft", 1024)]
)
@pytest.mark.full
def test_many_rounds_neither_overflow_nor_stop(loss, votes, rounds):
    rows, y = sample(60, seed=4, flip=0.3)
    model = AdaBoost(loss=loss, votes=votes, n_estimators=rounds, random_state=0)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        model.fit(rows, y)
        F = model.decision_function(rows)
        p = model.predict_proba(rows)
    assert model.n_steps_ == rounds
    assert np.isfinite(F).all()
    assert np.isfinite(p).all()


def test_sums_of_seen_weights_are_exact_in_any_order():
    rng = np.random.default_rng(0)
    s = rng.integers(1, 9, 1000).astype(float)
    w = rng.dirichlet(np.full(1000, 0.1))
    seen = rounded_weights(w, s)
    np.testing.assert_allclose(seen, w * s.sum(), rtol=1e-12, atol=8 * 2.0**-30)
    sums = {np.cumsum(seen[rng.permutation(1000)])[-1] for _ in range(50)}
    assert len(sums) == 1


# --- resampling ---------------------------------------------------------------------------------


def test_resampling_boosts_what_takes_no_weights():
    rows, y = sample(400, seed=3)
    base = KNeighborsClassifier(1)
    model = AdaBoost(base, resample=True, n_estimators=10, random_state=0).fit(rows, y)
    again = AdaBoost(base, resample=True, n_estimators=10, random_state=0).fit(rows, y)
    assert model.n_steps_ == 10
    assert np.array_equal(model.decision_function(NEW), again.decision_function(NEW))
    with pytest.raises(
        cal.errors.ParameterError, match=r"fit of KNeighborsClassifier does not.*resample"
    ):
        AdaBoost(base).fit(rows, y)


def test_resampling_draws_by_the_weights():
    rows, y = np.arange(400.0)[:, None], np.arange(400) % 2
    w = np.where(np.arange(400) < 100, 1.0, 1e-9)  # only the first hundred will be drawn
    model = AdaBoost("tree", resample=True, n_estimators=1, random_state=0).fit(rows, y, w)
    tree = model.estimators_[0].tree_
    assert tree.weighted_n_node_samples[0] == 400
    assert tree.threshold[tree.feature == 0].max() < 100


def test_resampling_tries_again_before_it_gives_up():
    model = AdaBoost(Contrary(), resample=True, n_estimators=3, random_state=0)
    rows = np.repeat(np.arange(2.0), 20)[:, None]  # each draw holds both
    with pytest.warns(
        cal.errors.CalibrationWarning, match="after 0 of 3 rounds: none of 10 learners"
    ):
        model.fit(rows, np.repeat([0, 1], 20))


@pytest.mark.parametrize("estimator", ["stump", LogisticRegression()], ids=str)
def test_draws_of_one_class_are_drawn_again(estimator):
    rows, y = np.arange(3.0)[:, None], np.array([0, 0, 1])
    for seed in range(10):
        model = AdaBoost(estimator, resample=True, n_estimators=3, random_state=seed)
        try:
            model.fit(rows, y)
        except cal.errors.CalibrationWarning as stopped:
            assert "none of 10" in str(stopped)  # noqa: PT017
        else:
            assert model.n_steps_ == 3


# --- kinds of data ------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [("no", "yes"), (-1, 1), (False, True), (2.0, 5.0)], ids=str)
@pytest.mark.parametrize("estimator", ["stump", GaussianNB()], ids=str)
def test_any_two_labels(estimator, labels):
    model = AdaBoost(estimator, n_estimators=3, random_state=0).fit(X, np.array(labels)[Y])
    coded = AdaBoost(estimator, n_estimators=3, random_state=0).fit(X, Y)
    assert model.classes_.tolist() == list(labels)
    assert np.array_equal(model.decision_function(NEW), coded.decision_function(NEW))
    assert np.array_equal(model.predict(NEW), np.array(labels)[coded.predict(NEW)])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("estimator", ["stump", GaussianNB()], ids=str)
def test_frames_keep_their_names(estimator, frame):
    names = list("abcdef")
    columns, new = ({n: v[:, i] for i, n in enumerate(names)} for v in (X, NEW))
    model = AdaBoost(estimator, n_estimators=3, random_state=0).fit(frame(columns), Y)
    assert model.feature_names_in_.tolist() == names
    assert model.n_features_in_ == 6
    bare = AdaBoost(estimator, n_estimators=3, random_state=0).fit(X, Y)
    assert np.array_equal(model.raw_score(frame(new)), bare.raw_score(NEW))
    other = frame({n.upper(): v for n, v in new.items()})
    with pytest.raises(cal.errors.InputError, match="feature names should match"):
        model.raw_score(other)
    with pytest.raises(cal.errors.InputError, match="5 features, but AdaBoost is expecting 6"):
        bare.raw_score(NEW[:, :5])


def test_a_pipeline_gets_frames_with_categories_and_weights():
    frame = pd.DataFrame({"colour": np.where(X[:, 0] > 0, "red", "blue"), "size": X[:, 1]})
    frame["colour"] = frame["colour"].astype("category")
    base = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough"),
        DecisionTreeClassifier(max_depth=2),
    )
    model = AdaBoost(base, n_estimators=4, random_state=0).fit(frame, Y)
    numbers = np.column_stack((X[:, 0] <= 0, X[:, 0] > 0, X[:, 1])).astype(float)
    plain = AdaBoost(DecisionTreeClassifier(max_depth=2), n_estimators=4, random_state=0)
    assert model.n_steps_ == 4
    np.testing.assert_allclose(model.alphas_, plain.fit(numbers, Y).alphas_, rtol=1e-9)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, sp.coo_matrix])
@pytest.mark.parametrize("estimator", ["stump", "tree", LogisticRegression()], ids=str)
def test_sparse_rows_are_the_dense_ones(estimator, kind):
    thin = np.where(np.abs(X) > 1, X, 0.0)
    new = np.where(np.abs(NEW) > 1, NEW, 0.0)
    options = {"n_estimators": 4, "random_state": 0}
    model = AdaBoost(estimator, **options).fit(kind(thin), Y)
    dense = AdaBoost(estimator, **options).fit(thin, Y)
    np.testing.assert_allclose(
        model.decision_function(kind(new)), dense.decision_function(new), rtol=1e-6
    )


def test_sparse_rows_and_missing_values_are_up_to_the_estimator():
    with pytest.raises(TypeError, match="Sparse data was passed"):
        AdaBoost(GaussianNB()).fit(sp.csr_matrix(X), Y)
    holes = np.where(np.abs(X) > 2.5, np.nan, X)
    with pytest.raises(cal.errors.InputError, match="NaN"):
        AdaBoost().fit(holes, Y)
    with pytest.raises(ValueError, match="NaN"):
        AdaBoost(GaussianNB()).fit(holes, Y)
    model = AdaBoost(DecisionTreeClassifier(max_depth=2), n_estimators=3, random_state=0)
    assert model.fit(holes, Y).n_steps_ == 3
    assert np.isfinite(model.raw_score(holes)).all()


def test_boosted_naive_bayes():
    model = AdaBoost(GaussianNB(), n_estimators=2).fit(X, Y)
    first = GaussianNB().fit(X, Y)
    assert np.array_equal(model.estimators_[0].predict(NEW), first.predict(NEW))
    error = np.mean(first.predict(X) != Y)
    assert model.alphas_[0] == pytest.approx(0.5 * np.log((1 - error) / error))


# --- options ------------------------------------------------------------------------------------


def test_options_reach_the_trees():
    defaults = {
        "stump": {"criterion": "gini", "max_depth": 1, "min_samples_leaf": 1, "ccp_alpha": 0.0},
        "tree": {"criterion": "entropy", "max_depth": None, "min_samples_leaf": 2},
    }
    for name, expected in defaults.items():
        tree = AdaBoost(name, n_estimators=1).fit(X, Y).estimators_[0]
        assert expected.items() <= tree.get_params().items()
    options = {"criterion": "gini", "max_depth": 2, "ccp_alpha": 0.01, "min_samples_leaf": 5}
    model = AdaBoost("tree", n_estimators=6, random_state=0, **options).fit(X, Y)
    for tree in model.estimators_:
        assert options.items() <= tree.get_params().items()
        assert tree.get_depth() <= 2
    pruned = AdaBoost("tree", ccp_alpha=0.02, n_estimators=6, random_state=0).fit(X, Y)
    full = AdaBoost("tree", n_estimators=6, random_state=0).fit(X, Y)
    for small, large in zip(pruned.estimators_, full.estimators_, strict=True):
        assert small.get_n_leaves() < large.get_n_leaves()


@pytest.mark.parametrize(
    ("smoothing", "options", "left", "right"),
    [
        ("none", {}, 0 / 4, 5 / 6),
        ("laplace", {}, 1 / 6, 6 / 8),
        ("m-estimate", {}, (0 + 2 * 0.5) / 6, (5 + 2 * 0.5) / 8),
        ("m-estimate", {"m": 10.0}, (0 + 10 * 0.5) / 14, (5 + 10 * 0.5) / 16),
    ],
)
def test_leaves_are_smoothed(smoothing, options, left, right):
    rows = np.array([0.0] * 4 + [1.0] * 6)[:, None]
    y = np.array([0] * 4 + [0] + [1] * 5)
    model = AdaBoost(votes="soft", leaf_smoothing=smoothing, n_estimators=1, **options)
    model.fit(rows, y)
    h = model.decision_function([[0.0], [1.0]]) / model.alphas_[0]
    np.testing.assert_allclose(h, [2 * left - 1, 2 * right - 1], rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "forest"}, "must be 'stump' or 'tree', or an instance"),
        ({"estimator": GaussianNB}, "or an instance of a classifier"),
        ({"estimator": None}, "must be 'stump' or 'tree'"),
        ({"max_depth": 2}, 'max_depth of a stump is 1.*Use estimator="tree"'),
        ({"leaf_smoothing": "laplace"}, "leaf_smoothing='laplace' needs votes=\"soft\""),
        ({"votes": "soft", "m": 5.0}, 'needs leaf_smoothing="m-estimate"'),
        ({"estimator": GaussianNB(), "max_depth": 2}, "max_depth is an .* on the instance itself"),
        ({"estimator": GaussianNB(), "criterion": "gini"}, "criterion is an option of the trees"),
        ({"estimator": GaussianNB(), "ccp_alpha": 0.1}, "estimator is a GaussianNB and ccp_alpha"),
        ({"estimator": GaussianNB(), "min_samples_leaf": 3}, "min_samples_leaf is an option"),
        (
            {"estimator": GaussianNB(), "votes": "soft", "leaf_smoothing": "laplace"},
            "leaf_smoothing is an option",
        ),
        ({"estimator": Perceptron(), "votes": "soft"}, 'votes="soft" needs .* Perceptron has none'),
        ({"votes": "loud"}, "votes of AdaBoost must be 'hard' or 'soft', but 'loud' came"),
        ({"on_perfect": True}, "on_perfect of AdaBoost must be 'continue' or 'stop'"),
        ({"loss": "brier"}, "loss of AdaBoost must be 'exponential' or 'log'"),
        ({"resample": 1}, "resample of AdaBoost must be True or False"),
        ({"n_estimators": 0}, "n_estimators of AdaBoost must be a whole number of at least 1"),
        ({"criterion": "mse"}, "criterion of AdaBoost must be None or 'gini' or"),
        ({"estimator": "tree", "max_depth": 0}, "max_depth of AdaBoost must be"),
        ({"ccp_alpha": -0.1}, "ccp_alpha of AdaBoost must be a number of at least 0"),
        ({"min_samples_leaf": 0.5}, "min_samples_leaf of AdaBoost must be"),
        ({"m": 0.0}, "m of AdaBoost must be a number above 0"),
    ],
)
def test_options_without_effect_and_wrong_ones_are_refused(options, message):
    with pytest.raises(cal.errors.ParameterError, match=message):
        AdaBoost(**options).fit(X, Y)


def test_refusals_of_data():
    with pytest.raises(cal.errors.InputError, match=r"3 came.*code matrix"):
        AdaBoost().fit(X, np.arange(300) % 3)
    with pytest.raises(cal.errors.InputError, match="only one class came: 'a'"):
        AdaBoost().fit(X, ["a"] * 300)
    with pytest.raises(cal.errors.InputError, match="rows of positive weight"):
        AdaBoost().fit(X, Y, np.where(Y == 1, 1.0, 0.0))
    with pytest.raises(cal.errors.InputError, match="X has 300 and y has 299"):
        AdaBoost().fit(X, Y[:-1])
    with pytest.raises(cal.errors.InputError, match="y is None"):
        AdaBoost().fit(X, None)
    with pytest.raises(cal.errors.InputError, match="300 are negative"):
        AdaBoost().fit(X, Y, -np.ones(300))
    with pytest.raises(cal.errors.InputError, match="Unknown label type"):
        AdaBoost().fit(X, X[:, 0])


# --- the paper ----------------------------------------------------------------------------------


def test_logistic_correction_is_the_exponential_losss_own_probability():
    model = AdaBoost(n_estimators=50, random_state=0).fit(X, Y)
    corrected = cal.LogisticCorrection().fit(model.decision_function(X), Y)
    p = corrected.calibrate(model.decision_function(NEW))
    np.testing.assert_allclose(p, model.predict_proba(NEW)[:, 1], rtol=1e-12)


def test_raw_scores_leave_the_ends_as_boosting_goes_on_and_the_link_of_stumps_is_better():
    rows, y = sample(4000, seed=6)
    model = AdaBoost(n_estimators=256, random_state=0).fit(rows[:2000], y[:2000])
    raw = list(model.staged_raw_score(rows[2000:], steps=[1, 8, 64, 256]))
    spread = [np.std(f) for f in raw]
    assert spread == sorted(spread, reverse=True)
    p = model.predict_proba(rows[2000:])[:, 1]
    assert brier_score_loss(y[2000:], p) < 0.8 * brier_score_loss(y[2000:], raw[-1])


@pytest.mark.full
def test_1024_rounds_of_trees_on_letters(shared):
    path = shared / "data" / "letter.csv.gz"
    if not path.is_file():
        pytest.skip("needs letter.csv.gz of the papers' datasets")
    letters = pd.read_csv(path)
    y = letters["label"].isin(list("ABCDEFGHIJKLM")).to_numpy()
    rows = letters.drop(columns=["label", "split"]).to_numpy()
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:1500], order[1500:3500]
    model = AdaBoost("tree", n_estimators=1024, random_state=0).fit(rows[train], y[train])
    assert model.n_steps_ == 1024
    assert model.stopped_ is None
    assert np.array_equal(model.predict(rows[train]), y[train])  # separated
    errors, extremes = [], []
    for F, f in zip(
        model.staged_decision_function(rows[test], steps=[1, 32, 1024]),
        model.staged_raw_score(rows[test], steps=[1, 32, 1024]),
        strict=True,
    ):
        errors.append(np.mean((F > 0) != y[test]))
        extremes.append(np.mean((f < 0.05) | (f > 0.95)))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.1
    assert extremes[0] == 1
    assert extremes == sorted(extremes, reverse=True)
    p = model.predict_proba(rows[test])[:, 1]
    assert np.mean((p < 1e-6) | (p > 1 - 1e-6)) > 0.99  # why trees need another calibrator


def test_a_regressor_is_no_learner():
    from sklearn.tree import DecisionTreeRegressor

    with pytest.raises(cal.errors.ParameterError, match="an instance of a classifier"):
        cal.boosting.AdaBoost(DecisionTreeRegressor()).fit([[0.0], [1.0], [2.0]], [0, 1, 1])


def test_words_and_flags_may_be_numpys():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 3 == 0
    model = cal.boosting.AdaBoost(loss=np.str_("log"), resample=np.bool_(False), n_estimators=2)
    plain = cal.boosting.AdaBoost(loss="log", n_estimators=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.errors.CalibrationWarning)
        a, b = model.fit(X, y), plain.fit(X, y)
    assert (a.decision_function(X) == b.decision_function(X)).all()
