"""Calibrators as ONNX models: onnxruntime gives what `calibrate` gives."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from sklearn.base import clone

import calibrant as cal
from calibrant.errors import InputError, MissingExtraError, ParameterError
from calibrant.export.onnx import to_onnx
from calibrant.losses import logit, sigmoid
from calibrant.maps import Chain, Identity, Interval, Logistic, Mixture, Piecewise, Segmented
from calibrant.rules.plan.nodes import regions
from calibrant.rules.sigmoids import FEATURES
from cases import each
from onnx_sessions import FLOAT, only
from strategies import MARGINS, PROBABILITIES
from twins import onnx as naive

BITS = pytest.mark.parametrize("bits", [64, 32])
ENDS = [0.0, -0.0, 1.0, 5e-324, 1 - 2.0**-53, 1e-300, 1e-40, -3.0, 2.0, 1e308, -1e308, 3e38, -3e38]
RNG = np.random.default_rng(10)


def exported(map_, scores, bits=64, input="score", **feeds):
    """The graph's probabilities of scores, in their type."""
    model = to_onnx(map_, float=bits, input=input)
    with np.errstate(over="ignore"):
        return only(model, score=np.asarray(scores).astype(FLOAT[bits]), **feeds)


def rounded(scores, bits):
    """Scores as finite numbers of a type, in double."""
    with np.errstate(over="ignore"):
        values = np.asarray(scores, dtype=float).astype(FLOAT[bits]).astype(float)
    return values[np.isfinite(values)]


def around(points, bits=64):
    """Points and the numbers of a type beside them, in double."""
    with np.errstate(over="ignore"):
        at = np.asarray(points, dtype=float).astype(FLOAT[bits])
        sides = [np.nextafter(at, FLOAT[bits](side)) for side in (-np.inf, np.inf)]
    flat = np.concatenate((at, *sides)).astype(float)
    return flat[np.isfinite(flat)]


def knots(map_):
    """Where a map has knots, on the scale of the score (nearly)."""
    if isinstance(map_, Piecewise):
        return sigmoid(map_.x) if map_.input == "logit" else map_.x
    inner = [map_.point] if isinstance(map_, Interval) else getattr(map_, "members", None)
    inner = getattr(map_, "steps", ()) if inner is None else inner
    return np.concatenate([knots(member) for member in inner]) if inner else np.empty(0)


def telling(map_, bits, n=200):
    """Scores that tell a wrong piece from the right one."""
    spread = np.concatenate((np.linspace(-0.2, 1.2, n), np.linspace(-9, 9, n)))
    return rounded(np.concatenate((around(knots(map_), bits), spread, ENDS)), bits)


def steps(m, input="score"):
    x = np.sort(RNG.random(m)) if input == "score" else np.sort(RNG.normal(size=m))
    return Piecewise.step(x, RNG.random(m + 1), input)


def lines(m, input="score", output="probability"):
    x = np.sort(RNG.random(m)) if input == "score" else np.sort(RNG.normal(size=m) * 3)
    return Piecewise.linear(x, np.sort(RNG.random(m)), input, output)


