"""Has calibration changed? The test against its twin; what it must see, and what not."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.maps import Chain, Identity, Interval, Logistic, Piecewise
from calibrant.monitor import Drift, check_drift
from calibrant.monitor.change_models import Remedy
from calibrant.monitor.drift import drift_in_words, drift_table
from strategies import REAL, costly, rows
from twins import drift as naive

ScoreTable = cal.ScoreTable


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def draw(seed, n, mean=-1.0, change=lambda z: z):
    """Scores, and labels that come as the changed logit says."""
    rng = np.random.default_rng(seed)
    z = rng.normal(mean, 1.3, n)
    return sigmoid(z), (rng.random(n) < sigmoid(change(z))).astype(int)


def table(seed, n, mean=-1.0, change=lambda z: z):
    return ScoreTable.from_arrays(*draw(seed, n, mean, change))


def same(a: Drift, b: Drift, rel=1e-6):
    """The same answer but for rounding."""
    assert a.recommendation == b.recommendation
    assert [t.name for t in a.tests] == [t.name for t in b.tests]
    for x, y in zip(a.tests, b.tests, strict=True):
        assert x.statistic == pytest.approx(y.statistic, rel=rel, abs=1e-6)
        assert x.p_value == pytest.approx(y.p_value, rel=rel, abs=1e-6)
    assert a.shift == pytest.approx(b.shift, rel=rel, abs=1e-6)
    assert a.line == pytest.approx(b.line, rel=rel, abs=1e-6)
    for one, other in zip(a.remedies, b.remedies, strict=True):
        assert one.saves == pytest.approx(other.saves, rel=rel, abs=1e-8)
        assert one.leaves == pytest.approx(other.leaves, rel=1e-3, abs=1e-4)


# --- the twin -----------------------------------------------------------------------------------

LEVELS = np.array([0.1, 0.25, 0.4, 0.6, 0.8])


def on_levels(seed, n, change):
    rng = np.random.default_rng(seed)
    s = rng.choice(LEVELS, n)
    return s, (rng.random(n) < sigmoid(change(np.log(s / (1 - s))))).astype(int)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shift", [0.0, 0.5, -1.0])
def test_two_tables_like_the_twin(seed, shift):
    (a, ya), (b, yb) = (
        on_levels(seed, 400, lambda z: z),
        on_levels(seed + 90, 300, lambda z: z + shift),
    )
    drift = check_drift(ScoreTable.from_arrays(a, ya), ScoreTable.from_arrays(b, yb))
    s, new = np.append(a, b), np.repeat([0.0, 1.0], [len(a), len(b)])
    expected = naive.ladder(np.log(s / (1 - s)), np.append(ya, yb), new, None)
    for test, (statistic, df, p, _) in zip(drift.tests, expected, strict=True):
        assert test.statistic == pytest.approx(statistic, rel=0.01, abs=0.01)  # the prior
        assert test.df == df
        assert test.p_value == pytest.approx(p, rel=0.05, abs=0.005)
    assert drift.shift == pytest.approx(expected[0][3][0], rel=0.01, abs=0.002)
    assert drift.line == pytest.approx(tuple(expected[1][3]), rel=0.02, abs=0.005)
    assert drift.distance == pytest.approx(naive.distance(a.tolist(), b.tolist()), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_map_and_a_table_like_the_twin(seed):
    s, y = draw(seed, 300, mean=0.0, change=lambda z: 0.7 * z + 0.2)
    z = np.log(s / (1 - s))
    drift = check_drift(Identity(), ScoreTable.from_arrays(s, y))
    expected = naive.ladder(z, y, np.ones(len(s)), z)
    for test, (statistic, df, p, _) in zip(drift.tests, expected, strict=True):
        assert test.statistic == pytest.approx(statistic, rel=2e-3, abs=1e-3)
        assert (test.df, test.p_value) == (df, pytest.approx(p, rel=0.01, abs=1e-3))
    assert drift.shift == pytest.approx(expected[0][3][0], rel=1e-3)
    assert drift.line == pytest.approx(tuple(expected[1][3]), rel=1e-2)


@pytest.mark.parametrize("seed", range(4))
def test_unequal_weights_like_the_twin(seed):
    s, y = draw(seed, 100, mean=0.0, change=lambda z: z + 0.5)
    rng = np.random.default_rng(seed)
    w = np.where(y, 3.0, 1.0) * np.exp(rng.normal(size=100))
    test = check_drift(Identity(), ScoreTable.from_arrays(s, y, w)).tests[0]
    assert test.statistic == pytest.approx(naive.weighted_intercept(s, y, w), rel=1e-3)


def weighed_rows(rng, kind, levels):
    """Scores (many of them tied, or few), labels and weights of a table."""
    n = int(rng.integers(30, 400))
    z = rng.choice(levels, n) if levels is not None else rng.normal(rng.normal() / 2, 1.3, n)
    z = z if rng.random() < 0.5 else np.round(z, 1)
    y = (rng.random(n) < sigmoid(rng.normal() / 2 + rng.uniform(0.4, 1.6) * z)).astype(float)
    draws = {
        "none": np.ones(n),
        "counts": rng.integers(1, 4, n).astype(float),
        "importance": np.exp(rng.normal(size=n)) * np.where(y > 0, rng.choice([1.0, 3.0]), 1.0),
    }
    return z, y, draws[kind]


@pytest.mark.parametrize("kind", ["none", "importance", "counts"])
@pytest.mark.parametrize("by_map", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_any_rows_like_the_twin(kind, by_map, many):
    """Statistics, degrees of freedom and p-values, with ties, weights, few scores and splines."""
    meaning, compared = "counts" if kind == "counts" else "importance", 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        levels = None if many else np.sort(rng.normal(size=rng.integers(2, 7)))
        both = [weighed_rows(rng, kind, levels) for _ in range(2)]
        try:
            if by_map:
                both = both[1:]
                [(z, y, w)] = both
                new = ScoreTable.from_arrays(sigmoid(z), y, w)
                drift = check_drift(Identity(), new, weights=meaning)
            else:
                tables = [ScoreTable.from_arrays(*rows) for rows in both]
                drift = check_drift(*tables, scale="raw", weights=meaning)
                low, high = max(z.min() for z, _, _ in both), min(z.max() for z, _, _ in both)
                both = [[v[(z >= low) & (z <= high)] for v in (z, y, w)] for z, y, w in both]
        except cal.errors.InputError:
            continue  # too few scores in common
        spreads = [naive.table_spreads(*rows, kind == "counts") for rows in both]
        sizes = [naive.rarer(y, w, own) for (_, y, _), (w, *own) in zip(both, spreads, strict=True)]
        steps = 1 + (min(sizes) >= 5) + (min(sizes) >= 10)
        z, y = (np.concatenate([rows[k] for rows in both]) for k in (0, 1))
        w, *spread = (np.concatenate([own[k] for own in spreads]) for k in range(3))
        flag = np.repeat([1.0] if by_map else [0.0, 1.0], [len(rows[0]) for rows in both])
        expected = naive.weighted_ladder(z, y, w, flag, spread, z if by_map else None, steps=steps)
        assert [test.df for test in drift.tests] == [df for _, df, _ in expected]
        for test, (statistic, _, p) in zip(drift.tests, expected, strict=True):
            assert test.statistic == pytest.approx(statistic, rel=1e-6, abs=1e-8)
            assert test.p_value == pytest.approx(p, rel=1e-6, abs=1e-9)
        compared += 1
    assert compared >= 15


# --- what must not matter -----------------------------------------------------------------------


@costly
@given(st.integers(0, 10**6))
def test_neither_order_nor_chunks_matter(seed):
    s, y = draw(seed, 120)
    other = table(seed + 1, 90)
    order = np.random.default_rng(seed).permutation(len(s))
    whole = check_drift(ScoreTable.from_arrays(s, y), other)
    same(check_drift(ScoreTable.from_arrays(s[order], y[order]), other), whole)
    halves = ScoreTable.from_arrays(s[:50], y[:50]) + ScoreTable.from_arrays(s[50:], y[50:])
    same(check_drift(halves, other), whole)


@costly
@given(st.integers(0, 10**6))
def test_counts_are_repeats(seed):
    rng = np.random.default_rng(seed)
    s, y = draw(seed, 150)
    s, w = np.round(s, 2), rng.integers(1, 4, len(s))
    other = table(seed + 1, 200)
    repeated = ScoreTable.from_arrays(np.repeat(s, w), np.repeat(y, w))
    counted = ScoreTable.from_counts(s, w * (1 - y), w * y)
    weighted = ScoreTable.from_arrays(s, y, w)
    expected = check_drift(repeated, other)
    same(check_drift(counted, other), expected)
    same(check_drift(weighted, other, weights="counts"), expected)


@pytest.mark.parametrize("scale", [1e-3, 7.0, 1e6])
def test_the_scale_of_importance_weights_plays_no_part(scale):
    s, y = draw(1, 400)
    w = np.random.default_rng(2).random(400) + 0.1
    other = table(3, 300)
    first = check_drift(ScoreTable.from_arrays(s, y, w), other)
    same(check_drift(ScoreTable.from_arrays(s, y, scale * w), other), first)
    even = check_drift(ScoreTable.from_arrays(s, y, np.full(400, scale)), other)
    same(even, check_drift(ScoreTable.from_arrays(s, y), other))


def test_margins_may_be_moved_and_stretched():
    rng = np.random.default_rng(0)
    pairs = [(z := rng.normal(k, 2, 600), rng.random(600) < sigmoid(z)) for k in (0, 1)]
    plain = check_drift(*(ScoreTable.from_arrays(s, y) for s, y in pairs))
    moved = check_drift(*(ScoreTable.from_arrays(3 * s + 50, y) for s, y in pairs))
    assert plain.scale == moved.scale == "raw"
    for a, b in zip(plain.tests, moved.tests, strict=True):
        assert a.statistic == pytest.approx(b.statistic, rel=1e-6)
    assert moved.line[1] == pytest.approx(plain.line[1] / 3, rel=1e-6)


def test_the_other_label_gives_the_mirror_image():
    (a, ya), (b, yb) = draw(0, 500), draw(1, 500, change=lambda z: z + 0.5)
    drift = check_drift(ScoreTable.from_arrays(a, ya), ScoreTable.from_arrays(b, yb))
    mirror = check_drift(
        ScoreTable.from_arrays(1 - a, 1 - ya), ScoreTable.from_arrays(1 - b, 1 - yb)
    )
    assert mirror.shift == pytest.approx(-drift.shift, abs=1e-3)
    for x, y in zip(drift.tests, mirror.tests, strict=True):
        assert x.statistic == pytest.approx(y.statistic, abs=0.02)


@pytest.mark.parametrize("few", [0, 1])
def test_the_mirror_image_where_one_table_has_few_scores(few):
    """A curve that is free only on the left would tell labels apart."""
    tables = [list(draw(seed, 1500, change=lambda z: z + np.sin(2 * z))) for seed in (0, 1)]
    tables[few][0] = np.clip(np.round(tables[few][0], 1), 0.02, 0.98)
    drift = check_drift(*(ScoreTable.from_arrays(s, y) for s, y in tables))
    mirror = check_drift(*(ScoreTable.from_arrays(1 - s, 1 - y) for s, y in tables))
    assert mirror.shift == pytest.approx(-drift.shift, abs=1e-3)
    for x, y in zip(drift.tests, mirror.tests, strict=True):
        assert x.statistic == pytest.approx(y.statistic, abs=0.02)


@pytest.mark.parametrize("seed", [2, 5, 15])
def test_weights_may_be_scaled_where_scores_end_a_part(seed):
    """Parts are told by sums of weights, whose last bits depend on the scale."""
    rng = np.random.default_rng(seed)
    s = np.round(sigmoid(rng.normal(size=400)), 3)
    y, w = rng.random(400) < s, rng.choice([1.0, 2.0, 3.0], 400)
    plain = check_drift(Identity(), ScoreTable.from_arrays(s, y, w))
    for scale in (0.1, 7.3, 1 / 3):
        same(plain, check_drift(Identity(), ScoreTable.from_arrays(s, y, w * scale)), rel=1e-9)


@pytest.mark.parametrize("cases", [5, 10])
def test_rows_of_equal_weight_are_as_many_as_they_are(cases):
    """Of a weight of 0.1, five rows were worth 4.999999999999999, and the slope was not tested."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        s = rng.uniform(0.01, 0.99, 300)
        y = np.isin(np.arange(300), rng.choice(300, cases, replace=False))
        plain = ScoreTable.from_arrays(s, y)
        for weight in (0.1, 1 / 3, 123.456):
            weighed = ScoreTable.from_arrays(s, y, np.full(300, weight))
            assert (weighed.rarest, weighed.effective_size) == (cases, 300)
            same(check_drift(Identity(), plain), check_drift(Identity(), weighed), rel=1e-9)


