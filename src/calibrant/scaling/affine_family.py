"""Fits of softmax(W·x + b) with ridges towards the identity, and what they gain on other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.kernels.block_arrays import Source, log_shares, ops_of
from calibrant.kernels.softmax import (
    SoftmaxFit,
    SoftmaxProblem,
    fit_softmax,
    forms_hessian,
    objective,
    row_losses,
)
from calibrant.kernels.temperature import RIDGE, BlockSums, fit_temperature, spread
from calibrant.maps import Softmax
from calibrant.scaling.base import KEPT, Reading

FOLDS = 5
#: folds are made of at most so many rows; of more rows, a sample spread evenly over their order
MOST_ROWS = 20_000
#: the most work that five folds may be: rows times squared parameters where Hessians are formed,
#: rows times parameters where they are not. Beyond that, a single part of the rows is held out
DENSE_WORK, SPARSE_WORK = 500_000_000, 4_000_000
#: the most rows that such a single part holds
MOST_HELD = 5_000
#: strengths that are tried, from strong to weak
DECADES = tuple(10.0**e for e in range(3, -7, -1))


class RowFold(NamedTuple):
    """The rows to fit, their weight, and the rows held out."""

    rest: Source
    total: float
    held: Source


class HeldOutRows(NamedTuple):
    """On rows held out: the mean loss, the mean gain over the scores as they are, and the standard
    error of that gain. And the θ fitted in each fold."""

    loss: float
    gain: float
    error: float
    thetas: list[Array]


class Family:
    """softmax(W·x + b) on the features of a matrix, W diagonal or full.

    Inside, features are divided by their spread, so that logits of any size fit alike. Ridges add
    ½·Σ strength·(θ − identity)² to Σ w·loss; their strengths refer to W and b themselves, and are
    given as a function of Σw, since some depend on the number of rows. ``tuned`` says that
    ``inner`` was fitted to the rows: every fold must then find its own.
    """

    def __init__(
        self,
        read: Reading,
        *,
        full: bool,
        smoothing: float,
        inner: float | None = None,
        tuned: bool = False,
    ) -> None:
        self.read, self.full, self.smoothing = read, full, smoothing
        self.inner, self.tuned = inner, tuned
        self.k, self.total = read.matrix.n_classes, read.matrix.total
        self.size = spread(read.source(inner=inner))
        self.source = read.source(inner=inner, size=self.size)
        self.units = np.ones(self.shape)
        self.units[:, :-1] = self.size
        self.identity = self._scaled(1.0)
        #: the θ that returns the scores' own distributions
        self.unchanged = self._scaled(1.0 / (1.0 if inner is None else inner))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of θ = [W, b]: (k, k + 1), or (k, 2) where W is diagonal."""
        return (self.k, self.k + 1 if self.full else 2)

    @property
    def is_small(self) -> bool:
        """Whether Hessians are formed. Only then is a strength chosen on rows held out."""
        return forms_hessian(self.k * self.shape[1], full=self.full)

    @property
    def budget(self) -> int:
        """The most rows that five folds are made of. More parameters leave fewer rows."""
        size = self.k * self.shape[1]
        work = DENSE_WORK // size**2 if self.is_small else SPARSE_WORK // size
        return min(MOST_ROWS, work)

    def _scaled(self, factor: float) -> Array:
        theta = np.zeros(self.shape)
        diagonal = (np.arange(self.k), np.arange(self.k) if self.full else 0)
        theta[diagonal] = factor * self.size
        return theta

    def strength(self, *, diagonal: float, off_diagonal: float, intercept: float) -> Array:
        """A strength for each parameter."""
        strength = np.full(self.shape, off_diagonal)
        strength[:, -1] = intercept
        strength[np.arange(self.k), np.arange(self.k) if self.full else 0] = diagonal
        return strength

    def _problem(self, strength: Array, source: Source, total: float) -> SoftmaxProblem:
        ridge = strength / self.units**2 + RIDGE * total
        return SoftmaxProblem(source, ridge, self.identity, self.smoothing, total)

    def fit(self, strength: Callable[[float], Array], start: Array | None = None) -> SoftmaxFit:
        """The fit of least objective. It begins at the best of the identity, the scores as they
        are, and ``start`` (by default a temperature)."""
        problem = self._problem(strength(self.total), self.source, self.total)
        if self.tuned and start is None:  # the identity is the best temperature
            return fit_softmax(problem, self.identity)
        warm = self._temperature(self.source) if start is None else start
        starts = [self.identity, self.unchanged, warm]
        return fit_softmax(problem, min(starts, key=lambda theta: objective(problem, theta)))

    def _temperature(self, source: Source) -> Array:
        """The θ of the best temperature; that of the identity where there are no rows."""
        if not any(len(x) for x, _, _ in source()):
            return self.identity
        found = fit_temperature(BlockSums(source), smoothing=self.smoothing)
        return self._scaled(found.factor / self.size)

    @cached_property
    def folds(self) -> list[RowFold]:
        """Five folds. Where five fits would take too long, a single one that holds out at most a
        fifth of the rows."""
        matrix = self.read.matrix
        several = len(matrix) <= self.budget
        count = FOLDS if several else max(FOLDS, -(-len(matrix) // MOST_HELD))
        fold = deal(matrix, count)

        def part(j: int, held: bool) -> Source:
            def blocks() -> Iterator[tuple[Array, Index, Array]]:
                start = 0
                for x, codes, w in self.source():
                    kept = np.flatnonzero((fold[start : start + len(x)] == j) == held)
                    start += len(x)
                    at = ops_of(x).beside(kept, x)
                    yield x[at], codes[at], w[at]

            if matrix.size > KEPT:
                return blocks
            made = list(blocks())
            return lambda: iter(made)

        sums = np.bincount(fold, matrix.weight, minlength=count)
        used = range(FOLDS if several else 1)
        rest = [float(np.delete(sums, j).sum()) for j in used]
        return [RowFold(part(j, False), rest[j], part(j, True)) for j in used]

    def held_out(self, strength: Callable[[float], Array], starts: list[Array]) -> HeldOutRows:
        """Loss and gain of the rows of each fold, under the fit to all other rows."""
        thetas, seen = [], []
        for fold, start in zip(self.folds, starts, strict=True):
            rest, held = fold.rest, fold.held
            if self.tuned:
                factor = float(self._temperature(rest)[0, 0])
                rest, held = self._retuned(rest, factor), self._retuned(held, factor)
            problem = self._problem(strength(fold.total), rest, fold.total)
            thetas.append(fit_softmax(problem, start).theta if fold.total else self.identity)
            seen.append(held)
        return self._judge(thetas, seen)

    def _retuned(self, source: Source, factor: float) -> Source:
        """Features at another temperature: x becomes ln softmax(factor·x), in units of size."""

        def blocks() -> Iterator[tuple[Array, Index, Array]]:
            for x, codes, w in source():
                yield log_shares(factor * x) / self.size, codes, w

        return blocks

    def temperature_held_out(self) -> HeldOutRows:
        """Loss and gain of a temperature alone, which is a member of every family."""
        thetas = [self._temperature(fold.rest) for fold in self.folds]
        return self._judge(thetas, [fold.held for fold in self.folds])

    def _judge(self, thetas: list[Array], seen: list[Source]) -> HeldOutRows:
        parts = []
        for fold, theta, held in zip(self.folds, thetas, seen, strict=True):
            for (x, codes, w), (features, _, _) in zip(fold.held(), held(), strict=True):
                if len(x):
                    loss = row_losses(features, codes, theta, self.full)
                    before = row_losses(x, codes, self.unchanged, self.full)
                    parts.append((loss, before - loss, ops_of(w).host(w)))
        loss_, gain, w_ = (np.concatenate(column) for column in zip(*parts, strict=True))
        share = w_ / w_.sum()
        mean = float(share @ gain)
        error = float(np.sqrt(np.sum((share * (gain - mean)) ** 2)))
        return HeldOutRows(float(share @ loss_), mean, error, thetas)

    @cached_property
    def sample(self) -> Family:
        """The family on as many of the rows as five folds can be made of."""
        matrix = self.read.matrix
        step = -(-len(matrix) // max(self.budget, 1))
        if step == 1:
            return self
        some = replace(self.read, matrix=matrix.take(np.sort(_order(matrix)[::step])))
        return Family(
            some, full=self.full, smoothing=self.smoothing, inner=self.inner, tuned=self.tuned
        )

    @property
    def judge(self) -> Family:
        """The family whose folds say what a fit is worth.

        A sample is enough where rows are many. But a fit of many parameters needs all rows, so
        that it is judged by a single part of them.
        """
        return self.sample if min(len(self.read.matrix), MOST_ROWS) <= self.budget else self

    def judged(self, strength: Callable[[float], Array], theta: Array) -> HeldOutRows:
        """Loss and gain on rows held out, for fits of this strength that begin at θ."""
        judge = self.judge
        start = theta / self.units * judge.units
        return judge.held_out(strength, [start] * len(judge.folds))

    def map(self, theta: Array) -> Softmax:
        """θ as a map."""
        own = theta / self.units
        matrix = own[:, :-1] if self.full else own[:, 0]
        return self.read.map(matrix, own[:, -1], self.inner)

    def temperature_map(self) -> Softmax:
        """The map of the best temperature."""
        inner = 1.0 if self.inner is None else self.inner
        factor = self._temperature(self.source)[0, 0] / self.size
        return self.read.map(factor * inner, np.zeros(self.k))

    def unchanged_map(self) -> Softmax:
        """The map that returns the scores' own distributions."""
        return self.read.map(1.0, np.zeros(self.k))


def deal(matrix: ScoreMatrix, count: int = FOLDS) -> Index:
    """The fold of each row: rows sorted by their scores and dealt in turn.

    Nothing is random, and neither the order of the rows nor their labels matter (except among
    equal scores). Folds with equal shares of every class would repeat the accidents of the sample,
    and a fit to those accidents would seem to gain. Large matrices are sorted by their first two
    columns only.
    """
    fold = np.empty(len(matrix), dtype=np.intp)
    fold[_order(matrix)] = np.arange(len(matrix)) % count
    return fold


def _order(matrix: ScoreMatrix) -> Index:
    """Rows by their scores, then class and weight."""
    columns = matrix.leading(matrix.n_classes if matrix.size <= KEPT else 2).T
    least = [] if matrix.weight is None else [matrix.weight]
    return np.lexsort((*least, matrix.codes, *columns))


class Choice(NamedTuple):
    """The best strength, its result on rows held out, and the mean loss of each strength tried."""

    value: float
    held: HeldOutRows
    losses: dict[float, float]


def choose_strength(
    family: Family,
    strength: Callable[[float], Callable[[float], Array]],
) -> Choice:
    """The strength with the least loss on rows held out.

    First decades, from strong to weak, until two in a row are worse than the best; then the half
    decades beside the best, within their range. Each fit starts where the one before
    it ended.
    """
    tried: dict[float, HeldOutRows] = {}

    def best() -> float:
        return min(tried, key=lambda value: tried[value].loss)

    starts = [family.identity] * FOLDS
    for value in DECADES:
        tried[value] = family.held_out(strength(value), starts)
        starts = tried[value].thetas
        if list(tried).index(best()) < len(tried) - 2:
            break
    decade = best()
    inner = (decade * 10**0.5, decade / 10**0.5)
    for value in (half for half in inner if min(DECADES) < half < max(DECADES)):
        tried[value] = family.held_out(strength(value), tried[decade].thetas)
    return Choice(best(), tried[best()], {value: held.loss for value, held in tried.items()})
