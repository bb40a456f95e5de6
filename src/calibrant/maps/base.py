"""What every map is: a frozen value, a function of scores, and a small JSON object."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data.facts import shown
from calibrant.data.frozen import Frozen
from calibrant.errors import InputError

__all__ = ["Map", "VectorMap", "map_from_dict"]

Array = NDArray[np.float64]

#: the deepest nesting of maps that a file may hold
DEEPEST = 20


class Map(Frozen):
    """A function from finite scores to probabilities.

    Subclasses are ``@dataclass(frozen=True, eq=False)`` whose fields are floats, strings, arrays
    and other maps; they validate themselves when made, so a map that exists is a map that works.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1

    @abstractmethod
    def __call__(self, scores: ArrayLike) -> Array:
        """The calibrated probabilities of the scores, of the same shape."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description: kind, format version and the fields, floats bit for bit."""
        values = {name: _encode(value) for name, value in self._items()}
        return {"kind": self.kind, "version": self.version, **values}

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> Map:
        """The map that `to_dict` described; anything else is refused with a reason."""
        return map_from_dict(description)

    @classmethod
    def _from_fields(cls, values: dict[str, Any]) -> Self:
        """Build from decoded JSON fields; kinds with unusual fields override it."""
        return cls(**values)


class VectorMap(Map):
    """A map from score matrices to probabilities of k classes or labels, shape (n, k)."""

    #: whether the probabilities of a row sum to one
    distribution: ClassVar[bool] = True

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """How many scores a row has."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """k: how many probabilities a row gets."""


def map_from_dict(description: Mapping[str, Any], depth: int = 0) -> Map:
    """Read a map of any kind, checking kind, version and fields on the way."""
    if depth > DEEPEST:
        raise InputError(f"a map may nest at most {DEEPEST} deep, but this one is deeper.")
    if not isinstance(description, Mapping) or not isinstance(description.get("kind"), str):
        raise InputError("a map must be an object with a 'kind'; this is not one of ours.")
    kind = description["kind"]
    cls = _kinds().get(kind)
    if cls is None:
        raise InputError(
            f"unknown kind of map {shown(kind)}; known are {', '.join(sorted(_kinds()))}. It may "
            "need a newer calibrant: pip install --upgrade calibrant"
        )
    _check_version(cls, description.get("version"))
    given = {key: value for key, value in description.items() if key not in ("kind", "version")}
    _check_fields(cls, given)
    decoded = {name: _decode(value, f"{kind}.{name}", depth) for name, value in given.items()}
    try:
        return cls._from_fields(decoded)
    except InputError:
        raise
    except (TypeError, AttributeError, LookupError, ArithmeticError, ValueError) as wrong:
        raise InputError(f"a {kind} map cannot be made of these fields: {wrong}") from wrong


def _check_version(cls: type[Map], version: Any) -> None:
    if type(version) is not int or version < 1:
        raise InputError(
            f"the {cls.kind} map must carry a format version, a whole number from 1, but "
            f"{shown(version)} came."
        )
    if version > cls.version:
        raise InputError(
            f"this {cls.kind} map has format version {shown(version)}, but this calibrant reads up "
            f"to {cls.version}. Upgrade: pip install --upgrade calibrant"
        )


def _check_fields(cls: type[Map], given: Mapping[Any, Any]) -> None:
    known = fields(cls)  # type: ignore[arg-type]
    names = [field.name for field in known]
    missing = [f.name for f in known if f.default is MISSING and f.name not in given]
    unknown = [key for key in given if key not in names]
    if missing or unknown:
        told = [f"{shown(missing)} did not come"] * bool(missing)
        told += [f"{shown(unknown)} came as well"] * bool(unknown)
        raise InputError(
            f"a {cls.kind} map must have the fields {names}, but {' and '.join(told)}."
        )


@functools.cache
def _kinds() -> dict[str, type[Map]]:
    """Every kind by name. The package imports all of its files, so none can be forgotten."""
    import calibrant.maps as package

    kinds: list[Any] = [getattr(package, name) for name in package.__all__]
    return {kind.kind: kind for kind in kinds if "kind" in vars(kind)}


def _encode(value: Any) -> Any:
    if isinstance(value, Map):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    return value


def _decode(value: Any, where: str, depth: int) -> Any:
    if isinstance(value, Mapping):
        return map_from_dict(value, depth + 1)
    if isinstance(value, (list, tuple)):
        return _decode_list(value, where, depth)
    if value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool)):
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{where} must be finite, but {value!r} came.")
        return value
    raise InputError(f"{where} cannot hold a value of type {type(value).__name__}.")


def _decode_list(values: Sequence[Any], where: str, depth: int) -> Any:
    """A tuple of decoded values; of floats alone, as most lists of a file are, an array."""
    if depth > DEEPEST + 2:  # the innermost map may have a matrix
        raise InputError(f"{where} must not hold lists in lists in lists, but it does.")
    if values and set(map(type, values)) == {float}:
        return _finite(np.array(values), where)
    return tuple(_decode(item, where, depth + 1) for item in values)


# --- checks that the kinds share ----------------------------------------------------------------


def float_array(values: Any, where: str, ndim: int | tuple[int, ...] = 1) -> Array:
    """Finite numbers as float64 (booleans and strings refused), of the given dimension."""
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    try:
        array = np.asarray(values)
    except ValueError as wrong:
        raise InputError(
            f"{where} must be an array of numbers, but lists of different lengths came."
        ) from wrong
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(f"{where} must be numbers, but {_odd(array)} came.")
    array = array.astype(np.float64, copy=False)
    if array.ndim not in allowed:
        dimensions = " or ".join(map(str, allowed))
        raise InputError(f"{where} must have {dimensions} dimension(s), but has {array.ndim}.")
    return _finite(array, where)


def _finite(array: Array, where: str) -> Array:
    fine = np.isfinite(array)
    if not fine.all():
        first = int(np.argmin(fine))
        raise InputError(f"{where} must be finite, but number {first} is {array.flat[first]}.")
    return array


def _odd(array: NDArray[Any]) -> str:
    """What an array holds instead of numbers."""
    if array.dtype.kind != "O":
        return str(array.dtype)
    odd = [v for v in array.flat if isinstance(v, bool) or not isinstance(v, (int, float))]
    return shown(odd[0]) if odd else "an integer beyond 64 bits"


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


def one_of(value: Any, allowed: tuple[str, ...], where: str) -> None:
    """A word from a short list."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{where} must be one of {allowed}, but {shown(value)} came.")