PLATT = Logistic(0.3, (("x", 2.0),))
FALLING = Logistic(-0.4, (("x", -1.5),))
BETA = Logistic(0.1, (("ln_p", 0.7), ("neg_ln_1mp", 0.4)))
TEMPERATURE = Logistic(0.0, (("z", 0.4),))
QUADRATIC = Logistic(0.2, (("z", 0.9), ("z2", -0.05)))
CLIPPED = Logistic(0.3, (("z", 0.9),), clip=(1e-7, 1 - 1e-9))
STEPS, LINES, CURVE = steps(40), lines(40), lines(30, "logit", "logit")
JUMPS = Piecewise([0.2, 0.5, 0.8], [0.1, 0.4, 0.9], [0.3, 0.2, 0.6])
#: the steps among them, whose bits are sure
FLAT = {
    "identity": Identity(),
    "constant": Piecewise.constant(0.3),
    "steps": STEPS,
    "steps-of-logit": steps(40, "logit"),
    "steps-on-logit-scale": Piecewise([0.5], [-1.0], [2.0], "score", "logit"),
    "step-then-formula": Chain((STEPS, BETA)),
    "formula-then-step": Chain((PLATT, STEPS)),
    "falling-then-step": Chain((FALLING, STEPS)),
    "formula-then-step-then-lines": Chain((BETA, Chain((steps(9, "logit"), LINES)))),
    "steps-in-a-band": Interval(STEPS, STEPS, STEPS),
    "mixed-steps": Mixture([0.25, 0.75], (STEPS, steps(30))),
    "segments-within": Chain((Segmented(STEPS, (1,), (LINES,)), TEMPERATURE)),
}
SMOOTH = {
    "platt": PLATT,
    "beta": BETA,
    "beta-of-margins": Logistic(0.1, (("ln_sigmoid", 0.02), ("softplus", 0.03))),
    "temperature": TEMPERATURE,
    "quadratic": QUADRATIC,
    "clipped": CLIPPED,
    "no-terms": Logistic(0.7, (("x", 0.0),)),
    "everything": Logistic(0.1, (("x", 0.2), ("z", 0.5), ("z2", 0.01), ("ln_p", 0.3))),
    "lines": LINES,
    "jumps": JUMPS,
    "curve": CURVE,
    "lines-of-logit": lines(20, "logit"),
    "lines-then-curve": Chain((lines(5), CURVE)),
    "formulas": Chain((PLATT, TEMPERATURE, BETA)),
    "formula-then-jumps": Chain((FALLING, JUMPS)),
    "up-and-down-then-lines": Chain((QUADRATIC, lines(4))),
    "mixed": Mixture([0.2, 0.3, 0.5], (PLATT, STEPS, CURVE)),
    "nested": Mixture([0.5, 0.5], (Mixture([0.5, 0.5], (JUMPS, LINES)), Chain((PLATT, JUMPS)))),
}
#: a chain of formulas rounds σ(f) before the next one takes its logit, where the graph keeps f
ROUNDED = {"formulas": 1e-10}
#: steep lines multiply the rounding of a logit, or of a score that is computed
STEEP = {"enir-authors": 4e-5, "spline-monotone": 4e-6}


# --- every kind ---------------------------------------------------------------------------------


@BITS
@pytest.mark.parametrize("name", FLAT)
def test_steps_are_equal_bit_for_bit(name, bits):
    map_ = FLAT[name]
    s = telling(map_, bits)
    np.testing.assert_array_equal(exported(map_, s, bits), map_(s).astype(FLOAT[bits]))


@BITS
@pytest.mark.parametrize("name", SMOOTH)
def test_lines_and_formulas_are_equal_to_a_few_units_in_the_last_place(name, bits):
    map_ = SMOOTH[name]
    s = telling(map_, bits)
    got = exported(map_, s, bits)
    assert got.dtype == FLOAT[bits]
    assert np.abs(got - map_(s)).max() <= (ROUNDED.get(name, 1e-15), 1e-6)[bits == 32]


@pytest.mark.parametrize("name", ["lines", "jumps"])
def test_lines_of_the_score_are_equal_bit_for_bit_in_double(name):
    s = telling(SMOOTH[name], 64)
    np.testing.assert_array_equal(exported(SMOOTH[name], s), SMOOTH[name](s))


@pytest.mark.parametrize("name", {**FLAT, **SMOOTH})
def test_another_runtime_agrees(name):
    map_ = {**FLAT, **SMOOTH}[name]
    s = telling(map_, 64, n=20)
    with np.errstate(over="ignore"):
        (got,) = ReferenceEvaluator(to_onnx(map_)).run(None, {"score": s})
    np.testing.assert_allclose(got, map_(s), rtol=0, atol=ROUNDED.get(name, 1e-15))


@BITS
@pytest.mark.parametrize("name", {**FLAT, **SMOOTH})
def test_what_is_no_number_gives_none(name, bits):
    bad = [np.nan, np.inf, -np.inf, 0.5]
    got = exported({**FLAT, **SMOOTH}[name], bad, bits)
    assert np.isnan(got).tolist() == [True, True, True, False]


@pytest.mark.parametrize("n", [0, 1])
def test_few_rows(n):
    assert exported(STEPS, np.full(n, 0.5)).shape == (n,)


