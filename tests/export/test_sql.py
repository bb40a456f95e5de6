"""SQL: every dialect gives what `calibrate` gives, on the engines themselves or by translation."""

from __future__ import annotations

import math
import os
import pickle
import re
import sqlite3
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

import calibrant as cal
from calibrant.data.scale import ScoreRange
from calibrant.errors import InputError, ParameterError
from calibrant.export.lookup_tables import Grid, grid_of
from calibrant.export.sql import Sql, to_sql
from calibrant.export.sql.dialects import (
    DIALECTS,
    RESERVED,
    comment,
    dialect_of,
    normal_number,
    plain_number,
    quotient_number,
)
from calibrant.export.sql.printer import SQL, cell_of_score, value_range, without_overflow
from calibrant.fitting.fitted import Fitted
from calibrant.losses import logit, sigmoid
from calibrant.maps import (
    Chain,
    Coded,
    Columns,
    Identity,
    Interval,
    Logistic,
    Map,
    Mixture,
    Piecewise,
    Segmented,
    Softmax,
    TopLabel,
    VectorMap,
    VectorMixture,
)
from calibrant.rules.plan.interpreter import evaluate
from calibrant.rules.plan.nodes import (
    Linear,
    double_at,
    double_rank,
    use_counts,
)
from calibrant.rules.sigmoids import FEATURES
from cases import each
from sparks import needs_spark, to_spark

TOL = 1e-12
LARGE = float(np.finfo(np.float64).max)
TINY = float(np.finfo(np.float64).tiny)
ENDS = [0.0, -0.0, 1.0, 5e-324, 1e-310, TINY, 1e-300, 1 - 2.0**-53, -3.0, 2.0, 40.0, -40.0, 1e16]
ENDS += [1e308, -1e308, LARGE, -LARGE, -5e-324, 0.5]
BAD = [None, math.nan, math.inf, -math.inf]

each_dialect = pytest.mark.parametrize("dialect", DIALECTS)


# --- engines ------------------------------------------------------------------------------------

Rows = dict[str, Any]
Engine = Callable[[Sequence[str], Rows], list[tuple[Any, ...]]]


def on_duckdb(statements: Sequence[str], rows: Rows) -> list[tuple[Any, ...]]:
    """What the last statement gives, in the order of ids."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("given_", pa.table(rows))
        connection.execute("CREATE TABLE scores AS SELECT * FROM given_")
        for statement in statements[:-1]:
            connection.execute(statement)
        return connection.execute(f"SELECT * FROM ({statements[-1]}) AS q ORDER BY id").fetchall()


def on_sqlite(statements: Sequence[str], rows: Rows) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(":memory:")
    names = [f"`{name.replace('`', '``')}`" for name in rows]
    connection.execute(f"CREATE TABLE scores ({', '.join(names)})")
    marks = ", ".join("?" * len(names))
    columns = [pa.array(column).to_pylist() for column in rows.values()]
    connection.executemany(f"INSERT INTO scores VALUES ({marks})", zip(*columns, strict=True))
    for statement in statements[:-1]:
        connection.execute(statement)
    found = connection.execute(f"SELECT * FROM ({statements[-1]}) AS q ORDER BY id").fetchall()
    connection.close()
    return found


def translated(dialect: str) -> Engine:
    """DuckDB, after sqlglot has read the dialect and said the same for it."""

    def run(statements: Sequence[str], rows: Rows) -> list[tuple[Any, ...]]:
        known = _without_swaps(statements, dialect)
        return on_duckdb([_for_duckdb(statement, dialect) for statement in known], rows)

    return run


def _without_swaps(statements: Sequence[str], dialect: str) -> list[str]:
    """The tables filled in their place, where only the dialect itself can put them there."""
    first = tuple(text.split("{")[0] for text in dialect_of(dialect).swap)
    own = [s for s in statements if not first or not s.startswith(first) or "CREATE TABLE" in s]
    own = [s for s in own if not s.startswith("CREATE TABLE IF NOT EXISTS")]
    return [re.sub(r"\b(calibrant_\w+)_new\b", r"\1", s) for s in own]


def _for_duckdb(statement: str, dialect: str) -> str:
    parsed = sqlglot.parse_one(statement, read=dialect)
    for key in list(parsed.find_all(exp.PrimaryKey)):  # of no use here
        key.pop()
    for properties in list(parsed.find_all(exp.Properties)):
        properties.pop()
    text = parsed.sql("duckdb")
    # sqlglot takes this dialect's FLOAT(53) for single precision
    return text.replace("REAL(53)", "DOUBLE").replace("REAL", "DOUBLE")


ENGINES: dict[str, Engine] = {
    "duckdb": on_duckdb,
    "sqlite": on_sqlite,
    **{f"{name}-translated": translated(name) for name in DIALECTS if name != "duckdb"},
}
each_engine = pytest.mark.parametrize("engine", ENGINES)


def dialect_for(engine: str) -> str:
    return engine.removesuffix("-translated")


def query(sql: Sql) -> Sequence[str]:
    """The statements of a script, or of an expression on its own."""
    return sql.statements or (f"SELECT id, {sql} AS probability FROM scores",)


def probabilities(
    sql: Sql, run: Engine, scores: Sequence[float | None], segments: Any = None
) -> list[float | None]:
    """The last column of a query, one value for each row."""
    rows = {"id": np.arange(len(scores)), "score": pa.array(scores, pa.float64())}
    if segments is not None:
        rows["part"] = pa.array(segments)
    found = run(query(sql), rows)
    assert len(found) == len(scores)
    assert [row[0] for row in found] == list(range(len(scores)))
    return [row[-1] for row in found]


def agree(map_: Map, sql: Sql, run: Engine, scores: Any, segments: Any = None) -> None:
    """The map's own numbers, and NULL for all that is no score."""
    more = None if segments is None else [*segments, *[segments[0]] * len(BAD)]
    (*found,) = probabilities(sql, run, [*map(float, scores), *BAD], more)
    assert found[-len(BAD) :] == [None] * len(BAD)
    wanted = map_(np.asarray(scores)) if segments is None else map_(np.asarray(scores), segments)
    np.testing.assert_allclose(np.array(found[: -len(BAD)], dtype=float), wanted, rtol=0, atol=TOL)


def edges(map_: Map, seed: int = 0) -> np.ndarray:
    """Knots on the scale of the score and their neighbours, ends, and scores anywhere."""
    rng = np.random.default_rng(seed)
    knots = np.array([0.0, 1.0, *_knots(map_)])
    knots = np.concatenate((knots, sigmoid(knots), logit(np.clip(knots, 0.0, 1.0))))
    knots = rng.choice(knots, 150, replace=False) if len(knots) > 150 else knots
    near = double_rank(knots)[:, None] + np.arange(-1, 2)
    spread = np.concatenate((rng.random(60), rng.beta(0.2, 0.2, 30), rng.normal(0.0, 4.0, 60)))
    return np.concatenate((ENDS, double_at(near.ravel()), spread))


def _knots(map_: Map) -> list[float]:
    parts = {
        Chain: lambda m: m.steps,
        Mixture: lambda m: m.members,
        Interval: lambda m: (m.point,),
        Segmented: lambda m: (m.default, *m.maps),
    }
    if isinstance(map_, Piecewise):
        return map_.x.tolist()
    return [x for part in parts.get(type(map_), lambda m: ())(map_) for x in _knots(part)]


# --- maps of every kind -------------------------------------------------------------------------

RNG = np.random.default_rng(7)
STEP = Piecewise.step([0.1, 0.2, 0.3], [0.0, 0.3, 0.2, 0.9])
LINES = Piecewise.linear([0.1, 0.2, 0.3], [0.0, 0.3, 1.0])
BENT = Piecewise.linear([0.1, 0.2, 0.3], [0.0, 0.3, 0.1])
PLATT = Logistic(0.5, (("x", 2.0),))
SHIFT = Logistic(0.3, (("z", 1.0),))
MARGIN = Logistic(0.0, (("x", 1.0),))
CURVED = Logistic(0.1, (("z", 0.7), ("z2", -0.09)))

MAPS: dict[str, Map] = {
    "identity": Identity(),
    "constant": Piecewise.constant(0.25),
    "sigmoid of nothing": Logistic(0.1, ()),
    "platt": PLATT,
    "platt, flat and falling": Logistic(-3.5, (("x", -0.02),)),
    "platt, steep": Logistic(1.0, (("x", 1e200),)),
    "logit": Logistic(0.5, (("z", 1.3),)),
    "logit, flat": Logistic(0.5, (("z", -0.3),)),
    "logit, clipped": Logistic(0.1, (("z", 1.0),), clip=(0.01, 1.0)),
    "beta": Logistic(0.1, (("ln_p", 0.7), ("neg_ln_1mp", 0.9))),
    "beta, steep": Logistic(0.1, (("ln_p", 1.7), ("neg_ln_1mp", 0.0))),
    "beta, bent": Logistic(0.1, (("ln_p", 0.7), ("neg_ln_1mp", -0.9))),
    "beta of margins": Logistic(0.1, (("ln_sigmoid", 0.02), ("softplus", 0.03))),
    "beta of margins, steep": Logistic(0.1, (("ln_sigmoid", 70.0), ("softplus", 40.0))),
    "beta of margins, falling": Logistic(0.1, (("ln_sigmoid", -0.7), ("softplus", -0.9))),
    "quadratic": Logistic(0.1, (("z", 0.7), ("z2", 0.09))),
    "quadratic, clipped": Logistic(0.1, (("z", 0.7), ("z2", -0.3)), clip=(0.01, 0.9)),
    "score and logit": Logistic(0.1, (("x", 1.0), ("z", 0.7))),
    "score against logit": Logistic(0.1, (("x", -1.0), ("z", 0.7))),
    "steps": STEP,
    "lines": LINES,
    "jumps and lines": Piecewise([0.0, 0.5], [0.1, 0.4], [0.2, 0.9]),
    "steps of the logit": Piecewise.step([-3.0, 0.0, 2.0], [0.4, 0.0, 0.3, 0.2], "logit"),
    "lines of the logit": Piecewise.linear([-3.0, 0.0, 2.0], [0.4, 0.0, 0.3], "logit"),
    "logits of the logit": Piecewise.linear([-3, 0, 2], [-4.0, 0.0, 3.3], "logit", "logit"),
    "steep logits": Piecewise.linear([0.1, 0.4], [-1000.0, 1000.0], output="logit"),
    "the widest lines": Piecewise.linear([-1e308, 1e308], [0.0, 1.0]),
    "ends of the logit": Piecewise.linear([-744.4400719213812, 36.7], [0.2, 0.7], "logit"),
    "many steps": Piecewise.step(np.sort(RNG.random(60)), RNG.random(61)),
    "crowded steps": Piecewise.step(np.sort(0.3 + 1e-9 * RNG.random(60)), RNG.random(61)),
    "many lines of margins": Piecewise.linear(np.sort(RNG.normal(size=40)), RNG.random(40)),
    "far steps": Piecewise.step(np.sort(100 * RNG.standard_cauchy(40)), RNG.random(41)),
    "band": Interval(Identity(), Identity(), STEP),
    "mixture that collapses": Mixture([0.5, 0.5], (STEP, LINES)),
    "mixture": Mixture([0.25, 0.75, 0.0], (PLATT, STEP, SHIFT)),
    "steps, then lines, then a shift": Chain((STEP, LINES, SHIFT)),
    "lines, then a shift": Chain((LINES, SHIFT)),
    "margins, then lines": Chain((MARGIN, LINES)),
    "falling margins, then steps": Chain((Logistic(0.0, (("x", -1.0),)), STEP)),
    "bent lines, then lines of the logit": Chain(
        (BENT, Piecewise.linear([-2.0, -1.0, 0.0], [0.1, 0.5, 0.3], "logit"))
    ),
    "curved, then lines": Chain((CURVED, LINES)),
    "three sigmoids": Chain((Logistic(0.1, (("z", 0.7),)), SHIFT, Logistic(0.2, (("x", -1.5),)))),
    "mixture, then a shift": Chain((Mixture([0.3, 0.7], (PLATT, LINES)), SHIFT)),
    "a map of segments within another": Chain((Segmented(STEP, (1,), (LINES,)), SHIFT)),
}


