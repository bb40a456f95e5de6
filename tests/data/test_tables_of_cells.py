"""Tables of cells, given to everything that takes a table."""

from __future__ import annotations

import functools

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.data.score_table import ScoreTable
from calibrant.fitting.registry import METHODS, to_calibrator
from held_out import out_of_fold

#: how far the map of a pooled table may be from that of the rows, where the map is smooth; a method
#: that cuts or counts may cut elsewhere
NEAR = {
    "platt": 1e-3,
    "beta": 3e-3,
    "quadratic": 3e-3,
    "temperature": 3e-4,
    "bls": 3e-3,
    "spline": 3e-3,
    "logistic-correction": 0.0,
    "rescale": 0.0,
    "uncalibrated": 0.0,
}


@functools.cache
def tables() -> tuple[ScoreTable, ScoreTable]:
    """The same rows exactly, and in 512 cells."""
    rng = np.random.default_rng(0)
    s = rng.beta(0.8, 3, 4000)
    frame = pl.LazyFrame({"s": s, "y": rng.random(4000) < 0.8 * s**1.3})
    return tuple(
        cal.score_table(frame, score="s", label="y", cells=cells) for cells in ("exact", 512)
    )


@pytest.mark.parametrize("name", [name for name in METHODS if name != "auto"])
def test_every_calibrator_fits_a_pooled_table(name):
    exact, pooled = tables()
    assert len(pooled) < 300
    assert 0.0 < pooled.error < 0.01
    fitted = to_calibrator(name).fit_table(pooled)
    at = np.quantile(exact.scores, np.linspace(0.01, 0.99, 99))
    found = fitted.calibrate(at)
    assert ((found >= 0.0) & (found <= 1.0)).all()
    if name in NEAR:
        apart = np.abs(found - to_calibrator(name).fit_table(exact).calibrate(at))
        assert apart.max() <= NEAR[name]
    if name not in ("logistic-correction", "rescale", "uncalibrated", "temperature"):
        mean = np.average(fitted.map_(exact.scores), weights=exact.weight)
        rate = exact.total_positive / exact.total
        assert mean == pytest.approx(rate, rel=0.05)  # on average calibrated, also on the rows


def test_the_isotonic_map_is_close_on_average():
    exact, pooled = tables()
    maps = [cal.Isotonic().fit_table(table).map_ for table in (exact, pooled)]
    apart = np.abs(maps[0](exact.scores) - maps[1](exact.scores))
    assert apart.mean() < 0.01


def test_the_choice_and_the_report():
    rng = np.random.default_rng(1)
    s = rng.beta(1, 2, 800)
    frame = pl.LazyFrame({"s": s, "y": rng.random(800) < s**2})
    pooled = cal.score_table(frame, score="s", label="y", cells=64)
    assert pooled.error > 0
    auto = cal.AutoCalibrator().fit_table(pooled)
    assert auto.leaderboard_
    assert np.abs(auto.calibrate([0.3, 0.6]) - [0.09, 0.36]).max() < 0.1
    page = cal.calibration_report(pooled).to_html()
    assert f"moved by up to {pooled.error:.3g}" in page


def test_measures():
    exact, pooled = tables()
    # |Δ Brier| ≤ 2·error, since its slope in p is at most 2
    assert abs(cal.metrics.brier(pooled) - cal.metrics.brier(exact)) <= 2 * pooled.error
    assert abs(cal.metrics.ece(pooled) - cal.metrics.ece(exact)) <= pooled.error + 1e-12
    assert cal.metrics.accuracy(pooled) == cal.metrics.accuracy(
        exact
    )  # no cell lies on both sides of ½
    assert abs(cal.metrics.auc(pooled) - cal.metrics.auc(exact)) < 1e-3
    text = str(cal.evaluate(pooled))
    assert f"predictions were moved by up to {pooled.error:.3g}" in text


def test_folds():
    exact, pooled = tables()
    found = out_of_fold(cal.Platt(), pooled)
    assert found.total == pooled.total == exact.total
    assert found.total_positive == exact.total_positive
    assert cal.metrics.log_loss(found) == pytest.approx(
        cal.metrics.log_loss(out_of_fold(cal.Platt(), exact)), abs=2e-3
    )


def test_pooling_is_the_last_step():
    exact, pooled = tables()
    with pytest.raises(ValueError, match=r"tables to be added must be exact.*Add first, pool last"):
        pooled + exact
    again = pooled.pool(50)
    assert again.error >= pooled.error
    assert "512 cells" in again.made
