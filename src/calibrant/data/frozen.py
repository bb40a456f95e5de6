"""Values that hold arrays: comparable, hashable, and unchangeable for good.

A frozen dataclass only forbids assigning its fields; the arrays inside could still be written to,
pickle and deepcopy would hand back writeable ones, and ``==`` would raise. `Frozen` mends all four.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class Frozen:
    """Base of ``@dataclass(frozen=True, eq=False)`` values with array fields."""

    def __post_init__(self) -> None:
        for name, value in self._items():
            if isinstance(value, np.ndarray):
                for_good = isinstance(value.base, memoryview) and value.base.readonly
                mine = value if for_good else read_only(value.copy(order="C"))
                object.__setattr__(self, name, mine)

    def _items(self) -> list[tuple[str, Any]]:
        """The names and values of the fields."""
        return [(field.name, getattr(self, field.name)) for field in fields(self)]  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        pairs = zip(self._items(), other._items(), strict=True)
        return all(_equal(a, b) for (_, a), (_, b) in pairs)

    def __hash__(self) -> int:
        return hash((type(self).__name__, *(_hashable(value) for _, value in self._items())))

    def __reduce__(self) -> tuple[Any, ...]:
        values = {name: _picklable(value) for name, value in self._items()}
        return partial(type(self), **values), ()

    def __getstate__(self) -> dict[str, Any]:
        return dict(self._items())  # skops asks for it: without what is computed when first used

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _picklable(value: Any) -> Any:
    """The value with read-only mappings as dicts, at any depth: pickle does not know them."""
    if not isinstance(value, MappingProxyType):
        return tuple(map(_picklable, value)) if type(value) is tuple else value
    return {key: _picklable(item) for key, item in value.items()}


def _equal(a: Any, b: Any) -> bool:
    """Whether two field values are equal; arrays, tuples and mappings are compared item by item."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    if type(a) is not type(b):  # True is not 1
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(_equal(value, b[key]) for key, value in a.items())
    return bool(a == b)


def _hashable(value: Any) -> Any:
    """A hashable value that is the same for equal field values."""
    if isinstance(value, np.ndarray):
        return (value + 0 if value.dtype.kind in "fiu" else value).tobytes()
    if isinstance(value, Mapping):
        return frozenset((key, _hashable(v)) for key, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(v) for v in value)
    return value


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view of the array that can never be made writeable; for arrays that nothing else refers to.

    >>> read_only(np.zeros(2)).setflags(write=True)
    Traceback (most recent call last):
    ...
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    contiguous: Any = np.asarray(array, order="C")
    return np.asarray(memoryview(contiguous).toreadonly())


def thawed_json(value: Any) -> Any:
    """The value as plain JSON: read-only mappings as dicts, tuples as lists, at any depth.

    >>> thawed_json(MappingProxyType({"a": (1, MappingProxyType({"b": 2}))}))
    {'a': [1, {'b': 2}]}
    """
    if isinstance(value, Mapping):
        return {key: thawed_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thawed_json(item) for item in value]
    return value