# --- what must be seen, and what not ------------------------------------------------------------


CHANGES = {
    "intercept": lambda z: z + 0.5,
    "refit": lambda z: 0.6 * z,
    "new map": lambda z: z + np.sin(2 * z),
}


@pytest.mark.parametrize("expected", list(CHANGES))
@pytest.mark.parametrize("by_map", [False, True])
def test_the_right_remedy(expected, by_map):
    new = table(2, 20_000, change=CHANGES[expected])
    drift = check_drift(Identity() if by_map else table(1, 20_000), new)
    assert drift.recommendation == expected
    assert drift.found
    assert drift.p_value < 1e-6
    saves = {remedy.name: remedy.saves for remedy in drift.remedies}
    assert saves["none"] == 0.0
    assert saves[expected] == pytest.approx(max(saves.values()), abs=2e-4)


def test_sizes_are_right():
    n = 200_000
    new = table(2, n, change=lambda z: z + 0.3)
    drift = check_drift(table(1, n), new)
    p, q = new.scores, sigmoid(np.log(new.scores / (1 - new.scores)) + 0.3)
    truth = np.sqrt(np.mean((q - p) ** 2))
    assert drift.change == pytest.approx(truth, rel=0.1)
    gain = np.mean(q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p)))
    assert drift.remedies[1].saves == pytest.approx(gain, rel=0.15)
    assert drift.shift == pytest.approx(0.3, abs=3 * drift.shift_error)
    assert 0.005 < drift.shift_error < 0.02
    assert drift.rates.expected == pytest.approx(float(p @ new.weight) / n, abs=0.005)
    assert drift.rates.new == new.total_positive / new.total


