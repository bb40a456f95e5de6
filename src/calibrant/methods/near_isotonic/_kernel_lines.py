"""Kernels of broken lines: a banded quadratic programme, trend filtering, lines between knots."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpbsv

from calibrant.array_types import Array, Flags, Index
from calibrant.solvers._jit import jit, part

#: the most iterations; a dozen are usual
MOST = 100
#: after so many iterations, steps go plainly to the central path: the corrector can cycle
LIVELY = 25
#: a pivot below this share of the terms it was made of is rounding
TRACE = 1e-13
#: the first complementarity gap, as a share of gᵀf
START = 0.1


# --- linear systems -----------------------------------------------------------------------------


@part
def largest_size(v: Array) -> float:
    """max |v|, NaN if any is."""
    top = 0.0
    for i in range(len(v)):
        if not abs(v[i]) <= top:
            top = abs(v[i])
            if not top <= np.inf:
                break
    return top


@part
def factor_band(plain: Array, sign: Array, band: Array) -> None:
    """M = L D Lᵀ with plain[i, k] = M[i, i−k], written to band; D has the given signs.

    No pivoting: M is quasi-definite, so that only rounding can spoil a pivot. Such a pivot is moved
    away from zero, and refinement corrects for it.
    """
    n, width = band.shape
    for i in range(n):
        furthest = width - 1 if i >= width else i
        for k in range(furthest, 0, -1):
            j = i - k
            value = plain[i, k]
            for m in range(1, furthest - k + 1):
                value -= band[i, k + m] * band[j, m]
            band[i, k] = value  # L[i, j]·D[j] for now
        pivot, size = plain[i, 0], abs(plain[i, 0])
        for k in range(1, furthest + 1):
            value = band[i, k] / band[i - k, 0]
            pivot -= value * band[i, k]
            size += abs(value * band[i, k])
            band[i, k] = value
        least = TRACE * size + 1e-300
        band[i, 0] = pivot if pivot * sign[i] > least else least * sign[i]


@part
def solve_band(band: Array, b: Array) -> None:
    """Solve L D Lᵀ b ← b in place."""
    n, width = band.shape
    for i in range(n):
        for k in range(1, width if i >= width else i + 1):
            b[i] -= band[i, k] * b[i - k]
    for i in range(n - 1, -1, -1):
        b[i] /= band[i, 0]
        for k in range(1, width if i + width <= n else n - i):
            b[i] -= band[i + k, k] * b[i + k]


@part
def residual(plain: Array, right: Array, v: Array, rest: Array) -> None:
    """Write right − M·v to ``rest``."""
    n, width = plain.shape
    for i in range(n):
        rest[i] = right[i] - plain[i, 0] * v[i]
        for k in range(1, width if i >= width else i + 1):
            rest[i] -= plain[i, k] * v[i - k]
            rest[i - k] -= plain[i, k] * v[i]


@part
def refine_step(plain: Array, band: Array, right: Array, step: Array, rest: Array) -> None:
    """One step of iterative refinement of M·step = right."""
    residual(plain, right, step, rest)
    solve_band(band, rest)
    if largest_size(rest) < 0.1 * largest_size(step):  # else the factors are of another matrix
        for i in range(len(step)):
            step[i] += rest[i]


def least_squares(hess: Array, grad: Array) -> Array:
    """The solution f of Hf = g."""
    band = np.zeros(hess.shape[::-1])
    for k in range(len(band)):
        band[k, : len(hess) - k] = hess[k:, k]
    _, f, failed = dpbsv(band, grad, lower=1)
    if failed:  # rounding has spoilt a pivot
        band[0] *= 1.0 + TRACE * 100.0
        _, f, failed = dpbsv(band, grad, lower=1)
    return np.asarray(f)


def row_values(coef: Array, start: Index, f: Array) -> Array:
    """The product R·f."""
    out = np.zeros(len(coef))
    _add_row_values(coef, start, f, out)
    return out


@jit
def _add_row_values(coef: Array, start: Index, f: Array, out: Array) -> None:
    for r in range(len(coef)):
        for k in range(coef.shape[1]):
            if coef[r, k] != 0.0:
                out[r] += coef[r, k] * f[start[r] + k]


# --- rows of known signs ------------------------------------------------------------------------


def solve_for_signs(
    hess: Array, grad: Array, coef: Array, start: Index, low: Array, high: Array, signs: Array
) -> tuple[Array, Flags]:
    """f if the rows have the given signs, and which of the rows really have them.

    With known signs every price is at a bound, and f solves a linear system. H is tridiagonal. A
    row of sign 0 must be a step f_{i+1} − f_i: it is held at zero by making the two one unknown.
    """
    right, held = grad.copy(), signs == 0.0
    _subtract_prices(coef, start, low, high, signs, right)
    if held.any():
        joined = start[held] + 1
        first = np.delete(np.arange(len(grad)), joined)  # the first unknown of each group
        size = hess[:, 0].copy()
        size[joined] += 2.0 * hess[joined, 1]
        small = np.column_stack((np.add.reduceat(size, first), hess[first, 1]))
        values = least_squares(small, np.add.reduceat(right, first))
        f = np.repeat(values, np.diff(np.append(first, len(grad))))
    else:
        f = least_squares(hess, right)
    return f, (row_values(coef, start, f) * signs > 0.0) | held


@jit
def _subtract_prices(
    coef: Array, start: Index, low: Array, high: Array, signs: Array, right: Array
) -> None:
    """Subtract Rᵀy, where the price y of each row is at the bound that its sign says."""
    for r in range(len(coef)):
        price = high[r] if signs[r] > 0.0 else -low[r]
        for k in range(coef.shape[1]):
            if coef[r, k] != 0.0 and signs[r] != 0.0:
                right[start[r] + k] -= coef[r, k] * price


# --- the programme ------------------------------------------------------------------------------


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
    f = least_squares(hess, grad)
    energy = max(float(grad @ f), 1e-12 * float(hess[:, 0].sum()))
    # prices begin in the middle of their range, and parts of the rows so that all products of part
    # and room are equal; without a lower bound there is no lower part
    first = START * energy / max(len(low), 1)
    y = np.where(low < np.inf, 0.5 * (high - low), high - np.sqrt(first))
    up, down = first / (high - y), first / (low + y)
    room_up, room_down = high - y, low + y  # kept beside y: near a bound they would round to zero
    unknowns, rows, band = banded_system(hess, coef, start)
    given, both, sign = np.zeros((3, len(band)))
    given[unknowns], both[unknowns], both[rows] = grad, f, y
    sign[unknowns], sign[rows] = 1.0, -1.0
    arguments: list[Any] = [unknowns, rows, band, sign, np.empty_like(band), given, both]
    arguments += [*np.zeros((3, len(band))), up, down, room_up, room_down]
    arguments += [*np.zeros((2, len(y))), square, tol, energy]
    barrier_steps(*arguments)
    return both[unknowns], both[rows], up, down, np.minimum(room_up, room_down)


def banded_system(hess: Array, coef: Array, start: Index) -> tuple[Index, Index, Array]:
    """The places of unknowns and of rows in one system, and [H Rᵀ; R 0] there as a lower band.

    Each row follows the last unknown that it uses.
    """
    n = len(hess)
    rows, columns = np.nonzero(coef)
    last = np.empty(len(coef), np.intp)
    last[rows] = start[rows] + columns  # of each row the last one stays
    order = np.argsort(np.concatenate((np.arange(n), last)), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    row, unknown = place[n:][rows], place[start[rows] + columns]
    up, low = place[: n - 1], place[1:n]
    half = max((row - unknown).max(initial=1), (low - up).max(initial=1))
    band = np.zeros((len(place), max(half + 1, hess.shape[1])))
    band[row, row - unknown] = coef[rows, columns]
    for k in range(hess.shape[1]):
        band[place[k:n], place[k:n] - place[: n - k]] = hess[k:, k]
    return place[:n], place[n:], band


@part
def step_target(
    rows: Index,
    up: Array,
    down: Array,
    room_up: Array,
    room_down: Array,
    step_up: Array,
    step_down: Array,
    target: float,
    second: float,
    error: Array,
    step: Array,
    right: Array,
) -> None:
    """The right-hand side of the Newton step towards products of part and room equal to the target.

    With second = 1, Mehrotra's corrector adds the products of the step before.
    """
    for i in range(len(error)):
        right[i] = error[i]
    for r in range(len(rows)):
        move = second * step[rows[r]]
        step_up[r] = (target + step_up[r] * move) / room_up[r] - up[r]
        step_down[r] = (target - step_down[r] * move) / room_down[r] - down[r]
        right[rows[r]] += step_up[r] - step_down[r]
    for i in range(len(error)):
        step[i] = right[i]


@part
def max_step(
    rows: Index,
    up: Array,
    down: Array,
    room_up: Array,
    room_down: Array,
    step_up: Array,
    step_down: Array,
    step: Array,
) -> tuple[float, float]:
    """How much of the step keeps all parts and rooms positive, and the sum of the products of steps
    of parts and rooms."""
    share, cross = np.inf, 0.0
    for r in range(len(rows)):
        move = step[rows[r]]
        step_up[r] += up[r] / room_up[r] * move
        step_down[r] -= down[r] / room_down[r] * move
        cross += (step_down[r] - step_up[r]) * move
        # of four amounts, the first to reach zero
        if share * step_up[r] < -up[r]:
            share = -up[r] / step_up[r]
        if share * step_down[r] < -down[r]:
            share = -down[r] / step_down[r]
        if share * move > room_up[r]:
            share = room_up[r] / move
        if share * move < -room_down[r]:
            share = -room_down[r] / move
    return share, cross


@jit
def barrier_progress(
    unknowns: Index,
    rows: Index,
    plain: Array,
    given: Array,
    both: Array,
    error: Array,
    up: Array,
    down: Array,
    room_up: Array,
    room_down: Array,
    square: float,
) -> tuple[float, float, float, float]:
    """The objective, the largest error, the complementarity gap, and how many products it sums.

    The diagonal of the rows in ``plain`` and what is left of the equations (``error``) are set.
    """
    for r in range(len(rows)):
        plain[rows[r], 0] = 0.0
        given[rows[r]] = up[r] - down[r]
    residual(plain, given, both, error)  # g − Hf − Rᵀy, and up − down − Rf
    objective, wrong, gap, count = 0.5 * square, 0.0, 0.0, 1e-300
    for u in range(len(unknowns)):
        i = unknowns[u]
        off = abs(error[i] / plain[i, 0])
        wrong = off if off > wrong else wrong
        objective -= 0.5 * both[i] * (error[i] + given[i])
    for r in range(len(rows)):
        off = abs(error[rows[r]])
        wrong = off if off > wrong else wrong
        plain[rows[r], 0] = -up[r] / room_up[r] - down[r] / room_down[r]
        gap += up[r] * room_up[r]
        count += 1.0
        if room_down[r] < np.inf:
            gap += down[r] * room_down[r]
            count += 1.0
    return objective, wrong, gap, count


@jit
def barrier_steps(
    unknowns: Index,
    rows: Index,
    plain: Array,
    sign: Array,
    band: Array,
    given: Array,
    both: Array,
    error: Array,
    right: Array,
    step: Array,
    up: Array,
    down: Array,
    room_up: Array,
    room_down: Array,
    step_up: Array,
    step_down: Array,
    square: float,
    tol: float,
    energy: float,
) -> None:
    """Move f and the prices (``both``), the parts and their rooms to the optimum."""
    for rounds in range(MOST):
        objective, wrong, gap, count = barrier_progress(
            unknowns, rows, plain, given, both, error, up, down, room_up, room_down, square
        )
        enough = tol * (objective if objective > 1e-8 * energy else 1e-8 * energy)
        if gap <= enough and (wrong <= 1e-11 or gap <= 1e-2 * enough):
            break
        factor_band(plain, sign, band)
        target, second, share = 0.0, 0.0, 1.0
        for corrector in range(2):
            step_target(rows, up, down, room_up, room_down, step_up, step_down, target, second,
                error, step, right)  # fmt: skip
            solve_band(band, step)
            if corrector:  # the predictor only says how far a step could go
                refine_step(plain, band, right, step, error)  # which has done its work
            share, cross = max_step(rows, up, down, room_up, room_down, step_up, step_down, step)
            if not corrector:
                share = share if share < 1.0 else 1.0
                left = 1.0 - share + share * share * cross / gap
                left = left if left > 0.0 else 0.0
                lively = rounds < LIVELY
                centre = left * left * left if lively else 0.2
                target, second = centre * gap / count, 1.0 if lively else 0.0
        share = 0.995 * share if 0.995 * share < 1.0 else 1.0
        if not (share > 1e-12 and largest_size(step) < np.inf):
            break  # no more progress than rounding
        for i in range(len(both)):
            both[i] += share * step[i]
        for r in range(len(rows)):
            move = share * step[rows[r]]
            up[r] += share * step_up[r]
            down[r] += share * step_down[r]
            room_up[r] -= move
            room_down[r] += move


# --- Points that are all but equal ----------------------------------------------------------------


@jit
def starts_of_close(x: Array, least: float, out: Index) -> int:
    """Write where each group of close points of ascending x begins; return how many groups.

    All points of a group are within ``least`` of its first.
    """
    count = 1
    for i in range(1, len(x)):
        if x[i] - x[out[count - 1]] >= least:
            out[count] = i
            count += 1
    return count


# --- Sums over all points for trend filtering: moments, prices, and a certificate -----------------
# The programme itself, and how it is solved, is in `calibrant.methods.near_isotonic.elite`.


#: points per block; the sums of a block often save a pass over its points
BLOCK = 32


class Programme(NamedTuple):
    """The arguments of `solve_rows` for values at the candidates."""

    hess: Array
    grad: Array
    coef: Array
    start: Index
    low: Array
    high: Array


@jit
def _moments(
    x: Array, w: Array, z: Array, sums: Array, a: int, b: int, end: int
) -> tuple[float, float, float, float, float]:
    """The moments of the points from a to before ``end``, for the interval from point a to b."""
    unit = 1.0 / (x[b] - x[a])
    h00, h01, h11, g0, g1 = 0.0, 0.0, 0.0, 0.0, 0.0
    i = a
    while i < end:
        t, r = (x[i] - x[a]) * unit, (x[b] - x[i]) * unit
        s0, t0 = w[i], w[i] * z[i]
        block = i // BLOCK
        i += 1
        if block * BLOCK == i - 1 and block * BLOCK + BLOCK <= end:
            i += BLOCK - 1
            s0, t0 = sums[block, 0], sums[block, 3]
            s1, s2 = sums[block, 1] * unit, sums[block, 2] * unit * unit
            h00 += s2 - 2.0 * r * s1
            h01 += (r - t) * s1 - s2
            h11 += s2 + 2.0 * t * s1
            g0 -= sums[block, 4] * unit
            g1 += sums[block, 4] * unit
        h00 += s0 * r * r
        h01 += s0 * r * t
        h11 += s0 * t * t
        g0 += t0 * r
        g1 += t0 * t
    return h00, h01, h11, g0, g1


@jit
def fill_programme(
    x: Array,
    w: Array,
    z: Array,
    sums: Array,
    at: Index,
    old: Index,
    known: Array,
    moments: Array,
    lam: float,
    hess: Array,
    grad: Array,
    coef: Array,
    low: Array,
    high: Array,
) -> None:
    """Fill moments, matrices and bounds of the programme, but for the rows of steps."""
    k = 0
    for j in range(len(at) - 1):
        a, b = at[j], at[j + 1]
        width = x[b] - x[a]
        while k < len(old) - 1 and old[k] < a:
            k += 1
        if k < len(old) - 1 and old[k] == a and old[k + 1] == b and b < len(x) - 1:
            for m in range(5):
                moments[j, m] = known[k, m]
        else:
            last = b + 1 if j == len(at) - 2 else b
            h00, h01, h11, g0, g1 = _moments(x, w, z, sums, a, b, last)
            moments[j, 0], moments[j, 1], moments[j, 2] = h00, h01, h11
            moments[j, 3], moments[j, 4] = g0, g1
        hess[j, 0] += moments[j, 0]
        hess[j + 1, 1] = moments[j, 1]
        hess[j + 1, 0] = moments[j, 2]
        grad[j] += moments[j, 3]
        grad[j + 1] = moments[j, 4]
        if j < len(at) - 2:
            after = x[at[j + 2]] - x[b]
            coef[j, 0] = after / (width + after)
            coef[j, 1] = -1.0
            coef[j, 2] = width / (width + after)
            low[j] = high[j] = lam * (1.0 / width + 1.0 / after)


@jit
def largest_prices(
    x: Array,
    w: Array,
    z: Array,
    sums: Array,
    at: Index,
    moments: Array,
    f: Array,
    u: Array,
    lam: float,
    where: Index,
    worst: Array,
) -> None:
    """In each interval, write the point of the largest |u| that exceeds λ, and this u.

    Between candidates u_{i+1} = u_i + (x_{i+1} − x_i)·q_i and q_{i+1} = q_i + w(z − p); the first q
    is chosen so that u has its known value at both ends. A block in which |u| cannot reach λ is
    passed over in one step.
    """
    for j in range(len(at) - 1):
        a, b = at[j], at[j + 1]
        if b - a < 2:
            continue
        width = x[b] - x[a]
        slope = (f[j + 1] - f[j]) / width
        least, most = (f[j], f[j + 1]) if slope > 0.0 else (f[j + 1], f[j])
        plain = least >= 0.0 and most <= 1.0
        inner = moments[j, 3] - moments[j, 0] * f[j] - moments[j, 1] * f[j + 1]
        q = (u[j + 1] - u[j]) / width - inner + w[a] * (z[a] - f[j])
        price, before = u[j], x[a]
        i = a + 1
        while i < b:
            if plain and i % BLOCK == 0 and i + BLOCK <= b:
                block = i // BLOCK
                weight, wz = sums[block, 0], sums[block, 3]
                reach = x[i + BLOCK - 1] - before
                # q can rise by Σw(z − p)⁺ ≤ Σwz(1 − p) and fall by Σw(p − z)⁺ ≤ Σw(1 − z)p
                rise, fall = wz * (1.0 - least), (weight - wz) * most
                turn = rise if rise > fall else fall
                if abs(price) + reach * (abs(q) + turn) <= lam:
                    value = f[j] + slope * (x[i] - x[a])
                    pull = wz - value * weight - slope * sums[block, 1]  # Σw(z − p)
                    lever = sums[block, 4] - value * sums[block, 1] - slope * sums[block, 2]
                    # and Σw(z − p)d is the lever
                    price += reach * q + (x[i + BLOCK - 1] - x[i]) * pull - lever
                    q += pull
                    before = x[i + BLOCK - 1]
                    i += BLOCK
                    continue
            price += (x[i] - before) * q
            before = x[i]
            q += w[i] * (z[i] - f[j] - slope * (before - x[a]))
            if abs(price) > abs(worst[j]):
                worst[j] = price
                if abs(price) > lam:
                    where[j] = i
            i += 1


@jit
def prices_bounded(
    x: Array,
    w: Array,
    z: Array,
    a: int,
    b: int,
    p: float,
    q: float,
    begin: float,
    end: float,
    lam: float,
    mu: float,
) -> bool:
    """Whether a flat stretch from point a to b at height p has prices within their bounds.

    On a flat stretch each fall has a price v of its own in [−μ, 0], and u_{i+1} = u_i +
    (x_{i+1} − x_i)(q_i + v_i). The question is whether some choice of v leads from u_a to u_b
    (begin and end) within [−λ, λ]. q is Σw(z − p) of the points before a.
    """
    low, high = begin, begin
    slack = 1e-9 * lam
    for i in range(a, b):
        q += w[i] * (z[i] - p)
        step = x[i + 1] - x[i]
        high = min(high + step * q, lam)
        low = max(low + step * (q - mu), -lam) if mu < np.inf else -lam
        if low > high + slack:
            return False
    return low - slack <= end <= high + slack


@jit
def line_costs(
    x: Array, at: Index, f: Array, hess: Array, grad: Array, lam: float, mu: float
) -> tuple[float, float, float]:
    """gᵀf, fᵀHf and the penalty of a line with the values f at the candidates."""
    fit, square = grad[0] * f[0], hess[0, 0] * f[0] * f[0]
    bent, fallen, before = 0.0, 0.0, 0.0
    for j in range(1, len(at)):
        fit += grad[j] * f[j]
        square += (hess[j, 0] * f[j] + 2.0 * hess[j, 1] * f[j - 1]) * f[j]
        step = f[j] - f[j - 1]
        slope = step / (x[at[j]] - x[at[j - 1]])
        if j > 1:
            bent += abs(slope - before)
        if step < 0.0:
            fallen -= step
        before = slope
    return fit, square, lam * bent + (mu * fallen if mu < np.inf else 0.0)
