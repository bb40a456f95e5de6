"""Margins from −800 to 800: fits and maps beside exact arithmetic, and labels swapped."""

from __future__ import annotations

from decimal import Decimal, getcontext
from itertools import product

import numpy as np
import pytest

import calibrant as cal
from calibrant.losses import sigmoid
from calibrant.maps import Logistic, Map, Mixture

getcontext().prec = 50  # enough for 1 − σ(−40), which is too near 1 for a double
ONE = Decimal(1)
GRID = np.linspace(-800.0, 800.0, 321)
#: BLS draws its maps within a thousandth of log-odds, and keeps other knots when it is swapped
APART = {"BLS": 5e-4}
EVERY = [
    cal.Beta(),
    cal.Beta(parameters="am"),
    cal.Beta(parameters="ab"),
    cal.Quadratic(),
    cal.Quadratic(shrinkage="identity"),
    cal.Quadratic(monotone=True),
    cal.Spline(penalty=10.0),
    cal.Spline(penalty=10.0, tails="linear"),
    cal.Spline(penalty=10.0, monotone=True),
    cal.LogisticCorrection(),
    cal.BLS(),
    cal.BLS(monotone=False),
    cal.Platt(),
]
each = pytest.mark.parametrize("calibrator", EVERY, ids=repr)


def rows(sd, n=1000):
    rng = np.random.default_rng(1)
    x = np.clip(rng.normal(0.0, sd, n), -800.0, 800.0)
    return x, (rng.random(n) < sigmoid(1.5 * x / sd - 0.3)).astype(int)


def ln_sigmoid(x):
    return -(ONE + (-x).exp()).ln()


def exact_logit(c, x):
    """The log-odds of the formula that a fitted calibrator tells."""
    if isinstance(c, cal.Beta):
        a, b, level = map(Decimal, (c.a_, c.b_, c.c_))
        return level + a * ln_sigmoid(x) - b * ln_sigmoid(-x)
    if isinstance(c, cal.Quadratic):
        a, b, level = map(Decimal, (c.a_, c.b_, c.c_))
        return level + a * x + b * x * x
    if isinstance(c, cal.Platt):
        return -Decimal(c.a_) * x - Decimal(c.b_)
    if isinstance(c, cal.LogisticCorrection):
        return 2 * x
    knots, values = (list(map(Decimal, own.tolist())) for own in (c.map_.x, c.map_.left))
    i = next((i for i, knot in enumerate(knots) if knot > x), len(knots))
    if i in (0, len(knots)):
        return values[min(i, len(knots) - 1)]
    along = (x - knots[i - 1]) / (knots[i] - knots[i - 1])
    return values[i - 1] + along * (values[i] - values[i - 1])


def exact(c, scores):
    return np.array([float(ONE / (ONE + (-exact_logit(c, Decimal(x))).exp())) for x in scores])


@each
@pytest.mark.parametrize("sd", [3.0, 50.0, 300.0])
def test_maps_of_far_margins_are_exact(calibrator, sd):
    x, y = rows(sd)
    c = calibrator.fit(x, y)
    scores = np.concatenate((GRID, x[:100]))
    if isinstance(c, cal.Quadratic):  # flat beyond the scores
        scores = scores[(scores >= x.min()) & (scores <= x.max())]
    found = c.calibrate(scores, on_range="allow")
    np.testing.assert_allclose(found, exact(c, scores.tolist()), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("calibrator", "n"), [*product(EVERY, (60, 1000)), (cal.Spline(), 60)], ids=repr
)
@pytest.mark.parametrize("sd", [3.0, 50.0, 300.0])
def test_swapping_labels_and_signs_swaps_the_probabilities(calibrator, sd, n):
    x, y = rows(sd, n)
    scores = np.concatenate((GRID, x))
    given = calibrator.fit(x, y).calibrate(scores, on_range="allow")
    swapped = calibrator.fit(-x, 1 - y).calibrate(-scores, on_range="allow")
    atol = APART.get(type(calibrator).__name__, 1e-12)
    np.testing.assert_allclose(given, 1.0 - swapped, rtol=0, atol=atol)


