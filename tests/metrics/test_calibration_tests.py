"""Tests of calibration: against slow twins, against simulation, and what they promise."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, kstest, norm, ttest_rel

from calibrant import ScoreTable, metrics
from calibrant.errors import InputError, ParameterError
from calibrant.metrics import redraws as redrawn_labels
from calibrant.metrics import tests as combined_test
from calibrant.metrics.kernel_errors import smooth_error
from calibrant.metrics.tables import deviation, squares, table_for_test
from calibrant.metrics.tests import maximum_beyond, range_beyond
from strategies import PROBABILITIES, REAL, WHOLE, rows
from studies import experiment
from twins import tests as naive

COUNTS = rows(score=PROBABILITIES, weight=WHOLE, max_size=20)
IMPORTANCE = rows(score=PROBABILITIES, weight=REAL, max_size=20)
MEANT = st.one_of(
    st.tuples(COUNTS, st.just("counts")), st.tuples(IMPORTANCE, st.just("importance"))
)
TESTS = {
    "calibration_test": metrics.calibration_test,
    "ece_test": metrics.ece_test,
    "ecce": metrics.ecce,
    "spiegelhalter": metrics.spiegelhalter,
    "hosmer_lemeshow": metrics.hosmer_lemeshow,
}
EACH = pytest.mark.parametrize("test", TESTS.values(), ids=TESTS.keys())
IMPOSSIBLE = ((np.array([0.0, 0.3]), np.array([1, 0]), np.ones(2)), "counts")
CERTAIN = ((np.array([0.0, 1.0]), np.array([0, 1]), np.array([2.0, 1.0])), "counts")
HALF = ((np.array([0.5, 0.5]), np.array([0, 1]), np.array([0.3, 1.0])), "importance")


def close(value, abs=1e-12):
    return pytest.approx(value, rel=1e-9, abs=abs)


def right(n, seed, weight=False):
    """Predictions that are right, with their labels."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < p).astype(int), rng.lognormal(0, 1, n) if weight else np.ones(n)


# --- the ECE beside chance ----------------------------------------------------------------------


