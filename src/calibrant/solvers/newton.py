"""The guarded Newton of logistic and softmax fits: it ends at the optimum, or says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.linalg.lapack import dpotrs

from calibrant.array_types import Array, Flags
from calibrant.errors import ConvergenceError

#: the longest step of a parameter, in units of the largest parameter (or of 1): far from the
#: optimum the Hessian may all but vanish, and a full step would lead to where it is zero
FURTHEST = 25.0
#: converged when twice the gain still expected is below this share of the objective
ENOUGH = 1e-14
#: rounding of the objective, as a share of it
ROUNDING = 1e-15
#: where rounding hides any further gain, no more than this share of the objective may be left
HIDDEN = 1e-9
#: near the optimum a step that leaves more than this share of what was left is rounding only
SLOWEST = 0.5
#: a gain of so many nats a row is none at all: rows that separate have an objective near 0
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
    """The last point that was evaluated, the parameters after the last step (which is below
    rounding), the number of steps, twice the gain still expected, and whether it converged."""

    point: P
    theta: Array
    steps: int
    left: float
    converged: bool

    def required(self) -> Descent[P]:
        """The same descent, or an error if it did not reach the optimum."""
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
    enough: float | None = None,
) -> Descent[P]:
    """Minimise a convex function, from ``here`` on.

    Parameters
    ----------
    at : callable
        The point at any parameters.
    here : Point
        Where to begin. The objective never rises (but for rounding), so it pays to begin at the
        best of several points.
    step : callable
        Newton's step from a point. Within a cone, the step must end inside.
    total : float
        The weight of all rows.
    max_steps : int
    enough : float, optional
        Converged when twice the gain still expected is below this, in nats; by default below
        1e-14 of the objective.

    Notes
    -----
    A step is halved until the objective falls by a share of what its slope promises (Armijo).
    The last step, after which it has converged, is taken too. What is enough goes by the objective
    and not by the weight of all rows: with rare events the objective is a small part of that. Near
    the optimum every step squares what is left, as a share. Where little is left and a step does
    not even halve it, only the rounding of the gradient is left: then it has converged as well.
    """
    left = np.inf
    for steps in range(1, max_steps + 1):
        direction = step(here)
        slope = float((here.gradient * direction).sum())
        before, left, size = left, -slope, float(np.abs(direction).max())
        if SLOWEST * before < left <= HIDDEN * abs(here.objective):
            return Descent(here, here.theta, steps, left, True)
        reach = FURTHEST * max(1.0, float(np.abs(here.theta).max()))
        if left <= (ENOUGH * abs(here.objective) if enough is None else enough):
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
    """A descent that ends here. It has converged only if rounding may hide the rest of the gain."""
    hidden = bool(is_hidden(left, here.objective, total))
    return Descent(here, here.theta, steps, left, hidden)


def is_hidden(
    left: float | Array, objective: float | Array, total: float | Array
) -> np.bool_ | Flags:
    """Whether the gain still expected is below the rounding of the objective; ``left`` is twice
    that gain."""
    return np.asarray(left) <= np.maximum(HIDDEN * np.abs(objective), NOTHING * total)


def newton_step(hessian: Array, gradient: Array) -> Array:
    """Newton's step −H⁻¹g, for a gradient of any shape."""
    solved, _ = dpotrs(factor(hessian), gradient.reshape(-1), lower=1)
    return -np.asarray(solved).reshape(gradient.shape)


def factor(hessian: Array) -> Array:
    """The lower Cholesky factor L of H = LLᵀ.

    Where H is not positive definite, its diagonal (brought to 1) is raised until it is.
    """
    diagonal = np.diag(hessian)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    unit, shift = hessian / scale / scale[:, None], 0.0
    for _ in range(60):
        try:
            lower = np.linalg.cholesky(unit + shift * np.eye(len(unit)) if shift else unit)
            return np.asarray(scale[:, None] * lower)
        except np.linalg.LinAlgError:
            shift = max(shift * 10.0, 1e-15)
    return np.diag(scale)
