"""An ensemble of linear trend estimates: piecewise linear maps averaged over their smoothness."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags, Index
from calibrant.data.door import Limit, Number, OneOf
from calibrant.data.score_table import ScoreTable
from calibrant.errors import CalibrationWarning, ParameterError, caller_level
from calibrant.fitting.base import DIRECTIONS, SCALES, WEIGHTS, Calibrator, uses_logit_scale
from calibrant.losses import logit
from calibrant.methods.near_isotonic._kernel import log_likelihood
from calibrant.methods.near_isotonic._kernel_lines import (
    BLOCK,
    Programme,
    fill_programme,
    largest_prices,
    least_squares,
    line_costs,
    prices_bounded,
    row_values,
    solve_for_signs,
    solve_rows,
    starts_of_close,
)
from calibrant.methods.near_isotonic._kernel_paper import (
    curvatures,
    curve_values,
    fused,
    fused_lambda,
    jump_rows,
    largest_curve_prices,
    normal_equations,
)
from calibrant.rules.base import Map
from calibrant.rules.mixture import Mixture
from calibrant.rules.piecewise import Piecewise
from calibrant.solvers._kernel import simplify
from calibrant.solvers.knots import divide_intervals
from calibrant.solvers.weights import CRITERIA, SELECT, criterion_weights

#: the smallest λ as a share of the largest
LEAST_LAMBDA = 1e-4
#: scores closer than this share of their range are one point
SAME = 1e-9
#: the relative duality gap aimed at, and the one above which a warning is given
GAP, WARN = 1e-8, 1e-7
#: the μ of the average, in units of √(N·r(1−r)), the standard deviation of the positives' number
MUS = (1 / 16, 1 / 4, 1.0, np.inf)
#: how far a map of parabolas is from them at most: half by drawing it, half by thinning it
CURVE_ERROR = 1e-5


@dataclass(kw_only=True, eq=False, repr=False)
class ELiTE(Calibrator):
    """Piecewise linear maps along the path of linear trend filtering, averaged by AICc.

    Parameters
    ----------
    falls : {"free", "priced", "forbidden"}, default="free"
        ``"priced"`` adds a price on falls, μΣ(p_i − p_{i+1})₊: maps are piecewise linear and
        near-isotonic, in one convex problem. ``"forbidden"``: maps never fall.
    mu : float or "average", default="average"
        The price μ of ``falls="priced"``, in units of N·p. ``"average"`` puts four μ into the
        ensemble: ¹⁄₁₆, ¼ and 1 times √(N·r(1−r)), with r the rate of positives, and ∞.
    scale : {"auto", "logit", "raw"}, default="auto"
        Lines in the logit of the score, or in the score itself as in the paper. ``"auto"``: in the
        logit if all scores lie in [0, 1], which our study found better.
    criterion : {"aicc", "aic", "bic"}, default="aicc"
        What weighs the models.
    models : {"all", "elbow", "best"}, default="all"
        Average over all models, over those ranked before the weights fall off, or take the best.
    clip : {"counts", "paper"}, default="counts"
        Keep probabilities in [1/(N+2), 1 − 1/(N+2)], or in [0, 1]. The latter leaves out models
        under which the data are impossible.
    tails : {"flat", "linear"}, default="flat"
        Beyond the extreme scores the map is flat, or its lines go on until they are clipped (steps
        are always flat there).
    degree : {1, 0, 2}, default=1
        Broken lines; steps, with a price λ on every rise and fall; or parabolas that join smoothly,
        with a price on jumps of the curvature (``falls="free"`` only). The paper found 1 the best.
        Steps can fit every row, and AICc does not prevent it: use ``criterion="bic"`` with them.
    n_lambdas : int, default=50
        The number of λ, log-spaced from λ_max to 10⁻⁴·λ_max. Several λ with the same model count
        once.
    weights, direction, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    lambdas_, mus_ : ndarrays of shape (m,)
        λ and μ of each model (μ is 0 if falls are free and ∞ if they are forbidden). λ is in units
        of the score, and infinite where it would overflow.
    df_ : ndarray of shape (m,)
        Degrees of freedom: 1 + degree + knots, less the pieces that a price on falls holds flat.
    log_likelihoods_, criteria_, weights_ : ndarrays of shape (m,)
        The log-likelihood, the criterion, and the weight in the average.
    models_ : tuple of Piecewise
        The models themselves.
    gap_ : float
        The largest relative duality gap of the models: how far from the optimum they can be, as a
        share of the objective (taken to be at least 1e-7·N).

    Notes
    -----
    Each model minimises ½Σn(p − n₁/n)² + λΣ|slope change| + μΣ(p_i − p_{i+1})₊ on the table. The
    solution bends at few scores. An interior-point method finds it on candidates for bends; the
    dual prices at all scores then certify it, or name the candidates that are missing. λ_max is the
    least λ with a straight line (with falls priced, a bound on it). O(D) per sweep and a few sweeps
    per λ; O(D) memory.
    Weights are ∝ exp(−½·criterion), with AICc = 2df − 2logL + 2df(df+1)/(N − df − 1). Models with
    df ≥ N − 1 get no weight; if these are all, the map is the straight line. N is the effective
    number of rows. Ties are never split; scores within 10⁻⁹ of their range count as equal. The
    average is piecewise linear too, and stored exactly (parabolas: within 10⁻⁵).

    References
    ----------
    .. [1] M. Pakdaman Naeini, G. Cooper, "Binary classifier calibration using an ensemble of
       piecewise linear regression models", 2018, doi:10.1007/s10115-017-1133-2.
    .. [2] S.-J. Kim, K. Koh, S. Boyd, D. Gorinevsky, "ℓ₁ trend filtering", 2009,
       doi:10.1137/070690274.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> ELiTE().fit(p, y).calibrate([0.3, 0.7]).round(2).tolist()
    [0.09, 0.47]
    """

    falls: str = "free"
    mu: float | str = "average"
    scale: str = "auto"
    criterion: str = "aicc"
    models: str = "all"
    clip: str = "counts"
    tails: str = "flat"
    degree: int = 1
    n_lambdas: int = 50
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 20
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "falls": (OneOf(("free", "priced", "forbidden")),),
        "mu": (Number(0, open=True), OneOf(("average",))),
        "scale": (SCALES,),
        "criterion": (OneOf(tuple(CRITERIA)),),
        "models": (OneOf(tuple(SELECT)),),
        "clip": (OneOf(("counts", "paper")),),
        "tails": (OneOf(("flat", "linear")),),
        "degree": (OneOf((0, 1, 2)),),
        "n_lambdas": (Number(2, 10_000, whole=True),),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        if self.degree == 2 and self.falls != "free":
            raise ParameterError(
                f"falls of ELiTE must be 'free' with degree=2, but {self.falls!r} came. A "
                "price on falls is there for degree 0 and 1."
            )
        on_logit = uses_logit_scale(self.scale, table)
        cells = TrendCells.of(logit(table.scores) if on_logit else table.scores, table)
        degree = min(self.degree, len(cells.place) - 1)  # one score has no line, two no parabola
        points = DEGREES[degree](cells.place, cells.n0 + cells.n1, cells.n1 / (cells.n0 + cells.n1))
        mus: tuple[float, ...] = (np.inf if self.falls == "forbidden" else 0.0,)
        if self.falls == "priced" and not isinstance(self.mu, str):
            mus = (float(self.mu),)
        elif self.falls == "priced":
            unit = float(np.sqrt(table.total_negative * (table.total_positive / table.total)))
            mus = tuple(share * unit if unit > 0.0 else np.inf for share in MUS)
        self.lambdas_, self.mus_, fits = fit_path(points, mus, self.n_lambdas)
        with np.errstate(over="ignore", invalid="ignore"):
            unit = np.float64(cells.width) ** degree  # from places in [0, 1] to scores
            self.lambdas_ = np.where(self.lambdas_ > 0.0, self.lambdas_ * unit, 0.0)
        least = 1.0 / (table.total + 2.0) if self.clip == "counts" else 0.0
        self._weigh(cells, points, fits, least, table.total)
        input_ = "logit" if on_logit else "score"
        drawing = PolygonDrawing(cells.x, (least, 1.0 - least), self.tails == "linear", input_)
        self.models_ = tuple(points.map_of(fit, drawing) for fit in fits)
        used = np.flatnonzero(self.weights_ > 0.0)
        average = Mixture(self.weights_[used], tuple(self.models_[i] for i in used)).collapse()
        return drawing.thinned(average) if degree == 2 else average

    def _weigh(
        self, cells: TrendCells, points: Any, fits: list[Any], least: float, n: float
    ) -> None:
        """Likelihoods, criteria and weights of the models, and whether their gaps are closed."""
        self.df_ = np.array([float(fit.df) for fit in fits])
        self.log_likelihoods_ = np.array(
            [log_likelihood(points.values(fit), cells.n0, cells.n1, least) for fit in fits]
        )
        self.criteria_ = CRITERIA[self.criterion](self.log_likelihoods_, self.df_, n)
        self.criteria_[(self.df_ >= n - 1.0) | np.isnan(self.criteria_)] = np.inf
        if not np.isfinite(self.criteria_).any():
            self.criteria_[0] = 0.0  # no model can be weighed: take that of the largest λ
        self.weights_ = SELECT[self.models](criterion_weights(self.criteria_))
        gaps = np.array([fit.gap for fit in fits])
        self.gap_ = float(gaps.max())
        worst = float(gaps[self.weights_ > 0.0].max())
        if worst > WARN:
            warnings.warn(
                f"the relative duality gap of a model is {worst:.2g}, more than {WARN:g}: it may "
                "be off by that share of its objective. The usual causes are scores that differ by "
                "less than a millionth of their range, and weights of very different size.",
                CalibrationWarning,
                stacklevel=caller_level(),
            )


class PathFit(NamedTuple):
    """The solution for one λ and μ."""

    at: Index  # its bends (jumps, first points of steps), the ends among them
    value: Array  # p there; for parabolas the B-spline coefficients
    df: int
    gap: float  # relative duality gap; 0 where there is nothing to iterate


class TrendCells(NamedTuple):
    """Points to fit: their place in [0, 1], their score (or its logit), and the weights there."""

    place: Array
    x: Array
    n0: Array
    n1: Array
    width: float

    @classmethod
    def of(cls, x: Array, table: ScoreTable) -> TrendCells:
        """The table's cells, where scores that are all but equal are merged."""
        half = x[-1] / 2 - x[0] / 2  # the range could overflow
        place = (x / 2 - x[0] / 2) / half if half > 0.0 else np.zeros(len(x))
        n0, n1 = table.negative, table.positive
        if np.diff(place).min(initial=np.inf) < SAME:
            starts = np.arange(len(place))
            starts = starts[: starts_of_close(place, SAME, starts)]
            weight = n0 + n1
            n0, n1 = np.add.reduceat(n0, starts), np.add.reduceat(n1, starts)
            place = np.add.reduceat(place * weight, starts) / (n0 + n1)
            x = x[starts]
            place[0] = 0.0
            if len(starts) > 1:
                place[-1] = 1.0
        with np.errstate(over="ignore"):
            return cls(place, x, n0, n1, float(2.0 * half))


