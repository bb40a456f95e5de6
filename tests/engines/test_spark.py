"""Spark: a quiet session, files as on one machine, whole folders, and the same numbers."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
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

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.data.score_table import ScoreTable
from calibrant.data.segments import NewSegments
from calibrant.engines import spark as engine_package
from calibrant.engines.open_engine import Engine
from calibrant.engines.spark import Spark, read_files, write_file
from calibrant.engines.spark.files import is_url
from calibrant.engines.spark.session import _knock, require_java, reworded, why_not_started
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


def collected(spark, files, *columns):
    frame = read_files(spark, files).frame
    return sorted(map(tuple, spark.call(frame.select(*columns).collect)), key=str)


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
        _knock(f"spark://nowhere.invalid:7077,127.0.0.1:{port}")
    with pytest.raises(InputError, match=f"no Spark cluster answers at spark://127.0.0.1:{port}"):
        Spark(f"spark://127.0.0.1:{port}")
    for other in ("local[2]", "yarn", "k8s://https://nowhere.invalid:443"):
        _knock(other)


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


# --- reading ------------------------------------------------------------------------------------


def test_csv_fields_stay_as_they_are(spark, tmp_path):
    text = '\ufeffid;p;note\n007; 0.25 ;"a; ""q""\nnew"\n1e3;NA;\n'
    path = make(tmp_path, text)
    read = read_files(spark, [path], ["p"])
    assert read.frame.columns == ["id", "p", "note"]
    found = spark.call(read.frame.collect)
    assert [tuple(row) for row in found] == [
        ("007", " 0.25 ", 'a; "q"\nnew'),
        ("1e3", "NA", None),
    ]
    numbers = spark.call(read.frame.select(read.number("p", "score")).collect)
    assert [row[0] for row in numbers] == [0.25, None]


def test_numbers_in_files_are_those_that_duckdb_takes(spark, tmp_path):
    good = ["0.5", " 7 ", "-.5e3", "+5", "1e-300", "5e-324", "1.", "0", "inf", "-Infinity"]
    path = make(tmp_path, "x\n" + "\n".join(good))
    read = read_files(spark, [path])
    found = [row[0] for row in spark.call(read.frame.select(read.number("x", "score")).collect)]
    assert found == [float(word) for word in good]
    for odd in ("1.0d", "0x1p3", "1,5", "50%", "abc"):
        read = read_files(spark, [make(tmp_path, f"x;z\n0.5;1\n{odd};2\n")])
        with pytest.raises(InputError, match=f"score column 'x' must be numbers, but '{odd}' came"):
            spark.call(read.frame.select(read.number("x", "score")).collect)


def test_files_of_other_orders_and_separators_are_one_frame(spark, tmp_path):
    make(tmp_path, "id,p\n1,2\n", "m1.csv")
    make(tmp_path, "p,id\n4,3\n", "m2.csv")
    make(tmp_path, gzip.compress(b"p;id\n6;5\n"), "m3.csv.gz")
    found = collected(spark, [tmp_path / "m*.csv*"], "id", "p")
    assert found == [("1", "2"), ("3", "4"), ("5", "6")]


def test_names_with_wildcards_and_blanks_are_found(spark, tmp_path):
    path = make(tmp_path, "id,p\n1,2\n", "sp [a]{b},c %20#*.csv")
    make(tmp_path, "id,p\n3,4\n", "sp ab.csv")
    assert collected(spark, [path], "id", "p") == [("1", "2")]


def test_columns_without_a_name_and_with_odd_names(spark, tmp_path):
    path = make(tmp_path, ',a.b,"c d",P,p\n1,2,3,4,5\n')
    read = read_files(spark, [path])
    assert read.frame.columns == ["_c0", "a.b", "c d", "P", "p"]
    out = tmp_path / "out.csv"
    assert apply_file(STEP, [path], out, score="a.b", into="q", session=spark) == 1
    assert next(out.glob("part-*")).read_text() == "_c0,a.b,c d,P,p,q\n1,2,3,4,5,0.75\n"


def test_urls_and_folders(spark, tmp_path):
    folder = tmp_path / "day"
    folder.mkdir()
    make(folder, "p;id\n2;1\n", "a.csv")
    make(folder, "p;id\n4;3\n", "b.csv")
    make(folder, "", "_SUCCESS")
    for given in (folder, f"{folder.as_uri()}/*.csv", f"file:{folder}/a.csv"):
        read = collected(spark, [given], "id", "p")
        assert read == [("1", "2"), ("3", "4")][: len(read)]
    make(folder, "id;p\n6;5\n", "c.csv")
    with pytest.raises(InputError, match=r"same columns in the same order, but c\.csv differs"):
        collected(spark, [f"{folder.as_uri()}/*.csv"], "id", "p")
    assert [is_url(str(x)) for x in (folder, "hdfs://h/x.csv", "C:/x.csv")] == [False, True, False]


def test_partitioned_folders_of_parquet(spark, tmp_path):
    for land in ("de", "fr"):
        (tmp_path / "t" / f"land={land}").mkdir(parents=True)
        pq.write_table(pa.table({"p": [0.5]}), tmp_path / "t" / f"land={land}" / "x.parquet")
    assert collected(spark, [tmp_path / "t"], "p", "land") == [(0.5, "de"), (0.5, "fr")]
    make(tmp_path / "t" / "land=de", "p\n1\n", "a.csv")
    with pytest.raises(InputError, match=r"of one kind"):
        read_files(spark, [tmp_path / "t"])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_folders_give_columns_and_replace_none(spark, tmp_path, kind):
    folder = tmp_path / "land=a%2Fb+c" / "n=007"
    folder.mkdir(parents=True)
    path = folder / f"x.{kind}"
    pq.write_table(pa.table({"p": [0.5]}), path)
    if kind != "parquet":
        make(folder, "p,q\n0.5,1\n" if kind == "csv" else '{"p":0.5}\n', path.name)
    read = collected(spark, [path], "p", "land", "n")
    assert [(float(p), land, n) for p, land, n in read] == [(0.5, "a/b+c", "007")]
    for said, wrong in (("p=0.50", False), ("p=7", True)):
        (tmp_path / said).mkdir()
        path.rename(tmp_path / said / path.name)
        path = tmp_path / said / path.name
        if wrong:
            with pytest.raises(InputError, match=r"'0\.5' came below p=7: either may be meant"):
                read_files(spark, [path])
        else:
            assert [float(p) for (p,) in collected(spark, [path], "p")] == [0.5]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_names_of_folders_may_hold_any_sign(spark, tmp_path, kind):
    spark.session.sql("SELECT 0.5D AS p, 1 AS `a/b`, 'x%y' AS `c=d`").write.partitionBy(
        "a/b", "c=d"
    ).format("json" if kind == "jsonl" else kind).save(str(tmp_path / "t"))
    (written,) = (tmp_path / "t").glob("*/*/part-*")
    assert written.parts[-3:-1] == ("a%2Fb=1", "c%3Dd=x%25y")
    other = tmp_path / "t" / "a%2fb=2" / "c%3dd=z"  # the same names in another spelling
    other.mkdir(parents=True)
    files = [path.parent / f"x.{kind}" for path in (written, other / "_")]
    written.rename(files[0])
    shutil.copy(files[0], files[1])
    assert collected(spark, files, "p", "a/b", "c=d") == [(0.5, 1, "x%y"), (0.5, 2, "z")]


@pytest.mark.parametrize(("folder", "column"), [("a%2Fb", "a/b"), ("DAY", "day")])
def test_folders_behind_urls_replace_no_column_of_another_spelling(spark, tmp_path, folder, column):
    place = tmp_path / "t.parquet" / f"{folder}=7"
    place.mkdir(parents=True)
    pq.write_table(pa.table({column: [0.5], "y": [1]}), place / "x.parquet")
    with pytest.raises(InputError, match=f"have a column '{column}', and their folders are named"):
        read_files(spark, [place.parent.as_uri()])
    with pytest.raises(InputError, match=r"'0\.5' came below .*=7: either may be meant"):
        read_files(spark, [place / "x.parquet"])


def test_folders_behind_urls_replace_no_column(spark, tmp_path):
    folder = tmp_path / "t.parquet" / "p=7"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"p": [0.5], "y": [1]}), folder / "x.parquet")
    with pytest.raises(InputError, match=r"have a column 'p', and their folders are named p="):
        read_files(spark, [folder.parent.as_uri()])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("inner", ["\n", "\r\n", "\r"])
def test_line_breaks_in_quotes_are_no_ends_of_lines(spark, tmp_path, end, inner):
    text = end.join([f'"i{inner}d",p', f'"a{inner}b",0.2', "2,0.3", ""])
    read = read_files(spark, [make(tmp_path, text, "a.csv")], ["p"])
    assert read.frame.columns == [f"i{inner}d", "p"]
    assert [tuple(row) for row in read.frame.collect()] == [(f"a{inner}b", "0.2"), ("2", "0.3")]
    assert read.rows == (2,)


def test_rows_that_spark_loses_are_an_error(spark, tmp_path):
    read = read_files(spark, [make(tmp_path, "i,p\n1,0.2\n2,0.3\n", "a.csv")], ["p"])
    with pytest.raises(InputError, match="all 2 rows of the input must be read, but 1 were"):
        write_file(spark, read.frame.limit(1), tmp_path / "o.csv", expected=read.rows)
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_json_lines_and_arrays(spark, tmp_path):
    records = [{"p": 0.5, "y": True}, {"p": 1, "y": False}]
    make(tmp_path, "\n".join(map(json.dumps, records)), "a.jsonl")
    make(tmp_path, json.dumps(records, indent=1), "b.json")
    make(tmp_path, gzip.compress("\n".join(map(json.dumps, records)).encode()), "c.ndjson.gz")
    for name in ("a.jsonl", "b.json", "c.ndjson.gz"):
        assert collected(spark, [tmp_path / name], "p", "y") == [(0.5, True), (1.0, False)]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "a,b\n1,2\n1\n", "a.csv: line 3 has 1 fields where the header has 2: '1'"),
        ("a.csv", "a,b\n1,2\n1,2,3\n", "line 3 has 3 fields where the header has 2: '1,2,3'"),
        ("a.csv", "", "a.csv is empty"),
        ("a.csv", "\n\n", "a.csv is empty"),
        ("a.csv", 'a,b\n1,"2\n3,4\n5,6\n', "line 2 has a quote that does not end: '1,\"2'"),
        ("a.csv", 'a,b\n1,"2\n3,4\n5,"6"\n', "line 2 has a quote within a field"),
        ("a.csv", 'a,b\n1,"2"x\n', "line 2 has a quote within a field"),
        ("a.csv.gz", gzip.compress(b'a,b\n1,"2\n3,4\n'), "has a quote that does not end"),
        ("a.csv", "sep=;\na;b\n", "begins with a line 'sep='"),
        ("a.csv", "a,a\n1,2\n", "several named 'a'"),
        ("a.csv", "é\n1\n".encode("latin1"), "must be UTF-8"),
        ("_a.csv", "a\n1\n", "begin with _ or a dot"),
        ("a:b.csv", "a\n1\n", "names with a colon"),
        ("a.csv.gz", b"a\n1\n", "Not a gzipped file"),
        ("a.csv.gz", gzip.compress(os.urandom(10**6).hex().encode())[:-9000], "cut short|cannot"),
        ("a.jsonl", '{"a": 1}\n{"a": \n', "is no JSON"),
        ("a.parquet", b"PAR1xxxxxxxxPAR1", "not a Parquet file"),
        ("a.parquet", b"", "a.parquet is empty"),
        ("a.docx", "a", "must end in one of"),
        ("a.xlsx", "a", "the engine duckdb alone reads"),
    ],
    ids=map(str, range(19)),  # processes must agree on the names, and the time is in a .gz
)  # fmt: skip
def test_unreadable_files_are_refused_in_words(spark, tmp_path, name, text, said):
    path = make(tmp_path, text, name)
    with pytest.raises(InputError, match=said):
        spark.call(read_files(spark, [path]).frame.collect)


def test_quotes_that_are_right_are_read(spark, tmp_path):
    text = '"a",b\n1,"x ""y"", \nz"\n2,5" pipe\n3,","\n4,""\n5," ""e"""'
    expected = [("1", 'x "y", \nz'), ("2", '5" pipe'), ("3", ","), ("4", None), ("5", ' "e"')]
    assert collected(spark, [make(tmp_path, text)], "a", "b") == expected
    assert collected(spark, [make(tmp_path, "\ufeff" + text, "b.csv")], "a", "b") == expected


