"""BLS: its members against dense twins and quadrature, the average, its map, bands and weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, isotonic_regression
from scipy.special import expit, logit
from scipy.stats import norm

import calibrant as cal
from calibrant.methods.splines import bls as room
from strategies import REAL, TAME_MARGINS, TAME_PROBABILITIES, costly, rows
from twins import bls as naive

TAME = st.one_of(
    rows(score=TAME_PROBABILITIES, both_classes=True, min_size=4),
    rows(score=TAME_MARGINS, both_classes=True, min_size=4),
    rows(score=TAME_PROBABILITIES, both_classes=True, min_size=4, weight=REAL),
)


def bent(n, seed=0, kind="probability"):
    """Overconfident scores with a bend, and labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    y = (rng.random(n) < expit(np.where(z > 0, z / 3, z) - 0.3)).astype(int)
    return (expit(z) if kind == "probability" else z), y


def average_of(c, s, y, w=None):
    """The average that a fit of ``c`` draws, with all of its members."""
    table = cal.ScoreTable.from_arrays(s, y, w, classes=[0, 1])
    axis = room.ScoreAxis.of(table)
    cells = room.AxisCells.of(table, axis, axis.places(table), table.total)
    fits = tuple(room.fit_members(cells))
    assert [fit.log_evidence for fit in fits] == c.evidences_.tolist()
    return room.MemberAverage(cells, fits, c.weights_, c.moderation)


def axis_of(c, s):
    """Scores on the axis of the map."""
    on_logit = c.map_.input == "logit"
    return naive.log_odds(np.asarray(s)) if on_logit else np.asarray(s, dtype=float)


# --- designs and posteriors -----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [room.BrokenLine.bending, room.BrokenLine.rough])
def test_lines_are_their_dense_design(shape):
    rng = np.random.default_rng(1)
    nodes = np.array([-2.0, -1.1, -0.2, 0.0, 0.3, 1.7])
    x = np.sort(np.append(rng.uniform(-2, 1.7, 40), nodes))
    lines = shape(nodes, x)
    basis, unit = lines.basis, lines.unit
    dense = np.column_stack([np.interp(x, nodes, column) for column in basis.T])
    theta, w = rng.normal(size=basis.shape[1]), rng.random(len(x))
    assert np.allclose(lines.times(theta), dense @ theta, atol=1e-12)
    assert np.allclose(lines.back(w), dense.T @ w, atol=1e-12)
    assert np.allclose(lines.gram(w), dense.T @ (w[:, None] * dense), atol=1e-12)
    assert len(unit) == basis.shape[1] - 2
    root = rng.normal(size=(len(theta), len(theta)))
    mean, variance = lines.band(theta, root @ root.T).moments(*room.piece_and_share(nodes, x))
    assert np.allclose(mean, dense @ theta, atol=1e-12)
    assert np.allclose(variance, ((dense @ root) ** 2).sum(axis=1), atol=1e-10)
    outside = room.piece_and_share(nodes, np.array([1.7, 2.7, 3.7]))
    beyond, _ = lines.band(theta, root @ root.T).moments(*outside)
    assert beyond[2] - beyond[1] == pytest.approx(beyond[1] - beyond[0]), "lines go on"


@given(data=TAME)
def test_evidences_and_average_equal_the_dense_twin(data):
    s, y, w = data
    c = cal.BLS(monotone=False, classes=[0, 1], weights="counts").fit(s, y, w)
    query = np.concatenate((np.linspace(min(s.min(), 0), max(s.max(), 1), 23), s))
    p, evidences, _ = naive.average(s, y, w, query)
    assert np.allclose(c.evidences_, evidences, rtol=1e-10, atol=1e-9)
    average = average_of(c, s, y, w)
    assert np.abs(expit(average(axis_of(c, query))) - p).max() < 1e-8


