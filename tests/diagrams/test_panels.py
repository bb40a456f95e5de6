"""Reliability panels: the same numbers as single curves, and what the figure shows of them."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.diagrams.curve import map_curve, reliability_curve
from calibrant.diagrams.draw import panel_diagram, render
from calibrant.diagrams.panels import Panels, boosting_panels, reliability_panels
from calibrant.methods.boosting import AdaBoost


def simulate(n, seed=0, sharpness=0.4):
    """Labels, and probabilities that are too timid below sharpness 1."""
    random = np.random.default_rng(seed)
    z = random.normal(-0.3, 1.8, n)
    y = (random.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return y, 1 / (1 + np.exp(-sharpness * z))


def without_histogram(curve):
    return replace(curve, histogram_edges=np.arange(2.0), histogram=np.ones(1))


# --- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bins": 4, "binning": "mass"},
        {"band": None},
        {"band": "bootstrap", "level": 0.8},
        {"sample_weight": np.random.default_rng(0).gamma(1.0, 1.0, 400)},
    ],
)
def test_each_curve_is_that_of_its_predictions(options):
    y, p = simulate(400)
    predictions = {"raw": p, "squared": p**2, "tiny": p * 0.01}
    panels = reliability_panels(y, predictions, **options)
    assert panels.names == tuple(predictions)
    assert panels.lines == (None, None, None)
    for name, curve in zip(panels.names, panels.curves, strict=True):
        alone = reliability_curve(y, predictions[name], **options)
        assert without_histogram(curve) == without_histogram(alone)
        assert panels[name] is curve
    assert panels["raw"] == reliability_curve(y, p, **options)


@given(
    st.lists(st.tuples(*[st.floats(0, 1)] * 2, st.booleans()), min_size=1, max_size=30),
    st.sampled_from([1.0, 0.15, 0.01]),
)
def test_histograms_share_their_cells(rows, scale):
    first, second, y = (np.array(column) for column in zip(*rows, strict=True))
    panels = reliability_panels(y, {"a": first * scale, "b": second * scale})
    a, b = panels.curves
    np.testing.assert_array_equal(a.histogram_edges, b.histogram_edges)
    for curve, p in ((a, first * scale), (b, second * scale)):
        edges = curve.histogram_edges
        assert (edges[0], edges[-1]) == (0.0, 1.0) or max(p) <= edges[-1] or min(p) >= edges[0]
        inner = np.searchsorted(edges[1:-1], p, side="right")
        np.testing.assert_array_equal(curve.histogram, np.bincount(inner, minlength=len(edges) - 1))


def test_maps_are_lines_over_the_predictions():
    y, p = simulate(1000)
    platt, isotonic = cal.Platt(scale="raw").fit(p, y), cal.Isotonic().fit(p, y)
    predictions = {"raw": p, "Platt": platt.calibrate(p), "again": p}
    panels = reliability_panels(y, predictions, maps={"raw": platt, "again": isotonic.map_})
    assert panels.lines == (
        map_curve(platt, lo=0.0, hi=1.0),
        None,
        map_curve(isotonic, lo=0.0, hi=1.0),
    )
    assert panels.frame == (0.0, 1.0)


def test_frame_is_that_of_all():
    random = np.random.default_rng(0)
    p = random.random(50000) * 0.01
    y = random.random(50000) < p
    wider = reliability_panels(y, {"a": p}, binning="mass").frame
    assert 0.01 <= wider[1] <= 0.02
    assert reliability_panels(y, {"b": p / 4, "a": p}, binning="mass").frame == wider
    assert reliability_panels(y, {"a": p, "b": p * 50}, binning="mass").frame == (0.0, 0.5)
    assert reliability_panels(y, {"a": p, "b": p * 99}, binning="mass").frame == (0.0, 1.0)


def test_labels_and_columns():
    y, p = simulate(200)
    plain = reliability_panels(y, {"a": p})
    pairs = np.column_stack((1 - p, p))
    assert reliability_panels(np.where(y, "yes", "no"), {"a": pairs}) == plain
    assert reliability_panels(np.where(y, 1, 2), {"a": list(p)}, pos_label=1) == plain


def test_panels_are_a_value():
    y, p = simulate(200)
    panels = reliability_panels(y, {"a": p, "b": p**2}, maps={"a": cal.Platt().fit(p, y)})
    again = pickle.loads(pickle.dumps(panels))
    assert again == panels
    assert hash(again) == hash(panels)
    assert panels != reliability_panels(y, {"a": p, "c": p**2})
    with pytest.raises(AttributeError):
        panels.names = ("x",)
    with pytest.raises(KeyError):
        panels["c"]
    assert len(panels) == 2
    described = json.loads(json.dumps(panels.to_dict()))
    assert described["a"]["curve"]["fraction"] == panels["a"].fraction.tolist()
    assert described["b"]["map"] is None
    assert repr(panels) == "Panels(a, b; weight 200)"
    assert str(panels).startswith("a\npredictions")
    assert "\n\nb\npredictions" in str(panels)


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ([0.1, 0.9], "predictions must be a dict of names to probabilities.*list came"),
        ({}, "with one entry or more, but none came"),
        ({"a": [0.1, 0.5], "b": [0.1, 5]}, r"predictions\['b'\] must be probabilities in \[0, 1\]"),
        ({"a": [0.1, float("nan")]}, r"predictions\['a'\] must be finite"),
        ({"a": [0.1]}, r"y has 2 and predictions\['a'\] has 1"),
    ],
)
def test_bad_predictions(predictions, message):
    with pytest.raises(cal.errors.InputError, match=message):
        reliability_panels([0, 1], predictions)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"maps": {"b": None}},
            cal.errors.ParameterError,
            "names of maps must be among 'a', but 'b'",
        ),
        ({"maps": [1]}, cal.errors.ParameterError, "maps must be a dict"),
        ({"maps": {"a": cal.Platt()}}, cal.errors.InputError, "Fit it first"),
        ({"binning": "depth"}, cal.errors.ParameterError, "binning must be one of"),
        ({"bins": 0}, cal.errors.ParameterError, "bins must be a whole number"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        reliability_panels([0, 1], {"a": [0.2, 0.8]}, **options)


# --- boosting -----------------------------------------------------------------------------------


def boosted(labels=(0, 1), rounds=40):
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 4))
    y = np.asarray(labels)[(X.sum(axis=1) + random.normal(0, 1.5, 1500) > 0).astype(int)]
    model = AdaBoost("stump", n_estimators=rounds, random_state=0).fit(X[:500], y[:500])
    return model, X[500:], y[500:]


def test_panels_over_steps_of_boosting():
    model, X, y = boosted(("no", "yes"))
    panels = boosting_panels(model, X, y)
    assert panels.names == ("1 step", "4 steps", "8 steps", "32 steps", "40 steps")
    for name, f in zip(
        panels.names, model.staged_raw_score(X, steps=[1, 4, 8, 32, 40]), strict=True
    ):
        alone = reliability_curve(y, f, pos_label="yes")
        assert without_histogram(panels[name]) == without_histogram(alone)
    last = boosting_panels(model, X, y, steps=[40], bins=5, band=None, binning="mass")
    alone = reliability_curve(y, model.raw_score(X), bins=5, band=None, binning="mass")
    assert without_histogram(last["40 steps"]) == without_histogram(alone)


def test_boosting_pushes_predictions_away_from_0_and_1():
    model, X, y = boosted(rounds=128)
    panels = boosting_panels(model, X, y, steps=[1, 8, 128])
    outer = [curve.share[[0, 1, -2, -1]].sum() for curve in panels.curves]
    assert outer[0] == pytest.approx(1.0)
    assert outer[0] > outer[1] > outer[2]


def test_other_models_are_refused():
    with pytest.raises(
        cal.errors.InputError, match="fitted AdaBoost, with staged_raw_score, but object"
    ):
        boosting_panels(object(), [[1.0]], [1])


# --- the figure ---------------------------------------------------------------------------------


def panels_of(count, **options):
    y, p = simulate(600)
    return reliability_panels(y, {f"model {i}": p ** (1 + i / 4) for i in range(count)}, **options)


def lines(axes):
    return {line.get_label(): line for line in axes.lines}


def legend_texts(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_figure_shows_the_panels():
    y, p = simulate(600)
    platt = cal.Platt().fit(p, y)
    panels = reliability_panels(y, {"raw": p, "Platt": platt.calibrate(p)}, maps={"raw": platt})
    figure = panel_diagram(panels, title="A model")
    assert [axes.get_label() for axes in figure.axes] == [
        "reliability raw",
        "histogram raw",
        "reliability Platt",
        "histogram Platt",
    ]
    for curve, above, below in zip(panels.curves, figure.axes[::2], figure.axes[1::2], strict=True):
        drawn = lines(above)
        np.testing.assert_array_equal(drawn["predictions"].get_xdata(), curve.mean_p)
        np.testing.assert_array_equal(drawn["predictions"].get_ydata(), curve.fraction)
        bars = np.reshape(drawn["_band"].get_ydata(), (-1, 3))
        np.testing.assert_array_equal(bars[:, :2], np.column_stack((curve.lower, curve.upper)))
        stairs = below.patches[0].get_data()
        np.testing.assert_allclose(stairs.values, 100 * curve.share)
        np.testing.assert_array_equal(stairs.edges, curve.histogram_edges)
        assert below.get_xlabel() == "mean prediction"
        assert below.get_position().y1 < above.get_position().y0
    np.testing.assert_array_equal(
        lines(figure.axes[0])["fitted map"].get_ydata(), panels.lines[0].p
    )
    assert "fitted map" not in lines(figure.axes[2])
    assert [axes.get_title() for axes in figure.axes[::2]] == ["raw", "Platt"]
    assert legend_texts(figure) == ["ideal", "predictions", "fitted map", "95 % interval (exact)"]
    assert figure.texts[0].get_text() == "A model"


def test_all_columns_have_the_same_axes():
    figure = panel_diagram(panels_of(8, band=None))
    above, below = figure.axes[::2], figure.axes[1::2]
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    assert len({axes.get_ylim() for axes in below}) == len({axes.get_ylim() for axes in above}) == 1
    places = [axes.get_position() for axes in above]
    assert len({round(place.y0, 6) for place in places}) == 2
    assert len({round(place.x0, 6) for place in places}) == 4
    # numbers and words stand beside the first column only
    assert [bool(axes.get_ylabel()) for axes in above] == [True, *[False] * 3] * 2
    assert "95 % interval (exact)" not in legend_texts(figure)


def corner():
    random = np.random.default_rng(0)
    p = random.random(50000) * 0.008
    y = random.random(50000) < p
    return reliability_panels(y, {"a": p, "b": p / 2}, binning="mass")


FIGURES = {
    "one": lambda: panels_of(1),
    "one with a map": lambda: panels_of(1, maps={"model 0": cal.maps.Identity()}),
    "two": lambda: panels_of(2, maps={"model 1": cal.maps.Identity()}),
    "three": lambda: panels_of(3, maps={"model 1": cal.maps.Identity()}),
    "six": lambda: panels_of(6),
    "seven": lambda: panels_of(7),
    "thirteen": lambda: panels_of(13),
    "corner": corner,
    "long names": lambda: reliability_panels(
        [0, 1], {"a rather long name that takes some lines to say": [0.2, 0.8], "b": [0, 1]}
    ),
}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("title", [None, "A title of many words that no column could hold " * 2])
def test_nothing_is_cut_off_or_covered(name, title):
    figure = panel_diagram(FIGURES[name](), title=title)
    figure.canvas.draw()
    page = figure.bbox
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    boxes += [legend.get_window_extent() for legend in figure.legends]
    boxes += [text.get_window_extent() for text in figure.texts]
    for box in boxes:
        assert page.x0 <= box.x0 < box.x1 <= page.x1 + 0.5, "cut off at a side"
        assert page.y0 - 0.5 <= box.y0 < box.y1 <= page.y1 + 0.5, "cut off above or below"
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


def test_pictures_are_the_same_every_time():
    first, again = (render(panel_diagram(panels_of(3)), "svg") for _ in range(2))
    assert first == again


def test_nothing_global_is_touched():
    import matplotlib
    from matplotlib import pyplot

    settings_before, open_before = matplotlib.rcParams.copy(), pyplot.get_fignums()
    render(panel_diagram(panels_of(2), title="x"))
    assert dict.__eq__(settings_before, matplotlib.rcParams)
    assert pyplot.get_fignums() == open_before


def test_bad_diagrams():
    with pytest.raises(cal.errors.InputError, match="Panels must come, but dict came"):
        panel_diagram({"a": [0.1, 0.2]})


def test_without_matplotlib(monkeypatch):
    panels = panels_of(1)
    assert isinstance(panels, Panels)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(cal.errors.MissingExtraError, match=r"pip install 'calibrant\[cli\]'"):
        panel_diagram(panels)
