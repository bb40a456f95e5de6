"""Many small quadratic problems on the simplex at once: the arithmetic under the combiners.

Rows lie along the last axis, so that every step is one operation on long contiguous vectors.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.array_types import Array, Flags, Index

#: multiplications of one matrix product. Larger ones make BLAS start threads, which cost more than
#: they bring on matrices of this size
PRODUCT = 1 << 19
#: numbers that the temporaries of one block of rows may hold
BLOCK = 1 << 19
#: what is added to the diagonal, relative to the mean weight of columns; refinement undoes it
RIDGE = 1e-11
#: how far below zero a value or a gradient may lie and still count as zero
ZERO = 1e-13
#: a table with a larger share of numbers other than zero is not kept sparse
DENSE = 0.15
#: the least that stands in for a pivot that is not positive
PIVOT = 1e-10
#: the most rounds of pivoting: far more than any row needs
PIVOTS = 200


def block_size(classes: int, columns: int) -> int:
    """How many rows to treat at once."""
    return max(1, BLOCK // (6 * columns + 3 * classes * classes))


def product(matrix: Any, rows: Array) -> Array:
    """matrix @ rows, on one thread; the matrix may be sparse."""
    if not isinstance(matrix, np.ndarray):
        return np.asarray(matrix @ rows)
    step = max(16, PRODUCT // max(matrix.size, 1))
    if step >= rows.shape[1]:
        return np.asarray(matrix @ rows)
    out = np.empty((len(matrix), rows.shape[1]))
    for start in range(0, rows.shape[1], step):
        np.matmul(matrix, rows[:, start : start + step], out=out[:, start : start + step])
    return out


def outer_pattern(left: Array, right: Array) -> Any:
    """T of shape (k(k+1)/2, columns): T @ x is the lower triangle of Σ_b x_b·sym(left_b right_bᵀ).

    ``left`` and ``right`` have shape (columns, k); sym(A) = (A + Aᵀ)/2. Sparse where that pays.
    """
    columns, k = left.shape
    at, value, pointer = [], [], [0]
    for a, b in zip(left, right, strict=True):
        used = np.flatnonzero((a != 0) | (b != 0))
        i, j = (used[side] for side in np.tril_indices(len(used)))
        both = (a[i] * b[j] + a[j] * b[i]) / 2
        keep = both != 0
        at.append((i * (i + 1) // 2 + j)[keep])
        value.append(both[keep])
        pointer.append(pointer[-1] + int(keep.sum()))
    index, data = np.concatenate(at), np.concatenate(value)
    shape = (k * (k + 1) // 2, columns)
    if len(data) > DENSE * shape[0] * shape[1]:
        dense = np.zeros(shape)
        dense[index, np.repeat(np.arange(columns), np.diff(pointer))] = data
        return dense
    try:
        from scipy.sparse import csc_array
    except ImportError:
        return PlainSparse(index, data, pointer, shape[0])
    return csc_array((data, index, pointer), shape=shape).tocsr()


@dataclass(frozen=True)
class PlainSparse:
    """A sparse matrix by columns, where SciPy is not installed; products are the same to the bit.

    >>> matrix = PlainSparse(np.array([0, 2]), np.array([3.0, 4.0]), [0, 1, 2], 3)
    >>> (matrix @ np.array([[1.0], [10.0]])).ravel().tolist()
    [3.0, 0.0, 40.0]
    """

    index: Index
    data: Array
    pointer: list[int]
    rows: int

    def __matmul__(self, other: Array) -> Array:
        total = np.zeros((self.rows, other.shape[1]))
        for column, (begin, end) in enumerate(itertools.pairwise(self.pointer)):
            total[self.index[begin:end]] += self.data[begin:end, None] * other[column]
        return total

    def sum(self, axis: int) -> Array:
        """The sum of each row (axis 1)."""
        order = np.argsort(self.index, kind="stable")
        present, starts = np.unique(self.index[order], return_index=True)
        total = np.zeros(self.rows)
        total[present] = np.add.reduceat(self.data[order], starts)
        return total


def symmetric(triangle: Array, k: int) -> Array:
    """The (k, k, rows) matrices whose lower triangles are given row by row."""
    i, j = np.tril_indices(k)
    full = np.empty((k, k, triangle.shape[1]))
    full[i, j] = triangle
    full[j, i] = triangle
    return full


def factor(matrices: Array) -> None:
    """L·D·Lᵀ of (k, k, rows) in place; a pivot that is not positive changes its sign."""
    for j in range(len(matrices)):
        pivot = matrices[j, j]
        positive = pivot > 0
        if not positive.all():
            pivot[~positive] = np.maximum(-pivot[~positive], PIVOT)
        below = matrices[j + 1 :, j]
        scaled = below / pivot
        matrices[j + 1 :, j + 1 :] -= scaled[:, None] * below[None]
        matrices[j + 1 :, j] = scaled


def backward(factors: Array, b: Array) -> Array:
    """The solutions x (k, rows) of A·x = b from what `factor` left."""
    x, k = b.copy(), len(b)
    for j in range(k - 1):
        x[j + 1 :] -= factors[j + 1 :, j] * x[j]
    for j in range(k):
        x[j] /= factors[j, j]
    for j in range(k - 2, -1, -1):
        x[j] -= (factors[j + 1 :, j] * x[j + 1 :]).sum(axis=0)
    return x


class SimplexQuadratic:
    """min Σ_b n_b((1−r_b)Σ_I p − r_bΣ_J p)² over p ≥ 0, Σp = 1, for blocks of rows r.

    With Q the matrix of that form, p = y/Σy where y ≥ 0 minimises ½yᵀ(Q+c·11ᵀ)y − 1ᵀy: along a
    ray y = tp the best t leaves −1/(2(pᵀQp+c)). Such problems are solved exactly by block
    principal pivoting: guess which classes are zero, solve for the others, and flip every class of
    the wrong sign. Where that does not help soon, only the last such class is flipped: that rule
    cannot cycle. Where the minimum is not unique, a ridge of 1e-11 and two steps of refinement
    choose the one nearest to uniform.
    """

    def __init__(self, code: Array, weights: Array) -> None:
        columns = code.T
        plus, minus = (columns > 0).astype(float), (columns < 0).astype(float)
        self.k, mean = len(code), weights.sum() / len(code)
        scale = weights[:, None]
        # (1−r)²·II − r(1−r)·(IJ+JI) + r²·JJ, by powers of r
        self.constant = np.asarray(outer_pattern(scale * plus, plus).sum(axis=1))[:, None] + mean
        self.linear = outer_pattern(-2.0 * scale * plus, plus + minus)
        self.square = outer_pattern(scale * (plus + minus), plus + minus)
        self.ridge = RIDGE * mean

    def solve(self, r: Array) -> Array:
        """The p (k, rows) of r (columns, rows)."""
        triangle = product(self.linear, r)
        triangle += product(self.square, r * r)
        triangle += self.constant
        full = symmetric(triangle, self.k)
        rows = r.shape[1]
        free = np.ones((self.k, rows), dtype=bool)
        fewest, patience = np.full(rows, self.k + 1), np.full(rows, 3)
        result, left = np.empty((self.k, rows)), np.arange(rows)
        for _ in range(PIVOTS):
            y, wrong = self._solve_free(full, free)
            result[:, left] = y
            count = wrong.sum(axis=0)
            open_ = count > 0
            if not open_.any():
                break
            better = count < fewest
            fewest, patience = np.where(better, count, fewest), np.where(better, 3, patience - 1)
            free ^= _flips(wrong, patience < 0)
            if not open_.all():
                left, free, full = left[open_], free[:, open_], full[:, :, open_]
                fewest, patience = fewest[open_], patience[open_]
        p = np.maximum(result, 0.0)
        return np.asarray(p / p.sum(axis=0))

    def _solve_free(self, full: Array, free: Flags) -> tuple[Array, Flags]:
        """y with the classes that are not free at zero, and which classes are of the wrong sign."""
        b = free.astype(float)
        matrices = full.copy() if free.all() else full * b[:, None] * b[None]
        diagonal = np.arange(self.k)
        matrices[diagonal, diagonal] += self.ridge + (1.0 - b)
        factor(matrices)
        y = backward(matrices, b)
        for _ in range(2):
            y += backward(matrices, (b - (full * y).sum(axis=1)) * b)
        slope = (full * y).sum(axis=1) - 1.0
        return y, np.where(free, y < -ZERO * y.max(axis=0), slope < -ZERO)


def _flips(wrong: Flags, one: Flags) -> Flags:
    """All that are wrong, or only the last of them."""
    if not one.any():
        return wrong
    k = len(wrong)
    last = k - 1 - np.argmax(wrong[::-1], axis=0)
    return np.asarray(wrong & (~one | (np.arange(k)[:, None] == last)))
