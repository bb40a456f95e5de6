"""A parabola on the logit scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.estimators.base import WEIGHTS, Calibrator, inner_interval
from calibrant.estimators.limits import Limit, Number, OneOf
from calibrant.kernels.logistic import (
    STEEPEST,
    LogisticPoint,
    LogisticProblem,
    Prior,
    platt_smoothing,
)
from calibrant.losses import logit, sigmoid
from calibrant.maps import Chain, Logistic, Map
from calibrant.maps.checks import in_blocks

#: precision of the prior without shrinkage: it has no effect unless the classes separate
RIDGE = 1e-6
#: prior standard deviations by name
SHRINK = {"identity": 1.0}
#: margins have no identity: they are shrunk to this slope per standard deviation
MARGIN_SLOPE = 1.5
#: margins are scaled to at most this logit, so that they pass through σ and back without loss
SPAN = 4.0
#: if the spread of z is below this share of its size, z² has no digits left
NARROW = 1e-4


class Quadratic(Calibrator):
    """P = σ(c + a·z + b·z²), z the logit of the score: Platt's sigmoid with a bend.

    Parameters
    ----------
    shrinkage : {"none", "identity"} or a number above 0, default="none"
        The data alone; or a prior around the scores as they are, with the number as its standard
        deviation (``"identity"``: 1). With x = (z − mean)/sd, f = z + α + β·x + γ·(x² − 1), and α,
        β, γ are normal around 0 with that deviation: at a typical score the prior allows the logit
        to change by about as much. Margins have no identity: they are shrunk to the logit of the
        base rate plus 1.5·x.
    monotone : bool, default=False
        Whether the parabola must not fall anywhere between the ends of the scores.
    weights, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    a_, b_, c_ : float
        The coefficients for z; for scores outside [0, 1], for the score itself.

    Notes
    -----
    Logistic regression on 1, z and z², by guarded Newton steps: O(D) per step after the
    O(N log N) table, with a pooled table as warm start. Without ``shrinkage`` the targets are
    Platt's, (N₊+1)/(N₊+2) and 1/(N₋+2), so that b = 0 is his method and separable data stay finite;
    f is then α + β·x + γ·(x² − 1), with a ridge of 1e-6 on β and γ. With ``shrinkage`` the labels
    count as they are.

    A parabola turns round somewhere, so it is not followed beyond the scores: the map is flat from
    the outermost margin on, or from halfway between the outermost probability and 0 or 1. Within
    that range it may fall, unless ``monotone``: then the exact best parabola with a + 2bz ≥ 0 at
    both ends is taken. With fewer than three scores, or if z spreads by less than 1e-4 of its size,
    b is 0. Weights count in units of rows; equal scores are one cell.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines", 1999.
    .. [2] D. R. Cox, "Two further applications of a model for binary regression", 1958,
       doi:10.1093/biomet/45.3-4.562.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> y = rng.random(4000) < p**2
    >>> c = Quadratic().fit(p, y)
    >>> c.calibrate([0.25, 0.5, 0.75]).round(2).tolist()
    [0.07, 0.25, 0.55]
    >>> few = Quadratic(shrinkage="identity").fit([0.3, 0.6, 0.7], [0, 0, 1])
    >>> few.calibrate([0.3, 0.6, 0.7]).round(2).tolist()
    [0.18, 0.49, 0.7]
    """

    events_needed: ClassVar[int] = 15
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "shrinkage": (OneOf(("none", "identity")), Number(1e-6, 1e6)),
        "monotone": (OneOf((False, True)),),
        "weights": (WEIGHTS,),
    }

    def __init__(
        self,
        *,
        shrinkage: float | str = "none",
        monotone: bool = False,
        weights: str = "importance",
        pos_label: Any = None,
        classes: Any = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.monotone = monotone
        self.weights = weights
        self.pos_label = pos_label
        self.classes = classes

    def _fit(self, table: ScoreTable) -> Map:
        scale = _Scale.of(table)
        prior, smoothing = self._prior(table, scale)

        def fit(part: ScoreTable, start: Array | None) -> Array:
            x = scale.x(part.scores)
            problem = _Parabola(x, part.negative, part.positive, prior, smoothing)
            begin = prior.mean if start is None else start
            free = problem.fit(np.eye(len(begin)), begin)
            return problem.risen(free, scale.ends) if self.monotone else free.theta

        theta = np.append(table.coarse_to_fine(fit), 0.0)[:3]
        c, a, b = scale.coefficients(theta)
        curve = Logistic(c, (("z", a), ("z2", b)), scale.clip)
        self.c_, self.a_, self.b_ = scale.of_scores(c, a, b)
        return curve if scale.link is None else Chain((Logistic(*scale.link), curve))

    def _prior(self, table: ScoreTable, scale: _Scale) -> tuple[Prior, tuple[float, float]]:
        """The prior of the coefficients of 1, x and x² − 1, and how the targets are smoothed."""
        n0, n1 = table.total_negative, table.total_positive
        if self.shrinkage == "none":
            mean, deviation = (0.0, 0.0, 0.0), RIDGE**-0.5
            smoothing = platt_smoothing(n0, n1)
        else:
            first, last = scale.x(table.scores[[0, -1]]).tolist()
            slope = MARGIN_SLOPE if first < last else 0.0  # a single margin has no scale
            straight = (float(np.log((n1 + 1.0) / (n0 + 1.0))), slope)
            mean = (*((scale.mean, scale.sd) if scale.link is None else straight), 0.0)
            deviation = (
                SHRINK[self.shrinkage] if isinstance(self.shrinkage, str) else float(self.shrinkage)
            )
            smoothing = (0.0, 0.0)
        size = 3 if scale.bends else 2
        precision = np.full(size, deviation**-2.0)
        if self.shrinkage == "none":  # so that Σp is the sum of the targets
            precision[0] = 0.0
        return Prior(np.array(mean[:size]), precision), smoothing


class _Parabola(NamedTuple):
    """A parabola in x to be fitted: cells, weights of the classes there, prior, smoothing."""

    x: Array
    n0: Array
    n1: Array
    prior: Prior
    smoothing: tuple[float, float]

    def fit(self, space: Array, start: Array) -> LogisticPoint:
        """The best coefficients in the span of orthonormal columns; the first is the intercept."""

        def design(part: slice) -> Array:
            x = self.x[part]
            rows = np.array((np.ones(len(x)), x, x * x - 1.0))[: len(space)]
            return np.asarray(space.T @ rows)

        mean, precision = self.prior
        inside = Prior(space.T @ mean, precision[: space.shape[1]])  # one for slope and bend
        problem = LogisticProblem(design, self.n0, self.n1, inside, self.smoothing)
        level = np.zeros(len(mean))
        level[0] = problem.base
        found = problem.least(*(space.T @ begin for begin in (start, level)))
        away = mean - space @ inside.mean
        objective = found.objective + 0.5 * float(precision @ away**2)
        return found._replace(theta=space @ found.theta, objective=objective)

    def risen(self, free: LogisticPoint, ends: tuple[float, float]) -> Array:
        """The best coefficients that do not fall between the ends: the free ones, those on an edge
        (where the slope at an end is 0), or a constant."""
        size = len(free.theta)
        slopes = np.array([[0.0, 1.0, 2.0 * end] for end in ends])[:, :size]
        slopes /= np.linalg.norm(slopes, axis=1)[:, None]
        if (slopes @ free.theta >= 0.0).all():
            return free.theta
        constant = np.eye(size)[:, :1]
        fits = [self.fit(constant, free.theta)]
        for row, other in ((slopes[0], slopes[1]), (slopes[1], slopes[0])):
            edge = self.fit(_across(row), free.theta) if size == 3 else fits[0]
            if other @ edge.theta >= 0.0:
                fits.append(edge)
        return min(fits, key=lambda found: found.objective).theta


def _across(row: Array) -> Array:
    """The intercept, and the line in slope and bend on which (0, row₁, row₂) is 0."""
    return np.array([[1.0, 0.0], [0.0, -row[2]], [0.0, row[1]]])


class _Scale(NamedTuple):
    """How scores become z and x = (z − mean)/sd.

    Probabilities are clipped, and z is their logit. Margins are scaled to z in [−4, 4] by a line,
    the link: so they pass through σ and back without loss.
    """

    clip: tuple[float, float]
    link: tuple[float, tuple[tuple[str, float], ...]] | None
    mean: float
    sd: float
    bends: bool
    ends: tuple[float, float]  # of x

    @classmethod
    def of(cls, table: ScoreTable) -> _Scale:
        clip, link = inner_interval(table), None
        if clip is None:
            link = _link(float(table.scores[0]), float(table.scores[-1]))
            both = sigmoid(_line(link, table.scores[[0, -1]]))
            clip = (float(both[0]), float(both[1]))
            if not both[0] < both[1]:  # one score, or as good as one
                clip = (0.25, 0.75)
        plain = cls(clip, link, 0.0, 1.0, False, (0.0, 0.0))
        z, weight = plain.x(table.scores), table.weight / table.weight.max()
        mean = float(z @ weight / weight.sum())
        sd = float(np.sqrt((z - mean) ** 2 @ weight / weight.sum()))
        bends = len(table) > 2 and sd > NARROW * abs(mean)
        sd = sd if sd > 1e-12 * abs(mean) else 1.0
        first, last = ((logit(np.array(clip)) - mean) / sd).tolist()
        return cls(clip, link, mean, sd, bends, (first, last))

    def x(self, scores: Array) -> Array:
        def of(s: Array) -> Array:
            p = s if self.link is None else sigmoid(_line(self.link, s))
            return (logit(np.clip(p, *self.clip)) - self.mean) / self.sd

        return in_blocks(of, scores)

    def coefficients(self, theta: Array) -> tuple[float, float, float]:
        """c, a, b for z from those for 1, x and x² − 1."""
        level, slope, bend = (float(t) for t in theta)
        m, s = self.mean, self.sd
        b = bend / s / s
        a = slope / s - 2.0 * b * m
        return level - slope * m / s + b * m * m - bend, a, b

    def of_scores(self, c: float, a: float, b: float) -> tuple[float, float, float]:
        """c, a, b of z; for margins those of the scores themselves."""
        if self.link is None:
            return c, a, b
        shift, ((_, k),) = self.link
        with np.errstate(over="ignore"):
            return (
                c + a * shift + b * shift**2,
                (a + 2.0 * b * shift) * k,
                float(np.float64(b) * k * k),
            )


def _link(low: float, high: float) -> tuple[float, tuple[tuple[str, float], ...]]:
    """The line that scales margins to [−4, 4], as the arguments of a logistic map."""
    half, middle = high / 2 - low / 2, low / 2 + high / 2
    steep = SPAN / half if half > 0.0 else 1.0 / max(abs(middle), 1.0)
    steep = min(steep, STEEPEST)
    return -steep * middle, (("x", steep),)


def _line(link: tuple[float, tuple[tuple[str, float], ...]], s: Array) -> Array:
    shift, ((_, steep),) = link
    with np.errstate(over="ignore"):
        return shift + steep * s