def test_scores_that_moved_are_no_alarm():
    drift = check_drift(table(1, 30_000, mean=-1.5), table(2, 30_000, mean=0.5))
    assert drift.recommendation == "none"
    assert drift.distance > 0.4
    assert drift.rates.new > drift.rates.reference + 0.2
    assert drift.rates.expected == pytest.approx(drift.rates.new, abs=0.02)


@pytest.mark.parametrize("few", [0, 1])
def test_few_scores_beside_many_are_no_alarm(few):
    """The curve of many scores may bend between the few, however few these are."""
    alarms, levels = 0, np.array([0.05, 0.2, 0.5, 0.7, 0.95])
    for seed in range(30):
        rng = np.random.default_rng(seed)
        scores = [rng.beta(1.2, 1.2, 4000), rng.beta(1.2, 1.2, 4000)]
        scores[few] = rng.choice(levels, 1500)
        z = [np.log(s / (1 - s)) for s in scores]
        truth = [sigmoid(v + np.where(v > 0, np.sin(2 * v), 0.0)) for v in z]
        labels = [rng.random(len(p)) < p for p in truth]
        pairs = zip(scores, labels, strict=True)
        alarms += check_drift(*(ScoreTable.from_arrays(s, y) for s, y in pairs)).found
    assert alarms <= 5  # 1.5 expected


