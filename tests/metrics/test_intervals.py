"""Intervals of measures: against slow twins and other libraries, and what they promise."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import isotonic_regression

import calibrant as cal
from calibrant import ScoreTable, metrics
from calibrant.data.score_table import table_in_rows
from calibrant.errors import InputError, ParameterError
from calibrant.metrics import chance as interval_formulas
from calibrant.metrics.chance import IntervalOptions, RedrawnTables, chance_of_tables, pooled
from calibrant.metrics.measures import MEASURES, REDRAWN, chosen_records

RNG = np.random.default_rng(11)
Z = RNG.normal(-0.3, 1.5, 400)
P = 1 / (1 + np.exp(-Z))
Y = (RNG.random(400) < P).astype(int)
Q = 1 / (1 + np.exp(-1.7 * Z))
FAST = {"replicates": 100}


def sample(y, p, weight=None, weights="counts"):
    return table_in_rows(ScoreTable.from_arrays(p, y, weight), weights)


# --- twins --------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.3, 0.35, 0.8]), st.booleans(), st.integers(1, 9)),
        min_size=4,
        max_size=40,
    )
)
def test_means_are_students_interval_moved_for_skewness(rows):
    p, y, w = (np.array(column) for column in zip(*rows, strict=True))
    table = ScoreTable.from_arrays(p, y, w, classes=[False, True])
    columns = table_in_rows(table, "counts").columns
    m = interval_formulas.moments(
        table.scores, columns, interval_formulas.LOSSES["brier"](table.scores)
    )
    loss = np.repeat((y - p) ** 2, w)
    expected = np.repeat(p * (1 - p) * (1 - 2 * p) ** 2, w).sum() / len(loss) ** 2
    assert m.mean == pytest.approx(loss.mean())
    assert m.error**2 == pytest.approx(max(loss.var(ddof=1) / len(loss), expected), abs=1e-15)
    low, high = interval_formulas.mean_interval(m, 0.9)
    t = stats.t.ppf(0.95, len(loss) - 1)
    assert high - low == pytest.approx(2 * t * m.error, abs=1e-15)
    if m.error and loss.var(ddof=1) / len(loss) > expected:
        skew = ((loss - loss.mean()) ** 3).sum() / len(loss) ** 3 / m.error**3
        move = np.clip(skew * (1 / 6 + t**2 / 3), -t / 2, t / 2) * m.error
        assert (low + high) / 2 == pytest.approx(m.mean + move, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (7, 7), (3, 10), (120, 400)])
def test_shares_have_wilsons_interval(hits, n):
    wilson = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    found = interval_formulas.share_interval(hits / n, n, 0.95)
    assert found == pytest.approx((wilson.low, wilson.high), abs=1e-12)


def test_accuracy_is_wilsons_share():
    right = int(((P >= 0.5) == Y).sum())
    wilson = stats.binomtest(right, 400).proportion_ci(0.95, method="wilson")
    found = metrics.evaluate(Y, P, **FAST).intervals["accuracy"]
    assert found == pytest.approx((wilson.low, wilson.high), abs=1e-12)


def delong(y, p):
    """The variance of the AUC by all pairs."""
    wins = (p[y == 1][:, None] > p[y == 0]) + 0.5 * (p[y == 1][:, None] == p[y == 0])
    ones, zeros = wins.mean(axis=1), wins.mean(axis=0)
    return wins.mean(), ones.var(ddof=1) / len(ones) + zeros.var(ddof=1) / len(zeros)


@pytest.mark.parametrize("p", [P, P.round(1)], ids=["distinct", "ties"])
def test_areas_have_delongs_variance(p):
    area, variance = delong(Y, p)
    expected = interval_formulas.share_interval(area, area * (1 - area) / variance, 0.95)
    assert metrics.evaluate(Y, p, **FAST).intervals["auc"] == pytest.approx(expected, abs=1e-12)


def test_a_perfect_order_of_few_is_no_certainty():
    low, high = metrics.evaluate([0, 0, 0, 1, 1, 1], np.arange(6) / 6, **FAST).intervals["auc"]
    assert high == 1.0
    assert 0.5 < low < 0.9


@pytest.mark.parametrize("hits", [0, 4, 20])
def test_the_largest_gap_of_one_bin_has_binomial_limits(hits):
    y = np.arange(20) < hits
    low, high = metrics.evaluate(y, np.full(20, 0.25), classes=[False, True], **FAST).intervals[
        "mce"
    ]
    exact = stats.binomtest(hits, 20).proportion_ci(0.95, method="exact")
    assert high == pytest.approx(max(exact.high - 0.25, 0.25 - exact.low), abs=1e-9)
    both = stats.binomtest(hits, 20).proportion_ci(0.975, method="exact")
    assert low == pytest.approx(max(both.low - 0.25, 0.25 - both.high, 0.0), abs=1e-9)


@given(st.floats(0.0, 6.0))
def test_chance_is_never_taken_off_too_little(gap):
    """The expectation of |x| − τ(x) is at most the true gap, and equal to it for none."""
    x = gap + np.linspace(-9, 9, 20_001)
    density = stats.norm.pdf(x - gap)
    mean = (interval_formulas.cautious_gap(x, np.ones_like(x)) * density).sum() / density.sum()
    assert mean <= gap + 1e-6
    assert mean >= gap - 0.5
    if gap == 0:
        assert mean == pytest.approx(0.0, abs=1e-6)


def test_the_error_of_an_ece_is_that_of_signed_rows():
    b = interval_formulas.bin_sums(sample(Y, Q), 10)
    place = np.minimum((Q * 10).astype(int), 9)
    gaps = np.array([(Q - Y)[place == i].sum() / 400 for i in range(10)])
    np.testing.assert_allclose(b.gap, gaps, atol=1e-15)
    squares = [((Q - Y) ** 2)[place == i].sum() for i in range(10)]
    expected = [(Q * (1 - Q))[place == i].sum() for i in range(10)]
    spread = np.maximum(squares, expected).sum() / 400 - np.abs(gaps).sum() ** 2
    assert b.ece_error**2 == pytest.approx(spread / 400)
    rows = np.sign(gaps)[place] * (Q - Y)
    assert b.ece_error**2 == pytest.approx(rows.var() / 400, rel=0.1)
    low, high = metrics.evaluate(Y, Q).intervals["ece"]
    assert high == pytest.approx(np.abs(gaps).sum() + 1.959964 * b.ece_error)
    assert low < np.abs(gaps).sum()


def test_drawn_measures_are_the_measures():
    """Without chance the drawn measures are those of the functions."""
    table = ScoreTable.from_arrays(P.round(3), Y)
    drawn = RedrawnTables(table.scores, table.negative[None], table.positive[None])
    found = {name: of(drawn)[0] for name, of in REDRAWN.items()}
    after = metrics.evaluate(table, level=None).after
    for name in ("calibration_loss", "miscalibration", "discrimination"):
        assert found[name] == pytest.approx(after[name], abs=1e-12)
    assert found["calbin"] == pytest.approx(after["calbin"], rel=0.05)


def one_drawn_table(p, negative, positive):
    """The measures of one drawn table, cell by cell and window by window."""
    n, total = negative + positive, (negative + positive).sum()
    some = n > 0
    fit = isotonic_regression(positive[some] / n[some], weights=n[some]).x
    base, resolved = positive.sum() / total, n[some] @ fit**2 / total
    square = (negative @ p**2 + positive @ (1 - p) ** 2) / total
    mass = np.append(0.0, np.cumsum(n)) / total
    windows = []
    for start in np.arange(46) / 50:
        inside = np.clip(np.minimum(mass[1:], start + 0.1) - np.maximum(mass[:-1], start), 0, 1)
        rate = inside[some] @ (positive[some] / n[some]) / 0.1
        windows.append(inside @ np.abs(p - rate) / 0.1)
    return {
        "calbin": np.trapezoid(windows, dx=1 / 45),
        "calibration_loss": n[some] @ (p[some] - fit) ** 2 / total,
        "miscalibration": square - base + resolved,
        "discrimination": resolved - base**2,
    }


#: Σw of either class in each of six cells, some of them empty
DRAWN = st.lists(
    st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.0, 0.3, 7.5]), min_size=12, max_size=12).filter(any),
    min_size=1,
    max_size=5,
)


@given(DRAWN)
def test_all_drawn_tables_at_once_are_each_one_alone(columns):
    p = np.array([0.0, 1e-9, 0.2, 0.5, 0.51, 1.0])
    drawn = np.array(columns).reshape(-1, 2, 6)
    tables = RedrawnTables(p, drawn[:, 0], drawn[:, 1])
    found = {name: of(tables) for name, of in REDRAWN.items()}
    for place, (negative, positive) in enumerate(drawn):
        for name, value in one_drawn_table(p, negative, positive).items():
            assert found[name][place] == pytest.approx(value, abs=1e-12), name


@given(st.integers(2, 3000), st.sampled_from([0.01, 1.0, 30.0]), st.sampled_from([2, 50, 400]))
def test_tables_to_draw_from_are_coarse_nowhere(rows, lean, cells):
    """A cell holds at most 2/cells of the weight and of the range, or is a single prediction."""
    p = np.linspace(0.0, 1.0, rows) ** lean
    table = ScoreTable.from_arrays(p, np.arange(rows) % 2)
    small = pooled(table, cells)
    assert len(small) <= cells
    assert small.total == rows
    assert (small.weight @ small.scores) / rows == pytest.approx(p.mean())
    gaps, single = np.diff(small.scores), np.isin(small.scores, table.scores)
    assert ((small.weight <= 2 * rows / cells + 1) | single).all()
    assert (gaps <= 4 / cells + np.diff(table.scores).max()).all()


def test_the_bias_of_drawn_measures_is_that_of_simulation():
    """Predictions are right: whatever miscalibration is found is bias."""
    rng = np.random.default_rng(3)
    p = rng.random(300)
    found = [metrics.corp(rng.random(300) < p, p).miscalibration for _ in range(300)]
    table = ScoreTable.from_arrays(p, rng.random(300) < p)
    options = IntervalOptions(0.95, 1200, "counts", 3)
    chance = chance_of_tables(REDRAWN, table, options)["miscalibration"]
    assert chance.bias == pytest.approx(np.mean(found), rel=0.12)
    assert chance.noise == pytest.approx(np.std(found), rel=0.2)


# --- change -------------------------------------------------------------------------------------


def test_changes_of_means_are_paired():
    e = metrics.evaluate(Y, P, raw=Q, **FAST)
    apart = (Y - P) ** 2 - (Y - Q) ** 2
    difference, low, high = e.change["brier"]
    assert difference == pytest.approx(apart.mean())
    half = stats.t.ppf(0.975, 399) * apart.std(ddof=1) / 20
    assert high - low >= 2 * half * (1 - 1e-9)
    assert high - low == pytest.approx(2 * half, rel=0.15)
    assert low < difference < high


def test_an_increasing_map_does_not_change_the_auc():
    assert metrics.evaluate(Y, P, raw=Z, **FAST).change["auc"] == (0.0, 0.0, 0.0)


def test_changes_of_areas_are_delongs():
    other = np.clip(P + RNG.normal(0, 0.1, 400), 0, 1)
    difference, low, high = metrics.evaluate(Y, other, raw=P, **FAST).change["auc"]
    sides = []
    for p in (other, P):
        wins = (p[Y == 1][:, None] > p[Y == 0]) + 0.5 * (p[Y == 1][:, None] == p[Y == 0])
        sides.append((wins.mean(axis=1), wins.mean(axis=0)))
    parts = [a - b for a, b in zip(*sides, strict=True)]
    variance = sum(part.var(ddof=1) / len(part) for part in parts)
    assert difference == pytest.approx(parts[0].mean())
    assert high - low == pytest.approx(2 * 1.959964 * math.sqrt(variance), rel=0.01)


def test_two_tables_have_no_intervals_of_the_change():
    e = metrics.evaluate(ScoreTable.from_arrays(P, Y), raw=ScoreTable.from_arrays(Q, Y), **FAST)
    assert {parts[1:] for parts in e.change.values()} == {(None, None)}
    assert e.change["brier"][0] == e.after["brier"] - e.before["brier"]
    assert "do not tell which rows belong together" in e.notes[-1]


def test_rows_without_weight_are_absent_from_the_change():
    weight = np.where(np.arange(400) % 3, 1.0, 0.0)
    kept = weight > 0
    e = metrics.evaluate(Y, P, raw=Q, sample_weight=weight, **FAST)
    fewer = metrics.evaluate(Y[kept], P[kept], raw=Q[kept], **FAST)
    assert e.intervals == fewer.intervals
    for name, parts in e.change.items():
        assert parts == pytest.approx(fewer.change[name], abs=1e-12), name


# --- promises -----------------------------------------------------------------------------------


def every(e):
    """All ends of an evaluation's intervals."""
    spans = {**e.intervals, **{f"old {k}": v for k, v in (e.intervals_before or {}).items()}}
    return spans | {f"new {k}": v[1:] for k, v in (e.change or {}).items() if v[1] is not None}


