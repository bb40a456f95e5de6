"""Plans: their interpreter gives what maps give, and is the twin that printers are held to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from calibrant import to_python
from calibrant.errors import InputError
from calibrant.losses import sigmoid
from calibrant.maps import Chain, Logistic, Map, Piecewise, Segmented
from calibrant.rules.plan.interpreter import evaluate
from calibrant.rules.plan.nodes import (
    LOST,
    Input,
    Pieces,
    PlanTarget,
    double_at,
    double_rank,
    flat_value,
    on_line,
    operands,
    regions_on_stretches,
    stretches,
    use_counts,
)
from strategies import MAPS, NESTED
from subjects import (
    BOTH,
    HILL,
    JUMP,
    LINE,
    MANY,
    MANY_LINES,
    ROWS,
    SEGMENTED,
    SHAPES,
    telling,
    wavering,
)

ANYWHERE = PlanTarget("anything", "Apply it in memory.")
TOL, STEEP = 1e-14, 1e-12


def scores_of(map_):
    return np.concatenate((telling(map_, False), telling(map_, True)))


def far(got, wanted):
    return float(np.abs(np.asarray(got) - wanted).max())


def assert_near(got, map_, scores, tol):
    """The values of a map; where a function before a jump wavers, either side of the jump."""
    wrong = scores[np.abs(got - map_(scores)) > tol]
    assert wavering(map_, wrong).all(), wrong


# --- the interpreter ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_what_its_map_is(shape):
    map_, scores = SHAPES[shape], scores_of(SHAPES[shape])
    assert far(evaluate(map_.plan(ANYWHERE), scores), map_(scores)) <= TOL


@pytest.mark.parametrize("name", SEGMENTED)
def test_segments(name):
    map_ = SEGMENTED[name]
    scores, plan = telling(map_, False), map_.plan(ANYWHERE)
    for key in (*map_.seen, "new"):
        wanted = map_.member(key)(scores)
        assert far(evaluate(plan, scores, [key] * len(scores)), wanted) <= TOL


@pytest.mark.parametrize("name", ROWS)
def test_rows(name):
    map_ = ROWS[name]
    rows = np.random.default_rng(3).normal(0, 2, (100, map_.n_columns))
    rows[0], rows[1] = 0.0, 300.0
    assert far(evaluate(map_.plan(ANYWHERE), rows), map_(rows)) <= TOL


@pytest.mark.parametrize("name", [name for name in ROWS if ROWS[name].reads == "probability"])
def test_rows_of_logits(name):
    z = np.random.default_rng(4).normal(0, 2, (100, 3))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    assert far(evaluate(ROWS[name].plan(ANYWHERE, "logit"), z), ROWS[name](p)) <= 1e-13


@pytest.mark.parametrize("shape", ["hill", "beta", "all terms", "jumps and lines of the logit"])
def test_logits_come_in(shape):
    map_, z = SHAPES[shape], np.linspace(-8, 8, 500)
    plan = map_.plan(ANYWHERE, "logit")
    assert far(evaluate(plan, z), map_(sigmoid(z))) <= STEEP
    assert far(evaluate(plan, 10 * z), map_.of_logit(10 * z)) <= TOL


@given(map_=MAPS)
def test_random_maps(map_):
    scores = scores_of(map_)
    assert_near(evaluate(map_.plan(ANYWHERE), scores), map_, scores, TOL)


@given(map_=NESTED)
def test_random_chains_and_mixtures(map_):
    """Every map has a plan that gives its values, or is refused since a jump could be missed."""
    scores = scores_of(map_)
    try:
        plan = map_.plan(ANYWHERE)
    except InputError as refused:
        assert "neither rise nor fall" in str(refused)  # noqa: PT017
        return
    assert_near(evaluate(plan, scores), map_, scores, STEEP)


def test_where_a_logarithm_goes_back_and_forth_the_plan_has_one_border():
    """By the log1p of glibc the map passes ¾ three times within 20 doubles."""
    map_ = Chain((Logistic(-0.5, (("ln_sigmoid", -2.15625),)), Piecewise.step([0.75], [0.0, 1.0])))
    scores = double_at(double_rank(-0.09425622028625194) + np.arange(-100, 101))
    got = evaluate(map_.plan(ANYWHERE), scores)
    assert (np.diff(got) <= 0).all()
    assert got[[0, -1]].tolist() == map_(scores)[[0, -1]].tolist() == [1.0, 0.0]
    assert_near(got, map_, scores, TOL)


@given(map_=MAPS)
def test_printed_as_python_it_is_the_same(map_):
    scores, module = scores_of(map_), {}
    exec(to_python(map_), module)
    wanted = evaluate(map_.plan(ANYWHERE), scores)
    assert far([module["calibrate"](s) for s in scores.tolist()], wanted) <= STEEP


@given(map_=NESTED)
def test_what_has_a_plan_can_be_printed(map_):
    """Where a small root of a steep line follows, values have few digits; refusals are the same."""
    try:
        map_.plan(ANYWHERE)
    except InputError:
        with pytest.raises(InputError, match="cannot be written as Python"):
            to_python(map_)
        return
    module = {}
    exec(to_python(map_), module)
    assert 0.0 <= module["calibrate"](0.5) <= 1.0


# --- borders --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "map_",
    [
        Chain((LINE, JUMP)),
        Chain((LINE, BOTH)),
        Chain((MANY_LINES, MANY)),
        Chain((LINE, LINE, JUMP)),
        Chain((MANY_LINES, BOTH, JUMP)),
    ],
    ids=repr,
)
def test_jumps_after_lines_that_rise_and_fall_are_exact(map_):
    rng = np.random.default_rng(0)
    plan = map_.plan(ANYWHERE)
    found = [place for node in use_counts([plan]) for place in getattr(node, "places", ())]
    low = np.concatenate([place.regions.low for place in found])
    near = np.concatenate((double_at(double_rank(low[1:]) - 1), low))
    scores = np.concatenate((rng.random(20_000), near[np.abs(near) < 1e300]))
    assert np.array_equal(evaluate(plan, scores), map_(scores))


def test_where_nothing_is_known_jumps_are_refused():
    assert stretches(HILL.plan(ANYWHERE)) is None
    with pytest.raises(InputError, match=r"cannot be written as anything.*Apply it in memory"):
        Chain((HILL, JUMP)).plan(ANYWHERE)
    lines, scores = Chain((HILL, LINE)), np.linspace(0, 1, 50)
    assert far(evaluate(lines.plan(ANYWHERE), scores), lines(scores)) <= TOL


def test_borders_of_a_function_that_falls_and_rises():
    valley = Piecewise.linear([-1.0, 0.0, 1.0], [1.0, 0.0, 1.0])
    knots = np.array([0.25, 0.5])
    found = regions_on_stretches(knots, valley, stretches(valley.plan(ANYWHERE)))
    scores = np.random.default_rng(1).normal(0, 1, 10_000)
    piece = found.piece[np.searchsorted(found.low, scores, side="right") - 1]
    assert np.array_equal(piece, np.searchsorted(knots, valley(scores), side="right"))


# --- what a kind must say -------------------------------------------------------------------------


class Odd(Map):
    kind = "odd"

    def __call__(self, scores):
        return scores


@pytest.mark.parametrize(
    "fact", ["trend", "takes_probabilities", "looks_like_probabilities", "size", "span"]
)
def test_what_a_new_kind_does_not_say_is_refused(fact):
    with pytest.raises(InputError, match=f"'odd' does not say its {fact}"):
        getattr(Odd(), fact)


def test_a_new_kind_without_a_plan_is_refused():
    with pytest.raises(InputError, match=r"'odd' cannot be written as anything\."):
        Odd().plan(ANYWHERE)


def test_nodes_name_what_they_are_made_of():
    plan = Segmented(LINE, ("a",), (JUMP,), [0.5]).plan(ANYWHERE)
    assert len(operands(plan)) == 2


# --- lines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize(
    "shape", ["line", "jumps and lines", "far", "small", "many lines of the logit"]
)
def test_every_form_of_a_line_gives_the_values_of_its_pieces(shape, relative):
    map_ = SHAPES[shape]
    pieces = Pieces(map_.x, map_.left, map_.right)
    s = np.concatenate((map_.x, map_.x[:-1] / 2 + map_.x[1:] / 2, (map_.x[0] - 1, map_.x[-1] + 1)))
    piece = np.searchsorted(map_.x, s, side="right")
    for columns in (pieces.columns(relative), pieces.ends()):
        lines = [{name: float(own[i]) for name, own in columns.items()} for i in piece]
        got = [on_line(float(at), line) for at, line in zip(s, lines, strict=True)]
        assert far(got, pieces.value(s)) <= LOST
        flat = [flat_value(line) for line in lines]
        assert all(v is None or v == own for v, own in zip(flat, pieces.value(s), strict=True))
        assert [v is None for v in flat] == (pieces.low != pieces.high)[piece].tolist()


def test_the_parts_of_regions_that_an_interval_meets():
    whole = regions_on_stretches(np.array([0.25, 0.5]), None, stretches(Input()))
    met = whole.within(0.3, 0.5)
    assert met.low.tolist() == [0.3, 0.5]
    assert met.high.tolist() == [np.nextafter(0.5, 0), 0.5]
    assert met.piece.tolist() == [1, 2]
