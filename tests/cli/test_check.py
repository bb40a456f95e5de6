"""calibrant check: what it prints, writes, refuses, and tells machines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.monitor import check_drift


@pytest.fixture
def run(capsys, monkeypatch, months):
    monkeypatch.chdir(months)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")

    def go(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return go


CHANGES = {
    "january": lambda z: z,
    "february": lambda z: z,
    "march": lambda z: z + 0.5,
    "april": lambda z: 0.6 * z,
    "may": lambda z: z + np.sin(2 * z),
}


def rows(month):
    rng = np.random.default_rng(len(month))
    z = rng.normal(-1.0, 1.3, 6000)
    p = 1 / (1 + np.exp(-CHANGES[month](1.3 * z + 0.2)))
    return 1 / (1 + np.exp(-z)), rng.random(6000) < p


@pytest.fixture(scope="session")
def months(tmp_path_factory) -> Path:
    """A file for each month, and a calibrator of the first."""
    folder = tmp_path_factory.mktemp("months")
    for month in CHANGES:
        s, y = rows(month)
        lines = [f"{a!r},{'yes' if b else 'no'},1" for a, b in zip(s.tolist(), y, strict=True)]
        (folder / f"{month}.csv").write_text("\n".join(["score,churned,w", *lines]))
    s, y = rows("january")
    c = cal.Beta(pos_label="yes").fit(s, np.where(y, "yes", "no")).to_fitted()
    known = {**c.provenance, "score_column": "score", "label_column": "churned"}
    cal.save(replace(c, provenance=known), folder / "c.json")
    return folder


COLUMNS = ("-s", "score", "-l", "churned")


def test_against_old_rows(run):
    code, out, err = run("check", "february.csv", "--reference", "january.csv", *COLUMNS)
    assert (code, err) == (0, "")
    assert "No change was found" in out
    assert "Keep the calibrator." in out
    code, out, _ = run("check", "may.csv", "-r", "january.csv", "-r", "february.csv", *COLUMNS)
    assert code == 0
    assert "The shape of P(y | score) has changed" in out
    assert "calibrant fit may.csv -s score -l churned -o calibrator.json" in out
    assert "weight 12,000 then, 6,000 now" in out


def test_against_a_calibrator_and_update(run):
    code, out, err = run("check", "march.csv", "-c", "c.json", "--update", "march.json")
    assert (code, err) == (0, "")
    assert "have moved alike" in out
    assert "The updated calibrator: march.json" in out
    updated = cal.load("march.json")
    assert updated.provenance["updated"][-1]["remedy"] == "intercept"
    code, out, _ = run("check", "march.csv", "-c", "march.json")
    assert "No change was found" in out
    code, out, _ = run("apply", "march.json", "march.csv", "-o", "out.csv")
    assert code == 0
    for quiet in ("february", "may"):
        code, _, _ = run("check", f"{quiet}.csv", "-c", "c.json", "--update", "none.json")
        assert code == 0
        assert not Path("none.json").exists()


def test_with_both_the_probabilities_are_compared(run):
    words = ("check", "april.csv", "-r", "january.csv", "-c", "c.json")
    code, out, err = run(*words, "--update", "april.json", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["recommendation"] == "refit"
    assert document["calibrated"] is True
    assert document["updated"] == "april.json"
    assert (document["rows"], document["pos_label"]) == (6000, "yes")
    assert document["summary"].startswith("The log-odds have moved by")
    c = cal.load("c.json")
    tables = (cal.ScoreTable.from_arrays(*rows(month)) for month in ("january", "april"))
    drift = check_drift(*tables, calibrator=c)
    assert document["p_value"] == pytest.approx(drift.p_value, rel=1e-6)
    assert document["line"] == pytest.approx(list(drift.line), rel=1e-6)
    expected = drift.update(c).calibrate([0.1, 0.5, 0.9])
    assert cal.load("april.json").calibrate([0.1, 0.5, 0.9]) == pytest.approx(expected, rel=1e-9)
    code, out, _ = run("check", "april.csv", "-r", "january.csv", *COLUMNS)
    assert "Refit the calibrator to new rows" in out


@pytest.mark.parametrize(("month", "expected"), [("february", 0), ("march", 3), ("may", 3)])
def test_exit_codes(run, month, expected):
    words = ("check", f"{month}.csv", "-c", "c.json")
    assert run(*words, "--exit-code")[0] == expected
    assert run(*words, "--exit-code", "--json")[0] == expected
    assert run(*words)[0] == 0
    assert run(*words, "--exit-code", "--least", "0.5")[0] == 0


def test_options_reach_the_test(run):
    words = ("check", "march.csv", "-c", "c.json", "--json")
    first = json.loads(run(*words)[1])
    assert json.loads(run(*words, "--level", "0.2")[1])["level"] == 0.2
    small = json.loads(run(*words, "--least", "0.5")[1])
    assert (small["recommendation"], small["found"]) == ("none", True)
    tables = ("check", "march.csv", "-r", "january.csv", *COLUMNS, "--json", "--pos-label", "no")
    assert json.loads(run(*tables)[1])["rates"]["new"] == pytest.approx(1 - first["rates"]["new"])
    for meaning in ("importance", "counts"):
        weighed = json.loads(run(*words, "--weight", "w", "--weights", meaning)[1])
        assert weighed["p_value"] == pytest.approx(first["p_value"], rel=1e-6)
    cells = json.loads(run(*words, "--cells", "1024")[1])
    assert cells["cells"] == "1,024 cells, even in the logit"
    assert cells["shift"] == pytest.approx(first["shift"], abs=0.01)


def test_globs_and_parquet(run, tmp_path):
    for day in range(2):
        s, y = (part[day::2] for part in rows("march"))
        kind = pa.table({"score": s, "churned": np.where(y, "yes", "no")})
        pq.write_table(kind, tmp_path / f"day-{day}.parquet")
    code, out, _ = run("check", tmp_path / "day-*.parquet", "-r", "j*.csv", *COLUMNS, "--json")
    assert code == 0
    assert json.loads(out)["recommendation"] == "intercept"
    assert json.loads(out)["rows"] == 6000


def test_what_is_refused(run, tmp_path):
    def refused(*words: object) -> str:
        code, out, err = run("check", *words)
        assert (code, out) == (2, "")
        return " ".join(err.split())

    assert "something to compare with" in refused("march.csv", *COLUMNS)
    two = tmp_path / "two.csv"
    two.write_text("p,score,a,b\n" + "".join(f"0.{i},0.{i},{i % 2},{i % 2}\n" for i in range(9)))
    unclear = refused(two, "-r", "january.csv", "-l", "a")
    assert "The column of scores may be 'p' or 'score': name it with --score COL" in unclear
    unclear = refused(two, "-r", "january.csv", "-s", "p")
    assert "The column of labels may be 'a' or 'b': name it with --label COL" in unclear
    wanted = refused("march.csv", "-r", "january.csv", *COLUMNS, "--update", "u.json")
    assert "name it with --calibrator" in wanted
    assert "does not exist" in refused("march.csv", "-c", "c.json", "--update", "no/u.json")
    assert "level must be" in refused("march.csv", "-c", "c.json", "--level", "2")
    assert "least must be" in refused("march.csv", "-c", "c.json", "--least", "-1")
    assert "weights must be" in refused("march.csv", "-c", "c.json", "--weights", "often")
    other = tmp_path / "other.csv"
    other.write_text("score,churned\n0.2,left\n0.7,stayed\n")
    assert "the same two labels" in refused("march.csv", "-r", other, *COLUMNS)
    assert refused(other, "-c", "c.json")
    assert "Leave --pos-label out" in refused("march.csv", "-c", "c.json", "--pos-label", "no")
    other.write_text("score,churned\n0.2,No\n0.7,Yes\n")
    assert "Write the labels of the new rows like" in refused(other, "-c", "c.json")
    assert not Path("u.json").exists()


def test_labels_may_be_written_as_other_numbers(run, tmp_path):
    s, y = rows("february")
    c = cal.Beta().fit(s, y.astype(int)).to_fitted()
    known = {**c.provenance, "score_column": "score", "label_column": "churned"}
    cal.save(replace(c, provenance=known), tmp_path / "n.json")
    lines = [f"{a!r},{float(b)}" for a, b in zip(s.tolist(), y, strict=True)]
    (tmp_path / "floats.csv").write_text("\n".join(["score,churned", *lines]))
    code, out, _ = run("check", tmp_path / "floats.csv", "-c", tmp_path / "n.json", "--json")
    assert (code, json.loads(out)["recommendation"]) == (0, "none")
