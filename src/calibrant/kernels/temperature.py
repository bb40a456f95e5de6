"""Guarded Newton for one temperature: sums over rows, and the descent in 1/T."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from calibrant.array_types import Array
from calibrant.errors import ConvergenceError
from calibrant.kernels.blas_threads import one_thread
from calibrant.kernels.block_arrays import Source, ops_of, powers, tensor_ops
from calibrant.kernels.fused_rows import RowFacts, row_powers

#: the flattest temperature: 1/T times the spread of the logits is at least this
FLATTEST = 1e-3
#: precision of every parameter in units of the spread, per unit of weight (so that neither the
#: scale of the weights nor repeated rows matter): it has no effect unless the classes separate
RIDGE = 1e-7


class TemperatureFit(NamedTuple):
    """1/T, and the loss and the slope of the objective there."""

    factor: float
    loss: float
    slope: float


class TemperatureSums(Protocol):
    """What `fit_temperature` asks of rows."""

    def spread(self) -> float:
        """Root mean square difference of two entries of a row, weighted; 1 where all are equal."""

    def along(self, t: float, smoothing: float) -> tuple[float, float, float, float]:
        """Σ w·(lse(t·u) − t·Σ target·u), its first and second derivative, and Σw.

        u are the differences to the own class.
        """

    def own_losses(self, t: float) -> Array:
        """lse(t·u) of each row: −ln of the probability of its own class."""


class BlockSums(NamedTuple):
    """Sums that are made block by block."""

    source: Source

    def spread(self) -> float:
        return spread(self.source)

    def along(self, t: float, smoothing: float) -> tuple[float, float, float, float]:
        loss = slope = curve = weight = 0.0
        for x, codes, w in self.source():
            ops = ops_of(x)
            u = x - ops.own(x, codes)[:, None]  # the loss is then ln Σ exp, with no cancellation
            e, top, total = powers(t * u)
            e *= u
            mean = e.sum(axis=1) / total
            variance = ops.dots(e, u) / total - mean * mean
            target = smoothing * u.mean(axis=1) if smoothing else 0.0 * mean
            loss += ops.total(w, ops.log(total) + top - t * target)
            slope += ops.total(w, mean - target)
            curve += ops.total(w, ops.clip(variance, 0.0, np.inf))  # rounding
            weight += float(w.sum())
        return loss, slope, curve, weight

    def own_losses(self, t: float) -> Array:
        parts = []
        for x, codes, _ in self.source():
            ops = ops_of(x)
            _, top, total = powers(t * (x - ops.own(x, codes)[:, None]))
            parts.append(ops.host(ops.log(total) + top))
        return np.concatenate(parts)


class FusedSums:
    """Sums of the rows of a tensor that a kernel can read (`calibrant.kernels.fused_rows`).

    All that has a number for each row stays on the tensor's device, in float64.
    """

    def __init__(self, x: Any, facts: RowFacts, codes: Any, weight: Array) -> None:
        ops = tensor_ops(x)
        self.x, self.facts, self.host_weight = x, facts, weight
        wide = ops.wide(x[:0])
        high, mean, self.weight = (ops.beside(v, wide) for v in (facts.high, facts.mean, weight))
        own = ops.wide(ops.own(x, ops.beside(codes, x)))
        self.top, self.away, self.even = high.float(), high - own, mean - own  # v + away = u

    def spread(self) -> float:
        k, w = self.x.shape[1], self.host_weight
        mean = float(w @ self.facts.square) / float(w.sum())
        return float(np.sqrt(2.0 * k / (k - 1) * mean)) or 1.0

    def along(self, t: float, smoothing: float) -> tuple[float, float, float, float]:
        lse, mean, variance = row_powers(self.x, t, self.top)
        away = self.away - smoothing * self.even
        found = (lse + t * away, mean + away, variance)
        loss, slope, curve = ((self.weight * rows).sum() for rows in found)
        return float(loss), float(slope), float(curve), float(self.host_weight.sum())

    def own_losses(self, t: float) -> Array:
        return tensor_ops(self.x).host(row_powers(self.x, t, self.top).lse + t * self.away)


def spread(source: Source) -> float:
    """Root mean square difference of two entries of a row, weighted; 1 where all are equal."""
    total = weight = 0.0
    with one_thread():
        for x, _, w in source():
            ops, centred = ops_of(x), x - x.mean(axis=1)[:, None]
            total += 2.0 / (x.shape[1] - 1) * ops.total(w, ops.dots(centred, centred))
            weight += float(w.sum())
    return float(np.sqrt(total / weight)) or 1.0


def fit_temperature(
    sums: TemperatureSums,
    *,
    smoothing: float = 0.0,
    start: float | None = None,
    max_passes: int = 60,
) -> TemperatureFit:
    """The factor t = 1/T > 0 with the least Σ w·(lse(t·x) − t·Σ target·x).

    The objective is convex in t. Newton's method runs inside a bracket that shrinks with each pass;
    where a step would leave the bracket, it is halved on the scale of ln t. Converged when the step
    is below 1e-6 of t; that step is still taken, and leaves an error of about its square. Raises
    where no optimum is found.
    """
    size = sums.spread()
    flattest = FLATTEST / size
    low, high = flattest, np.inf
    t = max(1.0 / size if start is None else start, flattest)
    for _ in range(max_passes):
        with one_thread():
            loss, slope, curve, weight = sums.along(t, smoothing)
        ridge = RIDGE * weight * size * size
        loss, slope, curve = loss + 0.5 * ridge * t * t, slope + ridge * t, curve + ridge
        if t == flattest and slope >= 0.0:
            return TemperatureFit(t, loss, slope)
        low, high = (t, high) if slope < 0.0 else (low, t)
        step = -slope / curve
        if abs(step) <= 1e-6 * t or high - low <= 1e-14 * t:
            return TemperatureFit(max(t + step, flattest), loss, slope)
        new = min(t + step, 10.0 * t)
        if new <= flattest == low:
            new = flattest
        elif not low < new < high:
            new = float(np.sqrt(low * high))
        t = new
    raise ConvergenceError(
        f"the temperature must end at its optimum, but after {max_passes} passes its factor was "
        f"still between {low:.6g} and {high:.6g}. Scores or weights that differ by many orders of "
        "magnitude can do this: rescale or cut them."
    )
