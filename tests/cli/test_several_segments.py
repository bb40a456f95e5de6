"""--segment more than once: segments of several columns, from coarse to fine."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import calibrant as cal
from calibrant.cli.app import app

RNG = np.random.default_rng(7)
N = 900
ROWS = pd.DataFrame(
    {
        "s": RNG.random(N).round(2),
        "country": RNG.choice(["de", "fr"], N),
        "product": RNG.choice([1, 2, 3], N),
    }
)
UP = np.where(ROWS.country == "fr", 1.0, -1.0) + (ROWS["product"] - 2)
Z = np.log((ROWS.s + 0.01) / (1.01 - ROWS.s)) + UP
ROWS["y"] = (RNG.random(N) < 1 / (1 + np.exp(-Z))).astype(int)
BOTH = ["--segment", "country", "--segment=product"]


def run(*words):
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == 0, found.output
    return found.output


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("segments")
    ROWS.to_csv(folder / "s.csv", index=False)
    ROWS.to_parquet(folder / "s.parquet")
    said = run("fit", folder / "s.csv", "-s", "s", "-l", "y", *BOTH, "-o", folder / "c.json")
    (folder / "said.txt").write_text(said)
    return folder


def test_fit_says_and_keeps_both_columns(place):
    said = " ".join((place / "said.txt").read_text().split())
    assert "8 segments" in said
    fitted = cal.load(place / "c.json")
    assert fitted.provenance["segment_column"] == ("country", "product")
    assert fitted.map.columns == 2
    shown = run("show", place / "c.json")
    assert "country" in shown
    assert "product" in shown


def test_fit_equals_python(place):
    fitted = cal.load(place / "c.json")
    text = ROWS["product"].astype(str)  # fields of CSV files are text
    c = cal.SegmentedCalibrator().fit(ROWS.s, ROWS.y, segments=[ROWS.country, text])
    assert c.map_ == fitted.map


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_apply_finds_the_columns_by_itself(place, kind):
    fitted = cal.load(place / "c.json")
    new = ROWS.head(40).drop(columns="y")
    new.loc[:4, "product"] = 9
    new.loc[5:6, "country"] = "es"
    given, out = place / f"new.{kind}", place / f"out.{kind}"
    (new.to_csv if kind == "csv" else new.to_parquet)(given, index=False)
    said = " ".join(run("apply", place / "c.json", given, "-o", out).split())
    assert "7 of 40 rows have a segment that the calibrator has not seen" in said
    assert "the map of the coarser segment that it has seen, or that of all rows" in said
    made = (pd.read_csv if kind == "csv" else pd.read_parquet)(out)
    segments = [new.country, new["product"].astype(str)]
    assert np.array_equal(made.probability, fitted.calibrate(new.s, segments=segments))
    again = place / f"again.{kind}"
    run("apply", place / "c.json", given, "-o", again, *BOTH)
    assert again.read_bytes() == out.read_bytes()


def test_apply_wants_both_and_complete_segments(place):
    new = ROWS.head(10).drop(columns="y").astype({"product": "Int64"})
    new.loc[3, "product"] = pd.NA
    new.to_csv(place / "gap.csv", index=False)
    for words, said in (
        (["--segment", "country"], "segments of 2 columns, from coarse to fine, but 1 came"),
        ([], "segment column 'product' must be complete"),
        (["--segment", "country", "--segment", "country"], "must differ"),
    ):
        line = ["apply", place / "c.json", place / "gap.csv", "-o", place / "x.csv", *words]
        found = CliRunner().invoke(app, [str(word) for word in line])
        assert found.exit_code == 2
        assert said in " ".join(found.output.split())
    run(*line[:5], "--on-missing", "null")
    p = pd.read_csv(place / "x.csv").probability
    assert p.isna().tolist() == [i == 3 for i in range(10)]


def test_export(place):
    sql = run("export", place / "c.json", "--to", "sql", "--form", "lookup")
    assert "country" in sql
    assert "product" in sql
    other = ["--segment", "land", "--segment", "ware"]
    sql = run("export", place / "c.json", "--to", "sql", "--form", "lookup", *other)
    assert "land" in sql
    assert "ware" in sql
    assert "def calibrate(score: float, segment_1" in run(
        "export", place / "c.json", "--to", "python"
    )


def test_evaluate(place):
    said = run("evaluate", place / "s.csv", "-p", "s", "-l", "y", *BOTH)
    assert "country /" in said
    assert "fr / 3" in said
    found = json.loads(run("evaluate", place / "s.csv", "-p", "s", "-l", "y", *BOTH, "--json"))
    assert len(found["segments"]) == 6
    assert found["segment_column"] == ["country", "product"]


def test_monitor_takes_one_column(place):
    line = ["monitor", place / "m.json", place / "s.csv", "-p", "s", "-l", "y", *BOTH]
    found = CliRunner().invoke(app, [str(word) for word in line])
    assert found.exit_code == 2
    assert "a monitor watches segments of one column, but 2 came" in " ".join(found.output.split())
    assert not (place / "m.json").exists()


def test_the_calibrator_as_a_module_of_python(place):
    """The text runs without the library, on its own."""
    (place / "calibrate.py").write_text(run("export", place / "c.json", "--to", "python"))
    code = "import calibrate; print(calibrate.calibrate(0.3, 'fr', '9'))"
    line = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(place)!r}); {code}"]
    printed = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    expected = cal.load(place / "c.json").map.member(("fr",))([0.3])[0]
    assert abs(float(printed) - expected) < 1e-14
