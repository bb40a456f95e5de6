"""What softmax fits do with a block of rows, for NumPy arrays and for tensors where they are.

A block is an array of NumPy, PyTorch, CuPy or JAX. Sums over its rows leave its device as NumPy
arrays with one number per class, or as Python floats; the block itself never does.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Index
from calibrant.tensors import library_of, on_host

#: the largest number in float32
FLOAT32 = float(np.finfo(np.float32).max)
#: makes the blocks (x, codes, weights) anew at each call
Source = Callable[[], Iterable[tuple[Array, Index, Array]]]


class BlockOps:
    """The operations on arrays of NumPy, in place where that saves memory."""

    #: the library
    xp: Any = np

    def exp(self, x: Any) -> Any:
        """eˣ, written over x where that is possible."""
        return np.exp(x, out=x)

    def log(self, x: Any) -> Any:
        return self.xp.log(x)

    def largest(self, x: Any) -> Any:
        """The largest entry of each row."""
        return self.xp.amax(x, 1)

    def smallest_positive(self, x: Any) -> float:
        """The smallest positive entry, at most 1."""
        return float(x.min(initial=1.0, where=x > 0))

    def wide(self, x: Any) -> Any:
        """A copy in float64, or in the longest floats that the library has."""
        return x.astype(np.float64)

    def dots(self, a: Any, b: Any) -> Any:
        """Σ a·b of each row."""
        return np.vecdot(a, b)

    def own(self, x: Any, codes: Any) -> Any:
        """The entry of each row's own class."""
        return x[self.beside(np.arange(len(x)), codes), codes]

    def weighted(self, share: Any, x: Any) -> Array:
        """Σ share·x over the rows, one number for each column."""
        return np.asarray(share @ x)

    def total(self, w: Any, rows: Any) -> float:
        """Σ w·rows."""
        return float(self.host(w) @ self.host(rows))

    def by_class(self, codes: Any, values: Any, k: int) -> Array:
        """Σ values of the rows of each class."""
        own = self.host(codes).astype(np.intp, copy=False)
        return np.bincount(own, self.host(values), minlength=k).astype(np.float64)

    def beside(self, values: NDArray[Any], x: Any) -> Any:
        """NumPy numbers as an array of the same library and on the same device as x."""
        return values

    def clip(self, x: Any, low: float, high: float) -> Any:
        most = FLOAT32 if x.dtype.itemsize < 8 else np.inf
        return self.xp.clip(x, max(low, -most), min(high, most))

    def log_of(self, x: Any) -> Any:
        """ln x, written over x where that is possible."""
        return np.log(x, out=x)

    def host(self, x: Any) -> NDArray[Any]:
        """An array as one of NumPy."""
        return np.asarray(x)


NUMPY = BlockOps()


class TensorOps(BlockOps):
    """The same operations on tensors. Their library is imported already."""

    def __init__(self, library: str) -> None:
        self.xp = sys.modules["jax.numpy" if library == "jax" else library]

    def exp(self, x: Any) -> Any:
        return self.xp.exp(x)

    def log_of(self, x: Any) -> Any:
        return self.xp.log(x)

    def smallest(self, x: Any) -> Any:
        """The smallest entry of each row."""
        return self.xp.amin(x, 1)

    def smallest_positive(self, x: Any) -> float:
        return float(self.xp.where(x > 0, x, self.xp.ones_like(x)).min())

    def wide(self, x: Any) -> Any:
        if self.xp.__name__ == "torch":
            return x.float() if x.device.type == "mps" else x.double()
        return x.astype(self.xp.result_type(float))

    def dots(self, a: Any, b: Any) -> Any:
        return (a * b).sum(1)

    def weighted(self, share: Any, x: Any) -> Array:
        # no product of matrices: some libraries round its factors to ten bits
        return self.host((share[:, None] * x).sum(0))

    def beside(self, values: NDArray[Any], x: Any) -> Any:
        if self.xp.__name__ == "torch":
            made = self.xp.as_tensor(values, device=x.device)
            return made.to(x.dtype) if values.dtype.kind == "f" else made
        return self.xp.asarray(values, dtype=x.dtype if values.dtype.kind == "f" else None)

    def host(self, x: Any) -> NDArray[Any]:
        values: NDArray[Any] = on_host(x)
        return values.astype(np.float64) if values.dtype.kind == "f" else values


def tensor_ops(x: Any) -> TensorOps:
    """The operations for a tensor."""
    library = library_of(x)
    if library is None:
        raise TypeError(f"a tensor must come, but {type(x).__name__} came.")
    return TensorOps(library)


def ops_of(x: Any) -> BlockOps:
    """The operations for the library that x belongs to."""
    return NUMPY if isinstance(x, np.ndarray) else tensor_ops(x)


def powers(eta: Array) -> tuple[Array, Array, Array]:
    """exp(η − top) of each row, written over η; top, the largest of the row; and their sum."""
    ops = ops_of(eta)
    top = ops.largest(eta)
    eta -= top[:, None]
    eta = ops.exp(eta)
    return eta, top, eta.sum(axis=1)


def log_shares(logits: Array) -> Array:
    """ln softmax of each row; the logits are written over."""
    ops = ops_of(logits)
    logits -= ops.largest(logits)[:, None]
    logits -= ops.log(ops.exp(1.0 * logits).sum(axis=1))[:, None]
    return logits


# --- Sums over the rows of a large tensor in one reading of it, where PyTorch has Triton ----------
# Operations of tensors one after the other read and write every number many times. On a GPU the
# memory is what takes time, so a kernel that reads each number once is some thirty times faster.
# Triton comes with PyTorch on Linux; without it, or off the GPU, sums are made block by block.


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
    """The facts of all rows: by a kernel if there is one, else block by block."""
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


def row_powers(x: Any, t: float, top: Any) -> tuple[Any, Any, Any]:
    """For each row, with v = x − top: ln Σ exp(t·v), and the mean and variance of v with weights
    exp(t·v).

    The results are float64 on the device of x; ``top`` is float32 there.
    """
    total, first, second = _launch("powers", x, t, top)
    mean = first / total
    return total.log(), mean, (second / total - mean * mean).clamp(min=0.0)


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
    from calibrant.solvers.triton_rows import ends, powers

    return {"ends": ends, "powers": powers}
