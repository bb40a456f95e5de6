"""Many classes: structured scaling beside probmetrics at the same objective, and the default.

Peers that are not installed (probmetrics) are left out. Both sides use one thread of BLAS.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import calibrant as cal
from benchmarks.harness import add, cpu, peak, setting, write_page

#: rows and classes of the fits that are compared, and whether the full matrix is one of them
FITS = ((10_000, 10, True), (5000, 100, True), (10_000, 1000, False))
#: rows and classes of the default
DEFAULTS = ((2000, 200), (5000, 100), (25_000, 1000), (1000, 128_000))

Array = NDArray[Any]


def data(n: int, k: int) -> tuple[Array, NDArray[np.intp]]:
    """Float32 logits that are too sure, with classes that need different factors and offsets."""
    rng = np.random.default_rng(n + k)
    factors, offsets = rng.uniform(0.4, 0.8, k), rng.normal(0, 0.3, k)
    z, y = np.empty((n, k), dtype=np.float32), np.empty(n, dtype=np.intp)
    step = max(1, 10**6 // k)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        z[rows] = 2 * rng.normal(size=z[rows].shape)
        y[rows] = (z[rows] * factors + offsets + rng.gumbel(size=z[rows].shape)).argmax(axis=1)
    return z, y


def softmax(z: Array) -> Array:
    p = np.exp(z - z.max(axis=1, keepdims=True), dtype=np.float64)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def objective(p: Array, y: NDArray[np.intp], matrix: Array, offsets: Array, full: bool) -> float:
    """What both libraries minimise: the mean log loss and the published ridges."""
    n, k = p.shape
    loss = float(-np.log(p[np.arange(n), y]).mean())
    away = matrix - np.eye(k)
    diagonal = np.square(np.diag(away)).sum()
    rest = np.square(away).sum() - diagonal
    ridge = k * (diagonal + np.square(offsets).sum()) + full * k * (k - 1) * rest
    return loss + float(ridge) / n


def ours(p: Array, y: NDArray[np.intp], full: bool) -> tuple[Array, Array, Callable[[Array], Any]]:
    structure, classes = ("matrix" if full else "vector"), list(range(p.shape[1]))
    c = cal.StructuredScaling(structure=structure, gate=False, classes=classes).fit(p, y)
    return c.matrix_, c.offsets_, c.predict_proba


def probmetrics(
    p: Array, y: NDArray[np.intp], full: bool
) -> tuple[Array, Array, Callable[[Array], Any]]:
    from probmetrics.calibrators import get_calibrator

    name = "sms" if full else "svs"
    c = get_calibrator(name, **{f"{name}_print_init_info": False})
    c.fit(p, y)
    if full:
        return c.W_[:, :-1], c.W_[:, -1], c.predict_proba
    return np.diag(c.v_), c.b_, c.predict_proba


def fits(n: int, k: int, full: bool) -> Iterator[dict[str, object]]:
    """One structure of one shape, by each library."""
    z, y = data(n, k)
    p = softmax(z)
    libraries = {"calibrant": ours} | ({"probmetrics": probmetrics} if _has_peer() else {})
    for name, fit in libraries.items():
        matrix, offsets, predict = fit(p, y, full)
        value = objective(np.asarray(predict(p), dtype=np.float64), y, matrix, offsets, full)

        def again(fit: Any = fit) -> None:
            fit(p, y, full)

        yield {
            "rows": n,
            "classes": k,
            "method": f"structured {'matrix' if full else 'vector'}",
            "library": name,
            "CPU seconds": f"{cpu(again, seconds=0.5):.3g}",
            "objective": f"{value:.7f}",
        }


def _has_peer() -> bool:
    if find_spec("probmetrics") is None:
        return False
    import torch

    torch.set_num_threads(1)
    return True


def defaults(n: int, k: int) -> Iterator[dict[str, object]]:
    """The default, its yardstick and its members."""
    z, y = data(n, k)
    vector = cal.StructuredScaling(structure="vector", gate=False)
    methods = {
        "temperature": cal.Temperature(),
        "ensemble temperature": cal.EnsembleTemperature(),
        "top-label BLS": cal.TopLabelCalibrator(),
        **({"structured vector": vector} if n >= k else {}),
        "AutoCalibrator": cal.AutoCalibrator(),
    }
    yardstick = 0.0
    for name, method in methods.items():
        method.set_params(classes=list(range(k)))

        def work(method: Any = method) -> None:
            method.fit(z, y)

        seconds = cpu(work, seconds=0.1)
        yardstick = seconds if method is vector else yardstick
        ratio = f"{seconds / yardstick:.2f}" if yardstick else ""
        line: dict[str, object] = {"rows": n, "classes": k, "method": name}
        line |= {"CPU seconds": f"{seconds:.3g}", "/ structured vector": ratio}
        yield {**line, "peak / matrix": f"{peak(work) / z.nbytes:.2f}"}


def run(sizes: list[int]) -> None:
    """Measure and write ``results/many_classes.md``, and a CSV for each table."""
    load = os.getloadavg()[0]
    compared: list[dict[str, object]] = []
    chosen: list[dict[str, object]] = []
    with threadpool_limits(limits=1):
        for n, k, both in FITS:
            for full in (False, True) if both else (False,):
                if n <= max(sizes):
                    for line in fits(n, k, full):
                        add(compared, line)
        for n, k in DEFAULTS:
            if n <= max(sizes):
                for line in defaults(n, k):
                    add(chosen, line)
    packages = ["calibrant", "numpy", "scipy", "probmetrics", "torch"]
    headings = {
        "many_classes_fits": """## Structured scaling

CPU time of a fit to probabilities in float64, median of at least three calls after a first one,
without the gate. The objective is what both libraries minimise, computed alike from their
parameters and probabilities: the mean log loss plus the published ridges.""",
        "many_classes_default": """## The default

Float32 logits. CPU time of a fit, as a ratio to one of structured vector scaling (which is left out
where there are fewer rows than classes), and peak memory in sizes of the matrix.""",
    }
    made = (
        f"{setting(packages)}. One thread of BLAS and torch. One-minute load average before and "
        f"after: {load:.1f}, {os.getloadavg()[0]:.1f}."
    )
    tables = {"many_classes_fits": compared, "many_classes_default": chosen}
    write_page("many_classes", "Many classes", tables, headings, made)