@pytest.mark.parametrize(("n", "tol"), [(30, 0.1), (300, 0.01)])
def test_evidence_is_the_integral(n, tol):
    """Members with two parameters by quadrature: Laplace's error falls like 1/n."""
    s, y = bent(n)
    c = cal.BLS().fit(s, y)
    data = naive.Data(s, y, np.ones(n))
    x = data.x(data.scores)
    for name, sd in (("near identity", (0.3, 0.2 * data.sd)), ("platt", (4.0, 4.0))):
        member = next(m for m in c.members_ if m.name == name)
        covariance = np.linalg.inv(
            np.diag(1 / np.square(sd)) + _information(member.coefficients, x, data)
        )
        reach = 9 * np.sqrt(np.diag(covariance))
        a, b = (
            np.linspace(m - r, m + r, 151) for m, r in zip(member.coefficients, reach, strict=True)
        )
        log = norm.logpdf(a, data.mean, sd[0])[:, None] + norm.logpdf(b, data.sd, sd[1])
        for place, n0, n1 in zip(x, data.n0, data.n1, strict=True):
            f = a[:, None] + b * place
            log = log - n1 * np.logaddexp(0, -f) - n0 * np.logaddexp(0, f)
        integral = log.max() + np.log(np.exp(log - log.max()).sum() * (a[1] - a[0]) * (b[1] - b[0]))
        assert abs(member.log_evidence - integral) < tol, name


def _information(coefficients, x, data):
    p = expit(coefficients[0] + coefficients[1] * x)
    w = (data.n0 + data.n1) * p * (1 - p)
    return np.array([[w.sum(), w @ x], [w @ x, w @ x**2]])


def test_posterior_of_weights_of_any_size_converges():
    x = np.linspace(-2, 2, 50)
    nodes = np.linspace(-2, 2, 9)
    lines = room.BrokenLine.bending(nodes, x)
    for size in (0.0, 1e-300, 1.0, 1e5, 1e9):
        n1 = size * (x > 0)
        found = room.fit_posterior(
            lines,
            np.zeros(9),
            np.concatenate(([4.0, 4.0], lines.unit)),
            size - n1,
            n1,
        )
        assert found.steps < 60
        assert np.isfinite(found.theta).all()
        assert np.isfinite(found.log_evidence)


# --- rare events, and scores that differ by rounding ----------------------------------------------


def rare(n, events, kind, seed=0):
    """Uniform scores whose positives are a random third of the top, or follow a smooth curve."""
    rng = np.random.default_rng(seed)
    s, y = rng.random(n), np.zeros(n, dtype=int)
    if kind == "steep":
        y[rng.choice(np.argsort(s)[-3 * events :], events, replace=False)] = 1
    else:
        chance = expit(4 * s - 2) if kind == "smooth" else expit(2 * naive.log_odds(s) - 12)
        y[rng.choice(n, events, replace=False, p=chance / chance.sum())] = 1
    return s, y


@pytest.mark.parametrize("events", [30, 300])
@pytest.mark.parametrize("n", [2_000, 200_000])
@pytest.mark.parametrize("kind", ["steep", "smooth", "strong"])
def test_probabilities_sum_to_the_events(n, events, kind):
    s, y = rare(n, events, kind)
    for turned in (False, True):
        c = cal.BLS().fit(1 - s if turned else s, 1 - y if turned else y)
        p = c.calibrate(1 - s if turned else s)
        assert (1 - p if turned else p).sum() == pytest.approx(events, rel=0.003)


def test_right_scores_follow_the_noise_of_their_sum_in_part_only():
    noise, followed = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        s = rng.random(300)
        y = (rng.random(300) < s).astype(int)
        noise.append(y.sum() - s.sum())
        followed.append(cal.BLS().fit(s, y).calibrate(s).sum() - s.sum())
        wrong = cal.BLS().fit(s**4, y)  # the identity has no weight
        assert wrong.calibrate(s**4).sum() == pytest.approx(y.sum(), rel=1e-3)
    assert 0.2 < np.dot(followed, noise) / np.dot(noise, noise) < 0.75


