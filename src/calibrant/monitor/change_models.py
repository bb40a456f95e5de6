"""Models of a change, each with more terms than the one before, and the tests between them.

logit P(y = 1 | z) = offset + g(z) + [row is new] · Σ δ_j·c_j(z). Two tables share the curve g, a
cubic spline. Where a map is tested, its logit is the offset and there is no g. The terms c_j are
added in steps: first 1, then z, then bends.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import legvander
from scipy.special import chdtrc

from calibrant.array_types import Array
from calibrant.data.score_table import kish_size
from calibrant.losses import sigmoid
from calibrant.solvers.knots import quantile_knots, spline_basis, weighted_quantiles
from calibrant.solvers.newton import descend, newton_step

#: the precision of the Gaussian prior on every coefficient, whose deviation is 10. It keeps the fit
#: of separable data finite, and a few rows outweigh it.
PRIOR = 0.01
#: the number of knots of the common curve: the least, the most, and how it grows with the rows of
#: the rarer class
FEWEST, MOST, GROWTH = 3, 40, 2.0
#: scores further from the median than this many interquartile ranges are drawn in
FAR = 2.0
#: knots are further apart than this share of the range
SPACING = 1e-3
#: a direction is left out if it has less than this share of its information for itself
INDEPENDENT = 1e-6
#: the remedies, each with one step more than the one before
NAMES = ("none", "intercept", "refit", "new map")


class ComparedCells(NamedTuple):
    """The cells of both tables, and the columns of the curve that they share."""

    rows: Group
    new: Array  # 1 in the new table, 0 in the reference
    offset: Array
    curve: Array  # one row for each column of g
    inflation: float = 1.0  # what variances are multiplied by, for the error of a fitted map

    @property
    def weight(self) -> Array:
        """The weight of each cell."""
        return self.rows.weight

    def only_new(self, offset: Array) -> ComparedCells:
        """The cells of the new table alone, compared with the reference's curve."""
        at = self.new > 0.0
        rows = Group(*(column[at] for column in self.rows))
        return ComparedCells(rows, self.new[at], offset[at], self.curve[:0, at])

    def information(self, p: Array) -> Array:
        """The information of each cell on its logit, Σw·p(1 − p)."""
        return np.asarray(self.weight * p * (1.0 - p))

    def variance(self, p: Array) -> Array:
        """The variance of Σw(y − p) in each cell."""
        spread = (1.0 - p) * self.rows.spread_positive + p * self.rows.spread_negative
        return self.information(p) * spread * self.inflation


class ChangeFit(NamedTuple):
    """A fitted model: its coefficients, the probability of each cell, and its loss."""

    theta: Array
    p: Array
    loss: float


class Outcome(NamedTuple):
    """The result of a test of some terms, with the model that has them."""

    statistic: float
    df: int
    p_value: float
    model: ChangeFit
    covariance: Array  # of all the δ of that model


# --- cells --------------------------------------------------------------------------------------


def cells_of_tables(reference: Group, new: Group) -> ComparedCells:
    """The cells of two tables, with columns for the curve that they share.

    If the tables have few scores, mostly the same, the curve has a free level for each score.
    Otherwise it is a spline with knots at quantiles, for which both classes count alike. One table
    alone may have few scores: the other one says how the curve goes between them.
    """
    order = np.argsort(np.concatenate((reference.z, new.z)), kind="stable")
    rows = Group(*(np.concatenate(pair)[order] for pair in zip(reference, new, strict=True)))
    flag = np.repeat([0.0, 1.0], [len(reference.z), len(new.z)])[order]
    n0, n1 = float(rows.negative.sum()), float(rows.positive.sum())
    wanted = int(np.clip(round(GROWTH * min(n0, n1) ** 0.25), FEWEST, MOST))
    levels, shared = np.unique(rows.z), np.intersect1d(reference.z, new.z)
    if len(levels) <= min(wanted + 2, 2 * len(shared)):
        curve = (rows.z == levels[:, None]).astype(np.float64)  # a level for each score
    else:
        curve = _spline_columns(rows.z, rows.negative / n0 + rows.positive / n1, wanted)
    return ComparedCells(rows, flag, np.full(len(flag), np.log(n1 / n0)), curve)


