"""Known values of the measures, other libraries' values, and what the measures refuse."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

from calibrant import ScoreTable, metrics
from calibrant.errors import CalibrationWarning, InputError, ParameterError

# --- the authors' programs ----------------------------------------------------------------------


def golden(shared, name):
    with gzip.open(shared / "golden" / f"measures_{name}.json.gz") as file:
        content = json.load(file)
    return [
        (np.array(content["input"][case]["z"]), np.array(content["input"][case]["p"]), measured)
        for case, measured in content["output"].items()
        if "error" not in measured
    ]


@pytest.mark.parametrize(
    ("program", "ties", "count"), [("octave", "labels", 12), ("R", "rows", 8)], ids=str
)
def test_the_authors_binned_errors(shared, program, ties, count):
    """The Matlab program sorts ties by label, negatives first; the R program keeps the rows'
    order."""
    cases = golden(shared, program)
    assert len(cases) == count
    for y, p, measured in cases:
        options = {"binning": "mass", "ties": ties}
        assert metrics.ece(y, p, **options) == pytest.approx(measured["ECE"], abs=1e-12)
        assert metrics.mce(y, p, **options) == pytest.approx(measured["MCE"], abs=1e-12)


def test_ties_by_row_are_neither_those_by_label_nor_of_a_table(shared):
    differ = []
    for y, p, _ in golden(shared, "R"):
        by_row, by_label, older = (
            metrics.ece(y, p, binning="mass", ties=ties) for ties in ("rows", "labels", "authors")
        )
        differ.append(abs(by_row - by_label) > 1e-3)
        assert by_label == older
    assert any(differ)
    table = ScoreTable.from_arrays(p, y)
    with pytest.raises(InputError, match='ties="rows" needs the rows in their order'):
        metrics.ece(table, binning="mass", ties="rows")
    assert metrics.ece(table, ties="rows") == pytest.approx(metrics.ece(y, p))  # equal width


@pytest.mark.parametrize("program", ["R", "octave"])
def test_the_authors_other_measures(shared, program):
    for y, p, measured in golden(shared, program):
        area = metrics.auc(y, p)
        assert metrics.rmse(y, p) == pytest.approx(measured["RMSE"], abs=1e-9)
        assert metrics.accuracy(y, p) == pytest.approx(measured["ACC"], abs=1e-9)
        assert max(area, 1 - area) == pytest.approx(measured["AUC"], abs=1e-9)


def test_ties_by_label_inflate_the_error_of_isotonic_predictions(shared):
    """The published .35 for isotonic regression on the simulated data is honestly .04."""
    y, p, measured = golden(shared, "octave")[0]
    assert measured["ECE"] == pytest.approx(0.347, abs=1e-3)
    assert metrics.ece(y, p, binning="mass") == pytest.approx(0.04, abs=0.01)


# --- scikit-learn -------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [2, 16])
def test_agreement_with_scikit_learn(weighted, decimals):
    rng = np.random.default_rng(3)
    p = np.clip(rng.beta(2, 3, 400).round(decimals), 1e-6, 1 - 1e-6)
    y = (rng.random(400) < p**1.3).astype(int)
    w = rng.gamma(1.0, 1.0, 400) if weighted else None
    assert metrics.brier(y, p, sample_weight=w) == pytest.approx(
        brier_score_loss(y, p, sample_weight=w), rel=1e-12
    )
    assert metrics.log_loss(y, p, sample_weight=w) == pytest.approx(
        sklearn_log_loss(y, p, sample_weight=w), rel=1e-12
    )
    assert metrics.auc(y, p, sample_weight=w) == pytest.approx(
        roc_auc_score(y, p, sample_weight=w), rel=1e-12
    )


# --- known values -------------------------------------------------------------------------------


def test_bins_are_closed_on_the_left_and_the_last_on_both_sides():
    p, y = [0.0, 0.49, 0.5, 1.0], [0, 0, 1, 1]
    assert metrics.ece(y, p, bins=2) == pytest.approx((0.49 + 0.5) / 4)
    assert metrics.mce(y, p, bins=2) == pytest.approx(0.25)


def test_the_first_groups_of_equal_mass_are_the_larger_ones():
    p, y = [0.1, 0.2, 0.3], [0, 1, 1]
    assert metrics.mce(y, p, bins=2, binning="mass") == pytest.approx(0.7)  # {.1, .2}, {.3}


def test_positional_options_follow_the_documented_order():
    y, p, w = [0, 1, 1, 0], [0.2, 0.2, 0.9, 0.9], [1, 2, 1, 1]
    named = metrics.ece(y, p, bins=3, binning="mass", ties="labels", sample_weight=w)
    assert metrics.ece(y, p, bins=3, binning="mass", ties="authors", sample_weight=w) == named
    acted = metrics.profit(y, p, benefit=2, cost=1, sample_weight=w)
    assert acted == metrics.profit(ScoreTable.from_arrays(p, y, w), benefit=2, cost=1)


def test_brier_of_a_certain_mistake():
    assert metrics.brier([0], [1.0]) == 1.0
    assert metrics.brier([0], [1.0], normalise="sum") == 2.0


def test_log_loss_counts_who_made_it_infinite():
    y, p = [1, 1, 0, 1, 0], [0.0, 0.0, 1.0, 0.5, 0.5]
    with pytest.warns(CalibrationWarning, match="2 positives were given probability 0 and 1 neg"):
        assert metrics.log_loss(y, p) == math.inf
    with pytest.warns(CalibrationWarning, match="positives of total weight 2.5 were given"):
        assert metrics.log_loss(y, p, sample_weight=[2.5, 0, 0, 1, 1]) == math.inf
    assert metrics.log_loss(y, p, sample_weight=[0, 0, 0, 1, 1]) == pytest.approx(math.log(2))
    assert metrics.log_loss([0, 1], [0.0, 1.0]) == 0.0


def test_log_loss_of_a_tiny_probability_is_not_rounded_away():
    assert metrics.log_loss([0], [1e-20]) == pytest.approx(1e-20, rel=1e-12, abs=0)


def test_auc_with_weights_of_very_different_size():
    y, p = [0, 1, 0, 1], [0.1, 0.4, 0.4, 0.9]
    for tiny, huge in ((1e-300, 1e100), (5e-324, 1.0), (1e100, 1e-160)):
        w = [tiny if label else huge for label in y]
        assert metrics.auc(y, p, sample_weight=w) == pytest.approx(0.875, rel=1e-9)


def test_calbin_window_of_100_and_window_beyond_the_data():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.integers(0, 2, 300)
    assert metrics.calbin(y, p, window=100) != metrics.calbin(y, p)
    whole = np.abs(p - y.mean()).mean()
    assert metrics.calbin(y, p, window=300) == pytest.approx(whole)
    assert metrics.calbin(y, p, window=10**6) == metrics.calbin(y, p, window=300)


def test_hosmer_lemeshow_degrees_of_freedom():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < p).astype(int)
    held_out, fitted = (metrics.hosmer_lemeshow(y, p, fitted=f) for f in (False, True))
    assert (held_out.df, fitted.df) == (10, 8)
    assert held_out.statistic == fitted.statistic
    assert fitted.p_value == fitted.chi2_p_value < held_out.chi2_p_value
    tied = metrics.hosmer_lemeshow([0, 1, 1], [0.3, 0.3, 0.3])
    assert (tied.df, tied.groups, tied.dropped) == (1, 1, 9)
    with pytest.raises(InputError, match="at least 3 groups"):
        metrics.hosmer_lemeshow([0, 1, 1], [0.3, 0.3, 0.3], fitted=True)


@pytest.mark.full
@pytest.mark.parametrize("binning", ["mass", "width"])
def test_hosmer_lemeshow_p_values_are_uniform_for_right_probabilities(binning):
    rng = np.random.default_rng(1)
    values = []
    for _ in range(400):
        p = rng.uniform(0.05, 0.95, 600)
        values.append(metrics.hosmer_lemeshow(rng.random(600) < p, p, binning=binning).p_value)
    assert np.quantile(values, [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.07)


def test_hosmer_lemeshow_of_impossible_and_certain_events():
    impossible = metrics.hosmer_lemeshow([1, 0, 1], [0.0, 0.4, 0.6], bins=3)
    assert (impossible.statistic, impossible.p_value) == (math.inf, 0.0)
    certain = metrics.hosmer_lemeshow([0, 1], [0.0, 1.0])
    assert (certain.statistic, certain.df, certain.p_value, certain.dropped) == (0.0, 0, 1.0, 10)


def test_profit_of_the_best_and_of_everyone():
    y, p = [1, 0, 0, 1], [0.9, 0.2, 0.6, 0.1]
    result = metrics.profit(y, p, benefit=10.0, cost=4.0)
    assert result == metrics.decisions.Profit(2.0, 12.0, 4.0, 2.0)
    rows = metrics.profit(y, p, benefit=[10.0] * 4, cost=[4.0, 4.0, 7.0, 4.0])
    assert rows == metrics.decisions.Profit(6.0, 12.0, 1.0, 1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_debiased_murphy_is_right_on_average(weighted):
    """Sixty rows at five predictions, of which the truth is known."""
    rng = np.random.default_rng(4)
    p, truth = np.array([0.1, 0.3, 0.5, 0.7, 0.9]), np.array([0.2, 0.3, 0.4, 0.7, 0.8])
    found = {False: [], True: []}
    for _ in range(1500):
        at = rng.integers(5, size=60)
        y, w = rng.random(60) < truth[at], rng.uniform(0.5, 2.0, 60) if weighted else None
        for debias, values in found.items():
            parts = metrics.murphy(y, p[at], debias=debias, sample_weight=w)
            values.append((parts.reliability, parts.resolution, parts.uncertainty))
    mean = truth.mean()
    right = ((truth - p) ** 2).mean(), ((truth - mean) ** 2).mean(), mean * (1 - mean)
    plain, debiased = (np.array(found[debias]) for debias in (False, True))
    noise = debiased.std(axis=0) / math.sqrt(1500)
    assert (np.abs(debiased.mean(axis=0) - right) < 4 * noise).all()
    assert (np.abs(plain.mean(axis=0) - right)[:2] > 8 * noise[:2]).all()


def test_perfect_predictions_have_no_miscalibration():
    y, p = [0, 1, 0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5, 1.0, 1.0]
    assert metrics.corp(y, p).miscalibration == 0
    assert metrics.calibration_loss(y, p) == 0
    assert metrics.degroot_fienberg(y, p, loss="log").calibration == 0


def test_binned_parts_say_what_the_bins_hide():
    y, p = [0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]
    coarse, fine = metrics.murphy(y, p, bins=2), metrics.murphy(y, p)
    assert coarse.score == pytest.approx(fine.score)
    assert coarse.within != 0
    assert fine.within == 0


# --- refusals -----------------------------------------------------------------------------------

#: they take one column for each class or label, and have refusals of their own
ONLY_SEVERAL = (
    *("top_label_ece", "top_label_mce", "classwise_ece", "classwise_mce"),
    "multilabel_measures",
)
LEFT_OUT = ("profit", "net_benefit", "loss_difference", "multicalibration", *ONLY_SEVERAL)
CALLS = {
    name: getattr(metrics, name)
    for name in metrics.__all__
    if name.islower() and name not in LEFT_OUT
} | {
    "multicalibration": lambda y, p=None, **o: metrics.multicalibration(
        y, p, features=np.arange(400.0)[:, None], **o
    ),
    "profit": lambda y, p=None, **options: metrics.profit(y, p, benefit=2.0, cost=1.0, **options),
    "net_benefit": lambda y, p=None, **o: metrics.net_benefit(y, p, threshold=0.3, **o),
}
EACH = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
Y, P = np.array([0, 1] * 200), np.linspace(0.01, 0.99, 400)


def spoilt(column, row, value):
    copy = np.array(column, dtype=float)
    copy[row] = value
    return copy


REFUSED = {
    "NaN": (Y, spoilt(P, [17, 30, 31], np.nan), {}, r"3 of 400 are NaN \(first at row 17\)"),
    "infinity": (Y, spoilt(P, 5, np.inf), {}, r"1 of 400 is infinite \(first at row 5\)"),
    "soft labels": (spoilt(Y, 3, 0.7), P, {}, r"soft labels.*0.7 at row 3"),
    "probabilities first": (P, Y, {}, "soft labels"),
    "NaN labels": (spoilt(Y, 8, np.nan), P, {}, "first at row 8"),
    "percentages": (Y, P * 100, {}, r"p must be probabilities in \[0, 1\].*Divide percentages"),
    "negative": (Y, spoilt(P, 2, -0.1), {}, r"row 2: -0.1"),
    "short": (Y[:399], P, {}, "y has 399 and p has 400"),
    "empty": ([], [], {}, "at least one row"),
    "negative weights": (Y, P, {"sample_weight": spoilt(P, 9, -1.0)}, "first at row 9"),
    "NaN weights": (Y, P, {"sample_weight": spoilt(P, 9, np.nan)}, "first at row 9"),
    "short weights": (Y, P, {"sample_weight": P[:399]}, "sample_weight has 399"),
    "no weight": (Y, P, {"sample_weight": P * 0}, "all 400 are zero"),
    "three classes": (np.arange(400) % 3, P, {}, "at least three"),
    "three columns": (np.where(Y == 1, "b", "a"), np.full((400, 3), 1 / 3), {}, "3 columns"),
    "two wild columns": (Y, np.ones((400, 2)), {}, "rows sum to 1"),
    "words": (Y, ["a"] * 400, {}, "p must be numbers"),
    "one unknown class": (["yes"] * 400, P, {}, "only one class"),
    "a foreign positive": (Y, P, {"pos_label": 7}, "pos_label must be one of"),
    "no probabilities": (Y, None, {}, "p must be given"),
    "a table and p": (ScoreTable.from_arrays(P, Y), P, {}, "p came as well"),
    "a table and weights": (ScoreTable.from_arrays(P, Y), None, {"sample_weight": P}, "as well"),
    "a table and a label": (ScoreTable.from_arrays(P, Y), None, {"pos_label": 1}, "as well"),
    "a table of margins": (ScoreTable.from_arrays(P * 9 - 4, Y), None, {}, "from -3.91 to 4.91"),
    "an empty table": (ScoreTable.empty(), None, {}, "empty"),
}


@EACH
@pytest.mark.parametrize("bad", REFUSED.values(), ids=REFUSED.keys())
def test_bad_input_is_refused_with_a_reason(call, bad):
    y, p, options, message = bad
    if call is CALLS["multicalibration"] and isinstance(y, ScoreTable):
        message = "features belong to rows"
    with pytest.raises(InputError, match=message):
        call(y, p, **options)


WRONG = [
    (metrics.ece, {"bins": 0}, "bins must be a whole number of at least 1"),
    (metrics.ece, {"bins": 2.5}, "whole number"),
    (metrics.ece, {"bins": True}, "whole number"),
    (
        metrics.mce,
        {"binning": "quantile"},
        "binning must be 'width' or 'mass', but 'quantile' came",
    ),
    (metrics.ece, {"ties": None}, "ties must be 'together' or 'labels'"),
    (metrics.brier, {"normalise": "mean"}, "'binary' or 'sum' or 'mean_over_classes'"),
    (metrics.log_loss, {"base": 1}, "base must be a finite number above 1"),
    (metrics.log_loss, {"base": math.inf}, "finite"),
    (metrics.log_loss, {"base": math.nan}, "finite"),
    (metrics.log_loss, {"clip": 0.5}, "clip must be a finite number above 0 and below 0.5"),
    (metrics.log_loss, {"clip": "eps"}, "clip must be"),
    (metrics.calbin, {"window": 0}, "window must be"),
    (metrics.hosmer_lemeshow, {"bins": 1}, "bins must be"),
    (metrics.hosmer_lemeshow, {"binning": "c"}, "binning must be 'width' or 'mass'"),
    (metrics.murphy, {"bins": -1}, "bins must be"),
    (metrics.murphy, {"binning": "x"}, "binning must be"),
    (metrics.degroot_fienberg, {"loss": "hinge"}, "loss must be 'brier' or 'log'"),
    (metrics.murphy, {"loss": "hinge"}, "loss must be"),
    (metrics.murphy, {"loss": "log", "debias": True}, 'loss must be "brier" beside debias=True'),
    (metrics.murphy, {"debias": 1}, "debias must be True or False"),
    (metrics.corp, {"loss": "hinge"}, "loss must be"),
    (metrics.evaluate, {"bins": 0}, "bins must be"),
    (metrics.profit, {"cost": 1.0}, "benefit must be given"),
    (metrics.profit, {"benefit": 1.0}, "cost must be given"),
]


@pytest.mark.parametrize(("call", "options", "message"), WRONG)
def test_bad_options_are_refused_by_name(call, options, message):
    with pytest.raises(ParameterError, match=message):
        call(Y, P, **options)


def test_auc_needs_both_classes():
    for y, word in (([1, 1], "positives"), ([0, 0], "negatives")):
        with pytest.raises(InputError, match=f"both classes, but only {word}"):
            metrics.auc(y, [0.2, 0.4])
    with pytest.raises(InputError, match="only positives"):
        metrics.auc([0, 1], [0.2, 0.4], sample_weight=[0, 1])


def test_calbin_refuses_real_weights():
    with pytest.raises(InputError, match="whole weights"):
        metrics.calbin([0, 1], [0.2, 0.4], sample_weight=[1.0, 0.5])


@pytest.mark.parametrize(
    ("benefit", "message"),
    [
        (np.ones(399), "y has 400 and benefit has 399"),
        (math.nan, "benefit must be finite"),
        ("much", "benefit must be numbers"),
        (np.ones((400, 2)), "benefit must be 1-d"),
    ],
)
def test_profit_refuses_bad_amounts(benefit, message):
    with pytest.raises(InputError, match=message):
        metrics.profit(Y, P, benefit=benefit, cost=1.0)


def test_profit_per_row_needs_rows():
    with pytest.raises(InputError, match="no longer knows its rows"):
        metrics.profit(ScoreTable.from_arrays(P, Y), benefit=np.ones(400), cost=1.0)


# --- importing ----------------------------------------------------------------------------------


def test_measures_import_nothing_heavy():
    code = (
        "import sys; from calibrant import metrics; metrics.evaluate([0, 1], [0.2, 0.7]);"
        "heavy = {'sklearn', 'numba', 'pandas', 'matplotlib', 'duckdb', 'rich'} & set(sys.modules);"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
