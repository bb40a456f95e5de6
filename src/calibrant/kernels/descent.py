"""The guarded Newton of logistic and softmax fits: it ends at the optimum, or says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from calibrant.errors import ConvergenceError

__all__ = ["Descent", "Point", "descend", "factor", "is_hidden", "newton_step"]

Array = NDArray[np.float64]

#: the longest step of a parameter, in units of the largest (of 1 if all are smaller): far from the
#: optimum the Hessian may vanish, and a step would lead to where it is zero
FURTHEST = 25.0
#: converged when twice the gain still expected is below this share of the objective
ENOUGH = 1e-14
#: rounding of the objective, as a share of it
ROUNDING = 1e-15
#: what may be left where rounding hides any further gain, as a share of the objective
HIDDEN = 1e-9
#: so near the optimum a step leaves far less than this share of what was left, or it is rounding
SLOWEST = 0.5
#: a gain that is nothing, in nats a row: rows that separate have an objective near 0
NOTHING = 1e-15


class Point(Protocol):
    """A place, with the objective and its gradient there."""

    @property
    def theta(self) -> Array: ...
    @property
    def objective(self) -> float: ...
    @property
    def gradient(self) -> Array: ...


P = TypeVar("P", bound=Point)


class Descent(NamedTuple, Generic[P]):
    """The last point that was looked at, the parameters after the last step (which is below
    rounding), how many steps it took, twice the gain still expected, and whether it converged."""

    point: P
    theta: Array
    steps: int
    left: float
    converged: bool

    def required(self) -> Descent[P]:
        """The same, or an error where the optimum was not reached."""
        if self.converged:
            return self
        raise ConvergenceError(
            f"the fit must end at its optimum, but after {self.steps} steps the log loss could "
            f"still fall by about {self.left / 2:.3g} from {self.point.objective:.6g}. Weights or "
            "scores that differ by many orders of magnitude can do this: rescale or cut them."
        )


def descend(
    at: Callable[[Array], P],
    here: P,
    step: Callable[[P], Array],
    total: float,
    max_steps: int = 200,
) -> Descent[P]:
    """The least of a convex function, from ``here``.

    Parameters
    ----------
    at : callable
        The point at any parameters.
    here : Point
        Where to begin. The objective never rises above the one here (but for rounding), so the
        best of several beginnings guards against a bad one.
    step : callable
        Newton's step from a point; within a cone, one that ends inside.
    total : float
        The weight of all rows.
    max_steps : int

    Notes
    -----
    A step is halved until the objective falls by a share of what its slope promises (Armijo).
    Converged when the Newton decrement, twice the gain still expected, is below 1e-14 of the
    objective; that last step is taken too. The objective, not the weight of all rows, is the
    measure: of rare events it is a small part of that. Near the optimum every step squares what is
    left, as a share: where little is left and a step does not even halve it, only the rounding of
    the gradient is left, and the descent has converged too.
    """
    left = np.inf
    for steps in range(1, max_steps + 1):
        direction = step(here)
        slope = float((here.gradient * direction).sum())
        before, left, size = left, -slope, float(np.abs(direction).max())
        if SLOWEST * before < left <= HIDDEN * abs(here.objective):
            return Descent(here, here.theta, steps, left, True)
        reach = FURTHEST * max(1.0, float(np.abs(here.theta).max()))
        if left <= ENOUGH * abs(here.objective):
            theta = here.theta + direction if size <= reach else here.theta
            return Descent(here, theta, steps, left, True)
        longest = length = min(1.0, reach / size)
        slack = ROUNDING * abs(here.objective)
        while True:
            there = at(here.theta + length * direction)
            if there.objective <= here.objective + 1e-4 * length * slope + slack:
                break
            length /= 2.0
            if length < 1e-10 * longest:  # rounding hides any further gain
                return _stopped(here, steps, left, total)
        here = there
    return _stopped(here, max_steps, left, total)


def _stopped(here: P, steps: int, left: float, total: float) -> Descent[P]:
    hidden = bool(is_hidden(left, here.objective, total))
    return Descent(here, here.theta, steps, left, hidden)


def is_hidden(
    left: float | Array, objective: float | Array, total: float | Array
) -> np.bool_ | NDArray[np.bool_]:
    """Whether twice the gain still expected is so little that rounding may hide it."""
    return np.asarray(left) <= np.maximum(HIDDEN * np.abs(objective), NOTHING * total)


def newton_step(hessian: Array, gradient: Array) -> Array:
    """−H⁻¹g, for a gradient of any shape."""
    flat = gradient.reshape(-1)
    return -np.asarray(cho_solve((factor(hessian), True), flat)).reshape(gradient.shape)


def factor(hessian: Array) -> Array:
    """The lower Cholesky factor; the Hessian, brought to a unit diagonal, is shifted until it has
    one."""
    diagonal = np.diag(hessian)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    unit, shift = hessian / scale / scale[:, None], 0.0
    for _ in range(60):
        try:
            lower = np.linalg.cholesky(unit + shift * np.eye(len(unit)))
            return np.asarray(scale[:, None] * lower)
        except np.linalg.LinAlgError:
            shift = max(shift * 10.0, 1e-15)
    return np.diag(scale)
