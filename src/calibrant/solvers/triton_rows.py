# mypy: ignore-errors
"""Triton kernels: one program for each row of a tensor, which reads every number once."""

import triton
import triton.language as tl


@triton.jit
def ends(x, top, out, t, n, k, row_step, column_step, BLOCK: tl.constexpr):
    """Smallest, largest and mean number of a row, and the mean square about the mean."""
    row = tl.program_id(0).to(tl.int64)
    low = tl.full((BLOCK,), float("inf"), tl.float32)
    high = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    square = tl.zeros((BLOCK,), tl.float32)
    about = tl.load(x + row * row_step).to(tl.float32)  # so that squares do not cancel
    for start in range(0, k, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < k
        v = tl.load(x + row * row_step + at * column_step, mask=inside, other=0.0).to(tl.float32)
        low = tl.minimum(low, tl.where(inside, v, float("inf")))
        high = tl.maximum(high, tl.where(inside, v, float("-inf")))
        v = tl.where(inside, v - about, 0.0)
        total += v
        square += v * v
    mean = tl.sum(total) / k
    tl.store(out + row, tl.min(low))
    tl.store(out + n + row, tl.max(high))
    tl.store(out + 2 * n + row, mean + about)
    tl.store(out + 3 * n + row, tl.maximum(tl.sum(square) / k - mean * mean, 0.0))


@triton.jit
def powers(x, top, out, t, n, k, row_step, column_step, BLOCK: tl.constexpr):
    """Σ e, Σ e·v and Σ e·v² of a row, with v = x − top and e = exp(t·v)."""
    row = tl.program_id(0).to(tl.int64)
    highest = tl.load(top + row)
    total = tl.zeros((BLOCK,), tl.float32)
    first = tl.zeros((BLOCK,), tl.float32)
    second = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, k, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < k
        v = tl.load(x + row * row_step + at * column_step, mask=inside, other=0.0).to(tl.float32)
        v = tl.where(inside, v - highest, 0.0)
        e = tl.where(inside, tl.exp(t * v), 0.0)
        total += e
        first += e * v
        second += e * v * v
    tl.store(out + row, tl.sum(total))
    tl.store(out + n + row, tl.sum(first))
    tl.store(out + 2 * n + row, tl.sum(second))