def test_every_measure_has_an_interval_that_holds_it():
    e = metrics.evaluate(Y, P, raw=Q, **FAST)
    for spans, values in ((e.intervals, e.after), (e.intervals_before, e.before)):
        assert list(spans) == list(chosen_records(MEASURES))
        for name, (low, high) in spans.items():
            assert 0 <= low <= values[name] <= high
    for name, (difference, low, high) in e.change.items():
        assert difference == e.after[name] - e.before[name]
        assert (low is None) == (name in ("mce", "calbin"))
        assert low is None or low <= difference <= high


def test_the_order_of_rows_does_not_matter_and_seeds_do():
    order = RNG.permutation(400)
    one = metrics.evaluate(Y, P, raw=Q, **FAST)
    other = metrics.evaluate(Y[order], P[order], raw=Q[order], **FAST)
    assert one.intervals == other.intervals
    for name, span in every(one).items():
        assert span == pytest.approx(every(other)[name], abs=1e-12)
    assert metrics.evaluate(Y, P, raw=Q, **FAST) == one
    again = metrics.evaluate(Y, P, raw=Q, random_state=1, **FAST)
    assert again.intervals["calbin"] != one.intervals["calbin"]
    assert again.intervals["brier"] == one.intervals["brier"]


def test_counts_are_repeated_rows():
    weight = RNG.integers(1, 4, 400)
    rows = np.repeat(np.arange(400), weight)
    one = metrics.evaluate(Y, P, raw=Q, sample_weight=weight, weights="counts", **FAST)
    other = metrics.evaluate(Y[rows], P[rows], raw=Q[rows], **FAST)
    for name, span in every(one).items():
        assert span == pytest.approx(every(other)[name], abs=1e-12), name


