"""Kernels of the papers' own variants: fused steps, and parabolas."""

from __future__ import annotations

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.methods.near_isotonic._kernel_lines import (
    PathFit,
    away_from,
    least_squares,
    solve_rows,
)
from calibrant.solvers._jit import jit
from calibrant.solvers.knots import divide_intervals

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


class Curves:
    """Weighted points, x ascending from 0 to 1, to put curves through."""

    def __init__(self, x: Array, w: Array, z: Array) -> None:
        self.x, self.w, self.z = x, w, z
        self.energy, self.total = float((w * z * z).sum()), float(w.sum())
        self.ends: Index = np.array([0, len(x) - 1])

    def largest_lambda(self, mu: float) -> float:
        """λ_max, from which on the curve is one parabola."""
        hess, grad = normal_equations(self.x, self.w, self.z, self.ends)
        p = curve_values(self.x, self.ends, least_squares(hess, grad))
        return float(sweep(self.x, self.w, self.z, p, self.ends, np.zeros(2), 0.0)[1][0])

    def line(self, lam: float, mu: float, before: PathFit | None, tol: float) -> PathFit:
        """The curve for λ. It begins at the curve of a λ nearby, if there is one."""
        at = before.at if before else self.ends
        best = PathFit(at, np.zeros(len(at) + 1), 3, np.inf)
        close = CLOSE
        for rounds in range(ROUNDS):
            coef, where, gap = self._trial(lam, at)
            jumps = np.abs(np.diff(curvatures(self.x[at], coef)))
            real = np.concatenate(([True], jumps > 1e-6 * jumps.max(initial=0.0), [True]))
            if gap < best.gap:
                best = PathFit(at, coef, int(real.sum()) + 1, gap)
            if gap <= tol or not len(where):
                break
            kept = at[real] if rounds < DROPS else at
            new, close = away_from(self.x, where, kept, close, LEAST)
            if not new.any():
                break
            at = np.union1d(kept, where[new])
        return best

    def values(self, curve: PathFit) -> Array:
        """p at all points."""
        return curve_values(self.x, curve.at, curve.value)

    def polygon(self, curve: PathFit, tol: float) -> tuple[Array, Array]:
        """Places and values of a polygon within tol of the curve."""
        t = self.x[curve.at]
        width = np.diff(t)
        bow = np.abs(curvatures(t, curve.value)) * width * width / 8.0
        pieces = np.ceil(np.sqrt(bow / tol)).clip(1, 10_000).astype(np.intp)
        places = divide_intervals(t, pieces)
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


# --- Steps of least squares with a price on every rise and every fall, exactly, in O(n) -----------


#: a step this small is rounding
LEVEL = 1e-11


@jit
def fused(w: Array, z: Array, rise: float, fall: float) -> Array:
    """p minimising ½Σw(p − z)² + Σ[rise·(p_{i+1} − p_i)₊ + fall·(p_i − p_{i+1})₊].

    Johnson's dynamic programme. The derivative of the least cost up to i, as a function of p_i, is
    an increasing broken line; the next point sees it clipped to [−fall, rise]. The line is stored
    as a deque of its kinks (place, change of slope, change of intercept): each point adds two kinks
    and removes those that are clipped. Prices may be infinite.
    """
    n = len(z)
    place, slope, shift = np.empty(2 * n + 2), np.empty(2 * n + 2), np.empty(2 * n + 2)
    low, high = np.empty(n), np.empty(n)
    first, last = n + 1, n  # the deque is empty
    # left of all kinks the derivative is a·p + b, and so it is, with other numbers, right of them
    left_a, left_b, right_a, right_b = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        left_a, left_b = left_a + w[i], left_b - w[i] * z[i]
        right_a, right_b = right_a + w[i], right_b - w[i] * z[i]
        if i == n - 1:
            break
        a, b = left_a, left_b
        low[i] = -np.inf
        if fall < np.inf:
            while first <= last and a * place[first] + b < -fall:
                a, b = a + slope[first], b + shift[first]
                first += 1
            low[i] = (-fall - b) / a
            first -= 1
            place[first], slope[first], shift[first] = low[i], a, b + fall
            left_a, left_b = 0.0, -fall
        c, d = right_a, right_b
        while first <= last and place[last] > low[i] and c * place[last] + d > rise:
            c, d = c - slope[last], d - shift[last]
            last -= 1
        high[i] = max((rise - d) / c, low[i])
        last += 1
        place[last], slope[last], shift[last] = high[i], -c, rise - d
        right_a, right_b = 0.0, rise
    p = np.empty(n)
    a, b = left_a, left_b
    while first <= last and a * place[first] + b < 0.0:
        a, b = a + slope[first], b + shift[first]
        first += 1
    p[n - 1] = -b / a
    for i in range(n - 2, -1, -1):
        p[i] = min(max(p[i + 1], low[i]), high[i])
    return p


@jit
def fused_lambda(w: Array, z: Array, mu: float) -> float:
    """The least λ for which prices λ on rises and λ + μ on falls leave no step."""
    mean = np.sum(w * z) / np.sum(w)
    u, top = 0.0, 0.0
    for i in range(len(z) - 1):
        u += w[i] * (mean - z[i])
        top = max(top, u, -u - mu)
    return top


class FusedPoints:
    """Weighted points to put steps through."""

    def __init__(self, x: Array, w: Array, z: Array) -> None:
        self.x, self.w, self.z = x, w, z

    def largest_lambda(self, mu: float) -> float:
        """λ_max, from which on there is one step."""
        return float(fused_lambda(self.w, self.z, mu))

    def line(self, lam: float, mu: float, before: PathFit | None, tol: float) -> PathFit:
        """The steps for λ and μ; there is nothing to begin from or to tolerate."""
        p = fused(self.w, self.z, lam, lam + mu)
        first = np.append(0, np.flatnonzero(np.abs(np.diff(p)) > LEVEL) + 1)
        return PathFit(first, p[first], len(first), 0.0)

    def values(self, steps: PathFit) -> Array:
        """p at all points."""
        return np.repeat(steps.value, np.diff(np.append(steps.at, len(self.x))))
