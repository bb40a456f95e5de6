"""Sums over the rows of a large tensor in one reading of it, where PyTorch has Triton.

Operations of tensors one after the other read and write every number many times. On a GPU the
memory is what takes time, so a kernel that reads each number once is some thirty times faster.
Triton comes with PyTorch on Linux; without it, or off the GPU, sums are made block by block.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.kernels.block_arrays import tensor_ops
from calibrant.tensors import library_of

#: rows of fewer numbers are not worth a program of their own
SHORTEST = 512


class RowFacts(NamedTuple):
    """Of each row its smallest, largest and mean number, and the mean square about the mean."""

    low: Array
    high: Array
    mean: Array
    square: Array


def can_fuse(x: Any) -> bool:
    """Whether a kernel can read this tensor."""
    return (
        library_of(x) == "torch"
        and x.device.type == "cuda"
        and x.dtype.itemsize <= 4
        and x.shape[1] >= SHORTEST
        and _triton() is not None
    )


def row_facts(x: Any, slices: Sequence[slice]) -> RowFacts:
    """The facts of all rows; block by block where there is no kernel."""
    if can_fuse(x):
        return RowFacts(*_launch("ends", x, 0.0, None).cpu().numpy())
    ops, parts = tensor_ops(x), []
    for rows in slices:
        wide = ops.wide(x[rows])
        mean = wide.mean(axis=1)
        centred = wide - mean[:, None]
        square = (centred * centred).mean(axis=1)
        parts.append([ops.host(v) for v in (ops.smallest(wide), ops.largest(wide), mean, square)])
    return RowFacts(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class RowPowers(NamedTuple):
    """Of each row, with v = x − top: ln Σ exp(t·v), and mean and variance of v under exp(t·v)."""

    lse: Any
    mean: Any
    variance: Any


def row_powers(x: Any, t: float, top: Any) -> RowPowers:
    """The powers of all rows, as float64 on the device of x; so is ``top``, as float32."""
    total, first, second = _launch("powers", x, t, top)
    mean = first / total
    return RowPowers(total.log(), mean, (second / total - mean * mean).clamp(min=0.0))


def _launch(kernel: str, x: Any, t: float, top: Any) -> Any:
    torch = sys.modules["torch"]
    n, k = x.shape
    kernels: Any = _triton()
    out = torch.empty((4 if kernel == "ends" else 3, n), device=x.device, dtype=torch.float32)
    given = out if top is None else top
    with torch.cuda.device(x.device):
        kernels[kernel][(n,)](x, given, out, t, n, k, *x.stride(), BLOCK=2048, num_warps=8)
    return out.double()


@functools.cache
def _triton() -> dict[str, Any] | None:
    """The kernels; None where Triton is not installed."""
    if importlib.util.find_spec("triton") is None:
        return None
    from calibrant.kernels.triton_rows import ends, powers

    return {"ends": ends, "powers": powers}
