"""Which score has a probability: against a search of all doubles near it, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.errors import InputError, ParameterError
from calibrant.maps import Identity, Logistic, Piecewise
from calibrant.rules.piecewise import probability_range, score_at
from cases import CASES, each

RNG = np.random.default_rng(0)
SCORES = RNG.random(300)
LABELS = (RNG.random(300) < SCORES**2).astype(int)


def at(map_, score):
    return float(map_(np.array([score]))[0])


@each([case for case in CASES if case.monotone])
@pytest.mark.parametrize("p", [0.02, 0.1, 0.5, 0.9])
def test_the_threshold_divides_the_scores(case, p):
    calibrator = case.calibrator.fit(SCORES, LABELS)
    map_ = calibrator.map_
    if not map_.trend:
        with pytest.raises(InputError, match="rise or fall"):
            calibrator.score_at(p)
        return
    least, most = probability_range(map_)
    if not least <= p <= most:
        with pytest.raises(InputError, match="no score"):
            calibrator.score_at(p)
        return
    found = calibrator.score_at(p)
    assert found == calibrator.to_fitted().score_at(p)
    assert at(map_, found.score) >= p
    before = math.nextafter(found.score, -math.inf)
    if before >= 0.0 or not map_.takes_probabilities:
        assert at(map_, before) < p
    if found.probability == p:
        assert at(map_, found.low) == at(map_, found.high) == p
        if found.high < 1.0:
            assert at(map_, math.nextafter(found.high, math.inf)) > p


@given(
    st.lists(st.floats(-100, 100), min_size=1, max_size=6, unique=True),
    st.floats(0.0, 1.0),
    st.booleans(),
)
def test_steps(cuts, p, falling):
    values = np.linspace(0.05, 0.95, len(cuts) + 1)
    map_ = Piecewise.step(sorted(cuts), values[::-1] if falling else values)
    if not 0.05 <= p <= 0.95:
        with pytest.raises(InputError, match="no score"):
            score_at(map_, p)
        return
    found = score_at(map_, p)
    assert found.rising is not falling
    assert at(map_, found.score) >= p
    beyond = math.nextafter(found.score, math.inf if falling else -math.inf)
    if math.isfinite(beyond):
        assert at(map_, beyond) < p


def test_a_falling_sigmoid():
    found = score_at(Logistic(0.0, (("x", -2.0),)), 0.25)
    assert not found.rising
    assert found.score == pytest.approx(math.log(3.0) / 2.0)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan, "x", None, True])
def test_what_is_no_probability(wrong):
    with pytest.raises(InputError, match="probability must be"):
        score_at(Identity(), wrong)


def test_several_classes_and_segments_are_refused():
    scores, y = RNG.random((60, 3)), np.tile([0, 1, 2], 20)
    scaled = cal.VectorScaling().fit(scores, y)
    with pytest.raises(InputError, match="several classes"):
        scaled.to_fitted().score_at(0.5)
    segmented = cal.SegmentedCalibrator().fit(SCORES, LABELS, segments=np.arange(300) % 2)
    with pytest.raises(InputError, match="segments"):
        segmented.to_fitted().score_at(0.5)


def test_best_threshold_is_the_cheapest_of_all():
    calibrator = cal.Platt().fit(SCORES, LABELS)
    found = cal.best_threshold(calibrator, cost_fp=2.0, cost_fn=5.0, scores=SCORES)
    assert found.probability == pytest.approx(2.0 / 7.0)
    p = calibrator.calibrate(SCORES)

    def cost(act):
        return float(np.where(act, 2.0 * (1.0 - p), 5.0 * p).mean())

    assert found.expected_cost == pytest.approx(cost(found.score <= SCORES))
    assert found.expected_cost <= min(cost(cut <= SCORES) for cut in SCORES) + 1e-12
    assert found.cost_of_all == pytest.approx(cost(SCORES > -1))
    assert found.cost_of_none == pytest.approx(cost(SCORES > 2))


def test_thresholds_beyond_all_probabilities():
    steps = Piecewise.step([0.5], [0.2, 0.4])
    assert cal.best_threshold(steps, cost_fp=9.0, cost_fn=1.0).score == math.inf
    assert cal.best_threshold(steps, cost_fp=1.0, cost_fn=9.0).score == -math.inf
    with pytest.raises(ParameterError, match="cost_fp"):
        cal.best_threshold(steps, cost_fp=0.0, cost_fn=1.0)
    table = cal.ScoreTable.from_arrays([0.1, 0.9, 0.9], [0, 1, 0])
    found = cal.best_threshold(steps, cost_fp=1.0, cost_fn=2.0, scores=table)
    assert found.expected_cost == pytest.approx((0.4 + 2 * 0.6) / 3)


def test_costs_of_any_size_and_type():
    identity = Identity()
    assert cal.best_threshold(identity, cost_fp=1e308, cost_fn=1e308).score == 0.5
    assert cal.best_threshold(identity, cost_fp=1e308, cost_fn=3e307).probability == 1 / 1.3
    assert cal.best_threshold(identity, cost_fp=5e-324, cost_fn=5e-324).score == 0.5
    for one in (np.int64(1), np.float32(1.0)):  # cells of arrays and frames
        found = cal.best_threshold(identity, cost_fp=one, cost_fn=one)
        assert found == (0.5, 0.5, None, None, None)
        assert type(found.probability) is float
