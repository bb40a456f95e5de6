"""Isotonic regression in two passes: the map that the rows in memory have, to the last cut."""

from __future__ import annotations

import json
from dataclasses import replace
from unittest import mock

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data.isotonic_blocks import isotonic_blocks
from calibrant.data.lazy import Names, read_lazy, run_steps
from calibrant.data.refine import may_hold_corner, narrowed
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, ParameterError
from calibrant.maps import Piecewise
from lazy_frames import KINDS, frame
from strategies import REAL, rows
from twins.cells import has_corner, may_matter

SMOOTHINGS = st.sampled_from(["none", "laplace", "jeffreys"])


def fit(columns, kind="polars", **options):
    weight = "w" if "w" in columns else None
    given_ = frame(kind, columns)
    return cal.fit_isotonic(given_, **{"score": "s", "label": "y", "weight": weight, **options})


def check(far: Piecewise, near: Piecewise, scores, *, cuts: bool = True) -> None:
    """The same map: equal cuts (if weights are whole), values that differ by rounding alone."""
    assert isinstance(far, Piecewise)
    if cuts:
        assert far.x.tolist() == near.x.tolist()
        np.testing.assert_allclose(far.right, near.right, rtol=0, atol=1e-12)
    np.testing.assert_allclose(far(scores), near(scores), rtol=0, atol=1e-12)


# --- the same map -------------------------------------------------------------------------------


@given(rows(max_size=60), SMOOTHINGS, st.sampled_from([16, 32, 128]))
def test_any_rows(drawn, smoothing, cells):
    s, y, w = drawn
    options = {"smoothing": smoothing, "weights": "counts"}  # whole sums: not a cut may differ
    far = fit({"s": s, "y": y, "w": w}, cells=cells, **options)
    check(far.map, cal.Isotonic(**options).fit(s, y, w).map_, s)


def test_blocks_of_one_rate_are_one_block():
    """PAV's means are rounded, but 9 of 27 and 15 of 45 are both a third."""
    n0 = np.array([12, 4, 7, 1, 1, 5, 1, 13, 13, 1, 2, 2, 2])
    n1 = np.array([5, 3, 4, 0, 2, 0, 1, 7, 6, 1, 0, 3, 0])
    table = ScoreTable.from_counts(np.arange(13), n0, n1)
    starts, values = isotonic_blocks(table, 1.0)
    assert starts.tolist() == [0, 1, 11]
    assert values.tolist() == [6 / 19, 25 / 74, 4 / 9]


@given(rows(weight=REAL, max_size=60), SMOOTHINGS)
def test_any_rows_with_real_weights(drawn, smoothing):
    s, y, w = drawn
    far = fit({"s": s, "y": y, "w": w}, smoothing=smoothing, cells=16)
    near = cal.Isotonic(smoothing=smoothing).fit(s, y, w)
    check(far.map, near.map_, s[w > 0], cuts=False)


SCORES = {
    "even": lambda rng, n: rng.random(n),
    "ties": lambda rng, n: rng.integers(0, 40, n) / 40,
    "crowded": lambda rng, n: 0.3 + 0.02 * rng.random(n),
    "extremes": lambda rng, n: rng.choice([0.0, 1.0, 0.5, 1e-9, 1 - 1e-9, 5e-324], n),
    "margins": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3),
    "far margins": lambda rng, n: rng.standard_cauchy(n) * 1e9,
}
RATES = {
    "rising": lambda s: (np.argsort(np.argsort(s)) + 0.5) / len(s),
    "falling": lambda s: 1 - (np.argsort(np.argsort(s)) + 0.5) / len(s),
    "rare": lambda s: np.full(len(s), 0.03),
    "none": lambda s: np.zeros(len(s)),
    "all": lambda s: np.ones(len(s)),
}
WEIGHTS = {
    "no weights": lambda rng, n: None,
    "whole": lambda rng, n: rng.integers(0, 4, n),
    "real": lambda rng, n: rng.random(n) * 10,
    "wild": lambda rng, n: 10.0 ** rng.uniform(-8, 8, n),  # the sum swallows the smallest
}


