"""Fits of logits that lie on a GPU, against the time of reading them once."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np

import calibrant as cal
from benchmarks.harness import add, write

REPEATS = 7
#: rows, classes, and calibrators that are fitted
CASES: list[tuple[int, int, list[Any]]] = [
    (50_000, 128_000, [cal.Temperature(), cal.EnsembleTemperature()]),
    (25_000, 1_000, [cal.Temperature(), cal.EnsembleTemperature(),
                     cal.StructuredScaling(structure="vector", gate=False),
                     cal.StructuredScaling(gate=False)]),
    (10_000, 1_000, [cal.AutoCalibrator()]),
    (100_000, 1_000, [cal.AutoCalibrator()]),
]  # fmt: skip


def make(torch: Any, n: int, k: int) -> tuple[Any, Any]:
    """Logits in bfloat16, sharper than they should be, and labels."""
    random = torch.Generator("cuda").manual_seed(0)
    z = torch.empty(n, k, dtype=torch.bfloat16, device="cuda")
    y = torch.empty(n, dtype=torch.int64, device="cuda")
    step = max(1, 2**27 // k)
    for i in range(0, n, step):
        true = 2.0 * torch.randn(min(step, n - i), k, device="cuda", generator=random)
        even = torch.rand(true.shape, device="cuda", generator=random).clamp_(1e-30, 1 - 1e-7)
        y[i : i + step] = (true - torch.log(-torch.log(even))).argmax(1)
        z[i : i + step] = (2.0 * true).to(torch.bfloat16)
    return z, y


def milliseconds(torch: Any, run: Callable[[], Any]) -> float:
    """The median time of a run, after one that compiles and allocates."""
    run()
    taken = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        taken.append(1e3 * (time.perf_counter() - begin))
    return median(taken)


def line(torch: Any, calibrator: Any, z: Any, y: Any, reading: float) -> dict[str, object]:
    """One fit on the GPU, beside the same fit to some of the rows on the CPU."""
    name = f"`{calibrator!r}`"
    calibrator.set_params(classes=range(z.shape[1]))  # some rows may lack some classes
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    taken = milliseconds(torch, lambda: calibrator.fit(z, y))
    extra = (torch.cuda.max_memory_allocated() - before) / (2 * z.numel())
    some = slice(None, max(200, min(len(z), 2**22 // z.shape[1])))
    there = calibrator.fit(z[some], y[some])
    scores = z[some].double().cpu().numpy()
    found = there.predict_proba(scores[:50])
    here = calibrator.fit(scores, y[some].cpu().numpy()).predict_proba(scores[:50])
    return {
        "rows": f"{len(z):,}",
        "classes": f"{z.shape[1]:,}",
        "calibrator": name,
        "reading once, ms": f"{reading:.2f}",
        "whole fit, ms": f"{taken:.1f}",
        "in readings": f"{taken / reading:.1f}",
        "memory beside the logits": f"{100 * extra:.0f} %"
        if extra >= 1
        else f"{100 * extra:.2g} %",
        "largest difference from the CPU": f"{np.abs(found - here).max():.1e}",
    }


def run(sizes: list[int]) -> None:
    """Measure and write ``results/tensors.md`` and ``results/tensors.csv``; needs CUDA."""
    if find_spec("torch") is None:
        print("tensors: left out, since PyTorch is not installed")
        return
    import torch

    if not torch.cuda.is_available():
        print("tensors: left out, since there is no CUDA GPU")
        return
    rows: list[dict[str, object]] = []
    for n, k, calibrators in CASES:
        z, y = make(torch, n, k)
        reading = milliseconds(torch, lambda z=z: z.view(torch.int32).amax())
        for calibrator in calibrators:
            add(rows, line(torch, calibrator, z, y, reading))
        del z, y
    card = f"{torch.cuda.get_device_name()}; torch {torch.__version__}."
    heading = f"""# Logits on a GPU

Logits in bfloat16 are fitted where they are. Times are medians of {REPEATS} after one that
compiles; "reading once" is the largest of all numbers, taken as 32-bit integers. A temperature is
found in a pass that looks at all rows, Newton steps on every 16th row, and two or three steps on
all rows. Structured scaling is without its gate, which holds rows out. `AutoCalibrator` looks at
the scores, fits four candidates twice and judges them in memory, on rows held out. The last column
compares probabilities after fits to some of the rows, on the GPU and on the CPU.

{card} Made by `python -m benchmarks tensors`."""
    write("tensors", rows, heading)
