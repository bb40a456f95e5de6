"""Master scales: grades, their boundaries on scores, and tests of each grade."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.errors import InputError, ParameterError
from calibrant.maps import Identity, Logistic, Piecewise
from calibrant.monitor import MasterScale

RNG = np.random.default_rng(0)


def test_boundaries_on_scores_divide_rows_as_those_on_probabilities():
    scores = RNG.normal(size=3000)
    y = RNG.random(3000) < 1 / (1 + np.exp(-2 * scores + 2))
    for calibrator in (cal.Platt(), cal.Isotonic(), cal.BLS()):
        fitted = calibrator.fit(scores, y)
        scale = MasterScale.of(fitted, boundaries=[0.02, 0.1, 0.3, 0.6])
        by_p = scale.grade(fitted.calibrate(scores))
        by_score = np.array(scale.names)[np.searchsorted(scale.scores, scores, side="right")]
        assert (by_p == by_score).all()


def test_a_falling_map_and_probabilities_it_never_gives():
    scale = MasterScale.of(Logistic(0.0, (("x", -1.0),)), boundaries=[0.2, 0.5])
    assert scale.scores.tolist() == pytest.approx([np.log(4.0), 0.0])
    steps = MasterScale.of(Piecewise.step([0.5], [0.2, 0.4]), boundaries=[0.1, 0.3, 0.9])
    assert steps.scores.tolist() == [-np.inf, 0.5, np.inf]


def test_tests_of_grades_equal_their_definitions():
    p = RNG.beta(1, 8, 2000)
    y = RNG.random(2000) < p * 1.4
    scale = MasterScale.of(boundaries=[0.05, 0.15])
    found = scale.check(y, p)
    grade = scale.grade(p)
    for row in found.rows:
        at = grade == row.name
        n, d, mean = at.sum(), y[at].sum(), p[at].mean()
        assert (row.rows, row.positive) == (n, d)
        assert row.predicted == pytest.approx(mean)
        assert row.jeffreys == pytest.approx(stats.beta.cdf(mean, d + 0.5, n - d + 0.5))
        assert row.binomial == pytest.approx(stats.binom.sf(d - 1, n, mean), rel=1e-6)
        assert row.binomial <= row.binomial_adjusted <= 1.0
    assert found.too_low
    assert "too low" in str(found)
    assert str(scale).count("\n") == 4


def test_false_verdicts_are_as_rare_as_promised():
    scale, wrong = MasterScale.of(grades=6), 0
    for _ in range(400):
        p = RNG.beta(1, 20, 1000)
        wrong += bool(scale.check(RNG.random(1000) < p, p).too_low)
    assert wrong <= 33  # 5 % and three deviations


def test_a_grade_without_rows_and_of_certain_ones():
    found = MasterScale.of(boundaries=[0.1, 0.5]).check([0, 0, 1], [0.05, 0.0, 0.9])
    assert found.rows[1].rows == 0
    assert found.rows[1].jeffreys_adjusted == 1.0
    assert "–" in str(found)


@pytest.mark.parametrize("p", [0.0, 1e-6, 1 - 1e-6, 1.0])
def test_rows_that_came_as_predicted_are_called_neither(p):
    y = [round(p)] * 1000
    found = MasterScale.of(boundaries=[0.1, 0.5]).check(y, [p] * 1000)
    assert (found.too_low, found.too_high) == ((), ())
    wrong = MasterScale.of(boundaries=[0.1, 0.5]).check([*y[1:], 1 - y[0]], [p] * 1000)
    assert (wrong.too_low, wrong.too_high) == ((("A",), ()) if p < 0.5 else ((), ("C",)))


def test_default_grades_and_names():
    scale = MasterScale.of()
    assert scale.names == tuple("ABCDEFGHIJ")
    assert scale.boundaries[0] == pytest.approx(0.0003)
    assert scale.boundaries[-1] == pytest.approx(0.3)
    assert len(MasterScale.of(grades=30).names) == 30
    named = MasterScale.of(boundaries=[0.1], names=["good", "bad"])
    assert named.grade([0.05, 0.1]).tolist() == ["good", "bad"]


def test_what_is_refused():
    for bad in ([0.5, 0.1], [0.0, 0.5], [], [0.2, 1.0], [[0.1]], ["a"], 0.5):
        with pytest.raises(ParameterError, match="boundaries"):
            MasterScale.of(boundaries=bad)
        with pytest.raises(ParameterError, match="boundaries"):
            MasterScale(bad, ("A", "B", "C"))
    with pytest.raises(ParameterError, match="names"):
        MasterScale(np.array([0.5]), ("A", "B", "C"))
    with pytest.raises(ParameterError, match="names"):
        MasterScale.of(boundaries=[0.5], names=["A"])
    with pytest.raises(ParameterError, match="grades"):
        MasterScale.of(grades=1)
    with pytest.raises(InputError, match="rise or fall"):
        MasterScale.of(Piecewise.step([0.3, 0.6], [0.1, 0.5, 0.2]), boundaries=[0.2])
    weighted = cal.ScoreTable.from_arrays([0.1, 0.9], [0, 1], [0.5, 2.0])
    with pytest.raises(InputError, match="weights"):
        MasterScale.of(Identity(), boundaries=[0.5]).check(weighted)
