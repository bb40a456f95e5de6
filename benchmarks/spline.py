"""Quadratic and Spline: whole fits as multiples of np.sort and of scikit-learn's isotonic fit."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from benchmarks.fit import data
from benchmarks.harness import cpu, setting, write
from calibrant.methods.splines import spline

#: what is measured, on the usual (straight) data and on waves
OURS = {
    "Quadratic": "cal.Quadratic()",
    "Quadratic, monotone, shrunk": "cal.Quadratic(shrinkage='identity', monotone=True)",
    "Spline": "cal.Spline()",
    "Spline, monotone": "cal.Spline(monotone=True)",
    "Spline, λ given": "cal.Spline(penalty=1.0)",
    "Spline, λ by folds": "cal.Spline(penalty='cv')",
}
#: the largest N at which the unpooled fit is made for comparison, and at which a peer is timed
WHOLE, PEER = 10**5, 10**4


def waves(n: int) -> tuple[Any, Any]:
    """Uniform scores whose rate is a wave: many bends."""
    rng = np.random.default_rng(n + 3)
    s = rng.random(n)
    return s, (rng.random(n) < 0.5 + 0.3 * np.sin(12 * s)).astype(int)


DATA: dict[str, Callable[[int], tuple[Any, Any]]] = {"usual": data, "waves": waves}


def peers(n: int) -> Iterator[tuple[str, Callable[[Any, Any], object]]]:
    """Others' splines, where installed and fast enough for this N."""
    homes = {"probcal": "SplineCalibrator", "splinecalib": "SplineCalib"}
    for module, name in homes.items():
        try:
            kind = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
        if n <= PEER:
            yield module, lambda s, y, kind=kind: kind().fit(s, y)


def pooling_error(s: Any, y: Any) -> tuple[str, str]:
    """Largest change of p, and the mean Kullback–Leibler distance times 2N/df, that pooling makes
    for the same λ. The latter is its share of the noise of the fit."""
    pooled = cal.Spline().fit(s, y)
    cells = spline.CELLS
    try:
        spline.CELLS = len(s)
        whole = cal.Spline(penalty=pooled.penalty_).fit(s, y)
    finally:
        spline.CELLS = cells
    p, q = pooled.calibrate(s), whole.calibrate(s)
    distance = float(np.mean(q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))))
    share = max(distance, 0.0) * 2 * len(s) / whole.effective_df_
    return f"{np.abs(p - q).max():.0e}", f"{share:.0e}"


def lines(n: int) -> Iterator[dict[str, object]]:
    """All measurements of one N."""
    for name, make in DATA.items():
        s, y = make(n)
        sort = cpu(lambda s=s: np.sort(s), seconds=0.5)
        isotonic = cpu(lambda s=s, y=y: IsotonicRegression(out_of_bounds="clip").fit(s, y))
        calls: dict[tuple[str, str], Callable[[], object]] = {}
        fitted: dict[str, Any] = {}
        for part, text in OURS.items():
            fitted[part] = eval(text, {"cal": cal})
            calls[part, "calibrant"] = functools.partial(fitted[part].fit, s, y)
        for who, fit in peers(n):
            calls["Spline", who] = functools.partial(fit, s, y)
        for (part, who), call in calls.items():
            call()  # compiles, or reads what was compiled before
            taken = cpu(call)
            c = fitted[part] if who == "calibrant" else None
            error = ("", "")
            if part == "Spline" and c is not None and spline.CELLS < n <= WHOLE:
                error = pooling_error(s, y)
            yield {
                "N": f"{n:.0e}",
                "data": name,
                "fit": part,
                "by": who,
                "ms": round(taken * 1e3, 2),
                "/ np.sort": round(taken / sort, 2),
                "/ isotonic": round(taken / isotonic, 2),
                "df": round(c.effective_df_, 1) if hasattr(c, "effective_df_") else "",
                "knots of the map": len(c.map_.x) if hasattr(c, "effective_df_") else "",
                "pooling: max change of p": error[0],
                "as a share of the noise": error[1],
            }


def run(sizes: list[int]) -> None:
    """Measure and write ``results/spline.md`` and ``results/spline.csv``."""
    loads, rows = [os.getloadavg()[0]], []
    for n in (size for size in sizes if size <= 10**6):
        for line in lines(n):
            rows.append(line)
            print(line, flush=True)
        loads.append(os.getloadavg()[0])
    heading = f"""# Quadratic and Spline

Whole fits from NumPy arrays to the map: CPU time (all threads counted), median of at least three
calls after a first one, as a multiple of `np.sort` of the same scores and of scikit-learn's
`IsotonicRegression` on the same rows. "usual" are scores whose logit is right up to a line, "waves"
have a rate that goes up and down. The last two columns compare with a fit of the same λ without
pooling: the largest change of a probability, and the mean Kullback–Leibler distance as a share of
df/2N, what estimating the curve costs anyway.

{setting(["calibrant", "numpy", "scipy", "scikit-learn", "probcal"])}. One-minute load average
before and after each N: {", ".join(f"{load:.1f}" for load in loads)}. Made by
`python -m benchmarks spline`."""
    write("spline", rows, heading)
