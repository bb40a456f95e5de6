"""Spark: a quiet session, files by its own readers and writers, and the same numbers."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from decimal import Decimal
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.data.score_table import ScoreTable
from calibrant.data.segments import NewSegments
from calibrant.engines import spark_files
from calibrant.engines.open_engine import Engine
from calibrant.engines.spark import (
    Spark,
    _refuse_absent_cluster,
    require_java,
    reworded,
    why_not_started,
)
from calibrant.engines.spark_files import read_files, write_files
from calibrant.errors import InputError, MissingExtraError, ParameterError
from calibrant.fitting.fitted import Fitted
from calibrant.losses import sigmoid
from calibrant.maps import Chain, Coded, Logistic, Mixture, Piecewise, Segmented, Softmax
from file_jobs import apply_file, read_table
from sparks import needs_spark, rows, to_spark

pytestmark = [needs_spark, pytest.mark.xdist_group("spark")]

STEP = Fitted(Piecewise.step([0.5], [0.25, 0.75]), (0, 1), 1)
#: for jobs of a few rows: compiling would take longer than they do
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="module")
def seen():
    return []


@pytest.fixture(scope="module")
def spark(seen):
    with Spark(threads=2, memory="1GB", progress=seen.append, config=SMALL) as started:
        yield started


@pytest.fixture
def nobody(monkeypatch):
    """No session is active, for all that one can tell."""
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: None))


def make(folder: Path, text: str | bytes, name: str = "s.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@contextmanager
def interrupted(seconds):
    """Ctrl-C a little later, which must end what is done here."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.cancel()
        timer.join()


# --- the session --------------------------------------------------------------------------------

QUIET = """
import os, signal, sys, threading, warnings
sys.path.insert(0, sys.argv[1])
from sparks import children
warnings.simplefilter("default")  # to stderr; PySpark swallows some that are errors
warnings.filterwarnings("ignore", "unclosed file")  # PySpark's pipe to a JVM that did not start
from calibrant.engines.spark import Spark
from calibrant.errors import InputError
fast = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
before = signal.getsignal(signal.SIGINT)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    Spark(threads=1, config=fast)
    raise AssertionError("Ctrl-C was lost")
except KeyboardInterrupt:
    assert not children(os.getpid()), children(os.getpid())
try:
    Spark(threads=1, memory="9999999TB")
except InputError as wrong:
    said = str(wrong)
assert "could not be started as local[1]" in said and "heap" in said, said
assert len(said.splitlines()) == 1
with Spark(threads=1, memory="600MB", config=fast) as spark:
    assert spark.started
    heap = spark.session._jvm.java.lang.Runtime.getRuntime().maxMemory() / 2**20
    assert 550 < heap <= 600, heap
    process = spark._gateway.proc
    assert spark.call(spark.session.range(5).count) == 5
    try:
        spark.call(spark.session.sql("SELECT CAST('x' AS INT)").collect)
    except InputError as wrong:
        said = str(wrong)
    assert "CAST_INVALID_INPUT" in said, said
    assert os.listdir(os.environ["TMPDIR"])
assert process.poll() is not None
assert signal.getsignal(signal.SIGINT) is before
assert not os.listdir(os.environ["TMPDIR"]), os.listdir(os.environ["TMPDIR"])
"""


def test_a_session_is_quiet_and_leaves_nothing(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path / "t")}
    (tmp_path / "t").mkdir()
    (tmp_path / "here").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", QUIET, str(Path(__file__).parents[1])],
        capture_output=True, text=True, env=environment, cwd=tmp_path / "here", check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list((tmp_path / "here").iterdir())


def test_an_active_session_is_used_and_left_open(spark):
    with Spark("spark://ignored:7077") as other:
        assert other.session is spark.session
        assert not other.started
    assert spark.call(spark.session.range(3).count) == 3


def test_progress_rises_from_0_to_1(spark, seen):
    seen.clear()
    slow = spark.session.range(0, 10, 1, 10).filter(
        "reflect('java.lang.Thread', 'sleep', 200L) > ''"
    )
    assert spark.call(slow.count) == 10
    assert seen == sorted(seen)
    assert all(0.0 <= done <= 1.0 for done in seen)
    assert any(0.0 < done < 1.0 for done in seen)


def test_an_interrupt_ends_the_job_and_not_the_session(spark):
    endless = spark.session.range(0, 10**14, 1, 8).selectExpr("sum(sqrt(id))")
    with interrupted(1.0):
        spark.call(endless.collect)
    tracker = spark.session.sparkContext.statusTracker()
    deadline = time.monotonic() + 30.0
    while tracker.getActiveStageIds() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not tracker.getActiveStageIds()
    assert spark.call(spark.session.range(3).count) == 3


def test_mistakes_of_the_program_stay_loud(spark):
    with pytest.raises(Exception, match="nowhere") as wrong:
        spark.call(lambda: spark.session.range(3).select("nowhere"))
    assert type(wrong.value).__name__ == "AnalysisException"
    with pytest.raises(ZeroDivisionError):
        spark.call(lambda: 1 // 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"master": "sc://host"}, "master must be local"),
        ({"threads": 0}, "threads must be a whole number"),
        ({"threads": True}, "threads must be a whole number"),
        ({"master": "yarn", "threads": 2}, "left out with the master yarn"),
        ({"memory": "much"}, "memory must be a size"),
        ({"memory": "100MB"}, "at least 512MB"),
    ],
)
def test_bad_options_are_refused_before_anything_starts(nobody, options, said):
    with pytest.raises(ParameterError, match=said):
        Spark(**options)


def test_a_cluster_that_is_not_there(nobody):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        _refuse_absent_cluster(f"spark://nowhere.invalid:7077,127.0.0.1:{port}")
    with pytest.raises(InputError, match=f"no Spark cluster answers at spark://127.0.0.1:{port}"):
        Spark(f"spark://127.0.0.1:{port}")
    for other in ("local[2]", "yarn", "k8s://https://nowhere.invalid:443"):
        _refuse_absent_cluster(other)


def test_without_java_or_pyspark_it_says_so(nobody, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingExtraError, match=r"no java in JAVA_HOME.*duckdb"):
        Spark()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match="no java in the PATH"):
        require_java()
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'calibrant\[spark\]'"):
        Spark()


def test_why_there_is_no_session(tmp_path):
    log = make(tmp_path, "java.lang.UnsupportedClassVersionError: x\n", "log.txt")
    assert "Java 17" in why_not_started(RuntimeError("x"), log, "local[*]")
    log = make(tmp_path, "WARN: Failed to connect to master\n", "log.txt")
    said = why_not_started(RuntimeError("x"), log, "spark://h:7077")
    assert said.startswith("no Spark cluster answers at spark://h:7077")
    assert "x" in why_not_started(RuntimeError("x"), tmp_path / "none", "local[*]")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Task failed: java.io.IOException: No space left on device", "No space left on device"),
        ("java.lang.OutOfMemoryError: Java heap space", "more memory"),
        ("ExecutorLostFailure (executor 1 exited", "lost the processes"),
        ("Call From here to there:8020 failed on connection", "nothing answers at there:8020"),
        ("An error occurred while calling o1.x.\n: a.b.CException: odd", "do the work: odd"),
    ],
)
def test_words_for_what_spark_says(message, said):
    from py4j.protocol import Py4JError

    assert said in (reworded(Py4JError(message)) or "")
    assert reworded(ValueError(message)) is None


