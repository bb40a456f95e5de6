"""Checks that the kinds of maps share: numbers, words, pairs and maps, refused with a reason.

A kind declares how its fields are read: ``x: Array = field(metadata=numbers("piecewise x"))``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.data.json_facts import shown
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.maps.base import Map

#: the key of a field's metadata under which the function is that reads its values
READ = "read"
#: scores that are evaluated at a time
BLOCK = 1 << 16


def read_by(function: Callable[[Any], Any]) -> dict[str, Any]:
    """The metadata of a field that a function reads; a default of None is not read."""
    return {READ: function}


def numbers(where: str, ndim: int | tuple[int, ...] = 1) -> dict[str, Any]:
    """The metadata of a field that holds an array of finite numbers."""
    return read_by(partial(float_array, where=where, ndim=ndim))


def number(where: str, largest: float = math.inf) -> dict[str, Any]:
    """The metadata of a field that holds a finite number."""
    return read_by(partial(finite_float, where=where, largest=largest))


def word(where: str, *allowed: str) -> dict[str, Any]:
    """The metadata of a field that holds a word from a short list."""
    return read_by(partial(one_of, allowed=allowed, where=where))


def map_tuple(where: str) -> dict[str, Any]:
    """The metadata of a field that holds a tuple of maps of one score."""
    return read_by(partial(maps_of_one_score, where=where))


def one_map(where: str) -> dict[str, Any]:
    """The metadata of a field that holds a map of one score."""
    return read_by(lambda value: maps_of_one_score((value,), where)[0])


def float_array(values: Any, where: str, ndim: int | tuple[int, ...] = 1) -> Array:
    """Finite numbers as float64 (booleans and strings refused), of the given dimension."""
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    try:
        array = np.asarray(values)
    except ValueError as wrong:
        raise InputError(
            f"{where} must be an array of numbers, but lists of different lengths came."
        ) from wrong
    if array.dtype.kind == "O" and not any(map(_no_number, array.flat)):
        array = _doubles(array, where)  # integers beyond 64 bits
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(f"{where} must be numbers, but {_odd(array)} came.")
    array = array.astype(np.float64, copy=False)
    if array.ndim not in allowed:
        dimensions = " or ".join(map(str, allowed))
        raise InputError(f"{where} must have {dimensions} dimension(s), but has {array.ndim}.")
    return all_finite(array, where)


def all_finite(array: Array, where: str) -> Array:
    """The array, if all of its numbers are finite."""
    fine = np.isfinite(array)
    if not fine.all():
        first = int(np.argmin(fine))
        raise InputError(f"{where} must be finite, but number {first} is {array.flat[first]}.")
    return array


def _odd(array: NDArray[Any]) -> str:
    """What an array holds instead of numbers."""
    if array.dtype.kind != "O":
        return str(array.dtype)
    return shown(next(filter(_no_number, array.flat)))


def _no_number(value: Any) -> bool:
    return isinstance(value, bool) or not isinstance(value, (int, float))


def _doubles(array: NDArray[Any], where: str) -> Array:
    """Python's integers and floats as doubles."""
    try:
        return array.astype(np.float64)
    except OverflowError as wrong:
        raise InputError(
            f"{where} must be finite, but a number beyond all doubles came."
        ) from wrong


def finite_float(value: Any, where: str, largest: float = math.inf) -> float:
    """A finite Python float."""
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float, np.number)):
        raise InputError(f"{where} must be a number, but {shown(value)} came.")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        number = math.inf
    if not math.isfinite(number) or abs(number) > largest:
        bound = "" if largest == math.inf else f" and at most {largest:g}"
        raise InputError(f"{where} must be finite{bound}, but {shown(value)} came.")
    return number


def one_of(value: Any, allowed: tuple[str, ...], where: str) -> str:
    """A word from a short list."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{where} must be one of {allowed}, but {shown(value)} came.")
    return value


def pair(values: Any, where: str) -> tuple[Any, Any]:
    """The two values of a list, tuple or array."""
    if not isinstance(values, (tuple, list, np.ndarray)) or len(values) != 2:
        came = values.tolist() if isinstance(values, np.ndarray) else values
        raise InputError(f"{where} must be a pair, but {shown(came)} came.")
    first, second = values
    return first, second


def maps_of_one_score(members: Any, where: str) -> tuple[Map, ...]:
    """A tuple of maps that take one score each."""
    from calibrant.maps.base import Map, VectorMap

    made = (members,) if isinstance(members, str) else tuple(members)
    for member in made:
        if not isinstance(member, Map) or isinstance(member, VectorMap):
            raise InputError(
                f"{where} must be a sequence of maps of one score, but {shown(member)} came."
            )
    return made


def in_unit(array: Array, where: str) -> None:
    """Refuse values outside [0, 1]."""
    outside = (array < 0.0) | (array > 1.0)
    if outside.any():
        first = int(np.argmax(outside))
        raise InputError(f"{where} must lie in [0, 1], but number {first} is {array[first]:g}.")


def check_weights(weights: Array, members: Sequence[Any]) -> None:
    """Refuse weights that are not one per member, are negative, or do not sum to 1."""
    if len(weights) != len(members) or not members:
        raise InputError(
            f"a mixture needs one weight per member, but {len(weights)} weights came with "
            f"{len(members)} members."
        )
    if weights.min() < 0.0 or weights.max() > 2.0 or abs(weights.sum() - 1.0) > 1e-9:
        raise InputError(
            "the weights of a mixture must be non-negative and sum to 1, but they are "
            f"{weights.min():g} to {weights.max():g}."
        )


def in_blocks(function: Callable[[Array], Array], scores: Array) -> Array:
    """Evaluate block by block, so that temporaries stay in cache and memory stays small."""
    if scores.size <= BLOCK:
        return function(scores)
    flat, result = scores.reshape(-1), np.empty(scores.size)
    for start in range(0, flat.size, BLOCK):
        result[start : start + BLOCK] = function(flat[start : start + BLOCK])
    return result.reshape(scores.shape)
