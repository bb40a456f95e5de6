"""The score table: a monoid, exact, immutable."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import ScoreTable
from calibrant.errors import InputError, ParameterError
from strategies import PROBABILITIES, REAL, WHOLE, rows
from twins import basics as naive


def table_of(data):
    return ScoreTable.from_arrays(*data, classes=[0, 1])


def cells(table):
    return {x: [a, b] for x, a, b in zip(table.scores, table.negative, table.positive, strict=True)}


@given(rows(max_size=60))
def test_groups_like_the_obvious_loop(data):
    table = table_of(data)
    assert cells(table) == naive.group(*data)
    _, y, w = data
    assert table.total == w.sum()
    for label, squares in ((0, table.negative_sq), (1, table.positive_sq)):
        assert np.isclose(squares.sum(), (w[y == label] ** 2).sum())


@given(rows(max_size=60))
def test_unweighted_rows_take_the_same_way_as_weights_of_one(data):
    s, y, _ = data
    assert ScoreTable.from_arrays(s, y, classes=[0, 1]) == table_of((s, y, np.ones(len(s))))


@given(rows(weight=WHOLE), rows(weight=WHOLE), rows(weight=WHOLE))
def test_monoid(a, b, c):
    x, y, z = table_of(a), table_of(b), table_of(c)
    assert (x + y) + z == x + (y + z)
    assert x + y == y + x
    assert x + ScoreTable.empty() == x == ScoreTable.empty() + x
    joined = tuple(np.concatenate(pair) for pair in zip(a, b, strict=True))
    assert x + y == table_of(joined)


@given(rows(weight=REAL, max_size=80), st.integers(1, 9))
def test_chunks_equal_one_shot_with_real_weights(data, size):
    chunks = [tuple(column[i : i + size] for column in data) for i in range(0, len(data[0]), size)]
    chunks = [chunk for chunk in chunks if chunk[2].any()]
    chunked, whole = ScoreTable.from_chunks(chunks, classes=[0, 1]), table_of(data)
    assert (chunked.scores == whole.scores).all()
    for name in ("negative", "positive", "negative_sq", "positive_sq"):
        assert np.allclose(getattr(chunked, name), getattr(whole, name), rtol=1e-12, atol=0)


def test_chunks_of_many_rows():
    rng = np.random.default_rng(0)
    s, y = rng.integers(0, 500, 10_000) / 500, rng.integers(0, 2, 10_000)
    parts = zip(np.split(s, 50), np.split(y, 50), strict=True)
    assert ScoreTable.from_chunks(parts) == ScoreTable.from_arrays(s, y)
    assert ScoreTable.from_chunks([]) == ScoreTable.empty()


@given(rows(score=PROBABILITIES, max_size=60), st.integers(2, 12))
def test_pool_keeps_sums_and_tells_its_error(data, cells_wanted):
    table = table_of(data)
    small = table.pool(cells_wanted)
    if len(table) <= cells_wanted:
        assert small is table
        return
    assert len(small) <= cells_wanted
    assert small.total_negative == table.total_negative
    assert small.total_positive == table.total_positive
    moved = np.abs(table.scores[:, None] - small.scores).min(axis=1).max()
    assert 0 < moved <= small.error * (1 + 1e-12) or moved == 0
    mean = np.average(table.scores, weights=table.weight)
    assert np.isclose(np.average(small.scores, weights=small.weight), mean, atol=1e-12)
    with pytest.raises(InputError, match="Add first, pool last"):
        small + table


def test_pool_wants_two_cells():
    with pytest.raises(ParameterError, match="at least 2"):
        ScoreTable.from_arrays([0.1, 0.2, 0.3], [0, 1, 0]).pool(1)
    for wrong in ("a", None, 2.5, True):
        with pytest.raises(ParameterError, match="whole number"):
            ScoreTable.from_arrays([0.1, 0.2, 0.3], [0, 1, 0]).pool(wrong)


def test_counts_in_any_order_with_repeats():
    table = ScoreTable.from_counts([0.5, 0.1, 0.5, 0.9], [1, 2, 3, 0], [0, 1, 1, 0])
    assert cells(table) == {0.1: [2, 1], 0.5: [4, 1]}
    assert table.effective_size == 8
    weighted = ScoreTable.from_counts([0.1], [10.0], [0.0], [50.0], [0.0])
    assert weighted.effective_size == 2.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1, 0.2], [1], [1, 1]), "one entry per cell"),
        (([0.1], [-1], [1]), "negative must be at least 0"),
        (([np.nan], [1], [1]), "scores must be finite: 1 of 1 is NaN"),
        (([[0.1]], [1], [1]), "must be 1-d"),
        ((["a"], [1], [1]), "must be numbers"),
    ],
)
def test_bad_counts_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        ScoreTable.from_counts(*arguments)


def test_truly_immutable():
    table = ScoreTable.from_arrays([0.1, 0.2], [0, 1])
    for copied in (
        table,
        pickle.loads(pickle.dumps(table)),
        copy.deepcopy(table),
        copy.copy(table),
    ):
        assert copied == table
        assert hash(copied) == hash(table)
        with pytest.raises(ValueError, match="read-only"):
            copied.scores[0] = 7.0
        with pytest.raises(ValueError, match="WRITEABLE"):
            copied.scores.setflags(write=True)
        with pytest.raises(AttributeError):
            copied.scores = np.zeros(2)
    mine = np.array([0.1, 0.2])
    direct = ScoreTable(mine, mine, mine, mine, mine)
    mine[0] = 9.0
    assert direct.scores[0] == 0.1
    assert table != direct
    assert table != "table"
    with pytest.raises(TypeError):
        table + 1


@given(rows(max_size=20))
def test_cuts_lie_between_their_scores(data):
    table = table_of(data)
    cuts = table.cuts(np.arange(len(table) - 1))
    assert (cuts > table.scores[:-1]).all()
    assert (cuts <= table.scores[1:]).all()


def test_neighbouring_floats_are_told_apart():
    a = 0.3
    b = np.nextafter(a, 1)
    assert ScoreTable.from_arrays([a, b], [0, 1]).cuts(np.array([0])).tolist() == [b]


def test_repr_and_truth():
    assert repr(ScoreTable.empty()) == "ScoreTable(empty)"
    assert not ScoreTable.empty()
    assert "pooled with error" in repr(
        ScoreTable.from_arrays(np.arange(10.0), np.arange(10) % 2).pool(4)
    )
    assert ScoreTable.empty().effective_size == 0
    assert len(ScoreTable.from_arrays([0.0, -0.0], [0, 1])) == 1


def test_memory_of_unweighted_table_is_three_columns():
    table = ScoreTable.from_arrays(np.random.default_rng(0).random(100), np.arange(100) % 2)
    assert table.negative_sq is table.negative
    assert (table + table).negative_sq is not None
    merged = table + ScoreTable.from_arrays([2.0, 3.0], [0, 1])
    assert merged.positive_sq is merged.positive