@pytest.mark.full
def test_least_keeps_what_is_good_enough():
    old = table(1, 300_000)
    new = table(2, 300_000, change=lambda z: z + 0.3 + 0.05 * np.sin(2 * z))
    assert check_drift(old, new).recommendation == "new map"
    assert check_drift(old, new, least=0.015).recommendation == "intercept"
    small = check_drift(old, new, least=0.2)
    assert (small.recommendation, small.found) == ("none", True)
    assert "but it is small" in drift_in_words(small)[0]


@pytest.mark.parametrize("kind", ["even", "moved", "rare", "weights", "map"])
@pytest.mark.full
def test_false_alarms_are_about_as_many_as_promised(kind):
    rng = np.random.default_rng(11)
    alarms, runs, n = 0, 150, 300
    mean = {"moved": (-1.5, 0.0), "rare": (-4.0, -4.0)}.get(kind, (-1.0, -1.0))
    for _ in range(runs):
        tables = []
        for centre in mean:
            z = rng.normal(centre, 1.3, n)
            w = np.exp(rng.normal(size=n)) if kind == "weights" else None
            tables.append(ScoreTable.from_arrays(sigmoid(z), rng.random(n) < sigmoid(z), w))
        alarms += check_drift(Identity() if kind == "map" else tables[0], tables[1]).found
    assert 1 <= alarms <= 17  # 7.5 expected; beyond these one time in a thousand


def test_the_error_of_a_fitted_map_is_counted():
    old, new = table(1, 2000), table(2, 2000)
    c = cal.Platt().fit_table(old)
    exact, fitted = check_drift(c.map_, new), check_drift(c, new)
    assert fitted.tests[0].statistic == pytest.approx(exact.tests[0].statistic / 2, rel=0.1)
    assert fitted.shift == exact.shift
    assert fitted.weights == (2000.0, 2000.0)
    assert exact.weights == (None, 2000.0)
    assert "taken as exact" in exact.notes[0]
    assert fitted.notes == ()
    damaged = cal.Fitted(c.map_, (0, 1), 1, provenance={"weight": "many", "effective_size": -3})
    assert check_drift(damaged, new).notes == exact.notes


def test_a_few_cases_are_enough_for_what_they_can_tell():
    rng = np.random.default_rng(0)
    s = rng.random(300)
    old = ScoreTable.from_arrays(s, rng.random(300) < s)
    few = {count: ScoreTable.from_arrays(s, np.arange(300) < count) for count in (0, 4, 7, 30)}
    assert [len(check_drift(old, few[count]).tests) for count in few] == [1, 1, 2, 3]
    assert "for want of rows of the rarer class" in check_drift(old, few[4]).notes[-1]
    assert check_drift(old, few[0]).recommendation == "intercept"
    assert check_drift(Identity(), few[0]).recommendation == "intercept"


# --- input --------------------------------------------------------------------------------------


@given(rows(max_size=50), rows(max_size=50, weight=REAL), st.booleans())
def test_any_tables_give_an_answer_or_a_reason(a, b, by_map):
    reference, new = (ScoreTable.from_arrays(*one) for one in (a, b))
    if by_map:
        reference = Logistic(0.1, (("x", 0.5),))
    try:
        drift = check_drift(reference, new)
    except cal.errors.InputError as refused:
        assert str(refused)[-1] == "."  # noqa: PT017
        return
    document = json.dumps(drift.to_dict(), allow_nan=False)
    assert json.loads(document)["recommendation"] == drift.recommendation
    assert 0.0 <= drift.p_value <= 1.0
    assert all(test.statistic >= 0.0 for test in drift.tests)
    assert pickle.loads(pickle.dumps(drift)) == drift
    assert str(drift).splitlines()[-1].endswith(".")