@st.composite
def few(draw):
    """At most seven rows (or copies), no three tied with importance weights."""
    weights = draw(st.sampled_from(["counts", "importance"]))
    n = draw(st.integers(1, 4 if weights == "counts" else 6))
    p = draw(st.lists(PROBABILITIES, min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    weight = st.integers(1, 2).map(float) if weights == "counts" else st.floats(0.1, 3.0)
    w = draw(st.lists(weight, min_size=n, max_size=n))
    if weights == "importance":
        assume(all(p.count(q) <= 2 for q in p))
    return np.array(p), np.array(y), np.array(w), weights


@given(data=few(), bins=st.integers(1, 4), binning=st.sampled_from(["width", "mass"]))
@example(data=(*IMPOSSIBLE[0], "counts"), bins=2, binning="width")
@example(
    data=(np.array([0.4] * 3), np.array([0, 1, 1]), np.ones(3), "counts"), bins=2, binning="mass"
)
@example(
    data=(np.array([0.5, 0.0, 0.0]), np.zeros(3, dtype=int), np.array([1.5, 1, 1]), "importance"),
    bins=2,
    binning="width",
)
def test_the_ece_of_all_labels_that_could_have_come(data, bins, binning):
    """R = 4000 redrawings against all 2ⁿ: within five standard errors."""
    p, y, w, weights = data
    options = {"sample_weight": w, "weights": weights, "bins": bins, "binning": binning}
    result = metrics.ece_test(y, p, replicates=4000, **options)
    seen, outcomes = naive.all_labels(y, p, w, weights, bins, binning)
    assert result.value == close(seen)
    chance, ece = np.array(outcomes).T
    mean = chance @ ece
    sd = math.sqrt(max(chance @ (ece - mean) ** 2, 0.0))
    assert result.expected == pytest.approx(mean, abs=5 * sd / math.sqrt(4000) + 1e-9)
    beyond = chance[ece >= seen - 1e-10].sum()
    if naive.can_be(naive.present(y, p, w)):
        noise = math.sqrt(beyond * max(1 - beyond, 0.0) / 4000)
        assert result.p_value == pytest.approx(beyond, abs=5 * noise + 1e-3)
    else:
        assert result.p_value == 0
    assert 0 <= result.debiased <= result.value + 1e-15
    if result.value <= result.expected:
        assert result.debiased == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "p",
    [
        np.random.default_rng(0).random(700),
        np.random.default_rng(1).beta(1, 100, 8000).round(4),
        1 - np.random.default_rng(2).beta(0.5, 200, 8000),
        np.array([0.3]),
    ],
    ids=["uniform", "rare", "sure", "single"],
)
def test_three_ways_of_redrawing_agree(p, weighted):
    """Cell by cell is the definition; thinning must be the same, the normal within its bound."""
    rng = np.random.default_rng(3)
    w = rng.uniform(0.5, 1.5, len(p)) if weighted else np.ones(len(p))
    table = ScoreTable.from_arrays(p, rng.random(len(p)) < p, w)
    cells = table_for_test(table, "importance" if weighted else "counts")
    rows = redrawn_labels.CellRows.of(cells)
    assert rows.moment(1) == close(cells.weight)
    assert rows.moment(2) == close(squares(cells))
    times = 4000
    exact = redrawn_labels._draw_cell_by_cell(rows, times, rng)
    thinned = redrawn_labels._draw_by_thinning(rows, times, rng)
    variance = deviation(cells) ** 2
    for drawn in (exact, thinned):
        assert drawn.mean() == pytest.approx(0, abs=5 * math.sqrt(variance / times))
        assert drawn.var() == pytest.approx(variance, rel=0.25)
    assert two_samples_apart(exact, thinned) < 1.95 * math.sqrt(2 / times)  # 0.1 %
    if redrawn_labels._choose_sampler(rows) is redrawn_labels._draw_refined_normal:
        assert weighted or variance >= 100 * (1 - 1e-9)
        normal = redrawn_labels._draw_refined_normal(rows, times, rng)
        assert two_samples_apart(exact, normal) < 1.95 * math.sqrt(2 / times) + 0.00013


@pytest.mark.parametrize("p", [1e-6, 0.02, 0.5, 0.97])
def test_the_refined_normal_is_as_near_as_stated(p):
    """Its distribution function, read off draws at even steps of the normal's, against binomial."""
    n = round(100 / p / (1 - p)) + 1
    cells = ScoreTable.from_counts(np.array([p]), np.array([float(n)]), np.zeros(1))
    even = (np.arange(200_000) + 0.5) / 200_000

    class Even:
        def standard_normal(self, size):
            return norm.ppf(even)

    drawn = (
        redrawn_labels._draw_refined_normal(redrawn_labels.CellRows.of(cells), len(even), Even())
        + n * p
    )
    k = np.arange(round(n * p) - 60, round(n * p) + 61)
    upto = np.searchsorted(np.sort(drawn), k + 0.5) / len(even)
    assert upto == pytest.approx(binom.cdf(k, n, p), abs=0.00013)


def two_samples_apart(a, b):
    """Kolmogorov and Smirnov's distance, with values equal up to rounding taken together."""
    a, b = np.sort(np.round(a, 9)), np.sort(np.round(b, 9))
    both = np.concatenate((a, b))
    upto = (np.searchsorted(sample, both, side="right") / len(sample) for sample in (a, b))
    return float(np.abs(np.subtract(*upto)).max())


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_large_tables_are_drawn_by_bins(binning, monkeypatch):
    """With no draw allowed cell by cell the answer stays the same, up to chance."""
    p, y, _ = right(30_000, 4)
    p = np.where(p < 0.5, p / 50, p)  # rare ones as well
    y = (np.random.default_rng(5).random(len(p)) < p).astype(int)
    exact = metrics.ece_test(y, p, binning=binning, replicates=600)
    monkeypatch.setattr(redrawn_labels, "EXACT", 0)
    fast = metrics.ece_test(y, p, binning=binning, replicates=600)
    assert fast.value == exact.value
    assert fast.expected == pytest.approx(exact.expected, rel=0.06)
    assert fast.quantile == pytest.approx(exact.quantile, rel=0.1)


def test_how_bins_are_drawn():
    """Many: normal; rare: thinned; few that weigh as much as all others: cell by cell."""
    one, none = np.ones(2000), np.zeros(2000)
    many = redrawn_labels.CellRows(np.full(2000, 0.5), one, none, one)
    assert redrawn_labels._choose_sampler(many) is redrawn_labels._draw_refined_normal
    rare = many._replace(p=np.full(2000, 0.01))
    assert redrawn_labels._choose_sampler(rare) is redrawn_labels._draw_by_thinning
    heavy = many._replace(other=np.append(np.ones(1999), 2000.0))
    assert redrawn_labels._choose_sampler(heavy) is redrawn_labels._draw_cell_by_cell


def test_the_seed_decides():
    p, y, _ = right(200, 6)
    first, again = (metrics.ece_test(y, p, random_state=4) for _ in range(2))
    assert first == again
    assert first.expected != metrics.ece_test(y, p, random_state=5).expected
    generator = np.random.default_rng(4)
    assert metrics.ece_test(y, p, random_state=generator) == first


def test_debiased_ece_of_wrong_predictions():
    """Clearly wrong: the debiased ECE is nearer to the truth than the ECE, on average."""
    rng = np.random.default_rng(7)
    off = []
    for _ in range(60):
        p = rng.random(300)
        y = rng.random(300) < np.clip(p + 0.06 * np.where(p < 0.5, 1, -1), 0, 1)
        result = metrics.ece_test(y, p, replicates=200, random_state=rng)
        off.append((result.value - 0.06, result.debiased - 0.06))
    value, debiased = np.mean(off, axis=0)
    assert value > 0.01
    assert abs(debiased) < value


# --- smooth ECE ---------------------------------------------------------------------------------


@given(data=st.one_of(COUNTS, IMPORTANCE).filter(lambda d: len(d[0]) <= 8))
@example(data=(np.array([0.0, 1.0]), np.array([1, 0]), np.ones(2)))
@example(data=(np.array([0.2, 0.3, 0.9]), np.array([1, 0, 0]), np.array([1.0, 2.0, 0.0])))
def test_smooth_ece_is_the_direct_reading(data):
    p, y, w = data
    result = metrics.smooth_ece(y, p, sample_weight=w)
    slow = naive.smooth_ece(y, p, w)
    assume(slow > 0.03)  # narrower kernels fall through the twin's grid
    assert result.value == pytest.approx(slow, abs=3e-4 + result.error)
    assert 0 <= result.error < 1e-4


@given(data=st.one_of(COUNTS, IMPORTANCE), sigma=st.floats(0.02, 3.0))
@example(data=(np.array([0.0, 1.0]), np.array([1, 0]), np.ones(2)), sigma=0.1)
def test_smooth_ece_at_a_given_width(data, sigma):
    p, y, w = data
    result = metrics.smooth_ece(y, p, sigma=sigma, sample_weight=w)
    slow = naive.smoothed(naive.present(y, p, w), sigma, 2000)
    images = 2.0 if sigma > 0.5 else 0.0  # the twin has four images on either side
    assert result.value == pytest.approx(slow, abs=1e-4 + result.error + images * 1e-3)
    assert 0 <= result.error < 1e-5


def test_smooth_ece_at_its_own_width_is_itself_and_it_falls_with_the_width():
    p, y, _ = right(500, 3)
    own = metrics.smooth_ece(y, p)
    there = metrics.smooth_ece(y, p, sigma=own.value)
    assert there.value == pytest.approx(own.value, abs=1e-8)
    values = [metrics.smooth_ece(y, p, sigma=s).value for s in (1e-4, 0.01, 0.1, 1.0, 50.0)]
    assert (np.diff(values) < 1e-12).all()
    assert values[0] <= np.abs(y - p).mean()
    assert values[-1] == pytest.approx(abs((y - p).mean()), abs=1e-9)
    for narrow in (1e-5, 0.0, math.inf, "wide"):
        with pytest.raises(ParameterError, match="sigma must be"):
            metrics.smooth_ece(y, p, sigma=narrow)


def dense(p, y, sigma, points=200_001):
    """smECE_σ on a grid that is far finer than ours."""
    t, height = np.linspace(0, 1, points), np.zeros(points)
    for a, b in zip(y, p, strict=True):
        for image in (b, -b, 2 - b, b - 2, b + 2):
            height += (a - b) * np.exp(-0.5 * ((t - image) / sigma) ** 2)
    return float(np.abs(height).mean() / (sigma * math.sqrt(2 * math.pi) * len(p)))


@pytest.mark.parametrize("n", [20, 60])
def test_smooth_ece_keeps_its_stated_error(n):
    p, y, _ = right(n, n)
    result = metrics.smooth_ece(y, p)
    assert dense(p, y, result.value) == pytest.approx(result.value, abs=2 * result.error + 1e-7)
    assert result.error < 1e-5


@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-6])
def test_smooth_ece_of_rare_events_is_not_lost_between_grid_points(size):
    """Predictions below ``size``: as if all were multiplied, as long as the end 1 is far."""
    rng = np.random.default_rng(8)
    p = rng.random(4000)
    weight = 1.0 / size
    table = ScoreTable.from_counts(
        p * size, np.full(4000, weight), weight * p * size * rng.uniform(0.5, 1.5, 4000)
    )
    small = smooth_error(table)
    assert small.error < 1e-3 * small.value
    mirrored = ScoreTable.from_counts(1 - table.scores, table.positive, table.negative)
    assert smooth_error(mirrored).value == pytest.approx(small.value, rel=1e-3)
    errors = (table.positive - table.weight * table.scores) / table.total
    assert abs(errors.sum()) <= small.value <= np.abs(errors).sum()


