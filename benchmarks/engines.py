"""Tables, fits, probabilities and measures of 10⁷ and 10⁸ rows on DuckDB, Polars and Spark."""

from __future__ import annotations

import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import calibrant as cal
from benchmarks.harness import setting, write

SIZES = (10**7, 10**8)
#: how often each job runs, each time in a process of its own
REPEATS = {"DuckDB": 3, "Polars": 3, "Spark": 1}
#: other engines only up to here
SMALL = 10**7
CHUNK = 10**6
SEGMENTS = 1000
CELLS = 2**14
MEMORY = "600MB"
THREADS = 2
COLUMNS: dict[str, Any] = {"score": "score", "label": "label", "weight": "weight"}


def make(n: int, path: Path) -> None:
    """Scores in (0, 1) that say too much, probabilities that are nearly right, one positive in 40,
    weights, ids and uneven segments."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    writer = None
    for first in range(0, n, CHUNK):
        m = min(CHUNK, n - first)
        z = rng.normal(-4.5, 1.5, m)
        segment = (SEGMENTS * rng.random(m) ** 2).astype(np.int32)
        known = 0.8 * z - 0.5 + 0.4 * np.sin(z)
        truth = known + 0.5 * np.sin(segment)
        columns = {
            "score": 1.0 / (1.0 + np.exp(-z)),
            "label": (rng.random(m) < 1.0 / (1.0 + np.exp(-truth))).astype(np.int8),
            "weight": rng.gamma(4.0, 0.25, m),
            "probability": 1.0 / (1.0 + np.exp(-known)),
            "id": np.arange(first, first + m),
            "segment": segment,
        }
        table = pa.table(columns)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=250_000)
    if writer is not None:
        writer.close()


# --- engines ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Engine:
    """How an engine opens a file, and how it writes one column of a frame to another."""

    read: Callable[[Path, ExitStack], Any]
    plain: Callable[[Any], Any]
    save: Callable[[Any, str, Path], object]


def _read_duckdb(path: Path, stack: ExitStack) -> Any:
    import duckdb

    spill = stack.enter_context(tempfile.TemporaryDirectory())
    settings: dict[str, Any] = {"threads": THREADS, "memory_limit": MEMORY, "temp_directory": spill}
    connection = stack.enter_context(duckdb.connect(config=settings))
    connection.execute("SET enable_progress_bar = false")
    return connection.read_parquet(str(path))


def _read_polars(path: Path, stack: ExitStack) -> Any:
    import polars as pl

    return pl.scan_parquet(path)


def _read_spark(path: Path, stack: ExitStack) -> Any:
    from pyspark.sql import SparkSession

    folder = stack.enter_context(tempfile.TemporaryDirectory())
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(THREADS),
        "spark.driver.memory": "1g",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": folder,
    }
    builder = SparkSession.builder.master(f"local[{THREADS}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    stack.callback(session.stop)
    session.sparkContext.setLogLevel("OFF")
    frame = session.read.parquet(str(path))
    frame.selectExpr("sum(score + label + weight)").collect()  # not the start of a JVM is measured
    return frame


def _plain_polars(frame: Any) -> Any:
    import polars as pl

    return frame.select(plain=pl.col("score") + pl.col("label") + pl.col("weight"))


ENGINES = {
    "DuckDB": Engine(
        _read_duckdb,
        lambda frame: frame.project("score + label + weight AS plain"),
        lambda frame, column, out: frame.project(column).write_parquet(str(out)),
    ),
    "Polars": Engine(
        _read_polars,
        _plain_polars,
        lambda frame, column, out: frame.select(column).sink_parquet(out),
    ),
    "Spark": Engine(
        _read_spark,
        lambda frame: frame.selectExpr("score + label + weight AS plain"),
        lambda frame, column, out: frame.select(column).write.mode("overwrite").parquet(str(out)),
    ),
}


# --- jobs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """What a job is given: an open frame, its engine, and a folder to keep things in."""

    frame: Any
    engine: Engine
    folder: Path

    def file(self, name: str) -> Path:
        return self.folder / name


def _baseline(place: Place) -> None:
    place.engine.save(place.engine.plain(place.frame), "plain", place.file("out.parquet"))


def _table(place: Place) -> None:
    cal.score_table(place.frame, **COLUMNS)


def _cells(place: Place) -> None:
    cal.score_table(place.frame, cells=CELLS, **COLUMNS)


def _isotonic(place: Place) -> None:
    cal.save(cal.fit_isotonic(place.frame, **COLUMNS), place.file("Isotonic.json"))


def _evaluate(place: Place) -> None:
    cal.evaluate(place.frame, "score", label="label", sample_weight="weight")


def _evaluate_both(place: Place) -> None:
    cal.evaluate(place.frame, "probability", label="label", raw="score")


def _segments(place: Place) -> None:
    tables = cal.segment_tables(place.frame, segment="segment", **COLUMNS)
    cal.save(cal.SegmentedCalibrator().fit_tables(tables), place.file("Segmented.json"))


def _apply(name: str, segment: str | None, place: Place) -> None:
    frame = cal.add_probabilities(
        cal.load(place.file(f"{name}.json")), place.frame, score="score", segment=segment
    )
    place.engine.save(frame, "probability", place.file("out.parquet"))


#: what is applied: the file that another job saved, and the column of segments
APPLY = {
    "apply: sigmoid (Platt)": ("Platt", None),
    "apply: lines on the logit scale (BLS)": ("BLS", None),
    "apply: steps (isotonic)": ("Isotonic", None),
    "1,000 segments: apply": ("Segmented", "segment"),
}
JOBS: dict[str, Callable[[Place], None]] = {
    "read three columns, write one (the baseline)": _baseline,
    "table": _table,
    f"table, {CELLS:,} cells": _cells,
    "fit_isotonic": _isotonic,
    "evaluate": _evaluate,
    "evaluate, probabilities beside raw scores": _evaluate_both,
    "1,000 segments: tables and fit": _segments,
    **{job: functools.partial(_apply, *what) for job, what in APPLY.items()},
}
BASELINE, *_ = JOBS
#: how many times the baseline a job may take, by the first word
LIMITS = {"table": 3.0, "table,": 3.0, "fit_isotonic": 8.0, "evaluate,": 12.0, "apply:": 2.5}
#: fitted once, before anything is measured
APPLIED = {"Platt": cal.Platt, "BLS": cal.BLS}


def prepare(path: Path) -> None:
    """Fit and save the calibrators that are only applied."""
    with ExitStack() as stack:
        table = cal.score_table(_read_duckdb(path, stack), cells=CELLS, **COLUMNS)
    for name, kind in APPLIED.items():
        cal.save(kind().fit_table(table), path.parent / f"{name}.json")


def measure(engine: str, job: str, path: Path) -> dict[str, float]:
    """Seconds of a job in this process, seconds of CPU, and the most memory it ever held."""
    with ExitStack() as stack:
        frame = ENGINES[engine].read(path, stack)
        place = Place(frame, ENGINES[engine], path.parent)
        begin, before = time.perf_counter(), time.process_time()
        JOBS[job](place)
        wall, cpu = time.perf_counter() - begin, time.process_time() - before
    return {"seconds": wall, "CPU seconds": cpu, "megabytes": _peak()}


def _peak() -> float:
    """VmHWM: ru_maxrss would count the process that this one was forked from."""
    try:
        text = Path("/proc/self/status").read_text(encoding="utf-8")
        kilobytes = float(text.split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes * 1.024 / 1000


# --- how far from memory ------------------------------------------------------------------------


def differences(path: Path) -> dict[str, float]:
    """The largest difference of each job's probabilities to those of arrays in memory."""
    with ExitStack() as stack:
        frame = _read_duckdb(path, stack)
        found = {"fit_isotonic": _fit_difference(frame, path.parent)}
        for job, (name, segment) in APPLY.items():
            fitted = cal.load(path.parent / f"{name}.json")
            made = cal.add_probabilities(fitted, frame, score="score", segment=segment)
            rows = made.project("score, segment, probability").to_arrow_table()
            s, g, p = (rows[column].to_numpy() for column in rows.column_names)
            segments = {"segments": g} if segment else {}
            found[job] = float(np.abs(fitted.calibrate(s, **segments) - p).max())
    return found


