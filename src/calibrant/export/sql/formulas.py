"""Sigmoids and logits as SQL that no engine can refuse: nothing overflows, no ln of zero."""

from __future__ import annotations

import math
import re

import numpy as np
from numpy.typing import NDArray

from calibrant.export.sql.axis import Axis
from calibrant.export.sql.dialects import Dialect
from calibrant.export.sql.layout import case, clamp, inside, linear
from calibrant.losses import logit, sigmoid
from calibrant.maps import Logistic
from calibrant.maps.logistic import FEATURES
from calibrant.plan.borders import LARGEST_DOUBLE, borders, number

__all__ = [
    "constant",
    "factor",
    "factor_of",
    "feature",
    "logit_of",
    "regimes",
    "sigmoid_of",
    "total_at",
    "total_of",
]

Array = NDArray[np.float64]

#: beyond ± this a sigmoid is 0 (to 1e-260) or 1, and further out some engines refuse its exp, or
#: its product with a weight
STEEPEST = 600.0
#: where a round number is as good
ROUND = (580.0, 600.0)
#: and how far such a number may be, as a factor
NEARBY = np.array([1.0, 0.97, 0.94, 1.05, 1.1, 10.0])
#: scores that count as 0 in products, where those must not underflow
TINY = 1e-280
#: a probability that counts as 0
NOTHING = 1e-250


def sigmoid_of(f: str, dialect: Dialect, bounded: bool) -> str:
    """σ(f) = 1 / (1 + exp(−f)) of SQL; where f is not bounded, it is moved to where exp is."""
    one = dialect.number(1.0)
    f = f if bounded or dialect.infinite else clamp(f, dialect, -STEEPEST, STEEPEST)
    if re.fullmatch(r"[\w.:]+", f):
        return f"{one} / ({one} + EXP(-{f}))"
    return inside(f"{one} / ({one} + EXP(-(", f, ")))")


def logit_of(axis: Axis, dialect: Dialect) -> str:
    """ln(p / (1 − p)), with the ends of `losses.logit` where p can be 0 or 1."""
    ends = logit(np.array([0.0, 1.0])).tolist()
    low, high = axis.range
    number, p = dialect.number, axis.value
    branches = [(f"{p} <= {number(0.0)}", number(ends[0]))] if low <= 0.0 else []
    branches += [(f"{p} >= {number(1.0)}", number(ends[1]))] if high >= 1.0 else []
    z = feature("z", p, dialect)
    return case(branches, z) if branches else z


def factor(value: str, dialect: Dialect) -> str:
    """A value as a factor: where a product must not underflow, tiny ones count as 0."""
    if not dialect.strict:
        return value
    number = dialect.number
    return case([(f"ABS({value}) < {number(TINY)}", number(0.0))], value)


def factor_of(axis: Axis, dialect: Dialect) -> str:
    """The value of an axis as a factor: only scores themselves are that tiny."""
    tiny = axis.function is None and axis.low < TINY and axis.high > -TINY
    return factor(axis.value, dialect) if tiny else axis.value


def feature(name: str, p: str, dialect: Dialect) -> str:
    """φ of `maps.logistic` as SQL, for 0 < p < 1 (and any p for "x")."""
    ln, one = dialect.ln, dialect.number(1.0)
    z = f"{ln}({p} / ({one} - {p}))"
    # ln(1 − p) and not log1p: what is lost is below 1e-16
    return {
        "x": p,
        "z": z,
        "z2": f"({z} * {z})",
        "ln_p": f"{ln}({p})",
        "neg_ln_1mp": f"{ln}({one} - {p})",
    }[name]


def total_of(map_: Logistic, axis: Axis, dialect: Dialect) -> str:
    """intercept + Σ coefficient · φ(p) as SQL, for 0 < p < 1 if any φ is a logarithm."""
    terms = []
    for name, c in map_.terms:
        # no product with a larger coefficient is rounded to zero
        tiny = name == "x" and abs(c) <= 0.5
        p = factor_of(axis, dialect) if tiny else axis.value
        if c:
            terms.append((-c if name == "neg_ln_1mp" else c, feature(name, p, dialect)))
    return linear(map_.intercept, terms, dialect)