def fit_path(points: Any, mus: tuple[float, ...], n_lambdas: int) -> tuple[Array, Array, list[Any]]:
    """λ, μ and the fit of every model, from the largest λ on.

    If falls have a price, neighbouring λ may give the same model, which counts once.
    """
    lambdas, used, fits = [], [], []
    for mu in mus:
        steepest, before = points.largest_lambda(mu), None
        bends = steepest > 1e-12 * points.w.sum()  # else the simplest model fits exactly
        for step in range(n_lambdas if bends else 1):
            lam = steepest * LEAST_LAMBDA ** (step / (n_lambdas - 1)) if bends else 1.0
            fit = points.best_fit(lam, mu, before, GAP)
            if (
                before is not None
                and np.array_equal(fit.at, before.at)
                and np.allclose(fit.value, before.value, 0.0, 1e-12)
            ):
                fits[-1], lambdas[-1] = fit, lam  # λ_max is only a bound: still the first model
            else:
                fits.append(fit)
                lambdas.append(lam if bends else 0.0)
                used.append(mu)
            before = fit
    return np.array(lambdas), np.array(used), fits


# --- Fits as maps --------------------------------------------------------------------------------


class PolygonDrawing(NamedTuple):
    """How fits become maps.

    It holds the scores of the cells, the bounds of p, whether tails go on, and whether scores or
    their logits are read.
    """

    x: Array
    bounds: tuple[float, float]
    drawn_on: bool
    input: str

    def polygon(self, x: Array, value: Array) -> Piecewise:
        """The polygon as a map: clipped to the bounds, with a knot wherever it meets one."""
        if self.drawn_on and len(x) > 1:
            for end, inner in ((0, 1), (-1, -2)):  # to where the end pieces meet a bound
                rise = value[end] - value[inner]
                bound = self.bounds[1] if rise > 0.0 else self.bounds[0]
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    far = x[end] + (x[end] - x[inner]) * ((bound - value[end]) / rise)
                if np.isfinite(far) and (far < x[0] if end == 0 else far > x[-1]):
                    place = 0 if end == 0 else len(x)
                    x, value = np.insert(x, place, far), np.insert(value, place, bound)
        knots, values = [x], [value]
        for bound in self.bounds:
            below = value < bound
            j = np.flatnonzero(below[1:] != below[:-1])
            share = (bound - value[j]) / (value[j + 1] - value[j])
            knots.append(x[j] * (1.0 - share) + x[j + 1] * share)
            values.append(np.full(len(j), bound))
        x, first = np.unique(np.concatenate(knots), return_index=True)
        value = np.clip(np.concatenate(values)[first], *self.bounds)
        return Piecewise.linear(x, value, input=self.input)

    def thinned(self, average: Piecewise) -> Piecewise:
        """An average of polygons with as few knots as its error allows."""
        x = average.x / max(float(np.abs(average.x).max()), 5e-324)  # widths could overflow
        kept = simplify(x, average.left, CURVE_ERROR / 2)
        return Piecewise.linear(average.x[kept], average.left[kept], input=self.input)