@pytest.mark.parametrize("sd", [3.0, 50.0, 300.0])
@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
def test_beta_has_the_greatest_likelihood_of_its_formula(parameters, sd):
    x, y = rows(sd)
    c = cal.Beta(parameters=parameters).fit(x, y)
    assert min(c.a_, c.b_) > 0.0
    margins = [Decimal(v) for v in x.tolist()]
    half = Decimal(2).ln()
    low, high = [ln_sigmoid(v) for v in margins], [-ln_sigmoid(-v) for v in margins]
    features = {
        "abm": [[ONE] * len(x), low, high],
        "am": [[ONE] * len(x), margins],
        "ab": [[v + half for v in low], [v - half for v in high]],
    }
    wrong = [
        ONE / (ONE + (-exact_logit(c, v)).exp()) - int(k) for v, k in zip(margins, y, strict=True)
    ]
    for feature in features[parameters]:
        slope = sum(d * v for d, v in zip(wrong, feature, strict=True))
        size = sum(abs(d * v) for d, v in zip(wrong, feature, strict=True))
        assert abs(slope) < 1e-7 * float(size)  # the ridge pulls a little


def test_bins_of_margins_are_apart_where_their_sigmoids_are_equal():
    x = np.concatenate((np.linspace(-800.0, -40.0, 400), np.linspace(40.0, 800.0, 400)))
    rate = np.repeat([0.1, 0.3, 0.5, 0.9], 200)
    y = (np.random.default_rng(2).random(800) < rate).astype(int)
    found = cal.BBQ().fit(x, y).calibrate([-600.0, -200.0, 200.0, 600.0])
    assert np.abs(found - [0.1, 0.3, 0.5, 0.9]).max() < 0.1


@pytest.mark.parametrize("calibrator", [cal.Platt(), cal.Temperature(), cal.ELiTE()], ids=repr)
def test_margins_have_no_logit(calibrator):
    x, y = rows(50.0)
    with pytest.raises(cal.errors.InputError, match=r'in \[0, 1\] for scale="logit", but they go'):
        calibrator.set_params(scale="logit").fit(x, y)
    calibrator.fit(sigmoid(x / 50.0), y)


def test_beta_reads_near_margins_as_the_probabilities_that_they_stand_for():
    x, y = rows(2.0)
    inside = (x > -5.0) & (x < 5.0)
    x, y = x[inside], y[inside]
    margins, probabilities = cal.Beta().fit(x, y), cal.Beta().fit(sigmoid(x), y)
    found, wanted = margins.calibrate(x), probabilities.calibrate(sigmoid(x))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
def test_files_and_python_say_the_same_of_far_margins(parameters, tmp_path):
    c = cal.Beta(parameters=parameters).fit(*rows(50.0))
    wanted = c.calibrate(GRID, on_range="allow")
    cal.save(c, tmp_path / "c.json")
    assert (cal.load(tmp_path / "c.json").calibrate(GRID, on_range="allow") == wanted).all()
    names: dict = {}
    exec(cal.to_python(c), names)
    found = [names["calibrate"](x) for x in GRID.tolist()]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-14)


def test_files_of_older_versions_predict_as_they_did():
    link = {"kind": "logistic", "version": 1, "intercept": 0.0, "terms": [["x", 1.0]]}
    terms = [["ln_p", 0.7], ["neg_ln_1mp", 0.02]]
    beta = {"kind": "logistic", "version": 1, "intercept": 0.5, "terms": terms}
    old = Map.from_dict({"kind": "chain", "version": 1, "steps": [link, beta]})
    # σ(40) is 1 there
    said = [7.99459561030034e-227, 0.16341441933423426, 0.7502639300025474, 0.7746464119372121]
    found = old([-800.0, -3.0, 30.0, 40.0, 800.0])
    np.testing.assert_allclose(found, [*said, said[-1]], rtol=1e-13, atol=0)


def test_a_map_of_margins_has_no_score_beside_its_logarithms():
    with pytest.raises(cal.errors.InputError, match="x must not be a feature beside ln_sigmoid"):
        Logistic(0.0, (("x", -5.0), ("ln_sigmoid", 10.0)))
    assert Logistic(0.0, (("ln_sigmoid", 1.0),)).to_dict()["version"] == 2
    assert Logistic(0.0, (("ln_p", 1.0),)).to_dict()["version"] == 1, "older versions read it"


def test_a_mixture_of_maps_of_margins_collapses():
    near = Logistic(0.1, (("ln_sigmoid", 0.02), ("softplus", 3.0)))
    mixture = Mixture([0.3, 0.7], (near, Logistic(0.0, (("x", 0.01),))))
    scores = np.linspace(-900.0, 900.0, 20_001)
    np.testing.assert_allclose(mixture.collapse(tol=1e-5)(scores), mixture(scores), atol=1e-5)
