"""Scalings of several classes: CPU time of fits, log loss on other rows, and bounded memory.

Peers that are not installed (probmetrics, netcal) are left out.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from benchmarks.harness import cpu, peak, setting, write

#: rows and classes
SHAPES = ((1000, 3), (5000, 10), (50_000, 10), (5000, 100))
#: rows of 100 classes in a memory map
MAPPED = (10**5, 10**6)
#: most parameters times rows that a full matrix is fitted for
DEAREST = 10**7

Array = NDArray[np.float64]
#: fits scores and labels, and returns what turns new scores into probabilities
Fit = Callable[[Array, NDArray[np.intp]], Callable[[Array], Array]]


def data(n: int, k: int) -> tuple[Array, NDArray[np.intp], Array, NDArray[np.intp]]:
    """Over-confident logits with classes that need different factors; as many rows to judge on."""
    rng = np.random.default_rng(n + k)
    mix = np.diag(rng.uniform(0.4, 0.8, k)) + rng.normal(0, 0.1 / np.sqrt(k), (k, k))
    z = 2 * rng.normal(size=(2 * n, k))
    y = (z @ mix.T + rng.normal(0, 0.3, k) + rng.gumbel(size=z.shape)).argmax(axis=1)
    y[:k] = y[n : n + k] = np.arange(k)
    return z[:n], y[:n], z[n:], y[n:]


def softmax(z: Array) -> Array:
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def ours(calibrator: Any) -> Fit:
    """One of our calibrators on logits."""
    return lambda z, y: calibrator.fit(z, y).predict_proba


def scikit_learn(z: Array, y: NDArray[np.intp]) -> Callable[[Array], Array]:
    """CalibratedClassifierCV(method="temperature") around a model that returns its rows."""
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    class Model(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        classes_ = np.arange(z.shape[1])

        def fit(self, X: Array, y: Any) -> Model:
            return self

        def predict(self, X: Array) -> Array:
            return np.asarray(X.argmax(axis=1))

        def decision_function(self, X: Array) -> Array:
            return X

        def __sklearn_is_fitted__(self) -> bool:
            return True

    wrapped = CalibratedClassifierCV(FrozenEstimator(Model()), method="temperature")
    return wrapped.fit(z, y).predict_proba  # type: ignore[no-any-return]


def probmetrics(name: str) -> Fit:
    """A calibrator of probmetrics, which takes probabilities."""
    from probmetrics.calibrators import get_calibrator

    def fit(z: Array, y: NDArray[np.intp]) -> Callable[[Array], Array]:
        calibrator = get_calibrator(name)
        calibrator.fit(softmax(z), y)
        return lambda new: calibrator.predict_proba(softmax(new))

    return fit


def netcal(z: Array, y: NDArray[np.intp]) -> Callable[[Array], Array]:
    """netcal's temperature scaling, which takes probabilities."""
    from netcal.scaling import TemperatureScaling

    calibrator = TemperatureScaling()
    calibrator.fit(softmax(z), y)
    return lambda new: calibrator.transform(softmax(new))


def contestants(n: int, k: int) -> Iterator[tuple[str, str, Fit]]:
    """(method, whose, fit) of a shape."""
    small = n * k * (k + 1) <= DEAREST
    yield "none", "", lambda z, y: softmax
    yield "temperature", "calibrant", ours(cal.Temperature())
    yield "temperature", "scikit-learn", scikit_learn
    yield "vector", "calibrant", ours(cal.VectorScaling(gate=False))
    yield (
        "structured vector",
        "calibrant",
        ours(cal.StructuredScaling(structure="vector", gate=False)),
    )
    yield "structured vector, gate", "calibrant", ours(cal.StructuredScaling(structure="vector"))
    if small:
        yield "structured matrix", "calibrant", ours(cal.StructuredScaling(gate=False))
        yield "structured matrix, gate", "calibrant", ours(cal.StructuredScaling())
        yield "matrix", "calibrant", ours(cal.MatrixScaling())
        yield "Dirichlet", "calibrant", ours(cal.Dirichlet())
    if find_spec("probmetrics"):
        yield "temperature", "probmetrics", probmetrics("temp-scaling")
        yield "structured vector", "probmetrics", probmetrics("svs")
        if small:
            yield "structured matrix", "probmetrics", probmetrics("sms")
    if find_spec("netcal") and n * k <= 50_000:
        yield "temperature", "netcal", netcal


