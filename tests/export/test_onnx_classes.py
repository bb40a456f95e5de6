"""Calibrators of several classes or labels as ONNX models."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from scipy.special import softmax
from sklearn.base import clone

import calibrant as cal
from calibrant.errors import InputError
from calibrant.export.onnx import to_onnx
from calibrant.maps import (
    Coded,
    Columns,
    Identity,
    Logistic,
    Piecewise,
    Segmented,
    Softmax,
    VectorMixture,
)
from onnx_sessions import FLOAT, only

K = 4
RNG = np.random.default_rng(11)
P = np.vstack((np.eye(K), np.full((1, K), 0.25), RNG.dirichlet(np.full(K, 0.4), 300)))
Z = np.vstack((np.zeros((1, K)), RNG.normal(size=(300, K)) * 4))
W, B = RNG.normal(size=(K, K)), RNG.normal(size=K)
BITS = pytest.mark.parametrize("bits", [64, 32])


def exported(map_, rows, bits=64, input="score"):
    """The graph's probabilities, in its type."""
    return only(to_onnx(map_, float=bits, input=input), score=rows.astype(FLOAT[bits]))


def largest(map_, rows, bits=64):
    """The largest difference from NumPy's probabilities of the same numbers."""
    same = rows.astype(FLOAT[bits]).astype(float)
    return np.abs(exported(map_, same, bits) - map_(same)).max()


def logistic():
    return Logistic(RNG.normal(), (("z", RNG.random() + 0.1),))


def steps():
    return Piecewise.step(np.sort(RNG.random(9)), np.sort(RNG.random(10)))


def lines():
    return Piecewise.linear(np.sort(RNG.random(9)), np.sort(RNG.random(9)))


OVR = 2.0 * np.eye(K) - 1.0
MEMBERS = {
    name: tuple(make() for _ in range(K))
    for name, make in {"logistic": logistic, "steps": steps, "lines": lines}.items()
}
OF_LOGITS = {
    "temperature": Softmax(0.5, B),
    "vector": Softmax(W[0], B),
    "matrix": Softmax(W, B),
    "inner": Softmax(W, B, inner=0.3),
    "mixture-of-logits": VectorMixture(
        [0.4, 0.6],
        (Softmax(W, B, "probability"), Softmax(0.5, B, "probability")),
        "logit",
        1e-3,
        0.5,
    ),
}
OF_PROBABILITIES = {
    "temperature-of-p": Softmax(0.5, B, "probability"),
    "dirichlet": Softmax(W, B, "probability", 1e-7),
    "high-floor": Softmax(W[0], B, "probability", 1e-2),
    "inner-of-p": Softmax(W, B, "probability", inner=0.3),
    "normalize": Coded(OVR, MEMBERS["logistic"]),
    "normalize-steps": Coded(OVR, MEMBERS["steps"]),
    "normalize-other-order": Coded(OVR[:, [2, 0, 3, 1]], MEMBERS["lines"]),
    "least-squares": Coded(OVR, MEMBERS["lines"], "least_squares"),
    "least-squares-weighted": Coded(OVR, MEMBERS["steps"], "least_squares", [1.0, 0.2, 3.0, 0.5]),
    "coupling": Coded(OVR, MEMBERS["lines"], "coupling"),
    "coupling-weighted": Coded(OVR, MEMBERS["steps"], "coupling", [1.0, 0.2, 3.0, 0.5]),
    "columns": Columns((Identity(), *MEMBERS["steps"][1:3], MEMBERS["logistic"][0])),
    "column-of-segments": Columns((Segmented(steps(), (1,), (steps(),)),) * K),
    "mixture": VectorMixture(
        [0.4, 0.6, 0.0],
        (Coded(OVR, MEMBERS["lines"]), Softmax(W, B, "probability", 1e-5)) * 1 + (Softmax(0.5, B),),
    ),
    "mixture-with-floor": VectorMixture(
        [0.5, 0.5],
        (Coded(OVR, MEMBERS["lines"]), Softmax(W, B, "probability")),
        "probability",
        1e-3,
    ),
    "mixture-with-power": VectorMixture(
        [0.5, 0.5],
        (Coded(OVR, MEMBERS["lines"]), Softmax(0.5, B, "probability")),
        "probability",
        0.0,
        0.3,
    ),
}