def test_rare_events_at_the_top_are_found():
    """Knots at quantiles of all rows end far below them: no line could bend there."""
    s, y = rare(200_000, 100, "steep")
    p = cal.BLS().fit(s, y).calibrate(s)
    constant, truth = 100 * (np.log(2000) + 1), 300 * (np.log(3) - np.log(2) * 2 / 3)
    assert 200_000 * cal.metrics.log_loss(y, p) < truth + 0.1 * (constant - truth)


@pytest.mark.parametrize("events", [0, 1, 3])
def test_few_events_leave_a_small_and_finite_sum(events):
    s, y = rare(300_000, events, "smooth")
    p = cal.BLS(classes=[0, 1]).fit(s, y).calibrate(s)
    assert 0.05 < p.sum() < events + 0.2


@pytest.mark.parametrize("width", [0.0, 1e-15, 1e-12, 1e-10, 1e-8, 1e-6])
@pytest.mark.parametrize("place", [0.3, 0.9999, 1e6, -5.0])
def test_nearly_equal_scores_are_fitted_like_any_others(place, width):
    rng = np.random.default_rng(0)
    s = np.where(rng.random(300) < 0.5, 0.3, 0.1 + 0.2) if width == 0 else rng.random(300)
    s, y = (s if width == 0 else place * (1 + width * s)), rng.random(300) < 0.5
    c = cal.BLS().fit(s, y)
    assert c.n_cells_ == 1 or width > 1e-13
    assert len(c.map_.x) < 700
    assert c.calibrate(s).mean() == pytest.approx(y.mean(), rel=0.01)
    auto = cal.AutoCalibrator().fit(s, y)
    kept = auto.refused_ and auto.scores_are_ != "points"
    assert auto.calibrate(s).mean() == pytest.approx((s if kept else y).mean(), rel=0.01)


# --- the average and its map ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["probability", "margin"])
@pytest.mark.parametrize("n", [15, 400, 5000])
def test_map_is_within_its_error_of_the_average(n, kind):
    s, y = bent(n, kind=kind)
    c = cal.BLS(monotone=False).fit(s, y)
    average = average_of(c, s, y)
    a = np.linspace(c.map_.x[0], c.map_.x[-1], 20_001)
    if kind == "probability":
        a = np.concatenate((a, np.linspace(-8, 8, 20_001)))
    apart = c.map_.limits(a)[1] - average(a)  # all log-odds are shifted alike to the base rate
    assert np.ptp(apart) <= 2 * c.map_error_ + 1e-9
    assert c.calibrate(s).mean() == pytest.approx(y.mean(), rel=0.01 if n > 15 else 0.15)
    assert len(c.map_.x) < 700


@given(data=TAME)
@costly
def test_monotone_map_is_the_isotonic_regression_of_the_average(data):
    s, y, w = data
    table = cal.ScoreTable.from_arrays(s, y, w)
    c = cal.BLS(weights="counts").fit(s, y, w)
    average = average_of(c, s, y, w)
    curve = expit(average(axis_of(c, table.scores)))
    expected = naive.log_odds(isotonic_regression(curve, weights=table.weight).x)
    found = naive.log_odds(c.calibrate(table.scores))
    assert np.ptp(found - expected) < 2.2e-3  # but for the shift, the same for all


def test_turned_round_data_give_the_map_turned_round():
    rng = np.random.default_rng(3)
    s = rng.integers(0, 65, 60) / 64  # 1 − s is exact
    y = (rng.random(60) < s).astype(int)
    one, two = cal.BLS(monotone=False).fit(s, y), cal.BLS(monotone=False).fit(1 - s, 1 - y)
    assert np.allclose(one.evidences_, two.evidences_, atol=1e-9)
    query = np.arange(65) / 64
    assert np.abs(one.calibrate(query) - 1 + two.calibrate(1 - query)).max() < 2.6e-4


