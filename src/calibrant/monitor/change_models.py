"""The models of a change, each holding the one before it, and the tests between them.

logit P(y = 1 | z) = offset + g(z) + [row is new] · Σ δ_j·c_j(z), with g a cubic spline that both
tables share, or nothing where the offset is a map to be tested. The terms c_j come in steps: 1,
then z, then bends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray
from scipy.special import chdtrc

from calibrant.kernels.cubic import quantile_knots, quantiles, spline_basis
from calibrant.kernels.descent import descend, newton_step
from calibrant.losses import sigmoid
from calibrant.monitor.common_cells import Group

__all__ = [
    "ChangeFit",
    "ComparedCells",
    "Outcome",
    "c_alpha",
    "cells_of_map",
    "cells_of_tables",
    "climb",
    "fit",
    "information_moments",
    "terms_of",
]

Array = NDArray[np.float64]

#: the precision of the Gaussian prior on every coefficient (its deviation is 10): enough to keep
#: separable data finite, and nothing beside a few rows
PRIOR = 0.01
#: knots of the common curve: at least, at most, and how they grow with the rows of the rarer class
FEWEST, MOST, GROWTH = 3, 40, 2.0
#: distances from the median beyond which scores are drawn in, in widths of the middle half
FAR = 2.0
#: knots are further apart than this share of the range
APART = 1e-3
#: a direction that holds less than this share of its information beside the others is left out
INDEPENDENT = 1e-6


class ComparedCells(NamedTuple):
    """All cells that are compared, and the curve that both tables share."""

    rows: Group
    new: Array  # 1 in the new table, 0 in the reference
    offset: Array
    curve: Array  # one row for each column of g
    inflation: float = 1.0  # of variances, for the error of a map that was fitted

    @property
    def weight(self) -> Array:
        return self.rows.weight

    def only_new(self, offset: Array) -> ComparedCells:
        """The new table's cells alone, with the reference's curve as the offset."""
        at = self.new > 0.0
        rows = Group(*(column[at] for column in self.rows))
        return ComparedCells(rows, self.new[at], offset[at], self.curve[:0, at])

    def information(self, p: Array) -> Array:
        """Σw·p(1 − p) of each cell."""
        return np.asarray(self.weight * p * (1.0 - p))

    def variance(self, p: Array) -> Array:
        """Of Σw(y − p) in each cell: Σw²p(1 − p), where Σw² may differ between the classes."""
        spread = (1.0 - p) * self.rows.spread_positive + p * self.rows.spread_negative
        return self.information(p) * spread * self.inflation


class ChangeFit(NamedTuple):
    """Coefficients, the probability in each cell, and −log-likelihood without the prior."""

    theta: Array
    p: Array
    loss: float


class Outcome(NamedTuple):
    """A test of some terms, and the model that has them."""

    statistic: float
    df: int
    p_value: float
    model: ChangeFit
    covariance: Array  # of all δ of that model


# --- cells --------------------------------------------------------------------------------------


def cells_of_tables(reference: Group, new: Group) -> ComparedCells:
    """Two tables and their common curve: at most as many columns as either has scores.

    It is a free level for each score if they are few and mostly the same, else a spline with knots
    at quantiles, both classes counting alike.
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
        most = min(len(np.unique(group.z)) for group in (reference, new))
        curve = _spline(rows.z, rows.negative / n0 + rows.positive / n1, wanted)[:most]
    return ComparedCells(rows, flag, np.full(len(flag), np.log(n1 / n0)), curve)


def cells_of_map(new: Group, inflation: float) -> ComparedCells:
    """One table, whose z are the logits of the map in question."""
    return ComparedCells(new, np.ones(len(new.z)), new.z, np.empty((0, len(new.z))), inflation)


def _spline(z: Array, weight: Array, wanted: int) -> Array:
    """The columns of a cubic spline with so many knots, fewer if they would be too close."""
    x = _coordinate(z, weight)
    low, high = float(x[0]), float(x[-1])
    if high - low < 1.0:  # all scores are equal, or as good as that: else it is 2 at least
        return np.ones((1, len(z)))
    knots = quantile_knots(x, weight, wanted, (low, high), APART)
    return spline_basis(x, weight, knots).columns


def _coordinate(z: Array, weight: Array) -> Array:
    """z, drawn in like a logarithm far from where most rows are, with mean 0 and deviation 1."""
    low, middle, high = quantiles(z, weight, np.array([0.25, 0.5, 0.75])).tolist()
    deviation = _moments(z, weight)[1]
    least = 1e-9 * max(abs(low), abs(high))  # what is closer may be rounding
    scale = max(FAR * (high - low), least) if high > low else deviation
    x = np.arcsinh((z - middle) / scale)
    mean, deviation = _moments(x, weight)
    return np.asarray((x - mean) / deviation)


def _moments(z: Array, weight: Array) -> tuple[float, float]:
    """Weighted mean and deviation (1 if all z are equal)."""
    share = _share(weight)
    mean = float(z @ share)
    deviation = float(np.sqrt((z - mean) ** 2 @ share))
    return mean, deviation or 1.0


# --- fits ---------------------------------------------------------------------------------------


class _ChangePoint(NamedTuple):
    """A fit, with the penalised objective and its gradient."""

    theta: Array
    objective: float
    gradient: Array
    fit: ChangeFit