# --- Trend filtering: the best broken line through weighted points, priced by its bends and falls
# Minimise ½Σw(p − z)² + λΣ|slope change| + μΣ(p_i − p_{i+1})₊ over all values p at the points x.
# The solution bends at few points. So the programme is solved on candidates for bends
# (`solve_rows`) and then checked at all points: the price u of a slope change must stay within ±λ
# (`largest_prices`). Where it does not, the worst point of each interval becomes a candidate,
# until the duality gap is closed.


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


class TrendPoints:
    """Weighted points, x ascending from 0 to 1, to put lines through."""

    def __init__(self, x: Array, w: Array, z: Array) -> None:
        self.x, self.w, self.z = x, w, z
        first = np.arange(0, len(x), BLOCK)
        d, wz = x - np.repeat(x[first], BLOCK)[: len(x)], w * z
        columns = w, w * d, w * d * d, wz, wz * d
        #: Σw, Σwd, Σwd², Σwz, Σwzd per block of points, d the distance from its first point
        self.sums = np.column_stack([np.add.reduceat(column, first) for column in columns])
        self.energy, self.total = float((w * z * z).sum()), float(w.sum())
        self.ends: Index = np.array([0, len(x) - 1])

    def largest_lambda(self, mu: float) -> float:
        """λ_max: from there on the line has no bend. (With a price on falls it is an upper
        bound.)"""
        straight = CandidateLine(self, 1.0, mu, self.ends)
        return abs(float(straight.sweep(-1.0)[1][0]))

    def programme(
        self, at: Index, old: Index, known: Array, lam: float, mu: float
    ) -> tuple[Array, Programme]:
        """Moments of the intervals between candidates, and the programme for values there.

        The moments are Σw(1−t)², Σwt(1−t), Σwt², Σwz(1−t), Σwzt with t from 0 to 1. An interval
        contains its left end; only the last contains its right end. Those of intervals that are
        among the old ones are known. Inside the others, whole blocks are taken from their sums.

        There is a row for each bend and, if mu > 0, one for each step. The row of a bend says how
        far the chord of its neighbours lies above it: so no coefficient exceeds 1, however close
        they are.
        """
        n = len(at)
        bends = n - 2
        rows = bends + (n - 1 if mu > 0.0 else 0)
        moments = np.empty((n - 1, 5))
        hess, coef, start = np.zeros((n, 2)), np.zeros((rows, 3)), np.arange(rows)
        grad, low, high = np.zeros(n), np.full(rows, mu), np.zeros(rows)
        points = self.x, self.w, self.z, self.sums
        fill_programme(*points, at, old, known, moments, lam, hess, grad, coef, low, high)
        if mu > 0.0:
            start[bends:] -= bends
            coef[bends:, 0], coef[bends:, 1] = -1.0, 1.0
        return moments, Programme(hess, grad, coef, start, low, high)

    def best_fit(self, lam: float, mu: float, before: PathFit | None, tol: float) -> PathFit:
        """The line for λ and μ. It begins at the line of a λ nearby, if there is one."""
        at, signs = self.ends, np.empty(0)
        if before:
            at = before.at
            signs = np.sign(np.diff(np.diff(before.value) / np.diff(self.x[at])))  # of the bends
        trial = CandidateLine(self, lam, mu, at, signs)
        best, least, close = trial, np.inf, CLOSE
        for rounds in range(ROUNDS):
            where, worst = trial.prices()
            gap = trial.gap(max(lam, float(np.abs(worst).max())))
            if gap < least:
                best, least = trial, gap
            if gap <= tol or not (where >= 0).any():
                break
            kept = (
                trial.candidates_to_keep() if rounds < DROPS else np.ones(len(trial.at), dtype=bool)
            )
            new, close = distant_places(self.x, where, trial.at[kept], close, SAME)
            if not new.any():
                break
            at = np.concatenate((trial.at[kept], where[new]))
            u = np.concatenate((trial.u[kept], worst[new]))
            order = np.argsort(at)
            guess = np.sign(u[order])[1:-1] if rounds < GUESSES else None
            trial = CandidateLine(self, lam, mu, at[order], guess, trial)
        return best.line()

    def values(self, line: PathFit) -> Array:
        """The fitted probability at all points."""
        first, count = line.at[:-1], np.diff(line.at)
        count[-1] += 1  # the last piece contains its right end
        slope = np.diff(line.value) / np.diff(self.x[line.at])
        p = self.x - np.repeat(self.x[first], count)
        p *= np.repeat(slope, count)
        p += np.repeat(line.value[:-1], count)
        return p

    def map_of(self, line: PathFit, drawing: PolygonDrawing) -> Piecewise:
        """The broken line."""
        return drawing.polygon(drawing.x[line.at], line.value)