def _fit_difference(frame: Any, folder: Path) -> float:
    rows = frame.project("score, label, weight").to_arrow_table()
    s, y, w = (rows[column].to_numpy() for column in rows.column_names)
    near = cal.Isotonic().fit(s, y, w).calibrate(s)
    return float(np.abs(near - cal.load(folder / "Isotonic.json").calibrate(s)).max())


# --- the run ------------------------------------------------------------------------------------


def _child(*words: str) -> Any:
    """What this file answers to a command, in a process of its own."""
    settings = {
        "OMP_NUM_THREADS": "1",
        "POLARS_MAX_THREADS": str(THREADS),
        "POLARS_ENGINE_AFFINITY": "streaming",
    }
    command = [sys.executable, "-m", "benchmarks.engines", *words]
    environment = {**os.environ, **settings}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def lines(engine: str, n: int, path: Path) -> list[dict[str, object]]:
    """All measurements of one engine and one N; the jobs take turns."""
    taken: dict[str, list[dict[str, float]]] = {job: [] for job in JOBS}
    for _ in range(REPEATS[engine] if n <= SMALL else 1):
        for job in JOBS:
            taken[job].append(_child("job", engine, job, str(path)))
            print(engine, f"{n:,}", job, taken[job][-1], flush=True)
    gaps = _child("differences", str(path)) if (engine, n) == ("DuckDB", SMALL) else {}
    base = {key: median(run[key] for run in taken[BASELINE]) for key in taken[BASELINE][0]}
    found: list[dict[str, object]] = []
    for job, runs in taken.items():
        seconds, cpu, peak = (median(run[key] for run in runs) for key in runs[0])
        limit = LIMITS.get(job.split()[0])
        found.append(
            {
                "engine": engine,
                "N": f"{n:,}",
                "what": job,
                "seconds": f"{seconds:.2f}",
                "CPU seconds": "" if engine == "Spark" else f"{cpu:.2f}",
                "× baseline": f"{seconds / base['seconds']:.2f}",
                "× its CPU": "" if engine == "Spark" else f"{cpu / base['CPU seconds']:.2f}",
                "at most": f"{limit:g}" if limit else "",
                "peak memory, MB": "" if engine == "Spark" else f"{peak:.0f}",
                "largest difference": f"{gaps[job]:.1e}" if job in gaps else "",
            }
        )
    return found


