"""`calibrant fit --features`, and `calibrant apply` of what it wrote."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import calibrant as cal
from calibrant.cli.app import app
from calibrant.engines.files import typed_feature
from calibrant.errors import InputError
from calibrant.losses import sigmoid

pytest.importorskip("lightgbm")


def world(n: int, shift: float, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 1.5, n)
    region = np.array(["north", "south", "east"])[rng.integers(0, 3, n)]
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n).round(1))
    true = z + shift * (region == "north") - shift * (age > 45)
    y = np.where(rng.random(n) < sigmoid(true), "yes", "no")
    return pd.DataFrame({"id": np.arange(n), "p": sigmoid(z), "y": y, "region": region, "age": age})


def run(*args: str):
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    rows = world(2500, 1.5)
    rows.to_csv(folder / "rows.csv", index=False)
    rows.to_parquet(folder / "rows.parquet")
    done = run(
        *("fit", folder / "rows.csv", "-s", "p", "-l", "y", "--features", "region,age"),
        *("-o", folder / "c.json", "--json"),
    )
    assert done.exit_code == 0, done.output
    return folder, rows, json.loads(done.stdout)


def test_columns_that_help_are_used(files):
    folder, rows, told = files
    assert told["chosen"] == "features"
    assert told["leaderboard"]["rows"][0]["name"] == "features"
    loaded = cal.load(folder / "c.json")
    assert loaded.provenance["feature_columns"] == ("region", "age")
    known = [(a.name, a.nominal) for a in loaded.rule.schema.attributes]
    assert known == [("region", True), ("age", False)]
    auto = cal.AutoCalibrator().fit(rows["p"], rows["y"], features=rows[["region", "age"]])
    p = auto.calibrate(rows["p"], features=rows[["region", "age"]])
    assert np.abs(loaded.calibrate(rows["p"], features=rows) - p).max() < 1e-12


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_apply_finds_the_columns(files, kind, tmp_path):
    folder, rows, _ = files
    out = tmp_path / "out.csv"
    done = run("apply", folder / "c.json", folder / f"rows.{kind}", "-o", out)
    assert done.exit_code == 0, done.output
    made = pd.read_csv(out)
    expected = cal.load(folder / "c.json").calibrate(rows["p"].to_numpy(), features=rows)
    assert np.abs(made["probability"] - expected).max() < 1e-12
    assert made["id"].tolist() == rows["id"].tolist()


def test_apply_says_what_is_wrong_with_columns(files, tmp_path):
    folder, rows, _ = files
    rows[["p", "age"]].to_csv(tmp_path / "less.csv", index=False)
    done = run("apply", folder / "c.json", tmp_path / "less.csv", "-o", tmp_path / "o.csv")
    assert done.exit_code != 0
    assert "region" in done.output
    rows.assign(age="old").to_csv(tmp_path / "words.csv", index=False)
    done = run("apply", folder / "c.json", tmp_path / "words.csv", "-o", tmp_path / "o.csv")
    assert done.exit_code != 0
    assert "age" in done.output
    assert not (tmp_path / "o.csv").exists()
    rows.assign(region="new", age="").head(3).to_csv(tmp_path / "new.csv", index=False)
    done = run("apply", folder / "c.json", tmp_path / "new.csv", "-o", tmp_path / "o.csv")
    assert done.exit_code == 0, done.output
    assert pd.read_csv(tmp_path / "o.csv")["probability"].between(0, 1).all()


def test_categories_are_found_however_a_file_spells_them(tmp_path):
    rows = world(2500, 1.5)
    rows["new"] = np.random.default_rng(1).random(2500) < 0.5
    rows["code"] = rows["region"].map({"north": 7, "south": 8, "east": 9})
    shifted = np.where(rows["new"], 1.5, -1.5)
    hit = np.random.default_rng(2).random(2500) < sigmoid(shifted + (rows["code"] == 7) * 1.5)
    c = cal.FeatureCalibrator(nominal=["code"], gate=False, rounds=1, min_rows=50)
    c.fit(rows["p"], hit, features=rows[["new", "code"]])
    assert {a.name for a in c.rule_.used} == {"new", "code"}
    cal.save(c, tmp_path / "c.json")
    expected = c.calibrate(rows["p"].to_numpy(), features=rows)
    words = rows["new"].astype(str)
    spelled = {
        "python": rows,
        "r": rows.assign(new=words.str.upper(), code=rows["code"].astype(float)),
        "json": rows.assign(new=words.str.lower(), code="0" + rows["code"].astype(str)),
        "numbers": rows.assign(new=rows["new"].astype(int), code=" " + rows["code"].astype(str)),
    }
    for name, given in spelled.items():
        given.to_csv(tmp_path / f"{name}.csv", index=False)
        done = run(
            *("apply", tmp_path / "c.json", tmp_path / f"{name}.csv", "--score", "p"),
            *("-o", tmp_path / "o.csv"),
        )
        assert done.exit_code == 0, done.output
        made = pd.read_csv(tmp_path / "o.csv")["probability"]
        assert np.abs(made - expected).max() < 1e-12, name
    rows.assign(code="seven").to_csv(tmp_path / "words.csv", index=False)
    asked = ("--score", "p", "-o", tmp_path / "never.csv")
    done = run("apply", tmp_path / "c.json", tmp_path / "words.csv", *asked)
    assert done.exit_code != 0
    assert "code must hold numbers" in " ".join(done.output.split())
    assert not (tmp_path / "never.csv").exists()


def test_numbers_where_there_were_words_are_refused(files, tmp_path):
    folder, rows, _ = files
    rows.assign(region=rows["id"]).to_csv(tmp_path / "numbers.csv", index=False)
    rows.assign(region=rows["id"]).to_parquet(tmp_path / "numbers.parquet")
    for kind in ("csv", "parquet"):
        out = tmp_path / "o.csv"
        done = run("apply", folder / "c.json", tmp_path / f"numbers.{kind}", "-o", out)
        assert done.exit_code != 0
        assert "region must hold words" in " ".join(done.output.split())
        assert not out.exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["TRUE", "false", "NA", ""], [True, False, None, None]),
        (["12 %", "7.5 %", "-"], [0.12, 0.075, None]),
        (["1,5", "1.234,5"], [1.5, 1234.5]),
        (["1e3", "-2"], [1000.0, -2.0]),
        (["1,234", "abc"], ["1,234", "abc"]),
        (["inf", "abc"], ["inf", "abc"]),
        (["NA", ""], ["NA", None]),
    ],
)
def test_types_of_columns(words, expected):
    assert typed_feature([pa.array(words)], "x").to_pylist() == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [(["1,234", "5,678"], "can be read in two ways"), (["1", "-inf"], "must be finite")],
)
def test_columns_of_unclear_numbers_are_refused(words, message):
    with pytest.raises(InputError, match=message):
        typed_feature([pa.array(words)], "x")


def test_truth_values_of_text_files_are_truth_values(files, tmp_path):
    _, rows, _ = files
    rows = rows.assign(new=rows["age"].fillna(0) > 40)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    asked = ("-s", "p", "-l", "y", "--features", "region,new", "-o", tmp_path / "c.json")
    done = run("fit", tmp_path / "rows.csv", *asked)
    assert done.exit_code == 0, done.output
    frame = pd.read_csv(tmp_path / "rows.csv")
    here = cal.AutoCalibrator().fit(frame["p"], frame["y"], features=frame[["region", "new"]])
    p = here.calibrate(frame["p"], features=frame)
    assert (
        np.abs(cal.load(tmp_path / "c.json").calibrate(frame["p"], features=frame) - p).max() == 0
    )


def test_columns_that_say_nothing_leave_a_plain_calibrator(tmp_path):
    world(1500, 0.0).to_csv(tmp_path / "rows.csv", index=False)
    asked = ("-s", "p", "-l", "y", "--features", "region,age", "-o", tmp_path / "c.json")
    done = run("fit", tmp_path / "rows.csv", *asked)
    assert done.exit_code == 0, done.output
    assert isinstance(cal.load(tmp_path / "c.json"), cal.Fitted)
    world(10, 0.0)[["p"]].to_csv(tmp_path / "new.csv", index=False)
    done = run("apply", tmp_path / "c.json", tmp_path / "new.csv", "-o", tmp_path / "o.csv")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--features", "p"), "has a role"),
        (("--features", "nothing"), "nothing"),
        (("--features", "age", "--segment", "region"), "do not go together"),
        (("--features", "age", "-m", "platt"), "come with the method auto"),
        (("--features", "age", "--report", "r.html"), "no report on features"),
    ],
)
def test_what_does_not_go_together_is_refused(files, more, message):
    folder, _, _ = files
    done = run("fit", folder / "rows.csv", "-s", "p", "-l", "y", "-o", folder / "x.json", *more)
    assert done.exit_code != 0
    assert message in " ".join(done.output.split())
