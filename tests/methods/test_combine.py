"""Combiners against their slow twins, exact on consistent columns, and valid on any."""

from __future__ import annotations

import functools
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from calibrant.errors import InputError, ParameterError
from calibrant.maps import Coded, Identity
from calibrant.multiclass import (
    Code,
    all_pairs,
    coupling,
    ecoc,
    least_squares,
    normalize,
    one_vs_rest,
    pairwise,
)
from calibrant.rules.combiners import _Likelihood, combine_rows
from twins import combine as naive

ANY = {"least_squares": least_squares, "coupling": coupling}
ALL = {**ANY, "normalize": normalize, "pairwise": pairwise}


def combiners_of(code):
    """Those that take the code."""
    found = dict(ANY)
    if np.array_equal(code, one_vs_rest(len(code)).matrix):
        found["normalize"] = normalize
    if np.array_equal(np.abs(code).sum(axis=0), np.full(code.shape[1], 2)):
        found["pairwise"] = pairwise
    return found


@functools.cache
def made(kind, k):
    """A code of a kind, made once."""
    makers = {"one_vs_rest": one_vs_rest, "all_pairs": all_pairs}
    code = makers[kind](k) if kind in makers else ecoc(k, design=kind, random_state=3)
    return code.matrix.astype(float)


@st.composite
def codes(draw, most=6, zeros=True):
    """A code matrix of every kind we make, float."""
    k = draw(st.integers(2, most))
    kinds = ["one_vs_rest", "exhaustive", "dense", *(["all_pairs", "sparse"] if zeros else [])]
    return made(draw(st.sampled_from(kinds)), k)


VALUES = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0, 0.5, 5e-324, 1e-300, 1e-12, 1 - 2.0**-53]),
    st.integers(0, 4).map(lambda v: v / 4),
)
INNER = st.floats(0.05, 0.95)


@st.composite
def problems(draw, values=VALUES, rows=4, **options):
    """(r, code, weights)."""
    code = draw(codes(**options))
    columns = code.shape[1]
    r = draw(hnp.arrays(float, (draw(st.integers(1, rows)), columns), elements=values))
    weights = draw(hnp.arrays(float, columns, elements=st.floats(0.2, 5.0)))
    return r, code, weights


def shares(p, code):
    """The r that are consistent with p; ½ where a column's classes have no probability."""
    up, down = p @ (code > 0), p @ (code < 0)
    total = up + down
    return np.where(total > 0, up / np.where(total > 0, total, 1.0), 0.5)


# --- any input gives distributions ----------------------------------------------------------------


@given(problems())
def test_every_row_becomes_a_distribution(problem):
    r, code, weights = problem
    for combine in combiners_of(code).values():
        p = combine(r, code, weights=weights)
        assert p.shape == (len(r), len(code))
        assert (p >= 0).all()
        assert np.abs(p.sum(axis=1) - 1).max() <= 1e-15 * len(code)


@pytest.mark.parametrize("name", ANY)
def test_rows_that_say_nothing_or_contradict_themselves(name):
    combine = ANY[name]
    assert np.allclose(combine(np.zeros((1, 4)), one_vs_rest(4)), 0.25, rtol=0, atol=1e-15)
    assert np.allclose(combine(np.ones((1, 4)), one_vs_rest(4)), 0.25, rtol=0, atol=1e-15)
    around = [[1.0, 0.0, 1.0]]  # 0 beats 1, 1 beats 2, 2 beats 0
    assert np.allclose(combine(around, all_pairs(3)), 1 / 3, rtol=0, atol=1e-10)
    assert np.allclose(combine([[0.5] * 6], all_pairs(4)), 0.25, rtol=0, atol=1e-10)
    assert np.allclose(combine([[0.0] * 3], all_pairs(3)), [[0, 0, 1]], rtol=0, atol=1e-10)
    assert normalize(np.zeros((1, 4)), one_vs_rest(4)).tolist() == [[0.25] * 4]


def test_two_classes_are_the_binary_problem():
    code = np.array([[1], [-1]])
    r = np.array([[0.0], [0.3], [1.0]])
    for combine in (least_squares, coupling, pairwise):
        assert np.allclose(combine(r, code), np.hstack((r, 1 - r)), rtol=0, atol=1e-12)


# --- exact where some p fits all columns ----------------------------------------------------------


