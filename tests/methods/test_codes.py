"""Codes are values that keep what they promise, or are refused with the rows and columns named."""

from __future__ import annotations

import copy
import pickle
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.errors import InputError, ParameterError
from calibrant.methods.codes import codes
from calibrant.multiclass import Code, all_pairs, ecoc, one_vs_rest, read_code
from strategies import costly


def naive_separation(rows, complements=False):
    least = float("inf")
    for a, b in combinations(rows.astype(int).tolist(), 2):
        apart = sum(abs(x - y) for x, y in zip(a, b, strict=True)) / 2
        if complements:
            apart = min(apart, sum(abs(x + y) for x, y in zip(a, b, strict=True)) / 2)
        least = min(least, apart)
    return least


def test_one_vs_rest():
    code = one_vs_rest(4)
    assert np.array_equal(code.matrix, 2 * np.eye(4) - 1)
    assert code.row_separation == 2
    assert code.matrix.dtype == np.int8
    assert np.array_equal(one_vs_rest(2).matrix, [[1, -1], [-1, 1]])
    assert one_vs_rest(2).column_separation == 0  # the same question twice


def test_all_pairs():
    code = all_pairs(5)
    assert (code.n_classes, code.n_columns, len(code)) == (5, 10, 10)
    met = {tuple(np.flatnonzero(column)) for column in code.matrix.T}
    assert met == set(combinations(range(5), 2))
    assert (code.matrix.sum(axis=0) == 0).all()
    # each of the others separates by ½, the common column by 1
    assert code.row_separation == 1 + 2 * 3 / 2


@pytest.mark.parametrize("k", range(2, 9))
def test_exhaustive_holds_every_question_once(k):
    code = ecoc(k, design="exhaustive")
    assert len(code) == 2 ** (k - 1) - 1
    questions = {tuple((column * column[0]).tolist()) for column in code.matrix.T}
    assert len(questions) == len(code)
    assert code.row_separation == (2 ** (k - 2) if k > 1 else 1)


def questions(code):
    """How many different ones the columns ask."""
    return len({max(tuple(c), tuple(-c)) for c in code.matrix.T.astype(int)})


@pytest.mark.full
@pytest.mark.parametrize("k", range(2, 9))
def test_small_codes_ask_no_question_twice(k):
    dense, sparse = ecoc(k), ecoc(k, design="sparse")
    assert questions(dense) == len(dense) == min(int(np.ceil(10 * np.log2(k))), 2 ** (k - 1) - 1)
    splits = np.array(list(product((-1, 0, 1), repeat=k))) if k < 6 else None
    if splits is not None:  # each question and its complement
        there = ((splits > 0).any(axis=1) & (splits < 0).any(axis=1)).sum() // 2
        assert len(sparse) == min(int(np.ceil(15 * np.log2(k))), there)
    assert questions(sparse) == len(sparse)
    assert len(ecoc(3, n_columns=16)) == 16


@pytest.mark.full
def test_many_classes_compare_fewer_draws(monkeypatch):
    drawn = []
    draw = codes._random_matrix
    monkeypatch.setattr(codes, "_random_matrix", lambda *given: drawn.append(1) or draw(*given))
    assert ecoc(600).row_separation > 15
    assert 2 <= len(drawn) <= 30
    drawn.clear()
    ecoc(20)
    assert len(drawn) == codes.DRAWS


