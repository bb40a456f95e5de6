"""Frames of every kind and files → score tables: the same as of the rows in memory."""

from __future__ import annotations

import datetime
import decimal
import gzip
import threading
from pathlib import Path

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data import lazy
from calibrant.data.lazy import Names
from calibrant.data.score_table import Cells, ScoreTable
from calibrant.engines.duckdb import Session
from calibrant.errors import InputError, ParameterError
from lazy_frames import KINDS, LAZY, frame
from strategies import REAL, WHOLE, costly, rows

few = settings(costly, suppress_health_check=[HealthCheck.function_scoped_fixture])
S, Y = [0.1, 0.4, 0.4, 0.9], [0, 1, 0, 1]
NAN, INF = float("nan"), float("inf")
#: without those that are DuckDB or Arrow underneath, and slow
FASTER = tuple(kind for kind in KINDS if kind not in ("ibis", "pandas of Arrow"))
EXPECTED = ScoreTable.from_arrays(S, Y)


def table(kind, columns, **options):
    return cal.score_table(frame(kind, columns), **{"score": "s", "label": "y", **options})


def close(found: ScoreTable, wanted: ScoreTable) -> bool:
    """The same scores, and sums that differ by their rounding alone."""
    same = np.array_equal(found.scores, wanted.scores)
    pairs = zip(found.columns, wanted.columns, strict=True)
    return same and all(np.allclose(a, b, rtol=1e-12, atol=0.0) for a, b in pairs)


def test_frames_in_memory_and_wrapped_ones():
    frames = [pl.DataFrame({"s": S, "y": Y}), nw.from_native(pl.LazyFrame({"s": S, "y": Y}))]
    for given_ in frames:
        assert cal.score_table(given_, score="s", label="y") == EXPECTED


def test_labels_are_whole_numbers_in_pandas_without_a_detour():
    """Old pandas warns where a column of floats becomes one of whole numbers again."""
    frame_ = nw.from_native(pd.DataFrame({"s": S, "y": Y})).lazy()
    rows = lazy.read_lazy(frame_, Names("s", "y"))
    assert rows.coded().collect()["y"].dtype == nw.Int64


# --- exact tables -------------------------------------------------------------------------------


@given(rows())
def test_exact_table_equals_that_of_the_rows(drawn):
    s, y, w = drawn
    found = table("polars", {"s": s, "y": y, "w": w}, weight="w", cells="exact")
    assert found == ScoreTable.from_arrays(s, y, w)
    assert (found.error, found.made) == (0.0, "")
    assert table("polars", {"s": s, "y": y}) == ScoreTable.from_arrays(s, y)


@given(rows(weight=REAL))
def test_exact_table_with_real_weights(drawn):
    s, y, w = drawn
    found = table("polars", {"s": s, "y": y, "w": w}, weight="w")
    assert close(found, ScoreTable.from_arrays(s, y, w))


@few
@given(drawn=rows(weight=st.one_of(WHOLE, REAL)))
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_frame(kind, drawn):
    s, y, w = drawn
    columns = {"s": s, "y": y, "w": w}
    assert close(table(kind, columns, weight="w"), ScoreTable.from_arrays(s, y, w))
    assert table(kind, columns) == ScoreTable.from_arrays(s, y)


@pytest.mark.parametrize("kind", FASTER)
@pytest.mark.parametrize(
    ("no", "yes", "type_"),
    [
        (0, 1, pa.int8()),
        (-1, 1, pa.int64()),
        (1, 2, pa.uint16()),
        (2**53, 2**53 + 1, pa.int64()),
        (False, True, pa.bool_()),
        (0.0, 1.0, pa.float64()),
        (0.0, 1.0, pa.float32()),
        ("no", "yes", pa.string()),
        ("n'o", 'y"es', pa.string()),
        ("", "x", pa.string()),
        ("ham", "spam", pa.dictionary(pa.int32(), pa.string())),
        (decimal.Decimal("0.00"), decimal.Decimal("1.00"), pa.decimal128(5, 2)),
        (datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), pa.date32()),
        (datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1), pa.timestamp("us")),
        (b"a", b"b", pa.binary()),
    ],
    ids=str,
)
def test_labels_of_all_kinds(kind, no, yes, type_):
    columns = {"s": S, "y": pa.array([no, yes, no, yes], type_)}
    assert table(kind, columns) == EXPECTED
    assert table(kind, columns, pos_label=yes) == EXPECTED
    swapped = table(kind, columns, pos_label=no)
    assert swapped.positive.tolist() == EXPECTED.negative.tolist()


