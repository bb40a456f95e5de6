"""Reliability curves against slow twins, bands by simulation, and what the figures show."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.diagrams.curve import Frame, compare_curves, frame_of, map_curve, reliability_curve
from calibrant.diagrams.draw import map_diagram, reliability_diagram, render
from calibrant.maps import (
    Chain,
    Identity,
    Interval,
    Logistic,
    Mixture,
    Piecewise,
    Segmented,
    Softmax,
)
from twins.curves import naive_clopper_pearson, naive_curve

COLUMNS = ("mean_p", "fraction", "weight", "effective")


def simulate(n, seed=0, sharpness=1.0):
    """Labels, and probabilities that are right for sharpness 1, too bold above."""
    random = np.random.default_rng(seed)
    z = random.normal(-0.5, 1.8, n)
    y = (random.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return y, 1 / (1 + np.exp(-sharpness * z))


# --- the curve ----------------------------------------------------------------------------------

probabilities = st.one_of(
    st.integers(0, 20).map(lambda k: k / 20), st.floats(0, 1, allow_subnormal=False)
)
rows = st.lists(
    st.tuples(probabilities, st.booleans(), st.integers(0, 12).map(lambda k: k / 4)),
    min_size=1,
    max_size=40,
).filter(lambda some: any(w > 0 for _, _, w in some))


@given(rows, st.integers(1, 12), st.sampled_from(["width", "mass"]))
def test_curve_agrees_with_its_twin(some, bins, binning):
    p, positive, weight = (list(column) for column in zip(*some, strict=True))
    curve = reliability_curve(positive, p, bins=bins, binning=binning, sample_weight=weight)
    twin = naive_curve(positive, p, bins, binning, weight)
    assert len(curve) == len(twin)
    for name in COLUMNS:
        expected = [point[name] for point in twin]
        np.testing.assert_allclose(getattr(curve, name), expected, rtol=1e-12, atol=1e-300)
    assert (curve.lower <= curve.fraction).all()
    assert (curve.fraction <= curve.upper).all()
    assert (curve.edges[:, 0] <= curve.mean_p).all()
    assert (curve.mean_p <= curve.edges[:, 1]).all()
    assert curve.total == pytest.approx(sum(weight))
    assert curve.histogram.sum() == pytest.approx(sum(weight))


@given(
    st.lists(st.tuples(probabilities, st.booleans(), st.integers(0, 4)), min_size=1).filter(
        lambda some: any(w for _, _, w in some)
    ),
    st.sampled_from(["width", "mass"]),
    st.sampled_from(["exact", "bootstrap"]),
)
def test_counts_are_repeated_rows(some, binning, band):
    p, positive, count = (np.array(column) for column in zip(*some, strict=True))
    options = {"bins": 5, "binning": binning, "band": band, "replicates": 50}
    counted = cal.ScoreTable.from_counts(p, count * ~positive, count * positive)
    repeated = reliability_curve(np.repeat(positive, count), np.repeat(p, count), **options)
    assert reliability_curve(counted, **options) == repeated
    # weights move the points alike, but do not pretend to be as many rows
    weighted = reliability_curve(positive, p, sample_weight=count, **options)
    for name in ("edges", "fraction", "weight", "histogram"):
        np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name))
    assert (weighted.effective <= repeated.effective * (1 + 1e-12)).all()


@given(st.integers(0, 30), st.integers(1, 30), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_exact_band_is_clopper_pearson(k, n, level):
    k = min(k, n)
    curve = reliability_curve([1] * k + [0] * (n - k), [0.5] * n, level=level)
    expected = naive_clopper_pearson(k, n, level)
    assert (curve.lower[0], curve.upper[0]) == pytest.approx(expected, abs=1e-10)


def test_exact_band_holds_the_truth():
    random = np.random.default_rng(3)
    inside = total = 0
    for _ in range(300):
        p = random.random(300)
        curve = reliability_curve(random.random(300) < p, p)
        inside += int(((curve.lower <= curve.mean_p) & (curve.mean_p <= curve.upper)).sum())
        total += len(curve)
    assert 0.95 <= inside / total <= 0.99


def test_exact_band_of_weights_holds_the_truth():
    random = np.random.default_rng(4)
    inside = total = 0
    for _ in range(300):
        p = random.random(600)
        weight = random.gamma(1.0, 1.0, 600)
        curve = reliability_curve(random.random(600) < p, p, sample_weight=weight)
        inside += int(((curve.lower <= curve.mean_p) & (curve.mean_p <= curve.upper)).sum())
        total += len(curve)
    assert 0.94 <= inside / total <= 0.99


def test_bootstrap_band_comes_close_to_the_exact_one():
    y, p = simulate(20000)
    exact = reliability_curve(y, p)
    drawn = reliability_curve(y, p, band="bootstrap", replicates=10000)
    deviation = np.sqrt(exact.fraction * (1 - exact.fraction) / exact.weight)
    for end in ("lower", "upper"):
        gap = np.abs(getattr(exact, end) - getattr(drawn, end)) / deviation
        assert gap.max() < 0.25


def test_bootstrap_of_weights_is_that_of_the_rows():
    random = np.random.default_rng(6)
    n = 400
    y = random.random(n) < 0.3
    weight = random.gamma(0.7, 1.0, n) * np.where(y, 4.0, 1.0)
    curve = reliability_curve(
        y, np.full(n, 0.35), sample_weight=weight, band="bootstrap", replicates=5000
    )
    times = random.multinomial(n, np.full(n, 1 / n), size=5000)
    fraction = (times @ (weight * y)) / (times @ weight)
    lower, upper = np.quantile(fraction, (0.025, 0.975))
    spread = fraction.std()
    assert abs(curve.lower[0] - lower) < 0.25 * spread
    assert abs(curve.upper[0] - upper) < 0.25 * spread


def test_bootstrap_is_seeded():
    y, p = simulate(200)
    first, again = (reliability_curve(y, p, band="bootstrap", replicates=50) for _ in range(2))
    other = reliability_curve(y, p, band="bootstrap", replicates=50, random_state=1)
    assert first == again
    assert first != other


def test_the_scale_of_weights_does_not_matter_to_bands():
    y, p = simulate(300)
    plain = reliability_curve(y, p)
    heavy = reliability_curve(y, p, sample_weight=np.full(300, 100.0))
    np.testing.assert_allclose(heavy.lower, plain.lower, rtol=1e-9)
    np.testing.assert_allclose(heavy.upper, plain.upper, rtol=1e-9)
    np.testing.assert_allclose(heavy.effective, plain.weight)


def test_bins_are_those_of_the_2005_paper():
    curve = reliability_curve([0, 1, 0, 1, 1], [0.0, 0.1, 0.3, 0.7, 1.0], binning="width")
    expected = [[0.0, 0.1], [0.1, 0.2], [0.3, 0.4], [0.7, 0.8], [0.9, 1.0]]
    np.testing.assert_array_equal(curve.edges, expected)


def test_equal_mass_keeps_ties_together():
    p = [0.1] * 7 + [0.5] * 2 + [0.9]
    curve = reliability_curve([0, 1] * 5, p, bins=5, binning="mass")
    np.testing.assert_array_equal(curve.weight, [7, 2, 1])
    np.testing.assert_array_equal(curve.edges, [[0, 0.3], [0.3, 0.7], [0.7, 1]])


def test_equal_mass_up_to_the_rounding_of_sums():
    p = np.arange(30) / 30
    curve = reliability_curve([0, 1] * 15, p, binning="mass", sample_weight=np.full(30, 0.1))
    np.testing.assert_allclose(curve.effective, np.full(10, 3.0))
    nearly = cal.ScoreTable.from_counts([0.1, 0.2, 0.3], [999, 2, 999], [0, 0, 0])
    assert reliability_curve(nearly, bins=2, binning="mass").weight.tolist() == [1001, 999]


def test_bootstrap_of_a_bin_that_resampling_may_empty():
    curve = reliability_curve([1, 0], [0.2, 0.8], band="bootstrap")
    np.testing.assert_array_equal(curve.lower, [1, 0])
    np.testing.assert_array_equal(curve.upper, [1, 0])


def test_labels_and_columns():
    y, p = simulate(100)
    words = np.where(y == 1, "yes", "no")
    plain = reliability_curve(y, p)
    assert reliability_curve(words, np.column_stack((1 - p, p))) == plain
    assert reliability_curve(np.where(y == 1, 1, 2), p, pos_label=1) == plain
    assert reliability_curve(cal.ScoreTable.from_arrays(p, y)) == plain
    flipped = reliability_curve(words, np.column_stack((1 - p, p)), pos_label="no")
    np.testing.assert_allclose(
        flipped.fraction.mean(), reliability_curve(1 - y, 1 - p).fraction.mean()
    )


def test_curve_is_a_value():
    y, p = simulate(100)
    curve = reliability_curve(y, p, band=None)
    assert curve.level is curve.lower is curve.upper is None
    assert pickle.loads(pickle.dumps(curve)) == curve
    assert hash(curve) == hash(reliability_curve(y, p, band=None))
    with pytest.raises(ValueError, match="read-only"):
        curve.fraction[0] = 0.5
    described = json.loads(json.dumps(reliability_curve(y, p).to_dict()))
    assert described["band"] == "exact"
    assert len(described["lower"]) == len(described["fraction"]) == len(described["edges"])


def test_printing():
    curve = reliability_curve([0, 1] * 500, np.full(1000, 0.012), band=None, binning="width")
    assert str(curve).splitlines() == [
        "predictions     mean  fraction  weight",
        "[0, 0.1)     0.01200   0.50000    1000",
    ]
    assert repr(curve) == "Curve(1 bin of equal width, weight 1000, no band)"
    assert "[0.6, 1]" in str(reliability_curve([0, 1], [0.2, 1.0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [20.0, 80.0]), r"p must be probabilities in \[0, 1\]"),
        (([0, 1], [0.2, float("nan")]), "p must be finite: 1 of 2 is NaN"),
        (([0, 1], [0.2]), "y has 2 and p has 1"),
        (([], []), "at least one row"),
        (([0, 1], None), "p must be given"),
        ((cal.ScoreTable.from_counts([3.0], [1], [1]), None), r"probabilities in \[0, 1\]"),
        ((cal.ScoreTable.from_counts([0.3], [1], [1]), [0.3]), "but p came as well"),
        ((cal.ScoreTable.empty(), None), "empty"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(cal.errors.InputError, match=message):
        reliability_curve(*arguments)
    with pytest.raises(cal.errors.InputError, match=message):
        reliability_diagram(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 0}, "bins must be a whole number of at least 1"),
        ({"bins": 2.5}, "bins must be a whole number"),
        ({"binning": "depth"}, "binning must be one of 'width', 'mass'"),
        ({"band": "wald"}, "band must be one of 'auto', 'exact', 'bootstrap', 'c.*', None"),
        ({"level": 95}, "level must be a finite number above 0 and below 1"),
        ({"band": "bootstrap", "replicates": 0}, "replicates must be"),
        ({"band": "bootstrap", "random_state": "x"}, "random_state must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(cal.errors.ParameterError, match=message):
        reliability_curve([0, 1], [0.2, 0.8], **options)


def test_weights_do_not_go_with_a_table():
    table = cal.ScoreTable.from_counts([0.3], [1], [1])
    with pytest.raises(cal.errors.InputError, match="but sample_weight came as well"):
        reliability_curve(table, sample_weight=[1.0])
    with pytest.raises(cal.errors.InputError, match="raw must be a ScoreTable where y is one"):
        compare_curves(table, raw=[0.1, 0.2])


def test_before_and_after_share_their_cells():
    y, p = simulate(500)
    both = compare_curves(y, p * 0.01, raw=p)
    (after,), (before,) = both.curves, both.before
    np.testing.assert_array_equal(after.histogram_edges, before.histogram_edges)
    assert before == reliability_curve(y, p)
    assert (both.reading, frame_of((after, before))) == ("", Frame(0.0, 1.0))
    z = np.log(p / (1 - p))
    margins = compare_curves(y, p, raw=z)
    assert margins.reading == "through σ"
    beside = compare_curves(y, p, raw=z, fitted_map=cal.Platt().fit(z, y)).beside
    assert (beside.x[0], beside.x[-1]) == (z.min(), z.max())
    np.testing.assert_allclose(margins.before[0].mean_p, before.mean_p, rtol=1e-12)
    tables = [cal.ScoreTable.from_arrays(column, y) for column in (p, z)]
    assert compare_curves(tables[0], raw=tables[1]) == margins


# --- the line of a map --------------------------------------------------------------------------


def test_steps_of_a_map_are_jumps():
    step = Piecewise.step([0.2, 0.6], [0.1, 0.3, 0.9])
    line = map_curve(step)
    np.testing.assert_array_equal(line.knots, [0.2, 0.6])
    for knot, before, after in ((0.2, 0.1, 0.3), (0.6, 0.3, 0.9)):
        np.testing.assert_array_equal(line.p[line.x == knot][:2], [before, after])
    assert set(line.p) == {0.1, 0.3, 0.9}
    assert (np.diff(line.x) >= 0).all()


SIGMOID = Logistic(0.5, (("x", -2.0),))
STEP = Piecewise.step([0.2, 0.6], [0.1, 0.3, 0.9])


@pytest.mark.parametrize(
    ("fitted", "domain", "knots"),
    [
        (Identity(), "probability", []),
        (Piecewise.constant(0.3), "probability", []),
        (STEP, "probability", [0.2, 0.6]),
        (Piecewise([-1.0, 2.0], [0.1, 0.4], [0.2, 0.9], "logit"), "probability", "logit"),
        (Piecewise.linear([-3.0, 5.0], [0.1, 0.8]), "score", [-3.0, 5.0]),
        (Logistic(0.0, (("z", 0.3),)), "probability", []),
        (SIGMOID, "score", []),
        (Logistic(0.3, (("x", 0.0),)), "score", []),
        (Chain((SIGMOID, STEP)), "score", "chain"),
        (Chain((SIGMOID,)), "score", []),
        (Segmented(STEP, ("fr",), (SIGMOID,)), "probability", [0.2, 0.6]),
        (
            Mixture([0.5, 0.5], (STEP, Piecewise.step([0.4], [0.0, 1.0]))),
            "probability",
            [0.2, 0.4, 0.6],
        ),
    ],
)
def test_lines_follow_their_maps(fitted, domain, knots):
    line = map_curve(fitted)
    places = {
        "logit": [1 / (1 + np.exp(1.0)), 1 / (1 + np.exp(-2.0))],
        "chain": [(0.5 - np.log(q / (1 - q))) / 2 for q in (0.6, 0.2)],
    }
    expected = places[knots] if isinstance(knots, str) else knots
    assert line.domain == domain
    np.testing.assert_allclose(line.knots, expected, rtol=1e-12)
    # between the knots the polygon is the map, as finely as it was sampled
    x = np.random.default_rng(0).uniform(line.x[0], line.x[-1], 2000)
    away = np.abs(x[:, None] - np.append(line.knots, 1e9)).min(axis=1) > 1e-6
    drawn = np.interp(x, line.x, line.p)
    np.testing.assert_allclose(drawn[away], fitted(x)[away], atol=2e-3)


def test_line_of_an_interval_has_its_band():
    low, high = Piecewise.step([0.5], [0.0, 0.4]), Piecewise.step([0.7], [0.5, 1.0])
    line = map_curve(Interval(low, high, Piecewise.constant(0.4), 0.9), n=16)
    np.testing.assert_array_equal(line.knots, [0.5, 0.7])
    assert line.level == 0.9
    assert (line.lower <= line.p).all()
    assert (line.p <= line.upper).all()
    assert set(line.lower) == {0.0, 0.4}
    assert json.loads(json.dumps(line.to_dict()))["domain"] == "probability"


def test_lines_of_calibrators_and_files(tmp_path):
    y, p = simulate(400)
    calibrator = cal.Isotonic().fit(p, y)
    cal.save(calibrator, tmp_path / "c.json")
    line = map_curve(calibrator)
    assert line == map_curve(cal.load(tmp_path / "c.json")) == map_curve(calibrator.map_)
    assert len(line.knots) == len(calibrator.map_.x)


def test_very_many_knots_are_thinned():
    cuts = np.linspace(0.01, 0.99, 20001)
    line = map_curve(Piecewise.step(cuts, np.linspace(0, 1, 20002)))
    assert 2500 <= len(line.knots) <= 5000
    np.testing.assert_allclose(line.p, np.clip((line.x - 0.01) / 0.98, 0, 1), atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"fitted": cal.Isotonic()}, cal.errors.InputError, "Fit it first"),
        ({"fitted": Softmax(np.eye(3), np.zeros(3))}, cal.errors.InputError, "one score per class"),
        ({"fitted": STEP, "lo": 1.0, "hi": 0.0}, cal.errors.ParameterError, "lo must be below hi"),
        (
            {"fitted": STEP, "lo": float("nan")},
            cal.errors.ParameterError,
            "lo must be a finite number",
        ),
        (
            {"fitted": STEP, "lo": 0.0, "hi": 1.0, "n": 1},
            cal.errors.ParameterError,
            "n must be a whole number of at least 2",
        ),
    ],
)
def test_bad_maps(arguments, error, message):
    with pytest.raises(error, match=message):
        map_curve(**arguments)


# --- the figures --------------------------------------------------------------------------------


def panels(figure):
    return {axes.get_label(): axes for axes in figure.axes}


def lines(axes):
    return {line.get_label(): line for line in axes.lines}


def legend_texts(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_diagram_shows_the_curve():
    y, p = simulate(500)
    figure = reliability_diagram(y, p, title="A model")
    curve = reliability_curve(y, p)
    both = panels(figure)
    assert list(both) == ["reliability", "histogram"]
    drawn = lines(both["reliability"])
    np.testing.assert_array_equal(drawn["predictions"].get_xdata(), curve.mean_p)
    np.testing.assert_array_equal(drawn["predictions"].get_ydata(), curve.fraction)
    bars = np.reshape(drawn["_band"].get_ydata(), (-1, 3))
    np.testing.assert_array_equal(bars[:, :2], np.column_stack((curve.lower, curve.upper)))
    np.testing.assert_array_equal(drawn["ideal"].get_xdata(), drawn["ideal"].get_ydata())
    assert both["histogram"].get_xlabel() == "mean predicted probability"
    assert both["reliability"].get_ylabel() == "fraction of positives"
    assert both["reliability"].get_aspect() == 1
    assert both["reliability"].get_title() == "A model"
    assert both["histogram"].get_position().y1 < both["reliability"].get_position().y0
    assert both["histogram"].get_xlim() == both["reliability"].get_xlim()
    assert legend_texts(figure) == ["ideal", "predictions", "95 % interval (exact)"]
    stairs = both["histogram"].patches[0].get_data()
    np.testing.assert_allclose(stairs.values.sum(), 100)
    np.testing.assert_array_equal(stairs.edges, curve.histogram_edges)


def test_diagram_of_before_and_after_with_the_map():
    y, p = simulate(800, sharpness=2.5)
    calibrator = cal.Platt().fit(p, y)
    figure = reliability_diagram(y, calibrator.calibrate(p), raw=p, fitted_map=calibrator)
    drawn = lines(panels(figure)["reliability"])
    before = reliability_curve(y, p)
    np.testing.assert_array_equal(drawn["before"].get_ydata(), before.fraction)
    assert len(drawn["calibrated"].get_xdata()) == 10
    x = drawn["fitted map"].get_xdata()
    np.testing.assert_allclose(drawn["fitted map"].get_ydata(), calibrator.calibrate(x))
    assert legend_texts(figure) == [
        "ideal",
        "calibrated",
        "before",
        "fitted map",
        "95 % interval (exact)",
    ]
    assert len(panels(figure)["histogram"].patches) == 2
    assert drawn["before"].get_marker() != drawn["calibrated"].get_marker()


def test_maps_of_margins_get_their_own_panel():
    y, p = simulate(300)
    z = np.log(p / (1 - p))
    calibrator = cal.Isotonic().fit(z, y)
    figure = reliability_diagram(y, calibrator.calibrate(z), raw=z, fitted_map=calibrator)
    both = panels(figure)
    assert list(both) == ["reliability", "histogram", "map"]
    assert "before, through σ" in lines(both["reliability"])
    assert "fitted map" not in lines(both["reliability"])
    x = lines(both["map"])["fitted map"].get_xdata()
    assert (x[0], x[-1]) == (z.min(), z.max())
    assert list(panels(reliability_diagram(y, p, fitted_map=calibrator))) == list(both)
    assert "map" not in panels(reliability_diagram(y, p, fitted_map=STEP))


def test_one_margin_for_all_rows():
    figure = reliability_diagram([0, 1], [0.5, 0.5], raw=[3.0, 3.0], fitted_map=SIGMOID)
    assert "map" in panels(figure)


def test_band_and_names_are_honoured():
    y, p = simulate(300)
    figure = reliability_diagram(y, p, raw=p**2, band=None, names=("new", "old"), bins=4)
    drawn = lines(panels(figure)["reliability"])
    assert set(drawn) == {"ideal", "new", "old"}
    assert len(drawn["new"].get_xdata()) == 4
    figure = reliability_diagram(y, p, band="bootstrap", level=0.5)
    assert "50 % interval (bootstrap)" in legend_texts(figure)


def test_axes_of_ones_own():
    from matplotlib.figure import Figure

    y, p = simulate(300)
    figure = Figure()
    first, second = figure.subplots(1, 2)
    assert reliability_diagram(y, p, raw=p**2, ax=first, title="left") is figure
    assert map_diagram(STEP, ax=second, title="right") is figure
    assert figure.axes == [first, second]
    assert {"predictions", "calibrated", "before"} & set(lines(first)) == {"calibrated", "before"}
    assert (first.get_title(), second.get_title()) == ("left", "right")
    assert [text.get_text() for text in first.get_legend().get_texts()][1] == "calibrated"
    assert "fitted map" in lines(second)


def test_map_diagram_shows_knots_and_bands():
    axes = map_diagram(Interval(STEP, STEP, STEP, 0.9), title="steps").axes[0]
    np.testing.assert_array_equal(lines(axes)["knots"].get_xdata(), [0.2, 0.6])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "no change",
        "90 % band",
        "fitted map",
        "knots",
    ]
    assert "no change" not in lines(map_diagram(SIGMOID).axes[0])
    assert "knots" not in lines(map_diagram(SIGMOID).axes[0])


def corner(size, high=False):
    random = np.random.default_rng(5)
    p = random.beta(1, 3, 20000) * size
    y = random.random(20000) < p
    return (~y, 1 - p) if high else (y, p)


@pytest.mark.parametrize(
    ("size", "high", "seen"),
    [
        (0.02, False, (0, 0.02)),
        (0.19, False, (0, 0.2)),
        (0.019, True, (0.98, 1)),
        (0.29, False, (0, 0.3)),
        (0.45, True, (0.6, 1)),
        (0.8, False, (0, 1)),
        (1e-3, True, (0.999, 1)),
    ],
)
def test_small_corners_are_enlarged(size, high, seen):
    y, p = corner(size, high)
    axes = panels(reliability_diagram(y, p, bins=1, band=None))["reliability"]
    low, high = axes.get_xlim()
    assert axes.get_ylim() == (low, high)
    span = seen[1] - seen[0]
    assert (low, high) == pytest.approx((seen[0] - 0.02 * span, seen[1] + 0.02 * span))


def test_bins_of_few_rows_are_hollow_points_without_a_line():
    p = np.concatenate((np.full(40, 0.15), np.full(30, 0.25), np.full(3, 0.55), np.full(20, 0.75)))
    y = np.arange(len(p)) % 2
    figure = reliability_diagram(y, p, binning="width")
    axes = panels(figure)["reliability"]
    line, few = lines(axes)["predictions"], lines(axes)["_few"]
    assert np.isnan(line.get_ydata()).tolist() == [False, False, True, False]
    assert few.get_xdata() == pytest.approx([0.55])
    assert (few.get_markerfacecolor(), few.get_linestyle()) == ("white", "None")
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "bin of fewer than 10 rows" in texts
    light = reliability_diagram(y, p, binning="width", sample_weight=np.full(len(p), 0.01))
    assert "_few" in lines(panels(light)["reliability"])  # rows count, not what they weigh
    for other in ({"binning": "mass", "bins": 3}, {"curve": "isotonic"}):
        assert "_few" not in lines(panels(reliability_diagram(y, p, **other))["reliability"])


def test_a_thin_tail_does_not_shrink_the_rest():
    random = np.random.default_rng(5)
    p = random.beta(1, 300, 100_000)
    y = random.random(len(p)) < p
    assert p.max() > 0.03
    figure = reliability_diagram(y, p, binning="mass")
    for axes in figure.axes:
        assert axes.get_xlim() == pytest.approx((-0.0004, 0.0204))
    # what lies beyond is out of sight only where no point speaks for it
    far = np.append(p, 0.9), np.append(y, True)
    wide = reliability_diagram(far[1], far[0], binning="width")
    assert panels(wide)["reliability"].get_xlim()[1] > 1


def overconfident(**options):
    y, p = simulate(2000, sharpness=2.5)
    c = cal.Isotonic().fit(p, y)
    return reliability_diagram(y, c.calibrate(p), raw=p, fitted_map=c, **options)


def margins():
    y, p = simulate(500)
    z = 50 * np.log(p / (1 - p))
    c = cal.Platt().fit(z, y)
    return reliability_diagram(y, c.calibrate(z), raw=z, fitted_map=c, band="bootstrap")


FIGURES = {
    "calibrated": lambda: reliability_diagram(*simulate(2000)),
    "overconfident": overconfident,
    "title": lambda: overconfident(title="A title of many words that no column could hold " * 2),
    "names": lambda: overconfident(names=("a rather long name for a model", "its predecessor")),
    "margins": margins,
    "fifty rows": lambda: reliability_diagram(*simulate(50)),
    "no band": lambda: reliability_diagram(*simulate(50), band=None),
    "corner": lambda: reliability_diagram(*corner(0.02)),
    "corner, mass": lambda: reliability_diagram(*corner(0.02), binning="mass"),
    "tiny corner": lambda: reliability_diagram(*corner(1.5e-4), band=None),
    "tinier corner": lambda: reliability_diagram(*corner(1e-6), band=None),
    "high corner": lambda: reliability_diagram(*corner(1e-3, True), band=None),
    "one bin": lambda: reliability_diagram([0, 1, 1], [0.35] * 3),
    "one row at 0": lambda: reliability_diagram([0], [0.0]),
    "one row at 1": lambda: reliability_diagram([1], [1.0]),
    "many bins": lambda: reliability_diagram(*simulate(5000), bins=100),
    "map": lambda: map_diagram(STEP, title="Steps"),
    "map of margins": lambda: map_diagram(Logistic(3.0, (("x", 1e-4),))),
}


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off_or_covered(name):
    figure = FIGURES[name]()
    figure.canvas.draw()
    page = figure.bbox
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    legends = [legend.get_window_extent() for legend in figure.legends]
    for box in boxes + legends:
        assert page.x0 <= box.x0 < box.x1 <= page.x1 + 0.5, "cut off at a side"
        assert page.y0 - 0.5 <= box.y0 < box.y1 <= page.y1 + 0.5, "cut off above or below"
    for i, box in enumerate(boxes + legends):
        assert not any(box.overlaps(other) for other in (boxes + legends)[i + 1 :])
    assert figure.get_size_inches()[0] in (3.3, 6.6)


def test_pictures_are_the_same_every_time():
    for format, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        first, again = (render(overconfident(), format) for _ in range(2))
        assert first == again
        assert first.startswith(start)
    one, other = (render(FIGURES[name](), "svg") for name in ("one bin", "fifty rows"))
    import re

    clips = [set(re.findall(rb"url\(#([^)]+)\)", svg)) for svg in (one, other)]
    assert all(clips)
    assert not clips[0] & clips[1], "two pictures in one page must not share names"


def test_notebooks_get_a_picture():
    figure = reliability_diagram([0, 1], [0.2, 0.8])
    assert figure._repr_png_().startswith(b"\x89PNG")
    again = pickle.loads(pickle.dumps(figure))
    assert again._repr_png_() == figure._repr_png_()


def test_nothing_global_is_touched():
    import matplotlib
    from matplotlib import pyplot

    settings_before, open_before = matplotlib.rcParams.copy(), pyplot.get_fignums()
    render(overconfident(title="x"))
    map_diagram(STEP)
    assert dict.__eq__(settings_before, matplotlib.rcParams)
    assert pyplot.get_fignums() == open_before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ax": 3}, "ax must be matplotlib Axes or None, but int came"),
        ({"names": "new"}, "names must be two strings"),
        ({"names": ("a", "b", "c")}, "names must be two strings"),
        ({"binning": "depth"}, "binning must be one of"),
    ],
)
def test_bad_drawing_options(options, message):
    with pytest.raises(cal.errors.ParameterError, match=message):
        reliability_diagram([0, 1], [0.2, 0.8], **options)


def test_margins_have_no_place_on_given_axes():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    with pytest.raises(cal.errors.ParameterError, match="Draw it with map_diagram"):
        reliability_diagram([0, 1], [0.2, 0.8], raw=[-3, 4], fitted_map=SIGMOID, ax=axes)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (lambda: reliability_diagram([0, 1], [0.2, 0.8]), lambda: map_diagram(STEP)):
        with pytest.raises(cal.errors.MissingExtraError, match=r"pip install 'calibrant\[cli\]'"):
            draw()
    assert len(reliability_curve([0, 1], [0.2, 0.8])) == 2


def test_computing_and_importing_need_no_matplotlib():
    program = (
        "import sys; from calibrant.diagrams import curve as curves, draw\n"
        "curves.reliability_curve([0, 1], [0.2, 0.8])\n"
        "print(sorted({'matplotlib', 'sklearn', 'pandas', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