LATE = b"s,y,t\n" + b"0.5,no,a\n0.25,yes,b\n" * 5_500


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (b"0.5,n\xe3o,c\n", "label column 'y' must be UTF-8 text"),
        (b"0.5,no\n", "line 11002 has 2 fields where the header has 3: '0.5,no'"),
        (b"0.5,no,c,d\n", "line 11002 has 4 fields where the header has 3: '0.5,no,c,d'"),
    ],
)
def test_what_is_wrong_far_down_is_found(spark, tmp_path, last, said):
    path = make(tmp_path, LATE + last)
    with pytest.raises(InputError, match=said):
        read_table([path], score="s", label="y", session=spark)


def test_missing_and_mixed_files(spark, tmp_path):
    for nothing in (tmp_path / "none.csv", f"{tmp_path.as_uri()}/none.parquet"):
        with pytest.raises(InputError, match=r"there is no file .*none"):
            read_files(spark, [nothing])
    with pytest.raises(InputError, match="at least one data file"):
        read_files(spark, [])
    with pytest.raises(InputError, match="holds no data files"):
        read_files(spark, [tmp_path])
    make(tmp_path, "a,b\n1,2\n", "a.csv")
    make(tmp_path, "a,c\n1,2\n", "b.csv")
    make(tmp_path, "{}", "c.jsonl")
    with pytest.raises(InputError, match=r"of one kind, but .*c\.jsonl"):
        read_files(spark, [tmp_path / "a.csv", tmp_path / "c.jsonl"])
    with pytest.raises(InputError, match=r"a\.csv and b\.csv differ in 'b', 'c'"):
        read_files(spark, [tmp_path / "?.csv"])
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"b": [1]}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"a\.parquet and b\.parquet differ"):
        read_files(spark, [tmp_path / "*.parquet"])
    with pytest.raises(InputError, match=r"no column 'q'.*'a', 'b'"):
        read_files(spark, [tmp_path / "a.csv"]).number("q", "score")


