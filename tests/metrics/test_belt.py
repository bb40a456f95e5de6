"""The calibration belt: its test, its polynomial and its band."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import chi2

from calibrant import ScoreTable, metrics
from calibrant.diagrams import reliability_curve, reliability_diagram
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.belt import Belt, statistic_beyond
from studies import experiment
from twins import belt as naive

TRUTHS = (
    lambda z: z,
    lambda z: 0.6 * z + 0.3,
    lambda z: z - 0.4 * z**2,
    lambda z: 0.5 * z + 0.3 * z**3,
    lambda z: z - 0.6 * z**2 + 0.1 * z**4,
)


def drawn(n, seed, truth=TRUTHS[0], weighted=False):
    rng = np.random.default_rng(seed)
    z = rng.normal(-0.3, 1.2, n)
    y = (rng.random(n) < expit(truth(z))).astype(int)
    return y, expit(z), rng.choice([0.5, 1.0, 2.0], n) if weighted else np.ones(n)


# --- the test -----------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(60, 200),
    truth=st.sampled_from(TRUTHS),
    fitted=st.booleans(),
)
def test_statistic_and_degree_equal_their_twins(seed, n, truth, fitted):
    y, p, w = drawn(n, seed, truth)
    found = metrics.calibration_belt(y, p, fitted=fitted)
    degree, statistic, beta = naive.belt(y, p, w, begin=2 if fitted else 1)
    assert found.degree == degree
    assert found.statistic == pytest.approx(statistic, abs=1e-5)
    first = 2 if fitted else 1
    expected = naive.beyond(found.statistic, 1 if fitted else 2, degree - first)
    assert found.p_value == pytest.approx(expected, rel=1e-6, abs=1e-9)
    t, _, _ = naive.scaled(p, w)
    curve = expit(sum(b * t**j for j, b in enumerate(beta)))
    assert found.curve(p) == pytest.approx(curve, abs=1e-4)


@given(t=st.floats(0.0, 40.0), free=st.integers(1, 2), taken=st.integers(0, 2))
def test_the_distribution_of_the_statistic(t, free, taken):
    assert statistic_beyond(np.array([t]), free, taken)[0] == pytest.approx(
        naive.beyond(t, free, taken), rel=1e-7, abs=1e-10
    )


def test_the_published_formula_of_the_second_degree():
    """Nattino, Finazzi and Bertolini 2014, of the external test at m = 2."""
    k = chi2.ppf(0.95, 1)
    for t in (4.0, 7.0, 12.0, 30.0):
        inside = chi2.cdf(t, 1) - 0.95
        inside -= math.sqrt(2 / math.pi) * math.exp(-t / 2) * (math.sqrt(t) - math.sqrt(k))
        assert statistic_beyond(np.array([t]), 2, 1)[0] == pytest.approx(
            1 - inside / 0.05, rel=1e-9
        )


def test_the_distribution_of_three_powers_is_that_of_drawn_numbers():
    rng = np.random.default_rng(0)
    tails = np.abs(rng.standard_normal(4_000_000))
    tails = tails[tails > math.sqrt(naive.K)] ** 2
    tails = tails[: len(tails) // 3 * 3].reshape(3, -1).sum(axis=0)
    sums = tails + rng.chisquare(2, len(tails))
    for share in (0.5, 0.1, 0.02):
        noise = 5 * math.sqrt(share / len(sums))
        [found] = statistic_beyond(np.quantile(sums, [1 - share]), 2, 3)
        assert found == pytest.approx(share, abs=noise)


#: degree and p-value of probcal 0.4.0, which compares with χ² of degree + 1 degrees of freedom
PROBCAL = {
    "a": (2000, lambda z: z, 1, 0.2853414041891553),
    "b": (2000, lambda z: 0.8 * z + 0.1, 1, 6.640219861116578e-10),
    "c": (5000, lambda z: z - 0.25 * z * z, 2, 9.065206632607883e-26),
}


@pytest.mark.parametrize("name", PROBCAL)
def test_probcal_has_the_same_statistic(name):
    n, truth, degree, p_value = PROBCAL[name]
    rng = np.random.default_rng(ord(name))
    z = rng.normal(-0.5, 1.2, n)
    found = metrics.calibration_belt((rng.random(n) < expit(truth(z))).astype(int), expit(z))
    assert found.degree == degree
    assert chi2.sf(found.statistic, degree + 1) == pytest.approx(p_value, rel=1e-9)
    assert found.p_value >= p_value * (1 - 1e-9)  # the degree was chosen by the data


def test_weights_are_repeated_rows_and_their_scale_plays_no_part():
    y, p, w = drawn(150, 3, TRUTHS[1], weighted=True)
    rows = metrics.calibration_belt(
        np.repeat(y, (2 * w).astype(int)), np.repeat(p, (2 * w).astype(int))
    )
    counts = metrics.calibration_belt(y, p, sample_weight=2 * w, weights="counts")
    assert counts.statistic == pytest.approx(rows.statistic)
    assert counts.coefficients == pytest.approx(rows.coefficients)
    first = metrics.calibration_belt(y, p, sample_weight=w)
    second = metrics.calibration_belt(y, p, sample_weight=1e-5 * w)
    assert first.statistic == pytest.approx(second.statistic)
    order = np.random.default_rng(0).permutation(150)
    third = metrics.calibration_belt(y[order], p[order], sample_weight=w[order])
    assert third.statistic == pytest.approx(first.statistic)
    other = metrics.calibration_belt(1 - y, 1 - p, sample_weight=w)
    assert other.statistic == pytest.approx(first.statistic)


def test_the_least_of_data():
    impossible = metrics.calibration_belt([1, 0, 1], [0.0, 0.4, 0.6])
    assert (impossible.statistic, impossible.p_value) == (math.inf, 0.0)
    certain = metrics.calibration_belt([0, 1], [0.0, 1.0])
    assert (certain.statistic, certain.p_value, certain.left_out) == (0.0, 1.0, 2.0)
    one = metrics.calibration_belt([0, 1, 1, 1] * 25, [0.5] * 100)
    expected = 2 * (100 * math.log(2) + 75 * math.log(0.75) + 25 * math.log(0.25))
    assert one.statistic == pytest.approx(expected)
    assert one.p_value == pytest.approx(chi2.sf(expected, 1))
    assert one.curve([0.5, 0.0]).tolist() == pytest.approx([0.75, math.nan], nan_ok=True)
    fitted = metrics.calibration_belt([0, 1, 1, 1] * 25, [0.75] * 100, fitted=True)
    assert (fitted.statistic, fitted.p_value) == (pytest.approx(0.0, abs=1e-9), 1.0)
    for y in ([0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1]):
        found = metrics.calibration_belt(y, [0.2, 0.3, 0.6, 0.7])
        assert found.statistic >= 0.0
        assert np.isnan(found.curve([0.5]))
    with pytest.raises(ParameterError, match="fitted must be True or False"):
        metrics.calibration_belt([0, 1], [0.2, 0.7], fitted=1)


def test_extreme_predictions():
    rng = np.random.default_rng(0)
    p = np.concatenate((10.0 ** -rng.uniform(0, 300, 300), rng.random(300)))
    y = (rng.random(600) < p).astype(int)
    found = metrics.calibration_belt(y, p)
    assert 0.0 <= found.p_value <= 1.0
    assert np.isfinite(found.coefficients).all()
    curve = reliability_curve(y, p, curve="belt")
    assert (curve.lower <= curve.upper).all()


# --- the belt -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "n", "truth"), [(1, 80, 0), (2, 300, 2), (3, 200, 1)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_belt_equals_its_twin(seed, n, truth, level):
    y, p, w = drawn(n, seed, TRUTHS[truth])
    belt = Belt.of(ScoreTable.from_arrays(p, y))
    places = np.quantile(p, [0.0, 0.3, 0.9])
    low, high = belt.band(places, level)
    t = naive.brentq(lambda t: naive.beyond(t, 2, belt.degree - 1) - (1 - level), 1e-9, 100)
    for side, found in ((-1, low), (1, high)):
        expected = [naive.furthest(q, belt.degree, t / 2, y, p, w, side) for q in places]
        assert found == pytest.approx(expected, abs=2e-5)


def test_belts_lie_in_each_other_and_hold_the_curve():
    for seed, truth in enumerate(TRUTHS):
        y, p, _ = drawn(400, seed, truth)
        curve = reliability_curve(y, p, curve="belt")
        assert (curve.lower <= curve.inner_lower + 1e-12).all()
        assert (curve.inner_lower <= curve.y + 1e-12).all()
        assert (curve.y <= curve.inner_upper + 1e-12).all()
        assert (curve.inner_upper <= curve.upper + 1e-12).all()
        assert curve.y == pytest.approx(metrics.calibration_belt(y, p).curve(curve.x), abs=1e-9)
        assert (curve.x[0], curve.x[-1]) == (p.min(), p.max())
        off = (curve.x < curve.lower) | (curve.x > curve.upper)
        if (
            off.any()
        ):  # the other way round need not be: it may leave the belt of all places at none
            assert metrics.calibration_belt(y, p).p_value <= 0.05


def test_large_tables_are_pooled_for_the_band_alone():
    y, p, _ = drawn(20_000, 4, TRUTHS[1])
    belt = Belt.of(ScoreTable.from_arrays(p, y))
    places = np.array([0.05, 0.3, 0.8])
    low, high = belt.band(places, 0.95)
    coarse = Belt.of(ScoreTable.from_arrays(p.round(3), y)).band(places, 0.95)
    assert low == pytest.approx(coarse[0], abs=1e-3)
    assert high == pytest.approx(coarse[1], abs=1e-3)


def test_where_no_polynomial_fits_best_nothing_is_known():
    curve = reliability_curve([0, 0, 1, 1], [0.2, 0.3, 0.6, 0.7], curve="belt")
    assert (curve.lower == 0.0).all()
    assert (curve.upper == 1.0).all()
    with pytest.raises(InputError, match="predictions between 0 and 1"):
        reliability_curve([0, 1], [0.0, 1.0], curve="belt")


def test_options_of_the_belt():
    y, p, _ = drawn(200, 0)
    curve = reliability_curve(y, p, curve="belt")
    assert (curve.band, curve.bands, curve.level) == ("confidence", "simultaneous", 0.95)
    assert "calibration belt" in repr(curve)
    assert curve.to_dict()["inner_lower"] == curve.inner_lower.tolist()
    assert reliability_curve(y, p, curve="belt", band=None).lower is None
    assert reliability_curve(y, p, curve="belt", level=0.5).inner_lower is None
    smooth = reliability_curve(y, p, curve="smooth")
    assert smooth.inner_lower is None
    assert "inner_lower" not in smooth.to_dict()
    with pytest.raises(ParameterError, match="bands must be 'simultaneous' where curve='belt'"):
        reliability_curve(y, p, curve="belt", bands="pointwise")
    with pytest.raises(ParameterError, match="band must be one of"):
        reliability_curve(y, p, curve="belt", band="consistency")


@pytest.mark.parametrize("axes", ["probability", "logit"])
def test_the_picture_has_both_belts(axes):
    y, p, _ = drawn(400, 0, TRUTHS[2])
    figure = reliability_diagram(y, p, curve="belt", axes=axes)
    areas = [part for part in figure.axes[0].collections if part.get_label() == "_band"]
    assert len(areas) == 2
    assert any(
        "80 % and 95 % confidence" in t.get_text()
        for t in figure.findobj()
        if hasattr(t, "get_text")
    )


# --- the study ----------------------------------------------------------------------------------


def test_false_alarms_are_as_rare_as_stated(root):
    study = experiment(root, "belt")
    assert study.false_alarms("uniform", 500, 200) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 200)


@pytest.mark.full
def test_the_study_runs_from_data_to_page(root):
    study = experiment(root, "belt")
    text = study.page(3, 2)
    assert text.count("\n| ") == 2 + len(study.PREDICTIONS) + len(study.TRUTHS)
    held = study.coverage(study.TRUTHS["p itself"], 200, 40)
    assert held[0.95] >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / 40)
