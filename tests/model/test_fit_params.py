"""What fit passes on to the model: keywords, rows cut by fold, evaluation sets, groups."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cal
from calibrant.errors import ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (RNG.random(300) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
W = RNG.integers(1, 4, 300).astype(float)
GROUPS = np.arange(300) // 6


class Listening(ClassifierMixin, BaseEstimator):
    """Keeps what its fit was given."""

    def __init__(self, told=None):
        self.told = told

    def fit(self, X, y, sample_weight=None, times=None, mode=None, eval_set=None):
        self.inner_ = GaussianNB().fit(X, y)
        self.classes_ = self.inner_.classes_
        self.given_ = {"rows": X, "times": times, "mode": mode, "eval_set": eval_set}
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)


def test_columns_are_cut_by_fold_and_the_rest_is_passed_on():
    model = cal.CalibratedClassifier(Listening(), cal.Platt(), cv=3, ensemble=True)
    model.fit(X, Y, times=X[:, 0].tolist(), mode="abc")
    for member in model.members_:
        given = member.estimator.given_
        assert np.array_equal(given["rows"][:, 0], given["times"])
        assert len(given["times"]) == 200
        assert given["mode"] == "abc"
    whole = cal.CalibratedClassifier(Listening(), cal.Platt()).fit(X, Y, times=X[:, 0])
    assert np.array_equal(whole.estimator_.given_["times"], X[:, 0])


def test_words_of_as_many_letters_as_rows_are_not_cut():
    model = cal.CalibratedClassifier(Listening(), cal.Platt(), cv=2, ensemble=True)
    model.fit(X, Y, mode="m" * 300)
    assert model.members_[0].estimator.given_["mode"] == "m" * 300


def test_the_model_s_own_refusal_of_unknown_words_is_kept():
    with pytest.raises(TypeError, match="colour"):
        cal.CalibratedClassifier(GaussianNB(), cal.Platt()).fit(X, Y, colour=1)


def test_pipelines_take_the_words_of_their_steps():
    pipe = make_pipeline(StandardScaler(), Listening())
    found = cal.CalibratedClassifier(pipe, cal.Platt(), cv=3, ensemble=True)
    found.fit(X, Y, listening__times=W)
    assert len(found.members_[0].estimator[-1].given_["times"]) == 200


def test_routing_gives_the_model_what_it_asks_for():
    with sklearn.config_context(enable_metadata_routing=True):
        asking = Listening().set_fit_request(times=True)
        wrapped = cal.CalibratedClassifier(asking, cal.Platt(), cv=3, ensemble=True)
        wrapped.fit(X, Y, times=X[:, 0])
        given = wrapped.members_[0].estimator.given_
        assert np.array_equal(given["rows"][:, 0], given["times"])
        with pytest.raises(TypeError, match="colour"):
            wrapped.fit(X, Y, colour=1)
        found = cross_validate(
            wrapped, X, Y, cv=2, params={"times": X[:, 0]}, return_estimator=True
        )
        inner = found["estimator"][0].members_[0].estimator.given_
        assert np.array_equal(inner["rows"][:, 0], inner["times"])


def test_words_nobody_asked_for_are_refused_by_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        wrapped = cal.CalibratedClassifier(Listening(), cal.Platt())
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="times"):
            wrapped.fit(X, Y, times=W)


def test_a_splitter_of_groups_asks_for_them_by_itself():
    plain = cal.CalibratedClassifier(GaussianNB(), cal.Platt(), cv=GroupKFold(3))
    train = np.flatnonzero(GROUPS % 2 == 0)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), plain).fit(X[train], Y[train], groups=GROUPS[train])
    rows = StandardScaler().fit_transform(X[train])
    alone = cal.CalibratedClassifier(GaussianNB(), cal.Platt(), cv=GroupKFold(3))
    alone.fit(rows, Y[train], groups=GROUPS[train])
    assert pipe[-1].calibrator_.map_ == alone.calibrator_.map_


def test_a_refusal_of_groups_stands():
    with sklearn.config_context(enable_metadata_routing=True):
        own = cal.CalibratedClassifier(GaussianNB(), cv=GroupKFold(3))
        own.set_fit_request(groups=False)
        assert not own.get_metadata_routing().consumes("fit", ["groups"])
        asks = cal.CalibratedClassifier(GaussianNB(), cv=GroupKFold(3))
        assert asks.get_metadata_routing().consumes("fit", ["groups"]) == {"groups"}


def test_the_fold_is_the_evaluation_set():
    model = cal.CalibratedClassifier(Listening(), cal.Platt(), cv=3, ensemble=True)
    model.fit(X, Y, eval_set="fold")
    seen = []
    for member in model.members_:
        [(rows, labels)] = member.estimator.given_["eval_set"]
        assert len(rows) == len(labels) == 100
        assert not {tuple(row) for row in rows} & {
            tuple(r) for r in member.estimator.given_["rows"]
        }
        seen.append(rows)
    assert {tuple(row) for row in np.concatenate(seen)} == {tuple(row) for row in X}
    part = cal.CalibratedClassifier(Listening(), cal.Platt(), cv=0.2, random_state=0)
    assert len(part.fit(X, Y, eval_set="fold").estimator_.given_["eval_set"][0][0]) == 60


def test_an_evaluation_set_of_the_user_s_own_is_passed_on_as_it_is():
    own = [(X[:7], Y[:7])]
    model = cal.CalibratedClassifier(Listening(), cal.Platt()).fit(X, Y, eval_set=own)
    assert model.estimator_.given_["eval_set"] is own


@pytest.mark.parametrize(
    ("model", "options", "word"),
    [
        (GaussianNB(), {}, "whose fit takes eval_set"),
        (Listening(), {"cv": "train"}, "holds out none"),
        (Listening(), {}, "does not say it"),
        (FrozenEstimator(GaussianNB().fit(X, Y)), {}, "fitted already"),
    ],
)
def test_a_fold_that_cannot_be_an_evaluation_set_is_refused(model, options, word):
    with pytest.raises(ValueError, match=word):
        cal.CalibratedClassifier(model, cal.Platt(), **options).fit(X, Y, eval_set="fold")


def test_other_words_and_pipelines_are_refused():
    with pytest.raises(ParameterError, match='must be "fold" or a list'):
        cal.CalibratedClassifier(Listening()).fit(X, Y, eval_set="folds")
    pipe = make_pipeline(StandardScaler(), Listening())
    with pytest.raises(ParameterError, match="inside a pipeline"):
        cal.CalibratedClassifier(pipe).fit(X, Y, listening__eval_set="fold")


# --- boosters ------------------------------------------------------------------------------------


def boosters():
    made = []
    try:
        import lightgbm

        stop = [lightgbm.early_stopping(5, verbose=False)]
        quiet = {"n_estimators": 400, "verbose": -1, "n_jobs": 1, "min_child_samples": 5}
        made.append((lightgbm.LGBMClassifier(**quiet), {"callbacks": stop}))
        made.append((lightgbm.LGBMClassifier(**quiet, early_stopping_round=5), {}))
        quiet = {**quiet, "num_iterations": quiet.pop("n_estimators")}
        made.append((lightgbm.LGBMClassifier(**quiet, early_stopping_rounds=5), {}))
    except ImportError:
        pass
    try:
        import xgboost

        quiet = {"n_estimators": 400, "n_jobs": 1}
        made.append((xgboost.XGBClassifier(**quiet, early_stopping_rounds=5), {"verbose": False}))
        stop = [xgboost.callback.EarlyStopping(rounds=5, save_best=False)]
        made.append((xgboost.XGBClassifier(**quiet, callbacks=stop), {"verbose": False}))
    except ImportError:
        pass
    try:
        import catboost

        quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
        stop = {"early_stopping_rounds": 5}
        for rounds in ("iterations", "n_estimators", "num_trees"):
            made.append((catboost.CatBoostClassifier(**quiet, **{rounds: 400}), stop))
        made.append((catboost.CatBoostClassifier(**quiet, **stop), {}))
        best = {"od_type": "Iter", "od_wait": 5, "use_best_model": True}
        made.append((catboost.CatBoostClassifier(iterations=400, **quiet, **best), {}))
    except ImportError:
        pass
    return made


def rounds_of(model):
    if hasattr(model, "tree_count_"):
        return model.tree_count_
    booster = getattr(model, "booster_", None)
    return booster.num_trees() if booster else model.get_booster().num_boosted_rounds()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("weight", [None, W])
@pytest.mark.parametrize(("booster", "words"), boosters())
def test_boosters_stop_on_their_fold_and_the_last_one_does_their_mean_of_rounds(
    booster, words, weight
):
    folds = cal.CalibratedClassifier(booster, cal.Platt(), cv=3, ensemble=True)
    folds.fit(X, Y, weight, eval_set="fold", **words)
    best = []
    for member in folds.members_:
        model = member.estimator
        if hasattr(model, "tree_count_"):  # CatBoost counts the best round from 0
            best.append(model.best_iteration_ + 1)
        else:
            best.append(getattr(model, "best_iteration_", None) or model.best_iteration + 1)
    assert max(best) < 200
    whole = cal.CalibratedClassifier(booster, cal.Platt(), cv=3)
    whole.fit(X, Y, weight, eval_set="fold", **words)
    assert rounds_of(whole.estimator_) == max(1, round(np.mean(best)))
    assert whole.predict_proba(X[:3]).shape == (3, 2)


class Iterations(Listening):
    """A booster that calls its rounds as CatBoost does, and takes no second name for them."""

    def __init__(self, iterations=400, use_best_model=True):
        self.iterations = iterations
        self.use_best_model = use_best_model

    def fit(self, X, y, eval_set=None):
        assert eval_set is not None or not self.use_best_model
        self.tree_count_ = self.iterations if eval_set is None else 10
        return super().fit(X, y, eval_set=eval_set)


def test_a_booster_that_calls_its_rounds_iterations_is_fitted_again_with_the_folds_mean():
    model = cal.CalibratedClassifier(Iterations(), cal.Platt()).fit(X, Y, eval_set="fold")
    assert model.estimator_.get_params() == {"iterations": 10, "use_best_model": False}
    assert model.estimator_.tree_count_ == 10


def test_without_keywords_nothing_has_changed():
    one = cal.CalibratedClassifier(LogisticRegression(), cal.Platt()).fit(X, Y, W)
    with sklearn.config_context(enable_metadata_routing=True):
        two = cal.CalibratedClassifier(LogisticRegression(), cal.Platt()).fit(X, Y, W)
    assert one.calibrator_.map_ == two.calibrator_.map_