# --- the table of files -------------------------------------------------------------------------

LABELS = [
    ("csv", ["0", "1"]), ("csv", ["TRUE", "false"]), ("csv", ["1.0", "0"]), ("csv", ["007", "1"]),
    ("csv", [" no", "yes "]), ("csv", ["1", "+1", "-1"]), ("csv", ["True", "TRUE", "False"]),
    ("jsonl", [0, 1]), ("jsonl", [True, False]), ("jsonl", ["0", "1"]), ("jsonl", [1.0, -1]),
    ("parquet", [0, 1]), ("parquet", ["0", "1"]), ("parquet", [True, False]),
    ("parquet", [Decimal("0"), Decimal("1")]),
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
    assert ours.table == theirs.table
    assert [type(c) for c in ours.classes] == [type(c) for c in theirs.classes]
    assert ours[1:] == theirs[1:]


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


def test_new_segments_of_files_are_counted(spark, tmp_path):
    constant = Piecewise.constant
    map_ = Segmented(constant(0.5), (1, 100_000), (constant(0.1), constant(0.3)))
    spelled = {"1.0": 0.1, "01": 0.1, "1e+05": 0.3, "-0": 0.5, "4": 0.5, "true": 0.1, "1.5": 0.5}
    file = make(tmp_path, "s,g\n" + "".join(f"0.3,{word}\n" for word in spelled))
    new, fitted = NewSegments(), Fitted(map_, (0, 1), 1)
    out = tmp_path / "out.parquet"
    apply_file(fitted, [file], out, score="s", segment="g", new_segments=new, session=spark)
    made = pq.read_table(out).to_pydict()
    assert dict(zip(made["g"], made["probability"], strict=True)) == spelled
    assert (new.rows, new.new) == (7, 3)


def test_columns_with_dots(spark, tmp_path):
    path = make(tmp_path, "m.s,m.y,m.w\n0.5,a,1\n0.25,b,2\n")
    asked = {"score": "m.s", "label": "m.y", "weight": "m.w"}
    found = read_table([path], **asked, session=spark)
    assert found == read_table([path], **asked)
    path = make(tmp_path, "m.s,m_s\n0.5,0\n0.25,1\n")
    asked = {"score": "m.s", "label": "m_s"}
    found = read_table([path], **asked, session=spark)
    assert found.table == read_table([path], **asked).table


def test_a_label_that_comes_late_is_found(spark, tmp_path):
    lines = ["s,y", *["0.5,0"] * 10_500, "0.25,1", "0.25, 1", "0.75,+1"]
    path = make(tmp_path, "\n".join(lines))
    found = read_table([path], score="s", label="y", session=spark)
    assert found.classes == (0, 1)
    assert found.table == ScoreTable.from_counts([0.25, 0.5, 0.75], [0, 10_500, 0], [2, 0, 1])
    both = ["s,y", *["0.5,0", "0.5,1"] * 10_000, "0.25,TRUE"]
    with pytest.raises(InputError, match="label column 'y' must hold two classes"):
        read_table([make(tmp_path, "\n".join(both))], score="s", label="y", session=spark)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s,y\n0.5,0\nNA,1\n", "score column 's' must be finite: 1 of 2 is missing"),
        ("s,y\n0.5,0\ninf,1\n", "1 of 2 is infinite"),
        ("s,y\n0.5,0\n0.5,1\n0.5,\n", "label column 'y' must be complete: 1 of 3 is missing"),
        ("s,y\n0.5,0\n0.5,1\n0.5,NA\n", "label column 'y'|y must hold"),
        ("s,y\n0.5,0\n0.5,1\n0.5,2\n", "two classes, but at least 3"),
        ("s,y\n", "at least one row|only column names"),
        ("s,y\n0.5,0.3\n0.5,1\n", "soft labels"),
    ],
)
def test_bad_rows_of_files_are_refused(spark, tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        read_table([make(tmp_path, text)], score="s", label="y", session=spark)


def test_probabilities_must_be_some(spark, tmp_path):
    path = make(tmp_path, "s,y\n50,0\n99,1\n")
    with pytest.raises(InputError, match=r"must be probabilities in \[0, 1\].*from 50 to 99"):
        read_table([path], score="s", label="y", probabilities=True, session=spark)


# --- writing ------------------------------------------------------------------------------------


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
    values = [("1", " a "), ("2", None), ("3", 'q"x,\ty'), ("4", "line\nbreak")]
    frame = spark.session.createDataFrame(values, "i string, t string").repartition(2)
    make(tmp_path, "what was there", name)
    for _ in range(2):  # over a file, then over a folder
        assert write_file(spark, frame, form(tmp_path / name)) == 4
        assert collected(spark, [tmp_path / name], "i", "t") == values
        assert [path.name for path in tmp_path.iterdir()] == [name]
        assert (tmp_path / name / "_SUCCESS").exists()


def test_an_empty_frame_is_written(spark, tmp_path):
    frame = spark.session.range(3).filter("id > 5")
    assert write_file(spark, frame, tmp_path / "o.csv") == 0
    assert [path.read_text() for path in parts(tmp_path / "o.csv")] == ["id\n"]


def test_first_rows_and_standard_input(spark, tmp_path):
    engine = Engine(spark, engine_package)
    path = make(tmp_path, "p,y\n0.2,no\n0.7,yes\n0.5,no\n")
    assert engine.first_rows([path], 2) == {"p": ["0.2", "0.7"], "y": ["no", "yes"]}
    with pytest.raises(InputError, match=r"standard input \(-\) is read by the engine duckdb"):
        engine.first_rows(["-"], 2)
    bad = make(tmp_path, "s,y\n50%,1\n1%,0\n")
    with pytest.raises(InputError, match=r"'50%' came.*The engine duckdb reads .*percentages"):
        read_table([bad], score="s", label="y", session=spark)


@pytest.mark.parametrize("form", [str, url])
def test_outputs_that_are_refused(spark, tmp_path, form):
    frame = spark.session.range(3)
    (tmp_path / "mine.csv").mkdir()
    make(tmp_path / "mine.csv", "precious")
    with pytest.raises(InputError, match=r"mine\.csv is a folder with other files"):
        write_file(spark, frame, form(tmp_path / "mine.csv"))
    with pytest.raises(InputError, match="does not exist"):
        write_file(spark, frame, form(tmp_path / "no" / "o.csv"))
    with pytest.raises(InputError, match="must end in one of"):
        write_file(spark, frame, form(tmp_path / "o.xls"))
    with pytest.raises(InputError, match=r"permission denied|cannot be written"):
        write_file(spark, frame, form(Path("/proc/o.csv")))
    write_file(spark, frame, form(tmp_path / "o.parquet"))
    again = read_files(spark, [tmp_path / "o.parquet"]).frame
    with pytest.raises(InputError, match="another file than"):
        write_file(spark, again, form(tmp_path / "o.parquet"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.csv", "o.parquet"]


@pytest.mark.parametrize("form", [str, url])
def test_links_stay_and_pipes_are_no_folders(spark, tmp_path, form):
    (tmp_path / "store").mkdir()
    link, real = tmp_path / "o.csv", tmp_path / "store" / "real.csv"
    link.symlink_to("store/real.csv")
    for many in (3, 5):
        write_file(spark, spark.session.range(many), form(link))
        assert link.is_symlink()
        assert len(collected(spark, [real], "id")) == many
        assert [path.name for path in real.parent.iterdir() if path.suffix != ".crc"] == [real.name]
    os.mkfifo(tmp_path / "p.csv")
    with pytest.raises(InputError, match=r"writes a folder, but .*p\.csv is a pipe"):
        write_file(spark, spark.session.range(3), form(tmp_path / "p.csv"))
    part = next(real.glob("part-*"))
    (tmp_path / "hard.csv").hardlink_to(part)
    again = read_files(spark, [tmp_path / "hard.csv"]).frame
    with pytest.raises(InputError, match="another file than"):
        write_file(spark, again, form(tmp_path / "hard.csv"))
    with pytest.raises(InputError, match="another file than"):
        write_file(spark, read_files(spark, [part]).frame, form(tmp_path / "hard.csv"))
    with pytest.raises(InputError, match="another file than"):
        write_file(spark, read_files(spark, [part]).frame, form(link))


def test_a_folder_that_is_replaced_keeps_its_mode(spark, tmp_path):
    write_file(spark, spark.session.range(3), tmp_path / "o.csv")
    (tmp_path / "o.csv").chmod(0o700)
    write_file(spark, spark.session.range(5), tmp_path / "o.csv")
    assert (tmp_path / "o.csv").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("form", [str, url])
def test_a_failure_leaves_what_was_there(spark, tmp_path, form):
    from pyspark.sql import functions

    make(tmp_path, "old", "o.csv")
    bad = functions.when(functions.col("id") < 9_990, functions.col("id")).otherwise(
        functions.raise_error(functions.lit("calibrant: the last rows are bad")).cast("long")
    )
    frame = spark.session.range(0, 10_000, 1, 4).select(bad)
    with pytest.raises(InputError, match=r"^the last rows are bad"):
        write_file(spark, frame, form(tmp_path / "o.csv"))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("form", [str, url])
def test_an_interrupt_leaves_what_was_there(spark, tmp_path, form):
    make(tmp_path, "old", "o.parquet")
    endless = spark.session.range(0, 10**13, 1, 4).selectExpr("sqrt(id) AS x")
    with interrupted(1.2):
        write_file(spark, endless, form(tmp_path / "o.parquet"))
    time.sleep(0.5)  # tasks that were told to stop must not come back
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("form", [str, url])
def test_an_output_that_cannot_be_replaced_stays(spark, tmp_path, form, monkeypatch):
    """The last moment: the old folder has gone aside, and the new one does not come."""
    from calibrant.engines.spark import files as write

    def put(self):
        move = getattr(self, "system", None)
        if move is None:
            self.path.rename(self.old)
        else:
            move.rename(self.path, self.old)
        raise KeyboardInterrupt

    write_file(spark, spark.session.range(3), form(tmp_path / "o.csv"))
    for place in (write._Local, write._Remote):
        monkeypatch.setattr(place, "put", put)
    with pytest.raises(KeyboardInterrupt):
        write_file(spark, spark.session.range(5), form(tmp_path / "o.csv"))
    assert len(collected(spark, [tmp_path / "o.csv"], "id")) == 3
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".crc"] == ["o.csv"]


# --- applying to files --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_apply_to_files_equals_calibrate(spark, tmp_path, kind):
    data = rows(500, decimals=6)
    fitted = cal.Isotonic().fit(data["s"], data["y"]).to_fitted()
    path, out = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
    write(path, {"id": list(range(500)), "s": data["s"].tolist(), "g": data["g"].tolist()})
    assert apply_file(fitted, [path], out, score="s", into="q", session=spark) == 500
    read = read_files(spark, [out])
    names = [*read_files(spark, [path]).frame.columns, "q"]
    assert sorted(read.frame.columns) == sorted(names)
    found = spark.call(read.frame.selectExpr("int(id)", "double(q)", "double(s)", "g").collect)
    found.sort()
    assert [row[0] for row in found] == list(range(500))
    assert [row[2] for row in found] == data["s"].tolist()
    assert [row[3] for row in found] == data["g"].tolist()
    gap = np.abs(np.array([row[1] for row in found]) - fitted.calibrate(data["s"]))
    assert gap.max() < 1e-12


def test_apply_to_files_with_missing_scores(spark, tmp_path):
    path, out = make(tmp_path, "s,t\n0.9,x\nNA,y\n,z\n"), tmp_path / "out.csv"
    with pytest.raises(InputError, match=r"score column 's' must be complete.*on_missing"):
        apply_file(STEP, [path], out, score="s", session=spark)
    assert not out.exists()
    apply_file(STEP, [path], out, score="s", on_missing="null", session=spark)
    assert parts(out)[0].read_text() == "s,t,probability\n0.9,x,0.75\nNA,y,\n,z,\n"
    for text, said in (("inf", "infinite"), ("x", "must be numbers")):
        bad = make(tmp_path, f"s\n0.9\n{text}\n", "bad.csv")
        with pytest.raises(InputError, match=said):
            apply_file(STEP, [bad], out, score="s", on_missing="null", session=spark)
    assert len(parts(out)[0].read_text()) > 10
    bad = make(tmp_path, LATE + b"0.5,no,\xe3\n", "bad.csv")
    with pytest.raises(InputError, match=r"bad\.csv must be UTF-8 text"):
        apply_file(STEP, [bad], out, score="s", session=spark)
    assert len(parts(out)[0].read_text()) > 10
    with pytest.raises(ParameterError, match="on_missing must be 'error' or 'null'"):
        apply_file(STEP, [path], out, score="s", on_missing="drop", session=spark)


def test_apply_to_files_over_a_column(spark, tmp_path):
    path, out = make(tmp_path, "p,s\nold,0.9\n"), tmp_path / "out.csv"
    with pytest.raises(InputError, match="already has a column 'p'"):
        apply_file(STEP, [path], out, score="s", into="p", session=spark)
    apply_file(STEP, [path], out, score="s", into="p", overwrite_column=True, session=spark)
    assert parts(out)[0].read_text() == "p,s\n0.75,0.9\n"


# --- applying to JSON lines: every byte stays ---------------------------------------------------

ODD = [
    '{"score":0.2,"d":"20-01-02","t":"12:00","big":1000000000000000000000000000000}',
    '{"score": 0.7 , "n":"2020-01-01T00:00:00.123456789+02:00", "o":{"a":1.50}}',
    '{"u":"6F9619FF-8B86-D011-B42D-00CF4FC964FF","o":{"b":[1e5,0.10000000000000000001]},"score":1}',
    '{"Score":3,"score":0.5,"e":"\\u00e9é\\/","":null,"a/b~":{"score":0, "x":1},"c":"}"}',
    ' { "z":1, "score":null,"a":NaN,"k\\"\\u0022":"\\ud800"  } \t',
    "{ }",
]  # fmt: skip


def lines_of(folder: Path) -> list[bytes]:
    """All lines of the parts, without order."""
    return sorted(line for path in parts(folder) for line in path.read_bytes().split(b"\n") if line)


@pytest.mark.parametrize("form", [str, url])
def test_json_lines_keep_their_bytes(spark, tmp_path, form):
    folder = tmp_path / "land=a%2Fb" / "m=7"
    folder.mkdir(parents=True)
    answers = ("0.25", "0.75", "0.75", "0.75", "null", "null")
    ends = ["\n", "\r\n", "\n\n", "\n \t\r\n", "\n", ""]
    text = "".join(line + end for line, end in zip(ODD, ends, strict=True))
    bare, packed = make(tmp_path, text, "s.jsonl"), tmp_path / "o.jsonl.gz"
    below = make(folder, gzip.compress(text.encode()), "s.ndjson.gz")
    asked = {"score": "score", "into": "p q", "on_missing": "null", "session": spark}
    assert apply_file(STEP, [bare], form(tmp_path / "o.jsonl"), **asked) == 6
    assert apply_file(STEP, [below], form(packed), **asked) == 6
    expected, said = [], []
    for line, end, p in zip(ODD, ends, answers, strict=True):
        start, tail = line.rstrip()[:-1], "}" + line[len(line.rstrip()) :] + end.split("\n")[0]
        comma = "," if len(start) > 2 else ""
        expected.append(f'{start}{comma}"p q":{p}{tail}'.encode())
        said.append(f'{start}{comma}"land":"a/b","m":7,"p q":{p}{tail}'.encode())
    assert lines_of(tmp_path / "o.jsonl") == sorted(expected)
    assert {path.suffix for path in parts(tmp_path / "o.jsonl")} == {".json"}
    assert not list((tmp_path / "o.jsonl").glob(".*.txt*"))
    assert all(path.name.endswith(".json.gz") for path in parts(packed))
    found = b"\n".join(gzip.decompress(path.read_bytes()) for path in parts(packed)).split(b"\n")
    assert sorted(filter(None, found)) == sorted(said)
    assert len(collected(spark, [tmp_path / "o.jsonl"], "`p q`")) == 6


def test_arrays_of_json_are_not_rewritten(spark, tmp_path):
    path = make(tmp_path, '[{"s": 0.2, "big": 1e400, "o": {"a": 1.50}}]', "a.json")
    with pytest.raises(
        InputError, match=r"a.json must hold one object in a line, .* an array.* jq"
    ):
        apply_file(STEP, [path], tmp_path / "o.jsonl", score="s", session=spark)
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


NAN, INF = float("nan"), float("inf")
NOT_JSON = {
    "NaN": [0.5, NAN, None],
    "float": pa.array([-INF, 0.5, None], pa.float32()),
    "list": [[0.5], [None, NAN], None],
    "struct": [{"x": 0.5, "y": [INF]}, {"x": 0.5, "y": None}, None],
    "map": pa.array([[("a", NAN)], None, []], pa.map_(pa.string(), pa.float64())),
}


def test_json_never_holds_what_is_no_json(spark, tmp_path):
    fine = {
        "s": [0.2, 0.7, 0.1],
        "l": [[0.5, None], None, []],
        "t": [{"x": 0.5}, {"x": None}, None],
    }
    path, out = tmp_path / "a.parquet", tmp_path / "o.jsonl"
    pq.write_table(pa.table(fine), path)
    assert apply_file(STEP, [path], out, score="s", session=spark) == 3
    for name, values in NOT_JSON.items():
        pq.write_table(pa.table({**fine, name: values}), path)
        with pytest.raises(InputError, match=f"column '{name}' holds NaN or infinite numbers"):
            apply_file(STEP, [path], tmp_path / "p.jsonl", score="s", session=spark)
    assert not (tmp_path / "p.jsonl").exists()


def test_truth_values_are_scores_of_1_and_0(spark, tmp_path):
    path = make(tmp_path, "p,y\ntrue,1\n FALSE ,0\n0.5,1\n", "a.csv")
    read = read_files(spark, [path], ["p"])
    found = read.frame.select(read.number("p", "score").alias("p")).collect()
    assert sorted(row[0] for row in found) == [0.0, 0.5, 1.0]


def test_a_value_of_json_lines_is_replaced_in_its_place(spark, tmp_path):
    lines = [
        '{"p" : [1, {"p":2}] ,"s":0.2, "x":1.50}', '{ "s":0.7,"\\u0070":"},\\""}', '{"s":1 }\r',
        '{"a":{"p":1,"b":[":",{}]},"s":0.9,"p":\t-1.5e3\t}', '{"p":"é😀","s":0.2}',
    ]  # fmt: skip
    (tmp_path / "n=1").mkdir()
    path, out = make(tmp_path / "n=1", "\n".join(lines), "s.jsonl"), tmp_path / "o.jsonl"
    with pytest.raises(InputError, match="already has a column 'p'"):
        apply_file(STEP, [path], out, score="s", into="p", session=spark)
    apply_file(STEP, [path], out, score="s", into="p", overwrite_column=True, session=spark)
    assert lines_of(out) == sorted(
        line.encode()
        for line in [
            '{"p" : 0.25 ,"s":0.2, "x":1.50,"n":1}', '{ "s":0.7,"\\u0070":0.75,"n":1}',
            '{"s":1 ,"p":0.75,"n":1}\r', '{"a":{"p":1,"b":[":",{}]},"s":0.9,"p":\t0.75\t,"n":1}',
            '{"p":0.25,"s":0.2,"n":1}',
        ]
    )  # fmt: skip
    apply_file(STEP, [path], out, score="s", into="n", overwrite_column=True, session=spark)
    assert b'{"s":1 ,"n":0.75}\r' in lines_of(out)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"s":0.2}\n{"s":0.2,"\\u0073":0.7}\n', "must come once in a row, but 's' comes twice"),
        (b'{"s":0.2,"t":{"u":1}}\n{"s":0.2} {"s":0.3}\n', "one object in a line, but .* came"),
        (b'{"s":0.2},{"s":0.3}\n', "one object in a line"),
        (b'{"s":0.2}] {}\n', "one object in a line"),
        (b'{"s":0.2}\n[{"s":0.3}]\n', "one object in a line"),
        (b'{"s":0.2}\n3\n', "must hold objects"),
        (b"{'s':0.2}\n", "is no JSON"),
        (b'{"s":0.2,"t":"\xff"}\n', "UTF-8"),
        (b'{"s":0.2}\n{"s":null}\n', "must be complete"),
        (b'{"s":0.2}\n{"s":"1_0"}\n', "must be numbers, but '1_0' came"),
        (b'{"s":{"a":1}}\n', "must be numbers, but its type is struct"),
        (b'{"t":1}\n', "no column 's'"),
    ],
)
def test_json_lines_that_are_refused(spark, tmp_path, text, said):
    path, out = make(tmp_path, text, "s.jsonl"), tmp_path / "o.jsonl"
    with pytest.raises(InputError, match=said):
        apply_file(STEP, [path], out, score="s", session=spark)
    assert not out.exists()


