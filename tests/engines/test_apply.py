"""A calibrator applied where the rows are: every engine gives what `calibrate` gives."""

from __future__ import annotations

import gc
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.engines.apply import add_probabilities
from calibrant.errors import InputError, ParameterError
from calibrant.export.lookup_tables import Grid, grid_of, one_row_per_cell, regions_by_cell
from calibrant.fitting.registry import METHODS
from calibrant.losses import logit, sigmoid
from calibrant.maps import (
    Chain,
    Identity,
    Interval,
    Logistic,
    Mixture,
    Piecewise,
    Segmented,
    Softmax,
)
from calibrant.rules.plan.nodes import double_at, double_rank, regions
from strategies import costly

TOL = 1e-12
LARGE = float(np.finfo(np.float64).max)
ENDS = [0.0, -0.0, 1.0, 5e-324, 1 - 2.0**-53, 1e-300, -3.0, 2.0, 1e308, -1e308, LARGE, -LARGE]


class Kind(NamedTuple):
    """How frames of a kind are made of an Arrow table, and read back."""

    make: Callable[[pa.Table], Any]
    read: Callable[[Any], pl.DataFrame]


def _duckdb(table: pa.Table) -> Any:
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.register("rows_", table)
    return connection.sql("SELECT * FROM rows_")


def _ibis(table: pa.Table) -> Any:
    return pytest.importorskip("ibis").memtable(table)


LAZY = {
    "polars": Kind(lambda table: pl.from_arrow(table).lazy(), lambda frame: frame.collect()),
    "duckdb": Kind(_duckdb, lambda frame: pl.from_arrow(frame.to_arrow_table())),
    "ibis": Kind(_ibis, lambda frame: pl.from_arrow(frame.to_pyarrow())),
}
EAGER = {
    "pandas": Kind(lambda table: table.to_pandas(), pl.from_pandas),
    "polars-eager": Kind(pl.from_arrow, lambda frame: frame),
    "arrow": Kind(lambda table: table, pl.from_arrow),
}
each_lazy = pytest.mark.parametrize("kind", LAZY)
each = pytest.mark.parametrize("kind", {**LAZY, **EAGER})


def frame(kind: str, **columns: Any) -> Any:
    """A frame of a kind with these columns and a row number, "id"."""
    n = len(next(iter(columns.values())))
    return {**LAZY, **EAGER}[kind].make(pa.table({"id": np.arange(n), **columns}))


def rows(kind: str, native: Any) -> pl.DataFrame:
    """Its rows in the order of "id"."""
    return {**LAZY, **EAGER}[kind].read(native).sort("id")


def applied(kind: str, calibrator: Any, scores: Any, **options: Any) -> np.ndarray:
    """The new column, rows counted."""
    made = rows(
        kind,
        add_probabilities(
            calibrator, frame(kind, score=scores), score="score", on_range="allow", **options
        ),
    )
    assert made["id"].to_list() == list(range(len(scores)))
    return made["probability"].to_numpy()


def knots(map_: Any) -> np.ndarray:
    """Where a map has knots, on the scale of the score (nearly)."""
    if isinstance(map_, Interval):
        return knots(map_.point)
    if isinstance(map_, Chain):
        return np.concatenate(
            [knots(map_.steps[0]), *(logit(knots(step)) for step in map_.steps[1:])]
        )
    if isinstance(map_, Piecewise):
        return sigmoid(map_.x) if map_.input == "logit" else map_.x
    return np.empty(0)


def around(points: np.ndarray) -> np.ndarray:
    """Points and the doubles beside them."""
    found = [points]
    for toward in (-np.inf, np.inf):
        at = points
        for _ in range(3):
            with np.errstate(over="ignore"):
                at = np.nextafter(at, toward)
            found.append(at)
    flat = np.concatenate(found)
    return flat[np.isfinite(flat)]


def telling(map_: Any, margins: bool, n: int = 500) -> np.ndarray:
    """Scores that tell a wrong piece from the right one."""
    rng = np.random.default_rng(5)
    scores = rng.normal(0, 3, n) if margins else rng.random(n)
    borders = np.arange(0, 2**14, 97) / 2**14  # borders of cells
    return np.concatenate((scores, around(knots(map_)), around(borders), ENDS))