# --- files, by Spark's own readers --------------------------------------------------------------


def collected(spark, files, *columns):
    frame = read_files(spark, files)
    return sorted(map(tuple, spark.call(frame.select(*columns).collect)), key=str)


def test_fields_of_csv_files_are_text_and_quotes_are_doubled(spark, tmp_path):
    path = make(tmp_path, 'id,p,"a.b"\n007, 0.25 ,"a, ""q""\nnew"\n1e3,,\n')
    assert read_files(spark, [path]).columns == ["id", "p", "a.b"]
    assert collected(spark, [path], "id", "p", "`a.b`") == [
        ("007", "0.25", 'a, "q"\nnew'),
        ("1e3", None, None),
    ]
    assert collected(spark, [make(tmp_path, "a\tb\n1\t2,3\n", "t.tsv")], "b") == [("2,3",)]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_folders_patterns_and_urls(spark, tmp_path, kind):
    top = tmp_path / f"t.{kind}"
    for land in ("de", "fr"):
        (top / f"land={land}").mkdir(parents=True)
        path = make(top / f"land={land}", '{"p":0.5}\n', f"x.{kind}")
        if kind == "parquet":
            pq.write_table(pa.table({"p": [0.5]}), path)
    for given in (top, f"{top.as_uri()}", f"file:{top}"):
        assert collected(spark, [given], "p", "land") == [(0.5, "de"), (0.5, "fr")]
    assert collected(spark, [top / "land=*" / f"?.{kind}"], "p") == [(0.5,), (0.5,)]
    odd = tmp_path / f"sp [a]{{b}},c %20#*.{kind}"
    odd.write_bytes(path.read_bytes())
    make(tmp_path, "", f"sp ab.{kind}")
    assert collected(spark, [odd], "p") == [(0.5,)]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", b"s,y\n0.5,0\n0.5,1,2\n", r"a\.csv: a line has more or fewer fields .*0\.5,1,2"),
        ("a.csv", b's,y\n0.5,0\n"' + b"0.5,1\n" * 200_000, "a million char|fewer fields"),
        ("a.csv", b"s,y\n0.5,0\nabc,1\n", "numbers must be there, but 'abc' came.*engine duckdb"),
        ("a.csv", b"s,y\n0.5,0\n50%,1\n", "numbers must be there, but '50%' came.*no %"),
        ("a.csv", b"s,y\n0.5,0\n,1\n", "score column 's' must be finite: 1 of 2 is missing"),
        ("a.csv", b"s,y\n0.5,0\ninf,1\n", "1 of 2 is infinite"),
        ("a.csv", b"s,y\n0.5,0\n0.5,1\n0.5,\n", "label column 'y' must be complete: 1 of 3"),
        ("a.csv", b"s,y\n0.5,0\n0.5,1\n0.5,2\n", "two classes, but at least 3"),
        ("a.csv", b"s,y\n", "at least one row"),
        ("a.csv", b"s,y\n0.5,0.3\n0.5,1\n", "soft labels"),
        ("a.csv", b"z,y\n0.5,0\n", "no column 's'"),
        ("_a.csv", b"s,y\n0.5,0\n", "passes over names that begin with _"),
        ("a.jsonl", b'{"s":0.2}\n{"s":\n', "holds a line that is no JSON"),
        ("a.json", b'[{"s":0.2},\n{"s":0.3}]', "holds a line that is no JSON"),
        ("a.jsonl", b'{"s":{"a":1},"y":1}\n', "score column 's' must be numbers, but its type is"),
        ("a.parquet", b"PAR0", "not a Parquet file"),
        ("a.xlsx", b"PK", "the engine duckdb alone reads"),
        ("a.doc", b"", "must end in one of"),
    ],
)
def test_what_spark_cannot_read_is_said_in_words(spark, tmp_path, name, text, said):
    with pytest.raises(InputError, match=said):
        read_table([make(tmp_path, text, name)], score="s", label="y", session=spark)


def test_missing_and_mixed_files(spark, tmp_path):
    for nothing in (tmp_path / "none.csv", f"{tmp_path.as_uri()}/none*.parquet"):
        with pytest.raises(InputError, match=r"there is no file .*none"):
            read_files(spark, [nothing])
    with pytest.raises(InputError, match="at least one data file"):
        read_files(spark, [])
    make(tmp_path, "a,b\n1,2\n", "a.csv")
    make(tmp_path, "b,a\n1,2\n", "b.csv")
    with pytest.raises(InputError, match=r"of one kind, but .*c\.jsonl"):
        read_files(spark, [tmp_path / "a.csv", tmp_path / "c.jsonl"])
    with pytest.raises(InputError, match=r"same columns in the same order, but .\.csv differs"):
        collected(spark, [tmp_path / "?.csv"], "a")


def test_first_rows_and_standard_input(spark, tmp_path):
    engine = Engine(lambda: spark, spark=True)
    path = make(tmp_path, "p,y\n0.2,no\n0.7,yes\n0.5,no\n")
    assert engine.first_rows([path], 2) == {"p": ["0.2", "0.7"], "y": ["no", "yes"]}
    with pytest.raises(InputError, match=r"standard input \(-\) is read by the engine duckdb"):
        engine.first_rows(["-"], 2)


# --- the table of files -------------------------------------------------------------------------

LABELS = [
    ("csv", ["0", "1"]), ("csv", ["TRUE", "false"]), ("csv", ["1.0", "0"]), ("csv", ["007", "1"]),
    ("csv", [" no", "yes "]), ("csv", ["1", "+1", "-1"]), ("csv", ["True", "TRUE", "False"]),
    ("jsonl", [0, 1]), ("jsonl", [True, False]), ("jsonl", ["0", "1"]), ("jsonl", [1.0, -1]),
    ("parquet", [0, 1]), ("parquet", ["0", "1"]), ("parquet", [True, False]),
]  # fmt: skip


def write(path, columns):
    kind = path.suffix
    if kind == ".parquet":
        pq.write_table(pa.table(columns), path)
        return
    table = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if kind == ".jsonl":
        path.write_text("\n".join(map(json.dumps, table)))
    else:
        lines = [",".join(columns), *(",".join(map(str, row.values())) for row in table)]
        path.write_text("\n".join(lines))


@pytest.mark.parametrize(("kind", "labels"), LABELS, ids=str)
def test_the_table_and_labels_of_files_are_those_of_duckdb(spark, tmp_path, kind, labels):
    s = [0.1, 0.5, 0.25, 0.5, -0.0, 0.0, 1e-9]
    y = [labels[i % len(labels)] for i in range(7)]
    columns = {"s": s, "y": y, "w": [1, 0, 2, 0.5, 1, 1, 3]}
    path = tmp_path / f"t.{kind}"
    write(path, columns)
    asked = {"score": "s", "label": "y", "weight": "w"}
    theirs = read_table([path], **asked)
    ours = read_table([path], **asked, session=spark)
    assert ours.data == theirs.data
    assert [type(c) for c in ours.classes] == [type(c) for c in theirs.classes]
    assert ours == theirs


