"""The calibration belt: a polynomial in log-odds, its simultaneous band, and its test.

The belt of degree m is logit P(y) = Σ_{j ≤ m} β_j zʲ, z = logit p. Right predictions, β = (0, 1, 0,
…), are one of its curves. The degree grows while one more power fits better than chance would let
it, which the distribution of the test knows of.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, chdtri

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.errors import ConvergenceError
from calibrant.losses import logit, sigmoid, softplus
from calibrant.metrics.chance import CELLS
from calibrant.metrics.tables import check_flag, impossible, read_table, table_for_test
from calibrant.metrics.tests import inner_cells
from calibrant.result_tables import Readable
from calibrant.solvers.logistic import LogisticPoint, LogisticProblem, Prior

#: the highest degree, and the p-value below which one more power is taken
HIGHEST, GATE = 4, 0.05
#: a further power is dropped where less than this share of it is new
NOTHING_NEW = 1e-7
#: nodes of the integral over each power that was taken
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
#: the region is reached in so many stages, of so many Newton steps at most, which end with one that
#: is smaller than the last number
STAGES, STEPS, CLOSE = 4, 12, 1e-9
#: a limit whose likelihood is off by more than this share of what it should have fallen is unknown
OFF = 1e-6


@dataclass(frozen=True, repr=False)
class CalibrationBelt(Readable):
    """The result of `calibration_belt`.

    Attributes
    ----------
    statistic : float
        How much better the polynomial fits than the predictions themselves: twice the difference of
        log-likelihoods. Infinite where something impossible happened.
    p_value : float
        The chance of at least this statistic, at this degree, if the predictions are right.
    degree : int
        Of the polynomial; 0 where nothing was fitted.
    coefficients : tuple of float
        Those of 1, logit p, (logit p)², …; NaN where no polynomial fits best.
    left_out : float
        The weight of predictions of exactly 0 or 1, which have no log-odds.
    """

    statistic: float
    p_value: float
    degree: int
    coefficients: tuple[float, ...]
    left_out: float = 0.0

    def curve(self, p: Any) -> Array:
        """The curve at predictions between 0 and 1; NaN elsewhere."""
        at = np.asarray(p, dtype=np.float64)
        inner = (at > 0.0) & (at < 1.0)
        found = np.full(at.shape, np.nan)
        found[inner] = sigmoid(np.polynomial.Polynomial(self.coefficients)(logit(at[inner])))
        return found


def calibration_belt(
    y: Any,
    p: Any = None,
    *,
    fitted: bool = False,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> CalibrationBelt:
    """The test of the calibration belt (GiViTI): does a polynomial of log-odds fit better?

    A large p-value is good. The belt itself is drawn by ``reliability_diagram(curve="belt")``.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    fitted : bool, default=False
        Whether p comes from a logistic regression fitted to these same rows ("internal"
        calibration): then a line cannot fit better, and the degree is at least 2.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then it must be whole).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    logit P(y) = Σ_{j ≤ m} β_j zʲ, z = logit p [1]_. From m = 1 (``fitted``: 2) on, the degree grows
    to at most 4 while twice the gain of the log-likelihood is above χ²₁'s 95 % quantile k. The
    statistic is T = 2(ℓ(β̂) − ℓ(0, 1, 0, …)). If the predictions are right, T is distributed, given
    m, as a sum of χ²₂ (``fitted``: χ²₁) and m − 1 (m − 2) independent χ²₁ that are above k each,
    and p-value = P(T* ≥ T). With S₀ the upper tail of the first, S_j(t) = ∫_{z² > k} S_{j−1}(t −
    z²)·2φ(z) dz / 0.05, and these integrals are taken by Gauss's rule, to 1e-12. There are as many
    powers as distinct predictions less one. Importance weights are in units of rows: exact for
    equal weights, and else right as far as weights and predictions are independent. O(D) a Newton
    step.

    It misleads with few rows, since the limit for many is taken: with 50 rows and U-shaped
    predictions false alarms at 5 % are 8 %, with rare positives 6 %.

    References
    ----------
    .. [1] G. Nattino, S. Finazzi, G. Bertolini, "A new calibration test and a reappraisal of the
       calibration belt for the assessment of prediction models based on dichotomous outcomes",
       2014, doi:10.1002/sim.6100.
    .. [2] G. Nattino, S. Finazzi, G. Bertolini, "A new test and graphical tool to assess the
       goodness of fit of logistic regression models", 2016, doi:10.1002/sim.6744.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> calibration_belt(rng.random(1000) < p, p).p_value > 0.05
    True
    >>> found = calibration_belt(rng.random(1000) < p**2, p)
    >>> found.p_value < 1e-6, found.curve([0.5]).round(1).tolist()
    (True, [0.2])
    """
    given = table_for_test(read_table(y, p, sample_weight, pos_label), weights)
    table, left_out = inner_cells(given)
    check_flag("fitted", fitted)
    if impossible(given):
        return CalibrationBelt(math.inf, 0.0, 0, (math.nan,), left_out)
    if not len(table):
        return CalibrationBelt(0.0, 1.0, 0, (math.nan,), left_out)
    belt = Belt.of(table, fitted=fitted)
    p_value = belt.beyond(belt.statistic)
    return CalibrationBelt(belt.statistic, p_value, belt.degree, belt.coefficients, left_out)


# --- the polynomial -----------------------------------------------------------------------------


class Powers(NamedTuple):
    """Orthonormal polynomials of log-odds, for a table with given weights.

    Column j of ``mix`` has the coefficients of that of degree j in powers of (z − middle)/spread.
    """

    middle: float
    spread: float
    mix: Array

    @classmethod
    def of(cls, z: Array, weight: Array) -> Powers:
        """The polynomials for these log-odds: up to `HIGHEST` degrees, fewer where there are few
        different log-odds."""
        share = weight / float(weight.sum())
        middle = float(share @ z)
        spread = math.sqrt(float(share @ (z - middle) ** 2))
        plain = cls(middle, spread or 1.0, np.eye(min(HIGHEST, len(z) - 1) + 1))
        columns = plain.at(z) * np.sqrt(share)[:, None]
        root = np.linalg.qr(columns)[1]
        new = np.abs(np.diag(root)) > NOTHING_NEW * np.linalg.norm(columns, axis=0)
        many = len(new) if new.all() else int(np.argmin(new))
        return plain._replace(mix=np.linalg.inv(root[:many, :many]))

    def at(self, z: Array) -> Array:
        """The value of each polynomial at some log-odds: shape (places, degrees)."""
        powers = np.vander((z - self.middle) / self.spread, len(self.mix), increasing=True)
        return np.asarray(powers @ self.mix)

    def plain(self, theta: Array) -> tuple[float, ...]:
        """The coefficients of 1, z, z², … of Σ θ_j · (polynomial of degree j)."""
        many = len(theta)
        scaled = np.polynomial.Polynomial((self.mix @ np.eye(len(self.mix), many)) @ theta)
        line = np.polynomial.Polynomial((-self.middle / self.spread, 1.0 / self.spread))
        found = np.asarray(scaled(line).coef, dtype=np.float64)
        return tuple(np.append(found, np.zeros(many))[:many].tolist())


@dataclass(frozen=True)
class Belt:
    """The polynomial that was fitted to a table of predictions between 0 and 1.

    ``first`` is the degree from which it grew, ``free`` how many coefficients are tested there, and
    ``statistic`` twice what the likelihood gains on the predictions. ``point`` is None where no
    polynomial fits best: one class alone, or a threshold that tells the classes apart.
    """

    table: ScoreTable
    powers: Powers
    first: int
    free: int
    degree: int
    statistic: float
    point: LogisticPoint | None

    @classmethod
    def of(cls, table: ScoreTable, *, fitted: bool = False) -> Belt:
        """The belt of a table that is not empty. O(D) a Newton step.

        Where the predictions were ``fitted`` to it, they are its best line already.
        """
        z = logit(table.scores)
        powers = Powers.of(z, table.weight)
        highest = len(powers.mix) - 1
        first = min(2 if fitted else 1, highest)
        grown = partial(cls, table, powers, first, max(first - 1, 0) if fitted else first + 1)
        right = float(table.negative @ softplus(z) + table.positive @ softplus(-z))
        degree, point = first, _fit_degree(table, powers, first)
        if point is None:
            return grown(degree, 2.0 * right, None)
        enough = float(chdtri(1, GATE)) / 2.0
        while degree < highest:
            further = _fit_degree(table, powers, degree + 1)
            if further is None or point.loss - further.loss <= enough:
                break
            degree, point = degree + 1, further
        return grown(degree, 2.0 * max(right - point.loss, 0.0), point)

    @property
    def coefficients(self) -> tuple[float, ...]:
        """The coefficients of 1, z, z², … of the polynomial; NaN where none fits best."""
        if self.point is None:
            return (math.nan,) * (self.degree + 1)
        return self.powers.plain(self.point.theta)

    def beyond(self, statistic: float) -> float:
        """The p-value of a statistic, at the degree of this belt."""
        taken = self.degree - self.first
        return float(statistic_beyond(np.array([statistic]), self.free, taken)[0])

    def curve(self, p: Array) -> Array:
        """The calibrated probability at predictions between 0 and 1; the rate of positives where no
        polynomial fits best."""
        if self.point is None:
            return np.full(len(p), self.table.total_positive / self.table.total)
        return sigmoid(self.powers.at(logit(p))[:, : self.degree + 1] @ self.point.theta)

    def band(self, p: Array, level: float) -> tuple[Array, Array]:
        """The lower and the upper end of the belt at predictions between 0 and 1. Curves inside are
        not refused by the test at 1 − level. It is all of [0, 1] where no polynomial fits best.

        Of more than `CELLS` distinct predictions neighbours are taken together.
        """
        if self.point is None:
            return np.zeros(len(p)), np.ones(len(p))
        fall = float(brentq(lambda t: self.beyond(t) - (1.0 - level), 0.0, 1e3)) / 2.0
        cells = self.table.pool(CELLS)
        region = _BeltRegion(
            cells, self.powers.at(logit(cells.scores)).T[: self.degree + 1], self.point
        )
        places = self.powers.at(logit(p))[:, : self.degree + 1]
        low, high = (side * region.furthest(side * places, fall) for side in (-1.0, 1.0))
        return sigmoid(low), sigmoid(high)


def _fit_degree(table: ScoreTable, powers: Powers, degree: int) -> LogisticPoint | None:
    """The logistic regression on the powers of log-odds up to a degree; None where the classes can
    be told apart by a threshold."""
    z, mix = logit(table.scores), powers.mix[:, : degree + 1]
    separable = not (table.total_negative and table.total_positive)
    if not separable and degree:
        zeros, ones = z[table.negative > 0.0], z[table.positive > 0.0]
        separable = ones.min() >= zeros.max() or zeros.min() >= ones.max()
    if separable:
        return None

    def design(part: slice) -> Array:
        return np.ascontiguousarray(powers._replace(mix=mix).at(z[part]).T)

    flat = Prior(np.zeros(degree + 1), np.zeros(degree + 1))
    problem = LogisticProblem(design, table.negative, table.positive, flat)
    start = np.zeros(degree + 1)
    start[0] = problem.base / mix[0, 0]
    try:
        return problem.least(start)
    except ConvergenceError:
        return None


# --- the region of all polynomials that the test does not refuse --------------------------------


class _BeltRegion(NamedTuple):
    """The polynomials whose likelihood is not too far below that of the best one.

    ``u`` has a row for each polynomial and a column for each cell.
    """

    cells: ScoreTable
    u: Array
    best: LogisticPoint

    def furthest(self, directions: Array, fall: float) -> Array:
        """For each direction d the largest d·θ among coefficients θ whose loss is at most ``fall``
        above the smallest loss.

        At the optimum the gradient is parallel to the direction. Newton's step to there, with
        H = ∇²loss and g = ∇loss, is s·H⁻¹d − H⁻¹g, where s² = (2·(what the loss still lacks) +
        gᵀH⁻¹g)/dᵀH⁻¹d. Infinite where that does not arrive.
        """
        theta = np.tile(self.best.theta, (len(directions), 1))
        least = float(self._derivatives(theta[:1])[0][0])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for stage in range(1, STAGES + 1):
                target = least + fall * (stage / STAGES) ** 2
                for _ in range(STEPS):
                    step = self._step(theta, directions, target)
                    theta = theta + step
                    if not (np.abs(step) > CLOSE * (1.0 + np.abs(theta))).any():
                        break
            off = np.abs(self._derivatives(theta)[0] - least - fall)
        found = (directions * theta).sum(axis=1)
        return np.where(off <= OFF * max(fall, 1.0), found, np.inf)

    def _step(self, theta: Array, directions: Array, target: float) -> Array:
        """One Newton step towards the θ that has the target loss and lies furthest along its
        direction."""
        loss, gradient, hessian = self._derivatives(theta)
        both = np.linalg.solve(hessian, np.stack((directions, gradient), axis=2))
        a, b = both[:, :, 0], both[:, :, 1]
        lacking = 2.0 * (target - loss) + (gradient * b).sum(axis=1)
        size = np.sqrt(np.maximum(lacking, 0.0) / (directions * a).sum(axis=1))
        return np.asarray(size[:, None] * a - b)

    def _derivatives(self, theta: Array) -> tuple[Array, Array, Array]:
        """The loss, its gradient and its Hessian, for each row of θ."""
        n0, n1 = self.cells.negative, self.cells.positive
        eta = theta @ self.u
        tail = np.exp(-np.abs(eta))
        share = 1.0 / (1.0 + tail)
        above = eta >= 0.0
        p, q = np.where(above, share, tail * share), np.where(above, tail * share, share)
        loss = np.log1p(tail) @ (n0 + n1) + np.maximum(eta, 0.0) @ n0 + np.maximum(-eta, 0.0) @ n1
        gradient = (n0 * p - n1 * q) @ self.u.T
        pairs = (self.u[:, None, :] * self.u[None, :, :]).reshape(-1, len(n0))
        hessian = (((n0 + n1) * p * q) @ pairs.T).reshape(len(theta), *[len(self.u)] * 2)
        ridge = 1e-14 * np.trace(hessian, axis1=1, axis2=2) + 1e-300
        return loss, gradient, hessian + ridge[:, None, None] * np.eye(len(self.u))


# --- the distribution of the statistic ----------------------------------------------------------


def statistic_beyond(t: Array, free: int, taken: int) -> Array:
    """The chance of at least t for a sum of independent terms: χ²_free, and ``taken`` terms χ²₁
    that are above their own 95 % quantile.

    One integral for each term, in which z = √t·sin θ makes what is integrated smooth.

    >>> statistic_beyond(np.array([5.9915]), 2, 0).round(4).tolist()
    [0.05]
    >>> statistic_beyond(np.array([9.0, 20.0]), 2, 1).round(4).tolist()
    [0.2384, 0.002]
    """
    if not taken:
        return np.asarray(chdtrc(free, np.maximum(t, 0.0))) if free else np.ones(len(t))
    k = float(chdtri(1, GATE))
    found = np.ones(len(t))
    far = t > taken * k
    top = t[far]
    if not far.any():
        return found
    root = np.sqrt(top)
    begin = np.arcsin(np.sqrt(k) / root)
    end = np.arcsin(np.sqrt(1.0 - (taken - 1) * k / top))
    angle = begin[:, None] + (end - begin)[:, None] * (NODES + 1.0) / 2.0
    z = root[:, None] * np.sin(angle)
    rest = statistic_beyond((top[:, None] - z**2).ravel(), free, taken - 1).reshape(z.shape)
    density = np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z**2) * root[:, None] * np.cos(angle)
    inner = (end - begin) / 2.0 * ((rest * density) @ WEIGHTS)
    beyond = chdtrc(1, top - (taken - 1) * k)  # the term alone is enough
    found[far] = np.minimum((inner + beyond) / GATE, 1.0)
    return found