@pytest.mark.full
@pytest.mark.parametrize("weighting", WEIGHTS)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("scores", SCORES)
def test_larger_data(scores, rate, weighting):
    rng = np.random.default_rng([len(scores), len(rate), len(weighting)])
    for cells in (16, 64):
        s = SCORES[scores](rng, 600)
        y = (rng.random(600) < RATES[rate](s)).astype(int)
        w = WEIGHTS[weighting](rng, 600)
        columns = {"s": s, "y": y} | ({} if w is None else {"w": w})
        present = s if w is None else s[w > 0]
        whole = weighting in ("no weights", "whole")
        check(fit(columns, cells=cells).map, cal.Isotonic().fit(s, y, w).map_, present, cuts=whole)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_frame(kind):
    rng = np.random.default_rng(8)
    s, w = rng.beta(0.5, 2, 2000), rng.integers(0, 3, 2000)
    y = rng.random(2000) < s
    near = cal.Isotonic().fit(s, y, w)
    for cells in (16, 512, "auto", "exact"):
        far = fit({"s": s, "y": y, "w": w}, kind, cells=cells)
        check(far.map, near.map_, s)
        assert (far.classes, far.pos_label) == ((False, True), True)


@pytest.mark.parametrize("kind", ["polars", "duckdb"])
def test_a_million_rows_and_few_of_them_twice(kind):
    """As many rows as make auto take cells, and the second pass fetches few."""
    rng = np.random.default_rng(9)
    n = 1_000_000
    s = rng.beta(0.7, 4, n)
    y = rng.random(n) < 0.7 * s
    given_ = frame(kind, {"s": s, "y": y})
    near = cal.Isotonic().fit(s, y)
    far = cal.fit_isotonic(given_, score="s", label="y", cells=2**16)
    check(far.map, near.map_, s)

    lazy = read_lazy(nw.from_native(given_), Names("s", "y"))
    (parts,) = run_steps((replace(lazy, bare=True), narrowed(*lazy.grouped(2**16))))
    again = parts.scores["negative"].sum() + parts.scores["positive"].sum()
    kept = parts.kept["negative"].sum() + parts.kept["positive"].sum()
    assert again + kept == n
    assert 0 < again < 0.2 * n
    assert len(parts.table()) < 0.3 * n


# --- cells that are divided ---------------------------------------------------------------------


@given(
    rows(max_size=60),
    st.sampled_from([16, 128]),
    st.sampled_from([0, 3, 10]),
    st.sampled_from([1, 2, 7]),
    st.sampled_from([1, 2, 4]),
)
def test_any_rows_of_divided_cells(drawn, cells, few, each, passes):
    s, y, w = drawn
    limits = {"FEW": few, "EACH": each, "MOST": 64, "PASSES": passes}
    with mock.patch.multiple("calibrant.data.refine", **limits):
        far = fit({"s": s, "y": y, "w": w}, weights="counts", cells=cells)
    check(far.map, cal.Isotonic(weights="counts").fit(s, y, w).map_, s)


@pytest.mark.parametrize("kind", KINDS)
def test_divided_cells_in_every_engine(kind):
    rng = np.random.default_rng(12)
    s = rng.random(3000)
    y = rng.random(3000) < s
    with mock.patch.multiple("calibrant.data.refine", FEW=100, EACH=4, MOST=10_000):
        far = fit({"s": s, "y": y}, kind, cells=32)
    check(far.map, cal.Isotonic().fit(s, y).map_, s)


# --- which cells matter -------------------------------------------------------------------------

CELL = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any), min_size=1, max_size=5)


@given(st.lists(CELL, min_size=1, max_size=12))
def test_every_cell_with_a_corner_inside_matters(cells):
    n0 = np.array([sum(a for a, _ in cell) for cell in cells], dtype=float)
    n1 = np.array([sum(b for _, b in cell) for cell in cells], dtype=float)
    found = may_hold_corner(n0, n1)
    inside = has_corner(cells)
    assert all(f for f, corner in zip(found, inside, strict=True) if corner)
    assert found.tolist() == may_matter(n0, n1)


@given(st.lists(st.lists(st.tuples(REAL, REAL).filter(any), min_size=1, max_size=4), min_size=1))
def test_every_cell_with_a_corner_inside_matters_with_real_weights(cells):
    n0 = np.array([sum(a for a, _ in cell) for cell in cells])
    n1 = np.array([sum(b for _, b in cell) for cell in cells])
    found = may_hold_corner(n0, n1)
    assert all(f for f, corner in zip(found, has_corner(cells), strict=True) if corner)