def test_categories_and_enumerations():
    words = ["no", "yes", "no", "yes"]
    for kind in (pl.Categorical, pl.Enum(["yes", "no", "maybe"])):
        lazy_ = pl.LazyFrame({"s": S, "y": pl.Series(words, dtype=kind)})
        assert cal.score_table(lazy_, score="s", label="y") == EXPECTED
    categories = pd.Categorical(words, categories=["yes", "no"], ordered=True)
    in_memory = pd.DataFrame({"s": S, "y": categories})
    assert cal.score_table(in_memory, score="s", label="y") == EXPECTED
    connection = duckdb.connect()
    connection.sql("CREATE TYPE answer AS ENUM ('yes', 'no', 'maybe')")
    rows_ = ", ".join(f"({s}, '{word}'::answer)" for s, word in zip(S, words, strict=True))
    relation = connection.sql(f"SELECT * FROM (VALUES {rows_}) t(s, y)")
    assert cal.score_table(relation, score="s", label="y") == EXPECTED


@pytest.mark.parametrize("kind", KINDS)
def test_decimal_labels_are_numbers(kind):
    """So that what is fitted to them can be saved."""
    labels = pa.array([decimal.Decimal(y) for y in Y], pa.decimal128(3, 1))
    fitted = cal.fit_isotonic(frame(kind, {"s": S, "y": labels}), score="s", label="y")
    assert [type(label) for label in fitted.classes] == [int, int]
    assert fitted.pos_label == 1


@pytest.mark.parametrize("kind", FASTER)
@pytest.mark.parametrize(("label", "positive"), [(1, 4), (0, 0), (-1, 0), (True, 4), (1.0, 4)])
def test_one_label_that_tells_the_other(kind, label, positive):
    for cells in ("auto", "exact", 16):
        found = table(kind, {"s": S, "y": [label] * 4}, cells=cells)
        assert (found.total_positive, found.total) == (positive, 4)


@pytest.mark.parametrize("kind", FASTER)
@pytest.mark.parametrize(
    "scores",
    [
        pa.array([0.1, 0.4, 0.4, 0.9], pa.float32()),
        pa.array([-3, 7, 7, 2**40], pa.int64()),
        pa.array([1, 2, 2, 3], pa.uint8()),
        pa.array([False, True, True, False]),
    ],
    ids=lambda array: str(array.type),
)
def test_scores_of_all_number_types(kind, scores):
    values = np.array(scores.to_pylist(), dtype=np.float64)
    if scores.type == pa.float32():
        values = values.astype(np.float32).astype(np.float64)
    wanted = ScoreTable.from_arrays(values, Y)
    for cells in ("exact", "auto"):
        assert close(table(kind, {"s": scores, "y": Y}, cells=cells), wanted)
    pooled = table(kind, {"s": scores, "y": Y}, cells=16)
    assert (pooled.total, pooled.total_positive) == (4.0, 2.0)
    assert wanted.scores[0] <= pooled.scores[0] <= pooled.scores[-1] <= wanted.scores[-1]


@pytest.mark.parametrize("kind", FASTER)
@pytest.mark.parametrize(
    ("top", "wanted"),
    [(10.02, "percentages"), (1.02, "margins"), (101.0, "points"), (0.9, "probabilities")],
)
def test_cells_keep_the_range_that_says_how_scores_are_read(kind, top, wanted):
    """The mean score of the last cell lies below the largest score."""
    scores = np.append(np.linspace(0.0, 0.999 * top, 2000), top)
    columns = {"s": scores, "y": (np.arange(2001) % 3 == 0).astype(int)}
    for cells in (16, 64):
        found = table(kind, columns, cells=cells)
        assert found.scores[-1] < top
        assert found.scale.kind == wanted == ScoreTable.from_arrays(scores, columns["y"]).scale.kind


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pandas"])
def test_decimal_scores_and_weights(kind):
    numbers = pa.array([decimal.Decimal(text) for text in ("0.10", "0.25", "0.50", "0.75")])
    found = table(kind, {"s": numbers, "y": Y, "w": numbers}, weight="w")
    assert close(found, ScoreTable.from_arrays([0.1, 0.25, 0.5, 0.75], Y, [0.1, 0.25, 0.5, 0.75]))


@pytest.mark.parametrize("kind", FASTER)
@pytest.mark.parametrize("cells", ["exact", 16, "auto"])
def test_negative_zero_is_zero(kind, cells):
    found = table(kind, {"s": [-0.0, 0.0, 0.0, -0.0], "y": Y}, cells=cells)
    assert found.scores.tolist() == [0.0]
    assert not np.signbit(found.scores).any()