def test_degenerate_tables():
    one = ScoreTable.from_counts([0.5], [60], [40])
    drift = check_drift(one, ScoreTable.from_counts([0.5], [20], [80]))
    assert [test.name for test in drift.tests] == ["intercept"]
    assert drift.recommendation == "intercept"
    assert drift.shift == pytest.approx(np.log(4) - np.log(40 / 60), rel=0.01)
    assert "too few different scores" in drift.notes[0]
    apart = ScoreTable.from_counts([0.1, 0.4, 0.6, 0.9], [50, 50, 0, 0], [0, 0, 50, 50])
    assert check_drift(apart, apart).recommendation == "none"
    between = check_drift(
        ScoreTable.from_counts(np.arange(10) / 10, [9] * 10, range(10)),
        ScoreTable.from_counts(np.arange(10) / 10 + 0.05, [9] * 10, range(10)),
    )
    assert between.recommendation == "none"
    wild = ScoreTable.from_counts([1e99], [1], [0])
    odd = check_drift(table(1, 2000) + wild, table(2, 2000) + wild)
    assert odd.recommendation == "none"  # one wild score does not hide the others
    far = ScoreTable.from_counts([0.0, 1.0], [0, 5], [5, 0])
    with pytest.raises(cal.errors.InputError, match="gives all of them 0 or 1"):
        check_drift(Identity(), far)
    note = check_drift(Identity(), far + one).notes[0]
    assert "9.09 % of the new rows" in note
    assert "100 % of them came otherwise" in note


@pytest.mark.parametrize(
    ("reference", "new", "options", "words"),
    [
        (table(0, 9), [0.1], {}, "new must be a ScoreTable, but list came"),
        ([0.1], table(0, 9), {}, "calibrator must be fitted, what load returns, or a map"),
        (ScoreTable.empty(), table(0, 9), {}, "reference table must hold at least one score"),
        (table(0, 9), ScoreTable.empty(), {}, "new table must hold at least one score"),
        (
            ScoreTable.from_counts([0.1, 0.2], [5, 5], [1, 2]),
            ScoreTable.from_counts([0.6, 0.7], [5, 5], [1, 2]),
            {},
            "the reference has 0.1 to 0.2 and the new table 0.6 to 0.7",
        ),
        (
            ScoreTable.from_counts([0.1, 0.9], [5, 5], [1, 2]),
            ScoreTable.from_counts([0.6, 0.7], [5, 5], [1, 2]),
            {},
            "no reference row lies where the other table has scores",
        ),
        (
            ScoreTable.from_counts([0.1, 0.9], [5, 5], [0, 0]),
            ScoreTable.from_counts([0.1, 0.9], [5, 5], [0, 0]),
            {},
            "both classes must occur",
        ),
        (
            ScoreTable.from_counts([-1, 3], [5, 5], [1, 2]),
            ScoreTable.from_counts([-1, 3], [5, 5], [1, 2]),
            {"scale": "logit"},
            "all scores must be in",
        ),
        (
            ScoreTable.from_counts([-1e200, 3], [5, 5], [1, 2]),
            ScoreTable.from_counts([-1e200, 3], [5, 5], [1, 2]),
            {},
            "at most 1e.100 in size",
        ),
        (
            ScoreTable.from_counts([0.1, 0.9], [1e-200, 0], [0, 1e-200]),
            table(0, 30),
            {"scale": "raw"},
            "Rescale them",
        ),
        (
            ScoreTable.from_counts([0.1, 0.9], [50, 50], [10, 20]),
            ScoreTable.from_counts([0.5, 9.0, 40.0], [5, 50, 50], [5, 10, 20]),
            {},
            "nothing can be said of most rows",
        ),
        (Identity(), table(0, 9), {"calibrator": Identity()}, "Leave calibrator out"),
        (
            ScoreTable.from_arrays([0.1, 0.9], [0, 1], [0.5, 0.5]),
            ScoreTable.from_arrays([0.1, 0.9], [0, 1]),
            {"weights": "counts"},
            "not whole",
        ),
    ],
    ids=range(13),
)
def test_bad_input(reference, new, options, words):
    with pytest.raises(cal.errors.InputError, match=words):
        check_drift(reference, new, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"level": 0.0},
        {"level": 1.0},
        {"least": -0.1},
        {"least": None},
        {"scale": "rank"},
        {"weights": "frequency"},
        {"scale": "raw", "calibrator": Identity()},
    ],
    ids=str,
)
def test_bad_options(options):
    with pytest.raises(cal.errors.ParameterError, match="must be"):
        check_drift(table(0, 50), table(1, 50), **options)


def test_maps_of_more_than_a_score_are_refused():
    s, y = draw(0, 60)
    many = cal.SegmentedCalibrator(cal.Platt()).fit(s, y, segments=np.arange(60) % 2)
    with pytest.raises(cal.errors.InputError, match="Check each segment's table"):
        check_drift(many, table(1, 60))
    vector = cal.Temperature().fit(np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 3)
    with pytest.raises(cal.errors.InputError, match="Use check_class_drift"):
        check_drift(vector, table(1, 60))


def test_notes_say_what_was_not_compared():
    drift = check_drift(table(0, 2000, mean=-2), table(1, 300, mean=2))
    assert any("lie beyond the other table's scores" in note for note in drift.notes)
    kinds = check_drift(
        ScoreTable.from_counts([0.1, 0.9], [9, 5], [4, 9]),
        ScoreTable.from_counts([-3, 0.1, 0.9, 4], [9, 9, 5, 1], [1, 4, 9, 9]),
    )
    assert "make sure that both are of one kind" in kinds.notes[0]


