"""Whether a change made things slower: CPU time of everyday calls in two checkouts.

``python -m benchmarks.before_after FOLDER`` compares the checkout in FOLDER (before) with this one
(after). Each call is timed in processes of either checkout in turn, so that what else the machine
does falls on both. A call that a checkout does not know has no figure.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent.parent
#: processes of each checkout
TURNS = 5
#: a ratio beyond this is marked
LIMIT = 1.1
SMALL, LARGE = 2_000, 1_000_000

FITS = ("Platt", "Beta", "Isotonic", "Histogram", "Spline", "BLS", "VennAbers", "BBQ", "SBB", "ABB",
        "ENIR", "ELiTE")  # fmt: skip
FITS_OF_MANY = ("Platt", "Isotonic", "BLS", "ENIR")


# --- in a process of one checkout -----------------------------------------------------------------


def calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """What is timed, by what it does."""
    import numpy as np
    import pandas as pd

    import calibrant as cal

    random = np.random.default_rng(0)
    scores = random.random(LARGE)
    labels = (random.random(LARGE) < scores**1.5).astype(int)
    s, y = scores[:SMALL], labels[:SMALL]
    logits = random.normal(size=(20_000, 10))
    classes = (logits + random.gumbel(size=logits.shape)).argmax(axis=1)
    pd.DataFrame({"score": scores, "label": labels}).to_parquet(folder / "rows.parquet")

    found: dict[str, Callable[[], Any]] = {}
    for name in FITS:
        found[f"fit {name}, {SMALL:,} rows"] = lambda name=name: getattr(cal, name)().fit(s, y)
    for name in FITS_OF_MANY:
        found[f"fit {name}, {LARGE:,} rows"] = lambda name=name: getattr(cal, name)().fit(
            scores, labels
        )
    steps, smooth = cal.Isotonic().fit(scores, labels), cal.BLS().fit(s, y)
    auto = cal.AutoCalibrator().fit(s, y)
    found |= {
        f"fit AutoCalibrator, {SMALL:,} rows": lambda: cal.AutoCalibrator().fit(s, y),
        "fit Temperature, 20,000 × 10": lambda: cal.Temperature().fit(logits, classes),
        f"apply Isotonic, {LARGE:,} rows": lambda: steps.calibrate(scores),
        f"apply BLS, {LARGE:,} rows": lambda: smooth.calibrate(scores),
        f"evaluate {SMALL:,} rows": lambda: cal.evaluate(y, s),
        f"evaluate {LARGE:,} rows": lambda: cal.evaluate(labels, scores),
        "SQL of BLS": lambda: cal.to_sql(smooth),
        "Python of BLS": lambda: cal.to_python(smooth),
        "ONNX of BLS": lambda: cal.to_onnx(smooth),
        "save and load": lambda: _saved_and_loaded(cal, auto, folder),
        "command fit": lambda: _command(
            ["fit", "rows.parquet", "--method", "platt", "-o", "p.json"]
        ),
        "command evaluate": lambda: _command(["evaluate", "rows.parquet", "-p", "score"]),
    }
    return found


def _saved_and_loaded(cal: Any, fitted: Any, folder: Path) -> Any:
    cal.save(fitted, folder / "auto.json")
    return cal.load(folder / "auto.json")


def _command(words: list[str]) -> None:
    from calibrant.cli import main

    try:
        main([*words, "--label", "label"])
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"calibrant {' '.join(words)} ended with {end.code}") from None


def timed(work: Callable[[], Any]) -> float | None:
    """Median CPU seconds of a call that is known here."""
    taken: list[float] = []
    try:
        work()
        begin = time.perf_counter()
        while len(taken) < 3 or (time.perf_counter() - begin < 0.3 and len(taken) < 15):
            gc.collect()
            start = time.process_time()
            work()
            taken.append(time.process_time() - start)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return None
    return median(taken)


def child() -> None:
    import calibrant

    wanted, ran = Path(os.environ["PYTHONPATH"]).resolve(), Path(calibrant.__file__).resolve()
    if not ran.is_relative_to(wanted):
        raise SystemExit(f"the code in {wanted} was to run, but {ran} did")
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        out, sys.stdout = sys.stdout, sys.stderr  # commands print, too
        warnings.simplefilter("ignore")
        found = {name: timed(work) for name, work in calls(Path(place)).items()}
        json.dump(found, out)


# --- both of them ---------------------------------------------------------------------------------


def measured(checkout: Path) -> dict[str, float | None]:
    env = {**os.environ, "PYTHONPATH": str(checkout / "src"), "PYTHONWARNINGS": "ignore"}
    words = [sys.executable, str(Path(__file__).resolve()), "--child"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the calls of {checkout} failed:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("before", type=Path, nargs="?", help="a checkout of the code as it was")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"processes of each ({TURNS})")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.child:
        child()
        return
    if told.before is None or not (told.before / "src" / "calibrant").is_dir():
        parser.error("name a folder with a checkout: git worktree add FOLDER COMMIT")
    runs: tuple[list[Any], list[Any]] = ([], [])
    for turn in range(told.turns):
        for checkout, kept in zip((told.before, HERE), runs, strict=True):
            kept.append(measured(checkout))
        print(f"turn {turn + 1} of {told.turns}", file=sys.stderr, flush=True)
    print("| call | before, ms | after, ms | after / before |\n|---|---|---|---|")
    for name in runs[1][0]:
        times = [[run[name] for run in kept if run.get(name) is not None] for kept in runs]
        shown = [f"{1e3 * median(each):.3g}" if each else "–" for each in times]
        ratio = median(times[1]) / median(times[0]) if all(times) else None
        mark = "" if ratio is None else f"{ratio:.2f}" + " (slower)" * (ratio > LIMIT)
        print(f"| {name} | {shown[0]} | {shown[1]} | {mark} |")


if __name__ == "__main__":
    main()