NAMES = ["x", "w0", "y", "w", "g", "k", "q1", "at", "wx", "rows", "low", "X", "SELECT", "negative"]
ODD = ["a b", 'a"b', "a'b", "é", "a.b", "a`b", "[a]", "{a}", "%s", "a;b", "a\\b", "--", "n0", "w1"]


@pytest.mark.parametrize("kind", LAZY)
def test_columns_of_any_name(kind):
    """Each name as a score, as a label, as a weight; our own names too."""
    wanted = ScoreTable.from_arrays(S, Y, [1, 2, 3, 4])
    for names in (NAMES, ODD):
        for i in range(len(names)):
            roles = dict(zip(("score", "label", "weight"), (names + names)[i : i + 3], strict=True))
            columns = dict(zip(roles.values(), (S, Y, [1, 2, 3, 4]), strict=True))
            cells = (2**20, "exact")[i % 2]
            assert close(cal.score_table(frame(kind, columns), **roles, cells=cells), wanted)


def test_columns_are_told_apart_by_case():
    found = cal.score_table(pl.LazyFrame({"S": Y, "s": S, "Y": S, "y": Y}), score="s", label="y")
    assert found == EXPECTED


# --- refusals -----------------------------------------------------------------------------------

BAD_SCORES = {
    "missing": ([0.1, None, 0.3, None], "2 of 4 are missing"),
    "infinite": ([0.1, INF, -INF, 0.4], "2 of 4 are infinite"),
    "one infinite": ([0.1, 0.2, INF, 0.4], "1 of 4 is infinite"),
}
BAD_WEIGHTS = {
    "missing": ([1.0, None, 1.0, 1.0], "1 of 4 is missing"),
    "negative": ([1.0, -1.0, 1.0, -1e-300], "2 of 4 are negative"),
    "infinite": ([1.0, INF, 1.0, 1.0], "1 of 4 is above 1e\\+100"),
    "huge": ([1.0, 1e300, 1.0, 1.0], "1 of 4 is above 1e\\+100"),
    "zero": ([0.0, 0.0, 0.0, 0.0], "be positive for at least one row, but all are zero"),
}


@pytest.mark.parametrize("kind", FASTER)
@pytest.mark.parametrize("cells", ["exact", 16])
@pytest.mark.parametrize("case", BAD_SCORES)
def test_bad_scores(kind, cells, case):
    scores, words = BAD_SCORES[case]
    with pytest.raises(InputError, match=f"score column 's' must be finite: {words}"):
        table(kind, {"s": scores, "y": Y}, cells=cells)


@pytest.mark.parametrize("kind", FASTER)
@pytest.mark.parametrize("cells", ["exact", 16])
@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights(kind, cells, case):
    weights, words = BAD_WEIGHTS[case]
    with pytest.raises(InputError, match=f"weight column 'w' must.*{words}"):
        table(kind, {"s": S, "y": Y, "w": weights}, weight="w", cells=cells)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cells", ["exact", 16])
def test_nan_is_named_once(kind, cells):
    word = "missing" if kind == "pandas" else "NaN"  # pandas knows no difference
    bad = [1.0, NAN, 1.0, 1.0]
    with pytest.raises(InputError, match=f"finite: 1 of 4 is {word}. Drop"):
        table(kind, {"s": bad, "y": Y}, cells=cells)
    with pytest.raises(InputError, match=f"1 of 4 is {word}. Correct"):
        table(kind, {"s": S, "y": Y, "w": bad}, weight="w", cells=cells)
    with pytest.raises(InputError, match=f"label column 'y' must be complete: 1 of 4 is {word}"):
        table(kind, {"s": S, "y": [0.0, NAN, 0.0, 1.0]}, cells=cells)


@pytest.mark.parametrize("kind", FASTER)
@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 1, 2, 1], "at least 3 came: 0, 1, 2"),
        (["a", "b", "c", "d"], "at least 4 came: 'a', 'b', 'c', 'd'"),
        (["a", "a", "a", "a"], "only one class came: 'a'"),
        ([7, 7, 7, 7], "only one class came: 7"),
        ([0.0, 1.0, 0.25, 1.0], "soft labels.*such as 0.25"),
        ([0, 1, None, 1], "1 of 4 is missing"),
        (pa.array([None] * 4, pa.int64()), "4 of 4 are missing"),
        (pa.array([None] * 4, pa.string()), "4 of 4 are missing"),
    ],
    ids=str,
)
def test_bad_labels(kind, labels, words):
    with pytest.raises(InputError, match=f"label column 'y' must.*{words}"):
        table(kind, {"s": S, "y": labels})