def test_percentages_are_noticed():
    old = table(1, 2000)
    new = ScoreTable.from_counts(100 * old.scores, old.negative, old.positive)
    for c in (cal.Platt(), cal.Isotonic(), cal.VennAbers()):
        notes = check_drift(c.fit_table(old).map_, new).notes  # which knows no kind of score
        assert any("percentages must be divided by 100" in note for note in notes)
        assert not any("percentages" in note for note in check_drift(c, old).notes)
        assert not any("percentages" in note for note in check_drift(c.fit_table(new), new).notes)


# --- the remedy ---------------------------------------------------------------------------------


def test_update_adds_the_intercept():
    old, new = table(1, 20_000), table(2, 20_000, change=CHANGES["intercept"])
    c = cal.Isotonic().fit_table(old)
    for drift in (check_drift(old, new), check_drift(c, new), check_drift(old, new, calibrator=c)):
        updated = drift.update(c)
        assert isinstance(updated, cal.Fitted)
        chain = Chain((c.map_, Logistic(drift.shift, (("z", 1.0),))))
        assert isinstance(updated.map, Piecewise)
        assert np.array_equal(updated.map(new.scores), chain(new.scores))
        assert updated.provenance["updated"][-1]["remedy"] == "intercept"
        assert updated.provenance["weight"] == 20_000
        before, after = (
            cal.metrics.log_loss(ScoreTable.from_counts(m(new.scores), new.negative, new.positive))
            for m in (c.map_, updated.map)
        )
        assert after < before
        assert cal.Fitted.from_dict(json.loads(json.dumps(updated.to_dict()))) == updated


def test_updates_are_all_on_record():
    old, new = table(1, 20_000), table(2, 20_000, change=CHANGES["intercept"])
    c = cal.Platt().fit_table(old)
    once = check_drift(c, new).update(c)
    back = check_drift(once, table(3, 20_000))
    twice = back.update(once)
    first, second = twice.provenance["updated"]
    assert (first["intercept"] > 0.0, second["intercept"] < 0.0) == (True, True)
    assert first["rate"] == pytest.approx(new.total_positive / new.total)
    assert back.rates.reference == first["rate"]


def test_an_updated_calibrator_is_adjusted_from_the_rate_of_the_update():
    old, new = table(1, 20_000), table(2, 20_000, change=CHANGES["intercept"])
    c = cal.Platt().fit_table(old)
    rate = new.total_positive / new.total
    updated = check_drift(c, new).update(c)
    assert cal.adjust_prior(updated, target_rate=rate).map == updated.map
    moved = cal.adjust_prior(updated, target_rate=0.01)
    again = check_drift(moved, new).update(moved)
    assert [note["after_adjustments"] for note in again.provenance["updated"]] == [0, 1]
    last = cal.adjust_prior(again, target_rate=0.5).provenance["prior"][-1]
    assert last["train_rate"] == pytest.approx(rate)
    assert cal.adjust_prior(moved, target_rate=0.5).provenance["prior"][-1]["train_rate"] == 0.01
    none = check_drift(c, ScoreTable.from_counts(new.scores, new.weight, 0 * new.weight)).update(c)
    with pytest.raises(cal.errors.ParameterError, match="train_rate must be given"):
        cal.adjust_prior(none, target_rate=0.5)


LINES = [(0.3 * (-1) ** i, 1.0 if i % 3 else 0.9 + 0.004 * i) for i in range(50)]


def updated_often(calibrator, lines=LINES):
    """Updates one after another, and the maps that they are by hand."""
    drift = check_drift(Identity(), table(2, 2000, change=CHANGES["intercept"]))
    steps = []
    for a, b in lines:
        remedy = "intercept" if b == 1.0 else "refit"
        one = replace(drift, recommendation=remedy, shift=a, line=(a, b - 1.0))
        calibrator = one.update(calibrator)
        steps.append(Logistic(a, (("z", b),)))
    return calibrator, steps


def line_of(lines):
    """All lines one after the other, in fractions: no rounding."""
    a, b = Fraction(0), Fraction(1)
    for intercept, slope in lines:
        a, b = Fraction(intercept) + Fraction(slope) * a, Fraction(slope) * b
    return a, b


def test_fifty_updates_of_a_sigmoid_are_one_sigmoid():
    c = cal.Platt().fit_table(table(1, 2000))
    often, steps = updated_often(c)
    assert isinstance(often.map, Logistic)
    a, b = line_of([(s.intercept, s.terms[0][1]) for s in steps])
    assert often.map.intercept == pytest.approx(
        float(a + b * Fraction(c.map_.intercept)), rel=1e-14
    )
    ((_, before),), ((_, after),) = c.map_.terms, often.map.terms
    assert after == pytest.approx(float(b * Fraction(before)), rel=1e-14)
    assert len(often.provenance["updated"]) == 50
    p = np.linspace(0.001, 0.999, 999)
    by_hand = Chain((c.map_, *steps))(p)
    assert np.abs(often.calibrate(p) - by_hand).max() < 1e-13
    once = cal.to_sql(c, column="p")
    assert len(cal.to_sql(often, column="p")) < len(once) + 40


