"""Slope, intercepts, observed by expected, ICI and its kin, net benefit: twins, ends, words."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit, logit

import calibrant as cal
from calibrant.errors import InputError, ParameterError
from calibrant.metrics import cox, evaluate, ici, net_benefit
from calibrant.metrics.measures import MEASURES, Measure, chosen_records
from calibrant.metrics.tests import ratio_interval
from strategies import PROBABILITIES, REAL, TAME_PROBABILITIES, WHOLE, rows
from twins import clinical as twin

RNG = np.random.default_rng(3)
X = RNG.normal(-0.7, 1.3, 500)
P = expit(X)
Y = (RNG.random(500) < expit(0.7 * X - 0.3)).astype(int)
Q = expit(0.7 * X - 0.3)
W = RNG.gamma(2.0, 1.0, 500)
CLINICAL = [name for name, one in MEASURES.items() if "clinical" in one.groups]
CURVE = ("ici", "e50", "e90", "emax")
FAST = {"replicates": 100}


# --- which measures -----------------------------------------------------------------------------


def test_groups_and_names_choose_measures_in_the_order_of_the_table():
    assert [
        "observed_expected",
        "calibration_slope",
        "line_intercept",
        "calibration_in_the_large",
        *CURVE,
    ] == CLINICAL
    standard = list(chosen_records(MEASURES))
    assert standard[-3:] == ["discrimination", "observed_expected", "calibration_slope"]
    assert list(evaluate(Y, P, level=None).after) == standard
    assert list(evaluate(Y, P, level=None, measures="clinical").after) == CLINICAL
    assert list(evaluate(Y, P, level=None, measures="all").after) == list(MEASURES)
    chosen = evaluate(Y, P, measures=["ici", "brier"], **FAST)
    assert list(chosen.after) == list(chosen.intervals) == ["brier", "ici"]
    both = evaluate(Y, P, level=None, measures=["standard", "e50"])
    assert list(both.after) == [*standard, "e50"]


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        ("clinicl", "Did you mean 'clinical'"),
        (["brier", "breir"], "Did you mean 'brier'"),
        ([], "measures must be a name"),
        (3, "measures must be a name"),
    ],
)
def test_unknown_measures_are_refused(measures, message):
    with pytest.raises(ParameterError, match=message):
        evaluate(Y, P, measures=measures)


def test_several_classes_have_no_clinical_measures():
    p = np.full((6, 3), 1 / 3)
    y = [0, 1, 2, 0, 1, 2]
    assert list(evaluate(y, p, level=None, measures=["brier"]).after) == ["brier"]
    with pytest.raises(ParameterError, match="'clinical' came"):
        evaluate(y, p, measures="clinical")


# --- values are those of the functions and of the twins -----------------------------------------


@pytest.mark.parametrize("weight", [None, W])
def test_values_are_those_of_the_functions(weight):
    after = evaluate(Y, P, sample_weight=weight, level=None, measures="clinical").after
    line, curve = (f(Y, P, sample_weight=weight) for f in (cox, ici))
    wanted = {
        "observed_expected": line.observed_expected,
        "calibration_slope": line.slope,
        "line_intercept": line.line_intercept,
        "calibration_in_the_large": line.intercept,
    } | {name: getattr(curve, name) for name in CURVE}
    assert after == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weight", [None, W])
def test_the_curve_is_that_of_a_general_minimiser(weight, ties):
    p = P.round(1).clip(0.05, 0.95) if ties else P
    w = np.ones(len(Y)) if weight is None else weight
    found = ici(Y, p, sample_weight=weight)
    wanted = twin.curve_errors(Y, p, w)
    assert [getattr(found, name) for name in CURVE] == pytest.approx(list(wanted), abs=2e-7)
    curve = twin.spline_curve(Y, p, w)
    places = np.unique(p)[:: 1 if ties else 50]
    assert found.curve(places) == pytest.approx([curve(b) for b in places], abs=2e-7)


@pytest.mark.parametrize("slope", [1.0, 0.6, 1.5])
def test_figures_are_near_those_of_r(slope):
    """Its knots and quantiles lie between rows; loess is another smoother altogether."""
    rng = np.random.default_rng(4)
    x = rng.normal(-0.7, 1.3, 1500)
    y, p = (rng.random(1500) < expit(slope * x)).astype(int), expit(x)
    found = ici(y, p)
    ours = [getattr(found, name) for name in CURVE]
    assert ours == pytest.approx(twin.errors_in_r(y, p), abs=1e-3)
    loess = twin.errors_by_loess(y, p)
    assert ours[:3] == pytest.approx(loess[:3], abs=0.01)


@given(
    rows(TAME_PROBABILITIES, st.one_of(WHOLE, REAL), min_size=12, max_size=40, both_classes=True)
)
def test_any_curve(data):
    p, y, w = data
    assume(cox(y, p, sample_weight=w).slope > -math.inf)
    found = ici(y, p, sample_weight=w)
    gaps = np.abs(p - found.curve(p))[w > 0]
    assert found.emax == pytest.approx(gaps.max(), abs=1e-9)
    assert found.ici == pytest.approx(np.average(gaps, weights=w[w > 0]), abs=1e-9)
    assert 0 <= found.e50 <= found.e90 <= found.emax <= 1
    assert found.e50 == pytest.approx(
        twin.quantile(list(zip(gaps, w[w > 0], strict=True)), 0.5), abs=1e-9
    )


def test_knots_are_fewer_where_predictions_are_tied():
    y = [0, 1, 0, 1, 1, 0, 1, 1] * 5

    def knots(p):
        return len(ici(y, p).knots)

    assert knots(np.linspace(0.1, 0.9, 40)) == 5
    assert knots(np.repeat([0.2, 0.4, 0.6, 0.8], 10)) == 4
    assert knots(np.repeat([0.2, 0.4, 0.6], [10, 20, 10])) == 3
    assert knots(np.repeat([0.2, 0.6], 20)) == 0
    constant = ici(y, [0.3] * 40)
    assert len(constant.coefficients) == 1
    assert constant.ici == constant.emax == pytest.approx(np.mean(y) - 0.3)


def test_right_predictions_have_small_errors_and_wrong_ones_theirs():
    rng = np.random.default_rng(0)
    x = rng.normal(-1, 1.5, 100_000)
    y = rng.random(len(x)) < expit(x)
    right, off = ici(y, expit(x)), ici(y, expit(1.7 * x))
    assert right.emax < 0.03
    assert off.ici == pytest.approx(np.abs(expit(1.7 * x) - expit(x)).mean(), abs=0.004)
    assert off.emax == pytest.approx(np.abs(expit(1.7 * x) - expit(x)).max(), abs=0.01)


# --- weights, ties, order -----------------------------------------------------------------------


@given(
    rows(PROBABILITIES, WHOLE, min_size=2, max_size=30, both_classes=True),
    st.sampled_from([1e-90, 3.0, 1e90]),
)
def test_whole_weights_are_repeated_rows_and_a_factor_changes_nothing(data, factor):
    p, y, w = data
    options = {"measures": "clinical", "level": None, "classes": [0, 1]}
    again = np.repeat(np.arange(len(p)), w.astype(int))
    one = evaluate(y, p, sample_weight=w, **options).after
    other = evaluate(y[again], p[again], **options).after
    scaled = evaluate(y, p, sample_weight=factor * w, **options).after
    assert list(one) == list(other) == list(scaled)
    for name, value in one.items():
        if name in CURVE and twin_is_steep(p, y, w):
            continue
        assert other[name] == pytest.approx(value, rel=1e-6, abs=1e-7), name
        assert scaled[name] == pytest.approx(value, rel=1e-6, abs=1e-7), name


def twin_is_steep(p, y, w):
    """Whether the spline tells the classes apart: where its steps are is then not defined."""
    return bool(np.abs(ici(y, p, sample_weight=w).coefficients).max() > 30)


@given(rows(PROBABILITIES, st.one_of(WHOLE, REAL), max_size=30))
def test_any_predictions_have_measures_or_notes(data):
    """One class, predictions of exactly 0 and 1, ties: nothing fails, nothing is NaN."""
    p, y, w = data
    raw = np.where(p > 0.5, p, p / 2)
    e = evaluate(y, p, raw=raw, sample_weight=w, classes=[0, 1], measures="clinical", **FAST)
    values = [*e.after.values(), *e.before.values()]
    assert all(math.isfinite(value) for value in values)
    ends = [end for spans in (e.intervals, e.intervals_before) for s in spans.values() for end in s]
    assert not any(math.isnan(end) for end in ends)
    for name in set(MEASURES) & set(CLINICAL):
        assert name in e.after or any(name in note for note in e.notes), name
    assert json.loads(json.dumps(e.to_dict(), allow_nan=False))["after"].keys() == e.after.keys()
    assert all(e.verdict(name) for name in e.after if name in e.before)


# --- ends ---------------------------------------------------------------------------------------


def test_what_the_data_do_not_allow_is_said():
    options = {"measures": "clinical", "level": None, "classes": [0, 1]}
    one = evaluate([1, 1, 1], [0.2, 0.5, 0.9], **options)
    assert one.after["observed_expected"] == pytest.approx(3 / 1.6)
    assert one.after["ici"] == pytest.approx(1.4 / 3)
    assert one.notes == tuple(
        f"{name} needs both classes, but only positives came"
        for name in ("calibration_slope", "line_intercept", "calibration_in_the_large")
    )
    same = evaluate([0, 1, 1], [0.4] * 3, **options)
    assert "calibration_slope needs two different predictions between 0 and 1" in same.notes
    assert same.after["calibration_in_the_large"] == pytest.approx(logit(2 / 3) - logit(0.4))
    apart = evaluate([0, 1, 1], [0.1, 0.3, 0.4], **options)
    assert "calibration_slope was left out: a threshold tells the classes apart" in apart.notes
    never = evaluate([0, 1], [0.0, 0.0], **options)
    assert "observed_expected needs predictions above 0" in never.notes
    assert never.after["ici"] == 0.5


def test_predictions_of_exactly_0_and_1_are_compared_with_their_frequency():
    p = np.concatenate((P, np.zeros(50), np.ones(50)))
    y = np.concatenate((Y, np.arange(50) < 5, np.arange(50) < 40))
    e = evaluate(y, p, measures="clinical", level=None)
    inner = ici(Y, P)
    assert e.after["ici"] == pytest.approx((500 * inner.ici + 50 * 0.1 + 50 * 0.2) / 600)
    assert e.after["ici"] == pytest.approx(twin.curve_errors(y, p, np.ones(600))[0], abs=2e-7)
    assert e.after["calibration_slope"] == pytest.approx(cox(Y, P).slope)
    assert e.notes == (
        "calibration slope and intercepts leave out predictions of exactly 0 or 1, 16.7 % of all, "
        "which have no log-odds",
    )
    assert math.isnan(ici(y, p).curve([0.0])[0])


def test_the_frequency_at_predictions_of_0_and_1_varies():
    p = np.concatenate((P, np.ones(60)))
    y = np.concatenate((Y, np.arange(60) < 20))
    e = evaluate(y, p, measures="emax", random_state=1)
    assert e.after["emax"] == pytest.approx(2 / 3)
    low, high = e.intervals["emax"]
    error = math.sqrt(2 / 3 * 1 / 3 / 60)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.2)


# --- where rows are grouped ---------------------------------------------------------------------


def test_lazy_frames_have_them_from_the_exact_table_and_say_what_cells_lack():
    frame = pl.LazyFrame({"p": P, "y": Y, "w": W})
    columns = {"label": "y", "sample_weight": "w", "measures": "clinical"}
    exact = evaluate(frame, "p", **columns, **FAST)
    assert exact == evaluate(Y, P, sample_weight=W, measures="clinical", **FAST)
    cells = evaluate(frame, "p", cells=64, **columns, **FAST)
    assert list(cells.after) == ["observed_expected"]
    assert cells.after["observed_expected"] == pytest.approx(
        exact.after["observed_expected"], rel=1e-12
    )
    assert cells.intervals["observed_expected"] == pytest.approx(
        exact.intervals["observed_expected"], rel=1e-3
    )
    for name in CLINICAL[1:]:
        assert any(note.startswith(f"{name} was left out: it is fitted") for note in cells.notes)


# --- intervals and words ------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, W])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_of_the_ratio_is_that_of_the_score_test(weight, level):
    w = np.ones(len(Y)) if weight is None else weight
    for y, p in ((Y, P), (Y, P / 3), (1 - Y, P)):
        found = cox(y, p, sample_weight=weight, level=level).observed_expected_interval
        assert found == pytest.approx(twin.ratio_interval(y, p, w, level), rel=1e-9)


def test_the_interval_of_the_ratio_of_one_prediction_is_wilsons():
    table = cal.ScoreTable.from_counts([0.5], [80], [20])
    low, high = ratio_interval(table, 0.95)
    assert (0.5 * low, 0.5 * high) == pytest.approx((0.1333669, 0.2888292), abs=1e-6)
    low, high = ratio_interval(cal.ScoreTable.from_counts([0.01], [1000], [0]), 0.95)
    assert low == 0.0
    assert 0.01 * high == pytest.approx(0.00382678, abs=1e-6)


def test_a_table_and_its_rows_have_the_same_intervals_and_counts_are_repetitions():
    w = RNG.integers(1, 4, 500)
    again = np.repeat(np.arange(500), w)
    one = evaluate(Y, P, raw=Q, sample_weight=w, weights="counts", measures="clinical", **FAST)
    other = evaluate(Y[again], P[again], raw=Q[again], measures="clinical", **FAST)
    for name in CLINICAL:
        assert one.intervals[name] == pytest.approx(other.intervals[name], rel=1e-6), name
        for end, wanted in zip(one.change[name], other.change[name], strict=True):
            assert end is wanted is None or end == pytest.approx(wanted, rel=1e-6, abs=1e-9), name
    assert {name for name in CLINICAL if one.change[name][1] is None} == set(CURVE)
    scaled = evaluate(Y, P, raw=Q, sample_weight=7e80 * W, measures="clinical", **FAST)
    plain = evaluate(Y, P, raw=Q, sample_weight=W, measures="clinical", **FAST)
    for name in CLINICAL:
        assert scaled.intervals[name] == pytest.approx(plain.intervals[name], rel=1e-6), name


def test_few_cases_have_no_interval_of_the_curve():
    e = evaluate(Y[:12], P[:12], measures="ici")
    assert "ici" not in e.intervals
    assert any(note.startswith("no interval for ici: it takes 10") for note in e.notes)


def test_words_go_by_the_distance_from_the_target():
    x = RNG.normal(-0.7, 1.3, 3000)
    p, q = expit(x), expit(0.6 * x - 0.3)
    y = RNG.random(3000) < q
    line = CLINICAL[:4]
    e = evaluate(y, q, raw=p, measures=line)
    assert e.verdict("calibration_slope") == "better"
    back = evaluate(y, p, raw=q, measures=line)
    assert back.verdict("calibration_slope") == "worse"
    assert e.change["calibration_slope"][0] > 0 > back.change["calibration_slope"][0]
    table = str(e).splitlines()
    assert next(line for line in table if line.startswith("calibration slope")).split()[2:4] == [
        "near",
        "1",
    ]
    plain = evaluate(y, q, raw=p, measures=line, level=None)
    assert plain.verdict("calibration_slope") == "higher"


SLOPE = Measure("s", "slope", "", "closer", target=1.0)


@pytest.mark.parametrize(
    ("before", "after", "sides", "change", "word"),
    [
        (0.6, 1.05, ((0.5, 0.7), (0.95, 1.15)), None, "better"),
        (0.6, 1.4, ((0.5, 0.7), (1.3, 1.5)), None, "unclear"),  # as far on the other side
        (0.6, 1.9, ((0.5, 0.7), (1.8, 2.0)), None, "worse"),
        (0.8, 0.9, ((0.7, 0.9), (0.8, 1.0)), None, "unclear"),
        (0.8, 0.9, ((0.7, 0.9), (0.8, 1.0)), (0.05, 0.15), "better"),  # pairs tell more
        (0.9, 0.97, ((0.8, 1.0), (0.87, 1.07)), (0.05, 0.09), "unclear"),  # 1.0 may become 1.05
        (1.2, 1.1, ((1.1, 1.3), (1.05, 1.15)), (-0.15, -0.05), "better"),
        (1.1, 1.2, ((1.05, 1.15), (1.1, 1.3)), (0.05, 0.15), "worse"),
        (0.6, 1.0, None, None, "unclear"),
        (0.6, 0.60001, ((0.5, 0.7), (0.5, 0.7)), None, "same"),
    ],
)
def test_verdicts_near_a_target(before, after, sides, change, word):
    assert SLOPE.verdict(before, after, sides=sides, change=change) == word


@given(
    st.tuples(*[st.floats(-3, 3)] * 2),
    st.tuples(*[st.floats(0.01, 2)] * 4),
    st.one_of(st.none(), st.tuples(*[st.floats(0.01, 2)] * 2)),
    st.integers(0, 2**32 - 1),
)
def test_a_word_holds_for_all_values_that_the_intervals_allow(values, widths, change, seed):
    before, after = values
    sides = (
        (before - widths[0], before + widths[1]),
        (after - widths[2], after + widths[3]),
    )
    span = None if change is None else (after - before - change[0], after - before + change[1])
    word = SLOPE.verdict(before, after, sides=sides, change=span)
    rng = np.random.default_rng(seed)
    b, a = rng.uniform(*sides[0], 2000), rng.uniform(*sides[1], 2000)
    if span is not None:
        kept = (a - b >= span[0]) & (a - b <= span[1])
        b, a = b[kept], a[kept]
    moved = np.abs(a - 1) - np.abs(b - 1)
    if word == "better":
        assert (moved <= 0).all()
    elif word == "worse":
        assert (moved >= 0).all()


def test_learning_curves_take_the_distance_from_the_target():
    curve = cal.learning_curve(
        cal.Platt(), P, Y, sizes=(100,), repeats=3, measure="calibration_slope", random_state=0
    )
    assert (curve.measure, curve.better) == ("|calibration slope − 1|", "smaller")
    assert (curve.values >= 0).all()
    smooth = cal.learning_curve(
        cal.Platt(), P, Y, sizes=(100,), repeats=3, measure=ici, random_state=0
    )
    assert smooth.measure == "ICI"


def test_the_page_shows_what_is_asked_for_beside_the_standard_measures():
    page = cal.calibration_report(P, Y, calibrator=cal.Platt(), measures="clinical")
    assert list(page.evaluation.after) == [*chosen_records(MEASURES), *CLINICAL[2:]]
    assert "ICI<br><small>mean |p − smooth calibration curve|</small>" in page.to_html()
    plain = cal.calibration_report(P, Y, calibrator=cal.Platt())
    assert "near 1" in plain.to_html()
    with pytest.raises(ParameterError, match="Did you mean 'clinical'"):
        cal.calibration_report(P, Y, measures="clinicl")


# --- net benefit --------------------------------------------------------------------------------


@given(
    rows(PROBABILITIES, st.one_of(WHOLE, REAL), max_size=30),
    st.one_of(st.floats(0.01, 0.99), st.integers(1, 9).map(lambda k: k / 10)),
)
def test_net_benefit_is_that_of_a_loop(data, threshold):
    p, y, w = data
    table = cal.ScoreTable.from_arrays(p, y, w, classes=[0, 1])
    found = net_benefit(table, threshold=threshold)
    assert found.net_benefit == pytest.approx(twin.net_benefit(y, p, w, threshold), abs=1e-12)
    assert found.treat_all == pytest.approx(twin.net_benefit(y, p * 0 + 1, w, threshold), abs=1e-12)
    assert found.net_benefit <= table.total_positive / table.total + 1e-12
    there = np.column_stack((p, y, w))[w > 0]
    apart = len(np.unique(there[:, :2], axis=0)) == len(there)
    # rows of one score count for the skewness as if they had one weight
    alike = len(np.unique(there[:, [0, 2]], axis=0)) == len(np.unique(there[:, 0]))
    if table.effective_size >= 2 and apart and alike:
        wanted = twin.net_benefit_interval(y, p, w, threshold, 0.95)
        low, high = found.interval
        ends = min(wanted[0], found.net_benefit), max(wanted[1], found.net_benefit)
        ends = max(ends[0], -threshold / (1 - threshold)), min(ends[1], 1.0)  # all rows bring that
        assert low == pytest.approx(ends[0], rel=1e-6, abs=1e-9)
        assert high == pytest.approx(ends[1], rel=1e-6, abs=1e-9)


def test_the_interval_of_net_benefit_holds_what_is_possible_only():
    assert net_benefit([0, 1], [0.2, 0.8], threshold=0.2).interval == (-0.25, 1.0)
    band = cal.diagrams.decision_curve([0, 1, 1], [0.3, 0.4, 0.9], thresholds=[0.1, 0.5])
    assert (band.lower >= -band.thresholds / (1 - band.thresholds)).all()
    assert (band.upper <= 1.0).all()


def test_net_benefit_is_profit_at_the_price_of_the_threshold():
    found = net_benefit(Y, P, threshold=0.3, sample_weight=W)
    gain = cal.metrics.profit(Y, P, benefit=1, cost=0.3, sample_weight=W)
    assert found.net_benefit == pytest.approx(gain.profit / W.sum() / 0.7)
    assert found.treat_all == pytest.approx(gain.act_on_all / W.sum() / 0.7)
    assert found.acted == pytest.approx(gain.acted / W.sum())
    assert net_benefit([1], [0.4], threshold=0.3).interval is None


@pytest.mark.parametrize("threshold", [0.0, 1.0, -0.1, math.nan, "0.5", True])
def test_thresholds_lie_between_0_and_1(threshold):
    with pytest.raises(ParameterError, match="threshold must be"):
        net_benefit(Y, P, threshold=threshold)
    with pytest.raises((ParameterError, InputError), match="threshold"):
        cal.diagrams.decision_curve(Y, P, thresholds=[0.2, threshold])
