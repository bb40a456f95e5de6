"""Decisions: SQL and Python give 1 exactly where ``calibrate`` gives at least the threshold."""

from __future__ import annotations

import math
import sqlite3

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.errors import InputError
from calibrant.maps import Identity, Logistic, Mixture, Piecewise, Segmented
from cases import each
from subjects import SEGMENTED, SHAPES, around, fitted, fitted_segments, fitted_vector, telling

#: maps of which it is not known where they rise and fall: what they give is compared
COMPARED = ("hill", "all terms", "mixture of two scales", "lines of a hill")
BAD = [None, math.nan, math.inf, -math.inf]


def on_duckdb(sql, scores, segments=None):
    columns = {"id": pa.array(range(len(scores))), "score": pa.array(scores, pa.float64())}
    columns |= {} if segments is None else {"segment": pa.array(segments)}
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("given_", pa.table(columns))
        connection.execute("CREATE TABLE scores AS SELECT * FROM given_")
        return _run(connection, sql)


def on_sqlite(sql, scores, segments=None):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE scores (id INTEGER, score REAL, segment)")
    own = [None] * len(scores) if segments is None else segments
    rows = zip(range(len(scores)), scores, own, strict=True)
    connection.executemany("INSERT INTO scores VALUES (?, ?, ?)", rows)
    found = _run(connection, sql)
    connection.close()
    return found


def _run(connection, sql):
    *made, query = sql.statements or (f"SELECT *, {sql} AS decision FROM scores",)
    for statement in made:
        connection.execute(statement)
    return [
        row[0]
        for row in connection.execute(f"SELECT decision FROM ({query}) AS q ORDER BY id").fetchall()
    ]


ENGINES = {"duckdb": on_duckdb, "sqlite": on_sqlite}


def of_python(calibrator, threshold, scores, segments=None):
    module = {}
    exec(cal.to_python(calibrator, threshold=threshold), module)
    rows = scores if segments is None else zip(scores, segments, strict=True)
    return [module["decide"](*np.atleast_1d(row) if segments is None else row) for row in rows]


def thresholds(p):
    """Some that the map takes exactly, or just misses, and some beyond all it gives."""
    some = np.random.default_rng(3).choice(p[(p >= 0.0) & (p <= 1.0)], 3).tolist()
    beside = [math.nextafter(some[0], 1.0), math.nextafter(some[1], 0.0)]
    return [0.0, 0.05, 0.5, 1.0, *some, *beside]


def known_scores(map_, margins=False):
    scores = telling(map_, margins)
    return np.unique(scores[np.isfinite(scores)])


# --- the map of 0 and 1 -------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
def test_a_decision_is_that_of_the_map_at_every_border(name):
    map_ = SHAPES[name]
    scores = known_scores(map_)
    p = map_(scores)
    for t in thresholds(p):
        decision = map_.decision(t)
        if name in COMPARED:
            assert decision is None
            continue
        near = np.concatenate((scores, around(decision.x)))
        assert np.array_equal(decision(near) == 1.0, map_(near) >= t)


@each()
@pytest.mark.parametrize("margins", [False, True])
def test_decisions_of_fitted_calibrators(case, margins):
    map_ = fitted(case.name, margins).map_
    scores = known_scores(map_, margins)
    for t in thresholds(map_(scores)):
        decision = map_.decision(t)
        assert (decision is None) == case.name.startswith("quadratic")
        if decision is not None:
            near = np.concatenate((scores, around(decision.x)))
            assert np.array_equal(decision(near) == 1.0, map_(near) >= t)


probabilities = st.floats(0.0, 1.0)
cuts = st.lists(st.floats(-50, 50), min_size=1, max_size=5, unique=True).map(sorted)


@st.composite
def maps(draw):
    """Steps, lines, formulas, and mixtures of two of them: rising, falling, flat and neither."""
    kind = draw(st.sampled_from(["steps", "lines", "formula", "mixture"]))
    if kind == "formula":
        return Logistic(draw(st.floats(-5, 5)), (("x", draw(st.floats(-5, 5))),))
    if kind == "mixture":
        share = draw(st.floats(0.05, 0.95))
        return Mixture([share, 1.0 - share], (draw(maps()), draw(maps())))
    x = draw(cuts)
    size = len(x) + (kind == "steps")
    values = draw(st.lists(probabilities, min_size=size, max_size=size))
    return Piecewise.step(x, values) if kind == "steps" else Piecewise.linear(x, values)


@given(maps(), probabilities, st.lists(st.floats(-60, 60), max_size=5))
def test_random_maps_in_every_target(map_, t, more):
    decision = map_.decision(t)
    borders = around(decision.x) if decision is not None else np.empty(0)
    scores = np.concatenate((borders, around([0.0]), more))
    p = map_(scores)
    if decision is None:  # the last bits of exp may decide there
        scores, p = scores[np.abs(p - t) > 1e-9], p[np.abs(p - t) > 1e-9]
    wanted = (p >= t).astype(int).tolist()
    assert of_python(map_, t, scores.tolist()) == wanted
    for name, engine in ENGINES.items():
        sql = cal.to_sql(map_, threshold=t, dialect=name)
        assert engine(sql, [*scores.tolist(), *BAD]) == [*wanted, *[None] * 4]


