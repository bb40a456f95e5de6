"""Sigmoids of a few features of the score: Platt, Beta, Quadratic, LogisticCorrection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.data.door import Limit, Number, OneOf
from calibrant.data.score_table import ScoreTable
from calibrant.fitting.base import DIRECTIONS, SCALES, WEIGHTS, Calibrator, uses_logit_scale
from calibrant.losses import logit, sigmoid
from calibrant.rules.base import Map, in_blocks
from calibrant.rules.chain import Chain
from calibrant.rules.sigmoids import FEATURES, FEATURES_OF_LOGIT, Logistic
from calibrant.solvers.logistic import (
    STEEPEST,
    LogisticPoint,
    LogisticProblem,
    Prior,
    fit_logistic,
    platt_smoothing,
)

#: precision of the prior without shrinkage: it has no effect unless the classes separate
RIDGE = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class Platt(Calibrator):
    """Sigmoid with two parameters, fitted by maximum likelihood with Platt's smoothed targets.

    P = 1 / (1 + exp(A·f + B)), where f is the score or its logit. A may have either sign, so
    scores that run the wrong way are turned round.

    Parameters
    ----------
    scale : {"auto", "logit", "raw"}, default="auto"
        Fit against the logit of the score, which must lie in [0, 1], or the score itself;
        ``"auto"`` takes the logit when all scores lie in [0, 1]. The papers use ``"raw"``; on
        probabilities the logit is far safer. Scores of exactly 0 and 1, which forests and
        neighbours give, have no logit: they count as half as far from the end as the outermost
        score inside (0, 1).
    weights, direction, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    a_, b_ : float
        A and B of the formula.
    scale_ : {"logit", "raw"}
        The scale that was used.

    Notes
    -----
    Targets are (N₊+1)/(N₊+2) for positives and 1/(N₋+2) for negatives [1]_, so that the optimum is
    finite even for separable data. Guarded Newton: O(D) per step after the O(N log N) table, with
    a pooled table as warm start. N₊ and N₋ are the effective numbers of rows of each class.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines", 1999.
    .. [2] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.

    Examples
    --------
    >>> c = Platt().fit([-2.0, -1.0, 0.5, 1.0, 3.0], [0, 0, 1, 0, 1])
    >>> c.calibrate([-2.0, 0.0, 3.0]).round(3).tolist()
    [0.186, 0.375, 0.719]
    >>> c.map_
    Logistic(σ(-0.511971 +0.483596·x))
    """

    scale: str = "auto"
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 10
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "scale": (SCALES,),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        on_logit = uses_logit_scale(self.scale, table)
        self.scale_ = "logit" if on_logit else "raw"
        clip = table.inner_interval if on_logit else None
        smoothing = platt_smoothing(table.total_negative, table.total_positive)

        def fit(part: ScoreTable, start: Array | None) -> Array:
            scores = part.scores if clip is None else np.clip(part.scores, *clip)
            f = in_blocks(logit, scores) if on_logit else scores
            return fit_logistic(
                [f], part.negative, part.positive, smoothing=smoothing, start=start
            ).coefficients

        intercept, slope = map(float, table.coarse_to_fine(fit))
        self.a_, self.b_ = -slope, -intercept
        return Logistic(intercept, (("z" if on_logit else "x", slope),), clip)


# --- Beta calibration: sigmoids, their inverses, and the identity in one family -------------------

LN_2 = float(np.log(2.0))
#: the features of each choice as functions of p, and what is added to them
CHOICES = {
    "abm": (("ln_p", 0.0), ("neg_ln_1mp", 0.0)),
    "am": (("z", 0.0),),
    "ab": (("ln_p", LN_2), ("neg_ln_1mp", -LN_2)),
}


@dataclass(kw_only=True, eq=False, repr=False)
class Beta(Calibrator):
    """P = 1 / (1 + 1 / (e^c · p^a / (1−p)^b)) with a, b ≥ 0, fitted by maximum likelihood.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}, default="abm"
        All three parameters; a = b (a logistic fit on the logit); or midpoint ½ fixed,
        c = (a − b)·ln 2.
    weights, direction, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    a_, b_, c_ : float
        The parameters; a = b = 1, c = 0 is the identity.

    Notes
    -----
    A logistic regression on ln p and −ln(1−p) [1]_. The map is monotone: where the unconstrained
    optimum has a negative a or b, the exact best fit with a, b ≥ 0 is taken (it lies on an edge). A
    ridge of 1e-6 on the standardised slopes keeps separable data finite. c has no ridge, so that
    the probabilities of the training rows sum to the number of positives (not with
    ``parameters="ab"``, which has no c). With rows of one class only the map is a constant: the
    odds with half a case of the other class (again not with "ab"). Scores outside [0, 1] are read
    as logits x, with p = σ(x): ln p = −ln(1 + e⁻ˣ) and −ln(1−p) = ln(1 + eˣ) are computed from x
    itself, so that the map still rises where σ(x) rounds to 1. Scores of exactly 0 and 1 count as
    half as far from the end as the outermost score inside (0, 1). O(D) per Newton step after the
    table.

    References
    ----------
    .. [1] M. Kull, T. Silva Filho, P. Flach, "Beyond sigmoids: how to obtain well-calibrated
       probabilities from binary classifiers with beta calibration", 2017, doi:10.1214/17-EJS1338SI.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> y = rng.random(4000) < p**2
    >>> c = Beta().fit(p, y)
    >>> c.calibrate([0.25, 0.5, 0.75]).round(2).tolist()
    [0.07, 0.25, 0.55]
    """

    parameters: str = "abm"
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 15
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "parameters": (OneOf(("abm", "am", "ab")),),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        margins = not table.looks_like_probabilities
        clip = table.inner_interval
        features = FEATURES_OF_LOGIT if margins else FEATURES

        def fit(part: ScoreTable, start: Array | None) -> Array:
            scores = part.scores if clip is None else np.clip(part.scores, *clip)
            chosen = CHOICES[self.parameters]
            columns = [in_blocks(features[name], scores) + shift for name, shift in chosen]
            return _fit_nonnegative(columns, part, self.parameters != "ab", start)

        theta = table.coarse_to_fine(fit)
        c, a, b = (*theta, theta[-1])[:3]  # one slope stands for both
        self.a_, self.b_ = float(a), float(b)
        self.c_ = float((a - b) * LN_2) if self.parameters == "ab" else float(c)
        if not margins:
            return Logistic(self.c_, (("ln_p", self.a_), ("neg_ln_1mp", self.b_)), clip)
        if self.parameters == "am":
            return Logistic(self.c_, (("x", self.a_),))
        return Logistic(self.c_, (("ln_sigmoid", self.a_), ("softplus", self.b_)))


def _fit_nonnegative(
    columns: list[Array], table: ScoreTable, intercept: bool, start: Array | None
) -> Array:
    """Intercept (0 if none) and slopes of the best fit whose slopes are not negative.

    The problem is convex: if the free optimum has a negative slope, the best fit lies on an edge of
    the quadrant, where one slope is 0, and if neither edge has a positive slope, at its corner.
    """
    size, n0, n1 = len(columns), table.total_negative, table.total_positive
    constant = np.zeros(1 + size)
    if intercept:
        half = 0.0 if min(n0, n1) > 0 else 0.5  # keeps the odds of an absent class finite
        constant[0] = np.log(n1 + half) - np.log(n0 + half)
        if half:
            return constant

    def fit(used: list[int], warm: Array | None = None) -> tuple[float, Array]:
        chosen = [columns[j] for j in used]
        best = fit_logistic(
            chosen, table.negative, table.positive, intercept=intercept, ridge=RIDGE, start=warm
        )
        theta = np.zeros(1 + size)
        theta[[1 + j for j in used]] = best.coefficients[-len(used) :]
        theta[0] = best.coefficients[0] if intercept else 0.0
        return best.loss, theta

    _, theta = fit(list(range(size)), start)
    if (theta[1:] >= 0).all():
        return theta
    edges = [fit([j]) for j in range(size)] if size > 1 else []
    inside = [(loss, theta) for loss, theta in edges if (theta >= 0)[1:].all()]
    return min(inside, key=lambda edge: edge[0])[1] if inside else constant


# --- Quadratic: a sigmoid with a bend -------------------------------------------------------------

#: margins have no identity: they are shrunk to this slope per standard deviation
MARGIN_SLOPE = 1.5
#: margins are scaled to at most this logit, so that they pass through σ and back without loss
SPAN = 4.0
#: if the spread of z is below this share of its size, z² has no digits left
NARROW = 1e-4


@dataclass(kw_only=True, eq=False, repr=False)
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
    weights, direction, pos_label, classes : see `Calibrator`

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

    shrinkage: float | str = "none"
    monotone: bool = False
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 15
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "shrinkage": (OneOf(("none", "identity")), Number(1e-6, 1e6)),
        "monotone": (OneOf((False, True)),),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        scale = _Scale.of(table)
        prior, smoothing = self._prior(table, scale)

        def fit(part: ScoreTable, start: Array | None) -> Array:
            x = scale.x(part.scores)
            problem = _Parabola(x, part.negative, part.positive, prior, smoothing)
            begin = prior.mean if start is None else start
            free = problem.fit(np.eye(len(begin)), begin)
            return problem.fit_rising(free, scale.ends) if self.monotone else free.theta

        theta = np.append(table.coarse_to_fine(fit), 0.0)[:3]
        c, a, b = scale.coefficients(theta)
        curve = Logistic(c, (("z", a), ("z2", b)), scale.clip)
        self.c_, self.a_, self.b_ = scale.of_scores(c, a, b)
        if scale.link is None:
            return curve
        shift, steep = scale.link
        return Chain((Logistic(shift, (("x", steep),)), curve))

    def _prior(self, table: ScoreTable, scale: _Scale) -> tuple[Prior, tuple[float, float]]:
        """The prior of the coefficients of 1, x and x² − 1, and how the targets are smoothed."""
        n0, n1, size = table.total_negative, table.total_positive, 3 if scale.bends else 2
        if self.shrinkage == "none":
            precision = np.full(size, RIDGE)
            precision[0] = 0.0  # so that Σp is the sum of the targets
            return Prior(np.zeros(size), precision), platt_smoothing(n0, n1)
        first, last = scale.x(table.scores[[0, -1]]).tolist()
        slope = MARGIN_SLOPE if first < last else 0.0  # a single margin has no scale
        straight = (float(np.log((n1 + 1.0) / (n0 + 1.0))), slope)
        mean = (*((scale.mean, scale.sd) if scale.link is None else straight), 0.0)
        deviation = 1.0 if self.shrinkage == "identity" else float(self.shrinkage)
        return Prior(np.array(mean[:size]), np.full(size, deviation**-2.0)), (0.0, 0.0)


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
        best = problem.least(*(space.T @ begin for begin in (start, level)))
        away = mean - space @ inside.mean
        objective = best.objective + 0.5 * float(precision @ away**2)
        return best._replace(theta=space @ best.theta, objective=objective)

    def fit_rising(self, free: LogisticPoint, ends: tuple[float, float]) -> Array:
        """The best coefficients that do not fall between the ends.

        They are the free ones, or those with slope 0 at an end, or a constant.
        """
        size = len(free.theta)
        slopes = np.array([[0.0, 1.0, 2.0 * end] for end in ends])[:, :size]
        slopes /= np.linalg.norm(slopes, axis=1)[:, None]
        if (slopes @ free.theta >= 0.0).all():
            return free.theta
        constant = np.eye(size)[:, :1]
        fits = [self.fit(constant, free.theta)]
        for row, other in ((slopes[0], slopes[1]), (slopes[1], slopes[0])):
            edge = fits[0]
            if size == 3:  # the intercept, and the line in slope and bend on which row·θ is 0
                edge = self.fit(np.array([[1.0, 0.0], [0.0, -row[2]], [0.0, row[1]]]), free.theta)
            if other @ edge.theta >= 0.0:
                fits.append(edge)
        return min(fits, key=lambda edge: edge.objective).theta


class _Scale(NamedTuple):
    """How scores become z and x = (z − mean)/sd.

    Probabilities are clipped, and z is their logit. Margins are scaled by a line to z in [−4, 4],
    and that line is the ``link``. So they pass through σ and back without loss.
    """

    clip: tuple[float, float]
    link: tuple[float, float] | None  # offset and slope
    mean: float
    sd: float
    bends: bool
    ends: tuple[float, float]  # of x

    @classmethod
    def of(cls, table: ScoreTable) -> _Scale:
        """The scale for the scores of a table."""
        clip, link = table.inner_interval, None
        if clip is None:
            low, high = float(table.scores[0]), float(table.scores[-1])
            half, middle = high / 2 - low / 2, low / 2 + high / 2
            steep = SPAN / half if half > 0.0 else 1.0 / max(abs(middle), 1.0)
            steep = min(steep, STEEPEST)
            link = -steep * middle, steep
            both = sigmoid(_line_values(link, table.scores[[0, -1]]))
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
        """The standardised z of scores."""

        def of(s: Array) -> Array:
            p = s if self.link is None else sigmoid(_line_values(self.link, s))
            return (logit(np.clip(p, *self.clip)) - self.mean) / self.sd

        return in_blocks(of, scores)

    def coefficients(self, theta: Array) -> tuple[float, float, float]:
        """The coefficients c, a, b of 1, z and z², from those of 1, x and x² − 1."""
        level, slope, bend = (float(t) for t in theta)
        m, s = self.mean, self.sd
        b = bend / s / s
        a = slope / s - 2.0 * b * m
        return level - slope * m / s + b * m * m - bend, a, b

    def of_scores(self, c: float, a: float, b: float) -> tuple[float, float, float]:
        """The coefficients c, a, b for scores, from those for z. For probabilities they stay the
        same."""
        if self.link is None:
            return c, a, b
        shift, k = self.link
        with np.errstate(over="ignore"):
            return (
                c + a * shift + b * shift**2,
                (a + 2.0 * b * shift) * k,
                float(np.float64(b) * k * k),
            )


def _line_values(link: tuple[float, float], s: Array) -> Array:
    """The values shift + steep · s of margins s, for the line of a link."""
    shift, steep = link
    with np.errstate(over="ignore"):
        return shift + steep * s


# --- Logistic correction: boosting's own sigmoid, with nothing to fit -----------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticCorrection(Calibrator):
    """P = 1 / (1 + exp(−2F)) for F = Σ αₜhₜ of AdaBoost with hₜ ∈ {−1, 1}.

    AdaBoost drives F towards half the log odds, so this link gives the probability back. Nothing
    but the labels is learnt from the data.

    Parameters
    ----------
    direction, pos_label, classes : see `Calibrator`

    Notes
    -----
    The score must be the unnormalised sum F. For `AdaBoost` that is its ``decision_function`` (with
    ``loss="log"`` the link is σ(F), which its ``predict_proba`` has already). Do not pass the bare
    ``decision_function`` of scikit-learn's ``AdaBoostClassifier``: it is divided by the sum of the
    learners' weights and lies in [−2, 2] however long boosting ran, so the probabilities would say
    nothing. `boosting_score` gives F back, also as ``response_method=boosting_score`` of
    `CalibratedClassifier`. Works well for weak learners such as stumps and badly for full trees,
    whose F grows without bound [1]_. Cost O(1).

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.

    Examples
    --------
    >>> c = LogisticCorrection().fit([-0.5, 0.5], [0, 1])
    >>> c.calibrate([0.0, 1.0]).round(3).tolist()
    [0.5, 0.881]
    """

    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    score_method: ClassVar[str] = "decision_function"
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {"direction": (DIRECTIONS,)}

    def _fit(self, table: ScoreTable) -> Map:
        return Logistic(0.0, (("x", 2.0),))
