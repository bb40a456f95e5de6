"""Venn–Abers: against refitted isotonic regressions, its bounds, folds, guarantee and maps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.data.score_table import table_in_rows
from calibrant.fitting.folds import TableFolds
from calibrant.maps import Interval, Piecewise
from calibrant.methods.venn_abers._kernel import venn_abers
from strategies import REAL, TAME_PROBABILITIES, rows
from twins import venn_abers as naive

HUGE = np.finfo(float).max
#: weights that differ by far more than a float has digits
UNEVEN = st.one_of(
    st.sampled_from([0.0, 5e-324, 1e-300, 1e-9, 1.0, 1e9, 2.0**53, 1e18]), st.floats(1e-6, 1e6)
)


def near(s):
    """Queries at, just beside, between and beyond the scores."""
    s = np.unique(np.asarray(s, float) + 0.0)
    with np.errstate(over="ignore"):
        beside = np.concatenate((np.nextafter(s, np.inf), np.nextafter(s, -np.inf)))
    q = np.concatenate((s, beside, s[1:] / 2 + s[:-1] / 2, [-HUGE, -1.0, 0.5, 2.0, HUGE]))
    return np.unique(q[np.isfinite(q)])


def fit(s, y, w=None, **options):
    return cal.VennAbers(classes=[0, 1], weights="counts", **options).fit(s, y, w)


def worst_difference(data):
    s, y, w = data
    q = near(s)
    lower, upper = (np.array(b, float) for b in naive.bounds(s, y, w, q))
    c = fit(s, y, w)
    ours = (c.map_.lower(q), c.map_.upper(q), c.map_(q))
    expected = (lower, upper, upper / (1 - lower + upper))
    return max(np.abs(a - b).max() for a, b in zip(ours, expected, strict=True))


# --- exactness ----------------------------------------------------------------------------------


@given(data=st.one_of(rows(max_size=12), rows(weight=REAL, max_size=12)))
@example(data=(np.array([HUGE]), np.array([1]), np.array([1.0])))
@example(data=(np.array([-HUGE, HUGE]), np.array([1, 0]), np.array([1.0, 1.0])))
@example(data=(np.array([-5e-324, 0.0, 5e-324]), np.array([1, 0, 1]), np.ones(3)))
def test_bounds_are_the_refitted_isotonic_values(data):
    assert worst_difference(data) < 1e-13


@given(data=rows(weight=UNEVEN, score=TAME_PROBABILITIES, max_size=12))
@example(data=(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1]), np.array([1e15, 1, 2, 1])))
def test_uneven_weights_lose_no_digits(data):
    assume(data[2].max() >= 1e-150 and data[2].sum() <= 2**53)  # others are refused
    assert worst_difference(data) < 1e-13


@pytest.mark.full
def test_many_random_tables():
    rng = np.random.default_rng(0)
    for _ in range(1000):
        size = rng.integers(1, 13)
        n0, n1 = rng.integers(0, rng.integers(2, 5), (2, size)).astype(float)
        n0[n0 + n1 == 0] = 1.0
        if rng.random() < 0.3:
            n0, n1 = n0 * rng.random(size), n1 * rng.random(size)
            n0[n0 + n1 == 0] = 1.0
        x = np.arange(size, dtype=float)
        s, y, w = np.tile(x, 2), np.repeat([0, 1], size), np.concatenate((n0, n1))
        q = np.arange(-0.5, size, 0.5)
        lower, upper = (np.array(b, float) for b in naive.bounds(s, y, w, q))
        p0, p1 = venn_abers(n0, n1)
        at = np.arange(1, 2 * size, 2)
        assert np.abs(lower[at] - p0).max() < 1e-14
        assert np.abs(upper[at] - p1).max() < 1e-14
        c = cal.VennAbers().fit_table(cal.ScoreTable.from_counts(x, n0, n1))
        assert np.abs(c.map_.lower(q) - lower).max() < 1e-14
        assert np.abs(c.map_.upper(q) - upper).max() < 1e-14


def test_a_larger_set_against_scikit_learn():
    rng = np.random.default_rng(2)
    s = rng.random(3000).round(3)
    y = (rng.random(3000) < s**2).astype(int)
    c = fit(s, y)
    for q in [*rng.choice(s, 15), *rng.random(15), -1.0, 2.0]:
        for label, bound in ((0, c.map_.lower), (1, c.map_.upper)):
            iso = IsotonicRegression().fit(np.append(s, q), np.append(y, label))
            assert bound([q])[0] == pytest.approx(iso.predict([q])[0], abs=1e-12)


# --- the bounds and what lies between -----------------------------------------------------------

OPTIONS = [{"cv": cv, "merge": merge} for cv in (None, 5) for merge in ("log", "brier")]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@given(data=st.one_of(rows(), rows(weight=REAL)))
def test_the_merged_probability_is_between_its_bounds_and_never_certain(options, data):
    s, y, w = data
    band = fit(s, y, w, **options).map_
    q = near(s)
    low, p, high = band.lower(q), band(q), band.upper(q)
    assert (low <= p).all()
    assert (p <= high).all()
    assert p.min() >= 1 / (w.sum() + 2) - 1e-15
    assert p.max() <= 1 - 1 / (w.sum() + 2) + 1e-15
    for values in (low, p, high):
        assert (np.diff(values) >= 0).all()
        assert values.min() >= 0
        assert values.max() <= 1


@pytest.mark.parametrize("merge", ["log", "brier"])
@given(data=rows(max_size=15))
def test_turning_scores_and_labels_round_turns_the_bounds_round(merge, data):
    s, y, w = data
    q = near(s)
    band, turned = fit(s, y, w, merge=merge).map_, fit(-s, 1 - y, w, merge=merge).map_
    assert np.abs(band.lower(q) - (1 - turned.upper(-q))).max() < 1e-13
    assert np.abs(band(q) - (1 - turned(-q))).max() < 1e-13


def test_regret_is_the_same_for_either_label():
    """What merging is for: p loses as much to p0 on a negative as to p1 on a positive."""
    rng = np.random.default_rng(4)
    s = rng.random(200)
    y = (rng.random(200) < s).astype(int)
    inside = s[(s > 0.2) & (s < 0.8)]
    band = fit(s, y).map_
    p, p0, p1 = band(inside), band.lower(inside), band.upper(inside)
    assert np.abs(np.log(p1 / p) - np.log((1 - p0) / (1 - p))).max() < 1e-12
    band = fit(s, y, merge="brier").map_
    p = band(inside)
    assert np.abs(((1 - p) ** 2 - (1 - p1) ** 2) - (p**2 - p0**2)).max() < 1e-12


def test_weights_beside_the_added_case():
    s, y = [0.2, 0.8], [1, 0]
    for weight in (0.5, 1.0, 10.0):
        band = fit(s, y, [weight, weight]).map_
        assert band.lower([0.5])[0] == pytest.approx(weight / (2 * weight + 1))
        assert band.upper([0.5])[0] == pytest.approx((weight + 1) / (2 * weight + 1))


@pytest.mark.parametrize(
    ("s", "y", "q", "bounds"),
    [
        ([0.4], [1], [0.3, 0.4, 0.5], ([0, 0.5, 0.5], [1, 1, 1])),
        ([0.4], [0], [0.3, 0.4, 0.5], ([0, 0, 0], [0.5, 0.5, 1])),
        ([0.4, 0.4], [0, 1], [0.3, 0.4, 0.5], ([0, 1 / 3, 1 / 3], [2 / 3, 2 / 3, 1])),
        ([0.1, 0.9], [0, 1], [0.1, 0.5, 0.9], ([0, 0, 0.5], [0.5, 1, 1])),
    ],
)
def test_values_by_hand(s, y, q, bounds):
    band = fit(s, y).map_
    assert band.lower(q).tolist() == pytest.approx(bounds[0])
    assert band.upper(q).tolist() == pytest.approx(bounds[1])


@pytest.mark.full
def test_the_one_of_the_true_label_is_calibrated():
    """Over draws of calibration set and case, P(Y = 1 | p_Y = v) = v: here E(Y − p_Y) g(p_Y) = 0.

    p0 and p1 themselves are not: their means lie below and above the frequency of positives.
    """
    rng = np.random.default_rng(7)
    draws, size = 40_000, 8
    truth, p0, p1 = np.empty(draws), np.empty(draws), np.empty(draws)
    for i in range(draws):
        s = rng.integers(0, 6, size + 1) / 5
        y = (rng.random(size + 1) < 0.2 + 0.5 * s).astype(float)
        x = np.unique(s[:-1])
        n1 = np.array([y[:-1][s[:-1] == v].sum() for v in x])
        n0 = np.array([(s[:-1] == v).sum() for v in x]) - n1
        lower, upper = venn_abers(n0, n1)
        p0[i] = np.append(0.0, lower)[np.searchsorted(x, s[-1], "right")]
        p1[i] = np.append(upper, 1.0)[np.searchsorted(x, s[-1], "left")]
        truth[i] = y[-1]
    chosen = np.where(truth == 1, p1, p0)
    for part in (chosen < 0.3, (chosen >= 0.3) & (chosen < 0.6), chosen >= 0.6):
        error = (truth - chosen)[part]
        assert abs(error.mean()) < 4.5 * error.std() / np.sqrt(part.sum())
    assert p0.mean() < truth.mean() - 0.05
    assert p1.mean() > truth.mean() + 0.05


# --- folds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("merge", ["log", "brier"])
@given(data=st.one_of(rows(max_size=15), rows(weight=REAL, max_size=15)), folds=st.integers(2, 6))
def test_folds_are_calibration_sets_merged_as_in_the_paper(merge, data, folds):
    s, y, w = data
    table = table_in_rows(cal.ScoreTable.from_arrays(s, y, w, classes=[0, 1]), "counts")
    deal, parts = TableFolds(table, folds, repetitions=True), []
    for fold in range(folds):
        held = deal.held(fold)
        weight = np.concatenate((held.negative, held.positive))
        if weight.any():
            parts.append((np.tile(table.scores, 2), np.repeat([0, 1], len(table)), weight))
    q = near(s)
    expected = naive.cross(parts, q, merge)
    band = fit(s, y, w, cv=folds, merge=merge).map_
    for ours, wanted in zip((band.lower, band.upper, band), expected, strict=True):
        assert np.abs(ours(q) - wanted).max() < 1e-12


def test_more_folds_than_rows():
    assert fit([0.3], [1], cv=100).map_ == fit([0.3], [1]).map_
    p = fit([0.1, 0.3, 0.7], [0, 1, 1], cv=100).calibrate([0.0, 0.5, 1.0])
    assert ((p > 0) & (p < 1)).all()


def test_folds_make_more_values_and_wider_bounds():
    rng = np.random.default_rng(3)
    s = rng.random(4000)
    y = (rng.random(4000) < s**1.5).astype(int)
    one, many = fit(s, y), fit(s, y, cv=10)
    assert len(np.unique(many.calibrate(s))) > 1.5 * len(np.unique(one.calibrate(s)))
    width = [(c.map_.upper(s) - c.map_.lower(s)).mean() for c in (one, many)]
    assert width[1] > 2 * width[0]


# --- the map ------------------------------------------------------------------------------------


def test_the_map_is_small_and_of_steps(tmp_path):
    rng = np.random.default_rng(5)
    s = rng.random(20_000)
    y = (rng.random(20_000) < s).astype(int)
    for options in OPTIONS:
        c = fit(s, y, **options)
        band = c.map_
        assert isinstance(band, Interval)
        assert band.level is None
        for piece in (band.lower, band.upper, band.point):
            assert isinstance(piece, Piecewise)
            assert piece.is_step
            assert len(piece.x) < 5000
        cal.save(c, tmp_path / "c.json")
        loaded = cal.load(tmp_path / "c.json").map
        for ours, theirs in zip(band.bounds(s), loaded.bounds(s), strict=True):
            assert (ours == theirs).all()


def test_more_data_bring_the_bounds_together():
    rng = np.random.default_rng(6)
    s = rng.random(50_000)
    y = (rng.random(50_000) < s).astype(int)
    widths = [
        np.mean(np.subtract(*fit(s[:n], y[:n]).map_.bounds(s)[::-1])) for n in (50, 500, 5000)
    ]
    assert widths[0] > 3 * widths[1] > 6 * widths[2]


def test_any_labels_and_a_model_around_it():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(400, 2))
    y = np.where(rng.random(400) < 1 / (1 + np.exp(-2 * x[:, 0])), 2, 1)
    for options in ({}, {"ensemble": True}):
        c = cal.CalibratedClassifier(LogisticRegression(), cal.VennAbers(), cv=3, **options)
        p = c.fit(x, y).predict_proba(x)
        assert c.classes_.tolist() == [1, 2]
        assert ((p > 0) & (p < 1)).all()
        assert cal.metrics.log_loss(y, p) < 0.6


def test_it_is_drawn_with_its_bounds():
    c = fit([0.1, 0.3, 0.4, 0.6, 0.8], [0, 1, 0, 1, 1])
    line = cal.diagrams.map_curve(c)
    assert line.level is None
    assert (line.lower <= line.p).all()
    assert (line.p <= line.upper).all()
    assert line.upper[-1] == 1
    assert line.lower[0] == 0


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"cv": "jackknife"}, "None, or a whole number"),
        ({"cv": 1}, "at least 2"),
        ({"cv": 2.5}, "whole number"),
        ({"merge": "mean"}, "'log' or 'brier'"),
    ],
)
def test_wrong_options(wrong, text):
    with pytest.raises(cal.errors.ParameterError, match=text):
        fit([0.1, 0.9], [0, 1], **wrong)


@pytest.mark.parametrize("weight", [1e-140, 1e-100, 1e14])
def test_cross_with_weights_of_any_size(weight):
    rng = np.random.default_rng(0)
    s = rng.random(60)
    y = (rng.random(60) < s).astype(int)
    p = cal.VennAbers(cv=5, weights="counts").fit(s, y, np.full(60, weight)).calibrate(s)
    assert np.isfinite(p).all()
    if weight < 1.0:  # next to nothing is known
        assert np.allclose(p, 0.5)
