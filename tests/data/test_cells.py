"""Cells of scores: one number for one double, in NumPy and in every engine."""

from __future__ import annotations

import functools
import math

import narwhals as nw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.data.score_table import (
    FEWEST,
    FINEST,
    MOST,
    OWN,
    TOGETHER,
    Cells,
    cells_for,
    fine_cells_for,
    segment_cells_for,
)
from lazy_frames import KINDS, frame
from twins.cells import place

ANY = st.floats(allow_nan=False, allow_infinity=False)
PROBABILITY = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 5e-324, 2.2e-308, 0.5, 1.0, 1 - 2.0**-53]),
    st.integers(-20, 20).map(lambda k: 0.5 + k * 2.0**-54),
)
COUNT = st.one_of(
    st.integers(8, 2**25).map(lambda k: 2 * k), st.integers(4, 26).map(lambda k: 2**k)
)
SPREAD = st.floats(1e-300, 1.7e308)

PROBABILITIES = [Cells(16), Cells(486), Cells(1000), Cells(2**18), Cells(2**26)]
MARGINS = [
    Cells(16, 0.0, 1.0),
    Cells(1000, -1.25, 3.0),  # 1/3 is no double: engines that multiply by it would differ
    Cells(2**22, 0.1, 0.7),
    Cells(2**26, 1e300, 1e-300),
    Cells(64, -1.7e308, 1e308),  # s − centre overflows
]


def everything(rng: np.random.Generator, n: int) -> np.ndarray:
    """Doubles of all magnitudes and both signs, and the usual suspects."""
    bits = rng.integers(0, 2**63, n, dtype=np.uint64)
    bits = np.concatenate([bits, bits | np.uint64(2**63)])
    drawn = bits.view(np.float64)
    marks = [0.0, -0.0, 5e-324, -5e-324, 0.25, 0.5, 1.0, 2.2250738585072014e-308, 1.7e308, -1.7e308]
    near = [np.nextafter(mark, to) for mark in marks for to in (-np.inf, np.inf)]
    return np.concatenate([drawn[np.isfinite(drawn)], marks, near])


def in_unit(rng: np.random.Generator, n: int) -> np.ndarray:
    """Probabilities near 0, near 1 and between, of all magnitudes."""
    one = np.float64(1.0).view(np.uint64)
    small = rng.integers(0, int(one) + 1, n, dtype=np.uint64).view(np.float64)
    return np.concatenate([small, 1.0 - 10.0 ** -rng.uniform(0, 17, n), rng.random(n)])


def rank(x: float) -> int:
    """The place of a double among all doubles."""
    bits = int(np.float64(x).view(np.int64))
    return bits if bits >= 0 else -(bits & (2**63 - 1))


def double(place_: int) -> float:
    bits = place_ if place_ >= 0 else (-place_) | 2**63
    return float(np.uint64(bits).view(np.float64))


def first_of(cells: Cells, number: int, low: float, high: float) -> float:
    """The smallest double from low to high whose cell is at least that number."""
    a, b = rank(low), rank(high)
    while a < b:
        middle = (a + b) // 2
        if int(cells(np.array([double(middle)]))[0]) >= number:
            b = middle
        else:
            a = middle + 1
    return double(a)


@functools.cache
def around_borders(cells: Cells, seed: int, n: int = 150) -> np.ndarray:
    """The last double of a cell, the first of the next, and those beside, at n borders."""
    low, high = (0.0, 1.0) if cells.centre is None else (-1.7e308, 1.7e308)
    rng = np.random.default_rng(seed)
    half = cells.count // 2
    drawn = (half * rng.uniform(-1, 1, n)).round()
    numbers = {int(k) for k in drawn} | {-half + 1, -1, 0, 1, half - 1}
    first = np.array([first_of(cells, k, low, high) for k in sorted(numbers)])
    below, above = np.nextafter(first, -np.inf), np.nextafter(first, np.inf)
    return np.concatenate([first, below, above, np.nextafter(below, -np.inf)])


def numbers_in(kind: str, cells: Cells, scores: np.ndarray) -> np.ndarray:
    """Cells as an engine finds them, in the order of the scores."""
    native = nw.from_native(frame(kind, {"s": scores, "i": np.arange(len(scores))}))
    lazy = native.lazy() if isinstance(native, nw.DataFrame) else native
    found = cells.add_to(lazy, "s", "k").collect().sort("i")
    assert found.columns == ["s", "i", "k"]
    return found.get_column("k").to_numpy()


# --- the same in every engine -------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cells", PROBABILITIES, ids=repr)
def test_probabilities_are_in_the_same_cell_in_every_engine(kind, cells):
    rng = np.random.default_rng(cells.count)
    scores = np.concatenate([in_unit(rng, 3000), everything(rng, 500), around_borders(cells, 1)])
    np.testing.assert_array_equal(numbers_in(kind, cells, scores), cells(scores))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cells", MARGINS, ids=repr)
def test_margins_are_in_the_same_cell_in_every_engine(kind, cells):
    rng = np.random.default_rng(cells.count)
    with np.errstate(over="ignore"):
        close = cells.centre + cells.spread * rng.normal(size=3000)
    scores = np.concatenate([close, everything(rng, 2000), around_borders(cells, 2)])
    scores = scores[np.isfinite(scores)]
    np.testing.assert_array_equal(numbers_in(kind, cells, scores), cells(scores))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cells", [Cells(64), Cells(64, 1.0, 2.0)], ids=repr)
