"""Maps are values: exact, immutable, and the same after JSON."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant import rules
from calibrant.errors import InputError, ParameterError
from calibrant.losses import logit, sigmoid
from calibrant.maps import (
    Chain,
    Coded,
    Identity,
    Interval,
    Logistic,
    Map,
    Mixture,
    Piecewise,
    Segmented,
    Softmax,
    map_from_dict,
)
from calibrant.rules.base import known_kinds

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
UNIT = st.floats(0, 1)


@st.composite
def piecewise(draw, input=None, output=None):
    input = input or draw(st.sampled_from(["score", "logit"]))
    output = output or draw(st.sampled_from(["probability", "logit"]))
    knots = st.floats(-1, 2) if draw(st.booleans()) else FLOATS
    x = sorted(set(draw(st.lists(knots, min_size=1, max_size=6))) - {-0.0} | {draw(knots) + 0.0})
    value = UNIT if output == "probability" else st.floats(-50, 50)
    left = draw(st.lists(value, min_size=len(x), max_size=len(x)))
    right = draw(st.lists(value, min_size=len(x), max_size=len(x)))
    return Piecewise(np.array(x), np.array(left), np.array(right), input, output)


LOGISTIC = st.builds(
    Logistic,
    st.floats(-5, 5),
    st.dictionaries(
        st.sampled_from(["x", "z", "z2", "ln_p", "neg_ln_1mp"]), st.floats(-9, 9), max_size=5
    ).map(lambda d: tuple(d.items())),
)
LEAVES = st.one_of(piecewise(), LOGISTIC, st.just(Identity()))


def mixtures(children):
    return st.lists(st.tuples(st.floats(0.01, 1), children), min_size=1, max_size=4).map(
        lambda parts: Mixture(
            np.array([w for w, _ in parts]) / sum(w for w, _ in parts), tuple(m for _, m in parts)
        )
    )


MAPS = st.recursive(
    LEAVES,
    lambda children: st.one_of(
        mixtures(children),
        st.lists(children, min_size=1, max_size=3).map(Chain),
        st.builds(Interval, children, children, children, st.sampled_from([None, 0.9])),
        st.builds(
            lambda d, m, w, i: Segmented(d, ("a", 7), (m, d), w, i),
            children,
            children,
            st.one_of(st.none(), st.lists(UNIT, min_size=2, max_size=2)),
            st.sampled_from(["score", "default"]),
        ),
    ),
    max_leaves=6,
)
PAIRS = np.array([[1, 1, 0], [-1, 0, 1], [0, -1, -1]])
SPLITS = np.array([[1, 1, 1], [-1, 1, -1], [-1, -1, 1]])
VECTORS = st.one_of(
    st.lists(LEAVES, min_size=2, max_size=4).map(tuple).map(Coded.one_vs_rest),
    st.builds(
        lambda maps, combine, weights: Coded(PAIRS, maps, combine, weights),
        st.lists(LEAVES, min_size=3, max_size=3),
        st.sampled_from(["least_squares", "coupling", "pairwise"]),
        st.sampled_from([None, [1.0, 2.0, 0.5], [1, 1, 0]]),
    ),
    st.builds(
        lambda maps, combine: Coded(SPLITS, maps, combine),
        st.lists(LEAVES, min_size=3, max_size=3),
        st.sampled_from(["least_squares", "coupling"]),
    ),
    st.builds(
        lambda b, i: Softmax(0.5, b, i),
        st.lists(st.floats(-3, 3), min_size=2, max_size=4),
        st.sampled_from(["logit", "probability"]),
    ),
    st.just(Softmax(np.arange(9.0).reshape(3, 3), np.zeros(3))),
    st.just(Softmax(np.arange(3.0), np.zeros(3))),
)


def evaluate_naively(m, s):
    """The definition of a Piecewise map, one score at a time."""
    out = []
    for v in logit(s) if m.input == "logit" else s:
        if v < m.x[0]:
            value = m.left[0]
        elif v >= m.x[-1]:
            value = m.right[-1]
        else:
            i = int(np.searchsorted(m.x, v, side="right")) - 1
            low, high = Fraction(m.x[i]), Fraction(m.x[i + 1])
            t = float((Fraction(v) - low) / (high - low))
            value = m.right[i] * (1 - t) + m.left[i + 1] * t
        out.append(value)
    values = np.array(out)
    return sigmoid(values) if m.output == "logit" else values


@given(piecewise(), st.lists(st.one_of(FLOATS, UNIT), min_size=1, max_size=20))
def test_piecewise_follows_its_definition(m, s):
    s = np.concatenate((np.array(s), m.x))
    assert np.allclose(m(s), evaluate_naively(m, s), rtol=0, atol=1e-9)


@given(piecewise())
def test_piecewise_limits(m):
    below, value = m.limits(m.x)
    assert (below == m.left).all()
    assert (value == m.right).all()


@given(st.one_of(MAPS, VECTORS), st.lists(st.one_of(UNIT, FLOATS), min_size=1, max_size=9))
def test_values_survive_json_pickle_and_copy(m, s):
    again = map_from_dict(json.loads(json.dumps(m.to_dict(), allow_nan=False)))
    scores = np.array(s)
    if isinstance(m, Softmax | Coded):
        k = len(m.bias) if isinstance(m, Softmax) else len(m.maps)
        scores = np.tile(np.clip(scores, -1e3, 1e3), (k, 1)).T
    for other in (
        again,
        Map.from_dict(m.to_dict()),
        pickle.loads(pickle.dumps(m)),
        copy.deepcopy(m),
        copy.copy(m),
    ):
        assert other == m
        assert hash(other) == hash(m)
        assert np.array_equal(other(scores), m(scores))
    p = m(scores)
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()


@given(MAPS)
def test_arrays_inside_cannot_be_written(m):
    for value in (m, pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
        arrays = [v for _, v in value._items() if isinstance(v, np.ndarray)]
        for array in arrays:
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)


def test_the_callers_array_stays_the_callers():
    x = np.array([0.0, 1.0])
    m = Piecewise.linear(x, x)
    x[0] = 0.5
    assert m.x[0] == 0.0


@given(
    st.lists(
        st.tuples(st.floats(0.01, 1), piecewise("score", "probability")), min_size=1, max_size=5
    ),
    st.lists(st.floats(-2, 3), min_size=1, max_size=30),
)
def test_mixtures_of_pieces_collapse_exactly(parts, s):
    total = sum(w for w, _ in parts)
    mixture = Mixture(np.array([w / total for w, _ in parts]), tuple(m for _, m in parts))
    one = mixture.collapse()
    s = np.concatenate((np.array(s), one.x))
    assert isinstance(one, Piecewise)
    assert np.allclose(one(s), mixture(s), rtol=0, atol=1e-12)


SMOOTH = st.builds(
    Logistic,
    st.floats(-3, 3),
    st.dictionaries(
        st.sampled_from(["z", "z2", "ln_p", "neg_ln_1mp"]), st.floats(-3, 3), max_size=3
    ).map(lambda d: tuple(d.items())),
)


@given(
    st.lists(
        st.one_of(
            SMOOTH,
            piecewise("logit"),
            st.just(Identity()),
            st.lists(
                st.tuples(st.floats(0, 1), UNIT, UNIT),
                min_size=1,
                max_size=4,
                unique_by=lambda t: t[0],
            )
            .map(sorted)
            .map(lambda k: Piecewise(*np.array(k).T)),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([1e-3, 1e-5]),
)
def test_other_mixtures_collapse_within_the_tolerance(members, tol):
    mixture = Mixture(np.full(len(members), 1 / len(members)), tuple(members))
    one = mixture.collapse(tol=tol)
    z = np.linspace(-40, 36, 4001)
    s = np.concatenate((sigmoid(z), np.linspace(0, 1, 2001)))
    knots = np.concatenate(
        [m.x if m.input == "score" else sigmoid(m.x) for m in members if isinstance(m, Piecewise)]
        or [[]]
    )
    near = (
        np.abs(logit(s)[:, None] - logit(knots)).min(axis=1) < 1e-6
        if len(knots)
        else np.zeros(len(s), bool)
    )
    assert np.abs(one(s) - mixture(s))[~near].max() <= tol


def test_collapse_of_margins_and_nested_mixtures():
    step, sig = Piecewise.step([0.0, 2.0], [0.1, 0.3, 0.9]), Logistic(1.0, (("x", -2.0),))
    inner = Mixture([0.5, 0.5], (step, Interval(step, step, step)))
    nested = Mixture([0.2, 0.0, 0.8], (inner, step, step))
    assert np.allclose(nested.collapse().right, step.right, rtol=0, atol=1e-15)
    assert Mixture([1.0], (step,)).collapse() == step
    both = Mixture([0.3, 0.7], (inner, sig))
    with pytest.raises(ParameterError, match="tol=1e-6"):
        both.collapse()
    with pytest.raises(ParameterError, match="above 0"):
        both.collapse(tol=0)
    with pytest.raises(ParameterError, match="larger tolerance"):
        Mixture([1.0], (Logistic(0.0, (("x", 1.0),)),)).collapse(tol=1e-13)
    s = np.linspace(-100, 100, 50001)
    assert np.abs(both.collapse(tol=1e-7)(s) - both(s)).max() <= 1e-7
    chained = Mixture([1.0], (Chain((Logistic(0.0, (("z", 2.0),)),)),))
    p = np.linspace(0, 1, 1001)
    assert np.abs(chained.collapse(tol=1e-6)(p) - chained(p)).max() <= 1e-6
    on_logit_scale = Piecewise([0.5], [-3.0], [3.0], output="logit")
    assert Mixture([1.0], (on_logit_scale,)).collapse().is_step


def test_collapse_refuses_what_it_could_not_see():
    logit_member = Logistic(0.0, (("z", 1.0),))
    far = Piecewise.step([-2.0, 2.0], [0.1, 0.5, 0.9])
    with pytest.raises(ParameterError, match="outside"):
        Mixture([0.5, 0.5], (far, logit_member)).collapse(tol=1e-4)
    narrow = Chain((Logistic(0.0, (("x", 1.0),)), Piecewise.step([0.5, 0.5001], [0.1, 0.9, 0.1])))
    with pytest.raises(ParameterError, match="chain"):
        Mixture([1.0], (narrow,)).collapse(tol=1e-4)


X2 = np.array([0.0, 1.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Piecewise([], [], []), "at least one knot"),
        (lambda: Piecewise([1.0, 1.0], X2, X2), "strictly ascending"),
        (lambda: Piecewise([0.0], [0.0, 1.0], [1.0]), "at least one knot"),
        (lambda: Piecewise([0.0], [np.nan], [1.0]), "finite"),
        (lambda: Piecewise([0.0], [2.0], [1.0]), r"\[0, 1\]"),
        (lambda: Piecewise([0.0], ["a"], [1.0]), "numbers"),
        (lambda: Piecewise([[0.0]], [[1.0]], [[1.0]]), "dimension"),
        (lambda: Piecewise([0.0], [1.0], [1.0], "odds"), "input must be one of"),
        (lambda: Piecewise([0.0], [1.0], [1.0], "score", "odds"), "output must be one of"),
        (lambda: Logistic(np.inf, ()), "intercept"),
        (lambda: Logistic(True, ()), "must be a number"),
        (lambda: Logistic(0.0, (("sin", 1.0),)), "feature must be one of"),
        (lambda: Logistic(0.0, (("x", 1.0), ("x", 2.0))), "occur once"),
        (lambda: Mixture([1.0], ()), "one weight per member"),
        (lambda: Mixture([0.5], (Identity(),)), "sum to 1"),
        (lambda: Mixture([1.0], ("x",)), "maps of one score"),
        (lambda: Chain(()), "non-empty"),
        (lambda: Interval(Identity(), Identity(), "x"), "maps of one score"),
        (lambda: Interval(Identity(), Identity(), Identity(), 1.5), "level"),
        (lambda: Segmented(Identity(), ("a", "a"), (Identity(), Identity())), "each key once"),
        (lambda: Segmented(Identity(), (1.5,), (Identity(),)), "strings or integers"),
        (lambda: Segmented("x", (), ()), "maps of one score"),
        (lambda: Segmented(Identity(), (), (), [0.5]), "one weight per key"),
        (lambda: Segmented(Identity(), ("a",), (Identity(),), [1.5]), "must lie in"),
        (lambda: Segmented(Identity(), (), (), None, "logit"), "input of a segmented map"),
        (lambda: Segmented(Identity(), (), ())([0.1], ["a", "b"]), "one segment per score"),
        (lambda: Softmax(np.eye(3), [0.0, 0.0]), "cannot have a matrix"),
        (lambda: Softmax(1.0, [0.0, 0.0])([0.1]), r"\(n, 2\)"),
        (lambda: Coded(np.eye(2), (Identity(), Identity())), "one-against-all"),
        (lambda: Coded(2 * np.eye(2), (Identity(), Identity())), "−1, 0 and 1"),
        (lambda: Coded.one_vs_rest((Identity(), "x")), "maps of one score"),
        (lambda: Coded(np.eye(2), (Identity(),)), "cannot go with 1 maps"),
        (lambda: Coded.one_vs_rest((Identity(), Identity()))([[0.1]]), r"\(n, 2\)"),
        (lambda: Coded(PAIRS, (Identity(),) * 3, "vote"), "combine must be one of"),
        (lambda: Coded(PAIRS, (Identity(),) * 3), "one-against-all"),
        (lambda: Coded(SPLITS, (Identity(),) * 3, "pairwise"), "all pairs"),
        (lambda: Coded(np.eye(3), (Identity(),) * 3, "coupling"), "both 1 and −1"),
        (lambda: Coded(PAIRS, (Identity(),) * 3, "coupling", [1.0]), "weights must be 3 numbers"),
        (lambda: Coded(PAIRS, (Identity(),) * 3, "coupling", [1, -1, 1]), "weights must be 3"),
        (lambda: Coded(PAIRS, (Identity(),) * 3, "coupling", [0, 0, 0]), "not all 0"),
    ],
)
def test_impossible_maps_cannot_be_made(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (7, "object with a 'kind'"),
        ({}, "object with a 'kind'"),
        ({"kind": "spline", "version": 1}, "unknown kind of map 'spline'.*upgrade"),
        ({"kind": "identity"}, "format version"),
        ({"kind": "identity", "version": True}, "format version"),
        ({"kind": "identity", "version": 99}, "format version 99.*Upgrade"),
        ({"kind": "identity", "version": 1, "extra": 1}, "fields"),
        ({"kind": "logistic", "version": 1, "intercept": 0.0}, "fields"),
        ({"kind": "logistic", "version": 1, "intercept": float("nan"), "terms": []}, "finite"),
        ({"kind": "logistic", "version": 1, "intercept": 0.0, "terms": 5}, "cannot be made"),
        ({"kind": "logistic", "version": 1, "intercept": object(), "terms": []}, "type object"),
        ({"kind": "chain", "version": 1, "steps": ["identity"]}, "sequence of maps"),
    ],
)
def test_foreign_descriptions_are_refused(description, message):
    with pytest.raises(InputError, match=message):
        map_from_dict(description)


def test_deep_nesting_is_refused():
    description = Identity().to_dict()
    for _ in range(40):
        description = {"kind": "chain", "version": 1, "steps": [description]}
    with pytest.raises(InputError, match="deep"):
        map_from_dict(description)


def test_values_differ_when_anything_differs():
    a = Piecewise.step([0.5], [0.1, 0.9])
    assert a != Piecewise.step([0.5], [0.1, 0.8])
    assert a != Piecewise.step([0.5], [0.1, 0.9], input="logit")
    assert a != Identity()
    assert len({a, Piecewise.step([0.5], [0.1, 0.9])}) == 1


def test_large_inputs_go_block_by_block():
    rng = np.random.default_rng(0)
    s = rng.random((300_000, 1))
    m = Piecewise.linear([0.0, 0.3, 1.0], [0.1, 0.5, 0.6])
    assert np.array_equal(m(s)[:, 0], np.concatenate([m(part) for part in np.split(s[:, 0], 30)]))


def test_segments_of_many_rows():
    rng = np.random.default_rng(1)
    keys = tuple(range(50))
    m = Segmented(Piecewise.constant(0.5), keys, tuple(Piecewise.constant(k / 50) for k in keys))
    segments = rng.integers(0, 60, 1000)
    expected = np.where(segments < 50, segments / 50, 0.5)
    assert (m(rng.random(1000), segments) == expected).all()


def test_reprs_are_short():
    for m in (
        Identity(),
        Piecewise.step([0.5], [0, 1]),
        Piecewise.linear([0, 1], [0, 1], "logit"),
        Piecewise.linear([0, 1], [0, 4], output="logit"),
        Logistic(0.5, (("z", 2.0),)),
    ):
        assert len(repr(m)) < 100


@pytest.mark.parametrize("combine", ["least_squares", "coupling", "pairwise"])
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5]])
def test_coded_maps_combine_as_the_functions_do(combine, weights):
    from calibrant import multiclass

    s = np.array([[0.75, 0.6, 0.25], [0.1, 0.9, 0.4], [0.0, 1.0, 0.0]])
    steep = Logistic(0.0, (("z", 2.0),))
    r = np.column_stack((steep(s[:, 0]), s[:, 1], steep(s[:, 2])))
    m = Coded(PAIRS, (steep, Identity(), steep), combine, weights)
    assert np.array_equal(m(s), getattr(multiclass, combine)(r, PAIRS, weights=weights))


def test_coded_columns_may_come_in_any_order():
    order = [2, 0, 1]
    m = Coded((2.0 * np.eye(3) - 1.0)[:, order], (Identity(),) * 3)
    r = np.array([[0.1, 0.2, 0.5]])
    assert np.allclose(m(r[:, order]), r / 0.8, rtol=0, atol=1e-15)


def test_coded_files_without_weights_still_load():
    identity = {"kind": "identity", "version": 1}
    old = {"kind": "coded", "version": 1, "code": [[1.0, -1.0], [-1.0, 1.0]]}
    m = map_from_dict({**old, "maps": [identity, identity], "combine": "normalize"})
    assert m == Coded.one_vs_rest((Identity(), Identity()))
    assert m.to_dict()["version"] == 2
    assert m.to_dict()["weights"] is None


# --- a new kind -----------------------------------------------------------------------------------

HALVED = """
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from calibrant.rules.base import Map
from calibrant.rules.base import number_field
from calibrant.rules.plan.nodes import Clip, Linear