def run(sizes: list[int]) -> None:
    """Measure and write ``results/engines.md`` and ``results/engines.csv``."""
    loads, rows = [os.getloadavg()[0]], []
    for n in (size for size in SIZES if size <= max(sizes)):
        with tempfile.TemporaryDirectory(prefix="calibrant-benchmark-") as folder:
            path = Path(folder) / "rows.parquet"
            _child("make", str(n), str(path))
            _child("prepare", str(path))
            for engine in ENGINES if n <= SMALL else ["DuckDB"]:
                rows += lines(engine, n, path)
                loads.append(os.getloadavg()[0])
    heading = f"""# Larger than memory

Jobs on one Parquet file, {THREADS} threads, median of 3 runs at 10⁷ rows (Spark: 1) and one run at
10⁸, each in a process of its own; the jobs took turns. The baseline reads score, label and weight
and writes their sum as one Parquet column; apply writes one Parquet column too. DuckDB's
memory_limit is {MEMORY}; Polars runs its streaming engine; Spark is local[{THREADS}], already
started. Peak memory is that of the whole process, Python included. The last column is the largest
difference of any row's probability to the one in memory: to another fit for fit_isotonic, to
`calibrate` for apply.

{setting(["calibrant", "numpy", "narwhals", "duckdb", "polars", "pyspark", "pyarrow"])}. One-minute
load average before and after each engine: {", ".join(f"{load:.1f}" for load in loads)}. Made by
`python -m benchmarks engines --max 1e8`."""
    write("engines", rows, heading)


COMMANDS: dict[str, Callable[..., Any]] = {
    "make": lambda n, path: make(int(n), Path(path)),
    "prepare": lambda path: prepare(Path(path)),
    "job": lambda engine, job, path: measure(engine, job, Path(path)),
    "differences": lambda path: differences(Path(path)),
}


if __name__ == "__main__":
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
