"""One value of every fitted calibrator: what it needs beside scores, and what it refuses."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import InputError
from calibrant.rules.base import Map, Rule
from saved import saved, simulate, simulate_features

S, Y = simulate(200)
NEW = [0.2, 0.5]
BESIDE = {
    "segments": ["de", "fr"],
    "features": [[0.5, "red"], [None, "blue"]],
    "lower": [0.0, 0.0],
    "upper": [1.0, 1.0],
}
NEEDS = {
    "segmented": {"segments"},
    "hand-trees": {"features"},
    "similarity": {"features"},
    "acp": {"lower", "upper"},
}


def asked(names):
    return {name: BESIDE[name] for name in names}


def all_methods(one):
    return one.calibrate, one.predict_proba, one.predict


@pytest.mark.parametrize("name", NEEDS)
def test_what_a_rule_needs_is_asked_for_and_all_else_refused(name):
    fitted = saved()[name]
    assert fitted.rule.needs == NEEDS[name]
    for method in all_methods(fitted):
        method(NEW, **asked(NEEDS[name]))
        with pytest.raises(InputError, match=r"must be given|must be passed|did not come"):
            method(NEW)
        for other in BESIDE.keys() - NEEDS[name]:
            with pytest.raises(InputError, match=f"{other} must not be given"):
                method(NEW, **asked(NEEDS[name] | {other}))


@pytest.mark.parametrize("name", BESIDE)
def test_maps_of_scores_refuse_what_they_cannot_use(name):
    fitted = saved()["hand-band"]
    assert fitted.rule.needs == frozenset()
    for method in all_methods(fitted):
        with pytest.raises(InputError, match=f"{name} must not be given: this calibrator"):
            method(NEW, **asked([name]))


@pytest.mark.parametrize("name", ["hand-trees", "similarity", "acp"])
def test_only_functions_of_scores_have_a_map(name):
    fitted = saved()[name]
    needed = " and ".join(sorted(NEEDS[name]))
    with pytest.raises(InputError, match=rf"has no map .* needs each row's {needed}\. Save it"):
        _ = fitted.map
    assert getattr(fitted, "map", None) is None
    assert f"\n  rule: {fitted.rule!r}" in repr(fitted)
    assert saved()["segmented"].map is saved()["segmented"].rule


def test_a_rule_must_be_one():
    with pytest.raises(InputError, match="rule must be a Map or another Rule, but float came"):
        cal.Fitted(0.5, (0, 1), 1)
    with pytest.raises(InputError, match="but the class Platt came"):
        cal.Fitted(cal.Platt, (0, 1), 1)
    with pytest.raises(InputError, match=r"two labels with pos_label among them, but \(0, 1, 2\)"):
        cal.Fitted(saved()["acp"].rule, (0, 1, 2), None)
    assert issubclass(Map, Rule)


def test_calibrators_refuse_what_they_cannot_use():
    features = simulate_features(200)
    country = np.array(["de", "fr"])[np.arange(200) % 2]
    made = {
        "features": cal.SimilarityBinning(gate=False, k=5).fit(S, Y, features=features),
        "segments": cal.SegmentedCalibrator(shrinkage=1.0).fit(S, Y, segments=country),
        "lower": cal.ACP().fit(S, Y),
        "none": cal.AutoCalibrator(cv=2).fit(S, Y),
    }
    for own, one in made.items():
        for name in BESIDE:
            if name == own or {own, name} in ({"lower", "upper"}, {"none", "features"}):
                continue
            for method in all_methods(one):
                with pytest.raises(InputError, match=f"{name} must not be given"):
                    method(NEW, **asked([name]))


def test_a_gate_that_kept_a_map_takes_what_it_does_not_look_at(tmp_path):
    one = cal.SimilarityBinning(k=5).fit(S, Y, features=simulate_features(200))
    assert one.kept_ != "neighbours"
    assert isinstance(one.rule_, Map)
    cal.save(one, tmp_path / "c.json")
    for each in (one, cal.load(tmp_path / "c.json")):
        p = each.calibrate(NEW)
        assert np.array_equal(p, one.rule_(NEW))
        assert np.array_equal(each.calibrate(NEW, features=BESIDE["features"]), p)
        with pytest.raises(InputError, match="segments must not be given"):
            each.calibrate(NEW, BESIDE["segments"])
    with pytest.raises(InputError, match="features must not be given"):
        cal.Fitted(one.rule_, (0, 1), 1).calibrate(NEW, features=BESIDE["features"])


def test_distributions_are_checked_where_a_gate_kept_the_temperature():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(600, 3))
    P = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (P.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1)
    sharp = P**3 / (P**3).sum(axis=1, keepdims=True)
    one = cal.SimilarityBinning().fit(sharp, y, features=rng.normal(size=(600, 2)))
    assert one.kept_ == "temperature"
    with pytest.raises(InputError, match="sum"):
        one.predict_proba([[0.9, 0.9, 0.9]])


@pytest.mark.parametrize(
    ("kind", "takes"),
    [
        (cal.Platt, set()),
        (cal.VectorScaling, set()),
        (cal.SegmentedCalibrator, {"segments"}),
        (cal.ACP, {"lower", "upper"}),
        (cal.FeatureCalibrator, {"features"}),
        (cal.SimilarityBinning, {"features"}),
        (cal.AutoCalibrator, {"features"}),
    ],
)
def test_scikit_learn_may_route_what_a_calibrator_takes(kind, takes):
    routing = kind().get_metadata_routing()
    for method in (routing.predict, routing.predict_proba):
        assert set(method.requests) == takes
    assert hasattr(kind, "set_predict_request") == bool(takes)


@pytest.mark.parametrize(
    ("name", "own"),
    [("hand-band", None), ("acp", "acp"), ("similarity", "similarity"), ("hand-trees", "features")],
)
def test_loading_imports_no_method_but_that_of_the_rule(name, own, tmp_path):
    cal.save(saved()[name], tmp_path / "c.json")
    code = (
        "import sys, calibrant as cal; cal.load('c.json');"
        "print(*{m.split('.')[2] for m in sys.modules if m.startswith('calibrant.methods.')})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert set(done.stdout.split()) == ({own} if own else set())
