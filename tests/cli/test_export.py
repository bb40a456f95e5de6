"""The command that writes calibrators for other systems: targets evaluated, bad wishes refused."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import onnxruntime as ort
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.maps import Piecewise


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


@pytest.fixture
def scores():
    return np.linspace(0.0, 1.0, 41)


@pytest.fixture
def fitted(tmp_path):
    """A calibrator in calibrator.json, of steps."""
    rng = np.random.default_rng(0)
    s = rng.random(300)
    c = cal.Isotonic().fit(s, np.where(rng.random(300) < s**2, "good", "bad"))
    cal.save(c, tmp_path / "calibrator.json")
    return c


def test_sql_is_printed_and_runs(run, fitted, scores):
    code, out, err = run("export", "calibrator.json", "--to", "sql", "--dialect", "sqlite")
    assert (code, err) == (0, "")
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE t (score REAL)")
        database.executemany("INSERT INTO t VALUES (?)", [(s,) for s in scores.tolist()])
        found = [p for (p,) in database.execute(f"SELECT {out} FROM t ORDER BY rowid")]
    assert found == fitted.calibrate(scores).tolist()


def test_a_lookup_is_a_file_of_statements(run, fitted, scores, tmp_path):
    wanted = ("--dialect", "sqlite", "--form", "lookup", "--table", "rows", "--into", "p")
    code, out, _ = run(
        "export", "calibrator.json", "--to", "sql", *wanted, "-o", "l.sql", "-s", "x"
    )
    assert code == 0
    assert out == "calibrator.json written as sql to l.sql\n"
    script = (tmp_path / "l.sql").read_text()
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE rows (x REAL)")
        database.executemany("INSERT INTO rows VALUES (?)", [(s,) for s in scores.tolist()])
        made, query = script.rsplit(";\n", 2)[0], script.rstrip().rstrip(";").rsplit(";\n", 1)[1]
        database.executescript(made + ";")
        found = dict(database.execute(query).fetchall())
    assert list(map(found.get, scores.tolist())) == fitted.calibrate(scores).tolist()


@pytest.mark.parametrize("form", ["expression", "lookup"])
def test_a_view_holds_the_rows_and_their_probabilities(run, fitted, scores, tmp_path, form):
    wanted = ("--dialect", "sqlite", "--form", form, "--table", "rows", "--view", "calibrated")
    code, _, _ = run("export", "calibrator.json", "--to", "sql", *wanted, "-o", "v.sql")
    assert code == 0
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE rows (score REAL)")
        database.executemany("INSERT INTO rows VALUES (?)", [(s,) for s in scores.tolist()])
        database.executescript((tmp_path / "v.sql").read_text())
        found = dict(database.execute("SELECT score, probability FROM calibrated").fetchall())
    assert list(map(found.get, scores.tolist())) == fitted.calibrate(scores).tolist()


def test_a_view_is_for_sql_only(run, fitted):
    code, _, err = run("export", "calibrator.json", "--to", "python", "--view", "v")
    assert code == 2
    assert "--view is for sql, but the target is python" in err


def test_python_is_a_module(run, fitted, scores, tmp_path):
    code, _, _ = run("export", "calibrator.json", "--to", "python", "--name", "risk", "-o", "r.py")
    assert code == 0
    module: dict[str, object] = {}
    exec((tmp_path / "r.py").read_text(), module)
    assert [module["risk"](s) for s in scores.tolist()] == fitted.calibrate(scores).tolist()


def test_json_is_the_file_itself(run, fitted, tmp_path):
    code, _, _ = run("export", "calibrator.json", "--to", "json", "-o", "copy.json")
    assert code == 0
    assert (tmp_path / "copy.json").read_bytes() == (tmp_path / "calibrator.json").read_bytes()


def test_onnx_runs(run, fitted, scores, tmp_path):
    code, out, _ = run("export", "calibrator.json", "--to", "onnx", "-o", "c.onnx", "--json")
    assert code == 0
    size = (tmp_path / "c.onnx").stat().st_size
    assert json.loads(out) == {"output": "c.onnx", "to": "onnx", "bytes": size}
    session = ort.InferenceSession(tmp_path / "c.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: scores})
    assert found.tolist() == fitted.calibrate(scores).tolist()
    code, _, _ = run("export", "calibrator.json", "--to", "onnx", "-o", "f.onnx", "--float", "32")
    assert code == 0
    kind = ort.InferenceSession(tmp_path / "f.onnx").get_inputs()[0].type
    assert kind == "tensor(float)"


def test_a_model_and_its_calibrator_in_one_file(run, tmp_path):
    from skl2onnx import to_onnx
    from sklearn.naive_bayes import GaussianNB

    rng = np.random.default_rng(1)
    x = (rng.normal(size=(400, 3)) + rng.normal(size=(400, 1))).astype(np.float32)
    y = (x[:, 0] + rng.normal(size=400) > 0).astype(int)
    model = GaussianNB().fit(x, y)
    c = cal.Platt().fit(model.predict_proba(x), y)
    cal.save(c, tmp_path / "c.json")
    onnx = to_onnx(model, x[:1], options={"zipmap": False})
    (tmp_path / "model.onnx").write_bytes(onnx.SerializeToString())
    code, _, err = run(
        "export", "c.json", "--to", "onnx", "--model", "model.onnx", "-o", "both.onnx"
    )
    assert (code, err) == (0, "")
    session = ort.InferenceSession(tmp_path / "both.onnx")
    outputs = [one.name for one in session.get_outputs()]
    found = dict(zip(outputs, session.run(None, {session.get_inputs()[0].name: x}), strict=True))
    probabilities = next(value for value in found.values() if value.ndim == 2)
    assert probabilities == pytest.approx(c.predict_proba(model.predict_proba(x)), abs=2e-5)


def test_a_net_of_logits_under_a_calibrator_of_probabilities(run, tmp_path):
    import onnx

    net = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 15]>
        net (float[n, 1] x) => (float[n, 1] logit) { logit = Neg(x) }
    """)
    onnx.save(net, tmp_path / "net.onnx")
    c = cal.Temperature().fit([0.1, 0.4, 0.6, 0.9] * 9, [0, 1, 0, 1] * 9)
    cal.save(c, tmp_path / "c.json")
    words = ("--model", "net.onnx", "--input", "logit", "--float", "64", "-o", "both.onnx")
    assert run("export", "c.json", "--to", "onnx", *words)[0] == 0
    x = np.linspace(-4, 4, 9, dtype=np.float32)
    (found,) = ort.InferenceSession(tmp_path / "both.onnx").run(None, {"x": x[:, None]})
    want = c.predict_proba(1.0 / (1.0 + np.exp(x.astype(float))))
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-7)


