"""Fit and predict of every calibrator against np.sort, np.searchsorted, scikit-learn and peers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from benchmarks.harness import cpu, peak, setting, write

Fit = Callable[[Any, Any], Any]
Predict = Callable[[Any, Any], Any]


def data(n: int) -> tuple[Any, Any]:
    """Over-confident scores of a rare-ish class: all distinct, σ of a normal margin."""
    rng = np.random.default_rng(n)
    margin = rng.normal(-0.5, 2.0, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-0.6 * margin + 0.5))).astype(int)
    return 1 / (1 + np.exp(-margin)), y


OURS: dict[str, Any] = {
    "Isotonic": cal.Isotonic(),
    "Isotonic centred": cal.Isotonic(interpolation="centred"),
    "Histogram": cal.Histogram(),
    "Histogram auto": cal.Histogram(bins="auto"),
    "Platt": cal.Platt(),
    "Beta": cal.Beta(),
    "Temperature": cal.Temperature(),
    "Identity": cal.Uncalibrated(),
    "Rescale": cal.Rescale(),
    "LogisticCorrection": cal.LogisticCorrection(),
}


def _peer(module: str, name: str, column: bool = False, **options: Any) -> Fit | None:
    """A function that fits a peer's calibrator, or None where it is not installed."""
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None
    return lambda s, y: kind(**options).fit(s[:, None] if column else s, y)


def _sklearn_sigmoid(s: Any, y: Any) -> Any:
    from sklearn.calibration import _SigmoidCalibration

    return _SigmoidCalibration().fit(s, y)


def peers() -> dict[str, list[tuple[str, Fit, Predict, int]]]:
    """Per method: who else has it, how to fit and predict with it, and the largest sensible N."""

    def predict(model: Any, s: Any) -> Any:
        return model.predict_proba(s)

    offered: list[tuple[str, str, Fit | None, Predict, int]] = [
        (
            "Isotonic",
            "scikit-learn",
            lambda s, y: IsotonicRegression(out_of_bounds="clip").fit(s, y),
            lambda m, s: m.predict(s),
            10**7,
        ),
        ("Isotonic", "probcal", _peer("probcal", "IsotonicCalibrator"), predict, 10**6),
        (
            "Isotonic centred",
            "probcal",
            _peer("probcal", "CenteredIsotonicCalibrator"),
            predict,
            10**6,
        ),
        ("Platt", "scikit-learn", _sklearn_sigmoid, lambda m, s: m.predict(s), 10**7),
        ("Platt", "probcal", _peer("probcal", "PlattCalibrator"), predict, 10**6),
        (
            "Beta",
            "betacal",
            _peer("betacal", "BetaCalibration", True),
            lambda m, s: m.predict(s[:, None]),
            10**6,
        ),
        ("Beta", "probcal", _peer("probcal", "BetaCalibrator"), predict, 10**6),
        ("Histogram", "probcal", _peer("probcal", "HistogramBinningCalibrator"), predict, 10**6),
        (
            "Histogram",
            "netcal",
            _peer("netcal.binning", "HistogramBinning"),
            lambda m, s: m.transform(s),
            10**6,
        ),
        ("Temperature", "probcal", _peer("probcal", "TemperatureCalibrator"), predict, 10**6),
    ]
    found: dict[str, list[tuple[str, Fit, Predict, int]]] = {}
    for method, who, fit, evaluate, most in offered:
        if fit is not None:
            found.setdefault(method, []).append((who, fit, evaluate, most))
    return found


def _row(n: int, method: str, who: str, fit: Fit, predict: Predict, yard: dict[str, float]) -> Any:
    s, y = data(n)
    fit_time = cpu(lambda: fit(s, y))
    model = fit(s, y)
    queries = s[:1_000_000]
    knots = getattr(getattr(model, "map_", None), "x", None)
    if knots is None:
        knots = np.linspace(0, 1, 1000)
    search = cpu(lambda: np.searchsorted(knots, queries))
    predict_time = cpu(lambda: predict(model, queries))
    return {
        "N": f"{n:.0e}",
        "method": method,
        "by": who,
        "fit ms": round(fit_time * 1e3, 3),
        "fit / np.sort": round(fit_time / yard["sort"], 2),
        "fit / sklearn isotonic": round(fit_time / yard["isotonic"], 2),
        "predict ms": round(predict_time * 1e3, 3),
        "predict / np.searchsorted": round(predict_time / search, 2),
        "peak / scores": round(peak(lambda: fit(s, y)) / s.nbytes, 1),
    }


def run(sizes: list[int]) -> None:
    """Measure and write ``results/fit.md`` and ``results/fit.csv``."""
    rows = []
    others = peers()
    for n in sizes:
        s, y = data(n)
        yard = {
            "sort": cpu(lambda s=s: np.sort(s)),
            "isotonic": cpu(lambda s=s, y=y: IsotonicRegression(out_of_bounds="clip").fit(s, y)),
        }
        for method, calibrator in OURS.items():
            rows.append(
                _row(n, method, "calibrant", calibrator.fit, lambda m, s: m.calibrate(s), yard)
            )
            print(rows[-1], flush=True)
            for who, fit, predict, most in others.get(method, []):
                if n <= most:
                    rows.append(_row(n, method, who, fit, predict, yard))
                    print(rows[-1], flush=True)
    packages = ["calibrant", "numpy", "scipy", "scikit-learn", "probcal", "betacal", "netcal"]
    heading = f"""# Fit and predict

Whole calls of `fit` and `calibrate` from NumPy arrays, CPU time (both cores counted), median of
repeated calls after a first one. Ratios are to figures of the same run: `np.sort` of the same
scores, scikit-learn's `IsotonicRegression.fit`, and `np.searchsorted` of the same queries (up to
1e6) in the map's own knots (1,000 knots for maps without any). Peak memory is what `fit` allocates
beyond its input, in copies of the score array.

{setting(packages)}. Made by `python -m benchmarks fit`."""
    write("fit", rows, heading)
