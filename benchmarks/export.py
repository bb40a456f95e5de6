"""Exported calibrators: how far from `calibrate`, and how long as a multiple of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import duckdb
import numpy as np
import onnxruntime

import calibrant as cal
from benchmarks.harness import setting, write

ROWS = 10**6
#: single calls of the Python function
CALLS = 10**5
REPEATS = 5


def subjects() -> Iterator[tuple[str, Any]]:
    """Calibrators of each form of map, fitted to as many rows as give them their usual size."""
    rng = np.random.default_rng(0)
    for name, calibrator, rows in (
        ("Platt: a formula", cal.Platt(), 10_000),
        ("Beta: a formula", cal.Beta(), 10_000),
        ("Isotonic: steps", cal.Isotonic(), 10_000),
        ("Isotonic: many steps", cal.Isotonic(), 1_000_000),
        ("Isotonic: lines of the score", cal.Isotonic(interpolation="linear"), 10_000),
        ("BLS: lines of the logit", cal.BLS(), 10_000),
    ):
        s = rng.random(rows)
        yield name, calibrator.fit(s, rng.random(rows) < s**2)


def targets(calibrator: Any, scores: Any) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Each target's name, the rows it evaluates, and the work; all of it on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    for bits, kind in ((64, np.float64), (32, np.float32)):
        graph = cal.to_onnx(calibrator, float=bits).SerializeToString()
        session = onnxruntime.InferenceSession(graph, options, ["CPUExecutionProvider"])
        given = {"score": scores.astype(kind)}
        yield f"ONNX, {bits} bit", ROWS, lambda s=session, g=given: s.run(None, g)[0]
    database = duckdb.connect(config={"threads": 1})
    database.register("given", {"score": scores})
    database.execute("CREATE TABLE scores AS SELECT * FROM given")
    *made, query = cal.to_sql(calibrator, form="lookup").statements
    for statement in made:
        database.execute(statement)
    if len(getattr(calibrator.map_, "x", ())) <= 2_000:
        text = cal.to_sql(calibrator, form="expression")
        plain = f"SELECT {text} AS probability FROM scores"
        yield "SQL expression, DuckDB", ROWS, lambda: _column(database, plain)
    yield "SQL lookup, DuckDB", ROWS, lambda: _column(database, query)
    module: dict[str, Any] = {}
    exec(cal.to_python(calibrator), module)
    few, function = scores[:CALLS].tolist(), module["calibrate"]
    yield "Python, call by call", CALLS, lambda: np.array([function(s) for s in few])


def _column(database: Any, query: str) -> Any:
    return database.execute(query).fetchnumpy()["probability"]


def taken(work: Callable[[], Any]) -> float:
    """Median CPU seconds of a call; the first, which may compile, does not count."""
    work()
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return median(seconds)


def run(sizes: list[int]) -> None:
    scores = np.random.default_rng(1).random(ROWS)
    rows: list[dict[str, object]] = []
    for name, calibrator in subjects():
        wanted = calibrator.calibrate(scores)
        single = calibrator.calibrate(scores.astype(np.float32).astype(np.float64))
        alone = taken(lambda c=calibrator: c.calibrate(scores))
        for target, count, work in targets(calibrator, scores):
            truth = single if "32" in target else wanted
            found = np.asarray(work(), dtype=np.float64)
            if "lookup" in target:  # a join keeps no order, and every map here rises
                found, truth = np.sort(found), np.sort(truth)
            cost = taken(work) / count
            rows.append(
                {
                    "calibrator": name,
                    "knots": len(getattr(calibrator.map_, "x", ())) or "–",
                    "as": target,
                    "× calibrate": f"{cost / (alone / ROWS):.2g}",
                    "µs per row": f"{1e6 * cost:.2g}",
                    "largest difference": f"{np.abs(found - truth[:count]).max():.1e}",
                }
            )
            print(rows[-1])
    heading = (
        f"# Exported calibrators\n\n`python -m benchmarks export`: {ROWS:,} random scores "
        f"({CALLS:,} calls of the Python function), one thread, CPU time against `calibrate` in "
        "the same run (its own check of the scores included). The largest difference is from "
        "`calibrate`, for 32 bits from `calibrate` at the float32 scores.\n\n"
        + setting(("calibrant", "numpy", "onnxruntime", "duckdb"))
    )
    write("export", rows, heading)
