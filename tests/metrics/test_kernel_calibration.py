"""The kernel calibration error and its test: against slow twins and against all labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.stats import kstest

from calibrant import ScoreTable, metrics
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.errors import InputError, ParameterError
from calibrant.metrics import kernel_errors as kernel_pairs
from strategies import PROBABILITIES, REAL, WHOLE, costly, rows
from studies import experiment
from twins import tests as naive

WIDTH = st.one_of(st.none(), st.sampled_from([1e-9, 0.1, 1.0, 50.0]))


def close(value, abs=1e-11):
    return pytest.approx(value, rel=1e-9, abs=abs)


def both_columns(p):
    return np.column_stack((1 - p, p))


def several(n, k, seed=0, wrong=0.0):
    """Right predictions and their labels; ``wrong`` of the labels are of class 0 instead."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    y = (p.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    return np.where(rng.random(n) < wrong, 0, y), p


@st.composite
def distributions(draw, most=8, weight=REAL):
    k, n = draw(st.integers(3, 5)), draw(st.integers(2, most))
    parts = st.lists(st.integers(0, 6), min_size=k, max_size=k).filter(sum)
    p = [np.array(row) / sum(row) for row in draw(st.lists(parts, min_size=n, max_size=n))]
    codes = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    w = draw(st.lists(weight, min_size=n, max_size=n))
    assume(sum(v > 0 for v in w) > 1)
    return np.array(codes), np.array(p), np.array(w)


# --- the value ----------------------------------------------------------------------------------


@given(data=rows(score=PROBABILITIES, weight=REAL, min_size=2, max_size=12), width=WIDTH)
@example(
    data=(np.array([5e-324, 1e-300, 1.0]), np.array([1, 0, 0]), np.array([1.0, 2.0, 3.0])),
    width=None,
)
def test_two_classes(data, width):
    p, y, w = data
    kept = w > 0
    assume(kept.sum() > 1)
    q = both_columns(p[kept])
    # 1 − p may round two predictions to one: the twin takes distances from p itself
    places = np.column_stack((p[kept], -p[kept]))
    own = naive.median_distance(places) if width is None else width
    assume(own > 1e-12)
    value = metrics.skce(y, p, sample_weight=w, bandwidth=width)
    assert value == close(naive.skce(y[kept], q, w[kept], own, places))
    assert metrics.skce(y, p, sample_weight=7 * w, bandwidth=width) == close(value)
    if width is not None and width > 1e-6:  # 1 − p is rounded
        mirrored = metrics.skce(1 - y, 1 - p, sample_weight=w, bandwidth=width)
        assert mirrored == close(value, abs=1e-9)


@given(data=distributions(), width=WIDTH)
def test_several_classes(data, width):
    codes, p, w = data
    kept, classes = w > 0, range(p.shape[1])
    own = naive.median_distance(p[kept]) if width is None else width
    value = metrics.skce(codes, p, sample_weight=w, bandwidth=width, classes=classes)
    assert value == close(naive.skce(codes[kept], p[kept], w[kept], own))


def test_two_columns_are_two_classes():
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    matrix = ScoreMatrix(both_columns(p), y, None)
    assert metrics.skce(matrix) == close(metrics.skce(y, p))
    assert metrics.skce(y, both_columns(p)) == close(metrics.skce(y, p))
    found, other = metrics.skce_test(matrix), metrics.skce_test(y, p)
    assert found.p_value == pytest.approx(other.p_value, abs=0.08)
    assert found.quantile == pytest.approx(other.quantile, rel=0.25)


@given(data=distributions(most=6, weight=WHOLE))
def test_counts_are_repeated_rows_of_several_classes(data):
    codes, p, w = data
    times = w.astype(int)
    options = {"classes": range(p.shape[1]), "weights": "counts"}
    counted = metrics.skce_test(codes, p, sample_weight=w, replicates=20, **options)
    repeated = metrics.skce_test(
        np.repeat(codes, times), np.repeat(p, times, axis=0), replicates=20, **options
    )
    assert counted.value == close(repeated.value)
    assert counted.p_value == repeated.p_value