def lines(n: int, k: int) -> Iterator[dict[str, object]]:
    """All measurements of one shape."""
    z, y, new, labels = data(n, k)
    for method, whose, fit in contestants(n, k):
        try:
            p = np.asarray(fit(z, y)(new), dtype=np.float64)
            seconds = f"{cpu(functools.partial(fit, z, y), seconds=0.5):.3g}" if whose else ""
            loss = f"{-np.log(p[np.arange(n), labels]).mean():.5f}"
        except Exception as error:
            seconds, loss = "fails", type(error).__name__
        line = {"rows": n, "classes": k, "method": method, "library": whose}
        yield {**line, "CPU seconds": seconds, "log loss": loss, "peak / matrix": ""}


def mapped(n: int, k: int = 100) -> Iterator[dict[str, object]]:
    """Temperature on float32 logits in a file: time, and peak memory in sizes of the matrix."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path, y = Path(folder) / "logits.dat", np.empty(n, dtype=np.intp)
        z = np.memmap(path, dtype=np.float32, mode="w+", shape=(n, k))
        for start in range(0, n, 10_000):
            rows = slice(start, start + 10_000)
            z[rows] = 2 * rng.normal(size=z[rows].shape)
            y[rows] = (0.7 * z[rows] + rng.gumbel(size=z[rows].shape)).argmax(axis=1)
        out = np.memmap(Path(folder) / "out.dat", dtype=np.float32, mode="w+", shape=(n, k))
        calibrator = cal.Temperature(classes=list(range(k)))
        works: dict[str, Callable[[], object]] = {
            "temperature, fit a memory map": lambda: calibrator.fit(z, y),
            "temperature, apply to a memory map": lambda: calibrator.map_(z, out=out),
        }
        for name, work in works.items():
            line: dict[str, object] = {"rows": n, "classes": k, "method": name}
            seconds, most = f"{cpu(work):.3g}", f"{peak(work) / (4 * n * k):.3f}"
            line |= {"library": "calibrant", "CPU seconds": seconds, "log loss": ""}
            yield {**line, "peak / matrix": most}


def run(sizes: list[int]) -> None:
    """Measure and write ``results/scaling.md`` and ``results/scaling.csv``."""
    loads, rows = [os.getloadavg()[0]], []
    for n, k in (shape for shape in SHAPES if shape[0] <= max(sizes)):
        for line in lines(n, k):
            rows.append(line)
            print(line, flush=True)
        loads.append(os.getloadavg()[0])
    for n in (n for n in MAPPED if n <= max(sizes)):
        for line in mapped(n):
            rows.append(line)
            print(line, flush=True)
    packages = ["calibrant", "numpy", "scipy", "scikit-learn", "probmetrics", "netcal", "torch"]
    heading = f"""# Scalings of several classes

CPU time of a fit (all threads counted), median of at least three calls after a first one, and log
loss on as many other rows, drawn alike: logits that are too sure, classes with different factors, a
little mixing. Peers that take probabilities get the softmax of the logits. Without "gate" a method
is as published; matrix scaling and Dirichlet choose their ridge by five folds. A full matrix is
fitted where rows × parameters stay below 1e7. netcal is left out of the larger shapes. The last
lines are float32 logits in a file, applied into another file: peak memory in sizes of the matrix.

{setting(packages)}. One-minute load average before and after each shape:
{", ".join(f"{load:.1f}" for load in loads)}. Made by `python -m benchmarks scaling`."""
    write("scaling", rows, heading)