# --- every method -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted() -> dict[tuple[str, bool], Any]:
    rng = np.random.default_rng(0)
    p = rng.beta(0.6, 2, 600)
    y = (rng.random(600) < p**1.5).astype(int)
    made = {}
    for name, (cls, _) in METHODS.items():
        for margins in (False, True):
            made[name, margins] = getattr(cal, cls)().fit(logit(p) if margins else p, y)
    return made


@pytest.mark.parametrize("kind", ["polars", "duckdb"])
@pytest.mark.parametrize("margins", [False, True], ids=["probabilities", "margins"])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_as_calibrate(fitted, name, margins, kind):
    calibrator = fitted[name, margins]
    scores = telling(calibrator.map_, margins)
    assert np.abs(applied(kind, calibrator, scores) - calibrator.map_(scores)).max() <= TOL


@each
def test_a_fitted_value_and_a_map_do_as_well(fitted, kind):
    calibrator = fitted["isotonic", False]
    scores = np.linspace(0, 1, 50)
    for form in (calibrator, calibrator.to_fitted(), calibrator.map_):
        assert applied(kind, form, scores).tolist() == calibrator.map_(scores).tolist()


# --- maps of any shape --------------------------------------------------------------------------

LINE = Piecewise.linear([0.2, 0.5, 0.8], [0.1, 0.7, 0.2])
JUMP = Piecewise.step([0.3, 0.5, 0.9], [0.1, 0.4, 0.2, 0.9])
STEEP = Piecewise(np.array([0.3, np.nextafter(0.3, 1)]), np.array([0.1, 0.9]), np.array([0.2, 0.8]))
FAR = Piecewise.linear([-1.7e308, 0.0, 1.7e308], [0.0, 0.4, 1.0])
SMALL = Piecewise.linear([0.0, 5e-324, 1e-323], [0.0, 0.4, 1.0])
# 1/width is infinite, and some engines multiply by it
NARROW = Piecewise.linear([-5e-324, 5e-324, 1e-310], [0.2, 0.7, 0.9])
NARROW_AND_WIDE = Piecewise.linear(
    [-1e-310, 5e-324, 0.5, 1.0], [0.9, 0.2, 0.8, 0.3], output="logit"
)
FALL = Logistic(0.2, (("x", -1.5),))
HILL = Logistic(0.2, (("z", 0.5), ("z2", -0.3)))
MANY = Piecewise.step(np.linspace(0.001, 0.999, 400), np.random.default_rng(1).random(401))
MANY_LINES = Piecewise.linear(
    np.linspace(-9, 9, 300), np.random.default_rng(2).random(300), "logit"
)
CROWD = Piecewise.step(0.3 + 1e-12 * np.arange(900), np.random.default_rng(3).random(901))

SHAPES = {
    "line": LINE,
    "jump": JUMP,
    "steep": STEEP,
    "far": FAR,
    "small": SMALL,
    "narrow": NARROW,
    "narrow and wide": NARROW_AND_WIDE,
    "jumps at the smallest numbers": Piecewise(
        np.array([-5e-324, 1e-310]), np.array([0.5, 0.8]), np.array([0.1, 0.3])
    ),
    "one knot": Piecewise.constant(0.3),
    "many steps": MANY,
    "many lines of the logit": MANY_LINES,
    "crowded steps": CROWD,
    "overflow": Logistic(0.0, (("x", 1e280),)),
    "square": Logistic(0.1, (("x", 0.5), ("z2", 0.01)), clip=(0.0, 0.9)),
    "interval": Interval(Piecewise.constant(0.1), Piecewise.constant(0.9), JUMP),
    "mixture of steps and lines": Mixture([0.3, 0.7], (JUMP, LINE)),
    "mixture of two scales": Mixture([0.25, 0.25, 0.5], (MANY, MANY_LINES, HILL)),
    "mixture above one": Mixture([0.5, 0.5 + 9e-10], (Piecewise.constant(1.0),) * 2),
    "steps of a falling sigmoid": Chain((FALL, JUMP)),
    "many steps of a falling sigmoid": Chain((FALL, MANY)),
    "steps of the logit of a sigmoid": Chain(
        (Logistic(0.3, (("x", 2.0),)), Piecewise.step([-1.0, 0.5], [0.1, 0.5, 0.9], "logit"))
    ),
    "lines of a hill": Chain((HILL, LINE)),
    "steps of steps that fall": Chain((JUMP, Piecewise.step([0.2, 0.4], [0.7, 0.1, 0.9]))),
    "sigmoid of steps": Chain((JUMP, HILL)),
    "steps of lines that rise": Chain((Piecewise.linear([0, 1], [0.2, 0.9]), JUMP)),
    "a segmented map within another": Chain((Identity(), Segmented(LINE, (1,), (JUMP,)))),
}