def test_segments_of_json_lines(spark, tmp_path):
    step = Piecewise.step([0.5], [0.25, 0.75])
    map_ = Segmented(step, (1, 2), (step, Piecewise.constant(0.5)))
    lines = ['{"g":2,"s":0.9}', '{"s":0.9, "g":7 }', '{"s":0.1,"g":1}']
    path, out = make(tmp_path, "\n".join(lines), "s.jsonl"), tmp_path / "o.jsonl"
    new, fitted = NewSegments(), Fitted(map_, (0, 1), 1)
    asked = {"score": "s", "segment": "g", "new_segments": new, "session": spark}
    assert apply_file(fitted, [path], out, **asked) == 3
    answers = ("0.5", "0.75", "0.25")
    expected = [f'{x[:-1]},"probability":{p}}}' for x, p in zip(lines, answers, strict=True)]
    assert lines_of(out) == sorted(line.encode() for line in expected)
    assert (new.rows, new.new, new.example) == (3, 1, "7")


def test_json_lines_below_folders_behind_urls(spark, tmp_path):
    top, out = tmp_path / "t.jsonl", tmp_path / "o.jsonl"
    (top / "day=3").mkdir(parents=True)
    make(top / "day=3", '{"s": 0.9}\n', "x.jsonl")
    assert apply_file(STEP, [url(top)], out, score="s", session=spark) == 1
    assert lines_of(out) == [b'{"s": 0.9,"day":3,"probability":0.75}']
    make(top / "day=3", '{"s": 0.9, "day": 4}\n', "x.jsonl")
    with pytest.raises(InputError, match=r"have a column 'day', and their folders are named day="):
        apply_file(STEP, [url(top)], out, score="s", session=spark)


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


