"""Trend filtering of degree two: smooth curves of parabolas, priced by jumps of their curvature.

Minimise ½Σw(p − z)² + λΣ|jump of p″| over curves p of parabolas that join with equal slopes at some
of the points x. As for broken lines (`calibrant.kernels.broken_lines`), the programme is solved on
candidates for jumps, and prices at all points say which are missing. A curve is stored by its
coefficients on quadratic B-splines, one more than there are candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.kernels._jit import jit
from calibrant.kernels.banded_qp import least_squares, solve_rows
from calibrant.kernels.candidates import with_room
from calibrant.kernels.cubic import divided

#: the complementarity gap that the solver may leave on the candidates, relative to the objective
INNER = 1e-12
#: the most rounds of adding candidates, and in how many of them candidates may be dropped
ROUNDS, DROPS = 200, 20
#: candidates are further apart than CLOSE, or than less if the gap cannot be closed so
CLOSE, LEAST = 1e-4, 1e-7
#: an objective this small per unit of weight is a perfect fit: below it gaps are absolute
FIT = 1e-7


@jit
def basis(t: Array, j: int, x: float) -> tuple[float, float, float]:
    """The three B-splines that are not zero on [t_j, t_{j+1}], at x."""
    before, after = t[max(j - 1, 0)], t[min(j + 2, len(t) - 1)]
    width = t[j + 1] - t[j]
    first = (t[j + 1] - x) ** 2 / ((t[j + 1] - before) * width)
    third = (x - t[j]) ** 2 / ((after - t[j]) * width)
    return first, 1.0 - first - third, third


@jit
def normal_equations(x: Array, w: Array, z: Array, at: Index) -> tuple[Array, Array]:
    """H as a lower band, and g, on the B-splines."""
    n = len(at) + 1
    hess, grad = np.zeros((n, 3)), np.zeros(n)
    t = x[at]
    for j in range(len(at) - 1):
        for i in range(at[j], at[j + 1] + 1 if j == len(at) - 2 else at[j + 1]):
            b = basis(t, j, x[i])
            for k in range(3):
                grad[j + k] += w[i] * z[i] * b[k]
                for m in range(k + 1):
                    hess[j + k, k - m] += w[i] * b[k] * b[m]
    return hess, grad


@jit
def curvatures(t: Array, coef: Array) -> Array:
    """p″ between the knots."""
    out = np.empty(len(t) - 1)
    for j in range(len(t) - 1):
        width = t[j + 1] - t[j]
        first = 2.0 / ((t[j + 1] - t[max(j - 1, 0)]) * width)
        third = 2.0 / ((t[min(j + 2, len(t) - 1)] - t[j]) * width)
        out[j] = first * coef[j] - (first + third) * coef[j + 1] + third * coef[j + 2]
    return out


@jit
def jump_rows(t: Array) -> tuple[Array, Index, Array]:
    """For each inner knot: the coefficients of its jump of p″, scaled to a largest of 1, where they
    begin, and the scale."""
    rows = len(t) - 2
    coef, start, scale = np.zeros((rows, 4)), np.empty(rows, np.intp), np.empty(rows)
    unit = np.zeros(len(t) + 1)
    for r in range(rows):
        start[r] = r
        for k in range(4):
            unit[r + k] = 1.0
            near = curvatures(t[max(r - 1, 0) : r + 4], unit[max(r - 1, 0) : r + 5])
            place = r - max(r - 1, 0)
            coef[r, k] = near[place + 1] - near[place]
            unit[r + k] = 0.0
        scale[r] = np.max(np.abs(coef[r]))
        coef[r] /= scale[r]
    return coef, start, scale


@jit
def curve_values(x: Array, at: Index, coef: Array) -> Array:
    """p at all points."""
    out = np.empty(len(x))
    t = x[at]
    for j in range(len(at) - 1):
        for i in range(at[j], at[j + 1] + 1):
            b = basis(t, j, x[i])
            out[i] = b[0] * coef[j] + b[1] * coef[j + 1] + b[2] * coef[j + 2]
    return out


@jit
def sweep(
    x: Array, w: Array, z: Array, p: Array, at: Index, u: Array, lam: float
) -> tuple[Index, Array]:
    """Between candidates, the point of the largest |u| (−1 where none exceeds λ), and this |u|.

    u(x_j) = ½Σ_{i<j} w(p − z)(x_j − x_i)² is summed up step by step, and set to the known price at
    each candidate.
    """
    where, worst = np.full(len(at) - 1, -1, np.intp), np.zeros(len(at) - 1)
    q, m, price = 0.0, 0.0, 0.0
    for j in range(len(at) - 1):
        price = u[j]
        for i in range(at[j], at[j + 1]):
            if i > at[j] and abs(price) > worst[j]:
                worst[j] = abs(price)
                if abs(price) > lam:
                    where[j] = i
            q += w[i] * (p[i] - z[i])
            step = x[i + 1] - x[i]
            price += step * (m + 0.5 * step * q)
            m += step * q
    return where, worst


class ParabolaFit(NamedTuple):
    """The solution for one λ."""

    at: Index  # its jumps, the first and the last point among them
    value: Array  # B-spline coefficients
    df: int
    gap: float  # relative duality gap


class Curves:
    """Weighted points, x ascending from 0 to 1, to put curves through."""

    def __init__(self, x: Array, w: Array, z: Array) -> None:
        self.x, self.w, self.z = x, w, z
        self.energy, self.total = float((w * z * z).sum()), float(w.sum())
        self.ends: Index = np.array([0, len(x) - 1])

    def steepest(self, mu: float) -> float:
        """λ_max, from which on the curve is one parabola."""
        hess, grad = normal_equations(self.x, self.w, self.z, self.ends)
        p = curve_values(self.x, self.ends, least_squares(hess, grad))
        return float(sweep(self.x, self.w, self.z, p, self.ends, np.zeros(2), 0.0)[1][0])

    def line(self, lam: float, mu: float, before: ParabolaFit | None, tol: float) -> ParabolaFit:
        """The curve for λ. It begins at the curve of a λ nearby, if there is one."""
        at = before.at if before else self.ends
        best = ParabolaFit(at, np.zeros(len(at) + 1), 3, np.inf)
        close = CLOSE
        for rounds in range(ROUNDS):
            coef, where, gap = self._trial(lam, at)
            jumps = np.abs(np.diff(curvatures(self.x[at], coef)))
            real = np.concatenate(([True], jumps > 1e-6 * jumps.max(initial=0.0), [True]))
            if gap < best.gap:
                best = ParabolaFit(at, coef, int(real.sum()) + 1, gap)
            if gap <= tol or not len(where):
                break
            kept = at[real] if rounds < DROPS else at
            new, close = with_room(self.x, where, kept, close, LEAST)
            if not new.any():
                break
            at = np.union1d(kept, where[new])
        return best

    def values(self, curve: ParabolaFit) -> Array:
        """p at all points."""
        return curve_values(self.x, curve.at, curve.value)

    def polygon(self, curve: ParabolaFit, tol: float) -> tuple[Array, Array]:
        """Places and values of a polygon within tol of the curve."""
        t = self.x[curve.at]
        width = np.diff(t)
        bow = np.abs(curvatures(t, curve.value)) * width * width / 8.0
        pieces = np.ceil(np.sqrt(bow / tol)).clip(1, 10_000).astype(np.intp)
        places = divided(t, pieces)
        known = np.searchsorted(places, t)
        return places, curve_values(places, known, curve.value)

    def _trial(self, lam: float, at: Index) -> tuple[Array, Index, float]:
        """The best coefficients, the points whose prices ask for a jump, and the duality gap."""
        hess, grad = normal_equations(self.x, self.w, self.z, at)
        rows, start, scale = jump_rows(self.x[at])
        bound = lam * scale
        f, y, _, _, _ = solve_rows(hess, grad, rows, start, bound, bound, self.energy, INNER)
        u = np.zeros(len(at))
        u[1:-1] = y / scale
        p = curve_values(self.x, at, f)
        where, worst = sweep(self.x, self.w, self.z, p, at, u, lam)
        error = float((self.w * (self.z - p) ** 2).sum())
        fit = float((self.w * self.z * p).sum())
        penalty = lam * float(np.abs(np.diff(curvatures(self.x[at], f))).sum())
        primal, share = 0.5 * error + penalty, lam / max(lam, float(worst.max()))
        dual = share * (self.energy - fit) - 0.5 * share * share * error
        gap = max(primal - dual, 0.0) / max(primal, FIT * self.total)
        return f, where[where >= 0], gap