@pytest.mark.parametrize("n", [100, 2000])
@pytest.mark.parametrize("weighted", [False, True])
def test_nothing_prefers_a_side(n, weighted):
    """Neither do nodes and cells where they are fewer than scores."""
    s, y = bent(n, kind="margin")
    w = np.random.default_rng(4).random(n) if weighted else None
    one, two = cal.BLS(monotone=False).fit(s, y, w), cal.BLS(monotone=False).fit(-s, 1 - y, w)
    assert np.allclose(one.evidences_, two.evidences_, atol=1e-6)
    query = np.linspace(-9, 9, 500)
    assert np.abs(one.calibrate(query) - 1 + two.calibrate(-query)).max() < 2.6e-4


@pytest.mark.parametrize(("factor", "shift"), [(1e-6, 0.0), (1e6, 0.0), (2.0, 1e4), (1e300, 0.0)])
def test_margins_of_any_scale_give_one_map(factor, shift):
    s, y = bent(200, kind="margin")
    plain, other = cal.BLS().fit(s, y), cal.BLS().fit(s * factor + shift, y)
    query = np.linspace(-9, 9, 50)
    assert np.abs(plain.calibrate(query) - other.calibrate(query * factor + shift)).max() < 3e-4


def test_many_scores_are_grouped_and_nothing_is_lost(monkeypatch):
    s, y = bent(20_000)
    grouped = cal.BLS().fit(s, y)
    assert 400 <= grouped.n_cells_ <= 600
    monkeypatch.setattr(room, "CELLS", 10**6)
    whole = cal.BLS().fit(s, y)
    assert whole.n_cells_ == len(np.unique(s))
    new, labels = bent(20_000, seed=1)
    one, two = (cal.metrics.log_loss(labels, c.calibrate(new)) for c in (grouped, whole))
    assert abs(one - two) < 2e-5
    assert np.abs(grouped.calibrate(new) - whole.calibrate(new)).max() < 0.01


def test_scores_of_equal_log_odds_are_one():
    """Last bits, as sums of votes have them, are no ranks: the map could not tell them apart."""
    s = np.repeat([0.01, 0.05, 0.1], 20)
    y = np.tile([0, 0, 0, 1], 15)
    noisy = np.where(np.arange(60) % 2, np.nextafter(s, 1), s)
    c = cal.BLS(monotone=False).fit(noisy, y)
    assert c.n_cells_ == len(np.unique(naive.log_odds(noisy))) < len(np.unique(noisy))
    _, evidences, _ = naive.average(noisy, y, np.ones(60), s)
    assert np.allclose(c.evidences_, evidences, rtol=1e-10, atol=1e-9)


def test_ranks_of_the_tiniest_scores_survive():
    s = np.array([1e-300, 1e-100, 1e-50, 1e-20] * 50)
    y = np.array([0, 0, 1, 1] * 50)
    p = cal.BLS().fit(s, y).calibrate([1e-300, 1e-100, 1e-50, 1e-20])
    assert p[1] < 0.1
    assert p[2] > 0.9


def test_exact_zeros_and_ones_are_not_outliers():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 0.5, 4000)
    votes, y = rng.binomial(30, p) / 30, rng.random(4000) < p
    c = cal.BLS().fit(votes[:2000], y[:2000])
    after, before = (
        cal.metrics.brier(y[2000:], v) for v in (c.calibrate(votes[2000:]), votes[2000:])
    )
    assert after < before
    low, first, last, high = c.calibrate([0.0, 1 / 30, 29 / 30, 1.0])
    assert 1e-3 < low < first < last < high < 1 - 1e-3


