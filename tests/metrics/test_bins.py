"""Errors over bins: norms, what chance adds, and the number of bins that the data choose."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import calibrant as cal
from calibrant import ScoreTable, metrics
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.binned_errors import folded_mean
from calibrant.metrics.tables import MOST, sweep_starts
from strategies import PROBABILITIES, REAL, WHOLE, rows
from twins import metrics as naive

#: weights whose sums are exact, so that borders are where the twin has them
EIGHTHS = st.integers(0, 24).map(lambda k: k / 8)
ANY = st.one_of(
    rows(score=PROBABILITIES, weight=WHOLE, max_size=14),
    rows(score=PROBABILITIES, weight=EIGHTHS, max_size=14),
)
BINNING = st.sampled_from(["width", "mass"])
SAME = (np.full(6, 0.4), np.array([0, 1, 1, 0, 1, 1]), np.ones(6))
RNG = np.random.default_rng(0)


def close(value, abs=1e-12):
    return pytest.approx(value, rel=1e-9, abs=abs)


def drawn(n, seed=0, shift=0.0, weighted=False):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < np.clip(p + shift, 0, 1)).astype(int)
    return p, y, rng.lognormal(0, 1, n) if weighted else None


def classes(n, k, seed=1):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    return np.array([rng.choice(k, p=row) for row in p]), p


# --- norms and chance ---------------------------------------------------------------------------


@given(
    data=ANY,
    bins=st.integers(1, 6),
    binning=BINNING,
    ties=st.sampled_from(["together", "labels", "rows"]),
)
def test_root_mean_square(data, bins, binning, ties):
    p, y, w = data
    options = {"bins": bins, "binning": binning, "ties": ties}
    value = metrics.ece(y, p, sample_weight=w, norm=2, **options)
    assert value**2 == close(naive.rms(y, p, w, **options) ** 2)


@given(data=ANY, bins=st.integers(1, 5), binning=BINNING)
@example(data=SAME, bins=4, binning="mass")
@example(data=(np.array([0.3]), np.array([1]), np.ones(1)), bins=2, binning="width")
def test_debiased_square(data, bins, binning):
    p, y, w = data
    options = {"bins": bins, "binning": binning}
    value = metrics.ece(y, p, sample_weight=w, norm=2, debias=True, **options)
    assert value**2 == close(naive.debiased(y, p, w, norm=2, **options))


@given(data=rows(score=PROBABILITIES, weight=REAL, max_size=10), bins=st.integers(1, 4))
@example(data=SAME, bins=2)
def test_debiased_mean(data, bins):
    p, y, w = data
    value = metrics.ece(y, p, sample_weight=w, debias=True, bins=bins)
    assert value == pytest.approx(naive.debiased(y, p, w, bins=bins, norm=1), abs=1e-3)
    assert 0.0 <= value <= metrics.ece(y, p, sample_weight=w, bins=bins) + 1e-12


@given(
    data=rows(score=PROBABILITIES, weight=WHOLE, max_size=12),
    bins=st.one_of(st.integers(1, 4), st.just("auto")),
    binning=BINNING,
    norm=st.sampled_from([1, 2]),
)
def test_counts_are_repeated_rows(data, bins, binning, norm):
    p, y, w = data
    times = w.astype(int)
    options = {"bins": bins, "binning": binning, "norm": norm, "debias": True}
    counted = metrics.ece(y, p, sample_weight=w, weights="counts", **options)
    repeated = metrics.ece(np.repeat(y, times), np.repeat(p, times), classes=[0, 1], **options)
    assert counted == pytest.approx(repeated, abs=1e-7)
    table = ScoreTable.from_counts(*_counts(p, y, w))
    assert metrics.ece(table, weights="counts", **options) == pytest.approx(repeated, abs=1e-7)
    if binning == "width":  # borders between groups of equal mass go by whole rows
        scaled = metrics.ece(y, p, sample_weight=3 * w, **options)
        assert scaled == pytest.approx(metrics.ece(y, p, sample_weight=w, **options), abs=1e-7)


def _counts(p, y, w):
    scores = np.unique(p[w > 0] + 0.0)
    return scores, *([w[(p == s) & (y == c)].sum() for s in scores] for c in (0, 1))


def test_kumars_formula_where_a_bin_has_one_prediction():
    """(ȳ − p)² − ȳ(1 − ȳ)/(n − 1)."""
    p, y = np.repeat([0.2, 0.7], 50), RNG.integers(0, 2, 100)
    parts = []
    for at in (slice(50), slice(50, 100)):
        rate = y[at].mean()
        parts.append((rate - p[at][0]) ** 2 - rate * (1 - rate) / 49)
    assert metrics.ece(y, p, norm=2, debias=True) == close(math.sqrt(np.mean(parts)))


@pytest.mark.full
def test_the_debiased_square_is_unbiased():
    """Five standard errors of the mean of 3,000 samples hold the truth; the plain one does not."""
    rng = np.random.default_rng(5)
    plain, free = [], []
    for _ in range(3000):
        p = rng.random(60)
        y = rng.random(60) < p + 0.1 * (1 - p)
        groups = {"bins": 1}
        plain.append(metrics.ece(y, p, norm=2, **groups) ** 2)
        free.append(metrics.ece(y, p, norm=2, debias=True, **groups) ** 2)
    # one bin: the gap is the mean of 0.1·(1 − p), 0.05; few estimates fall below 0 and are cut
    error = np.std(free) / math.sqrt(3000)
    assert np.mean(plain) - 0.05**2 > 10 * error
    assert abs(np.mean(free) - 0.05**2) < 5 * error + 0.0005


def test_chance_is_taken_off_every_error_of_several_classes():
    codes, p = classes(800, 4)
    for error in (metrics.top_label_ece, metrics.classwise_ece, metrics.ece):
        for norm in (1, 2):
            debiased = error(codes, p, norm=norm, debias=True)
            assert 0 <= debiased < 0.7 * error(codes, p, norm=norm)
    assert metrics.ece(codes, p, debias=True) == metrics.top_label_ece(codes, p, debias=True)
    each = [metrics.ece(codes == j, p[:, j], norm=2) ** 2 for j in range(4)]
    assert metrics.classwise_ece(codes, p, norm=2) == close(math.sqrt(np.mean(each)))
    tops = metrics.ece(codes == p.argmax(axis=1), p.max(axis=1), norm=2, debias=True)
    assert metrics.top_label_ece(codes, p, norm=2, debias=True) == close(tops)


def test_mean_of_a_folded_normal():
    z = np.random.default_rng(0).standard_normal(400_000)
    for mean, sd in ((0.0, 1.0), (0.3, 0.2), (2.0, 1.0)):
        simulated = np.abs(mean + sd * z).mean()
        assert folded_mean(np.array([mean]), np.array([sd]))[0] == pytest.approx(
            simulated, abs=6e-3
        )
    tiny = folded_mean(np.array([1.0, 0.0]), np.array([1e-300, 0.0]))
    assert tiny.tolist() == [1.0, 0.0]


# --- bins="auto" --------------------------------------------------------------------------------


@given(data=st.one_of(ANY, rows(score=PROBABILITIES, weight=st.just(1.0), max_size=40)))
@example(data=SAME)
@example(data=(np.arange(8) / 8, np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.ones(8)))
@example(data=(np.arange(8) / 8, np.array([1, 1, 1, 1, 0, 0, 0, 0]), np.ones(8)))
def test_the_sweep(data):
    p, y, w = data
    table = ScoreTable.from_arrays(p, y, w, classes=[0, 1])
    starts = sweep_starts(table)
    assert np.diff(starts, append=len(table)).tolist() == naive.sweep(y, p, w)
    rate = np.add.reduceat(table.positive, starts) / np.add.reduceat(table.weight, starts)
    assert (np.diff(rate) >= -1e-12).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_one_choice_of_bins_for_error_and_diagram(weighted):
    p, y, w = drawn(3000, 2, 0.05, weighted)
    curve = cal.diagrams.reliability_curve(y, p, bins="auto", sample_weight=w)
    assert (np.diff(curve.fraction) >= 0).all()
    assert curve.binning == "mass"
    assert 5 < len(curve) < 60
    gaps = np.abs(curve.mean_p - curve.fraction)
    ece = metrics.ece(y, p, bins="auto", sample_weight=w)
    assert ece == close(curve.weight @ gaps / curve.total)
    assert metrics.mce(y, p, bins="auto", sample_weight=w) == close(gaps.max())
    turn = np.random.default_rng(0).permutation(len(p))
    moved = metrics.ece(y[turn], p[turn], bins="auto", sample_weight=None if w is None else w[turn])
    assert moved == close(ece)
    assert metrics.ece(y, p, bins="auto", binning="mass", sample_weight=w) == ece


def test_more_rows_more_bins_up_to_the_stated_most():
    found = [len(sweep_starts(ScoreTable.from_arrays(*drawn(n, 3)[:2]))) for n in (100, 10_000)]
    assert found[0] < found[1] < 200
    apart = ScoreTable.from_arrays(np.arange(5000) / 5000, np.arange(5000) >= 2000)
    assert len(sweep_starts(apart)) == MOST


def test_evaluate_takes_the_bins_of_the_data():
    p, y, w = drawn(900, 4, 0.1, weighted=True)
    e = cal.evaluate(y, p, bins="auto", sample_weight=w, raw=p**2, replicates=100)
    options = {"bins": "auto", "sample_weight": w}
    assert e.after["ece"] == metrics.ece(y, p, **options)
    assert e.after["mce"] == metrics.mce(y, p, **options)
    assert e.before["ece"] == metrics.ece(y, p**2, **options)
    for name in ("ece", "mce"):
        assert e.intervals[name][0] <= e.after[name] <= e.intervals[name][1]
    count = len(cal.diagrams.reliability_curve(y, p, **options))
    assert any(f"over {count} bins of equal weight" in note for note in e.notes)


def test_evaluate_takes_the_bins_of_each_class():
    codes, p = classes(500, 3)
    e = cal.evaluate(codes, p, bins="auto")
    for name in ("top_label_ece", "top_label_mce", "classwise_ece", "classwise_mce"):
        assert e.after[name] == close(getattr(metrics, name)(codes, p, bins="auto"))
    count = len(cal.diagrams.class_reliability(codes, p, bins="auto")["top label"])
    assert any(f"top-label ECE is over {count} bins" in note for note in e.notes)


def test_frames_have_the_same_bins_and_cells_count_as_ties():
    p, y, _ = drawn(4000, 5, 0.1)
    frame = pl.DataFrame({"p": p, "y": y}).lazy()
    options = {"label": "y", "bins": "auto", "level": None}
    exact = cal.evaluate(frame, "p", **options)
    assert exact.after["ece"] == close(metrics.ece(y, p, bins="auto"))
    cells = cal.evaluate(frame, "p", cells=4096, **options)
    assert cells.after["ece"] == pytest.approx(exact.after["ece"], abs=2e-3)
    assert any("bins of equal weight" in note for note in cells.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": "atuo"}, "or \"auto\", but 'atuo' came. Did you mean 'auto'"),
        ({"bins": 0}, "bins must be a whole number of at least 1"),
        ({"bins": True}, "bins must be a whole number of at least 1"),
        ({"bins": 10**18}, "bins must be at most 10,000,000, but 1,000,000,000,000,000,000 came"),
        ({"bins": "auto", "ties": "rows"}, 'ties must be "together" where bins="auto"'),
        ({"debias": True, "ties": "labels"}, 'ties must be "together" beside debias=True'),
        ({"debias": 1}, "debias must be True or False"),
        ({"norm": 3}, "norm must be 1 .mean. or 2"),
        ({"norm": True}, "norm must be 1 .mean. or 2"),
        ({"norm": "max"}, "The largest error of a bin is mce"),
        ({"norm": math.inf}, "The largest error of a bin is mce"),
        ({"weights": "count"}, "Did you mean 'counts'"),
    ],
)
def test_what_is_refused(options, message):
    codes, p = classes(30, 3)
    for error, y, q in (
        (metrics.ece, [0, 1, 1], [0.2, 0.4, 0.9]),
        (metrics.top_label_ece, codes, p),
        (metrics.classwise_ece, codes, p),
    ):
        with pytest.raises(ParameterError, match=message):
            error(y, q, **options)


def test_counts_that_are_not_whole_are_refused():
    with pytest.raises(InputError, match="not whole"):
        metrics.ece([0, 1], [0.2, 0.4], sample_weight=[0.5, 1], debias=True, weights="counts")
