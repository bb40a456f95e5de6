"""CalibratedClassifier as an estimator: parameters, clones, routing, saving and refusals."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

import calibrant as cal
from calibrant.fitting.model_scores import weight_argument
from calibrant.maps import Coded
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


# --- the contract -------------------------------------------------------------------------------


def test_a_prefit_model_survives_clone_and_grid_search():
    model = GaussianNB().fit(X[:120], Y[:120])
    wrapped = CalibratedClassifier(model, cal.Platt(), cv="prefit")
    twin = clone(wrapped.fit(X, Y))
    assert twin.estimator is model
    assert twin.calibrator is not wrapped.calibrator
    assert not hasattr(twin, "members_")
    search = GridSearchCV(wrapped, {"calibrator": [cal.Platt(), cal.Isotonic()]}, cv=3)
    assert search.fit(X[120:], Y[120:]).best_score_ > 0.5
    assert clone(CalibratedClassifier(GaussianNB(), cal.Platt())).estimator is not model


def test_a_function_that_cannot_be_copied_survives_clone():
    class Runtime:
        def __call__(self, rows):
            return rows[:, 0]

        def __deepcopy__(self, memo):
            raise TypeError("a runtime cannot be copied")

    runtime = Runtime()
    assert clone(CalibratedClassifier(runtime, cal.Platt(), cv="prefit")).estimator is runtime


def test_parameters_of_the_parts_can_be_tuned():
    search = GridSearchCV(
        CalibratedClassifier(DecisionTreeClassifier(random_state=0), cal.Isotonic()),
        {"estimator__max_depth": [1, 3], "calibrator__smoothing": ["none", "laplace"]},
        scoring="neg_brier_score",
        cv=3,
    ).fit(X, Y)
    assert len(search.cv_results_["params"]) == 4


@pytest.mark.full
def test_jobs_do_not_change_the_result():
    one = CalibratedClassifier(GaussianNB(), cal.Platt(), cv=3).fit(X, Y)
    two = CalibratedClassifier(GaussianNB(), cal.Platt(), cv=3, n_jobs=2).fit(X, Y)
    assert one.calibrator_.map_ == two.calibrator_.map_


def test_random_state_decides_the_rows_held_out():
    def fitted(seed):
        return CalibratedClassifier(GaussianNB(), cal.Platt(), cv=0.25, random_state=seed).fit(X, Y)

    assert fitted(1).calibrator_.map_ == fitted(1).calibrator_.map_
    assert fitted(1).calibrator_.map_ != fitted(2).calibrator_.map_


def test_refitting_forgets_the_other_kind():
    model = CalibratedClassifier(GaussianNB(), cal.Platt()).fit(X, Y)
    rows, y, _ = sample(k=3)
    model.fit(rows, y)
    assert hasattr(model, "calibrators_")
    assert isinstance(model.calibrator_, cal.CodedCalibrator)
    assert not hasattr(model, "pos_label_")
    model.set_params(ensemble=True).fit(X, Y)
    assert not hasattr(model, "estimator_")
    assert not hasattr(model, "calibrators_")


def test_fit_changes_neither_estimator_nor_calibrator():
    estimator, calibrator = GaussianNB(), cal.Isotonic()
    CalibratedClassifier(estimator, calibrator).fit(X, Y)
    assert not hasattr(estimator, "classes_")
    assert not hasattr(calibrator, "map_")
    assert calibrator.get_params() == cal.Isotonic().get_params()


def test_pickle_keeps_the_predictions():
    rows, y, _ = sample(k=3)
    found = CalibratedClassifier(GaussianNB(), cal.Isotonic()).fit(rows, y)
    twin = pickle.loads(pickle.dumps(found))
    assert np.array_equal(twin.predict_proba(NEW), found.predict_proba(NEW))


def test_tags_are_the_estimator_s():
    assert get_tags(CalibratedClassifier(HistGradientBoostingClassifier())).input_tags.allow_nan
    assert not get_tags(CalibratedClassifier(GaussianNB(), cal.Platt())).input_tags.sparse
    assert get_tags(CalibratedClassifier(LogisticRegression(), cal.Platt())).input_tags.sparse
    assert (
        get_tags(CalibratedClassifier(lambda rows: rows, cv="prefit")).estimator_type
        == "classifier"
    )
    assert not get_tags(CalibratedClassifier(cal.Platt(), cv="train")).classifier_tags.multi_class


# --- metadata routing ---------------------------------------------------------------------------


def test_routing_decides_who_gets_weights():
    last = GaussianNB()
    with sklearn.config_context(enable_metadata_routing=True):
        assert weight_argument(last) == "sample_weight"
        assert weight_argument(make_pipeline(StandardScaler(), last)) is None
        last.set_fit_request(sample_weight=False)
        assert weight_argument(last) is None
        last.set_fit_request(sample_weight=True)
        scale = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scale, last)
        assert weight_argument(pipe) == "sample_weight"
        routed = CalibratedClassifier(pipe, cal.Platt()).fit(X, Y, sample_weight=W)
    legacy = CalibratedClassifier(pipe, cal.Platt()).fit(X, Y, sample_weight=W)
    assert weight_argument(pipe) == "gaussiannb__sample_weight"
    assert routed.calibrator_.map_ == legacy.calibrator_.map_


def test_who_takes_weights_without_routing():
    assert weight_argument(KNeighborsClassifier()) is None
    assert weight_argument(make_pipeline(StandardScaler(), "passthrough")) is None
    assert (
        weight_argument(GridSearchCV(make_pipeline(GaussianNB()), {}))
        == "gaussiannb__sample_weight"
    )
    assert weight_argument(GridSearchCV(KNeighborsClassifier(), {})) is None


# --- saving -------------------------------------------------------------------------------------


def test_saved_calibrator_maps_the_model_s_scores(tmp_path):
    found = CalibratedClassifier(GaussianNB(), cal.Isotonic(pos_label="ham")).fit(X, NAMES)
    cal.save(found.to_fitted(), tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    scores = found.estimator_.predict_proba(NEW)
    assert np.array_equal(loaded.predict_proba(scores), found.predict_proba(NEW))
    assert loaded.method == "Isotonic"
    assert loaded.provenance["model"] == "GaussianNB"
    assert loaded.provenance["input"] == "predict_proba"
    assert "not saved" in loaded.provenance["note"]


def test_saved_multiclass_calibrator_is_one_coded_map(tmp_path):
    rows, y, _ = sample(k=3)
    names = np.array(["x", "y", "z"])[y]
    found = CalibratedClassifier(GaussianNB(), cal.Isotonic()).fit(rows, names)
    cal.save(found.to_fitted(), tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    assert isinstance(loaded.map, Coded)
    assert loaded.classes == ("x", "y", "z")
    scores = found.estimator_.predict_proba(NEW)
    assert np.array_equal(loaded.predict_proba(scores), found.predict_proba(NEW))
    assert np.array_equal(loaded.predict(scores), found.predict(NEW))


WHOLE = {
    "wrapper": CalibratedClassifier(GaussianNB(), cal.Platt()),
    "wrapper of a local calibrator": CalibratedClassifier(
        GaussianNB(), cal.SimilarityBinning(gate=False)
    ),
    "code": cal.CodedClassifier(GaussianNB(), calibrator=cal.Platt()),
}
USES = {
    "save": lambda c: cal.save(c, "c.json"),
    "json": cal.to_json,
    "sql": cal.to_sql,
    "python": cal.to_python,
    "onnx": cal.to_onnx,
    "prior": lambda c: cal.adjust_prior(c, target_rate=0.1),
    "apply": lambda c: cal.add_probabilities(c, pd.DataFrame({"s": [0.5]}), score="s"),
    "drift": lambda c: cal.check_drift(c, cal.ScoreTable.from_arrays([0.1, 0.9], [0, 1])),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("whole", WHOLE)
def test_what_takes_rows_is_not_taken_for_what_takes_scores(use, whole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = clone(WHOLE[whole]).fit(X, Y)
    members = getattr(model, "members_", [])
    written_whole = use == "onnx" and members
    for one in members if written_whole else (model, *members):
        with pytest.raises(
            cal.errors.InputError, match=r"takes rows.*to_fitted\(\).*model\. To .*compose_onnx"
        ):
            USES[use](one)
    assert not list(tmp_path.iterdir())


def test_an_ensemble_says_what_to_save_instead():
    found = CalibratedClassifier(GaussianNB(), cal.Platt(), ensemble=True).fit(X, Y)
    with pytest.raises(cal.errors.InputError, match=r"ensemble=False.*members_\[i\]\.calibrators"):
        found.to_fitted()


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cv": 1}, "cv of CalibratedClassifier must be a number of folds of at least 2"),
        ({"cv": 0}, "cv of"),
        ({"cv": True}, "cv of"),
        ({"cv": "fold"}, '"prefit", "train"'),
        ({"cv": 1.0}, "a fraction between 0 and 1"),
        ({"cv": -0.5}, "a fraction between 0 and 1"),
        ({"cv": float("nan")}, "a fraction between 0 and 1"),
        ({"decision": "raw"}, "decision of CalibratedClassifier must be 'calibrated' or 'model'"),
        (
            {"response_method": "predict"},
            "response_method of CalibratedClassifier must be",
        ),
        ({"ensemble": "yes"}, "ensemble of CalibratedClassifier must be True or False"),
        ({"ensemble": True, "cv": "train"}, "ensemble=True keeps one model per fold"),
        ({"ensemble": True, "cv": 0.25}, "has no folds"),
        ({"calibrator": "isotonc"}, "Did you mean 'isotonic'"),
        ({"calibrator": cal.Isotonic}, "calibrator must be a Calibrator such as"),
        ({"estimator": GaussianNB}, "must be an instance with a fit method"),
        ({"estimator": lambda rows: rows}, 'use cv="prefit"'),
        ({"estimator": None, "cv": "prefit"}, "needs a fitted estimator"),
        ({"estimator": StandardScaler()}, "must have predict_proba or decision_function"),
        ({"estimator": object(), "cv": "prefit"}, r"such as model\.predict"),
        (
            {"estimator": GaussianNB(), "response_method": "decision_function"},
            "must have decision_function",
        ),
        (
            {"estimator": lambda rows: rows[:, 0], "cv": "prefit", "decision": "model"},
            "needs an estimator with predict",
        ),
    ],
)
def test_parameters_out_of_limits(options, words):
    with pytest.raises(cal.errors.ParameterError, match=words):
        CalibratedClassifier(**options).fit(X, Y)


@pytest.mark.parametrize("cv", [3, 0.25, "train", "prefit"])
def test_bad_labels_and_weights_are_refused(cv):
    estimator = GaussianNB().fit(X[1:], Y[1:]) if cv == "prefit" else GaussianNB()
    model = CalibratedClassifier(estimator, cal.Platt(), cv=cv)
    for y, weight, words in [
        (None, None, "requires y"),
        (np.where(Y == 1, np.nan, 0.0), None, "NaN"),
        (np.linspace(0.1, 1.9, len(Y)), None, "soft labels"),
        (Y[:-1], None, "239"),
        (Y, W[:-1], "239"),
        (Y, -W, "negative"),
        (Y, np.zeros(len(Y)), "all 240 are zero"),
        (Y, np.where(Y == 1, np.nan, 1.0), "NaN"),
        ([None, *Y[1:].tolist()], None, "missing"),
        (["a", *Y[1:].tolist()], None, "of one type"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.fit(X, y, sample_weight=weight)


def test_one_class_cannot_train_a_model():
    with pytest.raises(cal.errors.InputError, match=r"at least two classes.*only one class"):
        CalibratedClassifier().fit(X, np.ones(len(Y)))


def test_too_few_rows_of_a_class():
    y = np.zeros(len(Y), dtype=int)
    y[:2] = 1
    with pytest.raises(cal.errors.InputError, match=r"3 folds need at least 3 rows.*class 1 has 2"):
        CalibratedClassifier().fit(X, y)
    assert CalibratedClassifier(cv=2).fit(X, y).classes_.tolist() == [0, 1]
    y[1] = 0
    with pytest.raises(cal.errors.InputError, match=r"cv=0\.25 cannot hold out rows of each class"):
        CalibratedClassifier(cv=0.25).fit(X, y)


def test_rows_of_weight_zero_are_no_rows_of_a_class():
    weight = np.where(Y == 1, 0.0, 1.0)
    for cv in (3, 0.25, KFold(3)):
        with pytest.raises(cal.errors.InputError, match="class"):
            CalibratedClassifier(GaussianNB(), cal.Platt(), cv=cv).fit(X, Y, sample_weight=weight)


def test_a_fold_that_trains_without_one_of_two_classes():
    splits = [(np.arange(100), np.arange(100, 200)), (np.flatnonzero(Y == 0), np.arange(9))]
    with pytest.raises(cal.errors.InputError, match="training rows of fold 2 of 2 lack 1"):
        CalibratedClassifier(GaussianNB(), cal.Platt(), cv=splits).fit(X, Y)


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("k", [4, 5])
def test_a_fold_that_trains_without_one_of_several_classes_is_as_in_scikit_learn(ensemble, k):
    rng = np.random.default_rng(k)
    y = np.tile(np.arange(k), 30)
    rows = rng.normal(size=(len(y), 3)) + y[:, None] * [0.7, -0.4, 0.0]
    n = len(y)
    lacking = np.flatnonzero(y != k - 1)
    half = np.arange(n) % (2 * k) < k
    splits = [(np.intersect1d(lacking, np.flatnonzero(half)), np.flatnonzero(~half))]
    splits += [(np.flatnonzero(~half), np.flatnonzero(half))]
    ours = CalibratedClassifier(
        GaussianNB(), cal.Isotonic(interpolation="linear"), cv=splits, ensemble=ensemble
    )
    with pytest.warns(cal.errors.CalibrationWarning, match=f"fold 1 of 2 lack {k - 1}"):
        ours.fit(rows, y)
    theirs = CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=splits, ensemble=ensemble)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(rows, y)
    np.testing.assert_allclose(ours.predict_proba(rows), theirs.predict_proba(rows), atol=1e-9)
    if ensemble:
        assert (ours.members_[0].predict_proba(rows)[:, k - 1] == 0.0).all()


def test_a_fold_that_lacks_a_class_is_no_probability_of_zero_where_there_are_only_margins():
    y = np.tile(np.arange(4), 30)
    rows = np.random.default_rng(0).normal(size=(len(y), 3)) + y[:, None]
    splits = [(np.flatnonzero(y != 3), np.arange(20)), (np.arange(20, 120), np.arange(20))]
    c = CalibratedClassifier(SVC(), cv=splits)
    with warnings.catch_warnings():
        warnings.simplefilter("error", cal.errors.CalibrationWarning)
        with pytest.raises(
            cal.errors.InputError, match="folds that lack a class, use stratified ones"
        ):
            c.fit(rows, y)


def test_leave_one_out_cannot_calibrate_each_fold():
    few = np.r_[np.flatnonzero(Y == 0)[:12], np.flatnonzero(Y == 1)[:12]]
    with pytest.raises(
        cal.errors.InputError, match=r"fold 1 of 24 has 1 row of one class.*LeaveOneOut"
    ):
        CalibratedClassifier(GaussianNB(), cal.Platt(), cv=LeaveOneOut(), ensemble=True).fit(
            X[few], Y[few]
        )
    pooled = CalibratedClassifier(GaussianNB(), cal.Platt(), cv=LeaveOneOut()).fit(X[few], Y[few])
    assert len(np.unique(pooled.predict_proba(X)[:, 1])) > 10


def test_none_is_five_folds():
    five, none = (
        CalibratedClassifier(GaussianNB(), cal.Platt(), cv=cv).fit(X, Y).calibrator_.map_
        for cv in (5, None)
    )
    assert five == none
    scores = GaussianNB().fit(X, Y).predict_proba(X)
    auto = [cal.AutoCalibrator(cv=cv, candidates=[cal.Platt()]).fit(scores, Y) for cv in (5, None)]
    assert auto[0].map_ == auto[1].map_
    coded = [cal.CodedClassifier(GaussianNB(), cv=cv).fit(X, Y).map_ for cv in (5, None)]
    assert coded[0] == coded[1]


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize(
    "wrap", [lambda m: m, make_pipeline, lambda m: GridSearchCV(m, {"C": [1.0]})]
)
def test_columns_of_pairs_are_not_columns_of_classes(k, wrap):
    rows, y, _ = sample(k=k)
    model = SVC(decision_function_shape="ovo")
    with pytest.raises(
        cal.errors.InputError, match=r'decision_function_shape="ovr".*CodedClassifier'
    ):
        CalibratedClassifier(wrap(model), cal.Platt()).fit(rows, y)
    fine = CalibratedClassifier(wrap(SVC()), cal.Platt()).fit(rows, y)
    assert fine.score(rows, y) > 0.6
    fitted = model.fit(rows, y)
    with pytest.raises(cal.errors.InputError, match="one column per class"):
        CalibratedClassifier(fitted, cal.Platt(), cv="prefit").fit(rows, y)
    prefit = fitted.set_params(decision_function_shape="ovr")
    assert CalibratedClassifier(prefit, cal.Platt(), cv="prefit").fit(rows, y).score(rows, y) > 0.6


def test_a_function_with_a_column_for_each_of_six_pairs():
    rows, y, _ = sample(k=4)
    with pytest.raises(cal.errors.InputError, match="one for each pair of classes"):
        CalibratedClassifier(lambda x: np.zeros((len(x), 6)), cal.Platt(), cv="prefit").fit(rows, y)


def test_splits_that_are_none_or_empty():
    with pytest.raises(cal.errors.InputError, match="at least one split"):
        CalibratedClassifier(cv=iter(())).fit(X, Y)
    with pytest.raises(cal.errors.InputError, match="fold 1 holds none"):
        CalibratedClassifier(cv=[(np.arange(len(Y)), [])]).fit(X, Y)


def test_groups_are_checked():
    with pytest.raises(cal.errors.InputError, match="3 folds need at least 3 groups, but 2 came"):
        CalibratedClassifier().fit(X, Y, groups=np.arange(len(Y)) % 2)
    with pytest.raises(cal.errors.InputError, match="groups has 10"):
        CalibratedClassifier().fit(X, Y, groups=np.arange(10))
    with pytest.raises(cal.errors.InputError, match="groups must be complete"):
        CalibratedClassifier().fit(X, Y, groups=[None] * len(Y))


def test_labels_that_the_prefit_model_does_not_know():
    model = GaussianNB().fit(X, Y)
    with pytest.raises(cal.errors.InputError, match=r"only the classes \[0, 1\], but 'ham'"):
        CalibratedClassifier(model, cal.Platt(), cv="prefit").fit(X, NAMES)
    rows, y, _ = sample(k=3)
    with pytest.raises(cal.errors.InputError, match=r"only the classes \[0, 1\], but 2"):
        CalibratedClassifier(model, cal.Platt(), cv="prefit").fit(rows, y)


def test_a_model_that_renames_its_classes():
    class Renaming(GaussianNB):
        def fit(self, X, y):
            super().fit(X, y)
            self.classes_ = np.arange(len(self.classes_))
            return self

    with pytest.raises(cal.errors.InputError, match=r"must know the classes \['ham', 'spam'\]"):
        CalibratedClassifier(Renaming(), cal.Platt()).fit(X, NAMES)


def test_many_named_classes():
    y = np.arange(240) % 40
    names = np.array([f"class {i:02}" for i in range(40)])[y]
    rows = np.eye(40)[y] + np.random.default_rng(0).normal(0, 0.1, (240, 40))
    found = CalibratedClassifier(GaussianNB(), cal.Platt()).fit(rows, names.tolist())
    assert found.classes_.tolist() == sorted(set(names))
    assert found.score(rows, names) == 1.0


def test_a_prefit_model_may_know_more_classes_than_came():
    rows, y, _ = sample(k=3)
    model = GaussianNB().fit(rows, y)
    some = y < 2
    found = CalibratedClassifier(model, cal.Platt(), cv="prefit").fit(rows[some], y[some])
    assert found.classes_.tolist() == [0, 1, 2]
    assert found.predict_proba(NEW)[:, 2].max() < 0.05


def test_pos_label_means_nothing_with_several_classes():
    rows, y, _ = sample(k=3)
    with pytest.raises(
        cal.errors.ParameterError, match="pos_label of the calibrator must be None with 3"
    ):
        CalibratedClassifier(calibrator=cal.Platt(pos_label=1)).fit(rows, y)
    model = CalibratedClassifier().fit(rows, y)
    with pytest.raises(cal.errors.InputError, match="Use predict_proba"):
        model.calibrate(rows)
    with pytest.raises(cal.errors.InputError, match="pos_label must be one of the classes"):
        CalibratedClassifier(calibrator=cal.Platt(pos_label="eggs")).fit(X, NAMES)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda rows: np.where(np.arange(len(rows)) == 17, np.nan, rows[:, 0]), "1 of 240 is NaN"),
        (
            lambda rows: rows[:, :3],
            r"one column per class, that is 2, but their shape is \(240, 3\)",
        ),
        (lambda rows: rows[:, :2], "rows sum to 1"),
        (lambda rows: rows[:100, 0], "100"),
        (lambda rows: 0.5, "must be 1-d"),
        (lambda rows: ["0.5"] * len(rows), "must be numbers"),
    ],
    ids=["nan", "three", "not probabilities", "short", "scalar", "strings"],
)
def test_scores_that_are_none(function, words):
    with pytest.raises(cal.errors.InputError, match=words):
        CalibratedClassifier(function, cv="prefit").fit(X, Y)


def test_nan_scores_are_refused_when_predicting_too():
    found = CalibratedClassifier(lambda rows: rows[:, 0], cv="prefit").fit(X, Y)
    broken = NEW.copy()
    broken[5, 0] = np.nan
    with pytest.raises(cal.errors.InputError, match=r"scores of <lambda> must be finite.*row 5"):
        found.predict_proba(broken)


def test_unfitted_is_refused():
    model = CalibratedClassifier()
    for method in ("predict", "predict_proba", "calibrate"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(X)
    with pytest.raises(NotFittedError):
        model.to_fitted()


def test_a_useless_model_gets_the_base_rate():
    constant = DummyClassifier(strategy="prior")
    found = CalibratedClassifier(constant, cal.Isotonic()).fit(X, Y)
    np.testing.assert_allclose(found.calibrate(NEW), Y.mean(), atol=0.02)
