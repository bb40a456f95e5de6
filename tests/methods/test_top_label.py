"""The calibrator of the top label: its map against a plain one, the order of rows, and ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.base import clone

import calibrant as cal
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.errors import InputError, ParameterError
from calibrant.maps import Identity, Logistic, Piecewise, Softmax, TopLabel, map_from_dict
from calibrant.methods.codes.calibrator import _top_labels
from twins import scaling as naive


def draw(n=1500, k=5, seed=0, factor=3.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k))
    return factor * z, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


@st.composite
def distributions(draw_):
    """A row of three to five shares, of which some may be equal or zero, and a new largest."""
    k = draw_(st.integers(3, 5))
    parts = draw_(st.lists(st.sampled_from([0, 1, 1, 2, 3, 7]), min_size=k, max_size=k))
    parts[0] = parts[0] or 1
    return np.array(parts) / sum(parts), draw_(st.sampled_from([0.0, 1e-9, 0.3, 0.5, 0.9, 1.0]))


@given(distributions())
@example((np.array([0.5, 0.5, 0.0]), 1.0))
@example((np.array([1.0, 0.0, 0.0]), 0.0))
@example((np.full(3, 1 / 3), 0.9))
def test_a_row_against_its_twin(row):
    p, q = row
    got = TopLabel(Piecewise.constant(q), len(p), "probability")([p])[0]
    assert got == pytest.approx(naive.top_label(p.tolist(), q), abs=1e-14)
    assert got.sum() == pytest.approx(1.0, abs=1e-14)
    assert got.min() >= 0.0
    order = np.argsort(p, kind="stable")
    rising = np.diff(p[order]) > 0
    if got.max() * (p == p.max()).sum() < 1.0 - 1e-9:  # else the others are all zero
        assert (np.diff(got[order])[rising & (p[order][:-1] > 0)] > 0).all()
    assert np.abs(np.diff(got[order])[~rising]).max(initial=0.0) <= 1e-16


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["logit", "probability"])
def test_the_most_probable_class_stays(kind, dtype):
    """Also where the map says that it is hardly ever right."""
    z, _ = draw(k=8)
    scores = (z if kind == "logit" else softmax(z, axis=1)).astype(dtype)
    p = TopLabel(Piecewise.constant(0.01), 8, kind)(scores)
    assert (p.argmax(axis=1) == scores.argmax(axis=1)).all()
    assert (p.astype(np.float32).argmax(axis=1) == scores.argmax(axis=1)).all()


def test_the_confidence_is_that_of_the_binary_calibrator():
    z, y = draw()
    p = softmax(z, axis=1)
    fitted = cal.TopLabelCalibrator(cal.Platt(), temperature=False).fit(z, y)
    binary = cal.Platt().fit(p.max(axis=1), p.argmax(axis=1) == y)
    assert fitted.calibrator_.map_.intercept == pytest.approx(binary.map_.intercept, abs=1e-9)
    got, want = fitted.predict_proba(z), binary.calibrate(p.max(axis=1))
    kept = np.abs(got.max(axis=1) - want) < 1e-12
    assert 0.5 < kept.mean() < 1.0  # the others would have fallen below the second
    assert (got.max(axis=1)[~kept] > want[~kept]).all()
    labels, confidence = fitted.top_label(z)
    assert (labels == z.argmax(axis=1)).all()
    assert confidence.tolist() == got.max(axis=1).tolist()


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_the_temperature_comes_first(kind):
    z, y = draw()
    scores = z if kind == "logits" else softmax(z, axis=1)
    fitted = cal.TopLabelCalibrator(cal.Platt()).fit(scores, y)
    assert fitted.temperature_ == cal.Temperature().fit(scores, y).temperature_
    p = softmax(z / fitted.temperature_, axis=1)
    plain = cal.TopLabelCalibrator(cal.Platt(), temperature=False).fit(p, y)
    want = plain.predict_proba(p)
    assert fitted.predict_proba(scores) == pytest.approx(want, abs=1e-6)


def test_overconfidence_is_mended():
    z, y = draw(n=6000, k=100, factor=4.0)
    fitted = cal.TopLabelCalibrator(classes=list(range(100))).fit(z[:3000], y[:3000])
    before = cal.metrics.top_label_ece(y[3000:], softmax(z[3000:], axis=1))
    after = cal.metrics.top_label_ece(y[3000:], fitted.predict_proba(z[3000:]))
    assert after < before / 3


def test_ties_count_in_parts():
    scores = np.array([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.5, 0.3, 0.2]])
    matrix = ScoreMatrix(scores, np.array([1, 2, 0]), np.array([2.0, 1.0, 1.0]))
    largest, signs, weight = _top_labels(matrix, TopLabel(Identity(), 3, "probability"))
    assert largest.tolist() == pytest.approx([0.4, 0.4, 0.5] * 2)
    assert signs.tolist() == [1, 1, 1, -1, -1, -1]
    assert weight.tolist() == pytest.approx([1.0, 0.0, 1.0, 1.0, 1.0, 0.0])


def test_the_order_of_columns_plays_no_part():
    rng = np.random.default_rng(4)
    votes = rng.multinomial(6, [0.4, 0.3, 0.3], size=600) / 6  # a forest of six trees: many ties
    y = np.array([rng.choice(3, p=row) for row in votes])
    method = cal.TopLabelCalibrator("isotonic", temperature=False)
    fitted, turned = clone(method).fit(votes, y), clone(method).fit(votes[:, ::-1], 2 - y)
    p, q = fitted.predict_proba(votes), turned.predict_proba(votes[:, ::-1])
    assert q[:, ::-1] == pytest.approx(p, abs=1e-12)


def test_always_right_and_one_row():
    p = cal.TopLabelCalibrator(cal.Platt()).fit(np.eye(3)[[0, 1, 2] * 20], [0, 1, 2] * 20)
    assert p.predict_proba(np.eye(3)).diagonal().min() > 0.9
    one = cal.TopLabelCalibrator("isotonic", classes=[0, 1, 2]).fit([[3.0, 0.0, 0.0]], [1])
    assert one.predict_proba([[3.0, 0.0, 0.0]]).sum() == pytest.approx(1.0)


def test_what_makes_no_sense_is_refused():
    z, y = draw(60)
    with pytest.raises(ParameterError, match="calibrator must be a Calibrator of one score"):
        cal.TopLabelCalibrator(cal.VectorScaling()).fit(z, y)
    with pytest.raises(InputError, match=r"columns must be a whole number from 2 on, but 1 came"):
        TopLabel(Identity(), 1)
    with pytest.raises(InputError, match="maps of one score"):
        TopLabel(Softmax(1.0, [0.0, 0.0]), 2)
    with pytest.raises(InputError, match=r"shape \(n, 5\)"):
        TopLabel(Identity(), 5)(z[:, :4])
    with pytest.raises(InputError, match="has no prior shift"):
        TopLabel(Identity(), 5).shifted(np.ones(5))
    with pytest.raises(InputError, match="factor must be above 0, but 0 came"):
        TopLabel(Identity(), 5, "logit", 0.0)


def test_maps_are_values():
    one = TopLabel(Logistic(0.0, (("z", 0.5),)), 4, "probability")
    assert map_from_dict(one.to_dict()) == one
    assert one != TopLabel(one.map, 4, "logit")


#: all equal; the others far below the largest, where exp gives the smallest doubles, or 0
EXTREMES = [[0, 0, 0], [-402, -307, 425], [0, -707.9, -708.1], [0, -720, -720.5], [0, -1000, -2000],
            [-400, -400, 425], [1, 1, 0], [1e308, -1e308, 0], [5, 4, 3]]  # fmt: skip


def test_onnx_and_python_share_what_is_left_as_in_memory():
    ort = pytest.importorskip("onnxruntime")
    logits = np.array(EXTREMES, dtype=float)
    for input, rows in (
        ("logit", logits),
        ("probability", softmax(np.clip(logits, -1e3, 1e3), axis=1)),
    ):
        map_ = TopLabel(Logistic(0.1, (("z", 0.5),)), 3, input, 0.9)
        session = ort.InferenceSession(cal.to_onnx(map_).SerializeToString())
        (found,) = session.run(None, {session.get_inputs()[0].name: rows})
        np.testing.assert_allclose(found, map_(rows), rtol=0, atol=1e-12)
        module: dict = {}
        exec(cal.to_python(map_, name="f"), module)
        found = [module["f"](row) for row in rows.tolist()]
        np.testing.assert_allclose(found, map_(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("probabilities", [False, True])
def test_how_rows_lie_in_memory_decides_no_jump(probabilities):
    rng = np.random.default_rng(0)
    z = rng.normal(0, 1.5, (2000, 9))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    if probabilities:
        z = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    c = cal.TopLabelCalibrator(cal.VennAbers()).fit(z, y)
    expected = c.predict_proba(z)
    columns = np.asfortranarray(z)
    np.testing.assert_array_equal(c.predict_proba(columns), expected)
    again = cal.TopLabelCalibrator(cal.VennAbers()).fit(columns, y)
    np.testing.assert_array_equal(again.predict_proba(z), expected)
