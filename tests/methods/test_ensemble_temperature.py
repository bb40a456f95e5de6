"""Ensemble temperature scaling against EM, and what it promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

import calibrant as cal
from calibrant.fitting import base
from calibrant.fitting.registry import to_calibrator
from calibrant.solvers.weights import mixture_weights
from twins import scaling as naive


def draw(n=400, k=4, noise=0.2, seed=0):
    """Logits that are too sure by two, with some labels at random."""
    rng = np.random.default_rng(seed)
    z = 4.0 * rng.normal(size=(n, k))
    y = (0.5 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    wrong = rng.random(n) < noise
    y[wrong] = rng.integers(0, k, wrong.sum())
    y[:k] = np.arange(k)
    return z, y


def members(fitted, z):
    """The distributions that are mixed."""
    k = z.shape[1]
    uniform = np.full(z.shape, 1.0 / k)
    return [softmax(z / fitted.temperature_, axis=1), softmax(z, axis=1), uniform]


def loss(p, y, w=None):
    return float(np.average(-np.log(p[np.arange(len(y)), y]), weights=w))


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
def test_shares_are_those_of_em(noise):
    z, y = draw(noise=noise)
    w = np.random.default_rng(1).gamma(1.0, size=len(y)) + 0.01
    fitted = cal.EnsembleTemperature().fit(z, y, w)
    assert fitted.temperature_ == cal.Temperature().fit(z, y, w).temperature_
    parts = members(fitted, z)
    own = np.column_stack([p[np.arange(len(y)), y] for p in parts])
    want = naive.ensemble_shares(own, w)
    assert fitted.shares_ == pytest.approx(want, abs=1e-4)
    mixed = sum(share * p for share, p in zip(fitted.shares_, parts, strict=True))
    assert fitted.predict_proba(z) == pytest.approx(mixed, abs=1e-12)
    assert loss(mixed, y, w) <= -np.average(np.log(own @ want), weights=w) + 1e-12
    assert loss(mixed, y, w) <= loss(parts[0], y, w) + 1e-12


@given(st.integers(2, 4), st.integers(1, 30), st.integers(0, 10_000))
def test_no_other_shares_are_likelier(m, n, seed):
    """The conditions of a maximum: Σ w·L_j/(L·s) is Σw for every share above zero, else less."""
    rng = np.random.default_rng(seed)
    likelihood = rng.random((n, m)) ** 3 + 1e-9
    w = rng.gamma(1.0, size=n) + 1e-3
    shares = mixture_weights(likelihood, w, 0.0)
    slope = w @ (likelihood / (likelihood @ shares)[:, None]) / w.sum()
    assert slope.max() <= 1.0 + 1e-5
    assert slope[shares > 1e-4] == pytest.approx(1.0, abs=1e-5)


def test_members_that_are_all_alike_share_somehow():
    shares = mixture_weights(np.full((5, 3), 0.25), np.ones(5), 0.0)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= 0.0).all()


def test_the_order_of_every_row_stays():
    z, y = draw(seed=3)
    p = cal.EnsembleTemperature().fit(z, y).predict_proba(z)
    rank = np.argsort(z, axis=1)
    assert (np.diff(np.take_along_axis(p, rank, axis=1), axis=1) >= 0.0).all()
    assert p.sum(axis=1) == pytest.approx(1.0, abs=1e-12)


def test_random_labels_bound_probabilities_from_below():
    z, y = draw(n=4000, noise=0.4, seed=5)
    fitted = cal.EnsembleTemperature().fit(z, y)
    assert fitted.shares_[2] > 0.2
    assert fitted.predict_proba(z).min() > 0.05  # the truth: 0.1
    assert cal.EnsembleTemperature().fit(*draw(n=4000, noise=0.0, seed=5)).shares_[2] == 0.0


def test_probabilities_and_their_logits_fit_alike():
    z, y = draw()
    p = softmax(z, axis=1)
    one, other = cal.EnsembleTemperature().fit(z, y), cal.EnsembleTemperature().fit(p, y)
    assert other.predict_proba(p) == pytest.approx(one.predict_proba(z), abs=1e-7)
    assert (one.map_.reads, other.map_.reads) == ("logit", "probability")
    with pytest.raises(cal.errors.InputError, match="must be probabilities"):
        other.predict_proba(z)


def test_blocks_and_float32(monkeypatch):
    z, y = draw()
    whole = cal.EnsembleTemperature().fit(z, y)
    monkeypatch.setattr("calibrant.data.door.BLOCK", 40)
    monkeypatch.setattr(base, "KEPT", 100)
    monkeypatch.setattr(base, "ROUGH", 500)
    parts = cal.EnsembleTemperature().fit(z, y)
    assert parts.shares_ == pytest.approx(whole.shares_, abs=1e-6)
    narrow = cal.EnsembleTemperature().fit(z.astype(np.float32), y)
    assert narrow.shares_ == pytest.approx(whole.shares_, abs=1e-4)


def test_extreme_logits():
    z, y = draw(n=60)
    z[3, 1], z[4, 0] = 1.7e308, -1.7e308
    p = cal.EnsembleTemperature().fit(z, y).predict_proba(z)
    assert np.isfinite(p).all()
    assert p.sum(axis=1) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("name", ["ets", "ETS", "ensemble-temperature", "EnsembleTemperature"])
def test_by_its_names(name):
    assert isinstance(to_calibrator(name), cal.EnsembleTemperature)