ODD = ["*", "^x$", "a.b", "a`b", 'a"b', "A", "a", " ", "é", "[a]", "c0", "s,y", "score"]


def test_frames_with_columns_of_any_name(spark):
    columns = rows(60, decimals=2)
    s, y, g = columns["s"], columns["y"], columns["g"]
    wanted = ScoreTable.from_arrays(s, y)
    map_ = Piecewise.step([0.2, 0.5], [0.1, 0.4, 0.8])
    for i in (0, 3, 6, 9):
        score, label, segment = (ODD[i:] + ODD)[:3]
        named = {name: np.arange(60) for name in ODD} | {score: s, label: y, segment: g}
        plain = to_spark(spark.session, {f"n{j}": v for j, v in enumerate(named.values())})
        frame = plain.toDF(*named)
        assert cal.score_table(frame, score=score, label=label) == wanted
        if not i:
            each = cal.segment_tables(frame, score=score, label=label, segment=segment)
            assert each == {k: ScoreTable.from_arrays(s[g == k], y[g == k]) for k in sorted(set(g))}
        made = cal.add_probabilities(map_, frame, score=score, into="p.q")
        assert made.columns == [*named, "p.q"]
        found = made.toDF(*(f"n{j}" for j in range(len(named) + 1))).toArrow().to_pydict()
        got = dict(zip(found[f"n{list(named).index(score)}"], found[f"n{len(named)}"], strict=True))
        assert got == dict(zip(s.tolist(), map_(s).tolist(), strict=True))
    with pytest.raises(InputError, match="several are called 'a'"):
        cal.score_table(frame.toDF(*["a"] * len(ODD)), score="a", label="b")


def test_decimals_are_the_nearest_doubles(spark):
    words = [f"0.{i:03d}" for i in range(1000)] + [f"0.{i:036d}7" for i in range(1, 10**36, 10**34)]
    numbers = pa.array([Decimal(word) for word in words], pa.decimal128(38, 37))
    nearest, y = np.array([float(word) for word in words]), np.arange(len(words)) % 2
    frame = to_spark(spark.session, {"s": numbers, "y": y})
    assert cal.score_table(frame, score="s", label="y") == ScoreTable.from_arrays(nearest, y)


def test_a_label_that_comes_late_is_found(spark, tmp_path):
    lines = ["s,y", *["0.5,0"] * 10_500, "0.25,1", "0.25, 1", "0.75,+1"]
    path = make(tmp_path, "\n".join(lines))
    found = read_table([path], score="s", label="y", session=spark)
    assert found.classes == (0, 1)
    assert found.data == ScoreTable.from_counts([0.25, 0.5, 0.75], [0, 10_500, 0], [2, 0, 1])
    both = ["s,y", *["0.5,0", "0.5,1"] * 10_000, "0.25,TRUE"]
    with pytest.raises(InputError, match="label column 'y' must hold two classes"):
        read_table([make(tmp_path, "\n".join(both))], score="s", label="y", session=spark)


def test_probabilities_must_be_some(spark, tmp_path):
    path = make(tmp_path, "s,y\n50,0\n99,1\n")
    with pytest.raises(InputError, match=r"must be probabilities in \[0, 1\].*from 50 to 99"):
        read_table([path], score="s", label="y", probabilities=True, session=spark)


# --- folders, by Spark's own writers ------------------------------------------------------------


def parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*"))


def url(path: Path) -> str:
    return path.as_uri()


@pytest.mark.parametrize(
    ("name", "form"),
    [("o.csv", str), ("o.tsv", str), ("o.csv.gz", str), ("o.jsonl", str), ("o.parquet", str),
     ("o.csv", url), ("o.parquet", url)],
)  # fmt: skip
def test_what_is_written_reads_back(spark, tmp_path, name, form):
    values = [("1", "a"), ("2", None), ("3", 'q"x,\ty'), ("4", "line\nbreak")]
    frame = spark.session.createDataFrame(values, "i string, t string").repartition(2)
    place = form(tmp_path / name)
    assert write_files(spark, frame, place) == 4
    assert collected(spark, [tmp_path / name], "i", "t") == values
    with pytest.raises(InputError, match=f"the output .*{name} is there already.*--force"):
        write_files(spark, frame, place)
    assert write_files(spark, frame.filter("i < 3"), place, force=True) == 2
    assert collected(spark, [tmp_path / name], "i", "t") == values[:2]
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name / "_SUCCESS").exists()


def test_an_empty_frame_is_written(spark, tmp_path):
    frame = spark.session.range(3).filter("id > 5")
    assert write_files(spark, frame, tmp_path / "o.csv") == 0


@pytest.mark.parametrize("form", [str, url])
def test_outputs_that_are_refused(spark, tmp_path, form):
    frame = spark.session.range(3)
    (tmp_path / "mine.csv").mkdir()
    make(tmp_path / "mine.csv", "precious")
    make(tmp_path, "precious", "file.csv")
    for name in ("mine.csv", "file.csv"):
        with pytest.raises(InputError, match=rf"{name} is there already"):
            write_files(spark, frame, form(tmp_path / name))
    with pytest.raises(InputError, match=r"mine\.csv is a folder with other files"):
        write_files(spark, frame, form(tmp_path / "mine.csv"), force=True)
    with pytest.raises(InputError, match="does not exist"):
        write_files(spark, frame, form(tmp_path / "no" / "o.csv"))
    with pytest.raises(InputError, match="must end in one of"):
        write_files(spark, frame, form(tmp_path / "o.xls"))
    with pytest.raises(InputError, match=r"permission denied|cannot be written"):
        write_files(spark, frame, form(Path("/proc/o.csv")))
    os.mkfifo(tmp_path / "p.csv")
    with pytest.raises(InputError, match=r"writes a folder, but .*p\.csv is a pipe"):
        write_files(spark, frame, form(tmp_path / "p.csv"), force=True)
    assert (tmp_path / "file.csv").read_text() == "precious"
    assert (tmp_path / "mine.csv" / "s.csv").read_text() == "precious"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("form", [str, url])
def test_no_output_is_an_input(spark, tmp_path, form, force):
    write_files(spark, spark.session.range(3), tmp_path / "o.parquet")
    (part,) = parts(tmp_path / "o.parquet")[:1]
    (tmp_path / "link.parquet").symlink_to("o.parquet")
    (tmp_path / "hard.parquet").hardlink_to(part)
    for read, out in (
        ("o.parquet", "o.parquet"),
        (f"o.parquet/{part.name}", "o.parquet"),
        (f"o.parquet/{part.name}", "link.parquet"),
        ("link.parquet", "o.parquet"),
        (f"o.parquet/{part.name}", "hard.parquet"),
    ):
        frame = read_files(spark, [tmp_path / read])
        with pytest.raises(InputError, match="another file than"):
            write_files(spark, frame, form(tmp_path / out), force=force)
    assert len(collected(spark, [tmp_path / "o.parquet"], "id")) == 3