#: a few whose lookups are made of all that there is
LOOKED_UP = ("steps", "lines of the logit", "far steps", "mixture", "lines, then a shift")


def ends_of(engine: str, scores: np.ndarray) -> np.ndarray:
    """The scores that a database can hold."""
    if dialect_of(dialect_for(engine)).subnormals:
        return scores
    return scores[(scores == 0.0) | (np.abs(scores) >= TINY)]


@each_engine
def test_expressions_of_every_kind_of_map_give_what_it_gives_in_memory(engine):
    """All in one query, and so each at the knots of all others, too."""
    scores = ends_of(engine, np.unique(np.concatenate([edges(map_) for map_ in MAPS.values()])))
    texts = [to_sql(m, dialect=dialect_for(engine), form="expression") for m in MAPS.values()]
    columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))
    rows = {"id": np.arange(len(scores) + 4), "score": pa.array([*scores, *BAD], pa.float64())}
    found = ENGINES[engine]([f"SELECT id, {columns} FROM scores"], rows)
    for i, (name, map_) in enumerate(MAPS.items()):
        values = [row[i + 1] for row in found]
        assert values[-4:] == [None] * 4, name
        np.testing.assert_allclose(
            np.array(values[:-4], dtype=float), map_(scores), rtol=0, atol=TOL, err_msg=name
        )


@each_engine
def test_lookups_of_every_kind_of_map_give_what_it_gives_in_memory(engine):
    for name in LOOKED_UP if engine.endswith("-translated") else MAPS:
        sql = to_sql(MAPS[name], dialect=dialect_for(engine), form="lookup")
        agree(MAPS[name], sql, ENGINES[engine], ends_of(engine, edges(MAPS[name])))


@each()
def test_every_calibrator_gives_what_calibrate_gives(case):
    rng = np.random.default_rng(len(case.name))
    scores = rng.beta(0.7, 2.0, 150).round(2)
    fitted = case.calibrator.fit(scores, (rng.random(150) < scores**1.3).astype(int))
    for engine, form in (("duckdb", "expression"), ("sqlite", "lookup")):
        sql = to_sql(fitted, dialect=engine, form=form)
        agree(fitted.map_, sql, ENGINES[engine], edges(fitted.map_))


def test_expressions_are_exact_at_jumps_and_within_a_few_bits_elsewhere():
    for map_ in (STEP, LINES, MAPS["steps of the logit"], MAPS["many steps"]):
        scores = edges(map_)
        found = probabilities(to_sql(map_), on_duckdb, scores.tolist())
        wanted = map_(scores)
        bits = np.abs(np.array(found) - wanted) / np.spacing(np.maximum(wanted, 0.1))
        assert bits.max() <= (0 if map_.is_step else 4)


#: few different numbers, so that knots, values and scores meet
SOME = st.one_of(
    st.sampled_from([0.0, 0.25, 0.5, 1.0, -1.0, 2.0, 0.1, 0.3, 5e-324, 1e-300, -7.5, 1e17]),
    st.floats(-1e6, 1e6, allow_subnormal=False),
    st.floats(0.0, 1.0, allow_subnormal=False),
)


@st.composite
def piecewise(draw: Any) -> Piecewise:
    x = sorted(draw(st.sets(SOME, min_size=1, max_size=12)))
    levels = st.sampled_from([0.0, 0.5, 1.0, 0.1, 1 / 3]) | st.floats(0.0, 1.0)
    left = draw(st.lists(levels, min_size=len(x), max_size=len(x)))
    kind = draw(st.sampled_from(["lines", "steps", "both"]))
    right = left if kind == "lines" else draw(st.permutations(left))
    map_ = Piecewise(x, left, right, draw(st.sampled_from(["score", "logit"])))
    return Piecewise.step(map_.x, [*left, right[-1]], map_.input) if kind == "steps" else map_


@given(
    piecewise(), st.sampled_from(["expression", "lookup"]), st.sampled_from(["duckdb", "sqlite"])
)
def test_pieces_wherever_they_are(map_, form, engine):
    scores = edges(map_)
    wide = np.abs(map_.x).max() > 1e6 or np.diff(map_.x, prepend=-1e9).min() < 1e-6
    if map_.input == "logit" or wide:  # a line as steep as that is only right to its own rounding
        map_ = Piecewise.step(map_.x, [*map_.left, map_.right[-1]], map_.input)
    agree(map_, to_sql(map_, dialect=engine, form=form), ENGINES[engine], scores)


@given(
    st.floats(-30, 30),
    st.dictionaries(st.sampled_from(["x", "z", "z2", "ln_p", "neg_ln_1mp"]), st.floats(-3, 3)),
    st.sampled_from([None, (0.01, 0.99), (0.0, 0.5)]),
    st.sampled_from(["duckdb", "sqlite"]),
)
def test_sigmoids_wherever_they_bend(intercept, terms, clip, engine):
    map_ = Logistic(intercept, tuple(terms.items()), clip)
    scores = edges(map_)
    # where large terms cancel, what is left is their rounding
    large = [np.abs(total_at(Logistic(0.0, (term,)), scores)) for term in terms.items()]
    good = np.all([size < 1e3 for size in large], axis=0) | np.full(len(scores), len(terms) < 2)
    agree(map_, to_sql(map_, dialect=engine), ENGINES[engine], scores[good])


@given(
    st.floats(-30, 30),
    st.dictionaries(
        st.sampled_from(["x", "z", "z2", "ln_p", "neg_ln_1mp"]),
        st.floats(-1e9, 1e9) | st.sampled_from([1e280, -1e-300, 5e-324]),
        min_size=1,
    ),
    st.sampled_from([None, (0.01, 0.99)]),
)
def test_formulas_are_bounded_where_they_are_said_to_be(intercept, terms, clip):
    """What an engine that knows no infinity is given never overflows, and changes nothing."""
    map_ = Logistic(intercept, tuple(terms.items()), clip)
    plan, scores = map_.plan(SQL), edges(map_)
    plain = without_overflow(plan, dialect_of("bigquery"))
    for node in use_counts([plain]):
        if isinstance(node, Linear):
            products = [abs(c) * np.abs(evaluate(term, scores)) for c, term in node.terms]
            assert all((product <= 1.01e300).all() for product in products)
    good = np.isfinite(total_at(map_, scores))
    np.testing.assert_allclose(evaluate(plain, scores), map_(scores), rtol=0, atol=1e-200)
    for node in use_counts([plan]):
        low, high = value_range(node)
        values = evaluate(node, scores)[good]
        assert ((values >= low) & (values <= high)).all()


def total_at(map_, scores):
    """intercept + Σ coefficient · φ."""
    total = np.full(scores.shape, map_.intercept)
    with np.errstate(over="ignore"):
        for name, coefficient in map_.terms:
            if coefficient:
                total += coefficient * FEATURES[name](scores)
    return total


# --- where rounding decides -----------------------------------------------------------------------

each_form = pytest.mark.parametrize("form", ["expression", "lookup"])
each_own_engine = pytest.mark.parametrize("engine", ["duckdb", "sqlite"])


@each_form
@pytest.mark.parametrize("between", [Identity(), LINES, SHIFT, Mixture([0.5, 0.5], (PLATT, SHIFT))])
def test_no_jump_however_long_after_a_rise_and_a_fall(between, form):
    cut = Piecewise.step([0.6147634740790555], [0.2, 0.8])
    with pytest.raises(InputError, match="neither rise nor fall and whose last one jumps"):
        to_sql(Chain((CURVED, between, cut)), form=form)


@each_form
@each_own_engine
def test_lines_after_a_rise_and_a_fall_may_have_company(engine, form):
    map_ = Chain((CURVED, LINES, BENT))
    agree(map_, to_sql(map_, dialect=engine, form=form), ENGINES[engine], edges(map_))


#: three neighbouring doubles
NEIGHBOURS = [0.12151790834064602, 0.12151790834064603, 0.12151790834064605]


@each_form
@each_own_engine
def test_the_steepest_lines_stay_between_their_ends(engine, form):
    values = [0.1188, 0.9188, 0.0430]
    steep = Piecewise.linear(NEIGHBOURS, values, "logit")
    logits = Piecewise.linear(NEIGHBOURS, logit(np.array(values)), "logit", "logit")
    both = Segmented(SHIFT, ("a", "b"), (steep, LINES))
    for map_ in (steep, Chain((steep, Logistic(0.0, (("z", 1.0),)))), logits):
        sql = to_sql(map_, dialect=engine, form=form)
        (found,) = probabilities(sql, ENGINES[engine], [0.5303421487347716])
        assert found == pytest.approx(0.1188, abs=TOL)
    sql = to_sql(both, dialect=engine, form=form, segment="part")
    (found,) = probabilities(sql, ENGINES[engine], [0.5303421487347716], ["a"])
    assert found == pytest.approx(0.1188, abs=TOL)