def test_shapes_that_no_sigmoid_has_are_found():
    rng = np.random.default_rng(5)
    s = rng.random(20_000)
    truth = np.where(s < 0.4, 0.1, np.where(s < 0.7, 0.5, 0.9))
    y = rng.random(20_000) < truth
    c = cal.BLS().fit(s, y)
    assert np.abs(c.calibrate([0.2, 0.55, 0.85]) - [0.1, 0.5, 0.9]).max() < 0.02
    assert max(c.members_, key=lambda m: m.weight).name == "rough"
    smooth = {m.name: m.weight for m in c.members_}
    assert smooth["platt"] < 1e-6


def test_few_rows_stay_near_good_scores():
    rng = np.random.default_rng(6)
    worse = []
    for _ in range(20):
        s = rng.beta(1, 1, 30)
        c = cal.BLS().fit(s, rng.random(30) < s)
        new = rng.beta(1, 1, 2000)
        p = c.calibrate(new)
        worse.append(-np.mean(new * np.log(p / new) + (1 - new) * np.log((1 - p) / (1 - new))))
    assert np.mean(worse) < 0.04, "nats above the truth"


def test_members_are_told():
    s, y = bent(300)
    c = cal.BLS().fit(s, y)
    names = [m.name for m in c.members_]
    assert names[:5] == ["identity", "near identity", "platt", "quadratic", "beta"]
    assert names.count("bending") == 10
    assert names.count("rough") == 3
    assert c.weights_.sum() == pytest.approx(1.0)
    assert [m.weight for m in c.members_] == c.weights_.tolist()
    assert [m.log_evidence for m in c.members_] == c.evidences_.tolist()
    assert c.members_[0].coefficients == ()
    assert all(len(m.coefficients) == len(m.nodes) for m in c.members_ if m.name == "bending")
    margins = cal.BLS().fit(*bent(300, kind="margin"))
    assert {m.coordinate for m in margins.members_} == {"margin", "rank"}
    assert "identity" not in {m.name for m in margins.members_}
    assert cal.BLS(power=0).fit(s, y).weights_[2:].std() == pytest.approx(0)


# --- bands ----------------------------------------------------------------------------------------


def without_identity(average):
    """The members of a band: not the one that takes scores as they are; weights more alike."""
    kept = [i for i, fit in enumerate(average.fits) if fit.name != "identity"]
    evidence = np.array([average.fits[i].log_evidence for i in kept])
    prior = np.array([room.PRIOR.get(average.fits[i].name, 1.0) for i in kept])
    weights = prior * np.exp(0.25 * (evidence - evidence.max()))
    weights /= weights.sum()
    return average._replace(fits=tuple(average.fits[i] for i in kept), weights=weights)


@pytest.mark.full
def test_bands_are_quantiles_of_the_mixture():
    s, y = bent(250)
    c = cal.BLS(monotone=False, levels=(0.9,)).fit(s, y)
    inner = average_of(cal.BLS(monotone=False).fit(s, y), s, y)
    average = without_identity(inner)
    at = c.map_.lower.x[::16]
    low, high = (expit(bound.limits(at)[1]) for bound in (c.map_.lower, c.map_.upper))
    for k, place in enumerate(at):
        moments = list(average.moments(np.array([place])))

        def upto(t, moments=moments):
            parts = [norm.cdf(t, f[0], np.sqrt(max(v[0], 1e-18))) for f, v in moments]
            return average.weights @ np.array(parts)

        for bound, tail in ((low[k], 0.05), (high[k], 0.95)):
            expected = expit(brentq(lambda t, tail=tail: upto(t) - tail, -5000, 5000, xtol=1e-10))
            inside = expit(inner(np.array([place])))[0]
            expected = min(expected, inside) if tail < 0.5 else max(expected, inside)
            assert bound == pytest.approx(expected, abs=3e-4)