@each_lazy
@pytest.mark.parametrize("shape", SHAPES)
def test_any_shape(shape, kind):
    map_ = SHAPES[shape]
    scores = np.concatenate((telling(map_, False), telling(map_, True)))
    assert np.abs(applied(kind, map_, scores) - map_(scores)).max() <= TOL


def test_very_many_knots():
    rng = np.random.default_rng(4)
    map_ = Piecewise.step(np.unique(rng.beta(0.5, 3, 200_000)), rng.random(200_001))
    scores = np.concatenate((around(map_.x[::1000]), rng.random(5000), ENDS))
    for kind in ("polars", "duckdb"):
        assert applied(kind, map_, scores).tolist() == map_(scores).tolist()


@st.composite
def piecewise(draw: Any) -> Piecewise:
    """Few or many knots, spread or crowded, jumps or none, on either scale."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m = draw(st.sampled_from([1, 2, 5, 20, 70, 300]))
    input_ = draw(st.sampled_from(["score", "logit"]))
    steps = draw(st.booleans())
    spread = draw(st.sampled_from([1e-14, 1e-6, 1.0, 1e3, 1e307]))
    x = np.unique(draw(st.sampled_from([0.0, 0.3, -2.0])) + spread * rng.random(m))
    if input_ == "logit" and not steps:  # slopes at which the rounding of a logit stays below 1e-12
        x = np.arange(m) * 0.5 - draw(st.sampled_from([0.0, 3.0, 30.0]))
    left, right = rng.random((2, len(x)))
    if steps:
        left[1:] = right[:-1]
    elif draw(st.booleans()):
        left = right
    output = draw(st.sampled_from(["probability", "logit"]))
    if output == "logit":
        left, right = 6 * left - 3, 6 * right - 3
    return Piecewise(x, left, right, input_, output)


@given(piecewise(), st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=5))
def test_random_pieces_on_polars(map_, more):
    scores = np.concatenate((telling(map_, False, 50), telling(map_, True, 50), more))
    assert np.abs(applied("polars", map_, scores) - map_(scores)).max() <= TOL


@given(piecewise())
@costly
def test_random_pieces_on_duckdb(map_):
    scores = np.concatenate((telling(map_, False, 50), telling(map_, True, 50)))
    assert np.abs(applied("duckdb", map_, scores) - map_(scores)).max() <= TOL


def test_jumps_after_a_hill_are_refused():
    with pytest.raises(InputError, match="neither rise nor fall"):
        add_probabilities(Chain((HILL, JUMP)), frame("polars", score=[0.1]), score="score")


# --- the table of pieces ------------------------------------------------------------------------


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_counted(x):
    at = double_rank(np.array([x]))
    assert double_at(at)[0] == x
    if x < LARGE:
        assert double_at(at + 1)[0] == math.nextafter(x, math.inf)


@pytest.mark.parametrize("falling", [False, True])
def test_borders_are_exact(falling):
    sign = -1.0 if falling else 1.0
    x = np.linspace(0.05, 0.95, 40)
    found = regions(x, lambda s: sigmoid(sign * s), falling)
    for ends in (found.low, found.high):
        assert np.searchsorted(x, sigmoid(sign * ends), side="right").tolist() == list(found.piece)
    assert (np.nextafter(found.high[:-1], np.inf) == found.low[1:]).all()


@given(st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=60, unique=True))
def test_every_score_finds_its_region_in_its_cell(points):
    found = regions(np.sort(np.array(points) + 0.0), None, falling=False)
    grid = grid_of(found.low)
    cell, region = regions_by_cell(grid, found.low, found.high)
    scores = around(np.concatenate((found.low, ENDS)))
    right = np.searchsorted(found.low, scores, side="right") - 1
    pairs = set(zip(cell.tolist(), region.tolist(), strict=True))
    assert all((c, r) in pairs for c, r in zip(grid(scores).tolist(), right.tolist(), strict=True))


def test_crowded_cells_are_left_out_of_the_packed_rows():
    grid = Grid(2)
    found = regions(np.array([0.1, 0.2, 0.3, 0.8]), None, falling=False)
    pack = one_row_per_cell(*regions_by_cell(grid, found.low, found.high), 2)
    assert pack.cell.tolist() == [1, 2]
    assert pack.crowded.tolist() == [0, 1, 2, 3]


# --- missing scores -----------------------------------------------------------------------------

GAPS = pa.array([0.2, None, 0.7, math.nan, math.inf, -math.inf, 0.4])


@each_lazy
@pytest.mark.parametrize(
    "map_", [JUMP, MANY, CROWD, HILL, Identity(), MANY_LINES, Chain((JUMP, MANY))]
)
def test_missing_scores_get_null(kind, map_):
    made = rows(
        kind, add_probabilities(map_, frame(kind, score=GAPS), score="score", on_missing="null")
    )
    p = made["probability"]
    assert len(p) == len(GAPS)
    assert p.is_null().to_list() == [False, True, False, True, True, True, False]
    assert np.abs(p.drop_nulls().to_numpy() - map_([0.2, 0.7, 0.4])).max() <= TOL


@each_lazy
@pytest.mark.parametrize("size", [3000, 50_000])
@pytest.mark.full
def test_missing_scores_cost_no_row_where_pieces_are_crowded(kind, size):
    """A row without a score must not be dropped with the pieces of its cell that do not hold."""
    rng = np.random.default_rng(9)
    map_ = Piecewise.step(np.sort(rng.random(size)), rng.random(size + 1))
    members = Segmented(map_, ("a", "b"), (LINE, map_), [0.5, 0.7])
    for one, segment in ((map_, None), (members, "g")):
        native = frame(kind, score=GAPS, g=["a", "b", "c", "a", "b", "c", "b"])
        made = add_probabilities(one, native, score="score", segment=segment, on_missing="null")
        missing = rows(kind, made)["probability"].is_null().to_list()
        assert missing == [False, True, False, True, True, True, False]


@pytest.mark.parametrize("kind", EAGER)
def test_missing_scores_in_memory(kind):
    made = rows(
        kind, add_probabilities(JUMP, frame(kind, score=GAPS), score="score", on_missing="null")
    )
    p = made["probability"].fill_nan(None)
    assert p.to_list() == [0.1, None, 0.2, None, None, None, 0.4]
    with pytest.raises(InputError, match=r"must be (complete|finite)"):
        add_probabilities(JUMP, frame(kind, score=GAPS), score="score")


@each_lazy
def test_missing_scores_are_counted_and_refused(kind):
    with pytest.raises(InputError) as refused:
        add_probabilities(JUMP, frame(kind, score=GAPS), score="score")
    for words in ("1 of 7 is NULL", "1 of 7 is NaN", "2 of 7 are infinite", "on_missing"):
        assert words in str(refused.value)


@each
def test_no_rows(kind):
    made = rows(kind, add_probabilities(MANY, frame(kind, score=np.empty(0)), score="score"))
    assert made.columns == ["id", "score", "probability"]
    assert len(made) == 0


# --- rows and columns ---------------------------------------------------------------------------


@each
def test_columns_keep_their_order_and_types(kind):
    native = frame(kind, score=np.float32([0.2, 0.6]), word=["a", "b"], n=np.int16([1, 2]))
    made = add_probabilities(MANY, native, score="score", into="p")
    before, after = (nw.from_native(f).collect_schema() for f in (native, made))
    assert after.names() == [*before.names(), "p"]
    assert all(after[name] == before[name] for name in before.names())
    assert type(made) is type(native)
    assert rows(kind, made)["p"].to_list() == MANY(np.float32([0.2, 0.6])).tolist()


@each
@pytest.mark.parametrize("dtype", [pa.int8(), pa.int64(), pa.bool_(), pa.float32()])
def test_scores_of_any_number_type(kind, dtype):
    made = add_probabilities(
        FALL, frame(kind, score=pa.array([0, 1, 1]).cast(dtype)), score="score"
    )
    assert np.abs(rows(kind, made)["probability"].to_numpy() - FALL([0, 1, 1])).max() <= TOL


@each_lazy
def test_odd_names(kind):
    name = "sc\"ore's; é"
    columns = {name: [0.2, 0.6], "__calibrant_1": [1, 2], "__CALIBRANT__2": [3, 4]}
    made = rows(kind, add_probabilities(MANY, frame(kind, **columns), score=name, into='p "x"'))
    assert made.columns == ["id", *columns, 'p "x"']
    assert made['p "x"'].to_list() == MANY([0.2, 0.6]).tolist()
    assert made["__calibrant_1"].to_list() == [1, 2]


def test_polars_keeps_the_order_of_rows():
    scores = np.random.default_rng(6).random(20_000)
    lazy = add_probabilities(CROWD, frame("polars", score=scores), score="score")
    for engine in ("in-memory", "streaming"):
        made = lazy.collect(engine=engine)
        assert made["id"].to_list() == list(range(len(scores)))
        assert made["probability"].to_list() == CROWD(scores).tolist()


@each_lazy
def test_equal_rows_stay_as_many(kind):
    scores = np.repeat([0.3, 0.3 + 5e-10, 0.9], 200)
    assert applied(kind, CROWD, scores).tolist() == CROWD(scores).tolist()


def test_pandas_with_an_index_of_its_own():
    native = pd.DataFrame({"score": [0.2, 0.6]}, index=["b", "a"])
    made = add_probabilities(JUMP, native, score="score")
    assert made.index.tolist() == ["b", "a"]
    assert made["probability"].tolist() == JUMP([0.2, 0.6]).tolist()


def test_a_duckdb_relation_keeps_its_table_and_leaves_nothing():
    connection = duckdb.connect()
    relation = connection.sql("SELECT range / 100 AS score FROM range(100)")
    made = add_probabilities(MANY, relation, score="score")
    twice = add_probabilities(CROWD, made, score="score", into="other")
    del relation, made
    gc.collect()
    connection.execute("CREATE TABLE mine AS SELECT 1 AS a")
    got = np.array(twice.order("score").fetchall())
    assert got[:, 1].tolist() == MANY(got[:, 0]).tolist()
    assert got[:, 2].tolist() == CROWD(got[:, 0]).tolist()
    assert connection.sql("SHOW TABLES").fetchall() == [("mine",)]


# --- segments -----------------------------------------------------------------------------------

WORDS = ("de", "fr", "it's", "none")
MEMBERS = (JUMP, Logistic(0.1, (("z", 1.3),), clip=(0.01, 0.99)), MANY_LINES, LINE)
BY_WORD = Segmented(HILL, WORDS, MEMBERS, [0.25, 1.0, 0.5, 0.0])
BY_NUMBER = Segmented(
    LINE,
    (1, 2, 3, 4, 5),
    (
        Chain((FALL, JUMP)),
        Chain((Logistic(0.0, (("x", 1.0),)), MANY)),
        Mixture([0.5, 0.5 + 9e-10], (Logistic(0.1, (("x", 2.0),)), Piecewise.constant(1.0))),
        Identity(),
        Interval(JUMP, JUMP, MANY),
    ),
    [0.9, 1.0, 0.3, 0.7, 0.6],
)
OF_DEFAULT = Segmented(
    Logistic(0.3, (("z", 0.7),)),
    (1, 2),
    (JUMP, Logistic(0.1, (("z", 2.0),))),
    [0.5, 1.0],
    "default",
)


@each
@pytest.mark.parametrize(
    "map_", [BY_WORD, BY_NUMBER, OF_DEFAULT], ids=["words", "numbers", "default"]
)
def test_segments_as_the_map(map_, kind):
    rng = np.random.default_rng(7)
    base = telling(Chain((FALL, JUMP)), False)
    unseen = "xx" if map_ is BY_WORD else 99
    segments = rng.choice(np.array([*map_.keys, unseen]), len(base))
    made = add_probabilities(map_, frame(kind, score=base, g=segments), score="score", segment="g")
    got = rows(kind, made)
    assert len(got) == len(base)
    assert np.abs(got["probability"].to_numpy() - map_(base, segments)).max() <= TOL


@each
def test_a_missing_segment_is_refused_or_gets_nothing(kind):
    native = frame(kind, score=[0.3, 0.3, 0.3], g=["a", None, "none of them"])
    with pytest.raises(InputError, match=r"segment column 'g'.*1 of 3"):
        add_probabilities(BY_WORD, native, score="score", segment="g")
    options = {"on_missing": "null", "on_new_segment": "allow"}
    made = add_probabilities(BY_WORD, native, score="score", segment="g", **options)
    got = rows(kind, made)["probability"].to_numpy()
    assert np.isnan(got[1])
    assert got[2] == pytest.approx(float(BY_WORD.default([0.3])[0]), abs=TOL)


@each
@pytest.mark.parametrize(
    ("scores", "segments"), [([], []), ([float("nan")], ["de"])], ids=["no row", "no score"]
)
def test_segments_of_no_usable_row(kind, scores, segments):
    native = frame(kind, score=np.array(scores), g=pa.array(segments, pa.string()))
    made = add_probabilities(BY_WORD, native, score="score", segment="g", on_missing="null")
    assert rows(kind, made)["probability"].to_list() == [None] * len(scores)


@pytest.mark.parametrize("kind", ["polars", "duckdb"])
def test_a_thousand_segments(kind):
    rng = np.random.default_rng(8)
    maps = tuple(
        Piecewise.linear(np.sort(rng.normal(0, 3, 30)) + np.arange(30), rng.random(30), "logit")
        for _ in range(1000)
    )
    map_ = Segmented(LINE, tuple(range(1000)), maps, rng.random(1000))
    scores, segments = rng.random(20_000), rng.integers(0, 1010, 20_000)
    made = add_probabilities(
        map_, frame(kind, score=scores, g=segments), score="score", segment="g"
    )
    got = rows(kind, made)["probability"].to_numpy()
    assert np.abs(got - map_(scores, segments)).max() <= TOL


@each
def test_segments_too_long_for_a_signed_integer(kind):
    keys = (1, 2**63 + 5, "a")
    map_ = Segmented(LINE, keys, (JUMP,) * 3, [0.5, 1.0, 1.0])
    segments = np.array([1, 2**63 + 5, 2**63 + 6, 7], dtype=np.uint64)
    made = add_probabilities(
        map_, frame(kind, score=[0.4] * 4, g=segments), score="score", segment="g"
    )
    got = rows(kind, made)["probability"].to_numpy()
    assert np.abs(got - map_(np.full(4, 0.4), segments)).max() <= TOL
    assert abs(got[1] - got[2]) > 0.01


@each
def test_whole_numbers_far_from_all_segments_cost_no_row(kind):
    segments = np.array([-(2**62), -1, 0, 3, 6, 2**62])
    native = frame(kind, score=[0.4] * 6, g=segments)
    made = add_probabilities(BY_NUMBER, native, score="score", segment="g", on_new_segment="allow")
    got = rows(kind, made)["probability"].to_numpy()
    assert np.abs(got - BY_NUMBER(np.full(6, 0.4), segments)).max() <= TOL


@each
def test_the_first_and_the_last_number_of_64_bits(kind):
    ends = (-(2**63), 2**63 - 1)
    map_ = Segmented(Piecewise.constant(0.5), ends, (LINE, JUMP))
    made = add_probabilities(
        map_, frame(kind, score=[0.4] * 2, g=list(ends)), score="score", segment="g"
    )
    got = rows(kind, made)["probability"].to_numpy()
    assert np.abs(got - map_(np.full(2, 0.4), np.array(ends))).max() <= TOL


def test_segments_of_another_kind_are_refused():
    with pytest.raises(InputError, match="segments are text, but column 'g' is whole numbers"):
        add_probabilities(BY_WORD, frame("polars", score=[0.1], g=[1]), score="score", segment="g")
    with pytest.raises(InputError, match="text or whole numbers, but its type is Float64"):
        add_probabilities(
            BY_NUMBER, frame("polars", score=[0.1], g=[1.5]), score="score", segment="g"
        )


# --- refusals -----------------------------------------------------------------------------------


@each
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"score": "scroe"},
            "has no column 'scroe' (score). Its columns are 'id', 'score', 'word'",
        ),
        ({"score": "scroe"}, "Did you mean 'score'?"),
        ({"score": "score", "into": "word"}, "already has a column 'word'"),
        ({"score": "word"}, "must be numbers, but its type is String"),
        (
            {"score": "score", "segment": "word"},
            "one map for all rows, but a column of segments came: 'word'",
        ),
    ],
)
def test_columns_that_cannot_be(kind, options, words):
    with pytest.raises(InputError) as refused:
        add_probabilities(JUMP, frame(kind, score=[0.1], word=["a"]), **options)
    assert words in str(refused.value)


def test_names_that_differ_in_case_are_the_same_to_sql():
    with pytest.raises(InputError, match="already has"):
        add_probabilities(JUMP, frame("duckdb", score=[0.1]), score="score", into="SCORE")
    made = add_probabilities(JUMP, frame("polars", score=[0.1]), score="score", into="SCORE")
    assert made.collect().columns == ["id", "score", "SCORE"]


@pytest.mark.parametrize(
    ("path", "reader", "command"),
    [
        ("new.csv.gz", "duckdb.read_csv('new.csv.gz')", "new.csv.gz -o calibrated.csv.gz"),
        (Path("a b.jsonl"), "duckdb.read_json('a b.jsonl')", "-o calibrated.jsonl"),
        (["day-*.parquet"], "duckdb.read_parquet('day-*.parquet')", "-o calibrated.parquet"),
    ],
)
def test_a_path_is_told_how_to_become_a_frame(path, reader, command):
    with pytest.raises(InputError) as refused:
        add_probabilities(JUMP, path, score="score")
    assert reader in str(refused.value)
    assert command in str(refused.value)


LIVING = """
import duckdb
import calibrant as cal
c = cal.{method}().fit([0.1, 0.2, 0.8, 0.9, 0.4, 0.6] * 20, [0, 1, 0, 1, 0, 1] * 20)
scores = duckdb.sql("SELECT 0.3::DOUBLE AS score UNION ALL SELECT NULL")
lazy = cal.add_probabilities(c, scores, score="score", on_missing="null")
assert len(lazy.fetchall()) == 2
"""


@pytest.mark.parametrize("method", ["Platt", "VennAbers"])
@pytest.mark.full
def test_a_script_ends_without_a_word(method):
    """A relation that lives as long as the script is no leak to DuckDB's binding."""
    script = LIVING.format(method=method)
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_calibrators_that_cannot_be():
    rows_ = frame("polars", score=[0.1])
    with pytest.raises(InputError, match="reads 3 columns of scores"):
        add_probabilities(Softmax(1.0, [0.0, 0.0, 0.0]), rows_, score="score")
    with pytest.raises(InputError, match="must be a fitted calibrator"):
        add_probabilities("isotonic.json", rows_, score="score")
    with pytest.raises(InputError, match="segment="):
        add_probabilities(BY_WORD, rows_, score="score")
    with pytest.raises(ValueError, match="fit"):
        add_probabilities(cal.Platt(), rows_, score="score")


def test_frames_and_options_that_cannot_be():
    with pytest.raises(InputError, match=r"path of a file came.*duckdb.read_parquet"):
        add_probabilities(JUMP, "rows.parquet", score="score")
    for other in ([0.1, 0.2], {"score": [0.1]}, pl.Series([0.1])):
        with pytest.raises(InputError, match="DuckDB relation, a Polars LazyFrame"):
            add_probabilities(JUMP, other, score="score")
    with pytest.raises(ParameterError, match="on_missing"):
        add_probabilities(JUMP, frame("polars", score=[0.1]), score="score", on_missing="drop")