@given(data=rows(score=PROBABILITIES, weight=WHOLE, min_size=2, max_size=12))
def test_counts_are_repeated_rows_of_two_classes(data):
    p, y, w = data
    times = w.astype(int)
    assume(times.sum() > 1)
    options = {"weights": "counts", "replicates": 20}
    counted = metrics.skce_test(y, p, sample_weight=w, **options)
    order = np.random.default_rng(0).permutation(times.sum())
    y2, p2 = np.repeat(y, times)[order], np.repeat(p, times)[order]
    assert metrics.skce_test(y2, p2, classes=[0, 1], **options) == counted
    table = ScoreTable.from_arrays(p2, y2, classes=[0, 1])
    assert metrics.skce_test(table, **options) == counted


def test_order_plays_no_part_while_all_pairs_are_taken():
    y, p = several(300, 4)
    turn = np.random.default_rng(0).permutation(300)
    assert metrics.skce(y[turn], p[turn]) == close(metrics.skce(y, p))


def test_the_value_is_unbiased_for_right_predictions():
    values = [metrics.skce(*several(60, 3, seed), classes=range(3)) for seed in range(400)]
    assert abs(np.mean(values)) < 4 * np.std(values) / math.sqrt(len(values))
    assert min(values) < 0


# --- blocks -------------------------------------------------------------------------------------


def test_blocks_hold_every_row_once_and_their_mean_is_that_of_their_pairs(monkeypatch):
    monkeypatch.setattr(kernel_pairs, "WORK", 100.0 * 40)
    monkeypatch.setattr(kernel_pairs, "SMALLEST", 2)
    y, p = several(100, 3, wrong=0.4)
    pairs = kernel_pairs.MatrixPairs(
        ScoreMatrix(p, y, None), "importance", 0.5, np.random.default_rng(4)
    )
    assert sorted(np.concatenate(pairs._blocks)) == list(range(100))
    assert max(map(len, pairs._blocks)) <= 40
    parts = [(naive.skce(y[b], p[b], np.ones(len(b)), 0.5), len(b)) for b in pairs._blocks]
    mean = sum(v * n * (n - 1) for v, n in parts) / sum(n * (n - 1) for _, n in parts)
    assert pairs.value() == close(mean)
    assert metrics.skce_test(y, p).p_value < 0.05
    right = metrics.skce_test(*several(100, 3))
    assert right.p_value > 0.05


# --- the test -----------------------------------------------------------------------------------


@costly
@given(data=distributions(most=4, weight=st.floats(0.2, 3.0)))
def test_the_value_of_all_labels_that_could_have_come(data):
    """R = 4000 redrawings against all kⁿ: within five standard errors."""
    codes, p, w = data
    result = metrics.skce_test(
        codes, p, sample_weight=w, classes=range(p.shape[1]), replicates=4000
    )
    chance, value = np.array(naive.all_skce(p, w, result.bandwidth)).T
    seen = naive.skce(codes, p, w, result.bandwidth)
    assert result.value == close(seen)
    if (p[np.arange(len(p)), codes] == 0).any():
        assert result.p_value == 0
        return
    beyond = chance[value >= seen - 1e-9].sum()
    noise = math.sqrt(beyond * max(1 - beyond, 0.0) / 4000)
    assert result.p_value == pytest.approx(beyond, abs=5 * noise + 1e-3)


@costly
@given(
    p=st.lists(PROBABILITIES, min_size=2, max_size=5),
    bits=st.integers(0, 31),
    w=st.lists(st.floats(0.2, 3.0), min_size=5, max_size=5),
)
def test_the_value_of_all_labels_of_two_classes(p, bits, w):
    assume(all(p.count(q) <= 2 for q in p))  # more tied rows of different weight are approximated
    p, y = np.array(p), np.array([bits >> i & 1 for i in range(len(p))])
    w = np.array(w[: len(p)])
    result = metrics.skce_test(y, p, sample_weight=w, classes=[0, 1], replicates=4000)
    assume(result.bandwidth > 1e-12)
    chance, value = np.array(naive.all_skce(both_columns(p), w, result.bandwidth)).T
    if ((p == 0) & (y == 1)).any() or ((p == 1) & (y == 0)).any():
        assert result.p_value == 0
        return
    near = 1e-6 * np.abs(value).max()
    below, above = (chance[value >= result.value + by].sum() for by in (near, -near - 1e-15))
    noise = math.sqrt(max(above * (1 - below), 0.0) / 4000)
    assert below - 5 * noise - 1e-3 <= result.p_value <= above + 5 * noise + 1e-3