def test_no_letter_is_printed_as_another(run, tmp_path, monkeypatch):
    c = cal.Isotonic().fit(np.arange(200) / 200, np.where(np.arange(200) < 99, "Été", "né"))
    cal.save(c, tmp_path / "c.json")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    code = [sys.executable, "-m", "calibrant.cli", "export", "c.json", "--to", "json"]
    done = subprocess.run(code, capture_output=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"printed in ascii here, which does not have" in b" ".join(done.stderr.split())
    assert run("export", "c.json", "--to", "json", "-o", "d.json")[0] == 0
    assert cal.load(tmp_path / "d.json").classes == ("né", "Été")


def test_segments_and_columns_are_those_of_the_fit(run, tmp_path):
    lines = ["id,margin,land,y"]
    rng = np.random.default_rng(2)
    for i in range(600):
        s, land = rng.normal(), rng.choice(["fr", "o'de"])
        lines.append(f"{i},{s},{land},{int(rng.random() < 1 / (1 + np.exp(-s)))}")
    (tmp_path / "s.csv").write_text("\n".join(lines) + "\n")
    columns = ("-s", "margin", "-l", "y", "--segment", "land")
    assert run("fit", "s.csv", *columns, "-m", "platt", "--cv", "2", "-o", "c.json")[0] == 0
    code, out, _ = run("export", "c.json", "--to", "sql", "--dialect", "sqlite")
    assert code == 0
    assert "margin" in out
    assert "land" in out
    code, out, _ = run("export", "c.json", "--to", "sql", "--segment", "country", "-s", "z")
    assert code == 0
    assert "margin" not in out
    assert "country" in out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--to", "pmml"), "--to must be one of sql, onnx, python, json"),
        (("--to", "sql", "--dialect", "oracle"), "one of duckdb, sqlite, spark"),
        (("--to", "sql", "--form", "table"), "form must be"),
        (("--to", "sql", "--float", "32"), "--float is for onnx, but the target is sql"),
        (("--to", "python", "-s", "x"), "--score is for sql"),
        (("--to", "onnx"), "name a file with --output"),
        (("--to", "sql", "--json"), "name a file with --output"),
        (("--to", "onnx", "-o", "x", "--model", "none.onnx"), "none.onnx"),
        (("--to", "onnx", "-o", "x", "--float", "16"), "float must be"),
        (("--to", "python", "--name", "for"), "name must be"),
        (("--to", "sql", "-s", "a", "-s", "b"), "one column of scores"),
        (("--to", "sql", "--segment", "land"), "--segment is for calibrators with a map for each"),
        (("--to", "python", "-o", "calibrator.json"), "another file than calibrator.json"),
        (("--to", "onnx", "-o", "m.onnx", "--model", "./m.onnx"), "another file than m.onnx"),
        (("--to", "onnx", "-o", "x", "--model", "calibrator.json"), "must be an ONNX model"),
        (("--to", "sql", "-o", "no/where.sql"), "does not exist"),
    ],
)
def test_bad_wishes_are_refused_and_nothing_is_written(run, fitted, tmp_path, words, reason):
    code, out, err = run("export", "calibrator.json", *words)
    assert (code, out) == (2, "")
    assert reason in " ".join(err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["calibrator.json"]


def test_what_needs_rows_says_why(run, tmp_path):
    rng = np.random.default_rng(0)
    features, s = rng.normal(size=(60, 2)), rng.random(60)
    c = cal.SimilarityBinning(gate=False, k=5).fit(s, rng.random(60) < s, features=features)
    cal.save(c, tmp_path / "c.json")
    code, _, err = run("export", "c.json", "--to", "python")
    assert code == 2
    assert "needs more of each row than its score" in " ".join(err.split())


def test_several_classes_name_their_columns(run, tmp_path):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(90, 3))
    cal.save(cal.Temperature().fit(z, rng.integers(0, 3, 90)), tmp_path / "t.json")
    code, _, err = run("export", "t.json", "--to", "sql", "-s", "a")
    assert code == 2
    assert "reads 3 columns of scores, but 1 was named" in " ".join(err.split())
    code, out, _ = run("export", "t.json", "--to", "sql", "-s", "a", "-s", "b", "-s", "c")
    assert code == 0
    assert out.count("probability_") >= 3
    wanted = ("-s", "a", "-s", "b", "-s", "c", "--keep", "customer")
    assert "customer" in run("export", "t.json", "--to", "sql", *wanted)[1]


