"""Bayesian binning: the best binning, the average over all of them, and the quantile ensemble."""

from __future__ import annotations

import gzip
import json
import math

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import beta

import calibrant as cal
from calibrant.methods.binning._kernel import (
    best_binning,
    chain_moments,
    gauss_legendre,
    log_evidence,
)
from calibrant.methods.binning.bayesian import (
    GRID,
    bin_ends,
    log_factorials,
    quadrature,
    unit_gaps,
)
from calibrant.solvers._kernel import simplify
from twins import basics as naive


def random_cells(seed, most=120):
    """Scores, counts and gaps with ties, weights, clusters and λ from 1e-3 to 1e4."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, most))
    x = np.sort(rng.random(size) if seed % 2 else rng.normal(size=size) ** 3)
    rate = (np.linspace(0.1, 0.9, size), np.full(size, 0.3), rng.random(size))[seed % 3]
    if seed % 4 == 0:
        n1 = rng.random(size) * 4 * rate
        n0 = rng.random(size) * 4 * (1 - rate)
    else:
        total = rng.integers(1, (2, 2, 6)[seed % 3] + 1, size).astype(float)
        n1 = rng.binomial(total.astype(int), rate).astype(float)
        n0 = total - n1
    lam = 10 ** rng.uniform(-3, 4)
    return x, n0, n1, lam


def is_whole(*columns):
    return all((column == np.floor(column)).all() for column in columns)


def kernel_best(n0, n1, gaps):
    table = log_factorials((n0 + n1).sum()) if is_whole(n0, n1) else np.empty(0)
    return best_binning(n0, n1, gaps, np.log(-np.expm1(-gaps)), table)


@pytest.mark.full
def test_best_binning_equals_the_dense_programme_on_600_tables():
    for seed in range(600):
        x, n0, n1, lam = random_cells(seed)
        gaps = lam * unit_gaps(x)
        starts, score = kernel_best(n0, n1, gaps)
        expected, best, _ = naive.best_binning_dense(n0, n1, gaps)
        assert score == pytest.approx(best, rel=1e-11, abs=1e-9), seed
        assert starts.tolist() == expected, seed


@pytest.mark.parametrize("seed", range(40))
def test_best_and_average_equal_enumeration(seed):
    x, n0, n1, lam = random_cells(seed, most=12)
    cells = list(zip(x, n0, n1, strict=True))
    every = list(naive.all_binnings(cells, lam))
    gaps = lam * unit_gaps(x)
    starts, score = kernel_best(n0, n1, gaps)
    bins, best = max(every, key=lambda found: found[1])
    assert score == pytest.approx(best, rel=1e-12, abs=1e-12)
    assert starts.tolist() == [b[0] for b in bins]
    # the average: weights of all 2^(D−1) binnings
    top = max(s for _, s in every)
    weight = np.array([math.exp(s - top) for _, s in every])
    p = np.zeros(len(x))
    for share, (bins, _) in zip(weight / weight.sum(), every, strict=True):
        for first, last, a, b in bins:
            p[first:last] += share * (b + 1) / (a + b + 2)
    ours, evidence = at_scores(n0, n1, gaps)
    assert np.abs(ours - p).max() < (1e-12 if is_whole(n0, n1) else 1e-9)
    assert evidence == pytest.approx(top + math.log(weight.sum()), abs=1e-9)


def at_scores(n0, n1, gaps, tol=1e-10):
    nodes, weight = quadrature(float(n0.sum() + n1.sum()), is_whole(n0, n1), tol)
    moments, evidence = chain_moments(n0, n1, gaps, nodes, weight)
    stay = np.append(np.exp(-gaps), 0.0)
    return (stay * moments[1] + (1 - stay) * moments[2]) / (stay * moments[0] + 1 - stay), evidence


@pytest.mark.parametrize("seed", range(24))
def test_average_equals_the_dense_sum(seed):
    x, n0, n1, lam = random_cells(seed, most=400)
    gaps = lam * unit_gaps(x)
    expected, evidence = naive.average_dense(n0, n1, gaps)
    ours, log = at_scores(n0, n1, gaps)
    assert np.abs(ours - expected).max() < (1e-10 if is_whole(n0, n1) else 1e-8)
    assert log == pytest.approx(evidence, rel=1e-10, abs=1e-8)


@pytest.mark.full
def test_average_equals_the_dense_sum_at_twenty_thousand():
    """The hardest case for the quadrature: one rate for all, so one bin holds every row."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(20_000))
    n1 = (rng.random(20_000) < 0.3).astype(float)
    gaps = 5 * unit_gaps(x)
    expected, evidence = naive.average_dense(1 - n1, n1, gaps)
    ours, log = at_scores(1 - n1, n1, gaps)
    assert np.abs(ours - expected).max() < 1e-10
    assert log == pytest.approx(evidence, abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 7, 64, 500])