@BITS
@pytest.mark.parametrize("scale", ["probability", "margin"])
@each()
def test_every_calibrator(case, scale, bits):
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    s = rng.random(120).round(3) if scale == "probability" else rng.normal(size=120) * 3
    y = rng.random(120) < (s**1.5 if scale == "probability" else sigmoid(s))
    fitted = clone(case.calibrator).fit(s, y).to_fitted()
    x = np.concatenate((rounded(s, bits), telling(fitted.map, bits)))
    got, want = exported(fitted, x, bits), fitted.calibrate(x, on_range="allow")
    assert np.abs(got - want).max() <= (1e-14, STEEP.get(case.name, 4e-7))[bits == 32]
    if isinstance(fitted.map, Piecewise) and fitted.map.is_step:
        np.testing.assert_array_equal(got, want.astype(got.dtype))


# --- at random ----------------------------------------------------------------------------------


@st.composite
def tables(draw, values=PROBABILITIES):
    """Ascending knots with two values for each, and scores at and around them."""
    score = draw(st.sampled_from([PROBABILITIES, MARGINS]))
    x = np.unique(np.array(draw(st.lists(score, min_size=1, max_size=9))) + 0.0)
    left, right = (np.array(draw(st.lists(values, min_size=len(x), max_size=len(x)))) for _ in "lr")
    s = np.array(draw(st.lists(score, max_size=5)) + ENDS)
    return x, left, right, s


@BITS
@given(table=tables())
def test_any_steps(bits, table):
    x, left, right, s = table
    values = np.append(left[:1], right)
    s = rounded(np.concatenate((s, around(x, bits))), bits)
    got = exported(Piecewise.step(x, values), s, bits)
    want = np.array([naive.step(x, values, score) for score in s])
    np.testing.assert_array_equal(got, want.astype(FLOAT[bits]))


@BITS
@given(table=tables())
def test_any_lines(bits, table):
    x, left, right, s = table
    map_ = Piecewise(x, left, right)
    s = rounded(np.concatenate((s, around(x, bits), x[1:] / 2 + x[:-1] / 2)), bits)
    got = exported(map_, s, bits)
    if bits == 64:
        np.testing.assert_array_equal(got, map_(s))
    want = [naive.line(x, left, right, score) for score in s]
    assert np.abs(got - want).max() <= (5e-16, 2e-7)[bits == 32]


@BITS
@pytest.mark.parametrize("input", ["score", "logit"])
@given(table=tables())
def test_any_steps_of_the_logit(bits, input, table):
    x, left, right, s = table
    map_ = Piecewise.step(x, np.append(left[:1], right), "logit")
    found = map_.x if input == "logit" else regions(map_.x, logit, False).low
    s = rounded(np.concatenate((s, around(found, bits))), bits)
    want = Piecewise(map_.x, map_.left, map_.right)(s) if input == "logit" else map_(s)
    np.testing.assert_array_equal(exported(map_, s, bits, input), want.astype(FLOAT[bits]))


coefficient = st.floats(-30, 30)


@BITS
@given(
    intercept=coefficient,
    terms=st.dictionaries(
        st.sampled_from(["x", "z", "z2", "ln_p", "neg_ln_1mp"]), coefficient, max_size=3
    ),
    scores=st.lists(PROBABILITIES, max_size=10),
)
def test_any_formula(bits, intercept, terms, scores):
    map_ = Logistic(intercept, tuple(terms.items()))
    s = rounded(np.array([*scores, *ENDS[:7]]), bits)
    size = abs(intercept) + sum(
        abs(c) * (1.0 + np.abs(FEATURES[name](s))) for name, c in terms.items()
    )
    # what the logarithms' rounding, and that of the sum, can change
    slope = np.minimum(np.exp(-np.maximum(np.abs(logit(map_(s))) - 1.0, 0.0)), 0.25)
    most = np.finfo(FLOAT[bits]).eps * (2.0 + 4.0 * np.minimum(size, 1e6) * slope)
    assert (np.abs(exported(map_, s, bits) - map_(s)) <= most).all()


