"""The public face: options are keyword-only, words mean one thing, methods go by name."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.naive_bayes import GaussianNB

import calibrant as cal
from calibrant import compare, metrics, multiclass
from calibrant.fitting.registry import METHODS, OF_MORE, to_calibrator

#: what may come by place although it has a default: rows, their parts, and what is wrapped
BY_PLACE = {"y", "Y", "p", "sample_weight", "segments", "estimator", "calibrator"}
#: what files hold under this name, and a number of classes that a matrix does not need
EXEMPT = {("read_code", "k")}
#: words for one idea that were two, or that had two meanings
RETIRED = {"kind", "folds", "method", "n_boot", "shrink", "ends"}


def callables():
    """Every public function, constructor and method of an estimator, by name."""
    found = {name: getattr(cal, name) for name in cal.__all__}
    for room in (compare, metrics, multiclass):
        found |= {name: getattr(room, name) for name in room.__all__}
    for name, one in found.items():
        if inspect.isfunction(one):
            yield name, one
        elif inspect.isclass(one) and issubclass(one, BaseEstimator):
            yield name, one.__init__
            for method in ("fit", "fit_table", "calibrate", "predict_proba", "predict"):
                if hasattr(one, method):
                    yield f"{name}.{method}", getattr(one, method)


FACE = dict(callables())


@pytest.mark.parametrize("name", FACE)
def test_options_are_keyword_only(name):
    for word, one in inspect.signature(FACE[name]).parameters.items():
        by_place = one.kind is one.POSITIONAL_OR_KEYWORD and one.default is not one.empty
        assert not by_place or word in BY_PLACE or (name, word) in EXEMPT, (
            f"{word} of {name} must be keyword-only: put * before it"
        )


@pytest.mark.parametrize("name", FACE)
def test_no_word_of_two_meanings_comes_back(name):
    words = set(inspect.signature(FACE[name]).parameters)
    assert not words & RETIRED


def test_the_face_is_not_empty():
    assert {"ece", "profit", "Platt", "BLS.fit", "CalibratedClassifier", "coupling"} <= set(FACE)


# --- methods by name ------------------------------------------------------------------------------


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    return s, (rng.random(n) < s**2).astype(int)


@pytest.mark.parametrize("name", [*METHODS, *OF_MORE])
def test_every_method_goes_by_its_name_and_by_that_of_its_class(name):
    one = to_calibrator(name)
    assert type(one) is type(to_calibrator(type(one).__name__))
    assert one.get_params() == type(one)().get_params()
    assert to_calibrator(one) is one


def test_names_are_taken_wherever_a_calibrator_is():
    X, y = make_classification(200, random_state=0)
    s, t = rows()
    for name, made in {
        "isotonic": cal.Isotonic(),
        "sigmoid": cal.Platt(),
        "BLS": cal.BLS(),
    }.items():
        by_name = cal.CalibratedClassifier(GaussianNB(), name, cv=2)
        assert clone(by_name).calibrator == name
        instance = cal.CalibratedClassifier(GaussianNB(), made, cv=2).fit(X, y)
        assert by_name.fit(X, y).calibrator_.map_ == instance.calibrator_.map_
    maps = [
        cal.SegmentedCalibrator(c).fit(s, t, segments=s > 0.5).map_ for c in ("platt", cal.Platt())
    ]
    assert maps[0] == maps[1]
    board = cal.AutoCalibrator(candidates=["platt", cal.Isotonic()], cv=2).fit(s, t).leaderboard_
    assert {row.name for row in board.rows} == {"uncalibrated", "BLS", "Platt", "Isotonic"}
    curve = cal.learning_curve(["platt", "isotonic"], s, t, sizes=(50, 100), repeats=2)
    assert {"Platt", "Isotonic"} <= set(curve.names)
    assert cal.calibration_report(s, t, calibrator="platt").methods
    flowers, kinds = load_iris(return_X_y=True)
    coded = [
        cal.CodedClassifier(GaussianNB(), calibrator=c).fit(flowers, kinds).map_
        for c in ("platt", cal.Platt())
    ]
    assert coded[0] == coded[1]
    several = [
        cal.CodedCalibrator(c).fit(flowers[:, :3], kinds).map_ for c in ("platt", cal.Platt())
    ]
    assert several[0] == several[1]
    Y = np.column_stack((kinds == 0, kinds == 1))
    labels = [
        cal.MultiLabelCalibrator(c).fit(flowers[:, :2], Y).map_ for c in ("platt", cal.Platt())
    ]
    assert labels[0] == labels[1]
    scaled = cal.CalibratedClassifier(GaussianNB(), "vector", cv=2).fit(flowers, kinds)
    assert type(scaled.calibrator_) is cal.VectorScaling


@pytest.mark.parametrize(
    "use",
    [
        lambda c, s, y: cal.CalibratedClassifier(GaussianNB(), c).fit(s[:, None], y),
        lambda c, s, y: cal.CodedClassifier(GaussianNB(), calibrator=c).fit(s[:, None], y),
        lambda c, s, y: cal.CodedCalibrator(c).fit(np.column_stack((1 - s, s)), y),
        lambda c, s, y: cal.MultiLabelCalibrator(c).fit(s[:, None], y[:, None]),
        lambda c, s, y: cal.SegmentedCalibrator(c).fit(s, y, segments=y),
        lambda c, s, y: cal.AutoCalibrator(candidates=[c]).fit(s, y),
        cal.learning_curve,
        lambda c, s, y: cal.calibration_report(s, y, calibrator=c),
        lambda c, s, y: cal.advise(s, y, c),
    ],
)
def test_an_unknown_name_is_told_which_was_meant(use):
    with pytest.raises(
        cal.errors.ParameterError, match=r"one of auto, bls.*Did you mean 'isotonic'\?"
    ):
        use("isotonc", *rows())


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("evalute", "Did you mean 'evaluate'"),
        ("Isotonc", "Did you mean 'Isotonic'"),
        ("brier", "Did you mean calibrant.metrics.brier"),
        ("reliability_curve", "Did you mean calibrant.diagrams.reliability_curve"),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_the_one_that_was_meant(name, hint):
    with pytest.raises(AttributeError, match=re.escape(hint)):
        getattr(cal, name)


def test_a_name_like_no_other_gets_no_hint():
    with pytest.raises(AttributeError) as said:
        cal.zzzzzz  # noqa: B018
    assert "mean" not in str(said.value)


def test_scores_and_labels_in_each_others_place_are_told_with_the_right_call():
    p = np.linspace(0.01, 0.99, 50)
    y = (p > 0.4).astype(int)
    words = np.where(y, "yes", "no")
    matrix = np.column_stack([p / 2, p / 2, 1.0 - p])
    for call, given in (
        (cal.Platt().fit, (y, p)),
        (cal.Platt().fit, (words, p)),
        (cal.AutoCalibrator().fit, (y, p)),
        (cal.calibration_report, (words, p)),
        (cal.evaluate, (p, y)),
        (cal.evaluate, (p, words)),
        (cal.evaluate, (matrix, y)),
        (cal.metrics.ece, (p, words)),
        (cal.reliability_diagram, (p, y)),
    ):
        with pytest.raises(cal.errors.InputError, match=r"swapped\?.*fit.*but evaluate\(y, p\)"):
            call(*given)
