"""Master scales: grades, their boundaries on scores, and tests of each grade."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from scipy import stats

import calibrant as cal
from calibrant.diagrams import grade_diagram
from calibrant.errors import InputError, ParameterError
from calibrant.maps import Identity, Logistic, Piecewise
from calibrant.monitor import MasterScale
from studies import experiment
from twins import tests as naive

#: what probcal 0.4.0 says of 10 of 100 rows at 5 %, and 40 of 200 at 40 %: p-values and intervals
JEFFREYS = [0.018188229560352, 0.99999999924147]
BINOMIAL = [0.028188294163415, 0.99999999954274]
JEFFREYS_90 = [(0.059075831051359, 0.15777473830394), (0.15680745413147, 0.24956182123287)]
EXACT_90 = [(0.055263237682539, 0.16371763227572), (0.15455098766643, 0.25224953200859)]

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


def one_grade(n, d, p, **options):
    """The row of a grade of n rows, d of them positive."""
    table = cal.ScoreTable.from_counts([p], [n - d], [d])
    return MasterScale.of(boundaries=[0.99999]).check(table, **options).rows[0]


@given(n=st.integers(1, 60), share=st.floats(0.0, 1.0), confidence=st.floats(0.5, 0.99))
@example(n=1, share=0.0, confidence=0.9)
@example(n=1, share=1.0, confidence=0.9)
def test_intervals_of_grades_equal_their_twins(n, share, confidence):
    d = round(n * share)
    row, tail = one_grade(n, d, 0.2, confidence=confidence), (1 - confidence) / 2
    assert row.clopper_pearson == pytest.approx(naive.exact_interval(n, d, tail), abs=1e-9)
    assert row.jeffreys_interval == pytest.approx(naive.jeffreys_interval(n, d, tail), abs=1e-5)
    low, high = row.jeffreys_interval
    assert row.clopper_pearson[0] <= low <= row.rate <= high <= row.clopper_pearson[1]


def test_a_light_is_not_green_where_the_prediction_is_below_the_interval():
    for d in range(40):
        row = one_grade(100, d, 0.1)
        assert (row.light != "green") == (row.predicted <= row.jeffreys_interval[0])
        assert (row.light == "red") == (
            row.predicted <= one_grade(100, d, 0.1, confidence=0.98).jeffreys_interval[0]
        )
    with pytest.raises(ParameterError, match="confidence must be"):
        one_grade(100, 3, 0.1, confidence=90)


def test_grades_are_those_of_probcal():
    y = [0] * 90 + [1] * 10 + [1] * 40 + [0] * 160
    rows = MasterScale.of(boundaries=[0.1]).check(y, [0.05] * 100 + [0.4] * 200).rows
    assert [row.jeffreys for row in rows] == pytest.approx(JEFFREYS, rel=1e-6)
    assert [row.binomial for row in rows] == pytest.approx(BINOMIAL, rel=1e-6)
    assert [row.light for row in rows] == ["amber", "green"]
    for row, jeffreys, exact in zip(rows, JEFFREYS_90, EXACT_90, strict=True):
        assert row.jeffreys_interval == pytest.approx(jeffreys, rel=1e-6)
        assert row.clopper_pearson == pytest.approx(exact, rel=1e-6)


def test_the_study_is_committed_as_it_comes_out(root):
    study = experiment(root, "grades")
    found = study.chances(0.1, 100)
    assert {name: round(100 * value, 1) for name, value in found.items()} == {
        "Clopper–Pearson": 93.6,
        "Jeffreys": 90.3,
        "amber or red": 4.0,
        "red": 1.0,
    }
    line = "| 10.0% | 100 | 93.6 | 90.3 | 4.0 | 1.0 |"
    assert line in (root / "experiments/results/grades.md").read_text(encoding="utf-8")


def test_the_picture_has_a_dot_and_two_intervals_for_each_grade():
    p = RNG.beta(1, 8, 2000)
    y = RNG.random(2000) < np.minimum(p * 1.5, 1.0)
    checks = MasterScale.of(boundaries=[0.02, 0.1, 0.3, 0.999]).check(y, p)
    ax = grade_diagram(checks, title="Grades").axes[0]
    rows = [row for row in checks.rows if row.rows]
    assert len(rows) < len(checks.rows)
    dots = [line for line in ax.lines if len(line.get_xdata()) == 1]
    assert [float(line.get_xdata()[0]) for line in dots] == [row.rate for row in rows]
    assert len({line.get_color() for line in dots}) > 1
    assert [t.get_text() for t in ax.get_yticklabels()] == [row.name for row in rows]
    spans = [tuple(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2]
    for row in rows:
        assert row.jeffreys_interval in spans
        assert (row.predicted, row.predicted) in spans
    figure = Figure()
    assert grade_diagram(checks, ax=figure.add_subplot()) is figure
    with pytest.raises(InputError, match="a GradeChecks must come, but list came"):
        grade_diagram([])


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