# --- logits in ----------------------------------------------------------------------------------


@BITS
@pytest.mark.parametrize("name", {**FLAT, **SMOOTH})
def test_logits_give_what_their_probabilities_give(name, bits):
    map_ = {**FLAT, **SMOOTH}[name]
    z = rounded(np.concatenate((np.linspace(-40, 20, 300), np.linspace(-2, 2, 300))), bits)
    got = exported(map_, z, bits, "logit")
    assert np.abs(got - map_(sigmoid(z))).max() <= (2e-8, 1e-6)[bits == 32]


@BITS
@pytest.mark.parametrize("name", ["beta", "temperature", "quadratic", "clipped", "everything"])
def test_formulas_of_logits_go_on_where_probabilities_are_rounded_to_one(name, bits):
    map_ = SMOOTH[name]
    z = rounded([-800.0, -100.0, -3.0, 0.0, 5.0, 30.0, 37.0, 60.0, 800.0], bits)
    ends = (-1e8, 1e8) if map_.clip is None else logit(np.array(map_.clip))
    want = [naive.logistic_of_logit(map_.intercept, map_.terms, v) for v in np.clip(z, *ends)]
    assert np.abs(exported(map_, z, bits, "logit") - want).max() <= (1e-15, 2e-7)[bits == 32]


@BITS
def test_a_step_of_the_score_jumps_at_the_logit_where_numpy_does(bits):
    at = regions(STEPS.x, sigmoid, False).low
    z = np.concatenate((around(at[1:], bits), rounded(np.linspace(-9, 9, 50), bits)))
    got = exported(STEPS, z, bits, "logit")
    np.testing.assert_array_equal(got, STEPS(sigmoid(z)).astype(FLOAT[bits]))


def test_a_temperature_is_not_cut_at_the_logit_of_one():
    at = np.array([37.0, 60.0, 100.0])
    np.testing.assert_allclose(
        exported(TEMPERATURE, at, 64, "logit"), sigmoid(0.4 * at), rtol=1e-15
    )
    assert exported(TEMPERATURE, [1.0])[0] == TEMPERATURE([1.0])[0] < sigmoid(0.4 * 37.0)


# --- segments -----------------------------------------------------------------------------------

KEYS = tuple(f"k{i}" for i in range(250))


def of_each_kind(i):
    if i % 50 == 3:
        return Chain((BETA, JUMPS))
    makers = (steps, lines, lambda m: Logistic(m / 9, (("z", 0.5),)))
    return makers[i % 3](i % 13 + 1)


OWN = tuple(of_each_kind(i) for i in range(len(KEYS)))
FEW = (steps(3), steps(20), steps(1))


@BITS
@pytest.mark.parametrize("shares", ["whole", "shrunk"])
@pytest.mark.parametrize("taken", ["score", "default"])
@pytest.mark.parametrize("default", ["steps", "lines", "beta"])
def test_segments(bits, shares, taken, default):
    rng = np.random.default_rng(5)
    weights = None if shares == "whole" else np.r_[1.0, 0.0, rng.random(len(KEYS) - 2)]
    map_ = Segmented({**FLAT, **SMOOTH}[default], KEYS, OWN, weights, taken)
    s = rounded(np.concatenate((rng.random(2000), around(STEPS.x, bits))), bits)
    segment = np.array([*KEYS, "unknown"])[rng.integers(0, len(KEYS) + 1, len(s))]
    got = exported(map_, s, bits, segment=segment.astype(object))
    assert np.abs(got - map_(s, segment)).max() <= (1e-14, 2e-5)[bits == 32]


@BITS
def test_steps_of_segments_are_equal_bit_for_bit(bits):
    rng = np.random.default_rng(6)
    map_ = Segmented(STEPS, (-3, 0, 7), FEW)
    s = np.concatenate([around(own.x, bits) for own in (STEPS, *FEW)])
    segment = rng.integers(-4, 9, len(s))
    got = exported(map_, s, bits, segment=segment)
    np.testing.assert_array_equal(got, map_(s, segment).astype(FLOAT[bits]))