def test_soft_decimal_labels():
    soft = pa.array([decimal.Decimal(text) for text in ("0.5", "1.0", "0.5", "1.0")])
    for kind in KINDS:
        with pytest.raises(InputError, match="soft labels"):
            table(kind, {"s": S, "y": soft})


@pytest.mark.parametrize("kind", FASTER)
@pytest.mark.parametrize("cells", ["exact", 16, "auto"])
def test_surprises_after_the_first_rows(kind, cells):
    n = lazy_head() + 5
    scores, labels = np.linspace(0, 1, n), np.arange(n) % 2
    third = np.where(np.arange(n) == n - 1, 2, labels)
    with pytest.raises(InputError, match="at least 3 came: 0, 1, 2"):
        table(kind, {"s": scores, "y": third}, cells=cells)
    gap = pa.array([*labels[:-1].tolist(), None])
    with pytest.raises(InputError, match=f"1 of {n:,} is missing"):
        table(kind, {"s": scores, "y": gap}, cells=cells)
    late = np.where(np.arange(n) == n - 1, "yes", "no")
    assert table(kind, {"s": scores, "y": late}, cells=cells).total_positive == 1


def lazy_head() -> int:
    from calibrant.data.lazy import HEAD

    return HEAD


@pytest.mark.parametrize("kind", FASTER)
@pytest.mark.parametrize("cells", ["exact", 16, "auto"])
def test_empty_frame(kind, cells):
    nothing = {"s": pa.array([], pa.float64()), "y": pa.array([], pa.int64())}
    with pytest.raises(InputError, match="at least one row"):
        table(kind, nothing, cells=cells)


@pytest.mark.parametrize("kind", KINDS)
def test_unusable_columns(kind):
    good = {"score": S, "y": Y, "word": ["a", "b", "c", "d"], "nested": [[1], [2], [3], [4]]}
    with pytest.raises(InputError, match=r"no column 'Scroe'.*'score', 'y'.*Did you mean 'score'"):
        cal.score_table(frame(kind, good), score="Scroe", label="y")
    for role in ("label", "weight"):
        with pytest.raises(InputError, match=f"no column 'absent' \\({role}\\)"):
            cal.score_table(frame(kind, good), **{"score": "score", "label": "y", role: "absent"})
    for role, name in (("score", "word"), ("weight", "word"), ("score", "nested")):
        with pytest.raises(InputError, match=f"{role} column '{name}' must be numbers, but its"):
            cal.score_table(frame(kind, good), **{"score": "score", "label": "y", role: name})
    with pytest.raises(InputError, match="label column 'nested' must hold plain values"):
        cal.score_table(frame(kind, good), score="score", label="nested")
    for name in (None, 3, ["score"]):
        with pytest.raises(InputError, match="score must be the name of a column"):
            cal.score_table(frame(kind, good), score=name, label="y")


@pytest.mark.parametrize(
    "odd",
    [None, 3, {"s": S, "y": Y}, np.zeros((3, 2)), [], pd.Series(S), pl.Series(S), b"x", EXPECTED],
    ids=lambda odd: type(odd).__name__,
)
def test_unsupported_objects(odd):
    with pytest.raises(InputError, match=f"frame must be.*but {type(odd).__name__} came"):
        cal.score_table(odd, score="s", label="y")


def test_lists_must_be_of_files():
    for odd in ([pl.LazyFrame({"s": S, "y": Y})], ["a.csv", pl.LazyFrame({"s": S, "y": Y})]):
        with pytest.raises(InputError, match="frame must be"):
            cal.score_table(odd, score="s", label="y")


@pytest.mark.parametrize(
    "cells", ["Exact", 15, 14, 0, -16, 2**26 + 2, 64.0, True, None, [16], "16"]
)
def test_bad_cells(cells):
    with pytest.raises(ParameterError, match='cells must be "auto", "exact" or an even number'):
        table("polars", {"s": S, "y": Y}, cells=cells)


@pytest.mark.parametrize("asked", ["1", 2, "yes"])
def test_unknown_positive_label(asked):
    with pytest.raises(InputError, match="pos_label must be one of the classes"):
        table("polars", {"s": S, "y": Y}, pos_label=asked)


# --- cells --------------------------------------------------------------------------------------


