"""Prior shift: the closed form, as maps too; and rates of unlabelled rows, equal to the EM's."""

from __future__ import annotations

import csv
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.base import clone

import calibrant as cal
from calibrant.maps import (
    Chain,
    Coded,
    Columns,
    Identity,
    Interval,
    Logistic,
    Map,
    Mixture,
    Piecewise,
    Segmented,
    Softmax,
    VectorMixture,
)
from calibrant.monitor import (
    RateEstimate,
    RateEstimates,
    adjust_prior,
    estimate_rate,
    estimate_rates,
    shift_to_mean,
)
from cases import each
from strategies import PROBABILITIES, REAL, TAME_PROBABILITIES
from twins import prior as naive

RATES = st.one_of(st.floats(1e-6, 1 - 1e-6), st.sampled_from([0.5, 0.1, 1e-9, 0.999]))
PLACES = np.array([-3.0, -0.5, 0.0, 1e-9, 0.1, 0.25, 0.3, 0.5, 0.6, 0.75, 0.9, 1.0, 1.5, 4.0])


def data(seed=0, n=400, rate=0.3, gap=1.5):
    """Scores of two normal classes as probabilities that are right at the rate."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    return posterior(rng.normal(gap * y), rate, gap), y


def posterior(x, rate, gap=1.5):
    """P(positive | x) where negatives are N(0, 1) and positives N(gap, 1)."""
    return 1 / (1 + (1 - rate) / rate * np.exp(gap * gap / 2 - gap * x))


# --- probabilities --------------------------------------------------------------------------------


@given(st.lists(PROBABILITIES, min_size=1, max_size=20), RATES, RATES)
def test_the_closed_form(p, train, target):
    found = adjust_prior(p, train_rate=train, target_rate=target)
    wanted = [naive.adjusted(value, train, target) for value in p]
    assert found == pytest.approx(wanted, rel=1e-13, abs=1e-300)


@given(st.lists(PROBABILITIES, min_size=2, max_size=30), RATES, RATES)
def test_order_ends_and_no_shift(p, train, target):
    p = np.sort(p)
    found = adjust_prior(p, train_rate=train, target_rate=target)
    assert (np.diff(found) >= 0).all()
    assert (found[p == 0] == 0).all()
    assert (found[p == 1] == 1).all()
    assert (adjust_prior(p, train_rate=train, target_rate=train) == p).all()


@given(st.floats(1e-12, 0.999), st.floats(0.001, 0.999), st.floats(0.001, 0.999))
@example(0.78125, 0.001953125, 0.96875)
def test_there_and_back(p, first, second):
    there = adjust_prior([p], train_rate=first, target_rate=second)
    back = adjust_prior(there, train_rate=second, target_rate=first)
    lost = np.finfo(float).eps / (1.0 - there[0])  # floats next to 1 tell odds less precisely
    assert back[0] == pytest.approx(p, rel=1e-12, abs=1e-12 + lost)


def test_the_three_ways_agree():
    p = [0.1, 0.4, 0.9]
    # half of the negatives kept: of 100 rows with 20 positives 60 are left
    wanted = adjust_prior(p, train_rate=20 / 60, target_rate=0.2)
    assert adjust_prior(p, kept=0.5) == pytest.approx(wanted, rel=1e-14)
    assert adjust_prior(p, kept=(0.25, 0.5)) == pytest.approx(wanted, rel=1e-14)
    assert adjust_prior(p, positive_weight=2.0) == pytest.approx(wanted, rel=1e-14)


def test_shapes_and_frames():
    p = np.array([0.2, 0.7, 0.9])
    options = {"train_rate": 0.5, "target_rate": 0.1}
    wanted = adjust_prior(p, **options)
    assert (adjust_prior(p[:, None], **options) == wanted[:, None]).all()
    pair = adjust_prior(np.column_stack((1 - p, p)), **options)
    assert (pair[:, 1] == wanted).all()
    assert pair.sum(axis=1) == pytest.approx(1.0)
    for column in (pd.Series(p), pl.Series(p), pl.DataFrame({"p": p})):
        assert (adjust_prior(column, **options).ravel() == wanted).all()
    by_class = adjust_prior(
        np.column_stack((1 - p, p)), train_rate=[0.5, 0.5], target_rate=[0.9, 0.1]
    )
    assert by_class == pytest.approx(pair, abs=1e-15)
    assert adjust_prior(p.astype(np.float32), **options).dtype == np.float64


DISTRIBUTIONS = st.integers(2, 5).flatmap(
    lambda k: st.lists(
        st.lists(st.floats(0.001, 1.0), min_size=k, max_size=k), min_size=3, max_size=12
    )
)


def normalised(rows):
    return [np.array(row) / np.sum(row) for row in rows]


@given(DISTRIBUTIONS)
def test_several_classes_have_the_closed_form(rows):
    train, target, *p = normalised(rows)
    found = adjust_prior(np.array(p), train_rate=train, target_rate=target)
    assert found.sum(axis=1) == pytest.approx(1.0)
    for row, wanted in zip(found, p, strict=True):
        assert row == pytest.approx(naive.adjusted_row(wanted, train, target), rel=1e-12)


# --- maps -----------------------------------------------------------------------------------------

STEPS = Piecewise.step([0.25, 0.6], [0.0, 0.4, 1.0])
LINES = Piecewise([0.25, 0.6], [0.1, 0.4], [0.2, 0.9])
ODDS = Piecewise.linear([-2.0, 0.5, 3.0], [-1.0, 0.5, 4.0], "logit", "logit")
BETA = Logistic(0.3, (("ln_p", 1.2), ("neg_ln_1mp", 0.4)), clip=(1e-3, 0.99))
BENT = Logistic(0.1, (("z", 0.7), ("z2", -0.1)))
MAPS: dict[str, Map] = {
    "identity": Identity(),
    "steps": STEPS,
    "lines": LINES,
    "odds": ODDS,
    "odds-steps": Piecewise([0.0], [-1.0], [2.0], output="logit"),
    "constant": Piecewise.constant(0.3),
    "platt": Logistic(-1.0, (("x", 2.0),)),
    "no-terms": Logistic(0.7, ()),
    "beta-clip": BETA,
    "quadratic": BENT,
    "chain": Chain((Logistic(0.0, (("x", 1.0),)), STEPS)),
    "chain-lines": Chain((Logistic(0.0, (("x", 1.0),)), LINES)),
    "mixture": Mixture([0.3, 0.7], (STEPS, BENT)),
    "nested": Chain((Mixture([0.5, 0.5], (Chain((BETA, LINES)), Identity())), ODDS)),
    "interval": Interval(Piecewise.constant(0.1), LINES, Piecewise.constant(0.2), 0.9),
}


def is_shift(moved, before, factor, tol=1e-12):
    """Whether probabilities are those before, their odds times the factor."""
    wanted = before * factor / (before * factor + 1 - before)
    assert moved == pytest.approx(wanted, rel=tol, abs=tol)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("factor", [0.01, 0.4, 30.0])
def test_maps_of_one_score(name, factor):
    map_ = MAPS[name]
    moved = adjust_prior(map_, positive_weight=1 / factor)
    is_shift(moved(PLACES), map_(PLACES), factor)
    assert Map.from_dict(moved.to_dict()) == moved
    back = adjust_prior(moved, positive_weight=factor)
    assert back(PLACES) == pytest.approx(map_(PLACES), rel=1e-11, abs=1e-12)


def test_maps_stay_simple():
    half = {"positive_weight": 2.0}
    assert adjust_prior(STEPS, **half).is_step
    assert isinstance(adjust_prior(ODDS, **half), Piecewise)
    assert adjust_prior(BETA, **half).terms == BETA.terms
    assert adjust_prior(BETA, **half).clip == BETA.clip
    assert isinstance(adjust_prior(Identity(), **half), Logistic)
    twice = adjust_prior(adjust_prior(MAPS["mixture"], **half), **half)
    assert len(twice.steps) == 2  # the last step takes both
    assert adjust_prior(LINES, positive_weight=1.0) is LINES


@pytest.mark.parametrize("name", [n for n, m in MAPS.items() if not isinstance(m, Segmented)])
def test_fifty_adjustments_are_one(name):
    often = MAPS[name]
    for i in range(50):
        often = adjust_prior(often, positive_weight=2.0 if i % 2 else 0.4)
    once = adjust_prior(MAPS[name], positive_weight=0.8**25)
    assert [len(getattr(m, "steps", ())) for m in (often, once)] in ([0, 0], [2, 2], [3, 3])
    assert np.allclose(often(PLACES), once(PLACES), rtol=1e-12, atol=0)


def test_a_band_is_moved_as_a_whole():
    band = MAPS["interval"]
    moved = adjust_prior(band, kept=0.2)
    assert moved.level == 0.9
    for after, before in zip(moved.bounds(PLACES), band.bounds(PLACES), strict=True):
        is_shift(after, before, 0.2)


@pytest.mark.parametrize("input", ["score", "default"])
@pytest.mark.parametrize("weights", [None, [1.0, 0.25, 0.0]])
@pytest.mark.parametrize("default", ["steps", "platt", "mixture"])
def test_every_segment_is_moved_as_mixed(input, weights, default):
    before = Segmented(MAPS[default], ("a", "b", 3), (LINES, BENT, STEPS), weights, input)
    moved = adjust_prior(before, kept=0.05)
    for key in ("a", "b", 3, "other"):
        segments = np.array([key] * len(PLACES), dtype=object)
        is_shift(moved(PLACES, segments), before(PLACES, segments), 0.05)
    is_shift(moved(PLACES), before(PLACES), 0.05)
    assert Map.from_dict(moved.to_dict()) == moved
    last = Chain((Identity(), before))
    is_shift(adjust_prior(last, kept=0.05)(PLACES), last(PLACES), 0.05)


@each()
def test_every_calibrator(case):
    s, y = data(n=150)
    names = np.array(["good", "bad"])[y]  # "bad" is positive and the first class
    c = clone(case.calibrator).set_params(pos_label="bad").fit(s, names)
    f = adjust_prior(c, target_rate=0.02)
    assert (f.classes, f.pos_label, f.method) == (("bad", "good"), "bad", type(c).__name__)
    train, target = y.mean(), 0.02
    is_shift(f.calibrate(s), c.calibrate(s), target / train * (1 - train) / (1 - target))
    assert (f.predict_proba(s)[:, 0] == f.calibrate(s)).all()
    assert cal.Fitted.from_dict(f.to_dict()) == f
    if case.monotone:
        assert (np.diff(f.calibrate(np.sort(s))) >= -1e-15).all()


# --- several classes as maps ----------------------------------------------------------------------

FACTOR = np.array([3.0, 1.0, 0.2])
TRAIN = np.array([0.5, 0.3, 0.2])
TARGET = TRAIN * FACTOR / (TRAIN @ FACTOR)
ROWS = np.random.default_rng(3).dirichlet([0.7, 1.0, 1.3], 40)
ONE_MORE = np.array([[-1.0, 1.0, -1.0], [1.0, -1.0, -1.0], [-1.0, -1.0, 1.0]])
MANY = {
    "temperature": Softmax(0.5, np.zeros(3)),
    "dirichlet": Softmax(np.eye(3) + 0.2, np.array([0.3, -0.1, 0.0]), "probability", 1e-6, 0.8),
    "one-against-all": Coded.one_vs_rest((Piecewise.constant(0.2), LINES, BENT)),
    "other-order": Coded(ONE_MORE, (LINES, BENT, Mixture([0.5, 0.5], (BETA, STEPS)))),
    "one-member": VectorMixture([0.0, 1.0], (Softmax(0.5, np.zeros(3)),) * 2, "probability", 0.01),
}


@pytest.mark.parametrize("name", MANY)
def test_maps_of_several_classes(name):
    map_ = MANY[name]
    moved = adjust_prior(map_, train_rate=TRAIN, target_rate=TARGET)
    p = map_(ROWS)
    wanted = p * FACTOR / (p @ FACTOR)[:, None]
    assert moved(ROWS) == pytest.approx(wanted, abs=1e-13)
    assert Map.from_dict(moved.to_dict()) == moved
    assert adjust_prior(map_, kept=1 / FACTOR / 5)(ROWS) == pytest.approx(wanted, abs=1e-13)


def test_several_labels_are_moved_one_by_one():
    map_ = Columns((LINES, BENT, STEPS))
    train, target = np.array([0.5, 0.1, 0.2]), np.array([0.1, 0.2, 0.2])
    moved = adjust_prior(map_, train_rate=train, target_rate=target)
    for j, member in enumerate(map_.maps):
        factor = target[j] / train[j] * (1 - train[j]) / (1 - target[j])
        is_shift(moved(ROWS)[:, j], member(ROWS[:, j]), factor)
    weighted = adjust_prior(map_, positive_weight=4.0)
    is_shift(weighted(ROWS)[:, 1], BENT(ROWS[:, 1]), 0.25)
    with pytest.raises(
        cal.errors.ParameterError, match="kept must not be given for several labels"
    ):
        adjust_prior(map_, kept=0.5)


def test_classes_by_label():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 200)]
    c = cal.VectorScaling().fit(rng.dirichlet([1, 1, 1], 200), y)
    train, target = {"c": 0.2, "a": 0.5, "b": 0.3}, dict(zip("abc", TARGET, strict=True))
    f = adjust_prior(c, train_rate=train, target_rate=target)
    wanted = adjust_prior(c.predict_proba(ROWS), train_rate=TRAIN, target_rate=TARGET)
    assert f.predict_proba(ROWS) == pytest.approx(wanted, abs=1e-13)
    assert f.provenance["prior"][0]["train_rate"] == (0.5, 0.3, 0.2)
    again = adjust_prior(f, target_rate=train)  # the record knows where it stands
    assert again.predict_proba(ROWS) == pytest.approx(c.predict_proba(ROWS), abs=1e-13)
    assert cal.Fitted.from_dict(again.to_dict()) == again
    with pytest.raises(
        cal.errors.ParameterError, match=r"entry for each of the labels \['a', 'b', 'c'\]"
    ):
        adjust_prior(c, train_rate={"a": 1.0}, target_rate=target)
    shares = np.unique(y, return_counts=True)[1] / 200
    own = adjust_prior(c, target_rate=target)  # from the rows of the fit
    assert own.provenance["prior"][0]["train_rate"] == pytest.approx(tuple(shares))


PAIRS = [[1.0, 1.0, 0.0], [-1.0, 0.0, 1.0], [0.0, -1.0, -1.0]]


@pytest.mark.parametrize(
    ("map_", "words"),
    [
        (Coded(PAIRS, (LINES,) * 3, "coupling"), "combines by 'coupling'"),
        (VectorMixture([0.5, 0.5], (Softmax(0.5, np.zeros(3)),) * 2), "average of several"),
    ],
    ids=["coupling", "mixture"],
)
def test_maps_that_have_no_shift_say_so(map_, words):
    with pytest.raises(cal.errors.InputError, match=words) as refused:
        adjust_prior(map_, train_rate=TRAIN, target_rate=TARGET)
    assert "adjust_prior(calibrator.predict_proba(scores), ...)" in str(refused.value)


# --- what it is for -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["kept", "positive_weight"])
def test_isotonic_of_a_sample_is_that_of_all_rows(way):
    """Isotonic regression commutes with weights of a class, so that this is exact."""
    s, y = data(n=3000)
    weight = np.where(y == 1, 1.0, 20.0) if way == "kept" else np.where(y == 1, 7.0, 1.0)
    options = {"kept": 0.05} if way == "kept" else {"positive_weight": 7.0}
    plain, weighted = cal.Isotonic().fit(s, y), cal.Isotonic().fit(s, y, weight)
    source, target = (plain, weighted) if way == "kept" else (weighted, plain)
    moved = adjust_prior(source, **options)
    assert (moved.map.x == target.map_.x).all()
    assert moved.calibrate(s) == pytest.approx(target.calibrate(s), abs=1e-12)


def test_undersampled_rows_give_the_probabilities_of_all():
    s, y = data(n=200_000, rate=0.03)
    kept = (y == 1) | (np.random.default_rng(1).random(len(y)) < 0.05)
    for kind in (cal.Platt, cal.BLS):
        whole, part = kind().fit(s, y), kind().fit(s[kept], y[kept])
        p, q = whole.calibrate(s), adjust_prior(part, kept=0.05).calibrate(s)
        assert np.abs(p - q).mean() < 0.002
        assert np.abs(part.calibrate(s) - p).mean() > 0.1


def test_adjustments_follow_each_other():
    s, y = data()
    c = cal.Platt().fit(s, y)
    first = adjust_prior(c, kept=0.1)
    rate = y.mean() * 0.1 / (y.mean() * 0.1 + 1 - y.mean())
    assert first.provenance["prior"][0]["rate"] == pytest.approx(rate)
    second = adjust_prior(first, target_rate=0.4)
    assert [sorted(r) for r in second.provenance["prior"]] == [
        ["factor", "kept", "rate"],
        ["factor", "rate", "target_rate", "train_rate"],
    ]
    assert second.provenance["prior"][1]["train_rate"] == pytest.approx(rate)
    direct = adjust_prior(c, target_rate=0.4)
    assert second.calibrate(s) == pytest.approx(direct.calibrate(s), rel=1e-12)
    assert c.to_fitted().provenance.get("prior") is None


def test_what_is_adjusted_is_applied_elsewhere():
    s, y = data()
    frame = pl.LazyFrame({"s": s})
    for kind in (cal.Platt, cal.Isotonic, cal.ABB, cal.Spline):
        f = adjust_prior(kind().fit(s, y), target_rate=0.01)
        found = cal.add_probabilities(f, frame, score="s").collect()
        assert found[:, -1].to_numpy() == pytest.approx(f.calibrate(s), abs=1e-12)


# --- the mean of a portfolio --------------------------------------------------------------------

#: the delta_ of probcal 0.4.0's LogitOffset(target_mean=0.031) for a table of four probabilities
PROBCAL = -0.5694162423026894
PORTFOLIO = st.lists(
    st.tuples(st.floats(1e-9, 1 - 1e-9), st.sampled_from([0.5, 1.0, 3.0])), min_size=1, max_size=6
)


@given(rows=PORTFOLIO, target=st.floats(1e-6, 1 - 1e-6))
@example(rows=[(0.5, 1.0)], target=0.5)
@example(rows=[(1e-9, 1.0), (1 - 1e-9, 3.0)], target=0.999)
def test_the_mean_of_a_portfolio_is_what_was_wanted(rows, target):
    p, w = map(np.array, zip(*rows, strict=True))
    found = shift_to_mean(p, target, sample_weight=w)
    assert found.shift == pytest.approx(naive.shift_to_mean(p, w, target), abs=1e-7)
    assert found.after["mean"] == pytest.approx(target, rel=1e-12)
    assert found.before["mean"] == pytest.approx(np.average(p, weights=w))
    if len(set(w)) == 1:
        assert adjust_prior(p, target_mean=target).mean() == pytest.approx(target, rel=1e-12)
        assert found.before["median"] == np.sort(p)[(len(p) - 1) // 2]


def test_means_at_the_ends_and_means_that_no_shift_reaches():
    p = np.array([0.0, 0.1, 0.3, 1.0])
    for target in (0.25 + 1e-9, 0.4, 0.75 - 1e-9):
        moved = adjust_prior(p, target_mean=target)
        assert moved.mean() == pytest.approx(target, rel=1e-12)
        assert (moved[0], moved[3]) == (0.0, 1.0)
    for target in (0.1, 0.25, 0.75, 0.9):
        with pytest.raises(cal.errors.ParameterError, match=r"between 0\.25 and 0\.75"):
            adjust_prior(p, target_mean=target)
    for target in (1e-80, 1e-9, 1 - 1e-12):
        mean = shift_to_mean([0.01, 0.3], target).after["mean"]
        assert mean == pytest.approx(target, rel=1e-12)
    with pytest.raises(cal.errors.ParameterError, match="target_mean must be above 0"):
        shift_to_mean(p, 0.0)


def test_a_calibrator_takes_the_mean_of_a_portfolio():
    s, y = data(n=500)
    for calibrator in (cal.Platt(), cal.Isotonic(), cal.BLS()):
        c = calibrator.fit(s, y)
        report = shift_to_mean(c.calibrate(s), 0.031)
        f = adjust_prior(c, target_mean=report)
        assert f.calibrate(s).mean() == pytest.approx(0.031, rel=1e-9)
        record = f.provenance["prior"][0]
        assert record["portfolio"]["after"]["mean"] == pytest.approx(0.031)
        assert record["factor"] == pytest.approx(report.factor)
        with pytest.raises(cal.errors.ParameterError, match=r"rows, but 0\.031 came"):
            adjust_prior(c, target_mean=0.031)
    two = np.column_stack((1 - c.calibrate(s), c.calibrate(s)))
    assert adjust_prior(two, target_mean=0.2)[:, 1].mean() == pytest.approx(0.2)
    with pytest.raises(cal.errors.ParameterError, match="for several classes or labels"):
        adjust_prior(ROWS, target_mean=0.2)
    assert str(report).splitlines()[2].endswith(" 3.1 %")


def test_a_table_of_a_portfolio_is_as_good_as_its_rows_and_probcal_agrees():
    p, w = np.array([0.01, 0.02, 0.05, 0.3]), np.array([4.0, 3.0, 2.0, 1.0])
    table = cal.ScoreTable.from_arrays(p, [0, 1, 0, 1], w)
    by_table, by_rows = shift_to_mean(table, 0.031), shift_to_mean(p, 0.031, sample_weight=w)
    assert by_table.shift == pytest.approx(by_rows.shift, rel=1e-14)
    assert by_rows.shift == pytest.approx(PROBCAL, abs=1e-12)
    with pytest.raises(cal.errors.InputError, match="sample_weight must not be given"):
        shift_to_mean(table, 0.031, sample_weight=w)


# --- refusals -------------------------------------------------------------------------------------

WRONG = {
    "nothing": ({}, "exactly one of four ways.*none of them came"),
    "two ways": ({"kept": 0.1, "target_rate": 0.2}, "target_rate and kept came"),
    "train only": ({"train_rate": 0.1}, "target_rate must be given with train_rate"),
    "target only": ({"target_rate": 0.1}, "train_rate must be given"),
    "rate 0": ({"train_rate": 0.1, "target_rate": 0.0}, "target_rate must be above 0"),
    "rate 1": ({"train_rate": 1, "target_rate": 0.5}, "train_rate must be above 0 .* below 1"),
    "rate NaN": ({"train_rate": float("nan"), "target_rate": 0.5}, "train_rate must be above"),
    "rate text": ({"train_rate": "0.1", "target_rate": 0.5}, "train_rate must be a number"),
    "rate bool": ({"train_rate": True, "target_rate": 0.5}, "train_rate must be a number"),
    "rates": ({"train_rate": [0.5, 0.5], "target_rate": 0.5}, r"array of shape \(2,\) came"),
    "ragged": ({"train_rate": [[1], [1, 2]], "target_rate": 0.5}, "train_rate must be numbers"),
    "by label": ({"train_rate": {1: 0.5}, "target_rate": 0.5}, "labels are not known here"),
    "kept 0": ({"kept": 0.0}, "kept must be above 0 .* at most 1"),
    "kept 2": ({"kept": 2.0}, "kept must be above 0 .* at most 1"),
    "kept three": ({"kept": [1.0, 0.5, 0.5]}, "a number or 2 numbers"),
    "weight": ({"positive_weight": -1.0}, "positive_weight must be above 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_parameters_are_refused_in_words(name):
    options, words = WRONG[name]
    for subject in ([0.2, 0.3], LINES):
        with pytest.raises(cal.errors.ParameterError, match=words):
            adjust_prior(subject, **options)


def test_wrong_rates_of_classes():
    with pytest.raises(
        cal.errors.ParameterError, match=r"sum 1 over the 3 classes, but it is 0\.9"
    ):
        adjust_prior(ROWS, train_rate=TRAIN, target_rate=[0.3, 0.3, 0.3])
    with pytest.raises(cal.errors.ParameterError, match=r"kept=w / max\(w\)"):
        adjust_prior(ROWS, positive_weight=2.0)
    with pytest.raises(
        cal.errors.ParameterError, match=r"must be 3 numbers, but the number 0\.5 came"
    ):
        adjust_prior(ROWS, train_rate=0.5, target_rate=0.5)
    with pytest.raises(cal.errors.InputError, match=r"each row in .* 40 of 40 rows are not"):
        adjust_prior(2 * ROWS, train_rate=TRAIN, target_rate=TARGET)


def test_wrong_probabilities_and_calibrators():
    with pytest.raises(cal.errors.InputError, match=r"p must be probabilities in \[0, 1\]"):
        adjust_prior([0.2, 1.2], kept=0.1)
    with pytest.raises(cal.errors.InputError, match="p must be finite"):
        adjust_prior([0.2, np.nan], kept=0.1)
    s, y = data(n=60)
    local = cal.SimilarityBinning(gate=False, k=5).fit(s, y, features=s[:, None])
    with pytest.raises(
        cal.errors.InputError, match="SimilarityBinning is no function of the score"
    ):
        adjust_prior(local, kept=0.1)
    bare = cal.Fitted(STEPS, (0, 1), 1)
    with pytest.raises(cal.errors.ParameterError, match="train_rate must be given"):
        adjust_prior(bare, target_rate=0.1)


# --- the rate of unlabelled rows ------------------------------------------------------------------


@given(
    st.lists(st.tuples(TAME_PROBABILITIES, REAL), min_size=2, max_size=25),
    st.floats(0.05, 0.95),
)
def test_no_rate_is_likelier_than_ours(rows, train):
    p, w = (np.array(column) for column in zip(*rows, strict=True))
    assume(w.any() and np.ptp(p[w > 0]) > 0.01)
    pairs, rates = np.column_stack((1 - p, p)), (1 - train, train)
    found = estimate_rate(p, train_rate=train, sample_weight=w)
    others = [0.0, 1.0, train, *np.clip(found.rate + np.array([-1e-4, 1e-4]), 0, 1)]
    others.append(naive.em(pairs, w, rates, rounds=200)[1])  # may still be on its way
    at = {r: naive.log_likelihood(pairs, w, rates, (1 - r, r)) for r in (found.rate, *others)}
    assert at[found.rate] >= max(at.values()) - 1e-12 * w.sum()
    assert found.low <= found.rate <= found.high


def test_the_rate_is_that_of_em_to_the_last_digits():
    for seed, rate in enumerate((0.02, 0.3, 0.8)):
        _, y = data(seed, 300, rate)
        p = posterior(np.random.default_rng(seed).normal(1.5 * y), 0.2)
        found = estimate_rate(p, train_rate=0.2)
        pairs = np.column_stack((1 - p, p))
        assert found.rate == pytest.approx(naive.em(pairs, np.ones(300), (0.8, 0.2))[1], abs=1e-9)
        assert found.iterations < 20


@given(
    st.lists(st.tuples(PROBABILITIES, REAL), min_size=2, max_size=25),
    st.floats(0.01, 0.99),
    st.sampled_from([0.5, 0.95, 0.999]),
)
def test_the_ends_are_where_the_likelihood_has_fallen(rows, train, level):
    from scipy.stats import chi2

    p, w = (np.array(column) for column in zip(*rows, strict=True))
    assume(w.any() and np.ptp(p[w > 0]) > 0)
    found = estimate_rate(p, train_rate=train, sample_weight=w, level=level)
    size = w.sum() ** 2 / (w * w).sum()
    assert found.effective_size == pytest.approx(size)
    pairs, rates = np.column_stack((1 - p, p)), (1 - train, train)

    def at(rate):
        return naive.log_likelihood(pairs, w * size / w.sum(), rates, (1 - rate, rate))

    drop = chi2.ppf(level, 1) / 2
    for end, border in ((found.low, 0.0), (found.high, 1.0)):
        inside = min(max(end, 1e-304), 1 - 2.0**-52)  # beyond, a rate is 0 or 1
        fallen = at(min(max(found.rate, 1e-304), 1 - 2.0**-52)) - at(inside)
        if end == border:
            assert fallen <= drop + 1e-6
        elif abs(end - border) > 1e-8:  # else 1 − rate has too few digits to tell
            assert fallen == pytest.approx(drop, abs=1e-6)


def test_a_table_is_as_good_as_rows():
    s, y = data(n=500, rate=0.1)
    p = np.round(s, 2)
    rows = estimate_rate(p, train_rate=0.3)
    table = estimate_rate(cal.ScoreTable.from_arrays(p, y), train_rate=0.3)
    places, counts = np.unique(p, return_counts=True)
    unlabelled = cal.ScoreTable.from_counts(places, counts, np.zeros(len(places)))
    for found in (table, estimate_rate(unlabelled, train_rate=0.3)):
        assert found.weight == 500
        assert [found.rate, found.low, found.high] == pytest.approx(
            [rows.rate, rows.low, rows.high], rel=1e-10
        )


def test_weights_count_as_their_effective_size():
    p, _ = data(n=200)
    one, many = (estimate_rate(p, train_rate=0.2, sample_weight=np.full(200, w)) for w in (1, 100))
    assert many.rate == pytest.approx(one.rate)
    assert (many.low, many.high) == pytest.approx((one.low, one.high))
    half = np.arange(200) < 100
    part = estimate_rate(p[half], train_rate=0.2)
    assert estimate_rate(p, train_rate=0.2, sample_weight=half.astype(float)).low == part.low


def test_the_interval_holds_as_often_as_it_says():
    hits, rng = 0, np.random.default_rng(0)
    for _ in range(400):
        y = rng.random(400) < 0.1
        found = estimate_rate(posterior(rng.normal(1.5 * y), 0.4), train_rate=0.4, level=0.9)
        hits += found.low <= 0.1 <= found.high
    assert 0.87 <= hits / 400 <= 0.93


def test_equal_probabilities_tell_nothing():
    with pytest.warns(cal.errors.CalibrationWarning, match=r"all p are equal \(0.2\)"):
        found = estimate_rate([0.2] * 10, train_rate=0.2)
    assert (found.rate, found.low, found.high) == (0.2, 0.0, 1.0)
    with pytest.warns(cal.errors.CalibrationWarning, match="all p are equal"):
        assert estimate_rate([0.3] * 10, train_rate=0.2).rate == 1.0
    with pytest.warns(cal.errors.CalibrationWarning, match="all p are equal"):
        found = estimate_rates([TRAIN] * 10, train_rate=TRAIN)
    assert found.rate == pytest.approx(TRAIN)
    assert (found.low.tolist(), found.high.tolist()) == ([0.0] * 3, [1.0] * 3)


def test_estimates_are_targets():
    s, y = data(n=4000, rate=0.3)
    c = cal.Platt().fit(s, y)
    _, new = data(5, 20_000, 0.05)
    x = np.random.default_rng(5).normal(1.5 * new)
    p = c.calibrate(posterior(x, 0.3))
    found = estimate_rate(p, train_rate=y.mean())
    assert found.rate == pytest.approx(0.05, abs=0.01)
    f = adjust_prior(c, target_rate=found)
    assert f.calibrate(posterior(x, 0.3)) == pytest.approx(posterior(x, 0.05), abs=0.05)
    record = f.provenance["prior"][0]
    assert (record["train_rate"], record["target_rate"]) == (y.mean(), found.rate)
    assert dict(record["estimated"]) == found.to_dict()
    assert cal.Fitted.from_dict(f.to_dict()) == f
    assert adjust_prior(p, target_rate=found) == pytest.approx(f.calibrate(posterior(x, 0.3)))
    nobody = estimate_rate([0.01] * 50 + [0.02] * 50, train_rate=0.3)
    assert nobody.rate == 0.0
    with pytest.raises(cal.errors.ParameterError, match="Pass a rate inside its interval"):
        adjust_prior(c, target_rate=nobody)


@pytest.mark.parametrize("level", [0.0, 1.0, True, "0.95"], ids=str)
def test_levels(level):
    with pytest.raises(cal.errors.ParameterError, match="level must be a finite number"):
        estimate_rate([0.1, 0.2], train_rate=0.1, level=level)


def test_wrong_tables():
    table = cal.ScoreTable.from_arrays([0.2, 3.0], [0, 1])
    with pytest.raises(cal.errors.InputError, match="p must be probabilities"):
        estimate_rate(table, train_rate=0.1)
    with pytest.raises(cal.errors.InputError, match="sample_weight must not be given with a table"):
        estimate_rate(table, train_rate=0.1, sample_weight=[1, 1])
    with pytest.raises(cal.errors.InputError, match="it is empty"):
        estimate_rate(cal.ScoreTable.empty(), train_rate=0.1)


# --- rates of several classes ---------------------------------------------------------------------


def gaussian_classes(seed, n, train, target, gap=1.5):
    """Distributions that are right at the rates ``train``, of rows whose rates are ``target``."""
    rng = np.random.default_rng(seed)
    k = len(train)
    x = gap * np.eye(k)[rng.choice(k, n, p=target)] + rng.normal(size=(n, k))
    p = np.exp(gap * x) * train
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("target", [[0.2, 0.3, 0.5], [0.0, 0.1, 0.9], [0.01, 0.98, 0.01]], ids=str)
def test_rates_are_the_fixed_point_of_em(target):
    p = gaussian_classes(1, 300, TRAIN, target)
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    found = estimate_rates(p, train_rate=TRAIN, sample_weight=weight)
    by_em = naive.em(p, weight, TRAIN, rounds=3000)
    assert found.rate == pytest.approx(by_em, abs=1e-4 if min(target) < 0.01 else 1e-9)
    at = [naive.log_likelihood(p, weight, TRAIN, r) for r in (found.rate, by_em)]
    assert at[0] >= at[1] - 1e-10
    assert found.rate.sum() == pytest.approx(1.0)
    assert ((found.low <= found.rate) & (found.rate <= found.high)).all()


ENTRIES = st.sampled_from([0.0, 1e-9, 0.5, 1.0]) | st.floats(0, 1)
SPARSE = st.integers(2, 5).flatmap(
    lambda k: st.tuples(
        st.lists(st.floats(0.01, 1.0), min_size=k, max_size=k),
        st.lists(
            st.lists(ENTRIES, min_size=k, max_size=k).filter(any).map(lambda r: r / np.sum(r)),
            min_size=2,
            max_size=12,
        ),
    )
)


@given(SPARSE, st.sampled_from([None, 0.9]))
def test_rates_of_few_rows_are_the_best_there_are(rows, level):
    train, p = np.array(rows[0]) / np.sum(rows[0]), rows[1]
    assume(np.ptp(p, axis=0).max() > 0)
    found = estimate_rates(p, train_rate=train, level=level)
    assert naive.gap(p, np.ones(len(p)), train, found.rate) <= 1e-9 * len(p)
    if level is None:
        assert found.low is None
        return
    assert ((found.low <= found.rate) & (found.rate <= found.high)).all()


def test_two_classes_are_one_rate():
    p, _ = data(n=300)
    one = estimate_rate(p, train_rate=0.2)
    two = estimate_rates(np.column_stack((1 - p, p)), train_rate=[0.8, 0.2])
    assert two.rate == pytest.approx([1 - one.rate, one.rate], abs=1e-9)
    assert two.low == pytest.approx([1 - one.high, one.low], abs=1e-8)
    assert two.high == pytest.approx([1 - one.low, one.high], abs=1e-8)


def test_the_ends_of_classes_are_where_the_best_of_the_others_has_fallen():
    from scipy.optimize import minimize_scalar
    from scipy.stats import chi2

    p = gaussian_classes(2, 120, TRAIN, [0.02, 0.28, 0.7])
    found = estimate_rates(p, train_rate=TRAIN)
    best = naive.log_likelihood(p, np.ones(120), TRAIN, found.rate)
    for j, ends in enumerate(zip(found.low, found.high, strict=True)):
        for end in ends:

            def fallen(share, j=j, end=end):
                others = (1 - end) * np.array([share, 1 - share])
                return best - naive.log_likelihood(
                    p, np.ones(120), TRAIN, np.insert(others, j, end)
                )

            least = minimize_scalar(fallen, bounds=(0, 1), method="bounded").fun
            if end > 0:
                assert least == pytest.approx(chi2.ppf(0.95, 1) / 2, abs=1e-5)
            else:
                assert least <= chi2.ppf(0.95, 1) / 2


@pytest.mark.full
def test_intervals_of_classes_hold_as_often_as_they_say():
    target, hits = np.array([0.15, 0.25, 0.6]), np.zeros(3)
    for seed in range(150):
        p = gaussian_classes(seed, 300, TRAIN, target)
        found = estimate_rates(p, train_rate=TRAIN, level=0.9)
        hits += (found.low <= target) & (target <= found.high)
    assert ((hits / 150 > 0.84) & (hits / 150 < 0.96)).all()


def test_rates_are_targets_and_values():
    p = gaussian_classes(0, 500, TRAIN, [0.2, 0.2, 0.6])
    found = estimate_rates(p, train_rate=TRAIN, level=None)
    wanted = adjust_prior(p, train_rate=TRAIN, target_rate=found.rate)
    assert (adjust_prior(p, target_rate=found) == wanted).all()
    assert wanted.mean(axis=0) == pytest.approx(found.rate, abs=1e-9)  # what EM makes equal
    assert RateEstimates(**{k: _array(v) for k, v in found.to_dict().items()}) == found
    assert isinstance(estimate_rate(p[:, 0], train_rate=0.5), RateEstimate)


def _array(value):
    return np.array(value) if isinstance(value, list) else value


def test_nothing_heavy_is_imported():
    code = (
        "import sys, calibrant.monitor as p; p.adjust_prior([0.2], kept=0.5);"
        "print([m for m in ('sklearn', 'numba', 'pandas', 'polars') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_warnings_at_the_extremes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = [0.0, 1.0, 5e-324, 1 - 2.0**-53, 0.5]
        adjust_prior(p, train_rate=1e-100, target_rate=1 - 2.0**-53)
        assert estimate_rate(p, train_rate=0.5).rate == pytest.approx(0.5, abs=0.2)
        estimate_rates(np.eye(3), train_rate=TRAIN)


# --- the page -------------------------------------------------------------------------------------


def test_the_page_has_the_figures_of_the_benchmark(root):
    page = (root / "docs" / "howto" / "prior.md").read_text(encoding="utf-8")
    with (root / "benchmarks" / "results" / "prior.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    shown = [row for row in rows if "three classes" not in row["new rows"]]
    columns = [c for c in rows[0] if c not in ("root mean square error", *list(rows[0])[-2:])]
    assert len(shown) == 18
    lines = {"| " + " | ".join(row[c] for c in columns) + " |": row["new rows"] for row in shown}
    kinds = set(lines.values())
    quoted = [line for line in page.splitlines() if line[2:].partition(" | ")[0] in kinds]
    assert set(quoted) <= set(lines)
    assert {lines[line] for line in quoted} == kinds


def test_what_holds_no_probabilities_is_refused_with_a_reason():
    table = cal.ScoreTable.from_counts([0.2, 0.6], [1e-300, 0], [0, 1e-300])
    with pytest.raises(cal.errors.InputError, match=r"adjust_prior\(table.scores"):
        cal.adjust_prior(table, kept=0.1)
    with pytest.raises(cal.errors.InputError, match="the class Platt came"):
        cal.adjust_prior(cal.Platt, kept=0.1)
    with pytest.raises(cal.errors.InputError, match="Rescale them"):
        cal.estimate_rate(table, train_rate=0.5)
