"""The command line on many files: cells, segments, engines; errors leave nothing behind."""

from __future__ import annotations

import json
import os
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.data import lazy


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def go(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return go


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    n = 6000
    land = rng.integers(0, 4, n)
    s = rng.random(n)
    shift = np.array([-1.5, 0.0, 0.0, 1.5])[land]
    y = rng.random(n) < 1 / (1 + np.exp(-(np.log(s / (1 - s)) + shift)))
    return {"s": s, "y": y.astype(int), "land": land, "w": rng.integers(0, 3, n)}


@pytest.fixture
def days(run, tmp_path, data):
    for day in range(3):
        part = {name: values[day::3] for name, values in data.items()}
        pq.write_table(pa.table(part), tmp_path / f"day-{day}.parquet")
    return "day-*.parquet"


COLUMNS = ("-s", "s", "-l", "y")


def test_cells_are_chosen_and_said(run, days, monkeypatch):
    fast = ("--method", "platt", "--cv", "2")
    code, out, _ = run("fit", days, *COLUMNS, *fast, "--cells", "64", "--json")
    assert code == 0
    made = json.loads(out)["provenance"]
    assert made["rows"] == 6000
    assert made["cells"] == "64 cells, even in the logit"
    assert made["distinct_scores"] <= 65
    assert 0 < made["moved_by_at_most"] < 0.1
    assert cal.load("calibrator.json").provenance["moved_by_at_most"] == made["moved_by_at_most"]
    code, out, _ = run("fit", days, *COLUMNS, *fast, "--cells", "exact", "--json")
    assert "cells" not in json.loads(out)["provenance"]
    monkeypatch.setattr(lazy, "EXACT", 1000)
    monkeypatch.setattr(lazy, "SEEN", 2000)
    code, out, _ = run("fit", days, *COLUMNS, *fast)
    assert "16,384 cells, even in the logit; no score was moved by more than" in " ".join(
        out.split()
    )
    _, out, _ = run("show", "calibrator.json")
    assert "16,384 cells" in out


def test_the_report_says_what_was_done_to_scores(run, days):
    words = ("-m", "platt", "--cells", "128", "--cv", "2", "--report", "page.html")
    code, _, err = run("fit", days, *COLUMNS, *words)
    assert (code, err) == (0, "")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "128 cells, even in the logit; no score was moved by more than" in page


@pytest.mark.parametrize("wrong", ["17", "0", "many", "-4", "1.5"])
def test_wrong_cells(run, days, wrong):
    code, _, err = run("fit", days, *COLUMNS, f"--cells={wrong}")
    assert code == 2
    assert "cells must be" in err
    assert not Path("calibrator.json").exists()


def test_segments_from_fit_to_evaluate(run, days, data, tmp_path):
    code, out, err = run("fit", days, *COLUMNS, "--segment", "land", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert [one["key"] for one in document["segments"]] == [0, 1, 2, 3]
    assert (
        document["evaluation"]["after"]["log_loss"] < document["evaluation"]["before"]["log_loss"]
    )
    fitted = cal.load("calibrator.json")
    assert fitted.provenance["segment_column"] == "land"
    near = cal.SegmentedCalibrator().fit(data["s"], data["y"], segments=data["land"])
    np.testing.assert_allclose(
        fitted.calibrate(data["s"], segments=data["land"]),
        near.calibrate(data["s"], segments=data["land"]),
        rtol=0,
        atol=1e-9,
    )
    code, out, err = run("apply", "calibrator.json", days, "-o", "out.parquet")
    assert (code, err) == (0, "")
    done = pq.read_table("out.parquet")
    expected = fitted.calibrate(done["s"].to_numpy(), segments=done["land"].to_numpy())
    assert done["probability"].to_pylist() == expected.tolist()  # bit for bit
    # the same segments as text
    text = done.select(["s", "land", "y"]).to_pylist()
    lines = [f"{row['s']!r},{row['land']},{row['y']}" for row in [*text, {**text[0], "land": 99}]]
    Path("new.csv").write_text("\n".join(["s,land,y", *lines]))
    code, _, err = run("apply", "calibrator.json", "new.csv", "-o", "new-out.csv")
    assert (code, err) == (0, "")
    p = [float(line.split(",")[-1]) for line in Path("new-out.csv").read_text().split()[1:]]
    assert p[:-1] == expected.tolist()
    assert p[-1] == float(fitted.map.default([text[0]["s"]])[0])
    code, out, _ = run(
        "evaluate", "out.parquet", "-p", "probability", "-l", "y", "--segment", "land"
    )
    assert code == 0
    assert len([line for line in out.splitlines() if " %" in line]) == 4
    _, out, _ = run(
        "evaluate", "out.parquet", "-p", "probability", "-l", "y", "--segment", "land", "--json"
    )
    each = json.loads(out)["segments"]
    rows = data["land"] == 2
    alone = cal.evaluate(data["y"][rows], expected[_order(done, data)][rows], level=None)
    assert each["2"]["after"]["log_loss"] == pytest.approx(alone.after["log_loss"], rel=1e-12)


def _order(done, data):
    """Where each row of the data is in what was written, file after file."""
    order = np.concatenate([np.arange(6000)[day::3] for day in range(3)])
    assert (done["s"].to_numpy() == data["s"][order]).all()
    return np.argsort(order)


def test_segments_are_printed_for_people(run, days):
    words = ("--segment", "land", "--shrinkage", "50", "--method", "platt")
    code, out, err = run("fit", days, *COLUMNS, *words, "--plot", "r.png")
    assert (code, err) == (0, "")
    assert "4 segments, 4 of them with a map of their own" in out
    assert "The figures after are out of fold (5 folds)" in out
    assert Path("r.png").stat().st_size > 1000
    code, out, _ = run("show", "calibrator.json")
    assert "Segmented(4 segments of kind Logistic" in out


WRONG = {
    "no such segment column": (("fit", "--segment", "lend"), "Did you mean 'land'?"),
    "segments of fractions": (("fit", "--segment", "s"), "words or whole numbers"),
    "shrinkage without segments": (("fit", "--shrinkage", "cv"), "--segment"),
    "a wrong shrinkage": (("fit", "--segment", "land", "--shrinkage", "much"), "shrinkage of"),
    "a report on segments": (("fit", "--segment", "land", "--report", "p.html"), "no report"),
    "an unknown engine": (("fit", "--engine", "oracle"), "engine must be duckdb or spark"),
    "a master without Spark": (("fit", "--master", "yarn"), "master is for Spark"),
    "segments that are labels": (("fit", "--segment", "y"), "before the outcome"),
    "raw with segments": (("evaluate", "--segment", "land", "--raw", "s"), "without --raw"),
}


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=WRONG)
def test_what_is_refused(run, days, words, said):
    command, *options = words
    columns = COLUMNS if command == "fit" else ("-p", "s", "-l", "y")
    code, out, err = run(command, days, *columns, *options)
    assert (code, out) == (2, "")
    assert said in err
    assert sorted(path.name for path in Path().iterdir()) == [f"day-{i}.parquet" for i in range(3)]


def test_a_missing_segment(run, days, tmp_path):
    run("fit", days, *COLUMNS, "--segment", "land", "--method", "platt", "--cv", "0")
    Path("new.csv").write_text("s,land\n0.5,1\n0.5,\n")
    code, _, err = run("apply", "calibrator.json", "new.csv", "-o", "out.csv")
    assert code == 2
    assert "segment column 'land' must be complete: 1 of 2 rows are missing" in err
    assert not Path("out.csv").exists()
    code, _, _ = run("apply", "calibrator.json", "new.csv", "-o", "out.csv", "--on-missing", "null")
    assert code == 0
    assert Path("out.csv").read_text().splitlines()[2] == "0.5,,"
    Path("holes.csv").write_text("s,land,y\n0.5,1,0\n0.6,,1\n")
    code, _, err = run("fit", "holes.csv", *COLUMNS, "--segment", "land")
    assert code == 2
    assert "segment column 'land' must be complete" in err


def test_a_calibrator_without_segments_refuses_their_column(run, days):
    run("fit", days, *COLUMNS, "--method", "platt", "--cv", "0")
    code, _, err = run("apply", "calibrator.json", days, "-o", "o.csv", "--segment", "land")
    assert code == 2
    assert "one map for all rows" in err


def test_evaluate_from_cells_is_that_of_rows(run, days, data):
    asked = ("-p", "s", "-l", "y", "--weight", "w", "--level", "0", "--json")
    _, out, _ = run("evaluate", days, *asked, "--cells", "256")
    found = json.loads(out)
    theirs = cal.evaluate(data["y"], data["s"], sample_weight=data["w"], level=None)
    assert found["rows"] == 6000
    for name, value in found["after"].items():
        bound = 1e-4 if name == "auc" else 1e-11
        assert value == pytest.approx(theirs.after[name], rel=bound), name
    assert any("auc is from cells" in note for note in found["notes"])


def test_evaluate_takes_raw_scores_beside(run, data):
    raw = 3.0 * np.log(data["s"] / (1.0 - data["s"])) + 1.0
    pq.write_table(pa.table({**data, "raw": raw}), "both.parquet")
    asked = ("-p", "s", "-l", "y", "--weight", "w", "--level", "0", "--json", "--raw", "raw")
    _, out, _ = run("evaluate", "both.parquet", *asked, "--cells", "256")
    found = json.loads(out)
    theirs = cal.evaluate(data["y"], data["s"], raw=raw, sample_weight=data["w"], level=None)
    assert found["rows"] == 6000
    assert found["raw_column"] == "raw"
    for name, value in found["before"].items():
        bound = 1e-4 if name == "auc" else 1e-11
        assert value == pytest.approx(theirs.before[name], rel=bound), name


@pytest.mark.parametrize("cells", ["auto", "64"])
@pytest.mark.parametrize("wrong", ["x", "", "inf"])
def test_a_wrong_raw_score_is_named(run, tmp_path, cells, wrong):
    lines = [f"{(i % 97) / 100},{i - 50},{i % 2}" for i in range(100)] + [f"0.5,{wrong},1"]
    (tmp_path / "s.csv").write_text("\n".join(["p,margin,y", *lines]) + "\n")
    asked = ("-p", "p", "-l", "y", "--raw", "margin", "--cells", cells)
    code, _, err = run("evaluate", "s.csv", *asked)
    assert code == 2
    assert "'margin'" in err
    assert "s.csv" in err


KEYS = {
    "truth values": [True, False, True],
    "words with blanks": ["de", "fr  ", " it"],
    "negative numbers": [-1, 0, 7],
    "whole decimals": [Decimal(1), Decimal(2), Decimal(30)],
}


@pytest.mark.full
@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_segments_are_the_same_in_every_kind_of_file(run, data, keys):
    column = pa.array([keys[i % 3] for i in range(6000)])
    y = data["y"] ^ (data["s"] < np.array([0.1, 0.5, 0.9])[np.arange(6000) % 3])
    table = pa.table({"s": data["s"], "y": y, "land": column})
    pq.write_table(table, "a.parquet")
    rows = table.to_pylist()
    words = {True: "true", False: "false"}
    texts = [str(words[k] if isinstance(k, bool) else k) for k in keys]
    lines = [f"{row['s']!r},{row['y']},{texts[i % 3]}" for i, row in enumerate(rows)]
    Path("b.csv").write_text("\n".join(["s,y,land", *lines]))
    with open("c.jsonl", "w") as stream:
        for row in rows:
            key = int(row["land"]) if isinstance(row["land"], Decimal) else row["land"]
            stream.write(json.dumps({**row, "land": key}) + "\n")
    files, found = ("a.parquet", "b.csv", "c.jsonl"), []
    for fitted_to in files:
        asked = ("--segment", "land", "--shrinkage", "0", "-m", "platt", "--cv", "0")
        code, _, err = run("fit", fitted_to, *COLUMNS, *asked)
        assert (code, err) == (0, "")
        for file in files:
            code, _, err = run("apply", "calibrator.json", file, "-o", "out.parquet")
            assert (code, err) == (0, "")
            found.append(pq.read_table("out.parquet")["probability"].to_numpy())
    apart = np.abs(found[0] - cal.load("calibrator.json").map.default(data["s"]))
    assert min(apart[i::3].mean() for i in range(3)) > 0.01  # nobody has the map of all rows
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_segments_that_differ_in_blanks_alone_stay_apart(run, data):
    land = np.array(["de", "de "])[np.arange(6000) % 2]
    pq.write_table(pa.table({"s": data["s"], "y": data["y"], "land": land}), "a.parquet")
    asked = ("--segment", "land", "--shrinkage", "0", "-m", "platt", "--cv", "0")
    run("fit", "a.parquet", *COLUMNS, *asked)
    run("apply", "calibrator.json", "a.parquet", "-o", "out.parquet")
    expected = cal.load("calibrator.json").calibrate(data["s"], segments=land)
    assert pq.read_table("out.parquet")["probability"].to_pylist() == expected.tolist()


def test_segments_of_the_wrong_type(run, data):
    days = pa.array([date(2020, 1, 1)] * 6000)
    huge = pa.array([Decimal(10) ** 30] * 6000)
    table = pa.table({"s": data["s"], "y": data["y"], "day": days, "huge": huge})
    pq.write_table(table, "a.parquet")
    code, _, err = run("fit", "a.parquet", *COLUMNS, "--segment", "day")
    assert code == 2
    assert "words or whole numbers, but its type is DATE" in err
    code, _, err = run("fit", "a.parquet", *COLUMNS, "--segment", "huge")
    assert code == 2
    assert "at most 64 bits" in err


def test_columns_that_differ_in_case_keep_their_names(run, days):
    run("fit", days, *COLUMNS, "--method", "platt", "--cv", "0")
    pq.write_table(pa.table([[0.1, 0.7], [0.5, 0.6]], names=["S", "s"]), "a.parquet")
    code, out, _ = run("apply", "calibrator.json", "a.parquet", "-o", "out.csv", "--json")
    assert code == 0
    assert json.loads(out)["rows"] == 2  # and not the header
    lines = Path("out.csv").read_text().splitlines()
    p = cal.load("calibrator.json").calibrate([0.5, 0.6]).tolist()
    assert lines == ["S,s,probability", f"0.1,0.5,{p[0]!r}", f"0.7,0.6,{p[1]!r}"]


@pytest.mark.parametrize("limit", ["-5GB", "lots", "1000", "GB"])
def test_wrong_memory_limits(run, days, limit):
    code, _, err = run("fit", days, *COLUMNS, f"--memory-limit={limit}")
    assert code == 2
    assert "--memory-limit must be a size such as" in err


def test_urls_are_for_spark(run, days):
    code, _, err = run("fit", "s3://bucket/a.parquet", *COLUMNS)
    assert code == 2
    assert "on this machine" in err
    assert "spark" in err
    run("fit", days, *COLUMNS, "--method", "platt", "--cv", "0")
    code, _, err = run("apply", "calibrator.json", days, "-o", "hdfs://host/o.csv")
    assert code == 2
    assert "on this machine" in err


def test_the_new_column_needs_a_name(run, days):
    run("fit", days, *COLUMNS, "--method", "platt", "--cv", "0")
    code, _, err = run("apply", "calibrator.json", days, "-o", "o.csv", "--into", " ")
    assert code == 2
    assert "into must be the name" in err


def test_files_that_are_broken(run, days):
    whole = Path("day-0.parquet").read_bytes()
    Path("half.parquet").write_bytes(whole[: len(whole) // 2])
    code, _, err = run("fit", "half.parquet", *COLUMNS)
    assert code == 2
    assert "half.parquet cannot be read as Parquet" in err
    assert "Is it whole" in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_no_space_left(run, days):
    run("fit", days, *COLUMNS, "--method", "platt", "--cv", "0")
    Path("o.csv").symlink_to("/dev/full")
    code, _, err = run("apply", "calibrator.json", days, "-o", "o.csv")
    assert code == 2
    assert "No space left on device: the output was not written. Free some" in err
