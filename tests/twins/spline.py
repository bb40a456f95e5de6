"""Slow, obvious twins of the quadratic and the spline. They import nothing of ours.

The spline's twin builds its basis by quadrature, minimises by a general optimiser, and takes the
evidence from the function's values at the scores, where the prior is a Gaussian process.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.interpolate import BSpline, make_interp_spline
from scipy.optimize import LinearConstraint, minimize

from twins.basics import group, inner, logit, sigmoid


def table(s, y, w):
    """Distinct scores and the weights of the two classes there."""
    cells = group(s, y, w)
    n0, n1 = np.array(list(cells.values())).T
    return np.array(list(cells)), n0, n1


def platt_targets(n0, n1):
    high, low = (n1.sum() + 1) / (n1.sum() + 2), 1 / (n0.sum() + 2)
    t1 = high * n1 + low * n0
    return n0 + n1 - t1, t1


def loss_of(eta, t0, t1):
    return float(t1 @ np.logaddexp(0, -eta) + t0 @ np.logaddexp(0, eta))


def minimum(u, t0, t1, precision, mean=None, cone=None):
    """argmin of the penalised loss over θ (with cone·θ ≥ 0), η = u @ θ."""
    mean = np.zeros(u.shape[1]) if mean is None else mean

    def value(theta):
        away = theta - mean
        return loss_of(u @ theta, t0, t1) + 0.5 * float(away @ precision @ away)

    def gradient(theta):
        p = sigmoid(u @ theta)
        return u.T @ ((t0 + t1) * p - t1) + precision @ (theta - mean)

    def hessian(theta):
        p = sigmoid(u @ theta)
        return (u.T * ((t0 + t1) * p * (1 - p))) @ u + precision

    start = np.zeros(u.shape[1])
    if cone is None:
        found = minimize(
            value, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-9}
        )
        theta = found.x
        for _ in range(2):  # it stops early where the bottom is flat; Newton's steps go on
            near = theta - np.linalg.solve(hessian(theta), gradient(theta))
            better = np.abs(gradient(near)).max() < np.abs(gradient(theta)).max()
            theta = near if better else theta
        return theta
    rows = LinearConstraint(cone, 0, np.inf)
    found = minimize(
        value,
        start,
        jac=gradient,
        method="SLSQP",
        constraints=rows,
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    return found.x


# --- quadratic ----------------------------------------------------------------------------------


def quadratic(s, y, w, query, shrink=None, monotone=False):
    """σ(parabola in z), flat beyond the ends."""
    x, n0, n1 = table(s, y, w)
    unit = x[0] >= 0 and x[-1] <= 1
    if unit:
        inside, asked = inner(x, np.ones(len(x)), query)
        z, q = logit(inside), logit(asked)
        between = [v for v in x if 0 < v < 1] or [0.5]
        ends = logit([between[0] / 2, 1 - (1 - between[-1]) / 2])
    else:
        z, q, ends = x, np.clip(query, x[0], x[-1]), x[[0, -1]]
    n = n0 + n1
    m = np.average(z, weights=n)
    sd = np.sqrt(np.average((z - m) ** 2, weights=n)) or 1.0

    def columns(at):
        v = (at - m) / sd
        bend = v**2 - 1 if len(z) > 2 and sd > 1e-4 * abs(m) else 0 * v
        return np.column_stack((np.ones(len(v)), v, bend))

    mean = np.zeros(3)
    t0, t1 = platt_targets(n0, n1)
    precision = np.diag([0.0, 1e-6, 1e-6])
    if shrink is not None:
        t0, t1, precision = n0, n1, shrink**-2.0 * np.eye(3)
        mean[:2] = (m, sd) if unit else (np.log((n1.sum() + 1) / (n0.sum() + 1)), 1.5)
    cone = np.array([[0, 1, 2 * (end - m) / sd] for end in ends]) if monotone else None
    theta = minimum(columns(z), t0, t1, precision, mean, cone)
    return sigmoid(columns(q) @ theta)


# --- spline -------------------------------------------------------------------------------------

GRID = [10 ** (10 - k / 2) for k in range(33)]


class Model:
    """Everything about the spline on one table, in units of x = (z − mean)/sd."""

    def __init__(self, s, y, w, knots=None):
        self.scores, self.n0, self.n1 = table(s, y, w)
        self.unit = self.scores[0] >= 0 and self.scores[-1] <= 1
        inside, _ = inner(self.scores, np.ones(len(self.scores)), [])
        self.z = logit(inside) if self.unit else self.scores
        n = self.n0 + self.n1
        self.m = np.average(self.z, weights=n)
        self.sd = np.sqrt(np.average((self.z - self.m) ** 2, weights=n))
        self.x = (self.z - self.m) / self.sd
        self.t0, self.t1 = platt_targets(self.n0, self.n1)
        self.knots = self._knots(n, knots)
        self.u = self.columns(self.x)
        self.mass = self._mass()

    def _knots(self, n, count):
        if count is None:
            count = min(40, round(8 + np.sqrt(n.sum()) / 2))
        count = max(2, min(count, len(n)))
        middle = (np.cumsum(n) - n / 2) / n.sum()
        wanted = np.interp(np.arange(1, count - 1) / (count - 1), middle, self.x)
        low, high = self.x[0], self.x[-1]
        kept = [low]
        for knot in wanted:
            if knot >= kept[-1] + 1e-4 * (high - low) and knot <= high - 1e-4 * (high - low):
                kept.append(knot)
        return np.array([*kept, high])

    def hat(self, j, t):
        return np.interp(t, self.knots, np.eye(len(self.knots))[j])

    def columns(self, x):
        """1, x and ∫(x − t)₊·hat_j(t) dt, by three-point quadrature (exact for cubics)."""
        nodes, weights = np.polynomial.legendre.leggauss(3)
        out = np.zeros((len(x), len(self.knots) + 2))
        out[:, 0], out[:, 1] = 1, x
        for i, at in enumerate(x):
            for low, high in pairwise(self.knots):
                top = min(high, at)
                if top <= low:
                    continue
                t = (low + top) / 2 + (top - low) / 2 * nodes
                for j in range(len(self.knots)):
                    area = (top - low) / 2 * weights @ ((at - t) * self.hat(j, t))
                    out[i, j + 2] += area
        return out

    def _mass(self):
        """∫hat_i·hat_j."""
        nodes, weights = np.polynomial.legendre.leggauss(3)
        total = np.zeros((len(self.knots), len(self.knots)))
        for low, high in pairwise(self.knots):
            t = (low + high) / 2 + (high - low) / 2 * nodes
            h = np.array([self.hat(j, t) for j in range(len(self.knots))])
            total += (high - low) / 2 * (h * weights) @ h.T
        return total

    def precision(self, lam):
        out = np.zeros((len(self.knots) + 2,) * 2)
        out[2:, 2:] = lam * self.mass
        return out

    def scaled(self):
        """Columns of about one size, for the optimiser."""
        size = np.append([1.0, 1.0], np.sqrt(np.diag(self.mass)))
        return size, self.u / size

    def fit(self, lam, monotone=False):
        size, u = self.scaled()
        cone = self.rising() / size if monotone else None
        return (
            minimum(u, self.t0, self.t1, self.precision(lam) / np.outer(size, size), cone=cone)
            / size
        )

    def rising(self):
        """B-spline coefficients of f′, by interpolation of f′ at enough points."""
        k = self.knots
        t = np.concatenate(([k[0]] * 2, k, [k[-1]] * 2))
        at = (t[1:-2] + t[2:-1]) / 2  # Greville's points
        slopes = np.zeros((len(at), len(k) + 2))
        slopes[:, 1] = 1
        for i, place in enumerate(at):
            for j in range(len(k)):
                slopes[i, j + 2] = self.area(j, place)
        return make_interp_spline(at, slopes, k=2, t=t).c

    def area(self, j, upto):
        """∫ hat_j up to a place."""
        total = 0.0
        for low, high in pairwise(self.knots):
            top = min(high, upto)
            if top > low:
                total += (top - low) * self.hat(j, (low + top) / 2)
        return float(total)

    def objective(self, theta, lam):
        return loss_of(self.u @ theta, self.t0, self.t1) + 0.5 * theta @ self.precision(lam) @ theta

    def evidence(self, theta, lam):
        """Laplace, from the values g ~ N(0, K) of f less its line: with W = p(1−p)·n and
        V = W⁻¹ + K it is −objective − ½ln|1 + KW| − ½ln|TᵀV⁻¹T| + ln 2π, T = (1, x)."""
        p = sigmoid(self.u @ theta)
        w = (self.t0 + self.t1) * p * (1 - p)
        g, t = self.u[:, 2:], self.u[:, :2]
        k = g @ np.linalg.solve(self.mass, g.T) / lam
        root = np.sqrt(w)
        inside = np.eye(len(w)) + root[:, None] * k * root
        lines = (root[:, None] * t).T @ np.linalg.solve(inside, root[:, None] * t)
        dets = np.linalg.slogdet(inside)[1] + np.linalg.slogdet(lines)[1]
        return -self.objective(theta, lam) - 0.5 * dets + np.log(2 * np.pi)

    def best(self):
        """λ of the largest evidence: half decades, then eighths."""

        def value(lam):
            return self.evidence(self.fit(lam), lam)

        first = max(GRID, key=value)
        finer = [first * 10 ** (k / 8) for k in range(3, -4, -1)]
        return max((lam for lam in finer if GRID[-1] <= lam <= GRID[0]), key=value)

    def predict(self, theta, query, tails="linear"):
        """σ(f), straight or flat beyond the scores; flat where 0 or 1 were among them."""
        query = np.asarray(query, float)
        z = logit(query) if self.unit else query
        x = (z - self.m) / self.sd
        low, high = self.knots[[0, -1]]
        edge = np.clip(x, low, high)
        f = self.columns(edge) @ theta
        if tails == "linear":
            left = theta[1]
            right = theta[1] + sum(
                theta[j + 2] * self.area(j, high) for j in range(len(self.knots))
            )
            below, above = np.minimum(x - low, 0), np.maximum(x - high, 0)
            if self.unit and self.scores[0] == 0:
                below = 0 * below
            if self.unit and self.scores[-1] == 1:
                above = 0 * above
            f = f + left * below + right * above
        return sigmoid(np.clip(f, -800, 800))


def spline(s, y, w, query, lam=None, tails="linear", monotone=False):
    model_scores, n0, n1 = table(s, y, w)
    if len(model_scores) == 1:
        t0, t1 = platt_targets(n0, n1)
        return np.full(len(query), t1.sum() / (t0 + t1).sum())
    model = Model(s, y, w)
    lam = model.best() if lam is None else lam
    return model.predict(model.fit(lam, monotone), query, tails)


# --- a second reference: the textbook P-spline with B-splines -----------------------------------


def b_spline_reference(x, t0, t1, knots, lam):
    """(values at x, REML) of the cubic B-spline fit with ∫f″² by quadrature.

    REML = −objective + ½ln|λS|₊ − ½ln|H| − ½ln|NᵀN| + ln 2π, N the coefficients of 1 and x.
    """
    t = np.concatenate(([knots[0]] * 3, knots, [knots[-1]] * 3))
    m = len(t) - 4
    units = [BSpline(t, np.eye(m)[j], 3) for j in range(m)]
    u = np.column_stack([b(x) for b in units])
    nodes, weights = np.polynomial.legendre.leggauss(4)
    penalty = np.zeros((m, m))
    for low, high in pairwise(knots):
        at = (low + high) / 2 + (high - low) / 2 * nodes
        bend = np.array([b.derivative(2)(at) for b in units])
        penalty += (high - low) / 2 * (bend * weights) @ bend.T
    c = minimum(u, t0, t1, lam * penalty)
    eta = u @ c
    p = sigmoid(eta)
    hessian = (u.T * ((t0 + t1) * p * (1 - p))) @ u + lam * penalty
    eigen = np.sort(np.linalg.eigvalsh(penalty))[2:]
    line = np.column_stack((np.ones(m), [t[j + 1 : j + 4].mean() for j in range(m)]))
    objective = loss_of(eta, t0, t1) + 0.5 * lam * c @ penalty @ c
    dets = np.log(lam * eigen).sum() - np.linalg.slogdet(hessian)[1]
    dets -= np.linalg.slogdet(line.T @ line)[1]
    df = np.trace(np.linalg.solve(hessian, hessian - lam * penalty))
    return p, -objective + 0.5 * dets + np.log(2 * np.pi), df
