"""skops, the format that MLflow saves scikit-learn models in: which of our types it must trust."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.maps import Chain, Identity, Logistic, Mixture, Softmax, VectorMixture
from cases import each
from subjects import VECTORS, fitted, vector_rows

skops_io = pytest.importorskip("skops.io")

RNG = np.random.default_rng(0)
SCORES = RNG.random(160)
Y = (RNG.random(160) < SCORES).astype(int)
X = np.column_stack((SCORES, RNG.random(160)))
PARTS = np.where(X[:, 1] > 0.5, "a", "b")
THREE = np.array(["a", "b", "c"])[RNG.integers(0, 3, 160)]
SHIFT = Logistic(0.1, (("z", 1.0),))

MODEL = LogisticRegression()

WHOLE = {
    "auto": lambda: cal.AutoCalibrator(candidates=[cal.Platt(), cal.Isotonic()]).fit(SCORES, Y),
    "auto of classes": lambda: cal.AutoCalibrator().fit(*vector_rows("temperature")),
    "segments": lambda: cal.SegmentedCalibrator(cal.Platt()).fit(SCORES, Y, segments=PARTS),
    "segments of the default": lambda: cal.SegmentedCalibrator().fit(SCORES, Y, segments=PARTS),
    "classifier": lambda: cal.CalibratedClassifier(MODEL, cal.BLS(), cv=3).fit(X, Y),
    "ensemble": lambda: cal.CalibratedClassifier(MODEL, cal.Isotonic(), cv=3, ensemble=True).fit(
        X, Y
    ),
    "classes": lambda: cal.CodedClassifier(MODEL, calibrator=cal.Platt()).fit(X, THREE),
    "boosting": lambda: cal.boosting.AdaBoost(n_estimators=3).fit(X, Y),
    "boosting of others": lambda: cal.boosting.AdaBoost(MODEL, n_estimators=2).fit(X, Y),
    "similarity binning": lambda: cal.SimilarityBinning(gate=False).fit(SCORES, Y, features=X),
    "acp": lambda: cal.ACP().fit(SCORES, Y),
    "chain": lambda: Chain((Identity(), SHIFT)),
    "mixture": lambda: Mixture([0.5, 0.5], (Identity(), SHIFT)),
    "mixture of classes": lambda: VectorMixture([1.0], (Softmax(1.0, [0.0, 0.0]),)),
}


def through_skops(model):
    """The model as it is read back, with none but the types that we name."""
    data = skops_io.dumps(model)
    unknown = set(skops_io.get_untrusted_types(data=data)) - set(cal.export.skops_types())
    assert not {name for name in unknown if not name.startswith("sklearn.")}
    return skops_io.loads(data, trusted=sorted(unknown | set(cal.export.skops_types())))


@each()
def test_calibrators(case):
    near = fitted(case.name)
    scores = np.linspace(0.0, 1.0, 50)
    assert np.array_equal(through_skops(near).calibrate(scores), near.calibrate(scores))


@pytest.mark.parametrize("name", VECTORS)
def test_calibrators_of_several_classes(name):
    scores, y = vector_rows(name)
    near = VECTORS[name].fit(scores, y)
    assert np.array_equal(through_skops(near).predict_proba(scores), near.predict_proba(scores))


@pytest.mark.parametrize("name", WHOLE)
def test_whatever_holds_calibrators(name):
    near = WHOLE[name]()
    assert type(through_skops(near)) is type(near)


def test_a_calibrator_that_has_advice():
    rng = np.random.default_rng(0)
    scores = rng.random(400)
    near = cal.AutoCalibrator().fit(scores, (rng.random(400) < scores**2).astype(int))
    assert near.advice_
    assert through_skops(near).advice_ == near.advice_


FOREST = RandomForestClassifier(5, random_state=0)
LOCAL = {
    "gated": (MODEL, cal.ACP()),
    "delta": (MODEL, cal.ACP(gate=False)),
    "members": (FOREST, cal.ACP(gate=False)),
    "features": (MODEL, cal.SimilarityBinning(gate=False)),
    "trees": (MODEL, cal.FeatureCalibrator(gate=False, rounds=1)),
    "gated trees": (MODEL, cal.FeatureCalibrator()),
    "gated neighbours": (MODEL, cal.SimilarityBinning()),
}


@pytest.mark.parametrize("name", LOCAL)
def test_classifiers_whose_calibrators_see_more_than_the_score(name):
    model, calibrator = LOCAL[name]
    near = cal.CalibratedClassifier(model, calibrator, cv=3).fit(X, Y)
    assert np.array_equal(through_skops(near).predict_proba(X), near.predict_proba(X))


def test_what_was_used_is_written_without_what_it_keeps_in_mind():
    scores = np.linspace(0.05, 0.95, 40)
    y = (np.arange(40) % 3 == 0).astype(int)
    ends = {"lower": scores - 0.1, "upper": scores + 0.1}
    acp = cal.ACP().fit(scores, y)
    p = acp.calibrate(scores, **ends)
    assert np.array_equal(through_skops(acp).calibrate(scores, **ends), p)
    near = cal.SimilarityBinning(gate=False, k=3).fit(scores, y, features=scores[:, None])
    p = near.calibrate(scores, features=scores[:, None])
    assert np.array_equal(through_skops(near).calibrate(scores, features=scores[:, None]), p)


def test_every_name_is_that_of_a_class_of_ours():
    names = cal.export.skops_types()
    assert names == sorted(set(names))
    for name in names:
        module, own = name.rsplit(".", 1)
        found = getattr(importlib.import_module(module), own)
        assert isinstance(found, type)
        assert f"{found.__module__}.{found.__qualname__}" == name
