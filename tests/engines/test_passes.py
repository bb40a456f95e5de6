"""Rows that come in batches: the same answers as from a GROUP BY, and one pass for two columns."""

from __future__ import annotations

from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import fit_isotonic, metrics
from calibrant.data import lazy as passes
from calibrant.errors import InputError
from calibrant.metrics import frames as lazy_sums
from lazy_frames import frame as frame_of
from strategies import MARGINS, PROBABILITIES, REAL, WHOLE, rows

RNG = np.random.default_rng(5)
N = 3_000
P = RNG.beta(0.7, 3.0, N)
COLUMNS = {
    "p": P,
    "s": 1.7 * np.log(P / (1 - P)) - 0.4,
    "y": (RNG.random(N) < P**1.3).astype(int),
    "w": RNG.integers(0, 4, N).astype(float),
}
OPTIONS = {"label": "y", "classes": [0, 1], "level": None}


def grouped_there():
    """No engine hands over its rows."""
    return mock.patch.dict(passes.READERS, clear=True)


def in_small_steps(few: int = 3):
    """Batches of seven rows, cells that are divided as those of a hundred million rows are."""
    limits = {"FEW": few, "EACH": 2, "MOST": 64}
    return (
        mock.patch.object(passes, "BATCH", 7),
        mock.patch.multiple("calibrant.data.refine", **limits),
    )


def same(found, wanted) -> None:
    assert found.notes == wanted.notes
    for side in ("after", "before"):
        left, right = getattr(found, side), getattr(wanted, side)
        assert (left is None) == (right is None)
        for name in right or {}:
            assert left[name] == pytest.approx(right[name], rel=1e-12, abs=2e-15), (side, name)


@given(
    rows(PROBABILITIES, st.one_of(WHOLE, REAL), max_size=60),
    st.sampled_from([16, 128]),
    st.sampled_from([0, 3, 10]),
)
@pytest.mark.full
def test_probabilities_in_batches(data, cells, few):
    p, y, w = data
    frame = frame_of("duckdb", {"p": p, "y": y, "w": w})
    ask = lambda: metrics.evaluate(frame, "p", sample_weight="w", cells=cells, **OPTIONS)  # noqa: E731
    batches, divided = in_small_steps(few)
    with batches, divided:
        found = ask()
        with grouped_there():
            same(found, ask())


@given(rows(MARGINS, st.one_of(WHOLE, REAL), max_size=60), st.sampled_from([16, 128]))
def test_margins_in_batches(data, cells):
    """Beside the arrays in memory: another engine's exp is rounded otherwise."""
    s, y, w = data
    p = np.where(y == 1, 0.75, 0.25)
    frame = frame_of("duckdb", {"p": p, "s": s, "y": y, "w": w})
    batches, divided = in_small_steps()
    with batches, divided:
        found = metrics.evaluate(frame, "p", raw="s", sample_weight="w", cells=cells, **OPTIONS)
    plain = metrics.evaluate(y, p, raw=s, sample_weight=w, classes=[0, 1], level=None)
    for name, value in found.before.items():
        if name != "auc":
            assert value == pytest.approx(plain.before[name], rel=1e-12, abs=2e-15), name


def _counted(**options) -> list[int]:
    """How many columns each pass over the rows read."""
    read = []

    def reader(frame):
        read.append(len(frame.collect_schema().names()))
        return passes._read_duckdb(frame)

    batches, divided = in_small_steps(few=200)
    with mock.patch.dict(passes.READERS, duckdb=reader), batches, divided:
        metrics.evaluate(frame_of("duckdb", COLUMNS), "p", cells=64, **OPTIONS, **options)
    return read


@pytest.mark.parametrize("weight", [None, "w"])
def test_two_columns_take_the_passes_of_one(weight):
    alone, both = _counted(sample_weight=weight), _counted(raw="s", sample_weight=weight)
    assert len(alone) > 2
    assert set(alone) == {2 + (weight is not None)}
    assert both[: len(alone)] == [n + 1 for n in alone]
    assert len(both) <= len(alone) + 1


def test_isotonic_regression_reads_batches_too():
    frame = frame_of("duckdb", COLUMNS)
    batches, divided = in_small_steps(few=200)
    columns = {"score": "s", "label": "y", "weight": "w"}
    ask = lambda: fit_isotonic(frame, **columns, weights="counts", cells=64)  # noqa: E731
    with batches, divided:
        found = ask()
        with grouped_there():
            assert np.array_equal(found.calibrate(COLUMNS["s"]), ask().calibrate(COLUMNS["s"]))


@pytest.mark.parametrize("kind", ["duckdb", "polars"])
@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"s": np.where(np.arange(N) == 7, np.nan, P)}, "'s' must be finite: 1 of 3,000 is NaN"),
        ({"s": [None, *P[1:]]}, "'s' must be finite: 1 of 3,000 is missing"),
        ({"y": [None, *COLUMNS["y"][1:]]}, "label column 'y' must be complete"),
        ({"w": COLUMNS["w"] - 1.0}, "weight column 'w' must be from 0 to"),
        ({"w": 0.0 * COLUMNS["w"]}, "must be positive for at least one row"),
        ({"s": ["a"] * N}, "raw column 's' must be numbers"),
    ],
)
def test_wrong_rows_of_either_column_are_told(kind, column, said):
    frame = frame_of(kind, {**COLUMNS, **column})
    with pytest.raises(InputError, match=said):
        metrics.evaluate(frame, "p", raw="s", sample_weight="w", cells=256, **OPTIONS)


def test_a_value_that_the_engine_cannot_read_is_told_in_its_words():
    import duckdb

    held = pl.DataFrame({"p": ["0.2", "0.7", "x"] * 9, "y": [0, 1, 1] * 9}).to_arrow()
    connection = duckdb.connect()
    connection.register("held", held)
    frame = connection.sql("SELECT p::DOUBLE AS p, y FROM held")
    with pytest.raises(duckdb.ConversionException, match="x"):
        metrics.evaluate(frame, "p", cells=16, **OPTIONS)


def test_a_sigmoid_that_falls_somewhere_is_left_to_the_engine(monkeypatch):
    """Sums in arrays go by cell + bin, which tells both only if predictions rise with the score."""
    frame = frame_of("duckdb", COLUMNS)
    wanted = metrics.evaluate(frame, "p", raw="s", cells=64, **OPTIONS)
    place = lazy_sums.CellSums._locate

    def falling(self, x):
        p, k, f = place(self, x)
        return p, k, np.where(np.arange(len(x)) % 2, f, np.maximum(f - 1, 0))

    monkeypatch.setattr(lazy_sums.CellSums, "_locate", falling)
    same(metrics.evaluate(frame, "p", raw="s", cells=64, **OPTIONS), wanted)


def test_more_cells_than_arrays_should_hold_are_grouped_there():
    assert not lazy_sums.CellSums(lazy_sums.Cells(2**22)).few