def test_the_file_before_stays_if_the_export_fails(run, fitted, tmp_path):
    (tmp_path / "old.sql").write_text("kept")
    assert run("export", "calibrator.json", "--to", "sql", "--form", "x", "-o", "old.sql")[0] == 2
    assert (tmp_path / "old.sql").read_text() == "kept"


def test_a_prior_moved_is_exported_like_any_other(run, fitted, scores, tmp_path):
    moved = cal.adjust_prior(fitted, target_rate=0.1)
    cal.save(moved, tmp_path / "moved.json")
    code, out, _ = run("export", "moved.json", "--to", "python")
    module: dict[str, object] = {}
    exec(out, module)
    assert code == 0
    found = [module["calibrate"](s) for s in scores.tolist()]
    assert found == pytest.approx(moved.calibrate(scores).tolist(), abs=1e-15)
    assert isinstance(moved.map, Piecewise)


def test_a_threshold_writes_the_decision(run, fitted, scores):
    wanted = (fitted.calibrate(scores) >= 0.3).astype(int).tolist()
    asked = ("export", "calibrator.json", "--threshold", 0.3)
    code, out, err = run(*asked, "--to", "sql", "--dialect", "sqlite")
    assert (code, err) == (0, "")
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE t (score REAL)")
        database.executemany("INSERT INTO t VALUES (?)", [(s,) for s in scores.tolist()])
        assert [d for (d,) in database.execute(f"SELECT {out} FROM t ORDER BY rowid")] == wanted
    code, out, _ = run(*asked, "--to", "python")
    module = {}
    exec(out, module)
    assert [module["decide"](s) for s in scores.tolist()] == wanted
    code, _, err = run(*asked, "--to", "onnx", "-o", "c.onnx")
    assert code == 2
    assert "--threshold is for sql and python" in err
    code, _, err = run("export", "calibrator.json", "--to", "sql", "--threshold", 5)
    assert code == 2
    assert "threshold must be in [0, 1]" in err


def test_two_calibrators_of_one_database_keep_their_own_values(run, scores, tmp_path):
    rng = np.random.default_rng(0)
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE scores (score REAL)")
        database.executemany("INSERT INTO scores VALUES (?)", [(s,) for s in scores.tolist()])
        wanted = {}
        for name, power in (("a", 0.5), ("b", 3.0)):
            s = rng.random(300)
            c = cal.Isotonic().fit(s, rng.random(300) < s**power)
            cal.save(c, tmp_path / f"{name}.json")
            wanted[name] = c.calibrate(scores).tolist()
            to = ("--to", "sql", "--dialect", "sqlite", "--form", "lookup", "--view", f"p_{name}")
            assert run("export", f"{name}.json", *to, "-o", f"{name}.sql")[0] == 0
            database.executescript((tmp_path / f"{name}.sql").read_text())
        for name, values in wanted.items():
            found = database.execute(f"SELECT probability FROM p_{name} ORDER BY score").fetchall()
            assert [p for (p,) in found] == values
