"""Trend filtering: the best broken line through weighted points, priced by its bends and falls.

Minimise ½Σw(p − z)² + λΣ|slope change| + μΣ(p_i − p_{i+1})₊ over all values p at the points x. The
solution bends at few points. So the programme is solved on candidates for bends (`solve_rows`) and
then checked at all points: the price u of a slope change must stay within ±λ (`sweep`). Where it
does not, the worst point of each interval becomes a candidate, until the duality gap is closed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags, Index
from calibrant.methods.near_isotonic._kernel_lines import (
    Programme,
    block_sums,
    bounded,
    line_values,
    objective,
    programme,
    row_values,
    settled,
    solve_rows,
    sweep,
)

#: the complementarity gap that the solver may leave on the candidates, relative to Σwz²
INNER = 1e-12
#: the most rounds of adding candidates
ROUNDS = 300
#: how often the signs of the bends are guessed in a round, and in how many rounds they are
TRIES, GUESSES = 5, 2
#: rounds in which candidates may be dropped: where prices are not unique, this could go on for ever
DROPS = 20
#: a candidate whose price is this much below λ can be dropped
IDLE = 1e-3
#: candidates are further apart than this, unless the gap cannot be closed so
CLOSE = 1e-6
#: an objective this small per unit of weight is a perfect fit: below it gaps are absolute
FIT = 1e-7
#: a stretch that rises by less than this is flat
LEVEL = 1e-7
#: candidates that are no bends are left out of a line if its gap then stays below this
FEW = 1e-8
#: a line that is this close to the chord of a bend's neighbours does not bend there: it is rounding
STRAIGHT = 1e-11
#: and before it is solved to the last digits: such candidates are left out before any others
NEARLY = 1e-8
#: points are further apart than this
SAME = 1e-9


class Line(NamedTuple):
    """The solution for one λ and μ."""

    at: Index  # its bends, the first and the last point among them
    value: Array  # p there
    df: int
    gap: float  # relative duality gap

    def signs(self, x: Array) -> Array:
        """Of the slope changes at the inner bends."""
        return np.sign(np.diff(np.diff(self.value) / np.diff(x[self.at])))


class Points:
    """Weighted points, x ascending from 0 to 1, to put lines through."""

    def __init__(self, x: Array, w: Array, z: Array) -> None:
        self.x, self.w, self.z = x, w, z
        self.sums = block_sums(x, w, z)
        self.energy, self.total = float((w * z * z).sum()), float(w.sum())
        self.ends: Index = np.array([0, len(x) - 1])

    def steepest(self, mu: float) -> float:
        """λ_max, from which on the line has no bend (with falls priced: at most that)."""
        straight = _Trial(self, 1.0, mu, self.ends)
        return abs(float(straight.sweep(-1.0)[1][0]))

    def line(self, lam: float, mu: float, before: Line | None, tol: float) -> Line:
        """The line for λ and μ. It begins at the line of a λ nearby, if there is one."""
        at, signs = (before.at, before.signs(self.x)) if before else (self.ends, np.empty(0))
        trial = _Trial(self, lam, mu, at, signs)
        best, least, close = trial, np.inf, CLOSE
        for rounds in range(ROUNDS):
            where, worst = trial.prices()
            gap = trial.gap(max(lam, float(np.abs(worst).max())))
            if gap < least:
                best, least = trial, gap
            if gap <= tol or not (where >= 0).any():
                break
            kept = trial.needed() if rounds < DROPS else np.ones(len(trial.at), dtype=bool)
            new, close = with_room(self.x, where, trial.at[kept], close, SAME)
            if not new.any():
                break
            at = np.concatenate((trial.at[kept], where[new]))
            u = np.concatenate((trial.u[kept], worst[new]))
            order = np.argsort(at)
            guess = np.sign(u[order])[1:-1] if rounds < GUESSES else None
            trial = _Trial(self, lam, mu, at[order], guess, trial)
        return best.line()

    def values(self, line: Line) -> Array:
        """p at all points."""
        return line_values(self.x, line.at, line.value)


class _Trial:
    """The best line with bends at candidates only, and what its prices say about all points.

    If the signs of all bends are given, they are tried first: that takes one linear system.
    """

    def __init__(
        self,
        points: Points,
        lam: float,
        mu: float,
        at: Index,
        signs: Array | None = None,
        old: _Trial | None = None,
    ) -> None:
        self.points, self.lam, self.mu = points, lam, mu
        known = (old.at, old.moments) if old else (at[:0], np.empty((0, 5)))
        if signs is not None and mu == 0.0 and self.guess(at, signs, known):
            return
        self.solve(self.begin(at, known))

    def begin(self, at: Index, known: tuple[Index, Array]) -> Programme:
        """Set up the programme on these candidates."""
        p = self.points
        self.at = at
        self.moments, rows = programme(p.x, p.w, p.z, p.sums, at, *known, self.lam, self.mu)
        self.u = np.zeros(len(at))
        self.bent = np.ones(len(at) - 2, dtype=bool)
        self.flat = np.zeros(len(at) - 1, dtype=bool)
        self.open = np.zeros(len(at) - 1, dtype=bool)  # flat, and not yet shown to be right
        self.hess, self.grad = rows.hess, rows.grad
        return rows

    def guess(self, at: Index, signs: Array, known: tuple[Index, Array]) -> bool:
        """Whether the candidates are bends of the given signs, after a few have been dropped."""
        signs = np.where(signs < 0.0, -1.0, 1.0)
        for _ in range(TRIES):
            rows = self.begin(at, known)
            self.f, good = settled(*rows, signs)
            if good.all():
                self.u[1:-1] = self.lam * signs
                return True
            known = at, self.moments
            at, signs = at[np.concatenate(([True], good, [True]))], signs[good]
        return False

    def solve(self, rows: Programme) -> None:
        """Solve the programme: values, prices, and which candidates are real bends."""
        low, mu, bends = rows.low, self.mu, len(self.at) - 2
        self.f, y, up, down, room = solve_rows(*rows, self.points.energy, INNER)
        self.u[1:-1] = y[:bends] / low[:bends] * self.lam
        # at a real bend the penalty is large and the price is close to λ
        cost = (up + down)[:bends] * low[:bends]
        mean = cost.mean() if bends else 0.0
        self.bent = cost * low[:bends] > mean * room[:bends]
        if mu > 0.0:
            scale, price = self.points.total, y[bends:]
            rises = up[bends:] * scale > -price
            self.flat = ~rises & ~(down[bends:] * scale > mu + price)

    def sweep(self, lam: float) -> tuple[Index, Array]:
        """Between candidates: the point of the largest price above λ (−1: none), and its price."""
        p = self.points
        return sweep(p.x, p.w, p.z, p.sums, self.at, self.moments, self.f, self.u, lam)

    def prices(self) -> tuple[Index, Array]:
        """`sweep`, without the flat stretches where prices on falls can keep u within bounds."""
        where, worst = self.sweep(self.lam)
        if not self.flat.any():
            return where, worst
        p, m, f = self.points, self.moments, self.f
        part = m[:, 3] + m[:, 4] - (m[:, 0] + m[:, 1]) * f[:-1] - (m[:, 1] + m[:, 2]) * f[1:]
        before = np.append(0.0, np.cumsum(part))
        edges = np.flatnonzero(np.diff(np.concatenate(([0], self.flat, [0]))))
        for j, k in zip(edges[::2], edges[1::2], strict=True):
            level = float(np.ptp(f[j : k + 1])) <= LEVEL
            if not level or not (where[j:k] >= 0).any():
                continue
            stretch = self.at[j], self.at[k], f[j], before[j], self.u[j], self.u[k]
            if bounded(p.x, p.w, p.z, *stretch, self.lam, self.mu):
                where[j:k], worst[j:k] = -1, 0.0
            else:
                self.open[j:k] = True
        return where, worst

    def needed(self) -> Flags:
        """Candidates to keep: bends, those that almost are, and all in open flat stretches."""
        keep = np.ones(len(self.at), dtype=bool)
        keep[1:-1] = self.bent | (np.abs(self.u[1:-1]) > self.lam * (1.0 - IDLE))
        keep[1:-1] |= self.open[1:] | self.open[:-1]
        return keep

    def gap(self, top: float) -> float:
        """The relative duality gap; if the largest price exceeds λ, all prices are scaled down."""
        fit, error, penalty = self.costs(self.at, self.f, self.hess, self.grad)
        share = self.lam / top
        self.dual = share * (self.points.energy - fit) - 0.5 * share * share * error
        return self.above(0.5 * error + penalty)

    def costs(self, at: Index, f: Array, hess: Array, grad: Array) -> tuple[float, float, float]:
        """Σwzp, the squared error and the penalty of a line."""
        fit, square, penalty = objective(self.points.x, at, f, hess, grad, self.lam, self.mu)
        return fit, max(self.points.energy - 2.0 * fit + square, 0.0), penalty

    def above(self, primal: float) -> float:
        """How far an objective is above the dual one, relatively."""
        return max(primal - self.dual, 0.0) / max(primal, FIT * self.points.total)

    def line(self) -> Line:
        """The line with its real bends only, solved to the last digits, if it is as good as the
        line through all candidates."""
        lines, bent = [], self.bent
        for _ in range(TRIES):
            line, bends = self.through(bent)
            lines.append(line)
            if bends.all():
                break
            bent = bent.copy()
            bent[bent] = bends  # the others were none: rounding only, or of the wrong sign
        gap = self.certified(self.at, self.f, self.hess, self.grad)
        best = Line(self.at, self.f, lines[0].df, gap)
        best = next((line for line in reversed(lines) if line.gap <= max(FEW, gap)), best)
        return best._replace(value=self.allowed(best.value))

    def through(self, bent: Flags) -> tuple[Line, Flags]:
        """The line that bends at these candidates only, and at which of them it really does."""
        kept = np.concatenate(([True], bent, [True]))
        piece = np.cumsum(kept[:-1]) - 1  # of each interval between candidates
        flat = np.zeros(piece[-1] + 1, dtype=bool)
        flat[piece[self.flat]] = True
        p, at, value = self.points, self.at[kept], self.f[kept]
        old = self.at, self.moments
        _, rows = programme(p.x, p.w, p.z, p.sums, at, *old, self.lam, self.mu)
        signs = np.where(row_values(rows.coef, rows.start, value) < 0.0, -1.0, 1.0)
        if self.mu > 0.0:
            signs[len(at) - 2 :][flat] = 0.0
        better, good = settled(*rows, signs)
        value, wrong = better if good.all() else value, ~good[: len(at) - 2]
        size = np.abs(row_values(rows.coef, rows.start, value))[: len(at) - 2]
        if good.all():
            bends = size > STRAIGHT
        else:  # a candidate that is no bend may have turned the sign of the next one: it goes first
            idle = wrong & (size <= NEARLY)
            bends = ~(idle if idle.any() else wrong)
        gap = self.certified(at, value, rows.hess, rows.grad)
        return Line(at, value, len(at) - int(flat.sum()), gap), bends

    def allowed(self, value: Array) -> Array:
        """Values without falls, where these are forbidden."""
        return np.maximum.accumulate(value) if self.mu == np.inf else value

    def certified(self, at: Index, value: Array, hess: Array, grad: Array) -> float:
        """The gap of a line through these values."""
        _, error, penalty = self.costs(at, self.allowed(value), hess, grad)
        return self.above(0.5 * error + penalty)


# --- Where a curve may bend: new candidates that are not next to one already there ----------------


def with_room(x: Array, new: Index, kept: Index, close: float, least: float) -> tuple[Flags, float]:
    """Which of the new places are further than ``close`` from those kept, and ``close`` itself.

    Where none is, ``close`` is divided by ten, and from ``least`` on it is 0. −1 is no place.

    >>> x = np.linspace(0, 1, 11)
    >>> far, close = with_room(x, np.array([1, 5]), np.array([0, 10]), 0.2, 0.01)
    >>> far.tolist(), close
    ([False, True], 0.2)
    """
    right = np.searchsorted(kept, new).clip(1)
    gap = np.minimum(x[new] - x[kept[right - 1]], x[kept[right]] - x[new])
    while True:
        far = (new >= 0) & (gap > close)
        if far.any() or close == 0.0:
            return far, close
        close = 0.1 * close if close > least else 0.0
