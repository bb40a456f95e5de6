"""Measures of several classes and of several labels: twins, promises, refusals, and looks."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from sklearn.metrics import accuracy_score, brier_score_loss, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

from calibrant import metrics
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.diagrams.curve import reliability_curve
from calibrant.diagrams.draw.reliability import class_diagram, panel_diagram
from calibrant.diagrams.panels import class_reliability
from calibrant.errors import CalibrationWarning, InputError, ParameterError
from calibrant.metrics import multilabel
from calibrant.metrics import point_measures as calbin_windows
from calibrant.metrics.measures import CLASS_MEASURES
from strategies import PROBABILITIES
from twins import metrics as binary
from twins import multiclass as naive

EIGHTHS = st.integers(0, 24).map(lambda k: k / 8)
WHOLE = st.integers(0, 3).map(float)


@st.composite
def matrices(draw, weight=WHOLE, max_size=20, all_classes=False, untied=False):
    """(codes, distributions, weights): ties, zeros, classes that do not come."""
    k = draw(st.integers(3, 5))
    n = draw(st.integers(k if all_classes else 1, max_size))
    entries = st.one_of(st.integers(0, 4), st.floats(1e-6, 4.0))
    row = st.lists(entries, min_size=k, max_size=k)
    raw = np.array(draw(st.lists(row, min_size=n, max_size=n)), dtype=float)
    raw[raw.sum(axis=1) == 0, 0] = 1.0
    p = raw / raw.sum(axis=1, keepdims=True)
    codes = np.array(draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    w = np.array(draw(st.lists(weight, min_size=n, max_size=n)))
    w[0] = w[0] or 1.0
    if all_classes:
        codes[:k], w[:k] = np.arange(k), np.maximum(w[:k], 1.0)
    if untied:
        top = np.sort(p, axis=1)
        assume((top[:, -1] > top[:, -2]).all())
    return codes, p, w


ANY = st.one_of(matrices(), matrices(weight=EIGHTHS), matrices(weight=st.just(1.0)))


def close(value, abs=1e-12):
    return pytest.approx(value, rel=1e-9, abs=abs)


def columns(p):
    return np.arange(p.shape[1])


def simulate(n=400, k=4, seed=0, sharpness=2.0):
    """Labels, and distributions that are overconfident above sharpness 1."""
    random = np.random.default_rng(seed)
    z = random.normal(0, 1.2, (n, k))
    codes = (softmax(z, axis=1).cumsum(axis=1) > random.random((n, 1))).argmax(axis=1)
    return codes, softmax(sharpness * z, axis=1)


# --- twins --------------------------------------------------------------------------------------


@given(data=ANY)
@example(data=(np.array([2]), np.array([[0.0, 0.0, 1.0]]), np.array([2.0])))
def test_proper_scores_and_accuracy(data):
    codes, p, w = data
    options = {"sample_weight": w, "classes": columns(p)}
    expected = naive.brier(codes, p, w)
    assert metrics.brier(codes, p, **options) == close(expected)
    assert metrics.brier(codes, p, normalise="sum", **options) == close(expected)
    mean = metrics.brier(codes, p, normalise="mean_over_classes", **options)
    assert mean == close(expected / p.shape[1])
    assert metrics.rmse(codes, p, **options) == close(math.sqrt(expected / p.shape[1]))
    assert metrics.accuracy(codes, p, **options) == close(naive.accuracy(codes, p, w))
    loss = naive.log_loss(codes, p, w)
    if math.isinf(loss):
        with pytest.warns(CalibrationWarning, match="given probability 0 for the class that came"):
            assert metrics.log_loss(codes, p, **options) == math.inf
    else:
        assert metrics.log_loss(codes, p, **options) == close(loss)
    clipped = metrics.log_loss(codes, p, clip=1e-3, base=2, **options)
    assert clipped == close(naive.log_loss(codes, p, w, clip=1e-3) / math.log(2))


@given(
    data=ANY,
    bins=st.integers(1, 12),
    binning=st.sampled_from(["width", "mass"]),
    ties=st.sampled_from(["together", "labels", "rows"]),
)
def test_binned_errors(data, bins, binning, ties):
    codes, p, w = data
    how = {"bins": bins, "binning": binning, "ties": ties}
    options = {"sample_weight": w, "classes": columns(p)} | how
    hits, confidence = naive.top_label(codes, p)
    expected = binary.ece(hits, confidence, w, **how)
    assert metrics.top_label_ece(codes, p, **options) == close(expected)
    assert metrics.ece(codes, p, **options) == close(expected)
    expected = binary.mce(hits, confidence, w, **how)
    assert metrics.top_label_mce(codes, p, **options) == close(expected)
    assert metrics.mce(codes, p, **options) == close(expected)
    each = naive.over_classes(binary.ece, codes, p, w, **how)
    assert metrics.classwise_ece(codes, p, **options) == close(sum(each) / len(each))
    worst = max(naive.over_classes(binary.mce, codes, p, w, **how))
    assert metrics.classwise_mce(codes, p, **options) == close(worst)


@given(data=matrices(max_size=12), window=st.one_of(st.none(), st.integers(1, 15)))
def test_calbin(data, window):
    codes, p, w = data
    each = []
    for y, q in naive.one_against_rest(codes, p):
        each.append(binary.calbin(y, q, w, window))
    value = metrics.calbin(codes, p, window=window, sample_weight=w, classes=columns(p))
    assert value == close(sum(each) / len(each))


@given(
    data=st.one_of(matrices(all_classes=True), matrices(weight=EIGHTHS, all_classes=True)),
    average=st.sampled_from(["macro", "weighted"]),
)
def test_auc(data, average):
    codes, p, w = data
    value = metrics.auc(codes, p, average=average, sample_weight=w)
    assert value == close(naive.auc(codes, p, w, average))


def test_as_scikit_learn_has_it():
    codes, p = simulate(500, k=5)
    w = np.random.default_rng(1).gamma(1.0, 1.0, 500)
    for weight in (None, w):
        options = {"sample_weight": weight}
        assert metrics.log_loss(codes, p, **options) == close(sklearn_log_loss(codes, p, **options))
        assert metrics.brier(codes, p, **options) == close(brier_score_loss(codes, p, **options))
        for average in ("macro", "weighted"):
            area = roc_auc_score(codes, p, multi_class="ovr", average=average, **options)
            assert metrics.auc(codes, p, average=average, **options) == close(area)
        right = accuracy_score(codes, p.argmax(axis=1), **options)
        assert metrics.accuracy(codes, p, **options) == close(right)


def test_small_errors_keep_their_digits():
    p = np.array([[1 - 2e-9, 1e-9, 1e-9]])
    assert metrics.brier(["a"], p, classes=["a", "b", "c"]) == pytest.approx(6e-18, rel=1e-6)


# --- promises -----------------------------------------------------------------------------------


def everything(codes, p, w=None, labels=None):
    """All values, with and without sorting."""
    options = {"sample_weight": w, "classes": columns(p) if labels is None else labels}
    values = dict(metrics.evaluate(codes, p, **options).after)
    for binning in ("width", "mass"):
        for name in ("top_label_ece", "top_label_mce", "classwise_ece", "classwise_mce"):
            how = {"bins": 7, "binning": binning, **options}
            values[f"{name} {binning}"] = getattr(metrics, name)(codes, p, **how)
    return values


@given(data=matrices())
def test_whole_weights_are_repeated_rows(data):
    codes, p, w = data
    times = w.astype(int)
    repeated = everything(np.repeat(codes, times), np.repeat(p, times, axis=0), None, columns(p))
    assert everything(codes, p, w) == close(repeated)


@given(data=ANY, seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(data, seed):
    codes, p, w = data
    order = np.random.default_rng(seed).permutation(len(codes))
    assert everything(codes[order], p[order], w[order]) == close(everything(codes, p, w))


@given(data=matrices(untied=True), seed=st.integers(0, 99))
def test_the_order_of_classes_does_not_matter(data, seed):
    codes, p, w = data
    order = np.random.default_rng(seed).permutation(p.shape[1])
    names = np.array(["pear", "fig", "apple", "plum", "date"])[: p.shape[1]]
    mixed = everything(names[codes], p[:, order], w, names[order])
    assert mixed == close(everything(codes, p, w))


@given(
    y=st.lists(st.integers(0, 1), min_size=2, max_size=20),
    q=st.lists(PROBABILITIES, min_size=20, max_size=20),
)
def test_an_impossible_third_class_changes_nothing(y, q):
    """Two columns and one of zeros: the measures that do not count classes are the binary ones."""
    y, q = np.array([0, 1, *y]), np.array(q)
    q = np.resize(q, len(y))
    p = np.column_stack((1 - q, q, np.zeros(len(q))))
    three = {"classes": [0, 1, 2]}
    assert metrics.brier(y, p, **three) == close(2 * metrics.brier(y, q))
    clip = {"clip": 2.0**-20}
    assert metrics.log_loss(y, p, **three, **clip) == close(metrics.log_loss(y, q, **clip))
    away = q != 0.5  # the binary measure predicts the second of two equals, this one the first
    if away.any():
        right = metrics.accuracy(y[away], p[away], **three)
        assert right == close(binary.accuracy(y[away], q[away]))


@given(
    y=st.lists(st.integers(0, 1), min_size=0, max_size=20),
    q=st.lists(st.integers(0, 64).map(lambda k: k / 64), min_size=22, max_size=22),
)
def test_two_columns_keep_their_binary_meaning(y, q):
    y, q = np.array([0, 1, *y]), np.array(q)[: len(y) + 2]
    pair = np.column_stack((1 - q, q))
    for name in ("brier", "rmse", "ece", "mce", "auc", "accuracy", "calbin"):
        assert getattr(metrics, name)(y, pair) == getattr(metrics, name)(y, q)
        swapped = getattr(metrics, name)(y, pair[:, ::-1], classes=[1, 0])
        assert swapped == getattr(metrics, name)(y, q)
    assert metrics.log_loss(y, pair, clip=0.01) == metrics.log_loss(y, q, clip=0.01)
    # class against class: the mirrored one has the same errors where no edge is met
    both = [metrics.ece(y == j, pair[:, j], bins=7) for j in (0, 1)]
    assert metrics.classwise_ece(y, pair, bins=7) == close(sum(both) / 2)
    hits = np.where(q > 0.5, y == 1, y == 0)
    assert metrics.top_label_ece(y, pair) == close(metrics.ece(hits, np.maximum(q, 1 - q)))


def test_labels_of_any_kind():
    codes, p = simulate(200, k=3)
    plain = everything(codes, p)
    for labels in (["a", "b", "c"], [-1, 0, 7], [1.0, 2.0, 3.0]):
        y = np.array(labels)[codes]
        assert everything(y, p, None, labels) == plain
        assert metrics.log_loss(y, p) == plain["log_loss"]
    frame = pl.DataFrame(p, schema=["x", "y", "z"])
    assert metrics.brier(pd.Series(codes).astype("category"), frame) == plain["brier"]
    assert metrics.brier(list(codes), p.tolist()) == plain["brier"]


def test_other_forms_of_the_matrix():
    codes, p = simulate(300, k=3)
    small = p.astype(np.float32)
    small[:, 2] = 1 - small[:, 0] - small[:, 1]
    small = np.clip(small, 0, 1)
    assert everything(codes, small) == close(everything(codes, small.astype(float)))
    assert everything(codes, np.asfortranarray(p)) == everything(codes, p)
    matrix = ScoreMatrix(p, codes)
    assert metrics.evaluate(matrix, raw=matrix) == metrics.evaluate(codes, p, raw=p)
    assert metrics.log_loss(matrix) == metrics.log_loss(codes, p)
    with pytest.raises(InputError, match="p came as well"):
        metrics.brier(matrix, p)
    with pytest.raises(InputError, match="must be probabilities"):
        metrics.brier(ScoreMatrix(p * 2, codes))


def test_blocks_give_what_one_block_gives(monkeypatch):
    codes, p = simulate(500, k=7)
    w = np.random.default_rng(0).random(500)
    whole = everything(codes, p, w)
    monkeypatch.setattr("calibrant.data.door.BLOCK", 64)
    assert len(list(ScoreMatrix(p, codes).blocks())) > 50
    assert everything(codes, p, w) == close(whole)


# --- refusals -----------------------------------------------------------------------------------

CALLS = {
    name: getattr(metrics, name)
    for name in (
        *("log_loss", "brier", "rmse", "ece", "mce", "auc", "accuracy", "calbin", "evaluate"),
        *("top_label_ece", "top_label_mce", "classwise_ece", "classwise_mce"),
    )
} | {"class_reliability": class_reliability}
CODES, P = simulate(400, k=3)


def spoilt(row, value):
    copy = P.copy()
    copy[row] = value
    return copy


REFUSED = {
    "NaN": (
        CODES,
        spoilt([17, 30], np.nan),
        {},
        r"2 of 400 rows hold NaN.*first at row 17, column 0: NaN",
    ),
    "infinity": (CODES, spoilt(5, np.inf), {}, "row 5, column 0: infinity"),
    "logits": (CODES, np.log(P), {}, "400 of 400 rows are not .first at row 0.*softmax"),
    "huge": (CODES, spoilt(9, 1.7e308), {}, "1 of 400 rows is not .first at row 9.*sum inf"),
    "one row": (CODES, spoilt(11, [0.5, 0.5, 0.1]), {}, r"row 11: \[0.5, 0.5, 0.1\], sum 1.1\)"),
    "negative": (CODES, spoilt(2, [1.2, -0.1, -0.1]), {}, "first at row 2"),
    "percentages": (CODES, P * 100, {}, "Divide percentages by 100"),
    "short": (CODES[:399], P, {}, "y has 399 and p has 400"),
    "a missing class": (
        np.minimum(CODES, 1) + 5,
        P,
        {},
        r"3 columns and y 2 classes \(5, 6\).*classes=",
    ),
    "one class": (CODES * 0 + 7, P, {}, "y 1 class"),
    "too many classes": (np.arange(400) % 4, P, {}, "3 columns and y 4 classes"),
    "a label outside": (CODES, P, {"classes": [0, 1, 3]}, r"classes \[0, 1, 3\], but 2 came"),
    "other names": (CODES, P, {"classes": ["a", "b", "c"]}, "but 0 came"),
    "few names": (CODES, P, {"classes": [0, 1]}, "a different class for each of the 3 columns"),
    "twice a name": (CODES, P, {"classes": [0, 1, 1]}, "a different class for each"),
    "soft labels": (CODES + 0.5, P, {}, "soft labels"),
    "negative weights": (CODES, P, {"sample_weight": CODES - 1.0}, "negative"),
    "no weight": (CODES, P, {"sample_weight": CODES * 0.0}, "all 400 are zero"),
    "words": (CODES, np.full((400, 3), "a"), {}, "must be numbers"),
    "empty": ([], np.empty((0, 3)), {}, "at least one row"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("bad", REFUSED.values(), ids=REFUSED.keys())
def test_bad_input_is_refused_with_a_reason(call, bad):
    y, p, options, message = bad
    with pytest.raises(InputError, match=message):
        call(y, p, **options)


@pytest.mark.parametrize("name", ["log_loss", "brier", "ece", "auc", "calbin", "evaluate"])
def test_none_of_several_classes_is_the_positive_one(name):
    with pytest.raises(InputError, match="pos_label must not be given"):
        getattr(metrics, name)(CODES, P, pos_label=1)


def test_binary_measures_name_their_limit():
    for name in ("corp", "murphy", "hosmer_lemeshow", "calibration_loss"):
        with pytest.raises(InputError, match="3 columns came"):
            getattr(metrics, name)(np.minimum(CODES, 1), P)


@pytest.mark.parametrize(
    ("call", "options", "message"),
    [
        (metrics.brier, {"normalise": "binary"}, "'sum' or 'mean_over_classes' for 3 classes"),
        (metrics.brier, {"normalise": "mean"}, "normalise must be"),
        (metrics.auc, {"average": "micro"}, "average must be 'macro' or 'weighted'"),
        (metrics.classwise_ece, {"bins": 0}, "bins must be"),
        (metrics.classwise_mce, {"binning": "depth"}, "binning must be 'width' or 'mass'"),
        (metrics.top_label_ece, {"ties": "x"}, "ties must be"),
        (class_reliability, {"top_label": "yes"}, "top_label must be True or False"),
        (class_reliability, {"top_label": False, "show": []}, "show must name a class"),
        (class_reliability, {"bins": 0}, "bins must be"),
    ],
)
def test_bad_options_are_refused_by_name(call, options, message):
    with pytest.raises(ParameterError, match=message):
        call(CODES, P, **options)


def test_classes_that_did_not_come():
    y = np.minimum(CODES, 1)
    with pytest.raises(InputError, match="auc needs every class, but 1 of 3 did not come: 2"):
        metrics.auc(y, P, classes=[0, 1, 2])
    weight = np.where(CODES == 2, 0.0, 1.0)
    with pytest.raises(InputError, match="1 of 3 did not come: 2"):
        metrics.auc(CODES, P, sample_weight=weight)


def test_calbin_refuses_real_weights():
    with pytest.raises(InputError, match="whole weights"):
        metrics.calbin(CODES, P, sample_weight=np.full(400, 0.5))


def test_infinite_log_loss_is_explained():
    p = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    with pytest.warns(CalibrationWarning, match="2 rows were given probability 0"):
        assert metrics.log_loss([1, 0, 2], p) == math.inf
    with pytest.warns(CalibrationWarning, match="rows of total weight 2.5 were"):
        metrics.log_loss([1, 0, 2], p, sample_weight=[1, 1.5, 1])


# --- all at once --------------------------------------------------------------------------------


def test_values_are_those_of_the_functions():
    codes, p = simulate(300, k=4)
    logits = np.log(p) + 3.0
    e = metrics.evaluate(codes, p, raw=logits, bins=7)
    assert list(e.after) == list(CLASS_MEASURES)
    for name, value in e.after.items():
        options = {"bins": 7} if name.endswith("ce") else {}
        assert value == close(getattr(metrics, name)(codes, p, **options))
    assert e.before == close(e.after)
    assert e.notes == (
        "raw scores are no distributions and were read as logits, through softmax",
        "calbin has no interval for several classes",
    )
    assert e.weight == 300
    assert e.labels == (0, 1, 2, 3)
    for j in range(4):
        assert e.by_class["weight"][j] == (codes == j).sum()
        assert e.by_class["ece"][j] == close(metrics.ece(codes == j, p[:, j], bins=7))
        assert e.by_class["mce"][j] == close(metrics.mce(codes == j, p[:, j], bins=7))
        assert e.by_class["auc"][j] == close(metrics.auc(codes == j, p[:, j]))


def test_what_the_data_do_not_allow_is_said():
    codes, p = simulate(300, k=4)
    y = np.minimum(codes, 2)
    half = np.full(300, 0.5)
    e = metrics.evaluate(y, p, classes=range(4), sample_weight=half, weights="importance")
    assert "calbin" not in e.after
    some = [metrics.auc(y == j, p[:, j]) for j in range(3)]
    assert e.after["auc"] == close(np.mean(some))
    assert e.by_class["auc"][3] is None
    assert e.notes == (
        "1 of 4 classes did not come: auc is over the others",
        "calbin needs whole weights (a window counts cases), but fractions came",
    )
    one = metrics.evaluate(y * 0, p, classes=range(4), level=None)
    assert "auc" not in one.after
    assert one.notes == ("auc needs two classes, but only one came",)
    sure = np.eye(4)[codes]
    e = metrics.evaluate(codes, p, raw=np.roll(sure, 1, axis=1), level=None)
    assert e.before["log_loss"] == math.inf
    assert e.notes == (
        "before: log loss is infinite: 300 rows were given probability 0 for the class that came",
    )


def test_calbin_is_left_out_of_endless_data(monkeypatch):
    monkeypatch.setattr(calbin_windows, "MOST_WINDOWS", 1199)
    e = metrics.evaluate(CODES, P)
    assert "calbin" not in e.after
    assert "looks at each of 1.2e+03 cases" in e.notes[0]


def test_raw_scores_of_the_same_rows():
    weight = np.where(np.arange(400) % 3, 1.0, 0.0)
    e = metrics.evaluate(CODES, P, raw=P, sample_weight=weight)
    assert e.before == e.after
    with pytest.raises(InputError, match="raw must have 3 columns"):
        metrics.evaluate(CODES, P, raw=P[:, :2])
    with pytest.raises(InputError, match="y has 400 and raw has 399"):
        metrics.evaluate(CODES, P, raw=P[:399])
    with pytest.raises(InputError, match="raw must be finite"):
        metrics.evaluate(CODES, P, raw=spoilt(3, np.nan))
    with pytest.raises(InputError, match="raw must be probabilities"):
        metrics.evaluate(CODES, P, raw=P / 2)
    matrix = ScoreMatrix(P, CODES)
    with pytest.raises(InputError, match="raw must be a ScoreMatrix"):
        metrics.evaluate(matrix, raw=P)
    with pytest.raises(InputError, match="same rows"):
        metrics.evaluate(matrix, raw=ScoreMatrix(P, (CODES + 1) % 3))


def test_an_evaluation_is_a_value_and_prints():
    codes, p = simulate(300, k=4)
    names = np.array(["a", "b", "c", "<d>"])
    raw = log_softmax(p, axis=1)
    asked = {"classes": names, "measures": "standard"}
    e = metrics.evaluate(names[codes], p, raw=raw, **asked)
    again = metrics.evaluate(names[codes], p, raw=raw, **asked)
    assert e == again == pickle.loads(pickle.dumps(e))
    assert hash(e) == hash(again)
    assert e != metrics.evaluate(names[codes], p, classes=names)
    with pytest.raises(AttributeError):
        e.weight = 3.0
    back = json.loads(json.dumps(e.to_dict(), allow_nan=False))
    assert back["after"] == e.after
    assert back["labels"] == list(names)
    assert tuple(back["by_class"]["ece"]) == e.by_class["ece"]
    lines = str(e).splitlines()
    words = "measure good is before after 95 % interval change by"
    assert lines[0].split() == words.split()
    assert max(map(len, lines[: 2 + len(e.after)])) <= 100
    assert len(lines) == 2 + len(e.after) + 2 + len(e.notes)
    assert f"300 rows; 4 classes, from {min(e.by_class['weight']):g} to" in str(e)
    worst = names[int(np.argmax(e.by_class["ece"]))]
    assert f"largest ECE of a class: {max(e.by_class['ece']):.4f}, {str(worst)!r}" in str(e)
    page = e._repr_html_()
    assert page.count("<tr") == 1 + len(e.after)
    assert "<d>" not in page
    few = str(metrics.evaluate(names[codes], p, raw=raw, classes=names)).splitlines()
    shown = ["log loss", "Brier score", "top-label ECE", "class-wise ECE", "AUC"]
    assert [line.split("  ")[0] for line in few[2:7]] == shown


# --- several labels per row ---------------------------------------------------------------------


@st.composite
def label_matrices(draw, weight=WHOLE):
    n, k = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    label = st.sampled_from([0, 1, 0, 1, None])
    labels = draw(st.lists(st.lists(label, min_size=k, max_size=k), min_size=n, max_size=n))
    p = draw(st.lists(st.lists(PROBABILITIES, min_size=k, max_size=k), min_size=n, max_size=n))
    w = draw(st.lists(weight, min_size=n, max_size=n))
    w[0] = w[0] or 1.0
    labels[0][0] = labels[0][0] or 0
    return labels, p, w


@given(data=st.one_of(label_matrices(), label_matrices(EIGHTHS)), bins=st.integers(1, 12))
@example(data=([[1, None], [0, None]], [[1.0, 0.0], [0.0, 0.5]], [1.0, 2.0]), bins=10)
def test_multilabel_measures(data, bins):
    labels, p, w = data
    m = metrics.multilabel_measures(labels, p, bins=bins, sample_weight=w)
    for name, (each, micro, macro) in naive.multilabel(labels, p, w, bins).items():
        assert [v is None for v in m.by_column[name]] == [v is None for v in each]
        for value, expected in zip(m.by_column[name], each, strict=True):
            assert value is None or value == close(expected)
        assert (name in m.micro) == (micro is not None)
        assert (name in m.macro) == (macro is not None)
        if micro is not None:
            assert m.micro[name] == close(micro)
        if macro is not None:
            assert m.macro[name] == close(macro)
    pairs = zip(m.by_column["auc"], m.by_column["brier"], strict=True)
    undefined = sum(area is None and score is not None for area, score in pairs)
    said = [note for note in m.notes if note.startswith("auc needs both classes")]
    assert len(said) == bool(undefined)
    assert all(f"but {undefined} of {len(p[0])} columns" in note for note in said)


def test_multilabel_measures_print_as_a_table_everywhere():
    m = metrics.multilabel_measures([[1, 0], [0, None], [1, 0]], [[0.75, 0.25]] * 3)
    assert str(m).splitlines()[0].split() == ["measure", "good", "is", "micro", "macro"]
    assert set(str(m).splitlines()[1]) == {"─", " "}
    assert '<tr title="mean surprise, in nats">' in m._repr_html_()


@pytest.mark.parametrize("most", [1, 50, 10_000])
def test_micro_auc_by_ranges(monkeypatch, most):
    random = np.random.default_rng(0)
    p = random.random((300, 5)) ** 8
    p[::3] = p[::3].round(1)
    labels = (random.random((300, 5)) < p).astype(int)
    w = random.gamma(1.0, 1.0, 300)
    monkeypatch.setattr(multilabel, "MOST_SORTED", most)
    for weight in (None, w):
        m = metrics.multilabel_measures(labels, p, sample_weight=weight)
        tiled = None if weight is None else np.repeat(weight, 5)
        pooled = roc_auc_score(labels.ravel(), p.ravel(), sample_weight=tiled)
        assert m.micro["auc"] == close(pooled)
        macro = roc_auc_score(labels, p, sample_weight=weight, average="macro")
        assert m.macro["auc"] == close(macro)


def test_missing_labels_of_every_kind():
    holes = [[1, 0], [0, None], [1, 1], [0, 0]]
    p = [[0.6, 0.2], [0.3, 0.4], [0.8, 0.7], [0.1, 0.1]]
    expected = metrics.multilabel_measures(holes, p)
    numbers = np.array([[np.nan if v is None else v for v in row] for row in holes], dtype=float)
    masked = np.ma.masked_invalid(numbers)
    frames = [
        pd.DataFrame(holes, columns=["0", "1"]),
        pd.DataFrame(holes, columns=["0", "1"]).astype("Int64"),
        pl.DataFrame(holes, schema=["0", "1"], orient="row"),
        pl.DataFrame(holes, schema=["0", "1"], orient="row").to_arrow(),
    ]
    for given_labels in (numbers, masked, *frames):
        assert metrics.multilabel_measures(given_labels, p, names=["0", "1"]) == expected
    assert metrics.multilabel_measures(frames[2], p) == expected
    named = pd.DataFrame(holes, columns=["x", "y"])
    assert metrics.multilabel_measures(named, p).names == ("x", "y")
    assert expected.by_column["missing"] == (0.0, 1.0)


def test_multilabel_columns_that_say_nothing():
    labels = [[None, 1, 0], [None, 1, 1]]
    m = metrics.multilabel_measures(labels, np.full((2, 3), 0.5), names=["x", "y", "z"])
    assert m.notes == (
        "1 of 3 columns has no known label: 'x'",
        "auc needs both classes, but 1 of 3 columns has one: 'y'",
    )
    assert m.by_column["auc"] == (None, None, 0.5)
    assert m.macro["brier"] == 0.25
    sure = metrics.multilabel_measures([[1, 0], [1, 1]], [[0.0, 0.5], [1.0, 0.5]])
    assert sure.micro["log_loss"] == sure.macro["log_loss"] == math.inf
    assert "log loss is infinite: 1 of 2 columns gave probability 0 to what came: '0'" in sure.notes
    assert json.loads(json.dumps(sure.to_dict(), allow_nan=False))["micro"]["log_loss"] == "inf"
    assert sure == pickle.loads(pickle.dumps(sure))
    assert "log loss" in str(sure)


@pytest.mark.parametrize(
    ("labels", "p", "options", "message"),
    [
        (
            [[-1, 1], [1, 0]],
            np.ones((2, 2)),
            {},
            r"1 of 4 are neither .first -1 at row 0, column 0",
        ),
        ([[0.5, 1], [1, 0]], np.ones((2, 2)), {}, "first 0.5 at row 0"),
        ([["a", 1]], np.ones((1, 2)), {}, "Y must"),
        ([["a", None]], np.ones((1, 2)), {}, "'a' came"),
        ([0, 1], [0.5, 0.5], {}, r"matrix \(n, k\)"),
        ([[None], [None]], [[0.5], [0.5]], {}, "all are missing"),
        (np.empty((0, 2)), np.empty((0, 2)), {}, "one row or more"),
        ([[0, 1]], [[0.5, 0.5, 0.5]], {}, "a column for each of the 2 labels"),
        ([[0, 1]], [[0.5, 1.5]], {}, "column 1 of P must be probabilities"),
        ([[0, None]], [[0.5, np.nan]], {}, "column 1 of P must be finite"),
        ([[0, 1]], [[0.5, 0.5]] * 2, {}, "Y has 1 and P has 2"),
        ([[0, 1]], [[0.5, 0.5]], {"names": ["x"]}, "names must be 2"),
        ([[0, 1]], [[0.5, 0.5]], {"names": "xy"}, "names must be 2"),
        ([[0, 1]], [[0.5, 0.5]], {"sample_weight": [-1]}, "at least 0"),
    ],
)
def test_bad_multilabel_input_is_refused(labels, p, options, message):
    with pytest.raises(InputError, match=message):
        metrics.multilabel_measures(labels, p, **options)


# --- diagrams -----------------------------------------------------------------------------------


def test_curves_are_those_of_the_columns():
    codes, p = simulate(600, k=4)
    names = np.array(["ant", "bee", "cat", "dog"])
    w = np.random.default_rng(0).gamma(1.0, 1.0, 600)
    options = {"bins": 6, "binning": "mass", "level": 0.9, "sample_weight": w}
    panels = class_reliability(names[codes], p, **options)
    assert panels.names == ("top label", *names)
    for j, name in enumerate(names):
        alone = reliability_curve(codes == j, p[:, j], **options)
        np.testing.assert_array_equal(panels[name].fraction, alone.fraction)
        np.testing.assert_array_equal(panels[name].lower, alone.lower)
    right = reliability_curve(p.argmax(axis=1) == codes, p.max(axis=1), **options)
    np.testing.assert_array_equal(panels["top label"].mean_p, right.mean_p)
    assert len({tuple(curve.histogram_edges) for curve in panels.curves}) == 1
    for curve in panels.curves:
        assert curve.histogram.sum() == close(w.sum())


def test_some_classes_only():
    codes, p = simulate(600, k=4)
    panels = class_reliability(codes, p, show=[3, 1], top_label=False)
    assert panels.names == ("3", "1")
    assert class_reliability(codes, p, show=[]).names == ("top label",)
    with pytest.raises(InputError, match="show must hold classes among 0, 1, 2, 3, but 9 came"):
        class_reliability(codes, p, show=[9])
    absent = class_reliability(np.minimum(codes, 2), p, classes=range(4))
    assert not absent["3"].fraction.any()


def test_the_diagram_is_that_of_the_panels():
    from calibrant.diagrams.draw import render

    codes, p = simulate(600, k=4)
    figure = class_diagram(codes, p, show=[2], title="A network")
    drawn = panel_diagram(class_reliability(codes, p, show=[2]), title="A network")
    assert render(figure, "svg") == render(drawn, "svg")


# --- importing ----------------------------------------------------------------------------------


def test_nothing_heavy_is_imported():
    code = (
        "import sys; from calibrant import metrics; from calibrant import diagrams;"
        "p = [[0.2, 0.3, 0.5], [0.5, 0.3, 0.2], [0.1, 0.8, 0.1]];"
        "metrics.evaluate([2, 0, 1], p); diagrams.class_reliability([2, 0, 1], p);"
        "metrics.multilabel_measures([[0, 1, None]], p[:1]);"
        "heavy = {'sklearn', 'numba', 'pandas', 'matplotlib', 'duckdb', 'rich'} & set(sys.modules);"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- the change of AUC --------------------------------------------------------------------------


@pytest.mark.full
def test_the_change_of_auc_is_paired():
    """The interval of the change holds the truth about as often as it says, and is narrow."""
    rng = np.random.default_rng(0)
    k, n, inside, narrower = 3, 300, 0, 0

    def both(count):
        y = rng.integers(k, size=count)
        z = rng.normal(size=(count, k))
        z[np.arange(count), y] += 1.0
        other = z + 0.5 * rng.normal(size=z.shape)
        return y, softmax(other, axis=1), softmax(z, axis=1)

    y, raw, p = both(200_000)
    truth = metrics.auc(y, p) - metrics.auc(y, raw)
    for _ in range(200):
        y, raw, p = both(n)
        made = metrics.evaluate(y, p, raw=raw, replicates=100)
        difference, low, high = made.change["auc"]
        assert low <= difference <= high
        inside += low <= truth <= high
        (a, b), (c, d) = made.intervals["auc"], made.intervals_before["auc"]
        narrower += high - low < 0.7 * ((b - a) + (d - c))
    assert 181 <= inside <= 199
    assert narrower == 200


def test_a_measure_alone_has_the_interval_that_it_has_among_all():
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1, 1, 1], 150)
    y = np.array([rng.choice(3, p=row) for row in p])
    whole = metrics.evaluate(y, p)
    for name in whole.after:
        alone = metrics.evaluate(y, p, measures=name)
        assert alone.intervals.get(name) == whole.intervals.get(name)
