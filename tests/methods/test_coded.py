"""Several classes by way of binary questions: models, scores, and labels that overlap."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import calibrant as cal
from calibrant import multiclass


def rows_of(n=400, k=4, seed=0):
    return make_classification(
        n,
        n_features=8,
        n_informative=6,
        n_classes=k,
        n_clusters_per_class=1,
        flip_y=0.1,
        random_state=seed,
    )


X, Y = rows_of()
NAMES = np.array(["ant", "bee", "cat", "dog"])[Y]
NEW = rows_of(seed=1)[0][:50]


# --- CodedCalibrator ----------------------------------------------------------------------------


def scores_for(code, seed=0):
    """Scores of each column: high for its positives, with noise."""
    noise = np.random.default_rng(seed).normal(size=(len(Y), len(code)))
    return code.matrix[Y] + noise


@pytest.mark.full
@pytest.mark.parametrize("name", ["one_vs_rest", "all_pairs", "ecoc"])
@pytest.mark.parametrize("combine", ["auto", "least_squares", "coupling"])
def test_each_column_is_calibrated_on_the_rows_of_its_classes(name, combine):
    code = multiclass.read_code(name, 4)
    scores = scores_for(code)
    weight = np.random.default_rng(1).integers(1, 4, len(Y)).astype(float)
    c = cal.CodedCalibrator(cal.Platt(), code=name, combine=combine).fit(scores, NAMES, weight)
    r, totals = np.empty_like(scores), []
    for b in range(len(code)):
        sign = code.matrix[Y, b]
        used = sign != 0
        one = cal.Platt().fit(scores[used, b], sign[used] > 0, weight[used])
        r[:, b] = one.calibrate(scores[:, b])
        totals.append(weight[used].sum())
    how = {"auto": "normalize" if name == "one_vs_rest" else "coupling"}.get(combine, combine)
    weights = totals if how == "coupling" else None
    expected = getattr(multiclass, how)(r, code, weights=weights)
    np.testing.assert_allclose(c.predict_proba(scores), expected, atol=1e-9)
    assert c.classes_.tolist() == ["ant", "bee", "cat", "dog"]
    assert (c.predict(scores) == c.classes_[np.argmax(expected, axis=1)]).all()
    assert len(c.calibrators_) == len(code)
    assert cal.metrics.accuracy(NAMES, c.predict_proba(scores)) > 0.6


@pytest.mark.parametrize("make", [cal.ABB, cal.ENIR, cal.Isotonic, cal.Beta, cal.BBQ])
def test_any_binary_calibrator_becomes_multiclass(make):
    code = multiclass.one_vs_rest(4)
    p = cal.CodedCalibrator(make()).fit(scores_for(code), Y).predict_proba(scores_for(code, 1))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert cal.metrics.accuracy(Y, p) > 0.6


def test_weights_are_repetitions_and_zero_is_absent():
    code = multiclass.all_pairs(4)
    scores = scores_for(code)
    weight = np.random.default_rng(2).integers(0, 3, len(Y))
    counting = cal.Isotonic(weights="counts")
    once = cal.CodedCalibrator(counting, code=code).fit(scores, Y, weight)
    twice = cal.CodedCalibrator(cal.Isotonic(), code=code).fit(
        np.repeat(scores, weight, axis=0), np.repeat(Y, weight)
    )
    assert once.map_ == twice.map_


def test_saved_and_loaded_without_the_calibrators(tmp_path):
    for name in ("one_vs_rest", "all_pairs"):
        code = multiclass.read_code(name, 4)
        c = cal.CodedCalibrator(cal.Isotonic(), code=name).fit(scores_for(code), NAMES)
        cal.save(c, tmp_path / "c.json")
        loaded = cal.load(tmp_path / "c.json")
        new = scores_for(code, 3)
        assert (loaded.predict_proba(new) == c.predict_proba(new)).all()
        assert (loaded.predict(new) == c.predict(new)).all()
        with pytest.raises(cal.errors.InputError, match="must be finite"):
            loaded.predict_proba(np.full_like(new, np.nan))
        with pytest.raises(cal.errors.InputError, match="columns"):
            loaded.predict_proba(new[:, :2])


def test_classes_that_did_not_come():
    code = multiclass.all_pairs(5)
    known = ["ant", "bee", "cat", "dog", "eel"]
    signs = code.matrix[Y]
    c = cal.CodedCalibrator(cal.Platt(), code=code, classes=known).fit(
        signs + np.random.default_rng(0).normal(size=signs.shape), NAMES
    )
    assert len(c.classes_) == 5
    p = c.predict_proba(signs.astype(float))
    assert np.isfinite(p).all()
    two = cal.CodedCalibrator(cal.Platt(), code=code, classes=known).fit(
        signs[Y < 2].astype(float), NAMES[Y < 2]
    )
    empty = [b for b, one in enumerate(two.calibrators_) if one is None]
    assert empty == [b for b in range(10) if not code.matrix[:2, b].any()]
    assert np.isfinite(two.predict_proba(signs.astype(float))).all()


def test_two_classes_and_one_column():
    scores = np.random.default_rng(0).normal(size=200) + Y[:200] % 2
    c = cal.CodedCalibrator(cal.Platt(), code="all_pairs").fit(scores, Y[:200] % 2)
    plain = cal.Platt().fit(-scores, Y[:200] % 2, None)  # the column asks for the first class
    r = cal.Platt(classes=[False, True]).fit(scores, Y[:200] % 2 == 0).calibrate(scores)
    np.testing.assert_allclose(c.predict_proba(scores)[:, 0], r, atol=1e-9)
    np.testing.assert_allclose(c.predict_proba(scores)[:, 1], plain.calibrate(-scores), atol=1e-6)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (cal.CodedCalibrator, cal.errors.ParameterError, "calibrator must be given"),
        (
            lambda: cal.CodedCalibrator(GaussianNB()),
            cal.errors.ParameterError,
            "Calibrator of one score",
        ),
        (
            lambda: cal.CodedCalibrator(cal.Platt(pos_label=1)),
            cal.errors.ParameterError,
            "pos_label of",
        ),
        (
            lambda: cal.CodedCalibrator(cal.Platt(), combine="sum"),
            cal.errors.ParameterError,
            "combine of",
        ),
        (
            lambda: cal.CodedCalibrator(cal.Platt(), code="pairs"),
            cal.errors.ParameterError,
            "code must be",
        ),
        (
            lambda: cal.CodedCalibrator(cal.Platt(), code="ecoc", combine="normalize"),
            cal.errors.ParameterError,
            "one_vs_rest",
        ),
        (lambda: cal.CodedCalibrator(cal.Platt(), code=np.eye(4)), cal.errors.InputError, "both"),
        (
            lambda: cal.CodedCalibrator(cal.Platt(), classes=["x", "y"]),
            cal.errors.InputError,
            r"'x', 'y'\] came",
        ),
    ],
)
def test_refusals(make, error, words):
    c = make()
    columns = 4 if not isinstance(c.code, str) else {"ecoc": 20}.get(c.code, 4)
    with pytest.raises(error, match=words):
        c.fit(np.zeros((len(Y), columns)), NAMES)


def test_a_saved_calibrator_of_one_question_refuses_two_columns():
    one = cal.CodedCalibrator(cal.Platt(), code="all_pairs").fit(Y % 2 + 0.0, Y % 2)
    both = np.column_stack((Y % 2, 1 - Y % 2)).astype(float)
    for fitted in (one, one.to_fitted()):
        with pytest.raises(cal.errors.InputError, match="must have one column"):
            fitted.predict_proba(both)


def test_wrong_scores_are_refused():
    c = cal.CodedCalibrator(cal.Platt())
    both = np.column_stack((Y % 2, 1 - Y % 2)).astype(float)
    with pytest.raises(cal.errors.InputError, match="must have one column"):
        cal.CodedCalibrator(cal.Platt(), code="all_pairs").fit(both, Y % 2)
    with pytest.raises(cal.errors.InputError, match="must have one column"):
        cal.MultiLabelCalibrator(cal.Platt()).fit(both, both[:, :1])
    with pytest.raises(cal.errors.InputError, match="a different class for each of the 4 columns"):
        cal.CodedCalibrator(cal.Platt(), classes=["dog", "cat", "ant"]).fit(
            np.zeros((len(Y), 4)), NAMES
        )
    with pytest.raises(cal.errors.InputError, match="4 columns"):
        c.fit(np.zeros((len(Y), 3)), Y)
    with pytest.raises(cal.errors.InputError, match="only one class"):
        c.fit(np.zeros((3, 4)), [7, 7, 7])
    with pytest.raises(cal.errors.InputError, match="NaN"):
        c.fit(np.full((len(Y), 4), np.nan), Y)
    with pytest.raises(cal.errors.InputError, match="one entry per row"):
        c.fit(np.zeros((5, 4)), Y)


@pytest.mark.parametrize(
    "make", [lambda: cal.CodedCalibrator(cal.Platt()), cal.VectorScaling, cal.Temperature]
)
def test_the_top_label_and_one_class_at_a_time(make):
    scores = scores_for(multiclass.one_vs_rest(4))
    c = make().fit(scores, NAMES)
    p = c.predict_proba(scores)
    labels, confidence = c.top_label(scores)
    assert (labels == c.predict(scores)).all()
    assert (confidence == p.max(axis=1)).all()
    assert (c.class_wise(scores, "cat") == p[:, 2]).all()
    with pytest.raises(cal.errors.InputError, match="one of the classes"):
        c.class_wise(scores, "cow")


# --- CodedClassifier ----------------------------------------------------------------------------


@parametrize_with_checks(
    [
        cal.CodedClassifier(LogisticRegression(C=1.0, max_iter=200), cv="train"),
        cal.CodedClassifier(
            GaussianNB(), code="all_pairs", calibrator=cal.Platt(weights="counts"), cv=2
        ),
        cal.CodedClassifier(LogisticRegression(), calibrator=None, combine="least_squares"),
    ]
)
@pytest.mark.full
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", ["one_vs_rest", "all_pairs"])
def test_models_are_trained_and_calibrated_column_by_column(name):
    weight = np.random.default_rng(1).integers(1, 3, len(Y)).astype(float)
    splits = list(StratifiedKFold(3).split(X, Y))
    model = cal.CodedClassifier(GaussianNB(), code=name, calibrator=cal.Platt(), cv=splits)
    model.fit(X, NAMES, sample_weight=weight)
    code, r, totals = model.code_, [], []
    for b in range(len(code)):
        sign = code.matrix[Y, b]
        scores, tested = [], []
        for train, test in splits:
            inside, outside = train[sign[train] != 0], test[sign[test] != 0]
            one = GaussianNB().fit(X[inside], sign[inside] > 0, weight[inside])
            scores.append(one.predict_proba(X[outside])[:, 1])
            tested.append(outside)
        rows = np.concatenate(tested)
        platt = cal.Platt().fit(np.concatenate(scores), sign[rows] > 0, weight[rows])
        used = sign != 0
        last = GaussianNB().fit(X[used], sign[used] > 0, weight[used])
        r.append(platt.calibrate(last.predict_proba(NEW)[:, 1]))
        totals.append(weight[used].sum())
    how = multiclass.normalize if name == "one_vs_rest" else multiclass.coupling
    expected = how(np.column_stack(r), code, weights=totals)
    np.testing.assert_allclose(model.predict_proba(NEW), expected, atol=1e-9)


@pytest.mark.parametrize("cv", [2, 0.3, "train", GroupKFold(3)], ids=str)
@pytest.mark.parametrize("code", ["one_vs_rest", "all_pairs", "ecoc"])
def test_every_kind_of_cv_and_code(cv, code):
    model = cal.CodedClassifier(GaussianNB(), code=code, cv=cv, random_state=0)
    model.fit(X, NAMES, groups=np.arange(len(Y)) // 4)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert (model.predict(X) == NAMES).mean() > 0.6
    assert (clone(model).fit(X, NAMES, groups=np.arange(len(Y)) // 4).predict_proba(X) == p).all()
    assert (pickle.loads(pickle.dumps(model)).predict_proba(X) == p).all()


def test_without_calibrator_the_models_are_taken_at_their_word():
    model = cal.CodedClassifier(GaussianNB(), calibrator=None).fit(X, Y)
    r = np.column_stack([GaussianNB().fit(X, c == Y).predict_proba(NEW)[:, 1] for c in range(4)])
    np.testing.assert_allclose(model.predict_proba(NEW), multiclass.normalize(r, model.code_))
    assert model.calibrators_ == [None] * 4
    with pytest.raises(cal.errors.ParameterError, match="predict_proba"):
        cal.CodedClassifier(RidgeClassifier(), calibrator=None).fit(X, Y)
    margins = cal.CodedClassifier(RidgeClassifier()).fit(X, Y)
    assert margins.predict_proba(NEW).shape == (50, 4)


def test_sparse_rows_and_rare_classes():
    random = np.random.default_rng(0)
    counts = random.poisson(1.0 + 2.0 * (np.arange(12) % 4 == Y[:, None]))
    y = np.where(np.arange(len(Y)) == 7, "once", NAMES)
    with pytest.warns(cal.errors.CalibrationWarning, match="too few rows of one side"):
        model = cal.CodedClassifier(MultinomialNB()).fit(sparse.csr_matrix(counts), y)
    p = model.predict_proba(sparse.csr_matrix(counts))
    assert model.classes_.tolist() == ["ant", "bee", "cat", "dog", "once"]
    assert np.isfinite(p).all()
    with pytest.warns(cal.errors.CalibrationWarning, match="too few rows of one side"):
        dense = cal.CodedClassifier(MultinomialNB()).fit(counts, y)
    np.testing.assert_allclose(dense.predict_proba(counts), p, atol=1e-12)


def test_a_side_that_cannot_be_held_out_is_said():
    y = np.where(np.arange(60) == 7, "once", np.where(np.arange(60) % 2, "even", "odd"))
    split = [(np.arange(8, 60), np.arange(8))]
    with pytest.warns(cal.errors.CalibrationWarning, match="too few rows of one side"):
        model = cal.CodedClassifier(GaussianNB(), code="all_pairs", cv=split).fit(X[:60], y)
    assert np.isfinite(model.predict_proba(X[:60])).all()


@pytest.mark.parametrize("cv", [3, 0.3])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_class_smaller_than_the_folds_is_no_obstacle(cv, grouped):
    y = np.where(np.arange(len(Y)) == 7, "once", NAMES)
    groups = np.arange(len(Y)) // 4 if grouped else None
    model = cal.CodedClassifier(GaussianNB(var_smoothing=1e-2), cv=cv, random_state=0)
    with pytest.warns(cal.errors.CalibrationWarning, match="too few rows of one side"):
        p = model.fit(X, y, groups=groups).predict_proba(X)
    assert np.isfinite(p).all()
    assert (model.predict(X) == y).mean() > 0.6
    with pytest.raises(cal.errors.InputError, match="class"):
        cal.CalibratedClassifier(GaussianNB(), cv=cv).fit(X, y, groups=groups)


def test_rows_held_out_that_have_one_side_only_do_not_calibrate():
    iris, species = load_iris(return_X_y=True)
    with pytest.warns(cal.errors.CalibrationWarning, match="too few rows of one side"):
        model = cal.CodedClassifier(GaussianNB(), cv=KFold(3)).fit(iris, species)  # sorted by class
    assert (model.predict(iris) == species).mean() > 0.9


@pytest.mark.parametrize("code", ["one_vs_rest", "all_pairs", "ecoc"])
@pytest.mark.parametrize("combine", ["auto", "least_squares"])
def test_a_class_of_weight_zero_is_hardly_ever_predicted(code, combine):
    weight = (Y != 2).astype(float)
    model = cal.CodedClassifier(GaussianNB(), code=code, combine=combine, cv="train")
    p = model.fit(X, Y, sample_weight=weight).predict_proba(X)
    assert p[:, 2].mean() < 0.05
    assert (np.argmax(p, axis=1) == 2).mean() < 0.01
    assert (np.argmax(p, axis=1) == Y)[Y != 2].mean() > 0.6


@pytest.mark.full
def test_columns_of_a_code_are_trained_at_a_time():
    one, two = (cal.CodedClassifier(GaussianNB(), n_jobs=n).fit(X, Y) for n in (1, 2))
    assert one.map_ == two.map_


def test_saving_keeps_the_map_of_the_models_scores(tmp_path):
    model = cal.CodedClassifier(GaussianNB(), code="all_pairs").fit(X, NAMES)
    cal.save(model.to_fitted(), tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    assert (loaded.predict_proba(model.scores(NEW)) == model.predict_proba(NEW)).all()
    assert loaded.provenance["model"] == "GaussianNB"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cv": "prefit"}, "CodedCalibrator"),
        ({"estimator": GaussianNB}, "instance"),
        ({"calibrator": "plat"}, "Did you mean 'platt'"),
        ({"response_method": "magic"}, "response_method of CodedClassifier"),
        ({"response_method": "decision_function", "calibrator": None}, "no probabilities"),
        ({"code": "all_pairs", "combine": "normalize"}, "one_vs_rest"),
        ({"combine": "pairwise"}, "all_pairs"),
        ({"cv": 1}, "cv of CodedClassifier"),
        ({"estimator": RidgeClassifier(), "calibrator": None}, "Give a calibrator"),
    ],
)
def test_parameters_out_of_limits(options, words):
    with pytest.raises(cal.errors.ParameterError, match=words):
        cal.CodedClassifier(**options).fit(X, Y)


def test_weights_that_a_model_cannot_take_are_said():
    class Bare(GaussianNB):
        def fit(self, X, y):
            return super().fit(X, y)

    with pytest.warns(cal.errors.CalibrationWarning, match="takes no sample_weight"):
        cal.CodedClassifier(Bare()).fit(X, Y, sample_weight=np.ones(len(Y)))


def test_frames_reach_the_models_as_they_are():
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
    model = cal.CodedClassifier(GaussianNB()).fit(frame, NAMES)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    plain = cal.CodedClassifier(GaussianNB()).fit(X, NAMES)
    np.testing.assert_allclose(model.predict_proba(frame), plain.predict_proba(X))


# --- in CalibratedClassifier --------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(
    "make",
    [
        cal.Temperature,
        cal.VectorScaling,
        cal.StructuredScaling,
        cal.Dirichlet,
        lambda: cal.CodedCalibrator(cal.Isotonic(smoothing="laplace"), combine="coupling"),
    ],
)
def test_the_wrapper_fits_all_classes_at_once(make, tmp_path):
    iris, species = load_iris(return_X_y=True)
    model = cal.CalibratedClassifier(GaussianNB(), make(), cv=3).fit(iris, species)
    s = np.empty((150, 3))
    for train, test in StratifiedKFold(3).split(iris, species):
        s[test] = GaussianNB().fit(iris[train], species[train]).predict_proba(iris[test])
    direct = make().fit(s, species)
    last = GaussianNB().fit(iris, species).predict_proba(iris)
    np.testing.assert_allclose(model.predict_proba(iris), direct.predict_proba(last), atol=1e-9)
    cal.save(model.to_fitted(), tmp_path / "c.json")
    np.testing.assert_allclose(
        cal.load(tmp_path / "c.json").predict_proba(last), model.predict_proba(iris), atol=1e-12
    )
    both = cal.CalibratedClassifier(GaussianNB(), make(), cv=3).fit(iris[:100], species[:100])
    assert both.predict_proba(iris[:100]).shape == (100, 2)
    assert (both.predict(iris[:100]) == species[:100]).mean() > 0.95


@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression()])
@pytest.mark.parametrize(
    "make", [cal.VectorScaling, cal.Dirichlet, lambda: cal.CodedCalibrator(cal.Platt())]
)
def test_two_classes_do_not_depend_on_the_other_rows(model, make):
    rows, y = make_classification(600, flip_y=0.1, random_state=0)
    fitted = cal.CalibratedClassifier(model, make()).fit(rows, y)
    whole = fitted.predict_proba(rows)
    single = np.vstack([fitted.predict_proba(rows[i : i + 1]) for i in range(100)])
    np.testing.assert_allclose(single, whole[:100], atol=1e-12)
    plain = cal.CalibratedClassifier(model, cal.Platt()).fit(rows, y)
    assert (
        cal.metrics.log_loss(y, whole) < cal.metrics.log_loss(y, plain.predict_proba(rows)) + 0.02
    )


def test_only_one_score_per_class_can_be_calibrated_around_a_model():
    with pytest.raises(cal.errors.ParameterError, match="one score per class"):
        cal.CalibratedClassifier(
            GaussianNB(), cal.CodedCalibrator(cal.Platt(), code="all_pairs")
        ).fit(*load_iris(return_X_y=True))


# --- labels that do not exclude each other ------------------------------------------------------


def labelled(seed=0):
    random = np.random.default_rng(seed)
    p = random.random((500, 3))
    target = (random.random((500, 3)) < p**2).astype(float)
    target[random.random((500, 3)) < 0.2] = np.nan
    return p, target


@pytest.mark.parametrize("weighted", [False, True])
def test_each_label_is_calibrated_on_the_rows_where_it_is_known(weighted):
    p, target = labelled()
    weight = np.random.default_rng(1).integers(0, 3, 500).astype(float) if weighted else None
    c = cal.MultiLabelCalibrator(cal.Isotonic()).fit(p, target, weight)
    for j in range(3):
        known = ~np.isnan(target[:, j])
        w = None if weight is None else weight[known]
        one = cal.Isotonic().fit(p[known, j], target[known, j], w)
        assert (c.predict_proba(p)[:, j] == one.calibrate(p[:, j])).all()
    assert (c.predict(p) == (c.predict_proba(p) >= 0.5)).all()
    assert c.labels_ == (0, 1, 2)


def test_multilabel_frames_names_and_files(tmp_path):
    p, target = labelled()
    boxed = np.where(np.isnan(target), None, target == 1)
    frames = [
        pd.DataFrame(target, columns=["a", "b", "c"]),
        pd.DataFrame(boxed, columns=["a", "b", "c"]),
        pl.DataFrame({n: [None if np.isnan(v) else v for v in target[:, j]]
                      for j, n in enumerate("abc")}),
    ]  # fmt: skip
    plain = cal.MultiLabelCalibrator(cal.Platt(), labels=["a", "b", "c"]).fit(p, target)
    for frame in frames:
        c = cal.MultiLabelCalibrator(cal.Platt()).fit(p, frame)
        assert c.labels_ == ("a", "b", "c")
        assert c.map_ == plain.map_
    cal.save(plain, tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    assert loaded.classes == ("a", "b", "c")
    assert (loaded.predict_proba(p) == plain.predict_proba(p)).all()
    assert (loaded.predict(p) == plain.predict(p)).all()
    found = cal.metrics.multilabel_measures(target, plain.predict_proba(p))
    raw = cal.metrics.multilabel_measures(target, p)
    assert found.macro["log_loss"] < raw.macro["log_loss"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ([[1, 2], [0, 1]], "entries are others"),
        ([[0.5, 1], [0, 1]], "entries are others"),
        ([["yes", "no"], ["no", "yes"]], "numbers or missing"),
        ([0, 1], "a column of 0 and 1 for each label"),
        ([[np.nan, 1], [np.nan, 0]], "known for none"),
    ],
)
def test_multilabel_refusals(target, words):
    with pytest.raises(cal.errors.InputError, match=words):
        cal.MultiLabelCalibrator(cal.Platt()).fit([[0.1, 0.2], [0.8, 0.7]], target)
    with pytest.raises(cal.errors.ParameterError, match="calibrator must be given"):
        cal.MultiLabelCalibrator().fit([[0.1, 0.2]], [[0, 1]])
    with pytest.raises(cal.errors.ParameterError, match="different names"):
        cal.MultiLabelCalibrator(cal.Platt(), labels=["a"]).fit([[0.1, 0.2]], [[0, 1]])


def test_the_page_quotes_the_studies(root):
    page = (root / "docs" / "howto" / "multiclass.md").read_text(encoding="utf-8")
    words = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    studies = root / "experiments" / "results"
    known = "".join(
        (studies / f"{one}.md").read_text(encoding="utf-8") for one in ("mixture", "scaling")
    )
    quoted = re.findall(r"\b\d\.\d{4}\b", words)
    assert len(quoted) >= 9
    assert set(quoted) <= set(re.findall(r"\b\d\.\d{4}\b", known))
    speed = (root / "benchmarks" / "results" / "many_classes.md").read_text(encoding="utf-8")
    costs = re.findall(r"^\| ([\d,]+) × ([\d,]+) \| (\S+) \| (\S+) \|$", words, flags=re.MULTILINE)
    assert len(costs) == 3
    for rows, classes, seconds, peak in costs:
        start = (
            f"| {rows.replace(',', '')} | {classes.replace(',', '')} | AutoCalibrator | {seconds} |"
        )
        (line,) = (one for one in speed.splitlines() if one.startswith(start))
        assert line.endswith(f"| {peak} |")
