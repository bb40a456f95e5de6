"""The measures against their slow twins, and what they promise about weights, order and tables."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from calibrant import ScoreTable, metrics
from calibrant.errors import CalibrationWarning
from calibrant.metrics import point_measures as windows
from calibrant.metrics.chance import cautious_gap
from strategies import PROBABILITIES, REAL, WHOLE, rows
from twins import metrics as naive

#: weights whose sums are exact, so that a border between groups is where the twin has it
EIGHTHS = st.integers(0, 24).map(lambda k: k / 8)
ANY = st.one_of(
    rows(score=PROBABILITIES, weight=WHOLE, max_size=25),
    rows(score=PROBABILITIES, weight=EIGHTHS, max_size=25),
    rows(score=PROBABILITIES, weight=st.just(1.0), max_size=25),
)
REALS = st.one_of(ANY, rows(score=PROBABILITIES, weight=REAL, max_size=25))
SMALL = st.one_of(
    rows(score=PROBABILITIES, weight=WHOLE, max_size=8),
    rows(score=PROBABILITIES, weight=EIGHTHS, max_size=8),
)
TINY = (np.array([0.0]), np.array([1]), np.array([2.0]))
CERTAIN = (np.array([0.0, 1.0, 1.0]), np.array([0, 1, 1]), np.array([1.0, 1.0, 3.0]))
BORDERS = (np.arange(11) / 10, np.arange(11) % 2, np.ones(11))


def close(value, abs=1e-12):
    return pytest.approx(value, rel=1e-9, abs=abs)


def log_loss_and_its_warning(y, p, w):
    if math.isfinite(naive.log_loss(y, p, w)):
        return metrics.log_loss(y, p, sample_weight=w)
    with pytest.warns(CalibrationWarning, match="infinite"):
        return metrics.log_loss(y, p, sample_weight=w)


@given(
    data=ANY,
    bins=st.integers(1, 12),
    binning=st.sampled_from(["width", "mass"]),
    ties=st.sampled_from(["together", "labels", "rows"]),
)
@example(data=TINY, bins=10, binning="mass", ties="together")
@example(data=CERTAIN, bins=3, binning="mass", ties="labels")
@example(data=BORDERS, bins=10, binning="width", ties="together")
def test_binned_errors(data, bins, binning, ties):
    p, y, w = data
    options = {"bins": bins, "binning": binning, "ties": ties}
    assert metrics.ece(y, p, sample_weight=w, **options) == close(naive.ece(y, p, w, **options))
    assert metrics.mce(y, p, sample_weight=w, **options) == close(naive.mce(y, p, w, **options))


@given(data=REALS)
@example(data=TINY)
@example(data=CERTAIN)
def test_proper_scores(data):
    p, y, w = data
    expected = naive.brier(y, p, w)
    assert metrics.brier(y, p, sample_weight=w) == close(expected)
    assert metrics.brier(y, p, sample_weight=w, normalise="mean_over_classes") == close(expected)
    assert metrics.brier(y, p, sample_weight=w, normalise="sum") == close(2 * expected)
    assert metrics.rmse(y, p, sample_weight=w) == close(math.sqrt(expected))
    loss = log_loss_and_its_warning(y, p, w)
    assert loss == close(naive.log_loss(y, p, w))
    assert not math.isnan(loss)
    clipped = metrics.log_loss(y, p, sample_weight=w, clip=1e-6, base=2)
    assert clipped == close(naive.log_loss(y, p, w, clip=1e-6) / math.log(2))


@given(
    data=st.one_of(
        rows(score=PROBABILITIES, both_classes=True, min_size=2),
        rows(score=PROBABILITIES, weight=REAL, both_classes=True, min_size=2),
    )
)
@example(data=(np.array([0.3, 0.3]), np.array([0, 1]), np.array([1.0, 5.0])))
def test_auc(data):
    p, y, w = data
    assert metrics.auc(y, p, sample_weight=w) == close(naive.auc(y, p, w))


@given(data=REALS)
@example(data=BORDERS)
def test_accuracy(data):
    p, y, w = data
    assert metrics.accuracy(y, p, sample_weight=w) == close(naive.accuracy(y, p, w))


@given(
    data=rows(score=PROBABILITIES, weight=WHOLE, max_size=20),
    window=st.one_of(st.none(), st.integers(1, 60)),
)
@example(data=TINY, window=None)
@example(data=CERTAIN, window=2)
@example(data=BORDERS, window=3)
def test_calbin(data, window):
    p, y, w = data
    value = metrics.calbin(y, p, window=window, sample_weight=w)
    assert value == close(naive.calbin(y, p, w, window))


def test_calbin_in_chunks(monkeypatch):
    """Many chunks, with ties across their borders, equal the twin."""
    monkeypatch.setattr(windows, "CHUNK", 7)
    rng = np.random.default_rng(0)
    p = rng.integers(0, 12, 90) / 12
    y = rng.integers(0, 2, 90)
    assert metrics.calbin(y, p) == close(naive.calbin(y, p))
    assert metrics.calbin(y, p, window=23) == close(naive.calbin(y, p, window=23))


@given(data=ANY, groups=st.integers(2, 12), binning=st.sampled_from(["mass", "width"]))
@example(data=TINY, groups=10, binning="mass")
@example(data=CERTAIN, groups=10, binning="width")
@example(
    data=(np.array([0.0, 0.5, 1.0]), np.array([1, 1, 0]), np.ones(3)), groups=3, binning="mass"
)
@example(data=(np.array([1 - 2.0**-53]), np.array([1]), np.array([3.0])), groups=2, binning="mass")
def test_hosmer_lemeshow(data, groups, binning):
    p, y, w = data
    how = {"bins": groups, "binning": binning, "weights": "counts"}
    found = metrics.hosmer_lemeshow(y, p, replicates=None, sample_weight=w, **how)
    statistic, df, p_value, used = naive.hosmer_lemeshow(y, p, w, groups, binning)
    huge = found.statistic > 1e300  # nearly all of a float's range: the twin says infinite
    assert (math.inf if huge else found.statistic) == close(statistic)
    assert (found.df, found.groups, found.dropped) == (df, used, groups - used)
    assert found.p_value == found.chi2_p_value == close(p_value, abs=1e-9)
    beside = metrics.hosmer_lemeshow(y, p, replicates=5, sample_weight=w, **how)
    assert beside.chi2_p_value == found.chi2_p_value


@given(
    data=rows(score=PROBABILITIES, weight=EIGHTHS, max_size=15),
    benefit=st.one_of(st.integers(-8, 40).map(float), st.just("column")),
    cost=st.one_of(st.integers(-4, 12).map(float), st.just("column")),
    seed=st.integers(0, 99),
)
def test_profit(data, benefit, cost, seed):
    p, y, w = data
    rng = np.random.default_rng(seed)
    b = rng.integers(-4, 9, len(y)) / 2.0 if benefit == "column" else benefit
    c = rng.integers(-4, 9, len(y)) / 4.0 if cost == "column" else cost
    found = metrics.profit(y, p, benefit=b, cost=c, sample_weight=w)
    expected = naive.profit(y.tolist(), p.tolist(), b, c, w.tolist())
    assert (found.profit, found.optimum, found.act_on_all, found.acted) == close(expected)
    assert found.profit <= found.optimum + 1e-9


# --- decompositions -----------------------------------------------------------------------------

LOSSES = pytest.mark.parametrize("loss", ["brier", "log"])


def whole_score(loss, y, p, w):
    return {"brier": naive.brier, "log": naive.log_loss}[loss](y, p, w)


@LOSSES
@given(data=REALS)
@example(data=TINY)
@example(data=CERTAIN)
def test_degroot_fienberg(loss, data):
    p, y, w = data
    parts = metrics.degroot_fienberg(y, p, loss=loss, sample_weight=w)
    assert (parts.calibration, parts.refinement) == close(naive.degroot_fienberg(y, p, w, loss))
    assert parts.score == close(whole_score(loss, y, p, w))


@LOSSES
@given(
    data=ANY,
    bins=st.one_of(st.none(), st.integers(1, 8)),
    binning=st.sampled_from(["width", "mass"]),
)
@example(data=TINY, bins=3, binning="mass")
@example(data=CERTAIN, bins=2, binning="width")
@example(data=(np.array([0.0, 0.0, 0.4]), np.array([1, 0, 0]), np.ones(3)), bins=1, binning="width")
def test_murphy(loss, data, bins, binning):
    p, y, w = data
    parts = metrics.murphy(y, p, loss=loss, bins=bins, binning=binning, sample_weight=w)
    assert parts.score == close(whole_score(loss, y, p, w))
    if ((p < 1e-9) & (p > 0) | (p > 1 - 1e-6) & (p < 1)).any():
        return  # the mean of a group has no precise logarithm as a float
    expected = naive.murphy(y, p, w, loss, bins, binning)
    assert (parts.reliability, parts.resolution, parts.uncertainty) == close(expected)
    if bins is None:
        assert parts.within == 0


@given(
    data=SMALL,
    weights=st.sampled_from(["importance", "counts"]),
    bins=st.one_of(st.none(), st.integers(1, 4)),
    binning=st.sampled_from(["width", "mass"]),
)
@example(data=TINY, weights="importance", bins=None, binning="width")
@example(data=CERTAIN, weights="counts", bins=2, binning="mass")
def test_murphy_without_what_chance_adds(data, weights, bins, binning):
    p, y, w = data
    w = np.ceil(w) if weights == "counts" else w
    how = {"bins": bins, "binning": binning, "sample_weight": w}
    plain = metrics.murphy(y, p, **how)
    parts = metrics.murphy(y, p, debias=True, weights=weights, **how)
    of_groups, of_all = naive.what_chance_adds(y, p, w, weights, bins, binning)
    assert plain.reliability - parts.reliability == close(of_groups)
    assert plain.resolution - parts.resolution == close(of_groups - of_all)
    assert parts.uncertainty - plain.uncertainty == close(of_all)
    assert (parts.score, parts.within) == close((plain.score, plain.within))


@LOSSES
@given(data=SMALL)
@example(data=TINY)
@example(data=CERTAIN)
def test_corp(loss, data):
    p, y, w = data
    parts = metrics.corp(y, p, loss=loss, sample_weight=w)
    found = (parts.miscalibration, parts.discrimination, parts.uncertainty)
    assert found == close(naive.corp(y, p, w, loss))
    assert min(found) >= 0
    assert parts.score == close(whole_score(loss, y, p, w))


@given(data=ANY)
@example(data=TINY)
@example(data=CERTAIN)
def test_flach_matsubara(data):
    p, y, w = data
    parts = metrics.flach_matsubara(y, p, sample_weight=w)
    found = (parts.calibration, parts.ordering, parts.refinement)
    assert found == close(naive.flach_matsubara(y, p, w))
    assert min(found) >= 0
    assert parts.score == close(naive.brier(y, p, w))
    assert metrics.calibration_loss(y, p, sample_weight=w) == parts.calibration
    whole = metrics.corp(y, p, sample_weight=w)
    assert parts.calibration + parts.ordering == close(whole.miscalibration)


def test_one_negligible_weight_keeps_the_log_decomposition_finite():
    """The frequency rounds to 1, yet the block holds a negative."""
    y, p, w = [1, 0, 1], [0.2, 0.6, 0.9], [1.0, 1e-40, 1.0]
    parts = metrics.corp(y, p, loss="log", sample_weight=w)
    assert parts.score == close(metrics.log_loss(y, p, sample_weight=w))
    assert parts.miscalibration == close(-(math.log(0.2) + math.log(0.9)) / 2)


# --- promises -----------------------------------------------------------------------------------

EVERY = {
    "ece": metrics.ece,
    "ece of mass": lambda *a, **k: metrics.ece(*a, binning="mass", **k),
    "ece, ties by label": lambda *a, **k: metrics.ece(*a, binning="mass", ties="labels", **k),
    "mce of mass": lambda *a, **k: metrics.mce(*a, binning="mass", **k),
    "brier": metrics.brier,
    "rmse": metrics.rmse,
    "log_loss": lambda *a, **k: metrics.log_loss(*a, clip=1e-9, **k),
    "accuracy": metrics.accuracy,
    "calbin": metrics.calbin,
    "hosmer_lemeshow C": partial(metrics.hosmer_lemeshow, weights="counts"),
    "hosmer_lemeshow H": partial(metrics.hosmer_lemeshow, binning="width", weights="counts"),
    "profit": lambda y, p=None, **k: metrics.profit(y, p, benefit=3.0, cost=1.0, **k),
    "degroot_fienberg": metrics.degroot_fienberg,
    "murphy": lambda *a, **k: metrics.murphy(*a, bins=4, loss="log", **k),
    "corp": lambda *a, **k: metrics.corp(*a, loss="log", **k),
    "flach_matsubara": metrics.flach_matsubara,
    "evaluate": metrics.evaluate,
}
MEASURES = pytest.mark.parametrize("measure", EVERY.values(), ids=EVERY.keys())
REPEATED = rows(score=PROBABILITIES, weight=WHOLE)


@MEASURES
@given(data=REPEATED)
def test_whole_weights_are_repeated_rows(measure, data):
    p, y, w = data
    again = np.repeat(np.arange(len(y)), w.astype(int))
    weighted, repeated = measure(y, p, sample_weight=w), measure(y[again], p[again])
    if measure is not metrics.evaluate:
        assert weighted == repeated
    else:  # the wording of a note may count cases or weights
        assert weighted.after == repeated.after


@MEASURES
@given(data=REPEATED, seed=st.integers(0, 99))
def test_order_of_rows_and_zero_weights_do_not_matter(measure, data, seed):
    p, y, w = data
    order = np.random.default_rng(seed).permutation(len(y))
    present = w > 0
    value = measure(y, p, sample_weight=w)
    assert measure(y[order], p[order], sample_weight=w[order]) == value
    assert measure(y[present], p[present], sample_weight=w[present]) == value


@MEASURES
@given(data=REPEATED)
def test_a_table_is_as_good_as_its_rows(measure, data):
    p, y, w = data
    assert measure(ScoreTable.from_arrays(p, y, w)) == measure(y, p, sample_weight=w)


SCALE_FREE = [
    name for name in EVERY if not name.startswith(("calbin", "hosmer", "profit", "evaluate"))
]


@pytest.mark.parametrize("name", SCALE_FREE)
@given(data=rows(score=PROBABILITIES, weight=st.floats(0.1, 9.9)), factor=st.floats(0.01, 100))
def test_the_scale_of_weights_does_not_matter(name, data, factor):
    p, y, w = data
    w = w + 1e-3 * math.pi  # not whole before or after scaling
    one, other = EVERY[name](y, p, sample_weight=w), EVERY[name](y, p, sample_weight=w * factor)
    if not isinstance(one, float):
        one, other = one.score, other.score
    assert one == close(other, abs=1e-10)


@given(data=rows(score=PROBABILITIES, weight=WHOLE, both_classes=True, min_size=2))
def test_the_other_class_and_two_columns(data):
    """P(the other class) against the other label is the same forecast."""
    p, y, w = data
    pair = np.column_stack((1 - p, p))
    words = np.array(["no", "yes"])[y]
    for measure in (metrics.brier, metrics.auc, metrics.rmse, metrics.calibration_loss):
        value = measure(y, p, sample_weight=w)
        assert measure(words, pair, sample_weight=w) == value
        assert measure(words, p, sample_weight=w, pos_label="yes") == value
        mirrored = measure(words, pair, sample_weight=w, pos_label="no")
        assert mirrored == measure(1 - y, 1 - p, sample_weight=w)


def test_a_gap_of_very_many_standard_errors():
    gap, error = np.array([-1.0, 0.5]), np.array([1e-160, 0.0])
    assert cautious_gap(gap, error).tolist() == [1.0, 0.5]