def _spline_columns(z: Array, weight: Array, wanted: int) -> Array:
    """The columns of a cubic spline of z with about so many knots.

    Its coordinate has mean 0 and deviation 1, and grows only like a logarithm far from most rows.
    """
    low, middle, high = weighted_quantiles(z, weight, np.array([0.25, 0.5, 0.75])).tolist()
    deviation = _mean_and_deviation(z, weight)[1]
    least = 1e-9 * max(abs(low), abs(high))  # smaller distances may be rounding
    scale = max(FAR * (high - low), least) if high > low else deviation
    x = np.arcsinh((z - middle) / scale)
    mean, deviation = _mean_and_deviation(x, weight)
    x = (x - mean) / deviation
    ends = float(x[0]), float(x[-1])
    if ends[1] - ends[0] < 1.0:  # all scores are equal up to rounding; else the range is at least 2
        return np.ones((1, len(z)))
    return spline_basis(x, weight, quantile_knots(x, weight, wanted, ends, SPACING)).columns


def _mean_and_deviation(z: Array, weight: Array) -> tuple[float, float]:
    """The weighted mean and standard deviation; 1 for a deviation of 0."""
    share = _as_shares(weight)
    mean = float(z @ share)
    deviation = float(np.sqrt((z - mean) ** 2 @ share))
    return mean, deviation or 1.0


# --- fits ---------------------------------------------------------------------------------------


class _ChangePoint(NamedTuple):
    """A point of the search for a fit: coefficients, objective and gradient."""

    theta: Array
    objective: float
    gradient: Array
    fit: ChangeFit


def fit_change(cells: ComparedCells, columns: Array, start: ChangeFit | None = None) -> ChangeFit:
    """The logistic regression on these columns, with a weak prior.

    ``start`` is a fit of the first few of these columns, if there is one. A step costs O(m²·D) for
    m columns and D cells.
    """
    theta = np.zeros(len(columns))
    if start is not None:
        theta[: len(start.theta)] = start.theta
    if not len(theta):
        return _fit_at(cells, columns, theta)

    def at(theta: Array) -> _ChangePoint:
        found, pull = _fit_at(cells, columns, theta), PRIOR * theta
        gradient = columns @ (cells.weight * found.p - cells.rows.positive) + pull
        return _ChangePoint(theta, found.loss + 0.5 * float(theta @ pull), gradient, found)

    def step(here: _ChangePoint) -> Array:
        return newton_step(information_matrix(cells, columns, here.fit.p), here.gradient)

    total = float(cells.weight.sum())
    return _fit_at(cells, columns, descend(at, at(theta), step, total).required().theta)


def _fit_at(cells: ComparedCells, columns: Array, theta: Array) -> ChangeFit:
    """The model with these coefficients."""
    eta = cells.offset + theta @ columns
    positive, negative = cells.rows.positive, cells.rows.negative
    loss = positive @ np.logaddexp(0.0, -eta) + negative @ np.logaddexp(0.0, eta)
    return ChangeFit(theta, sigmoid(eta), float(loss))


def information_matrix(cells: ComparedCells, columns: Array, p: Array) -> Array:
    """The information of the cells on the coefficients of these columns, and the prior's."""
    scaled = columns * cells.information(p)
    return np.asarray(scaled @ columns.T + PRIOR * np.eye(len(columns)))


# --- tests --------------------------------------------------------------------------------------


