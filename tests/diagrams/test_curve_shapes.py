"""Isotonic and smooth reliability curves: slow twins, what bands promise, log-odds, segments."""

from __future__ import annotations

import json
import random as plain_random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

import calibrant as cal
from calibrant.data.score_table import ScoreTable
from calibrant.diagrams.curve import (
    CurveOptions,
    Frame,
    band_of_drawn,
    compare_curves,
    frame_of,
    merged_cells,
    reliability_curve,
)
from calibrant.diagrams.panels import (
    class_reliability,
    reliability_panels,
    reliability_segments,
)
from studies import experiment
from twins.shapes import naive_blocks, naive_consistency, naive_smooth

probabilities = st.one_of(
    st.integers(0, 20).map(lambda k: k / 20), st.floats(0, 1, allow_subnormal=False)
)
rows = st.lists(
    st.tuples(probabilities, st.booleans(), st.integers(0, 12).map(lambda k: k / 4)),
    min_size=1,
    max_size=40,
).filter(lambda some: any(w > 0 for _, _, w in some))

CURVES = ("binned", "isotonic", "smooth")


def simulate(n, seed=0, sharpness=1.0):
    """Labels, and probabilities that are right for sharpness 1, too bold above."""
    random = np.random.default_rng(seed)
    z = random.normal(-0.5, 1.8, n)
    y = (random.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return y, 1 / (1 + np.exp(-sharpness * z))


def unequal(columns):
    return [list(column) for column in zip(*columns, strict=True)]


# --- the curves ---------------------------------------------------------------------------------


@given(rows)
def test_isotonic_curve_agrees_with_its_twin(some):
    p, positive, weight = unequal(some)
    curve = reliability_curve(positive, p, curve="isotonic", sample_weight=weight, band=None)
    twin = naive_blocks(positive, p, weight)
    # neighbours of equal fraction may or may not be joined: the line is the same
    ends = np.array([(a, v) for a, b, _, v in twin for a in (a, b)])
    np.testing.assert_allclose(curve.y, np.interp(curve.x, *ends.T), atol=1e-12)
    assert curve.weight.sum() == pytest.approx(sum(weight))
    assert (np.diff(curve.y) >= 0).all()
    assert (curve.edges[:, 0] <= curve.mean_p).all()
    assert (curve.mean_p <= curve.edges[:, 1]).all()


def test_isotonic_curve_is_the_isotonic_regression():
    y, p = simulate(3000)
    curve = reliability_curve(y, p, curve="isotonic", band=None)
    order = np.argsort(p)
    fitted = isotonic_regression(y[order].astype(float)).x
    np.testing.assert_allclose(np.interp(p[order], curve.x, curve.y), fitted, atol=1e-12)
    np.testing.assert_allclose(np.repeat(curve.fraction, curve.weight.astype(int)), fitted)


@given(rows, st.sampled_from([0.1, 0.8, 5.0]))
def test_smooth_curve_agrees_with_its_twin(some, sigma):
    p, positive, weight = unequal(some)
    options = {"curve": "smooth", "sigma": sigma, "sample_weight": weight, "band": None}
    curve = reliability_curve(positive, p, **options)
    scores = sorted({x for x, w in zip(p, weight, strict=True) if w > 0})
    assert len(curve) == len(scores)
    for place, at in enumerate(scores):
        twin = naive_smooth(positive, p, weight, sigma, at)
        found = curve.x[place], curve.y[place]
        np.testing.assert_allclose(found, twin[:2], rtol=1e-9, atol=1e-12)


def test_smooth_curve_knows_how_many_rows_it_rests_on():
    y, p = simulate(40)
    curve = reliability_curve(y, p, curve="smooth", sigma=0.7, band=None)
    for place, at in enumerate(np.sort(p)):
        size = naive_smooth(y, p, [1.0] * 40, 0.7, at)[2]
        assert curve.effective[place] == pytest.approx(size)
    assert curve.weight.sum() == 40


def test_far_outliers_do_not_widen_the_kernel():
    y, p = simulate(1000)
    plain = reliability_curve(y, p, curve="smooth", band=None)
    far = np.where(np.arange(1000) % 25 == 0, 0.0, p)
    outliers = reliability_curve(y, far, curve="smooth", band=None)
    assert np.median(outliers.effective) < 1.3 * np.median(plain.effective)


def test_kernels_widen_where_rows_are_few():
    widths = []
    for n in (100, 10000):
        y, p = simulate(n)
        curve = reliability_curve(y, p, curve="smooth", band=None)
        widths.append(np.median(curve.effective) / n)
    assert widths[0] > 1.5 * widths[1]


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("band", ["consistency", "confidence", None])
@pytest.mark.parametrize("axes", ["probability", "logit"])
def test_curves_are_values_ready_for_json(curve, band, axes):
    y, p = simulate(300)
    found = reliability_curve(y, p, curve=curve, band=band, axes=axes, replicates=50)
    assert found == reliability_curve(y, p, curve=curve, band=band, axes=axes, replicates=50)
    plain = json.loads(json.dumps(found.to_dict()))
    assert (plain["curve"], plain["axes"]) == (curve, axes)
    assert len(plain["x"]) == len(plain["y"]) > 3
    assert len(plain["histogram_edges"]) == len(plain["histogram"]) + 1
    assert sum(plain["histogram"]) == 300
    assert (np.diff(found.x) >= 0).all()
    if band is None:
        assert plain["lower"] is plain["upper"] is plain["level"] is None
    else:
        lower, upper = found.lower, found.upper
        assert len(lower) == len(upper) == len(found.x)
        assert (lower >= 0).all()
        assert (lower <= upper).all()
        assert (upper <= 1).all()
    if band == "confidence":
        assert (lower <= found.y).all()
        assert (found.y <= upper).all()


@pytest.mark.parametrize("curve", CURVES)
def test_counts_are_repeated_rows_and_the_scale_of_weights_is_nothing(curve):
    random = np.random.default_rng(1)
    p, count = random.random(50), random.integers(1, 5, 50)
    y = random.random(50) < p
    options = {"curve": curve, "band": "consistency", "replicates": 100}
    table = ScoreTable.from_counts(p, count * ~y, count * y)
    repeated = reliability_curve(np.repeat(y, count), np.repeat(p, count), **options)
    assert reliability_curve(table, **options) == repeated
    plain = reliability_curve(y, p, **options)
    heavy = reliability_curve(y, p, sample_weight=np.full(50, 8.0), **options)
    for name in ("x", "y", "lower", "upper", "effective"):
        np.testing.assert_allclose(getattr(heavy, name), getattr(plain, name), atol=1e-12)


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("band", ["consistency", "confidence"])
@pytest.mark.parametrize(
    ("y", "p"),
    [([0], [0.0]), ([1], [1.0]), ([0, 1], [0.5, 0.5]), ([1, 1, 1], [0.1, 0.2, 0.9])],
)
@pytest.mark.parametrize("axes", ["probability", "logit"])
def test_the_least_of_data(curve, band, y, p, axes):
    found = reliability_curve(y, p, curve=curve, band=band, axes=axes, replicates=20)
    for column in (found.x, found.y, found.lower, found.upper, found.histogram_edges):
        assert np.isfinite(column).all()
    assert (np.diff(found.histogram_edges) > 0).all()
    assert str(found).count("\n") == len(found)


def test_the_ends_of_probability_and_log_odds():
    y, p = [0, 1, 0, 1, 1], [0.0, 0.0, 0.3, 1.0, 1.0]
    for curve in CURVES:
        found = reliability_curve(y, p, curve=curve, axes="logit", replicates=20)
        frame = frame_of([found])
        assert 0 < frame.low < frame.high < 1
        assert (frame.inside(found.y) >= frame.low).all()
        assert (frame.inside(found.x) <= frame.high).all()
        assert found.histogram.sum() == 5


# --- many rows ----------------------------------------------------------------------------------


@given(st.integers(1, 400), st.integers(1, 30), st.integers(0, 5))
def test_cells_hold_the_table(n, half, seed):
    random = np.random.default_rng(seed)
    p = random.beta(0.3, 2, n)
    table = ScoreTable.from_arrays(p, random.random(n) < p, random.gamma(1, 1, n) + 0.01)
    keep = np.unique(random.integers(0, len(table), 3))
    cells = merged_cells(table, keep=keep, half=half)
    assert cells.weight.sum() == pytest.approx(table.total)
    assert cells.square.sum() == pytest.approx(table.negative_sq.sum() + table.positive_sq.sum())
    assert cells.weight @ cells.p == pytest.approx(table.weight @ table.scores)
    assert (np.diff(cells.p) > 0).all()
    if len(table) > 2 * half:
        assert len(cells.p) <= 2 * half + len(keep)
        assert set(keep) <= set(cells.starts)
    else:
        np.testing.assert_array_equal(cells.p, table.scores)


@pytest.mark.parametrize("curve", ["isotonic", "smooth"])
def test_bands_of_cells_are_those_of_the_rows(curve, monkeypatch):
    """What a merged table gives is within the noise of drawing what all its scores would give."""
    y, p = simulate(4000)
    options = {"curve": curve, "band": "consistency", "replicates": 400}
    merged = reliability_curve(y, p, **options)
    monkeypatch.setattr("calibrant.diagrams.curve.merged_cells.__defaults__", (None, 5000))
    whole = reliability_curve(y, p, **options)
    at = np.linspace(0.03, 0.97, 40)
    width = np.interp(at, whole.x, whole.upper - whole.lower)
    for end in ("lower", "upper"):
        gap = np.interp(at, merged.x, getattr(merged, end))
        gap -= np.interp(at, whole.x, getattr(whole, end))
        assert np.abs(gap / width).mean() < 0.08


def test_a_line_of_very_many_blocks_is_thinned():
    p = np.arange(4000) / 4000
    counts = np.round(p * 1000)
    curve = reliability_curve(
        ScoreTable.from_counts(p, 1000 - counts, counts), curve="isotonic", band=None
    )
    assert len(curve) > 900
    assert len(curve.x) <= 1001
    np.testing.assert_allclose(curve.y, curve.x, atol=0.01)
    assert len(str(curve).splitlines()) == 22


# --- what bands promise -------------------------------------------------------------------------


def test_consistency_band_is_that_of_labels_drawn_row_by_row():
    random = np.random.default_rng(0)
    p = np.round(random.random(60), 2)
    y = random.random(60) < p
    at = 0.5
    source = plain_random.Random(1)

    def isotonic_at(labels):
        blocks = naive_blocks(labels, p.tolist(), [1.0] * 60)
        ends = [(x, v) for a, b, _, v in blocks for x in (a, b)]
        return float(np.interp(at, *zip(*ends, strict=True)))

    twin = naive_consistency(p.tolist(), 0.9, 1500, isotonic_at, source)
    options = {"band": "consistency", "bands": "pointwise", "level": 0.9, "replicates": 5000}
    curve = reliability_curve(y, p, curve="isotonic", **options)
    found = np.interp(at, curve.x, curve.lower), np.interp(at, curve.x, curve.upper)
    np.testing.assert_allclose(found, twin, atol=0.03)

    def in_one_bin(labels):
        return sum(labels) / 60

    twin = naive_consistency(p.tolist(), 0.9, 1500, in_one_bin, source)
    curve = reliability_curve(y, p, bins=1, **options)
    np.testing.assert_allclose((curve.lower[0], curve.upper[0]), twin, atol=0.018)


def truth_of(p, sharpness):
    """The probability behind each prediction of `simulate`."""
    return 1 / (1 + (1 / p - 1) ** (1 / sharpness))


def coverage(curve, band, n, sets, sharpness=1.0, weights=False, draws=200):
    """How often a band holds what it is for, at nine quantiles of the predictions.

    A consistency band is for the curve of calibrated predictions, a confidence band for the
    true probability of each prediction.
    """
    held = []
    for seed in range(sets):
        y, p = simulate(n, seed, sharpness)
        w = np.random.default_rng(seed).gamma(2, 1, n) if weights else None
        options = {"curve": curve, "band": band, "replicates": draws, "random_state": seed}
        options["bands"] = "pointwise"
        found = reliability_curve(y, p, sample_weight=w, **options)
        at = np.quantile(p, [0.02, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.98])
        lower, upper = np.interp(at, found.x, found.lower), np.interp(at, found.x, found.upper)
        own = np.interp(at, found.x, found.y)
        value = own if band == "consistency" else truth_of(at, sharpness)
        held.append((lower <= value) & (value <= upper))
    return np.mean(held, axis=0)


def coverage_of_bins(n, sets, weights=False):
    """How often the consistency band of a bin of equal weight holds its fraction."""
    held = []
    for seed in range(sets):
        y, p = simulate(n, seed)
        w = np.random.default_rng(seed).gamma(2, 1, n) if weights else None
        options = {"binning": "mass", "bins": 5, "band": "consistency", "replicates": 400}
        options["bands"] = "pointwise"
        found = reliability_curve(y, p, sample_weight=w, random_state=seed, **options)
        held.append((found.lower <= found.y) & (found.y <= found.upper))
    return np.mean(held, axis=0)


@pytest.mark.parametrize("curve", ["isotonic", "smooth"])
def test_calibrated_predictions_stay_in_their_consistency_band(curve):
    held = coverage(curve, "consistency", 400, 60)
    # 60 sets of nine places that go together: a standard error of .01 to .02 on the mean
    assert 0.90 <= held.mean() <= 0.985
    assert held.min() >= 0.8


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.full
def test_calibrated_bins_stay_in_their_consistency_band(weights):
    held = coverage_of_bins(400, 100, weights)
    # 500 bins: a standard error of .01; fractions are steps of 1/80, so a little more is held
    assert 0.93 <= held.mean() <= 0.985


@pytest.mark.parametrize("curve", CURVES)
def test_wrong_predictions_leave_their_consistency_band(curve):
    y, p = simulate(3000, sharpness=2.0)
    options = {"curve": curve, "band": "consistency", "replicates": 200}
    found = reliability_curve(y, p, bands="pointwise", **options)
    assert ((found.y < found.lower) | (found.y > found.upper)).mean() > 0.6
    whole = reliability_curve(y, p, **options)
    assert whole.bands == "simultaneous"
    assert whole.leaves_band is True
    assert (whole.upper - whole.lower).mean() > (found.upper - found.lower).mean()


@pytest.fixture(scope="module")
def band_study(root):
    return experiment(root, "band_coverage")


@pytest.mark.full
def test_simultaneous_bands_hold_whole_curves(band_study, monkeypatch):
    """And pointwise ones do not: a calibrated isotonic curve leaves its own in most samples."""
    few = {kind: band_study.PREDICTIONS[kind] for kind in ("normal log-odds", "five values")}
    monkeypatch.setattr(band_study, "PREDICTIONS", few)
    shares = band_study.held(80, sizes=(300,), seed=4)
    noise = 4 * np.sqrt(0.95 * 0.05 / 80)
    for held in shares.values():
        for (_, band, where), share in held.items():
            if where == "simultaneous":
                assert share >= 0.95 - noise, (band, where)
    smooth = shares["normal log-odds", 300]
    assert smooth["isotonic", "consistency", "pointwise"] < 0.6
    assert smooth["isotonic", "consistency", "simultaneous"] < 1.0
    assert "| consistency, isotonic | simultaneous |" in band_study.page(80, 1.0, shares)


def test_a_simultaneous_band_around_the_curve_holds_a_rising_truth():
    missed = {"isotonic": 0, "binned": 0}
    for seed in range(60):
        y, p = simulate(500, seed, 2.0)
        for curve in missed:
            options = {"curve": curve, "band": "confidence", "bands": "simultaneous"}
            options |= {"binning": "width"}
            found = reliability_curve(y, p, level=0.9, **options)
            truth = truth_of(found.x, 2.0)
            if curve == "binned":
                place = np.minimum((p * 10).astype(int), 9)
                truth = [truth_of(p[place == b], 2.0).mean() for b in np.unique(place)]
            missed[curve] += bool(((truth < found.lower) | (truth > found.upper)).any())
            assert found.leaves_band is False
    assert max(missed.values()) <= 12  # 6 expected at most, and 2.6 standard deviations


def test_what_a_simultaneous_band_does_with_drawn_curves():
    drawn = np.random.default_rng(0).beta(0.3, 3.0, (500, 30))
    drawn[:, 7] = 0.0
    low, high = band_of_drawn(drawn, 0.9, True)
    inside = ((low - 1e-12 <= drawn) & (drawn <= high + 1e-12)).all(axis=1)
    assert inside[250:].sum() == 226  # of the half that sizes it: 0.9 · 251, rounded up
    assert low[7] == 0.0
    assert high[7] < 0.02
    pointwise = band_of_drawn(drawn, 0.9, False)
    assert ((pointwise[0] <= drawn) & (drawn <= pointwise[1])).all(axis=1).mean() < 0.3


@pytest.mark.parametrize("sharpness", [1.0, 2.0])
@pytest.mark.parametrize("curve", ["isotonic", "smooth"])
def test_confidence_bands_hold_the_truth(curve, sharpness):
    held = coverage(curve, "confidence", 400, 50, sharpness)
    assert held.mean() >= 0.92
    assert held.min() >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(("n", "sets"), [(100, 400), (1000, 300), (8000, 100)])
@pytest.mark.parametrize("curve", ["isotonic", "smooth"])
def test_consistency_bands_in_a_large_simulation(curve, n, sets, weights):
    held = coverage(curve, "consistency", n, sets, weights=weights)
    assert 0.92 <= held.mean() <= 0.98
    assert held.min() >= 0.87


@pytest.mark.slow
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(("n", "sets"), [(100, 1000), (1000, 400)])
def test_consistency_bars_in_a_large_simulation(n, sets, weights):
    held = coverage_of_bins(n, sets, weights)
    assert 0.94 <= held.mean() <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize("sharpness", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("n", "sets"), [(100, 400), (1000, 300), (8000, 100)])
@pytest.mark.parametrize("curve", ["isotonic", "smooth"])
def test_confidence_bands_in_a_large_simulation(curve, n, sets, sharpness):
    held = coverage(curve, "confidence", n, sets, sharpness)
    assert held.mean() >= 0.93
    assert held.min() >= 0.85


# --- options ------------------------------------------------------------------------------------


def test_what_auto_and_confidence_mean():
    y, p = simulate(200)
    assert reliability_curve(y, p).band == "exact"
    assert reliability_curve(y, p, band="confidence") == reliability_curve(y, p, band="exact")
    for curve in ("isotonic", "smooth"):
        found = reliability_curve(y, p, curve=curve, replicates=20)
        assert (found.band, found.bands) == ("consistency", "simultaneous")
    assert reliability_curve(y, p).bands == "pointwise"
    none = reliability_curve(y, p, band=None)
    assert (none.bands, none.leaves_band) == (None, None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"curve": "spline"},
            "curve must be one of 'binned', 'isotonic', 'smooth', 'belt', but 'spline'",
        ),
        ({"axes": "log"}, "axes must be one of 'probability', 'logit'"),
        (
            {"curve": "isotonic", "band": "exact"},
            "band must be one of 'auto', 'consistency', 'confidence', None where curve='isotonic'",
        ),
        ({"bands": "both"}, "bands must be one of 'auto', 'simultaneous', 'pointwise'"),
        (
            {"band": "bootstrap", "bands": "simultaneous"},
            "bands must be 'pointwise' where curve='binned' and band='bootstrap'",
        ),
        (
            {"curve": "smooth", "band": "confidence", "bands": "simultaneous"},
            "what the kernel flattens. Take curve='isotonic'",
        ),
        ({"sigma": 0.1}, "sigma must be left out unless curve='smooth'"),
        ({"curve": "smooth", "sigma": 0.0}, "sigma must be a number of log-odds from 1e-6 to 20"),
        ({"curve": "smooth", "sigma": True}, "sigma must be a number"),
        ({"curve": "smooth", "sigma": 30}, "sigma must be .* to 20, or None, but 30 came"),
        ({"curve": "smooth", "random_state": "x"}, "random_state must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(cal.errors.ParameterError, match=message):
        reliability_curve([0, 1], [0.2, 0.8], **options)
    with pytest.raises(cal.errors.ParameterError, match=message):
        reliability_panels([0, 1], {"a": [0.2, 0.8]}, **options)


def test_printing():
    y, p = simulate(500)
    isotonic = reliability_curve(y, p, curve="isotonic", replicates=20)
    assert repr(isotonic).endswith(
        "isotonic blocks, weight 500, simultaneous consistency 95 % band)"
    )
    first = str(isotonic).splitlines()[1].split()
    assert first[:3] == [f"{isotonic.edges[0, 0]:.3f}", "to", f"{isotonic.edges[0, 1]:.3f}"]
    smooth = str(reliability_curve(y, p, curve="smooth", band=None)).splitlines()
    assert len(smooth) == 22
    assert smooth[-1].startswith("(20 of ")


# --- log-odds -----------------------------------------------------------------------------------


def test_cells_of_log_odds_are_equal_there():
    random = np.random.default_rng(0)
    p = random.beta(0.6, 200, 20000)
    y = random.random(20000) < p
    curve = reliability_curve(y, p, axes="logit", binning="mass")
    z = np.log(curve.histogram_edges / (1 - curve.histogram_edges))
    np.testing.assert_allclose(np.diff(z), np.diff(z).mean(), rtol=1e-6)
    assert curve.histogram.sum() == 20000
    # nearly all rows are inside; those that are not are in the outer cells
    inside = (p >= curve.histogram_edges[0]) & (p <= curve.histogram_edges[-1])
    assert 0.99 <= inside.mean() < 1


@given(st.floats(0, 1), st.floats(0, 1))
def test_frames_of_log_odds_hold_what_they_should(a, b):
    from calibrant.diagrams.curve import round_odds

    low, high = min(a, b), max(a, b)
    start, end = round_odds(low, high)
    assert start <= max(low, 1e-9) + 1e-15
    assert end >= min(high, 1 - 1e-9) - 1e-15
    frame = Frame(start, end, "logit")
    ticks = frame.ticks()
    assert 1 <= len(ticks) <= 7
    assert all(start * (1 - 1e-9) <= tick <= end * (1 + 1e-9) for tick in ticks)
    wide = frame.ends(0.02)
    assert 0 < wide[0] < start < end < wide[1] < 1


def test_frames_ignore_what_no_row_speaks_for():
    y, p = simulate(4000)
    curve = reliability_curve(y, p, curve="smooth", axes="logit", band=None)
    assert curve.fraction.min() < 1e-4
    assert frame_of([curve]).low >= 0.001


# --- several predictions and segments -----------------------------------------------------------


def test_panels_of_tables():
    y, p = simulate(300)
    tables = {name: ScoreTable.from_arrays(q, y) for name, q in (("a", p), ("b", p**2))}
    assert reliability_panels(None, tables) == reliability_panels(y, {"a": p, "b": p**2})
    with pytest.raises(cal.errors.InputError, match=r"predictions\['a'\] must be a ScoreTable"):
        reliability_panels(None, {"a": p})
    with pytest.raises(cal.errors.InputError, match="but sample_weight came as well"):
        reliability_panels(None, tables, sample_weight=np.ones(300))


def test_segments_are_their_rows_alone():
    y, p = simulate(600)
    place = np.array(["south", "north", "west"])[np.arange(600) % 3]
    w = np.random.default_rng(0).gamma(1, 1, 600)
    found = reliability_segments(y, {"a": p, "b": p**2}, place, sample_weight=w, bins=5)
    assert found.names == ("north", "south", "west")
    assert found.predictions == ("a", "b")
    for name in found.names:
        here = place == name
        alone = reliability_curve(y[here], p[here], sample_weight=w[here], bins=5)
        np.testing.assert_array_equal(found[name].fraction, alone.fraction)
        np.testing.assert_array_equal(found[name].lower, alone.lower)
    assert len({tuple(curve.histogram_edges) for curve in found.curves}) == 1
    assert found.overlaid.names == found.names
    assert found.overlaid["west"] == found["west"]
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["west"]["b"]["curve"]["curve"] == "binned"
    assert repr(found) == "Segments(north, south, west; a, b)"
    with pytest.raises(KeyError):
        found["east"]


def test_segments_of_any_kind():
    y, p = simulate(40)
    years = np.arange(40) % 10 + 2
    assert reliability_segments(y, p, years).names == tuple(map(str, range(2, 12)))
    mixed = [1, "1"] * 20
    assert reliability_segments(y, p, mixed).names == ("1", "'1'")
    w = np.where(years == 4, 0.0, 1.0)
    assert "4" not in reliability_segments(y, p, years, sample_weight=w).names


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        (["a"] * 39, "segments has 39 and y has 40"),
        (list(range(40)), "at most 24 different values, but 40 came"),
        ([float("nan")] * 40, "segments must not be missing, but 40 of 40 are NaN"),
        (["a", None] * 20, "segments"),
        ([["a", "b"]] * 40, "segments has 2 and y has 40"),
    ],
)
def test_bad_segments(segments, message):
    y, p = simulate(40)
    with pytest.raises(cal.errors.InputError, match=message):
        reliability_segments(y, p, segments)


