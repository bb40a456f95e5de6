"""Bayesian logistic fits of few columns or of broken lines: the mode, its curvature, the evidence.

Every design is a linear map from parameters θ to log-odds f at cells. A priori the parameters are
independent normals. All work is done in u = (θ − mean)/sd, whose prior is the unit normal: then the
Hessian is at least the identity, so that every design is well conditioned.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from calibrant.array_types import Array, Index
from calibrant.kernels.descent import descend

#: a knot within this distance of 0 bends the line on both of its sides
NEAR = 0.1
#: a fit has converged when another step promises less than this, in nats
ENOUGH = 1e-12


class Design(Protocol):
    """How parameters become log-odds at the cells, and how sums over cells come back."""

    def times(self, theta: Array) -> Array:
        """f = Φθ."""

    def back(self, g: Array) -> Array:
        """Φᵀg."""

    def gram(self, w: Array) -> Array:
        """Φᵀ·diag(w)·Φ."""


class FewColumns(NamedTuple):
    """A design of a few columns: phi has a row for each parameter."""

    phi: Array

    def times(self, theta: Array) -> Array:
        return np.asarray(theta @ self.phi)

    def back(self, g: Array) -> Array:
        return np.asarray(self.phi @ g)

    def gram(self, w: Array) -> Array:
        return np.asarray((self.phi * w) @ self.phi.T)

    def moments(self, theta: Array, covariance: Array) -> tuple[Array, Array]:
        """Mean and variance of f."""
        variance = ((covariance @ self.phi) * self.phi).sum(axis=0)
        return np.asarray(theta @ self.phi), np.maximum(variance, 0.0)


def bends(nodes: Array) -> tuple[Array, Array]:
    """A line that bends at the inner nodes: its values at all nodes, and the weight of each bend.

    Parameters are the value and the slope at 0, and the changes of slope. A node above 0 bends what
    lies above it, (x − k)₊, and a node below 0 what lies below it, (k − x)₊. A node near 0 bends
    both sides, as |x|/2 does at 0. So the line is anchored at 0, where the data are, and becomes
    uncertain away from there on both sides alike. With bends of variance ∝ the distance of nodes it
    is an integrated Brownian motion, seen at the nodes.
    """
    knots = nodes[1:-1]
    away = nodes[:, None] - knots
    below = np.clip(0.5 - knots / (2.0 * NEAR), 0.0, 1.0)
    shapes = np.maximum(away, 0.0) - below * away  # (k − x)₊ is (x − k)₊ − (x − k)
    return _with_line(nodes, shapes), np.sqrt((nodes[2:] - nodes[:-2]) / 2.0)


def ramps(nodes: Array) -> tuple[Array, Array]:
    """A line whose slope differs freely from node to node: Brownian motion around a line.

    Parameters are the value at 0, the common slope, and how much the slope of each piece differs
    from it. These differences have a variance ∝ 1 / the length of the piece.
    """
    low, high = nodes[:-1], nodes[1:]
    shapes = np.clip(nodes[:, None], low, high) - np.clip(0.0, low, high)
    return _with_line(nodes, shapes), 1.0 / np.sqrt(high - low)


def _with_line(nodes: Array, shapes: Array) -> Array:
    return np.column_stack((np.ones(len(nodes)), nodes, shapes))


class BrokenLine:
    """A broken line: straight between nodes, its values there linear in the parameters.

    Sums over cells need only the two nodes beside each cell, not all columns of the design. They
    take O(D) to bring to the nodes; the rest does not depend on D.

    Parameters
    ----------
    nodes : array of shape (k,)
        Strictly ascending, at least two. Beyond them the outermost pieces go on.
    basis : array of shape (k, m)
        The values at the nodes that each parameter gives: `bends` or `ramps`.
    x : array of shape (D,)
        The cells.
    """

    def __init__(self, nodes: Array, basis: Array, x: Array) -> None:
        self.nodes, self.basis = nodes, basis
        self.piece, self.along = place_on(nodes, x)

    def times(self, theta: Array) -> Array:
        value = self.basis @ theta
        low = value[self.piece]
        return np.asarray(low + self.along * (value[self.piece + 1] - low))

    def back(self, g: Array) -> Array:
        upper, size = g * self.along, len(self.nodes)
        total = np.bincount(self.piece, g - upper, size)
        total[1:] += np.bincount(self.piece, upper, size)[:-1]
        return np.asarray(total @ self.basis)

    def gram(self, w: Array) -> Array:
        size, t = len(self.nodes), self.along
        upper = w * t
        mixed = upper * (1.0 - t)
        diagonal = np.bincount(self.piece, w - upper - mixed, size)
        diagonal[1:] += np.bincount(self.piece, upper * t, size)[:-1]
        beside = np.bincount(self.piece, mixed, size)[:-1, None]
        tall = diagonal[:, None] * self.basis
        tall[:-1] += beside * self.basis[1:]
        tall[1:] += beside * self.basis[:-1]
        return np.asarray(self.basis.T @ tall)

    def band(self, theta: Array, covariance: Array) -> Band:
        """Mean and covariance of the line, given those of its parameters."""
        half = self.basis @ covariance
        own = (half * self.basis).sum(axis=1)
        beside = (half[:-1] * self.basis[1:]).sum(axis=1)
        return Band(self.nodes, self.basis @ theta, own, beside)


class Band(NamedTuple):
    """An uncertain broken line: mean and variance at the nodes, covariance of neighbours."""

    nodes: Array
    value: Array
    own: Array
    beside: Array

    def moments(self, i: Index, t: Array) -> tuple[Array, Array]:
        """Mean and variance at places that lie so far along these pieces."""
        s = 1.0 - t
        variance = s * s * self.own[i] + 2.0 * s * t * self.beside[i] + t * t * self.own[i + 1]
        return s * self.value[i] + t * self.value[i + 1], np.maximum(variance, 0.0)


def place_on(nodes: Array, x: Array) -> tuple[Index, Array]:
    """The piece that each x lies on (the outermost have no end), and how far along the piece."""
    piece = piece_of(nodes, x)
    low, high = nodes[piece], nodes[piece + 1]
    return piece, (x - low) / (high - low)


def piece_of(nodes: Array, x: Array) -> Index:
    """The piece between two nodes that each x lies on; the outermost pieces have no end."""
    after = np.searchsorted(nodes, x, "right")
    return np.minimum(np.maximum(after - 1, 0), len(nodes) - 2)


class _PosteriorPoint(NamedTuple):
    """θ in prior standard deviations from its mean, with the objective and its gradient there, and
    the information n·p(1 − p) of each cell."""

    theta: Array
    objective: float
    gradient: Array
    information: Array


class Posterior(NamedTuple):
    """The mode θ, its covariance, the log evidence, and the steps that led to the mode."""

    theta: Array
    covariance: Array
    log_evidence: float
    steps: int


def log_likelihood(f: Array, n0: Array, n1: Array) -> float:
    """Σ n₁·ln σ(f) + n₀·ln σ(−f)."""
    common = np.log1p(np.exp(-np.abs(f)))
    return -float((n0 + n1) @ common + n0 @ np.maximum(f, 0.0) + n1 @ np.maximum(-f, 0.0))


def fit_posterior(
    design: Design,
    mean: Array,
    sd: Array,
    n0: Array,
    n1: Array,
    start: Array | None = None,
) -> Posterior:
    """The posterior of θ ~ N(mean, sd²) given n₁ positives and n₀ negatives at cells, by Laplace.

    ln evidence ≈ ln L(θ̂) − ½|û|² − ½ ln|H|, with û = (θ̂ − mean)/sd and H the Hessian in u.

    Notes
    -----
    `descend` on a strictly convex function of u. A step costs O(D + m³) for broken lines with m
    parameters, and O(D·m²) for columns. Raises where no optimum is found.
    """
    n = n0 + n1

    def at(u: Array) -> _PosteriorPoint:
        f = design.times(mean + sd * u)
        p, slope = _probabilities(f)
        objective = 0.5 * float(u @ u) - log_likelihood(f, n0, n1)
        return _PosteriorPoint(u, objective, u + sd * design.back(n * p - n1), n * slope)

    def factor(here: _PosteriorPoint) -> Array:
        hessian = design.gram(here.information) * sd * sd[:, None]
        hessian.flat[:: len(sd) + 1] += 1.0
        return np.asarray(dpotrf(hessian, lower=1)[0])

    def step(here: _PosteriorPoint) -> Array:
        return -np.asarray(dpotrs(factor(here), here.gradient, lower=1)[0])

    begin = at(np.zeros(len(mean)) if start is None else (start - mean) / sd)
    found = descend(at, begin, step, float(n.sum()), 100, enough=ENOUGH).required()
    last = at(found.theta)
    lower = factor(last)
    inverse = dpotri(lower, lower=1)[0]
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    log_det = 2.0 * float(np.log(np.diagonal(lower)).sum())
    covariance = inverse * sd * sd[:, None]
    log_evidence = -last.objective - 0.5 * log_det
    return Posterior(mean + sd * last.theta, covariance, log_evidence, found.steps)


def _probabilities(f: Array) -> tuple[Array, Array]:
    """σ(f) and σ′(f)."""
    tail = np.exp(-np.abs(f))
    share = 1.0 / (1.0 + tail)
    return np.where(f >= 0.0, share, tail * share), tail * share * share
