"""Isotonic regression with the options of scikit-learn's: falling maps and bounds."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from calibrant.data.isotonic_blocks import isotonic_blocks
from calibrant.data.score_table import ScoreTable

BOUNDS = [(None, None), (0.2, None), (None, 0.7), (0.1, 0.6), (0.5, 0.5)]
ENDS = np.array([[0.05], [0.95]])
pytestmark = pytest.mark.filterwarnings("ignore:.*wants at least 100 rows")


def falling_sample(n=500, seed=0):
    rng = np.random.default_rng(seed)
    s = np.round(rng.random(n), 2)
    return s, rng.random(n) < (1.0 - s) ** 2, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@given(seed=st.integers(0, 10**6))
def test_equals_scikit_learn(increasing, bounds, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    s = rng.integers(0, int(rng.integers(1, 80)), n) / 50.0  # it takes close scores for equal
    y, w = rng.random(n) < rng.random(), rng.choice([0.5, 1.0, 2.0, 3.3], n)
    low, high = bounds
    side = "rising" if increasing else "falling"
    ours = cal.Isotonic(interpolation="linear", direction=side, y_min=low, y_max=high).fit(s, y, w)
    theirs = IsotonicRegression(
        increasing=increasing, y_min=low, y_max=high, out_of_bounds="clip"
    ).fit(s, y.astype(float), w)
    np.testing.assert_allclose(ours.calibrate(s), theirs.predict(s), rtol=1e-9, atol=1e-12)
    assert ours.direction_ == side


def test_between_the_scores_too():
    s, y, w = falling_sample()
    query = np.linspace(-0.5, 1.5, 997)
    for side in ("falling", "auto"):
        ours = cal.Isotonic(interpolation="linear", direction=side, y_min=0.05).fit(s, y, w)
        theirs = IsotonicRegression(increasing=False, y_min=0.05, out_of_bounds="clip")
        theirs.fit(s, y.astype(float), w)
        np.testing.assert_allclose(
            ours.calibrate(query, on_range="allow"), theirs.predict(query), atol=1e-12
        )


@given(seed=st.integers(0, 10**6))
def test_auto_goes_by_spearman(seed):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 12, 40) / 10.0
    y = rng.random(40) < (s if seed % 2 else 1.2 - s)
    assume(0 < y.sum() < 40 and len(set(s)) > 1)
    rho = spearmanr(s, y).statistic
    assume(abs(rho) > 1e-9)
    unsure = abs(np.arctanh(rho)) * np.sqrt(37) <= 1.96
    if unsure:
        with pytest.warns(cal.errors.CalibrationWarning, match="not sure"):
            c = cal.Isotonic(direction="auto").fit(s, y)
    else:
        c = cal.Isotonic(direction="auto").fit(s, y)
    assert (c.direction_ == "rising") == (rho > 0)


@pytest.mark.parametrize("kind", ["step", "linear", "centred"])
@pytest.mark.parametrize("smoothing", ["none", "laplace"])
def test_a_falling_map_is_the_rising_one_of_turned_scores(kind, smoothing):
    s, y, w = falling_sample()
    grid = np.linspace(-0.2, 1.2, 301) + 0.00317  # away from the cuts, which are closed on the left
    options = {"interpolation": kind, "smoothing": smoothing}
    down = cal.Isotonic(direction="falling", **options).fit(s, y, w)
    up = cal.Isotonic(**options).fit(-s, y, w)
    np.testing.assert_allclose(
        down.calibrate(grid, on_range="allow"), up.calibrate(-grid, on_range="allow"), atol=1e-12
    )
    values = down.calibrate(grid, on_range="allow")
    assert (np.diff(values) <= 0.0).all()
    assert down.map_.trend == -1
    assert down.blocks_[0] == 0
    assert down.blocks_[-1] == len(np.unique(s))


def test_small_rates_keep_their_digits_when_falling():
    c = cal.Isotonic(direction="falling").fit([0.1, 0.9, 0.9], [1, 1, 0], [1.0, 1e-20, 1.0])
    assert c.calibrate([0.9])[0] == pytest.approx(1e-20, rel=1e-12)


def test_bounds_hold_everywhere_and_one_block_too():
    s, y, _ = falling_sample()
    for kind in ("step", "linear", "centred"):
        p = (
            cal.Isotonic(interpolation=kind, y_min=0.25, y_max=0.5)
            .fit(-s, y)
            .calibrate(np.r_[-s, -9, 9])
        )
        assert p.min() >= 0.25
        assert p.max() <= 0.5
    assert cal.Isotonic(y_max=0.4).fit(s, y).calibrate([0.5]).max() <= 0.4


def test_wrong_options_are_refused():
    s, y, _ = falling_sample()
    for options, words in (
        ({"direction": "up"}, "direction of Isotonic must be 'rising' or 'falling' or 'auto'"),
        ({"direction": True}, "direction of Isotonic"),
        ({"y_min": -0.1}, "y_min of Isotonic must be None, or a number of at least 0"),
        ({"y_max": 1.5}, "y_max of Isotonic"),
        ({"y_min": 0.7, "y_max": 0.3}, "y_min of Isotonic must be at most y_max"),
    ):
        with pytest.raises(cal.errors.ParameterError, match=words):
            cal.Isotonic(**options).fit(s, y)


@pytest.mark.parametrize("kind", ["step", "linear", "centred"])
def test_falling_maps_are_saved_and_exported(kind, tmp_path):
    s, y, w = falling_sample()
    c = cal.Isotonic(interpolation=kind, direction="auto", y_min=0.01, y_max=0.9).fit(s, y, w)
    cal.save(c, tmp_path / "c.json")
    back = cal.load(tmp_path / "c.json")
    assert back.map == c.map_
    assert back.params["direction"] == "auto"
    grid = np.unique(np.r_[s, np.linspace(-1.0, 2.0, 211), c.map_.x])
    wanted = c.calibrate(grid, on_range="allow")
    connection = duckdb.connect()
    connection.execute("create table t as select unnest(?::double[]) as s", [grid.tolist()])
    sql = cal.to_sql(c, column="s", form="expression")
    found = connection.execute(f"select {sql} as p from t order by s").fetchnumpy()["p"]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    *create, query = cal.to_sql(c, column="s", table="t", into="p", form="lookup").statements
    for statement in create:
        connection.execute(statement)
    found = connection.execute(f"select p from ({query.rstrip('; ')}) order by s").fetchnumpy()["p"]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    scope: dict = {}
    exec(cal.to_python(c), scope)
    function = next(v for k, v in scope.items() if callable(v) and k == "calibrate")
    np.testing.assert_allclose([function(x) for x in grid.tolist()], wanted, atol=1e-12)


def test_falling_candidates_and_chains():
    s, y, _ = falling_sample(3000)
    with pytest.warns(cal.errors.AdviceWarning, match="run the wrong way"):
        auto = cal.AutoCalibrator(
            candidates=[cal.Isotonic(direction="falling", smoothing="laplace")]
        ).fit(s, y)
    assert auto.chosen_ == "Isotonic"
    assert auto.calibrate([0.05])[0] > auto.calibrate([0.95])[0]
    both = cal.CalibratedClassifier(
        lambda rows: rows[:, 0], cal.Isotonic(direction="auto"), cv="prefit"
    ).fit(s[:, None], y)
    assert both.calibrate(ENDS)[0] > both.calibrate(ENDS)[1]


@pytest.mark.parametrize("calibrator", [cal.Isotonic(), cal.ENIR()], ids=["Isotonic", "ENIR"])
def test_blocks_whose_rates_differ_by_rounding_are_one(calibrator):
    """The same weights in any order have one rate, though their sums differ in the last bits."""
    rng = np.random.default_rng(4)
    weight, y = rng.random(40), np.arange(40) % 3 == 0
    split = 0
    for _ in range(40):
        a, b = rng.permutation(40), rng.permutation(40)
        rates = [weight[i][y[i]].cumsum()[-1] / weight[i].cumsum()[-1] for i in (a, b)]
        split += rates[0] != rates[1]
        s = np.repeat([0.3, 0.6], 40)
        fitted = clone(calibrator).fit(s, y[np.append(a, b)], weight[np.append(a, b)])
        assert len(np.unique(fitted.calibrate([0.3, 0.6]))) == 1
    assert split > 5


def test_whole_weights_and_pure_blocks_are_compared_exactly():
    n = 2**30  # rates n/(2n + 1) and (n + 1)/(2n + 1) differ by 5e-10 and must stay apart
    table = ScoreTable.from_arrays([0.2, 0.2, 0.6, 0.6], [0, 1, 0, 1], [n + 1, n, n, n + 1])
    assert len(isotonic_blocks(table)[0]) == 2
    big = 2**51 - 1  # here by 2e-16
    table = ScoreTable.from_arrays([0.2, 0.2, 0.6, 0.6], [0, 1, 0, 1], [big, big - 1, big - 1, big])
    assert len(isotonic_blocks(table)[0]) == 2
    light = ScoreTable.from_arrays([0.2, 0.2, 0.6], [0, 1, 1], [1e-14, 0.1, 0.1])
    assert len(isotonic_blocks(light)[0]) == 2