def test_segments_need_rows():
    table = ScoreTable.from_counts([0.3], [1], [1])
    with pytest.raises(cal.errors.InputError, match="but a ScoreTable came"):
        reliability_segments(table, None, ["a"])
    with pytest.raises(cal.errors.InputError, match="but no prediction came"):
        reliability_segments([0, 1], {}, ["a", "b"])


def test_classes_take_the_options():
    random = np.random.default_rng(0)
    p = random.dirichlet([1, 1, 1], 500)
    y = (p.cumsum(axis=1) > random.random((500, 1))).argmax(axis=1)
    options = {"curve": "isotonic", "band": "consistency", "replicates": 50}
    panels = class_reliability(y, p, **options)
    alone = reliability_curve(y == 1, p[:, 1], **options)
    np.testing.assert_array_equal(panels["1"].y, alone.y)
    np.testing.assert_array_equal(panels["1"].lower, alone.lower)
    odds = class_reliability(y, p, axes="logit")
    assert len({tuple(curve.histogram_edges) for curve in odds.curves}) == 1
    assert odds["2"].axes == "logit"


def test_before_and_after_in_one_rule():
    y, p = simulate(500)
    both = compare_curves(
        y, p, raw=p**2, rule=CurveOptions(curve="isotonic", axes="logit", replicates=20)
    )
    (after,), (before,) = both.curves, both.before
    assert [after.curve, before.curve] == ["isotonic"] * 2
    np.testing.assert_array_equal(after.histogram_edges, before.histogram_edges)