@each_form
@each_own_engine
def test_steep_lines_are_right_to_the_rounding_of_their_logit(engine, form):
    rng = np.random.default_rng(0)
    for width in (1e-3, 1e-6, 1e-9, 1e-12, 1e-15):
        x = rng.normal() + width * np.arange(1, 5)
        map_ = Piecewise.linear(x, rng.random(4), "logit")
        ends = sigmoid(x[[0, -1]])
        scores = rng.uniform(2 * ends[0] - ends[1], 2 * ends[1] - ends[0], 50)
        found = probabilities(
            to_sql(map_, dialect=engine, form=form), ENGINES[engine], scores.tolist()
        )
        assert min(found) >= map_.left.min()
        assert max(found) <= map_.left.max()
        np.testing.assert_allclose(found, map_(scores), rtol=0, atol=TOL + 2e-15 / width)


def test_lines_that_are_not_steep_read_as_before():
    found = " ".join(to_sql(Piecewise.linear([-3.0, 0.0, 2.0], [0.4, 0.1, 0.3], "logit")).split())
    assert "0.1e0 + 0.09999999999999999e0 * LN(score / (1e0 - score)) ELSE" in found
    assert "GREATEST" not in found
    shift = Chain((Piecewise.linear([0.25, 0.75], [0.0, 1.0]), SHIFT))
    assert "(score - 0.25e0) / 0.5e0" in to_sql(shift)


@each_form
@each_own_engine
def test_ratios_of_tiny_values_keep_their_digits(engine, form):
    rising = Piecewise.linear([0.3, 1.0], [0.0, 1.0])
    scores = [[0.3 + 1e-12, 0.3 + 2e-12, 0.3 + 4e-12]]
    coded = Coded.one_vs_rest((rising, Identity(), rising))
    for map_ in (Coded.one_vs_rest((rising,) * 3), VectorMixture([1.0], (coded,))):
        names = [f"s {i}" for i in range(3)]
        sql = to_sql(map_, dialect=engine, column=names, form=form, keep=["id"])
        found = classes(sql, ENGINES[engine], scores)
        np.testing.assert_allclose(found, map_(np.array(scores)), rtol=1e-12)
    flat = Logistic(0.0, (("z", 0.1),))
    mixed = Mixture([0.5, 0.5], (rising, Piecewise.linear([-1.0, 0.3, 1.0], [0.1, 0.0, 0.0])))
    segmented = Segmented(rising, ("a",), (flat,), None, "default")
    for map_ in (Chain((rising, flat)), Chain((mixed, flat)), segmented):
        part = "part" if map_ is segmented else None
        sql = to_sql(map_, dialect=engine, form=form, segment=part)
        segments = None if part is None else ["a"] * 3
        agree(map_, sql, ENGINES[engine], scores[0], segments)


@each_form
@each_own_engine
def test_a_knot_may_be_the_largest_double(engine, form):
    steps = Piecewise.step([-LARGE, 0.0, LARGE], [0.1, 0.2, 0.5, 0.8])
    lines = [Piecewise.linear([low, LARGE], [0.2, 0.8]) for low in (0.0, -LARGE)]
    scores = [LARGE, -LARGE, np.nextafter(LARGE, 0.0), np.nextafter(-LARGE, 0.0), 0.0, -1e300, 0.5]
    for map_ in (steps, *lines):
        agree(map_, to_sql(map_, dialect=engine, form=form), ENGINES[engine], scores)


@each_form
@each_own_engine
@pytest.mark.parametrize("slope", [1.0, -1.0, 1e200, -1e200])
def test_sigmoids_of_the_steepest_logarithms(engine, form, slope):
    map_ = Logistic(0.0, (("x", slope), ("z", 1e288)))
    scores = [0.3, 0.5, 0.7, -1.0, 2.0, -1e90, -8e90, 1e91, 1e300, -1e300, LARGE, -LARGE]
    agree(map_, to_sql(map_, dialect=engine, form=form), ENGINES[engine], scores)


# --- lookups ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["duckdb", "sqlite", "tsql-translated"])
@pytest.mark.parametrize(
    "knots",
    [
        np.linspace(0.0, 1.0, 65),
        np.sort(RNG.beta(0.1, 5.0, 60)),
        np.sort(1e-8 * RNG.random(60)),
        np.sort(RNG.normal(3.0, 2.0, 60)),
        np.sort(RNG.standard_cauchy(60)),
        np.array([-1e300, 0.0, 1e300]),
        np.array([0.5]),
        np.array([1e5]),
    ],
    ids=["even", "skewed", "tiny", "margins", "outliers", "far", "one", "one far"],
)
def test_cells_find_each_row_once_whatever_their_rule(knots, engine):
    map_ = Piecewise.step(knots, np.linspace(0.0, 1.0, len(knots) + 1))
    grid = grid_of(np.append(-LARGE, knots), lean=True)
    cuts = knots
    if grid.cells is None:  # where cells begin
        t = (np.arange(grid.count + 1) / grid.count) ** (2**grid.roots)
        cuts = np.append(knots, grid.first + t * (grid.last - grid.first))
    scores = double_at((double_rank(cuts)[:, None] + np.arange(-2, 3)).ravel())
    scores = scores[(scores == 0.0) | (np.abs(scores) >= TINY)]
    sql = to_sql(map_, dialect=dialect_for(engine), form="lookup")
    agree(map_, sql, ENGINES[engine], scores)


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
@pytest.mark.parametrize("roots", [0, 1, 2])
def test_cells_are_numpys_cells(engine, roots):
    scores = np.concatenate((ENDS, np.random.default_rng(0).normal(0.4, 0.4, 500)))
    grids = [Grid(64, roots=roots), Grid(64, -0.3, 1.7, roots), grid_of(scores, lean=True)]
    texts = [cell_of_score(grid, "score", dialect_of(engine)) for grid in grids]
    columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))
    rows = {"id": np.arange(len(scores)), "score": scores}
    found = ENGINES[engine]([f"SELECT id, {columns} FROM scores"], rows)
    for i, grid in enumerate(grids):
        assert [row[i + 1] for row in found] == grid(scores).tolist()


def test_a_long_map_becomes_a_script_that_explains_itself():
    map_ = Piecewise.step(np.sort(RNG.random(700)), np.sort(RNG.random(701)))
    fitted = Fitted(map_, ("ham", "spam"), "spam", "Isotonic")
    sql = to_sql(
        fitted, dialect="postgres", table="app.scores", lookup="app.spam_lookup", form="lookup"
    )
    drop, create, *inserts, select = sql.statements
    assert drop.startswith("/* The calibrated probability of 'spam' by 'Isotonic', written by")
    assert drop.endswith("*/\nDROP TABLE IF EXISTS app.spam_lookup")
    assert "CREATE TABLE app.spam_lookup (" in create
    assert "PRIMARY KEY (cell, score_from)" in create
    assert len(inserts) > 2
    assert all(insert.count("\n  (") <= 500 for insert in inserts)
    assert all(statement.startswith("/* ") for statement in sql.statements)
    assert "LEFT JOIN app.spam_lookup AS l\n  ON l.cell = CAST(FLOOR(" in select
    assert "r.*,\n" in select
    head, *made = sql.statements[0].rsplit("\n", 1)
    whole = [f"{head}\nBEGIN", *made, *sql.statements[1:-1], "COMMIT", select]
    assert sql == ";\n\n".join(whole) + ";\n"
    assert sum(insert.count("\n  (") for insert in inserts) < 4 * 701


@pytest.mark.full
def test_auto_writes_the_form_that_the_database_runs_faster():
    """An expression as long as it is short enough for the dialect, as measured."""
    for dialect, knots in {
        "spark": 10,
        "duckdb": 25,
        "postgres": 80,
        "mysql": 3000,
        "sqlite": 1000,
    }.items():
        for factor in (1, 5):
            x = np.linspace(0.0, 1.0, knots * factor)
            sql = to_sql(Piecewise.linear(x, x**2), dialect=dialect)
            assert bool(sql.statements) == (factor == 5), (dialect, factor)
            assert sql.statements or len(sql) <= dialect_of(dialect).longest
    many = Segmented(PLATT, tuple(range(300)), (PLATT,) * 300)
    assert to_sql(many, segment="part").statements
    assert not to_sql(PLATT).statements
    assert len(to_sql(PLATT, form="lookup").statements) == 1  # no table is needed


@pytest.mark.full
def test_auto_looks_up_what_is_too_long_for_one_query():
    """However long a dialect's expressions may be."""
    x = np.linspace(-8.0, 8.0, 8_000)
    bent = Piecewise.linear(x, 0.8 * x + 0.1 * np.sin(3.0 * x), "logit", "logit")
    for dialect in ("mysql", "sqlite"):
        with pytest.raises(InputError, match="characters of SQL in one query"):
            to_sql(bent, dialect=dialect, form="expression")
        assert to_sql(bent, dialect=dialect).statements


def test_lookups_of_mysql_name_the_index():
    """The server takes a table just filled for empty, and would read all of it for each row."""
    for map_, segment in ((MAPS["many steps"], None), (SEGMENTED["numbers"], "part")):
        query = to_sql(map_, dialect="mysql", form="lookup", segment=segment).statements[-1]
        joins = [line for line in query.splitlines() if line.startswith("LEFT JOIN")]
        assert joins
        assert all(line.endswith(" FORCE INDEX (PRIMARY)") for line in joins)