@given(codes(zeros=False), st.data())
def test_consistent_columns_are_met_exactly(code, data):
    elements = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
    p = data.draw(hnp.arrays(float, (3, len(code)), elements=elements))
    assume((p.sum(axis=1) > 0).all())
    p /= p.sum(axis=1, keepdims=True)
    # dense codes of few classes are chosen at random: they determine p if their rank is full
    assume(np.linalg.matrix_rank(np.vstack((code.T > 0, np.ones(len(code))))) == len(code))
    for combine in combiners_of(code).values():
        assert np.allclose(combine(shares(p, code), code), p, rtol=0, atol=1e-10)


@given(st.integers(3, 7), st.data())
def test_columns_of_classes_without_probability_change_nothing(k, data):
    p = data.draw(hnp.arrays(float, (2, k), elements=st.floats(0.01, 1.0)))
    p[:, data.draw(st.permutations(range(k)))[: data.draw(st.integers(2, k - 1))]] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    code = all_pairs(k).matrix.astype(float)
    unknown = p @ np.abs(code) == 0.0
    said = data.draw(hnp.arrays(float, unknown.shape, elements=VALUES))
    r = np.where(unknown, said, shares(p, code))
    found = coupling(r, code)
    assert np.allclose(found, p, rtol=0, atol=1e-9)
    # such a column asks for a ratio of zeros, so that the whole divergence is above its infimum;
    # over the other columns it is at its minimum
    for own, wanted, row, known in zip(found, p, r, ~unknown, strict=True):
        rest, ones = code[:, known], np.ones(int(known.sum()))
        least = naive.divergence(wanted, row[known], rest, ones)
        assert naive.divergence(np.maximum(own, 1e-250), row[known], rest, ones) <= least + 1e-7


@given(st.integers(2, 7), st.data())
def test_consistent_pairs_are_met_exactly(k, data):
    elements = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
    p = data.draw(hnp.arrays(float, (3, k), elements=elements))
    assume((p.sum(axis=1) > 0).all())
    p /= p.sum(axis=1, keepdims=True)
    code = all_pairs(k)
    for combine in (least_squares, coupling, pairwise):
        assert np.allclose(combine(shares(p, code.matrix), code), p, rtol=0, atol=1e-10)


@pytest.mark.parametrize("k", [3, 5, 8])
@pytest.mark.parametrize("seed", range(3))
def test_consistent_sparse_columns_are_met_exactly(k, seed):
    code = ecoc(k, design="sparse", random_state=seed)
    p = np.random.default_rng(seed).dirichlet(np.ones(k), 50)
    for combine in ANY.values():
        assert np.allclose(combine(shares(p, code.matrix), code), p, rtol=0, atol=1e-10)


def test_small_probabilities_keep_their_size():
    p = np.array([[1.0, 1e-3, 1e-6, 1e-9, 1e-12]])
    p /= p.sum()
    for combine in ANY.values():
        found = combine(shares(p, all_pairs(5).matrix), all_pairs(5))
        assert np.allclose(found, p, rtol=1e-2, atol=1e-15)


# --- twins ----------------------------------------------------------------------------------------


@given(problems(most=5))
def test_least_squares_is_the_least(problem):
    r, code, weights = problem
    for row, p in zip(r, least_squares(r, code, weights=weights), strict=True):
        value = naive.squares(p, row, code, weights)
        for twin in (naive.least_squares_by_supports, naive.least_squares_by_nnls):
            other = twin(row, code, weights)
            other = other / other.sum()  # it is so to rounding only
            assert value <= naive.squares(other, row, code, weights) + 1e-14 * weights.sum()


@given(problems(values=INNER, most=5))
def test_least_squares_is_where_its_twins_find_it(problem):
    r, code, weights = problem
    assume(np.linalg.matrix_rank(naive.demands(r[0], code, weights)) >= len(code) - 1)
    for row, p in zip(r, least_squares(r, code, weights=weights), strict=True):
        for twin in (naive.least_squares_by_supports, naive.least_squares_by_nnls):
            assert np.allclose(p, twin(row, code, weights), rtol=0, atol=1e-10)


@given(st.integers(2, 6), st.data())
def test_pairwise_solves_the_system_of_its_paper(k, data):
    code = all_pairs(k).matrix.astype(float)
    r = data.draw(hnp.arrays(float, (3, code.shape[1]), elements=INNER))
    weights = data.draw(hnp.arrays(float, code.shape[1], elements=st.floats(0.2, 5.0)))
    for row, p in zip(r, pairwise(r, code, weights=weights), strict=True):
        assert np.allclose(p, naive.pairwise_by_system(row, code, weights), rtol=0, atol=1e-10)