def check_pooled(found: ScoreTable, s, y, w, cells: Cells) -> None:
    """A table of cells against the rows: sums, places, and how far any row was moved."""
    exact = ScoreTable.from_arrays(s, y, w)
    number, wanted = cells(exact.scores), []
    for k in np.unique(number):
        part = number == k
        wanted.append([column[part].sum() for column in exact.columns])
    sums = np.array(wanted).T
    assert len(found) == sums.shape[1] <= cells.count + 1
    for column, sum_ in zip(found.columns, sums, strict=True):
        np.testing.assert_allclose(column, sum_, rtol=1e-12)
    place = found.scores[np.searchsorted(np.unique(number), number)]
    moved = np.abs(place - exact.scores).max()
    assert moved <= found.error
    assert found.error <= moved * (1 + 1e-12)
    low, high = (
        np.array([f(exact.scores[number == k]) for k in np.unique(number)])
        for f in (np.min, np.max)
    )
    assert (low <= found.scores).all()
    assert (found.scores <= high).all()
    assert bool(found.made) == bool(found.error)


@given(rows(weight=st.one_of(WHOLE, REAL), max_size=60), st.sampled_from([16, 32, 486]))
def test_cells_of_probabilities(drawn, count):
    s, y, w = drawn
    found = table("polars", {"s": s, "y": y, "w": w}, weight="w", cells=count)
    if s.min() >= 0.0 and s.max() <= 1.0:
        check_pooled(found, s, y, w, Cells(count))
    else:
        exact = ScoreTable.from_arrays(s, y, w)
        np.testing.assert_allclose(found.total_positive, exact.total_positive, rtol=1e-12)
        np.testing.assert_allclose(found.total_negative, exact.total_negative, rtol=1e-12)
        assert exact.scores[0] <= found.scores[0] <= found.scores[-1] <= exact.scores[-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [16, 486, 4096])
def test_cells_in_every_kind_of_frame(kind, count):
    rng = np.random.default_rng(3)
    s, w = rng.beta(0.3, 3, 3000), rng.integers(0, 4, 3000)
    y = (rng.random(3000) < s).astype(int)
    found = table(kind, {"s": s, "y": y, "w": w}, weight="w", cells=count)
    check_pooled(found, s, y, w.astype(float), Cells(count))
    assert found.made == f"{count:,} cells, even in the logit"
    plain = table(kind, {"s": s, "y": y}, cells=count)
    check_pooled(plain, s, y, None, Cells(count))


@pytest.mark.parametrize("kind", FASTER)
@pytest.mark.parametrize(
    "scores",
    [
        [1.7e308, -1.7e308, 1.7e308, 0.0],
        [1.7e308, 1.6e308, 1.7e308, 1.65e308],  # the sum of two overflows
        [-1.7e308, -1.7e308, -1.7e308, -1.6e308],
        [-5e-324, -1e-323, -1.5e-323, 0.0],  # the spread underflows
        [7.0, 7.0, 7.0, 7.0],
        [-1e-300, 1e300, 2.0, 3.0],
    ],
    ids=str,
)
def test_margins_of_any_size(kind, scores):
    exact = ScoreTable.from_arrays(scores, Y)
    found = table(kind, {"s": scores, "y": Y}, cells=16)
    assert (found.total, found.total_positive) == (4.0, 2.0)
    assert exact.scores[0] <= found.scores[0]
    assert found.scores[-1] <= exact.scores[-1]
    wide = found.scores.astype(np.longdouble)  # differences may overflow
    assert np.abs(wide[:, None] - exact.scores).min(axis=0).max() <= found.error
    assert table(kind, {"s": scores, "y": Y}) == exact


@pytest.mark.parametrize("share", [0.001, 0.3, 0.6])
@pytest.mark.parametrize("far", [-999_999.0, 1e300])
def test_far_scores_do_not_crowd_the_others(share, far):
    """A code for "unknown" makes the standard deviation; the cells go where the scores are."""
    rng = np.random.default_rng(0)
    s = rng.normal(size=5000)
    s[: int(5000 * share)] = far
    found = table("polars", {"s": s, "y": np.arange(5000) % 2}, cells=1024)
    assert len(found) > 250
    assert found.error < 0.05
    assert far in found.scores


def test_a_peak_does_not_cost_the_others_their_cells():
    rng = np.random.default_rng(0)
    s = rng.normal(size=5000)
    s[:2500] *= 1e-9
    found = table("polars", {"s": s, "y": np.arange(5000) % 2}, cells=1024)
    assert found.error < 0.05


def test_one_score_in_each_cell_is_exact():
    cells = Cells(1000)
    s = np.linspace(0.01, 0.99, 80)
    assert len(set(cells(s).tolist())) == 80
    found = table("duckdb", {"s": s, "y": np.arange(80) % 2}, cells=1000)
    assert found == ScoreTable.from_arrays(s, np.arange(80) % 2)
    assert (found.error, found.made) == (0.0, "")


