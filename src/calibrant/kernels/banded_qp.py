"""A banded quadratic programme: least squares with a price on the positive and on the negative part
of every row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels._jit import jit

__all__ = ["least_squares", "row_values", "settled", "solve_rows"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: the most iterations; a dozen are usual
MOST = 100
#: after so many iterations, steps go plainly to the central path: the corrector can cycle
LIVELY = 25
#: a pivot below this share of the terms it was made of is rounding
TRACE = 1e-13
#: the first complementarity gap, as a share of gᵀf
START = 0.1


@jit
def largest(v: Array) -> float:
    """max |v|, NaN if any is."""
    top = 0.0
    for i in range(len(v)):
        if np.isnan(v[i]):
            return np.nan
        top = max(top, abs(v[i]))
    return top


@jit
def factor(band: Array, sign: Array) -> None:
    """M = L D Lᵀ in place, band[i, k] = M[i, i−k], D of the given signs.

    No pivoting: M is quasi-definite, so that only rounding can spoil a pivot. Such a pivot is moved
    away from zero, and refinement corrects for it.
    """
    n, width = band.shape
    for i in range(n):
        for k in range(min(i, width - 1), 0, -1):
            j = i - k
            value = band[i, k]
            for m in range(1, min(j, width - 1 - k) + 1):
                value -= band[i, k + m] * band[j, m]
            band[i, k] = value  # L[i, j]·D[j] for now
        pivot, size = band[i, 0], abs(band[i, 0])
        for k in range(1, min(i, width - 1) + 1):
            value = band[i, k] / band[i - k, 0]
            pivot -= value * band[i, k]
            size += abs(value * band[i, k])
            band[i, k] = value
        least = TRACE * size + 1e-300
        band[i, 0] = pivot if pivot * sign[i] > least else least * sign[i]


@jit
def substitute(band: Array, b: Array) -> None:
    """Solve L D Lᵀ b ← b in place."""
    n, width = band.shape
    for i in range(n):
        for k in range(1, min(i, width - 1) + 1):
            b[i] -= band[i, k] * b[i - k]
    for i in range(n - 1, -1, -1):
        b[i] /= band[i, 0]
        for k in range(1, min(n - 1 - i, width - 1) + 1):
            b[i] -= band[i + k, k] * b[i + k]


@jit
def refined(plain: Array, band: Array, b: Array) -> None:
    """Solve M b ← b in place by the factors of M, with one step of iterative refinement."""
    n, width = plain.shape
    right, spare = b.copy(), np.empty(n)
    substitute(band, b)
    for i in range(n):
        spare[i] = right[i] - plain[i, 0] * b[i]
    for i in range(n):
        for k in range(1, min(i, width - 1) + 1):
            spare[i] -= plain[i, k] * b[i - k]
            spare[i - k] -= plain[i, k] * b[i]
    substitute(band, spare)
    if largest(spare) < 0.1 * largest(b):  # else the factors are of another matrix
        b += spare


@jit
def places(n: int, coef: Array, start: Index) -> tuple[Index, Index, int]:
    """The order of unknowns and rows in which each row follows the last unknown that it uses, and
    the half-width of the band in that order."""
    rows, wide = coef.shape
    last = np.empty(rows, np.intp)
    after = np.zeros(n + 1, np.intp)
    for r in range(rows):
        last[r] = start[r]
        for k in range(wide):
            if coef[r, k] != 0.0:
                last[r] = start[r] + k
        after[last[r] + 1] += 1
    of_f, of_row = np.empty(n, np.intp), np.empty(rows, np.intp)
    for i in range(n):
        after[i + 1] += after[i]
        of_f[i] = i + after[i]
    half = 1
    taken = np.zeros(n, np.intp)
    for r in range(rows):
        taken[last[r]] += 1
        of_row[r] = of_f[last[r]] + taken[last[r]]
        half = max(half, of_row[r] - of_f[start[r]])
    for i in range(1, n):
        half = max(half, of_f[i] - of_f[i - 1])
    return of_f, of_row, half


@jit
def assemble(
    hess: Array, coef: Array, start: Index, slack: Array, of_f: Index, of_row: Index, out: Array
) -> None:
    """out = [H Rᵀ; R −diag(slack)] as a lower band, in the order of places."""
    out[:] = 0.0
    for i in range(len(hess)):
        for k in range(min(i, hess.shape[1] - 1) + 1):
            if hess[i, k] != 0.0:
                out[of_f[i], of_f[i] - of_f[i - k]] = hess[i, k]
    for r in range(len(start)):
        out[of_row[r], 0] = -slack[r]
        for k in range(coef.shape[1]):
            if coef[r, k] != 0.0:
                out[of_row[r], of_row[r] - of_f[start[r] + k]] = coef[r, k]


@jit
def residuals(
    hess: Array,
    grad: Array,
    coef: Array,
    start: Index,
    f: Array,
    y: Array,
    dual: Array,
    rows: Array,
) -> None:
    """dual = Hf − g + Rᵀy and rows = Rf."""
    for i in range(len(f)):
        dual[i] = hess[i, 0] * f[i] - grad[i]
    for i in range(len(f)):
        for k in range(1, min(i, hess.shape[1] - 1) + 1):
            dual[i] += hess[i, k] * f[i - k]
            dual[i - k] += hess[i, k] * f[i]
    for r in range(len(start)):
        rows[r] = 0.0
        for k in range(coef.shape[1]):
            if coef[r, k] != 0.0:
                rows[r] += coef[r, k] * f[start[r] + k]
                dual[start[r] + k] += coef[r, k] * y[r]


@jit
def longest(value: Array, step: Array, sign: float) -> float:
    """How much of the step keeps all values positive."""
    share = np.inf
    for i in range(len(value)):
        if sign * step[i] < 0.0 and value[i] < np.inf:
            share = min(share, -value[i] / (sign * step[i]))
    return share


@jit
def begin(low: Array, high: Array, energy: float) -> tuple[Array, Array, Array]:
    """Where to begin: prices in the middle of their range, and parts of the rows that make all
    products of part and room equal."""
    rows = len(low)
    y, up, down = np.empty(rows), np.empty(rows), np.zeros(rows)
    first = START * energy / max(rows, 1)
    for r in range(rows):
        if low[r] < np.inf:
            y[r] = 0.5 * (high[r] - low[r])
            down[r] = first / (low[r] + y[r])
        else:
            y[r] = high[r] - np.sqrt(first)
        up[r] = first / (high[r] - y[r])
    return y, up, down


@jit
def products(
    up: Array,
    down: Array,
    room_up: Array,
    room_down: Array,
    steps: tuple[Array, Array, Array],
    share: float,
) -> float:
    """Σ part · room, the complementarity gap, after a share of the step."""
    step_up, step_down, step_y = steps
    total = 0.0
    for r in range(len(up)):
        total += (up[r] + share * step_up[r]) * (room_up[r] - share * step_y[r])
        if room_down[r] < np.inf:
            total += (down[r] + share * step_down[r]) * (room_down[r] + share * step_y[r])
    return total


@jit
def direction(
    parts: tuple[Array, Array, Array, Array],
    system: tuple[Array, Array, Index, Index],
    errors: tuple[Array, Array],
    steps: tuple[Array, Array, Array],
    target: float,
    second: float,
    both: Array,
) -> float:
    """The Newton step towards products equal to the target, and how much of it may be taken.

    The step is written to ``both`` and ``steps``. With second = 1, Mehrotra's corrector adds the
    products of the step before.
    """
    up, down, room_up, room_down = parts
    plain, band, of_f, of_row = system
    dual, miss = errors
    step_up, step_down, step_y = steps
    flow, shift = np.empty(len(up)), np.zeros(len(up))
    for i in range(len(dual)):
        both[of_f[i]] = -dual[i]
    for r in range(len(up)):
        move = second * step_y[r]
        flow[r] = (target + step_up[r] * move) / room_up[r] - up[r]
        if room_down[r] < np.inf:
            shift[r] = (target - step_down[r] * move) / room_down[r] - down[r]
        both[of_row[r]] = flow[r] - shift[r] - miss[r]
    refined(plain, band, both)
    for r in range(len(up)):
        step_y[r] = both[of_row[r]]
        step_up[r] = flow[r] + up[r] / room_up[r] * step_y[r]
        step_down[r] = 0.0
        if room_down[r] < np.inf:
            step_down[r] = shift[r] - down[r] / room_down[r] * step_y[r]
    share = min(longest(up, step_up, 1.0), longest(down, step_down, 1.0))
    return min(share, longest(room_up, step_y, -1.0), longest(room_down, step_y, 1.0))


@jit
def least_squares(hess: Array, grad: Array) -> Array:
    """f of Hf = g."""
    band, f = hess.copy(), grad.copy()
    factor(band, np.ones(len(grad)))
    substitute(band, f)
    return f


@jit
def solve_rows(
    hess: Array,
    grad: Array,
    coef: Array,
    start: Index,
    low: Array,
    high: Array,
    square: float,
    tol: float,
) -> tuple[Array, Array, Array, Array, Array]:
    """f minimising ½fᵀHf − gᵀf + Σ_r [high_r·(Rf)_r⁺ + low_r·(Rf)_r⁻], and y with Hf − g + Rᵀy = 0.

    A primal–dual interior-point method with Mehrotra's predictor and corrector. H is a lower band
    (hess[i, k] = H[i, i−k]). Row r has the coefficients coef[r] on f[start_r], f[start_r+1], …, and
    its price y_r lies in [−low_r, high_r]; low may be infinite. It ends when the gap is below
    ``tol`` times the objective with ½·square added. Also returned are the two parts (Rf)⁺ and
    (Rf)⁻, and the distance of each price from its nearer bound. O(K) per iteration.
    """
    n, rows = len(grad), len(start)
    of_f, of_row, half = places(n, coef, start)
    half = max(half, hess.shape[1] - 1)
    plain, both = np.empty((n + rows, half + 1)), np.empty(n + rows)
    sign = np.full(n + rows, -1.0)
    for i in range(n):
        sign[of_f[i]] = 1.0
    f = least_squares(hess, grad)
    energy = max(np.dot(grad, f), 1e-12 * np.sum(hess[:, 0]))
    y, up, down = begin(low, high, energy)
    room_up, room_down = high - y, low + y  # kept beside y: near a bound they would round to zero
    parts = (up, down, room_up, room_down)
    dual, miss = np.empty(n), np.empty(rows)
    steps = (np.zeros(rows), np.zeros(rows), np.zeros(rows))
    count = max(rows + int(np.sum(low < np.inf)), 1)
    for rounds in range(MOST):
        residuals(hess, grad, coef, start, f, y, dual, miss)
        miss += down - up
        gap = products(up, down, room_up, room_down, steps, 0.0)
        objective = 0.5 * (square + np.dot(f, dual - grad))
        enough = tol * max(objective, 1e-8 * energy)
        wrong = max(largest(dual / hess[:, 0]), largest(miss))
        if gap <= enough and (wrong <= 1e-11 or gap <= 1e-2 * enough):
            break
        assemble(hess, coef, start, up / room_up + down / room_down, of_f, of_row, plain)
        band = plain.copy()
        factor(band, sign)
        system = (plain, band, of_f, of_row)
        share = min(direction(parts, system, (dual, miss), steps, 0.0, 0.0, both), 1.0)
        left = products(up, down, room_up, room_down, steps, share)
        lively = rounds < LIVELY
        centre = (max(left, 0.0) / gap) ** 3 if lively else 0.2
        target = centre * gap / count
        second = 1.0 if lively else 0.0
        share = direction(parts, system, (dual, miss), steps, target, second, both)
        share = min(1.0, 0.995 * share)
        if not (share > 1e-12 and largest(both) < np.inf):
            break  # no more progress than rounding
        for i in range(n):
            f[i] += share * both[of_f[i]]
        up += share * steps[0]
        down += share * steps[1]
        y += share * steps[2]
        room_up -= share * steps[2]
        room_down += share * steps[2]
    return f, y, up, down, np.minimum(room_up, room_down)


@jit
def row_values(coef: Array, start: Index, f: Array) -> Array:
    """R f."""
    out = np.zeros(len(start))
    for r in range(len(start)):
        for k in range(coef.shape[1]):
            if coef[r, k] != 0.0:
                out[r] += coef[r, k] * f[start[r] + k]
    return out


@jit
def settled(
    hess: Array, grad: Array, coef: Array, start: Index, low: Array, high: Array, signs: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """f if the rows have the given signs, and which of the rows really have them.

    With known signs every price is at a bound, and f solves a linear system. H is tridiagonal. A
    row of sign 0 must be a step f_{i+1} − f_i: it is held at zero by making the two one unknown.
    """
    n = len(grad)
    group, right = np.zeros(n, np.intp), grad.copy()
    joined = np.zeros(n, np.bool_)
    for r in range(len(start)):
        if signs[r] == 0.0:
            joined[start[r] + 1] = True
            continue
        price = high[r] if signs[r] > 0.0 else -low[r]
        for k in range(coef.shape[1]):
            if coef[r, k] != 0.0:
                right[start[r] + k] -= coef[r, k] * price
    for i in range(1, n):
        group[i] = group[i - 1] + (0 if joined[i] else 1)
    small, sums = np.zeros((group[-1] + 1, 2)), np.zeros(group[-1] + 1)
    for i in range(n):
        small[group[i], 0] += hess[i, 0] + (2.0 * hess[i, 1] if joined[i] else 0.0)
        small[group[i], 1] += 0.0 if joined[i] else hess[i, 1]
        sums[group[i]] += right[i]
    values = least_squares(small, sums)
    f = np.empty(n)
    for i in range(n):
        f[i] = values[group[i]]
    return f, (row_values(coef, start, f) * signs > 0.0) | (signs == 0.0)