def test_no_output_elsewhere_is_an_input():
    class Elsewhere:
        def inputFiles(self):  # noqa: N802 - Spark's name
            return ["hdfs://host:8020/data/in.parquet/part-0", "file:///data/x.csv"]

    session = SimpleNamespace(call=lambda work: work())
    for out in ("hdfs://host:8020/data/in.parquet", "hdfs://alias/data/in.parquet/"):
        with pytest.raises(InputError, match="another file than hdfs://host"):
            spark_files.find_place(session, Elsewhere(), out, force=True)
    for out in ("hdfs://host:8020/data/in2.parquet", "s3a://host/data/in.parquet"):
        assert spark_files.find_place(session, Elsewhere(), out, force=True) is None


@pytest.mark.parametrize("form", [str, url])
def test_a_link_stays_and_its_folder_is_replaced(spark, tmp_path, form):
    (tmp_path / "store").mkdir()
    link, real = tmp_path / "o.csv", tmp_path / "store" / "real.csv"
    link.symlink_to("store/real.csv")
    for many in (3, 5):
        write_files(spark, spark.session.range(many), form(link), force=True)
        assert link.is_symlink()
        assert len(collected(spark, [real], "id")) == many


def test_an_interrupted_folder_is_not_whole(spark, tmp_path):
    endless = spark.session.range(0, 10**13, 1, 4).selectExpr("sqrt(id) AS x")
    with interrupted(1.2):
        write_files(spark, endless, tmp_path / "o.parquet")
    time.sleep(0.5)  # tasks that were told to stop must not come back
    assert not (tmp_path / "o.parquet" / "_SUCCESS").exists()
    assert not parts(tmp_path / "o.parquet")
    assert write_files(spark, spark.session.range(3), tmp_path / "o.parquet", force=True) == 3


# --- applying to files --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_apply_to_files_equals_calibrate(spark, tmp_path, kind):
    data = rows(500, decimals=6)
    fitted = cal.Isotonic().fit(data["s"], data["y"]).to_fitted()
    path, out = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
    write(path, {"id": list(range(500)), "s": data["s"].tolist(), "g": data["g"].tolist()})
    assert apply_file(fitted, [path], out, score="s", into="q", session=spark) == 500
    made = read_files(spark, [out])
    assert sorted(made.columns) == ["g", "id", "q", "s"]
    found = sorted(spark.call(made.selectExpr("int(id)", "double(q)", "double(s)", "g").collect))
    assert [row[0] for row in found] == list(range(500))
    assert [row[2] for row in found] == data["s"].tolist()
    assert [row[3] for row in found] == data["g"].tolist()
    gap = np.abs(np.array([row[1] for row in found]) - fitted.calibrate(data["s"]))
    assert gap.max() < 1e-12


def test_apply_to_files_with_missing_scores(spark, tmp_path):
    path, out = make(tmp_path, "s,t\n0.9,x\n,z\n"), tmp_path / "out.csv"
    with pytest.raises(InputError, match=r"score column 's' must be finite: 1 of 2 is NULL"):
        apply_file(STEP, [path], out, score="s", session=spark)
    assert not out.exists()
    apply_file(STEP, [path], out, score="s", on_missing="null", session=spark)
    assert parts(out)[0].read_text() == "s,t,probability\n0.9,x,0.75\n,z,\n"
    bad = make(tmp_path, "s\n0.9\nx\n", "bad.csv")
    with pytest.raises(InputError, match="numbers must be there, but 'x' came"):
        apply_file(STEP, [bad], tmp_path / "b.csv", score="s", on_missing="null", session=spark)


def test_apply_to_files_over_a_column(spark, tmp_path):
    path, out = make(tmp_path, "p.q,s\nold,0.9\n"), tmp_path / "out.csv"
    with pytest.raises(InputError, match=r"already has a column 'p\.q'"):
        apply_file(STEP, [path], out, score="s", into="p.q", session=spark)
    for into, text in (("p.q", "p.q,s\n0.75,0.9\n"), ("s", "p.q,s\nold,0.75\n")):
        asked = {"score": "s", "into": into, "overwrite_column": True, "force": True}
        apply_file(STEP, [path], out, **asked, session=spark)
        assert parts(out)[0].read_text() == text


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_new_segments_of_files_are_counted(spark, tmp_path, kind):
    step = Piecewise.step([0.5], [0.25, 0.75])
    map_ = Segmented(step, (1, 2), (step, Piecewise.constant(0.5)))
    path, out = tmp_path / f"s.{kind}", tmp_path / "o.parquet"
    write(path, {"g": [2, 7, 1], "s": [0.9, 0.9, 0.1]})
    new, fitted = NewSegments(), Fitted(map_, (0, 1), 1)
    asked = {"score": "s", "segment": "g", "new_segments": new, "session": spark}
    assert apply_file(fitted, [path], out, **asked) == 3
    made = {int(row["g"]): row["probability"] for row in pq.read_table(out).to_pylist()}
    assert made == {2: 0.5, 7: 0.75, 1: 0.25}
    assert (new.rows, new.new, int(new.example)) == (3, 1, 7)


# --- frames: the same numbers as in memory ------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    return rows(4_000, decimals=3)


@pytest.fixture(scope="module")
def frame(spark, data):
    return to_spark(spark.session, data).cache()


def same_table(ours, theirs):
    assert np.array_equal(ours.scores, theirs.scores)
    for mine, other in zip(ours.columns, theirs.columns, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=0)


@pytest.mark.parametrize("weight", [None, "w"])
def test_table_of_a_frame(frame, data, weight):
    ours = cal.score_table(frame, score="s", label="y", weight=weight)
    same_table(ours, ScoreTable.from_arrays(data["s"], data["y"], weight and data["w"]))


def test_table_of_cells(frame, data):
    import polars as pl

    ours = cal.score_table(frame, score="s", label="y", weight="w", cells=64)
    theirs = cal.score_table(pl.LazyFrame(data), score="s", label="y", weight="w", cells=64)
    assert len(ours) < 65
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-12)
    for mine, other in zip(ours.columns, theirs.columns, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12)
    assert ours.error == pytest.approx(theirs.error, rel=1e-9)


def test_margins_fall_into_the_same_cells(spark):
    import polars as pl

    margins = np.random.default_rng(1).normal(2.0, 30.0, 3_000)
    columns = {"s": margins, "y": margins > 0.0}
    ours = cal.score_table(to_spark(spark.session, columns), score="s", label="y", cells=256)
    theirs = cal.score_table(pl.LazyFrame(columns), score="s", label="y", cells=256)
    assert ours.total == theirs.total == 3_000
    # the mean and the spread differ in the last bits, so a score at a border may move
    assert abs(len(ours) - len(theirs)) <= 2
    assert ours.error == pytest.approx(theirs.error, rel=0.2)


