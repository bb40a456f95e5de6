"""The base rate of unlabelled rows, from their calibrated probabilities."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import ndtri

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import read_probabilities, read_weight
from calibrant.errors import CalibrationWarning, InputError, ParameterError, caller_level
from calibrant.monitor.prior_shifts import ProbabilityKind, check_rates
from calibrant.monitor.probability_input import effective_size, read_distributions
from calibrant.monitor.rate_likelihood import (
    BinaryLikelihood,
    ClassLikelihood,
    ProfileLikelihood,
    interval,
    logit_of,
    most_likely,
    rate_at,
)
from calibrant.monitor.rate_values import RateEstimate, RateEstimates


def estimate_rate(
    p: Any, *, train_rate: float, sample_weight: Any = None, level: float = 0.95
) -> RateEstimate:
    """The rate of positives among unlabelled rows, by maximum likelihood.

    It is the rate π' that maximises Σ w·ln(π'·p/π + (1 − π')·(1 − p)/(1 − π)), if p is calibrated
    at the rate π. It supposes that only the rates differ: within each class, rows must be alike in
    training and here. If instead other rows come (more old customers, say) and p stays right, take
    the mean of p: this estimate would then be wrong.

    Parameters
    ----------
    p : array-like of probabilities, or ScoreTable
        Calibrated probabilities of the positive class, of new rows. The scores of a table must be
        such probabilities; its weights count, its labels do not. See `score_table` for frames and
        files of any size.
    train_rate : float
        π: the rate of positives at which p is calibrated.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0. The interval counts the rows as (Σw)² / Σw².
    level : float, default=0.95
        The confidence of the interval. It holds the rates whose likelihood is not too far below
        the largest.

    Returns
    -------
    RateEstimate
        With ``rate``, ``low`` and ``high``; `adjust_prior` takes it as ``target_rate``.

    Warns
    -----
    CalibrationWarning
        Where all p are equal, since they hardly tell anything.

    Notes
    -----
    The likelihood is concave, and its optimum the fixed point of the EM algorithm of Saerens et al.
    Newton's method finds it in about six passes, each O(n), where EM needs tens to thousands. The
    rate is 0 or 1 if the likelihood is largest there. The interval does not allow for the error of
    p itself: fit the calibrator to many more rows than are needed here.

    References
    ----------
    M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a
    priori probabilities", Neural Computation 14, 2002, https://doi.org/10.1162/089976602753284446.
    A. Alexandari, A. Kundaje and A. Shrikumar, "Maximum likelihood with bias-corrected calibration
    is hard-to-beat at label shift adaptation", ICML 2020.

    Examples
    --------
    >>> p = [0.1] * 80 + [0.9] * 20  # in training, half were positive
    >>> print(estimate_rate(p, train_rate=0.5))
    rate 0.125 (0.03719 to 0.2318 at 95 %) among rows of weight 100; 0.5 in training
    """
    train = float(check_rates(train_rate, "train_rate", ProbabilityKind()))
    z = _deviate(level)
    clean, weight, size = _rows(p, sample_weight)
    if clean.min() == clean.max():
        _warn_equal(f"{clean[0]:g}")
    total = float(weight.sum())
    two = BinaryLikelihood.of(clean, weight * (size / total), train)
    if (two.r == two.q).all():
        return RateEstimate(train, 0.0, 1.0, train, level, total, size, 0)
    s, iterations = most_likely(two, logit_of(float(weight @ clean) / total))
    rate = rate_at(s)
    low, high = interval(two, s, two.at(s)[1:], z * z / 2)
    ends = min(low, rate), max(high, rate)
    return RateEstimate(rate, *ends, train, level, total, size, iterations)


def estimate_rates(
    p: Any, *, train_rate: Any, sample_weight: Any = None, level: float | None = 0.95
) -> RateEstimates:
    """The rate of each class among unlabelled rows, by maximum likelihood.

    They are the rates π' that maximise Σ w·ln Σ_c π'_c·p_c/π_c; all else is as in `estimate_rate`.

    Parameters
    ----------
    p : array-like of shape (n, k)
        Calibrated distributions over the classes, of new rows.
    train_rate : array-like of shape (k,)
        π: the rates of the classes at which p is calibrated, in the order of the columns.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0.
    level : float or None, default=0.95
        The confidence of the interval of each class. None for no intervals.

    Returns
    -------
    RateEstimates

    Warns
    -----
    CalibrationWarning
        Where all rows are equal.

    Notes
    -----
    A round of Newton's method costs O(n·k²), and about ten are needed. The interval of a class
    holds the rates whose likelihood, with the best rates of all other classes, is not too far below
    the largest. All intervals together cost about 10·k times as much as the rates.

    Examples
    --------
    >>> p = [[0.8, 0.1, 0.1]] * 60 + [[0.1, 0.8, 0.1]] * 30 + [[0.1, 0.1, 0.8]] * 30
    >>> estimate_rates(p, train_rate=[1 / 3, 1 / 3, 1 / 3]).rate.round(4).tolist()
    [0.5714, 0.2143, 0.2143]
    """
    clean = read_distributions(p)
    n, k = clean.shape
    train = check_rates(train_rate, "train_rate", ProbabilityKind(k, distribution=True))
    z = None if level is None else _deviate(level)
    weight = _weights(sample_weight, n)
    if (clean == clean[0]).all():
        _warn_equal(str(clean[0].tolist()[:6]))
    total, size = float(weight.sum()), _effective(weight)
    present = weight > 0.0
    classes = ClassLikelihood(clean[present] / train, weight[present] / total)
    rates, rounds = classes.best(train / train.sum())
    low = high = None
    if z is not None:
        ends = np.array([_class_interval(classes, c, size, rates, z) for c in range(k)])
        low, high = np.minimum(ends[:, 0], rates), np.maximum(ends[:, 1], rates)
    return RateEstimates(rates, low, high, train, level, total, size, rounds)


def _class_interval(
    classes: ClassLikelihood, column: int, size: float, rates: Array, z: float
) -> tuple[float, float]:
    s = logit_of(float(rates[column]))
    profile = ProfileLikelihood(classes, column, size, rates)
    return interval(profile, s, profile.curve(s), z * z / 2)


# --- reading --------------------------------------------------------------------------------------


def _rows(p: Any, sample_weight: Any) -> tuple[Array, Array, float]:
    """Probabilities, their weights, and how many rows of equal weight they are worth."""
    if not isinstance(p, ScoreTable):
        clean = read_probabilities(p)
        weight = _weights(sample_weight, len(clean))
        present = weight > 0.0
        return clean[present], weight[present], _effective(weight)
    if sample_weight is not None:
        raise InputError("sample_weight must not be given with a table, which has its own weights.")
    if not p:
        raise InputError("the table must hold at least one probability, but it is empty.")
    size = effective_size(p)
    return read_probabilities(p.scores), p.weight, size


def _weights(sample_weight: Any, n: int) -> Array:
    weight = read_weight(sample_weight, n)
    return np.ones(n) if weight is None else weight


def _effective(weight: Array) -> float:
    share = weight / weight.max()  # squares of tiny weights would vanish
    return float(share.sum() ** 2 / (share @ share))


def _deviate(level: float) -> float:
    """The normal deviate z with the probability ``level`` between −z and z."""
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0.0 < level < 1.0:
        raise ParameterError(f"level must be a number between 0 and 1, but {level!r} came.")
    return float(ndtri((1.0 + level) / 2))


def _warn_equal(value: str) -> None:
    warnings.warn(
        f"all p are equal ({value}), so that they hardly tell how the rate has changed. Take rows "
        "whose probabilities differ.",
        CalibrationWarning,
        stacklevel=caller_level(),
    )