def test_smooth_ece_of_right_predictions_falls_with_n():
    values = [metrics.smooth_ece(y, p).value for p, y, _ in (right(n, n) for n in (200, 20_000))]
    assert values[1] < values[0] / 2


def test_smooth_ece_of_errors_of_one_sign_is_their_mean():
    assert metrics.smooth_ece([1, 1], [0.5, 0.9]) == metrics.SmoothECE(pytest.approx(0.3), 0.0)
    assert metrics.smooth_ece([1, 1], [1.0, 1.0]).value == 0


# --- cumulative differences ---------------------------------------------------------------------


@given(data=MEANT)
@example(data=IMPOSSIBLE)
@example(data=CERTAIN)
@example(data=HALF)
def test_ecce(data):
    (p, y, w), weights = data
    result = metrics.ecce(y, p, replicates=None, sample_weight=w, weights=weights)
    reach, top, sigma, mean = naive.ecce(y, p, w, weights)
    assert (result.range, result.maximum, result.sigma) == close((reach, top, sigma))
    assert result.mean == close(mean)
    assert 0 <= result.mean <= result.maximum * (1 + 1e-12)
    if not naive.can_be(naive.present(y, p, w)):
        assert result.range_p_value == result.maximum_p_value == 0
    elif sigma > 1e-9:
        assert result.range_p_value == close(naive.range_beyond(max(reach / sigma, 0.1)), 1e-7)
        assert result.maximum_p_value == close(naive.maximum_beyond(max(top / sigma, 0.1)), 1e-7)
    assert result.p_value == result.range_p_value


