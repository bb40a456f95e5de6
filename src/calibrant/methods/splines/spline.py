"""A smooth curve on the logit scale, as bent as the data ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.data.door import Limit, Number, OneOf
from calibrant.data.frozen import read_only
from calibrant.data.score_table import CellColumns, ScoreTable
from calibrant.fitting.base import DIRECTIONS, WEIGHTS, Calibrator
from calibrant.fitting.held_out import held_out_path_losses
from calibrant.losses import logit
from calibrant.rules.base import Map, in_blocks
from calibrant.rules.piecewise import Piecewise
from calibrant.solvers.knots import Basis, Cubic, quantile_knots, spline_basis
from calibrant.solvers.logistic import (
    LogisticPoint,
    LogisticProblem,
    Prior,
    platt_smoothing,
    smoothed_targets,
)
from calibrant.solvers.threads import one_thread

#: larger tables are pooled to so many cells, for the fit and for the choice of λ
CELLS, FEWER_CELLS = 4000, 500
#: the number of knots by default is between these
FEWEST, MOST = 8, 40
#: knots are further apart than this share of the range
APART = 1e-4
#: the λ tried, smoothest first, and how many finer steps are tried around the best of them
GRID = 10.0 ** np.arange(10.0, -6.5, -0.5)
FINER = 4
#: where the log evidence of a λ is this far below the best, smaller λ are not tried
HOPELESS = 20.0
FOLDS = 10
#: the largest difference between the map and the spline, in probability
MAP_ERROR = 1e-5
#: the most pieces that one interval between knots may take for that
MOST_PIECES = 5000
#: a range below this share of the largest score is rounding
ROUNDING = 2.0**-48
#: folds whose scores all lie within this many standard deviations show a rate and no slope
CLOSE = 1e-7
#: straight tails end at this logit, which is as good as 0 or 1
SURE = 800.0


@dataclass(kw_only=True, eq=False, repr=False)
class Spline(Calibrator):
    """P = σ(f(z)) with a cubic spline f of the logit z, its bends penalised.

    With a large penalty f is a straight line, and the method is Platt's. The data say how much f
    may bend.

    Parameters
    ----------
    penalty : {"evidence", "cv"} or a number from 1e-8 to 1e12, default="evidence"
        The λ of the formula below: the one of the largest evidence, the one of the least log loss
        on ten folds, or the number given. z is in units of its standard deviation, so that λ does
        not depend on the scale of the scores.
    knots : "auto" or a whole number from 2 to 200, default="auto"
        The largest number of knots, which lie at the quantiles of z (the ends included). They only
        limit how finely f can bend; ``"auto"`` is 8 + √N/2, at most 40, and at most one per score.
    monotone : bool, default=False
        Whether f must not fall.
    tails : {"flat", "linear"}, default="flat"
        Beyond the outermost scores f is constant, or goes on straight. A straight tail trusts the
        slope at the end: a steep one may reach 0 or 1.
    weights, direction, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    penalty_ : float
        The λ that was used.
    penalties_, criteria_ : ndarrays
        The λ that were tried, and the log evidence (or minus the out-of-fold log loss) of each.
    log_evidence_ : float
        Laplace's approximation to ln ∫ likelihood · prior, for ``penalty_``; of the fit before
        ``monotone``.
    effective_df_ : float
        Degrees of freedom used, 2 for a straight line; of the fit before ``monotone``.
    knots_ : ndarray
        The knots, on the scale of z.
    map_error_ : float
        The largest difference between the map and the spline, in probability: 1e-5 or less.

    Notes
    -----
    Minimises −Σ t·ln P − Σ (n − t)·ln(1 − P) + ½λ∫f″(x)²dx over cubic splines, x = (z − mean)/sd,
    with Platt's targets t for the positives. So separable data stay finite, and λ → ∞ is Platt's
    method between the outermost scores. For scores outside [0, 1], z is the score itself. The
    penalty is a Gaussian prior on the bends that is flat on lines, so λ has a (restricted, REML)
    evidence −objective + ½(m − 2)·ln λ − ½·ln|H| + ln 2π [1]_ [2]_. The λ tried are half decades
    from 1e10 down, then eighths of a decade around the best. Splines are stored by their second
    derivatives at the knots, which keeps the fit well conditioned for any λ and any gaps.

    ``monotone`` requires the B-spline coefficients of f′ to be non-negative: a convex problem,
    solved exactly. All its curves rise, though a few rising cubics are left out. The evidence is
    that of the free fit; ``"cv"`` compares the restricted fits.

    Tables of more than 4,000 distinct scores are pooled to that many cells on the z axis (half of
    equal weight, half of equal width) before the fit, and to 500 for the choice of λ: that moves
    P by far less than its standard error. Cells are cut from the lowest score on, and the folds of
    ``"cv"`` are drawn in that order: with labels and signs of margins swapped, the next finer or
    smoother λ may be chosen. For a given λ the map is the same up to 4,000 distinct scores; beyond
    them P differs by up to some 0.0005. O(N log N) for the table, then O(cells·m²) per Newton step
    for m ≤ 42 coefficients. The map is straight pieces within ``map_error_`` of the spline (four
    times that on the logit scale). Ties are never split. Weights count in units of rows. Scores of
    exactly 0 and 1 in the fit count as half as far from the end as the nearest score inside, and a
    straight tail on that side ends there.

    References
    ----------
    .. [1] G. Wahba, "A comparison of GCV and GML for choosing the smoothing parameter in the
       generalized spline smoothing problem", 1985, doi:10.1214/aos/1176349743.
    .. [2] S. Wood, "Fast stable restricted maximum likelihood and marginal likelihood estimation
       of semiparametric generalized linear models", 2011, doi:10.1111/j.1467-9868.2010.00749.x.
    .. [3] B. Lucena, "Spline-based probability calibration", 2018, arXiv:1809.07751.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> y = rng.random(4000) < p**2
    >>> c = Spline().fit(p, y)
    >>> c.calibrate([0.25, 0.5, 0.75]).round(2).tolist()
    [0.07, 0.26, 0.54]
    >>> 2 < c.effective_df_ < 6
    True
    """

    penalty: float | str = "evidence"
    knots: int | str = "auto"
    monotone: bool = False
    tails: str = "flat"
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 10  # with few it is Platt's method
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "penalty": (OneOf(("evidence", "cv")), Number(1e-8, 1e12)),
        "knots": (OneOf(("auto",)), Number(2, 200, whole=True)),
        "monotone": (OneOf((False, True)),),
        "tails": (OneOf(("flat", "linear")),),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    @one_thread()
    def _fit(self, table: ScoreTable) -> Map:
        axis, cells = _Axis.of(table)
        if axis.half == 0.0:
            return self._constant(axis, cells)
        x = axis.x(cells.scores)
        wanted = self.knots
        if isinstance(wanted, str):
            wanted = min(MOST, round(FEWEST + np.sqrt(table.total) / 2))
        low, high = axis.x(np.array([axis.low, axis.high])).tolist()
        count = min(int(wanted), max(2, len(cells)))
        knots = quantile_knots(x, cells.weight, count, (low, high), APART)
        basis = spline_basis(x, cells.weight, knots)
        smooth = _Smoothing(basis, cells.negative, cells.positive)
        if isinstance(self.penalty, str):
            few = cells.pool(FEWER_CELLS)
            basis_of_few = spline_basis(axis.x(few.scores), few.weight, knots)
            self.penalties_, self.criteria_ = (
                _lambda_evidence(_Smoothing(basis_of_few, few.negative, few.positive))
                if self.penalty == "evidence"
                else _lambda_fold_losses(basis_of_few, few, self.monotone)
            )
        else:
            self.penalties_, self.criteria_ = np.array([float(self.penalty)]), np.zeros(1)
        self.penalty_ = float(self.penalties_[np.argmax(self.criteria_)])  # the smoothest if tied
        free = smooth.fit(self.penalty_, smooth.flat())
        self.log_evidence_ = smooth.log_evidence(free, self.penalty_)
        if not isinstance(self.penalty, str):
            self.criteria_ = np.array([self.log_evidence_])
        self.effective_df_ = smooth.effective_df(free, self.penalty_)
        self.knots_ = axis.z(knots)
        kept = smooth.fit_rising(free, self.penalty_) if self.monotone else free
        return self._straightened(axis, basis.spline(kept.theta))

    def _constant(self, axis: _Axis, cells: ScoreTable) -> Map:
        """The map where all scores are equal: the smoothed base rate."""
        n0, n1 = cells.total_negative, cells.total_positive
        t0, t1 = smoothed_targets(np.array(n0), np.array(n1), platt_smoothing(n0, n1))
        level = float(np.log(t1 / t0))
        self.penalties_ = self.criteria_ = np.empty(0)
        self.penalty_, self.effective_df_, self.map_error_ = float(GRID[0]), 1.0, 0.0
        self.log_evidence_ = -float(t1 * np.logaddexp(0.0, -level) + t0 * np.logaddexp(0.0, level))
        self.knots_ = np.array([axis.low])
        return Piecewise.linear(self.knots_, np.array([level]), axis.input, "logit")

    def _straightened(self, axis: _Axis, spline: Cubic) -> Map:
        """The spline as straight pieces, with its tails."""
        places, error = spline.places(4.0 * MAP_ERROR, MOST_PIECES)  # σ′ is at most ¼
        self.map_error_ = error / 4.0
        value = spline(places)
        if self.monotone:
            value = np.maximum.accumulate(value)  # to the last bit
        z = axis.z(places)
        if self.tails == "linear":
            z, value = axis.with_tails(z, value, spline.slope[[0, -1]], self.monotone)
        kept = np.append(True, z[1:] > np.maximum.accumulate(z)[:-1])  # floats may be too coarse
        value = np.clip(value[kept], -2.0 * SURE, 2.0 * SURE)
        return Piecewise.linear(z[kept], value, axis.input, "logit")


class _Axis(NamedTuple):
    """The axis of z: its range, and x = (z − mean)/sd on it."""

    input: str
    low: float
    high: float
    half: float  # of the range, which could overflow
    mean: float  # as a share of the range
    sd: float
    ends: tuple[float, float]  # where straight tails stop

    @classmethod
    def of(cls, table: ScoreTable) -> tuple[_Axis, ScoreTable]:
        """The axis and the table pooled on it."""
        clip = table.inner_interval
        if clip is None:
            z, kind, limit = table.scores, "score", float(np.finfo(float).max)
            ends = (-limit, limit)
        else:
            z, kind = in_blocks(lambda s: logit(np.clip(s, *clip)), table.scores), "logit"
            first, last = logit(np.array([0.0, 1.0])).tolist()
            # scores of 0 and 1 are fitted as the clipped ones, so tails end there
            ends = (
                float(z[0]) if table.scores[0] == 0.0 else first,
                float(z[-1]) if table.scores[-1] == 1.0 else last,
            )
        low, high = float(z[0]), float(z[-1])
        half = high / 2 - low / 2
        cells = replace(table, scores=read_only(z)).pool(CELLS)
        if half <= ROUNDING * max(abs(low), abs(high)):  # one score, and its rounding
            return cls(kind, low, high, 0.0, 0.0, 1.0, ends), cells
        share, weight = (cells.scores / 2 - low / 2) / half, cells.weight
        weight = weight / weight.max()
        mean = float(share @ weight / weight.sum())
        sd = float(np.sqrt((share - mean) ** 2 @ weight / weight.sum()))
        return cls(kind, low, high, half, mean, max(sd, 1e-6), ends), cells

    def x(self, z: Array) -> Array:
        """The standardised places x of z."""
        return ((z / 2 - self.low / 2) / self.half - self.mean) / self.sd

    def z(self, x: Array) -> Array:
        """The z of standardised places x."""
        share = np.clip(self.mean + self.sd * x, 0.0, 1.0)
        return np.clip(self.low * (1.0 - share) + self.high * share, self.low, self.high)

    def with_tails(
        self, z: Array, value: Array, slopes: Array, rising: bool
    ) -> tuple[Array, Array]:
        """The line, extended at both ends until it is as good as 0 or 1, or until the axis ends."""
        for end, sign in ((0, -1.0), (-1, 1.0)):
            slope = sign * float(slopes[end])  # outwards
            if slope == 0.0 or (rising and sign * slope < 0.0):
                continue
            edge, border = float(z[end]), self.ends[end]
            with np.errstate(over="ignore"):
                room = float(np.abs(border / 2 - edge / 2) / self.half / self.sd)
                reach = (np.copysign(SURE, slope) - float(value[end])) / slope
                far = edge + sign * 2.0 * (min(room, reach) * self.sd * self.half)
            distance = min(room, reach)
            far = border if distance == room or abs(far) > abs(border) else far
            if not distance > 0.0 or not sign * far > sign * edge:
                continue
            place = 0 if end == 0 else len(z)
            z, value = (
                np.insert(z, place, far),
                np.insert(value, place, value[end] + slope * distance),
            )
        return z, value


class _Smoothing(NamedTuple):
    """A penalised fit for any λ: the basis at the cells, and the weights of the classes there."""

    basis: Basis
    n0: Array
    n1: Array

    def problem(self, penalty: float) -> LogisticProblem:
        """The fit for one λ, with Platt's targets."""
        size = len(self.basis.columns)
        prior = Prior(np.zeros(size), np.append([0.0, 0.0], np.full(size - 2, penalty)))
        smoothing = platt_smoothing(float(self.n0.sum()), float(self.n1.sum()))
        columns = self.basis.columns
        return LogisticProblem(lambda part: columns[:, part], self.n0, self.n1, prior, smoothing)

    def flat(self) -> Array:
        """The constant fit, to start from."""
        theta = np.zeros(len(self.basis.columns))
        theta[0] = self.problem(0.0).base
        return theta

    def fit(self, penalty: float, start: Array) -> LogisticPoint:
        """The free fit for one λ."""
        return self.problem(penalty).least(start)

    def fit_rising(self, free: LogisticPoint, penalty: float) -> LogisticPoint:
        """The best fit that does not fall: the free one, if that does not."""
        cone = self.basis.rising()
        if (cone @ free.theta >= 0.0).all():
            return free
        return self.problem(penalty).least(self.flat(), cone=cone)

    def log_evidence(self, fit: LogisticPoint, penalty: float) -> float:
        """The log evidence by Laplace's approximation; prior and posterior are Gaussian."""
        bends = len(fit.theta) - 2
        volume = 0.5 * bends * np.log(penalty) - 0.5 * fit.log_determinant
        return float(-fit.objective + volume + np.log(2.0 * np.pi))

    def effective_df(self, fit: LogisticPoint, penalty: float) -> float:
        """The degrees of freedom that a fit uses, tr H⁻¹(H − λ·1 on the bends)."""
        inverse = np.linalg.pinv(fit.hessian, hermitian=True)
        return float(len(fit.theta) - penalty * np.trace(inverse[2:, 2:]))


