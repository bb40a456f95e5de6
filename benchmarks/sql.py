"""SQL: what an expression costs as a multiple of a lookup, by dialect and number of pieces.

DuckDB and SQLite run in this process, Spark where pyspark and Java are. Servers on this machine are
measured where their drivers are installed and these say where they listen::

    CALIBRANT_POSTGRES="host=127.0.0.1 user=postgres"     (psycopg2)
    CALIBRANT_MARIADB="host=127.0.0.1 port=3306 user=root"  (pymysql)
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import calibrant as cal
from benchmarks.harness import setting, write
from calibrant.maps import Piecewise

ROWS = 300_000
PIECES = (8, 40, 200, 600)
#: how often work is repeated, and for how many seconds in all
TIMES, LONG = 5, 10.0
TICKS = os.sysconf("SC_CLK_TCK")

Run = Callable[[str], float]
Engine = tuple[str, Run, Callable[[], float]]


def cpu_of(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def maps() -> Iterator[tuple[str, int, Any]]:
    """Steps, and lines of the logit, of each size, crowded where scores are."""
    rng = np.random.default_rng(0)
    for count in PIECES:
        x = np.sort(rng.beta(0.7, 2.0, count - 1))
        yield "steps", count, Piecewise.step(x, np.linspace(0.01, 0.99, count))
        z = np.log(x / (1.0 - x))
        bent = 0.8 * z + 0.1 * np.sin(3.0 * z)
        yield "lines of the logit", count, Piecewise.linear(z, bent, "logit", "logit")


# --- engines ------------------------------------------------------------------------------------


@contextlib.contextmanager
def on_duckdb(scores: Any) -> Iterator[list[Engine]]:
    with duckdb.connect(config={"threads": 1}) as database:
        database.register("given", {"score": scores})
        database.execute("CREATE TABLE scores AS SELECT * FROM given")
        yield [("duckdb", _rows(database), time.process_time)]


@contextlib.contextmanager
def on_sqlite(scores: Any) -> Iterator[list[Engine]]:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE scores (score REAL)")
    database.executemany("INSERT INTO scores VALUES (?)", [(s,) for s in scores.tolist()])
    yield [("sqlite", _rows(database), time.process_time)]
    database.close()


@contextlib.contextmanager
def on_spark(scores: Any) -> Iterator[list[Engine]]:
    from calibrant.engines.spark import Spark

    with tempfile.TemporaryDirectory() as folder:
        settings = {"spark.sql.warehouse.dir": folder, "spark.sql.shuffle.partitions": "1"}
        with Spark(threads=1, memory="2GB", config=settings) as spark:
            import pyarrow as pa

            frame = spark.session.createDataFrame(pa.table({"score": scores})).cache()
            frame.createOrReplaceTempView("scores")
            pid = int(spark.session._jvm.java.lang.ProcessHandle.current().pid())

            def run(query: str) -> float:
                found = spark.session.sql(query).collect()
                return float(found[0][0]) if found else 0.0

            yield [("spark", run, lambda: cpu_of(pid))]


@contextlib.contextmanager
def on_postgres(scores: Any) -> Iterator[list[Engine]]:
    import psycopg2

    connection = psycopg2.connect(os.environ["CALIBRANT_POSTGRES"])
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("SET max_parallel_workers_per_gather = 0")
    cursor.execute("CREATE TEMP TABLE scores (score DOUBLE PRECISION)")
    _insert(cursor, scores)
    cursor.execute("ANALYZE scores")
    cursor.execute("SELECT pg_backend_pid()")
    (pid,) = cursor.fetchone()

    def run(query: str, jit: str) -> float:
        cursor.execute(f"SET jit = {jit}")
        return _first(cursor, query)

    clock = lambda: cpu_of(pid)  # noqa: E731
    yield [
        ("postgres", lambda query: run(query, "on"), clock),
        ("postgres, jit = off", lambda query: run(query, "off"), clock),
    ]
    connection.close()


@contextlib.contextmanager
def on_mariadb(scores: Any) -> Iterator[list[Engine]]:
    import pymysql

    where = dict(part.split("=", 1) for part in os.environ["CALIBRANT_MARIADB"].split())
    port = int(where.pop("port", 3306))
    connection = pymysql.connect(port=port, autocommit=True, **where)
    cursor = connection.cursor()
    cursor.execute("CREATE DATABASE IF NOT EXISTS calibrant_bench")
    cursor.execute("USE calibrant_bench")
    cursor.execute("CREATE OR REPLACE TABLE scores (score DOUBLE)")
    _insert(cursor, scores)
    cursor.execute("SELECT @@pid_file")
    pid = int(Path(cursor.fetchone()[0]).read_text())
    yield [("mysql", lambda query: _first(cursor, query), lambda: cpu_of(pid))]
    cursor.execute("DROP DATABASE calibrant_bench")
    connection.close()


def _insert(cursor: Any, scores: Any) -> None:
    for part in np.array_split(scores, 60):
        values = ", ".join(f"({s!r})" for s in part.tolist())
        cursor.execute(f"INSERT INTO scores VALUES {values}")


def _rows(database: Any) -> Run:
    return lambda query: _first(database.execute(query), "")


def _first(cursor: Any, query: str) -> float:
    if query:
        cursor.execute(query)
    found = cursor.fetchone() if cursor.description else None
    return float(found[0] or 0.0) if found else 0.0


def engines() -> Iterator[Any]:
    """Those at hand."""
    yield on_duckdb
    yield on_sqlite
    if os.environ.get("CALIBRANT_POSTGRES") and find_spec("psycopg2"):
        yield on_postgres
    if os.environ.get("CALIBRANT_MARIADB") and find_spec("pymysql"):
        yield on_mariadb
    if find_spec("pyspark"):
        yield on_spark


# --- measuring ----------------------------------------------------------------------------------


def taken(run: Run, query: str, clock: Callable[[], float], truth: float) -> float:
    """CPU seconds of a query that gives the right sum: the least of some."""
    seconds: list[float] = []
    while len(seconds) < TIMES and sum(seconds) < LONG:
        start = clock()
        found = run(f"SELECT SUM(probability) AS p FROM ({query}) AS q")
        seconds.append(clock() - start)
        if abs(found - truth) > 1e-6 * truth:
            raise AssertionError(f"{found} came, but {truth} is right")
    return min(seconds)


def run(sizes: list[int]) -> None:
    scores = np.random.default_rng(1).beta(0.7, 2.0, ROWS)
    rows: list[dict[str, object]] = []
    for engine in engines():
        with engine(scores) as found:
            for name, work, clock in found:
                rows += _measured(name, work, clock, scores)
    write("sql", rows, _heading())


def _heading() -> str:
    return (
        f"# SQL: expression or lookup\n\n`python -m benchmarks sql`: CPU time of {ROWS:,} rows by "
        "one thread, the sum of their probabilities; the least of a few. Compiling counts. "
        'What `form="auto"` writes is in the last column; its limits are characters, by dialect. '
        "`mysql` is MariaDB.\n\n" + setting(("calibrant", "duckdb", "pyspark"))
    )


def _measured(name: str, work: Run, clock: Any, scores: Any) -> Iterator[dict[str, object]]:
    dialect = name.split(",", maxsplit=1)[0]
    for kind, count, map_ in maps():
        truth = float(map_(scores).sum())
        text = cal.to_sql(map_, dialect=dialect, form="expression")
        plain = taken(work, f"SELECT {text} AS probability FROM scores", clock, truth)
        *made, query = cal.to_sql(map_, dialect=dialect, form="lookup").statements
        for statement in made:
            work(statement)
        joined = taken(work, query, clock, truth)
        row: dict[str, object] = {
            "dialect": name,
            "map": kind,
            "pieces": count,
            "characters": len(text),
            "expression, µs per row": f"{1e6 * plain / ROWS:.2g}",
            "lookup, µs per row": f"{1e6 * joined / ROWS:.2g}",
            "expression / lookup": f"{plain / max(joined, 1e-9):.2g}",
            "auto": "lookup" if cal.to_sql(map_, dialect=dialect).statements else "expression",
        }
        print(row, flush=True)
        yield row