@BITS
@pytest.mark.parametrize("name", OF_LOGITS)
def test_maps_of_logits(name, bits):
    assert largest(OF_LOGITS[name], Z, bits) <= (2e-15, 4e-6)[bits == 32]


@BITS
@pytest.mark.parametrize("name", OF_PROBABILITIES)
def test_maps_of_probabilities(name, bits):
    assert largest(OF_PROBABILITIES[name], P, bits) <= (2e-15, 2e-6)[bits == 32]


@pytest.mark.parametrize("name", ["normalize-steps", "columns"])
def test_steps_in_columns_are_on_the_same_side_in_float32(name):
    map_ = OF_PROBABILITIES[name]
    cuts = np.concatenate([m.x for m in map_.maps if isinstance(m, Piecewise)]).astype(np.float32)
    at = np.concatenate(
        (cuts, np.nextafter(cuts, np.float32(0)), np.nextafter(cuts, np.float32(1)))
    )
    assert largest(map_, np.repeat(at[:, None], K, axis=1), 32) <= 2e-7


@pytest.mark.parametrize("name", {**OF_LOGITS, **OF_PROBABILITIES})
def test_another_runtime_agrees(name):
    map_ = {**OF_LOGITS, **OF_PROBABILITIES}[name]
    rows = (Z if name in OF_LOGITS else P)[:40]
    with np.errstate(all="ignore"):
        (got,) = ReferenceEvaluator(to_onnx(map_)).run(None, {"score": rows})
    np.testing.assert_allclose(got, map_(rows), rtol=0, atol=2e-15)


@pytest.mark.parametrize("name", OF_PROBABILITIES)
def test_logits_give_what_their_softmax_gives(name):
    map_ = OF_PROBABILITIES[name]
    own = isinstance(map_, Columns)
    rows = 1.0 / (1.0 + np.exp(-Z)) if own else softmax(Z, axis=1)
    assert np.abs(exported(map_, Z, input="logit") - map_(rows)).max() <= 1e-9


def test_logits_of_a_dirichlet_map_go_on_where_probabilities_are_rounded_to_zero():
    z = np.array([[0.0, -900.0, -950.0, -1000.0]])
    assert exported(Softmax(0.01, np.zeros(K), "probability"), z, input="logit") == pytest.approx(
        softmax(0.01 * z, axis=1), abs=1e-15
    )


@pytest.mark.parametrize("name", OF_LOGITS)
def test_logits_of_logits_mean_nothing(name):
    with pytest.raises(InputError, match="takes logits as its scores"):
        to_onnx(OF_LOGITS[name], input="logit")


def test_a_bad_score_spoils_its_row_and_of_labels_only_its_own():
    rows = np.full((3, K), 0.25)
    rows[0, 2], rows[1, 0] = np.nan, np.inf
    whole = np.isnan(exported(OF_PROBABILITIES["normalize"], rows))
    own = np.isnan(exported(OF_PROBABILITIES["columns"], rows))
    assert whole.all(axis=1).tolist() == whole.any(axis=1).tolist() == [True, True, False]
    np.testing.assert_array_equal(own, ~np.isfinite(rows))


# --- codes that are solved by iteration -----------------------------------------------------------