def test_auto_writes_what_there_is():
    """No lookup where there is nothing to look up."""
    sigmoids = [Logistic(i / 50, (("z", 1.0 + i / 50), ("z2", 0.01))) for i in range(40)]
    mixed = Mixture(np.full(40, 1 / 40), sigmoids)
    assert not to_sql(mixed, dialect="spark").statements


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_steps_of_lines_that_rise_and_fall_are_looked_up(engine):
    chain = Chain((BENT, MAPS["many steps"]))
    assert not to_sql(chain, dialect="spark").statements  # few of the steps are ever reached
    agree(chain, to_sql(chain, dialect=engine, form="lookup"), ENGINES[engine], edges(chain))


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.parametrize("way", ["script", "statements"])
def test_a_script_can_be_run_again_with_another_map(dialect, way):
    """Another method has other columns, and the second refresh finds the tables of the first."""
    database = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
    database.execute("CREATE TABLE scores (id INTEGER, score DOUBLE)")
    database.execute("INSERT INTO scores VALUES (0, 0.15), (1, 0.25)")
    database.commit()
    for map_ in (STEP, LINES, MAPS["mixture"], STEP):
        sql = to_sql(map_, dialect=dialect, form="lookup")
        *made, select = sql.statements
        if way == "statements":
            for statement in made:
                database.execute(statement)
        elif dialect == "sqlite":
            database.executescript(sql)
        else:
            database.execute(sql)
        found = [p for _, _, p in sorted(database.execute(select).fetchall())]
        np.testing.assert_allclose(found, map_([0.15, 0.25]), rtol=0, atol=TOL)
    database.close()


def test_a_script_that_fails_leaves_the_old_table():
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE scores (id INTEGER, score DOUBLE)")
    database.execute("INSERT INTO scores VALUES (0, 0.15), (1, 0.25)")
    database.commit()
    *_, select = to_sql(STEP, dialect="sqlite", form="lookup").statements
    database.executescript(to_sql(STEP, dialect="sqlite", form="lookup"))
    broken = to_sql(LINES, dialect="sqlite", form="lookup").replace("COMMIT", "SELECT nowhere")
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        database.executescript(broken)
    database.rollback()
    assert [row[-1] for row in database.execute(select)] == [0.3, 0.2]
    database.close()


@each_dialect
def test_the_place_of_a_table_is_taken_at_the_end(dialect):
    """In a transaction, or by a table that is complete."""
    sql = to_sql(MAPS["mixture"], dialect=dialect, form="lookup")
    texts = [re.sub(r"^/\*.*?\*/\n", "", s, flags=re.DOTALL) for s in sql.split(";\n\n")]
    filled = max(i for i, text in enumerate(texts) if text.startswith("INSERT"))
    own = [i for i, text in enumerate(texts[:-1]) if re.search(r"\bcalibrant_\w+(?<!_new)\b", text)]
    if dialect_of(dialect).swap:
        assert min(own) > filled
    else:
        assert texts[0].startswith(("BEGIN", "SET XACT_ABORT ON"))
        assert texts[-2].startswith("COMMIT")


@pytest.mark.parametrize("table", ["Rows", "rows_2", "rows_new", "ROWS_3_old"])
def test_a_lookup_never_replaces_the_rows(table):
    with pytest.raises(InputError, match="must be another one than that of the rows"):
        to_sql(STEP, form="lookup", table=table, lookup="rows")
    assert to_sql(STEP, form="lookup", table="rows", lookup="rows_2")


@pytest.mark.parametrize(
    ("table", "lookup"),
    [
        ("public.scores", "scores"),
        ("Scores_2", "public.scores"),
        ("db.public.scores", "PUBLIC.scores"),
        ("public.scores", "public.scores"),
        ('public."scores"', "`scores`"),
    ],
)
def test_a_lookup_never_replaces_the_rows_of_a_schema(table, lookup):
    with pytest.raises(InputError, match="must be another one than that of the rows"):
        to_sql(STEP, form="lookup", table=table, lookup=lookup)
    assert to_sql(STEP, form="lookup", table="a.scores", lookup="b.scores")


def test_an_expression_replaces_no_table():
    assert to_sql(STEP, form="expression", table="rows", lookup="rows")
    assert to_sql(STEP, table="rows", lookup="rows")  # short, so it is an expression
    many = Piecewise.step(np.linspace(0.0, 1.0, 2000), np.linspace(0.0, 1.0, 2001))
    with pytest.raises(InputError, match="must be another one than that of the rows"):
        to_sql(many, table="rows", lookup="rows")


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_steps_after_a_hill_of_lines_are_looked_up(engine):
    hill = Piecewise.linear([-2.0, 0.0, 1.0], [-3.0, 2.0, -1.0], "logit", "logit")
    steps = Piecewise.step(np.linspace(0.01, 0.99, 260), np.linspace(0.0, 1.0, 261))
    map_ = Chain((hill, steps))
    assert to_sql(map_, dialect="spark").statements
    for form in ("expression", "lookup"):
        agree(map_, to_sql(map_, dialect=engine, form=form), ENGINES[engine], edges(map_))


# --- the names of lookup tables -------------------------------------------------------------------

MORE_STEPS = Piecewise.step(np.linspace(0.05, 0.95, 40), np.linspace(0.9, 0.1, 41))


def tables_of(sql: Sql) -> set[str]:
    """The names of the tables that a script puts in their place."""
    texts = [text for text in sql.statements if "CREATE TABLE" in text]
    return {re.search(r"CREATE TABLE (\S+) \(", text)[1].removesuffix("_new") for text in texts}


def two_views(**more: Any) -> dict[str, tuple[Map, Sql]]:
    """The scripts of two calibrators for one database, with a view each."""
    maps = {"p_a": MAPS["many steps"], "p_b": MORE_STEPS}
    return {v: (m, to_sql(m, form="lookup", view=v, into="p", **more)) for v, m in maps.items()}


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_two_calibrators_of_one_database_keep_their_own_values(engine):
    database = duckdb.connect() if engine == "duckdb" else sqlite3.connect(":memory:")
    database.execute("CREATE TABLE scores (score DOUBLE)")
    scores = np.linspace(0.0, 1.0, 101)
    database.executemany("INSERT INTO scores VALUES (?)", [(s,) for s in scores.tolist()])
    scripts = two_views(dialect=engine)
    for _, sql in scripts.values():
        for statement in sql.statements:
            database.execute(statement)
    for view, (map_, _) in scripts.items():
        found = database.execute(f"SELECT p FROM {view} ORDER BY score").fetchall()
        assert [p for (p,) in found] == map_(scores).tolist()
    database.close()


@pytest.mark.parametrize("segment", [None, "part"])
def test_other_maps_other_columns_and_other_thresholds_have_other_tables(segment):
    maps = [MAPS["many steps"], MORE_STEPS]
    if segment:
        maps = [Segmented(SHIFT, ("a", "b"), (own, STEP)) for own in maps]
    asked: list[dict[str, Any]] = [{}, {"threshold": 0.3}, {"threshold": 0.6}]
    asked += [{"into": "p_b"}, {"view": "mart.p_a"}]
    made = [to_sql(m, form="lookup", segment=segment, **own) for m in maps for own in asked]
    names = [tables_of(sql) for sql in made]
    assert all(names)
    assert len(set().union(*names)) == sum(map(len, names))
    for sql, own in zip(made, names, strict=True):
        assert tables_of(to_sql(maps[0], form="lookup", segment=segment, lookup="l")) != own
        assert all(name in sql.statements[-1] for name in own)


def test_a_lookup_is_named_after_the_view_or_the_column_and_the_fingerprint():
    mark = re.search("fingerprint ([0-9a-f]{12})", to_sql(STEP))[1]
    for asked, name in (
        ({}, f"calibrant_probability_{mark}"),
        ({"into": "p_a"}, f"calibrant_p_a_{mark}"),
        ({"into": "p_a", "view": "mart.Risk of 2026"}, f"calibrant_mart_risk_of_2026_{mark}"),
        ({"view": "p" * 200}, f"calibrant_{'p' * 30}_{mark}"),
        ({"view": "\u98ce\u9669"}, f"calibrant_{mark}"),
    ):
        sql = to_sql(STEP, form="lookup", **asked)
        assert tables_of(sql) == {name}
        words = " ".join(sql.partition("*/")[0].split())
        assert f"Its table is {name}." in words
        assert f"DROP TABLE {name.removesuffix(mark)}<their fingerprint>." in words
        assert len(f"{name}_99_new".encode()) <= 63  # what Postgres reads of a name
    replaced = to_sql(STEP, form="lookup", lookup="mine")
    assert tables_of(replaced) == {"mine"}
    assert "DROP" not in replaced.partition("*/")[0]


@pytest.mark.parametrize(("dialect", "most"), [("postgres", 63), ("redshift", 127)])
def test_names_that_would_be_cut_to_the_same_are_refused(dialect, most):
    """The database drops the end of a name without an error: a table would replace another."""
    asked: dict[str, Any] = {"dialect": dialect, "form": "lookup", "segment": "part"}
    two = Segmented(STEP, ("a", "b"), (MAPS["many steps"], MORE_STEPS))
    for names in ({"lookup": "l" * (most - 1)}, {"view": "v" * (most + 1)}, {"lookup": "ü" * most}):
        with pytest.raises(InputError, match=f"must have at most {most} bytes"):
            to_sql(two, **asked, **names)
    labels = tuple("a category of a very long name, " * 5 + end for end in "abc")
    fitted = Fitted(SOFT, labels, None)
    asked_of_classes = {"column": ["x", "y", "z"], "dialect": dialect}
    with pytest.raises(InputError, match=f"new columns must have at most {most} bytes"):
        to_sql(fitted, **asked_of_classes)
    assert "probability_2" in to_sql(fitted.map, **asked_of_classes)
    with pytest.raises(InputError, match=f"new columns must have at most {most} bytes"):
        to_sql(STEP, dialect=dialect, form="lookup", into="p" * (most + 1))
    assert to_sql(STEP, dialect=dialect, form="lookup", column="s" * (most + 1))  # cut there, too
    own = "mart." + "l" * (most - 2)
    sql = to_sql(two, **asked, view="v" * most, lookup=own)
    assert tables_of(sql) == {own, f"{own}_2", f"{own}_3"}
    assert tables_of(to_sql(two, **asked, view="v" * most))


# --- what it opens with -------------------------------------------------------------------------


def test_sql_says_what_it_is():
    facts = {"calibrant": "9.9", "fitted_at": "2026-11-17T02:03:04Z"}
    fitted = Fitted(STEP, ("ham", "spam"), "spam", "Isotonic", {}, facts)
    mark = re.search("fingerprint ([0-9a-f]{12})", to_sql(STEP))[1]
    for form in ("expression", "lookup"):
        sql = to_sql(fitted, form=form)
        words = " ".join(sql.split("*/")[0].split())
        assert words.startswith(
            "/* The calibrated probability of 'spam' by 'Isotonic', fitted on 2026-11-17 with "
            f"calibrant 9.9, fingerprint {mark}."
        )
        assert sql == to_sql(fitted, form=form)
    assert mark not in to_sql(LINES)
    assert (
        mark == re.search("fingerprint ([0-9a-f]{12})", to_sql(pickle.loads(pickle.dumps(STEP))))[1]
    )