def _lambda_evidence(smooth: _Smoothing) -> tuple[Array, Array]:
    """λ and their log evidences: half decades first, then eighths around the best."""
    tried: dict[float, float] = {}
    starts: dict[float, Array] = {}
    start, best = smooth.flat(), -np.inf
    for penalty in GRID.tolist():
        fit = smooth.fit(penalty, start)
        start = starts[penalty] = fit.theta
        tried[penalty] = smooth.log_evidence(fit, penalty)
        best = max(best, tried[penalty])
        if tried[penalty] < best - HOPELESS:
            break
    middle = max(tried, key=tried.__getitem__)
    ratio = float(GRID[0] / GRID[1])
    for step in range(1 - FINER, FINER):
        penalty = middle * ratio ** (step / FINER)
        if step and GRID[-1] < penalty < GRID[0]:
            tried[penalty] = smooth.log_evidence(smooth.fit(penalty, starts[middle]), penalty)
    penalties = np.array(sorted(tried, reverse=True))
    return penalties, np.array([tried[penalty] for penalty in penalties.tolist()])


def _lambda_fold_losses(basis: Basis, cells: ScoreTable, monotone: bool) -> tuple[Array, Array]:
    """The λ of the grid, and minus the log loss of each on ten folds."""

    def path(rest: CellColumns, held: CellColumns) -> Array:
        if not (held.filled.any() and rest.filled.any()):
            return np.zeros(len(GRID))

        def loss(theta: Array) -> float:
            eta = theta @ basis.columns
            loss = float(held.positive @ np.logaddexp(0.0, -eta))
            return loss + float(held.negative @ np.logaddexp(0.0, eta))

        part = _Smoothing(basis, rest.negative, rest.positive)
        start = part.flat()
        if np.ptp(basis.columns[1][rest.filled]) <= CLOSE:  # no slope can be found
            return np.full(len(GRID), loss(start))
        losses = []
        for penalty in GRID.tolist():
            fit = part.fit(penalty, start)
            start = fit.theta
            losses.append(loss((part.fit_rising(fit, penalty) if monotone else fit).theta))
        return np.array(losses)

    return GRID.copy(), -held_out_path_losses(cells, FOLDS, path) / cells.total
