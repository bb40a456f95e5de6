"""Learning curves against a slow loop, and what their diagram shows."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import calibrant as cal
from calibrant.diagrams.draw import learning_diagram, render
from calibrant.diagrams.learning import LearningCurve, learning_curve
from calibrant.metrics.measures import MEASURES

METHODS = {"Platt": cal.Platt(), "Isotonic": cal.Isotonic(), "Histogram": cal.Histogram(bins=4)}


def simulate(n, seed=0, sharpness=0.4, ties=False):
    """Scores in [0, 1] that are too timid, and their labels."""
    random = np.random.default_rng(seed)
    z = random.normal(-0.3, 1.8, n)
    z = np.round(z, 1) if ties else z
    return 1 / (1 + np.exp(-sharpness * z)), random.random(n) < 1 / (1 + np.exp(-z))


def slow_curve(methods, scores, y, weight, sizes, repeats, seed, measure):
    """Fit to the first rows of a random order, judge on the others, one row set at a time."""
    random = np.random.default_rng(seed)
    values = np.empty((len(methods) + 1, len(sizes), repeats))
    for k in range(repeats):
        order = random.permutation(len(scores))
        for s, size in enumerate(sizes):
            fit, test = np.sort(order[:size]), np.sort(order[size:])
            judged = None if weight is None else weight[test]
            values[0, s, k] = measure(y[test], scores[test], sample_weight=judged)
            for m, method in enumerate(methods, start=1):
                drawn = None if weight is None else weight[fit]
                fitted = type(method)(**method.get_params()).fit(scores[fit], y[fit], drawn)
                p = fitted.calibrate(scores[test])
                values[m, s, k] = measure(y[test], p, sample_weight=judged)
    return values


def slow_measure(name):
    """The function behind a measure; two are parts of `cal.metrics.corp`."""

    def part(y, p, sample_weight):
        return getattr(cal.metrics.corp(y, p, sample_weight=sample_weight), name)

    return getattr(cal.metrics, name, part)


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "measure",
    [m for m, one in MEASURES.items() if m != "log_loss" and "clinical" not in one.groups],
)
@pytest.mark.parametrize("ties", [False, True])
def test_values_are_those_of_a_slow_loop(measure, ties):
    scores, y = simulate(300, ties=ties)
    sizes, methods = (20, 100), [*METHODS.values(), cal.SBB()]
    curve = learning_curve(
        methods, scores, y, sizes=sizes, repeats=3, measure=measure, random_state=5
    )
    slow = slow_curve(methods, scores, y, None, sizes, 3, 5, slow_measure(measure))
    np.testing.assert_allclose(curve.values, slow, rtol=1e-10, atol=1e-14)
    assert curve.names == ("uncalibrated", "Platt", "Isotonic", "Histogram", "SBB")


@pytest.mark.parametrize("measure", ["brier", "ece", "mce", "auc", "rmse", "calibration_loss"])
def test_weighted_values_are_those_of_a_slow_loop(measure):
    scores, y = simulate(300, ties=True)
    weight = np.random.default_rng(1).gamma(0.7, 1.0, 300)
    sizes = (20, 100)
    options = {"repeats": 3, "measure": measure, "random_state": 5, "sample_weight": weight}
    curve = learning_curve(METHODS, scores, y, sizes=sizes, **options)
    slow = slow_curve(
        METHODS.values(), scores, y, weight, sizes, 3, 5, getattr(cal.metrics, measure)
    )
    np.testing.assert_allclose(curve.values, slow, rtol=1e-10, atol=1e-14)


@given(st.data())
def test_any_small_data_agree_with_the_slow_loop(data):
    n = data.draw(st.integers(4, 30))
    scores = np.array(data.draw(st.lists(st.integers(0, 8), min_size=n, max_size=n))) / 8
    y = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    weight = np.array(data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))) / 3
    size, seed = data.draw(st.integers(1, n - 2)), data.draw(st.integers(0, 99))
    method = cal.Isotonic(smoothing="laplace")
    options = {"repeats": 2, "random_state": seed, "sample_weight": weight}
    for name in ("brier", "log_loss", "mce"):
        if name == "log_loss":
            scores = np.clip(scores, 0.01, 0.99)
        curve = learning_curve(method, scores, y, sizes=[size], measure=name, **options)
        slow = slow_curve([method], scores, y, weight, [size], 2, seed, getattr(cal.metrics, name))
        np.testing.assert_allclose(curve.values, slow, rtol=1e-9, atol=1e-14)


def test_maps_that_fall_are_judged_rightly():
    scores, y = simulate(400)
    curve = learning_curve(
        cal.Platt(), 1 - scores, y, sizes=[100], repeats=3, measure="auc", random_state=0
    )
    slow = slow_curve([cal.Platt()], 1 - scores, y, None, [100], 3, 0, cal.metrics.auc)
    np.testing.assert_allclose(curve.values, slow, rtol=1e-12)
    assert curve.mean[0, 0] < 0.5 < curve.mean[1, 0]


def test_means_errors_and_bands():
    scores, y = simulate(500)
    curve = learning_curve(METHODS, scores, y, sizes=[30, 60], repeats=7, level=0.9, random_state=0)
    np.testing.assert_allclose(curve.mean, curve.values.mean(axis=2))
    np.testing.assert_allclose(curve.standard_error, stats.sem(curve.values, axis=2))
    low, high = stats.t.interval(0.9, 6, curve.mean, stats.sem(curve.values, axis=2))
    np.testing.assert_allclose(curve.low, low)
    np.testing.assert_allclose(curve.high, high)
    assert (curve.repeats, curve.rows, curve.level) == (7, 500, 0.9)


def test_functions_are_given_rows():
    scores, y = simulate(200)
    words = np.where(y, "yes", "no")
    weight = np.random.default_rng(2).integers(1, 4, 200)
    seen = []

    def squared(labels, p, sample_weight):
        seen.append((labels, p, sample_weight))
        return np.average((labels - p) ** 2, weights=sample_weight)

    options = {"sizes": [50], "repeats": 2, "random_state": 3, "sample_weight": weight}
    curve = learning_curve(METHODS, scores, words, measure=squared, **options)
    named = learning_curve(METHODS, scores, words, **options)
    np.testing.assert_allclose(curve.values, named.values, rtol=1e-12)
    assert (curve.measure, curve.better) == ("squared", "smaller")
    assert len(seen) == 8
    assert all(len(column) == 150 for column in seen[0])
    assert set(seen[0][0]) == {0, 1}


def test_functions_without_weights_and_their_sense():
    from sklearn.metrics import average_precision_score, brier_score_loss

    scores, y = simulate(200)
    options = {"sizes": [50], "repeats": 2, "random_state": 3}
    theirs = learning_curve(METHODS, scores, y, measure=brier_score_loss, **options)
    ours = learning_curve(METHODS, scores, y, **options)
    np.testing.assert_allclose(theirs.values, ours.values, rtol=1e-12)
    precision = learning_curve(
        METHODS, scores, y, measure=average_precision_score, larger_is_better=True, **options
    )
    assert precision.better == "larger"
    known = learning_curve(METHODS, scores, y, measure=cal.metrics.auc, **options)
    assert known == learning_curve(METHODS, scores, y, measure="auc", **options)
    assert (known.measure, known.better) == ("AUC", "larger")


# --- draws --------------------------------------------------------------------------------------


def test_draws_do_not_depend_on_what_else_is_asked():
    scores, y = simulate(400)
    options = {"random_state": 11, "measure": "rmse"}
    full = learning_curve(METHODS, scores, y, sizes=[32, 64, 128], repeats=4, **options)
    assert full == learning_curve(METHODS, scores, y, sizes=(128, 32, 64, 32), repeats=4, **options)
    turned = learning_curve(
        dict(reversed(METHODS.items())), scores, y, sizes=[32, 64, 128], repeats=4, **options
    )
    np.testing.assert_array_equal(turned.values[1:], full.values[:0:-1])
    fewer = learning_curve(METHODS["Isotonic"], scores, y, sizes=[64], repeats=2, **options)
    np.testing.assert_array_equal(fewer.values, full.values[[0, 2], 1:2, :2])


def test_seeds():
    scores, y = simulate(200)

    def curve(seed):
        return learning_curve(cal.Platt(), scores, y, sizes=[40], repeats=3, random_state=seed)

    assert curve(1) == curve(1) == curve(np.random.default_rng(1))
    assert curve(1) != curve(2)
    assert curve(None) != curve(None)


def test_labels_and_columns():
    scores, y = simulate(200)
    options = {"sizes": [40], "repeats": 2, "random_state": 0}
    plain = learning_curve(METHODS, scores, y, **options)
    words = np.where(y, "yes", "no")
    assert learning_curve(METHODS, list(scores), words, **options) == plain
    pairs = np.column_stack((1 - scores, scores))
    assert learning_curve(METHODS, pairs, np.where(y, 2, 1), **options) == plain
    turned = np.where(y, "a", "b")
    assert learning_curve(METHODS, scores, turned, pos_label="a", **options) == plain
    own = {"Platt": cal.Platt(pos_label="a", classes=["a", "b"]), "Isotonic": cal.Isotonic()}
    mixed = learning_curve(own, scores, turned, pos_label="a", **options)
    np.testing.assert_array_equal(mixed.values, plain.values[:3])


def test_rows_without_weight_are_as_if_absent():
    scores, y = simulate(300)
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    some = weight > 0
    options = {"sizes": [32, 64], "repeats": 3, "random_state": 4}
    curve = learning_curve(METHODS, scores, y, sample_weight=weight, **options)
    assert curve == learning_curve(
        METHODS, scores[some], y[some], sample_weight=weight[some], **options
    )
    assert curve.rows == some.sum()
    unit = learning_curve(METHODS, scores, y, sample_weight=np.full(300, 1.0), **options)
    assert unit == learning_curve(METHODS, scores, y, **options)


def test_calibrators_stay_as_they_are():
    scores, y = simulate(200)
    fresh, fitted = cal.Platt(), cal.Isotonic().fit(scores, y)
    before = fitted.map_
    learning_curve([fresh, fitted], scores, y, sizes=[40], repeats=2, random_state=0)
    assert not hasattr(fresh, "map_")
    assert fitted.map_ is before


def test_names():
    scores, y = simulate(100)

    def names(calibrators):
        return learning_curve(calibrators, scores, y, sizes=[40], repeats=2).names[1:]

    assert names(cal.Platt()) == ("Platt",)
    assert names((cal.Platt(), cal.Isotonic())) == ("Platt", "Isotonic")
    pair = [cal.Isotonic(), cal.Isotonic(smoothing="laplace"), cal.Platt()]
    assert names(pair) == ("Isotonic", "Isotonic(smoothing='laplace')", "Platt")
    assert names({"mine": cal.Platt()}) == ("mine",)


def test_margins_are_read_through_the_sigmoid():
    scores, y = simulate(300)
    z = 8 * np.log(scores / (1 - scores))
    options = {"sizes": [50], "repeats": 2, "random_state": 0}
    curve = learning_curve(cal.Isotonic(), z, y, **options)
    assert curve.linked
    assert any("through the sigmoid" in note for note in curve.notes)
    shown = learning_curve(cal.Isotonic(), 1 / (1 + np.exp(-z)), y, **options)
    np.testing.assert_allclose(curve.values[0], shown.values[0], rtol=1e-12)
    # σ makes all of these 1, but they rank
    ranked = learning_curve(cal.Isotonic(), z + 1000, y, measure="auc", **options)
    np.testing.assert_allclose(
        ranked.values[0], learning_curve(cal.Isotonic(), z, y, measure="auc", **options).values[0]
    )
    assert ranked.notes == ()
    assert not shown.linked


def test_percentages_and_points_are_read_as_everywhere():
    scores, y = simulate(300)
    scores = scores.clip(0.01, 0.99).round(2)
    options = {"sizes": [50], "repeats": 2, "random_state": 0}
    shown = learning_curve(cal.Isotonic(), scores, y, **options)
    percent = learning_curve(cal.Isotonic(), np.rint(100 * scores), y, **options)
    np.testing.assert_allclose(percent.values, shown.values, rtol=1e-12)
    assert "look like percentages and were divided by 100" in percent.notes[0]
    assert percent.reading == "divided by 100"
    points = learning_curve(cal.Isotonic(), np.rint(1000 * scores), y, **options)
    rate = cal.evaluate(y, np.full(len(y), y.mean()), level=None).after["brier"]
    np.testing.assert_allclose(points.values[0], rate, atol=0.02)
    assert "only their order is judged" in points.notes[0]
    assert points.reading == "one rate for all rows"


def test_draws_of_one_class_are_kept_and_counted():
    scores = np.linspace(0.01, 0.99, 200)
    y = np.arange(200) >= 196
    curve = learning_curve(
        [cal.Platt(), cal.Isotonic()], scores, y, sizes=[10, 150], repeats=20, random_state=0
    )
    random = np.random.default_rng(0)
    orders = [random.permutation(200) for _ in range(20)]
    for size, count in zip((10, 150), curve.one_class, strict=True):
        assert count == sum(not y[order[:size]].any() for order in orders)
    assert curve.one_class[0] > curve.one_class[1]
    assert f"{curve.one_class.sum()} of 40 draws held one class only" in curve.notes


def test_too_large_sizes_are_dropped_and_named():
    scores, y = simulate(1030)
    curve = learning_curve(cal.Platt(), scores, y, repeats=2, random_state=0)
    assert curve.sizes.tolist() == [32, 64, 128, 256, 512]
    assert curve.notes == (
        "too few rows would be left to test on after 1024, 2048, 4096, 8192: dropped",
    )
    # one row in twenty is enough
    most = learning_curve(cal.Platt(), scores[:100], y[:100], sizes=[95, 96], repeats=2)
    assert most.sizes.tolist() == [95]


def test_infinite_log_loss_is_said_not_hidden():
    scores, y = simulate(500)
    curve = learning_curve(
        [cal.Platt(), cal.Isotonic()],
        scores,
        y,
        sizes=[16, 400],
        measure="log_loss",
        random_state=0,
    )
    isotonic = curve.values[2]
    assert np.isinf(isotonic).any()
    infinite = int(np.isinf(isotonic).sum())
    assert f"log loss of Isotonic is infinite in {infinite} of 20 draws" in curve.notes
    assert math.isinf(curve.mean[2, 0])
    assert math.isinf(curve.standard_error[2, 0])
    assert curve.low[2, 0] == curve.high[2, 0] == math.inf
    assert np.isfinite(curve.mean[:2]).all()
    assert "∞" in str(curve)
    assert json.loads(json.dumps(curve.to_dict(), allow_nan=False))["mean"][2][0] == "inf"
    assert curve.crossing("Isotonic", "Platt") == 16
    gap = curve.difference("Isotonic", "Platt")
    assert gap.mean[0] == math.inf
    assert np.isnan(curve.difference("Isotonic", "Isotonic").mean[0])
    assert curve.crossing("Isotonic", "Isotonic") is None


def test_platt_needs_less_data_than_isotonic_where_a_sigmoid_is_true():
    scores, y = simulate(20000, sharpness=0.3)
    curve = learning_curve(
        [cal.Platt(), cal.Isotonic()], scores, y, sizes=[32, 128, 512], random_state=0
    )
    assert (curve.difference("Isotonic", "Platt").low > 0).all()
    assert curve.crossing("Isotonic", "Platt") == 32
    assert curve.crossing("uncalibrated", "Platt") == 32


def test_isotonic_overtakes_where_no_sigmoid_is_true():
    random = np.random.default_rng(0)
    scores = random.random(30000)
    y = random.random(30000) < np.select([scores < 0.3, scores < 0.7], [0.05, 0.5], 0.6)
    curve = learning_curve(
        [cal.Platt(), cal.Isotonic()], scores, y, sizes=[32, 8192], random_state=0
    )
    assert curve.difference("Platt", "Isotonic").low[-1] > 0
    assert curve.crossing("Platt", "Isotonic") == 8192


# --- the value ----------------------------------------------------------------------------------


def made(values, sizes, better="smaller", names=None):
    values = np.asarray(values, dtype=float)
    names = names or ("uncalibrated", *(f"m{i}" for i in range(1, len(values))))
    counts = np.zeros(len(sizes), dtype=np.int64)
    return LearningCurve(
        names, np.array(sizes), values, 0.95, "Brier score", better, 100, counts, False
    )


def test_differences_are_paired():
    values = [[[0.0, 0.0]], [[0.5, 0.9]], [[0.4, 0.7]]]
    gap = made(values, [10]).difference("m1", "m2")
    assert gap.mean == pytest.approx([0.15])
    assert gap.standard_error == pytest.approx([0.05])
    reach = stats.t.ppf(0.975, 1) * 0.05
    assert (gap.low[0], gap.high[0]) == pytest.approx((0.15 - reach, 0.15 + reach))


def test_unknown_methods_are_refused():
    curve = made(np.zeros((2, 1, 2)), [10])
    for ask in (curve.difference, curve.crossing):
        with pytest.raises(
            cal.errors.ParameterError, match="one of 'uncalibrated', 'm1', but 'm2' came"
        ):
            ask("m1", "m2")


@pytest.mark.parametrize(
    ("second", "better", "size"),
    [
        ([2, 2, 2, 2], "smaller", None),
        ([0, 0, 0, 0], "smaller", 1),
        ([0, 2, 0, 0], "smaller", 4),
        ([0, 0, 0, 2], "smaller", None),
        ([2, 1, 1, 0], "smaller", 8),
        ([0, 0, 2, 2], "larger", 4),
    ],
)
def test_crossing_is_where_the_lead_stays(second, better, size):
    rows = [np.zeros((4, 2)), np.ones((4, 2)), np.repeat(np.array([second]).T, 2, axis=1)]
    assert made(rows, [1, 2, 4, 8], better).crossing("m1", "m2") == size


def test_curve_is_a_value():
    scores, y = simulate(200)
    curve = learning_curve(METHODS, scores, y, sizes=[32, 64], repeats=3, random_state=0)
    assert pickle.loads(pickle.dumps(curve)) == curve
    assert hash(pickle.loads(pickle.dumps(curve))) == hash(curve)
    with pytest.raises(ValueError, match="read-only"):
        curve.values[0] = 0
    with pytest.raises(AttributeError):
        curve.level = 0.5
    described = json.loads(json.dumps(curve.to_dict()))
    np.testing.assert_array_equal(described["values"], curve.values)
    np.testing.assert_array_equal(described["low"], curve.low)
    assert described["sizes"] == [32, 64]


def test_printing():
    curve = made([[[0.25, 0.25]] * 2, [[0.1, 0.2], [0.1, 0.1]]], [32, 64])
    assert repr(curve) == (
        "LearningCurve(Brier score of uncalibrated, m1; 2 sizes from 32 to 64, 2 draws of 100 rows)"
    )
    assert str(curve).splitlines() == [
        "Brier score (smaller is better), mean of 2 draws ± its error",
        "rows     uncalibrated               m1",
        "  32  0.2500 ± 0.0000  0.1500 ± 0.0500",
        "  64  0.2500 ± 0.0000  0.1000 ± 0.0000",
    ]


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": [0]}, "each of sizes must be a whole number of at least 1"),
        ({"sizes": [32.0]}, "each of sizes must be a whole number"),
        ({"sizes": []}, "sizes must be at least one whole number, but none came"),
        ({"sizes": 32}, "sizes must be whole numbers"),
        ({"sizes": "32"}, "sizes must be whole numbers"),
        ({"repeats": 1}, "repeats must be a whole number of at least 2"),
        ({"level": 95}, "level must be a finite number above 0 and below 1"),
        ({"measure": "f1"}, "measure must be one of 'log_loss', 'brier'.*'f1' came"),
        ({"measure": None}, "measure must be one of"),
        ({"larger_is_better": True}, "larger_is_better must be left out for 'brier'"),
        ({"larger_is_better": "yes"}, "larger_is_better must be True, False or None"),
        ({"random_state": "x"}, "random_state must be a seed"),
    ],
)
def test_bad_options(options, message):
    scores, y = simulate(100)
    with pytest.raises(cal.errors.ParameterError, match=message):
        learning_curve(cal.Platt(), scores, y, **options)


@pytest.mark.parametrize(
    ("calibrators", "message"),
    [
        (cal.Platt, "but the class Platt came"),
        (7, "but int came"),
        ([cal.Platt(), 7], "but int came"),
        ("plat", "Did you mean 'platt'"),
        ({"a": cal.Platt(), "b": None}, "but NoneType came as 'b'"),
        ([], "at least one"),
        ({}, "at least one"),
        ([cal.Platt(), cal.Platt()], "of different names.*Name them in a dict"),
        ({"uncalibrated": cal.Platt()}, "none of them 'uncalibrated'"),
        (cal.Platt(pos_label=0), "pos_label of Platt is 0.*Pass pos_label=0"),
    ],
)
def test_bad_calibrators(calibrators, message):
    scores, y = simulate(100)
    with pytest.raises(cal.errors.ParameterError, match=message):
        learning_curve(calibrators, scores, y.astype(int), sizes=[32])


@pytest.mark.parametrize(
    ("scores", "y", "options", "message"),
    [
        ([0.1, 0.2], [0, 1, 1], {}, "scores has 2 and y has 3"),
        ([0.1, float("nan")], [0, 1], {}, "scores must be finite"),
        ([0.1, 0.5, 0.9], [0, 1, 2], {}, "two classes"),
        ([0.1, 0.9] * 10, [0, 1] * 10, {}, "of 20 rows at most 19 can be drawn.*size is 32"),
        ([0.1], [1], {"sizes": [1]}, "of 1 rows at most 0"),
        ([0.1, 0.9], [0, 1], {"sizes": [1], "measure": "auc"}, "auc needs both classes.*left"),
        ([0.1, 0.9], [0, 1], {"sample_weight": [-1, 1]}, "sample_weight must be at least 0"),
    ],
)
def test_bad_data(scores, y, options, message):
    with pytest.raises(cal.errors.InputError, match=message):
        learning_curve(cal.Platt(), scores, y, **options)


@pytest.mark.parametrize("answer", [float("nan"), None, "0.2"])
def test_functions_must_return_a_number(answer):
    scores, y = simulate(100)

    def odd(y, p, sample_weight):
        return answer

    with pytest.raises(
        cal.errors.InputError, match=r"odd returned .* after calibration with 32 rows"
    ):
        learning_curve(cal.Platt(), scores, y, sizes=[32], measure=odd)


def test_progress_is_shown_only_on_demand(capfd):
    scores, y = simulate(100)
    options = {"sizes": [32], "repeats": 2, "random_state": 0}
    quiet = learning_curve(cal.Platt(), scores, y, **options)
    assert capfd.readouterr() == ("", "")
    assert learning_curve(cal.Platt(), scores, y, progress=True, **options) == quiet
    out, err = capfd.readouterr()
    assert out == ""
    assert "draws" in err


# --- the diagram --------------------------------------------------------------------------------


def legend_texts(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def drawn(axes):
    return {line.get_label().split(":")[0]: line for line in axes.lines}


def test_diagram_shows_the_curve():
    scores, y = simulate(600)
    curve = learning_curve(METHODS, scores, y, sizes=[32, 64, 256], repeats=3, random_state=0)
    figure = learning_diagram(curve, title="A model")
    (axes,) = figure.axes
    assert (axes.get_label(), axes.get_title()) == ("learning", "A model")
    assert axes.get_xlabel() == "calibration rows"
    assert axes.get_ylabel() == "Brier score (smaller is better)"
    assert (axes.get_xscale(), axes.xaxis.get_transform().base) == ("log", 2)
    lines = drawn(axes)
    assert list(lines) == list(curve.names)
    for name, mean in zip(curve.names, curve.mean, strict=True):
        np.testing.assert_array_equal(lines[name].get_xdata(), curve.sizes)
        np.testing.assert_array_equal(lines[name].get_ydata(), mean)
    bands = axes.collections[:-1]  # the last is the legend's
    assert len(bands) == 4
    for band, low, high in zip(bands, curve.low, curve.high, strict=True):
        box = band.get_paths()[0].get_extents()
        assert (box.y0, box.y1) == pytest.approx((low.min(), high.max()))
    ends = [f"{name}: {mean[-1]:.4f}" for name, mean in zip(curve.names, curve.mean, strict=True)]
    assert legend_texts(figure) == [*ends, "95 % band of the mean"]
    colors = [line.get_color() for line in axes.lines]
    assert len(set(colors)) == 4
    assert len({line.get_marker() for line in axes.lines}) == 4


def test_infinite_means_are_gaps():
    values = np.full((2, 3, 2), 0.5)
    values[1, 1] = math.inf
    figure = learning_diagram(made(values, [1, 2, 4]))
    shown = drawn(figure.axes[0])["m1"].get_ydata()
    np.testing.assert_array_equal(shown, [0.5, math.nan, 0.5])
    values[1, 2] = math.inf
    assert "m1: ∞" in legend_texts(learning_diagram(made(values, [1, 2, 4])))
    render(figure)


def test_small_values_keep_their_digits():
    values = np.full((2, 2, 2), 1.234e-5)
    curve = made(values, [32, 64])
    assert "m1: 1.23e-05" in legend_texts(learning_diagram(curve))
    assert "1.23e-05 ± 0.00e+00" in str(curve)
    assert "0.2000 ± 0.0000" in str(made(0.2 + values * [1, 2], [32, 64]))


def test_margins_are_named_in_the_legend():
    scores, y = simulate(300)
    curve = learning_curve(cal.Platt(), 10 * scores, y, sizes=[32], repeats=2, random_state=0)
    assert legend_texts(learning_diagram(curve))[0].startswith("uncalibrated, through σ: ")


def test_axes_of_ones_own():
    from matplotlib.figure import Figure

    curve = made(np.random.default_rng(0).random((3, 2, 4)), [32, 64])
    axes = Figure().subplots()
    assert learning_diagram(curve, ax=axes, title="mine") is axes.figure
    assert axes.get_title() == "mine"
    assert len(axes.get_legend().get_texts()) == 4


FIGURES = {
    "one size": made(np.full((2, 1, 2), 0.2), [100]),
    "many": made(np.random.default_rng(0).random((15, 9, 4)), [2**k for k in range(5, 14)]),
    "long name": made(
        np.full((2, 2, 2), 0.2), [32, 90], names=("uncalibrated", "Isotonic(smoothing='laplace')")
    ),
    "two": made(np.random.default_rng(0).random((3, 9, 4)), [2**k for k in range(5, 14)]),
    "large": made(np.random.default_rng(0).random((3, 2, 4)) * 1e-5, [10, 1_000_000]),
}


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off_or_covered(name):
    figure = learning_diagram(FIGURES[name], title="A title")
    figure.canvas.draw()
    page = figure.bbox
    boxes = [figure.axes[0].get_tightbbox(), figure.legends[0].get_window_extent()]
    for box in boxes:
        assert page.x0 <= box.x0 < box.x1 <= page.x1 + 0.5, "cut off at a side"
        assert page.y0 - 0.5 <= box.y0 < box.y1 <= page.y1 + 0.5, "cut off above or below"
    assert not boxes[0].overlaps(boxes[1])
    labels = [
        text.get_window_extent() for text in figure.axes[0].get_xticklabels() if text.get_text()
    ]
    seen = [box for box in labels if page.x0 <= box.x0 and box.x1 <= page.x1]
    assert not any(a.overlaps(b) for a, b in itertools.pairwise(seen))


def test_fifteen_methods_differ_in_colour_or_dashes():
    axes = learning_diagram(FIGURES["many"]).axes[0]
    styles = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in axes.lines}
    assert len(styles) == 15


def test_bad_diagrams():
    with pytest.raises(cal.errors.InputError, match="a LearningCurve must come, but list came"):
        learning_diagram([1])
    with pytest.raises(cal.errors.ParameterError, match="ax must be matplotlib Axes"):
        learning_diagram(FIGURES["two"], ax=3)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(cal.errors.MissingExtraError, match=r"pip install 'calibrant\[cli\]'"):
        learning_diagram(FIGURES["two"])


def test_importing_needs_neither_matplotlib_nor_scikit_learn():
    program = (
        "import sys; from calibrant.diagrams import draw, learning, panels\n"
        "print(sorted({'matplotlib', 'sklearn', 'pandas', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
