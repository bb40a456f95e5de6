"""Cubic splines written by their second derivatives at the knots.

f(x) = α + βx + Σ γ_j·G_j(x), where the second derivative of G_j is the hat at knot t_j. Then ∫f″²
is γᵀMγ with the tridiagonal mass matrix M = LLᵀ of the hats, and |d|² in d = Lᵀγ. That is well
conditioned however unequal the gaps are, and its penalty is 0 exactly for straight lines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Index


class Cubic(NamedTuple):
    """A cubic spline: value, slope and second derivative at its knots."""

    knots: Array
    value: Array
    slope: Array
    bend: Array

    def __call__(self, x: Array) -> Array:
        """f at places between the outer knots."""
        j = np.clip(np.searchsorted(self.knots, x, side="right") - 1, 0, len(self.knots) - 2)
        h, s = self.knots[j + 1] - self.knots[j], x - self.knots[j]
        change = (self.bend[j + 1] - self.bend[j]) / h
        return np.asarray(
            self.value[j] + s * (self.slope[j] + s * (self.bend[j] / 2 + s * change / 6))
        )

    def places(self, tol: float, most: int) -> tuple[Array, float]:
        """Places between which straight lines stay within ``tol`` of f, and the largest error.

        On a piece of width w the error is at most w²·max|f″|/8, and |f″| is largest at a knot. No
        interval is divided into more than ``most`` pieces, even if the error is then larger.
        """
        h = np.diff(self.knots)
        bend = np.maximum(np.abs(self.bend[1:]), np.abs(self.bend[:-1]))
        pieces = np.clip(np.ceil(h * np.sqrt(bend / (8.0 * tol))), 1, most).astype(np.intp)
        error = float(((h / pieces) ** 2 * bend).max()) / 8.0
        return divide_intervals(self.knots, pieces), error


class Basis(NamedTuple):
    """The coordinates (α, β, d) of cubic splines on given knots.

    α + βx is the line of least squares through f at the cells. So the penalty is |d|², and α, β
    hardly depend on d.
    """

    knots: Array
    columns: Array  # f at the cells, one row per coordinate
    bends: Array  # γ = bends @ d
    lines: Array  # intercept and slope of the line of least squares through each column of d
    slopes: Array  # slopes @ γ is Σ γ_j·G_j′ at the knots
    values: Array  # values @ γ is Σ γ_j·G_j at the knots

    def spline(self, theta: Array) -> Cubic:
        """The spline with these coordinates."""
        gamma = self.bends @ theta[2:]
        intercept, slope = theta[:2] - self.lines @ theta[2:]
        return Cubic(
            self.knots,
            intercept + slope * self.knots + self.values @ gamma,
            slope + self.slopes @ gamma,
            gamma,
        )

    def rising(self) -> Array:
        """Rows C such that Cθ ≥ 0 makes f rise: the B-spline coefficients of f′.

        Those of a parabola q between knots a and b are q(a), q(a) + (b − a)/2·q′(a) and q(b).
        """
        half = np.diff(self.knots)[:, None] / 2 * np.eye(len(self.knots))[:-1]
        gamma = np.concatenate((self.slopes[:1], self.slopes[:-1] + half, self.slopes[-1:]))
        rest = gamma @ self.bends - self.lines[1]
        return np.column_stack((np.zeros(len(rest)), np.ones(len(rest)), rest))


def divide_intervals(knots: Array, pieces: Index) -> Array:
    """Knots, and places that divide each interval between them into equal pieces.

    >>> divide_intervals(np.array([0.0, 1.0, 2.0]), np.array([1, 4])).tolist()
    [0.0, 1.0, 1.25, 1.5, 1.75, 2.0]
    """
    first = np.repeat(np.cumsum(pieces) - pieces, pieces)
    share = (np.arange(len(first)) - first) / np.repeat(pieces, pieces)
    inner = np.repeat(knots[:-1], pieces) + share * np.repeat(np.diff(knots), pieces)
    return np.append(inner, knots[-1])


def weighted_quantiles(x: Array, weight: Array, shares: Array) -> Array:
    """Quantiles of ascending x: the places below which these shares of the weight lie, by
    mid-ranks."""
    upto = np.cumsum(weight)
    return np.asarray(np.interp(shares, (upto - weight / 2) / upto[-1], x))


def quantile_knots(
    x: Array, weight: Array, count: int, ends: tuple[float, float], apart: float
) -> Array:
    """At most ``count`` knots: both ends, and quantiles of x further apart than a share of the
    range.

    >>> x = np.arange(5.0)
    >>> quantile_knots(x, np.ones(5), 3, (0.0, 4.0), 1e-3).tolist()
    [0.0, 2.0, 4.0]
    """
    low, high = ends
    gap, knots = apart * (high - low), [low]
    for knot in weighted_quantiles(x, weight, np.arange(1, count - 1) / (count - 1)).tolist():
        if knots[-1] + gap <= knot <= high - gap:
            knots.append(knot)
    return np.array([*knots, high])


def spline_basis(x: Array, weight: Array, knots: Array) -> Basis:
    """The basis at cells x, whose weighted mean and variance are 0 and 1 (or 0 and 0)."""
    h, unit = np.diff(knots), np.eye(len(knots))
    mass = np.diag(np.append(h, 0.0) / 3 + np.append(0.0, h) / 3)
    mass += np.diag(h / 6, 1) + np.diag(h / 6, -1)
    factor = np.linalg.cholesky(mass)
    rise = h[:, None] * (unit[:-1] + unit[1:]) / 2
    slopes = np.concatenate((np.zeros((1, len(knots))), np.cumsum(rise, axis=0)))
    step = h[:, None] * slopes[:-1] + h[:, None] ** 2 * (unit[:-1] / 3 + unit[1:] / 6)
    values = np.concatenate((np.zeros((1, len(knots))), np.cumsum(step, axis=0)))
    hats = np.array(
        [Cubic(knots, values[:, j], slopes[:, j], unit[j])(x) for j in range(len(knots))]
    )
    bent = np.linalg.solve(factor, hats)
    total = weight.sum()
    lines = np.array([bent @ weight, bent @ (weight * x)]) / total
    bent -= lines[0][:, None] + lines[1][:, None] * x
    return Basis(
        knots,
        np.concatenate((np.ones((1, len(x))), x[None, :], bent)),
        np.linalg.inv(factor).T,
        lines,
        slopes,
        values,
    )


def interpolate(x: Array, places: Array, values: Array) -> Array:
    """The broken line through (place, value) points, flat beyond them: `np.interp` without its
    overflow."""
    if len(places) == 1:
        return np.full(len(x), values[0])
    i = piece_of(places, x)
    low, high = places[i], places[i + 1]
    x = np.minimum(np.maximum(x, low), high)
    with np.errstate(over="ignore"):
        wide = np.isinf(places[1:] - places[:-1])
    if wide.any():
        scale = np.where(wide, 0.5, 1.0)[i]
        low, high, x = low * scale, high * scale, x * scale
    t = (x - low) / np.maximum(high - low, 5e-324)  # places may be equal
    return np.asarray((1.0 - t) * values[i] + t * values[i + 1])


def piece_of(nodes: Array, x: Array) -> Index:
    """The number of the piece on which each x lies. The two outermost pieces are unbounded."""
    after = np.searchsorted(nodes, x, "right")
    return np.minimum(np.maximum(after - 1, 0), len(nodes) - 2)


# --- Fewer knots for a polygonal line, within a tolerance: in plain Python, without numba ---------


def few_knots(x: Any, v: Any, tol: float) -> list[int]:
    """Indices of knots whose polygon stays within ``tol`` of the one through all points (x, v).

    From the last knot kept, the slopes that pass within tol of every point since form a cone. The
    furthest point whose own slope lies in the cone is the next knot. O(n) for smooth lines. Here x
    and v are best lists; `calibrant.solvers._kernel` takes arrays.

    >>> few_knots([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 0.0], 0.01)
    [0, 2, 3]
    """
    kept, anchor = [0], 0
    while anchor < len(x) - 1:
        low, high, good = -np.inf, np.inf, anchor + 1
        for i in range(anchor + 1, len(x)):
            width = x[i] - x[anchor]
            if width <= 0.0:
                break
            slope = (v[i] - v[anchor]) / width
            if low <= slope <= high:
                good = i
            low, high = max(low, slope - tol / width), min(high, slope + tol / width)
            if low > high:
                break
        anchor = good
        kept.append(anchor)
    return kept