class CandidateLine:
    """The best line with bends at candidates only, and what its prices say about all points.

    If the signs of all bends are given, they are tried first: that takes one linear system.
    """

    def __init__(
        self,
        points: TrendPoints,
        lam: float,
        mu: float,
        at: Index,
        signs: Array | None = None,
        old: CandidateLine | None = None,
    ) -> None:
        self.points, self.lam, self.mu = points, lam, mu
        known = (old.at, old.moments) if old else (at[:0], np.empty((0, 5)))
        if signs is not None and mu == 0.0 and self.try_signs(at, signs, known):
            return
        self.solve(self.set_up(at, known))

    def set_up(self, at: Index, known: tuple[Index, Array]) -> Programme:
        """Set up the programme on these candidates."""
        self.at = at
        self.moments, rows = self.points.programme(at, *known, self.lam, self.mu)
        self.u = np.zeros(len(at))
        self.bent = np.ones(len(at) - 2, dtype=bool)
        self.flat = np.zeros(len(at) - 1, dtype=bool)
        self.open = np.zeros(len(at) - 1, dtype=bool)  # flat, and not yet shown to be right
        self.hess, self.grad = rows.hess, rows.grad
        return rows

    def try_signs(self, at: Index, signs: Array, known: tuple[Index, Array]) -> bool:
        """Whether there is a line whose bends have these signs; a few candidates may have been
        dropped."""
        signs = np.where(signs < 0.0, -1.0, 1.0)
        for _ in range(TRIES):
            rows = self.set_up(at, known)
            self.f, good = solve_for_signs(*rows, signs)
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
        """In each interval between candidates: the point whose price exceeds λ the most (−1 if none
        does), and its price."""
        p, pieces = self.points, len(self.at) - 1
        found = np.full(pieces, -1), np.zeros(pieces)
        known = (self.at, self.moments, self.f, self.u)
        largest_prices(p.x, p.w, p.z, p.sums, *known, lam, *found)
        return found

    def prices(self) -> tuple[Index, Array]:
        """As `sweep`, but without flat stretches where prices on falls keep u within bounds."""
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
            if prices_bounded(p.x, p.w, p.z, *stretch, self.lam, self.mu):
                where[j:k], worst[j:k] = -1, 0.0
            else:
                self.open[j:k] = True
        return where, worst

    def candidates_to_keep(self) -> Flags:
        """The candidates for the next round: bends, almost-bends, and all in flat stretches that
        are not yet proved."""
        keep = np.ones(len(self.at), dtype=bool)
        keep[1:-1] = self.bent | (np.abs(self.u[1:-1]) > self.lam * (1.0 - IDLE))
        keep[1:-1] |= self.open[1:] | self.open[:-1]
        return keep

    def gap(self, top: float) -> float:
        """The relative duality gap. If the largest price exceeds λ, all prices are scaled down
        first."""
        fit, error, penalty = self.costs(self.at, self.f, self.hess, self.grad)
        share = self.lam / top
        self.dual = share * (self.points.energy - fit) - 0.5 * share * share * error
        return self.relative_gap(0.5 * error + penalty)

    def costs(self, at: Index, f: Array, hess: Array, grad: Array) -> tuple[float, float, float]:
        """Three parts of the cost of a line through values at these places: Σwzp, the squared error
        and the penalty."""
        fit, square, penalty = line_costs(self.points.x, at, f, hess, grad, self.lam, self.mu)
        return fit, max(self.points.energy - 2.0 * fit + square, 0.0), penalty

    def relative_gap(self, primal: float) -> float:
        """The relative duality gap of a line with this objective."""
        return max(primal - self.dual, 0.0) / max(primal, FIT * self.points.total)

    def line(self) -> PathFit:
        """The line with its real bends only, solved to the last digits, if it is as good as the
        line through all candidates."""
        lines, bent = [], self.bent
        for _ in range(TRIES):
            line, bends = self.line_through(bent)
            lines.append(line)
            if bends.all():
                break
            bent = bent.copy()
            bent[bent] = bends  # the others were none: rounding only, or of the wrong sign
        gap = self.gap_of_line(self.at, self.f, self.hess, self.grad)
        best = PathFit(self.at, self.f, lines[0].df, gap)
        best = next((line for line in reversed(lines) if line.gap <= max(FEW, gap)), best)
        return best._replace(value=self.without_falls(best.value))

    def line_through(self, bent: Flags) -> tuple[PathFit, Flags]:
        """The best line that bends at these candidates only, and which of them are real bends."""
        kept = np.concatenate(([True], bent, [True]))
        piece = np.cumsum(kept[:-1]) - 1  # of each interval between candidates
        flat = np.zeros(piece[-1] + 1, dtype=bool)
        flat[piece[self.flat]] = True
        at, value = self.at[kept], self.f[kept]
        _, rows = self.points.programme(at, self.at, self.moments, self.lam, self.mu)
        signs = np.where(row_values(rows.coef, rows.start, value) < 0.0, -1.0, 1.0)
        if self.mu > 0.0:
            signs[len(at) - 2 :][flat] = 0.0
        better, good = solve_for_signs(*rows, signs)
        value, wrong = better if good.all() else value, ~good[: len(at) - 2]
        size = np.abs(row_values(rows.coef, rows.start, value))[: len(at) - 2]
        if good.all():
            bends = size > STRAIGHT
        else:  # a candidate that is no bend may have turned the sign of the next one: it goes first
            idle = wrong & (size <= NEARLY)
            bends = ~(idle if idle.any() else wrong)
        gap = self.gap_of_line(at, value, rows.hess, rows.grad)
        return PathFit(at, value, len(at) - int(flat.sum()), gap), bends

    def without_falls(self, value: Array) -> Array:
        """The values, raised where they fall if falls are forbidden."""
        return np.maximum.accumulate(value) if self.mu == np.inf else value

    def gap_of_line(self, at: Index, value: Array, hess: Array, grad: Array) -> float:
        """The relative duality gap of the line through these values."""
        _, error, penalty = self.costs(at, self.without_falls(value), hess, grad)
        return self.relative_gap(0.5 * error + penalty)