def pair(values: Any, where: str) -> tuple[Any, Any]:
    """Two values in a list or tuple."""
    if not isinstance(values, (tuple, list, np.ndarray)) or len(values) != 2:
        came = values.tolist() if isinstance(values, np.ndarray) else values
        raise InputError(f"{where} must be a pair, but {shown(came)} came.")
    first, second = values
    return first, second


def maps_of_one_score(members: Any, where: str) -> tuple[Map, ...]:
    """A tuple of maps, none of which wants a row of scores."""
    made = (members,) if isinstance(members, str) else tuple(members)
    for member in made:
        if not isinstance(member, Map) or isinstance(member, VectorMap):
            raise InputError(
                f"{where} must be a sequence of maps of one score, but {shown(member)} came."
            )
    return made


def in_unit(array: Array, where: str) -> None:
    """All values in [0, 1]."""
    outside = (array < 0.0) | (array > 1.0)
    if outside.any():
        first = int(np.argmax(outside))
        raise InputError(f"{where} must lie in [0, 1], but number {first} is {array[first]:g}.")


def shares_of_one(weights: Array, where: str) -> None:
    """Non-negative numbers of sum 1, up to rounding."""
    if weights.min() < 0.0 or weights.max() > 2.0 or abs(weights.sum() - 1.0) > 1e-9:
        raise InputError(
            f"{where} must be non-negative and sum to 1, but they are {weights.min():g} to "
            f"{weights.max():g}."
        )


def in_blocks(function: Callable[[Array], Array], scores: Array, size: int = 1 << 16) -> Array:
    """Evaluate block by block, so that temporaries stay in cache and memory stays small."""
    if scores.size <= size:
        return function(scores)
    flat, result = scores.reshape(-1), np.empty(scores.size)
    for start in range(0, flat.size, size):
        result[start : start + size] = function(flat[start : start + size])
    return result.reshape(scores.shape)