def test_gauss_legendre(n):
    theta, weight = gauss_legendre(n)
    nodes, expected = np.polynomial.legendre.leggauss(n)
    assert np.abs(theta - (nodes + 1) / 2).max() < 1e-14
    assert np.abs(weight - expected / 2).max() < 1e-13
    for power in range(min(2 * n, 12)):
        assert weight @ theta**power == pytest.approx(1 / (power + 1), rel=1e-12)


def legendre_by_recurrence(n, phi):
    """P_n and P_{n−1} at cos φ, with 64 bits of mantissa."""
    x = np.cos(phi)
    before, value = np.ones_like(x), x
    for j in range(2, n + 1):
        before, value = value, ((2 * j - 1) * x * value - (j - 1) * before) / j
    return value, before


def test_many_nodes_by_the_series_are_those_of_the_recurrence():
    n = 4_000
    theta, weight = gauss_legendre(n)
    at = np.array([0, 1, 17, 18, 19, 20, 25, 100, 1_000, 1_999])
    phi = 2 * np.arcsin(np.sqrt(theta[at].astype(np.longdouble)))
    for _ in range(2):
        value, before = legendre_by_recurrence(n, phi)
        slope = n * (np.cos(phi) * value - before) / np.sin(phi)
        phi = phi - value / slope
    assert np.abs(theta[at] - np.sin(phi / 2) ** 2).max() < 1e-15
    assert np.abs(weight[at] * slope**2 - 1).max() < 1e-8  # the outermost are known no better
    assert np.abs(weight[at[4:]] * slope[4:] ** 2 - 1).max() < 1e-12
    assert weight.sum() == pytest.approx(1, abs=1e-14)
    assert weight @ theta**7 == pytest.approx(1 / 8, abs=1e-14)


@pytest.mark.parametrize("weight", [1e3, 1e7, 3e7, 1e10, 1.1e14, 1e15])
def test_heavy_weights_are_quick_and_exact_or_refused(weight):
    """Three rows: bins are counted by cells, nodes found by a series."""
    s, y, w = [0.2, 0.5, 0.8], [0, 1, 1], [weight] * 3
    p = cal.BBQ(weights="counts").fit(s, y, w).calibrate(s)
    assert p[0] < 1e-3
    assert 0.99 < p[1] <= p[2] <= 1.0
    for c in (cal.SBB(weights="counts"), cal.ABB(weights="counts")):
        if weight > 1e8 / 3:
            with pytest.raises(cal.errors.InputError, match="total weight N must be at most 1e"):
                c.fit(s, y, w)
        else:
            p = c.fit(s, y, w).calibrate(s)
            assert p == pytest.approx([1 / weight, 1, 1], abs=0.01, rel=0.01)


def test_the_bins_of_bbq_are_those_one_by_one():
    rng = np.random.default_rng(0)
    for whole in (True, False):
        for size in (1, 2, 5, 40, 300):
            weight = rng.integers(1, 50, size).astype(float) if whole else rng.random(size) * 9
            mass, numbers = np.cumsum(weight), np.arange(2, 90)
            width = mass[-1] / numbers
            width = np.floor(width) + (width < 1) if whole else width
            ours = bin_ends(mass, numbers, width)
            for model, number in enumerate(numbers):
                wanted = [k * width[model] * (1 - 1e-12) for k in range(1, number)]
                ends = {min(int(np.searchsorted(mass, edge)) + 1, size) for edge in wanted}
                assert sorted(ends | {size}) == ours[1][ours[0] == model].tolist()