# --- Where a curve may bend: new candidates that are not next to one already there ----------------


def distant_places(
    x: Array, new: Index, kept: Index, close: float, least: float
) -> tuple[Flags, float]:
    """The new places that are further than ``close`` from those kept, and ``close``.

    If there is none, ``close`` is divided by ten; from ``least`` on it becomes 0. −1 is no place.

    >>> x = np.linspace(0, 1, 11)
    >>> far, close = distant_places(x, np.array([1, 5]), np.array([0, 10]), 0.2, 0.01)
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


# --- The paper's other degrees: steps, and parabolas that join smoothly -------------------------


#: a step this small is rounding
LEAST_STEP = 1e-11
#: the most rounds of adding candidates to a curve
CURVE_ROUNDS = 200
#: candidates of a curve are this far apart, or the second, or less, if the gap cannot be closed so
CURVE_CLOSE, CURVE_LEAST = 1e-4, 1e-7


class FusedPoints:
    """Weighted points to put steps through."""

    def __init__(self, x: Array, w: Array, z: Array) -> None:
        self.x, self.w, self.z = x, w, z

    def largest_lambda(self, mu: float) -> float:
        """λ_max: from there on, the fit is a single step."""
        return float(fused_lambda(self.w, self.z, mu))

    def best_fit(self, lam: float, mu: float, before: PathFit | None, tol: float) -> PathFit:
        """The steps for λ and μ. They are exact, so ``before`` and ``tol`` are not used."""
        p = fused(self.w, self.z, lam, lam + mu)
        first = np.append(0, np.flatnonzero(np.abs(np.diff(p)) > LEAST_STEP) + 1)
        return PathFit(first, p[first], len(first), 0.0)

    def values(self, steps: PathFit) -> Array:
        """The fitted probability at all points."""
        return np.repeat(steps.value, np.diff(np.append(steps.at, len(self.x))))

    def map_of(self, steps: PathFit, drawing: PolygonDrawing) -> Piecewise:
        """Steps halfway between neighbouring cells."""
        low, high = drawing.x[steps.at[1:] - 1], drawing.x[steps.at[1:]]
        half = low / 2 + high / 2
        cuts = np.where(half > low, half, high)
        return Piecewise.step(cuts, np.clip(steps.value, *drawing.bounds), drawing.input)


class Curves:
    """Weighted points, x ascending from 0 to 1, to put parabolas through that join smoothly."""

    def __init__(self, x: Array, w: Array, z: Array) -> None:
        self.x, self.w, self.z = x, w, z
        self.energy, self.total = float((w * z * z).sum()), float(w.sum())
        self.ends: Index = np.array([0, len(x) - 1])

    def largest_lambda(self, mu: float) -> float:
        """λ_max: from there on, the curve is a single parabola."""
        hess, grad = normal_equations(self.x, self.w, self.z, self.ends)
        p = curve_values(self.x, self.ends, least_squares(hess, grad))
        return float(
            largest_curve_prices(self.x, self.w, self.z, p, self.ends, np.zeros(2), 0.0)[1][0]
        )

    def best_fit(self, lam: float, mu: float, before: PathFit | None, tol: float) -> PathFit:
        """The curve for λ. It begins at the curve of a λ nearby, if there is one."""
        at = before.at if before else self.ends
        best = PathFit(at, np.zeros(len(at) + 1), 3, np.inf)
        close = CURVE_CLOSE
        for rounds in range(CURVE_ROUNDS):
            coef, where, gap = self._trial(lam, at)
            jumps = np.abs(np.diff(curvatures(self.x[at], coef)))
            real = np.concatenate(([True], jumps > 1e-6 * jumps.max(initial=0.0), [True]))
            if gap < best.gap:
                best = PathFit(at, coef, int(real.sum()) + 1, gap)
            if gap <= tol or not len(where):
                break
            kept = at[real] if rounds < DROPS else at
            new, close = distant_places(self.x, where, kept, close, CURVE_LEAST)
            if not new.any():
                break
            at = np.union1d(kept, where[new])
        return best

    def values(self, curve: PathFit) -> Array:
        """The fitted probability at all points."""
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

    def map_of(self, curve: PathFit, drawing: PolygonDrawing) -> Piecewise:
        """The parabolas, as a polygon."""
        place, value = self.polygon(curve, CURVE_ERROR / 2)
        x = drawing.x[0] * (1.0 - place) + drawing.x[-1] * place
        _, first = np.unique(x, return_index=True)
        return drawing.polygon(x[first], value[first])

    def _trial(self, lam: float, at: Index) -> tuple[Array, Index, float]:
        """The best coefficients, the points whose prices ask for a jump, and the duality gap."""
        hess, grad = normal_equations(self.x, self.w, self.z, at)
        rows, start, scale = jump_rows(self.x[at])
        bound = lam * scale
        f, y, _, _, _ = solve_rows(hess, grad, rows, start, bound, bound, self.energy, INNER)
        u = np.zeros(len(at))
        u[1:-1] = y / scale
        p = curve_values(self.x, at, f)
        where, worst = largest_curve_prices(self.x, self.w, self.z, p, at, u, lam)
        error = float((self.w * (self.z - p) ** 2).sum())
        fit = float((self.w * self.z * p).sum())
        penalty = lam * float(np.abs(np.diff(curvatures(self.x[at], f))).sum())
        primal, share = 0.5 * error + penalty, lam / max(lam, float(worst.max()))
        dual = share * (self.energy - fit) - 0.5 * share * share * error
        gap = max(primal - dual, 0.0) / max(primal, FIT * self.total)
        return f, where[where >= 0], gap


#: by degree: points that fits are made for
DEGREES = (FusedPoints, TrendPoints, Curves)