@given(problems(values=INNER, rows=2, most=4))
def test_coupling_agrees_with_plain_steps(problem):
    r, code, weights = problem
    # of a sparse code another local minimum might be found
    assume((code != 0).all() or (np.abs(code).sum(axis=0) == 2).all())
    for row, p in zip(r, coupling(r, code, weights=weights), strict=True):
        try:
            plain = naive.coupling_by_steps(row, code, weights, most=20_000)
        except RuntimeError:
            continue
        value = naive.divergence(p, row, code, weights)
        assert value <= naive.divergence(plain, row, code, weights) + 1e-13 * weights.sum()
        if plain.min() > 1e-3 and np.linalg.matrix_rank(code) >= len(code) - 1:
            assert np.allclose(p, plain, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["one_vs_rest", "all_pairs", "exhaustive", "sparse"])
def test_coupling_agrees_with_plain_steps_run_to_the_end(kind):
    code = Code(made(kind, 5))
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.full(5, 5.0), 20)
    r = np.clip(shares(p, code.matrix) + rng.normal(0, 0.03, (20, len(code))), 0.02, 0.98)
    weights = rng.uniform(0.5, 2.0, len(code))
    matrix = code.matrix.astype(float)
    twins = [naive.coupling_by_steps(row, matrix, weights) for row in r]
    assert np.abs(coupling(r, code, weights=weights) - twins).max() <= 1e-10


@given(problems(rows=2, most=4, zeros=False))
def test_coupling_is_no_worse_than_a_conic_solver(problem):
    r, code, weights = problem
    for row, p in zip(r, coupling(r, code, weights=weights), strict=True):
        other = naive.coupling_by_cones(row, code, weights)
        # lifted, for r so small that their p are zero
        ours, theirs = (
            naive.divergence(np.maximum(q, 1e-250), row, code, weights) for q in (p, other)
        )
        assert ours <= theirs + 1e-9 * weights.sum()


@given(problems(zeros=False))
def test_coupling_meets_the_conditions_of_a_minimum(problem):
    """Also at the border: a class is left at zero only where more of it would not help."""
    r, code, weights = problem
    for row, p in zip(r, coupling(r, code, weights=weights), strict=True):
        v = naive.scaled_gradient(p, row, code, weights)
        assert np.abs(v).max() <= 1e-9 * weights.sum()
        lifted = np.maximum(p, 1e-9)
        gradient = naive.scaled_gradient(lifted, row, code, weights) / lifted
        assert gradient.min() >= -1e-4 * weights.sum()


def test_the_printed_update_is_for_pairs_only():
    rng = np.random.default_rng(0)
    ones = np.ones(6)
    pairs, rest = all_pairs(4).matrix.astype(float), one_vs_rest(4).matrix.astype(float)
    r = rng.uniform(0.2, 0.8, 6)
    printed = naive.coupling_as_printed(r, pairs, ones, 5000)
    assert np.allclose(coupling(r[None], pairs)[0], printed, rtol=0, atol=1e-10)
    printed = naive.coupling_as_printed(r[:4], rest, ones[:4], 5000)
    ours = coupling(r[None, :4], rest)[0]
    assert np.abs(ours - printed).max() > 0.01
    least = naive.divergence(ours, r[:4], rest, ones[:4])
    assert least < naive.divergence(printed, r[:4], rest, ones[:4]) - 1e-3


PAIRS_OF_THREE = np.array([[1.0, 1.0, 0.0], [-1.0, 0.0, 1.0], [0.0, -1.0, -1.0]])


@given(problems(rows=3))
@example((np.array([[1e-9, 1e-9, 1.0]]), PAIRS_OF_THREE, np.array([0.001, 1.0, 100.0])))
@example((np.array([[1e-9, 1e-9, 1.0]]), 2 * np.eye(3) - 1, np.array([0.001, 1.0, 100.0])))
def test_the_objective_never_rises(problem):
    r, code, weights = problem
    likelihood = _Likelihood(code, weights)
    block = np.ascontiguousarray(r.T)
    p = np.full((len(code), len(r)), 1 / len(code))
    before = likelihood.value(block, p)
    for _ in range(12):
        p, _ = likelihood.descend(block, p, 1)
        after = likelihood.value(block, p)
        assert (after <= before + 1e-12 * (weights.sum() + before)).all()
        before = after


# --- what must not matter -------------------------------------------------------------------------