# --- targets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("form", ["expression", "lookup"])
def test_sql_and_python_decide_as_calibrate_does(name, form):
    map_ = SHAPES[name]
    scores = known_scores(map_)
    for t in thresholds(map_(scores))[1:5]:
        p = map_(scores)
        told = np.abs(p - t) > 1e-9 if name in COMPARED else np.full(len(p), True)
        near, wanted = scores[told].tolist(), (p >= t)[told].astype(int).tolist()
        assert of_python(map_, t, near) == wanted
        for dialect, engine in ENGINES.items():
            sql = cal.to_sql(map_, threshold=t, dialect=dialect, form=form)
            found = engine(sql, [*near, *BAD])
            assert found == [*wanted, None, None, None, None]
            assert {type(value) for value in found} <= {int, type(None)}


@pytest.mark.parametrize("name", [name for name in SEGMENTED if name != "both"])
@pytest.mark.parametrize("form", ["expression", "lookup"])
def test_segments_have_thresholds_of_their_own(name, form):
    map_ = SEGMENTED[name]
    if name == "words":  # without the hill, whose borders nobody knows
        map_ = Segmented(map_.default, map_.keys[::2], map_.maps[::2], map_.weights[::2])
    new = 7 if name == "numbers" else "new"
    every = np.tile(np.unique(known_scores(map_)), len(map_.keys) + 1)
    segments = np.repeat(np.array([*map_.keys, new], object), len(every) // (len(map_.keys) + 1))
    p = map_(every, segments)
    for t in thresholds(p)[1:6]:
        compared = map_.decision(t) is None
        told = np.abs(p - t) > 1e-9 if compared else np.full(len(p), True)
        near, keys = every[told].tolist(), segments[told].tolist()
        wanted = (p >= t)[told].astype(int).tolist()
        assert of_python(map_, t, near, keys) == wanted
        for dialect, engine in ENGINES.items():
            sql = cal.to_sql(map_, threshold=t, dialect=dialect, form=form, segment="segment")
            assert engine(sql, [*near, None, 0.5], [*keys, keys[0], None]) == [*wanted, None, None]


def test_segments_that_were_fitted():
    calibrator = fitted_segments()
    scores = np.linspace(0.0, 1.0, 200)
    keys = np.array(["de", "fr", "it", "es"])[np.arange(200) % 4]
    wanted = (calibrator.calibrate(scores, keys) >= 0.3).tolist()
    assert of_python(calibrator, 0.3, scores.tolist(), keys.tolist()) == wanted
    sql = cal.to_sql(calibrator, threshold=0.3, segment="segment")
    assert on_duckdb(sql, scores.tolist(), keys.tolist()) == wanted


# --- its words and what is refused --------------------------------------------------------------


def test_a_rising_map_becomes_one_comparison():
    calibrator = fitted("platt")
    at = calibrator.score_at(0.05).score
    sql, python = cal.to_sql(calibrator, threshold=0.05), cal.to_python(calibrator, threshold=0.05)
    assert f"CASE WHEN score < {at!r}e0 THEN 0 ELSE 1 END" in sql
    assert f"return score >= {at!r}" in python
    assert "1 where the probability is at least 0.05, else 0." in sql
    assert "def decide(score: float) -> bool:" in python


def test_falling_flat_and_unreachable():
    falls = Piecewise.step([0.5], [0.8, 0.1])
    assert "return score < 0.5" in cal.to_python(falls, threshold=0.3)
    flat = Piecewise.constant(0.3)
    assert "return True" in cal.to_python(flat, threshold=0.3)
    assert "return False" in cal.to_python(flat, threshold=math.nextafter(0.3, 1))
    assert on_duckdb(cal.to_sql(falls, threshold=0.9), [0.2, None]) == [0, None]


def test_a_view_names_the_column_decision():
    sql = cal.to_sql(Identity(), threshold=0.5, view="acted")
    assert "END AS decision" in sql
    assert cal.to_sql(Identity(), threshold=0.5, view="acted", into="act").count("AS act") == 1


@pytest.mark.parametrize("export", [cal.to_sql, cal.to_python])
def test_bad_wishes(export):
    for wrong in (-0.1, 1.5, math.nan, "half", True):
        with pytest.raises(InputError, match="threshold must be in"):
            export(Identity(), threshold=wrong)
    several = {"column": ["a", "b", "c"]} if export is cal.to_sql else {}
    with pytest.raises(InputError, match="calibrators of one score"):
        export(fitted_vector("vector"), threshold=0.5, **several)
