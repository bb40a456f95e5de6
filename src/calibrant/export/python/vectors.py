"""Maps of a row of scores as statements of a function."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.export.python.scores import function_of
from calibrant.export.python.text import Function, Text, number
from calibrant.maps import Coded, Columns, Softmax, VectorMap, VectorMixture
from calibrant.maps.combiners import LIGHTEST, singled_out
from calibrant.maps.softmax import LARGEST_LOGIT

__all__ = ["write_row"]

Array = NDArray[np.float64]

#: the helper of each combiner for one class against all others, and for any other code
COMBINERS = {
    "normalize": ("_normalized", "_normalized"),
    "least_squares": ("_projected", "_least_squares"),
    "coupling": ("_balanced", "_coupling"),
    "pairwise": ("_projected", "_least_squares"),
}


@functools.singledispatch
def write_row(map_: VectorMap, body: Function) -> str:
    """The map of the variable ``scores`` as an expression of a list."""
    raise InputError(
        f"a map of kind {map_.kind!r} cannot be written as Python. Save it with calibrant.save and "
        "apply it with calibrant.load."
    )


@write_row.register
def _(map_: Softmax, body: Function) -> str:
    x = SEEN[map_.input](map_, body)
    if map_.inner is not None:
        x = body.keep("x", f"_log_softmax([{number(map_.inner)} * value for value in {x}])")
    bias = body.text.numbers("BIAS", map_.bias, "what is added to each class")
    eta = SCALED[map_.matrix.ndim](map_, x, bias, body)
    return f"[math.exp(value) for value in _log_softmax({eta})]"


def _of_logits(map_: Softmax, body: Function) -> str:
    return body.keep("x", f"[{_between('s', -LARGEST_LOGIT, LARGEST_LOGIT)} for s in scores]")


def _of_probabilities(map_: Softmax, body: Function) -> str:
    return body.keep("x", f"[math.log({_between('s', map_.floor, 1.0)}) for s in scores]")


#: the logits of a row of scores, by `Softmax.input`
SEEN = {"logit": _of_logits, "probability": _of_probabilities}


def _one_factor(map_: Softmax, x: str, bias: str, body: Function) -> str:
    factor = number(float(map_.matrix))
    return body.keep("eta", f"[{factor} * value + b for value, b in zip({x}, {bias})]")


def _factors(map_: Softmax, x: str, bias: str, body: Function) -> str:
    own = body.text.numbers("FACTORS", map_.matrix, "the factor of each class")
    return body.keep("eta", f"[w * value + b for w, value, b in zip({own}, {x}, {bias})]")


def _matrix(map_: Softmax, x: str, bias: str, body: Function) -> str:
    rows = [f"({', '.join(map(repr, row))})" for row in map_.matrix.tolist()]
    matrix = body.text.table("MATRIX", rows, "how much of each logit goes into each class")
    row = f"sum(w * value for w, value in zip(row, {x})) + b"
    return body.keep("eta", f"[{row} for row, b in zip({matrix}, {bias})]")


#: W·x + b, by the dimension of W
SCALED: dict[int, Callable[[Softmax, str, str, Function], str]] = {
    0: _one_factor,
    1: _factors,
    2: _matrix,
}


@write_row.register
def _(map_: Columns, body: Function) -> str:
    members = [(j, function_of(member, body.text)) for j, member in enumerate(map_.maps)]
    return _each(members, body.text)


@write_row.register
def _(map_: Coded, body: Function) -> str:
    code, order, weights, known = _used(map_)
    single, several = COMBINERS[map_.combine]
    members = [(int(j), function_of(map_.maps[j], body.text)) for j in order]
    r = body.keep("r", _each(members, body.text))
    if map_.combine == "normalize":
        p = f"{single}({r})"
    elif singled_out(code) is not None:
        own = body.text.numbers("WEIGHTS", weights, "how much each class counts")
        p = f"{single}({r}, {own})"
    else:
        p = f"{several}({r}, {_columns(code, weights, body.text)}, {len(code)})"
    if known.all():
        return p
    found = body.keep("p", p)
    places = [str(int(known[:c].sum())) if own else "None" for c, own in enumerate(known)]
    at = body.text.table("PLACES", places, "where each class is; some are never probable")
    return f"[0.0 if i is None else {found}[i] for i in {at}]"


def _used(map_: Coded) -> tuple[Array, NDArray[np.intp], Array, NDArray[np.bool_]]:
    """The code without weightless columns, its columns in an order (by class, where each column
    singles out one), their weights, and which classes are left: as `combine_rows`."""
    code, n = map_.code, np.ones(map_.n_columns)
    if map_.weights is not None and map_.combine != "normalize":
        n = map_.weights / map_.weights.max()
    used = np.flatnonzero(n > LIGHTEST)
    known = (code[:, used] != 0).any(axis=1)
    code = code[known][:, used]
    order = singled_out(code)
    if order is not None:
        code, used = code[:, order], used[order]
    return code, used, n[used], known


def _columns(code: Array, weights: Array, text: Text) -> str:
    """A table of who is positive and who negative in each column, and its weight."""
    items = []
    for column, weight in zip(code.T, weights, strict=True):
        plus, minus = (tuple(np.flatnonzero(column == sign).tolist()) for sign in (1.0, -1.0))
        items.append(f"({plus}, {minus}, {number(weight)})")
    return text.table("COLUMNS", items, "of each column the positive and negative classes, weight")


@write_row.register
def _(map_: VectorMixture, body: Function) -> str:
    x = FEATURES[map_.input](map_, body)
    members = []
    for weight, member in zip(map_.weights, map_.members, strict=True):
        if weight > 0.0:
            members.append(f"({number(weight)}, {_row_function_of(member, body.text)})")
    held = body.text.registry("MEMBERS", "(", members, ")", "the weight of each member, and itself")
    rows = body.keep("rows", f"[(weight, member({x})) for weight, member in {held}]")
    total = "sum(weight * row[j] for weight, row in rows)".replace("rows", rows)
    return f"[{total} for j in range({map_.n_columns})]"


def _as_they_are(map_: VectorMixture, body: Function) -> str:
    return "scores"


def _softmax(map_: VectorMixture, body: Function) -> str:
    cut = _between("s", -LARGEST_LOGIT, LARGEST_LOGIT)
    z = body.keep("z", f"[{number(map_.factor)} * {cut} for s in scores]")
    return _floored(map_, body.keep("x", f"[math.exp(value) for value in _log_softmax({z})]"), body)


def _powers(map_: VectorMixture, body: Function) -> str:
    x = "scores"
    if map_.factor != 1.0:
        kept = body.keep("x", "[max(s, 0.0) for s in scores]")
        peak = body.keep("peak", f"max({kept}) or 1.0")
        x = body.keep(
            "x", f"_shares([(value / {peak}) ** {number(map_.factor)} for value in {kept}])"
        )
    return _floored(map_, x, body)


def _floored(map_: VectorMixture, x: str, body: Function) -> str:
    return body.keep("x", f"_shares([{_between('value', map_.floor, 1.0)} for value in {x}])")


#: what the members see of a row, by `VectorMixture.input`
FEATURES: dict[str, Callable[[VectorMixture, Function], str]] = {
    "score": _as_they_are,
    "logit": _softmax,
    "probability": _powers,
}


def _row_function_of(map_: VectorMap, text: Text) -> str:
    """The name of a private function of a row that evaluates the map."""
    body = Function(text, ("scores: list[float]",), "list[float]")
    body.add(f"return {write_row(map_, body)}")
    return text.function(body)


def _each(members: list[tuple[int, str]], text: Text) -> str:
    """The values of functions at their columns."""
    items = [f"({column}, {name})" for column, name in members]
    held = text.registry("MEMBERS", "(", items, ")", "a column of the row, and its map")
    return f"[member(scores[column]) for column, member in {held}]"


def _between(name: str, least: float, most: float) -> str:
    return f"min(max({name}, {number(least)}), {number(most)})"