def test_cells_of_rows_without_weight_are_left_out():
    s = [0.1, 0.2, 0.9]
    for kind in KINDS:
        found = table(kind, {"s": s, "y": [0, 1, 1], "w": [1.0, 0.0, 2.0]}, weight="w", cells=16)
        assert found.scores.tolist() == [0.1, 0.9]


def test_rows_without_weight_do_not_widen_the_error():
    s, y, w = [0.300, 0.301, 0.302], [0, 1, 1], [1.0, 0.0, 0.0]
    found = table("polars", {"s": s, "y": y, "w": w}, weight="w", cells=16)
    assert (found.scores.tolist(), found.error) == ([0.3], 0.0)


# --- "auto" -------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """A data set of 200 rows is a large one."""
    monkeypatch.setattr(lazy, "EXACT", 40)
    monkeypatch.setattr(lazy, "SEEN", 50)
    few = ("auto", lambda rows: 16 if rows < 500 else 32)
    monkeypatch.setattr(lazy.LazyRows.grouped, "__defaults__", few)


@pytest.fixture
def asked(monkeypatch):
    """Which questions are asked of the rows."""
    calls = []
    for name in ("by_score", "extent", "by_key"):
        real = getattr(lazy.LazyRows, name)

        def spy(self, *args, _real=real, _name=name):
            calls.append(_name)
            return _real(self, *args)

        monkeypatch.setattr(lazy.LazyRows, name, spy)
    return calls


@pytest.mark.parametrize("kind", LAZY)
@pytest.mark.parametrize(
    ("scores", "questions", "cells"),
    [
        # few scores: exact
        (np.arange(200) % 40, ["by_score"], None),
        # one too many, and the first rows do not show it
        (
            np.r_[np.zeros(60), np.arange(40), 40],
            ["by_score", "extent", "by_key"],
            16,
        ),
        # the first rows show it
        (np.arange(200), ["extent", "by_key"], 16),
        (np.arange(600), ["extent", "by_key"], 32),
    ],
    ids=["few", "late", "early", "more rows, more cells"],
)
def test_auto(small, asked, kind, scores, questions, cells):
    s = scores / 1000.0
    y = np.arange(len(s)) % 2
    found = table(kind, {"s": s, "y": y})
    if kind == "ibis" and "by_score" not in questions:  # its first rows may be any rows
        assert asked[-1] == questions[-1]
    else:
        assert asked == questions
    if cells is None:
        assert found == ScoreTable.from_arrays(s, y)
    else:
        check_pooled(found, s, y, None, Cells(cells))
        assert found.made.startswith(f"{cells} cells")


@pytest.mark.parametrize("kind", LAZY)
def test_auto_refuses_bad_rows_on_every_way(small, kind):
    bad = np.arange(200) / 200.0
    bad[100] = NAN
    with pytest.raises(InputError, match="1 of 200 is NaN"):
        table(kind, {"s": bad, "y": np.arange(200) % 2})
    late = np.r_[np.zeros(60), np.arange(40) / 40.0, 2.0]
    labels = pa.array([*(np.arange(100) % 2).tolist(), None])
    with pytest.raises(InputError, match="1 of 101 is missing"):
        table(kind, {"s": late, "y": labels})


# --- what is left behind ------------------------------------------------------------------------


def test_the_connection_is_left_as_it_was():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT range / 100.0 AS s, range % 2 AS y FROM range(100)"
    )
    state = (
        "SELECT table_name FROM information_schema.tables ORDER BY 1",
        "SELECT name, value FROM duckdb_settings() ORDER BY 1",
        "SELECT function_name FROM duckdb_functions() ORDER BY 1",
        "SELECT sum(s), count(*) FROM t",
    )
    before = [connection.execute(query).fetchall() for query in state]
    relation = connection.sql("SELECT * FROM t")
    for cells in ("auto", "exact", 16):
        cal.score_table(relation, score="s", label="y", cells=cells)
    cal.fit_isotonic(relation, score="s", label="y", cells=16)
    with pytest.raises(InputError):
        cal.score_table(relation, score="s", label="s", cells=16)
    assert [connection.execute(query).fetchall() for query in state] == before
    assert relation.columns == ["s", "y"]


@pytest.mark.parametrize("kind", ["pandas", "pandas of Arrow", "pyarrow"])
def test_the_frame_is_left_as_it_was(kind):
    columns = {"s": S, "y": Y, "x": ["a", "b", "c", "d"]}
    given_, twin = frame(kind, columns), frame(kind, columns)
    cal.score_table(given_, score="s", label="y", cells=16)
    assert given_.equals(twin)