def test_importance_weights_have_no_scale():
    plain = metrics.evaluate(Y, P, raw=Q, **FAST)
    for weight in (100.0, 1e-150, 0.5, 1e100):
        e = metrics.evaluate(Y, P, raw=Q, sample_weight=np.full(400, weight), **FAST)
        for name, span in every(e).items():
            if "calbin" not in name:  # its windows hold whole cases
                assert span == pytest.approx(every(plain)[name], rel=1e-6, abs=1e-9), name


@pytest.mark.parametrize("test", [metrics.evaluate, metrics.hosmer_lemeshow])
def test_counts_of_more_rows_than_floats_tell_are_refused(test):
    with pytest.raises(InputError, match="their sum must be at most 2⁵³"):
        test(Y, P, sample_weight=np.full(400, 1e15), weights="counts")


def test_a_hundred_as_counts_makes_intervals_ten_times_narrower_and_says_so():
    weight = np.full(400, 100.0)
    plain = metrics.evaluate(Y, P)
    counts = metrics.evaluate(Y, P, sample_weight=weight, weights="counts")
    wide, narrow = (e.intervals["brier"] for e in (plain, counts))
    assert (wide[1] - wide[0]) / (narrow[1] - narrow[0]) == pytest.approx(10, rel=0.05)
    assert "worth 400" in counts.notes[-1]
    assert 'weights="importance"' in counts.notes[-1]
    assert not plain.notes


