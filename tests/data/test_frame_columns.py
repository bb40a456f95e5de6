"""Columns of frames, whatever they are called and whatever type their numbers have."""

from __future__ import annotations

import decimal
import itertools
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, ParameterError
from calibrant.maps import Piecewise, Segmented
from lazy_frames import KINDS, frame

RNG = np.random.default_rng(3)
N = 40
S = RNG.integers(1, 20, N) / 20.0
Y = (RNG.random(N) < S).astype(np.int64)
W = RNG.integers(1, 4, N).astype(np.float64)
G = RNG.integers(0, 3, N)
ROLES = {"score": S, "label": Y, "weight": W, "segment": G}

#: what some engine takes for something else, and what we call columns ourselves
ODD = ["*", "^x$", "^.*$", "x", "a.b", "a", "b", 'a"b', "a`b", "[a]", "{a}", "%s", "a;b", "--", " "]
ODD += [
    "é",
    "日",
    "a\\b",
    "'",
    "a'b",
    "$1",
    "#1",
    "?",
    ":p",
    "select",
    "x ",
    " x",
    "(x)",
    "1",
    "c0",
]
ODD += ["c1", "__calibrant_1", "score", "label", "segment", "x, y", "a\nb", "x AS y", "-1", "s*"]


def named(names: list[str]) -> dict[str, Any]:
    """Columns of the four roles under these names, between others that would be mistaken for
    them."""
    columns = dict(zip(names, ROLES.values(), strict=True))
    others = {n: np.arange(N) % 7 for n in ODD if n.lower() not in {m.lower() for m in names}}
    half = len(others) // 2
    first, last = (dict(list(others.items())[part]) for part in (slice(half), slice(half, None)))
    return {**first, **columns, **last}


def fours() -> list[list[str]]:
    """Every odd name in every role, four at a time."""
    turned = [ODD[i:] + ODD[:i] for i in (0, 5, 11, 17)]
    return [list(names) for names in zip(*turned, strict=True)]


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_columns_of_any_name(kind):
    wanted = ScoreTable.from_arrays(S, Y, W)
    each = {g: ScoreTable.from_arrays(S[g == G], Y[g == G], W[g == G]) for g in range(3)}
    for i, (score, label, weight, segment) in enumerate(fours()):
        rows = frame(kind, named([score, label, weight, segment]))
        roles = {"score": score, "label": label, "weight": weight}
        assert cal.score_table(rows, **roles) == wanted, roles
        if i % 4 == 0:
            assert cal.segment_tables(rows, **roles, segment=segment) == each, roles
        if i % 8 == 0:
            fitted = cal.fit_isotonic(rows, **roles, cells=256)
            near = cal.Isotonic().fit(S, Y, W)
            np.testing.assert_allclose(fitted.calibrate(S), near.calibrate(S), atol=1e-12)
            found = cal.evaluate(rows, score, label=label, sample_weight=weight)
            assert found.after == cal.evaluate(wanted).after


STEPS = Piecewise.step([0.3, 0.6], [0.1, 0.4, 0.8])
BY_SEGMENT = Segmented(STEPS, (0, 1), (Piecewise.constant(0.2), Piecewise.step([0.5], [0.3, 0.7])))


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_apply_to_columns_of_any_name(kind):
    turned = itertools.cycle(ODD[7:] + ODD[:7])
    for score, segment, label, weight in fours()[::2]:
        columns = named([score, label, weight, segment])
        into = next(n for n in turned if n not in columns) if len(columns) < len(ODD) else "p*"
        rows = frame(kind, columns)
        for map_, more in ((STEPS, {}), (BY_SEGMENT, {"segment": segment})):
            made = cal.add_probabilities(map_, rows, score=score, into=into, **more)
            read = nw.from_native(made).lazy().collect("pyarrow")
            assert read.columns == [*columns, into]
            found = read.get_column(into).to_numpy()
            theirs = (read.get_column(segment).to_numpy(),) if more else ()
            wanted = map_(read.get_column(score).to_numpy(), *theirs)
            np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("into", ["*", "^x$", "a.b", 'a"b', "日"])
