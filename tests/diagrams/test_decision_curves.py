"""Decision curves: net benefit at every threshold, several models, bands, pictures."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.diagrams import DecisionCurve, decision_curve, decision_diagram
from calibrant.errors import InputError, ParameterError
from strategies import PROBABILITIES, REAL, WHOLE, rows
from twins import clinical as twin

RNG = np.random.default_rng(8)
P = RNG.beta(1, 4, 600)
Y = RNG.random(600) < P
W = RNG.gamma(2.0, 1.0, 600)
EXTREME = 1 / (1 + (1 / P - 1) ** 2)


@given(
    rows(PROBABILITIES, st.one_of(WHOLE, REAL), max_size=30, both_classes=True),
    st.lists(st.floats(0.01, 0.99), min_size=1, max_size=5),
)
def test_every_point_is_that_of_a_loop(data, thresholds):
    p, y, w = data
    curve = decision_curve(y, p, thresholds=thresholds, sample_weight=w)
    assert curve.thresholds.tolist() == sorted(set(thresholds))
    for at, threshold in enumerate(curve.thresholds.tolist()):
        wanted = twin.net_benefit(y, p, w, threshold)
        assert curve.net_benefit[0, at] == pytest.approx(wanted, abs=1e-12)
        one = cal.metrics.net_benefit(y, p, threshold=threshold, sample_weight=w)
        assert curve.treat_all[at] == pytest.approx(one.treat_all, abs=1e-12)
        assert curve.acted[0, at] == pytest.approx(one.acted, abs=1e-12)
        if curve.lower is not None:
            assert (curve.lower[0, at], curve.upper[0, at]) == pytest.approx(one.interval)


def test_models_are_named_and_tables_do_as_well_as_rows():
    thresholds = [0.1, 0.2, 0.4]
    both = {"model": P, "extreme": EXTREME}
    curve = decision_curve(Y, both, thresholds=thresholds, sample_weight=W)
    assert curve.names == ("model", "extreme")
    assert curve.net_benefit.shape == curve.lower.shape == curve.upper.shape == (2, 3)
    assert (curve.lower <= curve.net_benefit).all()
    assert (curve.net_benefit <= curve.upper).all()
    tables = {name: cal.ScoreTable.from_arrays(p, Y, W) for name, p in both.items()}
    again = decision_curve(None, tables, thresholds=thresholds)
    np.testing.assert_allclose(again.net_benefit, curve.net_benefit, atol=1e-12)
    np.testing.assert_allclose(again.lower, curve.lower, atol=1e-12)
    one = decision_curve(tables["model"], thresholds=thresholds, level=None)
    assert one.names == ("predictions",)
    assert one.lower is one.upper is one.level is None


def test_miscalibration_costs_and_order_alone_does_not_save():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 4, 50_000)
    y = rng.random(50_000) < p
    extreme = 1 / (1 + (1 / p - 1) ** 2)  # the same order
    curve = decision_curve(y, {"right": p, "extreme": extreme}, thresholds=[0.1, 0.2, 0.3])
    assert (curve.net_benefit[0] > curve.net_benefit[1]).all()
    assert (curve.net_benefit[0] > np.maximum(curve.treat_all, 0)).all()


def test_a_curve_is_a_value_and_prints():
    curve = decision_curve(Y, P)
    assert len(curve.thresholds) == 81
    assert curve == decision_curve(Y, P) == pickle.loads(pickle.dumps(curve))
    assert hash(curve) == hash(decision_curve(Y, P))
    lines = str(curve).splitlines()
    assert lines[0].split() == [
        "threshold",
        "predictions",
        "95",
        "%",
        "band",
        "treat",
        "all",
        "treat",
        "none",
    ]
    assert lines[-1] == "(11 of 81 thresholds)"
    back = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
    assert back["net_benefit"] == curve.net_benefit.tolist()


@pytest.mark.parametrize(
    ("largest", "step", "last"),
    [
        (1.0, 0.01, 0.99),
        (0.8, 0.01, 0.8),
        (0.1234, 0.01, 0.13),
        (0.1, 0.001, 0.1),
        (0.0342, 0.001, 0.035),
        (2e-5, 1e-6, 2e-5),
        (1e-9, 1e-6, 1e-6),
        (0.0, 0.01, 0.01),
    ],
)
def test_thresholds_end_where_predictions_end(largest, step, last):
    p = np.append(np.linspace(0.0, largest, 50), 0.0)
    curve = decision_curve(np.arange(51) % 2, {"one": p, "lower": p / 2})
    assert curve.thresholds[0] == pytest.approx(step)
    assert curve.thresholds[-1] == pytest.approx(last)
    np.testing.assert_allclose(np.diff(curve.thresholds), step)


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ([0.0, 0.5], "they run from 0 to 0.5"),
        ([0.5, 1.0], "they run from 0.5 to 1"),
        ([], "thresholds"),
        (["a"], "thresholds"),
        ([float("nan")], "thresholds"),
    ],
)
def test_bad_thresholds_are_refused(thresholds, message):
    with pytest.raises((InputError, ParameterError), match=message):
        decision_curve(Y, P, thresholds=thresholds)


# --- pictures -----------------------------------------------------------------------------------


def test_the_picture_has_a_line_for_each_model_and_the_two_others():
    curve = decision_curve(Y, {"model": P, "extreme": EXTREME})
    figure = decision_diagram(curve, title="Which model?")
    (panel,) = figure.axes
    lines = {line.get_label(): line for line in panel.get_lines()}
    assert list(lines) == ["model", "extreme", "treat all", "treat none"]
    np.testing.assert_array_equal(lines["extreme"].get_ydata(), curve.net_benefit[1])
    np.testing.assert_array_equal(lines["treat all"].get_ydata(), curve.treat_all)
    assert not lines["treat none"].get_ydata().any()
    low, high = panel.get_ylim()
    assert low < 0 < curve.upper.max() <= high
    assert panel.get_title() == "Which model?"
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[-1] == "95 % band, at each threshold"


def test_one_threshold_no_band_other_axes_and_other_values():
    from matplotlib.figure import Figure

    one = decision_curve(Y, P, thresholds=0.2, level=None)
    (panel,) = decision_diagram(one).axes
    assert panel.get_lines()[0].get_marker() == "o"
    assert not panel.collections
    own = Figure().add_subplot()
    assert decision_diagram(one, ax=own) is own.figure
    with pytest.raises(InputError, match="DecisionCurve must come, but ndarray came"):
        decision_diagram(P)
    assert isinstance(one, DecisionCurve)