def fit(cells: ComparedCells, columns: Array, start: ChangeFit | None = None) -> ChangeFit:
    """The penalised fit of a logistic model with these columns, by guarded Newton steps.

    ``start`` is the fit of the first of these columns, if there is one. O(m²·D) a step, for m
    columns and D cells.
    """
    theta = np.zeros(len(columns))
    if start is not None:
        theta[: len(start.theta)] = start.theta
    if not len(theta):
        return _at(cells, columns, theta)

    def at(theta: Array) -> _ChangePoint:
        found, pull = _at(cells, columns, theta), PRIOR * theta
        gradient = columns @ (cells.weight * found.p - cells.rows.positive) + pull
        return _ChangePoint(theta, found.loss + 0.5 * float(theta @ pull), gradient, found)

    def step(here: _ChangePoint) -> Array:
        return newton_step(_information(cells, columns, here.fit.p), here.gradient)

    total = float(cells.weight.sum())
    return _at(cells, columns, descend(at, at(theta), step, total).required().theta)


def _at(cells: ComparedCells, columns: Array, theta: Array) -> ChangeFit:
    eta = cells.offset + theta @ columns
    positive, negative = cells.rows.positive, cells.rows.negative
    loss = positive @ np.logaddexp(0.0, -eta) + negative @ np.logaddexp(0.0, eta)
    return ChangeFit(theta, sigmoid(eta), float(loss))


def _information(cells: ComparedCells, columns: Array, p: Array) -> Array:
    scaled = columns * cells.information(p)
    return np.asarray(scaled @ columns.T + PRIOR * np.eye(len(columns)))


# --- tests --------------------------------------------------------------------------------------


def terms_of(cells: ComparedCells, p: Array, count: int) -> list[Array]:
    """The first steps of a change, as many as asked for: 1; z, standardised; three bends.

    The bends are Legendre's polynomials of degree 2 to 4 in the share of rows below a score, both
    classes counting alike as the probabilities p expect them: bounded, and finest where cases are.
    """
    weight = cells.weight
    mean, deviation = information_moments(cells, p)
    alike = _share(weight * p) + _share(weight * (1.0 - p))
    _, at = np.unique(cells.rows.z, return_inverse=True)
    mass = np.bincount(at, alike) / 2.0
    below = 2.0 * np.cumsum(mass) - mass - 1.0
    bends = np.asarray(legvander(below, 4)[:, 2:].T[:, at], dtype=np.float64)
    line = (cells.rows.z - mean)[None] / deviation
    return [np.ones((1, len(weight))), line, bends][:count]


def information_moments(cells: ComparedCells, p: Array) -> tuple[float, float]:
    """Mean and deviation of z, cells counting by their information w·p(1 − p)."""
    return _moments(cells.rows.z, cells.information(p))


def _share(weight: Array) -> Array:
    return weight / max(float(weight.sum()), np.finfo(float).tiny)


def climb(cells: ComparedCells, first: ChangeFit, steps: list[Array]) -> list[Outcome]:
    """The test of each step against the model before it, beginning at the one without a change.

    It ends before a step that cannot be told from the terms before it.
    """
    columns, before = cells.curve, first
    terms = np.empty((0, len(cells.rows.z)))
    outcomes: list[Outcome] = []
    for step in steps:
        tested = step * cells.new
        after = fit(cells, np.concatenate((columns, tested)), before)
        found = c_alpha(cells, before, after, columns, tested)
        if found is None:
            break
        columns, terms = np.concatenate((columns, tested)), np.concatenate((terms, tested))
        outcomes.append(Outcome(*found, after, _covariance(cells, after.p, terms)))
        before = after
    return outcomes


def c_alpha(
    cells: ComparedCells, before: ChangeFit, after: ChangeFit, columns: Array, tested: Array
) -> tuple[float, int, float] | None:
    """Statistic, degrees of freedom and p-value of the tested terms.

    Neyman's C(α): S = Σ r·w(y − p) in the model before, with r what the information of the model's
    own columns leaves of the terms; SᵀV⁻¹S with V = Σ rrᵀ·Var is χ². A single term gets the smaller
    of this and the likelihood ratio (scaled to V): each is too large on one side where cases are
    few.
    """
    p = before.p
    rest, size = _apart(cells, p, columns, tested)
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


def _apart(cells: ComparedCells, p: Array, columns: Array, tested: Array) -> tuple[Array, Array]:
    """What is left of the tested terms beside the columns, and the root of their information."""
    weight = cells.information(p)
    size = np.sqrt(np.maximum((tested * tested) @ weight, np.finfo(float).tiny))
    beside = np.linalg.solve(_information(cells, columns, p), (columns * weight) @ tested.T)
    return tested - beside.T @ columns, size


def _covariance(cells: ComparedCells, p: Array, terms: Array) -> Array:
    """Of the coefficients of the terms, beside the common curve: J⁻¹VJ⁻¹."""
    rest, _ = _apart(cells, p, cells.curve, terms)
    scaled = rest * cells.information(p)
    inverse = np.linalg.inv(scaled @ rest.T + PRIOR * np.eye(len(terms)))
    return np.asarray(inverse @ ((rest * cells.variance(p)) @ rest.T) @ inverse)
