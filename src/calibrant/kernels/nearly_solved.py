"""Functions that nearly solve H·u = r for the Hessians of softmax fits.

The closer they come, the fewer steps conjugate gradients need.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.array_types import Array

Solve = Callable[[Array], Array]

#: where the determinant of a pair is a smaller share of its diagonal's than this, only the diagonal
#: is taken
FLAT = 1e-12


def by_pairs(diagonal: Array, between: Array) -> Solve:
    """Of a factor and an offset for each class: the two of a class are solved together.

    >>> solve = by_pairs(np.array([[2.0, 2.0]]), np.array([1.0]))
    >>> solve(np.array([[3.0, 3.0]])).round(9).tolist()
    [[1.0, 1.0]]
    """
    first, last = diagonal.T
    size = first * last - between**2
    good = size > FLAT * first * last
    size = np.where(good, size, first * last)
    mixed = np.where(good, between, 0.0) / size
    own, other = last / size, first / size

    def solve(r: Array) -> Array:
        a, b = r.T
        return np.column_stack((own * a - mixed * b, other * b - mixed * a))

    return solve


def by_rows(moments: Array, strength: Array, curve: Array) -> Solve:
    """Of a full matrix and offsets: row j of H is taken for S_j + c_j·E[f·fᵀ], f = (x, 1).

    Parameters
    ----------
    moments : array of shape (k + 1, k + 1)
        E[f·fᵀ].
    strength : array of shape (k, k + 1)
        The ridges S. They are the same for all rows but on the diagonal, so that one decomposition
        serves all; that one entry is put right by the formula of Sherman and Morrison.
    curve : array of shape (k,)
        c_j = Σ w·p_j(1 − p_j).

    >>> strength = np.array([[1.0, 3.0, 2.0], [3.0, 1.0, 2.0]])
    >>> solve = by_rows(np.eye(3), strength, np.array([0.5, 1.0]))
    >>> solve(np.array([[1.5, 3.5, 2.5], [4.0, 2.0, 3.0]])).round(9).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    k, each = len(strength), np.arange(len(strength))
    ridge = np.append(strength[(each + 1) % k, each], strength[0, k])
    unit = 1.0 / np.sqrt(ridge)
    values, vectors = np.linalg.eigh(moments * unit * unit[:, None])
    basis = unit[:, None] * vectors
    shrunk = 1.0 / (1.0 + curve[:, None] * np.maximum(values, 0.0))
    column = (basis[:k] * shrunk) @ basis.T
    excess = ridge[:k] - strength[each, each]
    share = excess / (1.0 - excess * column[each, each])

    def solve(r: Array) -> Array:
        u = ((r @ basis) * shrunk) @ basis.T
        return np.asarray(u + (share * u[each, each])[:, None] * column)

    return solve