@pytest.mark.full
@pytest.mark.parametrize("k", [2, 6])
def test_p_values_of_right_predictions_are_uniform(k):
    values = [
        metrics.skce_test(
            *several(40, k, seed), classes=range(k), replicates=99, random_state=seed
        ).p_value
        for seed in range(300)
    ]
    assert kstest(values, "uniform").pvalue > 1e-3


@pytest.mark.full
def test_errors_of_the_whole_distribution_are_found():
    """Two classes change places: neither the top label nor the test of chance shows it alone."""
    y, p = several(1500, 4, 3)
    assert metrics.skce_test(y, p).p_value > 0.05
    swapped = np.where(y == 2, 3, np.where(y == 3, 2, y))
    assert metrics.skce_test(swapped, p).p_value < 0.01


def test_the_seed_decides():
    y, p = several(80, 3)
    assert metrics.skce_test(y, p, random_state=4) == metrics.skce_test(y, p, random_state=4)
    assert (
        metrics.skce_test(y, p, random_state=4).quantile
        != metrics.skce_test(y, p, random_state=5).quantile
    )


def test_all_predictions_alike():
    same = np.full((20, 3), 1 / 3)
    codes = np.arange(20) % 3
    result = metrics.skce_test(codes, same)
    assert (result.bandwidth, result.p_value > 0.3) == (1.0, True)
    assert metrics.skce_test([0, 1] * 10, np.full(20, 0.5)).bandwidth == 1.0


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0.0}, "bandwidth must be a finite number above 0"),
        ({"bandwidth": "median"}, "bandwidth must be a finite number above 0"),
        ({"weights": "row"}, "weights must be"),
        ({"replicates": 0}, "replicates must be a whole number"),
        ({"level": 1.0}, "level must be"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_bad_options(options, message):
    for y, p in (several(20, 3), ([0, 1, 1], [0.2, 0.4, 0.9])):
        with pytest.raises(ParameterError, match=message):
            metrics.skce_test(y, p, **options)


def test_bad_rows():
    y, p = several(20, 3)
    with pytest.raises(InputError, match="two rows with weight"):
        metrics.skce(y[:1], p[:1], classes=range(3))
    with pytest.raises(InputError, match="two rows with weight"):
        metrics.skce([1, 0], [0.2, 0.3], sample_weight=[1, 0])
    with pytest.raises(InputError, match="not whole"):
        metrics.skce(y, p, sample_weight=np.full(20, 0.5), weights="counts")
    with pytest.raises(InputError, match="repeats rows"):
        metrics.skce(y, p, sample_weight=np.full(20, 1e7), weights="counts")
    with pytest.raises(InputError, match="sum"):
        metrics.skce(y, 2 * p)
    with pytest.raises(InputError, match="pos_label"):
        metrics.skce(y, p, pos_label=1)


# --- the study ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study(root):
    return experiment(root, "kernel_tests")


def test_a_small_study_runs_from_data_to_page(study):
    right = study.of_classes(6, sizes=(50,))
    page = study.page(6, 1.0, right, study.of_classes(2, sizes=(50,), sharpened=0.5))
    for kind in study.SIMPLEX:
        assert f"| {kind} | 10 |" in page
    assert np.mean(list(right.values())) < 0.25


@pytest.mark.slow
def test_false_alarms_of_several_classes_are_as_many_as_stated(study):
    """300 simulations each: 5 %, or less where few values are possible."""
    noise = 4 * math.sqrt(0.05 * 0.95 / 300)
    for case, rate in study.of_classes(300, sizes=(50, 200), seed=77).items():
        assert rate <= 0.05 + noise, case