def test_an_expression_can_be_put_on_one_line():
    line = " ".join(to_sql(STEP).split())
    assert probabilities(Sql(line), on_duckdb, [0.15, None]) == [0.3, None]


def test_postgres_is_told_not_to_compile_what_is_long():
    assert "jit" not in to_sql(PLATT, dialect="postgres")
    assert "SET jit = off" in to_sql(MAPS["many steps"], dialect="postgres").split("*/")[0]
    assert "jit" not in to_sql(MAPS["many steps"], dialect="postgres", form="lookup")
    assert "jit" not in to_sql(MAPS["many steps"])


@pytest.mark.parametrize("evil", ["*/ DROP TABLE scores; /*", "/*", "**//", "/*/", "${x}", "$(y)"])
@each_dialect
def test_a_label_cannot_leave_its_comment(dialect, evil):
    facts = {"calibrant": evil, "fitted_at": evil}
    fitted = Fitted(STEP, (evil, "z"), evil, evil, {}, facts)
    sql = to_sql(fitted, dialect=dialect)
    head, rest = sql.split("*/\n", 1)
    assert head.count("/*") == 1
    assert "*/" not in head + rest
    assert "${" not in sql
    assert "$(" not in sql
    sqlglot.parse_one(f"SELECT {sql} AS p", read=dialect)


@each_form
@each_dialect
def test_a_script_can_be_split_at_its_semicolons(dialect, form):
    """As clients do: none is in a comment, whatever it quotes."""
    evil = "a; DROP TABLE scores; --"
    facts, known = {"calibrant": ";", "fitted_at": "2026;11;17"}, ScoreRange("number", -1.0, 2.0)
    one = [MAPS["platt"], MAPS["many steps"], MAPS["mixture"], SEGMENTED["numbers"]]
    for map_ in (*one, VECTORS["structured"], VECTORS["one against all"]):
        several = isinstance(map_, VectorMap)
        labels, positive = (("ham", evil), evil) if not several else ((1, 2, 3), None)
        asked = {"column": ["a", "b", "c"]} if several else {"threshold": 0.3, "view": "v"}
        part = "part" if map_.segments is not None else None
        fitted = Fitted(map_, labels, positive, evil, {}, facts, known)
        sql = to_sql(fitted, dialect=dialect, form=form, segment=part, **asked)
        head = " ".join(sql.partition("*/")[0].split())
        assert r"by 'a\x3b DROP TABLE scores\x3b --'" in head  # as Python reads it
        assert not any(";" in own for own in re.findall(r"/\*.*?\*/", sql, flags=re.DOTALL))
        made = any("CREATE TABLE" in text for text in sql.statements)
        opened = len(dialect_of(dialect).begin) + 1  # what begins and ends a transaction
        more = opened if made and not dialect_of(dialect).swap else 0
        assert sql.count(";") == len(sql.statements) + more


@each_form
@each_dialect
def test_no_name_brings_a_semicolon_into_a_comment(dialect, form):
    """Of columns, classes, segments, tables and views: within its quotes only."""
    evil = "x; DROP TABLE scores"
    names = {"table": f"{evil}.t", "view": f"{evil} v", "keep": [evil], "into": f"{evil} p"}
    for map_ in (MAPS["platt"], MAPS["many steps"], SEGMENTED["numbers"], VECTORS["structured"]):
        several = isinstance(map_, VectorMap)
        labels, positive = (("a", evil, "c;"), None) if several else ((0, evil), evil)
        column = [f"{evil} {i}" for i in range(3)] if several else evil
        part = None if map_.segments is None else f"{evil} s"
        fitted = Fitted(map_, labels, positive, evil)
        for lookup in (None, f"{evil} l"):
            asked = names | {"column": column, "segment": part, "lookup": lookup}
            sql = to_sql(fitted, dialect=dialect, form=form, **asked)
            comments = re.findall(r"/\*.*?\*/", sql, flags=re.DOTALL)
            assert comments
            assert ";" not in "".join(comments)
            bare = re.sub(r"/\*.*?\*/", "", sql, flags=re.DOTALL)
            ends = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^]]*]", "", bare).count(";")
            made = any("CREATE TABLE" in text for text in sql.statements)
            opened = len(dialect_of(dialect).begin) + 1  # what begins and ends a transaction
            more = opened if made and not dialect_of(dialect).swap else 0
            assert ends == len(sql.statements) + more


def test_a_comment_holds_no_semicolon_whatever_it_says():
    assert comment("one; two") == "/* one, two */\n"


def test_keep_names_the_columns_of_a_query():
    sql = to_sql(STEP, form="lookup", keep=("id",), into="p")
    assert re.search(r"SELECT\n  r\.id,\n  CASE", sql)
    assert "r.*" not in sql
    nothing = to_sql(STEP, form="lookup", keep=(), into="p")
    assert re.search(r"SELECT\n  CASE", nothing)


def test_trees_are_balanced_and_steps_of_equal_value_are_one():
    map_ = Piecewise.step(np.arange(1, 200) / 200, np.linspace(0, 1, 200))
    depth = max(len(line) - len(line.lstrip()) for line in to_sql(map_).splitlines()) // 4
    assert depth <= 4
    same = Piecewise.step([0.1, 0.2, 0.3], [0.5, 0.5, 0.5, 0.7])
    assert "THEN\n  CASE WHEN score < 0.3e0 THEN 0.5e0 ELSE 0.7e0 END" in to_sql(same)


# --- numbers of other types ---------------------------------------------------------------------


@pytest.mark.parametrize("form", ["expression", "lookup"])
@pytest.mark.parametrize("name", ["steps", "lines", "platt", "logit", "identity"])
def test_integers_and_decimals_are_read_as_doubles(name, form):
    values = ["0", "1", "0.1", "0.3", "0.29999999999999998", "0.20000000000000001", "0.9"]
    exact = pa.array([Decimal(v) for v in values], pa.decimal128(38, 20))
    whole, single = [0, 1, 2, -3, 7, 0, 1], np.float32([0.1, 0.3, 0.2, 0.5, 1.0, 0.0, 2.0])
    for column in (exact, pa.array(whole, pa.int32()), pa.array(single)):
        rows = {"id": np.arange(7), "score": column}
        found = on_duckdb(query(to_sql(MAPS[name], form=form)), rows)
        doubles = np.array([float(v) for v in column.to_pylist()])
        np.testing.assert_allclose(
            [row[-1] for row in found], MAPS[name](doubles), rtol=0, atol=TOL
        )
    found = on_sqlite(
        query(to_sql(MAPS[name], form=form, dialect="sqlite")), {"id": [0, 1], "score": [0, 1]}
    )
    np.testing.assert_allclose([row[-1] for row in found], MAPS[name]([0.0, 1.0]), atol=TOL)


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(FINITE | st.sampled_from([LARGE, -LARGE]), min_size=1, max_size=50))
def test_numbers_are_read_to_the_last_bit(values):
    for engine, write in (("duckdb", plain_number), ("sqlite", quotient_number)):
        columns = ", ".join(f"{write(x)} AS c{i}" for i, x in enumerate(values))
        (row,) = ENGINES[engine]([f"SELECT id, {columns} FROM scores"], {"id": [0]})
        assert list(row[1:]) == values


@given(FINITE)
def test_numbers_have_an_exponent_and_are_normal_where_they_must_be(x):
    assert "e" in plain_number(x)
    normal = float(normal_number(x))
    assert normal == x or abs(x) < TINY
    assert normal == 0.0 or abs(normal) >= TINY
    assert normal >= x


def test_decimals_of_sqlite_are_quotients_that_read_well():
    assert quotient_number(0.3) == "(3e0 / 1e1)"
    assert quotient_number(-0.3) == "(-3e0 / 1e1)"
    assert quotient_number(123456789012345e10) == "1.23456789012345e+24" or "*" in quotient_number(
        1e23
    )
    assert quotient_number(math.inf) == "9e999"


# --- segments -----------------------------------------------------------------------------------

KEYS = ("fr", "de", "it's", "a\nb", "back\\slash", "${x}", "$(y)", "A", "a", "a ", "ü", '"', "--")
OWN = (SHIFT, STEP, LINES, PLATT, CURVED, Identity(), Mixture([0.5, 0.5], (PLATT, STEP)))
SEGMENTED: dict[str, Segmented] = {
    "text": Segmented(SHIFT, KEYS, tuple(OWN[i % len(OWN)] for i in range(len(KEYS)))),
    "shrunk": Segmented(PLATT, ("a", "b", "c"), (STEP, SHIFT, LINES), [0.5, 0.25, 0.0]),
    "numbers": Segmented(STEP, (-1, 0, 2**62), (STEP, LINES, MAPS["lines of the logit"])),
    "of the default": Segmented(SHIFT, ("a", "b"), (STEP, LINES), [0.5, 1.0], "default"),
    "of a curve": Segmented(CURVED, ("a", "b"), (LINES, BENT), None, "default"),
    "sigmoids": Segmented(
        PLATT, ("a", "b"), (Logistic(1.0, (("x", 1e-9),)), MAPS["logit, clipped"])
    ),
    "chains": Segmented(STEP, ("a", "b"), (Chain((PLATT, STEP)), Chain((SHIFT, PLATT, LINES)))),
    "all terms": Segmented(
        STEP, ("a", "b"), (MAPS["score and logit"], Logistic(0.1, (("ln_p", 1.0), ("x", -0.5))))
    ),
    "none": Segmented(STEP, (), ()),
}


@pytest.mark.parametrize("form", ["expression", "lookup"])
@pytest.mark.parametrize("name", SEGMENTED)
@pytest.mark.parametrize("engine", ["duckdb", "sqlite", "postgres-translated"])
def test_segments_get_their_own_map(engine, name, form):
    map_ = SEGMENTED[name]
    scores = edges(map_)
    rest = [7] if name == "numbers" else ["fr ", "FR", "", "other"]
    values = np.array([*map_.keys, *rest], dtype=object)
    segments = np.random.default_rng(0).permutation(np.resize(values, len(scores))).tolist()
    sql = to_sql(map_, dialect=dialect_for(engine), form=form, segment="part")
    agree(map_, sql, ENGINES[engine], scores, segments)
    assert probabilities(sql, ENGINES[engine], [0.5, 0.5], [None, segments[0]])[0] is None


