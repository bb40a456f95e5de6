"""Mean products of residuals over pairs of rows, weighed by how near their predictions are.

A residual is the vector e_y − p. Each class here knows the mean for the labels that came, and for
labels redrawn from the predictions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist

from calibrant.array_types import Array, Flags, Index
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.data.weighing import matrix_in_rows
from calibrant.errors import InputError
from calibrant.metrics.redrawn_labels import BLOCK, CellRows, redrawn_hits
from calibrant.metrics.weighted_cells import (
    check_counts,
    check_weights,
    impossible,
    residuals,
    squared_residuals,
    squares,
    table_for_test,
)

Codes = NDArray[np.int32]
Random = np.random.Generator

#: predictions whose distances give the bandwidth
SAMPLE = 1000
#: rows are put into blocks where the square of their number is beyond this
WORK = 1.6e7
#: the most rows that counts may stand for
REPEATED = 1e8
#: the fewest rows of a block
SMALLEST = 50


class TablePairs:
    """All pairs of rows of a table of two classes; ⟨residual, residual⟩ is 2(y − p)(y' − p').

    The Laplace kernel on a line is a product of the steps between neighbours, so all pairs of D
    cells cost O(D).
    """

    def __init__(self, table: ScoreTable, weights: str, bandwidth: float | None) -> None:
        self.table = table_for_test(table, weights)
        self.impossible = impossible(table)
        p = self.table.scores
        self.bandwidth = _median(p[_evenly(len(p)), None]) if bandwidth is None else bandwidth
        with np.errstate(over="ignore"):
            self._decay = np.exp(-np.diff(p, prepend=p[0]) / self.bandwidth)
        total = self.table.total
        self.pairs = (total - float(squares(self.table).sum()) / total) * total
        _check_pairs(self.pairs, total)

    def value(self) -> float:
        """The mean for the labels that came."""
        apart, own = residuals(self.table), squared_residuals(self.table)
        return float(self._means(apart[None, :], own[None, :])[0])

    def redrawn(self, replicates: int, random: Random) -> Array:
        """The means for labels redrawn from the predictions."""
        rows = CellRows.of(self.table)
        drawn = redrawn_hits(rows, replicates, random)
        return np.concatenate([self._means(*_sums(rows, *hits)) for hits in drawn])

    def _means(self, apart: Array, own: Array) -> Array:
        """The mean over pairs of rows, from Σw(y − p) and Σw²(y − p)² of each cell.

        A row is no pair with itself.
        """
        from calibrant.kernels.laplace_pairs import pair_sums

        within = np.einsum("ij,ij->i", apart, apart) - own.sum(axis=1)
        between = pair_sums(np.ascontiguousarray(apart), self._decay)
        return np.asarray(2.0 * (within + 2.0 * between) / self.pairs)


def _sums(rows: CellRows, one: Flags, many: Index, hits: NDArray[np.int64]) -> tuple[Array, Array]:
    """Σw(y* − p) and Σw²(y* − p)² of each cell, from what `redrawn_hits` gives."""
    apart = rows.other * (one - rows.p)
    own = apart**2
    rest, q, w = rows.size[many] - 1.0, rows.p[many], rows.common[many]
    apart[:, many] += w * (hits - rest * q)
    own[:, many] += w**2 * (hits * (1.0 - q) ** 2 + (rest - hits) * q**2)
    return apart, own


class MatrixPairs:
    """Pairs of rows of a matrix of probabilities: all of them, or those within blocks.

    Rows are put into blocks by chance, without a look at the labels. One block at a time is in
    memory.
    """

    def __init__(
        self, matrix: ScoreMatrix, weights: str, bandwidth: float | None, random: Random
    ) -> None:
        self.matrix = matrix
        rows, self._weight = _row_weights(matrix, weights)
        own = matrix.scores[np.arange(len(matrix)), matrix.codes]
        self.impossible = bool((own == 0.0).any())
        self.bandwidth = bandwidth or _median(self._distributions(_some(len(matrix), random)))
        self._blocks = [rows[part] for part in _blocks(len(rows), random)]
        parts = (self._weight[rows] for rows in self._blocks)
        self.pairs = sum(float(w.sum() ** 2 - w @ w) for w in parts)
        _check_pairs(self.pairs, float(self._weight[rows].sum()))

    def value(self) -> float:
        """The mean for the labels that came."""
        total = sum(
            block.sums(self.matrix.codes[rows, None].astype(np.int32))[0]
            for rows, block in zip(self._blocks, self._each(), strict=True)
        )
        return float(total) / self.pairs

    def redrawn(self, replicates: int, random: Random) -> Array:
        """The means for labels redrawn from the predictions."""
        totals = np.zeros(replicates)
        for block in self._each():
            step = max(1, 4 * BLOCK // len(block.p))
            for first in range(0, replicates, step):
                size = min(step, replicates - first)
                totals[first : first + size] += block.sums(block.draw(size, random))
        return totals / self.pairs

    def _each(self) -> Iterator[_Block]:
        for rows in self._blocks:
            yield _Block(self._distributions(rows), self._weight[rows], self.bandwidth)

    def _distributions(self, rows: Index) -> Array:
        p = self.matrix.scores[rows].astype(np.float64)
        return np.asarray(p / p.sum(axis=1, keepdims=True))


class _Block:
    """Rows of which all pairs are taken."""

    def __init__(self, p: Array, weight: Array, bandwidth: float) -> None:
        self.p, self.weight = p, weight
        with np.errstate(over="ignore"):
            near = np.exp(-0.5 * cdist(p, p, "cityblock") / bandwidth)
        np.fill_diagonal(near, 0.0)  # a row is no pair with itself
        near *= weight
        near *= weight[:, None]
        self.near, self.blurred = near, near @ p
        self.constant = float(np.einsum("ij,ij->", p, self.blurred))

    def draw(self, replicates: int, random: Random) -> Codes:
        """Redrawn classes, shape (rows, replicates)."""
        upto = np.cumsum(self.p, axis=1)
        upto /= upto[:, -1:]
        place = random.random((len(self.p), replicates))
        codes = np.zeros(place.shape, dtype=np.int32)
        for column in range(self.p.shape[1] - 1):
            codes += place >= upto[:, column, None]
        return codes

    def sums(self, codes: Codes) -> Array:
        """Σ ww'·near·⟨e_y − p, e_y' − p'⟩ over pairs of rows, for each column of codes.

        The product is [y = y'] − p'_y − p_y' + ⟨p, p'⟩.
        """
        from calibrant.kernels.laplace_pairs import same_class_sums

        crossed = np.take_along_axis(self.blurred, codes, axis=1).sum(axis=0)
        return np.asarray(same_class_sums(self.near, codes) - 2.0 * crossed + self.constant)


Pairs = TablePairs | MatrixPairs


def _row_weights(matrix: ScoreMatrix, weights: str) -> tuple[Index, Array]:
    """The rows to pair, and the weight of each row of the matrix; counts repeat rows."""
    check_weights(weights)
    rows, weight = np.arange(len(matrix)), matrix_in_rows(matrix, weights).weight
    if weight is None or weights != "counts":
        return rows, np.ones(len(matrix)) if weight is None else weight
    check_counts(weight, weights)
    if weight.sum() > REPEATED:
        raise InputError(
            f'weights="counts" repeats rows, {REPEATED:.0e} of them at most, but their sum is '
            f'{weight.sum():.3g}. Pass a part of the rows, or weights="importance".'
        )
    return np.repeat(rows, weight.astype(np.intp)), np.ones(len(matrix))


def _blocks(n: int, random: Random) -> list[Index]:
    """All rows, or blocks of about the same size with rows drawn by chance."""
    most = max(SMALLEST, int(WORK / n))
    if n <= most:
        return [np.arange(n)]
    return np.array_split(random.permutation(n), math.ceil(n / most))


def _some(n: int, random: Random) -> Index:
    return np.arange(n) if n <= SAMPLE else random.choice(n, SAMPLE, replace=False)


def _evenly(n: int) -> Index:
    return np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).round().astype(np.intp))


def _median(p: Array) -> float:
    """The median total variation between distinct predictions; 1 where all are equal.

    One column stands for two classes.
    """
    apart = pdist(np.unique(p, axis=0), "cityblock") * (1.0 if p.shape[1] == 1 else 0.5)
    return float(np.median(apart)) if len(apart) else 1.0


def _check_pairs(pairs: float, total: float) -> None:
    if not pairs > 1e-9 * total**2:
        raise InputError(
            "skce compares pairs of rows, so there must be two rows with weight, but one came."
        )
