"""One line per method: an instance, its slow twin, and the promises it keeps.

A line here buys the method: range, promises under hypothesis, agreement with the twin, clone,
pickle and JSON round trips, the docstring check and the docs check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

import calibrant as cal
from twins import basics as naive
from twins import bls as naive_bls
from twins import near_isotonic as near
from twins import spline as smooth
from twins import venn_abers as venn


@dataclass(frozen=True)
class Case:
    name: str
    calibrator: Any
    twin: Callable[..., Any] | None
    monotone: bool = True  # a higher score never gets a lower probability
    exact: bool = True  # equal to the twin within tol; else the twin is an iterative solver
    tol: float = 1e-9
    stable: bool = True  # rounding cannot flip a choice between equally good binnings
    keeps_rate: bool = False  # Σp is Σy within 1 % on the fitted rows, from 30 events on

    def __str__(self) -> str:
        return self.name


CASES = [
    Case("platt", cal.Platt(), naive.platt, monotone=False, exact=False, keeps_rate=True),
    Case(
        "platt-raw",
        cal.Platt(scale="raw"),
        partial(naive.platt, scale="raw"),
        monotone=False,
        exact=False,
        keeps_rate=True,
    ),
    Case("logistic_correction", cal.LogisticCorrection(), naive.logistic_correction),
    Case("identity", cal.Uncalibrated(), naive.identity),
    Case("rescale", cal.Rescale(), naive.rescale),
    Case("rescale-minmax", cal.Rescale(formula="minmax"), partial(naive.rescale, formula="minmax")),
    Case(
        "rescale-symmetric",
        cal.Rescale(formula="symmetric"),
        partial(naive.rescale, formula="symmetric"),
    ),
    Case("isotonic", cal.Isotonic(), naive.isotonic, keeps_rate=True),
    Case(
        "isotonic-left",
        cal.Isotonic(cut="left"),
        partial(naive.isotonic, cut="left"),
        keeps_rate=True,
    ),
    Case(
        "isotonic-right",
        cal.Isotonic(cut="right"),
        partial(naive.isotonic, cut="right"),
        keeps_rate=True,
    ),
    Case(
        "isotonic-linear",
        cal.Isotonic(interpolation="linear"),
        partial(naive.isotonic, interpolation="linear"),
    ),
    Case(
        "isotonic-centred",
        cal.Isotonic(interpolation="centred"),
        partial(naive.isotonic, interpolation="centred"),
    ),
    Case("isotonic-laplace", cal.Isotonic(smoothing="laplace"), partial(naive.isotonic, pseudo=1)),
    Case(
        "isotonic-centred-jeffreys",
        cal.Isotonic(interpolation="centred", smoothing="jeffreys"),
        partial(naive.isotonic, interpolation="centred", pseudo=0.5),
    ),
    Case("venn_abers", cal.VennAbers(), venn.inductive),
    Case("venn_abers-brier", cal.VennAbers(merge="brier"), partial(venn.inductive, merge="brier")),
    Case("venn_abers-cross", cal.VennAbers(cv=5), None, stable=False),
    Case(
        "venn_abers-cross-brier",
        cal.VennAbers(cv=3, merge="brier"),
        None,
        stable=False,
    ),
    Case("histogram", cal.Histogram(), naive.histogram, monotone=False, keeps_rate=True),
    Case(
        "histogram-3-laplace",
        cal.Histogram(bins=3, smoothing="laplace"),
        partial(naive.histogram, bins=3, pseudo=1),
        monotone=False,
    ),
    Case(
        "histogram-width",
        cal.Histogram(binning="width"),
        partial(naive.histogram, binning="width"),
        monotone=False,
        keeps_rate=True,
    ),
    Case("histogram-auto", cal.Histogram(bins="auto"), None, monotone=False, keeps_rate=True),
    Case("beta", cal.Beta(), naive.beta, exact=False, keeps_rate=True),
    Case(
        "beta-am",
        cal.Beta(parameters="am"),
        partial(naive.beta, parameters="am"),
        exact=False,
        keeps_rate=True,
    ),
    Case("beta-ab", cal.Beta(parameters="ab"), partial(naive.beta, parameters="ab"), exact=False),
    Case("quadratic", cal.Quadratic(), smooth.quadratic, monotone=False, tol=1e-7, keeps_rate=True),
    Case(
        "quadratic-shrunk",
        cal.Quadratic(shrinkage=2.0),
        partial(smooth.quadratic, shrink=2.0),
        monotone=False,
        tol=1e-7,
    ),
    Case("quadratic-monotone", cal.Quadratic(monotone=True, shrinkage="identity"), None),
    Case("spline", cal.Spline(), None, monotone=False, tol=1.1e-5, keeps_rate=True),
    Case(
        "spline-linear",
        cal.Spline(penalty=1.0, tails="linear"),
        partial(smooth.spline, lam=1.0),
        monotone=False,
        tol=1.1e-5,
        keeps_rate=True,
    ),
    Case(
        "spline-flat",
        cal.Spline(penalty=0.01),
        partial(smooth.spline, lam=0.01, tails="flat"),
        monotone=False,
        tol=1.1e-5,
        keeps_rate=True,
    ),
    Case(
        "spline-cv",
        cal.Spline(penalty="cv", knots=6),
        None,
        monotone=False,
        stable=False,
        keeps_rate=True,
    ),
    Case(
        "spline-monotone",
        cal.Spline(monotone=True, tails="linear"),
        None,
        tol=1.1e-5,
        keeps_rate=True,
    ),
    Case("bls", cal.BLS(), None, tol=2.6e-4, keeps_rate=True),
    Case(
        "bls-free",
        cal.BLS(monotone=False),
        naive_bls.bls,
        monotone=False,
        tol=2.6e-4,
        keeps_rate=True,
    ),
    Case(
        "bls-band",
        cal.BLS(levels=(0.5, 0.9), power=1.0, moderation=1.0),
        None,
        tol=2.6e-4,
        keeps_rate=True,
    ),
    Case("temperature", cal.Temperature(), naive.temperature, exact=False),
    Case("sbb", cal.SBB(lambda_=3), partial(naive.sbb, lam=3), monotone=False, stable=False),
    Case("sbb-empirical", cal.SBB(lambda_="empirical"), None, monotone=False, stable=False),
    Case("sbb-average", cal.SBB(), None, monotone=False, stable=False),
    Case("abb", cal.ABB(lambda_=3), partial(naive.abb, lam=3), monotone=False, tol=1.1e-6),
    Case("abb-average", cal.ABB(), None, monotone=False, tol=1.1e-6),
    Case(
        "abb-band",
        cal.ABB(lambda_="empirical", levels=(0.5, 0.9)),
        None,
        monotone=False,
        tol=1.1e-6,
    ),
    Case("abb-text-cached", cal.ABB(lambda_=5, variant="text", cache=50), None, monotone=False),
    Case("bbq", cal.BBQ(), None, monotone=False, stable=False),
    Case("bbq-all", cal.BBQ(models="all"), naive.bbq, monotone=False),
    Case(
        "bbq-best",
        cal.BBQ(models="best"),
        partial(naive.bbq, models="best"),
        monotone=False,
        stable=False,
    ),
    Case(
        "enir", cal.ENIR(), partial(near.enir, pseudo=0.5, interpolation="linear"), monotone=False
    ),
    Case("enir-paper", cal.ENIR(variant="paper"), near.enir, monotone=False),
    Case("enir-authors", cal.ENIR(variant="authors"), near.authors, monotone=False, stable=False),
    Case(
        "enir-best-aic",
        cal.ENIR(models="best", criterion="aic", interpolation="step", smoothing="laplace"),
        partial(near.enir, pseudo=1, models="best", name="aic"),
        monotone=False,
        stable=False,
    ),
    Case(
        "enir-elbow-linear-aicc",
        cal.ENIR(models="elbow", criterion="aicc", interpolation="linear", smoothing="jeffreys"),
        partial(near.enir, pseudo=0.5, models="elbow", name="aicc", interpolation="linear"),
        monotone=False,
        stable=False,
    ),
    Case(
        "enir-penalty",
        cal.ENIR(variant="paper", penalty="authors"),
        partial(near.enir, penalty="authors"),
        monotone=False,
    ),
    Case("elite", cal.ELiTE(), None, monotone=False, stable=False),
    Case(
        "elite-near",
        cal.ELiTE(falls="priced", n_lambdas=12),
        None,
        monotone=False,
        stable=False,
    ),
    Case("elite-strict", cal.ELiTE(falls="forbidden", n_lambdas=12), None, stable=False),
    Case(
        "elite-paper",
        cal.ELiTE(scale="raw", clip="paper", tails="linear", models="elbow", n_lambdas=12),
        None,
        monotone=False,
        stable=False,
    ),
    Case(
        "elite-steps",
        cal.ELiTE(degree=0, falls="priced", n_lambdas=12),
        None,
        monotone=False,
        stable=False,
    ),
    Case("elite-curves", cal.ELiTE(degree=2, n_lambdas=12), None, monotone=False, stable=False),
    Case("auto", cal.AutoCalibrator(cv=2), None, stable=False),
]


def each(cases: list[Case] = CASES) -> pytest.MarkDecorator:
    """A test for each case. Variants of a method, such as "platt-raw", wait for the full suite."""
    full = pytest.mark.full
    found = [pytest.param(c, marks=full if "-" in c.name else (), id=c.name) for c in cases]
    return pytest.mark.parametrize("case", found)