@pytest.mark.parametrize("form", ["expression", "lookup"])
@each_dialect
def test_segments_are_parsed_in_every_dialect(dialect, form):
    for map_ in SEGMENTED.values():
        for statement in query(to_sql(map_, dialect=dialect, form=form, segment="part")):
            sqlglot.parse_one(statement, read=dialect)


def test_many_segments_share_tables():
    rng = np.random.default_rng(0)
    steps = [Piecewise.step(np.sort(rng.random(9)), np.sort(rng.random(10))) for _ in range(300)]
    map_ = Segmented(PLATT, tuple(f"s{i}" for i in range(300)), tuple(steps), rng.random(300))
    sql = to_sql(map_, segment="part")
    assert sum("CREATE TABLE" in text for text in sql.statements) == 2
    agree(map_, sql, on_duckdb, rng.random(3000), rng.choice([*map_.keys, "?"], 3000).tolist())


def test_refused_segments():
    with pytest.raises(InputError, match="name the column of segments with segment="):
        to_sql(SEGMENTED["text"])
    with pytest.raises(InputError, match="segment= is only for calibrators with a map per segment"):
        to_sql(STEP, segment="part")
    with pytest.raises(InputError, match="must be all text or all whole numbers"):
        to_sql(Segmented(STEP, (1, "1"), (STEP, STEP)), segment="part")
    with pytest.raises(InputError, match="at most 64 bits"):
        to_sql(Segmented(STEP, (2**63,), (STEP,)), segment="part")
    with pytest.raises(InputError, match="character 0"):
        to_sql(Segmented(STEP, ("a\0b",), (STEP,)), segment="part")


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_segments_whose_chains_go_on_after_lines(engine):
    hill = Piecewise.linear([-2.0, 0.0, 1.0], [-3.0, 2.0, -1.0], "logit", "logit")
    deep = Segmented(STEP, ("a", "b"), (Chain((LINES, SHIFT)), Chain((hill, STEP, SHIFT))))
    for form in ("expression", "lookup"):
        sql = to_sql(deep, dialect=engine, segment="part", form=form)
        scores = edges(deep)
        agree(deep, sql, ENGINES[engine], scores, np.resize(["a", "b", "c"], len(scores)).tolist())


# --- several classes ----------------------------------------------------------------------------

PAIR = (Piecewise.linear([0.1, 0.6], [0.0, 0.9]), Piecewise.step([0.4], [0.0, 0.7]), Identity())
SOFT = Softmax([[1.2, 0.1, 0.0], [-0.3, 0.9, 0.2], [0.0, 0.0, 1.0]], [0.1, -0.2, 0.0])
VECTORS = {
    "temperature": Softmax(0.7, [0.0, 0.0, 0.0]),
    "nothing": Softmax(0.0, [0.0, 0.5, 1.0]),
    "vector": Softmax([1.5, 0.5, 1.0], [0.1, -0.2, 0.0]),
    "matrix": SOFT,
    "dirichlet": Softmax(SOFT.matrix, SOFT.bias, "probability"),
    "floor": Softmax(1.0, SOFT.bias, "probability", 1e-3),
    "structured": Softmax(SOFT.matrix, SOFT.bias, "logit", inner=0.8),
    "one against all": Coded.one_vs_rest(PAIR),
    "reordered": Coded([[-1, 1, -1], [1, -1, -1], [-1, -1, 1]], PAIR),
    "labels": Columns(PAIR),
    "one label": Columns((SHIFT,)),
    "mixture": VectorMixture([0.25, 0.75, 0.0], (SOFT, Coded.one_vs_rest(PAIR), SOFT)),
    "mixture of logits": VectorMixture(
        [0.5, 0.5], (Softmax(1.0, [0, 0, 0], "probability"), SOFT), "logit", 1e-3, 0.5
    ),
    "mixture of powers": VectorMixture([1.0], (SOFT,), "probability", 0.01, 0.5),
    "mixture of floors": VectorMixture([1.0], (SOFT,), "probability", 0.01),
    "top label": TopLabel(Logistic(0.1, (("z", 0.5),)), 3),
    "top label of probabilities": TopLabel(Logistic(0.1, (("z", 0.5),)), 3, "probability"),
    "top label of powers": TopLabel(Logistic(0.1, (("z", 0.3),)), 3, "probability", 1.55),
}
VECTOR_SCORES = np.concatenate(
    (
        np.random.default_rng(0).dirichlet([0.3, 0.3, 0.3], 30),
        np.random.default_rng(1).normal(0.0, 5.0, (30, 3)),
        [[0, 0, 0], [1, 0, 0], [0, 1, 1], [800, 0, -800], [1e308, -1e308, 0], [5e-324, 0.5, 0.5]],
        [[0.1, 0.6, 0.4], [0.6, 0.1, 0.39999999999999997], [1e300, 1e300, 1e300]],
    )
)


def classes(sql: Sql, run: Engine, scores: Any) -> list[tuple[Any, ...]]:
    rows: Rows = {"id": np.arange(len(scores))}
    columns = zip(*scores, strict=True)
    rows |= {f"s {i}": pa.array(column, pa.float64()) for i, column in enumerate(columns)}
    found = run(sql.statements, rows)
    assert [row[0] for row in found] == list(range(len(scores)))
    return [row[1:] for row in found]


#: a few that take all kinds of steps
STEPPED = ("structured", "floor", "one against all", "mixture of powers", "one label")


@pytest.mark.parametrize(
    ("engine", "form"),
    [(engine, "expression") for engine in ENGINES] + [("duckdb", "lookup"), ("sqlite", "lookup")],
)
def test_several_classes_get_a_column_each(engine, form):
    for name in STEPPED if engine.endswith("-translated") else VECTORS:
        map_ = VECTORS[name]
        k = map_.n_columns
        names = [f"s {i}" for i in range(k)]
        sql = to_sql(map_, dialect=dialect_for(engine), column=names, form=form, keep=["id"])
        assert len([text for text in sql.statements if "SELECT" in text]) == 1
        wanted = map_(VECTOR_SCORES[:, :k])
        found = classes(sql, ENGINES[engine], VECTOR_SCORES[:, :k].tolist())
        np.testing.assert_allclose(found, wanted, rtol=0, atol=TOL)


@each_engine
def test_powers_and_shares_that_underflow_are_nothing(engine):
    """Below, a floor of 5e-324 takes their place: its logarithm is not that of exp(−600)."""
    member = Softmax(0.01, [0.0, 0.0], "probability")
    powers = VectorMixture([1.0], (member,), "probability", 0.0, 2.0)
    logits = VectorMixture([1.0], (member,), "logit")
    for map_, row in ((powers, [1.0, 1e-200]), (logits, [0.0, -2000.0])):
        sql = to_sql(map_, dialect=dialect_for(engine), column=["s 0", "s 1"], keep=["id"])
        found = classes(sql, ENGINES[engine], [row])
        np.testing.assert_allclose(found, map_(np.array([row])), rtol=0, atol=TOL)


#: all equal; the others far below the largest, where exp gives the smallest doubles, or 0
TOP_LOGITS = [[0, 0, 0], [-402, -307, 425], [0, -707.9, -708.1], [0, -720, -720.5], [5, 4, 3]]
TOP_LOGITS += [[-400, -400, 425], [0, -1000, -2000], [1, 1, 0], [1, 1, -710], [1e308, -1e308, 0]]
TOP_SHARES = [[1 / 3] * 3, [0, 0, 0], [1, 1, 1], [1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]]
TOP_SHARES += [[1, 1e-200, 0], [1, 1e-202, 1e-201], [1, 1e-290, 0], [1, 1e-300, 1], [0.9, 0.1, 0]]


@each_engine
def test_what_is_left_for_the_others_is_shared_as_in_memory(engine):
    for name in ("top label", "top label of probabilities", "top label of powers"):
        map_, rows = VECTORS[name], np.array(TOP_LOGITS if name == "top label" else TOP_SHARES)
        asked = {"column": ["s 0", "s 1", "s 2"], "keep": ["id"]}
        sql = to_sql(map_, dialect=dialect_for(engine), **asked)
        found = np.array(classes(sql, ENGINES[engine], rows.tolist()), dtype=float)
        np.testing.assert_allclose(found, map_(rows), rtol=0, atol=TOL, err_msg=name)


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_a_row_with_a_score_that_is_none_gets_no_distribution(engine, name):
    map_ = VECTORS[name]
    k = map_.n_columns
    rows = [[0.2] * i + [bad] + [0.2] * (k - i - 1) for bad in BAD for i in range(k)]
    sql = to_sql(map_, dialect=engine, column=[f"s {i}" for i in range(k)], keep=["id"])
    for row, found in zip(rows, classes(sql, ENGINES[engine], rows), strict=True):
        if map_.distribution:
            assert found == (None,) * k
        else:
            known = [s == 0.2 for s in row]
            assert [p is not None for p in found] == known


def test_columns_are_named_after_labels():
    def select(*labels: Any) -> str:
        fitted = Fitted(Columns(PAIR[: len(labels)]), labels, None, "x")
        return to_sql(fitted, column=[f"s{i}" for i in range(len(labels))])

    assert "AS probability_cat," in select("cat", "dog")
    assert "AS probability_1," in select(1, 2)
    assert 'AS "probability_new_line; --"' in select("new\nline; --", "b")
    assert 'AS "probability__{x}"' in select("${x}", "b")
    assert "AS probability_0," in select("a", "A")  # many databases do not tell them apart
    assert "r.s0,\n" in select("a", "b")  # the scores, where nothing else is asked for


def test_names_of_steps_give_way():
    sql = to_sql(SOFT, column=["z_0", "e", "c_step_1"], keep=["total"])
    assert "c_eta_0" in sql
    names = {alias.alias for alias in sqlglot.parse_one(sql.statements[0]).find_all(exp.Alias)}
    assert not names & {"z_0", "e", "c_step_1", "total"}