@pytest.mark.parametrize(
    ("ours", "theirs"), [(range_beyond, naive.range_beyond), (maximum_beyond, naive.maximum_beyond)]
)
def test_series_of_brownian_motion(ours, theirs):
    for x in (0.3, 0.8, 1.0, 1.49, 1.51, 1.99, 2.01, 2.5, 4.0, 7.0):
        assert ours(x) == pytest.approx(theirs(x), abs=1e-13)
    falling = [ours(x) for x in np.linspace(0, 40, 400)]
    assert (np.diff(falling) <= 0).all()
    assert (ours(0.0), ours(1e-300), ours(math.inf)) == (1.0, 1.0, 0.0)
    assert ours(20.0) > 0  # tails do not vanish by cancellation


def test_known_values_of_brownian_motion():
    """Means and second moments; the 5 % points of Kuiper's and of the maximum's distribution."""
    mean, square = (
        quad(lambda x, k=k: k * x ** (k - 1) * range_beyond(x), 0, 15, points=[2])[0]
        for k in (1, 2)
    )
    assert mean == pytest.approx(2 * math.sqrt(2 / math.pi), abs=1e-9)
    assert square == pytest.approx(4 * math.log(2), abs=1e-9)
    assert quad(maximum_beyond, 0, 15, points=[1.5])[0] == pytest.approx(math.sqrt(math.pi / 2))
    assert range_beyond(2.497672) == pytest.approx(0.05, abs=1e-6)
    assert maximum_beyond(2.241403) == pytest.approx(0.05, abs=1e-6)


# --- Spiegelhalter, Hosmer and Lemeshow ---------------------------------------------------------


@given(data=MEANT)
@example(data=IMPOSSIBLE)
@example(data=CERTAIN)
@example(data=HALF)
def test_spiegelhalter(data):
    (p, y, w), weights = data
    result = metrics.spiegelhalter(y, p, sample_weight=w, weights=weights)
    z, p_value, brier, promised = naive.spiegelhalter(y, p, w, weights)
    assert (result.brier, result.expected) == close((brier, promised))
    assert result.brier == close(metrics.brier(y, p, sample_weight=w))
    assert result.statistic == pytest.approx(z, rel=1e-7, abs=1e-7)
    assert result.p_value == pytest.approx(p_value, rel=1e-6, abs=1e-7)


def test_hosmer_lemeshow_of_importance_weights():
    p, y, w = right(500, 11, weight=True)
    options = {"sample_weight": w, "weights": "importance"}
    result = metrics.hosmer_lemeshow(y, p, binning="width", bins=5, **options)
    place = np.minimum((p * 5).astype(int), 4)
    parts = []
    for g in range(5):
        a, q, v = y[place == g], p[place == g], w[place == g]
        rate = (v @ q) / v.sum()
        parts.append((v @ (a - q)) ** 2 / (rate * (1 - rate) * (v @ v)))
    assert result.statistic == close(sum(parts))
    scaled = metrics.hosmer_lemeshow(
        y, p, binning="width", bins=5, sample_weight=9 * w, weights="importance"
    )
    assert scaled.statistic == close(result.statistic)