@pytest.mark.parametrize(
    "calibrator",
    [
        cal.Isotonic(),
        cal.Isotonic(interpolation="linear"),
        cal.BLS(),
        cal.ENIR(),
        cal.VennAbers(),
        cal.Beta(),
    ],
    ids=repr,
)
def test_fifty_updates_of_any_map_stay_small(calibrator):
    c = calibrator.fit_table(table(1, 500))
    often, steps = updated_often(c)
    s = np.linspace(0.001, 0.999, 999)
    by_hand = Chain((c.map_, *steps))(s)
    assert np.abs(often.calibrate(s) - by_hand).max() < 1e-13
    once, _ = updated_often(c, LINES[:1])
    for write in (cal.to_sql, cal.to_python):
        assert len(write(often)) < 1.1 * len(write(once)) + 200


def test_a_band_is_updated_with_its_point():
    c = cal.BBQ().fit_table(table(1, 500))
    band = Interval(Piecewise.constant(0.1), Piecewise.constant(0.4), c.map_)
    drift = check_drift(Identity(), table(2, 2000, change=CHANGES["intercept"]))
    after = drift.update(band).map
    assert isinstance(after, Interval)
    assert after.upper([0.5]) > 0.4


def test_chains_of_updates_in_old_files_are_merged_by_the_next_one():
    c = cal.Platt().fit_table(table(1, 500))
    nested = c.map_
    for a, b in LINES[:10]:
        nested = Chain((nested, Logistic(a, (("z", b),))))
    drift = check_drift(Identity(), table(2, 2000, change=CHANGES["intercept"]))
    assert isinstance(drift.update(nested).map, Logistic)


def test_the_error_of_an_update_is_counted():
    c = cal.Platt().fit_table(table(1, 200_000))
    few = check_drift(c, table(2, 1000, change=CHANGES["intercept"])).update(c)
    later = table(3, 1000, change=CHANGES["intercept"])
    exact = check_drift(few.map, later).shift_error
    assert check_drift(few, later).shift_error == pytest.approx(np.sqrt(2) * exact, rel=0.05)


@pytest.mark.parametrize(
    "record",
    ["x", 3, ["a"], [{}], [{"rate": [0.1, 0.9]}], [{"rate": 1e-320, "effective_size": 5e-324}]],
    ids=range(6),
)
def test_records_of_strangers_do_no_harm(record):
    fitted = cal.Platt().fit_table(table(1, 2000)).to_fitted()
    for name in ("updated", "prior"):
        odd = replace(fitted, provenance={**fitted.provenance, name: record})
        drift = check_drift(odd, table(2, 2000, change=CHANGES["intercept"]))
        assert isinstance(drift.update(odd), cal.Fitted)


def test_update_corrects_by_a_line_where_it_knows_the_calibrator():
    old, new = table(1, 20_000), table(2, 20_000, change=CHANGES["refit"])
    c = cal.Beta().fit_table(old)
    for drift in (check_drift(c, new), check_drift(old, new, calibrator=c)):
        assert drift.recommendation == "refit"
        after = check_drift(drift.update(c).map, table(3, 20_000, change=CHANGES["refit"]))
        assert after.change < 0.01 < drift.change
    unknown = check_drift(old, new)
    assert "Refit the calibrator" in drift_in_words(unknown)[1]
    with pytest.raises(cal.errors.InputError, match=r"Check again with calibrator="):
        unknown.update(c)


def test_update_where_there_is_nothing_or_too_much_to_do():
    old = table(1, 20_000)
    c = cal.Platt().fit_table(old)
    assert check_drift(old, table(2, 20_000)).update(c) == c.to_fitted()
    bent = check_drift(c, table(2, 20_000, change=CHANGES["new map"]))
    with pytest.raises(cal.errors.InputError, match="Fit a calibrator to new rows"):
        bent.update(c)
    with pytest.raises(cal.errors.InputError, match="must be fitted"):
        bent.update("c.json")
    turned = check_drift(c, table(2, 2000, change=lambda z: -z))
    with pytest.raises(cal.errors.InputError, match="upside down"):
        turned.update(c)


def test_intervals_are_checked_by_their_point():
    step = Piecewise.step([0.5], [0.2, 0.8])
    new = ScoreTable.from_counts([0.3, 0.7], [50, 20], [50, 80])
    both = [check_drift(m, new) for m in (Interval(step, step, step), step)]
    assert both[0].tests == both[1].tests


# --- the value ----------------------------------------------------------------------------------