@pytest.mark.parametrize("combine", ["least_squares", "coupling", "pairwise"])
def test_what_is_found_by_iteration_is_refused(combine):
    pairs = Coded([[1, 1, 0], [-1, 0, 1], [0, -1, -1]], (Identity(),) * 3, combine)
    with pytest.raises(InputError, match=f"combines by '{combine}' cannot be written as SQL"):
        to_sql(pairs, column=["a", "b", "c"])


def test_what_is_advised_instead_of_iteration_is_written():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(3), 300)
    y = (scores.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    fitted = cal.CodedCalibrator(cal.Platt(), code="all_pairs").fit(scores, y)
    with pytest.raises(InputError) as refused:
        to_sql(fitted, column=["a", "b", "c"])
    with pytest.raises(InputError) as unmoved:
        fitted.map_.shifted(np.array([1.0, 2.0, 3.0]))
    for error in (refused, unmoved):
        assert 'code="one_vs_rest" and combine="normalize"' in str(error.value)
    advised = cal.CodedCalibrator(cal.Platt(), code="one_vs_rest", combine="normalize")
    advised.fit(scores, y).map_.shifted(np.array([1.0, 2.0, 3.0]))
    assert to_sql(advised, column=["a", "b", "c"]).statements


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_each_step_is_computed_once(engine):
    """Were uses of columns replaced by their formulas, this would take years."""
    rng = np.random.default_rng(0)
    map_ = Softmax(rng.normal(size=(12, 12)), rng.normal(size=12), "probability", inner=0.7)
    scores = rng.dirichlet(np.ones(12), 50)
    sql = to_sql(map_, dialect=engine, column=[f"s {i}" for i in range(12)], keep=["id"])
    found = classes(sql, ENGINES[engine], scores.tolist())
    np.testing.assert_allclose(found, map_(scores), rtol=0, atol=TOL)


def test_many_classes_stay_within_what_parsers_take():
    k = 130
    sql = to_sql(Softmax(0.5, np.zeros(k)), column=[f"s {i}" for i in range(k)], keep=["id"])
    scores = np.random.default_rng(0).normal(size=(3, k))
    np.testing.assert_allclose(
        classes(sql, on_duckdb, scores.tolist()), Softmax(0.5, np.zeros(k))(scores), atol=TOL
    )
    with pytest.raises(InputError, match="characters of SQL in one query"):
        to_sql(Softmax(np.ones((300, 300)), np.zeros(300)), column=[str(i) for i in range(300)])


# --- names, texts, comments ---------------------------------------------------------------------

HOSTILE = [
    "x; DROP TABLE scores; --",
    'a"b',
    "a`b",
    "a]b",
    "a'b",
    "a\\b",
    "a\\",
    "order",
    "Score",
    "1st",
    "ü ö",
    "/* */",
    "a.b",
]


#: statements of scripts; some that put a table in its place are known to their database only
KINDS = {"Drop", "Create", "Insert", "Select", "Alter", "Command"}


@pytest.mark.parametrize("name", HOSTILE)
@each_dialect
def test_names_are_only_names(dialect, name):
    if (dialect, name) == ("bigquery", "a.b"):
        pytest.skip("there is no such column, nor a way to write one")
    sql = to_sql(STEP, dialect=dialect, column=name, form="lookup", into=name, lookup="L o",
                 table=f"{name.replace('.', '')}.t")  # fmt: skip
    for statement in sql.statements:
        (parsed,) = sqlglot.parse(statement, read=dialect)
        assert type(parsed).__name__ in KINDS
    columns = {c.name for c in parsed.find_all(exp.Column) if c.table == "r" and c.name != "*"}
    assert columns == {name}
    assert parsed.selects[-1].alias == name
    assert {t.db for t in parsed.find_all(exp.Table)} == {name.replace(".", ""), ""}


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_found(engine, name):
    rows = {"id": [0], name: [0.5]}
    expression = to_sql(STEP, dialect=engine, column=name)
    found = ENGINES[engine]([f"SELECT id, {expression} FROM scores"], rows)
    assert found == [(0, 0.9)]


def test_a_name_that_is_not_found_is_no_text():
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        on_sqlite(query(to_sql(STEP, dialect="sqlite", column="My score")), {"id": [0]})


@pytest.mark.parametrize("key", [*KEYS, "' OR 1=1 --", "\\' OR 1=1 --", "\u2028", "\r\n  x"])
@each_dialect
def test_keys_are_only_text(dialect, key):
    map_ = Segmented(Piecewise.constant(0.5), (key,), (Piecewise.constant(0.25),))
    for form in ("expression", "lookup"):
        for text in query(to_sql(map_, dialect=dialect, form=form, segment="part")):
            (parsed,) = sqlglot.parse(text, read=dialect)
            assert type(parsed).__name__ in KINDS
    if dialect in ("duckdb", "sqlite"):
        sql = to_sql(map_, dialect=dialect, segment="part")
        assert probabilities(sql, ENGINES[dialect], [0.0, 0.0], [key, key + "x"]) == [0.25, 0.5]
    lines = to_sql(map_, dialect=dialect, segment="part", form="lookup").split("\n")
    assert not any(line.strip().upper() in ("GO", "DELIMITER") for line in lines)


def test_clients_find_no_variables_in_keys():
    map_ = Segmented(STEP, ("${x}", "$(y)"), (STEP, STEP))
    assert "${" not in to_sql(map_, dialect="spark", segment="part")
    assert "$(" not in to_sql(map_, dialect="tsql", segment="part")


def test_comments_end_with_their_line():
    evil = "a\n; DROP TABLE scores; --\r\u2028\x85b"
    fitted = Fitted(STEP, (evil, "z"), evil, "Iso\ntonic" * 100)
    for dialect in DIALECTS:
        sql = to_sql(fitted, dialect=dialect, form="lookup")
        parsed = [type(s).__name__ for s in sqlglot.parse(sql, read=dialect) if s]
        wanted = [k for k in parsed if k in ("Create", "Insert", "Select")]
        assert [wanted[0], wanted[1], wanted[-1]] == ["Create", "Insert", "Select"]
        more = {"Semicolon", "Transaction", "Commit", "Set"}
        assert set(parsed) <= KINDS | more
        assert "\n; DROP" not in sql
        assert not set("\r\u2028\x85") & set(sql)


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "${x}", "a\ud800", 3, None])
def test_names_that_no_database_takes(name):
    if name is not None:  # which is the default
        with pytest.raises(InputError, match="names of columns and tables must"):
            to_sql(STEP, form="lookup", into=name)
    with pytest.raises(InputError, match="names of columns and tables must"):
        to_sql(STEP, form="lookup", table=name)


def test_reserved_words_are_quoted():
    assert {"order", "select", "group", "user", "rank", "key", "table"} <= RESERVED
    for dialect in DIALECTS:
        text = to_sql(STEP, dialect=dialect, column="order")
        assert "order <" not in text
        sqlglot.parse_one(text, read=dialect)


# --- views --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
@each_form
def test_a_view_gives_the_rows_and_their_probabilities(engine, form):
    """Made anew after the next fit, it gives the next map's."""
    database = duckdb.connect() if engine == "duckdb" else sqlite3.connect(":memory:")
    database.execute("CREATE TABLE scores (id INTEGER, score DOUBLE)")
    database.executemany("INSERT INTO scores VALUES (?, ?)", [(0, 0.2), (1, 0.7), (2, None)])
    for map_ in (STEP, MAPS["many steps"], PLATT):
        sql = to_sql(map_, dialect=engine, form=form, view="calibrated")
        for statement in sql.statements:
            database.execute(statement)
        found = database.execute("SELECT * FROM calibrated ORDER BY id").fetchall()
        wanted = map_([0.2, 0.7]).tolist()
        assert [row[:2] for row in found] == [(0, 0.2), (1, 0.7), (2, None)]
        assert found[2][2] is None
        np.testing.assert_allclose([row[2] for row in found[:2]], wanted, rtol=0, atol=TOL)
    database.close()


@each_dialect
@each_form
def test_a_view_is_a_statement_of_its_dialect(dialect, form):
    fitted = Fitted(MAPS["many steps"], ("ham", "spam"), "spam", "Isotonic")
    sql = to_sql(fitted, dialect=dialect, form=form, view="mart.calibrated", keep=["id"])
    (parsed,) = sqlglot.parse(sql.statements[-1], read=dialect)
    assert parsed.kind == "VIEW"
    assert parsed.this.sql(dialect) == "mart.calibrated"
    assert [c.alias_or_name for c in parsed.expression.selects] == ["id", "probability"]
    assert "of 'spam' by 'Isotonic'" in sql.statements[-1]  # where it came from
    soft = to_sql(SOFT, dialect=dialect, column=["a", "b", "c"], view="v").statements[-1]
    assert sqlglot.parse_one(soft, read=dialect).kind == "VIEW"


@pytest.mark.parametrize("name", ["scores", "Lookup"])
def test_a_view_has_a_name_of_its_own(name):
    with pytest.raises(InputError, match="the view must have a name of its own"):
        to_sql(STEP, view=name, lookup="lookup")


# --- what is asked ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "meant"),
    [("postgresql", "postgres"), ("mssql", "tsql"), ("SQL Server", "tsql"), ("mariadb", "mysql"),
     ("DuckDB", "duckdb"), ("snowflakes", "snowflake"), ("big-query", "bigquery"),
     ("Athena", "trino")],
)  # fmt: skip
def test_an_unknown_dialect_is_told_the_known_ones(said, meant):
    known = ", ".join(DIALECTS)
    with pytest.raises(ParameterError, match=f"{known}, but '{said}' came. Did you mean '{meant}'"):
        to_sql(STEP, dialect=said)
    with pytest.raises(ParameterError, match=r"but 'oracle' came\.$"):
        to_sql(STEP, dialect="oracle")


def test_what_does_not_fit_is_refused():
    with pytest.raises(ParameterError, match="form must be one of"):
        to_sql(STEP, form="table")
    with pytest.raises(InputError, match="column must name 1 column of scores, but 2 came"):
        to_sql(STEP, column=["a", "b"])
    with pytest.raises(InputError, match="column must name 3 columns of scores, but 1 came"):
        to_sql(SOFT)
    with pytest.raises(InputError, match="must be a fitted calibrator"):
        to_sql("a.json")
    with pytest.raises(InputError, match="neither rise nor fall and whose last one jumps"):
        to_sql(Chain((CURVED, STEP)))
    x = np.arange(16_000) / 16_000
    with pytest.raises(InputError, match="characters of SQL in one query"):
        to_sql(Piecewise.linear(x, x**2), form="expression")