def test_unequal_importance_weights_widen_intervals():
    weight = RNG.exponential(size=400) ** 2
    plain = metrics.evaluate(Y, P, **FAST)
    e = metrics.evaluate(Y, P, sample_weight=weight, weights="importance", **FAST)
    ratio = math.sqrt(400 / ScoreTable.from_arrays(P, Y, weight).effective_size)
    for name in ("brier", "log_loss", "ece", "accuracy", "auc", "miscalibration"):
        wide, narrow = e.intervals[name], plain.intervals[name]
        assert (wide[1] - wide[0]) / (narrow[1] - narrow[0]) > 1 + 0.3 * (ratio - 1), name


@pytest.mark.parametrize("several", [False, True])
def test_more_confidence_is_wider(several):
    p = np.column_stack((P / 2, P / 2, 1 - P)) if several else P
    y = np.where(Y == 1, np.arange(400) % 2, 2) if several else Y
    narrow, wide = (metrics.evaluate(y, p, level=level, **FAST) for level in (0.8, 0.99))
    for name, (low, high) in narrow.intervals.items():
        least, most = wide.intervals[name]
        assert least <= low <= high <= most, name
        assert most - least > high - low, name


def test_none_means_none():
    e = metrics.evaluate(Y, P, raw=Q, level=None)
    assert (e.level, e.intervals, e.intervals_before, e.change) == (None,) * 4