def all_samples(p, w):
    """All labels that could have come, with their chance."""
    for labels in itertools.product((0, 1), repeat=len(p)):
        y = np.array(labels)
        yield y, float(np.prod(np.where(y == 1, p, 1 - p)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["range", "maximum", "hosmer_lemeshow"])
def test_redrawn_p_values_are_those_of_all_labels_that_could_have_come(name, weighted):
    """R = 4000 redrawings against all 2ⁿ: within five standard errors."""
    rng = np.random.default_rng(31)
    for _ in range(4):
        p = rng.beta(0.5, 0.5, 8).round(2).clip(0.01, 0.99)
        y, w = (rng.random(8) < 0.5).astype(int), rng.lognormal(0, 0.7, 8) if weighted else None

        def statistic(labels, p=p, w=w):
            table = ScoreTable.from_arrays(p, labels, w, classes=[0, 1])
            if name == "hosmer_lemeshow":
                return metrics.hosmer_lemeshow(table, bins=3, replicates=None).statistic
            return getattr(metrics.ecce(table, replicates=None), name)

        seen = statistic(y)
        beyond = sum(c for labels, c in all_samples(p, w) if statistic(labels) >= seen - 1e-10)
        table = ScoreTable.from_arrays(p, y, w, classes=[0, 1])
        if name == "hosmer_lemeshow":
            found = metrics.hosmer_lemeshow(table, bins=3, replicates=4000).p_value
        else:
            found = getattr(metrics.ecce(table, replicates=4000), f"{name}_p_value")
        noise = math.sqrt(beyond * max(1 - beyond, 0.0) / 4000)
        assert found == pytest.approx(beyond, abs=5 * noise + 1e-3)


# --- three tests in one -------------------------------------------------------------------------


def test_the_parts_of_the_combined_test_are_the_tests_themselves():
    rng = np.random.default_rng(32)
    p = rng.random(3000)
    y = (rng.random(3000) < np.clip(p + 0.015, 0, 1)).astype(int)
    found = metrics.calibration_test(y, p, replicates=4000)
    assert found.cox == pytest.approx(metrics.cox(y, p).p_value, abs=0.03)
    assert found.spiegelhalter == pytest.approx(metrics.spiegelhalter(y, p).p_value, abs=0.03)
    assert found.hosmer_lemeshow == pytest.approx(
        metrics.hosmer_lemeshow(y, p, replicates=4000).p_value, abs=0.03
    )
    assert min(found.cox, found.spiegelhalter, found.hosmer_lemeshow) <= found.p_value


def test_the_combined_test_of_a_large_table_is_drawn_in_runs(monkeypatch):
    rng = np.random.default_rng(33)
    p = rng.random(20_000)
    y = (rng.random(20_000) < np.clip(p + 0.004, 0, 1)).astype(int)
    whole = metrics.calibration_test(y, p, replicates=500)
    for module in (combined_test, redrawn_labels):
        monkeypatch.setattr(module, "EXACT", 0)
    runs = metrics.calibration_test(y, p, replicates=500)
    for name in ("p_value", "cox", "spiegelhalter", "hosmer_lemeshow"):
        assert getattr(runs, name) == pytest.approx(getattr(whole, name), abs=0.1), name


def test_the_combined_test_finds_what_one_of_its_parts_finds():
    rng = np.random.default_rng(34)
    p = rng.random(4000)
    z = np.log(p / (1 - p))
    for truth in (
        1 / (1 + np.exp(-1.3 * z)),
        1 / (1 + np.exp(-z - 0.3)),
        p - 0.3 * (abs(p - 0.6) < 0.05),
    ):
        found = metrics.calibration_test((rng.random(4000) < truth).astype(int), p)
        assert found.p_value < 0.01
    assert metrics.calibration_test([0, 1], [0.5, 0.5]).p_value == 1.0
    assert metrics.calibration_test([0, 1], [0.0, 1.0]).p_value == 1.0
    assert metrics.calibration_test([1, 0], [0.0, 0.5]).p_value == 0.0


# --- differences --------------------------------------------------------------------------------


@st.composite
def pairs(draw):
    """Labels, two predictions with k columns, weights, and groups."""
    k, n = draw(st.integers(2, 4)), draw(st.integers(2, 12))
    part = st.integers(1, 9)
    matrices = []
    for _ in range(2):
        raw = np.array(draw(st.lists(part, min_size=n * k, max_size=n * k)), float).reshape(n, k)
        matrices.append(raw / raw.sum(axis=1, keepdims=True))
    y = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    weights = draw(st.sampled_from(["counts", "importance", "groups"]))
    weight = st.integers(0, 3).map(float) if weights == "counts" else st.floats(0.1, 5.0)
    w = draw(st.lists(weight, min_size=n, max_size=n))
    w[0], w[-1] = w[0] or 1.0, w[-1] or 1.0
    groups = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    groups[0], groups[-1] = 7, 8
    return np.array(y), *matrices, np.array(w), weights, np.array(groups)


@given(data=pairs(), loss=st.sampled_from(["log", "brier"]))
def test_loss_difference(data, loss):
    y, p, q, w, weights, groups = data
    k = p.shape[1]
    options = {"loss": loss, "sample_weight": w, "level": 0.9, "classes": list(range(k))}
    if weights == "groups":
        options["groups"] = groups.astype(str)
    else:
        options["weights"] = weights
        groups = None
    result = metrics.loss_difference(y, p, q, **options)
    slow = naive.difference(loss, y, p, q, w, weights, groups, 0.9)
    assert (result.difference, result.std_error, result.low, result.high) == close(slow[:4], 1e-9)
    assume(slow[1] > 1e-9)
    assert result.p_value == pytest.approx(slow[4], rel=1e-6, abs=1e-9)
    back = metrics.loss_difference(y, q, p, **options)
    assert (back.difference, back.p_value) == close((-result.difference, result.p_value))
    assert result.difference == close(result.first - result.second)


def test_loss_difference_is_the_paired_t_test():
    p, y, _ = right(80, 12)
    q = np.clip(p + np.random.default_rng(13).normal(0, 0.1, 80), 0.01, 0.99)
    result = metrics.loss_difference(y, p, q, loss="brier")
    peer = ttest_rel((y - p) ** 2, (y - q) ** 2)
    assert result.p_value == close(peer.pvalue)
    interval = peer.confidence_interval(0.95)
    assert (result.low, result.high) == close((interval.low, interval.high))
    assert result.first == close(metrics.brier(y, p))
    assert metrics.loss_difference(y, p, q).second == close(metrics.log_loss(y, q))
    words = metrics.loss_difference(
        np.where(y == 1, "b", "a"), np.column_stack((1 - p, p)), q, loss="brier", pos_label="b"
    )
    assert words.p_value == close(result.p_value)


def test_infinite_losses_have_a_clear_answer():
    y, p, q = [1, 0, 1, 0], [0.0, 0.2, 0.9, 0.1], [0.3, 0.2, 0.8, 1.0]
    fine = [0.5] * 4
    one = metrics.loss_difference(y, p, fine)
    assert (one.difference, one.low, one.high, one.p_value) == (math.inf, math.inf, math.inf, 0.0)
    assert one.note == "p gave probability 0 to what happened in 1 of 4 rows"
    other = metrics.loss_difference(y, fine, p)
    assert (other.difference, other.high, other.p_value) == (-math.inf, -math.inf, 0.0)
    both = metrics.loss_difference(y, p, q)
    assert math.isnan(both.difference)
    assert (both.low, both.high, both.p_value) == (-math.inf, math.inf, 1.0)
    assert "p gave" in both.note
    assert "q gave" in both.note
    assert math.isfinite(metrics.loss_difference(y, p, q, clip=1e-6).p_value)
    assert math.isfinite(metrics.loss_difference(y, p, q, loss="brier").p_value)
    three = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert metrics.loss_difference([0, 1, 0], three, np.full((3, 3), 1 / 3), classes=[0, 1, 2]).note
    clipped = {"clip": 1e-3, "classes": [0, 1, 2]}
    assert metrics.loss_difference([0, 1, 0], three, np.full((3, 3), 1 / 3), **clipped).note == ""


def test_the_same_predictions_do_not_differ():
    result = metrics.loss_difference([0, 1, 1], [0.2, 0.5, 0.7], [0.2, 0.5, 0.7])
    assert (result.difference, result.low, result.high, result.p_value) == (0.0, 0.0, 0.0, 1.0)
    always = metrics.loss_difference([1, 1], [0.5, 0.5], [0.25, 0.25], loss="brier")
    assert (always.difference, always.p_value) == (0.25 - 0.5625, 0.0)


def test_few_of_a_class_are_no_certainty():
    """Without a positive, two constant predictions differ by the same loss in every row."""
    p, q = np.full(50, 0.035), np.full(50, 0.01)
    none = metrics.loss_difference(np.zeros(50, int), p, q, classes=[0, 1])
    assert none.p_value < 1e-9
    assert none.note == "0 positives are few: interval and p-value may be far too sure"
    y = (np.arange(60) < 50).astype(int)
    p, q = np.full(60, 0.8), np.full(60, 0.85)
    assert metrics.loss_difference(y, p, q).note == ""
    absent = np.where(np.arange(60) < 51, 1.0, 0.0)
    assert metrics.loss_difference(y, p, q, sample_weight=absent).note.startswith("1 negatives")
    uneven = np.where(np.arange(60) == 59, 1e-137, 1e-140)
    how = {"sample_weight": uneven, "weights": "importance"}
    assert metrics.loss_difference(y, p, q, **how).note.startswith("1.02 negatives")


def test_dependent_rows_need_groups():
    """Every row ten times: without groups the interval is three times too short."""
    p, y, _ = right(60, 14)
    q = np.clip(p + np.random.default_rng(15).normal(0, 0.1, 60), 0.01, 0.99)
    once = metrics.loss_difference(y, p, q)
    ten = [np.repeat(column, 10) for column in (y, p, q, np.arange(60))]
    naively = metrics.loss_difference(*ten[:3])
    grouped = metrics.loss_difference(*ten[:3], groups=ten[3])
    assert grouped.std_error == close(once.std_error)
    assert grouped.p_value == close(once.p_value)
    assert naively.std_error < 0.4 * once.std_error


# --- what all of them promise -------------------------------------------------------------------


@EACH
@given(data=rows(score=PROBABILITIES, weight=WHOLE, max_size=12))
def test_whole_weights_are_repeated_rows_and_order_does_not_matter(test, data):
    p, y, w = data
    options = {"weights": "counts"}
    if test is not metrics.spiegelhalter:
        options["replicates"] = 50
    weighted = test(y, p, sample_weight=w, **options)
    times = w.astype(int)
    order = np.random.default_rng(0).permutation(times.sum())
    y2, p2 = np.repeat(y, times)[order], np.repeat(p, times)[order]
    assert test(y2, p2, **options) == weighted
    assert test(ScoreTable.from_arrays(p2, y2), **options) == weighted


@pytest.mark.parametrize("name", ["calibration_test", "ecce", "spiegelhalter", "ece_test"])
def test_extreme_weights_and_predictions(name):
    """What is too small for a square to be told from 0 counts for little, and breaks nothing."""
    test = getattr(metrics, name)
    heavy = test([0, 1, 1], [0.2, 0.4, 0.6], sample_weight=[1e90, 1e-90, 3], weights="importance")
    alone = test([0], [0.2])
    assert heavy.p_value == pytest.approx(alone.p_value, abs=0.06)
    for tiny in (5e-324, 1e-300):
        for weight in (1.0, 0.1):
            options = {"sample_weight": [weight], "weights": "importance"}
            assert test([0], [tiny], **options).p_value > 0.9
            assert test([1], [tiny], **options).p_value < 1e-3


@pytest.mark.parametrize("name", TESTS)
def test_the_scale_of_importance_weights_plays_no_part(name):
    p, y, w = right(300, 16, weight=True)
    results = [
        getattr(metrics, name)(y, p, sample_weight=w * scale) for scale in (1.0, 1e-60, 1e60, 7.0)
    ]
    for result in results[1:]:
        assert result.p_value == close(results[0].p_value)


@EACH
def test_the_other_class_gives_the_same(test):
    rng = np.random.default_rng(17)
    p = rng.integers(0, 33, 300) / 32
    y = (rng.random(300) < p).astype(int)
    here, there = test(y, p), test(1 - y, 1 - p)
    if test is metrics.calibration_test:  # other labels are redrawn, and groups closed elsewhere
        assert there.cox == pytest.approx(here.cox, abs=0.07)
        assert there.spiegelhalter == pytest.approx(here.spiegelhalter, abs=0.07)
    elif test is metrics.ecce:
        assert there.range == close(here.range)
        assert there.p_value == pytest.approx(here.p_value, abs=0.07)
    elif test is metrics.ece_test:
        assert there.value == close(here.value)
        assert there.expected == pytest.approx(here.expected, rel=0.1)
    elif test is metrics.hosmer_lemeshow:  # its groups are closed on the other side
        assert there.df == here.df
    else:
        assert there.p_value == close(here.p_value)
    assert metrics.smooth_ece(1 - y, 1 - p).value == close(metrics.smooth_ece(y, p).value, 1e-6)


@pytest.mark.parametrize("name", ["calibration_test", "ece_test", "ecce", "spiegelhalter"])
def test_counts_must_be_whole(name):
    p, y, w = right(50, 18, weight=True)
    with pytest.raises(InputError, match='Pass weights="importance"'):
        getattr(metrics, name)(y, p, sample_weight=w, weights="counts")
    with pytest.raises(InputError, match='Pass weights="importance"'):
        metrics.loss_difference(y, p, p, sample_weight=w, weights="counts")


@pytest.mark.parametrize(
    "result",
    [
        metrics.calibration_test([0, 1, 1], [0.2, 0.4, 0.9], replicates=20),
        metrics.ece_test([0, 1, 1], [0.2, 0.4, 0.9], replicates=20),
        metrics.ecce([0, 1, 1], [0.2, 0.4, 0.9]),
        metrics.spiegelhalter([0, 1, 1], [0.2, 0.4, 0.9]),
        metrics.smooth_ece([0, 1, 1], [0.2, 0.4, 0.9]),
        metrics.hosmer_lemeshow([0, 1, 1], [0.2, 0.4, 0.9]),
        metrics.loss_difference([0, 1, 1], [0.2, 0.4, 0.9], [0.3, 0.6, 0.8]),
    ],
    ids=lambda result: type(result).__name__,
)
def test_results_are_values_that_print_in_one_line(result):
    assert pickle.loads(pickle.dumps(result)) == result
    assert hash(result) == hash(pickle.loads(pickle.dumps(result)))
    with pytest.raises(AttributeError):
        result.p_value = 0.0
    text = repr(result)
    assert text.startswith(f"{type(result).__name__}(")
    assert "\n" not in text
    assert len(text) < 240


P, Y = np.linspace(0.01, 0.99, 40), np.array([0, 1] * 20)
WRONG = [
    (metrics.ece_test, {"bins": 0}, "bins must be"),
    (metrics.ece_test, {"binning": "quantile"}, "binning must be 'width' or 'mass'"),
    (metrics.ece_test, {"replicates": 0}, "replicates must be"),
    (metrics.ece_test, {"level": 1.0}, "level must be"),
    (metrics.ece_test, {"random_state": "seed"}, "random_state must be"),
    (metrics.ece_test, {"weights": "rows"}, "weights must be 'importance' or 'counts'"),
    (metrics.ecce, {"weights": None}, "weights must be"),
    (metrics.ecce, {"replicates": 0}, "replicates must be"),
    (metrics.hosmer_lemeshow, {"replicates": 2.5}, "replicates must be"),
    (metrics.hosmer_lemeshow, {"random_state": "seed"}, "random_state must be"),
    (metrics.calibration_test, {"replicates": None}, "replicates must be"),
    (metrics.calibration_test, {"weights": "rows"}, "weights must be"),
    (metrics.spiegelhalter, {"weights": 1}, "weights must be"),
    (metrics.hosmer_lemeshow, {"weights": "x"}, "weights must be"),
    (lambda y, p, **o: metrics.loss_difference(y, p, p, **o), {"loss": "hinge"}, "loss must be"),
    (lambda y, p, **o: metrics.loss_difference(y, p, p, **o), {"weights": ""}, "weights must be"),
    (lambda y, p, **o: metrics.loss_difference(y, p, p, **o), {"level": 95}, "level must be"),
    (lambda y, p, **o: metrics.loss_difference(y, p, p, **o), {"clip": 0.7}, "clip must be"),
    (
        lambda y, p, **o: metrics.loss_difference(y, p, p, **o),
        {"clip": 0.1, "loss": "brier"},
        "clip is for the log loss",
    ),
]


@pytest.mark.parametrize(("test", "options", "message"), WRONG)
def test_bad_options_are_refused_by_name(test, options, message):
    with pytest.raises(ParameterError, match=message):
        test(Y, P, **options)


REFUSED = {
    "NaN in q": ((Y, P, np.where(P > 0.5, np.nan, P)), {}, "q must be finite"),
    "percentages": ((Y, P, 100 * P), {}, r"q must be probabilities in \[0, 1\]"),
    "short q": ((Y, P, P[1:]), {}, "y has 40 and q has 39"),
    "no q": ((Y, P, None), {}, "q must be given"),
    "a table": ((ScoreTable.from_arrays(P, Y), P, P), {}, "belong together"),
    "short groups": ((Y, P, P), {"groups": Y[1:]}, "groups has 39"),
    "missing groups": ((Y, P, P), {"groups": np.where(P > 0.5, np.nan, P)}, "missing"),
    "one group": ((Y, P, P), {"groups": Y * 0}, "at least 2 groups"),
    "one row": (([1], [0.5], [0.5]), {"classes": [0, 1]}, "at least 2 rows"),
    "one weighty row": (
        (Y, P, P),
        {"sample_weight": [1e90] + [1e-9] * 39, "weights": "importance"},
        "one row has all",
    ),
    "other columns": ((Y, P, np.full((40, 3), 1 / 3)), {}, "3 columns"),
    "weights": ((Y, P, P), {"sample_weight": -P}, "at least 0"),
    "a positive of three": (
        (Y, np.full((40, 3), 1 / 3), np.full((40, 3), 1 / 3)),
        {"pos_label": 1, "classes": [0, 1, 2]},
        "pos_label",
    ),
}


@pytest.mark.parametrize("bad", REFUSED.values(), ids=REFUSED.keys())
def test_bad_pairs_are_refused_with_a_reason(bad):
    data, options, message = bad
    with pytest.raises(InputError, match=message):
        metrics.loss_difference(*data, **options)


# --- false alarms -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study(root):
    return experiment(root, "false_positives")


@pytest.fixture(scope="module")
def side_by_side(root):
    return experiment(root, "calibration_tests")


@pytest.mark.full
@pytest.mark.parametrize("kind", ["three values", "rare"])
def test_tests_by_redrawing_keep_their_level(side_by_side, kind):
    """Where χ² and the limit do not: with few distinct predictions, and with rare positives."""
    names = (*side_by_side.STATED, "ecce by the limit", "hosmer_lemeshow by χ²")
    tests = {name: side_by_side.TESTS[name] for name in names}
    draw = side_by_side.PREDICTIONS[kind]
    rates = side_by_side.rejections(tests, draw, lambda p: p, 60, 1000, 7)
    noise = 4 * math.sqrt(0.05 * 0.95 / 1000)
    assert all(rates[name] <= 0.05 + noise for name in side_by_side.STATED), rates
    if kind == "rare":
        assert rates["hosmer_lemeshow by χ²"] > 0.05 + noise
    else:
        assert rates["ecce by the limit"] < 0.02 < rates["ecce"]


def test_the_study_of_tests_runs_from_data_to_page(side_by_side):
    wrong, found = side_by_side.false_alarms(10, sizes=(50,)), side_by_side.power(5, sizes=(500,))
    page = side_by_side.page(10, 5, 1.0, wrong, found)
    assert all(f"| `{name}` |" in page for name in side_by_side.TESTS)
    assert len(found) == len(side_by_side.DEPARTURES)


@pytest.mark.slow
def test_false_alarms_of_tests_by_redrawing_are_as_stated(side_by_side):
    noise = 4 * math.sqrt(0.05 * 0.95 / 1000)
    for case, rates in side_by_side.false_alarms(1000, seed=98).items():
        for name, (_, high) in side_by_side.STATED.items():
            assert rates[name] <= high + noise, (name, case)


@pytest.mark.full
def test_p_values_of_right_predictions_are_uniform(study):
    """The redrawing tests exactly, the others nearly so with 400 rows."""
    rng = np.random.default_rng(19)
    for name in ("ece_test, mass", "skce_test", "spiegelhalter", "loss_difference, brier"):
        values = []
        for _ in range(200):
            data = study.PREDICTIONS["uniform"](400, rng)
            y = (rng.random(400) < data.p).astype(int)
            values.append(study.TESTS[name](y, data, rng))
        assert kstest(values, "uniform").pvalue > 1e-3, name


@pytest.mark.full
def test_a_small_study_runs_from_data_to_page(study):
    wrong = study.false_positives(20, sizes=(50,))
    found = study.power(10, sizes=(500,))
    page = study.page(20, 1.0, wrong, found, study.bias(5, sizes=(500,)))
    for name in study.TESTS:
        assert f"| `{name}` |" in page
    assert all(0 <= rate <= 0.4 for rates in wrong.values() for rate in rates.values())
    assert found["too extreme", 500]["spiegelhalter"] >= 0.4


@pytest.mark.slow
def test_false_alarms_are_as_stated(study):
    """1,000 simulations each: within the stated error and four standard deviations of chance."""
    noise = 4 * math.sqrt(0.05 * 0.95 / 1000)
    for (kind, n), rates in study.false_positives(1000, seed=99).items():
        for name, rate in rates.items():
            low, high = study.stated(name, kind)
            assert low - noise <= rate <= high + noise, (name, kind, n)
