"""What diagrams of lines, several predictions, segments and log-odds show."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import calibrant as cal
from calibrant.diagrams.curve import map_curve, reliability_curve
from calibrant.diagrams.draw import map_diagram, panel_diagram, reliability_diagram, render
from calibrant.diagrams.draw.figures import curve_styles
from calibrant.diagrams.draw.reliability import class_diagram
from calibrant.diagrams.panels import reliability_panels, reliability_segments
from calibrant.maps import Identity, Interval, Logistic, Piecewise

STEP = Piecewise.step([0.2, 0.6], [0.0, 0.3, 0.9])
BENT = Piecewise.linear([0.1, 0.4, 0.8], [0.05, 0.2, 0.9])
SIGMOID = Logistic(0.5, (("x", -2.0),))
COOL = Logistic(0.0, (("z", 0.5),))


def simulate(n, seed=0, sharpness=1.0):
    random = np.random.default_rng(seed)
    z = random.normal(-0.5, 1.8, n)
    y = (random.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return y, 1 / (1 + np.exp(-sharpness * z))


def rare(n=20000):
    random = np.random.default_rng(5)
    p = random.beta(0.6, 200, n)
    return random.random(n) < p, p


def classes(n=400):
    random = np.random.default_rng(0)
    p = random.dirichlet([1, 1, 1], n)
    return (p.cumsum(axis=1) > random.random((n, 1))).argmax(axis=1), p


def panels(figure):
    return {axes.get_label(): axes for axes in figure.axes}


def lines(axes):
    return {line.get_label(): line for line in axes.lines}


def legend_texts(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def several(n=400):
    y, p = simulate(n)
    return y, {"raw": p, "Platt": p**1.2, "BLS": p**0.8}


# --- lines --------------------------------------------------------------------------------------


@pytest.mark.parametrize("curve", ["isotonic", "smooth"])
@pytest.mark.parametrize("band", ["consistency", "confidence"])
def test_lines_are_drawn_over_their_bands(curve, band):
    y, p = simulate(400)
    options = {"curve": curve, "band": band, "replicates": 50}
    found = reliability_curve(y, p, **options)
    figure = reliability_diagram(y, p, **options)
    axes = panels(figure)["reliability"]
    drawn = lines(axes)["predictions"]
    np.testing.assert_array_equal(drawn.get_xdata(), found.x)
    np.testing.assert_array_equal(drawn.get_ydata(), found.y)
    assert drawn.get_marker() == "None"
    area = next(patch for patch in axes.collections if patch.get_label() == "_band")
    corners = {tuple(corner) for path in area.get_paths() for corner in path.vertices}
    expected = {*zip(found.x, found.lower, strict=True), *zip(found.x, found.upper, strict=True)}
    assert expected <= corners
    where = "whole curve" if band == "consistency" else "at each place"
    assert legend_texts(figure)[-1] == f"95 % {band}, {where}"


def test_consistency_bars_of_bins():
    y, p = simulate(400)
    found = reliability_curve(y, p, band="consistency")
    figure = reliability_diagram(y, p, band="consistency")
    bars = np.reshape(lines(panels(figure)["reliability"])["_band"].get_ydata(), (-1, 3))
    np.testing.assert_array_equal(bars[:, :2], np.column_stack((found.lower, found.upper)))
    assert legend_texts(figure)[-1] == "95 % consistency, whole curve"
    all_bins = reliability_diagram(y, p, bands="simultaneous")
    assert legend_texts(all_bins)[-1] == "95 % interval (exact, all bins)"


# --- several predictions ------------------------------------------------------------------------


@pytest.mark.parametrize("curve", ["binned", "isotonic"])
def test_several_predictions_in_one_panel(curve):
    y, predictions = several()
    figure = reliability_diagram(y, predictions, curve=curve, band=None, title="Three")
    drawn = lines(panels(figure)["reliability"])
    assert set(drawn) == {"ideal", *predictions}
    for name, p in predictions.items():
        found = reliability_curve(y, p, curve=curve, band=None)
        np.testing.assert_array_equal(drawn[name].get_ydata(), found.y)
    styles = [(drawn[name].get_marker(), drawn[name].get_linestyle()) for name in predictions]
    assert len({marker for marker, _ in styles}) == len({dashes for _, dashes in styles}) == 3
    assert len(panels(figure)["histogram"].patches) == 3
    assert legend_texts(figure) == ["ideal", *predictions]
    tables = {name: cal.ScoreTable.from_arrays(p, y) for name, p in predictions.items()}
    again = reliability_diagram(tables, curve=curve, band=None, title="Three")
    assert render(again, "svg") == render(figure, "svg")


def test_styles_differ_in_colour_or_marker_or_dashes():
    styles = curve_styles([str(i) for i in range(24)])
    for one, other in itertools.combinations(styles, 2):
        assert (one.color, one.marker, str(one.dashes)) != (
            other.color,
            other.marker,
            str(other.dashes),
        )
    assert len({style.color for style in styles[:6]}) == 6
    assert len({style.marker for style in styles[:6]}) == 6
    assert len({str(style.dashes) for style in styles[:5]}) == 5


def test_a_map_over_several_predictions():
    y, predictions = several()
    figure = reliability_diagram(y, predictions, fitted_map=COOL)
    line = lines(panels(figure)["reliability"])["fitted map"]
    np.testing.assert_allclose(line.get_ydata(), COOL(line.get_xdata()))
    assert "map" in panels(reliability_diagram(y, predictions, fitted_map=SIGMOID))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"raw": [0.1, 0.2]}, "raw must not be given beside several predictions"),
        ({"names": ("a", "b")}, "names must not be given beside several predictions"),
        ({"layout": "rows"}, "layout must be one of 'panels', 'overlay'"),
        ({"segments": ["a", "b"], "fitted_map": STEP}, "fitted_map must not be given beside segm"),
        ({"segments": ["a", "b"], "ax": 3}, "ax must be matplotlib Axes or None, but int"),
        ({"segments": ["a", "b"], "layout": "overlay", "ax": 3}, "ax must be matplotlib Axes"),
    ],
)
def test_bad_options_beside_several(options, message):
    with pytest.raises(cal.errors.ParameterError, match=message):
        reliability_diagram([0, 1], {"a": [0.2, 0.8], "b": [0.1, 0.9]}, **options)


# --- segments -----------------------------------------------------------------------------------


def regions(n):
    return np.array(["north", "south", "west"])[np.arange(n) % 3]


def test_segments_get_a_panel_each():
    y, predictions = several()
    figure = reliability_diagram(y, predictions, segments=regions(400), title="Regions")
    found = reliability_segments(y, predictions, regions(400))
    assert list(panels(figure)) == [
        f"{what} {name}" for name in found.names for what in ("reliability", "histogram")
    ]
    for name, inner in zip(found.names, found.panels, strict=True):
        drawn = lines(panels(figure)[f"reliability {name}"])
        for each in predictions:
            np.testing.assert_array_equal(drawn[each].get_ydata(), inner[each].fraction)
    assert legend_texts(figure) == ["ideal", *predictions, "95 % interval (exact)"]
    assert render(figure, "svg") == render(panel_diagram(found, title="Regions"), "svg")


def test_segments_in_one_panel():
    y, p = simulate(400)
    figure = reliability_diagram(y, p, segments=regions(400), layout="overlay")
    assert list(panels(figure)) == ["reliability", "histogram"]
    assert {"north", "south", "west"} <= set(lines(panels(figure)["reliability"]))


# --- log-odds -----------------------------------------------------------------------------------


def test_log_odds_axes():
    y, p = rare()
    figure = reliability_diagram(y, p, axes="logit", binning="mass")
    panel, under = panels(figure)["reliability"], panels(figure)["histogram"]
    for axes in (panel, under):
        assert axes.get_xscale() == "logit"
    assert panel.get_yscale() == "logit"
    assert under.get_yscale() == "linear"
    assert panel.get_xlim() == panel.get_ylim() == under.get_xlim()
    ticks = [text.get_text() for text in under.get_xticklabels()]
    assert {"1e-4", "0.001", "0.01"} <= set(ticks)
    assert not len(panel.xaxis.get_minorticklocs())
    assert under.get_xlabel() == "mean predicted probability, log-odds scale"


def test_zero_and_one_are_drawn_at_the_edge():
    y, p = [0, 0, 1, 0, 1, 1, 1] * 10, [0.0, 0.05, 0.05, 0.5, 0.5, 0.95, 1.0] * 10
    for curve in ("binned", "isotonic", "smooth"):
        figure = reliability_diagram(y, p, curve=curve, axes="logit", replicates=20)
        drawn = lines(panels(figure)["reliability"])["predictions"]
        low, high = panels(figure)["reliability"].get_xlim()
        for values in (drawn.get_xdata(), drawn.get_ydata()):
            assert (values > low).all()
            assert (values < high).all()


def test_log_odds_of_before_after_and_map():
    y, p = simulate(800, sharpness=2.5)
    figure = reliability_diagram(y, COOL(p), raw=p, fitted_map=COOL, axes="logit")
    x, line = lines(panels(figure)["reliability"])["fitted map"].get_data()
    frame = map_curve(COOL, lo=x[0], hi=x[-1], axes="logit")
    np.testing.assert_allclose(line, np.clip(COOL(x), x[0], x[-1]))
    # evenly over the axis: a straight line there is drawn straight
    z = np.log(frame.x / (1 - frame.x))
    np.testing.assert_allclose(np.diff(z), np.diff(z).mean(), rtol=1e-6)


# --- maps ---------------------------------------------------------------------------------------


def test_maps_on_log_odds():
    axes = map_diagram(COOL, axes="logit").axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("logit", "logit")
    x, p = lines(axes)["fitted map"].get_data()
    assert (x[0], x[-1]) == pytest.approx((0.001, 0.999))
    np.testing.assert_allclose(p, COOL(x))
    margins = map_diagram(SIGMOID, axes="logit").axes[0]
    assert (margins.get_xscale(), margins.get_yscale()) == ("linear", "logit")
    steps = map_diagram(STEP, axes="logit").axes[0]
    assert min(lines(steps)["fitted map"].get_ydata()) == pytest.approx(0.001)


def test_dots_are_where_a_map_bends():
    bent, steps = map_diagram(BENT).axes[0], map_diagram(STEP).axes[0]
    np.testing.assert_allclose(lines(bent)["_corners"].get_xdata(), [0.1, 0.4, 0.8])
    np.testing.assert_allclose(lines(bent)["_corners"].get_ydata(), [0.05, 0.2, 0.9], atol=1e-9)
    assert not len(lines(steps)["_corners"].get_xdata())
    np.testing.assert_array_equal(lines(steps)["knots"].get_xdata(), [0.2, 0.6])


def test_bands_of_maps_on_log_odds():
    low, high = Logistic(-0.4, (("z", 0.5),)), Logistic(0.4, (("z", 0.5),))
    axes = map_diagram(Interval(low, high, COOL, 0.9), axes="logit").axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()][1] == "90 % band"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axes": "log"}, "axes must be one of 'probability', 'logit'"),
        ({"axes": "logit", "lo": 0.0, "hi": 0.5}, "lo and hi must lie between 0 and 1"),
    ],
)
def test_bad_map_options(options, message):
    with pytest.raises(cal.errors.ParameterError, match=message):
        map_diagram(COOL, **options)


# --- axes of one's own --------------------------------------------------------------------------


def test_every_diagram_takes_axes():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 8))
    grid = figure.subplots(3, 4)
    y, predictions = several()
    codes, p = classes()
    reliability_diagram(y, predictions, curve="isotonic", replicates=20, ax=grid[0, 0])
    reliability_diagram(y, predictions["raw"], axes="logit", ax=grid[0, 1])
    map_diagram(COOL, axes="logit", ax=grid[0, 2])
    map_diagram(BENT, ax=grid[0, 3])
    reliability_diagram(y, predictions["raw"], segments=regions(400), ax=list(grid[1, :3]))
    class_diagram(codes, p, ax=grid[2], curve="smooth", replicates=20, title="classes")
    reliability_diagram(
        y, predictions["raw"], segments=regions(400), layout="overlay", ax=grid[1, 3]
    )
    figure.canvas.draw()
    assert len(figure.axes) == 12
    assert [axes.get_title() for axes in grid[1, :3]] == ["north", "south", "west"]
    assert [axes.get_title() for axes in grid[2]] == ["top label", "0", "1", "2"]
    assert all(len(axes.lines) > 1 for axes in figure.axes)
    assert figure.get_suptitle() == "classes"


def test_as_many_axes_as_panels():
    from matplotlib.figure import Figure

    found = reliability_panels([0, 1], {"a": [0.2, 0.8], "b": [0.1, 0.9]})
    with pytest.raises(
        cal.errors.ParameterError, match="a list of 2 axes, one for each panel, but 1"
    ):
        panel_diagram(found, ax=Figure().subplots())
    with pytest.raises(cal.errors.ParameterError, match="across must be a whole number"):
        panel_diagram(found, across=0)


# --- nothing is cut off -------------------------------------------------------------------------


def crowded(**options):
    y, p = simulate(500)
    return reliability_diagram(y, {f"model {i}": p ** (1 + i / 8) for i in range(9)}, **options)


FIGURES = {
    "isotonic": lambda: reliability_diagram(*simulate(500), curve="isotonic", replicates=20),
    "smooth": lambda: reliability_diagram(*simulate(500), curve="smooth", replicates=20),
    "several": lambda: reliability_diagram(*several(), title="A title of some words " * 4),
    "nine": lambda: crowded(band=None),
    "nine lines": lambda: crowded(curve="isotonic", replicates=20),
    "long names": lambda: reliability_diagram(
        [0, 1], {"a rather long name of a model": [0.2, 0.8], "b": [0.1, 0.9]}
    ),
    "rare": lambda: reliability_diagram(*rare(), axes="logit", binning="mass"),
    "rare, isotonic": lambda: reliability_diagram(
        *rare(), axes="logit", curve="isotonic", replicates=20
    ),
    "very sure": lambda: reliability_diagram(
        [0, 1, 0, 1] * 20, [1e-8, 1 - 1e-8, 1e-5, 0.5] * 20, axes="logit"
    ),
    "one row": lambda: reliability_diagram([1], [1.0], axes="logit", curve="smooth", replicates=20),
    "segments": lambda: reliability_diagram(*simulate(300), segments=regions(300), replicates=20),
    "segments, odds": lambda: reliability_diagram(
        *rare(3000), segments=regions(3000), axes="logit", curve="isotonic", replicates=20
    ),
    "many segments": lambda: reliability_diagram(*simulate(900), segments=np.arange(900) % 24),
    "two classes across": lambda: class_diagram(*classes(), across=2),
    "classes, odds": lambda: class_diagram(
        *classes(), axes="logit", curve="isotonic", replicates=20
    ),
    "map": lambda: map_diagram(COOL, axes="logit", title="Half"),
    "map of steps": lambda: map_diagram(STEP, axes="logit"),
    "map of margins": lambda: map_diagram(SIGMOID, axes="logit"),
    "no map": lambda: map_diagram(Identity(), axes="logit"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off_or_covered(name):
    figure = FIGURES[name]()
    figure.canvas.draw()
    page = figure.bbox
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    boxes += [legend.get_window_extent() for legend in figure.legends]
    for box in boxes:
        assert page.x0 <= box.x0 < box.x1 <= page.x1 + 0.5, "cut off at a side"
        assert page.y0 - 0.5 <= box.y0 < box.y1 <= page.y1 + 0.5, "cut off above or below"
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            shown = [label for label in axis.get_ticklabels() if label.get_visible()]
            extents = [label.get_window_extent() for label in shown if label.get_text()]
            pairs = itertools.pairwise(extents)
            assert not any(one.overlaps(other) for one, other in pairs), "figures run together"
            words = axis.label.get_window_extent()
            assert not axis.label.get_text() or not any(map(words.overlaps, extents))


def test_figures_fit_a_column():
    for name in ("isotonic", "several", "rare", "map"):
        assert FIGURES[name]().get_size_inches()[0] == 3.3
    assert FIGURES["two classes across"]().get_size_inches()[0] <= 3.3


@pytest.mark.full
def test_pictures_are_the_same_every_time():
    for name in ("isotonic", "several", "rare, isotonic", "segments"):
        first, again = (render(FIGURES[name](), "svg") for _ in range(2))
        assert first == again


# --- names from the data, and lines of one point ------------------------------------------------


def test_names_are_shown_as_they_are():
    y, p = simulate(300)
    names = ["_new", "$5 to $6", r"$\frac{", "", "x" * 80]
    figure = reliability_diagram(y, dict.fromkeys(names, p), band=None)
    render(figure)
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown[:5] == ["ideal", " _new", r"\$5 to \$6", r"\$\frac{", " "]
    assert len(shown) == 6
    assert shown[5].endswith("x…")
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width
    grid = reliability_diagram(y, {"_old": p}, segments=np.array(["a$b$", r"$\frac{"])[y])
    render(grid)
    assert {r"a\$b\$", r"\$\frac{"} <= {ax.get_title() for ax in grid.axes}
    assert " _old" in [text.get_text() for text in grid.legends[0].get_texts()]


@pytest.mark.parametrize("curve", ["isotonic", "smooth"])
def test_a_line_of_one_point_is_seen(curve):
    figure = reliability_diagram([0, 1] * 20, [0.5] * 40, curve=curve)
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert lines["predictions"].get_marker() == "o"
    low, high = lines["_band"].get_ydata()[:2]
    assert low < 0.5 < high


def test_names_that_look_the_same_are_refused():
    y, p = simulate(40)
    with pytest.raises(cal.errors.InputError, match="two are called '1'"):
        reliability_diagram(y, {1: p, "1": p})
    with pytest.raises(cal.errors.InputError, match="two are called '1'"):
        reliability_segments(y, {1: p, "1": p}, y)