def change_terms(cells: ComparedCells, p: Array, count: int) -> list[Array]:
    """The columns that describe a change of the logit, in steps: a shift, a slope, and three bends.

    The bends are Legendre's polynomials of degree 2 to 4 in the share of rows below a score. For
    that share both classes count alike, as the probabilities p expect them. So bends are bounded,
    and finest where the cases are.
    """
    weight = cells.weight
    mean, deviation = information_mean_and_deviation(cells, p)
    alike = _as_shares(weight * p) + _as_shares(weight * (1.0 - p))
    _, at = np.unique(cells.rows.z, return_inverse=True)
    mass = np.bincount(at, alike) / 2.0
    below = 2.0 * np.cumsum(mass) - mass - 1.0
    bends = np.asarray(legvander(below, 4)[:, 2:].T[:, at], dtype=np.float64)
    line = (cells.rows.z - mean)[None] / deviation
    return [np.ones((1, len(weight))), line, bends][:count]


def information_mean_and_deviation(cells: ComparedCells, p: Array) -> tuple[float, float]:
    """The mean and standard deviation of z, cells weighted by their information."""
    return _mean_and_deviation(cells.rows.z, cells.information(p))


def _as_shares(weight: Array) -> Array:
    """Weights divided by their sum."""
    return weight / max(float(weight.sum()), np.finfo(float).tiny)


def stepwise_tests(cells: ComparedCells, first: ChangeFit, steps: list[Array]) -> list[Outcome]:
    """Test each step of a change against the model without it.

    The tests end before a step that cannot be told from the terms before it. The covariance of the
    terms' coefficients, beside the common curve, is J⁻¹VJ⁻¹.
    """
    columns, before = cells.curve, first
    terms = np.empty((0, len(cells.rows.z)))
    outcomes: list[Outcome] = []
    for step in steps:
        tested = step * cells.new
        after = fit_change(cells, np.concatenate((columns, tested)), before)
        found = c_alpha_test(cells, before, after, columns, tested)
        if found is None:
            break
        columns, terms = np.concatenate((columns, tested)), np.concatenate((terms, tested))
        rest, _ = _residual_terms(cells, after.p, cells.curve, terms)
        inverse = np.linalg.inv(information_matrix(cells, rest, after.p))
        covariance = inverse @ ((rest * cells.variance(after.p)) @ rest.T) @ inverse
        outcomes.append(Outcome(*found, after, covariance))
        before = after
    return outcomes


def c_alpha_test(
    cells: ComparedCells, before: ChangeFit, after: ChangeFit, columns: Array, tested: Array
) -> tuple[float, int, float] | None:
    """Neyman's C(α) test of some terms: statistic, degrees of freedom and p-value; None where they
    cannot be told from the others.

    This is Neyman's C(α). Let r be what is left of the terms once the columns of the model before
    are taken out, weighted by information. Then S = Σ r·w(y − p) with that model's p, and SᵀV⁻¹S
    with V = Σ rrᵀ·Var is χ². For a single term the likelihood ratio, scaled to V, is computed too,
    and the smaller of the two counts: where cases are few, each is too large on one side.
    """
    p = before.p
    rest, size = _residual_terms(cells, p, columns, tested)
    scaled = rest * cells.information(p)
    information = scaled @ rest.T
    values, vectors = np.linalg.eigh(information / np.outer(size, size))
    kept = (vectors / size[:, None])[:, values > INDEPENDENT]
    df = kept.shape[1]
    if not df:
        return None
    directions = kept.T @ rest
    score = directions @ (cells.rows.positive - cells.weight * p)
    variance = (directions * cells.variance(p)) @ directions.T
    statistic = float(score @ np.linalg.solve(variance, score))
    if df == 1:
        share = float(kept[:, 0] @ information @ kept[:, 0]) / float(variance[0, 0])
        statistic = min(statistic, max(2.0 * (before.loss - after.loss), 0.0) * share)
    return statistic, df, float(chdtrc(df, statistic))


def _residual_terms(
    cells: ComparedCells, p: Array, columns: Array, tested: Array
) -> tuple[Array, Array]:
    """The part of the tested terms that the other columns do not explain, and the root of the
    terms' information."""
    weight = cells.information(p)
    size = np.sqrt(np.maximum((tested * tested) @ weight, np.finfo(float).tiny))
    beside = np.linalg.solve(information_matrix(cells, columns, p), (columns * weight) @ tested.T)
    return tested - beside.T @ columns, size