def test_bands_are_exact_beyond_the_outermost_scores():
    """The map has few knots there, and none of them may be missing from the band."""
    rng = np.random.default_rng(0)
    s = rng.uniform(0.2, 0.6, 20_000)
    y = rng.random(20_000) < s
    c = cal.BLS(monotone=False, levels=(0.9,)).fit(s, y)
    average = average_of(c, s, y)
    doubting = without_identity(average)
    at = np.linspace(-9, 9, 400)
    for bound, tail, outer in ((c.map_.lower, 0.05, np.minimum), (c.map_.upper, 0.95, np.maximum)):
        exact = expit(outer(doubting.quantile(at, tail), average(at)))
        assert np.abs(expit(bound.limits(at)[1]) - exact).max() < 0.002


def test_levels_that_no_band_has():
    with pytest.raises(cal.errors.ParameterError, match=r"at most 0\.999999, but"):
        cal.BLS(levels=(1.0,)).fit(*bent(20))


@pytest.mark.parametrize("kind", ["probability", "margin"])
def test_bands_are_nested_and_hold_the_point(kind):
    s, y = bent(120, kind=kind)
    c = cal.BLS(levels=(0.95, 0.5)).fit(s, y)
    query = np.linspace(-0.2, 1.2, 500) if kind == "probability" else np.linspace(-20, 20, 500)
    wide, narrow, p = c.map_, c.map_.point, c.map_(query)
    assert (wide.level, narrow.level) == (0.95, 0.5)
    bounds = [*wide.bounds(query), *narrow.bounds(query)]
    assert (bounds[0] <= bounds[2] + 1e-12).all()
    assert (bounds[2] <= p).all()
    assert (p <= bounds[3]).all()
    assert (bounds[3] <= bounds[1] + 1e-12).all()
    assert (np.diff(p) >= 0).all()


def test_bands_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(8)
    hits = []
    for _ in range(25):
        s = rng.random(400)
        c = cal.BLS(levels=(0.9,)).fit(s, rng.random(400) < s**2)
        query = np.linspace(0.05, 0.95, 19)
        low, high = c.map_.bounds(query)
        hits.append(np.mean((low <= query**2) & (query**2 <= high)))
    assert 0.8 < np.mean(hits) < 0.99


def test_bands_of_right_scores_are_as_wide_as_those_of_a_sigmoid():
    """At least nearly so: that the scores may be exactly right does not make the truth known."""
    rng = np.random.default_rng(19)
    s = rng.random(5000)
    c = cal.BLS(levels=(0.9,)).fit(s, rng.random(5000) < s)
    low, high = c.map_.bounds([0.5])
    deviation = 1 / np.sqrt((s * (1 - s)).sum())  # of the log-odds in the middle
    assert high[0] - low[0] > 0.8 * 2 * norm.ppf(0.95) * deviation / 4


@pytest.mark.parametrize(
    ("truth", "least"),
    [(lambda s: expit(1.1 * logit(s)), 0.9), (lambda s: 0.15 + 2.6 * (s - 0.55) ** 2, 0.8)],
    ids=["near the identity", "falling and rising"],
)
def test_bands_hold_what_the_map_cannot_be(truth, least):
    """A rising map near the scores, and a truth that is near them, or that falls."""
    rng = np.random.default_rng(18)
    query = np.linspace(0.05, 0.95, 19)
    hits = []
    for _ in range(15):
        s = rng.random(2000)
        c = cal.BLS(levels=(0.9,)).fit(s, rng.random(2000) < truth(s))
        low, high = c.map_.bounds(query)
        hits.append(np.mean((low <= truth(query)) & (truth(query) <= high)))
        assert (np.diff(c.map_(query)) >= 0).all()
    assert np.mean(hits) >= least
    everything = cal.BLS(levels=(0.9,), power=10).fit(s, rng.random(2000) < s)
    assert (np.subtract(*everything.map_.bounds(query)[::-1]) > 0).all()


# --- weights and degenerate tables ----------------------------------------------------------------


