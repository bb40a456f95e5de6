"""A map as an SQL expression, where that is short enough to read."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from calibrant.errors import ParameterError
from calibrant.losses import LARGEST
from calibrant.maps import Chain, Identity, Interval, Logistic, Map, Mixture, Piecewise

__all__ = ["expression", "identifier", "select"]

#: nobody copies a query of more characters than this
LONGEST = 60_000
#: the smallest probability that every dialect can write; smaller ones count as this
LEAST = 1e-300
#: the column that holds the logit of the score
LOGIT = "score_logit"


def select(fitted: Map, column: str) -> str | None:
    """A query that adds the probability to a table, or None where the map is too long for one.

    Standard SQL with ``exp``, ``ln``, ``least`` and ``greatest``, as PostgreSQL, DuckDB, Snowflake,
    BigQuery, Spark and others have them.

    >>> print(select(Logistic(0.5, (("x", 2.0),)), "score"))
    SELECT *,
      1.0 / (1.0 + exp(greatest(least(-(0.5 + 2.0 * "score"), 700.0), -700.0))) AS probability
    FROM scores
    """
    try:
        pieces = _of_logit(fitted)
        if pieces is None:
            text, rows = expression(fitted, identifier(column)), "scores"
        else:  # the logit is needed often: a column of its own
            inner = Piecewise(pieces.x, pieces.left, pieces.right, output=pieces.output)
            text = expression(inner, LOGIT)
            rows = f"(SELECT *, {_logit(identifier(column))} AS {LOGIT} FROM scores) AS read"
    except ParameterError:
        return None
    return f"SELECT *,\n  {text} AS probability\nFROM {rows}" if len(text) <= LONGEST else None


def _of_logit(fitted: Map) -> Piecewise | None:
    """The piecewise map of the score's logit that a map is, if it is one."""
    if isinstance(fitted, Interval):
        return _of_logit(fitted.point)
    if isinstance(fitted, Mixture):
        fitted = fitted.collapse()
    return fitted if isinstance(fitted, Piecewise) and fitted.input == "logit" else None


def identifier(name: str) -> str:
    """A name in double quotes, as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


@functools.singledispatch
def expression(fitted: Map, x: str) -> str:
    """The map of the SQL expression ``x``; agrees with the map to about 1e-12."""
    raise ParameterError(f"a {fitted.kind} map cannot be written as one SQL expression.")


@expression.register
def _(fitted: Identity, x: str) -> str:
    return f"greatest(least({x}, 1.0), 0.0)"


@expression.register
def _(fitted: Interval, x: str) -> str:
    return expression(fitted.point, x)


@expression.register
def _(fitted: Mixture, x: str) -> str:
    return expression(fitted.collapse(), x)


@expression.register
def _(fitted: Chain, x: str) -> str:
    for step in fitted.steps:
        x = expression(step, f"({x})" if x[0] != '"' else x)
        if len(x) > LONGEST:
            raise ParameterError("the chain is too long for one SQL expression.")
    return x


@expression.register
def _(fitted: Logistic, x: str) -> str:
    if fitted.clip is not None:
        x = f"greatest(least({x}, {fitted.clip[1]!r}), {fitted.clip[0]!r})"
    sums = [repr(fitted.intercept)]
    sums += [f"{c!r} * {FEATURES[name](x)}" for name, c in fitted.terms if c]
    return _sigmoid(" + ".join(sums))


@expression.register
def _(fitted: Piecewise, x: str) -> str:
    if len(fitted.x) > LONGEST // 30:
        raise ParameterError("the map has too many knots for one SQL expression.")
    s = _logit(x) if fitted.input == "logit" else x
    left, right, at = fitted.left.tolist(), fitted.right.tolist(), fitted.x.tolist()
    leaves = [repr(left[0])]
    for i in range(len(at) - 1):
        leaves.append(_piece(s, at[i], at[i + 1], right[i], left[i + 1]))
    leaves.append(repr(right[-1]))
    value = _choice(s, at, leaves, 0, len(at))
    return _sigmoid(value) if fitted.output == "logit" else value


def _piece(s: str, a: float, b: float, start: float, end: float) -> str:
    """The value between two knots."""
    if start == end or not math.isfinite(b - a):
        return repr(start)
    return f"{start!r} + ({s} - {a!r}) * {(end - start) / (b - a)!r}"


def _choice(s: str, cuts: list[float], leaves: list[str], low: int, high: int) -> str:
    """A balanced tree of CASE: as many comparisons as the logarithm of the number of pieces."""
    if low == high:
        return leaves[low]
    middle = (low + high) // 2
    below = _choice(s, cuts, leaves, low, middle)
    above = _choice(s, cuts, leaves, middle + 1, high)
    return (
        below
        if below == above
        else (f"CASE WHEN {s} < {cuts[middle]!r} THEN {below} ELSE {above} END")
    )


def _inside(x: str) -> str:
    return f"greatest(least({x}, {LARGEST!r}), {LEAST!r})"


def _logit(x: str) -> str:
    return f"(ln({_inside(x)}) - ln(1.0 - {_inside(x)}))"


def _sigmoid(value: str) -> str:
    """Beyond ±700 some dialects would refuse to take exp."""
    return f"1.0 / (1.0 + exp(greatest(least(-({value}), 700.0), -700.0)))"


#: the terms of a logistic map
FEATURES: dict[str, Callable[[str], str]] = {
    "x": lambda x: x,
    "z": _logit,
    "z2": lambda x: f"{_logit(x)} * {_logit(x)}",
    "ln_p": lambda x: f"ln({_inside(x)})",
    "neg_ln_1mp": lambda x: f"-ln(1.0 - {_inside(x)})",
}