# --- a cluster of several processes: pytest -m cluster ------------------------------------------

CLUSTER = """
import json, os, pathlib, signal, sys, threading, time
from pyspark.find_spark_home import _find_spark_home
sys.path.insert(0, sys.argv[2])
import calibrant as cal
from calibrant.engines import spark as engine_package
from calibrant.engines.open_engine import Engine
from calibrant.engines.spark import Spark, read_files, write_file
from calibrant.errors import InputError
from file_jobs import apply_file, read_table
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
                    "there": (folder / "out-kill.parquet").exists(),
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
    data = read_files(spark, [folder / "in"]).frame.filter(slow)
    for mode, run in (("calm", calm), ("kill", disturbed)):
        grouped = lambda: cal.score_table(data, score="s", label="y", weight="w", cells=4096)
        table = run(spark, "table", grouped)
        columns = {n: getattr(table, n).tolist() for n in ("scores", "negative", "positive")}
        (folder / f"table-{mode}.json").write_text(json.dumps(columns))
        applied = cal.add_probabilities(cal.load(folder / "map.json"), data, score="s", into="q")
        out = folder / f"out-{mode}.parquet"
        facts["rows"][mode] = run(spark, "apply", lambda: write_file(spark, applied, out))
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
            assert not kill["there"]  # the output, before its end
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