def test_rare_events_that_did_not_come_are_no_certainty():
    e = metrics.evaluate(np.zeros(100), np.full(100, 0.02), classes=[0, 1])
    assert e.intervals["brier"][1] > 0.02
    assert e.intervals["log_loss"][1] > 0.05
    assert e.intervals["ece"][1] > 0.03
    assert e.intervals["accuracy"][0] < 0.97


def test_too_little_data_is_said():
    one = metrics.evaluate([1], [0.7], classes=[0, 1])
    assert one.intervals == {}
    assert "no intervals: 1 rows are too few" in one.notes
    few = metrics.evaluate([0] * 30 + [1] * 9, np.linspace(0.1, 0.9, 39))
    assert set(few.after) - set(few.intervals) == set(REDRAWN)
    assert any("it takes 10 positives or more, and 9 came" in note for note in few.notes)
    enough = metrics.evaluate([0] * 30 + [1] * 10, np.linspace(0.1, 0.9, 40))
    assert set(enough.intervals) == set(enough.after)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 0.0}, "level must be a finite number above 0 and below 1"),
        ({"level": 95}, "level must be"),
        ({"level": math.nan}, "level must be"),
        ({"level": "0.95"}, "level must be"),
        ({"replicates": 99}, "replicates must be a whole number of at least 100"),
        ({"replicates": 1e3}, "replicates must be"),
        ({"weights": "frequency"}, "weights must be 'importance' or 'counts'"),
        ({"random_state": -1}, "random_state must be"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        metrics.evaluate(Y, P, **options)
    with pytest.raises(ParameterError, match=message):
        metrics.evaluate(Y % 3, np.column_stack((P / 2, P / 2, 1 - P)), classes=range(3), **options)


def test_bad_rows_are_still_refused_first():
    with pytest.raises(InputError, match="y has 400 and p has 399"):
        metrics.evaluate(Y, P[:399])


# --- several classes ----------------------------------------------------------------------------

THREE = np.column_stack((P / 3, 2 * P / 3, 1 - P))
CODES = np.where(RNG.random(400) < P, (RNG.random(400) < 2 / 3).astype(int), 2)


def test_several_classes():
    sharp = THREE**2 / (THREE**2).sum(axis=1, keepdims=True)
    e = metrics.evaluate(CODES, THREE, raw=sharp)
    for spans, values in ((e.intervals, e.after), (e.intervals_before, e.before)):
        assert set(values) - set(spans) == {"calbin"}
        for name, (low, high) in spans.items():
            assert 0 <= low <= values[name] <= high
    known = {name for name, (_, low, _) in e.change.items() if low is not None}
    assert known == {"log_loss", "brier", "rmse", "top_label_ece", "auc", "accuracy"}
    order = RNG.permutation(400)
    other = metrics.evaluate(CODES[order], THREE[order], raw=sharp[order])
    for name, span in every(e).items():
        assert span == pytest.approx(every(other)[name], abs=1e-12), name


def test_several_classes_as_two():
    """The top label is a binary matter; means are Student's."""
    e = metrics.evaluate(CODES, THREE)
    hit, top = THREE.argmax(axis=1) == CODES, THREE.max(axis=1)
    two = metrics.evaluate(hit, top, **FAST)
    assert e.intervals["top_label_ece"] == pytest.approx(two.intervals["ece"])
    assert e.intervals["top_label_mce"] == pytest.approx(two.intervals["mce"])
    assert e.intervals["accuracy"][0] == pytest.approx(
        interval_formulas.share_interval(hit.mean(), 400, 0.95)[0]
    )
    loss = -np.log(THREE[np.arange(400), CODES])
    low, high = e.intervals["log_loss"]
    half = stats.t.ppf(0.975, 399) * loss.std(ddof=1) / 20
    assert high - low == pytest.approx(2 * half, rel=0.1)


def test_weights_of_several_classes():
    weight = RNG.integers(1, 4, 400)
    rows = np.repeat(np.arange(400), weight)
    turned = THREE[:, [1, 0, 2]]
    counts = metrics.evaluate(CODES, THREE, raw=turned, sample_weight=weight, weights="counts")
    other = metrics.evaluate(CODES[rows], THREE[rows], raw=THREE[rows][:, [1, 0, 2]])
    for name, span in every(counts).items():
        assert span == pytest.approx(every(other)[name], abs=1e-12), name
    plain = metrics.evaluate(CODES, THREE)
    hundred = metrics.evaluate(CODES, THREE, sample_weight=np.full(400, 100.0))
    for name, span in every(hundred).items():
        assert span == pytest.approx(every(plain)[name], rel=1e-6, abs=1e-9), name


def test_an_impossible_class_has_no_interval_of_its_log_loss():
    sure = np.eye(3)[(CODES + (np.arange(400) == 0)) % 3]
    e = metrics.evaluate(CODES, THREE, raw=sure)
    assert "log_loss" not in e.intervals_before
    assert "log_loss" not in e.change
    assert "log_loss" in e.intervals
    assert all(math.isfinite(end) for span in every(e).values() for end in span)


# --- at the ends of the range -------------------------------------------------------------------


def test_losses_next_to_nothing_have_intervals():
    """The squares of 1e-261 are numbers, their powers of 3/2 are not."""
    found = metrics.evaluate([0, 1], [0.2, 0.7], raw=[1e-261, 1.0])
    low, high = found.intervals_before["brier"]
    assert 0.0 <= low <= found.before["brier"] <= high < 1e-100
    assert all(math.isfinite(end) for span in found.intervals_before.values() for end in span)


@pytest.mark.parametrize("scale", [2.0**-490, 2.0**-300, 2.0**300])
def test_the_scale_of_importance_weights_does_not_matter(scale):
    weight = np.random.default_rng(3).random(400)
    options = {"raw": Q, "weights": "importance", **FAST}
    one, other = (metrics.evaluate(Y, P, sample_weight=weight * s, **options) for s in (1.0, scale))
    for name, span in one.intervals.items():
        assert other.intervals[name] == pytest.approx(span, rel=1e-9, abs=1e-12)
    for name, (_, *span) in one.change.items():
        if span[0] is not None:
            assert other.change[name][1:] == pytest.approx(tuple(span), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("weight", [1e-150, 1e-12])
def test_less_than_two_rows_change_without_intervals(weight):
    one = metrics.evaluate([1], [0.7], raw=[0.6], classes=[0, 1])
    tiny = {"sample_weight": np.full(400, weight), "weights": "counts"}
    found = [one, metrics.evaluate(Y, P, raw=Q, **tiny, **FAST)]
    three, tiny["sample_weight"] = np.full((30, 3), 1 / 3), np.full(30, weight)
    found += [metrics.evaluate(np.arange(30) % 3, three, raw=three[:, ::-1], **tiny)]
    for each in found:
        assert each.intervals == {}
        assert all(low is None and high is None for _, low, high in each.change.values())
        assert any("rows are too few" in note for note in each.notes)


def test_labels_that_json_does_not_know():
    days = np.array(["2026-01-01", "2026-01-02", "2026-01-03"] * 4, dtype="datetime64[D]")
    found = metrics.evaluate(days, np.full((12, 3), 1 / 3), level=None)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["labels"][0] == "2026-01-01"


@pytest.mark.parametrize("weight", [1e30, 1e60, 1e100])
def test_weights_of_any_size_have_finite_intervals(weight):
    rng = np.random.default_rng(5)
    p = rng.random(300)
    y = rng.random(300) < p
    found = metrics.evaluate(y, p, sample_weight=np.full(300, weight))
    low, high = found.intervals["mce"]
    assert low <= found.after["mce"] <= high
    json.dumps(found.to_dict(), allow_nan=False)
    p = rng.dirichlet([1.0, 1.0, 1.0], 300)
    classes = metrics.evaluate(rng.integers(0, 3, 300), p, sample_weight=np.full(300, weight))
    json.dumps(classes.to_dict(), allow_nan=False)


def test_predictions_that_are_all_but_zero_have_intervals():
    """The slope of the isotonic curve between them is beyond floats."""
    p = np.repeat([0.0, 5e-324, 2.22507386e-311], [15, 4, 4])
    y = np.repeat([0, 1, 0, 1], [9, 6, 4, 4])
    found = metrics.evaluate(y, p)
    assert {"calibration_loss", "miscalibration"} <= set(found.intervals)
    assert all(low <= high for low, high in found.intervals.values())


@pytest.mark.filterwarnings("ignore::calibrant.errors.AdviceWarning")
@pytest.mark.parametrize("tiny", [1e-300, 1e-160])
@pytest.mark.parametrize("where", ["some", "most", "lower scores", "positives", "negatives"])
def test_weights_whose_squares_are_too_small_for_floats(tiny, where):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    at = {
        "some": np.arange(400) % 3 == 0,
        "most": np.arange(400) % 20 > 0,
        "lower scores": p < 0.4,
        "positives": y == 1,
        "negatives": y == 0,
    }[where]
    weight = np.where(at, tiny, 1.0)
    found = cal.evaluate(y, p, sample_weight=weight, measures="all")
    assert all(low <= high for low, high in found.intervals.values())
    cal.AutoCalibrator(candidates=["platt"]).fit(p, y, sample_weight=weight)
    for curve in ("binned", "isotonic", "smooth"):
        for band in ("confidence", "consistency"):
            cal.reliability_diagram(y, p, sample_weight=weight, curve=curve, band=band)


@pytest.mark.filterwarnings("ignore::calibrant.errors.AdviceWarning")
@pytest.mark.parametrize("tiny", [1e-300, 1e-160])
@pytest.mark.parametrize("rare", [[0], [1, 2]])
def test_classes_of_next_to_no_weight(tiny, rare):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 400)
    y = (p.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1)
    weight = np.where(np.isin(y, rare), tiny, 1.0)
    found = cal.evaluate(y, p, sample_weight=weight, measures="all")
    assert all(low <= high for low, high in found.intervals.values())
    cal.AutoCalibrator().fit(p, y, sample_weight=weight)
