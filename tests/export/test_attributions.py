"""Attributions after calibration: they add up, and are those of their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import expit, logit

import calibrant as cal
from calibrant import calibrate_attributions
from calibrant.errors import InputError, ParameterError
from calibrant.maps import Chain, Identity, Logistic, Piecewise
from twins import attributions as naive

PHI = st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=3)
BASE = st.floats(-2.0, 2.0)
BENT = Logistic(0.3, (("ln_p", 1.5), ("neg_ln_1mp", 0.6)))
OF_MARGINS = Logistic(0.4, (("ln_sigmoid", 0.5), ("softplus", 1.5)))


class Explanation:
    """What is asked of a shap.Explanation."""

    def __init__(self, values, base_values, data):
        self.values, self.base_values, self.data = values, base_values, data


def fitted(calibrator, seed=0):
    rng = np.random.default_rng(seed)
    f = rng.normal(0, 2, 3000)
    y = rng.random(3000) < expit(0.6 * f - 0.5 * np.abs(f))
    return calibrator.fit(f if calibrator.scale == "raw" else expit(f), y)


@given(phi=PHI, base=BASE)
@example(phi=[1.0, -1.0], base=0.5)
@example(phi=[0.0], base=0.0)
def test_attributions_add_up_and_are_those_of_aumann_and_shapley(phi, base):
    for map_, link in ((BENT, "sigmoid"), (OF_MARGINS, "identity")):
        new = calibrate_attributions([phi], map_, base_values=base, link=link)

        def g(f, map_=map_, link=link):
            return float(logit(map_(np.array([expit(f) if link == "sigmoid" else f]))[0]))

        assert new.values.sum() + new.base_values[0] == pytest.approx(g(base + sum(phi)), abs=1e-9)
        assert new.base_values[0] == pytest.approx(g(base), abs=1e-6)
        assert new.values[0] == pytest.approx(naive.aumann_shapley(phi, base, g), abs=2e-3)


@given(phi=PHI, base=BASE, intercept=st.floats(-2, 2), slope=st.floats(-3, 3))
def test_of_lines_they_are_the_shapley_values(phi, base, intercept, slope):
    for map_, link in (
        (Logistic(intercept, (("x", slope),)), "identity"),
        (Logistic(intercept, (("z", slope),)), "sigmoid"),
    ):
        new = calibrate_attributions([phi], map_, base_values=[base], link=link)
        expected = naive.shapley(phi, base, lambda f: intercept + slope * f)
        assert new.values[0] == pytest.approx(expected, abs=1e-12)
        assert new.base_values[0] == pytest.approx(intercept + slope * base, abs=1e-12)


@pytest.mark.parametrize("calibrator", [cal.Platt(), cal.Temperature(), cal.Platt(scale="raw")])
def test_sigmoids_are_lines_also_far_out_where_probabilities_round(calibrator):
    fit = fitted(calibrator)
    link = "identity" if calibrator.scale == "raw" else "sigmoid"
    new = calibrate_attributions([[300.0, 100.0]], fit, base_values=0.0, link=link)
    slope = new.values[0, 1] / 100.0
    assert new.values[0, 0] == pytest.approx(300.0 * slope, rel=1e-14)
    one = calibrate_attributions([[0.5]], fit, base_values=0.2, link=link)
    place = 0.7 if link == "identity" else expit(0.7)
    assert one.values.sum() + one.base_values[0] == pytest.approx(
        logit(fit.calibrate(np.array([place]))[0]), abs=1e-9
    )


@pytest.mark.parametrize(
    "calibrator", [cal.Beta(), cal.BLS(), cal.Isotonic(), cal.VennAbers(), cal.Histogram()]
)
@pytest.mark.parametrize("output", ["log_odds", "probability"])
def test_every_calibrator_adds_up(calibrator, output):
    rng = np.random.default_rng(1)
    f = rng.normal(0, 2, 3000)
    calibrator.fit(expit(f), rng.random(3000) < expit(0.6 * f))
    phi = rng.normal(size=(200, 4)) / 2
    phi[0] = 0.0
    phi[1] = [1.0, -1.0, 0.5, -0.5]  # the score is the base score
    phi[:, 3] *= np.arange(200) % 2  # often adds nothing
    base = rng.normal(size=200) / 2
    new = calibrate_attributions(phi, calibrator, base_values=base, link="sigmoid", output=output)
    p = calibrator.calibrate(expit(base + phi.sum(axis=1)))
    expected = p if output == "probability" else logit(p)
    assert new.base_values + new.values.sum(axis=1) == pytest.approx(expected, abs=1e-9)
    assert (new.values[phi == 0.0] == 0.0).all()


def test_an_explanation_comes_back_as_one_and_stays_as_it_was():
    fit = fitted(cal.Platt(scale="raw"))
    phi = np.array([[1.0, -0.5], [0.25, 0.25]])
    came = Explanation(phi, np.array([-1.0, -1.0]), "data")
    new = calibrate_attributions(came, fit)
    arrays = calibrate_attributions(phi, fit, base_values=-1.0)
    assert isinstance(new, Explanation)
    assert new.data == "data"
    assert (new.values == arrays.values).all()
    assert (new.base_values == arrays.base_values).all()
    assert (came.values == phi).all()
    single = calibrate_attributions(Explanation(phi, -1.0, None), fit)
    assert (single.base_values == arrays.base_values).all()


def test_attributions_of_probabilities_and_of_chains():
    """A forest is explained in probabilities, which are the scores of its calibrator."""
    phi, base = np.array([[0.2, -0.1], [0.3, 0.3], [0.0, 0.0]]), 0.3
    new = calibrate_attributions(phi, BENT, base_values=base)
    expected = logit(BENT(base + phi.sum(axis=1)))
    assert new.base_values + new.values.sum(axis=1) == pytest.approx(expected, abs=1e-12)
    chain = Chain((Piecewise.linear([-1.0, 2.0], [0.1, 0.8]), BENT))
    new = calibrate_attributions(phi, chain, base_values=base, output="probability")
    expected = chain(base + phi.sum(axis=1))
    assert new.base_values + new.values.sum(axis=1) == pytest.approx(expected, abs=1e-12)
    plain = calibrate_attributions(phi, Identity(), base_values=base, output="probability")
    assert plain.values == pytest.approx(phi, abs=1e-9)
    assert calibrate_attributions(np.empty((0, 2)), BENT, base_values=0.3).values.shape == (0, 2)


def test_probcal_gives_the_same():
    """probcal 0.4.0: adjust_attributions with the map σ(0.3 + 1.5 ln p − 0.6 ln(1 − p))."""
    phi = [[1.0, -0.5], [0.25, 0.25], [-2.0, 0.1]]
    new = calibrate_attributions(phi, BENT, base_values=-1.0, link="sigmoid")
    theirs = [
        [1.21053246600861, -0.605266233004305],
        [0.3026331165021525, 0.3026331165021525],
        [-2.7539694524523863, 0.13769847262261933],
    ]
    assert new.values == pytest.approx(np.array(theirs), abs=1e-12)


REFUSED = {
    "no base": (([[1.0]], Identity()), {}, "base_values must be given"),
    "two bases": ((Explanation([[1.0]], 0.0, None), Identity()), {"base_values": 1.0}, "left out"),
    "one row": (([1.0], Identity()), {"base_values": 0.0}, r"shape \(n, d\), but \(1,\) came"),
    "bases": (([[1.0]], Identity()), {"base_values": [0.0, 1.0]}, "one for each of 1 rows"),
    "NaN": (([[np.nan]], Identity()), {"base_values": 0.0}, "must be finite"),
    "link": (([[1.0]], Identity()), {"base_values": 0.0, "link": "log"}, "link must be"),
    "certain": (
        ([[1.0]], Piecewise.step([0.5], [0.0, 0.7])),
        {"base_values": 0.0},
        '0 or 1, which has no log-odds.*output="probability"',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    given_, options, words = REFUSED[name]
    with pytest.raises((InputError, ParameterError), match=words):
        calibrate_attributions(*given_, **options)


def test_calibrators_of_several_classes_and_models_are_refused():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    vector = cal.VectorScaling().fit(rng.normal(size=(60, 3)), y)
    with pytest.raises(InputError, match="must take one score"):
        calibrate_attributions([[1.0]], vector, base_values=0.0)
