"""The two ways to fit segments: a calibrator for each, or a sigmoid of the map of all rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.calibrators.bls import BLS
from calibrant.data.score_table import ScoreTable
from calibrant.errors import ConvergenceError
from calibrant.estimators.base import Calibrator
from calibrant.estimators.named_methods import bare
from calibrant.kernels.descent import is_hidden
from calibrant.losses import logit, sigmoid
from calibrant.maps import Logistic, Map
from calibrant.segment.segment_cells import SegmentCells

#: prior standard deviations of a segment's offset (at its mean) and slope, on the logit scale
OFFSET, SLOPE = 1.0, 0.3
PRECISION = np.array([OFFSET**-2, SLOPE**-2])
#: the longest step of a segment's coefficients, in units of the largest (of 1 if both are smaller)
FURTHEST = 2.0


class Own:
    """The same calibrator for all rows and for each segment, each fitted to its own rows."""

    input = "score"

    def __init__(self, calibrator: Calibrator) -> None:
        self.calibrator = calibrator

    def common(self, table: ScoreTable) -> Map:
        """The map of all rows."""
        fitted: Map = bare(self.calibrator).fit_table(table).map_
        return fitted

    def each(self, stack: SegmentCells, wanted: Index, coarser: Array) -> list[Map | None]:
        """The maps of the wanted segments; None where one cannot be fitted."""
        maps: list[Map | None] = []
        for i in wanted.tolist():
            table = stack.table(i)
            maps.append(bare(self.calibrator).fit_table(table).map_ if table else None)
        return maps


class Residual:
    """BLS for all rows; in a segment a sigmoid of its logit, with a prior at no change.

    η = z + a + c·(z − z̄), z the logit of the common map (with several columns, of what the coarser
    segment gives) and z̄ its mean in the segment; a has a
    Gaussian prior of deviation `OFFSET`, c one of `SLOPE`. All segments are solved at once.
    """

    input = "default"

    def common(self, table: ScoreTable) -> Map:
        """The map of all rows."""
        return BLS().fit_table(table).map_

    def each(self, stack: SegmentCells, wanted: Index, coarser: Array) -> list[Map | None]:
        """Sigmoids of what the coarser map gives, which is known for each cell."""
        found = solve(stack, logit(coarser))
        intercept, slope = found.offset - found.tilt * found.centre, 1.0 + found.tilt
        return [Logistic(float(intercept[i]), (("z", float(slope[i])),)) for i in wanted]


Way = Own | Residual


class Solution(NamedTuple):
    """Offset, tilt and centre of each segment."""

    offset: Array
    tilt: Array
    centre: Array


class _SegmentProblem:
    """The losses of all segments with their priors, as functions of all offsets and tilts."""

    def __init__(self, stack: SegmentCells, z: Array) -> None:
        # a segment counts against the prior by its effective number of rows
        unit = stack.spread(stack.unit)
        self.stack, self.z = stack, z
        self.n0, self.n1 = stack.counts.negative * unit, stack.counts.positive * unit
        self.n = self.n0 + self.n1
        self.mass = stack.total(self.n)
        self.centre = stack.total(self.n * z) / np.where(self.mass > 0.0, self.mass, 1.0)
        self.apart = z - stack.spread(self.centre)

    def eta(self, theta: Array) -> Array:
        offset, tilt = (self.stack.spread(part) for part in theta)
        return np.asarray(self.z + offset + tilt * self.apart)

    def loss(self, theta: Array) -> Array:
        eta = self.eta(theta)
        cells = self.n1 * np.logaddexp(0.0, -eta) + self.n0 * np.logaddexp(0.0, eta)
        return np.asarray(self.stack.total(cells) + 0.5 * PRECISION @ np.square(theta))

    def newton(self, theta: Array) -> tuple[Array, Array]:
        """Newton's step of every segment, and the slope by which the loss falls along it."""
        eta, total = self.eta(theta), self.stack.total
        p, q = sigmoid(eta), sigmoid(-eta)
        residual, curve = self.n1 * q - self.n0 * p, self.n * p * q
        g0 = total(residual) - PRECISION[0] * theta[0]
        g1 = total(residual * self.apart) - PRECISION[1] * theta[1]
        h00 = total(curve) + PRECISION[0]
        h01 = total(curve * self.apart)
        h11 = total(curve * self.apart * self.apart) + PRECISION[1]
        det = h00 * h11 - h01 * h01
        step = np.stack(((h11 * g0 - h01 * g1) / det, (h00 * g1 - h01 * g0) / det))
        return step, g0 * step[0] + g1 * step[1]


def solve(stack: SegmentCells, z: Array) -> Solution:
    """The most probable offset and tilt of every segment, by Newton's method on all at once.

    A ConvergenceError is raised where no optimum is found.
    """
    problem = _SegmentProblem(stack, z)
    theta = np.zeros((2, len(stack)))
    loss = problem.loss(theta)
    moving = np.ones(len(stack), dtype=bool)
    for _ in range(100):
        step, fall = problem.newton(theta)
        last = fall <= 1e-14 * (1.0 + problem.mass)
        theta = np.where(moving & last, theta + step, theta)  # the last step is taken too
        moving &= ~last
        if not moving.any():
            break
        reach = FURTHEST * np.maximum(1.0, np.abs(theta).max(axis=0))
        length = moving * np.minimum(1.0, reach / np.maximum(np.abs(step).max(axis=0), 1e-300))
        for _ in range(40):
            there = problem.loss(theta + length * step)
            worse = moving & (there > loss - 1e-4 * length * fall)
            if not worse.any():
                break
            length = np.where(worse, 0.5 * length, length)
        moving &= ~(worse & is_hidden(fall, loss, problem.mass))
        if (moving & worse).any():
            break
        theta = np.where(moving, theta + length * step, theta)
        loss = np.where(moving, there, loss)
    if moving.any():
        raise ConvergenceError(
            f"the fit of every segment must end at its optimum, but {int(moving.sum())} did not. "
            "Weights that differ by many orders of magnitude can do this: rescale or cut them."
        )
    return Solution(theta[0], theta[1], problem.centre)