COLUMNS = {
    "strings": ({"y": lambda y: np.where(y == 1, "spam", "ham")}, ("ham", "spam")),
    "booleans": ({"y": lambda y: y == 1}, (False, True)),
    "minus one": ({"y": lambda y: 2 * y - 1}, (-1, 1)),
    "float labels": ({"y": lambda y: y.astype(float)}, (0.0, 1.0)),
    "float32": ({"s": lambda s: s.astype(np.float32)}, (0, 1)),
    "decimals": (
        {"s": lambda s: pa.array([Decimal(f"{v:.3f}") for v in s], pa.decimal128(10, 3))},
        (0, 1),
    ),
    "whole weights": ({"w": lambda w: w.astype(np.int32)}, (0, 1)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_all_types(spark, name):
    data = rows(300, seed=5, decimals=3)
    change, classes = COLUMNS[name]
    changed = {**data, **{key: make(data[key]) for key, make in change.items()}}
    frame = to_spark(spark.session, changed, 2)
    fitted = cal.fit_isotonic(frame, score="s", label="y", weight="w")
    assert fitted.classes == classes
    assert [type(c) for c in fitted.classes] == [type(c) for c in classes]
    s = changed["s"].astype(np.float64) if name == "float32" else data["s"]
    near = cal.Isotonic().fit(s, data["y"], data["w"])
    np.testing.assert_allclose(fitted.calibrate(s), near.calibrate(s), rtol=0, atol=1e-12)
    if "s" not in change:
        return
    column = cal.add_probabilities(fitted, frame.select("s"), score="s").toArrow()
    own = np.asarray(column["s"].cast(pa.float64()))
    np.testing.assert_allclose(column["probability"], near.calibrate(own), rtol=0, atol=1e-12)


@pytest.mark.parametrize("few", [2**20, 100])  # whether cells are divided
def test_isotonic_of_cells_is_exact(spark, monkeypatch, few):
    monkeypatch.setattr("calibrant.data.refine.FEW", few)
    monkeypatch.setattr("calibrant.data.refine.EACH", 4)
    data = rows(6_000, seed=3)
    frame = to_spark(spark.session, data).cache()
    far = cal.fit_isotonic(frame, score="s", label="y", weight="w", cells=256)
    near = cal.Isotonic().fit(data["s"], data["y"], data["w"])
    np.testing.assert_allclose(
        far.calibrate(data["s"]), near.calibrate(data["s"]), rtol=0, atol=1e-12
    )


MAPS = {
    "platt": lambda d: cal.Platt().fit(d["s"], d["y"]),
    "beta": lambda d: cal.Beta().fit(d["s"], d["y"]),
    "isotonic": lambda d: cal.Isotonic().fit(d["s"], d["y"]),
    "centred": lambda d: cal.Isotonic(interpolation="centred").fit(d["s"], d["y"]),
    "identity": lambda d: cal.Uncalibrated().fit(d["s"], d["y"]),
    "logistic": lambda d: Fitted(Logistic(0.1, (("z", 0.7),)), (0, 1), 1),
}


def plan(frame):
    return frame._jdf.queryExecution().toString()


@pytest.mark.parametrize("name", MAPS)
def test_apply_equals_calibrate_without_python_there(spark, name):
    fit = rows(3_000, seed=7)
    calibrator = MAPS[name](fit)
    edges = [0.0, 1.0, 5e-324, 1e-300, 1 - 2**-53, 0.5, -0.0]
    if isinstance(getattr(calibrator, "map_", None), Piecewise):
        x = np.asarray(calibrator.map_.x)
        if calibrator.map_.input == "score":
            inside = x[(x > 0.0) & (x < 1.0)]
            edges += [*inside, *np.nextafter(inside, 0.0), *np.nextafter(inside, 1.0)]
    s = np.concatenate([edges, rows(1_000, seed=8)["s"]])
    frame = to_spark(spark.session, {"i": np.arange(len(s)), "s": s})
    done = cal.add_probabilities(calibrator, frame, score="s", into="q")
    assert done.columns == ["i", "s", "q"]
    assert not any(word in plan(done) for word in ("PythonUDF", "EvalPython", "MapInArrow"))
    found = done.sort("i").toArrow()
    assert found["i"].to_pylist() == list(range(len(s)))
    np.testing.assert_allclose(found["q"], calibrator.calibrate(s), rtol=0, atol=1e-12)


def test_with_code_generation(spark):
    """The session of these tests interprets; this is how Spark runs otherwise, no way back left."""
    session = spark.session.newSession()
    for name, value in {
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "CODEGEN_ONLY",
        "spark.sql.codegen.fallback": "false",
        "spark.sql.adaptive.enabled": "true",
    }.items():
        session.conf.set(name, value)
    data = rows(2_000, seed=9)
    frame = to_spark(session, data).cache()
    exact = cal.score_table(frame, score="s", label="y", weight="w")
    same_table(exact, ScoreTable.from_arrays(data["s"], data["y"], data["w"]))
    assert cal.score_table(frame, score="s", label="y", cells=64).total == 2_000
    for name in ("isotonic", "logistic"):
        calibrator = MAPS[name](data)
        done = cal.add_probabilities(calibrator, frame.select("s"), score="s", into="q")
        found = done.toArrow()
        assert "*(" in done._jdf.queryExecution().executedPlan().toString()  # compiled
        expected = calibrator.calibrate(np.asarray(found["s"]))
        np.testing.assert_allclose(found["q"], expected, rtol=0, atol=1e-12)


def largest_method(frame):
    """Bytes of the longest method that Spark makes of a frame."""
    debug = frame.sparkSession._jvm.org.apache.spark.sql.execution.debug
    plan = frame._jdf.queryExecution().executedPlan()
    found = getattr(debug, "package").codegenStringSeq(plan)  # noqa: B009
    sizes = [found.apply(i)._3().maxMethodCodeSize() for i in range(found.size())]
    assert sizes
    assert min(sizes) > 0  # all of it could be compiled
    return max(sizes)


def crowded(n, kind="lines"):
    """A map with many knots in the midst of few, as fits to skewed scores have them."""
    rng = np.random.default_rng(0)
    x = np.unique(np.concatenate((rng.normal(-3.0, 2.0, n), -3.0 + 1e-7 * rng.random(n))))
    if kind == "steps":
        return Piecewise.step(x, np.linspace(0.0, 1.0, len(x) + 1), "logit")
    return Piecewise.linear(x, 0.8 * x + 0.3 * np.sin(5.0 * x), "logit", "logit")


LONG = {
    "lines": crowded(90),
    "steps": crowded(90, "steps"),
    "mixture": Mixture([0.5, 0.5], (crowded(60), Logistic(0.1, (("z", 0.7), ("z2", 0.01))))),
    "chain": Chain((crowded(60), Logistic(0.1, (("z", 0.7),)), crowded(40))),
    "segments": Segmented(crowded(60), ("a", "b", "c"), (crowded(90), crowded(50), crowded(20))),
    "shrunk": Segmented(
        crowded(60), ("a", "b"), (crowded(90, "steps"), Logistic(0.1, (("z", 0.7),))), [0.5, 0.2]
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_methods_are_short_enough_to_be_compiled(spark, name):
    """Java interprets methods of more than 8,000 bytes, several times slower."""
    session = spark.session.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "true")
    session.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    rng = np.random.default_rng(1)
    s = np.append(sigmoid(-3.0 + 1e-7 * rng.random(100)), rng.random(100))
    frame = to_spark(session, {"s": s, "g": np.resize(["a", "b", "c", "?"], 200)}, 1)
    map_ = LONG[name]
    segment = "g" if isinstance(map_, Segmented) else None
    done = cal.add_probabilities(map_, frame, score="s", segment=segment, on_missing="null")
    assert largest_method(done) < 8_000
    found = done.toArrow()
    near = (found["s"].to_numpy(), *([found["g"].to_pylist()] if segment else []))
    np.testing.assert_allclose(found["probability"], map_(*near), rtol=0, atol=1e-12)


@pytest.mark.parametrize("knots", [10, 20, 40, 80])
def test_expressions_for_spark_are_short_enough_to_be_compiled(spark, knots):
    session = spark.session.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "true")
    session.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    to_spark(session, {"score": np.random.default_rng(0).random(9)}, 1).createOrReplaceTempView("t")
    x = np.linspace(-3.0, 3.0, knots)
    for map_ in (
        Piecewise.linear(x, x**3 / 9, "logit", "logit"),
        Piecewise.step(x[1:], sigmoid(x)),
    ):
        sql = cal.to_sql(map_, dialect="spark")
        if not sql.statements:
            assert largest_method(session.sql(f"SELECT {sql} AS p FROM t")) < 8_000


def test_missing_scores_of_frames(spark):
    bad = [0.9, None, math.nan, math.inf, 0.1]
    frame = spark.session.createDataFrame([(v,) for v in bad], "s double")
    with pytest.raises(InputError, match=r"must be finite: 1 of 5 is NULL and 1 of 5 is NaN"):
        cal.add_probabilities(STEP, frame, score="s")
    done = cal.add_probabilities(STEP, frame, score="s", on_missing="null").toArrow()["probability"]
    assert done.to_pylist() == [0.75, None, None, None, 0.25]
    labelled = frame.selectExpr("s", "int(1) AS y")
    with pytest.raises(InputError, match=r"score column 's' must be finite: 1 of 5 is missing"):
        cal.score_table(labelled, score="s", label="y")
    with pytest.raises(InputError, match=r"no column 'z'"):
        cal.score_table(labelled, score="z", label="y")


def test_segments(spark, frame, data):
    tables = cal.segment_tables(frame, score="s", label="y", segment="g", weight="w")
    assert list(tables) == sorted(set(data["g"]))
    for name, ours in tables.items():
        part = data["g"] == name
        same_table(ours, ScoreTable.from_arrays(data["s"][part], data["y"][part], data["w"][part]))


def test_segments_of_several_columns(spark, frame, data, tmp_path):
    """Tables, frames and files: a row has the map of the finest segment that was seen."""
    half = np.array(["x", "y"])[(data["s"] * 1e4).astype(int) % 2]
    more = to_spark(spark.session, {**data, "h": half})
    c = cal.SegmentedCalibrator(cal.Platt(), shrinkage=20.0)
    c.fit(data["s"], data["y"], segments=[data["g"], half])
    tables = cal.segment_tables(more, score="s", label="y", segment=["g", "h"])
    assert c.map_ == cal.SegmentedCalibrator(cal.Platt(), shrinkage=20.0).fit_tables(tables).map_
    new = {"s": np.array([0.3] * 4), "g": ["a", "a", "z", "b"], "h": ["x", "new", "x", None]}
    expected = c.map_([0.3] * 3, [new["g"][:3], new["h"][:3]])
    done = cal.add_probabilities(
        c,
        to_spark(spark.session, new),
        score="s",
        segment=["g", "h"],
        on_missing="null",
        on_new_segment="allow",
    )
    found = {(row["g"], row["h"]): row["probability"] for row in spark.call(done.collect)}
    keys = list(zip(new["g"], new["h"], strict=True))
    assert np.abs([found[key] for key in keys[:3]] - expected).max() <= 1e-12
    assert found[keys[3]] is None
    file, out = tmp_path / "new.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({name: pa.array(column) for name, column in new.items()}), file)
    counted = NewSegments()
    asked = {"score": "s", "segment": ("g", "h"), "on_missing": "null", "session": spark}
    apply_file(c.to_fitted(), [file], out, new_segments=counted, **asked)
    assert (counted.rows, counted.new) == (3, 2)
    assert counted.example in (("a", "new"), ("z", "x"))
    rows_out = pq.read_table(out).to_pylist()
    found = {(row["g"], row["h"]): row["probability"] for row in rows_out}
    assert np.abs([found[key] for key in keys[:3]] - expected).max() <= 1e-12
    assert found[keys[3]] is None


def test_segmented_calibrators(spark, frame, data):
    segmented = cal.SegmentedCalibrator(cal.Platt())
    near = segmented.fit(data["s"], data["y"], segments=data["g"])
    unseen = {"s": [0.3, 0.3], "g": ["never", None]}
    more = frame.select("s", "g").union(to_spark(spark.session, unseen, 1))
    with pytest.raises(InputError, match="1 of 4,002 is without a segment"):
        cal.add_probabilities(near, more, score="s", segment="g", into="q")
    done = cal.add_probabilities(near, more, score="s", segment="g", into="q", on_missing="null")
    assert not any(word in plan(done) for word in ("PythonUDF", "EvalPython", "MapInArrow"))
    found = done.toArrow()
    assert found.num_rows == len(data["s"]) + 2
    assert [q is None for q in found["q"].to_pylist()] == [
        g is None for g in found["g"].to_pylist()
    ]
    found = found.filter(pa.compute.is_valid(found["g"]))
    expected = near.calibrate(np.asarray(found["s"]), np.array(found["g"].to_pylist()))
    np.testing.assert_allclose(found["q"], expected, rtol=0, atol=1e-12)


def test_columns_with_dots_and_backticks(spark, data):
    names = {"s": "model.score", "y": "what`came", "g": "a b"}
    odd = to_spark(spark.session, {new: data[old] for old, new in names.items()})
    table = cal.score_table(odd, score="model.score", label="what`came", cells="exact")
    assert table == ScoreTable.from_arrays(data["s"], data["y"])
    with pytest.raises(InputError, match=r"has no column 'model\.scor'"):
        cal.score_table(odd, score="model.scor", label="what`came")
    near = cal.Platt().fit_table(table)
    done = cal.add_probabilities(near, odd, score="model.score", into="p.q")
    assert done.columns == [*names.values(), "p.q"]
    found = done.toArrow()
    expected = near.calibrate(np.asarray(found["model.score"]))
    np.testing.assert_allclose(found["p.q"], expected, rtol=0, atol=1e-12)


# --- the command line ---------------------------------------------------------------------------


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    from calibrant.cli import main

    monkeypatch.chdir(tmp_path)

    def go(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return go


def test_the_command_line_fits_applies_and_measures(spark, run, tmp_path, data):
    lines = zip(data["s"], data["y"], data["g"], strict=True)
    for part, some in enumerate((2000, 2000)):
        text = "".join(f"{float(s)!r},{['no', 'yes'][y]},{g}\n" for s, y, g in islice(lines, some))
        (tmp_path / f"day-{part}.csv").write_text(f"score,bought,land\n{text}")
    asked = ("day-*.csv", "-s", "score", "-l", "bought", "--cv", "0", "--json")
    platt = ("--method", "platt")
    fits = {}
    for engine in ("spark", "duckdb"):
        code, out, err = run("fit", *asked, *platt, "-o", f"{engine}.json", "--engine", engine)
        assert (code, err) == (0, "")
        assert json.loads(out)["provenance"]["rows"] == 4000
        fits[engine] = cal.load(f"{engine}.json")
    assert fits["spark"].classes == fits["duckdb"].classes == ("no", "yes")
    s = np.linspace(0, 1, 99)
    near = fits["duckdb"].calibrate(s)
    np.testing.assert_allclose(fits["spark"].calibrate(s), near, rtol=0, atol=1e-9)
    spark_ = ("--engine", "spark", "--json")
    code, out, err = run("apply", "duckdb.json", "day-*.csv", "-o", "out.parquet", *spark_)
    assert (code, err) == (0, "")
    assert json.loads(out)["rows"] == 4000
    code, _, err = run("apply", "duckdb.json", "day-*.csv", "-o", "out2.parquet")
    assert (code, err) == (0, "")
    theirs = ("-p", "probability", "-l", "bought", "--raw", "score", "--level", "0", "--json")
    one = json.loads(run("evaluate", "out.parquet", *theirs, "--engine", "spark")[1])
    two = json.loads(run("evaluate", "out2.parquet", *theirs)[1])
    for side in ("after", "before"):
        for name, value in two[side].items():
            assert one[side][name] == pytest.approx(value, rel=1e-9), (side, name)
    # segments, and what is wrong
    code, _, err = run("fit", *asked, "--segment", "land", "-o", "seg.json", "--engine", "spark")
    assert (code, err) == (0, "")
    code, out, err = run("apply", "seg.json", "day-*.csv", "-o", "seg.parquet", *spark_)
    assert (code, err) == (0, "")
    found = pq.read_table("seg.parquet")
    expected = cal.load("seg.json").calibrate(
        [float(x) for x in found["score"].to_pylist()], segments=found["land"].to_pylist()
    )
    np.testing.assert_allclose(found["probability"], expected, rtol=0, atol=1e-12)
    code, _, err = run("fit", "day-*.csv", "-s", "scor", "-l", "bought", "--engine", "spark")
    assert code == 2
    assert "Did you mean 'score'?" in err
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


@pytest.mark.parametrize("cells", ["auto", 64])
def test_evaluate_equals_memory(frame, data, monkeypatch, cells):
    monkeypatch.setattr("calibrant.data.refine.FEW", 100)
    monkeypatch.setattr("calibrant.data.refine.EACH", 4)
    ours = cal.evaluate(frame, "s", label="y", sample_weight="w", cells=cells)
    theirs = cal.evaluate(data["y"], data["s"], sample_weight=data["w"])
    left_out = set() if cells == "auto" else {"auc", "calbin", "calibration_slope"}
    assert ours.after.keys() | left_out == theirs.after.keys()
    for name in theirs.after.keys() - left_out:
        value = theirs.after[name]
        assert ours.after[name] == pytest.approx(value, rel=1e-10, abs=1e-12), name


def test_measures_of_several_classes_equal_memory(spark):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 400).round(3)
    p[:, 2] = 1.0 - p[:, :2].sum(axis=1)
    p = np.clip(p, 0.0, 1.0)
    kind = np.array(["a", "b", "c"])[(p.cumsum(axis=1) < 0.99 * rng.random((400, 1))).sum(axis=1)]
    names = ["p0", "p1", "p2"]
    table = pa.table(dict(zip(names, p.T, strict=True)) | {"kind": kind})
    ours = cal.evaluate(spark.session.createDataFrame(table), names, label="kind")
    theirs = cal.evaluate(kind, p, level=None)
    assert list(ours.after) == list(theirs.after)
    for name, value in theirs.after.items():
        assert ours.after[name] == pytest.approx(value, rel=1e-12)


# --- a cluster of several processes: pytest -m cluster ------------------------------------------

CLUSTER = """
import json, os, pathlib, signal, sys, threading, time
from pyspark.find_spark_home import _find_spark_home
sys.path.insert(0, sys.argv[2])
import calibrant as cal
from calibrant.engines.spark import Spark
from calibrant.engines.spark_files import write_files
from calibrant.errors import InputError
from sparks import children

folder = pathlib.Path(sys.argv[1])
work = pathlib.Path(_find_spark_home(), "work")
before = set(work.glob("*"))
facts, kills, processes = {"rows": {}, "kills": []}, [], set()


def executors(driver):
    found = []
    for pid in children(driver):
        try:
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if b"CoarseGrainedExecutorBackend" in command:
            found.append(pid)
    processes.update(found)
    return found


def wait_for(true, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return true()


def both_there(spark):
    # the driver counts as one
    known = spark.session._jsc.sc().statusTracker().getExecutorInfos
    return len(executors(driver)) == 2 and len(known()) == 3


def hunt(spark, job, over):
    # one of two executors dies in each stage, while both are at work in it
    tracker, hit = spark.session.sparkContext.statusTracker(), set()
    while not over.wait(0.01):
        for stage in filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds())):
            found = executors(driver)
            early = 2 <= stage.numCompletedTasks <= stage.numTasks - 12
            busy = stage.numActiveTasks == len(found) == 2
            if early and busy and stage.stageId not in hit:
                os.kill(found[0], signal.SIGKILL)
                hit.add(stage.stageId)
                kills.append({
                    "job": job, "stage": stage.stageId, "tasks": stage.numTasks,
                    "done": stage.numCompletedTasks, "pid": found[0],
                    "there": (folder / "out-kill.parquet" / "_SUCCESS").exists(),
                })


def disturbed(spark, job, work):
    # again until a kill has made a task fail
    for attempt in range(5):
        assert wait_for(lambda: both_there(spark)), "an executor did not come back"
        over = threading.Event()
        hunter = threading.Thread(target=hunt, args=(spark, job, over), daemon=True)
        hunter.start()
        result = work()
        over.set()
        hunter.join()
        tracker = spark.session.sparkContext.statusTracker()
        for kill in kills:
            failed = lambda: tracker.getStageInfo(kill["stage"]).numFailedTasks
            kill["failed"] = wait_for(failed, 5.0)  # the driver counts a little later
            kill["dead"] = not pathlib.Path(f"/proc/{kill['pid']}").exists()
        facts["kills"] += kills
        hits = [kill for kill in kills if kill["failed"]]
        kills.clear()
        if hits:
            return result
    raise AssertionError(f"no kill hit a task: {facts}")


def calm(spark, job, work):
    assert wait_for(lambda: both_there(spark)), "there are not two executors"
    return work()


config = {
    "spark.sql.files.openCostInBytes": "128m",  # every file is a task
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
with Spark("local-cluster[2,1,1024]", config=config) as spark:
    driver = spark._gateway.proc.pid
    # every task sleeps in its first row, so that there is time to die in
    slow = "n > 0 OR reflect('java.lang.Thread', 'sleep', 150L) = 'null'"
    data = spark.session.read.parquet(str(folder / "in")).filter(slow)
    for mode, run in (("calm", calm), ("kill", disturbed)):
        grouped = lambda: cal.score_table(data, score="s", label="y", weight="w", cells=4096)
        table = run(spark, "table", grouped)
        columns = {n: getattr(table, n).tolist() for n in ("scores", "negative", "positive")}
        (folder / f"table-{mode}.json").write_text(json.dumps(columns))
        applied = cal.add_probabilities(cal.load(folder / "map.json"), data, score="s", into="q")
        out = folder / f"out-{mode}.parquet"
        write = lambda: write_files(spark, applied, out, force=True)
        facts["rows"][mode] = run(spark, "apply", write)
        facts[f"{mode}_executors"] = len(processes)
    try:  # Python there would fail, so that nothing above has used it
        spark.call(spark.session.range(1).mapInArrow(lambda some: some, "id long").collect)
    except InputError as wrong:
        facts["python"] = str(wrong)
facts["left"] = sorted(str(path) for path in set(work.glob("*")) - before)
gone = lambda: not [p for p in (driver, *processes) if pathlib.Path(f"/proc/{p}").exists()]
facts["gone"] = wait_for(gone, 20.0) and not children(os.getpid())
print(json.dumps(facts))
"""


def in_files(data: dict[str, np.ndarray], folder: Path, count: int) -> None:
    """Columns as Parquet files of the same size, with the row's number in each."""
    size = len(data["s"]) // count
    whole = pa.table({**data, "n": np.arange(len(data["s"])) % size})
    folder.mkdir()
    for i in range(count):
        pq.write_table(whole.slice(i * size, size), folder / f"{i}.parquet")


@pytest.mark.cluster
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_killed_executor_changes_nothing(tmp_path):
    """Two executors, none of which could start Python; one is killed in the middle of each job."""
    n, files = 400_000, 40
    data = rows(n, seed=11)
    del data["g"]
    in_files(data, tmp_path / "in", files)
    fitted = cal.Isotonic().fit(data["s"], data["y"]).to_fitted()
    cal.save(fitted, tmp_path / "map.json")
    for place in ("here", "spilled"):
        (tmp_path / place).mkdir()
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, str(tmp_path), str(Path(__file__).parents[1])],
        capture_output=True, text=True, check=False, cwd=tmp_path / "here",
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": "/nonexistent",
             "TMPDIR": str(tmp_path / "spilled")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    facts = json.loads(done.stdout)
    # executors died in the middle of each job, with the tasks that they ran
    for job in ("table", "apply"):
        hits = [kill for kill in facts["kills"] if kill["job"] == job and kill["failed"]]
        assert hits
        for kill in hits:
            assert kill["dead"]
            assert 0 < kill["done"] < kill["tasks"] == files
            assert not kill["there"]  # the output is not whole before its end
    assert facts["calm_executors"] == 2 < facts["kill_executors"]
    assert "/nonexistent" in facts["python"]
    # the numbers are those of the calm
    calm, kill = (json.loads((tmp_path / f"table-{m}.json").read_text()) for m in ("calm", "kill"))
    assert calm["negative"] == kill["negative"]  # whole weights: exact in any order
    assert calm["positive"] == kill["positive"]
    np.testing.assert_allclose(calm["scores"], kill["scores"], rtol=1e-12)
    assert sum(kill["negative"]) + sum(kill["positive"]) == data["w"].sum()
    assert facts["rows"] == {"calm": n, "kill": n}
    for mode in ("calm", "kill"):
        out = tmp_path / f"out-{mode}.parquet"
        assert len(parts(out)) == files
        assert {path.name[:5] for path in out.iterdir()} == {"part-", "_SUCC", ".part", "._SUC"}
        written = pq.read_table(out).sort_by("s")
        assert np.array_equal(written["s"], np.sort(data["s"]))
        expected = fitted.calibrate(np.asarray(written["s"]))
        assert np.abs(np.asarray(written["q"]) - expected).max() < 1e-12
    # and nothing is left behind
    assert not facts["left"]
    assert facts["gone"]
    assert not [*(tmp_path / "here").iterdir(), *(tmp_path / "spilled").iterdir()]
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("k", [3, 6])
def test_columns_of_several_classes_are_those_of_predict_proba(spark, k):
    rng = np.random.default_rng(k)
    z = rng.normal(size=(60, k)) * 2
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    full = Softmax(np.eye(k) + 0.1 * rng.normal(size=(k, k)), rng.normal(size=k))
    coded = Coded.one_vs_rest(tuple(Logistic(0.1 * j, (("z", 0.9),)) for j in range(k)))
    names = [f"s{j}" for j in range(k)]
    for map_, scores in ((full, z), (coded, p)):
        frame = to_spark(spark.session, dict(zip(names, scores.T, strict=True)))
        made = cal.add_probabilities(map_, frame, score=names, into="p").toArrow()
        given, found = (
            np.column_stack([made[f"{head}{j}"].to_numpy() for j in range(k)])
            for head in ("s", "p_")
        )
        assert np.abs(found - map_(given)).max() <= 1e-12


@pytest.mark.parametrize("python", [sys.executable, "/nonexistent"])
def test_many_classes_are_a_function_of_blocks_where_workers_have_python(
    spark, python, monkeypatch
):
    k, rng = 12, np.random.default_rng(3)
    z = rng.normal(size=(300, k)) * 2
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    map_ = cal.TopLabelCalibrator(cal.BLS()).fit(z, y).map_
    z[5, 2] = np.nan
    names = [f"s{j}" for j in range(k)]
    frame = to_spark(spark.session, dict(zip(names, z[:40].T, strict=True)))
    monkeypatch.setattr(spark.session.sparkContext, "pythonExec", python)
    made = cal.add_probabilities(map_, frame, score=names, into="p", on_missing="null")
    plan = made._jdf.queryExecution().optimizedPlan().toString()
    assert ("of_blocks" in plan) == (python == sys.executable)
    assert made.columns == [*names, *(f"p_{j}" for j in range(k))]
    table = made.toArrow()
    given, found = (
        np.column_stack([table[f"{head}{j}"].to_numpy() for j in range(k)]) for head in ("s", "p_")
    )
    known = ~np.isnan(given).any(axis=1)
    assert known.sum() == 39
    assert np.isnan(found[~known]).all()
    assert np.abs(found[known] - map_(given[known])).max() <= 1e-12
