"""Everyday files on the command line: no columns named, pipes, commas, sheets, empty cells."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.cli.reading import ColumnLook, label_rank, probability_rank, score_rank
from sheets import write_xlsx

FAST = ("-m", "platt", "--cv", "0")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command line here: (exit code, stdout, stderr); ``stdin`` is what is piped in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)

    def go(*words: object, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert list(Path("temporary").iterdir()) == []
        return left.value.code or 0, out, err

    return go


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.random(n).round(6)
    return s, rng.random(n) < s**2


def columns_of(**columns) -> str:
    """CSV text."""
    lines = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, line)) for line in lines)]) + "\n"


@pytest.fixture
def text() -> str:
    s, y = rows()
    ids = [f"{i:06d}" for i in range(len(s))]
    months = [(i * 7) % 90 for i in range(len(s))]
    return columns_of(id=ids, months=months, score=s, churned=np.where(y, "yes", "no"))


# --- roles --------------------------------------------------------------------------------------

LINE = (
    "note: score = `score`, label = `churned` (yes/no, yes is positive); name others with --score, "
    "--label\n"
)


def test_the_roles_are_guessed_and_said_in_one_line(run, text):
    Path("plain.csv").write_text(text)
    code, _, err = run("fit", "plain.csv", *FAST)
    assert (code, err) == (0, LINE)
    guessed = cal.load("calibrator.json")
    assert run("fit", "plain.csv", "-s", "score", "-l", "churned", *FAST)[2] == ""
    assert cal.load("calibrator.json").map == guessed.map
    assert guessed.provenance["guessed"] == ("score", "label")
    for words in (("compare", "-m", "platt"), ("report", "-o", "r.html", "-m", "platt")):
        code, _, err = run(words[0], "plain.csv", *words[1:])
        assert (code, err) == (0, LINE)
    code, _, err = run("check", "plain.csv", "-r", "plain.csv")
    assert (code, err) == (0, LINE)
    code, _, err = run("fit", "plain.csv", "-s", "score", "--pos-label", "no", *FAST)
    assert err == "note: label = `churned` (no/yes, no is positive); name another with --label\n"


def test_machines_find_the_roles_in_the_document(run, text):
    Path("plain.csv").write_text(text)
    asked = {"fit": FAST, "compare": ("-m", "platt"), "report": ("-o", "r.html", "-m", "platt")}
    for name, words in asked.items():
        code, out, err = run(name, "plain.csv", *words, "--json")
        assert (code, err) == (0, "")
        document = json.loads(out)
        found = document.get("provenance", document)
        assert (found["score_column"], found["label_column"]) == ("score", "churned")
        assert found["guessed"] == ["score", "label"]


def test_probabilities_of_apply_come_before_scores(run, text):
    Path("plain.csv").write_text(text)
    run("fit", "plain.csv", *FAST)
    run("apply", "calibrator.json", "plain.csv", "-o", "new.csv")
    code, out, err = run("evaluate", "new.csv", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["score_column"] == "probability"
    line = LINE.replace("score = `score`", "prob = `probability`").replace("--score", "--prob")
    assert run("evaluate", "new.csv")[2] == line
    assert run("plot", "new.csv", "-o", "p.png", "--raw", "score")[2] == line
    assert run("evaluate", "new.csv", "--segment", "months")[2] == line
    code, out, err = run("fit", "new.csv", *FAST)
    assert (code, out) == (2, "")
    assert "The column of scores may be 'score' or 'probability': name it with --score COL." in err


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "xlsx"])
def test_other_kinds_of_files(run, kind):
    s, y = rows(60)
    if kind == "parquet":
        pq.write_table(pa.table({"p": s, "bought": y, "id": np.arange(60)}), "f.parquet")
    elif kind == "jsonl":
        pairs = zip(s.tolist(), y.tolist(), strict=True)
        Path("f.jsonl").write_text(
            "".join(
                json.dumps({"p": a, "bought": b, "id": i}) + "\n" for i, (a, b) in enumerate(pairs)
            )
        )
    else:
        cells = [["p", "bought", "id"], *zip(s.tolist(), y.tolist(), range(60), strict=True)]
        write_xlsx(Path("f.xlsx"), {"Sheet1": cells})
    code, _, err = run("fit", f"f.{kind}", *FAST)
    assert code == 0
    assert "score = `p`, label = `bought` (True/False, True is positive)" in err


def test_columns_of_any_type_are_looked_at(run):
    s, y = rows(40)
    others = {"tags": [["a"]] * 40, "day": [date(2026, 3, 1)] * 40, "of": [{"k": 1}] * 40}
    amounts = [Decimal(i) / 7 for i in range(40)]
    label = [Decimal(int(b)) for b in y]
    table = pa.table({"p": s, **others, "amount": amounts, "bought": label})
    pq.write_table(table, "f.parquet")
    code, _, err = run("fit", "f.parquet", *FAST)
    assert code == 0
    assert err.startswith("note: score = `p`, label = `bought` (1.0/0.0, 1.0 is positive)")


def look(name, *values, more=False):
    return ColumnLook(name, values, more)


def test_what_a_score_looks_like():
    many = (0.1, 0.5, 0.25)
    assert score_rank(look("score", 10, 20, 30)) == 4
    assert score_rank(look("P(churn)", *many)) == score_rank(look("modelScoreV2", *many)) == 3
    assert score_rank(look("x", *many)) == 2
    assert score_rank(look("x", -3.5, 2.25, 0.5)) == 1
    never = [look("months", 1, 2, 3), look("customer_id", *many), look("weight", *many)]
    words = [look("score", "a", "b", "c"), look("code", "007", "008", "009"), look("score", 0, 1)]
    assert [score_rank(one) for one in (*never, *words)] == [0] * 6
    assert score_rank(look("score", "0,5", "0,25", "1")) == 4
    assert probability_rank(look("score", "50%", "25%", "1%")) == 3
    assert probability_rank(look("score", 50, 25, 1)) == 0
    names = ("probability", "prob", "p_churn", "prob_churn", "score", "x")
    assert [probability_rank(look(name, *many)) for name in names] == [6, 5, 3, 4, 3, 2]


def test_what_a_label_looks_like():
    assert label_rank(look("y_true", 0, 1)) == label_rank(look("Target", "a", "b")) == 3
    assert label_rank(look("is_fraud", True, False)) == 2
    assert label_rank(look("smoker", "y", "n")) == 1
    never = [look("y_pred", 0, 1), look("sex", "m", "f"), look("y", 0, 1, 2), look("fold", 0, 1)]
    assert [label_rank(one) for one in never] == [0] * 4
    assert label_rank(look("label", 0, more=True)) == 3  # rows may be sorted by it
    assert label_rank(look("label", 0)) == 1  # one class: the reader says what that means
    assert label_rank(look("smoker", 0, more=True)) == 0


def many(**columns) -> str:
    s, y = rows(60)
    known = {"s": s, "y": y.astype(int), "n": np.arange(60), "t": np.arange(60) % 3}
    return columns_of(**{name: known[what] for name, what in columns.items()})


UNCLEAR = {
    "two scores": (many(p="s", score="s", y="y"), "The column of scores may be 'p' or 'score'"),
    "two labels": (many(p="s", label="y", target="y"), "of labels may be 'label' or 'target'"),
    "no score": (many(months="n", y="y"), "No column is surely that of the scores: name it with"),
    "no label": (many(score="s", kind="t"), "No column is surely that of the labels"),
    "only an id": (many(id="n", y="y"), "No column is surely that of the scores"),
    "neither": (many(a="n", b="n"), "that of the scores: name it with --score COL. No column"),
    "no header": ("".join(f"0.{i},{i % 2}\n" for i in range(99)), "the file needs a header line"),
    "no rows": ("score,label\n", "must hold rows of data, but only column names came"),
    "features": (
        columns_of(
            age=range(20, 80), bmi=[20 + i / 7 for i in range(60)], died=[i % 2 for i in range(60)]
        ),
        "No column is surely that of the scores",
    ),
}


@pytest.mark.parametrize(("text", "said"), UNCLEAR.values(), ids=UNCLEAR)
def test_rather_no_guess_than_a_wrong_one(run, text, said):
    Path("f.csv").write_text(text)
    code, out, err = run("fit", "f.csv", *FAST)
    assert (code, out) == (2, "")
    assert said in err
    assert not Path("calibrator.json").exists()


def test_a_wrong_cell_is_named_by_the_reader(run):
    Path("f.csv").write_text(many(score="s", y="y") + "abc,1\n")
    err = run("fit", "f.csv", *FAST)[2]
    assert err.startswith("note: score = `score`, label = `y`")
    assert "1 of 61 rows hold something else (first: 'abc' in data row 61" in err


def test_weights_are_never_guessed_and_columns_named_are_taken(run):
    Path("f.csv").write_text(many(p="s", score="s", weight="t", y="y"))
    code, _, err = run("fit", "f.csv", "-s", "p", *FAST)
    assert code == 0
    assert "label = `y` (1/0, 1 is positive); name another with --label" in err
    assert "weight_column" not in cal.load("calibrator.json").provenance


# --- pipes --------------------------------------------------------------------------------------


def test_standard_input_is_a_file(run, text):
    Path("plain.csv").write_text(text)
    code, out, err = run("fit", "-", "-o", "c.json", *FAST, stdin=text.encode())
    assert (code, err) == (0, LINE)
    assert "rows of stdin.csv" in out
    run("fit", "plain.csv", *FAST)
    assert cal.load("c.json").map == cal.load("calibrator.json").map
    run("apply", "c.json", "plain.csv", "-o", "new.csv")
    whole = Path("new.csv").read_bytes()
    code, out, err = run("apply", "c.json", "-", "-o", "-", stdin=text.encode())
    assert (code, out) == (0, whole.decode())
    assert err.startswith("200 rows written to standard output\n")
    figures = json.loads(run("evaluate", "new.csv", "--json")[1])
    piped = json.loads(run("evaluate", "-", "--json", stdin=whole)[1])
    assert piped.pop("files") == ["stdin.csv"]
    assert figures.pop("files") == ["new.csv"]
    assert piped == figures
    assert run("check", "-", "-c", "c.json", stdin=text.encode())[0] == 0


def test_a_calibrator_goes_to_standard_output(run, text):
    Path("plain.csv").write_text(text)
    run("fit", "plain.csv", *FAST)
    code, out, err = run("fit", "plain.csv", "-o", "-", *FAST, "--report", "r.html", "--cv", 2)
    assert code == 0
    Path("piped.json").write_text(out)
    assert cal.load("piped.json").map == cal.load("calibrator.json").map
    assert "Platt fitted to 200 rows" in err
    assert "calibrator  standard output" in err
    assert "calibrant apply CALIBRATOR.json NEW.csv" in err
    assert "calibrator.json" in Path("r.html").read_text()
    assert not Path("-").exists()
    code, out, err = run("fit", "plain.csv", "-o", "-", "--json", *FAST)
    assert (code, out) == (2, "")
    assert "--json and --output - would both write to standard output" in err


@pytest.mark.parametrize("kind", ["tsv", "jsonl", "parquet"])
def test_formats_of_standard_input_and_output(run, kind):
    s, y = rows(40)
    name = Path(f"f.{kind}")
    if kind == "parquet":
        pq.write_table(pa.table({"p": s, "y": y}), name)
    elif kind == "tsv":
        name.write_text(columns_of(p=s, y=y).replace(",", "\t"))
    else:
        pairs = zip(s.tolist(), y.tolist(), strict=True)
        name.write_text("".join(json.dumps({"p": a, "y": b}) + "\n" for a, b in pairs))
    content = name.read_bytes()
    assert run("fit", "-", "--format", kind, *FAST, stdin=content)[0] == 0
    run("apply", "calibrator.json", name, "-o", f"new.{kind}")
    pipe = ("apply", "calibrator.json", "-", "-o", "out", "--format", kind)
    assert run(*pipe[:4], "new2." + kind, *pipe[5:], stdin=content)[0] == 0
    assert Path(f"new2.{kind}").read_bytes() == Path(f"new.{kind}").read_bytes()
    if kind != "parquet":
        code, out, _ = run(*pipe[:4], "-", *pipe[5:], stdin=content)
        assert (code, out.encode()) == (0, Path(f"new.{kind}").read_bytes())
    code, out, err = run("fit", "-", "--format", "xml", *FAST, stdin=content)
    assert (code, out) == (2, "")
    assert "format must be csv or tsv" in err


def test_the_first_bytes_tell_what_no_one_said(run, text):
    import gzip

    s, y = rows(40)
    held = io.BytesIO()
    pq.write_table(pa.table({"p": s, "y": y}), held)
    assert run("fit", "-", *FAST, stdin=held.getvalue())[0] == 0
    assert run("fit", "-", *FAST, stdin=gzip.compress(text.encode()))[0] == 0
    write_xlsx(Path("f.xlsx"), {"a": [["p", "y"], *zip(s.tolist(), y.tolist(), strict=True)]})
    assert run("fit", "-", *FAST, stdin=Path("f.xlsx").read_bytes())[0] == 0
    code, out, err = run("fit", "-", *FAST)
    assert (code, out) == (2, "")
    assert "standard input is empty" in err


def test_standard_output_is_whole_or_empty(run, text):
    Path("plain.csv").write_text(text)
    run("fit", "plain.csv", *FAST)
    code, out, err = run(
        "apply", "calibrator.json", "-", "-o", "-", stdin=text.encode() + b"x,1,abc,no\n"
    )
    assert (code, out) == (2, "")
    assert "'abc' in data row 201 of stdin.csv" in err


def shell(command: str, folder: Path, **options) -> subprocess.CompletedProcess[str]:
    ours = f"{shlex.quote(sys.executable)} -m calibrant.cli"
    return subprocess.run(
        command.replace("calibrant ", f"{ours} "),
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
@pytest.mark.full
def test_a_pipe_from_fit_to_evaluate(tmp_path, text):
    (tmp_path / "s.csv").write_text(text)
    done = shell("calibrant fit - -o - -m platt --cv 0 < s.csv > c.json 2> words.txt", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert cal.load(tmp_path / "c.json").method == "Platt"
    pipe = "cat s.csv | calibrant apply c.json - -o - | calibrant evaluate - --json"
    done = shell(pipe, tmp_path)
    assert json.loads(done.stdout)["rows"] == 200
    (tmp_path / "long.csv").write_text(text + "".join(text.splitlines(True)[1:] * 300))
    pipe = "calibrant apply c.json long.csv -o - 2> words.txt; echo $? > code.txt"
    done = shell(f"({pipe}) | head -1", tmp_path)
    assert (tmp_path / "code.txt").read_text() == "141\n"
    assert done.stdout == "id,months,score,churned,probability\n"
    assert done.stderr == ""
    assert "Error" not in (tmp_path / "words.txt").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.full
def test_a_signal_removes_the_copy_of_standard_input(tmp_path, stop, code):
    (tmp_path / "spill").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "calibrant.cli", "fit", "-", "-s", "p", "-l", "y"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "spill")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b"p,y\n" + b"0.5,1\n" * 100_000)
    process.stdin.flush()
    while process.poll() is None and not list(tmp_path.glob("spill/*/stdin")):
        time.sleep(0.01)
    (held,) = tmp_path.glob("spill/*/stdin")
    assert held.stat().st_mode & 0o077 == 0
    process.send_signal(stop)
    process.wait(timeout=60)
    assert process.returncode == code
    assert list((tmp_path / "spill").iterdir()) == []
    process.communicate()


# --- numbers and empty cells --------------------------------------------------------------------


def test_a_file_of_a_european_spreadsheet(run):
    s, y = rows(60)
    lines = (
        f"{str(a).replace('.', ',')};{'ja' if b else 'nein'}" for a, b in zip(s, y, strict=True)
    )
    Path("de.csv").write_text("Score;churned\r\n" + "\r\n".join(lines) + "\r\n?;ja\r\n", newline="")
    code, out, err = run("fit", "de.csv", *FAST)
    assert (code, out) == (2, "")
    assert "must be complete: 1 of 61 rows are missing (first: '?' in data row 61" in err
    assert "--missing drop" in err
    code, out, err = run("fit", "de.csv", "--missing", "drop", "--pos-label", "ja", *FAST)
    assert code == 0
    notes = [line.removeprefix("note: ") for line in err.splitlines()]
    assert notes[0].startswith("score = `Score`, label = `churned` (ja/nein, ja is positive)")
    assert "(column 'Score') are written with a decimal comma" in notes[1]
    assert notes[2] == "1 of 61 rows was dropped: no score or no label there"
    code, out, err = run("fit", "de.csv", "--missing", "drop", "--json", *FAST)
    assert (code, err) == (0, "")
    found = json.loads(out)["provenance"]
    assert (found["rows"], found["rows_dropped"]) == (60, 1)
    assert found["numbers_written"] == ["'Score' with a decimal comma"]
    shown = run("show", "calibrator.json")[1]
    assert re.search("rows without a value, dropped +1\n", shown)
    code, out, err = run(
        "apply", "calibrator.json", "de.csv", "-o", "o.csv", "--on-missing", "null"
    )
    assert code == 0
    assert "decimal comma" in err
    assert Path("o.csv").read_text().splitlines()[-1] == "?;ja;"
    _, out, _ = run(
        "apply", "calibrator.json", "de.csv", "-o", "o.csv", "--on-missing", "null", "--json"
    )
    assert "decimal comma" in json.loads(out)["notes"][0]


def test_what_has_two_meanings_names_the_option(run):
    Path("f.csv").write_text('score,y\n"1,234",0\n"2,345",1\n"3,456",1\n"1,500",0\n')
    code, out, err = run("fit", "f.csv", *FAST)
    assert (code, out) == (2, "")
    assert "'1,234' is 1234.0 with a decimal point, and 1.234 with a decimal comma" in err
    assert "--decimal . or --decimal ," in err
    assert run("fit", "f.csv", "--decimal", ",", *FAST)[0] == 0
    code, _, err = run("fit", "f.csv", "--decimal", ";", *FAST)
    assert code == 2


def test_rows_before_and_after_are_the_same(run, monkeypatch):
    """A row that lacks one of two scores is in neither diagram."""
    from calibrant.cli import jobs

    text = columns_of(p=["0.1", "0.4", "", "0.9"], raw=["1", "", "3", "4"], y=[0, 1, 0, 1])
    Path("f.csv").write_text(text)
    seen = []
    monkeypatch.setattr(
        jobs, "draw", lambda read, **_: seen.extend([read.data, read.before]) or b""
    )
    code, _, err = run("plot", "f.csv", "--raw", "raw", "--missing", "drop", "-o", "p.png")
    assert code == 0
    assert "2 of 4 rows were dropped: no probability or no score or no label there" in err
    assert [table.scores.tolist() for table in seen] == [[0.1, 0.9], [1.0, 4.0]]


def test_spark_reads_plain_files_alone(run):
    Path("f.csv").write_text(many(p="s", y="y"))
    run("fit", "f.csv", *FAST)
    spark = ("--engine", "spark")
    assert "Spark writes a folder" in run("apply", "calibrator.json", "f.csv", "-o", "-", *spark)[2]
    for words in (("--decimal", ","), ("--missing", "drop")):
        code, out, err = run("fit", "f.csv", "--engine", "spark", *words, *FAST)
        assert (code, out) == (2, "")
        assert "use the engine duckdb" in err


def test_misspelt_methods_and_words_of_scikit_learn(run):
    Path("f.csv").write_text(many(p="s", y="y"))
    assert "Did you mean 'isotonic'?" in run("fit", "f.csv", "-m", "isotnic")[2]
    assert "Did you mean 'isotonic'?" in run("compare", "f.csv", "-m", "isotnic")[2]
    assert run("fit", "f.csv", "-m", "sigmoid", "--cv", "0")[0] == 0
    assert cal.load("calibrator.json").method == "Platt"
    histogram = ("fit", "f.csv", "-m", "histogram", "--param")
    assert (
        "Scikit-learn's n_bins is called bins here: write bins=5." in run(*histogram, "n_bins=5")[2]
    )
    assert "write binning='mass'" in run(*histogram, "strategy=quantile")[2]


# --- which word is positive ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (("ja", "nein"), "ja/nein, ja is positive"),
        (("Oui", "Non"), "Oui/Non, Oui is positive"),
        (("sí", "no"), "sí/no, sí is positive"),
        (("j", "n"), "j/n, j is positive"),
        (("да", "нет"), "да/нет, да is positive"),
        (("bad", "good"), "good/bad, good is taken as positive; if bad is, add --pos-label bad"),
        (("case", "control"), "control/case, control is taken as positive; if case is, add"),
    ],
)
def test_the_yes_of_a_pair_of_words_is_positive(run, pair, said):
    s, y = rows()
    labels = [pair[0] if b else pair[1] for b in y]
    Path("w.csv").write_text(columns_of(score=s, churned=labels), encoding="utf-8")
    for words in ((), ("-s", "score", "-l", "churned")):
        code, out, err = run("fit", "w.csv", *words, *FAST)
        assert code == 0
        if words and pair[0] in ("Oui", "sí"):
            assert "positive" not in err  # as in English: nothing to add
        else:
            assert f"label = `churned` ({said}" in err
        assert out.startswith("These scores run the wrong way") == (pair[0] in ("bad", "case"))
    code, _, err = run("evaluate", "w.csv", "-p", "score", "-l", "churned", "--json")
    assert code == 0
    assert not err
