"""Soft labels of a model's rows: the model learns both halves of each, folds are made of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, RepeatedKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cal
from calibrant.errors import InputError, ParameterError

RNG = np.random.default_rng(2)
N = 120
X = np.column_stack((np.arange(N), RNG.normal(size=(N, 2))))  # the first column numbers the rows
Q = np.round(8 / (1 + np.exp(-2 * X[:, 1] - RNG.normal(0, 1, N)))) / 8
W = RNG.integers(0, 3, N).astype(float)
GROUPS = np.arange(N) // 4


class Listening(ClassifierMixin, BaseEstimator):
    """A naive Bayes that keeps what its fit was given."""

    def fit(self, X, y, sample_weight=None, times=None):
        self.inner_ = GaussianNB().fit(np.asarray(X)[:, 1:], y, sample_weight)
        self.classes_ = self.inner_.classes_
        self.given_ = {"X": X, "y": y, "weight": sample_weight, "times": times}
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(np.asarray(X)[:, 1:])


class Stopping(Listening):
    """As boosters do, it takes an evaluation set and its weights."""

    def __init__(self, n_estimators=10):
        self.n_estimators = n_estimators

    def fit(self, X, y, sample_weight=None, eval_set=None, eval_sample_weight=None):
        super().fit(X, y, sample_weight)
        self.judged_ = (eval_set, eval_sample_weight)
        self.best_iteration_ = 7
        return self


def halves(rows, weight=None):
    """The slow twin: (row, label, weight) of both halves of each row that weighs anything."""
    found = []
    for row in rows:
        size = 1.0 if weight is None else weight[row]
        for label, share in ((0, 1 - Q[row]), (1, Q[row])):
            if size > 0:
                found.append((int(row), label, size * share))
    return found


def learned(model):
    """What a model was given, in the words of `halves`."""
    given = model.given_
    rows = np.asarray(given["X"])[:, 0].astype(int)
    return list(zip(rows.tolist(), given["y"].tolist(), given["weight"].tolist(), strict=True))


@pytest.mark.parametrize("weight", [None, W])
@pytest.mark.parametrize("cv", [3, 0.25, StratifiedKFold(4), GroupKFold(3)])
def test_models_learn_both_halves_of_the_rows_they_train_on(cv, weight):
    ensemble = not isinstance(cv, float)
    groups = GROUPS if isinstance(cv, GroupKFold) else None
    model = cal.CalibratedClassifier(
        Listening(), cal.Platt(), cv=cv, ensemble=ensemble, random_state=0
    )
    model.fit(X, Q, sample_weight=weight, groups=groups)
    assert model.classes_.tolist() == [0, 1]
    seen = []
    for member in model.members_:
        given = learned(member.estimator)
        rows = sorted({row for row, _, _ in given})
        assert sorted(given) == halves(rows, weight)  # a fraction is drawn in random order
        seen += rows
    present = np.arange(N) if weight is None else np.flatnonzero(weight)
    if ensemble:  # each row trains all models but one
        assert sorted(seen) == sorted(np.repeat(present, len(model.members_) - 1))


def test_the_model_of_all_rows_and_the_pooled_calibrator():
    model = cal.CalibratedClassifier(Listening(), cal.Isotonic(), cv=3).fit(X, Q, sample_weight=W)
    assert learned(model.estimator_) == halves(range(N), W)
    order = np.argsort(Q, kind="stable")
    fold = np.empty(N, dtype=int)
    fold[order] = np.arange(N) % 3
    scores = np.empty(N)
    for f in range(3):
        train = np.array(halves(np.flatnonzero(fold != f), W))
        inner = GaussianNB().fit(X[train[:, 0].astype(int), 1:], train[:, 1], train[:, 2])
        scores[fold == f] = inner.predict_proba(X[fold == f, 1:])[:, 1]
    expected = cal.Isotonic().fit(scores, Q, W)
    assert model.calibrator_.map_ == expected.map_


def test_folds_hold_labels_of_every_size():
    rare = np.where(Q > 0.8, 0.125, 0.0)  # none is a half or more
    model = cal.CalibratedClassifier(Listening(), cal.Platt(), cv=5, ensemble=True).fit(X, rare)
    sums = [member.estimator.given_["weight"].sum() for member in model.members_]
    assert sums == [96.0] * 5
    found = cal.CalibratedClassifier(Listening(), cal.Platt(), cv=4).fit(X, rare, groups=GROUPS)
    assert found.calibrate(X).mean() < 0.1
    found = cal.CalibratedClassifier(Listening(), cal.Platt(), cv=0.5, random_state=1)
    assert found.fit(X, rare).calibrate(X).mean() < 0.1


def test_groups_stay_on_one_side():
    model = cal.CalibratedClassifier(Listening(), cal.Platt(), cv=3, ensemble=True)
    model.fit(X, Q, groups=GROUPS)
    parts = [{GROUPS[row] for row, _, _ in learned(m.estimator)} for m in model.members_]
    assert [len(part) for part in parts] == [20] * 3


def test_a_row_scored_several_times_counts_once():
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    model = cal.CalibratedClassifier(Listening(), cal.Platt(), cv=cv).fit(X, Q)
    facts = model.calibrator_.to_fitted().provenance
    assert facts["weight"] == pytest.approx(N, rel=1e-12)
    assert facts["positive_weight"] == pytest.approx(Q.sum(), rel=1e-12)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_fitted_model_is_only_calibrated(frozen):
    inner = KNeighborsClassifier(5).fit(X[:, 1:], Q > 0.5)  # takes no weights, and need not
    estimator, cv = (FrozenEstimator(inner), 3) if frozen else (inner, "prefit")
    model = cal.CalibratedClassifier(estimator, cal.Beta(), cv=cv).fit(X[:, 1:], Q, sample_weight=W)
    scores = inner.predict_proba(X[:, 1:])[:, 1]
    assert model.calibrator_.map_ == cal.Beta().fit(scores, Q, W).map_


def test_a_frozen_model_in_folds():
    inner = FrozenEstimator(KNeighborsClassifier(5).fit(X[:, 1:], Q > 0.5))
    model = cal.CalibratedClassifier(inner, cal.Platt(), cv=3, ensemble=True).fit(X[:, 1:], Q)
    assert len(model.members_) == 3


def test_decisions_of_a_fitted_model_may_be_its_scores():
    model = cal.CalibratedClassifier(lambda rows: rows[:, 1] > 0, cal.Histogram(), cv="prefit")
    p = model.fit(X, Q).calibrate(X)
    assert p[X[:, 1] > 0] == pytest.approx(Q[X[:, 1] > 0].mean(), rel=1e-12)


def test_the_default_calibrator_and_frames():
    frame = pd.DataFrame(X, columns=["row", "a", "b"])
    model = cal.CalibratedClassifier(Listening()).fit(frame, pd.Series(Q))
    assert "labels are probabilities" in " ".join(model.calibrator_.leaderboard_.notes)
    assert model.score(frame, Q > 0.5) > 0.6


def test_a_pipeline_weighs_its_last_step():
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    model = cal.CalibratedClassifier(pipe, cal.Platt(), cv=3).fit(X[:, 1:], Q)
    rows, y, weight = (np.array(c) for c in zip(*halves(range(N)), strict=True))
    twin = make_pipeline(StandardScaler(), LogisticRegression())
    twin.fit(X[rows][:, 1:], y, logisticregression__sample_weight=weight)
    assert np.array_equal(model.estimator_[-1].coef_, twin[-1].coef_)
    with pytest.raises(ParameterError, match=r"logisticregression__sample_weight cannot be given"):
        model.fit(X[:, 1:], Q, logisticregression__sample_weight=W)


def test_columns_for_the_model_are_doubled_too():
    model = cal.CalibratedClassifier(Listening(), cal.Platt(), cv=3, ensemble=True)
    for member in model.fit(X, Q, times=X[:, 0]).members_:
        assert np.array_equal(member.estimator.given_["times"], member.estimator.given_["X"][:, 0])
    whole = cal.CalibratedClassifier(Listening(), cal.Platt(), cv=3).fit(X, Q, times=X[:, 0])
    assert np.array_equal(whole.estimator_.given_["times"], whole.estimator_.given_["X"][:, 0])


def test_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        asking = Listening().set_fit_request(sample_weight=True, times=True)
        model = cal.CalibratedClassifier(asking, cal.Platt(), cv=3).fit(X, Q, times=X[:, 0])
        assert learned(model.estimator_) == halves(range(N))
        silent = Listening().set_fit_request(sample_weight=False)
        with pytest.raises(ParameterError, match="takes no sample_weight"):
            cal.CalibratedClassifier(silent, cal.Platt(), cv=3).fit(X, Q)


def test_early_stopping_on_the_fold_weighs_both_halves():
    model = cal.CalibratedClassifier(Stopping(), cal.Platt(), cv=3, ensemble=True)
    for member in model.fit(X, Q, eval_set="fold").members_:
        ((rows, y),), (weight,) = member.estimator.judged_
        found = list(zip(rows[:, 0].astype(int).tolist(), y.tolist(), weight.tolist(), strict=True))
        trained = {row for row, _, _ in learned(member.estimator)}
        assert found == halves([row for row in range(N) if row not in trained])
    whole = cal.CalibratedClassifier(Stopping(), cal.Platt(), cv=3).fit(X, Q, eval_set="fold")
    assert whole.estimator_.n_estimators == 7
    assert learned(whole.estimator_) == halves(range(N))


def test_early_stopping_without_weights_is_refused():
    class Unweighed(Listening):
        def fit(self, X, y, sample_weight=None, eval_set=None):
            return super().fit(X, y, sample_weight)

    model = cal.CalibratedClassifier(Unweighed(), cal.Platt(), cv=3)
    with pytest.raises(
        ParameterError, match=r"eval_set=\"fold\" with soft labels needs.*Unweighed"
    ):
        model.fit(X, Q, eval_set="fold")


@pytest.mark.parametrize(
    ("estimator", "calibrator", "options", "words"),
    [
        (KNeighborsClassifier(), cal.Platt(), {}, r"takes no sample_weight.*cv=\"prefit\""),
        (GaussianNB(), cal.VectorScaling(), {}, "calibrator of one score.*VectorScaling came"),
        (GaussianNB(), cal.SimilarityBinning(), {}, "SimilarityBinning came"),
        (GaussianNB(), None, {"segments": 0}, "SegmentedCalibrator came"),
        (GaussianNB(), cal.Platt(pos_label=0), {}, "pos_label=0 came"),
        (GaussianNB().fit(X, np.where(Q > 0.5, "b", "a")), None, {"cv": "prefit"}, "knows the cla"),
        (GaussianNB().fit(X, np.arange(N) % 3), None, {"cv": "prefit"}, r"classes \[0, 1, 2\]"),
    ],
)
def test_who_cannot_learn_from_halves(estimator, calibrator, options, words):
    with pytest.raises((InputError, ParameterError), match=words):
        cal.CalibratedClassifier(estimator, calibrator, **options).fit(X, Q)


def test_a_matrix_of_probabilities_is_no_label():
    with pytest.raises(InputError, match="probabilities of each class are not taken"):
        cal.CalibratedClassifier().fit(X, np.column_stack((1 - Q, Q)))


BAD_SPLITS = {
    "out of range": ([([0, 1, 2], [N])], rf"from 0 to {N - 1}.*split 1 holds \[{N}\]"),
    "below": ([([0, 1, 2], [3]), ([0, 1], [-N - 1])], "split 2 holds"),
    "fractions": ([([0.5, 1.5], [3])], "numbers of rows"),
    "short mask": ([([True] * 5, [3])], "True or False for each"),
    "no pair": ([3], "pair of rows.*split 1 is 3"),
    "three": ([([0], [1], [2])], "pair of rows"),
    "single rows": ([(0, 1)], "split 1 holds 0"),
    "words": ([(["a"], ["b"])], r"split 1 holds \['a'\]"),
}


@pytest.mark.parametrize(("cv", "words"), BAD_SPLITS.values(), ids=BAD_SPLITS)
def test_splits_that_are_none(cv, words):
    y = Q > 0.5
    for fit in (
        lambda: cal.CalibratedClassifier(GaussianNB(), cal.Platt(), cv=cv).fit(X, y),
        lambda: cal.AutoCalibrator(cv=cv).fit(X[:, 1], y),
        lambda: cal.AutoCalibrator(cv=cv).fit(X[:, 1], y, np.where(W > 0, 1.0, 0.0)),
    ):
        with pytest.raises(InputError, match=words):
            fit()


def test_splits_without_rows():
    y = (Q > 0.5).astype(int)
    every = np.arange(N)
    with pytest.raises(InputError, match="rows to score, but fold 1 holds none"):
        cal.CalibratedClassifier(GaussianNB(), cv=[(every, [])]).fit(X, y)
    with pytest.raises(InputError, match="must train on two classes"):
        cal.CalibratedClassifier(GaussianNB(), cv=[([], every)]).fit(X, y)
    with pytest.raises(InputError, match="none that came has both"):
        cal.AutoCalibrator(cv=[(every, []), ([], every)]).fit(X[:, 1], y)
    mask = every % 2 == 0
    found = cal.AutoCalibrator(cv=[(mask, ~mask), (every[~mask], every[mask]), (every, [])])
    assert found.fit(X[:, 1], y).leaderboard_.folds == 2


def test_steps_that_know_no_weights_see_every_row_as_often():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    q = np.where(X[:, 0] > 0, 1.0, 0.3)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    model = cal.CalibratedClassifier(pipeline, cal.Platt(), cv="train").fit(X, q)
    assert model.estimator_[0].mean_[0] == pytest.approx(X.mean(), abs=1e-12)


def test_an_evaluation_set_of_ones_own_is_refused():
    class Stops(LogisticRegression):
        def fit(self, X, y, sample_weight=None, eval_set=None):
            return super().fit(X, y, sample_weight)

    X = np.linspace(0, 1, 60)[:, None]
    q = np.where(X[:, 0] > 0.5, 0.8, 0.2)
    with pytest.raises(cal.errors.ParameterError, match="eval_set of your own cannot go with soft"):
        cal.CalibratedClassifier(Stops(), cal.Platt()).fit(X, q, eval_set=[(X, q)])
