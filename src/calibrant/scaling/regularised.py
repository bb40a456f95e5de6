"""What the fits of softmax(W·x + b) share: ridges towards the identity, and a look at its gain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_matrix import ScoreMatrix
from calibrant.kernels.softmax import (
    DENSE,
    RIDGE,
    SoftmaxFit,
    SoftmaxProblem,
    Source,
    fit_softmax,
    fit_temperature,
    objective,
    row_losses,
    spread,
)
from calibrant.maps import Softmax
from calibrant.scaling.base import KEPT, Reading, VectorCalibrator

__all__ = ["AffineCalibrator", "Family", "RidgeCalibrator", "choose_strength", "deal"]

Array = NDArray[np.float64]

FOLDS = 5
#: rows that folds are made of; of more rows so many are taken, spread evenly over their order
MOST_ROWS = 20_000
#: rows times squared parameters that five folds may have where Hessians are formed, and rows times
#: parameters where they are not: beyond, one part of the rows judges
DENSE_WORK, SPARSE_WORK = 500_000_000, 4_000_000
#: the most rows that a single part holds out
MOST_HELD = 5_000
#: strengths that are tried by default, from strong to weak
DECADES = tuple(10.0**e for e in range(3, -7, -1))


class RowFold(NamedTuple):
    """The rows that a fold leaves, their weight, and the rows that it holds out."""

    rest: Source
    total: float
    held: Source


class HeldOutRows(NamedTuple):
    """Mean loss on rows held out, mean gain over the scores as they are, that gain's standard
    error, and the θ of each fold."""

    loss: float
    gain: float
    error: float
    thetas: list[Array]


class Family:
    """softmax(W·x + b) on the features of a matrix, W diagonal or full.

    Inside, features are divided by their spread, so that logits of any size fit alike; strengths
    of ridges are those of W and b themselves: ½·Σ strength·(θ − identity)², beside Σ w·loss. They
    come as a function of Σw, since some shrink less the more rows there are. ``tuned`` says that
    ``inner`` was fitted to the rows, so that every fold must find its own.
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
        """That of θ = [W, b]: (k, k + 1), or (k, 2) with W's diagonal only."""
        return (self.k, self.k + 1 if self.full else 2)

    @property
    def is_small(self) -> bool:
        """Whether Hessians are formed: only then is a strength chosen on rows held out."""
        return self.k * self.shape[1] <= DENSE

    @property
    def budget(self) -> int:
        """The most rows that five folds are made of: the fewer, the more parameters there are."""
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
        """The least objective, from the best of the identity, a temperature, and ``start``."""
        problem = self._problem(strength(self.total), self.source, self.total)
        warm = self._temperature(self.source) if start is None else start
        starts = [self.identity, self.unchanged, warm]
        return fit_softmax(problem, min(starts, key=lambda theta: objective(problem, theta)))

    def _temperature(self, source: Source) -> Array:
        """The θ of the best temperature; the identity's for no rows."""
        if not any(len(x) for x, _, _ in source()):
            return self.identity
        found = fit_temperature(source, smoothing=self.smoothing)
        return self._scaled(found.factor / self.size)

    @cached_property
    def folds(self) -> list[RowFold]:
        """Five, no row in two of them; where that is too dear, one of at most a fifth."""
        matrix = self.read.matrix
        several = len(matrix) <= self.budget
        count = FOLDS if several else max(FOLDS, -(-len(matrix) // MOST_HELD))
        fold = deal(matrix, count)

        def part(j: int, held: bool) -> Source:
            def blocks() -> Iterator[tuple[Array, NDArray[np.intp], Array]]:
                start = 0
                for x, codes, w in self.source():
                    kept = (fold[start : start + len(x)] == j) == held
                    start += len(x)
                    yield x[kept], codes[kept], w[kept]

            if matrix.scores.size > KEPT:
                return blocks
            made = list(blocks())
            return lambda: iter(made)

        sums = np.bincount(fold, matrix.weight, minlength=count)
        used = range(FOLDS if several else 1)
        rest = [float(np.delete(sums, j).sum()) for j in used]
        return [RowFold(part(j, False), rest[j], part(j, True)) for j in used]

    def held_out(self, strength: Callable[[float], Array], starts: list[Array]) -> HeldOutRows:
        """What rows lose and gain under the fit to the other folds."""
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

        def blocks() -> Iterator[tuple[Array, NDArray[np.intp], Array]]:
            for x, codes, w in source():
                logits = factor * x
                logits -= logits.max(axis=1, keepdims=True)
                logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
                yield logits / self.size, codes, w

        return blocks

    def temperature_held_out(self) -> HeldOutRows:
        """The same of temperature scaling, which every family holds."""
        thetas = [self._temperature(fold.rest) for fold in self.folds]
        return self._judge(thetas, [fold.held for fold in self.folds])

    def _judge(self, thetas: list[Array], seen: list[Source]) -> HeldOutRows:
        parts = []
        for fold, theta, held in zip(self.folds, thetas, seen, strict=True):
            for (x, codes, w), (features, _, _) in zip(fold.held(), held(), strict=True):
                if len(x):
                    loss = row_losses(features, codes, theta, self.full)
                    before = row_losses(x, codes, self.unchanged, self.full)
                    parts.append((loss, before - loss, w))
        loss_, gain, w_ = (np.concatenate(column) for column in zip(*parts, strict=True))
        share = w_ / w_.sum()
        mean = float(share @ gain)
        error = float(np.sqrt(np.sum((share * (gain - mean)) ** 2)))
        return HeldOutRows(float(share @ loss_), mean, error, thetas)

    @cached_property
    def sample(self) -> Family:
        """The family on so many of the rows that five folds of them are not too dear."""
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

        Many rows are judged by a sample, but not a fit of many parameters: that needs all rows.
        """
        return self.sample if min(len(self.read.matrix), MOST_ROWS) <= self.budget else self

    def judged(self, strength: Callable[[float], Array], theta: Array) -> HeldOutRows:
        """What a fit that ended at θ gains and loses on rows held out of it."""
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


def deal(matrix: ScoreMatrix, count: int = FOLDS) -> NDArray[np.intp]:
    """The fold of each row: rows sorted by their scores and dealt in turn.

    Nothing is random and the order in which rows come plays no part. Nor do labels (but for equal
    scores): folds with equal shares of every class would repeat the accidents of the sample, and a
    fit to those accidents would seem to gain. (Of large matrices two columns are sorted by.)
    """
    fold = np.empty(len(matrix), dtype=np.intp)
    fold[_order(matrix)] = np.arange(len(matrix)) % count
    return fold


def _order(matrix: ScoreMatrix) -> NDArray[np.intp]:
    """Rows by their scores, then class and weight."""
    columns = list(matrix.scores.T if matrix.scores.size <= KEPT else matrix.scores[:, :2].T)
    least = [] if matrix.weight is None else [matrix.weight]
    return np.lexsort((*least, matrix.codes, *columns))


class AffineCalibrator(VectorCalibrator):
    """A calibrator whose map is softmax(W·x + b), unless less does as well.

    With ``gate``, temperature scaling takes the fit's place where it loses less on rows held out,
    and what is then left of the two is dropped for the scores as they are unless its gain over
    them exceeds the gain's standard error.

    Attributes
    ----------
    kept_ : {"fit", "temperature", "identity"}
        What the map is.
    gain_, gain_error_ : float
        Log loss per row that the fit gains over the scores as they are, on rows held out of it,
        and its standard error; NaN where that was not looked at.
    converged_, n_iter_ : bool, int
        That the solver reached its tolerance (or the fit raises), and its steps.
    """

    gate: bool
    kept_: str

    def _settle(self, family: Family, fit: SoftmaxFit, held: HeldOutRows | None) -> Softmax:
        """The fitted map, or a simpler one if that does as well on rows held out."""
        self.converged_, self.n_iter_ = True, fit.steps
        self.gain_ = float("nan") if held is None else held.gain
        self.gain_error_ = float("nan") if held is None else held.error
        self.kept_ = "fit"
        if self.gate and held is not None:
            simple = family.judge.temperature_held_out()
            if simple.loss <= held.loss:
                self.kept_, held = "temperature", simple
            if held.gain <= held.error:
                self.kept_ = "identity"
        if self.kept_ == "fit":
            return family.map(fit.theta)
        return family.temperature_map() if self.kept_ == "temperature" else family.unchanged_map()

    def _fit_and_settle(self, family: Family, strength: Callable[[float], Array]) -> Softmax:
        fit = family.fit(strength)
        held = family.judged(strength, fit.theta) if self.gate else None
        return self._settle(family, fit, held)


class RidgeCalibrator(AffineCalibrator):
    """A full W with ridges λ off its diagonal and μ on b, per mean log loss (ODIR)."""

    lambda_: float | str
    mu: float | None

    def _fit_ridges(self, family: Family) -> Softmax:
        k, n = family.k, family.total
        pairs, mu = k * (k - 1), self.mu

        def strength(value: float) -> Callable[[float], Array]:
            on_b = value if mu is None else mu

            def of(total: float) -> Array:
                off, on = 2.0 * total * value / pairs, 2.0 * total * on_b / k
                return family.strength(diagonal=0.0, off_diagonal=off, intercept=on)

            return of

        self.held_out_: dict[float, float] = {}
        if not isinstance(self.lambda_, str):
            value = float(self.lambda_)
            fitted = self._fit_and_settle(family, strength(value))
        elif family.is_small:
            part = family.sample
            choice = choose_strength(part, strength)
            # the ridge beside the summed loss stays the same when rows are added
            value, self.held_out_ = choice.value * part.total / n, choice.losses
            start = np.mean(choice.held.thetas, axis=0) / part.units * family.units
            fit, held = family.fit(strength(value), start), choice.held
            if self.gate and family.judge is not part:
                held = family.judged(strength(value), fit.theta)
            fitted = self._settle(family, fit, held)
        else:
            value, mu = pairs**2 / n, k**2 / n if mu is None else mu
            fitted = self._fit_and_settle(family, strength(value))
        self.lambda_used_, self.mu_used_ = value, value if mu is None else float(mu)
        self.matrix_, self.offsets_ = fitted.weights, fitted.bias
        return fitted


class Choice(NamedTuple):
    """A strength, what it does on rows held out, and the mean loss of every strength tried."""

    value: float
    held: HeldOutRows
    losses: dict[float, float]


def choose_strength(
    family: Family,
    strength: Callable[[float], Callable[[float], Array]],
    values: tuple[float, ...] = DECADES,
) -> Choice:
    """The strength with the least loss on rows held out.

    Decades from strong to weak until two in a row are worse than the best, then the half decades
    beside the best, within the range of ``values``. Each fit starts at its neighbour's.
    """
    tried: dict[float, HeldOutRows] = {}

    def best() -> float:
        return min(tried, key=lambda value: tried[value].loss)

    starts = [family.identity] * FOLDS
    for value in values:
        tried[value] = family.held_out(strength(value), starts)
        starts = tried[value].thetas
        if list(tried).index(best()) < len(tried) - 2:
            break
    decade = best()
    inner = (decade * 10**0.5, decade / 10**0.5)
    for value in (half for half in inner if min(values) < half < max(values)):
        tried[value] = family.held_out(strength(value), tried[decade].thetas)
    return Choice(best(), tried[best()], {value: held.loss for value, held in tried.items()})