def test_it_prints_as_a_table_and_two_sentences():
    drift = check_drift(table(1, 5000), table(2, 5000, change=CHANGES["intercept"]))
    lines = str(drift).splitlines()
    assert lines == repr(drift).splitlines()
    assert lines[0].split()[:2] == ["what", "changes"]
    assert [line.split()[0] for line in lines[2:6]] == ["nothing", "intercept", "slope", "shape"]
    assert max(map(len, drift_table(drift))) <= 80
    assert "drift.update(calibrator)" in lines[-1]
    assert f"{drift.shift:.3f}" in lines[-1]
    other = check_drift(table(1, 5000), table(2, 5000, change=CHANGES["intercept"]))
    assert drift == other
    assert hash(drift) == hash(other)
    assert drift.remedies[0] == Remedy("none", 0.0, drift.change)


@pytest.mark.full
def test_a_million_scores_are_pooled():
    rng = np.random.default_rng(0)
    tables = []
    for shift in (0.0, 0.02):
        s = rng.random(1_000_000)
        y = rng.random(1_000_000) < sigmoid(np.log(s / (1 - s)) + shift)
        tables.append(ScoreTable.from_arrays(s, y))
    drift = check_drift(*tables)
    assert drift.recommendation == "intercept"
    assert drift.shift == pytest.approx(0.02, abs=0.01)
    assert check_drift(*tables, least=0.01).recommendation == "none"


def test_scores_of_another_kind_than_the_calibrators_are_refused():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    table, percent = ScoreTable.from_arrays(p, y), ScoreTable.from_arrays(100.0 * p, y)
    platt = cal.Platt().fit(p, y)
    said = r"scores of the {} table must be probabilities in \[0, 1\].* Divide percentages by 100"
    for calibrator in (platt, platt.to_fitted()):
        with pytest.raises(cal.errors.InputError, match=said.format("new")):
            cal.check_drift(calibrator, percent)
        with pytest.raises(cal.errors.InputError, match=said.format("new")):
            cal.check_drift(table, percent, calibrator=calibrator)
        with pytest.raises(cal.errors.InputError, match=said.format("reference")):
            cal.check_drift(percent, table, calibrator=calibrator)
    cal.check_drift(platt.map_, percent)  # a map is for any scores
    margins = cal.Platt().fit(p - 0.5, y)
    cal.check_drift(margins, ScoreTable.from_arrays(p * 2, y))


def test_against_an_isotonic_map_only_the_intercept_is_tested():
    rng = np.random.default_rng(21)
    s, new = rng.random(1000), rng.random(1000)
    fitted = cal.Isotonic().fit(s, rng.random(1000) < s)
    table = cal.ScoreTable.from_arrays(new, rng.random(1000) < new)
    drift = cal.check_drift(fitted, table)
    assert [test.name for test in drift.tests] == ["intercept"]
    assert any("isotonic map follows" in note for note in drift.notes)
    chosen = replace(fitted.to_fitted(), method="AutoCalibrator", provenance={"chosen": "isotonic"})
    assert [test.name for test in cal.check_drift(chosen, table).tests] == ["intercept"]
    platt = cal.Platt().fit(s, rng.random(1000) < s)
    assert len(cal.check_drift(platt, table).tests) == 3


@pytest.mark.full
def test_an_isotonic_map_raises_no_more_false_alarms_than_promised():
    rng = np.random.default_rng(22)
    alarms = 0
    for _ in range(150):
        s, new = rng.beta(1, 3, 500), rng.beta(1, 3, 500)
        fitted = cal.Isotonic().fit(s, rng.random(500) < s)
        alarms += cal.check_drift(
            fitted, cal.ScoreTable.from_arrays(new, rng.random(500) < new)
        ).found
    assert alarms <= 13  # 5 % and two deviations; before, 7 to 11 % of them


def test_scores_that_run_the_wrong_way_are_told_before_any_slope():
    rng = np.random.default_rng(5)
    p = rng.beta(1, 3, 4000)
    y = rng.random(4000) < p
    turned = cal.ScoreTable.from_arrays(1 - p, y)
    for drift in (
        check_drift(Identity(), turned),
        check_drift(cal.ScoreTable.from_arrays(p, y), turned),
    ):
        assert drift.wrong_way
        assert "These scores run the wrong way: AUC 0.2" in str(drift)
        assert "Find out why before anything is fitted" in str(drift)
        assert "Correct the logit" not in str(drift)
        assert drift.to_dict()["wrong_way"]
    with pytest.raises(cal.errors.InputError, match="run the wrong way"):
        check_drift(Identity(), turned).update(Identity())
    nothing = check_drift(Identity(), cal.ScoreTable.from_arrays(rng.permutation(p), y))
    assert "These scores say nothing about the labels" in str(nothing)
    assert "Find out why" in str(nothing)
    same = check_drift(Identity(), cal.ScoreTable.from_arrays(p, y))
    assert not same.wrong_way
    assert same.look.sound


def test_a_slope_below_nothing_has_the_word_also_where_auc_is_not_sure():
    """Few rows, far out: AUC cannot tell, the slope can."""
    few = cal.ScoreTable.from_counts([0.02, 0.5, 0.98], [5, 40, 8], [9, 38, 6])
    drift = check_drift(Identity(), few)
    assert drift.recommendation == "refit"
    assert drift.line[1] <= -1.0
    assert drift.look.found == "not told"
    assert "These scores run the wrong way: the slope that would mend them is" in str(drift)