@given(problems(values=INNER), st.randoms(use_true_random=False))
def test_order_direction_and_scale_do_not_matter(problem, random):
    r, code, weights = problem
    k, columns = code.shape
    assume(np.linalg.matrix_rank(code) >= k - 1)
    # where two local minima are equally good, either may be found
    assume((code != 0).all() or (np.abs(code).sum(axis=0) == 2).all())
    classes, order = random.sample(range(k), k), random.sample(range(columns), columns)
    sign = np.array([random.choice((-1.0, 1.0)) for _ in range(columns)])
    for name, combine in combiners_of(code).items():
        p = combine(r, code, weights=weights)
        again = {
            "classes": (combine(r, code[classes], weights=weights), p[:, classes]),
            "columns": (combine(r[:, order], code[:, order], weights=weights[order]), p),
            "scale": (combine(r, code, weights=1e6 * weights), p),
        }
        if name != "normalize":
            flipped = np.where(sign > 0, r, 1 - r)
            again["direction"] = (combine(flipped, code * sign, weights=weights), p)
        for what, (found, expected) in again.items():
            assert np.allclose(found, expected, rtol=0, atol=1e-9), (name, what)


@pytest.mark.parametrize("name", ANY)
def test_a_column_of_weight_zero_is_absent(name):
    rng = np.random.default_rng(1)
    code = ecoc(5, design="dense", random_state=0).matrix
    r, weights = rng.random((30, code.shape[1])), rng.uniform(1, 2, code.shape[1])
    weights[3] = 0.0
    kept = weights > 0
    expected = ANY[name](r[:, kept], code[:, kept], weights=weights[kept])
    assert np.array_equal(ANY[name](r, code, weights=weights), expected)


@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("code", [all_pairs(3), Code([[1, 1, 0], [1, -1, 1], [-1, 0, -1]])])
def test_classes_that_no_weighted_column_knows_get_no_probability(name, code):
    r = np.array([[0.3, 0.2, 0.9], [1.0, 0.0, 1.0], [0.0, 0.5, 0.5]])
    for weights in np.eye(3):
        p = ANY[name](r, code, weights=weights)
        assert (p >= 0).all()
        assert np.abs(p.sum(axis=1) - 1).max() <= 3e-15
    p = ANY[name](r[:1], all_pairs(3), weights=[1.0, 0.0, 0.0])[0]
    assert np.allclose(p, [0.3, 0.7, 0.0], rtol=0, atol=1e-10)
    assert p[2] == 0.0


@pytest.mark.parametrize("name", ["least_squares", "coupling", "pairwise"])
def test_weights_that_unlink_classes(name):
    """Where columns contradict each other, a class outside them must not take it all."""
    r, weights = np.array([[0.9, 0.5, 0.5, 0.5, 0.0, 1.0]]), np.array([0, 0.1, 1, 0, 0, 3.0])
    found = ALL[name](r, all_pairs(4), weights=weights)[0]
    assert found[1] == 0.0
    three = ALL[name](r[:, [1, 2, 5]], all_pairs(3), weights=weights[[1, 2, 5]])[0]
    assert np.array_equal(found[[0, 2, 3]], three)
    maps = (Identity(),) * 6
    code = all_pairs(4).matrix
    assert np.array_equal(Coded(code, maps, name, weights)(r)[0], found)
    apart = np.array([1.0, 0, 0, 0, 0, 1.0])
    for call in (
        lambda: ALL[name](r, code, weights=apart),
        lambda: Coded(code, maps, name, apart)(r),
    ):
        with pytest.raises(InputError, match="none compares classes 0, 1 with 2, 3"):
            call()


@pytest.mark.parametrize("name", ANY)
def test_a_whole_weight_is_a_repeated_column(name):
    """One against all with weights is solved in closed form, the repeated columns are not."""
    rng = np.random.default_rng(2)
    code, times = one_vs_rest(5).matrix, np.array([1, 3, 2, 1, 4])
    r = np.vstack(
        (rng.random((40, 5)), rng.integers(0, 2, (20, 5)), rng.integers(0, 3, (20, 5)) / 2)
    )
    repeated = ANY[name](np.repeat(r, times, axis=1), np.repeat(code, times, axis=1))
    assert np.allclose(ANY[name](r, code, weights=times), repeated, rtol=0, atol=1e-8)


@pytest.mark.parametrize("code", [one_vs_rest(4), all_pairs(4), ecoc(4)])
def test_weights_of_any_size_give_distributions(code):
    rng = np.random.default_rng(6)
    r = np.vstack((rng.random((50, len(code))), rng.integers(0, 2, (50, len(code)))))
    weights = np.resize([1.0, 1e-30, 5e-324, 1e8], len(code))
    for combine in ANY.values():
        p = combine(r, code, weights=weights)
        assert (p >= 0).all()
        assert np.abs(p.sum(axis=1) - 1).max() <= 1e-15 * 4