def test_weights_that_the_sum_swallows():
    n0, n1 = np.array([1e20, 1e-8, 1e-8, 1e20]), np.array([1e20, 1e-8, 2e-8, 1e20])
    assert may_hold_corner(n0, n1).all()


# --- labels, options, results -------------------------------------------------------------------

S = [0.1, 0.3, 0.4, 0.6, 0.8]


def test_words_as_labels():
    words = ["ham", "spam", "ham", "spam", "spam"]
    for positive in (None, "ham", "spam"):
        far = fit({"s": S, "y": words}, cells=16, pos_label=positive)
        near = cal.Isotonic(pos_label=positive).fit(S, words)
        assert far.classes == ("ham", "spam")
        assert far.pos_label == near.pos_label_
        check(far.map, near.map_, S)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_alone(label):
    far = fit({"s": S, "y": [label] * 5}, cells=16)
    assert far.calibrate(S).tolist() == [label] * 5
    smooth = fit({"s": S, "y": [label] * 5}, cells=16, smoothing="laplace")
    assert smooth.calibrate([0.5]).tolist() == [pytest.approx((5 * label + 1) / 7)]


def test_saved_loaded_and_applied(tmp_path):
    rng = np.random.default_rng(4)
    s = rng.random(3000)
    columns = {"s": s, "bought": np.where(rng.random(3000) < s**2, "yes", "no")}
    far = cal.fit_isotonic(frame("duckdb", columns), score="s", label="bought", cells=64)
    near = cal.Isotonic().fit(s, columns["bought"])
    path = tmp_path / "c.json"
    cal.save(far, path)
    loaded = cal.load(path)
    assert loaded.map == far.map
    cal.save(near, tmp_path / "near.json")
    same = cal.load(tmp_path / "near.json")
    assert (loaded.method, loaded.params) == (same.method, same.params)
    assert (loaded.classes, loaded.pos_label) == (("no", "yes"), "yes")
    np.testing.assert_allclose(loaded.calibrate(s), near.calibrate(s), rtol=0, atol=1e-12)
    applied = cal.add_probabilities(loaded, pl.LazyFrame({"s": s}), score="s").collect()
    np.testing.assert_allclose(applied["probability"], near.calibrate(s), rtol=0, atol=1e-12)


def test_what_is_remembered(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("p,bought,w\n0.1,0,2\n0.5,1,1\n0.7,0,3\n")
    for given_ in (path, pl.read_csv(path)):
        far = cal.fit_isotonic(given_, score="p", label="bought", weight="w", cells=16)
        facts = far.provenance
        assert (facts["weight"], facts["positive_weight"]) == (6.0, 1.0)
        assert facts["score_column"] == "p"
        assert facts["label_column"] == "bought"
        assert facts["weight_column"] == "w"
        json.dumps(dict(facts))
    assert cal.fit_isotonic(path, score="p", label="bought").provenance["files"] == ("f.csv",)


@pytest.mark.parametrize("name", ["f.csv", "f.parquet"])
def test_files(tmp_path, name):
    rng = np.random.default_rng(6)
    s = rng.random(5000)
    table = pl.DataFrame({"s": s, "y": (rng.random(5000) < s).astype(int)})
    (table.write_csv if name.endswith("csv") else table.write_parquet)(tmp_path / name)
    near = cal.Isotonic().fit(s, table["y"])
    for cells in (32, "auto"):
        far = cal.fit_isotonic(tmp_path / name, score="s", label="y", cells=cells)
        check(far.map, near.map_, s)


def test_refusals():
    good = {"s": S, "y": [0, 1, 0, 1, 1]}
    with pytest.raises(ParameterError, match="smoothing must be 'none' or 'laplace' or 'jeffreys'"):
        fit(good, smoothing="more")
    with pytest.raises(ParameterError, match="cells must be"):
        fit(good, cells=7)
    with pytest.raises(InputError, match="no column 'z'"):
        fit(good, score="z")
    for cells in ("auto", 16):
        with pytest.raises(InputError, match="score column 's' must be finite: 1 of 5 is missing"):
            fit({"s": [0.1, None, 0.4, 0.6, 0.8], "y": good["y"]}, cells=cells)
        with pytest.raises(InputError, match="at least 3 came"):
            fit({"s": S, "y": [0, 1, 2, 1, 0]}, cells=cells)
        with pytest.raises(InputError, match="all are zero"):
            fit({**good, "w": [0] * 5}, cells=cells)