# --- how large a change is, and what each remedy would gain ---------------------------------------


def expected_rate(cells: ComparedCells, reference: Array) -> float:
    """The share of positives that the new table would have if nothing had changed."""
    weight = cells.weight * cells.new
    return float(weight @ sigmoid(reference)) / float(weight.sum())


def remedies_of(
    cells: ComparedCells, reference: Array, steps: list[Array], outcomes: list[Outcome]
) -> tuple[Remedy, ...]:
    """What each remedy saves and leaves, by fits to the new table.

    What it saves is the fall of the mean log loss. Fitting to these rows makes that look better
    than it will be on others, by tr J⁻¹V in all (the number of parameters where all rows have the
    same weight). This is taken off. What it leaves is the root mean
    square distance from the model with all terms, without what chance adds to it.
    """
    alone = cells.only_new(reference)
    columns = np.concatenate([step[:, cells.new > 0.0] for step in steps[: len(outcomes)]])
    sizes = [0, *np.cumsum([len(step) for step in steps[: len(outcomes)]]).tolist()]
    fits = [fit_change(alone, columns[:size]) for size in sizes]
    total, best = float(alone.weight.sum()), outcomes[-1].covariance
    found = []
    for name, size, here, outcome in zip(NAMES, sizes, fits, [None, *outcomes], strict=False):
        known = np.zeros_like(best)
        if outcome is not None:
            known[:size, :size] = outcome.covariance
        own = columns[:size]
        variance = (own * alone.variance(here.p)) @ own.T
        optimism = np.trace(np.linalg.solve(information_matrix(alone, own, here.p), variance))
        saved = fits[0].loss - here.loss - float(optimism)
        left = _distance_left(alone, columns, (here.p, fits[-1].p), best - known)
        found.append(Remedy(name, saved / total, left if here is not fits[-1] else 0.0))
    return tuple(found)


def _distance_left(
    cells: ComparedCells, columns: Array, pair: tuple[Array, Array], covariance: Array
) -> float:
    """The root mean square distance between two models' probabilities, without what chance adds."""
    weight, p = cells.weight, pair[1]
    spread = np.einsum("ij,ik,kj->j", columns, covariance, columns) * (p * (1.0 - p)) ** 2
    square = float(weight @ ((pair[1] - pair[0]) ** 2 - spread)) / float(weight.sum())
    return math.sqrt(max(square, 0.0))


class Remedy(NamedTuple):
    """A remedy (none, intercept, refit, new map), with what it saves and what it leaves.

    ``saves`` is the log loss, in nats per row, that it would save on further rows. Fitting to these
    rows makes it look better than it is; that is taken off, so ``saves`` can be below 0.
    ``leaves`` is the root mean square distance of its probabilities from those of the largest
    remedy that could be tested, without what chance adds to it.
    """

    name: str
    saves: float
    leaves: float


class Group(NamedTuple):
    """The cells of one table: z, the weight of each class, and how unequal the weights are.

    Weights are scaled so that their sum is the effective size (Σw)²/Σw². So tables whose weights
    have different scales can be compared.
    """

    z: Array
    negative: Array
    positive: Array
    spread_negative: Array
    spread_positive: Array

    @property
    def weight(self) -> Array:
        """The weight of each cell."""
        return self.negative + self.positive

    @property
    def rarer(self) -> float:
        """How many rows of equal weight the rarer class is worth."""
        classes = (
            (self.negative, self.spread_negative),
            (self.positive, self.spread_positive),
        )
        return min(kish_size(float(w.sum()), float(w @ spread)) for w, spread in classes)

    @property
    def information(self) -> float:
        """The information of the rows on an intercept, n·rate·(1 − rate)."""
        n, ones = float(self.weight.sum()), float(self.positive.sum())
        return ones * (n - ones) / n