@pytest.mark.parametrize("weight", [1e50, 1e99])
def test_more_counts_than_floats_can_tell_are_refused(weight):
    s, y = noisy(60)
    with pytest.raises(cal.errors.InputError, match="sum must be at most 2⁵³"):
        cal.BBQ(weights="counts").fit(s, y, np.full(60, weight))
    p = cal.BBQ().fit(s, y, np.full(60, weight)).calibrate(s)
    assert p == pytest.approx(cal.BBQ().fit(s, y).calibrate(s), rel=1e-12)


def noisy(n, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    return s, (rng.random(n) < np.where(s < 0.5, s, 1.2 - s)).astype(int)


@pytest.mark.parametrize("lam", [0.5, 20.0, 3000.0])
@pytest.mark.full
def test_the_map_between_scores_is_within_a_millionth(lam):
    s, y = noisy(60)
    c = cal.ABB(lambda_=lam).fit(s, y)
    rng = np.random.default_rng(1)
    near = np.concatenate((s, np.clip(s + rng.normal(0, 1e-3, 60), s.min(), s.max())))
    query = np.concatenate((near, rng.uniform(s.min(), s.max(), 60)))
    expected = naive.abb(s, y, np.ones(60), query, lam)
    assert np.abs(c.calibrate(query) - expected).max() <= 1e-6
    assert c.map_.x[0] == s.min()
    assert c.map_.x[-1] == s.max()


def test_large_maps_are_thinned_within_the_same_error():
    s, y = noisy(30_000)
    c = cal.ABB(lambda_=10).fit(s, y)
    assert len(c.map_.x) < 20_000
    table = cal.ScoreTable.from_arrays(s, y)
    exact, _ = at_scores(table.negative, table.positive, 10 * unit_gaps(table.scores))
    assert np.abs(c.calibrate(table.scores) - exact).max() <= 1e-6


def test_simplify_keeps_its_promise():
    rng = np.random.default_rng(0)
    for tol in (1e-3, 0.05, 0.5):
        x = np.sort(rng.random(3000))
        v = np.cumsum(rng.normal(size=3000)) / 50
        kept = simplify(x, v, tol)
        assert kept[0] == 0
        assert kept[-1] == 2999
        assert np.abs(np.interp(x, x[kept], v[kept]) - v).max() <= tol * (1 + 1e-9)
        assert len(kept) < 3000


def test_bands_are_quantiles_of_the_posterior():
    s = np.array([0.1, 0.2, 0.6, 0.9, 0.95])
    y = np.array([0, 1, 0, 1, 1])
    lam = 4.0
    c = cal.ABB(lambda_=lam, levels=(0.9, 0.5)).fit(s, y)
    assert c.map_.level == 0.9
    assert c.map_.point.level == 0.5
    cells = [(a, 1.0 - b, float(b)) for a, b in zip(s, y, strict=True)]
    every = list(naive.all_binnings(cells, lam))
    weight = np.exp([score for _, score in every])
    weight /= weight.sum()
    for level, band in ((0.9, c.map_), (0.5, c.map_.point)):
        low, high = band.bounds(s)
        for i in range(5):
            for bound, q in ((low[i], (1 - level) / 2), (high[i], (1 + level) / 2)):
                inside = [next(b for b in bins if b[0] <= i < b[1]) for bins, _ in every]
                cdf = sum(
                    w * beta.cdf(bound, b[3] + 1, b[2] + 1)
                    for w, b in zip(weight, inside, strict=True)
                )
                assert cdf == pytest.approx(q, abs=0.002)
    assert ((low <= c.calibrate(s)) & (c.calibrate(s) <= high)).all()


def test_bands_of_one_bin_are_those_of_its_beta_posterior():
    rng = np.random.default_rng(0)
    s, y = rng.random(4000), (rng.random(4000) < 0.2).astype(int)
    c = cal.ABB(lambda_=1e-6, levels=(0.9,)).fit(s, y)
    n1 = y.sum()
    expected = betaincinv(n1 + 1, 4001 - n1, [0.05, 0.95])
    bounds = np.array(c.map_.bounds([0.3, 0.5])).T
    assert np.abs(bounds - expected).max() < 2e-4


def test_bands_between_scores_hold_the_point_and_are_exact():
    c = cal.ABB(lambda_=10, levels=(0.9,)).fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    # in the middle of the wide gap a bin of its own is likely: nearly the uniform prior
    low, high = c.map_.bounds([0.5])
    assert low[0] == pytest.approx(0.05, abs=0.002)
    assert high[0] == pytest.approx(0.95, abs=0.002)
    rng = np.random.default_rng(0)
    s = np.concatenate((rng.uniform(0, 0.1, 300), rng.uniform(0.9, 1, 300)))
    y = (rng.random(600) < s).astype(int)
    far = cal.ABB(levels=(0.9,)).fit(s, y)
    x = np.linspace(0, 1, 2001)
    low, high = far.map_.lower(x), far.map_.upper(x)
    p = far.calibrate(x)
    assert ((low <= p + 0.02) & (p <= high + 0.02)).all()
    low, high = far.map_.bounds(x)
    assert ((low <= p) & (p <= high)).all()


@pytest.mark.parametrize("n", [1, 4, 50])
def test_bands_of_one_class_are_beta_quantiles_at_both_ends(n):
    for label in (0, 1):
        c = cal.ABB(lambda_=1e-9, levels=(0.9,)).fit(np.arange(n) / n, np.full(n, label))
        expected = betaincinv(1 + n * label, 1 + n * (1 - label), [0.05, 0.95])
        assert np.array(c.map_.bounds([0.3]))[:, 0] == pytest.approx(expected, abs=2e-3)


@pytest.mark.full
def test_so_many_boundaries_that_the_map_is_coarser_and_says_so(monkeypatch):
    s, y = noisy(2000)
    c = cal.ABB(lambda_=1e4).fit(s, y)
    assert 1e-6 < c.map_error_ < 1e-4
    x = np.linspace(*np.sort(s)[[1000, 1003]], 4)
    exact = naive.abb(s, y, np.ones(2000), x, 1e4)
    assert np.abs(c.calibrate(x) - exact).max() <= c.map_error_
    assert cal.ABB(lambda_=10).fit(s, y).map_error_ == 1e-6
    monkeypatch.setattr("calibrant.methods.binning.bayesian.MOST_KNOTS", 3000)
    with pytest.warns(cal.errors.CalibrationWarning, match="a smaller lambda_"):
        coarse = cal.ABB(lambda_=1e4).fit(s, y)
    assert coarse.map_error_ > 1e-4
    assert np.abs(coarse.calibrate(x) - exact).max() <= coarse.map_error_


def test_huge_weights_in_few_cells():
    table = cal.ScoreTable.from_counts([0.1, 0.5, 0.9], [1e9, 1e9, 1e9], [1e8, 1e9, 9e9])
    for c in (cal.SBB(lambda_=3), cal.BBQ()):
        p = c.fit_table(table).calibrate([0.1, 0.5, 0.9])
        assert p == pytest.approx([1 / 11, 0.5, 0.9], abs=1e-6)
    for c in (cal.SBB(), cal.ABB()):
        with pytest.raises(cal.errors.InputError, match="Divide weights that are no counts"):
            c.fit_table(table)


def test_bands_survive_saving(tmp_path):
    s, y = noisy(300)
    c = cal.ABB(levels=(0.8,)).fit(s, y)
    cal.save(c, tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    assert loaded.map == c.map_
    assert np.array_equal(loaded.map.bounds(s), c.map_.bounds(s))


def test_lambda_by_evidence():
    s, y = noisy(400)
    table = cal.ScoreTable.from_arrays(s, y)
    nodes, weight = quadrature(table.total, True, 1e-10)

    def evidence(lam):
        return log_evidence(
            table.negative, table.positive, lam * unit_gaps(table.scores), nodes, weight
        )

    best = cal.ABB(lambda_="empirical").fit(s, y)
    (lam,) = best.lambdas_
    assert best.log_evidence_ == pytest.approx(evidence(lam), abs=1e-7)
    assert all(evidence(lam) >= evidence(float(other)) - 1e-6 for other in GRID)
    mean = cal.ABB().fit(s, y)
    logs = np.array([evidence(value) for value in mean.lambdas_])
    share = np.exp(logs - logs.max())
    assert np.allclose(mean.lambda_weights_, share / share.sum(), atol=1e-6)
    assert mean.lambda_weights_.sum() == pytest.approx(1)
    parts = [cal.ABB(lambda_=float(v)).fit(s, y).calibrate(s) for v in mean.lambdas_]
    assert np.abs(mean.calibrate(s) - mean.lambda_weights_ @ parts).max() < 2.1e-6
    binned = cal.SBB().fit(s, y)
    steps = [cal.SBB(lambda_=float(v)).fit(s, y).calibrate(s) for v in binned.lambdas_]
    assert np.abs(binned.calibrate(s) - binned.lambda_weights_ @ steps).max() < 1e-12
    one = cal.SBB(lambda_="empirical").fit(s, y)
    assert one.lambdas_ == pytest.approx(best.lambdas_, rel=0.01)


@pytest.mark.full
def test_the_error_estimate_is_honest():
    s, y = noisy(3000)
    y = (np.random.default_rng(0).random(3000) < 0.4).astype(int)  # one bin: the hardest
    table = cal.ScoreTable.from_arrays(s, y)
    exact, _ = naive.average_dense(table.negative, table.positive, 2 * unit_gaps(table.scores))
    errors = []
    for tol in (1e-3, 1e-5, 1e-7, 1e-10):
        c = cal.ABB(lambda_=2, tol=tol).fit(s, y)
        ours, _ = at_scores(table.negative, table.positive, 2 * unit_gaps(table.scores), tol)
        actual = np.abs(ours - exact).max()
        assert actual <= max(tol, 1e-12)
        assert actual <= max(c.error_, 1e-12)
        errors.append(c.error_)
    floored = [max(error, 1e-9) for error in errors]
    assert floored == sorted(floored, reverse=True)
    assert floored[0] > 1e-6
    assert floored[-1] < 1e-6


def test_attributes_of_the_best_binning():
    s, y = noisy(500)
    c = cal.SBB(lambda_=8).fit(s, y)
    bins = c.bins_
    assert bins.edges[0] == s.min()
    assert bins.edges[-1] == s.max()
    assert bins.negative.sum() + bins.positive.sum() == 500
    assert np.allclose(bins.value, (bins.positive + 1) / (bins.negative + bins.positive + 2))
    table = cal.ScoreTable.from_arrays(s, y)
    gaps = 8 * unit_gaps(table.scores)
    _, best, _ = naive.best_binning_dense(table.negative, table.positive, gaps)
    assert c.log_score_ == pytest.approx(best)


def test_cache_and_text_variants():
    s, y = noisy(300)
    exact = cal.ABB(lambda_=6).fit(s, y)
    cached = cal.ABB(lambda_=6, cache=100).fit(s, y)
    assert cached.map_.is_step
    assert len(cached.map_.x) == 99
    assert np.abs(cached.calibrate(s) - exact.calibrate(s)).max() == pytest.approx(
        cached.cache_error_
    )
    assert cached.calibrate([0.505]) == pytest.approx(exact.calibrate([0.505]), abs=1e-12)
    assert exact.cache_error_ is None
    finer = cal.ABB(lambda_=6, cache=1000).fit(s, y)
    assert finer.cache_error_ < cached.cache_error_
    margins = cal.ABB(lambda_=6, cache=10).fit(10 * s - 3, y)
    assert margins.map_.x[0] == pytest.approx((10 * s - 3).min() + np.ptp(10 * s) / 10)
    text = cal.ABB(lambda_=6, variant="text").fit(s, y)
    assert 1e-3 < np.abs(text.calibrate(s) - exact.calibrate(s)).max() < 0.3


@pytest.mark.parametrize("seed", range(6))
def test_the_text_variant_follows_the_text(seed):
    x, n0, n1, lam = random_cells(seed, most=9)
    table = cal.ScoreTable.from_counts(x, n0, n1)
    c = cal.ABB(lambda_=lam, variant="text").fit_table(table)
    cells = list(zip(x, n0, n1, strict=True))

    def best(part):
        """The highest score of a sub-binning, with the chance of the cut beside it."""
        return max(score for _, score in naive.all_binnings(part, lam_of(part))) if part else 0.0

    def lam_of(part):
        span, whole = part[-1][0] - part[0][0], x[-1] - x[0]
        return lam * (span / whole if len(part) > 1 else 1.0)

    def cut(i):
        return math.log(-math.expm1(-lam * (x[i + 1] - x[i]) / (x[-1] - x[0])))

    above, below = np.zeros(len(x)), np.zeros(len(x))
    for low in range(len(x)):
        for high in range(low + 1, len(x) + 1):
            a, b = n0[low:high].sum(), n1[low:high].sum()
            log = math.lgamma(a + 1) + math.lgamma(b + 1) - math.lgamma(a + b + 2)
            log -= lam * (x[high - 1] - x[low]) / (x[-1] - x[0]) if len(x) > 1 else 0.0
            log += best(cells[:low]) + (cut(low - 1) if low else 0.0)
            log += best(cells[high:]) + (cut(high - 1) if high < len(x) else 0.0)
            above[low:high] += math.exp(log) * (b + 1) / (a + b + 2)
            below[low:high] += math.exp(log)
    assert np.abs(c.calibrate(x) - above / below).max() < 1e-9


def golden(shared):
    for path in sorted((shared / "golden").glob("[ces]*.json.gz")):
        with gzip.open(path) as stream:
            case = json.load(stream)
        if "score" in case.get("bbq", {}).get("BDeu2", {}):
            yield path.name, case["input"], case["bbq"]["BDeu2"]


def test_bbq_equals_the_authors_program(shared):
    compared = 0
    for name, data, expected in golden(shared):
        s, y = np.array(data["train_y"], float), np.array(data["train_z"], int)
        query = np.array(data["test_y"], float)
        if len(np.unique(s)) < len(s) and "clustered" not in name:
            continue  # the program may split equal scores, ours never does
        every = cal.BBQ(models="all", classes=[0, 1]).fit(s, y)
        assert np.abs(np.array(expected["score"]) + 2 * every.log_scores_).max() < 1e-9
        elbow = cal.BBQ(classes=[0, 1]).fit(s, y)
        assert (elbow.weights_ > 0).sum() == np.size(expected["pruned_SV"])
        assert np.abs(elbow.calibrate(query) - expected["pred_MA"]).max() < 1e-9, name
        best = cal.BBQ(models="best", classes=[0, 1]).fit(s, y)
        assert np.abs(best.calibrate(query) - expected["pred_MS"]).max() < 1e-9, name
        compared += 1
    assert compared >= 10


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cal.SBB(lambda_=0), "above 0, or 'empirical' or 'average', but 0 came"),
        (lambda: cal.ABB(lambda_=-1), "lambda_ of ABB"),
        (lambda: cal.ABB(lambda_="best"), "'empirical' or 'average'"),
        (lambda: cal.ABB(tol=0), "tol of ABB must be a number above 0"),
        (lambda: cal.ABB(levels=(1.5,)), "levels of ABB"),
        (lambda: cal.ABB(levels=0.9), "levels of ABB"),
        (lambda: cal.ABB(variant="max"), "'exact' or 'text'"),
        (lambda: cal.ABB(cache=0), "cache of ABB"),
        (lambda: cal.BBQ(models="some"), "'elbow' or 'all' or 'best'"),
    ],
)
def test_bad_parameters_name_what_is_allowed(make, message):
    with pytest.raises(cal.errors.ParameterError, match=message):
        make().fit([0.1, 0.9], [0, 1])