def test_null_has_no_cell(kind, cells):
    native = nw.from_native(frame(kind, {"s": [0.25, None, 0.75]}))
    lazy = native.lazy() if isinstance(native, nw.DataFrame) else native
    found = cells.add_to(lazy, "s", "k").collect()
    missing = dict(zip(found["s"].to_list(), found["k"].is_null().to_list(), strict=True))
    assert sorted(missing.values()) == [False, False, True]
    assert not missing[0.25]


def test_other_columns_stay():
    native = frame("polars", {"s": [0.2], "k2": ["a"]})
    found = Cells(16).add_to(nw.from_native(native), "s", "k").collect()
    assert found.columns == ["s", "k2", "k"]
    assert found.row(0)[:2] == (0.2, "a")
    assert native.collect_schema().names() == ["s", "k2"]


# --- what a cell number promises ----------------------------------------------------------------


@given(COUNT, PROBABILITY)
def test_from_a_half_up_the_numbers_are_not_negative(count, p):
    assert (Cells(count)(np.array([p]))[0] >= 0) == (p >= 0.5)


@given(COUNT, st.lists(st.one_of(PROBABILITY, ANY), min_size=1, max_size=40))
def test_a_larger_probability_is_never_in_a_lower_cell(count, drawn):
    scores = np.sort(drawn)
    found = Cells(count)(scores)
    assert (np.diff(found) >= 0).all()
    assert found[0] >= -count // 2
    assert found[-1] <= count // 2


@given(COUNT, ANY, SPREAD, st.lists(ANY, min_size=1, max_size=40))
def test_a_larger_margin_is_never_in_a_lower_cell(count, centre, spread, drawn):
    scores = np.sort([*drawn, centre])
    found = Cells(count, centre, spread)(scores)
    assert (np.diff(found) >= 0).all()
    assert found[0] >= -count // 2
    assert found[-1] <= count // 2
    assert (found[scores >= centre] >= 0).all()


def test_the_ends_are_in_the_outermost_cells():
    counts = [*range(2, 4000, 2), *(2**k for k in range(4, 27)), *range(2**26 - 200, 2**26 + 1, 2)]
    for count in counts:
        low, high = Cells(count)(np.array([0.0, 1.0]))
        assert low == -count // 2
        assert high in (count // 2 - 1, count // 2)


@given(COUNT, PROBABILITY)
def test_twin(count, p):
    exact = place(p, count)
    found = int(Cells(count)(np.array([p]))[0])
    border = exact.to_integral_value()
    if abs(exact - border) > 1e-14 * count:
        assert found == math.floor(exact)
    else:  # rounding may decide, but only between the two cells of the border
        assert found in (int(border) - 1, int(border))


def test_cells_are_nearly_even_in_the_logit():
    cells = Cells(2**12)
    p = 10.0 ** np.linspace(-8, math.log10(0.499), 60)
    number = cells(p)
    first = [first_of(cells, int(k), 0.0, 1.0) for k in number]
    next_ = [first_of(cells, int(k) + 1, 0.0, 1.0) for k in number]
    logit = [np.log(np.array(ends)) - np.log1p(-np.array(ends)) for ends in (first, next_)]
    width = logit[1] - logit[0]
    assert width.max() < 10 * width.min()


def test_margins_have_cells_finest_at_the_centre():
    cells = Cells(200, 2.0, 3.0)
    ends = [first_of(cells, k, -1.7e308, 1.7e308) for k in range(-80, 81)]
    width = np.diff(ends)
    assert (np.diff(width[80:]) > -1e-9).all()
    assert (np.diff(width[:80]) < 1e-9).all()


def test_out_of_the_unit_interval_is_as_its_ends():
    cells = Cells(1000)
    outside = np.array([-1.7e308, -1e-9, -0.0, 1.0, 1.0 + 1e-9, 1.7e308])
    np.testing.assert_array_equal(cells(outside), cells(np.clip(outside, 0, 1)))


@given(st.floats(0, 1e15), st.floats(1, 4))
def test_cells_grow_with_the_rows(rows, factor):
    few, more = cells_for(rows), cells_for(rows * factor)
    assert FEWEST <= few <= more <= MOST
    fine = fine_cells_for(rows)
    assert FEWEST <= fine <= fine_cells_for(rows * factor) <= FINEST
    assert few & (few - 1) == fine & (fine - 1) == 0
    near = math.sqrt(2) * (1 + 1e-9)
    if FEWEST < few < MOST:
        assert 3.3 / near <= few / math.sqrt(rows) <= 3.3 * near
    if FEWEST < fine < FINEST:
        assert 50 / near <= rows / fine <= 50 * near


@pytest.mark.parametrize("segments", [0, 1, 63, 64, 65, 1024, 5000, 10**7])
def test_segments_have_fewer_cells_the_more_there_are(segments):
    found = segment_cells_for(segments)
    assert OWN[0] <= found <= OWN[1]
    assert found >= segment_cells_for(segments + 1)
    if OWN[0] < found < OWN[1]:
        assert found * segments <= math.sqrt(2) * TOGETHER


def test_words():
    assert str(Cells(65536)) == "65,536 cells, even in the logit"
    assert str(Cells(65536, 0.0)) == "65,536 cells, finest in the middle"