def test_importance_weights_count_as_many_rows_as_they_are_worth():
    s, y = bent(300)
    rng = np.random.default_rng(9)
    plain = cal.BLS().fit(s, y)
    for size in (1e-6, 3.7, 1e6):
        even = cal.BLS().fit(s, y, np.full(300, size))
        assert np.abs(even.evidences_ - plain.evidences_).max() < 1e-6
    w = rng.exponential(size=300)
    one, two = (cal.BLS().fit(s, y, w * f) for f in (1.0, 50.0))
    assert np.abs(one.evidences_ - two.evidences_).max() < 1e-6
    worth = cal.BLS(levels=(0.9,)).fit(s, y, w * 50)
    effective = w.sum() ** 2 / (w**2).sum()
    rows = cal.BLS(levels=(0.9,), weights="counts").fit(s, y, w * effective / w.sum())
    places = np.linspace(0.05, 0.95, 91)
    assert np.abs(worth.evidences_ - rows.evidences_).max() < 1e-9
    assert np.abs(worth.map_(places) - rows.map_(places)).max() < 1e-9
    # bands are straight between 256 places, and these are not always the same
    bounds = [np.array(c.map_.bounds(places)) for c in (worth, rows)]
    assert np.abs(bounds[0] - bounds[1]).mean() < 3e-4
    tied = s.round(1)  # fifty equal rows of one score are a step that the data do have
    counts = cal.BLS(levels=(0.9,), weights="counts").fit(tied, y, w * 50)
    worth = cal.BLS(levels=(0.9,)).fit(tied, y, w * 50)
    width = [np.ptp(c.map_.bounds(places), axis=0).mean() for c in (counts, worth)]
    assert width[0] < width[1] / 2.0, "weights that only rank rows must not make the band narrow"


@pytest.mark.parametrize(
    ("s", "y"),
    [
        ([0.4], [1]),
        ([0.5] * 20, [0, 1] * 10),
        ([0.0, 1.0], [0, 1]),
        ([0.0] * 10, [0] * 10),
        ([1e-300, 1e-200, 0.5], [0, 0, 1]),
        (np.arange(1, 21) / 21, [0] * 10 + [1] * 10),
        ([-1.7e308, 1.7e308], [0, 1]),
        ([1e15, 1e15 + 1, 1e15 + 2], [0, 1, 1]),
        ([-5e-324, 5e-324, 0.0, 2.0], [0, 1, 0, 1]),
        ([-2.2e-311, 0.0], [0, 0]),
        ([-1.7e308], [1]),
    ],
    ids=str,
)
@pytest.mark.parametrize("weight", [1.0, 1e-90, 1e90])
def test_degenerate_tables_have_finite_log_loss(s, y, weight):
    c = cal.BLS(classes=[0, 1], levels=(0.9,)).fit(s, y, np.full(len(y), weight))
    p = c.calibrate([-1.7e308, -3.0, 0.0, 1e-300, 0.3, 0.5, 1.0, 40.0, 1.7e308], on_range="allow")
    assert ((p > 0) & (p < 1)).all()
    assert (np.diff(p) >= 0).all()
    assert np.isfinite(c.evidences_).all()
    low, high = c.map_.bounds([0.0, 0.5, 1.0])
    assert ((low >= 0) & (high <= 1) & (low <= high)).all()


def test_separable_rows_are_told_apart():
    s, y = np.arange(1, 21) / 21, np.repeat([0, 1], 10)
    p = cal.BLS().fit(s, y).calibrate(s)
    assert p[4] < 0.1
    assert p[15] > 0.9


def test_scores_that_run_the_wrong_way():
    s, y = bent(500)
    flat = cal.BLS().fit(s, 1 - y)
    assert np.ptp(flat.calibrate(s)) < 0.1
    turned = cal.BLS(monotone=False).fit(s, 1 - y)
    assert cal.metrics.auc(1 - y, turned.calibrate(s)) == pytest.approx(
        cal.metrics.auc(y, s), abs=0.01
    )