@dataclass(frozen=True, eq=False)
class Halved(Map):
    kind: ClassVar[str] = "halved"

    share: float = field(metadata=number_field("share", 1.0))

    trend = size = 1

    def __call__(self, scores):
        return self.share * np.clip(np.asarray(scores, dtype=np.float64), 0.0, 1.0)

    def lowered(self, axis):
        return Linear(0.0, ((self.share, Clip(axis.score.node, 0.0, 1.0)),))
"""


@pytest.fixture
def halved(tmp_path, monkeypatch):
    """The file of a new kind in the folder of rules."""
    (tmp_path / "halved.py").write_text(HALVED)
    monkeypatch.setattr(rules, "__path__", [*rules.__path__, str(tmp_path)])
    known_kinds.cache_clear()
    yield
    known_kinds.cache_clear()
    sys.modules.pop("calibrant.rules.halved", None)


@pytest.mark.usefixtures("halved")
def test_a_new_kind_is_one_file():
    map_ = Map.from_dict({"kind": "halved", "version": 1, "share": 0.5})
    assert map_([0.5, 3.0]).tolist() == [0.25, 0.5]
    assert Map.from_dict(map_.to_dict()) == map_
    module = {}
    exec(cal.to_python(Chain((map_, Piecewise.step([0.25], [0.1, 0.9])))), module)
    assert [module["calibrate"](s) for s in (0.49, 0.5)] == [0.1, 0.9]
    assert "0.5e0 * GREATEST(0e0, LEAST(1e0, score))" in cal.to_sql(map_)
    assert "calibrant.rules.halved.Halved" in cal.export.skops_types()
    with pytest.raises(InputError, match="share must be finite and at most 1"):
        Map.from_dict({"kind": "halved", "version": 1, "share": 2.0})
    with pytest.raises(InputError, match="does not say its span"):
        map_.span  # noqa: B018


# --- mirrored maps: scores that run the other way -------------------------------------------------


CENTRES = st.sampled_from([0.0, 1.0, 100.0])


@given(piecewise("score", "probability"), CENTRES, st.lists(st.floats(-3, 103)))
def test_mirrored_jumps_lie_where_the_mirrored_score_passes_the_knot(step, centre, more):
    """g(s) = f(centre − s) to the bit where pieces are flat, at the knots and beside them."""
    step = Piecewise(step.x, step.left, np.append(step.left[1:], step.right[-1:]), "score")
    near = np.clip(centre - step.x, -1e300, 1e300)
    s = np.concatenate([near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf), more])
    assert step.mirrored(centre)(s).tolist() == step(centre - s).tolist()


@given(piecewise("score", "logit"), UNIT)
def test_mirrored_lines(line, s):
    """Continuous lines are the same to rounding."""
    line = Piecewise.linear(line.x, line.right, "score", "logit")
    if np.diff(line.x).min(initial=1.0) > 1e-3:
        assert line.mirrored(1.0)([s])[0] == pytest.approx(line([1.0 - s])[0], abs=1e-9)


@pytest.mark.parametrize("names", [("z", "z2"), ("ln_p", "neg_ln_1mp"), ("x",)])
def test_mirrored_formulas(names):
    """The features of 1 − s are those of s; of scores near 0 more exactly than 1 − s is."""
    f = Logistic(0.3, tuple((name, 0.4 + 0.3 * i) for i, name in enumerate(names)))
    s = np.linspace(0.01, 0.99, 99)
    assert np.allclose(f.mirrored(1.0)(s), f(1.0 - s), rtol=1e-12)
    back = f.mirrored(1.0).mirrored(1.0)
    assert dict(back.terms) == pytest.approx(dict(f.terms))
    tail = Logistic(0.0, (("z", 1.0),)).mirrored(1.0)([1e-20, 1e-18])
    assert tail.tolist() == [1.0, 1.0]
    tail = Logistic(0.0, (("z", -1.0),)).mirrored(1.0)([1e-20, 1e-18])
    assert tail.tolist() == pytest.approx([1e-20, 1e-18])


def test_mirrored_margins():
    f = Logistic(0.3, (("ln_sigmoid", 1.5), ("softplus", 0.5)))
    s = np.linspace(-60, 60, 241)
    assert np.allclose(f.mirrored(0.0)(s), f(-s), rtol=1e-12)
    with pytest.raises(InputError, match="cannot be turned round 5"):
        f.mirrored(5.0)
    clipped = Logistic(0.0, (("z", 1.0),), clip=(0.1, 0.8)).mirrored(1.0)
    assert clipped.clip == pytest.approx((0.2, 0.9))


def test_mirrored_maps_of_maps():
    """Chains, bands, mixtures and segments are mirrored part by part."""
    step, curve = Piecewise.step([0.3, 0.6], [0.1, 0.4, 0.8]), Logistic(0.1, (("z", 1.3),))
    s = np.linspace(0.01, 0.98, 53)
    whole = [
        Chain((curve, step)),
        Interval(step, curve, curve),
        Mixture([0.25, 0.75], (step, curve)),
        Identity(),
    ]
    for one in whole:
        assert np.allclose(one.mirrored(1.0)(s), one(1.0 - s), rtol=1e-12)
    band = Interval(step, curve, curve).mirrored(1.0).bounds(s)
    assert np.allclose(band, Interval(step, curve, curve).bounds(1.0 - s))
    for input in ("score", "default"):
        parts = Segmented(curve, ("a", "b"), (step, curve), [0.5, 1.0], input)
        keys = np.array(["a", "b", "new"])[np.arange(len(s)) % 3]
        assert np.allclose(parts.mirrored(1.0)(s, keys), parts(1.0 - s, keys), rtol=1e-12)