def pairs(k):
    """All pairs of k classes."""
    code = np.zeros((k, k * (k - 1) // 2))
    for b, (i, j) in enumerate(combinations(range(k), 2)):
        code[i, b], code[j, b] = 1.0, -1.0
    return code


def demands(code, rng, n=150):
    """Columns' probabilities at random, rounded to 0 and 1, coarse, and such as some p gives."""
    r = rng.random((4 * n, code.shape[1]))
    r[:n], r[n : 2 * n] = np.round(r[:n]), np.round(r[n : 2 * n], 1)
    p = rng.dirichlet(np.full(len(code), 0.3), n)
    a, b = p @ (code > 0), p @ (code < 0)
    r[3 * n :] = a / (a + b)
    return r


DENSE = np.array([[1, 1, 1, -1, -1], [1, -1, -1, 1, -1], [-1, 1, -1, 1, 1], [-1, -1, 1, -1, 1.0]])


@pytest.mark.parametrize("weights", ["equal", "different", "some-zero"])
@pytest.mark.parametrize("combine", ["pairwise", "least_squares", "coupling"])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_all_pairs(k, combine, weights):
    rng = np.random.default_rng(k)
    code = pairs(k)
    n = np.full(code.shape[1], 2.0) if weights == "equal" else rng.random(code.shape[1]) + 0.1
    if weights == "some-zero":  # a class that nobody else knows, and no pair missing among the rest
        n[code[0] != 0] *= k == 2
    map_ = Coded(code, (Identity(),) * code.shape[1], combine, n)
    assert largest(map_, demands(code, rng)) <= 1e-12


@pytest.mark.parametrize("combine", ["least_squares", "coupling"])
@pytest.mark.parametrize("code", [DENSE, np.hstack((OVR, DENSE)), OVR[:, 1:]], ids=["5", "9", "3"])
def test_codes_without_zeros(code, combine):
    rng = np.random.default_rng(0)
    map_ = Coded(code, (Identity(),) * code.shape[1], combine, rng.random(code.shape[1]) + 0.1)
    assert largest(map_, demands(code, rng)) <= 1e-12


def test_a_code_with_several_best_answers_is_refused():
    open_ = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1.0]])
    with pytest.raises(InputError, match="several best answers"):
        to_onnx(Coded(open_, (Identity(),) * 2, "coupling"))
    some = pairs(4)[:, :-1]
    with pytest.raises(InputError, match="several best answers"):
        to_onnx(Coded(some, (Identity(),) * 5, "least_squares"))


def test_iterations_need_doubles():
    with pytest.raises(InputError, match="float=64"):
        to_onnx(Coded(pairs(3), (Identity(),) * 3, "coupling"), float=32)


def test_weights_that_float32_cannot_hold_are_refused():
    map_ = Coded(OVR, MEMBERS["steps"], "least_squares", [1.0, 1e-20, 1.0, 1.0])
    assert largest(map_, P) <= 1e-12
    with pytest.raises(InputError, match="float=64"):
        to_onnx(map_, float=32)


def test_no_rows():
    assert exported(Coded(pairs(3), (Identity(),) * 3, "coupling"), np.empty((0, 3))).shape == (
        0,
        3,
    )


# --- calibrators ----------------------------------------------------------------------------------

CALIBRATORS = {
    "temperature": cal.Temperature(),
    "vector": cal.VectorScaling(),
    "matrix": cal.MatrixScaling(),
    "dirichlet": cal.Dirichlet(),
    "structured": cal.StructuredScaling(),
    "ensemble temperature": cal.EnsembleTemperature(),
    "top label": cal.TopLabelCalibrator(cal.Platt()),
    "one-vs-rest": cal.CodedCalibrator(cal.Isotonic()),
    "coupled": cal.CodedCalibrator(cal.Beta(), combine="coupling"),
    "squares": cal.CodedCalibrator(cal.Isotonic(), combine="least_squares"),
    "auto": cal.AutoCalibrator(cv=2),
}


@pytest.mark.parametrize("scale", ["probabilities", "logits"])
@pytest.mark.parametrize("name", CALIBRATORS)
def test_every_calibrator_of_classes(name, scale):
    rng = np.random.default_rng(1)
    z = rng.normal(size=(240, 3)) * 2
    y = np.array(["a", "b", "c"])[np.argmax(z + rng.gumbel(size=z.shape), axis=1)]
    scores = softmax(z, axis=1) if scale == "probabilities" else z
    fitted = clone(CALIBRATORS[name]).fit(scores, y)
    got = exported(fitted, scores)
    np.testing.assert_allclose(
        got, fitted.predict_proba(scores, on_range="allow"), rtol=0, atol=1e-13
    )


def test_all_pairs_fitted():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 200)
    scores = rng.normal(size=(200, 3)) + pairs(3)[y]
    fitted = cal.CodedCalibrator(cal.Platt(), code="all_pairs").fit(scores, y)
    got = exported(fitted, scores)
    np.testing.assert_allclose(
        got, fitted.predict_proba(scores, on_range="allow"), rtol=0, atol=1e-12
    )


def test_several_labels():
    rng = np.random.default_rng(3)
    scores = rng.random((200, 3))
    fitted = cal.MultiLabelCalibrator(cal.Isotonic()).fit(scores, rng.random((200, 3)) < scores)
    got = exported(fitted, scores)
    np.testing.assert_array_equal(got, fitted.predict_proba(scores, on_range="allow"))