def test_a_fitted_calibrator_of_segments():
    rng = np.random.default_rng(0)
    s, segment = rng.random(600), rng.choice(["a", "b", "c"], 600)
    y = rng.random(600) < np.where(segment == "a", s, s**3)
    fitted = cal.SegmentedCalibrator(cal.Platt()).fit(s, y, segments=segment)
    got = exported(fitted, s, segment=segment.astype(object))
    np.testing.assert_allclose(
        got, fitted.calibrate(s, segments=segment, on_range="allow"), rtol=0, atol=1e-15
    )


def test_segments_that_onnx_cannot_tell_apart_are_refused():
    with pytest.raises(InputError, match="all text or all whole numbers"):
        to_onnx(Segmented(STEPS, ("1", 1), (STEPS, STEPS)))
    with pytest.raises(InputError, match="64 bits"):
        to_onnx(Segmented(STEPS, (2**63,), (STEPS,)))


def test_without_segments_no_segment_is_asked_for():
    model = to_onnx(Segmented(STEPS, (), ()))
    assert [value.name for value in model.graph.input] == ["score"]


# --- the model ----------------------------------------------------------------------------------


def test_the_model_says_what_it_is():
    fitted = cal.Isotonic(pos_label="no").fit([0.1, 0.4, 0.6, 0.9], ["no", "yes", "no", "yes"])
    model = to_onnx(fitted)
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert facts["calibrant.method"] == "Isotonic"
    assert facts["calibrant.version"] == model.producer_version == cal.__version__
    assert json.loads(facts["calibrant.classes"]) == ["no", "yes"]
    assert json.loads(facts["calibrant.pos_label"]) == "no"
    assert model.producer_name == "calibrant"
    assert (model.ir_version, model.opset_import[0].version) == (7, 13)


def test_a_loaded_calibrator_is_the_same_model(tmp_path):
    fitted = cal.Beta().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    cal.save(fitted, tmp_path / "c.json")
    assert to_onnx(cal.load(tmp_path / "c.json")) == to_onnx(fitted)


def test_wrong_words_are_refused():
    with pytest.raises(ParameterError, match="input must be one of"):
        to_onnx(STEPS, input="margin")
    with pytest.raises(ParameterError, match="float must be one of"):
        to_onnx(STEPS, float=16)
    with pytest.raises(InputError, match="fitted calibrator"):
        to_onnx(np.tanh)


def test_a_jump_after_a_map_that_rises_and_falls_is_refused():
    with pytest.raises(InputError, match="neither rise nor fall"):
        to_onnx(Chain((QUADRATIC, JUMPS)))


def test_coefficients_that_float32_cannot_multiply_are_refused():
    with pytest.raises(InputError, match="float=64"):
        to_onnx(Logistic(0.0, (("x", 1e30),)), float=32)


@pytest.mark.parametrize(
    "map_",
    [
        Piecewise.linear([0.2, 0.7], [-1e300, 1e300], output="logit"),
        Piecewise.linear([-1e300, 1e300], [0.0, 1.0], "logit"),
        Chain((Logistic(0.0, (("x", 1.0),)), Piecewise.linear([-1e38, 3e38], [0.0, 1.0]))),
    ],
    ids=["logits", "knots", "after"],
)
def test_lines_that_float32_cannot_hold_are_refused(map_):
    scores = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(exported(map_, scores), map_(scores), rtol=0, atol=1e-14)
    with pytest.raises(InputError, match="float=64"):
        to_onnx(map_, float=32)


def test_steps_and_lines_of_the_score_may_be_anywhere_in_float32():
    for map_ in (
        Piecewise.step([-1e300, 1e300], [0.1, 0.5, 0.9]),
        Piecewise([0.5], [-1e300], [1e300], output="logit"),
        Piecewise.linear([-1e300, 1e300], [0.0, 1.0]),
    ):
        scores = rounded(ENDS, 32)
        np.testing.assert_allclose(exported(map_, scores, 32), map_(scores), rtol=0, atol=1e-7)


def test_without_onnx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"calibrant\[onnx\]"):
        to_onnx(STEPS)


def test_the_module_does_not_import_onnx():
    code = (
        "import sys, calibrant.export.onnx; print({'onnx', 'sklearn', 'numba'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
