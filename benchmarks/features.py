"""FeatureCalibrator: fit beside one LightGBM fit of as many trees, and rows per second to apply."""

from __future__ import annotations

import time
import warnings

import numpy as np

from benchmarks.harness import add, setting, write
from calibrant import FeatureCalibrator
from calibrant.methods.features.calibrator import FEW_ROWS

SIZES = (10**4, 10**5, 10**6)
COLUMNS = 20
HEADING = (
    f"# FeatureCalibrator at {COLUMNS} columns of numbers\n\n"
    "A fit holds rows out, chooses the number of rounds, judges them, and fits again to all rows. "
    "LightGBM alone is one fit of as many trees with the same options. All by CPU time; to apply "
    "includes reading the columns. Made by `python -m benchmarks features`."
)


def rows(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores that miss an interaction and a line of 20 columns, and what came."""
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(n, COLUMNS)), rng.normal(size=n)
    z = s + 0.5 * X[:, 0] * (X[:, 1] > 0) - 0.4 * X[:, 2]
    return 1.0 / (1.0 + np.exp(-s)), rng.random(n) < 1.0 / (1.0 + np.exp(-z)), X


def lightgbm_alone(fitted: FeatureCalibrator, p: np.ndarray, y: np.ndarray, X: np.ndarray) -> float:
    """CPU seconds of one fit with as many trees of the same kind."""
    import lightgbm

    told = {"num_threads": 1 if len(p) < FEW_ROWS else 0, **fitted._options}
    z = np.log(p) - np.log1p(-p)
    start = time.process_time()
    data = lightgbm.Dataset(np.column_stack((X, z)), y, init_score=z, params=told)
    lightgbm.train(told, data, max(len(fitted.rule_.trees), 1))
    return time.process_time() - start


def measure(n: int) -> dict[str, object]:
    p, y, X = rows(n)
    start = time.process_time()
    fitted = FeatureCalibrator().fit(p, y, features=X)
    seconds = time.process_time() - start
    alone = lightgbm_alone(fitted, p, y, X)
    fitted.calibrate(p[:10_000], features=X[:10_000])  # compiled by now
    start = time.process_time()
    fitted.calibrate(p, features=X)
    applied = time.process_time() - start
    return {
        "rows": f"{n:,}",
        "kept": fitted.kept_,
        "rounds": fitted.rounds_,
        "trees": len(fitted.rule_.trees),
        "fit (CPU s)": f"{seconds:.2f}",
        "LightGBM alone (CPU s)": f"{alone:.2f}",
        "ratio": f"{seconds / alone:.1f}",
        "rows/s to apply": f"{n / applied:,.0f}",
    }


def run(sizes: list[int]) -> None:
    lines: list[dict[str, object]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (size for size in sizes if size in SIZES):
            add(lines, measure(n))
    write("features", lines, f"{HEADING}\n\n{setting(('lightgbm', 'numba', 'numpy'))}")
