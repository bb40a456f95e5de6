"""Ibis over SQLite, which knows no infinity and no NaN, and over Polars; SQL Server's text."""

from __future__ import annotations

from functools import partial

import ibis
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.data.lazy import Coding, LazyRows, Names, SumsByCell
from calibrant.data.score_table import Cells
from calibrant.errors import InputError
from lazy_frames import sqlite

# Ibis itself sets an option that pandas 3 calls old
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ibis")

RNG = np.random.default_rng(0)
S, M = RNG.random(800), RNG.normal(size=800) * 9
Y, W = (RNG.random(800) < S**2).astype(int), RNG.integers(1, 4, 800).astype(float)
LAND = RNG.choice(["de", "fr", "it"], 800)
P = RNG.dirichlet([1, 1, 1], 800)
KIND = (P.cumsum(axis=1) < RNG.random((800, 1))).sum(axis=1)
COLUMNS = {"s": S, "m": M, "y": Y, "w": W, "land": LAND, **{f"p{k}": P[:, k] for k in range(3)}}
#: the largest finite double must pass where infinity must not
LARGEST = float(np.finfo(np.float64).max)


@pytest.fixture(scope="module", params=["sqlite", "polars"])
def there(request):
    table = pa.table(COLUMNS)
    if request.param == "sqlite":
        return sqlite(table)
    return ibis.polars.connect(tables={"t": pl.from_arrow(table)}).table("t")


def test_tables(there):
    found = cal.score_table(there, score="s", label="y", weight="w")
    assert found == cal.ScoreTable.from_arrays(S, Y, W)
    assert len(cal.score_table(there, score="m", label="y", cells=64).scores) <= 65
    memory = cal.score_table(pa.table(COLUMNS), score="s", label="y", cells=64)
    found = cal.score_table(there, score="s", label="y", cells=64)
    assert found.scores == pytest.approx(memory.scores, rel=1e-14)


def test_tables_of_segments(there):
    found = cal.segment_tables(there, score="s", label="y", segment="land")
    assert sorted(found) == ["de", "fr", "it"]
    assert found["fr"] == cal.ScoreTable.from_arrays(S[LAND == "fr"], Y[LAND == "fr"])


def test_isotonic_regression(there):
    found = cal.fit_isotonic(there, score="m", label="y")
    assert np.abs(found.calibrate(M) - cal.Isotonic().fit(M, Y).calibrate(M)).max() < 1e-12


def test_measures(there):
    found = cal.evaluate(there, "s", label="y", raw="m", sample_weight="w")
    memory = cal.evaluate(pa.table(COLUMNS), "s", label="y", raw="m", sample_weight="w")
    for name in ("log_loss", "auc", "brier", "ece"):
        assert found.after[name] == pytest.approx(memory.after[name], rel=1e-12)


@pytest.mark.parametrize("method", [cal.Platt, cal.BLS, cal.Isotonic, cal.ENIR])
def test_probabilities(there, method):
    c = method().fit(S, Y)
    made = cal.add_probabilities(c, there, score="s").to_pyarrow()
    found = dict(zip(made["s"].to_pylist(), made["probability"].to_pylist(), strict=True))
    assert max(abs(found[s] - p) for s, p in zip(S, c.calibrate(S), strict=True)) < 1e-12


def test_probabilities_of_segments(there):
    c = cal.SegmentedCalibrator().fit(S, Y, segments=LAND)
    made = cal.add_probabilities(c, there, score="s", segment="land").to_pyarrow()
    found = dict(zip(made["s"].to_pylist(), made["probability"].to_pylist(), strict=True))
    wanted = c.calibrate(S, segments=LAND)
    assert max(abs(found[s] - p) for s, p in zip(S, wanted, strict=True)) < 1e-12


def test_probabilities_of_classes(there):
    c = cal.Temperature().fit(P, KIND)
    made = cal.add_probabilities(c, there, score=["p0", "p1", "p2"]).to_pandas()
    wanted = c.predict_proba(made[["p0", "p1", "p2"]].to_numpy())
    found = made[[f"probability_{k}" for k in range(3)]].to_numpy()
    assert np.abs(found - wanted).max() < 1e-12


@pytest.mark.parametrize("infinite", [np.inf, -np.inf])
@pytest.mark.parametrize("cells", ["exact", 16])
def test_infinite_scores_are_refused(infinite, cells):
    frame = sqlite(pa.table({"s": [0.1, LARGEST, infinite, -LARGEST], "y": [0, 1, 0, 1]}))
    with pytest.raises(InputError, match="must be finite: 1 of 4 is infinite"):
        cal.score_table(frame, score="s", label="y", cells=cells)
    with pytest.raises(InputError, match="must be finite: 1 of 4 is infinite"):
        cal.add_probabilities(cal.Platt().fit(M, Y), frame, score="s")
    made = cal.add_probabilities(cal.Platt().fit(M, Y), frame, score="s", on_missing="null")
    assert made.to_pyarrow()["probability"].null_count == 1


def test_sql_server_and_others_are_written_without_nan():
    """Its words for the queries of all jobs; nothing is run."""
    table = ibis.table({name: str(v.dtype).replace("<U2", "string") for name, v in COLUMNS.items()})
    roles = (nw.col(own).alias(role) for own, role in {"s": "score", "y": "label", "w": "weight",
                                                       "land": "g1"}.items())  # fmt: skip
    asked = []

    class StopError(Exception):
        pass

    def run(collect):
        asked.append(collect.__self__.to_native())
        raise StopError

    rows = LazyRows(nw.from_native(table).select(*roles), Names("s", "y", "w", "land"),
                    Coding((0, 1), 1, (0,), (1,)), run)  # fmt: skip
    cells = (Cells(64), Cells(64, 0.5, 1.0))
    jobs = (rows.by_score, rows.extent, rows.refuse, rows.mean_row_weight,
            *(partial(SumsByCell(c).ask, rows) for c in cells))  # fmt: skip
    for job in jobs:
        with pytest.raises(StopError):
            job()
    for c in (cal.Platt().fit(S, Y), cal.BLS().fit(S, Y), cal.ENIR().fit(S, Y)):
        asked.append(
            cal.add_probabilities(c, table, score="s", on_missing="null", on_range="allow")
        )
    for dialect in ("mssql", "mysql", "sqlite", "postgres"):
        for query in asked:
            assert "nan" not in ibis.to_sql(query, dialect=dialect).lower()