# --- where the formula holds ----------------------------------------------------------------------


def regimes(map_: Logistic, dialect: Dialect) -> tuple[float, float, bool]:
    """The values between which the formula is written, and whether it is bounded there.

    At both ends and beyond the map is constant: where the score is cut, or, unless the dialect
    knows infinity, where the sigmoid has reached 0 or 1.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> regimes(Logistic(0.0, (("x", 2.0),)), dialect_of("bigquery"))
    (-300.0, 300.0, True)
    """
    names = {name for name, c in map_.terms if c}
    low, high = map_.clip or ((-math.inf, math.inf) if names <= {"x"} else (0.0, 1.0))
    if dialect.infinite or not names:
        return low, high, not names
    if map_.trend != 0:
        return (*_where_steep(map_, low, high), True)
    if names <= {"z", "z2"}:
        return _where_curved(map_, low, high)
    return low, high, False


def _where_steep(map_: Logistic, low: float, high: float) -> tuple[float, float]:
    """The ends of the values for which a formula that rises or falls is between ± STEEPEST."""

    def total(s: Array) -> Array:
        return total_at(map_, np.clip(s, max(low, -LARGEST_DOUBLE), min(high, LARGEST_DOUBLE)))

    steep = np.array([-STEEPEST, STEEPEST])
    first, last = sorted(borders(steep, total, falling=map_.trend < 0).tolist())
    sizes = np.abs(total(np.array([low, high])))
    if sizes[0] > STEEPEST:
        low = _rounded(map_, float(number(np.array([first]))[0]))
    if sizes[1] > STEEPEST:
        high = _rounded(map_, float(number(np.array([last - 1]))[0]))
    return low, high


def _where_curved(map_: Logistic, low: float, high: float) -> tuple[float, float, bool]:
    """The same for a parabola of the logit: it is larger only beyond the first and the last place
    where it is ± ROUND[0]."""
    c = dict(map_.terms)
    a, b = c.get("z2", 0.0), c.get("z", 0.0)
    ends = logit(np.array([low, high]))
    levels = (map_.intercept - ROUND[0], map_.intercept + ROUND[0])
    places = np.sort([z for level in levels for z in _roots(a, b, level)])
    cuts = places[(places > ends[0]) & (places < ends[1])]
    steep = np.abs(total_at(map_, np.array([low, high]))) > STEEPEST
    if len(cuts):
        low, high = np.where(steep, sigmoid(cuts[[0, -1]]), (low, high)).tolist()
    with np.errstate(all="ignore"):
        top = sigmoid(np.clip(np.array([-b]) / (2.0 * a), *ends))
    sizes = np.abs(total_at(map_, np.array([low, high, *top])))
    return low, high, bool((sizes <= STEEPEST).all())


def _roots(a: float, b: float, c: float) -> list[float]:
    """Where a·z² + b·z + c = 0, without cancellation."""
    with np.errstate(all="ignore"):
        q = -0.5 * (b + np.copysign(np.sqrt(np.float64(b) * b - 4.0 * a * c), b))
        found = (float(q / a), float(c / q))
    return [z for z in found if math.isfinite(z)]


def total_at(map_: Logistic, s: Array) -> Array:
    """intercept + Σ coefficient · φ, in NumPy."""
    total = np.full(s.shape, map_.intercept)
    with np.errstate(over="ignore"):
        for name, coefficient in map_.terms:
            if coefficient:
                total += coefficient * FEATURES[name](s)
    return total


def _rounded(map_: Logistic, end: float) -> float:
    """An end where the sigmoid is 0 or 1, with few digits if some near number is as good."""
    for digits in (1, 2, 3):
        near = np.array([float(f"{x:.{digits}e}") for x in end * NEARBY])
        size = np.abs(total_at(map_, near))
        good = (size >= ROUND[0]) & (size <= ROUND[1])
        if good.any():
            return float(near[np.argmax(good)])
    return end


def constant(map_: Logistic, value: float) -> Array:
    """The probability at an end; tiny ones are zero, so that they read as what they are."""
    p = map_(np.array([value]))
    return np.where(p < NOTHING, 0.0, p)