def test_what_needs_more_than_scores_is_refused():
    rng = np.random.default_rng(0)
    features, scores = rng.random((60, 2)), rng.random(60)
    local = cal.SimilarityBinning(gate=False).fit(
        scores, rng.random(60) < scores, features=features
    )
    with pytest.raises(InputError, match="cannot be exported"):
        to_sql(local)


def test_all_that_holds_a_map_is_taken():
    fitted = cal.Isotonic().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    assert to_sql(fitted) == to_sql(fitted.to_fitted())
    assert to_sql(fitted).split("*/")[1] == to_sql(fitted.map_).split("*/")[1]


def test_sql_is_text_that_can_be_copied():
    sql = to_sql(STEP, form="lookup")
    again = pickle.loads(pickle.dumps(sql))
    assert again == sql
    assert again.statements == sql.statements
    assert isinstance(sql, str)


def test_readable():
    """What a stranger sees: the formula, with the coefficients as they were fitted."""
    assert "\n  1e0 / (1e0 + EXP(-(0.5e0 + 2e0 * score)))\n" in to_sql(PLATT)
    assert to_sql(PLATT, dialect="postgres").split("*/\n")[1] == (
        "(CASE WHEN score::float8 BETWEEN -1.7976931348623157e+308 AND 1.7976931348623157e+308 "
        "THEN\n"
        "  1e0 / (1e0 + EXP(-(0.5e0 + 2e0 * GREATEST(-300e0, LEAST(300e0, score::float8)))))\n"
        "END)::float8"
    )


# --- other engines ------------------------------------------------------------------------------


@needs_spark
@pytest.mark.xdist_group("spark")
@pytest.mark.full
def test_spark_gives_what_calibrate_gives(tmp_path):
    from calibrant.engines.spark import Spark

    fast = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.warehouse.dir": str(tmp_path),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    scores = [*edges(MAPS["mixture"]).tolist(), *edges(MAPS["many steps"]).tolist(), *BAD]
    parts = np.resize(np.array([*KEYS, "?"], dtype=object), len(scores)).tolist()
    rows = {"id": np.arange(len(scores)), "score": pa.array(scores, pa.float64()), "part": parts}
    good = np.array(scores[: -len(BAD)])
    texts = {name: to_sql(map_, dialect="spark", form="expression") for name, map_ in MAPS.items()}
    texts["segments"] = to_sql(SEGMENTED["text"], dialect="spark", segment="part")
    wanted = {name: map_(good) for name, map_ in MAPS.items()}
    wanted["segments"] = SEGMENTED["text"](good, parts[: -len(BAD)])
    with Spark(threads=1, memory="1GB", config=fast) as spark:
        to_spark(spark.session, rows, 1).createOrReplaceTempView("scores")
        columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts.values()))
        found = spark.session.sql(f"SELECT id, {columns} FROM scores ORDER BY id").collect()
        for i, name in enumerate(texts):
            values = [row[i + 1] for row in found]
            assert values[-len(BAD) :] == [None] * len(BAD)
            np.testing.assert_allclose(
                np.array(values[: -len(BAD)], dtype=float), wanted[name], rtol=0, atol=TOL
            )
        for map_, lookup in ((MAPS["many steps"], "steps"), (MAPS["mixture"], "mixed")):
            *made, select = to_sql(map_, dialect="spark", form="lookup", lookup=lookup).statements
            for statement in made:
                spark.session.sql(statement)
            values = [r[-1] for r in sorted(spark.session.sql(select).collect())]
            assert len(values) == len(scores)
            assert values[-len(BAD) :] == [None] * len(BAD)
            np.testing.assert_allclose(
                np.array(values[: -len(BAD)], dtype=float), map_(good), rtol=0, atol=TOL
            )
        names = [f"s {i}" for i in range(3)]
        to_spark(
            spark.session, dict(zip(names, VECTOR_SCORES.T, strict=True)) | {"id": np.arange(69)}, 1
        ).createOrReplaceTempView("scores")
        for map_ in (VECTORS["structured"], VECTORS["one against all"]):
            (select,) = to_sql(map_, dialect="spark", column=names, keep=["id"]).statements
            found = [row[1:] for row in sorted(spark.session.sql(select).collect())]
            np.testing.assert_allclose(found, map_(VECTOR_SCORES), rtol=0, atol=TOL)


def on_postgres(statements: Sequence[str], rows: Rows) -> list[tuple[Any, ...]]:
    psycopg2 = pytest.importorskip("psycopg2")
    with psycopg2.connect(os.environ["CALIBRANT_POSTGRES"]) as connection:
        cursor = connection.cursor()
        types = {name: "bigint" if name == "id" else "float8" for name in rows}
        if "part" in rows:
            types["part"] = "text" if isinstance(rows["part"][0].as_py(), str) else "bigint"
        columns = ", ".join(f'"{name}" {type_}' for name, type_ in types.items())
        cursor.execute(f"CREATE TEMP TABLE scores ({columns})")
        marks = ", ".join(["%s"] * len(rows))
        values = zip(*(pa.array(c).to_pylist() for c in rows.values()), strict=True)
        cursor.executemany(f"INSERT INTO scores VALUES ({marks})", list(values))
        for statement in statements[:-1]:
            cursor.execute(statement.replace("CREATE TABLE", "CREATE TEMP TABLE"))
        cursor.execute(f"SELECT * FROM ({statements[-1]}) AS q ORDER BY id")
        found = cursor.fetchall()
        connection.rollback()
    return found


@pytest.mark.skipif(
    "CALIBRANT_POSTGRES" not in os.environ, reason="needs a server: CALIBRANT_POSTGRES"
)
def test_two_calibrators_of_one_postgres_keep_their_own_values():
    """And a next fit needs no view to be dropped first."""
    psycopg2 = pytest.importorskip("psycopg2")
    scores = np.linspace(0.0, 1.0, 101)
    with psycopg2.connect(os.environ["CALIBRANT_POSTGRES"]) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE SCHEMA calibrant_test")
        cursor.execute("SET search_path = calibrant_test")
        cursor.execute("CREATE TABLE scores (score float8)")
        cursor.executemany("INSERT INTO scores VALUES (%s)", [(s,) for s in scores.tolist()])
        scripts = two_views(dialect="postgres")
        scripts["p_a"] = (
            LINES,
            to_sql(LINES, dialect="postgres", form="lookup", view="p_a", into="p"),
        )
        for _, sql in [*two_views(dialect="postgres").values(), scripts["p_a"]]:
            for statement in sql.statements:
                cursor.execute(statement)
        for view, (map_, _) in scripts.items():
            cursor.execute(f"SELECT p FROM {view} ORDER BY score")
            found = [p for (p,) in cursor.fetchall()]
            np.testing.assert_allclose(found, map_(scores), rtol=0, atol=TOL)
        connection.rollback()


def on_mysql(statements: Sequence[str], rows: Rows) -> list[tuple[Any, ...]]:
    pymysql = pytest.importorskip("pymysql")
    socket = os.environ["CALIBRANT_MYSQL"]
    connection = pymysql.connect(unix_socket=socket, user="root", charset="utf8mb4")
    cursor = connection.cursor()
    for text in ("DROP DATABASE IF EXISTS calibrant_", "CREATE DATABASE calibrant_"):
        cursor.execute(text)
    cursor.execute("USE calibrant_")
    types = {name: "bigint" if name == "id" else "double" for name in rows}
    if "part" in rows:
        types["part"] = "text" if isinstance(rows["part"][0].as_py(), str) else "bigint"
    columns = ", ".join(f"`{name}` {type_}" for name, type_ in types.items())
    cursor.execute(f"CREATE TABLE scores ({columns})")
    for row in zip(*(pa.array(c).to_pylist() for c in rows.values()), strict=True):
        values = [_mysql(connection, value) for value in row]
        cursor.execute(f"INSERT INTO scores VALUES ({', '.join(values)})")
    for statement in statements[:-1]:
        cursor.execute(statement)
    cursor.execute(f"SELECT * FROM ({statements[-1]}) AS q ORDER BY id")
    found = list(cursor.fetchall())
    cursor.execute("DROP DATABASE calibrant_")
    connection.close()
    return found


def _mysql(connection: Any, value: Any) -> str:
    if isinstance(value, float):  # there are no others
        return plain_number(value) if math.isfinite(value) else "NULL"
    return str(connection.escape(value))


@pytest.mark.parametrize("form", ["expression", "lookup"])
@pytest.mark.parametrize(
    ("dialect", "run"),
    [
        pytest.param(
            name,
            run,
            marks=pytest.mark.skipif(place not in os.environ, reason=f"needs a server: {place}"),
            id=name,
        )
        for name, run, place in (
            ("postgres", on_postgres, "CALIBRANT_POSTGRES"),
            ("mysql", on_mysql, "CALIBRANT_MYSQL"),
        )
    ],
)
def test_servers_give_what_calibrate_gives(dialect, run, form):
    for map_ in MAPS.values():
        agree(map_, to_sql(map_, dialect=dialect, form=form), run, edges(map_))
    for name, map_ in SEGMENTED.items():
        scores = edges(map_)
        rest = [7] if name == "numbers" else ["fr ", "FR", "", "other"]
        segments = np.resize(np.array([*map_.keys, *rest], dtype=object), len(scores)).tolist()
        sql = to_sql(map_, dialect=dialect, form=form, segment="part")
        agree(map_, sql, run, scores, segments)
    for map_ in VECTORS.values():
        k = map_.n_columns
        names = [f"s {i}" for i in range(k)]
        sql = to_sql(map_, dialect=dialect, column=names, form=form, keep=["id"])
        found = classes(sql, run, VECTOR_SCORES[:, :k].tolist())
        np.testing.assert_allclose(found, map_(VECTOR_SCORES[:, :k]), rtol=0, atol=TOL)
    for rows, name in ((TOP_LOGITS, "top label"), (TOP_SHARES, "top label of powers")):
        sql = to_sql(VECTORS[name], dialect=dialect, column=["s 0", "s 1", "s 2"], keep=["id"])
        wanted = VECTORS[name](np.array(rows))
        np.testing.assert_allclose(classes(sql, run, rows), wanted, rtol=0, atol=TOL)