def test_new_columns_of_any_name(kind, into):
    made = cal.add_probabilities(
        STEPS, frame(kind, {"s": [0.1, None, 0.9]}), score="s", into=into, on_missing="null"
    )
    read = nw.from_native(made).lazy().collect("pyarrow")
    assert read.columns == ["s", into]
    assert [p if p == p else None for p in read.get_column(into).to_list()] == [0.1, None, 0.8]  # noqa: PLR0124


@pytest.mark.parametrize("into", ["", "  ", None])
def test_a_new_column_needs_a_name(into):
    with pytest.raises(ParameterError, match="into must be the name"):
        cal.add_probabilities(STEPS, pl.LazyFrame({"s": [0.1]}), score="s", into=into)


def test_empty_names_of_polars():
    rows = pl.LazyFrame({"": S, "y": Y, "p": W})
    assert cal.score_table(rows, score="", label="y") == ScoreTable.from_arrays(S, Y)
    assert cal.add_probabilities(STEPS, rows, score="", into="q").collect().columns == [
        "",
        "y",
        "p",
        "q",
    ]


def test_names_that_differ_in_case():
    rows = pl.LazyFrame({"S": Y, "s": S, "Y": S, "y": Y})
    assert cal.score_table(rows, score="s", label="y") == ScoreTable.from_arrays(S, Y)
    made = cal.add_probabilities(STEPS, rows, score="s").collect()
    assert made.columns == ["S", "s", "Y", "y", "probability"]
    np.testing.assert_array_equal(made["probability"], STEPS(S))


def test_messages_have_the_names_of_the_user():
    rows = {"a.b": [0.1, float("inf")], "*": [0, 1], "w w": [1.0, -1.0], "^y$": [0, 2]}
    for kind in ("polars", "duckdb", "pyarrow"):
        for roles, words in (
            ({"score": "a.b", "label": "*"}, "score column 'a.b' must be finite: 1 of 2"),
            ({"score": "^y$", "label": "*", "weight": "w w"}, "weight column 'w w' must be from 0"),
            ({"score": "^y$", "label": "a.b"}, "label column 'a.b' must hold two classes"),
            ({"score": "x.y", "label": "*"}, "no column 'x.y'"),
        ):
            with pytest.raises(InputError, match=words.replace("*", r"\*").replace(".", r"\.")):
                cal.score_table(frame(kind, rows), **roles)


TWICE = {
    "pandas": lambda: pd.DataFrame([[0.1, 0, 1], [0.9, 1, 2]], columns=["s", "y", "y"]),
    "pyarrow": lambda: pa.table([[0.1, 0.9], [0, 1], [1, 2]], names=["s", "y", "y"]),
}


@pytest.mark.parametrize("kind", TWICE)
def test_names_that_come_twice(kind):
    rows = TWICE[kind]()
    words = "different names, but several are called 'y'. Rename or drop"
    for ask in (
        lambda: cal.score_table(rows, score="s", label="y"),
        lambda: cal.add_probabilities(STEPS, rows, score="s"),
        lambda: cal.evaluate(rows, "s", label="y"),
        lambda: cal.Platt().fit(rows, [0, 1]),
    ):
        with pytest.raises(InputError, match=words):
            ask()


def test_names_that_are_numbers():
    rows = pd.DataFrame({0: S, "s": S, "y": Y})
    assert cal.score_table(rows, score="s", label="y") == ScoreTable.from_arrays(S, Y)
    with pytest.raises(InputError, match="no column 'score'"):
        cal.score_table(rows, score="score", label="y")


# --- types of numbers ---------------------------------------------------------------------------

THOUSANDTHS = [f"0.{i:03d}" for i in range(1000)]
LONG = [f"{RNG.random():.37f}" for _ in range(200)]
DECIMALS = {
    "thousandths": (THOUSANDTHS, pa.decimal128(4, 3)),
    "long": (LONG, pa.decimal128(38, 37)),
    "negative": ([f"-{word}" for word in LONG], pa.decimal128(38, 37)),
}


