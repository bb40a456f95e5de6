"""What every map is: a frozen value, a function of scores, and a small JSON object."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


def map_from_dict(description: Mapping[str, Any], depth: int = 0) -> Map:
    """Read a map of any kind, checking kind, version and fields on the way."""
    if depth > DEEPEST:
        raise InputError(f"a map may nest at most {DEEPEST} deep, but this one is deeper.")
    if not isinstance(description, Mapping) or not isinstance(description.get("kind"), str):
        raise InputError("a map must be an object with a 'kind'; this is not one of ours.")
    kind, version = description["kind"], description.get("version")
    cls = _kinds().get(kind)
    if cls is None:
        raise InputError(
            f"unknown kind of map {kind!r}; known are {', '.join(sorted(_kinds()))}. It may need a "
            "newer calibrant: pip install --upgrade calibrant"
        )
    if type(version) is not int or version < 1:
        raise InputError(f"the {kind} map must carry a format version, but {version!r} came.")
    if version > cls.version:
        raise InputError(
            f"this {kind} map has format version {version}, but this calibrant reads up to "
            f"{cls.version}. Upgrade: pip install --upgrade calibrant"
        )
    known = fields(cls)  # type: ignore[arg-type]
    wanted = [field.name for field in known]
    needed = {field.name for field in known if field.default is MISSING}
    given = {key: value for key, value in description.items() if key not in ("kind", "version")}
    if not needed <= set(given) <= set(wanted):
        raise InputError(f"a {kind} map must have the fields {wanted}, but {sorted(given)} came.")
    decoded = {name: _decode(value, f"{kind}.{name}", depth) for name, value in given.items()}
    try:
        return cls._from_fields(decoded)
    except (TypeError, AttributeError, KeyError, IndexError, OverflowError) as wrong:
        raise InputError(f"a {kind} map cannot be made of these fields: {wrong}") from wrong


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
    if isinstance(value, list):
        return tuple(_decode(item, where, depth + 1) for item in value)
    if value is None or isinstance(value, (str, int, float)):
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{where} must be finite, but {value!r} came.")
        return value
    raise InputError(f"{where} cannot hold a value of type {type(value).__name__}.")


# --- checks that the kinds share ----------------------------------------------------------------


def float_array(values: Any, where: str, ndim: int | tuple[int, ...] = 1) -> Array:
    """Finite numbers as float64 (booleans and strings refused), of the given dimension."""
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    try:
        array = np.asarray(values)
    except ValueError as wrong:  # lists of different lengths
        raise InputError(f"{where} must be an array of numbers: {wrong}") from wrong
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(f"{where} must be numbers, but {array.dtype} came.")
    array = array.astype(np.float64, copy=False)
    if array.ndim not in allowed:
        raise InputError(f"{where} must have {allowed} dimension(s), but has {array.ndim}.")
    if not np.isfinite(array).all():
        raise InputError(f"{where} must be finite, but it holds NaN or infinity.")
    return array


def finite_float(value: Any, where: str, largest: float = math.inf) -> float:
    """A finite Python float."""
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float, np.number)):
        raise InputError(f"{where} must be a number, but {value!r} came.")
    number = float(value)
    if not math.isfinite(number) or abs(number) > largest:
        raise InputError(f"{where} must be finite and at most {largest:g}, but {value!r} came.")
    return number


def one_of(value: Any, allowed: tuple[str, ...], where: str) -> None:
    """A word from a short list."""
    if value not in allowed:
        raise InputError(f"{where} must be one of {allowed}, but {value!r} came.")


def in_unit(array: Array, where: str) -> None:
    """All values in [0, 1]."""
    if array.size and (array.min() < 0.0 or array.max() > 1.0):
        raise InputError(
            f"{where} must lie in [0, 1], but {array.min():g} to {array.max():g} came."
        )


def in_blocks(function: Callable[[Array], Array], scores: Array, size: int = 1 << 16) -> Array:
    """Evaluate block by block, so that temporaries stay in cache and memory stays small."""
    if scores.size <= size:
        return function(scores)
    flat, result = scores.reshape(-1), np.empty(scores.size)
    for start in range(0, flat.size, size):
        result[start : start + size] = function(flat[start : start + size])
    return result.reshape(scores.shape)