def test_a_relation_of_a_filter_and_a_join():
    """Any query, not a table alone."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE a AS SELECT range AS id, range / 100.0 AS s FROM range(100)")
    connection.execute("CREATE TABLE b AS SELECT range AS id, range % 3 = 0 AS y FROM range(100)")
    relation = connection.sql("SELECT s, y FROM a JOIN b USING (id) WHERE id < 50 ORDER BY s DESC")
    i = np.arange(50)
    found = cal.score_table(relation, score="s", label="y")
    assert found == ScoreTable.from_arrays(i / 100.0, i % 3 == 0)


def test_many_queries_at_once():
    """Threads with connections of their own do not disturb each other."""
    rng = np.random.default_rng(5)
    data = [(rng.random(20_000), rng.integers(0, 2, 20_000)) for _ in range(4)]
    found: dict[int, ScoreTable] = {}

    def work(i: int) -> None:
        rows_ = pa.table({"s": data[i][0], "y": data[i][1]})
        own = duckdb.connect().from_arrow(rows_) if i % 2 else pl.from_arrow(rows_).lazy()
        found[i] = cal.score_table(own, score="s", label="y", cells=(256, "exact")[i // 2])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, (s, y) in enumerate(data):
        if i // 2:
            assert found[i] == ScoreTable.from_arrays(s, y)
        else:
            check_pooled(found[i], s, y, None, Cells(256))


def test_interruption_leaves_the_session_usable():
    """Ctrl-C while a query runs: the query ends, the session answers the next one."""

    def interrupted(_fraction: float) -> None:
        raise KeyboardInterrupt

    with Session(threads=1, progress=interrupted) as session:
        slow = "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"
        with pytest.raises(KeyboardInterrupt):
            session.query(slow)
        for thread in threading.enumerate():
            if thread.name == "calibrant-duckdb":
                thread.join(timeout=30)
                assert not thread.is_alive()
        session._progress = None
        assert session.query("SELECT 6 * 7") == [(42,)]


# --- files --------------------------------------------------------------------------------------


def write(folder: Path, name: str, s, y, w=None) -> Path:
    path = folder / name
    columns = {"s": s, "y": y} | ({} if w is None else {"w": w})
    if name.endswith(".parquet"):
        pq.write_table(pa.table(columns), path)
        return path
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    text = "\n".join(lines) + "\n"
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["f.csv", "f.csv.gz", "f.parquet"])
@pytest.mark.parametrize("cells", ["auto", 32])
def test_files(tmp_path, name, cells):
    rng = np.random.default_rng(1)
    s, y, w = rng.random(500), rng.integers(0, 2, 500), rng.integers(0, 5, 500)
    path = write(tmp_path, name, s.tolist(), y.tolist(), w.tolist())
    options = {"score": "s", "label": "y", "weight": "w", "cells": cells}
    wanted = table("polars", {"s": s, "y": y, "w": w}, weight="w", cells=cells)
    for asked_ in (path, str(path), [path], (str(path),), tmp_path / f"*{Path(name).suffix}"):
        found = cal.score_table(asked_, **options)
        np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-12)
        for mine, theirs in zip(found.columns, wanted.columns, strict=True):
            assert mine.tolist() == theirs.tolist()
        assert found.error == pytest.approx(wanted.error, rel=1e-9)
        assert found.made == wanted.made


def test_several_files_and_globs(tmp_path):
    rng = np.random.default_rng(2)
    parts = [(rng.random(50), rng.integers(0, 2, 50)) for _ in range(3)]
    paths = [
        write(tmp_path, f"part{i}.parquet", s.tolist(), y.tolist())
        for i, (s, y) in enumerate(parts)
    ]
    s, y = (np.concatenate(column) for column in zip(*parts, strict=True))
    wanted = ScoreTable.from_arrays(s, y)
    assert cal.score_table(paths, score="s", label="y") == wanted
    assert cal.score_table(str(tmp_path / "part*.parquet"), score="s", label="y") == wanted
    assert cal.score_table(tmp_path / "part[0-1].parquet", score="s", label="y").total == 100


def test_a_csv_of_messy_labels(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text('s;y\n0.1; no \n0.4;yes\n0.4;no\n0.9;"yes"\n')
    assert cal.score_table(path, score="s", label="y") == EXPECTED
    path.write_text("s,y\n0.1,0\n0.4,1.0\n0.4,0.0\n0.9,1\n")
    assert cal.score_table(path, score="s", label="y", pos_label="1") == EXPECTED
    late = "".join(f"{i / 20000},{i % 2}\n" for i in range(20_000))
    path.write_text("s,y\n" + late + "0.5,1.0\n")  # another spelling, long after the first rows
    assert cal.score_table(path, score="s", label="y", cells=64).total_positive == 10_001
    path.write_text("s,y\n" + late + "0.5,maybe\n")
    with pytest.raises(InputError, match="label column 'y' must hold two classes"):
        cal.score_table(path, score="s", label="y", cells=64)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="no file"):
        cal.score_table(tmp_path / "absent.csv", score="s", label="y")
    csv, parquet = (write(tmp_path, name, S, Y) for name in ("a.csv", "a.parquet"))
    with pytest.raises(InputError, match="files must be of one kind"):
        cal.score_table([csv, parquet], score="s", label="y")
    with pytest.raises(InputError, match=r"no column 'S '|Did you mean 's'"):
        cal.score_table(parquet, score="S ", label="y")
    bad = write(tmp_path, "b.csv", [0.1, "oops", 0.3, 0.4], Y)
    for cells in ("exact", 16):
        with pytest.raises(InputError, match=r"1 of 4 rows hold something else.*'oops'"):
            cal.score_table(bad, score="s", label="y", cells=cells)
    broken = tmp_path / "c.parquet"
    broken.write_bytes(b"PAR1 this is not a Parquet file PAR1")
    with pytest.raises(InputError):
        cal.score_table(broken, score="s", label="y")


# --- segments -----------------------------------------------------------------------------------


def segmented(n: int, keys, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 50, n) / 50
    return {
        "s": s,
        "y": (rng.random(n) < s).astype(int),
        "w": rng.integers(0, 4, n),
        "land": np.array(keys)[rng.integers(0, len(keys), n)],
    }


def segments(kind, columns, **options):
    roles = {"score": "s", "label": "y", "segment": "land", **options}
    return cal.segment_tables(frame(kind, columns), **roles)


@pytest.mark.parametrize("kind", FASTER)
@pytest.mark.parametrize("keys", [["fr", "de", "it", ""], [7, -3, 2**40]], ids=["words", "numbers"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_segments(kind, keys, weight):
    columns = segmented(400, keys)
    for cells in ("auto", 2**20):  # so many that each score has its own
        found = segments(kind, columns, weight=weight, cells=cells)
        assert sorted(found) == sorted(keys)
        for key, part in found.items():
            mine = columns["land"] == key
            weights = columns["w"][mine] if weight else None
            assert close(
                part, ScoreTable.from_arrays(columns["s"][mine], columns["y"][mine], weights)
            )


@pytest.mark.parametrize("kind", KINDS)
def test_segments_of_cells(kind):
    columns = segmented(400, ["a", "b"])
    for key, part in segments(kind, columns, cells=16).items():
        mine = columns["land"] == key
        check_pooled(part, columns["s"][mine], columns["y"][mine], None, Cells(16))


@pytest.mark.parametrize("kind", LAZY)
def test_thousands_of_segments(kind):
    columns = segmented(10_000, np.arange(2000))
    found = segments(kind, columns)
    assert list(found) == np.unique(columns["land"]).tolist()
    assert all(type(key) is int for key in found)
    assert sum(part.total for part in found.values()) == 10_000
    mine = columns["land"] == 1234
    assert found[1234] == ScoreTable.from_arrays(columns["s"][mine], columns["y"][mine])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cells", ["exact", 16])
def test_segments_must_be_known(kind, cells):
    columns = {"s": S, "y": Y, "land": ["a", None, "b", "a"]}
    with pytest.raises(InputError, match="segment column 'land' must be complete"):
        segments(kind, columns, cells=cells)
    with pytest.raises(InputError, match="no column 'land' \\(segment\\)"):
        segments(kind, {"s": S, "y": Y})


@pytest.mark.parametrize("kind", KINDS)
def test_segments_are_words_or_whole_numbers(kind):
    floats, lists = [0.5, 1.0, 1.5, 2.0], [[1], [2], [3], [4]]
    for values in (floats,) if kind == "pandas" else (floats, lists):  # there lists are objects
        with pytest.raises(InputError, match="segment column 'land' must hold"):
            segments(kind, {"s": S, "y": Y, "land": values})


def test_segments_of_files(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("s,y,land\n0.1,0,fr\n0.4,1, fr\n0.4,0,de\n0.9,1,de\n")
    found = cal.segment_tables(path, score="s", label="y", segment="land")
    assert {key: part.scores.tolist() for key, part in found.items()} == {
        "de": [0.4, 0.9],
        "fr": [0.1, 0.4],
    }
    path.write_text("s,y,land\n0.1,0,fr\n0.4,1,\n")
    with pytest.raises(InputError, match="segment column 'land' must be complete"):
        cal.segment_tables(path, score="s", label="y", segment="land")
