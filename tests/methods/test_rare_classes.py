"""A rare class among several: every scaling ends at its optimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import calibrant as cal
from calibrant.errors import ConvergenceError
from calibrant.solvers import softmax as kernel
from calibrant.solvers import softmax as temperature
from twins import rare_classes as rare

#: precision of every parameter in units of the spread, for each row
RIDGE = 1e-7
FEW = [(4_000, positives, signal) for positives in (1, 20) for signal in rare.FACTORS]
FULL = [
    (size, positives, signal)
    for size in (10_000, 100_000)
    for positives in (30, 300)
    for signal in rare.FACTORS
]
SCALINGS = {
    "vector": cal.VectorScaling(gate=False),
    "matrix": cal.MatrixScaling(gate=False),
    "matrix, no ridge": cal.MatrixScaling(lambda_=0.0, gate=False),
    "Dirichlet": cal.Dirichlet(gate=False),
    "structured": cal.StructuredScaling(gate=False),
    "structured vector": cal.StructuredScaling(structure="vector", gate=False),
}
several = pytest.mark.parametrize("name", SCALINGS)


def features_and_ridges(name, c, z):
    """What W is applied to, and the strengths that the docstrings give."""
    n, k = z.shape
    off = ~np.eye(k, dtype=bool)
    if name == "vector":
        return z, np.zeros((k, k)), 0.0
    if name.startswith("structured"):
        x = rare.log_softmax(z / c.temperature_)
        return x, np.where(off, 2.0 * k * (k - 1), 2.0 * k), 2.0 * k
    x = rare.log_softmax(z) if name == "Dirichlet" else z
    on_matrix = 2.0 * n * c.lambda_used_ / (k * (k - 1))
    return x, np.where(off, on_matrix, 0.0), 2.0 * n * c.mu_used_ / k


def check_scaling(name, setting):
    z, y = rare.rows(*setting)
    c = SCALINGS[name].fit(z, y)
    k = z.shape[1]
    x, on_matrix, on_bias = features_and_ridges(name, c, z)
    on_matrix = on_matrix + RIDGE * len(y) * rare.spread(x) ** 2
    on_bias = np.full(k, on_bias + RIDGE * len(y))
    matrix = np.diag(c.factors_) if name == "vector" else c.matrix_
    free = np.eye(k, dtype=bool) if "vector" in name else np.ones((k, k), bool)
    own = rare.loss_of(matrix, c.offsets_, x, y)
    own += rare.penalty(matrix, c.offsets_, on_matrix, on_bias)
    assert own <= rare.least(x, y, on_matrix, on_bias, free) * (1 + 1e-9)
    # Σp = Σy of each class, but for what the ridge on b takes
    sums = c.predict_proba(z).sum(axis=0) + on_bias * c.offsets_
    assert np.allclose(sums, np.bincount(y), rtol=1e-6, atol=1e-6)


def check_temperature(setting):
    z, y = rare.rows(*setting)
    size = rare.spread(z)

    def objective(u):
        factor = np.exp(u) / size
        ridge = 0.5 * RIDGE * len(y) * (factor * size) ** 2
        return rare.loss_of(factor * np.eye(z.shape[1]), 0.0, z, y) + ridge

    own = np.log(size / cal.Temperature().fit(z, y).temperature_)
    options = {"bounds": (np.log(1e-3), np.log(1e5)), "method": "bounded"}
    best = minimize_scalar(objective, **options, options={"xatol": 1e-10})
    assert objective(own) <= best.fun * (1 + 1e-12)


@several
@pytest.mark.parametrize("setting", FEW, ids=str)
@pytest.mark.full
def test_scalings_end_at_their_optima(name, setting):
    check_scaling(name, setting)


@pytest.mark.parametrize("setting", FEW, ids=str)
def test_a_temperature_ends_at_its_optimum(setting):
    check_temperature(setting)


@pytest.mark.slow
@pytest.mark.parametrize("setting", FULL, ids=str)
def test_all_settings(setting):
    check_temperature(setting)
    for name in SCALINGS:
        check_scaling(name, setting)


def test_what_does_not_converge_raises():
    z, y = rare.rows(4_000, 20, "top")
    w = np.ones(len(y))

    def source():
        return iter([(z, y, w)])

    with pytest.raises(ConvergenceError, match="the temperature must end at its optimum"):
        temperature.fit_temperature(temperature.BlockSums(source), max_passes=2)
    centre = np.column_stack((np.eye(4), np.zeros(4)))
    problem = kernel.SoftmaxProblem(source, np.full((4, 5), 1e-3), centre, 0.0, 4_000.0)
    with pytest.raises(ConvergenceError, match="the fit must end at its optimum"):
        kernel.fit_softmax(problem, centre, max_steps=2)