@pytest.mark.full
@given(st.integers(2, 14), st.sampled_from(["dense", "sparse"]), st.integers(0, 5), st.data())
@costly
def test_random_codes_are_valid_and_reproducible(k, kind, seed, data):
    least = int(np.ceil(np.log2(k)))
    columns = data.draw(st.one_of(st.none(), st.integers(least, 30)))
    code = ecoc(k, design=kind, n_columns=columns, random_state=seed)
    per_bit, most = {"dense": (10, 2 ** (k - 1) - 1), "sparse": (15, (3**k + 1) // 2 - 2**k)}[kind]
    usual = min(int(np.ceil(per_bit * np.log2(k))), most)
    assert len(code) == (usual if columns is None else columns)
    assert code == ecoc(k, design=kind, n_columns=columns, random_state=seed)
    assert read_code(code.matrix, k) == code  # passes every check again
    if kind == "dense":
        assert (code.matrix != 0).all()


@pytest.mark.full
def test_random_codes_are_well_separated():
    assert ecoc(10).row_separation >= 12  # half of 34 columns on average
    assert ecoc(10).column_separation >= 1
    assert ecoc(10, design="sparse").row_separation >= 15
    assert ecoc(10, random_state=0) == ecoc(10)
    assert ecoc(10, random_state=1) != ecoc(10, random_state=2)
    share = (ecoc(20, design="sparse", n_columns=400).matrix == 0).mean()
    assert 0.45 < share < 0.55


def test_fewest_columns():
    assert ecoc(16, design="dense", n_columns=4).row_separation == 1
    assert ecoc(16, design="sparse", n_columns=4).n_columns == 4


@pytest.mark.full
@given(st.integers(2, 7), st.sampled_from(["dense", "sparse"]), st.integers(0, 3))
@costly
def test_separation_is_what_its_definition_says(k, kind, seed):
    code = ecoc(k, design=kind, random_state=seed)
    assert code.row_separation == naive_separation(code.matrix)
    assert code.column_separation == naive_separation(code.matrix.T, complements=True)


def test_a_code_is_a_value():
    code = all_pairs(4)
    for other in (Code(code.matrix.tolist()), pickle.loads(pickle.dumps(code)), copy.copy(code)):
        assert other == code
        assert hash(other) == hash(code)
    assert code != one_vs_rest(4)
    with pytest.raises(ValueError, match="read-only"):
        code.matrix[0, 0] = 0
    assert np.array_equal(np.asarray(code), code.matrix)
    assert repr(code) == "Code(4 classes, 6 columns, row separation 3, column separation 1)"
    assert "column separation inf" in repr(Code([[1], [-1]]))


def test_codes_are_read_from_every_form():
    code = all_pairs(3)
    for given_ in (code, code.matrix, code.matrix.tolist(), code.matrix.astype(float), "all_pairs"):
        assert read_code(given_, 3) == code
    assert read_code("one_vs_rest", 5) == one_vs_rest(5)
    assert read_code("ecoc", 5) == ecoc(5)
    # equal and complementary questions may repeat
    assert len(read_code([[1, 1, -1], [-1, -1, 1]])) == 3


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ([[1, 1], [-1, 1], [-1, -1], [-1, -1]], "rows 2 and 3 are equal"),
        ([[1, 0, 1], [-1, 1, 1], [-1, 0, 1]], "2 of 3 do not: 1, 2"),
        ([[1, 0], [-1, 0], [0, 1], [0, -1]], "compares classes 0, 1 with 2, 3"),
        ([[1, 2], [-1, -1]], "−1, 0 and 1"),
        ([[1, 0.5], [-1, -1]], "−1, 0 and 1"),
        ([[1, np.nan], [-1, -1]], "−1, 0 and 1"),
        ([[True, False], [False, True]], "−1, 0 and 1"),
        ([["1", "-1"], ["-1", "1"]], "−1, 0 and 1"),
        ([1, -1], r"shape is \(2,\)"),
        ([[1, -1]], "at least two classes"),
        (np.empty((3, 0)), "at least one column"),
        ([[1, -1], [1]], "must be a matrix"),
    ],
)
def test_what_is_no_code_is_refused_by_name(code, message):
    with pytest.raises(InputError, match=message):
        read_code(code)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: one_vs_rest(1), "at least 2"),
        (lambda: all_pairs(2.5), "whole number"),
        (lambda: all_pairs(True), "at least 2"),
        (lambda: ecoc(4, design="hadamard"), "one of .*dense.*sparse.*exhaustive.*hadamard"),
        (lambda: ecoc(13, design="exhaustive"), "4095 columns.*dense"),
        (lambda: ecoc(4, design="exhaustive", n_columns=5), "has 7 columns"),
        (lambda: ecoc(9, design="dense", n_columns=3), "at least 4"),
        (lambda: ecoc(9, design="dense", n_columns=7.0), "whole number"),
        (lambda: ecoc(4, random_state="a"), "random_state.*at least 0 or None, but 'a' came"),
        (lambda: ecoc(4, random_state=-1), "random_state.*-1 came"),
        (lambda: ecoc(4, random_state=True), "random_state.*True came"),
        (lambda: ecoc(4, design=["dense"]), "design must be one of"),
        (lambda: read_code("pairs", 3), "one_vs_rest.*all_pairs.*ecoc"),
        (lambda: read_code("ecoc"), r"ecoc\(k\)"),
    ],
)
def test_bad_options_are_refused(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_the_number_of_classes_must_fit():
    with pytest.raises(InputError, match="3 rows for 4 classes"):
        read_code(all_pairs(3), 4)