def decimals(case: str) -> tuple[pa.Array, np.ndarray]:
    """Decimal numbers, and the nearest doubles."""
    words, type_ = DECIMALS[case]
    numbers = pa.array([decimal.Decimal(word) for word in words], type_)
    return numbers, np.array([float(word) for word in words])


NOT_OBJECTS = [kind for kind in KINDS if kind != "pandas"]


@pytest.mark.parametrize("case", DECIMALS)
@pytest.mark.parametrize("kind", NOT_OBJECTS)
def test_decimals_are_the_nearest_doubles(kind, case):
    numbers, nearest = decimals(case)
    y = np.arange(len(nearest)) % 2
    found = cal.score_table(frame(kind, {"s": numbers, "y": y}), score="s", label="y")
    assert found == ScoreTable.from_arrays(nearest, y)
    weights = frame(kind, {"s": y, "y": y, "w": numbers})
    if case != "negative":
        found = cal.score_table(weights, score="s", label="y", weight="w")
        wanted = ScoreTable.from_arrays(y, y, nearest)
        assert found.total == pytest.approx(wanted.total, rel=1e-15)
    for on_missing in ("error", "null"):  # a step at each number itself
        map_ = Piecewise.step(np.unique(nearest), np.linspace(0, 1, len(np.unique(nearest)) + 1))
        made = cal.add_probabilities(
            map_, frame(kind, {"s": numbers}), score="s", on_missing=on_missing
        )
        p = nw.from_native(made).lazy().collect("pyarrow").get_column("probability").to_numpy()
        np.testing.assert_array_equal(np.sort(p), np.sort(map_(nearest)))


def test_decimals_in_memory_are_the_nearest_doubles():
    numbers, nearest = decimals("thousandths")
    y = (np.arange(1000) // 3) % 2
    wanted = cal.VennAbers().fit(nearest, y)
    table = pa.table({"s": numbers})
    columns = [numbers, table["s"], table, pl.from_arrow(table)["s"], table.to_pandas()["s"]]
    columns.append(table.to_pandas(types_mapper=pd.ArrowDtype)["s"])
    for column in columns:
        fitted = cal.VennAbers().fit(column, y)
        np.testing.assert_array_equal(fitted.calibrate(column), wanted.calibrate(nearest))
        assert fitted.map_ == wanted.map_


@pytest.mark.parametrize("type_", [pa.int64(), pa.uint64()], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_large_whole_numbers_are_the_nearest_doubles(kind, type_):
    values = [0, 1, 2**53 + 1, 2**53 + 3, 2**62 + 2**9 + 1, 2**63 - 1]
    y = [0, 1, 0, 1, 0, 1]
    rows = frame(kind, {"s": pa.array(values, type_), "y": y, "one": [1.0] * 6})
    wanted = ScoreTable.from_arrays(np.array([float(v) for v in values]), y)
    assert cal.score_table(rows, score="s", label="y") == wanted
    weighted = cal.score_table(rows, score="one", label="y", weight="s")
    assert weighted.total == pytest.approx(float(sum(values)), rel=1e-15)
    map_ = Piecewise.step([2.0**53 + 2, 2.0**53 + 4], [0.1, 0.2, 0.3])
    made = cal.add_probabilities(map_, rows, score="s")
    p = nw.from_native(made).lazy().collect("pyarrow").get_column("probability")
    assert p.to_list() == [0.1, 0.1, 0.1, 0.3, 0.3, 0.3]


def test_whole_numbers_of_128_bits_are_the_nearest_doubles():
    values = [2**80 + 2**27, 2**80 + 2**27 + 1, -(2**90) - 2**37 - 1, 7]
    rows = ", ".join(f"({v}::HUGEINT, {i % 2})" for i, v in enumerate(values))
    relation = duckdb.connect().sql(f"SELECT * FROM (VALUES {rows}) t(s, y)")
    wanted = ScoreTable.from_arrays([float(v) for v in values], [0, 1, 0, 1])
    assert cal.score_table(relation, score="s", label="y") == wanted