def test_many_classes():
    """One against all never builds a matrix per row."""
    rng = np.random.default_rng(7)
    p = rng.dirichlet(np.full(500, 0.1), 200)
    for combine in (normalize, least_squares, coupling):
        assert np.allclose(combine(p, one_vs_rest(500)), p, rtol=0, atol=1e-12)
    p = rng.dirichlet(np.full(30, 0.3), 20)
    code = all_pairs(30)
    for combine in (pairwise, coupling):
        assert np.allclose(combine(shares(p, code.matrix), code), p, rtol=0, atol=1e-10)


def test_least_squares_that_are_not_unique_are_nearest_to_uniform():
    """Two questions on four classes leave one direction free."""
    code = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    p = least_squares([[0.3, 0.6]], code)[0]
    a, b = 0.3 - 0.5, 0.6 - 0.5
    expected = 0.25 + np.array([a + b, a - b, b - a, -a - b]) / 2
    assert np.allclose(p, expected, rtol=0, atol=1e-4)
    assert np.allclose([p[:2].sum(), p[[0, 2]].sum()], [0.3, 0.6], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_rows_do_not_know_each_other(name):
    code = one_vs_rest(4) if name == "normalize" else all_pairs(6)
    rng = np.random.default_rng(3)
    r = np.vstack((rng.random((3000, len(code))), rng.integers(0, 2, (3000, len(code)))))
    whole = ALL[name](r, code)
    alone = np.vstack([ALL[name](row[None], code) for row in r[::300]])
    assert np.allclose(whole[::300], alone, rtol=0, atol=1e-10)
    assert ALL[name](r[:0], code).shape == (0, code.n_classes)


@pytest.mark.full
def test_memory_stays_small():
    code = all_pairs(10)
    r = np.random.default_rng(4).random((40_000, len(code)))
    matrix = code.matrix.astype(float)
    tracemalloc.start()
    for name in ANY:
        combine_rows(name, r, matrix, None)
    top = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # the result, with room for the rows' bookkeeping, and one block; r itself has 14 MB
    assert top < 2.5 * 40_000 * 10 * 8 + 16e6


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: coupling([[0.1, 0.2]], one_vs_rest(3)), InputError, r"\(n, 3\).*\(1, 2\)"),
        (lambda: coupling([0.1, 0.2, 0.3], one_vs_rest(3)), InputError, r"shape is \(3,\)"),
        (lambda: coupling([["a", "b"]], one_vs_rest(2)), InputError, "numbers"),
        (
            lambda: coupling([[0.1, 0.2], [0.1, np.nan], [2.0, 0.1]], one_vs_rest(2)),
            InputError,
            "2 of 3 rows.*first is row 1",
        ),
        (lambda: least_squares([[-0.1, 0.2]], one_vs_rest(2)), InputError, r"1 of 1 rows.*-0\.1"),
        (lambda: coupling([[0.1, 0.2]], one_vs_rest(2), weights=[1.0]), InputError, "2 numbers"),
        (
            lambda: coupling([[0.1, 0.2]], one_vs_rest(2), weights=["a", "b"]),
            InputError,
            "2 numbers",
        ),
        (
            lambda: coupling([[0.1, 0.2]], one_vs_rest(2), weights=[1.0, -1.0]),
            InputError,
            "column 1 has -1",
        ),
        (
            lambda: coupling([[0.1, 0.2]], one_vs_rest(2), weights=[1.0, np.nan]),
            InputError,
            "column 1",
        ),
        (
            lambda: coupling([[0.1, 0.2]], one_vs_rest(2), weights=[0, 0]),
            InputError,
            "all are zero",
        ),
        (lambda: normalize([[0.1] * 3], all_pairs(3)), ParameterError, "one-against-all.*coupling"),
        (lambda: pairwise([[0.1] * 4], one_vs_rest(4)), ParameterError, "all-pairs.*coupling"),
        (
            lambda: pairwise([[0.1] * 2], [[1, 0], [-1, 1], [0, -1]]),
            ParameterError,
            "all-pairs",
        ),
        (lambda: coupling([[0.1] * 3], "all_pairs"), ParameterError, r"all_pairs\(k\)"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_frames_and_lists_are_taken():
    polars = pytest.importorskip("polars")
    r = [[0.75, 0.6, 0.25], [0.1, 0.2, 0.3]]
    frame = polars.DataFrame(r, schema=["a", "b", "c"], orient="row")
    code = all_pairs(3)
    assert np.array_equal(coupling(frame, code.matrix.tolist()), coupling(r, code))


def test_nothing_heavy_is_imported():
    program = (
        "import sys, calibrant.multiclass as m\n"
        "m.coupling([[0.1, 0.2, 0.3]], m.all_pairs(3))\n"
        "print([x for x in ('sklearn', 'numba', 'pandas', 'matplotlib') if x in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
